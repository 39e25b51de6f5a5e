/*
 * What merchants are told and providers say, on PostgreSQL.
 *
 * Goal: a batch knows of webhooks, events and deliveries without a question of its own, and knows
 * what stands there: also what another instance wrote, and what the batch itself changes. Instances
 * share deliveries and do not deadlock over them. What is replayed is not swept away. Handles are
 * in order of time.
 *
 * Method: real commands on a private server (pg_scene.h); which statements a connection ever
 * prepared says what was asked; strangers hold rows while a batch waits for them.
 */
#include <libpq-fe.h>

#include "base/attr.h"
#include "store/postgres/rows_internal.h"
#include "store/postgres/schema.h"
#include "unit/store/pg_scene.h"

#define LOCKED "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

static const struct order shoes = {
    .principal = "merchant-1",
    .key = "key-1",
    .order_no = "order-1",
    .amount_minor = 1250,
};

static const struct order socks = {
    .principal = "merchant-1",
    .key = "key-2",
    .order_no = "order-2",
    .amount_minor = 400,
};

static const struct order shirt = {
    .principal = "merchant-1",
    .key = "key-3",
    .order_no = "order-3",
    .amount_minor = 300,
};

static long long number(const char *sql)
{
    return pg_server_number(fixture_server(), sql);
}

static void say(const char *sql)
{
    pg_server_say(fixture_server(), sql);
}

/* With other connections; a stranger's locks are waited for. */
static void reopen(struct fixture *fixture)
{
    fixture_close(fixture);
    fixture->postgres.lock_wait_us = 4 * IDEM_US_PER_SECOND;
    fixture_open(fixture);
}

static struct idem_postgres_connection *connection_of(struct fixture *fixture, size_t writer)
{
    struct idem_postgres *store = IDEM_CONTAINER_OF(fixture->store, struct idem_postgres, base);
    return &store->writers[writer].worker.connection;
}

static bool was_asked(struct fixture *fixture, enum idem_postgres_statement index)
{
    bool asked = false;
    for (size_t i = 0; i < fixture->postgres.writers; i++) {
        asked = asked || connection_of(fixture, i)->prepared[index];
    }
    return asked;
}

static struct idem_uid call_webhook(struct fixture *fixture,
                                    struct call *call,
                                    enum idem_webhook_action action,
                                    struct idem_uid id)
{
    struct idem_command *command = call_begin(fixture, call, IDEM_COMMAND_WEBHOOK);
    command->message_id = fixture_uid(fixture);
    command->webhook.action = action;
    command->webhook.by = IDEM_STR("anna");
    command->webhook.row = (struct idem_webhook){
        .id = idem_uid_is_zero(id) ? fixture_uid(fixture) : id,
        .principal = IDEM_STR("merchant-1"),
        .url = IDEM_STR("https://shop.example/hooks"),
        .types = (UINT64_C(1) << IDEM_MESSAGE_TYPE_COUNT) - 1,
    };
    return command->webhook.row.id;
}

static struct idem_uid webhook_add(struct fixture *fixture)
{
    static const struct idem_uid none;
    struct call call;
    struct idem_uid id = call_webhook(fixture, &call, IDEM_WEBHOOK_ADD, none);
    fixture_run_durable(fixture, &call, 1);
    return id;
}

static void call_settle(struct fixture *fixture, struct call *call, const struct call *of)
{
    call_evidence(fixture, call, of, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    call->item.command.message_id = fixture_uid(fixture);
}

static void call_event(struct fixture *fixture,
                       struct call *call,
                       const struct call *of,
                       const char *event_id)
{
    call_evidence(fixture, call, of, IDEM_SOURCE_CALLBACK, IDEM_OUTCOME_SUCCESS);
    call->item.command.message_id = fixture_uid(fixture);
    call->item.command.evidence.event_id = idem_str_from(event_id);
    call->item.command.evidence.order_no = IDEM_STR("order-1");
}

static void call_delivery(struct fixture *fixture,
                          struct call *call,
                          enum idem_delivery_word word,
                          const struct idem_post *post)
{
    struct idem_command *command = call_begin(fixture, call, IDEM_COMMAND_DELIVERY);
    command->delivery = (struct idem_delivery_change){
        .word = word,
        .message_id = post->message.id,
        .webhook_id = post->webhook.id,
        .token = command->token,
        .status = 200,
        .pause_us = 30 * IDEM_US_PER_SECOND,
    };
}

static const struct idem_read *posts_ask(struct fixture *fixture)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_POSTS, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return read;
}

