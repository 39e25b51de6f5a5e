/*
 * A question decides about money as much as a send does, so its answer is believed only if it is
 * tied to the intent twice: it comes from where the request went (idem_inquiry_url() asks nowhere
 * else), and the operation in it is the one that was asked for, by the id in the address or by the
 * key in the answer and the endpoint in the operation. Then the stored answer must agree with the
 * operation's state: one that succeeded has a success, one that failed has none. Everything else is
 * "no usable answer", which leaves everything as it was.
 *
 * The operation says everything of the outcome but its own age: an operation that is expired is
 * over, but how it ended is only said in answer to the request itself (410 with its effect). So
 * that is UNSURE, AGAIN, which the window of the key still guards.
 */
#include "client/inquiry.h"

#include <stdlib.h>

#include "base/json.h"
#include "client/target.h"

#define DOCUMENT_MAX ((size_t)4 * 1024 * 1024) /* Bytes; four times what an answer has room for. */

#define STATUS_OK        200
#define STATUS_NOT_FOUND 404
#define STATUS_MIN       100
#define STATUS_MAX       599

/* A request's endpoint, by the last parts of its path. */
struct endpoint {
    const char *end;
    const char *name;
};

static const struct endpoint endpoints[] = {
    { "capture", "payments.capture" },
    { "cancel", "payments.cancel" },
    { "refunds", "refunds.create" },
};

#define PAYMENTS   "/v1/payments"
#define OPERATIONS "/v1/operations"

/* ---- addresses ---- */

static struct idem_str without_query(struct idem_str url)
{
    return idem_str_slice(url, 0, idem_str_find(url, '?'));
}

/* Where `part` stands last in `text`; text.len: nowhere. */
static size_t find_last(struct idem_str text, struct idem_str part)
{
    for (size_t at = text.len + 1 - (part.len < text.len ? part.len : text.len); at > 0; at--) {
        if (idem_str_starts(idem_str_slice(text, at - 1, text.len), part)) {
            return at - 1;
        }
    }
    return text.len;
}

/* The endpoint behind "/v1/payments": nothing, or "/{id}/" and a word. NULL: it is none. */
static const char *endpoint_of(struct idem_str rest)
{
    if (rest.len == 0) {
        return "payments.create";
    }
    if (!idem_str_equal(idem_str_next(&rest, '/'), IDEM_STR(""))) {
        return NULL;
    }
    struct idem_str id = idem_str_next(&rest, '/');
    for (size_t i = 0; id.len > 0 && i < IDEM_ARRAY_COUNT(endpoints); i++) {
        if (idem_str_equal(rest, idem_str_from(endpoints[i].end))) {
            return endpoints[i].name;
        }
    }
    return NULL;
}

/* Appends the address of the operation of a key; false if the request's tells no endpoint. */
static bool by_key_url(struct idem_str url, struct idem_buf *buf)
{
    const struct idem_str payments = IDEM_STR(PAYMENTS);
    struct idem_str path = without_query(url);
    size_t at = find_last(path, payments);
    if (at == path.len || idem_target_check(url) != IDEM_TARGET_OK ||
        at < idem_target_origin(url).len) { /* A host may be called "v1". */
        return false;
    }
    const char *endpoint = endpoint_of(idem_str_slice(path, at + payments.len, path.len));
    if (endpoint == NULL) {
        return false;
    }
    idem_buf_add(buf, idem_str_slice(path, 0, at));
    idem_buf_add(buf, IDEM_STR(OPERATIONS "?endpoint="));
    idem_buf_add(buf, idem_str_from(endpoint));
    return true;
}

void idem_inquiry_key_url(const struct idem_dialect *dialect,
                          struct idem_str url,
                          struct idem_buf *buf)
{
    (void)(dialect->has_operations && by_key_url(url, buf)); /* Where it tells none: nothing. */
}

struct idem_str idem_inquiry_best(const struct idem_inquiry_places *places)
{
    if (places->operation_url.len > 0) {
        return places->operation_url;
    }
    return places->status_url.len > 0 ? places->status_url : places->key_url;
}

