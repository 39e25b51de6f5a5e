/*
 * The cursor is kept before a page is handed on, since what is done with it may ask for other
 * things.
 */
#include "cli/pages.h"

#include <stdio.h>
#include <string.h>

#define CURSOR_MAX 64
#define PATH_LEN   512
#define PAGES_MAX  1000000 /* Then something is wrong: no cursor moves on. */

/* Empty behind the last page. */
static void cursor_read(const struct idem_json *json, struct idem_buf *ret_cursor)
{
    size_t next = idem_json_member(json, 0, IDEM_STR("next"));
    idem_buf_reset(ret_cursor);
    if (next != 0 && json->tokens[next].kind == IDEM_JSON_STRING) {
        idem_json_unescape(json, next, ret_cursor);
    }
}

enum idem_exit idem_pages_walk(struct idem_session *session,
                               const char *path,
                               enum idem_exit (*take)(struct idem_session *session, void *context),
                               void *context)
{
    char memory[CURSOR_MAX];
    struct idem_buf cursor;
    idem_buf_init(&cursor, memory, sizeof(memory));
    for (int i = 0; i < PAGES_MAX; i++) {
        char full[PATH_LEN];
        const char *joint = strchr(path, '?') != NULL ? "&cursor=" : "?cursor=";
        int len = snprintf(full, sizeof(full), "%s%s%.*s", path, cursor.len > 0 ? joint : "",
                           (int)cursor.len, memory);
        if (cursor.full || len >= (int)sizeof(full)) {
            break;
        }
        enum idem_exit status = idem_session_ask(session, "GET", full, IDEM_STR(""));
        if (status != IDEM_EXIT_OK) {
            return status;
        }
        cursor_read(&session->document, &cursor);
        status = take(session, context);
        if (status != IDEM_EXIT_OK || cursor.len == 0) {
            return status;
        }
    }
    (void)fputs("idem: the list has no end that can be reached\n", stderr);
    return IDEM_EXIT_OTHER;
}
