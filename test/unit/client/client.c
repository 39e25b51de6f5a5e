/*
 * The client as a program uses it, against a peer that misbehaves.
 *
 * Goal: the contract of idem/client.h: what is refused before anything leaves, one key and the same
 * bytes for every try, a name that is bound to its request, verdicts, a run inside a foreign event
 * loop, stopping, limits, time.
 *
 * Method: real sockets and journals; the peer counts what arrives. Time is the system's, moved by
 * what a test says. How answers are read and what follows has tests of its own (meaning, course);
 * idem itself is asked in test/client.
 */
#include <poll.h>
#include <sys/wait.h>

#include "client/request.h"
#include "unit/client/client_scene.h"

/* The line of the last request that begins with `name`. */
static void line_of_last(struct scene *scene, const char *name, char *ret_line, size_t size)
{
    char request[PEER_REQUEST_MAX];
    peer_last_request(scene->peer, request);
    const char *line = strstr(request, name);
    assert_non_null(line);
    (void)snprintf(ret_line, size, "%.*s", (int)strcspn(line, "\r\n"), line);
}

static void expect_nothing_happened(struct scene *scene)
{
    struct idem_client_entry entry;
    assert_int_equal(idem_client_next(scene->client, 0, false, &entry, &scene->error),
                     IDEM_CLIENT_E_UNKNOWN);
    assert_int_equal(peer_arrivals(scene->peer), 0);
}

static void expect_refused(struct scene *scene, const struct idem_client_request *request)
{
    struct idem_client_intent *intent = NULL;
    assert_int_equal(idem_client_intend(scene->client, request, &intent, &scene->error),
                     IDEM_CLIENT_E_INVALID);
    assert_null(intent);
    assert_null(strstr(scene->error.text, "secret")); /* What may be one is not shown. */
}

static void fields_that_are_not_a_caller_s_to_set_are_refused(void **state)
{
    struct scene *scene = *state;
    static const char *const lines[] = {
        "Authorization: Bearer x",
        "cookie: a=b",
        "x-api-key: x",
        "X-Access-Token: x",
        "Client-Secret: x",
        "IDEMPOTENCY-key: other",
        "repeatability-first-sent: Sun, 29 Nov 2026 21:44:44 GMT",
        "no colon",
        ": no name",
        "Bad name: x",
        "X-Split: a\r\nB: c",
        "Host: elsewhere",
        "Content-Length: 3",
        "Transfer-Encoding: chunked",
        "Expect: 100-continue",
        "te: trailers",
        "Upgrade: h2c",
        "Accept-Encoding: gzip",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(lines); i++) {
        struct idem_client_request request = request_of(scene, "name", "/ok");
        request.dialect = "idem";
        request.headers = &lines[i];
        request.header_count = 1;
        expect_refused(scene, &request);
        assert_non_null(strstr(scene->error.text, "nothing was sent"));
    }
    static const char *const credentials[] = {
        "Idempotency-Key: x", "Host: x", "Content-Length: 1", "no colon", "A: b\nC: d",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(credentials); i++) {
        struct idem_client_request request = request_of(scene, "name", "/ok");
        request.credential = credentials[i];
        expect_refused(scene, &request);
    }
    expect_nothing_happened(scene);
}

/* As it was written down before such a line was refused. */
static void begin_as_of_old(struct scene *scene, const struct idem_client_request *request)
{
    const struct idem_dialect *dialect = idem_dialect_find(idem_str_from(request->dialect));
    struct idem_client_record record;
    struct idem_client_record *list = &record;
    assert_int_equal(idem_request_record(scene->client, request, dialect, &record, &scene->error),
                     IDEM_CLIENT_OK);
    record.begun_us = record.created_us;
    record.first = idem_client_now(scene->client);
    record.doubt = true;
    assert_int_equal(idem_client_journal_begin(scene->client->journal, &list, 1, &scene->error),
                     IDEM_CLIENT_OK);
    idem_client_record_clear(&record);
}

