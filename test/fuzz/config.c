/*
 * Fuzzes the configuration.
 *
 * The input is the text of a configuration file, up to a zero byte. Properties, for any bytes:
 *   - a refusal begins with the file's name and says why; what is refused stays refused;
 *   - what is accepted keeps the relations that money depends on: lease beyond the request timeout,
 *     window beyond the timeout, no key forgotten inside a window or while it may be retried;
 *   - it listens only on this machine, and sends no credential in clear, unless it says `insecure`;
 *   - entries, secrets and endpoints stand once, every entry that is granted exists, and what is
 *     ignored by the fingerprint is no member that decides about money;
 *   - an accepted text with a comment and space around it is accepted with the same values; with
 *     one unknown setting, or its first setting twice, it is refused.
 */
#include "daemon/config.h"

#include <string.h>

#include "base/clock.h"

#include "fuzz/fuzz.h"
#include "fuzz/place.h"

#define SIZE_TRIED 8192
#define FILE_NAME  "fuzz.conf"

/* libconfig 1.5 forgets the beginning of a string that never ends; such a text is refused. */
// NOLINTNEXTLINE(readability-identifier-naming): the name is the sanitizer's.
const char *__lsan_default_suppressions(void);

// NOLINTNEXTLINE(readability-identifier-naming): likewise.
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig";
}

static char text_memory[SIZE_TRIED + 128];

/* NULL: refused. Destroy it. */
static struct idem_config *config_read(const char *text)
{
    struct idem_config *config = NULL;
    struct idem_error error = { "" };
    FUZZ_EXPECT(idem_config_create(&config, &error) == IDEM_OK);
    enum idem_err err = idem_config_parse(config, FILE_NAME, text, &error);
    if (err == IDEM_OK) {
        err = idem_config_check(config, &error);
    }
    if (err == IDEM_OK) {
        return config;
    }
    FUZZ_EXPECT(err == IDEM_E_INVALID);
    FUZZ_EXPECT(strncmp(error.text, FILE_NAME ":", sizeof(FILE_NAME)) == 0);
    FUZZ_EXPECT(strlen(error.text) > sizeof(FILE_NAME) + 1);
    idem_config_destroy(config);
    return NULL;
}

static void check_capability(const struct idem_config *config,
                             const struct idem_config_provider *provider,
                             const struct idem_capability *capability)
{
    int64_t window_us = capability->dedup_window_us;
    FUZZ_EXPECT(window_us == 0 ||
                window_us - capability->dedup_margin_us > provider->request_timeout_us);
    FUZZ_EXPECT(window_us <= config->retention_us);
    FUZZ_EXPECT((capability->query == IDEM_QUERY_LAGGING) == (capability->query_lag_us > 0));
}

/* By https, or to this machine, as libcurl reads it; what libcurl refuses is not sent. */
static bool is_private(const char *url)
{
    struct place place;
    return !place_find(idem_str_from(url), &place) || strcmp(place.scheme, "https") == 0 ||
           is_this_machine(place.host);
}

static void check_provider(const struct idem_config *config, size_t index)
{
    const struct idem_config_provider *provider = &config->providers[index];
    FUZZ_EXPECT(provider->entry != NULL && provider->base_url != NULL);
    FUZZ_EXPECT(strpbrk(provider->base_url, " @?#") == NULL);
    FUZZ_EXPECT(config->insecure || is_private(provider->base_url));
    FUZZ_EXPECT(provider->credential_file == NULL || provider->credential_env == NULL);
    FUZZ_EXPECT(config->timings.lease_us > provider->request_timeout_us + IDEM_US_PER_SECOND);
    for (size_t kind = IDEM_EFFECT_KIND_NONE + 1; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        check_capability(config, provider, &provider->capability[kind]);
    }
    for (size_t i = 0; i < index; i++) {
        FUZZ_EXPECT(strcmp(config->providers[i].entry, provider->entry) != 0);
    }
}

static bool entry_exists(const struct idem_config *config, struct idem_str entry)
{
    bool found = false;
    for (size_t i = 0; i < config->provider_count; i++) {
        found = found || idem_str_equal(idem_str_from(config->providers[i].entry), entry);
    }
    return found;
}

