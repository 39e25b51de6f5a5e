/*
 * Credentials and the store's own marks: commands that are about no intent.
 *
 * Goal: adding is safe to repeat, a secret and an id belong to one row, what is revoked stays so; a
 * mark only moves one way.
 *
 * Method: scenes (scene.h); every command runs twice, so repeating is proven by each test.
 */
#include "unit/core/usual.h"

static struct idem_release credential(enum idem_credential_action action,
                                      uint8_t id,
                                      uint8_t secret)
{
    struct idem_command command = scene_credential(&scene, action, id, secret);
    return scene_run(&scene, &command);
}

static void a_credential_is_added_with_who_and_when(void **state)
{
    (void)state;
    struct idem_command command = scene_credential(&scene, IDEM_CREDENTIAL_ADD, 1, 10);
    command.credential.row.row = 77; /* Nothing of this is the caller's to say. */
    command.credential.row.revoked_us = 5;
    command.credential.row.revoked_by = IDEM_STR("x");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    const struct idem_credential_row *row = &scene.credentials[0];
    assert_int_equal(scene.credential_count, 1);
    EXPECT_TEXT(row->principal, "shop");
    EXPECT_TEXT(row->providers, "* ");
    EXPECT_TEXT(row->label, "till");
    EXPECT_TEXT(row->created_by, "olga");
    assert_int_equal(row->role, IDEM_ROLE_MERCHANT);
    assert_int_equal(row->created_us, command.now_us);
    assert_int_equal(row->revoked_us, 0);
    assert_int_equal(row->revoked_by.len, 0);
}

static void such_a_command_is_about_no_intent(void **state)
{
    (void)state;
    expect_problem(credential(IDEM_CREDENTIAL_ADD, 1, 10), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    assert_int_equal(scene.decision.intent.row.row, 0);
    assert_int_equal(scene.decision.intent.row.state, IDEM_INTENT_NONE);
    assert_int_equal(scene.decision.event_count, 0);
}

static void the_same_row_again_is_the_same_credential(void **state)
{
    (void)state;
    (void)credential(IDEM_CREDENTIAL_ADD, 1, 10);
    expect_problem(credential(IDEM_CREDENTIAL_ADD, 1, 10), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.decision.credential.write, IDEM_WRITE_NONE);
    assert_int_equal(scene.credential_count, 1);
}

static void another_row_under_the_id_is_refused(void **state)
{
    (void)state;
    (void)credential(IDEM_CREDENTIAL_ADD, 1, 10);
    for (int what = 0; what < 5; what++) {
        struct idem_command command = scene_credential(&scene, IDEM_CREDENTIAL_ADD, 1, 10);
        struct idem_credential_row *row = &command.credential.row;
        row->principal = what == 0 ? IDEM_STR("other") : row->principal;
        row->role = what == 1 ? IDEM_ROLE_OPERATOR : row->role;
        row->secret_sha256.bytes[0] = what == 2 ? 11 : row->secret_sha256.bytes[0];
        row->providers = what == 3 ? IDEM_STR("stripe ") : row->providers;
        row->label = what == 4 ? IDEM_STR("office") : row->label;
        expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_CREDENTIAL_CONFLICT);
        assert_int_equal(scene.decision.credential.write, IDEM_WRITE_NONE);
    }
    assert_int_equal(scene.credential_count, 1);
}

static void a_secret_belongs_to_one_row_for_ever(void **state)
{
    (void)state;
    (void)credential(IDEM_CREDENTIAL_ADD, 1, 10);
    expect_problem(credential(IDEM_CREDENTIAL_ADD, 2, 10), IDEM_PROBLEM_CREDENTIAL_CONFLICT);
    (void)credential(IDEM_CREDENTIAL_REVOKE, 1, 10);
    expect_problem(credential(IDEM_CREDENTIAL_ADD, 2, 10), IDEM_PROBLEM_CREDENTIAL_CONFLICT);
    expect_problem(credential(IDEM_CREDENTIAL_ADD, 2, 20), IDEM_PROBLEM_NONE);
}

static void what_is_revoked_stays_revoked(void **state)
{
    (void)state;
    (void)credential(IDEM_CREDENTIAL_ADD, 1, 10);
    expect_problem(credential(IDEM_CREDENTIAL_REVOKE, 1, 99), IDEM_PROBLEM_NONE); /* By id. */
    int64_t revoked_us = scene.credentials[0].revoked_us;
    assert_int_equal(revoked_us, scene.now_us);
    EXPECT_TEXT(scene.credentials[0].revoked_by, "olga");
    expect_problem(credential(IDEM_CREDENTIAL_REVOKE, 1, 10), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.credentials[0].revoked_us, revoked_us);
    expect_problem(credential(IDEM_CREDENTIAL_ADD, 1, 10), IDEM_PROBLEM_CREDENTIAL_CONFLICT);
}

static void what_is_not_there_cannot_be_revoked(void **state)
{
    (void)state;
    expect_problem(credential(IDEM_CREDENTIAL_REVOKE, 1, 10), IDEM_PROBLEM_NOT_FOUND);
}

static void a_mark_is_written_as_it_was_said(void **state)
{
    (void)state;
    struct idem_command command = scene_mark(&scene, IDEM_MARK_HORIZON);
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.decision.mark.value_us, command.mark.value_us);
    assert_int_equal(scene.horizon_us, command.mark.value_us);
    assert_int_equal(scene.decision.intent.row.state, IDEM_INTENT_NONE);
    scene.restored = true;
    command = scene_mark(&scene, IDEM_MARK_RESTORED_OVER);
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    EXPECT_TEXT(scene.decision.mark.by, "olga");
    EXPECT_TEXT(scene.decision.mark.reason, "all is known");
    assert_false(scene.restored);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_credential_is_added_with_who_and_when),
        SCENE_TEST(such_a_command_is_about_no_intent),
        SCENE_TEST(the_same_row_again_is_the_same_credential),
        SCENE_TEST(another_row_under_the_id_is_refused),
        SCENE_TEST(a_secret_belongs_to_one_row_for_ever),
        SCENE_TEST(what_is_revoked_stays_revoked),
        SCENE_TEST(what_is_not_there_cannot_be_revoked),
        SCENE_TEST(a_mark_is_written_as_it_was_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
