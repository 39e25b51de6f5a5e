/*
 * The course of a run, walked.
 *
 * Goal: a run never says that nothing happened while something may have happened or may yet, never
 * sends where a send is not allowed, and always ends; whatever is answered, in whatever order, and
 * however the scene changes meanwhile.
 *
 * Method: every sequence of five readings under every change from one kind of scene to another,
 * and long random walks. Each move is judged by books that the test keeps for itself from what was
 * promised (struct books), and before and after each one the run is cut, on a copy. Then every
 * reading for ever, as fast as it can go. A failure prints the sequence, or the seed of its walk.
 */
#include "client/course.h"

#include "lib/test.h"

#include "course_scene.h"

#define SEED     UINT64_C(20261129)
#define WALKS    60000
#define WALK_LEN 50
#define LEN      5  /* Of the sequences that are walked completely. */
#define READINGS 15 /* Five meanings, three nexts. */

/*
 * What the test knows of a run: no more than what was sent, asked and answered. A broken promise
 * is a sentence; NULL is none.
 */
struct books {
    bool maybe;    /* Of this key something may have been carried out, or may yet. */
    bool shut;     /* Nothing may be sent any more. */
    bool left;     /* Something was sent that did not stay here for certain. */
    unsigned idle; /* Questions in a row without one since nothing may be sent. */
};

/* A request and what came of it, as the course was told. */
struct event {
    struct idem_course_scene scene;
    struct idem_reading reading;
    bool asked;
    bool first; /* There was no request yet. */
};

static void books_read(struct books *books, const struct event *event)
{
    bool away = event->reading.meaning == IDEM_MEANING_TURNED_AWAY;
    bool running = event->reading.meaning == IDEM_MEANING_RUNNING;
    bool again = event->reading.next == IDEM_NEXT_AGAIN;

    books->left = books->left || (!event->asked && !(away && event->scene.unsent));
    books->maybe = event->reading.meaning != IDEM_MEANING_REFUSED && (books->maybe || !away);
    if (event->asked && books->shut) {
        books->idle = running ? 0 : books->idle + 1;
    }
    bool lost = event->asked && event->reading.meaning == IDEM_MEANING_UNSURE && again;
    bool told_off = event->reading.next == IDEM_NEXT_STOP;
    bool sent_away = !event->asked && !running && !again;
    books->shut = books->shut || lost || told_off || sent_away;
}

static const char *send_judge(const struct books *books,
                              const struct event *event,
                              const struct idem_move *move)
{
    const struct idem_course_scene *scene = &event->scene;
    bool free = event->first || event->reading.meaning == IDEM_MEANING_RUNNING;
    /* No pause is so long that the sum could overflow: the longest is about the last limit. */
    int64_t at_us = scene->now_us + move->pause_us;

    if (books->shut) {
        return "sent after it was closed";
    }
    if (!event->first && event->reading.next != IDEM_NEXT_AGAIN) {
        return "sent although the answer does not say again";
    }
    if (at_us >= scene->send_until_us || at_us >= scene->deadline_us) {
        return "sent too late";
    }
    if (at_us >= scene->window_us) {
        return "sent after the key may be forgotten";
    }
    if (move->repeat == free) {
        return "the wrong one pays";
    }
    if (move->repeat && !scene->budget) {
        return "sent without budget";
    }
    return move->pause_us < event->reading.retry_after_us ? "sent before the server's wish" : NULL;
}

static const char *ask_judge(const struct books *books,
                             const struct event *event,
                             const struct idem_move *move)
{
    const struct idem_course_scene *scene = &event->scene;
    if (!scene->can_ask) {
        return "asked where nobody can be asked";
    }
    if (!books->maybe) {
        return "asked about nothing";
    }
    if (scene->now_us + move->pause_us >= scene->deadline_us) {
        return "asked after the deadline";
    }
    if (event->asked && event->reading.next == IDEM_NEXT_STOP) {
        return "asked although asking does not help";
    }
    if (books->idle >= IDEM_COURSE_LAST_ASKS) {
        return "asked too often";
    }
    bool early = event->asked && move->pause_us < event->reading.retry_after_us;
    return early ? "asked again before the server's wish" : NULL;
}

