/*
 * The memory store numbers messages from 1, so the n-th message has row n + 1. What a merchant is
 * told is looked at when it is posted, as a wire would: later the worker may use its memory anew.
 */
#include "unit/outbox/scene.h"

#include "base/attr.h"

#define QUIET_ROUNDS 4 /* What came back needs a step, which needs a commit, which needs a step. */

struct scene scene;

/* ---- merchants ---- */

static struct merchant *merchant_of(const struct idem_post_call *call)
{
    for (size_t i = 0; i < scene.merchant_count; i++) {
        if (idem_uid_equal(scene.merchants[i].webhook.id, call->webhook->id)) {
            return &scene.merchants[i];
        }
    }
    abort();
}

static void answer(struct idem_post_call *call)
{
    struct merchant *merchant = merchant_of(call);
    call->status = merchant->status;
    call->retry_after_us = merchant->retry_after_us;
    if (merchant->status == 0) {
        (void)snprintf(call->detail, sizeof(call->detail), "the connection broke");
    }
    merchant->under_way -= 1;
    idem_list_push(&scene.answered, &call->node);
}

static enum idem_err port_submit(struct idem_post_port *port, struct idem_post_call *call)
{
    (void)port;
    if (scene.port_full) {
        return IDEM_E_LIMIT;
    }
    struct merchant *merchant = merchant_of(call);
    assert_true(scene.posted_count < SCENE_POSTED);
    assert_true(call->not_after_us > harness.mono_us);
    EXPECT_TEXT(call->webhook->url, "https://shop.example/hook");
    assert_true(call->message->data.len >= 2 && call->message->data.data[0] == '{');
    scene.posted[scene.posted_count] = (struct posted){
        .webhook = (size_t)(merchant - scene.merchants),
        .message_row = call->message->row,
        .message_id = call->message->id,
        .type = call->message->type,
        .at_us = harness.mono_us,
    };
    scene.posted_count += 1;
    merchant->under_way += 1;
    merchant->most = merchant->under_way > merchant->most ? merchant->under_way : merchant->most;
    if (merchant->holds) {
        idem_list_push(&scene.held, &call->node);
    } else {
        answer(call);
    }
    return IDEM_OK;
}

static void port_reap(struct idem_post_port *port, struct idem_list *ret_done)
{
    (void)port;
    idem_list_join(ret_done, &scene.answered);
}

static void port_cancel(struct idem_post_port *port, struct idem_post_call *call)
{
    (void)port;
    bool is_held = false;
    IDEM_LIST_FOREACH (node, &scene.held) {
        is_held = is_held || node == &call->node;
    }
    if (!is_held) {
        return; /* It has ended already. */
    }
    idem_list_remove(&scene.held, &call->node);
    merchant_of(call)->under_way -= 1;
    (void)snprintf(call->detail, sizeof(call->detail), "cancelled");
    idem_list_push(&scene.answered, &call->node);
}

static void port_destroy(struct idem_post_port *port)
{
    (void)port;
}

static const struct idem_post_port_ops port_ops = {
    .submit = port_submit,
    .reap = port_reap,
    .cancel = port_cancel,
    .destroy = port_destroy,
};

void scene_let_go(size_t webhook)
{
    struct idem_list kept = { .count = 0 };
    struct idem_list_node *node = NULL;
    while ((node = idem_list_pop(&scene.held)) != NULL) {
        struct idem_post_call *call = IDEM_CONTAINER_OF(node, struct idem_post_call, node);
        if (merchant_of(call) == &scene.merchants[webhook]) {
            answer(call);
        } else {
            idem_list_push(&kept, node);
        }
    }
    idem_list_join(&scene.held, &kept);
    scene_go_on();
}

/* ---- the process ---- */

int scene_begin(void **state)
{
    (void)state;
    scene = (struct scene){ .port = { .ops = &port_ops } };
    harness_begin();
    harness_start();
    scene.options = (struct idem_outbox_options){
        .engine = harness.engine,
        .port = &scene.port,
        .clock = &harness.clock,
        .random = &harness.random,
        .posts_max = SCENE_POSTS,
        .keep_us = 60 * DAY,
    };
    return 0;
}

void scene_start(void)
{
    assert_null(scene.outbox);
    assert_int_equal(idem_outbox_create(&scene.options, &scene.outbox), IDEM_OK);
}

