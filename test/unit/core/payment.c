/*
 * The payment's states and sums.
 *
 * Goal: what may be reserved in which state is the policy in this grid, written from the product's
 * rules; sums hold at the largest amount there is; and no order of reservations and outcomes breaks
 * P10.
 *
 * Method: a payment of 10000 is put into each state by real operations and every operation is
 * tried on it. A random walk under a fixed seed checks the sums after each of 100,000 operations
 * against sums kept here.
 */
#include "core/payment.h"

#include "lib/test.h"

#define AMOUNT 10000

/* Cells: "ok", "state", "amount", "partial". */
static const char policy_many[] =
    "                    capture-all  capture-part  capture-more  cancel  refund-all  refund-more\n"
    "pending             state        state         state         state   state       state\n"
    "authorized          ok           ok            amount        ok      state       state\n"
    "partially_captured  ok           ok            amount        ok      ok          amount\n"
    "captured            state        state         state         state   ok          amount\n"
    "partially_refunded  state        state         state         state   ok          amount\n"
    "refunded            state        state         state         state   amount      amount\n"
    "failed              state        state         state         state   state       state\n"
    "canceled            state        state         state         state   state       state\n"
    "expired             state        state         state         state   state       state\n";

static struct idem_payment payment_new(int64_t amount_minor, enum idem_capture_mode mode)
{
    return (struct idem_payment){
        .row = 1,
        .version = 1,
        .state = IDEM_PAYMENT_PENDING,
        .capture_mode = mode,
        .amount_minor = amount_minor,
        .currency = IDEM_STR("CNY"),
    };
}

static void capture(struct idem_payment *payment, int64_t amount_minor)
{
    assert_int_equal(idem_payment_reserve_capture(payment, amount_minor, IDEM_PARTIAL_MANY),
                     IDEM_REFUSAL_NONE);
    idem_payment_captured(payment, amount_minor, IDEM_PARTIAL_MANY);
}

static void refund(struct idem_payment *payment, int64_t amount_minor)
{
    assert_int_equal(idem_payment_reserve_refund(payment, amount_minor), IDEM_REFUSAL_NONE);
    idem_payment_refunded(payment, amount_minor);
}

static struct idem_payment payment_in(enum idem_payment_state state)
{
    struct idem_payment payment = payment_new(AMOUNT, IDEM_CAPTURE_MANUAL);
    if (state == IDEM_PAYMENT_PENDING) {
        return payment;
    }
    if (state == IDEM_PAYMENT_FAILED) {
        idem_payment_failed(&payment);
        return payment;
    }
    idem_payment_made(&payment);
    if (state == IDEM_PAYMENT_CANCELED) {
        assert_int_equal(idem_payment_reserve_cancel(&payment, IDEM_PARTIAL_MANY),
                         IDEM_REFUSAL_NONE);
        idem_payment_canceled(&payment);
    }
    if (state == IDEM_PAYMENT_EXPIRED) { /* The provider's word; no operation makes it. */
        payment.released_minor = AMOUNT;
        payment.state = state;
    }
    if (state == IDEM_PAYMENT_PARTIALLY_CAPTURED) {
        capture(&payment, 4000);
    }
    if (state == IDEM_PAYMENT_CAPTURED || state == IDEM_PAYMENT_PARTIALLY_REFUNDED ||
        state == IDEM_PAYMENT_REFUNDED) {
        capture(&payment, AMOUNT);
    }
    if (state == IDEM_PAYMENT_PARTIALLY_REFUNDED) {
        refund(&payment, 4000);
    }
    if (state == IDEM_PAYMENT_REFUNDED) {
        refund(&payment, AMOUNT);
    }
    assert_int_equal(payment.state, state);
    return payment;
}

static const char *refusal_name(enum idem_refusal refusal)
{
    static const char *const names[IDEM_REFUSAL_COUNT] = {
        [IDEM_REFUSAL_NONE] = "ok",
        [IDEM_REFUSAL_STATE] = "state",
        [IDEM_REFUSAL_AMOUNT] = "amount",
        [IDEM_REFUSAL_PARTIAL] = "partial",
    };
    return names[refusal];
}

