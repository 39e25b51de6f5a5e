/*
 * Rows that a reader asks for: histories, what is due, lists and counts.
 *
 * Everything is bounded twice: by the arrays of the read and by its memory. What does not fit is
 * left for the next page, and the reader is told. What is due is asked by the database's clock; the
 * time of the next one is told by the asker's.
 */
#include <libpq-fe.h>

#include "store/postgres/rows_internal.h"

static enum idem_rows_step ask(struct idem_rows *rows,
                               enum idem_postgres_statement index,
                               const struct idem_postgres_args *args,
                               PGresult **ret_result)
{
    return idem_postgres_ask(idem_postgres_connection_of(rows), index, args, ret_result);
}

/* The first column of the first row; no row is 0. */
static enum idem_rows_step number_ask(struct idem_rows *rows,
                                      enum idem_postgres_statement index,
                                      const struct idem_postgres_args *args,
                                      int64_t *ret_number)
{
    PGresult *result = NULL;
    enum idem_rows_step step = ask(rows, index, args, &result);
    if (step == IDEM_ROWS_OK) {
        *ret_number = PQntuples(result) > 0 ? idem_postgres_number(result, 0, 0) : 0;
        PQclear(result);
    }
    return step;
}

static void events_reverse(struct idem_read *read)
{
    for (size_t i = 0; i < read->event_count / 2; i++) {
        struct idem_event other = read->events[i];
        read->events[i] = read->events[read->event_count - 1 - i];
        read->events[read->event_count - 1 - i] = other;
    }
}

enum idem_rows_step idem_postgres_find_events(struct idem_rows *rows,
                                              int64_t intent_row,
                                              struct idem_read *read)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    int64_t total = 0;
    bool ours = true;
    idem_postgres_arg_i64(&args, intent_row);
    enum idem_rows_step step = number_ask(rows, IDEM_POSTGRES_EVENTS_TOTAL, &args, &total);
    if (step == IDEM_ROWS_OK) {
        idem_postgres_arg_i64(&args, IDEM_READ_EVENTS_MAX);
        step = ask(rows, IDEM_POSTGRES_EVENTS, &args, &result);
    }
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    read->event_total = (size_t)total;
    read->event_count = 0;
    for (int row = 0; row < PQntuples(result) && ours; row++) {
        struct idem_event *event = &read->events[read->event_count];
        if (!idem_postgres_row_fits(result, row, &idem_table_events, rows->kept)) {
            break;
        }
        ours = idem_postgres_row_read(result, row, &idem_table_events, event, rows->kept);
        read->event_count += 1;
    }
    PQclear(result);
    events_reverse(read);
    return ours ? IDEM_ROWS_OK : IDEM_ROWS_DAMAGED;
}

/* Rows of (row, due_us, scope) into `read->due`. */
static enum idem_rows_step due_ask(struct idem_rows *rows,
                                   enum idem_postgres_statement index,
                                   const struct idem_postgres_args *args,
                                   struct idem_read *read)
{
    PGresult *result = NULL;
    bool ours = true;
    enum idem_rows_step step = ask(rows, index, args, &result);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    IDEM_ASSERT(PQntuples(result) <= IDEM_READ_DUE_MAX);
    read->due_count = 0;
    for (int row = 0; row < PQntuples(result) && ours; row++) {
        struct idem_due *due = &read->due[read->due_count];
        due->row = idem_postgres_number(result, row, 0);
        due->due_us = idem_postgres_number(result, row, 1);
        ours = idem_postgres_bytes(result, row, 2, due->scope.bytes, sizeof(due->scope.bytes));
        read->due_count += 1;
    }
    PQclear(result);
    return ours ? IDEM_ROWS_OK : IDEM_ROWS_DAMAGED;
}

/* The time of the first row that is not due at `now_us`; 0: none. */
static enum idem_rows_step next_find(struct idem_rows *rows,
                                     enum idem_postgres_statement next,
                                     int64_t now_us,
                                     struct idem_read *read)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_i64(&args, now_us);
    return number_ask(rows, next, &args, &read->next_due_us);
}

