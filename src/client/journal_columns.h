/*
 * journal_columns.h - the columns of an intent, in the order in which they are bound and read.
 */
#ifndef IDEM_CLIENT_JOURNAL_COLUMNS_H
#define IDEM_CLIENT_JOURNAL_COLUMNS_H

/* What is asked for, and since when. */
#define IDEM_CLIENT_REQUEST_COLUMNS                                               \
    "key, key_own, dialect, method, url, headers, body, status_url, deadline_us," \
    " window_us, created_us, first_wall_us, first_mono_us, first_boot, begun_us"
#define IDEM_CLIENT_REQUEST_VALUES "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"

/* How it stands. */
#define IDEM_CLIENT_VERDICT_COLUMNS                                                  \
    "doubt, operation_url, outcome, reason, over, replayed, message, answer_status," \
    " answer_headers, answer_body, expires_us, ended_us"
#define IDEM_CLIENT_VERDICT_VALUES "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"

#endif /* IDEM_CLIENT_JOURNAL_COLUMNS_H */
