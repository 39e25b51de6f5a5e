/*
 * The reader of statements.
 *
 * Goal: a statement says what its writer meant, line by line, or is refused with the number of the
 * line and what is wrong with it; however the file is cut into pieces, the same comes out.
 *
 * Method: a table of files and what is read from them, as text. Each is read in one piece, and
 * again byte by byte.
 */
#include "reconcile/statement.h"

#include "base/attr.h"
#include "lib/test.h"

#define HEAD "effect_id,amount,currency"
#define FULL "state,happened,reference,payment_effect_id,order_no,currency,amount,effect_id\n"

static void line_print(const struct idem_line *line, struct idem_buf *buf)
{
    idem_buf_printf(buf, "%.*s %lld %.*s %s", (int)line->effect_id.len, line->effect_id.data,
                    (long long)line->amount_minor, (int)line->currency.len, line->currency.data,
                    idem_line_state_name(line->state));
    idem_buf_printf(buf, " [%.*s|%.*s|%.*s] %lld\n", (int)line->order_no.len, line->order_no.data,
                    (int)line->payment_id.len, line->payment_id.data, (int)line->reference.len,
                    line->reference.data, (long long)line->first_us);
    assert_int_equal(line->first_us, line->last_us);
}

/* Until the piece is used up, or cannot be read. */
static enum idem_statement_step piece_read(struct idem_statement *statement,
                                           struct idem_str piece,
                                           struct idem_buf *buf,
                                           struct idem_error *reterr)
{
    struct idem_line line;
    enum idem_statement_step step;
    while ((step = idem_statement_read(statement, &piece, &line, reterr)) == IDEM_STATEMENT_LINE) {
        line_print(&line, buf);
    }
    return step;
}

/* Everything that comes of the file, read `size` bytes at a time. */
static void file_read(struct idem_str file, size_t size, struct idem_buf *buf)
{
    static struct idem_statement statement;
    struct idem_error error = { .text = "" };
    struct idem_line line;
    enum idem_statement_step step = IDEM_STATEMENT_MORE;
    idem_statement_init(&statement);
    for (size_t at = 0; at < file.len && step != IDEM_STATEMENT_WRONG; at += size) {
        step = piece_read(&statement, idem_str_slice(file, at, size), buf, &error);
    }
    if (step != IDEM_STATEMENT_WRONG) {
        step = idem_statement_end(&statement, &line, &error);
    }
    if (step == IDEM_STATEMENT_LINE) {
        line_print(&line, buf);
    }
    if (step == IDEM_STATEMENT_WRONG) {
        idem_buf_add(buf, idem_str_from(error.text));
    }
    assert_false(buf->full);
}

static void expect_file(struct idem_str file, const char *expected)
{
    char memory[2048];
    struct idem_buf buf;
    const size_t sizes[] = { file.len + 1, 1, 3 };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sizes); i++) {
        idem_buf_init(&buf, memory, sizeof(memory));
        file_read(file, sizes[i], &buf);
        EXPECT_TEXT(idem_buf_str(&buf), expected);
    }
}

static void what_can_be_read_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        const char *expected;
    } rows[] = {
        { HEAD "\nc1,100.00,EUR\n", "c1 10000 EUR succeeded [||] 0\n" },
        { HEAD "\r\nc1,100,JPY\r\nc2,0.001,KWD\r\n",
          "c1 100 JPY succeeded [||] 0\nc2 1 KWD succeeded [||] 0\n" },
        { HEAD "\nc1,100.00,EUR", "c1 10000 EUR succeeded [||] 0\n" },
        { HEAD "\n", "" },
        { HEAD, "" },
        { "\xEF\xBB\xBF" HEAD "\nc1,1.00,EUR\n", "c1 100 EUR succeeded [||] 0\n" },
        { "\"effect_id\",\"amount\",\"currency\"\n\"c1\",\"1.00\",\"EUR\"",
          "c1 100 EUR succeeded [||] 0\n" },
        { FULL "reversed,1970-01-01T00:00:01Z,r-1,c0,o-1,EUR,1.00,c1\n",
          "c1 100 EUR reversed [o-1|c0|r-1] 1000000\n" },
        { FULL "failed,,,,,EUR,1.00,c1\n,,,,,EUR,1.00,c2\n",
          "c1 100 EUR failed [||] 0\nc2 100 EUR succeeded [||] 0\n" },
        { "effect_id,amount,currency,order_no\nc1,1.00,EUR,\"a,\"\"b\"\"\"\n",
          "c1 100 EUR succeeded [a,\"b\"||] 0\n" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        expect_file(idem_str_from(rows[i].file), rows[i].expected);
    }
}

