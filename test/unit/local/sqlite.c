/*
 * The library in a caller's SQLite file, where it meets others: connections, processes, full disks,
 * files that are not the caller's, clocks that are wrong.
 *
 * Method: real files in a temporary directory. Two connections stand for two callers; where it
 * matters they are processes. Business rows are an `orders` table of the caller's.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/journal_internal.h"
#include "idem/idem.h"
#include "lib/test.h"
#include "local/sqlite_file.h"
#include "store/sqlite/schema.h"

#define PROCESSES 6
#define RACE_KEYS 40
#define BUSY_MS   20000
#define DAY_US    (INT64_C(86400) * 1000000)
#define ENOUGH    2000

static char directory[64];
static char path[96];
static struct idem_local_error error;

static void say(sqlite3 *db, const char *sql)
{
    char *text = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK) {
        fail_msg("%s: %s", sql, text);
    }
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return value;
}

static sqlite3 *connect_to(const char *file)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 50);
    return db;
}

static struct idem_local local_of(sqlite3 *db)
{
    return (struct idem_local){ .size = sizeof(struct idem_local), .sqlite = db };
}

static struct idem_local_claim claim_of(const char *key)
{
    return (struct idem_local_claim){ .size = sizeof(struct idem_local_claim),
                                      .principal = "shop",
                                      .endpoint = "orders.create",
                                      .key = key,
                                      .fingerprint = "same",
                                      .fingerprint_size = 4 };
}

/* The outcome of a claim in the transaction that is open; its token. */
static enum idem_local_outcome claim(sqlite3 *db,
                                     const char *key,
                                     struct idem_local_token *ret_token)
{
    struct idem_local local = local_of(db);
    struct idem_local_claim wanted = claim_of(key);
    struct idem_local_record *record = NULL;
    if (idem_local_claim(&local, &wanted, &record, &error) != IDEM_LOCAL_OK) {
        fail_msg("%s: %s", key, error.text);
    }
    enum idem_local_outcome outcome = record->outcome;
    if (ret_token != NULL) {
        *ret_token = record->token;
    }
    idem_local_record_free(record);
    return outcome;
}

static enum idem_local_outcome complete(sqlite3 *db,
                                        const struct idem_local_token *token,
                                        const char *body)
{
    struct idem_local local = local_of(db);
    struct idem_local_result result = { .size = sizeof(result) };
    struct idem_local_answer answer = { .size = sizeof(answer),
                                        .verdict = IDEM_LOCAL_VERDICT_SUCCEEDED,
                                        .status = 201,
                                        .body = body,
                                        .body_size = strlen(body) };
    if (idem_local_complete(&local, token, &answer, &result, &error) != IDEM_LOCAL_OK) {
        fail_msg("%s", error.text);
    }
    return result.outcome;
}

static enum idem_local_err install(sqlite3 *db)
{
    struct idem_local local = local_of(db);
    return idem_local_install(&local, &error);
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof(directory), "/tmp/idem-local-XXXXXX");
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/shop.db", directory);
    sqlite3 *db = connect_to(path);
    say(db, "PRAGMA journal_mode = WAL");
    say(db, "CREATE TABLE orders (number TEXT NOT NULL, made_by TEXT NOT NULL)");
    say(db, "BEGIN IMMEDIATE");
    assert_int_equal(install(db), IDEM_LOCAL_OK);
    say(db, "COMMIT");
    return sqlite3_close(db);
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command);
}

/* --- transactions --------------------------------------------------------------------------- */

