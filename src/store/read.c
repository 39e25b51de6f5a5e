/*
 * Reads look at one snapshot of committed rows and copy what they find.
 *
 * Nothing a caller owns is found without the caller's principal (P13). The encoded provider request
 * is the one bulky text that no reader needs: if an operation's history does not fit beside it,
 * the request is left out; if that is not enough, the oldest events are, and event_total says so.
 *
 * Where a time begins and ends among the intents is found by halving their handles. They stand in
 * order of time but for IDEM_EFFECTS_SKEW_US: if one was made that much before a time, all those
 * before it were made before that time; likewise behind it. So halving may stop at whatever place
 * it comes to, and none is overlooked.
 */
#include "store/read.h"

#include "base/bug.h"

static enum idem_rows_step payment_read(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_rows_key key = { .id = read->id, .principal = read->principal };
    enum idem_rows_step step = rows->ops->find_payment(rows, IDEM_FIND_BY_ID, &key, &read->payment);
    read->found = read->payment.row != 0;
    return step;
}

static enum idem_rows_step order_read(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_rows_key key = { .principal = read->principal, .number = read->order_no };
    enum idem_rows_step step =
        rows->ops->find_payment(rows, IDEM_FIND_HOLDER, &key, &read->payment);
    if (step == IDEM_ROWS_OK && read->payment.row == 0) {
        step = rows->ops->find_payment(rows, IDEM_FIND_NEWEST_PAST, &key, &read->payment);
    }
    read->found = read->payment.row != 0;
    return step;
}

static enum idem_rows_step refund_read(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_rows_key key = { .id = read->id, .principal = read->principal };
    enum idem_rows_step step = rows->ops->find_refund(rows, IDEM_FIND_BY_ID, &key, &read->refund);
    read->found = read->refund.row != 0;
    return step;
}

/* Forgets the intent's request, and with it all text that was kept after it. */
static void request_drop(struct idem_read *read)
{
    struct idem_str *request = &read->intent.effect.request;
    IDEM_ASSERT(request->data >= read->kept.data);
    read->kept.len = (size_t)(request->data - read->kept.data);
    *request = (struct idem_str){ .len = 0 };
}

/* Cases are for operators; they come before events, of which the oldest may be missing. */
static enum idem_rows_step events_read(struct idem_rows *rows, struct idem_read *read)
{
    enum idem_rows_step step = IDEM_ROWS_OK;
    if (read->kind == IDEM_READ_ANY_OPERATION || read->kind == IDEM_READ_CASE) {
        step = rows->ops->find_cases(rows, read->intent.row, read);
    }
    return step == IDEM_ROWS_OK ? rows->ops->find_events(rows, read->intent.row, read) : step;
}

static enum idem_rows_step history_read(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_str request = read->intent.effect.request;
    enum idem_rows_step step =
        rows->ops->find_sends(rows, read->intent.row, read->sends, &read->send_count);
    if (step == IDEM_ROWS_OK) {
        step = events_read(rows, read);
    }
    bool short_of_room =
        read->event_count < read->event_total && read->event_count < IDEM_READ_EVENTS_MAX;
    if (step == IDEM_ROWS_OK && short_of_room && request.len > 0) {
        request_drop(read);
        step = events_read(rows, read);
    }
    return step;
}

static enum idem_rows_step operation_read(struct idem_rows *rows,
                                          enum idem_find find,
                                          struct idem_read *read)
{
    struct idem_rows_key key = {
        .id = read->id,
        .scope = read->scope,
        .principal = read->principal,
    };
    enum idem_rows_step step = rows->ops->find_intent(rows, find, &key, &read->intent);
    if (step != IDEM_ROWS_OK || read->kept.full) {
        return step;
    }
    bool whoever = find == IDEM_FIND_BY_ANY_ID || find == IDEM_FIND_BY_CASE;
    if (!whoever && !idem_str_equal(read->intent.principal, read->principal)) {
        read->intent = (struct idem_intent){ .row = 0 };
    }
    read->found = read->intent.row != 0;
    return read->found ? history_read(rows, read) : IDEM_ROWS_OK;
}

static enum idem_rows_step of_payment_read(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_rows_key key = { .id = read->id };
    enum idem_rows_step step =
        rows->ops->find_payment(rows, IDEM_FIND_BY_ANY_ID, &key, &read->payment);
    read->found = read->payment.row != 0;
    return step == IDEM_ROWS_OK && read->found
               ? rows->ops->find_entries(rows, read->payment.row, read)
               : step;
}

