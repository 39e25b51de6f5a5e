/*
 * Listings of the sandbox, and the traces that its ledger shows.
 *
 * Goal: a listing holds everything that succeeded in its time, once and in order, whatever happens
 * between two pages, and nothing else; its faults come as often as docs/sandbox.md says.
 *
 * Method: a sandbox for every test, raw sockets, pages read to their end.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/bug.h"
#include "lib/test.h"
#include "peer.h"

#define BEARER "Bearer anything"
#define ALWAYS "from=1970-01-01T00:00:00Z&to=9999-12-31T00:00:00Z"
#define DONE   "200 succeeded 1.00 CNY"

static int peer_setup(void **state)
{
    struct peer *peer = calloc(1, sizeof(*peer));

    assert_non_null(peer);
    peer_start(peer, NULL, NULL);
    *state = peer;
    return 0;
}

static int peer_teardown(void **state)
{
    peer_stop(*state);
    free(*state);
    return 0;
}

static void send_rest(const struct peer *peer,
                      const char *profile,
                      const char *id,
                      const char *rest,
                      char ret_text[PEER_DESCRIBE_LEN])
{
    char path[64];
    char body[512];

    (void)snprintf(path, sizeof(path), "/%s/effects", profile);
    (void)snprintf(body, sizeof(body),
                   "{\"id\":\"%s\",\"amount\":\"1.00\",\"currency\":\"CNY\",\"order_no\":\"o-%s\","
                   "%s}",
                   id, id, rest);
    peer_ask(peer,
             &(struct peer_request){ .method = "POST",
                                     .path = path,
                                     .key = id,
                                     .authorization = BEARER,
                                     .trace = "00-aa-bb-01",
                                     .body = body },
             id, ret_text);
}

static void expect_sent(const struct peer *peer,
                        const char *profile,
                        const char *id,
                        const char *token,
                        const char *expected)
{
    char rest[128];
    char text[PEER_DESCRIBE_LEN];

    (void)snprintf(rest, sizeof(rest), "\"kind\":\"charge\",\"method\":\"%s\"", token);
    send_rest(peer, profile, id, rest, text);
    assert_string_equal(text, expected);
}

static json_t *page_get(const struct peer *peer, const char *profile, const char *query)
{
    char path[1024];

    (void)snprintf(path, sizeof(path), "/%s/effects?%s", profile, query);
    return peer_get(peer, path);
}

static void expect_listing(const struct peer *peer,
                           const char *profile,
                           const char *query,
                           const char *expected)
{
    char path[1024];
    char text[PEER_DESCRIBE_LEN];

    (void)snprintf(path, sizeof(path), "/%s/effects?%s", profile, query);
    peer_ask(peer, &(struct peer_request){ .method = "GET", .path = path }, NULL, text);
    if (strcmp(text, expected) != 0) {
        print_error("%s\n", path);
    }
    assert_string_equal(text, expected);
}

static const char *member_of(const json_t *page, size_t index, const char *name)
{
    const json_t *effect = json_array_get(json_object_get(page, "effects"), index);
    return json_string_value(json_object_get(effect, name));
}

static size_t size_of(const json_t *page)
{
    return json_array_size(json_object_get(page, "effects"));
}

/* The ids of all pages, each followed by a space; `limit` effects are asked for at a time. */
static void ids_read(
    const struct peer *peer, const char *profile, const char *range, int limit, char ret_ids[4096])
{
    struct idem_buf ids;
    char cursor[128] = "";
    char query[512];
    bool more = true;

    idem_buf_init(&ids, ret_ids, 4095);
    while (more) {
        (void)snprintf(query, sizeof(query), "%s&limit=%d%s", range, limit, cursor);
        json_t *page = page_get(peer, profile, query);
        assert_true(size_of(page) <= 16 && size_of(page) <= (size_t)limit);
        for (size_t i = 0; i < size_of(page); i++) {
            idem_buf_printf(&ids, "%s ", member_of(page, i, "id"));
        }
        const char *next = json_string_value(json_object_get(page, "next"));
        more = next != NULL;
        assert_true(more || json_is_null(json_object_get(page, "next")));
        assert_true(!more || size_of(page) > 0);
        (void)snprintf(cursor, sizeof(cursor), "&cursor=%s", more ? next : "");
        json_decref(page);
    }
    assert_false(ids.full);
    ret_ids[ids.len] = '\0';
}

