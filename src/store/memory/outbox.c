/*
 * Provider events that came in, and what merchants are told: webhooks, messages and deliveries, by
 * walking the arrays.
 */
#include "base/bug.h"
#include "store/memory/memory_internal.h"

static struct idem_memory_webhook *webhook_at(const struct idem_memory_rows *memory, int64_t handle)
{
    return idem_memory_row(&memory->webhooks, handle);
}

static struct idem_memory_message *message_at(const struct idem_memory_rows *memory, int64_t handle)
{
    return idem_memory_row(&memory->messages, handle);
}

static struct idem_memory_delivery *delivery_at(const struct idem_memory_rows *memory,
                                                int64_t handle)
{
    return idem_memory_row(&memory->deliveries, handle);
}

/* The handle of the event, or 0. */
static int64_t event_look(const struct idem_memory_rows *memory,
                          struct idem_str entry,
                          struct idem_str event_id)
{
    for (int64_t handle = 1; (size_t)handle <= memory->inbox.count; handle++) {
        const struct idem_memory_event_in *found = idem_memory_row(&memory->inbox, handle);
        if (found != NULL && idem_str_equal(found->entry, entry) &&
            idem_str_equal(found->event_id, event_id)) {
            return handle;
        }
    }
    return 0;
}

enum idem_rows_step idem_memory_find_event(struct idem_rows *rows,
                                           struct idem_str entry,
                                           struct idem_str event_id,
                                           bool *ret_seen)
{
    *ret_seen = event_look(idem_memory_of(rows), entry, event_id) != 0;
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_write_inbox(struct idem_rows *rows,
                                            const struct idem_inbox_write *write)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    int64_t handle = event_look(memory, write->entry, write->event_id);
    if ((handle == 0) != (write->write == IDEM_WRITE_INSERT)) {
        return IDEM_ROWS_MISS;
    }
    if (handle != 0) {
        struct idem_memory_event_in *known =
            idem_memory_change(&memory->log, &memory->inbox, handle, NULL);
        known->last_us = write->at_us > known->last_us ? write->at_us : known->last_us;
        return IDEM_ROWS_OK;
    }
    size_t size = write->entry.len + write->event_id.len;
    struct idem_buf text;
    idem_buf_init(&text, idem_memory_take(size), size);
    struct idem_memory_event_in row = {
        .head = { .text = text.data },
        .entry = idem_buf_keep(&text, write->entry),
        .event_id = idem_buf_keep(&text, write->event_id),
        .last_us = write->at_us,
    };
    (void)idem_memory_add(&memory->log, &memory->inbox, &row); /* Found again by its names. */
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_find_listened(struct idem_rows *rows,
                                              struct idem_str principal,
                                              bool *ret_listened)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    *ret_listened = false;
    for (int64_t handle = 1; (size_t)handle <= memory->webhooks.count; handle++) {
        const struct idem_webhook *webhook = &webhook_at(memory, handle)->webhook;
        *ret_listened = *ret_listened || (webhook->disabled_us == 0 &&
                                          idem_str_equal(webhook->principal, principal));
    }
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_count_webhooks(struct idem_rows *rows,
                                               struct idem_str principal,
                                               size_t *ret_count)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    *ret_count = 0;
    for (int64_t handle = 1; (size_t)handle <= memory->webhooks.count; handle++) {
        const struct idem_webhook *webhook = &webhook_at(memory, handle)->webhook;
        *ret_count += idem_str_equal(webhook->principal, principal) ? 1 : 0;
    }
    return IDEM_ROWS_OK;
}

static struct idem_memory_webhook *webhook_by_id(const struct idem_memory_rows *memory,
                                                 struct idem_uid id)
{
    for (int64_t handle = 1; (size_t)handle <= memory->webhooks.count; handle++) {
        struct idem_memory_webhook *found = webhook_at(memory, handle);
        if (idem_uid_equal(found->webhook.id, id)) {
            return found;
        }
    }
    return NULL;
}

