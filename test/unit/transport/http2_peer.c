/*
 * Blocking TLS and threads, frame by frame (RFC 9113), nothing clever: the peer is the judge and
 * must be plainly right about what arrived. Header blocks are literals and one static index
 * (RFC 7541); those of the client are counted, not read.
 */
#include "unit/transport/http2_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/bug.h"
#include "unit/transport/certificate.h"
#include "unit/transport/http2_frame.h"

#define CONNECTIONS_MAX 64
#define SCRIPT_MAX      16
#define STREAMS_MAX     64
#define PREFACE_SIZE    24
#define BODY            "{\"answer\":%u}"
#define HTTP1_ANSWER    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nplain"

struct stream {
    uint32_t id;
    unsigned arrival; /* Counted from 1. */
    enum http2_fault fault;
    bool held;
    bool half; /* Half of its answer has left. */
};

struct connection {
    struct http2_peer *peer;
    pthread_t thread;
    int socket; /* -1: closed. */
    bool resets;
    SSL *tls;
    struct stream streams[STREAMS_MAX];
    size_t stream_count;
    struct http2_frame frame; /* The one being read. */
};

struct http2_peer {
    struct http2_peer_options options;
    struct certificate certificate;
    SSL_CTX *context;
    int listener;
    uint16_t port;
    pthread_t acceptor;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum http2_fault script[SCRIPT_MAX];
    size_t script_count;
    size_t script_index;
    unsigned arrivals;
    unsigned arrivals_http1;
    unsigned resets;
    size_t body_size;
    struct connection connections[CONNECTIONS_MAX];
    size_t connection_count;
};

/* What arrived. */

static void counted(struct http2_peer *peer, unsigned *count)
{
    (void)pthread_mutex_lock(&peer->mutex);
    *count += 1;
    (void)pthread_cond_broadcast(&peer->changed);
    (void)pthread_mutex_unlock(&peer->mutex);
}

static struct stream *stream_open(struct connection *connection, uint32_t id)
{
    struct http2_peer *peer = connection->peer;
    IDEM_ASSERT(connection->stream_count < STREAMS_MAX);
    struct stream *stream = &connection->streams[connection->stream_count];
    connection->stream_count += 1;

    (void)pthread_mutex_lock(&peer->mutex);
    peer->arrivals += 1;
    *stream = (struct stream){ .id = id,
                               .arrival = peer->arrivals,
                               .fault = peer->script[peer->script_index] };
    peer->script_index += peer->script_index + 1 < peer->script_count;
    (void)pthread_cond_broadcast(&peer->changed);
    (void)pthread_mutex_unlock(&peer->mutex);
    return stream;
}

/* NULL: one that was reset. */
static struct stream *stream_find(struct connection *connection, uint32_t id)
{
    for (size_t i = 0; i < connection->stream_count; i++) {
        if (connection->streams[i].id == id) {
            return &connection->streams[i];
        }
    }
    return NULL;
}

/* Answers. */

static struct http2_frame head_make(const struct stream *stream, bool sized)
{
    struct http2_frame frame = {
        .type = FRAME_HEADERS,
        .flags = FLAG_END_HEADERS,
        .stream = stream->id,
        .size = 1,
        .data = { 0x88 }, /* ":status: 200" */
    };
    char length[16];

    (void)snprintf(length, sizeof(length), "%d", snprintf(NULL, 0, BODY, stream->arrival));
    http2_field_add(&frame, "content-type", "application/json");
    if (sized) {
        http2_field_add(&frame, "content-length", length);
    }
    return frame;
}

static void head_write(struct connection *connection, const struct stream *stream, bool sized)
{
    struct http2_frame frame = head_make(stream, sized);
    http2_frame_write(connection->tls, &frame, frame.size);
}

static void interim_write(struct connection *connection, const struct stream *stream)
{
    struct http2_frame frame = { .type = FRAME_HEADERS,
                                 .flags = FLAG_END_HEADERS,
                                 .stream = stream->id };
    http2_field_add(&frame, ":status", "103");
    http2_field_add(&frame, "x-early", "hint");
    http2_frame_write(connection->tls, &frame, frame.size);
}

