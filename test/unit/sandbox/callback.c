/*
 * What the sandbox tells by callback.
 *
 * Goal: whatever happens to an effect is told once, signed as docs/bridge.md says, until somebody
 * takes it; each telling of docs/sandbox.md lies in the way that stands there and in no other.
 *
 * Method: a sandbox on loopback, and a listener that takes one post after the other and answers as
 * the test says. Signatures are judged here with HMAC alone.
 */
#include "peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/digest.h"
#include "lib/test.h"
#include "sandbox/sandbox.h"

#define WAIT_SECONDS 10 /* Nothing takes so long; a test that hangs ends here. */
#define POST_MAX     8192
#define SECRET       "secret-one"
#define NEXT_SECRET  "secret-two"

struct listener {
    int fd;
    char url[64];
};

/* One post as it came. */
struct post {
    int fd; /* Waits for its answer. */
    char memory[POST_MAX];
    char *body; /* In `memory`. */
    char field[512];
};

struct scene {
    struct listener listener;
    struct idem_sandbox_options options;
    struct peer peer;
};

static void listener_open(struct listener *listener)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);
    struct timeval wait = { .tv_sec = WAIT_SECONDS };

    listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener->fd >= 0);
    assert_int_equal(setsockopt(listener->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
    assert_int_equal(bind(listener->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener->fd, 16), 0);
    assert_int_equal(getsockname(listener->fd, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(listener->url, sizeof(listener->url), "http://127.0.0.1:%u/v1/callbacks/e",
                   ntohs(address.sin_port));
}

static void scene_open(struct scene *scene, size_t secret_count)
{
    listener_open(&scene->listener);
    scene->options = (struct idem_sandbox_options){
        .callback_secrets = { SECRET, NEXT_SECRET },
        .callback_secret_count = secret_count,
    };
    scene->options.callback_urls[IDEM_PROFILE_DEDUP] = scene->listener.url;
    scene->options.callback_urls[IDEM_PROFILE_PLAIN] = scene->listener.url;
    peer_start_telling(&scene->peer, &scene->options);
}

static void scene_close(struct scene *scene)
{
    peer_stop(&scene->peer);
    assert_int_equal(close(scene->listener.fd), 0);
}

/* Takes the next post, and reads it whole. */
static void post_take(const struct scene *scene, struct post *post)
{
    struct timeval wait = { .tv_sec = WAIT_SECONDS };
    size_t len = 0;
    size_t body_len = 0;

    *post = (struct post){ .fd = accept(scene->listener.fd, NULL, NULL) };
    assert_true(post->fd >= 0);
    assert_int_equal(setsockopt(post->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
    while (post->body == NULL || len < (size_t)(post->body - post->memory) + body_len) {
        ssize_t count = recv(post->fd, post->memory + len, POST_MAX - 1 - len, 0);
        assert_true(count > 0);
        len += (size_t)count;
        char *end = strstr(post->memory, "\r\n\r\n");
        const char *length = strstr(post->memory, "Content-Length: ");
        if (end != NULL && length != NULL) {
            post->body = end + 4;
            body_len = strtoul(length + strlen("Content-Length: "), NULL, 10);
        }
    }
    assert_int_equal(strncmp(post->memory, "POST /v1/callbacks/e HTTP/1.1\r\n", 31), 0);
    assert_non_null(strstr(post->memory, "\r\nContent-Type: application/json\r\n"));
    const char *field = strstr(post->memory, "\r\nBridge-Signature: ");
    assert_non_null(field);
    field += strlen("\r\nBridge-Signature: ");
    (void)snprintf(post->field, sizeof(post->field), "%.*s", (int)strcspn(field, "\r"), field);
}

/* NULL: hangs up instead. */
static void post_answer(const struct post *post, const char *status)
{
    char memory[128];

    if (status != NULL) {
        int len = snprintf(memory, sizeof(memory),
                           "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status);
        assert_int_equal(send(post->fd, memory, (size_t)len, MSG_NOSIGNAL), len);
    }
    assert_int_equal(close(post->fd), 0);
}

static void signature_print(const char *secret,
                            struct idem_str time,
                            const char *body,
                            struct idem_buf *buf)
{
    struct idem_digester *digester = NULL;
    struct idem_error error;

    assert_int_equal(idem_digester_create(&digester, &error), IDEM_OK);
    idem_hmac_begin(digester, idem_str_from(secret));
    idem_hmac_add(digester, time);
    idem_hmac_add(digester, IDEM_STR("."));
    idem_hmac_add(digester, idem_str_from(body));
    struct idem_digest digest = idem_hmac_end(digester);
    idem_digester_destroy(digester);
    idem_buf_add_hex(buf, digest.bytes, sizeof(digest.bytes));
}

/* '1' or '2': which of the secrets made it; '-': none. */
static char signer_find(struct idem_str signature, struct idem_str time, const char *body)
{
    static const char *const secrets[] = { SECRET, NEXT_SECRET };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(secrets); i++) {
        char memory[80];
        struct idem_buf expected;
        idem_buf_init(&expected, memory, sizeof(memory));
        idem_buf_add(&expected, IDEM_STR("v1="));
        signature_print(secrets[i], time, body, &expected);
        if (idem_str_equal(signature, idem_buf_str(&expected))) {
            return (char)('1' + i);
        }
    }
    return '-';
}

/* Who signed, each with a digit, and whether the time is far off. */
static void field_describe(const struct post *post, struct idem_buf *buf)
{
    struct idem_str rest = idem_str_from(post->field);
    struct idem_str time = idem_str_next(&rest, ',');
    struct idem_clock clock;
    int64_t signed_s = 0;

    assert_true(idem_str_starts(time, IDEM_STR("t=")));
    time = idem_str_slice(time, 2, time.len);
    assert_true(idem_str_to_i64(time, &signed_s));
    idem_buf_add_char(buf, ' ');
    while (rest.len > 0) {
        idem_buf_add_char(buf, signer_find(idem_str_next(&rest, ','), time, post->body));
    }
    idem_clock_init_system(&clock);
    int64_t late_s = idem_clock_wall_us(&clock) / IDEM_US_PER_SECOND - signed_s;
    if (late_s > 1800) {
        idem_buf_add(buf, IDEM_STR(" stale"));
    }
    if (late_s < -1800) {
        idem_buf_add(buf, IDEM_STR(" future"));
    }
}

/* Outcome, what it says beside, its signatures; "other" where a name is not the effect's. */
static void post_describe(const struct post *post, const char *id, char ret_text[256])
{
    static const char *const names[] = { "amount", "currency", "code", "account" };
    struct idem_buf buf;
    json_t *body = json_loads(post->body, 0, NULL);

    idem_buf_init(&buf, ret_text, 255);
    if (body == NULL) {
        idem_buf_add(&buf, IDEM_STR("garbage"));
    } else {
        idem_buf_add(&buf, idem_str_from(json_string_value(json_object_get(body, "outcome"))));
        for (size_t i = 0; i < IDEM_ARRAY_COUNT(names); i++) {
            const char *text = json_string_value(json_object_get(body, names[i]));
            idem_buf_printf(&buf, "%s%s", text == NULL ? "" : " ", text == NULL ? "" : text);
        }
        const char *order_no = json_string_value(json_object_get(body, "order_no"));
        if (order_no != NULL && strcmp(order_no, "o-1") != 0) {
            idem_buf_printf(&buf, " %s", order_no);
        }
        if (strcmp(json_string_value(json_object_get(body, "id")), id) != 0) {
            idem_buf_add(&buf, IDEM_STR(" other-id"));
        }
        assert_non_null(json_object_get(body, "event"));
        assert_non_null(json_object_get(body, "happened"));
        json_decref(body);
    }
    field_describe(post, &buf);
    assert_false(buf.full);
    ret_text[buf.len] = '\0';
}

static int effect_send(const struct scene *scene, const char *id, const char *method)
{
    char body[256];
    int fd = peer_dial(&scene->peer);

    (void)snprintf(body, sizeof(body),
                   "{\"id\":\"%s\",\"kind\":\"charge\",\"amount\":\"100.00\",\"currency\":\"CNY\","
                   "\"order_no\":\"o-1\",\"method\":\"%s\"}",
                   id, method);
    peer_send(fd, &(struct peer_request){
                      .method = "POST", .path = "/dedup/effects", .key = id, .body = body });
    return fd;
}

static void effect_execute(const struct scene *scene, const char *id, const char *method)
{
    char answer[PEER_DESCRIBE_LEN];
    int fd = effect_send(scene, id, method);
    peer_describe(fd, id, answer);
    assert_int_equal(close(fd), 0);
}

/* Member of the effect in the ledger, a number; the page is waited for until it is `expected`. */
static void ledger_expect(const struct scene *scene,
                          const char *id,
                          const char *member,
                          json_int_t expected)
{
    char path[64];
    json_int_t found = -1;

    (void)snprintf(path, sizeof(path), "/ledger?id=%s", id);
    for (int i = 0; i < 1000 && found != expected; i++) { /* An answer is counted a little later. */
        json_t *page = peer_get(&scene->peer, path);
        json_t *effect = json_array_get(json_object_get(page, "effects"), 0);
        found = json_integer_value(json_object_get(effect, member));
        json_decref(page);
    }
    assert_int_equal(found, expected);
}

static const struct telling {
    const char *method;
    const char *posts[3];
} tellings[] = {
    { "tok_ok", { "succeeded 100.00 CNY 1" } },
    { "tok_lose_answer", { "succeeded 100.00 CNY 1" } },
    { "tok_decline", { "refused declined 1" } },
    { "tok_processing_0_ok", { "processing 1", "succeeded 100.00 CNY 1" } },
    { "tok_processing_0_fail", { "processing 1", "refused declined 1" } },
    { "tok_ok+callback_twice", { "succeeded 100.00 CNY 1", "succeeded 100.00 CNY 1" } },
    { "tok_ok+callback_again", { "succeeded 100.00 CNY 1", "succeeded 100.00 CNY 1" } },
    { "tok_ok+callback_reordered", { "succeeded 100.00 CNY 1", "processing 1" } },
    { "tok_ok+callback_wrong_amount", { "succeeded 200.00 CNY 1" } },
    { "tok_ok+callback_wrong_currency", { "succeeded 100.00 AED 1" } },
    { "tok_ok+callback_wrong_id", { "succeeded 100.00 CNY other-id 1" } },
    { "tok_ok+callback_wrong_order", { "succeeded 100.00 CNY another-order 1" } },
    { "tok_ok+callback_wrong_account", { "succeeded 100.00 CNY another-account 1" } },
    { "tok_ok+callback_unknown_outcome", { "settling 100.00 CNY 1" } },
    { "tok_ok+callback_garbage", { "garbage 1" } },
    { "tok_ok+callback_stale", { "succeeded 100.00 CNY 1 stale" } },
    { "tok_ok+callback_future", { "succeeded 100.00 CNY 1 future" } },
    { "tok_ok+callback_forged", { "succeeded 100.00 CNY -" } },
    { "tok_ok+callback_late_0", { "succeeded 100.00 CNY 1" } },
    { "tok_ok+callback_contradict_0", { "succeeded 100.00 CNY 1", "refused 1" } },
    { "tok_decline+callback_contradict_0", { "refused declined 1", "succeeded 100.00 CNY 1" } },
    { "tok_ok+callback_reverse_0", { "succeeded 100.00 CNY 1", "reversed 100.00 CNY 1" } },
    { "tok_decline+callback_reverse_0", { "refused declined 1" } },
    { "tok_ok+callback_none", { NULL } },
};

static void expect_told(const struct scene *scene, const struct telling *telling, const char *id)
{
    size_t count = 0;

    effect_execute(scene, id, telling->method);
    for (; count < IDEM_ARRAY_COUNT(telling->posts) && telling->posts[count] != NULL; count++) {
        char told[256];
        struct post post;
        post_take(scene, &post);
        post_describe(&post, id, told);
        post_answer(&post, "200 OK");
        if (strcmp(told, telling->posts[count]) != 0) {
            print_error("%s: expected\n%s\ngot\n%s\n", telling->method, telling->posts[count],
                        told);
            fail();
        }
    }
    /* A post too many would be in the place of the next one's first. */
    ledger_expect(scene, id, "callbacks_taken", (json_int_t)count);
}

static void every_telling_says_what_it_should(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, 1);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(tellings); i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "effect-%zux", i);
        expect_told(&scene, &tellings[i], id);
    }
    scene_close(&scene);
}

static void the_same_event_has_the_same_name(void **state)
{
    static const struct {
        const char *method;
        bool same;
    } rows[] = { { "tok_ok+callback_twice", true }, { "tok_ok+callback_again", false } };
    struct scene scene;

    (void)state;
    scene_open(&scene, 1);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct post first;
        struct post second;
        effect_execute(&scene, i == 0 ? "x-1" : "x-2", rows[i].method);
        post_take(&scene, &first);
        post_answer(&first, "204 No Content");
        post_take(&scene, &second);
        post_answer(&second, "200 OK");
        assert_true((strcmp(first.body, second.body) == 0) == rows[i].same);
    }
    scene_close(&scene);
}

static void an_event_is_posted_until_it_is_taken(void **state)
{
    static const char *const answers[] = { "500 No", NULL, "404 Not Found", "302 Found", "200 OK" };
    char body[POST_MAX] = "";
    struct scene scene;

    (void)state;
    scene_open(&scene, 1);
    effect_execute(&scene, "x-1", "tok_ok");
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(answers); i++) {
        struct post post;
        post_take(&scene, &post);
        post_answer(&post, answers[i]);
        assert_true(i == 0 || strcmp(body, post.body) == 0);
        (void)snprintf(body, sizeof(body), "%s", post.body);
    }
    ledger_expect(&scene, "x-1", "callbacks", IDEM_ARRAY_COUNT(answers));
    ledger_expect(&scene, "x-1", "callbacks_taken", 1);
    scene_close(&scene);
}

