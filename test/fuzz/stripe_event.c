/*
 * Fuzzes what is believed of Stripe's events, against jansson.
 *
 * The input is the letter of the key's mode ('l' live, anything else test) and the body, which is
 * signed here. Properties, for any bytes:
 *   - with another signature it is FORGED and nothing is read of it;
 *   - what is OK is an event of the key's mode and of no other account, of a type that is listed,
 *     about an object whose metadata name an effect of ours;
 *   - the evidence is about that effect, about the capture that the metadata name, or about a
 *     cancel that the request's key names, and about nothing else;
 *   - SUCCESS rests on one of three statuses, REVERSED on two, and both on an amount and a currency
 *     that stand in the object; a failed payment is never final.
 */
#include "provider/stripe.h"

#include <string.h>

#include "base/clock.h"

#include "fuzz/fuzz.h"
#include "fuzz/theirs.h"

#define NOW_S       INT64_C(1764400000)
#define SECRET      "a secret"
#define MEMORY_SIZE 65536

static char field_memory[128];
static char memory[MEMORY_SIZE];

static struct idem_str field_of(const void *head, struct idem_str name)
{
    FUZZ_EXPECT(idem_str_equal(name, IDEM_STR("Stripe-Signature")));
    return idem_str_from(head);
}

static struct idem_digester *digester_get(void)
{
    static struct idem_digester *digester;
    struct idem_error error;
    FUZZ_EXPECT(digester != NULL || idem_digester_create(&digester, &error) == IDEM_OK);
    return digester;
}

static void sign(struct idem_str body)
{
    struct idem_digester *digester = digester_get();
    struct idem_buf field;
    idem_hmac_begin(digester, IDEM_STR(SECRET));
    idem_hmac_add(digester, IDEM_STR("1764400000."));
    idem_hmac_add(digester, body);
    struct idem_digest digest = idem_hmac_end(digester);
    idem_buf_init(&field, field_memory, sizeof(field_memory));
    idem_buf_add(&field, IDEM_STR("t=1764400000,v1="));
    idem_buf_add_hex(&field, digest.bytes, sizeof(digest.bytes));
    idem_buf_add_char(&field, '\0');
    FUZZ_EXPECT(!field.full);
}

static enum idem_callback_verdict verify(struct idem_str body,
                                         bool live,
                                         struct idem_evidence *ret_evidence)
{
    static const struct idem_str secret = { .data = SECRET, .len = sizeof(SECRET) - 1 };
    const struct idem_callback_in in = {
        .field = field_of,
        .head = field_memory,
        .body = body,
        .now_us = NOW_S * IDEM_US_PER_SECOND,
    };
    const struct idem_callback_place place = {
        .digester = digester_get(),
        .secrets = &secret,
        .secret_count = 1,
        .account = IDEM_STR("acct_1"),
        .credential = live ? IDEM_STR("sk_live_1") : IDEM_STR("rk_test_1"),
    };
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    return idem_stripe_adapter.callbacks->verify(&in, &place, &buf, ret_evidence);
}

static void check_place(const json_t *theirs, bool live)
{
    const json_t *account = json_object_get(theirs, "account");
    FUZZ_EXPECT(theirs_is(theirs, "object", "event"));
    FUZZ_EXPECT(json_is_boolean(json_object_get(theirs, "livemode")));
    FUZZ_EXPECT(json_is_true(json_object_get(theirs, "livemode")) == live);
    FUZZ_EXPECT(account == NULL || json_is_null(account) ||
                theirs_is(theirs, "account", "acct_1") || theirs_is(theirs, "account", ""));
}

static bool is_kind(struct idem_str id, const char *letters)
{
    struct idem_scope scope;
    return idem_effect_id_scope(id, &scope) && strchr(letters, id.data[0]) != NULL;
}

