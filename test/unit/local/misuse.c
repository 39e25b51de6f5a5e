/*
 * Arguments at their limits and beyond: what is beyond is refused with a sentence, before a
 * database is asked, and writes nothing.
 *
 * Method: a table of arguments, each good in all but one. One SQLite database in memory counts.
 */
#include <sqlite3.h>

#include "idem/idem.h"
#include "lib/test.h"

static sqlite3 *db;
static struct idem_local local;
static struct idem_local_error error;
static char long_text[2048];

/* The last `count` bytes of a text of ones. */
static const char *ones(size_t count)
{
    return long_text + sizeof(long_text) - 1 - count;
}

static int64_t records(void)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT total(version) FROM idem_local_records", -1,
                                        &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t count = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return count;
}

static int set_up(void **state)
{
    (void)state;
    memset(long_text, '1', sizeof(long_text) - 1);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    local = (struct idem_local){ .size = sizeof(local), .sqlite = db };
    assert_int_equal(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(idem_local_install(&local, &error), IDEM_LOCAL_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return sqlite3_close(db);
}

static struct idem_local_claim good_claim(void)
{
    return (struct idem_local_claim){ .size = sizeof(struct idem_local_claim),
                                      .principal = "p",
                                      .endpoint = "e",
                                      .key = "k",
                                      .fingerprint = "f",
                                      .fingerprint_size = 1 };
}

/* A token that may do something. */
static struct idem_local_token token_make(void)
{
    struct idem_local_claim claim = good_claim();
    struct idem_local_record *record = NULL;
    assert_int_equal(idem_local_claim(&local, &claim, &record, &error), IDEM_LOCAL_OK);
    assert_int_equal(record->outcome, IDEM_LOCAL_EXECUTE);
    struct idem_local_token token = record->token;
    idem_local_record_free(record);
    return token;
}

static void refused(enum idem_local_err err, const char *word)
{
    assert_int_equal(err, IDEM_LOCAL_E_INVALID);
    if (strstr(error.text, word) == NULL || strstr(error.text, "nothing was written") == NULL) {
        fail_msg("%s: %s", word, error.text);
    }
    error.text[0] = '\0';
}

static void claims_have_limits(void **state)
{
    (void)state;
    struct idem_local_record *record = NULL;
    struct idem_local_claim claim = good_claim();
#define REFUSED(member, value, word)                                      \
    do {                                                                  \
        claim = good_claim();                                             \
        claim.member = (value);                                           \
        refused(idem_local_claim(&local, &claim, &record, &error), word); \
    } while (0)
    REFUSED(size, 0, "size");
    REFUSED(size, sizeof(claim) + 8, "size");
    REFUSED(principal, NULL, "principal");
    REFUSED(principal, "", "principal");
    REFUSED(principal, ones(65), "principal");
    REFUSED(principal, "a b", "principal");
    REFUSED(endpoint, "caf\xc3\xa9", "endpoint");
    REFUSED(endpoint, ones(65), "endpoint");
    REFUSED(key, "", "key");
    REFUSED(key, "k\x7f", "key");
    REFUSED(key, ones(256), "key");
    assert_null(record);
    assert_int_equal(records(), 0);
}

static void requests_and_leases_have_limits(void **state)
{
    (void)state;
    struct idem_local_record *record = NULL;
    struct idem_local_claim claim = good_claim();
    REFUSED(fingerprint, NULL, "fingerprint");
    REFUSED(fingerprint_size, 0, "fingerprint");
    REFUSED(fingerprint_size, 65, "fingerprint");
    REFUSED(lease_ms, -1, "lease_ms");
    REFUSED(lease_ms, 999, "lease_ms");
    REFUSED(lease_ms, 86400001, "lease_ms");
    REFUSED(lease_ms, INT64_MAX, "lease_ms");
#undef REFUSED
    claim = good_claim();
    refused(idem_local_claim(&local, &claim, NULL, &error), "result");
    refused(idem_local_claim(&local, NULL, &record, &error), "claim");
    assert_int_equal(idem_local_claim(&local, NULL, &record, NULL), IDEM_LOCAL_E_INVALID);
    assert_null(record);
    assert_int_equal(records(), 0);

    claim.key = ones(255);
    claim.principal = ones(64);
    claim.endpoint = ones(64);
    claim.fingerprint = ones(64);
    claim.fingerprint_size = 64;
    claim.lease_ms = 86400000;
    assert_int_equal(idem_local_claim(&local, &claim, &record, &error), IDEM_LOCAL_OK);
    idem_local_record_free(record);
    idem_local_record_free(NULL);
    idem_local_list_free(NULL);
}

static void a_connection_is_one_of_two(void **state)
{
    (void)state;
    struct idem_local_record *record = NULL;
    const struct idem_local_claim claim = good_claim();
    struct idem_local wrong = { .size = sizeof(wrong) };
    refused(idem_local_claim(&wrong, &claim, &record, &error), "one connection");
    wrong.sqlite = db;
    wrong.postgres = (struct pg_conn *)(void *)db;
    refused(idem_local_claim(&wrong, &claim, &record, &error), "one connection");
    wrong.postgres = NULL;
    wrong.size = 3;
    refused(idem_local_claim(&wrong, &claim, &record, &error), "size");
    refused(idem_local_claim(NULL, &claim, &record, &error), "one connection");
}

static void attempts_have_limits(void **state)
{
    (void)state;
    static char data[IDEM_LOCAL_BODY_MAX + 1];
    static const struct idem_local_token none = { .bytes = { 0 } };
    struct idem_local_result result = { .size = sizeof(result) };
    struct idem_local_result sizeless = { .size = 0 };
    const struct idem_local_token token = token_make();
    struct idem_local_step step = { .size = sizeof(step), .name = "s" };
    const int64_t before = records();

    refused(idem_local_dispatch(&local, &none, NULL, &result, &error), "token");
    refused(idem_local_dispatch(&local, NULL, NULL, &result, &error), "token");
    refused(idem_local_dispatch(&local, &token, "a:b", &result, &error), "colon");
    refused(idem_local_dispatch(&local, &token, ones(65), &result, &error), "effect");
    refused(idem_local_dispatch(&local, &token, NULL, &sizeless, &error), "size");
    refused(idem_local_dispatch(&local, &token, NULL, NULL, &error), "result");
    refused(idem_local_heartbeat(&local, &token, 999, &result, &error), "lease_ms");
    refused(idem_local_release(&local, &none, true, &result, &error), "token");
    refused(idem_local_mark(&local, &token, NULL, &result, &error), "step");
    step.name = "";
    refused(idem_local_mark(&local, &token, &step, &result, &error), "step.name");
    step.name = "s";
    step.data_size = 1;
    refused(idem_local_mark(&local, &token, &step, &result, &error), "step.data");
    step.data = data;
    step.data_size = IDEM_LOCAL_STEP_DATA_MAX + 1;
    refused(idem_local_mark(&local, &token, &step, &result, &error), "step.data");
    step.data_size = 1;
    step.lease_ms = 1;
    refused(idem_local_mark(&local, &token, &step, &result, &error), "lease_ms");
    assert_int_equal(records(), before);
    assert_int_equal(result.outcome, IDEM_LOCAL_NO_OUTCOME);
}

static void answers_have_limits(void **state)
{
    (void)state;
    static char data[IDEM_LOCAL_BODY_MAX + 1];
    struct idem_local_result result = { .size = sizeof(result) };
    const struct idem_local_token token = token_make();
    struct idem_local_answer answer;
    const int64_t before = records();
#define REFUSED(member, value, word)                                                  \
    do {                                                                              \
        answer = (struct idem_local_answer){ .size = sizeof(answer),                  \
                                             .verdict = IDEM_LOCAL_VERDICT_SUCCEEDED, \
                                             .body = data };                          \
        answer.member = (value);                                                      \
        refused(idem_local_complete(&local, &token, &answer, &result, &error), word); \
    } while (0)
    REFUSED(size, 1, "size");
    REFUSED(verdict, IDEM_LOCAL_NO_VERDICT, "SUCCEEDED");
    REFUSED(verdict, IDEM_LOCAL_VERDICT_EXECUTED, "SUCCEEDED");
    REFUSED(status, -1, "status");
    REFUSED(status, 1000, "status");
    REFUSED(headers, "\xff", "headers");
    REFUSED(body_size, IDEM_LOCAL_BODY_MAX + 1, "body");
    REFUSED(retention_ms, 3599999, "retention_ms");
    REFUSED(retention_ms, INT64_MAX, "retention_ms");
#undef REFUSED
    assert_int_equal(records(), before);
    answer = (struct idem_local_answer){ .size = sizeof(answer),
                                         .verdict = IDEM_LOCAL_VERDICT_FAILED,
                                         .status = 999,
                                         .body = data,
                                         .body_size = IDEM_LOCAL_BODY_MAX,
                                         .retention_ms = INT64_C(3660) * 86400000 };
    assert_int_equal(idem_local_complete(&local, &token, &answer, &result, &error), IDEM_LOCAL_OK);
    assert_int_equal(result.outcome, IDEM_LOCAL_DONE);
}

static void evidence_has_limits(void **state)
{
    (void)state;
    struct idem_local_result result = { .size = sizeof(result) };
    (void)token_make();
    const int64_t before = records();
    const struct idem_local_evidence good = {
        .size = sizeof(good),
        .name = { .size = sizeof(good.name), .principal = "p", .endpoint = "e", .key = "k" },
        .answer = { .size = sizeof(good.answer), .verdict = IDEM_LOCAL_VERDICT_SUCCEEDED },
        .by = "ann",
        .reason = "looked",
    };
    struct idem_local_evidence evidence = good;
#define REFUSED(member, value, word)                                          \
    do {                                                                      \
        evidence = good;                                                      \
        evidence.member = (value);                                            \
        refused(idem_local_settle(&local, &evidence, &result, &error), word); \
    } while (0)
    REFUSED(size, 0, "size");
    REFUSED(name.size, 0, "name");
    REFUSED(name.key, "", "key");
    REFUSED(answer.size, 0, "answer");
    REFUSED(answer.verdict, IDEM_LOCAL_NO_VERDICT, "SUCCEEDED");
    REFUSED(answer.verdict, IDEM_LOCAL_VERDICT_EXECUTED, "step"); /* Has none. */
    REFUSED(by, NULL, "by");
    REFUSED(by, ones(65), "by");
    REFUSED(by, "a\nb", "by");
    REFUSED(reason, "", "reason");
    REFUSED(reason, ones(256), "reason");
    REFUSED(effect, "a:b", "colon");
#undef REFUSED
    refused(idem_local_settle(&local, NULL, &result, &error), "evidence");
    assert_int_equal(records(), before);
    evidence = good;
    evidence.by = "\xe5\xae\x89"; /* People have names. */
    assert_int_equal(idem_local_settle(&local, &evidence, &result, &error), IDEM_LOCAL_OK);
    assert_int_equal(result.outcome, IDEM_LOCAL_DONE);
}

static void looks_have_limits(void **state)
{
    (void)state;
    struct idem_local_record *record = NULL;
    struct idem_local_list *list = NULL;
    struct idem_local_reaped reaped = { .size = 0 };
    struct idem_local_name name = { .size = sizeof(name), .principal = "p", .endpoint = "e" };
    refused(idem_local_lookup(&local, &name, &record, &error), "key");
    refused(idem_local_lookup(&local, NULL, &record, &error), "name");
    refused(idem_local_lookup(&local, &name, NULL, &error), "result");
    refused(idem_local_due(&local, 0, &list, &error), "limit");
    refused(idem_local_due(&local, 10001, &list, &error), "limit");
    refused(idem_local_due(&local, 1, NULL, &error), "result");
    refused(idem_local_reap(&local, 1, &reaped, &error), "size");
    reaped.size = sizeof(reaped);
    refused(idem_local_reap(&local, 0, &reaped, &error), "limit");
    assert_string_equal(idem_local_outcome_name((enum idem_local_outcome)99), "none");
    assert_string_equal(idem_local_state_name((enum idem_local_state)99), "none");
    assert_string_equal(idem_local_state_name(IDEM_LOCAL_IN_DOUBT), "unknown");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(claims_have_limits),         CASE(requests_and_leases_have_limits),
        CASE(a_connection_is_one_of_two), CASE(attempts_have_limits),
        CASE(answers_have_limits),        CASE(evidence_has_limits),
        CASE(looks_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
