/*
 * The operators' routes. Each is safe to repeat by what it does, so there are no keys here.
 *
 *     list, summary, credentials   read ---------------------------> answer
 *     operation                    read ---------------------------> answer
 *     resolve, erase               read (whose scope) -> task -> read -> answer
 *     add, revoke, end of the mode                       task ------> answer
 *
 * A task's commit is durable before its answer leaves and before anything in memory follows it.
 * Then a read that fails does not take it back: the answer is made of the outcome.
 *
 * What became of a task is also told to whoever writes it down: the store has events of its own of
 * what changed, but a verdict that was refused and a credential leave no other trace.
 *
 * Operators have visits of their own, so that they get through when the merchants' are all in use.
 */
#include "api/admin_internal.h"

#include <string.h>

#include "api/admin_view.h"
#include "api/content.h"
#include "api/query.h"
#include "base/bug.h"

#define SOON_US    IDEM_US_PER_SECOND
#define STATUS_OK  200
#define STATUS_NEW 201
#define STOPPING   "The service is stopping."

/* ---- answers ---- */

static void promise_end(struct idem_api *api, struct idem_admin_visit *visit)
{
    if (visit->promised) {
        idem_credentials_forgo(&api->credentials);
        visit->promised = false;
    }
}

void idem_admin_end(struct idem_api *api, struct idem_admin_visit *visit)
{
    struct idem_net_reply reply = idem_reply_end(&api->reply);
    idem_exchange_reply(visit->exchange, &reply);
    visit->exchange = NULL;
    promise_end(api, visit);
    idem_list_push_front(&api->admin_free, &visit->node);
}

struct idem_buf *idem_admin_answer_begin(struct idem_api *api, uint16_t status)
{
    idem_reply_begin(&api->reply, status);
    idem_reply_header(&api->reply, IDEM_STR("Content-Type"), IDEM_CONTENT_JSON);
    return &api->reply.body;
}

void idem_admin_refuse(struct idem_api *api,
                       struct idem_admin_visit *visit,
                       enum idem_problem problem,
                       const char *what)
{
    const struct idem_problem_details details = { .problem = problem };
    idem_api_problem(api, &details, idem_str_from(what));
    if (idem_problem_entry(problem)->status == 503) {
        idem_reply_retry_after(&api->reply, SOON_US);
    }
    idem_admin_end(api, visit);
}

static const char *conflict_words(const struct idem_command *command)
{
    if (command->kind == IDEM_COMMAND_DELIVERY) {
        return "Nothing was changed: the webhook is disabled. Enable it first.";
    }
    if (command->kind == IDEM_COMMAND_WEBHOOK) {
        return command->webhook.action == IDEM_WEBHOOK_ADD
                   ? "Nothing was changed: another webhook has this id, or its principal has as "
                     "many as there can be."
                   : "Nothing was done: the webhook is disabled. Enable it first.";
    }
    if (command->kind == IDEM_COMMAND_RESOLVE && command->resolve.verdict == IDEM_VERDICT_STRAY) {
        return "Nothing was changed: this case is not open, or not about a payment that the "
               "provider made and the books do not have.";
    }
    return "Nothing was changed: the operation's state does not allow this now. Look at it "
           "before deciding anew.";
}

void idem_admin_refuse_only(struct idem_api *api,
                            struct idem_admin_visit *visit,
                            const struct idem_problem_details *details,
                            const char *what)
{
    api->problems[details->problem] += 1;
    idem_reply_problem_only(&api->reply, details, idem_str_from(what));
    if (idem_problem_entry(details->problem)->status == 503) {
        idem_reply_retry_after(&api->reply, SOON_US);
    }
    idem_admin_end(api, visit);
}

