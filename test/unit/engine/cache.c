/*
 * Final answers in memory.
 *
 * Goal: what is served is byte for byte what was put, only to the same request and only until it
 * expires; the least recently used of a set makes room; what the cache cannot compare is asked of
 * the store.
 *
 * Method: outcomes by hand; all scopes of a test fall into one set of four.
 */
#include "engine/cache.h"

#include "lib/test.h"

#define EXPIRES_US 1000

static struct idem_outcome kept;
static struct idem_outcome got;

static struct idem_scope scope_at(uint8_t index)
{
    struct idem_scope scope = { .bytes = { 0 } };
    scope.bytes[15] = index;
    return scope;
}

static struct idem_outcome *outcome_of(uint8_t index, struct idem_str body)
{
    kept = (struct idem_outcome){
        .intent = {
            .row = 1,
            .scope = scope_at(index),
            .state = IDEM_INTENT_SUCCEEDED,
            .fingerprint = { .rule_id = 1, .secret_id = 1, .digest = { .bytes = { index } } },
            .expires_us = EXPIRES_US,
            .answer = { .status = 201, .headers = IDEM_STR("A: b\n"), .body = body },
        },
    };
    return &kept;
}

static struct idem_command command_of(uint8_t index)
{
    struct idem_command command = {
        .kind = IDEM_COMMAND_ACCEPT,
        .scope = scope_at(index),
    };
    command.accept.fingerprint_count = 1;
    command.accept.fingerprints[0] = kept.intent.fingerprint;
    command.accept.fingerprints[0].digest.bytes[0] = index;
    return command;
}

static enum idem_cache_verdict get(struct idem_cache *cache, uint8_t index)
{
    struct idem_command command = command_of(index);
    return idem_cache_get(cache, &command, 0, &got);
}

static struct idem_cache *cache_of(size_t slots_max)
{
    struct idem_cache *cache = NULL;
    assert_int_equal(idem_cache_create(slots_max, &cache), IDEM_OK);
    return cache;
}

static void gives_back_the_bytes_that_were_put(void **state)
{
    (void)state;
    struct idem_cache *cache = cache_of(4);
    assert_int_equal(get(cache, 1), IDEM_CACHE_MISS);
    char body[] = "the body";
    idem_cache_put(cache, outcome_of(1, idem_str_from(body)));
    body[0] = 'X'; /* The cache has its own copy. */
    assert_int_equal(get(cache, 1), IDEM_CACHE_REPLAY);
    EXPECT_TEXT(got.intent.answer.body, "the body");
    EXPECT_TEXT(got.intent.answer.headers, "A: b\n");
    assert_true(got.release.replayed);
    idem_cache_put(cache, outcome_of(1, IDEM_STR("another"))); /* A final answer cannot change. */
    assert_int_equal(get(cache, 1), IDEM_CACHE_REPLAY);
    EXPECT_TEXT(got.intent.answer.body, "the body");
    idem_cache_destroy(cache);
}

static void the_least_recently_used_makes_room(void **state)
{
    (void)state;
    struct idem_cache *cache = cache_of(4);
    for (uint8_t i = 1; i <= 4; i++) {
        idem_cache_put(cache, outcome_of(i, IDEM_STR("x")));
    }
    assert_int_equal(get(cache, 1), IDEM_CACHE_REPLAY);
    idem_cache_put(cache, outcome_of(5, IDEM_STR("x")));
    assert_int_equal(get(cache, 1), IDEM_CACHE_REPLAY);
    assert_int_equal(get(cache, 2), IDEM_CACHE_MISS);
    for (uint8_t i = 3; i <= 5; i++) {
        assert_int_equal(get(cache, i), IDEM_CACHE_REPLAY);
    }
    idem_cache_destroy(cache);
}

static void another_request_is_refused_and_an_unknown_rule_is_asked_of_the_store(void **state)
{
    (void)state;
    struct idem_cache *cache = cache_of(4);
    idem_cache_put(cache, outcome_of(1, IDEM_STR("x")));
    struct idem_command command = command_of(1);
    command.accept.fingerprints[0].digest.bytes[31] = 1;
    assert_int_equal(idem_cache_get(cache, &command, 0, &got), IDEM_CACHE_REUSED);
    command = command_of(1);
    command.accept.fingerprints[0].secret_id = 2;
    assert_int_equal(idem_cache_get(cache, &command, 0, &got), IDEM_CACHE_MISS);
    command.accept.fingerprints[0].secret_id = 1;
    command.accept.fingerprints[0].rule_id = 2;
    assert_int_equal(idem_cache_get(cache, &command, 0, &got), IDEM_CACHE_MISS);
    command.accept.fingerprints[1] = command_of(1).accept.fingerprints[0];
    command.accept.fingerprint_count = 2;
    assert_int_equal(idem_cache_get(cache, &command, 0, &got), IDEM_CACHE_REPLAY);
    idem_cache_destroy(cache);
}

