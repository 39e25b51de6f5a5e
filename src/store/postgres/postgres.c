/*
 * The store on PostgreSQL: a few writers and readers, each a thread with a connection.
 *
 *   engine --batches--> writer i --done_batches--> engine      (one batch each at a time)
 *   engine --reads----> reader i --done_reads----> engine
 *                       keeper: every now and then "this instance lives"
 *                       listener: who waits for what, between instances
 *
 * The engine's thread hands each batch to a writer that has none, so batches run beside one another
 * and a writer that waits holds up nobody else's. Threads share nothing but the queues.
 *
 * What differs from the embedded store: a COMMIT without a clean answer costs the connection and
 * not the process. The run that says `broken` then is made whole again before the next batch,
 * unless what lies in the database is damaged.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/thread.h"
#include "store/postgres/rows_internal.h"
#include "store/read.h"

#define SIGNS           5 /* Of life, in the time after which an instance counts as dead. */
#define SILENT_PAUSE_US (IDEM_US_PER_SECOND)

static struct idem_postgres *postgres_of(struct idem_store *store)
{
    return IDEM_CONTAINER_OF(store, struct idem_postgres, base);
}

static void wake(const struct idem_postgres *postgres)
{
    postgres->base.options.wake(postgres->base.options.wake_context);
}

/* A writer's clock: what its transaction was told. */
static struct idem_postgres_writer *writer_of_clock(struct idem_clock *clock)
{
    return IDEM_CONTAINER_OF(clock, struct idem_postgres_writer, clock);
}

static int64_t told_wall_us(struct idem_clock *clock)
{
    return writer_of_clock(clock)->worker.connection.now_us;
}

static int64_t told_mono_us(struct idem_clock *clock)
{
    return writer_of_clock(clock)->worker.connection.mono_us;
}

static const struct idem_clock_ops told_clock = { .wall_us = told_wall_us,
                                                  .mono_us = told_mono_us };

/* Keys in the same order in every batch: two that overlap then wait for one another in one way. */
static int by_scope(const void *left, const void *right)
{
    const struct idem_store_item *const *one = left;
    const struct idem_store_item *const *two = right;
    return memcmp(&(*one)->command.scope, &(*two)->command.scope, sizeof(struct idem_scope));
}

static void batch_sort(struct idem_store_batch *batch)
{
    struct idem_store_item *items[IDEM_STORE_BATCH_MAX];
    size_t count = 0;
    struct idem_list_node *node = NULL;
    while ((node = idem_list_pop(&batch->items)) != NULL) {
        items[count] = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        count += 1;
    }
    qsort(items, count, sizeof(void *), by_scope);
    for (size_t i = 0; i < count; i++) {
        idem_list_push(&batch->items, &items[i]->node);
    }
}

/* Whoever waits elsewhere for what stands now. */
static void batch_tell(struct idem_postgres *postgres, const struct idem_store_batch *batch)
{
    IDEM_LIST_FOREACH (node, &batch->items) {
        const struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        const struct idem_intent *intent = &item->outcome->intent;
        if (item->answer == IDEM_STORE_DURABLE && intent->row != 0 &&
            idem_intent_is_over(intent->state)) {
            idem_postgres_listener_over(&postgres->listener, intent->row);
        }
    }
}

/* Whoever sees it first says why, if that is known. */
static void broken_note(struct idem_postgres *postgres, const struct idem_error *why)
{
    int rc = pthread_mutex_lock(&postgres->keeper_mutex);
    IDEM_ASSERT(rc == 0);
    if (!atomic_load(&postgres->broken) && why != NULL) {
        postgres->breakage = *why;
    }
    atomic_store(&postgres->broken, true);
    rc = pthread_mutex_unlock(&postgres->keeper_mutex);
    IDEM_ASSERT(rc == 0);
}

static const struct idem_error *why_other(const struct idem_postgres_connection *connection)
{
    return connection->is_other ? &connection->wire.error : NULL;
}

