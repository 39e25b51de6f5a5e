/*
 * The operation's view.
 *
 * Goal: the view says what the record says, in every state, and shows neither keys, tokens nor what
 * goes to the provider.
 *
 * Method: whole views by example; then the largest possible view, which must fit a reply.
 */
#include "api/operation.h"

#include "api/reply.h"
#include "base/json.h"
#include "lib/test.h"
#include "store/store.h"

static char memory[IDEM_REPLY_BODY_MAX];

static struct idem_str view(const struct idem_operation *operation)
{
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_operation_print(operation, &buf);
    assert_false(buf.full);
    return idem_buf_str(&buf);
}

static struct idem_uid uid(const char *text)
{
    struct idem_uid id;
    assert_true(idem_uid_parse(idem_str_from(text), &id));
    return id;
}

static struct idem_intent intent_in(enum idem_intent_state state)
{
    return (struct idem_intent){
        .row = 1,
        .id = uid("0197b2f0-1111-7abc-8def-0123456789ab"),
        .key = IDEM_STR("secret-key"),
        .principal = IDEM_STR("alice"),
        .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
        .state = state,
        .created_us = INT64_C(1795960023000001),
        .updated_us = INT64_C(1795960024000000),
        .effect = { .request = IDEM_STR("secret-request") },
        .payment_id = uid("0197b2f0-2222-7abc-8def-0123456789ab"),
    };
}

#define HEAD \
    "{\"id\":\"0197b2f0-1111-7abc-8def-0123456789ab\",\"endpoint\":\"payments.create\",\"state\":"
#define TIMES                                      \
    ",\"created\":\"2026-11-29T13:47:03.000001Z\"" \
    ",\"updated\":\"2026-11-29T13:47:04.000000Z\""
#define LINKS ",\"payment\":\"/v1/payments/0197b2f0-2222-7abc-8def-0123456789ab\",\"refund\":null"

static void a_running_operation_shows_its_attempts_and_timeline(void **state)
{
    (void)state;
    struct idem_intent intent = intent_in(IDEM_INTENT_UNKNOWN);
    intent.unknown_since_us = INT64_C(1795960023500000);
    const struct idem_send sends[] = {
        { .no = 1,
          .epoch = 1,
          .state = IDEM_SEND_NOT_EXECUTED,
          .granted_us = INT64_C(1795960023000001),
          .not_after_us = INT64_C(1795960053000001) },
        { .no = 2, .epoch = 2, .state = IDEM_SEND_OPEN, .granted_us = 1, .not_after_us = 2 },
    };
    const struct idem_event events[] = {
        { .kind = IDEM_EVENT_DISPATCHED,
          .cause = IDEM_CAUSE_REQUEST,
          .at_us = INT64_C(1795960023000001),
          .epoch = 1,
          .send_no = 1,
          .detail = IDEM_STR("a \"quoted\" word") },
        { .kind = IDEM_EVENT_SEND_SILENT, .cause = IDEM_CAUSE_PROVIDER, .at_us = 1, .epoch = 2 },
    };
    const struct idem_operation operation = {
        .intent = &intent,
        .sends = sends,
        .send_count = 2,
        .events = events,
        .event_count = 2,
        .event_total = 5,
    };
    char expected[2048];
    (void)snprintf(expected, sizeof(expected),
                   HEAD "\"unknown\"" TIMES
                        ",\"unknown_since\":\"2026-11-29T13:47:03.500000Z\""
                        ",\"finished\":null,\"expires\":null" LINKS
                        ",\"attempts\":["
                        "{\"send\":1,\"epoch\":1,\"state\":\"not-executed\""
                        ",\"granted\":\"2026-11-29T13:47:03.000001Z\""
                        ",\"not_after\":\"2026-11-29T13:47:33.000001Z\"},"
                        "{\"send\":2,\"epoch\":2,\"state\":\"open\""
                        ",\"granted\":\"1970-01-01T00:00:00.000001Z\""
                        ",\"not_after\":\"1970-01-01T00:00:00.000002Z\"}]"
                        ",\"timeline\":["
                        "{\"at\":\"2026-11-29T13:47:03.000001Z\",\"kind\":\"%s\",\"cause\":\"%s\""
                        ",\"epoch\":1,\"send\":1,\"detail\":\"a \\\"quoted\\\" word\"},"
                        "{\"at\":\"1970-01-01T00:00:00.000001Z\",\"kind\":\"%s\",\"cause\":\"%s\""
                        ",\"epoch\":2,\"send\":0,\"detail\":null}]"
                        ",\"timeline_total\":5,\"answer\":null}\n",
                   idem_event_kind_name(IDEM_EVENT_DISPATCHED), idem_cause_name(IDEM_CAUSE_REQUEST),
                   idem_event_kind_name(IDEM_EVENT_SEND_SILENT),
                   idem_cause_name(IDEM_CAUSE_PROVIDER));
    EXPECT_TEXT(view(&operation), expected);
}

static void a_final_operation_shows_its_answer(void **state)
{
    (void)state;
    struct idem_intent intent = intent_in(IDEM_INTENT_SUCCEEDED);
    intent.finished_us = intent.updated_us;
    intent.expires_us = INT64_C(1798552024000000);
    intent.answer = (struct idem_answer){
        .status = 201,
        .headers = IDEM_STR("Content-Type: application/json\nLocation: /v1/payments/1\n"),
        .body = IDEM_STR("{\"state\":\"captured\"}\n"),
    };
    const struct idem_operation operation = { .intent = &intent };
    EXPECT_TEXT(view(&operation), HEAD "\"succeeded\"" TIMES
                                       ",\"unknown_since\":null"
                                       ",\"finished\":\"2026-11-29T13:47:04.000000Z\""
                                       ",\"expires\":\"2026-12-29T13:47:04.000000Z\"" LINKS
                                       ",\"attempts\":[],\"timeline\":[],\"timeline_total\":0"
                                       ",\"answer\":{\"status\":201,\"headers\":{\"Content-Type\":"
                                       "\"application/json\",\"Location\":\"/v1/payments/1\"}"
                                       ",\"body\":{\"state\":\"captured\"}}}\n");
}

