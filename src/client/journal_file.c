/*
 * The files of a journal: whose they are, who may read them, and their locks.
 *
 * Nothing here opens the database by open(2). SQLite's locks on it belong to the process, and
 * closing any descriptor of the file drops all of them (fcntl(2)): another client of this process
 * would go on without its locks. So the file is made by mknod, looked at by stat, and its header is
 * read through SQLite's own file layer, which knows of this.
 *
 *   header       before SQLite opens it as a database, because opening alone already changes files:
 *                it makes companions, and plays back a log that was left.
 *   lock file    never removed. One byte above all digests is the opening; the others are names.
 *   in place     somebody may remove or replace the files while they are open. A record written to
 *                a file that has no name is lost, so every change of a record looks first.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "client/journal_internal.h"

#define OTHERS         (S_IRWXG | S_IRWXO)
#define OWNER          (S_IRUSR | S_IWUSR)
#define NAME_BITS      62 /* Of a name's digest. */
#define OPENING_OFFSET (INT64_C(1) << NAME_BITS)
#define WAIT_MS        10

/* The database header: https://sqlite.org/fileformat2.html, 1.3. */
#define HEADER_SIZE        100
#define HEADER_MAGIC       "SQLite format 3"
#define HEADER_VERSION     60
#define HEADER_APPLICATION 68

static const char *const companions[] = { "-wal", "-shm", "-journal", "-lock" };

/* PATH and a suffix; the caller frees it. NULL: no memory. */
static char *path_make(const char *path, const char *suffix)
{
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *joined = malloc(size);
    if (joined != NULL) {
        (void)snprintf(joined, size, "%s%s", path, suffix); /* It fits: the size is counted. */
    }
    return joined;
}

static enum idem_client_err privacy_check(const char *path,
                                          const struct stat *info,
                                          struct idem_client_error *reterr)
{
    if (!S_ISREG(info->st_mode)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                "%s is not a file; name a file for the journal", path);
    }
    if ((info->st_mode & OTHERS) != 0) {
        return idem_client_fail(
            reterr, IDEM_CLIENT_E_JOURNAL,
            "%s: others than its owner have access (mode %04o): chmod 600 it, and treat what is in "
            "it as known to them",
            path, (unsigned)(info->st_mode & 07777U));
    }
    if (info->st_nlink > 1) {
        return idem_client_fail(
            reterr, IDEM_CLIENT_E_JOURNAL,
            "%s has %llu names (hard links), and its log is found by only one of them; remove the "
            "others, or use a copy",
            path, (unsigned long long)info->st_nlink);
    }
    return IDEM_CLIENT_OK;
}

/* Those that are there. */
static enum idem_client_err companions_check(const char *path, struct idem_client_error *reterr)
{
    enum idem_client_err err = IDEM_CLIENT_OK;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(companions) && err == IDEM_CLIENT_OK; i++) {
        struct stat info;
        char *name = path_make(path, companions[i]);
        if (name == NULL) {
            return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory");
        }
        if (lstat(name, &info) == 0) {
            err = privacy_check(name, &info, reterr);
        }
        free(name);
    }
    return err;
}

static uint32_t header_number(const uint8_t *header, size_t at)
{
    return (uint32_t)header[at] << 24 | (uint32_t)header[at + 1] << 16 |
           (uint32_t)header[at + 2] << 8 | header[at + 3];
}

static enum idem_client_err header_judge(const char *path,
                                         const uint8_t *header,
                                         struct idem_client_error *reterr)
{
    uint32_t version = header_number(header, HEADER_VERSION);
    if (memcmp(header, HEADER_MAGIC, sizeof(HEADER_MAGIC)) != 0) {
        return idem_client_fail(
            reterr, IDEM_CLIENT_E_JOURNAL,
            "%s is damaged or not a journal of idem; name another file, or restore a backup", path);
    }
    if (header_number(header, HEADER_APPLICATION) != IDEM_CLIENT_JOURNAL_APPLICATION_ID) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                "%s is a database of another program; name another file", path);
    }
    if (version != IDEM_CLIENT_JOURNAL_VERSION) {
        return idem_client_fail(
            reterr, IDEM_CLIENT_E_JOURNAL,
            "%s is a journal of version %u and this idem knows %d; use the idem that wrote it or a "
            "newer one",
            path, (unsigned)version, IDEM_CLIENT_JOURNAL_VERSION);
    }
    return IDEM_CLIENT_OK;
}

