/*
 * The fixture behind fixture.h.
 *
 * Waiting is by the store's own wake, never by time. Ids and tokens are counted, so a test that
 * fails fails the same way every time.
 */
#include "unit/store/fixture.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/bug.h"
#include "lib/test.h"
#include "store/memory/memory.h"
#include "store/memory/memory_internal.h"
#include "store/postgres/postgres_internal.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_internal.h"

static int64_t still_us(struct idem_clock *clock)
{
    return clock->wall_base_us;
}

static const struct idem_clock_ops still_clock = { .wall_us = still_us, .mono_us = still_us };

static void fixture_wake(void *context)
{
    struct fixture *fixture = context;
    assert_int_equal(pthread_mutex_lock(&fixture->mutex), 0);
    fixture->wake_count += 1;
    assert_int_equal(pthread_cond_signal(&fixture->woken), 0);
    assert_int_equal(pthread_mutex_unlock(&fixture->mutex), 0);
}

void fixture_wait(struct fixture *fixture)
{
    assert_int_equal(pthread_mutex_lock(&fixture->mutex), 0);
    while (fixture->wake_count == 0) {
        assert_int_equal(pthread_cond_wait(&fixture->woken, &fixture->mutex), 0);
    }
    fixture->wake_count = 0;
    assert_int_equal(pthread_mutex_unlock(&fixture->mutex), 0);
}

static void encode(const struct idem_effect_order *order, struct idem_buf *buf)
{
    idem_buf_add(buf, idem_str_from(idem_effect_kind_name(order->effect->kind)));
    idem_buf_add_char(buf, ' ');
    idem_buf_add(buf, order->effect->id);
    idem_buf_add_char(buf, ' ');
    idem_buf_add_i64(buf, order->effect->amount_minor);
    idem_buf_add_char(buf, ' ');
    idem_buf_add(buf, order->order_no);
}

static void rules_init(struct fixture *fixture)
{
    fixture->provider = (struct idem_provider_rules){
        .entry = IDEM_STR("sandbox"),
        .account = IDEM_STR("acct-1"),
        .region = IDEM_STR("eu"),
        .partial_capture = IDEM_PARTIAL_MANY,
        .request_timeout_us = 10 * IDEM_US_PER_SECOND,
        .settle_us = 5 * IDEM_US_PER_SECOND,
        .encode = encode,
    };
    for (int kind = 1; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        fixture->provider.capability[kind] = (struct idem_capability){
            .dedup_window_us = IDEM_US_PER_DAY,
            .dedup_margin_us = 3600 * IDEM_US_PER_SECOND,
            .query = IDEM_QUERY_AT_ONCE,
        };
    }
    fixture->rules = idem_rules_default();
    fixture->rules.providers = &fixture->provider;
    fixture->rules.provider_count = 1;
}

static struct pg_server server;

static void server_end(void)
{
    pg_server_deinit(&server);
}

struct pg_server *fixture_server(void)
{
    if (server.directory[0] == '\0') {
        pg_server_init(&server);
        pg_server_start(&server, NULL);
        assert_int_equal(atexit(server_end), 0);
    }
    return &server;
}

static void postgres_init(struct fixture *fixture)
{
    pg_server_say(fixture_server(), "DROP SCHEMA IF EXISTS idem CASCADE");
    fixture->postgres = idem_postgres_settings_default(fixture_server()->url);
    fixture->postgres.writers = 2;
    fixture->postgres.readers = 1;
    fixture->postgres.clock_is_ours = true;
}

void fixture_init(struct fixture *fixture, enum fixture_kind kind)
{
    *fixture = (struct fixture){
        .kind = kind,
        .clock = { .ops = &still_clock, .wall_base_us = FIXTURE_START_US },
        .directory = "/tmp/idem-store-XXXXXX",
    };
    assert_int_equal(pthread_mutex_init(&fixture->mutex, NULL), 0);
    assert_int_equal(pthread_cond_init(&fixture->woken, NULL), 0);
    assert_non_null(mkdtemp(fixture->directory));
    (void)snprintf(fixture->path, sizeof(fixture->path), "%s/store.db", fixture->directory);
    rules_init(fixture);
    fixture->options = (struct idem_store_options){
        .rules = &fixture->rules,
        .clock = &fixture->clock,
        .wake = fixture_wake,
        .wake_context = fixture,
        .effect_secret_check = { .bytes = { 1, 2, 3 } },
        .scope_rule = IDEM_STR("endpoint"),
    };
    if (kind == FIXTURE_POSTGRES) {
        postgres_init(fixture);
    }
}

