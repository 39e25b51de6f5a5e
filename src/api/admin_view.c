/*
 * Written for a person who was woken up: what it is, what happens next by itself and when, and why
 * it stands where it stands. Words are constants of this file; texts are the store's.
 */
#include "api/admin_view.h"

#include "api/member.h"
#include "base/bug.h"
#include "base/currency.h"
#include "base/money.h"

static void add(struct idem_buf *buf, const char *text)
{
    idem_buf_add(buf, idem_str_from(text));
}

/* `name` and the amount as decimal text, or null without a currency. */
static void add_amount(struct idem_buf *buf,
                       const char *name,
                       int64_t minor,
                       struct idem_str currency)
{
    int exponent = idem_currency_exponent(currency);
    add(buf, name);
    if (exponent < 0 || minor < 0) {
        add(buf, "null");
        return;
    }
    idem_buf_add_char(buf, '"');
    idem_amount_print(minor, exponent, buf);
    idem_buf_add_char(buf, '"');
}

static void add_uid(struct idem_buf *buf, const char *name, struct idem_uid id)
{
    idem_member_link(buf, name, "", id);
}

static void add_bool(struct idem_buf *buf, const char *name, bool value)
{
    add(buf, name);
    add(buf, value ? "true" : "false");
}

/* ---- what happens next, and why ---- */

struct outlook {
    enum idem_intent_state state;
    enum idem_step step;
    bool acting; /* Somebody has a lease that lives. */
    int64_t due_us;
    uint32_t send_count;
    enum idem_case_kind opened; /* NONE: no open case. */
};

static const char *step_words(const struct outlook *look)
{
    switch (look->step) {
    case IDEM_STEP_SEND:
        if (look->state == IDEM_INTENT_CLAIMED && look->send_count == 0) {
            return "send it";
        }
        if (look->acting && look->state != IDEM_INTENT_CLAIMED) {
            return "wait for the answer";
        }
        /* A send whose lease has ended is asked about, never repeated unasked. */
        return look->state == IDEM_INTENT_DISPATCHED ? "ask the provider" : "send again";
    case IDEM_STEP_ASK:
        return "ask the provider";
    case IDEM_STEP_CLOSE:
        return "close at the provider";
    case IDEM_STEP_NONE:
    case IDEM_STEP_COUNT:
        break;
    }
    return "wait for a person";
}

