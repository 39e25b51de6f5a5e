/*
 * A batch is on its way twice: until it runs, and until its answer arrives. Both delays are thrown,
 * for each batch anew, so batches commit and come back in any order. The transaction itself is
 * store/run.c over the memory rows with doors in front of begin, commit and the writing of intents:
 * where the real ones fail, these do.
 *
 * A server that left a COMMIT unanswered is asked again on another connection, so `broken` of the
 * run is taken back; a store that `breaks` keeps it, as SQLite does, and its process must go.
 */
#include "sim/store.h"

#include <string.h>

#include "base/bug.h"
#include "sim/world.h"
#include "store/read.h"

#define BATCHES_MAX 4

/* A batch or a read on its way. */
struct sim_pending {
    struct sim_pending *next;
    struct sim_store *store;
    struct idem_store_batch *batch; /* NULL: a read ... */
    struct idem_read *read;         /* ... or nothing any more. */
    int64_t answer_us;              /* How long its answer takes. */
    enum sim_fate fate;
    bool ran;
};

static struct sim_store *store_of(struct idem_store *store)
{
    return IDEM_CONTAINER_OF(store, struct sim_store, base);
}

static struct sim_disk *disk_of(struct idem_rows *rows)
{
    return IDEM_CONTAINER_OF(idem_memory_of(rows), struct sim_disk, rows);
}

static struct idem_store_item *item_of(struct idem_list_node *node)
{
    return IDEM_CONTAINER_OF(node, struct idem_store_item, node);
}

/* ---- doors ---- */

static bool is_overtaken(const struct sim_disk *disk)
{
    return disk->running != NULL && disk->running->base.incarnation != disk->incarnation;
}

/* Of a batch that has not been stamped yet: a row stands as one of its commands has left it. */
static bool asks_again(const struct sim_disk *disk, const struct idem_store_batch *batch)
{
    IDEM_LIST_FOREACH (node, &batch->items) {
        const struct idem_command *command = &item_of(node)->command;
        const struct idem_intent *intent = sim_disk_intent(disk, &command->scope);
        if (command->now_us != 0 && intent != NULL && intent->updated_us == command->now_us) {
            return true; /* Only a command that ran before has a time. */
        }
    }
    return false;
}

/* What hangs is on the disk after all. */
static void hanging_keep(struct sim_disk *disk)
{
    struct sim_store *store = disk->hanging;
    if (store != NULL) {
        idem_memory_keep(&disk->rows.log);
        disk->hanging = NULL;
        sim_audit_committed(&disk->world->auditor, store->instance, NULL);
    }
}

/* On top of what hangs only for those who ask for it again: to everybody else it is as good as
 * durable, and so it is. */
static enum idem_rows_step rows_begin(struct sim_disk *disk)
{
    if (disk->hanging != NULL && disk->hanging == disk->running && disk->asks_again) {
        IDEM_ASSERT(!disk->rows.begun);
        disk->rows.begun = true;
        return IDEM_ROWS_OK;
    }
    hanging_keep(disk);
    return disk->own->begin(&disk->rows.rows);
}

static enum idem_rows_step door_begin(struct idem_rows *rows)
{
    struct sim_disk *disk = disk_of(rows);
    enum idem_rows_step step = rows_begin(disk);
    disk->changes = disk->rows.log.count;
    if (step == IDEM_ROWS_OK && is_overtaken(disk)) {
        return IDEM_ROWS_WRONG_NODE;
    }
    return step == IDEM_ROWS_OK && disk->fate == SIM_FATE_NOTHING ? IDEM_ROWS_REFUSED : step;
}

static enum idem_rows_step door_rollback(struct idem_rows *rows)
{
    struct sim_disk *disk = disk_of(rows);
    disk->hanging = NULL; /* It goes with what stood on it. */
    return disk->own->rollback(rows);
}

