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
 * The same hook compares `not_after_us` with the clock, as late as that can be done.
 *
 * "Complete" is more than libcurl's OK. A head that was cut behind its status line and a body that
 * only ends because the connection does are both OK to libcurl, and neither can be told from an
 * answer that lost its end. head_line() follows the head: it must have ended and said how long the
 * body is (or the status allows none).
 *
 * Deadlines are timers of this file. libcurl does not look at its own while a transfer waits for a
 * free connection to its host.
 *
 * Life of a call: submit() takes a transfer from `idle`; finish() is the only way back, called for
 * what libcurl has ended, for a deadline and for a cancel; it puts the call on `done`.
 */
#include "transport/client.h"

#include <curl/curl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/bug.h"
#include "base/crash.h"
#include "base/date.h"

#define LINES_MAX       (IDEM_HTTP_HEADERS_MAX + 2) /* Ours: no Expect, no made-up type. */
#define LINE_MEMORY_MAX 8192
#define RETRY_AFTER_MAX IDEM_US_PER_DAY /* A longer wish is cut to this. */
#define STATUS_MIN      200 /* Below are interim answers, and 101, which we never ask. */
#define STATUS_MAX      599

/* What this file, not libcurl, found wrong. */
enum objection {
    OBJECTION_NONE = 0,
    OBJECTION_LATE,     /* not_after_us had passed. */
    OBJECTION_AGAIN,    /* libcurl wanted to send a second time. */
    OBJECTION_TOO_LONG, /* The answer is longer than there is room. */
    OBJECTION_DEADLINE,
    OBJECTION_CANCEL
};

enum head {
    HEAD_NONE = 0,
    HEAD_OPEN, /* The status line was read. */
    HEAD_ENDED
};

/* One place on the wire, with what libcurl needs as long as the call is there. */
struct transfer {
    struct idem_list_node node; /* On `idle`, or on `busy`. */
    struct idem_http_client *client;
    struct idem_http_call *call;
    CURL *easy;
    CURLcode setup; /* The first option that was refused. */
    uv_timer_t deadline;
    enum objection objection;
    enum head head;
    bool framed; /* The head says where the body ends. */
    struct curl_slist lines[LINES_MAX];
    char line_memory[LINE_MEMORY_MAX];
    char error[CURL_ERROR_SIZE];
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
    size_t handles_open; /* Of libuv, until their close callbacks have run. */
    bool destroyed;
};

/* Handles of libuv close later than asked; the last one frees the client. */
static void handle_closed(struct idem_http_client *client)
{
    IDEM_ASSERT(client->handles_open > 0);
    client->handles_open -= 1;
    if (client->destroyed && client->handles_open == 0) {
        free(client->transfers);
        free(client);
    }
}

static uint64_t ms_from_us(int64_t us)
{
    if (us <= IDEM_US_PER_MS) {
        return 1;
    }
    int64_t ms = us / IDEM_US_PER_MS + (us % IDEM_US_PER_MS != 0);
    return ms > INT_MAX ? INT_MAX : (uint64_t)ms;
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
    case OBJECTION_TOO_LONG:
        return "the answer is too long";
    case OBJECTION_DEADLINE:
        return "no answer in time";
    case OBJECTION_CANCEL:
        return "cancelled";
    }
    IDEM_UNREACHABLE();
}

static bool answer_complete(const struct transfer *transfer, CURLcode result, long status)
{
    bool bodiless = status == 204 || status == 304;

    return transfer->objection == OBJECTION_NONE && result == CURLE_OK && status >= STATUS_MIN &&
           status <= STATUS_MAX && transfer->head == HEAD_ENDED && (transfer->framed || bodiless);
}

static void verdict_set(struct transfer *transfer, CURLcode result)
{
    struct idem_http_call *call = transfer->call;
    long status = 0;
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status); /* Stays 0. */

    if (call->sends == 1 && answer_complete(transfer, result, status)) {
        call->verdict = IDEM_HTTP_ANSWERED;
        call->status = (uint16_t)status;
        call->answer = idem_buf_str(&call->answer_buf);
        return;
    }
    call->verdict = call->sends == 0 ? IDEM_HTTP_NOT_SENT : IDEM_HTTP_UNKNOWN;
    call->content_type = (struct idem_str){ .len = 0 };
    call->retry_after_us = 0;

    const char *why = objection_text(transfer->objection);
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
    /* A transfer in its middle takes its connection with it: nothing more can leave. */
    CURLMcode rc = curl_multi_remove_handle(client->multi, transfer->easy);
    IDEM_ASSERT(rc == CURLM_OK);

    transfer->call = NULL;
    call->transfer = NULL;
    idem_list_remove(&client->busy, &transfer->node);
    idem_list_push_front(&client->idle, &transfer->node);
    idem_list_push(&client->done, &call->node);
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
        finish((struct transfer *)(void *)owner, message->data.result);
    }
}