static void what_was_begun_with_a_field_that_is_refused_now_goes_on(void **state)
{
    struct scene *scene = *state;
    const char *const lines[] = { "Accept-Encoding: gzip" };
    char line[64];
    struct idem_client_request request = request_of(scene, "order-1", "/ok");
    request.headers = lines;
    request.header_count = 1;
    begin_as_of_old(scene, &request);
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);
    line_of_last(scene, "Accept-Encoding", line, sizeof(line));
    assert_string_equal(line, lines[0]);
    request.name = "order-2";
    expect_refused(scene, &request);
    request.header_count = 0;
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);
    line_of_last(scene, "Accept-Encoding", line, sizeof(line));
    assert_string_equal(line, "Accept-Encoding: identity");
}

static void what_could_not_be_repeated_safely_is_refused_before_anything_leaves(void **state)
{
    struct scene *scene = *state;
    const struct idem_client_request good = request_of(scene, "name", "/ok");
    char long_name[IDEM_CLIENT_NAME_MAX + 2];
    memset(long_name, 'n', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    char long_key[67];
    memset(long_key, 'k', sizeof(long_key));
    long_key[sizeof(long_key) - 1] = '\0';

    struct idem_client_request bad[14];
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bad); i++) {
        bad[i] = good;
    }
    bad[0].size = 8;
    bad[1].name = NULL;
    bad[2].name = long_name;
    bad[3].name = "line\nend";
    bad[4].method = "GET";
    bad[5].url = "ftp://127.0.0.1/";
    bad[6].url = "http://user:secret@127.0.0.1/";
    bad[7].url = NULL;
    bad[8].dialect = "soap";
    bad[9].dialect = "adyen";
    bad[9].key = long_key;
    bad[10].key = "with space";
    bad[11].body_size = IDEM_CLIENT_BODY_MAX + 1;
    bad[12].deadline_ms = -1;
    bad[13].credential = "Authorization: Bearer x";
    bad[13].url = "http://192.0.2.1/";
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bad); i++) {
        expect_refused(scene, &bad[i]);
    }
    expect_nothing_happened(scene);
}

static void a_name_runs_once_and_is_bound_to_its_request(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/ok");
    struct idem_client_intent *first = intend(scene, &request);
    const struct idem_client_verdict *verdict = run(scene, first);
    assert_int_equal(verdict->outcome, IDEM_CLIENT_DONE);
    assert_int_equal(verdict->status, 200);
    assert_memory_equal(verdict->body, "fine", 4);
    assert_true(verdict->over);
    assert_true(verdict->recorded);
    assert_int_equal(peer_arrivals(scene->peer), 1);

    /* Again, by another client, after the first is gone: the journal's answer, nothing is sent. */
    idem_client_close(scene->client);
    client_open(scene);
    struct idem_client_intent *second = intend(scene, &request);
    verdict = run(scene, second);
    assert_int_equal(verdict->outcome, IDEM_CLIENT_DONE);
    assert_memory_equal(verdict->body, "fine", 4);
    assert_int_equal(peer_arrivals(scene->peer), 1);

    request.body = "amount=2";
    struct idem_client_intent *other = NULL;
    assert_int_equal(idem_client_intend(scene->client, &request, &other, &scene->error),
                     IDEM_CLIENT_E_MISMATCH);
    assert_non_null(strstr(scene->error.text, "body"));
    assert_int_equal(idem_client_renew(second, NULL, &scene->error), IDEM_CLIENT_E_REFUSED);
    assert_int_equal(peer_arrivals(scene->peer), 1);
}

