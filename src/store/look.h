/*
 * look.h - what can be asked of a store, and what comes back.
 *
 * A read sees one snapshot of committed rows. It carries its own memory: at most so many rows and
 * so much text, and it says if there is more.
 */
#ifndef IDEM_STORE_LOOK_H
#define IDEM_STORE_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/text.h"
#include "core/credential.h"
#include "core/event.h"
#include "core/intent.h"
#include "core/payment.h"
#include "core/webhook.h"
#include "store/answer.h"

enum idem_read_kind {
    IDEM_READ_NONE = 0,
    IDEM_READ_PAYMENT,            /* By id. */
    IDEM_READ_PAYMENT_BY_ORDER,   /* By order_no: the one that holds it, else the newest. */
    IDEM_READ_REFUND,             /* By id. */
    IDEM_READ_OPERATION,          /* By id: intent, sends, events. */
    IDEM_READ_OPERATION_BY_SCOPE, /* Likewise. */
    IDEM_READ_DUE,                /* Open intents with due_us <= now_us, oldest first. */
    IDEM_READ_LEFT,               /* Open, with a lease of another incarnation, row > after_row. */
    /* From here on for operators and workers: not bound to a principal. */
    IDEM_READ_REAP,          /* Final, with 0 < reap_us <= now_us, oldest first, into `due`. */
    IDEM_READ_ANY_OPERATION, /* By id, whoever's: intent, sends, events, cases. */
    IDEM_READ_LIST,          /* A page of operations that `filter` asks for, into `entries`. */
    IDEM_READ_OF_PAYMENT,    /* Every operation of the payment `id`, likewise. */
    IDEM_READ_SUMMARY,       /* How many of what, into `summary`. */
    IDEM_READ_CREDENTIALS,   /* A page, row > after_row, into `credentials`. */
    IDEM_READ_PLACES,        /* Where payments are, into `places`. Walks over all of them. */
    IDEM_READ_INTENT,        /* By scope, whoever's: the intent. For those who wait for its end. */
    IDEM_READ_WAITED,        /* Which of the intents `waited` nobody need wait for any more. */
    IDEM_READ_CASE,          /* By the id of a case: as ANY_OPERATION, the intent that has it. */
    /*
     * A page of cases of case_kind (NONE: all), open ones or all, newest first, row < after_row (0:
     * the newest), into `entries`, whose `row` is the case's and `opened` the case.
     */
    IDEM_READ_CASES,
    /* A page, row > after_row, into `webhooks`: the one `id` or all, of `principal` or of all. */
    IDEM_READ_WEBHOOKS,
    /*
     * Deliveries with all that belongs to them, into `posts`. POSTS: PENDING and due at now_us, the
     * earliest first, and of one webhook and payment none behind an earlier message that is PENDING
     * with at most IDEM_POST_ORDERED_MAX attempts. DELIVERIES: a page, newest first,
     * row < after_row, of delivery_state (NONE: all), of the webhook `id` (zeros: all), of
     * `principal` (empty: all).
     */
    IDEM_READ_POSTS,
    IDEM_READ_DELIVERIES,
    /*
     * Intents with an effect at `entry` that were made from from_us on, up to but without to_us, in
     * order of row, row > after_row, into `effects`. Records are made in order of time but for
     * IDEM_EFFECTS_SKEW_US: where that begins is found by halving, not by a walk.
     */
    IDEM_READ_EFFECTS,
    IDEM_READ_COUNT
};

#define IDEM_READ_EVENTS_MAX 96
#define IDEM_READ_DUE_MAX    64
#define IDEM_READ_MEMORY_MAX 32768

#define IDEM_READ_CASES_MAX       16
#define IDEM_READ_ENTRIES_MAX     32
#define IDEM_READ_CREDENTIALS_MAX 16
#define IDEM_READ_PLACES_MAX      32
#define IDEM_READ_WAITED_MAX      1024 /* Asked for at once. */
#define IDEM_READ_WEBHOOKS_MAX    16
#define IDEM_READ_POSTS_MAX       16
#define IDEM_READ_EFFECTS_MAX     128

#define IDEM_READ_SKIP_MAX    32
#define IDEM_POST_ORDERED_MAX 5 /* Attempts for which later messages wait for an earlier one. */
#define IDEM_EFFECTS_SKEW_US  (INT64_C(600) * 1000 * 1000)

/* Which operations a list shows. */
enum idem_list_filter {
    IDEM_LIST_OPEN = 0, /* Everything that is not final. */
    IDEM_LIST_PROCESSING,
    IDEM_LIST_UNKNOWN,
    IDEM_LIST_PARKED,
    IDEM_LIST_RELEASED,
    IDEM_LIST_CASES, /* Whatever has an open case, final or not. */
    IDEM_LIST_COUNT
};

