/*
 * schedule.h - what happens when: events in the order of time, and of their making.
 *
 * Threads: one.
 */
#ifndef IDEM_SIM_SCHEDULE_H
#define IDEM_SIM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_event {
    int64_t at_us;
    uint64_t order;
    void (*happen)(void *what);
    void *what; /* Borrowed until it happened. */
};

struct sim_schedule {
    struct sim_event *events; /* A heap: the next one first. */
    size_t count;
    size_t max;
    uint64_t made;
};

void sim_schedule_deinit(struct sim_schedule *schedule);

void sim_schedule_add(struct sim_schedule *schedule,
                      int64_t at_us,
                      void (*happen)(void *what),
                      void *what);

/* INT64_MAX: nothing will. */
int64_t sim_schedule_next_us(const struct sim_schedule *schedule);

/* There is one. */
struct sim_event sim_schedule_take(struct sim_schedule *schedule);

#endif /* IDEM_SIM_SCHEDULE_H */
