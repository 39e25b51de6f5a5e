/*
 * What every store must do for what merchants are told.
 *
 * Goal: a message reaches every webhook that wants it and no other, in order per payment and
 * webhook, and nothing that is still to be told is swept away.
 *
 * Method: as in inbox.c.
 */
#include <string.h>

#include "conform/told.h"
#include "lib/test.h"

static struct idem_read *posts_ask(struct fixture *fixture)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_POSTS, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return read;
}

/* What is due is of these messages, in this order; a zero ends them. */
static void expect_posts(const struct idem_read *read, const uint32_t *messages)
{
    size_t count = 0;
    for (; messages[count] != 0; count++) {
        assert_true(count < read->post_count);
        assert_memory_equal(&read->posts[count].message.id,
                            &(struct idem_uid[]){ uid(messages[count]) }, 16);
    }
    assert_int_equal(read->post_count, count);
}

static void a_message_goes_to_whoever_wants_it(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_webhook_write other_type = webhook_named('b', "merchant-1");
    struct idem_webhook_write its_type = webhook_named('c', "merchant-1");
    other_type.row.types = ALL_TYPES & ~(UINT64_C(1) << IDEM_MESSAGE_PAYMENT_CAPTURED);
    its_type.row.types = UINT64_C(1) << IDEM_MESSAGE_PAYMENT_CAPTURED;
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    assert_int_equal(rows->ops->write_webhook(rows, &other_type), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_webhook(rows, &its_type), IDEM_ROWS_OK);
    (void)webhook_add(rows, 'd', "merchant-1");
    webhook_disable(rows, 'd');
    (void)webhook_add(rows, 'e', "merchant-2");
    message_add(rows, 'm', 'p');
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    assert_true(delivery_find(rows, 'm', 'a').row > 0);
    assert_int_equal(delivery_find(rows, 'm', 'b').row, 0);
    assert_int_equal(delivery_find(rows, 'm', 'd').row, 0);
    assert_int_equal(delivery_find(rows, 'm', 'e').row, 0);
    assert_int_equal(delivery_find(rows, 'n', 'a').row, 0);
    struct idem_delivery delivery = delivery_find(rows, 'm', 'c');
    assert_int_equal(delivery.version, 1);
    assert_int_equal(delivery.state, IDEM_DELIVERY_PENDING);
    assert_int_equal(delivery.webhook_row, its_type.row.row);
    assert_memory_equal(&delivery.payment_id, &(struct idem_uid[]){ uid('p') }, 16);
    assert_int_equal(delivery.attempts, 0);
    assert_int_equal(delivery.due_us, FIXTURE_START_US);
    assert_true(idem_uid_is_zero(delivery.token));
    assert_int_equal(delivery.last_status, 0);
    EXPECT_TEXT(delivery.last_error, "");
    assert_int_equal(delivery.created_us, FIXTURE_START_US);
    assert_int_equal(delivery.finished_us, 0);
    fixture_rows_commit(rows);

    struct idem_read *read = posts_ask(fixture);
    assert_int_equal(read->post_count, 2);
    const struct idem_post *post = &read->posts[1];
    assert_int_equal(post->delivery.row, delivery.row);
    assert_int_equal(post->message.row, delivery.message_row);
    assert_int_equal(post->message.type, IDEM_MESSAGE_PAYMENT_CAPTURED);
    assert_memory_equal(&post->message.payment_id, &(struct idem_uid[]){ uid('p') }, 16);
    assert_int_equal(post->message.at_us, FIXTURE_START_US);
    EXPECT_TEXT(post->message.principal, "merchant-1");
    EXPECT_TEXT(post->message.data, "{\"state\":\"captured\"}");
    assert_int_equal(post->webhook.row, delivery.webhook_row);
    assert_memory_equal(&post->webhook.id, &(struct idem_uid[]){ uid('c') }, 16);
    EXPECT_TEXT(post->webhook.url, "https://shop.example/hooks");
}