static void nothing_is_written_without_a_transaction(void **state)
{
    (void)state;
    sqlite3 *db = connect_to(path);
    struct idem_local local = local_of(db);
    struct idem_local_claim wanted = claim_of("k");
    struct idem_local_record *record = NULL;
    struct idem_local_reaped reaped = { .size = sizeof(reaped) };
    assert_int_equal(idem_local_claim(&local, &wanted, &record, &error),
                     IDEM_LOCAL_E_NO_TRANSACTION);
    assert_null(record);
    assert_non_null(strstr(error.text, "BEGIN IMMEDIATE"));
    assert_int_equal(idem_local_reap(&local, 1, &reaped, &error), IDEM_LOCAL_E_NO_TRANSACTION);
    assert_int_equal(install(db), IDEM_LOCAL_E_NO_TRANSACTION);
    assert_int_equal(number(db, "SELECT count(*) FROM idem_local_records"), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void record_rows_and_answer_live_and_die_together(void **state)
{
    (void)state;
    struct idem_local_token token;
    sqlite3 *db = connect_to(path);
    for (int i = 0; i < 2; i++) {
        say(db, "BEGIN IMMEDIATE");
        assert_int_equal(claim(db, "k", &token), IDEM_LOCAL_EXECUTE);
        say(db, "INSERT INTO orders VALUES ('1', 'me')");
        assert_int_equal(complete(db, &token, "order 1"), IDEM_LOCAL_DONE);
        say(db, i == 0 ? "ROLLBACK" : "COMMIT");
        assert_int_equal(number(db, "SELECT count(*) FROM orders"), i);
    }
    say(db, "BEGIN IMMEDIATE");
    assert_int_equal(claim(db, "k", NULL), IDEM_LOCAL_REPLAY);
    say(db, "COMMIT");
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_savepoint_takes_the_record_back_too(void **state)
{
    (void)state;
    sqlite3 *db = connect_to(path);
    say(db, "BEGIN IMMEDIATE; SAVEPOINT one");
    assert_int_equal(claim(db, "k", NULL), IDEM_LOCAL_EXECUTE);
    say(db, "ROLLBACK TO one");
    assert_int_equal(claim(db, "k", NULL), IDEM_LOCAL_EXECUTE);
    say(db, "COMMIT");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_writer_in_the_way_is_in_progress_and_costs_nothing(void **state)
{
    (void)state;
    struct idem_local_token token;
    struct idem_local_result result = { .size = sizeof(result) };
    sqlite3 *one = connect_to(path);
    sqlite3 *two = connect_to(path);
    struct idem_local local = local_of(two);
    say(one, "BEGIN IMMEDIATE");
    assert_int_equal(claim(one, "k", &token), IDEM_LOCAL_EXECUTE);
    say(two, "BEGIN");
    assert_int_equal(claim(two, "k", NULL), IDEM_LOCAL_IN_PROGRESS);
    assert_int_equal(idem_local_heartbeat(&local, &token, 0, &result, &error), IDEM_LOCAL_OK);
    assert_int_equal(result.outcome, IDEM_LOCAL_BUSY);
    assert_int_equal(sqlite3_get_autocommit(two), 0);
    say(one, "ROLLBACK");
    assert_int_equal(claim(two, "k", NULL), IDEM_LOCAL_EXECUTE);
    say(two, "COMMIT");
    assert_int_equal(sqlite3_close(one), SQLITE_OK);
    assert_int_equal(sqlite3_close(two), SQLITE_OK);
}

static void a_transaction_that_began_by_reading_is_told_to_begin_again(void **state)
{
    (void)state;
    sqlite3 *one = connect_to(path);
    sqlite3 *two = connect_to(path);
    struct idem_local local = local_of(two);
    struct idem_local_claim wanted = claim_of("k");
    struct idem_local_record *record = NULL;
    say(two, "BEGIN");
    assert_int_equal(number(two, "SELECT count(*) FROM orders"), 0);
    say(one, "INSERT INTO orders VALUES ('1', 'one')");
    assert_int_equal(idem_local_claim(&local, &wanted, &record, &error), IDEM_LOCAL_E_BUSY);
    assert_non_null(strstr(error.text, "BEGIN IMMEDIATE"));
    say(two, "ROLLBACK; BEGIN IMMEDIATE");
    assert_int_equal(claim(two, "k", NULL), IDEM_LOCAL_EXECUTE);
    say(two, "COMMIT");
    assert_int_equal(sqlite3_close(one), SQLITE_OK);
    assert_int_equal(sqlite3_close(two), SQLITE_OK);
}

/* --- processes ------------------------------------------------------------------------------ */

/* Claims every key until it is over, and makes its order in the same transaction. */
static void race(int who)
{
    sqlite3 *db = connect_to(path);
    char sql[128];
    char key[16];
    (void)sqlite3_busy_timeout(db, BUSY_MS);
    for (int i = 0; i < RACE_KEYS; i++) {
        struct idem_local_token token;
        (void)snprintf(key, sizeof(key), "k%d", i);
        say(db, "BEGIN IMMEDIATE");
        enum idem_local_outcome outcome = claim(db, key, &token);
        if (outcome == IDEM_LOCAL_EXECUTE) {
            (void)snprintf(sql, sizeof(sql), "INSERT INTO orders VALUES ('%s', '%d')", key, who);
            say(db, sql);
            assert_int_equal(complete(db, &token, "made"), IDEM_LOCAL_DONE);
        } else {
            assert_int_equal(outcome, IDEM_LOCAL_REPLAY);
        }
        say(db, "COMMIT");
    }
    (void)sqlite3_close(db);
}

static void processes_that_race_make_each_order_once(void **state)
{
    (void)state;
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            race(i);
            _exit(0); /* A failed expectation ends the child otherwise. */
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    sqlite3 *db = connect_to(path);
    assert_int_equal(number(db, "SELECT count(*) FROM orders"), RACE_KEYS);
    assert_int_equal(number(db, "SELECT count(DISTINCT number) FROM orders"), RACE_KEYS);
    assert_int_equal(number(db, "SELECT count(*) FROM idem_local_records WHERE state = 5"),
                     RACE_KEYS);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* --- what goes wrong ------------------------------------------------------------------------ */

/* The disk is full at every page in turn: an error says so, and nothing of the claim is left. */
static void a_full_disk_leaves_nothing_behind(void **state)
{
    (void)state;
    struct idem_local_record *record = NULL;
    sqlite3 *db = connect_to(path);
    struct idem_local local = local_of(db);
    char key[16];
    char sql[64];
    int refused = 0;
    (void)snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %d",
                   (int)number(db, "PRAGMA page_count") + 2);
    say(db, sql);
    for (int i = 0; i < ENOUGH && refused < 3; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        struct idem_local_claim wanted = claim_of(key);
        say(db, "BEGIN IMMEDIATE");
        enum idem_local_err err = idem_local_claim(&local, &wanted, &record, &error);
        if (err == IDEM_LOCAL_OK) {
            assert_int_equal(record->outcome, IDEM_LOCAL_EXECUTE);
            idem_local_record_free(record);
            say(db, "COMMIT");
            continue;
        }
        assert_int_equal(err, IDEM_LOCAL_E_DATABASE);
        assert_non_null(strstr(error.text, "full"));
        if (sqlite3_get_autocommit(db) == 0) {
            assert_non_null(strstr(error.text, "nothing was written"));
            say(db, "COMMIT");
        }
        (void)snprintf(sql, sizeof(sql),
                       "SELECT count(*) FROM idem_local_records WHERE key = 'k%d'", i);
        assert_int_equal(number(db, sql), 0);
        refused++;
    }
    assert_int_equal(refused, 3);
    say(db, "PRAGMA max_page_count = 100000");
    say(db, "BEGIN IMMEDIATE");
    assert_int_equal(claim(db, key, NULL), IDEM_LOCAL_EXECUTE);
    say(db, "COMMIT");
    assert_int_equal(number(db, "PRAGMA integrity_check") == 0, 1); /* Text "ok" is no number. */
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void files_of_idem_itself_are_refused(void **state)
{
    (void)state;
    static const int ids[] = { IDEM_SQLITE_APPLICATION_ID, IDEM_CLIENT_JOURNAL_APPLICATION_ID };
    char other[96];
    char sql[64];
    assert_int_equal(IDEM_LOCAL_SERVED_ID, IDEM_SQLITE_APPLICATION_ID);
    assert_int_equal(IDEM_LOCAL_JOURNAL_ID, IDEM_CLIENT_JOURNAL_APPLICATION_ID);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(other, sizeof(other), "%s/other%d.db", directory, (int)i);
        sqlite3 *db = connect_to(other);
        (void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", ids[i]);
        say(db, sql);
        say(db, "BEGIN IMMEDIATE");
        assert_int_equal(install(db), IDEM_LOCAL_E_INSTALL);
        assert_non_null(strstr(error.text, "use one of your own"));
        say(db, "COMMIT");
        assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema"), 0);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
    }
}

static void tables_that_are_missing_or_newer_are_told(void **state)
{
    (void)state;
    struct idem_local_record *record = NULL;
    struct idem_local_claim wanted = claim_of("k");
    struct idem_local_name name = {
        .size = sizeof(name), .principal = "shop", .endpoint = "orders.create", .key = "k"
    };
    sqlite3 *db = connect_to(":memory:");
    struct idem_local local = local_of(db);
    say(db, "BEGIN");
    assert_int_equal(idem_local_claim(&local, &wanted, &record, &error), IDEM_LOCAL_E_INSTALL);
    assert_non_null(strstr(error.text, "idem_local_install"));
    assert_int_equal(idem_local_lookup(&local, &name, &record, &error), IDEM_LOCAL_E_INSTALL);
    assert_int_equal(install(db), IDEM_LOCAL_OK);
    assert_int_equal(install(db), IDEM_LOCAL_OK);
    say(db, "UPDATE idem_local_meta SET version = 2");
    assert_int_equal(install(db), IDEM_LOCAL_E_INSTALL);
    assert_non_null(strstr(error.text, "newer library"));
    assert_int_equal(idem_local_claim(&local, &wanted, &record, &error), IDEM_LOCAL_E_INSTALL);
    assert_int_equal(number(db, "SELECT count(*) FROM idem_local_records"), 0);
    say(db, "UPDATE idem_local_meta SET version = 0");
    assert_int_equal(idem_local_claim(&local, &wanted, &record, &error), IDEM_LOCAL_E_INSTALL);
    say(db, "ROLLBACK");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void time_never_goes_back_behind_what_the_file_has_seen(void **state)
{
    (void)state;
    sqlite3 *db = connect_to(path);
    say(db, "BEGIN IMMEDIATE");
    assert_int_equal(claim(db, "k1", NULL), IDEM_LOCAL_EXECUTE);
    int64_t high_us = number(db, "SELECT high_us FROM idem_local_meta");
    const int64_t ahead_us = high_us + DAY_US;
    char sql[96];
    (void)snprintf(sql, sizeof(sql), "UPDATE idem_local_meta SET high_us = %lld",
                   (long long)ahead_us);
    say(db, sql); /* As if this machine's clock had been a day ahead, and was set right. */
    assert_int_equal(claim(db, "k2", NULL), IDEM_LOCAL_EXECUTE);
    assert_true(number(db, "SELECT lease_end_us FROM idem_local_records WHERE key = 'k2'") >=
                high_us + DAY_US + 60000000);
    assert_int_equal(claim(db, "k1", NULL), IDEM_LOCAL_UNKNOWN);
    say(db, "COMMIT");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_dispatch_that_a_loss_of_power_could_lose_is_refused(void **state)
{
    (void)state;
    struct idem_local_token token;
    struct idem_local_result result = { .size = sizeof(result) };
    sqlite3 *db = connect_to(path);
    struct idem_local local = local_of(db);
    say(db, "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE");
    assert_int_equal(claim(db, "k", &token), IDEM_LOCAL_EXECUTE);
    assert_int_equal(idem_local_dispatch(&local, &token, NULL, &result, &error),
                     IDEM_LOCAL_E_INVALID);
    assert_non_null(strstr(error.text, "synchronous"));
    say(db, "COMMIT; PRAGMA synchronous = FULL; BEGIN IMMEDIATE");
    assert_int_equal(idem_local_dispatch(&local, &token, NULL, &result, &error), IDEM_LOCAL_OK);
    assert_int_equal(result.outcome, IDEM_LOCAL_DONE);
    say(db, "COMMIT");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_file_that_cannot_be_written_is_told(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    struct idem_local_record *record = NULL;
    struct idem_local_claim wanted = claim_of("k");
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    struct idem_local local = local_of(db);
    say(db, "BEGIN");
    assert_int_equal(idem_local_claim(&local, &wanted, &record, &error), IDEM_LOCAL_E_INVALID);
    say(db, "ROLLBACK");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Damage is found before anything is decided by it. */
static void a_record_that_is_not_ours_is_told(void **state)
{
    (void)state;
    sqlite3 *db = connect_to(path);
    struct idem_local local = local_of(db);
    struct idem_local_record *record = NULL;
    struct idem_local_claim wanted = claim_of("k");
    say(db, "BEGIN IMMEDIATE");
    assert_int_equal(claim(db, "k", NULL), IDEM_LOCAL_EXECUTE);
    say(db,
        "PRAGMA ignore_check_constraints = ON;"
        "UPDATE idem_local_records SET state = 9");
    assert_int_equal(idem_local_claim(&local, &wanted, &record, &error), IDEM_LOCAL_E_DATABASE);
    say(db, "ROLLBACK");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        CASE(nothing_is_written_without_a_transaction),
        CASE(record_rows_and_answer_live_and_die_together),
        CASE(a_savepoint_takes_the_record_back_too),
        CASE(a_writer_in_the_way_is_in_progress_and_costs_nothing),
        CASE(a_transaction_that_began_by_reading_is_told_to_begin_again),
        CASE(processes_that_race_make_each_order_once),
        CASE(a_full_disk_leaves_nothing_behind),
        CASE(files_of_idem_itself_are_refused),
        CASE(tables_that_are_missing_or_newer_are_told),
        CASE(time_never_goes_back_behind_what_the_file_has_seen),
        CASE(a_dispatch_that_a_loss_of_power_could_lose_is_refused),
        CASE(a_file_that_cannot_be_written_is_told),
        CASE(a_record_that_is_not_ours_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
