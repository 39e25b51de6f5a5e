/*
 * A life behind world.h.
 *
 * Checkpoints are the seed's too, although they have a thread of their own. Three ways: a whole
 * pass inside one write or flush of the writer; a pass that is held at one of its own writes or
 * flushes while batches go on; a pass between batches that waits for readers and makes the log
 * begin anew. So a seed gives the same trace each time, and all that two threads can do to one
 * another's files is among the traces.
 *
 * A fault comes at some write or flush. What the store may say then is in docs/operations.md and
 * store.h: a batch is DURABLE, or not known, and then the store is broken; it is closed, opened
 * anew, which may be refused while the fault lasts, and the same commands are run again.
 */
#include "power/world.h"

#include <sched.h>

#include "base/attr.h"
#include "lib/test.h"
#include "store/sqlite/sqlite_internal.h"

#define TRIES_MAX 8

/* A pass that is held. */
struct held_pass {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool released;
    bool held;
};

static struct held_pass held = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
};

static struct idem_sqlite *sqlite_of(struct world *world)
{
    return IDEM_CONTAINER_OF(world->live.store, struct idem_sqlite, base);
}

static bool pass_is_over(struct world *world)
{
    struct idem_sqlite_checkpoint *checkpoint = &sqlite_of(world)->checkpoint;
    assert_int_equal(pthread_mutex_lock(&checkpoint->mutex), 0);
    bool over = checkpoint->wish == IDEM_SQLITE_WISH_NONE && !checkpoint->running;
    assert_int_equal(pthread_mutex_unlock(&checkpoint->mutex), 0);
    return over;
}

static void pass_wait(struct world *world)
{
    while (!pass_is_over(world)) {
        (void)sched_yield();
    }
}

/* In the writer's thread, in the middle of a COMMIT. */
static void pass_inside(void *context)
{
    struct world *world = context;
    idem_sqlite_checkpoint_some(&sqlite_of(world)->checkpoint);
    pass_wait(world);
    world->counts->passes += 1;
}

/* In the checkpoint's thread. */
static void pass_hold(void *context)
{
    (void)context; /* There is one. */
    assert_int_equal(pthread_mutex_lock(&held.mutex), 0);
    while (!held.released) {
        assert_int_equal(pthread_cond_wait(&held.changed, &held.mutex), 0);
    }
    assert_int_equal(pthread_mutex_unlock(&held.mutex), 0);
}

static void pass_release(struct world *world)
{
    if (!held.held) {
        return;
    }
    assert_int_equal(pthread_mutex_lock(&held.mutex), 0);
    held.released = true;
    assert_int_equal(pthread_cond_broadcast(&held.changed), 0);
    assert_int_equal(pthread_mutex_unlock(&held.mutex), 0);
    pass_wait(world);
    held.held = false;
    disk_between_clear();
}

static void pass_begin(struct world *world, unsigned at)
{
    struct idem_sqlite_checkpoint *checkpoint = &sqlite_of(world)->checkpoint;
    held.released = false;
    disk_between_set(checkpoint->thread, at, pass_hold, NULL);
    idem_sqlite_checkpoint_some(checkpoint);
    while (!disk_between_reached() && !pass_is_over(world)) {
        (void)sched_yield();
    }
    held.held = disk_between_reached();
    world->counts->passes += 1;
    if (!held.held) {
        disk_between_clear();
    }
}

/* What the checkpoints do around the batch that comes. */
static void passes_before(struct world *world)
{
    struct random *random = &world->random;
    uint64_t roll = random_below(random, 100);
    if (held.held) {
        if (roll < 60) {
            pass_release(world);
        }
        return;
    }
    unsigned at = 1 + (unsigned)random_below(random, 8);
    if (roll < 20) {
        disk_between_set(sqlite_of(world)->writer_thread, 1 + at % 3, pass_inside, world);
    } else if (roll < 45) {
        pass_begin(world, at);
    } else if (roll < 55) {
        (void)idem_sqlite_checkpoint_all(&sqlite_of(world)->checkpoint);
        world->counts->passes += 1;
    }
}

