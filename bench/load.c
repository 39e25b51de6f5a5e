/*
 * load - callers in a closed loop: each connection sends its next request when the last one was
 * answered, so the rate is what the other side can do and not what we wish for.
 *
 *     fresh    every request is a payment of its own
 *     replay   --keys payments are made first; then they are asked for again at random
 *     hot      groups of --race connections send the same new payment at once and wait for all of
 *              the group; exactly one of them may be told that it executed
 *
 * One thread, one epoll, requests printed into memory: what it costs itself is reported, since on a
 * small machine it takes from what it measures. Counting begins when the warm-up is over. A reply
 * counts with its status; anything that is not a complete reply of HTTP/1.1 ends the run.
 *
 * The report is one line of JSON.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "bench/histogram.h"
#include "bench/usage.h"
#include "bench/wire.h"

#define CONNECTIONS_MAX 4096
#define REPLY_MAX       16384
#define STATUS_MAX      600
#define EVENTS_MAX      256
#define PATIENCE_MS     10000 /* Without any reply at all. */

enum mode {
    MODE_FRESH = 0,
    MODE_REPLAY,
    MODE_HOT,
};

static const char *const mode_names[] = {
    [MODE_FRESH] = "fresh",
    [MODE_REPLAY] = "replay",
    [MODE_HOT] = "hot",
};

struct options {
    struct bench_form form;
    enum mode mode;
    uint16_t port;
    size_t connections;
    uint64_t keys;
    size_t race;
    double seconds;
    double warm;
    pid_t watched[BENCH_WATCHED_MAX];
    size_t watched_count;
};

/* Connections that race; in the other modes each is alone. */
struct group {
    size_t running;
    size_t executed;
    uint64_t number;
};

struct caller {
    int fd;
    struct group *group;
    uint64_t number;
    uint64_t sent_us;
    size_t len;
    char data[REPLY_MAX + 1];
};

struct load {
    struct options options;
    int epoll;
    struct caller *callers;
    struct group *groups;
    uint64_t next; /* Number of the next new payment. */
    uint64_t random;
    uint64_t made; /* Replies of the whole run. */

    bool counting;
    uint64_t warm_end_us;
    uint64_t begin_us;
    uint64_t end_us;
    struct bench_usage before;

    struct bench_histogram times;
    uint64_t statuses[STATUS_MAX];
    uint64_t executed;
    uint64_t races;
    uint64_t races_wrong; /* Not exactly one of the group executed. */
    size_t body_size;     /* Of the last reply. */
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* It always exists. */
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

static uint64_t number_next(struct load *load)
{
    bool again = load->options.mode == MODE_REPLAY && load->next >= load->options.keys;
    if (again) {
        load->random += 1;
        return bench_mix(load->random) % load->options.keys;
    }
    load->next += 1;
    return load->next - 1;
}

static void caller_send(struct load *load, struct caller *caller, uint64_t number)
{
    char request[BENCH_REQUEST_MAX];
    size_t size = bench_request_print(&load->options.form, number, request);
    caller->number = number;
    caller->len = 0;
    caller->sent_us = now_us();
    ssize_t sent = send(caller->fd, request, size, MSG_NOSIGNAL);
    if (sent != (ssize_t)size) { /* One small request on an idle connection always fits. */
        fail("cannot send");
    }
}

static void group_start(struct load *load, struct group *group)
{
    size_t first = (size_t)(group - load->groups) * load->options.race;
    group->number = number_next(load);
    group->running = load->options.race;
    group->executed = 0;
    for (size_t i = 0; i < load->options.race; i++) {
        caller_send(load, &load->callers[first + i], group->number);
    }
}

static void reply_count(struct load *load, const struct caller *caller, struct bench_reply reply)
{
    load->made += 1;
    load->body_size = reply.body_size;
    if (!load->counting) {
        return;
    }
    bench_histogram_add(&load->times, now_us() - caller->sent_us);
    load->statuses[reply.status < STATUS_MAX ? reply.status : 0] += 1;
    load->executed += reply.executed ? 1 : 0;
}

static void reply_take(struct load *load, struct caller *caller, struct bench_reply reply)
{
    struct group *group = caller->group;
    reply_count(load, caller, reply);
    group->running -= 1;
    group->executed += reply.executed ? 1 : 0;
    if (group->running > 0) {
        return;
    }
    if (load->counting) {
        load->races += 1;
        load->races_wrong += group->executed == 1 ? 0 : 1;
    }
    group_start(load, group);
}

static void caller_read(struct load *load, struct caller *caller)
{
    ssize_t count = recv(caller->fd, caller->data + caller->len, REPLY_MAX - caller->len, 0);
    if (count == 0) {
        errno = ECONNRESET;
    }
    if (count <= 0) {
        fail("a reply did not come");
    }
    caller->len += (size_t)count;
    caller->data[caller->len] = '\0';
    struct bench_reply reply;
    switch (bench_reply_read(caller->data, caller->len, &reply)) {
    case BENCH_REPLY_PART:
        if (caller->len == REPLY_MAX) {
            errno = EMSGSIZE;
            fail("a reply");
        }
        return;
    case BENCH_REPLY_WHOLE:
        reply_take(load, caller, reply);
        return;
    case BENCH_REPLY_BAD:
        (void)fprintf(stderr, "load: not a reply: %.*s\n", (int)caller->len, caller->data);
        exit(1);
    }
}

static void caller_connect(struct load *load, struct caller *caller)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(load->options.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int yes = 1;
    caller->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (caller->fd < 0 ||
        connect(caller->fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        setsockopt(caller->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0) {
        fail("cannot connect");
    }
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = caller };
    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, caller->fd, &event) != 0) {
        fail("epoll");
    }
}

