/*
 * What every store must do for operators and workers, whatever it keeps its rows in.
 *
 * Goal: retention takes what it may and nothing else, a person's verdict decides the cases, lists
 * and counts show what is not over, and credentials and marks are rows like any other.
 *
 * Method: as in store.c: real commands through the public door, decided by the real core, once for
 * each backend.
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

static int setup_kind(void **state, enum fixture_kind kind)
{
    static struct fixture fixture;
    fixture_init(&fixture, kind);
    fixture_open(&fixture);
    *state = &fixture;
    return 0;
}

static int setup_memory(void **state)
{
    return setup_kind(state, FIXTURE_MEMORY);
}

static int setup_sqlite(void **state)
{
    return setup_kind(state, FIXTURE_SQLITE);
}

static int setup_postgres(void **state)
{
    return setup_kind(state, FIXTURE_POSTGRES);
}

static int suite_teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

static void pay(struct fixture *fixture, struct call *call, const char *name)
{
    struct order order = shoes;
    order.key = name;
    order.order_no = name;
    call_pay(fixture, call, &order);
    fixture_run_durable(fixture, call, 1);
}

static void settle(struct fixture *fixture, const struct call *to, enum idem_outcome_kind outcome)
{
    struct call call;
    call_evidence(fixture, &call, to, IDEM_SOURCE_SEND, outcome);
    fixture_run_durable(fixture, &call, 1);
}

/* The provider names another amount: a case for a person. */
static void park(struct fixture *fixture, const struct call *to)
{
    struct call call;
    call_evidence(fixture, &call, to, IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    call.item.command.evidence.amount_minor += 1;
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_PARKED);
}

/* A record that no payment hangs on. */
static void abandon(struct fixture *fixture, struct call *call, const char *key)
{
    call_abandon(fixture, call, "merchant-1", key);
    fixture_run_durable(fixture, call, 1);
    assert_int_equal(call->outcome.intent.state, IDEM_INTENT_FAILED);
}

static void reap(struct fixture *fixture, struct call *call, const struct idem_due *due)
{
    struct idem_command *command = call_begin(fixture, call, IDEM_COMMAND_REAP);
    command->scope = due->scope;
    command->intent_row = due->row;
    command->reap.horizon_us = fixture->clock.wall_base_us;
    fixture_run_durable(fixture, call, 1);
}

static struct idem_read *ask(struct fixture *fixture, enum idem_read_kind kind)
{
    struct idem_read *read = fixture_ask(fixture, kind, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return read;
}

static struct idem_read *ask_operation(struct fixture *fixture, struct idem_uid id)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_ANY_OPERATION, "");
    read->id = id;
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return read;
}

static void a_record_becomes_a_tombstone_when_its_time_has_come(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call call;
    pay(fixture, &accept, "key-1");
    pay(fixture, &call, "open"); /* Not final: never touched. */
    settle(fixture, &accept, IDEM_OUTCOME_SUCCESS);
    struct idem_read *read = ask(fixture, IDEM_READ_REAP);
    assert_int_equal(read->due_count, 0);
    assert_int_equal(read->next_due_us, FIXTURE_START_US + fixture->rules.answer_retention_us);

    fixture->clock.wall_base_us = read->next_due_us;
    read = ask(fixture, IDEM_READ_REAP);
    assert_int_equal(read->due_count, 1);
    assert_int_equal(read->due[0].row, accept.outcome.intent.row);
    assert_int_equal(read->next_due_us, 0);
    struct idem_due due = read->due[0];
    reap(fixture, &call, &due);

    read = ask_operation(fixture, accept.outcome.intent.id);
    assert_true(read->found);
    assert_true(idem_intent_is_tombstone(&read->intent));
    assert_int_equal(read->intent.reap_us, 0); /* A payment is concerned: for ever. */
    assert_int_equal(read->intent.effect.request.len, 0);
    assert_int_equal(read->intent.answer.body.len, 0);
    EXPECT_TEXT(read->intent.key, "key-1");
    assert_int_equal(read->send_count, 0);
    assert_int_equal(read->event_total, 1);
    assert_int_equal(read->events[0].kind, IDEM_EVENT_EXPIRED);
    assert_int_equal(ask(fixture, IDEM_READ_REAP)->due_count, 0);

    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_ANSWER_EXPIRED);
}

