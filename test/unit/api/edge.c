/*
 * The loop runs only inside the functions here. Waiting has an end: an answer that does not come
 * within seconds fails the test.
 */
#include "edge.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bug.h"
#include "store/memory/memory.h"

#define WAIT_MAX_US (5 * IDEM_US_PER_SECOND)
#define ANSWER_SIZE 524288

static const struct idem_str entries[] = { { "sandbox", 7 } };
static const struct idem_secret secrets[] = {
    { .id = 1, .bytes = { "fingerprint-secret-1-0123456789a", 32 } },
};
static struct idem_credential credentials[3];
static struct idem_provider_rules providers[IDEM_API_PROVIDERS_MAX];
static char names[IDEM_API_PROVIDERS_MAX][IDEM_ENTRY_MAX + 1];

static char raw_answer[ANSWER_SIZE];
static char shown_answer[ANSWER_SIZE];
static char first_id[IDEM_UID_TEXT_LEN + 1];

/* ---- the provider ---- */

static void encode(const struct idem_effect_order *order, struct idem_buf *buf)
{
    idem_buf_add(buf, order->order_no);
}

static void port_answer(struct scripted_port *port,
                        struct idem_call *call,
                        enum idem_outcome_kind outcome)
{
    static const enum idem_evidence_source sources[IDEM_CALL_COUNT] = {
        [IDEM_CALL_SEND] = IDEM_SOURCE_SEND,
        [IDEM_CALL_QUERY] = IDEM_SOURCE_QUERY,
        [IDEM_CALL_CLOSE] = IDEM_SOURCE_CLOSE,
    };
    call->evidence = (struct idem_evidence){
        .source = sources[call->kind],
        .outcome = outcome,
        .entry = call->effect.entry,
        .account = call->effect.account,
        .region = call->effect.region,
        .effect_id = call->effect.id,
        .amount_minor = call->effect.amount_minor,
        .currency = call->effect.currency,
        .reference = IDEM_STR("REF-1"),
    };
    if (outcome == IDEM_OUTCOME_REFUSED_FINAL) {
        call->evidence.code = IDEM_STR("card_declined");
    }
    idem_list_push(&port->done, &call->node);
}

static enum idem_err port_submit(struct idem_port *base, struct idem_call *call)
{
    struct scripted_port *port = IDEM_CONTAINER_OF(base, struct scripted_port, port);
    port->sends += call->kind == IDEM_CALL_SEND ? 1 : 0;
    if (port->hold) {
        idem_list_push(&port->held, &call->node);
        return IDEM_OK;
    }
    port_answer(port, call, port->outcome);
    return IDEM_OK;
}

static void port_reap(struct idem_port *base, struct idem_list *ret_done)
{
    struct scripted_port *port = IDEM_CONTAINER_OF(base, struct scripted_port, port);
    idem_list_join(ret_done, &port->done);
}

static void port_cancel(struct idem_port *base, struct idem_call *call)
{
    struct scripted_port *port = IDEM_CONTAINER_OF(base, struct scripted_port, port);
    idem_list_remove(&port->held, &call->node);
    port_answer(port, call, IDEM_OUTCOME_UNKNOWN);
}

static void port_destroy(struct idem_port *base)
{
    (void)base; /* It is a member of the edge. */
}

static const struct idem_port_ops port_ops = {
    .submit = port_submit,
    .reap = port_reap,
    .cancel = port_cancel,
    .destroy = port_destroy,
};

void edge_let_go(struct edge *edge, enum idem_outcome_kind outcome)
{
    struct idem_list_node *node;
    edge->port.hold = false;
    edge->port.outcome = outcome;
    while ((node = idem_list_pop(&edge->port.held)) != NULL) {
        port_answer(&edge->port, IDEM_CONTAINER_OF(node, struct idem_call, node), outcome);
    }
    edge_turn(edge);
}

/* ---- open and close ---- */

static void wake(void *context)
{
    (void)context; /* edge_turn() looks every time. */
}

static struct idem_credential credential_make(struct idem_digester *digester, const char *name)
{
    return (struct idem_credential){
        .secret_sha256 = idem_digest_sha256(digester, idem_str_from(name)),
        .principal = idem_str_from(name),
        .providers = entries,
        .provider_count = IDEM_ARRAY_COUNT(entries),
    };
}

