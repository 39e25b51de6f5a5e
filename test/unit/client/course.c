/*
 * The course of a run.
 *
 * Goal: each answer leads to the move that the policy names, in every kind of scene; the pauses,
 * the number of last questions, and the reasons that are told are as promised.
 *
 * Method: a policy grid written by hand, every reading in every kind of scene, compared as text;
 * then the numbers, each at its limit. Sequences of readings are course_walk.c.
 *
 * In the grid: "send" is asked for by the server and free, "send$" is paid by the budget; "ask!" is
 * a question of a run that will not send any more; r- and u- are REFUSED and UNKNOWN with their
 * reason, DONE and REFUSED in capitals are over.
 */
#include "client/course.h"

#include "lib/test.h"

#include "course_scene.h"

static const char no_doubt_sent[] =
    "no doubt, answer to a send\n"
    "                 free      mute      broke     late      stale     mute+broke passed\n"
    "done      stop   DONE      DONE      DONE      DONE      DONE      DONE       DONE\n"
    "refused   stop   REFUSED   REFUSED   REFUSED   REFUSED   REFUSED   REFUSED    REFUSED\n"
    "away      stop   r-advised r-advised r-advised r-advised r-advised r-advised  r-advised\n"
    "away      again  send$     send$     r-budget  r-deadl   r-window  r-budget   r-deadl\n"
    "away      ask    r-advised r-advised r-advised r-advised r-advised r-advised  r-advised\n"
    "running   stop   ask!      u-advised ask!      ask!      ask!      u-advised  u-advised\n"
    "running   again  send      send      send      ask!      ask!      send       u-deadl\n"
    "running   ask    ask       u-advised ask       ask       ask       u-advised  u-deadl\n"
    "unsure    stop   u-advised u-advised u-advised u-advised u-advised u-advised  u-advised\n"
    "unsure    again  send$     send$     ask!      ask!      ask!      u-budget   u-deadl\n"
    "unsure    ask    ask!      u-advised ask!      ask!      ask!      u-advised  u-advised\n";

static const char doubt_sent[] =
    "doubt, answer to a send\n"
    "                 free      mute      broke     late      stale     mute+broke passed\n"
    "done      stop   DONE      DONE      DONE      DONE      DONE      DONE       DONE\n"
    "refused   stop   REFUSED   REFUSED   REFUSED   REFUSED   REFUSED   REFUSED    REFUSED\n"
    "away      stop   ask!      u-advised ask!      ask!      ask!      u-advised  u-advised\n"
    "away      again  send$     send$     ask!      ask!      ask!      u-budget   u-deadl\n"
    "away      ask    ask!      u-advised ask!      ask!      ask!      u-advised  u-advised\n"
    "running   stop   ask!      u-advised ask!      ask!      ask!      u-advised  u-advised\n"
    "running   again  send      send      send      ask!      ask!      send       u-deadl\n"
    "running   ask    ask       u-advised ask       ask       ask       u-advised  u-deadl\n"
    "unsure    stop   u-advised u-advised u-advised u-advised u-advised u-advised  u-advised\n"
    "unsure    again  send$     send$     ask!      ask!      ask!      u-budget   u-deadl\n"
    "unsure    ask    ask!      u-advised ask!      ask!      ask!      u-advised  u-advised\n";

static const char doubt_asked[] =
    "doubt, answer to a question\n"
    "                 free      mute      broke     late      stale     mute+broke passed\n"
    "done      stop   DONE      DONE      DONE      DONE      DONE      DONE       DONE\n"
    "refused   stop   REFUSED   REFUSED   REFUSED   REFUSED   REFUSED   REFUSED    REFUSED\n"
    "away      stop   u-advised u-advised u-advised u-advised u-advised u-advised  u-advised\n"
    "away      again  send$     send$     ask!      ask!      ask!      u-budget   u-deadl\n"
    "away      ask    ask       u-advised ask       ask       ask       u-advised  u-deadl\n"
    "running   stop   u-advised u-advised u-advised u-advised u-advised u-advised  u-advised\n"
    "running   again  ask       u-advised ask       ask       ask       u-advised  u-deadl\n"
    "running   ask    ask       u-advised ask       ask       ask       u-advised  u-deadl\n"
    "unsure    stop   u-advised u-advised u-advised u-advised u-advised u-advised  u-advised\n"
    "unsure    again  ask!      u-window  ask!      ask!      ask!      u-window   u-window\n"
    "unsure    ask    ask       u-advised ask       ask       ask       u-advised  u-deadl\n";

