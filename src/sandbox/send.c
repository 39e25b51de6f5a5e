/*
 * POST {base}/effects: the way of a request through the provider.
 *
 *   read --> arrival --> fault before? --> slow? --> known? --> payment? --> execute --> answer,
 *            (counted)   (the end)         (later)   (answer)   (refuse)     (counted,   (spoilt)
 *                                                                             told)
 *
 * What is counted is in the ledger before the next step. A fault before the execution answers and
 * goes no further, so there is no execution to be found; a fault after it spoils the answer only.
 *
 * slow_N is a request that is stuck in front of the provider: nothing is known of it until it gets
 * there, so a query says not_found and a close closes the id. That is the race in which a second
 * send would charge twice.
 */
#include "sandbox/sandbox_internal.h"

#include "base/bug.h"

#define ERROR_LEDGER IDEM_STR("{\"error\":\"the ledger cannot be written\"}")
#define ERROR_MEMORY IDEM_STR("{\"error\":\"no memory\"}")

/* An event of the call's effect, of now. */
static struct idem_ledger_event event_of(const struct idem_sandbox *sandbox,
                                         const struct idem_ledger_effect *effect,
                                         enum idem_ledger_event_kind kind)
{
    return (struct idem_ledger_event){
        .kind = kind,
        .at_us = idem_clock_wall_us(sandbox->options.clock),
        .profile = effect->profile,
        .id = effect->id,
    };
}

static bool record(struct idem_sandbox *sandbox, const struct idem_ledger_event *event)
{
    return idem_ledger_record(sandbox->ledger, event, NULL) == IDEM_OK;
}

static const struct idem_ledger_effect *payment_of(const struct idem_sandbox *sandbox,
                                                   const struct idem_ledger_effect *effect)
{
    return idem_ledger_find(sandbox->ledger, effect->profile, effect->order.payment_id);
}

/* Of the payment's own token, or of that of the payment it names; all `ok` if there is none. */
static struct idem_sandbox_fault_plan plan_of(const struct idem_sandbox *sandbox,
                                              const struct idem_ledger_effect *effect)
{
    const struct idem_ledger_effect *payment = effect;
    const struct idem_sandbox_fault_plan all_ok = { .rules = { { .fault = IDEM_FAULT_OK } } };
    struct idem_sandbox_fault_plan plan;

    if (effect->order_memory != NULL && !idem_sandbox_order_makes_payment(effect->order.kind)) {
        payment = payment_of(sandbox, effect);
    }
    if (payment == NULL || payment->order_memory == NULL ||
        !idem_sandbox_fault_plan_parse(payment->order.method, &plan)) {
        return all_ok;
    }
    return plan;
}

struct idem_sandbox_fault_rule idem_sandbox_send_rule(const struct idem_sandbox *sandbox,
                                                      const struct idem_ledger_effect *effect)
{
    return plan_of(sandbox, effect).rules[effect->order.kind];
}

struct idem_sandbox_telling_rule idem_sandbox_send_telling(const struct idem_sandbox *sandbox,
                                                           const struct idem_ledger_effect *effect)
{
    return plan_of(sandbox, effect).tellings[effect->order.kind];
}

static void break_off(struct idem_exchange *exchange, bool reset)
{
    if (exchange != NULL) {
        idem_exchange_break(exchange, IDEM_STR(""), reset);
    }
}

