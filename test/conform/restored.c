/*
 * What every store must do for an older copy of itself, whatever it keeps its rows in.
 *
 * Goal: what the copy has missed is found by the claim that comes again, also after a person had
 * it; it is neither executed once more nor counted twice, and its order number stays taken.
 *
 * Method: as in store.c: real commands through the public door, decided by the real core, once for
 * each backend. A store of the memory has no second opening, so what needs records from before the
 * copy runs on the other alone.
 */
#include <string.h>

#include "base/digest.h"
#include "lib/test.h"
#include "unit/store/fixture.h"

static const struct order shoes = {
    .principal = "merchant-1",
    .key = "key-1",
    .order_no = "order-1",
    .amount_minor = 1250,
};

static int setup_restored(void **state, enum fixture_kind kind)
{
    static struct fixture fixture;
    fixture_init(&fixture, kind);
    if (kind != FIXTURE_MEMORY) { /* There must be something that was restored. */
        fixture_open(&fixture);
        fixture_close(&fixture);
    }
    fixture.options.restored = true;
    fixture_open(&fixture);
    *state = &fixture;
    return 0;
}

static int setup_memory(void **state)
{
    return setup_restored(state, FIXTURE_MEMORY);
}

static int setup_sqlite(void **state)
{
    return setup_restored(state, FIXTURE_SQLITE);
}

static int setup_postgres(void **state)
{
    return setup_restored(state, FIXTURE_POSTGRES);
}

static int suite_teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

static void settle(struct fixture *fixture, const struct call *to, enum idem_outcome_kind outcome)
{
    struct call call;
    call_evidence(fixture, &call, to, IDEM_SOURCE_SEND, outcome);
    fixture_run_durable(fixture, &call, 1);
}

static struct idem_read *ask(struct fixture *fixture, enum idem_read_kind kind)
{
    struct idem_read *read = fixture_ask(fixture, kind, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return read;
}

static void resolve(struct fixture *fixture,
                    struct call *call,
                    const struct call *to,
                    enum idem_verdict verdict)
{
    struct idem_command *command = call_begin(fixture, call, IDEM_COMMAND_RESOLVE);
    command->scope = to->outcome.intent.scope;
    command->intent_row = to->outcome.intent.row;
    command->resolve = (struct idem_resolve){
        .verdict = verdict,
        .asked_us = idem_clock_wall_us(&fixture->clock),
        .by = IDEM_STR("ops/anna"),
        .reason = IDEM_STR("seen in the provider's console"),
        .reference = IDEM_STR("provider-9"),
        .amount_minor = to->outcome.intent.effect.amount_minor,
        .currency = to->outcome.intent.effect.currency,
    };
    fixture_run_durable(fixture, call, 1);
}

static void mark(struct fixture *fixture, enum idem_mark_kind kind, int64_t value_us)
{
    struct call call;
    struct idem_command *command = call_begin(fixture, &call, IDEM_COMMAND_MARK);
    command->mark = (struct idem_mark){
        .kind = kind,
        .value_us = value_us,
        .by = IDEM_STR("ops/anna"),
        .reason = IDEM_STR("the listing is complete"),
    };
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_REPLY);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_NONE);
}

static void the_restored_mode_lasts_until_its_mark(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    assert_true(fixture->store->restored);
    assert_int_equal(fixture->store->opened_us, FIXTURE_START_US);
    assert_false(fixture->store->old_effect_ids);
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_UNAVAILABLE);
    assert_int_equal(call.outcome.intent.row, 0);

    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    assert_false(fixture->store->restored);
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_SEND);
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
}

/* The effect id that `scope` has, and the memory for it. */
static struct idem_str effect_id_of(struct idem_scope scope, char letter, char memory[32])
{
    unsigned char bytes[17] = { 0 };
    struct idem_buf buf;
    memcpy(bytes, scope.bytes, sizeof(scope.bytes));
    idem_buf_init(&buf, memory, 32);
    idem_buf_add_char(&buf, letter);
    idem_base32_print(bytes, sizeof(bytes), IDEM_EFFECT_ID_LEN - 1, &buf);
    assert_false(buf.full);
    return idem_buf_str(&buf);
}

/* What the provider lists: an effect of `key`, at the payment of `on` if that is not NULL. */
struct listing {
    enum idem_endpoint endpoint;
    const char *key;
    const char *on;
    const char *order_no; /* NULL: none. */
    const char *entry;
    int64_t amount_minor;
};

