/*
 * A decision's rows, written. Rows that it makes have no handle until they are inserted. They are
 * written in the order payment, refund, intent, sends, events, case, and each learns the handles of
 * those before it. The store's own rows (stubs, credentials, mail, webhooks, marks) come last.
 */
#include "store/run_internal.h"

#include <stdio.h>

#include "base/bug.h"

static enum idem_rows_step business_apply(struct idem_run *run)
{
    const struct idem_rows_ops *ops = run->rows->ops;
    struct idem_decision *decision = &run->decision;
    enum idem_rows_step step = IDEM_ROWS_OK;

    if (decision->payment.write != IDEM_WRITE_NONE) {
        idem_payment_check(&decision->payment.row);
        step = ops->write_payment(run->rows, &decision->payment);
        if (step != IDEM_ROWS_OK) {
            return step;
        }
    }
    if (decision->refund.write != IDEM_WRITE_NONE) {
        if (decision->refund.row.payment_row == 0) {
            decision->refund.row.payment_row = decision->payment.row.row;
        }
        idem_refund_check(&decision->refund.row);
        step = ops->write_refund(run->rows, &decision->refund);
    }
    return step;
}

static enum idem_rows_step intent_apply(struct idem_run *run)
{
    struct idem_decision *decision = &run->decision;
    struct idem_intent *intent = &decision->intent.row;

    if (decision->payment.write == IDEM_WRITE_INSERT) {
        intent->payment_row = decision->payment.row.row;
    }
    if (decision->refund.write == IDEM_WRITE_INSERT) {
        intent->refund_row = decision->refund.row.row;
    }
    if (decision->intent.write == IDEM_WRITE_NONE) {
        return IDEM_ROWS_OK;
    }
    if (decision->intent.write == IDEM_WRITE_DELETE) {
        run->freeing = true;
    } else {
        idem_intent_check(intent);
    }
    return run->rows->ops->write_intent(run->rows, &decision->intent);
}

/* What goes, before what comes. */
static enum idem_rows_step history_clear(struct idem_run *run)
{
    const struct idem_rows_ops *ops = run->rows->ops;
    const struct idem_decision *decision = &run->decision;
    int64_t intent_row = decision->intent.row.row;
    enum idem_rows_step step = IDEM_ROWS_OK;

    if (decision->decided.decided_us != 0) {
        IDEM_ASSERT(intent_row != 0);
        step = ops->decide_cases(run->rows, intent_row, &decision->decided);
    }
    if (decision->forget_history && step == IDEM_ROWS_OK) {
        IDEM_ASSERT(intent_row != 0);
        run->freeing = true;
        step = ops->forget_history(run->rows, intent_row);
    }
    return step;
}

static enum idem_rows_step history_apply(struct idem_run *run)
{
    const struct idem_rows_ops *ops = run->rows->ops;
    const struct idem_decision *decision = &run->decision;
    int64_t intent_row = decision->intent.row.row;

    if (decision->intent.write == IDEM_WRITE_DELETE) {
        return IDEM_ROWS_OK; /* There is nothing left for it to hang on. */
    }
    enum idem_rows_step step = history_clear(run);
    for (size_t i = 0; i < decision->send_write_count && step == IDEM_ROWS_OK; i++) {
        IDEM_ASSERT(intent_row != 0);
        step = ops->write_send(run->rows, intent_row, &decision->sends[i]);
    }
    for (size_t i = 0; i < decision->event_count && step == IDEM_ROWS_OK; i++) {
        IDEM_ASSERT(intent_row != 0);
        step = ops->add_event(run->rows, intent_row, &decision->events[i]);
    }
    if (decision->opened.kind != IDEM_CASE_NONE && step == IDEM_ROWS_OK) {
        IDEM_ASSERT(intent_row != 0);
        step = ops->add_case(run->rows, intent_row, &decision->opened);
    }
    return step;
}

static enum idem_rows_step stub_apply(struct idem_run *run)
{
    const struct idem_rows_ops *ops = run->rows->ops;
    struct idem_decision *decision = &run->decision;
    struct idem_stub_write *write = &decision->stub;
    enum idem_rows_step step = IDEM_ROWS_OK;
    if (write->write != IDEM_WRITE_NONE) {
        step = ops->write_stub(run->rows, write);
    }
    if (write->write == IDEM_WRITE_INSERT) {
        run->stubs_added += 1;
    } else if (write->write == IDEM_WRITE_DELETE) {
        run->stubs_added -= 1;
    }
    if (step == IDEM_ROWS_OK && decision->payment_stubs_applied) {
        step = ops->apply_stubs(run->rows, decision->payment.row.effect_id);
    }
    return step;
}

/* A time of the store's own: never back. */
static enum idem_rows_step time_apply(struct idem_run *run, const char *name, int64_t value_us)
{
    char memory[32];
    struct idem_buf text;
    struct idem_str former = { .len = 0 };
    int64_t former_us = 0;
    enum idem_rows_step step = run->rows->ops->find_meta(run->rows, name, &former);
    if (step != IDEM_ROWS_OK || (idem_str_to_i64(former, &former_us) && former_us >= value_us)) {
        return step;
    }
    idem_buf_init(&text, memory, sizeof(memory));
    idem_buf_add_i64(&text, value_us);
    return run->rows->ops->write_meta(run->rows, name, idem_buf_str(&text));
}

