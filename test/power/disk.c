/*
 * The VFS behind disk.h, and the two system calls that a VFS does not see.
 *
 * A file of the traced directory is wrapped; any other is the system's alone, so a store that is
 * opened on an image runs on SQLite's own VFS. What was written before a flush began is durable
 * once it has ended, in whichever thread either happens. Names become durable by a flush of the
 * directory, whoever does it: SQLite after it has made a log (os_unix.c), or the store (lock.c).
 *
 * A flush that fails leaves its data to be read and never written: that is what Linux does
 * ("fsyncgate"). Only a new write of the same bytes can still bring them to the disk. Each
 * descriptor that was open then is told once, at its next flush (fsync(2)); one that is opened
 * later never learns of it.
 *
 * The shared index (-shm) is not traced: SQLite makes it anew at every opening, and image.c puts
 * garbage there.
 */
#include "power/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/test.h"

/* The system's own file follows it in memory. */
struct disk_file {
    sqlite3_file base;
    size_t inode;
    unsigned failures_told; /* Of flushes of this file, whoever asked for them. */
};

/* SQLite's list of VFS is the process's, and so is the one trace that is being written. */
static struct {
    pthread_mutex_t mutex;
    sqlite3_vfs *system;
    sqlite3_vfs vfs;
    struct disk_trace *trace;
    struct stat directory;

    enum disk_fault fault;
    unsigned fault_in; /* So many operations of its kind until it comes. */
    bool fault_fired;

    pthread_t between_thread;
    unsigned between_in; /* 0: not set. */
    bool between_reached;
    void (*between_act)(void *context);
    void *between_context;
} disk = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void must(int rc)
{
    if (rc != 0) {
        abort();
    }
}

static void lock(void)
{
    must(pthread_mutex_lock(&disk.mutex));
}

static void unlock(void)
{
    must(pthread_mutex_unlock(&disk.mutex));
}

/* Locked. */
static size_t op_add(struct disk_op op)
{
    struct disk_trace *trace = disk.trace;
    if (trace == NULL) {
        return 0;
    }
    if (trace->op_count == trace->op_max) {
        trace->op_max = trace->op_max == 0 ? 1024 : 2 * trace->op_max;
        trace->ops = realloc(trace->ops, trace->op_max * sizeof(*trace->ops));
        must(trace->ops == NULL);
    }
    op.durable_at = SIZE_MAX;
    trace->ops[trace->op_count] = op;
    trace->op_count += 1;
    return trace->op_count - 1;
}

static void name_copy(char *to, const char *name)
{
    size_t len = strlen(name);
    must(len >= DISK_NAME_MAX);
    memcpy(to, name, len + 1);
}

static size_t inode_add(const char *name)
{
    struct disk_trace *trace = disk.trace;
    must(trace->inode_count == DISK_INODES_MAX);
    struct disk_inode *inode = &trace->inodes[trace->inode_count];
    *inode = (struct disk_inode){ .pending_from = trace->op_count };
    name_copy(inode->name, name);
    name_copy(inode->first_name, name);
    trace->inode_count += 1;
    return trace->inode_count - 1;
}

