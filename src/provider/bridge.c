/*
 * The adapter for the bridge protocol, version 1: docs/bridge.md is its specification.
 *
 * Reading an answer is a table of what may be believed, and everything else is UNKNOWN:
 *
 *     HTTP      status         to              means            must name our id
 *     200       succeeded      any             SUCCESS          an id, an amount, a currency
 *     200       declined       any             REFUSED_FINAL    yes
 *     200       processing     any             PROCESSING       yes
 *     200       closed         any             CLOSED_UNPAID    yes
 *     404       not_found      query           NOT_FOUND        if it names one
 *     400 422   invalid        any             REFUSED_FINAL    yes
 *     401 403   not_executed   send            NOT_EXECUTED     if it names one
 *     429 503   not_executed   send            NOT_EXECUTED     if it names one
 *
 * A success under another id or with another amount is passed on as it is: the core compares, and
 * shows the difference to a person. A member that is there must be what the protocol says; one bad
 * member makes the whole answer unreadable. JSON null counts as absent.
 *
 * Listings are in bridge_list.c, callbacks in bridge_callback.c.
 */
#include "provider/bridge.h"

#include <string.h>

#include "base/bug.h"
#include "base/currency.h"
#include "base/json.h"
#include "base/money.h"
#include "provider/bridge_internal.h"
#include "provider/wire.h"

#define TOKENS_MAX 256 /* Of an answer; a longer one is unreadable. */

const char *const idem_bridge_kind_words[IDEM_EFFECT_KIND_COUNT] = {
    [IDEM_EFFECT_KIND_CHARGE] = "charge",   [IDEM_EFFECT_KIND_AUTHORIZE] = "authorize",
    [IDEM_EFFECT_KIND_CAPTURE] = "capture", [IDEM_EFFECT_KIND_CANCEL] = "cancel",
    [IDEM_EFFECT_KIND_REFUND] = "refund",
};

/* Calls that a row of the table below answers. */
#define TO_SEND  (1U << IDEM_CALL_SEND)
#define TO_QUERY (1U << IDEM_CALL_QUERY)
#define TO_ANY   (TO_SEND | TO_QUERY | 1U << IDEM_CALL_CLOSE)

enum naming {
    NAMING_IF_ANY = 0, /* No id, or ours. */
    NAMING_OURS,
    NAMING_SOME /* Any id, with amount and currency. */
};

struct meaning {
    const char *status;
    unsigned http_status;
    unsigned calls;
    enum naming naming;
    enum idem_outcome_kind outcome;
};

static const struct meaning meanings[] = {
    { "succeeded", 200, TO_ANY, NAMING_SOME, IDEM_OUTCOME_SUCCESS },
    { "declined", 200, TO_ANY, NAMING_OURS, IDEM_OUTCOME_REFUSED_FINAL },
    { "processing", 200, TO_ANY, NAMING_OURS, IDEM_OUTCOME_PROCESSING },
    { "closed", 200, TO_ANY, NAMING_OURS, IDEM_OUTCOME_CLOSED_UNPAID },
    { "not_found", 404, TO_QUERY, NAMING_IF_ANY, IDEM_OUTCOME_NOT_FOUND },
    { "invalid", 400, TO_ANY, NAMING_OURS, IDEM_OUTCOME_REFUSED_FINAL },
    { "invalid", 422, TO_ANY, NAMING_OURS, IDEM_OUTCOME_REFUSED_FINAL },
    { "not_executed", 401, TO_SEND, NAMING_IF_ANY, IDEM_OUTCOME_NOT_EXECUTED },
    { "not_executed", 403, TO_SEND, NAMING_IF_ANY, IDEM_OUTCOME_NOT_EXECUTED },
    { "not_executed", 429, TO_SEND, NAMING_IF_ANY, IDEM_OUTCOME_NOT_EXECUTED },
    { "not_executed", 503, TO_SEND, NAMING_IF_ANY, IDEM_OUTCOME_NOT_EXECUTED },
};

