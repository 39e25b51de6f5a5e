/*
 * log_file.h - how the write-ahead log reaches the system: in few large writes.
 */
#ifndef IDEM_STORE_SQLITE_LOG_FILE_H
#define IDEM_STORE_SQLITE_LOG_FILE_H

/* The VFS to open databases with. */
#define IDEM_SQLITE_LOG_FILE_VFS "idem"

/* Makes it known to SQLite. Once a process, before it is named. SQLite's code. */
int idem_sqlite_log_file_register(void);

#endif /* IDEM_STORE_SQLITE_LOG_FILE_H */