enum idem_rows_step idem_memory_find_webhook(struct idem_rows *rows,
                                             enum idem_find find,
                                             const struct idem_rows_key *key,
                                             struct idem_webhook *ret_webhook)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    const struct idem_memory_webhook *found =
        find == IDEM_FIND_BY_ROW ? webhook_at(memory, key->row) : webhook_by_id(memory, key->id);
    IDEM_ASSERT(find == IDEM_FIND_BY_ROW || find == IDEM_FIND_BY_ANY_ID || find == IDEM_FIND_BY_ID);
    bool anothers = find == IDEM_FIND_BY_ID && found != NULL &&
                    !idem_str_equal(found->webhook.principal, key->principal);
    if (found != NULL && !anothers) {
        *ret_webhook = found->webhook;
        idem_table_text_keep(&idem_table_webhooks, ret_webhook, rows->kept);
    }
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_write_webhook(struct idem_rows *rows,
                                              struct idem_webhook_write *write)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        if (webhook_by_id(memory, write->row.id) != NULL) {
            return IDEM_ROWS_MISS;
        }
        struct idem_memory_webhook row = { .webhook = write->row };
        row.webhook.row = (int64_t)memory->webhooks.count + 1;
        row.head.text = idem_memory_text(&idem_table_webhooks, &row.webhook);
        write->row.row = idem_memory_add(&memory->log, &memory->webhooks, &row);
        return IDEM_ROWS_OK;
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    const struct idem_memory_webhook *former = webhook_at(memory, write->row.row);
    if (former == NULL || former->webhook.version != write->row.version - 1) {
        return IDEM_ROWS_MISS;
    }
    struct idem_webhook webhook = write->row;
    char *text = idem_memory_text(&idem_table_webhooks, &webhook);
    struct idem_memory_webhook *row =
        idem_memory_change(&memory->log, &memory->webhooks, write->row.row, text);
    row->webhook = webhook;
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_find_webhooks(struct idem_rows *rows, struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    int64_t handle = read->after_row < INT64_MAX ? read->after_row + 1 : INT64_MAX;
    read->webhook_count = 0;
    read->more = false;
    for (; (size_t)handle <= memory->webhooks.count && !read->more; handle++) {
        struct idem_webhook webhook = webhook_at(memory, handle)->webhook;
        if (read->principal.len > 0 && !idem_str_equal(webhook.principal, read->principal)) {
            continue;
        }
        read->more = read->webhook_count == IDEM_READ_WEBHOOKS_MAX ||
                     idem_table_text_size(&idem_table_webhooks, &webhook) >
                         rows->kept->max - rows->kept->len;
        if (!read->more) {
            idem_table_text_keep(&idem_table_webhooks, &webhook, rows->kept);
            read->webhooks[read->webhook_count] = webhook;
            read->webhook_count += 1;
        }
    }
    return IDEM_ROWS_OK;
}

static int64_t message_look(const struct idem_memory_rows *memory, struct idem_uid id)
{
    for (int64_t handle = (int64_t)memory->messages.count; handle > 0; handle--) {
        const struct idem_memory_message *found = message_at(memory, handle);
        if (found != NULL && idem_uid_equal(found->message.id, id)) {
            return handle;
        }
    }
    return 0;
}

static bool webhook_wants(const struct idem_webhook *webhook,
                          int64_t webhook_row,
                          const struct idem_message *message)
{
    if (webhook_row != 0) {
        return webhook->row == webhook_row;
    }
    return webhook->disabled_us == 0 && idem_str_equal(webhook->principal, message->principal) &&
           (webhook->types & UINT64_C(1) << message->type) != 0;
}

static void delivery_add(struct idem_memory_rows *memory,
                         const struct idem_message *message,
                         int64_t message_row,
                         int64_t webhook_row)
{
    struct idem_memory_delivery row = {
        .delivery = {
            .row = (int64_t)memory->deliveries.count + 1,
            .version = 1,
            .message_row = message_row,
            .webhook_row = webhook_row,
            .payment_id = message->payment_id,
            .state = IDEM_DELIVERY_PENDING,
            .due_us = message->at_us,
            .created_us = message->at_us,
        },
    };
    (void)idem_memory_add(&memory->log, &memory->deliveries, &row); /* Its handle is in it. */
}

enum idem_rows_step idem_memory_add_message(struct idem_rows *rows,
                                            int64_t webhook_row,
                                            const struct idem_message *message)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    int64_t message_row = (int64_t)memory->messages.count + 1;
    bool wanted = false;
    if (message_look(memory, message->id) != 0) {
        return IDEM_ROWS_OK; /* It is there already. */
    }
    for (int64_t handle = 1; (size_t)handle <= memory->webhooks.count; handle++) {
        if (webhook_wants(&webhook_at(memory, handle)->webhook, webhook_row, message)) {
            delivery_add(memory, message, message_row, handle);
            wanted = true;
        }
    }
    if (wanted) {
        struct idem_memory_message row = { .message = *message };
        row.message.row = message_row;
        row.head.text = idem_memory_text(&idem_table_messages, &row.message);
        (void)idem_memory_add(&memory->log, &memory->messages, &row); /* As above. */
    }
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_find_delivery(struct idem_rows *rows,
                                              struct idem_uid message_id,
                                              struct idem_uid webhook_id,
                                              struct idem_delivery *ret_delivery)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    const struct idem_memory_webhook *webhook = webhook_by_id(memory, webhook_id);
    int64_t message_row = message_look(memory, message_id);
    for (int64_t handle = (int64_t)memory->deliveries.count; handle > 0 && webhook != NULL;
         handle--) {
        const struct idem_memory_delivery *found = delivery_at(memory, handle);
        if (found != NULL && found->delivery.message_row == message_row &&
            found->delivery.webhook_row == webhook->webhook.row) {
            *ret_delivery = found->delivery;
            idem_table_text_keep(&idem_table_deliveries, ret_delivery, rows->kept);
            break;
        }
    }
    return IDEM_ROWS_OK;
}

