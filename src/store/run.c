/*
 * One batch, one transaction, one commit; and what happens when that does not work.
 *
 *   OK          every guard held and COMMIT was answered cleanly: DURABLE.
 *   MISS        a guard did not hold. The whole batch is rolled back, since its decisions rest on
 *               one another's facts only by luck. If others wrote meanwhile, all of it runs once
 *               more on what stands there now. Then each command runs in a transaction of its
 *               own and is decided anew from fresh facts, so one that keeps missing (CONFLICT)
 *               cannot keep the others from being written. Each that is REFUSED alone may have
 *               waited for somebody's lock: after a few of them the rest is not tried (NOTHING),
 *               so that a batch has an end that its callers can wait for.
 *   REFUSED     the store cannot write now and the rollback worked: NOTHING.
 *   DAMAGED     what lies there is not what was written. Rolled back and DOWN; nothing runs after
 *               it, since NOTHING would let everybody try for ever with nobody looking.
 *   LOST        COMMIT or ROLLBACK was not answered cleanly: UNKNOWN, and nothing runs after it.
 *               Whatever ran next would rest on rows of which nobody knows whether they exist.
 *
 * Time is stamped before the transaction begins (where another machine tells it: once it began, by
 * what it said before any wait), monotonic first: what is derived from a wall time
 * then never reaches further than what is derived from its monotonic time. A command that runs
 * again keeps its stamps, or it would decide differently from its first run (P14).
 */
#include "store/run.h"

#include "base/attr.h"
#include "base/bug.h"
#include "base/crash.h"
#include "store/run_internal.h"

#define REFUSED_ALONE_MAX 8 /* Of a batch, one by one. */

static struct idem_store_item *item_of(struct idem_list_node *node)
{
    return IDEM_CONTAINER_OF(node, struct idem_store_item, node);
}

static enum idem_store_answer answer_of(enum idem_rows_step step)
{
    switch (step) {
    case IDEM_ROWS_OK:
        return IDEM_STORE_DURABLE;
    case IDEM_ROWS_MISS:
        return IDEM_STORE_CONFLICT;
    case IDEM_ROWS_REFUSED:
        return IDEM_STORE_NOTHING;
    case IDEM_ROWS_WRONG_NODE:
        return IDEM_STORE_WRONG_NODE;
    case IDEM_ROWS_DOWN:
    case IDEM_ROWS_DAMAGED:
        return IDEM_STORE_DOWN;
    case IDEM_ROWS_LOST:
        return IDEM_STORE_UNKNOWN;
    }
    IDEM_UNREACHABLE();
}

/* The most alarming answer stands for the batch. */
static enum idem_store_answer worse(enum idem_store_answer left, enum idem_store_answer right)
{
    static const unsigned char rank[IDEM_STORE_ANSWER_COUNT] = {
        [IDEM_STORE_DURABLE] = 1,    [IDEM_STORE_CONFLICT] = 2, [IDEM_STORE_NOTHING] = 3,
        [IDEM_STORE_WRONG_NODE] = 4, [IDEM_STORE_DOWN] = 5,     [IDEM_STORE_UNKNOWN] = 6,
    };
    return rank[left] >= rank[right] ? left : right;
}

/* Grants are in the store's time, maybe another machine's: so is what is compared with them. */
static void times_tell(struct idem_command *command)
{
    struct idem_resolve *resolve = &command->resolve;
    if (command->kind == IDEM_COMMAND_RESOLVE && resolve->asked_mono_us != 0) {
        resolve->asked_us = command->now_us - (command->mono_us - resolve->asked_mono_us);
    }
}

static void items_stamp(struct idem_run *run, struct idem_list_node *first, size_t count)
{
    int64_t mono_us = idem_clock_mono_us(run->options->clock);
    int64_t now_us = idem_clock_wall_us(run->options->clock);
    IDEM_ASSERT(now_us > 0);

    struct idem_list_node *node = first;
    for (size_t i = 0; i < count; i++) {
        struct idem_command *command = &item_of(node)->command;
        node = node->next;
        if (command->now_us == 0) {
            command->mono_us = mono_us;
            command->now_us = now_us;
            command->incarnation = run->opening.incarnation;
            command->opened_us = run->opening.opened_us;
            command->memory_since_us = run->opening.memory_since_us;
            command->restored = run->restored;
            times_tell(command);
        }
    }
}

/* One command inside the open transaction. */
static enum idem_rows_step command_run(struct idem_run *run, struct idem_store_item *item)
{
    enum idem_rows_step step = idem_run_facts_fetch(run, &item->command);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    idem_decide(run->options->rules, &run->facts, &item->command, &run->decision);

    step = idem_run_apply(run, item->command.now_us);
    if (step == IDEM_ROWS_OK) {
        idem_outcome_take(item->outcome, &run->decision);
    }
    return step;
}

/* What the transaction changed of the run's own knowledge stands with its commit, or never was. */
static void knowledge_settle(struct idem_run *run, bool committed)
{
    if (committed) {
        run->stub_count += run->stubs_added;
        run->webhook_count += run->webhooks_added;
        run->restored = run->restored && !run->restored_over;
        if (run->memory_gap) {
            run->opening.memory_since_us = run->opening.restored_at_us;
        }
        run->freed = run->freed || run->freeing;
    }
    run->stubs_added = 0;
    run->webhooks_added = 0;
    run->restored_over = false;
    run->memory_gap = false;
    run->freeing = false;
}

