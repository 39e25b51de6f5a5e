/*
 * What every store must do, whatever it keeps its rows in.
 *
 * Goal: the engine can rely on the contract of store.h and nothing else: claims are put-if-absent,
 * decisions see the rows of all earlier batches and of their own, numbers are unique, reads show
 * committed rows to their owner only, and running a command again proves its durability.
 *
 * Method: real commands through the public door, decided by the real core. The same tests run once
 * for each backend.
 */
#include <string.h>

#include "lib/test.h"
#include "unit/store/fixture.h"

static const struct order shoes = {
    .principal = "merchant-1",
    .key = "key-1",
    .order_no = "order-1",
    .amount_minor = 1250,
};

static int suite_setup_memory(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_MEMORY);
    fixture_open(&fixture);
    *state = &fixture;
    return 0;
}

static int suite_setup_sqlite(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_SQLITE);
    fixture_open(&fixture);
    *state = &fixture;
    return 0;
}

static int suite_setup_postgres(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_POSTGRES);
    fixture_open(&fixture);
    *state = &fixture;
    return 0;
}

static int suite_teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

/* Pays `order` and settles it with success; `call` is left as the settling command. */
static void pay_and_settle(struct fixture *fixture, struct call *call, const struct order *order)
{
    struct call accept;
    call_pay(fixture, &accept, order);
    fixture_run_durable(fixture, &accept, 1);
    assert_int_equal(accept.outcome.release.kind, IDEM_RELEASE_SEND);
    call_evidence(fixture, call, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, call, 1);
    assert_int_equal(call->outcome.intent.state, IDEM_INTENT_SUCCEEDED);
}

static void expect_problem(const struct call *call, enum idem_problem problem)
{
    assert_int_equal(call->outcome.release.kind, IDEM_RELEASE_REPLY);
    assert_int_equal(call->outcome.intent.state, IDEM_INTENT_FAILED);
    assert_int_equal(call->outcome.intent.problem, problem);
}

static void the_first_request_claims_and_is_told_to_send(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);

    const struct idem_outcome *outcome = &call.outcome;
    assert_int_equal(outcome->release.kind, IDEM_RELEASE_SEND);
    assert_int_equal(outcome->release.send_no, 1);
    assert_true(outcome->release.not_after_us > fixture->clock.wall_base_us);
    assert_int_equal(outcome->intent.state, IDEM_INTENT_DISPATCHED);
    assert_true(outcome->intent.row > 0);
    assert_true(outcome->intent.payment_row > 0);
    assert_int_equal(outcome->intent.incarnation, fixture->store->incarnation);
    EXPECT_TEXT(outcome->intent.effect.id, "c0123456789abcdefghjkmnpqrs");
    EXPECT_TEXT(outcome->intent.effect.request, "charge c0123456789abcdefghjkmnpqrs 1250 order-1");
}

static void stamps_are_put_once_and_kept(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.item.command.now_us, FIXTURE_START_US);
    assert_int_equal(call.item.command.mono_us, FIXTURE_START_US);
    assert_int_equal(call.item.command.incarnation, fixture->store->incarnation);

    fixture->clock.wall_base_us += IDEM_US_PER_SECOND;
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.item.command.now_us, FIXTURE_START_US);
}

static void a_second_request_joins_and_later_replays_the_same_bytes(void **state)
{
    struct fixture *fixture = *state;
    struct call first;
    struct call second;
    struct call settle;
    call_pay(fixture, &first, &shoes);
    fixture_run_durable(fixture, &first, 1);
    call_pay(fixture, &second, &shoes);
    fixture_run_durable(fixture, &second, 1);
    assert_int_equal(second.outcome.release.kind, IDEM_RELEASE_WAIT);
    assert_int_equal(second.outcome.intent.row, first.outcome.intent.row);

    call_evidence(fixture, &settle, &first, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &settle, 1);
    assert_int_equal(settle.outcome.intent.answer.status, 201);

    call_pay(fixture, &second, &shoes);
    fixture_run_durable(fixture, &second, 1);
    assert_int_equal(second.outcome.release.kind, IDEM_RELEASE_REPLY);
    assert_true(second.outcome.release.replayed);
    assert_true(
        idem_str_equal(second.outcome.intent.answer.body, settle.outcome.intent.answer.body));
    assert_true(second.outcome.intent.answer.body.len > 0);
}

