/*
 * A record in and out of statements, by one table: what was bound in its order is read back in it.
 *
 * What is read is not believed: a number outside its range, or a boot's id that is longer than one
 * can be, is damage and not a value. Texts of a found record lie in one piece of memory, each
 * followed by a zero byte.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "client/journal_internal.h"

enum kind {
    KIND_NONE = 0,
    KIND_TEXT,
    KIND_BYTES,
    KIND_I64,
    KIND_BOOL,
    KIND_STATUS,
    KIND_OUTCOME,
    KIND_REASON,
    KIND_SHORT /* At most IDEM_BOOT_ID_LEN bytes, in the record itself. */
};

struct column {
    enum kind kind;
    size_t offset; /* In the record. */
};

#define COLUMN(kind, member)                                \
    {                                                       \
        (kind), offsetof(struct idem_client_record, member) \
    }

/* As in FIND: id, version, name, then the lists of journal_columns.h. */
static const struct column columns[] = {
    COLUMN(KIND_I64, id),
    COLUMN(KIND_I64, version),
    COLUMN(KIND_TEXT, name),
    COLUMN(KIND_TEXT, key),
    COLUMN(KIND_BOOL, key_own),
    COLUMN(KIND_TEXT, dialect),
    COLUMN(KIND_TEXT, method),
    COLUMN(KIND_TEXT, url),
    COLUMN(KIND_BYTES, headers),
    COLUMN(KIND_BYTES, body),
    COLUMN(KIND_I64, created_us),
    COLUMN(KIND_TEXT, status_url),
    COLUMN(KIND_I64, deadline_us),
    COLUMN(KIND_I64, window_us),
    COLUMN(KIND_I64, first.wall_us),
    COLUMN(KIND_I64, first.mono_us),
    COLUMN(KIND_SHORT, first.boot),
    COLUMN(KIND_I64, begun_us),
    COLUMN(KIND_SHORT, asker),
    COLUMN(KIND_BOOL, doubt),
    COLUMN(KIND_TEXT, operation_url),
    COLUMN(KIND_OUTCOME, outcome),
    COLUMN(KIND_REASON, reason),
    COLUMN(KIND_BOOL, over),
    COLUMN(KIND_BOOL, replayed),
    COLUMN(KIND_TEXT, message),
    COLUMN(KIND_STATUS, answer_status),
    COLUMN(KIND_BYTES, answer_headers),
    COLUMN(KIND_BYTES, answer_body),
    COLUMN(KIND_I64, expires_us),
    COLUMN(KIND_I64, ended_us),
};

#define FIRST_OF_REQUEST 3
#define FIRST_OF_RUN     11
#define FIRST_OF_VERDICT 19

/* A bind fails by a value that is too big or for want of memory: then it is NULL, and refused. */
int idem_client_journal_bind_text(sqlite3_stmt *statement, int index, struct idem_str text)
{
    const char *data = text.len > 0 ? text.data : "";
    (void)sqlite3_bind_text64(statement, index, data, text.len, SQLITE_STATIC, SQLITE_UTF8);
    return index + 1;
}

static int bytes_bind(sqlite3_stmt *statement, int index, struct idem_str bytes)
{
    const char *data = bytes.len > 0 ? bytes.data : "";
    (void)sqlite3_bind_blob64(statement, index, data, bytes.len, SQLITE_STATIC);
    return index + 1;
}

int idem_client_journal_bind_i64(sqlite3_stmt *statement, int index, int64_t value)
{
    (void)sqlite3_bind_int64(statement, index, value); /* Only a wrong index can fail. */
    return index + 1;
}

static int column_bind(sqlite3_stmt *statement,
                       int index,
                       const struct column *column,
                       const struct idem_client_record *record)
{
    const void *at = (const char *)record + column->offset;
    switch (column->kind) {
    case KIND_TEXT:
        return idem_client_journal_bind_text(statement, index, *(const struct idem_str *)at);
    case KIND_BYTES:
        return bytes_bind(statement, index, *(const struct idem_str *)at);
    case KIND_I64:
        return idem_client_journal_bind_i64(statement, index, *(const int64_t *)at);
    case KIND_BOOL:
        return idem_client_journal_bind_i64(statement, index, *(const bool *)at ? 1 : 0);
    case KIND_STATUS:
        return idem_client_journal_bind_i64(statement, index, *(const uint16_t *)at);
    case KIND_OUTCOME:
        return idem_client_journal_bind_i64(statement, index, record->outcome);
    case KIND_REASON:
        return idem_client_journal_bind_i64(statement, index, record->reason);
    case KIND_SHORT:
        return idem_client_journal_bind_text(statement, index, idem_str_from(at));
    case KIND_NONE:
        break;
    }
    IDEM_UNREACHABLE();
}

int idem_client_journal_bind_request(sqlite3_stmt *statement,
                                     int index,
                                     const struct idem_client_record *record)
{
    for (size_t i = FIRST_OF_REQUEST; i < FIRST_OF_RUN; i++) {
        index = column_bind(statement, index, &columns[i], record);
    }
    return index;
}

