/*
 * Borrowed text and bounded buffers.
 *
 * Goal: nothing is read behind the end of a text, nothing is written behind the end of a buffer,
 * and a write that does not fit writes nothing.
 *
 * Method: tables; every append is tried on a buffer with exactly its room and on one a byte
 * shorter.
 */
#include "base/text.h"

#include "lib/test.h"

static void comparing_goes_by_bytes_and_then_by_length(void **state)
{
    (void)state;
    const struct {
        struct idem_str left;
        struct idem_str right;
        int order;
    } rows[] = {
        { IDEM_STR(""), IDEM_STR(""), 0 },          { { NULL, 0 }, IDEM_STR(""), 0 },
        { IDEM_STR(""), IDEM_STR("a"), -1 },        { IDEM_STR("a"), IDEM_STR("a"), 0 },
        { IDEM_STR("a"), IDEM_STR("b"), -1 },       { IDEM_STR("a"), IDEM_STR("ab"), -1 },
        { IDEM_STR("b"), IDEM_STR("ab"), 1 },       { IDEM_STR("a\0b"), IDEM_STR("a\0c"), -1 },
        { IDEM_STR("\x7F"), IDEM_STR("\x80"), -1 },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        int forth = idem_str_compare(rows[i].left, rows[i].right);
        int back = idem_str_compare(rows[i].right, rows[i].left);
        assert_int_equal((forth > 0) - (forth < 0), rows[i].order);
        assert_int_equal((back > 0) - (back < 0), -rows[i].order);
        assert_true(idem_str_equal(rows[i].left, rows[i].right) == (rows[i].order == 0));
    }
}

static void case_is_ignored_for_ascii_letters_only(void **state)
{
    (void)state;
    assert_true(idem_str_equal_nocase(IDEM_STR("Content-TYPE"), IDEM_STR("content-type")));
    assert_false(idem_str_equal_nocase(IDEM_STR("a"), IDEM_STR("ab")));
    assert_false(idem_str_equal_nocase(IDEM_STR("["), IDEM_STR("{")));
    assert_false(idem_str_equal_nocase(IDEM_STR("@"), IDEM_STR("`")));
    assert_false(idem_str_equal_nocase(IDEM_STR("\xC3\x89"), IDEM_STR("\xC3\xA9")));
}

static void a_null_pointer_is_empty_text(void **state)
{
    (void)state;
    assert_int_equal(idem_str_from(NULL).len, 0);
    assert_int_equal(idem_str_from("").len, 0);
    EXPECT_TEXT(idem_str_from("abc"), "abc");
}

static void slices_stay_inside(void **state)
{
    (void)state;
    static const struct {
        size_t from;
        size_t len;
        const char *slice;
    } rows[] = {
        { 0, 3, "abc" },       { 0, 0, "" },           { 1, 1, "b" }, { 1, 99, "bc" },
        { 1, SIZE_MAX, "bc" }, { 3, 1, "" },           { 99, 1, "" }, { SIZE_MAX, SIZE_MAX, "" },
        { 2, 1, "c" },         { 0, SIZE_MAX, "abc" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        EXPECT_TEXT(idem_str_slice(IDEM_STR("abc"), rows[i].from, rows[i].len), rows[i].slice);
    }
    assert_int_equal(idem_str_slice(idem_str_from(NULL), 0, 1).len, 0);
}

static void prefixes_bytes_and_blanks_are_found(void **state)
{
    (void)state;
    assert_true(idem_str_starts(IDEM_STR("abc"), IDEM_STR("")));
    assert_true(idem_str_starts(IDEM_STR("abc"), IDEM_STR("abc")));
    assert_false(idem_str_starts(IDEM_STR("abc"), IDEM_STR("abcd")));
    assert_false(idem_str_starts(IDEM_STR("abc"), IDEM_STR("b")));
    assert_int_equal(idem_str_find(IDEM_STR("abcb"), 'b'), 1);
    assert_int_equal(idem_str_find(IDEM_STR("abc"), 'x'), 3);
    assert_int_equal(idem_str_find(IDEM_STR(""), 'x'), 0);
    EXPECT_TEXT(idem_str_trim(IDEM_STR(" \t a b\t ")), "a b");
    EXPECT_TEXT(idem_str_trim(IDEM_STR(" \t ")), "");
    EXPECT_TEXT(idem_str_trim(IDEM_STR("\na\r")), "\na\r");
}

static void visible_is_what_stands_between_blank_and_delete(void **state)
{
    (void)state;
    for (int byte = 0; byte <= 255; byte++) {
        const char text[] = { '!', (char)byte, '~' };
        const struct idem_str around = { .data = text, .len = sizeof(text) };
        assert_int_equal(idem_str_is_visible(around), byte >= 0x21 && byte <= 0x7E);
    }
    assert_true(idem_str_is_visible(IDEM_STR("")));
}

static void splitting_gives_every_part(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *parts; /* Each in brackets. */
    } rows[] = {
        { "a,b", "[a][b]" },    { "a", "[a]" }, { ",a", "[][a]" },
        { "a,,b", "[a][][b]" }, { "", "[]" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_str rest = idem_str_from(rows[i].text);
        struct idem_buf buf;
        char memory[32];
        idem_buf_init(&buf, memory, sizeof(memory));
        do {
            struct idem_str part = idem_str_next(&rest, ',');
            idem_buf_add_char(&buf, '[');
            idem_buf_add(&buf, part);
            idem_buf_add_char(&buf, ']');
        } while (rest.data != NULL);
        EXPECT_TEXT(idem_buf_str(&buf), rows[i].parts);
    }
}

static void decimal_text_is_read_exactly_or_not_at_all(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
        int64_t value;
    } rows[] = {
        { "0", true, 0 },
        { "007", true, 7 },
        { "9223372036854775807", true, INT64_MAX },
        { "9223372036854775808", false, 0 },
        { "99999999999999999999", false, 0 },
        { "", false, 0 },
        { "-1", false, 0 },
        { "+1", false, 0 },
        { " 1", false, 0 },
        { "1 ", false, 0 },
        { "1a", false, 0 },
        { "1.0", false, 0 },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        int64_t value = -7;
        assert_true(idem_str_to_i64(idem_str_from(rows[i].text), &value) == rows[i].valid);
        assert_int_equal(value, rows[i].valid ? rows[i].value : -7);
    }
}

