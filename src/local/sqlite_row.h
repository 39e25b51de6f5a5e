/*
 * sqlite_row.h - the record as a row of the caller's SQLite file: names, binding, reading.
 */
#ifndef IDEM_LOCAL_SQLITE_ROW_H
#define IDEM_LOCAL_SQLITE_ROW_H

#include <sqlite3.h>

#include "base/attr.h"
#include "local/row.h"

#define IDEM_LOCAL_SQLITE_VERSION 1

/* What never changes, and what does. Their order is that of sqlite_row.c. */
#define IDEM_LOCAL_SQLITE_FIXED        "id, principal, endpoint, key, fingerprint, created_us"
#define IDEM_LOCAL_SQLITE_FIXED_VALUES "?, ?, ?, ?, ?, ?"
#define IDEM_LOCAL_SQLITE_MOVING                                                                 \
    "state, version, local_only, epoch, token, lease_end_us, effect, step, step_data, verdict,"  \
    " status, headers, body, updated_us, finished_us, expires_us, evidence_by, evidence_reason," \
    " contradiction, contradiction_by, contradiction_reason, contradiction_us, due_us"
#define IDEM_LOCAL_SQLITE_MOVING_VALUES \
    "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"

/* Each binds from parameter `index` on and returns the next free one. */
int idem_local_sqlite_bind_fixed(sqlite3_stmt *statement,
                                 int index,
                                 const struct idem_local_row *row);
int idem_local_sqlite_bind_moving(sqlite3_stmt *statement,
                                  int index,
                                  const struct idem_local_row *row);
int idem_local_sqlite_bind_scope(sqlite3_stmt *statement,
                                 int index,
                                 const struct idem_local_scope *scope);

/*
 * The row that a SELECT of `row`, FIXED and MOVING stands on; texts are borrowed from the statement
 * until its next step. False: a value is not one that we wrote, or there was no memory for it.
 */
bool idem_local_sqlite_read(sqlite3_stmt *statement,
                            struct idem_local_row *ret_row) IDEM_MUST_CHECK;

#endif /* IDEM_LOCAL_SQLITE_ROW_H */
