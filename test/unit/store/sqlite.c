/*
 * The embedded store and its file: restarts, refusals at the door, and a disk that fails.
 *
 * Goal: what was answered DURABLE is there after a restart and the old leases are over; a file that
 * must not be opened is not, with a reason that helps; a disk that cannot be written gives NOTHING
 * before COMMIT, and UNKNOWN with a broken store at COMMIT, after which nothing is decided.
 *
 * Method: real files in a directory of the test's own. Disk faults come from SQLite's own virtual
 * file system, with the methods of one open file replaced.
 */
#include "store/sqlite/sqlite_internal.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "lib/test.h"
#include "store/sqlite/schema.h"
#include "unit/store/fixture.h"

static const struct order shoes = {
    .principal = "merchant-1",
    .key = "key-1",
    .order_no = "order-1",
    .amount_minor = 1250,
};

/* The faults, by kind of file. */
static atomic_bool log_write_fails;
static atomic_bool log_sync_fails;
static atomic_bool database_sync_fails;

static sqlite3_vfs *real_vfs;
static sqlite3_vfs fault_vfs;
static const sqlite3_io_methods *real_log;
static const sqlite3_io_methods *real_database;
static sqlite3_io_methods log_methods;
static sqlite3_io_methods database_methods;

static int log_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
    if (atomic_load(&log_write_fails)) {
        return SQLITE_FULL;
    }
    return real_log->xWrite(file, data, size, offset);
}

static int log_sync(sqlite3_file *file, int flags)
{
    return atomic_load(&log_sync_fails) ? SQLITE_IOERR_FSYNC : real_log->xSync(file, flags);
}

static int database_sync(sqlite3_file *file, int flags)
{
    return atomic_load(&database_sync_fails) ? SQLITE_IOERR_FSYNC
                                             : real_database->xSync(file, flags);
}

static int fault_open(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    (void)vfs; /* The real one opens. */
    int rc = real_vfs->xOpen(real_vfs, name, file, flags, ret_flags);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if ((flags & SQLITE_OPEN_WAL) != 0) {
        file->pMethods = &log_methods;
    } else if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
        file->pMethods = &database_methods;
    }
    return rc;
}

static const sqlite3_io_methods *methods_of(sqlite3 *handle, int which)
{
    sqlite3_file *file = NULL;
    assert_int_equal(sqlite3_file_control(handle, "main", which, &file), SQLITE_OK);
    assert_non_null(file);
    return file->pMethods;
}

/* Looks at the methods of real files once, and registers the faulty copies as the default. */
static int faults_install(void **state)
{
    (void)state;
    static struct fixture fixture;
    sqlite3 *handle = NULL;
    fixture_init(&fixture, FIXTURE_SQLITE);
    assert_int_equal(sqlite3_open(fixture.path, &handle), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(handle, "PRAGMA journal_mode = WAL; CREATE TABLE a (b)", NULL, NULL, NULL),
        SQLITE_OK);
    real_database = methods_of(handle, SQLITE_FCNTL_FILE_POINTER);
    real_log = methods_of(handle, SQLITE_FCNTL_JOURNAL_POINTER);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    fixture_deinit(&fixture);

    log_methods = *real_log;
    log_methods.xWrite = log_write;
    log_methods.xSync = log_sync;
    database_methods = *real_database;
    database_methods.xSync = database_sync;
    real_vfs = sqlite3_vfs_find(NULL);
    fault_vfs = *real_vfs;
    fault_vfs.zName = "fault";
    fault_vfs.xOpen = fault_open;
    return sqlite3_vfs_register(&fault_vfs, 1);
}

static int setup_closed(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_SQLITE);
    *state = &fixture;
    return 0;
}

static int setup(void **state)
{
    (void)setup_closed(state);
    fixture_open(*state);
    return 0;
}

static int teardown(void **state)
{
    atomic_store(&log_write_fails, false);
    atomic_store(&log_sync_fails, false);
    atomic_store(&database_sync_fails, false);
    fixture_deinit(*state);
    return 0;
}

static void reopen(struct fixture *fixture)
{
    fixture_close(fixture);
    fixture_open(fixture);
}

/* Opening fails, and the reason has `part` in it. */
static void expect_refused(struct fixture *fixture, const char *part)
{
    struct idem_store *store = NULL;
    struct idem_error error = { .text = "" };
    enum idem_err err = fixture_try_open(fixture, &store, &error);
    assert_int_not_equal(err, IDEM_OK);
    assert_null(store);
    if (strstr(error.text, part) == NULL) {
        fail_msg("expected \"%s\" in \"%s\"", part, error.text);
    }
}

