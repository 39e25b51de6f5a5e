/*
 * Level one: every scene, with the N-th call of every kind failing in every way, once and from
 * there on for ever, for N = 1, 2, 3, ... until a run in which nothing failed.
 *
 * A child runs one after the other and writes where it is into shared memory; the parent sees it
 * die, counts that as a violation and starts another one behind it. What is held in memory when a
 * run is over must be what was held before it.
 *
 *     torture SCHEMA [--part I/N]               all of it, or each N-th place from the I-th on;
 *                                               --scene NAME: of one scene; --limit S: no longer
 *     torture SCHEMA --seconds S [--seed N]     a slice: as many as fit, drawn by the seed
 *     torture SCHEMA SCENE FAULT once|ever N    one run
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/bug.h"
#include "base/digest.h"
#include "torture/calls.h"
#include "torture/place.h"
#include "torture/scene.h"

#define SCENES_MAX     16
#define RUN_MAX_S      60
#define VIOLATIONS_MAX 40
#define POINTS_MAX     1000000
#define SCENE_RUNS     8
#define PAGES_STRIDE   7
#define TELL_S         30

char torture_directory[64];
char torture_path[96];

struct run {
    size_t scene;
    enum torture_fault fault;
    bool ever;
    uint64_t at;
};

/* Shared by parent and children. */
struct board {
    struct torture_state state;
    struct run run; /* The one that is on, or comes next. */
    bool over;      /* There is no next one. */
    bool early;     /* There would be. */
    uint64_t random;
    size_t known;      /* Of a slice: the row that comes next, */
    uint64_t known_at; /* and how many of its places were. */
    uint64_t totals[SCENES_MAX][TORTURE_CALL_COUNT];
    uint64_t points[TORTURE_CALL_COUNT]; /* Runs in which one of its calls failed. */
    uint64_t runs;
    uint64_t stops; /* Runs that ended their process as documented. */
    uint64_t violations;
    bool violated; /* This run. */
    double told_s; /* When it was last said how far it is. */
};

static struct board *board;
static struct torture_scene scenes[SCENES_MAX];
static size_t scene_count;
static const char *program;
static const char *schema_path;
static int told_fd; /* Where violations are told: standard output may be the product's. */
static double end_s;
static uint64_t seed;
static uint64_t part = 1; /* Of `parts`. */
static uint64_t parts = 1;
static bool is_slice;
static bool is_single;

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* It is there. */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- what scenes ask for ---- */

static void run_name(char *text, size_t size)
{
    const struct run *run = &board->run;
    if (run->fault == TORTURE_FAULT_NONE) {
        (void)snprintf(text, size, "%s, without a fault", scenes[run->scene].name);
        return;
    }
    (void)snprintf(text, size, "%s %s %s %llu", scenes[run->scene].name,
                   torture_fault_entry(run->fault)->name, run->ever ? "ever" : "once",
                   (unsigned long long)run->at);
}

void torture_violation(const char *format, ...)
{
    char name[96];
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    run_name(name, sizeof(name));
    board->violated = true;
    (void)dprintf(told_fd, "# %s: %s\n# repeat: %s %s %s\n", name, text, program, schema_path,
                  name);
}

uint64_t torture_flushes_failed(void)
{
    bool flushes = board->run.fault != TORTURE_FAULT_NONE &&
                   torture_fault_entry(board->run.fault)->call == TORTURE_CALL_FSYNC;
    return flushes ? atomic_load(&board->state.fired) : 0;
}

bool torture_names_fail(void)
{
    return board->run.fault != TORTURE_FAULT_NONE &&
           torture_fault_entry(board->run.fault)->call == TORTURE_CALL_NAME;
}

static void place_of(char path[128], const char *name)
{
    (void)snprintf(path, 128, "%s/%s", torture_directory, name);
}

void torture_file_remove(const char *name)
{
    char path[128];
    place_of(path, name);
    (void)unlink(path); /* It need not be there. */
}

void torture_file_copy(const char *from, const char *to)
{
    static char bytes[1 << 20];
    char path[128];
    place_of(path, from);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        torture_file_remove(to);
        return;
    }
    ssize_t size = read(fd, bytes, sizeof(bytes));
    (void)close(fd); /* It was only read. */
    place_of(path, to);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool copied = size >= 0 && (size_t)size < sizeof(bytes) && fd >= 0 &&
                  write(fd, bytes, (size_t)size) == size;
    IDEM_ASSERT(copied);
    (void)close(fd); /* What is lost here is missed at once. */
}

/* ---- one run ---- */

