/*
 * A crash is taken apart in two halves. What the world sees is immediate: the store's door is shut,
 * each open transaction is decided, calls end for this side while their bytes stay on the wire.
 * What C needs is the second: the engine is driven, behind shut doors, to the end that its
 * destructor expects. Whatever it says on that way is heard by nobody.
 */
#include "sim/instance.h"

#include <stdlib.h>

#include "base/bug.h"
#include "sim/world.h"

#define CHAOS_EVERY_US (20 * SIM_SECOND)
#define STEPS_DEAD_MAX 1000
#define IDLE_US        (500 * IDEM_US_PER_MS) /* Who waits so long for nothing may wait longer: */
#define IDLE_MORE_US   (5 * SIM_SECOND)       /* a run is not there to watch somebody idle. */

static int64_t clock_mono_us(struct idem_clock *base)
{
    const struct sim_clock *clock = IDEM_CONTAINER_OF(base, struct sim_clock, base);
    int64_t passed_us = clock->world->now_us - clock->born_us;
    int64_t drift_us = passed_us * clock->drift_ppm / SIM_SECOND; /* Never a step back. */
    return SIM_SECOND + passed_us + drift_us + clock->after_us;
}

static int64_t clock_wall_us(struct idem_clock *base)
{
    return base->wall_base_us + (clock_mono_us(base) - base->mono_base_us);
}

static const struct idem_clock_ops clock_ops = {
    .wall_us = clock_wall_us,
    .mono_us = clock_mono_us,
};

/*
 * A clock that is put back, or right again, hides what has passed since the last mark. The margin
 * of a window is there for it, once in a window (docs/design.md, section 1).
 */
static bool may_go_back(struct sim_world *world)
{
    int64_t hidden_us = world->now_us - world->disk.marked_us;
    bool is_first = world->now_us - world->put_back_us > SIM_USABLE_US + SIM_MARGIN_FAR_US;
    if (world->clocks_ok || world->disk.seen_us == 0) {
        return true;
    }
    if (hidden_us > SIM_HIDDEN_MAX_US || !is_first) {
        return false;
    }
    world->put_back_us = world->now_us;
    return true;
}

/* Twins have the server's time; alone, a machine has its own idea of it. */
static int64_t wall_at_start_us(struct sim_world *world)
{
    struct sim_dice *dice = &world->dice;
    int64_t far_us = world->clocks_ok ? 2 * SIM_SECOND : 3 * IDEM_US_PER_DAY;
    int64_t wall_us = world->now_us;
    if (world->twins) {
        return wall_us;
    }
    if (sim_fault(&world->faults, SIM_FAULT_CLOCK_AHEAD)) {
        wall_us += sim_dice_delay_us(dice, far_us);
    } else if (sim_fault(&world->faults, SIM_FAULT_CLOCK_BACK)) {
        wall_us -= sim_dice_delay_us(dice, far_us);
    }
    int64_t went_on_us = world->disk.seen_us + (world->now_us - world->disk.marked_us);
    return wall_us >= went_on_us || may_go_back(world) ? wall_us : went_on_us;
}

static void clock_start(struct sim_clock *clock, struct sim_world *world)
{
    clock->world = world;
    clock->born_us = world->now_us;
    if (!world->twins && sim_fault(&world->faults, SIM_FAULT_CLOCK_DRIFT)) {
        clock->drift_ppm = sim_dice_between(&world->dice, -500, 500);
    }
    clock->base = (struct idem_clock){
        .ops = &clock_ops,
        .wall_base_us = wall_at_start_us(world),
        .mono_base_us = SIM_SECOND,
    };
}

static void engine_start(struct sim_instance *instance)
{
    struct sim_world *world = instance->world;
    struct idem_clock *clock = &instance->clock.base;
    const struct idem_engine_options options = {
        .store = &instance->store->base,
        .port = sim_port_base(instance->port),
        .rules = &world->rules,
        .clock = clock,
        .random = &instance->random.base,
        .requests_max = 16,
        .waiters_per_key_max = 4,
        .sends_max = (size_t)sim_dice_between(&world->dice, 0, 4),
        .recoveries_max = (size_t)sim_dice_between(&world->dice, 1, 4),
        .cache_entries = sim_dice_chance(&world->dice, 500) ? 8 : 0,
    };
    struct idem_error error;
    enum idem_err err = idem_engine_create(&options, &instance->engine, &error);
    IDEM_ASSERT(err == IDEM_OK);
    err = idem_recovery_create(instance->engine, clock, &instance->recovery);
    IDEM_ASSERT(err == IDEM_OK);
    const struct idem_reaper_options reaper = {
        .engine = instance->engine,
        .clock = clock,
        .horizon_us = instance->store->base.horizon_us,
    };
    err = idem_reaper_create(&reaper, &instance->reaper);
    IDEM_ASSERT(err == IDEM_OK);
    const struct idem_restore_options restore = {
        .engine = instance->engine,
        .port = sim_port_base(instance->port),
        .store = &instance->store->base,
        .rules = &world->rules,
        .clock = clock,
    };
    err = idem_restore_create(&restore, &instance->restore);
    IDEM_ASSERT(err == IDEM_OK);
}