/* One line of a list: what an operator wants to know first. */
struct idem_entry {
    int64_t row; /* The cursor of the next page is the last one's. */
    struct idem_uid id;
    struct idem_str principal;
    enum idem_endpoint endpoint;
    enum idem_intent_state state;
    enum idem_step step; /* What happens next ... */
    int64_t due_us;      /* ... and when; 0: nothing. */
    int64_t lease_end_us;
    int64_t created_us;
    int64_t unknown_since_us;
    int64_t finished_us;
    uint32_t send_count;
    struct idem_str entry;
    int64_t amount_minor;
    struct idem_str currency;
    struct idem_uid payment_id;
    struct idem_case opened; /* Its newest open case; kind NONE: none. */
};

/* A delivery and what it is of. */
struct idem_post {
    struct idem_delivery delivery;
    struct idem_message message;
    struct idem_webhook webhook;
};

/* An effect as reconciliation compares it. */
struct idem_effect_line {
    int64_t row; /* The cursor of the next page is the last one's. */
    struct idem_uid id;
    enum idem_intent_state state;
    enum idem_effect_kind kind;
    struct idem_str effect_id;
    struct idem_str account;
    struct idem_str region;
    struct idem_str order_no; /* Of its payment; empty: there is none. */
    struct idem_str reference;
    int64_t amount_minor;
    struct idem_str currency;
    int64_t created_us;
    int64_t finished_us;
};

struct idem_summary {
    int64_t by_state[IDEM_INTENT_COUNT]; /* Of states that are not final. */
    int64_t oldest_unknown_us; /* Since when; 0: nothing is unknown. UNKNOWN and PARKED. */
    int64_t oldest_due_us;     /* The earliest due time; 0: none. */
    int64_t cases_open;
    int64_t deliveries_pending;
    int64_t deliveries_dead;
    int64_t oldest_delivery_us; /* When the oldest that is pending was made; 0: none is. */
    int64_t stubs;
    int64_t bytes;      /* What the store takes on disk, with its log. */
    int64_t bytes_free; /* Inside it, for use again. */
};

/* Of which provider, and where it knows the effects. */
struct idem_place {
    struct idem_str entry;
    struct idem_str account;
    struct idem_str region;
};

struct idem_due {
    struct idem_scope scope;
    int64_t row;
    int64_t due_us;
};

/* One look at committed data. What a caller may read is bound to `principal` (P13). */
struct idem_read {
    struct idem_list_node node;
    struct idem_list *done; /* The engine puts it there once answered. */
    enum idem_read_kind kind;
    struct idem_str principal; /* Borrowed until reaped, as all text here. */
    struct idem_uid id;
    struct idem_scope scope;
    struct idem_str order_no;
    int64_t now_us;
    int64_t after_row; /* LIST: 0 is the beginning. */
    enum idem_list_filter filter;
    enum idem_case_kind case_kind;
    bool open_only;
    enum idem_delivery_state delivery_state;
    /* POSTS: nothing of these webhooks, by row: as many are on their way there as may be. */
    int64_t skip[IDEM_READ_SKIP_MAX];
    size_t skip_count;
    struct idem_str entry;
    int64_t from_us;
    int64_t to_us;
    /*
     * EFFECTS, for the backend: read.c sets it before find_effects, with after_row. This row and
     * those behind it were made too late or are not there.
     */
    int64_t until_row;
    /*
     * WAITED: the submitter's, in order of `row`; those that are final, released or gone are moved
     * to the front, and counted. One question, however many they are.
     */
    struct idem_due *waited;
    size_t waited_count;

    enum idem_store_answer
        answer; /* DURABLE: the result is true. Otherwise it could not be read. */
    bool found;
    struct idem_intent intent;
    struct idem_send sends[IDEM_SENDS_MAX];
    size_t send_count;
    struct idem_event events[IDEM_READ_EVENTS_MAX]; /* Oldest first; the newest that fit. */
    size_t event_count;
    size_t event_total;
    struct idem_payment payment;
    struct idem_refund refund;
    struct idem_due due[IDEM_READ_DUE_MAX];
    size_t due_count;
    int64_t next_due_us; /* DUE, REAP: when the next one comes that is not due yet; 0: none. */
    struct idem_case cases[IDEM_READ_CASES_MAX]; /* Newest first. */
    size_t case_count;
    struct idem_entry entries[IDEM_READ_ENTRIES_MAX];
    size_t entry_count;
    bool more; /* Of pages: there is another. PLACES: there are others. */
    struct idem_summary summary;
    struct idem_credential_row credentials[IDEM_READ_CREDENTIALS_MAX];
    size_t credential_count;
    struct idem_place places[IDEM_READ_PLACES_MAX];
    size_t place_count;
    struct idem_webhook webhooks[IDEM_READ_WEBHOOKS_MAX];
    size_t webhook_count;
    struct idem_post posts[IDEM_READ_POSTS_MAX];
    size_t post_count;
    struct idem_effect_line effects[IDEM_READ_EFFECTS_MAX];
    size_t effect_count;
    struct idem_buf kept; /* Text of the rows above. */
    char memory[IDEM_READ_MEMORY_MAX];
};

#endif /* IDEM_STORE_LOOK_H */
