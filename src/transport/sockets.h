/*
 * sockets.h - the sockets that libcurl has open, and what is known of each.
 *
 * libcurl does not say which socket a request is about to be written to, only the addresses at its
 * two ends. Here is the rest: whether it has carried a request, and whether bytes wait on it that
 * nobody has asked for.
 *
 * Threads: the client's.
 */
#ifndef IDEM_TRANSPORT_SOCKETS_H
#define IDEM_TRANSPORT_SOCKETS_H

#include <curl/curl.h>
#include <stdbool.h>

#include "base/list.h"

struct idem_http_socket {
    struct idem_list_node node; /* Of the sockets'. */
    int fd;
    int local_port; /* 0: not asked yet. */
    bool used;      /* It has carried a request. */
    bool http2;     /* In HTTP/2: what comes belongs to a stream. */
    bool surplus;   /* More came on it than an answer. */
};

struct idem_http_sockets {
    struct idem_list open;
};

/* The two ends of a socket, as libcurl's prereq hook names them. Borrowed. */
struct idem_http_socket_ends {
    const char *peer_ip;
    const char *local_ip;
    int peer_port;
    int local_port;
};

/* Frees what is known of sockets. Those themselves are libcurl's, and closed by now. */
void idem_http_sockets_deinit(struct idem_http_sockets *sockets);

/* For want of memory a socket is not listed: then it is not found. */
void idem_http_sockets_add(struct idem_http_sockets *sockets, int fd);
void idem_http_sockets_remove(struct idem_http_sockets *sockets, int fd);

/* NULL: not listed. What is found is valid until its removal. */
struct idem_http_socket *idem_http_sockets_at(struct idem_http_sockets *sockets, int fd);
struct idem_http_socket *idem_http_sockets_find(struct idem_http_sockets *sockets,
                                                const struct idem_http_socket_ends *ends);

/* Open, with nothing to read. */
bool idem_http_socket_is_quiet(const struct idem_http_socket *socket);

/* Of the connection that a transfer has now: nothing to read has left the socket, but not TLS. */
bool idem_http_tls_is_quiet(CURL *easy);

#endif /* IDEM_TRANSPORT_SOCKETS_H */
