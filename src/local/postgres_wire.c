/*
 * The caller's connection is blocking or not, as the caller likes; while a statement of ours is
 * under way it is not, and nothing is waited for beyond the deadline. A server that has been silent
 * for that long may still be at it: the connection stays busy and is good for PQfinish only. That
 * is safe, because COMMIT is the caller's: without it nothing of this will count.
 */
#include "local/postgres_wire.h"

#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/clock.h"
#include "local/fail.h"

#define WAIT_DEFAULT_MS 30000
#define WAIT_MAX_MS     INT64_C(86400000)

/* What SQLSTATEs mean, by their first characters; the longest that fits counts, hence the order. */
struct meaning {
    const char *state;
    enum idem_local_err err;
    const char *advice;
};

static const struct meaning meanings[] = {
    { "22023", IDEM_LOCAL_E_INVALID, "the transaction has failed: roll back" },
    { "55P03", IDEM_LOCAL_E_BUSY, "roll back, and run the transaction again" },
    { "40", IDEM_LOCAL_E_BUSY, "roll back, and run the transaction again" },
    { "42501", IDEM_LOCAL_E_INVALID, "an operator must allow this role (docs/sql.md); roll back" },
    { "42883", IDEM_LOCAL_E_INSTALL, "install sql/idem.sql of this version; roll back" },
    { "3F000", IDEM_LOCAL_E_INSTALL, "install sql/idem.sql; roll back" },
    { "", IDEM_LOCAL_E_DATABASE, "nothing of it will be committed: roll back" },
};

static int next_param(struct idem_local_params *params, const char *value, int length, int format)
{
    const int index = params->count;
    IDEM_ASSERT(index < IDEM_LOCAL_PARAMS_MAX);
    params->values[index] = value;
    params->lengths[index] = length;
    params->formats[index] = format;
    params->count++;
    return index;
}

void idem_local_params_add_text(struct idem_local_params *params, struct idem_str terminated)
{
    (void)next_param(params, terminated.len > 0 ? terminated.data : "", 0, 0);
}

void idem_local_params_add_option(struct idem_local_params *params, struct idem_str terminated)
{
    (void)next_param(params, terminated.len > 0 ? terminated.data : NULL, 0, 0);
}

void idem_local_params_add_bytes(struct idem_local_params *params, struct idem_str bytes)
{
    (void)next_param(params, bytes.len > 0 ? bytes.data : "", (int)bytes.len, 1);
}

void idem_local_params_add_i64(struct idem_local_params *params, int64_t number)
{
    char *text = params->numbers[next_param(params, NULL, 0, 0)];
    (void)snprintf(text, sizeof(params->numbers[0]), "%lld", (long long)number);
    params->values[params->count - 1] = text;
}

void idem_local_params_add_uid(struct idem_local_params *params, struct idem_uid uid)
{
    struct idem_buf buf;
    char *text = params->numbers[next_param(params, NULL, 0, 0)];
    idem_buf_init(&buf, text, sizeof(params->numbers[0]));
    idem_uid_print(uid, &buf);
    idem_buf_add_char(&buf, '\0');
    IDEM_ASSERT(!buf.full);
    params->values[params->count - 1] = text;
}

/* Text of libpq and of servers ends in a line feed. */
static int line_len(const char *text)
{
    return (int)strcspn(text, "\n");
}

static enum idem_local_err connection_fail(const struct idem_local *local,
                                           struct idem_local_error *reterr)
{
    const char *text = PQerrorMessage(local->postgres);
    return idem_local_fail(reterr, IDEM_LOCAL_E_DATABASE,
                           "%.*s: nothing of this transaction will be committed; close the "
                           "connection",
                           line_len(text), text);
}

static enum idem_local_err result_fail(const PGresult *result, struct idem_local_error *reterr)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const struct meaning *meaning = meanings;
    state = state != NULL ? state : "";
    text = text != NULL ? text : PQresStatus(PQresultStatus(result));
    while (strncmp(state, meaning->state, strlen(meaning->state)) != 0) {
        meaning++; /* The last one fits everything. */
    }
    return idem_local_fail(reterr, meaning->err, "%.*s (SQLSTATE %s): %s", line_len(text), text,
                           state, meaning->advice);
}

