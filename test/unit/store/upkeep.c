/*
 * What the embedded store does for itself: marks that outlive a process, damage, free pages,
 * copies.
 *
 * Goal: the restored mode and retention's horizon stand over restarts; damage that a read or a
 * write meets breaks the store instead of being answered as nothing for ever; a file from which
 * much has gone becomes smaller beside load; a copy that is made while batches run is whole.
 *
 * Method: real files. Damage is done by overwriting pages of a file that is closed.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "lib/test.h"
#include "store/sqlite/backup.h"
#include "store/sqlite/file_internal.h"
#include "store/sqlite/rows_internal.h"
#include "unit/store/fixture.h"

static int setup(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_SQLITE);
    fixture_open(&fixture);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

static void reopen(struct fixture *fixture, bool restored)
{
    fixture_close(fixture);
    fixture->options.restored = restored;
    fixture_open(fixture);
}

static void outside(const struct fixture *fixture, const char *sql)
{
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static int64_t number(const char *path, const char *sql)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL), SQLITE_OK);
    int64_t value = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    return value;
}

static void pay_begin(struct fixture *fixture, struct call *call, size_t number)
{
    static char names[16][24]; /* Of the calls that are under way. */
    char *name = names[number % IDEM_ARRAY_COUNT(names)];
    (void)snprintf(name, sizeof(names[0]), "name-%zu", number);
    struct order order = {
        .principal = "merchant-1",
        .key = name,
        .order_no = name,
        .amount_minor = 1250,
    };
    call_pay(fixture, call, &order);
}

static void pay(struct fixture *fixture, struct call *call, size_t number)
{
    struct call settle;
    pay_begin(fixture, call, number);
    fixture_run_durable(fixture, call, 1);
    call_evidence(fixture, &settle, call, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &settle, 1);
}

static void mark(struct fixture *fixture, enum idem_mark_kind kind, int64_t value_us)
{
    struct call call;
    struct idem_command *command = call_begin(fixture, &call, IDEM_COMMAND_MARK);
    command->mark = (struct idem_mark){
        .kind = kind,
        .value_us = value_us,
        .by = IDEM_STR("ops/anna"),
        .reason = IDEM_STR("the listing is complete"),
    };
    fixture_run_durable(fixture, &call, 1);
}

static void the_restored_mode_outlives_the_process_until_it_is_over(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    pay(fixture, &call, 1);
    fixture->clock.wall_base_us += IDEM_US_PER_DAY;
    reopen(fixture, true);
    assert_true(fixture->store->restored);
    assert_int_equal(fixture->store->newest_us, FIXTURE_START_US);
    reopen(fixture, false); /* Nobody has to say it twice, */
    assert_true(fixture->store->restored);
    reopen(fixture, true); /* and saying it again moves nothing. */
    assert_true(fixture->store->restored);
    assert_int_equal(fixture->store->newest_us, FIXTURE_START_US);

    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    assert_false(fixture->store->restored);
    pay(fixture, &call, 2);
    reopen(fixture, false);
    assert_false(fixture->store->restored);
    assert_int_equal(fixture->store->newest_us, FIXTURE_START_US + IDEM_US_PER_DAY);
    assert_int_equal(number(fixture->path,
                            "SELECT count(*) FROM meta WHERE key LIKE 'restored_over_%'"
                            " AND value = 'ops/anna: the listing is complete'"),
                     1);
}

