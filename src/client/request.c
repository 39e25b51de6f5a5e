/*
 * Requests as callers give them: whether they can be sent, and the record they become.
 *
 * A request is refused here for what would make it unsafe to repeat: fields that must not be
 * written down (credentials), that would differ from try to try, or that belong to the client (the
 * key). All texts of a record lie in its one block of memory.
 */
#include "client/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/json.h"
#include "base/uid.h"
#include "client/client_internal.h"
#include "client/target.h"

#define DEADLINE_DEFAULT_US (60 * IDEM_US_PER_SECOND)
#define DEADLINE_MAX_MS     INT64_C(604800000)   /* A week. */
#define WINDOW_MAX_MS       INT64_C(31536000000) /* A year. */
#define KEY_TEXT_SIZE       64

bool idem_request_text(struct idem_str text, size_t max)
{
    if (text.len == 0 || text.len > max || !idem_utf8_valid(text)) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

bool idem_request_line(struct idem_str line)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    size_t colon = idem_str_find(line, ':');
    if (colon == 0 || colon == line.len) {
        return false;
    }
    for (size_t i = 0; i < line.len; i++) {
        unsigned char byte = (unsigned char)line.data[i];
        bool token = (byte >= '0' && byte <= '9') ||
                     ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
                     (byte != 0 && strchr(marks, byte) != NULL);
        bool text = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
        if (i < colon ? !token : !text) {
            return false;
        }
    }
    return true;
}

static bool name_has(struct idem_str name, struct idem_str word)
{
    for (size_t from = 0; from + word.len <= name.len; from++) {
        if (idem_str_equal_nocase(idem_str_slice(name, from, word.len), word)) {
            return true;
        }
    }
    return false;
}

/* A name that is a credential's by all appearances: what is written down is not secret. */
static bool line_is_secret(struct idem_str name)
{
    static const char *const words[] = {
        "authorization", "cookie", "token", "secret", "password", "api-key", "apikey",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(words); i++) {
        if (name_has(name, idem_str_from(words[i]))) {
            return true;
        }
    }
    return false;
}

const char *idem_request_line_objection(const struct idem_dialect *dialect, struct idem_str line)
{
    static const struct {
        const char *name;
        const char *why;
    } fields[] = {
        { "Host", "it follows from the URL" },
        { "Content-Length", "it follows from the body" },
        { "Transfer-Encoding", "the body goes as it is" },
        { "Connection", "connections are the client's" },
        { "Expect", "the body goes at once" },
    };
    struct idem_str name = idem_str_slice(line, 0, idem_str_find(line, ':'));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fields); i++) {
        if (idem_str_equal_nocase(name, idem_str_from(fields[i].name))) {
            return fields[i].why;
        }
    }
    if (idem_str_equal_nocase(name, idem_str_from(dialect->key_header))) {
        return "the key is given as key, or made";
    }
    if (dialect->first_sent != NULL &&
        idem_str_equal_nocase(name, idem_str_from(dialect->first_sent))) {
        return "the journal knows when it was first sent";
    }
    return NULL;
}

/* Fields that would make an answer which cannot be read, or a conversation that is not this one. */
static const char *new_line_objection(struct idem_str name)
{
    static const char *const connection[] = { "Keep-Alive", "Proxy-Connection", "TE", "Trailer",
                                              "Upgrade" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(connection); i++) {
        if (idem_str_equal_nocase(name, idem_str_from(connection[i]))) {
            return "connections are the client's";
        }
    }
    if (idem_str_equal_nocase(name, IDEM_STR("Accept-Encoding"))) {
        return "answers are read and kept as they come";
    }
    return line_is_secret(name)
               ? "a credential is given as credential, so that it is never written down"
               : NULL;
}

static enum idem_client_err line_refuse(struct idem_str line,
                                        const char *why,
                                        struct idem_client_error *reterr)
{
    return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID, "header %.*s: %s; nothing was sent",
                            (int)idem_str_find(line, ':'), line.data, why);
}

enum idem_client_err idem_request_check_new(const struct idem_client_request *request,
                                            struct idem_client_error *reterr)
{
    for (size_t i = 0; i < request->header_count; i++) {
        struct idem_str line = idem_str_from(request->headers[i]);
        const char *why = new_line_objection(idem_str_slice(line, 0, idem_str_find(line, ':')));
        if (why != NULL) {
            return line_refuse(line, why, reterr);
        }
    }
    return IDEM_CLIENT_OK;
}

static enum idem_client_err headers_check(const struct idem_client_request *request,
                                          const struct idem_dialect *dialect,
                                          struct idem_client_error *reterr)
{
    size_t size = 0;
    for (size_t i = 0; i < request->header_count && i < IDEM_CLIENT_HEADERS_MAX; i++) {
        struct idem_str line = idem_str_from(request->headers[i]);
        if (!idem_request_line(line)) {
            return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                    "header %zu is not \"Name: value\"; nothing was sent", i + 1);
        }
        const char *why = idem_request_line_objection(dialect, line);
        if (why != NULL) {
            return line_refuse(line, why, reterr);
        }
        size += line.len + 1;
    }
    if (request->header_count > IDEM_CLIENT_HEADERS_MAX || size > IDEM_CLIENT_HEADER_SIZE) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "more than %d headers, or %d bytes of them; nothing was sent",
                                IDEM_CLIENT_HEADERS_MAX, IDEM_CLIENT_HEADER_SIZE);
    }
    return IDEM_CLIENT_OK;
}