static void a_tombstone_without_a_payment_goes_with_all_that_hangs_on_it(void **state)
{
    struct fixture *fixture = *state;
    struct call gone;
    struct call call;
    abandon(fixture, &gone, "key-1");
    fixture->clock.wall_base_us += fixture->rules.answer_retention_us;
    struct idem_due due = ask(fixture, IDEM_READ_REAP)->due[0];
    reap(fixture, &call, &due);
    struct idem_read *read = ask(fixture, IDEM_READ_REAP);
    assert_int_equal(read->due_count, 0);
    assert_int_equal(read->next_due_us, FIXTURE_START_US + fixture->rules.tombstone_us);

    fixture->clock.wall_base_us = read->next_due_us;
    reap(fixture, &call, &due);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_REPLY);
    assert_false(ask_operation(fixture, gone.outcome.intent.id)->found);
    reap(fixture, &call, &due); /* It ran before: nothing is left to do. */

    pay(fixture, &call, "key-1"); /* The key is new again, */
    read = ask_operation(fixture, call.outcome.intent.id);
    assert_int_equal(read->send_count, 1); /* with a history of its own. */
    assert_int_equal(read->event_total, 1);
}

static void a_record_that_moved_on_is_not_removed(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call call;
    pay(fixture, &accept, "key-1");
    struct idem_due due = {
        .row = accept.outcome.intent.row,
        .scope = accept.outcome.intent.scope,
    };
    fixture->clock.wall_base_us += 1000 * IDEM_US_PER_DAY;
    reap(fixture, &call, &due);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(fixture_operation(fixture, &accept)->intent.state, IDEM_INTENT_DISPATCHED);
}

static void more_than_fits_expires_in_parts(void **state)
{
    enum {
        COUNT = IDEM_READ_DUE_MAX + 6
    };
    struct fixture *fixture = *state;
    static char names[COUNT][16];
    struct call call;
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "name-%zu", i);
        abandon(fixture, &call, names[i]);
    }
    fixture->clock.wall_base_us += fixture->rules.answer_retention_us;
    struct idem_read *read = ask(fixture, IDEM_READ_REAP);
    assert_int_equal(read->due_count, IDEM_READ_DUE_MAX);
    struct idem_due due[IDEM_READ_DUE_MAX];
    memcpy(due, read->due, sizeof(due));
    for (size_t i = 0; i < IDEM_READ_DUE_MAX; i++) {
        reap(fixture, &call, &due[i]);
    }
    assert_int_equal(ask(fixture, IDEM_READ_REAP)->due_count, COUNT - IDEM_READ_DUE_MAX);
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

/* P12: no record is ever there without one, however early the first process dies. */
static void a_store_has_a_horizon_from_its_opening(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(fixture->store->horizon_us, FIXTURE_START_US);
}

/* P6: what was said before the wire was quiet stays refused, however late it is decided. */
static void a_verdict_speaks_of_when_it_was_said(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call call;
    pay(fixture, &accept, "key-1");
    settle(fixture, &accept, IDEM_OUTCOME_UNKNOWN);
    struct idem_command *command = call_begin(fixture, &call, IDEM_COMMAND_RESOLVE);
    command->scope = accept.outcome.intent.scope;
    command->resolve = (struct idem_resolve){
        .verdict = IDEM_VERDICT_FAILED,
        .asked_us = idem_clock_wall_us(&fixture->clock),
        .by = IDEM_STR("ops/anna"),
        .reason = IDEM_STR("not in the provider's console"),
    };
    fixture->clock.wall_base_us += IDEM_US_PER_DAY;
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_TOO_EARLY);
    resolve(fixture, &call, &accept, IDEM_VERDICT_FAILED);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_NONE);
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_FAILED);
}