static void delivery_change(struct idem_memory_rows *memory, struct idem_delivery delivery)
{
    char *text = idem_memory_text(&idem_table_deliveries, &delivery);
    struct idem_memory_delivery *row =
        idem_memory_change(&memory->log, &memory->deliveries, delivery.row, text);
    row->delivery = delivery;
}

enum idem_rows_step idem_memory_write_delivery(struct idem_rows *rows,
                                               struct idem_delivery_write *write)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    const struct idem_memory_delivery *former = delivery_at(memory, write->row.row);
    if (former == NULL || former->delivery.version != write->row.version - 1) {
        return IDEM_ROWS_MISS;
    }
    delivery_change(memory, write->row);
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_drop_deliveries(struct idem_rows *rows,
                                                int64_t webhook_row,
                                                int64_t now_us)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    for (int64_t handle = 1; (size_t)handle <= memory->deliveries.count; handle++) {
        const struct idem_memory_delivery *found = delivery_at(memory, handle);
        if (found == NULL || found->delivery.webhook_row != webhook_row ||
            found->delivery.state != IDEM_DELIVERY_PENDING) {
            continue;
        }
        struct idem_delivery dropped = found->delivery;
        dropped.version += 1;
        dropped.state = IDEM_DELIVERY_DEAD;
        dropped.due_us = 0;
        dropped.finished_us = now_us;
        delivery_change(memory, dropped);
    }
    return IDEM_ROWS_OK;
}

/* An earlier message of the payment is still to be told there, and was not tried too often. */
static bool delivery_waits(const struct idem_memory_rows *memory,
                           const struct idem_delivery *delivery)
{
    bool waits = false;
    for (int64_t handle = 1; handle < delivery->row && !waits; handle++) {
        const struct idem_memory_delivery *found = delivery_at(memory, handle);
        waits = found != NULL && found->delivery.state == IDEM_DELIVERY_PENDING &&
                found->delivery.webhook_row == delivery->webhook_row &&
                idem_uid_equal(found->delivery.payment_id, delivery->payment_id) &&
                found->delivery.message_row < delivery->message_row &&
                found->delivery.attempts <= IDEM_POST_ORDERED_MAX;
    }
    return waits && !idem_uid_is_zero(delivery->payment_id);
}

static bool delivery_is_due(const struct idem_memory_rows *memory,
                            const struct idem_delivery *delivery,
                            const struct idem_read *read)
{
    bool skipped = false;
    for (size_t i = 0; i < read->skip_count; i++) {
        skipped = skipped || read->skip[i] == delivery->webhook_row;
    }
    return !skipped && delivery->state == IDEM_DELIVERY_PENDING &&
           delivery->due_us <= read->now_us && !delivery_waits(memory, delivery);
}

/* The earliest of what is due, as many as fit and one more, sorted by time, then by row. */
struct due_list {
    const struct idem_delivery *deliveries[IDEM_READ_POSTS_MAX + 1];
    size_t count;
};

static void due_insert(struct due_list *list, const struct idem_delivery *delivery)
{
    const size_t max = IDEM_ARRAY_COUNT(list->deliveries);
    size_t at = list->count;
    while (at > 0 && list->deliveries[at - 1]->due_us > delivery->due_us) {
        at -= 1;
    }
    if (at == max) {
        return;
    }
    list->count += list->count < max ? 1 : 0;
    for (size_t i = list->count - 1; i > at; i--) {
        list->deliveries[i] = list->deliveries[i - 1];
    }
    list->deliveries[at] = delivery;
}

/* Adds it with all that belongs to it. False: there is no room for it. */
static bool post_add(const struct idem_memory_rows *memory,
                     const struct idem_delivery *delivery,
                     struct idem_read *read)
{
    struct idem_buf *kept = memory->rows.kept;
    struct idem_post post = {
        .delivery = *delivery,
        .message = message_at(memory, delivery->message_row)->message,
        .webhook = webhook_at(memory, delivery->webhook_row)->webhook,
    };
    size_t size = idem_table_text_size(&idem_table_deliveries, &post.delivery) +
                  idem_table_text_size(&idem_table_messages, &post.message) +
                  idem_table_text_size(&idem_table_webhooks, &post.webhook);
    if (read->post_count == IDEM_READ_POSTS_MAX || size > kept->max - kept->len) {
        return false;
    }
    idem_table_text_keep(&idem_table_deliveries, &post.delivery, kept);
    idem_table_text_keep(&idem_table_messages, &post.message, kept);
    idem_table_text_keep(&idem_table_webhooks, &post.webhook, kept);
    read->posts[read->post_count] = post;
    read->post_count += 1;
    return true;
}

