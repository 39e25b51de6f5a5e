/*
 * From one schema version to the next.
 *
 * The next version is one more entry in `migrations` and nothing else here. Its statements run in
 * the transaction that also writes the version, so that an interruption leaves either. A fresh
 * store and a migrated one have the same columns in the same order: new ones stand last, with a
 * default (the tests compare them).
 *
 * Crash points for tests: `migrate-step` after each statement, `migrate-commit-before`,
 * `migrate-commit-after`.
 */
#include "store/sqlite/migrate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/attr.h"
#include "base/bug.h"
#include "base/crash.h"
#include "store/sqlite/file_internal.h"
#include "store/sqlite/schema.h"

#define AUTO_VACUUM_INCREMENTAL 2

/*
 * A case whose intent ended after it was opened was settled by the provider's word, unless it is
 * about a contradiction (2): those stay open.
 */
static const char cases_settle[] =
    "UPDATE cases SET decided_us = intents.finished_us, decided_by = 'provider',"
    "  decision = 'settled later'"
    "  FROM intents WHERE intents.row = cases.intent_row AND intents.state IN (5, 6)"
    "  AND cases.kind <> 2 AND intents.finished_us >= cases.opened_us;";

/*
 * What a copy of such a store has missed may stand in a provider's listing under ids from before
 * ids named scopes. That goes for an empty one too: it is what the copy does not have that counts.
 */
static const char old_effect_ids[] =
    "INSERT INTO meta (key, value) VALUES ('" IDEM_META_OLD_EFFECTS "', '1');";

/* Records that are final get their time for retention. */
static const char *const to_2[] = {
    "ALTER TABLE intents ADD COLUMN trace TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE intents ADD COLUMN reap_us INTEGER NOT NULL DEFAULT 0 CHECK (reap_us >= 0);",
    "UPDATE intents SET reap_us = expires_us WHERE state IN (5, 6);",
    "DROP INDEX intents_due;",
    "CREATE INDEX intents_due ON intents (due_us, state) WHERE due_us > 0;",
    "CREATE INDEX intents_reap ON intents (reap_us) WHERE reap_us > 0;",
    "CREATE INDEX intents_payment ON intents (payment_row) WHERE payment_row > 0;",
    "ALTER TABLE cases ADD COLUMN decided_us INTEGER NOT NULL DEFAULT 0 CHECK (decided_us >= 0);",
    "ALTER TABLE cases ADD COLUMN decided_by TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE cases ADD COLUMN decision TEXT NOT NULL DEFAULT '';",
    cases_settle,
    old_effect_ids,
    "CREATE INDEX cases_open ON cases (intent_row) WHERE decided_us = 0;",
    IDEM_SQLITE_STUBS,
    IDEM_SQLITE_STUBS_ORDER,
    IDEM_SQLITE_STUBS_PAYMENT,
    IDEM_SQLITE_CREDENTIALS,
};

/* What providers tell, and what merchants are told. */
static const char *const to_3[] = {
    IDEM_SQLITE_INBOX,
    IDEM_SQLITE_INBOX_LAST,
    IDEM_SQLITE_WEBHOOKS,
    IDEM_SQLITE_WEBHOOKS_PRINCIPAL,
    IDEM_SQLITE_MESSAGES,
    IDEM_SQLITE_MESSAGES_AT,
    IDEM_SQLITE_DELIVERIES,
    IDEM_SQLITE_DELIVERIES_DUE,
    IDEM_SQLITE_DELIVERIES_ORDER,
    IDEM_SQLITE_DELIVERIES_STATE,
    IDEM_SQLITE_DELIVERIES_WEBHOOK,
};

/* migrations[n] leads from version n + 1 to n + 2. */
static const struct {
    const char *const *statements;
    size_t count;
} migrations[] = {
    { to_2, IDEM_ARRAY_COUNT(to_2) },
    { to_3, IDEM_ARRAY_COUNT(to_3) },
};

_Static_assert(IDEM_ARRAY_COUNT(migrations) == IDEM_SQLITE_SCHEMA_VERSION - 1,
               "one migration for every version but the first");

static enum idem_err statements_run(sqlite3 *handle, int64_t from, struct idem_error *reterr)
{
    enum idem_err err = IDEM_OK;
    for (size_t i = 0; i < migrations[from - 1].count && err == IDEM_OK; i++) {
        err = idem_sqlite_database_exec(handle, migrations[from - 1].statements[i],
                                        "cannot migrate the store", reterr);
        idem_crash_point("migrate-step");
    }
    return err;
}

static enum idem_err versions_run(sqlite3 *handle, int64_t from, struct idem_error *reterr)
{
    char version[16];
    enum idem_err err =
        idem_sqlite_database_exec(handle, "BEGIN IMMEDIATE", "cannot write the store", reterr);
    for (int64_t at = from; at < IDEM_SQLITE_SCHEMA_VERSION && err == IDEM_OK; at++) {
        err = statements_run(handle, at, reterr);
    }
    (void)snprintf(version, sizeof(version), "%d", IDEM_SQLITE_SCHEMA_VERSION);
    if (err == IDEM_OK) {
        err = idem_sqlite_meta_write(handle, "schema_version", idem_str_from(version), reterr);
    }
    if (err == IDEM_OK) {
        idem_crash_point("migrate-commit-before");
        err = idem_sqlite_database_exec(handle, "COMMIT", "cannot write the store", reterr);
        idem_crash_point("migrate-commit-after");
    }
    return err; /* Closing the connection undoes what was not committed. */
}

