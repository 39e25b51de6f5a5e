/*
 * The memory store: a batch runs inside submit, its end waits in a list until it is reaped. The
 * order is exactly the order of the calls, which is what a simulator needs.
 */
#include "store/memory/memory.h"

#include <stdlib.h>

#include "base/bug.h"
#include "store/memory/memory_internal.h"
#include "store/read.h"
#include "store/run.h"

static struct idem_memory *memory_of(struct idem_store *store)
{
    return IDEM_CONTAINER_OF(store, struct idem_memory, base);
}

static void memory_submit(struct idem_store *store, struct idem_store_batch *batch)
{
    struct idem_memory *memory = memory_of(store);
    idem_run_batch(&memory->run, batch);
    idem_list_push(&memory->done_batches, &batch->node);
    store->options.wake(store->options.wake_context);
}

static void memory_read(struct idem_store *store, struct idem_read *read)
{
    struct idem_memory *memory = memory_of(store);
    bool sound = idem_read_run(&memory->rows.rows, store->incarnation, read);
    IDEM_ASSERT(sound); /* Memory is not damaged. */
    idem_list_push(&memory->done_reads, &read->node);
    store->options.wake(store->options.wake_context);
}

static void memory_reap(struct idem_store *store,
                        struct idem_list *ret_batches,
                        struct idem_list *ret_reads)
{
    struct idem_memory *memory = memory_of(store);
    idem_list_join(ret_batches, &memory->done_batches);
    idem_list_join(ret_reads, &memory->done_reads);
}

static void memory_stop(struct idem_store *store)
{
    (void)store; /* Nothing runs outside the calls. */
}

static void memory_destroy(struct idem_store *store)
{
    struct idem_memory *memory = memory_of(store);
    idem_memory_rows_deinit(&memory->rows);
    free(memory);
}

static const struct idem_store_ops memory_ops = {
    .version = IDEM_STORE_OPS_VERSION,
    .name = "memory",
    .submit = memory_submit,
    .read = memory_read,
    .reap = memory_reap,
    .stop = memory_stop,
    .destroy = memory_destroy,
};

enum idem_err idem_memory_open(const struct idem_store_options *options,
                               struct idem_store **ret_store,
                               struct idem_error *reterr)
{
    IDEM_ASSERT(options->rules != NULL);
    IDEM_ASSERT(options->wake != NULL);
    struct idem_memory *memory = calloc(1, sizeof(*memory));
    if (memory == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    memory->base = (struct idem_store){
        .ops = &memory_ops,
        .options = *options,
        .incarnation = 1,
        .batches_in_flight_max = 1,
        .restored = options->restored,
        .opened_us = idem_clock_wall_us(options->clock),
    };
    idem_memory_rows_init(&memory->rows);
    memory->base.horizon_us = idem_memory_marks_open(&memory->rows, 0, options->clock).horizon_us;
    struct idem_run_opening opening = {
        .incarnation = memory->base.incarnation,
        .opened_us = idem_clock_wall_us(options->clock),
        .memory_since_us = idem_clock_wall_us(options->clock),
        .restored_at_us = options->restored ? idem_clock_wall_us(options->clock) : 0,
        .restored = options->restored,
    };
    idem_run_init(&memory->run, &memory->rows.rows, &memory->base.options, opening);
    *ret_store = &memory->base;
    return IDEM_OK;
}
