/*
 * The rows port on arrays.
 *
 * The same guards as the other backends, spelled out: ids and scopes once, an order number held by
 * one payment of a principal, a refund number by one refund of a payment, and versions compared.
 * Sends and events hang from their intent as chains, newest first.
 */
#include "store/memory/memory_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "store/columns.h"

/* One index for all: the salt says what the hash is of. */
enum salt {
    SALT_NONE = 0,
    SALT_SCOPE,
    SALT_INTENT,
    SALT_PAYMENT,
    SALT_ORDER,
    SALT_REFUND,
    SALT_NO
};

static uint64_t salted(enum salt salt)
{
    unsigned char byte = (unsigned char)salt;
    return idem_memory_hash(UINT64_C(0xcbf29ce484222325), &byte, 1);
}

static uint64_t hash_bytes(enum salt salt, const void *bytes, size_t size)
{
    return idem_memory_hash(salted(salt), bytes, size);
}

static uint64_t hash_order(struct idem_str principal, struct idem_str order_no)
{
    uint64_t hash = idem_memory_hash(salted(SALT_ORDER), principal.data, principal.len);
    return idem_memory_hash(hash, order_no.data, order_no.len);
}

static uint64_t hash_refund_no(int64_t payment_row, struct idem_str refund_no)
{
    uint64_t hash = idem_memory_hash(salted(SALT_NO), &payment_row, sizeof(payment_row));
    return idem_memory_hash(hash, refund_no.data, refund_no.len);
}

char *idem_memory_text(const struct idem_table *table, void *row)
{
    size_t size = idem_table_text_size(table, row);
    char *text = idem_memory_take(size);
    struct idem_buf buf;
    idem_buf_init(&buf, text, size);
    idem_table_text_keep(table, row, &buf);
    IDEM_ASSERT(!buf.full);
    return text;
}

struct idem_memory_intent *idem_memory_intent_at(const struct idem_memory_rows *memory,
                                                 int64_t handle)
{
    return idem_memory_row(&memory->intents, handle);
}

static struct idem_memory_payment *payment_at(const struct idem_memory_rows *memory, int64_t handle)
{
    return idem_memory_row(&memory->payments, handle);
}

static struct idem_memory_refund *refund_at(const struct idem_memory_rows *memory, int64_t handle)
{
    return idem_memory_row(&memory->refunds, handle);
}

static struct idem_memory_intent *intent_by_scope(const struct idem_memory_rows *memory,
                                                  const struct idem_scope *scope)
{
    uint64_t hash = hash_bytes(SALT_SCOPE, scope, sizeof(*scope));
    size_t place = 0;
    int64_t handle = 0;
    while ((handle = idem_memory_index_next(&memory->index, hash, &place)) != 0) {
        struct idem_memory_intent *found = idem_memory_intent_at(memory, handle);
        if (found != NULL && memcmp(&found->intent.scope, scope, sizeof(*scope)) == 0) {
            return found;
        }
    }
    return NULL;
}

static struct idem_memory_intent *intent_by_id(const struct idem_memory_rows *memory,
                                               struct idem_uid id)
{
    uint64_t hash = hash_bytes(SALT_INTENT, &id, sizeof(id));
    size_t place = 0;
    int64_t handle = 0;
    while ((handle = idem_memory_index_next(&memory->index, hash, &place)) != 0) {
        struct idem_memory_intent *found = idem_memory_intent_at(memory, handle);
        if (found != NULL && idem_uid_equal(found->intent.id, id)) {
            return found;
        }
    }
    return NULL;
}

static struct idem_memory_intent *intent_by_case(const struct idem_memory_rows *memory,
                                                 struct idem_uid id)
{
    for (int64_t handle = 1; (size_t)handle <= memory->cases.count; handle++) {
        const struct idem_memory_case *found = idem_memory_row(&memory->cases, handle);
        if (found != NULL && idem_uid_equal(found->opened.id, id)) {
            return idem_memory_intent_at(memory, found->intent_row);
        }
    }
    return NULL;
}

static struct idem_memory_payment *payment_by_id(const struct idem_memory_rows *memory,
                                                 struct idem_uid id)
{
    uint64_t hash = hash_bytes(SALT_PAYMENT, &id, sizeof(id));
    size_t place = 0;
    int64_t handle = 0;
    while ((handle = idem_memory_index_next(&memory->index, hash, &place)) != 0) {
        struct idem_memory_payment *found = payment_at(memory, handle);
        if (found != NULL && idem_uid_equal(found->payment.id, id)) {
            return found;
        }
    }
    return NULL;
}

