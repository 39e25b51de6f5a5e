/*
 * What the service looks at once a second: the store's file or server, the disk, the workers. Each
 * change is one line of the log, and the edge gets the figures for its metrics.
 */
#include "daemon/service_internal.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/attr.h"
#include "daemon/config.h"
#include "daemon/log.h"

/* Looks at a file and remembers it the first time; false: the name leads elsewhere since. */
static bool is_in_place(const char *path, struct stat *known, bool *ret_there)
{
    struct stat file;
    *ret_there = stat(path, &file) == 0;
    if (*ret_there && known->st_ino == 0) {
        *known = file;
    }
    bool is_same = file.st_dev == known->st_dev && file.st_ino == known->st_ino;
    return *ret_there ? is_same : known->st_ino == 0;
}

/*
 * Whether the names of the store and its log still lead to the files that are open. Otherwise every
 * answer would rest on a file that nobody will find again.
 */
static void store_look(struct idem_service *service)
{
    const char *path = service->config->store_path;
    char log[PATH_MAX];
    if (path == NULL || service->store->broken) {
        return;
    }
    (void)snprintf(log, sizeof(log), "%s-wal", path); /* Cut, it is not there, and never was. */
    bool there = true;
    if (!is_in_place(path, &service->store_file, &there) ||
        !is_in_place(log, &service->watch.log_file, &there)) {
        const struct idem_log_field fields[] = {
            IDEM_LOG_TEXT("store", path),
            IDEM_LOG_TEXT("now", there ? "another file" : strerror(errno)),
        };
        idem_log(IDEM_LOG_ERROR, "store-replaced", fields, IDEM_ARRAY_COUNT(fields));
        idem_store_break(service->store);
    }
}

/* A server that does not answer comes back by itself, or somebody has to see to it. */
static void silence_look(struct idem_service *service)
{
    bool silent = service->store->silent;
    if (silent == service->watch.store_silent) {
        return;
    }
    const struct idem_log_field fields[] = {
        IDEM_LOG_TEXT("store", service->config->store_label),
        IDEM_LOG_TEXT("error", service->store->silence.text),
    };
    idem_log(silent ? IDEM_LOG_ERROR : IDEM_LOG_INFO, silent ? "store-silent" : "store-answers",
             fields, IDEM_ARRAY_COUNT(fields) - (silent ? 0 : 1));
    service->watch.store_silent = silent;
}

/* One copy, where there were two: an operator may mean it, and must not miss it. */
static void standbys_look(struct idem_service *service)
{
    bool gone = service->store->standbys_gone;
    if (gone != service->watch.standbys_gone) {
        idem_log(gone ? IDEM_LOG_ERROR : IDEM_LOG_INFO, gone ? "standbys-gone" : "standbys-back",
                 &IDEM_LOG_TEXT("store", service->config->store_label), 1);
        service->watch.standbys_gone = gone;
    }
}

/* New claims stop while the disk has less than the reserve: settling what runs still needs room. */
static void disk_look(struct idem_service *service)
{
    char path[PATH_MAX];
    struct statvfs disk;
    if (service->config->store_path == NULL) { /* Its disk is the database server's. */
        return;
    }
    (void)snprintf(path, sizeof(path), "%s", service->config->store_path); /* The store is open. */
    bool readable = statvfs(dirname(path), &disk) == 0;
    if (!readable && !service->watch.disk_unreadable) {
        idem_log(IDEM_LOG_WARN, "disk-unreadable", &IDEM_LOG_TEXT("error", strerror(errno)), 1);
    }
    service->watch.disk_unreadable = !readable;
    if (!readable) {
        return;
    }
    bool low =
        disk.f_bavail < (uint64_t)service->config->disk_reserve_bytes / (uint64_t)disk.f_frsize;
    if (low != service->watch.disk_low) {
        idem_log(low ? IDEM_LOG_ERROR : IDEM_LOG_INFO, low ? "disk-low" : "disk-enough", NULL, 0);
        service->watch.disk_low = low;
        idem_engine_set_reserve_low(service->engine, low);
    }
}

/* How late this look is: as late as whatever else the loop had to do. */
static void lag_look(struct idem_service *service)
{
    struct idem_service_watch *watch = &service->watch;
    int64_t now_us = idem_clock_mono_us(&service->clock);
    int64_t late_us = watch->looked_us == 0 ? 0 : now_us - watch->looked_us - IDEM_US_PER_SECOND;
    watch->loop_lag_us = late_us > 0 ? late_us : 0;
    watch->looked_us = now_us;
}

