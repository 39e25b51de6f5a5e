/*
 * admin_internal.h - what the files of the operators' routes share.
 *
 *   admin.c          operations, credentials, the restored mode; the table of all beginnings
 *   admin_case.c     cases, and the compensation of a stray payment
 *   admin_webhook.c  webhooks and their deliveries
 *   reconcile.c      both sides of a reconciliation, and what it found
 */
#ifndef IDEM_API_ADMIN_INTERNAL_H
#define IDEM_API_ADMIN_INTERNAL_H

#include "api/api_internal.h"

/* A reply: its body is what is given. */
struct idem_buf *idem_admin_answer_begin(struct idem_api *api, uint16_t status);

/* Sends the api's reply and frees the visit. */
void idem_admin_end(struct idem_api *api, struct idem_admin_visit *visit);

/* Answers with a problem; `what`: why, in words. */
void idem_admin_refuse(struct idem_api *api,
                       struct idem_admin_visit *visit,
                       enum idem_problem problem,
                       const char *what);

/* The same where the problem's own advice would not be true: `what` says all there is to say. */
void idem_admin_refuse_only(struct idem_api *api,
                            struct idem_admin_visit *visit,
                            const struct idem_problem_details *details,
                            const char *what);

/* A look into the store by the route's id. */
void idem_admin_read_start(struct idem_api *api,
                           struct idem_admin_visit *visit,
                           enum idem_read_kind kind);
void idem_admin_task_start(struct idem_api *api, struct idem_admin_visit *visit);

/* Tells what `visit` has done or tried with the route's object; both words are constants. */
void idem_admin_act(struct idem_api *api,
                    const struct idem_admin_visit *visit,
                    const char *verb,
                    const char *outcome);
const char *idem_admin_outcome(enum idem_problem problem); /* "done", or the problem's code. */

/* The visit's command, of that kind. */
struct idem_command *idem_admin_command(struct idem_admin_visit *visit,
                                        enum idem_command_kind kind);

/* "principal (label)" of who asks. */
struct idem_str idem_admin_by(const struct idem_admin_visit *visit);

bool idem_admin_cursor_read(struct idem_str text,
                            int64_t *ret_row,
                            struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/* The body as JSON; no query. */
bool idem_admin_body_begin(struct idem_api *api,
                           const struct idem_net_request *request,
                           struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/* A beginning reads the request, and starts or answers; false fills the fault. */
typedef bool (*idem_admin_begin_fn)(struct idem_api *api,
                                    struct idem_admin_visit *visit,
                                    const struct idem_net_request *request,
                                    struct idem_fault *ret_fault);

/* admin_case.c */
bool idem_admin_cases_begin(struct idem_api *api,
                            struct idem_admin_visit *visit,
                            const struct idem_net_request *request,
                            struct idem_fault *ret_fault) IDEM_MUST_CHECK;
bool idem_admin_compensate_begin(struct idem_api *api,
                                 struct idem_admin_visit *visit,
                                 const struct idem_net_request *request,
                                 struct idem_fault *ret_fault) IDEM_MUST_CHECK;
void idem_admin_compensate_read(struct idem_api *api, struct idem_admin_visit *visit);
void idem_admin_compensate_send(struct idem_api *api, struct idem_admin_visit *visit);

/* admin_webhook.c */
bool idem_admin_webhooks_begin(struct idem_api *api,
                               struct idem_admin_visit *visit,
                               const struct idem_net_request *request,
                               struct idem_fault *ret_fault) IDEM_MUST_CHECK;
bool idem_admin_webhook_put_begin(struct idem_api *api,
                                  struct idem_admin_visit *visit,
                                  const struct idem_net_request *request,
                                  struct idem_fault *ret_fault) IDEM_MUST_CHECK;
bool idem_admin_webhook_act_begin(struct idem_api *api,
                                  struct idem_admin_visit *visit,
                                  const struct idem_net_request *request,
                                  struct idem_fault *ret_fault) IDEM_MUST_CHECK;
bool idem_admin_deliveries_begin(struct idem_api *api,
                                 struct idem_admin_visit *visit,
                                 const struct idem_net_request *request,
                                 struct idem_fault *ret_fault) IDEM_MUST_CHECK;
bool idem_admin_replay_begin(struct idem_api *api,
                             struct idem_admin_visit *visit,
                             const struct idem_net_request *request,
                             struct idem_fault *ret_fault) IDEM_MUST_CHECK;
void idem_admin_webhook_read(struct idem_api *api, struct idem_admin_visit *visit);
void idem_admin_webhook_done(struct idem_api *api, struct idem_admin_visit *visit);

/* reconcile.c */
bool idem_admin_effects_begin(struct idem_api *api,
                              struct idem_admin_visit *visit,
                              const struct idem_net_request *request,
                              struct idem_fault *ret_fault) IDEM_MUST_CHECK;
bool idem_admin_listings_begin(struct idem_api *api,
                               struct idem_admin_visit *visit,
                               const struct idem_net_request *request,
                               struct idem_fault *ret_fault) IDEM_MUST_CHECK;
bool idem_admin_evidence_begin(struct idem_api *api,
                               struct idem_admin_visit *visit,
                               const struct idem_net_request *request,
                               struct idem_fault *ret_fault) IDEM_MUST_CHECK;
void idem_admin_effects_read(struct idem_api *api, struct idem_admin_visit *visit);
void idem_admin_evidence_read(struct idem_api *api, struct idem_admin_visit *visit);

#endif /* IDEM_API_ADMIN_INTERNAL_H */
