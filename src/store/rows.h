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

#include <stddef.h>
#include <stdint.h>

#include "core/decision.h"
#include "store/store.h"

enum idem_rows_step {
    IDEM_ROWS_OK = 0,
    IDEM_ROWS_MISS,       /* A guard did not hold or a constraint refused; roll back. */
    IDEM_ROWS_REFUSED,    /* Full, busy, read-only, unreadable; roll back. */
    IDEM_ROWS_WRONG_NODE, /* Somebody else opened this store after us; roll back. */
    IDEM_ROWS_LOST        /* Nobody knows what became of the transaction. */
};

/* What a row is looked for by. */
enum idem_find {
    IDEM_FIND_NONE = 0,
    IDEM_FIND_BY_ROW,   /* `row`; intents: `scope` must agree. */
    IDEM_FIND_BY_ID,    /* `id` and `principal` (P13). */
    IDEM_FIND_BY_SCOPE, /* Intents: `scope`. */
    /*
     * The one that holds `number`: payments among those of `principal`, refunds among those of the
     * payment `row`.
     */
    IDEM_FIND_HOLDER,
    IDEM_FIND_NEWEST_PAST, /* Payments that once held `number` and let go of it: the newest. */
    IDEM_FIND_COUNT
};

struct idem_rows_key {
    int64_t row;
    struct idem_uid id;
    struct idem_scope scope;
    struct idem_str principal;
    struct idem_str number;
};

struct idem_rows;

/* Nothing found is OK and leaves `row` zero. INSERT puts the new handle into `row`. */
struct idem_rows_ops {
    enum idem_rows_step (*begin)(struct idem_rows *rows);
    enum idem_rows_step (*commit)(struct idem_rows *rows); /* OK or LOST. */
    /* OK: nothing of it is there. Otherwise LOST. Also for a transaction that is over already. */
    enum idem_rows_step (*rollback)(struct idem_rows *rows);

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
};

struct idem_rows {
    const struct idem_rows_ops *ops;
    struct idem_buf *kept; /* Borrowed: where text of found rows goes. */
};

#endif /* IDEM_STORE_ROWS_H */
