/*
 * The library in a caller's PostgreSQL transaction, where it meets others: other transactions,
 * servers that stop answering, connections in a state that it cannot use.
 *
 * Method: one private server; each test has two connections. A silent server is one whose process
 * is stopped.
 */
#include <libpq-fe.h>
#include <signal.h>
#include <unistd.h>

#include "idem/idem.h"
#include "lib/pg_server.h"
#include "lib/test.h"

static struct pg_server server;
static struct idem_local_error error;

static PGconn *connect_as(const char *words)
{
    char url[256];
    (void)snprintf(url, sizeof(url), "%s %s", server.url, words);
    PGconn *connection = PQconnectdb(url);
    if (PQstatus(connection) != CONNECTION_OK) {
        fail_msg("%s", PQerrorMessage(connection));
    }
    return connection;
}

static void say(PGconn *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(connection));
    }
    PQclear(result);
}

static struct idem_local local_of(PGconn *connection)
{
    return (struct idem_local){ .size = sizeof(struct idem_local), .postgres = connection };
}

static enum idem_local_err claim(const struct idem_local *local,
                                 const char *key,
                                 enum idem_local_outcome *ret_outcome,
                                 struct idem_local_token *ret_token)
{
    struct idem_local_record *record = NULL;
    const struct idem_local_claim wanted = { .size = sizeof(wanted),
                                             .principal = "idem",
                                             .endpoint = "orders.create",
                                             .key = key,
                                             .fingerprint = "same",
                                             .fingerprint_size = 4 };
    enum idem_local_err err = idem_local_claim(local, &wanted, &record, &error);
    if (err == IDEM_LOCAL_OK) {
        *ret_outcome = record->outcome;
        *ret_token = record->token;
        idem_local_record_free(record);
    }
    return err;
}

static enum idem_local_outcome must_claim(PGconn *connection, const char *key)
{
    const struct idem_local local = local_of(connection);
    enum idem_local_outcome outcome = IDEM_LOCAL_NO_OUTCOME;
    struct idem_local_token token;
    if (claim(&local, key, &outcome, &token) != IDEM_LOCAL_OK) {
        fail_msg("%s", error.text);
    }
    return outcome;
}

static enum idem_local_err err_claim(PGconn *connection, const char *key)
{
    const struct idem_local local = local_of(connection);
    enum idem_local_outcome outcome = IDEM_LOCAL_NO_OUTCOME;
    struct idem_local_token token;
    return claim(&local, key, &outcome, &token);
}

static void nothing_is_asked_without_a_transaction(void **state)
{
    (void)state;
    PGconn *one = connect_as("");
    assert_int_equal(err_claim(one, "t1"), IDEM_LOCAL_E_NO_TRANSACTION);
    say(one, "BEGIN");
    PQclear(PQexec(one, "SELECT 1 / 0"));
    assert_int_equal(err_claim(one, "t1"), IDEM_LOCAL_E_NO_TRANSACTION);
    assert_non_null(strstr(error.text, "roll back"));
    say(one, "ROLLBACK");
    assert_int_equal(PQenterPipelineMode(one), 1);
    assert_int_equal(err_claim(one, "t1"), IDEM_LOCAL_E_INVALID);
    assert_int_equal(PQexitPipelineMode(one), 1);
    say(one, "SET client_encoding = 'LATIN1'; BEGIN");
    assert_int_equal(err_claim(one, "t1"), IDEM_LOCAL_E_INVALID);
    assert_non_null(strstr(error.text, "UTF8"));
    say(one, "ROLLBACK");
    PQfinish(one);
}

