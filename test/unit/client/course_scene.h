/*
 * course_scene.h - how things can stand for a run, by name: what the two tests of its course share.
 */
#ifndef IDEM_TEST_UNIT_CLIENT_COURSE_SCENE_H
#define IDEM_TEST_UNIT_CLIENT_COURSE_SCENE_H

#include "client/course.h"

#include "base/attr.h"

#define SECOND INT64_C(1000000)
#define NOW    (100 * SECOND)

/* Every limit is off unless named. */
struct kind {
    const char *name;
    bool mute;   /* It cannot be asked. */
    bool broke;  /* The budget is empty. */
    bool late;   /* No send may begin any more. */
    bool stale;  /* Nobody can say whether the key is still known. */
    bool passed; /* The deadline is behind. */
};

static const struct kind kinds[] = {
    { .name = "free" },
    { .name = "mute", .mute = true },
    { .name = "broke", .broke = true },
    { .name = "late", .late = true },
    { .name = "stale", .stale = true },
    { .name = "mute+broke", .mute = true, .broke = true },
    { .name = "passed", .late = true, .passed = true },
};

#define KINDS IDEM_ARRAY_COUNT(kinds)

static const char *const meaning_words[IDEM_MEANING_COUNT] = {
    [IDEM_MEANING_DONE] = "done",        [IDEM_MEANING_REFUSED] = "refused",
    [IDEM_MEANING_TURNED_AWAY] = "away", [IDEM_MEANING_RUNNING] = "running",
    [IDEM_MEANING_UNSURE] = "unsure",
};

static const char *const next_words[] = {
    [IDEM_NEXT_STOP] = "stop",
    [IDEM_NEXT_AGAIN] = "again",
    [IDEM_NEXT_ASK] = "ask",
};

static inline struct idem_course_scene scene_of(const struct kind *kind, int64_t now_us)
{
    return (struct idem_course_scene){
        .now_us = now_us,
        .deadline_us = kind->passed ? now_us : now_us + 60 * SECOND,
        .send_until_us = kind->late ? now_us : now_us + 58 * SECOND,
        .window_us = kind->stale ? INT64_MIN : INT64_MAX,
        .budget = !kind->broke,
        .can_ask = !kind->mute,
        .dice = UINT64_C(0x9E3779B97F4A7C15),
        .backoff_first_us = SECOND / 5,
        .backoff_max_us = 20 * SECOND,
    };
}

static inline struct idem_reading reading_of(enum idem_meaning meaning, enum idem_next next)
{
    return (struct idem_reading){ .meaning = meaning, .next = next, .why = "" };
}

#endif /* IDEM_TEST_UNIT_CLIENT_COURSE_SCENE_H */