/* Without its history: where it stands is all that those who wait for it are told. */
static enum idem_rows_step intent_read(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_rows_key key = { .scope = read->scope };
    enum idem_rows_step step =
        rows->ops->find_intent(rows, IDEM_FIND_BY_SCOPE, &key, &read->intent);
    read->found = read->intent.row != 0;
    return step;
}

/* One by one, where nobody else writes and nobody asks in earnest. */
static enum idem_rows_step waited_read(struct idem_rows *rows, struct idem_read *read)
{
    size_t over = 0;
    enum idem_rows_step step = IDEM_ROWS_OK;
    for (size_t i = 0; i < read->waited_count && step == IDEM_ROWS_OK; i++) {
        struct idem_rows_key key = { .scope = read->waited[i].scope };
        read->intent = (struct idem_intent){ .row = 0 };
        idem_buf_reset(&read->kept);
        step = rows->ops->find_intent(rows, IDEM_FIND_BY_SCOPE, &key, &read->intent);
        bool is_over = read->intent.row == 0 || idem_intent_is_over(read->intent.state);
        if (step == IDEM_ROWS_OK && is_over) {
            read->waited[over] = read->waited[i];
            over += 1;
        }
    }
    read->waited_count = over;
    return step;
}

/* Where a time begins among handles. */
struct halves {
    int64_t time_us;
    int64_t before; /* It and all before it were made before that time, or need no look. */
    int64_t behind; /* It and all behind it were not, or are not there; 0: not known yet. */
};

/* Looks at `row`, or the next one that is there. */
static enum idem_rows_step halves_look(struct idem_rows *rows, int64_t row, struct halves *halves)
{
    int64_t found = 0;
    int64_t created_us = 0;
    enum idem_rows_step step = rows->ops->find_created(rows, row, &found, &created_us);
    if (step == IDEM_ROWS_OK && found != 0 && created_us < halves->time_us) {
        halves->before = found;
    } else {
        halves->behind = row;
    }
    return step;
}

/* From `before` on in strides that double until it is behind the time, then by halving. */
static enum idem_rows_step halves_find(struct idem_rows *rows, struct halves *halves)
{
    enum idem_rows_step step = IDEM_ROWS_OK;
    for (int64_t stride = 1; halves->behind == 0 && step == IDEM_ROWS_OK; stride *= 2) {
        bool far = halves->before > INT64_MAX - stride; /* Cursors come from callers. */
        step = halves_look(rows, far ? INT64_MAX : halves->before + stride, halves);
    }
    while (step == IDEM_ROWS_OK && halves->behind - halves->before > 1) {
        int64_t middle = halves->before + (halves->behind - halves->before) / 2;
        step = halves_look(rows, middle, halves);
    }
    return step;
}

/* One is not a page. */
static enum idem_rows_step webhooks_read(struct idem_rows *rows, struct idem_read *read)
{
    if (idem_uid_is_zero(read->id)) {
        return rows->ops->find_webhooks(rows, read);
    }
    const struct idem_rows_key key = { .id = read->id };
    read->webhooks[0] = (struct idem_webhook){ .row = 0 };
    enum idem_rows_step step =
        rows->ops->find_webhook(rows, IDEM_FIND_BY_ANY_ID, &key, &read->webhooks[0]);
    read->webhook_count = step == IDEM_ROWS_OK && read->webhooks[0].row != 0 ? 1 : 0;
    read->more = false;
    return step;
}

static enum idem_rows_step effects_read(struct idem_rows *rows, struct idem_read *read)
{
    int64_t after_row = read->after_row;
    struct halves from = { .time_us = read->from_us - IDEM_EFFECTS_SKEW_US };
    enum idem_rows_step step = after_row == 0 ? halves_find(rows, &from) : IDEM_ROWS_OK;
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    bool endless = read->to_us > INT64_MAX - IDEM_EFFECTS_SKEW_US;
    struct halves to = {
        .time_us = endless ? INT64_MAX : read->to_us + IDEM_EFFECTS_SKEW_US,
        .before = after_row == 0 ? from.before : after_row,
    };
    read->after_row = to.before;
    step = halves_find(rows, &to);
    read->until_row = to.behind;
    if (step == IDEM_ROWS_OK) {
        step = rows->ops->find_effects(rows, read);
    }
    read->after_row = after_row;
    return step;
}

