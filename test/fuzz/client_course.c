/*
 * Fuzzes the course of a run: any readings in any order, under any limits.
 *
 * The input is one byte (bit 0: the key may have been used before) and four bytes a step: what the
 * answer meant and what it advised, how things stand, the server's wish and how late the move is.
 * Time passes by each move's pause at least. Properties, with books of our own that know only what
 * was sent and what was heard:
 *   - DONE is said on the server's word and on nothing else; REFUSED on the server's word about the
 *     whole key, or where nothing can have been carried out; and whoever heard either says it;
 *   - a send begins before deadline, reserve and window end, only after an answer that advises it,
 *     no earlier than the server wished, paid for if it is a repeat, and never once the run asks
 *     only: so not after a question that found no record;
 *   - a question is asked only in doubt, where there is somebody to ask, and before the deadline;
 *   - a run that asks only ends after a few questions that found nothing out;
 *   - cut off at any moment it says UNKNOWN if anything may have been carried out.
 */
#include "client/course.h"

#include "base/clock.h"

#include "fuzz/fuzz.h"

#define STEP_SIZE  4
#define STEPS_MAX  256
#define DEADLINE   (60 * IDEM_US_PER_SECOND)
#define SEND_UNTIL (50 * IDEM_US_PER_SECOND)

/* What is known without the course. */
struct books {
    bool may_have; /* Something of this key may have been carried out, or may yet be. */
    bool asks_only;
    unsigned lost_asks; /* Questions of an asks_only run since the server last had it. */
    int64_t now_us;
    int64_t window_us;
};

static struct idem_course_scene scene_of(const struct books *books, const uint8_t *step)
{
    return (struct idem_course_scene){
        .now_us = books->now_us,
        .deadline_us = DEADLINE,
        .send_until_us = SEND_UNTIL,
        .window_us = books->window_us,
        .budget = (step[1] & 1) != 0,
        .can_ask = (step[1] & 2) != 0,
        .dice = (uint64_t)step[3] * UINT64_C(0x9E3779B97F4A7C15),
        .backoff_first_us = IDEM_US_PER_SECOND / 2,
        .backoff_max_us = (step[1] & 8) != 0 ? DEADLINE : 4 * IDEM_US_PER_SECOND,
    };
}

static struct idem_reading reading_of(const uint8_t *step)
{
    static const int64_t wishes[] = {
        0, 1, IDEM_US_PER_SECOND, 20 * IDEM_US_PER_SECOND, IDEM_US_PER_DAY, INT64_MAX / 4
    };
    unsigned meaning = IDEM_MEANING_DONE + step[0] % (IDEM_MEANING_COUNT - IDEM_MEANING_DONE);
    return (struct idem_reading){
        .meaning = (enum idem_meaning)meaning,
        .next = (enum idem_next)(step[0] / 8 % 3),
        .why = "fuzzed",
        .retry_after_us = wishes[step[2] % 6],
    };
}

/* What an answer to a send or a question (`asked`) tells us about the money. */
static void heard(struct books *books, const struct idem_reading *reading, bool asked)
{
    if (reading->meaning == IDEM_MEANING_REFUSED) {
        books->may_have = false;
    } else if (reading->meaning != IDEM_MEANING_TURNED_AWAY) {
        books->may_have = true;
    }
    bool advised = reading->next == IDEM_NEXT_STOP || (reading->next == IDEM_NEXT_ASK && !asked);
    bool running = reading->meaning == IDEM_MEANING_RUNNING;
    bool lost = asked && reading->meaning == IDEM_MEANING_UNSURE;
    books->lost_asks = running ? 0 : books->lost_asks + (books->asks_only && asked ? 1 : 0);
    if ((advised && !(running && reading->next == IDEM_NEXT_ASK)) ||
        (lost && reading->next == IDEM_NEXT_AGAIN)) {
        books->asks_only = true;
    }
}

static void check_end(const struct books *books,
                      const struct idem_move *move,
                      enum idem_meaning meaning)
{
    FUZZ_EXPECT(move->outcome == IDEM_CLIENT_DONE || move->outcome == IDEM_CLIENT_REFUSED ||
                move->outcome == IDEM_CLIENT_UNKNOWN);
    FUZZ_EXPECT((move->outcome == IDEM_CLIENT_DONE) == (meaning == IDEM_MEANING_DONE));
    FUZZ_EXPECT(meaning != IDEM_MEANING_REFUSED || move->outcome == IDEM_CLIENT_REFUSED);
    FUZZ_EXPECT(move->outcome != IDEM_CLIENT_REFUSED || !books->may_have);
    FUZZ_EXPECT(move->outcome != IDEM_CLIENT_UNKNOWN || books->may_have);
    FUZZ_EXPECT(move->over == (meaning == IDEM_MEANING_DONE || meaning == IDEM_MEANING_REFUSED));
    FUZZ_EXPECT(move->reason != IDEM_CLIENT_REASON_NONE);
}

