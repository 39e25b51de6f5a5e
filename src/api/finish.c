/*
 * From what the engine gave back to an answer.
 *
 *   a stored answer      goes out byte for byte; on a route with answer = resource a replayed
 *                        success is read again and shown as it is now, with the stored status
 *   still running        the operation is read once more, so that the 202 shows its present state;
 *                        if it is final by then, the stored answer goes out instead
 *   a problem            is rendered from the catalogue
 *
 * A read that cannot be answered, or finds no free place, never takes back what the request's own
 * commit has proven: the answer is then made of the outcome.
 */
#include "api/api_internal.h"
#include "api/content.h"
#include "api/key.h"
#include "api/operation.h"
#include "base/bug.h"
#include "base/crash.h"
#include "base/date.h"

#define RETRY_SOON_US      IDEM_US_PER_SECOND
#define RETRY_LATEST_US    (60 * IDEM_US_PER_SECOND)
#define VALUE_MAX          600 /* A key with every byte escaped is 512 bytes. */
#define STATUS_OK          200
#define STATUS_ACCEPTED    202
#define STATUS_TOO_MANY    429
#define STATUS_UNAVAILABLE 503

/* Fresh memory for one header value. */
struct value {
    struct idem_buf buf;
    char memory[VALUE_MAX];
};

static struct idem_buf *value_begin(struct value *value)
{
    idem_buf_init(&value->buf, value->memory, sizeof(value->memory));
    return &value->buf;
}

static void value_end(struct idem_reply *reply, struct idem_str name, const struct value *value)
{
    IDEM_ASSERT(!value->buf.full);
    idem_reply_header(reply, name, idem_buf_str(&value->buf));
}

void idem_visit_answer(struct idem_api *api, struct idem_visit *visit)
{
    if (visit->key.len > 0) {
        struct value value;
        idem_key_print(visit->key, value_begin(&value));
        value_end(&api->reply, IDEM_STR("Idempotency-Key"), &value);
    }
    struct idem_net_reply reply = idem_reply_end(&api->reply);
    if (visit->key.len > 0) {
        idem_crash_point("reply-before");
    }
    idem_exchange_reply(visit->exchange, &reply);
    if (visit->key.len > 0) {
        idem_crash_point("reply-after");
    }
    visit->exchange = NULL;
    if (visit->read != NULL) {
        visit->account->reads -= 1;
        idem_list_push_front(&api->free_reads, &visit->read->node);
        visit->read = NULL;
    }
    idem_account_leave(visit->account);
    api->free[api->free_count] = visit;
    api->free_count += 1;
}

void idem_visit_refuse(struct idem_api *api,
                       struct idem_visit *visit,
                       const struct idem_problem_details *details,
                       struct idem_str what)
{
    idem_api_problem(api, details, what);
    uint16_t status = idem_problem_entry(details->problem)->status;
    if (status == STATUS_TOO_MANY || status == STATUS_UNAVAILABLE) {
        idem_reply_retry_after(&api->reply, RETRY_SOON_US);
    }
    idem_visit_answer(api, visit);
}

static void expires_add(struct idem_reply *reply, int64_t expires_us)
{
    if (expires_us <= 0) {
        return;
    }
    struct value value;
    idem_date_print_imf(expires_us, value_begin(&value));
    value_end(reply, IDEM_STR("Idempotency-Expires"), &value);
}

/* What was honoured: `wait` always, `respond-async` when the answer is a 202. */
static void preference_add(struct idem_reply *reply, const struct idem_prefer *prefer)
{
    struct value value;
    struct idem_buf *buf = value_begin(&value);
    if (prefer->respond_async && reply->status == STATUS_ACCEPTED) {
        idem_buf_add(buf, IDEM_STR("respond-async"));
    }
    if (prefer->wait) {
        idem_buf_add(buf, buf->len > 0 ? IDEM_STR(", wait=") : IDEM_STR("wait="));
        idem_buf_add_i64(buf, prefer->wait_seconds);
    }
    if (buf->len > 0) {
        value_end(reply, IDEM_STR("Preference-Applied"), &value);
    }
}

