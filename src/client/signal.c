/*
 * Reading is strict, and what is not understood is left out: a word that is not one of ours, a code
 * that is too long or has a byte that is no visible ASCII, JSON with a repeated member. What was
 * left out can only make the meaning weaker, never stronger: meaning.def has no row that concludes
 * DONE or REFUSED from the absence of a word of the API.
 *
 * An answer that names another key, or none where the API would name it, is an answer to somebody
 * else; its Location and its expiry are not taken either.
 *
 * A problem of ours ("urn:idem:problem:") is read in every dialect, because a gateway of ours may
 * stand in front of any API. `effect` and `retry` are read nowhere else.
 */
#include "client/signal.h"

#include "base/date.h"
#include "base/json.h"
#include "client/json_text.h"

#define TOKENS_MAX   512  /* Of an error's body; a document with more has no code. */
#define KEY_LINE_MAX 1024 /* A quoted key of 255 bytes with its header's name. */
#define ERROR_MIN    400

/* A tape and its memory, on the stack. */
struct document {
    struct idem_json json;
    struct idem_json_token tokens[TOKENS_MAX];
};

/* Takes the next line with a colon off `*head`; false when nothing is left. */
static bool field_next(struct idem_str *head, struct idem_str *ret_name, struct idem_str *ret_value)
{
    while (head->len > 0) {
        struct idem_str line = idem_str_next(head, '\n');
        size_t colon = idem_str_find(line, ':');
        if (colon < line.len) {
            *ret_name = idem_str_slice(line, 0, colon);
            *ret_value = idem_str_trim((struct idem_str){
                .data = line.data + colon + 1,
                .len = line.len - colon - 1,
            });
            return true;
        }
    }
    return false;
}

struct idem_str idem_head_find(struct idem_str head, const char *name)
{
    struct idem_str field;
    struct idem_str value;
    while (field_next(&head, &field, &value)) {
        if (idem_str_equal_nocase(field, idem_str_from(name))) {
            return value;
        }
    }
    return (struct idem_str){ .data = NULL };
}

/* "true", "false"; anything else, and a header that the dialect does not have, says nothing. */
static enum idem_said said(struct idem_str head, const char *name)
{
    struct idem_str value =
        name == NULL ? (struct idem_str){ .data = NULL } : idem_head_find(head, name);
    if (idem_str_equal_nocase(value, IDEM_STR("true"))) {
        return IDEM_SAID_YES;
    }
    return idem_str_equal_nocase(value, IDEM_STR("false")) ? IDEM_SAID_NO : IDEM_SAID_NOTHING;
}

/* ---- the key ---- */

/* Bare, or as the dialect spells it: APIs that take a quoted key send it back either way. */
static bool key_is(const struct idem_dialect *dialect, struct idem_str key, struct idem_str value)
{
    char memory[KEY_LINE_MAX];
    struct idem_buf line;
    idem_buf_init(&line, memory, sizeof(memory));
    idem_dialect_key_line(dialect, key, &line);
    struct idem_str spelled = idem_buf_str(&line);
    (void)idem_str_next(&spelled, ':'); /* The name; it is the value that is compared. */
    return idem_str_equal(value, key) || idem_str_equal(value, idem_str_trim(spelled));
}

/* Every line with the key's name must have this key. */
static enum idem_said echo_read(const struct idem_dialect *dialect,
                                struct idem_str key,
                                struct idem_str head)
{
    enum idem_said echoed = IDEM_SAID_NOTHING;
    struct idem_str name = idem_str_from(dialect->key_header);
    struct idem_str field;
    struct idem_str value;
    while (field_next(&head, &field, &value)) {
        if (!idem_str_equal_nocase(field, name)) {
            continue;
        }
        if (!key_is(dialect, key, value)) {
            return IDEM_SAID_NO;
        }
        echoed = IDEM_SAID_YES;
    }
    return echoed;
}

/* ---- the code of an error ---- */

static void code_clear(struct idem_signal *signal)
{
    signal->code[0] = '\0';
}

