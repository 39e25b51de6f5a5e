/*
 * What the server accepts and what it refuses.
 *
 * Goal: a request that two servers could read in two ways is refused at least as nginx does, and
 * an honest one is understood however its bytes are cut.
 * Method: two tables of raw requests. Each is sent over a real socket, whole and byte by byte with
 * a turn of the loop between; a refusal must be readable and be followed by a plain close.
 */
#include "net/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include "unit/net/harness.h"

#define H "Host: a\r\n"

struct good {
    const char *text;
    const char *echo; /* Answers, separated by '|'. */
};

struct bad {
    struct idem_str text;
    int status;
};

#define BAD(literal, status)                       \
    {                                              \
        { (literal), sizeof(literal) - 1 }, status \
    }

static const struct good goods[] = {
    { "GET /a HTTP/1.1\r\n" H "\r\n", "GET /a? n=1 h=1 []" },
    { "GET /a?b=c?d HTTP/1.1\r\nhOsT:a:80 \t\r\nX:\r\n\r\n", "GET /a?b=c?d n=1 h=2 []" },
    { "GET // HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET //? n=1 h=1 []" },
    { "\r\nGET /a HTTP/1.1\r\n" H "\r\n", "GET /a? n=1 h=1 []" },
    { "GET /a HTTP/1.0\r\n\r\n", "GET /a? n=1 h=0 []" },
    { "POST /a HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello", "POST /a? n=1 h=2 [hello]" },
    { "POST /a HTTP/1.1\r\n" H "Content-Length: 005\r\n\r\nhello", "POST /a? n=1 h=2 [hello]" },
    { "POST /a HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", "POST /a? n=1 h=2 []" },
    { "POST /a HTTP/1.1\r\n" H "\r\n", "POST /a? n=1 h=1 []" },
    { "PATCH /a HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\n\r\n", "PATCH /a? n=1 h=2 [\r\n]" },
    { "POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "POST /a? n=1 h=2 [hello]" },
    { "POST /a HTTP/1.1\r\n" H
      "Transfer-Encoding: Chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
      "POST /a? n=1 h=2 [hello]" },
    { "POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST /a? n=1 h=2 []" },
    { "GET /a HTTP/1.1\r\n" H "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
      "GET /a? n=1 h=3 []" },
    { "POST /a HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi",
      "POST /a? n=1 h=4 [hi]" },
    { "GET /a HTTP/1.1\r\n" H "X-Latin: caf\xe9\r\n\r\n", "GET /a? n=1 h=2 []" },
    { "GET /1 HTTP/1.1\r\n" H "\r\nPOST /2 HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\nx\r\n"
      "POST /3 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\ny\r\n0\r\n\r\n"
      "GET /4 HTTP/1.1\r\n" H "\r\n",
      "GET /1? n=1 h=1 []|POST /2? n=2 h=2 [x]|POST /3? n=3 h=2 [y]|GET /4? n=4 h=1 []" },
};

/* "G" up to Host, then what is wrong. */
#define G "GET / HTTP/1.1\r\nHost: a\r\n"
#define P "POST / HTTP/1.1\r\nHost: a\r\n"

static const struct bad bads[] = {
    /* Length and coding. */
    BAD(P "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
    BAD(P "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
    BAD(P "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    BAD(P "Content-Length: 3\r\ncontent-length: 3\r\n\r\nabc", 400),
    BAD(P "Content-Length: +2\r\n\r\nab", 400),
    BAD(P "Content-Length: -2\r\n\r\nab", 400),
    BAD(P "Content-Length: 0x2\r\n\r\nab", 400),
    BAD(P "Content-Length: 2, 2\r\n\r\nab", 400),
    BAD(P "Content-Length: 2 3\r\n\r\nab", 400),
    BAD(P "Content-Length: 2;\r\n\r\nab", 400),
    BAD(P "Content-Length:\r\n\r\n", 400),
    BAD(P "Content-Length: 99999999999999999999\r\n\r\n", 400),
    BAD(P "Content-Length : 2\r\n\r\nab", 400),
    BAD(P "Content-Length\t: 2\r\n\r\nab", 400),
    BAD(P "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    BAD(P "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501),
    BAD(P "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", 501),
    BAD(P "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501),
    BAD(P "Transfer-Encoding: gzip\r\n\r\n", 501),
    BAD(P "Transfer-Encoding: identity\r\n\r\n", 501),
    BAD(P "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 501),
    BAD(P "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", 501),
    BAD(P "Transfer-Encoding:\r\n\r\n0\r\n\r\n", 501),
    BAD(P "Transfer-Encoding: \x0b"
          "chunked\r\n\r\n0\r\n\r\n",
        400),
    BAD(P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\nab", 400),
    BAD(P "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    BAD(P " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400),
    BAD("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    /* Chunks. */
    BAD(P "Transfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\nab\r\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFE\r\nab\r\n0\r\n\r\n", 413),
    BAD(P "Transfer-Encoding: chunked\r\n\r\n2\r\nabX\r\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding: chunked\r\n\r\n2\r\nab0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding: chunked\r\n\r\n2\r\nab\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding: chunked\r\n\r\n2\r\nabX\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding: chunked\r\n\r\n2;a\nab\r\n0\r\n\r\n", 400),
    BAD(P "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n", 400),
    /* Lines. */
    BAD(G "X: a\r\n b\r\n\r\n", 400),
    BAD(G "X: a\r\n\tb\r\n\r\n", 400),
    BAD(" GET / HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET / HTTP/1.1\r\n X: y\r\n" H "\r\n", 400),
    BAD("GET / HTTP/1.1\nHost: a\n\n", 400),
    BAD("GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
    BAD(G "\n", 400),
    BAD("\n" G "\r\n", 400),
    BAD("\r\n\r\n" G "\r\n", 400),
    BAD(G "X: a\rb\r\n\r\n", 400),
    BAD(G "X: a\r\r\n\r\n", 400),
    BAD(G "X: a\0b\r\n\r\n", 400),
    BAD(G "X: a\x01\r\n\r\n", 400),
    BAD(G "X: a\x7f\r\n\r\n", 400),
    BAD(G "X y: a\r\n\r\n", 400),
    BAD(G "X : a\r\n\r\n", 400),
    BAD(G "X\xe9: a\r\n\r\n", 400),
    BAD(G "X(y): a\r\n\r\n", 400),
    BAD(G ": a\r\n\r\n", 400),
    BAD(G "novalue\r\n\r\n", 400),
    /* Host. */
    BAD("GET / HTTP/1.1\r\n\r\n", 400),
    BAD("GET / HTTP/1.1\r\nX: y\r\n\r\n", 400),
    BAD(G "Host: a\r\n\r\n", 400),
    BAD(G "host: b\r\n\r\n", 400),
    BAD("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    BAD("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
    BAD("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400),
    BAD("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    BAD("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400),
    /* Request line. */
    BAD("GET http://a/ HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET a HTTP/1.1\r\n" H "\r\n", 400),
    BAD("OPTIONS * HTTP/1.1\r\n" H "\r\n", 400),
    BAD("CONNECT a:80 HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET /\x01 HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET /\t HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET /\0 HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET /caf\xc3\xa9 HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET /a#b HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET /a b HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET  / HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET /  HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET\t/ HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GET / HTTP/1.1 \r\n" H "\r\n", 400),
    BAD("GET / HTTP/1.2\r\n" H "\r\n", 400),
    BAD("GET / HTTP/2.0\r\n" H "\r\n", 400),
    BAD("GET / HTTP/0.9\r\n" H "\r\n", 400),
    BAD("GET / HTTP/1.10\r\n" H "\r\n", 400),
    BAD("GET / HTTP/11\r\n" H "\r\n", 400),
    BAD("GET / http/1.1\r\n" H "\r\n", 400),
    BAD("GET / ICE/1.0\r\n" H "\r\n", 400),
    BAD("GET /\r\n", 400),
    BAD("GET / \r\n", 400),
    BAD("get / HTTP/1.1\r\n" H "\r\n", 400),
    BAD("GETS / HTTP/1.1\r\n" H "\r\n", 400),
    BAD("G(T / HTTP/1.1\r\n" H "\r\n", 400),
    BAD("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    BAD("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    /* A smuggled second request behind a refused first one is not looked at. */
    BAD(P "Content-Length: 44\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n" H
          "\r\n",
        400),
};

static void expect_echo(struct harness *harness, int fd, struct idem_str line, const char *text)
{
    struct answer answer;
    client_answer(harness, fd, false, &answer);
    if (answer.status != 200 || !idem_str_equal(idem_str_from(answer.body), line)) {
        fail_msg("%s\ngot %d %s", text, answer.status, answer.body);
    }
}

static void good_is_understood(struct harness *harness, const struct good *good, bool bytewise)
{
    int fd = client_connect(harness);
    if (bytewise) {
        client_send_bytewise(harness, fd, idem_str_from(good->text));
    } else {
        client_send(harness, fd, idem_str_from(good->text));
    }
    struct idem_str lines = idem_str_from(good->echo);
    while (lines.data != NULL) {
        expect_echo(harness, fd, idem_str_next(&lines, '|'), good->text);
    }
    assert_int_equal(close(fd), 0);
}

static void good_requests_are_understood_however_they_are_cut(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(goods); i++) {
        good_is_understood(&harness, &goods[i], false);
        good_is_understood(&harness, &goods[i], true);
    }
    harness_until_connections(&harness, 0);
    harness_close(&harness);
}

static void bad_is_refused(struct harness *harness, const struct bad *bad, bool bytewise)
{
    int fd = client_connect(harness);
    if (bytewise) {
        client_send_bytewise(harness, fd, bad->text);
    } else {
        client_send(harness, fd, bad->text);
    }
    struct answer answer;
    bool reset = true;
    client_answer(harness, fd, false, &answer);
    bool ends = client_ends(harness, fd, 1000, &reset);
    if (answer.status != bad->status || !answer.closes || !ends || reset) {
        fail_msg("%.*s%s\ngot %d, ends %d, reset %d", (int)bad->text.len, bad->text.data,
                 bytewise ? "(bytewise)" : "", answer.status, ends, reset);
    }
    assert_string_equal(answer.body, "refused\n");
    assert_int_equal(close(fd), 0);
}

static void hostile_requests_are_refused_and_the_connection_ends(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bads); i++) {
        bad_is_refused(&harness, &bads[i], false);
        bad_is_refused(&harness, &bads[i], true);
    }
    assert_int_equal(harness.request_count, 0);
    harness_close(&harness);
}

/* Sends a request whose head has exactly `size` bytes. */
static void send_head_of(struct harness *harness, int fd, size_t size)
{
    static const char begin[] = "GET /a HTTP/1.1\r\nHost: a\r\nX: ";
    char head[4096];
    struct idem_buf buf;
    idem_buf_init(&buf, head, sizeof(head));
    idem_buf_add(&buf, IDEM_STR(begin));
    while (buf.len < size - 4) {
        idem_buf_add_char(&buf, 'x');
    }
    idem_buf_add(&buf, IDEM_STR("\r\n\r\n"));
    assert_int_equal(buf.len, size);
    client_send(harness, fd, idem_buf_str(&buf));
}

static void a_head_may_fill_its_limit_and_not_exceed_it(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    options.head_max = 1024;
    harness_open(&harness, &options);
    static const size_t sizes[] = { 1024, 1025, 4000 };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sizes); i++) {
        struct answer answer;
        int fd = client_connect(&harness);
        send_head_of(&harness, fd, sizes[i]);
        client_answer(&harness, fd, false, &answer);
        assert_int_equal(answer.status, sizes[i] <= 1024 ? 200 : 431);
        assert_int_equal(close(fd), 0);
    }
    harness_close(&harness);
}

static void sixty_four_fields_are_the_most(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    for (size_t count = IDEM_NET_HEADERS_MAX; count <= IDEM_NET_HEADERS_MAX + 1; count++) {
        struct answer answer;
        int fd = client_connect(&harness);
        client_send(&harness, fd, IDEM_STR("GET /a HTTP/1.1\r\nHost: a\r\n"));
        for (size_t i = 1; i < count; i++) {
            client_send(&harness, fd, IDEM_STR("X: y\r\n"));
        }
        client_send(&harness, fd, IDEM_STR("\r\n"));
        client_answer(&harness, fd, false, &answer);
        assert_int_equal(answer.status, count <= IDEM_NET_HEADERS_MAX ? 200 : 431);
        assert_int_equal(close(fd), 0);
    }
    harness_close(&harness);
}

static void a_body_too_large_is_refused_announced_or_counted(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    options.body_max = 10;
    harness_open(&harness, &options);
    static const struct bad rows[] = {
        BAD(P "Content-Length: 10\r\n\r\n0123456789", 200),
        BAD(P "Content-Length: 11\r\n\r\n", 413), /* Before a byte of it. */
        BAD(P "Content-Length: 11\r\nExpect: 100-continue\r\n\r\n", 413),
        BAD(P "Content-Length: 2147483648\r\n\r\n0123456789", 413),
        BAD(P "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n", 200),
        BAD(P "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n6\r\n", 413),
        BAD(P "Transfer-Encoding: chunked\r\n\r\nb\r\n", 413),
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct answer answer;
        int fd = client_connect(&harness);
        client_send(&harness, fd, rows[i].text);
        client_answer(&harness, fd, false, &answer);
        assert_int_equal(answer.status, rows[i].status);
        assert_int_equal(close(fd), 0);
    }
    harness_close(&harness);
}

static void headers_are_found_without_case_and_counted(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd,
                IDEM_STR("GET /hold HTTP/1.1\r\n" H "IDEMPOTENCY-key: \t k1 \r\n"
                         "Twice: 1\r\ntwice: 2\r\n\r\n"));
    harness_until(&harness, &harness.held_count, 1);
    size_t count = 9;
    EXPECT_TEXT(idem_exchange_header(harness.held[0], IDEM_STR("Idempotency-Key"), &count), "k1");
    assert_int_equal(count, 1);
    EXPECT_TEXT(idem_exchange_header(harness.held[0], IDEM_STR("Twice"), &count), "");
    assert_int_equal(count, 2);
    EXPECT_TEXT(idem_exchange_header(harness.held[0], IDEM_STR("Absent"), &count), "");
    assert_int_equal(count, 0);
    EXPECT_TEXT(idem_exchange_header(harness.held[0], IDEM_STR("Host"), NULL), "a");
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void answers_carry_what_the_protocol_demands(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);

    client_send(&harness, fd, IDEM_STR("GET /a HTTP/1.1\r\n" H "\r\n"));
    client_answer(&harness, fd, false, &answer);
    assert_ptr_equal(strstr(answer.head, "HTTP/1.1 200 OK\r\n"), answer.head);
    assert_non_null(strstr(answer.head, "\r\nContent-Type: text/plain\r\n"));
    assert_non_null(strstr(answer.head, "\r\nDate: "));
    assert_non_null(strstr(answer.head, " GMT\r\n"));
    assert_false(answer.closes);

    client_send(&harness, fd, IDEM_STR("HEAD /a HTTP/1.1\r\n" H "\r\n"));
    client_answer(&harness, fd, true, &answer);
    assert_non_null(strstr(answer.head, "\r\nContent-Length: 19\r\n"));

    client_send(&harness, fd, IDEM_STR("GET /empty HTTP/1.1\r\n" H "\r\n"));
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 204);
    assert_null(strstr(answer.head, "Content-Length"));

    client_send(&harness, fd, IDEM_STR("GET /a HTTP/1.1\r\n" H "\r\n"));
    client_answer(&harness, fd, false, &answer);
    assert_string_equal(answer.body, "GET /a? n=4 h=1 []");
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void connections_end_when_either_side_says_so(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    static const char *const texts[] = {
        "GET /a HTTP/1.0\r\n\r\n",
        "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n",
        "GET /last HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /last HTTP/1.1\r\nHost: a\r\n\r\nGET /never HTTP/1.1\r\nHost: a\r\n\r\n",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        struct answer answer;
        bool reset = true;
        int fd = client_connect(&harness);
        client_send(&harness, fd, idem_str_from(texts[i]));
        client_answer(&harness, fd, false, &answer);
        assert_int_equal(answer.status, 200);
        assert_true(answer.closes);
        assert_true(client_ends(&harness, fd, 1000, &reset));
        assert_false(reset);
        assert_int_equal(close(fd), 0);
    }
    assert_int_equal(harness.request_count, IDEM_ARRAY_COUNT(texts));
    harness_until_connections(&harness, 0);
    harness_close(&harness);
}

static void what_happens_is_counted(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = idem_server_options_default();
    options.connections_max = 1;
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET /a HTTP/1.1\r\n" H "\r\nGET /b HTTP/1.1\r\n" H "\r\n"));
    client_answer(&harness, fd, false, &answer);
    client_answer(&harness, fd, false, &answer);
    int surplus = client_connect(&harness);
    client_answer(&harness, surplus, false, &answer);
    assert_int_equal(answer.status, 503);
    assert_int_equal(close(surplus), 0);
    client_send(&harness, fd, IDEM_STR("GET /hold HTTP/1.1\r\n" H "\r\n"));
    harness_until(&harness, &harness.held_count, 1);
    assert_int_equal(idem_server_stats(harness.server).connections, 1);
    assert_int_equal(close(fd), 0);
    harness_until(&harness, &harness.gone_count, 1);
    harness_release(&harness, "nobody");
    harness_until_connections(&harness, 0);
    fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET / HTTP/1.2\r\n\r\n"));
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(close(fd), 0);
    harness_until_connections(&harness, 0);

    struct idem_server_stats stats = idem_server_stats(harness.server);
    assert_int_equal(stats.accepted, 3);
    assert_int_equal(stats.requests, 3);
    assert_int_equal(stats.refused[IDEM_NET_BAD_REQUEST], 1);
    assert_int_equal(stats.refused[IDEM_NET_CROWDED], 1);
    assert_int_equal(stats.refused[IDEM_NET_HEAD_SLOW], 0);
    assert_int_equal(stats.gone, 1);
    assert_int_equal(stats.connections, 0);
    harness_close(&harness);
}

static void an_address_that_is_taken_or_no_address_is_an_error(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    struct idem_server *other = NULL;
    struct idem_error error = { 0 };
    options = harness.options;
    options.port = idem_server_port(harness.server);
    assert_int_equal(idem_server_open(&options, &other, &error), IDEM_E_SYSTEM);
    assert_non_null(strstr(error.text, "address already in use"));
    options.host = "no.such.name";
    assert_int_equal(idem_server_open(&options, &other, &error), IDEM_E_SYSTEM);
    assert_null(other);
    options.host = "::1";
    options.port = 0;
    if (idem_server_open(&options, &other, &error) == IDEM_OK) { /* Not every machine has it. */
        assert_int_not_equal(idem_server_port(other), 0);
        idem_server_close(other);
        while (!idem_server_closed(other)) {
            harness_turn(&harness);
        }
        idem_server_destroy(other);
    }
    harness_turn(&harness);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_requests_are_understood_however_they_are_cut),
        cmocka_unit_test(hostile_requests_are_refused_and_the_connection_ends),
        cmocka_unit_test(a_head_may_fill_its_limit_and_not_exceed_it),
        cmocka_unit_test(sixty_four_fields_are_the_most),
        cmocka_unit_test(a_body_too_large_is_refused_announced_or_counted),
        cmocka_unit_test(headers_are_found_without_case_and_counted),
        cmocka_unit_test(answers_carry_what_the_protocol_demands),
        cmocka_unit_test(connections_end_when_either_side_says_so),
        cmocka_unit_test(what_happens_is_counted),
        cmocka_unit_test(an_address_that_is_taken_or_no_address_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
