/*
 * One call:
 *
 *     submit -> waits -> last look at the clock -> leaves -> arrives -> answered -> reaped
 *                              |                     |  \         \
 *                              not after: NOT SENT   |   twice     lost, late
 *                                                    lost, late
 *
 * The process gives up after the request timeout, or when the connection breaks, and takes UNKNOWN;
 * a call that had not left by then is known not to have been executed. A process that stands still
 * cannot look at its clock: its call leaves when it goes on, if it still may. Requests are late by
 * less than the provider's rules allow for, except where the provider makes any lateness harmless.
 */
#include "sim/wire.h"

#include <string.h>

#include "base/bug.h"
#include "provider/bridge.h"
#include "sim/world.h"

struct sim_port {
    struct idem_port base; /* First. */
    struct sim_provider *provider;
    struct sim_instance *instance;
    size_t room;
    bool dead;
    struct sim_call *calls;
    struct idem_list done;
};

/* A request, of which the process may know no more. */
struct sim_call {
    struct sim_call *next;
    struct sim_port *port;
    struct idem_call *call; /* NULL: its process has its end. */
    enum idem_call_kind kind;
    struct sim_effect *effect;
    int64_t handed_us; /* True time when it was handed over. */
    bool left;
    bool was_answered; /* The first arrival's answer is the answer. */
    struct sim_answer answer;
};

static struct sim_port *port_of(struct idem_port *base)
{
    return IDEM_CONTAINER_OF(base, struct sim_port, base);
}

static void evidence_keep(struct idem_call *call,
                          const struct idem_evidence *read,
                          struct idem_str account)
{
    struct idem_buf kept;
    idem_buf_init(&kept, call->memory, sizeof(call->memory));
    call->evidence = (struct idem_evidence){
        .source = idem_call_source(call->kind),
        .outcome = read->outcome,
        .entry = idem_buf_keep(&kept, call->effect.entry),
        .account = idem_buf_keep(&kept, account),
        .region = idem_buf_keep(&kept, call->effect.region),
        .effect_id = idem_buf_keep(&kept, read->effect_id),
        .amount_minor = read->amount_minor,
        .currency = idem_buf_keep(&kept, read->currency),
        .reference = idem_buf_keep(&kept, read->reference),
        .code = idem_buf_keep(&kept, read->code),
        .message = idem_buf_keep(&kept, read->message),
        .retry_after_us = read->retry_after_us,
    };
    IDEM_ASSERT(!kept.full);
}

/* It says that this very effect is done, and the ledger has it. */
static bool is_done(const struct sim_call *own, const struct idem_evidence *read)
{
    return read->outcome == IDEM_OUTCOME_SUCCESS && own->effect->executions > 0 &&
           idem_str_equal(read->effect_id, own->call->effect.id) &&
           read->amount_minor == own->effect->amount_minor &&
           idem_str_equal(read->currency, IDEM_STR("CNY")) && !own->answer.other_account;
}

static void call_end(struct sim_call *own,
                     const struct idem_evidence *read,
                     struct idem_str account)
{
    struct idem_call *call = own->call;
    struct sim_instance *instance = own->port->instance;
    sim_audit_call_ended(&instance->world->auditor, instance, call, is_done(own, read));
    sim_trace(own->port->instance->world, "i%d %.27s %s: %s", own->port->instance->no,
              own->effect->id, idem_evidence_source_name(idem_call_source(own->kind)),
              idem_outcome_kind_name(read->outcome));
    evidence_keep(call, read, account);
    call->carrier = NULL;
    own->call = NULL;
    own->port->room += 1;
    idem_list_push(&own->port->done, &call->node);
    sim_instance_wake(own->port->instance);
}

/* No answer: of a send that has not left it is known that it never ran. */
static void call_give_up(struct sim_call *own)
{
    bool is_unsent = own->kind == IDEM_CALL_SEND && !own->left;
    own->effect->on_the_wire -= is_unsent ? 1 : 0;
    const struct idem_evidence read = {
        .outcome = is_unsent ? IDEM_OUTCOME_NOT_EXECUTED : IDEM_OUTCOME_UNKNOWN,
        .amount_minor = -1,
        .code = is_unsent ? IDEM_STR("not_sent") : IDEM_STR(""),
    };
    call_end(own, &read, own->call->effect.account);
}

