/*
 * Listings of the bridge protocol: what is asked, and which pages are believed.
 *
 * Goal: the request is these bytes; a page is read with all it says; a page with anything in it
 * that docs/bridge.md does not list is not used at all; and no damage to a good page can make it
 * say something else about money.
 *
 * Method: golden bytes; a table of pages; a good page cut at every place and with every single byte
 * changed to every other, where what is still believed is read again by a second JSON reader
 * (jansson) and compared.
 */
#include <jansson.h>

#include "base/clock.h"
#include "base/date.h"
#include "lib/test.h"
#include "provider/bridge.h"

#define CHARGE_ID "c0123456789abcdefghjkmnpqrs"
#define REFUND_ID "r9876543210abcdefghjkmnpqrs"
#define WHEN      "\"happened\":\"2026-11-29T13:47:03.123456Z\""
#define WHEN_US   INT64_C(1795960023123456)
#define MONEY     "\"amount\":\"100.00\",\"currency\":\"CNY\""
#define CHARGE    "\"id\":\"" CHARGE_ID "\",\"kind\":\"charge\"," MONEY "," WHEN
#define REFUND_OF \
    "\"id\":\"" REFUND_ID "\",\"kind\":\"refund\",\"payment_id\":\"" CHARGE_ID "\"," MONEY
#define REFUND        REFUND_OF "," WHEN
#define REFUND_AT(at) REFUND_OF ",\"happened\":\"" at "\""
#define PAGE(effects) "{\"effects\":[" effects "],\"next\":null}"

static struct idem_listing listing; /* Too large for the stack of a test. */

static void listing_prepare(const char *cursor)
{
    listing.from_us = WHEN_US;
    listing.to_us = WHEN_US + 1;
    (void)snprintf(listing.cursor, sizeof(listing.cursor), "%s", cursor);
    listing.count = 0;
    listing.more = false;
    idem_buf_init(&listing.kept, listing.memory, sizeof(listing.memory));
}

static bool decode(uint16_t status, struct idem_str body)
{
    const struct idem_wire_answer answer = { .status = status, .body = body };

    return idem_bridge_adapter.list_decode(&answer, &listing) && !listing.kept.full;
}

static void expect_request(const char *cursor, const char *credential, const char *expected)
{
    char memory[4096];
    char shown_memory[4096];
    struct idem_buf buf;
    struct idem_buf shown;
    struct idem_wire_request request = { .header_count = 0 };

    listing_prepare(cursor);
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_init(&shown, shown_memory, sizeof(shown_memory));
    idem_bridge_adapter.list_request(&listing, idem_str_from(credential), &buf, &request);
    assert_false(buf.full);
    assert_int_equal(request.body.len, 0);
    idem_buf_printf(&shown, "%s %.*s\n", request.method, (int)request.path.len, request.path.data);
    for (size_t i = 0; i < request.header_count; i++) {
        idem_buf_add(&shown, request.headers[i]);
        idem_buf_add_char(&shown, '\n');
    }
    EXPECT_TEXT(idem_buf_str(&shown), expected);
}

static void a_page_is_asked_for_with_these_bytes(void **state)
{
    (void)state;
    expect_request("", "secret",
                   "GET /effects?from=2026-11-29T13:47:03.123456Z&to=2026-11-29T13:47:03.123457Z"
                   "&limit=64\nAuthorization: Bearer secret\n");
    expect_request("a/b+c=\xe8&%\r\n~.", "",
                   "GET /effects?from=2026-11-29T13:47:03.123456Z&to=2026-11-29T13:47:03.123457Z"
                   "&limit=64&cursor=a%2Fb%2Bc%3D%E8%26%25%0D%0A~.\n");
}

