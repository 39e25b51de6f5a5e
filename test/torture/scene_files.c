/*
 * What is made of a store beside serving it: a backup, a newer version, its secrets. The commands
 * are the program's own.
 *
 *   backup   exit status 0: the copy is whole and its secrets are there; otherwise there is no
 *            copy, unless the name of a file could not be taken back; and later one can be made
 *   migrate  the version from before or the new one, with every row; 0: the new one; and later the
 *            new one
 *   secrets  what was told once is told for ever; after a failure there is a whole file or none
 */
#include <getopt.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "base/attr.h"
#include "daemon/commands.h"
#include "daemon/secrets.h"
#include "store/sqlite/schema.h"
#include "torture/place.h"
#include "torture/scene.h"
#include "torture/world.h"

#define PATH_SIZE 128

const char *torture_schema_1;

static enum idem_exit status; /* Of the last command. */
static struct idem_secrets first;
static bool first_told;

static const char *path_of(char path[PATH_SIZE], const char *name)
{
    (void)snprintf(path, PATH_SIZE, "%s/%s", torture_directory, name);
    return path;
}

static bool is_there(const char *name)
{
    char path[PATH_SIZE];
    struct stat info;
    return stat(path_of(path, name), &info) == 0;
}

/* The first column of the first row; -1 if it cannot be had. */
static int64_t number(const char *name, const char *sql)
{
    char path[PATH_SIZE];
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_open_v2(path_of(path, name), &handle, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        value = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement); /* These repeat what went wrong before. */
    (void)sqlite3_close(handle);
    return value;
}

static void number_expect(const char *name, const char *sql, int64_t expected)
{
    int64_t value = number(name, sql);
    if (value != expected) {
        torture_violation("%s: %s: %lld, and it should be %lld", name, sql, (long long)value,
                          (long long)expected);
    }
}

static void store_remove(const char *name)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(suffixes); i++) {
        char file[PATH_SIZE];
        (void)snprintf(file, sizeof(file), "%s%s", name, suffixes[i]);
        torture_file_remove(file);
    }
}

static enum idem_err secrets_read(const char *name, struct idem_secrets *ret_secrets)
{
    char path[PATH_SIZE];
    char store[PATH_SIZE];
    struct idem_error error;
    struct idem_random random;
    const struct idem_secrets_place place = {
        .path = path_of(path, name),
        .store_path = path_of(store, "no.db"),
        .new_store = true,
    };
    idem_random_init_system(&random);
    return idem_secrets_open(&place, &random, ret_secrets, &error);
}

static bool same(const struct idem_secrets *left, const struct idem_secrets *right)
{
    return left->fingerprint_count == right->fingerprint_count &&
           memcmp(left->effect, right->effect, sizeof(left->effect)) == 0 &&
           memcmp(left->fingerprints[0].bytes, right->fingerprints[0].bytes,
                  sizeof(left->fingerprints[0].bytes)) == 0;
}

/* ---- secrets ---- */

static void secrets_begin(void)
{
}

static void secrets_prepare(void)
{
    torture_file_remove("fresh.secrets");
    first_told = false;
}

static void secrets_play(void)
{
    struct idem_secrets second;
    first_told = secrets_read("fresh.secrets", &first) == IDEM_OK;
    if (first_told && torture_flushes_failed() > 0) {
        torture_violation("the secrets are told although a flush failed");
    }
    if (first_told && secrets_read("fresh.secrets", &second) == IDEM_OK && !same(&first, &second)) {
        torture_violation("the secrets are others when they are read again");
    }
}

static void secrets_judge(void)
{
    struct idem_secrets last;
    if (secrets_read("fresh.secrets", &last) != IDEM_OK) {
        torture_violation("the secrets can be neither read nor made");
    } else if (first_told && !same(&first, &last)) {
        torture_violation("the secrets are not those that were told");
    }
}

/* ---- backup ---- */

static void backup_begin(void)
{
    struct idem_error error;
    struct idem_digester *digester = NULL;
    world_init();
    store_remove("store.db");
    torture_file_remove("store.db.secrets");
    if (secrets_read("store.db.secrets", &first) != IDEM_OK ||
        idem_digester_create(&digester, &error) != IDEM_OK) {
        torture_violation("there are no secrets");
        return;
    }
    struct idem_str effect = { .data = (const char *)first.effect, .len = sizeof(first.effect) };
    world_secret_check = idem_api_effect_secret_check(digester, effect);
    idem_digester_destroy(digester);
    if (world_open(&error) != IDEM_OK) {
        torture_violation("it does not open: %s", error.text);
        return;
    }
    (void)world_ask(DEED_OLD);
    (void)world_ask(DEED_HELD);
    world_close();
}