static void trailer_write(struct connection *connection, const struct stream *stream)
{
    struct http2_frame frame = { .type = FRAME_HEADERS,
                                 .flags = FLAG_END_HEADERS | FLAG_END_STREAM,
                                 .stream = stream->id };
    http2_field_add(&frame, "x-late", "trailer");
    http2_frame_write(connection->tls, &frame, frame.size);
}

static void continued_write(struct connection *connection, const struct stream *stream)
{
    struct http2_frame frame = head_make(stream, true);
    struct http2_frame rest = { .type = FRAME_CONTINUATION,
                                .flags = FLAG_END_HEADERS,
                                .stream = stream->id };

    rest.size = frame.size - 3; /* In the middle of a field. */
    memcpy(rest.data, frame.data + 3, rest.size);
    frame.size = 3;
    frame.flags = 0;
    http2_frame_write(connection->tls, &frame, frame.size);
    http2_frame_write(connection->tls, &rest, rest.size);
}

/* The first four bytes of the body, or the rest. */
static void half_write(struct connection *connection,
                       const struct stream *stream,
                       bool rest,
                       bool end)
{
    struct http2_frame frame = { .type = FRAME_DATA,
                                 .flags = end ? FLAG_END_STREAM : 0,
                                 .stream = stream->id };
    char body[32];
    size_t len = (size_t)snprintf(body, sizeof(body), BODY, stream->arrival);

    frame.size = rest ? len - 4 : 4;
    memcpy(frame.data, rest ? body + 4 : body, frame.size);
    http2_frame_write(connection->tls, &frame, frame.size);
}

static void answer_write(struct connection *connection, const struct stream *stream, bool sized)
{
    head_write(connection, stream, sized);
    half_write(connection, stream, false, false);
    half_write(connection, stream, true, true);
}

static void hold(struct connection *connection, struct stream *stream, bool half)
{
    stream->held = true;
    stream->half = half;
    if (half) {
        head_write(connection, stream, true);
        half_write(connection, stream, false, false);
    }
}

/* Newest first, so that answers overtake each other; heads and halves of all, then the rests. */
static void release(struct connection *connection)
{
    for (size_t i = connection->stream_count; i > 0; i--) {
        struct stream *other = &connection->streams[i - 1];
        if (other->held && !other->half) {
            head_write(connection, other, true);
            half_write(connection, other, false, false);
        }
    }
    for (size_t i = connection->stream_count; i > 0; i--) {
        struct stream *other = &connection->streams[i - 1];
        if (other->held) {
            half_write(connection, other, true, true);
        }
        other->held = false;
    }
}

static void cut_write(struct connection *connection, const struct stream *stream)
{
    head_write(connection, stream, false);
    half_write(connection, stream, false, false);
}

static void cut_head_write(struct connection *connection, const struct stream *stream)
{
    struct http2_frame frame = head_make(stream, true);
    http2_frame_write(connection->tls, &frame, frame.size + 20);
}

static void empty_write(struct connection *connection, const struct stream *stream)
{
    struct http2_frame frame = head_make(stream, false);
    frame.flags |= FLAG_END_STREAM;
    http2_frame_write(connection->tls, &frame, frame.size);
}

static void no_content_write(struct connection *connection, const struct stream *stream)
{
    struct http2_frame frame = {
        .type = FRAME_HEADERS,
        .flags = FLAG_END_HEADERS | FLAG_END_STREAM,
        .stream = stream->id,
        .size = 1,
        .data = { 0x89 }, /* ":status: 204" */
    };
    http2_frame_write(connection->tls, &frame, frame.size);
}

static void text_write(struct connection *connection, const struct stream *stream)
{
    struct http2_frame frame = {
        .type = FRAME_DATA,
        .flags = FLAG_END_STREAM,
        .stream = stream->id,
        .size = 4,
        .data = { 'f', 'i', 'n', 'e' },
    };
    head_write(connection, stream, false);
    http2_frame_write(connection->tls, &frame, frame.size);
}