enum idem_rows_step idem_postgres_find_due(struct idem_rows *rows, struct idem_read *read)
{
    const struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    int64_t now_us = connection->settings->clock_is_ours ? read->now_us : connection->now_us;
    idem_postgres_arg_i64(&args, now_us);
    idem_postgres_arg_i64(&args, IDEM_READ_DUE_MAX);
    enum idem_rows_step step = due_ask(rows, IDEM_POSTGRES_DUE, &args, read);
    if (step == IDEM_ROWS_OK) {
        step = next_find(rows, IDEM_POSTGRES_DUE_NEXT, now_us, read);
    }
    if (read->next_due_us != 0) {
        read->next_due_us += read->now_us - now_us;
    }
    return step;
}

/*
 * This instance's share: of n that live, the one with k older ones has the rows whose handle leaves
 * k when divided by n. So none does what another one does, and what a dead one leaves is shared
 * anew. Where two disagree for a moment about who lives, a row is looked at twice, and its version
 * lets one of them write.
 */
enum idem_rows_step idem_postgres_find_reap(struct idem_rows *rows, struct idem_read *read)
{
    const struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_i64(&args, connection->settings->silence_us);
    idem_postgres_arg_i64(&args, connection->instance.id);
    idem_postgres_arg_i64(&args, read->now_us);
    idem_postgres_arg_i64(&args, IDEM_READ_DUE_MAX);
    enum idem_rows_step step = due_ask(rows, IDEM_POSTGRES_REAP, &args, read);
    return step == IDEM_ROWS_OK ? next_find(rows, IDEM_POSTGRES_REAP_NEXT, read->now_us, read)
                                : step;
}

enum idem_rows_step idem_postgres_find_left(struct idem_rows *rows,
                                            int64_t incarnation,
                                            struct idem_read *read)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_i64(&args, idem_postgres_connection_of(rows)->settings->silence_us);
    idem_postgres_arg_i64(&args, incarnation);
    idem_postgres_arg_i64(&args, read->after_row);
    idem_postgres_arg_i64(&args, IDEM_READ_DUE_MAX);
    return due_ask(rows, IDEM_POSTGRES_LEFT, &args, read);
}

enum idem_rows_step idem_postgres_find_cases(struct idem_rows *rows,
                                             int64_t intent_row,
                                             struct idem_read *read)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    bool ours = true;
    idem_postgres_arg_i64(&args, intent_row);
    idem_postgres_arg_i64(&args, IDEM_READ_CASES_MAX);
    enum idem_rows_step step = ask(rows, IDEM_POSTGRES_CASES, &args, &result);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    read->case_count = 0;
    for (int row = 0; row < PQntuples(result) && ours; row++) {
        struct idem_case *opened = &read->cases[read->case_count];
        if (!idem_postgres_row_fits(result, row, &idem_table_cases, rows->kept)) {
            break;
        }
        ours = idem_postgres_row_read(result, row, &idem_table_cases, opened, rows->kept);
        read->case_count += 1;
    }
    PQclear(result);
    return ours ? IDEM_ROWS_OK : IDEM_ROWS_DAMAGED;
}

/* The newest open case of an entry. Its text may not fit: `*ret_fits`. */
static enum idem_rows_step entry_case_find(struct idem_rows *rows,
                                           struct idem_entry *entry,
                                           bool *ret_fits)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    bool ours = true;
    idem_postgres_arg_i64(&args, entry->row);
    enum idem_rows_step step = ask(rows, IDEM_POSTGRES_CASE_OPEN, &args, &result);
    if (step == IDEM_ROWS_OK && PQntuples(result) > 0) {
        *ret_fits = idem_postgres_row_fits(result, 0, &idem_table_cases, rows->kept);
        ours = !*ret_fits ||
               idem_postgres_row_read(result, 0, &idem_table_cases, &entry->opened, rows->kept);
    }
    PQclear(result);
    return ours ? step : IDEM_ROWS_DAMAGED;
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