static void outbox_start(struct sim_instance *instance)
{
    struct sim_world *world = instance->world;
    bool any = false;
    for (size_t i = 0; i < SIM_PRINCIPALS; i++) {
        any = any || world->merchants.all[i].wants;
    }
    if (!any) {
        return;
    }
    instance->post_port = sim_post_open(instance);
    const struct idem_outbox_options options = {
        .engine = instance->engine,
        .port = sim_post_base(instance->post_port),
        .clock = &instance->clock.base,
        .random = &instance->random.base,
        .posts_max = 4,
        .keep_us = 30 * IDEM_US_PER_DAY,
    };
    enum idem_err err = idem_outbox_create(&options, &instance->outbox);
    IDEM_ASSERT(err == IDEM_OK);
}

static struct sim_instance **free_place(struct sim_world *world)
{
    for (size_t i = 0; i < SIM_INSTANCES_MAX; i++) {
        if (world->instances[i] == NULL) {
            return &world->instances[i];
        }
    }
    return NULL;
}

struct sim_instance *sim_instance_start(struct sim_world *world)
{
    struct sim_instance **place = free_place(world);
    if (place == NULL) {
        return NULL;
    }
    struct sim_instance *instance = sim_world_take(world, sizeof(*instance));
    instance->world = world;
    instance->no = (int)(place - world->instances);
    sim_random_init(&instance->random, &world->dice);
    clock_start(&instance->clock, world);
    instance->store = sim_store_open(&world->disk, instance, &instance->clock.base);
    instance->port = sim_port_open(&world->provider, instance);
    engine_start(instance);
    outbox_start(instance);
    instance->step_us = world->now_us;
    *place = instance;
    sim_operators_look_soon(&world->callers);
    int64_t error_us = idem_clock_wall_us(&instance->clock.base) - world->now_us;
    sim_trace(world, "i%d starts, incarnation %lld, clock off by %lld ms", instance->no,
              (long long)instance->store->base.incarnation, (long long)(error_us / 1000));
    return instance;
}

void sim_instance_wake(struct sim_instance *instance)
{
    instance->step_us = instance->world->now_us;
}

int64_t sim_instance_next_us(const struct sim_instance *instance)
{
    if (instance->dead) {
        return INT64_MAX;
    }
    return instance->step_us > instance->paused_us ? instance->step_us : instance->paused_us;
}

bool sim_instance_serves(const struct sim_instance *instance)
{
    return !instance->dead && !instance->stopping;
}

static void step_parts(struct sim_instance *instance)
{
    idem_engine_step(instance->engine);
    idem_recovery_step(instance->recovery);
    idem_reaper_step(instance->reaper);
    idem_restore_step(instance->restore);
    if (instance->outbox != NULL) {
        idem_outbox_step(instance->outbox);
    }
    idem_engine_step(instance->engine);
}

static int64_t earlier(int64_t left_us, int64_t right_us)
{
    return left_us < right_us ? left_us : right_us;
}

/* When it must be stepped next, in true time. Being woken late is a pause, and no more. */
static int64_t next_step_us(struct sim_instance *instance)
{
    struct sim_world *world = instance->world;
    int64_t mono_us = idem_clock_mono_us(&instance->clock.base);
    int64_t wake_us = mono_us + 10 * SIM_SECOND;
    wake_us = earlier(wake_us, idem_engine_wake_us(instance->engine));
    wake_us = earlier(wake_us, idem_recovery_wake_us(instance->recovery));
    wake_us = earlier(wake_us, idem_reaper_wake_us(instance->reaper));
    wake_us = earlier(wake_us, idem_restore_wake_us(instance->restore));
    if (instance->outbox != NULL) {
        wake_us = earlier(wake_us, idem_outbox_wake_us(instance->outbox));
    }
    int64_t wait_us = wake_us > mono_us ? wake_us - mono_us : 0;
    if (wait_us > IDLE_US && sim_dice_chance(&world->dice, 700)) {
        wait_us += sim_dice_between(&world->dice, 0, IDLE_MORE_US);
    }
    if (sim_fault(&world->faults, SIM_FAULT_STEP_LATE)) {
        wait_us += sim_dice_delay_us(&world->dice, 2 * world->rules.lease_us);
    }
    return world->now_us + wait_us + 100;
}