/* The clock of whoever heard it may be wrong: what counts is how long ago that was. */
static void a_verdict_is_dated_by_the_stores_clock(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call call;
    pay(fixture, &accept, "key-1");
    settle(fixture, &accept, IDEM_OUTCOME_UNKNOWN);
    struct idem_command *command = call_begin(fixture, &call, IDEM_COMMAND_RESOLVE);
    command->scope = accept.outcome.intent.scope;
    command->resolve = (struct idem_resolve){
        .verdict = IDEM_VERDICT_FAILED,
        .asked_us = INT64_MAX, /* Years ahead. */
        .asked_mono_us = idem_clock_mono_us(&fixture->clock),
        .by = IDEM_STR("ops/anna"),
        .reason = IDEM_STR("not in the provider's console"),
    };
    int64_t said_us = idem_clock_wall_us(&fixture->clock);
    fixture->clock.wall_base_us += IDEM_US_PER_DAY;
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.item.command.resolve.asked_us, said_us);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_TOO_EARLY);
}

static void which_of_those_waited_for_are_over_is_one_answer(void **state)
{
    struct fixture *fixture = *state;
    struct call calls[5];
    struct idem_due waited[5];
    pay(fixture, &calls[0], "open");
    pay(fixture, &calls[1], "done");
    settle(fixture, &calls[1], IDEM_OUTCOME_SUCCESS);
    pay(fixture, &calls[2], "unknown");
    settle(fixture, &calls[2], IDEM_OUTCOME_UNKNOWN);
    pay(fixture, &calls[3], "declined");
    settle(fixture, &calls[3], IDEM_OUTCOME_REFUSED_FINAL);
    struct order order = shoes;
    order.key = "released";
    order.order_no = "released";
    order.impatient = true;
    call_pay(fixture, &calls[4], &order);
    fixture_run_durable(fixture, &calls[4], 1);
    settle(fixture, &calls[4], IDEM_OUTCOME_NOT_EXECUTED);
    for (size_t i = 0; i < 5; i++) {
        waited[i].scope = calls[i].outcome.intent.scope;
        waited[i].row = calls[i].outcome.intent.row;
    }
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_WAITED, "");
    read->waited = waited;
    read->waited_count = 5;
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_int_equal(read->waited_count, 3);
    assert_int_equal(waited[0].row, calls[1].outcome.intent.row);
    assert_int_equal(waited[1].row, calls[3].outcome.intent.row);
    assert_int_equal(waited[2].row, calls[4].outcome.intent.row);

    waited[0].row = 1000000; /* Gone. */
    waited[0].scope.bytes[0] ^= 1;
    read->waited_count = 1;
    fixture_read(fixture);
    assert_int_equal(read->waited_count, 1);
    read->waited_count = 0;
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_int_equal(read->waited_count, 0);

    read = fixture_ask(fixture, IDEM_READ_INTENT, "");
    read->scope = calls[4].outcome.intent.scope;
    fixture_read(fixture);
    assert_true(read->found);
    assert_int_equal(read->intent.state, IDEM_INTENT_RELEASED);
    read->scope.bytes[0] ^= 1;
    fixture_read(fixture);
    assert_false(read->found);
}

