/*
 * The worker that delivers.
 *
 * Goal: every message reaches every webhook that wants it at least once, in order per payment, and
 * is posted only when that is durable; it is tried again on schedule and not for ever; a receiver
 * that hangs, a store that refuses and a worker that dies delay what is theirs and lose nothing.
 *
 * Method: the real engine and a memory store under scene.h; merchants answer as the test says.
 */
#include "outbox/outbox.h"

#include "base/attr.h"
#include "outbox/schedule.h"
#include "store/rows.h"
#include "unit/outbox/scene.h"

static const struct idem_outbox_stats *stats(void)
{
    static struct idem_outbox_stats now;
    now = idem_outbox_stats(scene.outbox);
    return &now;
}

static void expect_state(size_t webhook, size_t message, enum idem_delivery_state state)
{
    struct idem_delivery delivery = scene_delivery(webhook, message);
    if (delivery.state != state) {
        print_error("message %d to webhook %d is %s, not %s\n", (int)message, (int)webhook,
                    idem_delivery_state_name(delivery.state), idem_delivery_state_name(state));
        fail();
    }
}

static void pass_seconds(int count)
{
    for (int second = 0; second < count; second++) {
        scene_pass(SECOND);
    }
}

/* The store takes none of the next batches; more than there can be in a second. */
static void refuse_batches(void)
{
    while (harness.fate_count < IDEM_ARRAY_COUNT(harness.fates)) {
        harness_fate(BATCH_NOTHING);
    }
}

/* ---- delivery ---- */

static void what_is_told_is_posted_and_recorded(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene_start();
    scene_pay("k");
    scene_pass(SECOND);
    assert_int_equal(scene.posted_count, 2);
    assert_int_equal(scene.posted[0].type, IDEM_MESSAGE_PAYMENT_CAPTURED);
    assert_int_equal(scene.posted[1].type, IDEM_MESSAGE_OPERATION_SUCCEEDED);
    for (size_t i = 0; i < 2; i++) {
        struct idem_delivery delivery = scene_delivery(hook, i);
        assert_int_equal(delivery.state, IDEM_DELIVERY_DELIVERED);
        assert_int_equal(delivery.attempts, 1);
        assert_int_equal(delivery.last_status, 200);
        assert_int_equal(delivery.due_us, 0);
        assert_true(delivery.finished_us > 0);
    }
    assert_int_equal(stats()->delivered, 2);
    scene_pass(10 * DAY);
    assert_int_equal(scene.posted_count, 2);
    assert_int_equal(stats()->in_hand, 0);
}

static void every_webhook_gets_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < SCENE_WEBHOOKS; i++) {
        (void)scene_add_webhook();
    }
    scene_start();
    scene_pay("k");
    scene_pass(SECOND);
    for (size_t i = 0; i < SCENE_WEBHOOKS; i++) {
        assert_int_equal(scene_times(i, 0), 1);
        assert_int_equal(scene_times(i, 1), 1);
    }
}

static void it_looks_at_once_for_what_this_process_wrote_and_in_a_second_for_the_rest(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene_start();
    scene_go_on();
    assert_int_equal(idem_outbox_wake_us(scene.outbox), harness.mono_us + SECOND);
    scene_test(hook);
    scene_go_on();
    assert_int_equal(scene.posted_count, 1);
    scene_test(hook);
    assert_true(idem_engine_take_post_hint(harness.engine)); /* As if another had written it. */
    scene_go_on();
    assert_int_equal(scene.posted_count, 1);
    scene_pass(SECOND);
    assert_int_equal(scene.posted_count, 2);
}

static void what_is_written_during_a_look_is_looked_for_after_it(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene_start();
    harness.reads_held = true;
    idem_outbox_step(scene.outbox);
    idem_engine_step(harness.engine);
    scene_test(hook);
    idem_outbox_step(scene.outbox);
    harness.reads_held = false;
    scene_go_on();
    assert_int_equal(scene.posted_count, 1);
}

/* ---- durable first ---- */

