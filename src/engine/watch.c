/*
 * Intents that somebody waits for here and that another process on the same store may end.
 *
 *   a request joins, no flight here acts --> WAITED: which of all of them are over? (one question)
 *   heard of one, or time has passed     -->   '
 *                       those that are over --> INTENT: where does it stand? --> its waiters
 *
 * A waiter is told what a read of the store says, as a repeated request would be, and nothing that
 * came any other way: a hint from another process is a reason to look. Without hints the store is
 * asked after a pause that doubles up to a second, for all of them at once.
 *
 * On a store of our own nobody else ends anything, and nothing here runs.
 */
#include "engine/engine_internal.h"

#include <stdlib.h>

#include "base/attr.h"
#include "base/bug.h"

#define GAP_US         (10 * IDEM_US_PER_MS) /* Between two questions, whatever is heard. */
#define PAUSE_FIRST_US (20 * IDEM_US_PER_MS)
#define PAUSE_MAX_US   IDEM_US_PER_SECOND
#define ANSWERS_MAX    4 /* Reads of single intents at once. */

struct idem_watch {
    struct idem_list done; /* Of struct idem_read: what was asked here. */
    struct idem_read look;
    bool looking;
    struct idem_due waited[IDEM_READ_WAITED_MAX]; /* The look's; then those that are over. */
    size_t over_count;
    size_t over_next;
    struct idem_read answers[ANSWERS_MAX];
    bool answering[ANSWERS_MAX];
    size_t answering_count;
    struct idem_outcome found; /* What a read said, and a copy with text of its own. */
    struct idem_outcome outcome;
    int64_t looked_us;  /* Monotonic: when the last look began. */
    int64_t look_at_us; /* Monotonic: the next one; INT64_MAX: nobody waits. */
    int64_t pause_us;
};

enum idem_err idem_watch_create(bool shared, struct idem_watch **ret_watch)
{
    *ret_watch = NULL;
    if (!shared) {
        return IDEM_OK;
    }
    struct idem_watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL) {
        return IDEM_E_SYSTEM;
    }
    watch->look_at_us = INT64_MAX;
    *ret_watch = watch;
    return IDEM_OK;
}

void idem_watch_destroy(struct idem_watch *watch)
{
    if (watch != NULL) {
        IDEM_ASSERT(!watch->looking);
        IDEM_ASSERT(watch->answering_count == 0);
        free(watch);
    }
}

static void look_at(struct idem_watch *watch, int64_t at_us)
{
    int64_t earliest_us = watch->looked_us + GAP_US;
    at_us = at_us > earliest_us ? at_us : earliest_us;
    watch->look_at_us = at_us < watch->look_at_us ? at_us : watch->look_at_us;
}

void idem_watch_joined(struct idem_engine *engine)
{
    struct idem_watch *watch = engine->watch;
    if (watch != NULL) {
        watch->pause_us = PAUSE_FIRST_US;
        look_at(watch, idem_clock_mono_us(engine->options.clock));
    }
}

static int by_row(const void *left, const void *right)
{
    const struct idem_due *one = left;
    const struct idem_due *two = right;
    return (one->row > two->row) - (one->row < two->row);
}

/* Each intent once: by the request that has waited for it longest. */
static size_t waited_collect(struct idem_engine *engine)
{
    struct idem_watch *watch = engine->watch;
    size_t count = 0;
    IDEM_LIST_FOREACH (node, &engine->waiting) {
        const struct idem_request *request = IDEM_CONTAINER_OF(node, struct idem_request, node);
        const struct idem_intent *intent = &request->outcome.intent;
        const struct idem_live *live = idem_live_find(engine->live, &intent->scope);
        IDEM_ASSERT(live != NULL);
        if (count < IDEM_READ_WAITED_MAX && live->flight == NULL &&
            live->waiters.first == &request->wait_node) {
            watch->waited[count].scope = intent->scope;
            watch->waited[count].row = intent->row;
            count += 1;
        }
    }
    qsort(watch->waited, count, sizeof(watch->waited[0]), by_row);
    return count;
}

