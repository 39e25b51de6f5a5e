/*
 * The life of an intent, walked as a grid for each kind of provider.
 *
 * Goal: each state, each thing that can be learned: what stands after, and what comes next, is the
 * policy in these grids. They are written from docs/design.md, section 5.
 *
 * Method: an intent is brought into the state as it would get there, ten minutes pass so that
 * nothing is on the wire any more, and the evidence comes from the current attempt.
 */
#include "unit/core/usual.h"

struct learned {
    const char *name;
    enum idem_evidence_source source;
    enum idem_outcome_kind outcome;
};

static const struct learned columns[] = {
    { "success", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS },
    { "refused", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL },
    { "closed", IDEM_SOURCE_QUERY, IDEM_OUTCOME_CLOSED_UNPAID },
    { "closed-close", IDEM_SOURCE_CLOSE, IDEM_OUTCOME_CLOSED_UNPAID },
    { "not-found", IDEM_SOURCE_QUERY, IDEM_OUTCOME_NOT_FOUND },
    { "processing", IDEM_SOURCE_QUERY, IDEM_OUTCOME_PROCESSING },
    { "silence", IDEM_SOURCE_QUERY, IDEM_OUTCOME_UNKNOWN },
    { "not-executed", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED },
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Brings "k" into the state, as it would get there at this provider. */
static void arrive(enum idem_intent_state at, const char *entry)
{
    scene.slot = at != IDEM_INTENT_CLAIMED;
    scene.wait_us = at == IDEM_INTENT_RELEASED ? 0 : 10 * SECOND;
    if (at != IDEM_INTENT_NONE) {
        (void)pay("k", entry);
    }
    if (at == IDEM_INTENT_UNKNOWN || at == IDEM_INTENT_PARKED) {
        (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    }
    if (at == IDEM_INTENT_PARKED && scene_state(&scene, "k") != at) {
        struct idem_command lie =
            scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
        lie.evidence.amount_minor = 1;
        (void)scene_run(&scene, &lie);
    }
    if (at == IDEM_INTENT_SUCCEEDED) {
        (void)sent("k", IDEM_OUTCOME_SUCCESS);
    }
    if (at == IDEM_INTENT_FAILED) {
        (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    }
    if (at == IDEM_INTENT_RELEASED) {
        (void)sent("k", IDEM_OUTCOME_NOT_EXECUTED);
    }
    scene.slot = true;
    scene.wait_us = 0; /* Whoever waited has gone. */
    struct scene_intent *intent = scene_intent(&scene, "k");
    if (intent != NULL) {
        intent->row.patience_us = scene.now_us;
    }
}

/*
 * The state after, and what comes next: nothing more is said after a final answer or a release;
 * `?` a question, `>` a send, `x` a close, `-` only others can help, `!` a case was opened, `.` the
 * row was not touched.
 */
static const char *cell(enum idem_intent_state at, const char *entry, const struct learned *learned)
{
    static char text[32];
    static const char marks[IDEM_STEP_COUNT] = {
        [IDEM_STEP_NONE] = '-',
        [IDEM_STEP_SEND] = '>',
        [IDEM_STEP_ASK] = '?',
        [IDEM_STEP_CLOSE] = 'x',
    };
    scene_end(&scene);
    scene_begin(&scene);
    arrive(at, entry);
    struct scene_intent before = *scene_intent(&scene, "k");
    scene_pass(&scene, 600 * SECOND); /* Nothing is on the wire any more. */
    struct idem_release release = learn("k", learned->source, learned->outcome);
    const struct scene_intent *after = scene_intent(&scene, "k");
    char mark[2] = { 0 };
    if (after->case_count > before.case_count) {
        mark[0] = '!';
    } else if (release.kind == IDEM_RELEASE_NONE) {
        mark[0] = marks[after->row.step];
    }
    if (after->row.version == before.row.version) {
        return ".";
    }
    (void)snprintf(text, sizeof(text), "%s%s", idem_intent_state_name(after->row.state), mark);
    return text;
}

static void expect_life(const char *entry, const char *policy)
{
    static char memory[4096];
    struct idem_buf grid;
    idem_buf_init(&grid, memory, sizeof(memory));
    idem_buf_printf(&grid, "%-13s", "");
    for (int at = IDEM_INTENT_CLAIMED; at < IDEM_INTENT_COUNT; at++) {
        const char *name = idem_intent_state_name((enum idem_intent_state)at);
        idem_buf_printf(&grid, "%-*s", at + 1 == IDEM_INTENT_COUNT ? 0 : 11, name);
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        idem_buf_printf(&grid, "\n%-13s", columns[i].name);
        for (int at = IDEM_INTENT_CLAIMED; at < IDEM_INTENT_COUNT; at++) {
            const char *text = cell((enum idem_intent_state)at, entry, &columns[i]);
            idem_buf_printf(&grid, "%-*s", at + 1 == IDEM_INTENT_COUNT ? 0 : 11, text);
        }
    }
    idem_buf_add_char(&grid, '\n');
    assert_false(grid.full);
    EXPECT_TEXT(idem_buf_str(&grid), policy);
}

/* The grids are documents. */
/* clang-format off */
static void life_at_a_provider_that_deduplicates(void **state)
{
    (void)state;
    expect_life(
"dedup",
"             claimed    dispatched unknown    parked     succeeded  failed     released\n"
"success      succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
"refused      failed     failed     failed     failed     succeeded! .          .\n"
"closed       claimed>   unknown>   unknown>   parked?    succeeded! .          .\n"
"closed-close claimed>   unknown?   unknown?   parked?    .          .          .\n"
"not-found    claimed>   unknown>   unknown>   parked?    .          .          .\n"
"processing   claimed>   unknown?   unknown?   parked?    .          .          .\n"
"silence      claimed>   unknown>   unknown>   parked?    .          .          .\n"
"not-executed .          released   released   parked?    .          .          .\n");
}

static void life_at_a_provider_that_closes(void **state)
{
    (void)state;
    expect_life(
"closing",
"             claimed    dispatched unknown    parked     succeeded  failed     released\n"
"success      succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
"refused      failed     failed     failed     failed     succeeded! .          .\n"
"closed       failed     failed     failed     failed     succeeded! .          .\n"
"closed-close claimed>   unknown?   unknown?   parked?    .          .          .\n"
"not-found    claimed>   unknownx   unknownx   parked?    .          .          .\n"
"processing   claimed>   unknown?   unknown?   parked?    .          .          .\n"
"silence      claimed>   unknown?   unknown?   parked?    .          .          .\n"
"not-executed .          released   released   parked?    .          .          .\n");
}

static void life_at_a_provider_that_can_only_be_asked(void **state)
{
    (void)state;
    expect_life(
"plain",
"             claimed    dispatched unknown    parked     succeeded  failed     released\n"
"success      succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
"refused      failed     failed     failed     failed     succeeded! .          .\n"
"closed       claimed>   unknown?   unknown?   parked?    succeeded! .          .\n"
"closed-close claimed>   unknown?   unknown?   parked?    .          .          .\n"
"not-found    claimed>   parked!    parked!    parked?    .          .          .\n"
"processing   claimed>   unknown?   unknown?   parked?    .          .          .\n"
"silence      claimed>   unknown?   unknown?   parked?    .          .          .\n"
"not-executed .          released   released   parked?    .          .          .\n");
}

/* Its silent sends are parked at once, so what stands under "unknown" began as parked. */
static void life_at_a_provider_that_is_blind(void **state)
{
    (void)state;
    expect_life(
"blind",
"             claimed    dispatched unknown    parked     succeeded  failed     released\n"
"success      succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
"refused      failed     failed     failed     failed     succeeded! .          .\n"
"closed       claimed>   parked!    parked-    parked-    succeeded! .          .\n"
"closed-close claimed>   parked!    parked-    parked-    .          .          .\n"
"not-found    claimed>   parked!    parked-    parked-    .          .          .\n"
"processing   claimed>   parked!    parked-    parked-    .          .          .\n"
"silence      claimed>   parked!    parked-    parked-    .          .          .\n"
"not-executed .          released   parked-    parked-    .          .          .\n");
}
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(life_at_a_provider_that_deduplicates),
        SCENE_TEST(life_at_a_provider_that_closes),
        SCENE_TEST(life_at_a_provider_that_can_only_be_asked),
        SCENE_TEST(life_at_a_provider_that_is_blind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
