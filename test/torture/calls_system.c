/*
 * Calls of the system that may fail. A definition in a program, or in a library that is loaded
 * first, stands before the one of the C library, for idem and for every library that it uses.
 *
 * What is not to fail goes to the kernel itself, so that nothing here depends on who else stands in
 * the way. A file fails as files do and a socket as sockets do; a pipe or an event counter, which
 * no disk and no network is behind, never.
 */
/* Both names of each call are wanted, not one for the other, and none that only checks. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "torture/fault.h"

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): ours say more.
#define SHOWN __attribute__((visibility("default")))

/* The call that this descriptor takes part in. */
static enum torture_call call_on(int fd, enum torture_call file, enum torture_call wire)
{
    int kept = errno;
    struct stat info;
    bool known = syscall(SYS_newfstatat, fd, "", &info, AT_EMPTY_PATH) == 0;
    errno = kept;
    if (!known) {
        return TORTURE_CALL_NONE;
    }
    if (S_ISDIR(info.st_mode) && file == TORTURE_CALL_FSYNC) {
        return TORTURE_CALL_FOLDER;
    }
    return S_ISREG(info.st_mode) ? file : S_ISSOCK(info.st_mode) ? wire : TORTURE_CALL_NONE;
}

/* Counts; true: it has failed. `size` becomes less where only a part is to be done. */
static bool stopped(enum torture_call call, size_t *size)
{
    int code = call == TORTURE_CALL_NONE ? 0 : torture_fires(call);
    if (code == TORTURE_SHORT) {
        *size = torture_half(*size);
        return false;
    }
    if (code != 0) {
        errno = code;
    }
    return code != 0;
}

static bool failed(enum torture_call call)
{
    size_t size = 0;
    return stopped(call, &size);
}

static ssize_t bytes_move(long number, int fd, const void *bytes, size_t size)
{
    bool reads = number == SYS_read || number == SYS_pread64;
    enum torture_call call = reads ? call_on(fd, TORTURE_CALL_READ, TORTURE_CALL_RECV)
                                   : call_on(fd, TORTURE_CALL_WRITE, TORTURE_CALL_SEND);
    return stopped(call, &size) ? -1 : syscall(number, fd, bytes, size);
}

static ssize_t bytes_move_at(long number, int fd, const void *bytes, size_t size, off_t offset)
{
    bool reads = number == SYS_pread64;
    enum torture_call call =
        call_on(fd, reads ? TORTURE_CALL_READ : TORTURE_CALL_WRITE, TORTURE_CALL_NONE);
    return stopped(call, &size) ? -1 : syscall(number, fd, bytes, size, offset);
}

SHOWN ssize_t read(int fd, void *ret_bytes, size_t size)
{
    return bytes_move(SYS_read, fd, ret_bytes, size);
}

SHOWN ssize_t write(int fd, const void *bytes, size_t size)
{
    return bytes_move(SYS_write, fd, bytes, size);
}

SHOWN ssize_t pread(int fd, void *ret_bytes, size_t size, off_t offset)
{
    return bytes_move_at(SYS_pread64, fd, ret_bytes, size, offset);
}

SHOWN ssize_t pread64(int fd, void *ret_bytes, size_t size, off64_t offset)
{
    return bytes_move_at(SYS_pread64, fd, ret_bytes, size, offset);
}

SHOWN ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return bytes_move_at(SYS_pwrite64, fd, bytes, size, offset);
}

SHOWN ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
    return bytes_move_at(SYS_pwrite64, fd, bytes, size, offset);
}

/* A short one does its first part only. */
SHOWN ssize_t writev(int fd, const struct iovec *parts, int count)
{
    enum torture_call call = call_on(fd, TORTURE_CALL_WRITE, TORTURE_CALL_SEND);
    size_t done = (size_t)count;
    return stopped(call, &done) ? -1 : syscall(SYS_writev, fd, parts, done);
}

static int flush(long number, int fd)
{
    enum torture_call call = call_on(fd, TORTURE_CALL_FSYNC, TORTURE_CALL_NONE);
    return call != TORTURE_CALL_NONE && failed(call) ? -1 : (int)syscall(number, fd);
}

SHOWN int fsync(int fd)
{
    return flush(SYS_fsync, fd);
}

SHOWN int fdatasync(int fd)
{
    return flush(SYS_fdatasync, fd);
}

SHOWN int ftruncate(int fd, off_t size)
{
    return failed(TORTURE_CALL_TRUNCATE) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

SHOWN int ftruncate64(int fd, off64_t size)
{
    return ftruncate(fd, size);
}

static int file_open(const char *path, int flags, va_list arguments)
{
    unsigned mode = 0;
    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
        mode = va_arg(arguments, unsigned);
    }
    return failed(TORTURE_CALL_OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

SHOWN int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int fd = file_open(path, flags, arguments);
    va_end(arguments);
    return fd;
}

SHOWN int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int fd = file_open(path, flags, arguments);
    va_end(arguments);
    return fd;
}

SHOWN int unlink(const char *path)
{
    return failed(TORTURE_CALL_NAME) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

SHOWN int link(const char *from, const char *to)
{
    return failed(TORTURE_CALL_NAME) ? -1
                                     : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

SHOWN int rename(const char *from, const char *to)
{
    return failed(TORTURE_CALL_NAME) ? -1
                                     : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

SHOWN int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    return failed(TORTURE_CALL_NAME) ? -1
                                     : (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
}

// NOLINTBEGIN(readability-function-size): the system's six parameters.
/* Of files: what is mapped without one is memory, and another kind of call. */
SHOWN void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    if (fd >= 0 && failed(TORTURE_CALL_MAP)) {
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

/* ---- the wire: with _GNU_SOURCE an address is a union of pointers ---- */

SHOWN ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    return stopped(TORTURE_CALL_SEND, &size) ? -1
                                             : syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

SHOWN ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return failed(TORTURE_CALL_SEND) ? -1 : syscall(SYS_sendmsg, fd, message, flags);
}

SHOWN ssize_t recv(int fd, void *ret_bytes, size_t size, int flags)
{
    return stopped(TORTURE_CALL_RECV, &size)
               ? -1
               : syscall(SYS_recvfrom, fd, ret_bytes, size, flags, NULL, NULL);
}

SHOWN ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return failed(TORTURE_CALL_RECV) ? -1 : syscall(SYS_recvmsg, fd, message, flags);
}

SHOWN int accept4(int fd, __SOCKADDR_ARG ret_address, socklen_t *size, int flags)
{
    return failed(TORTURE_CALL_ACCEPT)
               ? -1
               : (int)syscall(SYS_accept4, fd, ret_address.__sockaddr__, size, flags);
}

SHOWN int accept(int fd, __SOCKADDR_ARG ret_address, socklen_t *size)
{
    return accept4(fd, ret_address, size, 0);
}

SHOWN int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t size)
{
    return failed(TORTURE_CALL_CONNECT) ? -1
                                        : (int)syscall(SYS_connect, fd, address.__sockaddr__, size);
}

SHOWN int socket(int domain, int type, int protocol)
{
    return failed(TORTURE_CALL_SOCKET) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}
// NOLINTEND(readability-function-size)
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