static void copies_remove(void)
{
    store_remove("copy.db");
    store_remove("copy.db.part");
    torture_file_remove("copy.db.secrets");
    torture_file_remove("copy.db.secrets.part");
}

static void backup_play(void)
{
    char store[PATH_SIZE + 8];
    char copy[PATH_SIZE];
    char words[][16] = { "backup", "--store", "--to" };
    (void)snprintf(store, sizeof(store), "sqlite:%s/store.db", torture_directory);
    (void)path_of(copy, "copy.db");
    char *arguments[] = { words[0], words[1], store, words[2], copy, NULL };
    optind = 0; /* getopt begins anew. */
    status = idem_command_backup(5, arguments);
}

/* The command has said that all is well. */
static void flushes_judge(void)
{
    if (torture_flushes_failed() > 0) {
        torture_violation("exit status 0 although a flush failed");
    }
}

static void copy_judge(void)
{
    struct idem_secrets copied;
    number_expect("copy.db", "SELECT count(*) FROM payments", 2);
    number_expect("copy.db", "SELECT count(*) FROM pragma_quick_check WHERE quick_check = 'ok'", 1);
    if (secrets_read("copy.db.secrets", &copied) != IDEM_OK || !same(&first, &copied)) {
        torture_violation("the secrets of the copy are not those of the store");
    }
}

static void backup_judge(void)
{
    if (status == IDEM_EXIT_OK) {
        copy_judge();
        flushes_judge();
    } else if (status != IDEM_EXIT_START) {
        torture_violation("backup: exit status %d", (int)status);
    } else if (is_there("copy.db") && !torture_names_fail()) {
        torture_violation("backup: there is a copy, and it was said that there is none");
    }
    copies_remove();
    number_expect("store.db", "SELECT count(*) FROM payments", 2);
    backup_play();
    if (status != IDEM_EXIT_OK) {
        torture_violation("backup: another one, later: exit status %d", (int)status);
    }
    copy_judge();
    copies_remove();
}

/* ---- migrate ---- */

static void migrate_begin(void)
{
    char path[PATH_SIZE];
    sqlite3 *handle = NULL;
    store_remove("former.db");
    int rc = sqlite3_open(path_of(path, "former.db"), &handle);
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(handle, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(handle, torture_schema_1, NULL, NULL, NULL);
    }
    if (sqlite3_close(handle) != SQLITE_OK || rc != SQLITE_OK) {
        torture_violation("the former version cannot be made");
    }
}

static void migrate_prepare(void)
{
    store_remove("old.db");
    torture_file_copy("former.db", "old.db");
}

static void migrate_play(void)
{
    char store[PATH_SIZE + 8];
    char words[][16] = { "migrate", "--store" };
    (void)snprintf(store, sizeof(store), "sqlite:%s/old.db", torture_directory);
    char *arguments[] = { words[0], words[1], store, NULL };
    optind = 0; /* getopt begins anew. */
    status = idem_command_migrate(3, arguments);
}

static void rows_judge(void)
{
    number_expect("old.db", "SELECT count(*) FROM intents", 16);
    number_expect("old.db", "SELECT count(*) FROM payments", 11);
    number_expect("old.db", "SELECT count(*) FROM refunds", 2);
    number_expect("old.db", "SELECT count(*) FROM sends", 14);
    number_expect("old.db", "SELECT count(*) FROM events", 47);
    number_expect("old.db", "SELECT count(*) FROM cases", 3);
}

static void migrate_judge(void)
{
    static const char version[] = "SELECT value FROM meta WHERE key = 'schema_version'";
    int64_t found = number("old.db", version);
    if (found != 1 && found != IDEM_SQLITE_SCHEMA_VERSION) {
        torture_violation("migrate: the version is %lld", (long long)found);
    } else if (status == IDEM_EXIT_OK && found != IDEM_SQLITE_SCHEMA_VERSION) {
        torture_violation("migrate: said to be done, and it is not");
    } else if (status == IDEM_EXIT_OK) {
        flushes_judge();
    } else if (status != IDEM_EXIT_OK && status != IDEM_EXIT_START) {
        torture_violation("migrate: exit status %d", (int)status);
    }
    rows_judge();
    migrate_play();
    if (status != IDEM_EXIT_OK) {
        torture_violation("migrate: again, later: exit status %d", (int)status);
    }
    number_expect("old.db", version, IDEM_SQLITE_SCHEMA_VERSION);
    rows_judge();
}

const struct torture_scene torture_scenes_files[] = {
    { "secrets", secrets_begin, secrets_prepare, secrets_play, secrets_judge },
    { "backup", backup_begin, copies_remove, backup_play, backup_judge },
    { "migrate", migrate_begin, migrate_prepare, migrate_play, migrate_judge },
};
const size_t torture_scenes_files_count = IDEM_ARRAY_COUNT(torture_scenes_files);
