/*
 * Our own locks, on PATH.lock and on the database file itself.
 *
 * SQLite's locks say nothing about a process that is merely idle; ours are held until we close them
 * or die, by whatever death. The lock file is never removed: removing it would let two processes
 * lock two different files of one name. It guards the name and the log files beside it; the lock on
 * the database guards the file under whatever other name it is mounted. A second hard link is
 * refused outright: whoever opened that name would look for another log. They are BSD locks, which
 * live apart from SQLite's own; but closing any descriptor of the database drops those, so ours is
 * closed after the connections.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"
#include "store/sqlite/file_internal.h"

#define LOCK_SUFFIX ".lock"

/* Opens the file, and makes it if it is absent and that is wanted. Gives its absolute name. */
static enum idem_err file_make(struct idem_sqlite_file *file,
                               const char *path,
                               bool create,
                               char **ret_path,
                               struct idem_error *reterr)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        return idem_error_set(reterr, IDEM_E_STORE, "%s is not a file; name a file for the store",
                              path);
    }
    file->database_fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), S_IRUSR | S_IWUSR);
    if (file->database_fd < 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "cannot open the store %s: %s", path,
                              strerror(errno));
    }
    *ret_path = realpath(path, NULL);
    if (*ret_path == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "cannot resolve %s: %s", path,
                              strerror(errno));
    }
    return IDEM_OK;
}

enum idem_err idem_sqlite_directory_sync(const char *path, struct idem_error *reterr)
{
    char *directory = strdup(path);
    if (directory == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    char *slash = strrchr(directory, '/');
    IDEM_ASSERT(slash != NULL); /* The path is absolute. */
    slash[slash == directory ? 1 : 0] = '\0';

    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    int cause = errno;
    if (fd >= 0) {
        (void)close(fd); /* It was only read. */
    }
    free(directory);
    return synced ? IDEM_OK
                  : idem_error_set(reterr, IDEM_E_SYSTEM, "cannot flush the directory of %s: %s",
                                   path, strerror(cause));
}

/* Takes the lock on an open file, which is called `name`, of the store `path`. */
static enum idem_err lock_take(int fd,
                               const char *name,
                               const char *path,
                               struct idem_error *reterr)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        return IDEM_OK;
    }
    return errno == EWOULDBLOCK
               ? idem_error_set(reterr, IDEM_E_STORE, "another process serves %s; stop it first",
                                path)
               : idem_error_set(reterr, IDEM_E_SYSTEM, "cannot lock %s: %s", name, strerror(errno));
}

static enum idem_err name_lock(struct idem_sqlite_file *file,
                               const char *path,
                               struct idem_error *reterr)
{
    size_t size = strlen(path) + sizeof(LOCK_SUFFIX);
    char *name = malloc(size);
    if (name == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    (void)snprintf(name, size, "%s%s", path, LOCK_SUFFIX); /* It fits: the size is counted. */
    file->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    enum idem_err err =
        file->lock_fd < 0
            ? idem_error_set(reterr, IDEM_E_SYSTEM, "cannot open %s: %s", name, strerror(errno))
            : lock_take(file->lock_fd, name, path, reterr);
    free(name);
    return err;
}

/* The file itself, under whatever name. */
static enum idem_err database_lock(struct idem_sqlite_file *file,
                                   const char *path,
                                   struct idem_error *reterr)
{
    struct stat info;
    if (fstat(file->database_fd, &info) != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "cannot look at %s: %s", path,
                              strerror(errno));
    }
    if (info.st_nlink > 1) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "%s has %llu names (hard links), and its log is found by only one "
                              "of them; remove the others, or serve a copy",
                              path, (unsigned long long)info.st_nlink);
    }
    return lock_take(file->database_fd, path, path, reterr);
}

enum idem_err idem_sqlite_file_lock(struct idem_sqlite_file *file,
                                    const char *path,
                                    bool create,
                                    char **ret_path,
                                    struct idem_error *reterr)
{
    *file = (struct idem_sqlite_file){ .lock_fd = -1, .database_fd = -1 };
    *ret_path = NULL;
    enum idem_err err = file_make(file, path, create, ret_path, reterr);
    if (err == IDEM_OK) {
        IDEM_ASSERT(*ret_path != NULL);
        err = name_lock(file, *ret_path, reterr);
    }
    if (err == IDEM_OK) {
        err = database_lock(file, *ret_path, reterr);
    }
    return err == IDEM_OK ? idem_sqlite_directory_sync(*ret_path, reterr) : err;
}

void idem_sqlite_file_close(struct idem_sqlite_file *file)
{
    (void)sqlite3_close(file->reader); /* No statement is open, so they close. NULL is accepted. */
    (void)sqlite3_close(file->checkpointer);
    (void)sqlite3_close(file->writer);
    file->reader = NULL;
    file->checkpointer = NULL;
    file->writer = NULL;
    if (file->database_fd >= 0) {
        (void)close(file->database_fd); /* Gives the lock back, and drops all of SQLite's. */
        file->database_fd = -1;
    }
    if (file->lock_fd >= 0) {
        (void)close(file->lock_fd); /* Gives the lock back. */
        file->lock_fd = -1;
    }
}
