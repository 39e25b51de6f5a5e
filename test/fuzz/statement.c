/*
 * Fuzzes the reader of statements.
 *
 * The input is a file. Properties, for any bytes:
 *   - cut into pieces of any size, the same lines come out of it, or the same complaint;
 *   - a line that is given has an id, a positive amount that its currency's decimals print, a state
 *     of a statement's, and texts within their limits, all of it visible ASCII;
 *   - all lines written again, every field in quotes and the columns in another order, are read as
 *     the same lines;
 *   - whatever is wrong is told with a number of a line that the file has.
 */
#include "reconcile/statement.h"

#include "base/currency.h"
#include "base/money.h"
#include "core/limits.h"
#include "fuzz/fuzz.h"

#define FILE_MAX 16384
#define TEXT_MAX ((size_t)16 * FILE_MAX)

static void visible_expect(struct idem_str text, size_t max)
{
    FUZZ_EXPECT(text.len <= max);
    for (size_t i = 0; i < text.len; i++) {
        FUZZ_EXPECT(text.data[i] >= 0x21 && text.data[i] <= 0x7E);
    }
}

static void line_expect(const struct idem_line *line)
{
    FUZZ_EXPECT(line->effect_id.len > 0 && line->amount_minor > 0);
    FUZZ_EXPECT(idem_currency_exponent(line->currency) >= 0);
    FUZZ_EXPECT(line->state == IDEM_LINE_SUCCEEDED || line->state == IDEM_LINE_FAILED ||
                line->state == IDEM_LINE_REVERSED);
    FUZZ_EXPECT(line->first_us >= 0 && line->first_us == line->last_us);
    FUZZ_EXPECT(line->operation.len == 0);
    visible_expect(line->effect_id, IDEM_LINE_ID_MAX);
    visible_expect(line->order_no, IDEM_ORDER_NO_MAX);
    visible_expect(line->payment_id, IDEM_LINE_ID_MAX);
    visible_expect(line->reference, IDEM_REFERENCE_MAX);
}

static void field_print(struct idem_str text, const char *behind, struct idem_buf *buf)
{
    idem_buf_add_char(buf, '"');
    for (size_t i = 0; i < text.len; i++) {
        idem_buf_add(buf, text.data[i] == '"' ? IDEM_STR("\"") : IDEM_STR(""));
        idem_buf_add_char(buf, text.data[i]);
    }
    idem_buf_printf(buf, "\"%s", behind);
}

/* As a line of a file whose columns are in the order of HEAD; the time stands behind it. */
#define HEAD "state,reference,payment_effect_id,order_no,currency,amount,effect_id\r\n"

static void line_print(const struct idem_line *line, struct idem_buf *buf)
{
    char memory[IDEM_AMOUNT_TEXT_MAX + 1];
    struct idem_buf amount;
    idem_buf_init(&amount, memory, sizeof(memory));
    idem_amount_print(line->amount_minor, idem_currency_exponent(line->currency), &amount);
    field_print(idem_str_from(idem_line_state_name(line->state)), ",", buf);
    field_print(line->reference, ",", buf);
    field_print(line->payment_id, ",", buf);
    field_print(line->order_no, ",", buf);
    field_print(line->currency, ",", buf);
    field_print(idem_buf_str(&amount), ",", buf);
    field_print(line->effect_id, "\r\n", buf);
    FUZZ_EXPECT(!buf->full);
}

/* Lines that were read, printed, and how it ended. True: the file was read to its end. */
static bool file_read(struct idem_str file, size_t size, struct idem_buf *buf)
{
    static struct idem_statement statement;
    struct idem_error error;
    struct idem_line line;
    enum idem_statement_step step = IDEM_STATEMENT_MORE;
    idem_statement_init(&statement);
    for (size_t at = 0; at < file.len && step != IDEM_STATEMENT_WRONG; at += size) {
        struct idem_str piece = idem_str_slice(file, at, size);
        while ((step = idem_statement_read(&statement, &piece, &line, &error)) ==
               IDEM_STATEMENT_LINE) {
            line_expect(&line);
            line_print(&line, buf);
        }
        FUZZ_EXPECT(step == IDEM_STATEMENT_WRONG || piece.len == 0);
    }
    if (step == IDEM_STATEMENT_MORE) {
        step = idem_statement_end(&statement, &line, &error);
    }
    if (step == IDEM_STATEMENT_LINE) {
        line_expect(&line);
        line_print(&line, buf);
    }
    if (step == IDEM_STATEMENT_WRONG) {
        FUZZ_EXPECT(statement.record_no >= 1 && statement.record_no <= statement.line_no);
        idem_buf_add(buf, idem_str_from(error.text));
    }
    return step != IDEM_STATEMENT_WRONG;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char once_memory[TEXT_MAX];
    static char again_memory[TEXT_MAX];
    struct idem_buf once;
    struct idem_buf again;
    struct idem_str file = { .data = (const char *)data, .len = size };
    if (size > FILE_MAX) {
        return 0;
    }
    idem_buf_init(&once, once_memory, sizeof(once_memory));
    idem_buf_init(&again, again_memory, sizeof(again_memory));
    idem_buf_add(&once, IDEM_STR(HEAD));
    bool taken = file_read(file, size + 1, &once);
    for (size_t piece = 1; piece <= 7; piece += 3) {
        idem_buf_reset(&again);
        idem_buf_add(&again, IDEM_STR(HEAD));
        FUZZ_EXPECT(file_read(file, piece, &again) == taken);
        FUZZ_EXPECT(idem_str_equal(idem_buf_str(&once), idem_buf_str(&again)));
    }
    if (!taken) {
        return 0;
    }
    idem_buf_reset(&again);
    idem_buf_add(&again, IDEM_STR(HEAD));
    FUZZ_EXPECT(file_read(idem_buf_str(&once), 5, &again));
    FUZZ_EXPECT(idem_str_equal(idem_buf_str(&once), idem_buf_str(&again)));
    return 0;
}
