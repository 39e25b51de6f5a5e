/*
 * Listings of the bridge protocol: what succeeded at a provider, page by page.
 *
 * A page is believed as a whole or not at all. It is read when this side has forgotten, so nothing
 * here could notice a gap: an effect that is left out because one of its members cannot be read
 * would be charged again. Whatever docs/bridge.md does not list therefore makes the page unusable,
 * and that includes members that are merely new: `"status":"declined"` would take back all the
 * others say. `kind` must be what the effect's id says, a capture, cancel or refund must name its
 * payment, and a cursor must lead on. Effects stand in the order in which they happened: whoever
 * reads them moves sums one after the other, and a refund before its capture finds no room.
 *
 * What the provider did for others, under ids that are not ours, may be in a page. Its form is
 * checked like any other's; of its texts only the id is kept, cut, so that long ones of strangers
 * do not spoil a page.
 */
#include "provider/bridge_internal.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/bug.h"
#include "base/currency.h"
#include "base/date.h"
#include "base/json.h"
#include "base/money.h"
#include "provider/wire.h"

#define MEMBERS_MAX    8
#define TOKENS_MAX     (IDEM_LISTING_MAX * (1 + 2 * MEMBERS_MAX) + 5) /* No usable page has more. */
#define FOREIGN_ID_MAX 64
#define SCRATCH_MAX    96 /* An effect's kind, amount and time. */

static_assert(IDEM_LISTING_MEMORY_MAX >=
                  IDEM_LISTING_MAX * (2 * IDEM_EFFECT_ID_LEN + IDEM_ORDER_NO_MAX +
                                      IDEM_CURRENCY_LEN + IDEM_REFERENCE_MAX + SCRATCH_MAX),
              "the longest page of ours fits");

/* Requests. */

static bool is_unreserved(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '_' || byte == '.' || byte == '~';
}

static void percent_encode(struct idem_str text, struct idem_buf *buf)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        if (is_unreserved(text.data[i])) {
            idem_buf_add_char(buf, text.data[i]);
            continue;
        }
        idem_buf_add_char(buf, '%');
        idem_buf_add_char(buf, digits[byte >> 4]);
        idem_buf_add_char(buf, digits[byte & 15]);
    }
}

void idem_bridge_list_request(const struct idem_listing *listing,
                              struct idem_str credential,
                              struct idem_buf *buf,
                              struct idem_wire_request *ret_request)
{
    size_t start = buf->len;
    struct idem_wire_request request = { .method = "GET" };

    idem_buf_add(buf, IDEM_STR("/effects?from="));
    idem_date_print_rfc3339(listing->from_us, buf);
    idem_buf_add(buf, IDEM_STR("&to="));
    idem_date_print_rfc3339(listing->to_us, buf);
    idem_buf_add(buf, IDEM_STR("&limit="));
    idem_buf_add_i64(buf, IDEM_LISTING_MAX);
    if (listing->cursor[0] != '\0') {
        idem_buf_add(buf, IDEM_STR("&cursor="));
        percent_encode(idem_str_from(listing->cursor), buf);
    }
    request.path = idem_str_slice(idem_buf_str(buf), start, SIZE_MAX);
    if (credential.len > 0) {
        idem_wire_header_add(&request, buf, "Authorization: Bearer ", credential);
    }
    *ret_request = request;
}

/* Answers. */

struct effect_texts {
    struct idem_str id;
    struct idem_str kind;
    struct idem_str amount;
    struct idem_str currency;
    struct idem_str order_no;
    struct idem_str reference;
    struct idem_str payment_id;
    struct idem_str happened;
};

static const struct {
    const char *name;
    size_t offset; /* Of the idem_str in struct effect_texts. */
} members[] = {
    { "id", offsetof(struct effect_texts, id) },
    { "kind", offsetof(struct effect_texts, kind) },
    { "amount", offsetof(struct effect_texts, amount) },
    { "currency", offsetof(struct effect_texts, currency) },
    { "order_no", offsetof(struct effect_texts, order_no) },
    { "reference", offsetof(struct effect_texts, reference) },
    { "payment_id", offsetof(struct effect_texts, payment_id) },
    { "happened", offsetof(struct effect_texts, happened) },
};

static_assert(IDEM_ARRAY_COUNT(members) == MEMBERS_MAX, "the tape has room for all of them");

/* False: something else than an object of these members and texts. */
static bool texts_read(const struct idem_json *json,
                       size_t object,
                       struct idem_buf *buf,
                       struct effect_texts *texts)
{
    uint32_t known = 0;

    if (json->tokens[object].kind != IDEM_JSON_OBJECT) {
        return false;
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(members); i++) {
        size_t index = idem_json_member(json, object, idem_str_from(members[i].name));
        void *place = (char *)texts + members[i].offset;
        if (!idem_wire_text_read(json, index, buf, place)) {
            return false;
        }
        known += index == 0 ? 0 : 1;
    }
    return known == json->tokens[object].count;
}

