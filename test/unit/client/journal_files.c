/*
 * The journal's files.
 *
 * Goal: what is not a journal of this version is refused and stays byte for byte what it is, also
 * the names beside it; nobody but the owner can read; a disk that is full, too small or failing
 * makes begin() say so, leaves nothing half-written, and is forgotten once it works again; clients
 * of one process do not take each other's locks away.
 *
 * Method: real files; limits of the system (RLIMIT_FSIZE, a file system of its own of one megabyte)
 * and a flush of this program's own that fails. What root would be let do is done as somebody else.
 */
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "unit/client/journal_scene.h"

#define SKIPPED 77
#define NOBODY  65534

/* Contents of files. */

static char *file_read(const char *path, size_t *ret_size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    struct stat info;
    assert_int_equal(fstat(file, &info), 0);
    char *bytes = malloc((size_t)info.st_size + 1);
    assert_non_null(bytes);
    assert_int_equal(read(file, bytes, (size_t)info.st_size), info.st_size);
    assert_int_equal(close(file), 0);
    *ret_size = (size_t)info.st_size;
    return bytes;
}

static void file_write(const char *path, const void *bytes, size_t size, off_t offset)
{
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, bytes, size, offset), size);
    assert_int_equal(close(file), 0);
}

static size_t names_count(const struct scene *scene)
{
    DIR *directory = opendir(scene->directory);
    assert_non_null(directory);
    size_t count = 0;
    while (readdir(directory) != NULL) {
        count += 1;
    }
    assert_int_equal(closedir(directory), 0);
    return count;
}

static void sql_run(const char *path, const char *sql)
{
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

/* The opening is refused with a sentence that says `part`. */
static void expect_refused(const char *path, const char *part)
{
    struct idem_client_journal *journal = NULL;
    struct idem_client_error error = { .text = "" };
    enum idem_client_err err = idem_client_journal_open(path, &journal, &error);
    assert_int_equal(err, IDEM_CLIENT_E_JOURNAL);
    assert_null(journal);
    if (strstr(error.text, part) == NULL) {
        print_error("expected \"%s\" in \"%s\"\n", part, error.text);
        fail();
    }
}

static void expect_refused_untouched(const struct scene *scene, const char *part)
{
    size_t size = 0;
    size_t size_after = 0;
    size_t names = names_count(scene);
    char *bytes = file_read(scene->path, &size);
    expect_refused(scene->path, part);
    char *after = file_read(scene->path, &size_after);
    assert_int_equal(size, size_after);
    assert_memory_equal(bytes, after, size);
    assert_int_equal(names_count(scene), names);
    free(bytes);
    free(after);
}

/* What is not a journal. */

static void a_file_that_is_no_database_is_refused_and_not_touched(void **state)
{
    const struct scene *scene = *state;
    static char text[8192] = "The quick brown fox jumps over the lazy dog.";
    const size_t sizes[] = { 1, 60, sizeof(text) };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sizes); i++) {
        (void)unlink(scene->path);
        file_write(scene->path, text, sizes[i], 0);
        expect_refused_untouched(scene, "not a journal of idem");
    }
}

static void leave_a_foreign_log(const struct scene *scene, int number)
{
    (void)number;
    sqlite3 *handle = NULL;
    CHILD_MUST(sqlite3_open(scene->path, &handle) == SQLITE_OK);
    CHILD_MUST(sqlite3_exec(handle, "PRAGMA journal_mode = WAL; CREATE TABLE other (n)", NULL, NULL,
                            NULL) == SQLITE_OK);
    (void)kill(getpid(), SIGKILL); /* Its log stays, to be played back by whoever opens it. */
}

static void a_database_of_another_program_is_refused_and_not_touched(void **state)
{
    const struct scene *scene = *state;
    sql_run(scene->path, "CREATE TABLE other (n)");
    assert_int_equal(chmod(scene->path, 0600), 0);
    expect_refused_untouched(scene, "another program");
    (void)unlink(scene->path);

    (void)umask(0077);
    assert_int_equal(child_end(child_start(leave_a_foreign_log, scene, 0)), -SIGKILL);
    (void)umask(0022);
    expect_refused_untouched(scene, "another program");
}

