/*
 * One connection in libpq's pipeline mode, without a wait that could last for ever.
 *
 *   queue, queue, ... round:  sync -> write until all is out -> read until the sync comes back
 *
 * The socket does not block. While there is something to write, what comes in is read too, or both
 * sides could wait for the other to read. Each poll() ends at the deadline, which every word of the
 * server moves on: a batch of many statements may take long, silence may not.
 *
 * After an error the server skips everything up to the sync, so the first error is the one that
 * counts, and a round that ended with it leaves a transaction that can only be rolled back. A round
 * that ended GONE leaves nothing to talk to: whether that matters depends on what was asked, and
 * only the caller knows whether a COMMIT was.
 *
 * Names of hosts are resolved by libpq itself, without a deadline of ours.
 */
#include "store/postgres/wire.h"

#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bug.h"
#include "base/clock.h"
#include "base/crash.h"
#include "store/postgres/hosts.h"

int64_t idem_postgres_mono_us(void)
{
    struct timespec now = { .tv_sec = 0 };
    int rc = clock_gettime(CLOCK_MONOTONIC, &now);
    IDEM_ASSERT(rc == 0); /* Linux has it. */
    return (int64_t)now.tv_sec * IDEM_US_PER_SECOND + now.tv_nsec / 1000;
}

static void value_add(struct idem_postgres_args *args, const void *value, size_t size)
{
    IDEM_ASSERT(args->count < IDEM_POSTGRES_ARGS_MAX);
    args->values[args->count] = size > 0 ? value : "";
    args->lengths[args->count] = (int)size;
    args->count += 1;
}

void idem_postgres_arg_i64(struct idem_postgres_args *args, int64_t value)
{
    IDEM_ASSERT(args->count < IDEM_POSTGRES_ARGS_MAX);
    char *bytes = args->numbers[args->count];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (char)((uint64_t)value >> (56 - 8 * i));
    }
    value_add(args, bytes, 8);
}

void idem_postgres_arg_bool(struct idem_postgres_args *args, bool value)
{
    IDEM_ASSERT(args->count < IDEM_POSTGRES_ARGS_MAX);
    char *bytes = args->numbers[args->count];
    bytes[0] = value ? 1 : 0;
    value_add(args, bytes, 1);
}

void idem_postgres_arg_text(struct idem_postgres_args *args, struct idem_str text)
{
    value_add(args, text.data, text.len);
}

void idem_postgres_arg_bytes(struct idem_postgres_args *args, const void *bytes, size_t size)
{
    value_add(args, bytes, size);
}

/* Takes what the server says, as one line; its own message ends with a line feed. */
static void error_note(struct idem_postgres_wire *wire, const char *text)
{
    size_t len = strcspn(text, "\n");
    (void)snprintf(wire->error.text, sizeof(wire->error.text), "%.*s", (int)len, text);
}

static void notice_take(void *context, const PGresult *notice)
{
    struct idem_postgres_wire *wire = context;
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity != NULL && strcmp(severity, "WARNING") == 0) {
        wire->warned = true;
        error_note(wire, PQresultErrorMessage(notice));
    }
}

void idem_postgres_wire_close(struct idem_postgres_wire *wire)
{
    PQfinish(wire->handle); /* Accepts NULL. */
    wire->handle = NULL;
    wire->pending_count = 0;
    wire->broken = false;
}

/* False: the deadline passed, or the system refuses. */
static bool socket_wait(PGconn *handle, short events, int64_t deadline_us)
{
    struct pollfd one = { .fd = PQsocket(handle), .events = events };
    int64_t left_us = deadline_us - idem_postgres_mono_us();
    if (one.fd < 0 || left_us <= 0) {
        return false;
    }
    int rc = poll(&one, 1, (int)(left_us / IDEM_US_PER_MS) + 1);
    return rc >= 0; /* Interrupted or too early: whoever waits looks at its deadline again. */
}

/* What is cut off in the middle has said to whom it talks, and not that nobody answers. */
static void connect_error_note(struct idem_postgres_wire *wire, bool on_time)
{
    const char *text = PQerrorMessage(wire->handle); /* Accepts NULL. */
    error_note(wire, text);
    size_t len = strlen(wire->error.text);
    bool open_end = len > 1 && wire->error.text[len - 2] == ':';
    if (len == 0 || (!on_time && open_end)) {
        (void)snprintf(wire->error.text + len, sizeof(wire->error.text) - len,
                       "no answer from the database in time");
    }
}

