/*
 * Facts as decision.h tells a store to read them. Nothing is read that a store would not read, so
 * that a decision which rests on more is found out here.
 */
#include "unit/core/scene_internal.h"

struct scene_intent *scene_intent_by_scope(struct scene *scene, const struct idem_scope *scope)
{
    for (size_t i = 0; i < scene->intent_count; i++) {
        bool is_there = scene->intents[i].row.row != 0; /* Removed ones leave their place. */
        if (is_there && memcmp(&scene->intents[i].row.scope, scope, sizeof(*scope)) == 0) {
            return &scene->intents[i];
        }
    }
    return NULL;
}

struct idem_stub *scene_stub_by_scope(struct scene *scene, const struct idem_scope *scope)
{
    for (size_t i = 0; i < scene->stub_count; i++) {
        bool is_there = scene->stubs[i].row != 0;
        if (is_there && memcmp(&scene->stubs[i].scope, scope, sizeof(*scope)) == 0) {
            return &scene->stubs[i];
        }
    }
    return NULL;
}

struct idem_payment scene_order_holder(const struct scene *scene,
                                       struct idem_str principal,
                                       struct idem_str order_no)
{
    for (size_t i = 0; i < scene->payment_count; i++) {
        const struct idem_payment *payment = &scene->payments[i];
        if (idem_payment_holds_order(payment->state) &&
            idem_str_equal(payment->principal, principal) &&
            idem_str_equal(payment->order_no, order_no)) {
            return *payment;
        }
    }
    return (struct idem_payment){ .row = 0 };
}

struct idem_refund scene_refund_holder(const struct scene *scene,
                                       int64_t payment_row,
                                       struct idem_str refund_no)
{
    for (size_t i = 0; i < scene->refund_count && refund_no.len > 0; i++) {
        const struct idem_refund *refund = &scene->refunds[i];
        if (refund->state != IDEM_REFUND_FAILED && refund->payment_row == payment_row &&
            idem_str_equal(refund->refund_no, refund_no)) {
            return *refund;
        }
    }
    return (struct idem_refund){ .row = 0 };
}

/* The stub of a payment, of another scope than `own`, that holds the order number. */
struct idem_stub scene_order_stub(const struct scene *scene,
                                  const struct idem_scope *own,
                                  struct idem_str order_no)
{
    for (size_t i = 0; i < scene->stub_count; i++) {
        const struct idem_stub *stub = &scene->stubs[i];
        if (stub->row != 0 && memcmp(&stub->scope, own, sizeof(*own)) != 0 &&
            idem_effect_kind_makes_payment(stub->kind) && order_no.len > 0 &&
            idem_str_equal(stub->order_no, order_no)) {
            return *stub;
        }
    }
    return (struct idem_stub){ .row = 0 };
}

static void fetch_stubs_on(const struct scene *scene,
                           struct idem_str effect_id,
                           struct idem_facts *facts)
{
    for (size_t i = 0; i < scene->stub_count && effect_id.len > 0; i++) {
        const struct idem_stub *stub = &scene->stubs[i];
        if (stub->row == 0 || !idem_str_equal(stub->payment_effect_id, effect_id)) {
            continue;
        }
        if (facts->payment_stub_count == IDEM_PAYMENT_STUBS_MAX) {
            facts->payment_stubs_full = true;
            return;
        }
        facts->payment_stubs[facts->payment_stub_count] = *stub;
        facts->payment_stub_count += 1;
    }
}

/* On the payment that the command may make, or act on: `starting` may take its reservation. */
static void fetch_payment_stubs(const struct scene *scene,
                                enum idem_endpoint starting,
                                struct idem_facts *facts)
{
    const struct idem_effect *effect = &facts->intent.effect;
    bool makes =
        idem_effect_kind_makes_payment(effect->kind) && !idem_intent_is_final(facts->intent.state);
    if (facts->stub.row != 0) {
        fetch_stubs_on(scene, facts->stub.effect_id, facts);
    } else if (starting > IDEM_ENDPOINT_PAYMENTS_CREATE && facts->payment.row != 0) {
        fetch_stubs_on(scene, facts->payment.effect_id, facts);
    } else if (makes) {
        fetch_stubs_on(scene, effect->id, facts);
    }
}

/* What the payment's own claim made of it: of the intent with that scope. */
static struct idem_payment claimed_payment(struct scene *scene, const struct idem_scope *scope)
{
    const struct scene_intent *intent = scene_intent_by_scope(scene, scope);
    if (intent == NULL || intent->row.payment_row == 0) {
        return (struct idem_payment){ .row = 0 };
    }
    return scene->payments[intent->row.payment_row - 1];
}