/* What the core said no to, in words for whoever resolves and not for whoever pays. */
static const char *core_words(const struct idem_command *command, enum idem_problem problem)
{
    if (problem == IDEM_PROBLEM_STATE_CONFLICT) {
        return conflict_words(command);
    }
    if (problem == IDEM_PROBLEM_AMOUNT_INVALID) {
        return "Nothing was changed: amount and currency are not those of the operation. Read them "
               "at the provider again; if they are right, this is no success of this operation.";
    }
    if (problem == IDEM_PROBLEM_TOO_EARLY) {
        return "Nothing was changed: what was sent may still arrive and happen. Look at the "
               "provider again after Retry-After.";
    }
    if (problem == IDEM_PROBLEM_CREDENTIAL_CONFLICT) {
        return "Nothing was changed. Make a new id and a new secret.";
    }
    return "";
}

static void core_refuse(struct idem_api *api, struct idem_admin_visit *visit)
{
    const struct idem_release *release = &visit->task.outcome.release;
    const struct idem_problem_details details = { .problem = release->problem };
    struct idem_str words = idem_str_from(core_words(&visit->task.item.command, release->problem));
    if (words.len == 0) {
        idem_api_problem(api, &details, words);
    } else {
        api->problems[release->problem] += 1;
        idem_reply_problem_only(&api->reply, &details, words);
    }
    if (release->retry_after_us > 0 || idem_problem_entry(release->problem)->status == 503) {
        idem_reply_retry_after(&api->reply, release->retry_after_us);
    }
    idem_admin_end(api, visit);
}

static void operation_answer(struct idem_api *api,
                             struct idem_admin_visit *visit,
                             const struct idem_read *read)
{
    struct idem_admin_operation view = { .now_us = idem_clock_wall_us(api->options.clock) };
    if (read != NULL) {
        view.operation = (struct idem_operation){
            .intent = &read->intent,
            .sends = read->sends,
            .send_count = read->send_count,
            .events = read->events,
            .event_count = read->event_count,
            .event_total = read->event_total,
        };
        view.cases = read->cases;
        view.case_count = read->case_count;
    } else {
        view.operation.intent = &visit->task.outcome.intent;
    }
    idem_admin_operation_print(&view, idem_admin_answer_begin(api, STATUS_OK));
    idem_admin_end(api, visit);
}

static void restored_answer(struct idem_api *api, struct idem_admin_visit *visit)
{
    idem_admin_restored_print(&api->gauges, idem_admin_answer_begin(api, STATUS_OK));
    idem_admin_end(api, visit);
}

/* ---- into the engine ---- */

void idem_admin_read_start(struct idem_api *api,
                           struct idem_admin_visit *visit,
                           enum idem_read_kind kind)
{
    visit->read.kind = kind;
    visit->read.id = visit->route.id;
    visit->read.now_us = idem_clock_wall_us(api->options.clock);
    visit->read.done = &api->admin_done_reads;
    idem_engine_read(api->options.engine, &visit->read);
}

void idem_admin_task_start(struct idem_api *api, struct idem_admin_visit *visit)
{
    visit->task.done = &api->admin_done_tasks;
    idem_engine_run(api->options.engine, &visit->task);
}

struct idem_command *idem_admin_command(struct idem_admin_visit *visit, enum idem_command_kind kind)
{
    visit->task.item.command.kind = kind;
    return &visit->task.item.command;
}

struct idem_str idem_admin_by(const struct idem_admin_visit *visit)
{
    return (struct idem_str){ .data = visit->by, .len = visit->by_len };
}

/* ---- beginnings: each reads the request, and starts or answers; false fills the fault ---- */

bool idem_admin_cursor_read(struct idem_str text, int64_t *ret_row, struct idem_fault *ret_fault)
{
    *ret_row = 0;
    if (text.len > 0 && !idem_str_to_i64(text, ret_row)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID,
                              "\"cursor\" is not one that a page gave.");
    }
    return true;
}

static bool filter_read(struct idem_str text,
                        enum idem_list_filter *ret_filter,
                        struct idem_fault *ret_fault)
{
    static const char *const names[IDEM_LIST_COUNT] = {
        [IDEM_LIST_OPEN] = "open",         [IDEM_LIST_PROCESSING] = "processing",
        [IDEM_LIST_UNKNOWN] = "unknown",   [IDEM_LIST_PARKED] = "parked",
        [IDEM_LIST_RELEASED] = "released", [IDEM_LIST_CASES] = "cases",
    };
    if (text.len == 0) {
        *ret_filter = IDEM_LIST_OPEN;
        return true;
    }
    for (enum idem_list_filter i = 0; i < IDEM_LIST_COUNT; i++) {
        if (idem_str_equal(text, idem_str_from(names[i]))) {
            *ret_filter = i;
            return true;
        }
    }
    return idem_fault_set(
        ret_fault, IDEM_PROBLEM_QUERY_INVALID,
        "\"state\" must be open, processing, unknown, parked, released or cases.");
}