static void evidence_finds_its_intent_by_scope_too(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call settle;
    call_pay(fixture, &accept, &shoes);
    fixture_run_durable(fixture, &accept, 1);
    call_evidence(fixture, &settle, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    settle.item.command.intent_row = 0;
    fixture_run_durable(fixture, &settle, 1);
    assert_int_equal(settle.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
}

static void a_handle_with_another_scope_finds_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call stray;
    call_pay(fixture, &accept, &shoes);
    fixture_run_durable(fixture, &accept, 1);
    call_evidence(fixture, &stray, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    stray.item.command.scope.bytes[0] ^= 1;
    fixture_run_durable(fixture, &stray, 1);
    assert_int_equal(stray.outcome.release.kind, IDEM_RELEASE_NONE);
    assert_int_equal(fixture_operation(fixture, &accept)->intent.state, IDEM_INTENT_DISPATCHED);
}

static void what_was_first_sent_before_the_store_was_born_is_too_old(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    call_pay(fixture, &call, &shoes);
    call.item.command.accept.first_sent_us = FIXTURE_START_US - 3600 * IDEM_US_PER_SECOND;
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_REPLY);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_TOO_OLD);
    assert_int_equal(call.outcome.intent.row, 0);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_OPERATION_BY_SCOPE, "merchant-1");
    read->scope = call.item.command.scope;
    fixture_read(fixture);
    assert_false(read->found);

    fixture->clock.wall_base_us += IDEM_US_PER_DAY; /* The store stays as young as it was born. */
    call_pay(fixture, &call, &shoes);
    call.item.command.accept.first_sent_us = FIXTURE_START_US - IDEM_US_PER_SECOND;
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_TOO_OLD);
    call_pay(fixture, &call, &shoes);
    call.item.command.accept.first_sent_us = FIXTURE_START_US; /* In the same second. */
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_SEND);
}

static void an_order_number_has_one_live_payment(void **state)
{
    struct fixture *fixture = *state;
    struct order again = shoes;
    again.key = "key-2";
    struct call first;
    struct call second;
    call_pay(fixture, &first, &shoes);
    fixture_run_durable(fixture, &first, 1);
    call_pay(fixture, &second, &again);
    fixture_run_durable(fixture, &second, 1);
    expect_problem(&second, IDEM_PROBLEM_ORDER_EXISTS);
    assert_int_equal(second.outcome.intent.payment_row, 0);
}

static void one_batch_with_one_order_number_twice_makes_one_payment(void **state)
{
    struct fixture *fixture = *state;
    struct order again = shoes;
    again.key = "key-2";
    struct call calls[2];
    call_pay(fixture, &calls[0], &shoes);
    call_pay(fixture, &calls[1], &again);
    fixture_run_durable(fixture, calls, 2);
    assert_int_equal(calls[0].outcome.release.kind, IDEM_RELEASE_SEND);
    expect_problem(&calls[1], IDEM_PROBLEM_ORDER_EXISTS);
}

static void another_tenant_may_use_the_same_order_number_and_key(void **state)
{
    struct fixture *fixture = *state;
    struct order other = shoes;
    other.principal = "merchant-2";
    struct call calls[2];
    call_pay(fixture, &calls[0], &shoes);
    call_pay(fixture, &calls[1], &other);
    fixture_run_durable(fixture, calls, 2);
    assert_int_equal(calls[0].outcome.release.kind, IDEM_RELEASE_SEND);
    assert_int_equal(calls[1].outcome.release.kind, IDEM_RELEASE_SEND);
}