static void a_verdict_settles_and_decides_the_cases(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call call;
    pay(fixture, &accept, "key-1");
    park(fixture, &accept);
    struct idem_read *read = ask_operation(fixture, accept.outcome.intent.id);
    assert_int_equal(read->case_count, 1);
    assert_int_equal(read->cases[0].kind, IDEM_CASE_MISMATCH);
    assert_int_equal(read->cases[0].decided_us, 0);

    resolve(fixture, &call, &accept, IDEM_VERDICT_SUCCEEDED);
    assert_int_equal(call.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    read = ask_operation(fixture, accept.outcome.intent.id);
    assert_int_equal(read->case_count, 1);
    assert_int_equal(read->cases[0].decided_us, fixture->clock.wall_base_us);
    EXPECT_TEXT(read->cases[0].decided_by, "ops/anna");
    EXPECT_TEXT(read->cases[0].decision, "succeeded: seen in the provider's console");
    EXPECT_TEXT(read->cases[0].detail, "done, but another id, amount, currency or order number");
    assert_int_equal(ask(fixture, IDEM_READ_SUMMARY)->summary.cases_open, 0);

    fixture->clock.wall_base_us += fixture->rules.answer_retention_us;
    struct idem_due due = ask(fixture, IDEM_READ_REAP)->due[0];
    reap(fixture, &call, &due); /* What a person did is kept as long as the record. */
    read = ask_operation(fixture, accept.outcome.intent.id);
    size_t last = read->event_count - 1;
    assert_int_equal(read->events[last].kind, IDEM_EVENT_EXPIRED);
    assert_true(last > 0);
    for (size_t i = 0; i < last; i++) {
        assert_int_equal(read->events[i].cause, IDEM_CAUSE_OPERATOR);
    }
}

static void an_open_case_keeps_the_record(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call call;
    pay(fixture, &accept, "key-1");
    settle(fixture, &accept, IDEM_OUTCOME_REFUSED_FINAL);
    call_evidence(fixture, &call, &accept, IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &call, 1); /* A contradiction. */
    assert_int_equal(ask(fixture, IDEM_READ_SUMMARY)->summary.cases_open, 1);

    fixture->clock.wall_base_us += fixture->rules.answer_retention_us;
    struct idem_due due = ask(fixture, IDEM_READ_REAP)->due[0];
    reap(fixture, &call, &due);
    struct idem_read *read = ask_operation(fixture, accept.outcome.intent.id);
    assert_false(idem_intent_is_tombstone(&read->intent));
    assert_int_equal(read->intent.reap_us, fixture->clock.wall_base_us + IDEM_US_PER_DAY);
}

static size_t list(struct fixture *fixture, enum idem_list_filter filter)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_LIST, "");
    read->filter = filter;
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_false(read->more);
    return read->entry_count;
}

/* One intent in every state, and a final one with a case; `calls` in the order of rows. */
static void one_of_each(struct fixture *fixture, struct call calls[8])
{
    struct order order = shoes;
    struct call call;
    order.key = "claimed";
    order.order_no = "claimed";
    order.no_slot = true;
    call_pay(fixture, &calls[0], &order);
    fixture_run_durable(fixture, &calls[0], 1);
    pay(fixture, &calls[1], "dispatched");
    pay(fixture, &calls[2], "unknown");
    settle(fixture, &calls[2], IDEM_OUTCOME_UNKNOWN);
    pay(fixture, &calls[3], "parked");
    fixture->clock.wall_base_us += 5; /* The unknown one is older. */
    park(fixture, &calls[3]);
    order = shoes;
    order.impatient = true;
    call_pay(fixture, &calls[4], &order);
    fixture_run_durable(fixture, &calls[4], 1);
    settle(fixture, &calls[4], IDEM_OUTCOME_NOT_EXECUTED);
    pay(fixture, &calls[5], "succeeded");
    settle(fixture, &calls[5], IDEM_OUTCOME_SUCCESS);
    pay(fixture, &calls[6], "contradicted");
    settle(fixture, &calls[6], IDEM_OUTCOME_REFUSED_FINAL);
    call_evidence(fixture, &call, &calls[6], IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &call, 1);
    abandon(fixture, &calls[7], "abandoned");
}