static void look(struct idem_engine *engine)
{
    struct idem_watch *watch = engine->watch;
    size_t count = waited_collect(engine);
    watch->look_at_us = INT64_MAX;
    if (count == 0) {
        return;
    }
    watch->look.kind = IDEM_READ_WAITED;
    watch->look.waited = watch->waited;
    watch->look.waited_count = count;
    watch->look.done = &watch->done;
    watch->looking = true;
    watch->looked_us = idem_clock_mono_us(engine->options.clock);
    watch->over_count = 0;
    watch->over_next = 0;
    idem_engine_read(engine, &watch->look);
}

static void looked(struct idem_engine *engine)
{
    struct idem_watch *watch = engine->watch;
    watch->looking = false;
    if (watch->look.answer == IDEM_STORE_DURABLE) {
        watch->over_count = watch->look.waited_count;
    }
    look_at(watch, idem_clock_mono_us(engine->options.clock) + watch->pause_us);
    watch->pause_us = watch->pause_us < PAUSE_MAX_US / 2 ? watch->pause_us * 2 : PAUSE_MAX_US;
}

static void answered(struct idem_engine *engine, const struct idem_read *read)
{
    struct idem_watch *watch = engine->watch;
    const struct idem_intent *intent = &read->intent;
    if (read->answer != IDEM_STORE_DURABLE || !read->found || !idem_intent_is_over(intent->state)) {
        return; /* Somebody claimed it again, or it could not be read: the next look tells. */
    }
    watch->found.intent = *intent;
    watch->found.release = (struct idem_release){
        .kind = IDEM_RELEASE_REPLY,
        .problem = idem_intent_end_problem(intent),
        .replayed = true,
    };
    idem_outcome_copy(&watch->outcome, &watch->found);
    idem_request_notify(engine, &watch->outcome);
}

static void take_read(struct idem_engine *engine, struct idem_read *read)
{
    struct idem_watch *watch = engine->watch;
    if (read == &watch->look) {
        looked(engine);
        return;
    }
    watch->answering[read - watch->answers] = false;
    watch->answering_count -= 1;
    answered(engine, read);
}

/* Somebody may have been answered in another way meanwhile. */
static bool is_waited_for(struct idem_engine *engine, const struct idem_scope *scope)
{
    const struct idem_live *live = idem_live_find(engine->live, scope);
    return live != NULL && live->waiters.count > 0;
}

static void ask_answers(struct idem_engine *engine)
{
    struct idem_watch *watch = engine->watch;
    for (size_t i = 0; i < ANSWERS_MAX; i++) {
        while (watch->over_next < watch->over_count &&
               !is_waited_for(engine, &watch->waited[watch->over_next].scope)) {
            watch->over_next += 1;
        }
        if (watch->over_next == watch->over_count) {
            return;
        }
        if (watch->answering[i]) {
            continue;
        }
        struct idem_read *read = &watch->answers[i];
        read->kind = IDEM_READ_INTENT;
        read->scope = watch->waited[watch->over_next].scope;
        read->done = &watch->done;
        watch->over_next += 1;
        watch->answering[i] = true;
        watch->answering_count += 1;
        idem_engine_read(engine, read);
    }
}

void idem_watch_step(struct idem_engine *engine)
{
    struct idem_watch *watch = engine->watch;
    struct idem_list_node *node = NULL;
    if (watch == NULL) {
        return;
    }
    while ((node = idem_list_pop(&watch->done)) != NULL) {
        take_read(engine, IDEM_CONTAINER_OF(node, struct idem_read, node));
    }
    if (idem_store_heard(engine->options.store)) {
        look_at(watch, idem_clock_mono_us(engine->options.clock));
    }
    ask_answers(engine);
    bool is_time = idem_clock_mono_us(engine->options.clock) >= watch->look_at_us;
    if (is_time && !watch->looking && watch->over_next == watch->over_count) {
        look(engine);
    }
}

int64_t idem_watch_wake_us(const struct idem_engine *engine)
{
    const struct idem_watch *watch = engine->watch;
    bool busy = watch == NULL || watch->looking || watch->over_next < watch->over_count;
    return busy ? INT64_MAX : watch->look_at_us; /* A read that comes back is a step. */
}
