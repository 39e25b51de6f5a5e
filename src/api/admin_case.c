/*
 * Cases: what a person must look at, and the compensation of a payment that nobody ordered.
 *
 *     cases        read ---------------------------------------------> answer
 *     case         read ---------------------------------------------> answer   (admin.c)
 *     resolve      read -> task -> read -----------------------------> answer   (admin.c)
 *     compensate   read the case -> read the payment of its own -+
 *                                       absent: task (STRAY) ----+--> request -> answer
 *                                       given back: read by scope ------------> answer
 *
 * A stray payment was made at the provider and has no place in the books here: it succeeded after
 * it had failed, or its order number went to another. STRAY gives it a row of its own, whose id is
 * the case's, so that it is made once. Then it is given back as anything is: by a refund (or a
 * cancel, where it is only authorized) in the merchant's name, under a key that follows from the
 * case and in a scope of its own, which no caller's key leads to. Whoever asks again gets what the
 * first one got, wherever that one stopped. Where the merchant was quicker, the money is back, too:
 * then there is nothing to submit, and nothing is refused under the case's key for ever.
 */
#include "api/admin_internal.h"

#include "api/admin_view.h"
#include "api/content.h"
#include "api/fingerprint.h"
#include "api/member.h"
#include "api/query.h"
#include "api/scope.h"
#include "base/bug.h"

#define STATUS_OK       200
#define STATUS_ACCEPTED 202
#define WAIT_US         (10 * IDEM_US_PER_SECOND)

static bool state_read(struct idem_str text, bool *ret_open_only, struct idem_fault *ret_fault)
{
    *ret_open_only = !idem_str_equal(text, IDEM_STR("all"));
    return text.len == 0 || !*ret_open_only || idem_str_equal(text, IDEM_STR("open")) ||
           idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID, "\"state\" must be open or all.");
}

static bool kind_read(struct idem_str text,
                      enum idem_case_kind *ret_kind,
                      struct idem_fault *ret_fault)
{
    *ret_kind = IDEM_CASE_NONE;
    for (int kind = IDEM_CASE_NONE + 1; kind < IDEM_CASE_KIND_COUNT; kind++) {
        const char *name = idem_case_kind_name((enum idem_case_kind)kind);
        if (idem_str_equal(text, idem_str_from(name))) {
            *ret_kind = (enum idem_case_kind)kind;
        }
    }
    return text.len == 0 || *ret_kind != IDEM_CASE_NONE ||
           idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID,
                          "\"kind\" is no kind of case: see docs/admin.md.");
}

bool idem_admin_cases_begin(struct idem_api *api,
                            struct idem_admin_visit *visit,
                            const struct idem_net_request *request,
                            struct idem_fault *ret_fault)
{
    static const struct idem_str names[] = { { "cursor", 6 }, { "state", 5 }, { "kind", 4 } };
    const struct idem_query_members members = { .names = names, .count = IDEM_ARRAY_COUNT(names) };
    struct idem_str values[IDEM_ARRAY_COUNT(names)] = { { 0 } };
    if (!idem_query_read_some(request->query, &members, &visit->kept, values, ret_fault) ||
        !idem_admin_cursor_read(values[0], &visit->read.after_row, ret_fault) ||
        !state_read(values[1], &visit->read.open_only, ret_fault) ||
        !kind_read(values[2], &visit->read.case_kind, ret_fault)) {
        return false;
    }
    idem_admin_read_start(api, visit, IDEM_READ_CASES);
    return true;
}

bool idem_admin_compensate_begin(struct idem_api *api,
                                 struct idem_admin_visit *visit,
                                 const struct idem_net_request *request,
                                 struct idem_fault *ret_fault)
{
    struct idem_resolve *resolve = &idem_admin_command(visit, IDEM_COMMAND_RESOLVE)->resolve;
    resolve->verdict = IDEM_VERDICT_STRAY;
    resolve->by = idem_admin_by(visit);
    resolve->case_id = visit->route.id;
    resolve->asked_us = idem_clock_wall_us(api->options.clock);
    resolve->asked_mono_us = idem_clock_mono_us(api->options.clock);
    if (!idem_admin_body_begin(api, request, ret_fault) ||
        !idem_body_read_reason(&api->body, &visit->kept, &resolve->reason, ret_fault)) {
        return false;
    }
    idem_admin_read_start(api, visit, IDEM_READ_CASE);
    return true;
}