static void what_nobody_can_take_is_tried_once(void **state)
{
    static const char *const methods[] = { "tok_ok+callback_stale", "tok_ok+callback_future",
                                           "tok_ok+callback_forged", "tok_ok+callback_garbage" };
    struct scene scene;

    (void)state;
    scene_open(&scene, 1);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(methods); i++) {
        const char id[] = { 'x', (char)('1' + i), '\0' };
        struct post post;
        effect_execute(&scene, id, methods[i]);
        post_take(&scene, &post);
        post_answer(&post, "400 Bad Request");
        ledger_expect(&scene, id, "callbacks", 1);
        ledger_expect(&scene, id, "callbacks_taken", 0);
    }
    effect_execute(&scene, "y1", "tok_ok"); /* Nothing of the others comes before it. */
    struct post post;
    char told[256];
    post_take(&scene, &post);
    post_describe(&post, "y1", told);
    assert_string_equal(told, "succeeded 100.00 CNY 1");
    post_answer(&post, "200 OK");
    scene_close(&scene);
}

static void both_secrets_sign_while_one_is_changed(void **state)
{
    struct scene scene;
    struct post post;
    char told[256];

    (void)state;
    scene_open(&scene, 2);
    effect_execute(&scene, "x-1", "tok_ok");
    post_take(&scene, &post);
    post_describe(&post, "x-1", told);
    assert_string_equal(told, "succeeded 100.00 CNY 12");
    post_answer(&post, "200 OK");
    effect_execute(&scene, "x-2", "tok_ok+callback_last_secret");
    post_take(&scene, &post);
    post_describe(&post, "x-2", told);
    assert_string_equal(told, "succeeded 100.00 CNY 2");
    post_answer(&post, "200 OK");
    scene_close(&scene);
}

