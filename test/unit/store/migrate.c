/*
 * A store of an older version is brought forward.
 *
 * Goal: every row is still there and usable, the tables are those of a new store, an interruption
 * at any place leaves one version or the other, and what must not be migrated is refused and left
 * alone.
 *
 * Method: files made from schema-1.sql and schema-2.sql, which those versions wrote themselves,
 * with an intent in every state. Interruptions are real: a child process dies by SIGKILL at each
 * crash point in turn.
 */
#include "store/sqlite/migrate.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/crash.h"
#include "lib/test.h"
#include "store/sqlite/sqlite_internal.h"
#include "unit/store/fixture.h"

static char *schema_1; /* The files' text. */
static char *schema_2;

static int text_read(const char *path, char **ret_text)
{
    FILE *file = fopen(path, "r");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        return -1;
    }
    long size = ftell(file);
    rewind(file);
    *ret_text = calloc(1, (size_t)size + 1);
    size_t got = *ret_text == NULL ? 0 : fread(*ret_text, 1, (size_t)size, file);
    (void)fclose(file); /* It was only read. */
    return got == (size_t)size ? 0 : -1;
}

static void outside(const struct fixture *fixture, const char *sql)
{
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &handle), SQLITE_OK);
    char *error = NULL;
    if (sqlite3_exec(handle, sql, NULL, NULL, &error) != SQLITE_OK) {
        fail_msg("%s", error);
    }
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static int64_t number(const struct fixture *fixture, const char *sql)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    return value;
}

static int setup(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_SQLITE);
    outside(&fixture, "PRAGMA journal_mode = WAL");
    outside(&fixture, schema_1);
    *state = &fixture;
    return 0;
}

static int setup_2(void **state)
{
    static struct fixture fixture;
    fixture_init(&fixture, FIXTURE_SQLITE);
    outside(&fixture, schema_2);
    outside(&fixture, "PRAGMA journal_mode = WAL");
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

static void hear(void *context, const char *line)
{
    size_t *lines = context;
    assert_true(strlen(line) > 0);
    *lines += 1;
}

static size_t lines_heard;
static const struct idem_sqlite_listener listener = { .say = hear, .context = &lines_heard };

static struct idem_sqlite_migrated migrate(struct fixture *fixture)
{
    struct idem_sqlite_migrated migrated = { .from = 0 };
    struct idem_error error;
    if (idem_sqlite_migrate(fixture->path, &listener, &migrated, &error) != IDEM_OK) {
        fail_msg("%s", error.text);
    }
    return migrated;
}

static void expect_refused(struct fixture *fixture, const char *part)
{
    struct idem_sqlite_migrated migrated;
    struct idem_error error = { .text = "" };
    enum idem_err err = idem_sqlite_migrate(fixture->path, &listener, &migrated, &error);
    assert_int_not_equal(err, IDEM_OK);
    if (strstr(error.text, part) == NULL) {
        fail_msg("expected \"%s\" in \"%s\"", part, error.text);
    }
}

static struct idem_read *operation(struct fixture *fixture, const char *key)
{
    struct call call = { .item = { .answer = IDEM_STORE_NONE } };
    call.outcome.intent.scope = fixture_scope("merchant-1", IDEM_ENDPOINT_PAYMENTS_CREATE, key);
    call.outcome.intent.principal = IDEM_STR("merchant-1");
    return fixture_operation(fixture, &call);
}

static void every_row_is_there_and_usable(void **state)
{
    static const struct {
        const char *key;
        enum idem_intent_state state;
    } rows[] = {
        { "succeeded", IDEM_INTENT_SUCCEEDED },
        { "failed", IDEM_INTENT_FAILED },
        { "dispatched", IDEM_INTENT_DISPATCHED },
        { "claimed", IDEM_INTENT_CLAIMED },
        { "unknown", IDEM_INTENT_UNKNOWN },
        { "parked", IDEM_INTENT_PARKED },
        { "released", IDEM_INTENT_RELEASED },
        { "abandoned", IDEM_INTENT_FAILED },
        { "parked-then-settled", IDEM_INTENT_SUCCEEDED },
        { "contradicted", IDEM_INTENT_FAILED },
        { "authorized", IDEM_INTENT_SUCCEEDED },
        { "authorized-2", IDEM_INTENT_SUCCEEDED },
    };
    struct fixture *fixture = *state;
    struct idem_sqlite_migrated migrated = migrate(fixture);
    assert_int_equal(migrated.from, 1);
    assert_int_equal(migrated.to, 3);
    assert_true(migrated.rewritten);
    assert_int_equal(number(fixture, "SELECT count(*) FROM intents"), 16);
    assert_int_equal(number(fixture, "SELECT count(*) FROM payments"), 11);
    assert_int_equal(number(fixture, "SELECT count(*) FROM refunds"), 2);
    assert_int_equal(number(fixture, "SELECT count(*) FROM sends"), 14);
    assert_int_equal(number(fixture, "SELECT count(*) FROM events"), 47);
    assert_int_equal(number(fixture, "SELECT count(*) FROM cases"), 3);

    fixture_open(fixture);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_read *read = operation(fixture, rows[i].key);
        assert_int_equal(read->intent.state, rows[i].state);
        EXPECT_TEXT(read->intent.key, rows[i].key);
        assert_int_equal(read->intent.reap_us, read->intent.expires_us);
        assert_int_equal(read->event_count, read->event_total);
    }
    struct idem_read *read = operation(fixture, "succeeded");
    assert_int_equal(read->intent.answer.status, 201);
    assert_true(read->intent.answer.body.len > 0);
}

