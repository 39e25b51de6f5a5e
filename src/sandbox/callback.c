/*
 * Callbacks: what became of an effect, told to whoever listens.
 *
 *   tell --> post --> signed, sent --> 2xx: over --> what was to follow it
 *             ^           |
 *             +-- later --+ anything else, and silence
 *
 * What is said is fixed when it happens; the signature is made anew for each try, since it says
 * when. The lies are the telling's (fault.h): garbage and a wrong time or secret are tried once and
 * never put right, as an attacker would, so that a test sees what it did. Signed here and by nobody
 * else: the adapters' code must not be what says that the adapters are right.
 *
 * A post waits on the list of what is due or is with the client, never both. A restart forgets
 * posts; the ledger has the rest.
 */
#include "sandbox/sandbox_internal.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/digest.h"
#include "transport/client.h"

#define POSTS_MAX      64 /* At once. */
#define CONNECTIONS    8
#define TIMEOUT_US     (INT64_C(10) * IDEM_US_PER_SECOND)
#define AGAIN_FIRST_US (INT64_C(250) * IDEM_US_PER_MS)
#define AGAIN_MAX_US   (INT64_C(60) * IDEM_US_PER_SECOND)
#define LIE_S          3600  /* How far a wrong time is off. */
#define BODY_MAX       16384 /* The longest order number, escaped. */
#define FIELD_MAX      320

struct idem_sandbox_post {
    struct idem_list_node node;
    struct idem_ledger_effect *effect;
    enum idem_sandbox_telling telling;
    struct idem_sandbox_post *then; /* Leaves when this one is over; NULL: none. */
    int64_t again_us;               /* The pause behind the next failure. */
    bool under_way;                 /* It is the client's. */
    bool turns;                     /* Behind it what was told turns out otherwise, */
    int64_t turn_us;                /* so long after it was taken. */
    struct idem_http_call http;
    struct idem_buf body;
    char body_memory[BODY_MAX];
    char field_memory[FIELD_MAX];
};

/* Posts. */

static struct idem_sandbox_post *post_create(struct idem_sandbox *sandbox,
                                             struct idem_ledger_effect *effect,
                                             enum idem_sandbox_outcome outcome,
                                             enum idem_sandbox_telling telling)
{
    struct idem_sandbox_post *post = calloc(1, sizeof(*post));
    int64_t now_us = idem_clock_wall_us(sandbox->options.clock);
    char memory[64];
    struct idem_buf name;

    if (post == NULL) {
        return NULL; /* Nobody is told; who asks hears the truth. */
    }
    sandbox->told += 1;
    idem_buf_init(&name, memory, sizeof(memory));
    idem_buf_printf(&name, "ev-%lld-%lld", (long long)now_us, (long long)sandbox->told);
    const struct idem_sandbox_tale tale = {
        .event = idem_buf_str(&name),
        .outcome = outcome,
        .telling = telling,
        .happened_us = now_us,
    };
    post->effect = effect;
    post->telling = telling;
    post->again_us = AGAIN_FIRST_US;
    idem_buf_init(&post->body, post->body_memory, sizeof(post->body_memory));
    idem_sandbox_answer_print_told(effect, &tale, &post->body);
    IDEM_ASSERT(!post->body.full);
    idem_list_push(&sandbox->posts, &post->node);
    return post;
}

/* The same event once more. */
static struct idem_sandbox_post *post_copy(struct idem_sandbox *sandbox,
                                           const struct idem_sandbox_post *from)
{
    struct idem_sandbox_post *post = calloc(1, sizeof(*post));

    if (post != NULL) {
        post->effect = from->effect;
        post->telling = from->telling;
        post->again_us = AGAIN_FIRST_US;
        idem_buf_init(&post->body, post->body_memory, sizeof(post->body_memory));
        idem_buf_add(&post->body, idem_buf_str(&from->body));
        idem_list_push(&sandbox->posts, &post->node);
    }
    return post;
}

static void post_destroy(struct idem_sandbox *sandbox, struct idem_sandbox_post *post)
{
    idem_list_remove(&sandbox->posts, &post->node);
    free(post);
}

/* What nobody can take, however often it comes: tried once. */
static bool is_once(enum idem_sandbox_telling telling)
{
    return telling == IDEM_TELLING_GARBAGE || telling == IDEM_TELLING_STALE ||
           telling == IDEM_TELLING_FUTURE || telling == IDEM_TELLING_FORGED;
}