static const char *try(enum idem_payment_state state, int operation)
{
    struct idem_payment payment = payment_in(state);
    struct idem_payment before = payment;
    int64_t left = idem_payment_capturable(&payment);
    int64_t back = idem_payment_refundable(&payment);
    left = left > 0 ? left : AMOUNT;
    back = back > 0 ? back : AMOUNT;
    enum idem_refusal refusal = IDEM_REFUSAL_COUNT;
    switch (operation) {
    case 0:
        refusal = idem_payment_reserve_capture(&payment, left, IDEM_PARTIAL_MANY);
        break;
    case 1:
        refusal = idem_payment_reserve_capture(&payment, 1, IDEM_PARTIAL_MANY);
        break;
    case 2:
        refusal = idem_payment_reserve_capture(&payment, left + 1, IDEM_PARTIAL_MANY);
        break;
    case 3:
        refusal = idem_payment_reserve_cancel(&payment, IDEM_PARTIAL_MANY);
        break;
    case 4:
        refusal = idem_payment_reserve_refund(&payment, back);
        break;
    default:
        refusal = idem_payment_reserve_refund(&payment, back + 1);
        break;
    }
    assert_int_equal(payment.state, state); /* A reservation moves no state. */
    if (refusal != IDEM_REFUSAL_NONE) {
        assert_memory_equal(&payment, &before, sizeof(payment));
    }
    return refusal_name(refusal);
}

static void follows_the_policy(void **unused)
{
    (void)unused;
    static const int widths[] = { 12, 13, 13, 7, 11, 0 };
    char memory[2048];
    struct idem_buf grid;
    idem_buf_init(&grid, memory, sizeof(memory));
    idem_buf_printf(&grid,
                    "%-20scapture-all  capture-part  capture-more  cancel  refund-all  "
                    "refund-more\n",
                    "");
    for (int state = IDEM_PAYMENT_PENDING; state < IDEM_PAYMENT_COUNT; state++) {
        const char *name = idem_payment_state_name((enum idem_payment_state)state);
        idem_buf_printf(&grid, "%-19s", name);
        for (int operation = 0; operation < 6; operation++) {
            idem_buf_printf(&grid, " %-*s", widths[operation],
                            try((enum idem_payment_state)state, operation));
        }
        idem_buf_add_char(&grid, '\n');
    }
    EXPECT_TEXT(idem_buf_str(&grid), policy_many);
}

static void the_whole_or_nothing_where_parts_are_not_taken(void **state)
{
    (void)state;
    struct idem_payment payment = payment_in(IDEM_PAYMENT_AUTHORIZED);
    assert_int_equal(idem_payment_reserve_capture(&payment, 1, IDEM_PARTIAL_NONE),
                     IDEM_REFUSAL_PARTIAL);
    assert_int_equal(idem_payment_reserve_capture(&payment, AMOUNT + 1, IDEM_PARTIAL_NONE),
                     IDEM_REFUSAL_AMOUNT);
    assert_int_equal(idem_payment_reserve_capture(&payment, AMOUNT, IDEM_PARTIAL_NONE),
                     IDEM_REFUSAL_NONE);
    assert_int_equal(idem_payment_reserve_cancel(&payment, IDEM_PARTIAL_NONE), IDEM_REFUSAL_STATE);
    idem_payment_capture_returned(&payment, AMOUNT);
    assert_int_equal(idem_payment_reserve_cancel(&payment, IDEM_PARTIAL_NONE), IDEM_REFUSAL_NONE);
    assert_int_equal(idem_payment_reserve_cancel(&payment, IDEM_PARTIAL_NONE), IDEM_REFUSAL_STATE);
    assert_int_equal(idem_payment_reserve_capture(&payment, AMOUNT, IDEM_PARTIAL_NONE),
                     IDEM_REFUSAL_STATE);
    idem_payment_cancel_returned(&payment);
    assert_int_equal(payment.state, IDEM_PAYMENT_AUTHORIZED);
}

