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
 *
 * Rows that a decision makes have no handle until they are inserted. They are written in the order
 * payment, refund, intent, sends, events, case, and each learns the handles of those before it. The
 * store's own rows (stubs, credentials, marks) come last.
 */
#include "store/run.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/bug.h"
#include "base/crash.h"

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

static enum idem_rows_step intent_fetch(struct idem_run *run, const struct idem_command *command)
{
    struct idem_rows_key key = { .row = command->intent_row, .scope = command->scope };
    enum idem_find find = command->intent_row != 0 ? IDEM_FIND_BY_ROW : IDEM_FIND_BY_SCOPE;
    enum idem_rows_step step =
        run->rows->ops->find_intent(run->rows, find, &key, &run->facts.intent);
    if (step != IDEM_ROWS_OK || run->facts.intent.row == 0) {
        return step;
    }
    idem_intent_check(&run->facts.intent);
    return run->rows->ops->find_sends(run->rows, run->facts.intent.row, run->facts.sends,
                                      &run->facts.send_count);
}

/* The payment that an effect at the provider acted on, by that payment's own claim. */
static enum idem_rows_step claimed_payment_fetch(struct idem_run *run, struct idem_scope scope)
{
    static const struct idem_scope none;
    struct idem_rows_key key = { .scope = scope };
    struct idem_intent maker = { .row = 0 };
    if (memcmp(&none, &key.scope, sizeof(none)) == 0) {
        return IDEM_ROWS_OK;
    }
    enum idem_rows_step step =
        run->rows->ops->find_intent(run->rows, IDEM_FIND_BY_SCOPE, &key, &maker);
    if (step != IDEM_ROWS_OK || maker.payment_row == 0) {
        return step;
    }
    key.row = maker.payment_row;
    return run->rows->ops->find_payment(run->rows, IDEM_FIND_BY_ROW, &key, &run->facts.payment);
}

static bool command_is_listing(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_EVIDENCE &&
           command->evidence.source == IDEM_SOURCE_LISTING;
}

/* What the stub of a parked intent acted on counts, and not what its request named. */
static bool payment_is_the_stubs(const struct idem_facts *facts, const struct idem_command *command)
{
    const struct idem_stub *stub = &facts->stub;
    return facts->intent.row != 0 && stub->row != 0 &&
           !idem_effect_kind_makes_payment(stub->kind) &&
           (command->kind == IDEM_COMMAND_RESOLVE || command_is_listing(command));
}

/*
 * Its name went with the rows that the copy has missed: a payment that was found again has another
 * one, which the retry of what was done to it cannot know.
 */
static bool request_names_a_lost_payment(const struct idem_facts *facts,
                                         const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_ACCEPT && facts->intent.row == 0 &&
           facts->payment.row == 0 && facts->stub.row != 0 &&
           !idem_effect_kind_makes_payment(facts->stub.kind);
}

static enum idem_rows_step stub_payment_fetch(struct idem_run *run)
{
    struct idem_scope scope = { .bytes = { 0 } };
    (void)idem_effect_id_scope(run->facts.stub.payment_effect_id, &scope); /* Or none. */
    return claimed_payment_fetch(run, scope);
}

static enum idem_rows_step payment_fetch(struct idem_run *run, const struct idem_command *command)
{
    const struct idem_intent *intent = &run->facts.intent;
    struct idem_rows_key key = { .row = intent->payment_row };
    enum idem_find find = IDEM_FIND_BY_ROW;

    if (intent->row == 0 && command->kind == IDEM_COMMAND_ACCEPT) {
        key.id = command->accept.payment_id;
        key.principal = command->accept.principal;
        find = IDEM_FIND_BY_ID;
    }
    enum idem_rows_step step = IDEM_ROWS_OK;
    if (intent->row == 0 && command_is_listing(command)) {
        step = claimed_payment_fetch(run, command->evidence.payment_scope);
    } else if (payment_is_the_stubs(&run->facts, command)) {
        step = stub_payment_fetch(run);
    } else if (key.row != 0 || !idem_uid_is_zero(key.id)) {
        step = run->rows->ops->find_payment(run->rows, find, &key, &run->facts.payment);
    }
    if (step == IDEM_ROWS_OK && request_names_a_lost_payment(&run->facts, command)) {
        step = stub_payment_fetch(run);
    }
    if (step == IDEM_ROWS_OK && run->facts.payment.row != 0) {
        idem_payment_check(&run->facts.payment);
    }
    return step;
}

static enum idem_rows_step refund_fetch(struct idem_run *run)
{
    struct idem_rows_key key = { .row = run->facts.intent.refund_row };
    if (key.row == 0) {
        return IDEM_ROWS_OK;
    }
    enum idem_rows_step step =
        run->rows->ops->find_refund(run->rows, IDEM_FIND_BY_ROW, &key, &run->facts.refund);
    if (step == IDEM_ROWS_OK && run->facts.refund.row != 0) {
        idem_refund_check(&run->facts.refund);
    }
    return step;
}