static void on_deadline(uv_timer_t *timer)
{
    struct transfer *transfer = timer->data;

    transfer->objection = OBJECTION_DEADLINE;
    finish(transfer, CURLE_OPERATION_TIMEDOUT);
}

/* What libcurl calls during a transfer. */

/* The last hook before a request is written. */
static int guard(void *user, char *peer_ip, char *local_ip, int peer_port, int local_port)
{
    struct transfer *transfer = user;
    struct idem_http_call *call = transfer->call;
    (void)peer_ip; /* Where it goes was the caller's choice. */
    (void)local_ip;
    (void)peer_port;
    (void)local_port;

    if (call->sends > 0) {
        transfer->objection = OBJECTION_AGAIN;
        return CURL_PREREQFUNC_ABORT;
    }
    if (idem_clock_mono_us(transfer->client->clock) >= call->not_after_us) {
        transfer->objection = OBJECTION_LATE;
        return CURL_PREREQFUNC_ABORT;
    }
    call->sends = 1;
    idem_crash_point("send-first-byte");
    return CURL_PREREQFUNC_OK;
}

/* RFC 9110, 10.2.3: seconds or a date. 0 if it is neither, or past. */
static int64_t retry_after_parse(struct idem_str value, struct idem_clock *clock)
{
    int64_t seconds;
    int64_t at_us;

    if (idem_str_to_i64(value, &seconds)) {
        return seconds > RETRY_AFTER_MAX / IDEM_US_PER_SECOND ? RETRY_AFTER_MAX
                                                              : seconds * IDEM_US_PER_SECOND;
    }
    if (!idem_date_parse_imf(value, &at_us)) {
        return 0;
    }
    int64_t ahead_us = at_us - idem_clock_wall_us(clock);
    if (ahead_us > RETRY_AFTER_MAX) {
        return RETRY_AFTER_MAX;
    }
    return ahead_us > 0 ? ahead_us : 0;
}

static void head_field(struct transfer *transfer, struct idem_str line)
{
    struct idem_http_call *call = transfer->call;
    struct idem_str value = line;
    struct idem_str name = idem_str_next(&value, ':');
    value = idem_str_trim(value);

    if (idem_str_equal_nocase(name, IDEM_STR("content-length")) ||
        idem_str_equal_nocase(name, IDEM_STR("transfer-encoding"))) {
        transfer->framed = true; /* libcurl checks what they say. */
    } else if (idem_str_equal_nocase(name, IDEM_STR("retry-after"))) {
        call->retry_after_us = retry_after_parse(value, transfer->client->clock);
    } else if (idem_str_equal_nocase(name, IDEM_STR("content-type")) &&
               value.len <= sizeof(call->content_type_memory)) {
        memcpy(call->content_type_memory, value.data, value.len);
        call->content_type =
            (struct idem_str){ .data = call->content_type_memory, .len = value.len };
    }
}

/* Each line of a head, interim ones included, with its line end; then those of a trailer. */
static size_t head_line(char *data, size_t size, size_t count, void *user)
{
    struct transfer *transfer = user;
    struct idem_str line = { .data = data, .len = size * count };

    while (line.len > 0 && (line.data[line.len - 1] == '\n' || line.data[line.len - 1] == '\r')) {
        line.len -= 1;
    }
    if (idem_str_starts(line, IDEM_STR("HTTP/"))) {
        transfer->head = HEAD_OPEN;
        transfer->framed = false;
        transfer->call->retry_after_us = 0;
        transfer->call->content_type = (struct idem_str){ .len = 0 };
    } else if (line.len == 0) {
        transfer->head = HEAD_ENDED;
    } else if (transfer->head == HEAD_OPEN) {
        head_field(transfer, line);
    }
    return size * count;
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

    if (timeout_ms < 0) {
        (void)uv_timer_stop(&client->timer); /* Cannot fail. */
        return 0;
    }
    uv_update_time(client->loop);
    (void)uv_timer_start(&client->timer, on_timer, timer_ms(timeout_ms), 0); /* Likewise. */
    return 0;
}

