/*
 * What SQLite's planner does with the statements.
 *
 * Goal: nothing that is asked while serving walks over records that are over, however many there
 * are: each table is searched by an index, or scanned only in a partial index of what is open. The
 * one exception is asked once, after an older copy was put back.
 *
 * Method: EXPLAIN QUERY PLAN of every prepared statement, read line by line. Then the same with
 * rows: the steps that SQLite's virtual machine takes stay the same when finished records come on
 * top, and hardly grow where a time is looked for among them.
 */
#include <stdlib.h>

#include "base/attr.h"
#include "lib/test.h"
#include "store/sqlite/sqlite_internal.h"
#include "unit/store/fixture.h"

#define MINUTE_US (60 * IDEM_US_PER_SECOND)

static struct idem_sqlite *sqlite_of(struct fixture *fixture)
{
    return IDEM_CONTAINER_OF(fixture->store, struct idem_sqlite, base);
}

static int setup(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_SQLITE);
    fixture_open(&fixture);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

/*
 * A scan that may be: of what is open only, of few rows, of a page that was chosen before, or of
 * webhooks (`h`) that there is something for.
 */
static bool scan_is_bounded(const char *line)
{
    static const char *const bounded[] = {
        "INDEX intents_due", "INDEX intents_reap", "INDEX cases_open", "SCAN stubs",
        "SCAN CONSTANT ROW", "SCAN states",        "SCAN h",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bounded); i++) {
        const char *found = strstr(line, bounded[i]);
        const char *behind = found != NULL ? found + strlen(bounded[i]) : NULL;
        if (behind != NULL && (*behind == '\0' || *behind == ' ')) { /* The whole name. */
            return true;
        }
    }
    return false;
}

static void line_check(const char *sql, const char *line)
{
    if (strncmp(line, "SCAN", 4) == 0 && !scan_is_bounded(line)) {
        fail_msg("%s\n  %s", sql, line);
    }
}

static void plan_check(sqlite3 *handle, const char *sql)
{
    char explain[4096];
    sqlite3_stmt *plan = NULL;
    (void)snprintf(explain, sizeof(explain), "EXPLAIN QUERY PLAN %s", sql);
    assert_int_equal(sqlite3_prepare_v2(handle, explain, -1, &plan, NULL), SQLITE_OK);
    while (sqlite3_step(plan) == SQLITE_ROW) {
        line_check(sql, (const char *)sqlite3_column_text(plan, 3));
    }
    assert_int_equal(sqlite3_finalize(plan), SQLITE_OK);
}

static void no_statement_walks_over_what_is_over(void **state)
{
    struct idem_sqlite_connection *writer = &sqlite_of(*state)->writer;
    for (size_t i = 0; i < IDEM_SQLITE_STATEMENT_COUNT; i++) {
        const char *sql = sqlite3_sql(writer->statements[i]);
        if (strncmp(sql, "PRAGMA", 6) != 0 && i != IDEM_SQLITE_PLACES) {
            plan_check(writer->handle, sql);
        }
    }
}

/* The steps of the reader's machine since the last call. */
static int64_t steps_take(struct fixture *fixture)
{
    struct idem_sqlite_connection *reader = &sqlite_of(fixture)->reader;
    int64_t steps = 0;
    for (size_t i = 0; i < IDEM_SQLITE_INTENT_INSERT; i++) {
        steps += sqlite3_stmt_status(reader->statements[i], SQLITE_STMTSTATUS_VM_STEP, 1);
    }
    return steps;
}

static int64_t steps_of(struct fixture *fixture, enum idem_read_kind kind, int filter)
{
    struct idem_read *read = fixture_ask(fixture, kind, "");
    read->filter = (enum idem_list_filter)filter;
    (void)steps_take(fixture);
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return steps_take(fixture);
}

static void pay(struct fixture *fixture, size_t number, bool settled)
{
    char name[24];
    struct call accept;
    struct call settle;
    (void)snprintf(name, sizeof(name), "name-%zu", number);
    struct order order = {
        .principal = "merchant-1",
        .key = name,
        .order_no = name,
        .amount_minor = 100,
    };
    call_pay(fixture, &accept, &order);
    fixture_run_durable(fixture, &accept, 1);
    if (settled) {
        call_evidence(fixture, &settle, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
        fixture_run_durable(fixture, &settle, 1);
    }
}

/* A message to the one webhook, told or still to be told. */
static void tell(struct fixture *fixture, size_t number, bool told)
{
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_message message = {
        .id = { .bytes = { 'm', (uint8_t)(number >> 8), (uint8_t)number } },
        .type = IDEM_MESSAGE_TEST,
        .principal = IDEM_STR("merchant-1"),
        .payment_id = { .bytes = { 'p' } },
        .at_us = FIXTURE_START_US,
    };
    struct idem_delivery_write write = { .write = IDEM_WRITE_UPDATE };
    const struct idem_uid webhook_id = { .bytes = { 'w' } };
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->add_message(rows, 0, &message), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->find_delivery(rows, message.id, webhook_id, &write.row),
                     IDEM_ROWS_OK);
    if (told) {
        write.row.version += 1;
        write.row.state = IDEM_DELIVERY_DELIVERED;
        write.row.due_us = 0;
        assert_int_equal(rows->ops->write_delivery(rows, &write), IDEM_ROWS_OK);
    }
    fixture_rows_commit(rows);
}