/* Messages of `count` payments, without the payments. */
static void messages_make(struct fixture *fixture, uint32_t count)
{
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    for (uint32_t i = 0; i < count; i++) {
        const struct idem_message message = {
            .id = fixture_uid(fixture),
            .type = IDEM_MESSAGE_PAYMENT_CAPTURED,
            .principal = IDEM_STR("merchant-1"),
            .payment_id = fixture_uid(fixture),
            .at_us = FIXTURE_START_US,
            .data = IDEM_STR("{}"),
        };
        assert_int_equal(rows->ops->add_message(rows, 0, &message), IDEM_ROWS_OK);
    }
    fixture_rows_commit(rows);
}

static void a_batch_asks_nothing_of_its_own(void **state)
{
    static const enum idem_postgres_statement own[] = {
        IDEM_POSTGRES_LISTENED, IDEM_POSTGRES_EVENT_SEEN,      IDEM_POSTGRES_WEBHOOK_BY_ANY_ID,
        IDEM_POSTGRES_DELIVERY, IDEM_POSTGRES_INTENT_BY_SCOPE, IDEM_POSTGRES_PAYMENT_BY_ROW,
    };
    struct fixture *fixture = *state;
    struct call call;
    struct call settle;
    struct call event;
    struct call words[2];
    call_pay(fixture, &call, &socks);
    fixture_run_durable(fixture, &call, 1);
    assert_false(was_asked(fixture, IDEM_POSTGRES_LISTENED)); /* There is no webhook. */
    (void)webhook_add(fixture);
    reopen(fixture);
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    call_settle(fixture, &settle, &call);
    fixture_run_durable(fixture, &settle, 1);
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries"), 2); /* Payment, operation. */
    messages_make(fixture, 1);

    const struct idem_read *read = posts_ask(fixture);
    assert_int_equal(read->post_count, 2); /* One of them waits for the other. */
    for (enum idem_delivery_word word = IDEM_DELIVERY_WORD_TAKE; word <= IDEM_DELIVERY_WORD_DONE;
         word++) {
        call_delivery(fixture, &words[0], word, &read->posts[0]);
        call_delivery(fixture, &words[1], word, &read->posts[1]);
        fixture_run_durable(fixture, words, 2);
    }
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE state = 2"), 2);

    for (size_t i = 0; i < 2; i++) {
        call_event(fixture, &event, &call, "evt_1");
        fixture_run_durable(fixture, &event, 1);
    }
    assert_int_equal(number("SELECT count FROM idem.inbox WHERE known"), 2);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(own); i++) {
        assert_false(was_asked(fixture, own[i]));
    }
}

static void a_batch_sees_what_it_does_to_webhooks(void **state)
{
    static const struct idem_uid none;
    struct fixture *fixture = *state;
    struct call first;
    struct call second;
    struct call third;
    struct call calls[2];
    call_pay(fixture, &first, &shoes);
    fixture_run_durable(fixture, &first, 1);
    call_pay(fixture, &second, &socks);
    fixture_run_durable(fixture, &second, 1);
    call_pay(fixture, &third, &shirt);
    fixture_run_durable(fixture, &third, 1);

    struct idem_uid id = call_webhook(fixture, &calls[0], IDEM_WEBHOOK_ADD, none);
    call_settle(fixture, &calls[1], &first);
    fixture_run_durable(fixture, calls, 2);
    assert_int_equal(number("SELECT count(*) FROM idem.messages"), 2);
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE state = 1"), 2);

    (void)call_webhook(fixture, &calls[0], IDEM_WEBHOOK_DISABLE, id);
    call_settle(fixture, &calls[1], &second);
    fixture_run_durable(fixture, calls, 2);
    assert_int_equal(number("SELECT count(*) FROM idem.messages"), 2);
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE state = 3"), 2);

    (void)call_webhook(fixture, &calls[0], IDEM_WEBHOOK_ENABLE, id);
    call_settle(fixture, &calls[1], &third);
    fixture_run_durable(fixture, calls, 2);
    assert_int_equal(number("SELECT count(*) FROM idem.messages"), 4);
}

