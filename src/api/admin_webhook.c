/*
 * Webhooks and deliveries, for operators.
 *
 *     list, deliveries        read -----------> answer
 *     put                     task -> read ---> answer, with the secret
 *     rotate                  task -> read ---> answer, with the new secret
 *     disable, enable, test   task -> read ---> answer
 *     replay                  task -----------> answer
 *
 * The secret is derived, so that showing it costs no place to keep it: it is shown to whoever adds
 * or rotates, and again to whoever repeats that. No list has it.
 */
#include "api/admin_internal.h"

#include <string.h>

#include "api/mail_view.h"
#include "api/query.h"
#include "base/bug.h"
#include "outbox/secret.h"

#define STATUS_OK 200

bool idem_admin_webhooks_begin(struct idem_api *api,
                               struct idem_admin_visit *visit,
                               const struct idem_net_request *request,
                               struct idem_fault *ret_fault)
{
    static const struct idem_str names[] = { { "cursor", 6 }, { "principal", 9 } };
    const struct idem_query_members members = { .names = names, .count = IDEM_ARRAY_COUNT(names) };
    struct idem_str values[IDEM_ARRAY_COUNT(names)] = { { 0 } };
    if (!idem_query_read_some(request->query, &members, &visit->kept, values, ret_fault) ||
        !idem_admin_cursor_read(values[0], &visit->read.after_row, ret_fault)) {
        return false;
    }
    visit->read.principal = values[1];
    idem_admin_read_start(api, visit, IDEM_READ_WEBHOOKS);
    return true;
}

static struct idem_webhook_change *change_begin(struct idem_admin_visit *visit,
                                                enum idem_webhook_action action)
{
    struct idem_webhook_change *change = &idem_admin_command(visit, IDEM_COMMAND_WEBHOOK)->webhook;
    change->action = action;
    change->by = idem_admin_by(visit);
    change->row.id = visit->route.id;
    return change;
}

/* A host, and neither a user, who would stand in every list, nor a fragment, which is not sent. */
static bool authority_fits(struct idem_str rest)
{
    struct idem_str query = rest;
    struct idem_str path = idem_str_next(&query, '?');
    struct idem_str authority = idem_str_next(&path, '/');
    return authority.len > 0 && idem_str_find(authority, '@') == authority.len &&
           idem_str_find(rest, '#') == rest.len;
}

static bool url_check(const struct idem_api *api, struct idem_str url, struct idem_fault *ret_fault)
{
    static const struct idem_str https = { .data = "https://", .len = 8 };
    static const struct idem_str http = { .data = "http://", .len = 7 };
    bool is_https = idem_str_starts(url, https);
    if (!is_https && !(api->options.webhooks_allow_http && idem_str_starts(url, http))) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                              "\"url\" must begin with https:// (http:// is taken where the "
                              "configuration has webhooks.allow_http).");
    }
    return authority_fits(idem_str_slice(url, is_https ? https.len : http.len, url.len)) ||
           idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                          "\"url\" must have a host, and neither a user nor a fragment.");
}

bool idem_admin_webhook_put_begin(struct idem_api *api,
                                  struct idem_admin_visit *visit,
                                  const struct idem_net_request *request,
                                  struct idem_fault *ret_fault)
{
    struct idem_webhook_change *change = change_begin(visit, IDEM_WEBHOOK_ADD);
    if (idem_uid_is_zero(visit->route.id)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_REQUEST_INVALID,
                              "A webhook's id is not all zeros.");
    }
    if (!idem_admin_body_begin(api, request, ret_fault) ||
        !idem_body_read_webhook(&api->body, &visit->kept, &change->row, ret_fault) ||
        !url_check(api, change->row.url, ret_fault)) {
        return false;
    }
    idem_admin_task_start(api, visit);
    return true;
}

bool idem_admin_webhook_act_begin(struct idem_api *api,
                                  struct idem_admin_visit *visit,
                                  const struct idem_net_request *request,
                                  struct idem_fault *ret_fault)
{
    static const enum idem_webhook_action actions[IDEM_ROUTE_COUNT] = {
        [IDEM_ROUTE_ADMIN_WEBHOOK_ROTATE] = IDEM_WEBHOOK_ROTATE,
        [IDEM_ROUTE_ADMIN_WEBHOOK_DISABLE] = IDEM_WEBHOOK_DISABLE,
        [IDEM_ROUTE_ADMIN_WEBHOOK_ENABLE] = IDEM_WEBHOOK_ENABLE,
        [IDEM_ROUTE_ADMIN_WEBHOOK_TEST] = IDEM_WEBHOOK_TEST,
    };
    struct idem_webhook_change *change = change_begin(visit, actions[visit->route.kind]);
    IDEM_ASSERT(change->action != IDEM_WEBHOOK_NOTHING);
    if (change->action == IDEM_WEBHOOK_ROTATE &&
        (!idem_admin_body_begin(api, request, ret_fault) ||
         !idem_body_read_generation(&api->body, &visit->kept, &change->generation, ret_fault))) {
        return false;
    }
    if (!idem_query_check_empty(request->query, ret_fault)) {
        return false;
    }
    idem_admin_task_start(api, visit);
    return true;
}

