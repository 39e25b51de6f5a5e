/*
 * Which members a body may have is a table, and each member is read by the one rule of its name.
 * Unknown members are refused: a misspelt "capture" that is ignored would move money at another
 * time than its sender meant.
 *
 * Texts that go to providers, into links and onto screens are visible ASCII; only the description
 * is free text. An amount stays text where only the facts know its currency.
 */
#include "api/body.h"

#include "base/bug.h"
#include "base/currency.h"
#include "base/money.h"
#include "core/limits.h"

enum member {
    MEMBER_ORDER_NO = 0,
    MEMBER_AMOUNT,
    MEMBER_CURRENCY,
    MEMBER_PROVIDER,
    MEMBER_CAPTURE,
    MEMBER_METHOD,
    MEMBER_DESCRIPTION,
    MEMBER_METADATA,
    MEMBER_REFUND_NO,
    MEMBER_ENDPOINT,
    MEMBER_VERDICT,
    MEMBER_REASON,
    MEMBER_REFERENCE,
    MEMBER_PRINCIPAL,
    MEMBER_ROLE,
    MEMBER_SECRET,
    MEMBER_PROVIDERS,
    MEMBER_LABEL,
    MEMBER_URL,
    MEMBER_TYPES,
    MEMBER_GENERATION,
    MEMBER_WEBHOOK,
    MEMBER_COUNT
};

enum member_form {
    FORM_VISIBLE = 0, /* A string of 1 to max bytes 0x21-0x7E. */
    FORM_TEXT,        /* A string of at most max bytes without control characters. */
    FORM_WORDS,       /* Likewise, and not empty. */
    FORM_OBJECT,      /* A JSON object of at most max bytes as it stands. */
    FORM_NAMES        /* An array of visible strings: kept with a space behind each. */
};

struct member_rule {
    struct idem_str name;
    enum member_form form;
    size_t max;
};

#define RULE(member_name, member_form, member_max)                               \
    {                                                                            \
        .name = { member_name, sizeof(member_name) - 1 }, .form = (member_form), \
        .max = (member_max)                                                      \
    }

#define ENDPOINT_NAME_MAX 32
#define NAMES_MAX         (IDEM_GRANTS_MAX / (IDEM_ENTRY_MAX + 1))
#define VERDICT_MAX       16
#define ROLE_MAX          16
#define GENERATION_MAX    9 /* Digits: below 2^32. */

static const struct member_rule rules[MEMBER_COUNT] = {
    [MEMBER_ORDER_NO] = RULE("order_no", FORM_VISIBLE, IDEM_ORDER_NO_MAX),
    [MEMBER_AMOUNT] = RULE("amount", FORM_VISIBLE, IDEM_AMOUNT_TEXT_MAX),
    [MEMBER_CURRENCY] = RULE("currency", FORM_VISIBLE, IDEM_CURRENCY_LEN),
    [MEMBER_PROVIDER] = RULE("provider", FORM_VISIBLE, IDEM_ENTRY_MAX),
    [MEMBER_CAPTURE] = RULE("capture", FORM_VISIBLE, sizeof("automatic") - 1),
    [MEMBER_METHOD] = RULE("method", FORM_VISIBLE, IDEM_METHOD_MAX),
    [MEMBER_DESCRIPTION] = RULE("description", FORM_TEXT, IDEM_DESCRIPTION_MAX),
    [MEMBER_METADATA] = RULE("metadata", FORM_OBJECT, IDEM_METADATA_MAX),
    [MEMBER_REFUND_NO] = RULE("refund_no", FORM_VISIBLE, IDEM_REFUND_NO_MAX),
    [MEMBER_ENDPOINT] = RULE("endpoint", FORM_VISIBLE, ENDPOINT_NAME_MAX),
    [MEMBER_VERDICT] = RULE("verdict", FORM_VISIBLE, VERDICT_MAX),
    [MEMBER_REASON] = RULE("reason", FORM_WORDS, IDEM_REASON_MAX),
    [MEMBER_REFERENCE] = RULE("reference", FORM_VISIBLE, IDEM_REFERENCE_MAX),
    [MEMBER_PRINCIPAL] = RULE("principal", FORM_VISIBLE, IDEM_PRINCIPAL_MAX),
    [MEMBER_ROLE] = RULE("role", FORM_VISIBLE, ROLE_MAX),
    [MEMBER_SECRET] = RULE("secret_sha256", FORM_VISIBLE, (size_t)2 * IDEM_DIGEST_SIZE),
    [MEMBER_PROVIDERS] = RULE("providers", FORM_NAMES, IDEM_ENTRY_MAX),
    [MEMBER_LABEL] = RULE("label", FORM_TEXT, IDEM_LABEL_MAX),
    [MEMBER_URL] = RULE("url", FORM_VISIBLE, IDEM_WEBHOOK_URL_MAX),
    [MEMBER_TYPES] = RULE("types", FORM_NAMES, IDEM_ENTRY_MAX),
    [MEMBER_GENERATION] = RULE("generation", FORM_VISIBLE, GENERATION_MAX),
    [MEMBER_WEBHOOK] = RULE("webhook", FORM_VISIBLE, IDEM_UID_TEXT_LEN),
};

