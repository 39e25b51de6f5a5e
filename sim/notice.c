/*
 * One event:
 *
 *     made -> delivered -> task -> "taken" -> over
 *               |  ^          \       \
 *               |  |           \       reply lost: again
 *               |  +------------+-- no process, refused, process died: again
 *               +-- twice at once
 *
 * What an event says wrongly, it says on purpose: beside a true one another id, amount or account,
 * of which nothing may settle; or the opposite of an end that the record already has, since a
 * provider that denies what it has done before anybody knows better is one that no promise covers.
 */
#include "sim/notice.h"

#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "sim/world.h"

#define AGAIN_US      (20 * SIM_SECOND)
#define LATE_US       (400 * SIM_SECOND)
#define LIST_EVERY_US (60 * SIM_SECOND)

/* One delivery of it. */
struct delivery {
    struct idem_task task; /* First. */
    struct sim_notice *notice;
    struct sim_instance *instance;
};

void sim_notices_init(struct sim_notices *notices, struct sim_world *world)
{
    struct sim_dice *dice = &world->faults.mail_dice;
    bool exist = world->theme == SIM_THEME_NONE && sim_dice_chance(dice, 600);
    *notices = (struct sim_notices){ .world = world, .exist = exist };
}

struct sim_notice *sim_notice_find(const struct sim_notices *notices, struct idem_str event_id)
{
    struct sim_notice *notice = notices->first;
    while (notice != NULL && !idem_str_equal(idem_str_from(notice->event_id), event_id)) {
        notice = notice->next;
    }
    return notice;
}

static void deliver(void *what);

static void deliver_later(struct sim_notice *notice, int64_t longest_us)
{
    struct sim_world *world = notice->world;
    sim_world_later(world, sim_dice_delay_us(&world->faults.mail_dice, longest_us), deliver,
                    notice);
}

static struct sim_instance *some_instance(struct sim_world *world)
{
    size_t from = (size_t)sim_dice_below(&world->faults.mail_dice, SIM_INSTANCES_MAX);
    for (size_t i = 0; i < SIM_INSTANCES_MAX; i++) {
        struct sim_instance *instance = world->instances[(from + i) % SIM_INSTANCES_MAX];
        if (instance != NULL && sim_instance_serves(instance)) {
            return instance;
        }
    }
    return NULL;
}

/* As the adapter reads it. */
static struct idem_evidence evidence_of(const struct sim_notice *notice)
{
    const struct sim_effect *effect = notice->effect;
    const struct idem_provider_rules *entry = &notice->world->entries[effect->entry];
    return (struct idem_evidence){
        .source = notice->is_line ? IDEM_SOURCE_LISTING : IDEM_SOURCE_CALLBACK,
        .outcome = notice->outcome,
        .entry = entry->entry,
        .account = notice->other_account ? IDEM_STR("another") : entry->account,
        .region = entry->region,
        .effect_id = { .data = notice->id, .len = sizeof(notice->id) },
        .amount_minor = notice->amount_minor,
        .currency = notice->amount_minor >= 0 ? IDEM_STR("CNY") : IDEM_STR(""),
        .order_no = { .data = effect->order_no, .len = effect->order_no_len },
        .event_id = idem_str_from(notice->event_id),
    };
}

static void hand_over(struct sim_notice *notice, struct sim_instance *instance)
{
    struct delivery *own = sim_world_take(notice->world, sizeof(*own));
    own->notice = notice;
    own->instance = instance;
    own->task.done = &instance->done_notices;
    own->task.item.command = (struct idem_command){
        .kind = IDEM_COMMAND_EVIDENCE,
        .evidence = evidence_of(notice),
    };
    bool is_ours = idem_effect_id_scope(own->task.item.command.evidence.effect_id,
                                        &own->task.item.command.scope);
    IDEM_ASSERT(is_ours);
    notice->deliveries += 1;
    sim_trace(notice->world, "i%d %s: %.27s %s", instance->no, notice->event_id, notice->id,
              idem_outcome_kind_name(notice->outcome));
    idem_engine_run(instance->engine, &own->task);
    sim_instance_wake(instance);
}

/* The record has an end already: the event says the opposite. */
static void contradict(struct sim_notice *notice)
{
    struct idem_scope scope;
    bool is_ours = idem_effect_id_scope(
        (struct idem_str){ .data = notice->id, .len = sizeof(notice->id) }, &scope);
    const struct idem_intent *intent =
        is_ours ? sim_disk_intent(&notice->world->disk, &scope) : NULL;
    if (intent == NULL || !idem_intent_is_final(intent->state) || notice->deliveries > 0 ||
        notice->outcome == IDEM_OUTCOME_REVERSED ||
        !sim_fault(&notice->world->faults, SIM_FAULT_EVENT_CONTRADICTS)) {
        return;
    }
    bool did = intent->state == IDEM_INTENT_SUCCEEDED;
    notice->is_true = false;
    notice->outcome = did ? IDEM_OUTCOME_REFUSED_FINAL : IDEM_OUTCOME_SUCCESS;
    notice->amount_minor = did ? -1 : notice->effect->amount_minor;
}

static void deliver(void *what)
{
    struct sim_notice *notice = what;
    struct sim_world *world = notice->world;
    struct sim_instance *instance = some_instance(world);
    if (instance == NULL || sim_fault(&world->faults, SIM_FAULT_EVENT_LOST)) {
        deliver_later(notice, AGAIN_US);
        return;
    }
    contradict(notice);
    hand_over(notice, instance);
    if (sim_fault(&world->faults, SIM_FAULT_EVENT_TWICE)) {
        deliver_later(notice, SIM_SECOND);
    }
}

static bool says_money(enum idem_outcome_kind outcome)
{
    return outcome == IDEM_OUTCOME_SUCCESS || outcome == IDEM_OUTCOME_REVERSED;
}