static void an_abandoned_key_refuses_every_fingerprint(void **state)
{
    (void)state;
    struct idem_cache *cache = cache_of(4);
    struct idem_outcome *outcome = outcome_of(1, IDEM_STR("x"));
    outcome->intent.state = IDEM_INTENT_FAILED;
    outcome->intent.problem = IDEM_PROBLEM_ABANDONED;
    idem_cache_put(cache, outcome);
    struct idem_command command = command_of(1);
    command.accept.fingerprints[0].digest.bytes[31] = 1;
    assert_int_equal(idem_cache_get(cache, &command, 0, &got), IDEM_CACHE_REPLAY);
    idem_cache_destroy(cache);
}

static void nothing_is_served_from_the_moment_it_expires(void **state)
{
    (void)state;
    struct idem_cache *cache = cache_of(4);
    idem_cache_put(cache, outcome_of(1, IDEM_STR("x")));
    struct idem_command command = command_of(1);
    assert_int_equal(idem_cache_get(cache, &command, EXPIRES_US - 1, &got), IDEM_CACHE_REPLAY);
    assert_int_equal(idem_cache_get(cache, &command, EXPIRES_US, &got), IDEM_CACHE_MISS);
    idem_cache_destroy(cache);
}

static void what_is_not_final_or_too_large_is_not_kept(void **state)
{
    (void)state;
    static char large[4096];
    struct idem_cache *cache = cache_of(4);
    struct idem_outcome *outcome = outcome_of(1, IDEM_STR("x"));
    outcome->intent.state = IDEM_INTENT_RELEASED;
    idem_cache_put(cache, outcome);
    assert_int_equal(get(cache, 1), IDEM_CACHE_MISS);
    idem_cache_put(cache, outcome_of(2, (struct idem_str){ .data = large, .len = sizeof(large) }));
    assert_int_equal(get(cache, 2), IDEM_CACHE_MISS);
    idem_cache_destroy(cache);
}

static void what_was_forgotten_is_dropped_and_not_kept_again(void **state)
{
    (void)state;
    struct idem_cache *cache = cache_of(4);
    idem_cache_put(cache, outcome_of(1, IDEM_STR("one")));
    idem_cache_put(cache, outcome_of(2, IDEM_STR("two")));
    struct idem_scope scope = scope_at(1);
    idem_cache_drop(cache, &scope);
    idem_cache_drop(cache, &scope); /* Not there: nothing. */
    assert_int_equal(get(cache, 1), IDEM_CACHE_MISS);
    assert_int_equal(get(cache, 2), IDEM_CACHE_REPLAY);
    struct idem_outcome *tombstone = outcome_of(1, IDEM_STR(""));
    tombstone->intent.answer = (struct idem_answer){ .status = 0 };
    idem_cache_put(cache, tombstone);
    assert_int_equal(get(cache, 1), IDEM_CACHE_MISS);
    idem_cache_destroy(cache);
}

static void a_cache_of_nothing_never_has_anything(void **state)
{
    (void)state;
    struct idem_cache *cache = cache_of(0);
    idem_cache_put(cache, outcome_of(1, IDEM_STR("x")));
    assert_int_equal(get(cache, 1), IDEM_CACHE_MISS);
    idem_cache_destroy(cache);
    idem_cache_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_the_bytes_that_were_put),
        cmocka_unit_test(the_least_recently_used_makes_room),
        cmocka_unit_test(another_request_is_refused_and_an_unknown_rule_is_asked_of_the_store),
        cmocka_unit_test(an_abandoned_key_refuses_every_fingerprint),
        cmocka_unit_test(nothing_is_served_from_the_moment_it_expires),
        cmocka_unit_test(what_is_not_final_or_too_large_is_not_kept),
        cmocka_unit_test(what_was_forgotten_is_dropped_and_not_kept_again),
        cmocka_unit_test(a_cache_of_nothing_never_has_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
