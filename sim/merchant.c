/*
 * A post: submitted, lost or arrives, answered or not, reaped. Whoever waits gives up after the
 * port's timeout. A receiver that says 410 disables its webhook; the operator enables it again.
 */
#include "sim/merchant.h"

#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "sim/world.h"

#define LOOK_EVERY_US (60 * SIM_SECOND)

struct sim_post_port {
    struct idem_post_port base; /* First. */
    struct sim_instance *instance;
    bool dead;
    struct post *posts;
    struct idem_list done;
};

/* One call, of which the process may know no more. */
struct post {
    struct post *next;
    struct sim_post_port *port;
    struct idem_post_call *call; /* NULL: its process has its end. */
    struct sim_merchant *merchant;
    struct idem_uid message_id;
    uint16_t status;
    int64_t retry_after_us;
};

/* A command about a webhook. */
struct change {
    struct idem_task task; /* First. */
    struct sim_merchant *merchant;
};

static struct sim_dice *dice_of(struct sim_world *world)
{
    return &world->faults.mail_dice;
}

void sim_merchants_init(struct sim_merchants *merchants, struct sim_world *world)
{
    static const struct idem_str principals[SIM_PRINCIPALS] = { { "shop", 4 }, { "mall", 4 } };
    bool any = world->theme == SIM_THEME_NONE && sim_dice_chance(dice_of(world), 400);
    for (size_t i = 0; i < SIM_PRINCIPALS; i++) {
        merchants->all[i] = (struct sim_merchant){
            .world = world,
            .principal = principals[i],
            .webhook_id = { .bytes = { 0x77, (uint8_t)(i + 1) } },
            .wants = any && sim_dice_chance(dice_of(world), 700),
            .was_told = true,
        };
    }
}

struct sim_merchant *sim_merchant_of(struct sim_merchants *merchants, struct idem_str principal)
{
    for (size_t i = 0; i < SIM_PRINCIPALS; i++) {
        if (idem_str_equal(merchants->all[i].principal, principal)) {
            return &merchants->all[i];
        }
    }
    return NULL;
}

uint64_t sim_merchant_heard(const struct sim_merchant *merchant, struct idem_uid message_id)
{
    const struct sim_arrival *arrival = merchant->arrivals;
    while (arrival != NULL && !idem_uid_equal(arrival->message_id, message_id)) {
        arrival = arrival->next;
    }
    return arrival != NULL ? arrival->times : 0;
}

/* ---- webhooks ---- */

static const struct idem_webhook *webhook_of(const struct sim_merchant *merchant)
{
    return sim_disk_webhook(&merchant->world->disk, merchant->webhook_id);
}

static struct sim_instance *some_instance(struct sim_world *world)
{
    for (size_t i = 0; i < SIM_INSTANCES_MAX; i++) {
        struct sim_instance *instance = world->instances[i];
        if (instance != NULL && sim_instance_serves(instance)) {
            return instance;
        }
    }
    return NULL;
}

static void change_run(struct sim_merchant *merchant, enum idem_webhook_action action)
{
    struct sim_world *world = merchant->world;
    struct sim_instance *instance = some_instance(world);
    if (instance == NULL || merchant->asks) {
        return;
    }
    struct change *own = sim_world_take(world, sizeof(*own));
    own->merchant = merchant;
    own->task.done = &instance->done_changes;
    own->task.item.command = (struct idem_command){
        .kind = IDEM_COMMAND_WEBHOOK,
        .webhook = {
            .action = action,
            .row = {
                .id = merchant->webhook_id,
                .principal = merchant->principal,
                .url = IDEM_STR("https://merchant.example/told"),
                .types = UINT64_MAX,
            },
            .by = IDEM_STR("operator"),
        },
    };
    merchant->asks = true;
    idem_engine_run(instance->engine, &own->task);
    sim_instance_wake(instance);
}

static void look_after(void *what)
{
    struct sim_merchant *merchant = what;
    struct sim_world *world = merchant->world;
    const struct idem_webhook *webhook = webhook_of(merchant);
    if (webhook == NULL) {
        change_run(merchant, IDEM_WEBHOOK_ADD);
    } else if (webhook->disabled_us != 0) {
        change_run(merchant, IDEM_WEBHOOK_ENABLE);
    }
    int64_t longest_us = webhook == NULL ? SIM_SECOND : LOOK_EVERY_US;
    sim_world_later(world, sim_dice_delay_us(dice_of(world), longest_us) + 1000, look_after,
                    merchant);
}

void sim_merchant_replied(struct sim_world *world, struct idem_task *task, bool heard)
{
    const struct change *own = (const struct change *)(const void *)task;
    own->merchant->asks = false;
    if (heard) {
        sim_trace(world, "  webhook of %.*s: %s", (int)own->merchant->principal.len,
                  own->merchant->principal.data, idem_store_answer_name(task->item.answer));
    }
}

void sim_merchants_begin(struct sim_merchants *merchants)
{
    for (size_t i = 0; i < SIM_PRINCIPALS; i++) {
        if (merchants->all[i].wants) {
            look_after(&merchants->all[i]);
        }
    }
}

/* ---- posts ---- */

