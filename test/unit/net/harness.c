#include "unit/net/harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void)
{
    return (int64_t)(uv_hrtime() / 1000000);
}

static void reply_text(struct idem_exchange *exchange, struct idem_str body, bool last)
{
    struct idem_net_reply reply = {
        .status = 200,
        .headers = IDEM_STR("Content-Type: text/plain\r\n"),
        .body = body,
        .close = last,
    };
    idem_exchange_reply(exchange, &reply);
}

static void echo(struct idem_exchange *exchange)
{
    const struct idem_net_request *request = idem_exchange_request(exchange);
    char memory[2048];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add(&buf, request->method);
    idem_buf_add_char(&buf, ' ');
    idem_buf_add(&buf, request->path);
    idem_buf_add_char(&buf, '?');
    idem_buf_add(&buf, request->query);
    idem_buf_printf(&buf, " n=%u h=%zu [", request->request_no, request->header_count);
    idem_buf_add(&buf, idem_str_slice(request->body, 0, 256));
    idem_buf_add(&buf, IDEM_STR("]"));
    assert_false(buf.full);
    reply_text(exchange, idem_buf_str(&buf), false);
}

static void on_request(void *context, struct idem_exchange *exchange)
{
    struct harness *harness = context;
    struct idem_str path = idem_exchange_request(exchange)->path;
    harness->request_count += 1;
    idem_exchange_set_owner(exchange, harness);

    if (idem_str_equal(path, IDEM_STR("/hold"))) {
        assert_true(harness->held_count < HELD_MAX);
        harness->held[harness->held_count++] = exchange;
    } else if (idem_str_equal(path, IDEM_STR("/empty"))) {
        idem_exchange_reply(exchange, &(struct idem_net_reply){ .status = 204 });
    } else if (idem_str_equal(path, IDEM_STR("/last"))) {
        reply_text(exchange, IDEM_STR("bye"), true);
    } else if (idem_str_equal(path, IDEM_STR("/big"))) {
        reply_text(exchange, (struct idem_str){ .data = harness->big, .len = BIG_LEN }, false);
    } else if (idem_str_equal(path, IDEM_STR("/reset"))) {
        idem_exchange_break(exchange, IDEM_STR("HTTP/1.1 20"), true);
    } else if (idem_str_equal(path, IDEM_STR("/raw"))) {
        idem_exchange_break(exchange, IDEM_STR(RAW_TEXT), false);
    } else {
        echo(exchange);
    }
}

static void on_gone(void *context, struct idem_exchange *exchange)
{
    struct harness *harness = context;
    assert_ptr_equal(idem_exchange_owner(exchange), harness);
    harness->gone_count += 1;
    if (harness->reply_when_gone) {
        assert_int_equal(harness->held_count, 1);
        harness_release(harness, "nobody");
    }
}

static void on_refusal(void *context,
                       enum idem_net_refusal refusal,
                       struct idem_net_reply *ret_reply)
{
    (void)context;
    static const uint16_t status_of[IDEM_NET_REFUSAL_COUNT] = {
        [IDEM_NET_BAD_REQUEST] = 400,    [IDEM_NET_HEAD_SLOW] = 408,
        [IDEM_NET_BODY_SLOW] = 408,      [IDEM_NET_BODY_TOO_LARGE] = 413,
        [IDEM_NET_HEAD_TOO_LARGE] = 431, [IDEM_NET_NOT_SUPPORTED] = 501,
        [IDEM_NET_CROWDED] = 503,
    };
    *ret_reply = (struct idem_net_reply){
        .status = status_of[refusal],
        .headers = IDEM_STR("Content-Type: text/plain\r\n"),
        .body = IDEM_STR("refused\n"),
    };
}

static const struct idem_server_ops ops = {
    .request = on_request,
    .gone = on_gone,
    .refusal = on_refusal,
};

