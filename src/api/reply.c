/*
 * Header lines are made here and nowhere else. Values come from constants, from numbers, from the
 * store (written by the core) or from a key of visible ASCII; none can hold a line end.
 */
#include "api/reply.h"

#include "api/advice.h"
#include "base/bug.h"
#include "base/clock.h"

#define DETAIL_MAX 768

void idem_reply_begin(struct idem_reply *reply, uint16_t status)
{
    reply->status = status;
    idem_buf_init(&reply->head, reply->head_memory, sizeof(reply->head_memory));
    idem_buf_init(&reply->body, reply->body_memory, sizeof(reply->body_memory));
    idem_reply_header(reply, IDEM_STR("Cache-Control"), IDEM_STR("no-store"));
}

void idem_reply_header(struct idem_reply *reply, struct idem_str name, struct idem_str value)
{
    idem_buf_add(&reply->head, name);
    idem_buf_add(&reply->head, IDEM_STR(": "));
    idem_buf_add(&reply->head, value);
    idem_buf_add(&reply->head, IDEM_STR("\r\n"));
}

void idem_reply_lines(struct idem_reply *reply, struct idem_str lines)
{
    while (lines.len > 0) {
        struct idem_str line = idem_str_next(&lines, '\n');
        idem_buf_add(&reply->head, line);
        idem_buf_add(&reply->head, IDEM_STR("\r\n"));
    }
}

void idem_reply_retry_after(struct idem_reply *reply, int64_t wait_us)
{
    char digits[24];
    struct idem_buf seconds;
    idem_buf_init(&seconds, digits, sizeof(digits));
    int64_t whole = wait_us / IDEM_US_PER_SECOND + (wait_us % IDEM_US_PER_SECOND > 0 ? 1 : 0);
    idem_buf_add_i64(&seconds, whole > 1 ? whole : 1);
    idem_reply_header(reply, IDEM_STR("Retry-After"), idem_buf_str(&seconds));
}

void idem_reply_answer(struct idem_reply *reply, const struct idem_answer *answer)
{
    IDEM_ASSERT(answer->status != 0);
    idem_reply_begin(reply, answer->status);
    idem_reply_lines(reply, answer->headers);
    idem_buf_add(&reply->body, answer->body);
}

void idem_reply_problem_only(struct idem_reply *reply,
                             const struct idem_problem_details *details,
                             struct idem_str detail)
{
    struct idem_problem_details full = *details;
    full.detail = detail;
    idem_reply_begin(reply, idem_problem_entry(details->problem)->status);
    struct idem_answer answer = idem_answer_problem(&full, &reply->body);
    idem_reply_lines(reply, answer.headers);
}

void idem_reply_problem(struct idem_reply *reply,
                        const struct idem_problem_details *details,
                        struct idem_str what)
{
    char memory[DETAIL_MAX];
    struct idem_buf detail;
    idem_buf_init(&detail, memory, sizeof(memory));
    if (what.len > 0) {
        idem_buf_add(&detail, what);
        idem_buf_add_char(&detail, ' ');
    }
    idem_buf_add(&detail, idem_advice_text(details->problem));
    IDEM_ASSERT(!detail.full);
    idem_reply_problem_only(reply, details, idem_buf_str(&detail));
}

struct idem_net_reply idem_reply_end(struct idem_reply *reply)
{
    if (reply->head.full || reply->body.full) {
        const struct idem_problem_details details = { .problem = IDEM_PROBLEM_INTERNAL };
        idem_reply_problem(reply, &details, IDEM_STR(""));
    }
    IDEM_ASSERT(!reply->head.full);
    IDEM_ASSERT(!reply->body.full);
    return (struct idem_net_reply){
        .status = reply->status,
        .headers = idem_buf_str(&reply->head),
        .body = idem_buf_str(&reply->body),
    };
}
