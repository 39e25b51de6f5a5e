/*
 * What an arrival does depends on the profile and on what the provider remembers:
 *
 *     closed id, close is final      answered "closed"
 *     refused before                 answered "declined"
 *     remembers the id               answered as the first time, or "processing"
 *     otherwise                      429 or 503, declined, "processing" and later one or the other,
 *                                    or it executes
 *
 * A provider that does not deduplicate executes at every arrival, and the ledger counts. What it
 * has executed or declined stays known to queries for ever.
 */
#include "sim/provider.h"

#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/currency.h"
#include "base/json.h"
#include "base/money.h"
#include "provider/bridge.h"
#include "sim/world.h"

#define TOKENS_MAX 64

struct profile_rules {
    const char *name;
    bool deduplicates;
    bool close_is_final;
    bool forgets; /* When its window is over. */
    enum idem_query_mode query;
    int64_t lag_us; /* For so long after an execution a query says not found. */
};

static const struct profile_rules profiles[SIM_PROFILE_COUNT] = {
    [SIM_PROFILE_DEDUP] = { "dedup", true, true, false, IDEM_QUERY_AT_ONCE, 0 },
    [SIM_PROFILE_WINDOW] = { "window", true, true, true, IDEM_QUERY_AT_ONCE, 0 },
    [SIM_PROFILE_LAGGING] = { "lagging", true, true, false, IDEM_QUERY_LAGGING, 3 * SIM_SECOND },
    [SIM_PROFILE_CLOSING] = { "closing", false, true, false, IDEM_QUERY_AT_ONCE, 0 },
    [SIM_PROFILE_PLAIN] = { "plain", false, false, false, IDEM_QUERY_AT_ONCE, 0 },
    [SIM_PROFILE_BLIND] = { "blind", true, true, false, IDEM_QUERY_NONE, 0 },
};

const char *sim_profile_name(enum sim_profile profile)
{
    IDEM_ASSERT(profile < SIM_PROFILE_COUNT);
    return profiles[profile].name;
}

static const struct profile_rules *rules_of(const struct sim_provider *provider, size_t entry)
{
    return &profiles[provider->profiles[entry]];
}

void sim_provider_init(struct sim_provider *provider, struct sim_world *world)
{
    *provider = (struct sim_provider){ .world = world };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(provider->profiles); i++) {
        provider->profiles[i] =
            (enum sim_profile)sim_dice_below(&world->dice, (uint64_t)SIM_PROFILE_COUNT);
    }
}

void sim_provider_rules(struct sim_provider *provider)
{
    static const struct idem_str names[] = { { "north", 5 }, { "south", 5 } };
    struct sim_world *world = provider->world;
    for (size_t i = 0; i < SIM_ENTRIES; i++) {
        const struct profile_rules *profile = rules_of(provider, i);
        struct idem_provider_rules *entry = &world->entries[i];
        int64_t margin_us = world->clocks_ok ? SIM_MARGIN_NEAR_US : SIM_MARGIN_FAR_US;
        *entry = (struct idem_provider_rules){
            .entry = names[i],
            .account = IDEM_STR("account"),
            .region = IDEM_STR("region"),
            .partial_capture = (enum idem_partial_capture)sim_dice_below(&world->dice, 3),
            .request_timeout_us = 4 * SIM_SECOND,
            .settle_us = 6 * SIM_SECOND,
            .encode = idem_bridge_adapter.encode,
        };
        const struct idem_capability capability = {
            .dedup_window_us = profile->deduplicates ? SIM_USABLE_US + margin_us : 0,
            .dedup_margin_us = margin_us,
            .query = profile->query,
            .query_lag_us = profile->lag_us > 0 ? profile->lag_us + 10 * SIM_SECOND : 0,
            .close_is_final = profile->close_is_final,
        };
        for (size_t kind = 0; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
            entry->capability[kind] = capability;
        }
    }
}

/* ---- the ledger ---- */

struct sim_effect *sim_provider_find(const struct sim_provider *provider, struct idem_str id)
{
    IDEM_ASSERT(id.len == IDEM_EFFECT_ID_LEN);
    struct sim_effect *effect = provider->effects;
    while (effect != NULL && memcmp(effect->id, id.data, id.len) != 0) {
        effect = effect->next;
    }
    return effect;
}

static struct idem_str member(const struct idem_json *json, const char *name)
{
    size_t index = idem_json_member(json, 0, idem_str_from(name));
    return index == 0 ? (struct idem_str){ .len = 0 } : json->tokens[index].raw;
}

