/*
 * One loop, one step.
 *
 *     sockets, curl ---> uv_poll ---+
 *     store's threads -> uv_async --+--> step: recovery, engine, api --> arm the timer --> wait
 *     due times -------> uv_timer --+
 *
 * The step runs after every wait (uv_check: what came in moves on) and before every wait
 * (uv_prepare: what timers and closing handles caused moves on as well, and the timer for the next
 * due time is armed from what the step left). So nothing that is ready ever waits for the wire, and
 * no handler needs to know what else became possible.
 *
 * The timer is capped: libuv counts CLOCK_MONOTONIC, the engine a clock that counts suspension, and
 * a machine that slept should notice soon.
 *
 * Endings:
 *
 *     SERVING --signal--> DRAINING --grace or signal--> HURRYING --idle--> CLOSED, exit 0
 *        |                    \------------ idle ----------------------->
 *        +-- store broken --> BROKEN: the waiting are answered, then exit 5 without cleaning up
 *
 * Broken is also a store whose name no longer leads to its file (store_look).
 *
 * Every wait of an ending is bounded: a store that does not come back makes HURRYING give up.
 */
#include "daemon/service.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <uv.h>

#include "api/api.h"
#include "base/bug.h"
#include "base/clock.h"
#include "base/random.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/parts.h"
#include "daemon/secrets.h"
#include "engine/engine.h"
#include "net/server.h"
#include "provider/http_port.h"
#include "store/sqlite/sqlite.h"
#include "transport/client.h"
#include "worker/recovery.h"

#define WAIT_MAX_US        (10 * IDEM_US_PER_SECOND)
#define HURRY_US           (10 * IDEM_US_PER_SECOND) /* For the store to come back. */
#define LINGER_US          (2 * IDEM_US_PER_SECOND)  /* For last answers to leave. */
#define DISK_LOOK_MS       1000
#define FILES_BESIDE       256 /* Descriptors for everything that is not a caller. */
#define CONNECTIONS_A_HOST 64

enum phase {
    PHASE_SERVING = 0,
    PHASE_DRAINING, /* service_drain(): a first signal. */
    PHASE_HURRYING, /* service_hurry(): the grace is over, or a second signal. */
    PHASE_LEAVING,  /* service_leave(): idle; last answers are on their way. */
    PHASE_BROKEN,   /* service_break(): the store's word is worth nothing any more. */
    PHASE_CLOSED    /* service_close(): nothing is left to do. */
};

struct idem_service {
    const struct idem_config *config; /* Borrowed. */
    struct idem_parts *parts;
    struct idem_clock clock;
    struct idem_random random;

    uv_loop_t loop;
    bool loop_open;
    uv_async_t wake;
    uv_prepare_t before;
    uv_check_t after;
    uv_timer_t timer;
    uv_timer_t disk_timer;
    uv_signal_t signals[3];

    struct idem_http_client *client;
    struct idem_port *port;
    struct idem_store *store;
    struct idem_engine *engine;
    struct idem_api *api;
    struct idem_recovery *recovery;
    struct idem_server *server;

    enum phase phase;
    int64_t phase_end_us;   /* Monotonic; when this phase is over whatever happens. */
    struct stat store_file; /* As it was when the store was opened. */
    bool reserve_low;
    enum idem_exit status;
};

static int64_t now_us(struct idem_service *service)
{
    return idem_clock_mono_us(&service->clock);
}

static void phase_set(struct idem_service *service, enum phase phase, int64_t longest_us)
{
    IDEM_ASSERT(phase > service->phase);
    service->phase = phase;
    service->phase_end_us = now_us(service) + longest_us;
}

/* No new work, from outside or from the store. Callers are still answered: 503, same key. */
static void doors_shut(struct idem_service *service)
{
    idem_api_drain(service->api);
    idem_recovery_stop(service->recovery);
    idem_engine_drain(service->engine);
}

static void service_drain(struct idem_service *service)
{
    phase_set(service, PHASE_DRAINING, service->config->timings.stop_grace_us);
    doors_shut(service);
}

static void service_hurry(struct idem_service *service)
{
    idem_log(IDEM_LOG_WARN, "stop-hurried", NULL, 0);
    phase_set(service, PHASE_HURRYING, HURRY_US);
    idem_engine_hurry(service->engine);
}

static void service_leave(struct idem_service *service)
{
    idem_server_drain(service->server);
    phase_set(service, PHASE_LEAVING, LINGER_US);
}

static void service_break(struct idem_service *service)
{
    idem_log(IDEM_LOG_ERROR, "store-broken", NULL, 0);
    phase_set(service, PHASE_BROKEN, LINGER_US);
    doors_shut(service);
    idem_server_drain(service->server);
    idem_engine_hurry(service->engine);
}

