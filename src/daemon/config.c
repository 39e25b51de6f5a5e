/*
 * The configuration as it is read: tables of what may be set.
 *
 * Reading and checking are two steps, because flags of the command line come in between. The tables
 * are the only place with names, ranges and units; config_check.c is the only place with relations.
 */
#include "daemon/config.h"

#include <errno.h>
#include <fcntl.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/bug.h"
#include "base/clock.h"
#include "daemon/config_group.h"
#include "daemon/demo.h"
#include "daemon/settings.h"
#include "engine/bucket.h"
#include "outbox/outbox.h"
#include "store/postgres/postgres.h"

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
static const char *const adapter_names[] = { "bridge", "stripe", NULL };
static const char *const query_names[] = { "none", "at_once", "lagging", NULL };
static const char *const partial_names[] = { "none", "once", "many", NULL };
static const char *const in_flight_names[] = { "wait", "accept", "conflict", NULL };
static const char *const answer_names[] = { "stored", "resource", NULL };
static const char *const body_names[] = { "json", "raw", NULL };
static const char *const log_names[] = { "incidents", "operations", NULL };
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

static enum idem_err callback_secrets_read(struct idem_settings *settings,
                                           const config_setting_t *list,
                                           void *target)
{
    struct idem_config_provider *provider = target;
    struct idem_setting limits = { .min = IDEM_CONFIG_CALLBACK_MAX, .max = PATH_LEN_MAX };
    return texts_read(settings, list, limits, provider->callback_secrets,
                      &provider->callback_secret_count);
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

static const struct idem_setting breaker_table[] = {
    NUMBER(idem_config_breaker, unknowns, "unknowns", 0, 1000000, 1),
    NUMBER(idem_config_breaker, percent, "percent", 1, 100, 1),
    NUMBER(idem_config_breaker, window_us, "window_s", 1, 86400, IDEM_US_PER_SECOND),
    NUMBER(idem_config_breaker, open_us, "open_s", 1, 86400, IDEM_US_PER_SECOND),
    NUMBER(idem_config_breaker, probes, "probes", 1, 4096, 1),
    END,
};

static enum idem_err breaker_read(struct idem_settings *settings,
                                  const config_setting_t *group,
                                  void *target)
{
    struct idem_config_provider *provider = target;
    return idem_settings_group(settings, group, breaker_table, &provider->breaker);
}

static const struct idem_setting reconciliation_table[] = {
    NUMBER(idem_config_reconciliation, every_us, "every_s", 0, SECONDS_MAX, IDEM_US_PER_SECOND),
    NUMBER(idem_config_reconciliation, lag_us, "lag_s", 0, SECONDS_MAX, IDEM_US_PER_SECOND),
    NUMBER(idem_config_reconciliation, grace_us, "grace_s", 0, SECONDS_MAX, IDEM_US_PER_SECOND),
    NUMBER(idem_config_reconciliation, timeout_us, "timeout_s", 1, SECONDS_MAX, IDEM_US_PER_SECOND),
    END,
};

static enum idem_err reconciliation_read(struct idem_settings *settings,
                                         const config_setting_t *group,
                                         void *target)
{
    struct idem_config_provider *provider = target;
    return idem_settings_group(settings, group, reconciliation_table, &provider->reconciliation);
}

static const struct idem_setting provider_table[] = {
    TEXT(idem_config_provider, entry, "entry", IDEM_ENTRY_MAX),
    CHOICE(idem_config_provider, adapter, "adapter", adapter_names),
    TEXT(idem_config_provider, base_url, "base_url", URL_MAX),
    TEXT(idem_config_provider, credential_file, "credential_file", PATH_LEN_MAX),
    TEXT(idem_config_provider, credential_env, "credential_env", 128),
    LIST("callback_secrets", callback_secrets_read),
    TEXT(idem_config_provider, account, "account", IDEM_ACCOUNT_MAX),
    TEXT(idem_config_provider, region, "region", IDEM_REGION_MAX),
    NUMBER(idem_config_provider,
           request_timeout_us,
           "request_timeout_ms",
           10,
           TIMEOUT_MS_MAX,
           IDEM_US_PER_MS),
    NUMBER(idem_config_provider, settle_us, "settle_ms", 0, SECONDS_MAX, IDEM_US_PER_MS),
    NUMBER(idem_config_provider, concurrency, "concurrency", 0, 4096, 1),
    NUMBER(idem_config_provider, rate_per_s, "rate_per_s", 0, IDEM_BUCKET_RATE_MAX, 1),
    NUMBER(idem_config_provider,
           retry_after_max_us,
           "retry_after_max_s",
           0,
           86400,
           IDEM_US_PER_SECOND),
    GROUP("breaker", breaker_read),
    CHOICE(idem_config_provider, partial_capture, "partial_capture", partial_names),
    FLAG(idem_config_provider, listing, "listing"),
    GROUP("reconciliation", reconciliation_read),
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
            .retry_after_max_us = 300 * IDEM_US_PER_SECOND,
            .breaker = { .unknowns = 50,
                         .percent = 50,
                         .window_us = 60 * IDEM_US_PER_SECOND,
                         .open_us = 15 * IDEM_US_PER_SECOND,
                         .probes = 3 },
            .reconciliation = { .lag_us = 3600 * IDEM_US_PER_SECOND,
                                .grace_us = 3600 * IDEM_US_PER_SECOND,
                                .timeout_us = 14400 * IDEM_US_PER_SECOND },
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
    LIMIT(reads, 1, 4096),
    LIMIT(credentials, 1, 16384),
    LIMIT(principal_requests, 0, 65536),
    LIMIT(principal_rate, 0, 1000000),
    LIMIT(principal_burst, 0, 1000000),
    LIMIT(store_writers, 1, IDEM_POSTGRES_WRITERS_MAX),
    LIMIT(store_readers, 1, IDEM_POSTGRES_READERS_MAX),
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
    TIMING(store_wait_us, "store_wait_ms", 500, 60000, IDEM_US_PER_MS),
    TIMING(instance_silence_us, "instance_silence_ms", 1000, 600000, IDEM_US_PER_MS),
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

#define WEBHOOK(member, text, least, most, unit) \
    NUMBER(idem_config, webhooks.member, text, least, most, unit)

static const struct idem_setting webhooks_table[] = {
    FLAG(idem_config, webhooks.allow_private, "allow_private"),
    FLAG(idem_config, webhooks.allow_http, "allow_http"),
    WEBHOOK(deliveries_max, "deliveries_max", 1, IDEM_OUTBOX_POSTS_MAX, 1),
    WEBHOOK(keep_us, "keep_days", 7, DAYS_MAX, IDEM_US_PER_DAY),
    END,
};

static enum idem_err webhooks_read(struct idem_settings *settings,
                                   const config_setting_t *group,
                                   void *target)
{
    return idem_settings_group(settings, group, webhooks_table, target);
}

static const struct idem_setting root_table[] = {
    TEXT(idem_config, listen, "listen", 63),
    FLAG(idem_config, insecure, "insecure"),
    TEXT(idem_config, store, "store", PATH_LEN_MAX),
    TEXT(idem_config, secrets, "secrets", PATH_LEN_MAX),
    CHOICE(idem_config, scope, "scope", scope_names),
    NUMBER(idem_config, disk_reserve_bytes, "disk_reserve_mb", 0, 1048576, MEBIBYTE),
    NUMBER(idem_config, retention_us, "retention_days", 1, DAYS_MAX, IDEM_US_PER_DAY),
    NUMBER(idem_config, tombstone_us, "tombstone_days", 1, DAYS_MAX, IDEM_US_PER_DAY),
    NUMBER(idem_config, retry_window_us, "retry_window_s", 1, SECONDS_MAX, IDEM_US_PER_SECOND),
    { .name = "bootstrap_credential_sha256",
      .kind = IDEM_SETTING_DIGEST,
      .offset = offsetof(struct idem_config, bootstrap) },
    CHOICE(idem_config, log, "log", log_names),
    LIST("credentials", credentials_read),
    LIST("providers", providers_read),
    LIST("routes", routes_read),
    GROUP("limits", limits_read),
    GROUP("timings", timings_read),
    GROUP("webhooks", webhooks_read),
    END,
};

bool idem_config_group(const struct idem_config *config,
                       size_t index,
                       struct idem_config_group *ret_group)
{
    const struct idem_config_provider *provider = &config->providers[0];
    const struct idem_config_group groups[] = {
        { "", root_table, config },
        { "credentials.", credential_table, &config->credentials[0] },
        { "providers.", provider_table, provider },
        { "providers.breaker.", breaker_table, &provider->breaker },
        { "providers.reconciliation.", reconciliation_table, &provider->reconciliation },
        { "providers.capabilities.", capabilities_table, &provider->capability[1] },
        { "routes.", route_table, &config->routes[0] },
        { "limits.", limits_table, config },
        { "timings.", timings_table, config },
        { "webhooks.", webhooks_table, config },
    };
    if (index >= IDEM_ARRAY_COUNT(groups)) {
        return false;
    }
    *ret_group = groups[index];
    return true;
}

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
    const struct idem_postgres_settings database = idem_postgres_settings_default(NULL);
    *config = (struct idem_config){
        .file = "command line",
        .listen = "127.0.0.1:8080",
        .disk_reserve_bytes = 64 * MEBIBYTE,
        .retention_us = rules.answer_retention_us,
        .tombstone_us = INT64_C(400) * IDEM_US_PER_DAY,
        .retry_window_us = IDEM_US_PER_DAY,
        .limits = { .connections = 10000,
                    .head_bytes = 16384,
                    .body_bytes = 65536,
                    .requests = 2048,
                    .sends = 256,
                    .recoveries = 64,
                    .waiters_per_key = 100,
                    .cache_entries = 4096,
                    .reads = 64,
                    .credentials = 1024,
                    .principal_requests = 1024,
                    .store_writers = (int64_t)database.writers,
                    .store_readers = (int64_t)database.readers },
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
                     .write_us = 20 * IDEM_US_PER_SECOND,
                     .store_wait_us = database.wait_us,
                     .instance_silence_us = database.silence_us },
        .webhooks = { .deliveries_max = 32, .keep_us = 60 * IDEM_US_PER_DAY },
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
static enum idem_err file_load(struct idem_config *config,
                               const char *path,
                               char memory[IDEM_CONFIG_FILE_MAX + 1],
                               struct idem_error *reterr)
{
    const size_t max = IDEM_CONFIG_FILE_MAX + 1;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* A pipe must not hold us up. */
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        int cause = fd < 0 ? errno : EINVAL;
        if (fd >= 0) {
            (void)close(fd); /* It was only looked at. */
        }
        return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: %s", path,
                              cause == EINVAL ? "is not a regular file" : strerror(cause));
    }
    config->file_is_private = (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
    FILE *file = fdopen(fd, "r");
    if (file == NULL) {
        (void)close(fd); /* It was only opened. */
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
    enum idem_err err = file_load(config, path, text, reterr);
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

void idem_config_destroy(struct idem_config *config)
{
    if (config != NULL) {
        free(config->memory);
        free(config);
    }
}
