/*
 * Fuzzes the bodies by which people end what money is in, and say who calls and who is told:
 * against the rules of docs/api.md and docs/admin.md, written a second time over jansson.
 *
 * The input is a letter ('a' abandon, 'v' a person's verdict, 'n' a reason alone, 'k' a credential,
 * 'w' a webhook, 'g' the generation of a secret, 'r' a replay) and a body. Properties, for any
 * bytes:
 *   - of a body that is strict JSON exactly that is accepted which the documents allow: those
 *     members and no others, each of its kind, length and characters; "succeeded" with amount and
 *     currency, and no other verdict with any of what belongs to it;
 *   - what reaches the command is what jansson reads, member by member: the verdict and the role
 *     are the word, the amount prints as the very text, the digest as the very digits, the grants
 *     are the list and nothing else;
 *   - a refusal says why.
 */
#include "api/body.h"

#include <string.h>
#include <strings.h>

#include "base/currency.h"
#include "base/money.h"

#include "fuzz/fuzz.h"
#include "fuzz/theirs.h"

#define MEMORY_SIZE 65536
#define SIZE_TRIED  8192
#define GRANTS_MAX  32

enum form {
    FORM_VISIBLE = 0,
    FORM_WORDS, /* Not empty. */
    FORM_TEXT,
    FORM_NAMES
};

struct rule {
    const char *name;
    const char *required; /* Letters. */
    const char *allowed;
    enum form form;
    size_t max;
};

static const struct rule rules[] = {
    { "endpoint", "a", "a", FORM_VISIBLE, 64 },
    { "verdict", "v", "v", FORM_VISIBLE, 16 },
    { "reason", "vn", "vn", FORM_WORDS, 255 },
    { "amount", "", "v", FORM_VISIBLE, 24 },
    { "currency", "", "v", FORM_VISIBLE, 3 },
    { "reference", "", "v", FORM_VISIBLE, 128 },
    { "principal", "kw", "kw", FORM_VISIBLE, 64 },
    { "role", "k", "k", FORM_VISIBLE, 16 },
    { "secret_sha256", "k", "k", FORM_VISIBLE, 64 },
    { "providers", "", "k", FORM_NAMES, 32 },
    { "label", "", "k", FORM_TEXT, 64 },
    { "url", "w", "w", FORM_VISIBLE, 512 },
    { "types", "", "w", FORM_NAMES, 32 },
    { "generation", "g", "g", FORM_VISIBLE, 9 },
    { "webhook", "r", "r", FORM_VISIBLE, 36 },
};

/* Whatever a body was read into. */
struct reading {
    enum idem_endpoint endpoint;
    struct idem_resolve resolve;
    struct idem_str reason;
    struct idem_credential_row row;
    struct idem_webhook webhook;
    uint32_t generation;
    struct idem_uid webhook_id;
};

static struct idem_body body;
static char memory[MEMORY_SIZE];

static bool body_read(char letter, struct reading *reading)
{
    struct idem_buf buf;
    struct idem_fault fault = { .problem = IDEM_PROBLEM_NONE };
    bool accepted = false;
    idem_buf_init(&buf, memory, sizeof(memory));
    if (letter == 'a') {
        accepted = idem_body_read_abandon(&body, &buf, &reading->endpoint, &fault);
    } else if (letter == 'v') {
        accepted = idem_body_read_resolve(&body, &buf, &reading->resolve, &fault);
    } else if (letter == 'n') {
        accepted = idem_body_read_reason(&body, &buf, &reading->reason, &fault);
    } else if (letter == 'w') {
        accepted = idem_body_read_webhook(&body, &buf, &reading->webhook, &fault);
    } else if (letter == 'g') {
        accepted = idem_body_read_generation(&body, &buf, &reading->generation, &fault);
    } else if (letter == 'r') {
        accepted = idem_body_read_webhook_id(&body, &buf, &reading->webhook_id, &fault);
    } else {
        accepted = idem_body_read_credential(&body, &buf, &reading->row, &fault);
    }
    FUZZ_EXPECT(accepted == (fault.problem == IDEM_PROBLEM_NONE));
    FUZZ_EXPECT(accepted || (fault.problem == IDEM_PROBLEM_BODY_INVALID && fault.len > 0));
    return accepted;
}

/* ---- the rules, a second time ---- */

static bool text_fits(const json_t *value, const struct rule *rule)
{
    struct idem_str text = theirs_str(value);
    bool visible = rule->form == FORM_VISIBLE || rule->form == FORM_NAMES;
    if (text.data == NULL || text.len > rule->max || (text.len == 0 && rule->form != FORM_TEXT)) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        bool c1 = byte == 0xC2 && i + 1 < text.len && (unsigned char)text.data[i + 1] < 0xA0;
        if (visible ? byte < 0x21 || byte > 0x7E : byte < 0x20 || byte == 0x7F || c1) {
            return false;
        }
    }
    return true;
}