static void a_message_that_nobody_wants_is_not_there(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-2");
    message_add(rows, 'm', 'p');
    fixture_rows_commit(rows);
    fixture_rows_begin(rows); /* Its id is free still: nothing of it was written. */
    (void)webhook_add(rows, 'b', "merchant-1");
    message_add(rows, 'm', 'p');
    fixture_rows_commit(rows);
    const uint32_t due[] = { 'm', 0 };
    expect_posts(posts_ask(fixture), due);
}

static void a_message_may_be_for_one_webhook_alone(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_message message = message_named('m', 0);
    struct idem_webhook_write write = webhook_named('a', "merchant-1");
    message.type = IDEM_MESSAGE_TEST;
    write.row.types = UINT64_C(1) << IDEM_MESSAGE_CASE_OPENED; /* It is told all the same. */
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->write_webhook(rows, &write), IDEM_ROWS_OK);
    (void)webhook_add(rows, 'b', "merchant-1");
    assert_int_equal(rows->ops->add_message(rows, write.row.row, &message), IDEM_ROWS_OK);
    assert_int_equal(delivery_find(rows, 'm', 'b').row, 0);
    assert_true(delivery_find(rows, 'm', 'a').row > 0);
    message.id = uid('n');
    assert_int_equal(rows->ops->add_message(rows, 999999, &message), IDEM_ROWS_OK); /* Nobody. */
    fixture_rows_commit(rows);
    const uint32_t due[] = { 'm', 0 };
    expect_posts(posts_ask(fixture), due);
}

static void a_message_that_is_put_again_stays_as_it_is(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    message_add(rows, 'm', 'p');
    delivery_end(rows, 'm', 'a', IDEM_DELIVERY_DELIVERED);
    fixture_rows_commit(rows);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'b', "merchant-1");
    message_add(rows, 'm', 'p');
    assert_int_equal(delivery_find(rows, 'm', 'a').state, IDEM_DELIVERY_DELIVERED);
    assert_int_equal(delivery_find(rows, 'm', 'b').row, 0);
    fixture_rows_commit(rows);
    assert_int_equal(posts_ask(fixture)->post_count, 0);
}

static void a_delivery_compares_its_version(void **state)
{
    struct idem_rows *rows = fixture_rows(*state);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    message_add(rows, 'm', 'p');
    struct idem_delivery_write write = {
        .write = IDEM_WRITE_UPDATE,
        .row = delivery_find(rows, 'm', 'a'),
    };
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    write.row.version = 3;
    fixture_rows_expect_miss(rows, rows->ops->write_delivery(rows, &write));
    write.row.version = 2;
    write.row.attempts = 1;
    write.row.due_us = FIXTURE_START_US + 30;
    write.row.token = uid('t');
    write.row.last_status = 503;
    write.row.last_error = IDEM_STR("status 503");
    assert_int_equal(rows->ops->write_delivery(rows, &write), IDEM_ROWS_OK);
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    fixture_rows_expect_miss(rows, rows->ops->write_delivery(rows, &write)); /* Once. */
    struct idem_delivery found = delivery_find(rows, 'm', 'a');
    assert_int_equal(found.version, 2);
    assert_int_equal(found.attempts, 1);
    assert_int_equal(found.due_us, FIXTURE_START_US + 30);
    assert_memory_equal(&found.token, &(struct idem_uid[]){ uid('t') }, 16);
    assert_int_equal(found.last_status, 503);
    EXPECT_TEXT(found.last_error, "status 503");
    fixture_rows_commit(rows);
}

static void what_is_due_comes_earliest_first(void **state)
{
    static const int64_t due_us[] = { 3, 1, 2, 11 };
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    for (uint32_t i = 0; i < 4; i++) {
        message_add(rows, 'm' + i, 'p' + i);
        struct idem_delivery delivery = delivery_find(rows, 'm' + i, 'a');
        delivery.due_us = FIXTURE_START_US + due_us[i];
        delivery_write(rows, delivery);
    }
    fixture_rows_commit(rows);
    const uint32_t none[] = { 0 };
    const uint32_t three[] = { 'n', 'o', 'm', 0 };
    const uint32_t all[] = { 'n', 'o', 'm', 'p', 0 };
    expect_posts(posts_ask(fixture), none);
    fixture->clock.wall_base_us = FIXTURE_START_US + 10;
    expect_posts(posts_ask(fixture), three);
    fixture->clock.wall_base_us = FIXTURE_START_US + 11;
    expect_posts(posts_ask(fixture), all);
}

