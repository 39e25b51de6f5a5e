/*
 * From a released call to evidence, over a real connection.
 *
 * Goal: the port sends what was stored to the entry that the effect names and to no other, every
 * end on the wire becomes the right evidence, and the evidence owns its text.
 *
 * Method: the bridge adapter and a real client against the misbehaving peer of the transport tests.
 * Entries differ in their base URL, and so in what the peer does.
 */
#include "provider/http_port.h"

#include <uv.h>

#include "lib/test.h"
#include "provider/bridge.h"
#include "unit/transport/peer.h"

#define OUR_ID    "c0123456789abcdefghjkmnpqrs"
#define CALLS_MAX 2

/* The bridge with its paths turned into a fault of the peer: the entry's credential names it. */
static void faulty_request(enum idem_call_kind kind,
                           const struct idem_effect *effect,
                           struct idem_str credential,
                           struct idem_buf *buf,
                           struct idem_wire_request *ret_request)
{
    idem_bridge_adapter.request(kind, effect, IDEM_STR("secret"), buf, ret_request);
    ret_request->path = idem_buf_keep(buf, credential);
}

static void no_encode(const struct idem_effect_order *order, struct idem_buf *buf)
{
    idem_bridge_adapter.encode(order, buf);
}

static void real_decode(enum idem_call_kind kind,
                        const struct idem_effect *effect,
                        const struct idem_wire_answer *answer,
                        struct idem_buf *buf,
                        struct idem_evidence *ret_evidence)
{
    idem_bridge_adapter.decode(kind, effect, answer, buf, ret_evidence);
}

static const struct idem_adapter faulty_adapter = {
    .name = "faulty",
    .encode = no_encode,
    .request = faulty_request,
    .decode = real_decode,
};

enum entry_index {
    ENTRY_BRIDGE = 0,
    ENTRY_FAULTY,
    ENTRY_HUGE,
    ENTRY_COUNT
};

struct rig {
    uv_loop_t loop;
    struct idem_clock clock;
    struct idem_http_client *client;
    struct peer *peer;
    struct idem_port *port;
    struct idem_provider_rules rules[ENTRY_COUNT];
    struct idem_provider_entry entries[ENTRY_COUNT];
    char set_url[64];
    char plain_url[64];
    char huge_url[8000];
    struct idem_call call;
};

static void entries_fill(struct rig *rig)
{
    static const char *const names[ENTRY_COUNT] = { "bridge", "faulty", "huge" };

    (void)snprintf(rig->set_url, sizeof(rig->set_url), "http://127.0.0.1:%u/set",
                   peer_port(rig->peer));
    (void)snprintf(rig->plain_url, sizeof(rig->plain_url), "http://127.0.0.1:%u",
                   peer_port(rig->peer));
    memset(rig->huge_url, 'x', sizeof(rig->huge_url) - 1);
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        rig->rules[i] = (struct idem_provider_rules){
            .entry = idem_str_from(names[i]),
            .account = IDEM_STR("acct"),
            .region = IDEM_STR("cn"),
            .request_timeout_us = 5 * IDEM_US_PER_SECOND,
        };
        rig->entries[i] = (struct idem_provider_entry){
            .adapter = i == ENTRY_FAULTY ? &faulty_adapter : &idem_bridge_adapter,
            .rules = &rig->rules[i],
            .base_url = rig->set_url,
            .credential = "secret",
        };
    }
    rig->entries[ENTRY_FAULTY].base_url = rig->plain_url;
    rig->entries[ENTRY_HUGE].base_url = rig->huge_url;
}

static struct rig *rig_create(void)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct idem_error error;
    assert_non_null(rig);
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    idem_clock_init_system(&rig->clock);
    rig->peer = peer_start();
    struct idem_http_client_options options = {
        .loop = &rig->loop,
        .clock = &rig->clock,
        .calls_max = CALLS_MAX,
        .connections_per_host_max = CALLS_MAX,
    };
    assert_int_equal(idem_http_client_create(&options, &rig->client, &error), IDEM_OK);
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
    (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    peer_stop(rig->peer);
    free(rig);
}