static void the_rest_is_released_with_the_one_capture(void **state)
{
    (void)state;
    struct idem_payment payment = payment_in(IDEM_PAYMENT_AUTHORIZED);
    assert_int_equal(idem_payment_reserve_capture(&payment, 4000, IDEM_PARTIAL_ONCE),
                     IDEM_REFUSAL_NONE);
    assert_int_equal(idem_payment_reserve_capture(&payment, 1, IDEM_PARTIAL_ONCE),
                     IDEM_REFUSAL_STATE);
    idem_payment_captured(&payment, 4000, IDEM_PARTIAL_ONCE);
    assert_int_equal(payment.state, IDEM_PAYMENT_CAPTURED);
    assert_int_equal(payment.released_minor, 6000);
    assert_int_equal(idem_payment_capturable(&payment), 0);
    assert_int_equal(idem_payment_reserve_cancel(&payment, IDEM_PARTIAL_ONCE), IDEM_REFUSAL_STATE);
}

static void cancel_voids_what_was_not_captured(void **state)
{
    (void)state;
    struct idem_payment payment = payment_in(IDEM_PAYMENT_PARTIALLY_CAPTURED);
    assert_int_equal(idem_payment_reserve_cancel(&payment, IDEM_PARTIAL_ONCE), IDEM_REFUSAL_STATE);
    assert_int_equal(idem_payment_reserve_cancel(&payment, IDEM_PARTIAL_MANY), IDEM_REFUSAL_NONE);
    idem_payment_canceled(&payment);
    assert_int_equal(payment.state, IDEM_PAYMENT_CAPTURED);
    assert_int_equal(payment.released_minor, 6000);
    refund(&payment, 1000);
    assert_int_equal(payment.state, IDEM_PAYMENT_PARTIALLY_REFUNDED);
    refund(&payment, 3000);
    assert_int_equal(payment.state, IDEM_PAYMENT_REFUNDED);
}

static void a_hundred_refunds_of_one_from_fifty_make_fifty(void **state)
{
    (void)state;
    struct idem_payment payment = payment_new(50, IDEM_CAPTURE_AUTOMATIC);
    idem_payment_made(&payment);
    int taken = 0;
    for (int i = 0; i < 100; i++) {
        taken += idem_payment_reserve_refund(&payment, 1) == IDEM_REFUSAL_NONE ? 1 : 0;
    }
    assert_int_equal(taken, 50);
    idem_payment_refund_returned(&payment, 1);
    assert_int_equal(idem_payment_refundable(&payment), 1);
}

static void the_largest_amount_there_is_does_not_overflow(void **state)
{
    (void)state;
    struct idem_payment payment = payment_new(INT64_MAX, IDEM_CAPTURE_MANUAL);
    idem_payment_made(&payment);
    assert_int_equal(idem_payment_reserve_capture(&payment, INT64_MAX - 1, IDEM_PARTIAL_MANY),
                     IDEM_REFUSAL_NONE);
    assert_int_equal(idem_payment_reserve_capture(&payment, INT64_MAX, IDEM_PARTIAL_MANY),
                     IDEM_REFUSAL_AMOUNT);
    assert_int_equal(idem_payment_reserve_capture(&payment, 1, IDEM_PARTIAL_MANY),
                     IDEM_REFUSAL_NONE);
    idem_payment_captured(&payment, INT64_MAX - 1, IDEM_PARTIAL_MANY);
    idem_payment_captured(&payment, 1, IDEM_PARTIAL_MANY);
    assert_int_equal(payment.state, IDEM_PAYMENT_CAPTURED);
    assert_int_equal(idem_payment_reserve_refund(&payment, INT64_MAX), IDEM_REFUSAL_NONE);
    assert_int_equal(idem_payment_reserve_refund(&payment, INT64_MAX), IDEM_REFUSAL_AMOUNT);
    idem_payment_refunded(&payment, INT64_MAX);
    assert_int_equal(payment.state, IDEM_PAYMENT_REFUNDED);
}

struct model {
    int64_t captured_minor;
    int64_t capture_pending_minor;
    int64_t refunded_minor;
    int64_t refund_pending_minor;
};

static uint64_t noise;

static uint64_t pick(uint64_t below)
{
    noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (noise >> 20) % below;
}

static void settle_capture(struct idem_payment *payment, struct model *model, bool moved)
{
    int64_t amount = 1 + (int64_t)pick((uint64_t)model->capture_pending_minor);
    model->capture_pending_minor -= amount;
    if (moved) {
        model->captured_minor += amount;
        idem_payment_captured(payment, amount, IDEM_PARTIAL_MANY);
    } else {
        idem_payment_capture_returned(payment, amount);
    }
}