static const char no_doubt_asked[] =
    "no doubt, answer to a question\n"
    "                 free      mute      broke     late      stale     mute+broke passed\n"
    "done      stop   DONE      DONE      DONE      DONE      DONE      DONE       DONE\n"
    "refused   stop   REFUSED   REFUSED   REFUSED   REFUSED   REFUSED   REFUSED    REFUSED\n"
    "away      stop   r-advised r-advised r-advised r-advised r-advised r-advised  r-advised\n"
    "away      again  send$     send$     r-budget  r-deadl   r-window  r-budget   r-deadl\n"
    "away      ask    r-advised r-advised r-advised r-advised r-advised r-advised  r-advised\n"
    "running   stop   u-advised u-advised u-advised u-advised u-advised u-advised  u-advised\n"
    "running   again  ask       u-advised ask       ask       ask       u-advised  u-deadl\n"
    "running   ask    ask       u-advised ask       ask       ask       u-advised  u-deadl\n"
    "unsure    stop   u-advised u-advised u-advised u-advised u-advised u-advised  u-advised\n"
    "unsure    again  ask!      u-window  ask!      ask!      ask!      u-window   u-window\n"
    "unsure    ask    ask       u-advised ask       ask       ask       u-advised  u-deadl\n";

/* It was closed by the deadline of sends; whatever is said now, that stays the reason. */
static const char closing_asked[] =
    "closing, answer to a question\n"
    "                 free      mute      broke     late      stale     mute+broke passed\n"
    "done      stop   DONE      DONE      DONE      DONE      DONE      DONE       DONE\n"
    "refused   stop   REFUSED   REFUSED   REFUSED   REFUSED   REFUSED   REFUSED    REFUSED\n"
    "away      stop   u-deadl   u-deadl   u-deadl   u-deadl   u-deadl   u-deadl    u-deadl\n"
    "away      again  ask!      u-deadl   ask!      ask!      ask!      u-deadl    u-deadl\n"
    "away      ask    ask!      u-deadl   ask!      ask!      ask!      u-deadl    u-deadl\n"
    "running   stop   u-deadl   u-deadl   u-deadl   u-deadl   u-deadl   u-deadl    u-deadl\n"
    "running   again  ask!      u-deadl   ask!      ask!      ask!      u-deadl    u-deadl\n"
    "running   ask    ask!      u-deadl   ask!      ask!      ask!      u-deadl    u-deadl\n"
    "unsure    stop   u-deadl   u-deadl   u-deadl   u-deadl   u-deadl   u-deadl    u-deadl\n"
    "unsure    again  ask!      u-deadl   ask!      ask!      ask!      u-deadl    u-deadl\n"
    "unsure    ask    ask!      u-deadl   ask!      ask!      ask!      u-deadl    u-deadl\n";

static const char *const reason_words[] = {
    [IDEM_CLIENT_REASON_NONE] = "none",  [IDEM_CLIENT_ANSWERED] = "answered",
    [IDEM_CLIENT_NOT_SENT] = "not-sent", [IDEM_CLIENT_DEADLINE] = "deadl",
    [IDEM_CLIENT_BUDGET] = "budget",     [IDEM_CLIENT_WINDOW] = "window",
    [IDEM_CLIENT_ADVISED] = "advised",   [IDEM_CLIENT_STOPPED] = "stopped",
};

/* A course in the middle of its run. */
static struct idem_course course_of(bool doubt, bool closing)
{
    struct idem_course course;
    idem_course_begin(&course, doubt);
    course.left = true;
    course.closing = closing;
    course.reason = closing ? IDEM_CLIENT_DEADLINE : IDEM_CLIENT_REASON_NONE;
    return course;
}

