/*
 * What is learned about an effect, by whom, and what that may settle.
 *
 * Goal: docs/design.md, section 5: "not executed" belongs to a send; only the provider's final
 * word about our id, money and place settles; after the end it opens a case and changes nothing
 * else.
 *
 * Method: scenes (scene.h) that a store would keep; each command runs twice and the rows are
 * audited after each, so a test here only says what it is about.
 */
#include "unit/core/usual.h"

/* ---- not executed ---- */

static void not_executed_is_tried_again_while_the_caller_waits(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_NOT_EXECUTED), "nothing");
    EXPECT_STATE(&scene, "k", "claimed");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_PENDING);
    struct idem_release release = scene_make_due(&scene, "k");
    EXPECT_RELEASE(release, "send");
    assert_int_equal(release.send_no, 2);
    (void)sent("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void the_number_of_a_payment_is_kept_whatever_else_its_send_has_learned(void **state)
{
    (void)state;
    static const enum idem_outcome_kind outcomes[] = {
        IDEM_OUTCOME_NOT_EXECUTED,
        IDEM_OUTCOME_UNKNOWN,
        IDEM_OUTCOME_PROCESSING,
        IDEM_OUTCOME_NOT_FOUND,
    };
    char key[] = "a";
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(outcomes); i++, key[0]++) {
        (void)pay(key, "plain");
        struct idem_command command = scene_evidence(&scene, key, IDEM_SOURCE_SEND, outcomes[i]);
        command.evidence.reference = IDEM_STR("number-1");
        (void)scene_run(&scene, &command);
        EXPECT_TEXT(scene_intent(&scene, key)->row.effect.reference, "number-1");
    }
    EXPECT_RELEASE(scene_make_due(&scene, "a"), "send");
    struct idem_command again = scene_evidence(&scene, "a", IDEM_SOURCE_SEND, IDEM_OUTCOME_UNKNOWN);
    again.evidence.reference = IDEM_STR("number-2"); /* The first stays. */
    (void)scene_run(&scene, &again);
    EXPECT_TEXT(scene_intent(&scene, "a")->row.effect.reference, "number-1");
}

/* Of another attempt, another effect, another place; a question's, which may have been found. */
static void a_number_that_is_not_the_sends_own_is_not_kept(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    for (int what = 0; what < 4; what++) {
        struct idem_command command = scene_evidence(
            &scene, "k", what == 0 ? IDEM_SOURCE_QUERY : IDEM_SOURCE_SEND, IDEM_OUTCOME_UNKNOWN);
        command.evidence.reference = IDEM_STR("number-1");
        command.evidence.token.bytes[0] ^= what == 1;
        command.evidence.effect_id = what == 2 ? IDEM_STR("another") : command.evidence.effect_id;
        command.evidence.account = what == 3 ? IDEM_STR("another") : command.evidence.account;
        (void)scene_run(&scene, &command);
        assert_int_equal(scene_intent(&scene, "k")->row.effect.reference.len, 0);
    }
}

static void not_executed_is_released_when_the_caller_has_waited_long_enough(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    for (int i = 0; i < 3; i++) { /* 1 + 2 + 4 seconds fit into ten, 8 more do not. */
        EXPECT_RELEASE(sent("k", IDEM_OUTCOME_NOT_EXECUTED), "nothing");
        EXPECT_RELEASE(scene_make_due(&scene, "k"), "send");
    }
    expect_problem(sent("k", IDEM_OUTCOME_NOT_EXECUTED), IDEM_PROBLEM_NOT_EXECUTED);
    EXPECT_STATE(&scene, "k", "released");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_FAILED);
    EXPECT_TEXT(scene_payment(&scene, "k")->failure_code, "not_executed");
}

static void the_providers_wish_for_a_pause_releases_at_once_and_is_passed_on(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    command.evidence.retry_after_us = 30 * SECOND;
    struct idem_release release = scene_run(&scene, &command);
    expect_problem(release, IDEM_PROBLEM_NOT_EXECUTED);
    assert_int_equal(release.retry_after_us, 30 * SECOND);
}