static void a_webhook_hears_of_a_payment_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    message_add(rows, 'm', 'p');
    message_add(rows, 'n', 'p');
    message_add(rows, 'o', 'q'); /* Another payment's. */
    message_add(rows, 'u', 0);   /* Of none: in no order. */
    message_add(rows, 'v', 0);
    fixture_rows_commit(rows);
    const uint32_t first[] = { 'm', 'o', 'u', 'v', 0 };
    expect_posts(posts_ask(fixture), first);

    fixture_rows_begin(rows); /* It is due later, and the next one waits all the same. */
    struct idem_delivery delivery = delivery_find(rows, 'm', 'a');
    delivery.attempts = IDEM_POST_ORDERED_MAX;
    delivery.due_us = FIXTURE_START_US + 100;
    delivery_write(rows, delivery);
    fixture_rows_commit(rows);
    const uint32_t others[] = { 'o', 'u', 'v', 0 };
    expect_posts(posts_ask(fixture), others);

    fixture_rows_begin(rows); /* Once it was tried often enough, it does not. */
    delivery = delivery_find(rows, 'm', 'a');
    delivery.attempts = IDEM_POST_ORDERED_MAX + 1;
    delivery_write(rows, delivery);
    fixture_rows_commit(rows);
    const uint32_t next[] = { 'n', 'o', 'u', 'v', 0 };
    expect_posts(posts_ask(fixture), next);
}

static void what_is_over_holds_up_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    message_add(rows, 'm', 'p');
    message_add(rows, 'n', 'p');
    message_add(rows, 'o', 'p');
    delivery_end(rows, 'm', 'a', IDEM_DELIVERY_DEAD);
    fixture_rows_commit(rows);
    const uint32_t second[] = { 'n', 0 };
    expect_posts(posts_ask(fixture), second);
    fixture_rows_begin(rows);
    delivery_end(rows, 'n', 'a', IDEM_DELIVERY_DELIVERED);
    fixture_rows_commit(rows);
    const uint32_t third[] = { 'o', 0 };
    expect_posts(posts_ask(fixture), third);
}

static void what_is_told_again_goes_before_what_came_after_it(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    message_add(rows, 'm', 'p');
    message_add(rows, 'n', 'p');
    delivery_end(rows, 'm', 'a', IDEM_DELIVERY_DEAD);
    message_add(rows, 'o', 'p');
    message_add(rows, 'q', 'q');
    fixture_rows_commit(rows);
    const uint32_t before[] = { 'n', 'q', 0 };
    expect_posts(posts_ask(fixture), before);

    fixture_rows_begin(rows);
    struct idem_delivery replayed = delivery_find(rows, 'm', 'a');
    replayed.state = IDEM_DELIVERY_PENDING;
    replayed.due_us = FIXTURE_START_US;
    replayed.finished_us = 0;
    delivery_write(rows, replayed);
    message_add(rows, 'r', 'p');
    fixture_rows_commit(rows);
    const uint32_t again[] = { 'm', 'q', 0 };
    expect_posts(posts_ask(fixture), again);

    fixture_rows_begin(rows);
    delivery_end(rows, 'm', 'a', IDEM_DELIVERY_DELIVERED);
    delivery_end(rows, 'n', 'a', IDEM_DELIVERY_DELIVERED);
    fixture_rows_commit(rows);
    const uint32_t after[] = { 'o', 'q', 0 };
    expect_posts(posts_ask(fixture), after);
}

