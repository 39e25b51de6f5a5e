/*
 * order_sqlite.c - one order, once, in C: a row of the shop's own table, SQLite.
 *
 *     cc -o order order_sqlite.c $(pkg-config --cflags --libs idem sqlite3)
 *     ./order [FILE]                                     default: shop.db
 *
 * Fifty processes place the same order under one key at the same moment, as fifty callers would
 * that lost their answer. The record of the key, the row of `orders` and the answer are one
 * transaction. Ends with 0 if there is one row and everybody was told its number.
 */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "idem/idem.h"

#define CALLERS   50
#define BUSY_MS   30000 /* For how long one waits for the others' transactions. */
#define TRIES_MAX 10

static bool run(sqlite3 *db, const char *sql)
{
    char *text = NULL;
    bool done = sqlite3_exec(db, sql, NULL, NULL, &text) == SQLITE_OK;
    if (!done) {
        (void)fprintf(stderr, "order: %s: %s\n", sql, text != NULL ? text : "no memory");
    }
    sqlite3_free(text);
    return done;
}

static sqlite3 *connect_to(const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK) {
        (void)fprintf(stderr, "order: %s: %s\n", path, sqlite3_errmsg(db));
        (void)sqlite3_close(db);
        return NULL;
    }
    (void)sqlite3_busy_timeout(db, BUSY_MS);
    return db;
}

/* The shop's table and idem's, once, in one transaction. */
static bool tables_make(sqlite3 *db)
{
    struct idem_local local = { .size = sizeof(local), .sqlite = db };
    struct idem_local_error error = { .text = "" };
    if (!run(db, "PRAGMA journal_mode = WAL") || !run(db, "BEGIN IMMEDIATE")) {
        return false;
    }
    if (!run(db,
             "CREATE TABLE IF NOT EXISTS orders"
             " (number INTEGER PRIMARY KEY, item TEXT NOT NULL)") ||
        idem_local_install(&local, &error) != IDEM_LOCAL_OK) {
        (void)fprintf(stderr, "order: %s\n", error.text);
        (void)run(db, "ROLLBACK");
        return false;
    }
    return run(db, "COMMIT");
}

/* The number in the first row; -1: none. */
static long number_read(sqlite3 *db, const char *sql, const char *item)
{
    sqlite3_stmt *statement = NULL;
    long number = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_bind_text(statement, 1, item, -1, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        number = (long)sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return number;
}

/* The work and its answer, in the transaction of the claim. The number, or -1. */
static long order_make(const struct idem_local *local,
                       const struct idem_local_token *token,
                       const char *item)
{
    char body[32];
    struct idem_local_error error = { .text = "" };
    struct idem_local_result result = { .size = sizeof(result) };
    const long number =
        number_read(local->sqlite, "INSERT INTO orders (item) VALUES (?) RETURNING number", item);
    const int len = snprintf(body, sizeof(body), "%ld", number);
    const struct idem_local_answer answer = { .size = sizeof(answer),
                                              .verdict = IDEM_LOCAL_VERDICT_SUCCEEDED,
                                              .status = 201,
                                              .body = body,
                                              .body_size = (size_t)len };
    if (number < 0 ||
        idem_local_complete(local, token, &answer, &result, &error) != IDEM_LOCAL_OK ||
        result.outcome != IDEM_LOCAL_DONE) {
        (void)fprintf(stderr, "order: %s\n", error.text);
        return -1;
    }
    return number;
}

/* One transaction: the order's number, whoever made it; -1: again. */
static long order_try(sqlite3 *db, const char *key)
{
    struct idem_local local = { .size = sizeof(local), .sqlite = db };
    struct idem_local_error error = { .text = "" };
    struct idem_local_fingerprint fingerprint;
    struct idem_local_record *record = NULL;
    long number = -1;
    const struct idem_local_claim claim = { .size = sizeof(claim),
                                            .principal = "shop",
                                            .endpoint = "orders.create",
                                            .key = key,
                                            .fingerprint = fingerprint.bytes,
                                            .fingerprint_size = sizeof(fingerprint.bytes),
                                            .local_only = true };
    if (idem_local_fingerprint_bytes(key, strlen(key), &fingerprint, &error) != IDEM_LOCAL_OK ||
        !run(db, "BEGIN IMMEDIATE")) {
        return -1;
    }
    if (idem_local_claim(&local, &claim, &record, &error) != IDEM_LOCAL_OK) {
        (void)fprintf(stderr, "order: %s\n", error.text);
        (void)run(db, "ROLLBACK");
        return -1;
    }
    if (record->outcome == IDEM_LOCAL_EXECUTE) {
        number = order_make(&local, &record->token, key);
    } else if (record->outcome == IDEM_LOCAL_REPLAY) {
        number = strtol(record->body, NULL, 10);
    }
    idem_local_record_free(record);
    if (number < 0) {
        (void)run(db, "ROLLBACK");
        return -1;
    }
    /* Only what is committed may be told. If that fails, the next try finds out what is there. */
    return run(db, "COMMIT") ? number : -1;
}

/* A caller of its own: says the number on `fd`. */
static int caller_run(const char *path, const char *key, int fd)
{
    sqlite3 *db = connect_to(path);
    long number = -1;
    for (int i = 0; db != NULL && i < TRIES_MAX && number < 0; i++) {
        number = order_try(db, key);
    }
    (void)sqlite3_close(db);
    return write(fd, &number, sizeof(number)) == (ssize_t)sizeof(number) ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "shop.db";
    char key[64];
    int pipe_fds[2];
    int same = 0;
    (void)snprintf(key, sizeof(key), "c-%ld-%ld", (long)time(NULL), (long)getpid());
    sqlite3 *db = connect_to(path);
    bool ready = db != NULL && tables_make(db) && pipe(pipe_fds) == 0;
    (void)sqlite3_close(db); /* A connection does not survive a fork. */
    if (!ready) {
        return 1;
    }
    for (int i = 0; i < CALLERS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            return caller_run(path, key, pipe_fds[1]);
        }
        if (pid < 0) {
            return 1;
        }
    }
    (void)close(pipe_fds[1]);
    db = connect_to(path);
    long told = -1;
    long first = -1;
    while (read(pipe_fds[0], &told, sizeof(told)) == (ssize_t)sizeof(told)) {
        first = first < 0 ? told : first;
        same += told >= 0 && told == first ? 1 : 0;
    }
    while (wait(NULL) > 0) {
    }
    const long rows = number_read(db, "SELECT count(*) FROM orders WHERE item = ?", key);
    (void)printf("c, SQLite: %d callers, %d were told order %ld; rows: %ld\n", CALLERS, same, first,
                 rows);
    (void)sqlite3_close(db);
    return same == CALLERS && rows == 1 ? 0 : 1;
}
