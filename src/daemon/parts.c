/*
 * Translation, one function for each layer that wants something; no policy and no defaults of its
 * own: those are in config.c.
 */
#include "daemon/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "provider/adapter.h"
#include "provider/bridge.h"
#include "provider/stripe.h"
#include "store/postgres/postgres.h"

_Static_assert(IDEM_SECRETS_FINGERPRINTS_MAX <= IDEM_API_SECRETS_MAX, "the edge takes them all");
_Static_assert(IDEM_CONFIG_CALLBACK_MAX == IDEM_CALLBACK_SECRETS_MAX, "an entry takes them all");
_Static_assert(IDEM_CONFIG_CREDENTIALS_MAX < IDEM_API_CONFIGURED_MAX, "likewise, with bootstrap");

#define SECRETS_PATH_MAX 1200

static const struct idem_adapter *adapter_of(enum idem_config_adapter adapter)
{
    switch (adapter) {
    case IDEM_CONFIG_BRIDGE:
        return &idem_bridge_adapter;
    case IDEM_CONFIG_STRIPE:
        return &idem_stripe_adapter;
    }
    IDEM_UNREACHABLE();
}

static const char *url_of(const struct idem_config_provider *provider)
{
    return provider->base_url != NULL ? provider->base_url
                                      : adapter_of(provider->adapter)->base_url;
}

static enum idem_err words_read(const struct idem_config_provider *provider,
                                struct idem_provider_words *words,
                                struct idem_error *reterr)
{
    enum idem_err err = idem_secret_word(provider->credential_file, provider->credential_env,
                                         words->credential, reterr);
    explicit_bzero(words->callback, sizeof(words->callback)); /* One that was taken out is gone. */
    for (size_t i = 0; err == IDEM_OK && i < provider->callback_secret_count; i++) {
        struct idem_str place = provider->callback_secrets[i]; /* Terminated, as it was read. */
        bool is_file = idem_str_equal(idem_str_next(&place, ':'), IDEM_STR("file"));
        err = idem_secret_word(is_file ? place.data : NULL, is_file ? NULL : place.data,
                               words->callback[i], reterr);
    }
    if (err == IDEM_OK) {
        words->callback_count = provider->callback_secret_count;
    }
    return err;
}

/* What the entry shows of its words. */
static void callback_secrets_show(struct idem_parts *parts, size_t index)
{
    const struct idem_provider_words *words = &parts->words[index];
    struct idem_callback_secrets *shown = &parts->callback_secrets[index];

    for (size_t i = 0; i < words->callback_count; i++) {
        shown->secrets[i] = idem_str_from(words->callback[i]);
    }
    shown->count = words->callback_count;
}

/* Of what all share one entry has all, one of several half. */
static uint32_t share_of(int64_t all, const struct idem_config *config)
{
    return config->provider_count > 1 ? (uint32_t)((all + 1) / 2) : 0;
}

static struct idem_provider_limits limits_of(const struct idem_config *config,
                                             const struct idem_config_provider *provider)
{
    int64_t concurrency = provider->concurrency;
    return (struct idem_provider_limits){
        .sends_max = concurrency > 0 ? (uint32_t)concurrency
                                     : share_of(config->limits.sends, config),
        .recoveries_max = share_of(config->limits.recoveries, config),
        .rate_per_s = (uint32_t)provider->rate_per_s,
        .pause_max_us = provider->retry_after_max_us,
        .breaker = {
            .unknown_min = (uint32_t)provider->breaker.unknowns,
            .unknown_percent = (uint32_t)provider->breaker.percent,
            .window_us = provider->breaker.window_us,
            .open_us = provider->breaker.open_us,
            .probes = (uint32_t)provider->breaker.probes,
        },
    };
}

static enum idem_err provider_make(struct idem_parts *parts,
                                   size_t index,
                                   struct idem_error *reterr)
{
    const struct idem_config_provider *provider = &parts->config->providers[index];
    struct idem_provider_rules *rules = &parts->providers[index];
    const struct idem_adapter *adapter = adapter_of(provider->adapter);
    *rules = (struct idem_provider_rules){
        .entry = idem_str_from(provider->entry),
        .account = idem_str_from(provider->account),
        .region = idem_str_from(provider->region),
        .partial_capture = provider->partial_capture,
        .request_timeout_us = provider->request_timeout_us,
        .settle_us = provider->settle_us,
        .listing = provider->listing,
        .limits = limits_of(parts->config, provider),
        .encode = adapter->encode,
    };
    memcpy(rules->capability, provider->capability, sizeof(rules->capability));
    if (adapter->promises != NULL) { /* idem_config_check() saw that nobody says otherwise. */
        memcpy(rules->capability, adapter->promises->capability, sizeof(rules->capability));
        rules->partial_capture = adapter->promises->partial_capture;
        rules->listing = adapter->promises->listing;
        rules->comparing = adapter->list_request != NULL;
    }
    parts->entries[index] = (struct idem_provider_entry){
        .adapter = adapter,
        .rules = rules,
        .base_url = url_of(provider),
        .credential = parts->words[index].credential,
        .callback_secrets = &parts->callback_secrets[index],
    };
    enum idem_err err = words_read(provider, &parts->words[index], reterr);
    if (err == IDEM_OK) {
        callback_secrets_show(parts, index);
    }
    return err;
}

