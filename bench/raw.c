/*
 * raw - the limit: the same durable work for a payment as the service does, and nothing else.
 *
 * One thread on one store. A transaction accepts some new payments and settles those that the
 * transaction before it accepted, so a payment costs two commits, and every commit is flushed, as
 * in the service. --batch is the mean number of steps (accepts and settles) in a transaction: take
 * the one that the service had. Without HTTP, without a decision, without a provider.
 *
 *     raw --store PATH [--seconds S] [--batch N] [--look]
 *
 * --look also reads what the service reads before it decides: intent by scope and payment by order
 * number at the accept; intent, sends and payment at the settle. The report is one line of JSON.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/payment_rows.h"
#include "bench/wire.h"

#define ACCEPTS_MAX 1024

struct raw {
    sqlite3 *database;
    struct bench_rows *rows;
    struct bench_payment accepted[ACCEPTS_MAX];
    size_t accepted_count;
    uint64_t payments;
    uint64_t transactions;
    bool look;
};

static double clock_s(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now); /* Both that are asked for always exist. */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void transaction_run(struct raw *raw, size_t accepts)
{
    struct bench_payment before[ACCEPTS_MAX];
    size_t before_count = raw->accepted_count;
    for (size_t i = 0; i < before_count; i++) {
        before[i] = raw->accepted[i];
    }
    bench_sql(raw->database, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < accepts; i++) {
        bench_rows_accept(raw->rows, raw->payments + before_count + i, raw->look,
                          &raw->accepted[i]);
    }
    for (size_t i = 0; i < before_count; i++) {
        bench_rows_settle(raw->rows, &before[i], raw->look);
    }
    bench_sql(raw->database, "COMMIT");
    raw->accepted_count = accepts;
    raw->payments += before_count;
    raw->transactions += 1;
}

static void run(struct raw *raw, double seconds, double batch)
{
    double begin = clock_s(CLOCK_MONOTONIC);
    double cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    double owed = 0;
    while (clock_s(CLOCK_MONOTONIC) - begin < seconds) {
        owed += batch / 2;
        size_t accepts = owed < 1 ? 1 : (size_t)owed;
        owed -= (double)accepts;
        transaction_run(raw, accepts < ACCEPTS_MAX ? accepts : ACCEPTS_MAX);
    }
    double took = clock_s(CLOCK_MONOTONIC) - begin;
    cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    uint64_t payments = raw->payments;
    uint64_t transactions = raw->transactions;
    transaction_run(raw, 0); /* What was accepted last does not stay open. */
    (void)printf("{\"rate\":%.0f,\"batch\":%.1f,\"transactions\":%" PRIu64 ",\"cpu_us\":%.2f}\n",
                 (double)payments / took, batch, transactions, cpu * 1e6 / (double)payments);
}

static const struct option long_options[] = {
    { "store", required_argument, NULL, 's' },
    { "seconds", required_argument, NULL, 't' },
    { "batch", required_argument, NULL, 'b' },
    { "look", no_argument, NULL, 'l' },
    { NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
    static struct raw raw;
    const char *store = NULL;
    double seconds = 5;
    double batch = 64;
    int letter;
    while ((letter = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (letter == 's') {
            store = optarg;
        } else if (letter == 't') {
            seconds = strtod(optarg, NULL);
        } else if (letter == 'b') {
            batch = strtod(optarg, NULL);
        } else if (letter == 'l') {
            raw.look = true;
        }
    }
    if (store == NULL || optind != argc || seconds <= 0 || batch <= 0) {
        (void)fputs("raw --store PATH [--seconds S] [--batch N] [--look]\n", stderr);
        return 2;
    }
    if (sqlite3_open_v2(store, &raw.database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        (void)fprintf(stderr, "raw: %s: %s\n", store, sqlite3_errmsg(raw.database));
        return 1;
    }
    bench_sql(raw.database,
              "PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;"
              "PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 1000;");
    raw.rows = bench_rows_create(raw.database, (uint32_t)bench_mix((uint64_t)time(NULL)));
    run(&raw, seconds, batch);
    bench_rows_destroy(raw.rows);
    return sqlite3_close(raw.database) == SQLITE_OK ? 0 : 1;
}
