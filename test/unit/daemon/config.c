/*
 * Configuration: what is accepted means what it says; everything else is refused with its place.
 *
 * Goal: no misspelt, misplaced or contradicting setting is ever silently ignored. Method: one table
 * of wrong texts with the message each must give (file, line, reason), each a small change of a
 * text that is good; one good text with every setting, compared value by value; the demo and
 * examples/idem.conf, which must stay good.
 */
#include "daemon/config.h"

#include "base/clock.h"
#include "unit/daemon/config_text.h"

#define OTHER_HEX "ab000000000000000000000000000000000000000000000000000000000000ff"

#define STORE "store = \"sqlite:/tmp/x.db\";\n"
#define SMALL STORE CREDENTIAL PROVIDER

static void a_small_configuration_gets_defaults(void **state)
{
    (void)state;
    struct idem_error error = { "" };
    struct idem_config *config = config_of(SMALL, &error);
    assert_string_equal(error.text, "");
    assert_non_null(config);
    assert_string_equal(config->host, "127.0.0.1");
    assert_int_equal(config->port, 8080);
    assert_string_equal(config->store_path, "/tmp/x.db");
    assert_null(config->secrets);
    assert_int_equal(config->retention_us, 30 * IDEM_US_PER_DAY);
    assert_int_equal(config->tombstone_us, 400 * IDEM_US_PER_DAY);
    assert_false(config->webhooks.allow_private);
    assert_false(config->webhooks.allow_http);
    assert_int_equal(config->webhooks.keep_us, 60 * IDEM_US_PER_DAY);
    assert_false(config->providers[0].listing); /* As any promise. */
    assert_int_equal(config->providers[0].capability[IDEM_EFFECT_KIND_CHARGE].query,
                     IDEM_QUERY_NONE); /* What is not declared is absent. */
    assert_int_equal(config->providers[0].capability[IDEM_EFFECT_KIND_CHARGE].dedup_window_us, 0);
    assert_string_equal(config->providers[0].account, "");
    assert_int_equal(config->credentials[0].role, IDEM_CONFIG_MERCHANT);
    assert_int_equal(config->credentials[0].provider_count, 0); /* Nothing is granted by itself. */
    idem_config_destroy(config);
}

static const char every_setting[] =
    "listen = \"[::1]:9000\"; insecure = false; store = \"sqlite:a.db\"; secrets = \"a.keys\";\n"
    "scope = \"principal\"; disk_reserve_mb = 5; retention_days = 40; retry_window_s = 7200;\n"
    "tombstone_days = 50; log = \"operations\"; bootstrap_credential_sha256 = \"" OTHER_HEX
    "\";\n"
    "credentials = (\n"
    "  { principal = \"m\"; secret_sha256 = \"" HEX
    "\"; role = \"operator\";\n"
    "    providers = [ \"p\" ]; } );\n"
    "providers = ( { entry = \"p\"; adapter = \"bridge\"; base_url = \"https://p.example/v1\";\n"
    "  credential_env = \"P_KEY\"; account = \"acct\"; region = \"cn\";\n"
    "  callback_secrets = (\"file:/etc/p.secret\", \"env:P_NEXT\");\n"
    "  request_timeout_ms = 3000; settle_ms = 4000; partial_capture = \"once\";\n"
    "  concurrency = 2; rate_per_s = 30; retry_after_max_s = 40;\n"
    "  breaker = { unknowns = 5; percent = 60; window_s = 70; open_s = 8; probes = 9; };\n"
    "  reconciliation = { every_s = 86400; lag_s = 11; grace_s = 12; timeout_s = 13; };\n"
    "  listing = true; capabilities = {\n"
    "    refund = { query = \"none\"; dedup_window_s = 0; dedup_margin_s = 0;\n"
    "               query_lag_ms = 0; };\n"
    "    dedup_window_s = 3600; dedup_margin_s = 60; query = \"lagging\"; query_lag_ms = 250;\n"
    "    close_is_final = true;\n"
    "    charge = { dedup_window_s = 60; dedup_margin_s = 1; }; }; } );\n"
    "routes = ( { endpoint = \"payments.create\"; in_flight = \"conflict\"; wait_ms = 1500;\n"
    "  answer = \"resource\"; body = \"json\"; ignore = [ \"/metadata/x\", \"/description\" ]; },\n"
    "  { endpoint = \"refunds.create\"; body = \"raw\"; } );\n"
    "limits = { connections = 1; head_bytes = 2048; body_bytes = 4096; requests = 2; sends = 3;\n"
    "  recoveries = 4; waiters_per_key = 5; cache_entries = 0; reads = 6;\n"
    "  credentials = 7; principal_requests = 8; principal_rate = 9; principal_burst = 10;\n"
    "  store_writers = 11; store_readers = 8; };\n"
    "timings = { lease_ms = 9000; retry_first_ms = 11; ask_first_ms = 12; ask_max_ms = 13;\n"
    "  ask_give_up_s = 14; parked_ask_s = 15; release_s = 16; stop_grace_ms = 17;\n"
    "  head_timeout_ms = 18; body_timeout_ms = 19; idle_timeout_ms = 20; write_timeout_ms = 21;\n"
    "  store_wait_ms = 522; instance_silence_ms = 1023; };\n"
    "webhooks = { allow_private = true; allow_http = true; deliveries_max = 12;\n"
    "  keep_days = 13; };\n";

