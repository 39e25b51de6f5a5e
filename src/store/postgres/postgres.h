/*
 * postgres.h - the store for several instances: one PostgreSQL database, version 15 or later.
 *
 * READ COMMITTED; a few writer threads, each with a connection of its own and one batch at a time,
 * and a few readers. Opening refuses a server that may lose what it acknowledged: fsync or
 * full_page_writes off, a standby, or replication with a weaker synchronous_commit than `on`.
 *
 * After a COMMIT that was not answered cleanly the connection is thrown away, the batch comes back
 * UNKNOWN, and the store goes on: the same commands find out on another connection, under the same
 * ids and tokens. It is `broken` only where what lies in the database is damaged.
 *
 * Several instances share a database. Each opening is an incarnation of its own and ends nobody's
 * leases: those of an instance that lives count until they end, those of one that stopped or fell
 * silent are over at once. Leases are measured by the database's clock.
 */
#ifndef IDEM_STORE_POSTGRES_POSTGRES_H
#define IDEM_STORE_POSTGRES_POSTGRES_H

#include "store/store.h"

#define IDEM_POSTGRES_WRITERS_MAX 16
#define IDEM_POSTGRES_READERS_MAX 8

struct idem_postgres_schema;

struct idem_postgres_settings {
    const char *url; /* postgresql://... or key=value pairs, as libpq takes them. */
    size_t writers;  /* Batches in flight. */
    size_t readers;
    int64_t wait_us;      /* The longest wait for the server's next word. */
    int64_t lock_wait_us; /* The longest wait for a row that somebody else holds. */
    int64_t silence_us;   /* An instance that was not heard of for so long is dead. */
    bool clock_is_ours;   /* Commands are stamped by the options' clock: for tests. */
    const struct idem_postgres_schema *schema; /* NULL: this program's; another one for tests. */
};

struct idem_postgres_settings idem_postgres_settings_default(const char *url);

/* Whether the database has a store; makes none. */
enum idem_err idem_postgres_has_store(const struct idem_postgres_settings *settings,
                                      bool *ret_there,
                                      struct idem_error *reterr) IDEM_MUST_CHECK;

/*
 * Gives a store; destroy it with idem_store_destroy(). The schema is made if it is absent, unless
 * the options say that it must be there.
 */
enum idem_err idem_postgres_open(const struct idem_postgres_settings *settings,
                                 const struct idem_store_options *options,
                                 struct idem_store **ret_store,
                                 struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_STORE_POSTGRES_POSTGRES_H */