/* Until the socket is ready; false: the deadline has passed, or the connection is gone. */
static bool ready(PGconn *connection, short events, int64_t until_us, struct idem_clock *clock)
{
    struct pollfd pollfd = { .fd = PQsocket(connection), .events = events };
    int count = 0;
    do {
        int64_t left_us = until_us - idem_clock_mono_us(clock);
        if (left_us <= 0 || pollfd.fd < 0) {
            return false;
        }
        count = poll(&pollfd, 1, (int)(left_us / IDEM_US_PER_MS) + 1);
    } while (count == 0 || (count < 0 && errno == EINTR));
    return count > 0;
}

/* All of the statement leaves, then an answer comes; false: see ready(), or libpq has an error. */
static bool exchange(PGconn *connection, int64_t wait_ms)
{
    struct idem_clock clock;
    idem_clock_init_system(&clock);
    const int64_t until_us = idem_clock_mono_us(&clock) + wait_ms * IDEM_US_PER_MS;
    int flushed = PQflush(connection);
    while (flushed == 1) {
        /* A server that sends may not read before it has been read. */
        if (!ready(connection, POLLIN | POLLOUT, until_us, &clock) ||
            PQconsumeInput(connection) == 0) {
            return false;
        }
        flushed = PQflush(connection);
    }
    while (flushed == 0 && PQisBusy(connection) != 0) {
        if (!ready(connection, POLLIN, until_us, &clock) || PQconsumeInput(connection) == 0) {
            return false;
        }
    }
    return flushed == 0;
}

/* The first result that says something; the rest of the answer is there already or soon. */
static enum idem_local_err collect(const struct idem_local *local,
                                   int64_t wait_ms,
                                   PGresult **ret_result,
                                   struct idem_local_error *reterr)
{
    PGresult *kept = NULL;
    PGresult *result = PQgetResult(local->postgres);
    while (result != NULL) {
        if (kept == NULL) {
            kept = result;
        } else {
            PQclear(result);
        }
        if (!exchange(local->postgres, wait_ms)) {
            PQclear(kept);
            return connection_fail(local, reterr);
        }
        result = PQgetResult(local->postgres);
    }
    if (kept == NULL) {
        return connection_fail(local, reterr);
    }
    if (PQresultStatus(kept) != PGRES_TUPLES_OK) {
        enum idem_local_err err = PQstatus(local->postgres) == CONNECTION_OK
                                      ? result_fail(kept, reterr)
                                      : connection_fail(local, reterr);
        PQclear(kept);
        return err;
    }
    *ret_result = kept;
    return IDEM_LOCAL_OK;
}

enum idem_local_err idem_local_postgres_ask(const struct idem_local *local,
                                            const char *sql,
                                            const struct idem_local_params *params,
                                            PGresult **ret_result,
                                            struct idem_local_error *reterr)
{
    const int64_t asked_ms = local->wait_ms < WAIT_MAX_MS ? local->wait_ms : WAIT_MAX_MS;
    const int64_t wait_ms = asked_ms == 0 ? WAIT_DEFAULT_MS : asked_ms;
    const int was_nonblocking = PQisnonblocking(local->postgres);
    enum idem_local_err err = IDEM_LOCAL_OK;
    if (PQsetnonblocking(local->postgres, 1) != 0 ||
        PQsendQueryParams(local->postgres, sql, params->count, NULL, params->values,
                          params->lengths, params->formats, 1) == 0) {
        return connection_fail(local, reterr);
    }
    if (exchange(local->postgres, wait_ms)) {
        err = collect(local, wait_ms, ret_result, reterr);
    } else if (PQstatus(local->postgres) != CONNECTION_OK) {
        err = connection_fail(local, reterr);
    } else {
        return idem_local_fail(reterr, IDEM_LOCAL_E_DATABASE,
                               "the server has been silent for %lld ms: nothing of this "
                               "transaction will be committed; close the connection",
                               (long long)wait_ms);
    }
    (void)PQsetnonblocking(local->postgres, was_nonblocking); /* Nothing is left to send. */
    return err;
}

bool idem_local_postgres_is_null(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) != 0;
}

struct idem_str idem_local_postgres_text(const PGresult *result, int row, int column)
{
    return (struct idem_str){ .data = PQgetvalue(result, row, column),
                              .len = (size_t)PQgetlength(result, row, column) };
}

/* Network order: of an int8, or of a bool, which is one byte. */
int64_t idem_local_postgres_i64(const PGresult *result, int row, int column)
{
    const struct idem_str bytes = idem_local_postgres_text(result, row, column);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        value = (value << 8) | (unsigned char)bytes.data[i];
    }
    return (int64_t)value;
}