static void what_another_instance_adds_is_told_at_once(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call call;
    struct call settle;
    pg_second_open(&second, first);
    call_pay(first, &call, &shoes);
    fixture_run_durable(first, &call, 1);
    (void)webhook_add(&second);
    call_settle(first, &settle, &call);
    fixture_run_durable(first, &settle, 1);
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE state = 1"), 2);
    pg_second_close(&second);
}

static void one_of_two_instances_takes_a_delivery(void **state)
{
    struct fixture *first = *state;
    static struct fixture second;
    struct call take;
    struct call other;
    pg_second_open(&second, first);
    (void)webhook_add(first);
    messages_make(first, 1);
    first->clock.wall_base_us += 120 * IDEM_US_PER_SECOND;
    second.clock.wall_base_us = first->clock.wall_base_us;
    call_delivery(first, &take, IDEM_DELIVERY_WORD_TAKE, &posts_ask(first)->posts[0]);
    call_delivery(&second, &other, IDEM_DELIVERY_WORD_TAKE, &posts_ask(&second)->posts[0]);
    fixture_run_durable(first, &take, 1);
    fixture_run_durable(&second, &other, 1);
    assert_int_equal(take.outcome.release.problem, IDEM_PROBLEM_NONE);
    assert_int_equal(other.outcome.release.problem, IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(number("SELECT version FROM idem.deliveries"), 2);
    pg_second_close(&second);
}

static void living_instances_share_what_is_due(void **state)
{
    enum {
        COUNT = 12
    };
    struct fixture *first = *state;
    static struct fixture second;
    pg_second_open(&second, first);
    (void)webhook_add(first);
    messages_make(first, COUNT);
    const struct idem_read *one = posts_ask(first);
    const struct idem_read *two = posts_ask(&second);
    assert_int_equal(one->post_count, COUNT / 2);
    assert_int_equal(two->post_count, COUNT / 2);
    for (size_t i = 0; i < COUNT / 2; i++) {
        int64_t one_row = one->posts[i].message.row;
        int64_t two_row = two->posts[i].message.row;
        assert_int_equal((one_row + two_row) % 2, 1); /* Of a kind each, and not the same. */
        assert_int_equal((one_row + one->posts[0].message.row) % 2, 0);
    }
    second.clock.wall_base_us += 61 * IDEM_US_PER_SECOND; /* Somebody does not do his share. */
    assert_int_equal(posts_ask(&second)->post_count, COUNT);
    pg_second_close(&second);
    assert_int_equal(posts_ask(first)->post_count, COUNT);
}

/* Two of them, the later one first. */
struct letters {
    struct call calls[2];
    struct idem_store_batch batch;
};

static void letters_submit(struct fixture *fixture, struct letters *letters)
{
    const struct idem_read *read = posts_ask(fixture);
    assert_int_equal(read->post_count, 2);
    letters->batch = (struct idem_store_batch){ .answer = IDEM_STORE_NONE };
    for (size_t i = 0; i < 2; i++) {
        call_delivery(fixture, &letters->calls[i], IDEM_DELIVERY_WORD_TAKE, &read->posts[1 - i]);
        idem_list_push(&letters->batch.items, &letters->calls[i].item.node);
    }
    idem_store_submit(fixture->store, &letters->batch);
}

static void letters_reap(struct fixture *fixture)
{
    struct idem_list batches = { .count = 0 };
    struct idem_list reads = { .count = 0 };
    idem_store_reap(fixture->store, &batches, &reads);
    while (batches.count == 0) {
        fixture_wait(fixture);
        idem_store_reap(fixture->store, &batches, &reads);
    }
}

static void deliveries_are_locked_in_one_order(void **state)
{
    struct fixture *fixture = *state;
    struct letters letters;
    reopen(fixture);
    (void)webhook_add(fixture);
    messages_make(fixture, 2);
    PGconn *stranger =
        pg_stranger_begin("BEGIN; SELECT 1 FROM idem.deliveries ORDER BY row LIMIT 1 FOR UPDATE");
    letters_submit(fixture, &letters);
    (void)pg_wait_for(LOCKED);
    /* It waits for the earlier one and has not got the later one. */
    say("BEGIN; SELECT 1 FROM idem.deliveries ORDER BY row DESC LIMIT 1 FOR UPDATE NOWAIT; COMMIT");
    PQfinish(stranger);
    letters_reap(fixture);
    pg_expect_answer(letters.batch.answer, "durable");
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE version = 2"), 2);
}

static void what_is_replayed_meanwhile_is_not_swept_away(void **state)
{
    struct fixture *fixture = *state;
    struct flight sweep;
    reopen(fixture);
    (void)webhook_add(fixture);
    messages_make(fixture, 2);
    say("UPDATE idem.deliveries SET state = 3, due_us = 0, finished_us = 1");
    PGconn *stranger = pg_stranger_begin(
        "BEGIN; UPDATE idem.deliveries SET state = 1, due_us = 1, finished_us = 0"
        " WHERE row = (SELECT min(row) FROM idem.deliveries)");
    struct idem_command *command = call_begin(fixture, &sweep.call, IDEM_COMMAND_MARK);
    command->mark.kind = IDEM_MARK_SWEPT;
    command->mark.value_us = FIXTURE_START_US + 1;
    pg_flight_submit(fixture, &sweep);
    (void)pg_wait_for(LOCKED);
    PGresult *result = PQexec(stranger, "COMMIT");
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(stranger);
    pg_expect_answer(pg_flight_reap(fixture, &sweep), "durable");
    assert_int_equal(number("SELECT count(*) FROM idem.messages"), 1);
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE state = 1"), 1);
    assert_int_equal(posts_ask(fixture)->post_count, 1);
}

static void a_webhook_that_is_much_behind_is_dropped_in_parts(void **state)
{
    enum {
        COUNT = 5000,
        PART = 4096
    };
    struct fixture *fixture = *state;
    struct call disable;
    struct call sweep;
    struct idem_uid id = webhook_add(fixture);
    messages_make(fixture, 1);
    say("INSERT INTO idem.deliveries SELECT row + 64 * n, version, message_row + n, webhook_row,"
        " payment_id, state, attempts, due_us, token, last_status, last_error, created_us,"
        " finished_us FROM idem.deliveries, generate_series(1, 4999) n");
    (void)call_webhook(fixture, &disable, IDEM_WEBHOOK_DISABLE, id);
    fixture_run_durable(fixture, &disable, 1);
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE state = 3"), PART);
    assert_int_equal(posts_ask(fixture)->post_count, 0); /* Nothing of the rest either. */

    struct idem_command *command = call_begin(fixture, &sweep, IDEM_COMMAND_MARK);
    command->mark.kind = IDEM_MARK_SWEPT;
    command->mark.value_us = 1;
    fixture_run_durable(fixture, &sweep, 1);
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries d, idem.webhooks w"
                            " WHERE d.state = 3 AND d.due_us = 0 AND d.version = 2"
                            " AND d.finished_us = w.disabled_us"),
                     COUNT);
}

