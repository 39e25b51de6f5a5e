/*
 * result.h - what the caller is given: records and lists of them, in memory that is then its own.
 */
#ifndef IDEM_LOCAL_RESULT_H
#define IDEM_LOCAL_RESULT_H

#include "base/attr.h"
#include "idem/idem.h"
#include "local/row.h"

/* NULL: no memory. What `row` has is copied, and what it has not is empty. */
struct idem_local_record *idem_local_record_make(const struct idem_local_row *row) IDEM_MUST_CHECK;

/* "ID", or "ID:EFFECT" if the effect has a name; nothing if nothing was dispatched. */
void idem_local_effect_id_print(const struct idem_local_row *row, struct idem_buf *buf);

/* Room for `limit` records, of which it has none; NULL: no memory. */
struct idem_local_list *idem_local_list_make(int limit) IDEM_MUST_CHECK;

/* Takes the record; there must be room. */
void idem_local_list_add(struct idem_local_list *list, struct idem_local_record *record);

#endif /* IDEM_LOCAL_RESULT_H */
