/*
 * The guards of every backend, one by one.
 *
 * Goal: a write that no longer fits is a miss and never a silent success: ids, scopes and numbers
 * once, versions compared, and after a rollback nothing of it is there. With one writer the engine
 * never provokes most of these; the guards must hold all the same (P7, P10).
 *
 * Method: straight through the rows port, the same cases on each backend. A letter is one row.
 */
#include "store/rows.h"

#include "lib/test.h"
#include "store/memory/memory_internal.h"
#include "store/sqlite/sqlite_internal.h"
#include "unit/store/fixture.h"

static char kept_memory[65536];
static struct idem_buf kept;

static struct idem_intent_write intent_named(uint8_t id, uint8_t scope)
{
    return (struct idem_intent_write){
        .write = IDEM_WRITE_INSERT,
        .row = {
            .id = { .bytes = { id } },
            .scope = { .bytes = { scope } },
            .principal = IDEM_STR("merchant-1"),
            .key = IDEM_STR("key-1"),
            .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
            .state = IDEM_INTENT_UNKNOWN,
            .version = 1,
            .due_us = 5,
        },
    };
}

static struct idem_payment_write payment_named(uint8_t id, enum idem_payment_state state)
{
    return (struct idem_payment_write){
        .write = IDEM_WRITE_INSERT,
        .row = {
            .id = { .bytes = { id } },
            .version = 1,
            .state = state,
            .principal = IDEM_STR("merchant-1"),
            .order_no = IDEM_STR("order-1"),
            .capture_mode = IDEM_CAPTURE_AUTOMATIC,
            .amount_minor = 100,
        },
    };
}

static struct idem_refund_write refund_named(uint8_t id, enum idem_refund_state state)
{
    return (struct idem_refund_write){
        .write = IDEM_WRITE_INSERT,
        .row = {
            .id = { .bytes = { id } },
            .version = 1,
            .state = state,
            .payment_row = 1,
            .principal = IDEM_STR("merchant-1"),
            .refund_no = IDEM_STR("no-1"),
            .amount_minor = 100,
        },
    };
}

static void an_intent_is_claimed_once(struct idem_rows *rows)
{
    struct idem_intent_write first = intent_named('a', 'A');
    struct idem_intent_write same_scope = intent_named('b', 'A');
    struct idem_intent_write same_id = intent_named('a', 'B');
    struct idem_intent_write other = intent_named('b', 'B');
    assert_int_equal(rows->ops->write_intent(rows, &first), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &same_scope), IDEM_ROWS_MISS);
    assert_int_equal(rows->ops->write_intent(rows, &same_id), IDEM_ROWS_MISS);
    assert_int_equal(rows->ops->write_intent(rows, &other), IDEM_ROWS_OK);
    assert_int_equal(first.row.row, 1);
    assert_int_equal(other.row.row, 2);
}

static void an_update_needs_the_version_before_it(struct idem_rows *rows)
{
    struct idem_intent_write write = intent_named('a', 'A');
    assert_int_equal(rows->ops->write_intent(rows, &write), IDEM_ROWS_OK);
    write.write = IDEM_WRITE_UPDATE;
    write.row.version = 2;
    assert_int_equal(rows->ops->write_intent(rows, &write), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &write), IDEM_ROWS_MISS); /* Once. */
    write.row.version = 4;
    assert_int_equal(rows->ops->write_intent(rows, &write), IDEM_ROWS_MISS);
    write.row.version = 3;
    write.row.row = 77;
    assert_int_equal(rows->ops->write_intent(rows, &write), IDEM_ROWS_MISS);
}

static void payments_and_refunds_compare_versions_too(struct idem_rows *rows)
{
    struct idem_payment_write payment = payment_named('a', IDEM_PAYMENT_PENDING);
    struct idem_refund_write refund = refund_named('a', IDEM_REFUND_PENDING);
    assert_int_equal(rows->ops->write_payment(rows, &payment), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_refund(rows, &refund), IDEM_ROWS_OK);
    payment.write = IDEM_WRITE_UPDATE;
    refund.write = IDEM_WRITE_UPDATE;
    payment.row.version = 3;
    refund.row.version = 3;
    assert_int_equal(rows->ops->write_payment(rows, &payment), IDEM_ROWS_MISS);
    assert_int_equal(rows->ops->write_refund(rows, &refund), IDEM_ROWS_MISS);
    payment.row.version = 2;
    refund.row.version = 2;
    assert_int_equal(rows->ops->write_payment(rows, &payment), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_refund(rows, &refund), IDEM_ROWS_OK);
}