static void a_full_batch_is_one_batch(void **state)
{
    enum {
        COUNT = IDEM_STORE_BATCH_MAX
    };
    struct fixture *fixture = *state;
    static char names[COUNT][16];
    struct call *calls = calloc(COUNT, sizeof(*calls));
    assert_non_null(calls);
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "name-%zu", i);
        struct order order = shoes;
        order.key = names[i];
        order.order_no = names[i];
        call_pay(fixture, &calls[i], &order);
    }
    fixture_run_durable(fixture, calls, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(calls[i].outcome.release.kind, IDEM_RELEASE_SEND);
        assert_true(calls[i].outcome.intent.row > 0); /* In the store's own order. */
        assert_true(calls[i].outcome.intent.row <= COUNT);
    }
    free(calls);
}

static void running_a_command_again_gives_the_same_release_and_nothing_new(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    struct idem_release release = call.outcome.release;
    struct idem_intent intent = call.outcome.intent;

    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.kind, release.kind);
    assert_int_equal(call.outcome.release.send_no, release.send_no);
    assert_int_equal(call.outcome.release.not_after_us, release.not_after_us);
    assert_int_equal(call.outcome.intent.row, intent.row);
    assert_int_equal(call.outcome.intent.payment_row, intent.payment_row);
    assert_int_equal(call.outcome.intent.epoch, intent.epoch);
    assert_true(call.outcome.intent.version > intent.version); /* It was written again. */

    struct idem_read *read = fixture_operation(fixture, &call);
    assert_int_equal(read->send_count, 1);
    assert_int_equal(read->intent.version, call.outcome.intent.version);
}

static void a_settlement_run_again_changes_no_sum(void **state)
{
    struct fixture *fixture = *state;
    struct call settle;
    pay_and_settle(fixture, &settle, &shoes);
    fixture_run_durable(fixture, &settle, 1);
    assert_int_equal(settle.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    assert_int_equal(settle.outcome.intent.answer.status, 201);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_PAYMENT, "merchant-1");
    read->id = settle.outcome.intent.payment_id;
    fixture_read(fixture);
    assert_int_equal(read->payment.captured_minor, 1250);
    assert_int_equal(read->payment.state, IDEM_PAYMENT_CAPTURED);
}

static void a_declined_payment_gives_its_order_number_back(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call settle;
    call_pay(fixture, &accept, &shoes);
    fixture_run_durable(fixture, &accept, 1);
    call_evidence(fixture, &settle, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_REFUSED_FINAL);
    fixture_run_durable(fixture, &settle, 1);
    expect_problem(&settle, IDEM_PROBLEM_DECLINED);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_PAYMENT_BY_ORDER, "merchant-1");
    read->order_no = IDEM_STR("order-1");
    fixture_read(fixture);
    assert_true(read->found);
    assert_int_equal(read->payment.state, IDEM_PAYMENT_FAILED);
    EXPECT_TEXT(read->payment.failure_code, "card_declined");

    struct order again = shoes;
    again.key = "key-2";
    call_pay(fixture, &accept, &again);
    fixture_run_durable(fixture, &accept, 1);
    assert_int_equal(accept.outcome.release.kind, IDEM_RELEASE_SEND);

    fixture_read(fixture);
    assert_int_equal(read->payment.state, IDEM_PAYMENT_PENDING); /* The one that holds it. */
}

