/*
 * The store on PostgreSQL when the server, the way to it or somebody else is in trouble.
 *
 * Goal: each of the six answers is true. What was DURABLE is there; NOTHING, CONFLICT, DOWN and
 * WRONG_NODE left nothing; UNKNOWN may be either, and the same command run again finds out without
 * a second payment. One key that is held up holds up no other.
 *
 * Method: a private server with fsync on, real commands, and faults made from outside: a standby
 * that never answers, cancelled waits, backends killed, strangers with open transactions, a server
 * that stops. Waiting is for what the server itself says about its backends.
 */
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>

#include "store/postgres/rows_internal.h"
#include "unit/store/pg_scene.h"

static const struct order shoes = {
    .principal = "merchant-1",
    .key = "key-1",
    .order_no = "order-1",
    .amount_minor = 1250,
};

#define WAITING "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

/* Anew with other settings. */
static void restart(const char *const *settings)
{
    pg_server_stop(fixture_server());
    pg_server_start(fixture_server(), settings);
}

static void each_error_means_one_thing(void **state)
{
    static const struct {
        enum idem_postgres_end end;
        const char *code;
        enum idem_rows_step in_batch;
        enum idem_rows_step alone;
    } cases[] = {
        { IDEM_POSTGRES_END_OK, "", IDEM_ROWS_OK, IDEM_ROWS_OK },
        { IDEM_POSTGRES_END_MISS, "", IDEM_ROWS_MISS, IDEM_ROWS_MISS },
        { IDEM_POSTGRES_END_GONE, "57P01", IDEM_ROWS_REFUSED, IDEM_ROWS_REFUSED },
        { IDEM_POSTGRES_END_ERROR, "23505", IDEM_ROWS_MISS, IDEM_ROWS_MISS },
        { IDEM_POSTGRES_END_ERROR, "23514", IDEM_ROWS_MISS, IDEM_ROWS_MISS },
        { IDEM_POSTGRES_END_ERROR, "22021", IDEM_ROWS_MISS, IDEM_ROWS_MISS },
        { IDEM_POSTGRES_END_ERROR, "55P03", IDEM_ROWS_MISS, IDEM_ROWS_REFUSED },
        { IDEM_POSTGRES_END_ERROR, "57014", IDEM_ROWS_MISS, IDEM_ROWS_REFUSED },
        { IDEM_POSTGRES_END_ERROR, "40P01", IDEM_ROWS_MISS, IDEM_ROWS_REFUSED },
        { IDEM_POSTGRES_END_ERROR, "40001", IDEM_ROWS_MISS, IDEM_ROWS_REFUSED },
        { IDEM_POSTGRES_END_ERROR, "25006", IDEM_ROWS_WRONG_NODE, IDEM_ROWS_WRONG_NODE },
        { IDEM_POSTGRES_END_ERROR, "XX001", IDEM_ROWS_DAMAGED, IDEM_ROWS_DAMAGED },
        { IDEM_POSTGRES_END_ERROR, "53100", IDEM_ROWS_REFUSED, IDEM_ROWS_REFUSED },
        { IDEM_POSTGRES_END_ERROR, "42501", IDEM_ROWS_REFUSED, IDEM_ROWS_REFUSED },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        assert_int_equal(idem_postgres_step_of(cases[i].end, cases[i].code, false),
                         cases[i].in_batch);
        assert_int_equal(idem_postgres_step_of(cases[i].end, cases[i].code, true), cases[i].alone);
    }
}

static void a_server_that_may_forget_is_refused(void **state)
{
    static const struct {
        const char *settings[3];
        const char *word;
    } cases[] = {
        { { "fsync=off", NULL }, "fsync" },
        { { "full_page_writes=off", NULL }, "full_page_writes" },
        { { "synchronous_standby_names=x", "synchronous_commit=local", NULL },
          "synchronous_commit" },
    };
    struct fixture *fixture = *state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        restart(cases[i].settings);
        pg_expect_refused(fixture, cases[i].word);
    }
    restart(NULL);
}

