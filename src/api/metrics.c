/*
 * The page that Prometheus reads, in its text format 0.0.4. Every figure is one that somebody keeps
 * anyway; printing reads them and waits for nothing. docs/metrics.md says what each is for.
 *
 * No credential is asked for, so nothing here names a principal, a key or a payment: labels are
 * words of this program and the names of configured provider entries (letters, digits, - and _,
 * which need no escapes).
 *
 * Histograms have the powers of two that are of use as their bounds. The memory is made for the
 * longest numbers of all configured providers.
 */
#include "api/api_internal.h"

#include <stdio.h>

#include "base/bug.h"

#define FIXED_MAX 65536
#define PROVIDER_MAX \
    16384 /* Of 150 bytes: 3 calls, each 19 of time and 8 outcomes; 13 of the budget; 7 more. */
#define LABELS_MAX 160

/* Bounds of a histogram: from 2^first to 2^last, as counts or as microseconds in seconds. */
struct bounds {
    size_t first;
    size_t last;
    bool seconds;
};

static const struct bounds batch_bounds = { .first = 0, .last = 8 };
static const struct bounds commit_bounds = { .first = 6, .last = 23, .seconds = true };
static const struct bounds call_bounds = { .first = 10, .last = 25, .seconds = true };
static const struct bounds truth_bounds = { .first = 16, .last = 39, .seconds = true };

static void add(struct idem_buf *buf, const char *text)
{
    idem_buf_add(buf, idem_str_from(text));
}

static void add_u64(struct idem_buf *buf, uint64_t value)
{
    idem_buf_printf(buf, "%llu", (unsigned long long)value);
}

/* Microseconds as seconds. */
static void add_seconds(struct idem_buf *buf, uint64_t us)
{
    const uint64_t second = (uint64_t)IDEM_US_PER_SECOND;
    idem_buf_printf(buf, "%llu.%06llu", (unsigned long long)(us / second),
                    (unsigned long long)(us % second));
}

