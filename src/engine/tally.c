/*
 * What is counted when a command is durable or a call came back.
 *
 * A command counts an intent's end only if it made that end: it wrote the row last, and the row
 * ended at this command's own time. Retention, contradicting evidence and replays write or show
 * final rows too, but not at that time. Being parked counts as an end: nothing but a person, or the
 * provider's late word, moves it on. A command that runs again after an unknown commit comes
 * back DURABLE once.
 */
#include "engine/engine_internal.h"

bool idem_tally_made_end(const struct idem_outcome *outcome, const struct idem_command *command)
{
    const struct idem_intent *intent = &outcome->intent;
    if (!idem_uid_equal(intent->last_command, command->token)) {
        return false;
    }
    if (intent->state == IDEM_INTENT_PARKED) {
        return outcome->parked;
    }
    if (intent->state == IDEM_INTENT_RELEASED) {
        return outcome->release.kind == IDEM_RELEASE_REPLY;
    }
    return idem_intent_is_final(intent->state) && intent->finished_us == command->now_us;
}

void idem_tally_durable(struct idem_engine *engine, const struct idem_store_item *item)
{
    const struct idem_intent *intent = &item->outcome->intent;
    struct idem_engine_stats *stats = &engine->stats;
    if (!idem_tally_made_end(item->outcome, &item->command)) {
        return;
    }
    stats->ended[intent->state] += 1;
    if (idem_intent_is_final(intent->state) && intent->unknown_since_us != 0) {
        idem_histogram_add(&stats->time_to_truth_us,
                           intent->finished_us - intent->unknown_since_us);
    }
}

void idem_tally_call(struct idem_engine *engine, const struct idem_flight *flight)
{
    const struct idem_rules *rules = engine->options.rules;
    const struct idem_call *call = &flight->call;
    const struct idem_provider_rules *provider = idem_rules_provider(rules, call->effect.entry);
    if (provider == NULL) {
        return; /* Only a port of its own mind would have called there. */
    }
    struct idem_call_stats *stats = &engine->call_stats[provider - rules->providers];
    stats->outcomes[call->kind][call->evidence.outcome] += 1;
    idem_histogram_add(&stats->us[call->kind],
                       idem_clock_mono_us(engine->options.clock) - flight->called_us);
}