static void an_order_number_is_held_once(struct idem_rows *rows)
{
    struct idem_payment_write failed = payment_named('a', IDEM_PAYMENT_FAILED);
    struct idem_payment_write canceled = payment_named('b', IDEM_PAYMENT_CANCELED);
    struct idem_payment_write holder = payment_named('c', IDEM_PAYMENT_EXPIRED);
    struct idem_payment_write second = payment_named('d', IDEM_PAYMENT_PENDING);
    struct idem_payment_write same_id = payment_named('c', IDEM_PAYMENT_FAILED);
    assert_int_equal(rows->ops->write_payment(rows, &failed), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_payment(rows, &canceled), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_payment(rows, &holder), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_payment(rows, &second), IDEM_ROWS_MISS);
    assert_int_equal(rows->ops->write_payment(rows, &same_id), IDEM_ROWS_MISS);

    failed.write = IDEM_WRITE_UPDATE; /* Nor can one take it back by moving. */
    failed.row.version = 2;
    failed.row.state = IDEM_PAYMENT_CAPTURED;
    assert_int_equal(rows->ops->write_payment(rows, &failed), IDEM_ROWS_MISS);

    struct idem_rows_key key = {
        .principal = IDEM_STR("merchant-1"),
        .number = IDEM_STR("order-1"),
    };
    struct idem_payment found = { .row = 0 };
    assert_int_equal(rows->ops->find_payment(rows, IDEM_FIND_HOLDER, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, holder.row.row);
    assert_int_equal(rows->ops->find_payment(rows, IDEM_FIND_NEWEST_PAST, &key, &found),
                     IDEM_ROWS_OK);
    assert_int_equal(found.row, canceled.row.row);
}

static void a_refund_number_is_held_once(struct idem_rows *rows)
{
    struct idem_refund_write failed = refund_named('a', IDEM_REFUND_FAILED);
    struct idem_refund_write holder = refund_named('b', IDEM_REFUND_SUCCEEDED);
    struct idem_refund_write second = refund_named('c', IDEM_REFUND_PENDING);
    struct idem_refund_write elsewhere = refund_named('c', IDEM_REFUND_PENDING);
    struct idem_refund_write nameless = refund_named('d', IDEM_REFUND_PENDING);
    struct idem_refund_write nameless_too = refund_named('e', IDEM_REFUND_PENDING);
    elsewhere.row.payment_row = 2;
    nameless.row.refund_no = IDEM_STR("");
    nameless_too.row.refund_no = IDEM_STR("");
    assert_int_equal(rows->ops->write_refund(rows, &failed), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_refund(rows, &holder), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_refund(rows, &second), IDEM_ROWS_MISS);
    assert_int_equal(rows->ops->write_refund(rows, &elsewhere), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_refund(rows, &nameless), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_refund(rows, &nameless_too), IDEM_ROWS_OK);
}

static void a_send_is_granted_once_and_only_a_granted_one_resolves(struct idem_rows *rows)
{
    struct idem_intent_write intent = intent_named('a', 'A');
    struct idem_send_write send = {
        .write = IDEM_WRITE_UPDATE,
        .row = { .no = 1, .state = IDEM_SEND_OPEN, .granted_us = 3 },
    };
    struct idem_send sends[IDEM_SENDS_MAX];
    size_t count = 0;
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_send(rows, 1, &send), IDEM_ROWS_MISS);
    for (uint32_t no = 1; no <= IDEM_SENDS_MAX; no++) {
        send.write = IDEM_WRITE_INSERT;
        send.row.no = no;
        assert_int_equal(rows->ops->write_send(rows, 1, &send), IDEM_ROWS_OK);
        assert_int_equal(rows->ops->write_send(rows, 1, &send), IDEM_ROWS_MISS);
    }
    send.write = IDEM_WRITE_UPDATE;
    send.row = (struct idem_send){ .no = 2, .state = IDEM_SEND_REFUSED, .granted_us = 99 };
    assert_int_equal(rows->ops->write_send(rows, 1, &send), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->find_sends(rows, 1, sends, &count), IDEM_ROWS_OK);
    assert_int_equal(count, IDEM_SENDS_MAX);
    assert_int_equal(sends[0].state, IDEM_SEND_OPEN);
    assert_int_equal(sends[1].state, IDEM_SEND_REFUSED);
    assert_int_equal(sends[1].granted_us, 3); /* Only the state moves. */
    for (uint32_t i = 0; i < IDEM_SENDS_MAX; i++) {
        assert_int_equal(sends[i].no, i + 1);
    }
}

