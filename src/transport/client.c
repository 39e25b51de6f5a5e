/*
 * HTTP calls over libcurl's multi_socket interface, each sent at most once.
 *
 * Why a guard: when a reused connection dies before the answer begins, libcurl sends the request
 * again on a new connection, POST included, and reports success (measured with 7.88; the tests
 * repeat it). Its own counters do not show that. What does is the prereq hook, which runs before
 * every request is written: guard() lets the first pass and aborts any other. So `sends` is the
 * whole truth about what may have left:
 *
 *     sends == 0                          NOT_SENT   whatever libcurl says happened
 *     sends == 1, a complete answer       ANSWERED
 *     sends == 1, anything else           UNKNOWN    also when a second send was refused
 *
 * That holds over HTTP/2 as well: whatever makes libcurl try again (a stream refused, a connection
 * that says goodbye or dies, a peer that wants HTTP/1.1) comes back through the same hook.
 *
 * The same hook compares `not_after_us` with the clock, as late as that can be done. And it looks
 * at the socket: what waits there before a request has left is no answer to it, though libcurl
 * would take it for one, and behind an end of file nobody will answer. In HTTP/1.1 such a
 * connection is given up with nothing sent, and again() makes the call once more on a new one
 * (surplus.md).
 *
 * "Complete" is more than libcurl's OK. A head that was cut behind its status line and a body that
 * only ends because the connection does are both OK to libcurl, and neither can be told from an
 * answer that lost its end. head_line() follows the head: it must have ended and said how long the
 * body is (or the status allows none).
 *
 * Over HTTP/2 the end is a flag of the last frame, and many servers announce no length. libcurl
 * reports every other end as an error, except one: a stream that was reset with NO_ERROR in the
 * middle of its answer is OK to it, like one that has ended (7.88; curl issue 6015). So without a
 * length the body must show by itself that it is whole, as a JSON object or array does: no part of
 * one is one (whole.c). Where it does not, the call is UNKNOWN, and the client speaks only
 * HTTP/1.1 from then on, in which a repetition can be proven. Whether it was HTTP/2 at all must not
 * be believed from the answer's first line, which any peer can write: wire_version() looks at the
 * request's.
 *
 * Deadlines are timers of this file. libcurl does not look at its own while a transfer waits for a
 * free connection to its host.
 *
 * Life of a call: submit() takes a transfer from `idle`; finish() is the only way back, called for
 * what libcurl has ended, for a deadline and for a cancel; it puts the call on `done`.
 */
#include "transport/client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/bug.h"
#include "base/crash.h"
#include "transport/client_internal.h"
#include "transport/sockets.h"

#define STATUS_MIN 200 /* Below are interim answers, and 101, which we never ask. */
#define STATUS_MAX 599

/* What this file, not libcurl, found wrong. */
enum objection {
    OBJECTION_NONE = 0,
    OBJECTION_LATE,     /* not_after_us had passed. */
    OBJECTION_AGAIN,    /* libcurl wanted to send a second time. */
    OBJECTION_STALE,    /* Something to read, or the end, before the request. */
    OBJECTION_TOO_LONG, /* The answer is longer than there is room. */
    OBJECTION_VERSION,  /* An answer in HTTP/2 to a request that was not. */
    OBJECTION_DEADLINE,
    OBJECTION_CANCEL
};

/* One place on the wire, with what libcurl needs as long as the call is there. */
struct transfer {
    struct idem_list_node node; /* On `idle`, or on `busy`. */
    struct idem_http_client *client;
    struct idem_http_call *call;
    CURL *easy;
    CURLcode setup; /* What refused the call before it was libcurl's; CURLE_OK: nothing. */
    uv_timer_t deadline;
    enum objection objection;
    struct idem_http_head head;
    struct idem_http_opening opening;
    bool http2; /* The request was written as HTTP/2. */
    bool fresh; /* It asks for a new connection: the one it had was stale. */
    int socket; /* Which the request was let through to; -1: none that is known. */
    char error[CURL_ERROR_SIZE];
    struct idem_http_lines lines; /* Last: see there. */
};

/* A socket that libcurl wants watched. Freed by its own close callback, never before. */
struct watch {
    uv_poll_t poll;
    struct idem_http_client *client;
    curl_socket_t socket;
};