static void settle_refund(struct idem_payment *payment, struct model *model, bool moved)
{
    int64_t amount = 1 + (int64_t)pick((uint64_t)model->refund_pending_minor);
    model->refund_pending_minor -= amount;
    if (moved) {
        model->refunded_minor += amount;
        idem_payment_refunded(payment, amount);
    } else {
        idem_payment_refund_returned(payment, amount);
    }
}

static void settle(struct idem_payment *payment, struct model *model)
{
    bool moved = pick(2) == 0;
    if (payment->canceling) {
        moved ? idem_payment_canceled(payment) : idem_payment_cancel_returned(payment);
    }
    if (model->capture_pending_minor > 0) {
        settle_capture(payment, model, moved);
    }
    if (model->refund_pending_minor > 0) {
        settle_refund(payment, model, moved);
    }
}

static void reserve(struct idem_payment *payment, struct model *model)
{
    int64_t amount = 1 + (int64_t)pick(pick(4) == 0 ? INT64_MAX : 5000);
    switch (pick(8)) {
    case 0:
        (void)idem_payment_reserve_cancel(payment, IDEM_PARTIAL_MANY);
        return;
    case 1:
    case 2:
    case 3:
        if (idem_payment_reserve_capture(payment, amount, IDEM_PARTIAL_MANY) == IDEM_REFUSAL_NONE) {
            model->capture_pending_minor += amount;
        }
        return;
    default:
        if (idem_payment_reserve_refund(payment, amount) == IDEM_REFUSAL_NONE) {
            model->refund_pending_minor += amount;
        }
        return;
    }
}

static void no_order_of_operations_breaks_the_sums(void **state)
{
    (void)state;
    noise = 20261129;
    struct idem_payment payment = payment_new(0, IDEM_CAPTURE_MANUAL);
    struct model model = { .captured_minor = 0 };
    for (int step = 0; step < 100000; step++) {
        if (step % 50 == 0) {
            int64_t amount = 1 + (int64_t)pick(pick(4) == 0 ? INT64_MAX : 20000);
            payment = payment_new(amount, IDEM_CAPTURE_MANUAL);
            idem_payment_made(&payment);
            model = (struct model){ .captured_minor = 0 };
        }
        if (pick(3) == 0) {
            settle(&payment, &model);
        } else {
            reserve(&payment, &model);
        }
        idem_payment_check(&payment); /* P10 */
        assert_int_equal(payment.captured_minor, model.captured_minor);
        assert_int_equal(payment.capture_pending_minor, model.capture_pending_minor);
        assert_int_equal(payment.refunded_minor, model.refunded_minor);
        assert_int_equal(payment.refund_pending_minor, model.refund_pending_minor);
        assert_true(payment.refunded_minor <= payment.captured_minor);
        assert_true(payment.captured_minor <= payment.authorized_minor);
    }
}

static void an_order_number_is_free_after_failure_and_cancel_only(void **state)
{
    (void)state;
    for (int at = IDEM_PAYMENT_NONE; at < IDEM_PAYMENT_COUNT; at++) {
        bool is_free =
            at == IDEM_PAYMENT_NONE || at == IDEM_PAYMENT_FAILED || at == IDEM_PAYMENT_CANCELED;
        assert_int_equal(idem_payment_holds_order((enum idem_payment_state)at), !is_free);
    }
}

/* ---- what the provider takes back by itself ---- */

static void an_authorization_expires_by_what_is_left_of_it(void **state)
{
    (void)state;
    for (int at = IDEM_PAYMENT_PENDING; at < IDEM_PAYMENT_COUNT; at++) {
        struct idem_payment payment = payment_in((enum idem_payment_state)at);
        int64_t left_minor = idem_payment_capturable(&payment);
        bool has_some = at == IDEM_PAYMENT_AUTHORIZED || at == IDEM_PAYMENT_PARTIALLY_CAPTURED;
        struct idem_payment before = payment;
        assert_int_equal(idem_payment_expired(&payment), has_some);
        assert_int_equal(idem_payment_capturable(&payment), 0);
        assert_int_equal(payment.released_minor, before.released_minor + left_minor);
        assert_int_equal(payment.state, at == IDEM_PAYMENT_AUTHORIZED ? IDEM_PAYMENT_EXPIRED
                                        : has_some                    ? IDEM_PAYMENT_CAPTURED
                                                                      : before.state);
        assert_false(idem_payment_expired(&payment)); /* Once. */
    }
}