/* A COMMIT that nobody knows of costs its connection; damage costs the store. */
static void batch_run(struct idem_postgres_writer *writer, struct idem_store_batch *batch)
{
    struct idem_postgres *postgres = writer->worker.store;
    struct idem_postgres_connection *connection = &writer->worker.connection;
    bool was_broken = atomic_load(&postgres->broken);
    if (atomic_load(&postgres->refused)) {
        idem_postgres_wire_close(&connection->wire);
    }
    writer->run.broken = was_broken;
    connection->lost = false;
    batch_sort(batch);
    idem_run_batch(&writer->run, batch);
    if (writer->run.broken && !was_broken && !connection->lost) {
        broken_note(postgres, why_other(connection));
    }
    if (!writer->run.restored) {
        atomic_store(&postgres->restored_over, true);
    }
    batch_tell(postgres, batch);
    idem_queue_push(&postgres->done_batches, &batch->node);
    wake(postgres);
}

static void *writer_main(void *argument)
{
    struct idem_postgres_writer *writer = argument;
    struct idem_list work = { .count = 0 };
    while (idem_queue_wait(&writer->worker.work, &work)) {
        struct idem_list_node *node = NULL;
        while ((node = idem_list_pop(&work)) != NULL) {
            batch_run(writer, IDEM_CONTAINER_OF(node, struct idem_store_batch, node));
        }
    }
    return NULL;
}

static void read_run(struct idem_postgres_worker *reader, struct idem_read *read)
{
    struct idem_postgres *postgres = reader->store;
    if (atomic_load(&postgres->silent)) { /* Nothing is written there any more: who is it now? */
        idem_postgres_wire_close(&reader->connection.wire);
    }
    if (atomic_load(&postgres->broken)) {
        read->found = false;
        read->answer = IDEM_STORE_DOWN;
    } else if (!idem_read_run(&reader->connection.rows, postgres->base.incarnation, read)) {
        broken_note(postgres, why_other(&reader->connection));
    }
    idem_queue_push(&postgres->done_reads, &read->node);
    wake(postgres);
}

static void *reader_main(void *argument)
{
    struct idem_postgres_worker *reader = argument;
    struct idem_list work = { .count = 0 };
    while (idem_queue_wait(&reader->work, &work)) {
        struct idem_list_node *node = NULL;
        while ((node = idem_list_pop(&work)) != NULL) {
            read_run(reader, IDEM_CONTAINER_OF(node, struct idem_read, node));
        }
    }
    return NULL;
}

/* Settings change while a server runs: what a connection would be refused for must not go on. */
static bool server_look(struct idem_postgres *postgres)
{
    bool has_standbys = false;
    enum idem_rows_step step = IDEM_ROWS_OK;
    struct idem_postgres_wire *keeper = &postgres->keeper;
    keeper->refused = false;
    if (keeper->handle == NULL) {
        step = idem_postgres_session_begin(keeper, &postgres->settings);
    }
    if (step == IDEM_ROWS_OK) {
        step = idem_postgres_session_look(keeper, &has_standbys);
    }
    atomic_store(&postgres->refused, keeper->refused);
    if (step != IDEM_ROWS_OK) {
        idem_postgres_wire_close(keeper);
        return false;
    }
    if (atomic_exchange(&postgres->standbys, has_standbys) != has_standbys) {
        atomic_store(&postgres->standbys_gone, !has_standbys);
        wake(postgres);
    }
    return true;
}

static struct idem_postgres_instance instance_of(const struct idem_postgres *postgres)
{
    return (struct idem_postgres_instance){
        .id = postgres->base.incarnation,
        .created_us = postgres->created_us,
        .signed_us = &postgres->signed_us,
    };
}

/*
 * Signs only grow, whatever the server's clock does, and none is written where the latest is not
 * known: an older copy, or another database, stays what it is. A sign is kept here only once a
 * commit behind it was answered for by whoever answers for all others: then it is as safe as they.
 */
static bool sign_take(struct idem_postgres *postgres, const PGresult *result)
{
    const struct idem_postgres_instance instance = instance_of(postgres);
    if (PQntuples(result) == 1) {
        atomic_store(&postgres->signed_us, idem_postgres_number(result, 0, 0));
        return true;
    }
    if (idem_postgres_instance_check(&postgres->keeper, &instance) == IDEM_ROWS_DAMAGED) {
        broken_note(postgres, &postgres->keeper.error);
        wake(postgres);
    }
    return false;
}