enum idem_inquiry_way idem_inquiry_url(const struct idem_inquiry_from *from, struct idem_buf *buf)
{
    if (from->operation_url.len > 0 && idem_target_same_origin(from->url, from->operation_url)) {
        idem_buf_add(buf, from->operation_url);
        return IDEM_INQUIRY_OPERATION;
    }
    if (from->dialect->has_operations && by_key_url(from->url, buf)) {
        return IDEM_INQUIRY_KEY;
    }
    if (from->status_url.len > 0) {
        idem_buf_add(buf, from->status_url);
        return IDEM_INQUIRY_BUSINESS;
    }
    return IDEM_INQUIRY_NONE;
}

/* A path from the root: not "//host", which would be another one. */
static bool is_path(struct idem_str location)
{
    if (location.len == 0 || location.data[0] != '/' || idem_str_starts(location, IDEM_STR("//"))) {
        return false;
    }
    for (size_t i = 0; i < location.len; i++) {
        char byte = location.data[i];
        if (byte < 0x21 || byte > 0x7E || byte == '\\' || byte == '#') {
            return false;
        }
    }
    return true;
}

bool idem_inquiry_resolve(struct idem_str url, struct idem_str location, struct idem_buf *buf)
{
    size_t room = buf->max - buf->len;
    if (is_path(location) && idem_target_check(url) == IDEM_TARGET_OK) {
        struct idem_str origin = idem_target_origin(url);
        if (origin.len + location.len > room) {
            return false;
        }
        idem_buf_add(buf, origin);
    } else if (!idem_target_same_origin(url, location) || location.len > room) {
        return false;
    }
    idem_buf_add(buf, location);
    return true;
}

/* ---- what was said ---- */

static struct idem_reading reading(enum idem_meaning meaning,
                                   enum idem_next next,
                                   const char *why,
                                   const struct idem_signal *signal)
{
    return (struct idem_reading){
        .meaning = meaning,
        .next = next,
        .why = why,
        .retry_after_us = signal->retry_after_us,
    };
}

static struct idem_reading unusable(const char *why, const struct idem_signal *signal)
{
    return reading(IDEM_MEANING_UNSURE, IDEM_NEXT_ASK, why, signal);
}

/* The endpoint that a question by key asks for; data NULL: it is a question by address. */
static struct idem_str asked_endpoint(const struct idem_http_call *call)
{
    const struct idem_str question = IDEM_STR(OPERATIONS "?endpoint=");
    struct idem_str url = idem_str_from(call->url);
    size_t at = find_last(url, question);
    return at == url.len ? (struct idem_str){ .data = NULL }
                         : idem_str_slice(url, at + question.len, url.len);
}

static bool member_is(const struct idem_json *json, struct idem_str name, struct idem_str expected)
{
    size_t index = idem_json_member(json, 0, name);
    return index != 0 && json->tokens[index].kind == IDEM_JSON_STRING &&
           !json->tokens[index].escaped && expected.len > 0 &&
           idem_str_equal(json->tokens[index].raw, expected);
}

/* The operation is the one that was asked for. */
static bool is_asked_for(const struct idem_json *json, const struct idem_http_call *call)
{
    struct idem_str endpoint = asked_endpoint(call);
    if (endpoint.data != NULL) {
        return member_is(json, IDEM_STR("endpoint"), endpoint);
    }
    struct idem_str path = without_query(idem_str_from(call->url));
    size_t slash = find_last(path, IDEM_STR("/"));
    return slash < path.len &&
           member_is(json, IDEM_STR("id"), idem_str_slice(path, slash + 1, path.len));
}

/* A name or value that can stand in a line. */
static bool is_line_text(struct idem_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7F) {
            return false;
        }
    }
    return true;
}