static enum idem_client_err url_check(const char *url, struct idem_client_error *reterr)
{
    struct idem_str text = idem_str_from(url);
    enum idem_target_fault fault = idem_target_check(text);
    if (fault != IDEM_TARGET_OK || text.len > IDEM_CLIENT_URL_MAX) {
        /* Without the URL: a credential may be in it. */
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID, "the URL %s; nothing was sent",
                                fault != IDEM_TARGET_OK ? idem_target_fault_text(fault)
                                                        : "is too long");
    }
    return IDEM_CLIENT_OK;
}

bool idem_request_method(struct idem_str method)
{
    return idem_str_equal(method, IDEM_STR("POST")) || idem_str_equal(method, IDEM_STR("PUT")) ||
           idem_str_equal(method, IDEM_STR("PATCH")) || idem_str_equal(method, IDEM_STR("DELETE"));
}

enum idem_client_err idem_request_times(int64_t deadline_ms,
                                        int64_t window_ms,
                                        struct idem_client_error *reterr)
{
    if (deadline_ms < 0 || deadline_ms > DEADLINE_MAX_MS || window_ms < 0 ||
        window_ms > WINDOW_MAX_MS) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "a deadline is at most a week, a window a year; nothing was sent");
    }
    return IDEM_CLIENT_OK;
}

static enum idem_client_err rest_check(const struct idem_client_request *request,
                                       const struct idem_dialect *dialect,
                                       struct idem_client_error *reterr)
{
    if (!idem_request_method(idem_str_from(request->method))) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "the method is not POST, PUT, PATCH or DELETE; nothing was sent");
    }
    if (request->body_size > IDEM_CLIENT_BODY_MAX) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "the body has more than %d bytes; nothing was sent",
                                IDEM_CLIENT_BODY_MAX);
    }
    if (request->key != NULL && !idem_dialect_takes_key(dialect, idem_str_from(request->key))) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "a key of %s has 1 to %zu visible ASCII characters; nothing was "
                                "sent",
                                dialect->name, dialect->key_max);
    }
    return idem_request_times(request->deadline_ms, request->window_ms, reterr);
}

