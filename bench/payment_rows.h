/*
 * payment_rows.h - one payment's rows as the service writes them, for programs that write them
 * without the service.
 *
 * Two steps, as in the service: accept inserts payment, intent, send and one event; settle updates
 * three of them and adds two events. Texts are as long as real ones. Names and numbers follow from
 * seed and number.
 */
#ifndef IDEM_BENCH_PAYMENT_ROWS_H
#define IDEM_BENCH_PAYMENT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

/* An accepted payment that is to be settled. */
struct bench_payment {
    uint64_t number;
    int64_t intent_row;
    int64_t payment_row;
};

struct bench_rows;

/* Prepares the statements. `seed` keeps different runs on one store apart. Errors end the program.
 */
struct bench_rows *bench_rows_create(sqlite3 *database, uint32_t seed);
void bench_rows_destroy(struct bench_rows *rows);

/* `look`: also reads what the service reads before it decides. */
void bench_rows_accept(struct bench_rows *rows,
                       uint64_t number,
                       bool look,
                       struct bench_payment *ret_payment);
void bench_rows_settle(struct bench_rows *rows, const struct bench_payment *payment, bool look);

/* Runs SQL; errors end the program. */
void bench_sql(sqlite3 *database, const char *sql);
void bench_done(sqlite3 *database, sqlite3_stmt *statement);

#endif /* IDEM_BENCH_PAYMENT_ROWS_H */
