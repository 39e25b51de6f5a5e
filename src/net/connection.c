/*
 * One connection, from its first byte to its close.
 *
 *     IDLE --byte--> HEAD --complete--> BODY --complete--> BUSY --reply--> WRITING --taken--> IDLE
 *                     |  \--no body announced--------------^                  |
 *                     |                    |                                  | the last answer
 *                     +----- refused ------+--------------> WRITING           v
 *                                                               \--taken--> LINGER ----> CLOSED
 *
 * Every state leads to CLOSED when the socket fails or a deadline passes.
 *
 *   One at a time    Bytes behind a request stay unread in `early` until its answer has left. When
 *                    `early` is full, reading stops.
 *   Both must agree  A head is read by head.c and by llhttp, a body's end found by chunks.c or by
 *                    counting and by llhttp. Where they differ the request is refused: two readers
 *                    that differ here would differ between a proxy and us.
 *   Nothing idle     An idle connection holds no buffer: reads land in the server's, and only what
 *                    is incomplete is copied.
 *   One budget       What is incomplete is counted over all connections. Above the budget whoever
 *                    has half a request is refused when it sends more; a request that comes in one
 *                    piece is served, so a flood of halves does not shut out honest callers.
 *   Noticing         The socket is read also while the owner works, so a FIN or a reset is seen at
 *                    once (unless `early` is full: who sends so much is not leaving). After a FIN
 *                    the answer is still sent; after a reset there is nobody.
 *   Lingering        A socket that is closed with unread input sends a reset, which can destroy the
 *                    answer before the caller reads it. So after the last answer only our side is
 *                    closed, and what still comes is thrown away, a bounded amount for a bounded
 *                    time.
 */
#include "net/net_internal.h"

#include <stdlib.h>

#include "base/bug.h"

static const enum idem_deadline deadline_of[IDEM_CONNECTION_STATE_COUNT] = {
    [IDEM_CONNECTION_IDLE] = IDEM_DEADLINE_IDLE,
    [IDEM_CONNECTION_HEAD] = IDEM_DEADLINE_HEAD,
    [IDEM_CONNECTION_BODY] = IDEM_DEADLINE_BODY,
    [IDEM_CONNECTION_BUSY] = IDEM_DEADLINE_NONE, /* The owner's waits have bounds of their own. */
    [IDEM_CONNECTION_WRITING] = IDEM_DEADLINE_WRITE,
    [IDEM_CONNECTION_LINGER] = IDEM_DEADLINE_LINGER,
    [IDEM_CONNECTION_CLOSED] = IDEM_DEADLINE_NONE,
};

/* Closing ------------------------------------------------------------------------------------- */

static void pending_count(struct idem_connection *connection, size_t held)
{
    struct idem_server *server = connection->server;
    IDEM_ASSERT(server->pending >= connection->pending);
    server->pending = server->pending - connection->pending + held;
    connection->pending = held;
}

static void on_closed(uv_handle_t *handle)
{
    struct idem_connection *connection = handle->data;
    struct idem_server *server = connection->server;
    IDEM_ASSERT(connection->exchange == NULL);

    pending_count(connection, 0);
    idem_list_remove(&server->connections, &connection->listed);
    server->crowded_count -= connection->crowded ? 1 : 0;
    idem_bytes_free(&connection->head);
    idem_bytes_free(&connection->early);
    free(connection);
    idem_server_handle_closed(server);
}

static void owner_tell_gone(struct idem_server *server, struct idem_exchange *exchange)
{
    if (!exchange->gone) {
        exchange->gone = true;
        server->stats.gone += 1;
        server->options.ops->gone(server->options.context, exchange);
    }
}

/* Parts the exchange from the connection; the owner is told if it has it. */
static void exchange_lose(struct idem_connection *connection, bool owned)
{
    struct idem_exchange *exchange = connection->exchange;
    if (exchange == NULL) {
        return;
    }
    connection->exchange = NULL;
    exchange->connection = NULL;
    if (!owned) {
        idem_exchange_free(exchange);
        return;
    }
    owner_tell_gone(connection->server, exchange);
}