static void signature_add(struct idem_sandbox *sandbox,
                          struct idem_str secret,
                          struct idem_str time,
                          struct idem_str body,
                          struct idem_buf *field)
{
    idem_hmac_begin(sandbox->digester, secret);
    idem_hmac_add(sandbox->digester, time);
    idem_hmac_add(sandbox->digester, IDEM_STR("."));
    idem_hmac_add(sandbox->digester, body);
    const struct idem_digest digest = idem_hmac_end(sandbox->digester);
    idem_buf_add(field, IDEM_STR(",v1="));
    idem_buf_add_hex(field, digest.bytes, sizeof(digest.bytes));
}

static void post_sign(struct idem_sandbox *sandbox, struct idem_sandbox_post *post)
{
    const struct idem_sandbox_options *options = &sandbox->options;
    int64_t signed_s = idem_clock_wall_us(options->clock) / IDEM_US_PER_SECOND;
    struct idem_str body = idem_buf_str(&post->body);
    size_t first =
        post->telling == IDEM_TELLING_LAST_SECRET ? options->callback_secret_count - 1 : 0;
    char memory[32];
    struct idem_buf time;
    struct idem_buf field;

    signed_s -= post->telling == IDEM_TELLING_STALE ? LIE_S : 0;
    signed_s += post->telling == IDEM_TELLING_FUTURE ? LIE_S : 0;
    idem_buf_init(&time, memory, sizeof(memory));
    idem_buf_add_i64(&time, signed_s);
    idem_buf_init(&field, post->field_memory, sizeof(post->field_memory));
    idem_buf_add(&field, IDEM_STR("Bridge-Signature: t="));
    idem_buf_add(&field, idem_buf_str(&time));
    for (size_t i = first; i < options->callback_secret_count; i++) {
        bool forged = post->telling == IDEM_TELLING_FORGED;
        const char *secret = forged ? "not the secret" : options->callback_secrets[i];
        signature_add(sandbox, idem_str_from(secret), idem_buf_str(&time), body, &field);
    }
    IDEM_ASSERT(!field.full);
    post->http.headers[0] = IDEM_STR("Content-Type: application/json");
    post->http.headers[1] = idem_buf_str(&field);
    post->http.header_count = 2;
}

static void post_at(struct idem_sandbox *sandbox, struct idem_sandbox_post *post, int64_t wait_us)
{
    const struct idem_sandbox_call call = { .effect = post->effect };
    int64_t due_us = idem_clock_wall_us(sandbox->options.clock) + wait_us;
    struct idem_sandbox_due *due = idem_sandbox_due_create(sandbox, IDEM_DUE_POST, due_us, &call);

    if (due == NULL) { /* As if it had got lost for good. */
        post_destroy(sandbox, post);
        return;
    }
    due->post = post;
}

void idem_sandbox_callback_post(struct idem_sandbox *sandbox, struct idem_sandbox_post *post)
{
    post_sign(sandbox, post);
    post->http.method = "POST";
    post->http.url = sandbox->options.callback_urls[post->effect->profile];
    post->http.body = idem_buf_str(&post->body);
    post->http.not_after_us = INT64_MAX;
    post->http.connect_timeout_us = TIMEOUT_US;
    post->http.timeout_us = TIMEOUT_US;
    post->under_way = idem_http_client_submit(sandbox->client, &post->http) == IDEM_OK;
    if (!post->under_way) {
        post_at(sandbox, post, AGAIN_FIRST_US);
    }
}

static bool turn_at(struct idem_sandbox *sandbox, const struct idem_sandbox_post *post)
{
    const struct idem_sandbox_call call = { .effect = post->effect };
    int64_t due_us = idem_clock_wall_us(sandbox->options.clock) + post->turn_us;

    return idem_sandbox_due_create(sandbox, IDEM_DUE_TURN, due_us, &call) != NULL;
}

