/*
 * The book behind book.h, and the questions that it puts to a file from outside, by SQLite's own
 * VFS and in SQL of the test's own.
 */
#include "power/book.h"

#include <sqlite3.h>

#include "base/attr.h"
#include "lib/test.h"
#include "store/sqlite/schema.h"

#define TEXT_MAX ((size_t)64 << 20)

/* An opening raises these; the incarnation is judged apart. */
#define META_OF_OPENINGS "'incarnation', 'clock_seen_us'"

#define INTENTS           1
#define INTENTS_UNCOUNTED 9

static const struct {
    const char *name;
    const char *sql;
    const char *without; /* One column. */
} tables[BOOK_TABLES] = {
    { "meta", "SELECT * FROM meta WHERE key NOT IN (" META_OF_OPENINGS ")", "" },
    { "intents", "SELECT * FROM intents ORDER BY row", "" },
    { "payments", "SELECT * FROM payments ORDER BY row", "" },
    { "refunds", "SELECT * FROM refunds ORDER BY row", "" },
    { "sends", "SELECT * FROM sends ORDER BY intent_row, no", "" },
    { "events", "SELECT * FROM events ORDER BY row", "" },
    { "cases", "SELECT * FROM cases ORDER BY row", "" },
    { "stubs", "SELECT * FROM stubs ORDER BY row", "" },
    { "credentials", "SELECT * FROM credentials ORDER BY row", "" },
    [INTENTS_UNCOUNTED] = { "intents", "SELECT * FROM intents ORDER BY row", "version" },
};

/* Each must give 0. What retention has buried (no answer any more) has no history. */
static const struct {
    const char *name;
    const char *sql;
} rules[] = {
    { "an intent without its payment",
      "SELECT count(*) FROM intents WHERE payment_row > 0 AND NOT EXISTS"
      " (SELECT 1 FROM payments WHERE payments.row = payment_row AND id = payment_id)" },
    { "an intent without its refund",
      "SELECT count(*) FROM intents WHERE refund_row > 0 AND NOT EXISTS"
      " (SELECT 1 FROM refunds WHERE refunds.row = refund_row AND id = refund_id)" },
    { "a payment without an intent",
      "SELECT count(*) FROM payments WHERE NOT EXISTS (SELECT 1 FROM intents WHERE"
      " payment_row = payments.row) AND state NOT IN (7, 8)" },
    { "an intent without its sends",
      "SELECT count(*) FROM intents WHERE (answer_status > 0 OR state NOT IN (5, 6)) AND"
      " send_count <> (SELECT count(*) FROM sends WHERE intent_row = intents.row)" },
    { "an intent without events",
      "SELECT count(*) FROM intents WHERE NOT EXISTS (SELECT 1 FROM events WHERE"
      " intent_row = intents.row)" },
    { "history of nobody",
      "SELECT (SELECT count(*) FROM sends WHERE intent_row NOT IN (SELECT row FROM intents)) +"
      " (SELECT count(*) FROM events WHERE intent_row NOT IN (SELECT row FROM intents))" },
    { "a payment whose refunds are another sum",
      "SELECT count(*) FROM payments WHERE refunded_minor <> coalesce((SELECT sum(amount_minor)"
      " FROM refunds WHERE payment_row = payments.row AND state = 2), 0) OR"
      " refund_pending_minor <> coalesce((SELECT sum(amount_minor) FROM refunds WHERE"
      " payment_row = payments.row AND state = 1), 0)" },
    { "a sum that is too large",
      "SELECT count(*) FROM payments WHERE captured_minor + capture_pending_minor + released_minor"
      " > authorized_minor OR refunded_minor + refund_pending_minor > captured_minor" },
    { "an order number twice",
      "SELECT count(*) FROM (SELECT 1 FROM payments WHERE " IDEM_SQLITE_HOLDS_ORDER
      " GROUP BY principal, order_no HAVING count(*) > 1)" },
};

void book_init(struct book *book)
{
    book->memory_max = TEXT_MAX;
    book->memory = malloc(TEXT_MAX); /* Touched as it is used. */
    assert_non_null(book->memory);
}

void book_deinit(struct book *book)
{
    free(book->memory);
    book->memory = NULL;
}

static char *room(struct book *book, size_t size)
{
    assert_true(size <= book->memory_max - book->memory_used);
    char *text = book->memory + book->memory_used;
    book->memory_used += size;
    return text;
}

const char *book_text(struct book *book, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    assert_in_range(len, 0, sizeof(text) - 1);
    char *kept = room(book, (size_t)len + 1);
    memcpy(kept, text, (size_t)len + 1);
    return kept;
}

static void str_keep(struct book *book, struct idem_str *str)
{
    if (str->len > 0) {
        char *kept = room(book, str->len);
        memcpy(kept, str->data, str->len);
        str->data = kept;
    }
}

static struct idem_intent intent_keep(struct book *book, const struct idem_intent *from)
{
    struct idem_intent intent = *from;
    struct idem_str *const texts[] = {
        &intent.principal,        &intent.key,
        &intent.effect.id,        &intent.effect.entry,
        &intent.effect.account,   &intent.effect.region,
        &intent.effect.currency,  &intent.effect.request,
        &intent.effect.reference, &intent.answer.headers,
        &intent.answer.body,      &intent.trace,
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        str_keep(book, texts[i]);
    }
    return intent;
}

