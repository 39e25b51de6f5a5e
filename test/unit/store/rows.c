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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_keeps_its_guards),
        cmocka_unit_test(sqlite_keeps_its_guards),
    };
    return cmocka_run_group_tests_name("store rows", tests, NULL, NULL);
}