static void listing_run(struct fixture *fixture, const struct listing *listing)
{
    char id_memory[32];
    char payment_memory[32];
    struct call call;
    struct idem_command *command = call_begin(fixture, &call, IDEM_COMMAND_EVIDENCE);
    char letter = listing->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE ? 'r' : 'c';
    command->scope = fixture_scope("merchant-1", listing->endpoint, listing->key);
    command->evidence = (struct idem_evidence){
        .source = IDEM_SOURCE_LISTING,
        .outcome = IDEM_OUTCOME_SUCCESS,
        .entry = idem_str_from(listing->entry),
        .account = IDEM_STR("acct-1"),
        .region = IDEM_STR("eu"),
        .effect_id = effect_id_of(command->scope, letter, id_memory),
        .amount_minor = listing->amount_minor,
        .currency = IDEM_STR("EUR"),
        .reference = IDEM_STR("provider-77"),
        .order_no = idem_str_from(listing->order_no),
        .happened_us = fixture->clock.wall_base_us,
    };
    if (listing->on != NULL) {
        struct idem_scope scope =
            fixture_scope("merchant-1", IDEM_ENDPOINT_PAYMENTS_CREATE, listing->on);
        command->evidence.payment_scope = scope;
        command->evidence.payment_effect_id = effect_id_of(scope, 'c', payment_memory);
    }
    fixture_run_durable(fixture, &call, 1);
}

/* The usual one: a payment's order number is its key. */
static void listed(struct fixture *fixture,
                   enum idem_endpoint endpoint,
                   const char *key,
                   const char *on,
                   int64_t amount_minor)
{
    struct listing listing = {
        .endpoint = endpoint,
        .key = key,
        .on = on,
        .order_no = on == NULL ? key : NULL,
        .entry = "sandbox",
        .amount_minor = amount_minor,
    };
    listing_run(fixture, &listing);
}

static void claim(struct fixture *fixture, struct call *call, const char *name)
{
    static char tail[32];
    struct order order = shoes;
    order.key = name;
    order.order_no = name;
    call_pay(fixture, call, &order);
    struct idem_str id = effect_id_of(call->item.command.scope, 'c', tail);
    call->item.command.accept.effect_id_tail = idem_str_slice(id, 1, id.len - 1);
    fixture_run_durable(fixture, call, 1);
}

static void what_the_copy_missed_settles_the_claim_that_comes_again(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    listed(fixture, IDEM_ENDPOINT_PAYMENTS_CREATE, "key-1", NULL, 1250);
    listed(fixture, IDEM_ENDPOINT_PAYMENTS_CREATE, "key-1", NULL, 1250); /* A page twice. */
    listed(fixture, IDEM_ENDPOINT_REFUNDS_CREATE, "refund-1", "key-1", 250);
    assert_int_equal(ask(fixture, IDEM_READ_SUMMARY)->summary.stubs, 2);
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);

    claim(fixture, &call, "key-1");
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_REPLY);
    assert_int_equal(call.outcome.intent.answer.status, 201);
    assert_int_equal(ask(fixture, IDEM_READ_SUMMARY)->summary.stubs, 1);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_PAYMENT, "merchant-1");
    read->id = call.outcome.intent.payment_id;
    fixture_read(fixture);
    assert_int_equal(read->payment.captured_minor, 1250);
    assert_int_equal(read->payment.refunded_minor, 250); /* It moved with the payment. */

    struct act act = {
        .principal = "merchant-1",
        .key = "refund-1",
        .endpoint = IDEM_ENDPOINT_REFUNDS_CREATE,
        .payment_id = call.outcome.intent.payment_id,
        .amount = "2.50",
    };
    static char tail[32];
    call_act(fixture, &call, &act);
    struct idem_str id = effect_id_of(call.item.command.scope, 'r', tail);
    call.item.command.accept.effect_id_tail = idem_str_slice(id, 1, id.len - 1);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    fixture_read(fixture);
    assert_int_equal(read->payment.refunded_minor, 250); /* Not again. */
    assert_int_equal(ask(fixture, IDEM_READ_SUMMARY)->summary.stubs, 0);
}

static void a_listed_refund_moves_the_sums_of_a_payment_that_is_here(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    struct call again;
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    claim(fixture, &call, "key-1");
    settle(fixture, &call, IDEM_OUTCOME_SUCCESS);
    struct idem_uid payment_id = call.outcome.intent.payment_id;
    if (fixture->kind == FIXTURE_MEMORY) {
        return; /* It has no second opening. */
    }
    fixture_close(fixture);
    fixture_open(fixture);
    assert_true(fixture->store->restored);

    listed(fixture, IDEM_ENDPOINT_REFUNDS_CREATE, "refund-1", "key-1", 1000);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_PAYMENT, "merchant-1");
    read->id = payment_id;
    fixture_read(fixture);
    assert_int_equal(read->payment.refunded_minor, 1000);
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    struct act act = {
        .principal = "merchant-1",
        .key = "refund-2",
        .endpoint = IDEM_ENDPOINT_REFUNDS_CREATE,
        .payment_id = payment_id,
        .amount = "2.51",
    };
    call_act(fixture, &again, &act);
    fixture_run_durable(fixture, &again, 1);
    assert_int_equal(again.outcome.intent.problem, IDEM_PROBLEM_AMOUNT_EXCEEDS);
}

