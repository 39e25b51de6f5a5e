/*
 * What is stored of an effect for Stripe, and the requests that are made of it.
 *
 * The stored request is two lines, written once when the intent is dispatched:
 *
 *     1                                     a charge or an authorization
 *     1 pi_123 c0000...                     what a capture, cancel or refund acts on: Stripe's
 *                                           number of the payment, and ours. A person may type the
 *                                           first, so it is looked at before it is used
 *     0 currency                            nothing can be sent, and why
 *     amount=1000&currency=usd&...          the form of its first request
 *
 * Whatever is sent for it follows from this and the effect id, so it is the same bytes whenever it
 * is sent. Idempotency keys, all made of the effect id:
 *
 *     ID           create; capture; cancel; refund
 *     ID-confirm   confirm
 *     ID-cancel    the cancel after a refusal, or as a close
 */
#include "provider/stripe_internal.h"

#include "base/bug.h"
#include "core/intent.h"
#include "provider/stripe.h"
#include "provider/wire.h"

#define INTENTS "/v1/payment_intents"
#define REFUNDS "/v1/refunds"

static bool makes_payment(enum idem_effect_kind kind)
{
    return idem_effect_kind_makes_payment(kind);
}

static bool is_word(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '_';
}

bool idem_stripe_id_is_plain(struct idem_str id)
{
    bool plain = id.len > 0 && id.len <= IDEM_STRIPE_ID_MAX;
    for (size_t i = 0; plain && i < id.len; i++) {
        plain = is_word(id.data[i]);
    }
    return plain;
}

static bool is_intent_number(struct idem_str id)
{
    struct idem_str prefix = IDEM_STR("pi_");
    return idem_stripe_id_is_plain(id) && id.len > prefix.len &&
           idem_str_equal(idem_str_slice(id, 0, prefix.len), prefix);
}

/* Forms. */

static void percent_encode(struct idem_str text, struct idem_buf *buf)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        if (is_word(text.data[i]) || byte == '-' || byte == '.' || byte == '~') {
            idem_buf_add_char(buf, text.data[i]);
            continue;
        }
        idem_buf_add_char(buf, '%');
        idem_buf_add_char(buf, digits[byte >> 4]);
        idem_buf_add_char(buf, digits[byte & 15]);
    }
}

/* `name` is written as it is: brackets already encoded. */
static void pair_add(struct idem_buf *buf, const char *name, struct idem_str value)
{
    if (value.len == 0) {
        return;
    }
    if (buf->len > 0 && buf->data[buf->len - 1] != '\n') {
        idem_buf_add_char(buf, '&');
    }
    idem_buf_add(buf, idem_str_from(name));
    idem_buf_add_char(buf, '=');
    percent_encode(value, buf);
}

static void number_add(struct idem_buf *buf, const char *name, int64_t value)
{
    char memory[24];
    struct idem_buf text;
    idem_buf_init(&text, memory, sizeof(memory));
    idem_buf_add_i64(&text, value);
    pair_add(buf, name, idem_buf_str(&text));
}

static void currency_add(struct idem_buf *buf, struct idem_str currency)
{
    char memory[8];
    struct idem_buf text;
    idem_buf_init(&text, memory, sizeof(memory));
    for (size_t i = 0; i < currency.len; i++) {
        idem_buf_add_char(&text, (char)(currency.data[i] - 'A' + 'a')); /* Capitals: ISO 4217. */
    }
    pair_add(buf, "currency", idem_buf_str(&text));
}

static void payment_add(struct idem_buf *buf,
                        const struct idem_effect_order *order,
                        int64_t wire_amount)
{
    bool by_hand = order->effect->kind == IDEM_EFFECT_KIND_AUTHORIZE;

    number_add(buf, "amount", wire_amount);
    currency_add(buf, order->effect->currency);
    pair_add(buf, "capture_method", by_hand ? IDEM_STR("manual") : IDEM_STR("automatic"));
    pair_add(buf, "payment_method", order->method);
    /* Whatever the account allows, as long as nobody has to be sent to another page. */
    pair_add(buf, "automatic_payment_methods%5Benabled%5D", IDEM_STR("true"));
    pair_add(buf, "automatic_payment_methods%5Ballow_redirects%5D", IDEM_STR("never"));
    pair_add(buf, "description", order->description);
    pair_add(buf, "metadata%5Bidem_id%5D", order->effect->id);
    pair_add(buf, "metadata%5Border_no%5D", order->order_no);
}

static void action_add(struct idem_buf *buf,
                       const struct idem_effect_order *order,
                       int64_t wire_amount)
{
    if (order->effect->kind == IDEM_EFFECT_KIND_CAPTURE) {
        number_add(buf, "amount_to_capture", wire_amount);
        pair_add(buf, "metadata%5Bidem_capture%5D", order->effect->id);
    }
    if (order->effect->kind == IDEM_EFFECT_KIND_REFUND) {
        number_add(buf, "amount", wire_amount);
        pair_add(buf, "payment_intent", order->payment_reference);
        pair_add(buf, "metadata%5Bidem_id%5D", order->effect->id);
        pair_add(buf, "metadata%5Bidem_payment%5D", order->payment_effect_id);
        pair_add(buf, "metadata%5Border_no%5D", order->order_no);
    }
}

