/*
 * The configuration: tables of what may be set, and what must fit together.
 *
 * Reading and checking are two steps, because flags of the command line come in between. The tables
 * are the only place with names, ranges and units; idem_config_check() is the only place with
 * relations. Relations that money depends on:
 *
 *   lease > request timeout + margin    or an attempt would lose its authority while it waits;
 *   window - margin > request timeout   or nothing could ever be sent inside the window;
 *   retention >= every retry window     or a key would be forgotten while copies may still come.
 */
#include "daemon/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/clock.h"
#include "daemon/demo.h"
#include "daemon/settings.h"

#define LEASE_MARGIN_US (IDEM_US_PER_SECOND)
#define TEXT_MEMORY_MAX ((size_t)2 * IDEM_CONFIG_FILE_MAX)
#define DAYS_MAX        3650
#define SECONDS_MAX     (INT64_C(86400) * DAYS_MAX)
#define TIMEOUT_MS_MAX  600000
#define MEBIBYTE        (INT64_C(1024) * 1024)
#define URL_MAX         512
#define PATH_LEN_MAX    1024
#define POINTER_LEN_MAX 128
#define WAIT_MS_MAX     30000

#define FLAG(struct_name, member, text)                                                           \
    {                                                                                             \
        .name = (text), .kind = IDEM_SETTING_BOOL, .offset = offsetof(struct struct_name, member) \
    }
#define TEXT(struct_name, member, text, len)                                                       \
    {                                                                                              \
        .name = (text), .kind = IDEM_SETTING_TEXT, .offset = offsetof(struct struct_name, member), \
        .max = (len)                                                                               \
    }
#define NUMBER(struct_name, member, text, least, most, unit)                           \
    {                                                                                  \
        .name = (text), .kind = IDEM_SETTING_NUMBER,                                   \
        .offset = offsetof(struct struct_name, member), .min = (least), .max = (most), \
        .scale = (unit)                                                                \
    }
#define CHOICE(struct_name, member, text, names)                           \
    {                                                                      \
        .name = (text), .kind = IDEM_SETTING_CHOICE,                       \
        .offset = offsetof(struct struct_name, member), .choices = (names) \
    }
#define GROUP(text, function)                                          \
    {                                                                  \
        .name = (text), .kind = IDEM_SETTING_GROUP, .read = (function) \
    }
#define LIST(text, function)                                          \
    {                                                                 \
        .name = (text), .kind = IDEM_SETTING_LIST, .read = (function) \
    }
#define END          \
    {                \
        .name = NULL \
    }

static const char *const role_names[] = { "merchant", "operator", NULL };
static const char *const adapter_names[] = { "bridge", NULL };
static const char *const query_names[] = { "none", "at_once", "lagging", NULL };
static const char *const partial_names[] = { "none", "once", "many", NULL };
static const char *const in_flight_names[] = { "wait", "accept", "conflict", NULL };
static const char *const answer_names[] = { "stored", "resource", NULL };
static const char *const body_names[] = { "json", "raw", NULL };
static const char *const scope_names[] = { "endpoint", "principal", NULL };

_Static_assert(IDEM_QUERY_COUNT == 3, "query_names follows enum idem_query_mode");
_Static_assert(IDEM_PARTIAL_COUNT == 3, "partial_names follows enum idem_partial_capture");
_Static_assert(IDEM_IN_FLIGHT_COUNT == 3, "in_flight_names follows enum idem_in_flight");

/* Copies the texts of `list` into `ret_texts`. */
static enum idem_err texts_read(struct idem_settings *settings,
                                const config_setting_t *list,
                                struct idem_setting limits,
                                struct idem_str *ret_texts,
                                size_t *ret_count)
{
    size_t count = (size_t)config_setting_length(list);
    if (count > (size_t)limits.min) {
        return idem_settings_refuse(settings, list->line, "'%s' has more than %lld elements",
                                    list->name, (long long)limits.min);
    }
    for (size_t i = 0; i < count; i++) {
        const char *text = NULL;
        enum idem_err err = idem_settings_text(settings, config_setting_get_elem(list, (unsigned)i),
                                               (size_t)limits.max, &text);
        if (err != IDEM_OK) {
            return err;
        }
        ret_texts[i] = idem_str_from(text);
    }
    *ret_count = count;
    return IDEM_OK;
}

