/*
 * The parts of a claim. decide_accept.c claims what will run, decide_stub.c what ran already: both
 * begin the same record, under the same id and with the same rows.
 */
#include "core/claim.h"

#include "base/bug.h"

enum idem_effect_kind idem_claim_effect_kind(const struct idem_accept *accept)
{
    switch (accept->endpoint) {
    case IDEM_ENDPOINT_PAYMENTS_CREATE:
        return accept->capture_mode == IDEM_CAPTURE_AUTOMATIC ? IDEM_EFFECT_KIND_CHARGE
                                                              : IDEM_EFFECT_KIND_AUTHORIZE;
    case IDEM_ENDPOINT_PAYMENTS_CAPTURE:
        return IDEM_EFFECT_KIND_CAPTURE;
    case IDEM_ENDPOINT_PAYMENTS_CANCEL:
        return IDEM_EFFECT_KIND_CANCEL;
    case IDEM_ENDPOINT_REFUNDS_CREATE:
        return IDEM_EFFECT_KIND_REFUND;
    case IDEM_ENDPOINT_NONE:
    case IDEM_ENDPOINT_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

struct idem_str idem_claim_effect_id(struct idem_turn *turn, enum idem_effect_kind kind)
{
    struct idem_buf *scratch = &turn->decision->scratch;
    size_t from = scratch->len;
    idem_buf_add_char(scratch, idem_effect_kind_letter(kind));
    idem_buf_add(scratch, turn->command->accept.effect_id_tail);
    struct idem_str id = idem_turn_text_since(turn, from);
    IDEM_ASSERT(id.len == IDEM_EFFECT_ID_LEN);
    return id;
}

void idem_claim_begin_intent(struct idem_turn *turn)
{
    const struct idem_command *command = turn->command;
    const struct idem_accept *accept = &command->accept;
    IDEM_ASSERT(accept->fingerprint_count > 0);
    *turn->intent = (struct idem_intent){
        .id = command->intent_id,
        .scope = command->scope,
        .principal = accept->principal,
        .key = accept->key,
        .endpoint = accept->endpoint,
        .state = IDEM_INTENT_CLAIMED,
        .fingerprint = accept->fingerprints[0],
        .created_us = command->now_us,
        .patience_us = command->now_us + accept->wait_us,
        .trace = accept->trace,
    };
}

void idem_claim_begin_payment(struct idem_turn *turn, const struct idem_provider_rules *provider)
{
    const struct idem_command *command = turn->command;
    const struct idem_accept *accept = &command->accept;
    *turn->payment = (struct idem_payment){
        .id = command->resource_id,
        .state = IDEM_PAYMENT_PENDING,
        .principal = accept->principal,
        .order_no = accept->order_no,
        .capture_mode = accept->capture_mode,
        .amount_minor = accept->amount_minor,
        .currency = accept->currency,
        .entry = provider->entry,
        .account = provider->account,
        .region = provider->region,
        .effect_id = turn->intent->effect.id,
        .method = accept->method,
        .description = accept->description,
        .metadata = accept->metadata,
        .created_us = command->now_us,
    };
    idem_turn_write_payment(turn);
    turn->intent->payment_row = 0; /* The store puts the new row in. */
    turn->intent->payment_id = turn->payment->id;
}

void idem_claim_acquire(struct idem_turn *turn)
{
    idem_turn_acquire(turn);
    if (turn->intent->trace.len > 0) {
        idem_turn_event(turn, IDEM_EVENT_TRACED, turn->intent->trace);
    }
}

bool idem_claim_has_payment(const struct idem_turn *turn)
{
    const struct idem_payment *payment = &turn->facts->payment;
    return payment->row != 0 && idem_str_equal(payment->principal, turn->command->accept.principal);
}

bool idem_claim_is_granted(const struct idem_accept *accept, struct idem_str entry)
{
    for (size_t i = 0; accept->granted != NULL && i < accept->granted_count; i++) {
        if (idem_str_equal(accept->granted[i], entry)) {
            return true;
        }
    }
    return accept->granted == NULL;
}