/* A newest time is compared with the clock of the moment when the copy was put back. */
static void the_clock_of_the_restored_mode_is_that_of_its_beginning(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    pay(fixture, &call, 1);
    fixture->clock.wall_base_us -= IDEM_US_PER_DAY; /* It ran ahead, and does not any more. */
    reopen(fixture, false);
    assert_int_equal(fixture->store->opened_us, FIXTURE_START_US - IDEM_US_PER_DAY);
    assert_int_equal(fixture->clock.wall_base_us, FIXTURE_START_US);

    fixture->clock.wall_base_us -= IDEM_US_PER_DAY;
    reopen(fixture, true);
    assert_int_equal(fixture->store->opened_us, FIXTURE_START_US - IDEM_US_PER_DAY);
    assert_int_equal(fixture->store->newest_us, FIXTURE_START_US);
    fixture->clock.wall_base_us = FIXTURE_START_US + 7 * IDEM_US_PER_DAY;
    reopen(fixture, false);
    assert_int_equal(fixture->store->opened_us, FIXTURE_START_US - IDEM_US_PER_DAY);
    assert_int_equal(fixture->store->newest_us, FIXTURE_START_US);

    mark(fixture, IDEM_MARK_RESTORED_OVER, 0);
    reopen(fixture, true); /* Another copy. */
    assert_int_equal(fixture->store->opened_us, FIXTURE_START_US + 7 * IDEM_US_PER_DAY);
}

static void an_empty_store_was_not_restored(void **state)
{
    struct fixture *fixture = *state;
    struct idem_store *store = NULL;
    struct idem_error error = { .text = "" };
    fixture_close(fixture);
    assert_int_equal(unlink(fixture->path), 0);
    fixture->options.restored = true;
    assert_int_equal(fixture_try_open(fixture, &store, &error), IDEM_E_STORE);
    assert_non_null(strstr(error.text, "is empty: --restored is for a copy"));
}

static void a_new_store_has_its_horizon_with_its_first_incarnation(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(fixture->store->horizon_us, FIXTURE_START_US);
    fixture_close(fixture);
    assert_int_equal(number(fixture->path, "SELECT value FROM meta WHERE key = 'reap_horizon_us'"),
                     FIXTURE_START_US);
    fixture->clock.wall_base_us += 365 * IDEM_US_PER_DAY;
    fixture_open(fixture);
    assert_int_equal(fixture->store->horizon_us, FIXTURE_START_US);
}

/* As an older idem could leave them, that died before its first mark. */
static void records_without_a_horizon_get_the_newest_time_in_them(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    fixture->clock.wall_base_us += IDEM_US_PER_DAY;
    pay(fixture, &call, 1);
    fixture_close(fixture);
    outside(fixture, "DELETE FROM meta WHERE key IN ('reap_horizon_us', 'clock_seen_us')");
    fixture->clock.wall_base_us += 365 * IDEM_US_PER_DAY; /* And this one may be wrong. */
    fixture_open(fixture);
    assert_int_equal(fixture->store->horizon_us, FIXTURE_START_US + IDEM_US_PER_DAY);
}

/* What passed before the last mark is known, although nothing else was written. */
static void a_clock_that_is_put_back_is_held_at_the_last_mark(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    pay(fixture, &call, 1);
    fixture->clock.wall_base_us += IDEM_US_PER_DAY;
    mark(fixture, IDEM_MARK_HORIZON, FIXTURE_START_US + 7); /* Far behind: it only chases. */
    fixture_close(fixture);
    fixture->clock.wall_base_us = FIXTURE_START_US;
    fixture_open(fixture);
    assert_int_equal(idem_clock_wall_us(&fixture->clock), FIXTURE_START_US + IDEM_US_PER_DAY);
    assert_int_equal(fixture->store->horizon_us, FIXTURE_START_US + 7);
    assert_int_equal(fixture->store->opened_us, FIXTURE_START_US);
}

static void the_horizon_goes_forward_only(void **state)
{
    struct fixture *fixture = *state;
    mark(fixture, IDEM_MARK_HORIZON, FIXTURE_START_US + 7);
    mark(fixture, IDEM_MARK_HORIZON, FIXTURE_START_US + 3);
    reopen(fixture, false);
    assert_int_equal(fixture->store->horizon_us, FIXTURE_START_US + 7);
    assert_true(idem_clock_wall_us(&fixture->clock) >= FIXTURE_START_US + 7);
}

