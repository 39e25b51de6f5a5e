/*
 * Stripe's answers as structs.
 *
 * Read strictly where something rests on it: a number that is no plain number, a currency that is
 * no text, an id that is none make the answer unreadable. What is merely new is ignored, since
 * Stripe adds members without a new version. A status that is not listed is NONE, and NONE is read
 * as UNKNOWN by everybody.
 */
#include "provider/stripe_internal.h"

#include "base/attr.h"
#include "base/currency.h"
#include "base/json.h"
#include "provider/wire.h"

static const struct {
    const char *word;
    enum idem_stripe_status intent;
    enum idem_stripe_status refund;
} statuses[] = {
    { "succeeded", IDEM_STRIPE_SUCCEEDED, IDEM_STRIPE_SUCCEEDED },
    { "processing", IDEM_STRIPE_PROCESSING, IDEM_STRIPE_STATUS_NONE },
    { "pending", IDEM_STRIPE_STATUS_NONE, IDEM_STRIPE_PROCESSING },
    { "requires_action", IDEM_STRIPE_REQUIRES_ACTION, IDEM_STRIPE_REQUIRES_ACTION },
    { "requires_capture", IDEM_STRIPE_REQUIRES_CAPTURE, IDEM_STRIPE_STATUS_NONE },
    { "requires_confirmation", IDEM_STRIPE_REQUIRES_CONFIRMATION, IDEM_STRIPE_STATUS_NONE },
    { "requires_payment_method", IDEM_STRIPE_REQUIRES_METHOD, IDEM_STRIPE_STATUS_NONE },
    { "canceled", IDEM_STRIPE_CANCELED, IDEM_STRIPE_CANCELED },
    { "failed", IDEM_STRIPE_STATUS_NONE, IDEM_STRIPE_FAILED },
};

/* Absent and null leave `*ret_text` alone; false: there is something else than text. */
static bool text_read(const struct idem_json *json,
                      size_t object,
                      const char *name,
                      struct idem_buf *buf,
                      struct idem_str *ret_text)
{
    size_t index = idem_json_member(json, object, idem_str_from(name));
    return idem_wire_text_read(json, index, buf, ret_text);
}

/* True: a plain whole number of zero or more. */
static bool number_read(const struct idem_json *json,
                        size_t object,
                        const char *name,
                        int64_t *ret_number)
{
    size_t index = idem_json_member(json, object, idem_str_from(name));
    return index != 0 && json->tokens[index].kind == IDEM_JSON_NUMBER &&
           idem_str_to_i64(json->tokens[index].raw, ret_number);
}

static bool amount_read(const struct idem_json *json,
                        size_t object,
                        const char *name,
                        const struct idem_stripe_object *read,
                        int64_t *ret_minor)
{
    int64_t wire = 0;
    return number_read(json, object, name, &wire) &&
           idem_stripe_amount_from_wire(read->currency, wire, ret_minor);
}

/* "usd" to "USD"; anything but three small letters is unreadable. */
static bool currency_read(const struct idem_json *json,
                          size_t object,
                          struct idem_buf *buf,
                          struct idem_str *ret_currency)
{
    struct idem_str small = { .len = 0 };
    char capitals[IDEM_CURRENCY_LEN];

    if (!text_read(json, object, "currency", buf, &small) || small.len != sizeof(capitals)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(capitals); i++) {
        if (small.data[i] < 'a' || small.data[i] > 'z') {
            return false;
        }
        capitals[i] = (char)(small.data[i] - 'a' + 'A');
    }
    *ret_currency =
        idem_buf_keep(buf, (struct idem_str){ .data = capitals, .len = sizeof(capitals) });
    return !buf->full;
}

static bool metadata_read(const struct idem_json *json,
                          size_t object,
                          struct idem_buf *buf,
                          struct idem_stripe_object *read)
{
    size_t metadata = idem_json_member(json, object, IDEM_STR("metadata"));
    if (metadata == 0 || json->tokens[metadata].kind == IDEM_JSON_NULL) {
        return true;
    }
    return json->tokens[metadata].kind == IDEM_JSON_OBJECT &&
           text_read(json, metadata, "idem_id", buf, &read->our_id) &&
           text_read(json, metadata, "idem_capture", buf, &read->our_capture) &&
           text_read(json, metadata, "idem_payment", buf, &read->our_payment) &&
           text_read(json, metadata, "order_no", buf, &read->order_no);
}

