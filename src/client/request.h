/*
 * request.h - requests as callers give them: whether they can be sent, and what is kept of them.
 */
#ifndef IDEM_CLIENT_REQUEST_H
#define IDEM_CLIENT_REQUEST_H

#include <stdbool.h>

#include "base/text.h"
#include "client/dialect.h"
#include "client/journal.h"
#include "idem/client.h"

/* IDEM_CLIENT_E_INVALID with what is wrong; the URL is not shown, it may hold a credential. */
enum idem_client_err idem_request_check(const struct idem_client_request *request,
                                        const struct idem_dialect **ret_dialect,
                                        struct idem_client_error *reterr) IDEM_MUST_CHECK;

/*
 * Its headers are none that a new request may not have. Apart from the check above: what the
 * journal has from before one of them was refused is gone on with.
 */
enum idem_client_err idem_request_check_new(const struct idem_client_request *request,
                                            struct idem_client_error *reterr) IDEM_MUST_CHECK;

/* The record of a checked request, under its key or one that is made. The caller clears it. */
enum idem_client_err idem_request_record(struct idem_client *client,
                                         const struct idem_client_request *request,
                                         const struct idem_dialect *dialect,
                                         struct idem_client_record *ret_record,
                                         struct idem_client_error *reterr) IDEM_MUST_CHECK;

/*
 * What differs between two requests, in a word; NULL: nothing. Compared is what the server would
 * get, and the key if it was brought.
 */
const char *idem_request_difference(const struct idem_client_record *known,
                                    const struct idem_client_record *asked);

/* Appends 128 random bits as a UUID of version 4 (RFC 9562, 5.4), and returns it. */
struct idem_str idem_request_key(struct idem_client *client, struct idem_buf *buf);

/* Why this field is not a caller's to set, also not as credential; NULL: it is. */
const char *idem_request_line_objection(const struct idem_dialect *dialect, struct idem_str line);

/* POST, PUT, PATCH or DELETE. */
bool idem_request_method(struct idem_str method);

/* The record of the same request under a new key, in memory of its own. */
enum idem_client_err idem_request_rekey(struct idem_client *client,
                                        const struct idem_client_record *known,
                                        struct idem_client_record *ret_record,
                                        struct idem_client_error *reterr) IDEM_MUST_CHECK;

/* What a journal gave can be sent; it may have been damaged. */
bool idem_request_is_whole(const struct idem_client_record *record);

/* Both within their limits. */
enum idem_client_err idem_request_times(int64_t deadline_ms,
                                        int64_t window_ms,
                                        struct idem_client_error *reterr) IDEM_MUST_CHECK;

/* 1 to `max` bytes of UTF-8 without control characters. */
bool idem_request_text(struct idem_str text, size_t max);

/* RFC 9110, 5.1 and 5.5: a token, a colon, and no control characters. */
bool idem_request_line(struct idem_str line);

#endif /* IDEM_CLIENT_REQUEST_H */
