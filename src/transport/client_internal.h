/*
 * client_internal.h - what client.c tells libcurl: the options of a transfer, and header lines;
 * and how it sees by its coding that a body is whole.
 *
 * Options and lines belong to one transfer and its thread. What sets options returns the first
 * refusal of libcurl and goes on behind it: a handle that was refused one is not used at all.
 */
#ifndef IDEM_TRANSPORT_CLIENT_INTERNAL_H
#define IDEM_TRANSPORT_CLIENT_INTERNAL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "transport/client.h"

struct idem_http_opening;
struct idem_http_sockets;

/* Ours in front and behind: no Expect, and no type that libcurl makes up. */
#define IDEM_HTTP_OWN_LINES_MAX  2
#define IDEM_HTTP_OWN_LINES_SIZE (sizeof("Expect:") + sizeof("Content-Type:"))
#define IDEM_HTTP_LINES_MAX      (IDEM_HTTP_HEADERS_MAX + IDEM_HTTP_OWN_LINES_MAX)

/*
 * The header lines of one call as libcurl wants them. The text stands last and is touched only as
 * far as it is used: a client of hundreds of transfers does not hold it all in memory.
 */
struct idem_http_lines {
    size_t count;
    size_t used; /* Bytes of memory. */
    struct curl_slist list[IDEM_HTTP_LINES_MAX];
    char memory[IDEM_HTTP_HEADERS_SIZE + IDEM_HTTP_OWN_LINES_SIZE];
};

/* False: a line that would be two, or more text than IDEM_HTTP_HEADERS_SIZE; nothing is kept. */
bool idem_http_lines_build(struct idem_http_lines *lines,
                           const struct idem_http_call *call) IDEM_MUST_CHECK;

/* Overwrites the text: there are credentials in it. Costs what was used. */
void idem_http_lines_wipe(struct idem_http_lines *lines);

/* What is the same for every call of a client. */
CURLcode idem_http_options_fix(CURL *easy, const struct idem_http_client_options *options);

/* What a transfer opens sockets with. Outlives it. */
struct idem_http_opening {
    struct idem_http_sockets *sockets; /* Outlive the last of them: closing is noted there too. */
    bool (*may_connect)(const struct sockaddr *address); /* NULL: to any. */
    bool refused; /* An address, since the owner last set this to false. */
};

CURLcode idem_http_options_sockets(CURL *easy, struct idem_http_opening *opening);

/* Before every call: HTTP/2 where TLS offers it, or HTTP/1.1 only. */
CURLcode idem_http_options_version(CURL *easy, bool http2);

/* Before every try: on a connection that is not used again, or on any. */
CURLcode idem_http_options_fresh(CURL *easy, bool fresh);

/* What is this call's. Borrows all three until the transfer has ended. */
CURLcode idem_http_options_aim(CURL *easy,
                               const struct idem_http_call *call,
                               struct idem_http_lines *lines);

/* At least 1: to libcurl zero means "no limit". */
uint64_t idem_http_ms_from_us(int64_t us);

enum idem_http_head_state {
    IDEM_HTTP_HEAD_NONE = 0,
    IDEM_HTTP_HEAD_INTERIM, /* The status line of an interim answer was read. */
    IDEM_HTTP_HEAD_OPEN,    /* That of the answer. */
    IDEM_HTTP_HEAD_ENDED
};

/* How far the head of an answer was read, and what it says of the body. */
struct idem_http_head {
    enum idem_http_head_state state;
    int64_t length; /* Negative: none, or none that can be believed. */
    bool chunked;
};

void idem_http_head_reset(struct idem_http_head *head);

/* A status line: whatever an interim answer has said is forgotten, in the call as well. */
void idem_http_head_begin(struct idem_http_head *head,
                          struct idem_http_call *call,
                          struct idem_str line);

/* A field of an open head, without its line end: into the call, what is of use. */
void idem_http_head_field(struct idem_http_head *head,
                          struct idem_http_call *call,
                          struct idem_clock *clock,
                          struct idem_str line);

/* It says where the body ends. */
bool idem_http_head_delimits(const struct idem_http_head *head);

/* The value of Transfer-Encoding: a body that is coded so has an end of its own. */
bool idem_http_coding_ends(struct idem_str value);

#endif /* IDEM_TRANSPORT_CLIENT_INTERNAL_H */
