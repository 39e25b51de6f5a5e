/*
 * Whom we talk to, and what is forced, each time a connection is made.
 *
 * Refused: a server older than 15 (DOWN), a standby (WRONG_NODE), and one that may lose what it
 * acknowledged: fsync or full_page_writes off, or a synchronous_commit weaker than `on` where
 * standbys are named, since whoever named them relies on them (DOWN). Without standbys `on` is
 * forced, whatever was set.
 *
 * A former primary that comes back alone believes in itself, and shows what it never acknowledged
 * to anybody. So where standbys are named a server is believed only after a commit that one of them
 * has answered for.
 *
 * A connection is tried again after a pause that doubles up to a few seconds; in between the
 * answer is DOWN without a try, so that callers are not held up one by one.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "store/postgres/rows_internal.h"

#define PAUSE_MIN_US (50 * IDEM_US_PER_MS)
#define PAUSE_MAX_US (5 * IDEM_US_PER_SECOND)
#define VERSION_MIN  150000

/* In order: the level that whoever configured the server chose is asked for before it is forced. */
static const char question[] =
    "SELECT pg_is_in_recovery()::text, current_setting('fsync'),"
    " current_setting('full_page_writes'), current_setting('synchronous_commit'),"
    " current_setting('synchronous_standby_names'), current_setting('server_encoding')";

enum {
    SAID_STANDBY = 0,
    SAID_FSYNC,
    SAID_FULL_PAGES,
    SAID_LEVEL,
    SAID_STANDBYS,
    SAID_ENCODING
};

static bool says(const PGresult *result, int column, const char *text)
{
    return idem_str_equal(idem_postgres_text(result, 0, column), idem_str_from(text));
}

static enum idem_rows_step refuse(struct idem_postgres_wire *wire,
                                  enum idem_rows_step step,
                                  const char *why)
{
    (void)snprintf(wire->error.text, sizeof(wire->error.text), "%s", why);
    return step;
}

/* What the server must be. `*ret_level`: what each commit waits for. */
static enum idem_rows_step server_check(struct idem_postgres_wire *wire,
                                        const PGresult *said,
                                        const char **ret_level)
{
    bool strongest = says(said, SAID_LEVEL, "remote_apply");
    *ret_level = strongest ? "remote_apply" : "on";
    if (says(said, SAID_STANDBY, "true")) {
        return refuse(wire, IDEM_ROWS_WRONG_NODE, "the database server is a standby");
    }
    if (says(said, SAID_FSYNC, "off")) {
        return refuse(wire, IDEM_ROWS_DOWN,
                      "the database server runs with fsync = off: it may forget a payment");
    }
    if (says(said, SAID_FULL_PAGES, "off")) {
        return refuse(
            wire, IDEM_ROWS_DOWN,
            "the database server runs with full_page_writes = off: a crash may damage it");
    }
    if (!says(said, SAID_STANDBYS, "") && !strongest && !says(said, SAID_LEVEL, "on")) {
        return refuse(wire, IDEM_ROWS_DOWN,
                      "standbys are named but synchronous_commit is weaker than on: a failover may "
                      "forget a payment");
    }
    if (!says(said, SAID_ENCODING, "UTF8")) {
        return refuse(wire, IDEM_ROWS_DOWN, "the database's encoding is not UTF8");
    }
    return IDEM_ROWS_OK;
}

static enum idem_rows_step settings_force(struct idem_postgres_wire *wire,
                                          const struct idem_postgres_settings *settings,
                                          const char *level)
{
    char sql[512];
    char lock[96];
    char statement[96];
    char idle[96];
    const long long wait_ms = settings->wait_us / IDEM_US_PER_MS;
    (void)snprintf(sql, sizeof(sql), "SET synchronous_commit = %s", level);
    (void)snprintf(lock, sizeof(lock), "SET lock_timeout = %lld",
                   (long long)(settings->lock_wait_us / IDEM_US_PER_MS));
    /* This side gives up first; these free what a dead client left behind. */
    (void)snprintf(statement, sizeof(statement), "SET statement_timeout = %lld", 2 * wait_ms);
    (void)snprintf(idle, sizeof(idle), "SET idle_in_transaction_session_timeout = %lld",
                   2 * wait_ms);
    const char *const sqls[] = {
        sql,
        lock,
        statement,
        idle,
        "SET client_encoding = 'UTF8'",
        "SET standard_conforming_strings = on",
        "SET default_transaction_isolation = 'read committed'",
        "SET default_transaction_read_only = off",
        "SET enable_seqscan = off", /* Every statement has an index; new tables have no counts. */
        "SET jit = off",
        "SET application_name = 'idem'",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sqls); i++) {
        idem_postgres_wire_say(wire, sqls[i], NULL);
    }
    return idem_postgres_wire_round(wire) == IDEM_POSTGRES_END_OK ? IDEM_ROWS_OK : IDEM_ROWS_DOWN;
}