static enum idem_err rules_make(struct idem_parts *parts, struct idem_error *reterr)
{
    const struct idem_config *config = parts->config;
    parts->provider_count = config->provider_count;
    for (size_t i = 0; i < parts->provider_count; i++) {
        enum idem_err err = provider_make(parts, i, reterr);
        if (err != IDEM_OK) {
            return err;
        }
    }
    parts->rules = (struct idem_rules){
        .providers = parts->providers,
        .provider_count = parts->provider_count,
        .lease_us = config->timings.lease_us,
        .answer_retention_us = config->retention_us,
        .tombstone_us = config->tombstone_us,
        .retry_window_us = config->retry_window_us,
        .release_us = config->timings.release_us,
        .retry_first_us = config->timings.retry_first_us,
        .ask_first_us = config->timings.ask_first_us,
        .ask_max_us = config->timings.ask_max_us,
        .ask_give_up_us = config->timings.ask_give_up_us,
        .parked_ask_us = config->timings.parked_ask_us,
    };
    return IDEM_OK;
}

size_t idem_parts_credentials(const struct idem_config *config,
                              struct idem_credential ret_credentials[IDEM_CONFIG_CREDENTIALS_MAX])
{
    for (size_t i = 0; i < config->credential_count; i++) {
        const struct idem_config_credential *credential = &config->credentials[i];
        ret_credentials[i] = (struct idem_credential){
            .secret_sha256 = credential->secret,
            .principal = idem_str_from(credential->principal),
            .is_operator = credential->role == IDEM_CONFIG_OPERATOR,
            .providers = credential->providers,
            .provider_count = credential->provider_count,
        };
    }
    return config->credential_count;
}

struct idem_api_limits idem_parts_limits(const struct idem_config *config)
{
    return (struct idem_api_limits){
        .principal_requests_max = (size_t)config->limits.principal_requests,
        .principal_rate = config->limits.principal_rate,
        .principal_burst = config->limits.principal_burst,
    };
}

/* The same place: a bearer of one account must never be shown at another. */
static bool is_same_place(const struct idem_config_provider *left,
                          const struct idem_config_provider *right)
{
    return left->adapter == right->adapter && strcmp(url_of(left), url_of(right)) == 0 &&
           strcmp(left->account, right->account) == 0 && strcmp(left->region, right->region) == 0;
}

static const struct idem_config_provider *provider_find(const struct idem_config *config,
                                                        const char *entry)
{
    for (size_t i = 0; i < config->provider_count; i++) {
        if (strcmp(config->providers[i].entry, entry) == 0) {
            return &config->providers[i];
        }
    }
    return NULL;
}

/* The entry's words as the new configuration has them; unchanged if it has no such entry. */
static enum idem_err words_reload(const struct idem_config *config,
                                  const struct idem_config_provider *running,
                                  struct idem_provider_words *words,
                                  struct idem_error *reterr)
{
    const struct idem_config_provider *provider = provider_find(config, running->entry);
    if (provider == NULL) {
        return IDEM_OK;
    }
    if (!is_same_place(provider, running)) {
        return idem_error_set(reterr, IDEM_E_INVALID,
                              "%s:%u: adapter, base_url, account or region of '%s' changed: that "
                              "needs a restart",
                              config->file, provider->line, provider->entry);
    }
    return words_read(provider, words, reterr);
}

enum idem_err idem_parts_reload(struct idem_parts *parts,
                                const struct idem_config *config,
                                struct idem_error *reterr)
{
    struct idem_provider_words *words = malloc(sizeof(parts->words));
    if (words == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the providers' secrets");
    }
    memcpy(words, parts->words, sizeof(parts->words));
    enum idem_err err = IDEM_OK;
    for (size_t i = 0; err == IDEM_OK && i < parts->provider_count; i++) {
        err = words_reload(config, &parts->config->providers[i], &words[i], reterr);
    }
    if (err == IDEM_OK) { /* All of them or none. */
        memcpy(parts->words, words, sizeof(parts->words));
        for (size_t i = 0; i < parts->provider_count; i++) {
            callback_secrets_show(parts, i);
        }
    }
    explicit_bzero(words, sizeof(parts->words));
    free(words);
    return err;
}

