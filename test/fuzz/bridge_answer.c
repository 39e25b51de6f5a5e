/*
 * Fuzzes what is believed of a provider's answer, against jansson.
 *
 * The input is the call ('s' send, 'q' query, 'c' close), three digits of an HTTP status, and the
 * body. The effect is always the same. Properties, for any bytes:
 *   - SUCCESS is 200, `succeeded`, an id, an amount and a currency, each exactly as jansson reads
 *     it, and the amount is those digits: so the core, which compares with the effect, can never
 *     take another id, amount or currency for ours;
 *   - PROCESSING, CLOSED_UNPAID and REFUSED_FINAL name our id;
 *   - NOT_FOUND answers a query and NOT_EXECUTED a send, and neither names another id;
 *   - each of these is one word at one of the statuses that docs/bridge.md lists for it; everything
 *     else is UNKNOWN;
 *   - the call's kind changes nothing but whether it is believed.
 */
#include "provider/bridge.h"

#include <string.h>

#include "base/currency.h"
#include "base/money.h"

#include "fuzz/fuzz.h"
#include "fuzz/theirs.h"

#define OUR_ID      "c0123456789abcdefghjkmnpqrs"
#define STATUS_SIZE 3
#define MEMORY_SIZE 16384

static const struct idem_effect our_effect = {
    .kind = IDEM_EFFECT_KIND_CHARGE,
    .id = { .data = OUR_ID, .len = IDEM_EFFECT_ID_LEN },
    .amount_minor = 10000,
    .currency = { .data = "CNY", .len = 3 },
};

static struct idem_evidence decode(enum idem_call_kind kind,
                                   uint16_t status,
                                   struct idem_str body,
                                   char *memory)
{
    struct idem_buf buf;
    struct idem_evidence evidence = { .source = IDEM_SOURCE_NONE };
    struct idem_wire_answer answer = { .status = status, .body = body, .retry_after_us = 7 };
    idem_buf_init(&buf, memory, MEMORY_SIZE);
    idem_bridge_adapter.decode(kind, &our_effect, &answer, &buf, &evidence);
    FUZZ_EXPECT(evidence.retry_after_us == 7);
    return evidence;
}

/* The amount that the digits of jansson's text are. */
static void check_amount(const struct idem_evidence *evidence, struct idem_str text)
{
    char memory[IDEM_AMOUNT_TEXT_MAX];
    struct idem_buf buf;
    int exponent = idem_currency_exponent(evidence->currency);
    FUZZ_EXPECT(exponent >= 0 && evidence->amount_minor > 0);
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_amount_print(evidence->amount_minor, exponent, &buf);
    FUZZ_EXPECT(!buf.full && idem_str_equal(idem_buf_str(&buf), text));
}

static void check_success(const struct idem_evidence *evidence, const json_t *theirs)
{
    FUZZ_EXPECT(evidence->effect_id.len > 0);
    FUZZ_EXPECT(idem_str_equal(evidence->effect_id, theirs_text(theirs, "id")));
    FUZZ_EXPECT(idem_str_equal(evidence->currency, theirs_text(theirs, "currency")));
    check_amount(evidence, theirs_text(theirs, "amount"));
}

static bool names_another(const json_t *theirs)
{
    const json_t *id = json_object_get(theirs, "id");
    return id != NULL && !json_is_null(id) && json_string_length(id) > 0 &&
           !theirs_is(theirs, "id", OUR_ID);
}

/* What the word at this status may mean at all. */
static void check_outcome(const struct idem_evidence *evidence,
                          enum idem_call_kind kind,
                          uint16_t status,
                          const json_t *theirs)
{
    bool ours = theirs_is(theirs, "id", OUR_ID);
    bool refused = (status == 200 && theirs_is(theirs, "status", "declined")) ||
                   ((status == 400 || status == 422) && theirs_is(theirs, "status", "invalid"));
    bool turned_away = status == 401 || status == 403 || status == 429 || status == 503;
    switch (evidence->outcome) {
    case IDEM_OUTCOME_UNKNOWN:
        return;
    case IDEM_OUTCOME_SUCCESS:
        FUZZ_EXPECT(status == 200 && theirs_is(theirs, "status", "succeeded"));
        check_success(evidence, theirs);
        return;
    case IDEM_OUTCOME_REFUSED_FINAL:
        FUZZ_EXPECT(refused && ours);
        return;
    case IDEM_OUTCOME_PROCESSING:
        FUZZ_EXPECT(status == 200 && theirs_is(theirs, "status", "processing") && ours);
        return;
    case IDEM_OUTCOME_CLOSED_UNPAID:
        FUZZ_EXPECT(status == 200 && theirs_is(theirs, "status", "closed") && ours);
        return;
    case IDEM_OUTCOME_NOT_FOUND:
        FUZZ_EXPECT(kind == IDEM_CALL_QUERY && status == 404 && !names_another(theirs));
        FUZZ_EXPECT(theirs_is(theirs, "status", "not_found"));
        return;
    case IDEM_OUTCOME_NOT_EXECUTED:
        FUZZ_EXPECT(kind == IDEM_CALL_SEND && turned_away && !names_another(theirs));
        FUZZ_EXPECT(theirs_is(theirs, "status", "not_executed"));
        return;
    case IDEM_OUTCOME_REVERSED: /* Only a callback says so. */
    case IDEM_OUTCOME_NONE:
    case IDEM_OUTCOME_COUNT:
        break;
    }
    FUZZ_EXPECT(evidence->outcome == IDEM_OUTCOME_UNKNOWN); /* It is none that there is. */
}

/* The same bytes in answer to another call are the same, or nothing. */
static void check_other_calls(const struct idem_evidence *evidence,
                              uint16_t status,
                              struct idem_str body)
{
    char memory[MEMORY_SIZE];
    for (unsigned kind = IDEM_CALL_SEND; kind < IDEM_CALL_COUNT; kind++) {
        struct idem_evidence other = decode((enum idem_call_kind)kind, status, body, memory);
        FUZZ_EXPECT(other.outcome == evidence->outcome || other.outcome == IDEM_OUTCOME_UNKNOWN ||
                    evidence->outcome == IDEM_OUTCOME_UNKNOWN);
        FUZZ_EXPECT(idem_str_equal(other.effect_id, evidence->effect_id));
        FUZZ_EXPECT(other.amount_minor == evidence->amount_minor);
    }
}

static enum idem_call_kind kind_from(uint8_t letter)
{
    if (letter == 'q') {
        return IDEM_CALL_QUERY;
    }
    return letter == 'c' ? IDEM_CALL_CLOSE : IDEM_CALL_SEND;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char memory[MEMORY_SIZE];
    struct idem_str text = { .data = (const char *)data, .len = size };
    int64_t status = 0;
    if (size < 1 + STATUS_SIZE || size > MEMORY_SIZE ||
        !idem_str_to_i64(idem_str_slice(text, 1, STATUS_SIZE), &status)) {
        return 0;
    }
    enum idem_call_kind kind = kind_from(data[0]);
    struct idem_str body = idem_str_slice(text, 1 + STATUS_SIZE, size);
    struct idem_evidence evidence = decode(kind, (uint16_t)status, body, memory);
    check_other_calls(&evidence, (uint16_t)status, body);
    json_t *theirs = theirs_load(body);
    if (theirs != NULL) { /* Else numbers beyond jansson's range, or names with zero bytes. */
        check_outcome(&evidence, kind, (uint16_t)status, theirs);
    }
    json_decref(theirs);
    return 0;
}
