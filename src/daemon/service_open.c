/*
 * How a service's parts are opened. Each stands on those before it; what was opened when one of
 * them fails is closed by idem_service_destroy().
 */
#include "daemon/service_internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/attr.h"
#include "base/bug.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"

#define FILES_BESIDE       256 /* Descriptors beside callers and calls; refused callers too. */
#define CONNECTIONS_A_HOST 64
#define NEWS_MAX           1024 /* Between two steps; what does not fit is counted. */

static enum idem_err parts_open(struct idem_service *service, struct idem_error *reterr)
{
    const char *path = service->config->store_path; /* A database says it itself, when opened. */
    struct stat store;
    if (service->config->restored && path != NULL &&
        (stat(path, &store) != 0 || store.st_size == 0)) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "--restored: there is no store at %s; put the copy and its secrets "
                              "there first",
                              path);
    }
    return idem_parts_create(service->config, &service->random, &service->parts, reterr);
}

static void on_wake(uv_async_t *handle)
{
    (void)handle; /* Its point is that the wait ended; the step follows. */
}

/* Whoever started us with HUP ignored (nohup) wants us to outlive the terminal. */
static bool hangup_is_ignored(void)
{
    struct sigaction action;
    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/*
 * From here on a HUP waits for the loop, and for the loop only: whoever asks for a reload while the
 * store is being opened must not end the process. idem_command_serve() has held it back until now.
 */
static enum idem_err hangup_take(struct idem_service *service, struct idem_error *reterr)
{
    uv_signal_t *handle = &service->signals[IDEM_SERVICE_SIGNALS - 1];
    int rc = hangup_is_ignored() ? 0 : uv_signal_start(handle, idem_service_on_signal, SIGHUP);
    if (rc != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "event loop: %s", uv_strerror(rc));
    }
    sigset_t hangup;
    (void)sigemptyset(&hangup); /* These three cannot fail for a signal that exists. */
    (void)sigaddset(&hangup, SIGHUP);
    (void)pthread_sigmask(SIG_UNBLOCK, &hangup, NULL);
    return IDEM_OK;
}

static enum idem_err loop_open(struct idem_service *service, struct idem_error *reterr)
{
    int rc = uv_loop_init(&service->loop);
    if (rc != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "event loop: %s", uv_strerror(rc));
    }
    service->loop_open = true;
    rc = uv_async_init(&service->loop, &service->wake, on_wake);
    if (rc != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "event loop: %s", uv_strerror(rc));
    }
    (void)uv_prepare_init(&service->loop, &service->before); /* These four only fill structs. */
    (void)uv_check_init(&service->loop, &service->after);
    (void)uv_timer_init(&service->loop, &service->timer);
    (void)uv_timer_init(&service->loop, &service->watch_timer);
    service->before.data = service;
    service->after.data = service;
    service->watch_timer.data = service;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(service->signals); i++) {
        rc = uv_signal_init(&service->loop, &service->signals[i]);
        if (rc != 0) {
            return idem_error_set(reterr, IDEM_E_SYSTEM, "event loop: %s", uv_strerror(rc));
        }
        service->signals[i].data = service;
    }
    return hangup_take(service, reterr);
}

/*
 * As many descriptors as the system lets us have, and never so many callers that none is left for
 * the store and the providers.
 */
static size_t connections_fit(const struct idem_service *service)
{
    int64_t wanted = service->config->limits.connections;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return (size_t)wanted; /* Then the limit stays as it is; accept says when it is reached. */
    }
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files); /* Raising to the hard limit is always allowed. */
    int64_t beside = FILES_BESIDE + (int64_t)idem_parts_calls_max(service->parts) +
                     service->config->webhooks.deliveries_max;
    int64_t room = files.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)files.rlim_cur - beside;
    if (room >= wanted) {
        return (size_t)wanted;
    }
    room = room > 1 ? room : 1;
    const struct idem_log_field fields[] = {
        IDEM_LOG_NUMBER("descriptors", (int64_t)files.rlim_cur),
        IDEM_LOG_NUMBER("connections", room),
        IDEM_LOG_NUMBER("wanted", wanted),
    };
    idem_log(IDEM_LOG_WARN, "few-descriptors", fields, IDEM_ARRAY_COUNT(fields));
    return (size_t)room;
}

