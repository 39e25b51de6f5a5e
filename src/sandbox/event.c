/*
 * Events as JSON lines, so that a person can read a ledger file with any tool, and so that what was
 * read back is exactly what was written: a table names the members, and only what is not empty is
 * written.
 */
#include "sandbox/event.h"

#include <stddef.h>

#include "base/bug.h"
#include "base/json.h"

static const struct idem_str kind_names[IDEM_LEDGER_EVENT_COUNT] = {
    [IDEM_LEDGER_ARRIVAL] = { "arrival", 7 },   [IDEM_LEDGER_EXECUTION] = { "execution", 9 },
    [IDEM_LEDGER_DECLINE] = { "decline", 7 },   [IDEM_LEDGER_PROCESSING] = { "processing", 10 },
    [IDEM_LEDGER_INVALID] = { "invalid", 7 },   [IDEM_LEDGER_QUERY] = { "query", 5 },
    [IDEM_LEDGER_CLOSE] = { "close", 5 },       [IDEM_LEDGER_LISTING] = { "listing", 7 },
    [IDEM_LEDGER_REVERSAL] = { "reversal", 8 }, [IDEM_LEDGER_CALLBACK] = { "callback", 8 },
};

struct flag {
    struct idem_str name;
    size_t offset;
};

static const struct flag flags[] = {
    { { "other", 5 }, offsetof(struct idem_ledger_event, other) },
    { { "settles", 7 }, offsetof(struct idem_ledger_event, settles) },
    { { "fails", 5 }, offsetof(struct idem_ledger_event, fails) },
    { { "closes", 6 }, offsetof(struct idem_ledger_event, closes) },
    { { "taken", 5 }, offsetof(struct idem_ledger_event, taken) },
};

static void text_print(struct idem_str name, struct idem_str text, struct idem_buf *buf)
{
    if (text.len > 0) {
        idem_buf_add_char(buf, ',');
        idem_json_add_string(buf, name);
        idem_buf_add_char(buf, ':');
        idem_json_add_string(buf, text);
    }
}

void idem_ledger_event_print(const struct idem_ledger_event *event, struct idem_buf *buf)
{
    IDEM_ASSERT(event->kind > IDEM_LEDGER_NOTHING);
    IDEM_ASSERT(event->kind < IDEM_LEDGER_EVENT_COUNT);

    idem_buf_add(buf, IDEM_STR("{\"at\":"));
    idem_buf_add_i64(buf, event->at_us);
    text_print(IDEM_STR("event"), kind_names[event->kind], buf);
    text_print(IDEM_STR("profile"), idem_sandbox_profile_rules(event->profile)->name, buf);
    text_print(IDEM_STR("id"), event->id, buf);
    text_print(IDEM_STR("reference"), event->reference, buf);
    text_print(IDEM_STR("code"), event->code, buf);
    text_print(IDEM_STR("trace"), event->trace, buf);
    if (event->kind == IDEM_LEDGER_PROCESSING) {
        idem_buf_add(buf, IDEM_STR(",\"due\":"));
        idem_buf_add_i64(buf, event->due_us);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(flags); i++) {
        if (*(const bool *)((const char *)event + flags[i].offset)) {
            idem_buf_add_char(buf, ',');
            idem_json_add_string(buf, flags[i].name);
            idem_buf_add(buf, IDEM_STR(":true"));
        }
    }
    if (event->order != NULL) {
        idem_buf_add(buf, IDEM_STR(",\"order\":"));
        idem_sandbox_order_print(event->order, buf);
    }
    idem_buf_add(buf, IDEM_STR("}\n"));
}

/* The string member `name`; empty if there is none. */
static struct idem_str text_read(const struct idem_json *json,
                                 struct idem_str name,
                                 struct idem_buf *memory)
{
    size_t index = idem_json_member(json, 0, name);
    size_t start = memory->len;

    if (index == 0 || json->tokens[index].kind != IDEM_JSON_STRING) {
        return (struct idem_str){ .data = NULL };
    }
    idem_json_unescape(json, index, memory);
    return idem_str_slice(idem_buf_str(memory), start, memory->len);
}

static bool number_read(const struct idem_json *json, struct idem_str name, int64_t *ret_value)
{
    size_t index = idem_json_member(json, 0, name);

    return index != 0 && json->tokens[index].kind == IDEM_JSON_NUMBER &&
           idem_str_to_i64(json->tokens[index].raw, ret_value);
}

static enum idem_ledger_event_kind kind_find(struct idem_str name)
{
    for (enum idem_ledger_event_kind kind = IDEM_LEDGER_NOTHING + 1; kind < IDEM_LEDGER_EVENT_COUNT;
         kind++) {
        if (idem_str_equal(kind_names[kind], name)) {
            return kind;
        }
    }
    return IDEM_LEDGER_NOTHING;
}

static void flags_read(const struct idem_json *json, struct idem_ledger_event *event)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(flags); i++) {
        size_t index = idem_json_member(json, 0, flags[i].name);
        *(bool *)((char *)event + flags[i].offset) =
            index != 0 && json->tokens[index].kind == IDEM_JSON_TRUE;
    }
}

static bool event_valid(const struct idem_ledger_event *event)
{
    return event->kind != IDEM_LEDGER_NOTHING && event->profile != IDEM_PROFILE_NONE &&
           idem_sandbox_order_id_valid(event->id);
}

bool idem_ledger_event_read(struct idem_str line,
                            struct idem_buf *memory,
                            struct idem_sandbox_order *ret_order,
                            struct idem_ledger_event *ret_event)
{
    struct idem_json_token tokens[IDEM_EVENT_TOKENS];
    struct idem_json json;
    struct idem_json_fault fault;
    struct idem_ledger_event event = { .kind = IDEM_LEDGER_NOTHING };

    idem_json_init(&json, tokens, IDEM_ARRAY_COUNT(tokens));
    if (!idem_json_parse(&json, line, &fault) || tokens[0].kind != IDEM_JSON_OBJECT) {
        return false;
    }
    if (!number_read(&json, IDEM_STR("at"), &event.at_us)) {
        return false;
    }
    event.kind = kind_find(text_read(&json, IDEM_STR("event"), memory));
    event.profile = idem_sandbox_profile_find(text_read(&json, IDEM_STR("profile"), memory));
    event.id = text_read(&json, IDEM_STR("id"), memory);
    event.reference = text_read(&json, IDEM_STR("reference"), memory);
    event.code = text_read(&json, IDEM_STR("code"), memory);
    event.trace = text_read(&json, IDEM_STR("trace"), memory);
    flags_read(&json, &event);
    if (event.kind == IDEM_LEDGER_PROCESSING &&
        !number_read(&json, IDEM_STR("due"), &event.due_us)) {
        return false;
    }
    size_t order = idem_json_member(&json, 0, IDEM_STR("order"));
    if (order != 0) {
        if (tokens[order].kind != IDEM_JSON_OBJECT ||
            idem_sandbox_order_read(&json, order, memory, ret_order) != NULL) {
            return false;
        }
        event.order = ret_order;
    }
    if (memory->full || !event_valid(&event)) {
        return false;
    }
    *ret_event = event;
    return true;
}