static void run_play(void)
{
    const struct torture_scene *scene = &scenes[board->run.scene];
    int64_t held = torture_memory_held();
    (void)alarm(RUN_MAX_S);
    board->violated = false;
    scene->prepare();
    if (board->run.fault == TORTURE_FAULT_NONE) {
        torture_arm(TORTURE_FAULT_MALLOC, 0, false); /* Only counted. */
    } else {
        torture_arm(board->run.fault, board->run.at, board->run.ever);
    }
    scene->play();
    torture_disarm();
    scene->judge();
    (void)alarm(0);
    if (torture_memory_held() != held) {
        torture_violation("%lld pieces of memory were not given back",
                          (long long)(torture_memory_held() - held));
    }
}

/* ---- which run is next ---- */

static size_t scene_find(const char *name)
{
    size_t scene = 0;
    while (scene < scene_count && strcmp(scenes[scene].name, name) != 0) {
        scene += 1;
    }
    return scene;
}

static int fault_find(const char *name)
{
    int fault = TORTURE_FAULT_NONE + 1;
    while (fault < TORTURE_FAULT_COUNT &&
           strcmp(torture_fault_entry((enum torture_fault)fault)->name, name) != 0) {
        fault += 1;
    }
    return fault;
}

static uint64_t draw(uint64_t below)
{
    board->random = board->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (board->random >> 33) % below;
}

/* The next way to fail, in every scene one after the other. */
static void way_next(struct run *run)
{
    run->scene += 1;
    if (run->fault != TORTURE_FAULT_NONE && run->scene < scene_count) {
        return;
    }
    bool both = run->fault != TORTURE_FAULT_NONE && torture_fault_entry(run->fault)->ever;
    run->fault += both && !run->ever ? 0 : 1;
    run->ever = both && !run->ever;
    run->scene = 0;
}

/* The next one that there is points for; false: there is none. */
static bool run_next(struct run *run)
{
    run->at = part;
    do {
        way_next(run);
        if (run->fault == TORTURE_FAULT_COUNT) {
            return false;
        }
    } while (board->totals[run->scene][torture_fault_entry(run->fault)->call] == 0);
    return true;
}

/* Where something was found once: in every slice, the first so many places of each. */
static const struct {
    const char *scene;
    const char *fault;
    bool ever;
    uint64_t places;
} known[] = {
    { "create", "fsync-eio", false, 8 }, /* PRAGMA journal_mode flushes when it is finalized, */
    { "journal-new", "fsync-eio", false, 8 }, /* and so it does here. */
    { "secrets", "name-eio", true, 2 },       /* What an earlier start left beside them. */
    { "killed", "write-eio", false, 6 },      /* A planted one that only a death shows. */
};

/* False: all of them were. */
static bool known_next(struct run *run)
{
    if (board->known == IDEM_ARRAY_COUNT(known)) {
        return false;
    }
    size_t row = board->known;
    board->known_at += 1;
    *run = (struct run){ .scene = scene_find(known[row].scene),
                         .fault = (enum torture_fault)fault_find(known[row].fault),
                         .ever = known[row].ever,
                         .at = board->known_at };
    if (board->known_at == known[row].places) {
        board->known += 1;
        board->known_at = 0;
    }
    return run->scene < scene_count;
}

/* Any scene for some runs, since it must be begun; any kind of call, any way, any place. */
static void run_draw(struct run *run)
{
    uint64_t total = 0;
    if (known_next(run)) {
        return;
    }
    while (total == 0) {
        if (board->runs % SCENE_RUNS == 0) {
            run->scene = draw(scene_count);
        }
        run->fault = (enum torture_fault)(1 + draw(TORTURE_FAULT_COUNT - 1));
        total = board->totals[run->scene][torture_fault_entry(run->fault)->call];
    }
    run->ever = torture_fault_entry(run->fault)->ever && draw(2) == 1;
    run->at = 1 + draw(total);
}

/*
 * From one place to the next. SQLite without memory for ever does nothing that it does not do
 * without memory once, but for more of it, and has a hundred times the places of all others.
 */
static uint64_t stride(const struct run *run)
{
    return run->ever && run->fault == TORTURE_FAULT_PAGES ? parts * PAGES_STRIDE : parts;
}

/* How many runs there are in all for a scene whose calls were counted. */
static void scene_show(size_t scene)
{
    uint64_t runs = 0;
    for (int fault = 1; fault < TORTURE_FAULT_COUNT; fault++) {
        const struct torture_fault_entry *entry = torture_fault_entry((enum torture_fault)fault);
        struct run ever = { .fault = (enum torture_fault)fault, .ever = true };
        uint64_t total = board->totals[scene][entry->call];
        runs += total / parts + (entry->ever ? total / stride(&ever) : 0);
    }
    (void)dprintf(told_fd, "# %s: some %llu runs from here on\n", scenes[scene].name,
                  (unsigned long long)runs);
}

