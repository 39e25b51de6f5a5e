/*
 * sim - one seed with its trace, or as many seeds as fit into a time.
 *
 *     sim SEED [STEPS]                 one run, told line by line
 *     sim --hunt SECONDS [SEED] [MAX]  fresh seeds from SEED on, at most MAX of them
 *     sim --twice SEED COUNT           each seed twice: both runs must be the same
 *     sim --file FILE                  the seeds of a file, one a line, with steps; # is a comment
 *
 * Exit 0: nothing was found. 1: a violation, and one line that repeats it. 2: wrong usage.
 *
 * A run that trips an assertion of the product ends the process; the line that repeats it is
 * printed by a handler of SIGABRT.
 */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "sim/world.h"

#define STEPS_USUAL  4000
#define LINE_MAX_LEN 256
#define MEMORY_KEPT  (256 * 1024 * 1024)

static char repeat_line[128]; /* Of the run that is under way. */
static size_t repeat_len;

struct totals {
    uint64_t seeds;
    uint64_t steps;
    uint64_t executions;
    uint64_t replies;
    int64_t passed_us;
    uint64_t fired[SIM_FAULT_COUNT];
};

static void on_abort(int number)
{
    (void)number; /* Only one is caught. */
    ssize_t written = write(STDERR_FILENO, repeat_line, repeat_len);
    (void)written; /* There is nobody left to tell. */
    _exit(1);
}

static double now_s(void)
{
    struct timespec now;
    int rc = clock_gettime(CLOCK_MONOTONIC, &now);
    IDEM_ASSERT(rc == 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct sim_result run(const struct sim_order *order, struct idem_digester *digester)
{
    int len = snprintf(repeat_line, sizeof(repeat_line),
                       "repeat: make sim SEED=%" PRIu64 " STEPS=%" PRIu64 "\n", order->seed,
                       order->steps);
    IDEM_ASSERT(len > 0 && (size_t)len < sizeof(repeat_line));
    repeat_len = (size_t)len;
    return sim_run(order, digester);
}

static void totals_add(struct totals *totals, const struct sim_result *result)
{
    totals->seeds += 1;
    totals->steps += result->steps;
    totals->executions += result->executions;
    totals->replies += result->replies;
    totals->passed_us += result->passed_us;
    for (size_t i = 0; i < SIM_FAULT_COUNT; i++) {
        totals->fired[i] += result->fired[i];
    }
}

static void totals_print(const struct totals *totals, double took_s)
{
    size_t never = 0;
    for (size_t i = 0; i < SIM_FAULT_COUNT; i++) {
        printf("  %10" PRIu64 "  %-24s %s\n", totals->fired[i],
               sim_fault_name((enum sim_fault_kind)i), sim_fault_text((enum sim_fault_kind)i));
        never += totals->fired[i] == 0 ? 1 : 0;
    }
    for (size_t i = 0; i < SIM_FAULT_COUNT; i++) {
        if (totals->fired[i] == 0) {
            printf("never fired: %s\n", sim_fault_name((enum sim_fault_kind)i));
        }
    }
    double passed_s = (double)totals->passed_us / 1e6;
    printf("sim: %" PRIu64 " seeds, %" PRIu64 " steps, %" PRIu64 " executions, %" PRIu64
           " replies; %.1f days simulated in %.1f s, %.0f to 1; %zu of %d kinds of faults fired\n",
           totals->seeds, totals->steps, totals->executions, totals->replies, passed_s / 86400,
           took_s, took_s > 0 ? passed_s / took_s : 0, (size_t)SIM_FAULT_COUNT - never,
           (int)SIM_FAULT_COUNT);
}

static int report(const struct sim_result *result)
{
    if (result->violations == 0) {
        return 0;
    }
    (void)fflush(stdout); /* So that the order of the lines is right; else no harm. */
    fprintf(stderr, "violation: %s (step %" PRIu64 ")\n", result->first, result->steps);
    fprintf(stderr, "%s", repeat_line);
    return 1;
}

static int one(const struct sim_order *order, struct idem_digester *digester)
{
    struct sim_result result = run(order, digester);
    printf("seed %" PRIu64 ": %" PRIu64 " steps, %" PRId64 " s simulated, %" PRIu64
           " executions, %" PRIu64 " replies, %" PRIu64 " violations\n",
           order->seed, result.steps, result.passed_us / SIM_SECOND, result.executions,
           result.replies, result.violations);
    return report(&result);
}

static int hunt(double seconds, uint64_t seed, uint64_t max, struct idem_digester *digester)
{
    struct totals totals = { .seeds = 0 };
    double begun_s = now_s();
    int found = 0;
    while (totals.seeds < max && now_s() - begun_s < seconds && found == 0) {
        struct sim_order order = { .seed = seed + totals.seeds, .steps = STEPS_USUAL };
        struct sim_result result = run(&order, digester);
        totals_add(&totals, &result);
        found = report(&result);
    }
    totals_print(&totals, now_s() - begun_s);
    return found;
}

static int twice(uint64_t seed, uint64_t count, struct idem_digester *digester)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sim_order order = { .seed = seed + i, .steps = STEPS_USUAL, .digest = true };
        struct sim_result first = run(&order, digester);
        struct sim_result second = run(&order, digester);
        if (first.digest != second.digest || first.steps != second.steps) {
            fprintf(stderr, "seed %" PRIu64 " is not the same twice\n", order.seed);
            return 1;
        }
        int found = report(&first);
        if (found != 0) {
            return found;
        }
    }
    printf("sim: %" PRIu64 " seeds from %" PRIu64 ", each the same twice\n", count, seed);
    return 0;
}