static enum idem_err port_open(struct idem_service *service, struct idem_error *reterr)
{
    size_t calls_max = idem_parts_calls_max(service->parts);
    struct idem_http_client_options options = {
        .loop = &service->loop,
        .clock = &service->clock,
        .calls_max = calls_max + 1, /* And one page of a listing. */
        .connections_per_host_max = CONNECTIONS_A_HOST,
    };
    enum idem_err err = idem_http_client_create(&options, &service->client, reterr);
    if (err != IDEM_OK) {
        return err;
    }
    err = idem_http_port_create(service->client, service->parts->entries,
                                service->parts->provider_count, calls_max, &service->port);
    if (err != IDEM_OK) {
        return idem_error_set(reterr, err, "no memory for calls to providers");
    }
    return idem_callback_reader_create(service->parts->entries, service->parts->provider_count,
                                       &service->callbacks, reterr);
}

static enum idem_err posts_open(struct idem_service *service, struct idem_error *reterr)
{
    enum idem_err err = idem_digester_create(&service->digester, reterr);
    if (err != IDEM_OK) {
        return err;
    }
    const struct idem_http_post_options options = {
        .loop = &service->loop,
        .clock = &service->clock,
        .digester = service->digester,
        .effect_secret = idem_parts_effect_secret(service->parts),
        .calls_max = (size_t)service->config->webhooks.deliveries_max,
        .allow_private = service->config->webhooks.allow_private,
        .allow_http = service->config->webhooks.allow_http,
    };
    return idem_http_post_create(&options, &service->posts, reterr);
}

static enum idem_err schedule_open(struct idem_service *service, struct idem_error *reterr)
{
    const struct idem_schedule_options options = {
        .loop = &service->loop,
        .config = service->config,
        .clock = &service->clock,
        .random = &service->random,
        .digester = service->digester,
    };
    return idem_schedule_create(&options, &service->schedule, reterr);
}

static enum idem_err file_open(struct idem_service *service,
                               const struct idem_store_options *options,
                               struct idem_error *reterr)
{
    const char *path = service->config->store_path;
    enum idem_err err = idem_sqlite_open(path, options, &service->store, reterr);
    if (err == IDEM_OK && stat(path, &service->store_file) != 0) {
        err = idem_error_set(reterr, IDEM_E_SYSTEM, "cannot look at the store %s: %s", path,
                             strerror(errno));
    }
    return err;
}

static enum idem_err database_open(struct idem_service *service,
                                   const struct idem_store_options *options,
                                   struct idem_error *reterr)
{
    const struct idem_postgres_settings settings = idem_config_database(service->config);
    return idem_postgres_open(&settings, options, &service->store, reterr);
}

static enum idem_err store_open(struct idem_service *service, struct idem_error *reterr)
{
    struct idem_store_options options = {
        .rules = &service->parts->rules,
        .clock = &service->clock,
        .wake = idem_service_store_woke,
        .wake_context = service,
        .effect_secret_check = service->parts->effect_secret_check,
        .scope_rule = service->config->scope == IDEM_CONFIG_SCOPE_PRINCIPAL ? IDEM_STR("principal")
                                                                            : IDEM_STR("endpoint"),
        .restored = service->config->restored,
        .must_exist = !service->parts->secrets.made && !service->config->new_store,
    };
    switch (service->config->store_kind) {
    case IDEM_CONFIG_SQLITE:
        return file_open(service, &options, reterr);
    case IDEM_CONFIG_POSTGRES:
        return database_open(service, &options, reterr);
    }
    IDEM_UNREACHABLE();
}

static enum idem_err engine_open(struct idem_service *service, struct idem_error *reterr)
{
    struct idem_engine_options options = idem_engine_options_default();
    options.store = service->store;
    options.port = service->port;
    options.rules = &service->parts->rules;
    options.clock = &service->clock;
    options.random = &service->random;
    options.requests_max = (size_t)service->config->limits.requests;
    options.waiters_per_key_max = (size_t)service->config->limits.waiters_per_key;
    options.sends_max = (size_t)service->config->limits.sends;
    options.recoveries_max = (size_t)service->config->limits.recoveries;
    options.cache_entries = (size_t)service->config->limits.cache_entries;
    options.news_max = NEWS_MAX;
    return idem_engine_create(&options, &service->engine, reterr);
}