/* `reading` NULL: the first move. */
static void check_move(struct books *books,
                       const struct idem_course_scene *scene,
                       const struct idem_move *move,
                       const struct idem_reading *reading)
{
    enum idem_meaning meaning = reading != NULL ? reading->meaning : IDEM_MEANING_NONE;
    bool last = meaning == IDEM_MEANING_DONE || meaning == IDEM_MEANING_REFUSED;
    FUZZ_EXPECT(move->kind == IDEM_MOVE_END || !last);
    FUZZ_EXPECT(move->pause_us >= 0);
    switch (move->kind) {
    case IDEM_MOVE_END:
        check_end(books, move, meaning);
        return;
    case IDEM_MOVE_SEND:
        FUZZ_EXPECT(!books->asks_only);
        FUZZ_EXPECT(move->pause_us < SEND_UNTIL - scene->now_us);
        FUZZ_EXPECT(scene->window_us > scene->now_us);
        FUZZ_EXPECT(move->pause_us < scene->window_us - scene->now_us);
        FUZZ_EXPECT(reading == NULL || reading->next == IDEM_NEXT_AGAIN);
        FUZZ_EXPECT(reading == NULL || move->pause_us >= reading->retry_after_us);
        FUZZ_EXPECT(!move->repeat || scene->budget);
        FUZZ_EXPECT(reading == NULL || move->repeat || meaning == IDEM_MEANING_RUNNING);
        return;
    case IDEM_MOVE_ASK:
        FUZZ_EXPECT(books->may_have && scene->can_ask);
        FUZZ_EXPECT(move->pause_us < DEADLINE - scene->now_us);
        FUZZ_EXPECT(books->lost_asks <= IDEM_COURSE_LAST_ASKS);
        return;
    case IDEM_MOVE_NONE:
        break;
    }
    FUZZ_EXPECT(move->kind == IDEM_MOVE_END); /* It is none that there is. */
}

/* Cut off now, on a copy: as a stop or the deadline would. */
static void check_cut(const struct idem_course *course, const struct books *books, bool on_wire)
{
    struct idem_course copy = *course;
    struct idem_move move = idem_course_cut(&copy, on_wire, IDEM_CLIENT_STOPPED);
    bool doubt = books->may_have || on_wire;
    FUZZ_EXPECT(move.kind == IDEM_MOVE_END && !move.over && move.reason == IDEM_CLIENT_STOPPED);
    FUZZ_EXPECT(move.outcome == (doubt ? IDEM_CLIENT_UNKNOWN : IDEM_CLIENT_REFUSED));
}

static void time_pass(struct books *books, const struct idem_move *move, uint8_t late)
{
    books->now_us += move->pause_us + (int64_t)late * late * 1000;
    books->now_us = books->now_us < 2 * DEADLINE ? books->now_us : 2 * DEADLINE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t windows[] = { INT64_MIN, 0, 5 * IDEM_US_PER_SECOND, DEADLINE, INT64_MAX };
    static const uint8_t generous[STEP_SIZE] = { 0, 3, 0, 0 };
    struct idem_course course;
    if (size < 1) {
        return 0;
    }
    struct books books = { .may_have = (data[0] & 1) != 0, .window_us = windows[data[0] / 2 % 5] };
    struct idem_course_scene scene = scene_of(&books, generous);
    idem_course_begin(&course, books.may_have);
    struct idem_move move = idem_course_first(&course, &scene);
    books.asks_only = move.kind != IDEM_MOVE_SEND;
    check_move(&books, &scene, &move, NULL);
    for (size_t at = 1;
         at + STEP_SIZE <= size && at < (size_t)STEPS_MAX * STEP_SIZE && move.kind != IDEM_MOVE_END;
         at += STEP_SIZE) {
        const uint8_t *step = data + at;
        bool asked = move.kind == IDEM_MOVE_ASK;
        struct idem_reading reading = reading_of(step);
        check_cut(&course, &books, (step[1] & 4) != 0);
        time_pass(&books, &move, step[3]);
        scene = scene_of(&books, step);
        scene.unsent = !asked && reading.meaning == IDEM_MEANING_TURNED_AWAY && (step[1] & 4) != 0;
        heard(&books, &reading, asked);
        move = idem_course_next(&course, &scene, reading, asked);
        check_move(&books, &scene, &move, &reading);
        /* A send that a limit forbids is the last: from here on it only asks. */
        books.asks_only = books.asks_only || course.closing;
    }
    return 0;
}
