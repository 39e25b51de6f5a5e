/*
 * rows_internal.h - the rows port on one connection, in pieces.
 *
 *   statements.c  the SQL of every statement, made from the column tables
 *   value.c       rows out of results and into parameters; what an error means
 *   find.c        rows that a decision rests on: from ahead.c, or asked for
 *   look.c        rows that a reader asks for: due, lists, counts
 *   pages.c       likewise, of several tables: cases, deliveries, effects
 *   write.c       guarded writes, queued
 */
#ifndef IDEM_STORE_POSTGRES_ROWS_INTERNAL_H
#define IDEM_STORE_POSTGRES_ROWS_INTERNAL_H

#include "base/attr.h"
#include "base/bug.h"
#include "store/columns.h"
#include "store/postgres/postgres_internal.h"

#define IDEM_POSTGRES_SQL_MAX  4096
#define IDEM_POSTGRES_NAME_MAX 16

static inline struct idem_postgres_connection *idem_postgres_connection_of(struct idem_rows *rows)
{
    return IDEM_CONTAINER_OF(rows, struct idem_postgres_connection, rows);
}

/* statements.c */
void idem_postgres_statement_print(enum idem_postgres_statement index, struct idem_buf *buf);
void idem_postgres_statement_name(enum idem_postgres_statement index,
                                  char name[IDEM_POSTGRES_NAME_MAX]);

/* value.c: columns count from 0. A table's columns are the last ones of a result. */
int64_t idem_postgres_number(const struct pg_result *result, int row, int column);
struct idem_str idem_postgres_text(const struct pg_result *result, int row, int column);
/* These are false if the value is not one that we wrote. */
bool idem_postgres_bytes(
    const struct pg_result *result, int row, int column, void *ret_bytes, size_t size);
bool idem_postgres_row_read(const struct pg_result *result,
                            int row,
                            const struct idem_table *table,
                            void *ret_row,
                            struct idem_buf *kept);
bool idem_postgres_row_fits(const struct pg_result *result,
                            int row,
                            const struct idem_table *table,
                            const struct idem_buf *buf);
/* Of a row that has several tables' columns: those of one. */
struct idem_postgres_part {
    int row;
    int first; /* Its first column. */
    const struct idem_table *table;
};
bool idem_postgres_part_read(const struct pg_result *result,
                             struct idem_postgres_part part,
                             void *ret_row,
                             struct idem_buf *kept);
/* Bytes of its text. */
size_t idem_postgres_part_size(const struct pg_result *result, struct idem_postgres_part part);
/* All columns, or without the fixed ones. */
void idem_postgres_arg_row(struct idem_postgres_args *args,
                           const struct idem_table *table,
                           const void *row,
                           bool fixed_too);
/* What the end of a round means for the transaction; `alone`: nobody else waits with it. */
enum idem_rows_step idem_postgres_step_of(enum idem_postgres_end end,
                                          const char *state,
                                          bool alone);

/* connection.c: queues; makes room by a round if there is none. */
void idem_postgres_queue(struct idem_postgres_connection *connection,
                         enum idem_postgres_statement index,
                         const struct idem_postgres_args *args,
                         struct idem_postgres_pending pending);
/* Everything that is queued, answered. What it ends with ends the transaction. */
enum idem_rows_step idem_postgres_round(struct idem_postgres_connection *connection);
/* One statement's rows, behind all that is queued. OK: clear `*ret_result`. */
enum idem_rows_step idem_postgres_ask(struct idem_postgres_connection *connection,
                                      enum idem_postgres_statement index,
                                      const struct idem_postgres_args *args,
                                      struct pg_result **ret_result);

/* find.c; the contract of each is in rows.h. */
enum idem_rows_step idem_postgres_find_intent(struct idem_rows *rows,
                                              enum idem_find find,
                                              const struct idem_rows_key *key,
                                              struct idem_intent *ret_intent);
enum idem_rows_step idem_postgres_find_payment(struct idem_rows *rows,
                                               enum idem_find find,
                                               const struct idem_rows_key *key,
                                               struct idem_payment *ret_payment);
enum idem_rows_step idem_postgres_find_refund(struct idem_rows *rows,
                                              enum idem_find find,
                                              const struct idem_rows_key *key,
                                              struct idem_refund *ret_refund);
enum idem_rows_step idem_postgres_find_sends(struct idem_rows *rows,
                                             int64_t intent_row,
                                             struct idem_send *ret_sends,
                                             size_t *ret_count);
enum idem_rows_step idem_postgres_find_stub(struct idem_rows *rows,
                                            enum idem_find find,
                                            const struct idem_rows_key *key,
                                            struct idem_stub *ret_stub);
enum idem_rows_step idem_postgres_find_payment_stubs(struct idem_rows *rows,
                                                     struct idem_str payment_effect_id,
                                                     struct idem_facts *facts);
enum idem_rows_step idem_postgres_find_case_kinds(struct idem_rows *rows,
                                                  int64_t intent_row,
                                                  uint32_t *ret_open,
                                                  uint32_t *ret_decided);
