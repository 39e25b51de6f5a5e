/*
 * spool.h - both sides of a reconciliation, sorted by effect id, in constant memory.
 *
 * Lines are appended in whatever order they come. SQLite keeps them in a temporary file that no
 * name leads to any more, sorts them there, and gives both sides back through two cursors, each in
 * order of effect id, then of state, then as they came. A side may name an effect more than once.
 *
 * Threads: one.
 */
#ifndef IDEM_RECONCILE_SPOOL_H
#define IDEM_RECONCILE_SPOOL_H

#include <stdbool.h>

#include "base/error.h"
#include "reconcile/line.h"

struct idem_spool;

/* The file is made where SQLite makes temporary ones: SQLITE_TMPDIR, TMPDIR, /var/tmp, /tmp. */
enum idem_err idem_spool_open(struct idem_spool **ret_spool,
                              struct idem_error *reterr) IDEM_MUST_CHECK;

/* Copies the line. */
enum idem_err idem_spool_add(struct idem_spool *spool,
                             enum idem_line_side side,
                             const struct idem_line *line,
                             struct idem_error *reterr) IDEM_MUST_CHECK;

/* Nothing is added any more; what follows reads. */
enum idem_err idem_spool_sort(struct idem_spool *spool, struct idem_error *reterr) IDEM_MUST_CHECK;

/*
 * The next line of a side; `*ret_end`: there is none. Its text is the spool's until the next call
 * for this side.
 */
enum idem_err idem_spool_next(struct idem_spool *spool,
                              enum idem_line_side side,
                              struct idem_line *ret_line,
                              bool *ret_end,
                              struct idem_error *reterr) IDEM_MUST_CHECK;

/* The file goes with it. Accepts NULL. */
void idem_spool_close(struct idem_spool *spool);

#endif /* IDEM_RECONCILE_SPOOL_H */
