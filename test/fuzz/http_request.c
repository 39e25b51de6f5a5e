/*
 * Fuzzes requests through the server's own socket.
 *
 * The input is one byte (how the bytes are cut) and what a caller sends before it ends its side.
 * The server is a real one on 127.0.0.1. Properties, for any bytes:
 *   - the requests that reach the owner, and the statuses that the caller gets, do not depend on
 *     where the bytes were cut;
 *   - each request gets one answer, in order; a refusal is the last, and nothing is read behind it;
 *   - a request has a method, a path with a slash, and a body as long as it says; the requests in
 *     a row, written again in the narrowest form, are the same requests;
 *   - the connection ends.
 */
#include "net/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "fuzz/fuzz.h"

#define SIZE_TRIED 4096
#define BODY_MAX   2048
#define LOG_SIZE   ((size_t)16 * SIZE_TRIED)
#define ROUNDS_MAX 100000

struct log {
    struct idem_buf requests; /* Each in the narrowest form. */
    struct idem_buf statuses;
    size_t request_count;
    size_t refusal_count;
    bool full_head; /* One has as many fields as may be; Host, written, may be one too many. */
    char requests_memory[LOG_SIZE];
    char statuses_memory[LOG_SIZE];
};

static struct log logs[3];
static struct log *current;
static uv_loop_t loop;
static struct idem_server *server;

/* ---- the owner ---- */

static bool is_framing(struct idem_str name)
{
    return idem_str_equal_nocase(name, IDEM_STR("content-length")) ||
           idem_str_equal_nocase(name, IDEM_STR("transfer-encoding")) ||
           idem_str_equal_nocase(name, IDEM_STR("connection")) ||
           idem_str_equal_nocase(name, IDEM_STR("expect")) ||
           idem_str_equal_nocase(name, IDEM_STR("host"));
}

static void on_request(void *context, struct idem_exchange *exchange)
{
    (void)context;
    const struct idem_net_request *request = idem_exchange_request(exchange);
    struct idem_buf *buf = &current->requests;
    FUZZ_EXPECT(request->method.len > 0 && request->path.len > 0 && request->path.data[0] == '/');
    FUZZ_EXPECT(request->body.len <= BODY_MAX && current->refusal_count == 0);
    current->request_count += 1;
    current->full_head = current->full_head || request->header_count == IDEM_NET_HEADERS_MAX;
    FUZZ_EXPECT(request->request_no == current->request_count);
    idem_buf_add(buf, request->method);
    idem_buf_add_char(buf, ' ');
    idem_buf_add(buf, request->path);
    idem_buf_add(buf, request->query.data != NULL ? IDEM_STR("?") : IDEM_STR(""));
    idem_buf_add(buf, request->query);
    idem_buf_add(buf, IDEM_STR(" HTTP/1.1\r\nHost: x\r\n"));
    for (size_t i = 0; i < request->header_count; i++) {
        if (!is_framing(request->headers[i].name)) {
            idem_buf_add(buf, request->headers[i].name);
            idem_buf_add_char(buf, ':');
            idem_buf_add(buf, request->headers[i].value);
            idem_buf_add(buf, IDEM_STR("\r\n"));
        }
    }
    if (request->body.len > 0) {
        idem_buf_printf(buf, "Content-Length: %zu\r\n", request->body.len);
    }
    idem_buf_add(buf, IDEM_STR("\r\n"));
    idem_buf_add(buf, request->body);
    FUZZ_EXPECT(!buf->full);
    idem_exchange_reply(exchange, &(struct idem_net_reply){ .status = 204 });
}

static void on_gone(void *context, struct idem_exchange *exchange)
{
    (void)context;
    FUZZ_EXPECT(exchange == NULL); /* Every request is answered at once. */
}

static void on_refusal(void *context,
                       enum idem_net_refusal refusal,
                       struct idem_net_reply *ret_reply)
{
    (void)context;
    FUZZ_EXPECT(refusal > IDEM_NET_REFUSAL_NONE && refusal < IDEM_NET_REFUSAL_COUNT);
    current->refusal_count += 1;
    *ret_reply = (struct idem_net_reply){ .status = (uint16_t)(400 + refusal) };
}

