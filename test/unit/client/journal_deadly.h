/*
 * journal_deadly.h - a process that dies by SIGKILL at one of SQLite's writes, through SQLite's own
 * table of system calls.
 */
#ifndef IDEM_TEST_UNIT_CLIENT_JOURNAL_DEADLY_H
#define IDEM_TEST_UNIT_CLIENT_JOURNAL_DEADLY_H

#include "unit/client/journal_scene.h"

static inline void die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;) {
        (void)pause();
    }
}

static int calls_left = -1; /* The writes and flushes before the one to die at; -1: live. */

static inline void call_count(void)
{
    if (calls_left == 0) {
        die();
    }
    calls_left -= calls_left > 0 ? 1 : 0;
}

static inline ssize_t deadly_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    if (calls_left == 0) {
        (void)!pwrite(fd, bytes, size / 2, offset); /* Half of it: nobody was told. */
    }
    call_count();
    return pwrite(fd, bytes, size, offset);
}

static inline int deadly_ftruncate(int fd, off_t size)
{
    call_count();
    return ftruncate(fd, size);
}

static inline void deadly_arm(int calls)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    CHILD_MUST(vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)deadly_pwrite) == SQLITE_OK);
    (void)vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)deadly_pwrite);
    CHILD_MUST(vfs->xSetSystemCall(vfs, "ftruncate", (sqlite3_syscall_ptr)deadly_ftruncate) ==
               SQLITE_OK);
    calls_left = calls;
}

#endif /* IDEM_TEST_UNIT_CLIENT_JOURNAL_DEADLY_H */
