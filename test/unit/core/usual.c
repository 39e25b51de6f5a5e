/*
 * Each command is made, run and forgotten; what it left is in the scene.
 */
#include "unit/core/usual.h"

struct scene scene;

int scene_setup(void **state)
{
    (void)state;
    scene_begin(&scene);
    return 0;
}

int scene_teardown(void **state)
{
    (void)state;
    scene_end(&scene);
    return 0;
}

struct idem_release pay(const char *key, const char *entry)
{
    struct idem_command command = scene_pay(&scene, key, entry);
    return scene_run(&scene, &command);
}

struct idem_release act(const char *key, enum idem_endpoint endpoint, const char *amount)
{
    struct idem_command command = scene_act(&scene, key, endpoint, amount);
    return scene_run(&scene, &command);
}

struct idem_release learn(const char *key,
                          enum idem_evidence_source source,
                          enum idem_outcome_kind outcome)
{
    return scene_learn(&scene, key, source, outcome);
}

struct idem_release sent(const char *key, enum idem_outcome_kind outcome)
{
    return learn(key, IDEM_SOURCE_SEND, outcome);
}

struct idem_release asked(const char *key, enum idem_outcome_kind outcome)
{
    return learn(key, IDEM_SOURCE_QUERY, outcome);
}

struct idem_release called(const char *key, enum idem_outcome_kind outcome)
{
    return learn(key, IDEM_SOURCE_CALLBACK, outcome);
}

void webhook_added(uint8_t id)
{
    struct idem_command command = scene_webhook(&scene, IDEM_WEBHOOK_ADD, id);
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
}

void expect_problem(struct idem_release release, enum idem_problem problem)
{
    EXPECT_RELEASE(release, "reply");
    assert_int_equal(release.problem, problem);
}

const struct idem_answer *answer_of(const char *key)
{
    return &scene_intent(&scene, key)->row.answer;
}

bool body_has(const char *key, const char *text)
{
    const struct idem_answer *answer = answer_of(key);
    size_t len = strlen(text);
    for (size_t i = 0; i + len <= answer->body.len; i++) {
        if (memcmp(answer->body.data + i, text, len) == 0) {
            return true;
        }
    }
    return false;
}

/* Not executed and its caller gone: a released payment. */
void released(const char *key, const char *entry)
{
    scene.wait_us = 0;
    EXPECT_RELEASE(pay(key, entry), "send");
    expect_problem(sent(key, IDEM_OUTCOME_NOT_EXECUTED), IDEM_PROBLEM_NOT_EXECUTED);
    EXPECT_STATE(&scene, key, "released");
    scene.wait_us = 10 * SECOND;
}

struct idem_release resolve(const char *key, enum idem_verdict verdict)
{
    struct idem_command command = scene_resolve(&scene, key, verdict);
    return scene_run(&scene, &command);
}

struct idem_release reap(const char *key)
{
    struct idem_command command = scene_reap(&scene, key);
    return scene_run(&scene, &command);
}

struct idem_release erase(const char *key)
{
    struct idem_command command = scene_erase(&scene, key);
    return scene_run(&scene, &command);
}

struct idem_release listed(const char *key, enum idem_effect_kind kind, const char *payment_key)
{
    struct idem_command command = scene_listed(&scene, key, kind, payment_key);
    return scene_run(&scene, &command);
}

void forgotten(const char *key)
{
    int64_t reap_us = scene_intent(&scene, key)->row.reap_us;
    assert_true(reap_us > 0);
    if (scene.now_us < reap_us) {
        scene.now_us = reap_us;
    }
    expect_problem(reap(key), IDEM_PROBLEM_NONE);
    assert_true(idem_intent_is_tombstone(&scene_intent(&scene, key)->row));
}

void parked(const char *key)
{
    (void)pay(key, "dedup");
    (void)sent(key, IDEM_OUTCOME_UNKNOWN);
    struct idem_command lie = scene_evidence(&scene, key, IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.amount_minor = 1;
    (void)scene_run(&scene, &lie);
    EXPECT_STATE(&scene, key, "parked");
}

size_t events(enum idem_event_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < scene.decision.event_count; i++) {
        count += scene.decision.events[i].kind == kind ? 1 : 0;
    }
    return count;
}

struct idem_str event_text(enum idem_event_kind kind)
{
    struct idem_str text = { .data = NULL, .len = 0 };
    for (size_t i = 0; i < scene.decision.event_count; i++) {
        if (scene.decision.events[i].kind == kind) {
            text = scene.decision.events[i].detail;
        }
    }
    return text;
}

/* As `command` says, in the mode; afterwards the mode is over. */
void found(struct idem_command command)
{
    command.restored = true;
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
}

void found_charge(const char *key)
{
    found(scene_listed(&scene, key, IDEM_EFFECT_KIND_CHARGE, NULL));
}

struct idem_command of_payment(const char *key,
                               enum idem_effect_kind kind,
                               const char *payment_key,
                               int64_t amount_minor)
{
    struct idem_command command = scene_listed(&scene, key, kind, payment_key);
    command.evidence.amount_minor = amount_minor;
    return command;
}

void expect_found_parked(const char *key, enum idem_case_kind kind)
{
    EXPECT_STATE(&scene, key, "parked");
    assert_int_equal(scene_intent(&scene, key)->last_case, kind);
    assert_int_equal(scene_intent(&scene, key)->open_cases, 1);
    assert_int_equal(scene_intent(&scene, key)->row.send_count, 0);
    assert_int_equal(scene_intent(&scene, key)->row.problem,
                     IDEM_PROBLEM_NOT_EXECUTED); /* It holds no reservation. */
    assert_non_null(scene_stub(&scene, key));    /* Until it is settled. */
}