void idem_connection_close(struct idem_connection *connection)
{
    if (connection->state == IDEM_CONNECTION_CLOSED) {
        return;
    }
    bool owned = connection->state == IDEM_CONNECTION_BUSY;
    connection->state = IDEM_CONNECTION_CLOSED;
    idem_deadline_clear(connection);
    idem_turn_begin(connection); /* That is, it does not wait for one any more. */
    if (!uv_is_closing((uv_handle_t *)&connection->tcp)) {
        uv_close((uv_handle_t *)&connection->tcp, on_closed);
    }
    exchange_lose(connection, owned);
}

static void connection_reset(struct idem_connection *connection)
{
    /* On failure (the socket is shut down already) the ordinary close is what is left. */
    (void)uv_tcp_close_reset(&connection->tcp, on_closed);
    idem_connection_close(connection);
}

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    struct idem_connection *connection = shutdown->handle->data;
    if (status != 0) {
        idem_connection_close(connection);
    }
}

static void connection_linger(struct idem_connection *connection)
{
    if (connection->ended) {
        idem_connection_close(connection); /* All its bytes are read: the close is a plain FIN. */
        return;
    }
    connection->state = IDEM_CONNECTION_LINGER;
    uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
    if (uv_shutdown(&connection->shutdown, stream, on_shutdown) != 0) {
        idem_connection_close(connection);
    }
}

void idem_connection_written(struct idem_connection *connection)
{
    IDEM_ASSERT(connection->state == IDEM_CONNECTION_WRITING);
    IDEM_ASSERT(connection->exchange == NULL);

    switch (connection->then) {
    case IDEM_THEN_NEXT:
        connection->state = IDEM_CONNECTION_IDLE;
        return;
    case IDEM_THEN_LINGER:
        connection_linger(connection);
        return;
    case IDEM_THEN_RESET:
        connection_reset(connection);
        return;
    }
}

/* Requests ------------------------------------------------------------------------------------ */

static void refuse(struct idem_connection *connection, enum idem_net_refusal refusal)
{
    const struct idem_server_options *options = &connection->server->options;
    struct idem_net_reply reply = { 0 };
    connection->server->stats.refused[refusal] += 1;
    options->ops->refusal(options->context, refusal, &reply);

    idem_exchange_free(connection->exchange);
    connection->exchange = NULL;
    idem_bytes_free(&connection->head);
    connection->last = true;
    connection->then = IDEM_THEN_LINGER;
    idem_answer_send(connection, &reply, connection->said.head_only);
}

static void tell_gone(struct idem_connection *connection)
{
    if (connection->state == IDEM_CONNECTION_BUSY) {
        owner_tell_gone(connection->server, connection->exchange);
    }
}

static void dispatch(struct idem_connection *connection)
{
    const struct idem_server_options *options = &connection->server->options;
    struct idem_exchange *exchange = connection->exchange;

    exchange->request.body = idem_bytes_str(&exchange->body);
    exchange->request.request_no = ++connection->request_no;
    connection->last = connection->said.closes;
    connection->state = IDEM_CONNECTION_BUSY;
    idem_deadline_clear(connection);
    connection->server->stats.requests += 1;
    connection->turn_served += 1;
    options->ops->request(options->context, exchange);
    if (connection->ended) {
        tell_gone(connection);
    }
}

/* Runs llhttp over bytes that have passed our own reading. False: it disagrees. */
static bool parser_agrees(struct idem_connection *connection, struct idem_str text, bool complete)
{
    enum llhttp_errno rc = llhttp_execute(&connection->parser, text.data, text.len);
    /* We ignore Upgrade, as a server may (RFC 9110, 7.8); llhttp stops behind such a message. */
    bool accepted = rc == HPE_OK || (rc == HPE_PAUSED_UPGRADE && complete);
    return accepted && connection->message_complete == complete;
}