static const char *end_judge(const struct books *books,
                             const struct event *event,
                             const struct idem_move *move)
{
    enum idem_meaning last = event->first ? IDEM_MEANING_NONE : event->reading.meaning;
    bool done = last == IDEM_MEANING_DONE;
    if (move->over != (done || last == IDEM_MEANING_REFUSED)) {
        return "over without the server's final word, or not over with it";
    }
    if (done != (move->outcome == IDEM_CLIENT_DONE)) {
        return "done without done, or not done with it";
    }
    if (!done && books->maybe && move->outcome != IDEM_CLIENT_UNKNOWN) {
        return "REFUSED ALTHOUGH IT MAY HAVE HAPPENED";
    }
    if (!done && !books->maybe && move->outcome != IDEM_CLIENT_REFUSED) {
        return "unknown although nothing can have happened";
    }
    if (move->reason == IDEM_CLIENT_NOT_SENT && (books->left || books->maybe)) {
        return "not sent although something left";
    }
    return move->reason == IDEM_CLIENT_REASON_NONE ? "no reason" : NULL;
}

/* Judges a move, and takes the course's own closing into the books: it must keep to that, too. */
static const char *books_judge(struct books *books,
                               const struct event *event,
                               const struct idem_move *move,
                               const struct idem_course *course)
{
    const char *broken = "no move";
    if (move->pause_us < 0) {
        return "a pause that ends before it begins";
    }
    switch (move->kind) {
    case IDEM_MOVE_NONE:
        break;
    case IDEM_MOVE_SEND:
        broken = send_judge(books, event, move);
        break;
    case IDEM_MOVE_ASK:
        broken = ask_judge(books, event, move);
        break;
    case IDEM_MOVE_END:
        broken = end_judge(books, event, move);
        break;
    }
    books->shut = books->shut || course->closing;
    return broken;
}

/* If the run were cut now, with a send under way or without. */
static const char *cut_judge(const struct books *books, const struct idem_course *course, bool sent)
{
    struct idem_course copy = *course;
    struct idem_move move = idem_course_cut(&copy, sent, IDEM_CLIENT_STOPPED);
    bool unknown = move.outcome == IDEM_CLIENT_UNKNOWN;
    if (move.kind != IDEM_MOVE_END || move.reason != IDEM_CLIENT_STOPPED || move.over) {
        return "cut, and not stopped";
    }
    return unknown != (books->maybe || sent) ? "cut with the wrong outcome" : NULL;
}

/* A run in progress with its books. */
struct walk {
    struct idem_course course;
    struct books books;
    struct idem_move move;
};

static const char *walk_begin(struct walk *walk, const struct idem_course_scene *scene, bool doubt)
{
    struct event event = { .scene = *scene, .first = true };
    *walk = (struct walk){ .books = { .maybe = doubt } };
    idem_course_begin(&walk->course, doubt);
    walk->move = idem_course_first(&walk->course, scene);
    return books_judge(&walk->books, &event, &walk->move, &walk->course);
}

static const char *walk_step(struct walk *walk,
                             const struct idem_course_scene *scene,
                             struct idem_reading reading)
{
    struct event event = {
        .scene = *scene,
        .reading = reading,
        .asked = walk->move.kind == IDEM_MOVE_ASK,
    };
    const char *broken = cut_judge(&walk->books, &walk->course, !event.asked);
    if (broken != NULL) {
        return broken;
    }
    books_read(&walk->books, &event);
    walk->move = idem_course_next(&walk->course, scene, reading, event.asked);
    if (walk->course.doubt != walk->books.maybe) {
        return "doubt without cause, or none with cause";
    }
    broken = books_judge(&walk->books, &event, &walk->move, &walk->course);
    if (broken == NULL && walk->move.kind != IDEM_MOVE_END) {
        broken = cut_judge(&walk->books, &walk->course, false);
    }
    return broken;
}