static struct idem_call *call_prepare(struct rig *rig, enum idem_call_kind kind, const char *entry)
{
    rig->call = (struct idem_call){
        .kind = kind,
        .not_after_us = INT64_MAX,
        .effect = {
            .kind = IDEM_EFFECT_KIND_CHARGE,
            .id = IDEM_STR(OUR_ID),
            .entry = idem_str_from(entry),
            .account = IDEM_STR("acct"),
            .region = IDEM_STR("cn"),
            .amount_minor = 10000,
            .currency = IDEM_STR("CNY"),
            .request = IDEM_STR("{\"stored\":\"bytes\"}"),
        },
        .evidence = { .send_no = 3, .asked_us = 5, .token = { .bytes = { 9 } } },
    };
    return &rig->call;
}

static void run_until_reaped(struct rig *rig, struct idem_list *done, size_t count)
{
    idem_port_reap(rig->port, done);
    while (done->count < count) {
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
        idem_port_reap(rig->port, done);
    }
}

static const struct idem_evidence *call_run(struct rig *rig, struct idem_call *call)
{
    struct idem_list done = { .count = 0 };

    assert_int_equal(idem_port_submit(rig->port, call), IDEM_OK);
    run_until_reaped(rig, &done, 1);
    assert_ptr_equal(idem_list_pop(&done), &call->node);
    return &call->evidence;
}

static const struct idem_evidence *answer_run(struct rig *rig,
                                              enum idem_call_kind kind,
                                              const char *status,
                                              const char *body)
{
    char raw[8192];

    (void)snprintf(raw, sizeof(raw), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status,
                   strlen(body), body);
    peer_answer(rig->peer, raw);
    return call_run(rig, call_prepare(rig, kind, "bridge"));
}

static void expect_in_memory(const struct idem_call *call, struct idem_str text)
{
    assert_true(text.len == 0 ||
                (text.data >= call->memory && text.data + text.len <= call->memory + 1024));
}

#define SUCCESS(reference)                                            \
    "{\"id\":\"" OUR_ID                                               \
    "\",\"status\":\"succeeded\",\"amount\":\"100.00\",\"currency\":" \
    "\"CNY\",\"reference\":\"" reference "\"}"

static void a_send_carries_the_stored_bytes_and_brings_evidence(void **state)
{
    (void)state;
    struct rig *rig = rig_create();
    char request[PEER_REQUEST_MAX];
    const struct idem_evidence *evidence =
        answer_run(rig, IDEM_CALL_SEND, "200 OK\r\nRetry-After: 2", SUCCESS("r-1"));

    assert_int_equal(evidence->source, IDEM_SOURCE_SEND);
    assert_int_equal(evidence->outcome, IDEM_OUTCOME_SUCCESS);
    EXPECT_TEXT(evidence->entry, "bridge");
    EXPECT_TEXT(evidence->account, "acct");
    EXPECT_TEXT(evidence->region, "cn");
    EXPECT_TEXT(evidence->effect_id, OUR_ID);
    assert_int_equal(evidence->amount_minor, 10000);
    EXPECT_TEXT(evidence->currency, "CNY");
    EXPECT_TEXT(evidence->reference, "r-1");
    assert_int_equal(evidence->retry_after_us, 2 * IDEM_US_PER_SECOND);
    assert_int_equal(evidence->send_no, 3); /* The submitter's. */
    assert_int_equal(evidence->asked_us, 5);
    assert_int_equal(evidence->token.bytes[0], 9);
    expect_in_memory(&rig->call, evidence->entry);
    expect_in_memory(&rig->call, evidence->account);
    expect_in_memory(&rig->call, evidence->region);
    expect_in_memory(&rig->call, evidence->effect_id);
    expect_in_memory(&rig->call, evidence->currency);
    expect_in_memory(&rig->call, evidence->reference);

    peer_last_request(rig->peer, request);
    assert_ptr_equal(strstr(request, "POST /set/effects HTTP/1.1\r\n"), request);
    assert_non_null(strstr(request, "\r\nAuthorization: Bearer secret\r\n"));
    assert_non_null(strstr(request, "\r\nIdempotency-Key: " OUR_ID "\r\n"));
    assert_non_null(strstr(request, "\r\n\r\n{\"stored\":\"bytes\"}"));
    rig_destroy(rig);
}