static bool list_begin(struct idem_api *api,
                       struct idem_admin_visit *visit,
                       const struct idem_net_request *request,
                       struct idem_fault *ret_fault)
{
    static const struct idem_str names[] = { { "cursor", 6 }, { "state", 5 } };
    bool all = visit->route.kind == IDEM_ROUTE_ADMIN_LIST;
    const struct idem_query_members members = { .names = names, .count = all ? 2 : 1 };
    struct idem_str values[IDEM_ARRAY_COUNT(names)] = { { 0 } };
    if (!idem_query_read_some(request->query, &members, &visit->kept, values, ret_fault) ||
        !idem_admin_cursor_read(values[0], &visit->read.after_row, ret_fault) ||
        !filter_read(values[1], &visit->read.filter, ret_fault)) {
        return false;
    }
    if (visit->route.kind == IDEM_ROUTE_ADMIN_CREDENTIALS) {
        idem_admin_read_start(api, visit, IDEM_READ_CREDENTIALS);
    } else {
        idem_admin_read_start(api, visit, all ? IDEM_READ_LIST : IDEM_READ_OF_PAYMENT);
    }
    return true;
}

bool idem_admin_body_begin(struct idem_api *api,
                           const struct idem_net_request *request,
                           struct idem_fault *ret_fault)
{
    return idem_query_check_empty(request->query, ret_fault) &&
           idem_visit_body_parse(api, request, ret_fault);
}

static bool resolve_begin(struct idem_api *api,
                          struct idem_admin_visit *visit,
                          const struct idem_net_request *request,
                          struct idem_fault *ret_fault)
{
    struct idem_resolve *resolve = &idem_admin_command(visit, IDEM_COMMAND_RESOLVE)->resolve;
    resolve->by = idem_admin_by(visit);
    resolve->asked_us = idem_clock_wall_us(api->options.clock); /* Before anything is waited for. */
    resolve->asked_mono_us = idem_clock_mono_us(api->options.clock);
    if (!idem_admin_body_begin(api, request, ret_fault) ||
        !idem_body_read_resolve(&api->body, &visit->kept, resolve, ret_fault)) {
        return false;
    }
    bool by_case = visit->route.kind == IDEM_ROUTE_ADMIN_CASE_RESOLVE;
    idem_admin_read_start(api, visit, by_case ? IDEM_READ_CASE : IDEM_READ_ANY_OPERATION);
    return true;
}

static bool erase_begin(struct idem_api *api,
                        struct idem_admin_visit *visit,
                        const struct idem_net_request *request,
                        struct idem_fault *ret_fault)
{
    struct idem_reap *reap = &idem_admin_command(visit, IDEM_COMMAND_REAP)->reap;
    struct idem_str reason;
    if (!idem_admin_body_begin(api, request, ret_fault) ||
        !idem_body_read_reason(&api->body, &visit->kept, &reason, ret_fault)) {
        return false;
    }
    reap->erase = true;
    reap->horizon_us = idem_clock_wall_us(api->options.clock);
    size_t from = visit->kept.len;
    idem_buf_add(&visit->kept, idem_admin_by(visit));
    idem_buf_add(&visit->kept, IDEM_STR(": "));
    idem_buf_add(&visit->kept, reason);
    IDEM_ASSERT(!visit->kept.full);
    reap->by = idem_str_slice(idem_buf_str(&visit->kept), from, visit->kept.len);
    idem_admin_read_start(api, visit, IDEM_READ_ANY_OPERATION);
    return true;
}

