/*
 * The log that an earlier process left, made durable before anybody believes it.
 *
 * That process may have died because a flush of the log failed. Then the system still shows what
 * was written and has already forgotten that the disk never got it: a later flush succeeds and
 * writes nothing. SQLite would find the frames of a commit that nobody was told of, flush the log
 * in vain, and begin to carry them over into the database file; power that fails in the middle of
 * that leaves a file with some of those pages and no log to complete them, which is damage.
 *
 * So the log is copied, the copy is flushed, and takes the log's place: now it is what it looks
 * like, or the start fails. It is not written again in place: a write may leave anything in the
 * sectors that it was in the middle of, and what was acknowledged stands there and nowhere else.
 * The copy is made by reading and writing, since what a file system copies by itself may share the
 * place on the disk with what is to be replaced.
 *
 * Only while nobody has the file open, or they would go on with the log that was replaced. Who
 * works with it holds SQLite's shared lock, so it is taken for us alone before the log is opened;
 * whoever comes then waits a moment. After a clean end there is no log, and nothing to do; and what
 * belongs to another program is left to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "store/sqlite/file_internal.h"
#include "store/sqlite/schema.h"

#define LOG_SUFFIX  "-wal"
#define COPY_SUFFIX "-wal.new"
#define PIECE_MAX   65536
#define TRIES_MAX   100 /* A hundredth of a second each. */

/* Part of SQLite's file format: whose the file is, and where shared locks lie (os.h). */
#define APPLICATION_ID_AT 68
#define SHARED_LOCK_FIRST (0x40000000 + 2)
#define SHARED_LOCK_SIZE  510

/* The log and what will replace it. */
struct renewal {
    char *log_name;
    char *copy_name;
    int log_fd; /* -1: not open. */
    int copy_fd;
    struct stat log;
};

static char *name_make(const char *path, const char *suffix)
{
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *name = malloc(size);
    if (name != NULL) {
        (void)snprintf(name, size, "%s%s", path, suffix); /* It fits: the size is counted. */
    }
    return name;
}

static void renewal_end(struct renewal *renewal)
{
    if (renewal->log_fd >= 0) {
        (void)close(renewal->log_fd); /* It was only read. */
    }
    if (renewal->copy_fd >= 0) {
        (void)close(renewal->copy_fd); /* It was flushed, or is of no use. */
    }
    free(renewal->log_name);
    free(renewal->copy_name);
}

static enum idem_err failure(const struct renewal *renewal, struct idem_error *reterr)
{
    int cause = errno;
    return cause == ENOSPC || cause == EDQUOT
               ? idem_error_set(reterr, IDEM_E_SYSTEM,
                                "there is no room to write %s anew, which an earlier process left; "
                                "it needs %lld KB beside it",
                                renewal->log_name, (long long)(renewal->log.st_size / 1024) + 1)
               : idem_error_set(reterr, IDEM_E_SYSTEM,
                                "cannot write %s anew, which an earlier process left: %s",
                                renewal->log_name, strerror(cause));
}

/* False, with errno: it could not be. */
static bool piece_write(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return false;
        }
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

static bool content_copy(const struct renewal *renewal)
{
    char *piece = malloc(PIECE_MAX);
    bool good = piece != NULL;
    ssize_t len = 1;
    while (good && len > 0) {
        len = read(renewal->log_fd, piece, PIECE_MAX);
        if (len < 0 && errno == EINTR) {
            len = 1;
            continue;
        }
        good = len >= 0 && piece_write(renewal->copy_fd, piece, (size_t)len);
    }
    int cause = errno;
    free(piece);
    errno = cause;
    return good;
}

/*
 * As SQLite makes it: whoever may read and write the one may the other. Asked for only where it is
 * not so already, since not every file system has owners and modes that can be set.
 */
static bool owner_copy(const struct renewal *renewal)
{
    const struct stat *log = &renewal->log;
    struct stat copy;
    if (fstat(renewal->copy_fd, &copy) != 0) {
        return false;
    }
    bool same_mode = (copy.st_mode & 0777) == (log->st_mode & 0777);
    bool same_owner = copy.st_uid == log->st_uid && copy.st_gid == log->st_gid;
    return (same_mode || fchmod(renewal->copy_fd, log->st_mode & 0777) == 0) &&
           (same_owner || geteuid() != 0 ||
            fchown(renewal->copy_fd, log->st_uid, log->st_gid) == 0);
}

/* A file of ours: what lies or points there under that name is never written through. */
static bool copy_make(struct renewal *renewal)
{
    if (unlink(renewal->copy_name) != 0 && errno != ENOENT) {
        return false;
    }
    renewal->copy_fd =
        open(renewal->copy_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
             S_IRUSR | S_IWUSR);
    return renewal->copy_fd >= 0;
}

