/*
 * The operators' routes for reconciliation: both sides, page by page, and what came of comparing
 * them.
 *
 *     effects    read ------------------------------------------------> answer
 *     listings   port, one page at a time ----------------------------> answer
 *     evidence   one task for each effect -> a read of each one's cases -> answer
 *
 * Evidence is the provider's word like any other: the core decides what it settles, what opens a
 * case and what is old news, on the one path. The answer leaves when everything in the request is
 * durable, and says of each effect how it stands then; whoever loses the answer sends the same
 * again, which changes nothing any more.
 *
 * Both have a place of their own, one each: a reconciliation is one conversation, and a second one
 * beside it waits. While a restored copy learns what it has missed, the port's listing is that
 * worker's.
 */
#include "api/admin_internal.h"

#include <string.h>

#include "api/member.h"
#include "api/query.h"
#include "base/bug.h"
#include "base/currency.h"
#include "base/date.h"
#include "base/json.h"
#include "base/money.h"

#define STATUS_OK 200

/* ---- a period ---- */

enum {
    PERIOD_PROVIDER = 0,
    PERIOD_FROM,
    PERIOD_TO,
    PERIOD_CURSOR,
    PERIOD_COUNT
};

struct period {
    const struct idem_provider_rules *provider;
    int64_t from_us;
    int64_t to_us;
    struct idem_str cursor; /* In the visit's memory; empty: the first page. */
};

static bool provider_find(const struct idem_api *api,
                          struct idem_str entry,
                          const struct idem_provider_rules **ret_provider,
                          struct idem_fault *ret_fault)
{
    *ret_provider = idem_rules_provider(api->options.rules, entry);
    return *ret_provider != NULL || idem_fault_set(ret_fault, IDEM_PROBLEM_NOT_FOUND,
                                                   "No such provider entry is configured here.");
}

static bool period_read(struct idem_api *api,
                        struct idem_admin_visit *visit,
                        const struct idem_net_request *request,
                        struct period *ret_period,
                        struct idem_fault *ret_fault)
{
    static const struct idem_str names[PERIOD_COUNT] = {
        [PERIOD_PROVIDER] = { "provider", 8 },
        [PERIOD_FROM] = { "from", 4 },
        [PERIOD_TO] = { "to", 2 },
        [PERIOD_CURSOR] = { "cursor", 6 },
    };
    const struct idem_query_members members = { .names = names, .count = PERIOD_COUNT };
    struct idem_str values[PERIOD_COUNT] = { { 0 } };
    if (!idem_query_read_some(request->query, &members, &visit->kept, values, ret_fault)) {
        return false;
    }
    bool readable = idem_date_parse_rfc3339(values[PERIOD_FROM], &ret_period->from_us) &&
                    idem_date_parse_rfc3339(values[PERIOD_TO], &ret_period->to_us);
    if (!readable || ret_period->from_us >= ret_period->to_us) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID,
                              "\"from\" and \"to\" must be times such as 2026-11-29T00:00:00Z, the "
                              "first before the second.");
    }
    ret_period->cursor = values[PERIOD_CURSOR];
    return provider_find(api, values[PERIOD_PROVIDER], &ret_period->provider, ret_fault);
}

static void money_print(struct idem_buf *buf, int64_t amount_minor, struct idem_str currency)
{
    int exponent = idem_currency_exponent(currency);
    if (exponent < 0 || amount_minor < 0) {
        idem_member_text(buf, ",\"amount\":", IDEM_STR(""));
    } else {
        idem_buf_add(buf, IDEM_STR(",\"amount\":\""));
        idem_amount_print(amount_minor, exponent, buf);
        idem_buf_add_char(buf, '"');
    }
    idem_member_text(buf, ",\"currency\":", currency);
}

/* ---- effects ---- */

bool idem_admin_effects_begin(struct idem_api *api,
                              struct idem_admin_visit *visit,
                              const struct idem_net_request *request,
                              struct idem_fault *ret_fault)
{
    struct period period = { .provider = NULL };
    if (!period_read(api, visit, request, &period, ret_fault) ||
        !idem_admin_cursor_read(period.cursor, &visit->read.after_row, ret_fault)) {
        return false;
    }
    visit->read.entry = period.provider->entry;
    visit->read.from_us = period.from_us;
    visit->read.to_us = period.to_us;
    idem_admin_read_start(api, visit, IDEM_READ_EFFECTS);
    return true;
}