void idem_stripe_encode(const struct idem_effect_order *order, struct idem_buf *buf)
{
    const struct idem_effect *effect = order->effect;
    int64_t wire_amount = 0;

    IDEM_ASSERT(effect->kind > IDEM_EFFECT_KIND_NONE);
    IDEM_ASSERT(effect->kind < IDEM_EFFECT_KIND_COUNT);
    if (!idem_stripe_amount_to_wire(effect->currency, effect->amount_minor, &wire_amount)) {
        idem_buf_add(buf, IDEM_STR("0 amount_or_currency_not_supported\n"));
        return;
    }
    if (makes_payment(effect->kind)) {
        idem_buf_add(buf, IDEM_STR("1\n"));
        payment_add(buf, order, wire_amount);
        return;
    }
    if (!is_intent_number(order->payment_reference)) {
        idem_buf_add(buf, IDEM_STR("0 payment_reference_not_known\n"));
        return;
    }
    idem_buf_add(buf, IDEM_STR("1 "));
    idem_buf_add(buf, order->payment_reference);
    idem_buf_add_char(buf, ' ');
    idem_buf_add(buf, order->payment_effect_id);
    idem_buf_add_char(buf, '\n');
    action_add(buf, order, wire_amount);
}

bool idem_stripe_order_read(struct idem_str request, struct idem_stripe_order *ret_order)
{
    struct idem_stripe_order order = { .body = request };
    struct idem_str line = idem_str_next(&order.body, '\n');
    struct idem_str word = idem_str_next(&line, ' ');

    if (idem_str_equal(word, IDEM_STR("0"))) {
        order.refused = line;
        *ret_order = order;
        return line.len > 0;
    }
    order.intent = idem_str_next(&line, ' ');
    order.payment_id = line;
    *ret_order = order;
    return idem_str_equal(word, IDEM_STR("1")) &&
           (order.intent.len == 0 || idem_stripe_id_is_plain(order.intent));
}

/* Requests on the wire. */

void idem_stripe_authorize(struct idem_wire_request *request,
                           struct idem_buf *buf,
                           struct idem_str credential)
{
    idem_wire_header_add(request, buf, "Authorization: Bearer ", credential);
    idem_wire_header_add(request, buf, "Stripe-Version: ", IDEM_STR(IDEM_STRIPE_VERSION));
}

/* What a step asks for; `key_suffix` NULL: it is a question. */
struct plan {
    const char *base;
    struct idem_str id; /* Empty: none in the path. */
    const char *action; /* Behind it. */
    const char *key_suffix;
    struct idem_str body;
    bool harmless;
};

static void plan_fill(const struct plan *plan,
                      const struct idem_effect *effect,
                      struct idem_buf *buf,
                      struct idem_wire_request *request)
{
    size_t start = buf->len;

    idem_buf_add(buf, idem_str_from(plan->base));
    if (plan->id.len > 0) {
        idem_buf_add_char(buf, '/');
        idem_buf_add(buf, plan->id);
    }
    idem_buf_add(buf, idem_str_from(plan->action));
    request->path = idem_str_slice(idem_buf_str(buf), start, SIZE_MAX);
    request->method = plan->key_suffix == NULL ? "GET" : "POST";
    request->body = plan->body;
    request->harmless = plan->harmless;
    if (plan->key_suffix == NULL) {
        return;
    }
    char memory[64];
    struct idem_buf key;
    idem_buf_init(&key, memory, sizeof(memory));
    idem_buf_add(&key, effect->id);
    idem_buf_add(&key, idem_str_from(plan->key_suffix));
    idem_wire_header_add(request, buf,
                         "Content-Type: ", IDEM_STR("application/x-www-form-urlencoded"));
    idem_wire_header_add(request, buf, "Idempotency-Key: ", idem_buf_str(&key));
}

/* Finds a payment by our id, when nobody told us Stripe's; what it finds is then looked at. */
static void search_add(const struct idem_effect *effect, struct idem_buf *text)
{
    char memory[64];
    struct idem_buf query;

    idem_buf_init(&query, memory, sizeof(memory));
    idem_buf_add(&query, IDEM_STR("metadata['idem_id']:'"));
    idem_buf_add(&query, effect->id);
    idem_buf_add_char(&query, '\'');
    idem_buf_add(text, IDEM_STR("/search?limit=2&query="));
    percent_encode(idem_buf_str(&query), text);
    idem_buf_add_char(text, '\0');
}

static void refunds_add(struct idem_str intent, struct idem_buf *text)
{
    idem_buf_add(text, IDEM_STR("?limit=10&payment_intent="));
    idem_buf_add(text, intent);
    idem_buf_add_char(text, '\0');
}

