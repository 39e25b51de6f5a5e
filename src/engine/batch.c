/*
 * Subjects are 64-bit numbers: the first bytes of a scope (an HMAC), or FNV-1a of a payment id or
 * an order number. Two subjects with one number only make one command wait a batch longer.
 */
#include "engine/batch.h"

#include <string.h>

#include "base/bug.h"

#define SUBJECTS_PER_COMMAND 3

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

static size_t subjects_of(const struct idem_store_item *item,
                          uint64_t subjects[SUBJECTS_PER_COMMAND])
{
    const struct idem_command *command = &item->command;
    size_t count = 0;
    subjects[count] = hash_bytes(hash_begin(1), command->scope.bytes, sizeof(command->scope.bytes));
    count += 1;
    struct idem_uid payment_id = command->subject_payment_id;
    if (command->kind == IDEM_COMMAND_ACCEPT && !idem_uid_is_zero(command->accept.payment_id)) {
        payment_id = command->accept.payment_id;
    }
    if (!idem_uid_is_zero(payment_id)) {
        subjects[count] = hash_bytes(hash_begin(2), payment_id.bytes, sizeof(payment_id.bytes));
        count += 1;
    }
    if (command->kind == IDEM_COMMAND_ACCEPT && command->accept.order_no.len > 0) {
        uint64_t hash = hash_bytes(hash_begin(3), command->accept.principal.data,
                                   command->accept.principal.len);
        hash = hash_bytes(hash, "", 1);
        subjects[count] =
            hash_bytes(hash, command->accept.order_no.data, command->accept.order_no.len);
        count += 1;
    }
    for (size_t i = 0; i < count; i++) {
        subjects[i] = subjects[i] == 0 ? 1 : subjects[i];
    }
    return count;
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

size_t idem_batch_form(struct idem_engine_batch *batch,
                       const struct idem_engine_batch *batches,
                       size_t batch_count,
                       struct idem_list *queue)
{
    IDEM_ASSERT(!batch->busy);
    IDEM_ASSERT(batch->store.items.count == 0);
    struct idem_subjects blocked = { .count = 0 };
    clear(&batch->subjects);

    struct idem_list_node *node = queue->first;
    size_t looked = 0;
    while (node != NULL && batch->store.items.count < IDEM_STORE_BATCH_MAX && looked < LOOK_MAX &&
           blocked.count < IDEM_BATCH_SUBJECTS) {
        struct idem_list_node *next = node->next;
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        uint64_t subjects[SUBJECTS_PER_COMMAND];
        size_t count = subjects_of(item, subjects);
        bool must_wait = false;
        for (size_t i = 0; i < count; i++) {
            must_wait = must_wait || has(&batch->subjects, subjects[i]) ||
                        has(&blocked, subjects[i]) || is_taken(batches, batch_count, subjects[i]);
        }
        for (size_t i = 0; i < count; i++) {
            add(must_wait ? &blocked : &batch->subjects, subjects[i]);
        }
        if (!must_wait) {
            idem_list_remove(queue, node);
            idem_list_push(&batch->store.items, node);
        }
        node = next;
        looked += 1;
    }
    return batch->store.items.count;
}
