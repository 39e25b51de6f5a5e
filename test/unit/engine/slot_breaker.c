/*
 * The breaker in the engine, and those whose provider is not known before the facts are read.
 *
 * Goal: while a breaker is open nothing new goes to its provider and everything else goes on: what
 * brings certainty, other providers, and captures and refunds of theirs, which wait for one commit
 * at most.
 *
 * Method: as in slot.c.
 */
#include "unit/engine/slot_scene.h"

static struct idem_request good;
static struct idem_request other;

/* Three sends that fall silent open it; a fourth payment waits. */
static void breaker_open(void)
{
    breaker_set();
    harness.outcome = IDEM_OUTCOME_UNKNOWN;
    harness_start();
    pay_bad(0, 3);
    assert_int_equal(bad_stats().breaker, IDEM_BREAKER_OPEN);
    assert_int_equal(bad_stats().openings, 1);
    pay_bad(3, 4);
    assert_int_equal(harness.sends, 3);
    assert_int_equal(bad_stats().waiting, 1);
}

static void questions_go_on_while_the_breaker_is_open(void **state)
{
    (void)state;
    breaker_open();
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    (void)harness_recover();
    assert_int_equal(harness.queries, 3);
    expect_replies(0, 3, "answer 201");
    EXPECT_REPLY(requests[3], "pending");
    assert_int_equal(harness.sends, 3);
    assert_int_equal(bad_stats().breaker, IDEM_BREAKER_OPEN);
    harness_submit(pay(&good, "good", "good"));
    EXPECT_REPLY(good, "answer 201");
    run_out();
}

static void second_sends_go_on_while_the_breaker_is_open(void **state)
{
    (void)state;
    for (unsigned kind = IDEM_EFFECT_KIND_CHARGE; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        entries[0].capability[kind].dedup_window_us = 3600 * SECOND;
    }
    breaker_open();
    harness.outcome = IDEM_OUTCOME_NOT_FOUND; /* So it is sent again under its id. */
    (void)harness_recover();
    assert_int_equal(harness.queries, 3);
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    (void)harness_recover();
    expect_replies(0, 3, "answer 201");
    assert_int_equal(harness.sends, 6);
    assert_int_equal(bad_stats().breaker, IDEM_BREAKER_OPEN);
    assert_int_equal(harness_sent(requests[3].outcome.intent.effect.id), 0);
    run_out();
}

static void half_open_lets_one_through_and_its_answer_lets_the_rest(void **state)
{
    (void)state;
    breaker_open();
    pay_bad(4, 6);
    harness.hold = true;
    assert_true(idem_engine_wake_us(harness.engine) <= harness.mono_us + 30 * SECOND);
    harness_pass(30 * SECOND);
    assert_int_equal(bad_stats().breaker, IDEM_BREAKER_HALF_OPEN);
    assert_int_equal(harness.sends, 4);
    assert_int_equal(bad_stats().waiting, 2);
    harness.hold = false;
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    harness_answer(IDEM_OUTCOME_SUCCESS);
    assert_int_equal(bad_stats().breaker, IDEM_BREAKER_CLOSED);
    assert_int_equal(harness.sends, 6);
    run_out();
}

static void half_open_silence_opens_it_again(void **state)
{
    (void)state;
    breaker_open();
    pay_bad(4, 6);
    harness_pass(30 * SECOND);
    assert_int_equal(harness.sends, 4);
    assert_int_equal(bad_stats().breaker, IDEM_BREAKER_OPEN);
    assert_int_equal(bad_stats().openings, 2);
    assert_int_equal(bad_stats().waiting, 2);
    run_out();
}

/* ---- where the entry is not known before the facts ---- */

static const char *const tails[] = {
    "ssssssssssssssssssssssssss",
    "tttttttttttttttttttttttttt",
    "vvvvvvvvvvvvvvvvvvvvvvvvvv",
};