/* The question what became of it. `text` has room for what stands behind the path. */
static struct plan look_plan(const struct idem_wire_course *course,
                             const struct idem_stripe_order *order,
                             struct idem_buf *text)
{
    const struct idem_effect *effect = course->effect;
    bool told = course->so_far.reference.len > 0;
    struct idem_str known = told ? course->so_far.reference : effect->reference;
    struct plan plan = { .base = INTENTS, .id = known, .action = "", .harmless = true };

    if (effect->kind == IDEM_EFFECT_KIND_REFUND) {
        plan.base = REFUNDS;
        if (known.len == 0) {
            refunds_add(order->intent, text);
            plan.action = text->data;
        }
        return plan;
    }
    if (!makes_payment(effect->kind)) {
        plan.id = order->intent;
    } else if (known.len == 0) {
        search_add(effect, text);
        plan.action = text->data;
    }
    return plan;
}

static struct plan send_plan(const struct idem_effect *effect,
                             const struct idem_stripe_order *order)
{
    struct plan plan = { .base = INTENTS, .id = order->intent, .action = "", .key_suffix = "" };

    plan.body = order->body;
    switch (effect->kind) {
    case IDEM_EFFECT_KIND_CHARGE:
    case IDEM_EFFECT_KIND_AUTHORIZE:
        plan.harmless = true; /* Nobody has paid what is only created. */
        return plan;
    case IDEM_EFFECT_KIND_CAPTURE:
        plan.action = "/capture";
        return plan;
    case IDEM_EFFECT_KIND_CANCEL:
        plan.action = "/cancel";
        return plan;
    case IDEM_EFFECT_KIND_REFUND:
        plan.base = REFUNDS;
        plan.id = (struct idem_str){ .len = 0 };
        return plan;
    case IDEM_EFFECT_KIND_NONE:
    case IDEM_EFFECT_KIND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* Before it acts on a payment: the look whether it is that payment. */
static struct plan payment_plan(const struct idem_stripe_order *order)
{
    return (struct plan){ .base = INTENTS, .id = order->intent, .action = "", .harmless = true };
}

static struct plan plan_make(const struct idem_wire_course *course,
                             const struct idem_stripe_order *order,
                             struct idem_buf *text)
{
    bool told = course->so_far.reference.len > 0;
    struct idem_str intent = told ? course->so_far.reference : course->effect->reference;
    const struct plan cancel = {
        .base = INTENTS,
        .id = intent,
        .action = "/cancel",
        .key_suffix = "-cancel",
        .harmless = true,
    };
    const struct plan confirm = {
        .base = INTENTS,
        .id = intent,
        .action = "/confirm",
        .key_suffix = "-confirm",
    };

    if (course->step == IDEM_STRIPE_CONFIRM) {
        return confirm;
    }
    if (course->step == IDEM_STRIPE_CANCEL) {
        return cancel;
    }
    if (course->step == IDEM_STRIPE_ACT) {
        return send_plan(course->effect, order);
    }
    if (course->step != IDEM_STRIPE_BEGIN || course->kind == IDEM_CALL_QUERY) {
        return look_plan(course, order, text);
    }
    if (course->kind == IDEM_CALL_CLOSE) {
        return cancel;
    }
    return makes_payment(course->effect->kind) ? send_plan(course->effect, order)
                                               : payment_plan(order);
}

/* "This id can no longer succeed": its stored request will never be another. */
static void refuse(struct idem_wire_course *course, struct idem_str why)
{
    if (course->kind == IDEM_CALL_CLOSE) {
        return;
    }
    course->so_far.outcome = IDEM_OUTCOME_REFUSED_FINAL;
    course->so_far.effect_id = course->effect->id;
    course->so_far.code = why;
    course->so_far.message = IDEM_STR("Stripe was not asked: it cannot be sent there.");
}

bool idem_stripe_request(struct idem_wire_course *course,
                         struct idem_str credential,
                         struct idem_buf *buf,
                         struct idem_wire_request *ret_request)
{
    const struct idem_effect *effect = course->effect;
    struct idem_stripe_order order = { .body = { .len = 0 } };
    struct idem_wire_request request = { .header_count = 0 };
    char memory[128];
    struct idem_buf text;

    if (!idem_stripe_order_read(effect->request, &order)) {
        course->so_far.outcome = IDEM_OUTCOME_UNKNOWN; /* Not ours to read: a person must. */
        return false;
    }
    if (order.refused.len > 0) {
        refuse(course, order.refused);
        return false;
    }
    bool known = effect->reference.len > 0;
    if (course->kind == IDEM_CALL_CLOSE && (!known || !makes_payment(effect->kind))) {
        return false; /* There is nothing that could be closed. */
    }
    if (course->kind == IDEM_CALL_SEND && course->step == IDEM_STRIPE_BEGIN && known &&
        makes_payment(effect->kind)) {
        course->step = IDEM_STRIPE_CONFIRM; /* It was created: on with it. */
    }
    idem_buf_init(&text, memory, sizeof(memory));
    struct plan plan = plan_make(course, &order, &text);
    IDEM_ASSERT(!text.full);
    plan_fill(&plan, effect, buf, &request);
    idem_stripe_authorize(&request, buf, credential);
    *ret_request = request;
    return true;
}
