/*
 * fault.h - which call fails: the N-th of its kind, once, or from there on for ever.
 *
 * One state says what is armed and counts what was called. It lies in memory that others share: the
 * process that judges reads what fired also after the one that was tortured has died. Nothing is
 * counted while nothing is armed, so that judging costs no points.
 *
 * Threads: any; counting is atomic.
 */
#ifndef IDEM_TEST_TORTURE_FAULT_H
#define IDEM_TEST_TORTURE_FAULT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum torture_call {
    TORTURE_CALL_NONE = 0,
#define TORTURE_CALL(symbol, name) TORTURE_CALL_##symbol,
#include "torture/fault.def" // IWYU pragma: keep
    TORTURE_CALL_COUNT
};

enum torture_fault {
    TORTURE_FAULT_NONE = 0,
#define TORTURE_FAULT(symbol, name, call, code, modes) TORTURE_FAULT_##symbol,
#include "torture/fault.def" // IWYU pragma: keep
    TORTURE_FAULT_COUNT
};

/* Codes that are no errno. */
#define TORTURE_SHORT (-1) /* Half of what was asked for is done. */
#define TORTURE_AFTER (-2) /* It is done, and then said to have failed. */

struct torture_fault_entry {
    const char *name;
    enum torture_call call;
    int code;
    bool ever; /* Also from there on for ever. */
};

const char *torture_call_name(enum torture_call call);
const struct torture_fault_entry *torture_fault_entry(enum torture_fault fault);

#define TORTURE_COUNTS 32

#define TORTURE_BLAMED_MAX 64

/* torture.py packs the same: "<IIiIQQ32Q64s". */
struct torture_state {
    _Atomic uint32_t armed; /* 0: nothing is counted and nothing fails. */
    uint32_t call;
    int32_t code;
    uint32_t ever;
    uint64_t at; /* Counted from 1; 0: only counted. */
    _Atomic uint64_t fired;
    _Atomic uint64_t counts[TORTURE_COUNTS];
    char blamed[TORTURE_BLAMED_MAX]; /* Level two: in whose code a signal ended it. Terminated. */
};

static_assert(TORTURE_CALL_COUNT <= TORTURE_COUNTS, "every kind of call has its count");

/* Whose state it is from now on. Before, nothing fails. */
void torture_attach(struct torture_state *state);

void torture_arm(enum torture_fault fault, uint64_t at, bool ever);
void torture_disarm(void);
void torture_resume(void); /* As it was armed. */

/* Counts a call; 0: it goes on as ever, otherwise what it fails with. */
int torture_fires(enum torture_call call);

/* Bytes that a short call does. */
size_t torture_half(size_t size);

#endif /* IDEM_TEST_TORTURE_FAULT_H */