static void one_webhook_does_not_wait_for_another(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    int64_t row = webhook_add(rows, 'a', "merchant-1");
    (void)webhook_add(rows, 'b', "merchant-1");
    message_add(rows, 'm', 'p');
    message_add(rows, 'n', 'p');
    delivery_end(rows, 'm', 'b', IDEM_DELIVERY_DELIVERED);
    fixture_rows_commit(rows);
    const uint32_t both[] = { 'm', 'n', 0 };
    struct idem_read *read = posts_ask(fixture);
    expect_posts(read, both);
    assert_int_equal(read->posts[0].webhook.row, row);
    assert_true(read->posts[1].webhook.row != row);

    read = fixture_ask(fixture, IDEM_READ_POSTS, "");
    read->skip[0] = 999999;
    read->skip[1] = row;
    read->skip_count = 2;
    fixture_read(fixture);
    const uint32_t other[] = { 'n', 0 };
    expect_posts(read, other);
}

static void what_is_due_comes_in_parts(void **state)
{
    enum {
        COUNT = IDEM_READ_POSTS_MAX + 3
    };
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    for (uint32_t i = 0; i < COUNT; i++) {
        message_add(rows, 1000 + i, 2000 + i);
    }
    fixture_rows_commit(rows);
    struct idem_read *read = posts_ask(fixture);
    assert_int_equal(read->post_count, IDEM_READ_POSTS_MAX);
    assert_true(read->more);

    fixture_rows_begin(rows);
    for (uint32_t i = 0; i < IDEM_READ_POSTS_MAX; i++) {
        delivery_end(rows, 1000 + i, 'a', IDEM_DELIVERY_DELIVERED);
    }
    fixture_rows_commit(rows);
    read = posts_ask(fixture);
    assert_int_equal(read->post_count, 3);
    assert_false(read->more);
}

static void what_waits_for_a_webhook_that_went_is_dead(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    int64_t row = webhook_add(rows, 'a', "merchant-1");
    (void)webhook_add(rows, 'b', "merchant-1");
    message_add(rows, 'm', 'p');
    message_add(rows, 'n', 'p');
    delivery_end(rows, 'm', 'a', IDEM_DELIVERY_DELIVERED);
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->drop_deliveries(rows, row, FIXTURE_START_US + 7), IDEM_ROWS_OK);
    struct idem_delivery dropped = delivery_find(rows, 'n', 'a');
    assert_int_equal(dropped.state, IDEM_DELIVERY_DEAD);
    assert_int_equal(dropped.due_us, 0);
    assert_int_equal(dropped.finished_us, FIXTURE_START_US + 7);
    assert_int_equal(dropped.version, 2); /* Whoever is at it finds that it moved. */
    assert_int_equal(delivery_find(rows, 'm', 'a').state, IDEM_DELIVERY_DELIVERED);
    assert_int_equal(delivery_find(rows, 'm', 'b').state, IDEM_DELIVERY_PENDING);
    fixture_rows_commit(rows);
}

/* The handles of a page of DELIVERIES, one after the other, until there are no more. */
static size_t deliveries_walk(struct fixture *fixture,
                              const char *principal,
                              struct idem_uid webhook_id,
                              enum idem_delivery_state wanted)
{
    size_t count = 0;
    int64_t after_row = 0;
    bool more = true;
    while (more) {
        struct idem_read *read = fixture_ask(fixture, IDEM_READ_DELIVERIES, principal);
        read->id = webhook_id;
        read->delivery_state = wanted;
        read->after_row = after_row;
        fixture_read(fixture);
        assert_int_equal(read->answer, IDEM_STORE_DURABLE);
        for (size_t i = 0; i < read->post_count; i++) {
            const struct idem_post *post = &read->posts[i];
            assert_true(after_row == 0 || post->delivery.row < after_row);
            assert_true(wanted == IDEM_DELIVERY_NONE || post->delivery.state == wanted);
            assert_int_equal(post->delivery.message_row, post->message.row);
            assert_int_equal(post->delivery.webhook_row, post->webhook.row);
            after_row = post->delivery.row;
        }
        more = read->more;
        assert_true(!more || read->post_count > 0);
        count += read->post_count;
    }
    return count;
}

