/*
 * ahead.h - the facts of a batch, fetched together before it decides, and handed out.
 *
 * Threads: the connection's.
 */
#ifndef IDEM_STORE_POSTGRES_AHEAD_H
#define IDEM_STORE_POSTGRES_AHEAD_H

#include "store/postgres/rows_internal.h"

/* ahead.c: fetches what `count` items from `first` on need. */
void idem_postgres_ahead_fetch(struct idem_postgres_connection *connection,
                               struct idem_list_node *first,
                               size_t count);
void idem_postgres_ahead_clear(struct idem_postgres_ahead *ahead);

/* What kind of facts it needs. */
bool idem_postgres_makes_payment(const struct idem_command *command);
bool idem_postgres_names_payment(const struct idem_command *command);
bool idem_postgres_names_event(const struct idem_command *command);

/*
 * ahead_find.c. False: it was not fetched, or was handed out before. Row -1: it was fetched, and is
 * not there.
 */
struct idem_postgres_found {
    const struct pg_result *result;
    int row;
};
bool idem_postgres_ahead_intent(struct idem_postgres_ahead *ahead,
                                const struct idem_scope *scope,
                                struct idem_postgres_found *ret_found);
/* The sends of the intent found last: from row on, as long as the handle is the same. */
bool idem_postgres_ahead_sends(struct idem_postgres_ahead *ahead,
                               int64_t intent_row,
                               struct idem_postgres_found *ret_found);
bool idem_postgres_ahead_payment(struct idem_postgres_ahead *ahead,
                                 enum idem_find find,
                                 const struct idem_rows_key *key,
                                 struct idem_postgres_found *ret_found);
bool idem_postgres_ahead_refund(struct idem_postgres_ahead *ahead,
                                int64_t row,
                                struct idem_postgres_found *ret_found);
bool idem_postgres_ahead_event(struct idem_postgres_ahead *ahead,
                               struct idem_str entry,
                               struct idem_str event_id,
                               bool *ret_seen);
bool idem_postgres_ahead_delivery(struct idem_postgres_ahead *ahead,
                                  struct idem_uid message_id,
                                  struct idem_uid webhook_id,
                                  struct idem_postgres_found *ret_found);
/* These two as often as they are asked for; the first only if it is there. */
bool idem_postgres_ahead_webhook(const struct idem_postgres_ahead *ahead,
                                 struct idem_uid id,
                                 struct idem_postgres_found *ret_found);
bool idem_postgres_ahead_listened(const struct idem_postgres_ahead *ahead,
                                  struct idem_str principal,
                                  bool *ret_listened);

#endif /* IDEM_STORE_POSTGRES_AHEAD_H */