void book_acknowledge(struct book *book,
                      const struct call *calls,
                      const size_t *deeds,
                      size_t count)
{
    book->batch_count += 1;
    assert_in_range(book->batch_count, 1, BOOK_BATCHES_MAX - 1);
    for (size_t i = 0; i < count; i++) {
        assert_in_range(book->record_count, 0, BOOK_RECORDS_MAX - 1);
        book->records[book->record_count] = (struct record){
            .batch = book->batch_count,
            .deed = deeds[i],
            .command = calls[i].item.command,
            .intent = intent_keep(book, &calls[i].outcome.intent),
            .release = calls[i].outcome.release,
        };
        if (deeds[i] != BOOK_NONE) {
            book->deeds[deeds[i]].last = book->record_count;
        }
        book->record_count += 1;
    }
}

void book_cut(struct book *book, size_t batches)
{
    assert_true(batches <= book->batch_count);
    book->batch_count = batches;
    while (book->record_count > 0 && book->records[book->record_count - 1].batch > batches) {
        book->record_count -= 1;
    }
    for (size_t i = 0; i < book->deed_count; i++) {
        book->deeds[i].last = BOOK_NONE;
    }
    for (size_t i = 0; i < book->record_count; i++) {
        if (book->records[i].deed != BOOK_NONE) {
            book->deeds[book->records[i].deed].last = i;
        }
    }
}

const struct record *book_last(const struct book *book, size_t deed, size_t batches)
{
    for (size_t i = book->record_count; i > 0; i--) {
        const struct record *record = &book->records[i - 1];
        if (record->deed == deed && record->batch <= batches) {
            return record;
        }
    }
    return NULL;
}

static uint64_t digest_add(uint64_t digest, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) {
        digest = (digest ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return digest ^ (digest >> 31);
}

static uint64_t row_digest(uint64_t digest, sqlite3_stmt *statement, const char *without)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        if (strcmp(sqlite3_column_name(statement, i), without) == 0) {
            continue;
        }
        int kind = sqlite3_column_type(statement, i);
        const void *bytes = sqlite3_column_blob(statement, i);
        int size = sqlite3_column_bytes(statement, i);
        digest = digest_add(digest, &kind, sizeof(kind));
        digest = digest_add(digest, &size, sizeof(size));
        digest = bytes == NULL ? digest : digest_add(digest, bytes, (size_t)size);
    }
    return digest;
}

static bool table_digest(sqlite3 *handle, size_t table, uint64_t *ret_digest)
{
    sqlite3_stmt *statement = NULL;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    int rc = sqlite3_prepare_v2(handle, tables[table].sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    while (rc == SQLITE_ROW) {
        digest = row_digest(digest, statement, tables[table].without);
        rc = sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    *ret_digest = digest;
    return rc == SQLITE_DONE;
}

static sqlite3 *outside_open(const char *path)
{
    sqlite3 *handle = NULL;
    int rc = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, "unix");
    if (rc != SQLITE_OK) {
        (void)sqlite3_close(handle);
        return NULL;
    }
    return handle;
}

bool book_dump_read(const char *path, struct book_dump *ret_dump)
{
    sqlite3 *handle = outside_open(path);
    bool good = handle != NULL;
    for (size_t i = 0; i < BOOK_TABLES && good; i++) {
        good = table_digest(handle, i, &ret_dump->tables[i]);
    }
    (void)sqlite3_close(handle); /* No statement is open. */
    return good;
}

const char *book_difference(const struct book_dump *left,
                            const struct book_dump *right,
                            bool versions)
{
    size_t skipped = versions ? INTENTS_UNCOUNTED : INTENTS;
    for (size_t i = 0; i < BOOK_TABLES; i++) {
        if (i != skipped && left->tables[i] != right->tables[i]) {
            return tables[i].name;
        }
    }
    return NULL;
}

/* The first column of the first row, as text. */
static void ask(sqlite3 *handle, const char *sql, char *ret_text, size_t size)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        (void)snprintf(ret_text, size, "%s", (const char *)sqlite3_column_text(statement, 0));
    } else {
        (void)snprintf(ret_text, size, "%s", sqlite3_errmsg(handle));
    }
    (void)sqlite3_finalize(statement); /* Was told. */
}

void book_damage_find(const char *path, char *ret_text, size_t size)
{
    char said[160];
    sqlite3 *handle = outside_open(path);
    ret_text[0] = '\0';
    if (handle == NULL) {
        (void)snprintf(ret_text, size, "the file cannot be opened");
        return;
    }
    ask(handle, "PRAGMA integrity_check", said, sizeof(said));
    if (strcmp(said, "ok") != 0) {
        (void)snprintf(ret_text, size, "integrity_check: %s", said);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rules) && ret_text[0] == '\0'; i++) {
        ask(handle, rules[i].sql, said, sizeof(said));
        if (strcmp(said, "0") != 0) {
            (void)snprintf(ret_text, size, "%s: %s", rules[i].name, said);
        }
    }
    (void)sqlite3_close(handle); /* No statement is open. */
}
