/*
 * The catalogue of problems, and the page that shows it.
 *
 * Goal: `new-key` is never advised unless nothing happened; codes are names that can stand in a
 * URI, each once; statuses are errors; docs/errors.md says exactly what the catalogue says.
 *
 * Method: the whole table is walked. The page is rendered from the table and compared with the
 * file; `test-core-problem --print > docs/errors.md` writes it.
 */
#include "core/problem.h"

#include "core/answer.h"
#include "lib/test.h"

static const char *page_path;

static const struct idem_problem_entry *entry_at(int problem)
{
    return idem_problem_entry((enum idem_problem)problem);
}

static void a_new_key_is_advised_only_when_nothing_happened(void **state)
{
    (void)state;
    for (int i = IDEM_PROBLEM_NONE + 1; i < IDEM_PROBLEM_COUNT; i++) {
        if (entry_at(i)->retry == IDEM_RETRY_NEW_KEY) {
            assert_int_equal(entry_at(i)->effect, IDEM_EFFECT_NONE);
        }
    }
}

static void what_was_not_looked_up_is_unknown(void **state)
{
    (void)state;
    for (int i = IDEM_PROBLEM_NONE + 1; i < IDEM_PROBLEM_COUNT; i++) {
        uint16_t status = entry_at(i)->status;
        bool looked_up_nothing = status == 401 || status == 403 || status == 408 || status == 413 ||
                                 status == 431 || (status == 503 && i != IDEM_PROBLEM_NOT_EXECUTED);
        if (looked_up_nothing) {
            assert_int_equal(entry_at(i)->effect, IDEM_EFFECT_UNKNOWN);
        }
        if (status == 400 && i != IDEM_PROBLEM_DIGEST_MISMATCH) { /* They can never have run. */
            assert_int_equal(entry_at(i)->effect, IDEM_EFFECT_NONE);
            assert_int_equal(entry_at(i)->retry, IDEM_RETRY_NEVER);
        }
    }
}

static void every_code_is_a_name_and_stands_once(void **state)
{
    (void)state;
    for (int i = IDEM_PROBLEM_NONE + 1; i < IDEM_PROBLEM_COUNT; i++) {
        const struct idem_problem_entry *entry = entry_at(i);
        assert_in_range(entry->status, 400, 503);
        assert_true(strlen(entry->title) > 0);
        assert_true(strlen(entry->code) > 0);
        assert_int_equal(strspn(entry->code, "abcdefghijklmnopqrstuvwxyz-"), strlen(entry->code));
        for (int j = IDEM_PROBLEM_NONE + 1; j < i; j++) {
            assert_string_not_equal(entry_at(j)->code, entry->code);
        }
    }
}

static const struct idem_problem_entry *entry_of(const char *code)
{
    for (int i = IDEM_PROBLEM_NONE + 1; i < IDEM_PROBLEM_COUNT; i++) {
        if (strcmp(entry_at(i)->code, code) == 0) {
            return entry_at(i);
        }
    }
    return NULL;
}

/* docs/design.md, section 6, the table of situations. */
static void the_contract_is_what_the_design_says(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        int status;
        const char *effect;
        const char *retry;
    } contract[] = {
        { "declined", 402, "none", "new-key" },
        { "key-missing", 400, "none", "never" },
        { "key-invalid", 400, "none", "never" },
        { "body-invalid", 400, "none", "never" },
        { "unauthenticated", 401, "unknown", "never" },
        { "forbidden", 403, "unknown", "never" },
        { "key-reused", 422, "unknown", "never" },
        { "order-exists", 409, "none", "query" },
        { "state-conflict", 409, "none", "query" },
        { "amount-exceeds", 422, "none", "new-key" },
        { "in-progress", 409, "unknown", "same-key" },
        { "abandoned", 409, "none", "new-key" },
        { "not-executed", 503, "none", "same-key" },
        { "outcome-unknown", 503, "unknown", "same-key" },
        { "too-large", 413, "unknown", "never" },
        { "too-slow", 408, "unknown", "same-key" },
        { "head-too-large", 431, "unknown", "never" },
        { "unavailable", 503, "unknown", "same-key" },
        { "key-unknown", 404, "unknown", "same-key" },
    };
    for (size_t row = 0; row < sizeof(contract) / sizeof(contract[0]); row++) {
        const struct idem_problem_entry *entry = entry_of(contract[row].code);
        assert_non_null(entry);
        assert_int_equal(entry->status, contract[row].status);
        assert_string_equal(idem_advice_effect_name(entry->effect), contract[row].effect);
        assert_string_equal(idem_advice_retry_name(entry->retry), contract[row].retry);
    }
}