static struct idem_str answer_part(struct idem_answer answer)
{
    struct idem_intent intent = intent_in(IDEM_INTENT_SUCCEEDED);
    intent.answer = answer;
    const struct idem_operation operation = { .intent = &intent };
    struct idem_str text = view(&operation);
    const char *found = strstr(text.data, ",\"answer\":");
    assert_non_null(found);
    return idem_str_slice(text, (size_t)(found - text.data), text.len);
}

static void an_answer_that_is_not_json_is_shown_as_text(void **state)
{
    (void)state;
    EXPECT_TEXT(answer_part((struct idem_answer){
                    .status = 200,
                    .headers = IDEM_STR("Content-Type: text/plain\n"),
                    .body = IDEM_STR("{ no json\n"),
                }),
                ",\"answer\":{\"status\":200,\"headers\":{\"Content-Type\":\"text/plain\"}"
                ",\"body\":\"{ no json\\n\"}}\n");
    EXPECT_TEXT(answer_part((struct idem_answer){
                    .status = 200,
                    .headers = IDEM_STR("Content-Type: application/octet-stream\n"),
                    .body = IDEM_STR("\xFF\xFE"),
                }),
                ",\"answer\":{\"status\":200,\"headers\":{\"Content-Type\":"
                "\"application/octet-stream\"},\"body\":null}}\n");
    EXPECT_TEXT(answer_part((struct idem_answer){ .status = 204 }),
                ",\"answer\":{\"status\":204,\"headers\":{},\"body\":null}}\n");
}

static void a_forgotten_answer_makes_the_operation_expired(void **state)
{
    (void)state;
    struct idem_intent intent = intent_in(IDEM_INTENT_FAILED);
    const struct idem_operation operation = { .intent = &intent };
    assert_true(idem_str_starts(view(&operation), IDEM_STR(HEAD "\"expired\"")));
}

static void nothing_secret_is_shown(void **state)
{
    (void)state;
    for (enum idem_intent_state s = IDEM_INTENT_NONE + 1; s < IDEM_INTENT_COUNT; s++) {
        struct idem_intent intent = intent_in(s);
        memset(intent.token.bytes, 0xEE, sizeof(intent.token.bytes));
        const struct idem_operation operation = { .intent = &intent };
        struct idem_str text = view(&operation);
        assert_null(memmem(text.data, text.len, "secret", 6));
        assert_null(memmem(text.data, text.len, "eeee", 4));
    }
}

/* As much text as a read can hold, all of it in bytes that JSON writes as six. */
static void the_largest_view_fits_a_reply(void **state)
{
    static char text[IDEM_READ_MEMORY_MAX];
    static struct idem_send sends[IDEM_SENDS_MAX];
    static struct idem_event events[IDEM_READ_EVENTS_MAX];
    (void)state;
    memset(text, 'x', sizeof(text));
    memset(text, 1, IDEM_ANSWER_MAX);
    struct idem_intent intent = intent_in(IDEM_INTENT_SUCCEEDED);
    intent.answer = (struct idem_answer){ .status = 200, .body = { text, IDEM_ANSWER_MAX } };
    for (size_t i = 0; i < IDEM_SENDS_MAX; i++) {
        sends[i] = (struct idem_send){
            .no = UINT32_MAX,
            .epoch = UINT32_MAX,
            .state = IDEM_SEND_NOT_EXECUTED,
            .granted_us = INT64_C(1795960023000001),
            .not_after_us = INT64_C(1795960023000001),
        };
    }
    const size_t rest = (sizeof(text) - IDEM_ANSWER_MAX) / IDEM_READ_EVENTS_MAX;
    for (size_t i = 0; i < IDEM_READ_EVENTS_MAX; i++) {
        events[i] = (struct idem_event){
            .kind = IDEM_EVENT_SEND_NOT_EXECUTED,
            .cause = IDEM_CAUSE_PROVIDER,
            .at_us = INT64_C(1795960023000001),
            .epoch = UINT32_MAX,
            .send_no = UINT32_MAX,
            .detail = { text + IDEM_ANSWER_MAX + i * rest, rest },
        };
    }
    const struct idem_operation operation = {
        .intent = &intent,
        .sends = sends,
        .send_count = IDEM_SENDS_MAX,
        .events = events,
        .event_count = IDEM_READ_EVENTS_MAX,
        .event_total = SIZE_MAX / 2,
    };
    assert_true(view(&operation).len > IDEM_READ_MEMORY_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_operation_shows_its_attempts_and_timeline),
        cmocka_unit_test(a_final_operation_shows_its_answer),
        cmocka_unit_test(an_answer_that_is_not_json_is_shown_as_text),
        cmocka_unit_test(a_forgotten_answer_makes_the_operation_expired),
        cmocka_unit_test(nothing_secret_is_shown),
        cmocka_unit_test(the_largest_view_fits_a_reply),
    };
    return cmocka_run_group_tests_name("api/operation", tests, NULL, NULL);
}