static enum idem_rows_step entries_ask(struct idem_rows *rows,
                                       int64_t payment_row,
                                       const struct idem_read *read,
                                       PGresult **ret_result)
{
    struct idem_postgres_args args = { .count = 0 };
    enum idem_postgres_statement index = IDEM_POSTGRES_ENTRIES;
    if (payment_row != 0) {
        index = IDEM_POSTGRES_ENTRIES_PAYMENT;
        idem_postgres_arg_i64(&args, payment_row);
        idem_postgres_arg_i64(&args, read->after_row);
    } else if (read->filter == IDEM_LIST_CASES) {
        index = IDEM_POSTGRES_ENTRIES_CASES;
        idem_postgres_arg_i64(&args, read->after_row);
    } else {
        struct states states = states_of(read->filter);
        idem_postgres_arg_i64(&args, read->after_row);
        idem_postgres_arg_i64(&args, (int64_t)states.first);
        idem_postgres_arg_i64(&args, (int64_t)states.last);
    }
    idem_postgres_arg_i64(&args, IDEM_READ_ENTRIES_MAX + 1);
    return ask(rows, index, &args, ret_result);
}

/* The entry at hand, with its case. False in `*ret_fits`: it is for the next page. */
static enum idem_rows_step entry_add(
    struct idem_rows *rows, const PGresult *result, int row, struct idem_read *read, bool *ret_fits)
{
    struct idem_entry *entry = &read->entries[read->entry_count];
    *ret_fits = read->entry_count < IDEM_READ_ENTRIES_MAX &&
                idem_postgres_row_fits(result, row, &idem_table_entries, rows->kept);
    if (!*ret_fits) {
        return IDEM_ROWS_OK;
    }
    *entry = (struct idem_entry){ .row = idem_postgres_number(result, row, 0) };
    if (!idem_postgres_row_read(result, row, &idem_table_entries, entry, rows->kept)) {
        return IDEM_ROWS_DAMAGED;
    }
    enum idem_rows_step step = entry_case_find(rows, entry, ret_fits);
    read->entry_count += step == IDEM_ROWS_OK && *ret_fits ? 1 : 0;
    return step;
}

enum idem_rows_step idem_postgres_find_entries(struct idem_rows *rows,
                                               int64_t payment_row,
                                               struct idem_read *read)
{
    PGresult *result = NULL;
    bool fits = true;
    enum idem_rows_step step = entries_ask(rows, payment_row, read, &result);
    read->entry_count = 0;
    for (int row = 0; row < PQntuples(result) && fits && step == IDEM_ROWS_OK; row++) {
        step = entry_add(rows, result, row, read, &fits);
    }
    read->more = !fits;
    PQclear(result);
    return step;
}

enum idem_rows_step idem_postgres_find_credentials(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    bool ours = true;
    idem_postgres_arg_i64(&args, read->after_row);
    idem_postgres_arg_i64(&args, IDEM_READ_CREDENTIALS_MAX + 1);
    enum idem_rows_step step = ask(rows, IDEM_POSTGRES_CREDENTIALS_PAGE, &args, &result);
    int row = 0;
    read->credential_count = 0;
    while (row < PQntuples(result) && ours && read->credential_count < IDEM_READ_CREDENTIALS_MAX &&
           idem_postgres_row_fits(result, row, &idem_table_credentials, rows->kept)) {
        struct idem_credential_row *credential = &read->credentials[read->credential_count];
        credential->row = idem_postgres_number(result, row, 0);
        ours = idem_postgres_row_read(result, row, &idem_table_credentials, credential, rows->kept);
        read->credential_count += 1;
        row += 1;
    }
    read->more = row < PQntuples(result);
    PQclear(result);
    return ours ? step : IDEM_ROWS_DAMAGED;
}

