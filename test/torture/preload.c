/*
 * Level two: a library that is loaded before all others into `idem serve` or `idem send`.
 *
 * IDEM_TORTURE names the file with the state (fault.h), which whoever judges maps too: it arms and
 * disarms while the program runs, and reads what fired when it is dead. Memory is the C library's
 * own, also for every library that idem uses; what is freed goes back to it.
 *
 * Some libraries do not survive being refused memory. So a signal that ends the process writes down
 * in whose code it did: the first on the stack that is neither the C library nor this.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "torture/fault.h"

#define SHOWN __attribute__((visibility("default")))

// NOLINTBEGIN(readability-identifier-naming): the C library's names.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
// NOLINTEND(readability-identifier-naming)

static bool refused(void)
{
    bool fires = torture_fires(TORTURE_CALL_MALLOC) != 0;
    if (fires) {
        errno = ENOMEM;
    }
    return fires;
}

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): ours say more.
SHOWN void *malloc(size_t size)
{
    return refused() ? NULL : __libc_malloc(size);
}

SHOWN void *calloc(size_t count, size_t size)
{
    return refused() ? NULL : __libc_calloc(count, size);
}

SHOWN void *realloc(void *memory, size_t size)
{
    return refused() ? NULL : __libc_realloc(memory, size);
}

SHOWN void *memalign(size_t alignment, size_t size)
{
    return refused() ? NULL : __libc_memalign(alignment, size);
}

SHOWN void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

SHOWN int posix_memalign(void **ret_memory, size_t alignment, size_t size)
{
    void *memory = memalign(alignment, size);
    if (memory == NULL) {
        return ENOMEM;
    }
    *ret_memory = memory;
    return 0;
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)

#define FRAMES_MAX 64

static struct torture_state *blame; /* Where to write it. */

// NOLINTBEGIN(bugprone-signal-handler,cert-sig30-c): what may not be done in a handler is done by
// a process that is dead already.
static const char *file_of(void *address)
{
    Dl_info info;
    if (dladdr(address, &info) == 0 || info.dli_fname == NULL) {
        return NULL;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    return slash != NULL ? slash + 1 : info.dli_fname;
}

static void on_death(int number)
{
    void *frames[FRAMES_MAX];
    torture_disarm();
    int count = backtrace(frames, FRAMES_MAX);
    for (int i = 0; i < count && blame->blamed[0] == '\0'; i++) {
        const char *file = file_of(frames[i]);
        if (file != NULL && strncmp(file, "libc.so", 7) != 0 &&
            strncmp(file, "libtorture", 10) != 0) {
            strncpy(blame->blamed, file, sizeof(blame->blamed) - 1);
        }
    }
    (void)signal(number, SIG_DFL); /* These cannot fail for a signal that exists. */
    (void)raise(number);
}
// NOLINTEND(bugprone-signal-handler,cert-sig30-c)

__attribute__((constructor)) static void attach(void)
{
    void *first[1];
    const char *path = getenv("IDEM_TORTURE");
    int fd = path == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) {
        return; /* Nothing ever fires, which the one who judges sees. */
    }
    void *memory = (void *)syscall(SYS_mmap, NULL, sizeof(struct torture_state),
                                   PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
    (void)syscall(SYS_close, fd);
    if (memory != MAP_FAILED) {
        (void)backtrace(first, 1); /* It loads what it needs at its first call. */
        blame = memory;
        (void)signal(SIGSEGV, on_death);
        (void)signal(SIGABRT, on_death);
        torture_attach(memory);
    }
}