static void effect_print(struct idem_buf *buf, const struct idem_effect_line *line)
{
    idem_buf_add(buf, IDEM_STR("{\"id\":\""));
    idem_uid_print(line->id, buf);
    idem_buf_add_char(buf, '"');
    idem_member_text(buf, ",\"effect_id\":", line->effect_id);
    idem_member_text(buf, ",\"kind\":", idem_str_from(idem_effect_kind_name(line->kind)));
    idem_member_text(buf, ",\"state\":", idem_str_from(idem_operation_state_name(line->state)));
    money_print(buf, line->amount_minor, line->currency);
    idem_member_text(buf, ",\"account\":", line->account);
    idem_member_text(buf, ",\"region\":", line->region);
    idem_member_text(buf, ",\"order_no\":", line->order_no);
    idem_member_text(buf, ",\"reference\":", line->reference);
    idem_member_time(buf, ",\"created\":", line->created_us);
    idem_member_time(buf, ",\"finished\":", line->finished_us);
    idem_buf_add_char(buf, '}');
}

void idem_admin_effects_read(struct idem_api *api, struct idem_admin_visit *visit)
{
    const struct idem_read *read = &visit->read;
    const struct idem_provider_rules *provider =
        idem_rules_provider(api->options.rules, read->entry);
    struct idem_buf *buf = idem_admin_answer_begin(api, STATUS_OK);
    idem_buf_add(buf, IDEM_STR("{\"effects\":["));
    for (size_t i = 0; i < read->effect_count; i++) {
        idem_buf_add(buf, i > 0 ? IDEM_STR(",") : IDEM_STR(""));
        effect_print(buf, &read->effects[i]);
    }
    idem_member_text(buf, "],\"account\":", provider->account);
    idem_member_text(buf, ",\"region\":", provider->region);
    idem_buf_add(buf, IDEM_STR(",\"next\":"));
    if (read->more && read->effect_count > 0) {
        idem_buf_add_char(buf, '"');
        idem_buf_add_i64(buf, read->effects[read->effect_count - 1].row);
        idem_buf_add(buf, IDEM_STR("\"}\n"));
    } else {
        idem_buf_add(buf, IDEM_STR("null}\n"));
    }
    idem_admin_end(api, visit);
}

/* ---- listings ---- */

static bool cursor_keep(struct idem_str text,
                        struct idem_listing *listing,
                        struct idem_fault *ret_fault)
{
    if (text.len >= sizeof(listing->cursor) || memchr(text.data, '\0', text.len) != NULL) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID,
                              "\"cursor\" is not one that a page gave.");
    }
    memcpy(listing->cursor, text.data, text.len);
    listing->cursor[text.len] = '\0';
    return true;
}

bool idem_admin_listings_begin(struct idem_api *api,
                               struct idem_admin_visit *visit,
                               const struct idem_net_request *request,
                               struct idem_fault *ret_fault)
{
    struct idem_listing_page *page = api->page;
    struct period period = { .provider = NULL };
    if (!period_read(api, visit, request, &period, ret_fault)) {
        return false;
    }
    bool listed = period.provider->listing || period.provider->comparing;
    if (!listed || api->options.port == NULL) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_NOT_FOUND,
                              "This provider entry has no listing: reconcile with a statement.");
    }
    if (api->gauges.restored || api->draining || page->visit != NULL) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_UNAVAILABLE,
                              "Another listing is being read, or the service is stopping.");
    }
    if (period.cursor.len > 0) {
        if (!cursor_keep(period.cursor, &page->listing, ret_fault)) {
            return false;
        }
    } else {
        page->listing.cursor[0] = '\0';
    }
    page->listing.entry = period.provider->entry;
    page->listing.from_us = period.from_us;
    page->listing.to_us = period.to_us;
    if (idem_port_list(api->options.port, &page->listing) != IDEM_OK) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_UNAVAILABLE,
                              "There is no room for a listing now.");
    }
    page->visit = visit;
    return true;
}