static bool member_fits(const json_t *value, const struct rule *rule)
{
    if (rule->form != FORM_NAMES) {
        return text_fits(value, rule);
    }
    if (!json_is_array(value) || json_array_size(value) > GRANTS_MAX) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!text_fits(json_array_get(value, i), rule)) {
            return false;
        }
    }
    return true;
}

static bool members_fit(json_t *theirs, char letter)
{
    size_t known = 0;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rules); i++) {
        const json_t *value = json_object_get(theirs, rules[i].name);
        bool allowed = strchr(rules[i].allowed, letter) != NULL;
        if (value == NULL ? strchr(rules[i].required, letter) != NULL
                          : !allowed || !member_fits(value, &rules[i])) {
            return false;
        }
        known += value != NULL ? 1 : 0;
    }
    return known == json_object_size(theirs);
}

/* Digits, and a point before the currency's decimals; more than zero, in 63 bits. */
static bool money_fits(const json_t *theirs)
{
    struct idem_str text = theirs_text(theirs, "amount");
    int exponent = idem_currency_exponent(theirs_text(theirs, "currency"));
    size_t point = idem_str_find(text, '.');
    size_t decimals = point < text.len ? text.len - point - 1 : 0;
    uint64_t minor = 0;
    if (exponent < 0 || decimals != (size_t)exponent || point == 0 ||
        (point < text.len && decimals == 0) || (point > 1 && text.data[0] == '0')) {
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

static bool verdict_fits(const json_t *theirs)
{
    bool amount = json_object_get(theirs, "amount") != NULL;
    bool currency = json_object_get(theirs, "currency") != NULL;
    if (theirs_is(theirs, "verdict", "succeeded")) {
        return amount && currency && money_fits(theirs);
    }
    return (theirs_is(theirs, "verdict", "failed") || theirs_is(theirs, "verdict", "noted")) &&
           !amount && !currency && json_object_get(theirs, "reference") == NULL;
}

static bool credential_fits(const json_t *theirs)
{
    struct idem_str digits = theirs_text(theirs, "secret_sha256");
    size_t good = 0;
    for (size_t i = 0; i < digits.len; i++) {
        char byte = (char)(digits.data[i] | 0x20);
        good +=
            (byte >= '0' && byte <= '9' && digits.data[i] == byte) || (byte >= 'a' && byte <= 'f')
                ? 1
                : 0;
    }
    return good == 64 &&
           (theirs_is(theirs, "role", "merchant") || theirs_is(theirs, "role", "operator"));
}

/* All but the operator's own. */
static const char *const message_types[] = {
    "payment.authorized", "payment.captured",   "payment.refunded", "payment.canceled",
    "payment.failed",     "payment.expired",    "payment.reversed", "refund.succeeded",
    "refund.failed",      "operation.unknown",  "operation.parked", "operation.succeeded",
    "operation.failed",   "operation.released", "case.opened",      "case.decided",
};

static bool lists(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), name) == 0) {
            return true;
        }
    }
    return false;
}

static bool webhook_fits(const json_t *theirs)
{
    const json_t *list = json_object_get(theirs, "types");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        bool known = false;
        for (size_t t = 0; t < IDEM_ARRAY_COUNT(message_types); t++) {
            known = known || strcmp(name, message_types[t]) == 0;
        }
        if (!known) {
            return false;
        }
    }
    return true;
}

static bool generation_fits(const json_t *theirs)
{
    struct idem_str text = theirs_text(theirs, "generation");
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        value = fuzz_digit_add(value, text.data[i]);
    }
    return value > 0;
}

static bool replay_fits(const json_t *theirs)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    struct idem_str text = theirs_text(theirs, "webhook");
    for (size_t i = 0; i < text.len; i++) {
        bool hex = strchr("0123456789abcdefABCDEF", text.data[i]) != NULL;
        if (form[i] == 'x' ? !hex : text.data[i] != form[i]) {
            return false;
        }
    }
    return text.len == sizeof(form) - 1;
}

static bool is_allowed(json_t *theirs, char letter)
{
    static const char *const endpoints[] = { "payments.create", "payments.capture",
                                             "payments.cancel", "refunds.create" };
    bool endpoint = false;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(endpoints); i++) {
        endpoint = endpoint || theirs_is(theirs, "endpoint", endpoints[i]);
    }
    return members_fit(theirs, letter) && (letter != 'a' || endpoint) &&
           (letter != 'v' || verdict_fits(theirs)) && (letter != 'k' || credential_fits(theirs)) &&
           (letter != 'w' || webhook_fits(theirs)) && (letter != 'g' || generation_fits(theirs)) &&
           (letter != 'r' || replay_fits(theirs));
}

/* ---- what came of it ---- */