static void an_effect_that_depends_is_filled_in_by_who_knows(void **state)
{
    (void)state;
    const struct idem_problem_details details = {
        .problem = IDEM_PROBLEM_ANSWER_EXPIRED,
        .effect = IDEM_EFFECT_DONE,
        .payment_id = { .bytes = { 1 } },
        .provider_code = IDEM_STR("do_not_honor"),
        .provider_message = IDEM_STR("no \"money\""),
    };
    char memory[1024];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    struct idem_answer answer = idem_answer_problem(&details, &buf);
    assert_int_equal(answer.status, 410);
    EXPECT_TEXT(answer.headers, "Content-Type: application/problem+json\n");
    EXPECT_TEXT(answer.body,
                "{\"type\":\"urn:idem:problem:answer-expired\","
                "\"title\":\"The stored answer has expired\",\"status\":410,"
                "\"effect\":\"done\",\"retry\":\"query\","
                "\"payment\":\"/v1/payments/01000000-0000-0000-0000-000000000000\","
                "\"provider_code\":\"do_not_honor\","
                "\"provider_message\":\"no \\\"money\\\"\"}\n");
}

static const char *what_to_do(enum idem_advice_retry retry)
{
    switch (retry) {
    case IDEM_RETRY_NEVER:
        return "Correct the request; sent again as it is, it will not succeed.";
    case IDEM_RETRY_SAME_KEY:
        return "Send the same request again, later, under the same key.";
    case IDEM_RETRY_NEW_KEY:
        return "This key is over. A new intent goes under a new key.";
    case IDEM_RETRY_QUERY:
        return "Look at the operation or the resource before anything is sent.";
    }
    abort();
}

static const char *effect_text(enum idem_advice_effect effect)
{
    return effect == IDEM_EFFECT_DEPENDS ? "none or done" : idem_advice_effect_name(effect);
}

static void page_print(struct idem_buf *page)
{
    idem_buf_add(
        page,
        IDEM_STR(
            "# Errors\n"
            "\n"
            "Everything a caller can be told instead of the result. Each comes as\n"
            "`application/problem+json` (RFC 9457); `type` is `urn:idem:problem:` and the code.\n"
            "`effect` says whether anything happened under this key (of most 400s and 415:\n"
            "with those bytes, which can never have run); `retry` says what to do. A code\n"
            "never changes its meaning.\n"
            "\n"
            "Made from `src/core/problem.def`; `test/unit/core/problem.c` fails when they differ.\n"
            "\n"
            "| code | status | effect | retry | meaning | what to do |\n"
            "|---|---|---|---|---|---|\n"));
    for (int i = IDEM_PROBLEM_NONE + 1; i < IDEM_PROBLEM_COUNT; i++) {
        const struct idem_problem_entry *entry = entry_at(i);
        idem_buf_printf(page, "| `%s` | %u | %s | %s | %s | %s |\n", entry->code, entry->status,
                        effect_text(entry->effect), idem_advice_retry_name(entry->retry),
                        entry->title, what_to_do(entry->retry));
    }
    assert_false(page->full);
}

static void the_page_says_what_the_catalogue_says(void **state)
{
    (void)state;
    static char expected_memory[32768];
    static char actual_memory[32768];
    struct idem_buf expected;
    idem_buf_init(&expected, expected_memory, sizeof(expected_memory) - 1);
    page_print(&expected);
    expected_memory[expected.len] = '\0';

    assert_non_null(page_path);
    FILE *file = fopen(page_path, "r");
    assert_non_null(file);
    struct idem_str actual = {
        .data = actual_memory,
        .len = fread(actual_memory, 1, sizeof(actual_memory), file),
    };
    assert_int_equal(fclose(file), 0);
    EXPECT_TEXT(actual, expected_memory);
}

static int print(void)
{
    static char memory[32768];
    struct idem_buf page;
    idem_buf_init(&page, memory, sizeof(memory));
    page_print(&page);
    return fwrite(page.data, 1, page.len, stdout) == page.len ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        return print();
    }
    page_path = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_key_is_advised_only_when_nothing_happened),
        cmocka_unit_test(what_was_not_looked_up_is_unknown),
        cmocka_unit_test(every_code_is_a_name_and_stands_once),
        cmocka_unit_test(the_contract_is_what_the_design_says),
        cmocka_unit_test(an_effect_that_depends_is_filled_in_by_who_knows),
        cmocka_unit_test(the_page_says_what_the_catalogue_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