/* Messages of payments of their own, `depth` of each, straight into the store. */
static void backlog_make(struct fixture *fixture, uint32_t payments, uint32_t depth)
{
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    for (uint32_t i = 0; i < payments * depth; i++) {
        const uint32_t payment = i / depth;
        struct idem_message message = {
            .id = fixture_uid(fixture),
            .type = IDEM_MESSAGE_PAYMENT_CAPTURED,
            .principal = IDEM_STR("merchant-1"),
            .payment_id = { .bytes = { 'p' } },
            .at_us = FIXTURE_START_US,
            .data = IDEM_STR("{}"),
        };
        memcpy(message.payment_id.bytes + 1, &payment, sizeof(payment));
        assert_int_equal(rows->ops->add_message(rows, 0, &message), IDEM_ROWS_OK);
    }
    fixture_rows_commit(rows);
}

static void delivery_put(struct idem_rows *rows, struct idem_delivery delivery)
{
    struct idem_delivery_write write = { .write = IDEM_WRITE_UPDATE, .row = delivery };
    write.row.version += 1;
    assert_int_equal(rows->ops->write_delivery(rows, &write), IDEM_ROWS_OK);
}

/* Every post of the page fails, and is put off for an hour. */
static void posts_fail(struct fixture *fixture, const struct idem_read *read)
{
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    for (size_t i = 0; i < read->post_count; i++) {
        struct idem_delivery delivery = read->posts[i].delivery;
        delivery.attempts += 1;
        delivery.token = (struct idem_uid){ .bytes = { 0 } };
        delivery.due_us = FIXTURE_START_US + 3600 * IDEM_US_PER_SECOND;
        delivery_put(rows, delivery);
    }
    fixture_rows_commit(rows);
}

