/*
 * Reading, reaping, and a clock that is not believed.
 *
 * The horizon is what retention takes for "now". It starts where the store has it and runs towards
 * the wall clock, by at most two seconds in a second of monotonic time; where it would pass the
 * wall clock it waits. So a process that was down catches up, a clock that jumps a year ahead gains
 * two hours in an hour, and one that goes back stops it.
 *
 * Only a horizon that is durable is used. The opening of an empty store wrote the first one, this
 * worker moves it at most once a minute, rows are read up to it, and each command carries it: what
 * a restart finds is never behind what was forgotten. The same mark says how far the clock was seen
 * to be, below which no later process begins.
 *
 * Beside load: a page of rows at a time, TASKS_MAX commands at a time, and only while fewer than
 * QUEUE_MAX commands wait for a batch. What is left on a page when the process ends, or could not
 * be written, is found by the next look: rows stay until they are reaped.
 */
#include "worker/reaper.h"

#include <stdlib.h>

#include "base/bug.h"

#define TASKS_MAX        16
#define QUEUE_MAX        32
#define LOOK_EVERY_US    (60 * IDEM_US_PER_SECOND)
#define PAUSE_US         (20 * IDEM_US_PER_MS) /* The engine is busy. */
#define REFUSED_PAUSE_US IDEM_US_PER_SECOND    /* The store is. */
#define MARK_EVERY_US    (60 * IDEM_US_PER_SECOND)
#define AHEAD_ALARM_US   IDEM_US_PER_DAY
#define BEHIND_ALARM_US  (60 * IDEM_US_PER_SECOND)

/* One row on its way. */
struct reap {
    struct idem_task task;
    bool busy;
};

struct idem_reaper {
    struct idem_reaper_options options;
    bool stopped;

    int64_t moved_us;   /* Monotonic: when stats.horizon_us was looked at last. */
    int64_t durable_us; /* The horizon as the store has it. */
    struct idem_task mark;
    bool marking;
    int64_t mark_at_us; /* Monotonic: when it is next written. */

    struct idem_read read;
    bool reading;
    size_t taken;       /* Rows of the page that were submitted ... */
    size_t written;     /* ... and of these, that came back with something written. */
    bool refused;       /* The store did not take one of them. */
    int64_t horizon_us; /* That the page was read with. */
    int64_t look_at_us; /* Monotonic. */
    struct reap reaps[TASKS_MAX];
    size_t busy_count;

    struct idem_list done_marks;
    struct idem_list done_reads;
    struct idem_list done_reaps;
    struct idem_reaper_stats stats;
};

enum idem_err idem_reaper_create(const struct idem_reaper_options *options,
                                 struct idem_reaper **ret_reaper)
{
    IDEM_ASSERT(options->horizon_us > 0);
    struct idem_reaper *reaper = calloc(1, sizeof(*reaper));
    if (reaper == NULL) {
        return IDEM_E_SYSTEM;
    }
    reaper->options = *options;
    reaper->durable_us = options->horizon_us;
    reaper->stats.horizon_us = options->horizon_us;
    reaper->moved_us = idem_clock_mono_us(options->clock);
    reaper->mark_at_us = reaper->moved_us + MARK_EVERY_US;
    *ret_reaper = reaper;
    return IDEM_OK;
}

void idem_reaper_destroy(struct idem_reaper *reaper)
{
    if (reaper != NULL) {
        IDEM_ASSERT(!reaper->reading || reaper->done_reads.count > 0);
        IDEM_ASSERT(!reaper->marking || reaper->done_marks.count > 0);
        IDEM_ASSERT(reaper->busy_count == reaper->done_reaps.count);
        free(reaper);
    }
}

/* ---- the horizon ---- */