#define BIT(member) (1U << (member))

struct shape {
    unsigned required;
    unsigned optional;
};

static const struct shape accept_shapes[IDEM_ENDPOINT_COUNT] = {
    [IDEM_ENDPOINT_PAYMENTS_CREATE] = {
        .required = BIT(MEMBER_ORDER_NO) | BIT(MEMBER_AMOUNT) | BIT(MEMBER_CURRENCY) |
                    BIT(MEMBER_PROVIDER),
        .optional = BIT(MEMBER_CAPTURE) | BIT(MEMBER_METHOD) | BIT(MEMBER_DESCRIPTION) |
                    BIT(MEMBER_METADATA),
    },
    [IDEM_ENDPOINT_PAYMENTS_CAPTURE] = { .optional = BIT(MEMBER_AMOUNT) },
    [IDEM_ENDPOINT_PAYMENTS_CANCEL] = { .optional = 0 },
    [IDEM_ENDPOINT_REFUNDS_CREATE] = { .optional = BIT(MEMBER_AMOUNT) | BIT(MEMBER_REFUND_NO) },
};

static const struct shape abandon_shape = { .required = BIT(MEMBER_ENDPOINT) };
static const struct shape reason_shape = { .required = BIT(MEMBER_REASON) };
static const struct shape resolve_shape = {
    .required = BIT(MEMBER_VERDICT) | BIT(MEMBER_REASON),
    .optional = BIT(MEMBER_AMOUNT) | BIT(MEMBER_CURRENCY) | BIT(MEMBER_REFERENCE),
};
static const struct shape credential_shape = {
    .required = BIT(MEMBER_PRINCIPAL) | BIT(MEMBER_ROLE) | BIT(MEMBER_SECRET),
    .optional = BIT(MEMBER_PROVIDERS) | BIT(MEMBER_LABEL),
};

static const struct shape webhook_shape = {
    .required = BIT(MEMBER_PRINCIPAL) | BIT(MEMBER_URL),
    .optional = BIT(MEMBER_TYPES),
};
static const struct shape generation_shape = { .required = BIT(MEMBER_GENERATION) };
static const struct shape replay_shape = { .required = BIT(MEMBER_WEBHOOK) };

struct values {
    struct idem_str text[MEMBER_COUNT]; /* data NULL: absent. */
};

static bool refuse(struct idem_fault *ret_fault, const char *what)
{
    return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID, "%s", what);
}

/* Of C0, DEL, or C1 (U+0080 to U+009F, in UTF-8 C2 and the byte): some terminals obey them all. */
static bool has_control(struct idem_str text)
{
    uint8_t before = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        if (byte < 0x20 || byte == 0x7F || (before == 0xC2 && byte <= 0x9F)) {
            return true;
        }
        before = byte;
    }
    return false;
}

bool idem_body_parse(struct idem_body *body, struct idem_str text, struct idem_fault *ret_fault)
{
    struct idem_json_fault fault = { 0 };
    idem_json_init(&body->json, body->tokens, IDEM_BODY_TOKENS_MAX);
    if (!idem_json_parse(&body->json, text, &fault)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                              "The body is not strict JSON: %s at byte %zu.", fault.what,
                              fault.offset);
    }
    if (body->tokens[0].kind != IDEM_JSON_OBJECT) {
        return refuse(ret_fault, "The body must be a JSON object.");
    }
    return true;
}

