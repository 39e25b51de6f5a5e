/*
 * The life of an intent, walked as a grid for each kind of provider.
 *
 * Goal: each state, each thing that can be learned: what stands after, and what comes next, is the
 * policy in these grids; likewise each thing that a person, retention, or an old copy can do. They
 * are written from docs/design.md, section 5.
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
    { "event-done", IDEM_SOURCE_CALLBACK, IDEM_OUTCOME_SUCCESS },
    { "event-no", IDEM_SOURCE_CALLBACK, IDEM_OUTCOME_REFUSED_FINAL },
    { "event-moving", IDEM_SOURCE_CALLBACK, IDEM_OUTCOME_PROCESSING },
    { "event-back", IDEM_SOURCE_CALLBACK, IDEM_OUTCOME_REVERSED },
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

/* ---- what people, retention and old copies do ---- */

/* Behind the states: an answer that has expired, of a payment and of a key that was given up. */
enum place {
    PLACE_KEPT = IDEM_INTENT_COUNT,
    PLACE_EMPTY,
    PLACE_COUNT
};

static void arrive_at_place(int place)
{
    if (place == PLACE_KEPT) {
        scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
        forgotten("k");
    } else if (place == PLACE_EMPTY) {
        struct idem_command command = scene_abandon(&scene, "k");
        (void)scene_run(&scene, &command);
        forgotten("k");
    } else {
        arrive((enum idem_intent_state)place, "dedup");
    }
}

static struct idem_command make_request(const char *key)
{
    return scene_pay(&scene, key, "dedup");
}

static struct idem_command make_abandon(const char *key)
{
    return scene_abandon(&scene, key);
}

static struct idem_command make_due(const char *key)
{
    struct idem_command command = scene_due(&scene, key);
    command.now_us += 2 * DAY; /* Whatever it is, it is due. */
    return command;
}

static struct idem_command make_listing(const char *key)
{
    if (scene_intent(&scene, key) == NULL) {
        return scene_listed(&scene, key, IDEM_EFFECT_KIND_CHARGE, NULL);
    }
    struct idem_command command =
        scene_evidence(&scene, key, IDEM_SOURCE_LISTING, IDEM_OUTCOME_SUCCESS);
    command.evidence.entry = IDEM_STR("dedup"); /* Also of a key that was given up. */
    command.evidence.account = IDEM_STR("account-1");
    command.evidence.region = IDEM_STR("region-1");
    return command;
}

static struct idem_command make_succeeded(const char *key)
{
    return scene_resolve(&scene, key, IDEM_VERDICT_SUCCEEDED);
}

static struct idem_command make_failed(const char *key)
{
    return scene_resolve(&scene, key, IDEM_VERDICT_FAILED);
}

static struct idem_command make_noted(const char *key)
{
    return scene_resolve(&scene, key, IDEM_VERDICT_NOTED);
}

static struct idem_command make_stray(const char *key)
{
    return scene_resolve(&scene, key, IDEM_VERDICT_STRAY);
}

static struct idem_command make_event(const char *key)
{
    return scene_callback(&scene, key, "event", IDEM_OUTCOME_SUCCESS);
}

static struct idem_command make_reap(const char *key)
{
    struct idem_command command = scene_reap(&scene, key);
    command.reap.horizon_us += 1000 * DAY;
    return command;
}

static struct idem_command make_erase(const char *key)
{
    struct idem_command command = scene_erase(&scene, key);
    command.now_us += 2 * DAY;
    return command;
}

struct deed {
    const char *name;
    struct idem_command (*make)(const char *key);
};

static const struct deed deeds[] = {
    { "request", make_request }, { "abandon", make_abandon },     { "due", make_due },
    { "listing", make_listing }, { "succeeded", make_succeeded }, { "failed", make_failed },
    { "noted", make_noted },     { "stray", make_stray },         { "event", make_event },
    { "reap", make_reap },       { "erase", make_erase },
};

#define DEEDS (sizeof(deeds) / sizeof(deeds[0]))

/* What stands there, in four letters. */
static const char *stands(const struct scene_intent *intent)
{
    static const char *const letters[IDEM_INTENT_COUNT] = {
        [IDEM_INTENT_NONE] = "none",       [IDEM_INTENT_CLAIMED] = "clai",
        [IDEM_INTENT_DISPATCHED] = "disp", [IDEM_INTENT_UNKNOWN] = "unkn",
        [IDEM_INTENT_PARKED] = "park",     [IDEM_INTENT_SUCCEEDED] = "succ",
        [IDEM_INTENT_FAILED] = "fail",     [IDEM_INTENT_RELEASED] = "rele",
    };
    if (intent == NULL) {
        return scene_stub(&scene, "k") != NULL ? "stub" : "none";
    }
    return idem_intent_is_tombstone(&intent->row) ? "tomb" : letters[intent->row.state];
}