static void expect_ids(const struct peer *peer,
                       const char *profile,
                       const char *range,
                       const char *expected)
{
    char ids[4096];

    ids_read(peer, profile, range, 64, ids);
    assert_string_equal(ids, expected);
}

static void every_effect_is_on_one_page_in_order(void **state)
{
    const struct peer *peer = *state;
    char expected[4096] = "";
    char id[16];
    struct idem_buf buf;

    idem_buf_init(&buf, expected, sizeof(expected) - 1);
    for (int i = 0; i < 40; i++) {
        (void)snprintf(id, sizeof(id), "c%d", i);
        expect_sent(peer, "dedup", id, "tok_ok", DONE);
        expect_sent(peer, "plain", "other", "tok_ok", DONE);
        idem_buf_printf(&buf, "%s ", id);
    }
    static const int limits[] = { 1, 3, 16, 17, 39, 40, 41, 1000000 };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(limits); i++) {
        char ids[4096];
        ids_read(peer, "dedup", ALWAYS, limits[i], ids);
        assert_string_equal(ids, expected);
    }
    expect_ids(peer, "plain", ALWAYS, "other "); /* Once, though it executed often. */
}

static void a_page_can_be_asked_again_and_loses_nothing_that_comes_meanwhile(void **state)
{
    const struct peer *peer = *state;

    expect_sent(peer, "dedup", "a", "tok_ok", DONE);
    expect_sent(peer, "dedup", "b", "tok_ok", DONE);
    expect_sent(peer, "dedup", "c", "tok_ok", DONE);
    json_t *first = page_get(peer, "dedup", ALWAYS "&limit=2");
    char query[512];
    (void)snprintf(query, sizeof(query), ALWAYS "&limit=2&cursor=%s",
                   json_string_value(json_object_get(first, "next")));
    expect_sent(peer, "dedup", "d", "tok_ok", DONE);

    json_t *again = page_get(peer, "dedup", ALWAYS "&limit=2");
    assert_true(json_equal(first, again));
    for (int i = 0; i < 2; i++) {
        json_t *second = page_get(peer, "dedup", query);
        assert_int_equal(size_of(second), 2);
        assert_string_equal(member_of(second, 0, "id"), "c");
        assert_string_equal(member_of(second, 1, "id"), "d");
        json_decref(second);
    }
    json_decref(first);
    json_decref(again);
}

static void an_effect_is_listed_with_all_the_protocol_asks(void **state)
{
    const struct peer *peer = *state;
    char text[PEER_DESCRIBE_LEN];

    expect_sent(peer, "dedup", "pay", "tok_ok", DONE);
    send_rest(peer, "dedup", "ref", "\"kind\":\"refund\",\"payment_id\":\"pay\"", text);
    assert_string_equal(text, DONE);
    json_t *page = page_get(peer, "dedup", ALWAYS "&limit=9");
    assert_int_equal(size_of(page), 2);
    assert_string_equal(member_of(page, 0, "kind"), "charge");
    assert_string_equal(member_of(page, 0, "amount"), "1.00");
    assert_string_equal(member_of(page, 0, "currency"), "CNY");
    assert_string_equal(member_of(page, 0, "order_no"), "o-pay");
    assert_string_equal(member_of(page, 0, "reference"), "sandbox-000000001");
    assert_null(member_of(page, 0, "payment_id"));
    assert_string_equal(member_of(page, 1, "kind"), "refund");
    assert_string_equal(member_of(page, 1, "payment_id"), "pay");
    assert_true(strcmp(member_of(page, 0, "happened"), member_of(page, 1, "happened")) <= 0);
    json_decref(page);
}

