/*
 * rows.h - rows by name: the small port between the logic that every store shares (run.c, read.c)
 * and what a backend must do itself.
 *
 * One `struct idem_rows` is one connection and belongs to one thread. Text of rows that are found
 * is copied into `kept`, which the caller sets and empties. What is found sees the transaction's
 * own writes.
 */
#ifndef IDEM_STORE_ROWS_H
#define IDEM_STORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/decision.h"
#include "store/store.h"

enum idem_rows_step {
    IDEM_ROWS_OK = 0,
    IDEM_ROWS_MISS,       /* A guard did not hold or a constraint refused; roll back. */
    IDEM_ROWS_REFUSED,    /* Full, busy, read-only, unreadable; roll back. */
    IDEM_ROWS_WRONG_NODE, /* This store is somebody else's to write; roll back. */
    IDEM_ROWS_DOWN,       /* It cannot be reached; roll back. */
    IDEM_ROWS_DAMAGED,    /* What lies there is not what was written; roll back, and no further. */
    IDEM_ROWS_LOST        /* Nobody knows what became of the transaction. */
};

/* The store's own values, by name. */
#define IDEM_META_REAP_HORIZON  "reap_horizon_us"  /* Always there. */
#define IDEM_META_CLOCK_SEEN    "clock_seen_us"    /* The latest time that the clock said. */
#define IDEM_META_RESTORED      "restored"         /* "1": the mode lasts. */
#define IDEM_META_RESTORED_FROM "restored_from_us" /* The newest time of the copy. */
#define IDEM_META_RESTORED_AT   "restored_at_us"   /* The clock when it was put back. */
#define IDEM_META_MEMORY_SINCE  "memory_since_us"  /* Before it something may be missing. */
#define IDEM_META_RESTORED_OVER "restored_over_"   /* And the time: "who: why". */
#define IDEM_META_OLD_EFFECTS   "old_effect_ids"   /* "1": made before ids named scopes. */
#define IDEM_META_SCHEMA_MIN    "schema_min"       /* Shared stores: the oldest that may work. */

#define IDEM_ROWS_SWEEP_MAX 256 /* Of a kind, in one sweep. */

/* What a row is looked for by. */
enum idem_find {
    IDEM_FIND_NONE = 0,
    IDEM_FIND_BY_ROW,    /* `row`; intents: `scope` must agree. */
    IDEM_FIND_BY_ID,     /* `id` and `principal` (P13). */
    IDEM_FIND_BY_ANY_ID, /* `id`, whoever's: for operators. */
    IDEM_FIND_BY_SCOPE,  /* Intents, stubs: `scope`. */
    IDEM_FIND_BY_SECRET, /* Credentials: `secret`. */
    IDEM_FIND_BY_CASE,   /* Intents: the one that has the case `id`. */
    /*
     * The one that holds `number`: payments among those of `principal`, refunds among those of the
     * payment `row`, stubs that made a payment among those of another scope than `scope`.
     */
    IDEM_FIND_HOLDER,
    IDEM_FIND_NEWEST_PAST, /* Payments that once held `number` and let go of it: the newest. */
    IDEM_FIND_COUNT
};

struct idem_rows_key {
    int64_t row;
    struct idem_uid id;
    struct idem_scope scope;
    struct idem_digest secret;
    struct idem_str principal;
    struct idem_str number;
};

struct idem_rows;

/* Nothing found is OK and leaves `row` zero. INSERT puts the new handle into `row`. */
struct idem_rows_ops {
    enum idem_rows_step (*begin)(struct idem_rows *rows);
    /*
     * NULL, or instead of begin for `count` items of a batch from `first` on: for a backend that
     * fetches their facts together, and whose time is another machine's: they are stamped after it.
     */
    enum idem_rows_step (*begin_batch)(struct idem_rows *rows,
                                       struct idem_list_node *first,
                                       size_t count);
    /* NULL, or called before commit: whether the guards hold of writes that were only queued. */
    enum idem_rows_step (*flush)(struct idem_rows *rows);
    enum idem_rows_step (*commit)(struct idem_rows *rows); /* OK or LOST. */
    /* OK: nothing of it is there. Otherwise LOST. Also for a transaction that is over already. */
    enum idem_rows_step (*rollback)(struct idem_rows *rows);

    /*
     * NULL, or after a rollback: what was read before it stands whatever becomes of the server. For
     * a backend that may show what not all of those have that must.
     */
    enum idem_rows_step (*prove)(struct idem_rows *rows);

