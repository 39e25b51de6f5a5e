/*
 * http_post.h - the port that posts to merchants over HTTP.
 *
 * It signs, posts once, and reports the status; of the answer nothing else is read. Redirects are
 * not followed: a 3xx is a failure. It has an HTTP client of its own, which connects only to
 * addresses that are public (address.h) unless it is told otherwise.
 */
#ifndef IDEM_OUTBOX_HTTP_POST_H
#define IDEM_OUTBOX_HTTP_POST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/digest.h"
#include "outbox/post.h"

struct uv_loop_s;

struct idem_http_post_options {
    struct uv_loop_s *loop; /* All borrowed as long as the port. */
    struct idem_clock *clock;
    struct idem_digester *digester;
    struct idem_str effect_secret;
    size_t calls_max;    /* At once. */
    const char *ca_file; /* NULL: the system's. */
    bool allow_private;  /* Also to addresses that are not public. */
    bool allow_http;     /* Also without TLS. */
};

/* After its end the loop must run once more, so that handles close. */
enum idem_err idem_http_post_create(const struct idem_http_post_options *options,
                                    struct idem_post_port **ret_port,
                                    struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_OUTBOX_HTTP_POST_H */