static void a_question_and_a_close_go_to_the_id(void **state)
{
    (void)state;
    struct rig *rig = rig_create();
    char request[PEER_REQUEST_MAX];
    const struct idem_evidence *evidence =
        answer_run(rig, IDEM_CALL_QUERY, "404 None", "{\"status\":\"not_found\"}");
    assert_int_equal(evidence->source, IDEM_SOURCE_QUERY);
    assert_int_equal(evidence->outcome, IDEM_OUTCOME_NOT_FOUND);
    peer_last_request(rig->peer, request);
    assert_ptr_equal(strstr(request, "GET /set/effects/" OUR_ID " HTTP/1.1\r\n"), request);

    evidence =
        answer_run(rig, IDEM_CALL_CLOSE, "200 OK", "{\"id\":\"" OUR_ID "\",\"status\":\"closed\"}");
    assert_int_equal(evidence->source, IDEM_SOURCE_CLOSE);
    assert_int_equal(evidence->outcome, IDEM_OUTCOME_CLOSED_UNPAID);
    peer_last_request(rig->peer, request);
    assert_ptr_equal(strstr(request, "POST /set/effects/" OUR_ID "/close HTTP/1.1\r\n"), request);
    rig_destroy(rig);
}

static void a_trace_goes_with_every_call_as_it_came(void **state)
{
    (void)state;
    static const char body[] = "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n";
    struct rig *rig = rig_create();
    char request[PEER_REQUEST_MAX];

    peer_answer(rig->peer, body);
    for (enum idem_call_kind kind = IDEM_CALL_SEND; kind < IDEM_CALL_COUNT; kind++) {
        struct idem_call *call = call_prepare(rig, kind, "bridge");
        call->trace = IDEM_STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        (void)call_run(rig, call);
        peer_last_request(rig->peer, request);
        assert_non_null(
            strstr(request,
                   "\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"));
        (void)call_run(rig, call_prepare(rig, kind, "bridge"));
        peer_last_request(rig->peer, request);
        assert_null(strstr(request, "traceparent"));
    }

    struct idem_call *call = call_prepare(rig, IDEM_CALL_SEND, "bridge");
    call->trace = IDEM_STR("00-a\r\nIdempotency-Key: another");
    assert_int_equal(idem_port_submit(rig->port, call), IDEM_E_INVALID);
    assert_int_equal(peer_arrivals(rig->peer), 6);
    rig_destroy(rig);
}

static void expect_ending(struct rig *rig,
                          enum idem_call_kind kind,
                          const char *path,
                          enum idem_outcome_kind outcome)
{
    struct idem_call *call = call_prepare(rig, kind, "faulty");
    rig->entries[ENTRY_FAULTY].credential = path;
    const struct idem_evidence *evidence = call_run(rig, call);

    assert_int_equal(evidence->outcome, outcome);
    assert_int_equal(evidence->amount_minor, -1);
    EXPECT_TEXT(evidence->entry, "faulty");
}

