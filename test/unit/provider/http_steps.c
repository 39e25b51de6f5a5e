/*
 * A call of several requests, over a real connection.
 *
 * Goal: each request of a call leaves once and in its turn; the evidence is what the adapter said
 * last and what became of the request behind it; a request that did not leave takes nothing back,
 * one that was lost does, unless it is harmless.
 *
 * Method: an adapter that does what a script says, step by step, against the misbehaving peer of
 * the transport tests, which counts arrivals.
 */
#include "provider/http_port.h"

#include <uv.h>

#include "lib/test.h"
#include "provider/adapter.h"
#include "unit/transport/peer.h"

#define OUR_ID "c0123456789abcdefghjkmnpqrs"

/* What one request is, and what the adapter says about its answer. */
struct turn {
    const char *path; /* A fault of the peer; NULL: nothing is to be sent. */
    bool harmless;
    bool late; /* The call's time is over when it is to leave. */
    enum idem_outcome_kind says;
    const char *code;
    bool more;
};

struct script {
    const struct turn *turns; /* One a step; the last repeats. */
    size_t count;
    struct idem_call *call;
    char seen_head[4096];
    struct idem_str reference; /* What every answer is read as, if it is not empty. */
};

static struct script script;

static const struct turn *turn_of(const struct idem_wire_course *course)
{
    return &script.turns[course->step < script.count ? course->step : script.count - 1];
}

static bool script_request(struct idem_wire_course *course,
                           struct idem_str credential,
                           struct idem_buf *buf,
                           struct idem_wire_request *ret_request)
{
    const struct turn *turn = turn_of(course);
    (void)credential; /* It is tested with the other adapters. */
    if (turn->path == NULL) {
        course->so_far.outcome = turn->says;
        course->so_far.code = idem_str_from(turn->code);
        return false;
    }
    if (turn->late) {
        script.call->not_after_us = 1;
    }
    *ret_request = (struct idem_wire_request){
        .method = "POST",
        .path = idem_buf_keep(buf, idem_str_from(turn->path)),
        .body = IDEM_STR("x"),
        .harmless = turn->harmless,
    };
    return true;
}

static bool script_decode(struct idem_wire_course *course,
                          const struct idem_wire_answer *answer,
                          struct idem_buf *buf)
{
    const struct turn *turn = turn_of(course);
    (void)snprintf(script.seen_head, sizeof(script.seen_head), "%.*s", (int)answer->head.len,
                   answer->head.data);
    course->so_far.outcome = turn->says;
    if (turn->code != NULL) { /* Else what was said before stays. */
        course->so_far.code = idem_buf_keep(buf, idem_str_from(turn->code));
    }
    if (script.reference.len > 0) {
        course->so_far.reference = script.reference;
    }
    course->step += 1;
    return turn->more;
}

static void no_encode(const struct idem_effect_order *order, struct idem_buf *buf)
{
    (void)order; /* The effect has its request. */
    (void)buf;
}

static const struct idem_wire_steps script_steps = {
    .request = script_request,
    .decode = script_decode,
};

static const struct idem_adapter script_adapter = {
    .name = "script",
    .encode = no_encode,
    .steps = &script_steps,
};

struct rig {
    uv_loop_t loop;
    struct idem_clock clock;
    struct idem_http_client *client;
    struct peer *peer;
    struct idem_port *port;
    struct idem_provider_rules rules;
    struct idem_provider_entry entry;
    char url[64];
    struct idem_call call;
};

static struct rig *rig_create(void)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct idem_error error;
    assert_non_null(rig);
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    idem_clock_init_system(&rig->clock);
    rig->peer = peer_start();
    (void)snprintf(rig->url, sizeof(rig->url), "http://127.0.0.1:%u", peer_port(rig->peer));
    struct idem_http_client_options options = {
        .loop = &rig->loop,
        .clock = &rig->clock,
        .calls_max = 2,
        .connections_per_host_max = 2,
    };
    assert_int_equal(idem_http_client_create(&options, &rig->client, &error), IDEM_OK);
    rig->rules = (struct idem_provider_rules){
        .entry = IDEM_STR("script"),
        .request_timeout_us = 5 * IDEM_US_PER_SECOND,
    };
    rig->entry = (struct idem_provider_entry){
        .adapter = &script_adapter,
        .rules = &rig->rules,
        .base_url = rig->url,
        .credential = "",
    };
    assert_int_equal(idem_http_port_create(rig->client, &rig->entry, 1, 1, &rig->port), IDEM_OK);
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