static void nothing_is_posted_before_it_is_durable_that_it_was_taken(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene_test(hook);
    scene_start();
    idem_outbox_step(scene.outbox); /* It looks, ... */
    idem_engine_step(harness.engine);
    idem_outbox_step(scene.outbox); /* ... and takes. */
    harness.batches_held = true;
    scene_go_on();
    assert_int_equal(scene.posted_count, 0);
    assert_int_equal(stats()->in_hand, 1);
    harness.batches_held = false;
    scene_go_on();
    assert_int_equal(scene.posted_count, 1);
    expect_state(hook, 0, IDEM_DELIVERY_DELIVERED);
}

static const enum batch_fate fates[] = {
    BATCH_UNKNOWN_DONE, BATCH_UNKNOWN_LOST, BATCH_NOTHING, BATCH_DOWN, BATCH_CONFLICT,
};

/* Whatever becomes of the first of its commands, it is posted once. */
static void a_take_that_the_store_fails_is_posted_once_all_the_same(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene_start();
    scene_go_on();
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fates); i++) {
        scene_test(hook);
        harness_fate(fates[i]);
        scene_go_on();
        assert_int_equal(harness.fate_count, 0);
        pass_seconds(10);
        assert_int_equal(scene_times(hook, i), 1);
        expect_state(hook, i, IDEM_DELIVERY_DELIVERED);
        assert_int_equal(scene_delivery(hook, i).attempts, 1);
    }
}

static void an_end_that_the_store_fails_is_told_again(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene.merchants[hook].holds = true;
    scene_start();
    scene_go_on();
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fates); i++) {
        scene_test(hook);
        scene_go_on();
        assert_int_equal(scene_times(hook, i), 1);
        harness_fate(fates[i]);
        scene_let_go(hook);
        assert_int_equal(harness.fate_count, 0);
        pass_seconds(10);
        assert_int_equal(scene_times(hook, i), 1);
        expect_state(hook, i, IDEM_DELIVERY_DELIVERED);
    }
    assert_int_equal(stats()->delivered, IDEM_ARRAY_COUNT(fates));
}

/* The other side of "at least once". */
static void an_end_that_cannot_be_told_within_the_lease_is_posted_again(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene.merchants[hook].holds = true;
    scene_test(hook);
    scene_start();
    scene_go_on();
    refuse_batches();
    scene_let_go(hook);
    for (int second = 0; second < 70; second++) {
        refuse_batches();
        scene_pass(SECOND);
    }
    assert_int_equal(scene_times(hook, 0), 1);
    assert_int_equal(stats()->in_hand, 0);
    harness.fate_count = 0;
    scene.merchants[hook].holds = false;
    scene_pass(2 * SECOND);
    assert_int_equal(scene_times(hook, 0), 2);
    assert_true(idem_uid_equal(scene.posted[0].message_id, scene.posted[1].message_id));
    expect_state(hook, 0, IDEM_DELIVERY_DELIVERED);
}

static void a_look_that_the_store_refuses_is_made_again(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene_test(hook);
    harness.reads_refused = 2;
    scene_start();
    scene_go_on();
    scene_pass(SECOND);
    assert_int_equal(scene.posted_count, 0);
    scene_pass(SECOND);
    assert_int_equal(scene.posted_count, 1);
}

/* ---- order ---- */

static void later_messages_of_a_payment_wait_for_earlier_ones(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene.merchants[hook].holds = true;
    scene_start();
    scene_pay("one");
    scene_pay("two");
    scene_pass(SECOND);
    assert_int_equal(scene.posted_count, 2);
    assert_int_equal(scene_times(hook, 0), 1); /* The first of each, beside each other. */
    assert_int_equal(scene_times(hook, 2), 1);
    scene_let_go(hook);
    assert_int_equal(scene.posted_count, 4);
    assert_int_equal(scene_times(hook, 1), 1);
    assert_int_equal(scene_times(hook, 3), 1);
}

static void messages_of_no_payment_wait_for_nothing(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene.merchants[hook].holds = true;
    for (size_t i = 0; i < 3; i++) {
        scene_test(hook);
    }
    scene_start();
    scene_go_on();
    assert_int_equal(scene.posted_count, 3);
}

