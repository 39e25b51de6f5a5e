/*
 * Brent's way of finding a circle: each cursor is compared with one mark, which moves to where we
 * are at each power of two. Once the mark lies in the circle and is as far away as the circle is
 * long, it comes by again.
 */
#include "cli/cursor.h"

#include <string.h>

#include "base/bug.h"

/* Empty: null. False: it is there, and neither a text that fits nor null; or it is not there. */
static bool next_read(const struct idem_json *json, struct idem_buf *ret_next)
{
    size_t index = idem_json_member(json, 0, IDEM_STR("next"));
    if (index != 0 && json->tokens[index].kind == IDEM_JSON_STRING) {
        idem_json_unescape(json, index, ret_next);
        if (ret_next->len == 0) {
            return false;
        }
    } else if (index == 0 || json->tokens[index].kind != IDEM_JSON_NULL) {
        return false;
    }
    bool is_text = idem_str_find(idem_buf_str(ret_next), '\0') == ret_next->len;
    idem_buf_add_char(ret_next, '\0');
    return is_text && !ret_next->full;
}

enum idem_cursor_step idem_cursor_take(struct idem_cursor *cursor, const struct idem_json *json)
{
    char memory[IDEM_CURSOR_MAX];
    struct idem_buf next;
    idem_buf_init(&next, memory, sizeof(memory));
    if (!next_read(json, &next)) {
        return IDEM_CURSOR_UNREADABLE;
    }
    if (memory[0] == '\0') {
        return IDEM_CURSOR_END;
    }
    if (strcmp(memory, cursor->mark) == 0 || cursor->count == IDEM_CURSOR_COUNT_MAX) {
        return IDEM_CURSOR_AGAIN;
    }
    IDEM_ASSERT(next.len <= sizeof(cursor->text));
    memcpy(cursor->text, memory, next.len);
    cursor->count += 1;
    if (cursor->count > cursor->mark_next) {
        memcpy(cursor->mark, memory, next.len);
        cursor->mark_next = 2 * cursor->count;
    }
    return IDEM_CURSOR_NEXT;
}