static void cell_put(struct idem_buf *buf, const struct idem_course *course, struct idem_move move)
{
    switch (move.kind) {
    case IDEM_MOVE_NONE:
        idem_buf_printf(buf, "none");
        return;
    case IDEM_MOVE_SEND:
        idem_buf_printf(buf, move.repeat ? "send$" : "send");
        return;
    case IDEM_MOVE_ASK:
        idem_buf_printf(buf, course->closing ? "ask!" : "ask");
        return;
    case IDEM_MOVE_END:
        break;
    }
    if (move.over) {
        idem_buf_printf(buf, move.outcome == IDEM_CLIENT_DONE ? "DONE" : "REFUSED");
        return;
    }
    idem_buf_printf(buf, "%s-%s", move.outcome == IDEM_CLIENT_REFUSED ? "r" : "u",
                    reason_words[move.reason]);
}

static void row_put(struct idem_buf *buf,
                    struct idem_reading reading,
                    const struct idem_course *begin,
                    bool asked)
{
    idem_buf_printf(buf, "%-9s %-6s", meaning_words[reading.meaning], next_words[reading.next]);
    for (size_t i = 0; i < KINDS; i++) {
        char memory[32];
        struct idem_buf cell;
        struct idem_course course = *begin;
        struct idem_course_scene scene = scene_of(&kinds[i], NOW);
        struct idem_move move = idem_course_next(&course, &scene, reading, asked);
        idem_buf_init(&cell, memory, sizeof(memory));
        cell_put(&cell, &course, move);
        int width = i == KINDS - 2 ? 10 : 9; /* "mute+broke" is the widest. */
        idem_buf_printf(buf, " %-*.*s", i + 1 == KINDS ? 0 : width, (int)cell.len, cell.data);
    }
    idem_buf_printf(buf, "\n");
}

static void expect_grid(const char *expected, struct idem_course begin, bool asked)
{
    char memory[4096];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add(&buf, idem_str_slice(idem_str_from(expected), 0,
                                      (size_t)(strstr(expected, "done ") - expected)));
    row_put(&buf, reading_of(IDEM_MEANING_DONE, IDEM_NEXT_STOP), &begin, asked);
    row_put(&buf, reading_of(IDEM_MEANING_REFUSED, IDEM_NEXT_STOP), &begin, asked);
    for (enum idem_meaning meaning = IDEM_MEANING_TURNED_AWAY; meaning < IDEM_MEANING_COUNT;
         meaning++) {
        for (enum idem_next next = IDEM_NEXT_STOP; next <= IDEM_NEXT_ASK; next++) {
            row_put(&buf, reading_of(meaning, next), &begin, asked);
        }
    }
    assert_false(buf.full);
    EXPECT_TEXT(idem_buf_str(&buf), expected);
}

static void every_reading_in_every_scene_follows_the_policy(void **state)
{
    (void)state;
    expect_grid(no_doubt_sent, course_of(false, false), false);
    expect_grid(doubt_sent, course_of(true, false), false);
    expect_grid(doubt_asked, course_of(true, false), true);
    expect_grid(no_doubt_asked, course_of(false, false), true);
    expect_grid(closing_asked, course_of(true, true), true);
}

static const char first_moves[] =
    "no doubt: send send send r-not-sent r-window send r-not-sent\n"
    "doubt: send send send ask! ask! send u-deadl\n";

static void the_first_move_is_a_send_wherever_one_is_allowed(void **state)
{
    (void)state;
    char memory[512];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    for (int doubt = 0; doubt < 2; doubt++) {
        idem_buf_printf(&buf, doubt == 0 ? "no doubt:" : "doubt:");
        for (size_t i = 0; i < KINDS; i++) {
            struct idem_course course;
            struct idem_course_scene scene = scene_of(&kinds[i], NOW);
            idem_course_begin(&course, doubt != 0);
            struct idem_move move = idem_course_first(&course, &scene);
            assert_int_equal(move.pause_us, 0);
            idem_buf_printf(&buf, " ");
            cell_put(&buf, &course, move);
        }
        idem_buf_printf(&buf, "\n");
    }
    EXPECT_TEXT(idem_buf_str(&buf), first_moves);
}

static struct idem_move after(struct idem_course *course,
                              const struct idem_course_scene *scene,
                              enum idem_meaning meaning,
                              enum idem_next next,
                              bool asked)
{
    return idem_course_next(course, scene, reading_of(meaning, next), asked);
}

