/*
 * Forming batches.
 *
 * Goal: over all batches under way no two commands are about one intent, payment, order number,
 * credential, secret or mark, and commands about one subject keep their order.
 *
 * Method: commands by hand for each kind of subject; then many random ones, whose batches end in
 * random order, checked against their numbers.
 */
#include "engine/batch.h"

#include "base/attr.h"
#include "lib/test.h"

#define ITEMS 600

static struct idem_store_item items[ITEMS];
static struct idem_engine_batch batches[3];
static struct idem_list queue;
static int64_t now_us;

static int begin(void **state)
{
    (void)state;
    memset(items, 0, sizeof(items));
    memset(batches, 0, sizeof(batches));
    queue = (struct idem_list){ .count = 0 };
    now_us = 1000;
    return 0;
}

/* Each has a key of its own. */
static struct idem_command *item_push(size_t index)
{
    struct idem_command *command = &items[index].command;
    command->kind = IDEM_COMMAND_ACCEPT;
    command->accept.principal = IDEM_STR("shop");
    memcpy(command->scope.bytes, &index, sizeof(index));
    command->scope.bytes[15] = 1;
    idem_list_push(&queue, &items[index].node);
    return command;
}

static size_t form(size_t index)
{
    size_t count = idem_batch_form(&batches[index], batches, 3, &queue, now_us);
    batches[index].busy = count > 0;
    assert_int_equal(count, batches[index].store.items.count);
    return count;
}

static void finish(size_t index)
{
    while (idem_list_pop(&batches[index].store.items) != NULL) {
    }
    batches[index].busy = false;
}

static void strangers_share_a_batch(void **state)
{
    (void)state;
    for (size_t i = 0; i < 10; i++) {
        (void)item_push(i);
    }
    assert_int_equal(form(0), 10);
    finish(0);
}

static void one_key_one_payment_and_one_order_at_a_time(void **state)
{
    (void)state;
    item_push(0)->accept.order_no = IDEM_STR("order");
    item_push(1)->accept.order_no = IDEM_STR("order");
    item_push(2)->accept.payment_id.bytes[0] = 1;
    struct idem_command *settle = item_push(3);
    settle->kind = IDEM_COMMAND_EVIDENCE;
    settle->subject_payment_id.bytes[0] = 1;
    struct idem_command *due = item_push(4);
    due->kind = IDEM_COMMAND_DUE;
    due->scope = items[0].command.scope;
    assert_int_equal(form(0), 2); /* 0 and 2. */
    assert_int_equal(form(1), 0); /* The others wait for them, whichever batch. */
    finish(0);
    assert_int_equal(form(1), 3);
    finish(1);
}

static void what_runs_again_has_a_batch_of_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        (void)item_push(i);
    }
    items[0].again_us = 900;  /* Its time has come. */
    items[1].again_us = 2000; /* Not yet. */
    items[3].again_us = 1000;
    item_push(4)->scope = items[1].command.scope; /* Behind one that waits for its time. */
    assert_int_equal(form(0), 2);                 /* 0 and 3. */
    assert_true(batches[0].again);
    assert_int_equal(form(1), 1); /* 2. */
    assert_false(batches[1].again);
    now_us = 2000;
    assert_int_equal(form(2), 0); /* One batch of such is under way. */
    finish(0);
    assert_int_equal(form(0), 1);
    finish(0);
    assert_int_equal(form(0), 1); /* 4. */
    finish(0);
    finish(1);
}

static void the_same_order_number_of_another_principal_is_another(void **state)
{
    (void)state;
    item_push(0)->accept.order_no = IDEM_STR("order");
    struct idem_command *other = item_push(1);
    other->accept.order_no = IDEM_STR("order");
    other->accept.principal = IDEM_STR("shop-2");
    assert_int_equal(form(0), 2);
    finish(0);
}

static void who_waits_is_not_overtaken(void **state)
{
    (void)state;
    item_push(0)->accept.order_no = IDEM_STR("a");
    struct idem_command *both = item_push(1); /* Waits for order a, and wants payment 1. */
    both->accept.order_no = IDEM_STR("a");
    both->accept.payment_id.bytes[0] = 1;
    item_push(2)->accept.payment_id.bytes[0] = 1; /* Came later: waits behind it. */
    assert_int_equal(form(0), 1);
    finish(0);
    assert_int_equal(form(0), 1);
    assert_ptr_equal(batches[0].store.items.first, &items[1].node);
    finish(0);
    assert_int_equal(form(0), 1);
    finish(0);
}

