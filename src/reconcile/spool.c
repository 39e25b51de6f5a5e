/*
 * One table a side, appended to without an index, and read in order: SQLite's sorter makes sorted
 * runs of the size of the cache, writes them to a temporary file and merges them. An index instead
 * would be written at random places, which for more rows than fit into the cache is a page of the
 * file for each.
 *
 * Nothing here must survive anything: no journal, no flush. All of it is in one transaction, since
 * otherwise each row would be one of its own. Columns that have no value hold empty text: a line
 * that is read back is the line that was added.
 */
#include "reconcile/spool.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/bug.h"

#define COLUMNS                                                                     \
    "state, effect_id, amount, currency, order_no, payment, reference, operation, " \
    "first_us, last_us"

enum column {
    COLUMN_STATE = 0,
    COLUMN_EFFECT_ID,
    COLUMN_AMOUNT,
    COLUMN_CURRENCY,
    COLUMN_ORDER_NO,
    COLUMN_PAYMENT,
    COLUMN_REFERENCE,
    COLUMN_OPERATION,
    COLUMN_FIRST,
    COLUMN_LAST
};

/* 8 MiB of pages; the sorter of each side takes as much. */
static const char begin[] =
    "PRAGMA page_size = 16384;"
    "PRAGMA temp_store = FILE;"
    "PRAGMA cache_size = -8192;"
    "PRAGMA journal_mode = OFF;"
    "PRAGMA synchronous = OFF;"
    "CREATE TABLE here (" COLUMNS
    ");"
    "CREATE TABLE there (" COLUMNS
    ");"
    "BEGIN;";

#define INSERT(table) "INSERT INTO " table " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
#define SELECT(table) "SELECT " COLUMNS " FROM " table " ORDER BY effect_id, state, rowid"

static const char *const inserts[IDEM_LINE_SIDE_COUNT] = { INSERT("here"), INSERT("there") };
static const char *const selects[IDEM_LINE_SIDE_COUNT] = { SELECT("here"), SELECT("there") };

struct idem_spool {
    sqlite3 *db;
    sqlite3_stmt *statements[IDEM_LINE_SIDE_COUNT]; /* That add, and once sorted that read. */
    bool sorted;
    bool ended[IDEM_LINE_SIDE_COUNT];
};

static enum idem_err fault(const struct idem_spool *spool, struct idem_error *reterr)
{
    return idem_error_set(reterr, IDEM_E_SYSTEM, "the temporary file for sorting: %s",
                          sqlite3_errmsg(spool->db));
}

static void statements_end(struct idem_spool *spool)
{
    for (size_t i = 0; i < IDEM_LINE_SIDE_COUNT; i++) {
        (void)sqlite3_finalize(spool->statements[i]); /* Only repeats what the last step said. */
        spool->statements[i] = NULL;
    }
}

static enum idem_err statements_make(struct idem_spool *spool,
                                     const char *const texts[IDEM_LINE_SIDE_COUNT],
                                     struct idem_error *reterr)
{
    statements_end(spool);
    for (size_t i = 0; i < IDEM_LINE_SIDE_COUNT; i++) {
        if (sqlite3_prepare_v2(spool->db, texts[i], -1, &spool->statements[i], NULL) != SQLITE_OK) {
            return fault(spool, reterr);
        }
    }
    return IDEM_OK;
}

enum idem_err idem_spool_open(struct idem_spool **ret_spool, struct idem_error *reterr)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    struct idem_spool *spool = calloc(1, sizeof(*spool));
    if (spool == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    /* A database without a name is a temporary file of its own, removed as soon as it is open. */
    enum idem_err err = IDEM_OK;
    if (sqlite3_open_v2("", &spool->db, flags, NULL) != SQLITE_OK ||
        sqlite3_exec(spool->db, begin, NULL, NULL, NULL) != SQLITE_OK) {
        err = fault(spool, reterr);
    }
    if (err == IDEM_OK) {
        err = statements_make(spool, inserts, reterr);
    }
    if (err != IDEM_OK) {
        idem_spool_close(spool);
        return err;
    }
    *ret_spool = spool;
    return IDEM_OK;
}

/* SQLite counts parameters from one. The text is copied by the step. */
static int text_bind(sqlite3_stmt *statement, enum column column, struct idem_str text)
{
    const char *data = text.len > 0 ? text.data : "";
    return sqlite3_bind_text64(statement, (int)column + 1, data, text.len, SQLITE_STATIC,
                               SQLITE_UTF8);
}