int idem_connection_on_field(llhttp_t *parser)
{
    struct idem_connection *connection = parser->data;
    connection->fields_seen += 1;
    return 0;
}

int idem_connection_on_complete(llhttp_t *parser)
{
    struct idem_connection *connection = parser->data;
    connection->message_complete = true;
    return 0;
}

int idem_connection_on_body(llhttp_t *parser, const char *data, size_t len)
{
    struct idem_connection *connection = parser->data;
    struct idem_bytes *body = &connection->exchange->body;
    size_t limit = connection->said.chunked ? connection->server->options.body_max
                                            : (size_t)connection->said.body_len;
    if (len > limit - body->len) {
        return HPE_USER; /* Our own reading has counted less: they disagree. */
    }
    struct idem_str text = { .data = data, .len = len };
    if (!idem_bytes_add(body, text, limit)) {
        connection->starved = true;
        return HPE_USER;
    }
    return 0;
}

/* 25 bytes fit any socket; if not, the caller sends its body anyway after a while (RFC 9110). */
static void continue_send(struct idem_connection *connection)
{
    static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    uv_buf_t buf = uv_buf_init(text, sizeof(text) - 1);
    int rc = uv_try_write((uv_stream_t *)&connection->tcp, &buf, 1);
    if (rc > 0 && (size_t)rc < sizeof(text) - 1) {
        idem_connection_close(connection);
    }
}

static bool exchange_begin(struct idem_connection *connection)
{
    struct idem_exchange *exchange = malloc(sizeof(*exchange));
    if (exchange == NULL) {
        return false;
    }
    /* Not zeroed as a whole: the array of headers is 2 KiB, and its count says what is in it. */
    exchange->connection = connection;
    exchange->owner = NULL;
    exchange->gone = false;
    exchange->head = connection->head;
    exchange->body = (struct idem_bytes){ 0 };
    connection->head = (struct idem_bytes){ 0 };
    connection->exchange = exchange;
    return true;
}

static enum idem_net_refusal head_read(struct idem_connection *connection)
{
    struct idem_server *server = connection->server;
    struct idem_net_request *request = &connection->exchange->request;
    struct idem_head *said = &connection->said;
    struct idem_str text = idem_bytes_str(&connection->exchange->head);

    enum idem_net_refusal refusal = idem_head_parse(text, request, said);
    if (refusal != IDEM_NET_REFUSAL_NONE) {
        return refusal;
    }
    llhttp_init(&connection->parser, HTTP_REQUEST, &server->parser_settings);
    connection->parser.data = connection;
    connection->message_complete = false;
    connection->fields_seen = 0;
    bool complete = !said->chunked && said->body_len == 0;
    if (!parser_agrees(connection, text, complete) ||
        connection->fields_seen != request->header_count) {
        return IDEM_NET_BAD_REQUEST;
    }
    if ((uint64_t)said->body_len > server->options.body_max) {
        return IDEM_NET_BODY_TOO_LARGE;
    }
    connection->chunks = (struct idem_chunks){ 0 };
    connection->body_left = (uint64_t)said->body_len;
    return IDEM_NET_REFUSAL_NONE;
}

/* The head is complete; `more` says whether bytes of the body are at hand already. */
static void head_end(struct idem_connection *connection, bool more)
{
    if (connection->head.len == 2) { /* RFC 9112, 2.2: one empty line may come before. */
        if (connection->blank_seen) {
            refuse(connection, IDEM_NET_BAD_REQUEST);
            return;
        }
        connection->blank_seen = true;
        idem_bytes_free(&connection->head);
        connection->state = IDEM_CONNECTION_IDLE;
        return;
    }
    connection->blank_seen = false;
    if (!exchange_begin(connection)) {
        idem_connection_close(connection);
        return;
    }
    enum idem_net_refusal refusal = head_read(connection);
    if (refusal != IDEM_NET_REFUSAL_NONE) {
        refuse(connection, refusal);
        return;
    }
    if (connection->message_complete) {
        dispatch(connection);
        return;
    }
    connection->state = IDEM_CONNECTION_BODY;
    if (connection->said.expects_continue && !more) {
        continue_send(connection);
    }
}

