/*
 * Fuzzes the client's journal: a row of it that may be damaged, and requests on their way into it.
 *
 * The input is 'j' and the values of a row, each its kind ('i' number, 't' text, 'b' bytes,
 * anything else nothing) and its bytes, with 0x1E between them; or 'q' and the texts of a request,
 * 0x1E between them: dialect, method, URL, key, status address, body, header lines. The row goes
 * through SQLite as the journal's does. Properties, for any bytes:
 *   - a row is read or it is damaged, and then nothing is given; what is read, written and read
 *     again is the same record, and every number is one that its place can have;
 *   - a record that may be sent has a method, an address, a key of its dialect and header lines
 *     that end where they seem to, none of them a key of its own; and nothing in it is longer than
 *     the places it goes to;
 *   - a request that is taken becomes a record that may be sent, and that the journal gives back as
 *     the same request; under a new key, too, and the new key is another one.
 */
#include "client/request.h"

#include <sqlite3.h>
#include <string.h>

#include "client/client_internal.h"
#include "client/journal_internal.h"
#include "client/target.h"

#include "fuzz/fuzz.h"

#define SIZE_TRIED 8192
#define COLUMNS    31
#define SEPARATOR  '\x1e'
#define LINES_MAX  8

static sqlite3 *handle;
static sqlite3_stmt *statement;
static struct idem_client_journal journal;
static struct idem_client client;

static void everything_open(void)
{
    static const char question[] =
        "SELECT ?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?";
    static char path[] = "journal";
    FUZZ_EXPECT(sqlite3_open(":memory:", &handle) == SQLITE_OK);
    FUZZ_EXPECT(sqlite3_prepare_v2(handle, question, -1, &statement, NULL) == SQLITE_OK);
    journal.handle = handle;
    journal.path = path;
    idem_clock_init_system(&client.clock_memory);
    idem_random_init_system(&client.random_memory);
    client.clock = &client.clock_memory;
    client.random = &client.random_memory;
}

/* Numbers that are narrower than the row's: as they stand there. */
static void check_columns(const struct idem_client_record *record)
{
    FUZZ_EXPECT(sqlite3_column_int64(statement, 0) == record->id);
    FUZZ_EXPECT(sqlite3_column_int64(statement, 4) == (record->key_own ? 1 : 0));
    FUZZ_EXPECT(sqlite3_column_int64(statement, 19) == (record->doubt ? 1 : 0));
    FUZZ_EXPECT(sqlite3_column_int64(statement, 21) == (int64_t)record->outcome);
    FUZZ_EXPECT(sqlite3_column_int64(statement, 22) == (int64_t)record->reason);
    FUZZ_EXPECT(sqlite3_column_int64(statement, 23) == (record->over ? 1 : 0));
    FUZZ_EXPECT(sqlite3_column_int64(statement, 24) == (record->replayed ? 1 : 0));
    FUZZ_EXPECT(sqlite3_column_int64(statement, 26) == record->answer_status);
}

/* Reads the row that is bound. */
static bool row_read(struct idem_client_record *ret_record)
{
    struct idem_client_error error = { .text = "" };
    struct idem_client_record before = { .id = -7 };
    *ret_record = before;
    FUZZ_EXPECT(sqlite3_step(statement) == SQLITE_ROW);
    enum idem_client_err err =
        idem_client_journal_read_record(&journal, statement, ret_record, &error);
    FUZZ_EXPECT(err == IDEM_CLIENT_OK || err == IDEM_CLIENT_E_JOURNAL);
    if (err != IDEM_CLIENT_OK) {
        FUZZ_EXPECT(ret_record->id == -7 && ret_record->memory == NULL && error.text[0] != '\0');
    } else {
        check_columns(ret_record);
    }
    FUZZ_EXPECT(sqlite3_reset(statement) == SQLITE_OK);
    return err == IDEM_CLIENT_OK;
}

static void row_bind(const struct idem_client_record *record)
{
    int index = idem_client_journal_bind_i64(statement, 1, record->id);
    index = idem_client_journal_bind_i64(statement, index, record->version);
    index = idem_client_journal_bind_text(statement, index, record->name);
    index = idem_client_journal_bind_request(statement, index, record);
    index = idem_client_journal_bind_run(statement, index, record);
    index = idem_client_journal_bind_verdict(statement, index, record);
    FUZZ_EXPECT(index == COLUMNS + 1);
}

/* ---- what holds for every record ---- */

static bool is_kept(struct idem_str text)
{
    return text.data[text.len] == '\0'; /* Whoever shows it as a string stops there. */
}