/* Runs SQL on the file from outside. Returns SQLite's code. */
static int outside(const struct fixture *fixture, const char *sql)
{
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &handle), SQLITE_OK);
    int rc = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    return rc;
}

static void pay(struct fixture *fixture, struct call *call)
{
    call_pay(fixture, call, &shoes);
    fixture_run_durable(fixture, call, 1);
    assert_int_equal(call->outcome.release.kind, IDEM_RELEASE_SEND);
}

static void what_was_durable_is_there_after_a_restart(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call settle;
    pay(fixture, &accept);
    reopen(fixture);
    call_evidence(fixture, &settle, &accept, IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &settle, 1);
    assert_int_equal(settle.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    reopen(fixture);

    struct idem_read *read = fixture_operation(fixture, &accept);
    assert_int_equal(read->intent.state, IDEM_INTENT_SUCCEEDED);
    assert_true(idem_str_equal(read->intent.answer.body, settle.outcome.intent.answer.body));
    assert_int_equal(read->send_count, 1);
    assert_int_equal(read->event_count, read->event_total);
}

static void every_opening_is_a_new_incarnation_and_ends_the_leases(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call due;
    int64_t incarnation = fixture->store->incarnation;
    pay(fixture, &accept);
    reopen(fixture);
    assert_int_equal(fixture->store->incarnation, incarnation + 1);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_LEFT, "");
    fixture_read(fixture);
    assert_int_equal(read->due_count, 1);
    assert_int_equal(read->due[0].row, accept.outcome.intent.row);
    read->after_row = read->due[0].row;
    fixture_read(fixture);
    assert_int_equal(read->due_count, 0);

    call_due(fixture, &due, accept.outcome.intent.scope, accept.outcome.intent.row);
    fixture_run_durable(fixture, &due, 1);
    assert_int_equal(due.outcome.intent.state, IDEM_INTENT_UNKNOWN);
}

static void a_command_of_the_former_process_is_recognised(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    pay(fixture, &accept);
    struct idem_release release = accept.outcome.release;
    reopen(fixture);
    fixture_run_durable(fixture, &accept, 1);
    assert_int_equal(accept.outcome.release.kind, release.kind);
    assert_int_equal(accept.outcome.release.send_no, release.send_no);
    assert_int_equal(accept.outcome.release.not_after_us, release.not_after_us);
}

static void time_that_was_stored_is_not_met_again(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    pay(fixture, &accept);
    fixture_close(fixture);
    fixture->clock.wall_base_us = FIXTURE_START_US - IDEM_US_PER_DAY;
    fixture_open(fixture);
    assert_true(idem_clock_wall_us(&fixture->clock) >= FIXTURE_START_US);
}

static void a_second_opener_is_refused(void **state)
{
    struct fixture *fixture = *state;
    expect_refused(fixture, "another process serves");
    reopen(fixture); /* And the lock goes with its holder. */
}

static void store_is_named(struct fixture *fixture, const char *name)
{
    (void)snprintf(fixture->path, sizeof(fixture->path), "%s/%s", fixture->directory, name);
}

/* Another name for the file, `other.db`; the fixture goes on with it. */
static void other_name_make(struct fixture *fixture, char ret_former[128])
{
    (void)snprintf(ret_former, 128, "%s", fixture->path);
    store_is_named(fixture, "other.db");
    assert_int_equal(link(ret_former, fixture->path), 0);
}

/* And away again, with what an opening under it has left. */
static void other_name_remove(struct fixture *fixture)
{
    assert_int_equal(unlink(fixture->path), 0);
    store_is_named(fixture, "other.db.lock");
    assert_int_equal(unlink(fixture->path), 0);
    store_is_named(fixture, "store.db");
}

static void a_file_with_two_names_is_refused_by_either(void **state)
{
    struct fixture *fixture = *state;
    char former[128];
    fixture_close(fixture);
    other_name_make(fixture, former);
    expect_refused(fixture, "has 2 names");
    store_is_named(fixture, "store.db");
    expect_refused(fixture, "has 2 names");

    store_is_named(fixture, "other.db");
    other_name_remove(fixture);
    fixture_open(fixture);
}

