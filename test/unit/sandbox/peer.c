/*
 * Blocking sockets on one side, the sandbox's loop in a thread on the other. The callers parse
 * answers by hand, so that nothing between the wire and the test is forgiving.
 */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/test.h"
#include "sandbox/sandbox.h"

#define WAIT_SECONDS 10 /* No answer takes so long; a test that hangs ends here. */

static void on_stop(uv_async_t *handle)
{
    struct peer *peer = handle->data;

    idem_sandbox_close(peer->sandbox);
    uv_close((uv_handle_t *)handle, NULL);
}

static void *peer_main(void *context)
{
    struct peer *peer = context;

    (void)uv_run(&peer->loop, UV_RUN_DEFAULT); /* Ends when every handle is closed. */
    return NULL;
}

void peer_start_telling(struct peer *peer, const struct idem_sandbox_options *told)
{
    struct idem_sandbox_options options = *told;
    struct idem_error error = { .text = "" };

    assert_int_equal(uv_loop_init(&peer->loop), 0);
    assert_int_equal(uv_async_init(&peer->loop, &peer->stop, on_stop), 0);
    peer->stop.data = peer;
    idem_clock_init_system(&peer->clock);
    options.loop = &peer->loop;
    options.host = "127.0.0.1";
    options.clock = &peer->clock;
    if (idem_sandbox_open(&options, &peer->sandbox, &error) != IDEM_OK) {
        fail_msg("%s", error.text);
    }
    peer->port = idem_sandbox_port(peer->sandbox);
    assert_int_equal(pthread_create(&peer->thread, NULL, peer_main, peer), 0);
}

void peer_start(struct peer *peer, const char *ledger_path, const char *credential)
{
    const struct idem_sandbox_options options = {
        .ledger_path = ledger_path,
        .credential = credential,
    };
    peer_start_telling(peer, &options);
}

void peer_stop(struct peer *peer)
{
    assert_int_equal(uv_async_send(&peer->stop), 0);
    assert_int_equal(pthread_join(peer->thread, NULL), 0);
    assert_true(idem_sandbox_closed(peer->sandbox));
    idem_sandbox_destroy(peer->sandbox);
    assert_int_equal(uv_loop_close(&peer->loop), 0);
}

int peer_dial(const struct peer *peer)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(peer->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct timeval wait = { .tv_sec = WAIT_SECONDS };

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

void peer_send(int fd, const struct peer_request *request)
{
    char memory[16384];
    struct idem_buf buf;

    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_printf(&buf, "%s %s HTTP/1.1\r\nHost: sandbox\r\n", request->method, request->path);
    if (request->authorization != NULL) {
        idem_buf_printf(&buf, "Authorization: %s\r\n", request->authorization);
    }
    if (request->trace != NULL) {
        idem_buf_printf(&buf, "traceparent: %s\r\n", request->trace);
    }
    if (request->key != NULL) {
        idem_buf_printf(&buf, "Idempotency-Key: %s\r\n", request->key);
    }
    if (request->body != NULL) {
        idem_buf_printf(&buf, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                        strlen(request->body));
    }
    idem_buf_printf(&buf, "\r\n%s", request->body == NULL ? "" : request->body);
    assert_false(buf.full);
    assert_int_equal(send(fd, buf.data, buf.len, MSG_NOSIGNAL), (ssize_t)buf.len);
}

struct answer {
    char *memory;
    size_t len;
    size_t head_len; /* 0: no complete head came. */
    size_t body_len; /* As announced. */
    bool reset;
};

static void head_look(struct answer *answer)
{
    char *end = strstr(answer->memory, "\r\n\r\n");
    const char *length = strstr(answer->memory, "Content-Length: ");

    if (end != NULL && length != NULL && length < end) {
        answer->head_len = (size_t)(end - answer->memory) + 4;
        answer->body_len = strtoul(length + strlen("Content-Length: "), NULL, 10);
    }
}

static void answer_read(int fd, struct answer *answer)
{
    *answer = (struct answer){ .memory = calloc(1, PEER_ANSWER_MAX) };
    assert_non_null(answer->memory);
    while (answer->head_len == 0 || answer->len < answer->head_len + answer->body_len) {
        ssize_t count =
            recv(fd, answer->memory + answer->len, PEER_ANSWER_MAX - 1 - answer->len, 0);
        if (count <= 0) {
            answer->reset = count < 0 && errno == ECONNRESET;
            assert_true(count == 0 || answer->reset); /* Otherwise nothing came in time. */
            return;
        }
        answer->len += (size_t)count;
        if (answer->head_len == 0) {
            head_look(answer);
        }
    }
}

static void member_describe(const json_t *body, const char *name, struct idem_buf *buf)
{
    const char *text = json_string_value(json_object_get(body, name));

    if (text != NULL) {
        idem_buf_printf(buf, " %s", text);
    }
}

static void body_describe(const struct answer *answer, const char *id, struct idem_buf *buf)
{
    json_t *body = json_loadb(answer->memory + answer->head_len, answer->body_len, 0, NULL);

    if (body == NULL) {
        idem_buf_add(buf, IDEM_STR(" garbage"));
        return;
    }
    member_describe(body, "status", buf);
    member_describe(body, "amount", buf);
    member_describe(body, "currency", buf);
    member_describe(body, "code", buf);
    const char *said = json_string_value(json_object_get(body, "id"));
    if (said != NULL && id != NULL && strcmp(said, id) != 0) {
        idem_buf_add(buf, IDEM_STR(" other-id"));
    }
    if (said == NULL) {
        idem_buf_add(buf, IDEM_STR(" no-id"));
    }
    json_decref(body);
}

void peer_describe(int fd, const char *id, char ret_text[PEER_DESCRIBE_LEN])
{
    struct answer answer;
    struct idem_buf buf;

    idem_buf_init(&buf, ret_text, PEER_DESCRIBE_LEN - 1);
    answer_read(fd, &answer);
    if (answer.len == 0) {
        idem_buf_add(&buf, answer.reset ? IDEM_STR("reset") : IDEM_STR("silence"));
    } else {
        assert_true(answer.head_len > strlen("HTTP/1.1 200"));
        idem_buf_printf(&buf, "%.3s", answer.memory + strlen("HTTP/1.1 "));
        if (answer.len < answer.head_len + answer.body_len) {
            idem_buf_add(&buf, IDEM_STR(" cut"));
        } else {
            body_describe(&answer, id, &buf);
        }
    }
    free(answer.memory);
    assert_false(buf.full);
    ret_text[buf.len] = '\0';
}

void peer_ask(const struct peer *peer,
              const struct peer_request *request,
              const char *id,
              char ret_text[PEER_DESCRIBE_LEN])
{
    int fd = peer_dial(peer);

    peer_send(fd, request);
    peer_describe(fd, id, ret_text);
    assert_int_equal(close(fd), 0);
}

json_t *peer_get(const struct peer *peer, const char *path)
{
    struct answer answer;
    int fd = peer_dial(peer);

    peer_send(fd, &(struct peer_request){ .method = "GET", .path = path });
    answer_read(fd, &answer);
    assert_int_equal(close(fd), 0);
    assert_int_equal(strncmp(answer.memory, "HTTP/1.1 200", strlen("HTTP/1.1 200")), 0);
    assert_int_equal(answer.len, answer.head_len + answer.body_len);
    json_t *body = json_loadb(answer.memory + answer.head_len, answer.body_len, 0, NULL);
    free(answer.memory);
    assert_non_null(body);
    return body;
}
