/*
 * inquiry.h - asking for the outcome of an intent without sending it: what to ask, what was said.
 *
 * Three ways, the first that can be used: the operation that an answer named (Location), the key
 * (GET /v1/operations?endpoint=, key in its header; dialects that have operations), and the
 * business id, an address that the request brought. The last says nothing about this key, so it
 * never decides: it is shown with the verdict.
 *
 * A credential goes only where the request went: an operation of another origin is not asked.
 */
#ifndef IDEM_CLIENT_INQUIRY_H
#define IDEM_CLIENT_INQUIRY_H

#include <stdbool.h>

#include "base/text.h"
#include "client/dialect.h"
#include "client/meaning.h"
#include "client/signal.h"

enum idem_inquiry_way {
    IDEM_INQUIRY_NONE = 0, /* It cannot be asked for. */
    IDEM_INQUIRY_OPERATION,
    IDEM_INQUIRY_KEY,
    IDEM_INQUIRY_BUSINESS
};

struct idem_inquiry_from {
    const struct idem_dialect *dialect;
    struct idem_str url;           /* The request's. */
    struct idem_str operation_url; /* Resolved; or empty. */
    struct idem_str status_url;    /* Or empty. */
};

/* Appends the URL to ask at. */
enum idem_inquiry_way idem_inquiry_url(const struct idem_inquiry_from *from, struct idem_buf *buf);

/*
 * Appends the address of the operation of the request's key; nothing if the dialect has none, or
 * the URL tells no endpoint. The key goes in its header.
 */
void idem_inquiry_key_url(const struct idem_dialect *dialect,
                          struct idem_str url,
                          struct idem_buf *buf);

/* The addresses where a person can look; each may be empty. */
struct idem_inquiry_places {
    struct idem_str operation_url; /* The server has named it. */
    struct idem_str status_url;    /* The request brought it. */
    struct idem_str key_url;       /* Asked with the key. */
};

/* The best of them; empty: there is none. */
struct idem_str idem_inquiry_best(const struct idem_inquiry_places *places);

/* The operation's answer as it was stored. Borrowed from the call and from `memory`. */
struct idem_inquiry_answer {
    uint16_t status;         /* 0: there is none, or not yet. */
    struct idem_str headers; /* "Name: value\n" each, in the caller's memory. */
    struct idem_str body;
};

/*
 * Reads what came of a question asked by OPERATION or KEY as if it had been the answer to a send.
 * RUNNING while it is processing, unknown or parked; the stored answer's own meaning once final;
 * a record that is released: turned away; no record of the key: UNSURE, AGAIN; no usable answer:
 * UNSURE, ASK. `memory` holds the answer's headers and body.
 */
struct idem_reading idem_inquiry_read(const struct idem_dialect *dialect,
                                      struct idem_str key,
                                      const struct idem_http_call *call,
                                      struct idem_buf *memory,
                                      struct idem_inquiry_answer *ret_answer);

/*
 * Resolves a Location of an answer to `url`: absolute of the same origin, or a path. False: it
 * cannot be used, and nothing was appended.
 */
bool idem_inquiry_resolve(struct idem_str url, struct idem_str location, struct idem_buf *buf);

#endif /* IDEM_CLIENT_INQUIRY_H */