static bool host_connect(struct idem_postgres_wire *wire,
                         const struct idem_postgres_hosts *hosts,
                         size_t index,
                         int64_t deadline_us)
{
    wire->handle = idem_postgres_hosts_start(hosts, index);
    if (wire->handle != NULL) { /* At once: the former one only prints. */
        (void)PQsetNoticeReceiver(wire->handle, notice_take, wire);
    }
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    bool on_time = wire->handle != NULL && PQstatus(wire->handle) != CONNECTION_BAD;
    while (on_time && status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
        short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        on_time =
            socket_wait(wire->handle, events, deadline_us) && idem_postgres_mono_us() < deadline_us;
        status = on_time ? PQconnectPoll(wire->handle) : PGRES_POLLING_FAILED;
    }
    bool connected = on_time && status == PGRES_POLLING_OK &&
                     PQsetnonblocking(wire->handle, 1) == 0 &&
                     PQenterPipelineMode(wire->handle) == 1;
    if (!connected) {
        connect_error_note(wire, on_time);
        idem_postgres_wire_close(wire);
    }
    return connected;
}

/* Each has its share of the wait. Who answered last is asked first. */
static bool hosts_connect(struct idem_postgres_wire *wire, const struct idem_postgres_hosts *hosts)
{
    char memory[IDEM_ERROR_TEXT_MAX];
    struct idem_buf said;
    idem_buf_init(&said, memory, sizeof(memory) - 1);
    for (size_t i = 0; i < hosts->count; i++) {
        size_t index = (wire->host + i) % hosts->count;
        int64_t share_us = wire->wait_us / (int64_t)hosts->count;
        if (host_connect(wire, hosts, index, idem_postgres_mono_us() + share_us)) {
            wire->host = index;
            return true;
        }
        idem_buf_printf(&said, "%s%s", i > 0 ? "; " : "",
                        wire->error.text); /* Or the first ones. */
    }
    memory[said.len] = '\0';
    (void)snprintf(wire->error.text, sizeof(wire->error.text), "%s", memory);
    return false;
}

bool idem_postgres_wire_connect(struct idem_postgres_wire *wire, const char *url)
{
    struct idem_postgres_hosts hosts;
    idem_postgres_wire_close(wire);
    if (!idem_postgres_hosts_open(&hosts, url)) { /* What libpq says may repeat a password. */
        error_note(wire, "the database's URL cannot be understood");
        return false;
    }
    bool connected = hosts_connect(wire, &hosts);
    idem_postgres_hosts_close(&hosts);
    return connected;
}

static void pending_add(struct idem_postgres_wire *wire,
                        struct idem_postgres_pending pending,
                        int sent)
{
    IDEM_ASSERT(wire->pending_count < IDEM_POSTGRES_PENDING_MAX);
    if (pending.result != NULL) {
        *pending.result = NULL;
    }
    wire->broken = wire->broken || sent != 1;
    wire->pending[wire->pending_count] = pending;
    wire->pending_count += 1;
}

void idem_postgres_wire_prepare(struct idem_postgres_wire *wire,
                                const char *name,
                                const char *sql,
                                bool *done)
{
    int sent = wire->handle == NULL ? 0 : PQsendPrepare(wire->handle, name, sql, 0, NULL);
    pending_add(wire, (struct idem_postgres_pending){ .done = done }, sent);
}

void idem_postgres_wire_queue(struct idem_postgres_wire *wire,
                              const char *name,
                              const struct idem_postgres_args *args,
                              struct idem_postgres_pending pending)
{
    int formats[IDEM_POSTGRES_ARGS_MAX];
    for (int i = 0; i < args->count; i++) {
        formats[i] = 1;
    }
    int sent = wire->handle == NULL ? 0
                                    : PQsendQueryPrepared(wire->handle, name, args->count,
                                                          args->values, args->lengths, formats, 1);
    pending_add(wire, pending, sent);
}

void idem_postgres_wire_say(struct idem_postgres_wire *wire, const char *sql, PGresult **result)
{
    int sent = wire->handle == NULL
                   ? 0
                   : PQsendQueryParams(wire->handle, sql, 0, NULL, NULL, NULL, NULL, 1);
    pending_add(wire, (struct idem_postgres_pending){ .result = result }, sent);
}

static bool all_written(struct idem_postgres_wire *wire, int64_t *deadline_us)
{
    int left = PQflush(wire->handle);
    while (left == 1) {
        if (!socket_wait(wire->handle, POLLIN | POLLOUT, *deadline_us) ||
            PQconsumeInput(wire->handle) != 1) {
            return false;
        }
        left = PQflush(wire->handle);
    }
    return left == 0;
}

