/*
 * The judge behind world.h: what was left at a point of a trace is written into a directory, opened
 * by the store as it is, on SQLite's own VFS, and compared with the book.
 *
 * At a point, `low` batches were acknowledged, and perhaps one more was under way (`high`). Then
 *
 *   P11      every table is byte for byte as after `low` or as after `high`, nothing in between;
 *            rows belong together, and SQLite finds no damage
 *   P1, P2   what was answered is there: version, state, token, epoch, answer, sends
 *   P3       the incarnation is newer than any that was acknowledged; a caller's retry meets the
 *            same intent and does not send where somebody may have sent
 *   P4       its answer has the same bytes
 *   (4.)     the commands that were under way, run again, end, and end in `high`
 */
#include "power/world.h"

#include "base/attr.h"
#include "lib/test.h"

#define SEEN_MAX 65536

/* What may be found. */
struct expected {
    size_t low;
    size_t high;
    int64_t incarnation; /* The newest that was acknowledged. */
};

/* What was found. */
struct found {
    size_t low;
    size_t state;
};

static struct expected expected_at(const struct world *world, size_t point)
{
    struct expected expected = {
        .low = world->batches_at_start,
        .incarnation = world->incarnation_at_start,
    };
    while (expected.low < world->book.batch_count &&
           world->moments[expected.low + 1].acknowledged <= point) {
        expected.low += 1;
    }
    bool under_way = expected.low < world->book.batch_count &&
                     world->moments[expected.low + 1].submitted <= point;
    expected.high = expected.low + (under_way ? 1 : 0);
    for (size_t i = 0; i < world->opening_count; i++) {
        if (world->openings[i].point <= point) {
            expected.incarnation = world->openings[i].incarnation;
        }
    }
    return expected;
}

static void open_image(struct world *world, struct fixture *fixture, struct expected expected)
{
    struct idem_error error = { .text = "" };
    fixture->clock.wall_base_us = world->clock_us[expected.low];
    if (fixture_try_open(fixture, &fixture->store, &error) != IDEM_OK) {
        world_lost(world, "it does not open: %s", error.text);
    }
    if (fixture->store->incarnation <= expected.incarnation) {
        world_lost(world, "incarnation %lld, after %lld was acknowledged",
                   (long long)fixture->store->incarnation, (long long)expected.incarnation);
    }
}

/* Which of the two states it is. */
static size_t state_find(struct world *world, struct fixture *fixture, struct expected expected)
{
    struct book_dump dump;
    char damage[256];
    book_damage_find(fixture->path, damage, sizeof(damage));
    if (damage[0] != '\0') {
        world_lost(world, "%s", damage);
    }
    if (!book_dump_read(fixture->path, &dump)) {
        world_lost(world, "it cannot be read");
    }
    const char *table = book_difference(&dump, &world->book.dumps[expected.low], true);
    if (table == NULL) {
        world->counts->before += expected.high > expected.low ? 1 : 0;
        return expected.low;
    }
    if (book_difference(&dump, &world->book.dumps[expected.high], false) != NULL) {
        world_lost(world, "%s is not as after batch %zu (acknowledged) nor %zu (submitted)", table,
                   expected.low, expected.high);
    }
    world->counts->after += 1;
    return expected.high;
}

static bool str_is(struct idem_str left, struct idem_str right)
{
    return idem_str_equal(left, right);
}

/* What was under way may have been written once, and was acknowledged when it ran again. */
static void row_check(struct world *world,
                      const struct idem_read *read,
                      const struct record *record,
                      size_t low)
{
    const struct idem_intent *found = &read->intent;
    const struct idem_intent *told = &record->intent;
    const char *key = world->book.deeds[record->deed].key;
    if (!read->found || !idem_uid_equal(found->id, told->id)) {
        world_lost(world, "%s: the intent that was acknowledged is not there", key);
    }
    bool counted = found->version == told->version ||
                   ((record->batch > low || record->uncounted) && found->version < told->version);
    if (!counted || found->state != told->state) {
        world_lost(world, "%s: version or state is not the acknowledged one", key);
    }
    if (found->epoch != told->epoch || !idem_uid_equal(found->token, told->token)) {
        world_lost(world, "%s: epoch or token is not the acknowledged one", key);
    }
    if (found->answer.status != told->answer.status ||
        !str_is(found->answer.headers, told->answer.headers) ||
        !str_is(found->answer.body, told->answer.body)) {
        world_lost(world, "%s: another answer", key);
    }
}

static void send_check(struct world *world, const struct idem_read *read, const struct record *told)
{
    const struct idem_release *release = &told->release;
    if (release->kind != IDEM_RELEASE_SEND) {
        return;
    }
    for (size_t i = 0; i < read->send_count; i++) {
        const struct idem_send *send = &read->sends[i];
        if (send->no == release->send_no && send->epoch == told->intent.epoch &&
            idem_uid_equal(send->token, told->intent.token) &&
            send->not_after_us >= release->not_after_us) {
            return;
        }
    }
    world_lost(world, "%s: send %u was released and has no row", world->book.deeds[told->deed].key,
               release->send_no);
}

