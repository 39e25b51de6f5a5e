/*
 * Power loss and full disks under the real SQLite store (README.md).
 *
 *     power [--seconds N] [--from SEED]    seeds from 1, or from SEED, for N seconds (15)
 *     power --seed SEED                    one seed, told life by life
 *     power --sweep SEED                   a short life of the seed for each kind of fault at its
 *                                          first write or flush, at the second, until none is left
 *     power --full SEED                    likewise, only with the disk full
 *
 * Each seed has a process of its own: whatever ends it, the line that repeats it is printed.
 */
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/test.h"
#include "power/world.h"

#define SECONDS       15
#define SEED_SECONDS  120 /* No seed takes a tenth of it. */
#define LIVES_MAX     4
#define BATCHES_MAX   8
#define SWEEP_BATCHES 2

void world_lost(const struct world *world, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(stderr, "power: seed %llu: ", (unsigned long long)world->seed);
    (void)vfprintf(stderr, format, arguments);
    (void)fprintf(stderr, "\npower: at %s; the files are in %s or beside it\n",
                  world->place[0] == '\0' ? "the beginning" : world->place, world->image.directory);
    va_end(arguments);
    image_tell(&world->trace, world->point);
    _exit(1);
}

static void fixture_ready(struct fixture *fixture)
{
    fixture_init(fixture, FIXTURE_SQLITE);
}

void world_init(struct world *world, uint64_t seed, struct world_counts *counts)
{
    world->seed = seed;
    world->random.state = seed * UINT64_C(0x9e3779b97f4a7c15);
    world->counts = counts;
    fixture_ready(&world->live);
    fixture_ready(&world->image);
    fixture_ready(&world->inner);
    book_init(&world->book);
    world->work = (struct work){
        .book = &world->book,
        .fixture = &world->live,
        .random = { .state = random_next(&world->random) },
    };
    world->pending = calloc(WORK_BATCH_MAX, sizeof(*world->pending));
    world->calls = calloc(WORK_BATCH_MAX, sizeof(*world->calls));
    world->seen = calloc(65536, sizeof(*world->seen));
    assert_true(world->pending != NULL && world->calls != NULL && world->seen != NULL);
}

void world_deinit(struct world *world)
{
    image_remove(world->live.directory);
    fixture_deinit(&world->live);
    fixture_deinit(&world->image);
    fixture_deinit(&world->inner);
    book_deinit(&world->book);
    free(world->pending);
    free(world->calls);
    free(world->seen);
}

/* Every second life meets a disk that is full or fails, most often in the way that is worst. */
static enum disk_fault fault_pick(struct random *random)
{
    uint64_t roll = random_below(random, 16);
    if (roll < 8) {
        return DISK_FAULT_NONE;
    }
    return roll < 11 ? DISK_FAULT_FLUSH_ONCE
                     : (enum disk_fault)(DISK_FAULT_FULL + random_below(random, DISK_FAULT_FLUSH));
}

static void life_tell(const struct world *world, const struct world_plan *plan, uint64_t images)
{
    (void)printf("life %u: fault %d, %u batches, now %zu; %zu operations, %llu images\n",
                 world->life, (int)plan->fault, plan->batches, world->book.batch_count,
                 world->trace.op_count, (unsigned long long)(world->counts->images - images));
}

/* What one process does. */
struct job {
    uint64_t seed;
    enum disk_fault fault; /* NONE: the seed's lives. Otherwise one life, with this fault ... */
    unsigned fault_at;     /* ... at this write or flush. */
    bool told;
};

static void lives_run(struct world *world, const struct job *job)
{
    unsigned lives = 2 + (unsigned)random_below(&world->random, LIVES_MAX - 1);
    for (unsigned i = 0; i < lives; i++) {
        struct world_plan plan = {
            .batches = 1 + (unsigned)random_below(&world->random, BATCHES_MAX),
            .fault = fault_pick(&world->random),
            .flushes = 100,
        };
        uint64_t images = world->counts->images;
        world_live(world, &plan);
        plan.other_points = (unsigned)(world->trace.op_count / 4);
        world_judge(world, &plan);
        if (job->told) {
            life_tell(world, &plan, images);
        }
        world_power_off(world);
    }
}

static void fault_run(struct world *world, const struct job *job)
{
    struct world_plan plan = {
        .batches = SWEEP_BATCHES,
        .fault = job->fault,
        .fault_at = job->fault_at,
    };
    world_live(world, &plan);
    world_judge(world, &plan);
    world_power_off(world);
}

static void job_run(const struct job *job, struct world_counts *counts)
{
    static struct world world; /* Large, and mostly never touched. */
    disk_install();
    world_init(&world, job->seed, counts);
    if (job->fault == DISK_FAULT_NONE) {
        lives_run(&world, job);
    } else {
        fault_run(&world, job);
    }
    counts->runs += 1;
    world_deinit(&world);
}

