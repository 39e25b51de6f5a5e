/*
 * No secret is in a page, and of what a merchant was told only the kind: the data is the
 * merchant's.
 */
#include "api/mail_view.h"

#include "api/admin_view.h"
#include "api/member.h"

static void add(struct idem_buf *buf, const char *text)
{
    idem_buf_add(buf, idem_str_from(text));
}

static void types_print(uint64_t types, struct idem_buf *buf)
{
    const char *before = "";
    add(buf, ",\"types\":[");
    for (int type = IDEM_MESSAGE_NONE + 1; type < IDEM_MESSAGE_TYPE_COUNT; type++) {
        if ((types >> type & 1U) != 0) {
            idem_member_text(buf, before,
                             idem_str_from(idem_message_type_name((enum idem_message_type)type)));
            before = ",";
        }
    }
    add(buf, "]");
}

static void webhook_print(const struct idem_webhook *webhook,
                          struct idem_str secret,
                          struct idem_buf *buf)
{
    idem_member_link(buf, "{\"id\":", "", webhook->id);
    idem_member_text(buf, ",\"principal\":", webhook->principal);
    idem_member_text(buf, ",\"url\":", webhook->url);
    types_print(webhook->types, buf);
    idem_member_number(buf, ",\"generation\":", webhook->generation);
    if (secret.len > 0) {
        idem_member_text(buf, ",\"secret\":", secret);
    }
    idem_member_time(buf, ",\"rotated\":", webhook->rotated_us);
    idem_member_time(buf, ",\"created\":", webhook->created_us);
    idem_member_text(buf, ",\"created_by\":", webhook->created_by);
    idem_member_time(buf, ",\"disabled\":", webhook->disabled_us);
    idem_member_text(buf, ",\"disabled_by\":", webhook->disabled_by);
    add(buf, "}");
}

void idem_mail_webhook_print(const struct idem_webhook *webhook,
                             struct idem_str secret,
                             struct idem_buf *buf)
{
    webhook_print(webhook, secret, buf);
    add(buf, "\n");
}

void idem_mail_webhooks_print(const struct idem_read *read, struct idem_buf *buf)
{
    static const struct idem_str no_secret = { .data = NULL, .len = 0 };
    int64_t last_row = 0;
    add(buf, "{\"webhooks\":[");
    for (size_t i = 0; i < read->webhook_count; i++) {
        add(buf, i > 0 ? "," : "");
        webhook_print(&read->webhooks[i], no_secret, buf);
        last_row = read->webhooks[i].row;
    }
    idem_admin_next_page_print(read->more, last_row, buf);
}

static void delivery_print(const struct idem_post *post, struct idem_buf *buf)
{
    const struct idem_delivery *delivery = &post->delivery;
    idem_member_link(buf, "{\"message\":", "", post->message.id);
    idem_member_link(buf, ",\"webhook\":", "", post->webhook.id);
    idem_member_text(buf, ",\"principal\":", post->message.principal);
    idem_member_text(buf, ",\"type\":", idem_str_from(idem_message_type_name(post->message.type)));
    idem_member_number(buf, ",\"sequence\":", post->message.row);
    idem_member_link(buf, ",\"payment\":", "/v1/payments/", post->message.payment_id);
    idem_member_text(buf, ",\"state\":", idem_str_from(idem_delivery_state_name(delivery->state)));
    idem_member_number(buf, ",\"attempts\":", delivery->attempts);
    idem_member_time(buf, ",\"due\":", delivery->due_us);
    idem_member_number(buf, ",\"last_status\":", delivery->last_status);
    idem_member_text(buf, ",\"last_error\":", delivery->last_error);
    idem_member_time(buf, ",\"created\":", delivery->created_us);
    idem_member_time(buf, ",\"finished\":", delivery->finished_us);
    add(buf, "}");
}

void idem_mail_deliveries_print(const struct idem_read *read, struct idem_buf *buf)
{
    int64_t last_row = 0;
    add(buf, "{\"deliveries\":[");
    for (size_t i = 0; i < read->post_count; i++) {
        add(buf, i > 0 ? "," : "");
        delivery_print(&read->posts[i], buf);
        last_row = read->posts[i].delivery.row;
    }
    idem_admin_next_page_print(read->more, last_row, buf);
}