static void what_a_capture_holds_does_not_expire(void **state)
{
    (void)state;
    struct idem_payment payment = payment_in(IDEM_PAYMENT_AUTHORIZED);
    assert_int_equal(idem_payment_reserve_capture(&payment, 4000, IDEM_PARTIAL_MANY),
                     IDEM_REFUSAL_NONE);
    assert_true(idem_payment_expired(&payment));
    assert_int_equal(payment.state, IDEM_PAYMENT_AUTHORIZED);
    assert_int_equal(payment.released_minor, AMOUNT - 4000);
    idem_payment_captured(&payment, 4000, IDEM_PARTIAL_MANY);
    assert_int_equal(payment.state, IDEM_PAYMENT_CAPTURED);
}

static void what_expires_while_it_is_cancelled_ends_as_the_cancel_says(void **state)
{
    (void)state;
    struct idem_payment payment = payment_in(IDEM_PAYMENT_AUTHORIZED);
    assert_int_equal(idem_payment_reserve_cancel(&payment, IDEM_PARTIAL_MANY), IDEM_REFUSAL_NONE);
    assert_true(idem_payment_expired(&payment));
    struct idem_payment canceled = payment;
    idem_payment_canceled(&canceled);
    assert_int_equal(canceled.state, IDEM_PAYMENT_CANCELED);
    assert_int_equal(canceled.released_minor, AMOUNT);
    idem_payment_cancel_returned(&payment);
    assert_int_equal(payment.state, IDEM_PAYMENT_EXPIRED);
}

static void only_what_was_not_given_back_can_be_taken_back(void **state)
{
    (void)state;
    struct idem_payment payment = payment_in(IDEM_PAYMENT_CAPTURED);
    refund(&payment, 1);
    struct idem_payment before = payment;
    assert_false(idem_payment_capture_reversed(&payment, AMOUNT));
    assert_memory_equal(&payment, &before, sizeof(payment));
    assert_true(idem_payment_capture_reversed(&payment, AMOUNT - 1));
    assert_int_equal(payment.captured_minor, 1);
    assert_int_equal(idem_payment_refundable(&payment), 0);
    assert_false(idem_payment_capture_reversed(&payment, 1));
}

static void a_capture_taken_back_from_what_was_given_back_is_not_captured_again(void **state)
{
    (void)state;
    struct idem_payment payment = payment_in(IDEM_PAYMENT_AUTHORIZED);
    assert_int_equal(idem_payment_reserve_capture(&payment, 4000, IDEM_PARTIAL_MANY),
                     IDEM_REFUSAL_NONE);
    idem_payment_captured(&payment, 4000, IDEM_PARTIAL_MANY);
    assert_int_equal(idem_payment_reserve_cancel(&payment, IDEM_PARTIAL_MANY), IDEM_REFUSAL_NONE);
    idem_payment_canceled(&payment);
    assert_true(idem_payment_capture_reversed(&payment, 4000));
    assert_int_equal(payment.state, IDEM_PAYMENT_EXPIRED);
    assert_int_equal(idem_payment_capturable(&payment), 0);
    assert_int_equal(idem_payment_reserve_capture(&payment, 1, IDEM_PARTIAL_MANY),
                     IDEM_REFUSAL_STATE);
}

static void a_refund_that_is_taken_back_is_to_be_refunded_again(void **state)
{
    (void)state;
    struct idem_payment payment = payment_in(IDEM_PAYMENT_REFUNDED);
    idem_payment_refund_reversed(&payment, 4000);
    assert_int_equal(payment.state, IDEM_PAYMENT_PARTIALLY_REFUNDED);
    assert_int_equal(idem_payment_refundable(&payment), 4000);
    idem_payment_refund_reversed(&payment, payment.refunded_minor);
    assert_int_equal(payment.state, IDEM_PAYMENT_CAPTURED);
}

static void a_stray_payment_is_known_by_its_number(void **state)
{
    (void)state;
    struct idem_payment payment = payment_in(IDEM_PAYMENT_CAPTURED);
    assert_false(idem_payment_is_stray(&payment));
    payment.order_no = IDEM_STR("case-00000000-0000-0000-0000-000000000000");
    assert_true(idem_payment_is_stray(&payment));
    payment.id.bytes[15] = 1;
    assert_false(idem_payment_is_stray(&payment));
}

