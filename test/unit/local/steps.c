/*
 * Work of several steps in a caller's SQLite file, killed in the middle of every one of them.
 *
 * Goal: whatever moment the process dies at, a restarted caller goes on after the last step that is
 * committed, each step's rows are there exactly once, and what is outside was called at most once.
 *
 * Method: the job runs in a child, which kills itself with SIGKILL at a moment whose number the
 * parent gives, for every number there is; and then at moments of the clock's choosing, by the
 * parent. The parent lets leases end by moving them, and starts the job again until it is over. The
 * outside is a ledger, a file with one line for each call that arrived: the judge.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "idem/idem.h"
#include "lib/test.h"

#define STEPS      3  /* reserve, charge (outside), pack */
#define STARTS_MAX 12 /* Each start gets further, or waits for evidence once. */
#define AT_RANDOM  6  /* Kills by the clock. */

static char directory[64];
static char path[96];
static char ledger[96];
static int moment;      /* In the child: how many have passed. */
static int last_moment; /* At which it dies; 0: never. */

/* One place at which the process can die. */
static void may_die(void)
{
    moment++;
    if (moment == last_moment) {
        (void)kill(getpid(), SIGKILL);
    }
}

/* In the child there is nobody to tell but the parent: the status. */
#define CHILD_MUST(condition)                                                     \
    do {                                                                          \
        if (!(condition)) {                                                       \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            _exit(3);                                                             \
        }                                                                         \
    } while (0)

static void say(sqlite3 *db, const char *sql)
{
    char *text = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK) {
        (void)fprintf(stderr, "%s: %s\n", sql, text);
        _exit(4);
    }
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        value = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return value;
}

static sqlite3 *connect_to(void)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK) {
        _exit(4);
    }
    (void)sqlite3_busy_timeout(db, 10000);
    return db;
}

/* --- the job -------------------------------------------------------------------------------- */

struct job {
    struct idem_local local;
    struct idem_local_token token;
    struct idem_local_error error;
    char step[IDEM_LOCAL_STEP_MAX + 1]; /* The last one that is done. */
};

static void begin(struct job *job)
{
    may_die();
    say(job->local.sqlite, "BEGIN IMMEDIATE");
    may_die();
}

static void commit(struct job *job)
{
    may_die();
    say(job->local.sqlite, "COMMIT");
    may_die();
}

/* What the work is about: the caller's own row of a step, and the marker beside it. */
static void step_do(struct job *job, const char *name)
{
    char sql[96];
    struct idem_local_result result = { .size = sizeof(result) };
    const struct idem_local_step step = {
        .size = sizeof(step), .name = name, .data = "seven", .data_size = 5
    };
    (void)snprintf(sql, sizeof(sql), "INSERT INTO rows VALUES ('%s')", name);
    begin(job);
    say(job->local.sqlite, sql);
    may_die();
    CHILD_MUST(idem_local_mark(&job->local, &job->token, &step, &result, &job->error) ==
               IDEM_LOCAL_OK);
    CHILD_MUST(result.outcome == IDEM_LOCAL_DONE);
    commit(job);
}