static bool delivery_state_read(struct idem_str text,
                                enum idem_delivery_state *ret_state,
                                struct idem_fault *ret_fault)
{
    *ret_state = idem_delivery_state_from(text);
    return text.len == 0 || *ret_state != IDEM_DELIVERY_NONE ||
           idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID,
                          "\"state\" must be pending, delivered or dead.");
}

static bool webhook_read(struct idem_str text,
                         struct idem_uid *ret_id,
                         struct idem_fault *ret_fault)
{
    return text.len == 0 || idem_uid_parse(text, ret_id) ||
           idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID,
                          "\"webhook\" must be the id of a webhook.");
}

bool idem_admin_deliveries_begin(struct idem_api *api,
                                 struct idem_admin_visit *visit,
                                 const struct idem_net_request *request,
                                 struct idem_fault *ret_fault)
{
    static const struct idem_str names[] = {
        { "cursor", 6 }, { "state", 5 }, { "webhook", 7 }, { "principal", 9 }
    };
    const struct idem_query_members members = { .names = names, .count = IDEM_ARRAY_COUNT(names) };
    struct idem_str values[IDEM_ARRAY_COUNT(names)] = { { 0 } };
    if (!idem_query_read_some(request->query, &members, &visit->kept, values, ret_fault) ||
        !idem_admin_cursor_read(values[0], &visit->read.after_row, ret_fault) ||
        !delivery_state_read(values[1], &visit->read.delivery_state, ret_fault) ||
        !webhook_read(values[2], &visit->route.id, ret_fault)) {
        return false;
    }
    visit->read.principal = values[3];
    idem_admin_read_start(api, visit, IDEM_READ_DELIVERIES); /* Its id is the route's. */
    return true;
}

bool idem_admin_replay_begin(struct idem_api *api,
                             struct idem_admin_visit *visit,
                             const struct idem_net_request *request,
                             struct idem_fault *ret_fault)
{
    struct idem_delivery_change *change =
        &idem_admin_command(visit, IDEM_COMMAND_DELIVERY)->delivery;
    change->word = IDEM_DELIVERY_WORD_REPLAY;
    change->message_id = visit->route.id;
    change->by = idem_admin_by(visit);
    if (!idem_admin_body_begin(api, request, ret_fault) ||
        !idem_body_read_webhook_id(&api->body, &visit->kept, &change->webhook_id, ret_fault)) {
        return false;
    }
    idem_admin_task_start(api, visit);
    return true;
}

static bool shows_secret(const struct idem_admin_visit *visit)
{
    return visit->route.kind == IDEM_ROUTE_ADMIN_WEBHOOK_PUT ||
           visit->route.kind == IDEM_ROUTE_ADMIN_WEBHOOK_ROTATE;
}

static void webhook_answer(struct idem_api *api,
                           struct idem_admin_visit *visit,
                           const struct idem_webhook *webhook)
{
    char text[IDEM_WEBHOOK_SECRET_LEN];
    struct idem_buf secret;
    idem_buf_init(&secret, text, sizeof(text));
    if (shows_secret(visit)) {
        struct idem_digest digest;
        idem_webhook_secret(api->digester, api->options.effect_secret, webhook, webhook->generation,
                            &digest);
        idem_webhook_secret_print(&digest, &secret);
        explicit_bzero(&digest, sizeof(digest));
    }
    idem_mail_webhook_print(webhook, idem_buf_str(&secret),
                            idem_admin_answer_begin(api, STATUS_OK));
    explicit_bzero(text, sizeof(text));
    idem_admin_end(api, visit);
}

void idem_admin_webhook_read(struct idem_api *api, struct idem_admin_visit *visit)
{
    const struct idem_read *read = &visit->read;
    if (read->kind == IDEM_READ_DELIVERIES) {
        idem_mail_deliveries_print(read, idem_admin_answer_begin(api, STATUS_OK));
        idem_admin_end(api, visit);
        return;
    }
    if (!visit->done) {
        idem_mail_webhooks_print(read, idem_admin_answer_begin(api, STATUS_OK));
        idem_admin_end(api, visit);
        return;
    }
    if (read->answer != IDEM_STORE_DURABLE || read->webhook_count == 0) {
        const struct idem_problem_details details = { .problem = IDEM_PROBLEM_OUTCOME_UNKNOWN };
        idem_admin_refuse_only(api, visit, &details,
                               "It is done, and the store cannot be read now to show it: the same "
                               "request, later, shows it.");
        return;
    }
    IDEM_ASSERT(idem_uid_equal(read->webhooks[0].id, visit->route.id)); /* No other one's secret. */
    webhook_answer(api, visit, &read->webhooks[0]);
}

void idem_admin_webhook_done(struct idem_api *api, struct idem_admin_visit *visit)
{
    if (visit->route.kind == IDEM_ROUTE_ADMIN_REPLAY) {
        struct idem_buf *body = idem_admin_answer_begin(api, STATUS_OK);
        idem_buf_add(body, IDEM_STR("{\"message\":\""));
        idem_uid_print(visit->route.id, body);
        idem_buf_add(body, IDEM_STR("\",\"state\":\"pending\"}\n"));
        idem_admin_end(api, visit);
        return;
    }
    visit->done = true;
    visit->read.principal = (struct idem_str){ .len = 0 };
    idem_admin_read_start(api, visit, IDEM_READ_WEBHOOKS);
}
