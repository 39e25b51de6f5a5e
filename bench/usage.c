/*
 * Threads are read from /proc/PID/task/TID/schedstat, which counts nanoseconds; the machine as a
 * whole is only known in hundredths of a second, which a run of seconds forgives.
 */
#include "bench/usage.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The first line of a file without its end; empty if it cannot be read. */
static void line_read(const char *path, char *line, int max)
{
    line[0] = '\0';
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return;
    }
    if (fgets(line, max, file) == NULL) {
        line[0] = '\0';
    }
    line[strcspn(line, "\n")] = '\0';
    (void)fclose(file); /* It was only read. */
}

static void thread_look(pid_t process, const char *id, struct bench_usage *usage)
{
    char path[96];
    char line[128];
    if (usage->thread_count == BENCH_THREADS_MAX) {
        return;
    }
    struct bench_thread *thread = &usage->threads[usage->thread_count];
    thread->process = process;
    thread->id = (pid_t)strtol(id, NULL, 10);
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", process, thread->id);
    line_read(path, line, sizeof(line));
    (void)snprintf(thread->name, sizeof(thread->name), "%.31s", line);
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", process, thread->id);
    line_read(path, line, sizeof(line));
    thread->cpu_ns = strtoull(line, NULL, 10);
    usage->thread_count += 1;
}

static void process_look(pid_t process, struct bench_usage *usage)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", process);
    DIR *tasks = opendir(path);
    if (tasks == NULL) {
        return;
    }
    const struct dirent *entry = NULL;
    while ((entry = readdir(tasks)) != NULL) {
        if (entry->d_name[0] != '.') {
            thread_look(process, entry->d_name, usage);
        }
    }
    (void)closedir(tasks); /* It was only read. */
}

/* user, nice, system, (idle, iowait,) irq, softirq: what was not idle. */
static uint64_t machine_look(void)
{
    char line[256];
    line_read("/proc/stat", line, sizeof(line));
    uint64_t busy = 0;
    char *at = line + strcspn(line, " ");
    for (int field = 0; field < 7; field++) {
        uint64_t ticks = strtoull(at, &at, 10);
        bool idle = field == 3 || field == 4;
        busy += idle ? 0 : ticks;
    }
    return busy * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
}

void bench_usage_look(const pid_t *processes, size_t count, struct bench_usage *ret_usage)
{
    struct timespec own;
    *ret_usage = (struct bench_usage){ .thread_count = 0 };
    for (size_t i = 0; i < count; i++) {
        process_look(processes[i], ret_usage);
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own); /* It always exists. */
    ret_usage->own_ns = (uint64_t)own.tv_sec * 1000000000U + (uint64_t)own.tv_nsec;
    ret_usage->machine_ns = machine_look();
}

/* Zero for a thread that was not there. */
static uint64_t thread_ns(const struct bench_usage *usage, pid_t id)
{
    for (size_t i = 0; i < usage->thread_count; i++) {
        if (usage->threads[i].id == id) {
            return usage->threads[i].cpu_ns;
        }
    }
    return 0;
}

void bench_usage_since(struct bench_usage *after, const struct bench_usage *before)
{
    after->own_ns -= before->own_ns;
    after->machine_ns -= before->machine_ns;
    for (size_t i = 0; i < after->thread_count; i++) {
        after->threads[i].cpu_ns -= thread_ns(before, after->threads[i].id);
    }
}

struct bench_memory bench_memory_look(pid_t process)
{
    struct bench_memory memory = { .now_kib = 0 };
    char path[64];
    char line[128];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", process);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            memory.peak_kib = strtoull(line + 6, NULL, 10);
        } else if (strncmp(line, "VmRSS:", 6) == 0) {
            memory.now_kib = strtoull(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file); /* It was only read. */
    }
    return memory;
}