static bool is_listing(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_EVIDENCE &&
           command->evidence.source == IDEM_SOURCE_LISTING;
}

/* The intent's; but what its stub acted on, where that matters. */
static void fetch_payment(struct scene *scene,
                          const struct idem_command *command,
                          struct idem_facts *facts)
{
    bool is_the_stubs = facts->stub.row != 0 && !idem_effect_kind_makes_payment(facts->stub.kind) &&
                        (command->kind == IDEM_COMMAND_RESOLVE || is_listing(command));
    struct idem_scope scope = { .bytes = { 0 } };
    if (is_the_stubs) {
        (void)idem_effect_id_scope(facts->stub.payment_effect_id, &scope);
        facts->payment = claimed_payment(scene, &scope);
    } else if (facts->intent.payment_row != 0) {
        facts->payment = scene->payments[facts->intent.payment_row - 1];
    }
}

static void fetch_present(struct scene *scene,
                          const struct idem_command *command,
                          const struct scene_intent *intent,
                          struct idem_facts *facts)
{
    const struct idem_stub *stub = scene_stub_by_scope(scene, &command->scope);
    if (stub != NULL && !idem_intent_is_final(intent->row.state)) {
        facts->stub = *stub;
    }
    facts->intent = intent->row;
    facts->send_count = intent->send_count;
    memcpy(facts->sends, intent->sends, sizeof(facts->sends));
    fetch_payment(scene, command, facts);
    if (intent->row.refund_row != 0) {
        facts->refund = scene->refunds[intent->row.refund_row - 1];
    }
    bool contradicts =
        command->kind == IDEM_COMMAND_EVIDENCE && idem_intent_is_final(intent->row.state);
    bool asks_for_cases =
        command->kind == IDEM_COMMAND_REAP || command->kind == IDEM_COMMAND_RESOLVE || contradicts;
    if (asks_for_cases) {
        facts->cases_open = intent->cases_open;
        facts->cases_decided = intent->cases_decided;
    }
    bool is_create = intent->row.endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE;
    bool holds_nothing =
        intent->row.state == IDEM_INTENT_PARKED && intent->row.problem == IDEM_PROBLEM_NOT_EXECUTED;
    bool starts_again = intent->row.state == IDEM_INTENT_RELEASED || holds_nothing;
    fetch_payment_stubs(scene, starts_again ? intent->row.endpoint : IDEM_ENDPOINT_NONE, facts);
    if (is_create && (starts_again || command->kind == IDEM_COMMAND_DUE)) {
        facts->order_stub = scene_order_stub(scene, &command->scope, facts->payment.order_no);
    }
    if (!starts_again) {
        return;
    }
    if (is_create) {
        facts->order_holder =
            scene_order_holder(scene, facts->payment.principal, facts->payment.order_no);
    }
    if (intent->row.endpoint == IDEM_ENDPOINT_REFUNDS_CREATE) {
        facts->refund_holder =
            scene_refund_holder(scene, facts->payment.row, facts->refund.refund_no);
    }
}

static void fetch_credential(const struct scene *scene,
                             const struct idem_credential_row *row,
                             struct idem_facts *facts)
{
    for (size_t i = 0; i < scene->credential_count; i++) {
        const struct idem_credential_row *known = &scene->credentials[i];
        if (idem_uid_equal(known->id, row->id)) {
            facts->credential = *known;
        } else if (idem_digest_equal(known->secret_sha256, row->secret_sha256)) {
            facts->secret_taken = true;
        }
    }
}

static void fetch_absent(struct scene *scene,
                         const struct idem_command *command,
                         struct idem_facts *facts)
{
    const struct idem_accept *accept = &command->accept;
    for (size_t i = 0; i < scene->payment_count; i++) {
        if (idem_uid_equal(scene->payments[i].id, accept->payment_id)) {
            facts->payment = scene->payments[i];
        }
    }
    fetch_payment_stubs(scene, accept->endpoint, facts);
    if (accept->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        facts->order_holder = scene_order_holder(scene, accept->principal, accept->order_no);
        facts->order_stub = scene_order_stub(scene, &command->scope, accept->order_no);
    }
    if (accept->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE) {
        facts->refund_holder = scene_refund_holder(scene, facts->payment.row, accept->refund_no);
    }
}

