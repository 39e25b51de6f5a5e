/*
 * cursor.h - how far a list was read that comes in pages, each of which names the next one.
 *
 * Whoever gives the pages may be wrong: one that names itself, or a page before it, has no end, and
 * is noticed a few pages later (at most three times as many as were read when it came to the first
 * page that it gives again), with memory for two cursors.
 */
#ifndef IDEM_CLI_CURSOR_H
#define IDEM_CLI_CURSOR_H

#include <stdint.h>

#include "base/json.h"

#define IDEM_CURSOR_MAX       256      /* Bytes, with the terminator. */
#define IDEM_CURSOR_COUNT_MAX 10000000 /* Longer lists there are none. */

/* Begins as zeros: before the first page. */
struct idem_cursor {
    char text[IDEM_CURSOR_MAX]; /* Of the page to read now; empty: the first. */
    char mark[IDEM_CURSOR_MAX]; /* One that was read before. */
    uint64_t count;             /* How many were taken. */
    uint64_t mark_next;         /* At which count the mark moves. */
};

enum idem_cursor_step {
    IDEM_CURSOR_NEXT = 0,
    IDEM_CURSOR_END,       /* That was the last page. */
    IDEM_CURSOR_AGAIN,     /* The next page was read before, or they are too many. */
    IDEM_CURSOR_UNREADABLE /* The page does not say what comes next. */
};

/* Takes the member "next" of a page, an object: some text, or null behind the last one. */
enum idem_cursor_step idem_cursor_take(struct idem_cursor *cursor, const struct idem_json *json);

#endif /* IDEM_CLI_CURSOR_H */