static void call_submit(struct rig *rig,
                        enum idem_call_kind kind,
                        const struct turn *turns,
                        size_t count)
{
    rig->call = (struct idem_call){
        .kind = kind,
        .not_after_us = INT64_MAX,
        .effect = {
            .kind = IDEM_EFFECT_KIND_CHARGE,
            .id = IDEM_STR(OUR_ID),
            .entry = IDEM_STR("script"),
            .amount_minor = 10000,
            .currency = IDEM_STR("CNY"),
        },
    };
    script = (struct script){ .turns = turns, .count = count, .call = &rig->call };
    assert_int_equal(idem_port_submit(rig->port, &rig->call), IDEM_OK);
}

static void call_wait(struct rig *rig)
{
    struct idem_list done = { .count = 0 };
    idem_port_reap(rig->port, &done);
    while (done.count == 0) {
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
        idem_port_reap(rig->port, &done);
    }
    assert_ptr_equal(idem_list_pop(&done), &rig->call.node);
    assert_int_equal(rig->call.evidence.source, idem_call_source(rig->call.kind));
}

static const struct {
    const char *what;
    struct turn turns[3];
    enum idem_outcome_kind outcome;
    const char *code;
    unsigned arrivals;
} rows[] = {
    { "one request",
      { { "/ok", false, false, IDEM_OUTCOME_SUCCESS, "a", false } },
      IDEM_OUTCOME_SUCCESS,
      "a",
      1 },
    { "the last word counts, and what it did not say over stays",
      { { "/ok", true, false, IDEM_OUTCOME_NOT_EXECUTED, "a", true },
        { "/ok", false, false, IDEM_OUTCOME_PROCESSING, "b", true },
        { "/ok", true, false, IDEM_OUTCOME_REFUSED_FINAL, NULL, false } },
      IDEM_OUTCOME_REFUSED_FINAL,
      "b",
      3 },
    { "a harmless first request is lost: not executed",
      { { "/close", true, false, IDEM_OUTCOME_SUCCESS, "a", true } },
      IDEM_OUTCOME_NOT_EXECUTED,
      "",
      1 },
    { "a first request is lost: unknown",
      { { "/close", false, false, IDEM_OUTCOME_SUCCESS, "a", true } },
      IDEM_OUTCOME_UNKNOWN,
      "",
      1 },
    { "half an answer is none",
      { { "/cut-body", false, false, IDEM_OUTCOME_SUCCESS, "a", true } },
      IDEM_OUTCOME_UNKNOWN,
      "",
      1 },
    { "the second is lost: unknown, whatever stood before",
      { { "/ok", true, false, IDEM_OUTCOME_NOT_EXECUTED, "a", true },
        { "/reset", false, false, IDEM_OUTCOME_SUCCESS, "b", false } },
      IDEM_OUTCOME_UNKNOWN,
      "a",
      2 },
    { "a harmless second is lost: what stood before stands",
      { { "/ok", false, false, IDEM_OUTCOME_PROCESSING, "a", true },
        { "/reset", true, false, IDEM_OUTCOME_SUCCESS, "b", false } },
      IDEM_OUTCOME_PROCESSING,
      "a",
      2 },
    { "the second does not leave in time: what stood before stands",
      { { "/ok", true, false, IDEM_OUTCOME_NOT_EXECUTED, "a", true },
        { "/ok", false, true, IDEM_OUTCOME_SUCCESS, "b", false } },
      IDEM_OUTCOME_NOT_EXECUTED,
      "a",
      1 },
    { "nothing is to be sent",
      { { NULL, false, false, IDEM_OUTCOME_REFUSED_FINAL, "a", false } },
      IDEM_OUTCOME_REFUSED_FINAL,
      "a",
      0 },
    { "nothing more is to be sent",
      { { "/ok", false, false, IDEM_OUTCOME_PROCESSING, "a", true },
        { NULL, false, false, IDEM_OUTCOME_SUCCESS, "b", false } },
      IDEM_OUTCOME_SUCCESS,
      "b",
      1 },
};

static size_t turn_count(const struct turn *turns)
{
    size_t count = 1;
    while (count < 3 && turns[count].says != IDEM_OUTCOME_NONE) {
        count += 1;
    }
    return count;
}

static void a_call_ends_as_its_requests_did(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct rig *rig = rig_create();
        call_submit(rig, IDEM_CALL_SEND, rows[i].turns, turn_count(rows[i].turns));
        call_wait(rig);
        bool same = rig->call.evidence.outcome == rows[i].outcome &&
                    idem_str_equal(rig->call.evidence.code, idem_str_from(rows[i].code)) &&
                    peer_arrivals(rig->peer) == rows[i].arrivals;
        if (!same) {
            print_error("%s: %s, %u arrivals\n", rows[i].what,
                        idem_outcome_kind_name(rig->call.evidence.outcome),
                        peer_arrivals(rig->peer));
            fail();
        }
        rig_destroy(rig);
    }
}