static void move_horizon(struct idem_reaper *reaper)
{
    int64_t mono_us = idem_clock_mono_us(reaper->options.clock);
    int64_t wall_us = idem_clock_wall_us(reaper->options.clock);
    int64_t gain_us = 2 * (mono_us - reaper->moved_us);
    int64_t behind_us = wall_us - reaper->stats.horizon_us;
    reaper->moved_us = mono_us;
    if (behind_us > 0) {
        reaper->stats.horizon_us += gain_us < behind_us ? gain_us : behind_us;
    }
    behind_us = wall_us - reaper->stats.horizon_us;
    reaper->stats.clock_apart = behind_us > AHEAD_ALARM_US || -behind_us > BEHIND_ALARM_US;
}

static void begin_mark(struct idem_reaper *reaper)
{
    int64_t mono_us = idem_clock_mono_us(reaper->options.clock);
    if (reaper->marking || mono_us < reaper->mark_at_us) {
        return;
    }
    reaper->mark_at_us = mono_us + MARK_EVERY_US;
    if (reaper->stats.horizon_us == reaper->durable_us) {
        return; /* The wall clock is behind. */
    }
    struct idem_task *mark = &reaper->mark;
    mark->item.command = (struct idem_command){
        .kind = IDEM_COMMAND_MARK,
        .mark = { .kind = IDEM_MARK_HORIZON, .value_us = reaper->stats.horizon_us },
    };
    mark->done = &reaper->done_marks;
    reaper->marking = true;
    idem_engine_run(reaper->options.engine, mark);
}

static void take_mark(struct idem_reaper *reaper)
{
    if (idem_list_pop(&reaper->done_marks) == NULL) {
        return;
    }
    reaper->marking = false;
    int64_t mono_us = idem_clock_mono_us(reaper->options.clock);
    if (reaper->mark.item.answer != IDEM_STORE_DURABLE) {
        reaper->mark_at_us = mono_us + REFUSED_PAUSE_US;
        return;
    }
    reaper->durable_us = reaper->mark.item.command.mark.value_us;
    reaper->look_at_us = reaper->look_at_us < mono_us ? reaper->look_at_us : mono_us;
}

/* What may be used now: durable, and not ahead of a wall clock that went back. */
static int64_t usable_horizon(const struct idem_reaper *reaper)
{
    int64_t wall_us = idem_clock_wall_us(reaper->options.clock);
    return reaper->durable_us < wall_us ? reaper->durable_us : wall_us;
}

/* ---- rows ---- */

static void begin_read(struct idem_reaper *reaper)
{
    struct idem_read *read = &reaper->read;
    reaper->horizon_us = usable_horizon(reaper);
    reaper->taken = 0;
    reaper->written = 0;
    reaper->refused = false;
    reaper->look_at_us = idem_clock_mono_us(reaper->options.clock) + LOOK_EVERY_US;
    read->kind = IDEM_READ_REAP;
    read->now_us = reaper->horizon_us;
    read->due_count = 0;
    read->done = &reaper->done_reads;
    reaper->reading = true;
    idem_engine_read(reaper->options.engine, read);
}

static void take_read(struct idem_reaper *reaper)
{
    if (idem_list_pop(&reaper->done_reads) == NULL) {
        return;
    }
    reaper->reading = false;
    if (reaper->read.answer != IDEM_STORE_DURABLE) {
        reaper->read.due_count = 0; /* It says nothing; the next look does. */
        reaper->look_at_us = idem_clock_mono_us(reaper->options.clock) + REFUSED_PAUSE_US;
    }
}

static void begin_reap(struct idem_reaper *reaper, const struct idem_due *due)
{
    struct reap *reap = &reaper->reaps[0];
    while (reap->busy) {
        reap += 1;
    }
    IDEM_ASSERT(reap < reaper->reaps + TASKS_MAX);
    reap->task.item.command = (struct idem_command){
        .kind = IDEM_COMMAND_REAP,
        .scope = due->scope,
        .intent_row = due->row,
        .reap = { .horizon_us = reaper->horizon_us },
    };
    reap->task.done = &reaper->done_reaps;
    reap->busy = true;
    reaper->busy_count += 1;
    idem_engine_run(reaper->options.engine, &reap->task);
}