static void listed_print(struct idem_buf *buf, const struct idem_listed *listed)
{
    idem_member_text(buf, "{\"effect_id\":", listed->effect_id);
    money_print(buf, listed->amount_minor, listed->currency);
    idem_member_text(buf, ",\"order_no\":", listed->order_no);
    idem_member_text(buf, ",\"payment_id\":", listed->payment_effect_id);
    idem_member_text(buf, ",\"reference\":", listed->reference);
    idem_member_time(buf, ",\"happened\":", listed->happened_us);
    idem_buf_add_char(buf, '}');
}

static void page_answer(struct idem_api *api, struct idem_admin_visit *visit)
{
    const struct idem_listing *listing = &api->page->listing;
    const struct idem_provider_rules *provider =
        idem_rules_provider(api->options.rules, listing->entry);
    struct idem_buf *buf = idem_admin_answer_begin(api, STATUS_OK);
    idem_buf_add(buf, IDEM_STR("{\"effects\":["));
    for (size_t i = 0; i < listing->count; i++) {
        idem_buf_add(buf, i > 0 ? IDEM_STR(",") : IDEM_STR(""));
        listed_print(buf, &listing->listed[i]);
    }
    idem_buf_add(buf, provider->listing ? IDEM_STR("],\"complete\":true")
                                        : IDEM_STR("],\"complete\":false"));
    idem_member_text(buf,
                     ",\"next\":", listing->more ? idem_str_from(listing->cursor) : IDEM_STR(""));
    idem_buf_add(buf, IDEM_STR("}\n"));
    idem_admin_end(api, visit);
}

static void page_step(struct idem_api *api)
{
    struct idem_list done = { .count = 0 };
    struct idem_admin_visit *visit = api->page->visit;
    if (visit == NULL) {
        return;
    }
    idem_port_reap_listings(api->options.port, &done);
    if (idem_list_pop(&done) == NULL) {
        return;
    }
    IDEM_ASSERT(done.count == 0); /* The port has one at a time, and this one was ours. */
    api->page->visit = NULL;
    if (api->page->listing.answered) {
        page_answer(api, visit);
        return;
    }
    idem_admin_refuse(api, visit, IDEM_PROBLEM_UNAVAILABLE,
                      "The provider did not answer with a listing: it may be down, or still be "
                      "deciding on something in this time.");
}

void idem_reconcile_drain(struct idem_api *api)
{
    if (api->page->visit != NULL) { /* A stop does not wait for a provider. */
        idem_port_cancel_listing(api->options.port, &api->page->listing);
    }
}

/* ---- evidence: the body ---- */

enum {
    MEMBER_FOUND = 0,
    MEMBER_ID,
    MEMBER_AMOUNT,
    MEMBER_CURRENCY,
    MEMBER_ORDER_NO,
    MEMBER_PAYMENT_ID,
    MEMBER_REFERENCE,
    MEMBER_HAPPENED,
    MEMBER_COUNT
};

#define MEMBER_MAX IDEM_REFERENCE_MAX /* The longest there is. */

static const struct {
    struct idem_str name;
    size_t max;
} members[MEMBER_COUNT] = {
    [MEMBER_FOUND] = { { "found", 5 }, 16 },
    [MEMBER_ID] = { { "id", 2 }, IDEM_EFFECT_ID_LEN },
    [MEMBER_AMOUNT] = { { "amount", 6 }, IDEM_AMOUNT_TEXT_MAX },
    [MEMBER_CURRENCY] = { { "currency", 8 }, IDEM_CURRENCY_LEN },
    [MEMBER_ORDER_NO] = { { "order_no", 8 }, IDEM_ORDER_NO_MAX },
    [MEMBER_PAYMENT_ID] = { { "payment_id", 10 }, IDEM_EFFECT_ID_LEN },
    [MEMBER_REFERENCE] = { { "reference", 9 }, IDEM_REFERENCE_MAX },
    [MEMBER_HAPPENED] = { { "happened", 8 }, 40 },
};

static bool refuse(struct idem_fault *ret_fault, const char *what)
{
    return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID, "%s", what);
}