static bool begins_to_hang(struct sim_disk *disk)
{
    return disk->fate == SIM_FATE_DONE_UNKNOWN && !disk->running->breaks &&
           disk->rows.log.count > disk->changes &&
           sim_fault(&disk->world->faults, SIM_FAULT_STORE_HANGS);
}

static enum idem_rows_step door_commit(struct idem_rows *rows)
{
    struct sim_disk *disk = disk_of(rows);
    if (disk->hanging != NULL && disk->rows.log.count == disk->changes) {
        sim_trace(disk->world, "  nothing was written, and what hung is gone");
        return door_rollback(rows);
    }
    if (begins_to_hang(disk)) {
        disk->rows.begun = false;
        disk->hanging = disk->running;
        return IDEM_ROWS_LOST;
    }
    disk->hanging = NULL;
    if (disk->fate == SIM_FATE_LOST_UNKNOWN) {
        enum idem_rows_step step = disk->own->rollback(rows);
        IDEM_ASSERT(step == IDEM_ROWS_OK);
        return IDEM_ROWS_LOST;
    }
    enum idem_rows_step step = disk->own->commit(rows);
    return step == IDEM_ROWS_OK && disk->fate == SIM_FATE_DONE_UNKNOWN ? IDEM_ROWS_LOST : step;
}

static enum idem_rows_step door_write_intent(struct idem_rows *rows,
                                             struct idem_intent_write *write)
{
    struct sim_disk *disk = disk_of(rows);
    if (sim_fault(&disk->world->faults, SIM_FAULT_STORE_MISS)) {
        return IDEM_ROWS_MISS;
    }
    return disk->own->write_intent(rows, write);
}

/* ---- the disk ---- */

void sim_disk_init(struct sim_disk *disk, struct sim_world *world)
{
    *disk = (struct sim_disk){ .world = world, .born_us = world->now_us };
    idem_memory_rows_init(&disk->rows);
    disk->own = disk->rows.rows.ops;
    disk->ops = *disk->own;
    disk->ops.begin = door_begin;
    disk->ops.commit = door_commit;
    disk->ops.rollback = door_rollback;
    disk->ops.write_intent = door_write_intent;
    disk->rows.rows.ops = &disk->ops;
}

void sim_disk_deinit(struct sim_disk *disk)
{
    hanging_keep(disk);
    idem_memory_rows_deinit(&disk->rows);
}

const struct idem_intent *sim_disk_intent_at(const struct sim_disk *disk, size_t handle)
{
    const struct idem_memory_intent *found = idem_memory_intent_at(&disk->rows, (int64_t)handle);
    return found != NULL ? &found->intent : NULL;
}

const struct idem_payment *sim_disk_payment_at(const struct sim_disk *disk, size_t handle)
{
    const struct idem_memory_payment *found =
        idem_memory_row(&disk->rows.payments, (int64_t)handle);
    return found != NULL ? &found->payment : NULL;
}

size_t sim_disk_intents(const struct sim_disk *disk)
{
    return disk->rows.intents.count;
}

size_t sim_disk_payments(const struct sim_disk *disk)
{
    return disk->rows.payments.count;
}

const struct idem_intent *sim_disk_intent(const struct sim_disk *disk,
                                          const struct idem_scope *scope)
{
    for (size_t handle = 1; handle <= sim_disk_intents(disk); handle++) {
        const struct idem_intent *intent = sim_disk_intent_at(disk, handle);
        if (intent != NULL && memcmp(&intent->scope, scope, sizeof(*scope)) == 0) {
            return intent;
        }
    }
    return NULL;
}

const struct idem_webhook *sim_disk_webhook(const struct sim_disk *disk, struct idem_uid id)
{
    for (size_t handle = 1; handle <= disk->rows.webhooks.count; handle++) {
        const struct idem_memory_webhook *found =
            idem_memory_row(&disk->rows.webhooks, (int64_t)handle);
        if (found != NULL && idem_uid_equal(found->webhook.id, id)) {
            return &found->webhook;
        }
    }
    return NULL;
}

