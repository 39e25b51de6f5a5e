/*
 * statement.h - a provider's statement as a CSV file: a strict reader (RFC 4180).
 *
 * The first record names the columns, in any order, each at most once:
 *
 *     effect_id, amount, currency                 required
 *     order_no, payment_effect_id, reference,
 *     happened, state                             optional; a field of them may be empty
 *
 * Any other column is refused: a misspelt one that is passed over would make every line of the file
 * say less than its writer meant. A record has exactly as many fields as there are columns. Fields
 * may stand in quotes ("" inside them is one quote); a quote anywhere else is refused. Lines end
 * with CRLF or LF, the last one may end without. Fields are visible ASCII; a byte order mark of
 * UTF-8 at the beginning is passed over. An amount is a positive decimal text with exactly the
 * decimals of its currency, `happened` RFC 3339, `state` succeeded (also if it is empty), failed or
 * reversed.
 *
 * The reader is fed pieces of any size and gives lines. What is wrong is told with the number of
 * the line in the file; nothing behind it is read.
 */
#ifndef IDEM_RECONCILE_STATEMENT_H
#define IDEM_RECONCILE_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "reconcile/line.h"

#define IDEM_STATEMENT_COLUMNS    8
#define IDEM_STATEMENT_RECORD_MAX 4096 /* Bytes of one record's fields, without quotes. */

struct idem_statement {
    size_t line_no;   /* Of the byte that comes next, from one. */
    size_t record_no; /* Line on which the record began. */
    size_t offset;    /* Of the byte that comes next. */
    int state;        /* Of the reader between bytes: statement.c. */
    bool has_head;
    size_t columns[IDEM_STATEMENT_COLUMNS]; /* What the column at this index is. */
    size_t column_count;
    size_t ends[IDEM_STATEMENT_COLUMNS]; /* Of the record's fields in `memory`. */
    size_t field_count;
    struct idem_buf record;
    char memory[IDEM_STATEMENT_RECORD_MAX];
};

enum idem_statement_step {
    IDEM_STATEMENT_MORE = 0, /* The piece is used up. */
    IDEM_STATEMENT_LINE,     /* A line; the rest of the piece waits. */
    IDEM_STATEMENT_WRONG     /* It cannot be read. */
};

void idem_statement_init(struct idem_statement *statement);

/*
 * Reads from the beginning of `*piece` and moves it on. Text of a line is the statement's, until
 * the next call.
 */
enum idem_statement_step idem_statement_read(struct idem_statement *statement,
                                             struct idem_str *piece,
                                             struct idem_line *ret_line,
                                             struct idem_error *reterr);

/* The file has ended: MORE if nothing was left, LINE if its last line had no end of line. */
enum idem_statement_step idem_statement_end(struct idem_statement *statement,
                                            struct idem_line *ret_line,
                                            struct idem_error *reterr);

#endif /* IDEM_RECONCILE_STATEMENT_H */