/* The same request as that of version 1. */
static void repeat(struct fixture *fixture, struct call *call, const char *key, bool impatient)
{
    struct order order = {
        .principal = "merchant-1",
        .key = key,
        .order_no = key,
        .description = "Two pairs of shoes",
        .amount_minor = 1250,
        .impatient = impatient,
    };
    call_pay(fixture, call, &order);
    fixture_run_durable(fixture, call, 1);
}

static void open_work_goes_on(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    struct call settle;
    (void)migrate(fixture);
    fixture_open(fixture);
    repeat(fixture, &call, "succeeded", false);
    assert_true(call.outcome.release.replayed);
    assert_int_equal(call.outcome.intent.answer.status, 201);
    repeat(fixture, &call, "released", true);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_SEND);
    assert_int_equal(call.outcome.release.send_no, 2);

    repeat(fixture, &call, "unknown", false);
    assert_int_equal(call.outcome.release.kind, IDEM_RELEASE_WAIT);
    call_evidence(fixture, &settle, &call, IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(fixture, &settle, 1);
    assert_int_equal(settle.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    assert_true(settle.outcome.intent.reap_us > 0);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_LEFT, "");
    fixture_read(fixture);
    assert_true(read->due_count > 0); /* The leases of the former process are over. */
}

static void old_cases_are_open_only_where_somebody_must_look(void **state)
{
    struct fixture *fixture = *state;
    (void)migrate(fixture);
    fixture_open(fixture);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_LIST, "");
    read->filter = IDEM_LIST_CASES;
    fixture_read(fixture);
    assert_int_equal(read->entry_count, 2);
    assert_int_equal(read->entries[0].state, IDEM_INTENT_PARKED);
    assert_int_equal(read->entries[1].opened.kind, IDEM_CASE_CONTRADICTION);
}

/* The providers may list what it has missed under ids that no scope can be read from. */
static void effects_of_the_older_version_are_known_to_name_no_scope(void **state)
{
    struct fixture *fixture = *state;
    (void)migrate(fixture);
    for (int i = 0; i < 2; i++) {
        fixture->options.restored = i == 1;
        fixture_open(fixture);
        assert_true(fixture->store->old_effect_ids);
        fixture_close(fixture);
    }
}

/* Name, type and default of every column, in order, and every index. */
static void shape_print(const char *path, char *ret_shape, size_t max)
{
    static const char sql[] =
        "SELECT group_concat(t.name || '.' || c.name || ' ' || c.type || ' ' || c.\"notnull\", ';')"
        " || (SELECT group_concat(name || ' ' || coalesce(sql, ''), ';') FROM"
        "     (SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name))"
        " FROM (SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        "       ORDER BY name) t, pragma_table_info(t.name) c";
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    size_t len = 0;
    for (const char *at = (const char *)sqlite3_column_text(statement, 0); *at != '\0'; at++) {
        bool space = *at == ' ' || *at == '\n'; /* How a statement was broken does not matter. */
        if (space && len > 0 && ret_shape[len - 1] == ' ') {
            continue;
        }
        assert_true(len + 1 < max);
        ret_shape[len] = *at;
        if (space) {
            ret_shape[len] = ' ';
        }
        len += 1;
    }
    ret_shape[len] = '\0';
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static void its_tables_are_those_of_a_new_store(void **state)
{
    static char migrated[32768];
    static char made[32768];
    static struct fixture fresh;
    struct fixture *fixture = *state;
    (void)migrate(fixture);
    fixture_init(&fresh, FIXTURE_SQLITE);
    fixture_open(&fresh);
    fixture_close(&fresh);
    shape_print(fixture->path, migrated, sizeof(migrated));
    shape_print(fresh.path, made, sizeof(made));
    assert_string_equal(migrated, made);
    assert_int_equal(number(&fresh, "PRAGMA auto_vacuum"), 2);
    assert_int_equal(number(fixture, "PRAGMA auto_vacuum"), 2);
    fixture_deinit(&fresh);
}