static void not_executed_counts_only_from_the_attempt_that_owns_the_send(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    command.evidence.token.bytes[0] ^= 1;
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    EXPECT_STATE(&scene, "k", "dispatched");
    command = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    EXPECT_STATE(&scene, "k", "dispatched");
}

static void a_superseded_attempt_may_still_close_its_own_send(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command late =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query"); /* The lease ended. */
    late.now_us = ++scene.now_us;
    expect_problem(scene_run(&scene, &late), IDEM_PROBLEM_NOT_EXECUTED);
    EXPECT_STATE(&scene, "k", "released");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_NOT_FOUND), "nothing"); /* The asker comes back. */
    EXPECT_STATE(&scene, "k", "released");
}

static void what_an_asker_hears_does_not_move_a_send_that_is_planned_again(void **state)
{
    (void)state;
    scene.wait_us = HOUR;
    (void)pay("k", "plain");
    struct idem_command late =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    late.now_us = ++scene.now_us;
    EXPECT_RELEASE(scene_run(&scene, &late), "nothing");
    EXPECT_STATE(&scene, "k", "claimed");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_NOT_FOUND), "nothing");
    EXPECT_STATE(&scene, "k", "claimed");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "send");
}

static void the_second_send_not_executed_says_nothing_about_the_first(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    struct idem_release release = scene_make_due(&scene, "k");
    EXPECT_RELEASE(release, "send");
    assert_int_equal(release.send_no, 2);
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_NOT_EXECUTED), "nothing");
    EXPECT_STATE(&scene, "k", "unknown");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_PENDING);
}

static void the_second_send_refused_says_nothing_while_the_first_is_open(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    struct idem_command first =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    (void)scene_make_due(&scene, "k");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    (void)scene_make_due(&scene, "k");
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_REFUSED_FINAL), "nothing");
    EXPECT_STATE(&scene, "k", "unknown");
    first.now_us = ++scene.now_us; /* And when the first is closed, the refusal holds. */
    EXPECT_RELEASE(scene_run(&scene, &first), "reply");
    EXPECT_STATE(&scene, "k", "failed");
}

static void a_refused_repeat_settles_where_the_id_is_remembered_and_nobody_can_ask(void **state)
{
    (void)state;
    (void)pay("k", "mute");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "send");
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_REFUSED_FINAL), "reply");
    EXPECT_STATE(&scene, "k", "failed");

    (void)pay("j", "mute"); /* When the window is over, nobody remembers any more. */
    (void)sent("j", IDEM_OUTCOME_UNKNOWN);
    EXPECT_RELEASE(scene_make_due(&scene, "j"), "send");
    scene_pass(&scene, WINDOW_US);
    EXPECT_RELEASE(sent("j", IDEM_OUTCOME_REFUSED_FINAL), "nothing");
    EXPECT_STATE(&scene, "j", "parked");
}

static void sends_come_to_an_end(void **state)
{
    (void)state;
    scene.wait_us = 365 * DAY;
    (void)pay("k", "plain");
    for (int i = 1; i < IDEM_SENDS_MAX; i++) {
        EXPECT_RELEASE(sent("k", IDEM_OUTCOME_NOT_EXECUTED), "nothing");
        EXPECT_RELEASE(scene_make_due(&scene, "k"), "send");
    }
    expect_problem(sent("k", IDEM_OUTCOME_NOT_EXECUTED), IDEM_PROBLEM_NOT_EXECUTED);
    EXPECT_RELEASE(pay("k", "plain"), "reply"); /* Claimed again, and over. */
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(scene_intent(&scene, "k")->row.problem, IDEM_PROBLEM_ABANDONED);
}

/* ---- after the end ---- */

static void success_after_failure_opens_a_case_and_changes_nothing_else(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    uint32_t version = scene_payment(&scene, "k")->version;
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_CONTRADICTION);
    assert_int_equal(scene_payment(&scene, "k")->version, version);
}

static void success_after_abandoning_opens_a_case(void **state)
{
    (void)state;
    struct idem_command command = scene_abandon(&scene, "k");
    (void)scene_run(&scene, &command);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_CONTRADICTION);
}