static void check_numbers(const struct idem_client_record *record)
{
    FUZZ_EXPECT(record->id > 0 && record->version > 0);
    FUZZ_EXPECT(record->outcome <= IDEM_CLIENT_UNKNOWN && record->reason <= IDEM_CLIENT_DECIDED);
    FUZZ_EXPECT(strlen(record->first.boot) <= IDEM_BOOT_ID_LEN);
    FUZZ_EXPECT(strlen(record->asker) <= IDEM_BOOT_ID_LEN);
    FUZZ_EXPECT(is_kept(record->name) && is_kept(record->key) && is_kept(record->url));
    FUZZ_EXPECT(is_kept(record->answer_headers) && is_kept(record->answer_body));
    FUZZ_EXPECT(is_kept(record->operation_url) && is_kept(record->message));
}

static void check_equal(const struct idem_client_record *left,
                        const struct idem_client_record *right)
{
    FUZZ_EXPECT(idem_request_difference(left, right) == NULL);
    FUZZ_EXPECT(idem_str_equal(left->name, right->name) && idem_str_equal(left->key, right->key));
    FUZZ_EXPECT(left->key_own == right->key_own && left->created_us == right->created_us);
    FUZZ_EXPECT(idem_str_equal(left->status_url, right->status_url));
    FUZZ_EXPECT(left->deadline_us == right->deadline_us && left->window_us == right->window_us);
    FUZZ_EXPECT(left->first.wall_us == right->first.wall_us);
    FUZZ_EXPECT(left->first.mono_us == right->first.mono_us);
    FUZZ_EXPECT(left->begun_us == right->begun_us && left->doubt == right->doubt);
    FUZZ_EXPECT(idem_str_equal(left->operation_url, right->operation_url));
    FUZZ_EXPECT(left->outcome == right->outcome && left->reason == right->reason);
    FUZZ_EXPECT(left->over == right->over && left->replayed == right->replayed);
    FUZZ_EXPECT(left->answer_status == right->answer_status);
    FUZZ_EXPECT(idem_str_equal(left->answer_headers, right->answer_headers));
    FUZZ_EXPECT(idem_str_equal(left->answer_body, right->answer_body));
    FUZZ_EXPECT(left->expires_us == right->expires_us && left->ended_us == right->ended_us);
}

static bool has_control(struct idem_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] < 0x20 && text.data[i] != '\t') {
            return true;
        }
    }
    return false;
}

/* What is sent of it is one request, under one key. */
static void check_sendable(const struct idem_client_record *record)
{
    const struct idem_dialect *dialect = idem_dialect_find(record->dialect);
    struct idem_str lines = record->headers;
    FUZZ_EXPECT(dialect != NULL && idem_dialect_takes_key(dialect, record->key));
    FUZZ_EXPECT(record->method.len <= 6 && !has_control(record->method));
    FUZZ_EXPECT(record->url.len <= IDEM_CLIENT_URL_MAX);
    FUZZ_EXPECT(record->status_url.len <= IDEM_CLIENT_URL_MAX);
    FUZZ_EXPECT(record->operation_url.len <= IDEM_CLIENT_URL_MAX);
    FUZZ_EXPECT(record->name.len <= IDEM_CLIENT_NAME_MAX && !has_control(record->name));
    FUZZ_EXPECT(!has_control(record->url) && record->deadline_us > 0);
    FUZZ_EXPECT(record->headers.len <= IDEM_CLIENT_HEADER_SIZE);
    FUZZ_EXPECT(record->body.len <= IDEM_CLIENT_BODY_MAX);
    while (lines.len > 0) {
        struct idem_str line = idem_str_next(&lines, '\n');
        struct idem_str name = idem_str_slice(line, 0, idem_str_find(line, ':'));
        FUZZ_EXPECT(name.len > 0 && name.len < line.len && !has_control(line));
        FUZZ_EXPECT(!idem_str_equal_nocase(name, idem_str_from(dialect->key_header)));
        FUZZ_EXPECT(!idem_str_equal_nocase(name, IDEM_STR("content-length")));
        FUZZ_EXPECT(!idem_str_equal_nocase(name, IDEM_STR("transfer-encoding")));
    }
}

static void check_record(const struct idem_client_record *record)
{
    struct idem_client_record again;
    check_numbers(record);
    row_bind(record);
    FUZZ_EXPECT(row_read(&again));
    check_equal(record, &again);
    if (idem_dialect_find(record->dialect) != NULL && idem_request_is_whole(record)) {
        check_sendable(record);
    }
    idem_client_record_clear(&again);
}