static struct idem_webhook webhook_by_id(const struct scene *scene, struct idem_uid id)
{
    for (size_t i = 0; i < scene->webhook_count; i++) {
        if (idem_uid_equal(scene->webhooks[i].id, id)) {
            return scene->webhooks[i];
        }
    }
    return (struct idem_webhook){ .row = 0 };
}

static void fetch_webhook(const struct scene *scene,
                          const struct idem_webhook_change *change,
                          struct idem_facts *facts)
{
    facts->webhook = webhook_by_id(scene, change->row.id);
    for (size_t i = 0; i < scene->webhook_count && change->action == IDEM_WEBHOOK_ADD; i++) {
        if (idem_str_equal(scene->webhooks[i].principal, change->row.principal)) {
            facts->webhook_count += 1;
        }
    }
}

static void fetch_delivery(const struct scene *scene,
                           const struct idem_delivery_change *said,
                           struct idem_facts *facts)
{
    facts->webhook = webhook_by_id(scene, said->webhook_id);
    for (size_t i = 0; i < scene->delivery_count; i++) {
        const struct scene_delivery *delivery = &scene->deliveries[i];
        if (idem_uid_equal(delivery->message_id, said->message_id) &&
            idem_uid_equal(delivery->webhook_id, said->webhook_id)) {
            facts->delivery = delivery->row;
        }
    }
}

bool scene_is_listened(const struct scene *scene, struct idem_str principal)
{
    for (size_t i = 0; i < scene->webhook_count; i++) {
        const struct idem_webhook *webhook = &scene->webhooks[i];
        if (webhook->disabled_us == 0 && idem_str_equal(webhook->principal, principal)) {
            return true;
        }
    }
    return false;
}

/* The intent's, or the request's; or whose payment a listing moves. */
static struct idem_str principal_of(const struct idem_command *command,
                                    const struct idem_facts *facts)
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

struct scene_event *scene_event(struct scene *scene,
                                struct idem_str entry,
                                struct idem_str event_id)
{
    for (size_t i = 0; i < scene->inbox_count; i++) {
        struct scene_event *event = &scene->inbox[i];
        if (idem_str_equal(event->entry, entry) && idem_str_equal(event->event_id, event_id)) {
            return event;
        }
    }
    return NULL;
}

static void fetch_mail(struct scene *scene,
                       const struct idem_command *command,
                       struct idem_facts *facts)
{
    bool is_event =
        command->kind == IDEM_COMMAND_EVIDENCE && command->evidence.source == IDEM_SOURCE_CALLBACK;
    const struct idem_evidence *said = &command->evidence;
    facts->event_seen = is_event && scene_event(scene, said->entry, said->event_id) != NULL;
    facts->listened = scene_is_listened(scene, principal_of(command, facts));
}

static void fetch_about_intent(struct scene *scene,
                               const struct idem_command *command,
                               struct idem_facts *facts)
{
    const struct scene_intent *intent = scene_intent_by_scope(scene, &command->scope);
    if (intent != NULL) {
        fetch_present(scene, command, intent, facts);
        return;
    }
    const struct idem_stub *stub = scene_stub_by_scope(scene, &command->scope);
    if (stub != NULL) {
        facts->stub = *stub;
    }
    if (command->kind == IDEM_COMMAND_ACCEPT) {
        fetch_absent(scene, command, facts);
    } else if (is_listing(command)) {
        facts->payment = claimed_payment(scene, &command->evidence.payment_scope);
    }
}

void scene_fetch(struct scene *scene, const struct idem_command *command, struct idem_facts *facts)
{
    *facts = (struct idem_facts){ .send_count = 0 };
    switch (command->kind) {
    case IDEM_COMMAND_MARK:
        return;
    case IDEM_COMMAND_CREDENTIAL:
        fetch_credential(scene, &command->credential.row, facts);
        return;
    case IDEM_COMMAND_WEBHOOK:
        fetch_webhook(scene, &command->webhook, facts);
        return;
    case IDEM_COMMAND_DELIVERY:
        fetch_delivery(scene, &command->delivery, facts);
        return;
    case IDEM_COMMAND_NONE:
    case IDEM_COMMAND_ACCEPT:
    case IDEM_COMMAND_EVIDENCE:
    case IDEM_COMMAND_DUE:
    case IDEM_COMMAND_ABANDON:
    case IDEM_COMMAND_RESOLVE:
    case IDEM_COMMAND_REAP:
    case IDEM_COMMAND_COUNT:
        break;
    }
    fetch_about_intent(scene, command, facts);
    fetch_mail(scene, command, facts);
}
