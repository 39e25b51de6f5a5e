/*
 * Reading, printing and comparing orders.
 *
 * The texts of an order are one table of (name, place), so that reading, printing, comparing and
 * copying cannot disagree about which members there are.
 */
#include "sandbox/order.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/currency.h"
#include "base/json.h"
#include "base/money.h"
#include "sandbox/fault.h"

/* Who has a text member. */
enum presence {
    ALWAYS,           /* Every kind; required. */
    PAYMENT,          /* Kinds that make a payment; required there, wrong elsewhere. */
    PAYMENT_OPTIONAL, /* Likewise, but may be absent. */
    LATER,            /* Kinds that refer to one; required there, wrong elsewhere. */
    LATER_OPTIONAL,
};

struct text_member {
    struct idem_str name;
    const char *fault; /* The code when it is missing, misplaced, empty, too long or no string. */
    size_t offset;     /* Of the idem_str in struct idem_sandbox_order. */
    enum presence presence;
};

#define MEMBER(member, who)                                                      \
    {                                                                            \
        .name = { #member, sizeof(#member) - 1 }, .fault = #member "_invalid",   \
        .offset = offsetof(struct idem_sandbox_order, member), .presence = (who) \
    }

static const struct text_member members[] = {
    MEMBER(id, ALWAYS),
    MEMBER(currency, ALWAYS),
    MEMBER(order_no, ALWAYS),
    MEMBER(method, PAYMENT),
    MEMBER(description, PAYMENT_OPTIONAL),
    MEMBER(payment_id, LATER),
    MEMBER(payment_reference, LATER_OPTIONAL),
};

static const struct idem_str kind_names[IDEM_ORDER_KIND_COUNT] = {
    [IDEM_ORDER_CHARGE] = { "charge", 6 },   [IDEM_ORDER_AUTHORIZE] = { "authorize", 9 },
    [IDEM_ORDER_CAPTURE] = { "capture", 7 }, [IDEM_ORDER_CANCEL] = { "cancel", 6 },
    [IDEM_ORDER_REFUND] = { "refund", 6 },
};

struct idem_str idem_sandbox_order_kind_name(enum idem_sandbox_order_kind kind)
{
    IDEM_ASSERT(kind < IDEM_ORDER_KIND_COUNT);
    return kind_names[kind];
}

bool idem_sandbox_order_makes_payment(enum idem_sandbox_order_kind kind)
{
    return kind == IDEM_ORDER_CHARGE || kind == IDEM_ORDER_AUTHORIZE;
}

static bool id_byte_valid(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '_';
}

bool idem_sandbox_order_id_valid(struct idem_str id)
{
    if (id.len == 0 || id.len > IDEM_ORDER_ID_MAX) {
        return false;
    }
    for (size_t i = 0; i < id.len; i++) {
        if (!id_byte_valid(id.data[i])) {
            return false;
        }
    }
    return true;
}

static struct idem_str *text_at(struct idem_sandbox_order *order, const struct text_member *member)
{
    return (struct idem_str *)(void *)((char *)order + member->offset);
}

static struct idem_str text_of(const struct idem_sandbox_order *order,
                               const struct text_member *member)
{
    return *(const struct idem_str *)(const void *)((const char *)order + member->offset);
}

/* A string member with its escapes resolved; false if it is something else, empty or too long. */
static bool string_read(const struct idem_json *json,
                        size_t index,
                        struct idem_buf *memory,
                        struct idem_str *ret_text)
{
    size_t start = memory->len;

    if (json->tokens[index].kind != IDEM_JSON_STRING) {
        return false;
    }
    idem_json_unescape(json, index, memory);
    *ret_text = idem_str_slice(idem_buf_str(memory), start, IDEM_ORDER_TEXT_MAX + 1);
    return !memory->full && ret_text->len > 0 && ret_text->len <= IDEM_ORDER_TEXT_MAX;
}

static bool member_allowed(enum presence presence, enum idem_sandbox_order_kind kind)
{
    bool is_payment = idem_sandbox_order_makes_payment(kind);

    switch (presence) {
    case ALWAYS:
        return true;
    case PAYMENT:
    case PAYMENT_OPTIONAL:
        return is_payment;
    case LATER:
    case LATER_OPTIONAL:
        return !is_payment;
    }
    IDEM_UNREACHABLE();
}

static bool member_read(const struct idem_json *json,
                        size_t object,
                        const struct text_member *member,
                        struct idem_buf *memory,
                        struct idem_sandbox_order *order)
{
    bool allowed = member_allowed(member->presence, order->kind);
    bool optional = member->presence == PAYMENT_OPTIONAL || member->presence == LATER_OPTIONAL;
    size_t index = idem_json_member(json, object, member->name);

    if (index == 0) {
        return optional || !allowed;
    }
    return allowed && string_read(json, index, memory, text_at(order, member));
}

static enum idem_sandbox_order_kind kind_read(const struct idem_json *json, size_t object)
{
    size_t index = idem_json_member(json, object, IDEM_STR("kind"));

    if (index == 0 || json->tokens[index].kind != IDEM_JSON_STRING) {
        return IDEM_ORDER_NONE;
    }
    for (enum idem_sandbox_order_kind kind = IDEM_ORDER_NONE + 1; kind < IDEM_ORDER_KIND_COUNT;
         kind++) {
        if (idem_str_equal(json->tokens[index].raw, kind_names[kind])) {
            return kind;
        }
    }
    return IDEM_ORDER_NONE;
}

static const char *amount_read(const struct idem_json *json,
                               size_t object,
                               struct idem_sandbox_order *order)
{
    int exponent = idem_currency_exponent(order->currency);
    size_t index = idem_json_member(json, object, IDEM_STR("amount"));

    if (exponent < 0) {
        return "currency_invalid";
    }
    if (index == 0 || json->tokens[index].kind != IDEM_JSON_STRING) {
        return "amount_invalid";
    }
    if (idem_amount_parse(json->tokens[index].raw, exponent, &order->amount_minor) !=
        IDEM_AMOUNT_OK) {
        return "amount_invalid";
    }
    return NULL;
}

const char *idem_sandbox_order_read(const struct idem_json *json,
                                    size_t object,
                                    struct idem_buf *memory,
                                    struct idem_sandbox_order *ret_order)
{
    struct idem_sandbox_order order = { .kind = kind_read(json, object) };
    struct idem_sandbox_fault_plan plan;

    if (order.kind == IDEM_ORDER_NONE) {
        return "kind_invalid";
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(members); i++) {
        if (!member_read(json, object, &members[i], memory, &order)) {
            return members[i].fault;
        }
    }
    if (!idem_sandbox_order_id_valid(order.id)) {
        return "id_invalid";
    }
    const char *fault = amount_read(json, object, &order);
    if (fault != NULL) {
        return fault;
    }
    if (idem_sandbox_order_makes_payment(order.kind) &&
        !idem_sandbox_fault_plan_parse(order.method, &plan)) {
        return "method_unknown";
    }
    *ret_order = order;
    return NULL;
}

void idem_sandbox_order_print(const struct idem_sandbox_order *order, struct idem_buf *buf)
{
    IDEM_ASSERT(order->kind > IDEM_ORDER_NONE);

    idem_buf_add(buf, IDEM_STR("{\"kind\":"));
    idem_json_add_string(buf, idem_sandbox_order_kind_name(order->kind));
    idem_buf_add(buf, IDEM_STR(",\"amount\":\""));
    idem_amount_print(order->amount_minor, idem_currency_exponent(order->currency), buf);
    idem_buf_add_char(buf, '"');
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(members); i++) {
        struct idem_str text = text_of(order, &members[i]);
        if (text.len > 0) {
            idem_buf_add_char(buf, ',');
            idem_json_add_string(buf, members[i].name);
            idem_buf_add_char(buf, ':');
            idem_json_add_string(buf, text);
        }
    }
    idem_buf_add_char(buf, '}');
}

bool idem_sandbox_order_equal(const struct idem_sandbox_order *left,
                              const struct idem_sandbox_order *right)
{
    if (left->kind != right->kind || left->amount_minor != right->amount_minor) {
        return false;
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(members); i++) {
        if (!idem_str_equal(text_of(left, &members[i]), text_of(right, &members[i]))) {
            return false;
        }
    }
    return true;
}

void *idem_sandbox_order_copy(const struct idem_sandbox_order *from,
                              struct idem_sandbox_order *ret_copy)
{
    struct idem_buf buf;
    size_t size = 0;

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(members); i++) {
        size += text_of(from, &members[i]).len;
    }
    char *memory = malloc(size);
    if (memory == NULL) {
        return NULL;
    }
    idem_buf_init(&buf, memory, size);
    *ret_copy = *from;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(members); i++) {
        *text_at(ret_copy, &members[i]) = idem_buf_keep(&buf, text_of(from, &members[i]));
    }
    IDEM_ASSERT(!buf.full);
    return memory;
}
