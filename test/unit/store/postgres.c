/*
 * The store on PostgreSQL when the server, the way to it or somebody else is in trouble.
 *
 * Goal: each of the six answers is true. What was DURABLE is there; NOTHING, CONFLICT, DOWN and
 * WRONG_NODE left nothing; UNKNOWN may be either, and the same command run again finds out without
 * a second payment. One key that is held up holds up no other. Instances share a database without
 * taking one another's work.
 *
 * Method: a private server with fsync on, real commands, and faults made from outside: a standby
 * that never answers, cancelled waits, backends killed, strangers with open transactions, a server
 * that stops. Waiting is for what the server itself says about its backends.
 */
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>

#include "lib/test.h"
#include "store/postgres/rows_internal.h"
#include "unit/store/fixture.h"

#define TRIES_MAX 3000
#define STEP_MS   10

static const struct order shoes = {
    .principal = "merchant-1",
    .key = "key-1",
    .order_no = "order-1",
    .amount_minor = 1250,
};

static int setup_closed(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_POSTGRES);
    *state = &fixture;
    return 0;
}

static int setup(void **state)
{
    (void)setup_closed(state);
    fixture_open(*state);
    return 0;
}

static int teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

/* Anew with other settings. */
static void restart(const char *const *settings)
{
    pg_server_stop(fixture_server());
    pg_server_start(fixture_server(), settings);
}

static void expect_refused(struct fixture *fixture, const char *word)
{
    struct idem_store *store = NULL;
    struct idem_error error = { .text = "" };
    assert_int_equal(fixture_try_open(fixture, &store, &error), IDEM_E_STORE);
    if (strstr(error.text, word) == NULL) {
        fail_msg("\"%s\" is not in: %s", word, error.text);
    }
    assert_null(store);
}

static void expect_answer(enum idem_store_answer answer, const char *name)
{
    assert_string_equal(idem_store_answer_name(answer), name);
}

static long long count_intents(void)
{
    return pg_server_number(fixture_server(), "SELECT count(*) FROM idem.intents");
}

/* A batch that is in flight while the test does something. */
struct flight {
    struct call call;
    struct idem_store_batch batch;
};

static void flight_submit(struct fixture *fixture, struct flight *flight)
{
    flight->batch = (struct idem_store_batch){ .answer = IDEM_STORE_NONE };
    idem_list_push(&flight->batch.items, &flight->call.item.node);
    idem_store_submit(fixture->store, &flight->batch);
}

static enum idem_store_answer flight_reap(struct fixture *fixture, struct flight *flight)
{
    struct idem_list batches = { .count = 0 };
    struct idem_list reads = { .count = 0 };
    idem_store_reap(fixture->store, &batches, &reads);
    while (batches.count == 0) {
        fixture_wait(fixture);
        idem_store_reap(fixture->store, &batches, &reads);
    }
    (void)idem_list_pop(&flight->batch.items);
    return flight->batch.answer;
}

/* Until `sql` says a number that is not 0. */
static long long wait_for(const char *sql)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        long long number = pg_server_number(fixture_server(), sql);
        if (number != 0) {
            return number;
        }
        (void)poll(NULL, 0, STEP_MS); /* Another process: there is nothing to wake us. */
    }
    fail_msg("never: %s", sql);
    return 0;
}

#define WAITING "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

/* From now on every COMMIT waits for a standby that never comes, or not any more. */
static void standby_expect(bool expected)
{
    pg_server_say(fixture_server(), expected ? "ALTER SYSTEM SET synchronous_standby_names = 'x'"
                                             : "ALTER SYSTEM RESET synchronous_standby_names");
    pg_server_say(fixture_server(), "SELECT pg_reload_conf()");
    (void)wait_for(expected ? "SELECT count(*) FROM pg_settings"
                              " WHERE name = 'synchronous_standby_names' AND setting = 'x'"
                            : "SELECT count(*) FROM pg_settings"
                              " WHERE name = 'synchronous_standby_names' AND setting = ''");
}