static void a_question_that_did_not_leave_has_learned_nothing(void **state)
{
    (void)state;
    static const struct turn turns[] = {
        { "/ok", true, true, IDEM_OUTCOME_SUCCESS, "a", false },
    };
    struct rig *rig = rig_create();
    call_submit(rig, IDEM_CALL_QUERY, turns, IDEM_ARRAY_COUNT(turns));
    call_wait(rig);
    assert_int_equal(rig->call.evidence.outcome, IDEM_OUTCOME_UNKNOWN);
    assert_int_equal(peer_arrivals(rig->peer), 0);
    rig_destroy(rig);
}

static void a_call_takes_only_so_many_steps(void **state)
{
    (void)state;
    static const struct turn turns[] = {
        { "/ok", false, false, IDEM_OUTCOME_PROCESSING, "a", true },
    };
    struct rig *rig = rig_create();
    call_submit(rig, IDEM_CALL_SEND, turns, IDEM_ARRAY_COUNT(turns));
    call_wait(rig);
    assert_int_equal(rig->call.evidence.outcome, IDEM_OUTCOME_PROCESSING);
    assert_int_equal(peer_arrivals(rig->peer), IDEM_WIRE_STEPS_MAX);
    rig_destroy(rig);
}

static void a_cancelled_call_takes_no_further_step(void **state)
{
    (void)state;
    static const struct turn turns[] = {
        { "/ok", true, false, IDEM_OUTCOME_NOT_EXECUTED, "a", true },
        { "/silent", false, false, IDEM_OUTCOME_SUCCESS, "b", true },
    };
    struct rig *rig = rig_create();
    struct idem_list none = { .count = 0 };

    call_submit(rig, IDEM_CALL_SEND, turns, IDEM_ARRAY_COUNT(turns));
    while (peer_arrivals(rig->peer) < 2) {
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
        idem_port_reap(rig->port, &none);
        assert_int_equal(none.count, 0);
    }
    idem_port_cancel(rig->port, &rig->call); /* The second is on the wire. */
    call_wait(rig);
    assert_int_equal(rig->call.evidence.outcome, IDEM_OUTCOME_UNKNOWN);

    call_submit(rig, IDEM_CALL_SEND, turns, IDEM_ARRAY_COUNT(turns));
    while (peer_arrivals(rig->peer) < 3) {
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
    for (int i = 0; i < 200; i++) { /* Its answer has come or not: nobody has reaped it. */
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
    idem_port_cancel(rig->port, &rig->call);
    call_wait(rig);
    assert_int_not_equal(rig->call.evidence.outcome, IDEM_OUTCOME_SUCCESS);
    assert_int_equal(peer_arrivals(rig->peer), 3);
    rig_destroy(rig);
}

static void an_answers_head_is_shown(void **state)
{
    (void)state;
    static const struct turn turns[] = {
        { "/set", false, false, IDEM_OUTCOME_SUCCESS, "a", false },
    };
    struct rig *rig = rig_create();
    peer_answer(rig->peer,
                "HTTP/1.1 200 OK\r\nStripe-Should-Retry: true\r\nRetry-After: 3\r\n"
                "Content-Length: 0\r\n\r\n");
    call_submit(rig, IDEM_CALL_SEND, turns, IDEM_ARRAY_COUNT(turns));
    call_wait(rig);
    assert_non_null(strstr(script.seen_head, "Stripe-Should-Retry: true\n"));
    assert_int_equal(rig->call.evidence.retry_after_us, 3 * IDEM_US_PER_SECOND);
    rig_destroy(rig);
}

static void too_long_a_reference_ends_the_call_as_unknown(void **state)
{
    (void)state;
    static const struct turn turns[] = {
        { "/ok", false, false, IDEM_OUTCOME_SUCCESS, "a", true },
    };
    char text[IDEM_REFERENCE_MAX + 1];
    struct rig *rig = rig_create();
    memset(text, 'a', sizeof(text));
    call_submit(rig, IDEM_CALL_SEND, turns, IDEM_ARRAY_COUNT(turns));
    script.reference = (struct idem_str){ .data = text, .len = sizeof(text) };
    call_wait(rig);
    assert_int_equal(rig->call.evidence.outcome, IDEM_OUTCOME_UNKNOWN);
    assert_int_equal(peer_arrivals(rig->peer), 1);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_ends_as_its_requests_did),
        cmocka_unit_test(a_question_that_did_not_leave_has_learned_nothing),
        cmocka_unit_test(a_call_takes_only_so_many_steps),
        cmocka_unit_test(a_cancelled_call_takes_no_further_step),
        cmocka_unit_test(an_answers_head_is_shown),
        cmocka_unit_test(too_long_a_reference_ends_the_call_as_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
