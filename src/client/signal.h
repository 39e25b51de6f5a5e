/*
 * signal.h - what one exchange says about an intent, read from its bytes and not yet judged.
 *
 * Pure. Whatever cannot be read is absent; nothing is guessed.
 */
#ifndef IDEM_CLIENT_SIGNAL_H
#define IDEM_CLIENT_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "client/dialect.h"
#include "transport/client.h"

#define IDEM_SIGNAL_CODE_MAX 64

/* A member or header that is there or not. */
enum idem_said {
    IDEM_SAID_NOTHING = 0,
    IDEM_SAID_YES,
    IDEM_SAID_NO
};

/* `effect` of our problems: did anything happen under this key? */
enum idem_said_effect {
    IDEM_SAID_EFFECT_ABSENT = 0,
    IDEM_SAID_EFFECT_NONE,
    IDEM_SAID_EFFECT_UNKNOWN,
    IDEM_SAID_EFFECT_DONE
};

/* `retry` of our problems. */
enum idem_said_retry {
    IDEM_SAID_RETRY_ABSENT = 0,
    IDEM_SAID_RETRY_NEVER,
    IDEM_SAID_RETRY_SAME_KEY,
    IDEM_SAID_RETRY_NEW_KEY,
    IDEM_SAID_RETRY_QUERY
};

struct idem_signal {
    enum idem_http_verdict verdict;
    bool hopeless;   /* NOT_SENT, and it would not be sent the next time either. */
    bool too_long;   /* UNKNOWN: the answer is longer than there was room for. */
    uint16_t status; /* 0 unless ANSWERED. */
    /* Of an error, in its dialect's shape; of a problem of ours ("urn:idem:problem:") in any. */
    char code[IDEM_SIGNAL_CODE_MAX];
    enum idem_said_effect effect; /* Both only from a problem of ours. */
    enum idem_said_retry retry;
    enum idem_said should_retry; /* The dialect's header. */
    enum idem_said replayed;     /* The dialect's marker. */
    enum idem_said echoed;       /* NO: the key in the answer is another one. */
    bool page;                   /* A 2xx with a body that this API does not send. */
    bool broken;                 /* Its body is to be JSON, and was cut or harmed or, of an error
                                  * whose code may matter, cannot be read. */
    int64_t retry_after_us;      /* 0: not said. */
    int64_t expires_in_us;       /* From now until the key is forgotten; 1: it is; 0: not said. */
    struct idem_str location;    /* As it came; lives as long as the call's head. */
};

/*
 * Reads a call that was reaped and has a head_room. `now_us` is wall time, used only where the
 * answer has no Date to count expiry from. `now_us` and dates: microseconds since 1970.
 */
void idem_signal_read(const struct idem_dialect *dialect,
                      struct idem_str key,
                      const struct idem_http_call *call,
                      int64_t now_us,
                      struct idem_signal *ret_signal);

/* Reads code, effect and retry out of the body of an error; `signal` has its status. */
void idem_signal_read_error(const struct idem_dialect *dialect,
                            struct idem_str body,
                            struct idem_signal *signal);

/* The value of the first line `name` (no case) of "Name: value\n" lines; data NULL: none. */
struct idem_str idem_head_find(struct idem_str head, const char *name);

#endif /* IDEM_CLIENT_SIGNAL_H */
