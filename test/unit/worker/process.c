/*
 * Waiting is by the store's own wake. The clock moves only while no thread of the store reads it.
 */
#include "unit/worker/process.h"

struct process process;

void process_init(enum fixture_kind kind)
{
    harness_begin();
    process = (struct process){ .reaper = NULL };
    fixture_init(&process.fixture, kind);
    process.fixture.options.rules = &harness.rules;
    process.fixture.options.clock = &harness.clock;
}

void process_start(void)
{
    fixture_open(&process.fixture);
    harness_start_on(process.fixture.store);
}

void process_start_reaper(void)
{
    const struct idem_reaper_options options = {
        .engine = harness.engine,
        .clock = &harness.clock,
        .horizon_us = harness.store->horizon_us,
    };
    assert_int_equal(idem_reaper_create(&options, &process.reaper), IDEM_OK);
}

void process_start_restore(void)
{
    const struct idem_restore_options options = {
        .engine = harness.engine,
        .port = &harness.port,
        .store = harness.store,
        .rules = &harness.rules,
        .clock = &harness.clock,
    };
    assert_int_equal(idem_restore_create(&options, &process.restore), IDEM_OK);
}

void process_round(void)
{
    idem_engine_step(harness.engine);
    if (process.reaper != NULL) {
        idem_reaper_step(process.reaper);
    }
    if (process.restore != NULL) {
        idem_restore_step(process.restore);
    }
    idem_engine_step(harness.engine);
}

static int64_t wake_us(void)
{
    int64_t at_us = INT64_MAX;
    if (process.reaper != NULL) {
        at_us = idem_reaper_wake_us(process.reaper);
    }
    if (process.restore != NULL && idem_restore_wake_us(process.restore) < at_us) {
        at_us = idem_restore_wake_us(process.restore);
    }
    return at_us;
}

int64_t process_wake_in(void)
{
    return wake_us() - harness.mono_us;
}

static bool store_is_busy(void)
{
    const struct idem_store *store = harness.store;
    return !harness.batches_held && store->batches_in_flight + store->reads_in_flight > 0;
}

void process_go_on(void)
{
    int quiet = 0;
    while (quiet < 3) { /* What came back needs a step, which needs a commit, which needs a step. */
        process_round();
        quiet += 1;
        if (store_is_busy()) {
            fixture_wait(&process.fixture);
            quiet = 0;
        } else if (wake_us() <= harness.mono_us) {
            quiet = 0; /* Whoever asks to be woken now has something to do. */
        }
    }
}

void process_pass(int64_t us)
{
    harness.mono_us += us;
    process_go_on();
}

void process_end(void)
{
    if (process.reaper != NULL) {
        idem_reaper_stop(process.reaper);
    }
    if (process.restore != NULL) {
        idem_restore_stop(process.restore);
    }
    process_go_on();
    assert_true(idem_engine_idle(harness.engine));
    idem_reaper_destroy(process.reaper);
    idem_restore_destroy(process.restore);
    process.reaper = NULL;
    process.restore = NULL;
    idem_engine_destroy(harness.engine);
    harness.engine = NULL;
    fixture_close(&process.fixture);
}

void process_deinit(void)
{
    if (harness.engine != NULL) {
        process_end();
    }
    fixture_deinit(&process.fixture);
}

struct idem_request *process_abandon(struct idem_request *request, const char *key)
{
    harness_pay(request, key);
    request->item.command.kind = IDEM_COMMAND_ABANDON;
    request->item.command.abandon = (struct idem_abandon){
        .principal = IDEM_STR("shop"),
        .key = idem_str_from(key),
        .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
    };
    return request;
}