static void a_list_shows_what_its_filter_asks_for(void **state)
{
    struct fixture *fixture = *state;
    static struct call calls[8];
    one_of_each(fixture, calls);
    const struct idem_read *read = &fixture->read;

    assert_int_equal(list(fixture, IDEM_LIST_OPEN), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(read->entries[i].row, calls[i].outcome.intent.row);
    }
    assert_int_equal(list(fixture, IDEM_LIST_PROCESSING), 2);
    assert_int_equal(read->entries[0].state, IDEM_INTENT_CLAIMED);
    assert_int_equal(read->entries[1].state, IDEM_INTENT_DISPATCHED);
    assert_int_equal(read->entries[1].opened.kind, IDEM_CASE_NONE);
    assert_int_equal(list(fixture, IDEM_LIST_UNKNOWN), 1);
    assert_int_equal(read->entries[0].unknown_since_us, FIXTURE_START_US);
    assert_int_equal(list(fixture, IDEM_LIST_RELEASED), 1);
    assert_int_equal(list(fixture, IDEM_LIST_CASES), 2);
    assert_int_equal(read->entries[0].opened.kind, IDEM_CASE_MISMATCH);
    assert_int_equal(read->entries[1].opened.kind, IDEM_CASE_CONTRADICTION);
    assert_int_equal(read->entries[1].state, IDEM_INTENT_FAILED);

    assert_int_equal(list(fixture, IDEM_LIST_PARKED), 1);
    const struct idem_entry *entry = &read->entries[0];
    const struct idem_intent *intent = &calls[3].outcome.intent;
    assert_true(idem_uid_equal(entry->id, intent->id));
    assert_true(idem_uid_equal(entry->payment_id, intent->payment_id));
    EXPECT_TEXT(entry->principal, "merchant-1");
    EXPECT_TEXT(entry->entry, "sandbox");
    EXPECT_TEXT(entry->currency, "EUR");
    EXPECT_TEXT(entry->opened.detail, "done, but another id, amount, currency or order number");
    assert_int_equal(entry->endpoint, IDEM_ENDPOINT_PAYMENTS_CREATE);
    assert_int_equal(entry->amount_minor, 1250);
    assert_int_equal(entry->created_us, FIXTURE_START_US);
    assert_true(entry->due_us > fixture->clock.wall_base_us);
}

/* Walks all pages of a list; every row comes once and in order. */
static int64_t pages_count(struct fixture *fixture, enum idem_list_filter filter)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_LIST, "");
    int64_t count = 0;
    read->filter = filter;
    do {
        fixture_read(fixture);
        assert_int_equal(read->answer, IDEM_STORE_DURABLE);
        for (size_t entry = 0; entry < read->entry_count; entry++) {
            assert_true(read->entries[entry].row > read->after_row);
            read->after_row = read->entries[entry].row;
            count += 1;
        }
    } while (read->more);
    return count;
}

static void a_list_comes_in_pages(void **state)
{
    enum {
        COUNT = 2 * IDEM_READ_ENTRIES_MAX + 3
    };
    struct fixture *fixture = *state;
    static char names[COUNT][16];
    struct call call;
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "name-%zu", i);
        pay(fixture, &call, names[i]);
        if (i % 2 == 0) {
            park(fixture, &call);
        }
    }
    assert_int_equal(pages_count(fixture, IDEM_LIST_OPEN), COUNT);
    assert_int_equal(pages_count(fixture, IDEM_LIST_PARKED), (COUNT + 1) / 2);
    assert_int_equal(pages_count(fixture, IDEM_LIST_CASES), (COUNT + 1) / 2);
}

static void the_operations_of_a_payment_are_its_own(void **state)
{
    struct fixture *fixture = *state;
    struct call payment;
    struct call other;
    struct call refund;
    pay(fixture, &payment, "key-1");
    settle(fixture, &payment, IDEM_OUTCOME_SUCCESS);
    pay(fixture, &other, "other");
    struct act act = {
        .principal = "merchant-1",
        .key = "refund-1",
        .endpoint = IDEM_ENDPOINT_REFUNDS_CREATE,
        .payment_id = payment.outcome.intent.payment_id,
        .amount = "1.00",
    };
    call_act(fixture, &refund, &act);
    fixture_run_durable(fixture, &refund, 1);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_OF_PAYMENT, "");
    read->id = payment.outcome.intent.payment_id;
    fixture_read(fixture);
    assert_true(read->found);
    assert_int_equal(read->entry_count, 2);
    assert_int_equal(read->entries[0].row, payment.outcome.intent.row);
    assert_int_equal(read->entries[1].row, refund.outcome.intent.row);
    assert_int_equal(read->payment.refund_pending_minor, 100);

    read = fixture_ask(fixture, IDEM_READ_OF_PAYMENT, "");
    read->id = payment.outcome.intent.id; /* Not a payment's. */
    fixture_read(fixture);
    assert_false(read->found);
    assert_int_equal(read->entry_count, 0);
}

