/*
 * What SQLite's planner does with the statements.
 *
 * Goal: nothing that is asked while serving walks over records that are over, however many there
 * are: each table is searched by an index, or scanned only in a partial index of what is open. The
 * one exception is asked once, after an older copy was put back.
 *
 * Method: EXPLAIN QUERY PLAN of every prepared statement, read line by line. Then the same with
 * rows: the steps that SQLite's virtual machine takes stay the same when finished records come on
 * top.
 */
#include <stdlib.h>

#include "base/attr.h"
#include "lib/test.h"
#include "store/sqlite/sqlite_internal.h"
#include "unit/store/fixture.h"

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

/* A scan that may be: of what is open only, of few rows, or of a page that was chosen before. */
static bool scan_is_bounded(const char *line)
{
    static const char *const bounded[] = {
        "INDEX intents_due",
        "INDEX intents_reap",
        "INDEX cases_open",
        "SCAN stubs",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bounded); i++) {
        if (strstr(line, bounded[i]) != NULL) {
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

static void finished_records_cost_readers_nothing(void **state)
{
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
    };
    int64_t before[IDEM_ARRAY_COUNT(asked)];
    for (size_t i = 0; i < 8; i++) {
        pay(fixture, i, i == 0);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(asked); i++) {
        before[i] = steps_of(fixture, asked[i].kind, asked[i].filter);
    }
    for (size_t i = 8; i < 200; i++) {
        pay(fixture, i, true);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(asked); i++) {
        assert_int_equal(steps_of(fixture, asked[i].kind, asked[i].filter), before[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_statement_walks_over_what_is_over, setup, teardown),
        cmocka_unit_test_setup_teardown(finished_records_cost_readers_nothing, setup, teardown),
    };
    return cmocka_run_group_tests_name("store plans", tests, NULL, NULL);
}
