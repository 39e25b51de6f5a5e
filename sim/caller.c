/*
 * Plans are made before the run: payments first, some for one order, then what is done to them.
 * Callers begin them one after the other and come back to old ones; an operator looks in now and
 * then. Whoever acts on a payment must have been told its id.
 *
 * An operator who speaks the truth looks at the ledger. "It did not happen" is said only when
 * nothing is under way any more that could make it happen; where wires keep to the rules, also in
 * haste, since the core itself must refuse what comes too early.
 */
#include "sim/caller.h"

#include <stdio.h>
#include <string.h>

#include "api/scope.h"
#include "base/bug.h"
#include "base/money.h"
#include "sim/world.h"

#define ASK_EVERY_US     (30 * SIM_SECOND)
#define OPERATE_EVERY_US (120 * SIM_SECOND)
#define OPERATE_SOON_US  (5 * SIM_SECOND)
#define EDGE_LATE_US     (60 * SIM_SECOND)
#define RETRY_US         (4 * SIM_SECOND)

struct verdict {
    struct idem_task task; /* First. */
    struct sim_instance *instance;
    const struct sim_plan *plan;
    char reason[SIM_TEXT_MAX];
};

/* ---- plans ---- */

static void text_make(char text[SIM_TEXT_MAX], const char *format, size_t number)
{
    /* A constant format of this file's. */
    int len = snprintf(text, SIM_TEXT_MAX, "%s%zu", format, number);
    IDEM_ASSERT(len > 0 && len < SIM_TEXT_MAX);
}

static void amount_make(struct sim_plan *plan, size_t wording, int64_t minor)
{
    struct idem_buf text;
    plan->amount_minor[wording] = minor;
    idem_buf_init(&text, plan->amount_text[wording], SIM_TEXT_MAX - 1);
    idem_amount_print(minor, 2, &text);
    plan->amount_text[wording][text.len] = '\0';
}

static void names_make(struct sim_callers *callers, struct sim_plan *plan)
{
    static const struct idem_str secret = { "effect secret of the simulation!", 32 };
    struct idem_digester *digester = callers->world->digester;
    const struct idem_scope_of of = {
        .principal = plan->principal,
        .endpoint = idem_str_from(idem_endpoint_name(plan->endpoint)),
        .key = idem_str_from(plan->key),
    };
    struct idem_scope_names names = idem_scope_make(digester, secret, &of);
    plan->scope = names.scope;
    memcpy(plan->tail, names.tail, sizeof(plan->tail));
    for (size_t i = 0; i < SIM_WORDINGS; i++) {
        char text[64];
        int len = snprintf(text, sizeof(text), "%zu %zu", plan->no, i);
        IDEM_ASSERT(len > 0);
        plan->fingerprint[i] = (struct idem_fingerprint){
            .rule_id = 1,
            .secret_id = 1,
            .digest =
                idem_digest_sha256(digester, (struct idem_str){ .data = text, .len = (size_t)len }),
        };
    }
}

static void payment_plan(struct sim_callers *callers, struct sim_plan *plan)
{
    struct sim_world *world = callers->world;
    bool twice = plan->no > 0 &&
                 callers->plans[plan->no - 1].endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE &&
                 sim_fault(&world->faults, SIM_FAULT_CLIENT_ORDER_TWICE);
    plan->endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE;
    text_make(plan->order_no, "order-", twice ? plan->no - 1 : plan->no);
    if (twice) {
        plan->principal = callers->plans[plan->no - 1].principal;
        memcpy(plan->order_no, callers->plans[plan->no - 1].order_no, sizeof(plan->order_no));
    }
    plan->capture_mode =
        sim_dice_chance(&world->dice, 400) ? IDEM_CAPTURE_AUTOMATIC : IDEM_CAPTURE_MANUAL;
    amount_make(plan, 0, 10000 + (int64_t)plan->no);
    amount_make(plan, 1, 20000 + (int64_t)plan->no);
}