/* The newest payment of the principal with this number that holds it, or that does not. */
static struct idem_memory_payment *payment_by_order(const struct idem_memory_rows *memory,
                                                    struct idem_str principal,
                                                    struct idem_str order_no,
                                                    bool holds)
{
    uint64_t hash = hash_order(principal, order_no);
    struct idem_memory_payment *newest = NULL;
    size_t place = 0;
    int64_t handle = 0;
    while ((handle = idem_memory_index_next(&memory->index, hash, &place)) != 0) {
        struct idem_memory_payment *found = payment_at(memory, handle);
        if (found != NULL && idem_str_equal(found->payment.principal, principal) &&
            idem_str_equal(found->payment.order_no, order_no) &&
            idem_payment_holds_order(found->payment.state) == holds &&
            (newest == NULL || found->payment.row > newest->payment.row)) {
            newest = found;
        }
    }
    return newest;
}

static struct idem_memory_refund *refund_by_id(const struct idem_memory_rows *memory,
                                               struct idem_uid id)
{
    uint64_t hash = hash_bytes(SALT_REFUND, &id, sizeof(id));
    size_t place = 0;
    int64_t handle = 0;
    while ((handle = idem_memory_index_next(&memory->index, hash, &place)) != 0) {
        struct idem_memory_refund *found = refund_at(memory, handle);
        if (found != NULL && idem_uid_equal(found->refund.id, id)) {
            return found;
        }
    }
    return NULL;
}

static bool refund_holds_no(const struct idem_refund *refund)
{
    return refund->refund_no.len > 0 && refund->state != IDEM_REFUND_FAILED;
}

static struct idem_memory_refund *refund_holder(const struct idem_memory_rows *memory,
                                                int64_t payment_row,
                                                struct idem_str refund_no)
{
    uint64_t hash = hash_refund_no(payment_row, refund_no);
    size_t place = 0;
    int64_t handle = 0;
    while ((handle = idem_memory_index_next(&memory->index, hash, &place)) != 0) {
        struct idem_memory_refund *found = refund_at(memory, handle);
        if (found != NULL && found->refund.payment_row == payment_row &&
            idem_str_equal(found->refund.refund_no, refund_no) && refund_holds_no(&found->refund)) {
            return found;
        }
    }
    return NULL;
}

