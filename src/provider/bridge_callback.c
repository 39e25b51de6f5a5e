/*
 * Callbacks of the bridge protocol: docs/bridge.md, "Callbacks".
 *
 *     outcome       means            must name beside event and id
 *     succeeded     SUCCESS          an amount, a currency
 *     reversed      REVERSED         an amount, a currency
 *     refused       REFUSED_FINAL
 *     closed        CLOSED_UNPAID
 *     processing    PROCESSING
 *     another word  UNKNOWN
 *
 * A member that is there must be what the protocol says; one bad member makes the whole event
 * unreadable. JSON null counts as absent, other members are ignored, and so is an event about an id
 * that is not of our form.
 */
#include "provider/bridge_internal.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/date.h"
#include "base/json.h"
#include "provider/signature.h"
#include "provider/wire.h"

#define TOKENS_MAX 256 /* Of an event; a longer one is unreadable. */

static const struct {
    const char *word;
    enum idem_outcome_kind outcome;
    bool moves_money; /* Amount and currency must be there. */
} outcomes[] = {
    { "succeeded", IDEM_OUTCOME_SUCCESS, true },
    { "reversed", IDEM_OUTCOME_REVERSED, true },
    { "refused", IDEM_OUTCOME_REFUSED_FINAL, false },
    { "closed", IDEM_OUTCOME_CLOSED_UNPAID, false },
    { "processing", IDEM_OUTCOME_PROCESSING, false },
};

/* What is text in an event and not yet evidence. */
struct texts {
    struct idem_str outcome;
    struct idem_str amount;
    struct idem_str happened;
};

static bool text_read(const struct idem_json *json,
                      const char *name,
                      struct idem_buf *buf,
                      struct idem_str *ret_text)
{
    return idem_wire_text_read(json, idem_json_member(json, 0, idem_str_from(name)), buf, ret_text);
}

static bool members_read(const struct idem_json *json,
                         struct idem_buf *buf,
                         struct texts *texts,
                         struct idem_evidence *read)
{
    return json->tokens[0].kind == IDEM_JSON_OBJECT &&
           text_read(json, "event", buf, &read->event_id) &&
           text_read(json, "id", buf, &read->effect_id) &&
           text_read(json, "outcome", buf, &texts->outcome) &&
           text_read(json, "amount", buf, &texts->amount) &&
           text_read(json, "currency", buf, &read->currency) &&
           text_read(json, "order_no", buf, &read->order_no) &&
           text_read(json, "reference", buf, &read->reference) &&
           text_read(json, "account", buf, &read->account) &&
           text_read(json, "code", buf, &read->code) &&
           text_read(json, "message", buf, &read->message) &&
           text_read(json, "happened", buf, &texts->happened) && read->event_id.len > 0 &&
           read->effect_id.len > 0 && texts->outcome.len > 0;
}

/* False: it moves money and does not say how much. */
static bool outcome_read(struct idem_str word, struct idem_evidence *read)
{
    read->outcome = IDEM_OUTCOME_UNKNOWN;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(outcomes); i++) {
        if (idem_str_equal(idem_str_from(outcomes[i].word), word)) {
            read->outcome = outcomes[i].outcome;
            return !outcomes[i].moves_money || (read->amount_minor > 0 && read->currency.len > 0);
        }
    }
    return true;
}

static enum idem_callback_verdict event_read(const struct idem_json *json,
                                             struct idem_buf *buf,
                                             int64_t signed_s,
                                             struct idem_evidence *ret_evidence)
{
    struct texts texts = { .outcome = { .len = 0 } };
    struct idem_evidence read = {
        .amount_minor = -1,
        .happened_us = signed_s * IDEM_US_PER_SECOND,
    };
    struct idem_scope scope;

    if (!members_read(json, buf, &texts, &read) ||
        !idem_bridge_amount_read(texts.amount, read.currency, &read.amount_minor) ||
        !outcome_read(texts.outcome, &read) ||
        (texts.happened.len > 0 && !idem_date_parse_rfc3339(texts.happened, &read.happened_us))) {
        return IDEM_CALLBACK_UNREADABLE;
    }
    if (!idem_effect_id_scope(read.effect_id, &scope)) {
        return IDEM_CALLBACK_IGNORED;
    }
    *ret_evidence = read;
    return IDEM_CALLBACK_OK;
}

static enum idem_callback_verdict bridge_verify(const struct idem_callback_in *in,
                                                const struct idem_callback_place *place,
                                                struct idem_buf *buf,
                                                struct idem_evidence *ret_evidence)
{
    struct idem_json_token tokens[TOKENS_MAX];
    struct idem_json json;
    struct idem_json_fault fault; /* What is wrong does not matter: it is not read. */
    int64_t signed_s = 0;

    enum idem_callback_verdict verdict =
        idem_signature_judge(in, place, IDEM_STR("Bridge-Signature"), &signed_s);
    if (verdict != IDEM_CALLBACK_OK) {
        return verdict;
    }
    idem_json_init(&json, tokens, TOKENS_MAX);
    if (!idem_json_parse(&json, in->body, &fault)) {
        return IDEM_CALLBACK_UNREADABLE;
    }
    return event_read(&json, buf, signed_s, ret_evidence);
}

const struct idem_adapter_callbacks idem_bridge_callbacks = {
    .verify = bridge_verify,
    .replies = {
        [IDEM_CALLBACK_TAKEN] = { 200, "application/json", "{\"received\":true}" },
        [IDEM_CALLBACK_REFUSED] = { 400, "application/json", "{\"received\":false}" },
        [IDEM_CALLBACK_LATER] = { 503, "application/json", "{\"received\":false}" },
    },
};