static enum idem_err secrets_make(struct idem_parts *parts,
                                  struct idem_random *random,
                                  struct idem_error *reterr)
{
    const struct idem_config *config = parts->config;
    char beside[SECRETS_PATH_MAX];
    (void)snprintf(beside, sizeof(beside), "%s.secrets", config->store_label); /* It has room. */
    struct idem_secrets_place place = {
        .path = config->secrets != NULL ? config->secrets : beside,
        .store_path = config->store_path,
        .store_label = config->store_label,
        .new_store = config->new_store,
    };
    enum idem_err err = IDEM_OK;
    if (config->store_kind == IDEM_CONFIG_POSTGRES) { /* Before a file is made for it. */
        const struct idem_postgres_settings settings = idem_config_database(config);
        err = idem_postgres_has_store(&settings, &place.store_is_there, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_secrets_open(&place, random, &parts->secrets, reterr);
    }
    if (err != IDEM_OK) {
        return err;
    }
    for (size_t i = 0; i < parts->secrets.fingerprint_count; i++) {
        const struct idem_fingerprint_secret *secret = &parts->secrets.fingerprints[i];
        parts->fingerprint_secrets[i] = (struct idem_secret){
            .id = secret->id,
            .bytes = { .data = (const char *)secret->bytes, .len = sizeof(secret->bytes) },
        };
    }
    return IDEM_OK;
}

struct idem_str idem_parts_effect_secret(const struct idem_parts *parts)
{
    return (struct idem_str){ .data = (const char *)parts->secrets.effect,
                              .len = sizeof(parts->secrets.effect) };
}

static enum idem_err check_make(struct idem_parts *parts, struct idem_error *reterr)
{
    struct idem_digester *digester = NULL;
    enum idem_err err = idem_digester_create(&digester, reterr);
    if (err != IDEM_OK) {
        return err;
    }
    parts->effect_secret_check =
        idem_api_effect_secret_check(digester, idem_parts_effect_secret(parts));
    idem_digester_destroy(digester);
    return IDEM_OK;
}

enum idem_err idem_parts_create(const struct idem_config *config,
                                struct idem_random *random,
                                struct idem_parts **ret_parts,
                                struct idem_error *reterr)
{
    struct idem_parts *parts = calloc(1, sizeof(*parts));
    if (parts == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the configuration");
    }
    parts->config = config;
    (void)idem_parts_credentials(config, parts->credentials); /* As many as the configuration. */
    enum idem_err err = rules_make(parts, reterr);
    if (err == IDEM_OK) {
        err = secrets_make(parts, random, reterr);
    }
    if (err == IDEM_OK) {
        err = check_make(parts, reterr);
    }
    if (err != IDEM_OK) {
        idem_parts_destroy(parts);
        return err;
    }
    *ret_parts = parts;
    return IDEM_OK;
}

void idem_parts_api_options(const struct idem_parts *parts, struct idem_api_options *options)
{
    options->credentials = parts->credentials;
    options->credential_count = parts->config->credential_count;
    options->bootstrap_sha256 = parts->config->bootstrap;
    options->limits = idem_parts_limits(parts->config);
    options->reads_max = (size_t)parts->config->limits.reads;
    options->credentials_max = (size_t)parts->config->limits.credentials;
    options->effect_secret = idem_parts_effect_secret(parts);
    options->fingerprint_secrets = parts->fingerprint_secrets;
    options->fingerprint_secret_count = parts->secrets.fingerprint_count;
    options->scope_by_principal = parts->config->scope == IDEM_CONFIG_SCOPE_PRINCIPAL;
    idem_api_routes_default(options->routes);
    for (size_t i = 0; i < parts->config->route_count; i++) {
        const struct idem_config_route *route = &parts->config->routes[i];
        enum idem_endpoint endpoint = idem_endpoint_from(idem_str_from(route->endpoint));
        IDEM_ASSERT(endpoint != IDEM_ENDPOINT_NONE); /* idem_config_check() saw to it. */
        options->routes[endpoint] = (struct idem_route_policy){
            .in_flight = route->in_flight,
            .wait_us = route->wait_us,
            .answer_resource = route->answer == IDEM_CONFIG_RESOURCE,
            .raw_body = route->body == IDEM_CONFIG_RAW,
            .ignored = route->ignored,
            .ignored_count = route->ignored_count,
        };
    }
}

size_t idem_parts_calls_max(const struct idem_parts *parts)
{
    return (size_t)(parts->config->limits.sends + parts->config->limits.recoveries);
}

void idem_parts_destroy(struct idem_parts *parts)
{
    if (parts != NULL) {
        explicit_bzero(parts, sizeof(*parts));
        free(parts);
    }
}
