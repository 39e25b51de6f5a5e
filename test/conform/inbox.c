/*
 * What every store must do for provider events and for merchants' webhooks.
 *
 * Goal: an event is in the inbox once, and is forgotten by when it came last; a webhook is a row
 * like any other, and whether somebody listens is known.
 *
 * Method: writes straight through the rows port that the store's own batches use, and reads through
 * its public door, once for each backend. A letter is one id.
 */
#include <string.h>

#include "conform/told.h"
#include "lib/test.h"

static void an_event_comes_in_once_for_each_entry(void **state)
{
    struct idem_rows *rows = fixture_rows(*state);
    struct idem_inbox_write write = {
        .write = IDEM_WRITE_INSERT,
        .entry = IDEM_STR("sandbox"),
        .event_id = IDEM_STR("evt_1"),
        .at_us = FIXTURE_START_US,
        .known = true,
    };
    fixture_rows_begin(rows);
    assert_false(event_is_seen(rows, write.entry, write.event_id));
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    assert_true(event_is_seen(rows, write.entry, write.event_id)); /* The transaction's own. */
    assert_false(event_is_seen(rows, IDEM_STR("other"), write.event_id));
    assert_false(event_is_seen(rows, write.entry, IDEM_STR("evt_2")));
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    fixture_rows_expect_miss(rows, rows->ops->write_inbox(rows, &write));
    write.entry = IDEM_STR("other");
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    write.event_id = IDEM_STR("evt_2");
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    fixture_rows_commit(rows);
}

static void an_event_that_comes_again_must_have_come_before(void **state)
{
    struct idem_rows *rows = fixture_rows(*state);
    struct idem_inbox_write write = {
        .write = IDEM_WRITE_UPDATE,
        .entry = IDEM_STR("sandbox"),
        .event_id = IDEM_STR("evt_1"),
        .at_us = FIXTURE_START_US,
    };
    fixture_rows_begin(rows);
    fixture_rows_expect_miss(rows, rows->ops->write_inbox(rows, &write));
    write.write = IDEM_WRITE_INSERT;
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    write.write = IDEM_WRITE_UPDATE;
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    fixture_rows_commit(rows);
}

/* People ask it with SQL (docs/operations.md): when an event came, and whether it was about us. */
static void an_event_is_counted_and_known_once_it_was(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    if (fixture->kind == FIXTURE_MEMORY) {
        return; /* Nobody looks into it. */
    }
    struct idem_inbox_write write = {
        .write = IDEM_WRITE_INSERT,
        .entry = IDEM_STR("sandbox"),
        .event_id = IDEM_STR("evt_1"),
        .at_us = 100,
    };
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    write.write = IDEM_WRITE_UPDATE;
    write.at_us = 300;
    write.known = true;
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    write.at_us = 200;
    write.known = false;
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    fixture_rows_commit(rows);
    assert_int_equal(inbox_count(fixture,
                                 "entry = 'sandbox' AND event_id = 'evt_1'"
                                 " AND first_us = 100 AND last_us = 300"
                                 " AND count = 3 AND known"),
                     1);
}

static void an_event_is_forgotten_by_when_it_came_last(void **state)
{
    struct idem_rows *rows = fixture_rows(*state);
    struct idem_inbox_write write = {
        .write = IDEM_WRITE_INSERT,
        .entry = IDEM_STR("sandbox"),
        .event_id = IDEM_STR("evt_1"),
        .at_us = FIXTURE_START_US,
    };
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    write.event_id = IDEM_STR("evt_2");
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    write.write = IDEM_WRITE_UPDATE;
    write.at_us += 10;
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    (void)sweep(rows, FIXTURE_START_US);
    assert_true(event_is_seen(rows, write.entry, IDEM_STR("evt_1"))); /* Not before it. */
    (void)sweep(rows, FIXTURE_START_US + 10);
    assert_false(event_is_seen(rows, write.entry, IDEM_STR("evt_1")));
    assert_true(event_is_seen(rows, write.entry, IDEM_STR("evt_2")));
    fixture_rows_commit(rows);
}

