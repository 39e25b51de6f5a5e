/*
 * service.h - a running payment service: everything concrete, put together and driven by one loop.
 *
 * This is the only place that names a store, a provider port, a loop and a clock at once. A service
 * runs until a signal asks it to stop, or until its store is broken.
 *
 * HUP reads the configuration again: credentials, limits per principal and the providers'
 * credentials change, everything else waits for a restart. One that is refused changes nothing.
 *
 * Stopping: the first TERM or INT closes the door and finishes what is in flight, for at most
 * `stop_grace`; then, or at a second signal, whoever still waits is told where to look. What is
 * left stands in the store and goes on at the next start.
 *
 * Threads: one, beside the store's own.
 */
#ifndef IDEM_DAEMON_SERVICE_H
#define IDEM_DAEMON_SERVICE_H

#include "base/error.h"
#include "base/exit.h"

struct idem_config;
struct idem_service;

/* Where the configuration came from: gives it anew, read and checked, for idem_config_destroy(). */
struct idem_service_source {
    enum idem_err (*load)(void *context,
                          struct idem_config **ret_config,
                          struct idem_error *reterr);
    void *context;
};

/*
 * Opens everything and listens. `config` was checked and is borrowed as long as the service. On
 * failure nothing is left open.
 */
enum idem_err idem_service_create(const struct idem_config *config,
                                  const struct idem_service_source *source,
                                  struct idem_service **ret_service,
                                  struct idem_error *reterr) IDEM_MUST_CHECK;

/*
 * Serves until the end. IDEM_EXIT_OK: everything is idle and may be destroyed. Otherwise the
 * process must exit at once, without destroying.
 */
enum idem_exit idem_service_run(struct idem_service *service);

/* Accepts NULL. */
void idem_service_destroy(struct idem_service *service);

#endif /* IDEM_DAEMON_SERVICE_H */
