/*
 * Runs a fuzz target over its corpus and over inputs made from it, for compilers without libFuzzer
 * and for `make check`.
 *
 *     fuzz-NAME CORPUS [WORDS [COUNT]]    each file of the directory, then COUNT new inputs
 *     fuzz-NAME FILE                      one input
 *
 * WORDS is a dictionary as libFuzzer reads them. Which inputs are made depends on FUZZ_SEED and on
 * the corpus only; without it the seed is 1, so that a check that passed passes again.
 *
 * The target runs in a child, and the input stands in memory of both: however the child dies, the
 * parent, which has no handler, sanitizer or target in its way, keeps the input in a file and says
 * in one line how to run it again. Each input is in memory of its exact size, so that a sanitizer
 * sees a read behind its end. A directory without inputs is a failure: a check that saw nothing has
 * not passed.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "fuzz/mutate.h"

#define INPUT_MAX   ((size_t)1 << 20)
#define ENTRIES_MAX 4096
#define PATH_SIZE   4096
#define SECONDS_MAX 60 /* For one input. */

/* Memory of parent and child. */
struct scene {
    size_t count; /* Inputs that were begun. */
    size_t size;  /* Of the last one. */
    bool ended;   /* All have been run. */
    uint8_t data[INPUT_MAX];
};

static void die(const char *what, const char *path)
{
    (void)fprintf(stderr, "replay: %s: %s\n", what, path); /* Dying anyway. */
    exit(EXIT_FAILURE);
}

static struct fuzz_bytes bytes_copy(const uint8_t *data, size_t size)
{
    struct fuzz_bytes copy = { .data = malloc(size == 0 ? 1 : size), .size = size };
    if (copy.data == NULL) {
        die("no memory for", "an input");
    }
    if (size > 0) {
        memcpy(copy.data, data, size);
    }
    return copy;
}

static struct fuzz_bytes file_read(const char *path)
{
    static uint8_t memory[INPUT_MAX + 1];
    FILE *file = fopen(path, "rb");
    size_t size = file == NULL ? 0 : fread(memory, 1, sizeof(memory), file);
    if (file == NULL || ferror(file) != 0 || size > INPUT_MAX) {
        die("cannot read, or too long", path);
    }
    (void)fclose(file); /* Only read. */
    return bytes_copy(memory, size);
}

static void pool_add(struct fuzz_pool *pool, struct fuzz_bytes bytes)
{
    if (pool->entries == NULL) {
        pool->entries = calloc(ENTRIES_MAX, sizeof(*pool->entries));
    }
    if (pool->entries == NULL || pool->count == ENTRIES_MAX) {
        die("no room for more than", "4096 inputs or words");
    }
    pool->entries[pool->count++] = bytes;
}