/* A receiver that never takes one message is told the next after a while. */
static void after_five_attempts_the_later_ones_wait_no_longer(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene.merchants[hook].status = 500;
    scene_start();
    scene_pay("k");
    for (int64_t passed_us = 0; scene_times(hook, 0) < IDEM_POST_ORDERED_MAX; passed_us += MINUTE) {
        scene_pass(MINUTE);
        assert_true(passed_us < DAY);
    }
    assert_int_equal(scene_times(hook, 1), 0);
    scene_pass(6 * HOUR);
    assert_int_equal(scene_times(hook, 0), IDEM_POST_ORDERED_MAX + 1);
    scene_pass(SECOND);
    assert_int_equal(scene_times(hook, 1), 1);
}

/* ---- again, and not for ever ---- */

/* Time until just before the delivery is due, and then a little more. */
static int64_t pass_until_due(size_t hook, size_t message)
{
    int64_t pause_us = scene_delivery(hook, message).due_us - idem_clock_wall_us(&harness.clock);
    size_t before = scene_times(hook, message);
    assert_true(pause_us > SECOND);
    scene_pass(pause_us - 1);
    assert_int_equal(scene_times(hook, message), before);
    scene_pass(SECOND + 1);
    return pause_us;
}

static void a_failure_is_tried_again_on_schedule_and_then_given_up(void **state)
{
    (void)state;
    static const uint16_t statuses[] = { 500, 0, 301, 404 };
    size_t hook = scene_add_webhook();
    scene_start();
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(statuses); i++) {
        scene.merchants[hook].status = statuses[i];
        scene_test(hook);
        scene_go_on();
        for (uint32_t attempt = 1; attempt < IDEM_ATTEMPTS_MAX; attempt++) {
            struct idem_delivery delivery = scene_delivery(hook, i);
            assert_int_equal(scene_times(hook, i), attempt);
            assert_int_equal(delivery.attempts, attempt);
            assert_int_equal(delivery.last_status, statuses[i]);
            EXPECT_TEXT(delivery.last_error, statuses[i] == 0 ? "the connection broke" : "");
            int64_t least_us = idem_schedule_pause_us(attempt, 0, 0);
            assert_in_range(pass_until_due(hook, i), least_us, least_us + least_us / 10);
        }
        assert_int_equal(scene_times(hook, i), IDEM_ATTEMPTS_MAX);
        expect_state(hook, i, IDEM_DELIVERY_DEAD);
        assert_int_equal(stats()->dead, i + 1);
        assert_int_equal(stats()->failed, (i + 1) * IDEM_ATTEMPTS_MAX);
    }
    size_t before = scene.posted_count;
    scene_pass(30 * DAY);
    assert_int_equal(scene.posted_count, before);
    assert_int_equal(stats()->delivered, 0);
}

static void the_receiver_may_ask_for_more_time(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene.merchants[hook].status = 429;
    scene.merchants[hook].retry_after_us = 3 * HOUR;
    scene_test(hook);
    scene_start();
    scene_go_on();
    assert_int_equal(pass_until_due(hook, 0), 3 * HOUR);
    assert_int_equal(scene_times(hook, 0), 2);
}

static void a_webhook_that_is_gone_is_disabled_and_told_nothing_more(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    size_t other = scene_add_webhook();
    scene.merchants[hook].status = 410;
    scene_start();
    scene_pay("one");
    scene_pass(SECOND);
    assert_int_equal(scene.posted_count, 3); /* One message, and both to the other. */
    expect_state(hook, 0, IDEM_DELIVERY_DEAD);
    expect_state(hook, 1, IDEM_DELIVERY_DEAD); /* It waited behind the first. */
    assert_int_equal(stats()->gone, 1);
    scene_pay("two");
    scene_pass(DAY);
    assert_int_equal(scene_times(hook, SIZE_MAX), 1);
    assert_int_equal(scene_times(other, SIZE_MAX), 4);
}

static enum idem_problem replay(size_t hook, size_t posted)
{
    const struct idem_command command = {
        .kind = IDEM_COMMAND_DELIVERY,
        .delivery = {
            .word = IDEM_DELIVERY_WORD_REPLAY,
            .message_id = scene.posted[posted].message_id,
            .webhook_id = scene.merchants[hook].webhook.id,
            .by = IDEM_STR("operator"),
        },
    };
    return scene_run(&command);
}