static void a_callback_can_come_before_the_answer(void **state)
{
    struct scene scene;
    struct post post;
    char answer[PEER_DESCRIBE_LEN];

    (void)state;
    scene_open(&scene, 1);
    int fd = effect_send(&scene, "x-1", "tok_late_1");
    post_take(&scene, &post);
    assert_int_equal(recv(fd, answer, 1, MSG_DONTWAIT), -1); /* Not a byte of it is there. */
    post_answer(&post, "200 OK");
    peer_describe(fd, "x-1", answer);
    assert_string_equal(answer, "200 succeeded 100.00 CNY");
    assert_int_equal(close(fd), 0);
    scene_close(&scene);
}

static void what_turns_is_in_the_ledger(void **state)
{
    struct scene scene;
    struct post post;

    (void)state;
    scene_open(&scene, 1);
    effect_execute(&scene, "x-1", "tok_decline+callback_contradict_0");
    effect_execute(&scene, "x-2", "tok_ok+callback_reverse_0");
    for (int i = 0; i < 4; i++) {
        post_take(&scene, &post);
        post_answer(&post, "200 OK");
    }
    ledger_expect(&scene, "x-1", "executions", 1); /* A stray charge: it can be given back. */
    ledger_expect(&scene, "x-2", "reversals", 1);
    json_t *page = peer_get(&scene.peer, "/ledger?id=x-2");
    const json_t *effect = json_array_get(json_object_get(page, "effects"), 0);
    assert_string_equal(json_string_value(json_object_get(effect, "authorized")), "0.00");
    assert_string_equal(json_string_value(json_object_get(effect, "captured")), "0.00");
    json_decref(page);
    scene_close(&scene);
}