static void pool_free(struct fuzz_pool *pool)
{
    for (size_t i = 0; i < pool->count; i++) {
        free(pool->entries[i].data);
    }
    free(pool->entries);
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* In the order of names, in which every machine finds them. */
static void corpus_read(const char *path, struct fuzz_pool *corpus)
{
    struct dirent **names = NULL;
    int count = scandir(path, &names, is_input, alphasort);
    if (count <= 0) {
        die("no inputs in", path);
    }
    for (int i = 0; i < count; i++) {
        char name[PATH_SIZE];
        int len = snprintf(name, sizeof(name), "%s/%s", path, names[i]->d_name);
        if (len < 0 || (size_t)len >= sizeof(name)) {
            die("cannot find", names[i]->d_name);
        }
        pool_add(corpus, file_read(name));
        free(names[i]);
    }
    free(names);
}

static int hex_digit(uint8_t byte)
{
    const char *digits = "0123456789ABCDEFabcdef";
    const char *at = byte == 0 ? NULL : strchr(digits, byte);
    int index = at == NULL ? -1 : (int)(at - digits);
    return index > 15 ? index - 6 : index;
}

/* One word without its quotes: \xNN, \" and \\ stand for a byte. */
static struct fuzz_bytes word_read(const uint8_t *text, size_t len)
{
    struct fuzz_bytes word = bytes_copy(text, len);
    size_t size = 0;
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = text[i];
        if (byte == '\\' && i + 3 < len && text[i + 1] == 'x') {
            byte = (uint8_t)(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
            i += 3;
        } else if (byte == '\\' && i + 1 < len) {
            byte = text[++i];
        }
        word.data[size++] = byte;
    }
    word.size = size;
    return word;
}

/* A line is a word in quotes, with a name in front or not, or a comment. */
static void words_read(const char *path, struct fuzz_pool *words)
{
    struct fuzz_bytes file = file_read(path);
    const uint8_t *end = file.data + file.size;
    const uint8_t *line = file.data;
    while (line < end) {
        const uint8_t *next = memchr(line, '\n', (size_t)(end - line));
        next = next == NULL ? end : next;
        const uint8_t *from = memchr(line, '"', (size_t)(next - line));
        if (*line != '#' && from != NULL && next - from > 2 && next[-1] == '"') {
            pool_add(words, word_read(from + 1, (size_t)(next - from - 2)));
        }
        line = next + 1;
    }
    free(file.data);
    if (words->count == 0) {
        die("no words in", path);
    }
}

/* ---- the child ---- */

static void input_run(struct scene *scene, const uint8_t *data, size_t size)
{
    scene->count += 1;
    scene->size = size;
    if (size > 0) {
        memcpy(scene->data, data, size);
    }
    (void)alarm(SECONDS_MAX); /* Gives what was left of the last one. */
    struct fuzz_bytes exact = bytes_copy(data, size);
    (void)LLVMFuzzerTestOneInput(exact.data, size); /* Always 0. */
    free(exact.data);
}

struct run {
    struct fuzz_pool corpus;
    struct fuzz_pool words;
    size_t made_count;
    uint64_t seed;
};

static void run_free(struct run *run)
{
    pool_free(&run->corpus);
    pool_free(&run->words);
}

static void all_run(const struct run *run, struct scene *scene)
{
    static uint8_t made[FUZZ_MADE_MAX];
    for (size_t i = 0; i < run->corpus.count; i++) {
        input_run(scene, run->corpus.entries[i].data, run->corpus.entries[i].size);
    }
    for (size_t i = 0; i < run->made_count; i++) {
        uint64_t dice = run->seed * UINT64_C(0xD1342543DE82EF95) + i;
        size_t size = fuzz_mutate(&run->corpus, &run->words, dice, made);
        input_run(scene, made, size);
    }
    scene->ended = true;
}

/* ---- the parent ---- */

/* Keeps the input that killed the child, and says how to run it again. */
static void failure_report(const struct scene *scene, uint64_t seed, const char *program)
{
    if (scene->ended) {
        (void)fprintf(stderr,
                      "replay: %s: what is left behind %zu inputs failed (FUZZ_SEED=%llu)\n",
                      program, scene->count, (unsigned long long)seed);
        return;
    }
    const char *folder = getenv("TMPDIR");
    const char *name = strrchr(program, '/');
    char path[PATH_SIZE];
    int len = snprintf(path, sizeof(path), "%s/%s-%llu-%zu", folder != NULL ? folder : "/tmp",
                       name != NULL ? name + 1 : program, (unsigned long long)seed, scene->count);
    FILE *file = len > 0 && (size_t)len < sizeof(path) ? fopen(path, "wb") : NULL;
    bool written = file != NULL && fwrite(scene->data, 1, scene->size, file) == scene->size;
    if (file == NULL || fclose(file) != 0 || !written) {
        die("the input that failed cannot be written to", path);
    }
    (void)fprintf(stderr, "replay: input %zu failed (FUZZ_SEED=%llu); again: %s %s\n", scene->count,
                  (unsigned long long)seed, program, path); /* What else could be done? */
}

static uint64_t seed_read(void)
{
    const char *text = getenv("FUZZ_SEED");
    uint64_t seed = 0;
    for (size_t i = 0; text != NULL && text[i] >= '0' && text[i] <= '9'; i++) {
        seed = fuzz_digit_add(seed, text[i]);
    }
    return seed == 0 ? 1 : seed;
}

static void run_read(int argc, char **argv, struct run *ret_run)
{
    struct stat status;
    if (argc < 2 || argc > 4 || stat(argv[1], &status) != 0) {
        die("usage: fuzz-NAME FILE, or fuzz-NAME CORPUS [WORDS [COUNT]]", argv[0]);
    }
    *ret_run = (struct run){ .seed = seed_read() };
    if (!S_ISDIR(status.st_mode)) {
        pool_add(&ret_run->corpus, file_read(argv[1]));
        return;
    }
    corpus_read(argv[1], &ret_run->corpus);
    if (argc > 2) {
        words_read(argv[2], &ret_run->words);
    }
    for (size_t i = 0; argc > 3 && argv[3][i] != '\0'; i++) {
        ret_run->made_count = (size_t)fuzz_digit_add(ret_run->made_count, argv[3][i]);
    }
}

int main(int argc, char **argv)
{
    struct run run;
    int state = -1;
    run_read(argc, argv, &run);
    struct scene *scene =
        mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = scene == MAP_FAILED ? -1 : fork();
    if (child < 0) {
        die("no child", strerror(errno));
    }
    if (child == 0) {
        all_run(&run, scene);
        run_free(&run);
        return EXIT_SUCCESS; /* Through exit(), where leaks are looked for. */
    }
    bool good = waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
    if (good) {
        (void)printf("%zu of the corpus, %zu made with seed %llu: passed\n", run.corpus.count,
                     run.made_count, (unsigned long long)run.seed);
    } else {
        failure_report(scene, run.seed, argv[0]);
    }
    (void)fflush(stdout);
    _exit(good ? EXIT_SUCCESS : EXIT_FAILURE); /* Leaks are the child's to look for. */
}
