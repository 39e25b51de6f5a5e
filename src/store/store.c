/*
 * The door of every store: counts what is inside and checks the caller.
 *
 * Whether an UNKNOWN answer breaks the store is the backend's to say, in its reap: SQLite's process
 * must start anew, a server is asked again on another connection.
 */
#include "store/store.h"

#include "base/attr.h"
#include "base/bug.h"

static void store_check(const struct idem_store *store)
{
    IDEM_ASSERT(store->ops->version == IDEM_STORE_OPS_VERSION);
    IDEM_ASSERT(store->batches_in_flight <= store->batches_in_flight_max);
}

bool idem_store_has_room(const struct idem_store *store)
{
    store_check(store);
    return !store->stopped && store->batches_in_flight < store->batches_in_flight_max;
}

void idem_store_submit(struct idem_store *store, struct idem_store_batch *batch)
{
    IDEM_ASSERT(idem_store_has_room(store));
    IDEM_ASSERT(batch->items.count > 0);
    IDEM_ASSERT(batch->items.count <= IDEM_STORE_BATCH_MAX);

    batch->answer = IDEM_STORE_NONE;
    IDEM_LIST_FOREACH (node, &batch->items) {
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        IDEM_ASSERT(item->outcome != NULL);
        item->answer = IDEM_STORE_NONE;
    }
    store->batches_in_flight += 1;
    store->ops->submit(store, batch);
}

void idem_store_read(struct idem_store *store, struct idem_read *read)
{
    store_check(store);
    IDEM_ASSERT(!store->stopped);
    IDEM_ASSERT(read->kind > IDEM_READ_NONE);
    IDEM_ASSERT(read->kind < IDEM_READ_COUNT);

    read->answer = IDEM_STORE_NONE;
    store->reads_in_flight += 1;
    store->ops->read(store, read);
}

/* The restored mode is over once its end is durable. */
static void marks_note(struct idem_store *store, const struct idem_store_batch *batch)
{
    IDEM_LIST_FOREACH (node, &batch->items) {
        const struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        if (item->answer == IDEM_STORE_DURABLE && item->command.kind == IDEM_COMMAND_MARK &&
            item->command.mark.kind == IDEM_MARK_RESTORED_OVER) {
            store->restored = false;
        }
    }
}

void idem_store_reap(struct idem_store *store,
                     struct idem_list *ret_batches,
                     struct idem_list *ret_reads)
{
    struct idem_list batches = { .count = 0 };
    struct idem_list reads = { .count = 0 };

    store->ops->reap(store, &batches, &reads);
    IDEM_ASSERT(batches.count <= store->batches_in_flight);
    IDEM_ASSERT(reads.count <= store->reads_in_flight);
    store->batches_in_flight -= batches.count;
    store->reads_in_flight -= reads.count;

    IDEM_LIST_FOREACH (node, &batches) {
        struct idem_store_batch *batch = IDEM_CONTAINER_OF(node, struct idem_store_batch, node);
        IDEM_ASSERT(batch->answer != IDEM_STORE_NONE);
        marks_note(store, batch);
    }
    idem_list_join(ret_batches, &batches);
    idem_list_join(ret_reads, &reads);
}

bool idem_store_heard(struct idem_store *store)
{
    return store->ops->heard != NULL && store->ops->heard(store);
}

void idem_store_break(struct idem_store *store)
{
    store_check(store);
    store->broken = true;
}

void idem_store_stop(struct idem_store *store)
{
    store_check(store);
    if (!store->stopped) {
        store->stopped = true;
        store->ops->stop(store);
    }
}

void idem_store_destroy(struct idem_store *store)
{
    if (store == NULL) {
        return;
    }
    IDEM_ASSERT(store->batches_in_flight == 0);
    IDEM_ASSERT(store->reads_in_flight == 0);
    idem_store_stop(store);
    store->ops->destroy(store);
}

const char *idem_store_answer_name(enum idem_store_answer answer)
{
    switch (answer) {
    case IDEM_STORE_NONE:
        return "none";
    case IDEM_STORE_DURABLE:
        return "durable";
    case IDEM_STORE_CONFLICT:
        return "conflict";
    case IDEM_STORE_NOTHING:
        return "nothing";
    case IDEM_STORE_UNKNOWN:
        return "unknown";
    case IDEM_STORE_WRONG_NODE:
        return "wrong-node";
    case IDEM_STORE_DOWN:
        return "down";
    case IDEM_STORE_ANSWER_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}
