/*
 * file_internal.h - what opening, migrating and copying a store's file have in common.
 */
#ifndef IDEM_STORE_SQLITE_FILE_INTERNAL_H
#define IDEM_STORE_SQLITE_FILE_INTERNAL_H

#include "store/sqlite/sqlite_internal.h"

/* lock.c: what must be held before the file is touched. The absolute name is given in any case. */
enum idem_err idem_sqlite_file_lock(struct idem_sqlite_file *file,
                                    const char *path,
                                    bool create,
                                    char **ret_path,
                                    struct idem_error *reterr) IDEM_MUST_CHECK;

/* Of the directory that holds `path`, which is absolute. */
enum idem_err idem_sqlite_directory_sync(const char *path,
                                         struct idem_error *reterr) IDEM_MUST_CHECK;

/*
 * log_renew.c: a log that an earlier process left is durable afterwards. Under the locks, and while
 * no connection is open. `path` is absolute.
 */
enum idem_err idem_sqlite_log_renew(const char *path,
                                    int database_fd,
                                    struct idem_error *reterr) IDEM_MUST_CHECK;

/* database.c: SQL on one connection, outside of any batch. */
enum idem_err idem_sqlite_database_open(const char *path,
                                        int flags,
                                        sqlite3 **ret_handle,
                                        struct idem_error *reterr) IDEM_MUST_CHECK;
/*
 * For whoever writes batches: log_file.c stands before the log. Its owner sees to it that nothing
 * is written before COMMIT (cache_spill).
 */
enum idem_err idem_sqlite_batch_writer_open(const char *path,
                                            sqlite3 **ret_handle,
                                            struct idem_error *reterr) IDEM_MUST_CHECK;
enum idem_err idem_sqlite_database_error(sqlite3 *handle,
                                         const char *what,
                                         struct idem_error *reterr);
enum idem_err idem_sqlite_database_exec(sqlite3 *handle,
                                        const char *sql,
                                        const char *what,
                                        struct idem_error *reterr) IDEM_MUST_CHECK;

/*
 * The first column of the first row: as a number, and as text if `ret_text` is given. No row
 * leaves both as they are. SQLite's code.
 */
int idem_sqlite_value_read(sqlite3 *handle,
                           const char *sql,
                           int64_t *ret_number,
                           struct idem_buf *ret_text);
enum idem_err idem_sqlite_meta_write(sqlite3 *handle,
                                     const char *key,
                                     struct idem_str value,
                                     struct idem_error *reterr) IDEM_MUST_CHECK;

/* Whose file is it? Asked before anything is written to it. `*ret_version` 0: it is empty. */
enum idem_err idem_sqlite_owner_check(sqlite3 *handle,
                                      const char *path,
                                      int64_t *ret_version,
                                      struct idem_error *reterr) IDEM_MUST_CHECK;

/* Log mode and flushing for a writing connection; on an empty file also what only that can take. */
enum idem_err idem_sqlite_writer_setup(sqlite3 *handle,
                                       bool is_new,
                                       struct idem_error *reterr) IDEM_MUST_CHECK;
enum idem_err idem_sqlite_checkpoint_fully(sqlite3 *handle,
                                           struct idem_error *reterr) IDEM_MUST_CHECK;

/* The newest time that the file has, or one just before it; 0: none. */
enum idem_err idem_sqlite_newest_find(sqlite3 *handle,
                                      int64_t *ret_newest_us,
                                      struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_STORE_SQLITE_FILE_INTERNAL_H */
