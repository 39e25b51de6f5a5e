/*
 * Fuzzes the bodies that move money, against the rules written a second time over jansson.
 *
 * The input is a letter ('p' a payment, 'c' a capture, 'r' a refund, 'x' a cancellation) and a
 * body. Properties, for any bytes:
 *   - of a body that is strict JSON exactly that is accepted which docs/api.md allows: the members
 *     of the endpoint and no others, each of its kind, length and characters, the required ones
 *     there, the currency in the table, the amount plain and with its decimals;
 *   - what reaches the command is what jansson reads, member by member; what is absent is empty;
 *   - the command, written as a body again, is accepted and is the same command.
 */
#include "api/body.h"

#include <string.h>

#include "base/currency.h"
#include "base/money.h"
#include "core/limits.h"

#include "fuzz/fuzz.h"
#include "fuzz/theirs.h"

#define MEMORY_SIZE 65536
#define SIZE_TRIED  8192

enum form {
    FORM_VISIBLE = 0,
    FORM_FREE,
    FORM_OBJECT
};

struct rule {
    const char *name;
    const char *required; /* Letters of the endpoints that need it, and that may have it. */
    const char *allowed;
    enum form form;
    size_t max;
};

static const struct rule rules[] = {
    { "order_no", "p", "p", FORM_VISIBLE, 64 }, { "amount", "p", "pcr", FORM_VISIBLE, 24 },
    { "currency", "p", "p", FORM_VISIBLE, 3 },  { "provider", "p", "p", FORM_VISIBLE, 32 },
    { "capture", "", "p", FORM_VISIBLE, 9 },    { "method", "", "p", FORM_VISIBLE, 128 },
    { "description", "", "p", FORM_FREE, 255 }, { "metadata", "", "p", FORM_OBJECT, 2048 },
    { "refund_no", "", "r", FORM_VISIBLE, 64 },
};

static const struct {
    char letter;
    enum idem_endpoint endpoint;
} endpoints[] = {
    { 'p', IDEM_ENDPOINT_PAYMENTS_CREATE },
    { 'c', IDEM_ENDPOINT_PAYMENTS_CAPTURE },
    { 'x', IDEM_ENDPOINT_PAYMENTS_CANCEL },
    { 'r', IDEM_ENDPOINT_REFUNDS_CREATE },
};

static struct idem_body body;
static struct idem_body second_body;
static char memory[MEMORY_SIZE];
static char second_memory[MEMORY_SIZE];

static bool read_body(struct idem_body *read, char *kept, struct idem_accept *accept)
{
    struct idem_buf buf;
    struct idem_fault fault = { .problem = IDEM_PROBLEM_NONE };
    idem_buf_init(&buf, kept, MEMORY_SIZE);
    bool accepted = idem_body_read_accept(read, &buf, accept, &fault);
    FUZZ_EXPECT(accepted == (fault.problem == IDEM_PROBLEM_NONE));
    FUZZ_EXPECT(accepted || (fault.problem == IDEM_PROBLEM_BODY_INVALID && fault.len > 0));
    return accepted;
}

/* ---- the rules, a second time ---- */

static bool bytes_fit(struct idem_str text, enum form form)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        bool c1 = byte == 0xC2 && i + 1 < text.len && (unsigned char)text.data[i + 1] < 0xA0;
        bool bad =
            form == FORM_FREE ? byte < 0x20 || byte == 0x7F || c1 : byte < 0x21 || byte > 0x7E;
        if (bad) {
            return false;
        }
    }
    return form == FORM_FREE || text.len > 0;
}

/* `raw_len` is how long the value is as it stands in the body. */
static bool member_fits(const json_t *value, const struct rule *rule, size_t raw_len)
{
    if (rule->form == FORM_OBJECT) {
        return json_is_object(value) && raw_len <= rule->max;
    }
    struct idem_str text = theirs_str(value);
    return text.data != NULL && text.len <= rule->max && bytes_fit(text, rule->form);
}

static const struct rule *rule_find(const char *name, char letter)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rules); i++) {
        if (strcmp(rules[i].name, name) == 0 && strchr(rules[i].allowed, letter) != NULL) {
            return &rules[i];
        }
    }
    return NULL;
}