static bool entries_check(const struct idem_rules *rules,
                          struct idem_str entries,
                          struct idem_fault *ret_fault)
{
    struct idem_str rest = entries;
    while (rest.len > 0) {
        struct idem_str entry = idem_str_next(&rest, ' ');
        if (!idem_str_equal(entry, IDEM_STR("*")) && idem_rules_provider(rules, entry) == NULL) {
            return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                                  "\"providers\" names an entry that is not configured here.");
        }
    }
    return true;
}

/* The table must know the store's credentials before it can follow a change of them. */
static bool table_check(const struct idem_api *api, struct idem_fault *ret_fault)
{
    return api->credentials.complete || idem_fault_set(ret_fault, IDEM_PROBLEM_UNAVAILABLE,
                                                       "The credentials are still being read.");
}

static bool secret_check(const struct idem_api *api,
                         const struct idem_credential_row *row,
                         struct idem_fault *ret_fault)
{
    const struct idem_caller *holder = idem_credentials_find(&api->credentials, row->secret_sha256);
    bool configured = holder != NULL && idem_uid_is_zero(holder->id);
    return !configured || idem_fault_set(ret_fault, IDEM_PROBLEM_CREDENTIAL_CONFLICT,
                                         "The configuration has a credential with this secret.");
}

static bool place_keep(struct idem_api *api,
                       struct idem_admin_visit *visit,
                       struct idem_fault *ret_fault)
{
    if (idem_credentials_by_id(&api->credentials, visit->route.id) != NULL) {
        return true;
    }
    visit->promised = idem_credentials_promise(&api->credentials);
    return visit->promised ||
           idem_fault_set(ret_fault, IDEM_PROBLEM_UNAVAILABLE,
                          "There are as many credentials as limits.credentials allows: revoke one "
                          "that is not needed, or raise the limit.");
}

static bool id_check(struct idem_uid id, struct idem_fault *ret_fault)
{
    return !idem_uid_is_zero(id) || idem_fault_set(ret_fault, IDEM_PROBLEM_REQUEST_INVALID,
                                                   "A credential's id is not all zeros.");
}

static bool put_begin(struct idem_api *api,
                      struct idem_admin_visit *visit,
                      const struct idem_net_request *request,
                      struct idem_fault *ret_fault)
{
    struct idem_credential_change *change =
        &idem_admin_command(visit, IDEM_COMMAND_CREDENTIAL)->credential;
    change->action = IDEM_CREDENTIAL_ADD;
    change->by = idem_admin_by(visit);
    change->row.id = visit->route.id;
    change->row.created_by = idem_admin_by(visit);
    if (!id_check(visit->route.id, ret_fault) || !idem_admin_body_begin(api, request, ret_fault) ||
        !idem_body_read_credential(&api->body, &visit->kept, &change->row, ret_fault) ||
        !entries_check(api->options.rules, change->row.providers, ret_fault) ||
        !table_check(api, ret_fault) || !secret_check(api, &change->row, ret_fault) ||
        !place_keep(api, visit, ret_fault)) {
        return false;
    }
    idem_admin_task_start(api, visit);
    return true;
}

static bool revoke_begin(struct idem_api *api,
                         struct idem_admin_visit *visit,
                         const struct idem_net_request *request,
                         struct idem_fault *ret_fault)
{
    struct idem_credential_change *change =
        &idem_admin_command(visit, IDEM_COMMAND_CREDENTIAL)->credential;
    change->action = IDEM_CREDENTIAL_REVOKE;
    change->by = idem_admin_by(visit);
    change->row.id = visit->route.id;
    if (!idem_query_check_empty(request->query, ret_fault) || !table_check(api, ret_fault)) {
        return false;
    }
    idem_admin_task_start(api, visit);
    return true;
}

static bool restored_end_begin(struct idem_api *api,
                               struct idem_admin_visit *visit,
                               const struct idem_net_request *request,
                               struct idem_fault *ret_fault)
{
    struct idem_mark *mark = &idem_admin_command(visit, IDEM_COMMAND_MARK)->mark;
    mark->kind = IDEM_MARK_RESTORED_OVER;
    mark->by = idem_admin_by(visit);
    if (!idem_admin_body_begin(api, request, ret_fault) ||
        !idem_body_read_reason(&api->body, &visit->kept, &mark->reason, ret_fault)) {
        return false;
    }
    if (!api->gauges.restored) {
        restored_answer(api, visit);
        return true;
    }
    idem_admin_task_start(api, visit);
    return true;
}