static void a_server_that_no_standby_answers_for_is_refused(void **state)
{
    static const char *const settings[] = { "synchronous_standby_names=x", NULL };
    struct fixture *fixture = *state;
    fixture->postgres.wait_us = 2 * IDEM_US_PER_SECOND;
    restart(settings);
    pg_expect_refused(fixture, "no standby answers");
    assert_int_equal(pg_server_number(fixture_server(), WAITING), 0); /* It left nobody waiting. */
    restart(NULL);
}

static void without_a_standby_a_weaker_level_is_raised(void **state)
{
    static const char *const settings[] = { "synchronous_commit=off", NULL };
    struct fixture *fixture = *state;
    struct idem_postgres_wire *wire = calloc(1, sizeof(*wire));
    PGresult *result = NULL;
    assert_non_null(wire);
    restart(settings);
    wire->wait_us = fixture->postgres.wait_us;
    assert_int_equal(idem_postgres_session_begin(wire, &fixture->postgres), IDEM_ROWS_OK);
    idem_postgres_wire_say(wire, "SHOW synchronous_commit", &result);
    assert_int_equal(idem_postgres_wire_round(wire), IDEM_POSTGRES_END_OK);
    EXPECT_TEXT(idem_postgres_text(result, 0, 0), "on");
    PQclear(result);
    idem_postgres_wire_close(wire);
    free(wire);
    restart(NULL);
}

static void a_standby_is_neither_written_nor_asked(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);

    pg_server_stop(fixture_server());
    pg_server_set_standby(fixture_server(), true);
    pg_server_start(fixture_server(), NULL);
    pg_expect_answer(fixture_run(fixture, &call, 1), "wrong-node");
    (void)fixture_ask(fixture, IDEM_READ_DUE, "");
    fixture_read(fixture);
    assert_int_not_equal(fixture->read.answer, IDEM_STORE_DURABLE);
    pg_expect_refused(fixture, "standby");

    pg_server_stop(fixture_server());
    pg_server_set_standby(fixture_server(), false);
    pg_server_start(fixture_server(), NULL);
    pg_expect_found_out(fixture, &call);
}

static void a_schema_that_is_not_ours_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    pg_server_say(
        fixture_server(),
        "UPDATE idem.meta SET value = '99' WHERE key IN ('schema_version', 'schema_min')");
    pg_expect_refused(fixture, "version 99");
    pg_server_say(fixture_server(), "UPDATE idem.meta SET value = '1' WHERE key = 'schema_min'");
    pg_server_say(fixture_server(), "DELETE FROM idem.meta WHERE key = 'schema_version'");
    pg_expect_refused(fixture, "not one of ours");
    pg_server_say(fixture_server(),
                  "INSERT INTO idem.meta SELECT 'schema_version',"
                  " max(version)::text FROM idem.migrations");
    fixture->options.effect_secret_check.bytes[0] ^= 1;
    pg_expect_refused(fixture, "effect_secret");
    fixture->options.effect_secret_check.bytes[0] ^= 1;
    fixture->options.scope_rule = IDEM_STR("principal");
    pg_expect_refused(fixture, "scope");
    fixture->options.scope_rule = IDEM_STR("endpoint");
    fixture_open(fixture);
}

static void a_cancelled_wait_for_the_standby_is_unknown(void **state)
{
    struct fixture *fixture = *state;
    struct flight flight;
    pg_writer_connect(fixture);
    pg_standby_expect(true);
    call_pay(fixture, &flight.call, &shoes);
    pg_flight_submit(fixture, &flight);
    (void)pg_wait_for(
        "SELECT pg_cancel_backend(pid)::integer FROM pg_stat_activity"
        " WHERE wait_event = 'SyncRep'");
    pg_expect_answer(pg_flight_reap(fixture, &flight), "unknown");
    pg_standby_expect(false);
    pg_expect_found_out(fixture, &flight.call);
}

static void a_backend_killed_in_its_commit_is_unknown(void **state)
{
    struct fixture *fixture = *state;
    struct flight flight;
    pg_writer_connect(fixture);
    pg_standby_expect(true);
    call_pay(fixture, &flight.call, &shoes);
    pg_flight_submit(fixture, &flight);
    pid_t backend = (pid_t)pg_wait_for(WAITING);
    pg_server_say(fixture_server(), "ALTER SYSTEM RESET synchronous_standby_names");
    assert_int_equal(kill(backend, SIGKILL), 0);
    pg_expect_answer(pg_flight_reap(fixture, &flight), "unknown");
    while (PQping(fixture_server()->url) != PQPING_OK) { /* The server begins anew by itself. */
        (void)poll(NULL, 0, STEP_MS);
    }
    pg_standby_expect(false);
    pg_expect_found_out(fixture, &flight.call);
}

