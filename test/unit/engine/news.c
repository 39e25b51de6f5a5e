/*
 * News: what a log is told about intents.
 *
 * Goal: each end, each beginning of not knowing and each case is told once, when it is durable, and
 * a replay is no news; what nobody takes in time is counted and never in anybody's way.
 *
 * Method: the engine of harness.h; news are taken after each step.
 */
#include "unit/engine/harness.h"

static struct idem_request first;
static struct idem_request second;

static int begin(void **state)
{
    (void)state;
    harness_begin();
    harness.options.news_max = 2;
    return 0;
}

static int end(void **state)
{
    (void)state;
    harness_end();
    return 0;
}

/* The only news there is; kind NONE: there is none. */
static struct idem_news only(void)
{
    struct idem_news news[4] = { { .kind = IDEM_NEWS_NONE } };
    uint64_t lost = 0;
    size_t count = idem_engine_take_news(harness.engine, news, 4, &lost);
    assert_true(count <= 1);
    assert_int_equal(lost, 0);
    return news[0];
}

static void an_end_is_told_once_and_a_replay_is_no_news(void **state)
{
    (void)state;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    EXPECT_REPLY(first, "answer 201");
    struct idem_news news = only();
    assert_int_equal(news.kind, IDEM_NEWS_ENDED);
    assert_int_equal(news.state, IDEM_INTENT_SUCCEEDED);
    assert_int_equal(news.endpoint, IDEM_ENDPOINT_PAYMENTS_CREATE);
    assert_true(idem_uid_equal(news.id, first.outcome.intent.id));
    assert_int_equal(news.unknown_us, 0);
    assert_string_equal(news.entry, "sandbox");
    harness_submit(harness_pay(&second, "k"));
    EXPECT_REPLY(second, "answer 201 replayed");
    assert_int_equal(only().kind, IDEM_NEWS_NONE);
}

static void not_knowing_is_told_when_it_begins_and_when_it_ends(void **state)
{
    (void)state;
    harness.outcome = IDEM_OUTCOME_UNKNOWN;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    struct idem_news news = only();
    assert_int_equal(news.kind, IDEM_NEWS_UNKNOWN);
    assert_int_equal(news.state, IDEM_INTENT_UNKNOWN);
    harness_pass(5 * SECOND);
    (void)harness_recover();
    assert_int_equal(only().kind, IDEM_NEWS_NONE); /* It still is. */
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    for (int i = 0; i < 20 && !harness_done(&first); i++) {
        harness_pass(60 * SECOND);
        (void)harness_recover();
    }
    news = only();
    assert_int_equal(news.kind, IDEM_NEWS_ENDED);
    assert_true(news.unknown_us > 0);
}

static void what_is_not_taken_is_counted(void **state)
{
    (void)state;
    static const char *const keys[] = { "a", "b", "c", "d", "e" };
    static struct idem_request requests[5];
    harness_start();
    for (size_t i = 0; i < 5; i++) {
        harness_submit(harness_pay(&requests[i], keys[i]));
        EXPECT_REPLY(requests[i], "answer 201");
    }
    struct idem_news news[4];
    uint64_t lost = 0;
    assert_int_equal(idem_engine_take_news(harness.engine, news, 4, &lost), 2);
    assert_int_equal(lost, 3);
    assert_true(idem_uid_equal(news[0].id, requests[0].outcome.intent.id));
    assert_int_equal(idem_engine_take_news(harness.engine, news, 4, &lost), 0);
    assert_int_equal(lost, 0);
}

static void nobody_need_want_any(void **state)
{
    (void)state;
    harness.options.news_max = 0;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    EXPECT_REPLY(first, "answer 201");
    assert_int_equal(only().kind, IDEM_NEWS_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_is_told_once_and_a_replay_is_no_news, begin, end),
        cmocka_unit_test_setup_teardown(not_knowing_is_told_when_it_begins_and_when_it_ends, begin,
                                        end),
        cmocka_unit_test_setup_teardown(what_is_not_taken_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(nobody_need_want_any, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