static void configure(struct edge *edge, size_t provider_count)
{
    struct idem_digester *digester;
    assert_int_equal(idem_digester_create(&digester, NULL), IDEM_OK);
    credentials[0] = credential_make(digester, "alice");
    credentials[1] = credential_make(digester, "bob");
    credentials[2] = credential_make(digester, "root");
    credentials[2].is_operator = true;
    idem_digester_destroy(digester);

    providers[0] = (struct idem_provider_rules){
        .entry = IDEM_STR("sandbox"),
        .account = IDEM_STR("main"),
        .region = IDEM_STR("eu"),
        .partial_capture = IDEM_PARTIAL_MANY,
        .request_timeout_us = 10 * IDEM_US_PER_SECOND,
        .settle_us = 60 * IDEM_US_PER_SECOND,
        .encode = encode,
    };
    for (size_t i = 0; i < IDEM_EFFECT_KIND_COUNT; i++) {
        providers[0].capability[i].query = IDEM_QUERY_AT_ONCE;
    }
    edge->rules = idem_rules_default();
    edge->rules.retry_first_us = IDEM_US_PER_SECOND;
    for (size_t i = 1; i < provider_count; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%02zu-34567890123456789012345678901", i);
        providers[i] = providers[0];
        providers[i].entry = (struct idem_str){ .data = names[i], .len = IDEM_ENTRY_MAX };
    }
    edge->rules.providers = providers;
    edge->rules.provider_count = provider_count;
}

static void engine_open(struct edge *edge)
{
    const struct idem_store_options store = {
        .rules = &edge->rules,
        .clock = &edge->clock,
        .wake = wake,
        .scope_rule = IDEM_STR("endpoint"),
    };
    assert_int_equal(idem_memory_open(&store, &edge->store, NULL), IDEM_OK);
    edge->port = (struct scripted_port){
        .port = { .ops = &port_ops },
        .outcome = IDEM_OUTCOME_SUCCESS,
    };
    struct idem_engine_options engine = idem_engine_options_default();
    engine.store = edge->store;
    engine.port = &edge->port.port;
    engine.rules = &edge->rules;
    engine.clock = &edge->clock;
    engine.random = &edge->random;
    assert_int_equal(idem_engine_create(&engine, &edge->engine, NULL), IDEM_OK);
}

static void api_open(struct edge *edge)
{
    assert_int_equal(idem_api_create(&edge->options, &edge->api, NULL), IDEM_OK);
    struct idem_server_options server = idem_server_options_default();
    server.loop = &edge->loop;
    server.host = "127.0.0.1";
    server.ops = &idem_api_server_ops;
    server.context = edge->api;
    assert_int_equal(idem_server_open(&server, &edge->server, NULL), IDEM_OK);
    idem_api_set_server(edge->api, edge->server);
    idem_api_set_ready(edge->api, true);
    edge_turn(edge); /* The store's credentials are read. */
}

static void api_close(struct edge *edge)
{
    assert_true(idem_api_idle(edge->api));
    idem_server_close(edge->server);
    while (!idem_server_closed(edge->server)) {
        (void)uv_run(&edge->loop, UV_RUN_NOWAIT);
    }
    idem_server_destroy(edge->server);
    idem_api_destroy(edge->api);
}

static void open_all(struct edge *edge,
                     size_t provider_count,
                     void (*change)(struct idem_api_options *options))
{
    *edge = (struct edge){ 0 };
    assert_int_equal(uv_loop_init(&edge->loop), 0);
    idem_clock_init_system(&edge->clock);
    idem_random_init_system(&edge->random);
    configure(edge, provider_count);
    engine_open(edge);

    edge->options = (struct idem_api_options){
        .engine = edge->engine,
        .rules = &edge->rules,
        .clock = &edge->clock,
        .credentials = credentials,
        .credential_count = IDEM_ARRAY_COUNT(credentials),
        .effect_secret = IDEM_STR("effect-secret-0123456789abcdefgh"),
        .fingerprint_secrets = secrets,
        .fingerprint_secret_count = IDEM_ARRAY_COUNT(secrets),
        .requests_max = 8,
        .body_max = 65536,
    };
    idem_api_routes_default(edge->options.routes);
    if (change != NULL) {
        change(&edge->options);
    }
    api_open(edge);
}

void edge_open_again(struct edge *edge, void (*change)(struct idem_api_options *options))
{
    api_close(edge);
    change(&edge->options);
    api_open(edge);
}

void edge_open(struct edge *edge, void (*change)(struct idem_api_options *options))
{
    open_all(edge, 1, change);
}

void edge_open_crowded(struct edge *edge)
{
    open_all(edge, IDEM_API_PROVIDERS_MAX, NULL);
}

#define ROUNDS 8 /* More than a request needs from socket to socket. */

void edge_turn_engine(struct edge *edge)
{
    for (int i = 0; i < ROUNDS; i++) {
        (void)uv_run(&edge->loop, UV_RUN_NOWAIT);
        idem_engine_step(edge->engine);
    }
}

void edge_turn(struct edge *edge)
{
    for (int i = 0; i < ROUNDS; i++) {
        (void)uv_run(&edge->loop, UV_RUN_NOWAIT);
        idem_engine_step(edge->engine);
        idem_api_step(edge->api);
    }
}

void edge_close(struct edge *edge)
{
    edge_let_go(edge, IDEM_OUTCOME_SUCCESS);
    assert_true(idem_engine_idle(edge->engine));
    api_close(edge);
    idem_engine_destroy(edge->engine);
    idem_store_stop(edge->store);
    idem_store_destroy(edge->store);
    assert_int_equal(uv_loop_close(&edge->loop), 0);
}

