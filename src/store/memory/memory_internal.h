/*
 * memory_internal.h - the memory store and its rows, for this folder and its tests.
 */
#ifndef IDEM_STORE_MEMORY_MEMORY_INTERNAL_H
#define IDEM_STORE_MEMORY_MEMORY_INTERNAL_H

#include "base/attr.h"
#include "store/columns.h"
#include "store/memory/table.h"
#include "store/rows.h"
#include "store/run.h"

struct idem_memory_intent {
    struct idem_memory_head head;
    struct idem_intent intent;
    int64_t last_send;
    int64_t last_event;
};

struct idem_memory_payment {
    struct idem_memory_head head;
    struct idem_payment payment;
};

struct idem_memory_refund {
    struct idem_memory_head head;
    struct idem_refund refund;
};

struct idem_memory_send {
    struct idem_memory_head head;
    int64_t before;
    struct idem_send send;
};

struct idem_memory_event {
    struct idem_memory_head head;
    int64_t before;
    struct idem_event event;
};

struct idem_memory_case {
    struct idem_memory_head head;
    int64_t intent_row;
    struct idem_case opened;
};

struct idem_memory_stub {
    struct idem_memory_head head;
    struct idem_stub stub;
};

struct idem_memory_credential {
    struct idem_memory_head head;
    struct idem_credential_row credential;
};

struct idem_memory_event_in {
    struct idem_memory_head head; /* Its text: the entry, and behind it the event's id. */
    struct idem_str entry;
    struct idem_str event_id;
    int64_t last_us;
};

struct idem_memory_webhook {
    struct idem_memory_head head;
    struct idem_webhook webhook;
};

struct idem_memory_message {
    struct idem_memory_head head;
    struct idem_message message;
};

struct idem_memory_delivery {
    struct idem_memory_head head;
    struct idem_delivery delivery;
};

struct idem_memory_meta {
    struct idem_memory_head head;
    char name[64];
    struct idem_str value;
};

struct idem_memory_rows {
    struct idem_rows rows; /* First: the port's calls come back with its address. */
    struct idem_memory_table intents;
    struct idem_memory_table payments;
    struct idem_memory_table refunds;
    struct idem_memory_table sends;
    struct idem_memory_table events;
    struct idem_memory_table cases;
    struct idem_memory_table stubs;
    struct idem_memory_table credentials;
    struct idem_memory_table inbox;
    struct idem_memory_table webhooks;
    struct idem_memory_table messages;
    struct idem_memory_table deliveries;
    struct idem_memory_table meta;
    struct idem_memory_index index; /* Of everything that is looked up but handles. */
    struct idem_memory_log log;
    bool begun;
};

void idem_memory_rows_init(struct idem_memory_rows *memory);
void idem_memory_rows_deinit(struct idem_memory_rows *memory);

static inline struct idem_memory_rows *idem_memory_of(struct idem_rows *rows)
{
    return IDEM_CONTAINER_OF(rows, struct idem_memory_rows, rows);
}

struct idem_memory {
    struct idem_store base; /* First. */
    struct idem_memory_rows rows;
    struct idem_run run;
    struct idem_list done_batches;
    struct idem_list done_reads;
};

/* The intent at `handle`, or NULL. */
struct idem_memory_intent *idem_memory_intent_at(const struct idem_memory_rows *memory,
                                                 int64_t handle);

/* Moves the text of `row` into a block of its own, which is given. */
char *idem_memory_text(const struct idem_table *table, void *row);

/* look.c; the contract of each is in rows.h. */
enum idem_rows_step idem_memory_find_events(struct idem_rows *rows,
                                            int64_t intent_row,
                                            struct idem_read *read);
enum idem_rows_step idem_memory_find_cases(struct idem_rows *rows,
                                           int64_t intent_row,
                                           struct idem_read *read);
