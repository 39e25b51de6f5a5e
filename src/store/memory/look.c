/*
 * Rows that a reader asks for, by walking the arrays: slow and plain, which is what a test wants to
 * compare with.
 */
#include "base/bug.h"
#include "store/columns.h"
#include "store/memory/memory_internal.h"

/* Where a walk behind `row` begins; cursors come from callers, and may be any number. */
static int64_t row_behind(int64_t row)
{
    return row < INT64_MAX ? row + 1 : INT64_MAX;
}

/* Events from the newest on, as long as there is room. */
static void events_copy(const struct idem_memory_rows *memory,
                        int64_t newest,
                        struct idem_buf *kept,
                        struct idem_read *read)
{
    bool room = true;
    read->event_count = 0;
    read->event_total = 0;
    for (int64_t at = newest; at != 0; read->event_total++) {
        const struct idem_memory_event *row = idem_memory_row(&memory->events, at);
        at = row->before;
        room = room && read->event_count < IDEM_READ_EVENTS_MAX &&
               row->event.detail.len <= kept->max - kept->len;
        if (room) {
            struct idem_event *event = &read->events[read->event_count];
            *event = row->event;
            idem_table_text_keep(&idem_table_events, event, kept);
            read->event_count += 1;
        }
    }
}

enum idem_rows_step idem_memory_find_events(struct idem_rows *rows,
                                            int64_t intent_row,
                                            struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    events_copy(memory, idem_memory_intent_at(memory, intent_row)->last_event, rows->kept, read);

    for (size_t i = 0; i < read->event_count / 2; i++) {
        struct idem_event other = read->events[i];
        read->events[i] = read->events[read->event_count - 1 - i];
        read->events[read->event_count - 1 - i] = other;
    }
    return IDEM_ROWS_OK;
}

static struct idem_due due_of(const struct idem_intent *intent)
{
    return (struct idem_due){
        .scope = intent->scope,
        .row = intent->row,
        .due_us = intent->due_us,
    };
}

/* Keeps the list sorted by time, then row; what falls off the end is for the next look. */
static void due_insert(struct idem_read *read, struct idem_due due)
{
    size_t at = read->due_count;
    while (at > 0 && read->due[at - 1].due_us > due.due_us) {
        at -= 1;
    }
    if (at == IDEM_READ_DUE_MAX) {
        return;
    }
    if (read->due_count < IDEM_READ_DUE_MAX) {
        read->due_count += 1;
    }
    for (size_t i = read->due_count - 1; i > at; i--) {
        read->due[i] = read->due[i - 1];
    }
    read->due[at] = due;
}

enum idem_rows_step idem_memory_find_due(struct idem_rows *rows, struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    read->due_count = 0;
    read->next_due_us = 0;
    for (int64_t handle = 1; (size_t)handle <= memory->intents.count; handle++) {
        const struct idem_memory_intent *found = idem_memory_intent_at(memory, handle);
        if (found == NULL || found->intent.due_us == 0) {
            continue;
        }
        const struct idem_intent *intent = &found->intent;
        if (intent->due_us <= read->now_us) {
            due_insert(read, due_of(intent));
        } else if (read->next_due_us == 0 || intent->due_us < read->next_due_us) {
            read->next_due_us = intent->due_us;
        }
    }
    return IDEM_ROWS_OK;
}

static bool intent_is_left(const struct idem_intent *intent, int64_t incarnation)
{
    return intent->due_us > 0 && intent->lease_end_us > 0 && intent->incarnation != incarnation;
}

