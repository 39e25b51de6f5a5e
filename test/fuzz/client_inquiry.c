/*
 * Fuzzes what the client believes when it asks for an outcome, against jansson.
 *
 * The input is 'k' (asked by key) or 'o' (by the operation's address), three digits of a status,
 * the lines of a head, a zero byte and the body. Properties, for any bytes:
 *   - DONE and REFUSED come only with 200, from an object that is the operation asked for: its
 *     endpoint, in an answer that names our key, or its id;
 *   - DONE only if its state is "succeeded" and its stored answer is a 2xx, or a problem of ours
 *     with effect "done";
 *   - REFUSED only if its state is "failed" and its stored answer is a problem of ours with effect
 *     "none" and retry "new-key" or "query";
 *   - the answer that is given back has the status that jansson reads, and headers that are lines;
 *   - AGAIN is said only of an operation that was released, or expired, or whose stored answer says
 *     so, or where the service has no record.
 */
#include "client/inquiry.h"

#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/theirs.h"

#define KEY         "k1"
#define ID          "0197b2f0-1111-7abc-8def-0123456789ab"
#define BY_KEY      "https://api.example/v1/operations?endpoint=payments.create"
#define BY_ID       "https://api.example/v1/operations/" ID
#define STATUS_SIZE 3
#define MEMORY_SIZE 65536

static bool names_our_key(struct idem_str head)
{
    struct idem_str value = idem_head_find(head, "Idempotency-Key");
    return idem_str_equal(value, IDEM_STR(KEY)) || idem_str_equal(value, IDEM_STR("\"" KEY "\""));
}

static void check_asked_for(const struct idem_http_call *call, const json_t *theirs)
{
    FUZZ_EXPECT(call->status == 200 && json_is_object(theirs));
    if (strcmp(call->url, BY_KEY) == 0) {
        FUZZ_EXPECT(theirs_is(theirs, "endpoint", "payments.create"));
        FUZZ_EXPECT(names_our_key(call->head));
        return;
    }
    FUZZ_EXPECT(theirs_is(theirs, "id", ID));
    FUZZ_EXPECT(idem_head_find(call->head, "Idempotency-Key").data == NULL ||
                names_our_key(call->head));
}

/* The body of the stored answer: JSON as it stands, or text that is JSON. */
static json_t *stored_body(const json_t *theirs)
{
    json_t *body = json_object_get(json_object_get(theirs, "answer"), "body");
    return json_is_string(body) ? theirs_load(theirs_str(body)) : json_incref(body);
}

static bool is_problem(const json_t *theirs, const char *effect)
{
    return idem_str_starts(theirs_text(theirs, "type"), IDEM_STR("urn:idem:problem:")) &&
           theirs_is(theirs, "effect", effect);
}

static void check_final(const struct idem_reading *reading, const json_t *theirs)
{
    bool done = reading->meaning == IDEM_MEANING_DONE;
    json_t *body = stored_body(theirs);
    json_int_t status =
        json_integer_value(json_object_get(json_object_get(theirs, "answer"), "status"));
    FUZZ_EXPECT(theirs_is(theirs, "state", done ? "succeeded" : "failed"));
    if (done) {
        FUZZ_EXPECT((status >= 200 && status < 300) || (status >= 400 && is_problem(body, "done")));
    } else {
        FUZZ_EXPECT(status >= 400 && is_problem(body, "none"));
        FUZZ_EXPECT(theirs_is(body, "retry", "new-key") || theirs_is(body, "retry", "query"));
    }
    json_decref(body);
}

/* Every line has a name and a colon, ends, and has no other control byte. */
static void check_headers(struct idem_str headers)
{
    FUZZ_EXPECT(headers.len == 0 || headers.data[headers.len - 1] == '\n');
    for (size_t i = 0; i < headers.len; i++) {
        unsigned char byte = (unsigned char)headers.data[i];
        FUZZ_EXPECT(byte >= 0x20 || byte == '\t' || byte == '\n');
    }
    while (headers.len > 0) {
        struct idem_str line = idem_str_next(&headers, '\n');
        FUZZ_EXPECT(idem_str_find(line, ':') < line.len);
    }
}

static void check_again(const struct idem_http_call *call, const json_t *theirs)
{
    bool no_record = call->status == 404 && is_problem(theirs, "unknown");
    FUZZ_EXPECT(no_record || call->status == 200);
    FUZZ_EXPECT(no_record || theirs_is(theirs, "state", "released") ||
                theirs_is(theirs, "state", "expired") || theirs_is(theirs, "state", "failed"));
}

static void check(const struct idem_http_call *call,
                  const struct idem_reading *reading,
                  const struct idem_inquiry_answer *answer,
                  const json_t *theirs)
{
    if (reading->meaning == IDEM_MEANING_DONE || reading->meaning == IDEM_MEANING_REFUSED) {
        FUZZ_EXPECT(reading->next == IDEM_NEXT_STOP);
        check_asked_for(call, theirs);
        check_final(reading, theirs);
    }
    if (reading->next == IDEM_NEXT_AGAIN) {
        check_again(call, theirs);
    }
    if (answer->status != 0) {
        const json_t *status = json_object_get(json_object_get(theirs, "answer"), "status");
        FUZZ_EXPECT(json_integer_value(status) == answer->status);
        check_asked_for(call, theirs);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct idem_http_call call;
    static char memory[MEMORY_SIZE];
    struct idem_inquiry_answer answer;
    struct idem_buf buf;
    struct idem_str text = { .data = (const char *)data, .len = size };
    int64_t status = 0;
    if (size < 1 + STATUS_SIZE || !idem_str_to_i64(idem_str_slice(text, 1, STATUS_SIZE), &status)) {
        return 0;
    }
    struct idem_str body = idem_str_slice(text, 1 + STATUS_SIZE, size);
    call.url = data[0] == 'k' ? BY_KEY : BY_ID;
    call.verdict = IDEM_HTTP_ANSWERED;
    call.status = (uint16_t)status;
    call.head = idem_str_next(&body, '\0');
    call.answer = body;
    idem_buf_init(&buf, memory, sizeof(memory));
    struct idem_reading reading =
        idem_inquiry_read(idem_dialect_get(IDEM_DIALECT_IDEM), IDEM_STR(KEY), &call, &buf, &answer);
    check_headers(answer.headers);
    json_t *theirs = theirs_load(body);
    if (theirs != NULL) { /* Else numbers beyond jansson's range, or names with zero bytes. */
        check(&call, &reading, &answer, theirs);
    }
    json_decref(theirs);
    return 0;
}