/* Something that was acknowledged until `state`; NULL: by chance there was none. */
static const struct record *record_pick(struct world *world, struct random *random, size_t state)
{
    for (int i = 0; i < 8 && world->book.deed_count > 0; i++) {
        size_t deed = random_below(random, world->book.deed_count);
        const struct record *record = book_last(&world->book, deed, state);
        if (record != NULL && record->intent.state != IDEM_INTENT_NONE) {
            return record;
        }
    }
    return NULL;
}

static void rows_check(struct world *world,
                       struct fixture *fixture,
                       struct random *random,
                       struct found found)
{
    for (int i = 0; i < 4; i++) {
        const struct record *record = record_pick(world, random, found.state);
        if (record == NULL) {
            continue;
        }
        struct idem_read *read = fixture_ask(fixture, IDEM_READ_OPERATION_BY_SCOPE, "");
        read->scope = record->intent.scope;
        read->principal = record->intent.principal;
        fixture_read(fixture);
        if (read->answer != IDEM_STORE_DURABLE) {
            world_lost(world, "a read is answered %s", idem_store_answer_name(read->answer));
        }
        row_check(world, read, record, found.low);
        send_check(world, read, record);
    }
}

static size_t calls_of_batch(const struct world *world, size_t batch, struct call *calls)
{
    size_t count = 0;
    for (size_t i = 0; i < world->book.record_count; i++) {
        if (world->book.records[i].batch == batch) {
            calls[count] = (struct call){ .item.command = world->book.records[i].command };
            calls[count].item.outcome = &calls[count].outcome;
            count += 1;
        }
    }
    return count;
}

static void rerun_check(struct world *world, struct fixture *fixture, size_t batch)
{
    struct book_dump dump;
    size_t count = calls_of_batch(world, batch, world->calls);
    enum idem_store_answer answer = fixture_run(fixture, world->calls, count);
    if (answer != IDEM_STORE_DURABLE) {
        world_lost(world, "batch %zu run again is %s", batch, idem_store_answer_name(answer));
    }
    if (!book_dump_read(fixture->path, &dump)) {
        world_lost(world, "it cannot be read after batch %zu was run again", batch);
    }
    const char *table = book_difference(&dump, &world->book.dumps[batch], false);
    if (table != NULL) {
        world_lost(world, "batch %zu run again leaves other %s", batch, table);
    }
    world->counts->reruns += 1;
}

/* What a caller who asks again is told. */
static void retry_check(struct world *world, const struct call *call, const struct record *record)
{
    const struct idem_intent *told = &record->intent;
    const struct idem_intent *now = &call->outcome.intent;
    const char *key = world->book.deeds[record->deed].key;
    bool may_be_sent = told->state == IDEM_INTENT_DISPATCHED ||
                       told->state == IDEM_INTENT_UNKNOWN || told->state == IDEM_INTENT_PARKED;
    if (call->item.answer != IDEM_STORE_DURABLE) {
        world_lost(world, "%s: a retry is %s", key, idem_store_answer_name(call->item.answer));
    }
    if (!idem_uid_equal(now->id, told->id) || now->epoch < told->epoch) {
        world_lost(world, "%s: a retry is another intent, or of an earlier epoch", key);
    }
    if (may_be_sent && call->outcome.release.kind == IDEM_RELEASE_SEND) {
        world_lost(world, "%s: a retry sends again", key);
    }
    if (idem_intent_is_final(told->state) &&
        (now->state != told->state || now->answer.status != told->answer.status ||
         !str_is(now->answer.body, told->answer.body) ||
         !str_is(now->answer.headers, told->answer.headers))) {
        world_lost(world, "%s: a retry gets another answer", key);
    }
}

static void retries_check(struct world *world,
                          struct fixture *fixture,
                          struct random *random,
                          size_t state)
{
    struct work work = { .book = &world->book, .fixture = fixture, .random = *random };
    fixture->uid_next = UINT64_C(1) << 40; /* Nobody else's. */
    for (int i = 0; i < 3; i++) {
        const struct record *record = record_pick(world, random, state);
        if (record == NULL) {
            continue;
        }
        work_retry(&work, &world->book.deeds[record->deed], world->calls);
        (void)fixture_run(fixture, world->calls, 1);
        retry_check(world, world->calls, record);
        world->counts->retries += 1;
    }
}

/* What lies in the fixture's directory. Gives the state that it is in. */
static size_t image_judge(struct world *world,
                          struct fixture *fixture,
                          struct random *random,
                          struct expected expected)
{
    open_image(world, fixture, expected);
    size_t state = state_find(world, fixture, expected);
    rows_check(world, fixture, random, (struct found){ expected.low, state });
    uint64_t roll = random_below(random, 100);
    if (roll < 50 && expected.high > expected.low) {
        rerun_check(world, fixture, expected.high);
    } else if (roll < 70) {
        retries_check(world, fixture, random, state);
    }
    fixture_close(fixture);
    image_remove(fixture->directory);
    world->counts->images += 1;
    return state;
}