static struct sim_post_port *port_of(struct idem_post_port *base)
{
    return IDEM_CONTAINER_OF(base, struct sim_post_port, base);
}

static void post_end(struct post *own, uint16_t status)
{
    struct idem_post_call *call = own->call;
    call->status = status;
    call->retry_after_us = status == 429 ? own->retry_after_us : 0;
    (void)snprintf(call->detail, sizeof(call->detail), "%s", status == 0 ? "no answer" : "");
    call->carrier = NULL;
    own->call = NULL;
    idem_list_push(&own->port->done, &call->node);
    sim_instance_wake(own->port->instance);
}

static void post_timed_out(void *what)
{
    struct post *own = what;
    if (own->call != NULL) {
        post_end(own, 0);
    }
}

static void post_answered(void *what)
{
    struct post *own = what;
    if (own->call != NULL) {
        post_end(own, own->status);
    }
}

static void note_arrival(struct sim_merchant *merchant, struct idem_uid message_id)
{
    struct sim_arrival *arrival = merchant->arrivals;
    while (arrival != NULL && !idem_uid_equal(arrival->message_id, message_id)) {
        arrival = arrival->next;
    }
    if (arrival == NULL) {
        arrival = sim_world_take(merchant->world, sizeof(*arrival));
        arrival->message_id = message_id;
        arrival->next = merchant->arrivals;
        merchant->arrivals = arrival;
    }
    arrival->times += 1;
}

/* 200, or what the receiver says instead of taking it. */
static uint16_t receiver_says(struct post *own)
{
    struct sim_faults *faults = &own->merchant->world->faults;
    if (sim_fault(faults, SIM_FAULT_POST_GONE)) {
        return 410;
    }
    if (sim_fault(faults, SIM_FAULT_POST_REFUSED)) {
        return 500;
    }
    if (sim_fault(faults, SIM_FAULT_POST_BUSY)) {
        own->retry_after_us = sim_dice_delay_us(&faults->mail_dice, 60 * SIM_SECOND);
        return 429;
    }
    return 200;
}

static void post_arrives(void *what)
{
    struct post *own = what;
    struct sim_world *world = own->merchant->world;
    own->status = receiver_says(own);
    if (own->status == 200) {
        note_arrival(own->merchant, own->message_id);
    }
    sim_trace(world, "  a message arrives: %u", (unsigned)own->status);
    if (sim_fault(&world->faults, SIM_FAULT_POST_ANSWER_LOST)) {
        return;
    }
    bool is_slow = sim_fault(&world->faults, SIM_FAULT_POST_SLOW);
    int64_t longest_us = is_slow ? 2 * IDEM_POST_TIMEOUT_US : 50 * IDEM_US_PER_MS;
    sim_world_later(world, sim_dice_delay_us(dice_of(world), longest_us), post_answered, own);
}

static enum idem_err port_submit(struct idem_post_port *base, struct idem_post_call *call)
{
    struct sim_post_port *port = port_of(base);
    struct sim_world *world = port->instance->world;
    if (idem_clock_mono_us(&port->instance->clock.base) > call->not_after_us) {
        return IDEM_E_LIMIT; /* Not one byte leaves so late. */
    }
    sim_audit_post(&world->auditor, call);
    if (port->dead || sim_fault(&world->faults, SIM_FAULT_POST_NO_ROOM)) {
        return IDEM_E_LIMIT;
    }
    struct post *own = sim_world_take(world, sizeof(*own));
    own->port = port;
    own->call = call;
    own->merchant = &world->merchants.all[call->webhook->id.bytes[1] - 1];
    own->message_id = call->message->id;
    own->next = port->posts;
    port->posts = own;
    call->carrier = own;
    if (!sim_fault(&world->faults, SIM_FAULT_POST_LOST)) {
        sim_world_later(world, sim_dice_delay_us(dice_of(world), SIM_SECOND), post_arrives, own);
    }
    sim_world_later(world, IDEM_POST_TIMEOUT_US, post_timed_out, own);
    return IDEM_OK;
}

static void port_reap(struct idem_post_port *base, struct idem_list *ret_done)
{
    idem_list_join(ret_done, &port_of(base)->done);
}

static void port_cancel(struct idem_post_port *base, struct idem_post_call *call)
{
    struct post *own = call->carrier;
    (void)base; /* The call knows. */
    if (own != NULL) {
        post_end(own, 0);
    }
}

static void port_destroy(struct idem_post_port *base)
{
    (void)base; /* The run's memory. */
}

static const struct idem_post_port_ops port_ops = {
    .submit = port_submit,
    .reap = port_reap,
    .cancel = port_cancel,
    .destroy = port_destroy,
};

struct sim_post_port *sim_post_open(struct sim_instance *instance)
{
    struct sim_post_port *port = sim_world_take(instance->world, sizeof(*port));
    port->base.ops = &port_ops;
    port->instance = instance;
    return port;
}

struct idem_post_port *sim_post_base(struct sim_post_port *port)
{
    return &port->base;
}

void sim_post_die(struct sim_post_port *port)
{
    port->dead = true;
    for (struct post *own = port->posts; own != NULL; own = own->next) {
        if (own->call != NULL) {
            post_end(own, 0);
        }
    }
}
