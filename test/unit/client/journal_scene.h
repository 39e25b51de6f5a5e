/*
 * journal_scene.h - a journal in a directory of its own, records to put into it, and processes.
 */
#ifndef IDEM_TEST_UNIT_CLIENT_JOURNAL_SCENE_H
#define IDEM_TEST_UNIT_CLIENT_JOURNAL_SCENE_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "client/journal.h"
#include "lib/test.h"

#define WALL_US INT64_C(1790000000000000)

struct scene {
    char directory[64];
    char path[96];
};

static inline int scene_setup(void **state)
{
    static struct scene scene;
    (void)snprintf(scene.directory, sizeof(scene.directory), "/tmp/idem-journal-XXXXXX");
    assert_non_null(mkdtemp(scene.directory));
    (void)snprintf(scene.path, sizeof(scene.path), "%s/send.db", scene.directory);
    *state = &scene;
    return 0;
}

/* Everything in it is a file or an empty directory. */
static inline int scene_teardown(void **state)
{
    const struct scene *scene = *state;
    DIR *directory = opendir(scene->directory);
    assert_non_null(directory);
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        (void)unlinkat(dirfd(directory), entry->d_name, 0); /* Not "." and "..". */
    }
    assert_int_equal(closedir(directory), 0);
    assert_int_equal(rmdir(scene->directory), 0);
    return 0;
}

static inline struct idem_client_journal *journal_open(const char *path)
{
    struct idem_client_journal *journal = NULL;
    struct idem_client_error error = { .text = "" };
    if (idem_client_journal_open(path, &journal, &error) != IDEM_CLIENT_OK) {
        print_error("%s\n", error.text);
        fail();
    }
    return journal;
}

/* With all that tells of it: else the next one in its place would be a loss of what it held. */
static inline void journal_remove(const struct scene *scene)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-lock" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(suffixes); i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "%s%s", scene->path, suffixes[i]);
        (void)unlink(path); /* Not all of them are always there. */
    }
}

/* A record that was never written, under a key that is its name. */
static inline struct idem_client_record record_make(const char *name)
{
    return (struct idem_client_record){
        .name = idem_str_from(name),
        .key = idem_str_from(name),
        .key_own = true,
        .dialect = IDEM_STR("idem"),
        .method = IDEM_STR("POST"),
        .url = IDEM_STR("http://127.0.0.1/v1/payments"),
        .body = IDEM_STR("{}"),
        .deadline_us = 60 * IDEM_US_PER_SECOND,
        .created_us = WALL_US,
        .first = { .wall_us = WALL_US + 1, .mono_us = 5, .boot = "a-boot" },
    };
}

static inline enum idem_client_err record_begin(struct idem_client_journal *journal,
                                                struct idem_client_record *record)
{
    struct idem_client_error error = { .text = "" };
    enum idem_client_err err = idem_client_journal_begin(journal, &record, 1, &error);
    assert_true((err == IDEM_CLIENT_OK) == (error.text[0] == '\0'));
    return err;
}

static inline enum idem_client_err record_end(struct idem_client_journal *journal,
                                              struct idem_client_record *record,
                                              enum idem_client_outcome outcome,
                                              bool over)
{
    struct idem_client_error error;
    record->outcome = outcome;
    record->reason = IDEM_CLIENT_ANSWERED;
    record->over = over;
    record->doubt = outcome == IDEM_CLIENT_UNKNOWN;
    record->ended_us = WALL_US + 10;
    return idem_client_journal_end(journal, &record, 1, &error);
}

static inline enum idem_client_err record_note(struct idem_client_journal *journal,
                                               struct idem_client_record *record,
                                               struct idem_str operation_url)
{
    struct idem_client_error error;
    record->operation_url = operation_url;
    return idem_client_journal_note(journal, &record, 1, &error);
}

static inline struct idem_client_record record_find(struct idem_client_journal *journal,
                                                    const char *name)
{
    struct idem_client_record record = { .id = 0 };
    struct idem_client_error error = { .text = "" };
    if (idem_client_journal_find(journal, idem_str_from(name), &record, &error) != IDEM_CLIENT_OK) {
        print_error("%s: %s\n", name, error.text);
        fail();
    }
    return record;
}

static inline bool record_is_there(struct idem_client_journal *journal, const char *name)
{
    struct idem_client_record record;
    struct idem_client_error error;
    enum idem_client_err err =
        idem_client_journal_find(journal, idem_str_from(name), &record, &error);
    if (err == IDEM_CLIENT_OK) {
        idem_client_record_clear(&record);
    }
    assert_true(err == IDEM_CLIENT_OK || err == IDEM_CLIENT_E_UNKNOWN);
    return err == IDEM_CLIENT_OK;
}

/* One number out of the file, past the journal. */
static inline int64_t number_ask(const char *path, const char *sql)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    return number;
}

/* In a child an assertion of cmocka would go on with the parent's tests: it ends instead. */
#define CHILD_MUST(condition) child_must((condition), #condition, __FILE__, __LINE__)

static inline void child_must(bool condition, const char *text, const char *file, int line)
{
    if (!condition) {
        print_error("%s:%d: in a child: not so: %s\n", file, line, text);
        _exit(1);
    }
}

/* Runs `play` in a process of its own. */
static inline pid_t child_start(void (*play)(const struct scene *scene, int number),
                                const struct scene *scene,
                                int number)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        play(scene, number);
        _exit(0);
    }
    return pid;
}

/* The exit status, or minus the signal that ended it. */
static inline int child_end(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline struct idem_client_journal *child_open(const struct scene *scene)
{
    struct idem_client_journal *journal = NULL;
    struct idem_client_error error = { .text = "" };
    enum idem_client_err err = idem_client_journal_open(scene->path, &journal, &error);
    if (err != IDEM_CLIENT_OK) {
        print_error("in a child: %s\n", error.text);
        _exit(1);
    }
    return journal;
}

#endif /* IDEM_TEST_UNIT_CLIENT_JOURNAL_SCENE_H */