static void posts_arrive(struct fixture *fixture, const struct idem_read *read)
{
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    for (size_t i = 0; i < read->post_count; i++) {
        struct idem_delivery delivery = read->posts[i].delivery;
        delivery.state = IDEM_DELIVERY_DELIVERED;
        delivery.due_us = 0;
        delivery_put(rows, delivery);
    }
    fixture_rows_commit(rows);
}

/* Until nothing is due. */
static void all_fail(struct fixture *fixture)
{
    const struct idem_read *read = posts_ask(fixture);
    while (read->post_count > 0) {
        posts_fail(fixture, read);
        read = posts_ask(fixture);
    }
}

static void prepare(PGconn *stranger, enum idem_postgres_statement index)
{
    char name[IDEM_POSTGRES_NAME_MAX];
    char memory[IDEM_POSTGRES_SQL_MAX];
    struct idem_buf sql;
    idem_buf_init(&sql, memory, sizeof(memory) - 1);
    idem_postgres_statement_print(index, &sql);
    assert_false(sql.full);
    memory[sql.len] = '\0';
    idem_postgres_statement_name(index, name);
    PGresult *result = PQprepare(stranger, name, memory, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        fail_msg("%s: %s", memory, PQerrorMessage(stranger));
    }
    PQclear(result);
}

/* How the server runs it, by the plan that it always has. PQclear() ends it. */
static PGresult *plan_of(enum idem_postgres_statement index, const char *options, const char *args)
{
    char name[IDEM_POSTGRES_NAME_MAX];
    char sql[320];
    PGconn *stranger = pg_stranger_begin(
        "BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan");
    prepare(stranger, index);
    idem_postgres_statement_name(index, name);
    (void)snprintf(sql, sizeof(sql), "EXPLAIN (%s) EXECUTE %s (%s)", options, name, args);
    PGresult *result = PQexec(stranger, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(stranger));
    }
    PQfinish(stranger);
    return result;
}

/* How many rows the look for what is due passes over. */
static long long rows_passed_over(void)
{
    static const char removed[] = "Rows Removed by Filter: ";
    char args[64];
    long long count = 0;
    (void)snprintf(args, sizeof(args), "60000000, 1, %lld, ''", (long long)FIXTURE_START_US);
    PGresult *plan = plan_of(IDEM_POSTGRES_POSTS, "ANALYZE, TIMING OFF", args);
    for (int row = 0; row < PQntuples(plan); row++) {
        const char *found = strstr(PQgetvalue(plan, row, 0), removed);
        count += found != NULL ? strtoll(found + strlen(removed), NULL, 10) : 0;
    }
    PQclear(plan);
    return count;
}

/* By payment, and not through all that waits at the webhook. */
static void expect_found_by_payment(enum idem_postgres_statement index, const char *args)
{
    bool is_found = false;
    PGresult *plan = plan_of(index, "COSTS OFF", args);
    for (int row = 0; row < PQntuples(plan); row++) {
        is_found = is_found || strstr(PQgetvalue(plan, row, 0), "deliveries_order") != NULL;
    }
    PQclear(plan);
    if (!is_found) {
        fail_msg("statement %d does not go by payment", (int)index);
    }
}

