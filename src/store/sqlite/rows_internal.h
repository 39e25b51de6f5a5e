/*
 * rows_internal.h - the rows port on one connection, in pieces.
 *
 *   statements.c  the SQL of every statement, made from the column tables
 *   value.c       values in and out of statements, and what a step's code means
 *   find.c        rows that a decision rests on
 *   look.c        rows that a reader asks for: due, lists, counts
 *   write.c       guarded writes
 *   outbox.c      provider events, webhooks, messages and deliveries
 *
 * No function leaves a statement open: rows are copied out and the statement is reset, so a
 * transaction never hangs on a forgotten cursor.
 */
#ifndef IDEM_STORE_SQLITE_ROWS_INTERNAL_H
#define IDEM_STORE_SQLITE_ROWS_INTERNAL_H

#include "base/attr.h"
#include "base/bug.h"
#include "store/columns.h"
#include "store/sqlite/sqlite_internal.h"

static inline struct idem_sqlite_connection *idem_sqlite_connection_of(struct idem_rows *rows)
{
    return IDEM_CONTAINER_OF(rows, struct idem_sqlite_connection, rows);
}

static inline sqlite3_stmt *idem_sqlite_statement_of(struct idem_rows *rows,
                                                     enum idem_sqlite_statement index)
{
    return idem_sqlite_connection_of(rows)->statements[index];
}

/* statements.c */
enum idem_err idem_sqlite_prepare(struct idem_sqlite_connection *connection,
                                  enum idem_sqlite_statement index,
                                  struct idem_error *reterr) IDEM_MUST_CHECK;

/* value.c: parameters count from 1, columns from 0. */
void idem_sqlite_bind_text(sqlite3_stmt *statement, int index, struct idem_str text);
void idem_sqlite_bind_bytes(sqlite3_stmt *statement, int index, const void *bytes, int size);
void idem_sqlite_bind_i64(sqlite3_stmt *statement, int index, int64_t value);
/* All columns, or without the fixed ones. Returns the next free parameter. */
int idem_sqlite_bind_row(sqlite3_stmt *statement,
                         int index,
                         const struct idem_table *table,
                         const void *row,
                         bool fixed_too);

/* These are false if the value is not one that we wrote. */
bool idem_sqlite_read_bytes(sqlite3_stmt *statement, int index, void *ret_bytes, int size);
bool idem_sqlite_read_text(sqlite3_stmt *statement, int index, struct idem_str *ret_text);
bool idem_sqlite_read_row(sqlite3_stmt *statement,
                          int index,
                          const struct idem_table *table,
                          void *ret_row,
                          struct idem_buf *kept);

/* Bytes of all text of the row at hand, whose columns begin at `index`. */
size_t idem_sqlite_row_size(sqlite3_stmt *statement, int index, const struct idem_table *table);

/* That text has room in `buf`. */
bool idem_sqlite_row_fits(sqlite3_stmt *statement,
                          int index,
                          const struct idem_table *table,
                          const struct idem_buf *buf);

/* Of a checkpoint, or whatever else is tried again: full, or somebody is in the way. */
bool idem_sqlite_code_is_harmless(int rc);

/* Steps a statement that returns no rows. */
enum idem_rows_step idem_sqlite_run(sqlite3_stmt *statement);
/* How a walk over rows ended, by the last step's code; resets the statement. */
enum idem_rows_step idem_sqlite_walk_end(sqlite3_stmt *statement, int rc, bool ours);
/* One row with its handle, or nothing. */
enum idem_rows_step idem_sqlite_find_row(struct idem_rows *rows,
                                         sqlite3_stmt *statement,
                                         const struct idem_table *table,
                                         void *ret_row);
/* The first column of the first row; no row is 0. */
enum idem_rows_step idem_sqlite_find_i64(sqlite3_stmt *statement, int64_t *ret_value);
/* A write that must change exactly one row. */
enum idem_rows_step idem_sqlite_guarded_run(struct idem_sqlite_connection *connection,
                                            sqlite3_stmt *statement);
/* Puts the new handle into the row's first member. */
enum idem_rows_step idem_sqlite_row_insert(struct idem_sqlite_connection *connection,
                                           enum idem_sqlite_statement insert,
                                           const struct idem_table *table,
                                           void *row);
/* `version` is the new one; the row must still have the one before it. */
enum idem_rows_step idem_sqlite_row_update(struct idem_sqlite_connection *connection,
                                           enum idem_sqlite_statement update,
                                           const struct idem_table *table,
                                           const void *row,
                                           uint32_t version);

/* find.c; the contract of each is in rows.h. */
enum idem_rows_step idem_sqlite_find_intent(struct idem_rows *rows,
                                            enum idem_find find,
                                            const struct idem_rows_key *key,
                                            struct idem_intent *ret_intent);
enum idem_rows_step idem_sqlite_find_payment(struct idem_rows *rows,
                                             enum idem_find find,
                                             const struct idem_rows_key *key,
                                             struct idem_payment *ret_payment);
enum idem_rows_step idem_sqlite_find_refund(struct idem_rows *rows,
                                            enum idem_find find,
                                            const struct idem_rows_key *key,
                                            struct idem_refund *ret_refund);
enum idem_rows_step idem_sqlite_find_sends(struct idem_rows *rows,
                                           int64_t intent_row,
                                           struct idem_send *ret_sends,
                                           size_t *ret_count);
enum idem_rows_step idem_sqlite_find_stub(struct idem_rows *rows,
                                          enum idem_find find,
                                          const struct idem_rows_key *key,
                                          struct idem_stub *ret_stub);
