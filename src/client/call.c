/*
 * A client and a loop for the time of one call. The loop ends when nothing is open any more, which
 * the client's timeout sees to.
 */
#include "client/call.h"

#include <uv.h>

#include "base/bug.h"
#include "base/clock.h"

/* Runs until the call is over. */
static void loop_run(uv_loop_t *loop, struct idem_http_client *client)
{
    struct idem_list done = { .count = 0 };
    while (done.count == 0) {
        (void)uv_run(loop, UV_RUN_ONCE); /* The list says when it is over. */
        idem_http_client_reap(client, &done);
    }
    (void)idem_list_pop(&done); /* The call is its owner's again. */
}

static enum idem_err call_run(uv_loop_t *loop,
                              struct idem_http_call *call,
                              struct idem_error *reterr)
{
    struct idem_clock clock;
    idem_clock_init_system(&clock);
    const struct idem_http_client_options options = {
        .loop = loop,
        .clock = &clock,
        .calls_max = 1,
        .connections_per_host_max = 1,
    };
    struct idem_http_client *client = NULL;
    enum idem_err err = idem_http_client_create(&options, &client, reterr);
    if (err != IDEM_OK) {
        return err;
    }
    call->not_after_us = idem_clock_mono_us(&clock) + call->timeout_us;
    err = idem_http_client_submit(client, call);
    IDEM_ASSERT(err == IDEM_OK); /* There is room for one. */
    loop_run(loop, client);
    idem_http_client_destroy(client);
    (void)uv_run(loop, UV_RUN_DEFAULT); /* Until its handles are closed. */
    return IDEM_OK;
}

enum idem_err idem_call_wait(struct idem_http_call *call, struct idem_error *reterr)
{
    uv_loop_t loop;
    int rc = uv_loop_init(&loop);
    if (rc != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "event loop: %s", uv_strerror(rc));
    }
    enum idem_err err = call_run(&loop, call, reterr);
    rc = uv_loop_close(&loop);
    IDEM_ASSERT(rc == 0);
    return err;
}