static enum idem_rows_step horizon_apply(struct idem_run *run, int64_t value_us, int64_t now_us)
{
    enum idem_rows_step step = time_apply(run, IDEM_META_REAP_HORIZON, value_us);
    return step == IDEM_ROWS_OK ? time_apply(run, IDEM_META_CLOCK_SEEN, now_us) : step;
}

/*
 * Nobody has listed what the copy had missed: a request that was first sent before it was put back,
 * and that it does not know, may have run.
 */
static enum idem_rows_step memory_gap_apply(struct idem_run *run)
{
    char memory[32];
    struct idem_buf text;
    idem_buf_init(&text, memory, sizeof(memory));
    idem_buf_add_i64(&text, run->opening.restored_at_us);
    run->memory_gap = true;
    return run->rows->ops->write_meta(run->rows, IDEM_META_MEMORY_SINCE, idem_buf_str(&text));
}

/* The mode ends; by whom and why stays, under the time. */
static enum idem_rows_step restored_over_apply(struct idem_run *run, int64_t now_us)
{
    const struct idem_mark *mark = &run->decision.mark;
    char name[64];
    char memory[IDEM_REASON_MAX + 2 * IDEM_PRINCIPAL_MAX + IDEM_LABEL_MAX];
    struct idem_buf text;
    (void)snprintf(name, sizeof(name), IDEM_META_RESTORED_OVER "%lld", (long long)now_us);
    idem_buf_init(&text, memory, sizeof(memory));
    idem_buf_add(&text, mark->by);
    idem_buf_add(&text, IDEM_STR(": "));
    idem_buf_add(&text, mark->reason);

    run->restored_over = true;
    enum idem_rows_step step =
        run->rows->ops->write_meta(run->rows, IDEM_META_RESTORED, IDEM_STR("0"));
    if (step == IDEM_ROWS_OK && !mark->listed && run->opening.restored_at_us > 0) {
        step = memory_gap_apply(run);
    }
    return step == IDEM_ROWS_OK ? run->rows->ops->write_meta(run->rows, name, idem_buf_str(&text))
                                : step;
}

static enum idem_rows_step mark_apply(struct idem_run *run, int64_t now_us)
{
    switch (run->decision.mark.kind) {
    case IDEM_MARK_NONE:
        return IDEM_ROWS_OK;
    case IDEM_MARK_HORIZON:
        return horizon_apply(run, run->decision.mark.value_us, now_us);
    case IDEM_MARK_RESTORED_OVER:
        return restored_over_apply(run, now_us);
    case IDEM_MARK_SWEPT:
        run->freeing = true;
        return run->rows->ops->sweep(run->rows, run->decision.mark.value_us,
                                     &run->decision.sweep_more);
    case IDEM_MARK_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* What came from a provider, and what merchants are told. */
static enum idem_rows_step mail_apply(struct idem_run *run)
{
    const struct idem_rows_ops *ops = run->rows->ops;
    struct idem_decision *decision = &run->decision;
    enum idem_rows_step step = IDEM_ROWS_OK;
    if (decision->inbox.write != IDEM_WRITE_NONE) {
        step = ops->write_inbox(run->rows, &decision->inbox);
    }
    for (size_t i = 0; i < decision->message_count && step == IDEM_ROWS_OK; i++) {
        const struct idem_message *message = &decision->messages[i];
        bool is_test = message->type == IDEM_MESSAGE_TEST;
        step = ops->add_message(run->rows, is_test ? decision->webhook.row.row : 0, message);
    }
    if (decision->delivery.write != IDEM_WRITE_NONE && step == IDEM_ROWS_OK) {
        step = ops->write_delivery(run->rows, &decision->delivery);
    }
    return step;
}

static enum idem_rows_step webhook_apply(struct idem_run *run, int64_t now_us)
{
    const struct idem_rows_ops *ops = run->rows->ops;
    struct idem_webhook_write *write = &run->decision.webhook;
    if (write->write == IDEM_WRITE_NONE) {
        return IDEM_ROWS_OK;
    }
    enum idem_rows_step step = ops->write_webhook(run->rows, write);
    if (write->write == IDEM_WRITE_INSERT) {
        run->webhooks_added += 1;
    }
    if (step == IDEM_ROWS_OK && write->row.disabled_us != 0) {
        step = ops->drop_deliveries(run->rows, write->row.row, now_us);
    }
    return step;
}

/* Rows that are nobody's: stubs, credentials, mail, marks. */
static enum idem_rows_step own_apply(struct idem_run *run, int64_t now_us)
{
    enum idem_rows_step step = stub_apply(run);
    if (step == IDEM_ROWS_OK && run->decision.credential.write != IDEM_WRITE_NONE) {
        step = run->rows->ops->write_credential(run->rows, &run->decision.credential);
    }
    if (step == IDEM_ROWS_OK) {
        step = mail_apply(run);
    }
    if (step == IDEM_ROWS_OK) {
        step = webhook_apply(run, now_us);
    }
    return step == IDEM_ROWS_OK ? mark_apply(run, now_us) : step;
}

enum idem_rows_step idem_run_apply(struct idem_run *run, int64_t now_us)
{
    enum idem_rows_step step = business_apply(run);
    if (step == IDEM_ROWS_OK) {
        step = intent_apply(run);
    }
    if (step == IDEM_ROWS_OK) {
        step = history_apply(run);
    }
    return step == IDEM_ROWS_OK ? own_apply(run, now_us) : step;
}