static void webhook_add(struct fixture *fixture)
{
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_webhook_write write = {
        .write = IDEM_WRITE_INSERT,
        .row = {
            .id = { .bytes = { 'w' } },
            .version = 1,
            .principal = IDEM_STR("merchant-1"),
            .types = UINT64_C(1) << IDEM_MESSAGE_TEST,
            .generation = 1,
        },
    };
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->write_webhook(rows, &write), IDEM_ROWS_OK);
    fixture_rows_commit(rows);
}

/* The same by commands, told: once the store's own thread writes, nobody else may. */
static void tell_by_command(struct fixture *fixture)
{
    const struct idem_uid webhook_id = { .bytes = { 'w' } };
    struct call test;
    struct call done;
    struct idem_command *said = call_begin(fixture, &test, IDEM_COMMAND_WEBHOOK);
    said->webhook = (struct idem_webhook_change){
        .action = IDEM_WEBHOOK_TEST,
        .row = { .id = webhook_id },
    };
    fixture_run_durable(fixture, &test, 1);
    call_begin(fixture, &done, IDEM_COMMAND_DELIVERY)->delivery = (struct idem_delivery_change){
        .word = IDEM_DELIVERY_WORD_DONE,
        .message_id = said->message_id,
        .webhook_id = webhook_id,
        .status = 200,
    };
    fixture_run_durable(fixture, &done, 1);
    assert_int_equal(done.outcome.release.problem, IDEM_PROBLEM_NONE);
}

static void finished_records_cost_readers_nothing(void **state)
{
    enum {
        TOLD = 2 * IDEM_READ_POSTS_MAX
    };
    struct fixture *fixture = *state;
    static const struct {
        enum idem_read_kind kind;
        int filter;
    } asked[] = {
        { IDEM_READ_SUMMARY, 0 },
        { IDEM_READ_DUE, 0 },
        { IDEM_READ_REAP, 0 },
        { IDEM_READ_LEFT, 0 },
        { IDEM_READ_CREDENTIALS, 0 },
        { IDEM_READ_LIST, IDEM_LIST_OPEN },
        { IDEM_READ_LIST, IDEM_LIST_PROCESSING },
        { IDEM_READ_LIST, IDEM_LIST_UNKNOWN },
        { IDEM_READ_LIST, IDEM_LIST_PARKED },
        { IDEM_READ_LIST, IDEM_LIST_RELEASED },
        { IDEM_READ_LIST, IDEM_LIST_CASES },
        { IDEM_READ_CASES, 0 },
        { IDEM_READ_WEBHOOKS, 0 },
        { IDEM_READ_POSTS, 0 },
        { IDEM_READ_DELIVERIES, 0 },
    };
    int64_t before[IDEM_ARRAY_COUNT(asked)];
    webhook_add(fixture);
    for (size_t i = 0; i < TOLD; i++) {
        tell(fixture, i, i != 0);
    }
    for (size_t i = 0; i < 8; i++) {
        pay(fixture, i, i == 0);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(asked); i++) {
        before[i] = steps_of(fixture, asked[i].kind, asked[i].filter);
    }
    for (size_t i = 8; i < 200; i++) {
        pay(fixture, i, true);
        tell_by_command(fixture);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(asked); i++) {
        assert_int_equal(steps_of(fixture, asked[i].kind, asked[i].filter), before[i]);
    }
}

/* One a minute, each with an effect. */
static void effects_add(struct fixture *fixture, int64_t first, int64_t count)
{
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    for (int64_t i = first; i < first + count; i++) {
        struct idem_intent_write write = {
            .write = IDEM_WRITE_INSERT,
            .row = {
                .principal = IDEM_STR("merchant-1"),
                .key = IDEM_STR("key"),
                .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
                .state = IDEM_INTENT_SUCCEEDED,
                .version = 1,
                .created_us = FIXTURE_START_US + i * MINUTE_US,
                .effect = { .kind = IDEM_EFFECT_KIND_CHARGE, .entry = IDEM_STR("sandbox") },
            },
        };
        memcpy(write.row.id.bytes, &i, sizeof(i));
        memcpy(write.row.scope.bytes, &i, sizeof(i));
        assert_int_equal(rows->ops->write_intent(rows, &write), IDEM_ROWS_OK);
    }
    fixture_rows_commit(rows);
}

static int64_t effects_steps(struct fixture *fixture, int64_t from_minute, size_t expected)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_EFFECTS, "");
    read->entry = IDEM_STR("sandbox");
    read->from_us = FIXTURE_START_US + from_minute * MINUTE_US;
    read->to_us = read->from_us + 10 * MINUTE_US;
    (void)steps_take(fixture);
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_int_equal(read->effect_count, expected);
    return steps_take(fixture);
}

static void a_time_among_many_records_is_found_by_halving(void **state)
{
    struct fixture *fixture = *state;
    effects_add(fixture, 0, 200);
    int64_t few = effects_steps(fixture, 100, 10);
    effects_add(fixture, 200, 12600);
    /* 64 times as many: six more looks, and as many again for each end. A walk takes 64 times. */
    assert_true(effects_steps(fixture, 100, 10) < 2 * few);
    assert_true(effects_steps(fixture, 6400, 10) < 3 * few);
    assert_true(effects_steps(fixture, 12790, 10) < 3 * few);
    assert_true(effects_steps(fixture, 20000, 0) < 3 * few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_statement_walks_over_what_is_over, setup, teardown),
        cmocka_unit_test_setup_teardown(finished_records_cost_readers_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_time_among_many_records_is_found_by_halving, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("store plans", tests, NULL, NULL);
}