static void place_note(struct world *world, const struct image_choice *choice, const char *of)
{
    (void)snprintf(world->place, sizeof(world->place), "life %u, %s, point %zu of %zu, left: %s",
                   world->life, of, choice->point, world->trace.op_count,
                   image_way_name(choice->way));
}

/* The power goes again while an image is opened. */
static void recovery_judge(struct world *world,
                           const struct image_choice *choice,
                           struct random *random,
                           struct expected expected)
{
    struct disk_trace trace;
    (void)image_write(&world->trace, choice, world->image.directory);
    disk_begin(&trace, world->image.directory);
    open_image(world, &world->image, expected);
    struct world_opening opening = { disk_point(), world->image.store->incarnation };
    fixture_close(&world->image);
    disk_end();
    image_remove(world->image.directory);
    world->counts->recoveries += 1;
    for (int i = 0; i < 3; i++) {
        struct image_choice again = {
            .point = random_below(random, trace.op_count + 1),
            .seed = random_next(random),
            .way = (enum image_way)random_below(random, IMAGE_WAY_COUNT + 1),
        };
        struct expected then = expected;
        then.incarnation =
            again.point >= opening.point ? opening.incarnation : expected.incarnation;
        place_note(world, &again, "an image of it, opened, and again");
        (void)image_write(&trace, &again, world->inner.directory);
        (void)image_judge(world, &world->inner, random, then);
    }
    disk_trace_deinit(&trace);
}

/* The same files were judged before, with the same expectation. */
static bool is_seen(struct world *world, uint64_t digest)
{
    for (size_t i = 0; i < world->seen_count; i++) {
        if (world->seen[i] == digest) {
            return true;
        }
    }
    if (world->seen_count < SEEN_MAX) {
        world->seen[world->seen_count] = digest;
        world->seen_count += 1;
    }
    return false;
}

static void point_judge(struct world *world, size_t point, enum image_way way)
{
    struct random random = { .state = random_next(&world->random) };
    struct image_choice choice = { .point = point, .seed = random_next(&random), .way = way };
    struct expected expected = expected_at(world, point);
    world->point = point;
    place_note(world, &choice, "power off");
    uint64_t digest = image_write(&world->trace, &choice, world->image.directory);
    if (is_seen(world, digest ^ (expected.low << 20) ^ (uint64_t)expected.incarnation)) {
        world->counts->same += 1;
        image_remove(world->image.directory);
        return;
    }
    (void)image_judge(world, &world->image, &random, expected);
    if (random_percent(&random, 12)) {
        recovery_judge(world, &choice, &random, expected);
    }
}

static enum image_way any_way(struct world *world)
{
    return (enum image_way)random_below(&world->random, IMAGE_WAY_COUNT + 1);
}

static bool is_flush(const struct disk_op *op)
{
    return op->kind == DISK_FLUSH || op->kind == DISK_FLUSH_DIRECTORY ||
           op->kind == DISK_FLUSH_FAILED;
}

void world_judge(struct world *world, const struct world_plan *plan)
{
    world->seen_count = 0;
    for (size_t i = 0; i < world->trace.op_count; i++) {
        if (is_flush(&world->trace.ops[i]) && random_percent(&world->random, plan->flushes)) {
            point_judge(world, i, any_way(world)); /* All written, nothing flushed yet. */
            point_judge(world, i + 1, IMAGE_NONE); /* No more than what it promised. */
        }
    }
    for (unsigned i = 0; i < plan->other_points; i++) {
        size_t point = random_below(&world->random, world->trace.op_count + 1);
        point_judge(world, point, any_way(world));
    }
    size_t end = world->trace.op_count;
    point_judge(world, end, IMAGE_NONE);
    point_judge(world, end, IMAGE_ALL);
}

void world_power_off(struct world *world)
{
    struct image_choice choice = {
        .point = random_below(&world->random, world->trace.op_count + 1),
        .seed = random_next(&world->random),
        .way = any_way(world),
    };
    struct random random = { .state = choice.seed };
    struct expected expected = expected_at(world, choice.point);
    world->point = choice.point;
    place_note(world, &choice, "power off, and on again");
    (void)image_write(&world->trace, &choice, world->image.directory);
    size_t state = image_judge(world, &world->image, &random, expected);

    world->pending_count =
        state < world->book.batch_count ? calls_of_batch(world, state + 1, world->pending) : 0;
    for (size_t i = 0, at = 0; i < world->book.record_count; i++) {
        if (world->book.records[i].batch == state + 1) {
            world->pending_deeds[at] = world->book.records[i].deed;
            at += 1;
        }
    }
    for (size_t i = 0; i < world->book.record_count && state > expected.low; i++) {
        struct record *record = &world->book.records[i];
        record->uncounted = record->uncounted || record->batch == state;
    }
    book_cut(&world->book, state);
    world->incarnation_at_start = expected.incarnation;
    image_remove(world->live.directory);
    (void)image_write(&world->trace, &choice, world->live.directory);
    disk_trace_deinit(&world->trace);
    world->life += 1;
}