static void expect_neighbours_found_by_payment(void)
{
    expect_found_by_payment(IDEM_POSTGRES_DELIVERIES_TAKE_ALONG, "1, 'p', 7, 8");
    expect_found_by_payment(IDEM_POSTGRES_DELIVERY_NEXT, "1, 'p', 7");
    expect_found_by_payment(IDEM_POSTGRES_MESSAGE_ADD, "'m', 1, 'merchant-1', 'p', 7, ''");
}

/* A receiver is down: its first messages are tried again in an hour, and two more wait for each. */
static void what_waits_behind_what_failed_is_not_in_the_way(void **state)
{
    enum {
        PAYMENTS = 300
    };
    struct fixture *fixture = *state;
    (void)webhook_add(fixture);
    backlog_make(fixture, PAYMENTS, 3);
    assert_true(rows_passed_over() < 100);
    expect_neighbours_found_by_payment();
    all_fail(fixture);
    say("ANALYZE idem.deliveries");
    expect_neighbours_found_by_payment();
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE attempts = 1"), PAYMENTS);
    backlog_make(fixture, PAYMENTS, 1); /* One more of each comes later. */
    assert_int_equal(posts_ask(fixture)->post_count, 0);
    assert_int_equal(rows_passed_over(), 0);
    messages_make(fixture, 1);
    assert_int_equal(posts_ask(fixture)->post_count, 1);
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE due_us > created_us"),
                     4 * PAYMENTS);

    fixture->clock.wall_base_us += 3600 * IDEM_US_PER_SECOND; /* It is back, and all go. */
    size_t posted = 0;
    const struct idem_read *read = posts_ask(fixture);
    while (read->post_count > 0) {
        posted += read->post_count;
        posts_arrive(fixture, read);
        read = posts_ask(fixture);
    }
    assert_int_equal(posted, 4 * PAYMENTS + 1);
}

static void the_next_one_goes_at_once_when_the_one_before_it_is_over(void **state)
{
    struct fixture *fixture = *state;
    (void)webhook_add(fixture);
    backlog_make(fixture, 1, 3);
    all_fail(fixture);
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE due_us > created_us"), 3);
    fixture->clock.wall_base_us += 3600 * IDEM_US_PER_SECOND;
    const struct idem_read *read = posts_ask(fixture);
    fixture->clock.wall_base_us -= 3600 * IDEM_US_PER_SECOND;
    for (int waiting = 2; waiting > 0; waiting--) {
        assert_int_equal(read->post_count, 1);
        posts_arrive(fixture, read);
        assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE due_us > created_us"),
                         waiting - 1);
        read = posts_ask(fixture);
    }
    assert_int_equal(read->post_count, 1);
}

/* A batch that tells something has payments locked, and must not wait for who posts. */
static void a_message_does_not_wait_for_the_one_before_it(void **state)
{
    struct fixture *fixture = *state;
    reopen(fixture);
    (void)webhook_add(fixture);
    backlog_make(fixture, 1, 2);
    all_fail(fixture);
    PGconn *stranger = pg_stranger_begin("BEGIN; SELECT 1 FROM idem.deliveries FOR UPDATE");
    backlog_make(fixture, 1, 1);
    PQfinish(stranger);
    assert_int_equal(number("SELECT count(*) FROM idem.deliveries"), 3);
    assert_int_equal(posts_ask(fixture)->post_count, 0); /* In order all the same. */
}

/* Behind it others go on. What is being posted is nobody's to change. */
static void after_five_failures_the_next_one_goes(void **state)
{
    struct fixture *fixture = *state;
    (void)webhook_add(fixture);
    backlog_make(fixture, 1, 2);
    for (int attempt = 1; attempt <= 5; attempt++) {
        all_fail(fixture);
        assert_int_equal(number("SELECT max(attempts) FROM idem.deliveries"), attempt);
        assert_int_equal(number("SELECT count(*) FROM idem.deliveries WHERE attempts = 0"), 1);
        say("UPDATE idem.deliveries SET due_us = created_us WHERE attempts > 0");
    }
    const struct idem_read *read = posts_ask(fixture);
    assert_int_equal(read->post_count, 1);
    posts_fail(fixture, read); /* The sixth time. */
    read = posts_ask(fixture);
    assert_int_equal(read->post_count, 1);
    assert_int_equal(read->posts[0].delivery.attempts, 0);

    say("UPDATE idem.deliveries SET due_us = due_us + 7, token = decode(md5('x'), 'hex')"
        " WHERE attempts = 0");
    say("UPDATE idem.deliveries SET due_us = created_us WHERE attempts > 0");
    read = posts_ask(fixture);
    assert_int_equal(read->post_count, 1);
    posts_fail(fixture, read); /* The seventh. */
    assert_int_equal(number("SELECT due_us - created_us FROM idem.deliveries WHERE attempts = 0"),
                     7);
}