/* The string at `index` without escapes, or text that is too long for `max`. */
static struct idem_str string_at(const struct idem_json *json,
                                 size_t index,
                                 struct idem_buf *memory)
{
    if (!json->tokens[index].escaped) {
        return json->tokens[index].raw;
    }
    size_t start = memory->len;
    idem_json_unescape(json, index, memory);
    return idem_str_slice(idem_buf_str(memory), start, memory->len - start);
}

static bool string_fits(struct idem_str text, const struct member_rule *rule)
{
    if (text.len > rule->max || (text.len == 0 && rule->form != FORM_TEXT)) {
        return false;
    }
    return rule->form == FORM_TEXT || rule->form == FORM_WORDS ? !has_control(text)
                                                               : idem_str_is_visible(text);
}

static bool string_read(const struct idem_json *json,
                        size_t index,
                        const struct member_rule *rule,
                        struct idem_buf *memory,
                        struct idem_str *ret_text)
{
    const size_t escaped_max = 6; /* \u0061 is one byte. */
    const struct idem_json_token *token = &json->tokens[index];
    if (token->kind != IDEM_JSON_STRING || token->raw.len > rule->max * escaped_max) {
        return false;
    }
    struct idem_str text = string_at(json, index, memory);
    if (memory->full || !string_fits(text, rule)) {
        return false;
    }
    *ret_text = text;
    return true;
}

static bool rule_refuse(const struct member_rule *rule, struct idem_fault *ret_fault)
{
    int len = (int)rule->name.len;
    switch (rule->form) {
    case FORM_VISIBLE:
        return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                              "\"%.*s\" must be a string of 1 to %zu bytes of visible ASCII.", len,
                              rule->name.data, rule->max);
    case FORM_TEXT:
        return idem_fault_set(
            ret_fault, IDEM_PROBLEM_BODY_INVALID,
            "\"%.*s\" must be a string of at most %zu bytes without control characters.", len,
            rule->name.data, rule->max);
    case FORM_WORDS:
        return idem_fault_set(
            ret_fault, IDEM_PROBLEM_BODY_INVALID,
            "\"%.*s\" must be a string of 1 to %zu bytes without control characters.", len,
            rule->name.data, rule->max);
    case FORM_NAMES:
        return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                              "\"%.*s\" must be a list of at most %d names of 1 to %zu bytes.", len,
                              rule->name.data, NAMES_MAX, rule->max);
    case FORM_OBJECT:
        return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                              "\"%.*s\" must be a JSON object of at most %zu bytes.", len,
                              rule->name.data, rule->max);
    }
    IDEM_UNREACHABLE();
}

/* ["a", "b"] as "a b ". */
static bool names_read(const struct idem_json *json,
                       size_t index,
                       const struct member_rule *rule,
                       struct idem_buf *memory,
                       struct idem_str *ret_text)
{
    char names[IDEM_GRANTS_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, names, sizeof(names));
    const struct idem_json_token *array = &json->tokens[index];
    if (array->kind != IDEM_JSON_ARRAY || array->count > NAMES_MAX) {
        return false;
    }
    size_t element = index + 1;
    for (uint32_t i = 0; i < array->count; i++) {
        struct idem_str name;
        if (!string_read(json, element, rule, memory, &name)) {
            return false;
        }
        idem_buf_add(&buf, name);
        idem_buf_add_char(&buf, ' ');
        element = json->tokens[element].next;
    }
    IDEM_ASSERT(!buf.full);
    *ret_text = idem_buf_keep(memory, idem_buf_str(&buf));
    return !memory->full;
}

static bool member_read(const struct idem_json *json,
                        size_t index,
                        enum member member,
                        struct idem_buf *memory,
                        struct values *values)
{
    const struct member_rule *rule = &rules[member];
    if (rule->form == FORM_NAMES) {
        return names_read(json, index, rule, memory, &values->text[member]);
    }
    if (rule->form != FORM_OBJECT) {
        return string_read(json, index, rule, memory, &values->text[member]);
    }
    const struct idem_json_token *token = &json->tokens[index];
    if (token->kind != IDEM_JSON_OBJECT || token->raw.len > rule->max) {
        return false;
    }
    values->text[member] = token->raw;
    return true;
}

