/*
 * What libcurl is told.
 *
 * Everything that libcurl would do by itself is switched off here: redirects, signals, proxies and
 * exceptions of the environment (http_proxy, no_proxy and their like), names in URLs, an Expect
 * header, a content type that nobody gave. What is left on is what a client asked for.
 *
 * A proxy sees of an https call the name of the host and no more: the call's header lines go to
 * the host alone, and the head of the proxy's own answer to CONNECT is not the answer's.
 */
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bug.h"
#include "transport/client_internal.h"
#include "transport/sockets.h"

/* Setting options, with the first refusal. */
struct setup {
    CURL *easy;
    CURLcode refusal;
};

static void set_number(struct setup *setup, CURLoption option, long value)
{
    CURLcode rc = curl_easy_setopt(setup->easy, option, value);
    if (setup->refusal == CURLE_OK) {
        setup->refusal = rc;
    }
}

static void set_pointer(struct setup *setup, CURLoption option, const void *value)
{
    CURLcode rc = curl_easy_setopt(setup->easy, option, value);
    if (setup->refusal == CURLE_OK) {
        setup->refusal = rc;
    }
}

static void set_proxy(struct setup *setup, const char *proxy)
{
    if (proxy == NULL) {
        set_pointer(setup, CURLOPT_PROXY, ""); /* Also none from the environment. */
        return;
    }
    set_pointer(setup, CURLOPT_PROXY, proxy);
    set_pointer(setup, CURLOPT_NOPROXY, ""); /* Nor exceptions from there. */
    set_number(setup, CURLOPT_HEADEROPT, CURLHEADER_SEPARATE);
    set_number(setup, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1);
}

CURLcode idem_http_options_fix(CURL *easy, const struct idem_http_client_options *options)
{
    static const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        { CURLOPT_NOSIGNAL, 1 },
        { CURLOPT_FOLLOWLOCATION, 0 },
        { CURLOPT_HTTP09_ALLOWED, 0 },
        { CURLOPT_SSL_VERIFYPEER, 1 },
        { CURLOPT_SSL_VERIFYHOST, 2 },
        { CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
        { CURLOPT_TCP_NODELAY, 1 },
        { CURLOPT_PATH_AS_IS, 1 },
        { CURLOPT_DISALLOW_USERNAME_IN_URL, 1 },
        { CURLOPT_QUICK_EXIT, 1 }, /* A cancel does not wait for a resolver thread. */
    };
    struct setup setup = { .easy = easy };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(numbers); i++) {
        set_number(&setup, numbers[i].option, numbers[i].value);
    }
    set_pointer(&setup, CURLOPT_PROTOCOLS_STR, "http,https");
    set_proxy(&setup, options->proxy);
    if (options->ca_file != NULL) {
        set_pointer(&setup, CURLOPT_CAINFO, options->ca_file);
    }
    return setup.refusal;
}

static curl_socket_t socket_open(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct idem_http_opening *opening = user;
    (void)purpose; /* There is but one. */
    if (opening->may_connect != NULL && !opening->may_connect(&address->addr)) {
        opening->refused = true;
        return CURL_SOCKET_BAD; /* libcurl tries the next address, if there is one. */
    }
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0) {
        return CURL_SOCKET_BAD;
    }
    idem_http_sockets_add(opening->sockets, fd);
    return fd;
}

static int socket_close(void *user, curl_socket_t fd)
{
    idem_http_sockets_remove(user, fd);
    return close(fd);
}

CURLcode idem_http_options_sockets(CURL *easy, struct idem_http_opening *opening)
{
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, socket_open);

    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, opening);
    rc = rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, socket_close);
    return rc != CURLE_OK ? rc : curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, opening->sockets);
}