static void family(struct idem_buf *buf, const char *name, const char *type, const char *help)
{
    idem_buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A sample with at most one label; `label` NULL: none. */
static void sample(struct idem_buf *buf,
                   const char *name,
                   const char *label,
                   const char *value_of_label,
                   uint64_t value)
{
    add(buf, name);
    if (label != NULL) {
        idem_buf_printf(buf, "{%s=\"%s\"}", label, value_of_label);
    }
    add(buf, " ");
    add_u64(buf, value);
    add(buf, "\n");
}

static void counter(struct idem_buf *buf, const char *name, const char *help, uint64_t value)
{
    family(buf, name, "counter", help);
    sample(buf, name, NULL, NULL, value);
}

static void gauge(struct idem_buf *buf, const char *name, const char *help, uint64_t value)
{
    family(buf, name, "gauge", help);
    sample(buf, name, NULL, NULL, value);
}

static void gauge_seconds(struct idem_buf *buf, const char *name, const char *help, int64_t us)
{
    family(buf, name, "gauge", help);
    add(buf, name);
    add(buf, " ");
    add_seconds(buf, us > 0 ? (uint64_t)us : 0);
    add(buf, "\n");
}

static void add_bound(struct idem_buf *buf, const struct bounds *bounds, uint64_t value)
{
    if (bounds->seconds) {
        add_seconds(buf, value);
    } else {
        add_u64(buf, value);
    }
}

/* The samples of one histogram; `labels` are those before `le`, empty or ended by a comma. */
static void histogram(struct idem_buf *buf,
                      const char *name,
                      const char *labels,
                      const struct idem_histogram *values,
                      const struct bounds *bounds)
{
    unsigned long long count = values->count;
    for (size_t i = bounds->first; i <= bounds->last; i++) {
        idem_buf_printf(buf, "%s_bucket{%sle=\"", name, labels);
        add_bound(buf, bounds, UINT64_C(1) << i);
        idem_buf_printf(buf, "\"} %llu\n", (unsigned long long)idem_histogram_up_to(values, i));
    }
    idem_buf_printf(buf, "%s_bucket{%sle=\"+Inf\"} %llu\n", name, labels, count);
    /* A comma may stand behind the last label. */
    idem_buf_printf(buf, "%s_sum{%s} ", name, labels);
    add_bound(buf, bounds, values->sum);
    idem_buf_printf(buf, "\n%s_count{%s} %llu\n", name, labels, count);
}

/* ---- what there is ---- */

static void program_print(const struct idem_api *api, struct idem_buf *buf)
{
    const struct idem_api_gauges *gauges = &api->gauges;
    family(buf, "idem_build_info", "gauge", "Which program this is; always 1.");
    idem_buf_printf(buf, "idem_build_info{version=\"%.*s\"} 1\n", (int)gauges->version.len,
                    gauges->version.len > 0 ? gauges->version.data : "");
    gauge_seconds(buf, "idem_uptime_seconds", "Since the start.", gauges->uptime_us);
    gauge(buf, "idem_ready", "1 while /readyz says yes.", idem_ready_why_not(api) == NULL);
    gauge_seconds(buf, "idem_loop_lag_seconds", "How late the event loop was, at worst lately.",
                  gauges->loop_lag_us);
    gauge(buf, "idem_disk_low", "1 while the disk has less than its reserve: no new claims.",
          gauges->disk_low);
    gauge(buf, "idem_store_silent", "1 while the store's server does not answer.",
          gauges->store_silent);
    gauge(buf, "idem_store_standbys",
          "1 while standbys answer for what the store's server commits.", gauges->store_standbys);
    gauge(buf, "idem_store_standbys_gone", "1 while none does, though some did since the start.",
          gauges->store_standbys_gone);
    gauge(buf, "idem_clock_apart", "1 while retention does not believe the clock.",
          gauges->clock_apart);
    gauge_seconds(buf, "idem_retention_horizon_seconds",
                  "Unix time up to which retention trusts the clock.", gauges->reaper_horizon_us);
    counter(buf, "idem_retention_expired_total", "Answers that were forgotten.",
            gauges->reaper_expired);
    counter(buf, "idem_retention_removed_total", "Records that were removed.",
            gauges->reaper_removed);
    gauge(buf, "idem_restored", "1 while the store is an older copy: nothing is sent.",
          gauges->restored);
    gauge(buf, "idem_restored_needs_operator",
          "1 if the restored mode ends only by an operator's word.",
          gauges->restored && gauges->restore_needs_operator);
    counter(buf, "idem_restored_listed_total", "Effects read from providers' listings.",
            gauges->restore_listed);
    gauge(buf, "idem_credentials", "Credentials of the store that count.",
          api->credentials.stored_count);
    gauge(buf, "idem_credentials_crowded", "1 while the store has more than limits.credentials.",
          api->credentials.crowded);
}

static void outbox_print(const struct idem_api_gauges *gauges, struct idem_buf *buf)
{
    counter(buf, "idem_webhooks_delivered_total", "Posts that merchants took.",
            gauges->outbox_delivered);
    counter(buf, "idem_webhooks_failed_total", "Posts that they did not take.",
            gauges->outbox_failed);
    counter(buf, "idem_webhooks_dead_total", "Deliveries given up after the last attempt.",
            gauges->outbox_dead);
    counter(buf, "idem_webhooks_gone_total", "Webhooks disabled because they answered 410.",
            gauges->outbox_gone);
    gauge(buf, "idem_webhooks_in_hand", "Deliveries that are being posted.",
          gauges->outbox_in_hand);
}

/* Known since the first summary; a moment after the start there is none. */
static void store_print(struct idem_api *api, struct idem_buf *buf)
{
    const struct idem_summary *summary = &api->summary;
    if (!api->summary_known) {
        return;
    }
    int64_t now_us = idem_clock_wall_us(api->options.clock);
    family(buf, "idem_intents", "gauge", "Intents that are not final, by state.");
    for (enum idem_intent_state i = IDEM_INTENT_NONE + 1; i < IDEM_INTENT_COUNT; i++) {
        if (!idem_intent_is_final(i)) {
            sample(buf, "idem_intents", "state", idem_intent_state_name(i),
                   (uint64_t)summary->by_state[i]);
        }
    }
    gauge_seconds(buf, "idem_unknown_oldest_seconds",
                  "Since when the oldest intent is unknown or parked; 0: none.",
                  summary->oldest_unknown_us > 0 ? now_us - summary->oldest_unknown_us : 0);
    gauge_seconds(buf, "idem_due_late_seconds", "How late the intent is that was due first.",
                  summary->oldest_due_us > 0 ? now_us - summary->oldest_due_us : 0);
    gauge(buf, "idem_cases_open", "Cases in front of a person.", (uint64_t)summary->cases_open);
    gauge(buf, "idem_deliveries_pending", "Deliveries to webhooks that have not ended.",
          (uint64_t)summary->deliveries_pending);
    gauge(buf, "idem_deliveries_dead", "Deliveries that were given up.",
          (uint64_t)summary->deliveries_dead);
    gauge_seconds(buf, "idem_delivery_oldest_seconds",
                  "Since when the oldest delivery is pending; 0: none is.",
                  summary->oldest_delivery_us > 0 ? now_us - summary->oldest_delivery_us : 0);
    gauge(buf, "idem_stubs", "Effects of a restored copy's gap that no claim has met.",
          (uint64_t)summary->stubs);
    gauge(buf, "idem_store_bytes", "What the store takes on disk.", (uint64_t)summary->bytes);
    gauge(buf, "idem_store_free_bytes", "Of these, free for use again.",
          (uint64_t)summary->bytes_free);
}

static void requests_print(const struct idem_api *api, struct idem_buf *buf)
{
    const struct idem_engine_stats *stats = idem_engine_stats(api->options.engine);
    counter(buf, "idem_requests_total", "Keyed requests that came in.", stats->accepted);
    counter(buf, "idem_claims_total", "Keys that were new.", stats->claimed);
    counter(buf, "idem_replays_total", "Answered with what was there before.", stats->replayed);
    counter(buf, "idem_replays_from_memory_total", "Of these, without the store.",
            stats->replayed_from_memory);
    counter(buf, "idem_operations_answered_total", "Answered with 202.", stats->operations);
    family(buf, "idem_problems_total", "counter", "Problems told that are not stored answers.");
    for (enum idem_problem i = IDEM_PROBLEM_NONE + 1; i < IDEM_PROBLEM_COUNT; i++) {
        sample(buf, "idem_problems_total", "code", idem_problem_entry(i)->code, api->problems[i]);
    }
    family(buf, "idem_intents_ended_total", "counter", "Intents seen to come to a state.");
    for (enum idem_intent_state i = IDEM_INTENT_PARKED; i < IDEM_INTENT_COUNT; i++) {
        sample(buf, "idem_intents_ended_total", "state", idem_intent_state_name(i),
               stats->ended[i]);
    }
    gauge(buf, "idem_requests_inside", "Requests in the engine, waiting ones too.",
          stats->requests);
    gauge(buf, "idem_flights", "Intents on the wire or settling.", stats->flights);
    family(buf, "idem_time_to_truth_seconds", "histogram",
           "Of intents that were unknown: until their end.");
    histogram(buf, "idem_time_to_truth_seconds", "", &stats->time_to_truth_us, &truth_bounds);
}

static void batches_print(const struct idem_api *api, struct idem_buf *buf)
{
    const struct idem_engine_stats *stats = idem_engine_stats(api->options.engine);
    counter(buf, "idem_batches_total", "Batches that the store has answered.", stats->batches);
    family(buf, "idem_commands_total", "counter", "Commands, by what the store answered.");
    for (enum idem_store_answer i = IDEM_STORE_NONE + 1; i < IDEM_STORE_ANSWER_COUNT; i++) {
        sample(buf, "idem_commands_total", "answer", idem_store_answer_name(i), stats->answers[i]);
    }
    gauge(buf, "idem_queue_commands", "Commands that wait for a batch.", stats->queued);
    gauge(buf, "idem_settles_stuck", "Outcomes that the store refused to write when last tried.",
          stats->settles_stuck);
    family(buf, "idem_batch_commands", "histogram", "Commands of a batch.");
    histogram(buf, "idem_batch_commands", "", &stats->batch_commands, &batch_bounds);
    family(buf, "idem_commit_seconds", "histogram", "From handing a batch over to its answer.");
    histogram(buf, "idem_commit_seconds", "", &stats->commit_us, &commit_bounds);
}

static const char *call_name(enum idem_call_kind kind)
{
    switch (kind) {
    case IDEM_CALL_SEND:
        return "send";
    case IDEM_CALL_QUERY:
        return "query";
    case IDEM_CALL_CLOSE:
        return "close";
    case IDEM_CALL_NONE:
    case IDEM_CALL_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* entry="...",call="...", */
static void call_labels(const struct idem_api *api,
                        size_t provider,
                        enum idem_call_kind kind,
                        char ret_labels[LABELS_MAX])
{
    struct idem_str entry = api->options.rules->providers[provider].entry;
    (void)snprintf(ret_labels, LABELS_MAX, "entry=\"%.*s\",call=\"%s\",", (int)entry.len,
                   entry.data, call_name(kind));
}

static void outcomes_print(const struct idem_api *api, size_t provider, struct idem_buf *buf)
{
    const struct idem_call_stats *stats = &idem_engine_call_stats(api->options.engine)[provider];
    char labels[LABELS_MAX];
    for (enum idem_call_kind call = IDEM_CALL_NONE + 1; call < IDEM_CALL_COUNT; call++) {
        call_labels(api, provider, call, labels);
        for (enum idem_outcome_kind i = IDEM_OUTCOME_NONE + 1; i < IDEM_OUTCOME_COUNT; i++) {
            idem_buf_printf(buf, "idem_provider_outcomes_total{%soutcome=\"%s\"} %llu\n", labels,
                            idem_outcome_kind_name(i),
                            (unsigned long long)stats->outcomes[call][i]);
        }
    }
}

static void seconds_print(const struct idem_api *api, size_t provider, struct idem_buf *buf)
{
    const struct idem_call_stats *stats = &idem_engine_call_stats(api->options.engine)[provider];
    char labels[LABELS_MAX];
    for (enum idem_call_kind call = IDEM_CALL_NONE + 1; call < IDEM_CALL_COUNT; call++) {
        call_labels(api, provider, call, labels);
        histogram(buf, "idem_provider_seconds", labels, &stats->us[call], &call_bounds);
    }
}

static void providers_print(const struct idem_api *api, struct idem_buf *buf)
{
    size_t count = api->options.rules->provider_count;
    if (count == 0) {
        return;
    }
    family(buf, "idem_provider_outcomes_total", "counter", "What came back from a provider.");
    for (size_t i = 0; i < count; i++) {
        outcomes_print(api, i, buf);
    }
    family(buf, "idem_provider_seconds", "histogram", "How long a call to a provider took.");
    for (size_t i = 0; i < count; i++) {
        seconds_print(api, i, buf);
    }
}

/* What there is of an entry's budget; those of one name stand together. */
enum budget_figure {
    BUDGET_SENDS = 0,
    BUDGET_RECOVERIES,
    BUDGET_SENDS_MAX,
    BUDGET_RECOVERIES_MAX,
    BUDGET_CLAIMED,
    BUDGET_UNCLAIMED,
    BUDGET_RATE,
    BUDGET_TOKENS,
    BUDGET_PAUSE,
    BUDGET_BREAKER,
    BUDGET_OPENINGS,
    BUDGET_DEFERRED,
    BUDGET_TURNED_AWAY,
    BUDGET_COUNT
};

struct budget_family {
    const char *name;
    const char *type;
    const char *help;
    const char *label; /* Empty: none. */
};

static const struct budget_family budget_families[BUDGET_COUNT] = {
    [BUDGET_SENDS] = { "in_flight", "gauge", "Calls on the wire, or about to be.",
                       ",use=\"send\"" },
    [BUDGET_RECOVERIES] = { "in_flight", NULL, NULL, ",use=\"recovery\"" },
    [BUDGET_SENDS_MAX] = { "in_flight_max", "gauge", "As many as may be; 0: no limit.",
                           ",use=\"send\"" },
    [BUDGET_RECOVERIES_MAX] = { "in_flight_max", NULL, NULL, ",use=\"recovery\"" },
    [BUDGET_CLAIMED] = { "waiting", "gauge", "Who waits for a place on the wire.",
                         ",stage=\"claimed\"" },
    [BUDGET_UNCLAIMED] = { "waiting", NULL, NULL, ",stage=\"unclaimed\"" },
    [BUDGET_RATE] = { "rate_max", "gauge", "Calls a second; 0: no limit.", "" },
    [BUDGET_TOKENS] = { "rate_tokens", "gauge", "Calls that the rate allows now.", "" },
    [BUDGET_PAUSE] = { "pause_milliseconds", "gauge", "How long it wishes to be left alone.", "" },
    [BUDGET_BREAKER] = { "breaker", "gauge", "0: closed, 1: half open, 2: open.", "" },
    [BUDGET_OPENINGS] = { "breaker_openings_total", "counter", "How often it has opened.", "" },
    [BUDGET_DEFERRED] = { "deferred_total", "counter", "Claims that had to wait.", "" },
    [BUDGET_TURNED_AWAY] = { "turned_away_total", "counter", "Requests refused unclaimed.", "" },
};

_Static_assert(IDEM_BREAKER_OPEN == 2, "the help text says so");

static int64_t budget_value(const struct idem_budget_stats *stats, enum budget_figure figure)
{
    const int64_t values[BUDGET_COUNT] = {
        [BUDGET_SENDS] = (int64_t)stats->sends,
        [BUDGET_RECOVERIES] = (int64_t)stats->recoveries,
        [BUDGET_SENDS_MAX] = stats->limits->sends_max,
        [BUDGET_RECOVERIES_MAX] = stats->limits->recoveries_max,
        [BUDGET_CLAIMED] = (int64_t)stats->waiting,
        [BUDGET_UNCLAIMED] = (int64_t)stats->backlog,
        [BUDGET_RATE] = stats->limits->rate_per_s,
        [BUDGET_TOKENS] = stats->tokens,
        [BUDGET_PAUSE] = stats->pause_us / IDEM_US_PER_MS,
        [BUDGET_BREAKER] = stats->breaker,
        [BUDGET_OPENINGS] = (int64_t)stats->openings,
        [BUDGET_DEFERRED] = (int64_t)stats->deferred,
        [BUDGET_TURNED_AWAY] = (int64_t)stats->turned_away,
    };
    return values[figure];
}

static void budgets_print(const struct idem_api *api, struct idem_buf *buf)
{
    const struct idem_rules *rules = api->options.rules;
    for (enum budget_figure i = 0; i < BUDGET_COUNT && rules->provider_count > 0; i++) {
        const struct budget_family *of = &budget_families[i];
        if (of->help != NULL) {
            idem_buf_printf(buf, "# HELP idem_provider_%s %s\n# TYPE idem_provider_%s %s\n",
                            of->name, of->help, of->name, of->type);
        }
        for (size_t j = 0; j < rules->provider_count; j++) {
            struct idem_budget_stats stats = idem_engine_budget_stats(api->options.engine, j);
            struct idem_str entry = rules->providers[j].entry;
            idem_buf_printf(buf, "idem_provider_%s{entry=\"%.*s\"%s} %lld\n", of->name,
                            (int)entry.len, entry.data, of->label,
                            (long long)budget_value(&stats, i));
        }
    }
}

static const char *reconciled_name(enum idem_api_reconciled_verdict verdict)
{
    switch (verdict) {
    case IDEM_API_RECONCILED_AGREED:
        return "agreed";
    case IDEM_API_RECONCILED_LEFT:
        return "left";
    case IDEM_API_RECONCILED_FAILED:
        return "failed";
    case IDEM_API_RECONCILED_LATE:
        return "late";
    case IDEM_API_RECONCILED_NONE:
    case IDEM_API_RECONCILED_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

enum reconciled_figure {
    RECONCILED_VERDICT = 0,
    RECONCILED_ENDED,
    RECONCILED_DONE,
    RECONCILED_COUNT
};

static const struct {
    const char *name;
    const char *help;
} reconciled_gauges[RECONCILED_COUNT] = {
    [RECONCILED_VERDICT] = { "idem_reconciliation_verdict",
                             "Of the last one: 1: agreed, 2: left, 3: failed, 4: late; 0: none." },
    [RECONCILED_ENDED] = { "idem_reconciliation_ended_seconds",
                           "Unix time when the last one ended; 0: none has." },
    [RECONCILED_DONE] = { "idem_reconciliation_done_seconds",
                          "Unix time up to which the entry is reconciled; 0: not yet." },
};

_Static_assert(IDEM_API_RECONCILED_LATE == 4, "the help text says so");

static int64_t reconciled_value(const struct idem_api_reconciled *reconciled,
                                enum reconciled_figure figure)
{
    const int64_t values[RECONCILED_COUNT] = {
        [RECONCILED_VERDICT] = reconciled->verdict,
        [RECONCILED_ENDED] = reconciled->ended_us / IDEM_US_PER_SECOND,
        [RECONCILED_DONE] = reconciled->done_us / IDEM_US_PER_SECOND,
    };
    return values[figure];
}

static void reconciled_counts_print(const struct idem_api *api,
                                    size_t provider,
                                    struct idem_buf *buf)
{
    struct idem_str entry = api->options.rules->providers[provider].entry;
    for (enum idem_api_reconciled_verdict i = IDEM_API_RECONCILED_NONE + 1;
         i < IDEM_API_RECONCILED_COUNT; i++) {
        idem_buf_printf(buf, "idem_reconciliations_total{entry=\"%.*s\",verdict=\"%s\"} %llu\n",
                        (int)entry.len, entry.data, reconciled_name(i),
                        (unsigned long long)api->gauges.reconciled[provider].counts[i]);
    }
}

static void reconciled_gauge_print(const struct idem_api *api,
                                   enum reconciled_figure figure,
                                   struct idem_buf *buf)
{
    const char *name = reconciled_gauges[figure].name;
    family(buf, name, "gauge", reconciled_gauges[figure].help);
    for (size_t i = 0; i < api->options.rules->provider_count; i++) {
        const struct idem_api_reconciled *reconciled = &api->gauges.reconciled[i];
        struct idem_str entry = api->options.rules->providers[i].entry;
        idem_buf_printf(buf, "%s{entry=\"%.*s\"} %lld\n", name, (int)entry.len, entry.data,
                        (long long)reconciled_value(reconciled, figure));
    }
}

/* Those that the service ran by itself. */
static void reconciled_print(const struct idem_api *api, struct idem_buf *buf)
{
    if (api->gauges.reconciled == NULL) {
        return;
    }
    family(buf, "idem_reconciliations_total", "counter", "Those by itself that have ended.");
    for (size_t i = 0; i < api->options.rules->provider_count; i++) {
        reconciled_counts_print(api, i, buf);
    }
    for (enum reconciled_figure i = 0; i < RECONCILED_COUNT; i++) {
        reconciled_gauge_print(api, i, buf);
    }
}

static void callbacks_print(const struct idem_api *api, struct idem_buf *buf)
{
    family(buf, "idem_callbacks_total", "counter", "Events of providers, as they were judged.");
    for (int i = 0; i < IDEM_CALLBACK_VERDICT_COUNT; i++) {
        sample(buf, "idem_callbacks_total", "verdict",
               idem_callback_verdict_name((enum idem_callback_verdict)i), api->callbacks[i]);
    }
    counter(buf, "idem_callbacks_crowded_total", "Not judged, for want of a place.",
            api->callbacks_crowded);
    counter(buf, "idem_callbacks_matched_total", "Durable, and about an operation here.",
            api->callbacks_matched);
    counter(buf, "idem_callbacks_unmatched_total", "Durable, and about none.",
            api->callbacks_unmatched);
    counter(buf, "idem_callbacks_later_total", "Not durable: the provider must say it again.",
            api->callbacks_not_durable);
}

static const char *refusal_name(enum idem_net_refusal refusal)
{
    switch (refusal) {
    case IDEM_NET_BAD_REQUEST:
        return "bad-request";
    case IDEM_NET_HEAD_SLOW:
        return "head-slow";
    case IDEM_NET_BODY_SLOW:
        return "body-slow";
    case IDEM_NET_BODY_TOO_LARGE:
        return "body-too-large";
    case IDEM_NET_HEAD_TOO_LARGE:
        return "head-too-large";
    case IDEM_NET_NOT_SUPPORTED:
        return "not-supported";
    case IDEM_NET_CROWDED:
        return "crowded";
    case IDEM_NET_REFUSAL_NONE:
    case IDEM_NET_REFUSAL_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void server_print(const struct idem_api *api, struct idem_buf *buf)
{
    if (api->server == NULL) {
        return;
    }
    const struct idem_server_stats stats = idem_server_stats(api->server);
    gauge(buf, "idem_connections", "Connections that are open.", stats.connections);
    counter(buf, "idem_connections_total", "Connections that came in.", stats.accepted);
    counter(buf, "idem_http_requests_total", "Complete HTTP requests.", stats.requests);
    counter(buf, "idem_callers_gone_total", "Callers who left before their answer.", stats.gone);
    family(buf, "idem_refused_total", "counter", "What was refused before it was a request.");
    for (enum idem_net_refusal i = IDEM_NET_REFUSAL_NONE + 1; i < IDEM_NET_REFUSAL_COUNT; i++) {
        sample(buf, "idem_refused_total", "reason", refusal_name(i), stats.refused[i]);
    }
}

size_t idem_metrics_max(const struct idem_rules *rules)
{
    return FIXED_MAX + rules->provider_count * PROVIDER_MAX;
}

struct idem_str idem_metrics_print(struct idem_api *api)
{
    struct idem_buf buf;
    idem_buf_init(&buf, api->metrics, api->metrics_max);
    program_print(api, &buf);
    store_print(api, &buf);
    outbox_print(&api->gauges, &buf);
    requests_print(api, &buf);
    batches_print(api, &buf);
    providers_print(api, &buf);
    budgets_print(api, &buf);
    reconciled_print(api, &buf);
    callbacks_print(api, &buf);
    server_print(api, &buf);
    IDEM_ASSERT(!buf.full);
    return idem_buf_str(&buf);
}