static void what_has_ended_can_be_replayed(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene_test(hook);
    scene_start();
    scene_go_on();
    assert_int_equal(replay(hook, 0), IDEM_PROBLEM_NONE);
    expect_state(hook, 0, IDEM_DELIVERY_PENDING);
    scene_go_on();
    assert_int_equal(scene_times(hook, 0), 2);
    assert_true(idem_uid_equal(scene.posted[0].message_id, scene.posted[1].message_id));
    assert_int_equal(scene.posted[0].message_row, scene.posted[1].message_row);
    expect_state(hook, 0, IDEM_DELIVERY_DELIVERED);

    scene.merchants[hook].status = 500; /* And what is dead, with all its attempts. */
    assert_int_equal(replay(hook, 0), IDEM_PROBLEM_NONE);
    for (int hour = 0; hour < 100; hour++) {
        scene_pass(HOUR);
    }
    expect_state(hook, 0, IDEM_DELIVERY_DEAD);
    assert_int_equal(scene_times(hook, 0), 2 + IDEM_ATTEMPTS_MAX);
    scene.merchants[hook].status = 204;
    assert_int_equal(replay(hook, 0), IDEM_PROBLEM_NONE);
    scene_go_on();
    expect_state(hook, 0, IDEM_DELIVERY_DELIVERED);
    assert_int_equal(scene_delivery(hook, 0).attempts, 1);
}

/* ---- many, and one that hangs ---- */

static void a_receiver_that_hangs_holds_up_only_its_own(void **state)
{
    (void)state;
    size_t hanging = scene_add_webhook();
    size_t prompt = scene_add_webhook();
    scene.merchants[hanging].holds = true;
    for (size_t i = 0; i < 100; i++) {
        scene_test(hanging);
    }
    for (size_t i = 0; i < 100; i++) {
        scene_test(prompt);
    }
    scene_start();
    scene_pass(SECOND);
    assert_int_equal(scene_times(prompt, SIZE_MAX), 100);
    assert_int_equal(scene_times(hanging, SIZE_MAX), IDEM_OUTBOX_WEBHOOK_MAX);
    assert_int_equal(stats()->in_hand, IDEM_OUTBOX_WEBHOOK_MAX);
    scene.merchants[hanging].holds = false;
    scene_let_go(hanging);
    assert_int_equal(scene_times(hanging, SIZE_MAX), 100);
    assert_int_equal(scene.merchants[prompt].most, 1); /* It answers at once. */
    assert_int_equal(scene.merchants[hanging].most, IDEM_OUTBOX_WEBHOOK_MAX);
}

static void no_more_than_its_limit_is_under_way(void **state)
{
    (void)state;
    scene.options.posts_max = 6;
    for (size_t i = 0; i < SCENE_WEBHOOKS; i++) {
        size_t hook = scene_add_webhook();
        scene.merchants[hook].holds = true;
        for (size_t message = 0; message < 10; message++) {
            scene_test(hook);
        }
    }
    scene_start();
    scene_go_on();
    scene_pass(SECOND);
    assert_int_equal(scene.posted_count, 6);
    assert_int_equal(scene.held.count, 6);
    assert_int_equal(stats()->in_hand, 6);
    for (size_t i = 0; i < SCENE_WEBHOOKS; i++) {
        scene.merchants[i].holds = false;
    }
    for (size_t i = 0; i < SCENE_WEBHOOKS; i++) {
        scene_let_go(i);
    }
    scene_pass(SECOND);
    assert_int_equal(stats()->delivered, 40);
}

static void a_port_without_room_is_a_failure_like_any_other(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene_test(hook);
    scene.port_full = true;
    scene_start();
    scene_go_on();
    assert_int_equal(scene.posted_count, 0);
    EXPECT_TEXT(scene_delivery(hook, 0).last_error, "no room for the post");
    scene.port_full = false;
    (void)pass_until_due(hook, 0);
    expect_state(hook, 0, IDEM_DELIVERY_DELIVERED);
}