static void service_close(struct idem_service *service, enum idem_exit status)
{
    phase_set(service, PHASE_CLOSED, 0);
    service->status = status;
    uv_stop(&service->loop);
}

static bool service_is_idle(const struct idem_service *service)
{
    return idem_engine_idle(service->engine) && idem_api_idle(service->api);
}

/* Quiet: nobody waits and the last answer has left. */
static void close_when_quiet(struct idem_service *service, bool late, enum idem_exit status)
{
    bool quiet = service_is_idle(service) && idem_server_connections(service->server) == 0;
    if (quiet || late) {
        service_close(service, status);
    }
}

/* One look at whether the current phase is over. */
static void phase_step(struct idem_service *service)
{
    bool late = now_us(service) >= service->phase_end_us;
    bool quiet = idem_engine_quiet(service->engine);
    if (service->store->broken && service->phase < PHASE_BROKEN) {
        service_break(service);
        return;
    }
    switch (service->phase) {
    case PHASE_SERVING:
    case PHASE_CLOSED:
        return;
    case PHASE_DRAINING:
        if (quiet) {
            service_leave(service);
        } else if (late) {
            service_hurry(service);
        }
        return;
    case PHASE_HURRYING:
        if (quiet) {
            service_leave(service);
        } else if (late) {
            idem_log(IDEM_LOG_ERROR, "stop-forced", NULL, 0);
            service_close(service, IDEM_EXIT_OTHER);
        }
        return;
    case PHASE_LEAVING:
        close_when_quiet(service, late, IDEM_EXIT_OK);
        return;
    case PHASE_BROKEN:
        close_when_quiet(service, late, IDEM_EXIT_STORE);
        return;
    }
    IDEM_UNREACHABLE();
}

static void service_step(struct idem_service *service)
{
    idem_engine_step(service->engine);
    idem_recovery_step(service->recovery);
    idem_engine_step(service->engine); /* What recovery handed over begins now. */
    idem_api_step(service->api);
    phase_step(service);
}

static int64_t earlier(int64_t left_us, int64_t right_us)
{
    return left_us < right_us ? left_us : right_us;
}

static void on_timer(uv_timer_t *handle)
{
    (void)handle; /* Its point is that the wait ended; the step follows. */
}

static void timer_arm(struct idem_service *service)
{
    int64_t current_us = now_us(service);
    int64_t wake_us = earlier(idem_engine_wake_us(service->engine), current_us + WAIT_MAX_US);
    wake_us = earlier(wake_us, idem_recovery_wake_us(service->recovery));
    if (service->phase != PHASE_SERVING) {
        wake_us = earlier(wake_us, service->phase_end_us);
    }
    int64_t wait_us = wake_us > current_us ? wake_us - current_us : 0;
    uv_update_time(&service->loop);
    int rc = uv_timer_start(&service->timer, on_timer,
                            (uint64_t)((wait_us + IDEM_US_PER_MS - 1) / IDEM_US_PER_MS), 0);
    IDEM_ASSERT(rc == 0);
}

static void on_before(uv_prepare_t *handle)
{
    struct idem_service *service = handle->data;
    service_step(service);
    timer_arm(service);
}

static void on_after(uv_check_t *handle)
{
    service_step(handle->data);
}

static void on_wake(uv_async_t *handle)
{
    (void)handle; /* Its point is that the wait ended; the step follows. */
}

/* From the store's threads. */
static void store_woke(void *context)
{
    struct idem_service *service = context;
    (void)uv_async_send(&service->wake); /* The handle is open as long as the store. */
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct idem_service *service = handle->data;
    idem_log(IDEM_LOG_INFO, "signal", &IDEM_LOG_NUMBER("number", number), 1);
    if (service->phase == PHASE_SERVING) {
        service_drain(service);
    } else if (service->phase == PHASE_DRAINING) {
        service_hurry(service);
    }
}

/*
 * Whether the store's name still leads to the file that is open. Otherwise every answer would rest
 * on a file that nobody will find again.
 */
static void store_look(struct idem_service *service)
{
    const char *path = service->config->store_path;
    struct stat file;
    if (service->store->broken) {
        return;
    }
    bool there = stat(path, &file) == 0;
    if (!there || file.st_dev != service->store_file.st_dev ||
        file.st_ino != service->store_file.st_ino) {
        const struct idem_log_field fields[] = {
            IDEM_LOG_TEXT("store", path),
            IDEM_LOG_TEXT("now", there ? "another file" : strerror(errno)),
        };
        idem_log(IDEM_LOG_ERROR, "store-replaced", fields, IDEM_ARRAY_COUNT(fields));
        idem_store_break(service->store);
    }
}

