/*
 * Listings at Stripe.
 *
 * Goal: what succeeded is listed under our ids with the money that moved, payments first and then
 * refunds; a cursor leads through both lists to their end and never in a circle; a page that cannot
 * be read whole is not used.
 *
 * Method: pages by hand, and tables of what spoils one.
 */
#include "provider/stripe.h"

#include "lib/test.h"
#include "provider/stripe_internal.h"

#define CHARGE    "c0123456789abcdefghjkmnpqrs"
#define AUTHORIZE "a0123456789abcdefghjkmnpqrs"
#define CAPTURE   "k0123456789abcdefghjkmnpqrs"
#define REFUND    "r0123456789abcdefghjkmnpqrs"

#define INTENT(id, status, capture, received, capturable, metadata)                          \
    "{\"id\":\"" id "\",\"object\":\"payment_intent\",\"status\":\"" status                  \
    "\",\"amount\":10000,\"amount_received\":" received ",\"amount_capturable\":" capturable \
    ",\"currency\":\"eur\",\"created\":1764400000,\"capture_method\":\"" capture             \
    "\",\"metadata\":{" metadata "}}"
#define REFUNDED(id, status, metadata)                                                  \
    "{\"id\":\"" id "\",\"object\":\"refund\",\"status\":\"" status                     \
    "\",\"amount\":700,\"currency\":\"eur\",\"created\":1764400100,\"payment_intent\":" \
    "\"pi_1\",\"metadata\":{" metadata "}}"
#define OURS(id)         "\"idem_id\":\"" id "\",\"order_no\":\"o-1\""
#define PAGE(more, data) "{\"object\":\"list\",\"has_more\":" more ",\"data\":[" data "]}"

static struct idem_listing *listing_make(const char *cursor)
{
    struct idem_listing *listing = calloc(1, sizeof(*listing));
    assert_non_null(listing);
    listing->from_us = 1764400000999999;
    listing->to_us = 1764500000000000;
    (void)snprintf(listing->cursor, sizeof(listing->cursor), "%s", cursor);
    idem_buf_init(&listing->kept, listing->memory, sizeof(listing->memory));
    return listing;
}

static bool page_read(struct idem_listing *listing, uint16_t status, const char *body)
{
    struct idem_wire_answer answer = { .status = status, .body = idem_str_from(body) };
    return idem_stripe_adapter.list_decode(&answer, listing);
}

static void expect_path(const char *cursor, const char *expected)
{
    struct idem_listing *listing = listing_make(cursor);
    char memory[1024];
    struct idem_buf buf;
    struct idem_wire_request request = { .header_count = 0 };
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_stripe_adapter.list_request(listing, IDEM_STR("sk"), &buf, &request);
    EXPECT_TEXT(request.path, expected);
    EXPECT_TEXT(request.headers[0], "Authorization: Bearer sk");
    assert_string_equal(request.method, "GET");
    free(listing);
}

static void a_cursor_says_which_list_and_behind_what(void **state)
{
    (void)state;
#define RANGE "?created%5Bgte%5D=1764400000&created%5Blt%5D=1764500000&limit=10"
    expect_path("", "/v1/payment_intents" RANGE);
    expect_path("p:pi_9", "/v1/payment_intents" RANGE "&starting_after=pi_9");
    expect_path("r", "/v1/refunds" RANGE);
    expect_path("r:re_9", "/v1/refunds" RANGE "&starting_after=re_9");
}

static void expect_listed(const struct idem_listed *listed, const char *id, int64_t amount_minor)
{
    EXPECT_TEXT(listed->effect_id, id);
    assert_int_equal(listed->amount_minor, amount_minor);
}

#define PAID_CHARGE INTENT("pi_9", "succeeded", "automatic", "10000", "0", OURS(CHARGE))
#define HELD        INTENT("pi_8", "requires_capture", "manual", "0", "10000", OURS(AUTHORIZE))
#define BY_CAPTURE  OURS(AUTHORIZE) ",\"idem_capture\":\"" CAPTURE "\""
#define CAPTURED    INTENT("pi_7", "succeeded", "manual", "6000", "0", BY_CAPTURE)
#define DECLINED    INTENT("pi_6", "requires_action", "automatic", "0", "0", OURS(CHARGE))
#define CANCELED    INTENT("pi_5", "canceled", "automatic", "0", "0", OURS(CHARGE))
#define OPEN        INTENT("pi_4", "processing", "automatic", "0", "0", OURS(CHARGE))
#define FOREIGN     INTENT("pi_3", "succeeded", "automatic", "10000", "0", "")
#define UNPAID      INTENT("pi_2", "canceled", "automatic", "0", "0", "")

