/*
 * What providers say by themselves: POST /v1/callbacks/{entry}.
 *
 *     request --> reader: signature, age, meaning --> task (evidence) --> reply, once durable
 *                    |
 *                    +--> forged, stale, future, unreadable: refused and counted; ignored: taken
 *
 * There is no bearer here: the signature is the credential, and what it does not cover is not
 * believed. An event is evidence as any answer is, and its row in the inbox stands in the same
 * commit, so that the same event changes nothing a second time. The reply is the provider's own
 * word for "taken", and leaves only after the commit; until then the provider keeps the event and
 * says it again, which is the only queue that there is. So nothing is lost where no place is free,
 * the store is down or this process dies.
 */
#include "api/api_internal.h"

#include <string.h>

#include "api/content.h"
#include "api/header.h"
#include "base/bug.h"

#define SOON_US IDEM_US_PER_SECOND

static struct idem_str field_find(const void *head, struct idem_str name)
{
    struct idem_str value = { .len = 0 };
    size_t count = idem_header_find(head, name, &value);
    return count == 1 ? value : (struct idem_str){ .len = 0 };
}

static void reply_send(struct idem_api *api, struct idem_exchange *exchange)
{
    struct idem_net_reply reply = idem_reply_end(&api->reply);
    idem_exchange_reply(exchange, &reply);
}

/* In the provider's own words. */
static void answer(struct idem_api *api,
                   struct idem_exchange *exchange,
                   const struct idem_callback *callback,
                   enum idem_callback_answer what)
{
    const struct idem_callback_reply *words = &callback->replies[what];
    idem_reply_begin(&api->reply, words->status);
    if (words->content_type != NULL) {
        idem_reply_header(&api->reply, IDEM_STR("Content-Type"),
                          idem_str_from(words->content_type));
        idem_buf_add(&api->reply.body, idem_str_from(words->body));
    }
    if (what == IDEM_CALLBACK_LATER) {
        idem_reply_retry_after(&api->reply, SOON_US);
    }
    reply_send(api, exchange);
}

static void refuse(struct idem_api *api,
                   struct idem_exchange *exchange,
                   enum idem_problem problem,
                   const char *what)
{
    const struct idem_problem_details details = { .problem = problem };
    idem_api_problem(api, &details, idem_str_from(what));
    if (problem == IDEM_PROBLEM_UNAVAILABLE) {
        idem_reply_retry_after(&api->reply, SOON_US);
    }
    reply_send(api, exchange);
}

static void visit_free(struct idem_api *api, struct idem_callback_visit *visit)
{
    visit->exchange = NULL;
    idem_list_push_front(&api->callback_free, &visit->node);
}

static void command_fill(struct idem_callback_visit *visit)
{
    struct idem_scope scope;
    bool is_ours = idem_effect_id_scope(visit->callback.evidence.effect_id, &scope);
    IDEM_ASSERT(is_ours); /* The reader says OK of nothing else. */
    struct idem_command *command = &visit->task.item.command;
    memset(&visit->task, 0, offsetof(struct idem_task, outcome));
    command->kind = IDEM_COMMAND_EVIDENCE;
    command->scope = scope;
    command->evidence = visit->callback.evidence;
    IDEM_ASSERT(command->evidence.source == IDEM_SOURCE_CALLBACK);
}

static void task_start(struct idem_api *api, struct idem_callback_visit *visit)
{
    command_fill(visit);
    visit->task.done = &api->callback_done;
    idem_exchange_set_owner(visit->exchange, &visit->gone);
    idem_engine_run(api->options.engine, &visit->task);
}

static void judge(struct idem_api *api, struct idem_callback_visit *visit)
{
    struct idem_exchange *exchange = visit->exchange;
    const struct idem_callback *callback = &visit->callback;
    api->callbacks[callback->verdict] += 1;
    if (callback->verdict == IDEM_CALLBACK_OK) {
        task_start(api, visit);
        return;
    }
    if (callback->verdict == IDEM_CALLBACK_NO_ENTRY) {
        refuse(api, exchange, IDEM_PROBLEM_NOT_FOUND, "No provider is listened to here.");
    } else {
        bool ignored = callback->verdict == IDEM_CALLBACK_IGNORED;
        answer(api, exchange, callback, ignored ? IDEM_CALLBACK_TAKEN : IDEM_CALLBACK_REFUSED);
    }
    visit_free(api, visit);
}

void idem_callback_begin(struct idem_api *api,
                         struct idem_exchange *exchange,
                         const struct idem_route *route)
{
    const struct idem_net_request *request = idem_exchange_request(exchange);
    struct idem_callback_reader *reader = api->options.callbacks;
    if (reader == NULL) {
        api->callbacks[IDEM_CALLBACK_NO_ENTRY] += 1;
        refuse(api, exchange, IDEM_PROBLEM_NOT_FOUND, "No provider is listened to here.");
        return;
    }
    struct idem_list_node *node = idem_list_pop(&api->callback_free);
    if (node == NULL) {
        api->callbacks_crowded += 1;
        refuse(api, exchange, IDEM_PROBLEM_UNAVAILABLE, "Too many events are being worked on.");
        return;
    }
    struct idem_callback_visit *visit = IDEM_CONTAINER_OF(node, struct idem_callback_visit, node);
    const struct idem_callback_in in = {
        .field = field_find,
        .head = request,
        .body = request->body,
        .now_us = idem_clock_wall_us(api->options.clock),
    };
    visit->exchange = exchange;
    visit->gone = false;
    reader->read(reader, idem_route_name(route), &in, &visit->callback);
    judge(api, visit);
}

static void task_done(struct idem_api *api, struct idem_callback_visit *visit)
{
    const struct idem_task *task = &visit->task;
    bool durable = task->item.answer == IDEM_STORE_DURABLE;
    bool taken = durable && task->outcome.release.problem != IDEM_PROBLEM_UNAVAILABLE;
    api->callbacks_matched += taken && task->outcome.intent.row != 0 ? 1 : 0;
    api->callbacks_unmatched += taken && task->outcome.intent.row == 0 ? 1 : 0;
    api->callbacks_not_durable += taken ? 0 : 1;
    answer(api, visit->exchange, &visit->callback,
           taken ? IDEM_CALLBACK_TAKEN : IDEM_CALLBACK_LATER);
    visit_free(api, visit);
}

void idem_callbacks_step(struct idem_api *api)
{
    struct idem_list tasks = { 0 };
    idem_list_join(&tasks, &api->callback_done);
    struct idem_list_node *node;
    while ((node = idem_list_pop(&tasks)) != NULL) {
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        struct idem_task *task = IDEM_CONTAINER_OF(item, struct idem_task, item);
        task_done(api, IDEM_CONTAINER_OF(task, struct idem_callback_visit, task));
    }
}
