/*
 * The log, written in few calls.
 *
 * Goal: a commit costs few writes, and nothing else changes: what is committed is seen by others at
 * once and is there after a death; a write that fails is told by the COMMIT that it belongs to and
 * leaves nothing; what SQLite reads back before COMMIT is what it wrote.
 *
 * Method: SQLite's own pwrite is replaced by one that counts, fails, writes half, or ends the
 * process in the middle. Contents are compared with a database that knows nothing of this.
 */
#include "store/sqlite/log_file.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "lib/test.h"
#include "store/sqlite/file_internal.h"
#include "unit/store/fixture.h"

#define SETUP                                               \
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" \
    "PRAGMA wal_autocheckpoint = 0; PRAGMA cache_spill = OFF;"
#define TABLE "CREATE TABLE a (n INTEGER PRIMARY KEY, b TEXT);"

/* `count` rows behind those that are there, about one a page. */
#define ROWS(count)                                                                              \
    "INSERT INTO a SELECT (SELECT count(*) FROM a) + value, printf('%d %02900d', value, value) " \
    "FROM (WITH RECURSIVE t(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM t "              \
    "LIMIT " #count ") SELECT value FROM t);"

enum fault {
    FAULT_NONE = 0,
    FAULT_FULL,
    FAULT_IO,
    FAULT_HALF, /* A short write, as the system may do. */
    FAULT_DEATH,
};

static enum fault fault;
static unsigned fault_at; /* At which write. */
static unsigned writes;

static ssize_t faulty_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    writes += 1;
    if (fault == FAULT_NONE || writes != fault_at) {
        return pwrite(fd, bytes, size, offset);
    }
    if (fault == FAULT_HALF) {
        return pwrite(fd, bytes, size / 2, offset);
    }
    if (fault == FAULT_DEATH) {
        (void)!pwrite(fd, bytes, size / 2, offset); /* However much of it: nobody was told. */
        _exit(0);
    }
    errno = fault == FAULT_FULL ? ENOSPC : EIO;
    return -1;
}

static void fault_arm(enum fault kind, unsigned at)
{
    fault = kind;
    fault_at = at;
    writes = 0;
}

static int setup(void **state)
{
    static struct fixture fixture;
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    assert_non_null(vfs);
    static const char *const names[] = { "pwrite", "pwrite64" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(names); i++) {
        (void)vfs->xSetSystemCall(vfs, names[i], (sqlite3_syscall_ptr)faulty_pwrite);
    }
    fault_arm(FAULT_NONE, 0);
    fixture_init(&fixture, FIXTURE_SQLITE);
    sqlite3 *maker = NULL; /* The store makes its file before it opens it. */
    assert_int_equal(sqlite3_open(fixture.path, &maker), SQLITE_OK);
    assert_int_equal(sqlite3_exec(maker, SETUP, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(maker), SQLITE_OK);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    fault_arm(FAULT_NONE, 0);
    fixture_deinit(*state);
    return 0;
}

static int run(sqlite3 *handle, const char *sql)
{
    return sqlite3_exec(handle, sql, NULL, NULL, NULL);
}

static sqlite3 *writer_open(const struct fixture *fixture)
{
    sqlite3 *handle = NULL;
    struct idem_error error;
    assert_int_equal(idem_sqlite_batch_writer_open(fixture->path, &handle, &error), IDEM_OK);
    assert_int_equal(run(handle, SETUP), SQLITE_OK);
    return handle;
}

static sqlite3 *plain_open(const char *path)
{
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    return handle;
}

/* One number or text; the caller frees it with sqlite3_free(). */
static char *ask(sqlite3 *handle, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    char *text = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0));
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    return text;
}

static void expect(sqlite3 *handle, const char *sql, const char *answer)
{
    char *text = ask(handle, sql);
    assert_string_equal(text, answer);
    sqlite3_free(text);
}

static void expect_rows(sqlite3 *handle, const char *count)
{
    expect(handle, "SELECT count(*) FROM a", count);
    expect(handle, "PRAGMA integrity_check", "ok");
}