static void a_provider_that_no_longer_knows_a_success_opens_a_case(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "closing", IDEM_CAPTURE_AUTOMATIC);
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_REFUSED_FINAL), "nothing"); /* Only a question tells. */
    assert_int_equal(scene_intent(&scene, "k")->case_count, 0);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_REFUSED_FINAL), "nothing");
    assert_int_equal(scene_intent(&scene, "k")->case_count, 1);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_CLOSED_UNPAID), "nothing");
    assert_int_equal(events(IDEM_EVENT_CONTRADICTED), 1);
    assert_int_equal(scene_intent(&scene, "k")->case_count, 1); /* While that one is open. */
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_NOT_FOUND), "nothing");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    assert_int_equal(scene_intent(&scene, "k")->case_count, 1);
    expect_problem(resolve("k", IDEM_VERDICT_NOTED), IDEM_PROBLEM_NONE);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_REFUSED_FINAL), "nothing");
    assert_int_equal(scene_intent(&scene, "k")->case_count, 2); /* It is news again. */
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void the_same_success_again_opens_nothing(void **state)
{
    (void)state;
    static const enum idem_evidence_source sources[] = { IDEM_SOURCE_SEND, IDEM_SOURCE_QUERY,
                                                         IDEM_SOURCE_CLOSE };
    scene_paid(&scene, "k", "closing", IDEM_CAPTURE_AUTOMATIC);
    struct scene_intent before = *scene_intent(&scene, "k");
    struct idem_payment payment = *scene_payment(&scene, "k");
    for (size_t i = 0; i < 3; i++) {
        EXPECT_RELEASE(learn("k", sources[i], IDEM_OUTCOME_SUCCESS), "nothing");
        const struct scene_intent *after = scene_intent(&scene, "k");
        assert_int_equal(after->row.version, before.row.version);
        assert_int_equal(after->event_count, before.event_count);
        assert_int_equal(after->case_count, 0);
        assert_int_equal(scene_payment(&scene, "k")->version, payment.version);
    }
}

/* Another success than the one that was settled: a second charge, as far as anybody knows. A case
   for the first, and a word in the history for each. */
static void expect_second_charge(struct idem_command command)
{
    struct scene_intent before = *scene_intent(&scene, "k");
    struct idem_payment payment = *scene_payment(&scene, "k");
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    const struct scene_intent *after = scene_intent(&scene, "k");
    assert_int_equal(after->case_count, 1);
    assert_int_equal(after->last_case, IDEM_CASE_MISMATCH);
    assert_int_equal(after->event_count, before.event_count + 1);
    assert_int_equal(after->last_event, IDEM_EVENT_CONTRADICTED);

    EXPECT_STATE(&scene, "k", "succeeded"); /* And its answer is audited (P4). */
    assert_int_equal(after->row.due_us, 0);
    assert_int_equal(after->row.finished_us, before.row.finished_us);
    assert_int_equal(after->row.expires_us, before.row.expires_us);
    assert_int_equal(after->row.effect.amount_minor, before.row.effect.amount_minor);
    assert_true(idem_str_equal(after->row.effect.reference, before.row.effect.reference));
    assert_int_equal(after->send_count, before.send_count);
    assert_int_equal(after->sends[0].state, before.sends[0].state);
    assert_int_equal(scene_payment(&scene, "k")->version, payment.version);
    assert_int_equal(scene_payment(&scene, "k")->captured_minor, payment.captured_minor);
}

static struct idem_command success_again(enum idem_evidence_source source)
{
    return scene_evidence(&scene, "k", source, IDEM_OUTCOME_SUCCESS);
}

static void success_with_other_money_after_success_opens_a_case_and_changes_nothing_else(
    void **state)
{
    (void)state;
    scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
    for (int source = IDEM_SOURCE_SEND; source < IDEM_SOURCE_COUNT; source++) {
        if (source == IDEM_SOURCE_LISTING) { /* Says so once: decide_late.c. */
            continue;
        }
        struct idem_command command = success_again((enum idem_evidence_source)source);
        command.evidence.amount_minor += 1;
        expect_second_charge(command);
        command = success_again((enum idem_evidence_source)source);
        command.evidence.amount_minor = -1; /* A success must say which money. */
        expect_second_charge(command);
        command = success_again((enum idem_evidence_source)source);
        command.evidence.currency = IDEM_STR("JPY");
        expect_second_charge(command);
        command = success_again((enum idem_evidence_source)source);
        command.evidence.effect_id = IDEM_STR("c0000000000000000000000000x");
        expect_second_charge(command);
    }
}