/* Closing with something unread is a reset, which can overtake what was written. */
static void drain(const struct connection *connection)
{
    char unread[4096];

    (void)shutdown(connection->socket, SHUT_WR); /* The client may have gone. */
    while (recv(connection->socket, unread, sizeof(unread), 0) > 0) {
    }
}

static void reset_on_close(int socket)
{
    struct linger linger = { .l_onoff = 1, .l_linger = 0 };
    (void)setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)); /* Always can. */
}

/* At the head of a request. True: the connection goes on. */
static bool fault_show_early(struct connection *connection, const struct stream *stream)
{
    if (stream->fault == HTTP2_REFUSE_EARLY) {
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_REFUSED);
    }
    return stream->fault != HTTP2_CLOSE_EARLY;
}

/* At the end of a request. True: the connection goes on. */
/* NOLINTNEXTLINE(readability-function-size): one switch, which is what this peer is for. */
static bool fault_show(struct connection *connection, struct stream *stream)
{
    switch (stream->fault) {
    case HTTP2_ANSWER:
    case HTTP2_ANSWER_BARE:
        answer_write(connection, stream, stream->fault == HTTP2_ANSWER);
        return true;
    case HTTP2_ANSWER_EMPTY:
        empty_write(connection, stream);
        return true;
    case HTTP2_ANSWER_TEXT:
        text_write(connection, stream);
        return true;
    case HTTP2_ANSWER_NO_CONTENT:
        no_content_write(connection, stream);
        return true;
    case HTTP2_ANSWER_INTERIM:
        interim_write(connection, stream);
        answer_write(connection, stream, true);
        return true;
    case HTTP2_ANSWER_TRAILERS:
        head_write(connection, stream, false);
        half_write(connection, stream, false, false);
        half_write(connection, stream, true, false);
        trailer_write(connection, stream);
        return true;
    case HTTP2_ANSWER_GOODBYE:
        answer_write(connection, stream, false);
        http2_goaway_write(connection->tls, stream->id, CODE_OK);
        return false;
    case HTTP2_ANSWER_CONTINUED:
        continued_write(connection, stream);
        half_write(connection, stream, false, false);
        half_write(connection, stream, true, true);
        return true;
    case HTTP2_HOLD:
    case HTTP2_HOLD_HALF:
        hold(connection, stream, stream->fault == HTTP2_HOLD_HALF);
        return true;
    case HTTP2_RELEASE:
        stream->held = true;
        release(connection);
        return true;
    case HTTP2_SILENT:
    case HTTP2_REFUSE_EARLY:
        return true;
    case HTTP2_REFUSE:
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_REFUSED);
        return true;
    case HTTP2_REFUSE_RELEASE:
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_REFUSED);
        release(connection);
        return true;
    case HTTP2_CANCEL:
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_CANCEL);
        return true;
    case HTTP2_RST_OK:
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_OK);
        return true;
    case HTTP2_RST_INTERNAL:
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_INTERNAL);
        return true;
    case HTTP2_RST_HTTP11:
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_HTTP11);
        return true;
    case HTTP2_GOAWAY:
        http2_goaway_write(connection->tls, 0, CODE_OK);
        return true;
    case HTTP2_GOAWAY_CLOSE:
        http2_goaway_write(connection->tls, 0, CODE_OK);
        return false;
    case HTTP2_GOAWAY_HTTP11:
        http2_goaway_write(connection->tls, 0, CODE_HTTP11);
        return false;
    case HTTP2_CLOSE_EARLY:
    case HTTP2_CLOSE:
        return false;
    case HTTP2_RESET:
        reset_on_close(connection->socket);
        connection->resets = true;
        return false;
    case HTTP2_CUT_HEAD:
        cut_head_write(connection, stream);
        return false;
    case HTTP2_CUT_BARE:
        cut_write(connection, stream);
        return false;
    case HTTP2_CUT_CANCEL:
        cut_write(connection, stream);
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_CANCEL);
        return true;
    case HTTP2_CUT_OK:
        cut_write(connection, stream);
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_OK);
        return true;
    case HTTP2_CUT_REFUSE:
        cut_write(connection, stream);
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_REFUSED);
        return true;
    case HTTP2_CUT_GOAWAY:
        cut_write(connection, stream);
        http2_goaway_write(connection->tls, stream->id, CODE_OK);
        return false;
    case HTTP2_CUT_LENGTH:
        head_write(connection, stream, true);
        half_write(connection, stream, false, true);
        return true;
    case HTTP2_CUT_LENGTH_OK:
        head_write(connection, stream, true);
        half_write(connection, stream, false, false);
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_OK);
        return true;
    case HTTP2_CUT_NO_BODY_OK:
        head_write(connection, stream, false);
        http2_number_write(connection->tls, FRAME_RST_STREAM, stream->id, CODE_OK);
        return true;
    case HTTP2_CUT_NO_BODY:
        head_write(connection, stream, false);
        return false;
    case HTTP2_CUT_INTERIM:
        interim_write(connection, stream);
        return false;
    case HTTP2_FAULT_COUNT:
        break;
    }
    abort(); /* A test asks for a fault that does not exist. */
}