static void check_resolve(const struct idem_resolve *resolve, const json_t *theirs)
{
    char amount_memory[IDEM_AMOUNT_TEXT_MAX];
    struct idem_buf buf;
    FUZZ_EXPECT(theirs_is(theirs, "verdict", idem_verdict_name(resolve->verdict)));
    FUZZ_EXPECT(idem_str_equal(resolve->reason, theirs_text(theirs, "reason")));
    FUZZ_EXPECT(idem_str_equal(resolve->reference, theirs_text(theirs, "reference")));
    FUZZ_EXPECT(idem_str_equal(resolve->currency, theirs_text(theirs, "currency")));
    if (resolve->verdict == IDEM_VERDICT_SUCCEEDED) {
        idem_buf_init(&buf, amount_memory, sizeof(amount_memory));
        idem_amount_print(resolve->amount_minor, idem_currency_exponent(resolve->currency), &buf);
        FUZZ_EXPECT(idem_str_equal(idem_buf_str(&buf), theirs_text(theirs, "amount")));
    }
}

static void check_credential(const struct idem_credential_row *row, const json_t *theirs)
{
    char digits_memory[2 * IDEM_DIGEST_SIZE];
    struct idem_buf buf;
    struct idem_str grants = row->providers;
    const json_t *list = json_object_get(theirs, "providers");
    FUZZ_EXPECT(idem_str_equal(row->principal, theirs_text(theirs, "principal")));
    FUZZ_EXPECT(theirs_is(theirs, "role", idem_role_name(row->role)));
    FUZZ_EXPECT(idem_str_equal(row->label, theirs_text(theirs, "label")));
    idem_buf_init(&buf, digits_memory, sizeof(digits_memory));
    idem_buf_add_hex(&buf, row->secret_sha256.bytes, IDEM_DIGEST_SIZE);
    FUZZ_EXPECT(idem_str_equal_nocase(idem_buf_str(&buf), theirs_text(theirs, "secret_sha256")));
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct idem_str grant = idem_str_next(&grants, ' ');
        FUZZ_EXPECT(idem_str_equal(grant, theirs_str(json_array_get(list, i))));
    }
    FUZZ_EXPECT(grants.len == 0); /* Nobody is granted what nobody named. */
}

/* Without a list it is every type. */
static void check_webhook(const struct idem_webhook *webhook, const json_t *theirs)
{
    const json_t *list = json_object_get(theirs, "types");
    uint64_t types = 0;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(message_types); i++) {
        bool wanted = json_array_size(list) == 0 || lists(list, message_types[i]);
        types |= wanted ? UINT64_C(2) << i : 0;
    }
    FUZZ_EXPECT(webhook->types == types);
    FUZZ_EXPECT(idem_str_equal(webhook->principal, theirs_text(theirs, "principal")));
    FUZZ_EXPECT(idem_str_equal(webhook->url, theirs_text(theirs, "url")));
}

static void check_generation(uint32_t generation, const json_t *theirs)
{
    struct idem_str text = theirs_text(theirs, "generation");
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        value = fuzz_digit_add(value, text.data[i]);
    }
    FUZZ_EXPECT(generation == value);
}

static void check_replay(struct idem_uid webhook_id, const json_t *theirs)
{
    char text_memory[IDEM_UID_TEXT_LEN];
    struct idem_buf buf;
    idem_buf_init(&buf, text_memory, sizeof(text_memory));
    idem_uid_print(webhook_id, &buf);
    FUZZ_EXPECT(idem_str_equal_nocase(idem_buf_str(&buf), theirs_text(theirs, "webhook")));
}

static void check_reading(const struct reading *reading, const json_t *theirs, char letter)
{
    if (letter == 'a') {
        FUZZ_EXPECT(theirs_is(theirs, "endpoint", idem_endpoint_name(reading->endpoint)));
    } else if (letter == 'v') {
        check_resolve(&reading->resolve, theirs);
    } else if (letter == 'n') {
        FUZZ_EXPECT(idem_str_equal(reading->reason, theirs_text(theirs, "reason")));
    } else if (letter == 'w') {
        check_webhook(&reading->webhook, theirs);
    } else if (letter == 'g') {
        check_generation(reading->generation, theirs);
    } else if (letter == 'r') {
        check_replay(reading->webhook_id, theirs);
    } else {
        check_credential(&reading->row, theirs);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading reading = { .endpoint = IDEM_ENDPOINT_NONE };
    struct idem_fault fault;
    if (size == 0 || size > SIZE_TRIED || data[0] == 0 || strchr("avnkwgr", data[0]) == NULL) {
        return 0;
    }
    struct idem_str text = { .data = (const char *)data + 1, .len = size - 1 };
    if (!idem_body_parse(&body, text, &fault)) {
        return 0;
    }
    bool accepted = body_read((char)data[0], &reading);
    json_t *theirs = theirs_load(text);
    if (theirs != NULL) { /* Else numbers beyond jansson's range, or names with zero bytes. */
        FUZZ_EXPECT(accepted == is_allowed(theirs, (char)data[0]));
        if (accepted) {
            check_reading(&reading, theirs, (char)data[0]);
        }
    }
    json_decref(theirs);
    return 0;
}