static void a_released_key_runs_again_on_a_new_payment(void **state)
{
    struct fixture *fixture = *state;
    struct order order = shoes;
    order.impatient = true;
    struct call accept;
    struct call settle;
    call_pay(fixture, &accept, &order);
    fixture_run_durable(fixture, &accept, 1);
    int64_t first_payment_row = accept.outcome.intent.payment_row;
    call_evidence(fixture, &settle, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    fixture_run_durable(fixture, &settle, 1);
    assert_int_equal(settle.outcome.intent.state, IDEM_INTENT_RELEASED);

    call_pay(fixture, &accept, &order);
    fixture_run_durable(fixture, &accept, 1);
    assert_int_equal(accept.outcome.release.kind, IDEM_RELEASE_SEND);
    assert_int_equal(accept.outcome.release.send_no, 2);
    assert_true(accept.outcome.intent.payment_row > first_payment_row);

    struct idem_read *read = fixture_operation(fixture, &accept);
    assert_int_equal(read->intent.payment_row, accept.outcome.intent.payment_row);
    assert_int_equal(read->send_count, 2);
    assert_int_equal(read->sends[0].state, IDEM_SEND_NOT_EXECUTED);
    assert_int_equal(read->sends[1].state, IDEM_SEND_OPEN);
}

static void a_released_key_finds_its_order_number_taken(void **state)
{
    struct fixture *fixture = *state;
    struct order order = shoes;
    order.impatient = true;
    struct call accept;
    struct call settle;
    call_pay(fixture, &accept, &order);
    fixture_run_durable(fixture, &accept, 1);
    call_evidence(fixture, &settle, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    fixture_run_durable(fixture, &settle, 1);

    struct order other = shoes;
    other.key = "key-2";
    call_pay(fixture, &accept, &other);
    fixture_run_durable(fixture, &accept, 1);
    assert_int_equal(accept.outcome.release.kind, IDEM_RELEASE_SEND);

    call_pay(fixture, &accept, &order);
    fixture_run_durable(fixture, &accept, 1);
    expect_problem(&accept, IDEM_PROBLEM_ORDER_EXISTS);
}

static struct act refund_of(const struct call *payment, const char *key, const char *amount)
{
    return (struct act){
        .principal = "merchant-1",
        .key = key,
        .endpoint = IDEM_ENDPOINT_REFUNDS_CREATE,
        .payment_id = payment->outcome.intent.payment_id,
        .amount = amount,
    };
}

static void refunds_never_exceed_what_was_captured(void **state)
{
    struct fixture *fixture = *state;
    struct call payment;
    struct call refund;
    struct call settle;
    pay_and_settle(fixture, &payment, &shoes);

    struct act act = refund_of(&payment, "refund-1", "10.00");
    call_act(fixture, &refund, &act);
    fixture_run_durable(fixture, &refund, 1);
    assert_int_equal(refund.outcome.release.kind, IDEM_RELEASE_SEND);
    assert_true(refund.outcome.intent.refund_row > 0);
    assert_int_equal(refund.outcome.intent.payment_row, payment.outcome.intent.payment_row);

    struct call second;
    act = refund_of(&payment, "refund-2", "2.51");
    call_act(fixture, &second, &act);
    fixture_run_durable(fixture, &second, 1);
    expect_problem(&second, IDEM_PROBLEM_AMOUNT_EXCEEDS);

    call_evidence(fixture, &settle, &refund, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &settle, 1);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_PAYMENT, "merchant-1");
    read->id = payment.outcome.intent.payment_id;
    fixture_read(fixture);
    assert_int_equal(read->payment.refunded_minor, 1000);
    assert_int_equal(read->payment.refund_pending_minor, 0);

    read = fixture_ask(fixture, IDEM_READ_REFUND, "merchant-1");
    read->id = refund.outcome.intent.refund_id;
    fixture_read(fixture);
    assert_true(read->found);
    assert_int_equal(read->refund.state, IDEM_REFUND_SUCCEEDED);
    assert_int_equal(read->refund.payment_row, payment.outcome.intent.payment_row);
}

static void a_refund_number_is_unique_until_its_refund_fails(void **state)
{
    struct fixture *fixture = *state;
    struct call payment;
    struct call refund;
    struct call again;
    struct call settle;
    pay_and_settle(fixture, &payment, &shoes);

    struct act act = refund_of(&payment, "refund-1", "1.00");
    act.refund_no = "no-1";
    call_act(fixture, &refund, &act);
    fixture_run_durable(fixture, &refund, 1);
    act.key = "refund-2";
    call_act(fixture, &again, &act);
    fixture_run_durable(fixture, &again, 1);
    expect_problem(&again, IDEM_PROBLEM_REFUND_EXISTS);

    call_evidence(fixture, &settle, &refund, IDEM_SOURCE_SEND, IDEM_OUTCOME_REFUSED_FINAL);
    fixture_run_durable(fixture, &settle, 1);
    act.key = "refund-3";
    call_act(fixture, &again, &act);
    fixture_run_durable(fixture, &again, 1);
    assert_int_equal(again.outcome.release.kind, IDEM_RELEASE_SEND);

    act.refund_no = NULL; /* Without a number any number of refunds. */
    for (int i = 0; i < 2; i++) {
        act.key = i == 0 ? "refund-4" : "refund-5";
        call_act(fixture, &again, &act);
        fixture_run_durable(fixture, &again, 1);
        assert_int_equal(again.outcome.release.kind, IDEM_RELEASE_SEND);
    }
}

static void captures_and_what_they_reserve_fit_the_authorization(void **state)
{
    struct fixture *fixture = *state;
    struct order order = shoes;
    order.manual = true;
    struct call payment;
    struct call capture;
    struct call second;
    pay_and_settle(fixture, &payment, &order);

    struct act act = refund_of(&payment, "capture-1", "12.00");
    act.endpoint = IDEM_ENDPOINT_PAYMENTS_CAPTURE;
    call_act(fixture, &capture, &act);
    fixture_run_durable(fixture, &capture, 1);
    assert_int_equal(capture.outcome.release.kind, IDEM_RELEASE_SEND);

    act.key = "capture-2";
    act.amount = "0.51";
    call_act(fixture, &second, &act);
    fixture_run_durable(fixture, &second, 1);
    assert_int_equal(second.outcome.intent.state, IDEM_INTENT_FAILED);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_PAYMENT, "merchant-1");
    read->id = payment.outcome.intent.payment_id;
    fixture_read(fixture);
    assert_int_equal(read->payment.capture_pending_minor, 1200);
}