static void a_page_is_read_with_all_it_says(void **state)
{
    (void)state;
    listing_prepare("");
    assert_true(decode(
        200, IDEM_STR(" {\"next\":\"p\\u0032/\",\"effects\":[{" CHARGE ",\"order_no\":\"o-1\","
                      "\"reference\":\"r\\u00e9\"},{" REFUND ",\"order_no\":null},{\"id\":\"x y\","
                      "\"kind\":\"cancel\",\"payment_id\":\"z\",\"amount\":\"7\",\"currency\":"
                      "\"JPY\",\"reference\":\"theirs\",\"happened\":\"2099-01-01T08:00:01+08:00\""
                      "}]}\n")));
    assert_int_equal(listing.count, 3);
    assert_true(listing.more);
    assert_string_equal(listing.cursor, "p2/");

    EXPECT_TEXT(listing.listed[0].effect_id, CHARGE_ID);
    EXPECT_TEXT(listing.listed[0].order_no, "o-1");
    EXPECT_TEXT(listing.listed[0].payment_effect_id, "");
    EXPECT_TEXT(listing.listed[0].currency, "CNY");
    EXPECT_TEXT(listing.listed[0].reference, "r\xc3\xa9");
    assert_int_equal(listing.listed[0].amount_minor, 10000);
    assert_int_equal(listing.listed[0].happened_us, WHEN_US);

    EXPECT_TEXT(listing.listed[1].effect_id, REFUND_ID);
    EXPECT_TEXT(listing.listed[1].payment_effect_id, CHARGE_ID);
    EXPECT_TEXT(listing.listed[1].order_no, "");
    EXPECT_TEXT(listing.listed[1].reference, "");

    EXPECT_TEXT(listing.listed[2].effect_id, "x y"); /* Of somebody else. */
    EXPECT_TEXT(listing.listed[2].reference, "");
    assert_int_equal(listing.listed[2].amount_minor, 7);
    assert_int_equal(listing.listed[2].happened_us, INT64_C(4070908801) * IDEM_US_PER_SECOND);
}

static const struct {
    const char *body;
    bool usable;
} pages[] = {
    { PAGE(""), true },
    { PAGE("{" CHARGE "}"), true },
    { PAGE("{" REFUND "}"), true },
    { PAGE("{" CHARGE "},{" REFUND "}"), true },
    { "{\"effects\":[],\"next\":\"c\"}", true },
    { PAGE("{" CHARGE ",\"reference\":null,\"payment_id\":null}"), true },
    { "", false },
    { "[]", false },
    { "{}", false },
    { "{\"effects\":[]}", false },
    { "{\"next\":null}", false },
    { "{\"effects\":null,\"next\":null}", false },
    { "{\"effects\":{},\"next\":null}", false },
    { "{\"effects\":[],\"next\":\"\"}", false },
    { "{\"effects\":[],\"next\":7}", false },
    { "{\"effects\":[],\"next\":false}", false },
    { "{\"effects\":[],\"next\":\"asked\"}", false }, /* Leads nowhere. */
    { "{\"effects\":[],\"next\":\"a\\u0000\"}", false },
    { "{\"effects\":[],\"next\":null,\"total\":0}", false },
    { "{\"effects\":[],\"effects\":[],\"next\":null}", false },
    { PAGE("{" CHARGE "},{" REFUND_AT("2026-11-29T13:47:03.123457Z") "}"), true },
    { PAGE("{" CHARGE "},{" REFUND_AT("2026-11-29T13:47:03.123455Z") "}"), false }, /* Back. */
    { PAGE("{" CHARGE "},{\"id\":\"theirs\",\"kind\":\"charge\"," MONEY
           ",\"happened\":\"2026-11-29T13:47:03Z\"}"),
      false },
    { PAGE("{" CHARGE "},7"), false },
    { PAGE("{" CHARGE "},null"), false },
    { PAGE("[{" CHARGE "}]"), false },
    { PAGE("{}"), false },
    { PAGE("{" CHARGE ",\"status\":\"declined\"}"), false },
    { PAGE("{" CHARGE ",\"code\":null}"), false },
    { PAGE("{" CHARGE ",\"order_no\":7}"), false },
    { PAGE("{" CHARGE ",\"reference\":[]}"), false },
    { PAGE("{" CHARGE ",\"reference\":\"a\\u0000\"}"), false },
    { PAGE("{" CHARGE ",\"payment_id\":\"" CHARGE_ID "\"}"), false },
    { PAGE("{\"id\":\"" CHARGE_ID "\",\"kind\":\"charge\"," MONEY "}"), false },
    { PAGE("{\"id\":\"" CHARGE_ID "\",\"kind\":\"charge\"," MONEY ",\"happened\":1795960023}"),
      false },
    { PAGE("{\"id\":\"" CHARGE_ID "\",\"kind\":\"charge\"," MONEY ",\"happened\":\"today\"}"),
      false },
    { PAGE("{\"id\":\"" CHARGE_ID "\",\"kind\":\"charge\",\"amount\":\"1.00\"," WHEN "}"), false },
    { PAGE("{\"id\":\"" CHARGE_ID "\",\"kind\":\"charge\",\"currency\":\"CNY\"," WHEN "}"), false },
    { PAGE("{\"id\":\"" CHARGE_ID
           "\",\"kind\":\"charge\",\"currency\":\"CNY\",\"amount\":1.00," WHEN "}"),
      false },
    { PAGE("{\"id\":\"" CHARGE_ID
           "\",\"kind\":\"charge\",\"currency\":\"CNY\",\"amount\":\"0.00\"," WHEN "}"),
      false },
    { PAGE("{\"id\":\"" CHARGE_ID
           "\",\"kind\":\"charge\",\"currency\":\"CNY\",\"amount\":\"1.0\"," WHEN "}"),
      false },
    { PAGE("{\"id\":\"" CHARGE_ID
           "\",\"kind\":\"charge\",\"currency\":\"cny\",\"amount\":\"1.00\"," WHEN "}"),
      false },
    { PAGE("{\"id\":\"" CHARGE_ID "\"," MONEY "," WHEN "}"), false },
    { PAGE("{\"id\":\"" CHARGE_ID "\",\"kind\":\"gift\"," MONEY "," WHEN "}"), false },
    { PAGE("{\"id\":\"" CHARGE_ID "\",\"kind\":\"authorize\"," MONEY "," WHEN "}"), false },
    { PAGE("{\"id\":\"" REFUND_ID "\",\"kind\":\"refund\"," MONEY "," WHEN "}"), false },
    { PAGE("{\"id\":\"" REFUND_ID "\",\"kind\":\"refund\",\"payment_id\":\"\"," MONEY "," WHEN "}"),
      false },
    { PAGE("{\"id\":\"" REFUND_ID "\",\"kind\":\"refund\",\"payment_id\":\"" CHARGE_ID "x\"," MONEY
           "," WHEN "}"),
      false },
    { PAGE("{\"kind\":\"charge\"," MONEY "," WHEN "}"), false },
    { PAGE("{\"id\":\"\",\"kind\":\"charge\"," MONEY "," WHEN "}"), false },
    { PAGE("{\"id\":7,\"kind\":\"charge\"," MONEY "," WHEN "}"), false },
    { PAGE("{\"id\":\"theirs\",\"kind\":\"charge\"," WHEN "}"), false }, /* Strict for all. */
};