static void passes_after(struct world *world)
{
    if (!held.held) {
        disk_between_clear();
        pass_wait(world);
    }
}

static void close_live(struct world *world)
{
    pass_release(world);
    disk_between_clear();
    fixture_close(&world->live);
}

/* Once it has come, it explains what is refused, until the store is open again without it. */
static void fault_look(struct world *world)
{
    if (disk_fault_fired() && !world->fault_came) {
        world->fault_came = true;
        world->counts->faults[world->fault] += 1;
    }
}

static void fault_end(struct world *world)
{
    fault_look(world);
    disk_fault_set(DISK_FAULT_NONE, 0);
}

static bool open_live(struct world *world)
{
    struct idem_error error = { .text = "" };
    if (fixture_try_open(&world->live, &world->live.store, &error) != IDEM_OK) {
        world->live.store = NULL;
        fault_look(world);
        if (!world->fault_came) {
            world_lost(world, "the store does not open: %s", error.text);
        }
        world->counts->refused += 1;
        return false;
    }
    assert_in_range(world->opening_count, 0, WORLD_OPENINGS_MAX - 1);
    world->openings[world->opening_count] = (struct world_opening){
        .point = disk_point(),
        .incarnation = world->live.store->incarnation,
    };
    world->opening_count += 1;
    world->counts->openings += 1;
    return true;
}

/* Under the fault, which may refuse it, and then without. */
static void open_surely(struct world *world)
{
    if (!open_live(world)) {
        fault_end(world);
        world->fault_came = false;
        (void)open_live(world);
    }
}

static void state_note(struct world *world)
{
    size_t number = world->book.batch_count;
    world->clock_us[number] = world->live.clock.wall_base_us;
    if (!book_dump_read(world->live.path, &world->book.dumps[number])) {
        world_lost(world, "the open store cannot be read after batch %zu", number);
    }
}

/* It goes on from where the book is. */
static void start_check(struct world *world)
{
    struct book_dump dump;
    size_t number = world->book.batch_count;
    if (number == 0) { /* It may have been made only now, by a later clock. */
        state_note(world);
        return;
    }
    if (!book_dump_read(world->live.path, &dump) ||
        book_difference(&dump, &world->book.dumps[number], false) != NULL) {
        world_lost(world, "the store goes on from something else than batch %zu", number);
    }
    world->book.dumps[number] = dump;
}

/* An answer other than DURABLE needs a fault, and says the truth about what can be done. */
static void refusal_check(struct world *world, enum idem_store_answer answer)
{
    const struct idem_store *store = world->live.store;
    bool plausible =
        answer == IDEM_STORE_UNKNOWN || answer == IDEM_STORE_NOTHING || answer == IDEM_STORE_DOWN;
    if (!world->fault_came || !plausible) {
        world_lost(world, "a batch was answered %s", idem_store_answer_name(answer));
    }
    if (!store->broken && answer != IDEM_STORE_NOTHING) {
        world_lost(world, "%s, and the store is not broken", idem_store_answer_name(answer));
    }
    world->counts->told_unknown += 1;
}

/* Nothing is shown by a store that does not know what will be there after a restart. */
static void broken_reads_nothing(struct world *world)
{
    struct idem_read *read = fixture_ask(&world->live, IDEM_READ_SUMMARY, "");
    fixture_read(&world->live);
    if (read->answer != IDEM_STORE_DOWN) {
        world_lost(world, "a broken store answers a read");
    }
}

static void after_refusal(struct world *world, enum idem_store_answer answer)
{
    fault_look(world);
    refusal_check(world, answer);
    if (!world->live.store->broken) {
        fault_end(world);
        return;
    }
    broken_reads_nothing(world);
    close_live(world);
    if (random_percent(&world->random, 50)) {
        fault_end(world); /* Otherwise the next start meets it. */
    }
    open_surely(world);
    fault_end(world);
    world->fault_came = false;
}