/* The outside deduplicates nothing: every call that arrives is a line. */
static void outside_call(const char *effect_id)
{
    int fd = open(ledger, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHILD_MUST(fd >= 0);
    CHILD_MUST(dprintf(fd, "%s\n", effect_id) > 0);
    (void)close(fd);
}

static void outside_do(struct job *job)
{
    struct idem_local_result result = { .size = sizeof(result) };
    begin(job);
    CHILD_MUST(idem_local_dispatch(&job->local, &job->token, "charge", &result, &job->error) ==
               IDEM_LOCAL_OK);
    CHILD_MUST(result.outcome == IDEM_LOCAL_DONE);
    commit(job);
    outside_call(result.effect_id);
    may_die();
    step_do(job, "charged");
}

static void finish(struct job *job)
{
    struct idem_local_result result = { .size = sizeof(result) };
    const struct idem_local_answer answer = { .size = sizeof(answer),
                                              .verdict = IDEM_LOCAL_VERDICT_SUCCEEDED,
                                              .status = 201,
                                              .body = "done",
                                              .body_size = 4 };
    begin(job);
    CHILD_MUST(idem_local_complete(&job->local, &job->token, &answer, &result, &job->error) ==
               IDEM_LOCAL_OK);
    CHILD_MUST(result.outcome == IDEM_LOCAL_DONE);
    commit(job);
}

/* Claims, and says what the claim says. */
static enum idem_local_outcome job_claim(struct job *job)
{
    struct idem_local_record *record = NULL;
    const struct idem_local_claim claim = { .size = sizeof(claim),
                                            .principal = "shop",
                                            .endpoint = "orders.ship",
                                            .key = "order-1",
                                            .fingerprint = "same",
                                            .fingerprint_size = 4 };
    begin(job);
    CHILD_MUST(idem_local_claim(&job->local, &claim, &record, &job->error) == IDEM_LOCAL_OK);
    enum idem_local_outcome outcome = record->outcome;
    job->token = record->token;
    (void)snprintf(job->step, sizeof(job->step), "%s", record->step);
    CHILD_MUST(record->step[0] == '\0' || record->step_data_size == 5);
    idem_local_record_free(record);
    commit(job);
    return outcome;
}

/* The whole job, from wherever it stands. Status 0: it is over; 1: it is not its turn. */
static void job_run(void)
{
    struct job job = { .local = { .size = sizeof(job.local), .sqlite = connect_to() } };
    enum idem_local_outcome outcome = job_claim(&job);
    if (outcome == IDEM_LOCAL_REPLAY) {
        _exit(0);
    }
    if (outcome != IDEM_LOCAL_EXECUTE) {
        _exit(1);
    }
    if (job.step[0] == '\0') {
        step_do(&job, "reserved");
        (void)snprintf(job.step, sizeof(job.step), "reserved");
    }
    if (strcmp(job.step, "reserved") == 0) {
        outside_do(&job);
        (void)snprintf(job.step, sizeof(job.step), "charged");
    }
    if (strcmp(job.step, "charged") == 0) {
        step_do(&job, "packed");
    }
    finish(&job);
    _exit(0);
}

/* --- the parent ----------------------------------------------------------------------------- */

static pid_t job_start(int dies_at)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        last_moment = dies_at;
        job_run();
    }
    return pid;
}