/* SIZE_MAX: nothing that is known has this name now. */
static size_t inode_find(const char *name)
{
    for (size_t i = 0; i < disk.trace->inode_count; i++) {
        if (strcmp(disk.trace->inodes[i].name, name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Locked. `inode` gets a name, or loses it, and so does whoever had it. */
static void name_op_add(enum disk_op_kind kind, size_t inode, const char *name)
{
    struct disk_op op = { .kind = kind, .inode = inode };
    size_t other = inode_find(name);
    name_copy(op.name, name);
    if (other != SIZE_MAX) {
        disk.trace->inodes[other].name[0] = '\0';
    }
    if (kind != DISK_REMOVE) {
        name_copy(disk.trace->inodes[inode].name, name);
    }
    (void)op_add(op);
}

/* The name inside the traced directory; NULL: it is none of it, or of no interest. */
static const char *name_of(const char *path)
{
    if (disk.trace == NULL || path == NULL) {
        return NULL;
    }
    size_t len = strlen(disk.trace->directory);
    if (strncmp(path, disk.trace->directory, len) != 0 || path[len] != '/') {
        return NULL;
    }
    return path + len + 1;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Locked. Calls out unlocked: the writer may wait there for another thread that writes too. */
static void between_meet(void)
{
    if (disk.between_in == 0 || pthread_equal(pthread_self(), disk.between_thread) == 0) {
        return;
    }
    disk.between_in -= 1;
    if (disk.between_in > 0) {
        return;
    }
    disk.between_reached = true;
    void (*act)(void *context) = disk.between_act;
    void *context = disk.between_context;
    unlock();
    act(context);
    lock();
}

/* Locked. */
static bool fault_comes(enum disk_fault one, enum disk_fault other)
{
    if (disk.fault != one && disk.fault != other) {
        return false;
    }
    if (disk.fault_in > 1) {
        disk.fault_in -= 1;
        return false;
    }
    disk.fault_fired = true;
    return true;
}

static struct disk_file *of(sqlite3_file *file)
{
    return (struct disk_file *)(void *)file;
}

static sqlite3_file *below(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)(of(file) + 1);
}

static int disk_close(sqlite3_file *file)
{
    return below(file)->pMethods->xClose(below(file));
}

static int disk_read(sqlite3_file *file, void *ret_bytes, int size, sqlite3_int64 offset)
{
    return below(file)->pMethods->xRead(below(file), ret_bytes, size, offset);
}

/* Locked: so the trace has the order in which the file was written. */
static int write_traced(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    struct disk_op op = {
        .kind = DISK_WRITE,
        .inode = of(file)->inode,
        .offset = (uint64_t)offset,
        .size = (size_t)size,
    };
    if (size == 0) {
        return SQLITE_OK;
    }
    int rc = below(file)->pMethods->xWrite(below(file), bytes, size, offset);
    if (rc == SQLITE_OK && disk.trace != NULL) {
        op.bytes = malloc(op.size);
        must(op.bytes == NULL);
        memcpy(op.bytes, bytes, op.size);
        (void)op_add(op);
    }
    return rc;
}

/* Locked. A full disk takes half of the first write that fails, and nothing of those after it. */
static int write_failed(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    if (disk.fault == DISK_FAULT_WRITE) {
        disk.fault = DISK_FAULT_NONE;
        return SQLITE_IOERR_WRITE;
    }
    int rc = disk.fault_in == 1 ? write_traced(file, bytes, size / 2, offset) : SQLITE_OK;
    disk.fault_in = 0;
    return rc == SQLITE_OK ? SQLITE_FULL : rc;
}

static int disk_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    lock();
    between_meet();
    bool fails = fault_comes(DISK_FAULT_FULL, DISK_FAULT_WRITE);
    int rc =
        fails ? write_failed(file, bytes, size, offset) : write_traced(file, bytes, size, offset);
    unlock();
    return rc;
}

static int disk_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    lock();
    between_meet();
    int rc = below(file)->pMethods->xTruncate(below(file), size);
    if (rc == SQLITE_OK) {
        (void)op_add((struct disk_op){
            .kind = DISK_CUT,
            .inode = of(file)->inode,
            .offset = (uint64_t)size,
        });
    }
    unlock();
    return rc;
}

static bool op_is_content_of(const struct disk_op *op, size_t inode)
{
    return (op->kind == DISK_WRITE || op->kind == DISK_CUT) && op->inode == inode;
}

/* Locked. The operations on a file before `until` are durable at `at`, or forgotten. */
static void content_settle(size_t inode, size_t until, size_t at, bool forgotten)
{
    struct disk_trace *trace = disk.trace;
    for (size_t i = trace->inodes[inode].pending_from; i < until; i++) {
        struct disk_op *op = &trace->ops[i];
        if (!op_is_content_of(op, inode) || op->forgotten || op->durable_at != SIZE_MAX) {
            continue;
        }
        op->forgotten = forgotten;
        op->durable_at = forgotten ? SIZE_MAX : at;
    }
    trace->inodes[inode].pending_from = until;
}

/* Locked. By a fault that comes now, or one that somebody else was told of. */
static bool flush_fails(struct disk_file *file)
{
    if (disk.trace == NULL) {
        return false;
    }
    struct disk_inode *inode = &disk.trace->inodes[file->inode];
    if (fault_comes(DISK_FAULT_FLUSH, DISK_FAULT_FLUSH_ONCE)) {
        disk.fault = disk.fault == DISK_FAULT_FLUSH_ONCE ? DISK_FAULT_NONE : disk.fault;
        inode->failures += 1;
    }
    bool fails = file->failures_told != inode->failures;
    file->failures_told = inode->failures;
    return fails;
}

static int disk_sync(sqlite3_file *file, int flags)
{
    lock();
    between_meet();
    size_t until = disk.trace == NULL ? 0 : disk.trace->op_count;
    bool fails = flush_fails(of(file));
    unlock();
    int rc = fails ? SQLITE_IOERR_FSYNC : below(file)->pMethods->xSync(below(file), flags);
    lock();
    if (disk.trace != NULL) {
        size_t at = op_add((struct disk_op){
            .kind = rc == SQLITE_OK ? DISK_FLUSH : DISK_FLUSH_FAILED,
            .inode = of(file)->inode,
        });
        content_settle(of(file)->inode, until, at, rc != SQLITE_OK);
    }
    unlock();
    return rc;
}

static int disk_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    return below(file)->pMethods->xFileSize(below(file), ret_size);
}

static int disk_lock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xLock(below(file), level);
}