struct idem_http_client {
    uv_loop_t *loop;
    struct idem_clock *clock;
    CURLM *multi;
    uv_timer_t timer; /* libcurl's. */
    struct transfer *transfers;
    size_t transfer_count;
    struct idem_list idle;
    struct idem_list busy;
    struct idem_list done;
    struct idem_http_sockets sockets;
    uint64_t stirs;      /* Of sockets and timer, ever. */
    size_t handles_open; /* Of libuv, until their close callbacks have run. */
    bool http2;          /* May be spoken. */
    bool http2_vague;    /* It has left in doubt where an answer ended. */
    bool proxied;
    bool destroyed;
};

/* Handles of libuv close later than asked; the last one frees the client. */
static void handle_closed(struct idem_http_client *client)
{
    IDEM_ASSERT(client->handles_open > 0);
    client->handles_open -= 1;
    if (client->destroyed && client->handles_open == 0) {
        idem_http_sockets_deinit(&client->sockets);
        free(client->transfers);
        free(client);
    }
}

/* The end of a call. */

static const char *objection_text(enum objection objection)
{
    switch (objection) {
    case OBJECTION_NONE:
        return NULL;
    case OBJECTION_LATE:
        return "too late to send";
    case OBJECTION_AGAIN:
        return "the connection died after the request had left";
    case OBJECTION_STALE:
        return "the peer spoke before it was asked, or closed";
    case OBJECTION_TOO_LONG:
        return "the answer is too long";
    case OBJECTION_VERSION:
        return "the answer is in another version of HTTP than the request";
    case OBJECTION_DEADLINE:
        return "no answer in time";
    case OBJECTION_CANCEL:
        return "cancelled";
    }
    IDEM_UNREACHABLE();
}

/* The head of a final answer has ended, whatever became of its body or of the wait for it. */
static bool head_ended(const struct transfer *transfer, long status)
{
    return transfer->objection != OBJECTION_AGAIN && transfer->objection != OBJECTION_VERSION &&
           status >= STATUS_MIN && status <= STATUS_MAX &&
           transfer->head.state == IDEM_HTTP_HEAD_ENDED;
}

/* Of an answer whose end libcurl has seen: nothing of its body can be missing. */
static bool is_delimited(const struct transfer *transfer, long status)
{
    return idem_http_head_delimits(&transfer->head) || status == 204 || status == 304 ||
           (transfer->http2 && idem_http_body_whole(idem_buf_str(&transfer->call->answer_buf)));
}

static bool is_answered(struct transfer *transfer, CURLcode result, long status)
{
    if (transfer->call->head_suffices || !head_ended(transfer, status)) {
        return head_ended(transfer, status);
    }
    bool ended = transfer->objection == OBJECTION_NONE && result == CURLE_OK;
    bool whole = ended && is_delimited(transfer, status);
    transfer->client->http2_vague =
        transfer->client->http2_vague || (ended && !whole && transfer->http2);
    return whole;
}

/*
 * Certificates, names in them, URLs and the CA file do not change by waiting. Refused and silent
 * peers, look-ups and broken handshakes do. `result` is of a call that was not sent.
 */
static bool is_hopeless(const struct transfer *transfer, CURLcode result)
{
    static const CURLcode codes[] = {
        CURLE_PEER_FAILED_VERIFICATION,
        CURLE_SSL_CACERT_BADFILE,
        CURLE_URL_MALFORMAT,
        CURLE_LOGIN_DENIED, /* The URL names a user. */
        CURLE_UNSUPPORTED_PROTOCOL,
    };

    if (transfer->objection != OBJECTION_NONE) {
        return false;
    }
    if (transfer->setup != CURLE_OK) {
        return transfer->setup != CURLE_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(codes); i++) {
        if (result == codes[i]) {
            return true;
        }
    }
    return false;
}