/* The headers of an answer to a keyed request that the engine has seen. */
static void keyed_headers_add(struct idem_api *api,
                              const struct idem_visit *visit,
                              const struct idem_intent *intent)
{
    idem_reply_header(&api->reply, IDEM_STR("Idempotent-Replayed"),
                      visit->request.replayed ? IDEM_STR("true") : IDEM_STR("false"));
    expires_add(&api->reply, intent->expires_us);
    preference_add(&api->reply, &visit->prefer);
}

static void stored_answer(struct idem_api *api,
                          struct idem_visit *visit,
                          const struct idem_intent *intent)
{
    idem_reply_answer(&api->reply, &intent->answer);
    keyed_headers_add(api, visit, intent);
    idem_visit_answer(api, visit);
}

/*
 * Soon while somebody is on the wire, and once it is released: then it waits for the same request
 * only. Otherwise until it is looked at again, within bounds.
 */
static int64_t retry_after(struct idem_api *api, const struct idem_intent *intent)
{
    int64_t wait_us = intent->due_us - idem_clock_wall_us(api->options.clock);
    bool on_wire = intent->state == IDEM_INTENT_CLAIMED || intent->state == IDEM_INTENT_DISPATCHED;
    if (on_wire || intent->state == IDEM_INTENT_RELEASED || wait_us < RETRY_SOON_US) {
        return RETRY_SOON_US;
    }
    return wait_us < RETRY_LATEST_US ? wait_us : RETRY_LATEST_US;
}

/* Begins the operation's view; headers that depend on why it is shown are the caller's. */
static void view_begin(struct idem_api *api,
                       const struct idem_operation *operation,
                       uint16_t status,
                       int64_t retry_after_us)
{
    const struct idem_intent *intent = operation->intent;
    idem_reply_begin(&api->reply, status);
    idem_reply_header(&api->reply, IDEM_STR("Content-Type"), IDEM_CONTENT_JSON);
    if (status == STATUS_ACCEPTED) {
        struct value value;
        idem_operation_link_print(intent->id, value_begin(&value));
        value_end(&api->reply, IDEM_STR("Location"), &value);
    }
    if (idem_intent_is_open(intent->state)) {
        idem_reply_retry_after(&api->reply,
                               retry_after_us > 0 ? retry_after_us : retry_after(api, intent));
    }
    idem_operation_print(operation, &api->reply.body);
}

static struct idem_operation operation_of_read(const struct idem_read *read)
{
    return (struct idem_operation){
        .intent = &read->intent,
        .sends = read->sends,
        .send_count = read->send_count,
        .events = read->events,
        .event_count = read->event_count,
        .event_total = read->event_total,
    };
}

static struct idem_operation operation_of_outcome(const struct idem_request *request)
{
    return (struct idem_operation){ .intent = &request->outcome.intent };
}

/* 202, or the end that the operation has come to in the meantime. */
static void running_answer(struct idem_api *api,
                           struct idem_visit *visit,
                           const struct idem_operation *operation)
{
    const struct idem_intent *intent = operation->intent;
    if (idem_intent_is_final(intent->state) && intent->answer.status != 0) {
        stored_answer(api, visit, intent);
        return;
    }
    if (intent->state == IDEM_INTENT_RELEASED) {
        const struct idem_problem_details details = {
            .problem = IDEM_PROBLEM_NOT_EXECUTED,
            .operation_id = intent->id,
        };
        idem_api_problem(api, &details, IDEM_STR(""));
        idem_reply_retry_after(&api->reply, RETRY_SOON_US);
    } else {
        view_begin(api, operation, STATUS_ACCEPTED, visit->request.retry_after_us);
    }
    keyed_headers_add(api, visit, intent);
    idem_visit_answer(api, visit);
}

/* Abandoning answers with the operation: 200 once it is over, 202 while it is not. */
static void abandon_answer(struct idem_api *api,
                           struct idem_visit *visit,
                           const struct idem_operation *operation)
{
    bool open = idem_intent_is_open(operation->intent->state);
    view_begin(api, operation, open ? STATUS_ACCEPTED : STATUS_OK, visit->request.retry_after_us);
    expires_add(&api->reply, operation->intent->expires_us);
    idem_visit_answer(api, visit);
}