#define SERVER_US "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
#define SEEN      "seen_us = greatest(" SERVER_US ", i.seen_us + 1)"
#define ENDED     "ended_us = " SERVER_US

/* `what`: SEEN or ENDED. */
static bool sign_try(struct idem_postgres *postgres, const char *what)
{
    char sql[512];
    PGresult *result = NULL;
    struct idem_postgres_wire *keeper = &postgres->keeper;
    (void)snprintf(sql, sizeof(sql),
                   "UPDATE idem.instances i SET %s FROM idem.meta m WHERE i.id = %lld"
                   " AND i.seen_us >= %lld AND m.key = 'created_us' AND m.value = '%lld'"
                   " AND NOT EXISTS (SELECT 1 FROM idem.meta WHERE key = '" IDEM_POSTGRES_META_OLDER
                   "') RETURNING i.seen_us",
                   what, (long long)postgres->base.incarnation,
                   (long long)atomic_load(&postgres->signed_us), (long long)postgres->created_us);
    if (!server_look(postgres)) {
        return false;
    }
    keeper->warned = false;
    /* The sign is there at once, also while commits hang: who waits for a standby is not dead. */
    idem_postgres_wire_say(keeper, "BEGIN", NULL);
    idem_postgres_wire_say(keeper, "SET LOCAL synchronous_commit = local", NULL);
    idem_postgres_wire_say(keeper, sql, &result);
    idem_postgres_wire_say(keeper, "COMMIT", NULL);
    idem_postgres_wire_say(keeper, IDEM_POSTGRES_PROOF, NULL);
    bool taken = idem_postgres_wire_round(keeper) == IDEM_POSTGRES_END_OK && !keeper->warned;
    taken = taken && sign_take(postgres, result);
    PQclear(result); /* Accepts NULL. */
    return taken;
}

/*
 * Says `what` of this instance. False: keeper.error says why not. A connection that was cut
 * meanwhile says nothing about the server: one more is made.
 */
static bool sign_give(struct idem_postgres *postgres, const char *what)
{
    bool was_connected = postgres->keeper.handle != NULL;
    return sign_try(postgres, what) || (was_connected && sign_try(postgres, what));
}

/* What the engine's thread may tell. */
static void silence_note(struct idem_postgres *postgres, bool silent)
{
    int rc = pthread_mutex_lock(&postgres->keeper_mutex);
    IDEM_ASSERT(rc == 0);
    postgres->silence = postgres->keeper.error;
    rc = pthread_mutex_unlock(&postgres->keeper_mutex);
    IDEM_ASSERT(rc == 0);
    if (atomic_exchange(&postgres->silent, silent) != silent) {
        wake(postgres);
    }
}

/* True: it is time for a sign; false: the store stops. Who had no answer asks sooner. */
static bool keeper_wait(struct idem_postgres *postgres)
{
    int64_t pause_us = postgres->settings.silence_us / SIGNS;
    if (atomic_load(&postgres->silent) && pause_us > SILENT_PAUSE_US) {
        pause_us = SILENT_PAUSE_US;
    }
    int64_t next_us = idem_postgres_mono_us() + pause_us;
    struct timespec next = {
        .tv_sec = next_us / IDEM_US_PER_SECOND,
        .tv_nsec = next_us % IDEM_US_PER_SECOND * 1000,
    };
    int rc = pthread_mutex_lock(&postgres->keeper_mutex);
    IDEM_ASSERT(rc == 0);
    while (!postgres->keeper_stops && rc == 0) {
        rc = pthread_cond_timedwait(&postgres->keeper_wake, &postgres->keeper_mutex, &next);
    }
    bool goes_on = !postgres->keeper_stops;
    rc = pthread_mutex_unlock(&postgres->keeper_mutex);
    IDEM_ASSERT(rc == 0);
    return goes_on;
}

static void *keeper_main(void *argument)
{
    struct idem_postgres *postgres = argument;
    while (keeper_wait(postgres)) {
        silence_note(postgres, !sign_give(postgres, SEEN));
    }
    (void)sign_give(postgres, ENDED); /* Otherwise its silence says it. */
    return NULL;
}

