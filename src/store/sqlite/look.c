/*
 * Rows that a reader asks for: histories, what is due, lists and counts.
 *
 * Everything is bounded twice: by the arrays of the read and by its memory. What does not fit is
 * left for the next page, and the reader is told.
 */
#include "store/sqlite/rows_internal.h"

static enum idem_rows_step events_total(struct idem_rows *rows,
                                        int64_t intent_row,
                                        size_t *ret_total)
{
    sqlite3_stmt *statement = idem_sqlite_connection_of(rows)->statements[IDEM_SQLITE_EVENTS_TOTAL];
    idem_sqlite_bind_i64(statement, 1, intent_row);
    int rc = sqlite3_step(statement);
    *ret_total = rc == SQLITE_ROW ? (size_t)sqlite3_column_int64(statement, 0) : 0;
    return idem_sqlite_walk_end(statement, rc, rc == SQLITE_ROW);
}

static void events_reverse(struct idem_read *read)
{
    for (size_t i = 0; i < read->event_count / 2; i++) {
        struct idem_event other = read->events[i];
        read->events[i] = read->events[read->event_count - 1 - i];
        read->events[read->event_count - 1 - i] = other;
    }
}

enum idem_rows_step idem_sqlite_find_events(struct idem_rows *rows,
                                            int64_t intent_row,
                                            struct idem_read *read)
{
    enum idem_rows_step step = events_total(rows, intent_row, &read->event_total);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    sqlite3_stmt *statement = idem_sqlite_connection_of(rows)->statements[IDEM_SQLITE_EVENTS];
    bool ours = true;

    read->event_count = 0;
    idem_sqlite_bind_i64(statement, 1, intent_row);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && read->event_count < IDEM_READ_EVENTS_MAX &&
           idem_sqlite_row_fits(statement, 0, &idem_table_events, rows->kept)) {
        struct idem_event *event = &read->events[read->event_count];
        ours = idem_sqlite_read_row(statement, 0, &idem_table_events, event, rows->kept);
        read->event_count += 1;
        rc = sqlite3_step(statement);
    }
    events_reverse(read);
    return idem_sqlite_walk_end(statement, rc, ours);
}

/* Rows of (row, due_us, scope) into `read->due`. */
static enum idem_rows_step due_walk(sqlite3_stmt *statement, struct idem_read *read)
{
    bool ours = true;
    read->due_count = 0;
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && read->due_count < IDEM_READ_DUE_MAX) {
        struct idem_due *due = &read->due[read->due_count];
        due->row = sqlite3_column_int64(statement, 0);
        due->due_us = sqlite3_column_int64(statement, 1);
        ours = idem_sqlite_read_bytes(statement, 2, due->scope.bytes, 16);
        read->due_count += 1;
        rc = sqlite3_step(statement);
    }
    return idem_sqlite_walk_end(statement, rc, ours);
}

enum idem_rows_step idem_sqlite_find_due(struct idem_rows *rows, struct idem_read *read)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_DUE);
    idem_sqlite_bind_i64(statement, 1, read->now_us);
    idem_sqlite_bind_i64(statement, 2, IDEM_READ_DUE_MAX);
    enum idem_rows_step step = due_walk(statement, read);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_DUE_NEXT);
    idem_sqlite_bind_i64(statement, 1, read->now_us);
    return idem_sqlite_find_i64(statement, &read->next_due_us);
}

enum idem_rows_step idem_sqlite_find_left(struct idem_rows *rows,
                                          int64_t incarnation,
                                          struct idem_read *read)
{
    sqlite3_stmt *statement = idem_sqlite_connection_of(rows)->statements[IDEM_SQLITE_LEFT];
    idem_sqlite_bind_i64(statement, 1, incarnation);
    idem_sqlite_bind_i64(statement, 2, read->after_row);
    idem_sqlite_bind_i64(statement, 3, IDEM_READ_DUE_MAX);
    return due_walk(statement, read);
}

enum idem_rows_step idem_sqlite_find_reap(struct idem_rows *rows, struct idem_read *read)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_REAP);
    idem_sqlite_bind_i64(statement, 1, read->now_us);
    idem_sqlite_bind_i64(statement, 2, IDEM_READ_DUE_MAX);
    enum idem_rows_step step = due_walk(statement, read);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_REAP_NEXT);
    idem_sqlite_bind_i64(statement, 1, read->now_us);
    return idem_sqlite_find_i64(statement, &read->next_due_us);
}

enum idem_rows_step idem_sqlite_find_cases(struct idem_rows *rows,
                                           int64_t intent_row,
                                           struct idem_read *read)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_CASES);
    bool ours = true;

    read->case_count = 0;
    idem_sqlite_bind_i64(statement, 1, intent_row);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && read->case_count < IDEM_READ_CASES_MAX &&
           idem_sqlite_row_fits(statement, 0, &idem_table_cases, rows->kept)) {
        struct idem_case *opened = &read->cases[read->case_count];
        ours = idem_sqlite_read_row(statement, 0, &idem_table_cases, opened, rows->kept);
        read->case_count += 1;
        rc = sqlite3_step(statement);
    }
    return idem_sqlite_walk_end(statement, rc, ours);
}

