/*
 * A run: the swarm is drawn, the world is made, things go wrong for so many steps, then nothing
 * does any more and time passes, everybody asks once more, and the auditor closes its books.
 *
 * A step is one event or one step of one process. The next is whatever comes first in true time.
 */
#include "sim/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

#define START_US         (INT64_C(1893456000) * SIM_SECOND) /* 2030-01-01. */
#define HEAL_US          (600 * SIM_SECOND) /* Within it every intent ends, or is parked. */
#define LAST_REPLIES_US  (40 * SIM_SECOND)
#define STEPS_HEALED_MAX 1000000
#define BLOCK_SIZE       (size_t)65536

struct sim_block {
    struct sim_block *next;
    size_t used;
    size_t max;
    _Alignas(16) char memory[];
};

static void block_add(struct sim_world *world, size_t size)
{
    size_t max = size > BLOCK_SIZE ? size : BLOCK_SIZE;
    struct sim_block *block = calloc(1, sizeof(*block) + max);
    IDEM_ASSERT(block != NULL);
    block->max = max;
    block->next = world->blocks;
    world->blocks = block;
}

void *sim_world_take(struct sim_world *world, size_t size)
{
    size_t rounded = (size + 15) / 16 * 16;
    if (world->blocks == NULL || world->blocks->max - world->blocks->used < rounded) {
        block_add(world, rounded);
    }
    void *taken = world->blocks->memory + world->blocks->used;
    world->blocks->used += rounded;
    return taken;
}

void sim_world_later(struct sim_world *world,
                     int64_t delay_us,
                     void (*happen)(void *what),
                     void *what)
{
    IDEM_ASSERT(delay_us >= 0);
    sim_schedule_add(&world->schedule, world->now_us + delay_us, happen, what);
}

void sim_trace(struct sim_world *world, const char *format, ...)
{
    if (!world->order.trace && !world->order.digest) {
        return;
    }
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments); /* Cut where it is too long. */
    va_end(arguments);
    int64_t passed_us = world->now_us - world->start_us;
    for (const char *at = text; *at != '\0'; at++) {
        world->digest = (world->digest ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
    }
    world->digest = (world->digest ^ (uint64_t)passed_us) * UINT64_C(0x100000001b3);
    if (world->order.trace) {
        printf("%6" PRIu64 " %5" PRId64 ".%06" PRId64 " %s\n", world->steps, passed_us / SIM_SECOND,
               passed_us % SIM_SECOND, text);
    }
}

static void rules_make(struct sim_world *world)
{
    world->rules = idem_rules_default();
    world->rules.providers = world->entries;
    world->rules.provider_count = SIM_ENTRIES;
    world->rules.lease_us = 10 * SIM_SECOND;
    world->rules.answer_retention_us = 900 * SIM_SECOND;
    world->rules.retry_window_us = 300 * SIM_SECOND;
    world->rules.release_us = 60 * SIM_SECOND;
    world->rules.ask_first_us = 1 * SIM_SECOND;
    world->rules.ask_max_us = 30 * SIM_SECOND;
    world->rules.ask_give_up_us = 300 * SIM_SECOND;
    world->rules.parked_ask_us = 120 * SIM_SECOND;
}

static void world_begin(struct sim_world *world)
{
    sim_dice_init(&world->dice, world->order.seed);
    sim_faults_draw(&world->faults, &world->dice, world->order.seed);
    world->twins = sim_dice_chance(&world->dice, 400);
    sim_provider_init(&world->provider, world);
    world->clocks_ok = sim_dice_chance(&world->dice, 700);
    world->theme = sim_theme_draw(world->order.seed);
    sim_theme_apply(world);
    sim_provider_rules(&world->provider);
    rules_make(world);
    sim_disk_init(&world->disk, world);
    sim_callers_init(&world->callers, world);
    sim_notices_init(&world->notices, world);
    sim_merchants_init(&world->merchants, world);
    sim_audit_init(&world->auditor, world);
    sim_trace(world, "seed %" PRIu64 ", theme %s, %s, providers %s and %s, clocks %s",
              world->order.seed, sim_theme_name(world->theme),
              world->twins ? "twins" : "one at a time",
              sim_profile_name(world->provider.profiles[0]),
              sim_profile_name(world->provider.profiles[1]), world->clocks_ok ? "near" : "far off");
}