static bool bare_begin(struct idem_api *api,
                       struct idem_admin_visit *visit,
                       const struct idem_net_request *request,
                       struct idem_fault *ret_fault)
{
    if (!idem_query_check_empty(request->query, ret_fault)) {
        return false;
    }
    if (visit->route.kind == IDEM_ROUTE_ADMIN_RESTORED) {
        restored_answer(api, visit);
    } else if (visit->route.kind == IDEM_ROUTE_ADMIN_SUMMARY) {
        idem_admin_read_start(api, visit, IDEM_READ_SUMMARY);
    } else if (visit->route.kind == IDEM_ROUTE_ADMIN_CASE) {
        idem_admin_read_start(api, visit, IDEM_READ_CASE);
    } else {
        idem_admin_read_start(api, visit, IDEM_READ_ANY_OPERATION);
    }
    return true;
}

static const idem_admin_begin_fn begins[IDEM_ROUTE_COUNT] = {
    [IDEM_ROUTE_ADMIN_LIST] = list_begin,
    [IDEM_ROUTE_ADMIN_OPERATION] = bare_begin,
    [IDEM_ROUTE_ADMIN_RESOLVE] = resolve_begin,
    [IDEM_ROUTE_ADMIN_ERASE] = erase_begin,
    [IDEM_ROUTE_ADMIN_OF_PAYMENT] = list_begin,
    [IDEM_ROUTE_ADMIN_SUMMARY] = bare_begin,
    [IDEM_ROUTE_ADMIN_CREDENTIALS] = list_begin,
    [IDEM_ROUTE_ADMIN_CREDENTIAL_PUT] = put_begin,
    [IDEM_ROUTE_ADMIN_CREDENTIAL_REVOKE] = revoke_begin,
    [IDEM_ROUTE_ADMIN_RESTORED] = bare_begin,
    [IDEM_ROUTE_ADMIN_RESTORED_END] = restored_end_begin,
    [IDEM_ROUTE_ADMIN_CASES] = idem_admin_cases_begin,
    [IDEM_ROUTE_ADMIN_CASE] = bare_begin,
    [IDEM_ROUTE_ADMIN_CASE_RESOLVE] = resolve_begin,
    [IDEM_ROUTE_ADMIN_CASE_COMPENSATE] = idem_admin_compensate_begin,
    [IDEM_ROUTE_ADMIN_WEBHOOKS] = idem_admin_webhooks_begin,
    [IDEM_ROUTE_ADMIN_WEBHOOK_PUT] = idem_admin_webhook_put_begin,
    [IDEM_ROUTE_ADMIN_WEBHOOK_ROTATE] = idem_admin_webhook_act_begin,
    [IDEM_ROUTE_ADMIN_WEBHOOK_DISABLE] = idem_admin_webhook_act_begin,
    [IDEM_ROUTE_ADMIN_WEBHOOK_ENABLE] = idem_admin_webhook_act_begin,
    [IDEM_ROUTE_ADMIN_WEBHOOK_TEST] = idem_admin_webhook_act_begin,
    [IDEM_ROUTE_ADMIN_DELIVERIES] = idem_admin_deliveries_begin,
    [IDEM_ROUTE_ADMIN_REPLAY] = idem_admin_replay_begin,
    [IDEM_ROUTE_ADMIN_EFFECTS] = idem_admin_effects_begin,
    [IDEM_ROUTE_ADMIN_LISTINGS] = idem_admin_listings_begin,
    [IDEM_ROUTE_ADMIN_EVIDENCE] = idem_admin_evidence_begin,
};