/* Which member the name at `index` is, among those in `allowed`; MEMBER_COUNT: none. */
static enum member member_find(const struct idem_json *json, size_t index, unsigned allowed)
{
    char bytes[ENDPOINT_NAME_MAX];
    struct idem_buf unescaped;
    idem_buf_init(&unescaped, bytes, sizeof(bytes));
    struct idem_str name = string_at(json, index, &unescaped);
    for (enum member member = 0; member < MEMBER_COUNT; member++) {
        if ((allowed & BIT(member)) != 0 && !unescaped.full &&
            idem_str_equal(rules[member].name, name)) {
            return member;
        }
    }
    return MEMBER_COUNT;
}

/* Names the unknown member if its name can be shown. */
static bool unknown_refuse(struct idem_str raw_name, struct idem_fault *ret_fault)
{
    if (!idem_str_is_visible(raw_name) || raw_name.len == 0 || raw_name.len > IDEM_ORDER_NO_MAX) {
        return refuse(ret_fault, "There is a member that is not known here.");
    }
    return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                          "The member \"%.*s\" is not known here.", (int)raw_name.len,
                          raw_name.data);
}

static bool values_read(const struct idem_body *body,
                        const struct shape *shape,
                        struct idem_buf *memory,
                        struct values *values,
                        struct idem_fault *ret_fault)
{
    const struct idem_json *json = &body->json;
    unsigned seen = 0;
    size_t name_index = 1;
    for (uint32_t i = 0; i < json->tokens[0].count; i++) {
        size_t value_index = json->tokens[name_index].next;
        enum member member = member_find(json, name_index, shape->required | shape->optional);
        if (member == MEMBER_COUNT) {
            return unknown_refuse(json->tokens[name_index].raw, ret_fault);
        }
        if (!member_read(json, value_index, member, memory, values)) {
            return rule_refuse(&rules[member], ret_fault);
        }
        seen |= BIT(member);
        name_index = json->tokens[value_index].next;
    }
    for (enum member member = 0; member < MEMBER_COUNT; member++) {
        if ((shape->required & ~seen & BIT(member)) != 0) {
            return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID, "\"%.*s\" is missing.",
                                  (int)rules[member].name.len, rules[member].name.data);
        }
    }
    return true;
}