static enum idem_err granted_read(struct idem_settings *settings,
                                  const config_setting_t *list,
                                  void *target)
{
    struct idem_config_credential *credential = target;
    struct idem_setting limits = { .min = IDEM_CONFIG_PROVIDERS_MAX, .max = IDEM_ENTRY_MAX };
    return texts_read(settings, list, limits, credential->providers, &credential->provider_count);
}

static enum idem_err ignored_read(struct idem_settings *settings,
                                  const config_setting_t *list,
                                  void *target)
{
    struct idem_config_route *route = target;
    struct idem_setting limits = { .min = IDEM_CONFIG_IGNORED_MAX, .max = POINTER_LEN_MAX };
    return texts_read(settings, list, limits, route->ignored, &route->ignored_count);
}

static const struct idem_setting credential_table[] = {
    TEXT(idem_config_credential, principal, "principal", IDEM_PRINCIPAL_MAX),
    { .name = "secret_sha256",
      .kind = IDEM_SETTING_DIGEST,
      .offset = offsetof(struct idem_config_credential, secret) },
    CHOICE(idem_config_credential, role, "role", role_names),
    LIST("providers", granted_read),
    END,
};

/* Room for one more element, its line noted; NULL if `list` has too many. */
static enum idem_err list_check(struct idem_settings *settings,
                                const config_setting_t *list,
                                size_t max)
{
    if ((size_t)config_setting_length(list) > max) {
        return idem_settings_refuse(settings, list->line, "'%s' has more than %zu elements",
                                    list->name, max);
    }
    return IDEM_OK;
}

static enum idem_err credentials_read(struct idem_settings *settings,
                                      const config_setting_t *list,
                                      void *target)
{
    struct idem_config *config = target;
    enum idem_err err = list_check(settings, list, IDEM_CONFIG_CREDENTIALS_MAX);
    size_t count = (size_t)config_setting_length(list);
    for (size_t i = 0; err == IDEM_OK && i < count; i++) {
        const config_setting_t *group = config_setting_get_elem(list, (unsigned)i);
        struct idem_config_credential *credential = &config->credentials[i];
        *credential = (struct idem_config_credential){ .line = group->line };
        err = idem_settings_group(settings, group, credential_table, credential);
        config->credential_count = i + 1;
    }
    return err;
}

#define CAPABILITY_SETTINGS                                                                    \
    NUMBER(idem_capability, dedup_window_us, "dedup_window_s", 0, SECONDS_MAX,                 \
           IDEM_US_PER_SECOND),                                                                \
        NUMBER(idem_capability, dedup_margin_us, "dedup_margin_s", 0, SECONDS_MAX,             \
               IDEM_US_PER_SECOND),                                                            \
        CHOICE(idem_capability, query, "query", query_names),                                  \
        NUMBER(idem_capability, query_lag_us, "query_lag_ms", 0, SECONDS_MAX, IDEM_US_PER_MS), \
        FLAG(idem_capability, close_is_final, "close_is_final")

static const struct idem_setting capability_table[] = { CAPABILITY_SETTINGS, END };

static enum idem_err operation_skip(struct idem_settings *settings,
                                    const config_setting_t *group,
                                    void *target)
{
    (void)settings; /* The group is read after the defaults that it may override, */
    (void)group;    /* wherever it stands among them. */
    (void)target;
    return IDEM_OK;
}

static const struct idem_setting capabilities_table[] = {
    CAPABILITY_SETTINGS,
    GROUP("charge", operation_skip),
    GROUP("authorize", operation_skip),
    GROUP("capture", operation_skip),
    GROUP("cancel", operation_skip),
    GROUP("refund", operation_skip),
    END,
};

static const char *const operation_names[IDEM_EFFECT_KIND_COUNT] = {
    [IDEM_EFFECT_KIND_CHARGE] = "charge",   [IDEM_EFFECT_KIND_AUTHORIZE] = "authorize",
    [IDEM_EFFECT_KIND_CAPTURE] = "capture", [IDEM_EFFECT_KIND_CANCEL] = "cancel",
    [IDEM_EFFECT_KIND_REFUND] = "refund",
};