size_t sim_disk_events(const struct sim_disk *disk, struct idem_str entry, struct idem_str event_id)
{
    size_t count = 0;
    for (size_t handle = 1; handle <= disk->rows.inbox.count; handle++) {
        const struct idem_memory_event_in *found =
            idem_memory_row(&disk->rows.inbox, (int64_t)handle);
        count += found != NULL && idem_str_equal(found->entry, entry) &&
                         idem_str_equal(found->event_id, event_id)
                     ? 1
                     : 0;
    }
    return count;
}

/* As the stores know it: of the records, whatever else was written. */
static int64_t newest_us_of(const struct sim_disk *disk)
{
    int64_t newest_us = 0;
    for (size_t handle = 1; handle <= sim_disk_intents(disk); handle++) {
        const struct idem_intent *intent = sim_disk_intent_at(disk, handle);
        bool is_newer = intent != NULL && intent->updated_us > newest_us;
        newest_us = is_newer ? intent->updated_us : newest_us;
    }
    return newest_us;
}

/* ---- running ---- */

static void batch_answer(struct idem_store_batch *batch, enum idem_store_answer answer)
{
    batch->answer = answer;
    IDEM_LIST_FOREACH (node, &batch->items) {
        item_of(node)->answer = answer;
    }
}

/* How long a clock that is put back now could hide is counted from the last mark. */
static void note_mark(struct sim_disk *disk)
{
    char memory[64];
    struct idem_buf kept;
    struct idem_str text = { .len = 0 };
    int64_t seen_us = 0;
    idem_buf_init(&kept, memory, sizeof(memory));
    disk->rows.rows.kept = &kept;
    enum idem_rows_step step = disk->own->find_meta(&disk->rows.rows, IDEM_META_CLOCK_SEEN, &text);
    IDEM_ASSERT(step == IDEM_ROWS_OK);
    bool is_number = idem_str_to_i64(text, &seen_us);
    IDEM_ASSERT(is_number);
    disk->marked_us = seen_us > disk->seen_us ? disk->world->now_us : disk->marked_us;
    disk->seen_us = seen_us;
}

static void run_begin(struct sim_store *store)
{
    struct idem_run_opening opening = {
        .incarnation = store->base.incarnation,
        .opened_us = store->opened_us,
        .memory_since_us = store->disk->born_us,
        .webhook_count = 1, /* Somebody else may have added one. */
    };
    idem_run_init(&store->run, &store->disk->rows.rows, &store->base.options, opening);
}

/* What hangs is not there yet for those who judge. */
static void audit(const struct sim_store *store, struct idem_store_batch *batch)
{
    struct sim_disk *disk = store->disk;
    if (disk->hanging == NULL) {
        sim_audit_committed(&disk->world->auditor, store->instance, batch);
    }
}

static void batch_run(struct sim_store *store, struct idem_store_batch *batch, enum sim_fate fate)
{
    struct sim_disk *disk = store->disk;
    if (fate == SIM_FATE_DOWN) {
        batch_answer(batch, IDEM_STORE_DOWN);
        audit(store, batch);
        return;
    }
    disk->running = store;
    disk->asks_again = asks_again(disk, batch);
    disk->fate = fate;
    idem_run_batch(&store->run, batch);
    disk->running = NULL;
    disk->fate = SIM_FATE_DURABLE;
    note_mark(disk);
    audit(store, batch);
    if (batch->answer == IDEM_STORE_WRONG_NODE || (store->run.broken && store->breaks)) {
        store->run.broken = true;
    } else if (store->run.broken) {
        run_begin(store);
    }
}