/*
 * A COMMIT that waits for a standby hears no time limit of the server, and its connection would be
 * taken until a standby is back: tried again and again, all of them would be. Inside a statement it
 * hears one. It then ends with a WARNING, and nothing was written that anybody could see.
 */
static enum idem_rows_step proof_take(struct idem_postgres_wire *wire,
                                      const struct idem_postgres_settings *settings)
{
    char limits[2][64];
    const long long wait_ms = settings->wait_us / IDEM_US_PER_MS;
    (void)snprintf(limits[0], sizeof(limits[0]), "SET statement_timeout = %lld", wait_ms * 3 / 4);
    (void)snprintf(limits[1], sizeof(limits[1]), "SET statement_timeout = %lld", 2 * wait_ms);
    const char *const sqls[] = {
        limits[0],
        "DO $$ BEGIN PERFORM pg_logical_emit_message(true, 'idem', ''); COMMIT; END $$",
        limits[1],
    };
    enum idem_postgres_end end = IDEM_POSTGRES_END_OK;
    wire->warned = false;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sqls) && end == IDEM_POSTGRES_END_OK; i++) {
        idem_postgres_wire_say(wire, sqls[i], NULL);
        end = idem_postgres_wire_round(wire); /* Each alone: what ends a transaction must be. */
    }
    if (end == IDEM_POSTGRES_END_OK && !wire->warned) {
        return IDEM_ROWS_OK;
    }
    return refuse(wire, IDEM_ROWS_DOWN,
                  "no standby answers for what the database server writes: its standby is gone, or "
                  "it is a former primary; nothing is read from it");
}

/* Leaves the wire connected unless the connection ended. */
static enum idem_rows_step server_look(struct idem_postgres_wire *wire,
                                       const char **ret_level,
                                       bool *ret_has_standbys)
{
    PGresult *said = NULL;
    wire->refused = false;
    idem_postgres_wire_say(wire, question, &said);
    if (idem_postgres_wire_round(wire) != IDEM_POSTGRES_END_OK) {
        PQclear(said); /* Accepts NULL. */
        return IDEM_ROWS_DOWN;
    }
    enum idem_rows_step step = server_check(wire, said, ret_level);
    wire->refused = step != IDEM_ROWS_OK;
    *ret_has_standbys = !says(said, SAID_STANDBYS, "");
    PQclear(said);
    return step;
}

enum idem_rows_step idem_postgres_session_look(struct idem_postgres_wire *wire,
                                               bool *ret_has_standbys)
{
    const char *level = NULL; /* Was forced when the session began. */
    return server_look(wire, &level, ret_has_standbys);
}

enum idem_rows_step idem_postgres_session_begin(struct idem_postgres_wire *wire,
                                                const struct idem_postgres_settings *settings)
{
    const char *level = NULL;
    bool has_standbys = false;
    if (!idem_postgres_wire_connect(wire, settings->url)) {
        return IDEM_ROWS_DOWN;
    }
    if (PQserverVersion(wire->handle) < VERSION_MIN) {
        enum idem_rows_step step = refuse(wire, IDEM_ROWS_DOWN, "PostgreSQL 15 or later is needed");
        idem_postgres_wire_close(wire);
        return step;
    }
    enum idem_rows_step step = server_look(wire, &level, &has_standbys);
    if (step == IDEM_ROWS_OK) {
        step = settings_force(wire, settings, level);
    }
    if (step == IDEM_ROWS_OK && has_standbys) {
        step = proof_take(wire, settings);
    }
    if (step != IDEM_ROWS_OK) {
        idem_postgres_wire_close(wire);
    }
    return step;
}

