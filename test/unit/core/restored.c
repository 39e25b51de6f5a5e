/*
 * The restored mode: an old copy of the store, before it knows what it has missed.
 *
 * Goal: while the mode lasts nothing is sent, closed or let go and nothing new is claimed; what is
 * recorded is answered as ever; asking is allowed, and evidence settles.
 *
 * Method: scenes (scene.h) that are left in each state and then go on as an old copy. The scene
 * itself checks that no send and no close is released in the mode.
 */
#include "unit/core/usual.h"

static const struct idem_intent *row(const char *key)
{
    return &scene_intent(&scene, key)->row;
}

static struct idem_release abandon(const char *key)
{
    struct idem_command command = scene_abandon(&scene, key);
    return scene_run(&scene, &command);
}

static void expect_nothing_written(void)
{
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    assert_int_equal(scene.decision.stub.write, IDEM_WRITE_NONE);
}

static void an_absent_key_is_not_claimed(void **state)
{
    (void)state;
    scene.restored = true;
    expect_problem(pay("k", "dedup"), IDEM_PROBLEM_UNAVAILABLE);
    expect_nothing_written();
    struct idem_command command = scene_pay(&scene, "k", "dedup");
    command.accept.first_sent_us = 1; /* Even if it is too old besides. */
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_UNAVAILABLE);
    expect_problem(act("j", IDEM_ENDPOINT_REFUNDS_CREATE, ""), IDEM_PROBLEM_UNAVAILABLE);
    expect_nothing_written();
}

static void a_stub_is_not_claimed_either_while_the_mode_lasts(void **state)
{
    (void)state;
    scene.restored = true;
    (void)listed("k", IDEM_EFFECT_KIND_CHARGE, NULL);
    expect_problem(pay("k", "dedup"), IDEM_PROBLEM_UNAVAILABLE);
    expect_nothing_written();
}

static void a_released_key_does_not_run_again(void **state)
{
    (void)state;
    released("k", "dedup");
    scene.restored = true;
    expect_problem(pay("k", "dedup"), IDEM_PROBLEM_UNAVAILABLE);
    expect_nothing_written();
    struct idem_command command = scene_pay(&scene, "k", "dedup");
    command.accept.fingerprints[0].digest.bytes[0] ^= 1;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_KEY_REUSED);
}

static void known_keys_answer_as_ever(void **state)
{
    (void)state;
    scene_paid(&scene, "paid", "plain", IDEM_CAPTURE_AUTOMATIC);
    scene_paid(&scene, "old", "plain", IDEM_CAPTURE_AUTOMATIC);
    forgotten("old");
    (void)abandon("gone");
    (void)pay("running", "plain");
    scene.restored = true;
    struct idem_release release = pay("paid", "plain");
    expect_problem(release, IDEM_PROBLEM_NONE);
    assert_true(release.replayed);
    expect_problem(pay("old", "plain"), IDEM_PROBLEM_ANSWER_EXPIRED);
    expect_problem(pay("gone", "plain"), IDEM_PROBLEM_NONE);
    EXPECT_RELEASE(pay("running", "plain"), "wait");
    struct idem_command command = scene_pay(&scene, "paid", "plain");
    command.accept.fingerprints[0].digest.bytes[0] ^= 1;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_KEY_REUSED);
}

static void only_what_is_final_can_be_given_up(void **state)
{
    (void)state;
    scene_paid(&scene, "paid", "plain", IDEM_CAPTURE_AUTOMATIC);
    released("released", "plain");
    (void)pay("running", "plain");
    scene.restored = true;
    expect_problem(abandon("absent"), IDEM_PROBLEM_UNAVAILABLE);
    expect_nothing_written();
    expect_problem(abandon("released"), IDEM_PROBLEM_UNAVAILABLE);
    expect_problem(abandon("running"), IDEM_PROBLEM_UNAVAILABLE);
    expect_problem(abandon("paid"), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "released", "released");
}

static void a_planned_send_waits(void **state)
{
    (void)state;
    scene.slot = false;
    (void)pay("k", "dedup");
    scene.restored = true;
    scene.slot = true;
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing");
    EXPECT_STATE(&scene, "k", "claimed");
    assert_int_equal(row("k")->step, IDEM_STEP_SEND);
    assert_int_equal(row("k")->due_us, scene.now_us + scene.rules.ask_first_us);
    assert_int_equal(row("k")->send_count, 0);
    scene.restored = false;
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "send");
}

static void a_planned_close_waits(void **state)
{
    (void)state;
    (void)pay("k", "closing");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    (void)scene_make_due(&scene, "k");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    assert_int_equal(row("k")->step, IDEM_STEP_CLOSE);
    scene.restored = true;
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing");
    assert_int_equal(row("k")->step, IDEM_STEP_CLOSE);
    assert_int_equal(row("k")->due_us, scene.now_us + scene.rules.ask_first_us);
    assert_false(row("k")->effect.close_asked);
    scene.restored = false;
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "close");
}

static void a_released_key_is_not_let_go(void **state)
{
    (void)state;
    released("k", "dedup");
    scene.restored = true;
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing");
    EXPECT_STATE(&scene, "k", "released");
    assert_int_equal(row("k")->due_us, scene.now_us + scene.rules.release_us);
    scene.restored = false;
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "reply");
    EXPECT_STATE(&scene, "k", "failed");
}