/* ---- the client ---- */

int edge_connect(struct edge *edge)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(idem_server_port(edge->server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* Sends head and body; adds Host and Content-Length and makes line ends of the head HTTP's. */
void edge_write(int fd, const char *text)
{
    static char memory[ANSWER_SIZE];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    const char *gap = strstr(text, "\n\n");
    const char *body = gap == NULL ? "" : gap + 2;
    struct idem_str head = idem_str_from(text);
    head.len = gap == NULL ? head.len : (size_t)(gap - text);
    while (head.len > 0) {
        idem_buf_add(&buf, idem_str_next(&head, '\n'));
        idem_buf_add(&buf, IDEM_STR("\r\n"));
    }
    idem_buf_printf(&buf, "Host: x\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    assert_false(buf.full);
    assert_int_equal(send(fd, memory, buf.len, MSG_NOSIGNAL), (ssize_t)buf.len);
}

void edge_send(struct edge *edge, int fd, const char *text)
{
    edge_write(fd, text);
    edge_turn(edge);
}

/* Length of the pattern at `text`: # a hexadecimal digit, 9 a digit, @ a letter; 0: no match. */
static size_t pattern_len(const char *text, const char *pattern)
{
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool fits = pattern[i] == '#'   ? isxdigit(byte) != 0
                    : pattern[i] == '9' ? isdigit(byte) != 0
                    : pattern[i] == '@' ? isalpha(byte) != 0
                                        : byte == (unsigned char)pattern[i];
        if (!fits) {
            return 0;
        }
    }
    return strlen(pattern);
}

static const struct {
    const char *pattern;
    const char *word;
} words[] = {
    { "########-####-####-####-############", "{id}" },
    { "9999-99-99T99:99:99.999999Z", "{time}" },
    { "@@@, 99 @@@ 9999 99:99:99 GMT", "{date}" },
    { "Content-Length: 9999", "Content-Length: {len}" },
    { "Content-Length: 999", "Content-Length: {len}" },
    { "Content-Length: 99", "Content-Length: {len}" },
};

/* Writes the raw answer for people: words for what changes, no carriage returns. */
static void show(size_t len)
{
    struct idem_buf buf;
    idem_buf_init(&buf, shown_answer, sizeof(shown_answer) - 1);
    first_id[0] = '\0';
    for (size_t at = 0; at < len;) {
        size_t matched = 0;
        for (size_t i = 0; i < IDEM_ARRAY_COUNT(words) && matched == 0; i++) {
            matched = pattern_len(raw_answer + at, words[i].pattern);
            idem_buf_add(&buf, idem_str_from(matched > 0 ? words[i].word : ""));
        }
        if (matched == IDEM_UID_TEXT_LEN && first_id[0] == '\0') {
            memcpy(first_id, raw_answer + at, IDEM_UID_TEXT_LEN);
        }
        if (matched == 0 && raw_answer[at] != '\r') {
            idem_buf_add_char(&buf, raw_answer[at]);
        }
        at += matched > 0 ? matched : 1;
    }
    shown_answer[buf.len] = '\0';
}

/* True once head and body are there. */
static bool is_whole(size_t len)
{
    raw_answer[len] = '\0';
    const char *gap = strstr(raw_answer, "\r\n\r\n");
    const char *field = strstr(raw_answer, "Content-Length: ");
    if (gap == NULL || field == NULL) {
        return false;
    }
    size_t body_len = strtoul(field + strlen("Content-Length: "), NULL, 10);
    return len >= (size_t)(gap - raw_answer) + 4 + body_len;
}

const char *edge_answer(struct edge *edge, int fd)
{
    size_t len = 0;
    int64_t until_us = idem_clock_mono_us(&edge->clock) + WAIT_MAX_US;
    while (!is_whole(len)) {
        edge_turn(edge);
        ssize_t got = recv(fd, raw_answer + len, sizeof(raw_answer) - 1 - len, 0);
        assert_true(got != 0);
        len += got > 0 ? (size_t)got : 0;
        assert_true(idem_clock_mono_us(&edge->clock) < until_us);
    }
    show(len);
    return shown_answer;
}

const char *edge_ask(struct edge *edge, const char *text)
{
    int fd = edge_connect(edge);
    edge_send(edge, fd, text);
    const char *answer = edge_answer(edge, fd);
    assert_int_equal(close(fd), 0);
    edge_turn(edge);
    return answer;
}

const char *edge_id(void)
{
    return first_id;
}

const char *edge_id_behind(const char *text)
{
    static char id[IDEM_UID_TEXT_LEN + 1];
    const char *at = strstr(raw_answer, text);
    assert_non_null(at);
    while (pattern_len(at, words[0].pattern) == 0) {
        assert_true(*at != '\0');
        at += 1;
    }
    memcpy(id, at, IDEM_UID_TEXT_LEN);
    return id;
}