static void action_plan(struct sim_callers *callers, struct sim_plan *plan, size_t payments)
{
    static const enum idem_endpoint endpoints[] = {
        IDEM_ENDPOINT_PAYMENTS_CAPTURE, IDEM_ENDPOINT_PAYMENTS_CAPTURE,
        IDEM_ENDPOINT_PAYMENTS_CANCEL, IDEM_ENDPOINT_REFUNDS_CREATE, IDEM_ENDPOINT_REFUNDS_CREATE
    };
    struct sim_dice *dice = &callers->world->dice;
    plan->payment = &callers->plans[sim_dice_below(dice, payments)];
    plan->principal = plan->payment->principal;
    plan->endpoint = endpoints[sim_dice_below(dice, IDEM_ARRAY_COUNT(endpoints))];
    bool is_cancel = plan->endpoint == IDEM_ENDPOINT_PAYMENTS_CANCEL;
    if (!is_cancel && sim_dice_chance(dice, 700)) {
        int64_t whole = plan->payment->amount_minor[0];
        int64_t part = sim_dice_chance(dice, 400) ? whole : sim_dice_between(dice, 3000, 8000);
        amount_make(plan, 0, part);
        amount_make(plan, 1, part / 2);
    }
    if (plan->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE && sim_dice_chance(dice, 500)) {
        text_make(plan->refund_no, "refund-", (size_t)sim_dice_below(dice, 2));
    }
}

void sim_callers_init(struct sim_callers *callers, struct sim_world *world)
{
    static const struct idem_str principals[] = { { "shop", 4 }, { "mall", 4 } };
    struct sim_dice *dice = &world->dice;
    *callers = (struct sim_callers){ .world = world };
    size_t payments = 2 + (size_t)sim_dice_below(dice, 5);
    callers->count = payments + (size_t)sim_dice_below(dice, SIM_PLANS_MAX - payments + 1);
    for (size_t i = 0; i < callers->count; i++) {
        struct sim_plan *plan = &callers->plans[i];
        plan->no = i;
        plan->principal = principals[sim_dice_below(dice, 2)];
        plan->entry = world->entries[sim_dice_below(dice, SIM_ENTRIES)].entry;
        text_make(plan->key, "key-", i);
        if (i < payments) {
            payment_plan(callers, plan);
        } else {
            action_plan(callers, plan, payments);
        }
        names_make(callers, plan);
    }
    callers->begun = 1;
}

/* ---- requests ---- */

static struct sim_request *request_take(struct sim_callers *callers)
{
    struct sim_request *request = callers->free;
    if (request == NULL) {
        return sim_world_take(callers->world, sizeof(*request));
    }
    callers->free = request->next;
    return request;
}

static void accept_fill(struct sim_callers *callers, struct sim_request *request)
{
    struct sim_world *world = callers->world;
    const struct sim_plan *plan = request->plan;
    static const int64_t waits_us[] = { 0, 1 * SIM_SECOND, 10 * SIM_SECOND, 10 * SIM_SECOND };
    struct idem_accept *accept = &request->request.item.command.accept;
    *accept = (struct idem_accept){
        .principal = plan->principal,
        .key = idem_str_from(plan->key),
        .endpoint = plan->endpoint,
        .fingerprint_count = 1,
        .effect_id_tail = { .data = plan->tail, .len = SIM_TAIL_LEN },
        .wait_us = waits_us[sim_dice_below(&world->dice, IDEM_ARRAY_COUNT(waits_us))],
    };
    accept->fingerprints[0] = plan->fingerprint[request->wording];
    if (world->wait_us > 0 && sim_dice_chance(&world->dice, 500)) {
        accept->wait_us = world->wait_us;
    }
    if (sim_fault(&world->faults, SIM_FAULT_CLIENT_TOO_OLD)) {
        accept->first_sent_us = world->start_us - 2 * world->rules.answer_retention_us;
    }
    if (plan->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        accept->order_no = idem_str_from(plan->order_no);
        accept->amount_minor = plan->amount_minor[request->wording];
        accept->currency = IDEM_STR("CNY");
        accept->entry = plan->entry;
        accept->capture_mode = plan->capture_mode;
        accept->method = IDEM_STR("tok");
        return;
    }
    accept->payment_id = plan->payment->made;
    accept->amount_text = idem_str_from(plan->amount_text[request->wording]);
    accept->refund_no = idem_str_from(plan->refund_no);
}