static void protection_expect(const struct idem_config_provider *provider)
{
    assert_int_equal(provider->concurrency, 2);
    assert_int_equal(provider->rate_per_s, 30);
    assert_int_equal(provider->retry_after_max_us, 40 * IDEM_US_PER_SECOND);
    assert_int_equal(provider->breaker.unknowns, 5);
    assert_int_equal(provider->breaker.percent, 60);
    assert_int_equal(provider->breaker.window_us, 70 * IDEM_US_PER_SECOND);
    assert_int_equal(provider->breaker.open_us, 8 * IDEM_US_PER_SECOND);
    assert_int_equal(provider->breaker.probes, 9);
}

static void provider_expect(const struct idem_config_provider *provider)
{
    protection_expect(provider);
    assert_string_equal(provider->entry, "p");
    assert_string_equal(provider->base_url, "https://p.example/v1");
    assert_null(provider->credential_file);
    assert_string_equal(provider->credential_env, "P_KEY");
    assert_int_equal(provider->callback_secret_count, 2);
    EXPECT_TEXT(provider->callback_secrets[0], "file:/etc/p.secret");
    EXPECT_TEXT(provider->callback_secrets[1], "env:P_NEXT");
    assert_string_equal(provider->account, "acct");
    assert_string_equal(provider->region, "cn");
    assert_int_equal(provider->request_timeout_us, 3 * IDEM_US_PER_SECOND);
    assert_int_equal(provider->settle_us, 4 * IDEM_US_PER_SECOND);
    assert_int_equal(provider->partial_capture, IDEM_PARTIAL_ONCE);
    assert_int_equal(provider->reconciliation.every_us, 86400 * IDEM_US_PER_SECOND);
    assert_int_equal(provider->reconciliation.lag_us, 11 * IDEM_US_PER_SECOND);
    assert_int_equal(provider->reconciliation.grace_us, 12 * IDEM_US_PER_SECOND);
    assert_int_equal(provider->reconciliation.timeout_us, 13 * IDEM_US_PER_SECOND);

    const struct idem_capability *capability = provider->capability;
    assert_int_equal(capability[IDEM_EFFECT_KIND_CHARGE].dedup_window_us, 60 * IDEM_US_PER_SECOND);
    assert_int_equal(capability[IDEM_EFFECT_KIND_CHARGE].query, IDEM_QUERY_LAGGING);
    assert_int_equal(capability[IDEM_EFFECT_KIND_CAPTURE].dedup_window_us,
                     3600 * IDEM_US_PER_SECOND);
    assert_int_equal(capability[IDEM_EFFECT_KIND_CAPTURE].query_lag_us, 250 * IDEM_US_PER_MS);
    assert_int_equal(capability[IDEM_EFFECT_KIND_REFUND].query, IDEM_QUERY_NONE);
    assert_int_equal(capability[IDEM_EFFECT_KIND_REFUND].dedup_window_us, 0);
    assert_true(capability[IDEM_EFFECT_KIND_REFUND].close_is_final);
}