static void a_transaction_in_the_way_is_in_progress_and_costs_nothing(void **state)
{
    (void)state;
    PGconn *one = connect_as("");
    PGconn *two = connect_as("");
    struct idem_local local = local_of(one);
    struct idem_local_result result = { .size = sizeof(result) };
    enum idem_local_outcome outcome = IDEM_LOCAL_NO_OUTCOME;
    struct idem_local_token token;
    say(two, "SET lock_timeout = '100ms'");
    say(one, "BEGIN");
    assert_int_equal(claim(&local, "w1", &outcome, &token), IDEM_LOCAL_OK);
    assert_int_equal(outcome, IDEM_LOCAL_EXECUTE);
    say(two, "BEGIN");
    assert_int_equal(must_claim(two, "w1"), IDEM_LOCAL_IN_PROGRESS);
    say(one, "COMMIT; BEGIN");
    assert_int_equal(idem_local_heartbeat(&local, &token, 0, &result, &error), IDEM_LOCAL_OK);
    assert_int_equal(result.outcome, IDEM_LOCAL_DONE);
    local = local_of(two);
    assert_int_equal(idem_local_heartbeat(&local, &token, 0, &result, &error), IDEM_LOCAL_OK);
    assert_int_equal(result.outcome, IDEM_LOCAL_BUSY);
    assert_int_equal(PQtransactionStatus(two), PQTRANS_INTRANS);
    say(one, "ROLLBACK");
    assert_int_equal(must_claim(two, "w2"), IDEM_LOCAL_EXECUTE);
    say(two, "COMMIT");
    PQfinish(one);
    PQfinish(two);
}

static void a_killed_caller_frees_the_key(void **state)
{
    (void)state;
    PGconn *one = connect_as("");
    PGconn *two = connect_as("");
    char sql[96];
    say(one, "BEGIN");
    assert_int_equal(must_claim(one, "d1"), IDEM_LOCAL_EXECUTE);
    (void)snprintf(sql, sizeof(sql), "SELECT pg_terminate_backend(%d, 10000)", PQbackendPID(one));
    say(two, sql);
    say(two, "BEGIN");
    assert_int_equal(must_claim(two, "d1"), IDEM_LOCAL_EXECUTE);
    say(two, "COMMIT");
    assert_int_equal(err_claim(one, "d2"), IDEM_LOCAL_E_DATABASE);
    assert_non_null(strstr(error.text, "nothing"));
    PQfinish(one);
    PQfinish(two);
}

