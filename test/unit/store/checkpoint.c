/*
 * Checkpoints beside the writer.
 *
 * Goal: what stands in the log is brought into the file, and the log begins anew; a reader that
 * needs the log is not robbed of it, and holds nobody up for ever; a broken store writes nothing.
 *
 * Method: a real file with a writer and a reader of the test's own. (A flush that fails: sqlite.c.)
 */
#include "store/sqlite/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/test.h"
#include "unit/store/fixture.h"

#define SETUP                                                                            \
    "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE a (b BLOB);" \
    "PRAGMA wal_checkpoint;"
#define ROWS                                                                                  \
    "INSERT INTO a WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t LIMIT 200)" \
    " SELECT zeroblob(3000) FROM t;"

struct bench {
    struct fixture fixture;
    sqlite3 *writer;
    sqlite3 *reader;
    struct idem_sqlite_checkpoint checkpoint;
    atomic_bool broken;
    int fd;
    int frames; /* In the log after the last commit. */
};

static int frames_note(void *context, sqlite3 *handle, const char *name, int frames)
{
    (void)handle;
    (void)name;
    *(int *)context = frames;
    return SQLITE_OK;
}

static void run(sqlite3 *handle, const char *sql)
{
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
}

static int setup(void **state)
{
    static struct bench bench;
    struct idem_error error;
    sqlite3 *handle = NULL;
    bench = (struct bench){ .fd = -1 };
    fixture_init(&bench.fixture, FIXTURE_SQLITE);
    assert_int_equal(sqlite3_open(bench.fixture.path, &bench.writer), SQLITE_OK);
    run(bench.writer, SETUP);
    (void)sqlite3_wal_hook(bench.writer, frames_note, &bench.frames);
    assert_int_equal(sqlite3_open(bench.fixture.path, &bench.reader), SQLITE_OK);
    bench.fd = open(bench.fixture.path, O_RDWR | O_CLOEXEC);
    assert_true(bench.fd >= 0);
    assert_int_equal(sqlite3_open(bench.fixture.path, &handle), SQLITE_OK);
    run(handle, "SELECT count(*) FROM a");
    assert_int_equal(
        idem_sqlite_checkpoint_start(&bench.checkpoint, handle, bench.fd, &bench.broken, &error),
        IDEM_OK);
    *state = &bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    idem_sqlite_checkpoint_stop(&bench->checkpoint);
    idem_sqlite_checkpoint_stop(&bench->checkpoint); /* Again is harmless. */
    assert_int_equal(sqlite3_close(bench->reader), SQLITE_OK);
    assert_int_equal(sqlite3_close(bench->writer), SQLITE_OK);
    assert_int_equal(close(bench->fd), 0);
    fixture_deinit(&bench->fixture);
    return 0;
}

static int64_t file_size(const struct bench *bench)
{
    struct stat info;
    assert_int_equal(stat(bench->fixture.path, &info), 0);
    return (int64_t)info.st_size;
}

static void all_of_the_log_is_brought_home_and_it_begins_anew(void **state)
{
    struct bench *bench = *state;
    for (int i = 0; i < 5; i++) {
        run(bench->writer, ROWS);
        assert_true(bench->frames > 200);
        assert_true(idem_sqlite_checkpoint_all(&bench->checkpoint));
        assert_true(file_size(bench) > INT64_C(200) * (i + 1) * 4096);
        run(bench->writer, "INSERT INTO a VALUES (1)");
        assert_in_range(bench->frames, 1, 5);
    }
}

static void a_pass_beside_the_writer_waits_for_nobody(void **state)
{
    struct bench *bench = *state;
    run(bench->writer, ROWS);
    run(bench->writer, "BEGIN;" ROWS);
    idem_sqlite_checkpoint_some(&bench->checkpoint);
    for (int tries = 0; tries < 1000 && file_size(bench) < INT64_C(200) * 4096; tries++) {
        (void)usleep(10000); /* It comes; nothing says when. */
    }
    assert_true(file_size(bench) > INT64_C(200) * 4096);
    run(bench->writer, "COMMIT");
}

static void a_reader_keeps_what_it_sees(void **state)
{
    struct bench *bench = *state;
    run(bench->writer, ROWS);
    run(bench->reader, "BEGIN; SELECT count(*) FROM a");
    run(bench->writer, ROWS);
    assert_false(idem_sqlite_checkpoint_all(&bench->checkpoint));
    assert_false(atomic_load(&bench->broken));
    run(bench->reader, "COMMIT");
    assert_true(idem_sqlite_checkpoint_all(&bench->checkpoint));
}

static void a_broken_store_is_left_as_it_is(void **state)
{
    struct bench *bench = *state;
    int64_t size = file_size(bench);
    atomic_store(&bench->broken, true);
    run(bench->writer, ROWS);
    idem_sqlite_checkpoint_some(&bench->checkpoint);
    assert_false(idem_sqlite_checkpoint_all(&bench->checkpoint));
    assert_int_equal(file_size(bench), size);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_of_the_log_is_brought_home_and_it_begins_anew),
        TEST(a_pass_beside_the_writer_waits_for_nobody),
        TEST(a_reader_keeps_what_it_sees),
        TEST(a_broken_store_is_left_as_it_is),
    };
    return cmocka_run_group_tests_name("store checkpoint", tests, NULL, NULL);
}
