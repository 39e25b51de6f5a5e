/*
 *             unknown_min and unknown_percent of what ended in the window
 *   CLOSED ------------------------------------------------------------------> OPEN
 *      ^                                                                     ^   | open_us
 *      |  `probes` answers, or no probe for window_us   one silence          |   v
 *      +--------------------------------- HALF_OPEN ------------------------+<--+
 *
 * Whoever waits is a probe at once when it is half-open. If there was none for a whole window, then
 * nothing piles up and what did has left the window. Without that a provider without traffic would
 * stay half-open for ever, and with it what does not know yet whether it leads there.
 *
 * An outcome speaks of the time when its send left. What left before the present state began says
 * nothing about it: a send that hangs for a minute and ends unknown behind the reopening would
 * otherwise open it again, and again.
 *
 * The ways that time takes are taken by whoever asks first when it has come.
 */
#include "engine/breaker.h"

#include "base/bug.h"

static bool is_on(const struct idem_breaker *breaker)
{
    return breaker->rules.unknown_min > 0;
}

static void enter(struct idem_breaker *breaker, enum idem_breaker_state state, int64_t now_us)
{
    breaker->state = state;
    breaker->since_us = now_us;
    breaker->tried_us = now_us;
    breaker->successes = 0;
    for (size_t i = 0; i < IDEM_BREAKER_PARTS; i++) {
        breaker->parts[i] = (struct idem_breaker_part){ .ended = 0 };
    }
    breaker->openings += state == IDEM_BREAKER_OPEN ? 1 : 0;
}

void idem_breaker_init(struct idem_breaker *breaker,
                       const struct idem_breaker_rules *rules,
                       int64_t now_us)
{
    *breaker = (struct idem_breaker){ .rules = *rules };
    if (is_on(breaker)) {
        IDEM_ASSERT(rules->window_us >= IDEM_BREAKER_PARTS);
        IDEM_ASSERT(rules->probes > 0);
    }
    enter(breaker, IDEM_BREAKER_CLOSED, now_us);
}

enum idem_breaker_state idem_breaker_state(const struct idem_breaker *breaker, int64_t now_us)
{
    bool is_over = now_us - breaker->since_us >= breaker->rules.open_us;
    bool is_quiet = breaker->probes == 0 && now_us - breaker->tried_us >= breaker->rules.window_us;
    switch (breaker->state) {
    case IDEM_BREAKER_CLOSED:
        return IDEM_BREAKER_CLOSED;
    case IDEM_BREAKER_HALF_OPEN:
        return is_quiet ? IDEM_BREAKER_CLOSED : IDEM_BREAKER_HALF_OPEN;
    case IDEM_BREAKER_OPEN:
        return is_over ? IDEM_BREAKER_HALF_OPEN : IDEM_BREAKER_OPEN;
    case IDEM_BREAKER_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

bool idem_breaker_lets(struct idem_breaker *breaker, int64_t now_us)
{
    enum idem_breaker_state state = idem_breaker_state(breaker, now_us);
    if (state != breaker->state) {
        enter(breaker, state, now_us);
    }
    switch (breaker->state) {
    case IDEM_BREAKER_CLOSED:
        return true;
    case IDEM_BREAKER_HALF_OPEN:
        return breaker->probes < breaker->rules.probes;
    case IDEM_BREAKER_OPEN:
        return false;
    case IDEM_BREAKER_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

bool idem_breaker_go(struct idem_breaker *breaker, int64_t now_us)
{
    if (breaker->state != IDEM_BREAKER_HALF_OPEN) {
        return false;
    }
    breaker->probes += 1;
    idem_breaker_held(breaker, now_us);
    return true;
}

void idem_breaker_probe_over(struct idem_breaker *breaker, int64_t now_us)
{
    IDEM_ASSERT(breaker->probes > 0);
    breaker->probes -= 1;
    idem_breaker_held(breaker, now_us);
}

void idem_breaker_held(struct idem_breaker *breaker, int64_t until_us)
{
    breaker->tried_us = until_us > breaker->tried_us ? until_us : breaker->tried_us;
}

/* The part of the window that is now; those that have left it begin anew. */
static struct idem_breaker_part *newest_part(struct idem_breaker *breaker, int64_t now_us)
{
    int64_t now_no = now_us / (breaker->rules.window_us / IDEM_BREAKER_PARTS);
    if (now_no - breaker->part_no > IDEM_BREAKER_PARTS) {
        breaker->part_no = now_no - IDEM_BREAKER_PARTS;
    }
    while (breaker->part_no < now_no) {
        breaker->part_no += 1;
        breaker->parts[breaker->part_no % IDEM_BREAKER_PARTS] =
            (struct idem_breaker_part){ .ended = 0 };
    }
    return &breaker->parts[now_no % IDEM_BREAKER_PARTS];
}

static bool piles_up(const struct idem_breaker *breaker)
{
    uint64_t ended = 0;
    uint64_t unknown = 0;
    for (size_t i = 0; i < IDEM_BREAKER_PARTS; i++) {
        ended += breaker->parts[i].ended;
        unknown += breaker->parts[i].unknown;
    }
    return unknown >= breaker->rules.unknown_min &&
           unknown * 100 >= ended * breaker->rules.unknown_percent;
}

static void heard_closed(struct idem_breaker *breaker, bool unknown, int64_t now_us)
{
    struct idem_breaker_part *part = newest_part(breaker, now_us);
    part->ended += 1;
    part->unknown += unknown ? 1 : 0;
    if (piles_up(breaker)) {
        enter(breaker, IDEM_BREAKER_OPEN, now_us);
    }
}

static void heard_half_open(struct idem_breaker *breaker, bool unknown, int64_t now_us)
{
    if (unknown) {
        enter(breaker, IDEM_BREAKER_OPEN, now_us);
        return;
    }
    breaker->successes += 1;
    if (breaker->successes >= breaker->rules.probes) {
        enter(breaker, IDEM_BREAKER_CLOSED, now_us);
    }
}

void idem_breaker_heard(struct idem_breaker *breaker, bool unknown, int64_t left_us, int64_t now_us)
{
    if (!is_on(breaker) || left_us < breaker->since_us) {
        return;
    }
    switch (breaker->state) {
    case IDEM_BREAKER_CLOSED:
        heard_closed(breaker, unknown, now_us);
        return;
    case IDEM_BREAKER_HALF_OPEN:
        heard_half_open(breaker, unknown, now_us);
        return;
    case IDEM_BREAKER_OPEN:
        return; /* A second send of recovery: the pause is for first ones, and lasts. */
    case IDEM_BREAKER_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

int64_t idem_breaker_next_us(const struct idem_breaker *breaker, int64_t now_us)
{
    switch (idem_breaker_state(breaker, now_us)) {
    case IDEM_BREAKER_CLOSED:
        return now_us;
    case IDEM_BREAKER_HALF_OPEN:
        return breaker->probes < breaker->rules.probes ? now_us : INT64_MAX;
    case IDEM_BREAKER_OPEN:
        return breaker->since_us + breaker->rules.open_us;
    case IDEM_BREAKER_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

const char *idem_breaker_state_name(enum idem_breaker_state state)
{
    static const char *const names[IDEM_BREAKER_COUNT] = {
        [IDEM_BREAKER_CLOSED] = "closed",
        [IDEM_BREAKER_HALF_OPEN] = "half_open",
        [IDEM_BREAKER_OPEN] = "open",
    };
    IDEM_ASSERT(state < IDEM_BREAKER_COUNT);
    return names[state];
}
