/*
 * body.h - request bodies: strict JSON into what a command carries.
 *
 * Everything that the bytes alone can say is checked here, by core/limits.h: kinds, lengths,
 * characters, amounts, unknown members. Nothing that is refused here was recorded or can ever run.
 */
#ifndef IDEM_API_BODY_H
#define IDEM_API_BODY_H

#include <stdbool.h>

#include "api/fault.h"
#include "base/json.h"
#include "base/text.h"
#include "core/command.h"

#define IDEM_BODY_TOKENS_MAX 2048

struct idem_body {
    struct idem_json json;
    struct idem_json_token tokens[IDEM_BODY_TOKENS_MAX];
};

/* `text` is borrowed as long as the body is used. The root is an object. */
bool idem_body_parse(struct idem_body *body,
                     struct idem_str text,
                     struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/*
 * Fills the members of the accept's endpoint. Text is borrowed from the body's text or kept in
 * `memory`. Whether the provider entry exists and is granted is the caller's to check.
 */
bool idem_body_read_accept(const struct idem_body *body,
                           struct idem_buf *memory,
                           struct idem_accept *accept,
                           struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/* {"endpoint": "payments.create"} */
bool idem_body_read_abandon(const struct idem_body *body,
                            struct idem_buf *memory,
                            enum idem_endpoint *ret_endpoint,
                            struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/* {"verdict": "failed", "reason": "..."}; docs/admin.md. `by` is the caller's to fill. */
bool idem_body_read_resolve(const struct idem_body *body,
                            struct idem_buf *memory,
                            struct idem_resolve *resolve,
                            struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/* {"reason": "..."} */
bool idem_body_read_reason(const struct idem_body *body,
                           struct idem_buf *memory,
                           struct idem_str *ret_reason,
                           struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/*
 * A credential: docs/admin.md. The row's id and by are the caller's to fill, and to check that its
 * provider entries exist.
 */
bool idem_body_read_credential(const struct idem_body *body,
                               struct idem_buf *memory,
                               struct idem_credential_row *row,
                               struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/*
 * A webhook: docs/webhooks.md. The row's id is the caller's to fill. Whether its address may be
 * posted to is not checked here.
 */
bool idem_body_read_webhook(const struct idem_body *body,
                            struct idem_buf *memory,
                            struct idem_webhook *row,
                            struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/* {"generation": "1"}: which secret is replaced. */
bool idem_body_read_generation(const struct idem_body *body,
                               struct idem_buf *memory,
                               uint32_t *ret_generation,
                               struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/* {"webhook": "id"} */
bool idem_body_read_webhook_id(const struct idem_body *body,
                               struct idem_buf *memory,
                               struct idem_uid *ret_id,
                               struct idem_fault *ret_fault) IDEM_MUST_CHECK;

#endif /* IDEM_API_BODY_H */