static void expect_usable(const char *body, bool usable)
{
    listing_prepare("asked");
    if (decode(200, idem_str_from(body)) != usable) {
        fail_msg("%s: expected to be %s", body, usable ? "usable" : "unusable");
    }
}

static void a_page_is_used_if_the_protocol_lists_all_of_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(pages); i++) {
        expect_usable(pages[i].body, pages[i].usable);
        listing_prepare("");
        assert_false(decode(500, idem_str_from(pages[i].body)));
        assert_false(decode(206, idem_str_from(pages[i].body)));
        assert_string_equal(listing.cursor, "");
    }
}

/* `count` effects with texts of the greatest length, behind them `tail`. */
static struct idem_str page_print(char *memory, size_t size, int count, const char *tail)
{
    char filler[IDEM_REFERENCE_MAX + 1];
    struct idem_buf buf;

    memset(filler, 'x', sizeof(filler));
    idem_buf_init(&buf, memory, size);
    idem_buf_add(&buf, IDEM_STR("{\"effects\":["));
    for (int i = 0; i < count; i++) {
        idem_buf_printf(&buf, "%s{" REFUND ",\"order_no\":\"%.*s\",\"reference\":\"%.*s\"}",
                        i == 0 ? "" : ",", IDEM_ORDER_NO_MAX, filler, IDEM_REFERENCE_MAX, filler);
    }
    idem_buf_printf(&buf, "],\"next\":null}%s", tail);
    assert_false(buf.full);
    return idem_buf_str(&buf);
}

static void the_longest_page_is_read_and_a_longer_one_is_not(void **state)
{
    (void)state;
    enum {
        SIZE = 65536
    };
    char *memory = malloc(SIZE);
    assert_non_null(memory);

    listing_prepare("");
    assert_true(decode(200, page_print(memory, SIZE, IDEM_LISTING_MAX, "")));
    assert_int_equal(listing.count, IDEM_LISTING_MAX);
    assert_int_equal(listing.listed[IDEM_LISTING_MAX - 1].reference.len, IDEM_REFERENCE_MAX);
    listing_prepare("");
    assert_false(decode(200, page_print(memory, SIZE, IDEM_LISTING_MAX + 1, "")));
    listing_prepare("");
    assert_false(decode(200, page_print(memory, SIZE, 1, "{}")));
    free(memory);
}