/* The newest open case of an entry. Its text may not fit: `*ret_fits`. */
static enum idem_rows_step entry_case_find(struct idem_rows *rows,
                                           struct idem_entry *entry,
                                           bool *ret_fits)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_CASE_OPEN);
    bool ours = true;

    idem_sqlite_bind_i64(statement, 1, entry->row);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        *ret_fits = idem_sqlite_row_fits(statement, 0, &idem_table_cases, rows->kept);
    }
    if (rc == SQLITE_ROW && *ret_fits) {
        ours = idem_sqlite_read_row(statement, 0, &idem_table_cases, &entry->opened, rows->kept);
    }
    return idem_sqlite_walk_end(statement, rc, ours);
}

/* The first state and the last one that a filter by state asks for. */
struct states {
    enum idem_intent_state first;
    enum idem_intent_state last;
};

static struct states states_of(enum idem_list_filter filter)
{
    static const struct states states[IDEM_LIST_COUNT] = {
        [IDEM_LIST_OPEN] = { IDEM_INTENT_CLAIMED, IDEM_INTENT_RELEASED },
        [IDEM_LIST_PROCESSING] = { IDEM_INTENT_CLAIMED, IDEM_INTENT_DISPATCHED },
        [IDEM_LIST_UNKNOWN] = { IDEM_INTENT_UNKNOWN, IDEM_INTENT_UNKNOWN },
        [IDEM_LIST_PARKED] = { IDEM_INTENT_PARKED, IDEM_INTENT_PARKED },
        [IDEM_LIST_RELEASED] = { IDEM_INTENT_RELEASED, IDEM_INTENT_RELEASED },
    };
    return states[filter];
}

static sqlite3_stmt *entries_statement(struct idem_rows *rows,
                                       int64_t payment_row,
                                       const struct idem_read *read)
{
    const int64_t max = IDEM_READ_ENTRIES_MAX + 1;
    sqlite3_stmt *statement = NULL;
    if (payment_row != 0) {
        statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_ENTRIES_PAYMENT);
        idem_sqlite_bind_i64(statement, 1, payment_row);
        idem_sqlite_bind_i64(statement, 2, read->after_row);
        idem_sqlite_bind_i64(statement, 3, max);
        return statement;
    }
    if (read->filter == IDEM_LIST_CASES) {
        statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_ENTRIES_CASES);
        idem_sqlite_bind_i64(statement, 1, read->after_row);
        idem_sqlite_bind_i64(statement, 2, max);
        return statement;
    }
    struct states states = states_of(read->filter);
    statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_ENTRIES);
    idem_sqlite_bind_i64(statement, 1, read->after_row);
    idem_sqlite_bind_i64(statement, 2, (int64_t)states.first);
    idem_sqlite_bind_i64(statement, 3, (int64_t)states.last);
    idem_sqlite_bind_i64(statement, 4, max);
    return statement;
}

/* The entry at hand, with its case. False in `*ret_fits`: it is for the next page. */
static enum idem_rows_step entry_add(struct idem_rows *rows,
                                     sqlite3_stmt *statement,
                                     struct idem_read *read,
                                     bool *ret_fits)
{
    struct idem_entry *entry = &read->entries[read->entry_count];
    *ret_fits = read->entry_count < IDEM_READ_ENTRIES_MAX &&
                idem_sqlite_row_fits(statement, 1, &idem_table_entries, rows->kept);
    if (!*ret_fits) {
        return IDEM_ROWS_OK;
    }
    *entry = (struct idem_entry){ .row = sqlite3_column_int64(statement, 0) };
    if (!idem_sqlite_read_row(statement, 1, &idem_table_entries, entry, rows->kept)) {
        return IDEM_ROWS_DAMAGED;
    }
    enum idem_rows_step step = entry_case_find(rows, entry, ret_fits);
    read->entry_count += step == IDEM_ROWS_OK && *ret_fits ? 1 : 0;
    return step;
}

enum idem_rows_step idem_sqlite_find_entries(struct idem_rows *rows,
                                             int64_t payment_row,
                                             struct idem_read *read)
{
    sqlite3_stmt *statement = entries_statement(rows, payment_row, read);
    enum idem_rows_step step = IDEM_ROWS_OK;
    bool fits = true;

    read->entry_count = 0;
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && fits && step == IDEM_ROWS_OK) {
        step = entry_add(rows, statement, read, &fits);
        rc = fits && step == IDEM_ROWS_OK ? sqlite3_step(statement) : rc;
    }
    read->more = !fits;
    enum idem_rows_step end = idem_sqlite_walk_end(statement, rc, true);
    return step == IDEM_ROWS_OK ? end : step;
}