/* New claims stop while the disk has less than the reserve: settling what runs still needs room. */
static void disk_look(struct idem_service *service)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s", service->config->store_path); /* The store is open. */
    struct statvfs disk;
    if (statvfs(dirname(path), &disk) != 0) {
        idem_log(IDEM_LOG_WARN, "disk-unreadable", &IDEM_LOG_TEXT("error", strerror(errno)), 1);
        return;
    }
    bool low =
        disk.f_bavail < (uint64_t)service->config->disk_reserve_bytes / (uint64_t)disk.f_frsize;
    if (low != service->reserve_low) {
        idem_log(low ? IDEM_LOG_ERROR : IDEM_LOG_INFO, low ? "disk-low" : "disk-enough", NULL, 0);
        service->reserve_low = low;
        idem_engine_set_reserve_low(service->engine, low);
    }
}

static void on_disk_timer(uv_timer_t *handle)
{
    store_look(handle->data);
    disk_look(handle->data);
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
    (void)uv_timer_init(&service->loop, &service->disk_timer);
    service->before.data = service;
    service->after.data = service;
    service->disk_timer.data = service;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(service->signals); i++) {
        rc = uv_signal_init(&service->loop, &service->signals[i]);
        if (rc != 0) {
            return idem_error_set(reterr, IDEM_E_SYSTEM, "event loop: %s", uv_strerror(rc));
        }
        service->signals[i].data = service;
    }
    return IDEM_OK;
}

/* As many descriptors as the system lets us have; fewer than connections is worth a line. */
static void files_raise(const struct idem_config *config)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return; /* Then the limit stays as it is, and accept says when it is reached. */
    }
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files); /* Raising to the hard limit is always allowed. */
    if (files.rlim_cur < (rlim_t)config->limits.connections + FILES_BESIDE) {
        idem_log(IDEM_LOG_WARN, "few-descriptors",
                 &IDEM_LOG_NUMBER("limit", (int64_t)files.rlim_cur), 1);
    }
}

static enum idem_err port_open(struct idem_service *service, struct idem_error *reterr)
{
    size_t calls_max = idem_parts_calls_max(service->parts);
    struct idem_http_client_options options = {
        .loop = &service->loop,
        .clock = &service->clock,
        .calls_max = calls_max,
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
    return IDEM_OK;
}

static enum idem_err store_open(struct idem_service *service, struct idem_error *reterr)
{
    struct idem_store_options options = {
        .rules = &service->parts->rules,
        .clock = &service->clock,
        .wake = store_woke,
        .wake_context = service,
        .effect_secret_check = service->parts->effect_secret_check,
        .scope_rule = service->config->scope == IDEM_CONFIG_SCOPE_PRINCIPAL ? IDEM_STR("principal")
                                                                            : IDEM_STR("endpoint"),
    };
    const char *path = service->config->store_path;
    enum idem_err err = idem_sqlite_open(path, &options, &service->store, reterr);
    if (err == IDEM_OK && stat(path, &service->store_file) != 0) {
        err = idem_error_set(reterr, IDEM_E_SYSTEM, "cannot look at the store %s: %s", path,
                             strerror(errno));
    }
    return err;
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
    return idem_engine_create(&options, &service->engine, reterr);
}

static enum idem_err api_open(struct idem_service *service, struct idem_error *reterr)
{
    struct idem_api_options options = {
        .engine = service->engine,
        .rules = &service->parts->rules,
        .clock = &service->clock,
        .requests_max = (size_t)service->config->limits.requests,
        .body_max = (size_t)service->config->limits.body_bytes,
    };
    idem_parts_api_options(service->parts, &options);
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

static enum idem_err server_open(struct idem_service *service, struct idem_error *reterr)
{
    const struct idem_config *config = service->config;
    struct idem_server_options options = idem_server_options_default();
    options.loop = &service->loop;
    options.host = config->host;
    options.port = config->port;
    options.connections_max = (size_t)config->limits.connections;
    options.head_max = (size_t)config->limits.head_bytes;
    options.body_max = (size_t)config->limits.body_bytes;
    options.head_timeout_us = config->timings.head_us;
    options.body_timeout_us = config->timings.body_us;
    options.idle_timeout_us = config->timings.idle_us;
    options.write_timeout_us = config->timings.write_us;
    options.ops = &idem_api_server_ops;
    options.context = service->api;
    return idem_server_open(&options, &service->server, reterr);
}

/* Whoever started us with HUP ignored (nohup) wants us to outlive the terminal. */
static bool is_ignored(int number)
{
    struct sigaction action;
    return number == SIGHUP && sigaction(number, NULL, &action) == 0 &&
           action.sa_handler == SIG_IGN;
}

static void handles_start(struct idem_service *service)
{
    static const int numbers[IDEM_ARRAY_COUNT(service->signals)] = { SIGTERM, SIGINT, SIGHUP };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(numbers); i++) {
        if (!is_ignored(numbers[i])) {
            int rc = uv_signal_start(&service->signals[i], on_signal, numbers[i]);
            IDEM_ASSERT(rc == 0); /* These signals exist and may be caught. */
        }
    }
    (void)uv_prepare_start(&service->before, on_before); /* These fail without a callback only. */
    (void)uv_check_start(&service->after, on_after);
    (void)uv_timer_start(&service->disk_timer, on_disk_timer, DISK_LOOK_MS, DISK_LOOK_MS);
    disk_look(service);
}

enum idem_err idem_service_create(const struct idem_config *config,
                                  struct idem_service **ret_service,
                                  struct idem_error *reterr)
{
    static enum idem_err (*const openers[])(struct idem_service *, struct idem_error *) = {
        loop_open, port_open, store_open, engine_open, api_open, recovery_open, server_open,
    };