#define PAYMENTS 40

/* All receivers answer by the dice, and now and then the store does. */
static void roll(uint64_t *dice, bool store_too)
{
    static const uint16_t statuses[] = { 200, 200, 204, 500, 0, 503, 301, 429 };
    for (size_t i = 0; i < SCENE_WEBHOOKS; i++) {
        *dice = *dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        scene.merchants[i].status = statuses[*dice >> 61];
    }
    if (store_too) {
        harness_fate(fates[*dice >> 32 & 3]);
    }
}

/* The place of the first post of a message to the webhook; fails if there is none. */
static size_t first_post(size_t hook, size_t message)
{
    for (size_t i = 0; i < scene.posted_count; i++) {
        if (scene.posted[i].webhook == hook &&
            scene.posted[i].message_row == (int64_t)message + 1) {
            return i;
        }
    }
    fail();
    return 0;
}

/* Everything comes to an end, is posted at least once, and in order where that is promised. */
static void whatever_fails_everything_comes_to_an_end(void **state)
{
    (void)state;
    uint64_t dice = 20261130;
    char keys[PAYMENTS][4];
    for (size_t i = 0; i < SCENE_WEBHOOKS; i++) {
        (void)scene_add_webhook();
    }
    scene_start();
    for (size_t i = 0; i < PAYMENTS; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", (int)i);
        scene_pay(keys[i]);
    }
    for (size_t step = 0; step < 1200; step++) { /* A hundred hours. */
        roll(&dice, step % 7 == 0);
        scene_pass(5 * MINUTE);
    }
    for (size_t i = 0; i < (size_t)SCENE_WEBHOOKS * PAYMENTS; i++) {
        size_t hook = i % SCENE_WEBHOOKS;
        size_t message = i / SCENE_WEBHOOKS * 2; /* Of two about the same payment. */
        assert_true(scene_delivery(hook, message).finished_us > 0);
        assert_true(scene_delivery(hook, message + 1).finished_us > 0);
        assert_true(first_post(hook, message) < first_post(hook, message + 1));
    }
    const size_t all = (size_t)2 * PAYMENTS * SCENE_WEBHOOKS;
    assert_int_equal(stats()->delivered + stats()->dead, all);
}

/* ---- ends ---- */

/* A worker that dies holds nothing but its lease: here it is one that never hears again. */
static void what_a_dead_worker_took_is_posted_when_its_lease_ends(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene.merchants[hook].holds = true;
    scene_test(hook);
    scene_start();
    scene_go_on();
    struct idem_outbox *dead = scene.outbox;
    struct idem_list unheard = scene.held;
    scene.held = (struct idem_list){ .count = 0 };
    scene.outbox = NULL;

    scene.merchants[hook].holds = false;
    scene_start();
    scene_pass(IDEM_OUTBOX_LEASE_US - 1);
    assert_int_equal(scene.posted_count, 1);
    scene_pass(SECOND);
    assert_int_equal(scene.posted_count, 2);
    expect_state(hook, 0, IDEM_DELIVERY_DELIVERED);
    assert_int_equal(scene_delivery(hook, 0).attempts, 1); /* The other one did not end. */

    struct idem_outbox *heir = scene.outbox; /* The dead one's late word changes nothing. */
    scene.outbox = dead;
    scene.held = unheard;
    scene.merchants[hook].status = 500;
    idem_outbox_stop(dead);
    scene_let_go(hook);
    expect_state(hook, 0, IDEM_DELIVERY_DELIVERED);
    assert_true(idem_outbox_idle(dead));
    idem_outbox_destroy(dead);
    scene.outbox = heir;
}

static void two_workers_on_one_store_post_each_message_once(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    for (size_t i = 0; i < 20; i++) {
        scene_test(hook);
    }
    scene_start();
    struct idem_outbox *first = scene.outbox;
    scene.outbox = NULL;
    scene_start();
    for (int i = 0; i < 200; i++) {
        idem_outbox_step(first);
        idem_outbox_step(scene.outbox);
        idem_engine_step(harness.engine);
        harness.mono_us += SECOND / 10;
    }
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(scene_times(hook, i), 1);
    }
    struct idem_outbox_stats stats_first = idem_outbox_stats(first);
    assert_int_equal(stats_first.delivered + stats()->delivered, 20);
    idem_outbox_stop(first);
    while (!idem_outbox_idle(first)) {
        idem_outbox_step(first);
        idem_engine_step(harness.engine);
    }
    idem_outbox_destroy(first);
}

