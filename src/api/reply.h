/*
 * reply.h - an answer while it is written: status, header lines and body in bounded memory.
 */
#ifndef IDEM_API_REPLY_H
#define IDEM_API_REPLY_H

#include <stdint.h>

#include "base/text.h"
#include "core/answer.h"
#include "net/server.h"

/* Stored headers, the key written twice as long as it is, and room for our own lines. */
#define IDEM_REPLY_HEAD_MAX 8192
/* Everything that a read can hold, and the frame around it: operation.c says how it is bounded. */
#define IDEM_REPLY_BODY_MAX 131072

struct idem_reply {
    uint16_t status;
    struct idem_buf head; /* Lines "Name: value\r\n". */
    struct idem_buf body;
    char head_memory[IDEM_REPLY_HEAD_MAX];
    char body_memory[IDEM_REPLY_BODY_MAX];
};

/* Begins anew. Every answer says Cache-Control: no-store. */
void idem_reply_begin(struct idem_reply *reply, uint16_t status);

void idem_reply_header(struct idem_reply *reply, struct idem_str name, struct idem_str value);

/* Stored lines "Name: value\n". */
void idem_reply_lines(struct idem_reply *reply, struct idem_str lines);

/* Whole seconds, at least one. */
void idem_reply_retry_after(struct idem_reply *reply, int64_t wait_us);

/* Begins anew with a stored answer, byte for byte (P4). */
void idem_reply_answer(struct idem_reply *reply, const struct idem_answer *answer);

/*
 * Begins anew with a problem that is not stored. Its detail is `what` (may be empty), then the
 * advice.
 */
void idem_reply_problem(struct idem_reply *reply,
                        const struct idem_problem_details *details,
                        struct idem_str what);

/* The same without the advice: `detail` says all there is to say. */
void idem_reply_problem_only(struct idem_reply *reply,
                             const struct idem_problem_details *details,
                             struct idem_str detail);

/* Borrows from the reply. What did not fit becomes 500 `internal`: half an answer never leaves. */
struct idem_net_reply idem_reply_end(struct idem_reply *reply);

#endif /* IDEM_API_REPLY_H */