/* Setting a call up. */

static void set_number(struct transfer *transfer, CURLoption option, long value)
{
    CURLcode rc = curl_easy_setopt(transfer->easy, option, value);
    if (transfer->setup == CURLE_OK) {
        transfer->setup = rc;
    }
}

static void set_pointer(struct transfer *transfer, CURLoption option, const void *value)
{
    CURLcode rc = curl_easy_setopt(transfer->easy, option, value);
    if (transfer->setup == CURLE_OK) {
        transfer->setup = rc;
    }
}

static void set_callbacks(struct transfer *transfer)
{
    CURLcode rc = curl_easy_setopt(transfer->easy, CURLOPT_PREREQFUNCTION, guard);
    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(transfer->easy, CURLOPT_HEADERFUNCTION, head_line);
    }
    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, body_part);
    }
    if (transfer->setup == CURLE_OK) {
        transfer->setup = rc;
    }
    set_pointer(transfer, CURLOPT_PREREQDATA, transfer);
    set_pointer(transfer, CURLOPT_HEADERDATA, transfer);
    set_pointer(transfer, CURLOPT_WRITEDATA, transfer);
    set_pointer(transfer, CURLOPT_PRIVATE, transfer);
    set_pointer(transfer, CURLOPT_ERRORBUFFER, transfer->error);
}

/* What is the same for every call. */
static void set_fixed(struct transfer *transfer, const char *ca_file)
{
    static const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        { CURLOPT_NOSIGNAL, 1 },
        { CURLOPT_FOLLOWLOCATION, 0 },
        { CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 }, /* One request a connection at a time. */
        { CURLOPT_HTTP09_ALLOWED, 0 },
        { CURLOPT_SSL_VERIFYPEER, 1 },
        { CURLOPT_SSL_VERIFYHOST, 2 },
        { CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
        { CURLOPT_TCP_NODELAY, 1 },
        { CURLOPT_PATH_AS_IS, 1 },
        { CURLOPT_DISALLOW_USERNAME_IN_URL, 1 },
        { CURLOPT_QUICK_EXIT, 1 }, /* A cancel does not wait for a resolver thread. */
    };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(numbers); i++) {
        set_number(transfer, numbers[i].option, numbers[i].value);
    }
    set_pointer(transfer, CURLOPT_PROTOCOLS_STR, "http,https");
    set_pointer(transfer, CURLOPT_PROXY, ""); /* Also none from the environment. */
    if (ca_file != NULL) {
        set_pointer(transfer, CURLOPT_CAINFO, ca_file);
    }
    set_callbacks(transfer);
}

static void line_add(struct transfer *transfer,
                     struct idem_buf *buf,
                     size_t *count,
                     struct idem_str text)
{
    IDEM_ASSERT(*count < LINES_MAX);
    struct curl_slist *line = &transfer->lines[*count];

    *line = (struct curl_slist){ .data = buf->data + buf->len };
    if (*count > 0) {
        transfer->lines[*count - 1].next = line;
    }
    *count += 1;
    idem_buf_add(buf, text);
    idem_buf_add_char(buf, '\0');
}

static bool line_clean(struct idem_str line)
{
    return idem_str_find(line, '\r') == line.len && idem_str_find(line, '\n') == line.len &&
           idem_str_find(line, '\0') == line.len;
}

/* False: a line that would be two, or more text than there is room. */
static bool lines_build(struct transfer *transfer, const struct idem_http_call *call)
{
    struct idem_buf buf;
    size_t count = 0;
    bool typed = false;

    idem_buf_init(&buf, transfer->line_memory, sizeof(transfer->line_memory));
    line_add(transfer, &buf, &count, IDEM_STR("Expect:"));
    for (size_t i = 0; i < call->header_count; i++) {
        if (!line_clean(call->headers[i])) {
            return false;
        }
        struct idem_str name = idem_str_slice(call->headers[i], 0, strlen("content-type:"));
        typed = typed || idem_str_equal_nocase(name, IDEM_STR("content-type:"));
        line_add(transfer, &buf, &count, call->headers[i]);
    }
    if (!typed) {
        line_add(transfer, &buf, &count, IDEM_STR("Content-Type:"));
    }
    return !buf.full;
}

