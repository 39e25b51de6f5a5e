/*
 * memory_internal.h - the rows of the memory store, for this folder and its tests.
 */
#ifndef IDEM_STORE_MEMORY_MEMORY_INTERNAL_H
#define IDEM_STORE_MEMORY_MEMORY_INTERNAL_H

#include "store/memory/table.h"
#include "store/rows.h"

struct idem_memory_rows {
    struct idem_rows rows; /* First: the port's calls come back with its address. */
    struct idem_memory_table intents;
    struct idem_memory_table payments;
    struct idem_memory_table refunds;
    struct idem_memory_table sends;
    struct idem_memory_table events;
    struct idem_memory_table cases;
    struct idem_memory_index index; /* Of everything that is looked up but handles. */
    struct idem_memory_log log;
    bool begun;
};

void idem_memory_rows_init(struct idem_memory_rows *memory);
void idem_memory_rows_deinit(struct idem_memory_rows *memory);

#endif /* IDEM_STORE_MEMORY_MEMORY_INTERNAL_H */