/* A string of at most `max` bytes, unescaped; false: it is none, or `kept` is full. */
static bool string_read(const struct idem_json *json,
                        size_t index,
                        size_t max,
                        struct idem_buf *kept,
                        struct idem_str *ret_text)
{
    const size_t escaped_max = 6; /* \u0061 is one byte. */
    const struct idem_json_token *token = &json->tokens[index];
    if (token->kind != IDEM_JSON_STRING || token->raw.len > max * escaped_max) {
        return false;
    }
    *ret_text = token->raw;
    if (token->escaped) {
        size_t from = kept->len;
        idem_json_unescape(json, index, kept);
        *ret_text = idem_str_slice(idem_buf_str(kept), from, kept->len - from);
    }
    return !kept->full && ret_text->len <= max;
}

/* The texts of one effect; what is not there stays empty. */
static bool texts_read(const struct idem_json *json,
                       size_t object,
                       struct idem_buf *kept,
                       struct idem_str ret_texts[MEMBER_COUNT],
                       struct idem_fault *ret_fault)
{
    size_t known = 0;
    if (json->tokens[object].kind != IDEM_JSON_OBJECT) {
        return refuse(ret_fault, "\"effects\" must be a list of objects.");
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        size_t index = idem_json_member(json, object, members[i].name);
        ret_texts[i] = (struct idem_str){ .data = NULL };
        if (index == 0) {
            continue;
        }
        known += 1;
        bool readable = string_read(json, index, members[i].max, kept, &ret_texts[i]);
        if (kept->full) {
            return refuse(ret_fault,
                          "The effects have too much text with escapes in it: tell "
                          "fewer of them at once.");
        }
        if (!readable) {
            return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                                  "\"%.*s\" of an effect must be a string of at most %zu bytes.",
                                  (int)members[i].name.len, members[i].name.data, members[i].max);
        }
    }
    return known == json->tokens[object].count ||
           refuse(ret_fault, "An effect has a member that is not known here.");
}

static bool found_read(struct idem_str text, enum idem_found *ret_found)
{
    static const char *const names[IDEM_FOUND_COUNT] = {
        [IDEM_FOUND_NONE] = "",         [IDEM_FOUND_LISTED] = "listed",
        [IDEM_FOUND_AGAIN] = "again",   [IDEM_FOUND_MISSING] = "missing",
        [IDEM_FOUND_FAILED] = "failed", [IDEM_FOUND_REVERSED] = "reversed",
    };
    for (enum idem_found i = IDEM_FOUND_NONE + 1; i < IDEM_FOUND_COUNT; i++) {
        if (idem_str_equal(text, idem_str_from(names[i]))) {
            *ret_found = i;
            return true;
        }
    }
    return false;
}

/* What was done must say with which money; the rest may, and then rightly. */
static bool money_read(const struct idem_str texts[MEMBER_COUNT],
                       enum idem_found found,
                       struct idem_evidence *evidence,
                       struct idem_fault *ret_fault)
{
    bool needed = found != IDEM_FOUND_MISSING && found != IDEM_FOUND_FAILED;
    evidence->amount_minor = -1;
    if (texts[MEMBER_AMOUNT].len == 0 && texts[MEMBER_CURRENCY].len == 0 && !needed) {
        return true;
    }
    int exponent = idem_currency_exponent(texts[MEMBER_CURRENCY]);
    if (exponent < 0 || idem_amount_parse(texts[MEMBER_AMOUNT], exponent,
                                          &evidence->amount_minor) != IDEM_AMOUNT_OK) {
        return refuse(ret_fault,
                      "\"amount\" and \"currency\" of an effect must be a decimal string and the "
                      "code of ISO 4217 whose decimals it has.");
    }
    evidence->currency = texts[MEMBER_CURRENCY];
    return true;
}

