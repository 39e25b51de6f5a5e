/*
 * Values in and out of statements, and what a step's code means. That is decided here and nowhere
 * else:
 *
 *   a constraint       MISS: the row is there already, or the number is taken. A CHECK too: the
 *                      command that ran into it is then found by running alone.
 *   damage             DAMAGED: SQLite finds the file malformed or cannot read it, or a value is
 *                      not one that we wrote. No transaction has a chance here any more: answering
 *                      NOTHING would let callers try for ever and nobody would look. The store
 *                      breaks, and the start after it says what is wrong if it meets it too.
 *   anything else      REFUSED. Nothing is durable before COMMIT, so whether this is harmless only
 *                      depends on the rollback, which asks SQLite itself whether it is over.
 *   COMMIT, not done   LOST. Its frames may be in the log or not.
 */
#include <string.h>

#include "store/sqlite/rows_internal.h"

/* Binding fails only for an index that is not there or for want of memory; the step then tells. */
void idem_sqlite_bind_text(sqlite3_stmt *statement, int index, struct idem_str text)
{
    (void)sqlite3_bind_text(statement, index, text.len > 0 ? text.data : "", (int)text.len,
                            SQLITE_STATIC);
}

void idem_sqlite_bind_bytes(sqlite3_stmt *statement, int index, const void *bytes, int size)
{
    (void)sqlite3_bind_blob(statement, index, bytes, size, SQLITE_STATIC);
}

void idem_sqlite_bind_i64(sqlite3_stmt *statement, int index, int64_t value)
{
    (void)sqlite3_bind_int64(statement, index, value);
}

static void column_bind(sqlite3_stmt *statement,
                        int index,
                        const struct idem_column *column,
                        const void *row)
{
    const void *at = (const char *)row + column->offset;
    switch (column->kind) {
    case IDEM_COLUMN_I64:
        idem_sqlite_bind_i64(statement, index, *(const int64_t *)at);
        return;
    case IDEM_COLUMN_U32:
        idem_sqlite_bind_i64(statement, index, *(const uint32_t *)at);
        return;
    case IDEM_COLUMN_U16:
        idem_sqlite_bind_i64(statement, index, *(const uint16_t *)at);
        return;
    case IDEM_COLUMN_BOOL:
        idem_sqlite_bind_i64(statement, index, *(const bool *)at ? 1 : 0);
        return;
    case IDEM_COLUMN_BYTES_16:
        idem_sqlite_bind_bytes(statement, index, at, 16);
        return;
    case IDEM_COLUMN_BYTES_32:
        idem_sqlite_bind_bytes(statement, index, at, 32);
        return;
    case IDEM_COLUMN_TEXT:
        idem_sqlite_bind_text(statement, index, *(const struct idem_str *)at);
        return;
    case IDEM_COLUMN_NONE:
    case IDEM_COLUMN_KIND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* Binds from parameter `index` on; returns the next free one. */
int idem_sqlite_bind_row(sqlite3_stmt *statement,
                         int index,
                         const struct idem_table *table,
                         const void *row,
                         bool fixed_too)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (fixed_too || !table->columns[i].fixed) {
            column_bind(statement, index, &table->columns[i], row);
            index += 1;
        }
    }
    return index;
}

bool idem_sqlite_read_bytes(sqlite3_stmt *statement, int index, void *ret_bytes, int size)
{
    const void *bytes = sqlite3_column_blob(statement, index);
    if (bytes == NULL || sqlite3_column_bytes(statement, index) != size) {
        return false;
    }
    memcpy(ret_bytes, bytes, (size_t)size);
    return true;
}

/* No pointer is not empty text: there was no memory for it, or it is NULL, which we never write. */
bool idem_sqlite_read_text(sqlite3_stmt *statement, int index, struct idem_str *ret_text)
{
    const void *text = sqlite3_column_text(statement, index);
    int len = sqlite3_column_bytes(statement, index);
    *ret_text = (struct idem_str){ .data = text, .len = text == NULL ? 0 : (size_t)len };
    return text != NULL;
}

/* False: the value is not one that we wrote. */
static bool column_read(sqlite3_stmt *statement,
                        int index,
                        const struct idem_column *column,
                        void *row,
                        struct idem_buf *kept)
{
    void *at = (char *)row + column->offset;
    if (column->kind == IDEM_COLUMN_BYTES_16) {
        return idem_sqlite_read_bytes(statement, index, at, 16);
    }
    if (column->kind == IDEM_COLUMN_BYTES_32) {
        return idem_sqlite_read_bytes(statement, index, at, 32);
    }
    if (column->kind == IDEM_COLUMN_TEXT) {
        struct idem_str text;
        bool ours = idem_sqlite_read_text(statement, index, &text);
        *(struct idem_str *)at = idem_buf_keep(kept, text);
        return ours;
    }
    return idem_column_read_number(column, sqlite3_column_int64(statement, index), at);
}

