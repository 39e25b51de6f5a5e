/*
 * Subjects are 64-bit numbers: FNV-1a of what they are of and its bytes. Two subjects with one
 * number only make one command wait a batch longer.
 */
#include "engine/batch.h"

#include <string.h>

#include "base/bug.h"

#define SUBJECTS_PER_COMMAND 3

/* What a subject is of. */
enum subject_kind {
    OF_NOTHING = 0,
    OF_INTENT,
    OF_PAYMENT,
    OF_ORDER,
    OF_CREDENTIAL,
    OF_SECRET,
    OF_MARK,
    OF_WEBHOOK,
    OF_DELIVERY,
};

/* How far down the queue to look for commands that may join; the rest forms the next batch. */
#define LOOK_MAX 1024

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001B3);
    }
    return hash;
}

static uint64_t hash_begin(uint8_t kind)
{
    return hash_bytes(UINT64_C(0xCBF29CE484222325), &kind, sizeof(kind));
}

/* The subjects of one command, as they are found. */
struct subject_list {
    uint64_t all[SUBJECTS_PER_COMMAND];
    size_t count;
};

static void add_hash(struct subject_list *list, uint64_t hash)
{
    IDEM_ASSERT(list->count < SUBJECTS_PER_COMMAND);
    list->all[list->count] = hash == 0 ? 1 : hash; /* 0 is a free slot. */
    list->count += 1;
}

static void add_bytes(struct subject_list *list, uint8_t kind, const void *data, size_t size)
{
    add_hash(list, hash_bytes(hash_begin(kind), data, size));
}

static void add_order(struct subject_list *list, const struct idem_accept *accept)
{
    uint64_t hash = hash_begin(OF_ORDER);
    hash = hash_bytes(hash, accept->principal.data, accept->principal.len);
    hash = hash_bytes(hash, "", 1);
    add_hash(list, hash_bytes(hash, accept->order_no.data, accept->order_no.len));
}

static bool scope_is_zero(const struct idem_scope *scope)
{
    static const struct idem_scope none;
    return memcmp(scope->bytes, none.bytes, sizeof(none.bytes)) == 0;
}

/* What a command about an intent touches. */
static void add_intent(struct subject_list *list, const struct idem_command *command)
{
    bool is_accept = command->kind == IDEM_COMMAND_ACCEPT;
    add_bytes(list, OF_INTENT, command->scope.bytes, sizeof(command->scope.bytes));
    struct idem_uid payment_id = command->subject_payment_id;
    if (is_accept && !idem_uid_is_zero(command->accept.payment_id)) {
        payment_id = command->accept.payment_id;
    }
    if (!idem_uid_is_zero(payment_id)) {
        add_bytes(list, OF_PAYMENT, payment_id.bytes, sizeof(payment_id.bytes));
    }
    if (is_accept && command->accept.order_no.len > 0) {
        add_order(list, &command->accept);
    }
    const struct idem_scope *payment_scope = &command->evidence.payment_scope;
    if (command->kind == IDEM_COMMAND_EVIDENCE && !scope_is_zero(payment_scope)) {
        add_bytes(list, OF_INTENT, payment_scope->bytes, sizeof(payment_scope->bytes));
    }
}

