/*
 * The view is made of what the store holds at this moment, and bounded by what a read can hold: 48
 * sends and 96 events of at most 256 bytes beside their text, and the text itself at most once as
 * it is (details) and once as a JSON string (an answer that is not JSON). IDEM_REPLY_BODY_MAX has
 * room for that.
 *
 * The stored answer's body stands in the view as JSON if it is JSON, which is what this API stores;
 * other bytes are shown as a string, and left out if they are not text.
 */
#include "api/operation.h"

#include "api/member.h"
#include "base/bug.h"
#include "base/json.h"

static const char *send_state_name(enum idem_send_state state)
{
    switch (state) {
    case IDEM_SEND_OPEN:
        return "open";
    case IDEM_SEND_NOT_EXECUTED:
        return "not-executed";
    case IDEM_SEND_REFUSED:
        return "refused";
    case IDEM_SEND_ANSWERED:
        return "answered";
    case IDEM_SEND_NONE:
    case IDEM_SEND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void add(struct idem_buf *buf, const char *text)
{
    idem_buf_add(buf, idem_str_from(text));
}

static void sends_print(const struct idem_operation *operation, struct idem_buf *buf)
{
    add(buf, ",\"attempts\":[");
    for (size_t i = 0; i < operation->send_count; i++) {
        const struct idem_send *send = &operation->sends[i];
        add(buf, i > 0 ? ",{\"send\":" : "{\"send\":");
        idem_buf_add_i64(buf, send->no);
        add(buf, ",\"epoch\":");
        idem_buf_add_i64(buf, send->epoch);
        add(buf, ",\"state\":\"");
        add(buf, send_state_name(send->state));
        idem_member_time(buf, "\",\"granted\":", send->granted_us);
        idem_member_time(buf, ",\"not_after\":", send->not_after_us);
        add(buf, "}");
    }
    add(buf, "]");
}

static void events_print(const struct idem_operation *operation, struct idem_buf *buf)
{
    add(buf, ",\"timeline\":[");
    for (size_t i = 0; i < operation->event_count; i++) {
        const struct idem_event *event = &operation->events[i];
        idem_member_time(buf, i > 0 ? ",{\"at\":" : "{\"at\":", event->at_us);
        add(buf, ",\"kind\":\"");
        add(buf, idem_event_kind_name(event->kind));
        add(buf, "\",\"cause\":\"");
        add(buf, idem_cause_name(event->cause));
        add(buf, "\",\"epoch\":");
        idem_buf_add_i64(buf, event->epoch);
        add(buf, ",\"send\":");
        idem_buf_add_i64(buf, event->send_no);
        idem_member_text(buf, ",\"detail\":", event->detail);
        add(buf, "}");
    }
    add(buf, "],\"timeline_total\":");
    idem_buf_add_i64(buf, (int64_t)operation->event_total);
}

/* Prints the header lines as members; true if they say that the body is JSON. */
static bool headers_print(struct idem_str lines, struct idem_buf *buf)
{
    bool json = false;
    bool first = true;
    while (lines.len > 0) {
        struct idem_str value = idem_str_next(&lines, '\n');
        struct idem_str name = idem_str_next(&value, ':');
        value = idem_str_trim(value);
        if (name.len == 0 || !idem_utf8_valid(name) || !idem_utf8_valid(value)) {
            continue;
        }
        add(buf, first ? "" : ",");
        idem_json_add_string(buf, name);
        add(buf, ":");
        idem_json_add_string(buf, value);
        first = false;
        json = json || (idem_str_equal_nocase(name, IDEM_STR("Content-Type")) &&
                        idem_json_is_media_type(value));
    }
    return json;
}

static struct idem_str without_line_end(struct idem_str text)
{
    bool ends = text.len > 0 && text.data[text.len - 1] == '\n';
    return idem_str_slice(text, 0, ends ? text.len - 1 : text.len);
}

static void answer_print(const struct idem_answer *answer, struct idem_buf *buf)
{
    if (answer->status == 0) {
        add(buf, ",\"answer\":null");
        return;
    }
    add(buf, ",\"answer\":{\"status\":");
    idem_buf_add_i64(buf, answer->status);
    add(buf, ",\"headers\":{");
    bool json = headers_print(answer->headers, buf);
    if (json && answer->body.len > 0) {
        add(buf, "},\"body\":");
        idem_buf_add(buf, without_line_end(answer->body));
    } else {
        idem_member_text(buf, "},\"body\":", answer->body);
    }
    add(buf, "}");
}

/* "expired": it is over, and its answer is forgotten. */
static const char *state_name(const struct idem_intent *intent)
{
    if (idem_intent_is_final(intent->state) && intent->answer.status == 0) {
        return "expired";
    }
    return idem_operation_state_name(intent->state);
}

void idem_operation_print_open(const struct idem_operation *operation, struct idem_buf *buf)
{
    const struct idem_intent *intent = operation->intent;
    IDEM_ASSERT(intent->state != IDEM_INTENT_NONE);
    IDEM_ASSERT(!idem_uid_is_zero(intent->id));
    add(buf, "{\"id\":\"");
    idem_uid_print(intent->id, buf);
    add(buf, "\",\"endpoint\":\"");
    add(buf, idem_endpoint_name(intent->endpoint));
    add(buf, "\",\"state\":\"");
    add(buf, state_name(intent));
    idem_member_time(buf, "\",\"created\":", intent->created_us);
    idem_member_time(buf, ",\"updated\":", intent->updated_us);
    idem_member_time(buf, ",\"unknown_since\":", intent->unknown_since_us);
    idem_member_time(buf, ",\"finished\":", intent->finished_us);
    idem_member_time(buf, ",\"expires\":", intent->expires_us);
    idem_member_link(buf, ",\"payment\":", "/v1/payments/", intent->payment_id);
    idem_member_link(buf, ",\"refund\":", "/v1/refunds/", intent->refund_id);
    sends_print(operation, buf);
    events_print(operation, buf);
    answer_print(&intent->answer, buf);
}

void idem_operation_print(const struct idem_operation *operation, struct idem_buf *buf)
{
    idem_operation_print_open(operation, buf);
    add(buf, "}\n");
}

void idem_operation_link_print(struct idem_uid id, struct idem_buf *buf)
{
    add(buf, "/v1/operations/");
    idem_uid_print(id, buf);
}
