/*
 * The rows behind told.h.
 */
#include "conform/told.h"

#include <stdio.h>

#include "base/attr.h"
#include "lib/test.h"
#include "store/sqlite/sqlite_internal.h"

static int setup_kind(void **state, enum fixture_kind kind)
{
    static struct fixture fixture;
    fixture_init(&fixture, kind);
    fixture_open(&fixture);
    *state = &fixture;
    return 0;
}

int setup_memory(void **state)
{
    return setup_kind(state, FIXTURE_MEMORY);
}

int setup_sqlite(void **state)
{
    return setup_kind(state, FIXTURE_SQLITE);
}

int setup_postgres(void **state)
{
    return setup_kind(state, FIXTURE_POSTGRES);
}

int suite_teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

struct idem_uid uid(uint32_t number)
{
    struct idem_uid uid = { .bytes = { 1 } };
    for (size_t i = 0; i < 4; i++) {
        uid.bytes[15 - i] = (uint8_t)(number >> (8 * i));
    }
    return uid;
}

struct idem_webhook_write webhook_named(uint32_t id, const char *principal)
{
    return (struct idem_webhook_write){
        .write = IDEM_WRITE_INSERT,
        .row = {
            .id = uid(id),
            .version = 1,
            .principal = idem_str_from(principal),
            .url = IDEM_STR("https://shop.example/hooks"),
            .types = ALL_TYPES,
            .generation = 1,
            .created_us = FIXTURE_START_US,
            .created_by = IDEM_STR("root"),
        },
    };
}

int64_t webhook_add(struct idem_rows *rows, uint32_t id, const char *principal)
{
    struct idem_webhook_write write = webhook_named(id, principal);
    assert_int_equal(rows->ops->write_webhook(rows, &write), IDEM_ROWS_OK);
    assert_true(write.row.row > 0);
    return write.row.row;
}

struct idem_webhook webhook_find(struct idem_rows *rows, uint32_t id)
{
    struct idem_rows_key key = { .id = uid(id) };
    struct idem_webhook webhook = { .row = 0 };
    assert_int_equal(rows->ops->find_webhook(rows, IDEM_FIND_BY_ANY_ID, &key, &webhook),
                     IDEM_ROWS_OK);
    return webhook;
}

void webhook_disable(struct idem_rows *rows, uint32_t id)
{
    struct idem_webhook_write write = {
        .write = IDEM_WRITE_UPDATE,
        .row = webhook_find(rows, id),
    };
    write.row.version += 1;
    write.row.disabled_us = FIXTURE_START_US + 1;
    write.row.disabled_by = IDEM_STR("anna");
    assert_int_equal(rows->ops->write_webhook(rows, &write), IDEM_ROWS_OK);
}

struct idem_message message_named(uint32_t id, uint32_t payment)
{
    return (struct idem_message){
        .id = uid(id),
        .type = IDEM_MESSAGE_PAYMENT_CAPTURED,
        .principal = IDEM_STR("merchant-1"),
        .payment_id = payment == 0 ? (struct idem_uid){ .bytes = { 0 } } : uid(payment),
        .at_us = FIXTURE_START_US,
        .data = IDEM_STR("{\"state\":\"captured\"}"),
    };
}

void message_add(struct idem_rows *rows, uint32_t id, uint32_t payment)
{
    struct idem_message message = message_named(id, payment);
    assert_int_equal(rows->ops->add_message(rows, 0, &message), IDEM_ROWS_OK);
}

struct idem_delivery delivery_find(struct idem_rows *rows, uint32_t message, uint32_t webhook)
{
    struct idem_delivery delivery = { .row = 0 };
    assert_int_equal(rows->ops->find_delivery(rows, uid(message), uid(webhook), &delivery),
                     IDEM_ROWS_OK);
    return delivery;
}

void delivery_write(struct idem_rows *rows, struct idem_delivery delivery)
{
    struct idem_delivery_write write = { .write = IDEM_WRITE_UPDATE, .row = delivery };
    write.row.version += 1;
    assert_int_equal(rows->ops->write_delivery(rows, &write), IDEM_ROWS_OK);
}

void delivery_end(struct idem_rows *rows,
                  uint32_t message,
                  uint32_t webhook,
                  enum idem_delivery_state state)
{
    struct idem_delivery delivery = delivery_find(rows, message, webhook);
    assert_true(delivery.row > 0);
    delivery.state = state;
    delivery.due_us = 0;
    delivery.finished_us = FIXTURE_START_US + 1;
    delivery_write(rows, delivery);
}

static long long sqlite_number(struct fixture *fixture, const char *sql)
{
    struct idem_sqlite *sqlite = IDEM_CONTAINER_OF(fixture->store, struct idem_sqlite, base);
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(sqlite->writer.handle, sql, -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    long long value = sqlite3_column_int64(statement, 0);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    return value;
}

long long inbox_count(struct fixture *fixture, const char *where)
{
    char sql[256];
    bool is_sqlite = fixture->kind == FIXTURE_SQLITE;
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM %sinbox WHERE %s",
                   is_sqlite ? "" : "idem.", where);
    return is_sqlite ? sqlite_number(fixture, sql) : pg_server_number(fixture_server(), sql);
}

bool sweep(struct idem_rows *rows, int64_t before_us)
{
    bool more = false;
    assert_int_equal(rows->ops->sweep(rows, before_us, &more), IDEM_ROWS_OK);
    return more;
}

bool event_is_seen(struct idem_rows *rows, struct idem_str entry, struct idem_str event_id)
{
    bool seen = false;
    assert_int_equal(rows->ops->find_event(rows, entry, event_id, &seen), IDEM_ROWS_OK);
    return seen;
}