/* What stands in the group itself holds for every operation; a group of an operation overrides. */
static enum idem_err capabilities_read(struct idem_settings *settings,
                                       const config_setting_t *group,
                                       void *target)
{
    struct idem_config_provider *provider = target;
    struct idem_capability shared = { 0 };
    enum idem_err err = idem_settings_group(settings, group, capabilities_table, &shared);
    for (size_t kind = IDEM_EFFECT_KIND_NONE + 1; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        provider->capability[kind] = shared;
        const config_setting_t *own = config_setting_get_member(group, operation_names[kind]);
        if (err == IDEM_OK && own != NULL) {
            err = idem_settings_group(settings, own, capability_table, &provider->capability[kind]);
        }
    }
    return err;
}

static const struct idem_setting provider_table[] = {
    TEXT(idem_config_provider, entry, "entry", IDEM_ENTRY_MAX),
    CHOICE(idem_config_provider, adapter, "adapter", adapter_names),
    TEXT(idem_config_provider, base_url, "base_url", URL_MAX),
    TEXT(idem_config_provider, credential_file, "credential_file", PATH_LEN_MAX),
    TEXT(idem_config_provider, credential_env, "credential_env", 128),
    TEXT(idem_config_provider, account, "account", IDEM_ACCOUNT_MAX),
    TEXT(idem_config_provider, region, "region", IDEM_REGION_MAX),
    NUMBER(idem_config_provider,
           request_timeout_us,
           "request_timeout_ms",
           10,
           TIMEOUT_MS_MAX,
           IDEM_US_PER_MS),
    NUMBER(idem_config_provider, settle_us, "settle_ms", 0, SECONDS_MAX, IDEM_US_PER_MS),
    CHOICE(idem_config_provider, partial_capture, "partial_capture", partial_names),
    GROUP("capabilities", capabilities_read),
    END,
};

static enum idem_err providers_read(struct idem_settings *settings,
                                    const config_setting_t *list,
                                    void *target)
{
    struct idem_config *config = target;
    enum idem_err err = list_check(settings, list, IDEM_CONFIG_PROVIDERS_MAX);
    size_t count = (size_t)config_setting_length(list);
    for (size_t i = 0; err == IDEM_OK && i < count; i++) {
        const config_setting_t *group = config_setting_get_elem(list, (unsigned)i);
        struct idem_config_provider *provider = &config->providers[i];
        *provider = (struct idem_config_provider){
            .line = group->line,
            .account = "",
            .region = "",
            .request_timeout_us = 20 * IDEM_US_PER_SECOND,
            .settle_us = 60 * IDEM_US_PER_SECOND,
        };
        err = idem_settings_group(settings, group, provider_table, provider);
        config->provider_count = i + 1;
    }
    return err;
}

static const struct idem_setting route_table[] = {
    TEXT(idem_config_route, endpoint, "endpoint", 64),
    CHOICE(idem_config_route, in_flight, "in_flight", in_flight_names),
    NUMBER(idem_config_route, wait_us, "wait_ms", 0, WAIT_MS_MAX, IDEM_US_PER_MS),
    CHOICE(idem_config_route, answer, "answer", answer_names),
    CHOICE(idem_config_route, body, "body", body_names),
    LIST("ignore", ignored_read),
    END,
};

static enum idem_err routes_read(struct idem_settings *settings,
                                 const config_setting_t *list,
                                 void *target)
{
    struct idem_config *config = target;
    enum idem_err err = list_check(settings, list, IDEM_CONFIG_ROUTES_MAX);
    size_t count = (size_t)config_setting_length(list);
    for (size_t i = 0; err == IDEM_OK && i < count; i++) {
        const config_setting_t *group = config_setting_get_elem(list, (unsigned)i);
        struct idem_config_route *route = &config->routes[i];
        *route = (struct idem_config_route){
            .line = group->line,
            .wait_us = 10 * IDEM_US_PER_SECOND,
        };
        err = idem_settings_group(settings, group, route_table, route);
        config->route_count = i + 1;
    }
    return err;
}

#define LIMIT(member, least, most) NUMBER(idem_config, limits.member, #member, least, most, 1)
#define TIMING(member, text, least, most, unit) \
    NUMBER(idem_config, timings.member, text, least, most, unit)