/* A clock that was years ahead once: time goes on from there, and nothing is lost. */
static void a_clock_that_went_back_is_held_at_what_was_stored(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    fixture->clock.wall_base_us += 3650 * IDEM_US_PER_DAY;
    pay(fixture, &call, 1);
    fixture_close(fixture);
    fixture->clock.wall_base_us = FIXTURE_START_US;
    fixture_open(fixture);
    assert_true(idem_clock_wall_us(&fixture->clock) >= FIXTURE_START_US + 3650 * IDEM_US_PER_DAY);
    pay_begin(fixture, &call, 1);
    fixture_run_durable(fixture, &call, 1);
    assert_true(call.outcome.release.replayed);
    assert_int_equal(call.outcome.intent.answer.status, 201);
}

/* Overwrites every page of the closed file that has `text` in it. */
static void pages_damage(const struct fixture *fixture, const char *text)
{
    char page[IDEM_SQLITE_PAGE_SIZE];
    int fd = open(fixture->path, O_RDWR);
    int damaged = 0;
    assert_true(fd >= 0);
    for (off_t at = 0; pread(fd, page, sizeof(page), at) == (ssize_t)sizeof(page);
         at += (off_t)sizeof(page)) {
        if (at > 0 && memmem(page, sizeof(page), text, strlen(text)) != NULL) {
            memset(page, 0, sizeof(page));
            assert_int_equal(pwrite(fd, page, sizeof(page), at), sizeof(page));
            damaged += 1;
        }
    }
    assert_int_equal(close(fd), 0);
    assert_true(damaged > 0);
}

/* So many that an opening does not meet the first ones. */
static void many_pay(struct fixture *fixture)
{
    struct call call;
    for (size_t i = 1; i <= 400; i++) {
        pay(fixture, &call, i);
    }
}

static void expect_nothing_runs(struct fixture *fixture)
{
    struct call call;
    assert_true(fixture->store->broken);
    pay_begin(fixture, &call, 1000);
    assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_DOWN);
    (void)fixture_ask(fixture, IDEM_READ_DUE, "");
    fixture_read(fixture);
    assert_int_equal(fixture->read.answer, IDEM_STORE_DOWN);
}

static void damage_that_a_write_meets_breaks_the_store(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    many_pay(fixture);
    fixture_close(fixture);
    pages_damage(fixture, "name-7");
    fixture_open(fixture);
    pay_begin(fixture, &call, 7);
    assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_DOWN);
    assert_int_equal(call.item.answer,
                     IDEM_STORE_DOWN); /* Nothing was written, and that is known. */
    expect_nothing_runs(fixture);
}

static void damage_that_a_read_meets_breaks_the_store(void **state)
{
    struct fixture *fixture = *state;
    many_pay(fixture);
    fixture_close(fixture);
    pages_damage(fixture, "name-7");
    fixture_open(fixture);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_OPERATION_BY_SCOPE, "merchant-1");
    read->scope = fixture_scope("merchant-1", IDEM_ENDPOINT_PAYMENTS_CREATE, "name-7");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DOWN);
    expect_nothing_runs(fixture);
}

static void a_value_that_we_never_wrote_breaks_the_store(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    pay(fixture, &call, 1);
    outside(fixture, "UPDATE intents SET token = x'00'");
    pay_begin(fixture, &call, 1);
    assert_int_equal(fixture_run(fixture, &call, 1), IDEM_STORE_DOWN);
    expect_nothing_runs(fixture);
}

/* A store of its own, of which one number is flipped. */
static void expect_broken_by(struct fixture *fixture, const char *flip)
{
    struct call call;
    char sql[160];
    pay(fixture, &call, 1);
    (void)snprintf(sql, sizeof(sql), "PRAGMA ignore_check_constraints = ON; %s", flip);
    outside(fixture, sql);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_ANY_OPERATION, "");
    read->id = call.outcome.intent.id;
    fixture_read(fixture);
    if (read->answer != IDEM_STORE_DOWN) {
        fail_msg("%s", flip);
    }
    expect_nothing_runs(fixture);
}

