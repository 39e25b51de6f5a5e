/*
 * Fuzzes the lines of the ledger by which tests are judged, against jansson.
 *
 * The input is a line of the ledger's file. Properties, for any bytes:
 *   - a line that is taken is an object that says when, what, where and of which effect, each as
 *     jansson reads it; an order in it has the kind, amount, currency and texts that jansson reads,
 *     and belongs to a known kind;
 *   - a flag counts only if it is true: no arrival, execution or settlement is made up;
 *   - written again it is one line, which is read as the same event, and written the same: so what
 *     a sandbox knows after a restart is what it knew before.
 */
#include "sandbox/event.h"

#include <string.h>

#include "base/currency.h"
#include "base/money.h"

#include "fuzz/fuzz.h"
#include "fuzz/theirs.h"

#define SIZE_TRIED 4096

static char memory[IDEM_EVENT_LINE_MAX];
static char second_memory[IDEM_EVENT_LINE_MAX];
static char line_memory[IDEM_EVENT_LINE_MAX];
static char second_line_memory[IDEM_EVENT_LINE_MAX];

static const char *const kinds[IDEM_LEDGER_EVENT_COUNT] = {
    [IDEM_LEDGER_NOTHING] = "",
    [IDEM_LEDGER_ARRIVAL] = "arrival",
    [IDEM_LEDGER_EXECUTION] = "execution",
    [IDEM_LEDGER_DECLINE] = "decline",
    [IDEM_LEDGER_PROCESSING] = "processing",
    [IDEM_LEDGER_INVALID] = "invalid",
    [IDEM_LEDGER_QUERY] = "query",
    [IDEM_LEDGER_CLOSE] = "close",
    [IDEM_LEDGER_LISTING] = "listing",
    [IDEM_LEDGER_REVERSAL] = "reversal",
    [IDEM_LEDGER_CALLBACK] = "callback",
};

static const char *const order_kinds[IDEM_ORDER_KIND_COUNT] = {
    [IDEM_ORDER_NONE] = "",
    [IDEM_ORDER_CHARGE] = "charge",
    [IDEM_ORDER_AUTHORIZE] = "authorize",
    [IDEM_ORDER_CAPTURE] = "capture",
    [IDEM_ORDER_CANCEL] = "cancel",
    [IDEM_ORDER_REFUND] = "refund",
};

static bool same_text(struct idem_str text, const json_t *object, const char *name)
{
    return idem_str_equal(text, theirs_text(object, name));
}

static bool same_flag(bool flag, const json_t *object, const char *name)
{
    return flag == json_is_true(json_object_get(object, name));
}

static void check_order(const struct idem_sandbox_order *order, const json_t *theirs)
{
    char amount_memory[IDEM_AMOUNT_TEXT_MAX];
    struct idem_buf buf;
    int exponent = idem_currency_exponent(order->currency);
    FUZZ_EXPECT(order->kind > IDEM_ORDER_NONE && order->kind < IDEM_ORDER_KIND_COUNT);
    FUZZ_EXPECT(theirs_is(theirs, "kind", order_kinds[order->kind]));
    FUZZ_EXPECT(exponent >= 0 && order->amount_minor > 0);
    idem_buf_init(&buf, amount_memory, sizeof(amount_memory));
    idem_amount_print(order->amount_minor, exponent, &buf);
    FUZZ_EXPECT(same_text(idem_buf_str(&buf), theirs, "amount"));
    FUZZ_EXPECT(same_text(order->id, theirs, "id") &&
                same_text(order->currency, theirs, "currency"));
    FUZZ_EXPECT(same_text(order->order_no, theirs, "order_no"));
    FUZZ_EXPECT(same_text(order->method, theirs, "method"));
    FUZZ_EXPECT(same_text(order->description, theirs, "description"));
    FUZZ_EXPECT(same_text(order->payment_id, theirs, "payment_id"));
    FUZZ_EXPECT(same_text(order->payment_reference, theirs, "payment_reference"));
    bool payment = idem_sandbox_order_makes_payment(order->kind);
    FUZZ_EXPECT(payment == (order->method.len > 0) && payment == (order->payment_id.len == 0));
}