static void take_replies(struct sim_instance *instance, bool heard)
{
    struct idem_list done = { .count = 0 };
    struct idem_list_node *node = NULL;
    idem_engine_reap(instance->engine, &done);
    while ((node = idem_list_pop(&done)) != NULL) {
        struct idem_request *request = IDEM_CONTAINER_OF(node, struct idem_request, node);
        sim_caller_replied(instance->world, request, heard);
    }
    while ((node = idem_list_pop(&instance->done_tasks)) != NULL) {
        sim_operator_replied(instance->world, IDEM_CONTAINER_OF(node, struct idem_task, item.node),
                             heard);
    }
    while ((node = idem_list_pop(&instance->done_notices)) != NULL) {
        sim_notice_replied(instance->world, IDEM_CONTAINER_OF(node, struct idem_task, item.node),
                           heard);
    }
    while ((node = idem_list_pop(&instance->done_changes)) != NULL) {
        sim_merchant_replied(instance->world, IDEM_CONTAINER_OF(node, struct idem_task, item.node),
                             heard);
    }
}

static void parts_stop(struct sim_instance *instance)
{
    idem_recovery_stop(instance->recovery);
    idem_reaper_stop(instance->reaper);
    idem_restore_stop(instance->restore);
    if (instance->outbox != NULL) {
        idem_outbox_stop(instance->outbox);
    }
    idem_engine_drain(instance->engine);
}

static bool is_idle(const struct sim_instance *instance)
{
    bool is_mute = instance->outbox == NULL || idem_outbox_idle(instance->outbox);
    return is_mute && idem_engine_idle(instance->engine) && idem_restore_idle(instance->restore);
}

static void parts_destroy(struct sim_instance *instance)
{
    idem_outbox_destroy(instance->outbox);
    idem_restore_destroy(instance->restore);
    idem_reaper_destroy(instance->reaper);
    idem_recovery_destroy(instance->recovery);
    idem_engine_destroy(instance->engine);
    instance->world->instances[instance->no] = NULL;
    instance->dead = true;
}

void sim_instance_crash(struct sim_instance *instance)
{
    IDEM_ASSERT(!instance->dead);
    sim_trace(instance->world, "i%d dies", instance->no);
    sim_store_die(instance->store);
    sim_port_die(instance->port);
    if (instance->post_port != NULL) {
        sim_post_die(instance->post_port);
    }
    parts_stop(instance);
    step_parts(instance);
    idem_engine_hurry(instance->engine);
    int steps = 0;
    while (!is_idle(instance) || steps < 2) { /* A worker takes what came back to it. */
        instance->clock.after_us += SIM_SECOND;
        step_parts(instance);
        take_replies(instance, false);
        steps += 1;
        IDEM_ASSERT(steps < STEPS_DEAD_MAX);
    }
    parts_destroy(instance);
}

static void start_again(void *what)
{
    struct sim_world *world = what;
    size_t serving = 0;
    for (size_t i = 0; i < SIM_INSTANCES_MAX; i++) {
        const struct sim_instance *instance = world->instances[i];
        serving += instance != NULL && !instance->doomed && !instance->stopping ? 1 : 0;
    }
    if (serving < (world->twins ? 2 : 1)) {
        (void)sim_instance_start(world); /* Or no place is free, and a later one does it. */
    }
}

static void restart_later(struct sim_world *world)
{
    int64_t longest_us = sim_dice_chance(&world->dice, 800) ? 5 * SIM_SECOND : 120 * SIM_SECOND;
    sim_world_later(world, sim_dice_delay_us(&world->dice, longest_us), start_again, world);
}

static void stop_step(struct sim_instance *instance)
{
    if (!is_idle(instance)) {
        return;
    }
    sim_trace(instance->world, "i%d has stopped", instance->no);
    struct sim_world *world = instance->world;
    idem_store_stop(&instance->store->base);
    sim_port_die(instance->port);
    parts_destroy(instance);
    restart_later(world);
}