static const struct idem_setting limits_table[] = {
    LIMIT(connections, 1, 100000),
    LIMIT(head_bytes, 1024, 65536),
    LIMIT(body_bytes, 1024, MEBIBYTE),
    LIMIT(requests, 1, 65536),
    LIMIT(sends, 1, 4096),
    LIMIT(recoveries, 1, 4096),
    LIMIT(waiters_per_key, 1, 65536),
    LIMIT(cache_entries, 0, 1000000),
    END,
};

static const struct idem_setting timings_table[] = {
    TIMING(lease_us, "lease_ms", 100, 3600000, IDEM_US_PER_MS),
    TIMING(retry_first_us, "retry_first_ms", 1, 3600000, IDEM_US_PER_MS),
    TIMING(ask_first_us, "ask_first_ms", 1, 3600000, IDEM_US_PER_MS),
    TIMING(ask_max_us, "ask_max_ms", 1, SECONDS_MAX, IDEM_US_PER_MS),
    TIMING(ask_give_up_us, "ask_give_up_s", 1, SECONDS_MAX, IDEM_US_PER_SECOND),
    TIMING(parked_ask_us, "parked_ask_s", 1, SECONDS_MAX, IDEM_US_PER_SECOND),
    TIMING(release_us, "release_s", 1, SECONDS_MAX, IDEM_US_PER_SECOND),
    TIMING(stop_grace_us, "stop_grace_ms", 0, TIMEOUT_MS_MAX, IDEM_US_PER_MS),
    TIMING(head_us, "head_timeout_ms", 10, TIMEOUT_MS_MAX, IDEM_US_PER_MS),
    TIMING(body_us, "body_timeout_ms", 10, TIMEOUT_MS_MAX, IDEM_US_PER_MS),
    TIMING(idle_us, "idle_timeout_ms", 10, TIMEOUT_MS_MAX, IDEM_US_PER_MS),
    TIMING(write_us, "write_timeout_ms", 10, TIMEOUT_MS_MAX, IDEM_US_PER_MS),
    END,
};

static enum idem_err limits_read(struct idem_settings *settings,
                                 const config_setting_t *group,
                                 void *target)
{
    return idem_settings_group(settings, group, limits_table, target);
}

static enum idem_err timings_read(struct idem_settings *settings,
                                  const config_setting_t *group,
                                  void *target)
{
    return idem_settings_group(settings, group, timings_table, target);
}

static const struct idem_setting root_table[] = {
    TEXT(idem_config, listen, "listen", 63),
    FLAG(idem_config, insecure, "insecure"),
    TEXT(idem_config, store, "store", PATH_LEN_MAX),
    TEXT(idem_config, secrets, "secrets", PATH_LEN_MAX),
    CHOICE(idem_config, scope, "scope", scope_names),
    NUMBER(idem_config, disk_reserve_bytes, "disk_reserve_mb", 0, 1048576, MEBIBYTE),
    NUMBER(idem_config, retention_us, "retention_days", 1, DAYS_MAX, IDEM_US_PER_DAY),
    NUMBER(idem_config, retry_window_us, "retry_window_s", 1, SECONDS_MAX, IDEM_US_PER_SECOND),
    LIST("credentials", credentials_read),
    LIST("providers", providers_read),
    LIST("routes", routes_read),
    GROUP("limits", limits_read),
    GROUP("timings", timings_read),
    END,
};

enum idem_err idem_config_create(struct idem_config **ret_config, struct idem_error *reterr)
{
    struct idem_config *config = calloc(1, sizeof(*config));
    char *memory = malloc(TEXT_MEMORY_MAX);
    if (config == NULL || memory == NULL) {
        free(config);
        free(memory);
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the configuration");
    }
    const struct idem_rules rules = idem_rules_default();
    *config = (struct idem_config){
        .file = "command line",
        .listen = "127.0.0.1:8080",
        .disk_reserve_bytes = 64 * MEBIBYTE,
        .retention_us = rules.answer_retention_us,
        .retry_window_us = IDEM_US_PER_DAY,
        .limits = { .connections = 10000,
                    .head_bytes = 16384,
                    .body_bytes = 65536,
                    .requests = 2048,
                    .sends = 256,
                    .recoveries = 64,
                    .waiters_per_key = 100,
                    .cache_entries = 4096 },
        .timings = { .lease_us = rules.lease_us,
                     .retry_first_us = rules.retry_first_us,
                     .ask_first_us = rules.ask_first_us,
                     .ask_max_us = rules.ask_max_us,
                     .ask_give_up_us = rules.ask_give_up_us,
                     .parked_ask_us = rules.parked_ask_us,
                     .release_us = rules.release_us,
                     .stop_grace_us = 30 * IDEM_US_PER_SECOND,
                     .head_us = 10 * IDEM_US_PER_SECOND,
                     .body_us = 20 * IDEM_US_PER_SECOND,
                     .idle_us = 75 * IDEM_US_PER_SECOND,
                     .write_us = 20 * IDEM_US_PER_SECOND },
        .memory = memory,
    };
    *ret_config = config;
    return IDEM_OK;
}

