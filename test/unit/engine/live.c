/*
 * The table of intents in hand.
 *
 * Goal: an entry is found while it has a waiter or a flight, is gone after, and no drop loses a
 * neighbour that was probed past it.
 *
 * Method: random gets, finds and drops against a plain array. The scopes share very few first
 * bytes, so nearly all of them collide.
 */
#include "engine/live.h"

#include "lib/test.h"

#define SCOPES 64
#define STEPS  200000

static uint64_t noise = 20261129;

static uint32_t pick(uint32_t below)
{
    noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(noise >> 33) % below;
}

static struct idem_scope scope_at(uint32_t index)
{
    struct idem_scope scope = { .bytes = { 0 } };
    scope.bytes[0] = (uint8_t)(index % 4 * 42); /* The home: four places, two at the end. */
    scope.bytes[15] = (uint8_t)index;
    return scope;
}

static void let_go(struct idem_live_table *table, const struct idem_scope *scope)
{
    struct idem_live *entry = idem_live_find(table, scope);
    if (entry != NULL) {
        entry->flight = NULL;
    }
    idem_live_drop(table, scope);
}

static void random_step(struct idem_live_table *table, bool held[SCOPES])
{
    uint32_t index = pick(SCOPES);
    struct idem_scope scope = scope_at(index);
    struct idem_live *entry = idem_live_find(table, &scope);
    assert_int_equal(entry != NULL, held[index]);
    if (entry != NULL) {
        assert_ptr_equal(entry->flight, &held[index]); /* It is this one's. */
    }
    switch (pick(4)) {
    case 0:
        idem_live_get(table, &scope)->flight = &held[index];
        held[index] = true;
        return;
    case 1: /* Not while a flight acts on it. */
        idem_live_drop(table, &scope);
        return;
    default:
        let_go(table, &scope);
        held[index] = false;
        return;
    }
}

static void finds_what_an_array_finds(void **state)
{
    (void)state;
    struct idem_live_table *table = NULL;
    assert_int_equal(idem_live_create(SCOPES, &table), IDEM_OK);
    bool held[SCOPES] = { false };
    for (int step = 0; step < STEPS; step++) {
        random_step(table, held);
    }
    for (uint32_t i = 0; i < SCOPES; i++) {
        struct idem_scope scope = scope_at(i);
        let_go(table, &scope);
    }
    idem_live_destroy(table);
}

static void an_entry_stays_while_somebody_waits(void **state)
{
    (void)state;
    struct idem_live_table *table = NULL;
    assert_int_equal(idem_live_create(1, &table), IDEM_OK);
    struct idem_scope scope = scope_at(1);
    struct idem_list_node waiter = { .linked = false };
    idem_list_push(&idem_live_get(table, &scope)->waiters, &waiter);
    idem_live_drop(table, &scope);
    struct idem_live *entry = idem_live_find(table, &scope);
    assert_non_null(entry);
    assert_ptr_equal(idem_list_pop(&entry->waiters), &waiter);
    idem_live_drop(table, &scope);
    assert_null(idem_live_find(table, &scope));
    idem_live_destroy(table);
    idem_live_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_an_array_finds),
        cmocka_unit_test(an_entry_stays_while_somebody_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