static void a_summary_counts_what_is_not_over(void **state)
{
    struct fixture *fixture = *state;
    static struct call calls[8];
    struct idem_summary summary = ask(fixture, IDEM_READ_SUMMARY)->summary;
    assert_int_equal(summary.oldest_due_us, 0);
    assert_int_equal(summary.oldest_unknown_us, 0);

    one_of_each(fixture, calls);
    summary = ask(fixture, IDEM_READ_SUMMARY)->summary;
    assert_int_equal(summary.by_state[IDEM_INTENT_CLAIMED], 1);
    assert_int_equal(summary.by_state[IDEM_INTENT_DISPATCHED], 1);
    assert_int_equal(summary.by_state[IDEM_INTENT_UNKNOWN], 1);
    assert_int_equal(summary.by_state[IDEM_INTENT_PARKED], 1);
    assert_int_equal(summary.by_state[IDEM_INTENT_RELEASED], 1);
    assert_int_equal(summary.by_state[IDEM_INTENT_SUCCEEDED], 0);
    assert_int_equal(summary.oldest_unknown_us, FIXTURE_START_US);
    assert_int_equal(summary.oldest_due_us, calls[0].outcome.intent.due_us);
    assert_int_equal(summary.cases_open, 2);
    assert_int_equal(summary.stubs, 0);
    if (fixture->kind == FIXTURE_SQLITE) {
        assert_true(summary.bytes > 0);
        assert_true(summary.bytes_free >= 0);
    }
}

static void credential(struct fixture *fixture,
                       struct call *call,
                       enum idem_credential_action action,
                       unsigned char id,
                       unsigned char secret)
{
    struct idem_command *command = call_begin(fixture, call, IDEM_COMMAND_CREDENTIAL);
    command->credential = (struct idem_credential_change){
        .action = action,
        .row = {
            .id = { .bytes = { id } },
            .principal = IDEM_STR("merchant-1"),
            .role = IDEM_ROLE_MERCHANT,
            .secret_sha256 = { .bytes = { secret } },
            .providers = IDEM_STR("sandbox "),
            .label = IDEM_STR("till 4"),
        },
        .by = IDEM_STR("ops/anna"),
    };
    fixture_run_durable(fixture, call, 1);
    assert_int_equal(call->outcome.release.kind, IDEM_RELEASE_REPLY);
}

static void a_credential_is_added_once_and_revoked_for_ever(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    credential(fixture, &call, IDEM_CREDENTIAL_ADD, 1, 1);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_NONE);
    credential(fixture, &call, IDEM_CREDENTIAL_ADD, 1, 1);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_NONE);
    credential(fixture, &call, IDEM_CREDENTIAL_ADD, 1, 2);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_CREDENTIAL_CONFLICT);
    credential(fixture, &call, IDEM_CREDENTIAL_ADD, 2, 1);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_CREDENTIAL_CONFLICT);
    credential(fixture, &call, IDEM_CREDENTIAL_REVOKE, 2, 0);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_NOT_FOUND);

    struct idem_read *read = ask(fixture, IDEM_READ_CREDENTIALS);
    assert_int_equal(read->credential_count, 1);
    EXPECT_TEXT(read->credentials[0].principal, "merchant-1");
    EXPECT_TEXT(read->credentials[0].providers, "sandbox ");
    EXPECT_TEXT(read->credentials[0].label, "till 4");
    EXPECT_TEXT(read->credentials[0].created_by, "ops/anna");
    assert_int_equal(read->credentials[0].secret_sha256.bytes[0], 1);
    assert_int_equal(read->credentials[0].revoked_us, 0);

    fixture->clock.wall_base_us += 7;
    credential(fixture, &call, IDEM_CREDENTIAL_REVOKE, 1, 0);
    fixture->clock.wall_base_us += 7;
    credential(fixture, &call, IDEM_CREDENTIAL_REVOKE, 1, 0);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_NONE);
    read = ask(fixture, IDEM_READ_CREDENTIALS);
    assert_int_equal(read->credentials[0].revoked_us, FIXTURE_START_US + 7);
    EXPECT_TEXT(read->credentials[0].revoked_by, "ops/anna");
    credential(fixture, &call, IDEM_CREDENTIAL_ADD, 3, 1);
    assert_int_equal(call.outcome.release.problem, IDEM_PROBLEM_CREDENTIAL_CONFLICT);
}