static void limits_expect(const struct idem_config *config)
{
    assert_int_equal(config->limits.connections, 1);
    assert_int_equal(config->limits.head_bytes, 2048);
    assert_int_equal(config->limits.body_bytes, 4096);
    assert_int_equal(config->limits.requests, 2);
    assert_int_equal(config->limits.sends, 3);
    assert_int_equal(config->limits.recoveries, 4);
    assert_int_equal(config->limits.waiters_per_key, 5);
    assert_int_equal(config->limits.cache_entries, 0);
    assert_int_equal(config->limits.reads, 6);
    assert_int_equal(config->limits.credentials, 7);
    assert_int_equal(config->limits.principal_requests, 8);
    assert_int_equal(config->limits.principal_rate, 9);
    assert_int_equal(config->limits.principal_burst, 10);
    assert_int_equal(config->limits.store_writers, 11);
    assert_int_equal(config->limits.store_readers, 8);
}

static void webhooks_expect(const struct idem_config *config)
{
    assert_true(config->webhooks.allow_private);
    assert_true(config->webhooks.allow_http);
    assert_int_equal(config->webhooks.deliveries_max, 12);
    assert_int_equal(config->webhooks.keep_us, 13 * IDEM_US_PER_DAY);
}

static void timings_expect(const struct idem_config *config)
{
    assert_int_equal(config->timings.lease_us, 9 * IDEM_US_PER_SECOND);
    assert_int_equal(config->timings.retry_first_us, 11 * IDEM_US_PER_MS);
    assert_int_equal(config->timings.ask_first_us, 12 * IDEM_US_PER_MS);
    assert_int_equal(config->timings.ask_max_us, 13 * IDEM_US_PER_MS);
    assert_int_equal(config->timings.ask_give_up_us, 14 * IDEM_US_PER_SECOND);
    assert_int_equal(config->timings.parked_ask_us, 15 * IDEM_US_PER_SECOND);
    assert_int_equal(config->timings.release_us, 16 * IDEM_US_PER_SECOND);
    assert_int_equal(config->timings.stop_grace_us, 17 * IDEM_US_PER_MS);
    assert_int_equal(config->timings.head_us, 18 * IDEM_US_PER_MS);
    assert_int_equal(config->timings.body_us, 19 * IDEM_US_PER_MS);
    assert_int_equal(config->timings.idle_us, 20 * IDEM_US_PER_MS);
    assert_int_equal(config->timings.write_us, 21 * IDEM_US_PER_MS);
    assert_int_equal(config->timings.store_wait_us, 522 * IDEM_US_PER_MS);
    assert_int_equal(config->timings.instance_silence_us, 1023 * IDEM_US_PER_MS);
}