/* What may be told of the intent beside the problem itself. */
struct idem_problem_details idem_visit_problem(const struct idem_request *request)
{
    const struct idem_intent *intent = &request->outcome.intent;
    struct idem_problem_details details = { .problem = request->problem };
    if (!request->identified || request->problem == IDEM_PROBLEM_KEY_REUSED) {
        return details; /* P5: nothing of another request is shown. */
    }
    details.operation_id = intent->id;
    if (request->problem == IDEM_PROBLEM_ANSWER_EXPIRED) {
        bool done = intent->state == IDEM_INTENT_SUCCEEDED;
        details.effect = done ? IDEM_EFFECT_DONE : IDEM_EFFECT_NONE;
        details.payment_id = intent->payment_id;
        details.refund_id = intent->refund_id;
    }
    return details;
}

/* The core looks into a body for one thing only. */
static struct idem_str problem_words(enum idem_problem problem)
{
    return problem == IDEM_PROBLEM_BODY_INVALID
               ? IDEM_STR("\"order_no\": case- and an id is a number of an operator's.")
               : IDEM_STR("");
}

static void problem_answer(struct idem_api *api, struct idem_visit *visit)
{
    const struct idem_request *request = &visit->request;
    const struct idem_problem_details details = idem_visit_problem(request);
    idem_api_problem(api, &details, problem_words(request->problem));
    bool later = idem_problem_entry(request->problem)->status == 503 ||
                 request->problem == IDEM_PROBLEM_IN_PROGRESS;
    if (request->retry_after_us > 0 || later) {
        idem_reply_retry_after(&api->reply, request->retry_after_us);
    }
    if (!idem_uid_is_zero(details.operation_id) && visit->route.kind == IDEM_ROUTE_KEYED) {
        keyed_headers_add(api, visit, &request->outcome.intent);
    }
    idem_visit_answer(api, visit);
}

bool idem_visit_read_take(struct idem_api *api, struct idem_visit *visit)
{
    IDEM_ASSERT(visit->read == NULL);
    if (!idem_account_may_read(visit->account, &api->options.limits, api->options.reads_max)) {
        return false;
    }
    struct idem_list_node *node = idem_list_pop(&api->free_reads);
    if (node == NULL) {
        return false;
    }
    visit->account->reads += 1;
    visit->read = IDEM_CONTAINER_OF(node, struct idem_api_read, node);
    visit->read->visit = visit;
    return true;
}

void idem_visit_read_start(struct idem_api *api, struct idem_visit *visit, enum idem_read_kind kind)
{
    struct idem_read *read = &visit->read->read;
    read->kind = kind;
    read->principal = idem_account_principal(visit->account);
    read->done = &api->done_reads;
    read->now_us = idem_clock_wall_us(api->options.clock);
    idem_engine_read(api->options.engine, read);
}

static void resource_answer(struct idem_api *api, struct idem_visit *visit)
{
    const struct idem_read *read = &visit->read->read;
    const struct idem_intent *intent = &visit->request.outcome.intent;
    uint16_t status = intent->answer.status;
    char memory[IDEM_ANSWER_MAX]; /* What fitted as a stored answer fits again. */
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    struct idem_answer answer = read->kind == IDEM_READ_REFUND
                                    ? idem_answer_refund(status, &read->refund, &buf)
                                    : idem_answer_payment(status, &read->payment, &buf);
    IDEM_ASSERT(!buf.full);
    idem_reply_answer(&api->reply, &answer);
    keyed_headers_add(api, visit, intent);
    idem_visit_answer(api, visit);
}

static void after_request(struct idem_api *api, struct idem_visit *visit)
{
    const struct idem_read *read = visit->read == NULL ? NULL : &visit->read->read;
    bool known = read != NULL && read->answer == IDEM_STORE_DURABLE && read->found;
    struct idem_operation operation =
        known ? operation_of_read(read) : operation_of_outcome(&visit->request);
    if (visit->route.kind == IDEM_ROUTE_ABANDON) {
        abandon_answer(api, visit, &operation);
        return;
    }
    if (visit->request.reply == IDEM_REPLY_OPERATION) {
        running_answer(api, visit, &operation);
        return;
    }
    if (known) {
        resource_answer(api, visit);
        return;
    }
    stored_answer(api, visit, &visit->request.outcome.intent);
}