/* Lines with that beginning. */
static int ledger_count(const char *effect_id)
{
    char line[256];
    int count = 0;
    FILE *file = fopen(ledger, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        count += strncmp(line, effect_id, strlen(effect_id)) == 0 ? 1 : 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

/* The lease of whoever died is over. */
static void lease_end(sqlite3 *db)
{
    say(db,
        "UPDATE idem_local_records SET lease_end_us = lease_end_us - 61000000,"
        " due_us = iif(due_us > 0, due_us - 61000000, 0)");
}

/*
 * What a person or a job does about a doubt: asks the outside. If it was called, the row of that
 * step is made in the transaction of the evidence, as the step would have. If not, nothing can
 * happen any more, since the one who could has died.
 */
static void doubt_settle(sqlite3 *db)
{
    struct idem_local local = { .size = sizeof(local), .sqlite = db };
    struct idem_local_result result = { .size = sizeof(result) };
    struct idem_local_error error;
    struct idem_local_list *list = NULL;
    assert_int_equal(idem_local_due(&local, 10, &list, &error), IDEM_LOCAL_OK);
    if (list->count == 0 || list->records[0]->state != IDEM_LOCAL_IN_DOUBT) {
        idem_local_list_free(list);
        return;
    }
    const struct idem_local_record *record = list->records[0];
    const bool called = record->effect_id[0] != '\0' && ledger_count(record->effect_id) > 0;
    struct idem_local_evidence evidence = {
        .size = sizeof(evidence),
        .name = { .size = sizeof(evidence.name),
                  .principal = record->principal,
                  .endpoint = record->endpoint,
                  .key = record->key },
        .answer = { .size = sizeof(evidence.answer),
                    .verdict =
                        called ? IDEM_LOCAL_VERDICT_EXECUTED : IDEM_LOCAL_VERDICT_NOT_EXECUTED },
        .step = { .size = sizeof(evidence.step),
                  .name = "charged",
                  .data = "seven",
                  .data_size = 5 },
        .effect = record->effect,
        .by = "the ledger",
        .reason = "looked",
    };
    say(db, "BEGIN IMMEDIATE");
    if (called) {
        say(db, "INSERT INTO rows VALUES ('charged')");
    }
    if (idem_local_settle(&local, &evidence, &result, &error) != IDEM_LOCAL_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(result.outcome, IDEM_LOCAL_DONE);
    say(db, "COMMIT");
    idem_local_list_free(list);
}

static int job_wait(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* Until a start replays; each time the lease ends, and doubts are settled. */
static void job_drive(sqlite3 *db)
{
    int starts = 0;
    int status = -1;
    while (status != 0) {
        assert_true(starts < STARTS_MAX);
        starts++;
        lease_end(db);
        doubt_settle(db);
        status = job_wait(job_start(0));
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    }
}

/* What must hold at the end, however it went. */
static void judge(sqlite3 *db)
{
    assert_int_equal(number(db, "SELECT count(*) FROM idem_local_records WHERE state = 5"), 1);
    assert_int_equal(number(db, "SELECT count(*) FROM rows"), STEPS);
    assert_int_equal(number(db, "SELECT count(DISTINCT name) FROM rows"), STEPS);
    assert_int_equal(ledger_count(""), 1);
}

static sqlite3 *world_begin(void)
{
    struct idem_local_error error;
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s/*", directory);
    assert_int_equal(system(command), 0);
    sqlite3 *db = connect_to();
    struct idem_local local = { .size = sizeof(local), .sqlite = db };
    say(db, "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; CREATE TABLE rows (name TEXT NOT NULL)");
    assert_int_equal(idem_local_install(&local, &error), IDEM_LOCAL_OK);
    say(db, "COMMIT");
    return db;
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof(directory), "/tmp/idem-steps-XXXXXX");
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/shop.db", directory);
    (void)snprintf(ledger, sizeof(ledger), "%s/ledger", directory);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command);
}

static void every_moment_is_survived(void **state)
{
    (void)state;
    int status = -1;
    int dies_at = 0;
    while (status != 0) {
        dies_at++;
        sqlite3 *db = world_begin();
        status = job_wait(job_start(dies_at));
        assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
        if (status != 0) {
            job_drive(db);
        }
        judge(db);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
    }
    assert_true(dies_at > 20); /* Every moment had its turn, and then there was none left. */
}

static void a_second_death_is_survived_too(void **state)
{
    (void)state;
    for (int first = 6; first < 30; first += 6) {
        for (int second = 4; second < 16; second += 6) {
            sqlite3 *db = world_begin();
            (void)job_wait(job_start(first));
            lease_end(db);
            doubt_settle(db);
            (void)job_wait(job_start(second));
            job_drive(db);
            judge(db);
            assert_int_equal(sqlite3_close(db), SQLITE_OK);
        }
    }
}

static void kills_by_the_clock_are_survived(void **state)
{
    (void)state;
    for (int i = 0; i < AT_RANDOM; i++) {
        sqlite3 *db = world_begin();
        pid_t pid = job_start(0);
        (void)poll(NULL, 0, 1 + i * 2); /* Wherever that is. */
        (void)kill(pid, SIGKILL);
        if (job_wait(pid) != 0) {
            job_drive(db);
        }
        judge(db);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_moment_is_survived, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_second_death_is_survived_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kills_by_the_clock_are_survived, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
