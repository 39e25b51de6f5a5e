/*
 * Fuzzes what the client takes an answer to mean.
 *
 * The input is a digit (the dialect), three digits of a status, the lines of a head, a zero byte
 * and the body. Properties, for any bytes, with the words read a second time, the body by jansson:
 *   - DONE is a 2xx that is whole (not 202, 206, 207), no web page, names no other key and, where
 *     the dialect sends the key back, names ours; or an error that is a problem of ours with
 *     effect "done";
 *   - REFUSED is a problem of ours with effect "none" and retry "new-key" or "query", or what
 *     Stripe has stored: 402, or a 4xx that is marked as replayed;
 *   - without an answer neither, whatever the bytes in its place;
 *   - an answer to another key means neither, whatever it says.
 */
#include "client/meaning.h"

#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/theirs.h"

#define KEY         "8e03978e-40d5-43e8-bc93-6894a57f9324"
#define STATUS_SIZE 3

/* Written as bare or as quoted text. */
static bool is_our_key(struct idem_str value)
{
    return idem_str_equal(value, IDEM_STR(KEY)) || idem_str_equal(value, IDEM_STR("\"" KEY "\""));
}

struct fields {
    size_t count;
    size_t ours; /* With our key as the value. */
    size_t yes;  /* With "true". */
};

/* All lines of one name, a second time. */
static struct fields fields_reread(struct idem_str head, const char *name)
{
    struct fields fields = { .count = 0 };
    while (name != NULL && head.len > 0) {
        struct idem_str value = idem_str_next(&head, '\n');
        struct idem_str field = idem_str_next(&value, ':');
        if (value.data != NULL && idem_str_equal_nocase(field, idem_str_from(name))) {
            value = idem_str_trim(value);
            fields.count += 1;
            fields.ours += is_our_key(value) ? 1 : 0;
            fields.yes += idem_str_equal_nocase(value, IDEM_STR("true")) ? 1 : 0;
        }
    }
    return fields;
}

static bool is_own_problem(const json_t *theirs)
{
    return idem_str_starts(theirs_text(theirs, "type"), IDEM_STR("urn:idem:problem:"));
}

static void check_done(const struct idem_dialect *dialect,
                       const struct idem_http_call *call,
                       const json_t *theirs)
{
    struct fields keys = fields_reread(call->head, dialect->key_header);
    FUZZ_EXPECT(keys.ours == keys.count);
    if (call->status >= 400) {
        FUZZ_EXPECT(call->status < 600);
        FUZZ_EXPECT(is_own_problem(theirs) && theirs_is(theirs, "effect", "done"));
        return;
    }
    FUZZ_EXPECT(call->status >= 200 && call->status < 300 && call->status != 202);
    FUZZ_EXPECT(call->status != 206 && call->status != 207);
    FUZZ_EXPECT(keys.count > 0 || !dialect->echoes_key);
    struct idem_str type = call->content_type;
    FUZZ_EXPECT(
        !idem_str_equal_nocase(idem_str_trim(idem_str_next(&type, ';')), IDEM_STR("text/html")));
}

static void check_refused(const struct idem_dialect *dialect,
                          const struct idem_http_call *call,
                          const json_t *theirs)
{
    struct fields keys = fields_reread(call->head, dialect->key_header);
    FUZZ_EXPECT(keys.ours == keys.count && call->status >= 400 && call->status < 600);
    if (is_own_problem(theirs) && theirs_is(theirs, "effect", "none")) {
        FUZZ_EXPECT(theirs_is(theirs, "retry", "new-key") || theirs_is(theirs, "retry", "query"));
        return;
    }
    FUZZ_EXPECT(dialect->id == IDEM_DIALECT_STRIPE && call->status < 500);
    FUZZ_EXPECT(call->status == 402 || fields_reread(call->head, dialect->replayed).yes > 0);
}

static struct idem_reading read_call(const struct idem_dialect *dialect,
                                     const struct idem_http_call *call)
{
    struct idem_signal signal;
    idem_signal_read(dialect, IDEM_STR(KEY), call, 1, &signal);
    FUZZ_EXPECT(memchr(signal.code, '\0', sizeof(signal.code)) != NULL);
    return idem_meaning_of(dialect, &signal);
}

static void check_lost(const struct idem_dialect *dialect, struct idem_http_call *call)
{
    static const enum idem_http_verdict lost[] = { IDEM_HTTP_NOT_SENT, IDEM_HTTP_UNKNOWN };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(lost); i++) {
        call->verdict = lost[i];
        struct idem_reading reading = read_call(dialect, call);
        FUZZ_EXPECT(reading.meaning != IDEM_MEANING_DONE);
        FUZZ_EXPECT(reading.meaning != IDEM_MEANING_REFUSED);
        FUZZ_EXPECT(lost[i] != IDEM_HTTP_UNKNOWN || reading.meaning == IDEM_MEANING_UNSURE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct idem_http_call call;
    struct idem_str text = { .data = (const char *)data, .len = size };
    int64_t status = 0;
    if (size < 1 + STATUS_SIZE || data[0] < '1' || data[0] >= '0' + IDEM_DIALECT_COUNT ||
        !idem_str_to_i64(idem_str_slice(text, 1, STATUS_SIZE), &status)) {
        return 0;
    }
    const struct idem_dialect *dialect = idem_dialect_get((enum idem_dialect_id)(data[0] - '0'));
    struct idem_str body = idem_str_slice(text, 1 + STATUS_SIZE, size);
    struct idem_str head = idem_str_next(&body, '\0');
    call.verdict = IDEM_HTTP_ANSWERED;
    call.status = (uint16_t)status;
    call.head = head;
    call.answer = body;
    call.content_type = idem_head_find(head, "Content-Type");
    struct idem_reading reading = read_call(dialect, &call);

    json_t *theirs = theirs_load(body);
    if (reading.meaning == IDEM_MEANING_DONE) {
        check_done(dialect, &call, theirs);
    }
    if (reading.meaning == IDEM_MEANING_REFUSED) {
        check_refused(dialect, &call, theirs);
    }
    json_decref(theirs);
    check_lost(dialect, &call);
    return 0;
}