static void long_texts_of_ours_spoil_a_page_and_those_of_others_do_not(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t max;
    } members[] = {
        { "order_no", IDEM_ORDER_NO_MAX },
        { "reference", IDEM_REFERENCE_MAX },
        { "id", 4000 },
    };
    char filler[4001];
    char body[8192];

    memset(filler, 'x', sizeof(filler));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(members); i++) {
        for (size_t len = members[i].max; len <= members[i].max + 1; len++) {
            bool is_id = strcmp(members[i].name, "id") == 0;
            (void)snprintf(body, sizeof(body),
                           PAGE("{\"%s\":\"%.*s\",\"kind\":\"charge\"," MONEY "," WHEN "%s}"),
                           members[i].name, (int)len, filler,
                           is_id ? "" : ",\"id\":\"" CHARGE_ID "\"");
            listing_prepare("");
            assert_int_equal(decode(200, idem_str_from(body)), is_id || len == members[i].max);
        }
    }
    assert_int_equal(listing.listed[0].effect_id.len, 64);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(
            body, sizeof(body),
            PAGE("{\"%s\":\"%.*s\",\"kind\":\"charge\"," MONEY "," WHEN ",\"id\":\"theirs\"}"),
            members[i].name, 4000, filler);
        listing_prepare("");
        assert_true(decode(200, idem_str_from(body)));
    }
}

static void a_cursor_is_kept_whole_or_the_page_is_not_used(void **state)
{
    (void)state;
    char filler[IDEM_LISTING_CURSOR_MAX + 1];
    char body[1024];

    memset(filler, 'x', sizeof(filler));
    for (int len = IDEM_LISTING_CURSOR_MAX - 1; len <= IDEM_LISTING_CURSOR_MAX; len++) {
        (void)snprintf(body, sizeof(body), "{\"effects\":[],\"next\":\"%.*s\"}", len, filler);
        listing_prepare("asked");
        bool fits = len < IDEM_LISTING_CURSOR_MAX;
        assert_int_equal(decode(200, idem_str_from(body)), fits);
        assert_int_equal(strlen(listing.cursor), fits ? (size_t)len : strlen("asked"));
    }
}

static bool same_text(const json_t *object, const char *name, struct idem_str text)
{
    const char *other = json_string_value(json_object_get(object, name));
    return idem_str_equal(text, idem_str_from(other));
}

/* Whatever the damage: what is believed stands in the bytes for another reader too. */
static void expect_honest(struct idem_str body)
{
    listing_prepare("asked");
    if (!decode(200, body)) {
        return;
    }
    json_t *root = json_loadb(body.data, body.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    const json_t *effects = json_object_get(root, "effects");
    assert_int_equal(json_array_size(effects), listing.count);
    for (size_t i = 0; i < listing.count; i++) {
        const struct idem_listed *listed = &listing.listed[i];
        const json_t *effect = json_array_get(effects, i);
        struct idem_scope scope;
        int64_t happened_us = 0;
        assert_true(same_text(effect, "id", listed->effect_id));
        assert_true(idem_date_parse_rfc3339(
            idem_str_from(json_string_value(json_object_get(effect, "happened"))), &happened_us));
        assert_int_equal(happened_us, listed->happened_us);
        if (idem_effect_id_scope(listed->effect_id, &scope)) {
            assert_true(same_text(effect, "currency", listed->currency));
            assert_true(same_text(effect, "reference", listed->reference));
            assert_true(same_text(effect, "payment_id", listed->payment_effect_id));
        }
        assert_true(listed->amount_minor != 10000 ||
                    same_text(effect, "amount", IDEM_STR("100.00")));
    }
    json_decref(root);
}

static void expect_honest_with_any_byte(struct idem_str good, size_t at)
{
    char *copy = malloc(good.len); /* Of its own size, so that a read past its end is noticed. */
    assert_non_null(copy);

    memcpy(copy, good.data, good.len);
    for (unsigned byte = 0; byte < 256; byte++) {
        copy[at] = (char)byte;
        expect_honest((struct idem_str){ .data = copy, .len = good.len });
    }
    listing_prepare("");
    assert_false(decode(200, (struct idem_str){ .data = good.data, .len = at })); /* Cut. */
    free(copy);
}

static void no_damage_makes_another_claim(void **state)
{
    (void)state;
    static const struct idem_str good = {
        .data = PAGE("{" REFUND ",\"reference\":\"r\"}"),
        .len = sizeof(PAGE("{" REFUND ",\"reference\":\"r\"}")) - 1,
    };

    listing_prepare("");
    assert_true(decode(200, good));
    for (size_t at = 0; at < good.len; at++) {
        expect_honest_with_any_byte(good, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_asked_for_with_these_bytes),
        cmocka_unit_test(a_page_is_read_with_all_it_says),
        cmocka_unit_test(a_page_is_used_if_the_protocol_lists_all_of_it),
        cmocka_unit_test(the_longest_page_is_read_and_a_longer_one_is_not),
        cmocka_unit_test(long_texts_of_ours_spoil_a_page_and_those_of_others_do_not),
        cmocka_unit_test(a_cursor_is_kept_whole_or_the_page_is_not_used),
        cmocka_unit_test(no_damage_makes_another_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