/* Whose effect it is, and by which of the names that may say so. */
static void check_named(const struct idem_evidence *evidence,
                        const json_t *theirs,
                        const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *request = json_object_get(theirs, "request");
    bool refund = theirs_is(object, "object", "refund");
    struct idem_str our_id = theirs_text(metadata, "idem_id");

    FUZZ_EXPECT(refund || theirs_is(object, "object", "payment_intent"));
    FUZZ_EXPECT(is_kind(our_id, refund ? "r" : "ca"));
    FUZZ_EXPECT(idem_str_equal(evidence->reference, theirs_text(object, "id")));
    FUZZ_EXPECT(idem_str_equal(evidence->order_no, theirs_text(metadata, "order_no")));
    if (idem_str_equal(evidence->effect_id, our_id)) {
        return;
    }
    FUZZ_EXPECT(!refund && evidence->outcome == IDEM_OUTCOME_SUCCESS);
    FUZZ_EXPECT(idem_str_equal(evidence->payment_effect_id, our_id));
    if (is_kind(evidence->effect_id, "k")) {
        FUZZ_EXPECT(idem_str_equal(evidence->effect_id, theirs_text(metadata, "idem_capture")));
        FUZZ_EXPECT(theirs_is(object, "status", "succeeded"));
        return;
    }
    FUZZ_EXPECT(is_kind(evidence->effect_id, "v"));
    FUZZ_EXPECT(idem_str_equal(evidence->effect_id, theirs_text(request, "idempotency_key")));
    FUZZ_EXPECT(theirs_is(object, "status", "canceled"));
}

/* Of a currency that both sides count in hundredths. */
static void check_amount(const struct idem_evidence *evidence, const json_t *object)
{
    static const char *const sums[] = { "amount", "amount_received", "amount_capturable" };
    bool found = false;
    FUZZ_EXPECT(evidence->amount_minor >= 0 && evidence->currency.len == 3);
    FUZZ_EXPECT(idem_str_equal_nocase(evidence->currency, theirs_text(object, "currency")));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sums); i++) {
        const json_t *sum = json_object_get(object, sums[i]);
        found =
            found || (json_is_integer(sum) && json_integer_value(sum) == evidence->amount_minor);
    }
    FUZZ_EXPECT(found || !idem_str_equal(evidence->currency, IDEM_STR("EUR")));
}

static void check_outcome(const struct idem_evidence *evidence,
                          const json_t *theirs,
                          const json_t *object)
{
    bool moves =
        evidence->outcome == IDEM_OUTCOME_SUCCESS || evidence->outcome == IDEM_OUTCOME_REVERSED;
    bool canceled = theirs_is(object, "status", "canceled");
    bool failed = theirs_is(object, "status", "failed");

    FUZZ_EXPECT(moves == (evidence->amount_minor >= 0));
    if (moves) {
        check_amount(evidence, object);
    }
    if (evidence->outcome == IDEM_OUTCOME_SUCCESS) {
        FUZZ_EXPECT(theirs_is(object, "status", "succeeded") ||
                    theirs_is(object, "status", "requires_capture") || canceled);
    }
    FUZZ_EXPECT(evidence->outcome != IDEM_OUTCOME_REVERSED || canceled || failed);
    FUZZ_EXPECT(evidence->outcome != IDEM_OUTCOME_CLOSED_UNPAID || canceled);
    FUZZ_EXPECT(evidence->outcome != IDEM_OUTCOME_REFUSED_FINAL ||
                (theirs_is(object, "object", "refund") && (canceled || failed)));
    FUZZ_EXPECT(!theirs_is(theirs, "type", "payment_intent.payment_failed") ||
                evidence->outcome == IDEM_OUTCOME_UNKNOWN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_evidence evidence = { .outcome = IDEM_OUTCOME_NONE };
    if (size == 0 || size > MEMORY_SIZE / 2) {
        return 0;
    }
    bool live = data[0] == 'l';
    struct idem_str body = { .data = (const char *)data + 1, .len = size - 1 };
    sign(IDEM_STR("another body"));
    FUZZ_EXPECT(idem_str_equal(body, IDEM_STR("another body")) ||
                verify(body, live, &evidence) == IDEM_CALLBACK_FORGED);
    FUZZ_EXPECT(evidence.outcome == IDEM_OUTCOME_NONE);
    sign(body);
    enum idem_callback_verdict verdict = verify(body, live, &evidence);
    FUZZ_EXPECT(verdict == IDEM_CALLBACK_OK || verdict == IDEM_CALLBACK_IGNORED ||
                verdict == IDEM_CALLBACK_UNREADABLE);
    json_t *theirs = theirs_load(body);
    if (theirs != NULL && verdict == IDEM_CALLBACK_OK) { /* Else beyond what jansson reads. */
        const json_t *object = json_object_get(json_object_get(theirs, "data"), "object");
        FUZZ_EXPECT(idem_str_equal(evidence.event_id, theirs_text(theirs, "id")));
        check_place(theirs, live);
        check_named(&evidence, theirs, object);
        check_outcome(&evidence, theirs, object);
    }
    json_decref(theirs);
    return 0;
}