static void verdict_set(struct transfer *transfer, CURLcode result)
{
    struct idem_http_call *call = transfer->call;
    long status = 0;
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status); /* Stays 0. */

    if (call->sends == 1 && is_answered(transfer, result, status)) {
        call->verdict = IDEM_HTTP_ANSWERED;
        call->status = (uint16_t)status;
        call->answer = call->head_suffices ? call->answer : idem_buf_str(&call->answer_buf);
        call->head = idem_buf_str(&call->head_buf);
        return;
    }
    call->verdict = call->sends == 0 ? IDEM_HTTP_NOT_SENT : IDEM_HTTP_UNKNOWN;
    call->hopeless = call->sends == 0 && is_hopeless(transfer, result);
    call->too_long = call->sends == 1 && transfer->objection == OBJECTION_TOO_LONG;
    call->content_type = (struct idem_str){ .len = 0 };
    call->retry_after_us = 0;

    const char *why = objection_text(transfer->objection);
    if (why == NULL && call->sends == 0 && transfer->opening.refused) {
        why = "the address may not be connected to";
    }
    if (why == NULL && result == CURLE_OK) {
        why = "the answer may have lost its end";
    }
    if (why == NULL) {
        why = transfer->error[0] == '\0' ? curl_easy_strerror(result) : transfer->error;
    }
    (void)snprintf(call->detail, sizeof(call->detail), "%.*s", IDEM_HTTP_CALL_DETAIL_MAX - 1, why);
}

static void finish(struct transfer *transfer, CURLcode result)
{
    struct idem_http_client *client = transfer->client;
    struct idem_http_call *call = transfer->call;

    IDEM_ASSERT(call != NULL);
    IDEM_ASSERT(call->transfer == transfer);
    IDEM_ASSERT(call->sends <= 1);
    verdict_set(transfer, result);
    (void)uv_timer_stop(&transfer->deadline); /* Cannot fail. */
    /* A transfer in its middle takes its connection with it, or resets its stream of HTTP/2. */
    CURLMcode rc = curl_multi_remove_handle(client->multi, transfer->easy);
    IDEM_ASSERT(rc == CURLM_OK);
    idem_http_lines_wipe(&transfer->lines);

    transfer->call = NULL;
    call->transfer = NULL;
    idem_list_remove(&client->busy, &transfer->node);
    idem_list_push_front(&client->idle, &transfer->node);
    idem_list_push(&client->done, &call->node);
}

/*
 * Nothing has left, and libcurl has closed the connection that was at fault. Once in a call, so
 * that it ends; the deadline goes on as it was. False: it is not to be made again.
 */
static bool again(struct transfer *transfer)
{
    if (transfer->objection != OBJECTION_STALE || transfer->fresh) {
        return false;
    }
    IDEM_ASSERT(transfer->call->sends == 0);
    CURLM *multi = transfer->client->multi;
    transfer->fresh = true;
    CURLMcode rc = curl_multi_remove_handle(multi, transfer->easy);
    IDEM_ASSERT(rc == CURLM_OK);
    if (idem_http_options_fresh(transfer->easy, true) != CURLE_OK ||
        curl_multi_add_handle(multi, transfer->easy) != CURLM_OK) {
        return false;
    }
    transfer->objection = OBJECTION_NONE;
    transfer->error[0] = '\0';
    return true;
}

static void finished_collect(struct idem_http_client *client)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(client->multi, &left)) != NULL) {
        char *owner = NULL;
        CURLcode rc = curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
        IDEM_ASSERT(rc == CURLE_OK);
        IDEM_ASSERT(message->msg == CURLMSG_DONE);
        struct transfer *transfer = (struct transfer *)(void *)owner;
        CURLcode result = message->data.result; /* `message` ends with the handle's removal. */
        if (!again(transfer)) {
            finish(transfer, result);
        }
    }
}

static void on_deadline(uv_timer_t *timer)
{
    struct transfer *transfer = timer->data;

    transfer->objection = OBJECTION_DEADLINE;
    finish(transfer, CURLE_OPERATION_TIMEDOUT);
}

/* What libcurl calls during a transfer. */

/*
 * Of a connection that is not listed only a new one is believed. TLS may have something to say by
 * itself, as tickets behind its handshake: on a new connection that is no answer; on a used one it
 * costs a new connection.
 */
static bool is_clear(const struct transfer *transfer, const struct idem_http_socket *socket)
{
    long opened = 0;
    struct idem_str url = idem_str_from(transfer->call->url);
    bool tls = idem_str_equal_nocase(idem_str_slice(url, 0, 6), IDEM_STR("https:"));

    (void)curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &opened); /* Stays 0. */
    if (socket == NULL) {
        return opened > 0;
    }
    if (socket->http2 || (!socket->used && (tls || transfer->client->proxied))) {
        return true;
    }
    return !socket->surplus && idem_http_socket_is_quiet(socket) &&
           idem_http_tls_is_quiet(transfer->easy);
}