/* The whole answer, announced as longer than it is. */
static void answer_cut(const struct idem_sandbox_call *call)
{
    char body_memory[IDEM_ANSWER_MAX];
    char memory[IDEM_ANSWER_MAX * 2];
    struct idem_buf body;
    struct idem_buf bytes;

    idem_buf_init(&body, body_memory, sizeof(body_memory));
    idem_buf_init(&bytes, memory, sizeof(memory));
    (void)idem_sandbox_answer_print(call->effect, IDEM_LIE_NONE,
                                    &body); /* Announced as 200 in any case. */
    idem_buf_add(&bytes, IDEM_STR("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                  "Content-Length: "));
    idem_buf_add_i64(&bytes, (int64_t)body.len + 100);
    idem_buf_add(&bytes, IDEM_STR("\r\n\r\n"));
    idem_buf_add(&bytes, idem_buf_str(&body));
    IDEM_ASSERT(!bytes.full);
    if (call->exchange != NULL) {
        idem_exchange_break(call->exchange, idem_buf_str(&bytes), false);
    }
}

static void answer_late(struct idem_sandbox *sandbox, const struct idem_sandbox_call *call)
{
    int64_t due_us = idem_clock_wall_us(sandbox->options.clock) + call->rule.wait_us;

    if (idem_sandbox_due_create(sandbox, IDEM_DUE_ANSWER, due_us, call) == NULL) {
        idem_sandbox_answer_send(call->exchange, 500, ERROR_MEMORY);
    }
}

static void answer_settling(const struct idem_sandbox_call *call)
{
    char memory[IDEM_ANSWER_MAX];
    struct idem_buf body;

    idem_buf_init(&body, memory, sizeof(memory));
    uint16_t status = idem_sandbox_answer_print(call->effect, IDEM_LIE_STATUS, &body);
    idem_sandbox_answer_send(call->exchange, status, idem_buf_str(&body));
}

static bool is_reused(const struct idem_exchange *exchange)
{
    return exchange != NULL && idem_exchange_request(exchange)->request_no > 1;
}

/* Answers what is known, or spoils it as was asked for. */
static void answer(struct idem_sandbox *sandbox, const struct idem_sandbox_call *call)
{
    enum idem_sandbox_fault fault = call->suffers ? call->rule.fault : IDEM_FAULT_OK;

    if (fault == IDEM_FAULT_LOSE_ANSWER || fault == IDEM_FAULT_NOT_FOUND) {
        break_off(call->exchange, false);
        return;
    }
    if (fault == IDEM_FAULT_DEAD_REUSE_AFTER && is_reused(call->exchange)) {
        break_off(call->exchange, true);
        return;
    }
    if (fault == IDEM_FAULT_500_AFTER) {
        idem_sandbox_answer_send(call->exchange, 500, IDEM_STR("{\"error\":\"after\"}"));
        return;
    }
    if (fault == IDEM_FAULT_GARBAGE) {
        idem_sandbox_answer_send(call->exchange, 200, IDEM_STR("<html>It works!</html>"));
        return;
    }
    if (fault == IDEM_FAULT_CUT_BODY) {
        answer_cut(call);
        return;
    }
    if (fault == IDEM_FAULT_UNKNOWN_STATUS) {
        answer_settling(call);
        return;
    }
    if (fault == IDEM_FAULT_LATE) {
        answer_late(sandbox, call);
        return;
    }
    idem_sandbox_answer_known(call);
}

/* Executes, or declines what was asked to fail or what the payment does not allow. */
static bool settle(struct idem_sandbox *sandbox,
                   struct idem_ledger_effect *effect,
                   bool fails,
                   bool settles)
{
    char memory[IDEM_LEDGER_REFERENCE_MAX];
    struct idem_buf reference;
    const struct idem_ledger_effect *payment = payment_of(sandbox, effect);
    const char *code = fails ? "declined" : NULL;

    /* A repeat that is not recognised moves the money again, over the limit or not. */
    if (code == NULL && payment != NULL && effect->executions == 0) {
        code = idem_ledger_allows(payment, &effect->order);
    }
    struct idem_ledger_event event =
        event_of(sandbox, effect, code == NULL ? IDEM_LEDGER_EXECUTION : IDEM_LEDGER_DECLINE);
    idem_buf_init(&reference, memory, sizeof(memory));
    idem_buf_printf(&reference, "sandbox-%09lld",
                    (long long)idem_ledger_executions(sandbox->ledger) + 1);
    event.settles = settles;
    event.code = idem_str_from(code);
    if (code == NULL) {
        event.reference = idem_buf_str(&reference);
    }
    return record(sandbox, &event);
}

void idem_sandbox_send_settle(struct idem_sandbox *sandbox, struct idem_ledger_effect *effect)
{
    /* A ledger that cannot be written says so to whoever asks next; here nobody listens. */
    if (settle(sandbox, effect, effect->due_fails, true)) {
        idem_sandbox_callback_tell(sandbox, effect);
    }
}

bool idem_sandbox_send_anyway(struct idem_sandbox *sandbox, struct idem_ledger_effect *effect)
{
    return settle(sandbox, effect, false, false) && effect->status == IDEM_LEDGER_SUCCEEDED;
}

/* Accepts it and promises to go on later. */
static bool process(struct idem_sandbox *sandbox, const struct idem_sandbox_call *call)
{
    struct idem_ledger_event event = event_of(sandbox, call->effect, IDEM_LEDGER_PROCESSING);
    struct idem_sandbox_call later = { .effect = call->effect, .rule = call->rule };

    event.due_us = event.at_us + call->rule.wait_us;
    event.fails = call->rule.fault == IDEM_FAULT_PROCESSING_FAIL;
    struct idem_sandbox_due *due =
        idem_sandbox_due_create(sandbox, IDEM_DUE_SETTLE, event.due_us, &later);
    if (due == NULL) {
        return false;
    }
    if (!record(sandbox, &event)) {
        idem_sandbox_due_destroy(sandbox, due);
        return false;
    }
    return true;
}

/* Why a later operation cannot refer to the payment it names, or NULL. */
static const char *payment_fault(const struct idem_sandbox *sandbox,
                                 const struct idem_ledger_effect *effect)
{
    if (idem_sandbox_order_makes_payment(effect->order.kind) || effect->executions > 0) {
        return NULL;
    }
    const struct idem_ledger_effect *payment = payment_of(sandbox, effect);
    if (payment == NULL || payment->order_memory == NULL || payment->status == IDEM_LEDGER_NONE ||
        payment->status == IDEM_LEDGER_REFUSED ||
        !idem_sandbox_order_makes_payment(payment->order.kind)) {
        return "payment_unknown";
    }
    if (!idem_str_equal(payment->order.currency, effect->order.currency)) {
        return "currency_differs";
    }
    return NULL;
}

static void refuse(struct idem_sandbox *sandbox,
                   const struct idem_sandbox_call *call,
                   const char *code)
{
    struct idem_ledger_event event = event_of(sandbox, call->effect, IDEM_LEDGER_INVALID);
    struct idem_sandbox_call plain = { .exchange = call->exchange, .effect = call->effect };

    event.code = idem_str_from(code);
    if (!record(sandbox, &event)) {
        idem_sandbox_answer_send(call->exchange, 500, ERROR_LEDGER);
        return;
    }
    idem_sandbox_answer_known(&plain);
}

static bool execute(struct idem_sandbox *sandbox, const struct idem_sandbox_call *call)
{
    if (call->rule.fault == IDEM_FAULT_PROCESSING_OK ||
        call->rule.fault == IDEM_FAULT_PROCESSING_FAIL) {
        return process(sandbox, call);
    }
    return settle(sandbox, call->effect, call->rule.fault == IDEM_FAULT_DECLINE, false);
}

void idem_sandbox_send_execute(struct idem_sandbox *sandbox, struct idem_sandbox_call *call)
{
    const struct idem_sandbox_profile_rules *rules =
        idem_sandbox_profile_rules(call->effect->profile);
    enum idem_ledger_status status = call->effect->status;

    if (status == IDEM_LEDGER_REFUSED || (status == IDEM_LEDGER_CLOSED && rules->close_is_final)) {
        call->rule = (struct idem_sandbox_fault_rule){ .fault = IDEM_FAULT_OK };
        idem_sandbox_answer_known(call);
        return;
    }
    if (rules->deduplicates && status != IDEM_LEDGER_NONE) {
        answer(sandbox, call);
        return;
    }
    const char *code = payment_fault(sandbox, call->effect);
    if (code != NULL) {
        refuse(sandbox, call, code);
        return;
    }
    if (!execute(sandbox, call)) {
        idem_sandbox_answer_send(call->exchange, 500, ERROR_LEDGER);
        return;
    }
    idem_sandbox_callback_tell(sandbox, call->effect);
    answer(sandbox, call);
}

static void answer_not_executed(struct idem_exchange *exchange,
                                uint16_t status,
                                struct idem_str body)
{
    struct idem_net_reply reply = {
        .status = status,
        .headers = IDEM_STR("Content-Type: application/json\r\nRetry-After: 1\r\n"),
        .body = body,
    };

    idem_exchange_reply(exchange, &reply);
}

/* True if the request ended here, before anything was executed. */
static bool fault_before(const struct idem_sandbox_call *call)
{
    enum idem_sandbox_fault fault = call->suffers ? call->rule.fault : IDEM_FAULT_OK;

    if (fault == IDEM_FAULT_LOSE_REQUEST) {
        break_off(call->exchange, false);
        return true;
    }
    if (fault == IDEM_FAULT_DEAD_REUSE && is_reused(call->exchange)) {
        break_off(call->exchange, true);
        return true;
    }
    if (fault == IDEM_FAULT_500_BEFORE) {
        idem_sandbox_answer_send(call->exchange, 500, IDEM_STR("{\"error\":\"before\"}"));
        return true;
    }
    if (fault == IDEM_FAULT_429) {
        answer_not_executed(call->exchange, 429,
                            IDEM_STR("{\"status\":\"not_executed\",\"code\":\"rate_limited\"}"));
        return true;
    }
    if (fault == IDEM_FAULT_503) {
        answer_not_executed(call->exchange, 503,
                            IDEM_STR("{\"status\":\"not_executed\",\"code\":\"unavailable\"}"));
        return true;
    }
    return false;
}

static void slow_down(struct idem_sandbox *sandbox, struct idem_sandbox_call *call)
{
    int64_t due_us = idem_clock_wall_us(sandbox->options.clock) + call->rule.wait_us;

    call->suffers = false;
    if (idem_sandbox_due_create(sandbox, IDEM_DUE_EXECUTE, due_us, call) == NULL) {
        idem_sandbox_answer_send(call->exchange, 500, ERROR_MEMORY);
    }
}

/* A content that was refused, or one that the id does not stand for. True if answered. */
static bool content_refused(struct idem_sandbox *sandbox,
                            const struct idem_sandbox_call *call,
                            const char *fault,
                            bool other)
{
    enum idem_ledger_status status = call->effect->status;
    bool known =
        status != IDEM_LEDGER_NONE && status != IDEM_LEDGER_CLOSED && status != IDEM_LEDGER_REFUSED;

    if (fault != NULL && status == IDEM_LEDGER_NONE) {
        refuse(sandbox, call, fault);
        return true;
    }
    if (known && (fault != NULL ||
                  (other && idem_sandbox_profile_rules(call->effect->profile)->deduplicates))) {
        idem_sandbox_answer_send(call->exchange, 409, IDEM_STR("{\"status\":\"conflict\"}"));
        return true;
    }
    if (fault != NULL) {
        struct idem_sandbox_call plain = { .exchange = call->exchange, .effect = call->effect };
        idem_sandbox_answer_known(&plain);
        return true;
    }
    return false;
}

/* The body as an object with a valid id in it, or why not. */
static const char *envelope_read(struct idem_sandbox *sandbox,
                                 const struct idem_exchange *exchange,
                                 struct idem_json *json,
                                 struct idem_str *ret_id)
{
    struct idem_json_fault fault;
    struct idem_str type = idem_exchange_header(exchange, IDEM_STR("content-type"), NULL);

    if (!idem_str_equal_nocase(idem_str_trim(idem_str_next(&type, ';')),
                               IDEM_STR("application/json"))) {
        return "content_type";
    }
    idem_json_init(json, sandbox->tokens, IDEM_SANDBOX_TOKENS_MAX);
    if (!idem_json_parse(json, idem_exchange_request(exchange)->body, &fault) ||
        json->tokens[0].kind != IDEM_JSON_OBJECT) {
        return "json";
    }
    size_t index = idem_json_member(json, 0, IDEM_STR("id"));
    if (index == 0 || json->tokens[index].kind != IDEM_JSON_STRING ||
        !idem_sandbox_order_id_valid(json->tokens[index].raw)) {
        return "id_invalid";
    }
    if (!idem_str_equal(idem_exchange_header(exchange, IDEM_STR("idempotency-key"), NULL),
                        json->tokens[index].raw)) {
        return "key_differs";
    }
    *ret_id = json->tokens[index].raw;
    return NULL;
}

/* Without our id in it, so that nobody takes it for the end of an effect. */
static void answer_unreadable(struct idem_exchange *exchange, const char *code)
{
    char memory[128];
    struct idem_buf body;

    idem_buf_init(&body, memory, sizeof(memory));
    idem_buf_printf(&body, "{\"status\":\"invalid\",\"code\":\"%s\"}", code);
    idem_sandbox_answer_send(exchange, 400, idem_buf_str(&body));
}

void idem_sandbox_send_take(struct idem_sandbox *sandbox,
                            enum idem_sandbox_profile profile,
                            struct idem_exchange *exchange)
{
    struct idem_json json;
    struct idem_buf memory;
    struct idem_sandbox_order order = { .kind = IDEM_ORDER_NONE };
    struct idem_ledger_event event = { .kind = IDEM_LEDGER_ARRIVAL, .profile = profile };

    const char *fault = envelope_read(sandbox, exchange, &json, &event.id);
    if (fault != NULL) {
        answer_unreadable(exchange, fault);
        return;
    }
    idem_buf_init(&memory, sandbox->text_memory, IDEM_SANDBOX_BODY_MAX);
    fault = idem_sandbox_order_read(&json, 0, &memory, &order);

    const struct idem_ledger_effect *known = idem_ledger_find(sandbox->ledger, profile, event.id);
    bool has_content = known != NULL && known->order_memory != NULL;
    event.other =
        has_content && (fault != NULL || !idem_sandbox_order_equal(&known->order, &order));
    event.order = fault == NULL && (!has_content || event.other) ? &order : NULL;
    event.at_us = idem_clock_wall_us(sandbox->options.clock);
    event.trace = idem_sandbox_trace(exchange);
    if (!record(sandbox, &event)) {
        idem_sandbox_answer_send(exchange, 500, ERROR_LEDGER);
        return;
    }

    struct idem_sandbox_call call = {
        .exchange = exchange,
        .effect = idem_ledger_find(sandbox->ledger, profile, event.id),
    };
    IDEM_ASSERT(call.effect != NULL);
    if (content_refused(sandbox, &call, fault, event.other)) {
        return;
    }
    call.rule = idem_sandbox_send_rule(sandbox, call.effect);
    call.suffers = call.rule.always || call.effect->arrivals == 1;
    if (fault_before(&call)) {
        return;
    }
    bool is_repeat = idem_sandbox_profile_rules(profile)->deduplicates &&
                     call.effect->status != IDEM_LEDGER_NONE;
    if (call.rule.fault == IDEM_FAULT_SLOW && !is_repeat) {
        slow_down(sandbox, &call);
        return;
    }
    idem_sandbox_send_execute(sandbox, &call);
}