static void a_newer_journal_is_refused_and_not_touched(void **state)
{
    const struct scene *scene = *state;
    idem_client_journal_close(journal_open(scene->path));
    sql_run(scene->path, "PRAGMA user_version = 2");
    expect_refused_untouched(scene, "version 2");
}

static void write_a_newer_version_into_the_log(const struct scene *scene, int number)
{
    (void)number;
    sqlite3 *handle = NULL;
    CHILD_MUST(sqlite3_open(scene->path, &handle) == SQLITE_OK);
    CHILD_MUST(sqlite3_exec(handle, "PRAGMA user_version = 2", NULL, NULL, NULL) == SQLITE_OK);
    (void)kill(getpid(), SIGKILL);
}

static void a_newer_version_that_only_the_log_knows_is_refused_as_well(void **state)
{
    const struct scene *scene = *state;
    idem_client_journal_close(journal_open(scene->path));
    assert_int_equal(child_end(child_start(write_a_newer_version_into_the_log, scene, 0)),
                     -SIGKILL);
    expect_refused(scene->path, "another database");
    assert_int_equal(number_ask(scene->path, "PRAGMA user_version"), 2);
}

static void a_damaged_journal_is_refused(void **state)
{
    const struct scene *scene = *state;
    static const char zeros[4096] = "";
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record record = record_make("order-7");
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    idem_client_journal_close(journal);
    file_write(scene->path, zeros, 16, 0);
    expect_refused_untouched(scene, "damaged");
    file_write(scene->path, "SQLite format 3", 16, 0);
    idem_client_journal_close(journal_open(scene->path));
    file_write(scene->path, zeros + 1, 4000, 96); /* The schema's own page. */
    expect_refused(scene->path, "");
}

static void a_directory_is_refused(void **state)
{
    const struct scene *scene = *state;
    size_t names = names_count(scene);
    expect_refused(scene->directory, "is not a file");
    assert_int_equal(names_count(scene), names);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/missing/send.db", scene->directory);
    expect_refused(path, "No such file");
}

static void an_empty_file_becomes_a_journal(void **state)
{
    const struct scene *scene = *state;
    file_write(scene->path, "", 0, 0);
    idem_client_journal_close(journal_open(scene->path));
    assert_int_equal(number_ask(scene->path, "PRAGMA application_id"), 0x6964656a);
    assert_int_equal(number_ask(scene->path, "PRAGMA user_version"), 1);
}

/* Who may read it. */

static unsigned mode_of(const struct scene *scene, const char *suffix)
{
    char path[128];
    struct stat info;
    (void)snprintf(path, sizeof(path), "%s%s", scene->path, suffix);
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777U;
}

static void all_files_are_for_their_owner_whatever_the_umask(void **state)
{
    const struct scene *scene = *state;
    static const char *const suffixes[] = { "", "-wal", "-shm", "-lock" };
    const mode_t masks[] = { 0, 0022, 0777 };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(masks); i++) {
        mode_t former = umask(masks[i]);
        struct idem_client_journal *journal = journal_open(scene->path);
        struct idem_client_record record = record_make("order-7");
        assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
        (void)umask(former);
        for (size_t k = 0; k < IDEM_ARRAY_COUNT(suffixes); k++) {
            assert_int_equal(mode_of(scene, suffixes[k]), 0600);
        }
        idem_client_journal_close(journal);
        journal_remove(scene);
    }
}

static void a_journal_that_others_may_touch_is_refused(void **state)
{
    const struct scene *scene = *state;
    const mode_t modes[] = { 0640, 0604, 0620, 0602, 0660, 0666 };
    char lock[128];
    (void)snprintf(lock, sizeof(lock), "%s-lock", scene->path);
    idem_client_journal_close(journal_open(scene->path));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(modes); i++) {
        assert_int_equal(chmod(scene->path, modes[i]), 0);
        expect_refused_untouched(scene, "chmod 600");
        assert_int_equal(chmod(scene->path, 0600), 0);
        assert_int_equal(chmod(lock, modes[i]), 0);
        expect_refused(scene->path, "chmod 600");
        assert_int_equal(chmod(lock, 0600), 0);
    }
    idem_client_journal_close(journal_open(scene->path));
}

