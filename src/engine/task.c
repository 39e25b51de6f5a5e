/*
 * Tasks: commands that no keyed request and no flight stands behind.
 *
 * A task comes back once, and what it says is certain: after a run that was not answered it runs
 * again until one is (also if that one is refused: the first may have been written), unless the
 * store is broken. What it did to an intent reaches whoever waits for that intent, the cache and
 * the worker that looks after due times, as from any other command.
 */
#include "engine/engine_internal.h"

#include "base/bug.h"

static void give_back(struct idem_engine *engine, struct idem_task *task)
{
    IDEM_ASSERT(task->item.answer != IDEM_STORE_NONE);
    IDEM_ASSERT(engine->tasks > 0);
    engine->tasks -= 1;
    idem_list_push(task->done, &task->item.node);
}

/* While it drains, what became of a post that is under way is recorded, as for calls. */
static bool may_run(const struct idem_engine *engine, const struct idem_command *command)
{
    const struct idem_store *store = engine->options.store;
    bool is_end = command->kind == IDEM_COMMAND_DELIVERY &&
                  command->delivery.word != IDEM_DELIVERY_WORD_TAKE &&
                  command->delivery.word != IDEM_DELIVERY_WORD_REPLAY;
    return idem_engine_can_record(engine) ||
           (is_end && !engine->hurried && !store->broken && !store->stopped);
}

void idem_engine_run(struct idem_engine *engine, struct idem_task *task)
{
    struct idem_command *command = &task->item.command;
    IDEM_ASSERT(task->done != NULL);
    IDEM_ASSERT(command->kind != IDEM_COMMAND_ACCEPT && command->kind != IDEM_COMMAND_ABANDON);
    IDEM_ASSERT(command->kind != IDEM_COMMAND_DUE);
    engine->tasks += 1;
    task->unknown = false;
    task->item.owner = IDEM_OWNER_TASK;
    task->item.outcome = &task->outcome;
    if (!may_run(engine, command)) {
        task->item.answer = IDEM_STORE_DOWN;
        give_back(engine, task);
        return;
    }
    idem_engine_seed(engine, command);
    command->now_us = 0; /* The store stamps it. */
    idem_engine_queue(engine, &task->item);
}

/* What the commit did to an intent, told to everybody whom it concerns. */
static void tell(struct idem_engine *engine, const struct idem_task *task)
{
    const struct idem_outcome *outcome = &task->outcome;
    const struct idem_intent *intent = &outcome->intent;
    idem_engine_note_due(engine, intent);
    if (task->item.command.kind == IDEM_COMMAND_REAP) {
        bool is_kept = idem_intent_is_final(intent->state) && intent->answer.status != 0;
        if (!is_kept) {
            idem_cache_drop(engine->cache, &task->item.command.scope);
        }
        return;
    }
    /* A refused verdict is a problem of whoever gave it; the intent, and who waits, go on. */
    bool has_end = outcome->release.kind == IDEM_RELEASE_REPLY &&
                   outcome->release.problem == IDEM_PROBLEM_NONE &&
                   idem_intent_is_final(intent->state) && intent->answer.status != 0;
    if (has_end) {
        idem_request_notify(engine, outcome);
    }
}

void idem_task_came_back(struct idem_engine *engine, struct idem_task *task)
{
    enum idem_store_answer answer = task->item.answer;
    if (answer == IDEM_STORE_DURABLE) {
        tell(engine, task);
        give_back(engine, task);
        return;
    }
    task->unknown = task->unknown || answer == IDEM_STORE_UNKNOWN;
    if (!task->unknown || engine->options.store->broken) {
        task->item.answer = task->unknown ? IDEM_STORE_UNKNOWN : answer;
        give_back(engine, task);
        return;
    }
    idem_engine_again(engine, &task->item);
}

void idem_task_end_queued(struct idem_engine *engine, struct idem_task *task)
{
    if (task->unknown && !engine->options.store->broken) {
        return;
    }
    idem_list_remove(&engine->queue, &task->item.node);
    task->item.answer = task->unknown ? IDEM_STORE_UNKNOWN : IDEM_STORE_DOWN;
    give_back(engine, task);
}