static void set_call(struct transfer *transfer, const struct idem_http_call *call)
{
    int64_t connect_us =
        call->connect_timeout_us < call->timeout_us ? call->connect_timeout_us : call->timeout_us;

    transfer->setup = CURLE_OK;
    set_pointer(transfer, CURLOPT_URL, call->url);
    set_pointer(transfer, CURLOPT_HTTPHEADER, transfer->lines);
    set_number(transfer, CURLOPT_CONNECTTIMEOUT_MS, (long)ms_from_us(connect_us));
    set_pointer(transfer, CURLOPT_CUSTOMREQUEST, NULL); /* The call before may have set it. */
    if (strcmp(call->method, "GET") == 0) {
        set_number(transfer, CURLOPT_HTTPGET, 1);
        return;
    }
    set_number(transfer, CURLOPT_POST, 1); /* With a body; the word is the call's. */
    set_pointer(transfer, CURLOPT_CUSTOMREQUEST, call->method);
    set_number(transfer, CURLOPT_POSTFIELDSIZE, (long)call->body.len);
    set_pointer(transfer, CURLOPT_POSTFIELDS, call->body.len == 0 ? "" : call->body.data);
}

static void call_reset(struct idem_http_call *call)
{
    call->verdict = IDEM_HTTP_NONE;
    call->status = 0;
    call->retry_after_us = 0;
    call->content_type = (struct idem_str){ .len = 0 };
    call->answer = (struct idem_str){ .len = 0 };
    call->detail[0] = '\0';
    call->sends = 0;
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
    IDEM_ASSERT(call->header_count <= IDEM_HTTP_HEADERS_MAX);
    bool get = strcmp(call->method, "GET") == 0;
    IDEM_ASSERT(get || strcmp(call->method, "POST") == 0 || strcmp(call->method, "PUT") == 0 ||
                strcmp(call->method, "DELETE") == 0);
    IDEM_ASSERT(!get || call->body.len == 0);

    if (client->idle.count == 0) {
        return IDEM_E_LIMIT;
    }
    struct transfer *transfer = IDEM_CONTAINER_OF(client->idle.first, struct transfer, node);
    if (!lines_build(transfer, call)) {
        return IDEM_E_INVALID;
    }
    idem_list_remove(&client->idle, &transfer->node);
    idem_list_push(&client->busy, &transfer->node);
    call_reset(call);
    call->transfer = transfer;
    transfer->call = call;
    transfer->objection = OBJECTION_NONE;
    transfer->head = HEAD_NONE;
    transfer->framed = false;
    transfer->error[0] = '\0';

    set_call(transfer, call);
    uv_update_time(client->loop);
    /* Fails only without callback. */
    (void)uv_timer_start(&transfer->deadline, on_deadline, ms_from_us(call->timeout_us), 0);
    if (transfer->setup != CURLE_OK ||
        curl_multi_add_handle(client->multi, transfer->easy) != CURLM_OK) {
        finish(transfer, CURLE_OUT_OF_MEMORY); /* Nothing was sent; it is reaped as any other. */
    }
    return IDEM_OK;
}

void idem_http_client_reap(struct idem_http_client *client, struct idem_list *ret_done)
{
    IDEM_ASSERT(!client->destroyed);
    idem_list_join(ret_done, &client->done);
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
    bool ok = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket_changed) == CURLM_OK &&
              curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, client) == CURLM_OK &&
              curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer_changed) == CURLM_OK &&
              curl_multi_setopt(multi, CURLMOPT_TIMERDATA, client) == CURLM_OK;
    ok = ok && curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) == CURLM_OK &&
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
        transfer->easy = curl_easy_init();
        if (transfer->easy == NULL) {
            return IDEM_E_SYSTEM;
        }
        (void)uv_timer_init(client->loop, &transfer->deadline); /* Cannot fail. */
        transfer->deadline.data = transfer;
        client->handles_open += 1;
        client->transfer_count += 1;
        idem_list_push(&client->idle, &transfer->node);
        set_fixed(transfer, options->ca_file);
        if (transfer->setup != CURLE_OK) {
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