enum idem_client_err idem_request_check(const struct idem_client_request *request,
                                        const struct idem_dialect **ret_dialect,
                                        struct idem_client_error *reterr)
{
    if (request->size != sizeof(*request)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "the request's size is not that of this library's");
    }
    if (!idem_request_text(idem_str_from(request->name), IDEM_CLIENT_NAME_MAX)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "a name has 1 to %d bytes of UTF-8 without control characters; "
                                "nothing was sent",
                                IDEM_CLIENT_NAME_MAX);
    }
    const struct idem_dialect *dialect =
        idem_dialect_find(idem_str_from(request->dialect != NULL ? request->dialect : "idem"));
    if (dialect == NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "there is no dialect of that name; nothing was sent");
    }
    enum idem_client_err err = url_check(request->url, reterr);
    if (err == IDEM_CLIENT_OK && request->status_url != NULL) {
        err = url_check(request->status_url, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = headers_check(request, dialect, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = rest_check(request, dialect, reterr);
    }
    *ret_dialect = dialect;
    return err;
}

static struct idem_str terminated_keep(struct idem_buf *buf, struct idem_str text)
{
    struct idem_str kept = idem_buf_keep(buf, text);
    idem_buf_add_char(buf, '\0');
    return kept;
}

/* The lines as they are kept and compared: each with a line end. */
static struct idem_str headers_keep(struct idem_buf *buf, const struct idem_client_request *request)
{
    size_t from = buf->len;
    for (size_t i = 0; i < request->header_count; i++) {
        idem_buf_add(buf, idem_str_from(request->headers[i]));
        idem_buf_add_char(buf, '\n');
    }
    return idem_str_slice(idem_buf_str(buf), from, buf->len - from);
}

static size_t request_size(const struct idem_client_request *request)
{
    size_t size = IDEM_CLIENT_NAME_MAX + IDEM_CLIENT_HEADER_SIZE + 2 * IDEM_CLIENT_URL_MAX +
                  KEY_TEXT_SIZE + 512;
    return size + request->body_size;
}

struct idem_str idem_request_key(struct idem_client *client, struct idem_buf *buf)
{
    size_t from = buf->len;
    struct idem_uid uid = idem_uid_make_token(client->random);
    uid.bytes[6] = (uint8_t)((uid.bytes[6] & 0x0f) | 0x40);
    uid.bytes[8] = (uint8_t)((uid.bytes[8] & 0x3f) | 0x80);
    idem_uid_print(uid, buf);
    return idem_str_slice(idem_buf_str(buf), from, buf->len - from);
}

enum idem_client_err idem_request_record(struct idem_client *client,
                                         const struct idem_client_request *request,
                                         const struct idem_dialect *dialect,
                                         struct idem_client_record *ret_record,
                                         struct idem_client_error *reterr)
{
    size_t size = request_size(request);
    char *memory = malloc(size);
    if (memory == NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory; nothing was sent");
    }
    struct idem_buf buf;
    idem_buf_init(&buf, memory, size);
    *ret_record = (struct idem_client_record){
        .memory = memory,
        .name = terminated_keep(&buf, idem_str_from(request->name)),
        .key_own = request->key == NULL,
        .dialect = terminated_keep(&buf, idem_str_from(dialect->name)),
        .method = terminated_keep(&buf, idem_str_from(request->method)),
        .url = terminated_keep(&buf, idem_str_from(request->url)),
        .headers = headers_keep(&buf, request),
        .status_url = terminated_keep(&buf, idem_str_from(request->status_url)),
        .deadline_us =
            request->deadline_ms > 0 ? request->deadline_ms * IDEM_US_PER_MS : DEADLINE_DEFAULT_US,
        .window_us = request->window_ms * IDEM_US_PER_MS,
        .created_us = idem_clock_wall_us(client->clock),
    };
    ret_record->key = request->key != NULL ? terminated_keep(&buf, idem_str_from(request->key))
                                           : idem_request_key(client, &buf);
    ret_record->body =
        idem_buf_keep(&buf, (struct idem_str){ .data = request->body, .len = request->body_size });
    IDEM_ASSERT(!buf.full);
    return IDEM_CLIENT_OK;
}

const char *idem_request_difference(const struct idem_client_record *known,
                                    const struct idem_client_record *asked)
{
    if (!idem_str_equal(known->method, asked->method)) {
        return "method";
    }
    if (!idem_str_equal(known->url, asked->url)) {
        return "URL";
    }
    if (!idem_str_equal(known->headers, asked->headers)) {
        return "headers";
    }
    if (!idem_str_equal(known->body, asked->body)) {
        return "body";
    }
    if (!idem_str_equal(known->dialect, asked->dialect)) {
        return "dialect";
    }
    return !asked->key_own && !idem_str_equal(known->key, asked->key) ? "key" : NULL;
}

enum idem_client_err idem_request_rekey(struct idem_client *client,
                                        const struct idem_client_record *known,
                                        struct idem_client_record *ret_record,
                                        struct idem_client_error *reterr)
{
    size_t size = known->name.len + known->dialect.len + known->method.len + known->url.len +
                  known->headers.len + known->body.len + known->status_url.len + KEY_TEXT_SIZE;
    char *memory = malloc(size);
    if (memory == NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory; nothing was sent");
    }
    struct idem_buf buf;
    idem_buf_init(&buf, memory, size);
    *ret_record = (struct idem_client_record){
        .memory = memory,
        .name = idem_buf_keep(&buf, known->name),
        .key_own = true,
        .dialect = idem_buf_keep(&buf, known->dialect),
        .method = idem_buf_keep(&buf, known->method),
        .url = idem_buf_keep(&buf, known->url),
        .headers = idem_buf_keep(&buf, known->headers),
        .body = idem_buf_keep(&buf, known->body),
        .status_url = idem_buf_keep(&buf, known->status_url),
        .deadline_us = known->deadline_us,
        .window_us = known->window_us,
        .created_us = known->created_us,
    };
    ret_record->key = idem_request_key(client, &buf);
    IDEM_ASSERT(!buf.full);
    return IDEM_CLIENT_OK;
}

/* Every line is one field, and none that is the client's own. */
static bool lines_are_whole(const struct idem_dialect *dialect, struct idem_str lines)
{
    size_t count = 0;
    bool whole = lines.len <= IDEM_CLIENT_HEADER_SIZE;
    while (whole && lines.len > 0) {
        struct idem_str line = idem_str_next(&lines, '\n');
        count += 1;
        whole = idem_request_line(line) && idem_request_line_objection(dialect, line) == NULL;
    }
    return whole && count <= IDEM_CLIENT_HEADERS_MAX;
}

static bool url_is_whole(struct idem_str url)
{
    return url.len <= IDEM_CLIENT_URL_MAX && idem_target_check(url) == IDEM_TARGET_OK;
}

bool idem_request_is_whole(const struct idem_client_record *record)
{
    const struct idem_dialect *dialect = idem_dialect_find(record->dialect);
    return dialect != NULL && idem_dialect_takes_key(dialect, record->key) &&
           lines_are_whole(dialect, record->headers) && idem_request_method(record->method) &&
           idem_request_text(record->name, IDEM_CLIENT_NAME_MAX) && url_is_whole(record->url) &&
           record->deadline_us > 0 && record->body.len <= IDEM_CLIENT_BODY_MAX &&
           (record->status_url.len == 0 || url_is_whole(record->status_url)) &&
           record->operation_url.len <= IDEM_CLIENT_URL_MAX;
}