/* The next result, NULL between two statements. False: there is nobody to say it any more. */
static bool result_take(struct idem_postgres_wire *wire,
                        int64_t *deadline_us,
                        PGresult **ret_result)
{
    while (PQisBusy(wire->handle) == 1) {
        if (!socket_wait(wire->handle, POLLIN, *deadline_us) || PQconsumeInput(wire->handle) != 1) {
            return false;
        }
    }
    *ret_result = PQgetResult(wire->handle);
    *deadline_us = idem_postgres_mono_us() + wire->wait_us;
    return true;
}

static void state_note(struct idem_postgres_wire *wire, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    (void)snprintf(wire->state, sizeof(wire->state), "%s", state == NULL ? "" : state);
    error_note(wire, PQresultErrorMessage(result));
}

static bool one_row_changed(PGresult *result)
{
    return strcmp(PQcmdTuples(result), "1") == 0;
}

/* One statement's answer. Takes the result. The worse end of the round so far stays. */
static enum idem_postgres_end answer_note(struct idem_postgres_wire *wire,
                                          const struct idem_postgres_pending *pending,
                                          PGresult *result,
                                          enum idem_postgres_end end)
{
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        bool missed = pending->guarded && !one_row_changed(result);
        if (pending->done != NULL) {
            *pending->done = true;
        }
        if (pending->result != NULL) {
            *pending->result = result;
            result = NULL;
        }
        end = missed && end == IDEM_POSTGRES_END_OK ? IDEM_POSTGRES_END_MISS : end;
    } else if (status != PGRES_PIPELINE_ABORTED && end != IDEM_POSTGRES_END_ERROR) {
        state_note(wire, result);
        end = IDEM_POSTGRES_END_ERROR;
    }
    PQclear(result); /* Accepts NULL. */
    return end;
}

/* The end of a statement (NULL), the sync, or an answer came back. True: the round is over. */
static bool answer_take(struct idem_postgres_wire *wire,
                        PGresult *result,
                        size_t *index,
                        enum idem_postgres_end *end)
{
    if (result == NULL) {
        *index += 1;
        bool gone = PQstatus(wire->handle) == CONNECTION_BAD;
        *end = gone ? IDEM_POSTGRES_END_GONE : *end;
        return gone;
    }
    if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
        PQclear(result);
        return true;
    }
    if (*index >= wire->pending_count) { /* The connection's own last words. */
        state_note(wire, result);
        PQclear(result);
        *end = IDEM_POSTGRES_END_GONE;
        return true;
    }
    *end = answer_note(wire, &wire->pending[*index], result, *end);
    return false;
}

static enum idem_postgres_end answers_take(struct idem_postgres_wire *wire, int64_t *deadline_us)
{
    enum idem_postgres_end end = IDEM_POSTGRES_END_OK;
    size_t index = 0;
    PGresult *result = NULL;
    while (result_take(wire, deadline_us, &result)) {
        if (answer_take(wire, result, &index, &end)) {
            return end;
        }
    }
    return IDEM_POSTGRES_END_GONE;
}

static void results_drop(struct idem_postgres_wire *wire)
{
    for (size_t i = 0; i < wire->pending_count; i++) {
        PGresult **result = wire->pending[i].result;
        if (result != NULL) {
            PQclear(*result);
            *result = NULL;
        }
    }
}

enum idem_postgres_end idem_postgres_wire_round(struct idem_postgres_wire *wire)
{
    int64_t deadline_us = idem_postgres_mono_us() + wire->wait_us;
    enum idem_postgres_end end = IDEM_POSTGRES_END_GONE;
    wire->state[0] = '\0';
    if (wire->handle != NULL && !wire->broken && PQpipelineSync(wire->handle) == 1 &&
        all_written(wire, &deadline_us)) {
        if (wire->point != NULL) {
            idem_crash_point(wire->point);
        }
        end = answers_take(wire, &deadline_us);
    }
    if (end == IDEM_POSTGRES_END_OK || end == IDEM_POSTGRES_END_MISS) {
        wire->pending_count = 0;
        return end;
    }
    results_drop(wire);
    bool is_bad = wire->handle == NULL || PQstatus(wire->handle) == CONNECTION_BAD;
    if (end == IDEM_POSTGRES_END_GONE || is_bad) {
        if (wire->state[0] == '\0' && is_bad) {
            error_note(wire, PQerrorMessage(wire->handle)); /* Accepts NULL. */
        }
        idem_postgres_wire_close(wire);
        return IDEM_POSTGRES_END_GONE;
    }
    wire->pending_count = 0;
    return end;
}