static enum idem_rows_step kind_read(struct idem_rows *rows,
                                     int64_t incarnation,
                                     struct idem_read *read)
{
    switch (read->kind) {
    case IDEM_READ_PAYMENT:
        return payment_read(rows, read);
    case IDEM_READ_PAYMENT_BY_ORDER:
        return order_read(rows, read);
    case IDEM_READ_REFUND:
        return refund_read(rows, read);
    case IDEM_READ_OPERATION:
        return operation_read(rows, IDEM_FIND_BY_ID, read);
    case IDEM_READ_OPERATION_BY_SCOPE:
        return operation_read(rows, IDEM_FIND_BY_SCOPE, read);
    case IDEM_READ_DUE:
        return rows->ops->find_due(rows, read);
    case IDEM_READ_LEFT:
        return rows->ops->find_left(rows, incarnation, read);
    case IDEM_READ_REAP:
        return rows->ops->find_reap(rows, read);
    case IDEM_READ_ANY_OPERATION:
        return operation_read(rows, IDEM_FIND_BY_ANY_ID, read);
    case IDEM_READ_LIST:
        return rows->ops->find_entries(rows, 0, read);
    case IDEM_READ_OF_PAYMENT:
        return of_payment_read(rows, read);
    case IDEM_READ_SUMMARY:
        return rows->ops->find_summary(rows, &read->summary);
    case IDEM_READ_CREDENTIALS:
        return rows->ops->find_credentials(rows, read);
    case IDEM_READ_PLACES:
        return rows->ops->find_places(rows, read);
    case IDEM_READ_INTENT:
        return intent_read(rows, read);
    case IDEM_READ_WAITED:
        return rows->ops->find_waited == NULL ? waited_read(rows, read)
                                              : rows->ops->find_waited(rows, read);
    case IDEM_READ_CASE:
        return operation_read(rows, IDEM_FIND_BY_CASE, read);
    case IDEM_READ_CASES:
        return rows->ops->find_case_list(rows, read);
    case IDEM_READ_WEBHOOKS:
        return webhooks_read(rows, read);
    case IDEM_READ_POSTS:
    case IDEM_READ_DELIVERIES:
        return rows->ops->find_posts(rows, read);
    case IDEM_READ_EFFECTS:
        return effects_read(rows, read);
    case IDEM_READ_NONE:
    case IDEM_READ_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void read_reset(struct idem_read *read)
{
    idem_buf_init(&read->kept, read->memory, sizeof(read->memory));
    read->found = false;
    read->intent = (struct idem_intent){ .row = 0 };
    read->payment = (struct idem_payment){ .row = 0 };
    read->refund = (struct idem_refund){ .row = 0 };
    read->send_count = 0;
    read->event_count = 0;
    read->event_total = 0;
    read->due_count = 0;
    read->next_due_us = 0;
    read->case_count = 0;
    read->entry_count = 0;
    read->more = false;
    read->summary = (struct idem_summary){ .bytes = 0 };
    read->credential_count = 0;
    read->place_count = 0;
    read->webhook_count = 0;
    read->post_count = 0;
    read->effect_count = 0;
}

/* It is told to somebody outside; workers only make commands of what they read. */
static bool is_told(enum idem_read_kind kind)
{
    return kind == IDEM_READ_PAYMENT || kind == IDEM_READ_PAYMENT_BY_ORDER ||
           kind == IDEM_READ_REFUND || kind == IDEM_READ_OPERATION ||
           kind == IDEM_READ_OPERATION_BY_SCOPE || kind == IDEM_READ_ANY_OPERATION ||
           kind == IDEM_READ_INTENT || kind == IDEM_READ_CASE;
}

bool idem_read_run(struct idem_rows *rows, int64_t incarnation, struct idem_read *read)
{
    read_reset(read);
    rows->kept = &read->kept;

    enum idem_rows_step step = rows->ops->begin(rows);
    if (step == IDEM_ROWS_OK) {
        step = kind_read(rows, incarnation, read);
    }
    if (rows->ops->rollback(rows) != IDEM_ROWS_OK) { /* Nothing was written: the shorter end. */
        step = IDEM_ROWS_LOST;
    }
    if (step == IDEM_ROWS_OK && is_told(read->kind) && rows->ops->prove != NULL) {
        step = rows->ops->prove(rows);
    }
    /* Text longer than limits.h allows is not ours; half of it is no answer. */
    if (step == IDEM_ROWS_OK && !read->kept.full) {
        read->answer = IDEM_STORE_DURABLE;
        return true;
    }
    read_reset(read);
    bool down = step == IDEM_ROWS_LOST || step == IDEM_ROWS_DAMAGED || step == IDEM_ROWS_DOWN;
    read->answer = down ? IDEM_STORE_DOWN : IDEM_STORE_NOTHING;
    return step != IDEM_ROWS_DAMAGED;
}
