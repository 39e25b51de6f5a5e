/*
 * Forgetting, as a program asks for it.
 *
 * Goal: ages count so that a calendar which is wrong for a moment makes nothing old; what was
 * forgotten is not sent by a handle that still knows it.
 *
 * Method: as client.c, with the calendar moved to and fro.
 */
#include "unit/client/client_scene.h"

static int64_t older_forget(struct scene *scene, int64_t age_ms)
{
    int64_t count = -1;
    assert_int_equal(idem_client_forget_older(scene->client, age_ms, &count, &scene->error),
                     IDEM_CLIENT_OK);
    return count;
}

static void an_age_counts_up_to_the_last_time_that_the_journal_has(void **state)
{
    struct scene *scene = *state;
    const int64_t day_ms = IDEM_US_PER_DAY / IDEM_US_PER_MS;
    int64_t count = -1;
    struct idem_client_request request = request_of(scene, "done", "/ok");
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);
    request = request_of(scene, "lost", "/close");
    request.deadline_ms = 200;
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_UNKNOWN);
    assert_int_equal(idem_client_forget_older(scene->client, day_ms - 1, &count, &scene->error),
                     IDEM_CLIENT_E_INVALID);

    scene->clock.wall_ahead_us = 400 * IDEM_US_PER_DAY; /* Nothing has run at that time. */
    assert_true(older_forget(scene, day_ms) == 0);
    request = request_of(scene, "later", "/ok");
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);
    scene->clock.wall_ahead_us = 0; /* That time was wrong. */
    assert_true(older_forget(scene, day_ms) == 0);
    scene->clock.wall_ahead_us = 401 * IDEM_US_PER_DAY;
    assert_true(older_forget(scene, 401 * day_ms) == 0);
    assert_true(older_forget(scene, INT64_MAX) == 0);
    assert_true(older_forget(scene, 399 * day_ms) == 1);
    assert_true(older_forget(scene, day_ms) == 0);

    struct idem_client_intent *intent;
    assert_int_equal(idem_client_resume(scene->client, "done", NULL, &intent, &scene->error),
                     IDEM_CLIENT_E_UNKNOWN);
    assert_int_equal(idem_client_resume(scene->client, "lost", NULL, &intent, &scene->error),
                     IDEM_CLIENT_OK);
    assert_int_equal(idem_client_resume(scene->client, "later", NULL, &intent, &scene->error),
                     IDEM_CLIENT_OK);
}

static void what_ends_while_the_calendar_is_behind_is_not_old(void **state)
{
    struct scene *scene = *state;
    const int64_t day_ms = IDEM_US_PER_DAY / IDEM_US_PER_MS;
    struct idem_client_request request = request_of(scene, "before", "/ok");
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);
    request = request_of(scene, "lost", "/close");
    request.deadline_ms = 200;
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_UNKNOWN);
    scene->clock.wall_ahead_us = -2000 * IDEM_US_PER_DAY;
    request = request_of(scene, "behind", "/ok");
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);
    assert_int_equal(idem_client_decide(scene->client, "lost", true, "seen", &scene->error),
                     IDEM_CLIENT_OK);
    scene->clock.wall_ahead_us = 0;
    request = request_of(scene, "after", "/ok");
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);
    assert_true(older_forget(scene, day_ms) == 0);
}

static void what_another_client_has_run_since_counts(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "old", "/ok");
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);
    scene->clock.wall_ahead_us = 10 * IDEM_US_PER_DAY;
    struct scene other = *scene; /* The same journal, peer and time. */
    client_open(&other);
    request = request_of(&other, "later", "/ok");
    assert_int_equal(run(&other, intend(&other, &request))->outcome, IDEM_CLIENT_DONE);
    idem_client_close(other.client);
    assert_true(older_forget(scene, IDEM_US_PER_DAY / IDEM_US_PER_MS) == 1);
}

static void a_handle_of_what_was_forgotten_sends_nothing(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/ok");
    struct idem_client_intent *intent = intend(scene, &request);
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_DONE);
    scene->clock.wall_ahead_us = 10 * IDEM_US_PER_DAY;
    request = request_of(scene, "order-2", "/ok");
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);
    unsigned arrivals = peer_arrivals(scene->peer);
    assert_true(older_forget(scene, IDEM_US_PER_DAY / IDEM_US_PER_MS) == 1);
    assert_int_equal(idem_client_run(intent, &scene->error), IDEM_CLIENT_E_UNKNOWN);
    assert_non_null(strstr(scene->error.text, "forgotten meanwhile"));
    assert_int_equal(peer_arrivals(scene->peer), arrivals);

    /* The same of one that would be sent. */
    peer_answer(scene->peer, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    request = request_of(scene, "order-3", "/set");
    intent = intend(scene, &request);
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_REFUSED);
    assert_int_equal(idem_client_forget(scene->client, "order-3", &scene->error), IDEM_CLIENT_OK);
    arrivals = peer_arrivals(scene->peer);
    assert_int_equal(idem_client_run(intent, &scene->error), IDEM_CLIENT_E_UNKNOWN);
    assert_non_null(strstr(scene->error.text, "forgotten meanwhile"));
    assert_int_equal(peer_arrivals(scene->peer), arrivals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_A_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        IN_A_SCENE(an_age_counts_up_to_the_last_time_that_the_journal_has),
        IN_A_SCENE(what_ends_while_the_calendar_is_behind_is_not_old),
        IN_A_SCENE(what_another_client_has_run_since_counts),
        IN_A_SCENE(a_handle_of_what_was_forgotten_sends_nothing),
    };
    return cmocka_run_group_tests_name("client/client_forget", tests, NULL, NULL);
}
