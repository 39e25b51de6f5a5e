/*
 * GET {base}/effects: what succeeded, in the order in which it happened.
 *
 *   read --> is all decided? --> find the page --> count it --> fault? --> answer
 *
 * A page begins behind its cursor, which is the place of the last effect before it: the moment and
 * the number of its first execution. So a cursor stays valid whatever happens meanwhile, and any
 * page can be asked for again. Pages are small, so that whoever reads them has to read several.
 *
 * A listing knows what a query knows: lag, not_found_N and lies hold here too.
 *
 * What is processing may still succeed. A listing without it would say that it never will, so there
 * is none (503) as long as something that was begun before its end is undecided.
 */
#include "sandbox/sandbox_internal.h"

#include "base/bug.h"
#include "base/date.h"

#define PAGE_MAX      16
#define PAGE_TEXT_MAX (IDEM_SANDBOX_BODY_MAX - 256) /* The rest is for what frames the effects. */
#define QUERY_MAX     1024

struct place {
    int64_t at_us;
    int64_t execution_no;
};

struct wish {
    int64_t from_us;
    int64_t to_us;
    int64_t limit;
    struct place after; /* Zeros: the first page. */
};

struct page {
    struct idem_ledger_effect *effects[PAGE_MAX];
    size_t count;
    bool more; /* Something follows. */
};

static struct place place_of(const struct idem_ledger_effect *effect)
{
    return (struct place){ .at_us = effect->executed_us, .execution_no = effect->execution_no };
}

static bool is_before(struct place left, struct place right)
{
    return left.at_us < right.at_us ||
           (left.at_us == right.at_us && left.execution_no < right.execution_no);
}

static bool cursor_read(struct idem_str text, struct place *ret_place)
{
    struct idem_str at = idem_str_next(&text, '/');

    return idem_str_to_i64(at, &ret_place->at_us) &&
           idem_str_to_i64(text, &ret_place->execution_no);
}

static bool member_read(struct idem_str name, struct idem_str value, struct wish *wish)
{
    if (idem_str_equal(name, IDEM_STR("from"))) {
        return idem_date_parse_rfc3339(value, &wish->from_us);
    }
    if (idem_str_equal(name, IDEM_STR("to"))) {
        return idem_date_parse_rfc3339(value, &wish->to_us);
    }
    if (idem_str_equal(name, IDEM_STR("limit"))) {
        return idem_str_to_i64(value, &wish->limit);
    }
    return idem_str_equal(name, IDEM_STR("cursor")) && cursor_read(value, &wish->after);
}

/* A wish that is not understood is refused: another page than the one meant would hide effects. */
static bool wish_read(struct idem_str query, struct wish *ret_wish)
{
    char text[QUERY_MAX];
    struct idem_buf memory;
    struct idem_str name;
    struct idem_str value;
    struct wish wish = { .from_us = -1, .to_us = -1 };

    idem_buf_init(&memory, text, sizeof(text));
    while (query.len > 0) {
        if (!idem_sandbox_query_next(&query, &memory, &name, &value) ||
            !member_read(name, value, &wish)) {
            return false;
        }
    }
    *ret_wish = wish;
    return wish.from_us >= 0 && wish.to_us >= wish.from_us && wish.limit > 0;
}

static bool is_wished(const struct idem_sandbox *sandbox,
                      enum idem_sandbox_profile profile,
                      const struct wish *wish,
                      const struct idem_ledger_effect *effect)
{
    if (effect->profile != profile || effect->executions == 0 ||
        effect->executed_us < wish->from_us || effect->executed_us >= wish->to_us ||
        !is_before(wish->after, place_of(effect))) {
        return false;
    }
    struct idem_sandbox_fault_rule rule = idem_sandbox_send_rule(sandbox, effect);
    return !idem_sandbox_ask_is_hidden(effect, &rule, idem_clock_wall_us(sandbox->options.clock));
}

static bool all_is_decided(const struct idem_sandbox *sandbox,
                           enum idem_sandbox_profile profile,
                           int64_t to_us)
{
    IDEM_LIST_FOREACH (node, idem_ledger_effects(sandbox->ledger)) {
        const struct idem_ledger_effect *effect =
            IDEM_CONTAINER_OF(node, struct idem_ledger_effect, node);
        if (effect->profile == profile && effect->processing > 0 && effect->known_us < to_us) {
            return false;
        }
    }
    return true;
}

/* Puts it in its place; what has no room any more comes on a later page. */
static void page_insert(struct page *page, size_t max, struct idem_ledger_effect *effect)
{
    size_t at = page->count;

    while (at > 0 && is_before(place_of(effect), place_of(page->effects[at - 1]))) {
        at -= 1;
    }
    if (page->count == max) {
        page->more = true;
        page->count -= at < max ? 1 : 0;
    }
    if (at == max) {
        return;
    }
    for (size_t i = page->count; i > at; i--) {
        page->effects[i] = page->effects[i - 1];
    }
    page->effects[at] = effect;
    page->count += 1;
}

static void page_find(const struct idem_sandbox *sandbox,
                      enum idem_sandbox_profile profile,
                      const struct wish *wish,
                      struct page *ret_page)
{
    size_t max = wish->limit < PAGE_MAX ? (size_t)wish->limit : PAGE_MAX;

    *ret_page = (struct page){ .count = 0 };
    IDEM_LIST_FOREACH (node, idem_ledger_effects(sandbox->ledger)) {
        struct idem_ledger_effect *effect =
            IDEM_CONTAINER_OF(node, struct idem_ledger_effect, node);
        if (is_wished(sandbox, profile, wish, effect)) {
            page_insert(ret_page, max, effect);
        }
    }
}