/* Connections. */

static bool data_take(struct connection *connection, const struct stream *stream)
{
    struct http2_peer *peer = connection->peer;
    const struct http2_frame *frame = &connection->frame;

    (void)pthread_mutex_lock(&peer->mutex);
    peer->body_size += frame->size;
    (void)pthread_mutex_unlock(&peer->mutex);
    if (frame->size > 0 && (stream == NULL || stream->fault != HTTP2_SILENT)) {
        http2_number_write(connection->tls, FRAME_WINDOW_UPDATE, 0, (uint32_t)frame->size);
        if (stream != NULL && (frame->flags & FLAG_END_STREAM) == 0) {
            http2_number_write(connection->tls, FRAME_WINDOW_UPDATE, stream->id,
                               (uint32_t)frame->size);
        }
    }
    return true;
}

/* True: the connection goes on. */
static bool request_take(struct connection *connection)
{
    const struct http2_frame *frame = &connection->frame;
    struct stream *stream = stream_find(connection, frame->stream);
    bool on = true;

    if (frame->type == FRAME_HEADERS) {
        IDEM_ASSERT(stream == NULL);
        IDEM_ASSERT((frame->flags & FLAG_END_HEADERS) != 0);
        stream = stream_open(connection, frame->stream);
        on = fault_show_early(connection, stream);
    } else {
        on = data_take(connection, stream);
    }
    if (!on || stream == NULL || (frame->flags & FLAG_END_STREAM) == 0) {
        return on;
    }
    return fault_show(connection, stream);
}

/* True: the connection goes on. */
static bool frame_take(struct connection *connection)
{
    struct http2_frame *frame = &connection->frame;
    struct stream *stream = stream_find(connection, frame->stream);

    if (frame->type == FRAME_HEADERS || frame->type == FRAME_DATA) {
        return request_take(connection);
    }
    if ((frame->type == FRAME_SETTINGS || frame->type == FRAME_PING) &&
        (frame->flags & FLAG_ACK) == 0) {
        frame->flags = FLAG_ACK;
        frame->size = frame->type == FRAME_PING ? frame->size : 0;
        http2_frame_write(connection->tls, frame, frame->size);
    }
    if (frame->type == FRAME_RST_STREAM) {
        if (stream != NULL) {
            stream->held = false;
        }
        counted(connection->peer, &connection->peer->resets);
    }
    return true;
}

static void http2_serve(struct connection *connection)
{
    char preface[PREFACE_SIZE];
    struct http2_frame settings = { .type = FRAME_SETTINGS };

    if (connection->peer->options.streams_max > 0) {
        settings.data[1] = 3; /* SETTINGS_MAX_CONCURRENT_STREAMS */
        http2_put_u32(settings.data + 2, connection->peer->options.streams_max);
        settings.size = 6;
    }
    http2_frame_write(connection->tls, &settings, settings.size);
    if (!http2_read_all(connection->tls, preface, sizeof(preface))) {
        return;
    }
    while (http2_frame_read(connection->tls, &connection->frame) && frame_take(connection)) {
    }
}