static void deliveries_come_in_pages_newest_first(void **state)
{
    enum {
        COUNT = 2 * IDEM_READ_POSTS_MAX + 5,
        COUNT_3 = 3 * COUNT
    };
    static const struct {
        const char *principal;
        uint32_t webhook;
        enum idem_delivery_state state;
        size_t count;
    } cases[] = {
        { "", 0, IDEM_DELIVERY_NONE, COUNT_3 + 1 },
        { "", 0, IDEM_DELIVERY_DEAD, COUNT },
        { "", 0, IDEM_DELIVERY_DELIVERED, 2 },
        { "", 0, IDEM_DELIVERY_PENDING, 2 * COUNT - 1 },
        { "", 'a', IDEM_DELIVERY_NONE, COUNT },
        { "", 'a', IDEM_DELIVERY_DEAD, COUNT },
        { "", 'a', IDEM_DELIVERY_PENDING, 0 },
        { "", 'b', IDEM_DELIVERY_DELIVERED, 2 },
        { "", 'd', IDEM_DELIVERY_NONE, 1 },
        { "", 'z', IDEM_DELIVERY_NONE, 0 },
        { "merchant-1", 0, IDEM_DELIVERY_NONE, COUNT_3 },
        { "merchant-1", 0, IDEM_DELIVERY_DEAD, COUNT },
        { "merchant-1", 'b', IDEM_DELIVERY_PENDING, COUNT - 2 },
        { "merchant-2", 0, IDEM_DELIVERY_NONE, 1 },
        { "merchant-2", 'a', IDEM_DELIVERY_NONE, 0 },
        { "merchant-3", 0, IDEM_DELIVERY_NONE, 0 },
    };
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_message message = message_named('m', 0);
    message.principal = IDEM_STR("merchant-2");
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    (void)webhook_add(rows, 'b', "merchant-1");
    (void)webhook_add(rows, 'c', "merchant-1");
    (void)webhook_add(rows, 'd', "merchant-2");
    for (uint32_t i = 0; i < COUNT; i++) {
        message_add(rows, 1000 + i, 'p');
        delivery_end(rows, 1000 + i, 'a', IDEM_DELIVERY_DEAD);
    }
    delivery_end(rows, 1000, 'b', IDEM_DELIVERY_DELIVERED);
    delivery_end(rows, 1009, 'b', IDEM_DELIVERY_DELIVERED);
    assert_int_equal(rows->ops->add_message(rows, 0, &message), IDEM_ROWS_OK);
    fixture_rows_commit(rows);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        struct idem_uid id = { .bytes = { 0 } };
        size_t count =
            deliveries_walk(fixture, cases[i].principal,
                            cases[i].webhook == 0 ? id : uid(cases[i].webhook), cases[i].state);
        assert_int_equal(count, cases[i].count);
    }
}

static void the_longest_text_fits_a_page_or_comes_with_the_next(void **state)
{
    enum {
        COUNT = IDEM_READ_POSTS_MAX + 1
    };
    static char text[IDEM_MESSAGE_DATA_MAX];
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_webhook_write webhook = webhook_named('a', "");
    memset(text, 't', sizeof(text));
    webhook.row.principal = (struct idem_str){ .data = text, .len = IDEM_PRINCIPAL_MAX };
    webhook.row.url = (struct idem_str){ .data = text, .len = IDEM_WEBHOOK_URL_MAX };
    webhook.row.created_by = (struct idem_str){ .data = text, .len = IDEM_REASON_MAX };
    webhook.row.disabled_by = webhook.row.created_by;
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->write_webhook(rows, &webhook), IDEM_ROWS_OK);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct idem_message message = message_named(1000 + i, 0);
        message.principal = webhook.row.principal;
        message.data = (struct idem_str){ .data = text, .len = sizeof(text) };
        assert_int_equal(rows->ops->add_message(rows, 0, &message), IDEM_ROWS_OK);
        struct idem_delivery delivery = delivery_find(rows, 1000 + i, 'a');
        delivery.last_error = (struct idem_str){ .data = text, .len = IDEM_DELIVERY_ERROR_MAX };
        delivery_write(rows, delivery);
    }
    fixture_rows_commit(rows);

    struct idem_read *read = posts_ask(fixture);
    assert_true(read->post_count > 0);
    assert_true(read->post_count < IDEM_READ_POSTS_MAX);
    assert_true(read->more);
    assert_int_equal(read->posts[0].message.data.len, sizeof(text));
    assert_memory_equal(read->posts[0].message.data.data, text, sizeof(text));
    assert_int_equal(read->posts[0].webhook.url.len, IDEM_WEBHOOK_URL_MAX);
    assert_int_equal(deliveries_walk(fixture, "", uid('a'), IDEM_DELIVERY_NONE), COUNT);
}