    struct idem_service *service = calloc(1, sizeof(*service));
    if (service == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the service");
    }
    service->config = config;
    idem_clock_init_system(&service->clock);
    idem_random_init_system(&service->random);
    files_raise(config);
    idem_log(IDEM_LOG_INFO, "start", &IDEM_LOG_TEXT("store", config->store_path), 1);

    enum idem_err err = idem_parts_create(config, &service->random, &service->parts, reterr);
    for (size_t i = 0; err == IDEM_OK && i < IDEM_ARRAY_COUNT(openers); i++) {
        err = openers[i](service, reterr);
    }
    if (err != IDEM_OK) {
        idem_service_destroy(service); /* Closes whatever was opened. */
        return err;
    }
    handles_start(service);
    *ret_service = service;
    return IDEM_OK;
}

enum idem_exit idem_service_run(struct idem_service *service)
{
    const struct idem_log_field fields[] = {
        IDEM_LOG_TEXT("role", "serve"),
        IDEM_LOG_TEXT("host", service->config->host),
        IDEM_LOG_NUMBER("port", idem_server_port(service->server)),
        IDEM_LOG_NUMBER("incarnation", service->store->incarnation),
    };
    idem_log(IDEM_LOG_INFO, "ready", fields, IDEM_ARRAY_COUNT(fields));

    while (service->phase != PHASE_CLOSED) {
        (void)uv_run(&service->loop, UV_RUN_DEFAULT); /* Handles are open: it ends by uv_stop. */
    }
    idem_log(IDEM_LOG_INFO, "stop", &IDEM_LOG_NUMBER("status", service->status), 1);
    return service->status;
}

/* A handle that was never opened has no loop: the service began as zeros. */
static void handle_close(uv_handle_t *handle)
{
    if (uv_handle_get_loop(handle) != NULL && uv_is_closing(handle) == 0) {
        uv_close(handle, NULL);
    }
}

static void handles_close(struct idem_service *service)
{
    handle_close((uv_handle_t *)&service->wake);
    handle_close((uv_handle_t *)&service->before);
    handle_close((uv_handle_t *)&service->after);
    handle_close((uv_handle_t *)&service->timer);
    handle_close((uv_handle_t *)&service->disk_timer);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(service->signals); i++) {
        handle_close((uv_handle_t *)&service->signals[i]);
    }
}

/* What runs on the loop goes first, then what it stood on; the loop last. */
void idem_service_destroy(struct idem_service *service)
{
    if (service == NULL) {
        return;
    }
    if (service->server != NULL) {
        idem_server_close(service->server);
        while (!idem_server_closed(service->server) || !service_is_idle(service)) {
            (void)uv_run(&service->loop, UV_RUN_ONCE); /* The condition says when it is done. */
        }
        (void)uv_prepare_stop(&service->before); /* No step over what is being taken down; */
        (void)uv_check_stop(&service->after);    /* stopping cannot fail. */
        idem_server_destroy(service->server);
    }
    idem_recovery_destroy(service->recovery);
    idem_api_destroy(service->api);
    idem_engine_destroy(service->engine);
    if (service->store != NULL) {
        idem_store_stop(service->store);
    }
    idem_store_destroy(service->store);
    idem_port_destroy(service->port);
    idem_http_client_destroy(service->client);
    handles_close(service);
    if (service->loop_open) {
        (void)uv_run(&service->loop, UV_RUN_DEFAULT); /* Until the last handle is closed. */
        int rc = uv_loop_close(&service->loop);
        IDEM_ASSERT(rc == 0);
    }
    idem_parts_destroy(service->parts);
    free(service);
}
