/*
 * journal_columns.h - the columns of an intent, in the order in which they are bound and read.
 */
#ifndef IDEM_CLIENT_JOURNAL_COLUMNS_H
#define IDEM_CLIENT_JOURNAL_COLUMNS_H

/* What is sent, under which key. A key has one request for its life: only a new key changes it. */
#define IDEM_CLIENT_REQUEST_COLUMNS "key, key_own, dialect, method, url, headers, body, created_us"
#define IDEM_CLIENT_REQUEST_VALUES  "?, ?, ?, ?, ?, ?, ?, ?"

/* What a run is given, and since when there are any. */
#define IDEM_CLIENT_RUN_COLUMNS                                                      \
    "status_url, deadline_us, window_us, first_wall_us, first_mono_us, first_boot, " \
    "begun_us, asker"
#define IDEM_CLIENT_RUN_VALUES "?, ?, ?, ?, ?, ?, ?, ?"

/* How it stands. */
#define IDEM_CLIENT_VERDICT_COLUMNS                                                  \
    "doubt, operation_url, outcome, reason, over, replayed, message, answer_status," \
    " answer_headers, answer_body, expires_us, ended_us"
#define IDEM_CLIENT_VERDICT_VALUES "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"

#endif /* IDEM_CLIENT_JOURNAL_COLUMNS_H */
