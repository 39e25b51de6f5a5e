/*
 * Blocking sockets and threads, nothing clever: the peer is the judge and must be plainly right.
 */
#include "unit/transport/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bug.h"

#define CONNECTIONS_MAX 1024

struct connection {
    struct peer *peer;
    pthread_t thread;
    int socket; /* -1: closed. */
};

struct peer {
    int listener;
    uint16_t port;
    pthread_t acceptor;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stopping;
    unsigned arrivals;
    unsigned closed;
    unsigned open;
    unsigned open_max;
    char answer[PEER_ANSWER_MAX];
    char last_request[PEER_REQUEST_MAX];
    struct connection connections[CONNECTIONS_MAX];
    size_t connection_count;
};

struct fault {
    const char *path;
    const char *answer; /* NULL: none. */
    bool closes;
};

static const struct fault faults[] = {
    { "/ok ", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: text/plain\r\n\r\nfine",
      false },
    { "/ok-then-close ", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine", true },
    { "/close ", NULL, true },
    { "/reset ", NULL, true },
    { "/silent ", NULL, false },
    { "/cut-body ", "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nfine", true },
    { "/cut-head ", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Nothing: ab", true },
    { "/cut-status ", "HTTP/1.1 20", true },
    { "/unframed ", "HTTP/1.1 200 OK\r\n\r\nfine", true },
    { "/identity ", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nfine", true },
    { "/no-coding ", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\nfine", true },
    { "/length-beyond ", "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nfine",
      true },
    { "/length-behind ", "HTTP/1.1 200 OK\r\nContent-Length: 4.5\r\n\r\nfine", true },
    { "/two-lengths ", "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nContent-Length: 4\r\n\r\nfine",
      true },
    { "/same-lengths ", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nfine",
      false },
    { "/interim ",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nRetry-After: 9\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine",
      false },
    { "/interim-only ", "HTTP/1.1 100 Continue\r\n\r\n", true },
    { "/switching ", "HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\n", true },
    { "/no-content ", "HTTP/1.1 204 No Content\r\n\r\n", false },
    { "/chunked ",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nfi\r\n2\r\nne\r\n0\r\n\r\n",
      false },
    { "/cut-chunks ", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n", true },
    { "/elsewhere ", "HTTP/1.1 307 Moved\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n", false },
};

static bool write_all(int socket, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = send(socket, data, size, MSG_NOSIGNAL);
        if (written <= 0) {
            return false;
        }
        data += written;
        size -= (size_t)written;
    }
    return true;
}

/* Reads one request to its last byte into `request`, terminated. False: the caller has gone. */
static bool request_read(int socket, char request[PEER_REQUEST_MAX])
{
    size_t have = 0;
    size_t want = 0; /* 0: the head has not ended yet. */

    while (want == 0 || have < want) {
        ssize_t got = recv(socket, request + have, PEER_REQUEST_MAX - 1 - have, 0);
        if (got <= 0) {
            return false;
        }
        have += (size_t)got;
        request[have] = '\0';
        const char *end = strstr(request, "\r\n\r\n");
        if (end != NULL) {
            const char *length = strstr(request, "Content-Length: ");
            unsigned long body = length == NULL ? 0 : strtoul(length + 16, NULL, 10);
            want = (size_t)(end - request) + 4 + body;
        }
    }
    IDEM_ASSERT(have == want); /* Nobody sends a second request before the answer. */
    return true;
}

static void reset_on_close(int socket)
{
    struct linger linger = { .l_onoff = 1, .l_linger = 0 };
    (void)setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)); /* Always can. */
}

/* True: the connection goes on. */
static bool fault_show(int socket, const struct fault *fault)
{
    if (strcmp(fault->path, "/reset ") == 0) {
        reset_on_close(socket);
    }
    if (fault->answer != NULL && !write_all(socket, fault->answer, strlen(fault->answer))) {
        return false;
    }
    return !fault->closes;
}

static bool answer_large(int socket, size_t size)
{
    char head[128];
    char *body = malloc(size + 1);
    IDEM_ASSERT(body != NULL);

    memset(body, 'x', size);
    int len = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", size);
    bool ok = write_all(socket, head, (size_t)len) && write_all(socket, body, size);
    free(body);
    return ok;
}

/* True: the connection goes on. */
static bool request_answer(struct connection *connection, const char *request)
{
    const char *path = strchr(request, ' ') + 1;

    if (strncmp(path, "/large/", 7) == 0) {
        return answer_large(connection->socket, strtoul(path + 7, NULL, 10));
    }
    if (strncmp(path, "/set", 4) == 0) {
        char answer[PEER_ANSWER_MAX];
        (void)pthread_mutex_lock(&connection->peer->mutex);
        memcpy(answer, connection->peer->answer, sizeof(answer));
        (void)pthread_mutex_unlock(&connection->peer->mutex);
        return write_all(connection->socket, answer, strlen(answer));
    }
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        const struct fault *fault = &faults[i];
        if (strncmp(path, fault->path, strlen(fault->path)) == 0) {
            return fault_show(connection->socket, fault);
        }
    }
    abort(); /* A test asks for a fault that does not exist. */
}

static void *connection_run(void *user)
{
    struct connection *connection = user;
    struct peer *peer = connection->peer;
    char request[PEER_REQUEST_MAX];
    bool on = true;

    while (on && request_read(connection->socket, request)) {
        (void)pthread_mutex_lock(&peer->mutex);
        peer->arrivals += 1;
        memcpy(peer->last_request, request, sizeof(request));
        (void)pthread_cond_broadcast(&peer->changed);
        (void)pthread_mutex_unlock(&peer->mutex);
        on = request_answer(connection, request);
    }

    (void)pthread_mutex_lock(&peer->mutex);
    (void)close(connection->socket);
    connection->socket = -1;
    peer->closed += 1;
    peer->open -= 1;
    (void)pthread_cond_broadcast(&peer->changed);
    (void)pthread_mutex_unlock(&peer->mutex);
    return NULL;
}

static void *acceptor_run(void *user)
{
    struct peer *peer = user;

    for (;;) {
        int socket = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
        if (socket < 0) {
            return NULL; /* Shut down by peer_stop(). */
        }
        (void)pthread_mutex_lock(&peer->mutex);
        IDEM_ASSERT(peer->connection_count < CONNECTIONS_MAX);
        struct connection *connection = &peer->connections[peer->connection_count];
        peer->connection_count += 1;
        peer->open += 1;
        peer->open_max = peer->open > peer->open_max ? peer->open : peer->open_max;
        *connection = (struct connection){ .peer = peer, .socket = socket };
        int rc = pthread_create(&connection->thread, NULL, connection_run, connection);
        IDEM_ASSERT(rc == 0);
        (void)pthread_mutex_unlock(&peer->mutex);
    }
}

struct peer *peer_start(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);
    struct peer *peer = calloc(1, sizeof(*peer));
    IDEM_ASSERT(peer != NULL);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = bind(peer->listener, (struct sockaddr *)&address, sizeof(address));
    IDEM_ASSERT(rc == 0);
    rc = listen(peer->listener, 1024);
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

void peer_stop(struct peer *peer)
{
    (void)shutdown(peer->listener, SHUT_RDWR); /* Ends accept(). */
    (void)pthread_join(peer->acceptor, NULL);
    (void)pthread_mutex_lock(&peer->mutex);
    for (size_t i = 0; i < peer->connection_count; i++) {
        if (peer->connections[i].socket >= 0) {
            (void)shutdown(peer->connections[i].socket, SHUT_RDWR); /* Ends recv(). */
        }
    }
    (void)pthread_mutex_unlock(&peer->mutex);
    for (size_t i = 0; i < peer->connection_count; i++) {
        (void)pthread_join(peer->connections[i].thread, NULL);
    }
    (void)close(peer->listener);
    (void)pthread_cond_destroy(&peer->changed);
    (void)pthread_mutex_destroy(&peer->mutex);
    free(peer);
}

uint16_t peer_port(const struct peer *peer)
{
    return peer->port;
}

static unsigned locked_read(struct peer *peer, const unsigned *value)
{
    (void)pthread_mutex_lock(&peer->mutex);
    unsigned copy = *value;
    (void)pthread_mutex_unlock(&peer->mutex);
    return copy;
}

static void locked_wait(struct peer *peer, const unsigned *value, unsigned count)
{
    (void)pthread_mutex_lock(&peer->mutex);
    while (*value < count) {
        (void)pthread_cond_wait(&peer->changed, &peer->mutex);
    }
    (void)pthread_mutex_unlock(&peer->mutex);
}

unsigned peer_arrivals(struct peer *peer)
{
    return locked_read(peer, &peer->arrivals);
}

unsigned peer_connections_max(struct peer *peer)
{
    return locked_read(peer, &peer->open_max);
}

void peer_wait_arrivals(struct peer *peer, unsigned count)
{
    locked_wait(peer, &peer->arrivals, count);
}

void peer_wait_closed(struct peer *peer, unsigned count)
{
    locked_wait(peer, &peer->closed, count);
}

void peer_answer(struct peer *peer, const char *raw)
{
    (void)pthread_mutex_lock(&peer->mutex);
    int len = snprintf(peer->answer, sizeof(peer->answer), "%s", raw);
    IDEM_ASSERT(len >= 0 && (size_t)len < sizeof(peer->answer));
    (void)pthread_mutex_unlock(&peer->mutex);
}

void peer_last_request(struct peer *peer, char ret_request[PEER_REQUEST_MAX])
{
    (void)pthread_mutex_lock(&peer->mutex);
    memcpy(ret_request, peer->last_request, PEER_REQUEST_MAX);
    (void)pthread_mutex_unlock(&peer->mutex);
}
