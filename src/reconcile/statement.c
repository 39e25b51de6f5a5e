/*
 * One byte at a time, so that a record may lie across pieces, however they were cut.
 *
 *            quote                      quote              quote
 *   START ----------> QUOTED <--------------------- QUOTE <------- QUOTED
 *     |                                               |
 *     | other          comma: next field, START       | comma, end of line
 *     v               end of line: the record         v
 *    PLAIN -------------------------------------------+
 *     |
 *     | CR (also START, QUOTE): only LF may follow
 *     v
 *     CR
 *
 * An empty line is a record of one empty field, which is refused as any other with too few.
 */
#include "reconcile/statement.h"

#include <assert.h>

#include "base/bug.h"
#include "base/currency.h"
#include "base/date.h"
#include "base/money.h"
#include "core/limits.h"

enum reader_state {
    READER_START = 0, /* At the beginning of a field. */
    READER_PLAIN,
    READER_QUOTED,
    READER_QUOTE, /* Behind a quote inside quotes: the end of them, or half of two. */
    READER_CR,
    READER_MARK /* Inside a byte order mark. */
};

enum column {
    COLUMN_EFFECT_ID = 0,
    COLUMN_AMOUNT,
    COLUMN_CURRENCY,
    COLUMN_ORDER_NO,
    COLUMN_PAYMENT,
    COLUMN_REFERENCE,
    COLUMN_HAPPENED,
    COLUMN_STATE,
    COLUMN_COUNT
};

static_assert(COLUMN_COUNT == IDEM_STATEMENT_COLUMNS, "one place for each");

#define COLUMNS_REQUIRED 3
#define DATE_MAX         40
#define STATE_MAX        16

static const struct {
    const char *name;
    size_t max; /* Bytes of a field. */
} columns[COLUMN_COUNT] = {
    [COLUMN_EFFECT_ID] = { "effect_id", IDEM_LINE_ID_MAX },
    [COLUMN_AMOUNT] = { "amount", IDEM_AMOUNT_TEXT_MAX },
    [COLUMN_CURRENCY] = { "currency", IDEM_CURRENCY_LEN },
    [COLUMN_ORDER_NO] = { "order_no", IDEM_ORDER_NO_MAX },
    [COLUMN_PAYMENT] = { "payment_effect_id", IDEM_LINE_ID_MAX },
    [COLUMN_REFERENCE] = { "reference", IDEM_REFERENCE_MAX },
    [COLUMN_HAPPENED] = { "happened", DATE_MAX },
    [COLUMN_STATE] = { "state", STATE_MAX },
};

static const char byte_order_mark[] = "\xEF\xBB\xBF";
static const char misplaced[] = "a quote stands where none may";

void idem_statement_init(struct idem_statement *statement)
{
    *statement = (struct idem_statement){ .line_no = 1, .record_no = 1 };
    idem_buf_init(&statement->record, statement->memory, sizeof(statement->memory));
}

static enum idem_statement_step wrong(const struct idem_statement *statement,
                                      struct idem_error *reterr,
                                      const char *what)
{
    (void)idem_error_set(reterr, IDEM_E_INVALID, "line %zu: %s", statement->record_no, what);
    return IDEM_STATEMENT_WRONG;
}

static enum idem_statement_step wrong_field(const struct idem_statement *statement,
                                            struct idem_error *reterr,
                                            enum column column,
                                            const char *what)
{
    (void)idem_error_set(reterr, IDEM_E_INVALID, "line %zu: %s %s", statement->record_no,
                         columns[column].name, what);
    return IDEM_STATEMENT_WRONG;
}

static struct idem_str field_at(const struct idem_statement *statement, size_t index)
{
    size_t from = index == 0 ? 0 : statement->ends[index - 1];
    return idem_str_slice(idem_buf_str(&statement->record), from, statement->ends[index] - from);
}

static enum column column_find(struct idem_str name)
{
    for (enum column i = 0; i < COLUMN_COUNT; i++) {
        if (idem_str_equal(name, idem_str_from(columns[i].name))) {
            return i;
        }
    }
    return COLUMN_COUNT;
}

static enum idem_statement_step head_take(struct idem_statement *statement,
                                          struct idem_error *reterr)
{
    unsigned seen = 0;
    for (size_t i = 0; i < statement->field_count; i++) {
        struct idem_str name = field_at(statement, i);
        enum column column = column_find(name);
        if (column == COLUMN_COUNT) {
            return wrong(statement, reterr,
                         "there is a column that is not known: the first line names effect_id, "
                         "amount, currency, and may name order_no, payment_effect_id, reference, "
                         "happened, state");
        }
        if ((seen >> column & 1U) != 0) {
            return wrong_field(statement, reterr, column, "is there twice");
        }
        seen |= 1U << column;
        statement->columns[i] = column;
    }
    for (enum column i = 0; i < COLUMNS_REQUIRED; i++) {
        if ((seen >> i & 1U) == 0) {
            return wrong_field(statement, reterr, i, "is missing among the columns");
        }
    }
    statement->column_count = statement->field_count;
    statement->has_head = true;
    return IDEM_STATEMENT_MORE;
}