enum idem_rows_step idem_memory_find_due(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_memory_find_left(struct idem_rows *rows,
                                          int64_t incarnation,
                                          struct idem_read *read);
enum idem_rows_step idem_memory_find_reap(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_memory_find_entries(struct idem_rows *rows,
                                             int64_t payment_row,
                                             struct idem_read *read);
enum idem_rows_step idem_memory_find_credentials(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_memory_find_places(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_memory_find_summary(struct idem_rows *rows,
                                             struct idem_summary *ret_summary);
enum idem_rows_step idem_memory_find_case_kinds(struct idem_rows *rows,
                                                int64_t intent_row,
                                                uint32_t *ret_open,
                                                uint32_t *ret_decided);
enum idem_rows_step idem_memory_find_case_list(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_memory_find_effects(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_memory_find_created(struct idem_rows *rows,
                                             int64_t from_row,
                                             int64_t *ret_row,
                                             int64_t *ret_created_us);

/* outbox.c */
enum idem_rows_step idem_memory_find_event(struct idem_rows *rows,
                                           struct idem_str entry,
                                           struct idem_str event_id,
                                           bool *ret_seen);
enum idem_rows_step idem_memory_find_listened(struct idem_rows *rows,
                                              struct idem_str principal,
                                              bool *ret_listened);
enum idem_rows_step idem_memory_find_webhook(struct idem_rows *rows,
                                             enum idem_find find,
                                             const struct idem_rows_key *key,
                                             struct idem_webhook *ret_webhook);
enum idem_rows_step idem_memory_count_webhooks(struct idem_rows *rows,
                                               struct idem_str principal,
                                               size_t *ret_count);
enum idem_rows_step idem_memory_find_delivery(struct idem_rows *rows,
                                              struct idem_uid message_id,
                                              struct idem_uid webhook_id,
                                              struct idem_delivery *ret_delivery);
enum idem_rows_step idem_memory_find_webhooks(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_memory_find_posts(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_memory_write_inbox(struct idem_rows *rows,
                                            const struct idem_inbox_write *write);
enum idem_rows_step idem_memory_add_message(struct idem_rows *rows,
                                            int64_t webhook_row,
                                            const struct idem_message *message);
enum idem_rows_step idem_memory_write_webhook(struct idem_rows *rows,
                                              struct idem_webhook_write *write);
enum idem_rows_step idem_memory_write_delivery(struct idem_rows *rows,
                                               struct idem_delivery_write *write);
enum idem_rows_step idem_memory_drop_deliveries(struct idem_rows *rows,
                                                int64_t webhook_row,
                                                int64_t now_us);
enum idem_rows_step idem_memory_sweep(struct idem_rows *rows, int64_t before_us, bool *ret_more);

/* own.c */
enum idem_rows_step idem_memory_find_stub(struct idem_rows *rows,
                                          enum idem_find find,
                                          const struct idem_rows_key *key,
                                          struct idem_stub *ret_stub);
enum idem_rows_step idem_memory_find_payment_stubs(struct idem_rows *rows,
                                                   struct idem_str payment_effect_id,
                                                   struct idem_facts *facts);
enum idem_rows_step idem_memory_find_credential(struct idem_rows *rows,
                                                enum idem_find find,
                                                const struct idem_rows_key *key,
                                                struct idem_credential_row *ret_credential);
enum idem_rows_step idem_memory_find_meta(struct idem_rows *rows,
                                          const char *name,
                                          struct idem_str *ret_value);
enum idem_rows_step idem_memory_write_stub(struct idem_rows *rows, struct idem_stub_write *write);
enum idem_rows_step idem_memory_apply_stubs(struct idem_rows *rows,
                                            struct idem_str payment_effect_id);
enum idem_rows_step idem_memory_write_credential(struct idem_rows *rows,
                                                 struct idem_credential_write *write);
enum idem_rows_step idem_memory_write_meta(struct idem_rows *rows,
                                           const char *name,
                                           struct idem_str value);

/* What an opening does about time: marks in a transaction of their own, and the clock raised. */
struct idem_run_marks idem_memory_marks_open(struct idem_memory_rows *memory,
                                             int64_t newest_us,
                                             struct idem_clock *clock);

#endif /* IDEM_STORE_MEMORY_MEMORY_INTERNAL_H */
