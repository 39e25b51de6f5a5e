/*
 * Runs a fuzz target over every file of a directory, for compilers without libFuzzer and for
 * `make check`.
 *
 * Each input is read into memory of its exact size, so that a sanitizer sees a read behind its end.
 * A directory without inputs is a failure: a check that saw nothing has not passed.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

static void die(const char *what, const char *path)
{
    (void)fprintf(stderr, "replay: %s: %s\n", what, path); /* Dying anyway. */
    exit(EXIT_FAILURE);
}

static void file_replay(const char *path, size_t size)
{
    uint8_t *data = malloc(size == 0 ? 1 : size);
    FILE *file = fopen(path, "rb");
    if (data == NULL || file == NULL || fread(data, 1, size, file) != size) {
        die("cannot read", path);
    }
    (void)fclose(file);                       /* Only read. */
    (void)LLVMFuzzerTestOneInput(data, size); /* Always 0. */
    free(data);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        die("usage: replay DIRECTORY", argv[0]);
    }
    DIR *directory = opendir(argv[1]);
    if (directory == NULL) {
        die("cannot open", argv[1]);
    }
    size_t count = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char path[4096];
        struct stat status;
        int len = snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        if (len < 0 || (size_t)len >= sizeof(path) || stat(path, &status) != 0) {
            die("cannot find", entry->d_name);
        }
        if (S_ISREG(status.st_mode)) {
            (void)printf("%s\n", path); /* So that a crash says whose it is. */
            (void)fflush(stdout);
            file_replay(path, (size_t)status.st_size);
            count += 1;
        }
    }
    (void)closedir(directory); /* Only read. */
    if (count == 0) {
        die("no inputs in", argv[1]);
    }
    (void)printf("%zu passed, 0 failed\n", count);
    return EXIT_SUCCESS;
}