/* The last hook before a request is written. */
static int guard(void *user, char *peer_ip, char *local_ip, int peer_port, int local_port)
{
    struct transfer *transfer = user;
    struct idem_http_call *call = transfer->call;
    struct idem_http_socket *socket = idem_http_sockets_find(
        &transfer->client->sockets, &(struct idem_http_socket_ends){ .peer_ip = peer_ip,
                                                                     .local_ip = local_ip,
                                                                     .peer_port = peer_port,
                                                                     .local_port = local_port });

    if (call->sends > 0) {
        transfer->objection = OBJECTION_AGAIN;
        return CURL_PREREQFUNC_ABORT;
    }
    if (idem_clock_mono_us(transfer->client->clock) >= call->not_after_us) {
        transfer->objection = OBJECTION_LATE;
        return CURL_PREREQFUNC_ABORT;
    }
    if (!is_clear(transfer, socket)) {
        transfer->objection = OBJECTION_STALE;
        return CURL_PREREQFUNC_ABORT;
    }
    if (socket != NULL) {
        socket->used = true;
    }
    transfer->socket = socket == NULL ? -1 : socket->fd;
    call->sends = 1;
    idem_crash_point("send-first-byte");
    return CURL_PREREQFUNC_OK;
}

/* libcurl reads over what stands behind an answer, says so, and may keep the connection. */
static bool is_surplus(struct idem_str text)
{
    return idem_str_starts(text, IDEM_STR("Excess found")) ||
           idem_str_starts(text, IDEM_STR("Leftovers after chunking"));
}

/*
 * What libcurl reports of its doings. The request's own first line, written by libcurl, is the one
 * word on the version that no peer has a hand in.
 */
static int wire_report(CURL *easy, curl_infotype type, char *data, size_t size, void *user)
{
    struct transfer *transfer = user;
    struct idem_str rest = { .data = data, .len = size };
    bool http2 = false;
    (void)easy; /* The transfer's. */

    if (type == CURLINFO_HEADER_OUT) {
        struct idem_str line = idem_str_next(&rest, '\r');
        size_t len = strlen(" HTTP/2");
        http2 = line.len > len &&
                idem_str_equal(idem_str_slice(line, line.len - len, len), IDEM_STR(" HTTP/2"));
        transfer->http2 = http2;
    }
    if (!http2 && (type != CURLINFO_TEXT || !is_surplus(rest))) {
        return 0;
    }
    struct idem_http_socket *socket =
        idem_http_sockets_at(&transfer->client->sockets, transfer->socket);
    if (socket != NULL) {
        socket->http2 = socket->http2 || http2;
        socket->surplus = socket->surplus || !http2;
    }
    return 0;
}

static void head_begin(struct transfer *transfer, struct idem_str line)
{
    bool http2 = idem_str_starts(line, IDEM_STR("HTTP/2"));

    idem_http_head_begin(&transfer->head, transfer->call, line);
    /* libcurl would believe it, and put a second call onto a connection that cannot hold two. */
    if (http2 && transfer->client->http2 && !transfer->http2) {
        transfer->objection = OBJECTION_VERSION;
    }
}

/* Each line of a head, interim ones included, with its line end; then those of a trailer. */
static size_t head_line(char *data, size_t size, size_t count, void *user)
{
    struct transfer *transfer = user;
    struct idem_http_call *call = transfer->call;
    struct idem_str line = { .data = data, .len = size * count };

    while (line.len > 0 && (line.data[line.len - 1] == '\n' || line.data[line.len - 1] == '\r')) {
        line.len -= 1;
    }
    if (idem_str_starts(line, IDEM_STR("HTTP/"))) {
        head_begin(transfer, line);
    } else if (line.len == 0) {
        transfer->head.state = IDEM_HTTP_HEAD_ENDED;
    } else if (transfer->head.state == IDEM_HTTP_HEAD_OPEN) {
        idem_http_head_field(&transfer->head, call, transfer->client->clock, line);
    }
    if (transfer->objection == OBJECTION_NONE && call->head_buf.full) {
        transfer->objection = OBJECTION_TOO_LONG;
    }
    /* Fewer than came: libcurl gives up. */
    return transfer->objection == OBJECTION_NONE ? size * count : 0;
}