static void a_case_may_be_put_again(struct idem_rows *rows)
{
    struct idem_intent_write intent = intent_named('a', 'A');
    struct idem_case opened = { .kind = IDEM_CASE_MISMATCH, .id = { .bytes = { 'a' } } };
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->add_case(rows, 1, &opened), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->add_case(rows, 1, &opened), IDEM_ROWS_OK);
}

static void an_intent_goes_with_its_version_and_all_below_it(struct idem_rows *rows)
{
    struct idem_intent_write intent = intent_named('a', 'A');
    struct idem_intent_write other = intent_named('b', 'B');
    struct idem_send_write send = {
        .write = IDEM_WRITE_INSERT,
        .row = { .no = 1, .state = IDEM_SEND_OPEN },
    };
    struct idem_event event = { .kind = IDEM_EVENT_ASKED, .cause = IDEM_CAUSE_OPERATOR };
    struct idem_case opened = { .kind = IDEM_CASE_MISMATCH, .id = { .bytes = { 'a' } } };
    struct idem_rows_key key = { .scope = { .bytes = { 'A' } } };
    struct idem_intent found = { .row = 0 };
    uint32_t kinds = 1;
    uint32_t decided_kinds = 1;
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &other), IDEM_ROWS_OK);
    int64_t row = intent.row.row;
    assert_int_equal(rows->ops->write_send(rows, row, &send), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->add_event(rows, row, &event), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->add_case(rows, row, &opened), IDEM_ROWS_OK);

    intent.write = IDEM_WRITE_DELETE;
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_MISS);
    intent.row.version = 2;
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_MISS); /* Once. */
    assert_int_equal(rows->ops->find_intent(rows, IDEM_FIND_BY_SCOPE, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, 0);
    assert_int_equal(rows->ops->find_case_kinds(rows, row, &kinds, &decided_kinds), IDEM_ROWS_OK);
    assert_int_equal(kinds | decided_kinds, 0);
    key.scope.bytes[0] = 'B';
    assert_int_equal(rows->ops->find_intent(rows, IDEM_FIND_BY_SCOPE, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, other.row.row);
}

static void history_is_forgotten_but_for_what_a_person_did(struct idem_rows *rows)
{
    static struct idem_read read;
    struct idem_intent_write intent = intent_named('a', 'A');
    struct idem_send_write send = {
        .write = IDEM_WRITE_INSERT,
        .row = { .no = 1, .state = IDEM_SEND_OPEN },
    };
    struct idem_send sends[IDEM_SENDS_MAX];
    size_t count = 9;
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_send(rows, 1, &send), IDEM_ROWS_OK);
    for (int64_t at = 1; at <= 9; at++) {
        enum idem_cause cause = at % 3 == 0 ? IDEM_CAUSE_OPERATOR : IDEM_CAUSE_TIMER;
        struct idem_event event = { .kind = IDEM_EVENT_ASKED, .cause = cause, .at_us = at };
        assert_int_equal(rows->ops->add_event(rows, 1, &event), IDEM_ROWS_OK);
    }
    assert_int_equal(rows->ops->forget_history(rows, 1), IDEM_ROWS_OK);
    struct idem_event event = {
        .kind = IDEM_EVENT_EXPIRED,
        .cause = IDEM_CAUSE_TIMER,
        .at_us = 10,
    };
    assert_int_equal(rows->ops->add_event(rows, 1, &event), IDEM_ROWS_OK);

    assert_int_equal(rows->ops->find_sends(rows, 1, sends, &count), IDEM_ROWS_OK);
    assert_int_equal(count, 0);
    assert_int_equal(rows->ops->find_events(rows, 1, &read), IDEM_ROWS_OK);
    assert_int_equal(read.event_total, 4);
    static const int64_t left[] = { 3, 6, 9, 10 };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(read.events[i].at_us, left[i]);
    }
}