static void a_symbolic_link_leads_to_the_same_locks_and_a_hard_link_is_refused(void **state)
{
    const struct scene *scene = *state;
    char other[128];
    (void)snprintf(other, sizeof(other), "%s/other.db", scene->directory);
    assert_int_equal(symlink("send.db", other), 0);
    struct idem_client_journal *one = journal_open(scene->path);
    struct idem_client_journal *two = journal_open(other);
    struct idem_client_error error;
    assert_int_equal(idem_client_journal_lock(one, IDEM_STR("n"), &error), IDEM_CLIENT_OK);
    assert_int_equal(idem_client_journal_lock(two, IDEM_STR("n"), &error), IDEM_CLIENT_E_BUSY);
    idem_client_journal_close(one);
    idem_client_journal_close(two);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(link(scene->path, other), 0);
    expect_refused_untouched(scene, "hard links");
}

static void try_without_permission(const struct scene *scene, int number)
{
    (void)number;
    struct idem_client_journal *journal = NULL;
    struct idem_client_error error = { .text = "" };
    if (geteuid() == 0) { /* Who is let do anything. */
        CHILD_MUST(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    }
    CHILD_MUST(idem_client_journal_open(scene->path, &journal, &error) == IDEM_CLIENT_E_JOURNAL);
    CHILD_MUST(strlen(error.text) > 20);
}

static void a_file_or_directory_that_cannot_be_written_is_refused(void **state)
{
    const struct scene *scene = *state;
    char lock[128];
    (void)snprintf(lock, sizeof(lock), "%s-lock", scene->path);
    if (geteuid() == 0) {
        assert_int_equal(chown(scene->directory, NOBODY, NOBODY), 0);
    }
    assert_int_equal(chmod(scene->directory, 0500), 0); /* Nothing can be made in it. */
    assert_int_equal(child_end(child_start(try_without_permission, scene, 0)), 0);
    assert_int_equal(chmod(scene->directory, 0700), 0);

    idem_client_journal_close(journal_open(scene->path));
    if (geteuid() == 0) {
        assert_int_equal(chown(scene->path, NOBODY, NOBODY), 0);
        assert_int_equal(chown(lock, NOBODY, NOBODY), 0);
    }
    assert_int_equal(chmod(scene->path, 0400), 0); /* It cannot be written. */
    assert_int_equal(child_end(child_start(try_without_permission, scene, 0)), 0);
    assert_int_equal(chmod(scene->path, 0600), 0);
    assert_int_equal(chmod(scene->directory, 0500), 0); /* No log can be made beside it. */
    assert_int_equal(child_end(child_start(try_without_permission, scene, 0)), 0);
    assert_int_equal(chmod(scene->directory, 0700), 0);
    idem_client_journal_close(journal_open(scene->path));
}

/* Removed while it is open. */

/* No change of a record, which could be lost with the file, is said to be durable. */
static void expect_all_refused(struct idem_client_journal *journal,
                               const struct idem_client_record *refused)
{
    struct idem_client_record record = *refused;
    struct idem_client_error error = { .text = "" };
    record.key = IDEM_STR("key-2");
    assert_int_equal(idem_client_journal_renew(journal, &record, &error), IDEM_CLIENT_E_JOURNAL);
    assert_non_null(strstr(error.text, "removed or replaced"));
    record = *refused;
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_E_JOURNAL);
    assert_int_equal(record_note(journal, &record, IDEM_STR("/1")), IDEM_CLIENT_E_JOURNAL);
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_DONE, true), IDEM_CLIENT_E_JOURNAL);
    assert_true(record.version == refused->version);
}

static void nothing_is_written_to_a_journal_that_was_removed_or_replaced(void **state)
{
    const struct scene *scene = *state;
    static const char *const suffixes[] = { "", "-lock" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(suffixes); i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "%s%s", scene->path, suffixes[i]);
        struct idem_client_journal *journal = journal_open(scene->path);
        struct idem_client_record record = record_make("order-7");
        assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
        assert_int_equal(record_end(journal, &record, IDEM_CLIENT_REFUSED, false), IDEM_CLIENT_OK);
        assert_int_equal(unlink(path), 0);
        expect_all_refused(journal, &record);
        file_write(path, "", 0, 0);
        expect_all_refused(journal, &record);
        idem_client_journal_close(journal);
        journal_remove(scene);
    }
}