/* Keeps `text` as the code if all of it can be one. */
static void code_set(struct idem_signal *signal, struct idem_str text)
{
    code_clear(signal);
    if (text.len >= IDEM_SIGNAL_CODE_MAX) {
        return;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < 0x21 || text.data[i] > 0x7E) {
            code_clear(signal);
            return;
        }
        signal->code[i] = text.data[i];
    }
    signal->code[text.len] = '\0';
}

/* The text of a string or number that stands at `index`; empty if there is none. */
static struct idem_str text_at(const struct idem_json *json, size_t index, struct idem_buf *memory)
{
    if (index == 0) {
        return (struct idem_str){ .data = NULL };
    }
    const struct idem_json_token *token = &json->tokens[index];
    if (token->kind == IDEM_JSON_NUMBER || (token->kind == IDEM_JSON_STRING && !token->escaped)) {
        return token->raw;
    }
    if (token->kind != IDEM_JSON_STRING) {
        return (struct idem_str){ .data = NULL };
    }
    idem_buf_reset(memory);
    idem_json_unescape(json, index, memory);
    return memory->full ? (struct idem_str){ .data = NULL } : idem_buf_str(memory);
}

static size_t member(const struct idem_json *json, size_t object, struct idem_str name)
{
    bool is_object = json->tokens[object].kind == IDEM_JSON_OBJECT;
    return is_object ? idem_json_member(json, object, name) : 0;
}

static enum idem_said_effect effect_from(struct idem_str text)
{
    if (idem_str_equal(text, IDEM_STR("none"))) {
        return IDEM_SAID_EFFECT_NONE;
    }
    if (idem_str_equal(text, IDEM_STR("unknown"))) {
        return IDEM_SAID_EFFECT_UNKNOWN;
    }
    return idem_str_equal(text, IDEM_STR("done")) ? IDEM_SAID_EFFECT_DONE : IDEM_SAID_EFFECT_ABSENT;
}

static enum idem_said_retry retry_from(struct idem_str text)
{
    if (idem_str_equal(text, IDEM_STR("never"))) {
        return IDEM_SAID_RETRY_NEVER;
    }
    if (idem_str_equal(text, IDEM_STR("same-key"))) {
        return IDEM_SAID_RETRY_SAME_KEY;
    }
    if (idem_str_equal(text, IDEM_STR("new-key"))) {
        return IDEM_SAID_RETRY_NEW_KEY;
    }
    return idem_str_equal(text, IDEM_STR("query")) ? IDEM_SAID_RETRY_QUERY : IDEM_SAID_RETRY_ABSENT;
}

/* Reads a problem of ours; false if it is none. */
static bool own_problem_read(const struct idem_json *json,
                             struct idem_buf *memory,
                             struct idem_signal *signal)
{
    const struct idem_str prefix = IDEM_STR("urn:idem:problem:");
    struct idem_str type = text_at(json, member(json, 0, IDEM_STR("type")), memory);
    if (!idem_str_starts(type, prefix)) {
        return false;
    }
    code_set(signal, idem_str_slice(type, prefix.len, type.len));
    signal->effect = effect_from(text_at(json, member(json, 0, IDEM_STR("effect")), memory));
    signal->retry = retry_from(text_at(json, member(json, 0, IDEM_STR("retry")), memory));
    return true;
}

/* What stands behind the last ':' or '/'. "about:blank" is how RFC 9457, 4.2.1 says nothing. */
static struct idem_str last_part(struct idem_str type)
{
    if (idem_str_equal(type, IDEM_STR("about:blank"))) {
        return (struct idem_str){ .data = NULL };
    }
    size_t from = type.len;
    while (from > 0 && type.data[from - 1] != ':' && type.data[from - 1] != '/') {
        from -= 1;
    }
    return idem_str_slice(type, from, type.len);
}

static struct idem_str stripe_code(const struct idem_json *json, struct idem_buf *memory)
{
    size_t error = member(json, 0, IDEM_STR("error"));
    if (error == 0) {
        return (struct idem_str){ .data = NULL };
    }
    size_t type = member(json, error, IDEM_STR("type"));
    size_t code = member(json, error, IDEM_STR("code"));
    struct idem_str text = text_at(json, type, memory);
    if (code == 0 || idem_str_equal(text, IDEM_STR("idempotency_error"))) {
        return text;
    }
    struct idem_str named = text_at(json, code, memory);
    return named.len > 0 ? named : text_at(json, type, memory);
}