static enum idem_rows_step rows_begin(struct idem_rows *rows)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    IDEM_ASSERT(!memory->begun);
    IDEM_ASSERT(memory->log.count == 0);
    memory->begun = true;
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_commit(struct idem_rows *rows)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    IDEM_ASSERT(memory->begun);
    idem_memory_keep(&memory->log);
    memory->begun = false;
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_rollback(struct idem_rows *rows)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    idem_memory_undo(&memory->log);
    memory->begun = false;
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_find_intent(struct idem_rows *rows,
                                            enum idem_find find,
                                            const struct idem_rows_key *key,
                                            struct idem_intent *ret_intent)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    const struct idem_memory_intent *found = NULL;

    if (find == IDEM_FIND_BY_CASE) {
        found = intent_by_case(memory, key->id);
    } else if (find == IDEM_FIND_BY_ID || find == IDEM_FIND_BY_ANY_ID) {
        found = intent_by_id(memory, key->id);
        if (found != NULL && find == IDEM_FIND_BY_ID &&
            !idem_str_equal(found->intent.principal, key->principal)) {
            found = NULL;
        }
    } else {
        IDEM_ASSERT(find == IDEM_FIND_BY_SCOPE || find == IDEM_FIND_BY_ROW);
        found = intent_by_scope(memory, &key->scope);
        if (found != NULL && find == IDEM_FIND_BY_ROW && found->intent.row != key->row) {
            found = NULL;
        }
    }
    if (found != NULL) {
        *ret_intent = found->intent;
        idem_table_text_keep(&idem_table_intents, ret_intent, rows->kept);
    }
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_find_payment(struct idem_rows *rows,
                                             enum idem_find find,
                                             const struct idem_rows_key *key,
                                             struct idem_payment *ret_payment)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    const struct idem_memory_payment *found = NULL;

    if (find == IDEM_FIND_BY_ROW) {
        found = payment_at(memory, key->row);
    } else if (find == IDEM_FIND_BY_ID || find == IDEM_FIND_BY_ANY_ID) {
        found = payment_by_id(memory, key->id);
        if (found != NULL && find == IDEM_FIND_BY_ID &&
            !idem_str_equal(found->payment.principal, key->principal)) {
            found = NULL;
        }
    } else {
        IDEM_ASSERT(find == IDEM_FIND_HOLDER || find == IDEM_FIND_NEWEST_PAST);
        found = payment_by_order(memory, key->principal, key->number, find == IDEM_FIND_HOLDER);
    }
    if (found != NULL) {
        *ret_payment = found->payment;
        idem_table_text_keep(&idem_table_payments, ret_payment, rows->kept);
    }
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_find_refund(struct idem_rows *rows,
                                            enum idem_find find,
                                            const struct idem_rows_key *key,
                                            struct idem_refund *ret_refund)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    const struct idem_memory_refund *found = NULL;

    if (find == IDEM_FIND_BY_ROW) {
        found = refund_at(memory, key->row);
    } else if (find == IDEM_FIND_BY_ID) {
        found = refund_by_id(memory, key->id);
        if (found != NULL && !idem_str_equal(found->refund.principal, key->principal)) {
            found = NULL;
        }
    } else {
        IDEM_ASSERT(find == IDEM_FIND_HOLDER);
        found = refund_holder(memory, key->row, key->number);
    }
    if (found != NULL) {
        *ret_refund = found->refund;
        idem_table_text_keep(&idem_table_refunds, ret_refund, rows->kept);
    }
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_find_sends(struct idem_rows *rows,
                                           int64_t intent_row,
                                           struct idem_send *ret_sends,
                                           size_t *ret_count)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    const struct idem_memory_intent *intent = idem_memory_intent_at(memory, intent_row);
    size_t count = 0;

    for (int64_t at = intent->last_send; at != 0; count++) {
        if (count == IDEM_SENDS_MAX) {
            return IDEM_ROWS_REFUSED;
        }
        const struct idem_memory_send *row = idem_memory_row(&memory->sends, at);
        ret_sends[count] = row->send;
        at = row->before;
    }
    for (size_t i = 0; i < count / 2; i++) { /* The chain has the newest first. */
        struct idem_send other = ret_sends[i];
        ret_sends[i] = ret_sends[count - 1 - i];
        ret_sends[count - 1 - i] = other;
    }
    *ret_count = count;
    return IDEM_ROWS_OK;
}

static enum idem_rows_step intent_insert(struct idem_memory_rows *memory,
                                         struct idem_intent *intent)
{
    if (intent_by_scope(memory, &intent->scope) != NULL ||
        intent_by_id(memory, intent->id) != NULL) {
        return IDEM_ROWS_MISS;
    }
    struct idem_memory_intent row = { .intent = *intent };
    row.intent.row = (int64_t)memory->intents.count + 1;
    row.head.text = idem_memory_text(&idem_table_intents, &row.intent);
    intent->row = idem_memory_add(&memory->log, &memory->intents, &row);
    IDEM_ASSERT(intent->row == row.intent.row);
    idem_memory_index_add(
        &memory->index, hash_bytes(SALT_SCOPE, &intent->scope, sizeof(intent->scope)), intent->row);
    idem_memory_index_add(&memory->index, hash_bytes(SALT_INTENT, &intent->id, sizeof(intent->id)),
                          intent->row);
    return IDEM_ROWS_OK;
}

static void sends_remove(struct idem_memory_rows *memory, int64_t intent_row)
{
    struct idem_memory_intent *intent =
        idem_memory_change(&memory->log, &memory->intents, intent_row, NULL);
    for (int64_t at = intent->last_send; at != 0;) {
        const struct idem_memory_send *send = idem_memory_row(&memory->sends, at);
        int64_t before = send->before;
        idem_memory_remove(&memory->log, &memory->sends, at);
        at = before;
    }
    intent->last_send = 0;
}

/* Those of cause `kept` stay, linked anew from the newest on. */
static void events_remove(struct idem_memory_rows *memory, int64_t intent_row, enum idem_cause kept)
{
    struct idem_memory_intent *intent =
        idem_memory_change(&memory->log, &memory->intents, intent_row, NULL);
    int64_t at = intent->last_event;
    int64_t *link = &intent->last_event;
    while (at != 0) {
        const struct idem_memory_event *event = idem_memory_row(&memory->events, at);
        int64_t before = event->before;
        if (event->event.cause == kept) {
            struct idem_memory_event *stays =
                idem_memory_change(&memory->log, &memory->events, at, NULL);
            *link = at;
            link = &stays->before;
        } else {
            idem_memory_remove(&memory->log, &memory->events, at);
        }
        at = before;
    }
    *link = 0;
}