static size_t body_part(char *data, size_t size, size_t count, void *user)
{
    struct transfer *transfer = user;
    struct idem_buf *buf = &transfer->call->answer_buf;

    idem_buf_add_bytes(buf, data, size * count);
    if (buf->full) {
        transfer->objection = OBJECTION_TOO_LONG;
        return 0; /* Fewer than came: libcurl gives up. */
    }
    return size * count;
}

/* Sockets and the timer: between libcurl and the loop. */

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    struct idem_http_client *client = watch->client;

    free(watch);
    handle_closed(client);
}

static void on_socket_ready(uv_poll_t *poll, int status, int events)
{
    const struct watch *watch = poll->data;
    struct idem_http_client *client = watch->client;
    int what = status < 0 ? CURL_CSELECT_ERR : 0;
    int running;

    what |= (events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0;
    what |= (events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0;
    /* A failure shows in the transfers, or else their deadlines end them. */
    (void)curl_multi_socket_action(client->multi, watch->socket, what, &running);
    finished_collect(client);
}

static struct watch *watch_create(struct idem_http_client *client, curl_socket_t socket)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL) {
        return NULL;
    }
    *watch = (struct watch){ .client = client, .socket = socket };
    if (uv_poll_init_socket(client->loop, &watch->poll, socket) != 0) {
        free(watch);
        return NULL;
    }
    watch->poll.data = watch;
    client->handles_open += 1;
    if (curl_multi_assign(client->multi, socket, watch) != CURLM_OK) {
        uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
        return NULL;
    }
    return watch;
}

/* Never fails: an error returned here would end every transfer of the client, not just this. */
static int socket_changed(CURL *easy, curl_socket_t socket, int what, void *user, void *assigned)
{
    struct idem_http_client *client = user;
    struct watch *watch = assigned;
    (void)easy; /* Which transfer does not matter here. */
    client->stirs += 1;

    if (what == CURL_POLL_REMOVE) {
        if (watch != NULL) {
            (void)curl_multi_assign(client->multi, socket, NULL); /* Gone already: as well. */
            uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
        }
        return 0;
    }
    if (watch == NULL) {
        watch = watch_create(client, socket);
    }
    if (watch != NULL) {
        int events = what == CURL_POLL_OUT ? 0 : UV_READABLE;
        events |= what == CURL_POLL_IN ? 0 : UV_WRITABLE;
        /* Without a watch the transfer ends by its deadline. */
        (void)uv_poll_start(&watch->poll, events, on_socket_ready);
    }
    return 0;
}

/* One millisecond more than asked: the loop counts whole ones, and must not wake up too early. */
static uint64_t timer_ms(long timeout_ms)
{
    return timeout_ms == 0 ? 0 : (uint64_t)timeout_ms + 1;
}

static void on_timer(uv_timer_t *timer)
{
    struct idem_http_client *client = timer->data;
    int running;

    /* A failure shows in the transfers, or else their deadlines end them. */
    (void)curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    finished_collect(client);

    /* libcurl does not repeat a time that it has announced; if this was too early, nobody would. */
    long timeout_ms = -1;
    if (uv_is_active((uv_handle_t *)timer) == 0 &&
        curl_multi_timeout(client->multi, &timeout_ms) == CURLM_OK && timeout_ms >= 0) {
        /* Fails only without callback. */
        (void)uv_timer_start(timer, on_timer, (uint64_t)timeout_ms + 1, 0);
    }
}

static int timer_changed(CURLM *multi, long timeout_ms, void *user)
{
    struct idem_http_client *client = user;
    (void)multi; /* The client's. */
    client->stirs += 1;

    if (timeout_ms < 0) {
        (void)uv_timer_stop(&client->timer); /* Cannot fail. */
        return 0;
    }
    uv_update_time(client->loop);
    (void)uv_timer_start(&client->timer, on_timer, timer_ms(timeout_ms), 0); /* Likewise. */
    return 0;
}

/* Setting a call up. */