static void a_store_of_the_version_before_has_all_it_had(void **state)
{
    static const struct {
        const char *key;
        enum idem_intent_state state;
    } rows[] = {
        { "succeeded", IDEM_INTENT_SUCCEEDED },  { "parked", IDEM_INTENT_PARKED },
        { "resolved", IDEM_INTENT_SUCCEEDED },   { "parked-in-2", IDEM_INTENT_PARKED },
        { "open-in-2", IDEM_INTENT_DISPATCHED }, { "abandoned-in-2", IDEM_INTENT_FAILED },
        { "tombstone", IDEM_INTENT_SUCCEEDED },
    };
    struct fixture *fixture = *state;
    struct idem_sqlite_migrated migrated = migrate(fixture);
    assert_int_equal(migrated.from, 2);
    assert_int_equal(migrated.to, 3);
    assert_false(migrated.rewritten);
    assert_int_equal(number(fixture, "SELECT count(*) FROM intents"), 21);
    assert_int_equal(number(fixture, "SELECT count(*) FROM payments"), 15);
    assert_int_equal(number(fixture, "SELECT count(*) FROM events"), 57);
    assert_int_equal(number(fixture, "SELECT count(*) FROM cases"), 5);
    assert_int_equal(number(fixture, "SELECT count(*) FROM stubs"), 1);

    fixture_open(fixture);
    assert_true(fixture->store->restored);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_read *read = operation(fixture, rows[i].key);
        assert_int_equal(read->intent.state, rows[i].state);
        assert_int_equal(read->event_count, read->event_total);
    }
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_CREDENTIALS, "");
    fixture_read(fixture);
    assert_int_equal(read->credential_count, 2);
    read = fixture_ask(fixture, IDEM_READ_CASES, "");
    fixture_read(fixture);
    assert_int_equal(read->entry_count, 5);
    EXPECT_TEXT(read->entries[1].opened.decided_by, "ops/anna");
    read = fixture_ask(fixture, IDEM_READ_EFFECTS, "");
    read->entry = IDEM_STR("sandbox");
    fixture_read(fixture);
    assert_true(read->effect_count >= 18); /* All but those that never had one. */
}

/* Nobody was told anything before: it begins with nothing, and can. */
static void a_store_of_the_version_before_can_tell_merchants(void **state)
{
    struct fixture *fixture = *state;
    struct idem_webhook_write webhook = {
        .write = IDEM_WRITE_INSERT,
        .row = {
            .id = { .bytes = { 'a' } },
            .version = 1,
            .principal = IDEM_STR("merchant-1"),
            .types = UINT64_C(1) << IDEM_MESSAGE_TEST,
            .generation = 1,
        },
    };
    struct idem_message message = {
        .id = { .bytes = { 'm' } },
        .type = IDEM_MESSAGE_TEST,
        .principal = IDEM_STR("merchant-1"),
        .at_us = FIXTURE_START_US,
    };
    (void)migrate(fixture);
    fixture_open(fixture);
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->write_webhook(rows, &webhook), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->add_message(rows, 0, &message), IDEM_ROWS_OK);
    fixture_rows_commit(rows);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_POSTS, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_int_equal(read->post_count, 1);
    assert_int_equal(read->posts[0].message.row, 1);
}

static void running_it_again_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    lines_heard = 0;
    (void)migrate(fixture);
    assert_int_equal(lines_heard, 1);
    struct idem_sqlite_migrated again = migrate(fixture);
    assert_int_equal(again.from, 3);
    assert_int_equal(again.to, 3);
    assert_false(again.rewritten);
    assert_int_equal(lines_heard, 1);
}

static void a_rewrite_that_did_not_come_to_pass_is_made_later(void **state)
{
    struct fixture *fixture = *state;
    (void)migrate(fixture);
    outside(fixture, "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM;");
    fixture_open(fixture); /* It can be served meanwhile. */
    fixture_close(fixture);
    struct idem_sqlite_migrated again = migrate(fixture);
    assert_int_equal(again.from, 3);
    assert_true(again.rewritten);
    assert_int_equal(number(fixture, "PRAGMA auto_vacuum"), 2);
}

/* Migrates in a child that dies at `point`. False: it came to its end. */
static bool child_dies(struct fixture *fixture, const char *point)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct idem_sqlite_migrated migrated;
        struct idem_error error;
        if (idem_crash_arm(point, &error) != IDEM_OK ||
            idem_sqlite_migrate(fixture->path, &listener, &migrated, &error) != IDEM_OK) {
            _exit(2);
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return false;
    }
    assert_int_equal(WTERMSIG(status), SIGKILL);
    return true;
}

