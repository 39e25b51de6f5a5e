/*
 * usual.h - the one scene of a test and its usual commands in few words.
 *
 * Evidence is about the newest send of the current attempt.
 */
#ifndef IDEM_TEST_UNIT_CORE_USUAL_H
#define IDEM_TEST_UNIT_CORE_USUAL_H

#include "unit/core/scene.h"

extern struct scene scene;

int scene_setup(void **state);
int scene_teardown(void **state);

/* A scene of its own for a test. */
#define SCENE_TEST(test) cmocka_unit_test_setup_teardown(test, scene_setup, scene_teardown)

struct idem_release pay(const char *key, const char *entry);
struct idem_release act(const char *key, enum idem_endpoint endpoint, const char *amount);
struct idem_release learn(const char *key,
                          enum idem_evidence_source source,
                          enum idem_outcome_kind outcome);
struct idem_release sent(const char *key, enum idem_outcome_kind outcome);   /* From the send. */
struct idem_release asked(const char *key, enum idem_outcome_kind outcome);  /* From a question. */
struct idem_release called(const char *key, enum idem_outcome_kind outcome); /* By a callback. */
void released(const char *key, const char *entry); /* Not executed, and nobody waits. */
struct idem_release resolve(const char *key, enum idem_verdict verdict);
struct idem_release reap(const char *key);
struct idem_release erase(const char *key);
/* A listing of "dedup" names an effect, of a payment or NULL. */
struct idem_release listed(const char *key, enum idem_effect_kind kind, const char *payment_key);
/* The same in the mode, which is over afterwards. */
void found(struct idem_command command);
void found_charge(const char *key);
struct idem_command of_payment(const char *key,
                               enum idem_effect_kind kind,
                               const char *payment_key,
                               int64_t amount_minor);
void expect_found_parked(const char *key, enum idem_case_kind kind); /* From its stub. */
void forgotten(const char *key); /* Its answer has expired, by time. */
void parked(const char *key);    /* At "dedup", by a lie. */

void webhook_added(uint8_t id); /* Of "shop"; wants everything. */

/* How often the last command wrote an event of `kind`, and what the last of them says. */
size_t events(enum idem_event_kind kind);
struct idem_str event_text(enum idem_event_kind kind);

void expect_problem(struct idem_release release, enum idem_problem problem);
const struct idem_answer *answer_of(const char *key);
bool body_has(const char *key, const char *text);

#endif /* IDEM_TEST_UNIT_CORE_USUAL_H */
