/*
 * What every store must do for provider events and for what merchants are told, by commands.
 *
 * Goal: an event counts once, whatever it says; a change and the messages that tell it stand
 * together; deliveries come to their end by the words of whoever makes them.
 *
 * Method: as in store.c: real commands through the public door, decided by the real core.
 */
#include <string.h>

#include "conform/told.h"
#include "lib/test.h"

static void pay(struct fixture *fixture, struct call *call, const char *principal, const char *name)
{
    struct order order = {
        .principal = principal,
        .key = name,
        .order_no = name,
        .amount_minor = 1250,
    };
    call_pay(fixture, call, &order);
    fixture_run_durable(fixture, call, 1);
    assert_int_equal(call->outcome.release.kind, IDEM_RELEASE_SEND);
}

static void settle(struct fixture *fixture, const struct call *to)
{
    struct call call;
    call_evidence(fixture, &call, to, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
}

/* The provider's own word about `to`. */
static void call_event(struct fixture *fixture,
                       struct call *call,
                       const struct call *to,
                       enum idem_outcome_kind outcome,
                       const char *event_id)
{
    call_evidence(fixture, call, to, IDEM_SOURCE_CALLBACK, outcome);
    call->item.command.evidence.token = (struct idem_uid){ .bytes = { 0 } };
    call->item.command.evidence.event_id = idem_str_from(event_id);
}

static void webhook_change(struct fixture *fixture,
                           uint32_t id,
                           enum idem_webhook_action action,
                           enum idem_problem problem)
{
    struct call call;
    struct idem_command *command = call_begin(fixture, &call, IDEM_COMMAND_WEBHOOK);
    command->webhook = (struct idem_webhook_change){
        .action = action,
        .row = {
            .id = uid(id),
            .principal = IDEM_STR("merchant-1"),
            .url = IDEM_STR("https://shop.example/hooks"),
            .types = ALL_TYPES,
        },
        .generation = 1,
        .by = IDEM_STR("ops/anna"),
    };
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.problem, problem);
}

static struct idem_read *posts_ask(struct fixture *fixture)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_POSTS, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return read;
}

/* Says `word` of the delivery; the attempt is that of `of`, or a new one. */
static enum idem_problem say(struct fixture *fixture,
                             const struct idem_post *post,
                             enum idem_delivery_word word,
                             struct idem_uid *attempt)
{
    struct call call;
    struct idem_command *command = call_begin(fixture, &call, IDEM_COMMAND_DELIVERY);
    command->delivery = (struct idem_delivery_change){
        .word = word,
        .message_id = post->message.id,
        .webhook_id = post->webhook.id,
        .token = *attempt,
        .status = word == IDEM_DELIVERY_WORD_FAILED ? 503 : 200,
        .error = word == IDEM_DELIVERY_WORD_FAILED ? IDEM_STR("status 503") : IDEM_STR(""),
        .pause_us = 30 * IDEM_US_PER_SECOND,
        .by = IDEM_STR("ops/anna"),
    };
    if (word == IDEM_DELIVERY_WORD_TAKE) {
        *attempt = command->token;
    }
    fixture_run_durable(fixture, &call, 1);
    return call.outcome.release.problem;
}

static struct idem_delivery delivery_of(struct fixture *fixture, const struct idem_post *post)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_DELIVERIES, "");
    read->after_row = post->delivery.row + 1;
    fixture_read(fixture);
    assert_true(read->post_count > 0);
    assert_int_equal(read->posts[0].delivery.row, post->delivery.row);
    return read->posts[0].delivery;
}

