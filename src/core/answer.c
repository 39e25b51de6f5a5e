/*
 * Answers are rendered inside the decision, so that the bytes stand in the same transaction as the
 * outcome they report, and a replay never renders again (P4).
 */
#include "core/answer.h"

#include "base/bug.h"
#include "base/json.h"

static void add_member(struct idem_buf *buf, const char *name, struct idem_str value)
{
    idem_buf_add(buf, IDEM_STR(",\""));
    idem_buf_add(buf, idem_str_from(name));
    idem_buf_add(buf, IDEM_STR("\":"));
    idem_json_add_string(buf, value);
}

static void add_member_if(struct idem_buf *buf, const char *name, struct idem_str value)
{
    if (value.len > 0) {
        add_member(buf, name, value);
    }
}

static void add_link_if(struct idem_buf *buf,
                        const char *name,
                        const char *path,
                        struct idem_uid id)
{
    if (idem_uid_is_zero(id)) {
        return;
    }
    idem_buf_add(buf, IDEM_STR(",\""));
    idem_buf_add(buf, idem_str_from(name));
    idem_buf_add(buf, IDEM_STR("\":\""));
    idem_buf_add(buf, idem_str_from(path));
    idem_uid_print(id, buf);
    idem_buf_add_char(buf, '"');
}

void idem_problem_print(const struct idem_problem_details *details, struct idem_buf *buf)
{
    const struct idem_problem_entry *entry = idem_problem_entry(details->problem);
    enum idem_advice_effect effect =
        entry->effect == IDEM_EFFECT_DEPENDS ? details->effect : entry->effect;

    idem_buf_add(buf, IDEM_STR("{\"type\":\"urn:idem:problem:"));
    idem_buf_add(buf, idem_str_from(entry->code));
    idem_buf_add_char(buf, '"');
    add_member(buf, "title", idem_str_from(entry->title));
    idem_buf_add(buf, IDEM_STR(",\"status\":"));
    idem_buf_add_i64(buf, entry->status);
    add_member_if(buf, "detail", details->detail);
    add_member(buf, "effect", idem_str_from(idem_advice_effect_name(effect)));
    add_member(buf, "retry", idem_str_from(idem_advice_retry_name(entry->retry)));
    add_link_if(buf, "operation", "/v1/operations/", details->operation_id);
    add_link_if(buf, "payment", "/v1/payments/", details->payment_id);
    add_link_if(buf, "refund", "/v1/refunds/", details->refund_id);
    add_member_if(buf, "provider_code", details->provider_code);
    add_member_if(buf, "provider_message", details->provider_message);
    idem_buf_add(buf, IDEM_STR("}\n"));
}

/* What was written behind `from` on. */
static struct idem_str since(const struct idem_buf *buf, size_t from)
{
    return idem_str_slice(idem_buf_str(buf), from, buf->len - from);
}

struct idem_answer idem_answer_problem(const struct idem_problem_details *details,
                                       struct idem_buf *buf)
{
    struct idem_answer answer = { .status = idem_problem_entry(details->problem)->status };
    answer.headers = IDEM_STR("Content-Type: application/problem+json\n");
    size_t from = buf->len;
    idem_problem_print(details, buf);
    answer.body = since(buf, from);
    return answer;
}

/* The header lines of an answer that shows a resource; a made one says where it is. */
static struct idem_str resource_headers(uint16_t status,
                                        const char *path,
                                        struct idem_uid id,
                                        struct idem_buf *buf)
{
    size_t from = buf->len;
    idem_buf_add(buf, IDEM_STR("Content-Type: application/json\n"));
    if (status == 201) {
        idem_buf_add(buf, IDEM_STR("Location: "));
        idem_buf_add(buf, idem_str_from(path));
        idem_uid_print(id, buf);
        idem_buf_add_char(buf, '\n');
    }
    return since(buf, from);
}

struct idem_answer idem_answer_payment(uint16_t status,
                                       const struct idem_payment *payment,
                                       struct idem_buf *buf)
{
    struct idem_answer answer = { .status = status };
    answer.headers = resource_headers(status, "/v1/payments/", payment->id, buf);
    size_t from = buf->len;
    idem_payment_print(payment, buf);
    answer.body = since(buf, from);
    return answer;
}

struct idem_answer idem_answer_refund(uint16_t status,
                                      const struct idem_refund *refund,
                                      struct idem_buf *buf)
{
    struct idem_answer answer = { .status = status };
    answer.headers = resource_headers(status, "/v1/refunds/", refund->id, buf);
    size_t from = buf->len;
    idem_refund_print(refund, buf);
    answer.body = since(buf, from);
    return answer;
}
