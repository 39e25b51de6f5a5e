/*
 * Arrays that only grow, a log of what was there before, and an open-addressed index of hints.
 *
 * Who owns a row's text: the row. When a change replaces it, the former text belongs to the logged
 * copy: commit frees that one, rollback frees the new one and puts the copy back.
 */
#include "store/memory/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

#define FIRST_MAX 64

void *idem_memory_take(size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);
    IDEM_ASSERT(memory != NULL); /* For tests only; see the header. */
    return memory;
}

static void *array_grow(void *array, size_t *max, size_t item_size)
{
    size_t grown = *max == 0 ? FIRST_MAX : *max * 2;
    void *memory = realloc(array, grown * item_size);
    IDEM_ASSERT(memory != NULL); /* For tests only; see the header. */
    *max = grown;
    return memory;
}

static char **text_of(void *row)
{
    return &((struct idem_memory_head *)row)->text;
}

/* The place itself, whether the row is gone or not. */
static void *place_of(const struct idem_memory_table *table, int64_t handle)
{
    IDEM_ASSERT(handle > 0);
    IDEM_ASSERT((size_t)handle <= table->count);
    return table->rows + (size_t)(handle - 1) * table->row_size;
}

void *idem_memory_row(const struct idem_memory_table *table, int64_t handle)
{
    if (handle <= 0 || (size_t)handle > table->count) {
        return NULL;
    }
    struct idem_memory_head *head = place_of(table, handle);
    return head->gone ? NULL : head;
}

static struct idem_memory_change *log_push(struct idem_memory_log *log)
{
    if (log->count == log->max) {
        log->changes = array_grow(log->changes, &log->max, sizeof(*log->changes));
    }
    log->count += 1;
    return &log->changes[log->count - 1];
}

int64_t idem_memory_add(struct idem_memory_log *log,
                        struct idem_memory_table *table,
                        const void *row)
{
    if (table->count == table->max) {
        table->rows = array_grow(table->rows, &table->max, table->row_size);
    }
    table->count += 1;
    int64_t handle = (int64_t)table->count;
    memcpy(place_of(table, handle), row, table->row_size);
    *log_push(log) = (struct idem_memory_change){ .table = table, .handle = handle };
    return handle;
}

void *idem_memory_change(struct idem_memory_log *log,
                         struct idem_memory_table *table,
                         int64_t handle,
                         char *text)
{
    void *row = idem_memory_row(table, handle);
    IDEM_ASSERT(row != NULL);
    char *former = idem_memory_take(table->row_size);
    memcpy(former, row, table->row_size);
    *log_push(log) = (struct idem_memory_change){
        .table = table,
        .handle = handle,
        .former = former,
        .new_text = text != NULL,
    };
    if (text != NULL) {
        *text_of(row) = text;
    }
    return row;
}

void idem_memory_remove(struct idem_memory_log *log,
                        struct idem_memory_table *table,
                        int64_t handle)
{
    struct idem_memory_head *head = idem_memory_change(log, table, handle, NULL);
    head->gone = true;
}

void idem_memory_keep(struct idem_memory_log *log)
{
    for (size_t i = 0; i < log->count; i++) {
        struct idem_memory_change *change = &log->changes[i];
        if (change->new_text) {
            free(*text_of(change->former));
        }
        free(change->former);
    }
    log->count = 0;
}

void idem_memory_undo(struct idem_memory_log *log)
{
    while (log->count > 0) {
        log->count -= 1;
        struct idem_memory_change *change = &log->changes[log->count];
        void *row = place_of(change->table, change->handle);
        if (change->former == NULL) {
            IDEM_ASSERT((size_t)change->handle == change->table->count);
            free(*text_of(row));
            change->table->count -= 1;
            continue;
        }
        if (change->new_text) {
            free(*text_of(row));
        }
        memcpy(row, change->former, change->table->row_size);
        free(change->former);
    }
}

void idem_memory_table_deinit(struct idem_memory_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(*text_of(table->rows + i * table->row_size));
    }
    free(table->rows);
    *table = (struct idem_memory_table){ .row_size = table->row_size };
}

/* FNV-1a: short keys, no adversary. */
uint64_t idem_memory_hash(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static void entry_put(struct idem_memory_index *index, struct idem_memory_entry entry)
{
    size_t place = (size_t)entry.hash & (index->max - 1);
    while (index->entries[place].handle != 0) {
        if (index->entries[place].hash == entry.hash &&
            index->entries[place].handle == entry.handle) {
            return; /* Left behind by a row that was undone. */
        }
        place = (place + 1) & (index->max - 1);
    }
    index->entries[place] = entry;
    index->count += 1;
}

static void index_grow(struct idem_memory_index *index)
{
    struct idem_memory_index grown = { .max = index->max == 0 ? FIRST_MAX : index->max * 2 };
    grown.entries = calloc(grown.max, sizeof(*grown.entries));
    IDEM_ASSERT(grown.entries != NULL); /* For tests only; see the header. */
    for (size_t i = 0; i < index->max; i++) {
        if (index->entries[i].handle != 0) {
            entry_put(&grown, index->entries[i]);
        }
    }
    free(index->entries);
    *index = grown;
}

void idem_memory_index_add(struct idem_memory_index *index, uint64_t hash, int64_t handle)
{
    IDEM_ASSERT(handle > 0);
    if (index->count * 2 >= index->max) {
        index_grow(index);
    }
    entry_put(index, (struct idem_memory_entry){ .hash = hash, .handle = handle });
}

int64_t idem_memory_index_next(const struct idem_memory_index *index, uint64_t hash, size_t *place)
{
    while (index->max > 0 && *place < index->max) {
        size_t at = ((size_t)hash + *place) & (index->max - 1);
        *place += 1;
        if (index->entries[at].handle == 0) {
            return 0;
        }
        if (index->entries[at].hash == hash) {
            return index->entries[at].handle;
        }
    }
    return 0;
}

void idem_memory_index_deinit(struct idem_memory_index *index)
{
    free(index->entries);
    *index = (struct idem_memory_index){ .count = 0 };
}