/* One bit of a number, as a disk loses it: the file's own checks do not see it. */
static void a_number_that_is_no_word_of_ours_breaks_the_store(void **state)
{
    struct fixture *fixture = *state;
    static const char *const flips[] = {
        "UPDATE intents SET state = 0",
        "UPDATE intents SET state = state + 64",
        "UPDATE intents SET endpoint = endpoint + 64",
        "UPDATE intents SET step = step + 1024",
        "UPDATE intents SET problem = problem + 1024",
        "UPDATE intents SET effect_kind = effect_kind + 64",
        "UPDATE intents SET send_count = send_count + 64",
        "UPDATE intents SET close_asked = close_asked + 2",
        "UPDATE sends SET state = state + 64",
        "UPDATE sends SET no = no + 64",
        "UPDATE events SET kind = kind + 64",
        "UPDATE events SET cause = 0",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(flips); i++) {
        expect_broken_by(fixture, flips[i]);
        fixture_deinit(fixture);
        fixture_init(fixture, FIXTURE_SQLITE);
        fixture_open(fixture);
    }
}

static void text_that_is_not_there_is_not_empty(void **state)
{
    (void)state;
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    struct idem_str text;
    char memory[16];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    assert_int_equal(sqlite3_open(":memory:", &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, "SELECT NULL, '', 'a'", -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_false(idem_sqlite_read_text(statement, 0, &text));
    assert_true(idem_sqlite_read_text(statement, 1, &text));
    assert_int_equal(text.len, 0);
    assert_true(idem_sqlite_read_text(statement, 2, &text));
    EXPECT_TEXT(text, "a");
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(idem_sqlite_value_read(handle, "SELECT ''", NULL, &buf), SQLITE_OK);
    assert_int_equal(idem_sqlite_value_read(handle, "SELECT NULL", NULL, &buf), SQLITE_NOMEM);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static void a_truncated_file_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct idem_store *store = NULL;
    struct idem_error error = { .text = "" };
    many_pay(fixture);
    fixture_close(fixture);
    assert_int_equal(truncate(fixture->path, (off_t)20 * IDEM_SQLITE_PAGE_SIZE), 0);
    assert_int_equal(fixture_try_open(fixture, &store, &error), IDEM_E_STORE);
    assert_non_null(strstr(error.text, "restore a backup"));
}

static void reap_all(struct fixture *fixture)
{
    struct call call;
    struct idem_due due[IDEM_READ_DUE_MAX];
    for (;;) {
        struct idem_read *read = fixture_ask(fixture, IDEM_READ_REAP, "");
        fixture_read(fixture);
        size_t count = read->due_count;
        if (count == 0) {
            return;
        }
        memcpy(due, read->due, sizeof(due));
        for (size_t i = 0; i < count; i++) {
            struct idem_command *command = call_begin(fixture, &call, IDEM_COMMAND_REAP);
            command->scope = due[i].scope;
            command->intent_row = due[i].row;
            command->reap.horizon_us = fixture->clock.wall_base_us;
            fixture_run_durable(fixture, &call, 1);
        }
    }
}

static int64_t pages_used(const struct fixture *fixture)
{
    return number(fixture->path,
                  "SELECT page_count - freelist_count FROM pragma_page_count,"
                  " pragma_freelist_count");
}

/* Each row becomes smaller where it lies, so pages must be joined for it to show. */
static void tombstones_need_less_room_than_records(void **state)
{
    struct fixture *fixture = *state;
    many_pay(fixture);
    int64_t before = pages_used(fixture);
    fixture->clock.wall_base_us += fixture->rules.answer_retention_us;
    reap_all(fixture);
    assert_int_equal(number(fixture->path,
                            "SELECT count(*) FROM intents WHERE row IN"
                            " (SELECT row FROM payments)"),
                     400); /* Each kept its handle. */
    assert_int_equal(number(fixture->path, "SELECT sum(length(answer_body)) FROM intents"), 0);
    assert_true(pages_used(fixture) < before * 6 / 10);
}

/* Abandoned keys: records without a payment, so that all of them may go. */
static void many_abandon(struct fixture *fixture, size_t count)
{
    char name[200];
    struct call call;
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof(name), "%0190zu", i);
        call_abandon(fixture, &call, "merchant-1", name);
        fixture_run_durable(fixture, &call, 1);
    }
}