static void what_cannot_be_read_is_told_with_its_line(void **state)
{
    (void)state;
    static const char not_known[] =
        "line 1: there is a column that is not known: the first line names effect_id, amount, "
        "currency, and may name order_no, payment_effect_id, reference, happened, state";
    static const struct {
        const char *file;
        const char *expected;
    } rows[] = {
        { "", "line 1: the file is empty: its first line names the columns" },
        { "\xEF\xBB\xBF", "line 1: the file is empty: its first line names the columns" },
        { "\xEF\xBB" HEAD "\n", "line 1: it begins with half a byte order mark" },
        { "\xEF\xBB", "line 1: the file ends in the middle of it" },
        { "effect_id,amount\n", "line 1: currency is missing among the columns" },
        { HEAD ",fee\n", not_known },
        { "Effect_id,amount,currency\n", not_known },
        { HEAD ", order_no\n", not_known },
        { HEAD ",amount\n", "line 1: amount is there twice" },
        { HEAD ",,,,,,\n", "line 1: it has more fields than there are columns" },
        { HEAD "\nc1,1.00\n", "line 2: it does not have as many fields as the first line" },
        { HEAD "\nc1,1.00,EUR,\n", "line 2: it does not have as many fields as the first line" },
        { HEAD "\n\n", "line 2: it does not have as many fields as the first line" },
        { HEAD "\nc1,1.00,EUR\n,1.00,EUR\n",
          "c1 100 EUR succeeded [||] 0\nline 3: effect_id is empty" },
        { HEAD "\nc1,1,EUR\n",
          "line 2: amount does not have exactly the decimals of its currency" },
        { HEAD "\nc1,1.005,EUR\n",
          "line 2: amount does not have exactly the decimals of its currency" },
        { HEAD "\nc1,-1.00,EUR\n",
          "line 2: amount is no plain positive decimal number such as 100.00" },
        { HEAD "\nc1,\"1,000.00\",EUR\n",
          "line 2: amount is no plain positive decimal number such as 100.00" },
        { HEAD "\nc1,0.00,EUR\n", "line 2: amount is zero" },
        { HEAD "\nc1,999999999999999999.00,EUR\n", "line 2: amount is more than can be counted" },
        { HEAD "\nc1,1.00,eur\n", "line 2: currency is no code of ISO 4217 in capitals" },
        { HEAD "\nc1,1.00,EURO\n", "line 2: currency is too long" },
        { HEAD "\nc 1,1.00,EUR\n", "line 2: effect_id is not all visible ASCII" },
        { HEAD "\n\"c1\n\",1.00,EUR\n", "line 2: effect_id is not all visible ASCII" },
        { HEAD "\n\"c1\nc1,1.00,EUR\n", "line 2: the file ends in the middle of it" },
        { HEAD "\nc\"1,1.00,EUR\n", "line 2: a quote stands where none may" },
        { HEAD "\n\"c\"1,1.00,EUR\n", "line 2: a quote stands where none may" },
        { HEAD "\nc1,1.00,EUR\rc2", "line 2: a carriage return stands alone" },
        { HEAD "\nc1,1.00,EUR\r", "line 2: the file ends in the middle of it" },
        { FULL "gone,,,,,EUR,1.00,c1\n",
          "line 2: state is none of succeeded, failed and reversed" },
        { FULL ",yesterday,,,,EUR,1.00,c1\n",
          "line 2: happened is no time such as 2026-11-29T13:47:03Z" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        expect_file(idem_str_from(rows[i].file), rows[i].expected);
    }
    expect_file(IDEM_STR(HEAD "\nc\0,1.00,EUR\n"), "line 2: effect_id is not all visible ASCII");
}

static void what_is_too_long_is_refused_before_it_is_kept(void **state)
{
    (void)state;
    static char file[IDEM_STATEMENT_RECORD_MAX + 64];
    struct idem_buf buf;
    idem_buf_init(&buf, file, sizeof(file));
    idem_buf_add(&buf, IDEM_STR(HEAD "\n"));
    for (size_t i = 0; i < IDEM_LINE_ID_MAX + 1; i++) {
        idem_buf_add_char(&buf, 'c');
    }
    size_t id_end = buf.len;
    idem_buf_add(&buf, IDEM_STR(",1.00,EUR\n"));
    expect_file(idem_buf_str(&buf), "line 2: effect_id is too long");
    buf.len = id_end;
    while (buf.len < sizeof(HEAD) + IDEM_STATEMENT_RECORD_MAX + 1) {
        idem_buf_add_char(&buf, 'c');
    }
    assert_false(buf.full);
    expect_file(idem_buf_str(&buf), "line 2: it is too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_be_read_is_read),
        cmocka_unit_test(what_cannot_be_read_is_told_with_its_line),
        cmocka_unit_test(what_is_too_long_is_refused_before_it_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