static void a_close_is_told(void **state)
{
    struct scene scene;
    struct post post;
    char told[256];
    char answer[PEER_DESCRIBE_LEN];

    (void)state;
    scene_open(&scene, 1);
    peer_ask(&scene.peer,
             &(struct peer_request){
                 .method = "POST", .path = "/dedup/effects/x-1/close", .body = "{}" },
             "x-1", answer);
    assert_string_equal(answer, "200 closed");
    post_take(&scene, &post);
    post_describe(&post, "x-1", told);
    assert_string_equal(told, "closed 1");
    post_answer(&post, "200 OK");
    scene_close(&scene);
}

/* Posts that nobody answers, and one that waits for its next try, do not keep it from stopping. */
static void a_sandbox_stops_with_posts_under_way(void **state)
{
    struct scene scene;
    struct post post;
    struct post second;

    (void)state;
    scene_open(&scene, 1);
    effect_execute(&scene, "x-1", "tok_ok+callback_twice");
    post_take(&scene, &post);
    effect_execute(&scene, "x-2", "tok_ok");
    post_take(&scene, &second);
    post_answer(&second, "500 No");
    ledger_expect(&scene, "x-2", "callbacks", 1);
    effect_execute(&scene, "x-3", "tok_ok+callback_late_3600");
    peer_stop(&scene.peer);
    assert_int_equal(close(post.fd), 0);
    assert_int_equal(close(scene.listener.fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_telling_says_what_it_should),
        cmocka_unit_test(the_same_event_has_the_same_name),
        cmocka_unit_test(an_event_is_posted_until_it_is_taken),
        cmocka_unit_test(what_nobody_can_take_is_tried_once),
        cmocka_unit_test(both_secrets_sign_while_one_is_changed),
        cmocka_unit_test(a_callback_can_come_before_the_answer),
        cmocka_unit_test(what_turns_is_in_the_ledger),
        cmocka_unit_test(a_close_is_told),
        cmocka_unit_test(a_sandbox_stops_with_posts_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