static void every_setting_arrives(void **state)
{
    (void)state;
    struct idem_error error = { "" };
    struct idem_config *config = config_of(every_setting, &error);
    assert_string_equal(error.text, "");
    assert_non_null(config);

    assert_string_equal(config->host, "::1");
    assert_int_equal(config->port, 9000);
    assert_string_equal(config->secrets, "a.keys");
    assert_int_equal(config->scope, IDEM_CONFIG_SCOPE_PRINCIPAL);
    assert_int_equal(config->disk_reserve_bytes, 5 * 1024 * 1024);
    assert_int_equal(config->retention_us, 40 * IDEM_US_PER_DAY);
    assert_int_equal(config->tombstone_us, 50 * IDEM_US_PER_DAY);
    assert_int_equal(config->retry_window_us, 7200 * IDEM_US_PER_SECOND);
    assert_int_equal(config->log, IDEM_CONFIG_LOG_OPERATIONS);
    assert_int_equal(config->bootstrap.bytes[0], 0xAB);
    assert_true(config->providers[0].listing);
    assert_int_equal(config->credentials[0].role, IDEM_CONFIG_OPERATOR);
    assert_int_equal(config->credentials[0].secret.bytes[0], 0xCD);
    EXPECT_TEXT(config->credentials[0].providers[0], "p");
    provider_expect(&config->providers[0]);

    assert_int_equal(config->route_count, 2);
    assert_int_equal(config->routes[0].in_flight, IDEM_IN_FLIGHT_CONFLICT);
    assert_int_equal(config->routes[0].wait_us, 1500 * IDEM_US_PER_MS);
    assert_int_equal(config->routes[0].answer, IDEM_CONFIG_RESOURCE);
    assert_int_equal(config->routes[0].ignored_count, 2);
    EXPECT_TEXT(config->routes[0].ignored[1], "/description");
    assert_int_equal(config->routes[1].body, IDEM_CONFIG_RAW);
    assert_int_equal(config->routes[1].in_flight, IDEM_IN_FLIGHT_WAIT);
    limits_expect(config);
    timings_expect(config);
    webhooks_expect(config);
    idem_config_destroy(config);
}

static void what_cannot_be_read_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        { SMALL "lease_ms = 5;\n", "x.conf:4: unknown setting 'lease_ms'" },
        { SMALL "\n\ntimings = {\n lease_msec = 5000; };\n", "x.conf:7: unknown setting" },
        { SMALL "providers_ = ();\n", "x.conf:4: unknown setting 'providers_'" },
        { STORE "providers = ( { entry = \"p\";\n  url = \"https://p\"; } );\n",
          "x.conf:3: unknown setting 'url'" },
        { SMALL "limits = {\n sends = \"3\"; };\n", "x.conf:5: 'sends' must be a whole number" },
        { SMALL "limits = {\n sends = 1.5; };\n", "x.conf:5: 'sends' must be a whole number" },
        { SMALL "limits = {\n sends = 0; };\n", "x.conf:5: 'sends' is 0, allowed is 1 to 4096" },
        { SMALL "limits = {\n sends = 4097; };\n", "x.conf:5: 'sends' is 4097" },
        { SMALL "limits = {\n sends = -1; };\n", "x.conf:5: 'sends' is -1" },
        { SMALL "limits = {\n sends = 99999999999999999999L; };\n", "x.conf:5: " },
        { SMALL "limits = ( 1 );\n", "x.conf:4: 'limits' must be a group" },
        { SMALL "insecure = 1;\n", "x.conf:4: 'insecure' must be true or false" },
        { SMALL "insecure = \"true\";\n", "x.conf:4: 'insecure' must be true or false" },
        { SMALL "listen = 8080;\n", "x.conf:4: 'listen' must be text in quotes" },
        { SMALL "listen = \"\";\n", "x.conf:4: 'listen' must be 1 to" },
        { SMALL "listen = \"a\\nb\";\n", "x.conf:4: 'listen' must be 1 to" },
        { SMALL "scope = \"key\";\n", "x.conf:4: 'scope' must be one of \"endpoint\", \"prin" },
        { SMALL "scope = 1;\n", "x.conf:4: 'scope' must be one of" },
        { SMALL "store = \"sqlite:y\";\n", "x.conf:4: duplicate setting name" },
        { SMALL "timings = { lease_ms = 5000;\n lease_ms = 6000; };\n", "x.conf:5: duplicate" },
        { SMALL "@include \"/etc/passwd\"\n", "x.conf:4: @include is not allowed" },
        { "  @include \"y.conf\"\n" SMALL, "x.conf:1: @include is not allowed" },
        { SMALL "limits = { sends = 3\n", "x.conf:" },
        { SMALL "routes = { };\n", "x.conf:4: 'routes' must be a list" },
        { SMALL "routes = ( 1 );\n", "x.conf:4: expected a group" },
        { STORE "credentials = ( { principal = \"m\";\n secret_sha256 = \"abc\"; } );\n",
          "x.conf:3: 'secret_sha256' must be 64" },
        { STORE "credentials = ( { principal = \"m\";\n secret_sha256 = 12; } );\n",
          "x.conf:3: 'secret_sha256' must be 64" },
    };
    refusals_expect(table, IDEM_ARRAY_COUNT(table));
}

