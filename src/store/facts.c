/*
 * Which rows a command needs to be decided: what struct idem_facts says, row by row. What only few
 * stores have, stubs and webhooks, is asked for only where there are any.
 */
#include "store/run_internal.h"

#include <string.h>

#include "base/bug.h"

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
    bool reaps = command->kind == IDEM_COMMAND_REAP;
    bool contradicts =
        command->kind == IDEM_COMMAND_EVIDENCE && idem_intent_is_final(facts->intent.state);
    bool decides = command->kind == IDEM_COMMAND_RESOLVE;
    if (facts->intent.row == 0 || (!reaps && !contradicts && !decides)) {
        return IDEM_ROWS_OK;
    }
    return run->rows->ops->find_case_kinds(run->rows, facts->intent.row, &facts->cases_open,
                                           &facts->cases_decided);
}

static enum idem_rows_step event_fetch(struct idem_run *run, const struct idem_command *command)
{
    const struct idem_evidence *evidence = &command->evidence;
    if (command->kind != IDEM_COMMAND_EVIDENCE || evidence->source != IDEM_SOURCE_CALLBACK) {
        return IDEM_ROWS_OK;
    }
    return run->rows->ops->find_event(run->rows, evidence->entry, evidence->event_id,
                                      &run->facts.event_seen);
}

/* Whose intent it is or becomes; or whose payment a listing moves. */
static struct idem_str principal_of(const struct idem_facts *facts,
                                    const struct idem_command *command)
{
    if (facts->intent.row != 0) {
        return facts->intent.principal;
    }
    if (command->kind == IDEM_COMMAND_ABANDON) {
        return command->abandon.principal;
    }
    return command->kind == IDEM_COMMAND_ACCEPT ? command->accept.principal
                                                : facts->payment.principal;
}

/* Whether anybody is told. Most stores have no webhook, and are not asked. */
static enum idem_rows_step listened_fetch(struct idem_run *run, const struct idem_command *command)
{
    struct idem_str principal = principal_of(&run->facts, command);
    if (run->webhook_count + run->webhooks_added == 0 || principal.len == 0) {
        return IDEM_ROWS_OK;
    }
    return run->rows->ops->find_listened(run->rows, principal, &run->facts.listened);
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
    if (step == IDEM_ROWS_OK) {
        step = cases_fetch(run, command);
    }
    if (step == IDEM_ROWS_OK) {
        step = event_fetch(run, command);
    }
    return step == IDEM_ROWS_OK ? listened_fetch(run, command) : step;
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

static enum idem_rows_step webhook_fetch(struct idem_run *run, const struct idem_command *command)
{
    const struct idem_webhook_change *change = &command->webhook;
    struct idem_facts *facts = &run->facts;
    struct idem_rows_key key = { .id = change->row.id };
    enum idem_rows_step step =
        run->rows->ops->find_webhook(run->rows, IDEM_FIND_BY_ANY_ID, &key, &facts->webhook);
    if (step == IDEM_ROWS_OK && change->action == IDEM_WEBHOOK_ADD) {
        step =
            run->rows->ops->count_webhooks(run->rows, change->row.principal, &facts->webhook_count);
    }
    return step;
}

static enum idem_rows_step delivery_fetch(struct idem_run *run, const struct idem_command *command)
{
    const struct idem_delivery_change *said = &command->delivery;
    struct idem_rows_key key = { .id = said->webhook_id };
    enum idem_rows_step step =
        run->rows->ops->find_webhook(run->rows, IDEM_FIND_BY_ANY_ID, &key, &run->facts.webhook);
    if (step == IDEM_ROWS_OK) {
        step = run->rows->ops->find_delivery(run->rows, said->message_id, said->webhook_id,
                                             &run->facts.delivery);
    }
    return step;
}

enum idem_rows_step idem_run_facts_fetch(struct idem_run *run, const struct idem_command *command)
{
    idem_buf_init(&run->kept, run->memory, sizeof(run->memory));
    run->rows->kept = &run->kept;
    run->facts = (struct idem_facts){ .send_count = 0 };

    enum idem_rows_step step = IDEM_ROWS_OK;
    if (command->kind == IDEM_COMMAND_CREDENTIAL) {
        step = credential_fetch(run, &command->credential);
    } else if (command->kind == IDEM_COMMAND_WEBHOOK) {
        step = webhook_fetch(run, command);
    } else if (command->kind == IDEM_COMMAND_DELIVERY) {
        step = delivery_fetch(run, command);
    } else if (command->kind != IDEM_COMMAND_MARK) {
        step = intent_facts_fetch(run, command);
    }
    /* Longer text than limits.h allows was not written by us: deciding on half of it is worse. */
    return step == IDEM_ROWS_OK && run->kept.full ? IDEM_ROWS_REFUSED : step;
}