/* As through a mount of the single file: the name, and so PATH.lock, is another one. */
static void a_file_that_is_served_under_another_name_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char former[128];
    other_name_make(fixture, former);
    assert_int_equal(unlink(former), 0);
    expect_refused(fixture, "another process serves");

    assert_int_equal(link(fixture->path, former), 0);
    other_name_remove(fixture);
    reopen(fixture);
}

static void a_store_keeps_its_birth_time(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    fixture->clock.wall_base_us += IDEM_US_PER_DAY;
    reopen(fixture);
    pay(fixture, &call);
    assert_int_equal(call.item.command.memory_since_us, FIXTURE_START_US);
}

static void a_store_without_a_birth_time_remembers_for_ever(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    assert_int_equal(outside(fixture, "DELETE FROM meta WHERE key = 'created_us'"), SQLITE_OK);
    reopen(fixture);
    pay(fixture, &call);
    assert_int_equal(call.item.command.memory_since_us, 0);
}

/* Or the file without its log would look like one that is yet to begin. */
static void a_new_stores_tables_are_in_its_file_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct stat info;
    assert_int_equal(stat(fixture->path, &info), 0);
    assert_true(info.st_size > INT64_C(4096) * 4);
}

static void only_the_owner_may_read_the_file(void **state)
{
    struct fixture *fixture = *state;
    struct stat info;
    assert_int_equal(stat(fixture->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void another_effect_secret_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    fixture->options.effect_secret_check.bytes[0] ^= 1;
    expect_refused(fixture, "effect_secret is not the one");
    fixture->options.effect_secret_check.bytes[0] ^= 1;
    fixture_open(fixture);
}

static void another_scope_rule_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    fixture->options.scope_rule = IDEM_STR("principal");
    expect_refused(fixture, "scope is \"principal\" but this store was made with \"endpoint\"");
}

static void a_refused_opening_counts_no_incarnation(void **state)
{
    struct fixture *fixture = *state;
    int64_t incarnation = fixture->store->incarnation;
    fixture_close(fixture);
    fixture->options.scope_rule = IDEM_STR("principal");
    expect_refused(fixture, "scope is");
    fixture->options.scope_rule = IDEM_STR("endpoint");
    fixture_open(fixture);
    assert_int_equal(fixture->store->incarnation, incarnation + 1);
}

/* Only a store that has webhooks asks for them: how many there are is counted at its opening. */
static void a_merchant_is_told_after_a_restart_too(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    struct call accept;
    struct call settle;
    struct idem_webhook_write write = {
        .write = IDEM_WRITE_INSERT,
        .row = {
            .id = { .bytes = { 'w' } },
            .version = 1,
            .principal = IDEM_STR("merchant-1"),
            .types = UINT64_C(1) << IDEM_MESSAGE_PAYMENT_CAPTURED,
            .generation = 1,
        },
    };
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->write_webhook(rows, &write), IDEM_ROWS_OK);
    fixture_rows_commit(rows);
    fixture_close(fixture);
    fixture_open(fixture);

    struct order order = {
        .principal = "merchant-1",
        .key = "key-1",
        .order_no = "order-1",
        .amount_minor = 100,
    };
    call_pay(fixture, &accept, &order);
    fixture_run_durable(fixture, &accept, 1);
    call_evidence(fixture, &settle, &accept, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &settle, 1);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_POSTS, "");
    fixture_read(fixture);
    assert_int_equal(read->post_count, 1);
}

static void a_newer_schema_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    assert_int_equal(outside(fixture, "UPDATE meta SET value = '4' WHERE key = 'schema_version'"),
                     SQLITE_OK);
    expect_refused(fixture, "has schema version 4 and this idem knows 3");
}

static void an_older_schema_is_refused_and_the_way_forward_named(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    assert_int_equal(outside(fixture, "UPDATE meta SET value = '1' WHERE key = 'schema_version'"),
                     SQLITE_OK);
    expect_refused(fixture,
                   "make a backup, then run: idem migrate --store sqlite:/tmp/idem-store-");
}

static void garbage_is_refused(void **state)
{
    struct fixture *fixture = *state;
    FILE *file = fopen(fixture->path, "w");
    assert_non_null(file);
    for (int i = 0; i < 5000; i++) {
        assert_true(fputs("not a database ", file) >= 0);
    }
    assert_int_equal(fclose(file), 0);
    expect_refused(fixture, "damaged or not a store of idem");
}

