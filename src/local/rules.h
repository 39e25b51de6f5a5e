/*
 * rules.h - what each request does to a record in each state. Pure: no database, clock or heap.
 *
 * docs/sql.md and sql/idem.sql say the same in another language; test/local/grid.txt asks both.
 */
#ifndef IDEM_LOCAL_RULES_H
#define IDEM_LOCAL_RULES_H

#include "base/attr.h"
#include "local/row.h"

#define IDEM_LOCAL_DELETE_US (INT64_C(400) * 86400 * 1000000) /* From `expires_us` on. */

/* The record of a key that had none; `*ret_row` borrows the command. */
void idem_local_row_begin(const struct idem_local_command *command,
                          int64_t now_us,
                          struct idem_local_row *ret_row);

/*
 * Applies the command to a record that stands in the store: found by scope for a claim or
 * evidence, by its token for the rest. Where something is to be written, `version` is one more
 * afterwards, and the row borrows the command.
 */
enum idem_local_outcome idem_local_decide(struct idem_local_row *row,
                                          const struct idem_local_command *command,
                                          int64_t now_us) IDEM_MUST_CHECK;

/* The state as it is at that moment: leases and retentions that are over count. */
enum idem_local_state idem_local_state_now(const struct idem_local_row *row, int64_t now_us);

/* When somebody should come and look, if nobody has until then; 0: never. */
int64_t idem_local_due_us(const struct idem_local_row *row);

/* What a claim's outcome may show of the record: the rest is emptied. */
void idem_local_row_mask(struct idem_local_row *row, enum idem_local_outcome outcome);

/* What is left of a record whose answer is forgotten. */
void idem_local_row_forget(struct idem_local_row *row);

#endif /* IDEM_LOCAL_RULES_H */