static void batch_live(struct world *world, struct call *calls, const size_t *deeds, size_t count)
{
    size_t number = world->book.batch_count + 1;
    world->moments[number] = (struct world_moment){ disk_point(), SIZE_MAX };
    enum idem_store_answer answer = IDEM_STORE_NONE;
    for (int tries = 0; tries < TRIES_MAX && answer != IDEM_STORE_DURABLE; tries++) {
        passes_before(world);
        answer = fixture_run(&world->live, calls, count);
        size_t point = disk_point();
        if (answer == IDEM_STORE_DURABLE) {
            world->moments[number].acknowledged = point;
        }
        passes_after(world);
        if (answer != IDEM_STORE_DURABLE) {
            pass_release(world);
            after_refusal(world, answer);
        }
    }
    if (answer != IDEM_STORE_DURABLE) {
        world_lost(world, "a batch does not end");
    }
    book_acknowledge(&world->book, calls, deeds, count);
    state_note(world);
    world->counts->batches += 1;
    world->counts->commands += count;
}

static void restart_sometimes(struct world *world)
{
    if (random_percent(&world->random, 8)) {
        close_live(world);
        open_surely(world);
        world->fault_came = false;
    }
}

static void pending_run(struct world *world)
{
    if (world->pending_count > 0 && random_percent(&world->random, 60)) {
        size_t count = world->pending_count;
        batch_live(world, world->pending, world->pending_deeds, count);
    }
    world->pending_count = 0;
}

static void trace_count(struct world *world)
{
    for (size_t i = 0; i < world->trace.op_count; i++) {
        enum disk_op_kind kind = world->trace.ops[i].kind;
        bool flush =
            kind == DISK_FLUSH || kind == DISK_FLUSH_DIRECTORY || kind == DISK_FLUSH_FAILED;
        world->counts->flushes += flush ? 1 : 0;
        world->counts->writes += kind == DISK_WRITE ? 1 : 0;
    }
}

/* Within the writes or flushes of a batch or two, and of a checkpoint beside them. */
static void fault_arm(struct world *world)
{
    bool flush = world->fault == DISK_FAULT_FLUSH || world->fault == DISK_FAULT_FLUSH_ONCE;
    unsigned at = 1 + (unsigned)random_below(&world->random, flush ? 3 : 12);
    disk_fault_set(world->fault, at);
}

static void fault_arm_sometimes(struct world *world)
{
    if (world->fault != DISK_FAULT_NONE && random_percent(&world->random, 30)) {
        fault_arm(world);
    }
}

static void batch_next(struct world *world, const struct world_plan *plan)
{
    if (plan->fault_at == 0) {
        fault_arm_sometimes(world);
    }
    size_t count = work_batch(&world->work, world->calls, world->deeds, WORK_BATCH_MAX);
    batch_live(world, world->calls, world->deeds, count);
    if (disk_fault_fired()) {
        fault_end(world);
        /* A checkpoint that it broke is told by the next batch. */
        world->fault_came = atomic_load(&sqlite_of(world)->broken);
    }
    restart_sometimes(world);
}

void world_live(struct world *world, const struct world_plan *plan)
{
    world->fault = plan->fault;
    world->fault_came = false;
    world->opening_count = 0;
    world->batches_at_start = world->book.batch_count;
    disk_begin(&world->trace, world->live.directory);
    if (plan->fault_at != 0) {
        disk_fault_set(plan->fault, plan->fault_at);
    } else {
        fault_arm_sometimes(world);
    }
    open_surely(world);
    start_check(world);
    pending_run(world);
    for (unsigned i = 0; i < plan->batches; i++) {
        batch_next(world, plan);
    }
    close_live(world);
    fault_end(world);
    disk_end();
    trace_count(world);
    world->counts->lives += 1;
}