static void every_end_on_the_wire_is_evidence(void **state)
{
    (void)state;
    struct rig *rig = rig_create();

    for (enum idem_call_kind kind = IDEM_CALL_SEND; kind < IDEM_CALL_COUNT; kind++) {
        expect_ending(rig, kind, "/close", IDEM_OUTCOME_UNKNOWN);
        expect_ending(rig, kind, "/cut-body", IDEM_OUTCOME_UNKNOWN);
        expect_ending(rig, kind, "/large/20000", IDEM_OUTCOME_UNKNOWN);
        expect_ending(rig, kind, "/ok", IDEM_OUTCOME_UNKNOWN); /* "fine" is not the protocol. */
    }
    rig->entries[ENTRY_FAULTY].base_url = "http://127.0.0.1:1"; /* Refused. */
    expect_ending(rig, IDEM_CALL_SEND, "/ok", IDEM_OUTCOME_NOT_EXECUTED);
    expect_ending(rig, IDEM_CALL_QUERY, "/ok", IDEM_OUTCOME_UNKNOWN);
    expect_ending(rig, IDEM_CALL_CLOSE, "/ok", IDEM_OUTCOME_UNKNOWN);
    rig_destroy(rig);
}

static void a_send_after_its_time_is_not_executed(void **state)
{
    (void)state;
    struct rig *rig = rig_create();
    struct idem_call *call = call_prepare(rig, IDEM_CALL_SEND, "bridge");
    call->not_after_us = idem_clock_mono_us(&rig->clock);
    assert_int_equal(call_run(rig, call)->outcome, IDEM_OUTCOME_NOT_EXECUTED);
    assert_int_equal(peer_arrivals(rig->peer), 0);
    rig_destroy(rig);
}