static void open_cases_are_decided_together_and_once(struct idem_rows *rows)
{
    static struct idem_read read;
    struct idem_intent_write intent = intent_named('a', 'A');
    struct idem_case decided = { .decided_us = 7, .decided_by = IDEM_STR("anna") };
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    for (uint8_t i = 1; i <= 3; i++) {
        struct idem_case opened = { .kind = IDEM_CASE_MISMATCH, .id = { .bytes = { i } } };
        assert_int_equal(rows->ops->add_case(rows, 1, &opened), IDEM_ROWS_OK);
        if (i == 2) {
            assert_int_equal(rows->ops->decide_cases(rows, 1, &decided), IDEM_ROWS_OK);
        }
    }
    decided.decided_us = 8;
    decided.decision = IDEM_STR("noted: again");
    assert_int_equal(rows->ops->decide_cases(rows, 1, &decided), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->find_cases(rows, 1, &read), IDEM_ROWS_OK);
    assert_int_equal(read.case_count, 3);
    assert_int_equal(read.cases[0].decided_us, 8); /* Newest first. */
    EXPECT_TEXT(read.cases[0].decision, "noted: again");
    assert_int_equal(read.cases[1].decided_us, 7);
    assert_int_equal(read.cases[2].decided_us, 7);
    EXPECT_TEXT(read.cases[2].decided_by, "anna");
}

static void cases_are_told_by_kind(struct idem_rows *rows)
{
    static const enum idem_case_kind kinds[] = { IDEM_CASE_NO_ROOM, IDEM_CASE_MISMATCH,
                                                 IDEM_CASE_NO_ROOM };
    struct idem_intent_write intent = intent_named('a', 'A');
    struct idem_intent_write other = intent_named('b', 'B');
    struct idem_case decided = { .decided_us = 7, .decided_by = IDEM_STR("anna") };
    uint32_t found = 0;
    uint32_t found_decided = 1;
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &other), IDEM_ROWS_OK);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(kinds); i++) {
        struct idem_case opened = { .kind = kinds[i], .opened_us = 1 };
        opened.id.bytes[0] = (uint8_t)i;
        assert_int_equal(rows->ops->add_case(rows, intent.row.row, &opened), IDEM_ROWS_OK);
    }
    assert_int_equal(rows->ops->find_case_kinds(rows, intent.row.row, &found, &found_decided),
                     IDEM_ROWS_OK);
    assert_int_equal(found_decided, 0);
    assert_int_equal(found, 1U << IDEM_CASE_NO_ROOM | 1U << IDEM_CASE_MISMATCH);
    assert_int_equal(rows->ops->find_case_kinds(rows, other.row.row, &found, &found_decided),
                     IDEM_ROWS_OK);
    assert_int_equal(found, 0);
    assert_int_equal(rows->ops->decide_cases(rows, intent.row.row, &decided), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->find_case_kinds(rows, intent.row.row, &found, &found_decided),
                     IDEM_ROWS_OK);
    assert_int_equal(found, 0);
    assert_int_equal(found_decided, 1U << IDEM_CASE_NO_ROOM | 1U << IDEM_CASE_MISMATCH);
}

static struct idem_stub_write stub_named(uint8_t scope, enum idem_effect_kind kind)
{
    return (struct idem_stub_write){
        .write = IDEM_WRITE_INSERT,
        .row = {
            .scope = { .bytes = { scope } },
            .kind = kind,
            .effect_id = IDEM_STR("effect"),
            .entry = IDEM_STR("sandbox"),
            .order_no = IDEM_STR("order-1"),
            .amount_minor = 100,
        },
    };
}