/* Outcomes that the store does not take are tried for ever; somebody should know. */
static void settles_look(struct idem_service *service)
{
    size_t count = idem_engine_stats(service->engine)->settles_stuck;
    if ((count > 0) != service->watch.settles_stuck) {
        idem_log(count > 0 ? IDEM_LOG_ERROR : IDEM_LOG_INFO,
                 count > 0 ? "settles-stuck" : "settles-written",
                 &IDEM_LOG_NUMBER("count", (int64_t)count), 1);
        service->watch.settles_stuck = count > 0;
    }
}

static void workers_look(struct idem_service *service)
{
    struct idem_service_watch *watch = &service->watch;
    struct idem_reaper_stats reaper = idem_reaper_stats(service->reaper);
    struct idem_restore_stats restore = idem_restore_stats(service->restore);
    bool caught_up = idem_recovery_caught_up(service->recovery);

    if (reaper.clock_apart != watch->clock_apart) {
        idem_log(reaper.clock_apart ? IDEM_LOG_ERROR : IDEM_LOG_INFO,
                 reaper.clock_apart ? "clock-apart" : "clock-trusted",
                 &IDEM_LOG_NUMBER("horizon_us", reaper.horizon_us), 1);
        watch->clock_apart = reaper.clock_apart;
    }
    if (restore.restored != watch->restored) {
        const struct idem_log_field fields[] = {
            IDEM_LOG_NUMBER("listed", (int64_t)restore.listed),
            IDEM_LOG_TEXT("needs_operator", restore.needs_operator ? "yes" : "no"),
        };
        idem_log(IDEM_LOG_WARN, restore.restored ? "restored" : "restored-over", fields,
                 IDEM_ARRAY_COUNT(fields));
        watch->restored = restore.restored;
    }
    bool crowded = idem_api_credentials_crowded(service->api);
    if (crowded && !watch->crowded) {
        idem_log(IDEM_LOG_ERROR, "credentials-crowded", NULL, 0);
    }
    watch->crowded = crowded;
    if (caught_up && !watch->caught_up) {
        idem_log(IDEM_LOG_INFO, "caught-up", NULL, 0);
        watch->caught_up = true;
    }
}

static void gauges_tell(struct idem_service *service)
{
    struct idem_service_watch *watch = &service->watch;
    struct idem_reaper_stats reaper = idem_reaper_stats(service->reaper);
    struct idem_restore_stats restore = idem_restore_stats(service->restore);
    struct idem_outbox_stats outbox = idem_outbox_stats(service->outbox);
    const struct idem_api_gauges gauges = {
        .version = IDEM_STR(IDEM_VERSION),
        .uptime_us = idem_clock_mono_us(&service->clock) - service->started_us,
        .loop_lag_us = watch->loop_lag_us,
        .disk_low = watch->disk_low,
        .store_silent = watch->store_silent,
        .store_standbys = service->store->standbys,
        .store_standbys_gone = watch->standbys_gone,
        .reaper_expired = reaper.expired,
        .reaper_removed = reaper.removed,
        .reaper_horizon_us = reaper.horizon_us,
        .clock_apart = reaper.clock_apart,
        .outbox_delivered = outbox.delivered,
        .outbox_failed = outbox.failed,
        .outbox_dead = outbox.dead,
        .outbox_gone = outbox.gone,
        .outbox_in_hand = outbox.in_hand,
        .restored = restore.restored,
        .restore_needs_operator = restore.needs_operator,
        .restore_from_us = restore.from_us,
        .restore_begins_us = restore.begins_us,
        .restore_listed = restore.listed,
        .restore_failures = restore.failures,
        .reconciled = idem_schedule_told(service->schedule),
    };
    idem_api_set_gauges(service->api, &gauges);
    idem_api_set_ready(service->api, idem_recovery_caught_up(service->recovery));
}

/* Not before what an earlier process left is known: until then the listing would differ from it. */
static void schedule_look(struct idem_service *service)
{
    bool ready = service->watch.caught_up && !service->watch.restored;
    if (ready && service->phase == IDEM_PHASE_SERVING) {
        idem_schedule_look(service->schedule, idem_server_port(service->server));
    }
}

void idem_service_watch(struct idem_service *service)
{
    lag_look(service);
    store_look(service);
    silence_look(service);
    standbys_look(service);
    disk_look(service);
    workers_look(service);
    settles_look(service);
    gauges_tell(service);
    schedule_look(service);
}