enum idem_rows_step idem_postgres_find_places(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    bool ours = true;
    int row = 0;
    idem_postgres_arg_i64(&args, IDEM_READ_PLACES_MAX + 1);
    enum idem_rows_step step = ask(rows, IDEM_POSTGRES_PLACES, &args, &result);
    read->place_count = 0;
    while (row < PQntuples(result) && ours && read->place_count < IDEM_READ_PLACES_MAX &&
           idem_postgres_row_fits(result, row, &idem_table_places, rows->kept)) {
        struct idem_place *place = &read->places[read->place_count];
        ours = idem_postgres_row_read(result, row, &idem_table_places, place, rows->kept);
        read->place_count += 1;
        row += 1;
    }
    read->more = row < PQntuples(result);
    PQclear(result);
    return ours ? step : IDEM_ROWS_DAMAGED;
}

static enum idem_rows_step states_count(struct idem_rows *rows, struct idem_summary *ret_summary)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    bool ours = true;
    enum idem_rows_step step = ask(rows, IDEM_POSTGRES_STATES, &args, &result);
    for (int row = 0; row < PQntuples(result) && ours; row++) {
        int64_t state = idem_postgres_number(result, row, 0);
        ours = state > IDEM_INTENT_NONE && state < IDEM_INTENT_COUNT;
        if (ours) {
            ret_summary->by_state[state] = idem_postgres_number(result, row, 1);
        }
    }
    PQclear(result);
    return ours ? step : IDEM_ROWS_DAMAGED;
}

enum idem_rows_step idem_postgres_find_summary(struct idem_rows *rows,
                                               struct idem_summary *ret_summary)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    enum idem_rows_step step = states_count(rows, ret_summary);
    if (step == IDEM_ROWS_OK) {
        step = ask(rows, IDEM_POSTGRES_NUMBERS, &args, &result);
    }
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    ret_summary->oldest_unknown_us = idem_postgres_number(result, 0, 0);
    ret_summary->oldest_due_us = idem_postgres_number(result, 0, 1);
    ret_summary->cases_open = idem_postgres_number(result, 0, 2);
    ret_summary->deliveries_pending = idem_postgres_number(result, 0, 3);
    ret_summary->deliveries_dead = idem_postgres_number(result, 0, 4);
    ret_summary->oldest_delivery_us = idem_postgres_number(result, 0, 5);
    ret_summary->stubs = idem_postgres_number(result, 0, 6);
    ret_summary->bytes = idem_postgres_number(result, 0, 7);
    ret_summary->bytes_free = 0; /* The server's own affair: autovacuum uses it again. */
    PQclear(result);
    return IDEM_ROWS_OK;
}

/* Those that are still open come back, in the order in which they were asked for. */
static void waited_note(const PGresult *open, struct idem_read *read)
{
    size_t over = 0;
    int next = 0;
    for (size_t i = 0; i < read->waited_count; i++) {
        bool is_open =
            next < PQntuples(open) && idem_postgres_number(open, next, 0) == read->waited[i].row;
        next += is_open ? 1 : 0;
        if (!is_open) {
            read->waited[over] = read->waited[i];
            over += 1;
        }
    }
    IDEM_ASSERT(next == PQntuples(open));
    read->waited_count = over;
}

enum idem_rows_step idem_postgres_find_waited(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    struct idem_buf text;
    PGresult *result = NULL;
    IDEM_ASSERT(read->waited_count <= IDEM_READ_WAITED_MAX);
    idem_buf_init(&text, read->memory, sizeof(read->memory)); /* No row is kept by this read. */
    for (size_t i = 0; i < read->waited_count; i++) {
        idem_buf_add(&text, i == 0 ? IDEM_STR("") : IDEM_STR(","));
        idem_buf_add_i64(&text, read->waited[i].row);
    }
    IDEM_ASSERT(!text.full);
    if (connection->listener != NULL) { /* First: what ends from now on is told. */
        idem_postgres_listener_want(connection->listener, read->waited, read->waited_count);
    }
    idem_postgres_arg_text(&args, idem_buf_str(&text));
    enum idem_rows_step step = ask(rows, IDEM_POSTGRES_WAITED, &args, &result);
    if (step == IDEM_ROWS_OK) {
        waited_note(result, read);
        PQclear(result);
    }
    return step;
}
