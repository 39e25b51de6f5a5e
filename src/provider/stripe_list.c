/*
 * Listings at Stripe: what succeeded, page by page, for comparing.
 *
 * Stripe lists payment intents and refunds apart, each from the newest on and by the time they were
 * made, so that is the order here: first all payments, then all refunds. A cursor says which list,
 * and behind which object:
 *
 *     ""           the first page of payment intents
 *     p:pi_123     behind this one
 *     r            the first page of refunds
 *     r:re_123     behind this one
 *
 * One intent can have two effects of ours, the payment and its capture. A cancel has no place for
 * our id and is in no listing, and the time of a capture is not there either (it is told as that of
 * its payment): good enough to compare with, and not to rebuild a store from, which is why this
 * adapter does not promise a listing (docs/stripe.md).
 *
 * A page is used as a whole or not at all: an object that cannot be read spoils it.
 */
#include "provider/stripe_internal.h"

#include <string.h>

#include "base/attr.h"
#include "base/bug.h"
#include "base/clock.h"
#include "base/json.h"
#include "core/intent.h"

#define PAGE_MAX       10   /* Objects; of about 3 KiB each. */
#define TOKENS_MAX     4096 /* Of a page. */
#define FOREIGN_ID_MAX 64

static const struct idem_str first_refunds = { .data = "r", .len = 1 };

static bool lists_refunds(struct idem_str cursor)
{
    return cursor.len > 0 && cursor.data[0] == 'r';
}

void idem_stripe_list_request(const struct idem_listing *listing,
                              struct idem_str credential,
                              struct idem_buf *buf,
                              struct idem_wire_request *ret_request)
{
    size_t start = buf->len;
    struct idem_str cursor = idem_str_from(listing->cursor);
    struct idem_wire_request request = { .method = "GET" };

    idem_buf_add(buf,
                 lists_refunds(cursor) ? IDEM_STR("/v1/refunds") : IDEM_STR("/v1/payment_intents"));
    idem_buf_add(buf, IDEM_STR("?created%5Bgte%5D="));
    idem_buf_add_i64(buf, listing->from_us / IDEM_US_PER_SECOND);
    idem_buf_add(buf, IDEM_STR("&created%5Blt%5D="));
    idem_buf_add_i64(buf, listing->to_us / IDEM_US_PER_SECOND);
    idem_buf_add(buf, IDEM_STR("&limit="));
    idem_buf_add_i64(buf, PAGE_MAX);
    if (cursor.len > 2) { /* It is a plain id: it was one when it was made of an answer. */
        idem_buf_add(buf, IDEM_STR("&starting_after="));
        idem_buf_add(buf, idem_str_slice(cursor, 2, SIZE_MAX));
    }
    request.path = idem_str_slice(idem_buf_str(buf), start, SIZE_MAX);
    idem_stripe_authorize(&request, buf, credential);
    *ret_request = request;
}

/* Appends one effect; false: the page has more than fits. */
static bool effect_add(struct idem_listing *listing, const struct idem_listed *listed)
{
    if (listing->count == IDEM_LISTING_MAX) {
        return false;
    }
    listing->listed[listing->count] = *listed;
    listing->count += 1;
    return true;
}

/* What was done for others: its id, cut. Only what moved money. */
static bool foreign_add(struct idem_listing *listing, const struct idem_stripe_object *object)
{
    struct idem_listed listed = {
        .effect_id = idem_buf_keep(&listing->kept, idem_str_slice(object->id, 0, FOREIGN_ID_MAX)),
        .amount_minor = object->is_refund ? object->amount_minor : object->received_minor,
        .happened_us = object->created_s * IDEM_US_PER_SECOND,
    };
    return object->status != IDEM_STRIPE_SUCCEEDED || effect_add(listing, &listed);
}

static struct idem_listed ours(const struct idem_stripe_object *object)
{
    return (struct idem_listed){
        .effect_id = object->our_id,
        .order_no = object->order_no,
        .currency = object->currency,
        .reference = object->id,
        .happened_us = object->created_s * IDEM_US_PER_SECOND,
    };
}

static bool texts_fit(const struct idem_stripe_object *object)
{
    return object->order_no.len <= IDEM_ORDER_NO_MAX &&
           object->our_capture.len <= IDEM_EFFECT_ID_LEN &&
           object->our_payment.len <= IDEM_EFFECT_ID_LEN;
}

