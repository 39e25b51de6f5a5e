/*
 * Fuzzes answers of a server, through the sockets of the client that believes them.
 *
 * The input is one byte (where the bytes are cut) and what a server sends before it closes. The
 * client is the real one, with libcurl in it, the server a bare socket on 127.0.0.1. Properties,
 * for any bytes:
 *   - once the request has arrived the verdict is ANSWERED or UNKNOWN, never NOT_SENT, and the
 *     request arrives once;
 *   - an answer that lost its end is never taken for another one: what is ANSWERED after the first
 *     bytes is ANSWERED after all of them, with the same status, head and body;
 *   - verdict and answer do not depend on how the bytes were cut into packets;
 *   - a second reader, written from RFC 9112, 6.3, says the same of every answer that is written as
 *     it should be: whole ones are ANSWERED with that status and body, others are UNKNOWN, and so
 *     is one whose end nothing marks, or two lengths that differ;
 *   - Retry-After is between nothing and a day, and nothing of a head is left where it is UNKNOWN.
 */
#include "transport/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "net/chunks.h"

#include "fuzz/fuzz.h"

#define SIZE_TRIED 4096
#define HEAD_ROOM  8192
#define ROUNDS_MAX 200000
#define WAIT_US    (20 * IDEM_US_PER_SECOND)
#define BODY       "{\"amount\":\"1.00\"}"

static uv_loop_t loop;
static struct idem_clock clock_of_all;
static struct idem_http_client *client;
static int listener = -1;
static char url[64];

/* What came of one exchange. */
struct outcome {
    struct idem_http_call call;
    char head_memory[HEAD_ROOM];
};

static void everything_open(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    FUZZ_EXPECT(listener >= 0);
    FUZZ_EXPECT(bind(listener, (const struct sockaddr *)&address, size) == 0);
    FUZZ_EXPECT(listen(listener, 16) == 0);
    FUZZ_EXPECT(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(address.sin_port));

    FUZZ_EXPECT(uv_loop_init(&loop) == 0);
    idem_clock_init_system(&clock_of_all);
}

/* A new one for every exchange, so that none depends on what the last one left behind. */
static void client_open(void)
{
    struct idem_http_client_options options = {
        .loop = &loop,
        .clock = &clock_of_all,
        .calls_max = 1,
        .connections_per_host_max = 1,
        .http2 = true, /* As the callers' client has it. */
    };
    FUZZ_EXPECT(idem_http_client_create(&options, &client, NULL) == IDEM_OK);
}

static void turn(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT); /* Says whether handles are active. */
}

/* ---- the server ---- */

static int peer_accept(void)
{
    struct linger hard = { .l_onoff = 1 }; /* No port is kept waiting behind a run. */
    int on = 1;
    int fd = -1;
    for (size_t round = 0; fd < 0 && round < ROUNDS_MAX; round++) {
        turn();
        fd = accept(listener, NULL, NULL);
        FUZZ_EXPECT(fd >= 0 || errno == EAGAIN);
    }
    FUZZ_EXPECT(fd >= 0);
    FUZZ_EXPECT(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
    FUZZ_EXPECT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)) == 0);
    return fd;
}

/* Until its last byte has come. Nothing may come behind it. */
static void request_read(int fd)
{
    char memory[2048];
    size_t len = 0;
    for (size_t round = 0; round < ROUNDS_MAX; round++) {
        turn();
        ssize_t got = recv(fd, memory + len, sizeof(memory) - len, MSG_DONTWAIT);
        FUZZ_EXPECT(got > 0 || (got < 0 && errno == EAGAIN));
        len += got > 0 ? (size_t)got : 0;
        size_t tail = sizeof("\r\n\r\n" BODY) - 1;
        if (len >= tail && memcmp(memory + len - tail, "\r\n\r\n" BODY, tail) == 0) {
            FUZZ_EXPECT(memcmp(memory, "POST / HTTP/1.1\r\n", 17) == 0);
            return;
        }
    }
    FUZZ_EXPECT(len == SIZE_MAX); /* It has not come. */
}

/* In pieces, each of which the client has had before the next one leaves. */
static void answer_send(int fd, struct idem_str text, size_t piece)
{
    for (size_t at = 0; at < text.len; at += piece) {
        struct idem_str part = idem_str_slice(text, at, piece);
        (void)send(fd, part.data, part.len, MSG_NOSIGNAL); /* The client may have had enough. */
        turn();
    }
    (void)shutdown(fd, SHUT_WR); /* Likewise. */
}

/* A second request on this connection, or on another one, would be a second payment. */
static void nothing_more(int fd)
{
    char byte;
    FUZZ_EXPECT(recv(fd, &byte, 1, MSG_DONTWAIT) <= 0);
    FUZZ_EXPECT(accept(listener, NULL, NULL) < 0);
}

