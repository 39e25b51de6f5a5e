/*
 * Listings from the port to the sandbox and back.
 *
 * Goal: what the port lists is what was sent and succeeded, whatever the pages; a page that did not
 * come whole and readable is not answered and can be asked for again; calls and listings do not get
 * in one another's way.
 *
 * Method: the real port, bridge adapter and client against the sandbox on the same loop, and
 * against the misbehaving peer of the transport tests where the sandbox would be too honest.
 */
#include <uv.h>

#include "lib/test.h"
#include "provider/bridge.h"
#include "provider/http_port.h"
#include "sandbox/sandbox.h"
#include "unit/transport/peer.h"

#define CALLS_MAX 2
#define ALWAYS_US INT64_C(253402300799000000)

enum entry_index {
    ENTRY_DEDUP = 0,
    ENTRY_SILENT, /* Its rules say that nothing is listed. */
    ENTRY_BLIND,  /* The provider answers 405. */
    ENTRY_MUTE,   /* Its adapter cannot list. */
    ENTRY_PEER,   /* Answers what the test says. */
    ENTRY_GONE,   /* Nobody listens there. */
    ENTRY_COUNT
};

static const char *const names[ENTRY_COUNT] = {
    "dedup", "silent", "blind", "mute", "peer", "gone"
};
static const char *const paths[ENTRY_COUNT] = { "dedup", "dedup", "blind", "dedup", "", "" };

struct rig {
    uv_loop_t loop;
    struct idem_clock clock;
    struct idem_sandbox *sandbox;
    struct peer *peer;
    struct idem_http_client *client;
    struct idem_port *port;
    struct idem_adapter mute;
    struct idem_provider_rules rules[ENTRY_COUNT];
    struct idem_provider_entry entries[ENTRY_COUNT];
    char urls[ENTRY_COUNT][64];
    struct idem_call call;
    char id[IDEM_EFFECT_ID_LEN + 1];
    char order_no[32];
    char request[IDEM_REQUEST_MAX];
    struct idem_listing listing;
};

static void entries_fill(struct rig *rig)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        (void)snprintf(rig->urls[i], sizeof(rig->urls[i]), "http://127.0.0.1:%u/%s",
                       idem_sandbox_port(rig->sandbox), paths[i]);
        rig->rules[i] = (struct idem_provider_rules){
            .entry = idem_str_from(names[i]),
            .account = IDEM_STR("acct"),
            .region = IDEM_STR("cn"),
            .request_timeout_us = 5 * IDEM_US_PER_SECOND,
            .listing = i != ENTRY_SILENT,
        };
        rig->entries[i] = (struct idem_provider_entry){
            .adapter = i == ENTRY_MUTE ? &rig->mute : &idem_bridge_adapter,
            .rules = &rig->rules[i],
            .base_url = rig->urls[i],
            .credential = "s3cret",
        };
    }
    (void)snprintf(rig->urls[ENTRY_PEER], sizeof(rig->urls[0]), "http://127.0.0.1:%u/set",
                   peer_port(rig->peer));
    (void)snprintf(rig->urls[ENTRY_GONE], sizeof(rig->urls[0]), "http://127.0.0.1:1");
}

static struct rig *rig_create(void)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct idem_error error;
    assert_non_null(rig);
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    idem_clock_init_system(&rig->clock);
    rig->peer = peer_start();
    struct idem_sandbox_options sandbox = {
        .loop = &rig->loop, .host = "127.0.0.1", .clock = &rig->clock, .credential = "s3cret"
    };
    assert_int_equal(idem_sandbox_open(&sandbox, &rig->sandbox, &error), IDEM_OK);
    struct idem_http_client_options options = {
        .loop = &rig->loop,
        .clock = &rig->clock,
        .calls_max = CALLS_MAX + 1,
        .connections_per_host_max = CALLS_MAX + 1,
    };
    assert_int_equal(idem_http_client_create(&options, &rig->client, &error), IDEM_OK);
    rig->mute = idem_bridge_adapter;
    rig->mute.list_request = NULL;
    rig->mute.list_decode = NULL;
    entries_fill(rig);
    assert_int_equal(
        idem_http_port_create(rig->client, rig->entries, ENTRY_COUNT, CALLS_MAX, &rig->port),
        IDEM_OK);
    return rig;
}