static void call_answered(void *what)
{
    struct sim_call *own = what;
    char memory[1024];
    struct idem_buf kept;
    struct idem_evidence read;
    if (own->call == NULL) {
        return;
    }
    const struct idem_wire_answer answer = {
        .status = own->answer.status,
        .content_type = IDEM_STR("application/json"),
        .body = { .data = own->answer.text, .len = own->answer.len },
        .retry_after_us = own->answer.retry_after_us,
    };
    idem_buf_init(&kept, memory, sizeof(memory));
    idem_bridge_adapter.decode(own->kind, &own->call->effect, &answer, &kept, &read);
    call_end(own, &read,
             own->answer.other_account ? IDEM_STR("another") : own->call->effect.account);
}

static void call_arrived(void *what)
{
    struct sim_call *own = what;
    struct sim_world *world = own->port->provider->world;
    struct sim_answer answer;
    own->effect->on_the_wire -= own->kind == IDEM_CALL_SEND ? 1 : 0;
    if (own->was_answered && own->answer.status != 200) {
        return; /* "Not executed" was said of this send, and the provider keeps its word. */
    }
    sim_provider_arrive(own->port->provider, own->kind, own->effect, &answer);
    sim_trace(world, "  arrives %.27s %s: %u %.*s", own->effect->id,
              idem_evidence_source_name(idem_call_source(own->kind)), (unsigned)answer.status,
              (int)answer.len, answer.text);
    if (own->was_answered) {
        return;
    }
    own->was_answered = true;
    own->answer = answer;
    if (sim_fault(&world->faults, SIM_FAULT_ANSWER_LOST)) {
        return;
    }
    bool is_late = sim_fault(&world->faults, SIM_FAULT_ANSWER_LATE);
    int64_t delay_us = sim_dice_delay_us(&world->dice, is_late ? 6 * SIM_SECOND : 50000);
    sim_world_later(world, delay_us, call_answered, own);
}

static bool any_lateness_is_harmless(const struct sim_call *own)
{
    enum sim_profile profile = own->port->provider->profiles[own->effect->entry];
    return profile != SIM_PROFILE_WINDOW && profile != SIM_PROFILE_PLAIN;
}

static void put_on_the_wire(struct sim_call *own)
{
    struct sim_world *world = own->port->provider->world;
    struct sim_faults *faults = &world->faults;
    const struct idem_provider_rules *rules = &world->entries[own->effect->entry];
    bool is_send = own->kind == IDEM_CALL_SEND;
    int64_t longest_us = 50 * IDEM_US_PER_MS;
    if (sim_fault(faults, SIM_FAULT_WIRE_LOST)) {
        own->effect->on_the_wire -= is_send ? 1 : 0;
        return;
    }
    if (sim_fault(faults, SIM_FAULT_WIRE_LATE)) {
        longest_us = rules->request_timeout_us + rules->settle_us - 5 * SIM_SECOND;
    }
    if (any_lateness_is_harmless(own) && sim_fault(faults, SIM_FAULT_WIRE_VERY_LATE)) {
        longest_us = 900 * SIM_SECOND;
    }
    sim_world_later(world, sim_dice_delay_us(&world->dice, longest_us), call_arrived, own);
    bool deduplicates = rules->capability[own->effect->kind].dedup_window_us > 0;
    if (is_send && deduplicates && sim_fault(faults, SIM_FAULT_WIRE_TWICE)) {
        own->effect->on_the_wire += 1;
        sim_world_later(world, sim_dice_delay_us(&world->dice, longest_us), call_arrived, own);
    }
}

static void call_timed_out(void *what)
{
    struct sim_call *own = what;
    struct sim_instance *instance = own->port->instance;
    int64_t still_us = instance->paused_us - instance->world->now_us;
    if (own->call != NULL && still_us > 0) {
        sim_world_later(instance->world, still_us + 1, call_timed_out, own);
    } else if (own->call != NULL) {
        call_give_up(own);
    }
}