static int disk_unlock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xUnlock(below(file), level);
}

static int disk_is_reserved(sqlite3_file *file, int *ret_reserved)
{
    return below(file)->pMethods->xCheckReservedLock(below(file), ret_reserved);
}

static int disk_control(sqlite3_file *file, int operation, void *argument)
{
    return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

static int disk_sector_size(sqlite3_file *file)
{
    return below(file)->pMethods->xSectorSize(below(file));
}

static int disk_device(sqlite3_file *file)
{
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int disk_shm_map(
    sqlite3_file *file, int region, int size, int extend, void volatile **ret_memory)
{
    return below(file)->pMethods->xShmMap(below(file), region, size, extend, ret_memory);
}

static int disk_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}

static void disk_shm_barrier(sqlite3_file *file)
{
    below(file)->pMethods->xShmBarrier(below(file));
}

static int disk_shm_unmap(sqlite3_file *file, int remove)
{
    return below(file)->pMethods->xShmUnmap(below(file), remove);
}

/* Version 2: with a shared index, without mapping of the file itself, which nobody asks for. */
static const sqlite3_io_methods disk_methods = {
    .iVersion = 2,
    .xClose = disk_close,
    .xRead = disk_read,
    .xWrite = disk_write,
    .xTruncate = disk_truncate,
    .xSync = disk_sync,
    .xFileSize = disk_size,
    .xLock = disk_lock,
    .xUnlock = disk_unlock,
    .xCheckReservedLock = disk_is_reserved,
    .xFileControl = disk_control,
    .xSectorSize = disk_sector_size,
    .xDeviceCharacteristics = disk_device,
    .xShmMap = disk_shm_map,
    .xShmLock = disk_shm_lock,
    .xShmBarrier = disk_shm_barrier,
    .xShmUnmap = disk_shm_unmap,
};

/* Locked. The file that stands under this name now: `existed` before it was opened. */
static size_t inode_open(const char *name, bool existed)
{
    size_t inode = inode_find(name);
    if (inode == SIZE_MAX || !existed) {
        inode = inode_add(name);
        name_op_add(DISK_MAKE, inode, name);
    }
    disk.trace->inodes[inode].stranger = false;
    return inode;
}

static int disk_open(
    sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret_flags)
{
    (void)vfs; /* There is one. */
    lock();
    const char *name = name_of(path);
    unlock();
    if (name == NULL) {
        return disk.system->xOpen(disk.system, path, file, flags, ret_flags);
    }
    *of(file) = (struct disk_file){ .inode = SIZE_MAX };
    bool existed = is_there(path);
    int rc = disk.system->xOpen(disk.system, path, below(file), flags, ret_flags);
    if (rc == SQLITE_OK) {
        lock();
        of(file)->inode = inode_open(name, existed);
        of(file)->failures_told = disk.trace->inodes[of(file)->inode].failures;
        unlock();
        of(file)->base.pMethods = &disk_methods;
    }
    return rc;
}

static int disk_delete(sqlite3_vfs *vfs, const char *path, int sync_directory)
{
    (void)vfs; /* There is one. */
    lock();
    const char *name = name_of(path);
    size_t inode = name != NULL && is_there(path) ? inode_find(name) : SIZE_MAX;
    if (inode != SIZE_MAX) {
        name_op_add(DISK_REMOVE, inode, name);
    }
    unlock();
    return disk.system->xDelete(disk.system, path, sync_directory);
}

static void inode_load(struct disk_inode *inode, const char *path)
{
    struct stat info;
    FILE *stream = fopen(path, "rb");
    must(stream == NULL);
    must(fstat(fileno(stream), &info));
    inode->at_start = true;
    inode->size = (size_t)info.st_size;
    inode->bytes = malloc(inode->size + 1);
    must(inode->bytes == NULL);
    must(fread(inode->bytes, 1, inode->size, stream) != inode->size);
    must(fclose(stream));
}

/* The database file is made by lock.c, outside of any VFS, and flushed into its directory. */
static void stranger_note(void)
{
    char path[192];
    (void)snprintf(path, sizeof(path), "%s/store.db", disk.trace->directory);
    if (inode_find("store.db") == SIZE_MAX && is_there(path)) {
        (void)inode_open("store.db", false);
    }
}

static void names_flush(void)
{
    struct disk_trace *trace = disk.trace;
    stranger_note();
    size_t at = op_add((struct disk_op){ .kind = DISK_FLUSH_DIRECTORY });
    for (size_t i = trace->names_pending_from; i < at; i++) {
        struct disk_op *op = &trace->ops[i];
        if (op->kind == DISK_MAKE || op->kind == DISK_REMOVE || op->kind == DISK_RENAME) {
            op->durable_at = at;
        }
    }
    trace->names_pending_from = at;
}

/* Locked. A file that the store wrote by itself, as it is when it is flushed or renamed. */
static size_t stranger_add(const char *path, const char *name)
{
    struct disk_inode whole = { .size = 0 };
    inode_load(&whole, path);
    size_t inode = inode_add(name);
    disk.trace->inodes[inode].stranger = true;
    name_op_add(DISK_MAKE, inode, name);
    (void)op_add((struct disk_op){
        .kind = DISK_WRITE,
        .inode = inode,
        .size = whole.size,
        .bytes = whole.bytes,
    });
    return inode;
}

/* Locked. A file that no VFS has opened. False: the flush fails. */
static bool stranger_flush(int fd)
{
    char link[64];
    char path[192];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    path[len > 0 ? len : 0] = '\0';
    const char *name = name_of(path);
    size_t inode = name == NULL ? SIZE_MAX : inode_find(name);
    if (name == NULL || (inode != SIZE_MAX && !disk.trace->inodes[inode].stranger)) {
        return true; /* Somebody else's, or the VFS that has it has written it down. */
    }
    inode = stranger_add(path, name);
    bool fails = fault_comes(DISK_FAULT_FLUSH, DISK_FAULT_FLUSH_ONCE);
    if (fails && disk.fault == DISK_FAULT_FLUSH_ONCE) {
        disk.fault = DISK_FAULT_NONE;
    }
    size_t until = disk.trace->op_count;
    size_t at = op_add((struct disk_op){
        .kind = fails ? DISK_FLUSH_FAILED : DISK_FLUSH,
        .inode = inode,
    });
    content_settle(inode, until, at, fails);
    return !fails;
}

static int flush_seen(int fd)
{
    struct stat info;
    bool good = true;
    lock();
    if (disk.trace != NULL && fstat(fd, &info) == 0) {
        if (info.st_ino == disk.directory.st_ino && info.st_dev == disk.directory.st_dev) {
            names_flush();
        } else if (S_ISREG(info.st_mode)) {
            good = stranger_flush(fd);
        }
    }
    unlock();
    errno = good ? errno : EIO;
    return good ? 0 : -1;
}

/* Instead of the C library's, also for SQLite's shared library. */
__attribute__((visibility("default"))) int fsync(int fd)
{
    return flush_seen(fd);
}

__attribute__((visibility("default"))) int fdatasync(int fildes)
{
    return flush_seen(fildes);
}

__attribute__((visibility("default"))) int rename(const char *old, const char *new)
{
    lock();
    const char *name = name_of(old);
    if (name != NULL && is_there(old)) {
        size_t inode = inode_find(name);
        inode = inode == SIZE_MAX ? stranger_add(old, name) : inode;
        const char *new_name = name_of(new);
        must(new_name == NULL);
        name_op_add(DISK_RENAME, inode, new_name);
    }
    unlock();
    return renameat(AT_FDCWD, old, AT_FDCWD, new);
}

void disk_install(void)
{
    disk.system = sqlite3_vfs_find(NULL);
    must(disk.system == NULL);
    disk.vfs = *disk.system;
    disk.vfs.zName = "power";
    disk.vfs.szOsFile = disk.system->szOsFile + (int)sizeof(struct disk_file);
    disk.vfs.xOpen = disk_open;
    disk.vfs.xDelete = disk_delete;
    must(sqlite3_vfs_register(&disk.vfs, 1));
}

void disk_begin(struct disk_trace *trace, const char *directory)
{
    static const char *const names[] = { "store.db", "store.db-wal", "store.db-journal" };
    *trace = (struct disk_trace){ .op_count = 0 };
    (void)snprintf(trace->directory, sizeof(trace->directory), "%s", directory);
    lock();
    must(disk.trace != NULL);
    must(stat(directory, &disk.directory));
    disk.trace = trace;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[192];
        (void)snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        if (is_there(path)) {
            inode_load(&trace->inodes[inode_add(names[i])], path);
        }
    }
    unlock();
}

