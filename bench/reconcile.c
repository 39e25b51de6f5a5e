/*
 * What a reconciliation costs apart from its conversation: ROWS effects on both sides, in no order,
 * into the spool, sorted, merged and added up.
 *
 *     reconcile ROWS
 *
 * One in a thousand differs: missing here, missing there, another amount, a duplicate, in turn.
 * Prints JSON: rows (of both sides together) a second, seconds of each part, peak memory. Exits
 * with 1 if what was found is not what was put in.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/usage.h"
#include "reconcile/merge.h"
#include "reconcile/spool.h"
#include "reconcile/summary.h"

#define DIFFER_EACH 1000
#define MIX         UINT64_C(0x9E3779B97F4A7C15) /* Odd: each number gives another. */
#define AT_US       INT64_C(1000000000)
#define TO_US       INT64_C(2000000000)
#define DIGITS      26
#define FIVE_BITS   31U
#define MIXED       12 /* Digits that hold five bits of the mixed row each, from the highest on. */
#define SHIFT       59

enum difference {
    SAME = 0,
    MISSING_HERE,
    MISSING_THERE,
    OTHER_AMOUNT,
    TWICE,
    DIFFERENCE_COUNT
};

static void fail(const struct idem_error *error)
{
    (void)fprintf(stderr, "reconcile: %s\n", error->text);
    exit(1);
}

static enum difference difference_of(uint64_t row)
{
    return row % DIFFER_EACH != 0
               ? SAME
               : (enum difference)(1 + row / DIFFER_EACH % (DIFFERENCE_COUNT - 1));
}

/* An effect id of ours, in an order that has nothing to do with the row. */
static void id_print(uint64_t row, char id[1 + DIGITS])
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    uint64_t mixed = row * MIX;
    id[0] = 'c';
    for (size_t i = 0; i < DIGITS; i++) {
        size_t digit = i < MIXED ? mixed >> (SHIFT - 5 * i) & FIVE_BITS : 0;
        id[1 + i] = digits[digit];
    }
    id[1 + MIXED] = digits[mixed & 15U]; /* The rest of the 64 bits. */
}

static void row_add(struct idem_spool *spool, uint64_t row)
{
    char id[1 + DIGITS];
    char order_no[32];
    struct idem_error error;
    enum difference difference = difference_of(row);
    id_print(row, id);
    int len = snprintf(order_no, sizeof(order_no), "order-%012" PRIu64, row);
    struct idem_line line = {
        .state = IDEM_LINE_SUCCEEDED,
        .effect_id = { .data = id, .len = sizeof(id) },
        .amount_minor = 1 + (int64_t)(row % 100000),
        .currency = IDEM_STR("EUR"),
        .order_no = { .data = order_no, .len = (size_t)len },
        .reference = IDEM_STR("provider-reference-000001"),
        .first_us = AT_US,
        .last_us = AT_US,
    };
    int times = difference == TWICE ? 2 : 1;
    for (int i = 0; i < times && difference != MISSING_THERE; i++) {
        if (idem_spool_add(spool, IDEM_LINE_THERE, &line, &error) != IDEM_OK) {
            fail(&error);
        }
    }
    line.amount_minor += difference == OTHER_AMOUNT ? 1 : 0;
    line.operation = IDEM_STR("01977e3c-5e0a-7cc3-98c4-dc0c0c07398f");
    if (difference != MISSING_HERE &&
        idem_spool_add(spool, IDEM_LINE_HERE, &line, &error) != IDEM_OK) {
        fail(&error);
    }
}

static enum idem_err next(void *context,
                          enum idem_line_side side,
                          struct idem_line *ret_line,
                          bool *ret_end,
                          struct idem_error *reterr)
{
    return idem_spool_next(context, side, ret_line, ret_end, reterr);
}

/* Counts of each kind. */
static void merge(struct idem_spool *spool, uint64_t counts[IDEM_MERGE_KIND_COUNT])
{
    static struct idem_summary_book book;
    const struct idem_merge_rules rules = {
        .from_us = 0,
        .to_us = TO_US,
        .young_us = TO_US,
        .lists = 1U << IDEM_EFFECT_KIND_CHARGE,
    };
    const struct idem_merge_source source = { .context = spool, .next = next };
    struct idem_merge both;
    struct idem_merge_pair pair;
    struct idem_error error;
    idem_merge_init(&both, &rules, &source);
    for (;;) {
        if (idem_merge_next(&both, &pair, &error) != IDEM_OK) {
            fail(&error);
        }
        if (pair.kind == IDEM_MERGE_NONE) {
            return;
        }
        if (idem_summary_add(&book, &pair, &error) != IDEM_OK) {
            fail(&error);
        }
        counts[pair.kind] += 1;
    }
}

static double seconds_since(struct idem_clock *clock, int64_t begin_us)
{
    return (double)(idem_clock_mono_us(clock) - begin_us) / 1e6;
}

int main(int argc, char **argv)
{
    uint64_t rows = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t counts[IDEM_MERGE_KIND_COUNT] = { 0 };
    uint64_t put_in[DIFFERENCE_COUNT] = { 0 };
    struct idem_clock clock;
    struct idem_error error;
    struct idem_spool *spool = NULL;
    if (rows == 0) {
        (void)fputs("usage: reconcile ROWS\n", stderr);
        return 2;
    }
    idem_clock_init_system(&clock);
    int64_t begin_us = idem_clock_mono_us(&clock);
    if (idem_spool_open(&spool, &error) != IDEM_OK) {
        fail(&error);
    }
    for (uint64_t row = 0; row < rows; row++) {
        row_add(spool, row);
        put_in[difference_of(row)] += 1;
    }
    double add_s = seconds_since(&clock, begin_us);
    if (idem_spool_sort(spool, &error) != IDEM_OK) {
        fail(&error);
    }
    merge(spool, counts);
    double all_s = seconds_since(&clock, begin_us);
    idem_spool_close(spool);

    bool found = counts[IDEM_MERGE_MATCHED] == put_in[SAME] + put_in[TWICE] &&
                 counts[IDEM_MERGE_MISSING_HERE] == put_in[MISSING_HERE] &&
                 counts[IDEM_MERGE_MISSING_THERE] == put_in[MISSING_THERE] &&
                 counts[IDEM_MERGE_AMOUNT] == put_in[OTHER_AMOUNT] &&
                 counts[IDEM_MERGE_DUPLICATE] == put_in[TWICE];
    struct bench_memory memory = bench_memory_look(getpid());
    double both = (double)(2 * rows);
    (void)printf("{\"rows\":%" PRIu64
                 ",\"rate\":%.0f,\"add_s\":%.3f,\"sort_and_merge_s\":%.3f,"
                 "\"peak_kib\":%" PRIu64 ",\"found\":%s}\n",
                 rows, both / all_s, add_s, all_s - add_s, memory.peak_kib,
                 found ? "true" : "false");
    return found ? 0 : 1;
}