/* What stands in the bytes of the request; nothing of what its sender thinks it sent. */
static void request_read(struct sim_effect *effect, struct idem_str request)
{
    struct idem_json_token tokens[TOKENS_MAX];
    struct idem_json json;
    struct idem_json_fault fault;
    idem_json_init(&json, tokens, TOKENS_MAX);
    bool sound = idem_json_parse(&json, request, &fault);
    IDEM_ASSERT(sound);
    struct idem_str order_no = member(&json, "order_no");
    struct idem_str payment_id = member(&json, "payment_id");
    IDEM_ASSERT(order_no.len > 0);
    IDEM_ASSERT(order_no.len <= sizeof(effect->order_no));
    memcpy(effect->order_no, order_no.data, order_no.len);
    effect->order_no_len = order_no.len;
    if (payment_id.len == IDEM_EFFECT_ID_LEN) {
        memcpy(effect->payment_id, payment_id.data, payment_id.len);
    }
    enum idem_amount_fault amount =
        idem_amount_parse(member(&json, "amount"), 2, &effect->amount_minor);
    IDEM_ASSERT(amount == IDEM_AMOUNT_OK);
}

static size_t entry_of(const struct sim_world *world, struct idem_str name)
{
    for (size_t i = 0; i < SIM_ENTRIES; i++) {
        if (idem_str_equal(world->entries[i].entry, name)) {
            return i;
        }
    }
    IDEM_UNREACHABLE();
}

struct sim_effect *sim_provider_meet(struct sim_provider *provider,
                                     const struct idem_effect *effect)
{
    struct sim_effect *known = sim_provider_find(provider, effect->id);
    if (known != NULL) {
        return known;
    }
    struct sim_effect *made = sim_world_take(provider->world, sizeof(*made));
    memcpy(made->id, effect->id.data, sizeof(made->id));
    made->entry = entry_of(provider->world, effect->entry);
    made->kind = idem_effect_kind_from_letter(effect->id.data[0]);
    request_read(made, effect->request);
    made->next = provider->effects;
    provider->effects = made;
    return made;
}

struct decision {
    struct sim_provider *provider;
    struct sim_effect *effect;
};

static void reverse(void *what)
{
    struct decision *decision = what;
    struct sim_world *world = decision->provider->world;
    decision->effect->reversed_us = world->now_us;
    sim_trace(world, "  provider takes %.27s back", decision->effect->id);
    sim_notice_make(&world->notices, decision->effect, IDEM_OUTCOME_REVERSED);
}

/* It tells of it; and some of what it does it takes back by itself. */
static void tell(struct sim_provider *provider, struct sim_effect *effect)
{
    struct sim_world *world = provider->world;
    sim_notice_make(&world->notices, effect, IDEM_OUTCOME_SUCCESS);
    if (world->notices.exist && effect->executions == 1 &&
        effect->kind != IDEM_EFFECT_KIND_CANCEL &&
        sim_fault(&world->faults, SIM_FAULT_PROVIDER_REVERSES)) {
        struct decision *decision = sim_world_take(world, sizeof(*decision));
        *decision = (struct decision){ .provider = provider, .effect = effect };
        sim_world_later(world, sim_dice_delay_us(&world->faults.mail_dice, 120 * SIM_SECOND),
                        reverse, decision);
    }
}

static void execute(struct sim_provider *provider, struct sim_effect *effect)
{
    struct sim_world *world = provider->world;
    effect->executions += 1;
    effect->executed_us = effect->executed_us == 0 ? world->now_us : effect->executed_us;
    effect->remembered_us = effect->remembered_us == 0 ? world->now_us : effect->remembered_us;
    sim_trace(world, "  provider executes %.27s %lld, time %llu", effect->id,
              (long long)effect->amount_minor, (unsigned long long)effect->executions);
    sim_audit_executed(&world->auditor, effect);
    tell(provider, effect);
}

/* ---- answers ---- */

static void say(struct sim_answer *answer, uint16_t status, const char *text)
{
    int len = snprintf(answer->text, sizeof(answer->text), "%s", text);
    IDEM_ASSERT(len > 0);
    answer->status = status;
    answer->len = (size_t)len;
}

static void say_about(struct sim_answer *answer, const struct sim_effect *effect, const char *what)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "{\"status\":\"%s\",\"id\":\"%.27s\",\"code\":\"%s\"}", what,
                   effect->id, what);
    say(answer, 200, text);
}

static void say_busy(struct sim_provider *provider, struct sim_answer *answer)
{
    struct sim_dice *dice = &provider->world->dice;
    bool is_limit = sim_dice_chance(dice, 500);
    answer->retry_after_us = is_limit ? sim_dice_delay_us(dice, 5 * SIM_SECOND) : 0;
    say(answer, is_limit ? 429 : 503, "{\"status\":\"not_executed\",\"code\":\"busy\"}");
}

