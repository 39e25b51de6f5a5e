/*
 * client.h - calls an API that has idempotency keys, and repeats what is unknown, safely.
 *
 * An *intent* is one business action that must happen at most once: this payment, that refund. It
 * has a name that the caller chose and can make again (its order number, say), a key, and the exact
 * bytes of the request. All of it is in the client's journal, a small SQLite file, before the first
 * byte leaves; so after a crash of the caller the same name goes on with the same key and the same
 * bytes, and a second run of the caller's code does not become a second payment.
 *
 * A run of an intent ends in exactly one of three verdicts, never in a bare error:
 *
 *     DONE      it happened; the server's answer is here.
 *     REFUSED   nothing happened, and nothing that was sent can still make it happen.
 *     UNKNOWN   it may have happened, or may still: run the same intent again, or ask.
 *
 * A timeout, a reset or a 5xx is UNKNOWN until the server says otherwise, however often it was
 * tried. Only after REFUSED can an intent get a new key (idem_client_renew); everything else needs
 * an intent of its own, under a name of its own. How each answer is read: docs/client-rules.md.
 *
 * Two ways to use it. Waiting: idem_client_run(). Many at once on one thread, in the caller's own
 * event loop: idem_client_submit(), then idem_client_perform() whenever idem_client_fd() is
 * readable or idem_client_timeout_ms() has passed, and idem_client_reap() for what has ended.
 *
 * Ownership: what is passed in is borrowed for the call and copied where it is kept. Handles and
 * what they show belong to the client. A handle is valid until it is released or the client closed;
 * what a verdict points to, and a key, until the intent is submitted, renewed or released.
 * Threads: a client and its intents belong to one thread at a time, and to the process that opened
 * it: after a fork the child opens its own (calls on the parent's fail). SIGPIPE is blocked while
 * the library writes. Handing in another client's intent, or releasing one that runs, is a bug and
 * stops the process. Several clients, also of other
 * processes, may share one journal; an intent is run by one of them at a time.
 * Structs that the caller fills in begin with their size, so that later versions can add members;
 * zero is always the default: `{ .size = sizeof(struct idem_client_options) }`.
 */
#ifndef IDEM_CLIENT_H
#define IDEM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "idem/client_verdict.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IDEM_API __attribute__((visibility("default")))

struct idem_client;
struct idem_client_intent;

struct idem_client_options {
    size_t size;
    const char *journal;     /* Its path; made if it is not there, for this user alone. */
    const char *ca_file;     /* Certificates to trust; NULL: the system's. */
    const char *proxy;       /* "http://host:port"; NULL: none, whatever the environment says. */
    bool http1_only;         /* No HTTP/2, which is otherwise taken where TLS offers it. */
    bool insecure;           /* A credential may go in clear to another machine. */
    uint32_t calls_max;      /* Requests at once; default 64, at most 1024. */
    uint32_t answer_max;     /* Bytes of a body; default 1 MiB. A longer one is UNKNOWN. */
    uint32_t try_timeout_ms; /* One request, from connecting to its last byte; default 30 s. */
    uint32_t connect_timeout_ms; /* Part of it; default 5 s. */
    uint32_t backoff_first_ms;   /* The pause is random between 0 and this; default 500, ... */
    uint32_t backoff_max_ms;     /* ... doubled at every try up to this; default 60 s. */
    uint32_t retry_percent;      /* Repeats may add this much to the first tries; default 10. */
    uint32_t retry_reserve;      /* Repeats that are always allowed at first; default 10. */
    bool no_repeats; /* One send a run: for callers who have a loop of their own around it. */
};

/* Opens the journal, and makes ready to send; nothing is sent. */
IDEM_API enum idem_client_err idem_client_open(const struct idem_client_options *options,
                                               struct idem_client **ret_client,
                                               struct idem_client_error *reterr);

/*
 * Ends what runs, as idem_client_stop() does, and releases all intents. Accepts NULL. What has not
 * ended is in the journal and goes on by idem_client_resume().
 */