/* What was found once is still looked at. */
static bool is_late(void)
{
    return now_s() > end_s && (!is_slice || board->known == IDEM_ARRAY_COUNT(known));
}

static void progress_tell(void)
{
    char name[96];
    if (is_slice || is_single || now_s() - board->told_s < TELL_S) {
        return;
    }
    board->told_s = now_s();
    run_name(name, sizeof(name));
    (void)dprintf(told_fd, "# %llu runs, now %s\n", (unsigned long long)board->runs, name);
}

/* The points are counted first, of every scene. */
static void points_note(struct run *run)
{
    for (size_t call = 1; call < TORTURE_CALL_COUNT; call++) {
        board->totals[run->scene][call] = atomic_load(&board->state.counts[call]);
    }
    scene_show(run->scene);
    run->scene += 1;
    if (run->scene < scene_count) {
        return;
    }
    *run = (struct run){ .scene = 0 };
    board->over = !run_next(run);
    if (is_slice) {
        run_draw(run);
    }
}

/* After a run, also one that killed its child. */
static void board_advance(void)
{
    struct run *run = &board->run;
    bool fired = atomic_load(&board->state.fired) > 0;
    if (run->fault == TORTURE_FAULT_NONE) {
        points_note(run);
        return;
    }
    board->runs += 1;
    progress_tell();
    board->points[torture_fault_entry(run->fault)->call] += fired ? 1 : 0;
    board->violations += board->violated ? 1 : 0;
    if (is_single || board->violations >= VIOLATIONS_MAX || is_late()) {
        board->over = true;
        board->early = !is_single && !is_slice;
    } else if (is_slice) {
        run_draw(run);
    } else if (fired && run->at < POINTS_MAX) {
        run->at += stride(run);
    } else {
        board->over = !run_next(run);
    }
}

/* ---- children ---- */

/* The product's words go nowhere; a sanitizer's to where the parent shows them from. */
static void child_main(int errors_fd)
{
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)dup2(nothing, STDOUT_FILENO); /* If they fail there is more to read. */
    (void)dup2(errors_fd, STDERR_FILENO);
    size_t begun = SCENES_MAX;
    while (!board->over) {
        if (begun != board->run.scene) {
            begun = board->run.scene;
            scenes[begun].begin();
        }
        run_play();
        board_advance();
    }
    exit(0);
}

/* The last words of a child. */
static const char *errors_read(int fd)
{
    static char bytes[4096];
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size >= (off_t)sizeof(bytes) ? size - (off_t)sizeof(bytes) + 1 : 0;
    ssize_t got = pread(fd, bytes, sizeof(bytes) - 1, from);
    bytes[got > 0 ? got : 0] = '\0';
    return bytes;
}

/* base/digest.c: without memory to hash the process stops. Level two judges what comes after. */
static bool stop_is_documented(int status, const char *words)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
           board->run.fault == TORTURE_FAULT_MALLOC && strstr(words, "src/base/digest.c") != NULL;
}

/* The child is dead. */
static void death_judge(int status, const char *words)
{
    if (stop_is_documented(status, words)) {
        board->stops += 1;
        board->violated = false;
        board_advance();
        return;
    }
    torture_violation("the process ended by %s %d", WIFSIGNALED(status) ? "signal" : "exit status",
                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    (void)dprintf(told_fd, "%s\n", words);
    if (board->over || board->run.fault == TORTURE_FAULT_NONE) {
        board->violations += 1; /* At its end, a leak; or nothing works at all. */
        board->over = true;
    } else {
        board_advance();
    }
}

static void child_run(void)
{
    char path[128];
    place_of(path, "errors");
    int errors = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0600);
    IDEM_ASSERT(errors >= 0);
    pid_t pid = fork();
    IDEM_ASSERT(pid >= 0);
    if (pid == 0) {
        child_main(errors);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) != pid) {
    }
    torture_disarm();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        death_judge(status, errors_read(errors));
    }
    (void)close(errors); /* It was read. */
}

/* ---- the whole ---- */

static void place_make(void)
{
    bool memory = access("/dev/shm", W_OK) == 0;
    (void)snprintf(torture_directory, sizeof(torture_directory), "%s/idem-torture-XXXXXX",
                   memory ? "/dev/shm" : "/tmp");
    const char *made = mkdtemp(torture_directory);
    IDEM_ASSERT(made != NULL);
    (void)snprintf(torture_path, sizeof(torture_path), "%s/store.db", torture_directory);
}

/* Everything in it is a file. */
static void place_remove(void)
{
    DIR *directory = opendir(torture_directory);
    IDEM_ASSERT(directory != NULL);
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        (void)unlinkat(dirfd(directory), entry->d_name, 0); /* Not "." and "..". */
    }
    (void)closedir(directory);      /* It was only read. */
    (void)rmdir(torture_directory); /* At worst it stays, and is small. */
}

