/*
 * From one schema version to the next.
 *
 * The next version is one more list of statements in schema.c and nothing here. A fresh store runs
 * them all, so that it has the columns of a migrated one in the same order.
 *
 * Order of locks: idem's own (0), which every opening takes, so that no instance begins meanwhile;
 * then (1) alone, so that no batch is under way; then the tables'. Each is waited for as long as
 * anything else, and then nothing has changed.
 *
 * Crash points for tests: `migrate-step` after each version, `migrate-commit-before`,
 * `migrate-commit-after`.
 */
#include "store/postgres/migrate.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash.h"
#include "store/postgres/rows_internal.h"
#include "store/postgres/schema.h"

static enum idem_err say(struct idem_postgres_wire *wire,
                         const char *sql,
                         PGresult **result,
                         struct idem_error *reterr)
{
    idem_postgres_wire_say(wire, sql, result);
    return idem_postgres_wire_round(wire) == IDEM_POSTGRES_END_OK
               ? IDEM_OK
               : idem_error_set(reterr, IDEM_E_STORE, "cannot migrate the store: %s",
                                wire->error.text);
}

static enum idem_err number_ask(struct idem_postgres_wire *wire,
                                const char *sql,
                                int64_t *ret_number,
                                struct idem_error *reterr)
{
    PGresult *result = NULL;
    enum idem_err err = say(wire, sql, &result, reterr);
    if (err == IDEM_OK) {
        bool there = PQntuples(result) > 0 && PQgetisnull(result, 0, 0) == 0;
        *ret_number = there ? idem_postgres_number(result, 0, 0) : 0;
        PQclear(result);
    }
    return err;
}

/* A version's statements, and its line in the list. */
static enum idem_err version_run(struct idem_postgres_wire *wire,
                                 const struct idem_postgres_schema *schema,
                                 int64_t version,
                                 struct idem_error *reterr)
{
    const struct idem_postgres_migration *migration = &schema->migrations[version - 1];
    char sql[256];
    enum idem_err err = IDEM_OK;
    for (size_t i = 0; i < migration->count && err == IDEM_OK; i++) {
        err = say(wire, migration->statements[i], NULL, reterr);
    }
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO idem.migrations (version, min_version, at_us) SELECT %lld, %lld,"
                   " (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
                   (long long)version, (long long)migration->min_version);
    return err == IDEM_OK ? say(wire, sql, NULL, reterr) : err;
}

enum idem_err idem_postgres_versions_run(struct idem_postgres_wire *wire,
                                         const struct idem_postgres_schema *schema,
                                         int64_t from,
                                         struct idem_error *reterr)
{
    static const char versions_note[] =
        "INSERT INTO idem.meta (key, value)"
        " SELECT k, v FROM (SELECT max(version)::text, max(min_version)::text FROM idem.migrations)"
        " m(version, min_version),"
        " LATERAL (VALUES ('schema_version', version), ('" IDEM_META_SCHEMA_MIN
        "', min_version))"
        " n(k, v) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    enum idem_err err = IDEM_OK;
    for (int64_t at = from; at < schema->version && err == IDEM_OK; at++) {
        err = version_run(wire, schema, at + 1, reterr);
        idem_crash_point("migrate-step");
    }
    return err == IDEM_OK ? say(wire, versions_note, NULL, reterr) : err;
}

static enum idem_err transaction_begin(struct idem_postgres_wire *wire,
                                       const struct idem_postgres_settings *settings,
                                       struct idem_error *reterr)
{
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "SET LOCAL lock_timeout = %lld",
                   (long long)(settings->wait_us / IDEM_US_PER_MS));
    const char *const sqls[] = {
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        sql,
        /* A table may be large. The wait for the next word has no end of its own here. */
        "SET LOCAL statement_timeout = 0",
        "SELECT 1 FROM pg_advisory_xact_lock(" IDEM_POSTGRES_LOCKS ", 0)",
        "SELECT 1 FROM pg_advisory_xact_lock(" IDEM_POSTGRES_LOCKS ", 1)",
    };
    enum idem_err err = IDEM_OK;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sqls) && err == IDEM_OK; i++) {
        err = say(wire, sqls[i], NULL, reterr);
    }
    return err;
}

