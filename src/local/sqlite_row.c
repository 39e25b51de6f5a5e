/*
 * Values in and out. Text is read as text and not as a blob: a caller's file may be in UTF-16.
 */
#include "local/sqlite_row.h"

#include <assert.h>
#include <string.h>

#include "local/rules.h"

static_assert(IDEM_LOCAL_CLAIMED == 1 && IDEM_LOCAL_FORGOTTEN == 7, "the numbers are in files");
static_assert(IDEM_LOCAL_VERDICT_SUCCEEDED == 1 && IDEM_LOCAL_VERDICT_NOT_EXECUTED == 4,
              "likewise");

/* Binding fails only for an index that is not there or for want of memory; the step then tells. */
static int bind_i64(sqlite3_stmt *statement, int index, int64_t value)
{
    (void)sqlite3_bind_int64(statement, index, value);
    return index + 1;
}

static int bind_text(sqlite3_stmt *statement, int index, struct idem_str text)
{
    (void)sqlite3_bind_text(statement, index, text.len > 0 ? text.data : "", (int)text.len,
                            SQLITE_STATIC);
    return index + 1;
}

static int bind_bytes(sqlite3_stmt *statement, int index, struct idem_str bytes)
{
    (void)sqlite3_bind_blob(statement, index, bytes.len > 0 ? bytes.data : "", (int)bytes.len,
                            SQLITE_STATIC);
    return index + 1;
}

static int bind_uid(sqlite3_stmt *statement, int index, const struct idem_uid *uid)
{
    if (idem_uid_is_zero(*uid)) {
        (void)sqlite3_bind_null(statement, index);
        return index + 1;
    }
    (void)sqlite3_bind_blob(statement, index, uid->bytes, sizeof(uid->bytes), SQLITE_STATIC);
    return index + 1;
}

int idem_local_sqlite_bind_scope(sqlite3_stmt *statement,
                                 int index,
                                 const struct idem_local_scope *scope)
{
    index = bind_text(statement, index, scope->principal);
    index = bind_text(statement, index, scope->endpoint);
    return bind_text(statement, index, scope->key);
}

int idem_local_sqlite_bind_fixed(sqlite3_stmt *statement,
                                 int index,
                                 const struct idem_local_row *row)
{
    index = bind_uid(statement, index, &row->id);
    index = idem_local_sqlite_bind_scope(statement, index, &row->scope);
    index = bind_bytes(statement, index, row->fingerprint);
    return bind_i64(statement, index, row->created_us);
}

int idem_local_sqlite_bind_moving(sqlite3_stmt *statement,
                                  int index,
                                  const struct idem_local_row *row)
{
    index = bind_i64(statement, index, row->state);
    index = bind_i64(statement, index, row->version);
    index = bind_i64(statement, index, row->local_only ? 1 : 0);
    index = bind_i64(statement, index, row->epoch);
    index = bind_uid(statement, index, &row->token);
    index = bind_i64(statement, index, row->lease_end_us);
    if (row->sent) {
        index = bind_text(statement, index, row->effect);
    } else {
        (void)sqlite3_bind_null(statement, index);
        index++;
    }
    index = bind_text(statement, index, row->step);
    index = bind_bytes(statement, index, row->step_data);
    index = bind_i64(statement, index, row->verdict);
    index = bind_i64(statement, index, row->status);
    index = bind_text(statement, index, row->headers);
    index = bind_bytes(statement, index, row->body);
    index = bind_i64(statement, index, row->updated_us);
    index = bind_i64(statement, index, row->finished_us);
    index = bind_i64(statement, index, row->expires_us);
    index = bind_text(statement, index, row->by);
    index = bind_text(statement, index, row->reason);
    index = bind_i64(statement, index, row->contradiction);
    index = bind_text(statement, index, row->contradiction_by);
    index = bind_text(statement, index, row->contradiction_reason);
    index = bind_i64(statement, index, row->contradiction_us);
    return bind_i64(statement, index, idem_local_due_us(row));
}