static void the_longest_event_id_is_found_again(void **state)
{
    struct idem_rows *rows = fixture_rows(*state);
    char memory[IDEM_ENTRY_MAX + IDEM_EVENT_ID_MAX];
    memset(memory, 'e', sizeof(memory));
    struct idem_inbox_write write = {
        .write = IDEM_WRITE_INSERT,
        .entry = { .data = memory, .len = IDEM_ENTRY_MAX },
        .event_id = { .data = memory, .len = IDEM_EVENT_ID_MAX },
        .at_us = FIXTURE_START_US,
    };
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->write_inbox(rows, &write), IDEM_ROWS_OK);
    fixture_rows_commit(rows);
    fixture_rows_begin(rows);
    assert_true(event_is_seen(rows, write.entry, write.event_id));
    write.event_id.len -= 1;
    assert_false(event_is_seen(rows, write.entry, write.event_id));
    fixture_rows_commit(rows);
}

static void a_webhook_is_found_by_its_names(void **state)
{
    struct idem_rows *rows = fixture_rows(*state);
    struct idem_rows_key key = { .id = uid('a'), .principal = IDEM_STR("merchant-2") };
    struct idem_webhook found = { .row = 0 };
    fixture_rows_begin(rows);
    int64_t row = webhook_add(rows, 'a', "merchant-1");
    assert_true(webhook_add(rows, 'b', "merchant-2") > row);
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->find_webhook(rows, IDEM_FIND_BY_ID, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, 0); /* Another's. */
    key.principal = IDEM_STR("merchant-1");
    assert_int_equal(rows->ops->find_webhook(rows, IDEM_FIND_BY_ID, &key, &found), IDEM_ROWS_OK);
    assert_int_equal(found.row, row);
    found = webhook_find(rows, 'a');
    assert_int_equal(found.row, row);
    EXPECT_TEXT(found.principal, "merchant-1");
    EXPECT_TEXT(found.url, "https://shop.example/hooks");
    EXPECT_TEXT(found.created_by, "root");
    assert_true(found.types == ALL_TYPES);
    assert_int_equal(found.generation, 1);
    assert_int_equal(found.created_us, FIXTURE_START_US);
    assert_int_equal(webhook_find(rows, 'c').row, 0);

    key = (struct idem_rows_key){ .row = row };
    found.row = 0;
    assert_int_equal(rows->ops->find_webhook(rows, IDEM_FIND_BY_ROW, &key, &found), IDEM_ROWS_OK);
    assert_memory_equal(&found.id, &(struct idem_uid[]){ uid('a') }, 16);
    fixture_rows_commit(rows);
}

static void a_webhook_is_there_once_and_compares_its_version(void **state)
{
    struct idem_rows *rows = fixture_rows(*state);
    struct idem_webhook_write write = webhook_named('a', "merchant-1");
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->write_webhook(rows, &write), IDEM_ROWS_OK);
    fixture_rows_commit(rows);

    struct idem_webhook_write again = webhook_named('a', "merchant-2");
    fixture_rows_begin(rows);
    fixture_rows_expect_miss(rows, rows->ops->write_webhook(rows, &again));
    write.write = IDEM_WRITE_UPDATE;
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    write.row.version = 3;
    fixture_rows_expect_miss(rows, rows->ops->write_webhook(rows, &write));
    write.row.version = 2;
    write.row.generation = 2;
    write.row.rotated_us = FIXTURE_START_US + 5;
    assert_int_equal(rows->ops->write_webhook(rows, &write), IDEM_ROWS_OK);
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    fixture_rows_expect_miss(rows, rows->ops->write_webhook(rows, &write)); /* Once. */
    struct idem_webhook found = webhook_find(rows, 'a');
    assert_int_equal(found.version, 2);
    assert_int_equal(found.generation, 2);
    assert_int_equal(found.rotated_us, FIXTURE_START_US + 5);
    fixture_rows_commit(rows);
}

static bool is_listened(struct idem_rows *rows, const char *principal)
{
    bool listened = false;
    assert_int_equal(rows->ops->find_listened(rows, idem_str_from(principal), &listened),
                     IDEM_ROWS_OK);
    return listened;
}

static void somebody_listens_while_a_webhook_is_not_disabled(void **state)
{
    struct idem_rows *rows = fixture_rows(*state);
    size_t count = 9;
    fixture_rows_begin(rows);
    assert_false(is_listened(rows, "merchant-1"));
    (void)webhook_add(rows, 'a', "merchant-1");
    (void)webhook_add(rows, 'b', "merchant-1");
    (void)webhook_add(rows, 'c', "merchant-10");
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    assert_true(is_listened(rows, "merchant-1"));
    assert_false(is_listened(rows, "merchant-2"));
    webhook_disable(rows, 'a');
    assert_true(is_listened(rows, "merchant-1"));
    webhook_disable(rows, 'b');
    assert_false(is_listened(rows, "merchant-1"));
    assert_true(is_listened(rows, "merchant-10"));
    assert_int_equal(rows->ops->count_webhooks(rows, IDEM_STR("merchant-1"), &count), IDEM_ROWS_OK);
    assert_int_equal(count, 2); /* Disabled ones too. */
    assert_int_equal(rows->ops->count_webhooks(rows, IDEM_STR("merchant-2"), &count), IDEM_ROWS_OK);
    assert_int_equal(count, 0);
    fixture_rows_commit(rows);
}