/* The hooks that every transfer has, whatever its call. */
static CURLcode hooks_set(struct transfer *transfer)
{
    CURL *easy = transfer->easy;
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, guard);

    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, head_line);
    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_part);
    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    rc = rc != CURLE_OK ? rc : idem_http_options_sockets(easy, &transfer->opening);
    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, wire_report);
    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_DEBUGDATA, transfer);
    return rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
}

static void call_reset(struct idem_http_call *call)
{
    call->verdict = IDEM_HTTP_NONE;
    call->hopeless = false;
    call->too_long = false;
    call->status = 0;
    call->retry_after_us = 0;
    call->content_type = (struct idem_str){ .len = 0 };
    call->answer = (struct idem_str){ .len = 0 };
    call->head = (struct idem_str){ .len = 0 };
    call->detail[0] = '\0';
    call->sends = 0;
    idem_buf_init(&call->head_buf, call->head_room,
                  call->head_room == NULL ? 0 : call->head_room_size);
    if (call->answer_room != NULL) {
        idem_buf_init(&call->answer_buf, call->answer_room, call->answer_room_size);
        return;
    }
    idem_buf_init(&call->answer_buf, call->answer_memory, sizeof(call->answer_memory));
}

enum idem_err idem_http_client_submit(struct idem_http_client *client, struct idem_http_call *call)
{
    IDEM_ASSERT(!client->destroyed);
    IDEM_ASSERT(!call->node.linked);
    bool get = strcmp(call->method, "GET") == 0;
    IDEM_ASSERT(get || strcmp(call->method, "POST") == 0 || strcmp(call->method, "PUT") == 0 ||
                strcmp(call->method, "PATCH") == 0 || strcmp(call->method, "DELETE") == 0);
    IDEM_ASSERT(!get || call->body.len == 0);

    if (client->idle.count == 0) {
        return IDEM_E_LIMIT;
    }
    struct transfer *transfer = IDEM_CONTAINER_OF(client->idle.first, struct transfer, node);
    if (!idem_http_lines_build(&transfer->lines, call)) {
        return IDEM_E_INVALID;
    }
    idem_list_remove(&client->idle, &transfer->node);
    idem_list_push(&client->busy, &transfer->node);
    call_reset(call);
    call->transfer = transfer;
    transfer->call = call;
    transfer->objection = OBJECTION_NONE;
    idem_http_head_reset(&transfer->head);
    transfer->opening.refused = false;
    transfer->http2 = false;
    transfer->fresh = false;
    transfer->socket = -1;
    transfer->error[0] = '\0';

    CURL *easy = transfer->easy;
    CURLcode rc = idem_http_options_version(easy, client->http2 && !client->http2_vague);
    rc = rc != CURLE_OK ? rc : idem_http_options_fresh(easy, false);
    rc = rc != CURLE_OK ? rc : idem_http_options_aim(easy, call, &transfer->lines);
    transfer->setup = rc;
    uv_update_time(client->loop);
    /* Fails only without callback. */
    (void)uv_timer_start(&transfer->deadline, on_deadline, idem_http_ms_from_us(call->timeout_us),
                         0);
    if (transfer->setup == CURLE_OK &&
        curl_multi_add_handle(client->multi, transfer->easy) != CURLM_OK) {
        transfer->setup = CURLE_OUT_OF_MEMORY;
    }
    if (transfer->setup != CURLE_OK) {
        finish(transfer, transfer->setup); /* Nothing was sent; it is reaped as any other. */
    }
    return IDEM_OK;
}

void idem_http_client_reap(struct idem_http_client *client, struct idem_list *ret_done)
{
    IDEM_ASSERT(!client->destroyed);
    idem_list_join(ret_done, &client->done);
}

uint64_t idem_http_client_stirs(const struct idem_http_client *client)
{
    return client->stirs;
}

void idem_http_client_cancel(struct idem_http_client *client, struct idem_http_call *call)
{
    struct transfer *transfer = call->transfer;

    IDEM_ASSERT(!client->destroyed);
    if (transfer == NULL) {
        IDEM_ASSERT(call->verdict != IDEM_HTTP_NONE); /* Finished, and waiting to be reaped. */
        return;
    }
    IDEM_ASSERT(transfer->client == client);
    transfer->objection = OBJECTION_CANCEL;
    finish(transfer, CURLE_ABORTED_BY_CALLBACK);
}

/* Life of the client. */

static void on_handle_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