#define PROVIDER_WITH(settings) \
    "providers = (\n { entry = \"p\"; base_url = \"https://p.example\"; " settings " } );\n"
#define BASE_URL(url)    "providers = (\n { entry = \"p\"; base_url = \"" url "\"; } );\n"
#define IGNORE_MAY       "x.conf:5: 'ignore' may name \"/description\", \"/metadata\" and"
#define ROUTES(settings) SMALL "routes = (\n { " settings " } );\n"

static void a_route_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        { ROUTES("in_flight = \"wait\";"), "x.conf:5: 'endpoint' must be" },
        { ROUTES("endpoint = \"payments.delete\";"), "x.conf:5: 'endpoint' must be" },
        { ROUTES("endpoint = \"payments.create\"; }, { endpoint = \"payments.create\";"),
          "x.conf:5: this 'endpoint' stands twice" },
        { ROUTES("endpoint = \"payments.create\"; body = \"raw\"; ignore = [ \"/a\" ];"),
          "x.conf:5: 'ignore' needs" },
        { ROUTES("endpoint = \"payments.create\"; ignore = [ \"a\" ];"), IGNORE_MAY },
        { ROUTES("endpoint = \"payments.create\"; ignore = [ \"/amount\" ];"), IGNORE_MAY },
        { ROUTES("endpoint = \"payments.create\"; ignore = [ \"/order_no\" ];"), IGNORE_MAY },
        { ROUTES("endpoint = \"payments.create\"; ignore = [ \"/metadata\", \"/method\" ];"),
          IGNORE_MAY },
        { ROUTES("endpoint = \"payments.create\"; ignore = [ \"/metadatas/x\" ];"), IGNORE_MAY },
        { ROUTES("endpoint = \"payments.create\"; ignore = [ \"/metadata~1x\" ];"), IGNORE_MAY },
        { ROUTES("endpoint = \"payments.create\"; ignore = [ \"/description/x\" ];"), IGNORE_MAY },
        { ROUTES("endpoint = \"payments.create\"; ignore = [ \"/\" ];"), IGNORE_MAY },
    };
    refusals_expect(table, IDEM_ARRAY_COUNT(table));
}

