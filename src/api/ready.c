/*
 * Whether this service should get requests now. /healthz says that the process lives; /readyz says
 * that what it is asked would be done.
 *
 * The store is as good as its last batch: while commands come back unwritten, the answer is no. A
 * server that is asked by the store itself (silent) needs no batch for that.
 * With nobody let in, nothing might ever be written again, so after a quiet while the doubt ends,
 * and the next batch says what is true.
 */
#include "api/api_internal.h"

#define DOUBT_US (10 * IDEM_US_PER_SECOND)

void idem_ready_step(struct idem_api *api)
{
    const uint64_t *answers = idem_engine_stats(api->options.engine)->answers;
    uint64_t failed = answers[IDEM_STORE_NOTHING] + answers[IDEM_STORE_UNKNOWN] +
                      answers[IDEM_STORE_WRONG_NODE] + answers[IDEM_STORE_DOWN];
    if (failed != api->failed_seen) {
        api->failed_us = idem_clock_mono_us(api->options.clock);
    } else if (answers[IDEM_STORE_DURABLE] != api->durable_seen) {
        api->failed_us = 0;
    }
    api->failed_seen = failed;
    api->durable_seen = answers[IDEM_STORE_DURABLE];
}

const char *idem_ready_why_not(const struct idem_api *api)
{
    if (api->draining) {
        return "stopping";
    }
    if (api->gauges.disk_low) {
        return "disk-low";
    }
    bool in_doubt =
        api->failed_us != 0 && idem_clock_mono_us(api->options.clock) - api->failed_us < DOUBT_US;
    if (api->gauges.store_silent || in_doubt || !idem_engine_takes_work(api->options.engine)) {
        return "store";
    }
    if (api->gauges.restored) {
        return "restored";
    }
    if (!api->caught_up || !api->credentials.complete) {
        return "starting";
    }
    return NULL;
}