/* Stamps before the transaction begins, or once the backend knows the time. */
static enum idem_rows_step items_begin(struct idem_run *run,
                                       struct idem_list_node *first,
                                       size_t count)
{
    const struct idem_rows_ops *ops = run->rows->ops;
    if (ops->begin_batch == NULL) {
        items_stamp(run, first, count);
        return ops->begin(run->rows);
    }
    enum idem_rows_step step = ops->begin_batch(run->rows, first, count);
    if (step == IDEM_ROWS_OK) {
        items_stamp(run, first, count);
    }
    return step;
}

/* `count` items from `first` on, in one transaction. */
static enum idem_rows_step items_run(struct idem_run *run,
                                     struct idem_list_node *first,
                                     size_t count)
{
    const struct idem_rows_ops *ops = run->rows->ops;
    enum idem_rows_step step = items_begin(run, first, count);
    struct idem_list_node *node = first;

    for (size_t i = 0; i < count && step == IDEM_ROWS_OK; i++) {
        step = command_run(run, item_of(node));
        node = node->next;
    }
    if (step == IDEM_ROWS_OK && ops->flush != NULL) {
        step = ops->flush(run->rows);
    }
    if (step == IDEM_ROWS_OK) {
        idem_crash_point("commit-before");
        step = ops->commit(run->rows);
        idem_crash_point("commit-after");
        IDEM_ASSERT(step == IDEM_ROWS_OK || step == IDEM_ROWS_LOST);
    } else if (ops->rollback(run->rows) != IDEM_ROWS_OK) {
        step = IDEM_ROWS_LOST;
    }
    knowledge_settle(run, step == IDEM_ROWS_OK);
    if (step == IDEM_ROWS_LOST || step == IDEM_ROWS_DAMAGED) {
        run->broken = true;
    }
    return step;
}

static enum idem_store_answer item_run_alone(struct idem_run *run, struct idem_store_item *item)
{
    if (run->broken) {
        return IDEM_STORE_DOWN;
    }
    enum idem_rows_step step = IDEM_ROWS_MISS;
    for (int tries = 0; tries < IDEM_STORE_TRIES_MAX && step == IDEM_ROWS_MISS; tries++) {
        step = items_run(run, &item->node, 1);
    }
    return answer_of(step);
}

static void batch_answer(struct idem_store_batch *batch, enum idem_store_answer answer)
{
    batch->answer = answer;
    IDEM_LIST_FOREACH (node, &batch->items) {
        item_of(node)->answer = answer;
    }
}

static int64_t later(int64_t left_us, int64_t right_us)
{
    return left_us > right_us ? left_us : right_us;
}

/*
 * Retention begins with the records: at the opening of an empty store, and where there are some
 * without a horizon, as an older idem could leave them, at the newest, since the clock may be wrong
 * and that time has been. A clock that is far ahead of all that stands here may be a wrong one that
 * is put right in a moment: an opening does not keep what it says, the mark a minute later does.
 */
struct idem_run_marks idem_run_marks_open(struct idem_run_marks found,
                                          int64_t newest_us,
                                          int64_t opened_us)
{
    IDEM_ASSERT(opened_us > 0);
    struct idem_run_marks marks = found;
    if (marks.horizon_us == 0) {
        marks.horizon_us = newest_us != 0 ? newest_us : opened_us;
    }
    marks.seen_us = later(later(marks.seen_us, marks.horizon_us), newest_us);
    if (opened_us - marks.seen_us <= IDEM_US_PER_DAY) {
        marks.seen_us = later(marks.seen_us, opened_us);
    }
    return marks;
}

void idem_run_init(struct idem_run *run,
                   struct idem_rows *rows,
                   const struct idem_store_options *options,
                   struct idem_run_opening opening)
{
    IDEM_ASSERT(opening.incarnation > 0);
    IDEM_ASSERT(opening.opened_us > 0);
    IDEM_ASSERT(opening.memory_since_us >= 0);
    IDEM_ASSERT(opening.stub_count >= 0);
    run->rows = rows;
    run->options = options;
    run->opening = opening;
    run->broken = false;
    run->freed = false;
    run->stub_count = opening.stub_count;
    run->webhook_count = opening.webhook_count;
    run->restored = opening.restored;
    knowledge_settle(run, false);
}

void idem_run_batch(struct idem_run *run, struct idem_store_batch *batch)
{
    IDEM_ASSERT(batch->items.count > 0);
    IDEM_ASSERT(batch->items.count <= IDEM_STORE_BATCH_MAX);

    if (run->broken) {
        batch_answer(batch, IDEM_STORE_DOWN);
        return;
    }

    enum idem_rows_step step = items_run(run, batch->items.first, batch->items.count);
    if (step == IDEM_ROWS_MISS && run->rows->moved) {
        step = items_run(run, batch->items.first, batch->items.count);
    }
    if (step != IDEM_ROWS_MISS) {
        batch_answer(batch, answer_of(step));
        return;
    }
    size_t refused = 0;
    batch->answer = IDEM_STORE_DURABLE;
    IDEM_LIST_FOREACH (node, &batch->items) {
        struct idem_store_item *item = item_of(node);
        bool tried = refused < REFUSED_ALONE_MAX || run->broken;
        item->answer = tried ? item_run_alone(run, item) : IDEM_STORE_NOTHING;
        refused += item->answer == IDEM_STORE_NOTHING ? 1 : 0;
        batch->answer = worse(batch->answer, item->answer);
    }
}