static void an_event_settles_what_it_is_about_once(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call event;
    pay(fixture, &accept, "merchant-1", "key-1");
    call_event(fixture, &event, &accept, IDEM_OUTCOME_SUCCESS, "evt_1");
    fixture_run_durable(fixture, &event, 1);
    assert_int_equal(event.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    uint32_t version = event.outcome.intent.version;
    size_t events = fixture_operation(fixture, &accept)->event_total;

    for (int i = 0; i < 3; i++) { /* Whatever it says now. */
        enum idem_outcome_kind said = i == 0 ? IDEM_OUTCOME_SUCCESS : IDEM_OUTCOME_REVERSED;
        call_event(fixture, &event, &accept, said, "evt_1");
        fixture_run_durable(fixture, &event, 1);
    }
    struct idem_read *read = fixture_operation(fixture, &accept);
    assert_int_equal(read->intent.version, version);
    assert_int_equal(read->event_total, events);

    call_event(fixture, &event, &accept, IDEM_OUTCOME_REVERSED, "evt_2");
    fixture_run_durable(fixture, &event, 1);
    assert_true(fixture_operation(fixture, &accept)->event_total > events);
}

static void one_batch_with_one_event_twice_counts_it_once(void **state)
{
    struct fixture *fixture = *state;
    struct call accepts[2];
    struct call events[2];
    bool seen = false;
    pay(fixture, &accepts[0], "merchant-1", "key-1");
    pay(fixture, &accepts[1], "merchant-1", "key-2");
    call_event(fixture, &events[0], &accepts[0], IDEM_OUTCOME_SUCCESS, "evt_1");
    call_event(fixture, &events[1], &accepts[1], IDEM_OUTCOME_SUCCESS, "evt_1");
    fixture_run_durable(fixture, events, 2);
    bool first = fixture_operation(fixture, &accepts[0])->intent.state == IDEM_INTENT_SUCCEEDED;
    bool second = fixture_operation(fixture, &accepts[1])->intent.state == IDEM_INTENT_SUCCEEDED;
    assert_int_equal((first ? 1 : 0) + (second ? 1 : 0), 1);

    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    seen = event_is_seen(rows, IDEM_STR("sandbox"), IDEM_STR("evt_1"));
    assert_int_equal(rows->ops->rollback(rows), IDEM_ROWS_OK);
    assert_true(seen);
}

static void who_has_a_webhook_is_told_what_changed(void **state)
{
    struct fixture *fixture = *state;
    struct call early;
    struct call mine;
    struct call anothers;
    pay(fixture, &early, "merchant-1", "key-0");
    settle(fixture, &early); /* Nobody listens yet. */
    webhook_change(fixture, 'a', IDEM_WEBHOOK_ADD, IDEM_PROBLEM_NONE);
    pay(fixture, &mine, "merchant-1", "key-1");
    pay(fixture, &anothers, "merchant-2", "key-1");
    settle(fixture, &anothers);
    settle(fixture, &mine);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_DELIVERIES, "");
    fixture_read(fixture);
    assert_true(read->post_count > 0);
    bool captured = false;
    for (size_t i = 0; i < read->post_count; i++) {
        const struct idem_message *message = &read->posts[i].message;
        EXPECT_TEXT(message->principal, "merchant-1");
        assert_memory_equal(&message->payment_id, &mine.outcome.intent.payment_id, 16);
        assert_true(message->data.len > 2);
        captured = captured || message->type == IDEM_MESSAGE_PAYMENT_CAPTURED;
    }
    assert_true(captured);
}

static void a_command_that_runs_again_tells_it_once(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call call;
    webhook_change(fixture, 'a', IDEM_WEBHOOK_ADD, IDEM_PROBLEM_NONE);
    pay(fixture, &accept, "merchant-1", "key-1");
    call_evidence(fixture, &call, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &call, 1);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_DELIVERIES, "");
    fixture_read(fixture);
    size_t count = read->post_count;
    assert_true(count > 0);
    fixture_run_durable(fixture, &call, 1); /* After an unknown COMMIT, say. */
    fixture_read(fixture);
    assert_int_equal(read->post_count, count);
}