static void credentials_come_in_pages(void **state)
{
    enum {
        COUNT = IDEM_READ_CREDENTIALS_MAX + 3
    };
    struct fixture *fixture = *state;
    struct call call;
    for (int i = 1; i <= COUNT; i++) {
        credential(fixture, &call, IDEM_CREDENTIAL_ADD, (unsigned char)i, (unsigned char)i);
    }
    struct idem_read *read = ask(fixture, IDEM_READ_CREDENTIALS);
    assert_int_equal(read->credential_count, IDEM_READ_CREDENTIALS_MAX);
    assert_true(read->more);
    read->after_row = read->credentials[read->credential_count - 1].row;
    fixture_read(fixture);
    assert_int_equal(read->credential_count, COUNT - IDEM_READ_CREDENTIALS_MAX);
    assert_false(read->more);
}

static void the_longest_credentials_fit_a_page_or_come_with_the_next(void **state)
{
    struct fixture *fixture = *state;
    static char grants[IDEM_GRANTS_MAX];
    static char names[IDEM_PRINCIPAL_MAX + IDEM_LABEL_MAX + 1];
    struct call call;
    memset(grants, 'g', sizeof(grants));
    memset(names, 'n', sizeof(names));
    for (unsigned char i = 1; i <= IDEM_READ_CREDENTIALS_MAX; i++) {
        credential(fixture, &call, IDEM_CREDENTIAL_ADD, i, i);
        struct idem_command *command = call_begin(fixture, &call, IDEM_COMMAND_CREDENTIAL);
        command->credential.action = IDEM_CREDENTIAL_ADD;
        command->credential.row = (struct idem_credential_row){
            .id = { .bytes = { (unsigned char)(100 + i) } },
            .secret_sha256 = { .bytes = { (unsigned char)(100 + i) } },
            .role = IDEM_ROLE_MERCHANT,
            .principal = { .data = names, .len = IDEM_PRINCIPAL_MAX },
            .label = { .data = names, .len = IDEM_LABEL_MAX },
            .providers = { .data = grants, .len = sizeof(grants) },
        };
        command->credential.by = (struct idem_str){ .data = names, .len = sizeof(names) };
        fixture_run_durable(fixture, &call, 1);
    }
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_CREDENTIALS, "");
    size_t count = 0;
    do {
        fixture_read(fixture);
        assert_int_equal(read->answer, IDEM_STORE_DURABLE);
        assert_true(read->credential_count > 0);
        count += read->credential_count;
        read->after_row = read->credentials[read->credential_count - 1].row;
    } while (read->more);
    assert_int_equal(count, 2 * IDEM_READ_CREDENTIALS_MAX);
}

static void expect_place(const struct idem_place *place, const char *entry, const char *account)
{
    EXPECT_TEXT(place->entry, entry);
    EXPECT_TEXT(place->account, account);
    EXPECT_TEXT(place->region, "eu");
}

static void each_place_of_a_payment_is_named_once(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    assert_int_equal(ask(fixture, IDEM_READ_PLACES)->place_count, 0);
    pay(fixture, &call, "key-1");
    pay(fixture, &call, "key-2");
    settle(fixture, &call, IDEM_OUTCOME_SUCCESS);
    fixture->provider.account = IDEM_STR("acct-2");
    pay(fixture, &call, "key-3");
    struct idem_read *read = ask(fixture, IDEM_READ_PLACES);
    assert_int_equal(read->place_count, 2);
    assert_false(read->more);
    expect_place(&read->places[0], "sandbox", "acct-1");
    expect_place(&read->places[1], "sandbox", "acct-2");
}