/* Runs the same command until somebody knows: one payment, told to be sent as it was. */
static void expect_found_out(struct fixture *fixture, struct call *call)
{
    struct idem_command before = call->item.command;
    enum idem_store_answer answer = IDEM_STORE_NONE;
    for (int i = 0; i < TRIES_MAX && answer != IDEM_STORE_DURABLE; i++) {
        answer = fixture_run(fixture, call, 1);
        (void)poll(NULL, 0, answer == IDEM_STORE_DURABLE ? 0 : STEP_MS);
    }
    expect_answer(answer, "durable");
    assert_int_equal(call->item.command.now_us, before.now_us);
    assert_int_equal(call->outcome.release.kind, IDEM_RELEASE_SEND);
    assert_int_equal(call->outcome.release.send_no, 1);
    assert_int_equal(count_intents(), 1);
    assert_int_equal(pg_server_number(fixture_server(), "SELECT count(*) FROM idem.payments"), 1);
    assert_int_equal(pg_server_number(fixture_server(), "SELECT count(*) FROM idem.sends"), 1);
    assert_false(fixture->store->broken);
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
        expect_refused(fixture, cases[i].word);
    }
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
    expect_answer(fixture_run(fixture, &call, 1), "wrong-node");
    (void)fixture_ask(fixture, IDEM_READ_DUE, "");
    fixture_read(fixture);
    assert_int_not_equal(fixture->read.answer, IDEM_STORE_DURABLE);
    expect_refused(fixture, "standby");

    pg_server_stop(fixture_server());
    pg_server_set_standby(fixture_server(), false);
    pg_server_start(fixture_server(), NULL);
    expect_found_out(fixture, &call);
}

static void a_schema_that_is_not_ours_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    pg_server_say(fixture_server(),
                  "UPDATE idem.meta SET value = '99' WHERE key = 'schema_version'");
    expect_refused(fixture, "version 99");
    pg_server_say(fixture_server(), "DELETE FROM idem.meta WHERE key = 'schema_version'");
    expect_refused(fixture, "not one of ours");
    pg_server_say(fixture_server(), "INSERT INTO idem.meta VALUES ('schema_version', '1')");
    fixture->options.effect_secret_check.bytes[0] ^= 1;
    expect_refused(fixture, "effect_secret");
    fixture->options.effect_secret_check.bytes[0] ^= 1;
    fixture->options.scope_rule = IDEM_STR("principal");
    expect_refused(fixture, "scope");
    fixture->options.scope_rule = IDEM_STR("endpoint");
    fixture_open(fixture);
}

static void a_cancelled_wait_for_the_standby_is_unknown(void **state)
{
    struct fixture *fixture = *state;
    struct flight flight;
    standby_expect(true);
    call_pay(fixture, &flight.call, &shoes);
    flight_submit(fixture, &flight);
    (void)wait_for(
        "SELECT pg_cancel_backend(pid)::integer FROM pg_stat_activity"
        " WHERE wait_event = 'SyncRep'");
    expect_answer(flight_reap(fixture, &flight), "unknown");
    standby_expect(false);
    expect_found_out(fixture, &flight.call);
}

static void a_backend_killed_in_its_commit_is_unknown(void **state)
{
    struct fixture *fixture = *state;
    struct flight flight;
    standby_expect(true);
    call_pay(fixture, &flight.call, &shoes);
    flight_submit(fixture, &flight);
    pid_t backend = (pid_t)wait_for(WAITING);
    pg_server_say(fixture_server(), "ALTER SYSTEM RESET synchronous_standby_names");
    assert_int_equal(kill(backend, SIGKILL), 0);
    expect_answer(flight_reap(fixture, &flight), "unknown");
    while (PQping(fixture_server()->url) != PQPING_OK) { /* The server begins anew by itself. */
        (void)poll(NULL, 0, STEP_MS);
    }
    standby_expect(false);
    expect_found_out(fixture, &flight.call);
}

static void silence_after_commit_is_unknown_by_our_own_clock(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    fixture->postgres.wait_us = 500 * IDEM_US_PER_MS;
    fixture_open(fixture);
    call_pay(fixture, &call, &shoes);
    call.item.command.accept.wait_us = 0;
    standby_expect(true);
    int64_t begin_us = idem_postgres_mono_us();
    expect_answer(fixture_run(fixture, &call, 1), "unknown");
    assert_true(idem_postgres_mono_us() - begin_us >= fixture->postgres.wait_us);
    standby_expect(false);
    expect_found_out(fixture, &call);
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
    assert_int_equal(count_intents(), 1);
}