enum idem_err fixture_try_open(struct fixture *fixture,
                               struct idem_store **ret_store,
                               struct idem_error *reterr)
{
    switch (fixture->kind) {
    case FIXTURE_MEMORY:
        return idem_memory_open(&fixture->options, ret_store, reterr);
    case FIXTURE_SQLITE:
        return idem_sqlite_open(fixture->path, &fixture->options, ret_store, reterr);
    case FIXTURE_POSTGRES:
        return idem_postgres_open(&fixture->postgres, &fixture->options, ret_store, reterr);
    }
    IDEM_UNREACHABLE();
}

void fixture_open(struct fixture *fixture)
{
    struct idem_error error = { .text = "" };
    enum idem_err err = fixture_try_open(fixture, &fixture->store, &error);
    if (err != IDEM_OK) {
        fail_msg("open: %s", error.text);
    }
}

void fixture_close(struct fixture *fixture)
{
    idem_store_destroy(fixture->store);
    fixture->store = NULL;
}

void fixture_deinit(struct fixture *fixture)
{
    static const char *const names[] = { "", "-wal", "-shm", ".lock" };
    fixture_close(fixture);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(names); i++) {
        char name[128];
        (void)snprintf(name, sizeof(name), "%s%s", fixture->path, names[i]);
        (void)unlink(name); /* It may not be there. */
    }
    (void)rmdir(fixture->path); /* A test may have made it a directory. */
    assert_int_equal(rmdir(fixture->directory), 0);
    assert_int_equal(pthread_cond_destroy(&fixture->woken), 0);
    assert_int_equal(pthread_mutex_destroy(&fixture->mutex), 0);
}

struct idem_uid fixture_uid(struct fixture *fixture)
{
    struct idem_uid uid = { .bytes = { 1 } };
    fixture->uid_next += 1;
    for (size_t i = 0; i < 8; i++) {
        uid.bytes[15 - i] = (uint8_t)(fixture->uid_next >> (8 * i));
    }
    return uid;
}

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

struct idem_scope fixture_scope(const char *principal, enum idem_endpoint endpoint, const char *key)
{
    struct idem_scope scope;
    for (uint64_t half = 0; half < 2; half++) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325) + half * 77 + (uint64_t)endpoint;
        hash = mix(mix(hash, principal), key);
        memcpy(scope.bytes + half * 8, &hash, sizeof(hash));
    }
    return scope;
}

/* The ids of a command's messages differ in their last bits, which no other command's have. */
static struct idem_uid message_uid(struct fixture *fixture)
{
    struct idem_uid counted = fixture_uid(fixture);
    struct idem_uid uid = { .bytes = { 2 } };
    memcpy(uid.bytes + 7, counted.bytes + 8, 8);
    return uid;
}

struct idem_command *call_begin(struct fixture *fixture,
                                struct call *call,
                                enum idem_command_kind kind)
{
    *call = (struct call){ .item = { .command = { .kind = kind } } };
    call->item.outcome = &call->outcome;
    struct idem_command *command = &call->item.command;
    command->token = fixture_uid(fixture);
    command->intent_id = fixture_uid(fixture);
    command->resource_id = fixture_uid(fixture);
    command->case_id = fixture_uid(fixture);
    command->message_id = message_uid(fixture);
    command->noise = fixture->uid_next;
    command->slot = true;
    return command;
}

static void accept_begin(struct idem_command *command,
                         const char *principal,
                         enum idem_endpoint endpoint,
                         const char *key)
{
    command->scope = fixture_scope(principal, endpoint, key);
    command->accept = (struct idem_accept){
        .principal = idem_str_from(principal),
        .key = idem_str_from(key),
        .endpoint = endpoint,
        .fingerprints = { { .rule_id = 1, .secret_id = 1, .digest = { .bytes = { 9 } } } },
        .fingerprint_count = 1,
        .effect_id_tail = IDEM_STR("0123456789abcdefghjkmnpqrs"),
        .wait_us = 10 * IDEM_US_PER_SECOND,
    };
}