/* Once more into the store, about the request's intent. */
static void look_again(struct idem_api *api,
                       struct idem_visit *visit,
                       enum idem_read_kind kind,
                       struct idem_uid id)
{
    visit->requested = true;
    if (!idem_visit_read_take(api, visit)) {
        after_request(api, visit);
        return;
    }
    visit->read->read.id = id;
    idem_visit_read_start(api, visit, kind);
}

/* A replayed success on a route whose answer is the resource. */
static bool wants_resource(const struct idem_api *api, const struct idem_visit *visit)
{
    return api->options.routes[visit->route.endpoint].answer_resource && visit->request.replayed &&
           visit->request.outcome.intent.state == IDEM_INTENT_SUCCEEDED;
}

static void keyed_answer_done(struct idem_api *api, struct idem_visit *visit)
{
    const struct idem_intent *intent = &visit->request.outcome.intent;
    if (visit->gone || !wants_resource(api, visit)) {
        stored_answer(api, visit, intent);
        return;
    }
    if (!idem_uid_is_zero(intent->refund_id)) {
        look_again(api, visit, IDEM_READ_REFUND, intent->refund_id);
    } else {
        look_again(api, visit, IDEM_READ_PAYMENT, intent->payment_id);
    }
}

void idem_visit_request_done(struct idem_api *api, struct idem_visit *visit)
{
    const struct idem_request *request = &visit->request;
    bool keyed = visit->route.kind == IDEM_ROUTE_KEYED;
    switch (request->reply) {
    case IDEM_REPLY_ANSWER:
        if (keyed) {
            keyed_answer_done(api, visit);
            return;
        }
        look_again(api, visit, IDEM_READ_OPERATION, request->outcome.intent.id);
        return;
    case IDEM_REPLY_OPERATION:
        look_again(api, visit, IDEM_READ_OPERATION, request->outcome.intent.id);
        return;
    case IDEM_REPLY_PROBLEM:
        problem_answer(api, visit);
        return;
    case IDEM_REPLY_NONE:
    case IDEM_REPLY_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void resource_show(struct idem_api *api, struct idem_visit *visit)
{
    const struct idem_read *read = &visit->read->read;
    idem_reply_begin(&api->reply, STATUS_OK);
    idem_reply_header(&api->reply, IDEM_STR("Content-Type"), IDEM_CONTENT_JSON);
    if (visit->route.kind == IDEM_ROUTE_REFUND) {
        idem_refund_print(&read->refund, &api->reply.body);
    } else {
        idem_payment_print(&read->payment, &api->reply.body);
    }
    idem_visit_answer(api, visit);
}

static void operation_show(struct idem_api *api, struct idem_visit *visit)
{
    struct idem_operation operation = operation_of_read(&visit->read->read);
    view_begin(api, &operation, STATUS_OK, 0);
    expires_add(&api->reply, visit->read->read.intent.expires_us);
    idem_visit_answer(api, visit);
}

void idem_visit_read_done(struct idem_api *api, struct idem_visit *visit)
{
    if (visit->requested) {
        after_request(api, visit);
        return;
    }
    if (visit->read->read.answer != IDEM_STORE_DURABLE) {
        const struct idem_problem_details details = { .problem = IDEM_PROBLEM_UNAVAILABLE };
        idem_visit_refuse(api, visit, &details, IDEM_STR("The store cannot be read now."));
        return;
    }
    bool by_key = visit->route.kind == IDEM_ROUTE_OPERATION_BY_KEY;
    if (!visit->read->read.found) {
        const struct idem_problem_details details = {
            .problem = by_key ? IDEM_PROBLEM_KEY_UNKNOWN : IDEM_PROBLEM_NOT_FOUND,
        };
        idem_visit_refuse(api, visit, &details, IDEM_STR(""));
        return;
    }
    if (by_key || visit->route.kind == IDEM_ROUTE_OPERATION) {
        operation_show(api, visit);
        return;
    }
    resource_show(api, visit);
}