static void a_cancel_is_evidence_too(void **state)
{
    (void)state;
    struct rig *rig = rig_create();
    struct idem_list done = { .count = 0 };
    struct idem_call *call = call_prepare(rig, IDEM_CALL_SEND, "faulty");
    rig->entries[ENTRY_FAULTY].credential = "/silent";

    assert_int_equal(idem_port_submit(rig->port, call), IDEM_OK);
    idem_port_cancel(rig->port, call);
    run_until_reaped(rig, &done, 1);
    assert_ptr_equal(idem_list_pop(&done), &call->node);
    assert_int_equal(call->evidence.outcome, IDEM_OUTCOME_NOT_EXECUTED);

    call = call_prepare(rig, IDEM_CALL_SEND, "faulty");
    assert_int_equal(idem_port_submit(rig->port, call), IDEM_OK);
    while (peer_arrivals(rig->peer) == 0) {
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
    idem_port_cancel(rig->port, call);
    run_until_reaped(rig, &done, 1);
    assert_ptr_equal(idem_list_pop(&done), &call->node);
    assert_int_equal(call->evidence.outcome, IDEM_OUTCOME_UNKNOWN);
    rig_destroy(rig);
}

static void only_the_entry_with_all_three_names_is_called(void **state)
{
    (void)state;
    struct rig *rig = rig_create();
    struct idem_call *call = call_prepare(rig, IDEM_CALL_SEND, "nobody");
    assert_int_equal(idem_port_submit(rig->port, call), IDEM_E_INVALID);

    call = call_prepare(rig, IDEM_CALL_SEND, "bridge");
    call->effect.account = IDEM_STR("acct2");
    assert_int_equal(idem_port_submit(rig->port, call), IDEM_E_INVALID);

    call = call_prepare(rig, IDEM_CALL_SEND, "bridge");
    call->effect.region = IDEM_STR("");
    assert_int_equal(idem_port_submit(rig->port, call), IDEM_E_INVALID);

    call = call_prepare(rig, IDEM_CALL_SEND, "huge"); /* Its URL fits nowhere. */
    assert_int_equal(idem_port_submit(rig->port, call), IDEM_E_INVALID);
    assert_int_equal(peer_arrivals(rig->peer), 0);
    rig_destroy(rig);
}

static void at_the_limit_a_call_stays_its_callers(void **state)
{
    (void)state;
    struct rig *rig = rig_create();
    struct idem_list done = { .count = 0 };
    struct idem_call *calls = calloc(CALLS_MAX + 1, sizeof(*calls));
    assert_non_null(calls);
    rig->entries[ENTRY_FAULTY].credential = "/ok";

    for (size_t i = 0; i < CALLS_MAX; i++) {
        calls[i] = *call_prepare(rig, IDEM_CALL_SEND, "faulty");
        assert_int_equal(idem_port_submit(rig->port, &calls[i]), IDEM_OK);
    }
    calls[CALLS_MAX] = *call_prepare(rig, IDEM_CALL_SEND, "faulty");
    assert_int_equal(idem_port_submit(rig->port, &calls[CALLS_MAX]), IDEM_E_LIMIT);
    assert_false(calls[CALLS_MAX].node.linked);
    run_until_reaped(rig, &done, CALLS_MAX);
    assert_int_equal(idem_port_submit(rig->port, &calls[CALLS_MAX]), IDEM_OK);
    run_until_reaped(rig, &done, CALLS_MAX + 1);
    assert_int_equal(peer_arrivals(rig->peer), CALLS_MAX + 1);
    free(calls);
    rig_destroy(rig);
}

static void long_text_is_cut_where_it_may_be_and_unknown_where_not(void **state)
{
    (void)state;
    struct rig *rig = rig_create();
    char text[400];
    char body[1024];

    memset(text, 'a', sizeof(text));
    memcpy(text + IDEM_MESSAGE_MAX - 1, "\xe8\x8c\xb6", 3); /* Would be cut in its middle. */
    text[sizeof(text) - 1] = '\0';
    (void)snprintf(body, sizeof(body),
                   "{\"id\":\"" OUR_ID
                   "\",\"status\":\"declined\",\"code\":\"%s\","
                   "\"message\":\"%s\"}",
                   text, text);
    const struct idem_evidence *evidence = answer_run(rig, IDEM_CALL_SEND, "200 OK", body);
    assert_int_equal(evidence->outcome, IDEM_OUTCOME_REFUSED_FINAL);
    assert_int_equal(evidence->code.len, IDEM_CODE_MAX);
    assert_int_equal(evidence->message.len, IDEM_MESSAGE_MAX - 1);

    memset(text, 'a', sizeof(text));
    for (size_t len = IDEM_REFERENCE_MAX; len <= IDEM_REFERENCE_MAX + 1; len++) {
        (void)snprintf(body, sizeof(body),
                       "{\"id\":\"" OUR_ID
                       "\",\"status\":\"succeeded\",\"amount\":\"100.00\","
                       "\"currency\":\"CNY\",\"reference\":\"%.*s\"}",
                       (int)len, text);
        evidence = answer_run(rig, IDEM_CALL_SEND, "200 OK", body);
        assert_int_equal(evidence->outcome,
                         len == IDEM_REFERENCE_MAX ? IDEM_OUTCOME_SUCCESS : IDEM_OUTCOME_UNKNOWN);
        assert_int_equal(evidence->amount_minor, len == IDEM_REFERENCE_MAX ? 10000 : -1);
    }

    (void)snprintf(body, sizeof(body),
                   "{\"id\":\"%.*s\",\"status\":\"succeeded\",\"amount\":\"100.00\","
                   "\"currency\":\"CNY\"}",
                   65, text);
    evidence = answer_run(rig, IDEM_CALL_SEND, "200 OK", body);
    assert_int_equal(evidence->outcome, IDEM_OUTCOME_UNKNOWN);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_send_carries_the_stored_bytes_and_brings_evidence),
        cmocka_unit_test(a_question_and_a_close_go_to_the_id),
        cmocka_unit_test(a_trace_goes_with_every_call_as_it_came),
        cmocka_unit_test(every_end_on_the_wire_is_evidence),
        cmocka_unit_test(a_send_after_its_time_is_not_executed),
        cmocka_unit_test(a_cancel_is_evidence_too),
        cmocka_unit_test(only_the_entry_with_all_three_names_is_called),
        cmocka_unit_test(at_the_limit_a_call_stays_its_callers),
        cmocka_unit_test(long_text_is_cut_where_it_may_be_and_unknown_where_not),
    };
    idem_port_destroy(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