static const unsigned powers[LEN + 1] = { 1, 15, 225, 3375, 50625, 759375 };

static struct idem_reading reading_at(unsigned sequence, unsigned step)
{
    unsigned digit = sequence / powers[LEN - 1 - step] % READINGS;
    return reading_of((enum idem_meaning)(IDEM_MEANING_DONE + digit / 3),
                      (enum idem_next)(digit % 3));
}

/* How the scene changes in a set of sequences: to another kind after `after` readings. */
struct change {
    const struct kind *before;
    const struct kind *behind;
    unsigned after;
    bool doubt;
};

static void fail_at(const char *broken,
                    const struct change *change,
                    unsigned sequence,
                    unsigned steps)
{
    print_error("%s: doubt %d, %s, after %u readings %s:", broken, change->doubt,
                change->before->name, change->after, change->behind->name);
    for (unsigned i = 0; i < steps; i++) {
        struct idem_reading reading = reading_at(sequence, i);
        print_error(" %s-%s", meaning_words[reading.meaning], next_words[reading.next]);
    }
    print_error("\n");
    fail();
}

/* Walks one sequence until its run ends; returns how many readings that took. */
static unsigned sequence_walk(const struct change *change, unsigned sequence)
{
    struct walk walk;
    int64_t now_us = NOW;
    struct idem_course_scene scene = scene_of(change->before, now_us);
    int64_t deadline_us = scene.deadline_us;
    unsigned steps = 0;
    const char *broken = walk_begin(&walk, &scene, change->doubt);

    while (broken == NULL && walk.move.kind != IDEM_MOVE_END && steps < LEN) {
        now_us += walk.move.pause_us + SECOND / 100;
        scene = scene_of(steps < change->after ? change->before : change->behind, now_us);
        if (deadline_us < scene.deadline_us) { /* Time passes for all kinds alike. */
            scene.send_until_us -= scene.deadline_us - deadline_us;
            scene.deadline_us = deadline_us;
        }
        broken = walk_step(&walk, &scene, reading_at(sequence, steps));
        steps++;
    }
    if (broken != NULL) {
        fail_at(broken, change, sequence, steps);
    }
    return steps;
}

/* Sequences that only differ behind the end of their run are one. */
static unsigned long sequences_walk(const struct change *change)
{
    unsigned long count = 0;
    for (unsigned sequence = 0; sequence < powers[LEN];) {
        unsigned steps = sequence_walk(change, sequence);
        unsigned same = powers[LEN - steps];
        sequence += same - sequence % same;
        count++;
    }
    return count;
}

static void every_sequence_of_five_readings_keeps_the_promises(void **state)
{
    (void)state;
    unsigned long count = 0;
    for (unsigned i = 0; i < KINDS * KINDS; i++) {
        for (unsigned after = 1; after < LEN; after++) {
            struct change change = { &kinds[i / KINDS], &kinds[i % KINDS], after, false };
            count += sequences_walk(&change);
            change.doubt = true;
            count += sequences_walk(&change);
        }
    }
    print_message("%lu different runs\n", count);
    assert_true(count > 100000);
}