static void rig_destroy(struct rig *rig)
{
    idem_port_destroy(rig->port);
    idem_http_client_destroy(rig->client);
    idem_sandbox_close(rig->sandbox);
    while (!idem_sandbox_closed(rig->sandbox)) {
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
    }
    idem_sandbox_destroy(rig->sandbox);
    (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    peer_stop(rig->peer);
    free(rig);
}

/*
 * Does not wait: what ends in a timer ends before the loop waits for sockets, and the sandbox keeps
 * it waiting.
 */
static void loop_turn(struct rig *rig)
{
    (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
}

/* The effect number `no`, of the kind whose letter is given. */
static void id_print(char letter, int no, char ret_id[IDEM_EFFECT_ID_LEN + 1])
{
    (void)snprintf(ret_id, IDEM_EFFECT_ID_LEN + 1, "%c%026d", letter, no);
}

static struct idem_call *call_prepare(struct rig *rig, enum idem_effect_kind kind, int no)
{
    struct idem_buf buf;

    id_print(idem_effect_kind_letter(kind), no, rig->id);
    (void)snprintf(rig->order_no, sizeof(rig->order_no), "o-%d", no);
    rig->call = (struct idem_call){
        .kind = IDEM_CALL_SEND,
        .not_after_us = INT64_MAX,
        .effect = {
            .kind = kind,
            .id = idem_str_from(rig->id),
            .entry = IDEM_STR("dedup"),
            .account = IDEM_STR("acct"),
            .region = IDEM_STR("cn"),
            .amount_minor = 10000 + no,
            .currency = IDEM_STR("CNY"),
        },
    };
    char payment_id[IDEM_EFFECT_ID_LEN + 1];
    id_print('c', no, payment_id);
    struct idem_effect_order order = {
        .effect = &rig->call.effect,
        .order_no = idem_str_from(rig->order_no),
        .method = IDEM_STR("tok_ok"),
        .payment_effect_id =
            kind == IDEM_EFFECT_KIND_CHARGE ? IDEM_STR("") : idem_str_from(payment_id),
    };
    idem_buf_init(&buf, rig->request, sizeof(rig->request));
    idem_bridge_adapter.encode(&order, &buf);
    rig->call.effect.request = idem_buf_str(&buf);
    return &rig->call;
}

static void send_effect(struct rig *rig, enum idem_effect_kind kind, int no)
{
    struct idem_list done = { .count = 0 };

    assert_int_equal(idem_port_submit(rig->port, call_prepare(rig, kind, no)), IDEM_OK);
    while (done.count == 0) {
        loop_turn(rig);
        idem_port_reap(rig->port, &done);
    }
    assert_ptr_equal(idem_list_pop(&done), &rig->call.node);
    assert_int_equal(rig->call.evidence.outcome, IDEM_OUTCOME_SUCCESS);
}

static struct idem_listing *listing_prepare(struct rig *rig, enum entry_index entry)
{
    rig->listing.node = (struct idem_list_node){ .linked = false };
    rig->listing.entry = idem_str_from(names[entry]);
    rig->listing.from_us = 0;
    rig->listing.to_us = ALWAYS_US;
    rig->listing.cursor[0] = '\0';
    return &rig->listing;
}

static void listing_await(struct rig *rig)
{
    struct idem_list done = { .count = 0 };

    idem_port_reap_listings(rig->port, &done);
    while (done.count == 0) {
        loop_turn(rig);
        idem_port_reap_listings(rig->port, &done);
    }
    assert_ptr_equal(idem_list_pop(&done), &rig->listing.node);
    assert_int_equal(done.count, 0);
}

static bool listing_run(struct rig *rig)
{
    assert_int_equal(idem_port_list(rig->port, &rig->listing), IDEM_OK);
    listing_await(rig);
    return rig->listing.answered;
}

static void expect_listed(const struct idem_listed *listed, char letter, int no)
{
    char id[IDEM_EFFECT_ID_LEN + 1];
    char order_no[32];

    id_print(letter, no, id);
    EXPECT_TEXT(listed->effect_id, id);
    id_print('c', no, id);
    EXPECT_TEXT(listed->payment_effect_id, letter == 'c' ? "" : id);
    (void)snprintf(order_no, sizeof(order_no), "o-%d", no);
    EXPECT_TEXT(listed->order_no, order_no);
    EXPECT_TEXT(listed->currency, "CNY");
    assert_int_equal(listed->amount_minor, 10000 + no);
    assert_true(idem_str_starts(listed->reference, IDEM_STR("sandbox-")));
}

static void what_was_sent_is_listed_page_by_page(void **state)
{
    (void)state;
    enum {
        PAYMENTS = 50
    };
    struct rig *rig = rig_create();
    int next = 0;
    int pages = 0;
    int64_t before_us = 0;

    for (int i = 0; i < PAYMENTS; i++) {
        send_effect(rig, IDEM_EFFECT_KIND_CHARGE, i);
        send_effect(rig, IDEM_EFFECT_KIND_REFUND, i);
    }
    listing_prepare(rig, ENTRY_DEDUP);
    do {
        assert_true(listing_run(rig));
        for (size_t i = 0; i < rig->listing.count; i++) {
            expect_listed(&rig->listing.listed[i], next % 2 == 0 ? 'c' : 'r', next / 2);
            assert_true(rig->listing.listed[i].happened_us >= before_us);
            before_us = rig->listing.listed[i].happened_us;
            next += 1;
        }
        pages += 1;
    } while (rig->listing.more);
    assert_int_equal(next, 2 * PAYMENTS);
    assert_true(pages > 2);

    /* Up to a moment, and from it on: each effect once. */
    listing_prepare(rig, ENTRY_DEDUP)->from_us = before_us;
    assert_true(listing_run(rig));
    assert_true(rig->listing.count >= 1);
    expect_listed(&rig->listing.listed[rig->listing.count - 1], 'r', PAYMENTS - 1);
    listing_prepare(rig, ENTRY_DEDUP)->to_us = 1;
    assert_true(listing_run(rig));
    assert_int_equal(rig->listing.count, 0);
    assert_false(rig->listing.more);
    rig_destroy(rig);
}

static void where_nothing_is_listed_the_listing_stays_its_callers(void **state)
{
    (void)state;
    struct rig *rig = rig_create();

    assert_int_equal(idem_port_list(rig->port, listing_prepare(rig, ENTRY_SILENT)), IDEM_E_LIMIT);
    assert_int_equal(idem_port_list(rig->port, listing_prepare(rig, ENTRY_MUTE)), IDEM_E_LIMIT);
    rig->listing.entry = IDEM_STR("nobody");
    assert_int_equal(idem_port_list(rig->port, &rig->listing), IDEM_E_LIMIT);
    assert_false(rig->listing.node.linked);
    rig_destroy(rig);
}

static void what_is_only_good_for_comparing_is_listed_too(void **state)
{
    (void)state;
    struct rig *rig = rig_create();
    rig->rules[ENTRY_SILENT].comparing = true;
    rig->rules[ENTRY_MUTE].comparing = true;
    listing_prepare(rig, ENTRY_SILENT);
    assert_true(listing_run(rig));
    assert_int_equal(idem_port_list(rig->port, listing_prepare(rig, ENTRY_MUTE)), IDEM_E_LIMIT);
    rig_destroy(rig);
}

static void expect_unanswered(struct rig *rig, enum entry_index entry)
{
    listing_prepare(rig, entry);
    (void)snprintf(rig->listing.cursor, sizeof(rig->listing.cursor), "c1");
    assert_false(listing_run(rig));
    assert_int_equal(rig->listing.count, 0);
    assert_false(rig->listing.more);
    assert_string_equal(rig->listing.cursor, "c1"); /* To ask for again. */
}

static void expect_peer(struct rig *rig, const char *answer, bool answered)
{
    peer_answer(rig->peer, answer);
    if (!answered) {
        expect_unanswered(rig, ENTRY_PEER);
        return;
    }
    listing_prepare(rig, ENTRY_PEER);
    assert_true(listing_run(rig));
}

#define ANSWER(len) "HTTP/1.1 200 OK\r\nContent-Length: " len "\r\n\r\n"

static void a_page_that_did_not_come_whole_is_not_answered(void **state)
{
    (void)state;
    struct rig *rig = rig_create();

    expect_peer(rig, ANSWER("26") "{\"effects\":[],\"next\":null}", true);
    rig->rules[ENTRY_PEER].request_timeout_us = 200 * IDEM_US_PER_MS; /* More is announced. */
    expect_peer(rig, ANSWER("27") "{\"effects\":[],\"next\":null}", false);
    rig->rules[ENTRY_PEER].request_timeout_us = 5 * IDEM_US_PER_SECOND;
    expect_peer(rig, ANSWER("25") "{\"effects\":[],\"next\":null", false);
    expect_peer(rig,
                "HTTP/1.1 503 Busy\r\nContent-Length: 26\r\n\r\n{\"effects\":[],\"next\":null}",
                false);
    expect_peer(rig, "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", false);
    expect_unanswered(rig, ENTRY_GONE);
    expect_unanswered(rig, ENTRY_BLIND);

    rig->entries[ENTRY_DEDUP].credential = "wrong";
    expect_unanswered(rig, ENTRY_DEDUP);
    rig->entries[ENTRY_DEDUP].credential = "s3cret";
    listing_prepare(rig, ENTRY_DEDUP);
    assert_true(listing_run(rig));
    rig_destroy(rig);
}

static void a_page_has_room_for_what_the_protocol_allows(void **state)
{
    (void)state;
    enum {
        PAGE_MAX = 65536
    };
    struct rig *rig = rig_create();
    char *raw = malloc(PAGE_MAX + 256);
    assert_non_null(raw);

    for (int size = PAGE_MAX; size <= PAGE_MAX + 1; size++) {
        int len = snprintf(raw, 256,
                           "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                           "{\"effects\":[],\"next\":null}",
                           size);
        memset(raw + len, ' ', (size_t)size - 26);
        raw[len + size - 26] = '\0';
        expect_peer(rig, raw, size == PAGE_MAX);
    }
    free(raw);
    rig_destroy(rig);
}

static void one_page_at_a_time_beside_all_the_calls(void **state)
{
    (void)state;
    struct rig *rig = rig_create();
    struct idem_listing *second = calloc(1, sizeof(*second));
    struct idem_list calls = { .count = 0 };
    assert_non_null(second);

    send_effect(rig, IDEM_EFFECT_KIND_CHARGE, 1);
    assert_int_equal(idem_port_list(rig->port, listing_prepare(rig, ENTRY_DEDUP)), IDEM_OK);
    *second = (struct idem_listing){ .entry = IDEM_STR("dedup"), .to_us = ALWAYS_US };
    assert_int_equal(idem_port_list(rig->port, second), IDEM_E_LIMIT);
    assert_int_equal(idem_port_submit(rig->port, call_prepare(rig, IDEM_EFFECT_KIND_CHARGE, 2)),
                     IDEM_OK);

    /* Reaping one kind leaves the other: it may even be canceled when it has ended. */
    listing_await(rig);
    assert_true(rig->listing.answered);
    struct idem_list listings = { .count = 0 };
    while (rig->call.carrier != NULL) {
        loop_turn(rig);
        idem_port_reap_listings(rig->port, &listings);
    }
    assert_int_equal(listings.count, 0);
    idem_port_cancel(rig->port, &rig->call);
    idem_port_reap(rig->port, &calls);
    assert_ptr_equal(idem_list_pop(&calls), &rig->call.node);
    assert_int_equal(rig->call.evidence.outcome, IDEM_OUTCOME_SUCCESS);

    assert_int_equal(idem_port_list(rig->port, listing_prepare(rig, ENTRY_DEDUP)), IDEM_OK);
    send_effect(rig, IDEM_EFFECT_KIND_CHARGE, 3); /* Reaps calls until it is there. */
    listing_await(rig);
    assert_true(rig->listing.answered);
    free(second);
    rig_destroy(rig);
}

static const struct idem_port_ops ops_without_listings = { .submit = NULL };

static void a_port_need_not_list(void **state)
{
    (void)state;
    struct idem_port port = { .ops = &ops_without_listings };
    struct idem_list done = { .count = 0 };
    struct rig *rig = rig_create();

    assert_int_equal(idem_port_list(&port, listing_prepare(rig, ENTRY_DEDUP)), IDEM_E_LIMIT);
    idem_port_reap_listings(&port, &done);
    assert_int_equal(done.count, 0);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_is_listed_page_by_page),
        cmocka_unit_test(where_nothing_is_listed_the_listing_stays_its_callers),
        cmocka_unit_test(what_is_only_good_for_comparing_is_listed_too),
        cmocka_unit_test(a_page_that_did_not_come_whole_is_not_answered),
        cmocka_unit_test(a_page_has_room_for_what_the_protocol_allows),
        cmocka_unit_test(one_page_at_a_time_beside_all_the_calls),
        cmocka_unit_test(a_port_need_not_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