static void success_elsewhere_after_success_opens_a_case_and_changes_nothing_else(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
    struct idem_command command = success_again(IDEM_SOURCE_QUERY);
    command.evidence.entry = IDEM_STR("plain");
    expect_second_charge(command);
    command = success_again(IDEM_SOURCE_QUERY);
    command.evidence.account = IDEM_STR("account-2");
    expect_second_charge(command);
    command = success_again(IDEM_SOURCE_QUERY);
    command.evidence.region = IDEM_STR("region-2");
    expect_second_charge(command);
}

/* ---- whose evidence counts ---- */

static void expect_mismatch_parks(struct idem_command command)
{
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    EXPECT_STATE(&scene, "k", "parked");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_MISMATCH);
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_PENDING);
    scene_end(&scene);
    scene_begin(&scene);
    (void)pay("k", "dedup");
}

static void done_with_other_money_or_elsewhere_is_parked(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    struct idem_command lie = command;
    lie.evidence.amount_minor += 1;
    expect_mismatch_parks(lie);
    command = scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    lie = command;
    lie.evidence.currency = IDEM_STR("JPY");
    expect_mismatch_parks(lie);
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.effect_id = IDEM_STR("c0000000000000000000000000x");
    expect_mismatch_parks(lie);
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.entry = IDEM_STR("plain");
    expect_mismatch_parks(lie);
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.account = IDEM_STR("account-2");
    expect_mismatch_parks(lie);
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.region = IDEM_STR("region-2");
    expect_mismatch_parks(lie);
}

static void not_found_in_another_account_is_parked_and_never_a_reason_to_send(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_NOT_FOUND);
    command.evidence.account = IDEM_STR("account-2");
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    EXPECT_STATE(&scene, "k", "parked");
}

static void nothing_is_sent_or_asked_under_another_account(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    scene_entry(&scene, "dedup")->account = IDEM_STR("account-2");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing");
    EXPECT_STATE(&scene, "k", "unknown");
    scene_entry(&scene, "dedup")->account = IDEM_STR("account-1");
    scene_entry(&scene, "dedup")->region = IDEM_STR("region-2");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing");
    scene_entry(&scene, "dedup")->region = IDEM_STR("region-1");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
}

static void a_refusal_of_another_id_or_amount_is_silence(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    struct idem_command lie =
        scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL);
    lie.evidence.effect_id = IDEM_STR("c0000000000000000000000000x");
    (void)scene_run(&scene, &lie);
    EXPECT_STATE(&scene, "k", "unknown");
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL);
    lie.evidence.amount_minor = 1;
    (void)scene_run(&scene, &lie);
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL);
    lie.evidence.currency = IDEM_STR("JPY");
    (void)scene_run(&scene, &lie);
    EXPECT_STATE(&scene, "k", "unknown");
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL);
    lie.evidence.amount_minor = -1; /* A refusal need not name the money. */
    lie.evidence.currency = IDEM_STR("");
    (void)scene_run(&scene, &lie);
    EXPECT_STATE(&scene, "k", "failed");
}

static void evidence_settles_whoever_brings_it(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    command.evidence.token = (struct idem_uid){ .bytes = { 0 } }; /* A callback. */
    EXPECT_RELEASE(scene_run(&scene, &command), "reply");
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void silence_of_a_superseded_attempt_is_noted_and_no_more(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command late = scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_UNKNOWN);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    struct idem_intent before = scene_intent(&scene, "k")->row;
    late.now_us = ++scene.now_us;
    EXPECT_RELEASE(scene_run(&scene, &late), "nothing"); /* Its re-run asks nothing either. */
    const struct idem_intent *after = &scene_intent(&scene, "k")->row;
    assert_int_equal(after->lease_end_us, before.lease_end_us);
    assert_int_equal(after->due_us, before.due_us);
    assert_memory_equal(&after->token, &before.token, sizeof(before.token));
}

static void evidence_about_nothing_of_ours_is_ignored(void **state)
{
    (void)state;
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    assert_int_equal(scene.intent_count, 0);
}

