/*
 * The log that an earlier process left, written anew.
 *
 * Goal: it has the same bytes afterwards, in a file of its own that was flushed before it got the
 * name; nothing happens where there is no log; nothing is replaced under somebody who works with
 * it, or if the copy cannot be made. That this is needed at all is shown by `power` itself: without
 * it, images made after a flush that failed are damaged.
 *
 * Method: files of the test's own. The order of flushes and names is judged from disk.h's trace.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/test.h"
#include "power/disk.h"
#include "power/image.h"
#include "store/sqlite/file_internal.h"
#include "unit/store/fixture.h"

#define LOG_SIZE 200000 /* Several pieces, the last one short. */

static struct disk_trace trace;

static void name_of(const struct fixture *fixture, const char *suffix, char *ret_name, size_t size)
{
    (void)snprintf(ret_name, size, "%s%s", fixture->path, suffix);
}

static void bytes_make(char *bytes)
{
    for (size_t i = 0; i < LOG_SIZE; i++) {
        bytes[i] = (char)(i * 7 + i / 251);
    }
}

static void file_make(const char *path, const char *bytes, size_t size)
{
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

static int setup(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_SQLITE);
    file_make(fixture.path, "", 0);
    disk_begin(&trace, fixture.directory);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    disk_fault_set(DISK_FAULT_NONE, 0);
    disk_end();
    disk_trace_deinit(&trace);
    image_remove(fixture->directory);
    fixture_deinit(fixture);
    return 0;
}

static enum idem_err renew(const struct fixture *fixture, struct idem_error *reterr)
{
    int fd = open(fixture->path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    *reterr = (struct idem_error){ .text = "" };
    enum idem_err err = idem_sqlite_log_renew(fixture->path, fd, reterr);
    assert_int_equal(close(fd), 0);
    return err;
}

static ino_t inode_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? info.st_ino : 0;
}

static void log_make(const struct fixture *fixture, char *ret_name, size_t size)
{
    static char bytes[LOG_SIZE];
    bytes_make(bytes);
    name_of(fixture, "-wal", ret_name, size);
    file_make(ret_name, bytes, sizeof(bytes));
    assert_int_equal(chmod(ret_name, 0640), 0);
}

static void log_expect(const char *name)
{
    static char expected[LOG_SIZE];
    static char found[LOG_SIZE + 1];
    bytes_make(expected);
    FILE *stream = fopen(name, "rb");
    assert_non_null(stream);
    assert_int_equal(fread(found, 1, sizeof(found), stream), LOG_SIZE);
    assert_int_equal(fclose(stream), 0);
    assert_memory_equal(found, expected, LOG_SIZE);
}

/* The n-th operation of this kind; the trace has it. */
static size_t op_find(enum disk_op_kind kind)
{
    for (size_t i = 0; i < trace.op_count; i++) {
        if (trace.ops[i].kind == kind) {
            return i;
        }
    }
    fail_msg("no operation %d", (int)kind);
    return 0;
}

static void it_is_flushed_before_it_has_the_name_and_the_name_after(void **state)
{
    const struct fixture *fixture = *state;
    struct idem_error error;
    struct stat info;
    char name[128];
    char copy[128];
    log_make(fixture, name, sizeof(name));
    name_of(fixture, "-wal.new", copy, sizeof(copy));
    file_make(copy, "left by a crash", 15);
    ino_t former = inode_of(name);

    assert_int_equal(renew(fixture, &error), IDEM_OK);
    log_expect(name);
    assert_int_not_equal(inode_of(name), former);
    assert_int_equal(inode_of(copy), 0);
    assert_int_equal(stat(name, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_true(op_find(DISK_FLUSH) < op_find(DISK_RENAME));
    assert_true(op_find(DISK_RENAME) < op_find(DISK_FLUSH_DIRECTORY));
}

static void without_a_log_nothing_happens(void **state)
{
    const struct fixture *fixture = *state;
    struct idem_error error;
    char name[128];
    name_of(fixture, "-wal", name, sizeof(name));
    assert_int_equal(renew(fixture, &error), IDEM_OK);
    assert_int_equal(inode_of(name), 0);

    file_make(name, "", 0);
    ino_t former = inode_of(name);
    assert_int_equal(renew(fixture, &error), IDEM_OK);
    assert_int_equal(inode_of(name), former);
    assert_int_equal(trace.op_count, 0);
}

static void nothing_is_replaced_under_somebody(void **state)
{
    const struct fixture *fixture = *state;
    struct idem_error error;
    char name[128];
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &other), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(other, "PRAGMA journal_mode = WAL; CREATE TABLE a (b)", NULL, NULL, NULL),
        SQLITE_OK);
    name_of(fixture, "-wal", name, sizeof(name));
    ino_t former = inode_of(name);

    assert_int_equal(renew(fixture, &error), IDEM_E_STORE);
    assert_non_null(strstr(error.text, "another program has the store open"));
    assert_int_equal(inode_of(name), former);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
}

