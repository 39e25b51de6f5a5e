/*
 * auditor_internal.h - the two halves of the judge: money (auditor.c) and mail (auditor_mail.c).
 */
#ifndef IDEM_SIM_AUDITOR_INTERNAL_H
#define IDEM_SIM_AUDITOR_INTERNAL_H

#include "sim/auditor.h"

struct idem_store_item;

void sim_violation(struct sim_auditor *auditor, const char *format, ...) IDEM_PRINTF(2, 3);

/* NULL: no caller's. */
struct sim_book *sim_book_of_scope(struct sim_auditor *auditor, const struct idem_scope *scope);

/* After a commit, for each book: its record, or NULL. */
void sim_audit_told(struct sim_auditor *auditor,
                    struct sim_book *book,
                    const struct idem_intent *intent);

/* After a commit, when the books have been looked at, for each command of it. */
void sim_audit_event(struct sim_auditor *auditor, const struct idem_store_item *item);

/* After that: who is told from now on. */
void sim_audit_listeners(struct sim_auditor *auditor);

void sim_audit_mail_end(struct sim_auditor *auditor);

/* Its case says that it was taken back while the sums had promised it to somebody. */
bool sim_audit_is_left(const struct sim_auditor *auditor, const struct sim_book *book);

#endif /* IDEM_SIM_AUDITOR_INTERNAL_H */