/* What others look up of them stands as long as they are at work. */
static void webhooks_change_while_no_other_batch_runs(void **state)
{
    static const struct idem_uid none;
    struct fixture *fixture = *state;
    struct flight add;
    struct call sweep;
    reopen(fixture);
    PGconn *stranger =
        pg_stranger_begin("BEGIN; SELECT pg_advisory_xact_lock_shared(" IDEM_POSTGRES_LOCKS ", 1)");
    struct idem_command *command = call_begin(fixture, &sweep, IDEM_COMMAND_MARK);
    command->mark.kind = IDEM_MARK_SWEPT;
    command->mark.value_us = 1;
    fixture_run_durable(fixture, &sweep, 1); /* It does not wait. */
    (void)call_webhook(fixture, &add.call, IDEM_WEBHOOK_ADD, none);
    pg_flight_submit(fixture, &add);
    (void)pg_wait_for(LOCKED);
    PQfinish(stranger);
    pg_expect_answer(pg_flight_reap(fixture, &add), "durable");
    assert_int_equal(number("SELECT count(*) FROM idem.webhooks"), 1);
}

static void old_handles_are_not_used(void **state)
{
    struct fixture *fixture = *state;
    struct call call;
    struct call again;
    struct call later;
    fixture_close(fixture);
    fixture->postgres.writers = 1;
    fixture_open(fixture);
    call_pay(fixture, &call, &shoes);
    fixture_run_durable(fixture, &call, 1);
    call_pay(fixture, &again, &shoes); /* It needs no handle, and one was fetched. */
    fixture_run_durable(fixture, &again, 1);
    struct idem_postgres_handles *handles =
        &connection_of(fixture, 0)->handles[IDEM_POSTGRES_HANDLE_INTENT];
    assert_int_equal(handles->count, 1);
    int64_t old_row = handles->rows[handles->first];
    assert_int_equal(old_row, call.outcome.intent.row + 1);
    handles->taken_us -= 61 * IDEM_US_PER_SECOND;
    call_pay(fixture, &later, &socks);
    fixture_run_durable(fixture, &later, 1);
    assert_int_equal(later.outcome.intent.row, old_row + 1);
}

static void the_server_takes_every_statement(void **state)
{
    (void)state;
    PGconn *stranger = pg_stranger_begin("BEGIN");
    for (int i = 0; i < IDEM_POSTGRES_STATEMENT_COUNT; i++) {
        prepare(stranger, (enum idem_postgres_statement)i);
    }
    PQfinish(stranger);
}

#define OPEN(test) cmocka_unit_test_setup_teardown(test, pg_setup, pg_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN(a_batch_asks_nothing_of_its_own),
        OPEN(a_batch_sees_what_it_does_to_webhooks),
        OPEN(what_another_instance_adds_is_told_at_once),
        OPEN(one_of_two_instances_takes_a_delivery),
        OPEN(living_instances_share_what_is_due),
        OPEN(deliveries_are_locked_in_one_order),
        OPEN(what_is_replayed_meanwhile_is_not_swept_away),
        OPEN(a_webhook_that_is_much_behind_is_dropped_in_parts),
        OPEN(what_waits_behind_what_failed_is_not_in_the_way),
        OPEN(the_next_one_goes_at_once_when_the_one_before_it_is_over),
        OPEN(a_message_does_not_wait_for_the_one_before_it),
        OPEN(after_five_failures_the_next_one_goes),
        OPEN(webhooks_change_while_no_other_batch_runs),
        OPEN(old_handles_are_not_used),
        OPEN(the_server_takes_every_statement),
    };
    return cmocka_run_group_tests_name("store/postgres_told", tests, NULL, NULL);
}