static void intent_delete(struct idem_memory_rows *memory, int64_t intent_row)
{
    sends_remove(memory, intent_row);
    events_remove(memory, intent_row, IDEM_CAUSE_NONE);
    for (int64_t handle = 1; (size_t)handle <= memory->cases.count; handle++) {
        const struct idem_memory_case *found = idem_memory_row(&memory->cases, handle);
        if (found != NULL && found->intent_row == intent_row) {
            idem_memory_remove(&memory->log, &memory->cases, handle);
        }
    }
    idem_memory_remove(&memory->log, &memory->intents, intent_row);
}

static enum idem_rows_step rows_forget_history(struct idem_rows *rows, int64_t intent_row)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    sends_remove(memory, intent_row);
    events_remove(memory, intent_row, IDEM_CAUSE_OPERATOR);
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_write_intent(struct idem_rows *rows,
                                             struct idem_intent_write *write)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return intent_insert(memory, &write->row);
    }
    const struct idem_memory_intent *former = idem_memory_intent_at(memory, write->row.row);
    if (former == NULL || former->intent.version != write->row.version - 1) {
        return IDEM_ROWS_MISS;
    }
    if (write->write == IDEM_WRITE_DELETE) {
        intent_delete(memory, write->row.row);
        return IDEM_ROWS_OK;
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    struct idem_intent intent = write->row;
    char *text = idem_memory_text(&idem_table_intents, &intent);
    struct idem_memory_intent *row =
        idem_memory_change(&memory->log, &memory->intents, write->row.row, text);
    row->intent = intent;
    return IDEM_ROWS_OK;
}

static bool order_is_taken(const struct idem_memory_rows *memory,
                           const struct idem_payment *payment)
{
    const struct idem_memory_payment *holder =
        payment_by_order(memory, payment->principal, payment->order_no, true);
    return idem_payment_holds_order(payment->state) && holder != NULL &&
           holder->payment.row != payment->row;
}