static enum idem_err api_open(struct idem_service *service, struct idem_error *reterr)
{
    struct idem_api_options options = {
        .engine = service->engine,
        .port = service->port,
        .callbacks = service->callbacks,
        .rules = &service->parts->rules,
        .clock = &service->clock,
        .requests_max = (size_t)service->config->limits.requests,
        .body_max = (size_t)service->config->limits.body_bytes,
        .webhooks_allow_http = service->config->webhooks.allow_http,
    };
    struct idem_credential credentials[IDEM_CONFIG_CREDENTIALS_MAX + 1];
    idem_parts_api_options(service->parts, &options);
    options.credential_count = idem_service_credentials(service, service->config, credentials);
    options.credentials = credentials;
    return idem_api_create(&options, &service->api, reterr);
}

static enum idem_err recovery_open(struct idem_service *service, struct idem_error *reterr)
{
    enum idem_err err = idem_recovery_create(service->engine, &service->clock, &service->recovery);
    if (err != IDEM_OK) {
        return idem_error_set(reterr, err, "no memory for the recovery worker");
    }
    return IDEM_OK;
}

static enum idem_err reaper_open(struct idem_service *service, struct idem_error *reterr)
{
    const struct idem_reaper_options options = {
        .engine = service->engine,
        .clock = &service->clock,
        .horizon_us = service->store->horizon_us,
    };
    enum idem_err err = idem_reaper_create(&options, &service->reaper);
    if (err != IDEM_OK) {
        return idem_error_set(reterr, err, "no memory for the reaper");
    }
    return IDEM_OK;
}

static enum idem_err restore_open(struct idem_service *service, struct idem_error *reterr)
{
    const struct idem_restore_options options = {
        .engine = service->engine,
        .port = service->port,
        .store = service->store,
        .rules = &service->parts->rules,
        .clock = &service->clock,
    };
    enum idem_err err = idem_restore_create(&options, &service->restore);
    if (err != IDEM_OK) {
        return idem_error_set(reterr, err, "no memory for the worker that follows a restore");
    }
    return IDEM_OK;
}

static enum idem_err outbox_open(struct idem_service *service, struct idem_error *reterr)
{
    const struct idem_outbox_options options = {
        .engine = service->engine,
        .port = service->posts,
        .clock = &service->clock,
        .random = &service->random,
        .posts_max = (size_t)service->config->webhooks.deliveries_max,
        .keep_us = service->config->webhooks.keep_us,
    };
    enum idem_err err = idem_outbox_create(&options, &service->outbox);
    if (err != IDEM_OK) {
        return idem_error_set(reterr, err, "no memory for the outbox");
    }
    return IDEM_OK;
}

static enum idem_err server_open(struct idem_service *service, struct idem_error *reterr)
{
    const struct idem_config *config = service->config;
    struct idem_server_options options = idem_server_options_default();
    options.loop = &service->loop;
    options.host = config->host;
    options.port = config->port;
    options.connections_max = connections_fit(service);
    options.head_max = (size_t)config->limits.head_bytes;
    options.body_max = (size_t)config->limits.body_bytes;
    options.head_timeout_us = config->timings.head_us;
    options.body_timeout_us = config->timings.body_us;
    options.idle_timeout_us = config->timings.idle_us;
    options.write_timeout_us = config->timings.write_us;
    options.ops = &idem_api_server_ops;
    options.context = service->api;
    enum idem_err err = idem_server_open(&options, &service->server, reterr);
    if (err == IDEM_OK) {
        idem_api_set_server(service->api, service->server);
    }
    return err;
}

enum idem_err idem_service_open(struct idem_service *service, struct idem_error *reterr)
{
    static enum idem_err (*const openers[])(struct idem_service *, struct idem_error *) = {
        parts_open,   loop_open,   port_open,   posts_open,    schedule_open,
        store_open,   engine_open, api_open,    recovery_open, reaper_open,
        restore_open, outbox_open, server_open,
    };
    enum idem_err err = IDEM_OK;
    for (size_t i = 0; err == IDEM_OK && i < IDEM_ARRAY_COUNT(openers); i++) {
        err = openers[i](service, reterr);
    }
    return err;
}