static void nothing_that_is_still_to_be_told_is_swept_away(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    (void)webhook_add(rows, 'b', "merchant-1");
    for (uint32_t i = 'm'; i <= 'o'; i++) {
        message_add(rows, i, 'p');
        delivery_end(rows, i, 'a', IDEM_DELIVERY_DELIVERED);
    }
    delivery_end(rows, 'n', 'b', IDEM_DELIVERY_DEAD);
    int64_t newest_row = delivery_find(rows, 'o', 'b').message_row;
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    assert_false(sweep(rows, FIXTURE_START_US));
    assert_true(delivery_find(rows, 'n', 'a').row > 0); /* Not before it. */
    assert_false(sweep(rows, FIXTURE_START_US + 1));
    assert_int_equal(delivery_find(rows, 'n', 'a').row, 0);
    assert_int_equal(delivery_find(rows, 'n', 'b').row, 0);
    assert_true(delivery_find(rows, 'm', 'a').row > 0);
    assert_true(delivery_find(rows, 'm', 'b').row > 0);
    delivery_end(rows, 'm', 'b', IDEM_DELIVERY_DEAD);
    delivery_end(rows, 'o', 'b', IDEM_DELIVERY_DEAD);
    assert_false(sweep(rows, FIXTURE_START_US + 1));
    assert_int_equal(delivery_find(rows, 'o', 'a').row, 0);
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    message_add(rows, 'z', 'p'); /* Higher than any before, though all of those are gone. */
    assert_true(delivery_find(rows, 'z', 'a').message_row > newest_row);
    fixture_rows_commit(rows);
    const uint32_t due[] = { 'z', 'z', 0 };
    expect_posts(posts_ask(fixture), due);
}

static void what_is_old_is_swept_in_parts(void **state)
{
    enum {
        COUNT = IDEM_ROWS_SWEEP_MAX + 7
    };
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    for (uint32_t i = 0; i < COUNT; i++) {
        message_add(rows, 1000 + i, 'p');
        delivery_end(rows, 1000 + i, 'a', IDEM_DELIVERY_DELIVERED);
    }
    fixture_rows_commit(rows);
    struct idem_uid all = { .bytes = { 0 } };
    fixture_rows_begin(rows);
    assert_true(sweep(rows, FIXTURE_START_US + 1));
    fixture_rows_commit(rows);
    assert_int_equal(deliveries_walk(fixture, "", all, IDEM_DELIVERY_NONE), 7);
    fixture_rows_begin(rows);
    assert_false(sweep(rows, FIXTURE_START_US + 1));
    fixture_rows_commit(rows);
    assert_int_equal(deliveries_walk(fixture, "", all, IDEM_DELIVERY_NONE), 0);
}

/* Sweeps until there is no more; how many times. */
static int sweep_all(struct idem_rows *rows)
{
    int count = 0;
    bool more = true;
    while (more) {
        fixture_rows_begin(rows);
        more = sweep(rows, FIXTURE_START_US);
        fixture_rows_commit(rows);
        count += 1;
        assert_true(count < 100);
    }
    return count;
}