static void a_closing_run_asks_few_times_and_once_if_the_budget_closed_it(void **state)
{
    (void)state;
    static const struct {
        const struct kind *kind;
        unsigned asks;
    } cases[] = { { &kinds[3], IDEM_COURSE_LAST_ASKS }, { &kinds[2], 1 } };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        struct idem_course_scene scene = scene_of(cases[i].kind, NOW);
        struct idem_course course = course_of(false, false);
        unsigned asks = 0;
        struct idem_move move = after(&course, &scene, IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN, false);
        while (move.kind == IDEM_MOVE_ASK) {
            asks++;
            move = after(&course, &scene, IDEM_MEANING_UNSURE, IDEM_NEXT_ASK, true);
        }
        assert_int_equal(asks, cases[i].asks);
        assert_int_equal(move.outcome, IDEM_CLIENT_UNKNOWN);
    }
}

static void the_question_of_an_empty_budget_is_scattered_most_widely(void **state)
{
    (void)state;
    struct idem_course_scene scene = scene_of(&kinds[2], NOW);
    struct idem_course course = course_of(false, false);
    scene.dice = (uint64_t)scene.backoff_max_us;
    struct idem_move move = after(&course, &scene, IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN, false);
    assert_int_equal(move.kind, IDEM_MOVE_ASK);
    assert_int_equal(move.pause_us, scene.backoff_max_us);
}

static void running_gives_a_closing_run_its_questions_back(void **state)
{
    (void)state;
    struct idem_course_scene scene = scene_of(&kinds[0], NOW);
    struct idem_course course = course_of(true, true);
    for (int i = 0; i < 2 * IDEM_COURSE_LAST_ASKS; i++) {
        struct idem_move move =
            after(&course, &scene, i % 2 == 0 ? IDEM_MEANING_UNSURE : IDEM_MEANING_RUNNING,
                  IDEM_NEXT_ASK, true);
        assert_int_equal(move.kind, IDEM_MOVE_ASK);
    }
}

static void a_server_that_is_at_it_is_asked_until_the_deadline(void **state)
{
    (void)state;
    struct idem_course_scene scene = scene_of(&kinds[3], NOW);
    struct idem_course course = course_of(false, false);
    struct idem_move move = after(&course, &scene, IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN, false);
    unsigned asks = 0;
    while (move.kind == IDEM_MOVE_ASK) {
        asks++;
        scene.now_us += move.pause_us;
        move = after(&course, &scene, IDEM_MEANING_RUNNING, IDEM_NEXT_ASK, true);
    }
    assert_in_range(asks, IDEM_COURSE_LAST_ASKS + 1, 30);
    assert_true(scene.deadline_us - scene.now_us <= scene.backoff_first_us);
    assert_int_equal(move.reason, IDEM_CLIENT_DEADLINE);
}

static void a_server_that_forgot_what_it_had_is_not_sent_to_again(void **state)
{
    (void)state;
    struct idem_course_scene scene = scene_of(&kinds[0], NOW);
    struct idem_course course = course_of(false, false);
    (void)after(&course, &scene, IDEM_MEANING_RUNNING, IDEM_NEXT_ASK, false);
    struct idem_move move = { .kind = IDEM_MOVE_ASK };
    for (unsigned i = 0; i <= IDEM_COURSE_LAST_ASKS; i++) {
        assert_int_equal(move.kind, IDEM_MOVE_ASK);
        move = after(&course, &scene, IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN, true);
    }
    assert_int_equal(move.kind, IDEM_MOVE_END);
    assert_int_equal(move.outcome, IDEM_CLIENT_UNKNOWN);
    assert_int_equal(move.reason, IDEM_CLIENT_WINDOW);
}

static void what_the_server_gave_back_is_sent_again(void **state)
{
    (void)state;
    struct idem_course_scene scene = scene_of(&kinds[0], NOW);
    struct idem_course course = course_of(false, false);
    (void)after(&course, &scene, IDEM_MEANING_RUNNING, IDEM_NEXT_ASK, false);
    struct idem_move move = after(&course, &scene, IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN, true);
    assert_int_equal(move.kind, IDEM_MOVE_SEND);
    assert_true(move.repeat);
}