static int file(const char *path, struct idem_digester *digester)
{
    FILE *lines = fopen(path, "r");
    char line[LINE_MAX_LEN];
    uint64_t seeds = 0;
    int found = 0;
    if (lines == NULL) {
        fprintf(stderr, "sim: cannot read %s: %s\n", path, strerror(errno));
        return 2;
    }
    while (found == 0 && fgets(line, sizeof(line), lines) != NULL) {
        char *end = line;
        uint64_t seed = strtoull(line, &end, 10);
        if (end == line) {
            continue; /* A comment, or empty. */
        }
        uint64_t steps = strtoull(end, NULL, 10);
        struct sim_order order = { .seed = seed, .steps = steps > 0 ? steps : STEPS_USUAL };
        struct sim_result result = run(&order, digester);
        found = report(&result);
        seeds += 1;
    }
    (void)fclose(lines); /* It was only read. */
    printf("sim: %" PRIu64 " seeds of %s\n", seeds, path);
    return found;
}

static uint64_t number(int count, char **words, int index, uint64_t usual)
{
    return index < count ? strtoull(words[index], NULL, 10) : usual;
}

static int dispatch(int count, char **words, struct idem_digester *digester)
{
    if (count >= 3 && strcmp(words[1], "--hunt") == 0) {
        uint64_t fresh = (uint64_t)time(NULL) * 1000000;
        return hunt(strtod(words[2], NULL), number(count, words, 3, fresh),
                    number(count, words, 4, UINT64_MAX), digester);
    }
    if (count == 4 && strcmp(words[1], "--twice") == 0) {
        return twice(number(count, words, 2, 0), number(count, words, 3, 0), digester);
    }
    if (count == 3 && strcmp(words[1], "--file") == 0) {
        return file(words[2], digester);
    }
    if (count < 2 || count > 3 || words[1][0] == '-') {
        fprintf(stderr,
                "usage: sim SEED [STEPS] | --hunt SECONDS [SEED] [MAX] | "
                "--twice SEED COUNT | --file FILE\n");
        return 2;
    }
    const struct sim_order order = {
        .seed = number(count, words, 1, 0),
        .steps = number(count, words, 2, STEPS_USUAL),
        .trace = true,
    };
    return one(&order, digester);
}

int main(int count, char **words)
{
    struct idem_digester *digester = NULL;
    struct idem_error error;
    (void)mallopt(M_MMAP_THRESHOLD, MEMORY_KEPT); /* Speed only: what a run gives back, */
    (void)mallopt(M_TRIM_THRESHOLD, MEMORY_KEPT); /* the next one takes. */
    if (signal(SIGABRT, on_abort) == SIG_ERR) {
        return 2;
    }
    if (idem_digester_create(&digester, &error) != IDEM_OK) {
        fprintf(stderr, "sim: %s\n", error.text);
        return 2;
    }
    int status = dispatch(count, words, digester);
    idem_digester_destroy(digester);
    return status;
}