void call_pay(struct fixture *fixture, struct call *call, const struct order *order)
{
    struct idem_command *command = call_begin(fixture, call, IDEM_COMMAND_ACCEPT);
    accept_begin(command, order->principal, IDEM_ENDPOINT_PAYMENTS_CREATE, order->key);
    command->slot = !order->no_slot;
    command->accept.wait_us = order->impatient ? 0 : command->accept.wait_us;
    command->accept.order_no = idem_str_from(order->order_no);
    command->accept.amount_minor = order->amount_minor;
    command->accept.currency = IDEM_STR("EUR");
    command->accept.entry = IDEM_STR("sandbox");
    command->accept.capture_mode = order->manual ? IDEM_CAPTURE_MANUAL : IDEM_CAPTURE_AUTOMATIC;
    command->accept.method = IDEM_STR("card-1");
    command->accept.description = idem_str_from(order->description);
}

void call_act(struct fixture *fixture, struct call *call, const struct act *act)
{
    struct idem_command *command = call_begin(fixture, call, IDEM_COMMAND_ACCEPT);
    accept_begin(command, act->principal, act->endpoint, act->key);
    command->accept.payment_id = act->payment_id;
    command->accept.amount_text = idem_str_from(act->amount);
    command->accept.refund_no = idem_str_from(act->refund_no);
}

void call_evidence(struct fixture *fixture,
                   struct call *call,
                   const struct call *to,
                   enum idem_evidence_source source,
                   enum idem_outcome_kind outcome)
{
    struct idem_command *command = call_begin(fixture, call, IDEM_COMMAND_EVIDENCE);
    const struct idem_intent *intent = &to->outcome.intent;
    command->scope = intent->scope;
    command->intent_row = intent->row;
    command->evidence = (struct idem_evidence){
        .source = source,
        .outcome = outcome,
        .token = intent->token,
        .send_no = source == IDEM_SOURCE_SEND ? intent->send_count : 0,
        .entry = intent->effect.entry,
        .account = intent->effect.account,
        .region = intent->effect.region,
        .effect_id = intent->effect.id,
        .amount_minor = intent->effect.amount_minor,
        .currency = intent->effect.currency,
        .reference = IDEM_STR("provider-77"),
        .code = IDEM_STR("card_declined"),
        .message = IDEM_STR("the card was declined"),
        .asked_us = fixture->clock.wall_base_us,
    };
}

void call_due(struct fixture *fixture, struct call *call, struct idem_scope scope, int64_t row)
{
    struct idem_command *command = call_begin(fixture, call, IDEM_COMMAND_DUE);
    command->scope = scope;
    command->intent_row = row;
}

void call_abandon(struct fixture *fixture,
                  struct call *call,
                  const char *principal,
                  const char *key)
{
    struct idem_command *command = call_begin(fixture, call, IDEM_COMMAND_ABANDON);
    command->scope = fixture_scope(principal, IDEM_ENDPOINT_PAYMENTS_CREATE, key);
    command->abandon = (struct idem_abandon){
        .principal = idem_str_from(principal),
        .key = idem_str_from(key),
        .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
    };
}

enum idem_store_answer fixture_run(struct fixture *fixture, struct call *calls, size_t count)
{
    struct idem_store_batch batch = { .answer = IDEM_STORE_NONE };
    struct idem_list batches = { .count = 0 };
    struct idem_list reads = { .count = 0 };

    for (size_t i = 0; i < count; i++) {
        idem_list_push(&batch.items, &calls[i].item.node);
    }
    assert_true(idem_store_has_room(fixture->store));
    idem_store_submit(fixture->store, &batch);
    idem_store_reap(fixture->store, &batches, &reads);
    while (batches.count == 0) {
        fixture_wait(fixture);
        idem_store_reap(fixture->store, &batches, &reads);
    }
    assert_int_equal(batches.count, 1);
    assert_int_equal(reads.count, 0);
    assert_ptr_equal(batches.first, &batch.node);
    assert_int_equal(batch.items.count, count);
    while (idem_list_pop(&batch.items) != NULL) {
    }
    return batch.answer;
}