/* The transport's last hook: the clock is read, and then the first byte leaves. */
static void call_leaves(void *what)
{
    struct sim_call *own = what;
    struct sim_instance *instance = own->port->instance;
    if (own->call == NULL || own->port->dead) {
        return;
    }
    if (instance->paused_us > instance->world->now_us) {
        sim_world_later(instance->world, instance->paused_us - instance->world->now_us, call_leaves,
                        own);
        return;
    }
    if (own->kind != IDEM_CALL_QUERY &&
        idem_clock_mono_us(&instance->clock.base) > own->call->not_after_us) {
        call_give_up(own);
        return;
    }
    own->left = true;
    if (own->kind == IDEM_CALL_SEND) {
        sim_audit_left(&instance->world->auditor, own->effect, own->handed_us);
        sim_trace(instance->world, "i%d %.27s leaves", instance->no, own->effect->id);
    }
    put_on_the_wire(own);
    if (sim_fault(&instance->world->faults, SIM_FAULT_WIRE_BROKEN)) {
        int64_t soon_us = sim_dice_delay_us(&instance->world->dice, 10 * IDEM_US_PER_MS);
        sim_world_later(instance->world, soon_us, call_timed_out, own);
    }
}

static void overtake(void *what)
{
    sim_instance_overtake(what);
}

static enum idem_err port_submit(struct idem_port *base, struct idem_call *call)
{
    struct sim_port *port = port_of(base);
    struct sim_world *world = port->provider->world;
    sim_audit_call(&world->auditor, port->instance, call);
    if (port->dead || port->room == 0 || sim_fault(&world->faults, SIM_FAULT_PORT_FULL)) {
        sim_audit_call_ended(&world->auditor, port->instance, call, false);
        return IDEM_E_LIMIT;
    }
    struct sim_call *own = sim_world_take(world, sizeof(*own));
    own->port = port;
    own->call = call;
    own->kind = call->kind;
    own->effect = sim_provider_meet(port->provider, &call->effect);
    own->next = port->calls;
    port->calls = own;
    port->room -= 1;
    call->carrier = own;
    own->effect->on_the_wire += own->kind == IDEM_CALL_SEND ? 1 : 0;
    bool is_late = sim_fault(&world->faults, SIM_FAULT_SEND_LATE);
    int64_t wait_us = sim_dice_delay_us(&world->dice, is_late ? 6 * SIM_SECOND : 1000);
    own->handed_us = world->now_us;
    if (sim_fault(&world->faults, SIM_FAULT_SEND_PAUSED)) {
        sim_instance_pause(port->instance);
    }
    if (call->kind == IDEM_CALL_SEND && sim_fault(&world->faults, SIM_FAULT_SEND_OVERTAKEN)) {
        sim_world_later(world, 0, overtake, port->instance);
    }
    int64_t timeout_us = world->entries[own->effect->entry].request_timeout_us;
    sim_world_later(world, wait_us, call_leaves, own);
    sim_world_later(world, timeout_us, call_timed_out, own);
    return IDEM_OK;
}

static void port_reap(struct idem_port *base, struct idem_list *ret_done)
{
    idem_list_join(ret_done, &port_of(base)->done);
}

static void port_cancel(struct idem_port *base, struct idem_call *call)
{
    struct sim_call *own = call->carrier;
    (void)base; /* The call knows. */
    if (own != NULL) {
        call_give_up(own);
    }
}

static void port_destroy(struct idem_port *base)
{
    (void)base; /* The run's memory. */
}

static const struct idem_port_ops port_ops = {
    .submit = port_submit,
    .reap = port_reap,
    .cancel = port_cancel,
    .destroy = port_destroy,
};

struct sim_port *sim_port_open(struct sim_provider *provider, struct sim_instance *instance)
{
    struct sim_world *world = provider->world;
    struct sim_port *port = sim_world_take(world, sizeof(*port));
    port->base.ops = &port_ops;
    port->provider = provider;
    port->instance = instance;
    port->room = (size_t)sim_dice_between(&world->dice, 1, 8);
    return port;
}

struct idem_port *sim_port_base(struct sim_port *port)
{
    return &port->base;
}

void sim_port_die(struct sim_port *port)
{
    port->dead = true;
    for (struct sim_call *own = port->calls; own != NULL; own = own->next) {
        if (own->call != NULL) {
            call_give_up(own);
        }
    }
}