static void a_tenant_cannot_act_on_anothers_payment(void **state)
{
    struct fixture *fixture = *state;
    struct call payment;
    struct call refund;
    pay_and_settle(fixture, &payment, &shoes);
    struct act act = refund_of(&payment, "refund-1", "1.00");
    act.principal = "merchant-2";
    call_act(fixture, &refund, &act);
    fixture_run_durable(fixture, &refund, 1);
    expect_problem(&refund, IDEM_PROBLEM_PAYMENT_MISSING);
}

static void a_tenant_reads_nothing_of_anothers(void **state)
{
    struct fixture *fixture = *state;
    struct call payment;
    struct call refund;
    pay_and_settle(fixture, &payment, &shoes);
    struct act act = refund_of(&payment, "refund-1", "1.00");
    call_act(fixture, &refund, &act);
    fixture_run_durable(fixture, &refund, 1);

    static const struct {
        const char *principal;
        bool found;
    } cases[] = { { "merchant-1", true }, { "merchant-2", false }, { "", false } };
    static const enum idem_read_kind kinds[] = {
        IDEM_READ_PAYMENT,   IDEM_READ_PAYMENT_BY_ORDER,   IDEM_READ_REFUND,
        IDEM_READ_OPERATION, IDEM_READ_OPERATION_BY_SCOPE,
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases) * IDEM_ARRAY_COUNT(kinds); i++) {
        enum idem_read_kind kind = kinds[i % IDEM_ARRAY_COUNT(kinds)];
        size_t row = i / IDEM_ARRAY_COUNT(kinds);
        struct idem_read *read = fixture_ask(fixture, kind, cases[row].principal);
        read->order_no = IDEM_STR("order-1");
        read->scope = payment.outcome.intent.scope;
        read->id = payment.outcome.intent.payment_id;
        if (kind == IDEM_READ_REFUND) {
            read->id = refund.outcome.intent.refund_id;
        } else if (kind == IDEM_READ_OPERATION) {
            read->id = payment.outcome.intent.id;
        }
        fixture_read(fixture);
        assert_int_equal(read->answer, IDEM_STORE_DURABLE);
        assert_int_equal(read->found, cases[row].found);
        assert_int_equal(read->payment.row != 0 || read->refund.row != 0 || read->intent.row != 0,
                         cases[row].found);
    }
}