static void http1_serve(struct connection *connection)
{
    struct http2_peer *peer = connection->peer;
    const char *answer = peer->options.http1_answer;
    char request[4096] = "";
    size_t have = 0;

    while (strstr(request, "\r\n\r\n") == NULL) {
        int got = SSL_read(connection->tls, request + have, (int)(sizeof(request) - 1 - have));
        if (got <= 0) {
            return;
        }
        have += (size_t)got;
        request[have] = '\0';
    }
    counted(peer, &peer->arrivals);
    counted(peer, &peer->arrivals_http1);
    answer = answer == NULL ? HTTP1_ANSWER : answer;
    (void)SSL_write(connection->tls, answer, (int)strlen(answer)); /* The client notices if not. */
}

static void *connection_run(void *user)
{
    struct connection *connection = user;
    const unsigned char *alpn;
    unsigned alpn_len = 0;
    sigset_t pipe;

    /* OpenSSL raises it when a client has gone. Only here: the client under test must not. */
    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, NULL);

    if (SSL_accept(connection->tls) == 1) {
        SSL_get0_alpn_selected(connection->tls, &alpn, &alpn_len);
        if (alpn_len == 2) {
            http2_serve(connection);
        } else {
            http1_serve(connection);
        }
        if (!connection->resets) {
            (void)SSL_shutdown(connection->tls); /* The client may have gone. */
            drain(connection);
        }
    }
    (void)pthread_mutex_lock(&connection->peer->mutex);
    (void)close(connection->socket);
    connection->socket = -1;
    (void)pthread_mutex_unlock(&connection->peer->mutex);
    SSL_free(connection->tls);
    return NULL;
}

static void connection_accept(struct http2_peer *peer, int socket)
{
    (void)pthread_mutex_lock(&peer->mutex);
    IDEM_ASSERT(peer->connection_count < CONNECTIONS_MAX);
    struct connection *connection = &peer->connections[peer->connection_count];
    peer->connection_count += 1;
    connection->peer = peer;
    connection->socket = socket;
    connection->tls = SSL_new(peer->context);
    IDEM_ASSERT(connection->tls != NULL);
    int rc = SSL_set_fd(connection->tls, socket);
    IDEM_ASSERT(rc == 1);
    rc = pthread_create(&connection->thread, NULL, connection_run, connection);
    IDEM_ASSERT(rc == 0);
    (void)pthread_mutex_unlock(&peer->mutex);
}

static void *acceptor_run(void *user)
{
    struct http2_peer *peer = user;

    for (;;) {
        int socket = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
        if (socket < 0) {
            return NULL; /* Shut down by http2_peer_stop(). */
        }
        connection_accept(peer, socket);
    }
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are OpenSSL's. */
static int alpn_select(SSL *tls,
                       const unsigned char **ret_name,
                       unsigned char *ret_len,
                       const unsigned char *offered,
                       unsigned offered_len,
                       void *user)
{
    static const unsigned char http1[] = "\x08http/1.1";
    static const unsigned char both[] = "\x02h2\x08http/1.1";
    const struct http2_peer *peer = user;
    bool only = peer->options.http1_only;
    unsigned char *name;
    (void)tls; /* All alike. */

    int rc =
        SSL_select_next_proto(&name, ret_len, only ? http1 : both,
                              only ? sizeof(http1) - 1 : sizeof(both) - 1, offered, offered_len);
    *ret_name = name;
    return rc == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

struct http2_peer *http2_peer_start(const struct http2_peer_options *options)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);
    struct http2_peer *peer = calloc(1, sizeof(*peer));
    IDEM_ASSERT(peer != NULL);

    peer->options = *options;
    peer->script_count = 1;
    certificate_make(&peer->certificate, "IP:127.0.0.1");
    peer->context = certificate_context(&peer->certificate);
    SSL_CTX_set_alpn_select_cb(peer->context, alpn_select, peer);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = bind(peer->listener, (struct sockaddr *)&address, sizeof(address));
    IDEM_ASSERT(rc == 0);
    rc = listen(peer->listener, CONNECTIONS_MAX);
    IDEM_ASSERT(rc == 0);
    rc = getsockname(peer->listener, (struct sockaddr *)&address, &size);
    IDEM_ASSERT(rc == 0);
    peer->port = ntohs(address.sin_port);
    (void)pthread_mutex_init(&peer->mutex, NULL);
    (void)pthread_cond_init(&peer->changed, NULL);
    rc = pthread_create(&peer->acceptor, NULL, acceptor_run, peer);
    IDEM_ASSERT(rc == 0);
    return peer;
}