static void a_delivery_is_taken_by_one_and_ends_as_it_says(void **state)
{
    struct fixture *fixture = *state;
    struct idem_uid attempt = { .bytes = { 0 } };
    struct idem_uid second = { .bytes = { 0 } };
    webhook_change(fixture, 'a', IDEM_WEBHOOK_ADD, IDEM_PROBLEM_NONE);
    webhook_change(fixture, 'a', IDEM_WEBHOOK_TEST, IDEM_PROBLEM_NONE);
    struct idem_read *read = posts_ask(fixture);
    assert_int_equal(read->post_count, 1);
    static struct idem_post post;
    post = read->posts[0];
    assert_int_equal(post.message.type, IDEM_MESSAGE_TEST);

    assert_int_equal(say(fixture, &post, IDEM_DELIVERY_WORD_TAKE, &attempt), IDEM_PROBLEM_NONE);
    assert_int_equal(say(fixture, &post, IDEM_DELIVERY_WORD_TAKE, &second),
                     IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(posts_ask(fixture)->post_count, 0);
    assert_int_equal(say(fixture, &post, IDEM_DELIVERY_WORD_FAILED, &attempt), IDEM_PROBLEM_NONE);
    struct idem_delivery delivery = delivery_of(fixture, &post);
    assert_int_equal(delivery.state, IDEM_DELIVERY_PENDING);
    assert_int_equal(delivery.attempts, 1);
    assert_int_equal(delivery.last_status, 503);
    EXPECT_TEXT(delivery.last_error, "status 503");

    fixture->clock.wall_base_us += 30 * IDEM_US_PER_SECOND;
    assert_int_equal(posts_ask(fixture)->post_count, 1);
    assert_int_equal(say(fixture, &post, IDEM_DELIVERY_WORD_TAKE, &second), IDEM_PROBLEM_NONE);
    assert_int_equal(say(fixture, &post, IDEM_DELIVERY_WORD_DONE, &second), IDEM_PROBLEM_NONE);
    delivery = delivery_of(fixture, &post);
    assert_int_equal(delivery.state, IDEM_DELIVERY_DELIVERED);
    assert_int_equal(delivery.attempts, 2);
    assert_int_equal(delivery.finished_us, fixture->clock.wall_base_us);

    assert_int_equal(say(fixture, &post, IDEM_DELIVERY_WORD_REPLAY, &second), IDEM_PROBLEM_NONE);
    assert_int_equal(posts_ask(fixture)->post_count, 1);
}

static void nothing_waits_for_a_webhook_that_is_gone(void **state)
{
    struct fixture *fixture = *state;
    struct idem_uid attempt = { .bytes = { 0 } };
    struct call accept;
    webhook_change(fixture, 'a', IDEM_WEBHOOK_ADD, IDEM_PROBLEM_NONE);
    pay(fixture, &accept, "merchant-1", "key-1");
    settle(fixture, &accept);
    static struct idem_post post;
    post = posts_ask(fixture)->posts[0];
    assert_int_equal(say(fixture, &post, IDEM_DELIVERY_WORD_TAKE, &attempt), IDEM_PROBLEM_NONE);
    assert_int_equal(say(fixture, &post, IDEM_DELIVERY_WORD_GONE, &attempt), IDEM_PROBLEM_NONE);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_SUMMARY, "");
    fixture_read(fixture);
    assert_int_equal(read->summary.deliveries_pending, 0);
    int64_t dead = read->summary.deliveries_dead;
    assert_true(dead > 0);

    struct call second; /* Nobody listens any more. */
    pay(fixture, &second, "merchant-1", "key-2");
    settle(fixture, &second);
    read = fixture_ask(fixture, IDEM_READ_SUMMARY, "");
    fixture_read(fixture);
    assert_int_equal(read->summary.deliveries_pending, 0);
    assert_int_equal(read->summary.deliveries_dead, dead);

    webhook_change(fixture, 'a', IDEM_WEBHOOK_ENABLE, IDEM_PROBLEM_NONE);
    struct call third;
    pay(fixture, &third, "merchant-1", "key-3");
    settle(fixture, &third);
    assert_true(posts_ask(fixture)->post_count > 0);
}

static void what_is_old_goes_when_the_mark_is_moved(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call call;
    pay(fixture, &accept, "merchant-1", "key-1");
    call_event(fixture, &call, &accept, IDEM_OUTCOME_SUCCESS, "evt_1");
    fixture_run_durable(fixture, &call, 1);
    struct idem_rows *rows = fixture_rows(fixture);
    for (int64_t after_us = 0; after_us < 2; after_us++) {
        struct idem_command *command = call_begin(fixture, &call, IDEM_COMMAND_MARK);
        command->mark.kind = IDEM_MARK_SWEPT;
        command->mark.value_us = fixture->clock.wall_base_us + after_us;
        fixture_run_durable(fixture, &call, 1);
        fixture_rows_begin(rows);
        bool seen = event_is_seen(rows, IDEM_STR("sandbox"), IDEM_STR("evt_1"));
        assert_int_equal(rows->ops->rollback(rows), IDEM_ROWS_OK);
        assert_int_equal(seen, after_us == 0);
    }
}

#define CONFORM(function, setup) cmocka_unit_test_setup_teardown(function, setup, suite_teardown)
#define SUITE(setup)                                                        \
    {                                                                       \
        CONFORM(an_event_settles_what_it_is_about_once, setup),             \
            CONFORM(one_batch_with_one_event_twice_counts_it_once, setup),  \
            CONFORM(who_has_a_webhook_is_told_what_changed, setup),         \
            CONFORM(a_command_that_runs_again_tells_it_once, setup),        \
            CONFORM(a_delivery_is_taken_by_one_and_ends_as_it_says, setup), \
            CONFORM(nothing_waits_for_a_webhook_that_is_gone, setup),       \
            CONFORM(what_is_old_goes_when_the_mark_is_moved, setup),        \
    }

/* Without an argument the stores that need no server; with "postgres" that one. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "postgres") == 0) {
        const struct CMUnitTest postgres[] = SUITE(setup_postgres);
        return cmocka_run_group_tests_name("merchant: postgres", postgres, NULL, NULL);
    }
    const struct CMUnitTest memory[] = SUITE(setup_memory);
    const struct CMUnitTest sqlite[] = SUITE(setup_sqlite);
    int failed = cmocka_run_group_tests_name("merchant: memory", memory, NULL, NULL);
    failed += cmocka_run_group_tests_name("merchant: sqlite", sqlite, NULL, NULL);
    return failed == 0 ? 0 : 1;
}