static void a_lease_of_the_lost_process_becomes_unknown_and_is_asked_about(void **state)
{
    (void)state;
    (void)pay("asked", "dedup");
    (void)pay("mute", "mute"); /* Nothing but another send would help. */
    scene.restored = true;
    scene.incarnation += 1;
    struct idem_command command = scene_due(&scene, "asked");
    EXPECT_RELEASE(scene_run(&scene, &command), "query");
    EXPECT_STATE(&scene, "asked", "unknown");
    command = scene_due(&scene, "mute");
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    EXPECT_STATE(&scene, "mute", "unknown");
    EXPECT_RELEASE(scene_make_due(&scene, "mute"), "nothing");
    assert_int_equal(row("mute")->step, IDEM_STEP_SEND);
}

static void answers_to_questions_settle(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    scene.restored = true;
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "reply");
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void a_person_cannot_yet_say_that_it_did_not_happen(void **state)
{
    (void)state;
    scene.slot = false;
    (void)pay("k", "dedup");
    scene.restored = true;
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_TOO_EARLY);
    expect_nothing_written();
    scene.restored = false;
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
}

static void the_mark_ends_the_mode(void **state)
{
    (void)state;
    scene.restored = true;
    expect_problem(pay("k", "dedup"), IDEM_PROBLEM_UNAVAILABLE);
    struct idem_command command = scene_mark(&scene, IDEM_MARK_RESTORED_OVER);
    (void)scene_run(&scene, &command);
    EXPECT_RELEASE(pay("k", "dedup"), "send");
}

/* ---- what a listing says of records that are here ---- */

static struct idem_release listing(const char *key, enum idem_outcome_kind outcome)
{
    return learn(key, IDEM_SOURCE_LISTING, outcome);
}

static void a_listing_settles_whatever_is_open(void **state)
{
    (void)state;
    scene.slot = false;
    (void)pay("claimed", "dedup");
    scene.slot = true;
    (void)pay("dispatched", "dedup");
    (void)pay("unknown", "dedup");
    (void)sent("unknown", IDEM_OUTCOME_UNKNOWN);
    parked("parked");
    released("released", "dedup");
    scene.restored = true;
    const char *const keys[] = { "claimed", "dispatched", "unknown", "parked", "released" };
    for (size_t i = 0; i < 5; i++) {
        EXPECT_STATE(&scene, keys[i], keys[i]);
        expect_problem(listing(keys[i], IDEM_OUTCOME_SUCCESS), IDEM_PROBLEM_NONE);
        EXPECT_STATE(&scene, keys[i], "succeeded");
        EXPECT_TEXT(event_text(IDEM_EVENT_SUCCEEDED), "listing");
        assert_int_equal(scene_intent(&scene, keys[i])->open_cases, 0);
        assert_int_equal(scene_payment(&scene, keys[i])->captured_minor, 10000);
    }
}

static void a_listing_contradicts_what_failed_here(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    scene_paid(&scene, "j", "dedup", IDEM_CAPTURE_AUTOMATIC);
    scene.restored = true;
    (void)listing("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_CONTRADICTION);
    assert_int_equal(events(IDEM_EVENT_CONTRADICTED), 1);
    (void)listing("k", IDEM_OUTCOME_SUCCESS);
    expect_nothing_written(); /* It is read every night. */
    assert_int_equal(scene_intent(&scene, "k")->case_count, 1);
    (void)listing("j", IDEM_OUTCOME_SUCCESS);
    expect_nothing_written(); /* It says what stands here. */
}

static void a_listing_with_other_money_parks(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    scene.restored = true;
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_LISTING, IDEM_OUTCOME_SUCCESS);
    command.evidence.amount_minor -= 1;
    (void)scene_run(&scene, &command);
    EXPECT_STATE(&scene, "k", "parked");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_MISMATCH);
}

static void only_done_is_a_listings_word(void **state)
{
    (void)state;
    (void)pay("k", "closing");
    struct idem_command command = scene_listed(&scene, "j", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.outcome = IDEM_OUTCOME_REVERSED; /* Of an absent one not even that. */
    (void)scene_run(&scene, &command);
    expect_nothing_written();
    for (int outcome = IDEM_OUTCOME_UNKNOWN; outcome < IDEM_OUTCOME_COUNT; outcome++) {
        if (outcome != IDEM_OUTCOME_SUCCESS && outcome != IDEM_OUTCOME_REVERSED) {
            EXPECT_RELEASE(listing("k", (enum idem_outcome_kind)outcome), "nothing");
            expect_nothing_written();
        }
    }
    EXPECT_STATE(&scene, "k", "dispatched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(an_absent_key_is_not_claimed),
        SCENE_TEST(a_stub_is_not_claimed_either_while_the_mode_lasts),
        SCENE_TEST(a_released_key_does_not_run_again),
        SCENE_TEST(known_keys_answer_as_ever),
        SCENE_TEST(only_what_is_final_can_be_given_up),
        SCENE_TEST(a_planned_send_waits),
        SCENE_TEST(a_planned_close_waits),
        SCENE_TEST(a_released_key_is_not_let_go),
        SCENE_TEST(a_lease_of_the_lost_process_becomes_unknown_and_is_asked_about),
        SCENE_TEST(answers_to_questions_settle),
        SCENE_TEST(a_person_cannot_yet_say_that_it_did_not_happen),
        SCENE_TEST(the_mark_ends_the_mode),
        SCENE_TEST(a_listing_settles_whatever_is_open),
        SCENE_TEST(a_listing_contradicts_what_failed_here),
        SCENE_TEST(a_listing_with_other_money_parks),
        SCENE_TEST(only_done_is_a_listings_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
