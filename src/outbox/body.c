/*
 * The data is JSON already and goes in as it is stored.
 */
#include "outbox/body.h"

#include "base/bug.h"
#include "base/date.h"

void idem_post_body(const struct idem_message *message, struct idem_buf *buf)
{
    IDEM_ASSERT(message->type > IDEM_MESSAGE_NONE);
    IDEM_ASSERT(message->type < IDEM_MESSAGE_TYPE_COUNT);
    idem_buf_add(buf, IDEM_STR("{\"type\":\""));
    idem_buf_add(buf, idem_str_from(idem_message_type_name(message->type)));
    idem_buf_add(buf, IDEM_STR("\",\"timestamp\":\""));
    idem_date_print_rfc3339(message->at_us, buf);
    idem_buf_add(buf, IDEM_STR("\",\"sequence\":"));
    idem_buf_add_i64(buf, message->row);
    idem_buf_add(buf, IDEM_STR(",\"data\":"));
    idem_buf_add(buf, message->data);
    idem_buf_add_char(buf, '}');
}
