/*
 * What an instance does before it may decide anything, in one transaction under idem's own lock:
 * schema if the database is new, configuration compared, the restored mode if asked for, the marks
 * about time, and a new instance.
 *
 * An instance is a row that says it was seen. Its id is the incarnation of its leases. Opening ends
 * nobody else's: those of an instance that lives are respected until they end (find.c). It is dead
 * once it says so (stop) or was silent for too long; then its leases are over at once, as those of
 * a dead process are for the embedded store.
 *
 * A schema of an older version is refused until somebody migrates it (migrate.h): nothing is
 * changed unasked under instances that are running. On one of a newer version an older program
 * works as long as that version says that it may.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "store/postgres/migrate.h"
#include "store/postgres/rows_internal.h"
#include "store/postgres/schema.h"

#define DIGEST_HEX_MAX (2 * IDEM_DIGEST_SIZE + 1)
#define META_MAX       256
#define READ           "meta_read"
#define WRITE          "meta_write"

struct opening {
    struct idem_postgres_wire *wire;
    const struct idem_postgres_schema *schema;
    const struct idem_store_options *options;
    struct idem_postgres_opening *found;
    struct idem_error *reterr;
};

static enum idem_err store_error(struct opening *opening, const char *what)
{
    return idem_error_set(opening->reterr, IDEM_E_STORE, "%s: %s", what, opening->wire->error.text);
}

static enum idem_err say(struct opening *opening, const char *sql, PGresult **result)
{
    idem_postgres_wire_say(opening->wire, sql, result);
    return idem_postgres_wire_round(opening->wire) == IDEM_POSTGRES_END_OK
               ? IDEM_OK
               : store_error(opening, "cannot open the database's store");
}

static enum idem_err number_ask(struct opening *opening, const char *sql, int64_t *ret_number)
{
    PGresult *result = NULL;
    enum idem_err err = say(opening, sql, &result);
    if (err == IDEM_OK) {
        bool there = PQntuples(result) > 0 && PQgetisnull(result, 0, 0) == 0;
        *ret_number = there ? idem_postgres_number(result, 0, 0) : 0;
        PQclear(result);
    }
    return err;
}

/* Empty if it is not there. */
static enum idem_err meta_read(struct opening *opening,
                               const char *name,
                               struct idem_buf *ret_value)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    idem_postgres_arg_text(&args, idem_str_from(name));
    idem_postgres_wire_queue(opening->wire, READ, &args,
                             (struct idem_postgres_pending){ .result = &result });
    if (idem_postgres_wire_round(opening->wire) != IDEM_POSTGRES_END_OK) {
        return store_error(opening, "cannot read the store");
    }
    idem_buf_reset(ret_value);
    if (PQntuples(result) > 0) {
        idem_buf_add(ret_value, idem_postgres_text(result, 0, 0));
    }
    PQclear(result);
    return ret_value->full ? idem_error_set(opening->reterr, IDEM_E_STORE, "%s is too long", name)
                           : IDEM_OK;
}

static enum idem_err meta_write(struct opening *opening, const char *name, struct idem_str value)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_text(&args, idem_str_from(name));
    idem_postgres_arg_text(&args, value);
    idem_postgres_wire_queue(opening->wire, WRITE, &args,
                             (struct idem_postgres_pending){ .guarded = true });
    return idem_postgres_wire_round(opening->wire) == IDEM_POSTGRES_END_OK
               ? IDEM_OK
               : store_error(opening, "cannot write the store");
}

static enum idem_err meta_number(struct opening *opening, const char *name, int64_t *ret_number)
{
    char memory[META_MAX];
    struct idem_buf value;
    idem_buf_init(&value, memory, sizeof(memory));
    enum idem_err err = meta_read(opening, name, &value);
    *ret_number = 0;
    if (err == IDEM_OK && value.len > 0 && !idem_str_to_i64(idem_buf_str(&value), ret_number)) {
        return idem_error_set(opening->reterr, IDEM_E_STORE, "the store's %s is not a number",
                              name);
    }
    return err;
}

static enum idem_err meta_number_write(struct opening *opening, const char *name, int64_t number)
{
    char memory[32];
    struct idem_buf text;
    idem_buf_init(&text, memory, sizeof(memory));
    idem_buf_add_i64(&text, number);
    return meta_write(opening, name, idem_buf_str(&text));
}