static size_t webhooks_walk(struct fixture *fixture, const char *principal)
{
    size_t count = 0;
    int64_t after_row = 0;
    bool more = true;
    while (more) {
        struct idem_read *read = fixture_ask(fixture, IDEM_READ_WEBHOOKS, principal);
        read->after_row = after_row;
        fixture_read(fixture);
        assert_int_equal(read->answer, IDEM_STORE_DURABLE);
        for (size_t i = 0; i < read->webhook_count; i++) {
            assert_true(read->webhooks[i].row > after_row);
            after_row = read->webhooks[i].row;
        }
        more = read->more;
        assert_true(!more || read->webhook_count > 0);
        count += read->webhook_count;
    }
    return count;
}

static void webhooks_come_in_pages(void **state)
{
    enum {
        COUNT = IDEM_READ_WEBHOOKS_MAX + 4
    };
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    for (uint32_t i = 0; i < COUNT; i++) {
        (void)webhook_add(rows, 1000 + i, "merchant-1");
        (void)webhook_add(rows, 2000 + i, i % 2 == 0 ? "merchant-2" : "merchant-1");
    }
    webhook_disable(rows, 1000); /* It is shown. */
    fixture_rows_commit(rows);
    assert_int_equal(webhooks_walk(fixture, ""), 2 * COUNT);
    assert_int_equal(webhooks_walk(fixture, "merchant-1"), COUNT + COUNT / 2);
    assert_int_equal(webhooks_walk(fixture, "merchant-2"), COUNT / 2);
    assert_int_equal(webhooks_walk(fixture, "merchant-3"), 0);
}

static void one_webhook_is_read_by_its_id(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 1, "merchant-1");
    (void)webhook_add(rows, 2, "merchant-1");
    struct idem_webhook second = webhook_find(rows, 2);
    fixture_rows_commit(rows);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_WEBHOOKS, "");
    read->id = second.id;
    fixture_read(fixture);
    assert_int_equal(read->webhook_count, 1);
    assert_int_equal(read->webhooks[0].row, second.row);
    assert_false(read->more);

    second.id.bytes[0] ^= 0xFF;
    read = fixture_ask(fixture, IDEM_READ_WEBHOOKS, "");
    read->id = second.id;
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_int_equal(read->webhook_count, 0);
}

#define CONFORM(function, setup) cmocka_unit_test_setup_teardown(function, setup, suite_teardown)
#define SUITE(setup)                                                                               \
    {                                                                                              \
        CONFORM(an_event_comes_in_once_for_each_entry, setup),                                     \
            CONFORM(an_event_that_comes_again_must_have_come_before, setup),                       \
            CONFORM(an_event_is_counted_and_known_once_it_was, setup),                             \
            CONFORM(an_event_is_forgotten_by_when_it_came_last, setup),                            \
            CONFORM(the_longest_event_id_is_found_again, setup),                                   \
            CONFORM(a_webhook_is_found_by_its_names, setup),                                       \
            CONFORM(a_webhook_is_there_once_and_compares_its_version, setup),                      \
            CONFORM(somebody_listens_while_a_webhook_is_not_disabled, setup),                      \
            CONFORM(webhooks_come_in_pages, setup), CONFORM(one_webhook_is_read_by_its_id, setup), \
    }

/* Without an argument the stores that need no server; with "postgres" that one. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "postgres") == 0) {
        const struct CMUnitTest postgres[] = SUITE(setup_postgres);
        return cmocka_run_group_tests_name("inbox: postgres", postgres, NULL, NULL);
    }
    const struct CMUnitTest memory[] = SUITE(setup_memory);
    const struct CMUnitTest sqlite[] = SUITE(setup_sqlite);
    int failed = cmocka_run_group_tests_name("inbox: memory", memory, NULL, NULL);
    failed += cmocka_run_group_tests_name("inbox: sqlite", sqlite, NULL, NULL);
    return failed == 0 ? 0 : 1;
}
