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

#include <signal.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/bug.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/service_internal.h"

#define WAIT_MAX_US    (10 * IDEM_US_PER_SECOND)
#define HURRY_US       (10 * IDEM_US_PER_SECOND) /* For the store to come back. */
#define POSTS_GRACE_US (2 * IDEM_US_PER_SECOND)  /* For merchants that are slow to answer. */
#define LINGER_US      (2 * IDEM_US_PER_SECOND)  /* For last answers to leave. */
#define WATCH_MS       1000

static int64_t earlier(int64_t left_us, int64_t right_us)
{
    return left_us < right_us ? left_us : right_us;
}

static int64_t now_us(struct idem_service *service)
{
    return idem_clock_mono_us(&service->clock);
}

static void phase_set(struct idem_service *service,
                      enum idem_service_phase phase,
                      int64_t longest_us)
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
    idem_reaper_stop(service->reaper);
    idem_restore_stop(service->restore);
    idem_outbox_stop(service->outbox);
    idem_schedule_stop(service->schedule);
    idem_engine_drain(service->engine);
}

static void service_drain(struct idem_service *service)
{
    int64_t grace_us = service->config->timings.stop_grace_us;
    phase_set(service, IDEM_PHASE_DRAINING, grace_us);
    service->posts_end_us = now_us(service) + earlier(grace_us / 2, POSTS_GRACE_US);
    doors_shut(service);
}

static void service_hurry(struct idem_service *service)
{
    idem_log(IDEM_LOG_WARN, "stop-hurried", NULL, 0);
    phase_set(service, IDEM_PHASE_HURRYING, HURRY_US);
    idem_outbox_hurry(service->outbox);
    idem_engine_hurry(service->engine);
}

static void service_leave(struct idem_service *service)
{
    idem_server_drain(service->server);
    phase_set(service, IDEM_PHASE_LEAVING, LINGER_US);
}

static void service_break(struct idem_service *service)
{
    const char *why = service->store->breakage.text;
    idem_log(IDEM_LOG_ERROR, "store-broken", &IDEM_LOG_TEXT("error", why), why[0] != '\0' ? 1 : 0);
    phase_set(service, IDEM_PHASE_BROKEN, LINGER_US);
    doors_shut(service);
    idem_server_drain(service->server);
    idem_outbox_hurry(service->outbox);
    idem_engine_hurry(service->engine);
}

static void service_close(struct idem_service *service, enum idem_exit status)
{
    phase_set(service, IDEM_PHASE_CLOSED, 0);
    service->status = status;
    uv_stop(&service->loop);
}

static bool service_is_idle(const struct idem_service *service)
{
    return idem_engine_idle(service->engine) && idem_api_idle(service->api) &&
           idem_restore_idle(service->restore) && idem_outbox_idle(service->outbox) &&
           idem_schedule_idle(service->schedule);
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
    bool quiet = idem_engine_quiet(service->engine) && idem_outbox_idle(service->outbox);
    if (service->store->broken && service->phase < IDEM_PHASE_BROKEN) {
        service_break(service);
        return;
    }
    switch (service->phase) {
    case IDEM_PHASE_SERVING:
    case IDEM_PHASE_CLOSED:
        return;
    case IDEM_PHASE_DRAINING:
        if (now_us(service) >= service->posts_end_us) {
            idem_outbox_hurry(service->outbox); /* Earlier than all else: it is still recorded. */
        }
        if (quiet) {
            service_leave(service);
        } else if (late) {
            service_hurry(service);
        }
        return;
    case IDEM_PHASE_HURRYING:
        if (quiet) {
            service_leave(service);
        } else if (late) {
            idem_log(IDEM_LOG_ERROR, "stop-forced", NULL, 0);
            service_close(service, IDEM_EXIT_OTHER);
        }
        return;
    case IDEM_PHASE_LEAVING:
        close_when_quiet(service, late, IDEM_EXIT_OK);
        return;
    case IDEM_PHASE_BROKEN:
        close_when_quiet(service, late, IDEM_EXIT_STORE);
        return;
    }
    IDEM_UNREACHABLE();
}