static void append_text(struct idem_buf *buf)
{
    idem_buf_add(buf, IDEM_STR("abc"));
}

static void append_bytes(struct idem_buf *buf)
{
    idem_buf_add_bytes(buf, "xy", 2);
}

static void append_character(struct idem_buf *buf)
{
    idem_buf_add_char(buf, 'z');
}

static void append_smallest(struct idem_buf *buf)
{
    idem_buf_add_i64(buf, INT64_MIN);
}

static void append_largest(struct idem_buf *buf)
{
    idem_buf_add_i64(buf, INT64_MAX);
}

static void append_zero(struct idem_buf *buf)
{
    idem_buf_add_i64(buf, 0);
}

static void append_nothing(struct idem_buf *buf)
{
    idem_buf_add(buf, idem_str_from(NULL));
}

static const struct {
    void (*append)(struct idem_buf *buf);
    const char *text;
} appends[] = {
    { append_text, "abc" },
    { append_bytes, "xy" },
    { append_character, "z" },
    { append_smallest, "-9223372036854775808" },
    { append_largest, "9223372036854775807" },
    { append_zero, "0" },
    { append_nothing, "" },
};

static void appends_write_all_or_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(appends); i++) {
        size_t len = strlen(appends[i].text);
        char memory[32] = "________________________";
        struct idem_buf buf;
        idem_buf_init(&buf, memory, len);
        appends[i].append(&buf);
        assert_false(buf.full);
        EXPECT_TEXT(idem_buf_str(&buf), appends[i].text);
        assert_int_equal(memory[len], '_');
        if (len == 0) {
            continue;
        }
        memset(memory, '_', sizeof(memory));
        idem_buf_init(&buf, memory, len - 1);
        appends[i].append(&buf);
        assert_true(buf.full);
        assert_int_equal(buf.len, 0);
        assert_int_equal(memory[0], '_');
    }
}

static void hexadecimal_is_lower_case(void **state)
{
    (void)state;
    static const uint8_t data[] = { 0x00, 0x1F, 0xA0, 0xFF };
    char memory[8];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add_hex(&buf, data, sizeof(data));
    EXPECT_TEXT(idem_buf_str(&buf), "001fa0ff");
}

static void full_stays_until_reset(void **state)
{
    (void)state;
    char memory[4];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add(&buf, IDEM_STR("ab"));
    idem_buf_add(&buf, IDEM_STR("cde"));
    idem_buf_add(&buf, IDEM_STR("c"));
    assert_true(buf.full);
    EXPECT_TEXT(idem_buf_str(&buf), "ab");
    idem_buf_reset(&buf);
    idem_buf_add(&buf, IDEM_STR("abcd"));
    assert_false(buf.full);
    EXPECT_TEXT(idem_buf_str(&buf), "abcd");
}

static void printing_needs_room_for_a_terminator(void **state)
{
    (void)state;
    char memory[5];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_printf(&buf, "%d-%s", 12, "x");
    EXPECT_TEXT(idem_buf_str(&buf), "12-x");
    idem_buf_printf(&buf, "%s", "");
    assert_false(buf.full);
    idem_buf_printf(&buf, "%s", "y");
    assert_true(buf.full);
    EXPECT_TEXT(idem_buf_str(&buf), "12-x");
}

static void kept_text_is_a_copy_in_the_buffer(void **state)
{
    (void)state;
    char memory[5];
    char source[] = "abc";
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    struct idem_str kept = idem_buf_keep(&buf, idem_str_from(source));
    source[0] = 'x';
    EXPECT_TEXT(kept, "abc");
    assert_ptr_equal(kept.data, memory);
    assert_int_equal(idem_buf_keep(&buf, IDEM_STR("def")).len, 0);
    assert_true(buf.full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing_goes_by_bytes_and_then_by_length),
        cmocka_unit_test(case_is_ignored_for_ascii_letters_only),
        cmocka_unit_test(a_null_pointer_is_empty_text),
        cmocka_unit_test(slices_stay_inside),
        cmocka_unit_test(prefixes_bytes_and_blanks_are_found),
        cmocka_unit_test(visible_is_what_stands_between_blank_and_delete),
        cmocka_unit_test(splitting_gives_every_part),
        cmocka_unit_test(decimal_text_is_read_exactly_or_not_at_all),
        cmocka_unit_test(appends_write_all_or_nothing),
        cmocka_unit_test(hexadecimal_is_lower_case),
        cmocka_unit_test(full_stays_until_reset),
        cmocka_unit_test(printing_needs_room_for_a_terminator),
        cmocka_unit_test(kept_text_is_a_copy_in_the_buffer),
    };
    return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