static bool line_bind(sqlite3_stmt *statement, const struct idem_line *line)
{
    return sqlite3_bind_int(statement, COLUMN_STATE + 1, (int)line->state) == SQLITE_OK &&
           text_bind(statement, COLUMN_EFFECT_ID, line->effect_id) == SQLITE_OK &&
           sqlite3_bind_int64(statement, COLUMN_AMOUNT + 1, line->amount_minor) == SQLITE_OK &&
           text_bind(statement, COLUMN_CURRENCY, line->currency) == SQLITE_OK &&
           text_bind(statement, COLUMN_ORDER_NO, line->order_no) == SQLITE_OK &&
           text_bind(statement, COLUMN_PAYMENT, line->payment_id) == SQLITE_OK &&
           text_bind(statement, COLUMN_REFERENCE, line->reference) == SQLITE_OK &&
           text_bind(statement, COLUMN_OPERATION, line->operation) == SQLITE_OK &&
           sqlite3_bind_int64(statement, COLUMN_FIRST + 1, line->first_us) == SQLITE_OK &&
           sqlite3_bind_int64(statement, COLUMN_LAST + 1, line->last_us) == SQLITE_OK;
}

enum idem_err idem_spool_add(struct idem_spool *spool,
                             enum idem_line_side side,
                             const struct idem_line *line,
                             struct idem_error *reterr)
{
    IDEM_ASSERT(!spool->sorted);
    IDEM_ASSERT(line->effect_id.len > 0);
    IDEM_ASSERT(line->effect_id.len <= IDEM_LINE_ID_MAX);
    IDEM_ASSERT(line->state > IDEM_LINE_NONE && line->state < IDEM_LINE_STATE_COUNT);
    sqlite3_stmt *statement = spool->statements[side];
    bool added = line_bind(statement, line) && sqlite3_step(statement) == SQLITE_DONE;
    enum idem_err err = added ? IDEM_OK : fault(spool, reterr);
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    return err;
}

enum idem_err idem_spool_sort(struct idem_spool *spool, struct idem_error *reterr)
{
    IDEM_ASSERT(!spool->sorted);
    spool->sorted = true;
    return statements_make(spool, selects, reterr);
}

static struct idem_str text_at(sqlite3_stmt *statement, enum column column)
{
    const unsigned char *data = sqlite3_column_text(statement, (int)column);
    int size = sqlite3_column_bytes(statement, (int)column);
    return (struct idem_str){ .data = (const char *)data, .len = data == NULL ? 0 : (size_t)size };
}

enum idem_err idem_spool_next(struct idem_spool *spool,
                              enum idem_line_side side,
                              struct idem_line *ret_line,
                              bool *ret_end,
                              struct idem_error *reterr)
{
    IDEM_ASSERT(spool->sorted);
    IDEM_ASSERT(!spool->ended[side]);
    sqlite3_stmt *statement = spool->statements[side];
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_DONE) {
        spool->ended[side] = true;
        *ret_end = true;
        return IDEM_OK;
    }
    if (rc != SQLITE_ROW) {
        return fault(spool, reterr);
    }
    *ret_line = (struct idem_line){
        .state = (enum idem_line_state)sqlite3_column_int(statement, COLUMN_STATE),
        .effect_id = text_at(statement, COLUMN_EFFECT_ID),
        .amount_minor = sqlite3_column_int64(statement, COLUMN_AMOUNT),
        .currency = text_at(statement, COLUMN_CURRENCY),
        .order_no = text_at(statement, COLUMN_ORDER_NO),
        .payment_id = text_at(statement, COLUMN_PAYMENT),
        .reference = text_at(statement, COLUMN_REFERENCE),
        .operation = text_at(statement, COLUMN_OPERATION),
        .first_us = sqlite3_column_int64(statement, COLUMN_FIRST),
        .last_us = sqlite3_column_int64(statement, COLUMN_LAST),
    };
    *ret_end = false;
    if (ret_line->effect_id.len == 0) { /* Text that there was no memory for. */
        return fault(spool, reterr);
    }
    return IDEM_OK;
}

void idem_spool_close(struct idem_spool *spool)
{
    if (spool == NULL) {
        return;
    }
    statements_end(spool);
    (void)sqlite3_close(spool->db); /* Nothing is open on it any more. */
    free(spool);
}
