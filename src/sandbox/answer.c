/*
 * What the provider says about an effect. One function prints it for sends, repeats, queries and
 * closes alike, so that they agree unless a fault was asked for; a listing and a callback are made
 * of the same parts.
 */
#include "sandbox/sandbox_internal.h"

#include "base/bug.h"
#include "base/currency.h"
#include "base/date.h"
#include "base/money.h"

static void text_print(const char *name, struct idem_str text, struct idem_buf *buf)
{
    idem_buf_add(buf, IDEM_STR(",\""));
    idem_buf_add(buf, idem_str_from(name));
    idem_buf_add(buf, IDEM_STR("\":"));
    idem_json_add_string(buf, text);
}

/* Another currency with the same number of decimals, so that the amount stays well-formed. */
static struct idem_str other_currency(struct idem_str currency)
{
    int exponent = idem_currency_exponent(currency);
    size_t index = 0;
    struct idem_str other = idem_currency_at(index);

    while (other.len > 0 &&
           (idem_str_equal(other, currency) || idem_currency_exponent(other) != exponent)) {
        index += 1;
        other = idem_currency_at(index);
    }
    return other.len > 0 ? other : IDEM_STR("USD");
}

/*
 * A wrong one differs in its second character, behind the kind: in idem's ids all bits of it say
 * whose it is, so that it is nobody's. The last one has bits that do not.
 */
static void id_print(struct idem_str id, bool wrong, struct idem_buf *buf)
{
    size_t at = id.len > 1 ? 1 : 0;
    char other = id.data[at];
    if (wrong) {
        other = other == 'x' ? 'y' : 'x';
    }
    idem_buf_add(buf, IDEM_STR("{\"id\":\""));
    idem_buf_add(buf, idem_str_slice(id, 0, at));
    idem_buf_add_char(buf, other);
    idem_buf_add(buf, idem_str_slice(id, at + 1, id.len - at - 1));
    idem_buf_add_char(buf, '"');
}

static void money_print(const struct idem_sandbox_order *order,
                        enum idem_sandbox_answer_lie lie,
                        struct idem_buf *buf)
{
    int64_t amount = order->amount_minor;
    struct idem_str currency = order->currency;

    if (lie == IDEM_LIE_AMOUNT && !idem_amount_add(amount, amount, &amount)) {
        amount -= 1; /* There is no twice; any other amount is as wrong. */
    }
    if (lie == IDEM_LIE_CURRENCY) {
        currency = other_currency(currency);
    }
    idem_buf_add(buf, IDEM_STR(",\"amount\":\""));
    idem_amount_print(amount, idem_currency_exponent(currency), buf);
    idem_buf_add_char(buf, '"');
    text_print("currency", currency, buf);
}

uint16_t idem_sandbox_answer_print(const struct idem_ledger_effect *effect,
                                   enum idem_sandbox_answer_lie lie,
                                   struct idem_buf *buf)
{
    struct idem_str status = idem_ledger_status_name(effect->status);

    IDEM_ASSERT(effect->status != IDEM_LEDGER_NONE);
    if (effect->status != IDEM_LEDGER_SUCCEEDED) {
        lie = IDEM_LIE_NONE; /* Nothing moved, so there is nothing to be wrong about. */
    }
    id_print(effect->id, lie == IDEM_LIE_ID, buf);
    text_print("status", lie == IDEM_LIE_STATUS ? IDEM_STR("settling") : status, buf);
    if (effect->order_memory != NULL && effect->status != IDEM_LEDGER_REFUSED) {
        money_print(&effect->order, lie, buf);
    }
    if (effect->status == IDEM_LEDGER_SUCCEEDED) {
        text_print("reference", effect->reference, buf);
    }
    if (effect->code.len > 0) {
        text_print("code", effect->code, buf);
        text_print("message", IDEM_STR("refused by the sandbox"), buf);
    }
    idem_buf_add_char(buf, '}');
    IDEM_ASSERT(!buf->full);
    return effect->status == IDEM_LEDGER_REFUSED ? 400 : 200;
}

void idem_sandbox_answer_send(struct idem_exchange *exchange, uint16_t status, struct idem_str body)
{
    struct idem_net_reply reply = {
        .status = status,
        .headers = IDEM_STR("Content-Type: application/json\r\n"),
        .body = body,
    };

    if (exchange != NULL) {
        idem_exchange_reply(exchange, &reply);
    }
}