CURLcode idem_http_options_version(CURL *easy, bool http2)
{
    struct setup setup = { .easy = easy };

    /* With 1.1, one request a connection at a time. */
    set_number(&setup, CURLOPT_HTTP_VERSION,
               http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
    return setup.refusal;
}

CURLcode idem_http_options_fresh(CURL *easy, bool fresh)
{
    struct setup setup = { .easy = easy };

    set_number(&setup, CURLOPT_FRESH_CONNECT, fresh ? 1 : 0);
    return setup.refusal;
}

static void line_add(struct idem_http_lines *lines, struct idem_buf *buf, struct idem_str text)
{
    IDEM_ASSERT(lines->count < IDEM_HTTP_LINES_MAX);
    struct curl_slist *line = &lines->list[lines->count];

    *line = (struct curl_slist){ .data = buf->data + buf->len };
    if (lines->count > 0) {
        lines->list[lines->count - 1].next = line;
    }
    lines->count += 1;
    idem_buf_add(buf, text);
    idem_buf_add_char(buf, '\0');
    lines->used = buf->len;
}

static bool line_clean(struct idem_str line)
{
    return idem_str_find(line, '\r') == line.len && idem_str_find(line, '\n') == line.len &&
           idem_str_find(line, '\0') == line.len;
}

void idem_http_lines_wipe(struct idem_http_lines *lines)
{
    IDEM_ASSERT(lines->used <= sizeof(lines->memory));
    explicit_bzero(lines->memory, lines->used);
    lines->used = 0;
    lines->count = 0;
}

bool idem_http_lines_build(struct idem_http_lines *lines, const struct idem_http_call *call)
{
    struct idem_buf buf;
    size_t size = 0;
    bool typed = false;

    IDEM_ASSERT(call->header_count <= IDEM_HTTP_HEADERS_MAX);
    lines->count = 0;
    lines->used = 0;
    idem_buf_init(&buf, lines->memory, sizeof(lines->memory));
    line_add(lines, &buf, IDEM_STR("Expect:"));
    for (size_t i = 0; i < call->header_count; i++) {
        struct idem_str line = call->headers[i];
        if (!line_clean(line) || line.len >= IDEM_HTTP_HEADERS_SIZE - size) {
            idem_http_lines_wipe(lines);
            return false;
        }
        size += line.len + 1;
        struct idem_str name = idem_str_slice(line, 0, strlen("content-type:"));
        typed = typed || idem_str_equal_nocase(name, IDEM_STR("content-type:"));
        line_add(lines, &buf, line);
    }
    if (!typed) {
        line_add(lines, &buf, IDEM_STR("Content-Type:"));
    }
    IDEM_ASSERT(!buf.full); /* Theirs were counted, and ours have room of their own. */
    return true;
}

uint64_t idem_http_ms_from_us(int64_t us)
{
    if (us <= IDEM_US_PER_MS) {
        return 1;
    }
    int64_t ms = us / IDEM_US_PER_MS + (us % IDEM_US_PER_MS != 0);
    return ms > INT_MAX ? INT_MAX : (uint64_t)ms;
}

CURLcode idem_http_options_aim(CURL *easy,
                               const struct idem_http_call *call,
                               struct idem_http_lines *lines)
{
    struct setup setup = { .easy = easy };
    int64_t connect_us =
        call->connect_timeout_us < call->timeout_us ? call->connect_timeout_us : call->timeout_us;

    set_pointer(&setup, CURLOPT_URL, call->url);
    set_pointer(&setup, CURLOPT_HTTPHEADER, lines->list);
    set_number(&setup, CURLOPT_CONNECTTIMEOUT_MS, (long)idem_http_ms_from_us(connect_us));
    set_pointer(&setup, CURLOPT_CUSTOMREQUEST, NULL); /* The call before may have set it. */
    if (strcmp(call->method, "GET") == 0) {
        set_number(&setup, CURLOPT_HTTPGET, 1);
        return setup.refusal;
    }
    set_number(&setup, CURLOPT_POST, 1); /* With a body; the word is the call's. */
    set_pointer(&setup, CURLOPT_CUSTOMREQUEST, call->method);
    set_number(&setup, CURLOPT_POSTFIELDSIZE, (long)call->body.len);
    set_pointer(&setup, CURLOPT_POSTFIELDS, call->body.len == 0 ? "" : call->body.data);
    return setup.refusal;
}