static void keeper_stop(struct idem_postgres *postgres)
{
    int rc = pthread_mutex_lock(&postgres->keeper_mutex);
    IDEM_ASSERT(rc == 0);
    postgres->keeper_stops = true;
    rc = pthread_cond_signal(&postgres->keeper_wake);
    IDEM_ASSERT(rc == 0);
    rc = pthread_mutex_unlock(&postgres->keeper_mutex);
    IDEM_ASSERT(rc == 0);
}

/* idem_store_break() was called: the threads learn of it before they see what comes next. */
static void break_pass_on(struct idem_store *store)
{
    if (store->broken) {
        atomic_store(&postgres_of(store)->broken, true);
    }
}

static void postgres_submit(struct idem_store *store, struct idem_store_batch *batch)
{
    struct idem_postgres *postgres = postgres_of(store);
    size_t i = 0;
    break_pass_on(store);
    while (postgres->writers[i].at_work != NULL) { /* There is room: somebody has nothing to do. */
        i += 1;
        IDEM_ASSERT(i < postgres->settings.writers);
    }
    postgres->writers[i].at_work = batch;
    idem_queue_push(&postgres->writers[i].worker.work, &batch->node);
}

static void postgres_read(struct idem_store *store, struct idem_read *read)
{
    struct idem_postgres *postgres = postgres_of(store);
    break_pass_on(store);
    postgres->reader_next = (postgres->reader_next + 1) % postgres->settings.readers;
    idem_queue_push(&postgres->readers[postgres->reader_next].work, &read->node);
}

static void writer_free(struct idem_postgres *postgres, const struct idem_store_batch *batch)
{
    for (size_t i = 0; i < postgres->settings.writers; i++) {
        if (postgres->writers[i].at_work == batch) {
            postgres->writers[i].at_work = NULL;
            return;
        }
    }
    IDEM_UNREACHABLE();
}

/* What the threads found out about the server since. */
static void found_take(struct idem_postgres *postgres)
{
    struct idem_store *base = &postgres->base;
    bool silent = atomic_load(&postgres->silent);
    bool broken = atomic_load(&postgres->broken);
    if (silent != base->silent || (broken && !base->broken)) {
        int rc = pthread_mutex_lock(&postgres->keeper_mutex);
        IDEM_ASSERT(rc == 0);
        base->silence = postgres->silence;
        base->breakage = postgres->breakage;
        rc = pthread_mutex_unlock(&postgres->keeper_mutex);
        IDEM_ASSERT(rc == 0);
    }
    base->silent = silent;
    base->broken = base->broken || broken;
    base->standbys = atomic_load(&postgres->standbys);
    base->standbys_gone = atomic_load(&postgres->standbys_gone);
}

static void postgres_reap(struct idem_store *store,
                          struct idem_list *ret_batches,
                          struct idem_list *ret_reads)
{
    struct idem_postgres *postgres = postgres_of(store);
    struct idem_list batches = { .count = 0 };
    idem_queue_take(&postgres->done_batches, &batches);
    idem_queue_take(&postgres->done_reads, ret_reads);
    IDEM_LIST_FOREACH (node, &batches) {
        writer_free(postgres, IDEM_CONTAINER_OF(node, struct idem_store_batch, node));
    }
    idem_list_join(ret_batches, &batches);
    found_take(postgres);
    store->restored = store->restored && !atomic_load(&postgres->restored_over);
}

static void postgres_stop(struct idem_store *store)
{
    struct idem_postgres *postgres = postgres_of(store);
    for (size_t i = 0; i < postgres->settings.writers; i++) {
        idem_queue_close(&postgres->writers[i].worker.work);
    }
    for (size_t i = 0; i < postgres->settings.readers; i++) {
        idem_queue_close(&postgres->readers[i].work);
    }
}

static void thread_join(pthread_t thread)
{
    int rc = pthread_join(thread, NULL);
    IDEM_ASSERT(rc == 0); /* It was started and is joined once. */
}

static void worker_end(struct idem_postgres_worker *worker)
{
    if (worker->started) {
        thread_join(worker->thread);
    }
    idem_postgres_connection_deinit(&worker->connection);
    idem_queue_deinit(&worker->work);
}