static void a_lost_answer_is_unknown_and_goes_on_under_one_key(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/close");
    struct idem_client_intent *intent = intend(scene, &request);
    const struct idem_client_verdict *verdict = run(scene, intent);
    assert_int_equal(verdict->outcome, IDEM_CLIENT_UNKNOWN);
    assert_false(verdict->renewable);
    assert_false(verdict->over);
    assert_true(verdict->sends >= 2);
    assert_int_equal(verdict->sends, peer_arrivals(scene->peer));
    assert_int_equal(idem_client_renew(intent, NULL, &scene->error), IDEM_CLIENT_E_REFUSED);
    char line[128];
    char key[128];
    line_of_last(scene, "Idempotency-Key:", line, sizeof(line));
    (void)snprintf(key, sizeof(key), "Idempotency-Key: \"%s\"", idem_client_key(intent));
    assert_string_equal(line, key);

    idem_client_close(scene->client);
    client_open(scene);
    assert_int_equal(idem_client_resume(scene->client, "order-1", NULL, &intent, &scene->error),
                     IDEM_CLIENT_OK);
    assert_int_equal(idem_client_verdict(intent)->outcome, IDEM_CLIENT_UNKNOWN);
    verdict = run(scene, intent);
    assert_int_equal(verdict->outcome, IDEM_CLIENT_UNKNOWN);
    line_of_last(scene, "Idempotency-Key:", line, sizeof(line));
    assert_string_equal(line, key);
}

static void what_never_left_is_refused_and_may_take_a_new_key(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/ok");
    request.url = "http://127.0.0.1:1/"; /* Nobody listens there. */
    request.deadline_ms = 300;
    struct idem_client_intent *intent = intend(scene, &request);
    const struct idem_client_verdict *verdict = run(scene, intent);
    assert_int_equal(verdict->outcome, IDEM_CLIENT_REFUSED);
    assert_int_equal(verdict->reason, IDEM_CLIENT_NOT_SENT);
    assert_true(verdict->renewable);
    assert_false(verdict->over);

    char key[256];
    (void)snprintf(key, sizeof(key), "%s", idem_client_key(intent));
    struct idem_client_request corrected = request_of(scene, "order-1", "/ok");
    assert_int_equal(idem_client_renew(intent, &corrected, &scene->error), IDEM_CLIENT_OK);
    assert_string_not_equal(idem_client_key(intent), key);
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_DONE);
    assert_int_equal(peer_arrivals(scene->peer), 1);
}

static void a_key_that_was_brought_is_never_said_to_have_done_nothing(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/ok");
    request.key = "from-elsewhere";
    request.url = "http://127.0.0.1:1/";
    request.deadline_ms = 200;
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_UNKNOWN);
}

static void many_run_in_a_loop_that_is_not_ours(void **state)
{
    enum {
        COUNT = 100
    };
    struct scene *scene = *state;
    struct idem_client_intent *intents[COUNT];
    for (int i = 0; i < COUNT; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "order-%d", i);
        struct idem_client_request request =
            request_of(scene, name, i % 10 == 0 ? "/chunked" : "/ok");
        request.deadline_ms = 20000;
        intents[i] = intend(scene, &request);
    }
    assert_int_equal(idem_client_submit(scene->client, intents, COUNT, &scene->error),
                     IDEM_CLIENT_OK);
    assert_int_equal(idem_client_submit(scene->client, intents, 1, &scene->error),
                     IDEM_CLIENT_E_BUSY);
    int done = 0;
    while (done < COUNT) {
        idem_client_perform(scene->client, 0);
        struct idem_client_intent *intent;
        while ((intent = idem_client_reap(scene->client)) != NULL) {
            assert_int_equal(idem_client_verdict(intent)->outcome, IDEM_CLIENT_DONE);
            done += 1;
        }
        struct pollfd ready = { .fd = idem_client_fd(scene->client), .events = POLLIN };
        if (done < COUNT) { /* Without a time of its own: it must tell the loop everything. */
            assert_true(poll(&ready, 1, idem_client_timeout_ms(scene->client)) >= 0);
        }
    }
    assert_int_equal(peer_arrivals(scene->peer), COUNT);
}