static bool amount_refuse(enum idem_amount_fault amount_fault,
                          int exponent,
                          struct idem_fault *ret_fault)
{
    switch (amount_fault) {
    case IDEM_AMOUNT_DECIMALS:
        return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                              "\"amount\" must have exactly %d decimals in this currency.",
                              exponent);
    case IDEM_AMOUNT_RANGE:
        return refuse(ret_fault, "\"amount\" is more than can be counted.");
    case IDEM_AMOUNT_ZERO:
        return refuse(ret_fault, "\"amount\" must be more than zero.");
    case IDEM_AMOUNT_SYNTAX:
        return refuse(ret_fault, "\"amount\" must be a plain decimal string such as \"100.00\".");
    case IDEM_AMOUNT_OK:
    case IDEM_AMOUNT_FAULT_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static bool money_read(const struct values *values,
                       int64_t *ret_minor,
                       struct idem_str *ret_currency,
                       struct idem_fault *ret_fault)
{
    int exponent = idem_currency_exponent(values->text[MEMBER_CURRENCY]);
    if (exponent < 0) {
        return refuse(ret_fault, "\"currency\" must be an ISO 4217 code in capitals.");
    }
    enum idem_amount_fault fault =
        idem_amount_parse(values->text[MEMBER_AMOUNT], exponent, ret_minor);
    if (fault != IDEM_AMOUNT_OK) {
        return amount_refuse(fault, exponent, ret_fault);
    }
    *ret_currency = values->text[MEMBER_CURRENCY];
    return true;
}

/*
 * The amount of a capture or refund: its currency is in the facts, so here it must be an amount
 * with the decimals that it has itself, as far as any currency has them.
 */
static bool amount_text_check(struct idem_str text, struct idem_fault *ret_fault)
{
    const size_t exponent_max = 4;
    size_t point = idem_str_find(text, '.');
    size_t decimals = point < text.len ? text.len - point - 1 : 0;
    int64_t minor = 0;
    if (decimals > exponent_max || (point < text.len && decimals == 0)) {
        return amount_refuse(IDEM_AMOUNT_SYNTAX, 0, ret_fault);
    }
    enum idem_amount_fault fault = idem_amount_parse(text, (int)decimals, &minor);
    return fault == IDEM_AMOUNT_OK || amount_refuse(fault, (int)decimals, ret_fault);
}

static bool capture_mode_read(struct idem_str text, enum idem_capture_mode *ret_mode)
{
    if (text.data == NULL) {
        *ret_mode = IDEM_CAPTURE_AUTOMATIC;
        return true;
    }
    for (enum idem_capture_mode mode = IDEM_CAPTURE_AUTOMATIC; mode < IDEM_CAPTURE_MODE_COUNT;
         mode++) {
        if (idem_str_equal(text, idem_str_from(idem_capture_mode_name(mode)))) {
            *ret_mode = mode;
            return true;
        }
    }
    return false;
}

bool idem_body_read_accept(const struct idem_body *body,
                           struct idem_buf *memory,
                           struct idem_accept *accept,
                           struct idem_fault *ret_fault)
{
    IDEM_ASSERT(accept->endpoint > IDEM_ENDPOINT_NONE);
    IDEM_ASSERT(accept->endpoint < IDEM_ENDPOINT_COUNT);
    struct values values = { 0 };
    if (!values_read(body, &accept_shapes[accept->endpoint], memory, &values, ret_fault)) {
        return false;
    }
    accept->order_no = values.text[MEMBER_ORDER_NO];
    accept->entry = values.text[MEMBER_PROVIDER];
    accept->method = values.text[MEMBER_METHOD];
    accept->description = values.text[MEMBER_DESCRIPTION];
    accept->metadata = values.text[MEMBER_METADATA];
    accept->refund_no = values.text[MEMBER_REFUND_NO];
    if (accept->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        if (!capture_mode_read(values.text[MEMBER_CAPTURE], &accept->capture_mode)) {
            return refuse(ret_fault, "\"capture\" must be \"automatic\" or \"manual\".");
        }
        return money_read(&values, &accept->amount_minor, &accept->currency, ret_fault);
    }
    accept->amount_text = values.text[MEMBER_AMOUNT];
    return accept->amount_text.data == NULL || amount_text_check(accept->amount_text, ret_fault);
}

bool idem_body_read_abandon(const struct idem_body *body,
                            struct idem_buf *memory,
                            enum idem_endpoint *ret_endpoint,
                            struct idem_fault *ret_fault)
{
    struct values values = { 0 };
    if (!values_read(body, &abandon_shape, memory, &values, ret_fault)) {
        return false;
    }
    enum idem_endpoint endpoint = idem_endpoint_from(values.text[MEMBER_ENDPOINT]);
    if (endpoint == IDEM_ENDPOINT_NONE) {
        return refuse(ret_fault, "\"endpoint\" is none of this API's endpoints.");
    }
    *ret_endpoint = endpoint;
    return true;
}

bool idem_body_read_resolve(const struct idem_body *body,
                            struct idem_buf *memory,
                            struct idem_resolve *resolve,
                            struct idem_fault *ret_fault)
{
    struct values values = { 0 };
    if (!values_read(body, &resolve_shape, memory, &values, ret_fault)) {
        return false;
    }
    resolve->verdict = idem_verdict_from(values.text[MEMBER_VERDICT]);
    resolve->reason = values.text[MEMBER_REASON];
    resolve->reference = values.text[MEMBER_REFERENCE];
    if (resolve->verdict == IDEM_VERDICT_NONE || resolve->verdict == IDEM_VERDICT_STRAY) {
        return refuse(ret_fault, "\"verdict\" must be \"succeeded\", \"failed\" or \"noted\".");
    }
    bool amount = values.text[MEMBER_AMOUNT].data != NULL;
    bool currency = values.text[MEMBER_CURRENCY].data != NULL;
    if (resolve->verdict != IDEM_VERDICT_SUCCEEDED) {
        bool more = amount || currency || values.text[MEMBER_REFERENCE].data != NULL;
        return !more || refuse(ret_fault,
                               "\"amount\", \"currency\" and \"reference\" belong to the "
                               "verdict \"succeeded\".");
    }
    if (!amount || !currency) {
        return refuse(ret_fault,
                      "The verdict \"succeeded\" needs \"amount\" and \"currency\" as "
                      "the provider shows them.");
    }
    return money_read(&values, &resolve->amount_minor, &resolve->currency, ret_fault);
}

bool idem_body_read_reason(const struct idem_body *body,
                           struct idem_buf *memory,
                           struct idem_str *ret_reason,
                           struct idem_fault *ret_fault)
{
    struct values values = { 0 };
    if (!values_read(body, &reason_shape, memory, &values, ret_fault)) {
        return false;
    }
    *ret_reason = values.text[MEMBER_REASON];
    return true;
}

static int nibble_of(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

static bool digest_read(struct idem_str text, struct idem_digest *ret_digest)
{
    if (text.len != (size_t)2 * IDEM_DIGEST_SIZE) {
        return false;
    }
    for (size_t i = 0; i < IDEM_DIGEST_SIZE; i++) {
        int high = nibble_of(text.data[2 * i]);
        int low = nibble_of(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        ret_digest->bytes[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

bool idem_body_read_credential(const struct idem_body *body,
                               struct idem_buf *memory,
                               struct idem_credential_row *row,
                               struct idem_fault *ret_fault)
{
    struct values values = { 0 };
    if (!values_read(body, &credential_shape, memory, &values, ret_fault)) {
        return false;
    }
    row->principal = values.text[MEMBER_PRINCIPAL];
    row->role = idem_role_from(values.text[MEMBER_ROLE]);
    row->providers = values.text[MEMBER_PROVIDERS];
    row->label = values.text[MEMBER_LABEL];
    if (row->role == IDEM_ROLE_NONE) {
        return refuse(ret_fault, "\"role\" must be \"merchant\" or \"operator\".");
    }
    return digest_read(values.text[MEMBER_SECRET], &row->secret_sha256) ||
           refuse(ret_fault, "\"secret_sha256\" must be 64 hexadecimal digits.");
}

/* Absent or empty: all of them but the operator's own. */
static bool types_read(struct idem_str names, uint64_t *ret_types, struct idem_fault *ret_fault)
{
    uint64_t types = 0;
    struct idem_str rest = names;
    while (rest.len > 0) {
        enum idem_message_type type = idem_message_type_from(idem_str_next(&rest, ' '));
        if (type == IDEM_MESSAGE_NONE || type == IDEM_MESSAGE_TEST) {
            return refuse(ret_fault, "\"types\" names a type of message that there is not.");
        }
        types |= UINT64_C(1) << type;
    }
    *ret_types = types != 0 ? types : (UINT64_C(1) << IDEM_MESSAGE_TEST) - 2;
    return true;
}

bool idem_body_read_webhook(const struct idem_body *body,
                            struct idem_buf *memory,
                            struct idem_webhook *row,
                            struct idem_fault *ret_fault)
{
    struct values values = { 0 };
    if (!values_read(body, &webhook_shape, memory, &values, ret_fault)) {
        return false;
    }
    row->principal = values.text[MEMBER_PRINCIPAL];
    row->url = values.text[MEMBER_URL];
    return types_read(values.text[MEMBER_TYPES], &row->types, ret_fault);
}

bool idem_body_read_generation(const struct idem_body *body,
                               struct idem_buf *memory,
                               uint32_t *ret_generation,
                               struct idem_fault *ret_fault)
{
    struct values values = { 0 };
    int64_t generation = 0;
    if (!values_read(body, &generation_shape, memory, &values, ret_fault)) {
        return false;
    }
    if (!idem_str_to_i64(values.text[MEMBER_GENERATION], &generation) || generation < 1) {
        return refuse(ret_fault,
                      "\"generation\" must be the number of the secret that is "
                      "replaced, as a string.");
    }
    *ret_generation = (uint32_t)generation;
    return true;
}

bool idem_body_read_webhook_id(const struct idem_body *body,
                               struct idem_buf *memory,
                               struct idem_uid *ret_id,
                               struct idem_fault *ret_fault)
{
    struct values values = { 0 };
    if (!values_read(body, &replay_shape, memory, &values, ret_fault)) {
        return false;
    }
    return idem_uid_parse(values.text[MEMBER_WEBHOOK], ret_id) ||
           refuse(ret_fault, "\"webhook\" must be the id of a webhook.");
}