static void service_step(struct idem_service *service)
{
    idem_engine_step(service->engine);
    idem_recovery_step(service->recovery);
    idem_reaper_step(service->reaper);
    idem_restore_step(service->restore);
    idem_outbox_step(service->outbox);
    idem_engine_step(service->engine); /* What the workers handed over begins now. */
    idem_api_step(service->api);
    idem_service_tell_news(service);
    phase_step(service);
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
    wake_us = earlier(wake_us, idem_api_wake_us(service->api));
    wake_us = earlier(wake_us, idem_reaper_wake_us(service->reaper));
    wake_us = earlier(wake_us, idem_restore_wake_us(service->restore));
    wake_us = earlier(wake_us, idem_outbox_wake_us(service->outbox));
    if (service->phase != IDEM_PHASE_SERVING) {
        wake_us = earlier(wake_us, service->phase_end_us);
    }
    if (service->phase == IDEM_PHASE_DRAINING && !idem_outbox_idle(service->outbox) &&
        service->posts_end_us > current_us) {
        wake_us = earlier(wake_us, service->posts_end_us);
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

void idem_service_store_woke(void *context)
{
    struct idem_service *service = context;
    (void)uv_async_send(&service->wake); /* The handle is open as long as the store. */
}

void idem_service_on_signal(uv_signal_t *handle, int number)
{
    struct idem_service *service = handle->data;
    idem_log(IDEM_LOG_INFO, "signal", &IDEM_LOG_NUMBER("number", number), 1);
    if (number == SIGHUP) {
        idem_service_reload(service);
    } else if (service->phase == IDEM_PHASE_SERVING) {
        service_drain(service);
    } else if (service->phase == IDEM_PHASE_DRAINING) {
        service_hurry(service);
    }
}

static void on_watch_timer(uv_timer_t *handle)
{
    idem_service_watch(handle->data);
}

static void handles_start(struct idem_service *service)
{
    static const int numbers[] = { SIGTERM, SIGINT };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(numbers); i++) {
        int rc = uv_signal_start(&service->signals[i], idem_service_on_signal, numbers[i]);
        IDEM_ASSERT(rc == 0); /* These signals exist and may be caught. */
    }
    (void)uv_prepare_start(&service->before, on_before); /* These fail without a callback only. */
    (void)uv_check_start(&service->after, on_after);
    (void)uv_timer_start(&service->watch_timer, on_watch_timer, WATCH_MS, WATCH_MS);
    idem_service_watch(service);
}

enum idem_err idem_service_create(const struct idem_config *config,
                                  const struct idem_service_source *source,
                                  struct idem_service **ret_service,
                                  struct idem_error *reterr)
{
    struct idem_service *service = calloc(1, sizeof(*service));
    if (service == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the service");
    }
    service->config = config;
    service->source = *source;
    idem_clock_init_system(&service->clock);
    idem_random_init_system(&service->random);
    service->started_us = now_us(service);
    idem_log(IDEM_LOG_INFO, "start", &IDEM_LOG_TEXT("store", config->store_label), 1);

    enum idem_err err = idem_service_open(service, reterr);
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

    while (service->phase != IDEM_PHASE_CLOSED) {
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
    handle_close((uv_handle_t *)&service->watch_timer);
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
    idem_schedule_destroy(service->schedule);
    idem_outbox_destroy(service->outbox);
    idem_restore_destroy(service->restore);
    idem_reaper_destroy(service->reaper);
    idem_recovery_destroy(service->recovery);
    idem_api_destroy(service->api);
    idem_engine_destroy(service->engine);
    if (service->store != NULL) {
        idem_store_stop(service->store);
    }
    idem_store_destroy(service->store);
    idem_post_port_destroy(service->posts);
    idem_digester_destroy(service->digester);
    idem_callback_reader_destroy(service->callbacks);
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