static void silence_after_commit_is_unknown_by_our_own_clock(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    fixture->postgres.wait_us = 500 * IDEM_US_PER_MS;
    fixture_open(fixture);
    pg_writer_connect(fixture);
    call_pay(fixture, &call, &shoes);
    call.item.command.accept.wait_us = 0;
    pg_standby_expect(true);
    int64_t begin_us = idem_postgres_mono_us();
    pg_expect_answer(fixture_run(fixture, &call, 1), "unknown");
    assert_true(idem_postgres_mono_us() - begin_us >= fixture->postgres.wait_us);
    pg_standby_expect(false);
    pg_expect_found_out(fixture, &call);
}

static void an_idle_connection_that_ended_is_made_anew(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    pg_server_say(fixture_server(),
                  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                  " WHERE application_name = 'idem'");
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(pg_count_intents(), 1);
}

static void a_server_that_is_not_there_is_down_and_found_again(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    pg_server_stop(fixture_server());
    for (int i = 0; i < 3; i++) {
        pg_expect_answer(fixture_run(fixture, &call, 1), "down");
    }
    (void)fixture_ask(fixture, IDEM_READ_DUE, "");
    fixture_read(fixture);
    pg_expect_answer(fixture->read.answer, "down");
    assert_false(fixture->store->broken);
    pg_server_start(fixture_server(), NULL);
    pg_expect_found_out(fixture, &call);
}

static void the_pause_between_tries_grows(void **state)
{
    struct fixture *fixture = *state;
    struct idem_postgres_connection *connection = calloc(1, sizeof(*connection));
    int64_t former_us = 0;
    assert_non_null(connection);
    fixture->postgres.url = "host=127.0.0.1 port=1 user=idem dbname=postgres";
    idem_postgres_connection_init(connection, &fixture->postgres, &fixture->clock);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(idem_postgres_session(connection), IDEM_ROWS_DOWN);
        assert_true(connection->pause_us > former_us);
        former_us = connection->pause_us;
        assert_int_equal(idem_postgres_session(connection), IDEM_ROWS_DOWN); /* Not tried. */
        assert_int_equal(connection->pause_us, former_us);
        connection->retry_us = 0;
    }
    idem_postgres_connection_deinit(connection);
    free(connection);
}