/* The case at hand and what it is of. False in `*ret_fits`: it is for the next page. */
static enum idem_rows_step case_entry_add(struct idem_rows *rows,
                                          sqlite3_stmt *statement,
                                          struct idem_read *read,
                                          bool *ret_fits)
{
    sqlite3_stmt *of = idem_sqlite_statement_of(rows, IDEM_SQLITE_ENTRY_BY_ROW);
    struct idem_entry *entry = &read->entries[read->entry_count];
    *ret_fits = read->entry_count < IDEM_READ_ENTRIES_MAX &&
                idem_sqlite_row_fits(statement, 2, &idem_table_cases, rows->kept);
    if (!*ret_fits) {
        return IDEM_ROWS_OK;
    }
    *entry = (struct idem_entry){ .row = 0 };
    bool ours = idem_sqlite_read_row(statement, 2, &idem_table_cases, &entry->opened, rows->kept);
    idem_sqlite_bind_i64(of, 1, sqlite3_column_int64(statement, 1));
    int rc = sqlite3_step(of);
    ours = ours && rc != SQLITE_DONE; /* A case goes with its intent. */
    if (rc == SQLITE_ROW) {
        *ret_fits = idem_sqlite_row_fits(of, 1, &idem_table_entries, rows->kept);
    }
    if (rc == SQLITE_ROW && *ret_fits && ours) {
        ours = idem_sqlite_read_row(of, 1, &idem_table_entries, entry, rows->kept);
    }
    entry->row = sqlite3_column_int64(statement, 0);
    enum idem_rows_step step = idem_sqlite_walk_end(of, rc, ours);
    read->entry_count += step == IDEM_ROWS_OK && *ret_fits ? 1 : 0;
    return step;
}

enum idem_rows_step idem_sqlite_find_case_list(struct idem_rows *rows, struct idem_read *read)
{
    const bool all = read->case_kind == IDEM_CASE_NONE;
    sqlite3_stmt *statement = idem_sqlite_statement_of(
        rows, read->open_only ? IDEM_SQLITE_CASES_PAGE_OPEN : IDEM_SQLITE_CASES_PAGE);
    enum idem_rows_step step = IDEM_ROWS_OK;
    bool fits = true;

    read->entry_count = 0;
    idem_sqlite_bind_i64(statement, 1, read->after_row == 0 ? INT64_MAX : read->after_row);
    idem_sqlite_bind_i64(statement, 2, all ? 0 : (int64_t)read->case_kind);
    idem_sqlite_bind_i64(statement, 3, all ? INT64_MAX : (int64_t)read->case_kind);
    idem_sqlite_bind_i64(statement, 4, IDEM_READ_ENTRIES_MAX + 1);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && fits && step == IDEM_ROWS_OK) {
        step = case_entry_add(rows, statement, read, &fits);
        rc = fits && step == IDEM_ROWS_OK ? sqlite3_step(statement) : rc;
    }
    read->more = !fits;
    enum idem_rows_step end = idem_sqlite_walk_end(statement, rc, true);
    return step == IDEM_ROWS_OK ? end : step;
}

enum idem_rows_step idem_sqlite_find_created(struct idem_rows *rows,
                                             int64_t from_row,
                                             int64_t *ret_row,
                                             int64_t *ret_created_us)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_CREATED);
    idem_sqlite_bind_i64(statement, 1, from_row);
    int rc = sqlite3_step(statement);
    *ret_row = 0;
    if (rc == SQLITE_ROW) {
        *ret_row = sqlite3_column_int64(statement, 0);
        *ret_created_us = sqlite3_column_int64(statement, 1);
    }
    return idem_sqlite_walk_end(statement, rc, true);
}

enum idem_rows_step idem_sqlite_find_effects(struct idem_rows *rows, struct idem_read *read)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_EFFECTS);
    bool ours = true;

    read->effect_count = 0;
    idem_sqlite_bind_i64(statement, 1, read->after_row);
    idem_sqlite_bind_i64(statement, 2, read->until_row);
    idem_sqlite_bind_i64(statement, 3, read->from_us);
    idem_sqlite_bind_i64(statement, 4, read->to_us);
    idem_sqlite_bind_text(statement, 5, read->entry);
    idem_sqlite_bind_i64(statement, 6, IDEM_READ_EFFECTS_MAX + 1);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && read->effect_count < IDEM_READ_EFFECTS_MAX &&
           idem_sqlite_row_fits(statement, 1, &idem_table_effects, rows->kept)) {
        struct idem_effect_line *line = &read->effects[read->effect_count];
        line->row = sqlite3_column_int64(statement, 0);
        ours = idem_sqlite_read_row(statement, 1, &idem_table_effects, line, rows->kept);
        read->effect_count += 1;
        rc = sqlite3_step(statement);
    }
    read->more = rc == SQLITE_ROW;
    return idem_sqlite_walk_end(statement, rc, ours);
}

