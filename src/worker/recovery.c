/*
 * One read at a time. A round reads as many rows as a read can hold, hands over as many as the
 * engine has room for, and forgets the rest: they are still due and come again in the next round.
 *
 * When to look next: at once if rows were left over and there is room; when the engine knows of
 * something planned (its hint), when the store named the next due time, and in any case once a
 * second, for what other processes on the same store leave behind. Where there are any, one of them
 * may also die at any time: then what it left is over before its leases are, and is looked for
 * every few seconds.
 */
#include "worker/recovery.h"

#include <stdlib.h>

#include "base/bug.h"

#define LOOK_EVERY_US IDEM_US_PER_SECOND
#define LEFT_EVERY_US IDEM_US_PER_SECOND
#define FULL_PAUSE_US (20 * IDEM_US_PER_MS) /* Rows are left and the engine is full. */

struct idem_recovery {
    struct idem_engine *engine;
    struct idem_clock *clock;
    struct idem_read read;
    struct idem_list done; /* Where it comes back. */
    bool reading;
    bool caught_up;
    bool stopped;
    int64_t after_row;  /* How far the search for what was left has come. */
    int64_t look_at_us; /* Monotonic. */
    int64_t left_at_us; /* Monotonic: when what others left is looked for again. */
};

enum idem_err idem_recovery_create(struct idem_engine *engine,
                                   struct idem_clock *clock,
                                   struct idem_recovery **ret_recovery)
{
    struct idem_recovery *recovery = calloc(1, sizeof(*recovery));
    if (recovery == NULL) {
        return IDEM_E_SYSTEM;
    }
    recovery->engine = engine;
    recovery->clock = clock;
    *ret_recovery = recovery;
    return IDEM_OK;
}

void idem_recovery_destroy(struct idem_recovery *recovery)
{
    if (recovery != NULL) {
        IDEM_ASSERT(!recovery->reading);
        free(recovery);
    }
}

static void look_within(struct idem_recovery *recovery, int64_t delay_us)
{
    int64_t at_us = idem_clock_mono_us(recovery->clock) + (delay_us > 0 ? delay_us : 0);
    if (at_us < recovery->look_at_us) {
        recovery->look_at_us = at_us;
    }
}

/* Hands over what was read; returns how many the engine took. */
static size_t hand_over(struct idem_recovery *recovery)
{
    const struct idem_read *read = &recovery->read;
    for (size_t i = 0; i < read->due_count; i++) {
        if (idem_engine_recover(recovery->engine, &read->due[i]) != IDEM_OK) {
            return i;
        }
    }
    return read->due_count;
}

/*
 * What an earlier process left: all of it, in order of rows, before anything else counts as done.
 */
static void took_left(struct idem_recovery *recovery)
{
    size_t taken = hand_over(recovery);
    if (taken > 0) {
        recovery->after_row = recovery->read.due[taken - 1].row;
    }
    if (taken < recovery->read.due_count) {
        look_within(recovery, FULL_PAUSE_US);
        return;
    }
    if (recovery->read.due_count < IDEM_READ_DUE_MAX) {
        recovery->caught_up = true;
        recovery->after_row = 0;
        recovery->left_at_us = idem_clock_mono_us(recovery->clock) + LEFT_EVERY_US;
    }
    look_within(recovery, 0);
}

static void took_due(struct idem_recovery *recovery)
{
    const struct idem_read *read = &recovery->read;
    size_t taken = hand_over(recovery);
    if (taken < read->due_count || read->due_count == IDEM_READ_DUE_MAX) {
        look_within(recovery, FULL_PAUSE_US);
    } else if (read->next_due_us != 0) {
        look_within(recovery, read->next_due_us - idem_clock_wall_us(recovery->clock));
    }
}

static void take_read(struct idem_recovery *recovery)
{
    recovery->reading = false;
    recovery->look_at_us = idem_clock_mono_us(recovery->clock) + LOOK_EVERY_US;
    if (recovery->stopped || recovery->read.answer != IDEM_STORE_DURABLE) {
        return;
    }
    if (recovery->read.kind == IDEM_READ_LEFT) {
        took_left(recovery);
    } else {
        took_due(recovery);
    }
}

static bool left_is_next(const struct idem_recovery *recovery)
{
    bool again = idem_engine_shares_store(recovery->engine) &&
                 idem_clock_mono_us(recovery->clock) >= recovery->left_at_us;
    return again || !recovery->caught_up;
}

static void begin_read(struct idem_recovery *recovery)
{
    struct idem_read *read = &recovery->read;
    read->kind = left_is_next(recovery) ? IDEM_READ_LEFT : IDEM_READ_DUE;
    read->now_us = idem_clock_wall_us(recovery->clock);
    read->after_row = recovery->after_row;
    read->done = &recovery->done;
    recovery->reading = true;
    idem_engine_read(recovery->engine, read);
}

void idem_recovery_step(struct idem_recovery *recovery)
{
    struct idem_list_node *node = idem_list_pop(&recovery->done);
    if (node != NULL) {
        IDEM_ASSERT(node == &recovery->read.node);
        take_read(recovery);
    }
    if (recovery->stopped) {
        return;
    }
    if (recovery->reading) {
        return; /* The hint is kept: what this read does not see yet is looked for after it. */
    }
    int64_t due_us = idem_engine_take_due_hint(recovery->engine);
    if (due_us != INT64_MAX) {
        look_within(recovery, due_us - idem_clock_wall_us(recovery->clock));
    }
    bool is_time = idem_clock_mono_us(recovery->clock) >= recovery->look_at_us;
    if (is_time && idem_engine_recovery_room(recovery->engine) > 0) {
        begin_read(recovery);
    }
}

int64_t idem_recovery_wake_us(const struct idem_recovery *recovery)
{
    if (recovery->done.count > 0) {
        return 0; /* Its read came back after its last step. */
    }
    if (recovery->reading || recovery->stopped) {
        return INT64_MAX;
    }
    if (idem_engine_recovery_room(recovery->engine) == 0) {
        return INT64_MAX; /* A flight that ends wakes the owner. */
    }
    return recovery->look_at_us;
}

bool idem_recovery_caught_up(const struct idem_recovery *recovery)
{
    return recovery->caught_up;
}

void idem_recovery_stop(struct idem_recovery *recovery)
{
    recovery->stopped = true;
}
