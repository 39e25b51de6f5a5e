/*
 * summary.h - counts and sums of a reconciliation, per kind, kind of effect and currency, and the
 * words in which it and each difference are printed.
 *
 * Sums are 64-bit minor units, checked: a sum that does not fit is told as an error, never cut.
 */
#ifndef IDEM_RECONCILE_SUMMARY_H
#define IDEM_RECONCILE_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/currency.h"
#include "base/error.h"
#include "reconcile/merge.h"

#define IDEM_SUMMARY_CURRENCIES 256 /* More than there are; the first one stands for "not said". */

struct idem_summary_cell {
    int64_t counts[IDEM_LINE_SIDE_COUNT];
    int64_t sums[IDEM_LINE_SIDE_COUNT];
};

struct idem_summary_book {
    struct idem_summary_cell cells[IDEM_MERGE_KIND_COUNT][IDEM_EFFECT_KIND_COUNT]
                                  [IDEM_SUMMARY_CURRENCIES];
    int64_t left; /* Differences that a person must look at. */
    size_t last_currency;
};

/* One line of it that is not empty. */
struct idem_summary_row {
    enum idem_merge_kind kind;
    enum idem_effect_kind effect;
    struct idem_str currency; /* Empty: not said. */
    struct idem_summary_cell cell;
};

/* The book is zeros when it begins. IDEM_E_LIMIT: a sum does not fit; the book is as it was. */
enum idem_err idem_summary_add(struct idem_summary_book *book,
                               const struct idem_merge_pair *pair,
                               struct idem_error *reterr) IDEM_MUST_CHECK;

/* Walks the rows in order: `*position` begins at 0. False: there are no more. */
bool idem_summary_next(const struct idem_summary_book *book,
                       size_t *position,
                       struct idem_summary_row *ret_row);

enum idem_summary_format {
    IDEM_SUMMARY_TABLE = 0, /* For people. */
    IDEM_SUMMARY_CSV,       /* RFC 4180, one header, column "record": difference or total. */
    IDEM_SUMMARY_JSON,      /* One object a line, member "record" likewise. */
    IDEM_SUMMARY_FORMAT_COUNT
};

#define IDEM_SUMMARY_PRINT_MAX 4096 /* Bytes of one difference or row. */

/* What a difference became: a word of the service's, and the case it has open, if it has. */
struct idem_summary_end {
    struct idem_str result;
    struct idem_str case_kind; /* Empty: none. */
    struct idem_str operation; /* Empty: as the line here says. */
};

/* What stands before the differences, and before the rows. */
void idem_summary_print_head(enum idem_summary_format format, struct idem_buf *buf);
void idem_summary_print_middle(enum idem_summary_format format, struct idem_buf *buf);

void idem_summary_print_pair(enum idem_summary_format format,
                             const struct idem_merge_pair *pair,
                             const struct idem_summary_end *end,
                             struct idem_buf *buf);

void idem_summary_print_row(enum idem_summary_format format,
                            const struct idem_summary_row *row,
                            struct idem_buf *buf);

#endif /* IDEM_RECONCILE_SUMMARY_H */