void http2_peer_stop(struct http2_peer *peer)
{
    (void)shutdown(peer->listener, SHUT_RDWR); /* Ends accept(). */
    (void)pthread_join(peer->acceptor, NULL);
    (void)pthread_mutex_lock(&peer->mutex);
    for (size_t i = 0; i < peer->connection_count; i++) {
        if (peer->connections[i].socket >= 0) {
            (void)shutdown(peer->connections[i].socket, SHUT_RDWR); /* Ends SSL_read(). */
        }
    }
    (void)pthread_mutex_unlock(&peer->mutex);
    for (size_t i = 0; i < peer->connection_count; i++) {
        (void)pthread_join(peer->connections[i].thread, NULL);
    }
    (void)close(peer->listener);
    (void)pthread_cond_destroy(&peer->changed);
    (void)pthread_mutex_destroy(&peer->mutex);
    SSL_CTX_free(peer->context);
    certificate_free(&peer->certificate);
    free(peer);
}

void http2_peer_script(struct http2_peer *peer, const enum http2_fault *faults, size_t count)
{
    IDEM_ASSERT(count > 0);
    IDEM_ASSERT(count <= SCRIPT_MAX);
    (void)pthread_mutex_lock(&peer->mutex);
    memcpy(peer->script, faults, count * sizeof(faults[0]));
    peer->script_count = count;
    peer->script_index = 0;
    (void)pthread_mutex_unlock(&peer->mutex);
}

uint16_t http2_peer_port(const struct http2_peer *peer)
{
    return peer->port;
}

const char *http2_peer_ca_file(const struct http2_peer *peer)
{
    return peer->certificate.ca_file;
}

static unsigned locked_read(struct http2_peer *peer, const unsigned *value)
{
    (void)pthread_mutex_lock(&peer->mutex);
    unsigned copy = *value;
    (void)pthread_mutex_unlock(&peer->mutex);
    return copy;
}

static void locked_wait(struct http2_peer *peer, const unsigned *value, unsigned count)
{
    (void)pthread_mutex_lock(&peer->mutex);
    while (*value < count) {
        (void)pthread_cond_wait(&peer->changed, &peer->mutex);
    }
    (void)pthread_mutex_unlock(&peer->mutex);
}

unsigned http2_peer_arrivals(struct http2_peer *peer)
{
    return locked_read(peer, &peer->arrivals);
}

unsigned http2_peer_arrivals_http1(struct http2_peer *peer)
{
    return locked_read(peer, &peer->arrivals_http1);
}

unsigned http2_peer_connections(struct http2_peer *peer)
{
    (void)pthread_mutex_lock(&peer->mutex);
    size_t count = peer->connection_count;
    (void)pthread_mutex_unlock(&peer->mutex);
    return (unsigned)count;
}

size_t http2_peer_body_size(struct http2_peer *peer)
{
    (void)pthread_mutex_lock(&peer->mutex);
    size_t size = peer->body_size;
    (void)pthread_mutex_unlock(&peer->mutex);
    return size;
}

void http2_peer_wait_arrivals(struct http2_peer *peer, unsigned count)
{
    locked_wait(peer, &peer->arrivals, count);
}

void http2_peer_wait_resets(struct http2_peer *peer, unsigned count)
{
    locked_wait(peer, &peer->resets, count);
}