static struct idem_str digest_print(const struct idem_digest *digest, struct idem_buf *buf)
{
    idem_buf_add_hex(buf, digest->bytes, sizeof(digest->bytes));
    return idem_buf_str(buf);
}

/* The locks are idem's own; each is waited for as long as anything else. */
static enum idem_err transaction_begin(struct opening *opening, int64_t wait_us)
{
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "SET LOCAL lock_timeout = %lld",
                   (long long)(wait_us / IDEM_US_PER_MS));
    enum idem_err err = say(opening, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", NULL);
    if (err == IDEM_OK) {
        err = say(opening, sql, NULL);
    }
    if (err == IDEM_OK) {
        err = say(opening, "SELECT 1 FROM pg_advisory_xact_lock(" IDEM_POSTGRES_LOCKS ", 0)", NULL);
    }
    if (err == IDEM_OK && opening->options->restored) {
        err = say(opening, "SELECT 1 FROM pg_advisory_xact_lock(" IDEM_POSTGRES_LOCKS ", 1)", NULL);
    }
    return err;
}

/* A newer version than ours may be one that we may work on: it says so. */
static enum idem_err version_check(struct opening *opening, int64_t version, int64_t min_version)
{
    const struct idem_postgres_schema *schema = opening->schema;
    if (version == 0 && opening->options->restored) {
        return idem_error_set(opening->reterr, IDEM_E_STORE,
                              "the database has no store: --restored is for a copy of a store that "
                              "was put back");
    }
    if (version == 0 && opening->options->must_exist) {
        return idem_error_set(opening->reterr, IDEM_E_STORE,
                              "the database has no store: keys recorded in the former one would be "
                              "new, and retries would pay again");
    }
    if (version > 0 && version < schema->version) {
        return idem_error_set(opening->reterr, IDEM_E_STORE,
                              "the store has schema version %lld and this idem needs %lld: run "
                              "idem migrate, then start the instances anew one by one",
                              (long long)version, (long long)schema->version);
    }
    if (min_version > schema->version) {
        return idem_error_set(opening->reterr, IDEM_E_STORE,
                              "the store has schema version %lld and this idem knows %lld; use the "
                              "idem that wrote it or a newer one",
                              (long long)version, (long long)schema->version);
    }
    return IDEM_OK;
}

/* With the tables there, names and values are parameters. */
static enum idem_err meta_prepare(struct opening *opening)
{
    idem_postgres_wire_prepare(opening->wire, READ, "SELECT value FROM idem.meta WHERE key = $1",
                               NULL);
    idem_postgres_wire_prepare(opening->wire, WRITE,
                               "INSERT INTO idem.meta (key, value) VALUES ($1, $2)"
                               " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                               NULL);
    return idem_postgres_wire_round(opening->wire) == IDEM_POSTGRES_END_OK
               ? IDEM_OK
               : store_error(opening, "the store's tables cannot be used");
}

static enum idem_err schema_make(struct opening *opening)
{
    char memory[DIGEST_HEX_MAX];
    struct idem_buf check;
    idem_buf_init(&check, memory, sizeof(memory));
    enum idem_err err =
        idem_postgres_versions_run(opening->wire, opening->schema, 0, opening->reterr);
    if (err == IDEM_OK) {
        err = meta_prepare(opening);
    }
    if (err == IDEM_OK) {
        err = meta_write(opening, "effect_secret_check",
                         digest_print(&opening->options->effect_secret_check, &check));
    }
    if (err == IDEM_OK) {
        err = meta_write(opening, "scope_rule", opening->options->scope_rule);
    }
    if (err == IDEM_OK) {
        err = meta_number_write(opening, "created_us", opening->found->opened_us);
    }
    return err;
}

static enum idem_err schema_open(struct opening *opening)
{
    int64_t there = 0;
    int64_t version = 0;
    int64_t min_version = 0;
    enum idem_err err =
        number_ask(opening, "SELECT (to_regclass('idem.meta') IS NOT NULL)::integer", &there);
    if (err == IDEM_OK && there != 0) {
        err = meta_prepare(opening);
        err = err == IDEM_OK ? meta_number(opening, "schema_version", &version) : err;
        err = err == IDEM_OK ? meta_number(opening, IDEM_META_SCHEMA_MIN, &min_version) : err;
    }
    if (err == IDEM_OK && there != 0 && version == 0) {
        return idem_error_set(opening->reterr, IDEM_E_STORE,
                              "the database's schema idem is not one of ours");
    }
    if (err == IDEM_OK) {
        err = version_check(opening, version, min_version);
    }
    return err == IDEM_OK && there == 0 ? schema_make(opening) : err;
}

/* The configuration is the one that the records were made under. */
static enum idem_err options_check(struct opening *opening)
{
    char stored_memory[META_MAX];
    char asked_memory[DIGEST_HEX_MAX];
    struct idem_buf stored;
    struct idem_buf asked;
    idem_buf_init(&stored, stored_memory, sizeof(stored_memory));
    idem_buf_init(&asked, asked_memory, sizeof(asked_memory));