/* What may be wrong in a success. */
struct mistake {
    bool id;
    bool amount;
    bool currency;
};

static void say_success(const struct sim_effect *effect,
                        struct mistake mistake,
                        struct sim_answer *answer)
{
    char id[IDEM_EFFECT_ID_LEN + 1] = { 0 };
    char amount_memory[IDEM_AMOUNT_TEXT_MAX + 1] = { 0 };
    char text[256];
    struct idem_buf amount;
    memcpy(id, effect->id, sizeof(effect->id));
    if (mistake.id) {
        id[IDEM_EFFECT_ID_LEN - 1] = id[IDEM_EFFECT_ID_LEN - 1] == '0' ? '1' : '0';
    }
    idem_buf_init(&amount, amount_memory, IDEM_AMOUNT_TEXT_MAX);
    idem_amount_print(effect->amount_minor + (mistake.amount ? 1 : 0), 2, &amount);
    (void)snprintf(text, sizeof(text),
                   "{\"status\":\"succeeded\",\"id\":\"%s\",\"amount\":\"%s\",\"currency\":\"%s\","
                   "\"reference\":\"r-%.27s\"}",
                   id, amount_memory, mistake.currency ? "EUR" : "CNY", effect->id);
    say(answer, 200, text);
}

static void say_done(const struct sim_effect *effect, struct sim_answer *answer)
{
    say_success(effect, (struct mistake){ .id = false }, answer);
}

/*
 * Success of something else, whatever became of this: another id, sum or currency, or the same
 * words about another account. Who believes it says that money moved which may not have.
 */
static bool mix_up(struct sim_provider *provider,
                   const struct sim_effect *effect,
                   struct sim_answer *answer)
{
    struct sim_faults *faults = &provider->world->faults;
    const struct mistake mistake = {
        .id = sim_fault(faults, SIM_FAULT_ANSWER_OTHER_ID),
        .amount = sim_fault(faults, SIM_FAULT_ANSWER_OTHER_AMOUNT),
        .currency = sim_fault(faults, SIM_FAULT_ANSWER_OTHER_CURRENCY),
    };
    answer->other_account = sim_fault(faults, SIM_FAULT_ANSWER_OTHER_ACCOUNT);
    if (!mistake.id && !mistake.amount && !mistake.currency && !answer->other_account) {
        return false;
    }
    say_success(effect, mistake, answer);
    return true;
}

static bool forgets(const struct sim_provider *provider, const struct sim_effect *effect)
{
    const struct idem_provider_rules *entry = &provider->world->entries[effect->entry];
    return rules_of(provider, effect->entry)->forgets && effect->remembered_us != 0 &&
           provider->world->now_us - effect->remembered_us >=
               entry->capability[effect->kind].dedup_window_us;
}

static void refuse(struct sim_provider *provider, struct sim_effect *effect)
{
    effect->refused = true;
    sim_notice_make(&provider->world->notices, effect, IDEM_OUTCOME_REFUSED_FINAL);
}

static void processing_ends(void *what)
{
    struct decision *decision = what;
    decision->effect->processing = false;
    if (sim_dice_chance(&decision->provider->world->dice, 300)) {
        refuse(decision->provider, decision->effect);
    } else {
        execute(decision->provider, decision->effect);
    }
}

static void process(struct sim_provider *provider,
                    struct sim_effect *effect,
                    struct sim_answer *answer)
{
    struct sim_world *world = provider->world;
    struct decision *decision = sim_world_take(world, sizeof(*decision));
    *decision = (struct decision){ .provider = provider, .effect = effect };
    effect->processing = true;
    effect->remembered_us = effect->remembered_us == 0 ? world->now_us : effect->remembered_us;
    int64_t longest_us = sim_dice_chance(&world->dice, 700) ? 20 * SIM_SECOND : 400 * SIM_SECOND;
    sim_world_later(world, sim_dice_delay_us(&world->dice, longest_us), processing_ends, decision);
    say_about(answer, effect, "processing");
    sim_notice_make(&world->notices, effect, IDEM_OUTCOME_PROCESSING);
}

static void run_anew(struct sim_provider *provider,
                     struct sim_effect *effect,
                     struct sim_answer *answer)
{
    struct sim_faults *faults = &provider->world->faults;
    if (sim_fault(faults, SIM_FAULT_PROVIDER_BUSY)) {
        say_busy(provider, answer);
        return;
    }
    if (sim_fault(faults, SIM_FAULT_PROVIDER_REFUSES)) {
        refuse(provider, effect);
        say_about(answer, effect, "declined");
        return;
    }
    if (sim_fault(faults, SIM_FAULT_PROVIDER_PROCESSING)) {
        process(provider, effect, answer);
        return;
    }
    execute(provider, effect);
    say_done(effect, answer);
}