/* More than a transaction should wait for. */
static void what_a_webhook_that_went_leaves_behind_is_given_up_in_parts(void **state)
{
    enum {
        COUNT = 4096 + 10
    };
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_uid all = { .bytes = { 0 } };
    const uint32_t due[] = { 'z', 0 };
    fixture_rows_begin(rows);
    int64_t row = webhook_add(rows, 'a', "merchant-1");
    for (uint32_t i = 0; i < COUNT; i++) {
        message_add(rows, 1000 + i, 0);
    }
    (void)webhook_add(rows, 'b', "merchant-2");
    struct idem_message other = message_named('z', 'q');
    other.principal = IDEM_STR("merchant-2");
    assert_int_equal(rows->ops->add_message(rows, 0, &other), IDEM_ROWS_OK);
    webhook_disable(rows, 'a');
    assert_int_equal(rows->ops->drop_deliveries(rows, row, FIXTURE_START_US + 7), IDEM_ROWS_OK);
    fixture_rows_commit(rows);
    expect_posts(posts_ask(fixture), due);
    size_t left = deliveries_walk(fixture, "merchant-1", all, IDEM_DELIVERY_PENDING);
    assert_true(left < COUNT && (left > 0 || fixture->kind == FIXTURE_MEMORY));

    assert_true(sweep_all(rows) <= 2 + COUNT / IDEM_ROWS_SWEEP_MAX);
    assert_int_equal(deliveries_walk(fixture, "merchant-1", all, IDEM_DELIVERY_DEAD), COUNT);
    assert_int_equal(deliveries_walk(fixture, "merchant-1", all, IDEM_DELIVERY_PENDING), 0);
    expect_posts(posts_ask(fixture), due);
}

/* Nothing of it waits for ever, for something that was given up. */
static void what_is_not_given_up_yet_goes_on_when_its_webhook_is_back(void **state)
{
    enum {
        COUNT = 4096 + 20
    };
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_uid all = { .bytes = { 0 } };
    fixture_rows_begin(rows);
    int64_t row = webhook_add(rows, 'a', "merchant-1");
    for (uint32_t i = 0; i < COUNT; i++) {
        message_add(rows, 1000 + i, 9000 + i / 3); /* Three of each payment. */
    }
    assert_int_equal(rows->ops->drop_deliveries(rows, row, FIXTURE_START_US + 7), IDEM_ROWS_OK);
    fixture_rows_commit(rows);
    size_t left = deliveries_walk(fixture, "merchant-1", all, IDEM_DELIVERY_PENDING);
    assert_true(left > 0 || fixture->kind == FIXTURE_MEMORY);
    struct idem_read *read = posts_ask(fixture);
    while (read->post_count > 0) {
        fixture_rows_begin(rows);
        for (size_t i = 0; i < read->post_count; i++) {
            struct idem_delivery delivery = read->posts[i].delivery;
            delivery.state = IDEM_DELIVERY_DELIVERED;
            delivery.due_us = 0;
            delivery_write(rows, delivery);
        }
        fixture_rows_commit(rows);
        read = posts_ask(fixture);
    }
    assert_int_equal(deliveries_walk(fixture, "merchant-1", all, IDEM_DELIVERY_DELIVERED), left);
    assert_int_equal(deliveries_walk(fixture, "merchant-1", all, IDEM_DELIVERY_PENDING), 0);
}

static void a_summary_counts_deliveries(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_SUMMARY, "");
    fixture_read(fixture);
    assert_int_equal(read->summary.deliveries_pending, 0);
    assert_int_equal(read->summary.deliveries_dead, 0);
    assert_int_equal(read->summary.oldest_delivery_us, 0);

    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    for (uint32_t i = 0; i < 5; i++) {
        struct idem_message message = message_named('m' + i, 'p');
        message.at_us += i;
        assert_int_equal(rows->ops->add_message(rows, 0, &message), IDEM_ROWS_OK);
    }
    delivery_end(rows, 'm', 'a', IDEM_DELIVERY_DELIVERED);
    delivery_end(rows, 'n', 'a', IDEM_DELIVERY_DEAD);
    fixture_rows_commit(rows);
    read = fixture_ask(fixture, IDEM_READ_SUMMARY, "");
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_int_equal(read->summary.deliveries_pending, 3);
    assert_int_equal(read->summary.deliveries_dead, 1);
    assert_int_equal(read->summary.oldest_delivery_us, FIXTURE_START_US + 2);
}