static enum idem_statement_step money_take(const struct idem_statement *statement,
                                           const struct idem_str fields[COLUMN_COUNT],
                                           struct idem_line *line,
                                           struct idem_error *reterr)
{
    int exponent = idem_currency_exponent(fields[COLUMN_CURRENCY]);
    if (exponent < 0) {
        return wrong_field(statement, reterr, COLUMN_CURRENCY,
                           "is no code of ISO 4217 in capitals");
    }
    switch (idem_amount_parse(fields[COLUMN_AMOUNT], exponent, &line->amount_minor)) {
    case IDEM_AMOUNT_OK:
        line->currency = fields[COLUMN_CURRENCY];
        return IDEM_STATEMENT_LINE;
    case IDEM_AMOUNT_DECIMALS:
        return wrong_field(statement, reterr, COLUMN_AMOUNT,
                           "does not have exactly the decimals of its currency");
    case IDEM_AMOUNT_RANGE:
        return wrong_field(statement, reterr, COLUMN_AMOUNT, "is more than can be counted");
    case IDEM_AMOUNT_ZERO:
        return wrong_field(statement, reterr, COLUMN_AMOUNT, "is zero");
    case IDEM_AMOUNT_SYNTAX:
    case IDEM_AMOUNT_FAULT_COUNT:
        break;
    }
    return wrong_field(statement, reterr, COLUMN_AMOUNT,
                       "is no plain positive decimal number such as 100.00");
}

static enum idem_statement_step words_take(const struct idem_statement *statement,
                                           const struct idem_str fields[COLUMN_COUNT],
                                           struct idem_line *line,
                                           struct idem_error *reterr)
{
    struct idem_str happened = fields[COLUMN_HAPPENED];
    struct idem_str state = fields[COLUMN_STATE];
    if (happened.len > 0 && !idem_date_parse_rfc3339(happened, &line->first_us)) {
        return wrong_field(statement, reterr, COLUMN_HAPPENED,
                           "is no time such as 2026-11-29T13:47:03Z");
    }
    line->last_us = line->first_us;
    line->state = state.len == 0 ? IDEM_LINE_SUCCEEDED : idem_line_state_there(state);
    if (line->state == IDEM_LINE_NONE) {
        return wrong_field(statement, reterr, COLUMN_STATE,
                           "is none of succeeded, failed and reversed");
    }
    return money_take(statement, fields, line, reterr);
}

static enum idem_statement_step line_take(struct idem_statement *statement,
                                          struct idem_line *ret_line,
                                          struct idem_error *reterr)
{
    struct idem_str fields[COLUMN_COUNT] = { { .data = NULL } };
    if (statement->field_count != statement->column_count) {
        return wrong(statement, reterr, "it does not have as many fields as the first line");
    }
    for (size_t i = 0; i < statement->field_count; i++) {
        enum column column = (enum column)statement->columns[i];
        fields[column] = field_at(statement, i);
        if (fields[column].len > columns[column].max) {
            return wrong_field(statement, reterr, column, "is too long");
        }
        if (!idem_str_is_visible(fields[column])) { /* They go into requests and onto screens. */
            return wrong_field(statement, reterr, column, "is not all visible ASCII");
        }
    }
    if (fields[COLUMN_EFFECT_ID].len == 0) {
        return wrong_field(statement, reterr, COLUMN_EFFECT_ID, "is empty");
    }
    struct idem_line line = {
        .effect_id = fields[COLUMN_EFFECT_ID],
        .order_no = fields[COLUMN_ORDER_NO],
        .payment_id = fields[COLUMN_PAYMENT],
        .reference = fields[COLUMN_REFERENCE],
    };
    enum idem_statement_step step = words_take(statement, fields, &line, reterr);
    if (step == IDEM_STATEMENT_LINE) {
        *ret_line = line;
    }
    return step;
}

/* The record is complete. */
static enum idem_statement_step record_take(struct idem_statement *statement,
                                            struct idem_line *ret_line,
                                            struct idem_error *reterr)
{
    return statement->has_head ? line_take(statement, ret_line, reterr)
                               : head_take(statement, reterr);
}

/* Makes room for the next record; the text of the last one goes. */
static void record_begin(struct idem_statement *statement)
{
    idem_buf_reset(&statement->record);
    statement->field_count = 0;
    statement->record_no = statement->line_no;
    statement->state = READER_START;
}

static bool field_end(struct idem_statement *statement)
{
    if (statement->field_count == IDEM_STATEMENT_COLUMNS) {
        return false;
    }
    statement->ends[statement->field_count] = statement->record.len;
    statement->field_count += 1;
    statement->state = READER_START;
    return true;
}