/* Locks of one process. */

static void change_the_mode(const struct scene *scene, int number)
{
    (void)number;
    sqlite3 *handle = NULL;
    CHILD_MUST(sqlite3_open(scene->path, &handle) == SQLITE_OK);
    int rc = sqlite3_exec(handle, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    CHILD_MUST(rc == SQLITE_BUSY); /* Somebody has it open. */
}

static void closing_one_client_leaves_the_locks_of_another(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *one = journal_open(scene->path);
    idem_client_journal_close(journal_open(scene->path));
    assert_int_equal(child_end(child_start(change_the_mode, scene, 0)), 0);
    idem_client_journal_close(one);
}

/* Disks that are full or fail. */

static const char large[400000];

/* `number` begins of half a megabyte until one is refused, then nothing of it is there. */
static int begin_until_refused(struct idem_client_journal *journal)
{
    char name[32];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "large-%d", i);
        struct idem_client_record record = record_make(name);
        struct idem_client_error error = { .text = "" };
        struct idem_client_record *records[] = { &record };
        record.body = (struct idem_str){ large, sizeof(large) };
        enum idem_client_err err = idem_client_journal_begin(journal, records, 1, &error);
        if (err != IDEM_CLIENT_OK) {
            CHILD_MUST(err == IDEM_CLIENT_E_JOURNAL && record.id == 0 && record.version == 0);
            CHILD_MUST(strstr(error.text, "cannot be written") != NULL);
            CHILD_MUST(!record_is_there(journal, name));
            return i;
        }
    }
    _exit(2);
}

static bool begin_small(struct idem_client_journal *journal, const char *name)
{
    struct idem_client_record record = record_make(name);
    struct idem_client_error error;
    struct idem_client_record *records[] = { &record };
    return idem_client_journal_begin(journal, records, 1, &error) == IDEM_CLIENT_OK;
}

static void meet_the_limit(const struct scene *scene, int number)
{
    (void)number;
    struct rlimit former;
    CHILD_MUST(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    CHILD_MUST(getrlimit(RLIMIT_FSIZE, &former) == 0);
    struct idem_client_journal *journal = child_open(scene);
    CHILD_MUST(begin_small(journal, "before"));
    struct rlimit limit = { .rlim_cur = 1000000, .rlim_max = former.rlim_max };
    CHILD_MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    int count = begin_until_refused(journal);
    CHILD_MUST(count > 0);
    CHILD_MUST(record_is_there(journal, "before"));
    CHILD_MUST(setrlimit(RLIMIT_FSIZE, &former) == 0);
    CHILD_MUST(begin_small(journal, "after"));
    idem_client_journal_close(journal);
    journal = child_open(scene);
    char name[32];
    (void)snprintf(name, sizeof(name), "large-%d", count);
    CHILD_MUST(record_is_there(journal, "before") && record_is_there(journal, "after"));
    CHILD_MUST(!record_is_there(journal, name) && record_is_there(journal, "large-0"));
    idem_client_journal_close(journal);
}

static void a_file_that_may_not_grow_is_an_error_until_it_may(void **state)
{
    const struct scene *scene = *state;
    assert_int_equal(child_end(child_start(meet_the_limit, scene, 0)), 0);
    assert_int_equal(number_ask(scene->path,
                                "SELECT count(*) FROM pragma_integrity_check"
                                " WHERE integrity_check <> 'ok'"),
                     0);
}

/* A name space of this process alone, with a file system of a megabyte; exits where it may not. */
static void small_disk_mount(const struct scene *scene)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0) {
        _exit(SKIPPED);
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", scene->directory, "tmpfs", 0, "size=1m,mode=0700") != 0) {
        _exit(SKIPPED);
    }
}