/* Takes what belongs to the head off `text`; returns how much that was. */
static size_t head_take(struct idem_connection *connection, struct idem_str text)
{
    size_t head_max = connection->server->options.head_max;
    struct idem_str part = idem_str_slice(text, 0, head_max - connection->head.len);
    size_t used = 0;

    enum idem_head_verdict verdict = idem_head_scan(&connection->place, part, &used);
    if (verdict == IDEM_HEAD_BAD) {
        refuse(connection, IDEM_NET_BAD_REQUEST);
        return text.len;
    }
    if (!idem_bytes_add(&connection->head, idem_str_slice(part, 0, used), head_max)) {
        idem_connection_close(connection);
        return text.len;
    }
    if (verdict == IDEM_HEAD_DONE) {
        head_end(connection, used < text.len);
        return used;
    }
    if (!idem_head_may_begin(idem_bytes_str(&connection->head))) {
        refuse(connection, IDEM_NET_BAD_REQUEST);
    } else if (connection->head.len == head_max) {
        refuse(connection, IDEM_NET_HEAD_TOO_LARGE);
    }
    return text.len;
}

/* How much of `text` is body, and whether it ends there. */
static enum idem_chunks_verdict body_measure(struct idem_connection *connection,
                                             struct idem_str text,
                                             size_t *ret_used)
{
    if (connection->said.chunked) {
        return idem_chunks_scan(&connection->chunks, text, connection->server->options.body_max,
                                ret_used);
    }
    *ret_used = text.len < connection->body_left ? text.len : (size_t)connection->body_left;
    connection->body_left -= *ret_used;
    return connection->body_left == 0 ? IDEM_CHUNKS_DONE : IDEM_CHUNKS_MORE;
}

static size_t body_take(struct idem_connection *connection, struct idem_str text)
{
    size_t used = 0;
    enum idem_chunks_verdict verdict = body_measure(connection, text, &used);
    if (verdict == IDEM_CHUNKS_BAD || verdict == IDEM_CHUNKS_TOO_LARGE) {
        refuse(connection,
               verdict == IDEM_CHUNKS_BAD ? IDEM_NET_BAD_REQUEST : IDEM_NET_BODY_TOO_LARGE);
        return text.len;
    }
    struct idem_str part = idem_str_slice(text, 0, used);
    bool agreed = parser_agrees(connection, part, verdict == IDEM_CHUNKS_DONE);
    if (connection->starved) {
        idem_connection_close(connection);
        return text.len;
    }
    if (!agreed) {
        refuse(connection, IDEM_NET_BAD_REQUEST);
        return text.len;
    }
    if (verdict == IDEM_CHUNKS_DONE) {
        dispatch(connection);
    }
    return used;
}

/* Takes requests off `text`, as many as are answered at once; returns how much was used. */
static size_t consume(struct idem_connection *connection, struct idem_str text)
{
    size_t used = 0;
    IDEM_ASSERT(!connection->consuming);

    connection->consuming = true;
    while (used < text.len && connection->state <= IDEM_CONNECTION_BODY &&
           connection->turn_served < IDEM_NET_TURN_MAX) {
        struct idem_str rest = idem_str_slice(text, used, text.len);
        if (connection->state == IDEM_CONNECTION_BODY) {
            used += body_take(connection, rest);
            continue;
        }
        if (connection->state == IDEM_CONNECTION_IDLE) {
            connection->state = IDEM_CONNECTION_HEAD;
            connection->place = IDEM_HEAD_LINE_START;
            connection->said = (struct idem_head){ 0 };
        }
        used += head_take(connection, rest);
    }
    if (connection->state == IDEM_CONNECTION_BUSY) {
        connection->turn_served = 0; /* The owner's pace is not the caller's. */
    }
    connection->consuming = false;
    return used;
}

