/*
 * pages.h - a list of the admin API, page by page to its end.
 */
#ifndef IDEM_CLI_PAGES_H
#define IDEM_CLI_PAGES_H

#include "cli/session.h"

/*
 * Asks for every page of the list at `path`, which may have a query, and hands each to `take` as
 * the session's document; `take` may use the session. Ends with the first status that is not OK.
 */
enum idem_exit idem_pages_walk(struct idem_session *session,
                               const char *path,
                               enum idem_exit (*take)(struct idem_session *session, void *context),
                               void *context);

#endif /* IDEM_CLI_PAGES_H */
