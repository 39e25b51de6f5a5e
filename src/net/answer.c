/*
 * Writing answers.
 *
 * Head and body go to the socket in one call straight from where they are. Only what the socket
 * does not take at once is copied, so an answer costs no memory as long as its caller reads. The
 * fields that belong to the connection (Content-Length, Date, Connection) are written here and
 * nowhere else.
 */
#include "net/net_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bug.h"

#define PIECES_MAX 4
/* A status line, or the three fields, with room. */
#define PIECE_MAX 160

/* What the socket did not take. */
struct rest {
    uv_write_t write;
    struct idem_connection *connection;
    char bytes[];
};

struct phrase {
    uint16_t status;
    const char *text;
};

static const struct phrase phrases[] = {
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 204, "No Content" },
    { 302, "Found" },
    { 303, "See Other" },
    { 304, "Not Modified" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 402, "Payment Required" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 410, "Gone" },
    { 411, "Length Required" },
    { 412, "Precondition Failed" },
    { 413, "Content Too Large" },
    { 415, "Unsupported Media Type" },
    { 422, "Unprocessable Content" },
    { 425, "Too Early" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 502, "Bad Gateway" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
};

/* A phrase means nothing to a program; a status without one is sent with none. */
static struct idem_str phrase_of(uint16_t status)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(phrases); i++) {
        if (phrases[i].status == status) {
            return idem_str_from(phrases[i].text);
        }
    }
    return IDEM_STR("");
}

/* The calendar's clock, not the engine's: Date is for caches and people, nothing rests on it. */
static struct idem_str date_now(struct idem_server *server)
{
    time_t now = time(NULL);
    if (server->date_second != (int64_t)now) {
        struct tm parts;
        if (gmtime_r(&now, &parts) == NULL ||
            strftime(server->date, sizeof(server->date), "%a, %d %b %Y %H:%M:%S GMT", &parts) !=
                IDEM_NET_DATE_LEN) {
            return (struct idem_str){ 0 };
        }
        server->date_second = (int64_t)now;
    }
    return (struct idem_str){ .data = server->date, .len = IDEM_NET_DATE_LEN };
}

static void on_written(uv_write_t *write, int status)
{
    struct rest *rest = IDEM_CONTAINER_OF(write, struct rest, write);
    struct idem_connection *connection = rest->connection;
    free(rest);

    if (connection->state == IDEM_CONNECTION_CLOSED) {
        return;
    }
    if (status != 0) {
        idem_connection_close(connection);
        return;
    }
    idem_connection_written(connection);
    idem_connection_resume(connection);
}

static void rest_send(struct idem_connection *connection,
                      const uv_buf_t *pieces,
                      size_t count,
                      size_t taken)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += pieces[i].len;
    }
    struct rest *rest = malloc(sizeof(*rest) + size - taken);
    if (rest == NULL) {
        idem_connection_close(connection);
        return;
    }
    *rest = (struct rest){ .connection = connection };

    size_t copied = 0;
    for (size_t i = 0; i < count; i++) {
        size_t skip = taken < pieces[i].len ? taken : pieces[i].len;
        taken -= skip;
        if (skip < pieces[i].len) {
            memcpy(rest->bytes + copied, pieces[i].base + skip, pieces[i].len - skip);
            copied += pieces[i].len - skip;
        }
    }
    IDEM_ASSERT(taken == 0);

    uv_buf_t buf = uv_buf_init(rest->bytes, (unsigned)copied);
    uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
    if (uv_write(&rest->write, stream, &buf, 1, on_written) != 0) {
        free(rest);
        idem_connection_close(connection);
    }
}

static void pieces_send(struct idem_connection *connection, const uv_buf_t *pieces, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += pieces[i].len;
    }
    connection->state = IDEM_CONNECTION_WRITING;
    int rc = size == 0 ? 0 : uv_try_write((uv_stream_t *)&connection->tcp, pieces, (unsigned)count);
    if (rc < 0 && rc != UV_EAGAIN) {
        idem_connection_close(connection);
        return;
    }
    size_t taken = rc > 0 ? (size_t)rc : 0;
    if (taken == size) {
        idem_connection_written(connection);
        return;
    }
    rest_send(connection, pieces, count, taken);
}

/* libuv only reads through the pointer, but its type does not say so. */
static uv_buf_t piece_of(struct idem_str text)
{
    return (uv_buf_t){ .base = (char *)(uintptr_t)text.data, .len = text.len };
}

void idem_answer_send(struct idem_connection *connection,
                      const struct idem_net_reply *reply,
                      bool head_only)
{
    IDEM_ASSERT(reply->status >= 200);
    IDEM_ASSERT(reply->status <= 999);

    bool has_body = reply->status != 204 && reply->status != 304;
    char first_memory[PIECE_MAX];
    struct idem_buf first;
    idem_buf_init(&first, first_memory, sizeof(first_memory));
    idem_buf_add(&first, IDEM_STR("HTTP/1.1 "));
    idem_buf_add_i64(&first, reply->status);
    idem_buf_add_char(&first, ' ');
    idem_buf_add(&first, phrase_of(reply->status));
    idem_buf_add(&first, IDEM_STR("\r\n"));

    char last_memory[PIECE_MAX];
    struct idem_buf last;
    idem_buf_init(&last, last_memory, sizeof(last_memory));
    if (has_body) {
        idem_buf_add(&last, IDEM_STR("Content-Length: "));
        idem_buf_add_i64(&last, (int64_t)reply->body.len);
        idem_buf_add(&last, IDEM_STR("\r\n"));
    }
    idem_buf_add(&last, IDEM_STR("Date: "));
    idem_buf_add(&last, date_now(connection->server));
    if (connection->then != IDEM_THEN_NEXT) {
        idem_buf_add(&last, IDEM_STR("\r\nConnection: close"));
    }
    idem_buf_add(&last, IDEM_STR("\r\n\r\n"));
    IDEM_ASSERT(!first.full);
    IDEM_ASSERT(!last.full);

    uv_buf_t pieces[PIECES_MAX];
    size_t count = 0;
    pieces[count++] = piece_of(idem_buf_str(&first));
    if (reply->headers.len > 0) {
        pieces[count++] = piece_of(reply->headers);
    }
    pieces[count++] = piece_of(idem_buf_str(&last));
    if (has_body && !head_only && reply->body.len > 0) {
        pieces[count++] = piece_of(reply->body);
    }
    pieces_send(connection, pieces, count);
}

void idem_answer_send_raw(struct idem_connection *connection, struct idem_str bytes)
{
    uv_buf_t piece = piece_of(bytes);
    pieces_send(connection, &piece, 1);
}
