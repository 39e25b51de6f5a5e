/*
 * postgres_wire.h - one statement on the caller's connection, with a deadline.
 *
 * Values come in binary: bytes as they are, text as UTF-8, numbers as int8. So a statement casts
 * what it gives to text, bytea, int8 or bool.
 */
#ifndef IDEM_LOCAL_POSTGRES_WIRE_H
#define IDEM_LOCAL_POSTGRES_WIRE_H

#include "base/attr.h"
#include "idem/idem.h"
#include "local/row.h"

#define IDEM_LOCAL_PARAMS_MAX 16

struct pg_result; /* libpq-fe.h calls it PGresult. */

/* Parameters in their order: $1 is the first that is added. */
struct idem_local_params {
    int count;
    const char *values[IDEM_LOCAL_PARAMS_MAX];
    int lengths[IDEM_LOCAL_PARAMS_MAX];
    int formats[IDEM_LOCAL_PARAMS_MAX];
    char numbers[IDEM_LOCAL_PARAMS_MAX][40]; /* Of those that are numbers, or uuids, as text. */
};

void idem_local_params_add_text(struct idem_local_params *params, struct idem_str terminated);
/* Empty text is NULL. */
void idem_local_params_add_option(struct idem_local_params *params, struct idem_str terminated);
void idem_local_params_add_bytes(struct idem_local_params *params, struct idem_str bytes);
void idem_local_params_add_i64(struct idem_local_params *params, int64_t number);
void idem_local_params_add_uid(struct idem_local_params *params, struct idem_uid uid);

/*
 * Runs it in the caller's transaction. Gives a result with rows, to be cleared (PQclear); or an
 * error, which says what became of the transaction.
 */
enum idem_local_err idem_local_postgres_ask(const struct idem_local *local,
                                            const char *sql,
                                            const struct idem_local_params *params,
                                            struct pg_result **ret_result,
                                            struct idem_local_error *reterr) IDEM_MUST_CHECK;

/* Values of a row, NULL is empty or zero. Borrowed from the result. */
struct idem_str idem_local_postgres_text(const struct pg_result *result, int row, int column);
int64_t idem_local_postgres_i64(const struct pg_result *result, int row, int column);
bool idem_local_postgres_is_null(const struct pg_result *result, int row, int column);

#endif /* IDEM_LOCAL_POSTGRES_WIRE_H */