/* Accepts stores whose threads were not all started. */
static void postgres_destroy(struct idem_store *store)
{
    struct idem_postgres *postgres = postgres_of(store);
    postgres_stop(store);
    for (size_t i = 0; i < postgres->settings.writers; i++) {
        worker_end(&postgres->writers[i].worker);
    }
    for (size_t i = 0; i < postgres->settings.readers; i++) {
        worker_end(&postgres->readers[i]);
    }
    idem_postgres_listener_deinit(&postgres->listener);
    if (postgres->keeper_started) { /* Last: until now this instance may have written. */
        keeper_stop(postgres);
        thread_join(postgres->keeper_thread);
    }
    idem_postgres_wire_close(&postgres->keeper);
    idem_queue_deinit(&postgres->done_batches);
    idem_queue_deinit(&postgres->done_reads);
    (void)pthread_cond_destroy(&postgres->keeper_wake);   /* Nobody waits any more. */
    (void)pthread_mutex_destroy(&postgres->keeper_mutex); /* Likewise. */
    free(postgres->url);
    free(postgres);
}

static bool postgres_heard(struct idem_store *store)
{
    return atomic_exchange(&postgres_of(store)->heard, false);
}

static const struct idem_store_ops postgres_ops = {
    .version = IDEM_STORE_OPS_VERSION,
    .name = "postgres",
    .submit = postgres_submit,
    .read = postgres_read,
    .reap = postgres_reap,
    .stop = postgres_stop,
    .destroy = postgres_destroy,
    .heard = postgres_heard,
};

static void opening_note(struct idem_postgres *postgres, const struct idem_postgres_opening *found)
{
    postgres->base.incarnation = found->incarnation;
    postgres->base.horizon_us = found->marks.horizon_us;
    postgres->base.restored = found->restored;
    postgres->base.newest_us = found->restored ? found->restored_from_us : found->newest_us;
    postgres->base.opened_us = found->restored ? found->restored_at_us : found->opened_us;
    postgres->base.old_effect_ids = found->old_effect_ids;
    postgres->base.standbys = found->has_standbys;
    postgres->created_us = found->created_us;
    atomic_store(&postgres->standbys, found->has_standbys);
    idem_clock_raise(postgres->base.options.clock, found->marks.seen_us);
}

static void writer_init(struct idem_postgres *postgres,
                        struct idem_postgres_writer *writer,
                        const struct idem_postgres_opening *found)
{
    struct idem_postgres_connection *connection = &writer->worker.connection;
    struct idem_run_opening opening = {
        .incarnation = found->incarnation,
        .opened_us = found->marks.seen_us,
        .memory_since_us = found->memory_since_us,
        .restored_at_us = found->restored_at_us,
        .stub_count = found->stub_count,
        .webhook_count = 1, /* Each batch finds out. */
        .restored = found->restored,
    };
    writer->worker.store = postgres;
    writer->clock.ops = &told_clock;
    writer->options = postgres->base.options;
    if (!postgres->settings.clock_is_ours) {
        writer->options.clock = &writer->clock;
    }
    idem_postgres_connection_init(connection, &postgres->settings, postgres->base.options.clock);
    connection->incarnation = found->incarnation;
    connection->instance = instance_of(postgres);
    connection->wire.host = postgres->keeper.host; /* Who answered is asked first. */
    connection->floor_us = found->marks.seen_us;
    connection->run = &writer->run;
    idem_run_init(&writer->run, &connection->rows, &writer->options, opening);
}

static int worker_start(struct idem_postgres_worker *worker,
                        const char *name,
                        void *(*run)(void *argument))
{
    int rc = idem_thread_start(&worker->thread, name, run, worker);
    worker->started = rc == 0;
    return rc;
}

static void listener_heard(void *context)
{
    struct idem_postgres *postgres = context;
    atomic_store(&postgres->heard, true);
    wake(postgres);
}