static struct idem_command *change_push(size_t index, uint8_t id, uint8_t secret)
{
    struct idem_command *command = item_push(index);
    command->kind = IDEM_COMMAND_CREDENTIAL;
    command->scope = (struct idem_scope){ .bytes = { 0 } };
    command->credential.action = IDEM_CREDENTIAL_ADD;
    command->credential.row.id.bytes[0] = id;
    command->credential.row.secret_sha256.bytes[0] = secret;
    return command;
}

static void one_credential_and_one_secret_at_a_time(void **state)
{
    (void)state;
    (void)change_push(0, 1, 1);
    (void)change_push(1, 2, 2);
    (void)change_push(2, 1, 3); /* The first one's id. */
    (void)change_push(3, 3, 2); /* The second one's secret. */
    assert_int_equal(form(0), 2);
    assert_int_equal(form(1), 0);
    finish(0);
    assert_int_equal(form(0), 2);
    finish(0);
}

static void one_of_each_mark_at_a_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct idem_command *command = item_push(i);
        command->kind = IDEM_COMMAND_MARK;
        command->scope = (struct idem_scope){ .bytes = { 0 } };
        command->mark.kind = i % 2 == 0 ? IDEM_MARK_HORIZON : IDEM_MARK_RESTORED_OVER;
    }
    assert_int_equal(form(0), 2);
    assert_int_equal(form(1), 0);
    finish(0);
    assert_int_equal(form(0), 2);
    finish(0);
}

/* What is listed moves its payment's sums, and the payment may be listed too. */
static void what_is_listed_waits_for_its_payment(void **state)
{
    (void)state;
    struct idem_command *made = item_push(0);
    made->kind = IDEM_COMMAND_EVIDENCE;
    struct idem_command *refunded = item_push(1);
    refunded->kind = IDEM_COMMAND_EVIDENCE;
    refunded->evidence.payment_scope = made->scope;
    struct idem_command *again = item_push(2);
    again->kind = IDEM_COMMAND_EVIDENCE;
    again->evidence.payment_scope = made->scope;
    assert_int_equal(form(0), 1);
    finish(0);
    assert_int_equal(form(0), 1);
    finish(0);
    assert_int_equal(form(0), 1);
    finish(0);
}

static void a_batch_has_a_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < ITEMS; i++) {
        (void)item_push(i);
    }
    assert_int_equal(form(0), IDEM_STORE_BATCH_MAX);
    assert_int_equal(form(1), IDEM_STORE_BATCH_MAX);
    assert_int_equal(form(2), ITEMS - 2 * IDEM_STORE_BATCH_MAX);
}

static uint64_t noise = 20261129;

static size_t pick(size_t below)
{
    noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(noise >> 33) % below;
}

static char orders[8][2] = { "a", "b", "c", "d", "e", "f", "g", "h" };
static size_t last_of[8]; /* The number of the last command that ran for an order, from one. */

static void expect_order_is_kept(const struct idem_engine_batch *batch)
{
    bool seen[8] = { false };
    IDEM_LIST_FOREACH (node, &batch->store.items) {
        const struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        size_t number = (size_t)(item - items) + 1;
        size_t order = (size_t)(item->command.accept.order_no.data[0] - 'a');
        assert_false(seen[order]);
        assert_true(number > last_of[order]);
        seen[order] = true;
        last_of[order] = number;
    }
}

static void any_order_of_ends_keeps_the_order_of_each_subject(void **state)
{
    (void)state;
    size_t pushed = 0;
    size_t ran = 0;
    while (ran < ITEMS) {
        for (size_t i = pick(5); i > 0 && pushed < ITEMS; i--) {
            item_push(pushed)->accept.order_no = idem_str_from(orders[pick(8)]);
            pushed += 1;
        }
        size_t index = pick(3);
        if (batches[index].busy) {
            ran += batches[index].store.items.count;
            finish(index);
        } else if (form(index) > 0) {
            expect_order_is_kept(&batches[index]);
        }
    }
    assert_int_equal(queue.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(strangers_share_a_batch, begin),
        cmocka_unit_test_setup(one_key_one_payment_and_one_order_at_a_time, begin),
        cmocka_unit_test_setup(what_runs_again_has_a_batch_of_its_own, begin),
        cmocka_unit_test_setup(what_runs_again_has_a_batch_of_its_own, begin),
        cmocka_unit_test_setup(the_same_order_number_of_another_principal_is_another, begin),
        cmocka_unit_test_setup(who_waits_is_not_overtaken, begin),
        cmocka_unit_test_setup(one_credential_and_one_secret_at_a_time, begin),
        cmocka_unit_test_setup(one_of_each_mark_at_a_time, begin),
        cmocka_unit_test_setup(what_is_listed_waits_for_its_payment, begin),
        cmocka_unit_test_setup(a_batch_has_a_limit, begin),
        cmocka_unit_test_setup(any_order_of_ends_keeps_the_order_of_each_subject, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