static struct sim_instance *some_instance(struct sim_world *world)
{
    size_t from = (size_t)sim_dice_below(&world->dice, SIM_INSTANCES_MAX);
    for (size_t i = 0; i < SIM_INSTANCES_MAX; i++) {
        struct sim_instance *instance = world->instances[(from + i) % SIM_INSTANCES_MAX];
        if (instance != NULL && sim_instance_serves(instance)) {
            return instance;
        }
    }
    return NULL;
}

static void send(struct sim_callers *callers, struct sim_plan *plan, size_t wording, bool abandons)
{
    struct sim_world *world = callers->world;
    struct sim_instance *instance = some_instance(world);
    if (instance == NULL) {
        return; /* Nobody listens. */
    }
    struct sim_request *request = request_take(callers);
    request->request = (struct idem_request){
        .in_flight = (enum idem_in_flight)sim_dice_below(&world->dice, IDEM_IN_FLIGHT_COUNT),
        .respond_async = sim_dice_chance(&world->dice, 100),
    };
    request->plan = plan;
    request->wording = wording;
    request->abandons = abandons;
    request->gone = sim_fault(&world->faults, SIM_FAULT_CLIENT_GONE);
    request->sent_us = world->now_us;
    struct idem_command *command = &request->request.item.command;
    command->kind = abandons ? IDEM_COMMAND_ABANDON : IDEM_COMMAND_ACCEPT;
    command->scope = plan->scope;
    command->abandon = (struct idem_abandon){
        .principal = plan->principal,
        .key = idem_str_from(plan->key),
        .endpoint = plan->endpoint,
    };
    accept_fill(callers, request);
    plan->sent += 1;
    callers->waiting += 1;
    sim_trace(world, "i%d %s %s wording %zu%s", instance->no, plan->key,
              idem_endpoint_name(plan->endpoint), wording, abandons ? " abandons" : "");
    sim_audit_asked(&world->auditor, request);
    idem_engine_submit(instance->engine, &request->request);
    sim_instance_wake(instance);
}

static void learn(struct sim_plan *plan, const struct idem_request *request)
{
    bool made = request->reply == IDEM_REPLY_ANSWER &&
                plan->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE &&
                request->outcome.intent.answer.status == 201;
    if (made) {
        plan->made = request->outcome.intent.payment_id;
    }
}

/* Somebody was told that nothing ran, and tries again. */
struct retry {
    struct sim_callers *callers;
    struct sim_plan *plan;
    size_t wording;
};

static void retry(void *what)
{
    const struct retry *own = what;
    if (!own->callers->world->faults.healed) {
        send(own->callers, own->plan, own->wording, false);
    }
}

static void retry_soon(struct sim_callers *callers, const struct sim_request *request)
{
    struct sim_world *world = callers->world;
    if (request->request.reply != IDEM_REPLY_PROBLEM ||
        request->request.problem != IDEM_PROBLEM_NOT_EXECUTED ||
        !sim_dice_chance(&world->dice, 700)) {
        return;
    }
    struct retry *own = sim_world_take(world, sizeof(*own));
    *own = (struct retry){
        .callers = callers,
        .plan = request->plan,
        .wording = request->wording,
    };
    sim_world_later(world, sim_dice_delay_us(&world->dice, RETRY_US), retry, own);
}

static void reply_trace(struct sim_world *world, const struct sim_request *own)
{
    const struct idem_request *request = &own->request;
    const char *what = request->reply == IDEM_REPLY_OPERATION ? "202" : "answer";
    if (request->reply == IDEM_REPLY_PROBLEM) {
        what = idem_problem_entry(request->problem)->code;
    }
    sim_trace(world, "  %s gets %s %u%s%s", own->plan->key, what,
              request->reply == IDEM_REPLY_ANSWER ? (unsigned)request->outcome.intent.answer.status
                                                  : 0,
              request->replayed ? " replayed" : "", own->gone ? ", and nobody is there" : "");
}

