/*
 * Webhooks and deliveries.
 *
 * Goal: adding, rotating, disabling and testing a webhook are safe to repeat; an attempt belongs to
 * who has taken the delivery; its success counts whoever brings it, its failure only from its
 * owner; a delivery ends as delivered or dead, and a person can begin again.
 */
#include "unit/core/usual.h"

static struct idem_release change(enum idem_webhook_action action, uint8_t id)
{
    struct idem_command command = scene_webhook(&scene, action, id);
    return scene_run(&scene, &command);
}

static const struct idem_webhook *hook(size_t index)
{
    assert_true(index < scene.webhook_count);
    return &scene.webhooks[index];
}

static void a_webhook_is_added_once(void **state)
{
    (void)state;
    expect_problem(change(IDEM_WEBHOOK_ADD, 1), IDEM_PROBLEM_NONE);
    expect_problem(change(IDEM_WEBHOOK_ADD, 1), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.webhook_count, 1);
    assert_int_equal(hook(0)->generation, 1);
    assert_int_equal(hook(0)->disabled_us, 0);
    EXPECT_TEXT(hook(0)->created_by, "olga");
}

static void one_id_is_one_webhook(void **state)
{
    (void)state;
    webhook_added(1);
    for (int part = 0; part < 3; part++) {
        struct idem_command command = scene_webhook(&scene, IDEM_WEBHOOK_ADD, 1);
        struct idem_webhook *row = &command.webhook.row;
        row->url = part == 0 ? IDEM_STR("https://other.example/") : row->url;
        row->types = part == 1 ? 2 : row->types;
        row->principal = part == 2 ? IDEM_STR("other") : row->principal;
        expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_STATE_CONFLICT);
    }
    assert_int_equal(scene.webhook_count, 1);
}

static void a_principal_has_only_so_many(void **state)
{
    (void)state;
    for (uint8_t id = 1; id <= IDEM_WEBHOOKS_PRINCIPAL_MAX; id++) {
        webhook_added(id);
    }
    expect_problem(change(IDEM_WEBHOOK_ADD, 99), IDEM_PROBLEM_STATE_CONFLICT);
    struct idem_command command = scene_webhook(&scene, IDEM_WEBHOOK_ADD, 99);
    command.webhook.row.principal = IDEM_STR("other");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
}

static void what_is_not_there_cannot_be_changed(void **state)
{
    (void)state;
    for (int action = IDEM_WEBHOOK_ROTATE; action < IDEM_WEBHOOK_ACTION_COUNT; action++) {
        expect_problem(change((enum idem_webhook_action)action, 1), IDEM_PROBLEM_NOT_FOUND);
    }
}

static void a_secret_is_rotated_from_the_generation_that_is_named(void **state)
{
    (void)state;
    webhook_added(1);
    expect_problem(change(IDEM_WEBHOOK_ROTATE, 1), IDEM_PROBLEM_NONE);
    int64_t rotated_us = hook(0)->rotated_us;
    assert_int_equal(hook(0)->generation, 2);
    assert_int_equal(rotated_us, scene.now_us);
    expect_problem(change(IDEM_WEBHOOK_ROTATE, 1), IDEM_PROBLEM_NONE); /* Generation 1 again. */
    assert_int_equal(hook(0)->generation, 2);
    assert_int_equal(hook(0)->rotated_us, rotated_us);
}

static void a_disabled_webhook_is_told_nothing_until_it_is_enabled(void **state)
{
    (void)state;
    webhook_added(1);
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    size_t before = scene.delivery_count;
    assert_true(before > 0);
    expect_problem(change(IDEM_WEBHOOK_DISABLE, 1), IDEM_PROBLEM_NONE);
    int64_t disabled_us = hook(0)->disabled_us;
    EXPECT_TEXT(hook(0)->disabled_by, "olga");
    assert_int_equal(scene.deliveries[0].row.state, IDEM_DELIVERY_DEAD);
    expect_problem(change(IDEM_WEBHOOK_DISABLE, 1), IDEM_PROBLEM_NONE);
    assert_int_equal(hook(0)->disabled_us, disabled_us);
    (void)asked("k", IDEM_OUTCOME_SUCCESS);
    assert_int_equal(scene.delivery_count, before);
    expect_problem(change(IDEM_WEBHOOK_TEST, 1), IDEM_PROBLEM_STATE_CONFLICT);

    expect_problem(change(IDEM_WEBHOOK_ENABLE, 1), IDEM_PROBLEM_NONE);
    assert_int_equal(hook(0)->disabled_us, 0);
    assert_int_equal(hook(0)->disabled_by.len, 0);
    uint32_t version = hook(0)->version;
    expect_problem(change(IDEM_WEBHOOK_ENABLE, 1), IDEM_PROBLEM_NONE);
    assert_int_equal(hook(0)->version, version);
}