enum idem_rows_step idem_sqlite_find_credentials(struct idem_rows *rows, struct idem_read *read)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_CREDENTIALS_PAGE);
    bool ours = true;

    read->credential_count = 0;
    idem_sqlite_bind_i64(statement, 1, read->after_row);
    idem_sqlite_bind_i64(statement, 2, IDEM_READ_CREDENTIALS_MAX + 1);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && read->credential_count < IDEM_READ_CREDENTIALS_MAX &&
           idem_sqlite_row_fits(statement, 1, &idem_table_credentials, rows->kept)) {
        struct idem_credential_row *row = &read->credentials[read->credential_count];
        row->row = sqlite3_column_int64(statement, 0);
        ours = idem_sqlite_read_row(statement, 1, &idem_table_credentials, row, rows->kept);
        read->credential_count += 1;
        rc = sqlite3_step(statement);
    }
    read->more = rc == SQLITE_ROW;
    return idem_sqlite_walk_end(statement, rc, ours);
}

enum idem_rows_step idem_sqlite_find_places(struct idem_rows *rows, struct idem_read *read)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_PLACES);
    bool ours = true;

    read->place_count = 0;
    idem_sqlite_bind_i64(statement, 1, IDEM_READ_PLACES_MAX + 1);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && read->place_count < IDEM_READ_PLACES_MAX &&
           idem_sqlite_row_fits(statement, 0, &idem_table_places, rows->kept)) {
        struct idem_place *place = &read->places[read->place_count];
        ours = idem_sqlite_read_row(statement, 0, &idem_table_places, place, rows->kept);
        read->place_count += 1;
        rc = sqlite3_step(statement);
    }
    read->more = rc == SQLITE_ROW;
    return idem_sqlite_walk_end(statement, rc, ours);
}

static enum idem_rows_step states_count(struct idem_rows *rows, struct idem_summary *ret_summary)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_STATES);
    bool ours = true;
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours) {
        int64_t state = sqlite3_column_int64(statement, 0);
        ours = state > IDEM_INTENT_NONE && state < IDEM_INTENT_COUNT;
        if (ours) {
            ret_summary->by_state[state] = sqlite3_column_int64(statement, 1);
        }
        rc = sqlite3_step(statement);
    }
    return idem_sqlite_walk_end(statement, rc, ours);
}

/* The log's size, asked through the descriptor that SQLite has: opening another would be a risk. */
static int64_t log_bytes(sqlite3 *handle)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 bytes = 0;
    int rc = sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (rc != SQLITE_OK || log == NULL || log->pMethods == NULL ||
        log->pMethods->xFileSize(log, &bytes) != SQLITE_OK) {
        return 0; /* Not opened yet: there is none. */
    }
    return bytes;
}

enum idem_rows_step idem_sqlite_find_summary(struct idem_rows *rows,
                                             struct idem_summary *ret_summary)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    const struct {
        enum idem_sqlite_statement statement;
        int64_t *number;
    } numbers[] = {
        { IDEM_SQLITE_UNKNOWN_SINCE, &ret_summary->oldest_unknown_us },
        { IDEM_SQLITE_DUE_NEXT, &ret_summary->oldest_due_us },
        { IDEM_SQLITE_CASES_OPEN, &ret_summary->cases_open },
        { IDEM_SQLITE_DELIVERIES_PENDING, &ret_summary->deliveries_pending },
        { IDEM_SQLITE_DELIVERIES_DEAD, &ret_summary->deliveries_dead },
        { IDEM_SQLITE_DELIVERY_OLDEST, &ret_summary->oldest_delivery_us },
        { IDEM_SQLITE_STUBS_COUNT, &ret_summary->stubs },
        { IDEM_SQLITE_PAGES, &ret_summary->bytes },
        { IDEM_SQLITE_PAGES_FREE, &ret_summary->bytes_free },
    };
    enum idem_rows_step step = states_count(rows, ret_summary);

    idem_sqlite_bind_i64(idem_sqlite_statement_of(rows, IDEM_SQLITE_DUE_NEXT), 1, 0);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(numbers) && step == IDEM_ROWS_OK; i++) {
        sqlite3_stmt *statement = idem_sqlite_statement_of(rows, numbers[i].statement);
        step = idem_sqlite_find_i64(statement, numbers[i].number);
    }
    ret_summary->bytes *= IDEM_SQLITE_PAGE_SIZE;
    ret_summary->bytes_free *= IDEM_SQLITE_PAGE_SIZE;
    ret_summary->bytes += log_bytes(connection->handle);
    return step;
}