static void a_stub_is_there_once_and_goes_once(struct idem_rows *rows)
{
    struct idem_stub_write refund = stub_named('a', IDEM_EFFECT_KIND_REFUND);
    struct idem_stub_write charge = stub_named('b', IDEM_EFFECT_KIND_CHARGE);
    struct idem_stub found = { .row = 0 };
    struct idem_rows_key key = {
        .scope = { .bytes = { 'x' } },
        .number = IDEM_STR("order-1"),
    };
    assert_int_equal(rows->ops->write_stub(rows, &refund), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_stub(rows, &refund), IDEM_ROWS_MISS);
    assert_int_equal(rows->ops->find_stub(rows, IDEM_FIND_HOLDER, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, 0); /* A refund holds no order number. */
    assert_int_equal(rows->ops->write_stub(rows, &charge), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->find_stub(rows, IDEM_FIND_HOLDER, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, charge.row.row);
    EXPECT_TEXT(found.effect_id, "effect");
    key.scope.bytes[0] = 'b';
    found.row = 0;
    assert_int_equal(rows->ops->find_stub(rows, IDEM_FIND_HOLDER, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, 0); /* Its own is nobody else's. */
    struct idem_stub_write other = stub_named('d', IDEM_EFFECT_KIND_AUTHORIZE);
    other.row.entry = IDEM_STR("another");
    assert_int_equal(rows->ops->write_stub(rows, &other), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->find_stub(rows, IDEM_FIND_HOLDER, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, other.row.row); /* Whatever its entry. */
    other.write = IDEM_WRITE_DELETE;
    assert_int_equal(rows->ops->write_stub(rows, &other), IDEM_ROWS_OK);

    charge.write = IDEM_WRITE_DELETE;
    refund.write = IDEM_WRITE_DELETE;
    refund.row.scope.bytes[0] = 'c';
    assert_int_equal(rows->ops->write_stub(rows, &charge), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_stub(rows, &charge), IDEM_ROWS_MISS);
    assert_int_equal(rows->ops->write_stub(rows, &refund), IDEM_ROWS_MISS); /* Another's. */
    found.row = 0;
    assert_int_equal(rows->ops->find_stub(rows, IDEM_FIND_HOLDER, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, 0);
}

static void the_stubs_of_a_payment_come_oldest_first_and_are_marked_together(struct idem_rows *rows)
{
    static struct idem_facts facts;
    struct idem_str payment = IDEM_STR("payment");
    for (uint8_t i = 1; i <= IDEM_PAYMENT_STUBS_MAX + 1; i++) {
        struct idem_stub_write stub = stub_named(i, IDEM_EFFECT_KIND_REFUND);
        stub.row.happened_us = 100 - i;
        stub.row.payment_effect_id = i == 1 ? IDEM_STR("other") : payment;
        assert_int_equal(rows->ops->write_stub(rows, &stub), IDEM_ROWS_OK);
    }
    facts = (struct idem_facts){ .send_count = 0 };
    assert_int_equal(rows->ops->find_payment_stubs(rows, payment, &facts), IDEM_ROWS_OK);
    assert_int_equal(facts.payment_stub_count, IDEM_PAYMENT_STUBS_MAX);
    assert_false(facts.payment_stubs_full);
    for (size_t i = 1; i < facts.payment_stub_count; i++) {
        assert_true(facts.payment_stubs[i].happened_us > facts.payment_stubs[i - 1].happened_us);
        assert_false(facts.payment_stubs[i].applied);
    }
    assert_int_equal(rows->ops->apply_stubs(rows, payment), IDEM_ROWS_OK);
    struct idem_stub_write newest = stub_named('z', IDEM_EFFECT_KIND_REFUND);
    newest.row.happened_us = 1000;
    newest.row.payment_effect_id = payment;
    assert_int_equal(rows->ops->write_stub(rows, &newest), IDEM_ROWS_OK);
    facts = (struct idem_facts){ .send_count = 0 };
    assert_int_equal(rows->ops->find_payment_stubs(rows, payment, &facts), IDEM_ROWS_OK);
    assert_int_equal(facts.payment_stub_count, IDEM_PAYMENT_STUBS_MAX);
    assert_true(facts.payment_stubs_full);
    assert_true(facts.payment_stubs[0].applied);
    EXPECT_TEXT(facts.payment_stubs[0].effect_id, "effect");
}

static void a_value_of_the_store_is_replaced(struct idem_rows *rows)
{
    struct idem_str value = IDEM_STR("not asked");
    assert_int_equal(rows->ops->find_meta(rows, "absent", &value), IDEM_ROWS_OK);
    assert_int_equal(value.len, 0);
    assert_int_equal(rows->ops->write_meta(rows, "mine", IDEM_STR("one")), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_meta(rows, "mine", IDEM_STR("two")), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->find_meta(rows, "mine", &value), IDEM_ROWS_OK);
    EXPECT_TEXT(value, "two");
}

/* Whatever is undone comes back as it was, with its text. */
static void a_rollback_brings_back_what_went(struct idem_rows *rows)
{
    static struct idem_read read;
    struct idem_intent_write intent = intent_named('a', 'A');
    struct idem_event event = {
        .kind = IDEM_EVENT_ASKED,
        .cause = IDEM_CAUSE_TIMER,
        .detail = IDEM_STR("here"),
    };
    struct idem_stub_write stub = stub_named('a', IDEM_EFFECT_KIND_REFUND);
    struct idem_rows_key key = { .scope = { .bytes = { 'A' } } };
    struct idem_rows_key stub_key = { .scope = { .bytes = { 'a' } } };
    struct idem_intent found = { .row = 0 };
    struct idem_stub found_stub = { .row = 0 };
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->add_event(rows, 1, &event), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_stub(rows, &stub), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->commit(rows), IDEM_ROWS_OK);

    assert_int_equal(rows->ops->begin(rows), IDEM_ROWS_OK);
    intent.write = IDEM_WRITE_DELETE;
    intent.row.version = 2;
    stub.write = IDEM_WRITE_DELETE;
    assert_int_equal(rows->ops->forget_history(rows, 1), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_stub(rows, &stub), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->rollback(rows), IDEM_ROWS_OK);

    assert_int_equal(rows->ops->begin(rows), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->find_intent(rows, IDEM_FIND_BY_SCOPE, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, 1);
    EXPECT_TEXT(found.key, "key-1");
    assert_int_equal(rows->ops->find_events(rows, 1, &read), IDEM_ROWS_OK);
    assert_int_equal(read.event_total, 1);
    EXPECT_TEXT(read.events[0].detail, "here");
    assert_int_equal(rows->ops->find_stub(rows, IDEM_FIND_BY_SCOPE, &stub_key, &found_stub),
                     IDEM_ROWS_OK);
    EXPECT_TEXT(found_stub.effect_id, "effect");
}

static void a_rollback_leaves_nothing(struct idem_rows *rows)
{
    struct idem_intent_write intent = intent_named('a', 'A');
    struct idem_payment_write payment = payment_named('a', IDEM_PAYMENT_PENDING);
    struct idem_rows_key key = { .scope = { .bytes = { 'A' } } };
    struct idem_intent found = { .row = 0 };
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_payment(rows, &payment), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->rollback(rows), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->begin(rows), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->find_intent(rows, IDEM_FIND_BY_SCOPE, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, 0);
    assert_int_equal(rows->ops->write_intent(rows, &intent), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_payment(rows, &payment), IDEM_ROWS_OK);
}

static void (*const cases[])(struct idem_rows *rows) = {
    an_intent_is_claimed_once,
    an_update_needs_the_version_before_it,
    payments_and_refunds_compare_versions_too,
    an_order_number_is_held_once,
    a_refund_number_is_held_once,
    a_send_is_granted_once_and_only_a_granted_one_resolves,
    a_case_may_be_put_again,
    an_intent_goes_with_its_version_and_all_below_it,
    history_is_forgotten_but_for_what_a_person_did,
    open_cases_are_decided_together_and_once,
    cases_are_told_by_kind,
    a_stub_is_there_once_and_goes_once,
    the_stubs_of_a_payment_come_oldest_first_and_are_marked_together,
    a_value_of_the_store_is_replaced,
    a_rollback_brings_back_what_went,
    a_rollback_leaves_nothing,
};

static void run_case(size_t index, struct idem_rows *rows)
{
    idem_buf_init(&kept, kept_memory, sizeof(kept_memory));
    rows->kept = &kept;
    assert_int_equal(rows->ops->begin(rows), IDEM_ROWS_OK);
    cases[index](rows);
    assert_int_equal(rows->ops->commit(rows), IDEM_ROWS_OK);
    assert_false(kept.full);
}

static void memory_keeps_its_guards(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        struct idem_memory_rows memory;
        idem_memory_rows_init(&memory);
        run_case(i, &memory.rows);
        idem_memory_rows_deinit(&memory);
    }
}

static void sqlite_keeps_its_guards(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        static struct fixture fixture;
        fixture_init(&fixture, FIXTURE_SQLITE);
        fixture_open(&fixture);
        struct idem_sqlite *sqlite = IDEM_CONTAINER_OF(fixture.store, struct idem_sqlite, base);
        run_case(i, &sqlite->writer.rows); /* The writer waits: nobody uses its connection now. */
        fixture_deinit(&fixture);
    }
}

/* A rollback that failed leaves its transaction open. */
static void what_did_not_end_is_ended_before_the_next_begins(void **state)
{
    static struct fixture fixture;
    (void)state;
    fixture_init(&fixture, FIXTURE_SQLITE);
    fixture_open(&fixture);
    struct idem_sqlite *sqlite = IDEM_CONTAINER_OF(fixture.store, struct idem_sqlite, base);
    struct idem_rows *rows = &sqlite->writer.rows;
    struct idem_intent_write lost = intent_named('a', 'A');
    struct idem_intent_write next = intent_named('a', 'A');
    assert_int_equal(rows->ops->begin(rows), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &lost), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->begin(rows), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &next), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->commit(rows), IDEM_ROWS_OK);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_keeps_its_guards),
        cmocka_unit_test(sqlite_keeps_its_guards),
        cmocka_unit_test(what_did_not_end_is_ended_before_the_next_begins),
    };
    return cmocka_run_group_tests_name("store rows", tests, NULL, NULL);
}