void sim_caller_replied(struct sim_world *world, struct idem_request *request, bool heard)
{
    struct sim_request *own = (struct sim_request *)(void *)request;
    if (heard) {
        reply_trace(world, own);
    }
    sim_audit_replied(&world->auditor, own, heard);
    if (heard && !own->gone) {
        learn(own->plan, request);
        retry_soon(&world->callers, own);
    }
    world->callers.waiting -= 1;
    own->next = world->callers.free;
    world->callers.free = own;
}

static bool can_ask(const struct sim_plan *plan)
{
    return plan->payment == NULL || !idem_uid_is_zero(plan->payment->made);
}

static void ask_about(struct sim_callers *callers, struct sim_plan *plan)
{
    struct sim_world *world = callers->world;
    struct sim_faults *faults = &world->faults;
    size_t wording = sim_fault(faults, SIM_FAULT_CLIENT_CHANGED) ? 1 : 0;
    bool in_parallel = sim_fault(faults, SIM_FAULT_CLIENT_PARALLEL);
    bool abandons = sim_fault(faults, SIM_FAULT_CLIENT_ABANDONS);
    size_t copies = in_parallel ? 2 + (size_t)sim_dice_below(&world->dice, 3) : 1;
    for (size_t i = 0; i < copies; i++) {
        send(callers, plan, i > 0 && copies > 2 ? 0 : wording, abandons && i == 0);
    }
}

static void ask(void *what)
{
    struct sim_callers *callers = what;
    struct sim_world *world = callers->world;
    if (world->faults.healed) {
        return;
    }
    if (callers->begun < callers->count && sim_dice_chance(&world->dice, 600)) {
        callers->begun += 1;
    }
    struct sim_plan *plan = &callers->plans[sim_dice_below(&world->dice, callers->begun)];
    if (can_ask(plan)) {
        ask_about(callers, plan);
    }
    int64_t longest_us = world->ask_every_us > 0 ? world->ask_every_us : ASK_EVERY_US;
    int64_t pause_us = sim_dice_delay_us(&world->dice, longest_us);
    if (sim_dice_chance(&world->dice, 20) &&
        sim_fault(&world->faults, SIM_FAULT_CLIENT_AFTER_RETENTION)) {
        pause_us = 2 * world->rules.answer_retention_us;
    }
    sim_world_later(world, pause_us, ask, callers);
}

void sim_callers_ask_again(struct sim_callers *callers)
{
    for (size_t i = 0; i < callers->count; i++) {
        if (callers->plans[i].sent > 0 && can_ask(&callers->plans[i])) {
            send(callers, &callers->plans[i], 0, false);
        }
    }
}

/* ---- operators ---- */

static bool is_under_way(const struct sim_world *world, const struct sim_effect *effect)
{
    bool keeps_to_rules = !sim_fault_exists(&world->faults, SIM_FAULT_WIRE_VERY_LATE);
    bool may_come = effect != NULL && effect->on_the_wire > 0 && !keeps_to_rules;
    return may_come || (effect != NULL && effect->processing);
}

/* What the ledger says of it, if it can be said. */
static enum idem_verdict truth(const struct sim_world *world, const struct sim_plan *plan)
{
    const struct sim_effect *effect = world->provider.effects;
    while (effect != NULL && memcmp(effect->id + 1, plan->tail, SIM_TAIL_LEN) != 0) {
        effect = effect->next;
    }
    if (effect != NULL && effect->executions > 0) {
        return IDEM_VERDICT_SUCCEEDED;
    }
    return is_under_way(world, effect) ? IDEM_VERDICT_NONE : IDEM_VERDICT_FAILED;
}

static struct sim_plan *some_open_plan(struct sim_callers *callers)
{
    struct sim_world *world = callers->world;
    size_t from = (size_t)sim_dice_below(&world->dice, callers->count);
    for (size_t i = 0; i < callers->count; i++) {
        struct sim_plan *plan = &callers->plans[(from + i) % callers->count];
        const struct idem_intent *intent = sim_disk_intent(&world->disk, &plan->scope);
        bool is_parked = intent != NULL && intent->state == IDEM_INTENT_PARKED;
        bool is_open = intent != NULL && !idem_intent_is_final(intent->state);
        if (is_parked || (is_open && sim_dice_chance(&world->dice, 300))) {
            return plan;
        }
    }
    return NULL;
}