static void post_finish(struct idem_sandbox *sandbox, struct idem_sandbox_post *post)
{
    struct idem_ledger_event event = {
        .kind = IDEM_LEDGER_CALLBACK,
        .at_us = idem_clock_wall_us(sandbox->options.clock),
        .profile = post->effect->profile,
        .id = post->effect->id,
        .taken = post->http.verdict == IDEM_HTTP_ANSWERED && post->http.status / 100 == 2,
    };

    post->under_way = false;
    bool noted = idem_ledger_record(sandbox->ledger, &event, NULL) == IDEM_OK;
    if (!noted || (!event.taken && !is_once(post->telling))) {
        int64_t wait_us = post->again_us;
        post->again_us = wait_us * 2 < AGAIN_MAX_US ? wait_us * 2 : AGAIN_MAX_US;
        post_at(sandbox, post, wait_us);
        return;
    }
    if (post->then != NULL) {
        idem_sandbox_callback_post(sandbox, post->then);
    }
    if (!post->turns || turn_at(sandbox, post)) {
        post_destroy(sandbox, post);
        return;
    }
    post_at(sandbox, post, AGAIN_FIRST_US); /* Told once more, for want of memory. */
}

/* Before every wait of the loop: what has ended since the last one. */
static void on_prepare(uv_prepare_t *handle)
{
    struct idem_sandbox *sandbox = handle->data;
    struct idem_list ended = { .count = 0 };
    struct idem_list_node *node;

    idem_http_client_reap(sandbox->client, &ended);
    while ((node = idem_list_pop(&ended)) != NULL) {
        struct idem_http_call *http = IDEM_CONTAINER_OF(node, struct idem_http_call, node);
        post_finish(sandbox, IDEM_CONTAINER_OF(http, struct idem_sandbox_post, http));
    }
}

/* What is told. */

