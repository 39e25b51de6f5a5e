/*
 * A binary heap. Two events of one moment happen in the order in which they were made, so that a
 * run depends on its seed and on nothing else.
 */
#include "sim/schedule.h"

#include <stdlib.h>

#include "base/bug.h"

static bool comes_first(const struct sim_event *left, const struct sim_event *right)
{
    return left->at_us != right->at_us ? left->at_us < right->at_us : left->order < right->order;
}

static void swap(struct sim_event *left, struct sim_event *right)
{
    struct sim_event kept = *left;
    *left = *right;
    *right = kept;
}

void sim_schedule_deinit(struct sim_schedule *schedule)
{
    free(schedule->events);
    *schedule = (struct sim_schedule){ .count = 0 };
}

static void make_room(struct sim_schedule *schedule)
{
    if (schedule->count < schedule->max) {
        return;
    }
    schedule->max = schedule->max == 0 ? 64 : schedule->max * 2;
    struct sim_event *events = realloc(schedule->events, schedule->max * sizeof(*schedule->events));
    IDEM_ASSERT(events != NULL);
    schedule->events = events;
}

void sim_schedule_add(struct sim_schedule *schedule,
                      int64_t at_us,
                      void (*happen)(void *what),
                      void *what)
{
    make_room(schedule);
    size_t at = schedule->count;
    schedule->count += 1;
    schedule->made += 1;
    schedule->events[at] = (struct sim_event){
        .at_us = at_us,
        .order = schedule->made,
        .happen = happen,
        .what = what,
    };
    while (at > 0 && comes_first(&schedule->events[at], &schedule->events[(at - 1) / 2])) {
        swap(&schedule->events[at], &schedule->events[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

int64_t sim_schedule_next_us(const struct sim_schedule *schedule)
{
    return schedule->count > 0 ? schedule->events[0].at_us : INT64_MAX;
}

static size_t first_child(const struct sim_schedule *schedule, size_t at)
{
    size_t left = 2 * at + 1;
    size_t right = left + 1;
    bool has_right = right < schedule->count;
    return has_right && comes_first(&schedule->events[right], &schedule->events[left]) ? right
                                                                                       : left;
}

struct sim_event sim_schedule_take(struct sim_schedule *schedule)
{
    IDEM_ASSERT(schedule->count > 0);
    struct sim_event taken = schedule->events[0];
    schedule->count -= 1;
    schedule->events[0] = schedule->events[schedule->count];
    size_t at = 0;
    while (2 * at + 1 < schedule->count) {
        size_t child = first_child(schedule, at);
        if (!comes_first(&schedule->events[child], &schedule->events[at])) {
            break;
        }
        swap(&schedule->events[child], &schedule->events[at]);
        at = child;
    }
    return taken;
}