void disk_end(void)
{
    lock();
    disk.trace = NULL;
    unlock();
}

void disk_trace_deinit(struct disk_trace *trace)
{
    for (size_t i = 0; i < trace->op_count; i++) {
        free(trace->ops[i].bytes);
    }
    for (size_t i = 0; i < trace->inode_count; i++) {
        free(trace->inodes[i].bytes);
    }
    free(trace->ops);
    *trace = (struct disk_trace){ .op_count = 0 };
}

size_t disk_point(void)
{
    lock();
    size_t point = disk.trace == NULL ? 0 : disk.trace->op_count;
    unlock();
    return point;
}

void disk_fault_set(enum disk_fault fault, unsigned at)
{
    lock();
    disk.fault = fault;
    disk.fault_in = at;
    disk.fault_fired = false;
    unlock();
}

bool disk_fault_fired(void)
{
    lock();
    bool fired = disk.fault_fired;
    unlock();
    return fired;
}

void disk_between_set(pthread_t thread, unsigned at, void (*act)(void *context), void *context)
{
    lock();
    disk.between_thread = thread;
    disk.between_in = at;
    disk.between_act = act;
    disk.between_context = context;
    disk.between_reached = false;
    unlock();
}

void disk_between_clear(void)
{
    lock();
    disk.between_in = 0;
    unlock();
}

bool disk_between_reached(void)
{
    lock();
    bool reached = disk.between_reached;
    unlock();
    return reached;
}