static void pauses_grow_with_failures_and_begin_anew_when_the_server_is_at_it(void **state)
{
    (void)state;
    struct idem_course_scene scene = scene_of(&kinds[0], NOW);
    struct idem_course course = course_of(false, false);
    struct idem_move move = { .kind = IDEM_MOVE_NONE };
    for (int64_t bound_us = scene.backoff_first_us; bound_us < 4 * SECOND; bound_us *= 2) {
        scene.dice = (uint64_t)bound_us; /* The longest pause of that bound. */
        move = after(&course, &scene, IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN, false);
        assert_int_equal(move.pause_us, bound_us);
    }
    scene.dice = (uint64_t)scene.backoff_first_us;
    move = after(&course, &scene, IDEM_MEANING_RUNNING, IDEM_NEXT_AGAIN, false);
    assert_int_equal(move.pause_us, scene.backoff_first_us);
    scene.dice *= 2;
    move = after(&course, &scene, IDEM_MEANING_RUNNING, IDEM_NEXT_AGAIN, false);
    assert_int_equal(move.pause_us, 2 * scene.backoff_first_us);
    scene.dice = (uint64_t)scene.backoff_first_us + 1; /* One more than fits: nothing. */
    move = after(&course, &scene, IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN, false);
    assert_int_equal(move.pause_us, 0);
}

static void a_wish_beyond_the_end_is_set_aside_for_one_question(void **state)
{
    (void)state;
    struct idem_course_scene scene = scene_of(&kinds[0], NOW);
    struct idem_course course = course_of(false, false);
    struct idem_reading reading = reading_of(IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN);
    reading.retry_after_us = INT64_MAX;
    struct idem_move move = idem_course_next(&course, &scene, reading, false);
    assert_int_equal(move.kind, IDEM_MOVE_ASK);
    assert_true(move.pause_us <= scene.backoff_first_us);
    move = idem_course_next(&course, &scene, reading, true);
    assert_int_equal(move.kind, IDEM_MOVE_END);
    assert_int_equal(move.reason, IDEM_CLIENT_DEADLINE);
}

static void a_send_at_the_very_limit_is_not_made(void **state)
{
    (void)state;
    struct idem_course_scene scene = scene_of(&kinds[1], NOW);
    struct idem_reading reading = reading_of(IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN);
    scene.dice = 0;
    reading.retry_after_us = scene.send_until_us - scene.now_us - 1;
    struct idem_course course = course_of(false, false);
    assert_int_equal(idem_course_next(&course, &scene, reading, false).kind, IDEM_MOVE_SEND);
    scene.window_us = scene.send_until_us - 1;
    course = course_of(false, false);
    assert_int_equal(idem_course_next(&course, &scene, reading, false).reason, IDEM_CLIENT_WINDOW);
    scene.window_us = INT64_MAX;
    reading.retry_after_us += 1;
    course = course_of(false, false);
    assert_int_equal(idem_course_next(&course, &scene, reading, false).reason,
                     IDEM_CLIENT_DEADLINE);
    scene.deadline_us = scene.send_until_us - 1; /* Whichever of the two comes first. */
    reading.retry_after_us = scene.deadline_us - scene.now_us;
    course = course_of(false, false);
    assert_int_equal(idem_course_next(&course, &scene, reading, false).kind, IDEM_MOVE_END);
}

static void a_deadline_is_used_to_its_end(void **state)
{
    (void)state;
    for (uint64_t dice = 1; dice < 200; dice++) {
        struct idem_course course;
        struct idem_course_scene scene = scene_of(&kinds[0], NOW);
        struct idem_move move = { .kind = IDEM_MOVE_SEND };
        int sends = 0;
        scene.dice = dice * UINT64_C(0x9E3779B97F4A7C15);
        idem_course_begin(&course, false);
        while (move.kind == IDEM_MOVE_SEND) {
            sends += 1;
            scene.dice ^= scene.dice << 13; /* Marsaglia's xorshift. */
            scene.dice ^= scene.dice >> 7;
            scene.dice ^= scene.dice << 17;
            move = after(&course, &scene, IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN, false);
            scene.now_us += move.pause_us;
        }
        assert_int_equal(move.kind, IDEM_MOVE_END);
        assert_in_range(scene.send_until_us - scene.now_us, 0, scene.backoff_first_us);
        assert_in_range(sends, 3, 40);
    }
}