enum idem_rows_step idem_memory_find_left(struct idem_rows *rows,
                                          int64_t incarnation,
                                          struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    read->due_count = 0;
    for (int64_t handle = row_behind(read->after_row); (size_t)handle <= memory->intents.count;
         handle++) {
        const struct idem_memory_intent *found = idem_memory_intent_at(memory, handle);
        if (found != NULL && intent_is_left(&found->intent, incarnation) &&
            read->due_count < IDEM_READ_DUE_MAX) {
            read->due[read->due_count] = due_of(&found->intent);
            read->due_count += 1;
        }
    }
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_find_reap(struct idem_rows *rows, struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    read->due_count = 0;
    read->next_due_us = 0;
    for (int64_t handle = 1; (size_t)handle <= memory->intents.count; handle++) {
        const struct idem_memory_intent *found = idem_memory_intent_at(memory, handle);
        if (found == NULL || found->intent.reap_us == 0) {
            continue;
        }
        struct idem_due due = due_of(&found->intent);
        due.due_us = found->intent.reap_us;
        if (due.due_us <= read->now_us) {
            due_insert(read, due);
        } else if (read->next_due_us == 0 || due.due_us < read->next_due_us) {
            read->next_due_us = due.due_us;
        }
    }
    return IDEM_ROWS_OK;
}

static bool row_fits(const struct idem_table *table, const void *row, const struct idem_buf *buf)
{
    return idem_table_text_size(table, row) <= buf->max - buf->len;
}

enum idem_rows_step idem_memory_find_cases(struct idem_rows *rows,
                                           int64_t intent_row,
                                           struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    read->case_count = 0;
    for (int64_t handle = (int64_t)memory->cases.count; handle > 0; handle--) {
        const struct idem_memory_case *found = idem_memory_row(&memory->cases, handle);
        if (found == NULL || found->intent_row != intent_row) {
            continue;
        }
        if (read->case_count == IDEM_READ_CASES_MAX ||
            !row_fits(&idem_table_cases, &found->opened, rows->kept)) {
            break;
        }
        struct idem_case *opened = &read->cases[read->case_count];
        *opened = found->opened;
        idem_table_text_keep(&idem_table_cases, opened, rows->kept);
        read->case_count += 1;
    }
    return IDEM_ROWS_OK;
}

/* The newest open case of an intent, or NULL. */
static const struct idem_case *case_open(const struct idem_memory_rows *memory, int64_t intent_row)
{
    for (int64_t handle = (int64_t)memory->cases.count; handle > 0; handle--) {
        const struct idem_memory_case *found = idem_memory_row(&memory->cases, handle);
        if (found != NULL && found->intent_row == intent_row && found->opened.decided_us == 0) {
            return &found->opened;
        }
    }
    return NULL;
}

enum idem_rows_step idem_memory_find_case_kinds(struct idem_rows *rows,
                                                int64_t intent_row,
                                                uint32_t *ret_open,
                                                uint32_t *ret_decided)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    uint32_t kinds[2] = { 0, 0 }; /* Open, decided. */
    for (int64_t handle = 1; (size_t)handle <= memory->cases.count; handle++) {
        const struct idem_memory_case *found = idem_memory_row(&memory->cases, handle);
        if (found != NULL && found->intent_row == intent_row) {
            kinds[found->opened.decided_us != 0 ? 1 : 0] |= UINT32_C(1) << found->opened.kind;
        }
    }
    *ret_open = kinds[0];
    *ret_decided = kinds[1];
    return IDEM_ROWS_OK;
}