static void read_run(struct sim_store *store, struct idem_read *read)
{
    struct sim_faults *faults = &store->disk->world->faults;
    store->blind = !faults->healed && (store->blind || sim_fault(faults, SIM_FAULT_STORE_BLIND));
    if (store->blind || sim_fault(faults, SIM_FAULT_STORE_READ_REFUSED)) {
        store->disk->fate = SIM_FATE_NOTHING;
    }
    bool sound = idem_read_run(&store->disk->rows.rows, store->base.incarnation, read);
    store->disk->fate = SIM_FATE_DURABLE;
    IDEM_ASSERT(sound);
}

static void pending_answered(void *what)
{
    struct sim_pending *pending = what;
    struct sim_store *store = pending->store;
    if (pending->batch == NULL && pending->read == NULL) {
        return; /* Its process died. */
    }
    if (pending->batch != NULL) {
        store->base.broken = store->base.broken || store->run.broken;
        idem_list_push(&store->done_batches, &pending->batch->node);
    } else {
        idem_list_push(&store->done_reads, &pending->read->node);
    }
    pending->batch = NULL;
    pending->read = NULL;
    sim_instance_wake(store->instance);
}

static void pending_run(void *what)
{
    struct sim_pending *pending = what;
    if (pending->batch == NULL && pending->read == NULL) {
        return;
    }
    pending->ran = true;
    if (pending->batch != NULL) {
        batch_run(pending->store, pending->batch, pending->fate);
        sim_trace(pending->store->disk->world, "i%d batch of %zu: %s", pending->store->instance->no,
                  pending->batch->items.count, idem_store_answer_name(pending->batch->answer));
    } else {
        read_run(pending->store, pending->read);
    }
    sim_world_later(pending->store->disk->world, pending->answer_us, pending_answered, pending);
}

static enum sim_fate fate_throw(struct sim_faults *faults)
{
    if (sim_fault(faults, SIM_FAULT_STORE_DONE_UNKNOWN)) {
        return SIM_FATE_DONE_UNKNOWN;
    }
    if (sim_fault(faults, SIM_FAULT_STORE_LOST_UNKNOWN)) {
        return SIM_FATE_LOST_UNKNOWN;
    }
    if (sim_fault(faults, SIM_FAULT_STORE_NOTHING)) {
        return SIM_FATE_NOTHING;
    }
    return sim_fault(faults, SIM_FAULT_STORE_DOWN) ? SIM_FATE_DOWN : SIM_FATE_DURABLE;
}

static struct sim_pending *pending_add(struct sim_store *store)
{
    struct sim_world *world = store->disk->world;
    struct sim_pending *pending = sim_world_take(world, sizeof(*pending));
    pending->store = store;
    pending->answer_us = sim_dice_delay_us(&world->dice, 5 * IDEM_US_PER_MS);
    pending->next = store->pending;
    store->pending = pending;
    return pending;
}

static void store_submit(struct idem_store *base, struct idem_store_batch *batch)
{
    struct sim_store *store = store_of(base);
    struct sim_world *world = store->disk->world;
    if (store->dead) {
        batch_answer(batch, IDEM_STORE_DOWN);
        idem_list_push(&store->done_batches, &batch->node);
        return;
    }
    struct sim_pending *pending = pending_add(store);
    pending->batch = batch;
    pending->fate = fate_throw(&world->faults);
    int64_t delay_us = sim_dice_delay_us(&world->dice, 20 * IDEM_US_PER_MS);
    if (sim_fault(&world->faults, SIM_FAULT_STORE_SLOW)) {
        delay_us = sim_dice_between(&world->dice, 0, 2 * world->rules.lease_us);
        pending->answer_us = sim_dice_delay_us(&world->dice, 2 * world->rules.lease_us);
    }
    sim_world_later(world, delay_us, pending_run, pending);
}

static void store_read(struct idem_store *base, struct idem_read *read)
{
    struct sim_store *store = store_of(base);
    struct sim_world *world = store->disk->world;
    if (store->dead) {
        read->answer = IDEM_STORE_DOWN;
        read->due_count = 0;
        idem_list_push(&store->done_reads, &read->node);
        return;
    }
    struct sim_pending *pending = pending_add(store);
    pending->read = read;
    sim_world_later(world, sim_dice_delay_us(&world->dice, IDEM_US_PER_MS), pending_run, pending);
}

