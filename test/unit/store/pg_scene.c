/*
 * What the tests of the store on PostgreSQL share (pg_scene.h).
 */
#include "unit/store/pg_scene.h"

#include <poll.h>

int pg_setup_closed(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_POSTGRES);
    *state = &fixture;
    return 0;
}

int pg_setup(void **state)
{
    (void)pg_setup_closed(state);
    fixture_open(*state);
    return 0;
}

int pg_teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

void pg_second_open(struct fixture *second, struct fixture *first)
{
    /* What stands behind the mutex is the first store's threads' as well. */
    memcpy(second, first, offsetof(struct fixture, mutex));
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

void pg_second_close(struct fixture *second)
{
    fixture_close(second);
    assert_int_equal(pthread_cond_destroy(&second->woken), 0);
    assert_int_equal(pthread_mutex_destroy(&second->mutex), 0);
}

void pg_expect_refused(struct fixture *fixture, const char *word)
{
    struct idem_store *store = NULL;
    struct idem_error error = { .text = "" };
    assert_int_equal(fixture_try_open(fixture, &store, &error), IDEM_E_STORE);
    if (strstr(error.text, word) == NULL) {
        fail_msg("\"%s\" is not in: %s", word, error.text);
    }
    assert_null(store);
}

void pg_expect_answer(enum idem_store_answer answer, const char *name)
{
    assert_string_equal(idem_store_answer_name(answer), name);
}

long long pg_count_intents(void)
{
    return pg_server_number(fixture_server(), "SELECT count(*) FROM idem.intents");
}

void pg_flight_submit(struct fixture *fixture, struct flight *flight)
{
    flight->batch = (struct idem_store_batch){ .answer = IDEM_STORE_NONE };
    idem_list_push(&flight->batch.items, &flight->call.item.node);
    idem_store_submit(fixture->store, &flight->batch);
}

enum idem_store_answer pg_flight_reap(struct fixture *fixture, struct flight *flight)
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
long long pg_wait_for(const char *sql)
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

/* From now on every COMMIT waits for a standby that never comes, or not any more. */
void pg_standby_expect(bool expected)
{
    pg_server_say(fixture_server(), expected ? "ALTER SYSTEM SET synchronous_standby_names = 'x'"
                                             : "ALTER SYSTEM RESET synchronous_standby_names");
    pg_server_say(fixture_server(), "SELECT pg_reload_conf()");
    (void)pg_wait_for(expected ? "SELECT count(*) FROM pg_settings"
                                 " WHERE name = 'synchronous_standby_names' AND setting = 'x'"
                               : "SELECT count(*) FROM pg_settings"
                                 " WHERE name = 'synchronous_standby_names' AND setting = ''");
}

/* A command that finds nothing: the writer is connected, and waits for no standby to begin. */
void pg_writer_connect(struct fixture *fixture)
{
    static const struct idem_scope nobody;
    struct call call;
    call_due(fixture, &call, nobody, 1);
    fixture_run_durable(fixture, &call, 1);
}

/* Runs the same command until somebody knows: one payment, told to be sent as it was. */
void pg_expect_found_out(struct fixture *fixture, struct call *call)
{
    struct idem_command before = call->item.command;
    enum idem_store_answer answer = IDEM_STORE_NONE;
    for (int i = 0; i < TRIES_MAX && answer != IDEM_STORE_DURABLE; i++) {
        answer = fixture_run(fixture, call, 1);
        (void)poll(NULL, 0, answer == IDEM_STORE_DURABLE ? 0 : STEP_MS);
    }
    pg_expect_answer(answer, "durable");
    assert_int_equal(call->item.command.now_us, before.now_us);
    assert_int_equal(call->outcome.release.kind, IDEM_RELEASE_SEND);
    assert_int_equal(call->outcome.release.send_no, 1);
    assert_int_equal(pg_count_intents(), 1);
    assert_int_equal(pg_server_number(fixture_server(), "SELECT count(*) FROM idem.payments"), 1);
    assert_int_equal(pg_server_number(fixture_server(), "SELECT count(*) FROM idem.sends"), 1);
    assert_false(fixture->store->broken);
}

/* A stranger's transaction, for as long as it is open. */
PGconn *pg_stranger_begin(const char *sql)
{
    PGconn *stranger = PQconnectdb(fixture_server()->url);
    PGresult *result = PQexec(stranger, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(stranger));
    }
    PQclear(result);
    return stranger;
}