/* Appends the members of the object at `object` as lines; what cannot stand in one is left out. */
static struct idem_str headers_read(const struct idem_json *json,
                                    size_t object,
                                    struct idem_buf *memory)
{
    size_t from = memory->len;
    size_t name = object + 1;
    for (uint32_t i = 0; i < json->tokens[object].count; i++) {
        size_t value = json->tokens[name].next;
        size_t line = memory->len;
        idem_json_unescape(json, name, memory);
        idem_buf_add(memory, IDEM_STR(": "));
        if (json->tokens[value].kind == IDEM_JSON_STRING) {
            idem_json_unescape(json, value, memory);
        }
        struct idem_str text = idem_str_slice(idem_buf_str(memory), line, memory->len);
        if (json->tokens[value].kind == IDEM_JSON_STRING && is_line_text(text)) {
            idem_buf_add_char(memory, '\n');
        } else {
            memory->len = line;
        }
        name = json->tokens[value].next;
    }
    return idem_str_slice(idem_buf_str(memory), from, memory->len);
}

/*
 * The bytes as they were stored. The API shows a body that is JSON as it stands, without the line
 * end that each of its JSON bodies has (src/api/operation.c), any other one as a string, none as
 * null.
 */
static struct idem_str body_read(const struct idem_json *json, size_t body, struct idem_buf *memory)
{
    const struct idem_json_token *token = &json->tokens[body];
    size_t from = memory->len;
    if (token->kind == IDEM_JSON_NULL) {
        return (struct idem_str){ .data = NULL };
    }
    if (token->kind == IDEM_JSON_STRING) {
        idem_json_unescape(json, body, memory);
    } else {
        idem_buf_add(memory, token->raw);
        idem_buf_add_char(memory, '\n');
    }
    return idem_str_slice(idem_buf_str(memory), from, memory->len);
}

/* False: the operation has no answer that can be read. */
static bool answer_read(const struct idem_json *json,
                        struct idem_buf *memory,
                        struct idem_inquiry_answer *ret_answer)
{
    size_t answer = idem_json_member(json, 0, IDEM_STR("answer"));
    if (answer == 0 || json->tokens[answer].kind != IDEM_JSON_OBJECT) {
        return false;
    }
    size_t status = idem_json_member(json, answer, IDEM_STR("status"));
    size_t headers = idem_json_member(json, answer, IDEM_STR("headers"));
    size_t body = idem_json_member(json, answer, IDEM_STR("body"));
    int64_t number = 0;
    if (status == 0 || json->tokens[status].kind != IDEM_JSON_NUMBER ||
        !idem_str_to_i64(json->tokens[status].raw, &number) || number < STATUS_MIN ||
        number > STATUS_MAX || headers == 0 || json->tokens[headers].kind != IDEM_JSON_OBJECT ||
        body == 0) {
        return false;
    }
    const struct idem_inquiry_answer read = {
        .status = (uint16_t)number,
        .headers = headers_read(json, headers, memory),
        .body = body_read(json, body, memory),
    };
    if (memory->full) {
        return false;
    }
    *ret_answer = read;
    return true;
}

/* The stored answer, as if it had come in answer to a send just now. */
static struct idem_reading final_read(const struct idem_dialect *dialect,
                                      const struct idem_json *json,
                                      const struct idem_signal *asked,
                                      struct idem_buf *memory,
                                      struct idem_inquiry_answer *ret_answer)
{
    struct idem_inquiry_answer answer;
    if (!answer_read(json, memory, &answer)) {
        return unusable("the operation is over, and its answer cannot be read", asked);
    }
    struct idem_signal signal = {
        .verdict = IDEM_HTTP_ANSWERED,
        .status = answer.status,
        .echoed = IDEM_SAID_YES,
        .replayed = IDEM_SAID_YES,
    };
    idem_signal_read_error(dialect, answer.body, &signal);
    struct idem_reading read = idem_meaning_of(dialect, &signal);
    bool succeeded = member_is(json, IDEM_STR("state"), IDEM_STR("succeeded"));
    if (succeeded != (read.meaning == IDEM_MEANING_DONE)) {
        return unusable("the operation's state and its answer contradict each other", asked);
    }
    *ret_answer = answer;
    return read;
}