static enum idem_client_err header_read(sqlite3_file *file,
                                        const char *path,
                                        struct idem_client_error *reterr)
{
    uint8_t header[HEADER_SIZE] = { 0 };
    int rc = file->pMethods->xRead(file, header, sizeof(header), 0);
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                "the journal cannot be read: %s (%s)", sqlite3_errstr(rc), path);
    }
    return header_judge(path, header, reterr);
}

/* Whether a file that is not empty is ours, without any change to it. */
static enum idem_client_err header_check(const char *path, struct idem_client_error *reterr)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    const char *name = sqlite3_create_filename(path, "", "", 0, NULL);
    sqlite3_file *file = vfs == NULL ? NULL : calloc(1, (size_t)vfs->szOsFile);
    enum idem_client_err err;
    if (file == NULL || name == NULL) {
        err = idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory");
    } else if (vfs->xOpen(vfs, name, file, SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB, NULL) !=
               SQLITE_OK) {
        err = idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                               "the journal cannot be opened: %s (%s)", strerror(errno), path);
    } else {
        err = header_read(file, path, reterr);
    }
    if (file != NULL && file->pMethods != NULL) {
        (void)file->pMethods->xClose(file); /* It was only read. */
    }
    free(file);
    sqlite3_free_filename(name);
    return err;
}

/* Makes the file if there is none, for its owner alone whatever the umask says. */
static enum idem_client_err file_create(const char *path, struct idem_client_error *reterr)
{
    struct stat info;
    if (stat(path, &info) == 0 || errno != ENOENT) {
        return IDEM_CLIENT_OK; /* Whatever else is wrong with it shows next. */
    }
    if (mknod(path, S_IFREG | OWNER, 0) == 0) {
        (void)chmod(path, OWNER); /* If it fails, opening the file says so. */
        return IDEM_CLIENT_OK;
    }
    return errno == EEXIST
               ? IDEM_CLIENT_OK
               : idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                  "the journal cannot be made: %s (%s)", strerror(errno), path);
}

enum idem_client_err idem_client_journal_file_make(struct idem_client_journal *journal,
                                                   const char *path,
                                                   struct idem_client_error *reterr)
{
    enum idem_client_err err = file_create(path, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    journal->path = realpath(path, NULL);
    if (journal->path == NULL || stat(journal->path, &journal->file) != 0) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                "the journal cannot be opened: %s (%s)", strerror(errno), path);
    }
    err = privacy_check(journal->path, &journal->file, reterr);
    if (err == IDEM_CLIENT_OK) {
        err = companions_check(journal->path, reterr);
    }
    bool is_new = journal->file.st_size == 0; /* Or another process makes it right now. */
    return err == IDEM_CLIENT_OK && !is_new ? header_check(journal->path, reterr) : err;
}

/* One byte of the lock file: F_WRLCK or F_UNLCK. False: errno. */
static bool byte_set(const struct idem_client_journal *journal, short type, int64_t offset)
{
    struct flock lock = {
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = offset,
        .l_len = 1,
    };
    int rc;
    do {
        rc = fcntl(journal->lock_fd, F_OFD_SETLK, &lock);
    } while (rc != 0 && errno == EINTR);
    return rc == 0;
}

static bool errno_is_held(void)
{
    return errno == EAGAIN || errno == EACCES;
}