static void by_write(struct idem_admin_visit *visit, const struct idem_caller *caller)
{
    struct idem_buf by;
    idem_buf_init(&by, visit->by, sizeof(visit->by));
    idem_buf_add(&by, idem_account_principal(caller->account));
    if (caller->label_len > 0) {
        idem_buf_add(&by, IDEM_STR(" ("));
        idem_buf_add(&by, idem_caller_label(caller));
        idem_buf_add(&by, IDEM_STR(")"));
    }
    IDEM_ASSERT(!by.full);
    visit->by_len = by.len;
}

/* What is asked; what comes back is written before it is read. */
static void read_clear(struct idem_read *read)
{
    read->principal = (struct idem_str){ .len = 0 };
    read->after_row = 0;
    read->filter = IDEM_LIST_OPEN;
    read->case_kind = IDEM_CASE_NONE;
    read->open_only = false;
    read->delivery_state = IDEM_DELIVERY_NONE;
}

void idem_admin_begin(struct idem_api *api,
                      struct idem_exchange *exchange,
                      const struct idem_caller *caller,
                      const struct idem_route *route)
{
    struct idem_list_node *node = idem_list_pop(&api->admin_free);
    if (node == NULL) {
        const struct idem_problem_details details = { .problem = IDEM_PROBLEM_UNAVAILABLE };
        idem_api_problem(api, &details, IDEM_STR("Too many operators' requests are worked on."));
        idem_reply_retry_after(&api->reply, SOON_US);
        struct idem_net_reply reply = idem_reply_end(&api->reply);
        idem_exchange_reply(exchange, &reply);
        return;
    }
    struct idem_admin_visit *visit = IDEM_CONTAINER_OF(node, struct idem_admin_visit, node);
    struct idem_fault fault;
    visit->exchange = exchange;
    visit->gone = false;
    visit->done = false;
    visit->promised = false;
    visit->route = *route;
    idem_buf_init(&visit->kept, visit->memory, sizeof(visit->memory));
    by_write(visit, caller);
    memset(&visit->task, 0, sizeof(visit->task));
    read_clear(&visit->read);
    idem_exchange_set_owner(exchange, &visit->gone);
    if (!begins[route->kind](api, visit, idem_exchange_request(exchange), &fault)) {
        struct idem_str text = idem_fault_text(&fault);
        const struct idem_problem_details details = { .problem = fault.problem };
        idem_api_problem(api, &details, text);
        if (idem_problem_entry(fault.problem)->status == 503) {
            idem_reply_retry_after(&api->reply, SOON_US);
        }
        idem_admin_end(api, visit);
    }
}

/* ---- what came back ---- */

/* The operation is known now: its scope and its payment go into the command. */
static void operation_task_start(struct idem_api *api, struct idem_admin_visit *visit)
{
    const struct idem_intent *intent = &visit->read.intent;
    struct idem_command *command = &visit->task.item.command;
    command->scope = intent->scope;
    command->intent_row = intent->row;
    command->subject_payment_id = intent->payment_id;
    idem_admin_task_start(api, visit);
}

static void operation_read_done(struct idem_api *api, struct idem_admin_visit *visit)
{
    bool known = visit->read.answer == IDEM_STORE_DURABLE && visit->read.found;
    if (visit->done && (known || visit->task.outcome.intent.state != IDEM_INTENT_NONE)) {
        operation_answer(api, visit, known ? &visit->read : NULL);
        return;
    }
    if (!known) {
        idem_admin_refuse(api, visit, IDEM_PROBLEM_NOT_FOUND,
                          visit->read.kind == IDEM_READ_CASE ? "There is no such case."
                                                             : "There is no such operation.");
        return;
    }
    if (visit->route.kind == IDEM_ROUTE_ADMIN_OPERATION ||
        visit->route.kind == IDEM_ROUTE_ADMIN_CASE) {
        operation_answer(api, visit, &visit->read);
        return;
    }
    operation_task_start(api, visit);
}

static void list_answer(struct idem_api *api, struct idem_admin_visit *visit)
{
    bool of_payment = visit->read.kind == IDEM_READ_OF_PAYMENT;
    if (of_payment && visit->read.entry_count == 0 && visit->read.after_row == 0) {
        idem_admin_refuse(api, visit, IDEM_PROBLEM_NOT_FOUND, "There is no such payment.");
        return;
    }
    idem_admin_list_print(&visit->read, idem_clock_wall_us(api->options.clock),
                          idem_admin_answer_begin(api, STATUS_OK));
    idem_admin_end(api, visit);
}

