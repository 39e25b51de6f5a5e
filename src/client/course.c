/*
 * The course of a run.
 *
 * Two things here can cost money, and each has one place. "Nothing happened" is said only by end(),
 * and only without doubt; doubt is set only in note(), for every reading that does not exclude that
 * the request was or will be carried out, and is taken away only by REFUSED. A send is moved only
 * by send_or_close(), which asks forbidden() about every limit; a run that is closing never comes
 * there.
 *
 *     note()    books: doubt, how often
 *     wanted()  what the reading leads to, limits aside; closes the run where no send may follow
 *     send_or_close(), ask_or_end(), end()   the move within the limits
 *
 * Why "no record" is not a reason to send again, although the key would make that safe: whoever is
 * asked was asked because an answer had said that the key is known (202), or should not be sent
 * (410, 412, 5xx that is stored). A server that then has no record has lost it, and with it what
 * would stop a repeat. A lost send whose record is looked for is repeated by the next run.
 */
#include "client/course.h"

#include <limits.h>

#include "base/bug.h"
#include "client/pace.h"

static void close_for(struct idem_course *course, enum idem_client_reason reason)
{
    IDEM_ASSERT(reason != IDEM_CLIENT_REASON_NONE);
    if (!course->closing) {
        course->closing = true;
        course->reason = reason;
    }
}

/* NOT_SENT says more than why the tries ended, except where that makes the next run fail too. */
static enum idem_client_reason told(const struct idem_course *course)
{
    bool lasting = course->reason == IDEM_CLIENT_WINDOW || course->reason == IDEM_CLIENT_STOPPED;
    return course->doubt || course->left || lasting ? course->reason : IDEM_CLIENT_NOT_SENT;
}

static struct idem_move end(const struct idem_course *course)
{
    IDEM_ASSERT(course->closing);
    return (struct idem_move){
        .kind = IDEM_MOVE_END,
        .outcome = course->doubt ? IDEM_CLIENT_UNKNOWN : IDEM_CLIENT_REFUSED,
        .reason = told(course),
    };
}

static struct idem_move end_answered(enum idem_client_outcome outcome)
{
    return (struct idem_move){
        .kind = IDEM_MOVE_END,
        .outcome = outcome,
        .reason = IDEM_CLIENT_ANSWERED,
        .over = true,
    };
}

/* Whether something that begins after `pause_us` begins before `limit_us`. */
static bool begins_before(const struct idem_course_scene *scene, int64_t pause_us, int64_t limit_us)
{
    return limit_us > scene->now_us && pause_us < limit_us - scene->now_us;
}

/*
 * Why a send after `pause_us` is not allowed; NONE: it is. Of two limits the one that comes first
 * is named, and a window that has ended before a deadline that has.
 */
static enum idem_client_reason forbidden(const struct idem_course_scene *scene,
                                         int64_t pause_us,
                                         bool repeat)
{
    int64_t until_us =
        scene->deadline_us < scene->send_until_us ? scene->deadline_us : scene->send_until_us;
    bool window_first = scene->window_us <= until_us || scene->window_us <= scene->now_us;
    if (window_first && !begins_before(scene, pause_us, scene->window_us)) {
        return IDEM_CLIENT_WINDOW;
    }
    if (!begins_before(scene, pause_us, until_us)) {
        return IDEM_CLIENT_DEADLINE;
    }
    return repeat && !scene->budget ? IDEM_CLIENT_BUDGET : IDEM_CLIENT_REASON_NONE;
}

static void note(struct idem_course *course,
                 const struct idem_course_scene *scene,
                 enum idem_meaning meaning)
{
    course->left = course->left || !scene->unsent;
    if (meaning == IDEM_MEANING_REFUSED) {
        course->doubt = false;
    } else if (meaning != IDEM_MEANING_TURNED_AWAY) {
        course->doubt = true;
    }
    if (meaning == IDEM_MEANING_RUNNING) {
        course->waits += course->waits < UINT_MAX ? 1 : 0;
        course->failures = 0;
        course->last_asks = 0;
        return;
    }
    course->failures += course->failures < UINT_MAX ? 1 : 0;
    course->last_asks += course->closing ? 1 : 0; /* Whoever is closing only asks. */
}