/* ---- a row ---- */

static void value_bind(int index, struct idem_str value)
{
    struct idem_str bytes = idem_str_slice(value, 1, value.len);
    int64_t number = 0;
    int kind = value.len > 0 ? value.data[0] : 'n';
    if (kind == 'i') {
        bool below = idem_str_starts(bytes, IDEM_STR("-"));
        bytes = idem_str_slice(bytes, below ? 1 : 0, bytes.len);
        number = idem_str_to_i64(bytes, &number) ? number : 1;
        (void)idem_client_journal_bind_i64(statement, index, below ? -number : number);
    } else if (kind == 't') {
        (void)idem_client_journal_bind_text(statement, index, bytes);
    } else if (kind == 'b') {
        FUZZ_EXPECT(sqlite3_bind_blob64(statement, index, bytes.data, bytes.len,
                                        SQLITE_TRANSIENT) == SQLITE_OK);
    }
}

static void row_try(struct idem_str text)
{
    struct idem_client_record record;
    FUZZ_EXPECT(sqlite3_clear_bindings(statement) == SQLITE_OK);
    for (int i = 1; i <= COLUMNS; i++) {
        value_bind(i, idem_str_next(&text, SEPARATOR));
    }
    if (row_read(&record)) {
        check_record(&record);
        idem_client_record_clear(&record);
    }
}

/* ---- a request ---- */

/* The next text, terminated; it ends at a zero byte, if it has one. */
static const char *part_next(struct idem_str *text, struct idem_buf *buf)
{
    struct idem_str part = idem_str_next(text, SEPARATOR);
    size_t from = buf->len;
    idem_buf_add(buf, part);
    idem_buf_add_char(buf, '\0');
    FUZZ_EXPECT(!buf->full);
    return buf->data + from;
}

static void check_taken(const struct idem_client_request *request,
                        const struct idem_dialect *dialect)
{
    struct idem_client_record record;
    struct idem_client_record other;
    struct idem_client_error error;
    FUZZ_EXPECT(idem_request_record(&client, request, dialect, &record, &error) == IDEM_CLIENT_OK);
    FUZZ_EXPECT(idem_request_is_whole(&record));
    check_sendable(&record);
    record.id = 1;
    record.version = 1;
    row_bind(&record);
    FUZZ_EXPECT(row_read(&other));
    check_equal(&record, &other);
    FUZZ_EXPECT(idem_request_is_whole(&other));
    idem_client_record_clear(&other);

    FUZZ_EXPECT(idem_request_rekey(&client, &record, &other, &error) == IDEM_CLIENT_OK);
    FUZZ_EXPECT(idem_request_is_whole(&other) && other.key_own);
    check_sendable(&other);
    FUZZ_EXPECT(!idem_str_equal(record.key, other.key));
    FUZZ_EXPECT(idem_request_difference(&record, &other) == NULL);
    idem_client_record_clear(&other);
    idem_client_record_clear(&record);
}

static void request_try(struct idem_str text)
{
    static char memory[2 * SIZE_TRIED];
    const char *lines[LINES_MAX];
    const struct idem_dialect *dialect = NULL;
    struct idem_client_error error = { .text = "" };
    struct idem_client_request request = { .size = sizeof(request), .name = "order-1" };
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    request.dialect = part_next(&text, &buf);
    request.method = part_next(&text, &buf);
    request.url = part_next(&text, &buf);
    request.key = part_next(&text, &buf);
    request.key = request.key[0] == '\0' ? NULL : request.key; /* One is made. */
    request.status_url = part_next(&text, &buf);
    request.status_url = request.status_url[0] == '\0' ? NULL : request.status_url;
    struct idem_str body = idem_str_next(&text, SEPARATOR);
    request.body = body.data;
    request.body_size = body.len;
    request.headers = lines;
    while (text.len > 0 && request.header_count < LINES_MAX) {
        lines[request.header_count++] = part_next(&text, &buf);
    }
    if (idem_request_check(&request, &dialect, &error) == IDEM_CLIENT_OK) {
        check_taken(&request, dialect);
        return;
    }
    FUZZ_EXPECT(error.text[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_str text = { .data = (const char *)data + 1, .len = size - 1 };
    if (size < 1 || size > SIZE_TRIED) {
        return 0;
    }
    if (handle == NULL) {
        everything_open();
    }
    if (data[0] == 'j') {
        row_try(text);
    } else if (data[0] == 'q') {
        request_try(text);
    }
    return 0;
}
