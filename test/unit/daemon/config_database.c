/*
 * A database as the store of a configuration: what its URL may say, and what is said about it.
 *
 * Goal: no password in a place that others read, none in a message, no record of money in clear on
 * somebody else's wire. Method: a table of wrong texts with the message each must give, a table of
 * good ones with their label, and examples/idem-postgres.conf, which must stay good. The texts come
 * as from a file that others can read: a private one is tested with the program (database.py).
 */
#include "daemon/config.h"

#include "unit/daemon/config_text.h"

#define DATABASE(url) "store = \"" url "\"; secrets = \"k\";\n" CREDENTIAL PROVIDER
#define WRITE         "?target_session_attrs=read-write"
#define IN_CLEAR      "allows a connection without TLS"
#define PASSWORD      "'store' has a password and others can read this file"

static void a_database_that_gives_something_away_is_refused(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        { "store = \"postgres://u@127.0.0.1/d\";\n" CREDENTIAL PROVIDER, "'secrets' is missing" },
        { DATABASE("postgres://u:w@127.0.0.1/d"), PASSWORD },
        { DATABASE("postgresql://u@127.0.0.1/d?password=w"), PASSWORD },
        { DATABASE("postgres://u@127.0.0.1/d?sslpassword=w"), PASSWORD },
        { DATABASE("postgres://u@db.example/d"), IN_CLEAR },
        { DATABASE("postgres://u@db.example/d?sslmode=prefer"), IN_CLEAR },
        { DATABASE("postgres://u@db.example/d?sslmode=disable"), IN_CLEAR },
        { DATABASE("postgres://u@127.0.0.1,db.example/d"), IN_CLEAR },
        { DATABASE("postgres://u@localhost/d?hostaddr=192.0.2.1"), IN_CLEAR },
        { DATABASE("postgres://u@127.0.0.1.example/d"), IN_CLEAR },
        { DATABASE("postgres:///d?service=somewhere"), IN_CLEAR },
        { DATABASE("postgres:///d?host=/run/a,/run/b"), "takes any of them, also a standby" },
        { DATABASE("postgres://u@127.0.0.1,[::1]/d?target_session_attrs=any"), "takes any of" },
        { DATABASE("postgres://u@127.0.0.1,[::1]/d?target_session_attrs=standby"), "takes any of" },
        { DATABASE("postgres://u@[::1/d"), "cannot be understood" },
        { DATABASE("postgres://u@127.0.0.1/d?nothing=1"), "cannot be understood" },
        { DATABASE("postgres:u@127.0.0.1/d"), "must be \"sqlite:PATH\"" },
    };
    refusals_expect(table, IDEM_ARRAY_COUNT(table));
}

static void a_database_has_a_label_without_a_word_of_its_user(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *label;
    } table[] = {
        { DATABASE("postgres://u@127.0.0.1/d"), "postgres://127.0.0.1/d" },
        { DATABASE("postgresql://u@localhost:5433/d"), "postgres://localhost:5433/d" },
        { DATABASE("postgres:///d?host=/run/pg"), "postgres:///run/pg/d" },
        { DATABASE("postgres:///d?host=/run/pg&port=7"), "postgres:///run/pg:7/d" },
        { DATABASE("postgres://u@[::1]:1,127.0.0.1:2/d" WRITE), "postgres://::1:1,127.0.0.1:2/d" },
        { DATABASE("postgres://u@a,b:2/d" WRITE "&sslmode=verify-full"), "postgres://a,b:2/d" },
        { DATABASE("postgres://u@a/d?sslmode=require"), "postgres://a/d" },
        { DATABASE("postgres://u@a,b/d" WRITE "&sslmode=verify-ca&port=9"),
          "postgres://a:9,b:9/d" },
        { DATABASE("postgres://u@a/d") "insecure = true;\n", "postgres://a/d" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(table); i++) {
        struct idem_error error = { "" };
        struct idem_config *config = config_of(table[i].text, &error);
        assert_string_equal(error.text, "");
        assert_string_equal(config->store_label, table[i].label);
        assert_int_equal(config->store_kind, IDEM_CONFIG_POSTGRES);
        assert_null(config->store_path);
        idem_config_destroy(config);
    }
}

/* What stands in a refusal is read by everybody: a word that may be a password never does. */
static void no_refusal_repeats_a_password(void **state)
{
    (void)state;
    static const char *const texts[] = {
        DATABASE("postgres://u:hush@127.0.0.1/d"),
        DATABASE("postgres://u@127.0.0.1/d?password=hush"),
        DATABASE("postgres://u:hush@[::1/d"),
        DATABASE("postgres://u@127.0.0.1/d?hush"),
        DATABASE("postgres://u@127.0.0.1/d?password=%zzhush"),
        DATABASE("postgres://u:hush@db.example/d"),
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        struct idem_error error = { "" };
        assert_null(config_of(texts[i], &error));
        assert_null(strstr(error.text, "hush"));
    }
}

static void the_example_can_be_used(void **state)
{
    (void)state;
    struct idem_error error = { "" };
    struct idem_config *config = NULL;
    assert_int_equal(idem_config_create(&config, &error), IDEM_OK);
    enum idem_err err = idem_config_read(config, getenv("IDEM_EXAMPLE_CONF"), &error);
    assert_string_equal(error.text, "");
    assert_int_equal(err, IDEM_OK);
    err = idem_config_check(config, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(err, IDEM_OK);
    assert_int_equal(config->store_kind, IDEM_CONFIG_POSTGRES);
    idem_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_database_that_gives_something_away_is_refused),
        cmocka_unit_test(a_database_has_a_label_without_a_word_of_its_user),
        cmocka_unit_test(no_refusal_repeats_a_password),
        cmocka_unit_test(the_example_can_be_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