static void send_arrives(struct sim_provider *provider,
                         struct sim_effect *effect,
                         struct sim_answer *answer)
{
    const struct profile_rules *profile = rules_of(provider, effect->entry);
    struct sim_faults *faults = &provider->world->faults;
    effect->arrivals += 1;
    if (effect->closed && profile->close_is_final) {
        say_about(answer, effect, "closed");
        return;
    }
    if (effect->refused) {
        say_about(answer, effect, "declined");
        return;
    }
    if (forgets(provider, effect)) {
        run_anew(provider, effect, answer);
        return;
    }
    if (effect->processing) {
        say_about(answer, effect, "processing");
        return;
    }
    if (profile->deduplicates && effect->executions > 0) {
        bool can_be_asked = profile->query != IDEM_QUERY_NONE;
        if (can_be_asked && sim_fault(faults, SIM_FAULT_ANSWER_CONTRADICTS)) {
            say_about(answer, effect, "declined"); /* "Duplicate": about the second, not the id. */
        } else if (sim_fault(faults, SIM_FAULT_PROVIDER_BUSY)) {
            say_busy(provider, answer);
        } else {
            say_done(effect, answer);
        }
        return;
    }
    run_anew(provider, effect, answer);
}

static void query_arrives(struct sim_provider *provider,
                          const struct sim_effect *effect,
                          struct sim_answer *answer)
{
    struct sim_faults *faults = &provider->world->faults;
    const struct profile_rules *profile = rules_of(provider, effect->entry);
    int64_t age_us = provider->world->now_us - effect->executed_us;
    if (forgets(provider, effect)) {
        sim_fault_note(faults, SIM_FAULT_WINDOW_OVER);
    }
    bool lags = effect->executions > 0 && age_us < profile->lag_us;
    if (effect->processing) {
        say_about(answer, effect, "processing");
    } else if (effect->executions > 0 && !lags && !sim_fault(faults, SIM_FAULT_QUERY_NOT_FOUND)) {
        say_done(effect, answer);
    } else if (effect->executions > 0) {
        say(answer, 404, "{\"status\":\"not_found\"}");
    } else if (effect->refused) {
        say_about(answer, effect, "declined");
    } else if (effect->closed) {
        say_about(answer, effect, "closed");
    } else {
        if (effect->on_the_wire > 0 && !faults->healed) {
            sim_fault_note(faults, SIM_FAULT_QUERY_ON_THE_WIRE);
        }
        say(answer, 404, "{\"status\":\"not_found\"}");
    }
}

static void close_arrives(struct sim_provider *provider,
                          struct sim_effect *effect,
                          struct sim_answer *answer)
{
    if (effect->processing) {
        say_about(answer, effect, "processing");
        return;
    }
    if (sim_fault(&provider->world->faults, SIM_FAULT_CLOSE_UNTRUE)) {
        say_about(answer, effect, "closed");
        return;
    }
    if (effect->executions > 0) {
        say_done(effect, answer);
        return;
    }
    effect->closed = true;
    say_about(answer, effect, "closed");
    sim_notice_make(&provider->world->notices, effect, IDEM_OUTCOME_CLOSED_UNPAID);
}

void sim_provider_arrive(struct sim_provider *provider,
                         enum idem_call_kind kind,
                         struct sim_effect *effect,
                         struct sim_answer *ret_answer)
{
    struct sim_faults *faults = &provider->world->faults;
    *ret_answer = (struct sim_answer){ .len = 0 };
    switch (kind) {
    case IDEM_CALL_SEND:
        send_arrives(provider, effect, ret_answer);
        break;
    case IDEM_CALL_QUERY:
        query_arrives(provider, effect, ret_answer);
        break;
    case IDEM_CALL_CLOSE:
        close_arrives(provider, effect, ret_answer);
        break;
    case IDEM_CALL_NONE:
    case IDEM_CALL_COUNT:
        IDEM_UNREACHABLE();
    }
    if (mix_up(provider, effect, ret_answer)) {
        return;
    }
    if (sim_fault(faults, SIM_FAULT_ANSWER_GARBAGE)) {
        say(ret_answer, ret_answer->status, "{\"status\":\"declined\",\"status\":\"succeeded\"}");
    } else if (sim_fault(faults, SIM_FAULT_ANSWER_UNLISTED)) {
        say_about(ret_answer, effect, sim_dice_chance(faults->dice, 500) ? "failed" : "rejected");
    }
}