void idem_admin_read_done(struct idem_api *api, struct idem_admin_visit *visit)
{
    const struct idem_read *read = &visit->read;
    if (visit->route.kind == IDEM_ROUTE_ADMIN_EVIDENCE) { /* It is done, whatever can be read. */
        idem_admin_evidence_read(api, visit);
        return;
    }
    if (read->answer != IDEM_STORE_DURABLE && !visit->done) {
        idem_admin_refuse(api, visit, IDEM_PROBLEM_UNAVAILABLE,
                          api->draining ? STOPPING : "The store cannot be read now.");
        return;
    }
    if (read->kind == IDEM_READ_SUMMARY) {
        idem_admin_summary_print(&read->summary,
                                 &idem_engine_stats(api->options.engine)->time_to_truth_us,
                                 api->gauges.restored, idem_admin_answer_begin(api, STATUS_OK));
        idem_admin_end(api, visit);
        return;
    }
    if (read->kind == IDEM_READ_CREDENTIALS) {
        idem_admin_credentials_print(read, read->after_row == 0 ? &api->credentials : NULL,
                                     idem_admin_answer_begin(api, STATUS_OK));
        idem_admin_end(api, visit);
        return;
    }
    if (visit->route.kind == IDEM_ROUTE_ADMIN_CASE_COMPENSATE) {
        idem_admin_compensate_read(api, visit);
        return;
    }
    if (read->kind == IDEM_READ_ANY_OPERATION || read->kind == IDEM_READ_CASE) {
        operation_read_done(api, visit);
        return;
    }
    if (read->kind == IDEM_READ_WEBHOOKS || read->kind == IDEM_READ_DELIVERIES) {
        idem_admin_webhook_read(api, visit);
        return;
    }
    if (read->kind == IDEM_READ_EFFECTS) {
        idem_admin_effects_read(api, visit);
        return;
    }
    list_answer(api, visit);
}

static void put_done(struct idem_api *api, struct idem_admin_visit *visit)
{
    const struct idem_command *command = &visit->task.item.command;
    struct idem_credential_row row = command->credential.row;
    const struct idem_caller *there = idem_credentials_by_id(&api->credentials, row.id);
    row.created_us = there != NULL ? there->created_us : command->now_us;
    if (there != NULL) {
        row.created_by = idem_caller_created_by(there);
    }
    promise_end(api, visit); /* It is this row's place. */
    idem_admin_credential_print(
        &row, idem_admin_answer_begin(api, there != NULL ? STATUS_OK : STATUS_NEW));
    idem_credentials_put(&api->credentials, &row);
    idem_admin_end(api, visit);
}

static void revoke_done(struct idem_api *api, struct idem_admin_visit *visit)
{
    idem_credentials_remove(&api->credentials, visit->route.id);
    struct idem_buf *body = idem_admin_answer_begin(api, STATUS_OK);
    idem_buf_add(body, IDEM_STR("{\"id\":\""));
    idem_uid_print(visit->route.id, body);
    idem_buf_add(body, IDEM_STR("\",\"revoked\":true}\n"));
    idem_admin_end(api, visit);
}

static void credential_done(struct idem_api *api, struct idem_admin_visit *visit)
{
    if (visit->route.kind == IDEM_ROUTE_ADMIN_CREDENTIAL_PUT) {
        put_done(api, visit);
        return;
    }
    revoke_done(api, visit);
}

/* ---- what was done ---- */