/* False: it ended otherwise than it should. */
static bool job_try(const struct job *job, struct world_counts *counts)
{
    int status = 0;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(SEED_SECONDS);
        job_run(job, counts);
        (void)fflush(NULL);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void print(const struct world_counts *counts)
{
    (void)printf("power: %llu runs, %llu sync points, %llu images, 0 lost\n",
                 (unsigned long long)counts->runs, (unsigned long long)counts->flushes,
                 (unsigned long long)counts->images);
    (void)printf(
        "power: %llu lives, %llu openings, %llu batches of %llu commands, %llu writes, "
        "%llu checkpoints between and inside them\n",
        (unsigned long long)counts->lives, (unsigned long long)counts->openings,
        (unsigned long long)counts->batches, (unsigned long long)counts->commands,
        (unsigned long long)counts->writes, (unsigned long long)counts->passes);
    const uint64_t under_way = counts->before + counts->after;
    (void)printf(
        "power: a batch was under way in %llu images: %llu without it, %llu with it; run "
        "again %llu times; %llu retries by callers; power off again in %llu openings; %llu "
        "images were like one before\n",
        (unsigned long long)under_way, (unsigned long long)counts->before,
        (unsigned long long)counts->after, (unsigned long long)counts->reruns,
        (unsigned long long)counts->retries, (unsigned long long)counts->recoveries,
        (unsigned long long)counts->same);
    (void)printf(
        "power: disk full %llu times, writes failed %llu, flushes failed once %llu, for "
        "good %llu; %llu batches not acknowledged, %llu openings refused\n",
        (unsigned long long)counts->faults[DISK_FAULT_FULL],
        (unsigned long long)counts->faults[DISK_FAULT_WRITE],
        (unsigned long long)counts->faults[DISK_FAULT_FLUSH_ONCE],
        (unsigned long long)counts->faults[DISK_FAULT_FLUSH],
        (unsigned long long)counts->told_unknown, (unsigned long long)counts->refused);
}

static int64_t now_seconds(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? (int64_t)now.tv_sec : 0;
}

enum mode {
    MODE_HUNT,
    MODE_SEED,
    MODE_SWEEP,
    MODE_FULL,
};

static const char *const mode_names[] = {
    [MODE_HUNT] = "--from",
    [MODE_SEED] = "--seed",
    [MODE_SWEEP] = "--sweep",
    [MODE_FULL] = "--full",
};

struct options {
    enum mode mode;
    uint64_t seed; /* The first one. */
    int64_t seconds;
};

static bool options_read(struct options *options, int argc, char **argv)
{
    *options = (struct options){ .seed = 1, .seconds = SECONDS };
    for (int i = 1; i < argc; i += 2) {
        char *end = NULL;
        if (i + 1 == argc) {
            return false;
        }
        uint64_t number = strtoull(argv[i + 1], &end, 10);
        if (end == argv[i + 1] || *end != '\0') {
            return false;
        }
        if (strcmp(argv[i], "--seconds") == 0) {
            options->seconds = (int64_t)number;
            continue;
        }
        int mode = MODE_HUNT;
        while (mode <= MODE_FULL && strcmp(argv[i], mode_names[mode]) != 0) {
            mode += 1;
        }
        if (mode > MODE_FULL) {
            return false;
        }
        options->seed = number;
        options->mode = (enum mode)mode;
    }
    return true;
}

/* The same fault at every place where it can come. */
static bool fault_sweep(uint64_t seed, enum disk_fault fault, struct world_counts *counts)
{
    struct job job = { .seed = seed, .fault = fault };
    uint64_t came = UINT64_MAX;
    while (came != counts->faults[fault]) {
        came = counts->faults[fault];
        job.fault_at += 1;
        if (!job_try(&job, counts)) {
            (void)fprintf(stderr, "power: fault %d at its place %u\n", (int)fault, job.fault_at);
            return false;
        }
    }
    return true;
}

static bool sweep(const struct options *options, struct world_counts *counts)
{
    int last = options->mode == MODE_FULL ? DISK_FAULT_FULL : DISK_FAULT_FLUSH;
    for (int fault = DISK_FAULT_FULL; fault <= last; fault++) {
        if (!fault_sweep(options->seed, (enum disk_fault)fault, counts)) {
            return false;
        }
    }
    return true;
}

/* False: `ret_seed` has failed. */
static bool hunt(const struct options *options, struct world_counts *counts, uint64_t *ret_seed)
{
    struct job job = { .seed = options->seed, .told = options->mode == MODE_SEED };
    int64_t until = now_seconds() + options->seconds;
    bool good = job_try(&job, counts);
    while (good && options->mode == MODE_HUNT && now_seconds() < until) {
        job.seed += 1;
        good = job_try(&job, counts);
    }
    *ret_seed = job.seed;
    return good;
}

int main(int argc, char **argv)
{
    struct options options;
    if (!options_read(&options, argc, argv)) {
        (void)fprintf(stderr,
                      "usage: %s [--seconds N] [--from SEED] | --seed SEED | --sweep SEED\n",
                      argv[0]);
        return 2;
    }
    struct world_counts *counts =
        mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED) {
        return 1;
    }
    uint64_t seed = options.seed;
    bool swept = options.mode == MODE_SWEEP || options.mode == MODE_FULL;
    bool good = swept ? sweep(&options, counts) : hunt(&options, counts, &seed);
    if (!good) {
        (void)fprintf(stderr, "power: repeat with: %s %s %llu\n", argv[0],
                      mode_names[swept ? options.mode : MODE_SEED], (unsigned long long)seed);
        return 1;
    }
    print(counts);
    return 0;
}