static void an_operation_shows_its_history_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call settle;
    call_pay(fixture, &accept, &shoes);
    fixture_run_durable(fixture, &accept, 1);
    fixture->clock.wall_base_us += IDEM_US_PER_SECOND;
    call_evidence(fixture, &settle, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_UNKNOWN);
    fixture_run_durable(fixture, &settle, 1);
    fixture->clock.wall_base_us += IDEM_US_PER_SECOND;
    call_evidence(fixture, &settle, &accept, IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &settle, 1);

    struct idem_read *read = fixture_operation(fixture, &accept);
    assert_int_equal(read->intent.state, IDEM_INTENT_SUCCEEDED);
    EXPECT_TEXT(read->intent.key, "key-1");
    EXPECT_TEXT(read->intent.effect.reference, "provider-77");
    assert_int_equal(read->intent.answer.status, 201);
    assert_int_equal(read->event_count, read->event_total);
    assert_true(read->event_count >= 4);
    assert_int_equal(read->events[0].kind, IDEM_EVENT_DISPATCHED);
    assert_int_equal(read->events[read->event_count - 1].kind, IDEM_EVENT_SUCCEEDED);
    for (size_t i = 1; i < read->event_count; i++) {
        assert_true(read->events[i].at_us >= read->events[i - 1].at_us);
    }
    assert_int_equal(read->send_count, 1);
}

static void a_long_history_shows_its_newest_part(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call silence;
    call_pay(fixture, &accept, &shoes);
    fixture_run_durable(fixture, &accept, 1);
    for (int i = 0; i < IDEM_READ_EVENTS_MAX + 10; i++) {
        fixture->clock.wall_base_us += 1;
        call_evidence(fixture, &silence, &accept, IDEM_SOURCE_QUERY, IDEM_OUTCOME_NOT_FOUND);
        fixture_run_durable(fixture, &silence, 1);
    }
    struct idem_read *read = fixture_operation(fixture, &accept);
    assert_int_equal(read->event_count, IDEM_READ_EVENTS_MAX);
    assert_true(read->event_total >= IDEM_READ_EVENTS_MAX + 10);
    assert_int_equal(read->events[read->event_count - 1].at_us, fixture->clock.wall_base_us);
    EXPECT_TEXT(read->intent.effect.request, "charge c0123456789abcdefghjkmnpqrs 1250 order-1");
}

static void due_intents_come_oldest_first_and_the_next_time_is_told(void **state)
{
    static const char *const names[] = { "c", "a", "b" };
    struct fixture *fixture = *state;
    struct call calls[3];
    for (size_t i = 0; i < 3; i++) {
        struct order order = shoes;
        order.key = names[i];
        order.order_no = names[i];
        order.no_slot = i < 2; /* Due at once; the last has a lease to run out. */
        fixture->clock.wall_base_us = FIXTURE_START_US + (i == 1 ? 0 : 5);
        call_pay(fixture, &calls[i], &order);
        fixture_run_durable(fixture, &calls[i], 1);
    }
    fixture->clock.wall_base_us = FIXTURE_START_US + 10;
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_DUE, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_int_equal(read->due_count, 2);
    assert_int_equal(read->due[0].row, calls[1].outcome.intent.row);
    assert_int_equal(read->due[1].row, calls[0].outcome.intent.row);
    assert_memory_equal(&read->due[0].scope, &calls[1].outcome.intent.scope, 16);
    assert_int_equal(read->due[0].due_us, FIXTURE_START_US);
    assert_int_equal(read->next_due_us, calls[2].outcome.intent.due_us);
}

static void more_due_intents_than_fit_come_in_parts(void **state)
{
    enum {
        COUNT = IDEM_READ_DUE_MAX + 6
    };
    struct fixture *fixture = *state;
    static char names[COUNT][16];
    struct call call;
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "name-%zu", i);
        struct order order = shoes;
        order.key = names[i];
        order.order_no = names[i];
        order.no_slot = true;
        fixture->clock.wall_base_us = FIXTURE_START_US + COUNT - (int64_t)i;
        call_pay(fixture, &call, &order);
        fixture_run_durable(fixture, &call, 1);
    }
    fixture->clock.wall_base_us = FIXTURE_START_US + COUNT;
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_DUE, "");
    fixture_read(fixture);
    assert_int_equal(read->due_count, IDEM_READ_DUE_MAX);
    assert_int_equal(read->due[0].row, COUNT);
    for (size_t i = 1; i < read->due_count; i++) {
        assert_true(read->due[i].due_us > read->due[i - 1].due_us);
    }
    assert_int_equal(read->next_due_us, 0); /* Nothing that is not due yet. */
}