    enum idem_err err = meta_read(opening, "effect_secret_check", &stored);
    if (err != IDEM_OK) {
        return err;
    }
    struct idem_str text = digest_print(&opening->options->effect_secret_check, &asked);
    if (!idem_str_equal(idem_buf_str(&stored), text)) {
        return idem_error_set(opening->reterr, IDEM_E_STORE,
                              "effect_secret is not the one this store was made with: every key in "
                              "it would be new to the providers; configure the former secret");
    }
    err = meta_read(opening, "scope_rule", &stored);
    if (err != IDEM_OK) {
        return err;
    }
    struct idem_str rule = opening->options->scope_rule;
    if (!idem_str_equal(idem_buf_str(&stored), rule)) {
        return idem_error_set(opening->reterr, IDEM_E_STORE,
                              "scope is \"%.*s\" but this store was made with \"%.*s\": every key "
                              "in it would be new; configure the former scope",
                              (int)rule.len, rule.data, (int)stored.len, stored.data);
    }
    return IDEM_OK;
}

/* An instance met this copy in place of what it had opened. What is missing is asked for first. */
static enum idem_err copy_check(struct opening *opening)
{
    char memory[META_MAX];
    struct idem_buf noticed;
    idem_buf_init(&noticed, memory, sizeof(memory));
    if (opening->options->restored) {
        return say(opening, "DELETE FROM idem.meta WHERE key = '" IDEM_POSTGRES_META_OLDER "'",
                   NULL);
    }
    enum idem_err err = meta_read(opening, IDEM_POSTGRES_META_OLDER, &noticed);
    if (err == IDEM_OK && noticed.len > 0) {
        return idem_error_set(opening->reterr, IDEM_E_STORE,
                              "the database is an older copy of what an instance had opened, and "
                              "has lost what was acknowledged since: stop every instance, then "
                              "start one with --restored");
    }
    return err;
}

static enum idem_err knowledge_read(struct opening *opening)
{
    struct idem_postgres_opening *found = opening->found;
    int64_t restored = 0;
    int64_t memory_since_us = 0;
    int64_t old_effect_ids = 0;
    int64_t has_standbys = 0;
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {
        { "created_us", &found->created_us },
        { IDEM_META_REAP_HORIZON, &found->marks.horizon_us },
        { IDEM_META_CLOCK_SEEN, &found->marks.seen_us },
        { IDEM_META_RESTORED_FROM, &found->restored_from_us },
        { IDEM_META_RESTORED_AT, &found->restored_at_us },
        { IDEM_META_MEMORY_SINCE, &memory_since_us },
        { IDEM_META_RESTORED, &restored },
        { IDEM_META_OLD_EFFECTS, &old_effect_ids },
    };
    enum idem_err err =
        number_ask(opening,
                   "SELECT greatest((SELECT max(updated_us) FROM"
                   " (SELECT updated_us FROM idem.intents ORDER BY row DESC LIMIT 256) i),"
                   " (SELECT max(at_us) FROM (SELECT at_us FROM idem.events"
                   " ORDER BY intent_row DESC, row DESC LIMIT 256) e))",
                   &found->newest_us);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(numbers) && err == IDEM_OK; i++) {
        err = meta_number(opening, numbers[i].name, numbers[i].number);
    }
    found->restored = restored != 0;
    found->memory_since_us =
        memory_since_us > found->created_us ? memory_since_us : found->created_us;
    found->old_effect_ids = old_effect_ids != 0;
    if (err == IDEM_OK) {
        err = number_ask(opening,
                         "SELECT (current_setting('synchronous_standby_names') <> '')::integer",
                         &has_standbys);
    }
    found->has_standbys = has_standbys != 0;
    return err == IDEM_OK
               ? number_ask(opening, "SELECT count(*) FROM idem.stubs", &found->stub_count)
               : err;
}