static uint64_t noise(uint64_t *seed)
{
    uint64_t mixed = *seed += UINT64_C(0x9E3779B97F4A7C15); /* SplitMix64. */
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

static bool chance(uint64_t *seed, unsigned percent)
{
    return noise(seed) % 100 < percent;
}

/* A wild walk is short, a calm one long; both have their own surprises. */
static struct idem_reading reading_random(uint64_t *seed, unsigned wild)
{
    struct idem_reading reading = reading_of(
        (enum idem_meaning)(IDEM_MEANING_TURNED_AWAY + noise(seed) % 3), IDEM_NEXT_AGAIN);
    if (chance(seed, wild)) {
        reading.next = (enum idem_next)(noise(seed) % 3);
    }
    if (chance(seed, wild / 8)) {
        reading.meaning = (enum idem_meaning)(IDEM_MEANING_DONE + noise(seed) % 2);
    }
    if (chance(seed, 20)) {
        reading.retry_after_us = (int64_t)(noise(seed) % (uint64_t)(5 * SECOND));
    }
    return reading;
}

static struct idem_course_scene scene_random(uint64_t *seed, int64_t deadline_us, unsigned wild)
{
    int64_t window_us = NOW + (int64_t)(noise(seed) % (uint64_t)(900 * SECOND));
    if (!chance(seed, wild)) {
        window_us = chance(seed, wild / 4) ? INT64_MIN : INT64_MAX;
    }
    return (struct idem_course_scene){
        .deadline_us = deadline_us,
        .send_until_us = deadline_us - 2 * SECOND,
        .window_us = window_us,
        .budget = !chance(seed, wild),
        .can_ask = !chance(seed, wild),
        .unsent = chance(seed, 20),
        .dice = noise(seed),
        .backoff_first_us = SECOND / 5,
        .backoff_max_us = 20 * SECOND,
    };
}

/* Returns the readings it took; fails with the walk's own seed. */
static unsigned random_walk(uint64_t seed)
{
    uint64_t own = seed;
    struct walk walk;
    unsigned steps = 0;
    int64_t now_us = NOW;
    int64_t deadline_us = NOW + (int64_t)(noise(&own) % (uint64_t)(1200 * SECOND));
    unsigned wild = (unsigned)(noise(&own) % 30);
    struct idem_course_scene scene = scene_random(&own, deadline_us, wild);
    scene.now_us = now_us;
    const char *broken = walk_begin(&walk, &scene, chance(&own, 30));

    while (broken == NULL && walk.move.kind != IDEM_MOVE_END && steps < WALK_LEN) {
        now_us += walk.move.pause_us + (int64_t)(noise(&own) % (uint64_t)SECOND);
        scene = scene_random(&own, deadline_us, wild);
        scene.now_us = now_us;
        broken = walk_step(&walk, &scene, reading_random(&own, wild));
        if (now_us >= deadline_us && walk.move.kind != IDEM_MOVE_END) {
            broken = "goes on after its deadline";
        }
        steps++;
    }
    if (broken != NULL) {
        print_error("%s: seed %llu, reading %u\n", broken, (unsigned long long)seed, steps);
        fail();
    }
    return steps;
}

static void long_random_walks_keep_the_promises(void **state)
{
    (void)state;
    unsigned long readings = 0;
    unsigned longest = 0;
    for (uint64_t i = 0; i < WALKS; i++) {
        unsigned steps = random_walk(SEED + i);
        readings += steps;
        longest = steps > longest ? steps : longest;
    }
    print_message("seed %llu: %d walks, %lu readings, at most %u\n", (unsigned long long)SEED,
                  WALKS, readings, longest);
    assert_int_equal(longest, WALK_LEN); /* Else it is not the long ones that were walked. */
}

/* The most eager run there can be: pauses of nothing, requests of ten milliseconds. */
static void whatever_is_answered_for_ever_every_run_ends(void **state)
{
    (void)state;
    for (unsigned i = 0; i < READINGS * KINDS; i++) {
        struct idem_course course;
        struct idem_course_scene scene = scene_of(&kinds[i % KINDS], NOW);
        struct idem_reading reading = reading_at(i / KINDS, LEN - 1);
        scene.dice = 0;
        unsigned moves = 1;
        idem_course_begin(&course, false);
        struct idem_move move = idem_course_first(&course, &scene);
        for (; move.kind != IDEM_MOVE_END && moves < 7000; moves++) {
            scene.now_us += move.pause_us + SECOND / 100;
            move = idem_course_next(&course, &scene, reading, move.kind == IDEM_MOVE_ASK);
        }
        assert_int_equal(move.kind, IDEM_MOVE_END);
        assert_true(moves <= 6001);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sequence_of_five_readings_keeps_the_promises),
        cmocka_unit_test(long_random_walks_keep_the_promises),
        cmocka_unit_test(whatever_is_answered_for_ever_every_run_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