static struct idem_reading operation_read(const struct idem_dialect *dialect,
                                          const struct idem_json *json,
                                          const struct idem_signal *asked,
                                          struct idem_buf *memory,
                                          struct idem_inquiry_answer *ret_answer)
{
    const struct idem_str state = IDEM_STR("state");
    if (member_is(json, state, IDEM_STR("succeeded")) ||
        member_is(json, state, IDEM_STR("failed"))) {
        return final_read(dialect, json, asked, memory, ret_answer);
    }
    if (member_is(json, state, IDEM_STR("processing"))) {
        return reading(IDEM_MEANING_RUNNING, IDEM_NEXT_ASK, "it is being worked on", asked);
    }
    if (member_is(json, state, IDEM_STR("unknown")) || member_is(json, state, IDEM_STR("parked"))) {
        return reading(IDEM_MEANING_RUNNING, IDEM_NEXT_ASK,
                       "the service is finding out what became of it", asked);
    }
    if (member_is(json, state, IDEM_STR("released"))) {
        return reading(IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN, "it was not executed", asked);
    }
    if (member_is(json, state, IDEM_STR("expired"))) {
        return reading(IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN,
                       "it is over, and its answer is not kept any more", asked);
    }
    return unusable("the operation is in a state that is not known here", asked);
}

/* An idem problem that says there is no record. */
static bool is_no_record(const struct idem_signal *signal)
{
    bool said = signal->effect == IDEM_SAID_EFFECT_UNKNOWN;
    struct idem_str code = idem_str_from(signal->code);
    return signal->status == STATUS_NOT_FOUND && said &&
           ((signal->retry == IDEM_SAID_RETRY_SAME_KEY &&
             idem_str_equal(code, IDEM_STR("key-unknown"))) ||
            (signal->retry == IDEM_SAID_RETRY_NEVER &&
             idem_str_equal(code, IDEM_STR("not-found"))));
}

struct idem_reading idem_inquiry_read(const struct idem_dialect *dialect,
                                      struct idem_str key,
                                      const struct idem_http_call *call,
                                      struct idem_buf *memory,
                                      struct idem_inquiry_answer *ret_answer)
{
    *ret_answer = (struct idem_inquiry_answer){ .status = 0 };
    struct idem_signal signal;
    idem_signal_read(dialect, key, call, 0, &signal);
    if (signal.too_long) {
        return unusable("the question's answer is longer than there is room for (answer_max)",
                        &signal);
    }
    if (signal.verdict != IDEM_HTTP_ANSWERED) {
        return unusable("the question was not answered", &signal);
    }
    bool by_key = asked_endpoint(call).data != NULL;
    if (signal.echoed == IDEM_SAID_NO || (by_key && signal.echoed != IDEM_SAID_YES)) {
        return unusable("the answer to the question does not name the key", &signal);
    }
    if (is_no_record(&signal)) {
        return reading(IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN,
                       "the service has no record of it, which is no proof", &signal);
    }
    if (signal.status != STATUS_OK || call->answer.len > DOCUMENT_MAX) {
        return unusable("the question got no usable answer", &signal);
    }
    /* No valid text has more tokens. */
    size_t tokens_max = call->answer.len / 2 + 1;
    struct idem_json_token *tokens = malloc(tokens_max * sizeof(*tokens));
    struct idem_json json;
    struct idem_json_fault fault;
    idem_json_init(&json, tokens, tokens != NULL ? tokens_max : 0);
    struct idem_reading read = unusable("the question was answered with no operation", &signal);
    if (tokens != NULL && idem_json_parse(&json, call->answer, &fault) &&
        tokens[0].kind == IDEM_JSON_OBJECT && is_asked_for(&json, call)) {
        read = operation_read(dialect, &json, &signal, memory, ret_answer);
    }
    free(tokens);
    return read;
}