static void stopping_ends_what_is_under_way_and_begins_nothing(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene.merchants[hook].holds = true;
    scene_test(hook);
    scene_start();
    scene_go_on();
    idem_outbox_stop(scene.outbox);
    scene_test(hook);
    scene_go_on();
    scene_pass(MINUTE / 2);
    assert_int_equal(scene.posted_count, 1);
    assert_false(idem_outbox_idle(scene.outbox));
    assert_int_equal(idem_outbox_wake_us(scene.outbox), INT64_MAX);
    scene_let_go(hook);
    assert_true(idem_outbox_idle(scene.outbox));
    expect_state(hook, 0, IDEM_DELIVERY_DELIVERED);
    expect_state(hook, 1, IDEM_DELIVERY_PENDING);
}

static void what_ends_while_the_service_drains_is_recorded(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    size_t other = scene_add_webhook();
    scene.merchants[hook].holds = true;
    scene.merchants[other].holds = true;
    scene_test(hook);
    scene_test(other);
    scene_start();
    scene_go_on();
    idem_outbox_stop(scene.outbox);
    idem_engine_drain(harness.engine);
    scene_let_go(hook);
    expect_state(hook, 0, IDEM_DELIVERY_DELIVERED);
    idem_outbox_hurry(scene.outbox);
    scene_go_on();
    assert_true(idem_outbox_idle(scene.outbox));
    int64_t now_us = idem_clock_wall_us(&harness.clock);
    assert_in_range(scene_delivery(other, 1).due_us, now_us, now_us + 1);
}

static void a_take_that_meets_the_stop_is_given_back(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene_test(hook);
    scene_start();
    idem_outbox_step(scene.outbox);
    idem_engine_step(harness.engine);
    idem_outbox_step(scene.outbox);
    idem_outbox_stop(scene.outbox);
    scene_go_on();
    assert_int_equal(scene.posted_count, 0);
    assert_true(idem_outbox_idle(scene.outbox));
    idem_outbox_destroy(scene.outbox);
    scene.outbox = NULL;
    scene_start();
    scene_pass(1); /* Not when its lease ends: now. */
    assert_int_equal(scene.posted_count, 1);
}

static void a_hurry_ends_posts_that_hang_and_they_are_due_at_once(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene.merchants[hook].holds = true;
    scene_test(hook);
    scene_start();
    scene_go_on();
    idem_outbox_stop(scene.outbox);
    idem_outbox_hurry(scene.outbox);
    scene_go_on();
    assert_true(idem_outbox_idle(scene.outbox));
    idem_outbox_destroy(scene.outbox);
    scene.outbox = NULL;
    EXPECT_TEXT(scene_delivery(hook, 0).last_error, "cancelled");
    scene.merchants[hook].holds = false;
    scene_start();
    scene_pass(1);
    assert_int_equal(scene_times(hook, 0), 2);
    expect_state(hook, 0, IDEM_DELIVERY_DELIVERED);
}

static void a_stop_while_the_store_refuses_does_not_wait_for_it(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    scene.merchants[hook].holds = true;
    scene_test(hook);
    scene_start();
    scene_go_on();
    refuse_batches();
    scene_let_go(hook);
    assert_int_equal(stats()->in_hand, 1);
    idem_outbox_stop(scene.outbox);
    assert_true(idem_outbox_idle(scene.outbox));
    harness.fate_count = 0;
}

/* ---- forgetting ---- */