static void more_places_than_fit_are_said_to_be(void **state)
{
    struct fixture *fixture = *state;
    char names[IDEM_READ_PLACES_MAX + 1][16];
    struct call call;
    for (size_t i = 0; i <= IDEM_READ_PLACES_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "name-%zu", i);
        fixture->provider.account = idem_str_from(names[i]);
        assert_false(ask(fixture, IDEM_READ_PLACES)->more);
        pay(fixture, &call, names[i]);
    }
    struct idem_read *read = ask(fixture, IDEM_READ_PLACES);
    assert_int_equal(read->place_count, IDEM_READ_PLACES_MAX);
    assert_true(read->more);
}

static void a_contradiction_that_is_told_again_opens_one_case(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call call;
    pay(fixture, &accept, "key-1");
    settle(fixture, &accept, IDEM_OUTCOME_REFUSED_FINAL);
    for (int i = 0; i < 3; i++) {
        call_evidence(fixture, &call, &accept, IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
        fixture_run_durable(fixture, &call, 1);
    }
    assert_int_equal(ask_operation(fixture, accept.outcome.intent.id)->case_count, 1);
    assert_int_equal(ask(fixture, IDEM_READ_SUMMARY)->summary.cases_open, 1);
    resolve(fixture, &call, &accept, IDEM_VERDICT_NOTED);
    call_evidence(fixture, &call, &accept, IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(ask_operation(fixture, accept.outcome.intent.id)->case_count, 2);
}

#define CONFORM(function, setup) cmocka_unit_test_setup_teardown(function, setup, suite_teardown)
#define SUITE(setup)                                                                      \
    {                                                                                     \
        CONFORM(a_record_becomes_a_tombstone_when_its_time_has_come, setup),              \
            CONFORM(a_tombstone_without_a_payment_goes_with_all_that_hangs_on_it, setup), \
            CONFORM(a_record_that_moved_on_is_not_removed, setup),                        \
            CONFORM(more_than_fits_expires_in_parts, setup),                              \
            CONFORM(a_store_has_a_horizon_from_its_opening, setup),                       \
            CONFORM(a_verdict_speaks_of_when_it_was_said, setup),                         \
            CONFORM(a_verdict_is_dated_by_the_stores_clock, setup),                       \
            CONFORM(which_of_those_waited_for_are_over_is_one_answer, setup),             \
            CONFORM(a_verdict_settles_and_decides_the_cases, setup),                      \
            CONFORM(an_open_case_keeps_the_record, setup),                                \
            CONFORM(a_list_shows_what_its_filter_asks_for, setup),                        \
            CONFORM(a_list_comes_in_pages, setup),                                        \
            CONFORM(the_operations_of_a_payment_are_its_own, setup),                      \
            CONFORM(a_summary_counts_what_is_not_over, setup),                            \
            CONFORM(a_credential_is_added_once_and_revoked_for_ever, setup),              \
            CONFORM(credentials_come_in_pages, setup),                                    \
            CONFORM(the_longest_credentials_fit_a_page_or_come_with_the_next, setup),     \
            CONFORM(each_place_of_a_payment_is_named_once, setup),                        \
            CONFORM(more_places_than_fit_are_said_to_be, setup),                          \
            CONFORM(a_contradiction_that_is_told_again_opens_one_case, setup),            \
    }

/* Without an argument the stores that need no server; with "postgres" that one. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "postgres") == 0) {
        const struct CMUnitTest postgres[] = SUITE(setup_postgres);
        return cmocka_run_group_tests_name("upkeep: postgres", postgres, NULL, NULL);
    }
    const struct CMUnitTest memory[] = SUITE(setup_memory);
    const struct CMUnitTest sqlite[] = SUITE(setup_sqlite);
    int failed = cmocka_run_group_tests_name("upkeep: memory", memory, NULL, NULL);
    failed += cmocka_run_group_tests_name("upkeep: sqlite", sqlite, NULL, NULL);
    return failed == 0 ? 0 : 1;
}