/* The move that a reading leads to if no limit stands against it. */
static enum idem_move_kind wanted(struct idem_course *course,
                                  const struct idem_reading *reading,
                                  bool asked)
{
    bool running = reading->meaning == IDEM_MEANING_RUNNING;
    bool unsure = reading->meaning == IDEM_MEANING_UNSURE;

    switch (reading->next) {
    case IDEM_NEXT_STOP:
        close_for(course, IDEM_CLIENT_ADVISED);
        return asked || unsure ? IDEM_MOVE_END : IDEM_MOVE_ASK;
    case IDEM_NEXT_ASK:
        if (!asked && !running) {
            close_for(course, IDEM_CLIENT_ADVISED);
        }
        return IDEM_MOVE_ASK;
    case IDEM_NEXT_AGAIN:
        if (asked && unsure) {
            close_for(course, IDEM_CLIENT_WINDOW);
        }
        return course->closing || (asked && running) ? IDEM_MOVE_ASK : IDEM_MOVE_SEND;
    }
    IDEM_UNREACHABLE();
}

/* How often it failed or was waited for, as the pause before the next move counts it. */
static unsigned steps(const struct idem_course *course, const struct idem_reading *reading)
{
    if (reading->meaning == IDEM_MEANING_RUNNING) {
        return course->waits;
    }
    /* The only question of an outage: as late and as scattered as the back-off goes. */
    bool only = course->closing && course->reason == IDEM_CLIENT_BUDGET;
    return only ? UINT_MAX : course->failures;
}

/* How long sends may still begin. */
static int64_t send_left_us(const struct idem_course_scene *scene)
{
    int64_t until_us = scene->send_until_us;
    until_us = scene->deadline_us < until_us ? scene->deadline_us : until_us;
    until_us = scene->window_us < until_us ? scene->window_us : until_us;
    return until_us > scene->now_us ? until_us - scene->now_us : 0;
}

/*
 * A SEND; or NONE, and the run is closing. The pause is drawn from what is left, so that a deadline
 * is used up to its end: tries become denser there, and the budget counts them as any others.
 */
static struct idem_move send_or_close(struct idem_course *course,
                                      const struct idem_course_scene *scene,
                                      const struct idem_reading *reading)
{
    IDEM_ASSERT(!course->closing);
    int64_t left_us = send_left_us(scene);
    bool short_of_time = left_us > scene->backoff_first_us && left_us <= scene->backoff_max_us;
    struct idem_pause_bounds bounds = {
        .first_us = scene->backoff_first_us,
        .max_us = short_of_time ? left_us - 1 : scene->backoff_max_us,
        .retry_after_us = reading->retry_after_us,
    };
    int64_t pause_us = idem_pause_us(&bounds, steps(course, reading), scene->dice);
    bool repeat = reading->meaning != IDEM_MEANING_RUNNING;
    enum idem_client_reason reason = forbidden(scene, pause_us, repeat);
    if (reason != IDEM_CLIENT_REASON_NONE) {
        close_for(course, reason);
        return (struct idem_move){ .kind = IDEM_MOVE_NONE };
    }
    return (struct idem_move){ .kind = IDEM_MOVE_SEND, .pause_us = pause_us, .repeat = repeat };
}

static bool may_ask(const struct idem_course *course, const struct idem_course_scene *scene)
{
    unsigned max = course->reason == IDEM_CLIENT_BUDGET ? 1 : IDEM_COURSE_LAST_ASKS;
    return course->doubt && scene->can_ask && course->last_asks < max;
}