static void a_server_that_is_not_there_is_down_and_found_again(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    pg_server_stop(fixture_server());
    for (int i = 0; i < 3; i++) {
        expect_answer(fixture_run(fixture, &call, 1), "down");
    }
    (void)fixture_ask(fixture, IDEM_READ_DUE, "");
    fixture_read(fixture);
    expect_answer(fixture->read.answer, "down");
    assert_false(fixture->store->broken);
    pg_server_start(fixture_server(), NULL);
    expect_found_out(fixture, &call);
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

/* A stranger's transaction, for as long as it is open. */
static PGconn *stranger_begin(const char *sql)
{
    PGconn *stranger = PQconnectdb(fixture_server()->url);
    PGresult *result = PQexec(stranger, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(stranger));
    }
    PQclear(result);
    return stranger;
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

    PGconn *stranger = stranger_begin("BEGIN; SELECT 1 FROM idem.intents FOR UPDATE");
    call_evidence(fixture, &calls[0], &first, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    call_pay(fixture, &calls[1], &other);
    expect_answer(fixture_run(fixture, calls, 2), "nothing");
    expect_answer(calls[0].item.answer, "nothing");
    expect_answer(calls[1].item.answer, "durable");
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
    PGconn *stranger = stranger_begin(sql);
    expect_answer(fixture_run(fixture, calls, 2), "nothing");
    expect_answer(calls[0].item.answer, "nothing");
    expect_answer(calls[1].item.answer, "durable");
    PQfinish(stranger); /* Its claim was never there. */
    fixture_run_durable(fixture, &calls[0], 1);
    assert_int_equal(calls[0].outcome.release.kind, IDEM_RELEASE_SEND);
    assert_int_equal(count_intents(), 3);
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
    expect_answer(fixture_run(fixture, calls, 2), "conflict");
    expect_answer(calls[0].item.answer, "conflict");
    expect_answer(calls[1].item.answer, "durable");
    assert_int_equal(count_intents(), 1);
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

/* Another instance on the same database, with a clock of its own. */
static void second_open(struct fixture *second, struct fixture *first)
{
    *second = *first;
    second->store = NULL;
    second->wake_count = 0;
    second->uid_next = 1000000;
    second->options.clock = &second->clock;
    second->options.rules = &second->rules;
    second->rules.providers = &second->provider;
    second->options.wake_context = second;
    assert_int_equal(pthread_mutex_init(&second->mutex, NULL), 0);
    assert_int_equal(pthread_cond_init(&second->woken, NULL), 0);
    fixture_open(second);
}

static void second_close(struct fixture *second)
{
    fixture_close(second);
    assert_int_equal(pthread_cond_destroy(&second->woken), 0);
    assert_int_equal(pthread_mutex_destroy(&second->mutex), 0);
}

static size_t left_count(struct fixture *fixture)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_LEFT, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return read->due_count;
}

static long long incarnation_of(const char *key)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "SELECT incarnation FROM idem.intents WHERE key = '%s'", key);
    return pg_server_number(fixture_server(), sql);
}

static void nobody_takes_what_a_living_instance_works_on(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call call;
    struct call due;
    struct call joins;
    second_open(&second, first);
    assert_int_not_equal(second.store->incarnation, first->store->incarnation);
    call_pay(first, &call, &shoes);
    fixture_run_durable(first, &call, 1);

    assert_int_equal(left_count(&second), 0);
    call_due(&second, &due, call.outcome.intent.scope, call.outcome.intent.row);
    fixture_run_durable(&second, &due, 1);
    assert_int_equal(due.outcome.release.kind, IDEM_RELEASE_NONE);
    assert_int_equal(due.outcome.intent.state, IDEM_INTENT_DISPATCHED);
    call_pay(&second, &joins, &shoes);
    fixture_run_durable(&second, &joins, 1);
    assert_int_equal(joins.outcome.release.kind, IDEM_RELEASE_WAIT);
    assert_int_equal(incarnation_of("key-1"), first->store->incarnation);

    fixture_close(first); /* It says so: what it left is over at once. */
    assert_int_equal(left_count(&second), 1);
    call_due(&second, &due, call.outcome.intent.scope, call.outcome.intent.row);
    fixture_run_durable(&second, &due, 1);
    assert_int_not_equal(due.outcome.release.kind, IDEM_RELEASE_NONE);
    assert_int_equal(incarnation_of("key-1"), second.store->incarnation);
    second_close(&second);
    fixture_open(first);
}