int scene_end(void **state)
{
    (void)state;
    if (scene.outbox != NULL) {
        idem_outbox_stop(scene.outbox);
        scene_go_on();
        idem_outbox_hurry(scene.outbox);
        scene_go_on();
        assert_true(idem_outbox_idle(scene.outbox));
        idem_outbox_destroy(scene.outbox);
    }
    idem_outbox_destroy(NULL);
    harness_end();
    return 0;
}

/* Grows with everything that happens. */
static uint64_t progress(void)
{
    return idem_engine_stats(harness.engine)->batches + harness.asked[IDEM_READ_POSTS] +
           scene.posted_count;
}

void scene_go_on(void)
{
    int quiet = 0;
    while (quiet < QUIET_ROUNDS) {
        uint64_t before = progress();
        idem_engine_step(harness.engine);
        if (scene.outbox != NULL) {
            idem_outbox_step(scene.outbox);
        }
        idem_engine_step(harness.engine);
        quiet = progress() != before ? 0 : quiet + 1;
    }
}

void scene_pass(int64_t us)
{
    harness.mono_us += us;
    scene_go_on();
}

enum idem_problem scene_run(const struct idem_command *command)
{
    static struct idem_task task;
    struct idem_list done = { .count = 0 };
    task = (struct idem_task){ .item = { .command = *command }, .done = &done };
    idem_engine_run(harness.engine, &task);
    harness_step();
    assert_ptr_equal(idem_list_pop(&done), &task.item.node);
    assert_int_equal(task.item.answer, IDEM_STORE_DURABLE);
    return task.outcome.release.problem;
}

size_t scene_add_webhook(void)
{
    size_t index = scene.merchant_count;
    struct merchant *merchant = &scene.merchants[index];
    assert_true(index < SCENE_WEBHOOKS);
    scene.merchant_count += 1;
    merchant->status = 200;
    merchant->webhook = (struct idem_webhook){
        .id = { .bytes = { 0x77, (uint8_t)(index + 1) } },
        .principal = IDEM_STR("shop"),
        .url = IDEM_STR("https://shop.example/hook"),
        .types = UINT64_MAX,
    };
    const struct idem_command command = {
        .kind = IDEM_COMMAND_WEBHOOK,
        .webhook = {
            .action = IDEM_WEBHOOK_ADD,
            .row = merchant->webhook,
            .by = IDEM_STR("operator"),
        },
    };
    assert_int_equal(scene_run(&command), IDEM_PROBLEM_NONE);
    return index;
}

void scene_test(size_t webhook)
{
    const struct idem_command command = {
        .kind = IDEM_COMMAND_WEBHOOK,
        .webhook = {
            .action = IDEM_WEBHOOK_TEST,
            .row = { .id = scene.merchants[webhook].webhook.id },
            .by = IDEM_STR("operator"),
        },
    };
    assert_int_equal(scene_run(&command), IDEM_PROBLEM_NONE);
}

void scene_pay(const char *key)
{
    static struct idem_request request;
    harness_submit(harness_pay(&request, key));
    EXPECT_REPLY(request, "answer 201");
}

/* A page of the webhook's deliveries, behind `after_row`. */
static const struct idem_read *deliveries(size_t webhook, int64_t after_row)
{
    static struct idem_read read;
    struct idem_list done = { .count = 0 };
    read = (struct idem_read){
        .kind = IDEM_READ_DELIVERIES,
        .id = scene.merchants[webhook].webhook.id,
        .after_row = after_row,
        .done = &done,
    };
    idem_engine_read(harness.engine, &read);
    idem_engine_step(harness.engine);
    assert_ptr_equal(idem_list_pop(&done), &read.node);
    return &read;
}

struct idem_delivery scene_delivery(size_t webhook, size_t message)
{
    const struct idem_read *read = deliveries(webhook, 0);
    size_t i = 0;
    while (i < read->post_count && read->posts[i].message.row != (int64_t)message + 1) {
        i += 1;
        if (i == read->post_count && read->more) {
            read = deliveries(webhook, read->posts[i - 1].delivery.row);
            i = 0;
        }
    }
    return i < read->post_count ? read->posts[i].delivery : (struct idem_delivery){ .row = 0 };
}

size_t scene_times(size_t webhook, size_t message)
{
    size_t count = 0;
    for (size_t i = 0; i < scene.posted_count; i++) {
        bool is_it = message == SIZE_MAX || scene.posted[i].message_row == (int64_t)message + 1;
        count += scene.posted[i].webhook == webhook && is_it ? 1 : 0;
    }
    return count;
}