static void a_stub_holds_its_order_number(void **state)
{
    struct fixture *fixture = *state;
    struct order order = shoes;
    struct call call;
    listed(fixture, IDEM_ENDPOINT_PAYMENTS_CREATE, "order-1", NULL, 1250);
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    order.key = "another-key";
    call_pay(fixture, &call, &order);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_FAILED);
    assert_int_equal(call.outcome.intent.problem, IDEM_PROBLEM_ORDER_EXISTS);

    order.order_no = "order-2";
    order.key = "a-third";
    call_pay(fixture, &call, &order);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_SEND);
}

static void expect_order_taken(struct fixture *fixture, const char *key, const char *order_no)
{
    struct order order = shoes;
    struct call call;
    order.key = key;
    order.order_no = order_no;
    call_pay(fixture, &call, &order);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.intent.problem, IDEM_PROBLEM_ORDER_EXISTS);
}

static void a_stub_holds_its_order_number_at_every_entry(void **state)
{
    struct fixture *fixture = *state;
    struct listing listing = {
        .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
        .key = "key-1",
        .order_no = "order-1",
        .entry = "gone",
        .amount_minor = 1250,
    };
    listing_run(fixture, &listing);
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    expect_order_taken(fixture, "another-key", "order-1");
}

static void refund(struct fixture *fixture, struct call *call, struct idem_uid payment_id)
{
    static char tail[32];
    struct act act = {
        .principal = "merchant-1",
        .key = "refund-1",
        .endpoint = IDEM_ENDPOINT_REFUNDS_CREATE,
        .payment_id = payment_id,
        .amount = "2.50",
    };
    call_act(fixture, call, &act);
    struct idem_str id = effect_id_of(call->item.command.scope, 'r', tail);
    call->item.command.accept.effect_id_tail = idem_str_slice(id, 1, id.len - 1);
    fixture_run_durable(fixture, call, 1);
}

static struct idem_payment payment_of(struct fixture *fixture, struct idem_uid id)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_PAYMENT, "merchant-1");
    read->id = id;
    fixture_read(fixture);
    assert_true(read->found);
    return read->payment;
}

static int64_t stubs(struct fixture *fixture)
{
    return ask(fixture, IDEM_READ_SUMMARY)->summary.stubs;
}

static void what_is_parked_keeps_its_stub_until_a_person_says_so(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    struct call verdict;
    listed(fixture, IDEM_ENDPOINT_PAYMENTS_CREATE, "key-1", NULL, 1000); /* Not as is asked. */
    listed(fixture, IDEM_ENDPOINT_REFUNDS_CREATE, "refund-1", "key-1", 250);
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    call_abandon(fixture, &call, "merchant-1", "key-1");
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_TOO_EARLY);
    assert_int_equal(call.outcome.intent.row, 0);

    claim(fixture, &call, "key-1");
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_PARKED);
    assert_int_equal(stubs(fixture), 2);
    expect_order_taken(fixture, "another-key", "key-1");
    resolve(fixture, &verdict, &call, IDEM_VERDICT_FAILED);
    assert_int_equal(verdict.outcome.release.problem, IDEM_PROBLEM_STATE_CONFLICT);
    resolve(fixture, &verdict, &call, IDEM_VERDICT_SUCCEEDED);
    assert_int_equal(verdict.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    struct idem_uid payment_id = verdict.outcome.intent.payment_id;
    assert_int_equal(payment_of(fixture, payment_id).captured_minor, 1000);
    assert_int_equal(payment_of(fixture, payment_id).refunded_minor, 250);
    assert_int_equal(stubs(fixture), 1);

    refund(fixture, &call, payment_id);
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    assert_int_equal(payment_of(fixture, payment_id).refunded_minor, 250);
    assert_int_equal(stubs(fixture), 0);
    expect_order_taken(fixture, "a-third", "key-1");
}

static void a_refund_that_comes_before_its_payment_is_found_by_it(void **state)
{
    struct fixture *fixture = *state;
    struct call first;
    struct call call;
    listed(fixture, IDEM_ENDPOINT_PAYMENTS_CREATE, "key-1", NULL, 1250);
    listed(fixture, IDEM_ENDPOINT_REFUNDS_CREATE, "refund-1", "key-1", 250);
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    refund(fixture, &first, fixture_uid(fixture)); /* A payment that is not here. */
    assert_int_equal(first.outcome.intent.state, IDEM_INTENT_PARKED);
    resolve(fixture, &call, &first, IDEM_VERDICT_SUCCEEDED);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_STATE_CONFLICT);

    claim(fixture, &call, "key-1");
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    struct idem_uid payment_id = call.outcome.intent.payment_id;
    assert_int_equal(payment_of(fixture, payment_id).refunded_minor, 250);
    resolve(fixture, &call, &first, IDEM_VERDICT_SUCCEEDED);
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    assert_true(idem_uid_equal(call.outcome.intent.payment_id, payment_id));
    assert_int_equal(payment_of(fixture, payment_id).refunded_minor, 250);
    assert_int_equal(stubs(fixture), 0);
}

