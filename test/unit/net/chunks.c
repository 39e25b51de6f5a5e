/*
 * The frame of a chunked body.
 *
 * Goal: the end of a body is found at exactly one place, and every frame that two servers could
 * read in two ways is refused.
 * Method: a table of bodies, each given whole and cut at every place; the verdict and the number of
 * bytes must not depend on the cut.
 */
#include "net/chunks.h"

#include "lib/test.h"

#define BODY_MAX 16

struct row {
    const char *text;
    enum idem_chunks_verdict verdict;
    size_t used; /* On DONE. */
};

static const struct row rows[] = {
    { "0\r\n\r\n", IDEM_CHUNKS_DONE, 5 },
    { "3\r\nabc\r\n0\r\n\r\n", IDEM_CHUNKS_DONE, 13 },
    { "3\r\nabc\r\n0\r\n\r\nGET /", IDEM_CHUNKS_DONE, 13 },
    { "00003\r\nabc\r\n000\r\n\r\n", IDEM_CHUNKS_DONE, 19 },
    { "a\r\n0123456789\r\n6\r\n012345\r\n0\r\n\r\n", IDEM_CHUNKS_DONE, 31 },
    { "3;name=\"v\"\r\nabc\r\n0;x\r\n\r\n", IDEM_CHUNKS_DONE, 24 },
    { "3\r\nabc\r\n", IDEM_CHUNKS_MORE, 0 },
    { "3\r\nabc\r\n0\r\n", IDEM_CHUNKS_MORE, 0 },
    { "11\r\n", IDEM_CHUNKS_TOO_LARGE, 0 },
    { "a\r\n0123456789\r\n7\r\n", IDEM_CHUNKS_TOO_LARGE, 0 },
    { "FFFFFFFFFFFFFFFF\r\n", IDEM_CHUNKS_TOO_LARGE, 0 },
    { "a\r\n0123456789\r\nFFFFFFFFFFFFFFF8\r\n", IDEM_CHUNKS_TOO_LARGE, 0 },
    { "10000000000000003\r\nabc", IDEM_CHUNKS_BAD, 0 },
    { "0x2\r\nab\r\n", IDEM_CHUNKS_BAD, 0 },
    { "+2\r\nab\r\n", IDEM_CHUNKS_BAD, 0 },
    { "-2\r\nab\r\n", IDEM_CHUNKS_BAD, 0 },
    { " 2\r\nab\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2 \r\nab\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2 ;x\r\nab\r\n", IDEM_CHUNKS_BAD, 0 },
    { "\r\n", IDEM_CHUNKS_BAD, 0 },
    { ";x\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2\nab\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2\rab\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2;x\nab\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2;\x01\r\nab\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2\r\nabc\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2\r\nab\n0\r\n\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2\r\nab0\r\n\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2\r\nab\r0\r\n\r\n", IDEM_CHUNKS_BAD, 0 },
    { "2\r\nabX\n0\r\n\r\n", IDEM_CHUNKS_BAD, 0 },
    { "0\r\nX\n", IDEM_CHUNKS_BAD, 0 },
    { "0\r\nTrailer: x\r\n\r\n", IDEM_CHUNKS_BAD, 0 },
    { "0\r\n\n", IDEM_CHUNKS_BAD, 0 },
    { "0\n\n", IDEM_CHUNKS_BAD, 0 },
};

static enum idem_chunks_verdict scan_cut(struct idem_str text, size_t cut, size_t *ret_used)
{
    struct idem_chunks chunks = { 0 };
    size_t used = 0;
    enum idem_chunks_verdict verdict =
        idem_chunks_scan(&chunks, idem_str_slice(text, 0, cut), BODY_MAX, &used);
    *ret_used = used;
    if (verdict == IDEM_CHUNKS_MORE) {
        assert_int_equal(used, cut);
        verdict = idem_chunks_scan(&chunks, idem_str_slice(text, cut, text.len), BODY_MAX, &used);
        *ret_used += used;
    }
    return verdict;
}

static void expect_row(const struct row *row, size_t cut)
{
    size_t used = 0;
    enum idem_chunks_verdict verdict = scan_cut(idem_str_from(row->text), cut, &used);
    if (verdict != row->verdict || (row->used != 0 && used != row->used)) {
        fail_msg("%s\ncut at %zu: verdict %d, used %zu", row->text, cut, (int)verdict, used);
    }
}

static void verdicts_do_not_depend_on_the_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        for (size_t cut = 0; cut <= strlen(rows[i].text); cut++) {
            expect_row(&rows[i], cut);
        }
    }
}

static void extensions_have_a_budget_for_the_whole_body(void **state)
{
    (void)state;
    struct idem_chunks chunks = { 0 };
    size_t accepted = 0;
    size_t used = 0;
    while (idem_chunks_scan(&chunks, IDEM_STR("1;abcdefg\r\nx\r\n"), 1000, &used) ==
           IDEM_CHUNKS_MORE) {
        accepted += 1;
        assert_true(accepted < 1000);
    }
    assert_int_equal(accepted, IDEM_CHUNKS_EXTENSION_MAX / 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_do_not_depend_on_the_cut),
        cmocka_unit_test(extensions_have_a_budget_for_the_whole_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
