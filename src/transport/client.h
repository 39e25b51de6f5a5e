/*
 * client.h - HTTP calls that are sent at most once.
 *
 * libcurl by itself sends a POST again when a reused connection dies under it, and reports success.
 * Here every call has one send: a guard in the last hook before the first byte lets one request
 * pass and aborts the second, and refuses the first when `not_after_us` has passed. So each call
 * ends in exactly one of three verdicts, and NOT_SENT means that not one byte of the request can
 * have left.
 *
 * Calls run on the caller's libuv loop and thread. Finished calls queue up and are reaped: no
 * callbacks. Redirects are not followed, proxies of the environment are not used. Over HTTP/2 a
 * stream that the server refused unprocessed is not sent again either: it is UNKNOWN.
 */
#ifndef IDEM_TRANSPORT_CLIENT_H
#define IDEM_TRANSPORT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/text.h"

struct sockaddr;
struct uv_loop_s;
struct idem_http_client;

enum idem_http_verdict {
    IDEM_HTTP_NONE = 0,
    IDEM_HTTP_NOT_SENT, /* No byte of the request left. */
    IDEM_HTTP_ANSWERED, /* A complete answer: status, body. */
    IDEM_HTTP_UNKNOWN,  /* It left, or may have, and there is no complete answer. */
    IDEM_HTTP_VERDICT_COUNT
};

#define IDEM_HTTP_HEADERS_MAX     40    /* All lines together: IDEM_HTTP_HEADERS_SIZE. */
#define IDEM_HTTP_HEADERS_SIZE    16384 /* Bytes, a terminator each included. */
#define IDEM_HTTP_ANSWER_BODY_MAX 16384 /* A longer answer is UNKNOWN, unless it has room. */
#define IDEM_HTTP_CALL_DETAIL_MAX 128

/* One call. Embed it; it is the client's from submit to reap. */
struct idem_http_call {
    struct idem_list_node node;

    /* Borrowed until reaped. */
    const char *method;                             /* "GET", "POST", "PUT", "PATCH", "DELETE". */
    const char *url;                                /* Terminated. */
    struct idem_str headers[IDEM_HTTP_HEADERS_MAX]; /* "Name: value", not terminated. */
    size_t header_count;
    struct idem_str body;       /* Empty for GET. */
    int64_t not_after_us;       /* Monotonic; the first byte leaves before or never. */
    int64_t connect_timeout_us; /* Part of timeout_us. */
    int64_t timeout_us;         /* From submit to the last byte of the answer. */
    char *answer_room;          /* For the answer's body, until reaped; NULL: `answer_memory`. */
    size_t answer_room_size;
    char *head_room; /* For the fields of the answer's head, until reaped; NULL: not kept. */
    size_t head_room_size;
    bool head_suffices; /* ANSWERED as soon as its head has ended; `answer` stays empty. */

    /* Valid once reaped. */
    enum idem_http_verdict verdict;
    bool hopeless; /* NOT_SENT, and the same call would not be sent the next time either. */
    bool too_long; /* UNKNOWN, because the answer is longer than its room. */
    uint16_t status;
    int64_t retry_after_us; /* From Retry-After, seconds or date; 0: none or unreadable. */
    struct idem_str content_type;
    struct idem_str answer;                 /* The body. */
    struct idem_str head;                   /* ANSWERED, in head_room: "Name: value\n" each. */
    char detail[IDEM_HTTP_CALL_DETAIL_MAX]; /* Why it was not ANSWERED; terminated. */

    /* The client's own. */
    struct idem_buf answer_buf;
    struct idem_buf head_buf;
    char answer_memory[IDEM_HTTP_ANSWER_BODY_MAX];
    char content_type_memory[128];
    void *transfer;
    unsigned sends; /* Requests that passed the guard: 0 or 1. */
};

struct idem_http_client_options {
    struct uv_loop_s *loop;   /* Borrowed as long as the client. */
    struct idem_clock *clock; /* Likewise. */
    size_t calls_max;         /* At once. */
    size_t connections_per_host_max;
    const char *ca_file; /* NULL: the system's. */
    const char *proxy;   /* NULL: none. The environment's are never used. */
    bool http2;          /* Where TLS offers it (ALPN); else HTTP/1.1 only. */
    /*
     * NULL, or whether this address may be connected to: asked for each one, after its name was
     * looked up. Not with a proxy, which does both by itself.
     */
    bool (*may_connect)(const struct sockaddr *address);
};

enum idem_err idem_http_client_create(const struct idem_http_client_options *options,
                                      struct idem_http_client **ret_client,
                                      struct idem_error *reterr) IDEM_MUST_CHECK;

/* IDEM_E_LIMIT: calls_max are under way; the call is still the caller's. */
enum idem_err idem_http_client_submit(struct idem_http_client *client,
                                      struct idem_http_call *call) IDEM_MUST_CHECK;

/* Moves finished calls onto `ret_done`, oldest first. */
void idem_http_client_reap(struct idem_http_client *client, struct idem_list *ret_done);

/*
 * A number that changes whenever the loop got something new to watch. For an owner that polls the
 * loop's descriptor itself: the loop tells the system of it at the beginning of its next round.
 */
uint64_t idem_http_client_stirs(const struct idem_http_client *client);

/* Ends a call now: NOT_SENT if nothing left, else UNKNOWN. It is reaped as any other. */
void idem_http_client_cancel(struct idem_http_client *client, struct idem_http_call *call);

/*
 * All calls were reaped. Run the loop once more afterwards so that its handles close; accepts
 * NULL.
 */
void idem_http_client_destroy(struct idem_http_client *client);

/* The body is one JSON object or array that is closed; white space around it is allowed. */
bool idem_http_body_whole(struct idem_str body);

#endif /* IDEM_TRANSPORT_CLIENT_H */