/* NULL: nothing. */
static const char *next_words(const struct outlook *look)
{
    switch (look->state) {
    case IDEM_INTENT_CLAIMED:
    case IDEM_INTENT_DISPATCHED:
    case IDEM_INTENT_UNKNOWN:
        return step_words(look);
    case IDEM_INTENT_RELEASED:
        return "wait for its caller";
    case IDEM_INTENT_PARKED:
        return "wait for a person";
    case IDEM_INTENT_SUCCEEDED:
    case IDEM_INTENT_FAILED:
        return look->opened == IDEM_CASE_NONE ? NULL : "wait for a person";
    case IDEM_INTENT_NONE:
    case IDEM_INTENT_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void next_print(const struct outlook *look, struct idem_buf *buf)
{
    const char *words = next_words(look);
    if (words == NULL) {
        add(buf, ",\"next\":null");
        return;
    }
    add(buf, ",\"next\":{\"step\":\"");
    add(buf, words);
    idem_member_time(buf, "\",\"at\":", idem_intent_is_open(look->state) ? look->due_us : 0);
    add(buf, "}");
}

static const char *case_words(enum idem_case_kind kind)
{
    switch (kind) {
    case IDEM_CASE_MISMATCH:
        return "The provider did it with another id, amount or currency than was asked.";
    case IDEM_CASE_CONTRADICTION:
        return "The provider's word contradicts the end that is recorded here.";
    case IDEM_CASE_UNRESOLVED:
        return "Nobody could say what became of it, and nothing that is safe to do is left.";
    case IDEM_CASE_NO_ROOM:
        return "It succeeded late, but its order number or its sum is taken.";
    case IDEM_CASE_REVERSED:
        return "It was done, and the provider has taken it back since.";
    case IDEM_CASE_MISSING:
        return "It is done here, and the provider's complete listing does not have it.";
    case IDEM_CASE_DUPLICATE:
        return "The provider's listing has it more than once: money may have moved twice.";
    case IDEM_CASE_NONE:
    case IDEM_CASE_KIND_COUNT:
        break;
    }
    return "A person must look at it.";
}

static const char *why_words(const struct outlook *look)
{
    if (look->opened != IDEM_CASE_NONE || look->state == IDEM_INTENT_PARKED) {
        return case_words(look->opened);
    }
    switch (look->state) {
    case IDEM_INTENT_CLAIMED:
        return look->send_count == 0 ? "Nothing was sent yet."
                                     : "What was sent is proven not to have been executed.";
    case IDEM_INTENT_DISPATCHED:
        return "It was sent, and the answer may still come.";
    case IDEM_INTENT_UNKNOWN:
        return "It was sent, and no final answer came: it may have happened.";
    case IDEM_INTENT_RELEASED:
        return "It was provably not executed; the same request may run again.";
    case IDEM_INTENT_SUCCEEDED:
        return "It happened.";
    case IDEM_INTENT_FAILED:
        return "It did not happen.";
    case IDEM_INTENT_PARKED:
    case IDEM_INTENT_NONE:
    case IDEM_INTENT_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void why_print(const struct outlook *look, struct idem_buf *buf)
{
    add(buf, ",\"why\":\"");
    add(buf, why_words(look));
    add(buf, "\"");
}

/* ---- lists ---- */

static void entry_case_print(const struct idem_case *opened, struct idem_buf *buf)
{
    if (opened->kind == IDEM_CASE_NONE) {
        add(buf, ",\"case\":null");
        return;
    }
    add_uid(buf, ",\"case\":{\"id\":", opened->id);
    add(buf, ",\"kind\":\"");
    add(buf, idem_case_kind_name(opened->kind));
    idem_member_time(buf, "\",\"opened\":", opened->opened_us);
    idem_member_text(buf, ",\"detail\":", opened->detail);
    idem_member_time(buf, ",\"decided\":", opened->decided_us);
    idem_member_text(buf, ",\"decided_by\":", opened->decided_by);
    idem_member_text(buf, ",\"decision\":", opened->decision);
    add(buf, "}");
}

static void entry_print(const struct idem_entry *entry, int64_t now_us, struct idem_buf *buf)
{
    const struct outlook look = {
        .state = entry->state,
        .step = entry->step,
        .acting = entry->lease_end_us > now_us,
        .due_us = entry->due_us,
        .send_count = entry->send_count,
        .opened = entry->opened.decided_us == 0 ? entry->opened.kind : IDEM_CASE_NONE,
    };
    add_uid(buf, "{\"id\":", entry->id);
    idem_member_text(buf, ",\"principal\":", entry->principal);
    add(buf, ",\"endpoint\":\"");
    add(buf, idem_endpoint_name(entry->endpoint));
    add(buf, "\",\"state\":\"");
    add(buf, idem_operation_state_name(entry->state));
    idem_member_time(buf, "\",\"created\":", entry->created_us);
    idem_member_time(buf, ",\"unknown_since\":", entry->unknown_since_us);
    idem_member_time(buf, ",\"finished\":", entry->finished_us);
    next_print(&look, buf);
    idem_member_number(buf, ",\"sends\":", entry->send_count);
    idem_member_text(buf, ",\"provider\":", entry->entry);
    add_amount(buf, ",\"amount\":", entry->amount_minor, entry->currency);
    idem_member_text(buf, ",\"currency\":", entry->currency);
    idem_member_link(buf, ",\"payment\":", "/v1/payments/", entry->payment_id);
    entry_case_print(&entry->opened, buf);
    why_print(&look, buf);
    add(buf, "}");
}

/* The end of a page: the cursor of the next one is the last row's. */
void idem_admin_next_page_print(bool more, int64_t last_row, struct idem_buf *buf)
{
    if (!more) {
        add(buf, "],\"next\":null}\n");
        return;
    }
    add(buf, "],\"next\":\"");
    idem_buf_add_i64(buf, last_row);
    add(buf, "\"}\n");
}

void idem_admin_list_print(const struct idem_read *read, int64_t now_us, struct idem_buf *buf)
{
    int64_t last_row = 0;
    add(buf, read->kind == IDEM_READ_CASES ? "{\"cases\":[" : "{\"operations\":[");
    for (size_t i = 0; i < read->entry_count; i++) {
        add(buf, i > 0 ? "," : "");
        entry_print(&read->entries[i], now_us, buf);
        last_row = read->entries[i].row;
    }
    idem_admin_next_page_print(read->more, last_row, buf);
}

/* ---- one operation ---- */

static void effect_print(const struct idem_effect *effect, struct idem_buf *buf)
{
    if (effect->kind == IDEM_EFFECT_KIND_NONE) {
        add(buf, ",\"effect\":null");
        return;
    }
    idem_member_text(buf, ",\"effect\":{\"id\":", effect->id);
    add(buf, ",\"kind\":\"");
    add(buf, idem_effect_kind_name(effect->kind));
    idem_member_text(buf, "\",\"provider\":", effect->entry);
    idem_member_text(buf, ",\"account\":", effect->account);
    idem_member_text(buf, ",\"region\":", effect->region);
    add_amount(buf, ",\"amount\":", effect->amount_minor, effect->currency);
    idem_member_text(buf, ",\"currency\":", effect->currency);
    idem_member_text(buf, ",\"reference\":", effect->reference);
    add(buf, "}");
}

static void cases_print(const struct idem_admin_operation *view, struct idem_buf *buf)
{
    add(buf, ",\"cases\":[");
    for (size_t i = 0; i < view->case_count; i++) {
        const struct idem_case *one = &view->cases[i];
        add_uid(buf, i > 0 ? ",{\"id\":" : "{\"id\":", one->id);
        add(buf, ",\"kind\":\"");
        add(buf, idem_case_kind_name(one->kind));
        idem_member_time(buf, "\",\"opened\":", one->opened_us);
        idem_member_text(buf, ",\"detail\":", one->detail);
        idem_member_time(buf, ",\"decided\":", one->decided_us);
        idem_member_text(buf, ",\"decided_by\":", one->decided_by);
        idem_member_text(buf, ",\"decision\":", one->decision);
        add(buf, "}");
    }
    add(buf, "]");
}

static enum idem_case_kind newest_open(const struct idem_admin_operation *view)
{
    for (size_t i = 0; i < view->case_count; i++) {
        if (view->cases[i].decided_us == 0) {
            return view->cases[i].kind;
        }
    }
    return IDEM_CASE_NONE;
}

void idem_admin_operation_print(const struct idem_admin_operation *view, struct idem_buf *buf)
{
    const struct idem_intent *intent = view->operation.intent;
    const struct outlook look = {
        .state = intent->state,
        .step = intent->step,
        .acting = intent->lease_end_us > view->now_us,
        .due_us = intent->due_us,
        .send_count = intent->send_count,
        .opened = newest_open(view),
    };
    idem_operation_print_open(&view->operation, buf);
    idem_member_text(buf, ",\"principal\":", intent->principal);
    next_print(&look, buf);
    why_print(&look, buf);
    effect_print(&intent->effect, buf);
    cases_print(view, buf);
    add(buf, "}\n");
}

/* ---- summary and restored mode ---- */

/* The bound that `percent` of the values do not pass, as seconds. */
static void quantile_print(const struct idem_histogram *histogram,
                           uint64_t percent,
                           struct idem_buf *buf)
{
    size_t bucket = 0;
    while (bucket + 1 < IDEM_HISTOGRAM_BUCKETS &&
           idem_histogram_up_to(histogram, bucket) * 100 < histogram->count * percent) {
        bucket += 1;
    }
    int64_t ms = histogram->count == 0 ? 0 : (INT64_C(1) << bucket) / IDEM_US_PER_MS;
    idem_buf_printf(buf, "\"%lld.%03lld\"", (long long)(ms / 1000), (long long)(ms % 1000));
}

void idem_admin_summary_print(const struct idem_summary *summary,
                              const struct idem_histogram *time_to_truth_us,
                              bool restored,
                              struct idem_buf *buf)
{
    const int64_t *by_state = summary->by_state;
    idem_member_number(buf, "{\"operations\":{\"processing\":",
                       by_state[IDEM_INTENT_CLAIMED] + by_state[IDEM_INTENT_DISPATCHED]);
    idem_member_number(buf, ",\"unknown\":", by_state[IDEM_INTENT_UNKNOWN]);
    idem_member_number(buf, ",\"parked\":", by_state[IDEM_INTENT_PARKED]);
    idem_member_number(buf, ",\"released\":", by_state[IDEM_INTENT_RELEASED]);
    idem_member_time(buf, "},\"unknown_since\":", summary->oldest_unknown_us);
    idem_member_time(buf, ",\"due\":", summary->oldest_due_us);
    idem_member_number(buf, ",\"cases_open\":", summary->cases_open);
    idem_member_number(buf, ",\"stubs\":", summary->stubs);
    idem_member_number(buf, ",\"store_bytes\":", summary->bytes);
    idem_member_number(buf, ",\"store_free_bytes\":", summary->bytes_free);
    idem_member_number(buf, ",\"time_to_truth\":{\"count\":", (int64_t)time_to_truth_us->count);
    add(buf, ",\"p50_s\":");
    quantile_print(time_to_truth_us, 50, buf);
    add(buf, ",\"p99_s\":");
    quantile_print(time_to_truth_us, 99, buf);
    add_bool(buf, "},\"restored\":", restored);
    add(buf, "}\n");
}

void idem_admin_restored_print(const struct idem_api_gauges *gauges, struct idem_buf *buf)
{
    add_bool(buf, "{\"restored\":", gauges->restored);
    add_bool(buf, ",\"needs_operator\":", gauges->restored && gauges->restore_needs_operator);
    idem_member_time(buf, ",\"from\":", gauges->restore_from_us);
    idem_member_time(buf, ",\"begins\":", gauges->restore_begins_us);
    idem_member_number(buf, ",\"listed\":", (int64_t)gauges->restore_listed);
    idem_member_number(buf, ",\"failures\":", (int64_t)gauges->restore_failures);
    add(buf, "}\n");
}

/* ---- credentials ---- */

static void role_print(enum idem_role role, struct idem_buf *buf)
{
    add(buf, ",\"role\":\"");
    add(buf, idem_role_name(role));
    add(buf, "\",\"providers\":[");
}

static void credential_print(const struct idem_credential_row *row, struct idem_buf *buf)
{
    add_uid(buf, "{\"id\":", row->id);
    idem_member_text(buf, ",\"source\":\"store\",\"principal\":", row->principal);
    role_print(row->role, buf);
    struct idem_str rest = row->providers;
    bool first = true;
    while (rest.len > 0) {
        idem_member_text(buf, first ? "" : ",", idem_str_next(&rest, ' '));
        first = false;
    }
    idem_member_text(buf, "],\"label\":", row->label);
    idem_member_time(buf, ",\"created\":", row->created_us);
    idem_member_text(buf, ",\"created_by\":", row->created_by);
    idem_member_time(buf, ",\"revoked\":", row->revoked_us);
    idem_member_text(buf, ",\"revoked_by\":", row->revoked_by);
    add(buf, "}");
}

void idem_admin_credential_print(const struct idem_credential_row *row, struct idem_buf *buf)
{
    credential_print(row, buf);
    add(buf, "\n");
}

static void configured_print(const struct idem_caller *caller,
                             const struct idem_rules *rules,
                             struct idem_buf *buf)
{
    idem_member_text(buf, "{\"id\":null,\"source\":\"configuration\",\"principal\":",
                     idem_account_principal(caller->account));
    role_print(caller->role, buf);
    const char *before = "";
    if (caller->every_provider) {
        add(buf, "\"*\"");
    }
    for (size_t i = 0; i < rules->provider_count && !caller->every_provider; i++) {
        if ((caller->providers >> i & 1U) != 0) {
            idem_member_text(buf, before, rules->providers[i].entry);
            before = ",";
        }
    }
    add(buf,
        "],\"label\":null,\"created\":null,\"created_by\":null,\"revoked\":null"
        ",\"revoked_by\":null}");
}

void idem_admin_credentials_print(const struct idem_read *read,
                                  const struct idem_credentials *configured,
                                  struct idem_buf *buf)
{
    const char *before = "";
    int64_t last_row = 0;
    add(buf, "{\"credentials\":[");
    for (size_t i = 0; configured != NULL && i < configured->configured_count; i++) {
        add(buf, before);
        configured_print(&configured->configured[i], configured->rules, buf);
        before = ",";
    }
    for (size_t i = 0; i < read->credential_count; i++) {
        add(buf, before);
        credential_print(&read->credentials[i], buf);
        last_row = read->credentials[i].row;
        before = ",";
    }
    idem_admin_next_page_print(read->more, last_row, buf);
}