/* What a version has made stands only together with its number, and the rows stay. */
static void expect_one_or_the_other(struct fixture *fixture, int64_t from, int64_t intents)
{
    static const char tables[] =
        "SELECT count(*) FROM sqlite_schema WHERE name IN ('inbox', 'webhooks', 'deliveries_due')";
    static const char version[] = "SELECT value FROM meta WHERE key = 'schema_version'";
    char point[32];
    int deaths = 0;
    for (int step = 1;; step++) {
        (void)snprintf(point, sizeof(point), "migrate-step:%d", step);
        if (!child_dies(fixture, point)) {
            break;
        }
        deaths += 1;
        assert_int_equal(number(fixture, version), from);
        assert_int_equal(number(fixture, tables), 0);
        assert_int_equal(number(fixture, "SELECT count(*) FROM intents"), intents);
    }
    assert_true(deaths >= 10);
    assert_int_equal(number(fixture, version), 3);
    assert_int_equal(number(fixture, tables), 3);
    assert_int_equal(number(fixture, "SELECT count(*) FROM intents"), intents);
}

static void an_interruption_leaves_one_version_or_the_other(void **state)
{
    expect_one_or_the_other(*state, 1, 16);
}

static void an_interruption_of_the_last_step_too(void **state)
{
    expect_one_or_the_other(*state, 2, 21);
}

static void an_interruption_around_the_commit_too(void **state)
{
    struct fixture *fixture = *state;
    static const char version[] = "SELECT value FROM meta WHERE key = 'schema_version'";
    assert_true(child_dies(fixture, "migrate-commit-before"));
    assert_int_equal(number(fixture, version), 1);
    assert_true(child_dies(fixture, "migrate-commit-after"));
    assert_int_equal(number(fixture, version), 3);
    struct idem_sqlite_migrated rest = migrate(fixture);
    assert_int_equal(rest.from, 3);
    assert_true(rest.rewritten);
    fixture_open(fixture);
    assert_int_equal(operation(fixture, "parked")->intent.state, IDEM_INTENT_PARKED);
}

static void a_served_store_is_refused(void **state)
{
    struct fixture *fixture = *state;
    (void)migrate(fixture);
    fixture_open(fixture);
    expect_refused(fixture, "another process serves");
}

static void what_is_no_older_store_is_refused_and_left_alone(void **state)
{
    struct fixture *fixture = *state;
    outside(fixture, "UPDATE meta SET value = '4' WHERE key = 'schema_version'");
    expect_refused(fixture, "has schema version 4 and this idem knows 3; there is no way back");
    outside(fixture, "DELETE FROM meta WHERE key = 'schema_version'");
    expect_refused(fixture, "is damaged or not a store");
    outside(fixture, "PRAGMA application_id = 5");
    expect_refused(fixture, "another program");

    assert_int_equal(unlink(fixture->path), 0);
    expect_refused(fixture, "No such file or directory");
    assert_int_equal(access(fixture->path, F_OK), -1);
    FILE *file = fopen(fixture->path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    expect_refused(fixture, "is empty");
}

#define MIGRATE(function)   cmocka_unit_test_setup_teardown(function, setup, teardown)
#define MIGRATE_2(function) cmocka_unit_test_setup_teardown(function, setup_2, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        MIGRATE(every_row_is_there_and_usable),
        MIGRATE(open_work_goes_on),
        MIGRATE(old_cases_are_open_only_where_somebody_must_look),
        MIGRATE(effects_of_the_older_version_are_known_to_name_no_scope),
        MIGRATE(its_tables_are_those_of_a_new_store),
        MIGRATE_2(its_tables_are_those_of_a_new_store),
        MIGRATE_2(a_store_of_the_version_before_has_all_it_had),
        MIGRATE_2(a_store_of_the_version_before_can_tell_merchants),
        MIGRATE(running_it_again_changes_nothing),
        MIGRATE(a_rewrite_that_did_not_come_to_pass_is_made_later),
        MIGRATE(an_interruption_leaves_one_version_or_the_other),
        MIGRATE_2(an_interruption_of_the_last_step_too),
        MIGRATE(an_interruption_around_the_commit_too),
        MIGRATE(a_served_store_is_refused),
        MIGRATE(what_is_no_older_store_is_refused_and_left_alone),
    };
    if (argc != 3 || text_read(argv[1], &schema_1) != 0 || text_read(argv[2], &schema_2) != 0) {
        (void)fprintf(stderr, "usage: test-store-migrate schema-1.sql schema-2.sql\n");
        return 2;
    }
    int failed = cmocka_run_group_tests_name("store migrate", tests, NULL, NULL);
    free(schema_1);
    free(schema_2);
    return failed;
}