/* What the case says is kept, since the next look goes into the same memory. */
static void stray_keep(struct idem_admin_visit *visit)
{
    const struct idem_intent *intent = &visit->read.intent;
    visit->stray = (struct idem_stray){
        .principal = idem_buf_keep(&visit->kept, intent->principal),
        .scope = intent->scope,
        .intent_row = intent->row,
        .former_payment_id = intent->payment_id,
        .kind = intent->effect.kind,
    };
    IDEM_ASSERT(!visit->kept.full);
}

static void stray_task_start(struct idem_api *api, struct idem_admin_visit *visit)
{
    struct idem_command *command = &visit->task.item.command;
    command->scope = visit->stray.scope;
    command->intent_row = visit->stray.intent_row;
    command->subject_payment_id = visit->stray.former_payment_id;
    idem_admin_task_start(api, visit);
}

/* "case-" and its id. */
static struct idem_str key_keep(struct idem_admin_visit *visit)
{
    size_t from = visit->kept.len;
    idem_buf_add(&visit->kept, IDEM_STR(IDEM_STRAY_PREFIX));
    idem_uid_print(visit->route.id, &visit->kept);
    IDEM_ASSERT(!visit->kept.full);
    return idem_str_slice(idem_buf_str(&visit->kept), from, visit->kept.len - from);
}

/* A merchant may have used, or given up, a key of the same name; its endpoint is another. */
static struct idem_scope_names names_make(struct idem_api *api,
                                          struct idem_str principal,
                                          struct idem_str key)
{
    const struct idem_scope_of of = {
        .principal = principal,
        .endpoint = IDEM_STR("cases.compensate"),
        .key = key,
    };
    return idem_scope_make(api->digester, api->options.effect_secret, &of);
}

/* As if the merchant had asked for all of it, without a body. */
static void fingerprint_fill(struct idem_api *api, struct idem_accept *accept)
{
    char path[IDEM_ROUTE_PATH_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, path, sizeof(path));
    idem_buf_add(&buf, IDEM_STR("/v1/payments/"));
    idem_uid_print(accept->payment_id, &buf);
    idem_buf_add(&buf, accept->endpoint == IDEM_ENDPOINT_PAYMENTS_CANCEL ? IDEM_STR("/cancel")
                                                                         : IDEM_STR("/refunds"));
    const struct idem_fingerprint_of of = {
        .method = IDEM_STR("POST"),
        .path = idem_buf_str(&buf),
    };
    IDEM_ASSERT(!buf.full);
    idem_fingerprint_fill(api->digester, &api->options, IDEM_FINGERPRINT_RULE_JSON, &of, accept);
}

void idem_admin_compensate_send(struct idem_api *api, struct idem_admin_visit *visit)
{
    struct idem_request *request = &visit->request;
    idem_visit_request_clear(request);
    request->owner = IDEM_API_OWNER_OPERATOR;
    request->item.command.kind = IDEM_COMMAND_ACCEPT;
    struct idem_accept *accept = &request->item.command.accept;
    accept->principal = visit->stray.principal;
    accept->key = key_keep(visit);
    accept->endpoint = visit->stray.kind == IDEM_EFFECT_KIND_AUTHORIZE
                           ? IDEM_ENDPOINT_PAYMENTS_CANCEL
                           : IDEM_ENDPOINT_REFUNDS_CREATE;
    accept->payment_id = visit->route.id;
    accept->wait_us = WAIT_US;
    fingerprint_fill(api, accept);
    struct idem_scope_names names = names_make(api, accept->principal, accept->key);
    const struct idem_str tail = { .data = names.tail, .len = sizeof(names.tail) };
    accept->effect_id_tail = idem_buf_keep(&visit->kept, tail);
    request->item.command.scope = names.scope;
    IDEM_ASSERT(!visit->kept.full);
    idem_engine_submit(api->options.engine, request);
}

/* By whomever: these states hold no money, and none is on its way. */
static bool is_given_back(const struct idem_payment *payment)
{
    return payment->state == IDEM_PAYMENT_REFUNDED || payment->state == IDEM_PAYMENT_CANCELED ||
           payment->state == IDEM_PAYMENT_EXPIRED;
}