static void a_test_goes_to_one_webhook_whatever_it_wants(void **state)
{
    (void)state;
    webhook_added(1);
    struct idem_command command = scene_webhook(&scene, IDEM_WEBHOOK_ADD, 2);
    command.webhook.row.types = 0;
    (void)scene_run(&scene, &command);
    expect_problem(change(IDEM_WEBHOOK_TEST, 2), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.delivery_count, 1);
    assert_true(idem_uid_equal(scene.deliveries[0].webhook_id, hook(1)->id));
    assert_int_equal(scene.told[IDEM_MESSAGE_TEST], 1);
}

/* ---- deliveries ---- */

static const struct idem_delivery *delivery(void)
{
    return &scene.deliveries[0].row;
}

static void begin_delivery(void)
{
    webhook_added(1);
    (void)change(IDEM_WEBHOOK_TEST, 1);
    assert_int_equal(delivery()->state, IDEM_DELIVERY_PENDING);
}

static struct idem_release say(enum idem_delivery_word word)
{
    struct idem_command command = scene_delivery(&scene, word, 0);
    return scene_run(&scene, &command);
}

static void who_takes_it_has_it_for_a_while(void **state)
{
    (void)state;
    begin_delivery();
    expect_problem(say(IDEM_DELIVERY_WORD_TAKE), IDEM_PROBLEM_NONE);
    assert_int_equal(delivery()->attempts, 0);
    assert_int_equal(delivery()->due_us, scene.now_us + 60 * SECOND);
    expect_problem(say(IDEM_DELIVERY_WORD_TAKE), IDEM_PROBLEM_STATE_CONFLICT);
    scene.now_us = delivery()->due_us - 2;
    expect_problem(say(IDEM_DELIVERY_WORD_TAKE), IDEM_PROBLEM_STATE_CONFLICT);
    expect_problem(say(IDEM_DELIVERY_WORD_TAKE), IDEM_PROBLEM_NONE); /* Now it is. */
    assert_int_equal(delivery()->attempts, 0); /* Nobody has said how one ended. */
}

