/*
 * http2_peer.h - a server that misbehaves on purpose, over TLS and HTTP/2, a thread a connection.
 *
 * It writes and reads frames by itself, with no library that could be right where it shall be
 * wrong. It decodes no header: what it does with a request is scripted by the order of arrival.
 * It counts arrivals: HEADERS frames that open a stream, and heads of HTTP/1.1 where that was
 * negotiated. So a request that was sent again counts twice whatever became of the first.
 */
#ifndef IDEM_TEST_UNIT_TRANSPORT_HTTP2_PEER_H
#define IDEM_TEST_UNIT_TRANSPORT_HTTP2_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What is done with a request, at its last byte if not said otherwise. An answer is 200 with the
 * body {"answer":N}, N the number of the arrival, and with content-type and content-length.
 */
enum http2_fault {
    HTTP2_ANSWER,
    HTTP2_ANSWER_BARE,       /* Without content-length: the end is a flag. */
    HTTP2_ANSWER_TEXT,       /* Likewise, and the body is no JSON. */
    HTTP2_ANSWER_EMPTY,      /* The head ends the stream. */
    HTTP2_ANSWER_NO_CONTENT, /* Likewise, with 204. */
    HTTP2_ANSWER_INTERIM,    /* After 103 with a field of its own. */
    HTTP2_ANSWER_TRAILERS,   /* A trailer ends the stream. */
    HTTP2_ANSWER_GOODBYE,    /* With GOAWAY behind it, then closes. */
    HTTP2_ANSWER_CONTINUED,  /* The head in HEADERS and CONTINUATION. */
    HTTP2_HOLD,              /* Kept until HTTP2_RELEASE. */
    HTTP2_HOLD_HALF,         /* Likewise, but half of the answer leaves at once. */
    HTTP2_RELEASE,           /* Answers this one, then the held ones, frame by frame in turns. */
    HTTP2_SILENT,            /* From the head on, also no room for more of the body. */
    HTTP2_REFUSE_EARLY,      /* RST_STREAM REFUSED_STREAM at the head. */
    HTTP2_REFUSE,            /* The same at the end. */
    HTTP2_REFUSE_RELEASE,    /* The same, then answers the held ones. */
    HTTP2_CANCEL,            /* RST_STREAM CANCEL. */
    HTTP2_RST_OK,            /* RST_STREAM NO_ERROR. */
    HTTP2_RST_INTERNAL,      /* RST_STREAM INTERNAL_ERROR. */
    HTTP2_RST_HTTP11,        /* RST_STREAM HTTP_1_1_REQUIRED. */
    HTTP2_GOAWAY,            /* GOAWAY with last stream 0; the connection stays. */
    HTTP2_GOAWAY_CLOSE,      /* The same, then closes. */
    HTTP2_GOAWAY_HTTP11,     /* GOAWAY HTTP_1_1_REQUIRED, then closes. */
    HTTP2_CLOSE_EARLY,       /* Closes at the head. */
    HTTP2_CLOSE,             /* Closes. */
    HTTP2_RESET,             /* Resets the TCP connection. */
    HTTP2_CUT_HEAD,          /* A HEADERS frame that is shorter than it says, then closes. */
    HTTP2_CUT_BARE,          /* Half a body without content-length, then closes. */
    HTTP2_CUT_CANCEL,        /* The same, then RST_STREAM CANCEL. */
    HTTP2_CUT_OK,            /* The same, then RST_STREAM NO_ERROR. */
    HTTP2_CUT_REFUSE,        /* The same, then RST_STREAM REFUSED_STREAM. */
    HTTP2_CUT_GOAWAY,        /* The same, then GOAWAY with this stream as the last, then closes. */
    HTTP2_CUT_LENGTH,        /* Ends the stream after half of content-length. */
    HTTP2_CUT_LENGTH_OK,     /* RST_STREAM NO_ERROR after half of content-length. */
    HTTP2_CUT_NO_BODY_OK,    /* The head, then RST_STREAM NO_ERROR. */
    HTTP2_CUT_NO_BODY,       /* The head without the end of the stream, then closes. */
    HTTP2_CUT_INTERIM,       /* 103, then closes. */
    HTTP2_FAULT_COUNT
};

struct http2_peer_options {
    bool http1_only;          /* In ALPN. */
    unsigned streams_max;     /* At once, as its SETTINGS say; 0: nothing is said. */
    const char *http1_answer; /* To a request of HTTP/1.1, before closing. NULL: a plain 200. */
};

struct http2_peer;

struct http2_peer *http2_peer_start(const struct http2_peer_options *options);
void http2_peer_stop(struct http2_peer *peer); /* Ends every connection and its thread. */

/* From now on; the last one repeats. */
void http2_peer_script(struct http2_peer *peer, const enum http2_fault *faults, size_t count);

uint16_t http2_peer_port(const struct http2_peer *peer);
const char *http2_peer_ca_file(const struct http2_peer *peer);
unsigned http2_peer_arrivals(struct http2_peer *peer);
unsigned http2_peer_arrivals_http1(struct http2_peer *peer); /* Those of them in HTTP/1.1. */
unsigned http2_peer_connections(struct http2_peer *peer);    /* Ever accepted. */
size_t http2_peer_body_size(struct http2_peer *peer);        /* Bytes of DATA ever read. */

/* Waits until so many have come in all. */
void http2_peer_wait_arrivals(struct http2_peer *peer, unsigned count);
void http2_peer_wait_resets(struct http2_peer *peer, unsigned count); /* RST_STREAM. */

#endif /* IDEM_TEST_UNIT_TRANSPORT_HTTP2_PEER_H */