static void what_does_not_fit_together_is_refused(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        { CREDENTIAL PROVIDER, "x.conf: 'store' is missing" },
        { "store = \"x.db\";\n" CREDENTIAL PROVIDER, "must be \"sqlite:PATH\"" },
        { "store = \"sqlite:\";\n" CREDENTIAL PROVIDER, "must be \"sqlite:PATH\"" },
        { STORE PROVIDER, "'credentials' and 'bootstrap_credential_sha256' are missing" },
        { STORE CREDENTIAL, "'providers' is missing" },
        { SMALL "listen = \"localhost:80\";\n", "with an address and not a name" },
        { SMALL "listen = \"127.0.0.1\";\n", "must be ADDRESS:PORT" },
        { SMALL "listen = \"127.0.0.1:65536\";\n", "must be ADDRESS:PORT" },
        { SMALL "listen = \"::1:80\";\n", "must be ADDRESS:PORT" },
        { SMALL "listen = \"0.0.0.0:80\";\n", "set insecure = true" },
        { SMALL "listen = \"[::]:80\";\n", "set insecure = true" },
        { STORE CREDENTIAL "providers = ( {\n entry = \"p\"; } );\n", "needs 'entry' and 'base_u" },
        { STORE CREDENTIAL BASE_URL("ftp://p"), "x.conf:4: 'base_url' must be" },
        { STORE CREDENTIAL BASE_URL("https://p/"), "x.conf:4: 'base_url' must be" },
        { STORE CREDENTIAL BASE_URL("https://u@p"), "x.conf:4: 'base_url' must be" },
        { STORE CREDENTIAL BASE_URL("http://p.example"), "x.conf:4: 'base_url' would carry" },
        { STORE CREDENTIAL BASE_URL("http://127.0.0.1.example"), "'base_url' would carry" },
        { STORE CREDENTIAL PROVIDER_WITH("credential_file = \"a\"; credential_env = \"B\";"),
          "x.conf:4: either credential_file or credential_env" },
        { STORE CREDENTIAL PROVIDER_WITH("callback_secrets = (\"whsec_1\");"),
          "x.conf:4: 'callback_secrets' are \"file:PATH\" or \"env:NAME\"" },
        { STORE CREDENTIAL PROVIDER_WITH("callback_secrets = (\"env:A\", \"file:\");"),
          "x.conf:4: 'callback_secrets' are" },
        { STORE CREDENTIAL PROVIDER_WITH("callback_secrets = (\"path:/a\");"),
          "x.conf:4: 'callback_secrets' are" },
        { STORE CREDENTIAL PROVIDER_WITH(
              "callback_secrets = (\"env:A\", \"env:B\", \"env:C\", \"env:D\", \"env:E\");"),
          "'callback_secrets' has more than 4 elements" },
        { STORE CREDENTIAL PROVIDER_WITH("callback_secrets = (7);"), "x.conf:4" },
        { STORE CREDENTIAL PROVIDER_WITH("concurrency = 257;"),
          "x.conf:4: 'concurrency' is more than limits.sends" },
        { STORE CREDENTIAL PROVIDER_WITH("breaker = { window_s = 0; };"),
          "x.conf:4: 'window_s' is 0, allowed is 1 to 86400" },
        { STORE CREDENTIAL PROVIDER_WITH("reconciliation = { every_s = 86400; };"),
          "x.conf:4: 'reconciliation' by itself needs a listing" },
        { STORE CREDENTIAL PROVIDER_WITH("request_timeout_ms = 59000;"),
          "x.conf:4: timings.lease_ms must be more than" },
        { SMALL "retention_days = 1; retry_window_s = 86401;\n", "'retention_days' is shorter" },
        { SMALL "bootstrap_credential_sha256 = \"" HEX "\";\n", "is 'bootstrap_credential" },
        { SMALL "retention_days = 31; tombstone_days = 30;\n", "'tombstone_days' is shorter" },
        { SMALL "retention_days = 1; timings = { release_s = 90000; };\n", "is shorter" },
        { SMALL "timings = { ask_first_ms = 2000; ask_max_ms = 1000; };\n",
          "ask_first_ms is more" },
        { SMALL "timings = { store_wait_ms = 2000; instance_silence_ms = 2000; };\n",
          "store_wait_ms is not shorter" },
    };
    refusals_expect(table, IDEM_ARRAY_COUNT(table));
}