static void a_copy_that_cannot_be_flushed_replaces_nothing(void **state)
{
    const struct fixture *fixture = *state;
    struct idem_error error;
    char name[128];
    char copy[128];
    log_make(fixture, name, sizeof(name));
    name_of(fixture, "-wal.new", copy, sizeof(copy));
    ino_t former = inode_of(name);

    disk_fault_set(DISK_FAULT_FLUSH, 1);
    assert_int_equal(renew(fixture, &error), IDEM_E_SYSTEM);
    assert_non_null(strstr(error.text, "cannot write"));
    assert_int_equal(inode_of(name), former);
    assert_int_equal(inode_of(copy), 0);
    log_expect(name);
}

static void a_copy_that_cannot_be_made_replaces_nothing(void **state)
{
    const struct fixture *fixture = *state;
    struct idem_error error;
    char name[128];
    char copy[128];
    log_make(fixture, name, sizeof(name));
    name_of(fixture, "-wal.new", copy, sizeof(copy));
    assert_int_equal(mkdir(copy, 0700), 0);
    ino_t former = inode_of(name);

    assert_int_equal(renew(fixture, &error), IDEM_E_SYSTEM);
    assert_int_equal(inode_of(name), former);
    log_expect(name);
    assert_int_equal(rmdir(copy), 0);
}

static void nothing_is_written_through_a_link(void **state)
{
    const struct fixture *fixture = *state;
    struct idem_error error;
    struct stat info;
    char name[128];
    char copy[128];
    char victim[128];
    log_make(fixture, name, sizeof(name));
    name_of(fixture, "-wal.new", copy, sizeof(copy));
    name_of(fixture, ".victim", victim, sizeof(victim));
    file_make(victim, "precious", 8);
    assert_int_equal(symlink(victim, copy), 0);

    assert_int_equal(renew(fixture, &error), IDEM_OK);
    log_expect(name);
    assert_int_equal(lstat(name, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_int_equal(stat(victim, &info), 0);
    assert_int_equal(info.st_size, 8);
    assert_int_equal(unlink(victim), 0);
}

/* The caller finds out whose it is and refuses it; nothing of it has changed by then. */
static void the_log_of_another_program_is_left_alone(void **state)
{
    const struct fixture *fixture = *state;
    struct idem_error error;
    char name[128];
    char bytes[100] = { 0 };
    bytes[68] = 1;
    file_make(fixture->path, bytes, sizeof(bytes));
    log_make(fixture, name, sizeof(name));
    ino_t former = inode_of(name);

    assert_int_equal(renew(fixture, &error), IDEM_OK);
    assert_int_equal(inode_of(name), former);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_flushed_before_it_has_the_name_and_the_name_after),
        TEST(without_a_log_nothing_happens),
        TEST(nothing_is_replaced_under_somebody),
        TEST(a_copy_that_cannot_be_flushed_replaces_nothing),
        TEST(a_copy_that_cannot_be_made_replaces_nothing),
        TEST(nothing_is_written_through_a_link),
        TEST(the_log_of_another_program_is_left_alone),
    };
    disk_install();
    return cmocka_run_group_tests_name("power: the log renewed", tests, NULL, NULL);
}
