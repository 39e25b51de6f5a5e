/*
 * What slot_scene.h says.
 */
#include "unit/engine/slot_scene.h"

struct idem_provider_rules entries[2];
struct idem_request requests[MANY];
char keys[MANY][16];

struct idem_provider_limits *const bad_limits = &entries[0].limits;

int begin(void **state)
{
    (void)state;
    harness_begin();
    for (size_t i = 0; i < 2; i++) {
        entries[i] = harness.entry;
        entries[i].entry = i == 0 ? IDEM_STR("bad") : IDEM_STR("good");
    }
    harness.rules.providers = entries;
    harness.rules.provider_count = 2;
    harness.options.sends_max = 4;
    harness.options.recoveries_max = 4;
    return 0;
}

void expect_all_tickets_back(void)
{
    for (size_t i = 0; i < 2; i++) {
        struct idem_budget_stats stats = idem_engine_budget_stats(harness.engine, i);
        assert_int_equal(stats.sends, 0);
        assert_int_equal(stats.recoveries, 0);
        assert_int_equal(stats.backlog, 0);
    }
}

int end(void **state)
{
    (void)state;
    expect_all_tickets_back();
    harness_end();
    return 0;
}

struct idem_budget_stats bad_stats(void)
{
    return idem_engine_budget_stats(harness.engine, 0);
}

struct idem_request *pay(struct idem_request *request, const char *key, const char *entry)
{
    harness_pay(request, key);
    request->item.command.accept.entry = idem_str_from(entry);
    return request;
}

void pay_bad(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "bad-%d", (int)i);
        harness_submit(pay(&requests[i], keys[i], "bad"));
    }
}

void expect_replies(size_t from, size_t to, const char *expected)
{
    for (size_t i = from; i < to; i++) {
        EXPECT_REPLY(requests[i], expected);
    }
}

enum idem_intent_state state_of(const struct idem_request *request)
{
    const struct idem_read *read = harness_operation(request);
    return read->found ? read->intent.state : IDEM_INTENT_NONE;
}

void run_out(void)
{
    harness.hangs = (struct idem_str){ .len = 0 };
    harness.hold = false;
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    harness.retry_after_us = 0;
    for (int i = 0; i < 200; i++) {
        harness_answer(IDEM_OUTCOME_SUCCESS);
        harness_pass(30 * SECOND);
        (void)harness_recover();
    }
    assert_int_equal(bad_stats().waiting, 0);
}

void breaker_set(void)
{
    bad_limits->breaker = (struct idem_breaker_rules){
        .unknown_min = 3,
        .unknown_percent = 50,
        .window_us = 60 * SECOND,
        .open_us = 30 * SECOND,
        .probes = 1,
    };
}