static void a_payment_is_shown_with_what_it_has(void **state)
{
    (void)state;
    struct idem_payment payment = payment_in(IDEM_PAYMENT_PARTIALLY_CAPTURED);
    payment.order_no = IDEM_STR("o\"1");
    payment.entry = IDEM_STR("sandbox");
    payment.created_us = INT64_C(1700000000123456);
    payment.updated_us = payment.created_us;
    char memory[2048];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_payment_print(&payment, &buf);
    EXPECT_TEXT(idem_buf_str(&buf),
                "{\"id\":\"00000000-0000-0000-0000-000000000000\",\"order_no\":\"o\\\"1\","
                "\"state\":\"partially_captured\",\"amount\":\"100.00\",\"currency\":\"CNY\","
                "\"capture\":\"manual\",\"authorized\":\"100.00\",\"captured\":\"40.00\","
                "\"capture_pending\":\"0.00\",\"released\":\"0.00\",\"refunded\":\"0.00\","
                "\"refund_pending\":\"0.00\",\"provider\":\"sandbox\","
                "\"created\":\"2023-11-14T22:13:20.123456Z\","
                "\"updated\":\"2023-11-14T22:13:20.123456Z\"}\n");
    payment.reference = IDEM_STR("ref");
    payment.description = IDEM_STR("tea");
    payment.metadata = IDEM_STR("{\"a\":1}");
    payment.failure_code = IDEM_STR("late");
    idem_buf_reset(&buf);
    idem_payment_print(&payment, &buf);
    const char *more =
        "\"provider\":\"sandbox\",\"reference\":\"ref\",\"description\":\"tea\","
        "\"metadata\":{\"a\":1},\"failure_code\":\"late\"";
    memory[buf.len] = '\0';
    assert_non_null(strstr(memory, more));
}

static void a_refund_is_shown_with_what_it_has(void **state)
{
    (void)state;
    struct idem_refund refund_row = {
        .version = 1,
        .state = IDEM_REFUND_SUCCEEDED,
        .refund_no = IDEM_STR("r-1"),
        .amount_minor = 100,
        .currency = IDEM_STR("JPY"),
        .reference = IDEM_STR("ref"),
    };
    idem_refund_check(&refund_row);
    char memory[1024];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_refund_print(&refund_row, &buf);
    EXPECT_TEXT(idem_buf_str(&buf),
                "{\"id\":\"00000000-0000-0000-0000-000000000000\","
                "\"payment\":\"/v1/payments/00000000-0000-0000-0000-000000000000\","
                "\"refund_no\":\"r-1\",\"state\":\"succeeded\",\"amount\":\"100\","
                "\"currency\":\"JPY\",\"reference\":\"ref\","
                "\"created\":\"1970-01-01T00:00:00.000000Z\","
                "\"updated\":\"1970-01-01T00:00:00.000000Z\"}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_policy),
        cmocka_unit_test(the_whole_or_nothing_where_parts_are_not_taken),
        cmocka_unit_test(the_rest_is_released_with_the_one_capture),
        cmocka_unit_test(cancel_voids_what_was_not_captured),
        cmocka_unit_test(a_hundred_refunds_of_one_from_fifty_make_fifty),
        cmocka_unit_test(the_largest_amount_there_is_does_not_overflow),
        cmocka_unit_test(no_order_of_operations_breaks_the_sums),
        cmocka_unit_test(an_order_number_is_free_after_failure_and_cancel_only),
        cmocka_unit_test(an_authorization_expires_by_what_is_left_of_it),
        cmocka_unit_test(what_a_capture_holds_does_not_expire),
        cmocka_unit_test(what_expires_while_it_is_cancelled_ends_as_the_cancel_says),
        cmocka_unit_test(only_what_was_not_given_back_can_be_taken_back),
        cmocka_unit_test(a_capture_taken_back_from_what_was_given_back_is_not_captured_again),
        cmocka_unit_test(a_refund_that_is_taken_back_is_to_be_refunded_again),
        cmocka_unit_test(a_stray_payment_is_known_by_its_number),
        cmocka_unit_test(a_payment_is_shown_with_what_it_has),
        cmocka_unit_test(a_refund_is_shown_with_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