static enum idem_outcome_kind outcome_of(enum idem_found found)
{
    switch (found) {
    case IDEM_FOUND_LISTED:
    case IDEM_FOUND_AGAIN:
        return IDEM_OUTCOME_SUCCESS;
    case IDEM_FOUND_MISSING:
        return IDEM_OUTCOME_NOT_FOUND;
    case IDEM_FOUND_FAILED:
        return IDEM_OUTCOME_REFUSED_FINAL;
    case IDEM_FOUND_REVERSED:
        return IDEM_OUTCOME_REVERSED;
    case IDEM_FOUND_NONE:
    case IDEM_FOUND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static bool item_read(const struct idem_str texts[MEMBER_COUNT],
                      struct idem_evidence_item *item,
                      struct idem_fault *ret_fault)
{
    struct idem_command *command = &item->task.item.command;
    struct idem_evidence *evidence = &command->evidence;
    if (!found_read(texts[MEMBER_FOUND], &item->found)) {
        return refuse(ret_fault,
                      "\"found\" of an effect must be listed, again, missing, failed "
                      "or reversed.");
    }
    if (!idem_effect_id_scope(texts[MEMBER_ID], &command->scope)) {
        return refuse(ret_fault, "\"id\" of an effect must be one of this service's effect ids.");
    }
    struct idem_str payment_id = texts[MEMBER_PAYMENT_ID];
    if (payment_id.len > 0 && !idem_effect_id_scope(payment_id, &evidence->payment_scope)) {
        return refuse(ret_fault, "\"payment_id\" must be one of this service's effect ids.");
    }
    struct idem_str happened = texts[MEMBER_HAPPENED];
    if (happened.len > 0 && !idem_date_parse_rfc3339(happened, &evidence->happened_us)) {
        return refuse(ret_fault, "\"happened\" must be a time such as 2026-11-29T13:47:03Z.");
    }
    /* Numbers of others go where ours go: into columns, links and onto screens. */
    if (!idem_str_is_visible(texts[MEMBER_ORDER_NO]) ||
        !idem_str_is_visible(texts[MEMBER_REFERENCE])) {
        return refuse(ret_fault, "\"order_no\" and \"reference\" must be visible ASCII.");
    }
    evidence->source = IDEM_SOURCE_LISTING;
    evidence->outcome = outcome_of(item->found);
    evidence->again = item->found == IDEM_FOUND_AGAIN;
    evidence->effect_id = texts[MEMBER_ID];
    evidence->order_no = texts[MEMBER_ORDER_NO];
    evidence->payment_effect_id = payment_id;
    evidence->reference = texts[MEMBER_REFERENCE];
    return money_read(texts, item->found, evidence, ret_fault);
}

static bool items_read(const struct idem_json *json,
                       size_t list,
                       struct idem_evidence_batch *batch,
                       struct idem_fault *ret_fault)
{
    struct idem_str texts[MEMBER_COUNT] = { { .data = NULL } };
    size_t index = list + 1;
    for (size_t i = 0; i < json->tokens[list].count; i++) {
        struct idem_evidence_item *item = &batch->items[i];
        memset(&item->task, 0, offsetof(struct idem_task, outcome));
        item->task.item.command.kind = IDEM_COMMAND_EVIDENCE;
        item->open = IDEM_CASE_NONE;
        item->decided = false;
        if (!texts_read(json, index, &batch->kept, texts, ret_fault) ||
            !item_read(texts, item, ret_fault)) {
            return false;
        }
        index = json->tokens[index].next;
    }
    batch->count = json->tokens[list].count;
    return true;
}

/* {"provider": "...", "effects": [...]} */
static bool batch_read(struct idem_api *api,
                       struct idem_evidence_batch *batch,
                       const struct idem_provider_rules **ret_provider,
                       struct idem_fault *ret_fault)
{
    const struct idem_json *json = &api->body.json;
    struct idem_str entry = { .data = NULL };
    size_t provider = idem_json_member(json, 0, IDEM_STR("provider"));
    size_t list = idem_json_member(json, 0, IDEM_STR("effects"));
    if (provider == 0 || list == 0 || json->tokens[0].count != 2 ||
        !string_read(json, provider, IDEM_ENTRY_MAX, &batch->kept, &entry)) {
        return refuse(ret_fault,
                      "The body must have \"provider\", a string, and \"effects\", and "
                      "nothing else.");
    }
    const struct idem_json_token *effects = &json->tokens[list];
    if (effects->kind != IDEM_JSON_ARRAY || effects->count == 0 ||
        effects->count > IDEM_EVIDENCE_MAX) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                              "\"effects\" must be a list of 1 to %d objects.", IDEM_EVIDENCE_MAX);
    }
    return provider_find(api, entry, ret_provider, ret_fault) &&
           items_read(json, list, batch, ret_fault);
}