static void another_programs_database_is_refused_and_left_alone(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(outside(fixture, "CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)"),
                     SQLITE_OK);
    expect_refused(fixture, "a database of another program");
    assert_int_equal(outside(fixture, "INSERT INTO theirs VALUES (2)"), SQLITE_OK);
    assert_int_not_equal(outside(fixture, "SELECT * FROM meta"), SQLITE_OK);
}

static void a_directory_is_refused(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    expect_refused(fixture, "is not a file");
}

static void a_path_that_leads_nowhere_is_refused(void **state)
{
    struct fixture *fixture = *state;
    (void)snprintf(fixture->path, sizeof(fixture->path), "%s/absent/store.db", fixture->directory);
    expect_refused(fixture, "No such file or directory");
}

static void a_locked_database_gives_nothing_and_later_works(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    call_pay(fixture, &call, &shoes);
    assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_NOTHING);
    assert_false(fixture->store->broken);

    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    fixture_run_durable(fixture, &call, 1);
}

/* Claims of new keys, with order numbers of their own. */
static struct call *claims_make(struct fixture *fixture, size_t count)
{
    struct call *calls = calloc(count, sizeof(*calls));
    char(*names)[24] = calloc(count, sizeof(*names));
    assert_non_null(calls);
    assert_non_null(names);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "name-%llu",
                       (unsigned long long)fixture->uid_next);
        struct order order = shoes;
        order.key = names[i];
        order.order_no = names[i];
        call_pay(fixture, &calls[i], &order);
    }
    return calls;
}

static void claims_free(struct call *calls)
{
    char *names = NULL; /* The first key is the start of all names. */
    memcpy(&names, &calls[0].item.command.accept.key.data, sizeof(names));
    free(names);
    free(calls);
}

static void a_full_database_gives_nothing_and_keeps_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct idem_sqlite *sqlite = IDEM_CONTAINER_OF(fixture->store, struct idem_sqlite, base);
    /* The writer waits for its first batch: nobody uses its connection now. */
    assert_int_equal(
        sqlite3_exec(sqlite->writer.handle, "PRAGMA max_page_count = 40", NULL, NULL, NULL),
        SQLITE_OK);
    struct call *calls = claims_make(fixture, IDEM_STORE_BATCH_MAX);
    assert_int_equal(fixture_run(fixture, calls, IDEM_STORE_BATCH_MAX), IDEM_STORE_NOTHING);
    assert_int_equal(calls[0].item.answer, IDEM_STORE_NOTHING);
    assert_false(fixture->store->broken);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_OPERATION_BY_SCOPE, "merchant-1");
    read->scope = calls[0].item.command.scope;
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_false(read->found);

    reopen(fixture); /* With room again. */
    fixture_run_durable(fixture, calls, IDEM_STORE_BATCH_MAX);
    claims_free(calls);
}

/* A commit failed: the store is broken now, and the next process finds the truth. */
static void expect_broken_then_truth(struct fixture *fixture, struct call *call)
{
    assert_int_equal(call->item.answer, IDEM_STORE_UNKNOWN);
    assert_true(fixture->store->broken);
    struct call other;
    struct order order = shoes;
    order.key = "key-2";
    order.order_no = "order-2";
    call_pay(fixture, &other, &order);
    assert_int_equal(fixture_run(fixture, &other, 1), IDEM_STORE_DOWN);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_DUE, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DOWN);

    atomic_store(&log_write_fails, false);
    atomic_store(&log_sync_fails, false);
    reopen(fixture);
    fixture_run_durable(fixture, call, 1);
    assert_int_equal(call->outcome.release.kind, IDEM_RELEASE_SEND);
    assert_int_equal(call->outcome.release.send_no, 1);
    assert_int_equal(fixture_operation(fixture, call)->send_count, 1);
    fixture_run_durable(fixture, &other, 1);
}

static void a_log_that_cannot_be_written_breaks_the_store(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    call_pay(fixture, &call, &shoes);
    atomic_store(&log_write_fails, true);
    assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_UNKNOWN);
    expect_broken_then_truth(fixture, &call);
}

static void a_log_that_cannot_be_flushed_breaks_the_store(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    call_pay(fixture, &call, &shoes);
    atomic_store(&log_sync_fails, true);
    assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_UNKNOWN);
    expect_broken_then_truth(fixture, &call);
}

