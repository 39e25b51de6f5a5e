/*
 * The store on PostgreSQL with several instances.
 *
 * Goal: they share a database without taking one another's work; one of them wins each key; who
 * waits at one hears of what another one ends, and nothing is said where nobody waits. What no
 * standby has is told to nobody. Programs of two versions work beside one another where the schema
 * says that they may, and nowhere else.
 *
 * Method: two stores in one process on a private server with fsync on (pg_scene.h); a next version
 * that does not exist; a stranger who listens and who says anything.
 */
#include <libpq-fe.h>
#include <poll.h>

#include "base/attr.h"
#include "store/postgres/migrate.h"
#include "store/postgres/rows_internal.h"
#include "store/postgres/schema.h"
#include "unit/store/pg_scene.h"

static const struct order shoes = {
    .principal = "merchant-1",
    .key = "key-1",
    .order_no = "order-1",
    .amount_minor = 1250,
};

static size_t left_count(struct fixture *fixture)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_LEFT, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return read->due_count;
}

static long long incarnation_of(const char *key)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "SELECT incarnation FROM idem.intents WHERE key = '%s'", key);
    return pg_server_number(fixture_server(), sql);
}

static void nobody_takes_what_a_living_instance_works_on(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call call;
    struct call due;
    struct call joins;
    pg_second_open(&second, first);
    assert_int_not_equal(second.store->incarnation, first->store->incarnation);
    call_pay(first, &call, &shoes);
    fixture_run_durable(first, &call, 1);

    assert_int_equal(left_count(&second), 0);
    call_due(&second, &due, call.outcome.intent.scope, call.outcome.intent.row);
    fixture_run_durable(&second, &due, 1);
    assert_int_equal(due.outcome.release.kind, IDEM_RELEASE_NONE);
    assert_int_equal(due.outcome.intent.state, IDEM_INTENT_DISPATCHED);
    call_pay(&second, &joins, &shoes);
    fixture_run_durable(&second, &joins, 1);
    assert_int_equal(joins.outcome.release.kind, IDEM_RELEASE_WAIT);
    assert_int_equal(incarnation_of("key-1"), first->store->incarnation);

    fixture_close(first); /* It says so: what it left is over at once. */
    assert_int_equal(left_count(&second), 1);
    call_due(&second, &due, call.outcome.intent.scope, call.outcome.intent.row);
    fixture_run_durable(&second, &due, 1);
    assert_int_not_equal(due.outcome.release.kind, IDEM_RELEASE_NONE);
    assert_int_equal(incarnation_of("key-1"), second.store->incarnation);
    pg_second_close(&second);
    fixture_open(first);
}

static void who_only_writes_on_an_intent_does_not_become_its_owner(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call call;
    struct call news;
    pg_second_open(&second, first);
    call_pay(first, &call, &shoes);
    fixture_run_durable(first, &call, 1);
    call_evidence(&second, &news, &call, IDEM_SOURCE_QUERY, IDEM_OUTCOME_NOT_FOUND);
    fixture_run_durable(&second, &news, 1);
    assert_true(news.outcome.intent.version > call.outcome.intent.version); /* It wrote. */
    assert_int_equal(incarnation_of("key-1"), first->store->incarnation);
    pg_second_close(&second);
}

static void an_instance_that_fell_silent_is_dead(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call call;
    call_pay(first, &call, &shoes);
    fixture_run_durable(first, &call, 1);
    pg_server_say(fixture_server(), "UPDATE idem.instances SET seen_us = seen_us - 20000000");
    pg_second_open(&second, first);
    assert_int_equal(left_count(&second), 1);
    pg_second_close(&second);
}

enum {
    OLD_KEYS = 40
};

static size_t reap_share(struct fixture *fixture, bool ret_found[OLD_KEYS + 1])
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_REAP, "");
    fixture_read(fixture);
    for (size_t i = 0; i < read->due_count; i++) {
        assert_true(read->due[i].row <= OLD_KEYS);
        assert_false(ret_found[read->due[i].row]); /* Nobody found it before. */
        ret_found[read->due[i].row] = true;
    }
    return read->due_count;
}