void harness_open(struct harness *harness, const struct idem_server_options *options)
{
    struct idem_error error = { 0 };
    *harness = (struct harness){ 0 };
    assert_int_equal(uv_loop_init(&harness->loop), 0);
    harness->big = malloc(BIG_LEN);
    assert_non_null(harness->big);
    memset(harness->big, 'b', BIG_LEN);
    harness->options = *options;
    harness->options.loop = &harness->loop;
    harness->options.ops = &ops;
    harness->options.context = harness;
    enum idem_err err = idem_server_open(&harness->options, &harness->server, &error);
    if (err != IDEM_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_not_equal(idem_server_port(harness->server), 0);
}

void harness_close(struct harness *harness)
{
    idem_server_close(harness->server);
    int64_t deadline = now_ms() + ANSWER_MS;
    while (!idem_server_closed(harness->server) && now_ms() < deadline) {
        harness_turn(harness);
    }
    assert_true(idem_server_closed(harness->server));
    idem_server_destroy(harness->server);
    while (harness->held_count > 0) {
        harness_release(harness, "after the end");
    }
    assert_int_equal(uv_loop_close(&harness->loop), 0);
    free(harness->big);
}

void harness_turn(struct harness *harness)
{
    (void)uv_run(&harness->loop, UV_RUN_NOWAIT); /* Says whether handles are active: they are. */
}

static void rest_a_moment(void)
{
    (void)poll(NULL, 0, 1); /* Only paces the loop; what is awaited is looked at. */
}

void harness_until(struct harness *harness, const size_t *counter, size_t wanted)
{
    int64_t deadline = now_ms() + ANSWER_MS;
    while (*counter != wanted && now_ms() < deadline) {
        harness_turn(harness);
        rest_a_moment();
    }
    assert_int_equal(*counter, wanted);
}

void harness_until_connections(struct harness *harness, size_t wanted)
{
    int64_t deadline = now_ms() + ANSWER_MS;
    while (idem_server_connections(harness->server) != wanted && now_ms() < deadline) {
        harness_turn(harness);
        rest_a_moment();
    }
    assert_int_equal(idem_server_connections(harness->server), wanted);
}

void harness_release(struct harness *harness, const char *body)
{
    assert_true(harness->held_count > 0);
    struct idem_exchange *exchange = harness->held[0];
    harness->held_count -= 1;
    for (size_t i = 0; i < harness->held_count; i++) {
        harness->held[i] = harness->held[i + 1];
    }
    reply_text(exchange, idem_str_from(body), false);
}

int client_connect(struct harness *harness)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    int on = 1;
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(idem_server_port(harness->server)),
        .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) },
    };
    int rc = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    assert_true(rc == 0 || errno == EINPROGRESS);
    struct pollfd ready = { .fd = fd, .events = POLLOUT };
    assert_int_equal(poll(&ready, 1, ANSWER_MS), 1);
    harness_turn(harness);
    return fd;
}

void client_send(struct harness *harness, int fd, struct idem_str text)
{
    int64_t deadline = now_ms() + ANSWER_MS;
    size_t sent = 0;
    while (sent < text.len && now_ms() < deadline) {
        ssize_t count = send(fd, text.data + sent, text.len - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN) {
            return; /* The server has closed; the test looks at the answer. */
        }
        sent += count > 0 ? (size_t)count : 0;
        harness_turn(harness);
    }
    assert_int_equal(sent, text.len);
}

void client_send_bytewise(struct harness *harness, int fd, struct idem_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        client_send(harness, fd, idem_str_slice(text, i, 1));
    }
}

/* One byte or more; 0 is the end, -1 a reset. Fails the test if nothing comes. */
static ssize_t receive(struct harness *harness, int fd, char *bytes, size_t max)
{
    int64_t deadline = now_ms() + ANSWER_MS;
    while (now_ms() < deadline) {
        harness_turn(harness);
        ssize_t count = recv(fd, bytes, max, 0);
        if (count >= 0 || errno != EAGAIN) {
            return count;
        }
        rest_a_moment();
    }
    fail_msg("no answer within %d ms", ANSWER_MS);
    return -1;
}

static bool head_receive(struct harness *harness, int fd, struct answer *answer)
{
    size_t len = 0;
    while (len < 4 || memcmp(answer->head + len - 4, "\r\n\r\n", 4) != 0) {
        assert_true(len + 1 < sizeof(answer->head));
        ssize_t count = receive(harness, fd, answer->head + len, 1);
        if (count <= 0) {
            answer->reset = count < 0;
            return false;
        }
        len += 1;
    }
    answer->head[len] = '\0';
    return true;
}

/* Keeps the beginning of the body and counts all of it. */
static void body_keep(struct answer *answer, const char *bytes, size_t count)
{
    size_t room = sizeof(answer->body) - 1;
    if (answer->body_len < room) {
        size_t kept = count < room - answer->body_len ? count : room - answer->body_len;
        memcpy(answer->body + answer->body_len, bytes, kept);
        answer->body[answer->body_len + kept] = '\0';
    }
    answer->body_len += count;
}

static void body_receive(struct harness *harness, int fd, struct answer *answer)
{
    const char *length = strstr(answer->head, "\r\nContent-Length: ");
    size_t body_max = length == NULL ? 0 : strtoul(length + 18, NULL, 10);
    while (answer->body_len < body_max) {
        char bytes[16384];
        size_t left = body_max - answer->body_len;
        ssize_t count = receive(harness, fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
        if (count <= 0) {
            answer->reset = count < 0;
            return;
        }
        body_keep(answer, bytes, (size_t)count);
    }
}

void client_answer(struct harness *harness, int fd, bool head_only, struct answer *ret_answer)
{
    *ret_answer = (struct answer){ 0 };
    if (!head_receive(harness, fd, ret_answer)) {
        return;
    }
    ret_answer->status = atoi(ret_answer->head + 9); // NOLINT(cert-err34-c): zero is "none".
    ret_answer->closes = strstr(ret_answer->head, "\r\nConnection: close\r\n") != NULL;
    if (!head_only && ret_answer->status >= 200) {
        body_receive(harness, fd, ret_answer);
    }
}

bool client_ends(struct harness *harness, int fd, int64_t wait_ms, bool *ret_reset)
{
    int64_t deadline = now_ms() + wait_ms;
    while (now_ms() < deadline) {
        char byte;
        harness_turn(harness);
        ssize_t count = recv(fd, &byte, 1, 0);
        if (count == 0 || (count < 0 && errno != EAGAIN)) {
            *ret_reset = count < 0;
            return true;
        }
        assert_true(count < 0); /* Not one byte behind the answer. */
        rest_a_moment();
    }
    return false;
}