static void who_only_writes_on_an_intent_does_not_become_its_owner(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call call;
    struct call news;
    second_open(&second, first);
    call_pay(first, &call, &shoes);
    fixture_run_durable(first, &call, 1);
    call_evidence(&second, &news, &call, IDEM_SOURCE_QUERY, IDEM_OUTCOME_NOT_FOUND);
    fixture_run_durable(&second, &news, 1);
    assert_true(news.outcome.intent.version > call.outcome.intent.version); /* It wrote. */
    assert_int_equal(incarnation_of("key-1"), first->store->incarnation);
    second_close(&second);
}

static void an_instance_that_fell_silent_is_dead(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call call;
    call_pay(first, &call, &shoes);
    fixture_run_durable(first, &call, 1);
    pg_server_say(fixture_server(), "UPDATE idem.instances SET seen_us = seen_us - 20000000");
    second_open(&second, first);
    assert_int_equal(left_count(&second), 1);
    second_close(&second);
}

enum {
    RACE_KEYS = 64
};

/* The same keys at two instances at once, in opposite order. */
static void one_of_two_instances_wins_each_key(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    static struct call calls[2][RACE_KEYS];
    static char names[RACE_KEYS][16];
    struct idem_store_batch batches[2] = { { .answer = IDEM_STORE_NONE },
                                           { .answer = IDEM_STORE_NONE } };
    second_open(&second, first);
    struct fixture *const both[] = { first, &second };
    for (size_t i = 0; i < RACE_KEYS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "name-%zu", i);
    }
    for (size_t i = 0; i < 2 * (size_t)RACE_KEYS; i++) {
        size_t side = i % 2;
        size_t key = side == 0 ? i / 2 : RACE_KEYS - 1 - i / 2;
        struct order order = shoes;
        order.key = names[key];
        order.order_no = names[key];
        call_pay(both[side], &calls[side][key], &order);
        idem_list_push(&batches[side].items, &calls[side][key].item.node);
    }
    for (size_t side = 0; side < 2; side++) {
        idem_store_submit(both[side]->store, &batches[side]);
    }
    for (size_t side = 0; side < 2; side++) {
        struct idem_list done = { .count = 0 };
        struct idem_list reads = { .count = 0 };
        while (done.count == 0) {
            fixture_wait(both[side]);
            idem_store_reap(both[side]->store, &done, &reads);
        }
        expect_answer(batches[side].answer, "durable");
    }
    for (size_t key = 0; key < RACE_KEYS; key++) {
        bool first_sends = calls[0][key].outcome.release.kind == IDEM_RELEASE_SEND;
        bool second_sends = calls[1][key].outcome.release.kind == IDEM_RELEASE_SEND;
        assert_int_not_equal(first_sends, second_sends);
    }
    assert_int_equal(count_intents(), RACE_KEYS);
    assert_int_equal(pg_server_number(fixture_server(), "SELECT count(*) FROM idem.sends"),
                     RACE_KEYS);
    second_close(&second);
}

#define OPEN(test)   cmocka_unit_test_setup_teardown(test, setup, teardown)
#define CLOSED(test) cmocka_unit_test_setup_teardown(test, setup_closed, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_error_means_one_thing),
        CLOSED(a_server_that_may_forget_is_refused),
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
        OPEN(nobody_takes_what_a_living_instance_works_on),
        OPEN(who_only_writes_on_an_intent_does_not_become_its_owner),
        OPEN(an_instance_that_fell_silent_is_dead),
        OPEN(one_of_two_instances_wins_each_key),
    };
    return cmocka_run_group_tests_name("store/postgres", tests, NULL, NULL);
}