static void left_as_a_copy(struct fixture *fixture)
{
    fixture_close(fixture);
    fixture_open(fixture);
    assert_true(fixture->store->restored);
}

static void listed_again_a_refund_moves_the_sums_that_now_have_room(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    struct call pending;
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    claim(fixture, &call, "key-1");
    settle(fixture, &call, IDEM_OUTCOME_SUCCESS);
    struct idem_uid payment_id = call.outcome.intent.payment_id;
    struct act act = {
        .principal = "merchant-1",
        .key = "refund-0",
        .endpoint = IDEM_ENDPOINT_REFUNDS_CREATE,
        .payment_id = payment_id,
    };
    call_act(fixture, &pending, &act); /* All of it, and on its way. */
    fixture_run_durable(fixture, &pending, 1);
    if (fixture->kind == FIXTURE_MEMORY) {
        return; /* It has no second opening. */
    }
    left_as_a_copy(fixture);
    listed(fixture, IDEM_ENDPOINT_REFUNDS_CREATE, "refund-1", "key-1", 1000);
    assert_int_equal(payment_of(fixture, payment_id).refunded_minor, 0);
    call_evidence(fixture, &call, &pending, IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL);
    fixture_run_durable(fixture, &call, 1);
    listed(fixture, IDEM_ENDPOINT_REFUNDS_CREATE, "refund-1", "key-1", 1000);
    listed(fixture, IDEM_ENDPOINT_REFUNDS_CREATE, "refund-1", "key-1", 1000);
    assert_int_equal(payment_of(fixture, payment_id).refunded_minor, 1000);
    assert_int_equal(stubs(fixture), 1);
}

static void what_waits_to_be_sent_under_a_number_that_was_used_is_parked(void **state)
{
    struct fixture *fixture = *state;
    struct order order = shoes;
    struct call claimed;
    struct call call;
    struct listing listing = {
        .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
        .key = "key-2",
        .order_no = "order-1",
        .entry = "sandbox",
        .amount_minor = 1250,
    };
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    order.no_slot = true;
    call_pay(fixture, &claimed, &order);
    fixture_run_durable(fixture, &claimed, 1);
    if (fixture->kind == FIXTURE_MEMORY) {
        return; /* It has no second opening. */
    }
    left_as_a_copy(fixture);
    listing_run(fixture, &listing);
    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    const struct idem_intent *intent = &claimed.outcome.intent;
    call_due(fixture, &call, intent->scope, intent->row);
    call.item.command.slot = true;
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_NONE);
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_PARKED);
}

#define CONFORM(function, setup) cmocka_unit_test_setup_teardown(function, setup, suite_teardown)
#define SUITE(setup)                                                                      \
    {                                                                                     \
        CONFORM(the_restored_mode_lasts_until_its_mark, setup),                           \
            CONFORM(what_the_copy_missed_settles_the_claim_that_comes_again, setup),      \
            CONFORM(a_listed_refund_moves_the_sums_of_a_payment_that_is_here, setup),     \
            CONFORM(a_stub_holds_its_order_number, setup),                                \
            CONFORM(a_stub_holds_its_order_number_at_every_entry, setup),                 \
            CONFORM(what_is_parked_keeps_its_stub_until_a_person_says_so, setup),         \
            CONFORM(a_refund_that_comes_before_its_payment_is_found_by_it, setup),        \
            CONFORM(listed_again_a_refund_moves_the_sums_that_now_have_room, setup),      \
            CONFORM(what_waits_to_be_sent_under_a_number_that_was_used_is_parked, setup), \
    }

/* Without an argument the stores that need no server; with "postgres" that one. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "postgres") == 0) {
        const struct CMUnitTest postgres[] = SUITE(setup_postgres);
        return cmocka_run_group_tests_name("restored: postgres", postgres, NULL, NULL);
    }
    const struct CMUnitTest memory[] = SUITE(setup_memory);
    const struct CMUnitTest sqlite[] = SUITE(setup_sqlite);
    int failed = cmocka_run_group_tests_name("restored: memory", memory, NULL, NULL);
    failed += cmocka_run_group_tests_name("restored: sqlite", sqlite, NULL, NULL);
    return failed == 0 ? 0 : 1;
}
