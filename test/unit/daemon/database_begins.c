/*
 * Where a store may begin: what a start asks a database before it makes secrets, and what the
 * opening refuses though the start saw something else.
 *
 * Goal: nothing begins in a database without a store where one must be, also if it was there a
 * moment ago. Method: a private server, and the two calls in the order in which the start makes
 * them, with the database changed in between.
 */
#include <libpq-fe.h>

#include "lib/pg_server.h"
#include "lib/test.h"
#include "store/postgres/hosts.h"
#include "store/postgres/postgres.h"

static struct pg_server server;

static void wake(void *context)
{
    (void)context; /* Nothing is submitted. */
}

static enum idem_err store_open(bool must_exist,
                                struct idem_store **ret_store,
                                struct idem_error *reterr)
{
    static struct idem_clock clock;
    static struct idem_rules rules;
    idem_clock_init_system(&clock);
    rules = idem_rules_default();
    const struct idem_postgres_settings settings = idem_postgres_settings_default(server.url);
    const struct idem_store_options options = {
        .rules = &rules,
        .clock = &clock,
        .wake = wake,
        .scope_rule = IDEM_STR("endpoint"),
        .must_exist = must_exist,
    };
    return idem_postgres_open(&settings, &options, ret_store, reterr);
}

static bool has_store(void)
{
    struct idem_error error = { "" };
    bool there = false;
    const struct idem_postgres_settings settings = idem_postgres_settings_default(server.url);
    enum idem_err err = idem_postgres_has_store(&settings, &there, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(err, IDEM_OK);
    return there;
}

static void nothing_begins_where_a_store_must_be(void **state)
{
    (void)state;
    struct idem_error error = { "" };
    struct idem_store *store = NULL;
    assert_false(has_store());
    assert_int_equal(store_open(true, &store, &error), IDEM_E_STORE);
    assert_non_null(strstr(error.text, "retries would pay again"));
    assert_false(has_store());

    assert_int_equal(store_open(false, &store, &error), IDEM_OK);
    idem_store_destroy(store);
    assert_true(has_store());
    assert_int_equal(store_open(true, &store, &error), IDEM_OK);
    idem_store_destroy(store);

    pg_server_say(&server, "DROP SCHEMA idem CASCADE"); /* After it was asked for. */
    assert_int_equal(store_open(true, &store, &error), IDEM_E_STORE);
    assert_int_equal(pg_server_number(&server,
                                      "SELECT count(*) FROM pg_namespace"
                                      " WHERE nspname = 'idem'"),
                     0);
}

static void a_url_has_as_many_hosts_as_can_be_tried_alone(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        size_t count;
    } table[] = {
        { "postgres:///d", 1 },
        { "postgres://a/d", 1 },
        { "postgres://a,b,c/d", 3 },
        { "postgres://a:1,b:2/d", 2 },
        { "postgres://a,b/d?port=7", 2 },
        { "postgres:///d?hostaddr=127.0.0.1,127.0.0.2", 2 },
        { "postgres:///d?host=a,b,c&port=1,2", 1 }, /* libpq says what is wrong with it. */
        { "postgres:///d?port=1,2", 1 },
        { "postgres://a,b,c,d,e,f,g,h,i/d", 1 },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(table); i++) {
        struct idem_postgres_hosts hosts;
        assert_true(idem_postgres_hosts_open(&hosts, table[i].url));
        assert_int_equal(hosts.count, table[i].count);
        idem_postgres_hosts_close(&hosts);
    }
}

static void each_host_is_asked_at_its_own_port(void **state)
{
    (void)state;
    struct idem_postgres_hosts hosts;
    assert_true(idem_postgres_hosts_open(&hosts, "postgres://u@127.0.0.1:1,127.0.0.2:2/d"));
    for (size_t i = 0; i < hosts.count; i++) {
        PGconn *handle = idem_postgres_hosts_start(&hosts, i);
        assert_non_null(handle);
        assert_string_equal(PQhost(handle), i == 0 ? "127.0.0.1" : "127.0.0.2");
        assert_string_equal(PQport(handle), i == 0 ? "1" : "2");
        assert_string_equal(PQdb(handle), "d");
        PQfinish(handle);
    }
    idem_postgres_hosts_close(&hosts);
}

static int server_begin(void **state)
{
    (void)state;
    pg_server_init(&server);
    pg_server_start(&server, NULL);
    return 0;
}

static int server_end(void **state)
{
    (void)state;
    pg_server_deinit(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_begins_where_a_store_must_be),
        cmocka_unit_test(a_url_has_as_many_hosts_as_can_be_tried_alone),
        cmocka_unit_test(each_host_is_asked_at_its_own_port),
    };
    return cmocka_run_group_tests(tests, server_begin, server_end);
}
