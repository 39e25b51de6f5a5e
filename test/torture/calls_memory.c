/*
 * Memory that may not be given. The linker sends idem's own calls here (--wrap, meson.build), and
 * SQLite and libcrypto are told before they start. What idem and SQLite hold is counted: after
 * everything was closed it must be what it was before.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "torture/calls.h"

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t max);
char *__real_realpath(const char *path, char *ret_path);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t max);
char *__wrap_realpath(const char *path, char *ret_path);

static _Atomic int64_t held;        /* Pieces. */
static sqlite3_mem_methods beneath; /* SQLite's own; constant once set. */

int64_t torture_memory_held(void)
{
    return atomic_load(&held);
}

static void *counted(void *memory)
{
    if (memory != NULL) {
        (void)atomic_fetch_add(&held, 1);
    }
    return memory;
}

static bool refused(enum torture_call call)
{
    bool fires = torture_fires(call) != 0;
    if (fires) {
        errno = ENOMEM;
    }
    return fires;
}

void *__wrap_malloc(size_t size)
{
    return refused(TORTURE_CALL_MALLOC) ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refused(TORTURE_CALL_MALLOC) ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    if (refused(TORTURE_CALL_MALLOC)) {
        return NULL;
    }
    return memory == NULL ? counted(__real_malloc(size)) : __real_realloc(memory, size);
}

void __wrap_free(void *memory)
{
    if (memory != NULL) {
        (void)atomic_fetch_sub(&held, 1);
    }
    __real_free(memory);
}

char *__wrap_strdup(const char *text)
{
    return refused(TORTURE_CALL_MALLOC) ? NULL : counted(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t max)
{
    return refused(TORTURE_CALL_MALLOC) ? NULL : counted(__real_strndup(text, max));
}

char *__wrap_realpath(const char *path, char *ret_path)
{
    if (ret_path != NULL) {
        return __real_realpath(path, ret_path);
    }
    return refused(TORTURE_CALL_MALLOC) ? NULL : counted(__real_realpath(path, NULL));
}

static void *pages_malloc(int size)
{
    return refused(TORTURE_CALL_PAGES) ? NULL : counted(beneath.xMalloc(size));
}

static void pages_free(void *memory)
{
    (void)atomic_fetch_sub(&held, 1); /* Never NULL: SQLite says so. */
    beneath.xFree(memory);
}

static void *pages_realloc(void *memory, int size)
{
    return refused(TORTURE_CALL_PAGES) ? NULL : beneath.xRealloc(memory, size);
}

/* What libcrypto keeps for itself is kept for ever: not counted. */
static void *crypto_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return refused(TORTURE_CALL_MALLOC) ? NULL : __real_malloc(size);
}

static void *crypto_realloc(void *memory, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return refused(TORTURE_CALL_MALLOC) ? NULL : __real_realloc(memory, size);
}

static void crypto_free(void *memory, const char *file, int line)
{
    (void)file;
    (void)line;
    __real_free(memory);
}

void torture_memory_setup(void)
{
    int rc = CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free);
    IDEM_ASSERT(rc == 1);
    rc = sqlite3_config(SQLITE_CONFIG_GETMALLOC, &beneath);
    IDEM_ASSERT(rc == SQLITE_OK);
    sqlite3_mem_methods ours = beneath;
    ours.xMalloc = pages_malloc;
    ours.xFree = pages_free;
    ours.xRealloc = pages_realloc;
    rc = sqlite3_config(SQLITE_CONFIG_MALLOC, &ours);
    IDEM_ASSERT(rc == SQLITE_OK);
    rc = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* As idem does, which comes too late here. */
    IDEM_ASSERT(rc == SQLITE_OK);
}
// NOLINTEND(readability-identifier-naming)
