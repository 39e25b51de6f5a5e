/*
 * A list of descriptors, searched by the addresses at both ends.
 *
 * The kernel is asked for the addresses at every search, and the port remembered only to ask less
 * often: libcurl 7.88 closes a socket that lost the race of two addresses (IPv4, IPv6) without a
 * word to us, so a descriptor in the list may be somebody else's by now. Two sockets that live do
 * not have both ends in common, so what is found is the right one.
 *
 * OpenSSL keeps the rest of a record whose beginning has ended an answer. Whether it does is asked
 * of the library that libcurl has loaded, by name: libidem, which is linked into other people's
 * programs, would need one library more for this one word. Other TLS libraries are not asked.
 */
#include "transport/sockets.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/attr.h"
#include "base/bug.h"

void idem_http_sockets_deinit(struct idem_http_sockets *sockets)
{
    struct idem_list_node *node;
    while ((node = idem_list_pop(&sockets->open)) != NULL) {
        free(IDEM_CONTAINER_OF(node, struct idem_http_socket, node));
    }
}

struct idem_http_socket *idem_http_sockets_at(struct idem_http_sockets *sockets, int fd)
{
    IDEM_LIST_FOREACH (at, &sockets->open) {
        struct idem_http_socket *socket = IDEM_CONTAINER_OF(at, struct idem_http_socket, node);
        if (socket->fd == fd) {
            return socket;
        }
    }
    return NULL;
}

void idem_http_sockets_remove(struct idem_http_sockets *sockets, int fd)
{
    struct idem_http_socket *socket = idem_http_sockets_at(sockets, fd);
    if (socket != NULL) {
        idem_list_remove(&sockets->open, &socket->node);
        free(socket);
    }
}

void idem_http_sockets_add(struct idem_http_sockets *sockets, int fd)
{
    IDEM_ASSERT(fd >= 0);
    idem_http_sockets_remove(sockets, fd); /* An earlier one, of whose end we were not told. */
    struct idem_http_socket *socket = calloc(1, sizeof(*socket));
    if (socket != NULL) {
        socket->fd = fd;
        idem_list_push(&sockets->open, &socket->node);
    }
}

static int end_port(const struct sockaddr_storage *end)
{
    if (end->ss_family == AF_INET) {
        return ntohs(((const struct sockaddr_in *)(const void *)end)->sin_port);
    }
    return ntohs(((const struct sockaddr_in6 *)(const void *)end)->sin6_port);
}

static bool end_equal(const struct sockaddr_storage *end, const char *ip, int port)
{
    char text[INET6_ADDRSTRLEN] = "";
    const void *address =
        end->ss_family == AF_INET
            ? (const void *)&((const struct sockaddr_in *)(const void *)end)->sin_addr
            : (const void *)&((const struct sockaddr_in6 *)(const void *)end)->sin6_addr;
    return end_port(end) == port &&
           inet_ntop(end->ss_family, address, text, sizeof(text)) != NULL && strcmp(text, ip) == 0;
}

static bool is_internet(const struct sockaddr_storage *end)
{
    return end->ss_family == AF_INET || end->ss_family == AF_INET6;
}

static bool ends_equal(struct idem_http_socket *socket, const struct idem_http_socket_ends *ends)
{
    struct sockaddr_storage local = { .ss_family = AF_UNSPEC };
    struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
    socklen_t local_size = sizeof(local);
    socklen_t peer_size = sizeof(peer);

    if (getsockname(socket->fd, (struct sockaddr *)&local, &local_size) != 0 ||
        getpeername(socket->fd, (struct sockaddr *)&peer, &peer_size) != 0 ||
        !is_internet(&local) || !is_internet(&peer)) {
        return false; /* Not connected yet, or no longer ours. */
    }
    socket->local_port = end_port(&local);
    return end_equal(&local, ends->local_ip, ends->local_port) &&
           end_equal(&peer, ends->peer_ip, ends->peer_port);
}

struct idem_http_socket *idem_http_sockets_find(struct idem_http_sockets *sockets,
                                                const struct idem_http_socket_ends *ends)
{
    IDEM_LIST_FOREACH (at, &sockets->open) {
        struct idem_http_socket *socket = IDEM_CONTAINER_OF(at, struct idem_http_socket, node);
        bool may = socket->local_port == 0 || socket->local_port == ends->local_port;
        if (may && ends_equal(socket, ends)) {
            return socket;
        }
    }
    return NULL;
}

bool idem_http_socket_is_quiet(const struct idem_http_socket *socket)
{
    char byte;
    ssize_t got = recv(socket->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool idem_http_tls_is_quiet(CURL *easy)
{
    const struct curl_tlssessioninfo *session = NULL;
    int (*has_pending)(const void *ssl) = NULL;

    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL ||
        session->backend != CURLSSLBACKEND_OPENSSL || session->internals == NULL) {
        return true; /* Not TLS, or not that of OpenSSL. */
    }
    void *found = dlsym(RTLD_DEFAULT, "SSL_has_pending");
    static_assert(sizeof(has_pending) == sizeof(found), "POSIX: a function fits into a pointer");
    memcpy(&has_pending, &found, sizeof(found));
    return has_pending != NULL && has_pending(session->internals) == 0;
}