/* ---- evidence: its way ---- */

static void batch_start(struct idem_api *api, const struct idem_provider_rules *provider)
{
    struct idem_evidence_batch *batch = api->evidence;
    int64_t now_us = idem_clock_wall_us(api->options.clock);
    batch->running = batch->count;
    batch->looked = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct idem_task *task = &batch->items[i].task;
        struct idem_evidence *evidence = &task->item.command.evidence;
        evidence->entry = provider->entry;
        evidence->account = provider->account;
        evidence->region = provider->region;
        evidence->asked_us = now_us;
        task->done = &api->evidence_done;
        task->unknown = false;
        idem_engine_run(api->options.engine, task);
    }
}

bool idem_admin_evidence_begin(struct idem_api *api,
                               struct idem_admin_visit *visit,
                               const struct idem_net_request *request,
                               struct idem_fault *ret_fault)
{
    struct idem_evidence_batch *batch = api->evidence;
    const struct idem_provider_rules *provider = NULL;
    if (batch->visit != NULL) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_UNAVAILABLE,
                              "Another reconciliation is telling what it found.");
    }
    idem_buf_init(&batch->kept, batch->memory, sizeof(batch->memory));
    if (!idem_admin_body_begin(api, request, ret_fault) ||
        !batch_read(api, batch, &provider, ret_fault)) {
        return false;
    }
    IDEM_ASSERT(provider != NULL);
    batch->visit = visit;
    batch_start(api, provider);
    return true;
}

/* How it stands, in a word. */
static const char *result_of(const struct idem_evidence_item *item)
{
    const struct idem_command *command = &item->task.item.command;
    const struct idem_intent *intent = &item->task.outcome.intent;
    bool done = command->evidence.outcome == IDEM_OUTCOME_SUCCESS;
    if (intent->state == IDEM_INTENT_NONE) {
        return done ? "stub" : "absent";
    }
    if (item->open != IDEM_CASE_NONE) {
        return "case";
    }
    if (idem_intent_is_final(intent->state) && intent->finished_us == command->now_us) {
        return "settled";
    }
    if (item->decided) {
        return "decided";
    }
    bool same = intent->effect.amount_minor == command->evidence.amount_minor &&
                idem_str_equal(intent->effect.currency, command->evidence.currency);
    return done && same && intent->state == IDEM_INTENT_SUCCEEDED && !command->evidence.again
               ? "known"
               : "none";
}

static void item_print(struct idem_buf *buf, const struct idem_evidence_item *item)
{
    const struct idem_intent *intent = &item->task.outcome.intent;
    bool known = intent->state != IDEM_INTENT_NONE;
    idem_member_text(buf, "{\"effect_id\":", item->task.item.command.evidence.effect_id);
    idem_member_text(buf, ",\"result\":", idem_str_from(result_of(item)));
    idem_buf_add(buf, IDEM_STR(",\"id\":"));
    if (known) {
        idem_buf_add_char(buf, '"');
        idem_uid_print(intent->id, buf);
        idem_buf_add_char(buf, '"');
    } else {
        idem_buf_add(buf, IDEM_STR("null"));
    }
    idem_member_text(buf, ",\"state\":",
                     known ? idem_str_from(idem_operation_state_name(intent->state))
                           : IDEM_STR(""));
    idem_member_text(buf, ",\"case\":",
                     item->open != IDEM_CASE_NONE ? idem_str_from(idem_case_kind_name(item->open))
                                                  : IDEM_STR(""));
    idem_buf_add_char(buf, '}');
}

static void batch_answer(struct idem_api *api)
{
    struct idem_evidence_batch *batch = api->evidence;
    struct idem_admin_visit *visit = batch->visit;
    struct idem_buf *buf = idem_admin_answer_begin(api, STATUS_OK);
    idem_buf_add(buf, IDEM_STR("{\"effects\":["));
    for (size_t i = 0; i < batch->count; i++) {
        idem_buf_add(buf, i > 0 ? IDEM_STR(",") : IDEM_STR(""));
        item_print(buf, &batch->items[i]);
    }
    idem_buf_add(buf, IDEM_STR("]}\n"));
    batch->visit = NULL;
    idem_admin_end(api, visit);
}