void sim_instance_step(struct sim_instance *instance)
{
    struct sim_world *world = instance->world;
    instance->step_us = INT64_MAX;
    step_parts(instance);
    take_replies(instance, true);
    if (instance->store->base.broken) {
        sim_instance_crash(instance); /* Exit 5: the next process begins anew. */
        restart_later(world);
        return;
    }
    instance->step_us = earlier(instance->step_us, next_step_us(instance));
    if (instance->stopping) {
        stop_step(instance);
    }
}

void sim_instance_pause(struct sim_instance *instance)
{
    struct sim_world *world = instance->world;
    int64_t pause_us = sim_dice_delay_us(&world->dice, 20 * world->rules.lease_us);
    instance->paused_us = world->now_us + pause_us;
    sim_trace(world, "i%d stands still for %lld ms", instance->no, (long long)(pause_us / 1000));
}

/* ---- chaos ---- */

static struct sim_instance *any_instance(struct sim_world *world)
{
    size_t place = (size_t)sim_dice_below(&world->dice, SIM_INSTANCES_MAX);
    struct sim_instance *instance = world->instances[place];
    return instance != NULL && !instance->dead ? instance : NULL;
}

static void crash_doomed(void *what)
{
    struct sim_instance *instance = what;
    if (!instance->dead) {
        sim_instance_crash(instance);
    }
}

/* Another process opens the store while this one stands still, and believes it is alone. */
static void overtake(struct sim_instance *instance)
{
    struct sim_world *world = instance->world;
    instance->doomed = true;
    sim_instance_pause(instance);
    (void)sim_instance_start(world); /* Or no place is free. */
    int64_t left_us = sim_dice_between(&world->dice, 0, 10 * world->rules.lease_us);
    sim_world_later(world, left_us, crash_doomed, instance);
}

static bool may_be_overtaken(const struct sim_instance *instance)
{
    return !instance->world->twins && !instance->doomed && free_place(instance->world) != NULL;
}

void sim_instance_overtake(struct sim_instance *instance)
{
    if (may_be_overtaken(instance) && sim_instance_serves(instance)) {
        overtake(instance);
    }
}

static void stop(struct sim_instance *instance)
{
    if (!instance->stopping) {
        sim_trace(instance->world, "i%d is stopped", instance->no);
        instance->stopping = true;
        parts_stop(instance);
        if (sim_dice_chance(&instance->world->dice, 500)) {
            idem_engine_hurry(instance->engine);
        }
        sim_instance_wake(instance);
    }
}

static void disturb(struct sim_world *world, struct sim_instance *instance)
{
    struct sim_faults *faults = &world->faults;
    if (sim_fault(faults, SIM_FAULT_CRASH)) {
        bool was_doomed = instance->doomed;
        sim_instance_crash(instance);
        if (!was_doomed) {
            restart_later(world);
        }
        return;
    }
    if (may_be_overtaken(instance) && sim_fault(faults, SIM_FAULT_ZOMBIE)) {
        overtake(instance);
        return;
    }
    if (sim_fault(faults, SIM_FAULT_PAUSE)) {
        sim_instance_pause(instance);
        return;
    }
    if (!instance->doomed && sim_fault(faults, SIM_FAULT_STOP)) {
        stop(instance);
        return;
    }
    idem_engine_set_reserve_low(instance->engine, sim_fault(faults, SIM_FAULT_RESERVE_LOW));
}

static void chaos(void *what)
{
    struct sim_world *world = what;
    if (world->faults.healed) {
        return;
    }
    struct sim_instance *instance = any_instance(world);
    if (instance != NULL) {
        disturb(world, instance);
    }
    sim_world_later(world, sim_dice_delay_us(&world->dice, CHAOS_EVERY_US), chaos, world);
}

void sim_chaos_begin(struct sim_world *world)
{
    size_t count = world->twins ? 2 + (size_t)sim_dice_below(&world->dice, 2) : 1;
    for (size_t i = 0; i < count; i++) {
        (void)sim_instance_start(world);
    }
    chaos(world);
}

void sim_chaos_end(struct sim_world *world)
{
    for (size_t i = 0; i < SIM_INSTANCES_MAX; i++) {
        struct sim_instance *instance = world->instances[i];
        if (instance != NULL && instance->doomed) {
            sim_instance_crash(instance);
        } else if (instance != NULL) {
            instance->paused_us = 0;
            idem_engine_set_reserve_low(instance->engine, false);
            sim_instance_wake(instance);
        }
    }
    start_again(world);
}