static enum idem_err threads_start(struct idem_postgres *postgres, struct idem_error *reterr)
{
    int rc = 0;
    for (size_t i = 0; i < postgres->settings.writers && rc == 0; i++) {
        rc = worker_start(&postgres->writers[i].worker, "idem-writer", writer_main);
    }
    for (size_t i = 0; i < postgres->settings.readers && rc == 0; i++) {
        rc = worker_start(&postgres->readers[i], "idem-reader", reader_main);
    }
    if (rc == 0) {
        rc = idem_thread_start(&postgres->keeper_thread, "idem-keeper", keeper_main, postgres);
        postgres->keeper_started = rc == 0;
    }
    if (rc == 0) {
        rc = idem_postgres_listener_start(&postgres->listener, postgres->base.incarnation,
                                          listener_heard, postgres);
    }
    return rc == 0 ? IDEM_OK : idem_error_set(reterr, IDEM_E_SYSTEM, "cannot start a thread");
}

static void keeper_init(struct idem_postgres *postgres)
{
    pthread_condattr_t attributes;
    int rc = pthread_condattr_init(&attributes);
    IDEM_ASSERT(rc == 0);
    rc = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    IDEM_ASSERT(rc == 0);
    rc = pthread_cond_init(&postgres->keeper_wake, &attributes);
    IDEM_ASSERT(rc == 0);
    rc = pthread_mutex_init(&postgres->keeper_mutex, NULL);
    IDEM_ASSERT(rc == 0);
    (void)pthread_condattr_destroy(&attributes); /* It has nothing of its own. */
    postgres->keeper.wait_us = postgres->settings.wait_us;
}

/* Memory and queues; nothing that can fail later. NULL: there is no memory. */
static struct idem_postgres *postgres_make(const struct idem_postgres_settings *settings,
                                           const struct idem_store_options *options)
{
    struct idem_postgres *postgres = calloc(1, sizeof(*postgres));
    char *url = strdup(settings->url);
    if (postgres == NULL || url == NULL) {
        free(url);
        free(postgres);
        return NULL;
    }
    postgres->settings = *settings;
    postgres->settings.url = url;
    postgres->url = url;
    postgres->base.ops = &postgres_ops;
    postgres->base.options = *options;
    postgres->base.batches_in_flight_max = settings->writers;
    postgres->base.shared = true;
    for (size_t i = 0; i < settings->writers; i++) {
        idem_queue_init(&postgres->writers[i].worker.work);
    }
    for (size_t i = 0; i < settings->readers; i++) {
        idem_queue_init(&postgres->readers[i].work);
        postgres->readers[i].store = postgres;
        idem_postgres_connection_init(&postgres->readers[i].connection, &postgres->settings,
                                      options->clock);
        postgres->readers[i].connection.listener = &postgres->listener;
    }
    idem_queue_init(&postgres->done_batches);
    idem_queue_init(&postgres->done_reads);
    keeper_init(postgres);
    if (!idem_postgres_listener_init(&postgres->listener, &postgres->settings)) {
        postgres_destroy(&postgres->base);
        return NULL;
    }
    return postgres;
}

enum idem_err idem_postgres_open(const struct idem_postgres_settings *settings,
                                 const struct idem_store_options *options,
                                 struct idem_store **ret_store,
                                 struct idem_error *reterr)
{
    IDEM_ASSERT(options->rules != NULL);
    IDEM_ASSERT(options->wake != NULL);
    IDEM_ASSERT(settings->writers > 0 && settings->writers <= IDEM_POSTGRES_WRITERS_MAX);
    IDEM_ASSERT(settings->readers > 0 && settings->readers <= IDEM_POSTGRES_READERS_MAX);
    struct idem_postgres_opening found;
    struct idem_postgres *postgres = postgres_make(settings, options);
    if (postgres == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    enum idem_err err =
        idem_postgres_opening_run(&postgres->keeper, &postgres->settings, options, &found, reterr);
    if (err == IDEM_OK) {
        opening_note(postgres, &found);
        for (size_t i = 0; i < settings->writers; i++) {
            writer_init(postgres, &postgres->writers[i], &found);
        }
        for (size_t i = 0; i < settings->readers; i++) {
            postgres->readers[i].connection.instance = instance_of(postgres);
            postgres->readers[i].connection.wire.host = postgres->keeper.host;
        }
        err = threads_start(postgres, reterr);
    }
    if (err != IDEM_OK) {
        postgres_destroy(&postgres->base);
        return err;
    }
    *ret_store = &postgres->base;
    return IDEM_OK;
}
