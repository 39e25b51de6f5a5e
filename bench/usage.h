/*
 * usage.h - who used the processors between two looks: our own threads, those of watched
 * processes, and everybody else.
 */
#ifndef IDEM_BENCH_USAGE_H
#define IDEM_BENCH_USAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BENCH_WATCHED_MAX 4  /* Processes. */
#define BENCH_THREADS_MAX 64 /* Of all of them. */

struct bench_thread {
    pid_t process;
    pid_t id;
    char name[32];
    uint64_t cpu_ns;
};

struct bench_usage {
    struct bench_thread threads[BENCH_THREADS_MAX];
    size_t thread_count;
    uint64_t own_ns;     /* This process. */
    uint64_t machine_ns; /* All processors together, idle time not counted. */
};

void bench_usage_look(const pid_t *processes, size_t count, struct bench_usage *ret_usage);

/* `after` minus `before`, thread by thread; threads that were born between count from zero. */
void bench_usage_since(struct bench_usage *after, const struct bench_usage *before);

struct bench_memory {
    uint64_t now_kib;
    uint64_t peak_kib;
};

/* Zero for a process that is not there. */
struct bench_memory bench_memory_look(pid_t process);

#endif /* IDEM_BENCH_USAGE_H */