/* Requests. */

static void member_add(struct idem_buf *buf, const char *name, struct idem_str value)
{
    idem_buf_add_char(buf, ',');
    idem_json_add_string(buf, idem_str_from(name));
    idem_buf_add_char(buf, ':');
    idem_json_add_string(buf, value);
}

static void member_add_unless_empty(struct idem_buf *buf, const char *name, struct idem_str value)
{
    if (value.len > 0) {
        member_add(buf, name, value);
    }
}

bool idem_bridge_makes_payment(enum idem_effect_kind kind)
{
    return kind == IDEM_EFFECT_KIND_CHARGE || kind == IDEM_EFFECT_KIND_AUTHORIZE;
}

static void bridge_encode(const struct idem_effect_order *order, struct idem_buf *buf)
{
    const struct idem_effect *effect = order->effect;
    int exponent = idem_currency_exponent(effect->currency);
    char amount_memory[IDEM_AMOUNT_TEXT_MAX];
    struct idem_buf amount;

    IDEM_ASSERT(effect->kind > IDEM_EFFECT_KIND_NONE);
    IDEM_ASSERT(effect->kind < IDEM_EFFECT_KIND_COUNT);
    IDEM_ASSERT(exponent >= 0);
    idem_buf_init(&amount, amount_memory, sizeof(amount_memory));
    idem_amount_print(effect->amount_minor, exponent, &amount);

    idem_buf_add(buf, IDEM_STR("{\"id\":"));
    idem_json_add_string(buf, effect->id);
    member_add(buf, "kind", idem_str_from(idem_bridge_kind_words[effect->kind]));
    member_add(buf, "amount", idem_buf_str(&amount));
    member_add(buf, "currency", effect->currency);
    member_add(buf, "order_no", order->order_no);
    if (idem_bridge_makes_payment(effect->kind)) {
        member_add(buf, "method", order->method);
        member_add_unless_empty(buf, "description", order->description);
    } else {
        member_add(buf, "payment_id", order->payment_effect_id);
        member_add_unless_empty(buf, "payment_reference", order->payment_reference);
    }
    idem_buf_add_char(buf, '}');
}

static void bridge_request(enum idem_call_kind kind,
                           const struct idem_effect *effect,
                           struct idem_str credential,
                           struct idem_buf *buf,
                           struct idem_wire_request *ret_request)
{
    size_t start = buf->len;
    struct idem_wire_request request = { .method = kind == IDEM_CALL_QUERY ? "GET" : "POST" };

    IDEM_ASSERT(kind > IDEM_CALL_NONE);
    IDEM_ASSERT(kind < IDEM_CALL_COUNT);
    idem_buf_add(buf, IDEM_STR("/effects"));
    if (kind != IDEM_CALL_SEND) {
        idem_buf_add_char(buf, '/');
        idem_buf_add(buf, effect->id);
    }
    if (kind == IDEM_CALL_CLOSE) {
        idem_buf_add(buf, IDEM_STR("/close"));
        request.body = IDEM_STR("{}");
    }
    request.path = idem_str_slice(idem_buf_str(buf), start, SIZE_MAX);
    if (credential.len > 0) {
        idem_wire_header_add(&request, buf, "Authorization: Bearer ", credential);
    }
    if (kind != IDEM_CALL_QUERY) {
        idem_wire_header_add(&request, buf, "Content-Type: ", IDEM_STR("application/json"));
    }
    if (kind == IDEM_CALL_SEND) {
        idem_wire_header_add(&request, buf, "Idempotency-Key: ", effect->id);
        request.body = effect->request;
    }
    *ret_request = request;
}

/* Answers. */

static bool text_read(const struct idem_json *json,
                      const char *name,
                      struct idem_buf *buf,
                      struct idem_str *ret_text)
{
    return idem_wire_text_read(json, idem_json_member(json, 0, idem_str_from(name)), buf, ret_text);
}