    enum idem_rows_step (*find_intent)(struct idem_rows *rows,
                                       enum idem_find find,
                                       const struct idem_rows_key *key,
                                       struct idem_intent *ret_intent);
    enum idem_rows_step (*find_payment)(struct idem_rows *rows,
                                        enum idem_find find,
                                        const struct idem_rows_key *key,
                                        struct idem_payment *ret_payment);
    enum idem_rows_step (*find_refund)(struct idem_rows *rows,
                                       enum idem_find find,
                                       const struct idem_rows_key *key,
                                       struct idem_refund *ret_refund);
    /* All of them (at most IDEM_SENDS_MAX), in order of `no`. */
    enum idem_rows_step (*find_sends)(struct idem_rows *rows,
                                      int64_t intent_row,
                                      struct idem_send *ret_sends,
                                      size_t *ret_count);
    /* Into `read`: the newest that fit into events and `kept`, oldest first; and how many. */
    enum idem_rows_step (*find_events)(struct idem_rows *rows,
                                       int64_t intent_row,
                                       struct idem_read *read);
    enum idem_rows_step (*find_due)(struct idem_rows *rows, struct idem_read *read);
    enum idem_rows_step (*find_left)(struct idem_rows *rows,
                                     int64_t incarnation,
                                     struct idem_read *read);
    /* Bit 1 << kind for every kind of which the intent has an open, or a decided case. */
    enum idem_rows_step (*find_case_kinds)(struct idem_rows *rows,
                                           int64_t intent_row,
                                           uint32_t *ret_open,
                                           uint32_t *ret_decided);
    enum idem_rows_step (*find_reap)(struct idem_rows *rows, struct idem_read *read);
    /* Into `read`: the newest that fit. */
    enum idem_rows_step (*find_cases)(struct idem_rows *rows,
                                      int64_t intent_row,
                                      struct idem_read *read);
    /*
     * Into `read`: entries behind after_row, as many as fit, and whether there are more. Of the
     * payment `payment_row`, or if that is 0 of what the filter asks for.
     */
    enum idem_rows_step (*find_entries)(struct idem_rows *rows,
                                        int64_t payment_row,
                                        struct idem_read *read);
    enum idem_rows_step (*find_credentials)(struct idem_rows *rows, struct idem_read *read);
    /* Into `read`: where payments are, each place once. */
    enum idem_rows_step (*find_places)(struct idem_rows *rows, struct idem_read *read);
    enum idem_rows_step (*find_summary)(struct idem_rows *rows, struct idem_summary *ret_summary);
    /* NULL, or WAITED in one question: for a backend that several processes share. */
    enum idem_rows_step (*find_waited)(struct idem_rows *rows, struct idem_read *read);

    enum idem_rows_step (*find_stub)(struct idem_rows *rows,
                                     enum idem_find find,
                                     const struct idem_rows_key *key,
                                     struct idem_stub *ret_stub);
    /* Into `facts`: those that act on the payment, oldest first. */
    enum idem_rows_step (*find_payment_stubs)(struct idem_rows *rows,
                                              struct idem_str payment_effect_id,
                                              struct idem_facts *facts);
    enum idem_rows_step (*find_credential)(struct idem_rows *rows,
                                           enum idem_find find,
                                           const struct idem_rows_key *key,
                                           struct idem_credential_row *ret_credential);
    /* The event of the entry is in the inbox. */
    enum idem_rows_step (*find_event)(struct idem_rows *rows,
                                      struct idem_str entry,
                                      struct idem_str event_id,
                                      bool *ret_seen);
    /* The principal has a webhook that is not disabled. */
    enum idem_rows_step (*find_listened)(struct idem_rows *rows,
                                         struct idem_str principal,
                                         bool *ret_listened);
    enum idem_rows_step (*find_webhook)(struct idem_rows *rows,
                                        enum idem_find find,
                                        const struct idem_rows_key *key,
                                        struct idem_webhook *ret_webhook);
    /* How many the principal has, disabled ones too. */
    enum idem_rows_step (*count_webhooks)(struct idem_rows *rows,
                                          struct idem_str principal,
                                          size_t *ret_count);
    enum idem_rows_step (*find_delivery)(struct idem_rows *rows,
                                         struct idem_uid message_id,
                                         struct idem_uid webhook_id,
                                         struct idem_delivery *ret_delivery);
    /* Into `read`, likewise pages: behind after_row, as many as fit, and whether there are more. */
    enum idem_rows_step (*find_webhooks)(struct idem_rows *rows, struct idem_read *read);
    enum idem_rows_step (*find_posts)(struct idem_rows *rows, struct idem_read *read);
    enum idem_rows_step (*find_effects)(struct idem_rows *rows, struct idem_read *read);
    enum idem_rows_step (*find_case_list)(struct idem_rows *rows, struct idem_read *read);
    /* When the first intent with this handle or a later one was made; row 0: there is none. */
    enum idem_rows_step (*find_created)(struct idem_rows *rows,
                                        int64_t from_row,
                                        int64_t *ret_row,
                                        int64_t *ret_created_us);
    /* A value of the store's own; empty if it is not there. */
    enum idem_rows_step (*find_meta)(struct idem_rows *rows,
                                     const char *name,
                                     struct idem_str *ret_value);