static struct sim_instance *next_instance(struct sim_world *world)
{
    struct sim_instance *next = NULL;
    for (size_t i = 0; i < SIM_INSTANCES_MAX; i++) {
        struct sim_instance *instance = world->instances[i];
        bool is_first = instance != NULL && (next == NULL || sim_instance_next_us(instance) <
                                                                 sim_instance_next_us(next));
        next = is_first ? instance : next;
    }
    return next;
}

static void step(struct sim_world *world)
{
    struct sim_instance *instance = next_instance(world);
    int64_t instance_us = instance != NULL ? sim_instance_next_us(instance) : INT64_MAX;
    int64_t event_us = sim_schedule_next_us(&world->schedule);
    int64_t at_us = instance_us < event_us ? instance_us : event_us;
    IDEM_ASSERT(at_us != INT64_MAX);
    world->now_us = at_us > world->now_us ? at_us : world->now_us;
    world->steps += 1;
    if (world->order.ret_step != NULL) {
        *world->order.ret_step = world->steps;
    }
    if (instance_us < event_us) {
        sim_instance_step(instance);
        return;
    }
    struct sim_event event = sim_schedule_take(&world->schedule);
    event.happen(event.what);
}

static void nothing(void *what)
{
    (void)what; /* A moment that time has to pass. */
}

static void pass(struct sim_world *world, int64_t us)
{
    int64_t end_us = world->now_us + us;
    uint64_t last = world->steps + STEPS_HEALED_MAX;
    sim_world_later(world, us, nothing, NULL);
    while (world->now_us < end_us) {
        step(world);
        IDEM_ASSERT(world->steps < last);
    }
}

static void heal(struct sim_world *world)
{
    sim_trace(world, "all is healed");
    world->faults.healed = true;
    sim_chaos_end(world);
    pass(world, HEAL_US);
    sim_callers_ask_again(&world->callers);
    pass(world, LAST_REPLIES_US);
    sim_audit_end(&world->auditor);
}

static void world_end(struct sim_world *world)
{
    for (size_t i = 0; i < SIM_INSTANCES_MAX; i++) {
        if (world->instances[i] != NULL) {
            sim_instance_crash(world->instances[i]);
        }
    }
    sim_schedule_deinit(&world->schedule);
    sim_disk_deinit(&world->disk);
    while (world->blocks != NULL) {
        struct sim_block *next = world->blocks->next;
        free(world->blocks);
        world->blocks = next;
    }
}

static struct sim_result result_of(const struct sim_world *world)
{
    struct sim_result result = {
        .steps = world->steps,
        .passed_us = world->now_us - world->start_us,
        .digest = world->digest,
        .violations = world->auditor.violations,
        .first_step = world->auditor.first_step,
        .executions = world->auditor.executions,
        .replies = world->auditor.replies,
    };
    memcpy(result.first, world->auditor.first, sizeof(result.first));
    memcpy(result.fired, world->faults.fired, sizeof(result.fired));
    return result;
}

struct sim_result sim_run(const struct sim_order *order, struct idem_digester *digester)
{
    struct sim_world *world = calloc(1, sizeof(*world));
    IDEM_ASSERT(world != NULL);
    world->order = *order;
    world->digester = digester;
    world->start_us = START_US;
    world->now_us = START_US;
    world->digest = UINT64_C(0xcbf29ce484222325);
    world_begin(world);
    sim_chaos_begin(world);
    sim_merchants_begin(&world->merchants);
    sim_notices_begin(&world->notices);
    sim_callers_begin(&world->callers);
    while (world->steps < order->steps && world->auditor.violations == 0) {
        step(world);
    }
    if (world->auditor.violations == 0) {
        heal(world);
    }
    struct sim_result result = result_of(world);
    world_end(world);
    free(world);
    return result;
}
