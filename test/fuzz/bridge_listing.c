/*
 * Fuzzes pages of a provider's listing, against jansson.
 *
 * The input is the cursor of the page that was asked for, a zero byte, and the body of the answer.
 * Properties, for any bytes:
 *   - a page that is believed is an object of `effects` and `next` and nothing else, and has as
 *     many effects as jansson counts, none left out;
 *   - each effect of ours has exactly the id, amount, currency, order and payment that jansson
 *     reads, no member that is not known, and a kind that its id says; times do not fall;
 *   - the next cursor is `next` and not the present one; a page that is not believed leaves the
 *     cursor alone;
 *   - a cursor goes into the next request so that it can be read back, byte for byte, and the
 *     request's line is visible ASCII.
 */
#include "provider/bridge.h"

#include <string.h>

#include "api/percent.h"
#include "base/currency.h"
#include "base/money.h"

#include "fuzz/fuzz.h"
#include "fuzz/theirs.h"

static struct idem_listing listing;

static void listing_begin(struct idem_str cursor)
{
    listing = (struct idem_listing){ .to_us = 1 };
    memcpy(listing.cursor, cursor.data, cursor.len);
    listing.cursor[cursor.len] = '\0';
    idem_buf_init(&listing.kept, listing.memory, sizeof(listing.memory));
}

static bool same(struct idem_str ours, struct idem_str theirs)
{
    return idem_str_equal(ours, theirs); /* Absent is empty in both. */
}

static void check_ours(const struct idem_listed *listed, const json_t *theirs)
{
    char memory[IDEM_AMOUNT_TEXT_MAX];
    struct idem_buf buf;
    struct idem_str kind = theirs_text(theirs, "kind");
    int exponent = idem_currency_exponent(listed->currency);
    FUZZ_EXPECT(exponent >= 0 && listed->amount_minor > 0);
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_amount_print(listed->amount_minor, exponent, &buf);
    FUZZ_EXPECT(same(idem_buf_str(&buf), theirs_text(theirs, "amount")));
    FUZZ_EXPECT(same(listed->currency, theirs_text(theirs, "currency")));
    FUZZ_EXPECT(same(listed->effect_id, theirs_text(theirs, "id")));
    FUZZ_EXPECT(same(listed->order_no, theirs_text(theirs, "order_no")));
    FUZZ_EXPECT(same(listed->payment_effect_id, theirs_text(theirs, "payment_id")));
    FUZZ_EXPECT(same(listed->reference, theirs_text(theirs, "reference")));
    enum idem_effect_kind said = idem_effect_kind_from_letter(listed->effect_id.data[0]);
    FUZZ_EXPECT(same(kind, idem_str_from(idem_effect_kind_name(said))));
    FUZZ_EXPECT(idem_effect_kind_makes_payment(said) == (listed->payment_effect_id.len == 0));
}

/* Whatever the protocol does not know makes a page unusable. */
static void check_members(const json_t *theirs)
{
    static const char *const known[] = { "id",       "kind",      "amount",     "currency",
                                         "order_no", "reference", "payment_id", "happened" };
    size_t count = 0;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(known); i++) {
        count += json_object_get(theirs, known[i]) != NULL ? 1 : 0;
    }
    FUZZ_EXPECT(json_is_object(theirs) && json_object_size(theirs) == count);
}

static void check_effect(size_t index, const json_t *theirs)
{
    const struct idem_listed *listed = &listing.listed[index];
    struct idem_scope scope;
    struct idem_str id = theirs_text(theirs, "id");
    check_members(theirs);
    FUZZ_EXPECT(index == 0 || listing.listed[index - 1].happened_us <= listed->happened_us);
    FUZZ_EXPECT(listed->effect_id.len > 0 && listed->happened_us >= 0);
    if (idem_effect_id_scope(id, &scope)) {
        check_ours(listed, theirs);
        return;
    }
    /* A stranger's: it must not come to look like ours. */
    FUZZ_EXPECT(!idem_effect_id_scope(listed->effect_id, &scope));
    FUZZ_EXPECT(idem_str_starts(id, listed->effect_id));
}

static void check_page(struct idem_str cursor, const json_t *theirs)
{
    const json_t *effects = json_object_get(theirs, "effects");
    const json_t *next = json_object_get(theirs, "next");
    FUZZ_EXPECT(json_is_object(theirs) && json_object_size(theirs) == 2);
    FUZZ_EXPECT(json_is_array(effects) && json_array_size(effects) == listing.count);
    FUZZ_EXPECT(next != NULL && listing.more == json_is_string(next));
    if (listing.more) {
        FUZZ_EXPECT(same(idem_str_from(listing.cursor), theirs_str(next)));
        FUZZ_EXPECT(!idem_str_equal(idem_str_from(listing.cursor), cursor));
    }
    for (size_t i = 0; i < listing.count; i++) {
        check_effect(i, json_array_get(effects, i));
    }
}

static void check_request(void)
{
    char memory[2048];
    char read_memory[IDEM_LISTING_CURSOR_MAX];
    struct idem_buf buf;
    struct idem_buf read;
    struct idem_wire_request request = { .header_count = 0 };
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_bridge_adapter.list_request(&listing, IDEM_STR(""), &buf, &request);
    FUZZ_EXPECT(!buf.full);
    for (size_t i = 0; i < request.path.len; i++) {
        FUZZ_EXPECT(request.path.data[i] > 0x20 && request.path.data[i] < 0x7F);
    }
    struct idem_str rest = request.path;
    for (int i = 0; i < 3; i++) { /* from, to, limit */
        (void)idem_str_next(&rest, '&');
    }
    (void)idem_str_next(&rest, '='); /* "cursor", or nothing. */
    idem_buf_init(&read, read_memory, sizeof(read_memory));
    FUZZ_EXPECT(idem_percent_decode(rest, &read) && !read.full);
    FUZZ_EXPECT(idem_str_equal(idem_buf_str(&read), idem_str_from(listing.cursor)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_str body = { .data = (const char *)data, .len = size };
    if (idem_str_find(body, '\0') == size) {
        return 0;
    }
    struct idem_str cursor = idem_str_next(&body, '\0');
    if (cursor.len >= IDEM_LISTING_CURSOR_MAX) {
        return 0;
    }
    listing_begin(cursor);
    check_request();
    struct idem_wire_answer answer = { .status = 200, .body = body };
    if (!idem_bridge_adapter.list_decode(&answer, &listing)) {
        FUZZ_EXPECT(idem_str_equal(idem_str_from(listing.cursor), cursor));
        return 0;
    }
    FUZZ_EXPECT(!listing.kept.full && listing.count <= IDEM_LISTING_MAX);
    check_request();
    json_t *theirs = theirs_load(body);
    FUZZ_EXPECT(theirs != NULL);
    check_page(cursor, theirs);
    json_decref(theirs);
    return 0;
}