static void not_sent_is_said_only_if_no_send_left(void **state)
{
    (void)state;
    struct idem_course_scene scene = scene_of(&kinds[5], NOW);
    struct idem_course course;
    scene.unsent = true;
    idem_course_begin(&course, false);
    struct idem_move move =
        after(&course, &scene, IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN, false);
    assert_int_equal(move.reason, IDEM_CLIENT_NOT_SENT);
    assert_int_equal(move.outcome, IDEM_CLIENT_REFUSED);
    scene.unsent = false;
    idem_course_begin(&course, false);
    move = after(&course, &scene, IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN, false);
    assert_int_equal(move.reason, IDEM_CLIENT_BUDGET);
    scene.unsent = true;
    idem_course_begin(&course, true);
    move = after(&course, &scene, IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN, false);
    assert_int_equal(move.reason, IDEM_CLIENT_BUDGET);
    assert_int_equal(move.outcome, IDEM_CLIENT_UNKNOWN);
}

static void a_cut_run_is_refused_only_without_doubt_and_without_a_send_under_way(void **state)
{
    (void)state;
    static const struct {
        bool doubt;
        bool on_wire;
        enum idem_client_reason reason;
        enum idem_client_outcome outcome;
        enum idem_client_reason told;
    } cases[] = {
        { false, false, IDEM_CLIENT_STOPPED, IDEM_CLIENT_REFUSED, IDEM_CLIENT_STOPPED },
        { false, false, IDEM_CLIENT_DEADLINE, IDEM_CLIENT_REFUSED, IDEM_CLIENT_NOT_SENT },
        { false, true, IDEM_CLIENT_DEADLINE, IDEM_CLIENT_UNKNOWN, IDEM_CLIENT_DEADLINE },
        { true, false, IDEM_CLIENT_STOPPED, IDEM_CLIENT_UNKNOWN, IDEM_CLIENT_STOPPED },
        { true, true, IDEM_CLIENT_STOPPED, IDEM_CLIENT_UNKNOWN, IDEM_CLIENT_STOPPED },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        struct idem_course course;
        idem_course_begin(&course, cases[i].doubt);
        struct idem_move move = idem_course_cut(&course, cases[i].on_wire, cases[i].reason);
        assert_int_equal(move.kind, IDEM_MOVE_END);
        assert_int_equal(move.outcome, cases[i].outcome);
        assert_int_equal(move.reason, cases[i].told);
        assert_false(move.over);
    }
    struct idem_course course = course_of(true, true);
    course.reason = IDEM_CLIENT_WINDOW;
    assert_int_equal(idem_course_cut(&course, false, IDEM_CLIENT_DEADLINE).reason,
                     IDEM_CLIENT_WINDOW);
    assert_int_equal(idem_course_cut(&course, false, IDEM_CLIENT_STOPPED).reason,
                     IDEM_CLIENT_STOPPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reading_in_every_scene_follows_the_policy),
        cmocka_unit_test(the_first_move_is_a_send_wherever_one_is_allowed),
        cmocka_unit_test(a_closing_run_asks_few_times_and_once_if_the_budget_closed_it),
        cmocka_unit_test(the_question_of_an_empty_budget_is_scattered_most_widely),
        cmocka_unit_test(running_gives_a_closing_run_its_questions_back),
        cmocka_unit_test(a_server_that_is_at_it_is_asked_until_the_deadline),
        cmocka_unit_test(a_server_that_forgot_what_it_had_is_not_sent_to_again),
        cmocka_unit_test(what_the_server_gave_back_is_sent_again),
        cmocka_unit_test(pauses_grow_with_failures_and_begin_anew_when_the_server_is_at_it),
        cmocka_unit_test(a_wish_beyond_the_end_is_set_aside_for_one_question),
        cmocka_unit_test(a_send_at_the_very_limit_is_not_made),
        cmocka_unit_test(a_deadline_is_used_to_its_end),
        cmocka_unit_test(not_sent_is_said_only_if_no_send_left),
        cmocka_unit_test(a_cut_run_is_refused_only_without_doubt_and_without_a_send_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
