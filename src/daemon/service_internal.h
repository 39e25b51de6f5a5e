/*
 * service_internal.h - a running service from inside. Stays in this folder.
 *
 *   service.c        one loop, one step, the endings
 *   service_open.c   how its parts are opened, in their order
 *   service_watch.c  what it looks at once a second, and what it tells the edge and the log
 *   service_news.c   what became of intents, as lines of the log
 *   service_reload.c what changes without a restart
 */
#ifndef IDEM_DAEMON_SERVICE_INTERNAL_H
#define IDEM_DAEMON_SERVICE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <uv.h>

#include "api/api.h"
#include "base/clock.h"
#include "base/random.h"
#include "daemon/config.h"
#include "daemon/parts.h"
#include "daemon/schedule.h"
#include "daemon/service.h"
#include "engine/engine.h"
#include "net/server.h"
#include "outbox/http_post.h"
#include "outbox/outbox.h"
#include "provider/http_port.h"
#include "store/store.h"
#include "transport/client.h"
#include "worker/reaper.h"
#include "worker/recovery.h"
#include "worker/restore.h"

#define IDEM_SERVICE_SIGNALS 3

enum idem_service_phase {
    IDEM_PHASE_SERVING = 0,
    IDEM_PHASE_DRAINING, /* service_drain(): a first signal. */
    IDEM_PHASE_HURRYING, /* service_hurry(): the grace is over, or a second signal. */
    IDEM_PHASE_LEAVING,  /* service_leave(): idle; last answers are on their way. */
    IDEM_PHASE_BROKEN,   /* service_break(): the store's word is worth nothing any more. */
    IDEM_PHASE_CLOSED    /* service_close(): nothing is left to do. */
};

/* What was seen last, so that a change is one line of the log. */
struct idem_service_watch {
    int64_t looked_us;    /* Monotonic. */
    struct stat log_file; /* The store's, once it was seen. */
    int64_t loop_lag_us;
    bool store_silent;
    bool standbys_gone;
    bool disk_low;
    bool disk_unreadable;
    bool clock_apart;
    bool settles_stuck;
    bool restored;
    bool caught_up;
    bool crowded;
};

struct idem_service {
    const struct idem_config *config;  /* Borrowed, as the source. */
    struct idem_service_source source; /* Of the configuration, for a reload. */
    struct idem_parts *parts;
    struct idem_clock clock;
    struct idem_random random;

    uv_loop_t loop;
    bool loop_open;
    uv_async_t wake;
    uv_prepare_t before;
    uv_check_t after;
    uv_timer_t timer;
    uv_timer_t watch_timer;
    uv_signal_t signals[IDEM_SERVICE_SIGNALS];

    struct idem_http_client *client;
    struct idem_port *port;
    struct idem_callback_reader *callbacks;
    struct idem_digester *digester; /* The posts'. */
    struct idem_post_port *posts;
    struct idem_store *store;
    struct idem_engine *engine;
    struct idem_api *api;
    struct idem_recovery *recovery;
    struct idem_reaper *reaper;
    struct idem_restore *restore;
    struct idem_outbox *outbox;
    struct idem_schedule *schedule;
    struct idem_server *server;

    enum idem_service_phase phase;
    int64_t phase_end_us;   /* Monotonic; when this phase is over whatever happens. */
    int64_t posts_end_us;   /* Likewise; while draining, when posts that hang are ended. */
    struct stat store_file; /* As it was when the store was opened. */
    int64_t started_us;     /* Monotonic. */
    struct idem_service_watch watch;
    enum idem_exit status;
};

/* service_open.c: everything, in the order in which it needs one another; nothing is closed. */
enum idem_err idem_service_open(struct idem_service *service,
                                struct idem_error *reterr) IDEM_MUST_CHECK;

/* service_watch.c: one look; called once a second, and once before anything is served. */
void idem_service_watch(struct idem_service *service);

/* service_news.c: what became of intents, as lines of the log. */
void idem_service_tell_news(struct idem_service *service);

/* service_reload.c: of the configuration, and the service's own; how many. */
size_t idem_service_credentials(
    const struct idem_service *service,
    const struct idem_config *config,
    struct idem_credential ret_credentials[IDEM_CONFIG_CREDENTIALS_MAX + 1]);

/* service_reload.c: on HUP. A configuration that cannot be used changes nothing. */
void idem_service_reload(struct idem_service *service);

/* service.c: a signal, on the loop. */
void idem_service_on_signal(uv_signal_t *handle, int number);

/* service.c: from the store's threads. */
void idem_service_store_woke(void *context);

#endif /* IDEM_DAEMON_SERVICE_INTERNAL_H */