static void what_contradicts_or_stands_twice_is_refused(void **state)
{
    (void)state;
    static const struct refusal table[] = {
        { STORE CREDENTIAL PROVIDER_WITH("capabilities = { dedup_margin_s = 1; };"),
          "x.conf:4: dedup_margin_s without" },
        { STORE CREDENTIAL PROVIDER_WITH("capabilities = { dedup_window_s = 20; };"),
          "x.conf:4: dedup_window_s less dedup_margin_s must be longer" },
        { STORE CREDENTIAL PROVIDER_WITH("capabilities = { query = \"lagging\"; };"),
          "x.conf:4: query_lag_ms belongs to" },
        { STORE CREDENTIAL PROVIDER_WITH("capabilities = { query_lag_ms = 5; };"),
          "x.conf:4: query_lag_ms belongs to" },
        { STORE CREDENTIAL PROVIDER_WITH("capabilities = { refund = { query_lag_ms = 5; }; };"),
          "x.conf:4: query_lag_ms belongs to" },
        { STORE CREDENTIAL PROVIDER_WITH("capabilities = { dedup_window_s = 2678400; };"),
          "x.conf:4: dedup_window_s is longer than 'retention_days'" },
        { STORE CREDENTIAL "providers = ( { entry = \"p\"; base_url = \"https://p\"; },\n"
                           " { entry = \"p\"; base_url = \"https://q\"; } );\n",
          "x.conf:4: this 'entry' stands twice" },
        { STORE PROVIDER "credentials = ( { principal = \"m\"; } );\n", "needs 'principal' and" },
        { STORE PROVIDER "credentials = ( { principal = \"m\"; secret_sha256 = \"" HEX "\"; },\n"
                         " { principal = \"n\"; secret_sha256 = \"" HEX "\"; } );\n",
          "x.conf:4: this 'secret_sha256' stands twice" },
        { STORE PROVIDER "credentials = ( { principal = \"m\"; secret_sha256 = \"" HEX "\";\n"
                         " providers = [ \"q\" ]; } );\n",
          "'providers' names an entry that is not configured" },
    };
    refusals_expect(table, IDEM_ARRAY_COUNT(table));
}

static void insecure_opens_what_was_refused(void **state)
{
    (void)state;
    struct idem_error error = { "" };
    struct idem_config *config = config_of(
        STORE CREDENTIAL BASE_URL("http://p.example") "insecure = true; listen = \"0.0.0.0:1\";",
        &error);
    assert_string_equal(error.text, "");
    assert_non_null(config);
    idem_config_destroy(config);
}

static void the_demo_is_a_configuration_as_any(void **state)
{
    (void)state;
    struct idem_error error = { "" };
    struct idem_config *config = NULL;
    assert_int_equal(idem_config_create(&config, &error), IDEM_OK);
    assert_int_equal(idem_config_demo(config, &error), IDEM_OK);
    assert_int_equal(idem_config_check(config, &error), IDEM_OK);
    assert_int_equal(config->provider_count, 5);
    assert_true(idem_config_is_loopback(config->host));
    idem_config_destroy(config);
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
    idem_config_destroy(config);
}

static void a_file_that_is_not_there_is_said_so(void **state)
{
    (void)state;
    struct idem_error error = { "" };
    struct idem_config *config = NULL;
    assert_int_equal(idem_config_create(&config, &error), IDEM_OK);
    assert_int_equal(idem_config_read(config, "absent.conf", &error), IDEM_E_SYSTEM);
    assert_non_null(strstr(error.text, "absent.conf: No such file"));
    idem_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_configuration_gets_defaults),
        cmocka_unit_test(every_setting_arrives),
        cmocka_unit_test(what_cannot_be_read_is_refused_with_its_line),
        cmocka_unit_test(a_route_that_makes_no_sense_is_refused),
        cmocka_unit_test(what_does_not_fit_together_is_refused),
        cmocka_unit_test(what_contradicts_or_stands_twice_is_refused),
        cmocka_unit_test(insecure_opens_what_was_refused),
        cmocka_unit_test(the_demo_is_a_configuration_as_any),
        cmocka_unit_test(the_example_can_be_used),
        cmocka_unit_test(a_file_that_is_not_there_is_said_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
