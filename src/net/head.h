/*
 * head.h - the head of a request, read strictly from its raw bytes.
 */
#ifndef IDEM_NET_HEAD_H
#define IDEM_NET_HEAD_H

#include "net/server.h"

/* Where in a line the last byte was. */
enum idem_head_place {
    IDEM_HEAD_LINE_START = 0, /* Zeroed is the beginning of a head. */
    IDEM_HEAD_LINE,
    IDEM_HEAD_LINE_CR,
    IDEM_HEAD_LAST_CR,
    IDEM_HEAD_END
};

enum idem_head_verdict {
    IDEM_HEAD_MORE = 0,
    IDEM_HEAD_DONE,
    IDEM_HEAD_BAD /* A control byte, or CR or LF alone. */
};

/* What the head says about the rest of the message. */
struct idem_head {
    int64_t body_len; /* Announced; zero if chunked or none. */
    bool chunked;
    bool closes; /* HTTP/1.0, or the caller asks for it. */
    bool expects_continue;
    bool head_only; /* HEAD: the answer has no body. */
};

/*
 * Looks for the empty line that ends a head, across any number of calls. `*ret_used` counts the
 * bytes up to it, or all. A head of two bytes is an empty line before a request.
 */
enum idem_head_verdict idem_head_scan(enum idem_head_place *place,
                                      struct idem_str text,
                                      size_t *ret_used);

/* False if the first line of `text` is complete and is no request line. */
bool idem_head_may_begin(struct idem_str text);

/*
 * Reads a complete head (it was scanned: DONE). Fills method, path, query and headers of
 * `request`, which point into `text`.
 */
enum idem_net_refusal idem_head_parse(struct idem_str text,
                                      struct idem_net_request *request,
                                      struct idem_head *ret_head);

#endif /* IDEM_NET_HEAD_H */