static void due_find(const struct idem_memory_rows *memory, struct idem_read *read)
{
    struct due_list list = { .count = 0 };
    for (int64_t handle = 1; (size_t)handle <= memory->deliveries.count; handle++) {
        const struct idem_memory_delivery *found = delivery_at(memory, handle);
        if (found != NULL && delivery_is_due(memory, &found->delivery, read)) {
            due_insert(&list, &found->delivery);
        }
    }
    for (size_t i = 0; i < list.count && !read->more; i++) {
        read->more = !post_add(memory, list.deliveries[i], read);
    }
}

static bool delivery_is_asked_for(const struct idem_memory_rows *memory,
                                  const struct idem_delivery *delivery,
                                  const struct idem_read *read)
{
    const struct idem_webhook *webhook = &webhook_at(memory, delivery->webhook_row)->webhook;
    return (read->delivery_state == IDEM_DELIVERY_NONE ||
            delivery->state == read->delivery_state) &&
           (idem_uid_is_zero(read->id) || idem_uid_equal(webhook->id, read->id)) &&
           (read->principal.len == 0 || idem_str_equal(webhook->principal, read->principal));
}

static void page_find(const struct idem_memory_rows *memory, struct idem_read *read)
{
    int64_t newest = (int64_t)memory->deliveries.count;
    int64_t handle =
        read->after_row == 0 || read->after_row > newest ? newest : read->after_row - 1;
    for (; handle > 0 && !read->more; handle--) {
        const struct idem_memory_delivery *found = delivery_at(memory, handle);
        read->more = found != NULL && delivery_is_asked_for(memory, &found->delivery, read) &&
                     !post_add(memory, &found->delivery, read);
    }
}

enum idem_rows_step idem_memory_find_posts(struct idem_rows *rows, struct idem_read *read)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    read->post_count = 0;
    read->more = false;
    if (read->kind == IDEM_READ_POSTS) {
        due_find(memory, read);
    } else {
        page_find(memory, read);
    }
    return IDEM_ROWS_OK;
}

static bool message_is_pending(const struct idem_memory_rows *memory, int64_t message_row)
{
    bool pending = false;
    for (int64_t handle = 1; (size_t)handle <= memory->deliveries.count && !pending; handle++) {
        const struct idem_memory_delivery *found = delivery_at(memory, handle);
        pending = found != NULL && found->delivery.message_row == message_row &&
                  found->delivery.state == IDEM_DELIVERY_PENDING;
    }
    return pending;
}

static void message_remove(struct idem_memory_rows *memory, int64_t message_row)
{
    for (int64_t handle = 1; (size_t)handle <= memory->deliveries.count; handle++) {
        const struct idem_memory_delivery *found = delivery_at(memory, handle);
        if (found != NULL && found->delivery.message_row == message_row) {
            idem_memory_remove(&memory->log, &memory->deliveries, handle);
        }
    }
    idem_memory_remove(&memory->log, &memory->messages, message_row);
}

static size_t events_sweep(struct idem_memory_rows *memory, int64_t before_us)
{
    size_t count = 0;
    for (int64_t handle = 1; (size_t)handle <= memory->inbox.count && count < IDEM_ROWS_SWEEP_MAX;
         handle++) {
        const struct idem_memory_event_in *found = idem_memory_row(&memory->inbox, handle);
        if (found != NULL && found->last_us < before_us) {
            idem_memory_remove(&memory->log, &memory->inbox, handle);
            count += 1;
        }
    }
    return count;
}

static size_t messages_sweep(struct idem_memory_rows *memory, int64_t before_us)
{
    size_t count = 0;
    for (int64_t handle = 1;
         (size_t)handle <= memory->messages.count && count < IDEM_ROWS_SWEEP_MAX; handle++) {
        const struct idem_memory_message *found = message_at(memory, handle);
        if (found != NULL && found->message.at_us < before_us &&
            !message_is_pending(memory, handle)) {
            message_remove(memory, handle);
            count += 1;
        }
    }
    return count;
}

/* Nothing waits at a webhook that is disabled: there it was dropped at once. */
enum idem_rows_step idem_memory_sweep(struct idem_rows *rows, int64_t before_us, bool *ret_more)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    size_t events = events_sweep(memory, before_us);
    size_t messages = messages_sweep(memory, before_us);
    *ret_more = events == IDEM_ROWS_SWEEP_MAX || messages == IDEM_ROWS_SWEEP_MAX;
    return IDEM_ROWS_OK;
}