static void a_file_from_which_much_has_gone_becomes_smaller(void **state)
{
    struct fixture *fixture = *state;
    many_abandon(fixture, 8000);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_SUMMARY, "");
    fixture_read(fixture);
    int64_t pages_full = number(fixture->path, "PRAGMA page_count");
    assert_true(read->summary.bytes > pages_full * IDEM_SQLITE_PAGE_SIZE); /* With the log. */

    fixture->clock.wall_base_us += fixture->rules.answer_retention_us;
    reap_all(fixture);
    fixture->clock.wall_base_us += fixture->rules.tombstone_us;
    reap_all(fixture);
    assert_int_equal(number(fixture->path, "SELECT count(*) FROM intents"), 0);
    assert_int_equal(number(fixture->path, "SELECT count(*) FROM events"), 0);
    int64_t pages_left = number(fixture->path, "PRAGMA page_count");
    assert_true(pages_full > 1500);
    assert_true(pages_left < 1100); /* What stays free for use again, and a little. */
    assert_false(fixture->store->broken);
    assert_int_equal(number(fixture->path,
                            "SELECT integrity_check = 'ok' FROM"
                            " pragma_integrity_check"),
                     1);
}

static void a_copy_has_what_was_durable_and_nothing_is_held_up(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    char copy[128];
    struct idem_sqlite_copied copied = { .newest_us = 0 };
    struct idem_error error = { .text = "" };
    for (size_t i = 1; i <= 50; i++) {
        pay(fixture, &call, i);
    }
    (void)snprintf(copy, sizeof(copy), "%s/copy.db", fixture->directory);
    assert_int_equal(idem_sqlite_copy(fixture->path, copy, &copied, &error), IDEM_OK);
    assert_int_equal(copied.newest_us, FIXTURE_START_US);
    assert_int_equal(strlen(copied.effect_secret_check), 64);
    assert_int_equal(number(copy, "SELECT count(*) FROM intents WHERE state = 5"), 50);
    assert_int_equal(number(copy, "PRAGMA auto_vacuum"), 2); /* It will stay as it was made. */
    pay(fixture, &call, 51);

    assert_int_equal(idem_sqlite_copy(fixture->path, copy, &copied, &error), IDEM_E_STORE);
    assert_int_equal(unlink(copy), 0);
}

#define UPKEEP(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UPKEEP(the_restored_mode_outlives_the_process_until_it_is_over),
        UPKEEP(the_clock_of_the_restored_mode_is_that_of_its_beginning),
        UPKEEP(an_empty_store_was_not_restored),
        UPKEEP(a_number_that_is_no_word_of_ours_breaks_the_store),
        cmocka_unit_test(text_that_is_not_there_is_not_empty),
        UPKEEP(a_new_store_has_its_horizon_with_its_first_incarnation),
        UPKEEP(records_without_a_horizon_get_the_newest_time_in_them),
        UPKEEP(a_clock_that_is_put_back_is_held_at_the_last_mark),
        UPKEEP(the_horizon_goes_forward_only),
        UPKEEP(a_clock_that_went_back_is_held_at_what_was_stored),
        UPKEEP(damage_that_a_write_meets_breaks_the_store),
        UPKEEP(damage_that_a_read_meets_breaks_the_store),
        UPKEEP(a_value_that_we_never_wrote_breaks_the_store),
        UPKEEP(a_truncated_file_is_refused),
        UPKEEP(tombstones_need_less_room_than_records),
        UPKEEP(a_file_from_which_much_has_gone_becomes_smaller),
        UPKEEP(a_copy_has_what_was_durable_and_nothing_is_held_up),
    };
    return cmocka_run_group_tests_name("store upkeep", tests, NULL, NULL);
}
