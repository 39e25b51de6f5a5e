/*
 * The Idempotency-Key header.
 *
 * Goal: the quoted and the bare way of writing one key give the same key, no two keys ever become
 * one, and everything else is refused with the code that the wire table has for it.
 *
 * Method: a table of header fields as they arrive, and what is read; then lengths, every byte
 * value, and printing against reading.
 */
#include "api/key.h"

#include "core/limits.h"
#include "request.h"

static char memory[1024];

/* The key, or the problem's code. */
static struct idem_str key_of(const char *fields)
{
    struct idem_net_request request = request_make("POST /", fields);
    struct idem_buf buf;
    struct idem_str key = { 0 };
    struct idem_fault fault = { 0 };
    idem_buf_init(&buf, memory, sizeof(memory));
    if (idem_key_read(&request, &buf, &key, &fault)) {
        return key;
    }
    assert_true(fault.len > 0);
    return idem_str_from(idem_problem_entry(fault.problem)->code);
}

static void every_form_of_the_header(void **state)
{
    static const struct {
        const char *fields;
        const char *expected;
    } rows[] = {
        { "Idempotency-Key: abc", "abc" },
        { "idempotency-KEY: abc", "abc" },
        { "Idempotency-Key: \"abc\"", "abc" },
        { "Idempotency-Key: \"a\\\"b\"", "a\"b" },
        { "Idempotency-Key: \"a\\\\b\"", "a\\b" },
        { "Idempotency-Key: \"abc\";p=1", "abc" },
        { "Idempotency-Key: \"abc\"; p=1;q;r=\"x;y\\\"\"", "abc" },
        { "Idempotency-Key: \"abc\";p=:YWJj:;*q=?1", "abc" },
        { "Idempotency-Key: \"abc;p=1\"", "abc;p=1" },
        { "Idempotency-Key: \"abc, def\"", "key-invalid" },
        { "Idempotency-Key: \"abc,def\"", "abc,def" },
        { "Idempotency-Key: ABC", "ABC" },
        { "Idempotency-Key: order:17/3", "order:17/3" },
        { "Idempotency-Key: 8e03978e-40d5-43dd-bc93-6894a57f9324",
          "8e03978e-40d5-43dd-bc93-6894a57f9324" },
        { "Idempotency-Key: ../", "../" },
        { "Idempotency-Key: \":YWJj:\"", ":YWJj:" },
        { "", "key-missing" },
        { "Idempotency-Ke: abc", "key-missing" },
        { "Idempotency-Key: ", "key-invalid" },
        { "Idempotency-Key: \"\"", "key-invalid" },
        { "Idempotency-Key: \"abc\", \"def\"", "key-invalid" },
        { "Idempotency-Key: abc, def", "key-invalid" },
        { "Idempotency-Key: abc,def", "key-invalid" },
        { "Idempotency-Key: abc\nIdempotency-Key: def", "key-invalid" },
        { "Idempotency-Key: abc\nIdempotency-Key: abc", "key-invalid" },
        { "Idempotency-Key: :YWJj:", "key-invalid" },
        { "Idempotency-Key: ?1", "key-invalid" },
        { "Idempotency-Key: @1659578233", "key-invalid" },
        { "Idempotency-Key: (abc)", "key-invalid" },
        { "Idempotency-Key: %00", "key-invalid" },
        { "Idempotency-Key: abc;p=1", "key-invalid" },
        { "Idempotency-Key: a\"b", "key-invalid" },
        { "Idempotency-Key: a\\b", "key-invalid" },
        { "Idempotency-Key: '; --", "key-invalid" },
        { "Idempotency-Key: \"abc", "key-invalid" },
        { "Idempotency-Key: \"abc\\", "key-invalid" },
        { "Idempotency-Key: \"abc\\\"", "key-invalid" },
        { "Idempotency-Key: \"a\\bc\"", "key-invalid" },
        { "Idempotency-Key: \"abc\"def", "key-invalid" },
        { "Idempotency-Key: \"abc\" ;p", "key-invalid" },
        { "Idempotency-Key: \"abc\";", "key-invalid" },
        { "Idempotency-Key: \"abc\";p=", "key-invalid" },
        { "Idempotency-Key: \"abc\";p=1, \"def\"", "key-invalid" },
        { "Idempotency-Key: \"abc\";p=\"x", "key-invalid" },
        { "Idempotency-Key: \"a c\"", "key-invalid" },
        { "Idempotency-Key: sch\xC3\xB6n", "key-invalid" },
        { "Idempotency-Key: \"sch\xC3\xB6n\"", "key-invalid" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].fields);
        EXPECT_TEXT(key_of(rows[i].fields), rows[i].expected);
    }
}

static struct idem_str key_of_length(size_t len, bool quoted)
{
    static char fields[1024];
    struct idem_buf buf;
    idem_buf_init(&buf, fields, sizeof(fields) - 1);
    idem_buf_add(&buf, quoted ? IDEM_STR("Idempotency-Key: \"") : IDEM_STR("Idempotency-Key: "));
    for (size_t i = 0; i < len; i++) {
        idem_buf_add_char(&buf, 'k');
    }
    idem_buf_add(&buf, quoted ? IDEM_STR("\"") : IDEM_STR(""));
    fields[buf.len] = '\0';
    return key_of(fields);
}

static void a_key_has_1_to_255_bytes_and_is_never_cut(void **state)
{
    (void)state;
    for (int quoted = 0; quoted < 2; quoted++) {
        assert_int_equal(key_of_length(1, quoted != 0).len, 1);
        assert_int_equal(key_of_length(IDEM_KEY_MAX, quoted != 0).len, IDEM_KEY_MAX);
        EXPECT_TEXT(key_of_length(IDEM_KEY_MAX + 1, quoted != 0), "key-invalid");
        EXPECT_TEXT(key_of_length(900, quoted != 0), "key-invalid");
    }
}

/* Every byte is either in the key as it is, both ways, or refused. */
static void every_byte_stands_for_itself_or_is_refused(void **state)
{
    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        if (byte == '\n') {
            continue; /* Ends the field in this test's notation. */
        }
        char fields[] = "Idempotency-Key: a?b";
        fields[sizeof(fields) - 3] = (char)byte;
        struct idem_str bare = key_of(fields);
        bool visible = byte >= 0x21 && byte <= 0x7E;
        bool separator = strchr("\",;\\", byte) != NULL;
        if (visible && !separator) {
            assert_int_equal(bare.len, 3);
            assert_int_equal((unsigned char)bare.data[1], byte);
        } else {
            EXPECT_TEXT(bare, "key-invalid");
        }
    }
}

static void what_is_echoed_reads_back_as_the_same_key(void **state)
{
    static const char *const keys[] = { "abc", "a\"b", "a\\b", "\"", "\\\\", ":YWJj:", "a;b,c" };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(keys); i++) {
        char fields[64];
        struct idem_buf buf;
        idem_buf_init(&buf, fields, sizeof(fields) - 1);
        idem_buf_add(&buf, IDEM_STR("Idempotency-Key: "));
        idem_key_print(idem_str_from(keys[i]), &buf);
        fields[buf.len] = '\0';
        EXPECT_TEXT(key_of(fields), keys[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_the_header),
        cmocka_unit_test(a_key_has_1_to_255_bytes_and_is_never_cut),
        cmocka_unit_test(every_byte_stands_for_itself_or_is_refused),
        cmocka_unit_test(what_is_echoed_reads_back_as_the_same_key),
    };
    return cmocka_run_group_tests_name("api/key", tests, NULL, NULL);
}