/* It holds no reservation: if it goes on, it takes its numbers and sums again. */
static bool intent_starts_again(const struct idem_intent *intent)
{
    return intent->state == IDEM_INTENT_RELEASED ||
           (intent->state == IDEM_INTENT_PARKED && intent->problem == IDEM_PROBLEM_NOT_EXECUTED);
}

/* The endpoint whose numbers could be taken by this command: of an intent that may (again) run. */
static enum idem_endpoint endpoint_starting(const struct idem_facts *facts,
                                            const struct idem_command *command)
{
    if (facts->intent.row != 0) {
        return intent_starts_again(&facts->intent) ? facts->intent.endpoint : IDEM_ENDPOINT_NONE;
    }
    return command->kind == IDEM_COMMAND_ACCEPT ? command->accept.endpoint : IDEM_ENDPOINT_NONE;
}

static struct idem_str order_no_of(const struct idem_facts *facts,
                                   const struct idem_command *command)
{
    return facts->payment.row != 0 ? facts->payment.order_no : command->accept.order_no;
}

static enum idem_rows_step holder_fetch(struct idem_run *run, const struct idem_command *command)
{
    struct idem_facts *facts = &run->facts;
    enum idem_endpoint endpoint = endpoint_starting(facts, command);

    if (endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        bool known = facts->intent.row != 0;
        struct idem_rows_key key = {
            .principal = known ? facts->intent.principal : command->accept.principal,
            .number = order_no_of(facts, command),
        };
        return key.number.len == 0 ? IDEM_ROWS_OK
                                   : run->rows->ops->find_payment(run->rows, IDEM_FIND_HOLDER, &key,
                                                                  &facts->order_holder);
    }
    if (endpoint == IDEM_ENDPOINT_REFUNDS_CREATE && facts->payment.row != 0) {
        struct idem_rows_key key = {
            .row = facts->payment.row,
            .number = facts->refund.row != 0 ? facts->refund.refund_no : command->accept.refund_no,
        };
        return key.number.len == 0 ? IDEM_ROWS_OK
                                   : run->rows->ops->find_refund(run->rows, IDEM_FIND_HOLDER, &key,
                                                                 &facts->refund_holder);
    }
    return IDEM_ROWS_OK;
}

/* It would take an order number, or send what took one. */
static bool order_no_is_at_stake(const struct idem_facts *facts, const struct idem_command *command)
{
    bool may_send = command->kind == IDEM_COMMAND_DUE &&
                    !idem_intent_is_final(facts->intent.state) &&
                    facts->intent.endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE;
    return may_send || endpoint_starting(facts, command) == IDEM_ENDPOINT_PAYMENTS_CREATE;
}

/* The stub of a payment that holds the order number, of another scope. */
static enum idem_rows_step order_stub_fetch(struct idem_run *run,
                                            const struct idem_command *command)
{
    struct idem_facts *facts = &run->facts;
    struct idem_rows_key key = {
        .scope = command->scope,
        .number = order_no_of(facts, command),
    };
    if (!order_no_is_at_stake(facts, command) || key.number.len == 0) {
        return IDEM_ROWS_OK;
    }
    return run->rows->ops->find_stub(run->rows, IDEM_FIND_HOLDER, &key, &facts->order_stub);
}

/* What the provider knows and this store does not is asked for only if there is any. */
static bool has_stubs(const struct idem_run *run)
{
    IDEM_ASSERT(run->stub_count + run->stubs_added >= 0);
    return run->stub_count + run->stubs_added > 0;
}

static enum idem_rows_step stub_fetch(struct idem_run *run, const struct idem_command *command)
{
    struct idem_rows_key key = { .scope = command->scope };
    if (!has_stubs(run) || idem_intent_is_final(run->facts.intent.state)) {
        return IDEM_ROWS_OK;
    }
    return run->rows->ops->find_stub(run->rows, IDEM_FIND_BY_SCOPE, &key, &run->facts.stub);
}

/* The effect id of the payment that this command may make, or act on; empty: there is none. */
static struct idem_str payment_effect_id(const struct idem_facts *facts,
                                         const struct idem_command *command)
{
    enum idem_endpoint endpoint = endpoint_starting(facts, command);
    const struct idem_effect *effect = &facts->intent.effect;
    if (facts->stub.row != 0) {
        return facts->stub.effect_id;
    }
    if (endpoint > IDEM_ENDPOINT_PAYMENTS_CREATE && facts->payment.row != 0) {
        return facts->payment.effect_id;
    }
    bool makes =
        !idem_intent_is_final(facts->intent.state) && idem_effect_kind_makes_payment(effect->kind);
    return makes ? effect->id : (struct idem_str){ .len = 0 };
}