static void check_event(const struct idem_ledger_event *event, const json_t *theirs)
{
    FUZZ_EXPECT(json_integer_value(json_object_get(theirs, "at")) == event->at_us);
    FUZZ_EXPECT(event->kind > IDEM_LEDGER_NOTHING && event->kind < IDEM_LEDGER_EVENT_COUNT);
    FUZZ_EXPECT(theirs_is(theirs, "event", kinds[event->kind]));
    FUZZ_EXPECT(event->profile > IDEM_PROFILE_NONE && event->profile < IDEM_PROFILE_COUNT);
    FUZZ_EXPECT(same_text(idem_sandbox_profile_rules(event->profile)->name, theirs, "profile"));
    FUZZ_EXPECT(event->id.len > 0 && same_text(event->id, theirs, "id"));
    FUZZ_EXPECT(same_text(event->reference, theirs, "reference"));
    FUZZ_EXPECT(same_text(event->code, theirs, "code") && same_text(event->trace, theirs, "trace"));
    FUZZ_EXPECT(same_flag(event->other, theirs, "other"));
    FUZZ_EXPECT(same_flag(event->settles, theirs, "settles"));
    FUZZ_EXPECT(same_flag(event->fails, theirs, "fails"));
    FUZZ_EXPECT(same_flag(event->closes, theirs, "closes"));
    FUZZ_EXPECT(same_flag(event->taken, theirs, "taken"));
    FUZZ_EXPECT((event->order != NULL) == (json_object_get(theirs, "order") != NULL));
    if (event->order != NULL) {
        check_order(event->order, json_object_get(theirs, "order"));
    }
}

static struct idem_str line_print(const struct idem_ledger_event *event, char *into)
{
    struct idem_buf buf;
    idem_buf_init(&buf, into, IDEM_EVENT_LINE_MAX);
    idem_ledger_event_print(event, &buf);
    FUZZ_EXPECT(!buf.full && buf.len > 1);
    struct idem_str line = idem_str_slice(idem_buf_str(&buf), 0, buf.len - 1);
    FUZZ_EXPECT(buf.data[buf.len - 1] == '\n' && idem_str_find(line, '\n') == line.len);
    return line;
}

static void check_written(const struct idem_ledger_event *event)
{
    struct idem_sandbox_order order = { .kind = IDEM_ORDER_NONE };
    struct idem_ledger_event again = { .kind = IDEM_LEDGER_NOTHING };
    struct idem_buf buf;
    struct idem_str line = line_print(event, line_memory);
    idem_buf_init(&buf, second_memory, sizeof(second_memory));
    FUZZ_EXPECT(idem_ledger_event_read(line, &buf, &order, &again));
    FUZZ_EXPECT(again.kind == event->kind && again.at_us == event->at_us);
    FUZZ_EXPECT(again.due_us == event->due_us && idem_str_equal(again.id, event->id));
    FUZZ_EXPECT((again.order != NULL) == (event->order != NULL));
    FUZZ_EXPECT(again.order == NULL || idem_sandbox_order_equal(again.order, event->order));
    FUZZ_EXPECT(idem_str_equal(line_print(&again, second_line_memory), line));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_str line = { .data = size == 0 ? "" : (const char *)data, .len = size };
    struct idem_sandbox_order order = { .kind = IDEM_ORDER_NONE };
    struct idem_ledger_event event = { .kind = IDEM_LEDGER_NOTHING };
    struct idem_buf buf;
    if (size > SIZE_TRIED) {
        return 0;
    }
    idem_buf_init(&buf, memory, sizeof(memory));
    if (!idem_ledger_event_read(line, &buf, &order, &event)) {
        return 0;
    }
    json_t *theirs = theirs_load(line);
    if (theirs != NULL) { /* Else numbers beyond jansson's range, or names with zero bytes. */
        check_event(&event, theirs);
    }
    check_written(&event);
    json_decref(theirs);
    return 0;
}