/* How giving it back stands; `intent`: the case's own, or NULL where it was done without one. */
static void compensation_answer(struct idem_api *api,
                                struct idem_admin_visit *visit,
                                uint16_t status,
                                const struct idem_intent *intent)
{
    static const struct idem_intent none = { .state = IDEM_INTENT_SUCCEEDED };
    const struct idem_intent *shown = intent != NULL ? intent : &none;
    struct idem_buf *body = idem_admin_answer_begin(api, status);
    idem_member_link(body, "{\"payment\":", "/v1/payments/", visit->route.id);
    idem_member_link(body, ",\"operation\":", "/v1/operations/", shown->id);
    if (intent != NULL) {
        idem_buf_printf(body, ",\"endpoint\":\"%s\"", idem_endpoint_name(intent->endpoint));
    } else {
        idem_buf_add(body, IDEM_STR(",\"endpoint\":null"));
    }
    idem_buf_printf(body, ",\"state\":\"%s\"", idem_operation_state_name(shown->state));
    if (shown->state == IDEM_INTENT_FAILED && shown->problem != IDEM_PROBLEM_NONE) {
        idem_buf_printf(body, ",\"problem\":\"%s\"", idem_problem_entry(shown->problem)->code);
    }
    idem_buf_add(body, IDEM_STR("}\n"));
    idem_admin_end(api, visit);
}

static void case_read(struct idem_api *api, struct idem_admin_visit *visit)
{
    if (!visit->read.found) {
        idem_admin_refuse(api, visit, IDEM_PROBLEM_NOT_FOUND, "There is no such case.");
        return;
    }
    stray_keep(visit);
    visit->read.principal = visit->stray.principal;
    idem_admin_read_start(api, visit, IDEM_READ_PAYMENT);
}

static void payment_read(struct idem_api *api, struct idem_admin_visit *visit)
{
    if (!visit->read.found) {
        stray_task_start(api, visit);
        return;
    }
    if (is_given_back(&visit->read.payment)) {
        visit->read.scope = names_make(api, visit->stray.principal, key_keep(visit)).scope;
        idem_admin_read_start(api, visit, IDEM_READ_OPERATION_BY_SCOPE);
        return;
    }
    idem_admin_compensate_send(api, visit); /* Somebody has begun before. */
}

void idem_admin_compensate_read(struct idem_api *api, struct idem_admin_visit *visit)
{
    IDEM_ASSERT(visit->read.answer == IDEM_STORE_DURABLE); /* Whoever calls has looked. */
    if (visit->read.kind == IDEM_READ_CASE) {
        case_read(api, visit);
        return;
    }
    if (visit->read.kind == IDEM_READ_PAYMENT) {
        payment_read(api, visit);
        return;
    }
    const struct idem_intent *intent = &visit->read.intent;
    bool own = visit->read.found && intent->state == IDEM_INTENT_SUCCEEDED;
    compensation_answer(api, visit, STATUS_OK, own ? intent : NULL);
}

/* What became of giving it back, for whoever compensates. */
static const char *problem_words(enum idem_problem problem)
{
    if (problem == IDEM_PROBLEM_ANSWER_EXPIRED) {
        return "The payment has a row of its own, and giving it back is over: `effect` says "
               "whether the money went. The stored answer is forgotten.";
    }
    return "The payment has a row of its own; `effect` says what is known of giving it back. Say "
           "the same again: it goes on, and gives it back once.";
}

/* Whoever finds it submitted has submitted nothing. */
static void submitted_tell(struct idem_api *api, const struct idem_admin_visit *visit)
{
    const struct idem_request *request = &visit->request;
    if (!request->claimed) {
        return;
    }
    const char *verb = request->item.command.accept.endpoint == IDEM_ENDPOINT_PAYMENTS_CANCEL
                           ? "compensate-cancel"
                           : "compensate-refund";
    idem_admin_act(api, visit, verb,
                   request->reply == IDEM_REPLY_PROBLEM
                       ? idem_admin_outcome(request->problem)
                       : idem_operation_state_name(request->outcome.intent.state));
}

void idem_admin_request_done(struct idem_api *api, struct idem_admin_visit *visit)
{
    const struct idem_request *request = &visit->request;
    submitted_tell(api, visit);
    if (request->reply == IDEM_REPLY_PROBLEM) {
        const struct idem_problem_details details = idem_visit_problem(request);
        idem_admin_refuse_only(api, visit, &details, problem_words(request->problem));
        return;
    }
    uint16_t status = request->reply == IDEM_REPLY_OPERATION ? STATUS_ACCEPTED : STATUS_OK;
    compensation_answer(api, visit, status, &request->outcome.intent);
}