static bool intent_is_asked_for(const struct idem_memory_rows *memory,
                                const struct idem_intent *intent,
                                enum idem_list_filter filter)
{
    switch (filter) {
    case IDEM_LIST_OPEN:
        return !idem_intent_is_final(intent->state);
    case IDEM_LIST_PROCESSING:
        return intent->state == IDEM_INTENT_CLAIMED || intent->state == IDEM_INTENT_DISPATCHED;
    case IDEM_LIST_UNKNOWN:
        return intent->state == IDEM_INTENT_UNKNOWN;
    case IDEM_LIST_PARKED:
        return intent->state == IDEM_INTENT_PARKED;
    case IDEM_LIST_RELEASED:
        return intent->state == IDEM_INTENT_RELEASED;
    case IDEM_LIST_CASES:
        return case_open(memory, intent->row) != NULL;
    case IDEM_LIST_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* `opened`: NULL is none. */
static struct idem_entry entry_of(const struct idem_intent *intent, const struct idem_case *opened)
{
    return (struct idem_entry){
        .row = intent->row,
        .id = intent->id,
        .principal = intent->principal,
        .endpoint = intent->endpoint,
        .state = intent->state,
        .step = intent->step,
        .due_us = intent->due_us,
        .lease_end_us = intent->lease_end_us,
        .created_us = intent->created_us,
        .unknown_since_us = intent->unknown_since_us,
        .finished_us = intent->finished_us,
        .send_count = intent->send_count,
        .entry = intent->effect.entry,
        .amount_minor = intent->effect.amount_minor,
        .currency = intent->effect.currency,
        .payment_id = intent->payment_id,
        .opened = opened != NULL ? *opened : (struct idem_case){ .kind = IDEM_CASE_NONE },
    };
}

/* False: there is no room for it. */
static bool entry_add(struct idem_read *read, struct idem_buf *kept, struct idem_entry entry)
{
    size_t size = idem_table_text_size(&idem_table_entries, &entry) +
                  idem_table_text_size(&idem_table_cases, &entry.opened);
    if (read->entry_count == IDEM_READ_ENTRIES_MAX || size > kept->max - kept->len) {
        return false;
    }
    idem_table_text_keep(&idem_table_entries, &entry, kept);
    idem_table_text_keep(&idem_table_cases, &entry.opened, kept);
    read->entries[read->entry_count] = entry;
    read->entry_count += 1;
    return true;
}

enum idem_rows_step idem_memory_find_entries(struct idem_rows *rows,
                                             int64_t payment_row,
                                             struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    int64_t handle = row_behind(read->after_row);
    read->entry_count = 0;
    read->more = false;
    for (; (size_t)handle <= memory->intents.count && !read->more; handle++) {
        const struct idem_memory_intent *found = idem_memory_intent_at(memory, handle);
        bool wanted =
            found != NULL &&
            (payment_row != 0 ? found->intent.payment_row == payment_row
                              : intent_is_asked_for(memory, &found->intent, read->filter));
        read->more =
            wanted && !entry_add(read, rows->kept,
                                 entry_of(&found->intent, case_open(memory, found->intent.row)));
    }
    return IDEM_ROWS_OK;
}

static bool case_is_asked_for(const struct idem_case *opened, const struct idem_read *read)
{
    return (read->case_kind == IDEM_CASE_NONE || opened->kind == read->case_kind) &&
           (!read->open_only || opened->decided_us == 0);
}

/* Where a walk before `row` begins; 0: at the newest. */
static int64_t row_before(int64_t row, const struct idem_memory_table *table)
{
    int64_t newest = (int64_t)table->count;
    return row == 0 || row > newest ? newest : row - 1;
}

enum idem_rows_step idem_memory_find_case_list(struct idem_rows *rows, struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    int64_t handle = row_before(read->after_row, &memory->cases);
    read->entry_count = 0;
    read->more = false;
    for (; handle > 0 && !read->more; handle--) {
        const struct idem_memory_case *found = idem_memory_row(&memory->cases, handle);
        if (found == NULL || !case_is_asked_for(&found->opened, read)) {
            continue;
        }
        const struct idem_memory_intent *of = idem_memory_intent_at(memory, found->intent_row);
        struct idem_entry entry = entry_of(&of->intent, &found->opened);
        entry.row = handle;
        read->more = !entry_add(read, rows->kept, entry);
    }
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_find_created(struct idem_rows *rows,
                                             int64_t from_row,
                                             int64_t *ret_row,
                                             int64_t *ret_created_us)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    const struct idem_memory_intent *found = NULL;
    *ret_row = 0;
    for (int64_t handle = from_row > 0 ? from_row : 1;
         found == NULL && (size_t)handle <= memory->intents.count; handle++) {
        found = idem_memory_intent_at(memory, handle);
    }
    if (found != NULL) {
        *ret_row = found->intent.row;
        *ret_created_us = found->intent.created_us;
    }
    return IDEM_ROWS_OK;
}

static bool effect_is_asked_for(const struct idem_intent *intent, const struct idem_read *read)
{
    return intent->effect.kind != IDEM_EFFECT_KIND_NONE &&
           idem_str_equal(intent->effect.entry, read->entry) &&
           intent->created_us >= read->from_us && intent->created_us < read->to_us;
}

static struct idem_effect_line line_of(const struct idem_memory_rows *memory,
                                       const struct idem_intent *intent)
{
    const struct idem_memory_payment *of = idem_memory_row(&memory->payments, intent->payment_row);
    return (struct idem_effect_line){
        .row = intent->row,
        .id = intent->id,
        .state = intent->state,
        .kind = intent->effect.kind,
        .effect_id = intent->effect.id,
        .account = intent->effect.account,
        .region = intent->effect.region,
        .order_no = of != NULL ? of->payment.order_no : (struct idem_str){ .len = 0 },
        .reference = intent->effect.reference,
        .amount_minor = intent->effect.amount_minor,
        .currency = intent->effect.currency,
        .created_us = intent->created_us,
        .finished_us = intent->finished_us,
    };
}

/* False: there is no room for it. */
static bool line_add(struct idem_read *read, struct idem_buf *kept, struct idem_effect_line line)
{
    if (read->effect_count == IDEM_READ_EFFECTS_MAX ||
        !row_fits(&idem_table_effects, &line, kept)) {
        return false;
    }
    idem_table_text_keep(&idem_table_effects, &line, kept);
    read->effects[read->effect_count] = line;
    read->effect_count += 1;
    return true;
}

enum idem_rows_step idem_memory_find_effects(struct idem_rows *rows, struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    int64_t handle = row_behind(read->after_row);
    read->effect_count = 0;
    read->more = false;
    for (; handle < read->until_row && (size_t)handle <= memory->intents.count && !read->more;
         handle++) {
        const struct idem_memory_intent *found = idem_memory_intent_at(memory, handle);
        bool wanted = found != NULL && effect_is_asked_for(&found->intent, read);
        read->more = wanted && !line_add(read, rows->kept, line_of(memory, &found->intent));
    }
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_find_credentials(struct idem_rows *rows, struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    int64_t handle = row_behind(read->after_row);
    read->credential_count = 0;
    read->more = false;
    for (; (size_t)handle <= memory->credentials.count && !read->more; handle++) {
        const struct idem_memory_credential *found = idem_memory_row(&memory->credentials, handle);
        if (read->credential_count == IDEM_READ_CREDENTIALS_MAX ||
            !row_fits(&idem_table_credentials, &found->credential, rows->kept)) {
            read->more = true;
            break;
        }
        struct idem_credential_row *row = &read->credentials[read->credential_count];
        *row = found->credential;
        idem_table_text_keep(&idem_table_credentials, row, rows->kept);
        read->credential_count += 1;
    }
    return IDEM_ROWS_OK;
}

static bool place_is_known(const struct idem_read *read, const struct idem_payment *payment)
{
    for (size_t i = 0; i < read->place_count; i++) {
        const struct idem_place *place = &read->places[i];
        if (idem_str_equal(place->entry, payment->entry) &&
            idem_str_equal(place->account, payment->account) &&
            idem_str_equal(place->region, payment->region)) {
            return true;
        }
    }
    return false;
}

enum idem_rows_step idem_memory_find_places(struct idem_rows *rows, struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    read->place_count = 0;
    read->more = false;
    for (int64_t handle = 1; (size_t)handle <= memory->payments.count && !read->more; handle++) {
        const struct idem_memory_payment *found = idem_memory_row(&memory->payments, handle);
        if (found == NULL || place_is_known(read, &found->payment)) {
            continue;
        }
        struct idem_place place = {
            .entry = found->payment.entry,
            .account = found->payment.account,
            .region = found->payment.region,
        };
        read->more = read->place_count == IDEM_READ_PLACES_MAX ||
                     !row_fits(&idem_table_places, &place, rows->kept);
        if (!read->more) {
            idem_table_text_keep(&idem_table_places, &place, rows->kept);
            read->places[read->place_count] = place;
            read->place_count += 1;
        }
    }
    return IDEM_ROWS_OK;
}

static void intent_count(const struct idem_intent *intent, struct idem_summary *summary)
{
    int64_t since_us = intent->unknown_since_us;
    bool unknown = intent->state == IDEM_INTENT_UNKNOWN || intent->state == IDEM_INTENT_PARKED;
    summary->by_state[intent->state] += 1;
    if (unknown && since_us != 0 &&
        (summary->oldest_unknown_us == 0 || since_us < summary->oldest_unknown_us)) {
        summary->oldest_unknown_us = since_us;
    }
    if (summary->oldest_due_us == 0 || intent->due_us < summary->oldest_due_us) {
        summary->oldest_due_us = intent->due_us;
    }
}

/* From the newest on: the last one that is pending is the oldest. */
static void delivery_count(const struct idem_delivery *delivery, struct idem_summary *summary)
{
    if (delivery->state == IDEM_DELIVERY_PENDING) {
        summary->deliveries_pending += 1;
        summary->oldest_delivery_us = delivery->created_us;
    } else if (delivery->state == IDEM_DELIVERY_DEAD) {
        summary->deliveries_dead += 1;
    }
}

enum idem_rows_step idem_memory_find_summary(struct idem_rows *rows,
                                             struct idem_summary *ret_summary)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    for (int64_t handle = 1; (size_t)handle <= memory->intents.count; handle++) {
        const struct idem_memory_intent *found = idem_memory_intent_at(memory, handle);
        if (found != NULL && found->intent.due_us > 0) {
            intent_count(&found->intent, ret_summary);
        }
    }
    for (int64_t handle = 1; (size_t)handle <= memory->cases.count; handle++) {
        const struct idem_memory_case *found = idem_memory_row(&memory->cases, handle);
        ret_summary->cases_open += found != NULL && found->opened.decided_us == 0 ? 1 : 0;
    }
    for (int64_t handle = (int64_t)memory->deliveries.count; handle > 0; handle--) {
        const struct idem_memory_delivery *found = idem_memory_row(&memory->deliveries, handle);
        if (found != NULL) {
            delivery_count(&found->delivery, ret_summary);
        }
    }
    for (int64_t handle = 1; (size_t)handle <= memory->stubs.count; handle++) {
        ret_summary->stubs += idem_memory_row(&memory->stubs, handle) != NULL ? 1 : 0;
    }
    return IDEM_ROWS_OK;
}
