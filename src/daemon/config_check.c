/*
 * Whether the values of a configuration fit each other: the only place with relations. Those that
 * money depends on:
 *
 *   lease > request timeout + margin    or an attempt would lose its authority while it waits;
 *   window - margin > request timeout   or nothing could ever be sent inside the window;
 *   retention >= every retry window     or a key would be forgotten while copies may still come.
 */
#include "daemon/config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/clock.h"

#define LEASE_MARGIN_US (IDEM_US_PER_SECOND)

bool idem_config_address(const char *text, char *ret_host, size_t host_max, uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text) {
        return false;
    }
    bool bracketed = text[0] == '[' && colon[-1] == ']';
    const char *from = bracketed ? text + 1 : text;
    size_t len = (size_t)(colon - from) - (bracketed ? 1 : 0);
    int64_t port = 0;
    if (len == 0 || len >= host_max || !idem_str_to_i64(idem_str_from(colon + 1), &port) ||
        port > UINT16_MAX) {
        return false;
    }
    memcpy(ret_host, from, len);
    ret_host[len] = '\0';
    *ret_port = (uint16_t)port;
    struct in6_addr address;
    return inet_pton(bracketed ? AF_INET6 : AF_INET, ret_host, &address) == 1;
}

bool idem_config_is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, host, &four) == 1) {
        return ntohl(four.s_addr) >> 24 == 127;
    }
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static enum idem_err refuse(const struct idem_config *config,
                            unsigned line,
                            struct idem_error *reterr,
                            const char *what)
{
    if (line == 0) {
        return idem_error_set(reterr, IDEM_E_INVALID, "%s: %s", config->file, what);
    }
    return idem_error_set(reterr, IDEM_E_INVALID, "%s:%u: %s", config->file, line, what);
}

static enum idem_err places_check(struct idem_config *config, struct idem_error *reterr)
{
    if (!idem_config_address(config->listen, config->host, sizeof(config->host), &config->port)) {
        return refuse(config, 0, reterr,
                      "'listen' must be ADDRESS:PORT, with an address and not a name");
    }
    if (!idem_config_is_loopback(config->host) && !config->insecure) {
        return refuse(config, 0, reterr,
                      "'listen' is reachable from outside and there is no TLS: put a proxy that "
                      "ends TLS in front of a loopback address, or set insecure = true");
    }
    enum idem_err err = idem_config_store_check(config, reterr);
    if (err == IDEM_OK && config->store_path == NULL && config->secrets == NULL) {
        return refuse(config, 0, reterr,
                      "'secrets' is missing: with a database name the file; every instance has the "
                      "same");
    }
    return err;
}

/* True if `url` is https, or http to this machine. */
static bool url_is_private(const char *url)
{
    static const char scheme[] = "http://";
    if (strncmp(url, scheme, sizeof(scheme) - 1) != 0) {
        return true;
    }
    const char *host = url + sizeof(scheme) - 1;
    size_t len = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":/?#@");
    char copy[64];
    if (len >= sizeof(copy) || host[len] == '@') {
        return false;
    }
    (void)snprintf(copy, sizeof(copy), "%.*s", (int)len, host); /* The length was compared. */
    return strcmp(copy, "localhost") == 0 ||
           idem_config_is_loopback(copy[0] == '[' ? copy + 1 : copy);
}

static bool url_is_usable(const char *url)
{
    bool known = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    return known && url[strlen(url) - 1] != '/' && strpbrk(url, " ?#@\\\"<>") == NULL;
}

static bool name_is_plain(const char *name)
{
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(name);
}

static const char *capability_fault(const struct idem_capability *capability,
                                    int64_t timeout_us,
                                    int64_t retention_us)
{
    int64_t usable_us = capability->dedup_window_us - capability->dedup_margin_us;
    if (capability->dedup_window_us > 0 && usable_us <= timeout_us) {
        return "dedup_window_s less dedup_margin_s must be longer than request_timeout_ms";
    }
    if (capability->dedup_window_us > retention_us) {
        return "dedup_window_s is longer than 'retention_days'";
    }
    if (capability->dedup_window_us == 0 && capability->dedup_margin_us > 0) {
        return "dedup_margin_s without dedup_window_s";
    }
    bool lagging = capability->query == IDEM_QUERY_LAGGING;
    if (lagging != (capability->query_lag_us > 0)) {
        return "query_lag_ms belongs to query = \"lagging\", and the other way round";
    }
    return NULL;
}

