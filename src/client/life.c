/*
 * A client's beginning and end: journal, loop, HTTP client, slots; in that order, and undone in
 * reverse by a close that accepts a half-made client.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bug.h"
#include "client/client_internal.h"
#include "client/pipe_guard.h"
#include "client/target.h"

#define CALLS_DEFAULT      64
#define CALLS_MAX          1024
#define ANSWER_DEFAULT     1048576
#define TRY_MS_DEFAULT     30000
#define CONNECT_MS_DEFAULT 5000
#define BACKOFF_MS_DEFAULT 500
#define BACKOFF_MS_MAX     60000
#define PERCENT_DEFAULT    10
#define PERCENT_MAX        100
#define RESERVE_DEFAULT    10
#define MS_MAX             86400000 /* A day. */
#define ANSWER_MAX         16777216

static void number_default(uint32_t *number, uint32_t value)
{
    *number = *number == 0 ? value : *number;
}

static enum idem_client_err options_take(struct idem_client *client,
                                         const struct idem_client_options *options,
                                         struct idem_client_error *reterr)
{
    struct idem_client_options *own = &client->options;

    if (options->size != sizeof(*options)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "the options' size is not that of this library's");
    }
    if (options->journal == NULL || options->journal[0] == '\0') {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID, "a journal is needed: its path");
    }
    *own = *options;
    number_default(&own->calls_max, CALLS_DEFAULT);
    number_default(&own->answer_max, ANSWER_DEFAULT);
    number_default(&own->try_timeout_ms, TRY_MS_DEFAULT);
    number_default(&own->connect_timeout_ms, CONNECT_MS_DEFAULT);
    number_default(&own->backoff_first_ms, BACKOFF_MS_DEFAULT);
    number_default(&own->backoff_max_ms, BACKOFF_MS_MAX);
    number_default(&own->retry_percent, PERCENT_DEFAULT);
    number_default(&own->retry_reserve, RESERVE_DEFAULT);
    if (own->calls_max > CALLS_MAX || own->retry_percent > PERCENT_MAX ||
        own->retry_reserve > IDEM_CLIENT_RUNS_MAX || own->try_timeout_ms > MS_MAX ||
        own->connect_timeout_ms > MS_MAX || own->backoff_max_ms > MS_MAX ||
        own->backoff_first_ms > own->backoff_max_ms || own->answer_max > ANSWER_MAX) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "an option is above its limit: calls_max %d, answer_max %d, "
                                "retry_percent %d, retry_reserve %d, times a day, "
                                "backoff_first_ms backoff_max_ms",
                                CALLS_MAX, ANSWER_MAX, PERCENT_MAX, IDEM_CLIENT_RUNS_MAX);
    }
    if (own->proxy != NULL && idem_target_check(idem_str_from(own->proxy)) != IDEM_TARGET_OK) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "a proxy is http://host:port or https://host:port, without a "
                                "credential");
    }
    client->proxy_is_near = own->proxy == NULL || idem_target_is_private(idem_str_from(own->proxy));
    return IDEM_CLIENT_OK;
}

static enum idem_client_err loop_open(struct idem_client *client, struct idem_client_error *reterr)
{
    int rc = uv_loop_init(&client->loop);
    if (rc != 0) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "event loop: %s", uv_strerror(rc));
    }
    client->loop_open = true;
    (void)uv_timer_init(&client->loop, &client->due); /* Neither can fail. */
    (void)uv_timer_init(&client->loop, &client->wait);
    return IDEM_CLIENT_OK;
}

static enum idem_client_err http_open(struct idem_client *client, struct idem_client_error *reterr)
{
    const struct idem_client_options *own = &client->options;
    const struct idem_http_client_options options = {
        .loop = &client->loop,
        .clock = client->clock,
        .calls_max = own->calls_max,
        .connections_per_host_max = own->calls_max,
        .ca_file = own->ca_file,
        .proxy = own->proxy,
        .http2 = !own->http1_only,
    };
    struct idem_error error;
    if (idem_http_client_create(&options, &client->http, &error) != IDEM_OK) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "%s", error.text);
    }
    client->slots = calloc(own->calls_max, sizeof(*client->slots));
    if (client->slots == NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory");
    }
    for (size_t i = 0; i < own->calls_max; i++) {
        idem_list_push(&client->idle, &client->slots[i].node);
    }
    return IDEM_CLIENT_OK;
}