void fixture_run_durable(struct fixture *fixture, struct call *calls, size_t count)
{
    enum idem_store_answer answer = fixture_run(fixture, calls, count);
    assert_string_equal(idem_store_answer_name(answer), "durable");
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(calls[i].item.answer, IDEM_STORE_DURABLE);
    }
}

struct idem_read *fixture_ask(struct fixture *fixture,
                              enum idem_read_kind kind,
                              const char *principal)
{
    struct idem_read *read = &fixture->read;
    read->kind = kind;
    read->principal = idem_str_from(principal);
    read->id = (struct idem_uid){ .bytes = { 0 } };
    read->scope = (struct idem_scope){ .bytes = { 0 } };
    read->order_no = (struct idem_str){ .len = 0 };
    read->now_us = fixture->clock.wall_base_us;
    read->after_row = 0;
    read->filter = IDEM_LIST_OPEN;
    read->case_kind = IDEM_CASE_NONE;
    read->open_only = false;
    read->delivery_state = IDEM_DELIVERY_NONE;
    read->skip_count = 0;
    read->entry = (struct idem_str){ .len = 0 };
    read->from_us = 0;
    read->to_us = INT64_MAX;
    return read;
}

void fixture_read(struct fixture *fixture)
{
    struct idem_list batches = { .count = 0 };
    struct idem_list reads = { .count = 0 };

    idem_store_read(fixture->store, &fixture->read);
    idem_store_reap(fixture->store, &batches, &reads);
    while (reads.count == 0) {
        fixture_wait(fixture);
        idem_store_reap(fixture->store, &batches, &reads);
    }
    assert_int_equal(reads.count, 1);
    assert_int_equal(batches.count, 0);
    idem_list_remove(&reads, &fixture->read.node);
}

struct idem_read *fixture_operation(struct fixture *fixture, const struct call *call)
{
    const struct idem_intent *intent = &call->outcome.intent;
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_OPERATION_BY_SCOPE, "");
    read->scope = intent->scope;
    read->principal = intent->principal;
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_true(read->found);
    return read;
}

struct idem_rows *fixture_rows(struct fixture *fixture)
{
    switch (fixture->kind) {
    case FIXTURE_MEMORY:
        return &IDEM_CONTAINER_OF(fixture->store, struct idem_memory, base)->rows.rows;
    case FIXTURE_SQLITE:
        return &IDEM_CONTAINER_OF(fixture->store, struct idem_sqlite, base)->writer.rows;
    case FIXTURE_POSTGRES:
        return &IDEM_CONTAINER_OF(fixture->store, struct idem_postgres, base)
                    ->writers[0]
                    .worker.connection.rows;
    }
    IDEM_UNREACHABLE();
}

/* As for a batch with one mark, where the backend wants to know what comes. */
void fixture_rows_begin(struct idem_rows *rows)
{
    static struct idem_store_item item;
    static char memory[65536];
    static struct idem_buf kept;
    item = (struct idem_store_item){ .command = { .kind = IDEM_COMMAND_MARK } };
    idem_buf_init(&kept, memory, sizeof(memory));
    rows->kept = &kept;
    enum idem_rows_step step = rows->ops->begin_batch != NULL
                                   ? rows->ops->begin_batch(rows, &item.node, 1)
                                   : rows->ops->begin(rows);
    assert_int_equal(step, IDEM_ROWS_OK);
}

void fixture_rows_commit(struct idem_rows *rows)
{
    if (rows->ops->flush != NULL) {
        assert_int_equal(rows->ops->flush(rows), IDEM_ROWS_OK);
    }
    assert_int_equal(rows->ops->commit(rows), IDEM_ROWS_OK);
    assert_false(rows->kept->full);
}

void fixture_rows_expect_miss(struct idem_rows *rows, enum idem_rows_step step)
{
    bool queued = step == IDEM_ROWS_OK && rows->ops->flush != NULL;
    assert_int_equal(queued ? rows->ops->flush(rows) : step, IDEM_ROWS_MISS);
    assert_int_equal(rows->ops->rollback(rows), IDEM_ROWS_OK);
    fixture_rows_begin(rows);
}
