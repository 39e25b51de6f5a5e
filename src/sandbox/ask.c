/*
 * Everything that moves no money: queries, closes and the ledger page.
 *
 * A query is answered from what the provider knows, which under a lag or after not_found_N is less
 * than what it did.
 */
#include "sandbox/sandbox_internal.h"

#include <stdlib.h>

#include "base/bug.h"

#define PAGE_FIRST ((size_t)64 * 1024)
#define FILTER_MAX ((size_t)4096)

#define ERROR_LEDGER IDEM_STR("{\"error\":\"the ledger cannot be written\"}")

bool idem_sandbox_ask_is_hidden(const struct idem_ledger_effect *effect,
                                const struct idem_sandbox_fault_rule *rule,
                                int64_t now_us)
{
    int64_t lag_us = idem_sandbox_profile_rules(effect->profile)->lag_us;

    if (effect->status == IDEM_LEDGER_NONE || effect->status == IDEM_LEDGER_CLOSED) {
        return effect->status == IDEM_LEDGER_NONE;
    }
    if (rule->fault == IDEM_FAULT_NOT_FOUND && rule->wait_us > lag_us) {
        lag_us = rule->wait_us;
    }
    return now_us - effect->known_us < lag_us;
}

/* Counts the event and fills in the call; NULL if the ledger cannot be written. */
static bool note(struct idem_sandbox *sandbox,
                 const struct idem_ledger_event *event,
                 struct idem_sandbox_call *call)
{
    if (idem_ledger_record(sandbox->ledger, event, NULL) != IDEM_OK) {
        idem_sandbox_answer_send(call->exchange, 500, ERROR_LEDGER);
        return false;
    }
    call->effect = idem_ledger_find(sandbox->ledger, event->profile, event->id);
    IDEM_ASSERT(call->effect != NULL);
    call->rule = idem_sandbox_send_rule(sandbox, call->effect);
    return true;
}

void idem_sandbox_ask_query(struct idem_sandbox *sandbox,
                            enum idem_sandbox_profile profile,
                            struct idem_str id,
                            struct idem_exchange *exchange)
{
    struct idem_sandbox_call call = { .exchange = exchange };
    struct idem_ledger_event event = {
        .kind = IDEM_LEDGER_QUERY,
        .at_us = idem_clock_wall_us(sandbox->options.clock),
        .profile = profile,
        .id = id,
        .trace = idem_sandbox_trace(exchange),
    };

    if (!note(sandbox, &event, &call)) {
        return;
    }
    if (idem_sandbox_ask_is_hidden(call.effect, &call.rule, event.at_us)) {
        idem_sandbox_answer_send(exchange, 404, IDEM_STR("{\"status\":\"not_found\"}"));
        return;
    }
    idem_sandbox_answer_known(&call);
}

void idem_sandbox_ask_close(struct idem_sandbox *sandbox,
                            enum idem_sandbox_profile profile,
                            struct idem_str id,
                            struct idem_exchange *exchange)
{
    struct idem_sandbox_call call = { .exchange = exchange };
    const struct idem_ledger_effect *known = idem_ledger_find(sandbox->ledger, profile, id);
    struct idem_ledger_event event = {
        .kind = IDEM_LEDGER_CLOSE,
        .at_us = idem_clock_wall_us(sandbox->options.clock),
        .profile = profile,
        .id = id,
        .trace = idem_sandbox_trace(exchange),
        .closes = known == NULL || known->status == IDEM_LEDGER_NONE,
    };

    if (note(sandbox, &event, &call)) {
        if (event.closes) {
            idem_sandbox_callback_tell(sandbox, call.effect);
        }
        idem_sandbox_answer_known(&call);
    }
}

/* A filter that is not understood is refused: showing too much would look like a verdict. */
static bool filter_read(struct idem_str query,
                        struct idem_buf *memory,
                        struct idem_ledger_filter *ret_filter)
{
    struct idem_ledger_filter filter = { .id = { .data = NULL } };
    struct idem_str name;
    struct idem_str value;

    while (query.len > 0) {
        struct idem_str *place = NULL;
        if (!idem_sandbox_query_next(&query, memory, &name, &value)) {
            return false;
        }
        if (idem_str_equal(name, IDEM_STR("order_no"))) {
            place = &filter.order_no;
        }
        if (idem_str_equal(name, IDEM_STR("id"))) {
            place = &filter.id;
        }
        if (place == NULL) {
            return false;
        }
        *place = value;
    }
    *ret_filter = filter;
    return true;
}

void idem_sandbox_ask_ledger(struct idem_sandbox *sandbox, struct idem_exchange *exchange)
{
    char filter_memory[FILTER_MAX];
    struct idem_buf filter_buf;
    struct idem_buf page = { .full = true };
    struct idem_ledger_filter filter;
    char *memory = NULL;

    idem_buf_init(&filter_buf, filter_memory, sizeof(filter_memory));
    if (!filter_read(idem_exchange_request(exchange)->query, &filter_buf, &filter)) {
        idem_sandbox_answer_send(exchange, 400, IDEM_STR("{\"error\":\"filters: order_no, id\"}"));
        return;
    }
    /* Printed again into twice the memory until it fits. */
    for (size_t size = PAGE_FIRST; page.full; size *= 2) {
        free(memory);
        memory = malloc(size);
        if (memory == NULL) {
            idem_sandbox_answer_send(exchange, 500, IDEM_STR("{\"error\":\"no memory\"}"));
            return;
        }
        idem_buf_init(&page, memory, size);
        idem_ledger_print(sandbox->ledger, &filter, &page);
    }
    idem_sandbox_answer_send(exchange, 200, idem_buf_str(&page));
    free(memory);
}