/* Waits as long as SQLite would; an opening takes milliseconds. */
static enum idem_client_err opening_wait(struct idem_client_journal *journal,
                                         struct idem_client_error *reterr)
{
    const struct timespec pause = { .tv_nsec = WAIT_MS * 1000000L };
    bool held = true;
    bool taken = false;
    for (int left_ms = IDEM_CLIENT_JOURNAL_BUSY_MS; !taken && held && left_ms > 0;
         left_ms -= WAIT_MS) {
        taken = byte_set(journal, F_WRLCK, OPENING_OFFSET);
        held = !taken && errno_is_held();
        if (held) {
            (void)nanosleep(&pause, NULL); /* Shorter does not matter. */
        }
    }
    if (taken) {
        return IDEM_CLIENT_OK;
    }
    return held ? idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                   "another process has been opening the journal for %d "
                                   "seconds (%s)",
                                   IDEM_CLIENT_JOURNAL_BUSY_MS / 1000, journal->path)
                : idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                   "the journal cannot be locked: %s (%s)", strerror(errno),
                                   journal->path);
}

enum idem_client_err idem_client_journal_file_lock(struct idem_client_journal *journal,
                                                   struct idem_client_error *reterr)
{
    char *name = path_make(journal->path, "-lock");
    if (name == NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory");
    }
    journal->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, OWNER);
    bool usable = journal->lock_fd >= 0 && fchmod(journal->lock_fd, OWNER) == 0 &&
                  fstat(journal->lock_fd, &journal->lock_file) == 0;
    enum idem_client_err err =
        usable ? opening_wait(journal, reterr)
               : idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                  "the journal cannot be locked: %s (%s)", strerror(errno), name);
    free(name);
    return err;
}

void idem_client_journal_file_unlock(struct idem_client_journal *journal)
{
    /* One whole byte is given back as it was taken: there is nothing that could fail. */
    (void)byte_set(journal, F_UNLCK, OPENING_OFFSET);
}

static bool is_same_file(const char *path, const struct stat *opened)
{
    struct stat info;
    return stat(path, &info) == 0 && info.st_dev == opened->st_dev && info.st_ino == opened->st_ino;
}

enum idem_client_err idem_client_journal_in_place(struct idem_client_journal *journal,
                                                  struct idem_client_error *reterr)
{
    char *name = path_make(journal->path, "-lock");
    if (name == NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory");
    }
    bool in_place =
        is_same_file(journal->path, &journal->file) && is_same_file(name, &journal->lock_file);
    free(name);
    return in_place ? IDEM_CLIENT_OK
                    : idem_client_fail(
                          reterr, IDEM_CLIENT_E_JOURNAL,
                          "the journal or its lock file was removed or replaced while it was open; "
                          "open it again (%s)",
                          journal->path);
}

/* The name's byte. Two names of one byte (once in 2^62) would be run one after the other. */
static int64_t name_offset(struct idem_client_journal *journal, struct idem_str name)
{
    struct idem_digest digest = idem_digest_sha256(journal->digester, name);
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(bits); i++) {
        bits = bits << 8 | digest.bytes[i];
    }
    return (int64_t)(bits >> (64 - NAME_BITS));
}

enum idem_client_err idem_client_journal_lock(struct idem_client_journal *journal,
                                              struct idem_str name,
                                              struct idem_client_error *reterr)
{
    if (byte_set(journal, F_WRLCK, name_offset(journal, name))) {
        return IDEM_CLIENT_OK;
    }
    return errno_is_held()
               ? idem_client_fail(reterr, IDEM_CLIENT_E_BUSY, "%.*s is being run by another client",
                                  (int)name.len, name.data)
               : idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                  "the journal cannot be locked: %s (%s)", strerror(errno),
                                  journal->path);
}

void idem_client_journal_unlock(struct idem_client_journal *journal, struct idem_str name)
{
    /* One whole byte is given back as it was taken: there is nothing that could fail. */
    (void)byte_set(journal, F_UNLCK, name_offset(journal, name));
}
