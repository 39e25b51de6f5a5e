/*
 * A history that does not fit into a read's memory.
 *
 * Goal: nothing fails silently. First the encoded request is left out, then the oldest events are,
 * and event_total tells that they are there.
 *
 * Method: one intent with bulky text and events of a given length, written straight through the
 * rows port of each backend, then read as the store's reader does.
 */
#include "store/read.h"

#include "lib/test.h"
#include "store/memory/memory_internal.h"
#include "store/sqlite/sqlite_internal.h"
#include "unit/store/fixture.h"

static char bulk[IDEM_READ_MEMORY_MAX];
static struct idem_read history;

static struct idem_str bulk_text(size_t len)
{
    return (struct idem_str){ .data = bulk, .len = len };
}

static void history_write(struct idem_rows *rows, size_t request_len, size_t detail_len)
{
    struct idem_intent_write write = {
        .write = IDEM_WRITE_INSERT,
        .row = {
            .id = { .bytes = { 1 } },
            .scope = { .bytes = { 2 } },
            .principal = IDEM_STR("merchant-1"),
            .key = IDEM_STR("key-1"),
            .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
            .state = IDEM_INTENT_UNKNOWN,
            .version = 1,
            .effect.request = bulk_text(request_len),
        },
    };
    struct idem_event event = {
        .kind = IDEM_EVENT_ASKED,
        .cause = IDEM_CAUSE_TIMER,
        .detail = bulk_text(detail_len),
    };

    assert_int_equal(rows->ops->begin(rows), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &write), IDEM_ROWS_OK);
    for (int64_t i = 0; i < IDEM_READ_EVENTS_MAX; i++) {
        event.at_us = i + 1;
        assert_int_equal(rows->ops->add_event(rows, write.row.row, &event), IDEM_ROWS_OK);
    }
    assert_int_equal(rows->ops->commit(rows), IDEM_ROWS_OK);
}

static void history_read(struct idem_rows *rows)
{
    history = (struct idem_read){
        .kind = IDEM_READ_OPERATION,
        .principal = IDEM_STR("merchant-1"),
        .id = { .bytes = { 1 } },
    };
    idem_read_run(rows, 1, &history);
    assert_int_equal(history.answer, IDEM_STORE_DURABLE);
    assert_true(history.found);
    assert_int_equal(history.event_total, IDEM_READ_EVENTS_MAX);
    assert_int_equal(history.events[history.event_count - 1].at_us, IDEM_READ_EVENTS_MAX);
    for (size_t i = 0; i < history.event_count; i++) {
        assert_int_equal(history.events[i].detail.len, history.events[0].detail.len);
        assert_memory_equal(history.events[i].detail.data, bulk, history.events[i].detail.len);
    }
}

static void small_history_shows_all(struct idem_rows *rows)
{
    history_write(rows, 4096, 255);
    history_read(rows);
    assert_int_equal(history.event_count, IDEM_READ_EVENTS_MAX);
    assert_int_equal(history.intent.effect.request.len, 4096);
}

static void big_history_drops_the_request(struct idem_rows *rows)
{
    history_write(rows, 4096, 320);
    history_read(rows);
    assert_int_equal(history.event_count, IDEM_READ_EVENTS_MAX);
    assert_int_equal(history.intent.effect.request.len, 0);
    EXPECT_TEXT(history.intent.key, "key-1");
}

static void bigger_history_drops_the_oldest_events(struct idem_rows *rows)
{
    history_write(rows, 4096, 1000);
    history_read(rows);
    assert_true(history.event_count < IDEM_READ_EVENTS_MAX);
    assert_true(history.event_count >= 32);
    assert_int_equal(history.intent.effect.request.len, 0);
}

static void row_that_fits_nowhere_is_no_answer(struct idem_rows *rows)
{
    history_write(rows, sizeof(bulk), 1);
    history = (struct idem_read){
        .kind = IDEM_READ_OPERATION,
        .principal = IDEM_STR("merchant-1"),
        .id = { .bytes = { 1 } },
    };
    idem_read_run(rows, 1, &history);
    assert_int_equal(history.answer, IDEM_STORE_NOTHING);
    assert_false(history.found);
    assert_int_equal(history.intent.row, 0);
}

static void (*const cases[])(struct idem_rows *rows) = {
    small_history_shows_all,
    big_history_drops_the_request,
    bigger_history_drops_the_oldest_events,
    row_that_fits_nowhere_is_no_answer,
};

static void memory_reads_what_fits(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        struct idem_memory_rows memory;
        idem_memory_rows_init(&memory);
        cases[i](&memory.rows);
        idem_memory_rows_deinit(&memory);
    }
}

static void sqlite_reads_what_fits(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        static struct fixture fixture;
        fixture_init(&fixture, FIXTURE_SQLITE);
        fixture_open(&fixture);
        struct idem_sqlite *sqlite = IDEM_CONTAINER_OF(fixture.store, struct idem_sqlite, base);
        cases[i](&sqlite->writer.rows); /* The writer waits: nobody uses its connection now. */
        fixture_deinit(&fixture);
    }
}

int main(void)
{
    memset(bulk, 'x', sizeof(bulk));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_reads_what_fits),
        cmocka_unit_test(sqlite_reads_what_fits),
    };
    return cmocka_run_group_tests_name("store read", tests, NULL, NULL);
}