/* The worst end of them: all of it may be sent again. */
static enum idem_problem batch_problem(const struct idem_evidence_batch *batch)
{
    size_t durable = 0;
    for (size_t i = 0; i < batch->count; i++) {
        enum idem_store_answer answer = batch->items[i].task.item.answer;
        if (answer == IDEM_STORE_UNKNOWN) {
            return IDEM_PROBLEM_OUTCOME_UNKNOWN;
        }
        durable += answer == IDEM_STORE_DURABLE ? 1 : 0;
    }
    if (durable == batch->count) {
        return IDEM_PROBLEM_NONE;
    }
    /* Some of it is written: "nothing was recorded" would not be true. */
    return durable > 0 ? IDEM_PROBLEM_OUTCOME_UNKNOWN : IDEM_PROBLEM_UNAVAILABLE;
}

/* Asks for the cases of the next effect that has a record; behind the last, answers. */
static void look_next(struct idem_api *api)
{
    struct idem_evidence_batch *batch = api->evidence;
    while (batch->looked < batch->count) {
        const struct idem_intent *intent = &batch->items[batch->looked].task.outcome.intent;
        if (intent->state != IDEM_INTENT_NONE) {
            struct idem_read *read = &batch->visit->read;
            read->kind = IDEM_READ_ANY_OPERATION;
            read->id = intent->id;
            read->done = &api->admin_done_reads;
            idem_engine_read(api->options.engine, read);
            return;
        }
        batch->looked += 1;
    }
    batch_answer(api);
}

/* Whether such a case is what this finding would open. */
static bool case_is_of(enum idem_found found, enum idem_case_kind kind)
{
    switch (found) {
    case IDEM_FOUND_LISTED:
        return kind == IDEM_CASE_MISMATCH || kind == IDEM_CASE_CONTRADICTION;
    case IDEM_FOUND_AGAIN:
        return kind == IDEM_CASE_DUPLICATE;
    case IDEM_FOUND_MISSING:
        return kind == IDEM_CASE_MISSING;
    case IDEM_FOUND_FAILED:
        return kind == IDEM_CASE_CONTRADICTION;
    case IDEM_FOUND_REVERSED:
        return kind == IDEM_CASE_REVERSED;
    case IDEM_FOUND_NONE:
    case IDEM_FOUND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void cases_take(struct idem_evidence_item *item, const struct idem_read *read)
{
    item->open = IDEM_CASE_NONE;
    for (size_t i = 0; i < read->case_count; i++) {
        const struct idem_case *one = &read->cases[i];
        if (one->decided_us != 0) {
            item->decided = item->decided || case_is_of(item->found, one->kind);
        } else if (item->open == IDEM_CASE_NONE) {
            item->open = one->kind; /* The newest stands first. */
        }
    }
}

/* What could not be read is what the task itself has opened. */
void idem_admin_evidence_read(struct idem_api *api, struct idem_admin_visit *visit)
{
    struct idem_evidence_batch *batch = api->evidence;
    IDEM_ASSERT(batch->visit == visit);
    IDEM_ASSERT(batch->looked < batch->count);
    struct idem_evidence_item *item = &batch->items[batch->looked];
    item->open = item->task.outcome.opened;
    if (visit->read.answer == IDEM_STORE_DURABLE) {
        cases_take(item, &visit->read);
    }
    batch->looked += 1;
    look_next(api);
}

static void batch_step(struct idem_api *api)
{
    struct idem_evidence_batch *batch = api->evidence;
    bool ended = false;
    while (idem_list_pop(&api->evidence_done) != NULL) {
        IDEM_ASSERT(batch->running > 0);
        batch->running -= 1;
        ended = batch->running == 0;
    }
    if (!ended) {
        return;
    }
    enum idem_problem problem = batch_problem(batch);
    idem_admin_act(api, batch->visit, "reconcile", idem_admin_outcome(problem));
    if (problem == IDEM_PROBLEM_NONE) {
        look_next(api);
        return;
    }
    struct idem_admin_visit *visit = batch->visit;
    batch->visit = NULL;
    idem_admin_refuse(api, visit, problem, "");
}

void idem_reconcile_step(struct idem_api *api)
{
    page_step(api);
    batch_step(api);
}