static void exchange(struct idem_str text, size_t piece, struct outcome *ret_outcome)
{
    struct idem_http_call *call = &ret_outcome->call;
    struct idem_list done = { .count = 0 };
    *call = (struct idem_http_call){
        .method = "POST",
        .url = url,
        .body = IDEM_STR(BODY),
        .not_after_us = INT64_MAX,
        .connect_timeout_us = WAIT_US,
        .timeout_us = WAIT_US,
        .head_room = ret_outcome->head_memory,
        .head_room_size = HEAD_ROOM,
    };
    client_open();
    FUZZ_EXPECT(idem_http_client_submit(client, call) == IDEM_OK);
    int fd = peer_accept();
    request_read(fd);
    answer_send(fd, text, piece);
    for (size_t round = 0; done.count == 0 && round < ROUNDS_MAX; round++) {
        turn();
        idem_http_client_reap(client, &done);
    }
    FUZZ_EXPECT(done.count == 1);
    nothing_more(fd);
    FUZZ_EXPECT(close(fd) == 0);
    idem_http_client_destroy(client);
    turn();
}

/* ---- a second reader ---- */

enum second {
    SECOND_ODD = 0, /* Not written as it should be: no opinion. */
    SECOND_CUT,     /* Its end is missing, or nothing marks it. */
    SECOND_WHOLE
};

struct framing {
    struct idem_str length;
    size_t lengths;
    size_t codings;
    bool two_lengths; /* That are not the same. */
    bool chunked;
};

static bool line_next(struct idem_str *text, struct idem_str *ret_line)
{
    for (size_t i = 0; i + 1 < text->len; i++) {
        if (text->data[i] == '\r' && text->data[i + 1] == '\n') {
            *ret_line = idem_str_slice(*text, 0, i);
            *text = idem_str_slice(*text, i + 2, text->len);
            return true;
        }
    }
    return false;
}

/* No control characters, so that nobody can see other lines in it. */
static bool is_plain(struct idem_str line)
{
    for (size_t i = 0; i < line.len; i++) {
        if ((unsigned char)line.data[i] < 0x20 || (unsigned char)line.data[i] > 0x7E) {
            return false;
        }
    }
    return true;
}

static bool status_reread(struct idem_str line, int64_t *ret_status)
{
    struct idem_str rest = idem_str_slice(line, 12, line.len);
    return is_plain(line) && idem_str_starts(line, IDEM_STR("HTTP/1.1 ")) &&
           idem_str_to_i64(idem_str_slice(line, 9, 3), ret_status) && *ret_status >= 100 &&
           *ret_status <= 599 && *ret_status != 101 && rest.len > 0 && rest.data[0] == ' ';
}

static bool lengths_differ(const struct framing *framing, struct idem_str value)
{
    int64_t before = 0;
    int64_t now = 0;
    return framing->lengths > 0 && idem_str_to_i64(framing->length, &before) &&
           idem_str_to_i64(value, &now) && before != now;
}

/* False: it is no field, or of a kind that changes how the rest is read. */
static bool field_reread(struct idem_str line, struct framing *framing)
{
    struct idem_str value = line;
    struct idem_str name = idem_str_next(&value, ':');
    if (!is_plain(line) || value.data == NULL || name.len == 0) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        bool letter = (name.data[i] | 0x20) >= 'a' && (name.data[i] | 0x20) <= 'z';
        if (!letter && name.data[i] != '-') {
            return false;
        }
    }
    value = idem_str_trim(value);
    if (idem_str_equal_nocase(name, IDEM_STR("content-length"))) {
        framing->two_lengths = framing->two_lengths || lengths_differ(framing, value);
        framing->lengths += 1;
        framing->length = value;
    } else if (idem_str_equal_nocase(name, IDEM_STR("transfer-encoding"))) {
        framing->codings += 1;
        framing->chunked = idem_str_equal_nocase(value, IDEM_STR("chunked"));
    }
    return true;
}

static enum second body_reread(struct idem_str text,
                               const struct framing *framing,
                               struct idem_str *ret_body)
{
    struct idem_chunks chunks = { .place = IDEM_CHUNKS_SIZE_FIRST };
    int64_t length = 0;
    size_t used = 0;
    *ret_body = (struct idem_str){ .data = NULL }; /* Of chunks: not taken out. */
    if ((framing->lengths == 0 && framing->codings == 0) || framing->two_lengths) {
        return SECOND_CUT;
    }
    if (framing->lengths == 1 && framing->codings == 0 && framing->length.len < 6 &&
        idem_str_to_i64(framing->length, &length)) {
        *ret_body = idem_str_slice(text, 0, (size_t)length);
        return text.len < (size_t)length ? SECOND_CUT : SECOND_WHOLE;
    }
    if (framing->lengths > 0 || framing->codings != 1) {
        return SECOND_ODD;
    }
    if (!framing->chunked) {
        return SECOND_CUT; /* It ends with the connection. */
    }
    enum idem_chunks_verdict verdict = idem_chunks_scan(&chunks, text, SIZE_TRIED, &used);
    if (verdict == IDEM_CHUNKS_MORE) {
        return SECOND_CUT;
    }
    return verdict == IDEM_CHUNKS_DONE && chunks.extension_bytes == 0 ? SECOND_WHOLE : SECOND_ODD;
}