static bool payment_add(struct idem_listing *listing, const struct idem_stripe_object *object)
{
    bool authorized = object->status == IDEM_STRIPE_REQUIRES_CAPTURE;
    bool paid = object->status == IDEM_STRIPE_SUCCEEDED;
    struct idem_listed payment = ours(object);

    if (!paid && !(authorized && object->captures_by_hand)) {
        return true;
    }
    if (!object->captures_by_hand) {
        payment.amount_minor = object->received_minor;
        return effect_add(listing, &payment);
    }
    payment.amount_minor = authorized ? object->capturable_minor : object->amount_minor;
    if (!effect_add(listing, &payment)) {
        return false;
    }
    if (!paid || object->our_capture.len == 0) {
        return true;
    }
    struct idem_listed capture = ours(object);
    capture.effect_id = object->our_capture;
    capture.payment_effect_id = object->our_id;
    capture.amount_minor = object->received_minor;
    return effect_add(listing, &capture);
}

static bool refund_add(struct idem_listing *listing, const struct idem_stripe_object *object)
{
    struct idem_listed refund = ours(object);

    refund.payment_effect_id = object->our_payment;
    refund.amount_minor = object->amount_minor;
    return object->status != IDEM_STRIPE_SUCCEEDED || effect_add(listing, &refund);
}

static bool object_add(struct idem_listing *listing, const struct idem_stripe_object *object)
{
    struct idem_scope scope;

    if (!idem_effect_id_scope(object->our_id, &scope)) {
        return foreign_add(listing, object);
    }
    if (!texts_fit(object)) {
        return false;
    }
    return object->is_refund ? refund_add(listing, object) : payment_add(listing, object);
}

static bool cursor_set(struct idem_listing *listing, struct idem_str list, struct idem_str id)
{
    struct idem_buf buf;

    idem_buf_init(&buf, listing->cursor, sizeof(listing->cursor) - 1);
    idem_buf_add(&buf, list);
    if (id.len > 0) {
        idem_buf_add_char(&buf, ':');
        idem_buf_add(&buf, id);
    }
    IDEM_ASSERT(!buf.full); /* An id is plain and short. */
    listing->cursor[buf.len] = '\0';
    listing->more = true;
    return true;
}

/* Where it goes on. False: it would go round in a circle. */
static bool page_end(struct idem_listing *listing, struct idem_str last_id, bool more)
{
    struct idem_str cursor = idem_str_from(listing->cursor);
    bool refunds = lists_refunds(cursor);

    if (more) {
        bool leads_on =
            last_id.len > 0 &&
            (cursor.len <= 2 || !idem_str_equal(idem_str_slice(cursor, 2, SIZE_MAX), last_id));
        return leads_on && cursor_set(listing, refunds ? first_refunds : IDEM_STR("p"), last_id);
    }
    listing->more = false;
    return refunds || cursor_set(listing, first_refunds, (struct idem_str){ .len = 0 });
}

static bool page_read(const struct idem_json *json, struct idem_listing *listing)
{
    bool refunds = lists_refunds(idem_str_from(listing->cursor));
    struct idem_str last_id = { .len = 0 };
    size_t count = 0;
    bool more = false;
    size_t index = idem_stripe_list_read(json, &count, &more);

    if (index == 0 || count > PAGE_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct idem_stripe_object object = { .is_refund = false };
        if (!idem_stripe_object_read(json, index, &listing->kept, &object) ||
            object.is_refund != refunds || !object_add(listing, &object)) {
            return false;
        }
        last_id = object.id;
        index = json->tokens[index].next;
    }
    return !listing->kept.full && page_end(listing, last_id, more);
}

bool idem_stripe_list_decode(const struct idem_wire_answer *answer, struct idem_listing *listing)
{
    struct idem_json_token tokens[TOKENS_MAX];
    struct idem_json json;
    struct idem_json_fault fault; /* What is wrong does not matter: the page is unusable. */

    idem_json_init(&json, tokens, TOKENS_MAX);
    return answer->status == 200 && idem_json_parse(&json, answer->body, &fault) &&
           page_read(&json, listing);
}
