/*
 * Linear probing with entries in place. Waiters hang on an entry by a list whose nodes point at
 * each other and not at the entry, so that an entry may move when another is dropped.
 */
#include "engine/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

struct idem_live_table {
    struct idem_live *entries;
    size_t entry_count; /* A power of two, at least twice what is ever used. */
    size_t used_count;
};

enum idem_err idem_live_create(size_t entries_max, struct idem_live_table **ret_table)
{
    struct idem_live_table *table = calloc(1, sizeof(*table));
    if (table == NULL) {
        return IDEM_E_SYSTEM;
    }
    table->entry_count = 16;
    while (table->entry_count < entries_max * 2) {
        table->entry_count *= 2;
    }
    table->entries = calloc(table->entry_count, sizeof(*table->entries));
    if (table->entries == NULL) {
        free(table);
        return IDEM_E_SYSTEM;
    }
    *ret_table = table;
    return IDEM_OK;
}

void idem_live_destroy(struct idem_live_table *table)
{
    if (table != NULL) {
        IDEM_ASSERT(table->used_count == 0);
        free(table->entries);
        free(table);
    }
}

static size_t home(const struct idem_live_table *table, const struct idem_scope *scope)
{
    uint64_t hash = 0;
    memcpy(&hash, scope->bytes, sizeof(hash)); /* The scope is an HMAC: evenly spread. */
    return (size_t)hash & (table->entry_count - 1);
}

/* The slot of `scope`, or the free slot where it would stand. */
static size_t slot_of(const struct idem_live_table *table, const struct idem_scope *scope)
{
    size_t index = home(table, scope);
    while (table->entries[index].used &&
           memcmp(table->entries[index].scope.bytes, scope->bytes, sizeof(scope->bytes)) != 0) {
        index = (index + 1) & (table->entry_count - 1);
    }
    return index;
}

struct idem_live *idem_live_find(struct idem_live_table *table, const struct idem_scope *scope)
{
    struct idem_live *entry = &table->entries[slot_of(table, scope)];
    return entry->used ? entry : NULL;
}

struct idem_live *idem_live_get(struct idem_live_table *table, const struct idem_scope *scope)
{
    struct idem_live *entry = &table->entries[slot_of(table, scope)];
    if (!entry->used) {
        IDEM_ASSERT(table->used_count < table->entry_count / 2);
        *entry = (struct idem_live){ .scope = *scope, .used = true };
        table->used_count += 1;
    }
    return entry;
}

void idem_live_drop(struct idem_live_table *table, const struct idem_scope *scope)
{
    size_t hole = slot_of(table, scope);
    struct idem_live *entry = &table->entries[hole];
    if (!entry->used || entry->waiters.count > 0 || entry->flight != NULL || entry->deferred) {
        return;
    }
    *entry = (struct idem_live){ .used = false };
    table->used_count -= 1;

    /* Move back whatever probed past the hole. */
    size_t index = hole;
    for (;;) {
        index = (index + 1) & (table->entry_count - 1);
        struct idem_live *next = &table->entries[index];
        if (!next->used) {
            return;
        }
        size_t wanted = home(table, &next->scope);
        bool passed_hole = ((index - wanted) & (table->entry_count - 1)) >=
                           ((index - hole) & (table->entry_count - 1));
        if (passed_hole) {
            table->entries[hole] = *next;
            *next = (struct idem_live){ .used = false };
            hole = index;
        }
    }
}
