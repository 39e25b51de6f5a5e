/*
 * provider - the other end of the bridge protocol with as little work as there can be: every charge
 * has succeeded, nothing is remembered.
 *
 *     provider --port N
 *
 * For measuring what HTTP to a provider costs the service. It is no sandbox: it cannot be asked
 * about anything, and it believes whatever it reads. TERM ends it.
 */
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#define REQUEST_MAX 8192
#define EVENTS_MAX  256

struct caller {
    int fd;
    size_t len;
    char data[REQUEST_MAX + 1];
};

static unsigned long executed;

static void fail(const char *what)
{
    (void)fprintf(stderr, "provider: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* The text of a member `"name":"..."`, cut off at its quote; it stands in `body`. */
static const char *member(const char *body, const char *name, int *ret_len)
{
    const char *at = strstr(body, name);
    if (at == NULL) {
        *ret_len = 0;
        return "";
    }
    at += strlen(name);
    *ret_len = (int)strcspn(at, "\"");
    return at;
}

static void answer(struct caller *caller, const char *request)
{
    char body[512];
    char reply[768];
    int id_len;
    int amount_len;
    int currency_len;
    const char *id = member(request, "\"id\":\"", &id_len);
    const char *amount = member(request, "\"amount\":\"", &amount_len);
    const char *currency = member(request, "\"currency\":\"", &currency_len);
    executed += 1;
    int body_len = snprintf(body, sizeof(body),
                            "{\"status\":\"succeeded\",\"id\":\"%.*s\",\"amount\":\"%.*s\","
                            "\"currency\":\"%.*s\",\"reference\":\"bench-%011lu\"}",
                            id_len, id, amount_len, amount, currency_len, currency, executed);
    int len = snprintf(reply, sizeof(reply),
                       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                       "Content-Length: %d\r\n\r\n%s",
                       body_len, body);
    if (body_len >= (int)sizeof(body) || len >= (int)sizeof(reply)) {
        errno = EMSGSIZE;
        fail("an answer");
    }
    if (send(caller->fd, reply, (size_t)len, MSG_NOSIGNAL) != len) {
        fail("cannot answer");
    }
}

/* One request at a time, as the service sends them. */
static void request_take(struct caller *caller)
{
    caller->data[caller->len] = '\0';
    const char *end = strstr(caller->data, "\r\n\r\n");
    if (end == NULL) {
        return;
    }
    const char *length = strcasestr(caller->data, "\r\nContent-Length:");
    size_t body = length != NULL && length < end ? strtoul(length + 17, NULL, 10) : 0;
    if (caller->len >= (size_t)(end - caller->data) + 4 + body) {
        answer(caller, end + 4);
        caller->len = 0;
    }
}

static void caller_read(struct caller *caller)
{
    ssize_t count = recv(caller->fd, caller->data + caller->len, REQUEST_MAX - caller->len, 0);
    if (count <= 0) { /* Gone, or longer than anything the service sends. */
        (void)close(caller->fd);
        free(caller);
        return;
    }
    caller->len += (size_t)count;
    request_take(caller);
}

/* Reading from `fd` concerns `owner`; the listener has none. */
static void watch(int epoll, int fd, void *owner)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = owner };
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        fail("epoll");
    }
}

static void caller_accept(int epoll, int listener)
{
    int yes = 1;
    int fd = accept(listener, NULL, NULL);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0) {
        fail("cannot accept");
    }
    struct caller *caller = calloc(1, sizeof(*caller));
    if (caller == NULL) {
        fail("memory");
    }
    caller->fd = fd;
    watch(epoll, fd, caller);
}

static int listen_at(unsigned long port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        fail("cannot listen");
    }
    return fd;
}

static void event_take(int epoll, int listener, struct caller *caller)
{
    if (caller == NULL) {
        caller_accept(epoll, listener);
        return;
    }
    caller_read(caller);
}

static void serve(int listener)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) {
        fail("epoll");
    }
    watch(epoll, listener, NULL);
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            event_take(epoll, listener, events[i].data.ptr);
        }
    }
}

static const struct option long_options[] = {
    { "port", required_argument, NULL, 'p' },
    { NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
    unsigned long port = 0;
    int letter;
    while ((letter = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        port = letter == 'p' ? strtoul(optarg, NULL, 10) : 0;
    }
    if (port == 0 || port > 65535 || optind != argc) {
        (void)fputs("provider --port N\n", stderr);
        return 2;
    }
    serve(listen_at(port));
}