static void on_deadline_closed(uv_handle_t *handle)
{
    const struct transfer *transfer = handle->data;
    handle_closed(transfer->client);
}

static enum idem_err multi_create(struct idem_http_client *client,
                                  const struct idem_http_client_options *options)
{
    client->multi = curl_multi_init();
    if (client->multi == NULL) {
        return IDEM_E_SYSTEM;
    }
    CURLM *multi = client->multi;
    long per_host = (long)options->connections_per_host_max;
    long shared = client->http2 ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING;
    bool ok = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket_changed) == CURLM_OK &&
              curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, client) == CURLM_OK &&
              curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer_changed) == CURLM_OK &&
              curl_multi_setopt(multi, CURLMOPT_TIMERDATA, client) == CURLM_OK;
    ok = ok && curl_multi_setopt(multi, CURLMOPT_PIPELINING, shared) == CURLM_OK &&
         curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, per_host) == CURLM_OK &&
         curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)options->calls_max) == CURLM_OK;
    return ok ? IDEM_OK : IDEM_E_SYSTEM;
}

static enum idem_err transfers_create(struct idem_http_client *client,
                                      const struct idem_http_client_options *options)
{
    client->transfers = calloc(options->calls_max, sizeof(*client->transfers));
    if (client->transfers == NULL) {
        return IDEM_E_SYSTEM;
    }
    for (size_t i = 0; i < options->calls_max; i++) {
        struct transfer *transfer = &client->transfers[i];
        transfer->client = client;
        transfer->opening = (struct idem_http_opening){
            .sockets = &client->sockets,
            .may_connect = options->may_connect,
        };
        transfer->easy = curl_easy_init();
        if (transfer->easy == NULL) {
            return IDEM_E_SYSTEM;
        }
        (void)uv_timer_init(client->loop, &transfer->deadline); /* Cannot fail. */
        transfer->deadline.data = transfer;
        client->handles_open += 1;
        client->transfer_count += 1;
        idem_list_push(&client->idle, &transfer->node);
        if (idem_http_options_fix(transfer->easy, options) != CURLE_OK ||
            hooks_set(transfer) != CURLE_OK) {
            return IDEM_E_SYSTEM;
        }
    }
    return IDEM_OK;
}

enum idem_err idem_http_client_create(const struct idem_http_client_options *options,
                                      struct idem_http_client **ret_client,
                                      struct idem_error *reterr)
{
    IDEM_ASSERT(options->calls_max > 0);
    IDEM_ASSERT(options->connections_per_host_max > 0);
    IDEM_ASSERT(options->may_connect == NULL || options->proxy == NULL);

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "libcurl did not start");
    }
    struct idem_http_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        curl_global_cleanup();
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the HTTP client");
    }
    client->loop = options->loop;
    client->clock = options->clock;
    client->http2 = options->http2;
    client->proxied = options->proxy != NULL;
    (void)uv_timer_init(client->loop, &client->timer); /* Cannot fail. */
    client->timer.data = client;
    client->handles_open = 1;

    enum idem_err err = multi_create(client, options);
    if (err == IDEM_OK) {
        err = transfers_create(client, options);
    }
    if (err != IDEM_OK) {
        idem_http_client_destroy(client); /* Undoes whatever was done, in reverse. */
        return idem_error_set(reterr, err, "no memory for the HTTP client, or libcurl is too old");
    }
    *ret_client = client;
    return IDEM_OK;
}

void idem_http_client_destroy(struct idem_http_client *client)
{
    if (client == NULL) {
        return;
    }
    IDEM_ASSERT(!client->destroyed);
    IDEM_ASSERT(client->busy.count == 0);
    IDEM_ASSERT(client->done.count == 0);

    for (size_t i = 0; i < client->transfer_count; i++) {
        curl_easy_cleanup(client->transfers[i].easy);
    }
    /* Closes idle connections; watches that it gives up close like any other. NULL is refused. */
    (void)curl_multi_cleanup(client->multi);
    client->multi = NULL;
    curl_global_cleanup();

    client->destroyed = true;
    for (size_t i = 0; i < client->transfer_count; i++) {
        uv_close((uv_handle_t *)&client->transfers[i].deadline, on_deadline_closed);
    }
    uv_close((uv_handle_t *)&client->timer, on_handle_closed);
}