static void a_stop_says_what_is_known_at_that_moment(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "sent", "/silent");
    request.deadline_ms = 30000;
    struct idem_client_intent *sent = intend(scene, &request);
    request = request_of(scene, "unsent", "/ok");
    request.url = "http://127.0.0.1:1/";
    request.deadline_ms = 30000;
    struct idem_client_intent *unsent = intend(scene, &request);
    struct idem_client_intent *both[] = { sent, unsent };
    assert_int_equal(idem_client_submit(scene->client, both, 2, &scene->error), IDEM_CLIENT_OK);
    while (peer_arrivals(scene->peer) == 0) {
        idem_client_perform(scene->client, 10);
    }
    struct idem_client_progress progress;
    idem_client_progress(sent, &progress);
    assert_int_equal(progress.phase, IDEM_CLIENT_SENDING);
    assert_true(progress.remaining_ms > 20000);
    idem_client_stop(sent);
    idem_client_stop(unsent);
    idem_client_perform(scene->client, 100);
    assert_non_null(idem_client_reap(scene->client));
    assert_non_null(idem_client_reap(scene->client));
    assert_int_equal(idem_client_verdict(sent)->outcome, IDEM_CLIENT_UNKNOWN);
    assert_int_equal(idem_client_verdict(sent)->reason, IDEM_CLIENT_STOPPED);
    assert_int_equal(idem_client_verdict(unsent)->outcome, IDEM_CLIENT_REFUSED);
}

static void a_close_in_the_middle_leaves_what_can_be_resumed(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/silent");
    request.deadline_ms = 30000;
    struct idem_client_intent *intent = intend(scene, &request);
    assert_int_equal(idem_client_submit(scene->client, &intent, 1, &scene->error), IDEM_CLIENT_OK);
    while (peer_arrivals(scene->peer) == 0) {
        idem_client_perform(scene->client, 10);
    }
    idem_client_close(scene->client);
    client_open(scene);
    struct idem_client_entry entry;
    assert_int_equal(idem_client_next(scene->client, 0, true, &entry, &scene->error),
                     IDEM_CLIENT_OK);
    assert_string_equal(entry.name, "order-1");
    assert_int_equal(entry.outcome, IDEM_CLIENT_UNKNOWN);
    assert_int_equal(idem_client_forget(scene->client, "order-1", &scene->error),
                     IDEM_CLIENT_E_REFUSED);
}

static void a_calendar_set_back_changes_nothing_and_a_passed_window_ends_sending(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/close");
    request.deadline_ms = 300;
    struct idem_client_intent *intent = intend(scene, &request);
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_UNKNOWN);
    unsigned arrivals = peer_arrivals(scene->peer);

    scene->clock.wall_ahead_us = -INT64_C(3650) * IDEM_US_PER_DAY;
    (void)run(scene, intent);
    assert_true(peer_arrivals(scene->peer) > arrivals); /* This boot's clock knows better. */
    arrivals = peer_arrivals(scene->peer);

    /* Either clock is believed when it says that time has passed. */
    const int64_t ahead[][2] = { { 0, IDEM_US_PER_DAY }, { IDEM_US_PER_DAY, 0 } };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(ahead); i++) {
        scene->clock.wall_ahead_us = ahead[i][0];
        scene->clock.mono_ahead_us = ahead[i][1];
        const struct idem_client_verdict *verdict = run(scene, intent);
        assert_int_equal(verdict->outcome, IDEM_CLIENT_UNKNOWN);
        assert_int_equal(verdict->reason, IDEM_CLIENT_WINDOW);
        assert_int_equal(verdict->sends, 0);
        assert_int_equal(peer_arrivals(scene->peer), arrivals);
    }
}

static void a_window_counts_from_what_may_have_left(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/ok");
    request.url = "http://127.0.0.1:1/";
    request.deadline_ms = 100;
    struct idem_client_intent *intent = intend(scene, &request);
    assert_int_equal(run(scene, intent)->reason, IDEM_CLIENT_NOT_SENT);
    scene->clock.mono_ahead_us = 10 * IDEM_US_PER_DAY;
    scene->clock.wall_ahead_us = 10 * IDEM_US_PER_DAY;
    const struct idem_client_verdict *verdict = run(scene, intent);
    assert_int_equal(verdict->reason, IDEM_CLIENT_NOT_SENT);
    assert_true(verdict->sends > 0);
}