static void load_open(struct load *load)
{
    size_t count = load->options.connections;
    size_t group_count = count / load->options.race;
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->callers = calloc(count, sizeof(*load->callers));
    load->groups = calloc(group_count, sizeof(*load->groups));
    if (load->epoll < 0 || load->callers == NULL || load->groups == NULL) {
        fail("cannot begin");
    }
    load->random = load->options.form.seed;
    for (size_t i = 0; i < count; i++) {
        load->callers[i].group = &load->groups[i / load->options.race];
        caller_connect(load, &load->callers[i]);
    }
    load->warm_end_us = now_us() + (uint64_t)(load->options.warm * 1e6);
    for (size_t i = 0; i < group_count; i++) {
        group_start(load, &load->groups[i]);
    }
}

/* The warm-up is over when its time is, and every payment that is to be replayed is there. */
static void counting_begin(struct load *load, uint64_t now)
{
    bool made = load->options.mode != MODE_REPLAY || load->made >= load->options.keys;
    if (!made || now < load->warm_end_us) {
        return;
    }
    load->counting = true;
    bench_usage_look(load->options.watched, load->options.watched_count, &load->before);
    load->begin_us = now_us();
    load->end_us = load->begin_us + (uint64_t)(load->options.seconds * 1e6);
}

static void load_run(struct load *load)
{
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int count = epoll_wait(load->epoll, events, EVENTS_MAX, PATIENCE_MS);
        if (count == 0) {
            errno = ETIMEDOUT;
        }
        if (count <= 0) {
            fail("nothing came");
        }
        for (int i = 0; i < count; i++) {
            caller_read(load, events[i].data.ptr);
        }
        uint64_t now = now_us();
        if (!load->counting) {
            counting_begin(load, now);
        } else if (now >= load->end_us) {
            load->end_us = now;
            return;
        }
    }
}

static void statuses_print(const struct load *load)
{
    const char *comma = "";
    (void)printf("\"statuses\":{");
    for (unsigned status = 0; status < STATUS_MAX; status++) {
        if (load->statuses[status] > 0) {
            (void)printf("%s\"%u\":%" PRIu64, comma, status, load->statuses[status]);
            comma = ",";
        }
    }
    (void)printf("},");
}

static void threads_print(const struct load *load, const struct bench_usage *usage)
{
    (void)printf("\"threads\":[");
    for (size_t i = 0; i < usage->thread_count; i++) {
        const struct bench_thread *thread = &usage->threads[i];
        (void)printf("%s{\"process\":%d,\"thread\":%d,\"name\":\"%s\",\"cpu_us\":%.2f}",
                     i == 0 ? "" : ",", thread->process, thread->id, thread->name,
                     (double)thread->cpu_ns / 1e3 / (double)load->times.count);
    }
    (void)printf("],\"memory\":[");
    for (size_t i = 0; i < load->options.watched_count; i++) {
        struct bench_memory memory = bench_memory_look(load->options.watched[i]);
        (void)printf("%s{\"process\":%d,\"kib\":%" PRIu64 ",\"peak_kib\":%" PRIu64 "}",
                     i == 0 ? "" : ",", load->options.watched[i], memory.now_kib, memory.peak_kib);
    }
    (void)printf("]");
}

/* Everybody's time that is neither ours nor that of a watched process, in processors. */
static double others(const struct bench_usage *usage, double seconds)
{
    double ns = (double)usage->machine_ns - (double)usage->own_ns;
    for (size_t i = 0; i < usage->thread_count; i++) {
        ns -= (double)usage->threads[i].cpu_ns;
    }
    return ns > 0 ? ns / 1e9 / seconds : 0;
}