static enum idem_stripe_status status_find(struct idem_str word, bool is_refund)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(statuses); i++) {
        if (idem_str_equal(idem_str_from(statuses[i].word), word)) {
            return is_refund ? statuses[i].refund : statuses[i].intent;
        }
    }
    return IDEM_STRIPE_STATUS_NONE;
}

static bool common_read(const struct idem_json *json,
                        size_t index,
                        struct idem_buf *buf,
                        struct idem_stripe_object *read)
{
    struct idem_str kind = { .len = 0 };
    struct idem_str status = { .len = 0 };

    if (json->tokens[index].kind != IDEM_JSON_OBJECT ||
        !text_read(json, index, "object", buf, &kind) ||
        !text_read(json, index, "id", buf, &read->id) || !idem_stripe_id_is_plain(read->id) ||
        !text_read(json, index, "status", buf, &status) ||
        !currency_read(json, index, buf, &read->currency) ||
        !amount_read(json, index, "amount", read, &read->amount_minor) ||
        !number_read(json, index, "created", &read->created_s) ||
        !metadata_read(json, index, buf, read)) {
        return false;
    }
    read->is_refund = idem_str_equal(kind, IDEM_STR("refund"));
    read->status = status_find(status, read->is_refund);
    return read->is_refund || idem_str_equal(kind, IDEM_STR("payment_intent"));
}

bool idem_stripe_object_read(const struct idem_json *json,
                             size_t index,
                             struct idem_buf *buf,
                             struct idem_stripe_object *ret_object)
{
    struct idem_stripe_object read = { .is_refund = false };
    struct idem_str method = { .len = 0 };

    if (!common_read(json, index, buf, &read)) {
        return false;
    }
    if (read.is_refund) {
        *ret_object = read;
        return text_read(json, index, "payment_intent", buf, &ret_object->intent);
    }
    if (!amount_read(json, index, "amount_received", &read, &read.received_minor) ||
        !amount_read(json, index, "amount_capturable", &read, &read.capturable_minor) ||
        !text_read(json, index, "capture_method", buf, &method)) {
        return false;
    }
    read.captures_by_hand = idem_str_equal(method, IDEM_STR("manual"));
    *ret_object = read;
    return true;
}

bool idem_stripe_error_read(const struct idem_json *json,
                            struct idem_buf *buf,
                            struct idem_stripe_error *ret_error)
{
    struct idem_stripe_error read = { .type = { .len = 0 } };
    struct idem_str declined = { .len = 0 };

    if (json->tokens[0].kind != IDEM_JSON_OBJECT) {
        return false;
    }
    size_t error = idem_json_member(json, 0, IDEM_STR("error"));
    if (error == 0 || json->tokens[error].kind != IDEM_JSON_OBJECT ||
        !text_read(json, error, "type", buf, &read.type) || read.type.len == 0 ||
        !text_read(json, error, "code", buf, &read.code) ||
        !text_read(json, error, "decline_code", buf, &declined) ||
        !text_read(json, error, "message", buf, &read.message)) {
        return false;
    }
    if (declined.len > 0) {
        read.code = declined;
    } else if (read.code.len == 0) {
        read.code = read.type;
    }
    *ret_error = read;
    return true;
}

size_t idem_stripe_list_read(const struct idem_json *json, size_t *ret_count, bool *ret_more)
{
    if (json->tokens[0].kind != IDEM_JSON_OBJECT) {
        return 0;
    }
    size_t data = idem_json_member(json, 0, IDEM_STR("data"));
    size_t more = idem_json_member(json, 0, IDEM_STR("has_more"));
    if (data == 0 || more == 0 || json->tokens[data].kind != IDEM_JSON_ARRAY ||
        (json->tokens[more].kind != IDEM_JSON_TRUE && json->tokens[more].kind != IDEM_JSON_FALSE)) {
        return 0;
    }
    *ret_count = json->tokens[data].count;
    *ret_more = json->tokens[more].kind == IDEM_JSON_TRUE;
    return data + 1;
}