/* A whole head, taken off `*text`. */
static enum second head_reread(struct idem_str *text, int64_t *ret_status, struct framing *framing)
{
    struct idem_str line;
    bool first = true;
    while (line_next(text, &line)) {
        if (!first && line.len == 0) {
            return SECOND_WHOLE;
        }
        if (first ? !status_reread(line, ret_status) : !field_reread(line, framing)) {
            return SECOND_ODD;
        }
        first = false;
    }
    return is_plain(*text) ? SECOND_CUT : SECOND_ODD;
}

static enum second answer_reread(struct idem_str text,
                                 int64_t *ret_status,
                                 struct idem_str *ret_body)
{
    struct framing framing = { .lengths = 0 };
    enum second second = head_reread(&text, ret_status, &framing);
    while (second == SECOND_WHOLE && *ret_status < 200) { /* An interim answer. */
        bool odd = framing.lengths + framing.codings > 0;
        framing = (struct framing){ .lengths = 0 };
        second = odd ? SECOND_ODD : head_reread(&text, ret_status, &framing);
    }
    if (second != SECOND_WHOLE) {
        return second;
    }
    if (*ret_status != 204 && *ret_status != 304) {
        return body_reread(text, &framing, ret_body);
    }
    *ret_body = IDEM_STR("");
    return framing.lengths + framing.codings > 0 ? SECOND_ODD : SECOND_WHOLE;
}

/* ---- the properties ---- */

static void check_call(const struct idem_http_call *call)
{
    FUZZ_EXPECT(call->sends == 1);
    FUZZ_EXPECT(call->verdict == IDEM_HTTP_ANSWERED || call->verdict == IDEM_HTTP_UNKNOWN);
    FUZZ_EXPECT(call->retry_after_us >= 0 && call->retry_after_us <= IDEM_US_PER_DAY);
    if (call->verdict == IDEM_HTTP_UNKNOWN) {
        FUZZ_EXPECT(call->retry_after_us == 0 && call->content_type.len == 0);
        FUZZ_EXPECT(call->answer.len == 0 && call->head.len == 0 && call->status == 0);
        FUZZ_EXPECT(call->detail[0] != '\0' && !call->hopeless);
        return;
    }
    FUZZ_EXPECT(call->status >= 200 && call->status <= 599);
    FUZZ_EXPECT(call->head.len == 0 || call->head.data[call->head.len - 1] == '\n');
}

static void check_same(const struct idem_http_call *left, const struct idem_http_call *right)
{
    FUZZ_EXPECT(left->verdict == right->verdict && left->status == right->status);
    FUZZ_EXPECT(idem_str_equal(left->answer, right->answer));
    FUZZ_EXPECT(idem_str_equal(left->head, right->head));
    FUZZ_EXPECT(idem_str_equal(left->content_type, right->content_type));
}

static void check_second(const struct idem_http_call *call, struct idem_str text)
{
    struct idem_str body;
    int64_t status = 0;
    enum second second = answer_reread(text, &status, &body);
    FUZZ_EXPECT(second != SECOND_CUT || call->verdict == IDEM_HTTP_UNKNOWN);
    if (second == SECOND_WHOLE) {
        FUZZ_EXPECT(call->verdict == IDEM_HTTP_ANSWERED && call->status == status);
        FUZZ_EXPECT(body.data == NULL || idem_str_equal(call->answer, body));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct outcome whole;
    static struct outcome other;
    if (size < 2 || size > SIZE_TRIED) {
        return 0;
    }
    if (listener < 0) {
        everything_open();
    }
    struct idem_str text = { .data = (const char *)data + 1, .len = size - 1 };
    size_t cut = (data[0] * text.len) / 256;
    exchange(text, text.len, &whole);
    check_call(&whole.call);
    check_second(&whole.call, text);

    exchange(text, 1 + cut, &other);
    check_same(&whole.call, &other.call);

    struct idem_str beginning = idem_str_slice(text, 0, cut);
    exchange(beginning, text.len, &other);
    check_call(&other.call);
    check_second(&other.call, beginning);
    if (other.call.verdict == IDEM_HTTP_ANSWERED) {
        check_same(&whole.call, &other.call);
    }
    return 0;
}
