/*
 * fill - puts finished payments into a store that the service has made and nobody has open.
 *
 *     fill --store PATH --rows N
 *
 * The rows are those of raw.c. Nothing is flushed before the end: a fill that was interrupted
 * leaves a store to throw away.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/payment_rows.h"
#include "bench/wire.h"

#define TRANSACTION_ROWS 50000

static void rows_write(sqlite3 *database, struct bench_rows *rows, uint64_t from, uint64_t to)
{
    bench_sql(database, "BEGIN IMMEDIATE");
    for (uint64_t number = from; number < to; number++) {
        struct bench_payment payment;
        bench_rows_accept(rows, number, false, &payment);
        bench_rows_settle(rows, &payment, false);
    }
    bench_sql(database, "COMMIT");
}

static const struct option long_options[] = {
    { "store", required_argument, NULL, 's' },
    { "rows", required_argument, NULL, 'r' },
    { NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
    const char *store = NULL;
    uint64_t count = 0;
    sqlite3 *database = NULL;
    int letter;
    while ((letter = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (letter == 's') {
            store = optarg;
        } else if (letter == 'r') {
            count = strtoull(optarg, NULL, 10);
        }
    }
    if (store == NULL || optind != argc || count == 0) {
        (void)fputs("fill --store PATH --rows N\n", stderr);
        return 2;
    }
    if (sqlite3_open_v2(store, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        (void)fprintf(stderr, "fill: %s: %s\n", store, sqlite3_errmsg(database));
        return 1;
    }
    bench_sql(database,
              "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY;"
              "PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000;");
    struct bench_rows *rows =
        bench_rows_create(database, (uint32_t)bench_mix((uint64_t)time(NULL)));
    for (uint64_t from = 0; from < count; from += TRANSACTION_ROWS) {
        uint64_t to = count - from < TRANSACTION_ROWS ? count : from + TRANSACTION_ROWS;
        rows_write(database, rows, from, to);
    }
    bench_rows_destroy(rows);
    bench_sql(database, "PRAGMA journal_mode = WAL");
    return sqlite3_close(database) == SQLITE_OK ? 0 : 1;
}