static char mark_of(struct idem_release release, bool case_opened)
{
    if (case_opened) {
        return '!';
    }
    static const char marks[IDEM_RELEASE_COUNT] = {
        [IDEM_RELEASE_NONE] = ' ', [IDEM_RELEASE_REPLY] = ' ', [IDEM_RELEASE_WAIT] = '~',
        [IDEM_RELEASE_SEND] = '>', [IDEM_RELEASE_QUERY] = '?', [IDEM_RELEASE_CLOSE] = 'x',
    };
    return marks[release.kind];
}

/*
 * What stands after: `>` with a send, `?` with a question, `!` with a case that was opened. Where
 * nothing was written: `.` the reply is what is there, `~` the caller waits, or the status of the
 * problem (409e: too early).
 */
static const char *deed_cell(int place, const struct deed *deed, bool is_restored, int64_t after_us)
{
    static char text[32];
    scene_end(&scene);
    scene_begin(&scene);
    arrive_at_place(place);
    scene_pass(&scene, after_us);
    scene.restored = is_restored;
    const struct scene_intent *before = scene_intent(&scene, "k");
    size_t cases = before != NULL ? before->case_count : 0;
    struct idem_command command = deed->make("k");
    struct idem_release release = scene_run(&scene, &command);
    const struct scene_intent *after = scene_intent(&scene, "k");
    bool is_written = scene.decision.intent.write != IDEM_WRITE_NONE ||
                      scene.decision.stub.write != IDEM_WRITE_NONE;
    if (release.kind == IDEM_RELEASE_REPLY && release.problem != IDEM_PROBLEM_NONE) {
        assert_false(is_written);
        const char *early = release.problem == IDEM_PROBLEM_TOO_EARLY ? "e" : "";
        (void)snprintf(text, sizeof(text), "%d%s", idem_problem_entry(release.problem)->status,
                       early);
        return text;
    }
    if (!is_written) {
        return release.kind == IDEM_RELEASE_WAIT ? "~" : ".";
    }
    bool case_opened = after != NULL && after->case_count > cases;
    (void)snprintf(text, sizeof(text), "%s%c", stands(after), mark_of(release, case_opened));
    return text;
}

static void expect_deeds(bool is_restored, int64_t after_us, const char *policy)
{
    static char memory[4096];
    static const char *const places[PLACE_COUNT] = { "none", "clai", "disp", "unkn", "park",
                                                     "succ", "fail", "rele", "kept", "gone" };
    struct idem_buf grid;
    idem_buf_init(&grid, memory, sizeof(memory));
    idem_buf_printf(&grid, "%-10s", "");
    for (int place = IDEM_INTENT_NONE; place < PLACE_COUNT; place++) {
        idem_buf_printf(&grid, "%-7s", places[place]);
    }
    for (size_t i = 0; i < DEEDS; i++) {
        idem_buf_printf(&grid, "|\n%-10s", deeds[i].name);
        for (int place = IDEM_INTENT_NONE; place < PLACE_COUNT; place++) {
            idem_buf_printf(&grid, "%-7s", deed_cell(place, &deeds[i], is_restored, after_us));
        }
    }
    idem_buf_add(&grid, IDEM_STR("|\n"));
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
"not-executed .          released   released   parked?    .          .          .\n"
"event-done   succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
"event-no     failed     failed     failed     failed     succeeded! .          .\n"
"event-moving claimed>   dispatched>unknown?   parked?    .          .          .\n"
"event-back   succeeded! succeeded! succeeded! succeeded! succeeded! failed!    succeeded!\n");
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
"not-executed .          released   released   parked?    .          .          .\n"
"event-done   succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
"event-no     failed     failed     failed     failed     succeeded! .          .\n"
"event-moving claimed>   dispatched>unknown?   parked?    .          .          .\n"
"event-back   succeeded! succeeded! succeeded! succeeded! succeeded! failed!    succeeded!\n");
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
"not-executed .          released   released   parked?    .          .          .\n"
"event-done   succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
"event-no     failed     failed     failed     failed     succeeded! .          .\n"
"event-moving claimed>   dispatched>unknown?   parked?    .          .          .\n"
"event-back   succeeded! succeeded! succeeded! succeeded! succeeded! failed!    succeeded!\n");
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
"not-executed .          released   parked-    parked-    .          .          .\n"
"event-done   succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
"event-no     failed     failed     failed     failed     succeeded! .          .\n"
"event-moving claimed>   dispatched>parked-    parked-    .          .          .\n"
"event-back   succeeded! succeeded! succeeded! succeeded! succeeded! failed!    succeeded!\n");
}

