/*
 * Fuzzes what is believed of a bridge's callback, against jansson.
 *
 * The input is the body, which is signed here. Properties, for any bytes:
 *   - without its signature, or with one byte more, it is FORGED and nothing is read of it;
 *   - what is OK names an event and an effect id of our form, exactly as jansson reads them, and
 *     each other text likewise;
 *   - SUCCESS and REVERSED are one word each, with an amount and a currency, and the amount is the
 *     digits that jansson reads; the other outcomes are one word each; any other word is UNKNOWN;
 *   - reading it again gives the same.
 */
#include "provider/bridge.h"

#include <string.h>

#include "base/clock.h"
#include "base/currency.h"
#include "base/money.h"

#include "fuzz/fuzz.h"
#include "fuzz/theirs.h"

#define NOW_S       INT64_C(1764400000)
#define SECRET      "a secret"
#define MEMORY_SIZE 65536

static char field_memory[128];
static char memory[MEMORY_SIZE];
static char again_memory[MEMORY_SIZE];

static struct idem_str field_of(const void *head, struct idem_str name)
{
    FUZZ_EXPECT(idem_str_equal(name, IDEM_STR("Bridge-Signature")));
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
                                         char *into,
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
    };
    struct idem_buf buf;
    idem_buf_init(&buf, into, MEMORY_SIZE);
    return idem_bridge_adapter.callbacks->verify(&in, &place, &buf, ret_evidence);
}

static bool is_same(struct idem_str ours, const json_t *theirs, const char *name)
{
    return idem_str_equal(ours, theirs_text(theirs, name));
}

static void check_money(const struct idem_evidence *evidence, const json_t *theirs)
{
    char text_memory[IDEM_AMOUNT_TEXT_MAX];
    struct idem_buf buf;
    int exponent = idem_currency_exponent(evidence->currency);
    FUZZ_EXPECT(exponent >= 0 && evidence->amount_minor > 0);
    idem_buf_init(&buf, text_memory, sizeof(text_memory));
    idem_amount_print(evidence->amount_minor, exponent, &buf);
    FUZZ_EXPECT(is_same(idem_buf_str(&buf), theirs, "amount"));
}

static void check_outcome(const struct idem_evidence *evidence, const json_t *theirs)
{
    static const char *const words[IDEM_OUTCOME_COUNT] = {
        [IDEM_OUTCOME_SUCCESS] = "succeeded",     [IDEM_OUTCOME_REVERSED] = "reversed",
        [IDEM_OUTCOME_REFUSED_FINAL] = "refused", [IDEM_OUTCOME_CLOSED_UNPAID] = "closed",
        [IDEM_OUTCOME_PROCESSING] = "processing",
    };
    bool known = false;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(words); i++) {
        known = known || (words[i] != NULL && theirs_is(theirs, "outcome", words[i]));
    }
    FUZZ_EXPECT(known == (evidence->outcome != IDEM_OUTCOME_UNKNOWN));
    FUZZ_EXPECT(!known || words[evidence->outcome] != NULL);
    FUZZ_EXPECT(!known || theirs_is(theirs, "outcome", words[evidence->outcome]));
    if (evidence->outcome == IDEM_OUTCOME_SUCCESS || evidence->outcome == IDEM_OUTCOME_REVERSED) {
        check_money(evidence, theirs);
    }
}

static void check_evidence(const struct idem_evidence *evidence, const json_t *theirs)
{
    struct idem_scope scope;
    FUZZ_EXPECT(json_is_object(theirs));
    FUZZ_EXPECT(idem_effect_id_scope(evidence->effect_id, &scope));
    FUZZ_EXPECT(evidence->event_id.len > 0 && is_same(evidence->event_id, theirs, "event"));
    FUZZ_EXPECT(is_same(evidence->effect_id, theirs, "id"));
    FUZZ_EXPECT(is_same(evidence->currency, theirs, "currency"));
    FUZZ_EXPECT(is_same(evidence->order_no, theirs, "order_no"));
    FUZZ_EXPECT(is_same(evidence->reference, theirs, "reference"));
    FUZZ_EXPECT(is_same(evidence->account, theirs, "account"));
    FUZZ_EXPECT(is_same(evidence->code, theirs, "code"));
    FUZZ_EXPECT(is_same(evidence->message, theirs, "message"));
    FUZZ_EXPECT(evidence->happened_us >= 0);
    check_outcome(evidence, theirs);
}

static void check_forged(struct idem_str body)
{
    struct idem_evidence evidence = { .outcome = IDEM_OUTCOME_NONE };
    char last = field_memory[strlen(field_memory) - 1];
    field_memory[strlen(field_memory) - 1] = last == '0' ? '1' : '0';
    FUZZ_EXPECT(verify(body, memory, &evidence) == IDEM_CALLBACK_FORGED);
    FUZZ_EXPECT(evidence.outcome == IDEM_OUTCOME_NONE);
    field_memory[strlen(field_memory) - 1] = last;
    if (body.len > 0) {
        FUZZ_EXPECT(verify(idem_str_slice(body, 1, body.len), memory, &evidence) ==
                    IDEM_CALLBACK_FORGED);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_str body = { .data = size == 0 ? "" : (const char *)data, .len = size };
    struct idem_evidence evidence = { .outcome = IDEM_OUTCOME_NONE };
    struct idem_evidence again = { .outcome = IDEM_OUTCOME_NONE };
    if (size > MEMORY_SIZE / 2) {
        return 0;
    }
    sign(body);
    check_forged(body);
    enum idem_callback_verdict verdict = verify(body, memory, &evidence);
    FUZZ_EXPECT(verdict == IDEM_CALLBACK_OK || verdict == IDEM_CALLBACK_IGNORED ||
                verdict == IDEM_CALLBACK_UNREADABLE);
    FUZZ_EXPECT(verify(body, again_memory, &again) == verdict);
    FUZZ_EXPECT(again.outcome == evidence.outcome && again.amount_minor == evidence.amount_minor);
    FUZZ_EXPECT(idem_str_equal(again.effect_id, evidence.effect_id));
    json_t *theirs = theirs_load(body);
    if (theirs != NULL && verdict == IDEM_CALLBACK_OK) { /* Else beyond what jansson reads. */
        check_evidence(&evidence, theirs);
    }
    json_decref(theirs);
    return 0;
}