static enum idem_err renewal_run(struct renewal *renewal,
                                 const char *path,
                                 struct idem_error *reterr)
{
    if (!copy_make(renewal) || !owner_copy(renewal) || !content_copy(renewal) ||
        fsync(renewal->copy_fd) != 0) {
        enum idem_err err = failure(renewal, reterr);
        (void)unlink(renewal->copy_name); /* It takes room; the next start makes it anew. */
        return err;
    }
    if (rename(renewal->copy_name, renewal->log_name) != 0) {
        return failure(renewal, reterr);
    }
    return idem_sqlite_directory_sync(path, reterr);
}

static struct flock others_range(short kind)
{
    return (struct flock){
        .l_type = kind,
        .l_whence = SEEK_SET,
        .l_start = SHARED_LOCK_FIRST,
        .l_len = SHARED_LOCK_SIZE,
    };
}

/*
 * A lock of this descriptor: it neither gives nor takes any that SQLite has in this process. Where
 * the system knows no such locks, one of the process: SQLite has none yet.
 */
static bool others_lock(int database_fd, short kind)
{
    struct flock lock = others_range(kind);
    if (fcntl(database_fd, F_OFD_SETLK, &lock) == 0) {
        return true;
    }
    return errno == EINVAL && fcntl(database_fd, F_SETLK, &lock) == 0;
}

/* Who has the file open; 0 or less: nobody any more, or nobody can say. */
static int holder_find(int database_fd)
{
    struct flock lock = others_range(F_WRLCK);
    bool asked = fcntl(database_fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    return asked ? (int)lock.l_pid : 0;
}

/* As long as SQLite would wait (database.c): somebody may only be having a look. */
static bool others_lock_wait(int database_fd)
{
    const struct timespec pause = { .tv_nsec = 10000000 };
    bool locked = others_lock(database_fd, F_WRLCK);
    for (int i = 0; i < TRIES_MAX && !locked && (errno == EAGAIN || errno == EACCES); i++) {
        (void)nanosleep(&pause, NULL); /* A signal makes it a shorter one. */
        locked = others_lock(database_fd, F_WRLCK);
    }
    return locked;
}

/* The log as it is now that nobody else can change it. */
static enum idem_err renewal_run_locked(struct renewal *renewal,
                                        const char *path,
                                        struct idem_error *reterr)
{
    renewal->log_fd = open(renewal->log_name, O_RDONLY | O_CLOEXEC);
    if (renewal->log_fd < 0 && errno == ENOENT) {
        return IDEM_OK; /* Who had it open has brought it to its end. */
    }
    if (renewal->log_fd < 0 || fstat(renewal->log_fd, &renewal->log) != 0) {
        return failure(renewal, reterr);
    }
    return renewal->log.st_size > 0 ? renewal_run(renewal, path, reterr) : IDEM_OK;
}

static enum idem_err renewal_run_alone(struct renewal *renewal,
                                       const char *path,
                                       int database_fd,
                                       struct idem_error *reterr)
{
    if (!others_lock_wait(database_fd)) {
        return errno == EAGAIN || errno == EACCES
                   ? idem_error_set(reterr, IDEM_E_STORE,
                                    "another program has the store open (process %d), and its log "
                                    "must be made durable first; close that program, then start",
                                    holder_find(database_fd))
                   : idem_error_set(reterr, IDEM_E_SYSTEM, "cannot lock %s: %s", path,
                                    strerror(errno));
    }
    enum idem_err err = renewal_run_locked(renewal, path, reterr);
    bool unlocked = others_lock(database_fd, F_UNLCK);
    IDEM_ASSERT(unlocked); /* It was held. */
    return err;
}

/* By the file itself, before SQLite has looked at it: ours, or not said yet. */
static bool may_be_ours(int database_fd)
{
    uint8_t id[4];
    if (pread(database_fd, id, sizeof(id), APPLICATION_ID_AT) != (ssize_t)sizeof(id)) {
        return true; /* Too short to be anybody's. */
    }
    uint32_t number = (uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3];
    return number == 0 || number == IDEM_SQLITE_APPLICATION_ID;
}

enum idem_err idem_sqlite_log_renew(const char *path, int database_fd, struct idem_error *reterr)
{
    IDEM_ASSERT(database_fd >= 0);
    struct renewal renewal = {
        .log_name = name_make(path, LOG_SUFFIX),
        .copy_name = name_make(path, COPY_SUFFIX),
        .log_fd = -1,
        .copy_fd = -1,
    };
    enum idem_err err = IDEM_OK;
    if (renewal.log_name == NULL || renewal.copy_name == NULL) {
        err = idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    } else if (access(renewal.log_name, F_OK) == 0 && may_be_ours(database_fd)) {
        err = renewal_run_alone(&renewal, path, database_fd, reterr);
    }
    renewal_end(&renewal);
    return err;
}