/* Counts what is held for what is no complete request; refuses who holds it above the budget. */
static void pending_follow(struct idem_connection *connection)
{
    const struct idem_server *server = connection->server;
    const struct idem_exchange *exchange = connection->exchange;
    size_t held = connection->head.max + connection->early.max;
    if (exchange != NULL && connection->state != IDEM_CONNECTION_BUSY) {
        held += sizeof(*exchange) + exchange->head.max + exchange->body.max;
    }
    pending_count(connection, held);
    bool half = connection->state == IDEM_CONNECTION_HEAD ||
                connection->state == IDEM_CONNECTION_BODY || connection->yielded;
    if (half && server->pending > server->options.pending_max) {
        refuse(connection, IDEM_NET_CROWDED);
        idem_turn_begin(connection);
        idem_bytes_free(&connection->early);
        pending_count(connection, 0);
    }
}

/* Reading ------------------------------------------------------------------------------------- */

/* Bytes that will never be a request, because the current answer is the last. */
static bool is_discarding(const struct idem_connection *connection)
{
    return connection->last || connection->state == IDEM_CONNECTION_LINGER;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    (void)suggested; /* 64 KiB, always; ours is smaller so that a leftover can be kept. */
    struct idem_connection *connection = handle->data;
    size_t size = IDEM_NET_READ_MAX - connection->early.len;
    IDEM_ASSERT(size > 0); /* Otherwise reading was stopped. */
    *ret_buf = uv_buf_init(connection->server->read_bytes, (unsigned)size);
}

static void input_take(struct idem_connection *connection, struct idem_str text)
{
    if (is_discarding(connection)) {
        connection->discarded += text.len;
        return;
    }
    size_t used = connection->early.len == 0 ? consume(connection, text) : 0;
    struct idem_str rest = idem_str_slice(text, used, text.len);
    if (connection->state == IDEM_CONNECTION_CLOSED || is_discarding(connection)) {
        connection->discarded += rest.len;
        return;
    }
    if (!idem_bytes_add(&connection->early, rest, IDEM_NET_EARLY_MAX)) {
        idem_connection_close(connection);
    }
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct idem_connection *connection = stream->data;
    if (count == 0 || connection->state == IDEM_CONNECTION_CLOSED) {
        return;
    }
    if (count < 0 && count != UV_EOF) {
        idem_connection_close(connection);
        return;
    }
    if (count == UV_EOF) {
        connection->ended = true;
        connection->reading = false; /* libuv has stopped by itself. */
        tell_gone(connection);
    } else {
        input_take(connection, (struct idem_str){ .data = buf->base, .len = (size_t)count });
    }
    idem_connection_resume(connection);
    if (count > 0 && (size_t)count < buf->len && !connection->yielded) {
        connection->turn_served = 0; /* libuv turns to others; after a full read it reads on. */
    }
}

static bool reading_is_wanted(const struct idem_connection *connection)
{
    const struct idem_server *server = connection->server;
    if (connection->ended || connection->yielded) {
        return false;
    }
    if (is_discarding(connection)) {
        return connection->discarded < IDEM_NET_LINGER_MAX;
    }
    if (connection->state <= IDEM_CONNECTION_BODY) {
        return true;
    }
    /* Its own answer makes it read again, so nobody has to be woken when the budget has room. */
    return connection->early.len < IDEM_NET_EARLY_MAX &&
           server->pending <= server->options.pending_max;
}

static void reading_follow(struct idem_connection *connection)
{
    uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
    bool wanted = reading_is_wanted(connection);
    if (wanted == connection->reading) {
        return;
    }
    if (!wanted) {
        connection->reading = false;
        (void)uv_read_stop(stream); /* Always succeeds. */
        return;
    }
    connection->reading = true;
    if (uv_read_start(stream, on_alloc, on_read) != 0) {
        idem_connection_close(connection);
    }
}