enum idem_rows_step idem_postgres_find_credential(struct idem_rows *rows,
                                                  enum idem_find find,
                                                  const struct idem_rows_key *key,
                                                  struct idem_credential_row *ret_credential);
enum idem_rows_step idem_postgres_find_event(struct idem_rows *rows,
                                             struct idem_str entry,
                                             struct idem_str event_id,
                                             bool *ret_seen);
enum idem_rows_step idem_postgres_find_listened(struct idem_rows *rows,
                                                struct idem_str principal,
                                                bool *ret_listened);
enum idem_rows_step idem_postgres_find_webhook(struct idem_rows *rows,
                                               enum idem_find find,
                                               const struct idem_rows_key *key,
                                               struct idem_webhook *ret_webhook);
enum idem_rows_step idem_postgres_count_webhooks(struct idem_rows *rows,
                                                 struct idem_str principal,
                                                 size_t *ret_count);
enum idem_rows_step idem_postgres_find_delivery(struct idem_rows *rows,
                                                struct idem_uid message_id,
                                                struct idem_uid webhook_id,
                                                struct idem_delivery *ret_delivery);
enum idem_rows_step idem_postgres_find_meta(struct idem_rows *rows,
                                            const char *name,
                                            struct idem_str *ret_value);

/* look.c, pages.c */
enum idem_rows_step idem_postgres_find_events(struct idem_rows *rows,
                                              int64_t intent_row,
                                              struct idem_read *read);
enum idem_rows_step idem_postgres_find_cases(struct idem_rows *rows,
                                             int64_t intent_row,
                                             struct idem_read *read);
enum idem_rows_step idem_postgres_find_due(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_postgres_find_left(struct idem_rows *rows,
                                            int64_t incarnation,
                                            struct idem_read *read);
enum idem_rows_step idem_postgres_find_reap(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_postgres_find_entries(struct idem_rows *rows,
                                               int64_t payment_row,
                                               struct idem_read *read);
enum idem_rows_step idem_postgres_find_credentials(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_postgres_find_places(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_postgres_find_waited(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_postgres_find_summary(struct idem_rows *rows,
                                               struct idem_summary *ret_summary);

enum idem_rows_step idem_postgres_find_case_list(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_postgres_find_webhooks(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_postgres_find_posts(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_postgres_find_effects(struct idem_rows *rows, struct idem_read *read);
enum idem_rows_step idem_postgres_find_created(struct idem_rows *rows,
                                               int64_t from_row,
                                               int64_t *ret_row,
                                               int64_t *ret_created_us);

/* write.c */
enum idem_rows_step idem_postgres_write_intent(struct idem_rows *rows,
                                               struct idem_intent_write *write);
enum idem_rows_step idem_postgres_write_payment(struct idem_rows *rows,
                                                struct idem_payment_write *write);
enum idem_rows_step idem_postgres_write_refund(struct idem_rows *rows,
                                               struct idem_refund_write *write);
enum idem_rows_step idem_postgres_write_send(struct idem_rows *rows,
                                             int64_t intent_row,
                                             const struct idem_send_write *write);
enum idem_rows_step idem_postgres_add_event(struct idem_rows *rows,
                                            int64_t intent_row,
                                            const struct idem_event *event);
enum idem_rows_step idem_postgres_add_case(struct idem_rows *rows,
                                           int64_t intent_row,
                                           const struct idem_case *opened);
enum idem_rows_step idem_postgres_decide_cases(struct idem_rows *rows,
                                               int64_t intent_row,
                                               const struct idem_case *decided);
enum idem_rows_step idem_postgres_forget_history(struct idem_rows *rows, int64_t intent_row);
enum idem_rows_step idem_postgres_write_stub(struct idem_rows *rows, struct idem_stub_write *write);
enum idem_rows_step idem_postgres_apply_stubs(struct idem_rows *rows,
                                              struct idem_str payment_effect_id);
enum idem_rows_step idem_postgres_write_credential(struct idem_rows *rows,
                                                   struct idem_credential_write *write);
enum idem_rows_step idem_postgres_write_inbox(struct idem_rows *rows,
                                              const struct idem_inbox_write *write);
enum idem_rows_step idem_postgres_add_message(struct idem_rows *rows,
                                              int64_t webhook_row,
                                              const struct idem_message *message);
enum idem_rows_step idem_postgres_write_webhook(struct idem_rows *rows,
                                                struct idem_webhook_write *write);
enum idem_rows_step idem_postgres_write_delivery(struct idem_rows *rows,
                                                 struct idem_delivery_write *write);
enum idem_rows_step idem_postgres_drop_deliveries(struct idem_rows *rows,
                                                  int64_t webhook_row,
                                                  int64_t now_us);
enum idem_rows_step idem_postgres_sweep(struct idem_rows *rows, int64_t before_us, bool *ret_more);
enum idem_rows_step idem_postgres_write_meta(struct idem_rows *rows,
                                             const char *name,
                                             struct idem_str value);

#endif /* IDEM_STORE_POSTGRES_ROWS_INTERNAL_H */