static enum idem_client_err client_fill(struct idem_client *client,
                                        const struct idem_client_options *options,
                                        struct idem_client_error *reterr)
{
    enum idem_client_err err = options_take(client, options, reterr);
    if (err == IDEM_CLIENT_OK) {
        err = idem_client_journal_open(options->journal, &client->journal, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = loop_open(client, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = http_open(client, reterr);
    }
    /* Those were the caller's, and are not needed any more. */
    client->options.journal = NULL;
    client->options.ca_file = NULL;
    client->options.proxy = NULL;
    return err;
}

enum idem_client_err idem_client_open_with(const struct idem_client_options *options,
                                           struct idem_clock *clock,
                                           struct idem_random *random,
                                           struct idem_client **ret_client,
                                           struct idem_client_error *reterr)
{
    struct idem_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory");
    }
    idem_clock_init_system(&client->clock_memory);
    idem_random_init_system(&client->random_memory);
    idem_moment_boot(client->boot);
    client->owner = getpid();
    client->clock = clock != NULL ? clock : &client->clock_memory;
    client->random = random != NULL ? random : &client->random_memory;
    enum idem_client_err err = client_fill(client, options, reterr);
    if (err != IDEM_CLIENT_OK) {
        idem_client_close(client);
        return err;
    }
    idem_budget_init(&client->budget, client->options.retry_percent, client->options.retry_reserve,
                     idem_clock_mono_us(client->clock));
    *ret_client = client;
    return IDEM_CLIENT_OK;
}

enum idem_client_err idem_client_open(const struct idem_client_options *options,
                                      struct idem_client **ret_client,
                                      struct idem_client_error *reterr)
{
    return idem_client_open_with(options, NULL, NULL, ret_client, reterr);
}

struct idem_moment idem_client_now(struct idem_client *client)
{
    if (client->clock == &client->clock_memory) {
        idem_clock_init_system(&client->clock_memory); /* A calendar that was put right since. */
    }
    return idem_moment_now(client->clock, client->boot);
}

bool idem_client_is_own(const struct idem_client *client)
{
    return getpid() == client->owner;
}

enum idem_client_err idem_client_foreign(struct idem_client_error *reterr)
{
    return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM,
                            "the client was opened before a fork, by another process; this one has "
                            "to open its own. Nothing was sent");
}

/* Ends every run, so that its verdict is in the journal, and takes every handle back. */
static void intents_end(struct idem_client *client)
{
    struct idem_list_node *node;

    for (node = client->intents.first; node != NULL; node = node->next) {
        idem_client_stop(IDEM_CONTAINER_OF(node, struct idem_client_intent, kin));
    }
    idem_client_perform(client, 0);
    while (idem_client_reap(client) != NULL) {
    }
    while ((node = client->intents.first) != NULL) {
        idem_client_release(IDEM_CONTAINER_OF(node, struct idem_client_intent, kin));
    }
}

void idem_client_close(struct idem_client *client)
{
    if (client == NULL || !idem_client_is_own(client)) {
        return; /* A child has nothing to end: all of it is the parent's. */
    }
    struct idem_pipe_guard guard;
    idem_pipe_guard_begin(&guard); /* Goodbyes may meet peers that have gone. */
    if (client->http != NULL) {
        intents_end(client);
        idem_http_client_destroy(client->http);
    }
    if (client->loop_open) {
        uv_close((uv_handle_t *)&client->due, NULL);
        uv_close((uv_handle_t *)&client->wait, NULL);
        (void)uv_run(&client->loop, UV_RUN_DEFAULT); /* Until all handles are closed. */
        int rc = uv_loop_close(&client->loop);
        IDEM_ASSERT(rc == 0);
    }
    idem_pipe_guard_end(&guard);
    for (size_t i = 0; client->slots != NULL && i < client->options.calls_max; i++) {
        free(client->slots[i].answer_room);
    }
    free(client->slots);
    idem_client_journal_close(client->journal);
    free(client);
}