static struct subject_list subjects_of(const struct idem_command *command)
{
    struct subject_list list = { .count = 0 };
    switch (command->kind) {
    case IDEM_COMMAND_ACCEPT:
    case IDEM_COMMAND_EVIDENCE:
    case IDEM_COMMAND_DUE:
    case IDEM_COMMAND_ABANDON:
    case IDEM_COMMAND_RESOLVE:
    case IDEM_COMMAND_REAP:
        add_intent(&list, command);
        return list;
    case IDEM_COMMAND_CREDENTIAL: {
        const struct idem_credential_row *row = &command->credential.row;
        add_bytes(&list, OF_CREDENTIAL, row->id.bytes, sizeof(row->id.bytes));
        add_bytes(&list, OF_SECRET, row->secret_sha256.bytes, sizeof(row->secret_sha256.bytes));
        return list;
    }
    case IDEM_COMMAND_WEBHOOK: {
        const struct idem_webhook *row = &command->webhook.row;
        add_bytes(&list, OF_WEBHOOK, row->id.bytes, sizeof(row->id.bytes));
        return list;
    }
    case IDEM_COMMAND_DELIVERY: {
        const struct idem_delivery_change *said = &command->delivery;
        uint64_t hash = hash_begin(OF_DELIVERY);
        hash = hash_bytes(hash, said->message_id.bytes, sizeof(said->message_id.bytes));
        add_hash(&list, hash_bytes(hash, said->webhook_id.bytes, sizeof(said->webhook_id.bytes)));
        return list;
    }
    case IDEM_COMMAND_MARK: {
        uint8_t kind = (uint8_t)command->mark.kind;
        add_bytes(&list, OF_MARK, &kind, sizeof(kind));
        return list;
    }
    case IDEM_COMMAND_NONE:
    case IDEM_COMMAND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static bool has(const struct idem_subjects *set, uint64_t subject)
{
    if (set->count == 0) {
        return false;
    }
    size_t index = (size_t)subject & (IDEM_SUBJECT_SLOTS - 1);
    while (set->slots[index] != 0) {
        if (set->slots[index] == subject) {
            return true;
        }
        index = (index + 1) & (IDEM_SUBJECT_SLOTS - 1);
    }
    return false;
}

static void add(struct idem_subjects *set, uint64_t subject)
{
    IDEM_ASSERT(set->count < IDEM_SUBJECT_SLOTS - 1);
    size_t index = (size_t)subject & (IDEM_SUBJECT_SLOTS - 1);
    while (set->slots[index] != 0 && set->slots[index] != subject) {
        index = (index + 1) & (IDEM_SUBJECT_SLOTS - 1);
    }
    if (set->slots[index] == 0) {
        set->slots[index] = subject;
        set->count += 1;
    }
}

static void clear(struct idem_subjects *set)
{
    if (set->count > 0) {
        *set = (struct idem_subjects){ .count = 0 };
    }
}

static bool is_taken(const struct idem_engine_batch *batches, size_t batch_count, uint64_t subject)
{
    for (size_t i = 0; i < batch_count; i++) {
        if (batches[i].busy && has(&batches[i].subjects, subject)) {
            return true;
        }
    }
    return false;
}

static bool has_again(const struct idem_engine_batch *batches, size_t batch_count)
{
    for (size_t i = 0; i < batch_count; i++) {
        if (batches[i].busy && batches[i].again) {
            return true;
        }
    }
    return false;
}

/* Not its time, or not its kind of batch. */
static bool is_out_of_turn(const struct idem_engine_batch *batch,
                           const struct idem_store_item *item,
                           bool again_is_under_way,
                           int64_t now_us)
{
    bool again = item->again_us != 0;
    if (again && (again_is_under_way || item->again_us > now_us)) {
        return true;
    }
    return batch->store.items.count > 0 && again != batch->again;
}

size_t idem_batch_form(struct idem_engine_batch *batch,
                       const struct idem_engine_batch *batches,
                       size_t batch_count,
                       struct idem_list *queue,
                       int64_t now_us)
{
    IDEM_ASSERT(!batch->busy);
    IDEM_ASSERT(batch->store.items.count == 0);
    struct idem_subjects blocked = { .count = 0 };
    bool again_is_under_way = has_again(batches, batch_count);
    clear(&batch->subjects);

    struct idem_list_node *node = queue->first;
    size_t looked = 0;
    while (node != NULL && batch->store.items.count < IDEM_STORE_BATCH_MAX && looked < LOOK_MAX &&
           blocked.count < IDEM_BATCH_SUBJECTS) {
        struct idem_list_node *next = node->next;
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        struct subject_list subjects = subjects_of(&item->command);
        bool must_wait = is_out_of_turn(batch, item, again_is_under_way, now_us);
        for (size_t i = 0; i < subjects.count; i++) {
            uint64_t subject = subjects.all[i];
            must_wait = must_wait || has(&batch->subjects, subject) || has(&blocked, subject) ||
                        is_taken(batches, batch_count, subject);
        }
        for (size_t i = 0; i < subjects.count; i++) {
            add(must_wait ? &blocked : &batch->subjects, subjects.all[i]);
        }
        if (!must_wait) {
            batch->again = item->again_us != 0;
            idem_list_remove(queue, node);
            idem_list_push(&batch->store.items, node);
        }
        node = next;
        looked += 1;
    }
    return batch->store.items.count;
}