static const char payments[] = "{\"has_more\":true,\"data\":[" PAID_CHARGE "," HELD "," CAPTURED
                               "," DECLINED "," CANCELED "," OPEN "," FOREIGN "," UNPAID "]}";

static void what_succeeded_is_listed_with_its_money(void **state)
{
    (void)state;
    struct idem_listing *listing = listing_make("");
    assert_true(page_read(listing, 200, payments));
    assert_int_equal(listing->count, 5);
    expect_listed(&listing->listed[0], CHARGE, 10000);
    EXPECT_TEXT(listing->listed[0].currency, "EUR");
    EXPECT_TEXT(listing->listed[0].reference, "pi_9");
    EXPECT_TEXT(listing->listed[0].order_no, "o-1");
    EXPECT_TEXT(listing->listed[0].payment_effect_id, "");
    assert_int_equal(listing->listed[0].happened_us, 1764400000000000);
    expect_listed(&listing->listed[1], AUTHORIZE, 10000);
    expect_listed(&listing->listed[2], AUTHORIZE, 10000);
    expect_listed(&listing->listed[3], CAPTURE, 6000);
    EXPECT_TEXT(listing->listed[3].payment_effect_id, AUTHORIZE);
    expect_listed(&listing->listed[4], "pi_3", 10000);
    assert_true(listing->more);
    assert_string_equal(listing->cursor, "p:pi_2");
    free(listing);
}

#define OF_CHARGE OURS(REFUND) ",\"idem_payment\":\"" CHARGE "\""
#define GIVEN     REFUNDED("re_2", "succeeded", OF_CHARGE)
#define FAILED    REFUNDED("re_1", "failed", OURS(REFUND))

static void behind_the_payments_come_the_refunds_and_then_the_end(void **state)
{
    (void)state;
    struct idem_listing *listing = listing_make("p:pi_2");
    assert_true(page_read(listing, 200, PAGE("false", "")));
    assert_true(listing->more);
    assert_string_equal(listing->cursor, "r");
    free(listing);

    listing = listing_make("r");
    assert_true(page_read(listing, 200, PAGE("false", GIVEN "," FAILED)));
    assert_int_equal(listing->count, 1);
    expect_listed(&listing->listed[0], REFUND, 700);
    EXPECT_TEXT(listing->listed[0].payment_effect_id, CHARGE);
    assert_false(listing->more);
    free(listing);
}

#define SUM(amount) INTENT("pi_1", "succeeded", "automatic", amount, "0", OURS(CHARGE))
#define NO_ID       INTENT("pi/1", "succeeded", "automatic", "1", "0", "")

static void a_page_is_used_whole_or_not_at_all(void **state)
{
    (void)state;
    static const struct {
        const char *cursor;
        const char *body;
        uint16_t status;
    } rows[] = {
        { "", PAGE("false", ""), 500 },
        { "", "", 200 },
        { "", "{}", 200 },
        { "", "[]", 200 },
        { "", "{\"data\":[]}", 200 },
        { "", "{\"data\":[],\"has_more\":\"false\"}", 200 },
        { "", PAGE("false", "{}"), 200 },
        { "", PAGE("false", GIVEN), 200 },
        { "r", PAGE("false", SUM("1")), 200 },
        { "", PAGE("true", ""), 200 },
        { "p:pi_1", PAGE("true", SUM("1")), 200 },
        { "", PAGE("false", SUM("1.5")), 200 },
        { "", PAGE("false", NO_ID), 200 },
    };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_listing *listing = listing_make(rows[i].cursor);
        if (page_read(listing, rows[i].status, rows[i].body)) {
            print_error("%s\n", rows[i].body);
            fail();
        }
        assert_string_equal(listing->cursor, rows[i].cursor);
        free(listing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cursor_says_which_list_and_behind_what),
        cmocka_unit_test(what_succeeded_is_listed_with_its_money),
        cmocka_unit_test(behind_the_payments_come_the_refunds_and_then_the_end),
        cmocka_unit_test(a_page_is_used_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
