/*
 * read.h - how a read is answered, whichever backend holds the rows.
 */
#ifndef IDEM_STORE_READ_H
#define IDEM_STORE_READ_H

#include <stdbool.h>

#include "store/rows.h"
#include "store/store.h"

/*
 * Fills in all that `read` asks for, from one snapshot, and its answer. False: what lies there is
 * damaged, and the store must not go on.
 */
bool idem_read_run(struct idem_rows *rows, int64_t incarnation, struct idem_read *read);

#endif /* IDEM_STORE_READ_H */
