/*
 * One cell for every kind, kind of effect and currency; a currency is found by its place in the
 * table of currencies, and the last one is tried first, since statements rarely change it.
 */
#include "reconcile/summary.h"

#include "base/bug.h"
#include "base/money.h"

#define NOT_SAID 0

/* The place of a currency; that of nothing is 0, the table's first is 1. */
static size_t currency_place(struct idem_summary_book *book, struct idem_str code)
{
    if (code.len == 0) {
        return NOT_SAID;
    }
    if (book->last_currency > 0 &&
        idem_str_equal(idem_currency_at(book->last_currency - 1), code)) {
        return book->last_currency;
    }
    for (size_t i = 0; i < IDEM_SUMMARY_CURRENCIES - 1; i++) {
        struct idem_str known = idem_currency_at(i);
        if (known.len == 0) {
            break;
        }
        if (idem_str_equal(known, code)) {
            book->last_currency = i + 1;
            return i + 1;
        }
    }
    return NOT_SAID;
}

static enum idem_err side_add(struct idem_summary_cell *cell,
                              enum idem_line_side side,
                              const struct idem_line *line,
                              struct idem_error *reterr)
{
    int64_t amount_minor = line->amount_minor > 0 ? line->amount_minor : 0;
    int64_t sum;
    if (!idem_amount_add(cell->sums[side], amount_minor, &sum)) {
        return idem_error_set(reterr, IDEM_E_LIMIT, "the sum of %.*s is more than can be counted",
                              (int)line->currency.len, line->currency.data);
    }
    cell->sums[side] = sum;
    cell->counts[side] += 1;
    return IDEM_OK;
}

enum idem_err idem_summary_add(struct idem_summary_book *book,
                               const struct idem_merge_pair *pair,
                               struct idem_error *reterr)
{
    IDEM_ASSERT(pair->kind > IDEM_MERGE_NONE);
    IDEM_ASSERT(pair->kind < IDEM_MERGE_KIND_COUNT);
    struct idem_summary_cell *cells = book->cells[pair->kind][idem_merge_effect(pair)];
    struct idem_summary_cell *here = &cells[currency_place(book, pair->here.currency)];
    struct idem_summary_cell *there = &cells[currency_place(book, pair->there.currency)];
    const struct idem_summary_cell before = *here;
    enum idem_err err = IDEM_OK;
    if (pair->has_here) {
        err = side_add(here, IDEM_LINE_HERE, &pair->here, reterr);
    }
    if (err == IDEM_OK && pair->has_there) {
        err = side_add(there, IDEM_LINE_THERE, &pair->there, reterr);
        if (err != IDEM_OK) {
            *here = before;
        }
    }
    return err;
}

bool idem_summary_next(const struct idem_summary_book *book,
                       size_t *position,
                       struct idem_summary_row *ret_row)
{
    const size_t effects = IDEM_EFFECT_KIND_COUNT;
    const size_t end = (size_t)IDEM_MERGE_KIND_COUNT * effects * IDEM_SUMMARY_CURRENCIES;
    while (*position < end) {
        size_t currency = *position % IDEM_SUMMARY_CURRENCIES;
        size_t effect = *position / IDEM_SUMMARY_CURRENCIES % effects;
        size_t kind = *position / IDEM_SUMMARY_CURRENCIES / effects;
        const struct idem_summary_cell *cell = &book->cells[kind][effect][currency];
        *position += 1;
        if (cell->counts[IDEM_LINE_HERE] > 0 || cell->counts[IDEM_LINE_THERE] > 0) {
            *ret_row = (struct idem_summary_row){
                .kind = (enum idem_merge_kind)kind,
                .effect = (enum idem_effect_kind)effect,
                .currency = currency == NOT_SAID ? IDEM_STR("") : idem_currency_at(currency - 1),
                .cell = *cell,
            };
            return true;
        }
    }
    return false;
}