static struct sim_notice *notice_add(struct sim_notices *notices,
                                     const struct sim_effect *effect,
                                     enum idem_outcome_kind outcome)
{
    struct sim_notice *notice = sim_world_take(notices->world, sizeof(*notice));
    notices->made += 1;
    *notice = (struct sim_notice){
        .next = notices->first,
        .world = notices->world,
        .effect = effect,
        .outcome = outcome,
        .amount_minor = says_money(outcome) ? effect->amount_minor : -1,
        .is_true = true,
    };
    memcpy(notice->id, effect->id, sizeof(notice->id));
    int len = snprintf(notice->event_id, sizeof(notice->event_id), "event-%llu",
                       (unsigned long long)notices->made);
    IDEM_ASSERT(len > 0 && (size_t)len < sizeof(notice->event_id));
    notices->first = notice;
    return notice;
}

static void send_out(struct sim_notice *notice)
{
    bool is_late = sim_fault(&notice->world->faults, SIM_FAULT_EVENT_LATE);
    deliver_later(notice, is_late ? LATE_US : 2 * SIM_SECOND);
}

/*
 * Beside what happened, a success of something else: who believes it says that money moved which
 * may not have.
 */
static void mix_up(struct sim_notices *notices, const struct sim_effect *effect)
{
    struct sim_faults *faults = &notices->world->faults;
    bool other_amount = sim_fault(faults, SIM_FAULT_EVENT_OTHER_AMOUNT);
    bool other_account = sim_fault(faults, SIM_FAULT_EVENT_OTHER_ACCOUNT);
    bool other_id = sim_fault(faults, SIM_FAULT_EVENT_OTHER_ID);
    if (!other_amount && !other_account && !other_id) {
        return;
    }
    struct sim_notice *notice = notice_add(notices, effect, IDEM_OUTCOME_SUCCESS);
    notice->is_true = false;
    notice->amount_minor += other_amount ? 1 : 0;
    notice->other_account = other_account;
    if (other_id) {
        char *one = &notice->id[1 + sim_dice_below(&faults->mail_dice, 20)];
        *one = *one == 'a' ? 'b' : 'a';
    }
    send_out(notice);
}

void sim_notice_make(struct sim_notices *notices,
                     const struct sim_effect *effect,
                     enum idem_outcome_kind outcome)
{
    if (!notices->exist) {
        return;
    }
    send_out(notice_add(notices, effect, outcome));
    if (sim_fault(&notices->world->faults, SIM_FAULT_EVENT_RENAMED)) {
        send_out(notice_add(notices, effect, outcome));
    }
    mix_up(notices, effect);
}

/* ---- listings ---- */

static const struct sim_effect *some_effect(struct sim_world *world)
{
    size_t count = 0;
    const struct sim_effect *effect = world->provider.effects;
    for (; effect != NULL; effect = effect->next) {
        count += 1;
    }
    uint64_t at = count > 0 ? sim_dice_below(&world->faults.mail_dice, count) : 0;
    for (effect = world->provider.effects; at > 0; effect = effect->next) {
        at -= 1;
    }
    return effect;
}

/* It is done; or the record says that it failed, and the listing lies. */
static bool is_listed(struct sim_world *world, const struct sim_effect *effect)
{
    struct idem_scope scope;
    bool is_ours = idem_effect_id_scope(
        (struct idem_str){ .data = effect->id, .len = sizeof(effect->id) }, &scope);
    const struct idem_intent *intent = is_ours ? sim_disk_intent(&world->disk, &scope) : NULL;
    if (intent != NULL && intent->state == IDEM_INTENT_FAILED) {
        return sim_fault(&world->faults, SIM_FAULT_LISTING_CONTRADICTS);
    }
    return effect->executions > 0 && sim_fault(&world->faults, SIM_FAULT_LISTING);
}

static void list(void *what)
{
    struct sim_notices *notices = what;
    struct sim_world *world = notices->world;
    struct sim_instance *instance = some_instance(world);
    const struct sim_effect *effect = some_effect(world);
    if (world->faults.healed) {
        return;
    }
    if (instance != NULL && effect != NULL && is_listed(world, effect)) {
        struct sim_notice *line = sim_world_take(world, sizeof(*line));
        *line = (struct sim_notice){
            .world = world,
            .effect = effect,
            .outcome = IDEM_OUTCOME_SUCCESS,
            .amount_minor = effect->amount_minor,
            .is_line = true,
        };
        memcpy(line->id, effect->id, sizeof(line->id));
        hand_over(line, instance);
    }
    sim_world_later(world, sim_dice_delay_us(&world->faults.mail_dice, LIST_EVERY_US), list,
                    notices);
}

void sim_notices_begin(struct sim_notices *notices)
{
    if (notices->exist) {
        list(notices);
    }
}

void sim_notice_replied(struct sim_world *world, struct idem_task *task, bool heard)
{
    const struct delivery *own = (const struct delivery *)(const void *)task;
    struct sim_notice *notice = own->notice;
    if (notice->is_line) {
        return; /* Whoever reads a listing reads it again. */
    }
    bool is_taken = heard && task->item.answer == IDEM_STORE_DURABLE &&
                    task->outcome.release.problem != IDEM_PROBLEM_UNAVAILABLE;
    if (is_taken) {
        sim_trace(world, "  %s is taken", notice->event_id);
        sim_audit_taken(&world->auditor, notice);
    }
    if (is_taken && !sim_fault(&world->faults, SIM_FAULT_EVENT_REPLY_LOST)) {
        notice->acknowledged = true;
        return;
    }
    if (!notice->acknowledged) {
        deliver_later(notice, AGAIN_US);
    }
}