static void store_reap(struct idem_store *base,
                       struct idem_list *ret_batches,
                       struct idem_list *ret_reads)
{
    struct sim_store *store = store_of(base);
    idem_list_join(ret_batches, &store->done_batches);
    idem_list_join(ret_reads, &store->done_reads);
}

static void store_stop(struct idem_store *base)
{
    (void)base; /* What is pending comes back by itself. */
}

static void store_destroy(struct idem_store *base)
{
    (void)base; /* The run's memory. */
}

static const struct idem_store_ops store_ops = {
    .version = IDEM_STORE_OPS_VERSION,
    .name = "sim",
    .submit = store_submit,
    .read = store_read,
    .reap = store_reap,
    .stop = store_stop,
    .destroy = store_destroy,
};

static void woke(void *context)
{
    sim_instance_wake(context);
}

struct sim_store *sim_store_open(struct sim_disk *disk,
                                 struct sim_instance *instance,
                                 struct idem_clock *clock)
{
    struct sim_world *world = disk->world;
    struct sim_store *store = sim_world_take(world, sizeof(*store));
    hanging_keep(disk);
    if (!world->twins || disk->incarnation == 0) {
        disk->incarnation += 1;
    }
    store->disk = disk;
    store->instance = instance;
    store->breaks = sim_dice_chance(&world->dice, 500);
    store->base = (struct idem_store){
        .ops = &store_ops,
        .options = { .rules = &world->rules,
                     .clock = clock,
                     .wake = woke,
                     .wake_context = instance },
        .incarnation = disk->incarnation,
        .shared = world->twins,
        .batches_in_flight_max = 1 + (size_t)sim_dice_below(&world->dice, BATCHES_MAX),
        .newest_us = newest_us_of(disk),
        .opened_us = idem_clock_wall_us(clock),
    };
    store->base.horizon_us =
        idem_memory_marks_open(&disk->rows, store->base.newest_us, clock).horizon_us;
    store->opened_us = idem_clock_wall_us(clock);
    note_mark(disk);
    disk->marked_us = world->now_us; /* Its clock says `seen_us` now. */
    run_begin(store);
    return store;
}

/* Its last moment: did the COMMIT reach the disk? */
static void pending_decide(struct sim_pending *pending)
{
    struct sim_world *world = pending->store->disk->world;
    struct idem_store_batch *batch = pending->batch;
    if (!pending->ran && sim_dice_chance(&world->dice, 500)) {
        batch_run(pending->store, batch, pending->fate);
        sim_fault_note(&world->faults, SIM_FAULT_CRASH_COMMITTED);
        sim_trace(world, "i%d its open batch stands", pending->store->instance->no);
    } else if (!pending->ran) {
        sim_fault_note(&world->faults, SIM_FAULT_CRASH_FORGOT);
    }
    batch_answer(batch, IDEM_STORE_UNKNOWN);
    idem_list_push(&pending->store->done_batches, &batch->node);
    pending->batch = NULL;
}

void sim_store_die(struct sim_store *store)
{
    struct sim_disk *disk = store->disk;
    store->dead = true;
    if (disk->hanging == store && sim_dice_chance(&disk->world->dice, 500)) {
        enum idem_rows_step step = door_rollback(&disk->rows.rows);
        IDEM_ASSERT(step == IDEM_ROWS_OK);
    }
    for (struct sim_pending *pending = store->pending; pending != NULL; pending = pending->next) {
        if (pending->batch != NULL) {
            pending_decide(pending);
        } else if (pending->read != NULL) {
            pending->read->answer = IDEM_STORE_DOWN;
            pending->read->due_count = 0;
            idem_list_push(&store->done_reads, &pending->read->node);
            pending->read = NULL;
        }
    }
    store->base.broken = true;
}