static void what_arrived_is_over(void **state)
{
    (void)state;
    begin_delivery();
    (void)say(IDEM_DELIVERY_WORD_TAKE);
    expect_problem(say(IDEM_DELIVERY_WORD_DONE), IDEM_PROBLEM_NONE);
    assert_int_equal(delivery()->state, IDEM_DELIVERY_DELIVERED);
    assert_int_equal(delivery()->last_status, 200);
    EXPECT_TEXT(delivery()->last_error, "what was said");
    uint32_t version = delivery()->version;
    expect_problem(say(IDEM_DELIVERY_WORD_DONE), IDEM_PROBLEM_NONE);
    expect_problem(say(IDEM_DELIVERY_WORD_FAILED), IDEM_PROBLEM_NONE);
    expect_problem(say(IDEM_DELIVERY_WORD_GONE), IDEM_PROBLEM_NONE);
    expect_problem(say(IDEM_DELIVERY_WORD_TAKE), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(delivery()->version, version);
    assert_int_equal(hook(0)->disabled_us, 0);
}

static void a_failure_counts_only_from_who_has_it(void **state)
{
    (void)state;
    begin_delivery();
    (void)say(IDEM_DELIVERY_WORD_TAKE);
    struct idem_command late = scene_delivery(&scene, IDEM_DELIVERY_WORD_FAILED, 0);
    scene_pass(&scene, 60 * SECOND);
    (void)say(IDEM_DELIVERY_WORD_TAKE); /* Somebody else has it now. */
    int64_t due_us = delivery()->due_us;
    late.now_us = scene.now_us;
    expect_problem(scene_run(&scene, &late), IDEM_PROBLEM_NONE);
    assert_int_equal(delivery()->due_us, due_us);
    late.delivery.word = IDEM_DELIVERY_WORD_DONE; /* But it did arrive. */
    expect_problem(scene_run(&scene, &late), IDEM_PROBLEM_NONE);
    assert_int_equal(delivery()->state, IDEM_DELIVERY_DELIVERED);
}

static void a_failure_is_tried_again_or_given_up(void **state)
{
    (void)state;
    begin_delivery();
    (void)say(IDEM_DELIVERY_WORD_TAKE);
    struct idem_command command = scene_delivery(&scene, IDEM_DELIVERY_WORD_FAILED, 0);
    command.delivery.pause_us = HOUR;
    command.delivery.status = 500;
    (void)scene_run(&scene, &command);
    assert_int_equal(delivery()->state, IDEM_DELIVERY_PENDING);
    assert_int_equal(delivery()->due_us, command.now_us + HOUR);
    assert_int_equal(delivery()->last_status, 500);
    scene_pass(&scene, HOUR);
    (void)say(IDEM_DELIVERY_WORD_TAKE);
    command = scene_delivery(&scene, IDEM_DELIVERY_WORD_FAILED, 0);
    command.delivery.pause_us = 0;
    (void)scene_run(&scene, &command);
    assert_int_equal(delivery()->state, IDEM_DELIVERY_DEAD);
    assert_int_equal(delivery()->attempts, 2);
    expect_problem(say(IDEM_DELIVERY_WORD_TAKE), IDEM_PROBLEM_STATE_CONFLICT);
}

static void a_receiver_that_is_gone_is_told_nothing_more(void **state)
{
    (void)state;
    begin_delivery();
    (void)change(IDEM_WEBHOOK_TEST, 1);
    (void)say(IDEM_DELIVERY_WORD_TAKE);
    expect_problem(say(IDEM_DELIVERY_WORD_GONE), IDEM_PROBLEM_NONE);
    assert_int_equal(delivery()->state, IDEM_DELIVERY_DEAD);
    assert_int_equal(scene.deliveries[1].row.state, IDEM_DELIVERY_DEAD);
    EXPECT_TEXT(hook(0)->disabled_by, "410 Gone");
    expect_problem(say(IDEM_DELIVERY_WORD_TAKE), IDEM_PROBLEM_STATE_CONFLICT);
    expect_problem(say(IDEM_DELIVERY_WORD_REPLAY), IDEM_PROBLEM_STATE_CONFLICT);
}

static void what_arrived_after_it_was_given_up_did_arrive(void **state)
{
    (void)state;
    begin_delivery();
    (void)say(IDEM_DELIVERY_WORD_TAKE);
    (void)change(IDEM_WEBHOOK_DISABLE, 1);
    assert_int_equal(delivery()->state, IDEM_DELIVERY_DEAD);
    (void)say(IDEM_DELIVERY_WORD_DONE);
    assert_int_equal(delivery()->state, IDEM_DELIVERY_DELIVERED);
}

static void a_dead_delivery_is_not_taken_when_its_take_runs_again(void **state)
{
    (void)state;
    begin_delivery();
    struct idem_command take = scene_delivery(&scene, IDEM_DELIVERY_WORD_TAKE, 0);
    (void)scene_run(&scene, &take);
    (void)change(IDEM_WEBHOOK_DISABLE, 1);
    (void)change(IDEM_WEBHOOK_ENABLE, 1);
    expect_problem(scene_run(&scene, &take), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(delivery()->due_us, 0);
}

static void a_person_can_begin_again(void **state)
{
    (void)state;
    begin_delivery();
    (void)say(IDEM_DELIVERY_WORD_TAKE);
    struct idem_command late = scene_delivery(&scene, IDEM_DELIVERY_WORD_FAILED, 0);
    uint32_t version = delivery()->version;
    expect_problem(say(IDEM_DELIVERY_WORD_REPLAY), IDEM_PROBLEM_NONE); /* It is on its way. */
    assert_int_equal(delivery()->version, version);
    (void)say(IDEM_DELIVERY_WORD_DONE);
    expect_problem(say(IDEM_DELIVERY_WORD_REPLAY), IDEM_PROBLEM_NONE);
    assert_int_equal(delivery()->state, IDEM_DELIVERY_PENDING);
    assert_int_equal(delivery()->attempts, 0);
    assert_int_equal(delivery()->due_us, scene.now_us);
    late.delivery.pause_us = 0;
    (void)scene_run(&scene, &late); /* Who had it before has no say any more. */
    assert_int_equal(delivery()->state, IDEM_DELIVERY_PENDING);
    expect_problem(say(IDEM_DELIVERY_WORD_TAKE), IDEM_PROBLEM_NONE);
}

static void a_delivery_that_is_not_there_is_not_found(void **state)
{
    (void)state;
    begin_delivery();
    struct idem_command command = scene_delivery(&scene, IDEM_DELIVERY_WORD_TAKE, 0);
    command.delivery.message_id.bytes[0] ^= 1;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_webhook_is_added_once),
        SCENE_TEST(one_id_is_one_webhook),
        SCENE_TEST(a_principal_has_only_so_many),
        SCENE_TEST(what_is_not_there_cannot_be_changed),
        SCENE_TEST(a_secret_is_rotated_from_the_generation_that_is_named),
        SCENE_TEST(a_disabled_webhook_is_told_nothing_until_it_is_enabled),
        SCENE_TEST(a_test_goes_to_one_webhook_whatever_it_wants),
        SCENE_TEST(who_takes_it_has_it_for_a_while),
        SCENE_TEST(what_arrived_is_over),
        SCENE_TEST(a_failure_counts_only_from_who_has_it),
        SCENE_TEST(a_failure_is_tried_again_or_given_up),
        SCENE_TEST(a_receiver_that_is_gone_is_told_nothing_more),
        SCENE_TEST(what_arrived_after_it_was_given_up_did_arrive),
        SCENE_TEST(a_dead_delivery_is_not_taken_when_its_take_runs_again),
        SCENE_TEST(a_person_can_begin_again),
        SCENE_TEST(a_delivery_that_is_not_there_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