/* Goes through the columns from left to right. */
struct reader {
    sqlite3_stmt *statement;
    int index;
    bool good;
};

static int64_t next_i64(struct reader *reader, int64_t min, int64_t max)
{
    int64_t value = sqlite3_column_int64(reader->statement, reader->index);
    reader->index++;
    reader->good = reader->good && value >= min && value <= max;
    return value;
}

static struct idem_str next(struct reader *reader, const void *data)
{
    int len = sqlite3_column_bytes(reader->statement, reader->index);
    reader->index++;
    reader->good = reader->good && (data != NULL || len == 0);
    return (struct idem_str){ .data = data != NULL ? data : "", .len = (size_t)len };
}

static struct idem_str next_text(struct reader *reader)
{
    return next(reader, sqlite3_column_text(reader->statement, reader->index));
}

static struct idem_str next_bytes(struct reader *reader)
{
    return next(reader, sqlite3_column_blob(reader->statement, reader->index));
}

static struct idem_uid next_uid(struct reader *reader)
{
    struct idem_uid uid = { .bytes = { 0 } };
    struct idem_str bytes = next_bytes(reader);
    if (bytes.len == sizeof(uid.bytes)) {
        memcpy(uid.bytes, bytes.data, sizeof(uid.bytes));
    }
    reader->good = reader->good && (bytes.len == sizeof(uid.bytes) || bytes.len == 0);
    return uid;
}

static enum idem_local_verdict next_verdict(struct reader *reader)
{
    return (enum idem_local_verdict)next_i64(reader, IDEM_LOCAL_NO_VERDICT,
                                             IDEM_LOCAL_VERDICT_NOT_EXECUTED);
}

bool idem_local_sqlite_read(sqlite3_stmt *statement, struct idem_local_row *ret_row)
{
    struct reader reader = { .statement = statement, .good = true };
    struct idem_local_row row = { .row = next_i64(&reader, INT64_MIN, INT64_MAX) };
    row.id = next_uid(&reader);
    row.scope.principal = next_text(&reader);
    row.scope.endpoint = next_text(&reader);
    row.scope.key = next_text(&reader);
    row.fingerprint = next_bytes(&reader);
    row.created_us = next_i64(&reader, INT64_MIN, INT64_MAX);
    row.state = (enum idem_local_state)next_i64(&reader, IDEM_LOCAL_CLAIMED, IDEM_LOCAL_FORGOTTEN);
    row.version = next_i64(&reader, 1, INT64_MAX);
    row.local_only = next_i64(&reader, 0, 1) == 1;
    row.epoch = next_i64(&reader, 1, INT64_MAX);
    row.token = next_uid(&reader);
    row.lease_end_us = next_i64(&reader, INT64_MIN, INT64_MAX);
    row.sent = sqlite3_column_type(statement, reader.index) != SQLITE_NULL;
    row.effect = next_text(&reader);
    row.step = next_text(&reader);
    row.step_data = next_bytes(&reader);
    row.verdict = next_verdict(&reader);
    row.status = next_i64(&reader, 0, 999);
    row.headers = next_text(&reader);
    row.body = next_bytes(&reader);
    row.updated_us = next_i64(&reader, INT64_MIN, INT64_MAX);
    row.finished_us = next_i64(&reader, INT64_MIN, INT64_MAX);
    row.expires_us = next_i64(&reader, INT64_MIN, INT64_MAX);
    row.by = next_text(&reader);
    row.reason = next_text(&reader);
    row.contradiction = next_verdict(&reader);
    row.contradiction_by = next_text(&reader);
    row.contradiction_reason = next_text(&reader);
    row.contradiction_us = next_i64(&reader, INT64_MIN, INT64_MAX);
    row.since_us = next_i64(&reader, INT64_MIN, INT64_MAX);
    /* Text that could not be converted for want of memory looks like one that is not there. */
    if (!reader.good || sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM) {
        return false;
    }
    *ret_row = row;
    return true;
}