static void a_commit_takes_few_writes(void **state)
{
    sqlite3 *handle = writer_open(*state);
    assert_int_equal(run(handle, TABLE ROWS(1)), SQLITE_OK);
    fault_arm(FAULT_NONE, 0);
    assert_int_equal(run(handle, ROWS(100)), SQLITE_OK);
    assert_in_range(writes, 1, 5); /* Of about 430 KiB; SQLite alone makes two a page. */
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static void others_see_a_commit_at_once_and_nothing_before(void **state)
{
    const struct fixture *fixture = *state;
    sqlite3 *handle = writer_open(fixture);
    assert_int_equal(run(handle, TABLE), SQLITE_OK);
    sqlite3 *other = plain_open(fixture->path);
    for (int i = 0; i < 40; i++) {
        char count[16];
        (void)snprintf(count, sizeof(count), "%d", i * 7);
        assert_int_equal(run(handle, "BEGIN;" ROWS(7)), SQLITE_OK);
        expect_rows(other, count);
        assert_int_equal(run(handle, "COMMIT"), SQLITE_OK);
        (void)snprintf(count, sizeof(count), "%d", (i + 1) * 7);
        expect_rows(other, count);
        if (i % 10 == 9) { /* The log begins anew, or is cut. */
            assert_int_equal(run(i == 19 ? handle : other, "PRAGMA wal_checkpoint(TRUNCATE)"),
                             SQLITE_OK);
        }
    }
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static void a_write_that_fails_is_told_by_its_commit(void **state)
{
    static const struct {
        enum fault fault;
        int code;
    } rows[] = { { FAULT_FULL, SQLITE_FULL }, { FAULT_IO, SQLITE_IOERR } };
    const struct fixture *fixture = *state;
    sqlite3 *handle = writer_open(fixture);
    assert_int_equal(run(handle, TABLE ROWS(10)), SQLITE_OK);
    sqlite3 *other = plain_open(fixture->path);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        for (unsigned at = 1; at <= 4; at++) {
            fault_arm(rows[i].fault, at);
            assert_int_equal(run(handle, "BEGIN;" ROWS(100)), SQLITE_OK);
            assert_int_equal(run(handle, "COMMIT") & 0xff, rows[i].code);
            fault_arm(FAULT_NONE, 0);
            assert_true(sqlite3_get_autocommit(handle) != 0);
            expect_rows(handle, "10");
            expect_rows(other, "10");
        }
    }
    assert_int_equal(run(handle, ROWS(100)), SQLITE_OK);
    expect_rows(other, "110");
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static void what_a_failed_commit_left_falls_on_nobody(void **state)
{
    const struct fixture *fixture = *state;
    sqlite3 *handle = writer_open(fixture);
    assert_int_equal(run(handle, TABLE ROWS(10)), SQLITE_OK);
    sqlite3 *other = plain_open(fixture->path);
    fault_arm(FAULT_FULL, 1);
    assert_int_not_equal(run(handle, ROWS(100)), SQLITE_OK);
    fault_arm(FAULT_NONE, 0);
    /* Somebody else's frames take the place in the log. */
    assert_int_equal(run(other, ROWS(50)), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    other = plain_open(fixture->path);
    expect_rows(other, "60");
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
}

static void a_short_write_is_completed(void **state)
{
    const struct fixture *fixture = *state;
    sqlite3 *handle = writer_open(fixture);
    assert_int_equal(run(handle, TABLE), SQLITE_OK);
    for (unsigned at = 1; at <= 4; at++) {
        fault_arm(FAULT_HALF, at);
        assert_int_equal(run(handle, ROWS(100)), SQLITE_OK);
    }
    fault_arm(FAULT_NONE, 0);
    sqlite3 *other = plain_open(fixture->path);
    expect_rows(other, "400");
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static void who_dies_while_writing_leaves_what_was_committed(void **state)
{
    const struct fixture *fixture = *state;
    for (unsigned at = 1; at <= 4; at++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            sqlite3 *handle = writer_open(fixture);
            bool made = run(handle, "DROP TABLE IF EXISTS a;" TABLE ROWS(10)) == SQLITE_OK;
            fault_arm(FAULT_DEATH, at);
            (void)run(handle, ROWS(100));
            _exit(made ? 2 : 1); /* It should have died on the way. */
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        sqlite3 *other = plain_open(fixture->path);
        expect_rows(other, "10");
        assert_int_equal(sqlite3_close(other), SQLITE_OK);
    }
}

/* Not how the store uses it; the file must be right all the same. */
static void what_is_read_back_before_commit_is_what_was_written(void **state)
{
    static const char *const steps[] = {
        "PRAGMA cache_size = 10; PRAGMA cache_spill = ON;",
        "BEGIN;" ROWS(300),
        "UPDATE a SET b = b || n WHERE n % 3 = 0;",
        "SAVEPOINT s; UPDATE a SET b = 'gone';" ROWS(200) "ROLLBACK TO s;",
        "UPDATE a SET b = n || b WHERE n % 7 = 0; DELETE FROM a WHERE n % 11 = 0;",
        "COMMIT;",
        "BEGIN; UPDATE a SET b = 'gone'; ROLLBACK;",
        "UPDATE a SET b = b || 'x' WHERE n % 5 = 0;",
    };
    const struct fixture *fixture = *state;
    sqlite3 *handle = writer_open(fixture);
    sqlite3 *plain = plain_open(":memory:");
    assert_int_equal(run(handle, TABLE), SQLITE_OK);
    assert_int_equal(run(plain, TABLE), SQLITE_OK);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(steps); i++) {
        assert_int_equal(run(handle, steps[i]), SQLITE_OK);
        assert_int_equal(run(plain, steps[i]), SQLITE_OK);
        char *content = ask(plain, "SELECT group_concat(n || b, ';') FROM a");
        expect(handle, "SELECT group_concat(n || b, ';') FROM a", content);
        sqlite3_free(content);
    }
    expect(handle, "PRAGMA integrity_check", "ok");
    assert_int_equal(sqlite3_close(plain), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_commit_takes_few_writes),
        TEST(others_see_a_commit_at_once_and_nothing_before),
        TEST(a_write_that_fails_is_told_by_its_commit),
        TEST(what_a_failed_commit_left_falls_on_nobody),
        TEST(a_short_write_is_completed),
        TEST(who_dies_while_writing_leaves_what_was_committed),
        TEST(what_is_read_back_before_commit_is_what_was_written),
    };
    return cmocka_run_group_tests_name("store log file", tests, NULL, NULL);
}