/*
 * libcrypto makes itself once in a process, and where that fails it is broken for good: the run
 * that failed would spoil all that follow it here, and idem has no part in it. Level two, which
 * gives each run a process, tries its start.
 */
static void libcrypto_start(void)
{
    struct idem_digester *digester = NULL;
    struct idem_error error;
    enum idem_err err = idem_digester_create(&digester, &error);
    IDEM_ASSERT(err == IDEM_OK);
    (void)idem_digest_sha256(digester, IDEM_STR("begun"));
    idem_hmac_begin(digester, IDEM_STR("begun"));
    (void)idem_hmac_end(digester);
    idem_digester_destroy(digester);
}

static const char *schema_read(const char *path)
{
    static char text[1 << 17];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    IDEM_ASSERT(size > 0 && (size_t)size < sizeof(text) - 1);
    (void)close(fd); /* It was only read. */
    return text;
}

static void scenes_join(void)
{
    for (size_t i = 0; i < torture_scenes_store_count; i++) {
        scenes[scene_count++] = torture_scenes_store[i];
    }
    for (size_t i = 0; i < torture_scenes_files_count; i++) {
        scenes[scene_count++] = torture_scenes_files[i];
    }
    for (size_t i = 0; i < torture_scenes_journal_count; i++) {
        scenes[scene_count++] = torture_scenes_journal[i];
    }
    IDEM_ASSERT(scene_count <= SCENES_MAX);
}

static void scene_keep(const char *name)
{
    size_t scene = scene_find(name);
    if (scene < scene_count) {
        scenes[0] = scenes[scene];
        scene_count = 1;
    }
}

static bool single_parse(char **words)
{
    board->run = (struct run){ .scene = scene_find(words[0]),
                               .fault = (enum torture_fault)fault_find(words[1]),
                               .ever = strcmp(words[2], "ever") == 0,
                               .at = strtoull(words[3], NULL, 10) };
    return board->run.scene < scene_count && board->run.fault < TORTURE_FAULT_COUNT &&
           board->run.at > 0;
}

static bool words_parse(int argc, char **argv)
{
    end_s = 1e18;
    seed = (uint64_t)time(NULL);
    if (argc == 6 && argv[2][0] != '-') {
        is_single = true;
        return single_parse(argv + 2);
    }
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0) {
            is_slice = true;
            end_s = now_s() + strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--limit") == 0) {
            end_s = now_s() + strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--scene") == 0) {
            scene_keep(argv[i + 1]);
        } else if (strcmp(argv[i], "--part") == 0) {
            char *rest = NULL;
            part = strtoull(argv[i + 1], &rest, 10);
            parts = *rest == '/' ? strtoull(rest + 1, NULL, 10) : 0;
        } else {
            return false;
        }
    }
    return argc >= 2 && argc % 2 == 0 && part > 0 && part <= parts;
}

static void totals_print(double seconds)
{
    char text[512];
    int len = 0;
    for (int call = 1; call < TORTURE_CALL_COUNT; call++) {
        if (board->points[call] > 0) {
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s %llu",
                            len == 0 ? "" : ", ", torture_call_name((enum torture_call)call),
                            (unsigned long long)board->points[call]);
        }
    }
    (void)printf("# torture: %s points; %llu violations (%llu runs, %llu stops, %.1f s%s)\n",
                 len == 0 ? "no" : text, (unsigned long long)board->violations,
                 (unsigned long long)board->runs, (unsigned long long)board->stops, seconds,
                 board->early ? ", stopped before the last place" : "");
}

int main(int argc, char **argv)
{
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    IDEM_ASSERT(board != MAP_FAILED);
    *board = (struct board){ .over = false };
    told_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    scenes_join();
    if (!words_parse(argc, argv)) {
        (void)fputs(
            "usage: torture SCHEMA [--part I/N | --seconds S --seed N | SCENE FAULT once|ever N]\n",
            stderr);
        return 2;
    }
    program = argv[0];
    schema_path = argv[1];
    torture_schema_1 = schema_read(schema_path);
    board->random = seed;
    if (is_slice) {
        (void)printf("# seed %llu\n", (unsigned long long)seed);
    }
    (void)puts("1..1");
    (void)fflush(stdout);
    place_make();
    torture_memory_setup();
    libcrypto_start();
    torture_attach(&board->state);
    double start = now_s();
    while (!board->over) {
        child_run();
    }
    totals_print(now_s() - start);
    place_remove();
    bool good = board->violations == 0 && (board->runs > 0 || is_single);
    (void)printf("%s 1 - the N-th call fails, and nothing is lost, done twice or told wrongly\n",
                 good ? "ok" : "not ok");
    return good ? 0 : 1;
}