static void only_what_succeeded_and_can_be_seen_is_listed(void **state)
{
    const struct peer *peer = *state;

    expect_sent(peer, "dedup", "declined", "tok_decline", "200 declined 1.00 CNY declined");
    expect_sent(peer, "dedup", "lost", "tok_lose_request", "silence");
    expect_sent(peer, "dedup", "hidden", "tok_not_found_3600", "silence");
    expect_sent(peer, "dedup", "refused", "tok_nonsense", "400 invalid method_unknown");
    expect_sent(peer, "dedup", "unheard", "tok_lose_answer", "silence");
    expect_ids(peer, "dedup", ALWAYS, "unheard ");
    expect_sent(peer, "lagging", "young", "tok_ok", DONE);
    expect_ids(peer, "lagging", ALWAYS, "");
    expect_sent(peer, "blind", "blind", "tok_ok", DONE);
    expect_listing(peer, "blind", ALWAYS "&limit=9", "405 no-id");
}

static void nothing_is_listed_while_something_begun_before_its_end_is_undecided(void **state)
{
    const struct peer *peer = *state;
    char query[256];

    expect_sent(peer, "dedup", "a", "tok_ok", DONE);
    json_t *page = page_get(peer, "dedup", ALWAYS "&limit=9");
    const char *before = member_of(page, 0, "happened");
    expect_sent(peer, "dedup", "b", "tok_processing_1_ok", "200 processing 1.00 CNY");
    expect_sent(peer, "dedup", "c", "tok_processing_1_fail", "200 processing 1.00 CNY");
    expect_sent(peer, "closing", "d", "tok_processing_3600_ok", "200 processing 1.00 CNY");
    expect_listing(peer, "dedup", ALWAYS "&limit=9", "503 no-id");
    expect_listing(peer, "closing", ALWAYS "&limit=9", "503 no-id");
    (void)snprintf(query, sizeof(query), "from=%s&to=%s&limit=9", before, before);
    expect_listing(peer, "dedup", query, "200 no-id"); /* Begun later: no matter. */
    json_decref(page);

    expect_sent(peer, "plain", "wait", "tok_late_1", DONE); /* Due after both. */
    expect_ids(peer, "dedup", ALWAYS, "a b ");
}

static void a_listing_begins_at_from_and_ends_before_to(void **state)
{
    const struct peer *peer = *state;
    char range[256];

    expect_sent(peer, "dedup", "a", "tok_ok", DONE);
    expect_sent(peer, "dedup", "b", "tok_ok", DONE);
    expect_sent(peer, "dedup", "c", "tok_ok", DONE);
    json_t *page = page_get(peer, "dedup", ALWAYS "&limit=9");
    const char *second = member_of(page, 1, "happened");
    (void)snprintf(range, sizeof(range), "from=%s&to=9999-01-01T00:00:00Z", second);
    expect_ids(peer, "dedup", range, "b c ");
    (void)snprintf(range, sizeof(range), "to=%s&from=1970-01-01T00:00:00%%2B00:00", second);
    expect_ids(peer, "dedup", range, "a ");
    (void)snprintf(range, sizeof(range), "to=%s&from=%s", second, second);
    expect_ids(peer, "dedup", range, "");
    json_decref(page);
}

static void what_is_not_understood_is_refused(void **state)
{
    static const char *const queries[] = {
        "",
        "limit=9",
        "from=1970-01-01T00:00:00Z&limit=9",
        "from=2030-01-01T00:00:00Z&to=2029-01-01T00:00:00Z&limit=9",
        "from=yesterday&to=9999-01-01T00:00:00Z&limit=9",
        ALWAYS,
        ALWAYS "&limit=0",
        ALWAYS "&limit=-1",
        ALWAYS "&limit=",
        ALWAYS "&limit=9&cursor=7",
        ALWAYS "&limit=9&cursor=a/b",
        ALWAYS "&limit=9&cursor=%2",
        ALWAYS "&limit=9&order_no=1",
    };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(queries); i++) {
        expect_listing(*state, "dedup", queries[i], "400 no-id");
    }
}