static void a_person_ends_what_nobody_can_tell_and_only_that(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/close");
    request.deadline_ms = 200;
    assert_int_equal(idem_client_decide(scene->client, "order-1", true, "seen", &scene->error),
                     IDEM_CLIENT_E_UNKNOWN);
    struct idem_client_intent *intent = intend(scene, &request);
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_UNKNOWN);
    assert_int_equal(idem_client_decide(scene->client, "order-1", true, "", &scene->error),
                     IDEM_CLIENT_E_INVALID);
    assert_int_equal(
        idem_client_decide(scene->client, "order-1", false, "not on the statement", &scene->error),
        IDEM_CLIENT_OK);
    assert_int_equal(idem_client_decide(scene->client, "order-1", true, "seen", &scene->error),
                     IDEM_CLIENT_E_REFUSED);
    unsigned arrivals = peer_arrivals(scene->peer);
    idem_client_release(intent);
    intent = intend(scene, &request);
    const struct idem_client_verdict *verdict = run(scene, intent);
    assert_int_equal(verdict->outcome, IDEM_CLIENT_REFUSED);
    assert_int_equal(verdict->reason, IDEM_CLIENT_DECIDED);
    assert_non_null(strstr(verdict->message, "not on the statement"));
    assert_int_equal(peer_arrivals(scene->peer), arrivals);
    assert_int_equal(idem_client_renew(intent, NULL, &scene->error), IDEM_CLIENT_OK);
}

static void another_credential_is_refused_while_there_is_doubt(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/close");
    request.deadline_ms = 200;
    request.credential = "Authorization: Bearer one";
    struct idem_client_intent *intent = intend(scene, &request);
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_UNKNOWN);
    idem_client_release(intent);
    unsigned arrivals = peer_arrivals(scene->peer);

    request.credential = "Authorization: Bearer two";
    intent = intend(scene, &request);
    assert_int_equal(idem_client_run(intent, &scene->error), IDEM_CLIENT_E_REFUSED);
    assert_non_null(strstr(scene->error.text, "another credential"));
    assert_int_equal(peer_arrivals(scene->peer), arrivals);
    assert_int_equal(idem_client_verdict(intent)->outcome, IDEM_CLIENT_UNKNOWN);
    idem_client_same_account(intent);
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_UNKNOWN);
    assert_true(peer_arrivals(scene->peer) > arrivals);
}

static void without_doubt_a_wrong_credential_is_put_right_under_the_same_key(void **state)
{
    struct scene *scene = *state;
    peer_answer(scene->peer, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    struct idem_client_request request = request_of(scene, "order-1", "/set");
    request.credential = "Authorization: Bearer wrong";
    struct idem_client_intent *intent = intend(scene, &request);
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_REFUSED);
    char key[256];
    (void)snprintf(key, sizeof(key), "%s", idem_client_key(intent));
    idem_client_release(intent);
    peer_answer(scene->peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    request.credential = "Authorization: Bearer right";
    intent = intend(scene, &request);
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_DONE);
    assert_string_equal(idem_client_key(intent), key);
}

static void a_handle_that_is_behind_the_journal_is_refused(void **state)
{
    struct scene *scene = *state;
    static const char problem[] =
        "{\"type\":\"urn:idem:problem:declined\",\"title\":\"no\","
        "\"status\":402,\"effect\":\"none\",\"retry\":\"new-key\"}";
    char answer[512];
    (void)snprintf(answer, sizeof(answer),
                   "HTTP/1.1 402 Payment Required\r\nContent-Length: %zu\r\n"
                   "Content-Type: application/problem+json\r\n\r\n%s",
                   sizeof(problem) - 1, problem);
    peer_answer(scene->peer, answer);
    struct idem_client_request request = request_of(scene, "order-1", "/set");
    struct idem_client_intent *first = intend(scene, &request);
    const struct idem_client_verdict *verdict = run(scene, first);
    assert_int_equal(verdict->outcome, IDEM_CLIENT_REFUSED);
    assert_true(verdict->over);
    struct idem_client_intent *stale = intend(scene, &request);
    assert_int_equal(idem_client_renew(first, NULL, &scene->error), IDEM_CLIENT_OK);
    assert_int_equal(idem_client_run(stale, &scene->error), IDEM_CLIENT_E_BUSY);
    assert_int_equal(idem_client_renew(stale, NULL, &scene->error), IDEM_CLIENT_E_BUSY);
    struct idem_client_intent *twice[] = { first, first };
    assert_int_equal(idem_client_submit(scene->client, twice, 2, &scene->error),
                     IDEM_CLIENT_E_BUSY);
}