static enum idem_rows_step other_stubs_fetch(struct idem_run *run,
                                             const struct idem_command *command)
{
    struct idem_str effect_id = payment_effect_id(&run->facts, command);
    if (!has_stubs(run)) {
        return IDEM_ROWS_OK;
    }
    enum idem_rows_step step = order_stub_fetch(run, command);
    if (step == IDEM_ROWS_OK && effect_id.len > 0) {
        step = run->rows->ops->find_payment_stubs(run->rows, effect_id, &run->facts);
    }
    return step;
}

static enum idem_rows_step cases_fetch(struct idem_run *run, const struct idem_command *command)
{
    struct idem_facts *facts = &run->facts;
    bool reaps = command->kind == IDEM_COMMAND_REAP && facts->intent.row != 0;
    bool contradicts =
        command->kind == IDEM_COMMAND_EVIDENCE && idem_intent_is_final(facts->intent.state);
    if (!reaps && !contradicts) {
        return IDEM_ROWS_OK;
    }
    return run->rows->ops->find_open_cases(run->rows, facts->intent.row, &facts->cases_open);
}

static enum idem_rows_step intent_facts_fetch(struct idem_run *run,
                                              const struct idem_command *command)
{
    enum idem_rows_step step = intent_fetch(run, command);
    if (step == IDEM_ROWS_OK) {
        step = stub_fetch(run, command);
    }
    if (step == IDEM_ROWS_OK) {
        step = payment_fetch(run, command);
    }
    if (step == IDEM_ROWS_OK) {
        step = refund_fetch(run);
    }
    if (step == IDEM_ROWS_OK) {
        step = holder_fetch(run, command);
    }
    if (step == IDEM_ROWS_OK) {
        step = other_stubs_fetch(run, command);
    }
    return step == IDEM_ROWS_OK ? cases_fetch(run, command) : step;
}

static enum idem_rows_step credential_fetch(struct idem_run *run,
                                            const struct idem_credential_change *change)
{
    struct idem_rows_key key = { .id = change->row.id, .secret = change->row.secret_sha256 };
    struct idem_credential_row holder = { .row = 0 };
    enum idem_rows_step step = run->rows->ops->find_credential(run->rows, IDEM_FIND_BY_ANY_ID, &key,
                                                               &run->facts.credential);
    if (step == IDEM_ROWS_OK && change->action == IDEM_CREDENTIAL_ADD) {
        step = run->rows->ops->find_credential(run->rows, IDEM_FIND_BY_SECRET, &key, &holder);
        run->facts.secret_taken = holder.row != 0 && !idem_uid_equal(holder.id, key.id);
    }
    return step;
}

static enum idem_rows_step facts_fetch(struct idem_run *run, const struct idem_command *command)
{
    idem_buf_init(&run->kept, run->memory, sizeof(run->memory));
    run->rows->kept = &run->kept;
    run->facts = (struct idem_facts){ .send_count = 0 };

    enum idem_rows_step step = IDEM_ROWS_OK;
    if (command->kind == IDEM_COMMAND_CREDENTIAL) {
        step = credential_fetch(run, &command->credential);
    } else if (command->kind != IDEM_COMMAND_MARK) {
        step = intent_facts_fetch(run, command);
    }
    /* Longer text than limits.h allows was not written by us: deciding on half of it is worse. */
    return step == IDEM_ROWS_OK && run->kept.full ? IDEM_ROWS_REFUSED : step;
}

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
    case IDEM_MARK_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* Rows that are nobody's: stubs, credentials, marks. */
static enum idem_rows_step own_apply(struct idem_run *run, int64_t now_us)
{
    enum idem_rows_step step = stub_apply(run);
    if (step == IDEM_ROWS_OK && run->decision.credential.write != IDEM_WRITE_NONE) {
        step = run->rows->ops->write_credential(run->rows, &run->decision.credential);
    }
    return step == IDEM_ROWS_OK ? mark_apply(run, now_us) : step;
}

/* One command inside the open transaction. */
static enum idem_rows_step command_run(struct idem_run *run, struct idem_store_item *item)
{
    enum idem_rows_step step = facts_fetch(run, &item->command);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    idem_decide(run->options->rules, &run->facts, &item->command, &run->decision);

    step = business_apply(run);
    if (step == IDEM_ROWS_OK) {
        step = intent_apply(run);
    }
    if (step == IDEM_ROWS_OK) {
        step = history_apply(run);
    }
    if (step == IDEM_ROWS_OK) {
        step = own_apply(run, item->command.now_us);
    }
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
        run->restored = run->restored && !run->restored_over;
        if (run->memory_gap) {
            run->opening.memory_since_us = run->opening.restored_at_us;
        }
        run->freed = run->freed || run->freeing;
    }
    run->stubs_added = 0;
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
