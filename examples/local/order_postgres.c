/*
 * order_postgres.c - one order, once, in C: a row of the shop's own table, PostgreSQL.
 *
 *     cc -o order order_postgres.c $(pkg-config --cflags --libs idem libpq) -pthread
 *     DATABASE_URL=postgres://shop@host/database ./order
 *
 * Fifty threads place the same order under one key at the same moment, each on a connection of its
 * own, as fifty callers would that lost their answer. The record of the key, the row of `orders`
 * (orders.sql) and the answer are one transaction. Ends with 0 if there is one row and everybody
 * was told its number.
 */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "idem/idem.h"

#define CALLERS   50
#define TRIES_MAX 20

struct caller {
    pthread_t thread;
    pthread_barrier_t *start;
    PGconn *connection;
    const char *key;
    char number[32]; /* Of the order, as it was told. */
};

static bool run(PGconn *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!done) {
        (void)fprintf(stderr, "order: %s: %s", sql, PQerrorMessage(connection));
    }
    PQclear(result);
    return done;
}

/* The number of the new row. */
static bool order_insert(struct caller *caller)
{
    PGresult *result =
        PQexecParams(caller->connection, "INSERT INTO orders (item) VALUES ($1) RETURNING number",
                     1, NULL, &caller->key, NULL, NULL, 0);
    bool done = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
    if (done) {
        (void)snprintf(caller->number, sizeof(caller->number), "%s", PQgetvalue(result, 0, 0));
    }
    PQclear(result);
    return done;
}

/* The work and its answer, in the transaction of the claim. */
static bool order_make(const struct idem_local *local,
                       const struct idem_local_token *token,
                       struct caller *caller)
{
    struct idem_local_error error = { .text = "" };
    struct idem_local_result result = { .size = sizeof(result) };
    struct idem_local_answer answer = { .size = sizeof(answer),
                                        .verdict = IDEM_LOCAL_VERDICT_SUCCEEDED,
                                        .status = 201 };
    if (!order_insert(caller)) {
        return false;
    }
    answer.body = caller->number;
    answer.body_size = strlen(caller->number);
    return idem_local_complete(local, token, &answer, &result, &error) == IDEM_LOCAL_OK &&
           result.outcome == IDEM_LOCAL_DONE;
}

/* One transaction. True: the number is told, and safe. False: again, after `*ret_pause_ms`. */
static bool order_try(struct caller *caller, int64_t *ret_pause_ms)
{
    struct idem_local local = { .size = sizeof(local), .postgres = caller->connection };
    struct idem_local_error error = { .text = "" };
    struct idem_local_fingerprint fingerprint;
    struct idem_local_record *record = NULL;
    bool told = false;
    struct idem_local_claim claim = { .size = sizeof(claim),
                                      .principal = "shop",
                                      .endpoint = "orders.create",
                                      .key = caller->key,
                                      .fingerprint = fingerprint.bytes,
                                      .fingerprint_size = sizeof(fingerprint.bytes),
                                      .local_only = true };
    *ret_pause_ms = 100;
    if (idem_local_fingerprint_bytes(caller->key, strlen(caller->key), &fingerprint, &error) !=
            IDEM_LOCAL_OK ||
        !run(caller->connection, "BEGIN")) {
        return false;
    }
    if (idem_local_claim(&local, &claim, &record, &error) != IDEM_LOCAL_OK) {
        (void)fprintf(stderr, "order: %s\n", error.text);
        (void)run(caller->connection, "ROLLBACK");
        return false;
    }
    if (record->outcome == IDEM_LOCAL_EXECUTE) {
        told = order_make(&local, &record->token, caller);
    } else if (record->outcome == IDEM_LOCAL_REPLAY) {
        (void)snprintf(caller->number, sizeof(caller->number), "%s", (const char *)record->body);
        told = true;
    } else if (record->outcome == IDEM_LOCAL_IN_PROGRESS) {
        *ret_pause_ms = record->retry_after_ms;
    }
    idem_local_record_free(record);
    /* Only what is committed may be told. If that fails, the next try finds out what is there. */
    return run(caller->connection, told ? "COMMIT" : "ROLLBACK") && told;
}

static void *caller_run(void *argument)
{
    struct caller *caller = argument;
    bool told = false;
    (void)pthread_barrier_wait(caller->start);
    for (int i = 0; i < TRIES_MAX && !told; i++) {
        int64_t pause_ms = 0;
        told = order_try(caller, &pause_ms);
        if (!told) {
            const struct timespec pause = { .tv_sec = pause_ms / 1000,
                                            .tv_nsec = pause_ms % 1000 * 1000000 };
            caller->number[0] = '\0';
            (void)nanosleep(&pause, NULL);
        }
    }
    return NULL;
}

/* How many rows there are of that order. */
static int rows_count(struct caller *caller)
{
    PGresult *result =
        PQexecParams(caller->connection, "SELECT count(*) FROM orders WHERE item = $1", 1, NULL,
                     &caller->key, NULL, NULL, 0);
    int count = PQresultStatus(result) == PGRES_TUPLES_OK ? atoi(PQgetvalue(result, 0, 0)) : -1;
    PQclear(result);
    return count;
}

int main(void)
{
    static struct caller callers[CALLERS];
    pthread_barrier_t start;
    char key[64];
    int same = 0;
    const char *url = getenv("DATABASE_URL");
    (void)snprintf(key, sizeof(key), "c-%ld-%ld", (long)time(NULL), (long)getpid());
    if (url == NULL || pthread_barrier_init(&start, NULL, CALLERS) != 0) {
        (void)fputs("order: set DATABASE_URL\n", stderr);
        return 1;
    }
    for (int i = 0; i < CALLERS; i++) {
        callers[i].connection = PQconnectdb(url);
        callers[i].start = &start;
        callers[i].key = key;
        if (PQstatus(callers[i].connection) != CONNECTION_OK) {
            (void)fprintf(stderr, "order: %s", PQerrorMessage(callers[i].connection));
            return 1;
        }
    }
    for (int i = 0; i < CALLERS; i++) {
        if (pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]) != 0) {
            return 1; /* The barrier would wait for it; the process ends instead. */
        }
    }
    for (int i = 0; i < CALLERS; i++) {
        (void)pthread_join(callers[i].thread, NULL);
        same += callers[i].number[0] != '\0' && strcmp(callers[i].number, callers[0].number) == 0
                    ? 1
                    : 0;
    }
    const int rows = rows_count(&callers[0]);
    (void)printf("c, PostgreSQL: %d callers, %d were told order %s; rows: %d\n", CALLERS, same,
                 callers[0].number, rows);
    for (int i = 0; i < CALLERS; i++) {
        PQfinish(callers[i].connection);
    }
    return same == CALLERS && rows == 1 ? 0 : 1;
}
