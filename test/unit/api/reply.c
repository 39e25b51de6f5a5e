/*
 * Answers as they are written.
 *
 * Goal: every problem of the catalogue is a whole problem+json document with its advice in words; a
 * stored answer leaves byte for byte; and what does not fit never leaves by half.
 *
 * Method: the catalogue is walked and each document is read back with the project's own strict
 * reader; the rest by example.
 */
#include "api/reply.h"

#include "api/advice.h"
#include "base/json.h"
#include "lib/test.h"

static struct idem_reply reply;

static struct idem_str member(const struct idem_json *json, const char *name)
{
    size_t index = idem_json_member(json, 0, idem_str_from(name));
    assert_true(index > 0);
    return json->tokens[index].raw;
}

static void every_problem_is_a_whole_document(void **state)
{
    (void)state;
    for (enum idem_problem problem = IDEM_PROBLEM_NONE + 1; problem < IDEM_PROBLEM_COUNT;
         problem++) {
        const struct idem_problem_entry *entry = idem_problem_entry(problem);
        print_message("# %s\n", entry->code);
        const struct idem_problem_details details = { .problem = problem };
        idem_reply_problem(&reply, &details, IDEM_STR("Something particular."));
        struct idem_net_reply made = idem_reply_end(&reply);

        assert_int_equal(made.status, entry->status);
        EXPECT_TEXT(made.headers,
                    "Cache-Control: no-store\r\n"
                    "Content-Type: application/problem+json\r\n");
        struct idem_json_token tokens[64];
        struct idem_json json;
        struct idem_json_fault fault;
        idem_json_init(&json, tokens, IDEM_ARRAY_COUNT(tokens));
        assert_true(idem_json_parse(&json, made.body, &fault));

        char type[64];
        (void)snprintf(type, sizeof(type), "urn:idem:problem:%s", entry->code);
        EXPECT_TEXT(member(&json, "type"), type);
        EXPECT_TEXT(member(&json, "title"), entry->title);
        EXPECT_TEXT(member(&json, "retry"), idem_advice_retry_name(entry->retry));
        if (entry->effect != IDEM_EFFECT_DEPENDS) {
            EXPECT_TEXT(member(&json, "effect"), idem_advice_effect_name(entry->effect));
        }
        char detail[1024];
        struct idem_str advice = idem_advice_text(problem);
        assert_true(advice.len > 20);
        (void)snprintf(detail, sizeof(detail), "Something particular. %.*s", (int)advice.len,
                       advice.data);
        EXPECT_TEXT(member(&json, "detail"), detail);
    }
}

/* `retry` and the words may not contradict each other on the one point that costs money. */
static void a_new_key_is_advised_only_where_nothing_moved(void **state)
{
    (void)state;
    for (enum idem_problem problem = IDEM_PROBLEM_NONE + 1; problem < IDEM_PROBLEM_COUNT;
         problem++) {
        const struct idem_problem_entry *entry = idem_problem_entry(problem);
        char advice[512];
        (void)snprintf(advice, sizeof(advice), "%.*s", (int)idem_advice_text(problem).len,
                       idem_advice_text(problem).data);
        print_message("# %s\n", entry->code);
        if (entry->retry == IDEM_RETRY_NEW_KEY) {
            assert_int_equal(entry->effect, IDEM_EFFECT_NONE);
            assert_non_null(strstr(advice, "new key"));
            assert_non_null(strstr(advice, "No money moved"));
        }
        if (entry->retry == IDEM_RETRY_SAME_KEY && entry->effect == IDEM_EFFECT_UNKNOWN) {
            assert_null(strstr(advice, "o money moved"));
        }
    }
}

static void a_stored_answer_leaves_byte_for_byte(void **state)
{
    (void)state;
    const struct idem_answer answer = {
        .status = 201,
        .headers = IDEM_STR("Content-Type: application/json\nLocation: /v1/payments/1\n"),
        .body = IDEM_STR("{ \"as\":\"it was\" }\n"),
    };
    idem_reply_answer(&reply, &answer);
    struct idem_net_reply made = idem_reply_end(&reply);
    assert_int_equal(made.status, 201);
    EXPECT_TEXT(made.headers,
                "Cache-Control: no-store\r\nContent-Type: application/json\r\n"
                "Location: /v1/payments/1\r\n");
    EXPECT_TEXT(made.body, "{ \"as\":\"it was\" }\n");
}

static void waiting_is_said_in_whole_seconds_and_never_zero(void **state)
{
    static const struct {
        int64_t us;
        const char *expected;
    } rows[] = {
        { 0, "1" },       { 1, "1" },       { 1000000, "1" },
        { 1000001, "2" }, { 2500000, "3" }, { 3600000000, "3600" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        char expected[128];
        idem_reply_begin(&reply, 503);
        idem_reply_retry_after(&reply, rows[i].us);
        (void)snprintf(expected, sizeof(expected), "Cache-Control: no-store\r\nRetry-After: %s\r\n",
                       rows[i].expected);
        EXPECT_TEXT(idem_reply_end(&reply).headers, expected);
    }
}

static void half_an_answer_never_leaves(void **state)
{
    (void)state;
    idem_reply_begin(&reply, 200);
    for (size_t i = 0; i <= IDEM_REPLY_BODY_MAX; i++) {
        idem_buf_add_char(&reply.body, 'x');
    }
    struct idem_net_reply made = idem_reply_end(&reply);
    assert_int_equal(made.status, 500);
    assert_true(idem_str_starts(made.body, IDEM_STR("{\"type\":\"urn:idem:problem:internal\"")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_problem_is_a_whole_document),
        cmocka_unit_test(a_new_key_is_advised_only_where_nothing_moved),
        cmocka_unit_test(a_stored_answer_leaves_byte_for_byte),
        cmocka_unit_test(waiting_is_said_in_whole_seconds_and_never_zero),
        cmocka_unit_test(half_an_answer_never_leaves),
    };
    return cmocka_run_group_tests_name("api/reply", tests, NULL, NULL);
}