    /* DELETE: sends, events and cases go with it. */
    enum idem_rows_step (*write_intent)(struct idem_rows *rows, struct idem_intent_write *write);
    enum idem_rows_step (*write_payment)(struct idem_rows *rows, struct idem_payment_write *write);
    enum idem_rows_step (*write_refund)(struct idem_rows *rows, struct idem_refund_write *write);
    enum idem_rows_step (*write_send)(struct idem_rows *rows,
                                      int64_t intent_row,
                                      const struct idem_send_write *write);
    enum idem_rows_step (*add_event)(struct idem_rows *rows,
                                     int64_t intent_row,
                                     const struct idem_event *event);
    /* A case that is there already (same id) stays as it is: its command ran before. */
    enum idem_rows_step (*add_case)(struct idem_rows *rows,
                                    int64_t intent_row,
                                    const struct idem_case *opened);
    /* Every open case of the intent. */
    enum idem_rows_step (*decide_cases)(struct idem_rows *rows,
                                        int64_t intent_row,
                                        const struct idem_case *decided);
    /* Sends, and events that no person caused. */
    enum idem_rows_step (*forget_history)(struct idem_rows *rows, int64_t intent_row);
    enum idem_rows_step (*write_stub)(struct idem_rows *rows, struct idem_stub_write *write);
    /* All that act on the payment. */
    enum idem_rows_step (*apply_stubs)(struct idem_rows *rows, struct idem_str payment_effect_id);
    enum idem_rows_step (*write_credential)(struct idem_rows *rows,
                                            struct idem_credential_write *write);
    /* INSERT of what is there is a miss. UPDATE: counts one more, and when; what is known stays. */
    enum idem_rows_step (*write_inbox)(struct idem_rows *rows,
                                       const struct idem_inbox_write *write);
    /*
     * The message, and a delivery PENDING at once for each webhook of its principal that is not
     * disabled and wants its type; or for `webhook_row` alone. Nothing if there is none. A message
     * that is there already (same id) stays as it is: its command ran before.
     */
    enum idem_rows_step (*add_message)(struct idem_rows *rows,
                                       int64_t webhook_row,
                                       const struct idem_message *message);
    enum idem_rows_step (*write_webhook)(struct idem_rows *rows, struct idem_webhook_write *write);
    enum idem_rows_step (*write_delivery)(struct idem_rows *rows,
                                          struct idem_delivery_write *write);
    /* The webhook is disabled: of what is PENDING for it so much becomes DEAD as a batch can. */
    enum idem_rows_step (*drop_deliveries)(struct idem_rows *rows,
                                           int64_t webhook_row,
                                           int64_t now_us);
    /*
     * Removes at most IDEM_ROWS_SWEEP_MAX of each: events of the inbox that came last before
     * `before_us`, and messages made before it with their deliveries if none is PENDING. What is
     * PENDING at a disabled webhook is not due, and is dropped as above. `*ret_more`: maybe more.
     */
    enum idem_rows_step (*sweep)(struct idem_rows *rows, int64_t before_us, bool *ret_more);
    enum idem_rows_step (*write_meta)(struct idem_rows *rows,
                                      const char *name,
                                      struct idem_str value);
};

struct idem_rows {
    const struct idem_rows_ops *ops;
    struct idem_buf *kept; /* Borrowed: where text of found rows goes. */
    bool moved; /* The last miss met what others wrote meanwhile: all of it may work at once. */
};

#endif /* IDEM_STORE_ROWS_H */