/* The edge has looked at the operation that it is about. */
static void resolve_run(void *what)
{
    struct verdict *own = what;
    if (!own->instance->dead) {
        idem_engine_run(own->instance->engine, &own->task);
        sim_instance_wake(own->instance);
    }
}

static void resolve(struct sim_world *world, struct sim_plan *plan, enum idem_verdict verdict)
{
    struct sim_instance *instance = some_instance(world);
    const struct idem_intent *intent = sim_disk_intent(&world->disk, &plan->scope);
    if (instance == NULL || intent == NULL) {
        return;
    }
    struct verdict *own = sim_world_take(world, sizeof(*own));
    own->instance = instance;
    own->plan = plan;
    own->task.done = &instance->done_tasks;
    own->task.item.command = (struct idem_command){
        .kind = IDEM_COMMAND_RESOLVE,
        .scope = plan->scope,
        .resolve = {
            .verdict = verdict,
            .asked_us = idem_clock_wall_us(&instance->clock.base),
            .by = IDEM_STR("operator"),
            .reason = IDEM_STR("as the ledger has it"),
            .reference = IDEM_STR("by-hand"),
            .amount_minor = intent->effect.amount_minor,
            .currency = IDEM_STR("CNY"),
        },
    };
    sim_trace(world, "i%d operator about %s: %s", instance->no, plan->key,
              idem_verdict_name(verdict));
    if (sim_fault(&world->faults, SIM_FAULT_OPERATOR_LATE)) {
        sim_world_later(world, sim_dice_delay_us(&world->dice, EDGE_LATE_US), resolve_run, own);
        return;
    }
    resolve_run(own);
}

void sim_operator_replied(struct sim_world *world, struct idem_task *task, bool heard)
{
    const struct verdict *own = (const struct verdict *)(const void *)task;
    enum idem_problem problem = task->outcome.release.problem;
    if (heard) {
        sim_trace(world, "  operator about %s gets %s %s", own->plan->key,
                  idem_store_answer_name(task->item.answer),
                  problem == IDEM_PROBLEM_NONE ? "" : idem_problem_entry(problem)->code);
    }
}

static void look(void *what)
{
    struct sim_callers *callers = what;
    struct sim_world *world = callers->world;
    struct sim_faults *faults = &world->faults;
    if (faults->healed) {
        return;
    }
    struct sim_plan *plan = some_open_plan(callers);
    enum idem_verdict verdict = plan != NULL ? truth(world, plan) : IDEM_VERDICT_NONE;
    if (verdict == IDEM_VERDICT_NONE) {
        return;
    }
    if (sim_fault(faults, SIM_FAULT_OPERATOR_LIES)) {
        sim_audit_verdict(&world->auditor, plan, false);
        resolve(world, plan,
                verdict == IDEM_VERDICT_FAILED ? IDEM_VERDICT_SUCCEEDED : IDEM_VERDICT_FAILED);
    } else if (sim_fault(faults, SIM_FAULT_OPERATOR_RESOLVES)) {
        sim_audit_verdict(&world->auditor, plan, true);
        resolve(world, plan, verdict);
    }
}

static void operate(void *what)
{
    struct sim_callers *callers = what;
    struct sim_world *world = callers->world;
    if (!world->faults.healed) {
        look(callers);
        sim_world_later(world, sim_dice_delay_us(&world->dice, OPERATE_EVERY_US), operate, callers);
    }
}

void sim_operators_look_soon(struct sim_callers *callers)
{
    struct sim_world *world = callers->world;
    sim_world_later(world, sim_dice_delay_us(&world->dice, OPERATE_SOON_US), look, callers);
}

void sim_callers_begin(struct sim_callers *callers)
{
    ask(callers);
    operate(callers);
}