static void load_report(struct load *load)
{
    struct bench_usage usage;
    bench_usage_look(load->options.watched, load->options.watched_count, &usage);
    bench_usage_since(&usage, &load->before);
    const struct bench_histogram *times = &load->times;
    double seconds = (double)(load->end_us - load->begin_us) / 1e6;
    (void)printf("{\"mode\":\"%s\",\"connections\":%zu,\"seconds\":%.2f,\"replies\":%" PRIu64
                 ",\"rate\":%.0f,\"p50_us\":%" PRIu64 ",\"p99_us\":%" PRIu64 ",\"p999_us\":%" PRIu64
                 ",\"max_us\":%" PRIu64 ",\"executed\":%" PRIu64 ",\"races\":%" PRIu64
                 ",\"races_wrong\":%" PRIu64 ",\"body\":%zu,",
                 mode_names[load->options.mode], load->options.connections, seconds, times->count,
                 (double)times->count / seconds, bench_histogram_at(times, 500),
                 bench_histogram_at(times, 990), bench_histogram_at(times, 999), times->max_us,
                 load->executed, load->races, load->races_wrong, load->body_size);
    statuses_print(load);
    (void)printf("\"load_us\":%.2f,\"others\":%.2f,",
                 (double)usage.own_ns / 1e3 / (double)times->count, others(&usage, seconds));
    threads_print(load, &usage);
    (void)printf("}\n");
}

static void load_close(struct load *load)
{
    for (size_t i = 0; i < load->options.connections; i++) {
        (void)close(load->callers[i].fd); /* What is still on the way is the other side's. */
    }
    (void)close(load->epoll);
    free(load->callers);
    free(load->groups);
}

static const char help[] =
    "load --port N [--mode fresh|replay|hot] [--connections N] [--seconds S] [--warm S]\n"
    "     [--keys N] [--race N] [--path P] [--bearer B] [--entry E] [--seed N] [--watch PID]...\n";

static const struct option long_options[] = {
    { "port", required_argument, NULL, 'p' },
    { "mode", required_argument, NULL, 'm' },
    { "connections", required_argument, NULL, 'c' },
    { "seconds", required_argument, NULL, 't' },
    { "warm", required_argument, NULL, 'u' },
    { "keys", required_argument, NULL, 'k' },
    { "race", required_argument, NULL, 'r' },
    { "path", required_argument, NULL, 'P' },
    { "bearer", required_argument, NULL, 'b' },
    { "entry", required_argument, NULL, 'e' },
    { "seed", required_argument, NULL, 's' },
    { "watch", required_argument, NULL, 'w' },
    { NULL, 0, NULL, 0 },
};

static enum mode mode_read(const char *name)
{
    for (size_t i = 0; i < sizeof(mode_names) / sizeof(mode_names[0]); i++) {
        if (strcmp(mode_names[i], name) == 0) {
            return (enum mode)i;
        }
    }
    (void)fprintf(stderr, "load: no such mode: %s\n", name);
    exit(2);
}

static bool number_take(struct options *options, int letter, const char *text)
{
    unsigned long number =
        strtoul(text, NULL, 10); /* The checks below refuse what makes no sense. */
    switch (letter) {
    case 'p':
        options->port = (uint16_t)number;
        return true;
    case 'c':
        options->connections = number;
        return true;
    case 'k':
        options->keys = number;
        return true;
    case 'r':
        options->race = number;
        return true;
    case 's':
        options->form.seed = (uint32_t)number;
        return true;
    case 't':
        options->seconds = strtod(text, NULL);
        return true;
    case 'u':
        options->warm = strtod(text, NULL);
        return true;
    default: /* Not an enum: a text. */
        return false;
    }
}

static bool text_take(struct options *options, int letter, const char *text)
{
    switch (letter) {
    case 'm':
        options->mode = mode_read(text);
        return true;
    case 'P':
        options->form.path = text;
        return true;
    case 'b':
        options->form.bearer = text;
        return true;
    case 'e':
        options->form.entry = text;
        return true;
    case 'w':
        if (options->watched_count == BENCH_WATCHED_MAX) {
            return false;
        }
        options->watched[options->watched_count] = (pid_t)strtol(text, NULL, 10);
        options->watched_count += 1;
        return true;
    default: /* Not an enum: getopt has said what is wrong. */
        return false;
    }
}

static bool options_read(int argc, char **argv, struct options *options)
{
    int letter;
    while ((letter = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (letter == '?' ||
            (!number_take(options, letter, optarg) && !text_take(options, letter, optarg))) {
            return false;
        }
    }
    if (options->mode != MODE_HOT) {
        options->race = 1;
    }
    return optind == argc && options->port > 0 && options->connections > 0 &&
           options->connections <= CONNECTIONS_MAX && options->keys > 0 && options->race > 0 &&
           options->connections % options->race == 0 && options->seconds > 0;
}

int main(int argc, char **argv)
{
    static struct load load;
    load.options = (struct options){
        .form = { .path = "/v1/payments", .bearer = "bench-secret", .entry = "bench" },
        .connections = 64,
        .keys = 1,
        .race = 2,
        .seconds = 5,
        .warm = 1,
    };
    load.options.form.seed = (uint32_t)bench_mix(now_us());
    if (!options_read(argc, argv, &load.options)) {
        (void)fputs(help, stderr);
        return 2;
    }
    load_open(&load);
    load_run(&load);
    load_report(&load);
    load_close(&load);
    return load.races_wrong > 0 && load.options.mode != MODE_REPLAY ? 1 : 0;
}