static void a_listing_suffers_as_often_as_was_asked_for(void **state)
{
    const struct peer *peer = *state;
    char text[PEER_DESCRIBE_LEN];

    expect_sent(peer, "dedup", "a", "tok_list_error_2", DONE);
    expect_listing(peer, "dedup", ALWAYS "&limit=9", "500 no-id");
    expect_listing(peer, "dedup", ALWAYS "&limit=9", "500 no-id");
    expect_ids(peer, "dedup", ALWAYS, "a ");
    json_t *page = peer_get(peer, "/ledger?id=a");
    const json_t *effect = json_array_get(json_object_get(page, "effects"), 0);
    assert_int_equal(json_integer_value(json_object_get(effect, "listings")), 3);
    json_decref(page);

    expect_sent(peer, "dedup", "b", "tok_list_slow_1+refund_list_error_1", DONE);
    int64_t before_us = idem_clock_mono_us(&((struct peer *)*state)->clock);
    expect_ids(peer, "dedup", ALWAYS, "a b ");
    int64_t after_us = idem_clock_mono_us(&((struct peer *)*state)->clock);
    assert_true(after_us - before_us >= IDEM_US_PER_SECOND);
    send_rest(peer, "dedup", "r", "\"kind\":\"refund\",\"payment_id\":\"b\"", text);
    expect_listing(peer, "dedup", ALWAYS "&limit=9", "500 no-id");
    expect_ids(peer, "dedup", ALWAYS, "a b r ");
}

static void a_caller_that_leaves_a_slow_listing_stops_nothing(void **state)
{
    const struct peer *peer = *state;

    expect_sent(peer, "dedup", "a", "tok_list_slow_1", DONE);
    int fd = peer_dial(peer);
    peer_send(
        fd, &(struct peer_request){ .method = "GET", .path = "/dedup/effects?" ALWAYS "&limit=9" });
    assert_int_equal(shutdown(fd, SHUT_RDWR), 0);
    assert_int_equal(close(fd), 0);
    fd = peer_dial(peer);
    peer_send(
        fd, &(struct peer_request){ .method = "GET", .path = "/dedup/effects?" ALWAYS "&limit=9" });
    assert_int_equal(close(fd), 0);
    expect_ids(peer, "dedup", ALWAYS, "a "); /* Once slow: the page is there at once. */
}

static void a_provider_that_lies_lies_in_its_listing_too(void **state)
{
    const struct peer *peer = *state;

    expect_sent(peer, "dedup", "a", "tok_wrong_amount", "200 succeeded 2.00 CNY");
    expect_sent(peer, "dedup", "b", "tok_wrong_id", DONE " other-id");
    json_t *page = page_get(peer, "dedup", ALWAYS "&limit=9");
    assert_string_equal(member_of(page, 0, "amount"), "2.00");
    assert_string_not_equal(member_of(page, 1, "id"), "b");
    json_decref(page);
}

/* Order numbers as long as they may be, and of bytes with the longest escape. */
static void a_page_of_long_texts_is_shorter_and_loses_nothing(void **state)
{
    const struct peer *peer = *state;
    char *body = calloc(1, 16384);
    assert_non_null(body);
    char escaped[2000 * 6 + 1];
    struct idem_buf buf;
    char text[PEER_DESCRIBE_LEN];
    size_t listed = 0;
    char query[512] = ALWAYS "&limit=64";
    bool more = true;

    idem_buf_init(&buf, escaped, sizeof(escaped));
    for (size_t i = 0; i < 2000; i++) {
        idem_buf_add(&buf, IDEM_STR("\\u0001"));
    }
    idem_buf_add_char(&buf, '\0');
    for (int i = 0; i < 9; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "c%d", i);
        (void)snprintf(
            body, 16384,
            "{\"id\":\"%s\",\"amount\":\"1.00\",\"currency\":\"CNY\",\"kind\":\"charge\","
            "\"method\":\"tok_ok\",\"order_no\":\"%s\"}",
            id, escaped);
        peer_ask(peer,
                 &(struct peer_request){
                     .method = "POST", .path = "/dedup/effects", .key = id, .body = body },
                 id, text);
        assert_string_equal(text, DONE);
    }
    while (more) {
        json_t *page = page_get(peer, "dedup", query);
        assert_in_range(size_of(page), 1, 5);
        listed += size_of(page);
        const char *next = json_string_value(json_object_get(page, "next"));
        more = next != NULL;
        (void)snprintf(query, sizeof(query), ALWAYS "&limit=64&cursor=%s", more ? next : "");
        json_decref(page);
    }
    assert_int_equal(listed, 9);
    free(body);
}