static off_t log_size(const struct fixture *fixture)
{
    char name[128];
    struct stat info;
    (void)snprintf(name, sizeof(name), "%s-wal", fixture->path);
    assert_int_equal(stat(name, &info), 0);
    return info.st_size;
}

static void what_a_dead_process_left_in_the_log_is_brought_home_first(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    struct call *calls = claims_make(fixture, 64);
    fixture_run_durable(fixture, calls, 64);
    atomic_store(&log_sync_fails, true);
    call_pay(fixture, &call, &shoes);
    assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_UNKNOWN);
    fixture_close(fixture); /* A broken store leaves its log as it is. */
    off_t left = log_size(fixture);
    atomic_store(&log_sync_fails, false);
    fixture_open(fixture);
    assert_true(log_size(fixture) < left / 4);
    fixture_run_durable(fixture, calls, 64);
    assert_int_equal(calls[63].outcome.release.kind, IDEM_RELEASE_SEND);
    claims_free(calls);
}

static void a_replay_needs_no_disk(void **state)
{
    struct fixture *fixture = *state;
    struct call accept;
    struct call again;
    pay(fixture, &accept);
    atomic_store(&log_write_fails, true);
    atomic_store(&log_sync_fails, true);
    call_pay(fixture, &again, &shoes);
    fixture_run_durable(fixture, &again, 1);
    assert_int_equal(again.outcome.release.kind, IDEM_RELEASE_WAIT);
}

/* Batches without a pause: checkpoints run beside them, and are waited for from some length on. */
static void the_log_stays_bounded(void **state)
{
    struct fixture *fixture = *state;
    struct stat info;
    for (int i = 0; i < 48; i++) {
        struct call *calls = claims_make(fixture, IDEM_STORE_BATCH_MAX);
        fixture_run_durable(fixture, calls, IDEM_STORE_BATCH_MAX);
        claims_free(calls);
    }
    assert_true(log_size(fixture) < INT64_C(18000) * 4096);
    for (int tries = 0; tries < 1000; tries++) { /* The content goes where it belongs. */
        assert_int_equal(stat(fixture->path, &info), 0);
        if (info.st_size > INT64_C(600) * 4096) {
            return;
        }
        (void)usleep(10000); /* It comes; nothing says when. */
    }
    fail();
}

static void a_checkpoint_that_cannot_flush_breaks_the_store(void **state)
{
    struct fixture *fixture = *state;
    atomic_store(&database_sync_fails, true);
    enum idem_store_answer answer = IDEM_STORE_DURABLE;
    for (int i = 0; i < 100 && answer == IDEM_STORE_DURABLE; i++) {
        struct call *calls = claims_make(fixture, IDEM_STORE_BATCH_MAX);
        answer = fixture_run(fixture, calls, IDEM_STORE_BATCH_MAX);
        claims_free(calls);
        (void)usleep(10000); /* For a pass to get to the log's end, where it flushes. */
    }
    assert_int_equal(answer, IDEM_STORE_DOWN);
    assert_true(fixture->store->broken);
}

static atomic_int wakes;
static void (*wake_on)(void *context);

static void wake_counted(void *context)
{
    atomic_fetch_add(&wakes, 1);
    wake_on(context);
}

/* The owner may have nothing to submit: it must be woken to see that the store is broken. */
static void a_checkpoint_that_breaks_the_store_wakes_its_owner(void **state)
{
    struct fixture *fixture = *state;
    enum idem_store_answer answer = IDEM_STORE_DURABLE;
    int batches = 0;
    fixture_close(fixture);
    atomic_store(&wakes, 0);
    wake_on = fixture->options.wake;
    fixture->options.wake = wake_counted;
    fixture_open(fixture);
    atomic_store(&database_sync_fails, true);
    while (batches < 100 && answer == IDEM_STORE_DURABLE) {
        struct call *calls = claims_make(fixture, IDEM_STORE_BATCH_MAX);
        answer = fixture_run(fixture, calls, IDEM_STORE_BATCH_MAX);
        claims_free(calls);
        batches += 1;
        (void)usleep(10000); /* For a pass to get to the log's end, where it flushes. */
    }
    assert_int_equal(answer, IDEM_STORE_DOWN);
    fixture_close(fixture); /* Whoever wakes has done so. */
    assert_int_equal(atomic_load(&wakes), batches + 1);
}