/* ---- closing ---- */

static void closed_unpaid_is_final_only_where_declared_and_only_when_asked(void **state)
{
    (void)state;
    (void)pay("k", "closing");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "close");
    EXPECT_RELEASE(learn("k", IDEM_SOURCE_CLOSE, IDEM_OUTCOME_CLOSED_UNPAID), "nothing");
    EXPECT_STATE(&scene, "k", "unknown"); /* The close's own answer is not believed. */
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_CLOSED_UNPAID), "reply");
    EXPECT_STATE(&scene, "k", "failed");

    (void)pay("j", "plain");
    (void)sent("j", IDEM_OUTCOME_UNKNOWN);
    (void)scene_make_due(&scene, "j");
    EXPECT_RELEASE(asked("j", IDEM_OUTCOME_CLOSED_UNPAID), "nothing");
    EXPECT_STATE(&scene, "j", "unknown");

    (void)pay("i", "closing"); /* A send that meets a close is asked about. */
    EXPECT_RELEASE(sent("i", IDEM_OUTCOME_CLOSED_UNPAID), "nothing");
    EXPECT_STATE(&scene, "i", "unknown");
    EXPECT_RELEASE(scene_make_due(&scene, "i"), "query");
    EXPECT_RELEASE(asked("i", IDEM_OUTCOME_CLOSED_UNPAID), "reply");
    EXPECT_STATE(&scene, "i", "failed");
}

static void a_close_that_is_lost_is_followed_by_a_question(void **state)
{
    (void)state;
    (void)pay("k", "closing");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    (void)scene_make_due(&scene, "k");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "close");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query"); /* Its lease ended. */
    scene_pass(&scene, HOUR);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_NOT_FOUND), "nothing");
    EXPECT_STATE(&scene, "k", "parked"); /* Never a second send. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(not_executed_is_tried_again_while_the_caller_waits),
        SCENE_TEST(the_number_of_a_payment_is_kept_whatever_else_its_send_has_learned),
        SCENE_TEST(a_number_that_is_not_the_sends_own_is_not_kept),
        SCENE_TEST(not_executed_is_released_when_the_caller_has_waited_long_enough),
        SCENE_TEST(the_providers_wish_for_a_pause_releases_at_once_and_is_passed_on),
        SCENE_TEST(not_executed_counts_only_from_the_attempt_that_owns_the_send),
        SCENE_TEST(a_superseded_attempt_may_still_close_its_own_send),
        SCENE_TEST(what_an_asker_hears_does_not_move_a_send_that_is_planned_again),
        SCENE_TEST(the_second_send_not_executed_says_nothing_about_the_first),
        SCENE_TEST(the_second_send_refused_says_nothing_while_the_first_is_open),
        SCENE_TEST(a_refused_repeat_settles_where_the_id_is_remembered_and_nobody_can_ask),
        SCENE_TEST(sends_come_to_an_end),
        SCENE_TEST(success_after_failure_opens_a_case_and_changes_nothing_else),
        SCENE_TEST(success_after_abandoning_opens_a_case),
        SCENE_TEST(a_provider_that_no_longer_knows_a_success_opens_a_case),
        SCENE_TEST(the_same_success_again_opens_nothing),
        SCENE_TEST(success_with_other_money_after_success_opens_a_case_and_changes_nothing_else),
        SCENE_TEST(success_elsewhere_after_success_opens_a_case_and_changes_nothing_else),
        SCENE_TEST(done_with_other_money_or_elsewhere_is_parked),
        SCENE_TEST(not_found_in_another_account_is_parked_and_never_a_reason_to_send),
        SCENE_TEST(nothing_is_sent_or_asked_under_another_account),
        SCENE_TEST(a_refusal_of_another_id_or_amount_is_silence),
        SCENE_TEST(evidence_settles_whoever_brings_it),
        SCENE_TEST(silence_of_a_superseded_attempt_is_noted_and_no_more),
        SCENE_TEST(evidence_about_nothing_of_ours_is_ignored),
        SCENE_TEST(closed_unpaid_is_final_only_where_declared_and_only_when_asked),
        SCENE_TEST(a_close_that_is_lost_is_followed_by_a_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