/* Stripe's promises are Stripe's: nobody may configure others. */
static const char *stripe_fault(const struct idem_config_provider *provider)
{
    const struct idem_capability none = { .dedup_window_us = 0 };
    bool says_more = provider->partial_capture != IDEM_PARTIAL_NONE || provider->listing;
    for (size_t kind = IDEM_EFFECT_KIND_NONE + 1; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        const struct idem_capability *said = &provider->capability[kind];
        says_more = says_more || said->dedup_window_us != none.dedup_window_us ||
                    said->dedup_margin_us != none.dedup_margin_us || said->query != none.query ||
                    said->query_lag_us != none.query_lag_us ||
                    said->close_is_final != none.close_is_final;
    }
    if (says_more) {
        return "adapter \"stripe\" knows what Stripe promises: leave out capabilities, "
               "partial_capture and listing";
    }
    if (provider->credential_file == NULL && provider->credential_env == NULL) {
        return "adapter \"stripe\" needs its secret key in credential_file or credential_env";
    }
    return NULL;
}

static const char *bridge_fault(const struct idem_config_provider *provider)
{
    if (provider->base_url == NULL) {
        return "a provider needs 'entry' and 'base_url'";
    }
    if (provider->reconciliation.every_us > 0 && !provider->listing) {
        return "'reconciliation' by itself needs a listing: use idem reconcile --file";
    }
    return NULL;
}

/* What an entry may leave out depends on its adapter. */
static const char *adapter_fault(const struct idem_config_provider *provider)
{
    switch (provider->adapter) {
    case IDEM_CONFIG_BRIDGE:
        return bridge_fault(provider);
    case IDEM_CONFIG_STRIPE:
        return stripe_fault(provider);
    }
    IDEM_UNREACHABLE();
}

static bool callback_secrets_are_places(const struct idem_config_provider *provider)
{
    for (size_t i = 0; i < provider->callback_secret_count; i++) {
        struct idem_str place = provider->callback_secrets[i];
        struct idem_str scheme = idem_str_next(&place, ':');
        bool known =
            idem_str_equal(scheme, IDEM_STR("file")) || idem_str_equal(scheme, IDEM_STR("env"));
        if (!known || place.len == 0) {
            return false;
        }
    }
    return true;
}

/* Why this entry cannot be used; NULL if it can. */
static const char *provider_fault(const struct idem_config *config,
                                  const struct idem_config_provider *provider)
{
    const char *unfit = adapter_fault(provider);
    if (provider->entry == NULL) {
        return "a provider needs 'entry' and 'base_url'";
    }
    if (unfit != NULL) {
        return unfit;
    }
    if (!name_is_plain(provider->entry)) {
        return "'entry' may have lower-case letters, digits, '-' and '_'";
    }
    if (provider->base_url != NULL && !url_is_usable(provider->base_url)) {
        return "'base_url' must be http:// or https://, without a slash at its end, query or user";
    }
    if (provider->base_url != NULL && !url_is_private(provider->base_url) && !config->insecure) {
        return "'base_url' would carry the credential in clear: use https, or insecure = true";
    }
    if (provider->credential_file != NULL && provider->credential_env != NULL) {
        return "either credential_file or credential_env";
    }
    if (!callback_secrets_are_places(provider)) {
        return "'callback_secrets' are \"file:PATH\" or \"env:NAME\"";
    }
    if (provider->concurrency > config->limits.sends) {
        return "'concurrency' is more than limits.sends";
    }
    if (config->timings.lease_us <= provider->request_timeout_us + LEASE_MARGIN_US) {
        return "timings.lease_ms must be more than request_timeout_ms + 1000";
    }
    for (size_t kind = IDEM_EFFECT_KIND_NONE + 1; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        const char *fault = capability_fault(&provider->capability[kind],
                                             provider->request_timeout_us, config->retention_us);
        if (fault != NULL) {
            return fault;
        }
    }
    return NULL;
}

static bool provider_exists(const struct idem_config *config, struct idem_str entry, size_t before)
{
    for (size_t i = 0; i < before; i++) {
        if (idem_str_equal(idem_str_from(config->providers[i].entry), entry)) {
            return true;
        }
    }
    return false;
}

static enum idem_err providers_check(const struct idem_config *config, struct idem_error *reterr)
{
    if (config->provider_count == 0) {
        return refuse(config, 0, reterr, "'providers' is missing: there is nowhere to pay");
    }
    for (size_t i = 0; i < config->provider_count; i++) {
        const struct idem_config_provider *provider = &config->providers[i];
        const char *fault = provider_fault(config, provider);
        if (fault == NULL && provider_exists(config, idem_str_from(provider->entry), i)) {
            fault = "this 'entry' stands twice";
        }
        if (fault != NULL) {
            return refuse(config, provider->line, reterr, fault);
        }
    }
    return IDEM_OK;
}