/* What a dead one had is shared anew: nothing is left to nobody. */
static void living_instances_share_what_retention_has_reached(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    static char names[OLD_KEYS][16];
    bool found[OLD_KEYS + 1] = { false };
    bool found_alone[OLD_KEYS + 1] = { false };
    struct call call;
    for (size_t i = 0; i < OLD_KEYS; i++) {
        struct order order = shoes;
        (void)snprintf(names[i], sizeof(names[i]), "name-%zu", i);
        order.key = names[i];
        order.order_no = names[i];
        call_pay(first, &call, &order);
        fixture_run_durable(first, &call, 1);
    }
    pg_server_say(fixture_server(), "UPDATE idem.intents SET reap_us = 1");
    pg_second_open(&second, first);
    assert_int_equal(reap_share(first, found), OLD_KEYS / 2);
    assert_int_equal(reap_share(&second, found), OLD_KEYS / 2);
    pg_server_say(fixture_server(),
                  "UPDATE idem.instances SET ended_us = 1"
                  " WHERE id <> (SELECT max(id) FROM idem.instances)");
    assert_int_equal(reap_share(&second, found_alone), OLD_KEYS);
    pg_second_close(&second);
}

enum {
    RACE_KEYS = 64
};

/* The same keys at two instances at once, in opposite order. */
static void one_of_two_instances_wins_each_key(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    static struct call calls[2][RACE_KEYS];
    static char names[RACE_KEYS][16];
    struct idem_store_batch batches[2] = { { .answer = IDEM_STORE_NONE },
                                           { .answer = IDEM_STORE_NONE } };
    pg_second_open(&second, first);
    struct fixture *const both[] = { first, &second };
    for (size_t i = 0; i < RACE_KEYS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "name-%zu", i);
    }
    for (size_t i = 0; i < 2 * (size_t)RACE_KEYS; i++) {
        size_t side = i % 2;
        size_t key = side == 0 ? i / 2 : RACE_KEYS - 1 - i / 2;
        struct order order = shoes;
        order.key = names[key];
        order.order_no = names[key];
        call_pay(both[side], &calls[side][key], &order);
        idem_list_push(&batches[side].items, &calls[side][key].item.node);
    }
    for (size_t side = 0; side < 2; side++) {
        idem_store_submit(both[side]->store, &batches[side]);
    }
    for (size_t side = 0; side < 2; side++) {
        struct idem_list done = { .count = 0 };
        struct idem_list reads = { .count = 0 };
        while (done.count == 0) {
            fixture_wait(both[side]);
            idem_store_reap(both[side]->store, &done, &reads);
        }
        pg_expect_answer(batches[side].answer, "durable");
    }
    for (size_t key = 0; key < RACE_KEYS; key++) {
        bool first_sends = calls[0][key].outcome.release.kind == IDEM_RELEASE_SEND;
        bool second_sends = calls[1][key].outcome.release.kind == IDEM_RELEASE_SEND;
        assert_int_not_equal(first_sends, second_sends);
    }
    assert_int_equal(pg_count_intents(), RACE_KEYS);
    assert_int_equal(pg_server_number(fixture_server(), "SELECT count(*) FROM idem.sends"),
                     RACE_KEYS);
    pg_second_close(&second);
}

static struct idem_postgres_listener *listener_of(struct fixture *fixture)
{
    return &IDEM_CONTAINER_OF(fixture->store, struct idem_postgres, base)->listener;
}

static void wait_connected(struct fixture *fixture)
{
    for (int i = 0; i < TRIES_MAX && !atomic_load(&listener_of(fixture)->connected); i++) {
        (void)poll(NULL, 0, STEP_MS);
    }
    assert_true(atomic_load(&listener_of(fixture)->connected));
    (void)idem_store_heard(fixture->store); /* A new connection may have missed something. */
}