/* In the mode already: it began where it began. */
static enum idem_err restored_begin(struct opening *opening)
{
    struct idem_postgres_opening *found = opening->found;
    if (!opening->options->restored || found->restored) {
        return IDEM_OK;
    }
    found->restored = true;
    found->restored_from_us = found->newest_us;
    found->restored_at_us = found->opened_us;
    enum idem_err err = meta_number_write(opening, IDEM_META_RESTORED, 1);
    if (err == IDEM_OK) {
        err = meta_number_write(opening, IDEM_META_RESTORED_FROM, found->newest_us);
    }
    return err == IDEM_OK ? meta_number_write(opening, IDEM_META_RESTORED_AT, found->opened_us)
                          : err;
}

static enum idem_err marks_begin(struct opening *opening)
{
    struct idem_postgres_opening *found = opening->found;
    found->marks = idem_run_marks_open(found->marks, found->newest_us, found->opened_us);
    enum idem_err err = meta_number_write(opening, IDEM_META_REAP_HORIZON, found->marks.horizon_us);
    return err == IDEM_OK ? meta_number_write(opening, IDEM_META_CLOCK_SEEN, found->marks.seen_us)
                          : err;
}

/* Anything but a clean COMMIT: nobody knows, and the caller starts anew. */
static enum idem_err commit(struct opening *opening)
{
    PGresult *result = NULL;
    opening->wire->warned = false;
    enum idem_err err = say(opening, "COMMIT", &result);
    bool clean =
        err == IDEM_OK && !opening->wire->warned && strcmp(PQcmdStatus(result), "COMMIT") == 0;
    PQclear(result);
    return clean || err != IDEM_OK ? err : store_error(opening, "cannot write the store");
}

static enum idem_err instance_add(struct opening *opening)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO idem.instances (opened_us, seen_us, schema_version)"
                   " SELECT now_us, now_us, %lld FROM (SELECT"
                   " (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) n(now_us)"
                   " RETURNING id",
                   (long long)opening->schema->version);
    return number_ask(opening, sql, &opening->found->incarnation);
}

static enum idem_err opening_steps(struct opening *opening)
{
    enum idem_err err = schema_open(opening);
    if (err == IDEM_OK) {
        err = options_check(opening);
    }
    if (err == IDEM_OK) {
        err = copy_check(opening);
    }
    if (err == IDEM_OK) {
        err = knowledge_read(opening);
    }
    if (err == IDEM_OK) {
        err = restored_begin(opening);
    }
    if (err == IDEM_OK) {
        err = marks_begin(opening);
    }
    if (err == IDEM_OK) {
        err = instance_add(opening);
    }
    return err == IDEM_OK ? commit(opening) : err;
}

enum idem_err idem_postgres_opening_run(struct idem_postgres_wire *wire,
                                        const struct idem_postgres_settings *settings,
                                        const struct idem_store_options *options,
                                        struct idem_postgres_opening *ret_opening,
                                        struct idem_error *reterr)
{
    struct opening opening = {
        .wire = wire,
        .schema = idem_postgres_schema_of(settings),
        .options = options,
        .found = ret_opening,
        .reterr = reterr,
    };
    *ret_opening = (struct idem_postgres_opening){ .incarnation = 0 };
    if (idem_postgres_session_begin(wire, settings) != IDEM_ROWS_OK) {
        return store_error(&opening, "cannot open the database's store");
    }
    enum idem_err err = transaction_begin(&opening, settings->wait_us);
    if (err == IDEM_OK) {
        err =
            number_ask(&opening, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
                       &ret_opening->opened_us);
    }
    if (err == IDEM_OK && settings->clock_is_ours) {
        ret_opening->opened_us = idem_clock_wall_us(options->clock);
    }
    if (err == IDEM_OK) {
        err = opening_steps(&opening);
    }
    if (err != IDEM_OK) {
        idem_postgres_wire_close(wire); /* The server undoes what was not committed. */
    }
    return err;
}