static struct idem_str paypal_code(const struct idem_json *json, struct idem_buf *memory)
{
    size_t details = member(json, 0, IDEM_STR("details"));
    bool listed = details != 0 && json->tokens[details].kind == IDEM_JSON_ARRAY &&
                  json->tokens[details].count > 0;
    size_t issue = listed ? member(json, details + 1, IDEM_STR("issue")) : 0;
    struct idem_str text = text_at(json, issue, memory);
    return text.len > 0 ? text : text_at(json, member(json, 0, IDEM_STR("name")), memory);
}

static struct idem_str shape_code(enum idem_error_shape shape,
                                  const struct idem_json *json,
                                  struct idem_buf *memory)
{
    switch (shape) {
    case IDEM_SHAPE_PROBLEM:
        return last_part(text_at(json, member(json, 0, IDEM_STR("type")), memory));
    case IDEM_SHAPE_STRIPE:
        return stripe_code(json, memory);
    case IDEM_SHAPE_ADYEN:
        return text_at(json, member(json, 0, IDEM_STR("errorCode")), memory);
    case IDEM_SHAPE_PAYPAL:
        return paypal_code(json, memory);
    case IDEM_SHAPE_NONE:
        break;
    }
    return (struct idem_str){ .data = NULL };
}

/* False: it is an error's, and no JSON that can be read. */
static bool error_read(const struct idem_dialect *dialect,
                       struct idem_str body,
                       struct idem_signal *signal)
{
    if (signal->status < ERROR_MIN) {
        return true;
    }
    struct document document;
    struct idem_json_fault fault;
    idem_json_init(&document.json, document.tokens, TOKENS_MAX);
    if (!idem_json_parse(&document.json, body, &fault)) {
        return false;
    }
    char unescaped[256]; /* More than any word that is looked for. */
    struct idem_buf memory;
    idem_buf_init(&memory, unescaped, sizeof(unescaped));
    if (!own_problem_read(&document.json, &memory, signal)) {
        code_set(signal, shape_code(dialect->shape, &document.json, &memory));
    }
    return true;
}

void idem_signal_read_error(const struct idem_dialect *dialect,
                            struct idem_str body,
                            struct idem_signal *signal)
{
    (void)error_read(dialect, body, signal); /* What cannot be read is absent. */
}

/* ---- the answer ---- */

/*
 * By the answer's own Date where it has one, so that the difference of the two clocks does not
 * count.
 */
static int64_t expires_in(const struct idem_dialect *dialect, struct idem_str head, int64_t now_us)
{
    int64_t expires_us = 0;
    if (dialect->expires == NULL ||
        !idem_date_parse_imf(idem_head_find(head, dialect->expires), &expires_us)) {
        return 0;
    }
    int64_t from_us = 0;
    if (!idem_date_parse_imf(idem_head_find(head, "Date"), &from_us)) {
        from_us = now_us;
    }
    return expires_us > from_us ? expires_us - from_us : 1;
}