static void a_stricter_level_may_ask_for_another_run(void **state)
{
    (void)state;
    PGconn *one = connect_as("");
    PGconn *two = connect_as("");
    say(two, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class LIMIT 1");
    say(one, "BEGIN");
    assert_int_equal(must_claim(one, "s1"), IDEM_LOCAL_EXECUTE);
    say(one, "COMMIT");
    assert_int_equal(err_claim(two, "s1"), IDEM_LOCAL_E_BUSY);
    assert_non_null(strstr(error.text, "roll back"));
    say(two, "ROLLBACK; BEGIN");
    assert_int_equal(must_claim(two, "s1"), IDEM_LOCAL_IN_PROGRESS);
    say(two, "ROLLBACK");
    PQfinish(one);
    PQfinish(two);
}

static void a_silent_server_is_not_waited_for_without_end(void **state)
{
    (void)state;
    PGconn *one = connect_as("");
    struct idem_local local = local_of(one);
    enum idem_local_outcome outcome = IDEM_LOCAL_NO_OUTCOME;
    struct idem_local_token token;
    local.wait_ms = 300;
    say(one, "BEGIN");
    const pid_t backend = PQbackendPID(one);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    enum idem_local_err err = claim(&local, "q1", &outcome, &token);
    assert_int_equal(kill(backend, SIGCONT), 0);
    assert_int_equal(err, IDEM_LOCAL_E_DATABASE);
    assert_non_null(strstr(error.text, "silent"));
    assert_int_equal(err_claim(one, "q2"), IDEM_LOCAL_E_INVALID); /* The first is under way. */
    PQfinish(one);
    PGconn *two = connect_as("");
    say(two, "BEGIN");
    assert_int_equal(must_claim(two, "q1"), IDEM_LOCAL_EXECUTE);
    say(two, "ROLLBACK");
    PQfinish(two);
}

static void the_largest_answer_comes_back_as_it_was(void **state)
{
    (void)state;
    static uint8_t body[IDEM_LOCAL_BODY_MAX];
    for (size_t i = 0; i < sizeof(body); i++) {
        body[i] = (uint8_t)(i * 7 + i / 256);
    }
    PGconn *one = connect_as("");
    const struct idem_local local = local_of(one);
    enum idem_local_outcome outcome = IDEM_LOCAL_NO_OUTCOME;
    struct idem_local_token token;
    struct idem_local_result result = { .size = sizeof(result) };
    struct idem_local_record *record = NULL;
    const struct idem_local_name name = {
        .size = sizeof(name), .principal = "idem", .endpoint = "orders.create", .key = "large"
    };
    const struct idem_local_answer answer = { .size = sizeof(answer),
                                              .verdict = IDEM_LOCAL_VERDICT_SUCCEEDED,
                                              .status = 200,
                                              .headers = "Content-Type: \xe5\xae\x89\n",
                                              .body = body,
                                              .body_size = sizeof(body) };
    say(one, "BEGIN");
    assert_int_equal(claim(&local, "large", &outcome, &token), IDEM_LOCAL_OK);
    assert_int_equal(idem_local_complete(&local, &token, &answer, &result, &error), IDEM_LOCAL_OK);
    say(one, "COMMIT");
    assert_int_equal(idem_local_lookup(&local, &name, &record, &error), IDEM_LOCAL_OK);
    assert_int_equal(record->body_size, sizeof(body));
    assert_memory_equal(record->body, body, sizeof(body));
    assert_string_equal(record->headers, answer.headers);
    assert_true(record->expires_ms - record->finished_ms == INT64_C(30) * 86400000);
    assert_true(record->created_ms > INT64_C(1600000000000));
    idem_local_record_free(record);
    PQfinish(one);
}

/* A caller that chose to be non-blocking stays so, and one with strange settings is served. */
static void the_connection_is_as_it_was(void **state)
{
    (void)state;
    PGconn *one = connect_as("options='-c standard_conforming_strings=off -c bytea_output=escape'");
    assert_int_equal(PQsetnonblocking(one, 1), 0);
    say(one, "SET search_path = nowhere; SET DateStyle = German; BEGIN");
    assert_int_equal(must_claim(one, "n1"), IDEM_LOCAL_EXECUTE);
    assert_int_equal(PQisnonblocking(one), 1);
    say(one, "ROLLBACK");
    PQfinish(one);
}

static void functions_that_are_missing_are_told(void **state)
{
    (void)state;
    pg_server_say(&server, "CREATE DATABASE bare");
    PGconn *one = connect_as("dbname=bare");
    const struct idem_local local = local_of(one);
    say(one, "BEGIN");
    assert_int_equal(idem_local_install(&local, &error), IDEM_LOCAL_E_INSTALL);
    assert_non_null(strstr(error.text, "idem.sql"));
    assert_int_equal(PQtransactionStatus(one), PQTRANS_INTRANS);
    assert_int_equal(err_claim(one, "m1"), IDEM_LOCAL_E_INSTALL);
    say(one, "ROLLBACK");
    PQfinish(one);
}

static void a_role_that_may_not_is_told(void **state)
{
    (void)state;
    pg_server_say(&server, "CREATE ROLE guest LOGIN; CREATE ROLE shop LOGIN IN ROLE idem_caller");
    PGconn *one = connect_as("user=guest");
    say(one, "BEGIN");
    enum idem_local_err err = err_claim(one, "g1");
    assert_true(err == IDEM_LOCAL_E_INVALID || err == IDEM_LOCAL_E_INSTALL);
    PQfinish(one);
    one = connect_as("user=shop"); /* May act for the principal shop only. */
    say(one, "BEGIN");
    assert_int_equal(err_claim(one, "g1"), IDEM_LOCAL_E_INVALID);
    assert_non_null(strstr(error.text, "operator"));
    PQfinish(one);
}

static int set_up(void **state)
{
    (void)state;
    const char *path = getenv("IDEM_SQL");
    static char sql[1 << 18];
    FILE *file = fopen(path != NULL ? path : "sql/idem.sql", "r");
    assert_non_null(file);
    size_t size = fread(sql, 1, sizeof(sql) - 1, file);
    (void)fclose(file);
    assert_true(size > 0 && size < sizeof(sql) - 1);
    pg_server_init(&server);
    pg_server_start(&server, NULL);
    pg_server_say(&server, sql);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pg_server_deinit(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_asked_without_a_transaction),
        cmocka_unit_test(a_transaction_in_the_way_is_in_progress_and_costs_nothing),
        cmocka_unit_test(a_killed_caller_frees_the_key),
        cmocka_unit_test(a_stricter_level_may_ask_for_another_run),
        cmocka_unit_test(a_silent_server_is_not_waited_for_without_end),
        cmocka_unit_test(the_largest_answer_comes_back_as_it_was),
        cmocka_unit_test(the_connection_is_as_it_was),
        cmocka_unit_test(functions_that_are_missing_are_told),
        cmocka_unit_test(a_role_that_may_not_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