static void check_credential(const struct idem_config *config, size_t index)
{
    static const struct idem_digest none;
    const struct idem_config_credential *credential = &config->credentials[index];
    FUZZ_EXPECT(credential->principal != NULL && credential->principal[0] != '\0');
    FUZZ_EXPECT(memcmp(&credential->secret, &none, sizeof(none)) != 0);
    for (size_t i = 0; i < index; i++) {
        FUZZ_EXPECT(memcmp(&config->credentials[i].secret, &credential->secret, sizeof(none)) != 0);
    }
    for (size_t i = 0; i < credential->provider_count; i++) {
        FUZZ_EXPECT(entry_exists(config, credential->providers[i]));
    }
}

static void check_route(const struct idem_config_route *route)
{
    FUZZ_EXPECT(idem_endpoint_from(idem_str_from(route->endpoint)) != IDEM_ENDPOINT_NONE);
    FUZZ_EXPECT(route->body == IDEM_CONFIG_JSON || route->ignored_count == 0);
    for (size_t i = 0; i < route->ignored_count; i++) {
        FUZZ_EXPECT(idem_str_equal(route->ignored[i], IDEM_STR("/description")) ||
                    idem_str_equal(route->ignored[i], IDEM_STR("/metadata")) ||
                    idem_str_starts(route->ignored[i], IDEM_STR("/metadata/")));
    }
}

static void check_relations(const struct idem_config *config)
{
    FUZZ_EXPECT(config->insecure || idem_config_is_loopback(config->host));
    FUZZ_EXPECT(config->store_label[0] != '\0');
    FUZZ_EXPECT((config->store_path != NULL) == (config->store_kind == IDEM_CONFIG_SQLITE));
    FUZZ_EXPECT(config->store_path != NULL || config->secrets != NULL);
    FUZZ_EXPECT(config->timings.store_wait_us < config->timings.instance_silence_us);
    FUZZ_EXPECT(config->retention_us >= config->retry_window_us);
    FUZZ_EXPECT(config->retention_us >= config->timings.release_us);
    FUZZ_EXPECT(config->tombstone_us >= config->retention_us);
    FUZZ_EXPECT(config->provider_count > 0);
    for (size_t i = 0; i < config->provider_count; i++) {
        check_provider(config, i);
    }
    for (size_t i = 0; i < config->credential_count; i++) {
        check_credential(config, i);
    }
    for (size_t i = 0; i < config->route_count; i++) {
        check_route(&config->routes[i]);
    }
}

/* Everything of fixed size; texts lie elsewhere. */
static void check_same(const struct idem_config *left, const struct idem_config *right)
{
    FUZZ_EXPECT(memcmp(&left->limits, &right->limits, sizeof(left->limits)) == 0);
    FUZZ_EXPECT(memcmp(&left->timings, &right->timings, sizeof(left->timings)) == 0);
    FUZZ_EXPECT(left->insecure == right->insecure && left->port == right->port);
    FUZZ_EXPECT(left->retention_us == right->retention_us && left->scope == right->scope);
    FUZZ_EXPECT(left->provider_count == right->provider_count);
    FUZZ_EXPECT(left->credential_count == right->credential_count);
    FUZZ_EXPECT(strcmp(left->store_label, right->store_label) == 0);
    for (size_t i = 0; i < left->provider_count; i++) {
        const struct idem_config_provider *first = &left->providers[i];
        const struct idem_config_provider *second = &right->providers[i];
        FUZZ_EXPECT(strcmp(first->entry, second->entry) == 0);
        FUZZ_EXPECT(strcmp(first->base_url, second->base_url) == 0);
        FUZZ_EXPECT(first->request_timeout_us == second->request_timeout_us);
    }
}

static void check_framed(const struct idem_config *config, const char *text)
{
    (void)snprintf(text_memory, sizeof(text_memory), " # of no meaning\n\t/* */\n%s\n// end\n",
                   text);
    struct idem_config *framed = config_read(text_memory);
    FUZZ_EXPECT(framed != NULL);
    check_same(config, framed);
    idem_config_destroy(framed);

    (void)snprintf(text_memory, sizeof(text_memory), "%s\nlisten_on = \"x\";\n", text);
    FUZZ_EXPECT(config_read(text_memory) == NULL);
    (void)snprintf(text_memory, sizeof(text_memory), "store = \"sqlite:other\";\n%s", text);
    FUZZ_EXPECT(config_read(text_memory) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[SIZE_TRIED + 1];
    if (size > SIZE_TRIED) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    struct idem_config *config = config_read(text);
    if (config != NULL) {
        check_relations(config);
        check_framed(config, text);
    }
    idem_config_destroy(config);
    return 0;
}