/* A field ends, and with it perhaps the record. NULL, or what is wrong with that. */
static const char *field_over(struct idem_statement *statement, char byte, bool *ret_over)
{
    if (!field_end(statement)) {
        return "it has more fields than there are columns";
    }
    *ret_over = byte == '\n';
    statement->state = byte == '\r' ? READER_CR : READER_START;
    return NULL;
}

static void byte_keep(struct idem_statement *statement, char byte, enum reader_state state)
{
    idem_buf_add_char(&statement->record, byte);
    statement->state = (int)state;
}

static bool ends_field(char byte)
{
    return byte == ',' || byte == '\n' || byte == '\r';
}

/* Outside quotes. */
static const char *bare_take(struct idem_statement *statement, char byte, bool *ret_over)
{
    if (ends_field(byte)) {
        return field_over(statement, byte, ret_over);
    }
    if (byte != '"') {
        byte_keep(statement, byte, READER_PLAIN);
        return NULL;
    }
    bool begins = statement->state == READER_START;
    statement->state = READER_QUOTED;
    return begins ? NULL : misplaced;
}

/* Behind a quote inside quotes. */
static const char *quote_take(struct idem_statement *statement, char byte, bool *ret_over)
{
    if (ends_field(byte)) {
        return field_over(statement, byte, ret_over);
    }
    byte_keep(statement, byte, READER_QUOTED);
    return byte == '"' ? NULL : misplaced;
}

/* NULL, or what is wrong with this byte here. `*ret_over`: the record is complete. */
static const char *byte_take(struct idem_statement *statement, char byte, bool *ret_over)
{
    switch ((enum reader_state)statement->state) {
    case READER_START:
    case READER_PLAIN:
        return bare_take(statement, byte, ret_over);
    case READER_QUOTED:
        if (byte == '"') {
            statement->state = READER_QUOTE;
        } else {
            byte_keep(statement, byte, READER_QUOTED);
        }
        return NULL;
    case READER_QUOTE:
        return quote_take(statement, byte, ret_over);
    case READER_CR:
        *ret_over = byte == '\n';
        return *ret_over ? NULL : "a carriage return stands alone";
    case READER_MARK:
        return "it begins with half a byte order mark";
    }
    IDEM_UNREACHABLE();
}

/* A mark at the very beginning, which says nothing. True if the byte is one of it. */
static bool mark_take(struct idem_statement *statement, char byte)
{
    const size_t last = sizeof(byte_order_mark) - 2;
    bool inside = statement->state == READER_MARK;
    if ((statement->offset > 0 && !inside) || byte != byte_order_mark[statement->offset]) {
        return false;
    }
    statement->state = statement->offset == last ? READER_START : READER_MARK;
    return true;
}

/* LINE: the byte ended one; MORE: it did not, or ended the head. */
static enum idem_statement_step byte_read(struct idem_statement *statement,
                                          char byte,
                                          struct idem_line *ret_line,
                                          struct idem_error *reterr)
{
    bool over = false;
    if (statement->record_no == 0) {
        record_begin(statement);
    }
    const char *what = mark_take(statement, byte) ? NULL : byte_take(statement, byte, &over);
    statement->offset += 1;
    statement->line_no += byte == '\n' ? 1 : 0;
    if (what != NULL || statement->record.full) {
        return wrong(statement, reterr, what != NULL ? what : "it is too long");
    }
    if (!over) {
        return IDEM_STATEMENT_MORE;
    }
    enum idem_statement_step step = record_take(statement, ret_line, reterr);
    if (step != IDEM_STATEMENT_WRONG) {
        statement->record_no = 0; /* The next byte begins another. */
    }
    return step;
}

enum idem_statement_step idem_statement_read(struct idem_statement *statement,
                                             struct idem_str *piece,
                                             struct idem_line *ret_line,
                                             struct idem_error *reterr)
{
    enum idem_statement_step step = IDEM_STATEMENT_MORE;
    size_t used = 0;
    while (used < piece->len && step == IDEM_STATEMENT_MORE) {
        step = byte_read(statement, piece->data[used], ret_line, reterr);
        used += 1;
    }
    *piece = idem_str_slice(*piece, used, piece->len);
    return step;
}

enum idem_statement_step idem_statement_end(struct idem_statement *statement,
                                            struct idem_line *ret_line,
                                            struct idem_error *reterr)
{
    bool begun =
        statement->record_no != 0 && (statement->record.len > 0 || statement->field_count > 0 ||
                                      statement->state != READER_START);
    bool inside = statement->state == READER_QUOTED || statement->state == READER_CR ||
                  statement->state == READER_MARK;
    if (begun && inside) {
        return wrong(statement, reterr, "the file ends in the middle of it");
    }
    if (begun && !field_end(statement)) {
        return wrong(statement, reterr, "it has more fields than there are columns");
    }
    enum idem_statement_step step =
        begun ? record_take(statement, ret_line, reterr) : IDEM_STATEMENT_MORE;
    if (step == IDEM_STATEMENT_MORE && !statement->has_head) {
        statement->record_no = 1;
        return wrong(statement, reterr, "the file is empty: its first line names the columns");
    }
    return step;
}