static void a_due_intent_is_dispatched_by_its_handle(void **state)
{
    struct fixture *fixture = *state;
    struct order order = shoes;
    order.no_slot = true;
    struct call accept;
    struct call due;
    call_pay(fixture, &accept, &order);
    fixture_run_durable(fixture, &accept, 1);
    assert_int_equal(accept.outcome.intent.state, IDEM_INTENT_CLAIMED);

    call_due(fixture, &due, accept.outcome.intent.scope, accept.outcome.intent.row);
    fixture_run_durable(fixture, &due, 1);
    assert_int_equal(due.outcome.release.kind, IDEM_RELEASE_SEND);
    EXPECT_TEXT(due.outcome.intent.effect.request,
                "charge c0123456789abcdefghjkmnpqrs 1250 order-1");
    assert_int_equal(due.outcome.intent.payment_row, accept.outcome.intent.payment_row);
}

static void an_abandoned_key_refuses_the_request_that_comes_after(void **state)
{
    struct fixture *fixture = *state;
    struct call abandon;
    struct call accept;
    call_abandon(fixture, &abandon, "merchant-1", "key-1");
    fixture_run_durable(fixture, &abandon, 1);
    expect_problem(&abandon, IDEM_PROBLEM_ABANDONED);

    call_pay(fixture, &accept, &shoes);
    fixture_run_durable(fixture, &accept, 1);
    expect_problem(&accept, IDEM_PROBLEM_ABANDONED);
    assert_int_equal(accept.outcome.intent.row, abandon.outcome.intent.row);
}

/* `len` times `byte`, terminated. */
static const char *long_text(char *memory, char byte, size_t len)
{
    memset(memory, byte, len);
    memory[len] = '\0';
    return memory;
}

static void the_longest_text_comes_back_as_it_went_in(void **state)
{
    struct fixture *fixture = *state;
    static char memory[5][IDEM_METADATA_MAX + 1];
    struct order order = {
        .principal = long_text(memory[0], 'p', IDEM_PRINCIPAL_MAX),
        .key = long_text(memory[1], 'k', IDEM_KEY_MAX),
        .order_no = long_text(memory[2], 'o', IDEM_ORDER_NO_MAX),
        .description = long_text(memory[3], 'd', IDEM_DESCRIPTION_MAX),
        .amount_minor = INT64_MAX,
    };
    struct call accept;
    struct call settle;
    call_pay(fixture, &accept, &order);
    accept.item.command.accept.metadata =
        idem_str_from(long_text(memory[4], 'm', IDEM_METADATA_MAX));
    fixture_run_durable(fixture, &accept, 1);
    call_evidence(fixture, &settle, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &settle, 1);
    EXPECT_TEXT(fixture_operation(fixture, &settle)->intent.key, order.key);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_PAYMENT, order.principal);
    read->id = settle.outcome.intent.payment_id;
    fixture_read(fixture);
    assert_true(read->found);
    EXPECT_TEXT(read->payment.principal, order.principal);
    EXPECT_TEXT(read->payment.order_no, order.order_no);
    EXPECT_TEXT(read->payment.description, order.description);
    EXPECT_TEXT(read->payment.metadata, memory[4]);
    assert_true(read->payment.captured_minor == INT64_MAX);
}

static void nothing_is_left_of_this_incarnation(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    call_pay(fixture, &accept, &shoes);
    fixture_run_durable(fixture, &accept, 1);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_LEFT, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_int_equal(read->due_count, 0);
}