int idem_client_journal_bind_run(sqlite3_stmt *statement,
                                 int index,
                                 const struct idem_client_record *record)
{
    for (size_t i = FIRST_OF_RUN; i < FIRST_OF_VERDICT; i++) {
        index = column_bind(statement, index, &columns[i], record);
    }
    return index;
}

int idem_client_journal_bind_verdict(sqlite3_stmt *statement,
                                     int index,
                                     const struct idem_client_record *record)
{
    for (size_t i = FIRST_OF_VERDICT; i < IDEM_ARRAY_COUNT(columns); i++) {
        index = column_bind(statement, index, &columns[i], record);
    }
    return index;
}

bool idem_client_journal_column(sqlite3_stmt *statement, int index, struct idem_str *ret_text)
{
    const void *data = sqlite3_column_blob(statement, index);
    int size = sqlite3_column_bytes(statement, index);
    if (data == NULL && sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM) {
        return false;
    }
    *ret_text = (struct idem_str){ .data = data, .len = data == NULL ? 0 : (size_t)size };
    return true;
}

static bool is_text(enum kind kind)
{
    return kind == KIND_TEXT || kind == KIND_BYTES;
}

/* False: it is not a value of that kind. */
static bool number_read(enum kind kind, int64_t value, void *ret_at)
{
    switch (kind) {
    case KIND_I64:
        *(int64_t *)ret_at = value;
        return true;
    case KIND_BOOL:
        *(bool *)ret_at = value != 0;
        return value == 0 || value == 1;
    case KIND_STATUS:
        *(uint16_t *)ret_at = (uint16_t)value;
        return value >= 0 && value <= UINT16_MAX;
    case KIND_OUTCOME:
        *(enum idem_client_outcome *)ret_at = (enum idem_client_outcome)value;
        return value >= 0 && value <= IDEM_CLIENT_UNKNOWN;
    case KIND_REASON:
        *(enum idem_client_reason *)ret_at = (enum idem_client_reason)value;
        return value >= 0 && value <= IDEM_CLIENT_DECIDED;
    case KIND_NONE:
    case KIND_TEXT:
    case KIND_BYTES:
    case KIND_SHORT:
        break;
    }
    IDEM_UNREACHABLE();
}

static bool short_read(sqlite3_stmt *statement, int index, char *ret_boot)
{
    struct idem_str text;
    if (!idem_client_journal_column(statement, index, &text) || text.len > IDEM_BOOT_ID_LEN) {
        return false;
    }
    if (text.len > 0) {
        memcpy(ret_boot, text.data, text.len);
    }
    ret_boot[text.len] = '\0';
    return true;
}

/* Everything but texts. */
static bool numbers_read(sqlite3_stmt *statement, struct idem_client_record *record)
{
    bool ours = true;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(columns) && ours; i++) {
        void *at = (char *)record + columns[i].offset;
        if (columns[i].kind == KIND_SHORT) {
            ours = short_read(statement, (int)i, at);
        } else if (!is_text(columns[i].kind)) {
            ours = number_read(columns[i].kind, sqlite3_column_int64(statement, (int)i), at);
        }
    }
    return ours && record->id > 0 && record->version > 0;
}

/* Where the row's texts are, and how much memory their copies need. */
static bool texts_find(sqlite3_stmt *statement, struct idem_str *ret_texts, size_t *ret_size)
{
    bool ours = true;
    *ret_size = 0;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(columns) && ours; i++) {
        if (is_text(columns[i].kind)) {
            ours = idem_client_journal_column(statement, (int)i, &ret_texts[i]);
            *ret_size += ret_texts[i].len + 1;
        }
    }
    return ours;
}

/* Copies the row's texts into memory of the record's own; false: there is none. */
static bool texts_read(sqlite3_stmt *statement, struct idem_client_record *record)
{
    struct idem_str texts[IDEM_ARRAY_COUNT(columns)] = { { .len = 0 } };
    size_t size = 0;
    record->memory = texts_find(statement, texts, &size) ? malloc(size) : NULL;
    if (record->memory == NULL) {
        return false;
    }
    struct idem_buf buf;
    idem_buf_init(&buf, record->memory, size);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(columns); i++) {
        if (is_text(columns[i].kind)) {
            void *at = (char *)record + columns[i].offset;
            *(struct idem_str *)at = idem_buf_keep(&buf, texts[i]);
            idem_buf_add_char(&buf, '\0');
        }
    }
    IDEM_ASSERT(!buf.full && buf.len == size);
    return true;
}

enum idem_client_err idem_client_journal_read_record(struct idem_client_journal *journal,
                                                     sqlite3_stmt *statement,
                                                     struct idem_client_record *ret_record,
                                                     struct idem_client_error *reterr)
{
    struct idem_client_record record = { .id = 0 };
    IDEM_ASSERT(sqlite3_column_count(statement) >= (int)IDEM_ARRAY_COUNT(columns));
    if (!numbers_read(statement, &record)) {
        return idem_client_journal_damaged(journal, reterr);
    }
    if (!texts_read(statement, &record)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory");
    }
    *ret_record = record;
    return IDEM_CLIENT_OK;
}

void idem_client_record_clear(struct idem_client_record *record)
{
    free(record->memory);
    *record = (struct idem_client_record){ .id = 0 };
}
