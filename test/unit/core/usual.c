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