/* How many of the one intent need not be waited for. */
static size_t over_count(struct fixture *fixture, const struct call *call)
{
    struct idem_due waited = { .scope = call->outcome.intent.scope,
                               .row = call->outcome.intent.row };
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_WAITED, "");
    read->waited = &waited;
    read->waited_count = 1;
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return read->waited_count;
}

static bool heard_within(struct fixture *fixture, int tries)
{
    for (int i = 0; i < tries; i++) {
        if (idem_store_heard(fixture->store)) {
            return true;
        }
        (void)poll(NULL, 0, STEP_MS);
    }
    return false;
}

static void who_waits_elsewhere_hears_of_the_end(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call call;
    struct call end;
    pg_second_open(&second, first);
    wait_connected(first);
    wait_connected(&second);
    call_pay(first, &call, &shoes);
    fixture_run_durable(first, &call, 1);

    assert_int_equal(over_count(&second, &call), 0);
    for (int i = 0; i < TRIES_MAX && atomic_load(&listener_of(first)->wish_count) == 0; i++) {
        (void)poll(NULL, 0, STEP_MS);
    }
    assert_int_equal(atomic_load(&listener_of(first)->wish_count), 1);
    assert_int_equal(atomic_load(&listener_of(&second)->wish_count), 0); /* Its own. */
    assert_false(idem_store_heard(second.store));

    call_evidence(first, &end, &call, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(first, &end, 1);
    assert_true(heard_within(&second, TRIES_MAX));
    assert_false(heard_within(first, 1));
    assert_int_equal(over_count(&second, &call), 1);
    struct idem_read *read = fixture_ask(&second, IDEM_READ_INTENT, "");
    read->scope = call.outcome.intent.scope;
    fixture_read(&second);
    assert_true(read->found);
    assert_int_equal(read->intent.state, IDEM_INTENT_SUCCEEDED);
    pg_second_close(&second);
}

static size_t notified_count(PGconn *stranger)
{
    size_t count = 0;
    PGnotify *notify = NULL;
    PQclear(PQexec(stranger, "SELECT 1"));
    while ((notify = PQnotifies(stranger)) != NULL) {
        assert_int_equal(strspn(notify->extra, "0123456789, "), strlen(notify->extra));
        count += 1;
        PQfreemem(notify);
    }
    return count;
}

static void nothing_is_said_where_nobody_waits(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call call;
    struct call end;
    char sql[64];
    pg_second_open(&second, first);
    wait_connected(first);
    wait_connected(&second);
    PGconn *stranger = pg_stranger_begin("LISTEN idem_wanted");
    (void)snprintf(sql, sizeof(sql), "LISTEN idem_%lld", (long long)second.store->incarnation);
    PQclear(PQexec(stranger, sql));

    call_pay(first, &call, &shoes);
    fixture_run_durable(first, &call, 1);
    call_evidence(first, &end, &call, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(first, &end, 1);
    assert_int_equal(notified_count(stranger), 0);

    struct order other = shoes;
    other.key = "key-2";
    other.order_no = "order-2";
    call_pay(first, &call, &other);
    fixture_run_durable(first, &call, 1);
    assert_int_equal(over_count(&second, &call), 0);
    assert_int_equal(over_count(&second, &call), 0); /* It is not said twice. */
    while (atomic_load(&listener_of(first)->wish_count) == 0) {
        (void)poll(NULL, 0, STEP_MS);
    }
    call_evidence(first, &end, &call, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(first, &end, 1);
    assert_true(heard_within(&second, TRIES_MAX));
    assert_int_equal(notified_count(stranger), 2); /* The wish, and its answer. */
    PQfinish(stranger);
    pg_second_close(&second);
}

/* Whoever may connect may say anything: it is a reason to look, and no more. */
static void what_strangers_say_does_no_harm(void **state)
{
    static const char many[] =
        "SELECT pg_notify('idem_wanted', '7 ' || string_agg(i::text, ','))"
        " FROM generate_series(1, 1500) i";
    static const char *const sayings[] = {
        "SELECT pg_notify('idem_wanted', '')",
        "SELECT pg_notify('idem_wanted', 'x')",
        "SELECT pg_notify('idem_wanted', '7')",
        "SELECT pg_notify('idem_wanted', '7 ')",
        "SELECT pg_notify('idem_wanted', '-7 1,2')",
        "SELECT pg_notify('idem_wanted', '7 1,,2')",
        "SELECT pg_notify('idem_wanted', '99999999999999999999 1')",
        "SELECT pg_notify('idem_wanted', '7 99999999999999999999')",
        many,
    };
    struct fixture *fixture = *state;
    struct call call;
    wait_connected(fixture);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sayings); i++) {
        (void)pg_server_number(fixture_server(), sayings[i]);
    }
    while (atomic_load(&listener_of(fixture)->wish_count) < 1500) {
        (void)poll(NULL, 0, STEP_MS);
    }
    assert_int_equal(atomic_load(&listener_of(fixture)->wish_count), 1500);
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
}

static void a_listener_that_was_cut_off_comes_back_and_looks(void **state)
{
    struct fixture *fixture = *state;
    wait_connected(fixture);
    (void)pg_wait_for(
        "SELECT pg_terminate_backend(pid)::integer FROM pg_stat_activity"
        " WHERE query LIKE '%pg_notify%' AND pid <> pg_backend_pid()");
    assert_true(heard_within(fixture, TRIES_MAX));
}

/* The one that the tests are about, and one that is refused as too old. */
static void two_call(struct fixture *fixture, struct call calls[2])
{
    struct order other = shoes;
    other.key = "key-2";
    other.order_no = "order-2";
    call_pay(fixture, &calls[0], &shoes);
    call_pay(fixture, &calls[1], &other);
    calls[1].item.command.accept.first_sent_us = 1;
}

/*
 * A wait for the standby that somebody cancelled leaves a row that everybody sees and that a
 * failover loses. It is told to nobody.
 */
static void what_no_standby_has_is_told_to_nobody(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct flight flight;
    struct call joins[2];
    pg_second_open(&second, first);
    pg_writer_connect(first);
    fixture_close(&second);
    second.postgres.wait_us = 700 * IDEM_US_PER_MS;
    fixture_open(&second);
    /* Refused, and nothing written: it has handles left, so that the next one needs no sequence. */
    two_call(&second, joins);
    joins[0].item.command.accept.first_sent_us = 1;
    fixture_run_durable(&second, joins, 2);
    assert_int_equal(joins[0].outcome.release.problem, IDEM_PROBLEM_TOO_OLD);
    for (int i = 0; i < 2; i++) { /* Each of its readers is connected. */
        (void)fixture_ask(&second, IDEM_READ_DUE, "");
        fixture_read(&second);
    }
    pg_standby_expect(true);
    call_pay(first, &flight.call, &shoes);
    pg_flight_submit(first, &flight);
    (void)pg_wait_for(
        "SELECT pg_cancel_backend(pid)::integer FROM pg_stat_activity"
        " WHERE wait_event = 'SyncRep' AND query = 'COMMIT'");
    pg_expect_answer(pg_flight_reap(first, &flight), "unknown");
    assert_int_equal(pg_count_intents(), 1); /* It is there to be seen. */

    two_call(&second, joins); /* Two: what is alone takes its row's lock, which is a write. */
    struct idem_read *read = fixture_ask(&second, IDEM_READ_INTENT, "");
    read->scope = flight.call.item.command.scope;
    fixture_read(&second);
    assert_int_not_equal(read->answer, IDEM_STORE_DURABLE);
    pg_expect_answer(fixture_run(&second, joins, 2), "unknown");
    pg_standby_expect(false);
    pg_expect_found_out(first, &flight.call);
    pg_second_close(&second);
}

static const char *const only_more[] = {
    "ALTER TABLE idem.intents ADD COLUMN later bigint NOT NULL DEFAULT 0",
    "CREATE TABLE idem.later (row bigint PRIMARY KEY)",
};

#define THIS IDEM_POSTGRES_SCHEMA_VERSION
#define NEXT (THIS + 1)

/* A next version that does not exist. `min_version`: who may work on it. */
static const struct idem_postgres_schema *next_version(int64_t min_version)
{
    static struct idem_postgres_migration migrations[NEXT];
    static struct idem_postgres_schema schema = { .migrations = migrations, .version = NEXT };
    memcpy(migrations, idem_postgres_schema.migrations, THIS * sizeof(migrations[0]));
    migrations[THIS] = (struct idem_postgres_migration){
        .statements = only_more,
        .count = IDEM_ARRAY_COUNT(only_more),
        .min_version = min_version,
    };
    return &schema;
}

static long long migration_count(void)
{
    return pg_server_number(fixture_server(), "SELECT count(*) FROM idem.migrations");
}

static void migrate(const struct fixture *fixture,
                    const struct idem_postgres_schema *schema,
                    int64_t from,
                    int64_t to)
{
    struct idem_postgres_settings settings = fixture->postgres;
    struct idem_postgres_migrated migrated = { .from = -1 };
    struct idem_error error = { .text = "" };
    settings.schema = schema;
    if (idem_postgres_migrate(&settings, &migrated, &error) != IDEM_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(migrated.from, from);
    assert_int_equal(migrated.to, to);
}

static void expect_not_migrated(const struct fixture *fixture,
                                const struct idem_postgres_schema *schema,
                                const char *word)
{
    struct idem_postgres_settings settings = fixture->postgres;
    struct idem_postgres_migrated migrated = { .from = -1 };
    struct idem_error error = { .text = "" };
    settings.schema = schema;
    assert_int_equal(idem_postgres_migrate(&settings, &migrated, &error), IDEM_E_STORE);
    assert_non_null(strstr(error.text, word));
    assert_int_equal(migrated.from, -1);
}

static void instances_of_two_versions_work_beside_one_another(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call call;
    struct call joins;
    migrate(first, NULL, THIS, THIS);
    call_pay(first, &call, &shoes);
    fixture_run_durable(first, &call, 1);
    first->postgres.schema = next_version(THIS);
    second = *first;
    pg_expect_refused(&second, "idem migrate"); /* A newer program waits for the newer schema. */
    first->postgres.schema = NULL;

    migrate(first, next_version(THIS), THIS, NEXT); /* While the first serves. */
    migrate(first, next_version(THIS), NEXT, NEXT);
    expect_not_migrated(first, NULL, "no way back");
    assert_int_equal(migration_count(), NEXT);
    fixture_run_durable(first, &call, 1);
    first->postgres.schema = next_version(THIS);
    pg_second_open(&second, first);
    first->postgres.schema = NULL;
    call_pay(&second, &joins, &shoes);
    fixture_run_durable(&second, &joins, 1);
    assert_int_equal(joins.outcome.release.kind, IDEM_RELEASE_WAIT);
    fixture_close(first);
    fixture_open(first); /* The older program starts again. */
    struct call evidence;
    call_evidence(first, &evidence, &call, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    fixture_run_durable(first, &evidence, 1);
    assert_int_equal(evidence.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    pg_second_close(&second);
}

static void a_version_that_breaks_others_waits_until_they_are_gone(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    struct call late;
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    expect_not_migrated(fixture, next_version(NEXT), "stop them first");
    assert_int_equal(migration_count(), THIS);

    /* It stands still, and is taken for dead. */
    pg_server_say(fixture_server(), "UPDATE idem.instances SET seen_us = 1");
    migrate(fixture, next_version(NEXT), THIS, NEXT);
    call_evidence(fixture, &late, &call, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    pg_expect_answer(fixture_run(fixture, &late, 1), "wrong-node");
    assert_int_equal(
        pg_server_number(fixture_server(), "SELECT count(*) FROM idem.intents WHERE state = 2"), 1);
    char word[16];
    (void)snprintf(word, sizeof(word), "version %d", NEXT);
    fixture_close(fixture);
    pg_expect_refused(fixture, word);
    fixture->postgres.schema = next_version(NEXT);
    fixture_open(fixture);
    fixture_run_durable(fixture, &late, 1);
}

static void a_migration_that_fails_changes_nothing(void **state)
{
    static const char *const broken[] = {
        "ALTER TABLE idem.intents ADD COLUMN later bigint NOT NULL DEFAULT 0",
        "SELECT 1 / 0",
    };
    struct fixture *fixture = *state;
    struct idem_postgres_migration migrations[NEXT];
    const struct idem_postgres_schema schema = { .migrations = migrations, .version = NEXT };
    memcpy(migrations, idem_postgres_schema.migrations, THIS * sizeof(migrations[0]));
    migrations[THIS] = (struct idem_postgres_migration){
        .statements = broken,
        .count = 2,
        .min_version = THIS,
    };
    expect_not_migrated(fixture, &schema, "division by zero");
    assert_int_equal(pg_server_number(fixture_server(),
                                      "SELECT count(*) FROM information_schema.columns"
                                      " WHERE table_schema = 'idem' AND column_name = 'later'"),
                     0);
    pg_server_say(fixture_server(), "DROP SCHEMA idem CASCADE");
    expect_not_migrated(fixture, NULL, "nothing to migrate");
    fixture_close(fixture);
    fixture_open(fixture);
}

/* As its program made it: the later ones' tables are not there. */
static void a_store_of_the_first_version_goes_on(void **state)
{
    struct fixture *fixture = *state;
    const struct idem_postgres_schema first = {
        .migrations = idem_postgres_schema.migrations,
        .version = 1,
    };
    struct call call;
    fixture_close(fixture);
    pg_server_say(fixture_server(), "DROP SCHEMA idem CASCADE");
    fixture->postgres.schema = &first;
    fixture_open(fixture);
    fixture->postgres.schema = NULL;
    pg_expect_refused(fixture, "idem migrate");
    expect_not_migrated(fixture, NULL, "stop them first"); /* Merchants would not be told. */
    fixture->postgres.schema = &first;
    fixture_close(fixture);
    fixture->postgres.schema = NULL;
    migrate(fixture, NULL, 1, THIS);
    assert_int_equal(migration_count(), THIS);
    fixture->postgres.schema = &first;
    pg_expect_refused(fixture, "use the idem that wrote it or a newer one");
    fixture->postgres.schema = NULL;
    fixture_open(fixture);
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    assert_int_equal(pg_server_number(fixture_server(), "SELECT count(*) FROM idem.messages"), 0);
}

#define OPEN(test) cmocka_unit_test_setup_teardown(test, pg_setup, pg_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN(nobody_takes_what_a_living_instance_works_on),
        OPEN(who_only_writes_on_an_intent_does_not_become_its_owner),
        OPEN(an_instance_that_fell_silent_is_dead),
        OPEN(living_instances_share_what_retention_has_reached),
        OPEN(one_of_two_instances_wins_each_key),
        OPEN(who_waits_elsewhere_hears_of_the_end),
        OPEN(nothing_is_said_where_nobody_waits),
        OPEN(what_strangers_say_does_no_harm),
        OPEN(a_listener_that_was_cut_off_comes_back_and_looks),
        OPEN(what_no_standby_has_is_told_to_nobody),
        OPEN(instances_of_two_versions_work_beside_one_another),
        OPEN(a_version_that_breaks_others_waits_until_they_are_gone),
        OPEN(a_migration_that_fails_changes_nothing),
        OPEN(a_store_of_the_first_version_goes_on),
    };
    return cmocka_run_group_tests_name("store/postgres_instances", tests, NULL, NULL);
}