static void server_open(void)
{
    static const struct idem_server_ops ops = {
        .request = on_request,
        .gone = on_gone,
        .refusal = on_refusal,
    };
    struct idem_server_options options = idem_server_options_default();
    FUZZ_EXPECT(uv_loop_init(&loop) == 0);
    options.loop = &loop;
    options.host = "127.0.0.1";
    options.body_max = BODY_MAX;
    options.ops = &ops;
    FUZZ_EXPECT(idem_server_open(&options, &server, NULL) == IDEM_OK);
}

/* ---- the caller ---- */

static void turn(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT); /* Says whether handles are active: they are. */
}

static int caller_connect(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(idem_server_port(server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int on = 1;
    struct linger hard = { .l_onoff = 1 }; /* No port is kept waiting behind a run. */
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    FUZZ_EXPECT(fd >= 0);
    FUZZ_EXPECT(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
    FUZZ_EXPECT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)) == 0);
    FUZZ_EXPECT(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

/* The status of each answer, one a line. Answers have no bodies here. */
static void statuses_keep(struct idem_str answers)
{
    while (answers.len > 0) {
        struct idem_str line = idem_str_next(&answers, '\n');
        if (idem_str_starts(line, IDEM_STR("HTTP/1.1 "))) {
            idem_buf_add(&current->statuses, idem_str_slice(line, 9, 3));
            idem_buf_add_char(&current->statuses, '\n');
        }
    }
}

/* Sends `text` in pieces of `piece` bytes and keeps what comes of it in `log`. */
static void converse(struct idem_str text, size_t piece, struct log *log)
{
    static char answers[LOG_SIZE];
    size_t len = 0;
    current = log;
    log->request_count = 0;
    log->refusal_count = 0;
    log->full_head = false;
    idem_buf_init(&log->requests, log->requests_memory, LOG_SIZE);
    idem_buf_init(&log->statuses, log->statuses_memory, LOG_SIZE);
    int fd = caller_connect();
    for (size_t at = 0; at < text.len; at += piece) {
        struct idem_str part = idem_str_slice(text, at, piece);
        (void)send(fd, part.data, part.len,
                   MSG_NOSIGNAL); /* It may have closed: it is looked at. */
        turn();
    }
    (void)shutdown(fd, SHUT_WR); /* Likewise. */
    ssize_t got = -1;
    for (size_t round = 0; got != 0 && round < ROUNDS_MAX; round++) {
        turn();
        got = recv(fd, answers + len, sizeof(answers) - len, MSG_DONTWAIT);
        len += got > 0 ? (size_t)got : 0;
        if (got < 0 && errno != EAGAIN) {
            break;
        }
    }
    FUZZ_EXPECT(got == 0 || errno != EAGAIN);
    FUZZ_EXPECT(close(fd) == 0);
    while (idem_server_connections(server) > 0) {
        turn();
    }
    statuses_keep((struct idem_str){ .data = answers, .len = len });
}

static void check_answers(const struct log *log)
{
    struct idem_str statuses = idem_buf_str(&log->statuses);
    size_t answered = 0;
    size_t refused = 0;
    while (statuses.len > 0) {
        struct idem_str status = idem_str_next(&statuses, '\n');
        bool good = idem_str_equal(status, IDEM_STR("204"));
        bool interim = idem_str_equal(status, IDEM_STR("100"));
        FUZZ_EXPECT(refused == 0 || !(good || interim));
        answered += good ? 1 : 0;
        refused += good || interim ? 0 : 1;
    }
    FUZZ_EXPECT(answered == log->request_count);
    FUZZ_EXPECT(refused == log->refusal_count && refused <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > SIZE_TRIED) {
        return 0;
    }
    if (server == NULL) {
        server_open();
    }
    struct idem_str text = { .data = (const char *)data + 1, .len = size - 1 };
    converse(text, text.len, &logs[0]);
    check_answers(&logs[0]);
    converse(text, 1 + data[0] % text.len, &logs[1]);
    check_answers(&logs[1]);
    FUZZ_EXPECT(idem_str_equal(idem_buf_str(&logs[0].requests), idem_buf_str(&logs[1].requests)));
    FUZZ_EXPECT(idem_str_equal(idem_buf_str(&logs[0].statuses), idem_buf_str(&logs[1].statuses)));
    if (logs[0].request_count > 0 && !logs[0].full_head) {
        struct idem_str written = idem_buf_str(&logs[0].requests);
        converse(written, written.len, &logs[2]);
        FUZZ_EXPECT(logs[2].request_count == logs[0].request_count);
        FUZZ_EXPECT(idem_str_equal(idem_buf_str(&logs[2].requests), written));
    }
    return 0;
}