bool idem_bridge_amount_read(struct idem_str text, struct idem_str currency, int64_t *ret_minor)
{
    if (text.len == 0) {
        return true;
    }
    int exponent = idem_currency_exponent(currency);
    return exponent >= 0 && idem_amount_parse(text, exponent, ret_minor) == IDEM_AMOUNT_OK;
}

/* Reads all members that the protocol knows; others are nobody's business. */
static bool members_read(const struct idem_json *json,
                         struct idem_buf *buf,
                         struct idem_evidence *evidence,
                         struct idem_str *ret_status)
{
    struct idem_str amount = { .len = 0 };

    return json->tokens[0].kind == IDEM_JSON_OBJECT && text_read(json, "status", buf, ret_status) &&
           text_read(json, "id", buf, &evidence->effect_id) &&
           text_read(json, "currency", buf, &evidence->currency) &&
           text_read(json, "reference", buf, &evidence->reference) &&
           text_read(json, "code", buf, &evidence->code) &&
           text_read(json, "message", buf, &evidence->message) &&
           text_read(json, "amount", buf, &amount) &&
           idem_bridge_amount_read(amount, evidence->currency, &evidence->amount_minor);
}

static bool names_enough(enum naming naming,
                         const struct idem_evidence *evidence,
                         struct idem_str our_id)
{
    bool ours = idem_str_equal(evidence->effect_id, our_id);

    switch (naming) {
    case NAMING_IF_ANY:
        return ours || evidence->effect_id.len == 0;
    case NAMING_OURS:
        return ours;
    case NAMING_SOME:
        return evidence->effect_id.len > 0 && evidence->amount_minor > 0 &&
               evidence->currency.len > 0;
    }
    IDEM_UNREACHABLE();
}

static enum idem_outcome_kind meaning_find(enum idem_call_kind kind,
                                           uint16_t http_status,
                                           struct idem_str status,
                                           const struct idem_evidence *evidence,
                                           struct idem_str our_id)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(meanings); i++) {
        const struct meaning *meaning = &meanings[i];
        if (meaning->http_status == http_status && (meaning->calls & 1U << kind) != 0 &&
            idem_str_equal(idem_str_from(meaning->status), status) &&
            names_enough(meaning->naming, evidence, our_id)) {
            return meaning->outcome;
        }
    }
    return IDEM_OUTCOME_UNKNOWN;
}

static void bridge_decode(enum idem_call_kind kind,
                          const struct idem_effect *effect,
                          const struct idem_wire_answer *answer,
                          struct idem_buf *buf,
                          struct idem_evidence *ret_evidence)
{
    struct idem_json_token tokens[TOKENS_MAX];
    struct idem_json json;
    struct idem_json_fault fault; /* What is wrong does not matter: it is UNKNOWN. */
    struct idem_str status = { .len = 0 };
    const struct idem_evidence silence = {
        .outcome = IDEM_OUTCOME_UNKNOWN,
        .amount_minor = -1,
        .retry_after_us = answer->retry_after_us,
    };
    struct idem_evidence read = silence;

    IDEM_ASSERT(kind > IDEM_CALL_NONE);
    IDEM_ASSERT(kind < IDEM_CALL_COUNT);
    idem_json_init(&json, tokens, TOKENS_MAX);
    if (!idem_json_parse(&json, answer->body, &fault) ||
        !members_read(&json, buf, &read, &status)) {
        *ret_evidence = silence;
        return;
    }
    read.outcome = meaning_find(kind, answer->status, status, &read, effect->id);
    *ret_evidence = read;
}

const struct idem_adapter idem_bridge_adapter = {
    .name = "bridge",
    .encode = bridge_encode,
    .request = bridge_request,
    .decode = bridge_decode,
    .list_request = idem_bridge_list_request,
    .list_decode = idem_bridge_list_decode,
    .callbacks = &idem_bridge_callbacks,
};