/*
 * A question, after a pause of at most half of what is left, so that the end of the run is used. A
 * wish of the server that goes beyond the end is set aside for one question after a send; after a
 * question there is nothing new to find in so short a time.
 */
static struct idem_move ask_or_end(struct idem_course *course,
                                   const struct idem_course_scene *scene,
                                   const struct idem_reading *reading,
                                   bool asked)
{
    int64_t left_us = scene->deadline_us > scene->now_us ? scene->deadline_us - scene->now_us : 0;
    if (!may_ask(course, scene)) {
        close_for(course, IDEM_CLIENT_ADVISED);
        return end(course);
    }
    struct idem_pause_bounds bounds = {
        .first_us = scene->backoff_first_us,
        .max_us = scene->backoff_max_us < left_us / 2 ? scene->backoff_max_us : left_us / 2,
        .retry_after_us = reading->retry_after_us,
    };
    int64_t pause_us = idem_pause_us(&bounds, steps(course, reading), scene->dice);
    if (!asked && pause_us >= left_us) {
        bounds.retry_after_us = 0;
        pause_us = idem_pause_us(&bounds, steps(course, reading), scene->dice);
    }
    if (pause_us >= left_us || (asked && left_us <= scene->backoff_first_us)) {
        close_for(course, IDEM_CLIENT_DEADLINE);
        return end(course);
    }
    return (struct idem_move){ .kind = IDEM_MOVE_ASK, .pause_us = pause_us };
}

void idem_course_begin(struct idem_course *course, bool doubt)
{
    *course = (struct idem_course){ .doubt = doubt };
}

struct idem_move idem_course_first(struct idem_course *course,
                                   const struct idem_course_scene *scene)
{
    IDEM_ASSERT(scene->now_us >= 0);
    IDEM_ASSERT(!course->closing);

    enum idem_client_reason reason = forbidden(scene, 0, false);
    if (reason == IDEM_CLIENT_REASON_NONE) {
        return (struct idem_move){ .kind = IDEM_MOVE_SEND };
    }
    close_for(course, reason);
    if (may_ask(course, scene) && begins_before(scene, 0, scene->deadline_us)) {
        return (struct idem_move){ .kind = IDEM_MOVE_ASK };
    }
    return end(course);
}

/* What follows an answer that is not the last word. */
static struct idem_move follow(struct idem_course *course,
                               const struct idem_course_scene *scene,
                               const struct idem_reading *reading,
                               bool asked)
{
    enum idem_move_kind kind = wanted(course, reading, asked);
    if (kind == IDEM_MOVE_END) {
        return end(course);
    }
    if (kind == IDEM_MOVE_SEND) {
        struct idem_move move = send_or_close(course, scene, reading);
        if (move.kind == IDEM_MOVE_SEND) {
            return move;
        }
    }
    return ask_or_end(course, scene, reading, asked);
}

struct idem_move idem_course_next(struct idem_course *course,
                                  const struct idem_course_scene *scene,
                                  struct idem_reading reading,
                                  bool asked)
{
    IDEM_ASSERT(scene->now_us >= 0);
    note(course, scene, reading.meaning);
    switch (reading.meaning) {
    case IDEM_MEANING_DONE:
        return end_answered(IDEM_CLIENT_DONE);
    case IDEM_MEANING_REFUSED:
        return end_answered(IDEM_CLIENT_REFUSED);
    case IDEM_MEANING_TURNED_AWAY:
    case IDEM_MEANING_RUNNING:
    case IDEM_MEANING_UNSURE:
        return follow(course, scene, &reading, asked);
    case IDEM_MEANING_NONE:
    case IDEM_MEANING_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

struct idem_move idem_course_cut(struct idem_course *course,
                                 bool on_wire,
                                 enum idem_client_reason reason)
{
    course->doubt = course->doubt || on_wire;
    close_for(course, reason);
    if (reason == IDEM_CLIENT_STOPPED) {
        course->reason = reason;
    }
    return end(course);
}