IDEM_API void idem_client_close(struct idem_client *client);

/* One action, as the server is to get it. */
struct idem_client_request {
    size_t size;
    const char *name;           /* The caller's name for the intent, unique in the journal. */
    const char *method;         /* "POST", "PUT", "PATCH" or "DELETE". */
    const char *url;            /* http or https, without credentials in it. */
    const char *const *headers; /* "Name: value", as many as `header_count`. No credential. */
    size_t header_count;
    const void *body;
    size_t body_size;
    const char *dialect; /* "idem" (NULL), "ietf", "stripe", "adyen" or "paypal". */
    const char *key;     /* NULL: a random UUID. Whoever brings a key may have used it before. */
    /*
     * A header line that says who asks: "Authorization: Bearer ...". Sent, never written down. It
     * can be another one tomorrow, of the same account: idem_client_same_account().
     */
    const char *credential;
    const char
        *status_url;     /* Where a person or the client can look for the result by business id. */
    int64_t deadline_ms; /* Of one run; 0: 60 s. */
    int64_t
        window_ms; /* For how long after the first send the server knows the key; 0: dialect's. */
};

/*
 * The intent of that name: a new one, or the one that the journal has if its request is the same
 * (method, URL, headers, body, dialect, and key if one is given; deadline, window and status
 * address are the new ones). Nothing is written or sent yet.
 */
IDEM_API enum idem_client_err idem_client_intend(struct idem_client *client,
                                                 const struct idem_client_request *request,
                                                 struct idem_client_intent **ret_intent,
                                                 struct idem_client_error *reterr);

/* The intent of that name out of the journal. `credential` as above, or NULL. */
IDEM_API enum idem_client_err idem_client_resume(struct idem_client *client,
                                                 const char *name,
                                                 const char *credential,
                                                 struct idem_client_intent **ret_intent,
                                                 struct idem_client_error *reterr);

/*
 * A new key for an intent whose last verdict was REFUSED, with the same request or, if `request` is
 * not NULL, with a corrected one of the same name. The old key and what became of it stay in the
 * journal. IDEM_CLIENT_E_REFUSED for any other verdict: the first one may still happen.
 */
IDEM_API enum idem_client_err idem_client_renew(struct idem_client_intent *intent,
                                                const struct idem_client_request *request,
                                                struct idem_client_error *reterr);

/* For its next runs, in milliseconds; 0: as it is. For intents out of the journal, mostly. */
IDEM_API enum idem_client_err idem_client_set_times(struct idem_client_intent *intent,
                                                    int64_t deadline_ms,
                                                    int64_t window_ms,
                                                    struct idem_client_error *reterr);

/*
 * The credential given now is of the same account as the one with which the intent was sent before.
 * Without this word a run under another credential is refused while its outcome is not known: keys
 * count within an account, and another one would carry the request out again.
 */
IDEM_API void idem_client_same_account(struct idem_client_intent *intent);

/* Gives the handle back; the journal keeps the intent. Not while it runs. Accepts NULL. */
IDEM_API void idem_client_release(struct idem_client_intent *intent);

/*
 * Writes all of them down in one transaction, flushed to the disk, and begins their runs. On an
 * error not one byte of any of them was or will be sent. An intent that is DONE, or REFUSED by its
 * server for good, ends at once with what the journal has. IDEM_CLIENT_E_UNKNOWN: one is forgotten.
 */
IDEM_API enum idem_client_err idem_client_submit(struct idem_client *client,
                                                 struct idem_client_intent *const *intents,
                                                 size_t count,
                                                 struct idem_client_error *reterr);

/*
 * Does what is due, and waits for more at most `wait_ms` (0: not at all; -1: until a run ends).
 * What has ended is flushed to the journal's disk here; while another process writes the journal
 * that may take as long as that does, at most 5 s.
 */
IDEM_API void idem_client_perform(struct idem_client *client, int wait_ms);