static void an_idle_client_wakes_nobody_and_a_submit_wakes_at_once(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(idem_client_timeout_ms(scene->client), -1);
    struct idem_client_request request = request_of(scene, "slow", "/silent");
    request.deadline_ms = 30000;
    struct idem_client_intent *slow = intend(scene, &request);
    assert_int_equal(idem_client_submit(scene->client, &slow, 1, &scene->error), IDEM_CLIENT_OK);
    assert_int_equal(idem_client_timeout_ms(scene->client), 0);
    while (peer_arrivals(scene->peer) == 0) {
        idem_client_perform(scene->client, 10);
    }
    idem_client_perform(scene->client, 20);
    assert_true(idem_client_timeout_ms(scene->client) > 0);
    request = request_of(scene, "quick", "/ok");
    struct idem_client_intent *quick = intend(scene, &request);
    assert_int_equal(idem_client_submit(scene->client, &quick, 1, &scene->error), IDEM_CLIENT_OK);
    assert_int_equal(idem_client_timeout_ms(scene->client), 0);
    idem_client_stop(slow);
    idem_client_stop(quick);
    assert_int_equal(idem_client_timeout_ms(scene->client), 0);
    idem_client_perform(scene->client, 1000);
    while (idem_client_reap(scene->client) != NULL) {
    }
    /* Beside a slow one, a run of one's own is not kept waiting. */
    slow = intend(scene, &(struct idem_client_request){ .size = sizeof(request),
                                                        .name = "slow-2",
                                                        .method = "POST",
                                                        .url = url_of(scene, "/silent"),
                                                        .dialect = "ietf",
                                                        .deadline_ms = 30000 });
    assert_int_equal(idem_client_submit(scene->client, &slow, 1, &scene->error), IDEM_CLIENT_OK);
    idem_client_perform(scene->client, 0);
    request = request_of(scene, "beside", "/ok");
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);
}