static void fill_the_disk(const struct scene *scene, int number)
{
    (void)number;
    char filler[128];
    small_disk_mount(scene);
    (void)snprintf(filler, sizeof(filler), "%s/filler", scene->directory);
    int file = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHILD_MUST(file >= 0 && write(file, large, 200000) == 200000 && close(file) == 0);
    struct idem_client_journal *journal = child_open(scene);
    CHILD_MUST(begin_small(journal, "before"));
    CHILD_MUST(begin_until_refused(journal) > 0);
    CHILD_MUST(record_is_there(journal, "before"));

    char name[32];
    int count = 0;
    do { /* What is left of the log's room is used up before. */
        (void)snprintf(name, sizeof(name), "small-%d", count);
        count += 1;
    } while (count < 1000 && begin_small(journal, name));
    CHILD_MUST(count < 1000 && !record_is_there(journal, name));
    CHILD_MUST(unlink(filler) == 0);
    CHILD_MUST(begin_small(journal, "after"));
    idem_client_journal_close(journal);
    journal = child_open(scene);
    CHILD_MUST(record_is_there(journal, "before") && record_is_there(journal, "after"));
    CHILD_MUST(!record_is_there(journal, name));
    idem_client_journal_close(journal);
}

static void a_full_disk_is_an_error_until_there_is_room(void **state)
{
    const struct scene *scene = *state;
    int status = child_end(child_start(fill_the_disk, scene, 0));
    if (status == SKIPPED) {
        print_message("skipped: this system lets nobody mount a small disk for a test\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static int flush_errors; /* How many flushes will fail. */

/* Stands before the system's for all of this program: SQLite's table has no entry for it. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's name is its own. */
__attribute__((visibility("default"))) int fdatasync(int file)
{
    if (flush_errors > 0) {
        flush_errors -= 1;
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, file);
}

static void a_flush_that_fails_is_an_error_and_the_next_begin_works(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_journal *other = journal_open(scene->path);
    struct idem_client_record record = record_make("order-7");
    struct idem_client_record fresh = record_make("fresh");
    struct idem_client_record *both[] = { &record, &fresh };
    struct idem_client_error error = { .text = "" };
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_REFUSED, false), IDEM_CLIENT_OK);
    struct idem_client_record former = record;

    flush_errors = 1;
    enum idem_client_err err = idem_client_journal_begin(journal, both, 2, &error);
    bool was_met = flush_errors == 0;
    flush_errors = 0;
    assert_true(was_met);
    assert_int_equal(err, IDEM_CLIENT_E_JOURNAL);
    assert_non_null(strstr(error.text, "disk I/O error"));
    assert_true(record.id == former.id && record.version == former.version);
    assert_true(fresh.id == 0 && fresh.version == 0);

    struct idem_client_journal *const journals[] = { journal, other };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(journals); i++) {
        assert_false(record_is_there(journals[i], "fresh"));
        struct idem_client_record found = record_find(journals[i], "order-7");
        assert_true(found.outcome == IDEM_CLIENT_REFUSED && found.version == former.version);
        idem_client_record_clear(&found);
    }
    assert_int_equal(idem_client_journal_begin(journal, both, 2, &error), IDEM_CLIENT_OK);
    assert_true(record_is_there(other, "fresh"));
    idem_client_journal_close(other);
    idem_client_journal_close(journal);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_that_is_no_database_is_refused_and_not_touched),
        TEST(a_database_of_another_program_is_refused_and_not_touched),
        TEST(a_newer_journal_is_refused_and_not_touched),
        TEST(a_newer_version_that_only_the_log_knows_is_refused_as_well),
        TEST(a_damaged_journal_is_refused),
        TEST(a_directory_is_refused),
        TEST(an_empty_file_becomes_a_journal),
        TEST(all_files_are_for_their_owner_whatever_the_umask),
        TEST(a_journal_that_others_may_touch_is_refused),
        TEST(a_symbolic_link_leads_to_the_same_locks_and_a_hard_link_is_refused),
        TEST(a_file_or_directory_that_cannot_be_written_is_refused),
        TEST(nothing_is_written_to_a_journal_that_was_removed_or_replaced),
        TEST(closing_one_client_leaves_the_locks_of_another),
        TEST(a_file_that_may_not_grow_is_an_error_until_it_may),
        TEST(a_full_disk_is_an_error_until_there_is_room),
        TEST(a_flush_that_fails_is_an_error_and_the_next_begin_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