/* The rewrite needs a copy in a temporary file and one in the log. */
static enum idem_err space_check(sqlite3 *handle,
                                 const char *path,
                                 int64_t *ret_needed,
                                 struct idem_error *reterr)
{
    int64_t pages = 0;
    struct statvfs disk;
    int rc = idem_sqlite_value_read(handle, "PRAGMA page_count", &pages, NULL);
    if (rc != SQLITE_OK) {
        return idem_sqlite_database_error(handle, "cannot read the store", reterr);
    }
    if (statvfs(path, &disk) != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "cannot look at the disk of %s: %s", path,
                              strerror(errno));
    }
    *ret_needed = 2 * pages * IDEM_SQLITE_PAGE_SIZE;
    uint64_t available = (uint64_t)disk.f_bavail * disk.f_frsize;
    return available >= (uint64_t)*ret_needed
               ? IDEM_OK
               : idem_error_set(reterr, IDEM_E_STORE,
                                "the file is rewritten once, which needs %lld MB of free disk "
                                "beside %s, and there are %llu MB; nothing was changed",
                                (long long)(*ret_needed / 1000000) + 1, path,
                                (unsigned long long)(available / 1000000));
}

static enum idem_err rewrite(sqlite3 *handle, struct idem_error *reterr)
{
    enum idem_err err = idem_sqlite_database_exec(
        handle, "PRAGMA temp_store = FILE; PRAGMA auto_vacuum = INCREMENTAL; VACUUM;",
        "the store is migrated and can be served, but the rewrite failed; run this again when "
        "there is room",
        reterr);
    return err == IDEM_OK ? idem_sqlite_checkpoint_fully(handle, reterr) : err;
}

/* What is there is a store that this program can bring forward. */
static enum idem_err version_check(const char *path, int64_t version, struct idem_error *reterr)
{
    if (version == 0) {
        return idem_error_set(reterr, IDEM_E_STORE, "%s is empty: there is nothing to migrate",
                              path);
    }
    if (version > IDEM_SQLITE_SCHEMA_VERSION) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "%s has schema version %lld and this idem knows %d; there is no way "
                              "back: use the idem that wrote it",
                              path, (long long)version, IDEM_SQLITE_SCHEMA_VERSION);
    }
    return IDEM_OK;
}

static enum idem_err opened_migrate(sqlite3 *handle,
                                    const char *path,
                                    const struct idem_sqlite_listener *listener,
                                    struct idem_sqlite_migrated *migrated,
                                    struct idem_error *reterr)
{
    int64_t auto_vacuum = 0;
    int64_t needed = 0;
    int rc = idem_sqlite_value_read(handle, "PRAGMA auto_vacuum", &auto_vacuum, NULL);
    if (rc != SQLITE_OK) {
        return idem_sqlite_database_error(handle, "cannot read the store", reterr);
    }
    migrated->rewritten = auto_vacuum != AUTO_VACUUM_INCREMENTAL;
    enum idem_err err = migrated->rewritten ? space_check(handle, path, &needed, reterr) : IDEM_OK;
    if (err == IDEM_OK && migrated->from < migrated->to) {
        err = versions_run(handle, migrated->from, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sqlite_checkpoint_fully(handle, reterr);
    }
    if (err != IDEM_OK || !migrated->rewritten) {
        return err;
    }
    char line[160];
    (void)snprintf(line, sizeof(line),
                   "rewriting the file once, so that it can give free pages back; this takes up to "
                   "%lld MB of disk",
                   (long long)(needed / 1000000) + 1);
    listener->say(listener->context, line);
    return rewrite(handle, reterr);
}

enum idem_err idem_sqlite_migrate(const char *path,
                                  const struct idem_sqlite_listener *listener,
                                  struct idem_sqlite_migrated *ret_migrated,
                                  struct idem_error *reterr)
{
    struct idem_sqlite_file file;
    struct idem_sqlite_migrated migrated = { .to = IDEM_SQLITE_SCHEMA_VERSION };
    char *absolute = NULL;
    enum idem_err err = idem_sqlite_file_lock(&file, path, false, &absolute, reterr);
    if (err == IDEM_OK) {
        err = idem_sqlite_log_renew(absolute, file.database_fd, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sqlite_database_open(absolute, SQLITE_OPEN_READWRITE, &file.writer, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sqlite_owner_check(file.writer, absolute, &migrated.from, reterr);
    }
    if (err == IDEM_OK) {
        err = version_check(absolute, migrated.from, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sqlite_writer_setup(file.writer, false, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sqlite_checkpoint_fully(file.writer, reterr);
    }
    if (err == IDEM_OK) {
        err = opened_migrate(file.writer, absolute, listener, &migrated, reterr);
    }
    idem_sqlite_file_close(&file);
    free(absolute);
    if (err == IDEM_OK) {
        *ret_migrated = migrated;
    }
    return err;
}
