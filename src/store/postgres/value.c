/*
 * Rows out of results and into parameters, and what an error means. That is decided here and
 * nowhere else:
 *
 *   0 rows, 22, 23          MISS: a guard did not hold, a row or number is there already, or a
 *                           value cannot be stored: that command is found by running alone
 *   55P03, 57014, 40P01,    somebody was in the way for too long. MISS in a batch, whose commands
 *   40001                   then run alone; REFUSED for the one that is alone
 *   25006                   WRONG_NODE: a standby
 *   XX001, XX002            DAMAGED
 *   the connection ended    REFUSED: COMMIT had not been sent, so nothing of it is there
 *   anything else           REFUSED
 *
 * COMMIT is not judged here: whatever was not its clean answer is LOST (connection.c).
 */
#include <libpq-fe.h>
#include <string.h>

#include "store/postgres/rows_internal.h"

/* Any width that the server has: smallint, integer, bigint, boolean. */
int64_t idem_postgres_number(const PGresult *result, int row, int column)
{
    const char *bytes = PQgetvalue(result, row, column);
    int length = PQgetlength(result, row, column);
    IDEM_ASSERT(length <= 8);
    uint64_t value = length > 1 && (bytes[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (int i = 0; i < length; i++) {
        value = value << 8 | (unsigned char)bytes[i];
    }
    return (int64_t)value;
}

struct idem_str idem_postgres_text(const PGresult *result, int row, int column)
{
    return (struct idem_str){ .data = PQgetvalue(result, row, column),
                              .len = (size_t)PQgetlength(result, row, column) };
}

bool idem_postgres_bytes(const PGresult *result, int row, int column, void *ret_bytes, size_t size)
{
    if (PQgetlength(result, row, column) != (int)size) {
        return false;
    }
    memcpy(ret_bytes, PQgetvalue(result, row, column), size);
    return true;
}

static size_t bytes_size(enum idem_column_kind kind)
{
    if (kind == IDEM_COLUMN_BYTES_16) {
        return 16;
    }
    return kind == IDEM_COLUMN_BYTES_32 ? 32 : 0;
}

/* Where the table's columns begin; below 0: the result has others. */
static int first_column(const PGresult *result, const struct idem_table *table)
{
    return PQnfields(result) - (int)table->column_count;
}

bool idem_postgres_part_read(const PGresult *result,
                             struct idem_postgres_part part,
                             void *ret_row,
                             struct idem_buf *kept)
{
    const struct idem_table *table = part.table;
    int row = part.row;
    int index = part.first;
    bool ours = index >= 0 && index + (int)table->column_count <= PQnfields(result);
    for (size_t i = 0; i < table->column_count && ours; i++) {
        const struct idem_column *one = &table->columns[i];
        void *at = (char *)ret_row + one->offset;
        size_t size = bytes_size(one->kind);
        if (size > 0) {
            ours = idem_postgres_bytes(result, row, index, at, size);
        } else if (one->kind == IDEM_COLUMN_TEXT) {
            *(struct idem_str *)at = idem_buf_keep(kept, idem_postgres_text(result, row, index));
        } else {
            ours = idem_column_read_number(one, idem_postgres_number(result, row, index), at);
        }
        index += 1;
    }
    return ours;
}

bool idem_postgres_row_read(const PGresult *result,
                            int row,
                            const struct idem_table *table,
                            void *ret_row,
                            struct idem_buf *kept)
{
    struct idem_postgres_part part = {
        .row = row,
        .first = first_column(result, table),
        .table = table,
    };
    return idem_postgres_part_read(result, part, ret_row, kept);
}

size_t idem_postgres_part_size(const PGresult *result, struct idem_postgres_part part)
{
    size_t size = 0;
    for (size_t i = 0; i < part.table->column_count; i++) {
        if (part.table->columns[i].kind == IDEM_COLUMN_TEXT) {
            size += (size_t)PQgetlength(result, part.row, part.first + (int)i);
        }
    }
    return size;
}

bool idem_postgres_row_fits(const PGresult *result,
                            int row,
                            const struct idem_table *table,
                            const struct idem_buf *buf)
{
    struct idem_postgres_part part = {
        .row = row,
        .first = first_column(result, table),
        .table = table,
    };
    return idem_postgres_part_size(result, part) <= buf->max - buf->len;
}

static void column_add(struct idem_postgres_args *args,
                       const struct idem_column *column,
                       const void *row)
{
    const void *at = (const char *)row + column->offset;
    switch (column->kind) {
    case IDEM_COLUMN_I64:
        idem_postgres_arg_i64(args, *(const int64_t *)at);
        return;
    case IDEM_COLUMN_U32:
        idem_postgres_arg_i64(args, *(const uint32_t *)at);
        return;
    case IDEM_COLUMN_U16:
        idem_postgres_arg_i64(args, *(const uint16_t *)at);
        return;
    case IDEM_COLUMN_BOOL:
        idem_postgres_arg_bool(args, *(const bool *)at);
        return;
    case IDEM_COLUMN_BYTES_16:
    case IDEM_COLUMN_BYTES_32:
        idem_postgres_arg_bytes(args, at, bytes_size(column->kind));
        return;
    case IDEM_COLUMN_TEXT:
        idem_postgres_arg_text(args, *(const struct idem_str *)at);
        return;
    case IDEM_COLUMN_NONE:
    case IDEM_COLUMN_KIND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

void idem_postgres_arg_row(struct idem_postgres_args *args,
                           const struct idem_table *table,
                           const void *row,
                           bool fixed_too)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (fixed_too || !table->columns[i].fixed) {
            column_add(args, &table->columns[i], row);
        }
    }
}

static bool state_is(const char *state, const char *const *states, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(state, states[i], strlen(states[i])) == 0) {
            return true;
        }
    }
    return false;
}

enum idem_rows_step idem_postgres_step_of(enum idem_postgres_end end, const char *state, bool alone)
{
    static const char *const values[] = { "22", "23" };
    static const char *const in_the_way[] = { "55P03", "57014", "40P01", "40001" };
    static const char *const standby[] = { "25006" };
    static const char *const damage[] = { "XX001", "XX002" };
    if (end == IDEM_POSTGRES_END_OK) {
        return IDEM_ROWS_OK;
    }
    if (end == IDEM_POSTGRES_END_MISS) {
        return IDEM_ROWS_MISS;
    }
    if (end == IDEM_POSTGRES_END_GONE) {
        return IDEM_ROWS_REFUSED;
    }
    if (state_is(state, values, IDEM_ARRAY_COUNT(values))) {
        return IDEM_ROWS_MISS;
    }
    if (state_is(state, in_the_way, IDEM_ARRAY_COUNT(in_the_way))) {
        return alone ? IDEM_ROWS_REFUSED : IDEM_ROWS_MISS;
    }
    if (state_is(state, standby, IDEM_ARRAY_COUNT(standby))) {
        return IDEM_ROWS_WRONG_NODE;
    }
    return state_is(state, damage, IDEM_ARRAY_COUNT(damage)) ? IDEM_ROWS_DAMAGED
                                                             : IDEM_ROWS_REFUSED;
}