static void a_rollback_takes_all_of_it_back(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_inbox_write event = {
        .write = IDEM_WRITE_INSERT,
        .entry = IDEM_STR("sandbox"),
        .event_id = IDEM_STR("evt_1"),
        .at_us = FIXTURE_START_US,
    };
    fixture_rows_begin(rows);
    (void)webhook_add(rows, 'a', "merchant-1");
    message_add(rows, 'm', 'p');
    fixture_rows_commit(rows);

    fixture_rows_begin(rows);
    delivery_end(rows, 'm', 'a', IDEM_DELIVERY_DEAD);
    (void)sweep(rows, FIXTURE_START_US + 1);
    (void)webhook_add(rows, 'b', "merchant-1");
    message_add(rows, 'n', 'p');
    assert_int_equal(rows->ops->write_inbox(rows, &event), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->rollback(rows), IDEM_ROWS_OK);

    fixture_rows_begin(rows);
    assert_false(event_is_seen(rows, event.entry, event.event_id));
    assert_int_equal(webhook_find(rows, 'b').row, 0);
    EXPECT_TEXT(webhook_find(rows, 'a').url, "https://shop.example/hooks");
    fixture_rows_commit(rows);
    const uint32_t due[] = { 'm', 0 };
    struct idem_read *read = posts_ask(fixture);
    expect_posts(read, due);
    EXPECT_TEXT(read->posts[0].message.data, "{\"state\":\"captured\"}");
}

#define CONFORM(function, setup) cmocka_unit_test_setup_teardown(function, setup, suite_teardown)
#define SUITE(setup)                                                                     \
    {                                                                                    \
        CONFORM(a_message_goes_to_whoever_wants_it, setup),                              \
            CONFORM(a_message_that_nobody_wants_is_not_there, setup),                    \
            CONFORM(a_message_may_be_for_one_webhook_alone, setup),                      \
            CONFORM(a_message_that_is_put_again_stays_as_it_is, setup),                  \
            CONFORM(a_delivery_compares_its_version, setup),                             \
            CONFORM(what_is_due_comes_earliest_first, setup),                            \
            CONFORM(a_webhook_hears_of_a_payment_in_order, setup),                       \
            CONFORM(what_is_over_holds_up_nothing, setup),                               \
            CONFORM(what_is_told_again_goes_before_what_came_after_it, setup),           \
            CONFORM(one_webhook_does_not_wait_for_another, setup),                       \
            CONFORM(what_is_due_comes_in_parts, setup),                                  \
            CONFORM(what_waits_for_a_webhook_that_went_is_dead, setup),                  \
            CONFORM(deliveries_come_in_pages_newest_first, setup),                       \
            CONFORM(the_longest_text_fits_a_page_or_comes_with_the_next, setup),         \
            CONFORM(nothing_that_is_still_to_be_told_is_swept_away, setup),              \
            CONFORM(what_is_old_is_swept_in_parts, setup),                               \
            CONFORM(what_a_webhook_that_went_leaves_behind_is_given_up_in_parts, setup), \
            CONFORM(what_is_not_given_up_yet_goes_on_when_its_webhook_is_back, setup),   \
            CONFORM(a_summary_counts_deliveries, setup),                                 \
            CONFORM(a_rollback_takes_all_of_it_back, setup),                             \
    }

/* Without an argument the stores that need no server; with "postgres" that one. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "postgres") == 0) {
        const struct CMUnitTest postgres[] = SUITE(setup_postgres);
        return cmocka_run_group_tests_name("outbox: postgres", postgres, NULL, NULL);
    }
    const struct CMUnitTest memory[] = SUITE(setup_memory);
    const struct CMUnitTest sqlite[] = SUITE(setup_sqlite);
    int failed = cmocka_run_group_tests_name("outbox: memory", memory, NULL, NULL);
    failed += cmocka_run_group_tests_name("outbox: sqlite", sqlite, NULL, NULL);
    return failed == 0 ? 0 : 1;
}