static void count_reap(struct idem_reaper *reaper, const struct idem_task *task)
{
    const struct idem_intent *intent = &task->outcome.intent;
    bool is_gone = intent->state == IDEM_INTENT_NONE;
    bool is_written = is_gone || idem_uid_equal(intent->last_command, task->item.command.token);
    bool is_tombstone = !is_gone && is_written && idem_intent_is_tombstone(intent);
    reaper->written += is_written ? 1 : 0;
    reaper->stats.removed += is_gone ? 1 : 0;
    reaper->stats.expired += is_tombstone ? 1 : 0;
}

static void take_reaps(struct idem_reaper *reaper)
{
    struct idem_list_node *node = NULL;
    while ((node = idem_list_pop(&reaper->done_reaps)) != NULL) {
        struct reap *reap = IDEM_CONTAINER_OF(node, struct reap, task.item.node);
        reap->busy = false;
        reaper->busy_count -= 1;
        if (reap->task.item.answer == IDEM_STORE_DURABLE) {
            count_reap(reaper, &reap->task);
            continue;
        }
        reaper->read.due_count = 0; /* Whatever is left is still there at the next look. */
        reaper->taken = 0;
        reaper->refused = true;
        reaper->look_at_us = idem_clock_mono_us(reaper->options.clock) + REFUSED_PAUSE_US;
    }
}

static bool page_is_open(const struct idem_reaper *reaper)
{
    return !reaper->reading && reaper->taken < reaper->read.due_count;
}

static bool engine_is_busy(const struct idem_reaper *reaper)
{
    return idem_engine_stats(reaper->options.engine)->queued >= QUEUE_MAX;
}

static void submit_page(struct idem_reaper *reaper)
{
    while (page_is_open(reaper) && reaper->busy_count < TASKS_MAX && !engine_is_busy(reaper)) {
        begin_reap(reaper, &reaper->read.due[reaper->taken]);
        reaper->taken += 1;
    }
}

static bool page_is_ended(const struct idem_reaper *reaper)
{
    return !reaper->reading && !page_is_open(reaper) && reaper->busy_count == 0;
}

/* A page that led to something is followed by the next at once, unless the store had enough. */
static void next_page(struct idem_reaper *reaper)
{
    if (!page_is_ended(reaper)) {
        return;
    }
    int64_t mono_us = idem_clock_mono_us(reaper->options.clock);
    bool goes_on = reaper->written > 0 && !reaper->refused;
    if (goes_on || mono_us >= reaper->look_at_us) {
        begin_read(reaper);
    }
}

void idem_reaper_step(struct idem_reaper *reaper)
{
    take_mark(reaper);
    take_read(reaper);
    take_reaps(reaper);
    move_horizon(reaper);
    if (reaper->stopped) {
        return;
    }
    begin_mark(reaper);
    submit_page(reaper);
    next_page(reaper);
}

int64_t idem_reaper_wake_us(const struct idem_reaper *reaper)
{
    size_t done = reaper->done_marks.count + reaper->done_reads.count + reaper->done_reaps.count;
    int64_t mono_us = idem_clock_mono_us(reaper->options.clock);
    if (done > 0) {
        return mono_us;
    }
    if (reaper->stopped) {
        return INT64_MAX;
    }
    int64_t wake_us = reaper->marking ? INT64_MAX : reaper->mark_at_us;
    if (page_is_open(reaper) && reaper->busy_count < TASKS_MAX) {
        wake_us = mono_us + PAUSE_US < wake_us ? mono_us + PAUSE_US : wake_us;
    }
    if (page_is_ended(reaper)) {
        wake_us = reaper->look_at_us < wake_us ? reaper->look_at_us : wake_us;
    }
    return wake_us;
}

struct idem_reaper_stats idem_reaper_stats(const struct idem_reaper *reaper)
{
    return reaper->stats;
}

void idem_reaper_stop(struct idem_reaper *reaper)
{
    reaper->stopped = true;
}