enum idem_rows_step idem_sqlite_find_payment_stubs(struct idem_rows *rows,
                                                   struct idem_str payment_effect_id,
                                                   struct idem_facts *facts);
enum idem_rows_step idem_sqlite_find_case_kinds(struct idem_rows *rows,
                                                int64_t intent_row,
                                                uint32_t *ret_open,
                                                uint32_t *ret_decided);
enum idem_rows_step idem_sqlite_find_credential(struct idem_rows *rows,
                                                enum idem_find find,
                                                const struct idem_rows_key *key,
                                                struct idem_credential_row *ret_credential);
enum idem_rows_step idem_sqlite_find_meta(struct idem_rows *rows,
                                          const char *name,
                                          struct idem_str *ret_value);

/* look.c */
enum idem_rows_step idem_sqlite_find_events(struct idem_rows *rows,
                                            int64_t intent_row,
                                            struct idem_read *read);
enum idem_rows_step idem_sqlite_find_cases(struct idem_rows *rows,
                                           int64_t intent_row,
                                           struct idem_read *read);
enum idem_rows_step idem_sqlite_find_due(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_sqlite_find_left(struct idem_rows *rows,
                                          int64_t incarnation,
                                          struct idem_read *read);
enum idem_rows_step idem_sqlite_find_reap(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_sqlite_find_entries(struct idem_rows *rows,
                                             int64_t payment_row,
                                             struct idem_read *read);
enum idem_rows_step idem_sqlite_find_credentials(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_sqlite_find_places(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_sqlite_find_summary(struct idem_rows *rows,
                                             struct idem_summary *ret_summary);

enum idem_rows_step idem_sqlite_find_effects(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_sqlite_find_case_list(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_sqlite_find_created(struct idem_rows *rows,
                                             int64_t from_row,
                                             int64_t *ret_row,
                                             int64_t *ret_created_us);

/* outbox.c */
enum idem_rows_step idem_sqlite_find_event(struct idem_rows *rows,
                                           struct idem_str entry,
                                           struct idem_str event_id,
                                           bool *ret_seen);
enum idem_rows_step idem_sqlite_find_listened(struct idem_rows *rows,
                                              struct idem_str principal,
                                              bool *ret_listened);
enum idem_rows_step idem_sqlite_find_webhook(struct idem_rows *rows,
                                             enum idem_find find,
                                             const struct idem_rows_key *key,
                                             struct idem_webhook *ret_webhook);
enum idem_rows_step idem_sqlite_count_webhooks(struct idem_rows *rows,
                                               struct idem_str principal,
                                               size_t *ret_count);
enum idem_rows_step idem_sqlite_find_delivery(struct idem_rows *rows,
                                              struct idem_uid message_id,
                                              struct idem_uid webhook_id,
                                              struct idem_delivery *ret_delivery);
enum idem_rows_step idem_sqlite_find_webhooks(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_sqlite_find_posts(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_sqlite_write_inbox(struct idem_rows *rows,
                                            const struct idem_inbox_write *write);
enum idem_rows_step idem_sqlite_add_message(struct idem_rows *rows,
                                            int64_t webhook_row,
                                            const struct idem_message *message);
enum idem_rows_step idem_sqlite_write_webhook(struct idem_rows *rows,
                                              struct idem_webhook_write *write);
enum idem_rows_step idem_sqlite_write_delivery(struct idem_rows *rows,
                                               struct idem_delivery_write *write);
enum idem_rows_step idem_sqlite_drop_deliveries(struct idem_rows *rows,
                                                int64_t webhook_row,
                                                int64_t now_us);
enum idem_rows_step idem_sqlite_sweep(struct idem_rows *rows, int64_t before_us, bool *ret_more);

/* write.c */
enum idem_rows_step idem_sqlite_write_intent(struct idem_rows *rows,
                                             struct idem_intent_write *write);
enum idem_rows_step idem_sqlite_write_payment(struct idem_rows *rows,
                                              struct idem_payment_write *write);
enum idem_rows_step idem_sqlite_write_refund(struct idem_rows *rows,
                                             struct idem_refund_write *write);
enum idem_rows_step idem_sqlite_write_send(struct idem_rows *rows,
                                           int64_t intent_row,
                                           const struct idem_send_write *write);
enum idem_rows_step idem_sqlite_add_event(struct idem_rows *rows,
                                          int64_t intent_row,
                                          const struct idem_event *event);
enum idem_rows_step idem_sqlite_add_case(struct idem_rows *rows,
                                         int64_t intent_row,
                                         const struct idem_case *opened);
enum idem_rows_step idem_sqlite_decide_cases(struct idem_rows *rows,
                                             int64_t intent_row,
                                             const struct idem_case *decided);
enum idem_rows_step idem_sqlite_forget_history(struct idem_rows *rows, int64_t intent_row);
enum idem_rows_step idem_sqlite_write_stub(struct idem_rows *rows, struct idem_stub_write *write);
enum idem_rows_step idem_sqlite_apply_stubs(struct idem_rows *rows,
                                            struct idem_str payment_effect_id);
enum idem_rows_step idem_sqlite_write_credential(struct idem_rows *rows,
                                                 struct idem_credential_write *write);
enum idem_rows_step idem_sqlite_write_meta(struct idem_rows *rows,
                                           const char *name,
                                           struct idem_str value);

#endif /* IDEM_STORE_SQLITE_ROWS_INTERNAL_H */
