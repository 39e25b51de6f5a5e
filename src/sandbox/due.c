/*
 * What happens later: a list of due things and one timer, set to the first of them.
 *
 * A due thing belongs to the sandbox and not to its caller. It points at the exchange of a caller
 * that waits, and the exchange points back; whichever goes first lets go of the other. So a caller
 * that leaves takes nothing with it that was accepted.
 */
#include "sandbox/sandbox_internal.h"

#include <stdlib.h>

#include "base/bug.h"

static struct idem_sandbox_due *due_at(struct idem_list_node *node)
{
    return IDEM_CONTAINER_OF(node, struct idem_sandbox_due, node);
}

static struct idem_sandbox_due *first_due(const struct idem_list *dues)
{
    struct idem_sandbox_due *first = NULL;

    IDEM_LIST_FOREACH (node, dues) {
        struct idem_sandbox_due *due = due_at(node);
        if (first == NULL || due->due_us < first->due_us) {
            first = due;
        }
    }
    return first;
}

static void timer_set(struct idem_sandbox *sandbox)
{
    const struct idem_sandbox_due *first = first_due(&sandbox->dues);

    if (first == NULL) {
        (void)uv_timer_stop(&sandbox->timer); /* Cannot fail. */
        return;
    }
    int64_t wait_us = first->due_us - idem_clock_wall_us(sandbox->options.clock);
    /* Rounded up: a ring before the time would only set the timer again. */
    uint64_t wait_ms = wait_us <= 0 ? 0 : (uint64_t)(wait_us / IDEM_US_PER_MS) + 1;
    int rc = uv_timer_start(&sandbox->timer, idem_sandbox_due_ring, wait_ms, 0);
    IDEM_ASSERT(rc == 0); /* Fails only on a closing handle or without a callback. */
}

struct idem_sandbox_due *idem_sandbox_due_create(struct idem_sandbox *sandbox,
                                                 enum idem_sandbox_due_kind kind,
                                                 int64_t due_us,
                                                 const struct idem_sandbox_call *call)
{
    struct idem_sandbox_due *due = calloc(1, sizeof(*due));

    if (due == NULL) {
        return NULL;
    }
    due->kind = kind;
    due->due_us = due_us;
    due->call = *call;
    if (call->exchange != NULL) {
        idem_exchange_set_owner(call->exchange, due);
    }
    idem_list_push(&sandbox->dues, &due->node);
    timer_set(sandbox);
    return due;
}

void idem_sandbox_due_destroy(struct idem_sandbox *sandbox, struct idem_sandbox_due *due)
{
    if (due->call.exchange != NULL) {
        idem_exchange_set_owner(due->call.exchange, NULL);
    }
    idem_list_remove(&sandbox->dues, &due->node);
    free(due);
}

void idem_sandbox_due_abandon(struct idem_exchange *exchange)
{
    struct idem_sandbox_due *due = idem_exchange_owner(exchange);

    if (due != NULL) {
        idem_exchange_set_owner(exchange, NULL);
        due->call.exchange = NULL;
    }
    idem_exchange_break(exchange, IDEM_STR(""), false);
}

void idem_sandbox_due_clear(struct idem_sandbox *sandbox)
{
    while (sandbox->dues.first != NULL) {
        struct idem_sandbox_due *due = due_at(sandbox->dues.first);
        struct idem_exchange *exchange = due->call.exchange;
        idem_sandbox_due_destroy(sandbox, due);
        if (exchange != NULL) {
            idem_exchange_break(exchange, IDEM_STR(""), false);
        }
    }
}

static void due_happen(struct idem_sandbox *sandbox, struct idem_sandbox_due *due)
{
    enum idem_sandbox_due_kind kind = due->kind;
    struct idem_sandbox_call call = due->call;
    struct idem_sandbox_post *post = due->post;

    idem_sandbox_due_destroy(sandbox, due);
    switch (kind) {
    case IDEM_DUE_EXECUTE:
        idem_sandbox_send_execute(sandbox, &call);
        return;
    case IDEM_DUE_ANSWER:
        idem_sandbox_answer_known(&call);
        return;
    case IDEM_DUE_LIST:
        idem_sandbox_list_answer(sandbox, &call);
        return;
    case IDEM_DUE_SETTLE:
        idem_sandbox_send_settle(sandbox, call.effect);
        return;
    case IDEM_DUE_POST:
        idem_sandbox_callback_post(sandbox, post);
        return;
    case IDEM_DUE_TURN:
        idem_sandbox_callback_turn(sandbox, call.effect);
        return;
    }
    IDEM_UNREACHABLE();
}

void idem_sandbox_due_ring(uv_timer_t *timer)
{
    struct idem_sandbox *sandbox = timer->data;
    int64_t now_us = idem_clock_wall_us(sandbox->options.clock);
    struct idem_sandbox_due *due = first_due(&sandbox->dues);

    /* What is scheduled by what happens here is later than `now_us`, or waits for the next ring. */
    while (due != NULL && due->due_us <= now_us) {
        due_happen(sandbox, due);
        due = first_due(&sandbox->dues);
    }
    timer_set(sandbox);
}