static const char *credential_fault(const struct idem_config *config, size_t index)
{
    const struct idem_config_credential *credential = &config->credentials[index];
    const struct idem_digest none = { { 0 } };
    if (credential->principal == NULL || idem_digest_equal(credential->secret, none)) {
        return "a credential needs 'principal' and 'secret_sha256'";
    }
    for (const char *byte = credential->principal; *byte != '\0'; byte++) {
        if (*byte <= ' ' || *byte > '~') {
            return "'principal' may have visible ASCII characters, no spaces";
        }
    }
    if (idem_digest_equal(config->bootstrap, credential->secret)) {
        return "this 'secret_sha256' is 'bootstrap_credential_sha256' too";
    }
    for (size_t i = 0; i < index; i++) {
        if (idem_digest_equal(config->credentials[i].secret, credential->secret)) {
            return "this 'secret_sha256' stands twice";
        }
    }
    for (size_t i = 0; i < credential->provider_count; i++) {
        if (!provider_exists(config, credential->providers[i], config->provider_count)) {
            return "'providers' names an entry that is not configured";
        }
    }
    return NULL;
}

static enum idem_err credentials_check(const struct idem_config *config, struct idem_error *reterr)
{
    const struct idem_digest none = { { 0 } };
    bool bootstrapped = !idem_digest_equal(config->bootstrap, none);
    if (config->credential_count == 0 && !bootstrapped) {
        return refuse(config, 0, reterr,
                      "'credentials' and 'bootstrap_credential_sha256' are missing: nobody could "
                      "call");
    }
    for (size_t i = 0; i < config->credential_count; i++) {
        const char *fault = credential_fault(config, i);
        if (fault != NULL) {
            return refuse(config, config->credentials[i].line, reterr, fault);
        }
    }
    return IDEM_OK;
}

/* Members that neither move money nor name what is moved. */
static bool may_be_ignored(struct idem_str pointer)
{
    static const struct idem_str below = { .data = "/metadata/", .len = sizeof("/metadata/") - 1 };
    return idem_str_equal(pointer, IDEM_STR("/description")) ||
           idem_str_equal(pointer, IDEM_STR("/metadata")) ||
           (pointer.len >= below.len &&
            idem_str_equal(idem_str_slice(pointer, 0, below.len), below));
}

static const char *route_fault(const struct idem_config *config, size_t index)
{
    const struct idem_config_route *route = &config->routes[index];
    enum idem_endpoint endpoint = idem_endpoint_from(idem_str_from(route->endpoint));
    if (endpoint == IDEM_ENDPOINT_NONE) {
        return "'endpoint' must be payments.create, payments.capture, payments.cancel or "
               "refunds.create";
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(config->routes[i].endpoint, route->endpoint) == 0) {
            return "this 'endpoint' stands twice";
        }
    }
    if (route->body == IDEM_CONFIG_RAW && route->ignored_count > 0) {
        return "'ignore' needs body = \"json\"";
    }
    for (size_t i = 0; i < route->ignored_count; i++) {
        if (!may_be_ignored(route->ignored[i])) {
            return "'ignore' may name \"/description\", \"/metadata\" and what is below it, "
                   "such as \"/metadata/trace\": every other member decides about money";
        }
    }
    return NULL;
}

static enum idem_err routes_check(const struct idem_config *config, struct idem_error *reterr)
{
    for (size_t i = 0; i < config->route_count; i++) {
        const char *fault = route_fault(config, i);
        if (fault != NULL) {
            return refuse(config, config->routes[i].line, reterr, fault);
        }
    }
    return IDEM_OK;
}

/* P12: no key is forgotten while somebody may still retry it (windows: capability_fault()). */
static enum idem_err times_check(const struct idem_config *config, struct idem_error *reterr)
{
    if (config->timings.ask_first_us > config->timings.ask_max_us) {
        return refuse(config, 0, reterr, "timings.ask_first_ms is more than timings.ask_max_ms");
    }
    if (config->retention_us < config->retry_window_us ||
        config->retention_us < config->timings.release_us) {
        return refuse(config, 0, reterr,
                      "'retention_days' is shorter than retry_window_s or timings.release_s");
    }
    if (config->timings.store_wait_us >= config->timings.instance_silence_us) {
        return refuse(config, 0, reterr,
                      "timings.store_wait_ms is not shorter than timings.instance_silence_ms");
    }
    if (config->tombstone_us < config->retention_us) {
        return refuse(config, 0, reterr, "'tombstone_days' is shorter than 'retention_days'");
    }
    return IDEM_OK;
}

enum idem_err idem_config_check(struct idem_config *config, struct idem_error *reterr)
{
    IDEM_ASSERT(config->listen != NULL);
    enum idem_err err = places_check(config, reterr);
    if (err == IDEM_OK) {
        err = providers_check(config, reterr);
    }
    if (err == IDEM_OK) {
        err = credentials_check(config, reterr);
    }
    if (err == IDEM_OK) {
        err = routes_check(config, reterr);
    }
    if (err == IDEM_OK) {
        err = times_check(config, reterr);
    }
    return err;
}