static void expect_trace(const struct peer *peer, const char *id, const char *expected)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/ledger?id=%s", id);
    json_t *page = peer_get(peer, path);
    const char *trace = member_of(page, 0, "trace");
    assert_string_equal(trace == NULL ? "" : trace, expected);
    json_decref(page);
}

static void ask_traced(const struct peer *peer, const char *path, const char *trace)
{
    char text[PEER_DESCRIBE_LEN];

    peer_ask(peer, &(struct peer_request){ .method = "GET", .path = path, .trace = trace }, NULL,
             text);
}

static void the_ledger_shows_the_last_trace_also_after_a_restart(void **state)
{
    char folder[] = "/tmp/idem-sandbox-XXXXXX";
    char path[64];
    char text[PEER_DESCRIBE_LEN];
    struct peer peer;

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/ledger", folder);
    peer_start(&peer, path, NULL);
    ask_traced(&peer, "/dedup/effects/a", NULL);
    expect_trace(&peer, "a", "");
    expect_sent(&peer, "dedup", "a", "tok_ok", DONE);
    expect_trace(&peer, "a", "00-aa-bb-01");
    ask_traced(&peer, "/dedup/effects/a", NULL);
    ask_traced(&peer, "/dedup/effects/a", "with spaces");
    ask_traced(&peer, "/dedup/effects/a",
               "0123456789012345678901234567890123456789012345678901234567890123x");
    expect_trace(&peer, "a", "00-aa-bb-01");
    ask_traced(&peer, "/dedup/effects/a", "00-cc-dd-01");
    expect_trace(&peer, "a", "00-cc-dd-01");
    peer_ask(&peer,
             &(struct peer_request){ .method = "POST",
                                     .path = "/dedup/effects/a/close",
                                     .trace = "00-ee-ff-01",
                                     .body = "{}" },
             NULL, text);
    expect_ids(&peer, "dedup", ALWAYS, "a ");
    expect_trace(&peer, "a", "00-ee-ff-01");
    peer_stop(&peer);

    peer_start(&peer, path, NULL);
    expect_trace(&peer, "a", "00-ee-ff-01");
    expect_ids(&peer, "dedup", ALWAYS, "a ");
    peer_stop(&peer);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void only_the_right_bearer_sees_a_listing(void **state)
{
    struct peer strict;

    (void)state;
    peer_start(&strict, NULL, "s3cret");
    expect_listing(&strict, "dedup", ALWAYS "&limit=9", "401 not_executed unauthorized no-id");
    peer_stop(&strict);
}

int main(void)
{
#define WITH_PEER(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)
    const struct CMUnitTest tests[] = {
        WITH_PEER(every_effect_is_on_one_page_in_order),
        WITH_PEER(a_page_can_be_asked_again_and_loses_nothing_that_comes_meanwhile),
        WITH_PEER(an_effect_is_listed_with_all_the_protocol_asks),
        WITH_PEER(only_what_succeeded_and_can_be_seen_is_listed),
        WITH_PEER(nothing_is_listed_while_something_begun_before_its_end_is_undecided),
        WITH_PEER(a_listing_begins_at_from_and_ends_before_to),
        WITH_PEER(what_is_not_understood_is_refused),
        WITH_PEER(a_listing_suffers_as_often_as_was_asked_for),
        WITH_PEER(a_caller_that_leaves_a_slow_listing_stops_nothing),
        WITH_PEER(a_provider_that_lies_lies_in_its_listing_too),
        WITH_PEER(a_page_of_long_texts_is_shorter_and_loses_nothing),
        cmocka_unit_test(the_ledger_shows_the_last_trace_also_after_a_restart),
        cmocka_unit_test(only_the_right_bearer_sees_a_listing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