static enum idem_effect_kind kind_find(struct idem_str word)
{
    for (unsigned i = IDEM_EFFECT_KIND_NONE + 1; i < IDEM_EFFECT_KIND_COUNT; i++) {
        if (idem_str_equal(idem_str_from(idem_bridge_kind_words[i]), word)) {
            return (enum idem_effect_kind)i;
        }
    }
    return IDEM_EFFECT_KIND_NONE;
}

static bool texts_fit(const struct idem_listed *listed)
{
    return listed->order_no.len <= IDEM_ORDER_NO_MAX &&
           listed->reference.len <= IDEM_REFERENCE_MAX &&
           listed->payment_effect_id.len <= IDEM_EFFECT_ID_LEN;
}

static bool effect_read(const struct idem_json *json,
                        size_t object,
                        struct idem_buf *buf,
                        struct idem_listed *ret_listed)
{
    struct effect_texts texts = { .id = { .len = 0 } };
    struct idem_scope scope;
    size_t start = buf->len;

    if (!texts_read(json, object, buf, &texts)) {
        return false;
    }
    enum idem_effect_kind kind = kind_find(texts.kind);
    struct idem_listed listed = {
        .effect_id = texts.id,
        .order_no = texts.order_no,
        .payment_effect_id = texts.payment_id,
        .currency = texts.currency,
        .reference = texts.reference,
    };
    if (texts.id.len == 0 || kind == IDEM_EFFECT_KIND_NONE ||
        idem_bridge_makes_payment(kind) != (texts.payment_id.len == 0) || texts.amount.len == 0 ||
        !idem_bridge_amount_read(texts.amount, texts.currency, &listed.amount_minor) ||
        !idem_date_parse_rfc3339(texts.happened, &listed.happened_us)) {
        return false;
    }
    if (idem_effect_id_scope(texts.id, &scope)) {
        *ret_listed = listed;
        return texts.id.data[0] == idem_effect_kind_letter(kind) && texts_fit(&listed);
    }
    buf->len = start;
    *ret_listed = (struct idem_listed){
        .effect_id = idem_buf_keep(buf, idem_str_slice(texts.id, 0, FOREIGN_ID_MAX)),
        .amount_minor = listed.amount_minor,
        .happened_us = listed.happened_us,
    };
    return true;
}

/* `next`: text, or null behind the last page. A page whose end nobody names could be cut. */
static bool next_read(const struct idem_json *json,
                      size_t index,
                      const struct idem_listing *listing,
                      struct idem_buf *buf,
                      struct idem_str *ret_next)
{
    if (index == 0) {
        return false;
    }
    if (json->tokens[index].kind == IDEM_JSON_NULL) {
        return true;
    }
    return idem_wire_text_read(json, index, buf, ret_next) && ret_next->len > 0 &&
           ret_next->len < sizeof(listing->cursor) &&
           !idem_str_equal(*ret_next, idem_str_from(listing->cursor));
}

static bool page_read(const struct idem_json *json, struct idem_listing *listing)
{
    struct idem_str next = { .len = 0 };
    char next_memory[IDEM_LISTING_CURSOR_MAX];
    struct idem_buf next_buf;

    if (json->tokens[0].kind != IDEM_JSON_OBJECT || json->tokens[0].count != 2) {
        return false;
    }
    size_t effects = idem_json_member(json, 0, IDEM_STR("effects"));
    size_t next_index = idem_json_member(json, 0, IDEM_STR("next"));
    idem_buf_init(&next_buf, next_memory, sizeof(next_memory));
    if (effects == 0 || json->tokens[effects].kind != IDEM_JSON_ARRAY ||
        json->tokens[effects].count > IDEM_LISTING_MAX ||
        !next_read(json, next_index, listing, &next_buf, &next)) {
        return false;
    }
    size_t object = effects + 1;
    for (size_t i = 0; i < json->tokens[effects].count; i++) {
        struct idem_listed *listed = &listing->listed[i];
        if (!effect_read(json, object, &listing->kept, listed) ||
            (i > 0 && listed->happened_us < listed[-1].happened_us)) {
            return false;
        }
        object = json->tokens[object].next;
    }
    listing->count = json->tokens[effects].count;
    listing->more = next.len > 0;
    if (listing->more) {
        memcpy(listing->cursor, next.data, next.len);
        listing->cursor[next.len] = '\0';
    }
    return true;
}

bool idem_bridge_list_decode(const struct idem_wire_answer *answer, struct idem_listing *listing)
{
    struct idem_json_token tokens[TOKENS_MAX];
    struct idem_json json;
    struct idem_json_fault fault; /* What is wrong does not matter: the page is unusable. */

    idem_json_init(&json, tokens, TOKENS_MAX);
    return answer->status == 200 && idem_json_parse(&json, answer->body, &fault) &&
           page_read(&json, listing);
}