static void what_was_done_and_not_written_down_is_never_refused_later(void **state)
{
    struct scene *scene = *state;
    char lock[128];
    char away[128];
    (void)snprintf(lock, sizeof(lock), "%s-lock", scene->journal);
    (void)snprintf(away, sizeof(away), "%s-away", scene->journal);
    peer_answer(scene->peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    struct idem_client_request request = request_of(scene, "order-1", "/set");
    struct idem_client_intent *intent = intend(scene, &request);
    assert_int_equal(idem_client_submit(scene->client, &intent, 1, &scene->error), IDEM_CLIENT_OK);
    assert_int_equal(rename(lock, away), 0); /* The journal refuses to be written. */
    while (idem_client_reap(scene->client) == NULL) {
        idem_client_perform(scene->client, 100);
    }
    assert_int_equal(idem_client_verdict(intent)->outcome, IDEM_CLIENT_DONE);
    assert_false(idem_client_verdict(intent)->recorded);
    assert_int_equal(rename(away, lock), 0);

    peer_answer(scene->peer, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_UNKNOWN);
    assert_int_equal(idem_client_renew(intent, NULL, &scene->error), IDEM_CLIENT_E_REFUSED);
}

static void a_child_after_a_fork_can_do_nothing_with_it(void **state)
{
    struct scene *scene = *state;
    struct idem_client_request request = request_of(scene, "order-1", "/ok");
    struct idem_client_intent *intent = intend(scene, &request);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct idem_client_intent *other = NULL;
        struct idem_client_entry entry;
        int64_t count;
        const enum idem_client_err errs[] = {
            idem_client_run(intent, &scene->error),
            idem_client_renew(intent, NULL, &scene->error),
            idem_client_intend(scene->client, &request, &other, &scene->error),
            idem_client_resume(scene->client, "order-1", NULL, &other, &scene->error),
            idem_client_next(scene->client, 0, false, &entry, &scene->error),
            idem_client_forget(scene->client, "order-1", &scene->error),
            idem_client_forget_older(scene->client, INT64_MAX, &count, &scene->error),
            idem_client_decide(scene->client, "order-1", true, "seen", &scene->error),
        };
        bool refused = true;
        for (size_t i = 0; i < IDEM_ARRAY_COUNT(errs); i++) {
            refused = refused && errs[i] == IDEM_CLIENT_E_SYSTEM;
        }
        idem_client_perform(scene->client, 0);
        idem_client_close(scene->client);
        _exit(refused ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(run(scene, intent)->outcome, IDEM_CLIENT_DONE);
    assert_int_equal(peer_arrivals(scene->peer), 1);
}

static void limits_hold_at_the_limit(void **state)
{
    struct scene *scene = *state;
    static char line[IDEM_CLIENT_HEADER_SIZE + 1];
    memset(line, 'x', sizeof(line));
    memcpy(line, "X-Long: ", 8);
    const char *lines[IDEM_CLIENT_HEADERS_MAX + 1];
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(lines); i++) {
        lines[i] = "X-Many: 1";
    }
    struct idem_client_request request = request_of(scene, "long", "/ok");
    const char *one = line;
    request.headers = &one;
    request.header_count = 1;
    line[IDEM_CLIENT_HEADER_SIZE] = '\0';
    struct idem_client_intent *intent = NULL;
    assert_int_equal(idem_client_intend(scene->client, &request, &intent, &scene->error),
                     IDEM_CLIENT_E_INVALID);
    line[IDEM_CLIENT_HEADER_SIZE - 1] = '\0';
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);

    request = request_of(scene, "many", "/ok");
    request.headers = lines;
    request.header_count = IDEM_CLIENT_HEADERS_MAX + 1;
    assert_int_equal(idem_client_intend(scene->client, &request, &intent, &scene->error),
                     IDEM_CLIENT_E_INVALID);
    request.header_count = IDEM_CLIENT_HEADERS_MAX;
    assert_int_equal(run(scene, intend(scene, &request))->outcome, IDEM_CLIENT_DONE);

    struct idem_client_intent *too_many[1] = { intent };
    assert_int_equal(
        idem_client_submit(scene->client, too_many, IDEM_CLIENT_RUNS_MAX + 1, &scene->error),
        IDEM_CLIENT_E_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_A_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        IN_A_SCENE(fields_that_are_not_a_caller_s_to_set_are_refused),
        IN_A_SCENE(what_was_begun_with_a_field_that_is_refused_now_goes_on),
        IN_A_SCENE(what_could_not_be_repeated_safely_is_refused_before_anything_leaves),
        IN_A_SCENE(a_name_runs_once_and_is_bound_to_its_request),
        IN_A_SCENE(a_lost_answer_is_unknown_and_goes_on_under_one_key),
        IN_A_SCENE(what_never_left_is_refused_and_may_take_a_new_key),
        IN_A_SCENE(a_key_that_was_brought_is_never_said_to_have_done_nothing),
        IN_A_SCENE(many_run_in_a_loop_that_is_not_ours),
        IN_A_SCENE(a_stop_says_what_is_known_at_that_moment),
        IN_A_SCENE(a_close_in_the_middle_leaves_what_can_be_resumed),
        IN_A_SCENE(a_calendar_set_back_changes_nothing_and_a_passed_window_ends_sending),
        IN_A_SCENE(a_window_counts_from_what_may_have_left),
        IN_A_SCENE(a_person_ends_what_nobody_can_tell_and_only_that),
        IN_A_SCENE(another_credential_is_refused_while_there_is_doubt),
        IN_A_SCENE(without_doubt_a_wrong_credential_is_put_right_under_the_same_key),
        IN_A_SCENE(a_handle_that_is_behind_the_journal_is_refused),
        IN_A_SCENE(an_idle_client_wakes_nobody_and_a_submit_wakes_at_once),
        IN_A_SCENE(what_was_done_and_not_written_down_is_never_refused_later),
        IN_A_SCENE(a_child_after_a_fork_can_do_nothing_with_it),
        IN_A_SCENE(limits_hold_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
