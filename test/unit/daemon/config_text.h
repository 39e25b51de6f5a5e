/*
 * config_text.h - a configuration from a text, for its tests: the parts that most texts have, and
 * tables of texts that must be refused.
 */
#ifndef IDEM_TEST_UNIT_DAEMON_CONFIG_TEXT_H
#define IDEM_TEST_UNIT_DAEMON_CONFIG_TEXT_H

#include "daemon/config.h"
#include "lib/test.h"

#define HEX        "cd577fe2561ebff23505db0bb006300c7cdecbd46bc0e03c449afafaca2c25bf"
#define CREDENTIAL "credentials = ( { principal = \"m\"; secret_sha256 = \"" HEX "\"; } );\n"
#define PROVIDER   "providers = ( { entry = \"p\"; base_url = \"https://p.example\"; } );\n"

struct refusal {
    const char *text;
    const char *message; /* What the message must contain. */
};

/* Reads and checks; gives the configuration, or NULL and the message. */
static struct idem_config *config_of(const char *text, struct idem_error *reterr)
{
    struct idem_config *config = NULL;
    assert_int_equal(idem_config_create(&config, reterr), IDEM_OK);
    enum idem_err err = idem_config_parse(config, "x.conf", text, reterr);
    if (err == IDEM_OK) {
        err = idem_config_check(config, reterr);
    }
    if (err != IDEM_OK) {
        assert_int_equal(err, IDEM_E_INVALID);
        idem_config_destroy(config);
        return NULL;
    }
    return config;
}

static void refusal_expect(const struct refusal *refusal)
{
    struct idem_error error = { "" };
    struct idem_config *config = config_of(refusal->text, &error);
    if (config != NULL || strstr(error.text, refusal->message) == NULL) {
        idem_config_destroy(config);
        print_error("%s", refusal->text);
        fail_msg("expected '%s', got '%s'", refusal->message, error.text);
    }
}

static void refusals_expect(const struct refusal *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        refusal_expect(&table[i]);
    }
}

#endif /* IDEM_TEST_UNIT_DAEMON_CONFIG_TEXT_H */
