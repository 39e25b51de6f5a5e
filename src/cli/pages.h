/*
 * pages.h - a list of the admin API, page by page to its end.
 */
#ifndef IDEM_CLI_PAGES_H
#define IDEM_CLI_PAGES_H

#include "cli/session.h"
#include "cli/table.h"

/* A list as a person reads it. */
struct idem_pages_view {
    const char *list;         /* The member of a page with its entries. */
    const char *const *names; /* Of the columns; NULL ends them. */

    /* One entry as a line, or none. */
    void (*add)(struct idem_table_view *table, const struct idem_json *json, size_t entry);
};

/* Prints the list at `path`, which may have a query: each page as a table, or as it came. */
enum idem_exit idem_pages_print(struct idem_session *session,
                                const char *path,
                                const struct idem_pages_view *view);

/* What is to be done with each entry of a list. */
struct idem_pages_act {
    const char *list;
    const char *member; /* The entry's id. */

    /* May use the session. The first status that is not OK ends it. */
    enum idem_exit (*run)(struct idem_session *session, const char *id, const void *context);
    const void *context;
};

enum idem_exit idem_pages_each(struct idem_session *session,
                               const char *path,
                               const struct idem_pages_act *act);

#endif /* IDEM_CLI_PAGES_H */