static bool page_count(const struct idem_sandbox *sandbox, const struct page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct idem_ledger_event event = {
            .kind = IDEM_LEDGER_LISTING,
            .at_us = idem_clock_wall_us(sandbox->options.clock),
            .profile = page->effects[i]->profile,
            .id = page->effects[i]->id,
        };
        if (idem_ledger_record(sandbox->ledger, &event, NULL) != IDEM_OK) {
            return false;
        }
    }
    return true;
}

/* Prints at most as many effects as an answer has room for; at least one always fits. */
static void page_answer(struct idem_sandbox *sandbox,
                        const struct page *page,
                        struct idem_exchange *exchange)
{
    struct idem_buf body;
    size_t shown = 0;

    idem_buf_init(&body, sandbox->text_memory, PAGE_TEXT_MAX);
    idem_buf_add(&body, IDEM_STR("{\"effects\":["));
    while (shown < page->count) {
        size_t start = body.len;
        const struct idem_ledger_effect *effect = page->effects[shown];
        struct idem_sandbox_fault_rule rule = idem_sandbox_send_rule(sandbox, effect);
        idem_buf_add(&body, shown == 0 ? IDEM_STR("") : IDEM_STR(",\n"));
        idem_sandbox_answer_print_listed(effect, &rule, &body);
        if (body.full) {
            body.len = start;
            body.full = false;
            break;
        }
        shown += 1;
    }
    IDEM_ASSERT(shown > 0 || page->count == 0);
    body.max = IDEM_SANDBOX_BODY_MAX;
    if (page->more || shown < page->count) {
        struct place last = place_of(page->effects[shown - 1]);
        idem_buf_printf(&body, "],\"next\":\"%lld/%lld\"}\n", (long long)last.at_us,
                        (long long)last.execution_no);
    } else {
        idem_buf_add(&body, IDEM_STR("],\"next\":null}\n"));
    }
    IDEM_ASSERT(!body.full);
    idem_sandbox_answer_send(exchange, 200, idem_buf_str(&body));
}

/* The effect of the page whose fault hits it now, or NULL. */
static struct idem_ledger_effect *fault_find(const struct idem_sandbox *sandbox,
                                             const struct page *page,
                                             enum idem_sandbox_fault fault,
                                             struct idem_sandbox_fault_rule *ret_rule)
{
    for (size_t i = 0; i < page->count; i++) {
        struct idem_sandbox_fault_rule rule = idem_sandbox_send_rule(sandbox, page->effects[i]);
        int64_t suffering = fault == IDEM_FAULT_LIST_ERROR ? rule.count : 1;
        if (rule.fault == fault && page->effects[i]->listings <= suffering) {
            *ret_rule = rule;
            return page->effects[i];
        }
    }
    return NULL;
}

static void undecided_send(struct idem_exchange *exchange)
{
    idem_sandbox_answer_send(exchange, 503, IDEM_STR("{\"error\":\"something is undecided\"}"));
}

void idem_sandbox_list_take(struct idem_sandbox *sandbox,
                            enum idem_sandbox_profile profile,
                            struct idem_exchange *exchange)
{
    struct idem_sandbox_call late = { .exchange = exchange };
    struct wish wish;
    struct page page;

    if (!wish_read(idem_exchange_request(exchange)->query, &wish)) {
        idem_sandbox_answer_send(exchange, 400,
                                 IDEM_STR("{\"error\":\"listing: from, to, limit, cursor\"}"));
        return;
    }
    if (!all_is_decided(sandbox, profile, wish.to_us)) {
        undecided_send(exchange);
        return;
    }
    page_find(sandbox, profile, &wish, &page);
    if (!page_count(sandbox, &page)) {
        idem_sandbox_answer_send(exchange, 500,
                                 IDEM_STR("{\"error\":\"the ledger cannot be written\"}"));
        return;
    }
    if (fault_find(sandbox, &page, IDEM_FAULT_LIST_ERROR, &late.rule) != NULL) {
        idem_sandbox_answer_send(exchange, 500, IDEM_STR("{\"error\":\"listing\"}"));
        return;
    }
    late.effect = fault_find(sandbox, &page, IDEM_FAULT_LIST_SLOW, &late.rule);
    if (late.effect == NULL) {
        page_answer(sandbox, &page, exchange);
        return;
    }
    int64_t due_us = idem_clock_wall_us(sandbox->options.clock) + late.rule.wait_us;
    if (idem_sandbox_due_create(sandbox, IDEM_DUE_LIST, due_us, &late) == NULL) {
        idem_sandbox_answer_send(exchange, 500, IDEM_STR("{\"error\":\"no memory\"}"));
    }
}

void idem_sandbox_list_answer(struct idem_sandbox *sandbox, const struct idem_sandbox_call *call)
{
    struct wish wish;
    struct page page;

    if (call->exchange == NULL) {
        return; /* Nobody waits any more. */
    }
    bool readable = wish_read(idem_exchange_request(call->exchange)->query, &wish);
    IDEM_ASSERT(readable); /* It was, when it came. */
    if (!all_is_decided(sandbox, call->effect->profile, wish.to_us)) {
        undecided_send(call->exchange); /* Begun since it was asked for. */
        return;
    }
    page_find(sandbox, call->effect->profile, &wish, &page);
    page_answer(sandbox, &page, call->exchange);
}