static void a_file_that_was_opened_by_somebody_else_is_not_written(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    assert_int_equal(outside(fixture, "UPDATE meta SET value = '9' WHERE key = 'incarnation'"),
                     SQLITE_OK);
    call_pay(fixture, &call, &shoes);
    assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_WRONG_NODE);
    assert_true(fixture->store->broken); /* The other one serves it; this process is over. */
    assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_DOWN);
}

static void a_store_that_is_broken_from_outside_writes_nothing_more(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    idem_store_break(fixture->store);
    call_pay(fixture, &call, &shoes);
    assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_DOWN);
    (void)fixture_ask(fixture, IDEM_READ_DUE, "");
    fixture_read(fixture);
    assert_int_equal(fixture->read.answer, IDEM_STORE_DOWN);
    assert_true(fixture->store->broken);
}

static void expect_constraint(struct fixture *fixture, const char *sql)
{
    if (outside(fixture, sql) != SQLITE_CONSTRAINT) {
        fail_msg("not refused: %s", sql);
    }
}

static void the_file_itself_refuses_sums_that_cannot_be(void **state)
{
    static const char *const wrong[] = {
        "UPDATE payments SET captured_minor = authorized_minor + 1",
        "UPDATE payments SET authorized_minor = 1250, captured_minor = 1000,"
        " capture_pending_minor = 200, released_minor = 51",
        "UPDATE payments SET refund_pending_minor = captured_minor + 1",
        "UPDATE payments SET refunded_minor = -1",
        "UPDATE payments SET state = 0",
        "UPDATE payments SET amount_minor = '12.50'",
        "UPDATE intents SET state = 8",
        "INSERT INTO payments SELECT NULL, randomblob(16), 1, 1, principal, order_no,"
        " capture_mode, amount_minor, currency, 0, 0, 0, 0, 0, 0, 0, entry, account, region,"
        " effect_id, '', '', '', '', '', 1, 1 FROM payments",
    };
    struct fixture *fixture = *state;
    struct call accept;
    pay(fixture, &accept);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(wrong); i++) {
        expect_constraint(fixture, wrong[i]);
    }
}

#define OPEN(function)   cmocka_unit_test_setup_teardown(function, setup, teardown)
#define CLOSED(function) cmocka_unit_test_setup_teardown(function, setup_closed, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN(what_was_durable_is_there_after_a_restart),
        OPEN(every_opening_is_a_new_incarnation_and_ends_the_leases),
        OPEN(a_command_of_the_former_process_is_recognised),
        OPEN(time_that_was_stored_is_not_met_again),
        OPEN(a_second_opener_is_refused),
        OPEN(a_file_with_two_names_is_refused_by_either),
        OPEN(a_file_that_is_served_under_another_name_is_refused),
        OPEN(a_store_keeps_its_birth_time),
        OPEN(a_store_without_a_birth_time_remembers_for_ever),
        OPEN(a_new_stores_tables_are_in_its_file_at_once),
        OPEN(only_the_owner_may_read_the_file),
        OPEN(another_effect_secret_is_refused),
        OPEN(another_scope_rule_is_refused),
        OPEN(a_refused_opening_counts_no_incarnation),
        OPEN(a_merchant_is_told_after_a_restart_too),
        OPEN(a_newer_schema_is_refused),
        OPEN(an_older_schema_is_refused_and_the_way_forward_named),
        CLOSED(garbage_is_refused),
        CLOSED(another_programs_database_is_refused_and_left_alone),
        CLOSED(a_directory_is_refused),
        CLOSED(a_path_that_leads_nowhere_is_refused),
        OPEN(a_locked_database_gives_nothing_and_later_works),
        OPEN(a_full_database_gives_nothing_and_keeps_nothing),
        OPEN(a_log_that_cannot_be_written_breaks_the_store),
        OPEN(a_log_that_cannot_be_flushed_breaks_the_store),
        OPEN(what_a_dead_process_left_in_the_log_is_brought_home_first),
        OPEN(a_replay_needs_no_disk),
        OPEN(the_log_stays_bounded),
        OPEN(a_checkpoint_that_cannot_flush_breaks_the_store),
        OPEN(a_checkpoint_that_breaks_the_store_wakes_its_owner),
        OPEN(a_file_that_was_opened_by_somebody_else_is_not_written),
        OPEN(a_store_that_is_broken_from_outside_writes_nothing_more),
        OPEN(the_file_itself_refuses_sums_that_cannot_be),
    };
    return cmocka_run_group_tests_name("store sqlite", tests, faults_install, NULL);
}