static bool is_html(struct idem_str content_type)
{
    struct idem_str type = idem_str_trim(idem_str_next(&content_type, ';'));
    return idem_str_equal_nocase(type, IDEM_STR("text/html")) ||
           idem_str_equal_nocase(type, IDEM_STR("application/xhtml+xml"));
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* What stands behind a byte order mark and white space. */
static struct idem_str text_of(struct idem_str body)
{
    const struct idem_str mark = IDEM_STR("\xEF\xBB\xBF");
    size_t i = idem_str_starts(body, mark) ? mark.len : 0;
    while (i < body.len && is_space(body.data[i])) {
        i += 1;
    }
    return idem_str_slice(body, i, body.len);
}

static bool begins_with(struct idem_str body, char byte)
{
    struct idem_str text = text_of(body);
    return text.len > 0 && text.data[0] == byte;
}

static bool is_success(const struct idem_http_call *call)
{
    return call->status >= 200 && call->status < 300;
}

/*
 * What its bytes say nobody sees who did not ask for that coding. "identity" was asked for; a
 * server may still send another one (RFC 9110, 12.5.3).
 */
static bool is_coded(const struct idem_http_call *call)
{
    struct idem_str coding = idem_head_find(call->head, "Content-Encoding");
    return call->answer.len > 0 && coding.len > 0 &&
           !idem_str_equal_nocase(coding, IDEM_STR("identity"));
}

/* It begins as an object or array does. */
static bool opens(const struct idem_http_call *call)
{
    return begins_with(call->answer, '{') || begins_with(call->answer, '[');
}

/* APIs whose answers are JSON objects, and whose codes may say that the key is known already. */
static bool speaks_json(const struct idem_dialect *dialect)
{
    return dialect->id == IDEM_DIALECT_IDEM || dialect->id == IDEM_DIALECT_STRIPE ||
           dialect->id == IDEM_DIALECT_ADYEN || dialect->id == IDEM_DIALECT_PAYPAL;
}

/* A success of them is an object; PayPal's may be nothing. */
static bool sends_object(const struct idem_dialect *dialect, const struct idem_http_call *call)
{
    bool nothing = dialect->id == IDEM_DIALECT_PAYPAL && call->answer.len == 0;
    return speaks_json(dialect) && !nothing;
}

/*
 * A success of this API does not look so. Whatever begins with '<' is a page, or XML of a network
 * that wants a login.
 */
static bool is_page(const struct idem_dialect *dialect, const struct idem_http_call *call)
{
    bool strange = begins_with(call->answer, '<') ||
                   (sends_object(dialect, call) && !begins_with(call->answer, '{'));
    return is_success(call) && (is_html(call->content_type) || (strange && !is_coded(call)));
}

/*
 * A body that came whole by HTTP may be half an answer all the same: of a server that died while it
 * wrote into something that then told the length, of a cache, of a disk. Where objects are promised
 * it has to be right inside as well; elsewhere servers send words and sloppy JSON under a type of
 * JSON, and only what was opened and not closed is broken.
 */
static bool is_broken(const struct idem_dialect *dialect, const struct idem_http_call *call)
{
    if (call->answer.len == 0 || is_coded(call)) {
        return false;
    }
    if (is_success(call) && sends_object(dialect, call)) {
        return !idem_json_text_is_whole(call->answer);
    }
    return idem_json_is_media_type(call->content_type) && opens(call) &&
           !idem_http_body_whole(text_of(call->answer));
}

/*
 * An error in JSON that cannot be read strictly: letters that are no UTF-8, a byte order mark, a
 * name twice, too deep, too long, coded, or nothing at all. It may have had a code that says that
 * the key is known. What does not even begin as JSON does not come from the API.
 */
static bool hides_code(const struct idem_dialect *dialect, const struct idem_http_call *call)
{
    return call->status >= ERROR_MIN && speaks_json(dialect) &&
           idem_json_is_media_type(call->content_type) &&
           (call->answer.len == 0 || is_coded(call) || opens(call));
}

void idem_signal_read(const struct idem_dialect *dialect,
                      struct idem_str key,
                      const struct idem_http_call *call,
                      int64_t now_us,
                      struct idem_signal *ret_signal)
{
    struct idem_signal signal = { .verdict = call->verdict };
    if (call->verdict != IDEM_HTTP_ANSWERED) {
        signal.hopeless = call->verdict == IDEM_HTTP_NOT_SENT && call->hopeless;
        signal.too_long = call->verdict == IDEM_HTTP_UNKNOWN && call->too_long;
        *ret_signal = signal;
        return;
    }
    signal.status = call->status;
    signal.retry_after_us = call->retry_after_us;
    signal.should_retry = said(call->head, dialect->should_retry);
    signal.replayed = said(call->head, dialect->replayed);
    signal.echoed = echo_read(dialect, key, call->head);
    signal.page = is_page(dialect, call);
    bool unnamed = signal.echoed == IDEM_SAID_NOTHING && !dialect->echoes_key;
    if (signal.echoed == IDEM_SAID_YES || unnamed) {
        signal.expires_in_us = expires_in(dialect, call->head, now_us);
        signal.location = idem_head_find(call->head, "Location");
    }
    bool readable = error_read(dialect, call->answer, &signal);
    signal.broken = is_broken(dialect, call) || (!readable && hides_code(dialect, call));
    *ret_signal = signal;
}