static enum idem_sandbox_answer_lie lasting_lie(enum idem_sandbox_fault fault)
{
    if (fault == IDEM_FAULT_WRONG_AMOUNT) {
        return IDEM_LIE_AMOUNT;
    }
    if (fault == IDEM_FAULT_WRONG_CURRENCY) {
        return IDEM_LIE_CURRENCY;
    }
    return fault == IDEM_FAULT_WRONG_ID ? IDEM_LIE_ID : IDEM_LIE_NONE;
}

void idem_sandbox_answer_print_listed(const struct idem_ledger_effect *effect,
                                      const struct idem_sandbox_fault_rule *rule,
                                      struct idem_buf *buf)
{
    const struct idem_sandbox_order *order = &effect->order;
    enum idem_sandbox_answer_lie lie = lasting_lie(rule->fault);

    IDEM_ASSERT(effect->executions > 0);
    id_print(effect->id, lie == IDEM_LIE_ID, buf);
    text_print("kind", idem_sandbox_order_kind_name(order->kind), buf);
    money_print(order, lie, buf);
    text_print("order_no", order->order_no, buf);
    text_print("reference", effect->reference, buf);
    if (!idem_sandbox_order_makes_payment(order->kind)) {
        text_print("payment_id", order->payment_id, buf);
    }
    idem_buf_add(buf, IDEM_STR(",\"happened\":\""));
    idem_date_print_rfc3339(effect->executed_us, buf);
    idem_buf_add(buf, IDEM_STR("\"}"));
}

static enum idem_sandbox_answer_lie told_lie(enum idem_sandbox_telling telling)
{
    if (telling == IDEM_TELLING_WRONG_AMOUNT) {
        return IDEM_LIE_AMOUNT;
    }
    return telling == IDEM_TELLING_WRONG_CURRENCY ? IDEM_LIE_CURRENCY : IDEM_LIE_NONE;
}

void idem_sandbox_answer_print_told(const struct idem_ledger_effect *effect,
                                    const struct idem_sandbox_tale *tale,
                                    struct idem_buf *buf)
{
    static const struct idem_str outcomes[] = {
        [IDEM_TOLD_PROCESSING] = { "processing", 10 }, [IDEM_TOLD_SUCCEEDED] = { "succeeded", 9 },
        [IDEM_TOLD_REFUSED] = { "refused", 7 },        [IDEM_TOLD_CLOSED] = { "closed", 6 },
        [IDEM_TOLD_REVERSED] = { "reversed", 8 },
    };
    bool unknown = tale->telling == IDEM_TELLING_UNKNOWN_OUTCOME;

    if (tale->telling == IDEM_TELLING_GARBAGE) {
        idem_buf_add(buf, IDEM_STR("<html>It works!</html>"));
        return;
    }
    id_print(effect->id, tale->telling == IDEM_TELLING_WRONG_ID, buf);
    text_print("event", tale->event, buf);
    text_print("outcome", unknown ? IDEM_STR("settling") : outcomes[tale->outcome], buf);
    if (tale->telling == IDEM_TELLING_WRONG_ACCOUNT) {
        text_print("account", IDEM_STR("another-account"), buf);
    }
    if (effect->order_memory != NULL) {
        bool wrong = tale->telling == IDEM_TELLING_WRONG_ORDER;
        text_print("order_no", wrong ? IDEM_STR("another-order") : effect->order.order_no, buf);
    }
    if (tale->outcome == IDEM_TOLD_SUCCEEDED || tale->outcome == IDEM_TOLD_REVERSED) {
        money_print(&effect->order, told_lie(tale->telling), buf);
        text_print("reference", effect->reference, buf);
    }
    if (tale->outcome == IDEM_TOLD_REFUSED && effect->code.len > 0) {
        text_print("code", effect->code, buf);
        text_print("message", IDEM_STR("refused by the sandbox"), buf);
    }
    idem_buf_add(buf, IDEM_STR(",\"happened\":\""));
    idem_date_print_rfc3339(tale->happened_us, buf);
    idem_buf_add(buf, IDEM_STR("\"}"));
}

void idem_sandbox_answer_known(const struct idem_sandbox_call *call)
{
    char memory[IDEM_ANSWER_MAX];
    struct idem_buf body;

    idem_buf_init(&body, memory, sizeof(memory));
    uint16_t status = idem_sandbox_answer_print(call->effect, lasting_lie(call->rule.fault), &body);
    idem_sandbox_answer_send(call->exchange, status, idem_buf_str(&body));
}