static void messages_that_are_old_and_ended_are_forgotten(void **state)
{
    (void)state;
    size_t hook = scene_add_webhook();
    size_t failing = scene_add_webhook();
    scene.options.keep_us = HOUR;
    scene.merchants[failing].status = 500;
    scene_test(hook);
    scene_test(failing);
    scene_start();
    scene_pass(HOUR - MINUTE);
    assert_true(scene_delivery(hook, 0).row > 0);
    scene_pass(MINUTE + 6 * SECOND);
    assert_int_equal(scene_delivery(hook, 0).row, 0);
    expect_state(failing, 1, IDEM_DELIVERY_PENDING); /* Not before its end. */
    scene.merchants[failing].status = 200;
    for (int hour = 0; hour < 6; hour++) {
        scene_pass(HOUR);
    }
    scene_pass(6 * SECOND);
    assert_int_equal(scene_delivery(failing, 1).row, 0);
}

/* Not one part every five seconds, and not all of it at once either. */
static void much_that_is_old_is_forgotten_part_by_part_without_a_rest(void **state)
{
    (void)state;
    enum {
        COUNT = 2 * IDEM_ROWS_SWEEP_MAX + 5
    };
    size_t hook = scene_add_webhook();
    scene.options.keep_us = HOUR;
    scene_start();
    for (int i = 0; i < COUNT; i++) {
        scene_test(hook);
    }
    scene_pass(MINUTE);
    assert_int_equal(scene_times(hook, SIZE_MAX), COUNT);
    scene_pass(HOUR);
    assert_int_equal(scene_delivery(hook, IDEM_ROWS_SWEEP_MAX - 1).row, 0);
    assert_true(scene_delivery(hook, IDEM_ROWS_SWEEP_MAX).row > 0);
    assert_true(idem_outbox_wake_us(scene.outbox) < harness.mono_us + SECOND / 10);
    scene_pass(SECOND / 10);
    assert_true(scene_delivery(hook, (size_t)2 * IDEM_ROWS_SWEEP_MAX).row > 0);
    scene_pass(SECOND / 10);
    assert_int_equal(scene_delivery(hook, COUNT - 1).row, 0);
    uint64_t batches = idem_engine_stats(harness.engine)->batches;
    scene_pass(SECOND); /* Now it rests. */
    assert_int_equal(idem_engine_stats(harness.engine)->batches, batches);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_begin, scene_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_told_is_posted_and_recorded),
        TEST(every_webhook_gets_it),
        TEST(it_looks_at_once_for_what_this_process_wrote_and_in_a_second_for_the_rest),
        TEST(what_is_written_during_a_look_is_looked_for_after_it),
        TEST(nothing_is_posted_before_it_is_durable_that_it_was_taken),
        TEST(a_take_that_the_store_fails_is_posted_once_all_the_same),
        TEST(an_end_that_the_store_fails_is_told_again),
        TEST(an_end_that_cannot_be_told_within_the_lease_is_posted_again),
        TEST(a_look_that_the_store_refuses_is_made_again),
        TEST(later_messages_of_a_payment_wait_for_earlier_ones),
        TEST(messages_of_no_payment_wait_for_nothing),
        TEST(after_five_attempts_the_later_ones_wait_no_longer),
        TEST(a_failure_is_tried_again_on_schedule_and_then_given_up),
        TEST(the_receiver_may_ask_for_more_time),
        TEST(a_webhook_that_is_gone_is_disabled_and_told_nothing_more),
        TEST(what_has_ended_can_be_replayed),
        TEST(a_receiver_that_hangs_holds_up_only_its_own),
        TEST(no_more_than_its_limit_is_under_way),
        TEST(a_port_without_room_is_a_failure_like_any_other),
        TEST(whatever_fails_everything_comes_to_an_end),
        TEST(what_a_dead_worker_took_is_posted_when_its_lease_ends),
        TEST(two_workers_on_one_store_post_each_message_once),
        TEST(stopping_ends_what_is_under_way_and_begins_nothing),
        TEST(what_ends_while_the_service_drains_is_recorded),
        TEST(a_take_that_meets_the_stop_is_given_back),
        TEST(a_hurry_ends_posts_that_hang_and_they_are_due_at_once),
        TEST(a_stop_while_the_store_refuses_does_not_wait_for_it),
        TEST(messages_that_are_old_and_ended_are_forgotten),
        TEST(much_that_is_old_is_forgotten_part_by_part_without_a_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
