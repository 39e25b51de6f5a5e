/*
 * The ledger as the page that tests read.
 *
 * The sums at its end are of the effects shown, so that a test that asks for one order number reads
 * the verdict about that order and nothing else.
 */
#include "base/bug.h"
#include "base/currency.h"
#include "base/json.h"
#include "base/money.h"
#include "sandbox/ledger.h"

static const struct idem_str status_names[IDEM_LEDGER_STATUS_COUNT] = {
    [IDEM_LEDGER_NONE] = { "none", 4 },         [IDEM_LEDGER_SUCCEEDED] = { "succeeded", 9 },
    [IDEM_LEDGER_DECLINED] = { "declined", 8 }, [IDEM_LEDGER_IN_PROCESS] = { "processing", 10 },
    [IDEM_LEDGER_CLOSED] = { "closed", 6 },     [IDEM_LEDGER_REFUSED] = { "invalid", 7 },
};

struct idem_str idem_ledger_status_name(enum idem_ledger_status status)
{
    IDEM_ASSERT(status < IDEM_LEDGER_STATUS_COUNT);
    return status_names[status];
}

static void text_print(struct idem_str name, struct idem_str text, struct idem_buf *buf)
{
    if (text.len > 0) {
        idem_buf_add_char(buf, ',');
        idem_json_add_string(buf, name);
        idem_buf_add_char(buf, ':');
        idem_json_add_string(buf, text);
    }
}

static void count_print(struct idem_str name, int64_t count, struct idem_buf *buf)
{
    idem_buf_add_char(buf, ',');
    idem_json_add_string(buf, name);
    idem_buf_add_char(buf, ':');
    idem_buf_add_i64(buf, count);
}

static void amount_print(struct idem_str name,
                         int64_t minor,
                         struct idem_str currency,
                         struct idem_buf *buf)
{
    idem_buf_add_char(buf, ',');
    idem_json_add_string(buf, name);
    idem_buf_add(buf, IDEM_STR(":\""));
    idem_amount_print(minor, idem_currency_exponent(currency), buf);
    idem_buf_add_char(buf, '"');
}

static void order_print(const struct idem_ledger_effect *effect, struct idem_buf *buf)
{
    const struct idem_sandbox_order *order = &effect->order;

    text_print(IDEM_STR("kind"), idem_sandbox_order_kind_name(order->kind), buf);
    amount_print(IDEM_STR("amount"), order->amount_minor, order->currency, buf);
    text_print(IDEM_STR("currency"), order->currency, buf);
    text_print(IDEM_STR("order_no"), order->order_no, buf);
    text_print(IDEM_STR("payment_id"), order->payment_id, buf);
    if (idem_sandbox_order_makes_payment(order->kind)) {
        amount_print(IDEM_STR("authorized"), effect->authorized, order->currency, buf);
        amount_print(IDEM_STR("captured"), effect->captured, order->currency, buf);
        amount_print(IDEM_STR("canceled"), effect->canceled, order->currency, buf);
        amount_print(IDEM_STR("refunded"), effect->refunded, order->currency, buf);
    }
}

static void effect_print(const struct idem_ledger_effect *effect, struct idem_buf *buf)
{
    idem_buf_add(buf, IDEM_STR("{\"id\":"));
    idem_json_add_string(buf, effect->id);
    text_print(IDEM_STR("profile"), idem_sandbox_profile_rules(effect->profile)->name, buf);
    if (effect->order_memory != NULL) {
        order_print(effect, buf);
    }
    text_print(IDEM_STR("status"), status_names[effect->status], buf);
    text_print(IDEM_STR("code"), effect->code, buf);
    text_print(IDEM_STR("reference"), effect->reference, buf);
    text_print(IDEM_STR("trace"), effect->trace, buf);
    count_print(IDEM_STR("arrivals"), effect->arrivals, buf);
    count_print(IDEM_STR("executions"), effect->executions, buf);
    count_print(IDEM_STR("queries"), effect->queries, buf);
    count_print(IDEM_STR("closes"), effect->closes, buf);
    count_print(IDEM_STR("listings"), effect->listings, buf);
    count_print(IDEM_STR("conflicts"), effect->conflicts, buf);
    count_print(IDEM_STR("reversals"), effect->reversals, buf);
    count_print(IDEM_STR("callbacks"), effect->callbacks, buf);
    count_print(IDEM_STR("callbacks_taken"), effect->callbacks_taken, buf);
    idem_buf_add_char(buf, '}');
}

static bool passes(struct idem_str wanted, struct idem_str actual)
{
    return wanted.len == 0 || idem_str_equal(wanted, actual);
}

void idem_ledger_print(const struct idem_ledger *ledger,
                       const struct idem_ledger_filter *filter,
                       struct idem_buf *buf)
{
    int64_t arrivals = 0;
    int64_t executions = 0;
    bool first = true;

    idem_buf_add(buf, IDEM_STR("{\"effects\":["));
    IDEM_LIST_FOREACH (node, idem_ledger_effects(ledger)) {
        const struct idem_ledger_effect *effect =
            IDEM_CONTAINER_OF(node, struct idem_ledger_effect, node);
        if (!passes(filter->id, effect->id) || !passes(filter->order_no, effect->order.order_no)) {
            continue;
        }
        idem_buf_add(buf, first ? IDEM_STR("") : IDEM_STR(",\n"));
        effect_print(effect, buf);
        arrivals += effect->arrivals;
        executions += effect->executions;
        first = false;
    }
    idem_buf_add_char(buf, ']');
    count_print(IDEM_STR("arrivals"), arrivals, buf);
    count_print(IDEM_STR("executions"), executions, buf);
    idem_buf_add(buf, IDEM_STR("}\n"));
}