bool idem_sqlite_read_row(sqlite3_stmt *statement,
                          int index,
                          const struct idem_table *table,
                          void *ret_row,
                          struct idem_buf *kept)
{
    bool ours = true;
    for (size_t i = 0; i < table->column_count && ours; i++) {
        ours = column_read(statement, index + (int)i, &table->columns[i], ret_row, kept);
    }
    return ours;
}

size_t idem_sqlite_row_size(sqlite3_stmt *statement, int index, const struct idem_table *table)
{
    size_t size = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].kind == IDEM_COLUMN_TEXT) {
            size += (size_t)sqlite3_column_bytes(statement, index + (int)i);
        }
    }
    return size;
}

bool idem_sqlite_row_fits(sqlite3_stmt *statement,
                          int index,
                          const struct idem_table *table,
                          const struct idem_buf *buf)
{
    return idem_sqlite_row_size(statement, index, table) <= buf->max - buf->len;
}

/* The file is not what was written, or what was written cannot be read. */
static bool code_is_damage(int rc)
{
    int primary = rc & 0xff;
    return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || rc == SQLITE_IOERR_READ ||
           rc == SQLITE_IOERR_SHORT_READ || rc == SQLITE_IOERR_CORRUPTFS || rc == SQLITE_IOERR_DATA;
}

/* Of a step between transactions: later it may work, and nothing is lost until then. */
bool idem_sqlite_code_is_harmless(int rc)
{
    int primary = rc & 0xff;
    return primary == SQLITE_OK || primary == SQLITE_BUSY || primary == SQLITE_LOCKED ||
           primary == SQLITE_FULL;
}

static enum idem_rows_step step_of(int rc)
{
    if ((rc & 0xff) == SQLITE_CONSTRAINT) {
        return IDEM_ROWS_MISS;
    }
    return code_is_damage(rc) ? IDEM_ROWS_DAMAGED : IDEM_ROWS_REFUSED;
}

enum idem_rows_step idem_sqlite_run(sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    return rc == SQLITE_DONE ? IDEM_ROWS_OK : step_of(rc);
}

enum idem_rows_step idem_sqlite_walk_end(sqlite3_stmt *statement, int rc, bool ours)
{
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return step_of(rc);
    }
    return ours ? IDEM_ROWS_OK : IDEM_ROWS_DAMAGED;
}

enum idem_rows_step idem_sqlite_find_row(struct idem_rows *rows,
                                         sqlite3_stmt *statement,
                                         const struct idem_table *table,
                                         void *ret_row)
{
    int rc = sqlite3_step(statement);
    bool ours = true;
    if (rc == SQLITE_ROW) {
        *(int64_t *)ret_row = sqlite3_column_int64(statement, 0);
        ours = idem_sqlite_read_row(statement, 1, table, ret_row, rows->kept);
    }
    return idem_sqlite_walk_end(statement, rc, ours);
}

enum idem_rows_step idem_sqlite_find_i64(sqlite3_stmt *statement, int64_t *ret_value)
{
    int rc = sqlite3_step(statement);
    *ret_value = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return idem_sqlite_walk_end(statement, rc, true);
}

enum idem_rows_step idem_sqlite_guarded_run(struct idem_sqlite_connection *connection,
                                            sqlite3_stmt *statement)
{
    enum idem_rows_step step = idem_sqlite_run(statement);
    if (step == IDEM_ROWS_OK && sqlite3_changes(connection->handle) != 1) {
        return IDEM_ROWS_MISS;
    }
    return step;
}

enum idem_rows_step idem_sqlite_row_insert(struct idem_sqlite_connection *connection,
                                           enum idem_sqlite_statement insert,
                                           const struct idem_table *table,
                                           void *row)
{
    sqlite3_stmt *statement = connection->statements[insert];
    (void)idem_sqlite_bind_row(statement, 1, table, row, true);
    enum idem_rows_step step = idem_sqlite_guarded_run(connection, statement);
    if (step == IDEM_ROWS_OK) {
        *(int64_t *)row = sqlite3_last_insert_rowid(connection->handle);
    }
    return step;
}

/* `version` is the new one; the row must still have the one before it. */
enum idem_rows_step idem_sqlite_row_update(struct idem_sqlite_connection *connection,
                                           enum idem_sqlite_statement update,
                                           const struct idem_table *table,
                                           const void *row,
                                           uint32_t version)
{
    int64_t handle = *(const int64_t *)row;
    IDEM_ASSERT(handle > 0);
    IDEM_ASSERT(version > 1);
    sqlite3_stmt *statement = connection->statements[update];
    int index = idem_sqlite_bind_row(statement, 1, table, row, false);
    idem_sqlite_bind_i64(statement, index, handle);
    idem_sqlite_bind_i64(statement, index + 1, (int64_t)version - 1);
    return idem_sqlite_guarded_run(connection, statement);
}