/* A descriptor that is readable when idem_client_perform() has something to do. */
IDEM_API int idem_client_fd(const struct idem_client *client);

/* Milliseconds until it has something to do by time alone; -1: never. Ask after each perform. */
IDEM_API int idem_client_timeout_ms(struct idem_client *client);

/* The next intent whose run has ended, each once; NULL: none at the moment. */
IDEM_API struct idem_client_intent *idem_client_reap(struct idem_client *client);

/*
 * Ends a run now. Its verdict is what is known at this moment: UNKNOWN if anything may have been
 * done. It is reaped as any other. Nothing if it does not run.
 */
IDEM_API void idem_client_stop(struct idem_client_intent *intent);

/* Submits one intent and waits until its run has ended, at most for its deadline. */
IDEM_API enum idem_client_err idem_client_run(struct idem_client_intent *intent,
                                              struct idem_client_error *reterr);

/* What the last run has shown; of a resumed intent what the journal has. Never NULL. */
IDEM_API const struct idem_client_verdict *idem_client_verdict(
    const struct idem_client_intent *intent);

/* Terminated; as long as the handle. */
IDEM_API const char *idem_client_name(const struct idem_client_intent *intent);
IDEM_API const char *idem_client_key(const struct idem_client_intent *intent);

/* How it stands, for progress. */
IDEM_API void idem_client_progress(const struct idem_client_intent *intent,
                                   struct idem_client_progress *ret_progress);

/*
 * The next entry behind `position` (0 begins), in the order of their making; `pending` leaves out
 * what is over. IDEM_CLIENT_E_UNKNOWN: there is none.
 */
IDEM_API enum idem_client_err idem_client_next(struct idem_client *client,
                                               int64_t position,
                                               bool pending,
                                               struct idem_client_entry *ret_entry,
                                               struct idem_client_error *reterr);

/*
 * Forgets an intent that is over, or of which nothing happened, so that its name is free. Whoever
 * uses the name again begins a new action: forget only what can never be repeated.
 * IDEM_CLIENT_E_REFUSED if it may have happened.
 */
IDEM_API enum idem_client_err idem_client_forget(struct idem_client *client,
                                                 const char *name,
                                                 struct idem_client_error *reterr);

/*
 * Forgets, as above, every intent that is over and ended `age_ms` ago or earlier: at least a day,
 * else IDEM_CLIENT_E_INVALID. What is not over stays, however old it is. Ages count up to the
 * latest time that the journal itself has, or up to now if that is earlier: so a calendar that is
 * wrong at this moment forgets nothing too early, as long as nothing was run under it. After a run
 * under a calendar that is far ahead everything before it looks old while the calendar stays so,
 * and what was run under one that was behind, in a journal that had nothing later, stays as old as
 * that one said. Done in parts, so that others can write in between; on an error some may be
 * forgotten. `ret_count`: how many were, also then.
 */
IDEM_API enum idem_client_err idem_client_forget_older(struct idem_client *client,
                                                       int64_t age_ms,
                                                       int64_t *ret_count,
                                                       struct idem_client_error *reterr);

/*
 * A person has found out what became of an intent that its server cannot tell any more: it happened
 * (DONE), or it did not and cannot any more (REFUSED, with which a new key is allowed). It is over
 * then; `note` says who found it where, 1 to 400 bytes of UTF-8, and is kept. Only for an intent
 * that was run and is not over: IDEM_CLIENT_E_REFUSED otherwise.
 */
IDEM_API enum idem_client_err idem_client_decide(struct idem_client *client,
                                                 const char *name,
                                                 bool happened,
                                                 const char *note,
                                                 struct idem_client_error *reterr);

/* "done", "refused", "unknown", "none"; "answered", "not-sent", ... Never NULL. */
IDEM_API const char *idem_client_outcome_name(enum idem_client_outcome outcome);
IDEM_API const char *idem_client_reason_name(enum idem_client_reason reason);

#ifdef __cplusplus
}
#endif

#endif /* IDEM_CLIENT_H */
