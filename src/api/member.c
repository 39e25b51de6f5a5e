/*
 * What is absent is null and not left out, so that a reader finds every member in every answer.
 */
#include "api/member.h"

#include "base/date.h"
#include "base/json.h"

void idem_member_time(struct idem_buf *buf, const char *name, int64_t wall_us)
{
    idem_buf_add(buf, idem_str_from(name));
    if (wall_us == 0) {
        idem_buf_add(buf, IDEM_STR("null"));
        return;
    }
    idem_buf_add_char(buf, '"');
    idem_date_print_rfc3339(wall_us, buf);
    idem_buf_add_char(buf, '"');
}

void idem_member_text(struct idem_buf *buf, const char *name, struct idem_str text)
{
    idem_buf_add(buf, idem_str_from(name));
    if (text.len == 0 || !idem_utf8_valid(text)) {
        idem_buf_add(buf, IDEM_STR("null"));
        return;
    }
    idem_json_add_string(buf, text);
}

void idem_member_link(struct idem_buf *buf, const char *name, const char *path, struct idem_uid id)
{
    idem_buf_add(buf, idem_str_from(name));
    if (idem_uid_is_zero(id)) {
        idem_buf_add(buf, IDEM_STR("null"));
        return;
    }
    idem_buf_add_char(buf, '"');
    idem_buf_add(buf, idem_str_from(path));
    idem_uid_print(id, buf);
    idem_buf_add_char(buf, '"');
}

void idem_member_number(struct idem_buf *buf, const char *name, int64_t value)
{
    idem_buf_add(buf, idem_str_from(name));
    idem_buf_add_i64(buf, value);
}
