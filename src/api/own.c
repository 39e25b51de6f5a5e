/*
 * What the edge asks the store for by itself, one read of each kind at a time:
 *
 *   the store's credentials   at the start, page by page until there are no more; again after a
 *                             second where the store could not answer; and all of them again when
 *                             one was revoked while not all fitted
 *   the summary               at the start, and every five seconds while /metrics is asked for, so
 *                             that a scrape never waits and never costs more than that
 *
 * A revocation that becomes durable while a page is on its way is not in it, and would be undone by
 * it. Such a page is thrown away and asked for again.
 */
#include "api/api_internal.h"

#include "base/bug.h"

#define AGAIN_US        IDEM_US_PER_SECOND
#define SUMMARY_US      (5 * IDEM_US_PER_SECOND)
#define SCRAPED_LONG_US (120 * IDEM_US_PER_SECOND) /* After this nobody reads the metrics. */

static void start(struct idem_api *api, struct idem_api_own_read *own, enum idem_read_kind kind)
{
    own->running = true;
    own->read->kind = kind;
    own->read->done = &api->own_done_reads;
    own->read->now_us = idem_clock_wall_us(api->options.clock);
    idem_engine_read(api->options.engine, own->read);
}

static void credentials_done(struct idem_api *api, int64_t now_us)
{
    struct idem_api_own_read *own = &api->own_credentials;
    const struct idem_read *read = own->read;
    if (read->answer != IDEM_STORE_DURABLE) {
        own->next_us = now_us + AGAIN_US;
        return;
    }
    if (api->removals_seen != api->credentials.removals) {
        return;
    }
    for (size_t i = 0; i < read->credential_count; i++) {
        idem_credentials_put(&api->credentials, &read->credentials[i]);
        own->read->after_row = read->credentials[i].row;
    }
    own->wanted = read->more;
    if (!read->more) {
        idem_credentials_read_end(&api->credentials);
    }
}

/* The first page if all are to be read again, or the next. */
static void credentials_start(struct idem_api *api)
{
    struct idem_api_own_read *own = &api->own_credentials;
    if (api->credentials.again) {
        idem_credentials_read_begin(&api->credentials);
        own->read->after_row = 0;
        own->wanted = true;
    }
    api->removals_seen = api->credentials.removals;
    start(api, own, IDEM_READ_CREDENTIALS);
}

static bool credentials_wanted(const struct idem_api *api)
{
    return (api->own_credentials.wanted || api->credentials.again) && !api->own_credentials.running;
}

static void summary_done(struct idem_api *api, int64_t now_us)
{
    struct idem_api_own_read *own = &api->own_summary;
    own->next_us = now_us + SUMMARY_US;
    if (own->read->answer == IDEM_STORE_DURABLE) {
        api->summary = own->read->summary;
        api->summary_known = true;
    }
}

static bool summary_wanted(const struct idem_api *api, int64_t now_us)
{
    return !api->summary_known ||
           (api->scraped_us != 0 && now_us - api->scraped_us < SCRAPED_LONG_US);
}

void idem_own_step(struct idem_api *api)
{
    int64_t now_us = idem_clock_mono_us(api->options.clock);
    struct idem_list_node *node;
    while ((node = idem_list_pop(&api->own_done_reads)) != NULL) {
        const struct idem_read *read = IDEM_CONTAINER_OF(node, struct idem_read, node);
        if (read == api->own_credentials.read) {
            api->own_credentials.running = false;
            credentials_done(api, now_us);
        } else {
            api->own_summary.running = false;
            summary_done(api, now_us);
        }
    }
    if (api->draining) {
        return;
    }
    if (credentials_wanted(api) && now_us >= api->own_credentials.next_us) {
        credentials_start(api);
    }
    if (summary_wanted(api, now_us) && !api->own_summary.running &&
        now_us >= api->own_summary.next_us) {
        start(api, &api->own_summary, IDEM_READ_SUMMARY);
    }
}

static int64_t earlier(int64_t left_us, int64_t right_us)
{
    return left_us < right_us ? left_us : right_us;
}

int64_t idem_own_wake_us(const struct idem_api *api)
{
    int64_t wake_us = INT64_MAX;
    if (api->draining) {
        return wake_us;
    }
    if (credentials_wanted(api)) {
        wake_us = earlier(wake_us, api->own_credentials.next_us);
    }
    if (!api->own_summary.running && summary_wanted(api, idem_clock_mono_us(api->options.clock))) {
        wake_us = earlier(wake_us, api->own_summary.next_us);
    }
    return wake_us;
}
