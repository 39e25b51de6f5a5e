/*
 * The door of every store: an unknown commit, and what it does not mean.
 *
 * Goal: UNKNOWN is said of a batch, not of the store. Whether a process may go on after it is the
 * backend's to say: the door leaves `broken` alone, takes the same commands again, and one DURABLE
 * run of them is the truth. SQLite's own word is in sqlite.c.
 *
 * Method: a memory store with its table of operations replaced by one that runs a batch or loses
 * it, and answers UNKNOWN.
 */
#include "store/store.h"

#include "base/attr.h"
#include "lib/test.h"
#include "unit/store/fixture.h"

static const struct order shoes = {
    .principal = "merchant-1",
    .key = "key-1",
    .order_no = "order-1",
    .amount_minor = 1250,
};

static const struct idem_store_ops *real_ops;
static struct idem_store_ops unsure_ops;
static struct idem_list lost;
static bool loses; /* The batch is not run at all. */

static void unsure_submit(struct idem_store *store, struct idem_store_batch *batch)
{
    if (loses) {
        idem_list_push(&lost, &batch->node);
    } else {
        real_ops->submit(store, batch); /* It ends inside: the memory store has no thread. */
    }
    IDEM_LIST_FOREACH (node, &batch->items) {
        IDEM_CONTAINER_OF(node, struct idem_store_item, node)->answer = IDEM_STORE_UNKNOWN;
    }
    batch->answer = IDEM_STORE_UNKNOWN;
}

static void unsure_reap(struct idem_store *store,
                        struct idem_list *ret_batches,
                        struct idem_list *ret_reads)
{
    real_ops->reap(store, ret_batches, ret_reads);
    idem_list_join(ret_batches, &lost);
}

static int setup(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_MEMORY);
    fixture_open(&fixture);
    real_ops = fixture.store->ops;
    unsure_ops = *real_ops;
    unsure_ops.submit = unsure_submit;
    unsure_ops.reap = unsure_reap;
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

static void expect_unknown_then_truth(struct fixture *fixture)
{
    struct call call;
    call_pay(fixture, &call, &shoes);
    fixture->store->ops = &unsure_ops;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_UNKNOWN);
        assert_int_equal(call.item.answer, IDEM_STORE_UNKNOWN);
        assert_false(fixture->store->broken);
        assert_false(fixture->store->stopped);
        assert_true(idem_store_has_room(fixture->store));
    }
    fixture->store->ops = real_ops;
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_SEND);
    assert_int_equal(call.outcome.release.send_no, 1);
    assert_int_equal(fixture_operation(fixture, &call)->send_count, 1);
}

static void an_unknown_commit_that_was_written_leaves_the_store_whole(void **state)
{
    loses = false;
    expect_unknown_then_truth(*state);
}

static void an_unknown_commit_that_was_lost_leaves_the_store_whole(void **state)
{
    loses = true;
    expect_unknown_then_truth(*state);
}

#define OPEN(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN(an_unknown_commit_that_was_written_leaves_the_store_whole),
        OPEN(an_unknown_commit_that_was_lost_leaves_the_store_whole),
    };
    return cmocka_run_group_tests_name("store door", tests, NULL, NULL);
}