static const char *verb_of(const struct idem_admin_visit *visit)
{
    static const char *const resolves[IDEM_VERDICT_COUNT] = {
        [IDEM_VERDICT_SUCCEEDED] = "resolve-succeeded",
        [IDEM_VERDICT_FAILED] = "resolve-failed",
        [IDEM_VERDICT_NOTED] = "resolve-noted",
        [IDEM_VERDICT_STRAY] = "compensate",
    };
    static const char *const others[IDEM_ROUTE_COUNT] = {
        [IDEM_ROUTE_ADMIN_ERASE] = "erase",
        [IDEM_ROUTE_ADMIN_CREDENTIAL_PUT] = "credential-add",
        [IDEM_ROUTE_ADMIN_CREDENTIAL_REVOKE] = "credential-revoke",
        [IDEM_ROUTE_ADMIN_RESTORED_END] = "restored-end",
        [IDEM_ROUTE_ADMIN_WEBHOOK_PUT] = "webhook-add",
        [IDEM_ROUTE_ADMIN_WEBHOOK_ROTATE] = "webhook-rotate",
        [IDEM_ROUTE_ADMIN_WEBHOOK_DISABLE] = "webhook-disable",
        [IDEM_ROUTE_ADMIN_WEBHOOK_ENABLE] = "webhook-enable",
        [IDEM_ROUTE_ADMIN_WEBHOOK_TEST] = "webhook-test",
        [IDEM_ROUTE_ADMIN_REPLAY] = "replay",
    };
    return visit->task.item.command.kind == IDEM_COMMAND_RESOLVE
               ? resolves[visit->task.item.command.resolve.verdict]
               : others[visit->route.kind];
}

/* The problem that the task's end is, NONE if it was done. */
static enum idem_problem task_problem(const struct idem_task *task)
{
    if (task->item.answer == IDEM_STORE_UNKNOWN) {
        return IDEM_PROBLEM_OUTCOME_UNKNOWN;
    }
    return task->item.answer == IDEM_STORE_DURABLE ? task->outcome.release.problem
                                                   : IDEM_PROBLEM_UNAVAILABLE;
}

void idem_admin_act(struct idem_api *api,
                    const struct idem_admin_visit *visit,
                    const char *verb,
                    const char *outcome)
{
    struct idem_api_act act = {
        .verb = verb,
        .outcome = outcome,
        .object = visit->route.id,
        .by_len = visit->by_len,
    };
    IDEM_ASSERT(act.verb != NULL);
    IDEM_ASSERT(act.outcome != NULL);
    memcpy(act.by, visit->by, visit->by_len);
    idem_acts_add(&api->acts, &act);
}

const char *idem_admin_outcome(enum idem_problem problem)
{
    return problem == IDEM_PROBLEM_NONE ? "done" : idem_problem_entry(problem)->code;
}

void idem_admin_task_done(struct idem_api *api, struct idem_admin_visit *visit)
{
    const struct idem_task *task = &visit->task;
    idem_admin_act(api, visit, verb_of(visit), idem_admin_outcome(task_problem(task)));
    if (task->item.answer == IDEM_STORE_UNKNOWN) {
        idem_admin_refuse(api, visit, IDEM_PROBLEM_OUTCOME_UNKNOWN, "");
        return;
    }
    if (task->item.answer != IDEM_STORE_DURABLE) {
        idem_admin_refuse(api, visit, IDEM_PROBLEM_UNAVAILABLE,
                          api->draining ? STOPPING : "The store cannot write now.");
        return;
    }
    if (task->outcome.release.problem != IDEM_PROBLEM_NONE) {
        core_refuse(api, visit);
        return;
    }
    if (task->item.command.kind == IDEM_COMMAND_CREDENTIAL) {
        credential_done(api, visit);
        return;
    }
    if (task->item.command.kind == IDEM_COMMAND_MARK) {
        api->gauges.restored = false;
        restored_answer(api, visit);
        return;
    }
    if (task->item.command.kind == IDEM_COMMAND_WEBHOOK ||
        task->item.command.kind == IDEM_COMMAND_DELIVERY) {
        idem_admin_webhook_done(api, visit);
        return;
    }
    if (visit->route.kind == IDEM_ROUTE_ADMIN_CASE_COMPENSATE) {
        idem_admin_compensate_send(api, visit);
        return;
    }
    visit->done = true;
    visit->route.id = task->outcome.intent.id; /* A case's may have led here. */
    idem_admin_read_start(api, visit, IDEM_READ_ANY_OPERATION);
}