static void a_stopped_store_still_hands_back_what_it_accepted(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    struct idem_store_batch batch = { .answer = IDEM_STORE_NONE };
    struct idem_list batches = { .count = 0 };
    struct idem_list reads = { .count = 0 };
    call_pay(fixture, &call, &shoes);
    idem_list_push(&batch.items, &call.item.node);
    (void)fixture_ask(fixture, IDEM_READ_DUE, "");

    idem_store_submit(fixture->store, &batch);
    idem_store_read(fixture->store, &fixture->read);
    assert_int_equal(idem_store_has_room(fixture->store),
                     fixture->store->batches_in_flight_max > 1);
    idem_store_stop(fixture->store);
    while (batches.count + reads.count < 2) {
        idem_store_reap(fixture->store, &batches, &reads);
    }
    assert_int_equal(batch.answer, IDEM_STORE_DURABLE);
    assert_int_equal(fixture->read.answer, IDEM_STORE_DURABLE);
    assert_false(idem_store_has_room(fixture->store));
}

#define CONFORM(function, setup) cmocka_unit_test_setup_teardown(function, setup, suite_teardown)
#define SUITE(setup)                                                                        \
    {                                                                                       \
        CONFORM(the_first_request_claims_and_is_told_to_send, setup),                       \
            CONFORM(stamps_are_put_once_and_kept, setup),                                   \
            CONFORM(a_second_request_joins_and_later_replays_the_same_bytes, setup),        \
            CONFORM(evidence_finds_its_intent_by_scope_too, setup),                         \
            CONFORM(a_handle_with_another_scope_finds_nothing, setup),                      \
            CONFORM(what_was_first_sent_before_the_store_was_born_is_too_old, setup),       \
            CONFORM(an_order_number_has_one_live_payment, setup),                           \
            CONFORM(one_batch_with_one_order_number_twice_makes_one_payment, setup),        \
            CONFORM(another_tenant_may_use_the_same_order_number_and_key, setup),           \
            CONFORM(a_full_batch_is_one_batch, setup),                                      \
            CONFORM(running_a_command_again_gives_the_same_release_and_nothing_new, setup), \
            CONFORM(a_settlement_run_again_changes_no_sum, setup),                          \
            CONFORM(a_declined_payment_gives_its_order_number_back, setup),                 \
            CONFORM(a_released_key_runs_again_on_a_new_payment, setup),                     \
            CONFORM(a_released_key_finds_its_order_number_taken, setup),                    \
            CONFORM(refunds_never_exceed_what_was_captured, setup),                         \
            CONFORM(a_refund_number_is_unique_until_its_refund_fails, setup),               \
            CONFORM(captures_and_what_they_reserve_fit_the_authorization, setup),           \
            CONFORM(a_tenant_cannot_act_on_anothers_payment, setup),                        \
            CONFORM(a_tenant_reads_nothing_of_anothers, setup),                             \
            CONFORM(an_operation_shows_its_history_in_order, setup),                        \
            CONFORM(a_long_history_shows_its_newest_part, setup),                           \
            CONFORM(due_intents_come_oldest_first_and_the_next_time_is_told, setup),        \
            CONFORM(more_due_intents_than_fit_come_in_parts, setup),                        \
            CONFORM(a_due_intent_is_dispatched_by_its_handle, setup),                       \
            CONFORM(an_abandoned_key_refuses_the_request_that_comes_after, setup),          \
            CONFORM(the_longest_text_comes_back_as_it_went_in, setup),                      \
            CONFORM(nothing_is_left_of_this_incarnation, setup),                            \
            CONFORM(a_stopped_store_still_hands_back_what_it_accepted, setup),              \
    }

/* Without an argument the stores that need no server; with "postgres" that one. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "postgres") == 0) {
        const struct CMUnitTest postgres[] = SUITE(suite_setup_postgres);
        return cmocka_run_group_tests_name("store: postgres", postgres, NULL, NULL);
    }
    const struct CMUnitTest memory[] = SUITE(suite_setup_memory);
    const struct CMUnitTest sqlite[] = SUITE(suite_setup_sqlite);
    int failed = cmocka_run_group_tests_name("store: memory", memory, NULL, NULL);
    failed += cmocka_run_group_tests_name("store: sqlite", sqlite, NULL, NULL);
    return failed == 0 ? 0 : 1;
}