static void a_row_that_a_stranger_holds_holds_up_no_other(void **state)
{
    struct fixture *fixture = *state;
    struct call first;
    struct call calls[2];
    struct order other = shoes;
    other.key = "key-2";
    other.order_no = "order-2";
    call_pay(fixture, &first, &shoes);
    fixture_run_durable(fixture, &first, 1);

    PGconn *stranger = pg_stranger_begin("BEGIN; SELECT 1 FROM idem.intents FOR UPDATE");
    call_evidence(fixture, &calls[0], &first, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    call_pay(fixture, &calls[1], &other);
    pg_expect_answer(fixture_run(fixture, calls, 2), "nothing");
    pg_expect_answer(calls[0].item.answer, "nothing");
    pg_expect_answer(calls[1].item.answer, "durable");
    PQfinish(stranger);
    fixture_run_durable(fixture, &calls[0], 1);
    assert_int_equal(calls[0].outcome.intent.state, IDEM_INTENT_SUCCEEDED);
}

static void a_key_that_a_stranger_claims_holds_up_no_other(void **state)
{
    struct fixture *fixture = *state;
    struct call first;
    struct call calls[2];
    struct order order = shoes;
    char sql[512];
    char scope[33] = "";
    call_pay(fixture, &first, &shoes);
    fixture_run_durable(fixture, &first, 1);
    for (size_t i = 0; i < 2; i++) {
        order.key = i == 0 ? "key-2" : "key-3";
        order.order_no = order.key;
        call_pay(fixture, &calls[i], &order);
    }
    for (size_t i = 0; i < 16; i++) {
        (void)snprintf(scope + 2 * i, 3, "%02x", calls[0].item.command.scope.bytes[i]);
    }
    (void)snprintf(sql, sizeof(sql),
                   "BEGIN; CREATE TEMP TABLE t AS SELECT * FROM idem.intents;"
                   " UPDATE t SET row = 100000, id = '\\x%s', scope = '\\x%s';"
                   " INSERT INTO idem.intents SELECT * FROM t",
                   scope, scope);
    PGconn *stranger = pg_stranger_begin(sql);
    pg_expect_answer(fixture_run(fixture, calls, 2), "nothing");
    pg_expect_answer(calls[0].item.answer, "nothing");
    pg_expect_answer(calls[1].item.answer, "durable");
    PQfinish(stranger); /* Its claim was never there. */
    fixture_run_durable(fixture, &calls[0], 1);
    assert_int_equal(calls[0].outcome.release.kind, IDEM_RELEASE_SEND);
    assert_int_equal(pg_count_intents(), 3);
}

static void what_cannot_be_stored_keeps_nothing_else_from_it(void **state)
{
    struct fixture *fixture = *state;
    struct call calls[2];
    struct order order = shoes;
    order.order_no = "\xff\xfe"; /* Not UTF-8. */
    call_pay(fixture, &calls[0], &order);
    order.key = "key-2";
    order.order_no = "order-2";
    order.description = "\xff\xfe"; /* Only kept: any bytes will do. */
    call_pay(fixture, &calls[1], &order);
    pg_expect_answer(fixture_run(fixture, calls, 2), "conflict");
    pg_expect_answer(calls[0].item.answer, "conflict");
    pg_expect_answer(calls[1].item.answer, "durable");
    assert_int_equal(pg_count_intents(), 1);
}

static void commands_are_stamped_by_the_databases_clock(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    fixture->postgres.clock_is_ours = false;
    fixture->clock.wall_base_us = INT64_C(2000000000000000); /* Years ahead. */
    fixture_open(fixture);
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    long long now_us =
        pg_server_number(fixture_server(), "SELECT (extract(epoch FROM now()) * 1000000)::bigint");
    assert_true(call.item.command.now_us <= now_us);
    assert_true(call.item.command.now_us > now_us - 60 * IDEM_US_PER_SECOND);
    assert_int_equal(call.item.command.mono_us, fixture->clock.wall_base_us);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_DUE, "");
    fixture_read(fixture);
    assert_int_equal(read->due_count, 0); /* Not by its clock. */
    assert_true(read->next_due_us > fixture->clock.wall_base_us);
    assert_true(read->next_due_us <= fixture->clock.wall_base_us + fixture->rules.lease_us);
}

#define OPEN(test)   cmocka_unit_test_setup_teardown(test, pg_setup, pg_teardown)
#define CLOSED(test) cmocka_unit_test_setup_teardown(test, pg_setup_closed, pg_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_error_means_one_thing),
        CLOSED(a_server_that_may_forget_is_refused),
        CLOSED(a_server_that_no_standby_answers_for_is_refused),
        CLOSED(without_a_standby_a_weaker_level_is_raised),
        OPEN(a_standby_is_neither_written_nor_asked),
        OPEN(a_schema_that_is_not_ours_is_refused),
        OPEN(a_cancelled_wait_for_the_standby_is_unknown),
        OPEN(a_backend_killed_in_its_commit_is_unknown),
        CLOSED(silence_after_commit_is_unknown_by_our_own_clock),
        OPEN(an_idle_connection_that_ended_is_made_anew),
        OPEN(a_server_that_is_not_there_is_down_and_found_again),
        CLOSED(the_pause_between_tries_grows),
        OPEN(a_row_that_a_stranger_holds_holds_up_no_other),
        OPEN(a_key_that_a_stranger_claims_holds_up_no_other),
        OPEN(what_cannot_be_stored_keeps_nothing_else_from_it),
        CLOSED(commands_are_stamped_by_the_databases_clock),
    };
    return cmocka_run_group_tests_name("store/postgres", tests, NULL, NULL);
}
