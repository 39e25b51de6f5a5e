/*
 * sim - one seed with its trace, or as many seeds as fit into a time.
 *
 *     sim SEED [STEPS]                 one run, told line by line
 *     sim --hunt SECONDS [SEED] [MAX] [JOBS]
 *                                      fresh seeds from SEED on, at most MAX, in so many processes
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
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "sim/world.h"

#define STEPS_USUAL  4000
#define LINE_MAX_LEN 256
#define MEMORY_KEPT  (256 * 1024 * 1024)
#define JOBS_MAX     64

static char repeat_line[128]; /* Of the run that is under way. */
static size_t repeat_len;
static volatile uint64_t step_reached;

struct totals {
    uint64_t seeds;
    uint64_t steps;
    uint64_t executions;
    uint64_t replies;
    int64_t passed_us;
    uint64_t fired[SIM_FAULT_COUNT];
};

/* A hunt, and the memory that its processes share. */
struct hunt {
    double until_s;
    uint64_t seed;
    uint64_t max;
    uint64_t jobs;
    atomic_bool found;
    struct totals totals[JOBS_MAX];
};

/* What a handler of signals may do: no printf. */
static void say(const char *text, size_t len)
{
    ssize_t written = write(STDERR_FILENO, text, len);
    (void)written; /* There is nobody left to tell. */
}

static void on_abort(int number)
{
    (void)number; /* Only one is caught. */
    char text[] = "violation: an assertion of the program (step 00000000)\n";
    size_t digits = sizeof(text) - 4; /* Of ")\n" and the end. */
    uint64_t step = step_reached;
    for (size_t i = 0; i < 8; i++) {
        text[digits - i] = (char)('0' + step % 10);
        step /= 10;
    }
    say(text, sizeof(text) - 1);
    say(repeat_line, repeat_len);
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
    struct sim_order counted = *order;
    counted.ret_step = &step_reached;
    return sim_run(&counted, digester);
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
    fprintf(stderr, "violation: %s (step %" PRIu64 ")\n", result->first, result->first_step);
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

/* One of so many processes. */
static void job(struct hunt *hunt, uint64_t no, struct idem_digester *digester)
{
    for (uint64_t i = no; i < hunt->max && now_s() < hunt->until_s; i += hunt->jobs) {
        if (atomic_load(&hunt->found)) {
            return;
        }
        struct sim_order order = { .seed = hunt->seed + i, .steps = STEPS_USUAL };
        struct sim_result result = run(&order, digester);
        totals_add(&hunt->totals[no], &result);
        if (report(&result) != 0) {
            atomic_store(&hunt->found, true);
        }
    }
}

static void jobs_start(struct hunt *hunt, struct idem_digester *digester)
{
    for (uint64_t i = 0; i < hunt->jobs; i++) {
        pid_t child = fork();
        IDEM_ASSERT(child >= 0);
        if (child == 0) {
            job(hunt, i, digester);
            _exit(0);
        }
    }
}

/* One that aborts has found something too. */
static void jobs_wait(struct hunt *hunt)
{
    for (uint64_t i = 0; i < hunt->jobs; i++) {
        int status = 0;
        pid_t child = wait(&status);
        IDEM_ASSERT(child > 0);
        if (status != 0) {
            atomic_store(&hunt->found, true);
        }
    }
}

static void totals_join(struct totals *totals, const struct totals *part)
{
    totals->seeds += part->seeds;
    totals->steps += part->steps;
    totals->executions += part->executions;
    totals->replies += part->replies;
    totals->passed_us += part->passed_us;
    for (size_t i = 0; i < SIM_FAULT_COUNT; i++) {
        totals->fired[i] += part->fired[i];
    }
}

static int hunt(double seconds, struct hunt wanted, struct idem_digester *digester)
{
    struct totals totals = { .seeds = 0 };
    double begun_s = now_s();
    IDEM_ASSERT(wanted.jobs > 0 && wanted.jobs <= JOBS_MAX);
    struct hunt *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    IDEM_ASSERT(shared != MAP_FAILED);
    shared->until_s = begun_s + seconds;
    shared->seed = wanted.seed;
    shared->max = wanted.max;
    shared->jobs = wanted.jobs;
    if (wanted.jobs == 1) { /* For whoever looks with a debugger. */
        job(shared, 0, digester);
    } else {
        jobs_start(shared, digester);
        jobs_wait(shared);
    }
    for (uint64_t i = 0; i < wanted.jobs; i++) {
        totals_join(&totals, &shared->totals[i]);
    }
    int found = atomic_load(&shared->found) ? 1 : 0;
    (void)munmap(shared, sizeof(*shared)); /* The process ends. */
    totals_print(&totals, now_s() - begun_s);
    if (totals.seeds == 0 && found == 0) {
        fprintf(stderr, "sim: no seed was run\n");
        return 1;
    }
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
        const struct hunt wanted = {
            .seed = number(count, words, 3, fresh),
            .max = number(count, words, 4, UINT64_MAX),
            .jobs = number(count, words, 5, 1),
        };
        return hunt(strtod(words[2], NULL), wanted, digester);
    }
    if (count == 4 && strcmp(words[1], "--twice") == 0) {
        return twice(number(count, words, 2, 0), number(count, words, 3, 0), digester);
    }
    if (count == 3 && strcmp(words[1], "--file") == 0) {
        return file(words[2], digester);
    }
    if (count < 2 || count > 3 || words[1][0] == '-') {
        fprintf(stderr,
                "usage: sim SEED [STEPS] | --hunt SECONDS [SEED] [MAX] [JOBS] | "
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