/* True if nothing can follow any more: one side has ended and nothing complete is left. */
static bool is_finished(const struct idem_connection *connection)
{
    if (connection->yielded) {
        return false;
    }
    if (connection->state == IDEM_CONNECTION_LINGER) {
        return connection->ended || connection->discarded >= IDEM_NET_LINGER_MAX;
    }
    if (connection->server->draining && connection->state == IDEM_CONNECTION_IDLE) {
        return true;
    }
    return connection->ended && connection->state <= IDEM_CONNECTION_BODY;
}

static void early_consume(struct idem_connection *connection)
{
    if (connection->state != IDEM_CONNECTION_IDLE || connection->yielded) {
        return;
    }
    size_t used = consume(connection, idem_bytes_str(&connection->early));
    idem_bytes_drop(&connection->early, used);
    if (connection->state == IDEM_CONNECTION_IDLE && connection->early.len > 0) {
        idem_turn_yield(connection);
    }
}

void idem_connection_resume(struct idem_connection *connection)
{
    if (connection->consuming || connection->state == IDEM_CONNECTION_CLOSED) {
        return;
    }
    early_consume(connection);
    if (is_discarding(connection)) {
        idem_bytes_free(&connection->early);
    }
    pending_follow(connection);
    if (is_finished(connection)) {
        idem_connection_close(connection);
    }
    if (connection->state == IDEM_CONNECTION_CLOSED) {
        return;
    }
    reading_follow(connection);
    enum idem_deadline wanted = deadline_of[connection->state];
    if (connection->state != IDEM_CONNECTION_CLOSED && wanted != connection->deadline) {
        idem_deadline_clear(connection);
        if (wanted != IDEM_DEADLINE_NONE) {
            idem_deadline_set(connection, wanted);
        }
    }
}

void idem_connection_expire(struct idem_connection *connection, enum idem_deadline deadline)
{
    switch (deadline) {
    case IDEM_DEADLINE_HEAD:
        refuse(connection, IDEM_NET_HEAD_SLOW);
        idem_connection_resume(connection);
        return;
    case IDEM_DEADLINE_BODY:
        refuse(connection, IDEM_NET_BODY_SLOW);
        idem_connection_resume(connection);
        return;
    case IDEM_DEADLINE_IDLE:
    case IDEM_DEADLINE_LINGER:
        idem_connection_close(connection);
        return;
    case IDEM_DEADLINE_WRITE: /* A reset frees what the kernel still holds for the caller. */
        connection_reset(connection);
        return;
    case IDEM_DEADLINE_NONE:
    case IDEM_DEADLINE_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

bool idem_connection_is_idle(const struct idem_connection *connection)
{
    return connection->state == IDEM_CONNECTION_IDLE && connection->early.len == 0 &&
           !connection->consuming;
}

bool idem_connection_accept(struct idem_server *server)
{
    struct idem_connection *connection = calloc(1, sizeof(*connection));
    if (connection == NULL) {
        return false;
    }
    size_t served = server->connections.count - server->crowded_count;
    connection->server = server;
    connection->tcp.data = connection;
    connection->crowded = served >= server->options.connections_max;
    int rc = uv_tcp_init(server->options.loop, &connection->tcp);
    IDEM_ASSERT(rc == 0); /* Makes no socket yet. */
    server->handles_open += 1;
    server->stats.accepted += 1;
    server->crowded_count += connection->crowded ? 1 : 0;
    idem_list_push(&server->connections, &connection->listed);

    uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
    if (uv_accept((uv_stream_t *)&server->listener, stream) != 0) {
        idem_connection_close(connection);
        return true;
    }
    if (server->crowded_count > IDEM_NET_CROWDED_MAX) {
        server->stats.refused[IDEM_NET_CROWDED] += 1;
        idem_connection_close(connection);
        return true;
    }
    (void)uv_tcp_nodelay(&connection->tcp, 1); /* Without it answers are only slower. */
    if (connection->crowded) {
        refuse(connection, IDEM_NET_CROWDED);
    }
    idem_connection_resume(connection);
    return true;
}
