/*
 * net_internal.h - what the files of this folder share: the server, its connections, an exchange.
 *
 * A connection belongs to its server and is freed when its handle is closed. An exchange owns the
 * bytes of its request and outlives its connection if it must: `connection` is NULL from then on.
 */
#ifndef IDEM_NET_INTERNAL_H
#define IDEM_NET_INTERNAL_H

#include <llhttp.h>
#include <uv.h>

#include "base/list.h"
#include "net/bytes.h"
#include "net/chunks.h"
#include "net/head.h"
#include "net/server.h"

/* One read takes at most this much, so a leftover fits the early bytes. */
#define IDEM_NET_READ_MAX ((size_t)16 * 1024)
/* Bytes of later requests that are kept while one is being answered. */
#define IDEM_NET_EARLY_MAX IDEM_NET_READ_MAX
/* What is read and thrown away behind a last answer, so that the caller gets to read it. */
#define IDEM_NET_LINGER_MAX ((size_t)256 * 1024)
#define IDEM_NET_LINGER_US  INT64_C(2000000)
/* Requests that a connection has answered at once, before others get their turn. */
#define IDEM_NET_TURN_MAX 8
/* Connections above the limit that are being told so; above these they are just closed. */
#define IDEM_NET_CROWDED_MAX 128

#define IDEM_NET_BACKLOG  1024
#define IDEM_NET_DATE_LEN 29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */

enum idem_deadline {
    IDEM_DEADLINE_NONE = 0,
    IDEM_DEADLINE_IDLE,
    IDEM_DEADLINE_HEAD,
    IDEM_DEADLINE_BODY,
    IDEM_DEADLINE_WRITE,
    IDEM_DEADLINE_LINGER,
    IDEM_DEADLINE_COUNT
};

enum idem_connection_state {
    IDEM_CONNECTION_IDLE = 0, /* Not one byte of the next request has been read. */
    IDEM_CONNECTION_HEAD,
    IDEM_CONNECTION_BODY,
    IDEM_CONNECTION_BUSY,    /* The exchange is its owner's. */
    IDEM_CONNECTION_WRITING, /* The caller has not taken all of the answer. */
    IDEM_CONNECTION_LINGER,  /* The last answer has left; waiting for the caller to close. */
    IDEM_CONNECTION_CLOSED,
    IDEM_CONNECTION_STATE_COUNT
};

/* What follows the answer. */
enum idem_connection_then {
    IDEM_THEN_NEXT = 0, /* The next request. */
    IDEM_THEN_LINGER,
    IDEM_THEN_RESET
};

struct idem_exchange {
    struct idem_connection *connection; /* NULL once that is gone. */
    void *owner;
    bool gone; /* The owner has been told. */
    struct idem_bytes head;
    struct idem_bytes body;
    struct idem_net_request request;
};

struct idem_connection {
    uv_tcp_t tcp;
    union {
        llhttp_t parser;
        uv_shutdown_t shutdown; /* From LINGER on, when nothing is parsed any more. */
    };
    struct idem_server *server;
    struct idem_exchange *exchange; /* From the end of a head until the answer. */
    struct idem_list_node listed;   /* In server->connections. */
    struct idem_list_node timed;    /* In server->deadlines[deadline]. */
    struct idem_list_node yielding; /* In server->yielded. */
    int64_t deadline_us;            /* Monotonic. */
    enum idem_deadline deadline;
    enum idem_connection_state state;
    enum idem_connection_then then;
    enum idem_head_place place;
    struct idem_head said; /* By the head of the current request. */
    struct idem_bytes head;
    struct idem_bytes early;
    struct idem_chunks chunks;
    uint64_t body_left; /* Not chunked: what is to come. */
    size_t pending;     /* What this connection adds to server->pending. */
    size_t discarded;
    unsigned request_no;
    unsigned turn_served;  /* Requests answered at once in this turn. */
    unsigned fields_seen;  /* By llhttp. */
    bool message_complete; /* Says llhttp. */
    bool blank_seen;       /* The one empty line that may precede a request. */
    bool last;             /* Nothing after the current answer. */
    bool ended;            /* The caller has sent its FIN. */
    bool reading;
    bool consuming; /* idem_connection_consume() is on the stack and goes on by itself. */
    bool yielded;   /* Its next request waits for its turn. */
    bool crowded;
    bool starved; /* No memory for the body: nothing can be said about the request. */
};

struct idem_server {
    struct idem_server_options options;
    uv_tcp_t listener;
    uv_tcp_t surplus; /* Takes and closes a connection for which there is no memory. */
    uv_timer_t timer;
    uv_idle_t turns;
    llhttp_settings_t parser_settings;
    size_t handles_open;
    bool listening;
    bool draining;
    bool closing;
    bool surplus_open;
    bool accept_waiting; /* A connection waits for `surplus` to be closed. */
    uint16_t port;
    size_t crowded_count;
    size_t pending;                 /* Bytes held for what is not a complete request yet. */
    struct idem_server_stats stats; /* Without `connections`. */
    struct idem_list connections;
    struct idem_list yielded;
    struct idem_list deadlines[IDEM_DEADLINE_COUNT];
    int64_t durations_us[IDEM_DEADLINE_COUNT];
    int64_t armed_us; /* When the timer fires; zero if it does not. */
    int64_t date_second;
    char date[IDEM_NET_DATE_LEN + 1];
    char read_bytes[IDEM_NET_READ_MAX];
};

/* deadline.c */

/* Puts the deadline that `deadline` means, counted from now, in place of the present one. */
void idem_deadline_set(struct idem_connection *connection, enum idem_deadline deadline);
void idem_deadline_clear(struct idem_connection *connection);
/* Expires what is due. The server's timer calls it. */
void idem_deadline_sweep(uv_timer_t *timer);

/* turn.c */

/* Lets the others go first: its early bytes wait for the next round of the loop. */
void idem_turn_yield(struct idem_connection *connection);
/* A new turn, also for a connection that waits for it. */
void idem_turn_begin(struct idem_connection *connection);
/* Gives everybody who has yielded a turn. The server's idle handle calls it. */
void idem_turn_next(uv_idle_t *turns);

/* answer.c */

/* Sends an answer; idem_connection_written() follows, now or later. */
void idem_answer_send(struct idem_connection *connection,
                      const struct idem_net_reply *reply,
                      bool head_only);
/* Sends bytes as they are, likewise. */
void idem_answer_send_raw(struct idem_connection *connection, struct idem_str bytes);

/* connection.c */

/* Takes the connection that waits at the listener. False: no memory; it still waits. */
bool idem_connection_accept(struct idem_server *server) IDEM_MUST_CHECK;
/* The answer has left. Does not go on to the next request: idem_connection_resume() does. */
void idem_connection_written(struct idem_connection *connection);
/* Goes on with early bytes if the state allows, and puts reading and deadlines right. */
void idem_connection_resume(struct idem_connection *connection);
void idem_connection_expire(struct idem_connection *connection, enum idem_deadline deadline);
/* Closes at once. An exchange that is its owner's is gone first. */
void idem_connection_close(struct idem_connection *connection);
/* Has read nothing of a next request: nobody loses an answer if it is closed. */
bool idem_connection_is_idle(const struct idem_connection *connection);
int idem_connection_on_field(llhttp_t *parser);
int idem_connection_on_body(llhttp_t *parser, const char *data, size_t len);
int idem_connection_on_complete(llhttp_t *parser);

/* exchange.c */

void idem_exchange_free(struct idem_exchange *exchange);

/* server.c */

void idem_server_handle_closed(struct idem_server *server);

#endif /* IDEM_NET_INTERNAL_H */
