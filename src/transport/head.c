/*
 * The head of an answer, line by line.
 *
 * What it says of the body's length decides whether an answer is provably complete, so it is read
 * here more strictly than libcurl does: what is not plainly a length is none.
 */
#include <string.h>

#include "base/date.h"
#include "transport/client_internal.h"

#define LENGTH_NONE     (-1)
#define LENGTH_VAGUE    (-2)            /* Several that differ, or one that is none. */
#define RETRY_AFTER_MAX IDEM_US_PER_DAY /* A longer wish is cut to this. */

void idem_http_head_reset(struct idem_http_head *head)
{
    *head = (struct idem_http_head){ .length = LENGTH_NONE };
}

void idem_http_head_begin(struct idem_http_head *head,
                          struct idem_http_call *call,
                          struct idem_str line)
{
    struct idem_str status = line;

    (void)idem_str_next(&status, ' '); /* The version. */
    bool interim = idem_str_starts(idem_str_trim(status), IDEM_STR("1"));
    idem_http_head_reset(head);
    head->state = interim ? IDEM_HTTP_HEAD_INTERIM : IDEM_HTTP_HEAD_OPEN;
    call->retry_after_us = 0;
    call->content_type = (struct idem_str){ .len = 0 };
    idem_buf_reset(&call->head_buf);
}

bool idem_http_head_delimits(const struct idem_http_head *head)
{
    return head->length >= 0 || (head->chunked && head->length != LENGTH_VAGUE);
}

/* RFC 9110, 10.2.3: seconds or a date. 0 if it is neither, or past. */
static int64_t retry_after_parse(struct idem_str value, struct idem_clock *clock)
{
    int64_t seconds;
    int64_t at_us;

    if (idem_str_to_i64(value, &seconds)) {
        return seconds > RETRY_AFTER_MAX / IDEM_US_PER_SECOND ? RETRY_AFTER_MAX
                                                              : seconds * IDEM_US_PER_SECOND;
    }
    if (!idem_date_parse_imf(value, &at_us)) {
        return 0;
    }
    int64_t ahead_us = at_us - idem_clock_wall_us(clock);
    if (ahead_us <= 0) {
        return 0;
    }
    return ahead_us < RETRY_AFTER_MAX ? ahead_us : RETRY_AFTER_MAX;
}

/* A value that is continued on a line of its own (RFC 9112, 5.2) is one value with a space. */
static void head_keep(struct idem_http_call *call, struct idem_str line)
{
    struct idem_buf *buf = &call->head_buf;
    struct idem_str value = line;
    bool folded = line.data[0] == ' ' || line.data[0] == '\t';

    if (folded && buf->len > 0) {
        buf->len -= 1; /* The line end. */
        idem_buf_add_char(buf, ' ');
    } else {
        idem_buf_add(buf, idem_str_next(&value, ':'));
        idem_buf_add(buf, IDEM_STR(": "));
    }
    idem_buf_add(buf, idem_str_trim(value));
    idem_buf_add_char(buf, '\n');
}

/*
 * libcurl is content with less: with a number that something follows, with one beyond all numbers
 * (then the body ends with the connection), with the last of several.
 */
static void length_field(struct idem_http_head *head, struct idem_str value)
{
    int64_t length;
    bool first = head->length == LENGTH_NONE;
    bool good = idem_str_to_i64(value, &length) && (first || head->length == length);
    head->length = good ? length : LENGTH_VAGUE;
}

void idem_http_head_field(struct idem_http_head *head,
                          struct idem_http_call *call,
                          struct idem_clock *clock,
                          struct idem_str line)
{
    struct idem_str value = line;
    struct idem_str name = idem_str_next(&value, ':');
    value = idem_str_trim(value);

    if (call->head_room != NULL) {
        head_keep(call, line);
    }
    if (idem_str_equal_nocase(name, IDEM_STR("content-length"))) {
        length_field(head, value);
    } else if (idem_str_equal_nocase(name, IDEM_STR("transfer-encoding"))) {
        head->chunked = head->chunked || idem_http_coding_ends(value);
    } else if (idem_str_equal_nocase(name, IDEM_STR("retry-after"))) {
        call->retry_after_us = retry_after_parse(value, clock);
    } else if (idem_str_equal_nocase(name, IDEM_STR("content-type")) && value.len > 0 &&
               value.len <= sizeof(call->content_type_memory)) {
        memcpy(call->content_type_memory, value.data, value.len);
        call->content_type =
            (struct idem_str){ .data = call->content_type_memory, .len = value.len };
    }
}
