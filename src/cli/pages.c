/*
 * The cursor is kept before a page is handed on, and so are the ids of a page, since what is done
 * with them may ask for other things.
 */
#include "cli/pages.h"

#include <stdio.h>

#include "cli/command.h"
#include "cli/cursor.h"

#define PATH_LEN 1024
#define ID_MAX   64

static enum idem_exit refuse(const char *words)
{
    (void)fprintf(stderr, "idem: %s\n", words);
    return IDEM_EXIT_OTHER;
}

/* Of a page that is none of ours. */
#define STRANGE "the answer is not one of this version of idem"

/* Hands each page to `take`, as the session's document. */
static enum idem_exit walk(struct idem_session *session,
                           const char *path,
                           enum idem_exit (*take)(struct idem_session *session,
                                                  const void *context),
                           const void *context)
{
    struct idem_cursor cursor = { .count = 0 };
    enum idem_cursor_step step = IDEM_CURSOR_NEXT;
    while (step != IDEM_CURSOR_END) {
        char memory[PATH_LEN];
        struct idem_buf full;
        idem_buf_init(&full, memory, sizeof(memory));
        idem_buf_add(&full, idem_str_from(path));
        idem_path_member(&full, "cursor", cursor.count > 0 ? cursor.text : NULL);
        if (!idem_path_end(&full)) {
            return IDEM_EXIT_OTHER;
        }
        enum idem_exit status = idem_session_ask(session, "GET", memory, IDEM_STR(""));
        if (status != IDEM_EXIT_OK) {
            return status;
        }
        step = idem_cursor_take(&cursor, &session->document);
        if (step == IDEM_CURSOR_UNREADABLE) { /* Nothing may be done with what it lists. */
            return refuse(STRANGE);
        }
        status = take(session, context);
        if (status != IDEM_EXIT_OK) {
            return status;
        }
        if (step == IDEM_CURSOR_AGAIN) {
            return refuse("the list does not come to an end, as far as it was read");
        }
    }
    return IDEM_EXIT_OK;
}

/* The page's list, whose first entry stands behind it; 0: there is none of objects. */
static size_t list_find(const struct idem_json *json, const char *name)
{
    size_t list = idem_json_member(json, 0, idem_str_from(name));
    bool found = list != 0 && json->tokens[list].kind == IDEM_JSON_ARRAY;
    size_t entry = list + 1;
    for (uint32_t i = 0; found && i < json->tokens[list].count; i++) {
        found = json->tokens[entry].kind == IDEM_JSON_OBJECT;
        entry = json->tokens[entry].next;
    }
    return found ? list : 0;
}

/* With the line of names. */
static bool list_fits_table(const struct idem_json *json, size_t list)
{
    return json->tokens[list].count < IDEM_TABLE_ROWS;
}

static enum idem_exit page_print(struct idem_session *session, const void *context)
{
    static struct idem_table_view table;
    const struct idem_pages_view *view = context;
    const struct idem_json *json = &session->document;
    size_t list = list_find(json, view->list);
    if (list == 0 || (!session->json && !list_fits_table(json, list))) {
        return refuse(STRANGE);
    }
    if (session->json) {
        return idem_session_print_json(session);
    }
    uint32_t count = json->tokens[list].count;
    size_t entry = list + 1;
    idem_table_begin(&table, view->names);
    for (uint32_t i = 0; i < count; i++) {
        view->add(&table, json, entry);
        entry = json->tokens[entry].next;
    }
    return count == 0 ? IDEM_EXIT_OK : idem_table_print(&table);
}

enum idem_exit idem_pages_print(struct idem_session *session,
                                const char *path,
                                const struct idem_pages_view *view)
{
    return walk(session, path, page_print, view);
}

static enum idem_exit page_act(struct idem_session *session, const void *context)
{
    static struct idem_table_view ids;
    const struct idem_pages_act *act = context;
    const struct idem_json *json = &session->document;
    size_t list = list_find(json, act->list);
    if (list == 0 || !list_fits_table(json, list)) {
        return refuse(STRANGE);
    }
    size_t entry = list + 1;
    idem_table_begin(&ids, NULL);
    for (uint32_t i = 0; i < json->tokens[list].count; i++) {
        idem_table_row(&ids);
        idem_table_add_member(&ids, json, entry, act->member);
        entry = json->tokens[entry].next;
    }
    enum idem_exit status = IDEM_EXIT_OK;
    for (size_t i = 0; i < ids.rows && status == IDEM_EXIT_OK; i++) {
        char id[ID_MAX];
        (void)snprintf(id, sizeof(id), "%.*s", (int)ids.cells[i][0].len, ids.cells[i][0].data);
        status = act->run(session, id, act->context); /* A longer one is no id, and it says so. */
    }
    return status;
}

enum idem_exit idem_pages_each(struct idem_session *session,
                               const char *path,
                               const struct idem_pages_act *act)
{
    return walk(session, path, page_act, act);
}
