/*
 * breaker.h - what stops first sends to a provider that has stopped answering.
 *
 * A send whose outcome is unknown may have moved money, and each one costs questions or a person.
 * While they pile up, more of them help nobody: the breaker opens and no first send goes there.
 * After a pause a few are let through; if they are answered it closes, and one silence opens it
 * again. Where nothing wants to go there it closes as well, after a while. What brings certainty
 * about earlier sends (questions, closes, second sends of recovery) never asks here.
 *
 * Pure: monotonic time and outcomes in, a yes or no out. The diagram is in breaker.c.
 */
#ifndef IDEM_ENGINE_BREAKER_H
#define IDEM_ENGINE_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rules.h"

enum idem_breaker_state {
    IDEM_BREAKER_CLOSED = 0, /* Everything goes through. */
    IDEM_BREAKER_HALF_OPEN,  /* A few go through, to see. */
    IDEM_BREAKER_OPEN,       /* Nothing new goes through. */
    IDEM_BREAKER_COUNT
};

#define IDEM_BREAKER_PARTS 10 /* Of the window, which slides by one of them. */

/* Sends that ended in one part of the window. */
struct idem_breaker_part {
    uint32_t ended;
    uint32_t unknown;
};

struct idem_breaker {
    struct idem_breaker_rules rules;
    enum idem_breaker_state state;
    int64_t since_us; /* When it came into its state. */
    int64_t tried_us; /* Half-open: when that was, or a probe last left or came back. */
    struct idem_breaker_part parts[IDEM_BREAKER_PARTS];
    int64_t part_no;    /* Of the newest part: time by parts. */
    uint32_t probes;    /* Let through half-open, and not back yet. */
    uint32_t successes; /* Since it is half-open. */
    uint64_t openings;
};

void idem_breaker_init(struct idem_breaker *breaker,
                       const struct idem_breaker_rules *rules,
                       int64_t now_us);

/* Whether a first send may go now. */
bool idem_breaker_lets(struct idem_breaker *breaker, int64_t now_us);

/* One goes that was let. True: as a probe, which must come back by idem_breaker_probe_over(). */
bool idem_breaker_go(struct idem_breaker *breaker, int64_t now_us);
void idem_breaker_probe_over(struct idem_breaker *breaker, int64_t now_us);

/* Nobody goes there before `until_us`, by the provider's wish: that is no quiet. */
void idem_breaker_held(struct idem_breaker *breaker, int64_t until_us);

/* A send that left at `left_us` has ended: with an answer, or its outcome is not known. */
void idem_breaker_heard(struct idem_breaker *breaker,
                        bool unknown,
                        int64_t left_us,
                        int64_t now_us);

/* When time alone lets one through: INT64_MAX: it does not; not later than `now_us`: already. */
int64_t idem_breaker_next_us(const struct idem_breaker *breaker, int64_t now_us);

/* Its state now. */
enum idem_breaker_state idem_breaker_state(const struct idem_breaker *breaker, int64_t now_us);

const char *idem_breaker_state_name(enum idem_breaker_state state); /* "closed", "half_open" ... */

#endif /* IDEM_ENGINE_BREAKER_H */