static void whoever_acts_ten_minutes_later(void **state)
{
    (void)state;
    expect_deeds(false, 600 * SECOND,
"          none   clai   disp   unkn   park   succ   fail   rele   kept   gone   |\n"
"request   disp>  ~      ~      ~      ~      .      .      disp>  410    409    |\n"
"abandon   fail   .      .      .      .      .      .      fail   .      .      |\n"
"due       .      disp>  unkn?  unkn?  park?  .      .      fail   .      .      |\n"
"listing   .      succ   succ   succ   succ   .      fail!  succ   .      tomb!  |\n"
"succeeded 404    409    succ   succ   succ   409    409    succ   409    409    |\n"
"failed    404    fail   fail   fail   fail   409    409    fail   409    409    |\n"
"noted     404    409    409    409    409    succ   fail   409    tomb   tomb   |\n"
"stray     404    409    409    409    409    409    409    409    409    409    |\n"
"event     .      succ   succ   succ   succ   .      fail!  succ   .      tomb!  |\n"
"reap      .      409    409    409    409    tomb   tomb   409    409    none   |\n"
"erase     .      409    409    409    409    tomb   tomb   409    tomb   .      |\n");
}

static void whoever_acts_at_once(void **state)
{
    (void)state;
    expect_deeds(false, 0,
"          none   clai   disp   unkn   park   succ   fail   rele   kept   gone   |\n"
"request   disp>  ~      ~      ~      ~      .      .      disp>  410    409    |\n"
"abandon   fail   .      .      .      .      .      .      fail   .      .      |\n"
"due       .      disp>  unkn?  unkn?  park?  .      .      fail   .      .      |\n"
"listing   .      succ   succ   succ   succ   .      fail!  succ   .      tomb!  |\n"
"succeeded 404    409    409e   succ   succ   409    409    succ   409    409    |\n"
"failed    404    fail   409e   409e   409e   409    409    fail   409    409    |\n"
"noted     404    409    409    409    409    succ   fail   409    tomb   tomb   |\n"
"stray     404    409    409    409    409    409    409    409    409    409    |\n"
"event     .      succ   succ   succ   succ   .      fail!  succ   .      tomb!  |\n"
"reap      .      409    409    409    409    tomb   tomb   409    409    none   |\n"
"erase     .      409    409    409    409    tomb   tomb   409    tomb   .      |\n");
}

static void whoever_acts_on_an_old_copy(void **state)
{
    (void)state;
    expect_deeds(true, 600 * SECOND,
"          none   clai   disp   unkn   park   succ   fail   rele   kept   gone   |\n"
"request   503    ~      ~      ~      ~      .      .      503    410    409    |\n"
"abandon   503    503    503    503    503    .      .      503    .      .      |\n"
"due       .      clai   unkn?  unkn?  park?  .      .      rele   .      .      |\n"
"listing   stub   succ   succ   succ   succ   .      fail!  succ   .      tomb!  |\n"
"succeeded 404    409    succ   succ   succ   409    409    succ   409    409    |\n"
"failed    404    409e   409e   409e   409e   409    409    409e   409    409    |\n"
"noted     404    409    409    409    409    succ   fail   409    tomb   tomb   |\n"
"stray     404    409    409    409    409    409    409    409    409    409    |\n"
"event     503    succ   succ   succ   succ   .      fail!  succ   .      tomb!  |\n"
"reap      .      409    409    409    409    tomb   tomb   409    409    none   |\n"
"erase     .      409    409    409    409    tomb   tomb   409    tomb   .      |\n");
}
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(life_at_a_provider_that_deduplicates),
        SCENE_TEST(life_at_a_provider_that_closes),
        SCENE_TEST(life_at_a_provider_that_can_only_be_asked),
        SCENE_TEST(life_at_a_provider_that_is_blind),
        SCENE_TEST(whoever_acts_ten_minutes_later),
        SCENE_TEST(whoever_acts_at_once),
        SCENE_TEST(whoever_acts_on_an_old_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