/* Plain, more than zero, in 63 bits; with `decimals`, or with 0 to 4 of them if that is -1. */
static bool amount_fits(struct idem_str text, int decimals)
{
    size_t point = idem_str_find(text, '.');
    size_t found = point < text.len ? text.len - point - 1 : 0;
    uint64_t minor = 0;
    if (text.len == 0 || point == 0 || (point < text.len && found == 0) || found > 4 ||
        (decimals >= 0 && found != (size_t)decimals) || (point > 1 && text.data[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        bool digit = text.data[i] >= '0' && text.data[i] <= '9';
        if (!digit && i != point) {
            return false;
        }
        minor = digit ? fuzz_digit_add(minor, text.data[i]) : minor;
    }
    return minor > 0 && minor <= INT64_MAX;
}

static bool money_fits(const json_t *theirs, char letter)
{
    if (letter == 'p') {
        int exponent = idem_currency_exponent(theirs_text(theirs, "currency"));
        return exponent >= 0 && amount_fits(theirs_text(theirs, "amount"), exponent);
    }
    return json_object_get(theirs, "amount") == NULL ||
           amount_fits(theirs_text(theirs, "amount"), -1);
}

static bool is_allowed(json_t *theirs, char letter)
{
    const char *name;
    json_t *value;
    json_object_foreach(theirs, name, value)
    {
        const struct rule *rule = rule_find(name, letter);
        size_t index = idem_json_member(&body.json, 0, idem_str_from(name));
        if (rule == NULL || !member_fits(value, rule, body.json.tokens[index].raw.len)) {
            return false;
        }
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rules); i++) {
        if (strchr(rules[i].required, letter) != NULL &&
            json_object_get(theirs, rules[i].name) == NULL) {
            return false;
        }
    }
    struct idem_str capture = theirs_text(theirs, "capture");
    bool mode = capture.data == NULL || idem_str_equal(capture, IDEM_STR("automatic")) ||
                idem_str_equal(capture, IDEM_STR("manual"));
    return mode && money_fits(theirs, letter);
}

/* ---- what came of it ---- */

static void check_command(const struct idem_accept *accept, const json_t *theirs)
{
    FUZZ_EXPECT(idem_str_equal(accept->order_no, theirs_text(theirs, "order_no")));
    FUZZ_EXPECT(idem_str_equal(accept->entry, theirs_text(theirs, "provider")));
    FUZZ_EXPECT(idem_str_equal(accept->method, theirs_text(theirs, "method")));
    FUZZ_EXPECT(idem_str_equal(accept->description, theirs_text(theirs, "description")));
    FUZZ_EXPECT(idem_str_equal(accept->refund_no, theirs_text(theirs, "refund_no")));
    FUZZ_EXPECT(idem_str_equal(accept->currency, theirs_text(theirs, "currency")));
    FUZZ_EXPECT((accept->metadata.len > 0) == (json_object_get(theirs, "metadata") != NULL));
    if (accept->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        bool manual = theirs_is(theirs, "capture", "manual");
        FUZZ_EXPECT((accept->capture_mode == IDEM_CAPTURE_MANUAL) == manual);
        FUZZ_EXPECT(accept->amount_text.len == 0);
        return;
    }
    FUZZ_EXPECT(idem_str_equal(accept->amount_text, theirs_text(theirs, "amount")));
}

static void add(struct idem_buf *buf, const char *name, struct idem_str value)
{
    if (value.data != NULL) {
        idem_buf_add(buf, buf->len > 1 ? IDEM_STR(",") : IDEM_STR(""));
        idem_json_add_string(buf, idem_str_from(name));
        idem_buf_add_char(buf, ':');
        idem_json_add_string(buf, value);
    }
}

static void body_print(const struct idem_accept *accept, struct idem_buf *buf)
{
    bool create = accept->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE;
    char amount_memory[IDEM_AMOUNT_TEXT_MAX];
    struct idem_buf amount;
    idem_buf_init(&amount, amount_memory, sizeof(amount_memory));
    if (create) {
        idem_amount_print(accept->amount_minor, idem_currency_exponent(accept->currency), &amount);
    }
    idem_buf_add_char(buf, '{');
    add(buf, "amount", create ? idem_buf_str(&amount) : accept->amount_text);
    add(buf, "order_no", accept->order_no);
    add(buf, "provider", accept->entry);
    add(buf, "method", accept->method);
    add(buf, "description", accept->description);
    add(buf, "refund_no", accept->refund_no);
    add(buf, "currency", accept->currency);
    if (create) {
        add(buf, "capture", idem_str_from(idem_capture_mode_name(accept->capture_mode)));
    }
    if (accept->metadata.len > 0) {
        idem_buf_add(buf, IDEM_STR(",\"metadata\":"));
        idem_buf_add(buf, accept->metadata);
    }
    idem_buf_add_char(buf, '}');
    FUZZ_EXPECT(!buf->full);
}

static void check_written(const struct idem_accept *accept)
{
    static char text_memory[MEMORY_SIZE];
    struct idem_buf text;
    struct idem_fault fault;
    struct idem_accept again = { .endpoint = accept->endpoint };
    idem_buf_init(&text, text_memory, sizeof(text_memory));
    body_print(accept, &text);
    FUZZ_EXPECT(idem_body_parse(&second_body, idem_buf_str(&text), &fault));
    FUZZ_EXPECT(read_body(&second_body, second_memory, &again));
    FUZZ_EXPECT(again.amount_minor == accept->amount_minor);
    FUZZ_EXPECT(again.capture_mode == accept->capture_mode);
    FUZZ_EXPECT(idem_str_equal(again.amount_text, accept->amount_text));
    FUZZ_EXPECT(idem_str_equal(again.order_no, accept->order_no));
    FUZZ_EXPECT(idem_str_equal(again.entry, accept->entry));
    FUZZ_EXPECT(idem_str_equal(again.method, accept->method));
    FUZZ_EXPECT(idem_str_equal(again.description, accept->description));
    FUZZ_EXPECT(idem_str_equal(again.metadata, accept->metadata));
    FUZZ_EXPECT(idem_str_equal(again.refund_no, accept->refund_no));
    FUZZ_EXPECT(idem_str_equal(again.currency, accept->currency));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_accept accept = { .endpoint = IDEM_ENDPOINT_NONE };
    struct idem_fault fault;
    struct idem_str text = { .data = (const char *)data + 1, .len = size - 1 };
    if (size == 0 || size > SIZE_TRIED) {
        return 0;
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(endpoints); i++) {
        accept.endpoint =
            data[0] == (uint8_t)endpoints[i].letter ? endpoints[i].endpoint : accept.endpoint;
    }
    if (accept.endpoint == IDEM_ENDPOINT_NONE || !idem_body_parse(&body, text, &fault)) {
        return 0;
    }
    bool accepted = read_body(&body, memory, &accept);
    json_t *theirs = theirs_load(text);
    if (theirs != NULL) { /* Else numbers beyond jansson's range, or names with zero bytes. */
        FUZZ_EXPECT(accepted == is_allowed(theirs, (char)data[0]));
    }
    if (accepted && theirs != NULL) {
        check_command(&accept, theirs);
    }
    if (accepted) {
        check_written(&accept);
    }
    json_decref(theirs);
    return 0;
}
