/*
 * SQLite writes each frame of its log by two calls of the system, a header of 24 bytes and a page,
 * and a commit of a batch has a hundred frames: the calls cost as much as all else that writes it.
 * This VFS stands before the system's own and, for the log alone, gathers what is written at
 * consecutive places, until it must be seen.
 *
 * Why nothing changes but the number of calls:
 *
 *   - In WAL mode with synchronous = FULL each commit ends with xSync on the log, and only then
 *     does SQLite publish its frames in the shared index. xSync hands on first. So whatever another
 *     connection may look for is in the file, and a commit that was answered is on the disk.
 *   - This connection's own reads, its question for the size and a cut of the file hand on first.
 *     So does a write at any other place: writes reach the file in SQLite's order.
 *   - A write that fails is told by the call that hands it on, which is then a part of the same
 *     COMMIT, as it would have been; what was gathered is dropped with it.
 *   - A process that dies takes what it gathered along: frames of a commit that nobody was told of.
 *
 * Nothing may stay behind between transactions: handed on later, it could fall on frames that
 * somebody else has committed since. Writing before COMMIT (SQLite "spills" a cache that is full)
 * is therefore off for whoever writes through here (cache_spill, file.c), and what a failed
 * COMMIT has left is dropped when the connection closes.
 */
#include "store/sqlite/log_file.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* SQLite passes at most 17 bits of a size on to the system (os_unix.c, seekAndWriteFd). */
#define GATHERED_MAX (128 * 1024 - 1)

/* The system's own file follows it in memory. */
struct log_file {
    sqlite3_file base;
    sqlite3_int64 offset; /* Where what was gathered belongs, */
    int len;              /* how much it is, */
    char *bytes;          /* and it. NULL until something is written: readers never do. */
};

/* SQLite's list of VFS is the process's, and so is this entry of it; constant once registered. */
static sqlite3_vfs log_vfs;
static sqlite3_vfs *system_vfs;

static sqlite3_file *below(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((struct log_file *)(void *)file + 1);
}

static int hand_on(sqlite3_file *file)
{
    struct log_file *log = (struct log_file *)(void *)file;
    int len = log->len;
    log->len = 0;
    return len == 0 ? SQLITE_OK
                    : below(file)->pMethods->xWrite(below(file), log->bytes, len, log->offset);
}

static int log_close(sqlite3_file *file)
{
    struct log_file *log = (struct log_file *)(void *)file;
    free(log->bytes);
    log->bytes = NULL;
    return below(file)->pMethods->xClose(below(file));
}

static int log_read(sqlite3_file *file, void *ret_bytes, int size, sqlite3_int64 offset)
{
    int rc = hand_on(file);
    return rc == SQLITE_OK
               ? below(file)->pMethods->xRead(below(file), ret_bytes, size, offset)
               : SQLITE_IOERR_READ; /* Which always ends the transaction; FULL may not. */
}

static int log_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    struct log_file *log = (struct log_file *)(void *)file;
    int rc = SQLITE_OK;
    if (log->offset + log->len != offset || size > GATHERED_MAX - log->len) {
        rc = hand_on(file);
    }
    if (log->bytes == NULL) {
        log->bytes = malloc(GATHERED_MAX);
    }
    if (rc != SQLITE_OK || log->bytes == NULL || size > GATHERED_MAX) {
        return rc == SQLITE_OK ? below(file)->pMethods->xWrite(below(file), bytes, size, offset)
                               : rc;
    }
    if (log->len == 0) {
        log->offset = offset;
    }
    memcpy(log->bytes + log->len, bytes, (size_t)size);
    log->len += size;
    return SQLITE_OK;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = hand_on(file);
    return rc == SQLITE_OK ? below(file)->pMethods->xTruncate(below(file), size) : rc;
}

static int log_sync(sqlite3_file *file, int flags)
{
    int rc = hand_on(file);
    return rc == SQLITE_OK ? below(file)->pMethods->xSync(below(file), flags) : rc;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    int rc = hand_on(file);
    return rc == SQLITE_OK ? below(file)->pMethods->xFileSize(below(file), ret_size) : rc;
}

static int log_lock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xLock(below(file), level);
}

static int log_unlock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xUnlock(below(file), level);
}

static int log_is_reserved(sqlite3_file *file, int *ret_reserved)
{
    return below(file)->pMethods->xCheckReservedLock(below(file), ret_reserved);
}

static int log_control(sqlite3_file *file, int operation, void *argument)
{
    return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

static int log_sector_size(sqlite3_file *file)
{
    return below(file)->pMethods->xSectorSize(below(file));
}

static int log_device(sqlite3_file *file)
{
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

/* Version 1: shared memory and mapping are the database file's. */
static const sqlite3_io_methods log_methods = {
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read,
    .xWrite = log_write,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_size,
    .xLock = log_lock,
    .xUnlock = log_unlock,
    .xCheckReservedLock = log_is_reserved,
    .xFileControl = log_control,
    .xSectorSize = log_sector_size,
    .xDeviceCharacteristics = log_device,
};

static int log_open(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    (void)vfs; /* There is one. */
    if ((flags & SQLITE_OPEN_WAL) == 0) {
        return system_vfs->xOpen(system_vfs, name, file, flags, ret_flags);
    }
    struct log_file *log = (struct log_file *)(void *)file;
    *log = (struct log_file){ .len = 0 };
    int rc = system_vfs->xOpen(system_vfs, name, below(file), flags, ret_flags);
    if (rc == SQLITE_OK) {
        log->base.pMethods = &log_methods; /* Without methods SQLite does not close it. */
    }
    return rc;
}

int idem_sqlite_log_file_register(void)
{
    system_vfs = sqlite3_vfs_find(NULL);
    if (system_vfs == NULL) {
        return SQLITE_ERROR;
    }
    log_vfs = *system_vfs; /* All but the log is the system's, and its own data stays with it. */
    log_vfs.zName = IDEM_SQLITE_LOG_FILE_VFS;
    log_vfs.szOsFile = system_vfs->szOsFile + (int)sizeof(struct log_file);
    log_vfs.xOpen = log_open;
    return sqlite3_vfs_register(&log_vfs, 0);
}
