/*
 * book.h - what the store has acknowledged, in the test's own words.
 *
 * Written from answers alone: what a batch's commands were told once it came back DURABLE. After
 * batch n the store must be in state n; of that the book has a digest of every table as well. A
 * book can be cut back to an earlier state, as a store is by a loss of power.
 */
#ifndef IDEM_TEST_POWER_BOOK_H
#define IDEM_TEST_POWER_BOOK_H

#include "unit/store/fixture.h"

#define BOOK_TABLES      10
#define BOOK_DEEDS_MAX   2000
#define BOOK_RECORDS_MAX 2000
#define BOOK_BATCHES_MAX 200
#define BOOK_NONE        SIZE_MAX

/* The rows of each table, all members, without what an opening alone changes. */
struct book_dump {
    uint64_t tables[BOOK_TABLES];
};

/* One business intent that the test knows of, acknowledged or not. */
struct deed {
    const char *principal;
    const char *key;
    enum idem_endpoint endpoint;
    struct idem_scope scope;
    size_t payment; /* The deed that made its payment; its own number for payments.create. */
    const char *order_no;
    const char *amount_text;
    int64_t amount_minor;
    bool manual;
    bool busy;   /* In the batch that is being made. */
    size_t last; /* The newest record about it. */
};

/* One command that was acknowledged. */
struct record {
    size_t batch; /* The first one is 1. */
    size_t deed;  /* NONE: it was about no intent. */
    struct idem_command command;
    struct idem_intent intent; /* As it stands after it; all text is the book's. */
    struct idem_release release;
    bool uncounted; /* It ran more often than what was left of it: its version may be lower. */
};

struct book {
    struct deed deeds[BOOK_DEEDS_MAX];
    size_t deed_count;
    struct record records[BOOK_RECORDS_MAX];
    size_t record_count;
    struct book_dump dumps[BOOK_BATCHES_MAX]; /* Index 0: the store that was just made. */
    size_t batch_count;
    char *memory; /* Of all text. */
    size_t memory_used;
    size_t memory_max;
};

/* Of memory that is zero. */
void book_init(struct book *book);
void book_deinit(struct book *book);

/* Text that lives as long as the book. */
const char *book_text(struct book *book, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A batch came back DURABLE; deeds[i] is what calls[i] was about. */
void book_acknowledge(struct book *book,
                      const struct call *calls,
                      const size_t *deeds,
                      size_t count);

/* Nothing after batch `batches` has been. */
void book_cut(struct book *book, size_t batches);

/* What was acknowledged last about a deed up to a batch; NULL: nothing. */
const struct record *book_last(const struct book *book, size_t deed, size_t batches);

/* Reads a store's file from outside. False: it could not be read. */
bool book_dump_read(const char *path, struct book_dump *ret_dump);

/*
 * The first table that differs; NULL: they are equal. A batch that ran twice has written the same
 * rows twice, and each counts its writes: without `versions` that does not matter.
 */
const char *book_difference(const struct book_dump *left,
                            const struct book_dump *right,
                            bool versions);

/* Damage, or rows that do not belong together (P10, P11). Empty text: there is none. */
void book_damage_find(const char *path, char *ret_text, size_t size);

#endif /* IDEM_TEST_POWER_BOOK_H */
