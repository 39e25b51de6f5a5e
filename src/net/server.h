/*
 * server.h - an HTTP/1.1 server on a libuv loop that refuses what it cannot trust.
 *
 * llhttp parses in strict mode; this layer refuses what llhttp lets through (obs-fold, spaces in
 * field names, chunk data without CRLF, missing or double Host, any doubled Content-Length or
 * Transfer-Encoding), owns the deadlines (head, body, idle) and the limits (head size and count,
 * body size, connections), and notices a caller who has gone. One request at a time on a
 * connection: a pipelined one waits unread until the answer before it has left.
 *
 * The owner gets a complete request as a `struct idem_exchange` and answers it once, now or later.
 * TLS and HTTP/2 will sit between the socket and the exchange; nothing above will notice.
 *
 * Threads: the loop's.
 */
#ifndef IDEM_NET_SERVER_H
#define IDEM_NET_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct uv_loop_s;
struct idem_server;
struct idem_exchange;

#define IDEM_NET_HEADERS_MAX 64

struct idem_net_header {
    struct idem_str name;
    struct idem_str value; /* Without white space around it. */
};

/* A complete request. Text is the exchange's, until it is answered or broken. */
struct idem_net_request {
    struct idem_str method; /* "GET" */
    struct idem_str path;   /* Begins with '/'; still percent-encoded. */
    struct idem_str query;  /* Behind the '?'; empty if none. */
    struct idem_net_header headers[IDEM_NET_HEADERS_MAX];
    size_t header_count;
    struct idem_str body;
    unsigned request_no; /* On this connection, from one: above one it was reused. */
};

/* Why the server answers by itself. */
enum idem_net_refusal {
    IDEM_NET_REFUSAL_NONE = 0,
    IDEM_NET_BAD_REQUEST,    /* 400 */
    IDEM_NET_HEAD_SLOW,      /* 408 */
    IDEM_NET_BODY_SLOW,      /* 408 */
    IDEM_NET_BODY_TOO_LARGE, /* 413 */
    IDEM_NET_HEAD_TOO_LARGE, /* 431, also too many fields. */
    IDEM_NET_NOT_SUPPORTED,  /* 501: a transfer coding other than chunked. */
    IDEM_NET_CROWDED,        /* 503: too many connections, or bytes of incomplete requests. */
    IDEM_NET_REFUSAL_COUNT
};

/* An answer. Borrowed for the call. Content-Length, Date and Connection are the server's. */
struct idem_net_reply {
    uint16_t status;
    struct idem_str headers; /* Lines "Name: value\r\n", each ended. */
    struct idem_str body;
    bool close; /* The connection ends after this answer. */
};

struct idem_server_ops {
    /* A request is complete. The exchange is the owner's until it answers or breaks it. */
    void (*request)(void *context, struct idem_exchange *exchange);
    /*
     * The caller has gone while the exchange was the owner's, who must still answer or break it,
     * and may do so in this call. A caller who only ended its own side still gets the answer;
     * otherwise it goes nowhere. Said once.
     */
    void (*gone)(void *context, struct idem_exchange *exchange);
    /*
     * What to say when the server refuses. Text must outlive the call: constants or the
     * context's.
     */
    void (*refusal)(void *context, enum idem_net_refusal refusal, struct idem_net_reply *ret_reply);
};

struct idem_server_options {
    struct uv_loop_s *loop; /* Borrowed as long as the server. */
    const char *host;       /* An address, not a name; IPv4 or IPv6. */
    uint16_t port;          /* 0: any; see idem_server_port(). */
    size_t connections_max;
    size_t head_max;          /* Bytes of request line and fields. */
    size_t body_max;          /* Bytes of body. */
    size_t pending_max;       /* Bytes held for incomplete requests of all connections. */
    int64_t head_timeout_us;  /* From the first byte of a head to its end. */
    int64_t body_timeout_us;  /* From the end of the head to the end of the body. */
    int64_t idle_timeout_us;  /* Between requests, and before the first byte. */
    int64_t write_timeout_us; /* An answer that is not taken. */
    const struct idem_server_ops *ops;
    void *context;
};

/* Since the server was opened; for metrics. */
struct idem_server_stats {
    uint64_t accepted;                        /* Connections, also those refused as too many. */
    uint64_t requests;                        /* Complete ones that the owner got. */
    uint64_t refused[IDEM_NET_REFUSAL_COUNT]; /* Also a crowd that was closed without a word. */
    uint64_t gone;                            /* Callers who left before their answer. */
    size_t connections;                       /* Now; idem_server_connections(). */
};

/*
 * head 16 KiB, body 64 KiB, pending 32 MiB, 10,000 connections, 10 s head, 20 s body, 75 s idle,
 * 20 s write.
 */
struct idem_server_options idem_server_options_default(void);

/*
 * Listens at once. Where SIGPIPE still has its default, it is ignored from then on in the whole
 * process: a write to a caller who has gone is an error, not the end.
 */
enum idem_err idem_server_open(const struct idem_server_options *options,
                               struct idem_server **ret_server,
                               struct idem_error *reterr) IDEM_MUST_CHECK;

uint16_t idem_server_port(const struct idem_server *server);
size_t idem_server_connections(const struct idem_server *server);
struct idem_server_stats idem_server_stats(const struct idem_server *server);

const struct idem_net_request *idem_exchange_request(const struct idem_exchange *exchange);

/*
 * The value of the only field `name`; empty if it is absent or there are several. `ret_count` (may
 * be NULL): how many there are.
 */
struct idem_str idem_exchange_header(const struct idem_exchange *exchange,
                                     struct idem_str name,
                                     size_t *ret_count);

/* A pointer for the owner. */
void idem_exchange_set_owner(struct idem_exchange *exchange, void *owner);
void *idem_exchange_owner(const struct idem_exchange *exchange);

/* Answers and ends the exchange. */
void idem_exchange_reply(struct idem_exchange *exchange, const struct idem_net_reply *reply);

/*
 * For a sandbox that misbehaves: sends `bytes` as they are (may be empty), then closes; with
 * `reset` the connection is reset instead. Ends the exchange.
 */
void idem_exchange_break(struct idem_exchange *exchange, struct idem_str bytes, bool reset);

/* Accepts no more connections, closes idle ones now and others after their answer. */
void idem_server_drain(struct idem_server *server);

/*
 * Closes everything; open exchanges are gone first and may be answered even after the destruction.
 * Run the loop until its handles are closed, then destroy.
 */
void idem_server_close(struct idem_server *server);

/* True once every handle is closed. */
bool idem_server_closed(const struct idem_server *server);

/* Accepts NULL. */
void idem_server_destroy(struct idem_server *server);

#endif /* IDEM_NET_SERVER_H */