static enum idem_err from_ask(struct idem_postgres_wire *wire,
                              const struct idem_postgres_schema *schema,
                              int64_t *ret_from,
                              struct idem_error *reterr)
{
    int64_t there = 0;
    enum idem_err err =
        number_ask(wire, "SELECT (to_regclass('idem.meta') IS NOT NULL)::integer", &there, reterr);
    if (err == IDEM_OK && there == 0) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "the database has no store: there is nothing to migrate");
    }
    if (err == IDEM_OK) {
        err = number_ask(wire, "SELECT value::bigint FROM idem.meta WHERE key = 'schema_version'",
                         ret_from, reterr);
    }
    if (err == IDEM_OK && *ret_from == 0) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "the database's schema idem is not one of ours");
    }
    if (err == IDEM_OK && *ret_from > schema->version) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "the store has schema version %lld and this idem knows %lld; there "
                              "is no way back: use the idem that wrote it or a newer one",
                              (long long)*ret_from, (long long)schema->version);
    }
    return err;
}

/* Nobody who lives would have to work on what it does not know. */
static enum idem_err others_check(struct idem_postgres_wire *wire,
                                  const struct idem_postgres_settings *settings,
                                  const struct idem_postgres_schema *schema,
                                  struct idem_error *reterr)
{
    char sql[256];
    int64_t others = 0;
    int64_t min_version = 0;
    for (int64_t i = 0; i < schema->version; i++) {
        int64_t version = schema->migrations[i].min_version;
        min_version = version > min_version ? version : min_version;
    }
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM idem.instances WHERE ended_us = 0 AND schema_version <"
                   " %lld AND seen_us > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
                   " - %lld",
                   (long long)min_version, (long long)settings->silence_us);
    enum idem_err err = number_ask(wire, sql, &others, reterr);
    if (err == IDEM_OK && others > 0) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "%lld running instances know no schema that may work on version "
                              "%lld: stop them first; nothing was changed",
                              (long long)others, (long long)schema->version);
    }
    return err;
}

/* Anything but a clean COMMIT: whoever runs it again finds out. */
static enum idem_err commit(struct idem_postgres_wire *wire, struct idem_error *reterr)
{
    PGresult *result = NULL;
    idem_crash_point("migrate-commit-before");
    wire->warned = false;
    enum idem_err err = say(wire, "COMMIT", &result, reterr);
    idem_crash_point("migrate-commit-after");
    bool clean = err == IDEM_OK && !wire->warned && strcmp(PQcmdStatus(result), "COMMIT") == 0;
    PQclear(result);
    if (err == IDEM_OK && !clean) {
        err = idem_error_set(reterr, IDEM_E_STORE, "%s", wire->error.text);
    }
    return err;
}

static enum idem_err migrate(struct idem_postgres_wire *wire,
                             const struct idem_postgres_settings *settings,
                             const struct idem_postgres_schema *schema,
                             struct idem_postgres_migrated *migrated,
                             struct idem_error *reterr)
{
    if (idem_postgres_session_begin(wire, settings) != IDEM_ROWS_OK) {
        return idem_error_set(reterr, IDEM_E_STORE, "cannot open the database's store: %s",
                              wire->error.text);
    }
    enum idem_err err = transaction_begin(wire, settings, reterr);
    if (err == IDEM_OK) {
        err = from_ask(wire, schema, &migrated->from, reterr);
    }
    if (err != IDEM_OK || migrated->from == migrated->to) {
        return err;
    }
    wire->wait_us = IDEM_POSTGRES_MIGRATION_US;
    err = others_check(wire, settings, schema, reterr);
    if (err == IDEM_OK) {
        err = idem_postgres_versions_run(wire, schema, migrated->from, reterr);
    }
    return err == IDEM_OK ? commit(wire, reterr) : err;
}

enum idem_err idem_postgres_migrate(const struct idem_postgres_settings *settings,
                                    struct idem_postgres_migrated *ret_migrated,
                                    struct idem_error *reterr)
{
    const struct idem_postgres_schema *schema = idem_postgres_schema_of(settings);
    struct idem_postgres_migrated migrated = { .to = schema->version };
    struct idem_postgres_wire *wire = calloc(1, sizeof(*wire));
    if (wire == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    wire->wait_us = settings->wait_us;
    enum idem_err err = migrate(wire, settings, schema, &migrated, reterr);
    idem_postgres_wire_close(wire); /* What was not committed is undone. */
    free(wire);
    if (err == IDEM_OK) {
        *ret_migrated = migrated;
    }
    return err;
}
