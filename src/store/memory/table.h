/*
 * table.h - rows in arrays, with an index by hash and an undo log.
 *
 * A handle is a row's place, counted from one. Every kind of row begins with a head: the one block
 * that its text lies in, and whether it is gone (its place is not used again). Changes stand at
 * once; undo puts back what was there, newest first.
 *
 * Memory that cannot be had stops the process: this backend is for tests.
 */
#ifndef IDEM_STORE_MEMORY_TABLE_H
#define IDEM_STORE_MEMORY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct idem_memory_table {
    char *rows;
    size_t row_size;
    size_t count;
    size_t max;
};

struct idem_memory_head {
    char *text; /* Owned; NULL: none. */
    bool gone;
};

struct idem_memory_change {
    struct idem_memory_table *table;
    int64_t handle;
    char *former;  /* Owned copy of the row before; NULL: it was added. */
    bool new_text; /* The row's text was replaced; `former` still has the old. */
};

struct idem_memory_log {
    struct idem_memory_change *changes;
    size_t count;
    size_t max;
};

/* The row at `handle`, or NULL: also of one that is gone. */
void *idem_memory_row(const struct idem_memory_table *table, int64_t handle);

/* Adds a copy of `row`, whose text it takes. */
int64_t idem_memory_add(struct idem_memory_log *log,
                        struct idem_memory_table *table,
                        const void *row);

/* Logs the row and returns it for changing. Takes `text` if it is not NULL. */
void *idem_memory_change(struct idem_memory_log *log,
                         struct idem_memory_table *table,
                         int64_t handle,
                         char *text);

/* The row is gone, until it is undone. */
void idem_memory_remove(struct idem_memory_log *log,
                        struct idem_memory_table *table,
                        int64_t handle);

void idem_memory_keep(struct idem_memory_log *log); /* Commit. */
void idem_memory_undo(struct idem_memory_log *log); /* Rollback. */

void idem_memory_table_deinit(struct idem_memory_table *table);

/* Never NULL. */
void *idem_memory_take(size_t size);

/*
 * From hash to handles, several under one hash. An entry is a hint: rows that were undone leave
 * theirs behind, so whoever looks compares the row.
 */
struct idem_memory_entry {
    uint64_t hash;
    int64_t handle; /* 0: free. */
};

struct idem_memory_index {
    struct idem_memory_entry *entries;
    size_t count;
    size_t max; /* A power of two, or 0. */
};

uint64_t idem_memory_hash(uint64_t hash, const void *bytes, size_t size);

void idem_memory_index_add(struct idem_memory_index *index, uint64_t hash, int64_t handle);

/* The next handle under `hash`, 0 behind the last; `*place` starts at 0. */
int64_t idem_memory_index_next(const struct idem_memory_index *index, uint64_t hash, size_t *place);

void idem_memory_index_deinit(struct idem_memory_index *index);

#endif /* IDEM_STORE_MEMORY_TABLE_H */
