/*
 * slot_scene.h - an engine with two provider entries, "bad" and "good", and payments at them.
 *
 * The limits of "bad" are each test's own, set before harness_start().
 */
#ifndef IDEM_TEST_UNIT_ENGINE_SLOT_SCENE_H
#define IDEM_TEST_UNIT_ENGINE_SLOT_SCENE_H

#include "unit/engine/harness.h"

#define MANY 128

extern struct idem_provider_rules entries[2]; /* "bad" comes first. */
extern struct idem_request requests[MANY];
extern char keys[MANY][16];
extern struct idem_provider_limits *const bad_limits;

/* For cmocka; after every test all tickets are back. */
int begin(void **state);
int end(void **state);
void expect_all_tickets_back(void);

/* "bad" has a breaker: three silences open it for half a minute, and one probe is let through. */
void breaker_set(void);

struct idem_budget_stats bad_stats(void);
struct idem_request *pay(struct idem_request *request, const char *key, const char *entry);

/* Payments at "bad": requests[from] up to but without requests[to]. */
void pay_bad(size_t from, size_t to);
void expect_replies(size_t from, size_t to, const char *expected);
enum idem_intent_state state_of(const struct idem_request *request);

/* Lets everything that waits or is due come to its end. */
void run_out(void);

#define SLOT_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

#endif /* IDEM_TEST_UNIT_ENGINE_SLOT_SCENE_H */