/* Not where the store was put back properly since: there, this instance is what is out of date. */
static void copy_mark(struct idem_postgres_wire *wire,
                      const struct idem_postgres_instance *instance,
                      int64_t signed_us)
{
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO idem.meta (key, value) SELECT '" IDEM_POSTGRES_META_OLDER
                   "', '%lld' FROM idem.meta WHERE key = 'created_us' AND value = '%lld'"
                   " AND NOT EXISTS (SELECT 1 FROM idem.meta WHERE key = '" IDEM_META_RESTORED_AT
                   "' AND value::bigint > %lld) ON CONFLICT (key) DO NOTHING",
                   (long long)instance->id, (long long)instance->created_us, (long long)signed_us);
    idem_postgres_wire_say(wire, sql, NULL);
    (void)idem_postgres_wire_round(wire); /* Another database may have no such table. */
}

enum idem_rows_step idem_postgres_instance_check(struct idem_postgres_wire *wire,
                                                 const struct idem_postgres_instance *instance)
{
    char sql[384];
    PGresult *result = NULL;
    int64_t signed_us = atomic_load(instance->signed_us);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT i.seen_us < %lld OR EXISTS (SELECT 1 FROM idem.meta"
                   " WHERE key = '" IDEM_POSTGRES_META_OLDER
                   "') FROM idem.instances i, idem.meta m"
                   " WHERE i.id = %lld AND m.key = 'created_us' AND m.value = '%lld'",
                   (long long)signed_us, (long long)instance->id, (long long)instance->created_us);
    idem_postgres_wire_say(wire, sql, &result);
    enum idem_postgres_end end = idem_postgres_wire_round(wire);
    bool no_table = end == IDEM_POSTGRES_END_ERROR && strcmp(wire->state, "42P01") == 0;
    bool is_known = end == IDEM_POSTGRES_END_OK && PQntuples(result) == 1;
    bool is_older = is_known && idem_postgres_number(result, 0, 0) != 0;
    PQclear(result); /* Accepts NULL. */
    if (is_known && !is_older) {
        return IDEM_ROWS_OK;
    }
    if (end != IDEM_POSTGRES_END_OK && !no_table) {
        return IDEM_ROWS_DOWN;
    }
    copy_mark(wire, instance, signed_us);
    return refuse(wire, IDEM_ROWS_DAMAGED, is_older ? IDEM_POSTGRES_OLDER : IDEM_POSTGRES_OTHER);
}

static enum idem_rows_step session_open(struct idem_postgres_connection *connection)
{
    struct idem_postgres_wire *wire = &connection->wire;
    enum idem_rows_step step = idem_postgres_session_begin(wire, connection->settings);
    if (step == IDEM_ROWS_OK && connection->instance.id != 0) {
        step = idem_postgres_instance_check(wire, &connection->instance);
    }
    connection->is_other = step == IDEM_ROWS_DAMAGED;
    if (step != IDEM_ROWS_OK) {
        idem_postgres_wire_close(wire);
    }
    return step;
}

enum idem_rows_step idem_postgres_session(struct idem_postgres_connection *connection)
{
    struct idem_postgres_wire *wire = &connection->wire;
    if (wire->handle != NULL) {
        return IDEM_ROWS_OK;
    }
    if (idem_postgres_mono_us() < connection->retry_us) {
        return IDEM_ROWS_DOWN;
    }
    enum idem_rows_step step = session_open(connection);
    if (step == IDEM_ROWS_OK) {
        memset(connection->prepared, 0, sizeof(connection->prepared));
        memset(connection->asked, 0, sizeof(connection->asked));
        connection->pause_us = 0;
        return IDEM_ROWS_OK;
    }
    int64_t longer_us = 2 * connection->pause_us;
    connection->pause_us = longer_us < PAUSE_MIN_US ? PAUSE_MIN_US : longer_us;
    connection->pause_us =
        connection->pause_us > PAUSE_MAX_US ? PAUSE_MAX_US : connection->pause_us;
    connection->retry_us = idem_postgres_mono_us() + connection->pause_us;
    return step;
}