enum idem_err idem_config_parse(struct idem_config *config,
                                const char *file,
                                const char *text,
                                struct idem_error *reterr)
{
    struct idem_settings settings;
    idem_settings_init(&settings, file, config->memory + config->text_used,
                       TEXT_MEMORY_MAX - config->text_used);
    config->file = file;
    enum idem_err err = idem_settings_parse(&settings, text, root_table, config, reterr);
    config->text_used += settings.text.len;
    return err;
}

/* The whole of `path`, terminated. */
static enum idem_err file_load(const char *path,
                               char *memory,
                               size_t max,
                               struct idem_error *reterr)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: %s", path, strerror(errno));
    }
    size_t len = fread(memory, 1, max, file);
    int failed = ferror(file);
    (void)fclose(file); /* It was only read. */
    if (failed != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: cannot be read", path);
    }
    if (len == max) {
        return idem_error_set(reterr, IDEM_E_LIMIT, "%s: longer than %zu bytes", path, max - 1);
    }
    memory[len] = '\0';
    if (strlen(memory) != len) {
        return idem_error_set(reterr, IDEM_E_INVALID, "%s: has a zero byte", path);
    }
    return IDEM_OK;
}

enum idem_err idem_config_read(struct idem_config *config,
                               const char *path,
                               struct idem_error *reterr)
{
    char *text = malloc(IDEM_CONFIG_FILE_MAX + 1);
    if (text == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the configuration");
    }
    enum idem_err err = file_load(path, text, IDEM_CONFIG_FILE_MAX + 1, reterr);
    if (err == IDEM_OK) {
        err = idem_config_parse(config, path, text, reterr);
    }
    free(text);
    return err;
}

enum idem_err idem_config_demo(struct idem_config *config, struct idem_error *reterr)
{
    return idem_config_parse(config, "--demo", idem_demo_config, reterr);
}

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
    static const char scheme[] = "sqlite:";
    if (config->store == NULL) {
        return refuse(config, 0, reterr, "'store' is missing: store = \"sqlite:PATH\"");
    }
    if (strncmp(config->store, scheme, sizeof(scheme) - 1) != 0 ||
        config->store[sizeof(scheme) - 1] == '\0') {
        return refuse(config, 0, reterr, "'store' must be \"sqlite:PATH\"");
    }
    config->store_path = config->store + sizeof(scheme) - 1;
    return IDEM_OK;
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

/* Why this entry cannot be used; NULL if it can. */
static const char *provider_fault(const struct idem_config *config,
                                  const struct idem_config_provider *provider)
{
    if (provider->entry == NULL || provider->base_url == NULL) {
        return "a provider needs 'entry' and 'base_url'";
    }
    if (!name_is_plain(provider->entry)) {
        return "'entry' may have lower-case letters, digits, '-' and '_'";
    }
    if (!url_is_usable(provider->base_url)) {
        return "'base_url' must be http:// or https://, without a slash at its end, query or user";
    }
    if (!url_is_private(provider->base_url) && !config->insecure) {
        return "'base_url' would carry the credential in clear: use https, or insecure = true";
    }
    if (provider->credential_file != NULL && provider->credential_env != NULL) {
        return "either credential_file or credential_env";
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
    if (config->credential_count == 0) {
        return refuse(config, 0, reterr, "'credentials' is missing: nobody could call");
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

void idem_config_destroy(struct idem_config *config)
{
    if (config != NULL) {
        free(config->memory);
        free(config);
    }
}