static enum idem_rows_step payment_insert(struct idem_memory_rows *memory,
                                          struct idem_payment *payment)
{
    if (payment_by_id(memory, payment->id) != NULL) {
        return IDEM_ROWS_MISS;
    }
    struct idem_memory_payment row = { .payment = *payment };
    row.payment.row = (int64_t)memory->payments.count + 1;
    row.head.text = idem_memory_text(&idem_table_payments, &row.payment);
    payment->row = idem_memory_add(&memory->log, &memory->payments, &row);
    idem_memory_index_add(
        &memory->index, hash_bytes(SALT_PAYMENT, &payment->id, sizeof(payment->id)), payment->row);
    idem_memory_index_add(&memory->index, hash_order(payment->principal, payment->order_no),
                          payment->row);
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_write_payment(struct idem_rows *rows,
                                              struct idem_payment_write *write)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    if (order_is_taken(memory, &write->row)) {
        return IDEM_ROWS_MISS;
    }
    if (write->write == IDEM_WRITE_INSERT) {
        return payment_insert(memory, &write->row);
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    const struct idem_memory_payment *former = payment_at(memory, write->row.row);
    if (former == NULL || former->payment.version != write->row.version - 1) {
        return IDEM_ROWS_MISS;
    }
    struct idem_payment payment = write->row;
    char *text = idem_memory_text(&idem_table_payments, &payment);
    struct idem_memory_payment *row =
        idem_memory_change(&memory->log, &memory->payments, write->row.row, text);
    row->payment = payment;
    return IDEM_ROWS_OK;
}

static bool refund_no_is_taken(const struct idem_memory_rows *memory,
                               const struct idem_refund *refund)
{
    const struct idem_memory_refund *holder =
        refund_holder(memory, refund->payment_row, refund->refund_no);
    return refund_holds_no(refund) && holder != NULL && holder->refund.row != refund->row;
}

static enum idem_rows_step refund_insert(struct idem_memory_rows *memory,
                                         struct idem_refund *refund)
{
    if (refund_by_id(memory, refund->id) != NULL) {
        return IDEM_ROWS_MISS;
    }
    struct idem_memory_refund row = { .refund = *refund };
    row.refund.row = (int64_t)memory->refunds.count + 1;
    row.head.text = idem_memory_text(&idem_table_refunds, &row.refund);
    refund->row = idem_memory_add(&memory->log, &memory->refunds, &row);
    idem_memory_index_add(&memory->index, hash_bytes(SALT_REFUND, &refund->id, sizeof(refund->id)),
                          refund->row);
    idem_memory_index_add(&memory->index, hash_refund_no(refund->payment_row, refund->refund_no),
                          refund->row);
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_write_refund(struct idem_rows *rows,
                                             struct idem_refund_write *write)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    if (refund_no_is_taken(memory, &write->row)) {
        return IDEM_ROWS_MISS;
    }
    if (write->write == IDEM_WRITE_INSERT) {
        return refund_insert(memory, &write->row);
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    const struct idem_memory_refund *former = refund_at(memory, write->row.row);
    if (former == NULL || former->refund.version != write->row.version - 1) {
        return IDEM_ROWS_MISS;
    }
    struct idem_refund refund = write->row;
    char *text = idem_memory_text(&idem_table_refunds, &refund);
    struct idem_memory_refund *row =
        idem_memory_change(&memory->log, &memory->refunds, write->row.row, text);
    row->refund = refund;
    return IDEM_ROWS_OK;
}

/* The handle of send `no` of an intent, or 0. */
static int64_t send_find(const struct idem_memory_rows *memory, int64_t intent_row, uint32_t no)
{
    int64_t at = idem_memory_intent_at(memory, intent_row)->last_send;
    while (at != 0) {
        const struct idem_memory_send *row = idem_memory_row(&memory->sends, at);
        if (row->send.no == no) {
            return at;
        }
        at = row->before;
    }
    return 0;
}

static enum idem_rows_step rows_write_send(struct idem_rows *rows,
                                           int64_t intent_row,
                                           const struct idem_send_write *write)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    int64_t known = send_find(memory, intent_row, write->row.no);
    if ((known == 0) != (write->write == IDEM_WRITE_INSERT)) {
        return IDEM_ROWS_MISS;
    }
    if (write->write == IDEM_WRITE_UPDATE) {
        struct idem_memory_send *row =
            idem_memory_change(&memory->log, &memory->sends, known, NULL);
        row->send.state = write->row.state;
        return IDEM_ROWS_OK;
    }
    struct idem_memory_intent *intent =
        idem_memory_change(&memory->log, &memory->intents, intent_row, NULL);
    struct idem_memory_send row = { .before = intent->last_send, .send = write->row };
    intent->last_send = idem_memory_add(&memory->log, &memory->sends, &row);
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_add_event(struct idem_rows *rows,
                                          int64_t intent_row,
                                          const struct idem_event *event)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    struct idem_memory_intent *intent =
        idem_memory_change(&memory->log, &memory->intents, intent_row, NULL);
    struct idem_memory_event row = { .before = intent->last_event, .event = *event };
    row.head.text = idem_memory_text(&idem_table_events, &row.event);
    intent->last_event = idem_memory_add(&memory->log, &memory->events, &row);
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_add_case(struct idem_rows *rows,
                                         int64_t intent_row,
                                         const struct idem_case *opened)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    for (int64_t handle = 1; (size_t)handle <= memory->cases.count; handle++) {
        const struct idem_memory_case *known = idem_memory_row(&memory->cases, handle);
        if (known != NULL && idem_uid_equal(known->opened.id, opened->id)) {
            return IDEM_ROWS_OK;
        }
    }
    struct idem_memory_case row = { .intent_row = intent_row, .opened = *opened };
    row.head.text = idem_memory_text(&idem_table_cases, &row.opened);
    (void)idem_memory_add(&memory->log, &memory->cases, &row); /* Nobody asks for its handle. */
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_decide_cases(struct idem_rows *rows,
                                             int64_t intent_row,
                                             const struct idem_case *decided)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    for (int64_t handle = 1; (size_t)handle <= memory->cases.count; handle++) {
        const struct idem_memory_case *found = idem_memory_row(&memory->cases, handle);
        if (found == NULL || found->intent_row != intent_row || found->opened.decided_us != 0) {
            continue;
        }
        struct idem_case changed = found->opened;
        changed.decided_us = decided->decided_us;
        changed.decided_by = decided->decided_by;
        changed.decision = decided->decision;
        char *text = idem_memory_text(&idem_table_cases, &changed);
        struct idem_memory_case *row =
            idem_memory_change(&memory->log, &memory->cases, handle, text);
        row->opened = changed;
    }
    return IDEM_ROWS_OK;
}

static const struct idem_rows_ops rows_ops = {
    .begin = rows_begin,
    .commit = rows_commit,
    .rollback = rows_rollback,
    .find_intent = rows_find_intent,
    .find_payment = rows_find_payment,
    .find_refund = rows_find_refund,
    .find_sends = rows_find_sends,
    .find_events = idem_memory_find_events,
    .find_cases = idem_memory_find_cases,
    .find_due = idem_memory_find_due,
    .find_left = idem_memory_find_left,
    .find_reap = idem_memory_find_reap,
    .find_entries = idem_memory_find_entries,
    .find_credentials = idem_memory_find_credentials,
    .find_places = idem_memory_find_places,
    .find_summary = idem_memory_find_summary,
    .find_case_kinds = idem_memory_find_case_kinds,
    .find_stub = idem_memory_find_stub,
    .find_payment_stubs = idem_memory_find_payment_stubs,
    .find_credential = idem_memory_find_credential,
    .find_event = idem_memory_find_event,
    .find_listened = idem_memory_find_listened,
    .find_webhook = idem_memory_find_webhook,
    .count_webhooks = idem_memory_count_webhooks,
    .find_delivery = idem_memory_find_delivery,
    .find_webhooks = idem_memory_find_webhooks,
    .find_posts = idem_memory_find_posts,
    .find_effects = idem_memory_find_effects,
    .find_case_list = idem_memory_find_case_list,
    .find_created = idem_memory_find_created,
    .find_meta = idem_memory_find_meta,
    .write_intent = rows_write_intent,
    .write_payment = rows_write_payment,
    .write_refund = rows_write_refund,
    .write_send = rows_write_send,
    .add_event = rows_add_event,
    .add_case = rows_add_case,
    .decide_cases = rows_decide_cases,
    .forget_history = rows_forget_history,
    .write_stub = idem_memory_write_stub,
    .apply_stubs = idem_memory_apply_stubs,
    .write_credential = idem_memory_write_credential,
    .write_inbox = idem_memory_write_inbox,
    .add_message = idem_memory_add_message,
    .write_webhook = idem_memory_write_webhook,
    .write_delivery = idem_memory_write_delivery,
    .drop_deliveries = idem_memory_drop_deliveries,
    .sweep = idem_memory_sweep,
    .write_meta = idem_memory_write_meta,
};

void idem_memory_rows_init(struct idem_memory_rows *memory)
{
    *memory = (struct idem_memory_rows){
        .rows = { .ops = &rows_ops },
        .intents = { .row_size = sizeof(struct idem_memory_intent) },
        .payments = { .row_size = sizeof(struct idem_memory_payment) },
        .refunds = { .row_size = sizeof(struct idem_memory_refund) },
        .sends = { .row_size = sizeof(struct idem_memory_send) },
        .events = { .row_size = sizeof(struct idem_memory_event) },
        .cases = { .row_size = sizeof(struct idem_memory_case) },
        .stubs = { .row_size = sizeof(struct idem_memory_stub) },
        .credentials = { .row_size = sizeof(struct idem_memory_credential) },
        .inbox = { .row_size = sizeof(struct idem_memory_event_in) },
        .webhooks = { .row_size = sizeof(struct idem_memory_webhook) },
        .messages = { .row_size = sizeof(struct idem_memory_message) },
        .deliveries = { .row_size = sizeof(struct idem_memory_delivery) },
        .meta = { .row_size = sizeof(struct idem_memory_meta) },
    };
}

void idem_memory_rows_deinit(struct idem_memory_rows *memory)
{
    IDEM_ASSERT(!memory->begun);
    idem_memory_table_deinit(&memory->intents);
    idem_memory_table_deinit(&memory->payments);
    idem_memory_table_deinit(&memory->refunds);
    idem_memory_table_deinit(&memory->sends);
    idem_memory_table_deinit(&memory->events);
    idem_memory_table_deinit(&memory->cases);
    idem_memory_table_deinit(&memory->stubs);
    idem_memory_table_deinit(&memory->credentials);
    idem_memory_table_deinit(&memory->inbox);
    idem_memory_table_deinit(&memory->webhooks);
    idem_memory_table_deinit(&memory->messages);
    idem_memory_table_deinit(&memory->deliveries);
    idem_memory_table_deinit(&memory->meta);
    idem_memory_index_deinit(&memory->index);
    free(memory->log.changes);
}