static struct idem_request *refund(struct idem_request *request,
                                   const struct idem_request *paid,
                                   const char *tail)
{
    harness_pay(request, tail);
    struct idem_command *command = &request->item.command;
    struct idem_accept *accept = &command->accept;
    char id[IDEM_EFFECT_ID_LEN] = { 'r' };
    memcpy(id + 1, tail, sizeof(id) - 1);
    assert_true(
        idem_effect_id_scope((struct idem_str){ .data = id, .len = sizeof(id) }, &command->scope));
    accept->effect_id_tail = idem_str_from(tail);
    accept->amount_text = IDEM_STR("10.00");
    accept->endpoint = IDEM_ENDPOINT_REFUNDS_CREATE;
    accept->entry = (struct idem_str){ .len = 0 };
    accept->order_no = accept->entry;
    accept->payment_id = paid->outcome.intent.payment_id;
    return request;
}

static void a_refund_elsewhere_does_not_wait_for_a_provider_that_hangs(void **state)
{
    (void)state;
    bad_limits->sends_max = 1;
    harness_start();
    harness_submit(pay(&good, "good", "good"));
    EXPECT_REPLY(good, "answer 201");
    harness.hangs = IDEM_STR("bad");
    pay_bad(0, 3);
    harness_submit(refund(&other, &good, tails[0]));
    (void)harness_recover();
    EXPECT_REPLY(other, "answer 201");
    assert_int_equal(harness.sends, 3);
    run_out();
}

static uint64_t good_deferred(void)
{
    return idem_engine_budget_stats(harness.engine, 1).deferred;
}

/* A commit of its own for the claim is all that it costs; without traffic not even that. */
static void a_refund_elsewhere_does_not_wait_for_a_breaker(void **state)
{
    (void)state;
    breaker_set();
    harness_start();
    harness_submit(pay(&good, "good", "good"));
    harness.outcome = IDEM_OUTCOME_UNKNOWN;
    pay_bad(0, 3);
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    assert_int_equal(bad_stats().breaker, IDEM_BREAKER_OPEN);
    harness_submit(refund(&other, &good, tails[0]));
    EXPECT_REPLY(other, "answer 201");
    assert_int_equal(good_deferred(), 1);

    harness_pass(30 * SECOND);
    harness_submit(refund(&other, &good, tails[1]));
    EXPECT_REPLY(other, "answer 201");
    assert_int_equal(good_deferred(), 2);
    assert_int_equal(bad_stats().breaker, IDEM_BREAKER_HALF_OPEN);

    harness_pass(60 * SECOND);
    harness_submit(refund(&other, &good, tails[2]));
    EXPECT_REPLY(other, "answer 201");
    assert_int_equal(good_deferred(), 2);
    assert_int_equal(bad_stats().breaker, IDEM_BREAKER_CLOSED);
    run_out();
}

static void a_refund_waits_for_its_own_provider(void **state)
{
    (void)state;
    bad_limits->sends_max = 1;
    harness_start();
    pay_bad(0, 1);
    harness.hangs = IDEM_STR("bad");
    pay_bad(1, 2);
    harness_submit(refund(&other, &requests[0], tails[0]));
    assert_int_equal(bad_stats().waiting, 1);
    EXPECT_REPLY(other, "pending");
    harness_answer(IDEM_OUTCOME_SUCCESS);
    assert_int_equal(harness.sends, 3);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(other, "answer 201");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SLOT_TEST(questions_go_on_while_the_breaker_is_open),
        SLOT_TEST(second_sends_go_on_while_the_breaker_is_open),
        SLOT_TEST(half_open_lets_one_through_and_its_answer_lets_the_rest),
        SLOT_TEST(half_open_silence_opens_it_again),
        SLOT_TEST(a_refund_elsewhere_does_not_wait_for_a_provider_that_hangs),
        SLOT_TEST(a_refund_elsewhere_does_not_wait_for_a_breaker),
        SLOT_TEST(a_refund_waits_for_its_own_provider),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