static enum idem_sandbox_outcome outcome_of(enum idem_ledger_status status)
{
    switch (status) {
    case IDEM_LEDGER_SUCCEEDED:
        return IDEM_TOLD_SUCCEEDED;
    case IDEM_LEDGER_DECLINED:
        return IDEM_TOLD_REFUSED;
    case IDEM_LEDGER_IN_PROCESS:
        return IDEM_TOLD_PROCESSING;
    case IDEM_LEDGER_CLOSED:
        return IDEM_TOLD_CLOSED;
    case IDEM_LEDGER_NONE:
    case IDEM_LEDGER_REFUSED: /* Whoever sent it was answered so at once. */
    case IDEM_LEDGER_STATUS_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static bool somebody_listens(const struct idem_sandbox *sandbox,
                             const struct idem_ledger_effect *effect)
{
    return sandbox->options.callback_urls[effect->profile] != NULL;
}

/* One event, with whatever follows it. NULL: no memory. */
static struct idem_sandbox_post *chain_create(struct idem_sandbox *sandbox,
                                              struct idem_ledger_effect *effect,
                                              enum idem_sandbox_telling telling)
{
    enum idem_sandbox_outcome outcome = outcome_of(effect->status);
    struct idem_sandbox_post *post = post_create(sandbox, effect, outcome, telling);

    if (post != NULL && telling == IDEM_TELLING_TWICE) {
        post->then = post_copy(sandbox, post);
    }
    if (post != NULL && telling == IDEM_TELLING_AGAIN) {
        post->then = post_create(sandbox, effect, outcome, telling);
    }
    if (post != NULL && telling == IDEM_TELLING_REORDERED) {
        post->then = post_create(sandbox, effect, IDEM_TOLD_PROCESSING, telling);
    }
    return post;
}

void idem_sandbox_callback_tell(struct idem_sandbox *sandbox, struct idem_ledger_effect *effect)
{
    const struct idem_sandbox_telling_rule rule = idem_sandbox_send_telling(sandbox, effect);
    bool turns = rule.telling == IDEM_TELLING_CONTRADICT || rule.telling == IDEM_TELLING_REVERSE;

    if (!somebody_listens(sandbox, effect) || rule.telling == IDEM_TELLING_NONE) {
        return;
    }
    struct idem_sandbox_post *post = chain_create(sandbox, effect, rule.telling);
    if (post != NULL) {
        post->turns = turns && effect->status != IDEM_LEDGER_IN_PROCESS;
        post->turn_us = rule.wait_us;
        post_at(sandbox, post, rule.telling == IDEM_TELLING_LATE ? rule.wait_us : 0);
    }
}

/* Whether what was told is over otherwise now, and how. */
static bool turn_take(struct idem_sandbox *sandbox,
                      struct idem_ledger_effect *effect,
                      enum idem_sandbox_outcome *ret_outcome)
{
    const struct idem_sandbox_telling_rule rule = idem_sandbox_send_telling(sandbox, effect);
    struct idem_ledger_event event = {
        .kind = IDEM_LEDGER_REVERSAL,
        .at_us = idem_clock_wall_us(sandbox->options.clock),
        .profile = effect->profile,
        .id = effect->id,
    };

    if (rule.telling == IDEM_TELLING_REVERSE) {
        *ret_outcome = IDEM_TOLD_REVERSED;
        return effect->status == IDEM_LEDGER_SUCCEEDED &&
               idem_ledger_record(sandbox->ledger, &event, NULL) == IDEM_OK;
    }
    if (effect->status == IDEM_LEDGER_SUCCEEDED) {
        *ret_outcome = IDEM_TOLD_REFUSED; /* The money stays where it is. */
        return true;
    }
    *ret_outcome = IDEM_TOLD_SUCCEEDED;
    return effect->order_memory != NULL && idem_sandbox_send_anyway(sandbox, effect);
}

void idem_sandbox_callback_turn(struct idem_sandbox *sandbox, struct idem_ledger_effect *effect)
{
    enum idem_sandbox_outcome outcome = IDEM_TOLD_PROCESSING;

    if (!turn_take(sandbox, effect, &outcome)) {
        return;
    }
    struct idem_sandbox_post *post = post_create(sandbox, effect, outcome, IDEM_TELLING_OK);
    if (post != NULL) {
        idem_sandbox_callback_post(sandbox, post);
    }
}

/* Life. */

static bool anybody_listens(const struct idem_sandbox *sandbox)
{
    for (size_t i = 0; i < IDEM_PROFILE_COUNT; i++) {
        if (sandbox->options.callback_urls[i] != NULL) {
            return true;
        }
    }
    return false;
}

enum idem_err idem_sandbox_callbacks_open(struct idem_sandbox *sandbox, struct idem_error *reterr)
{
    const struct idem_http_client_options options = {
        .loop = sandbox->options.loop,
        .clock = sandbox->options.clock,
        .calls_max = POSTS_MAX,
        .connections_per_host_max = CONNECTIONS,
    };

    if (!anybody_listens(sandbox)) {
        return IDEM_OK;
    }
    IDEM_ASSERT(sandbox->options.callback_secret_count > 0);
    IDEM_ASSERT(sandbox->options.callback_secret_count <= IDEM_SANDBOX_SECRETS_MAX);
    enum idem_err err = idem_digester_create(&sandbox->digester, reterr);
    if (err == IDEM_OK) {
        err = idem_http_client_create(&options, &sandbox->client, reterr);
    }
    if (err != IDEM_OK) {
        return err;
    }
    int rc = uv_prepare_init(sandbox->options.loop, &sandbox->reaper);
    IDEM_ASSERT(rc == 0); /* It only fills in the handle, as does the next. */
    sandbox->reaper.data = sandbox;
    sandbox->reaper_open = true;
    rc = uv_prepare_start(&sandbox->reaper, on_prepare);
    IDEM_ASSERT(rc == 0);
    return IDEM_OK;
}

static void reaper_after_close(uv_handle_t *handle)
{
    struct idem_sandbox *sandbox = handle->data;
    sandbox->reaper_closed = true;
}

void idem_sandbox_callbacks_close(struct idem_sandbox *sandbox)
{
    struct idem_list ended = { .count = 0 };

    IDEM_LIST_FOREACH (node, &sandbox->posts) {
        struct idem_sandbox_post *post = IDEM_CONTAINER_OF(node, struct idem_sandbox_post, node);
        if (post->under_way) {
            idem_http_client_cancel(sandbox->client, &post->http);
        }
    }
    if (sandbox->client != NULL) {
        idem_http_client_reap(sandbox->client, &ended); /* They go with the posts. */
    }
    while (sandbox->posts.first != NULL) {
        post_destroy(sandbox,
                     IDEM_CONTAINER_OF(sandbox->posts.first, struct idem_sandbox_post, node));
    }
    idem_http_client_destroy(sandbox->client);
    sandbox->client = NULL;
    idem_digester_destroy(sandbox->digester);
    sandbox->digester = NULL;
    if (sandbox->reaper_open) {
        uv_close((uv_handle_t *)&sandbox->reaper, reaper_after_close);
    }
}
