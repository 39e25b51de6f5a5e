/*
 * place.h - where a run works, and to whom it says that something is wrong.
 */
#ifndef IDEM_TEST_TORTURE_PLACE_H
#define IDEM_TEST_TORTURE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* A directory of this process's own, and the store in it. */
extern char torture_directory[64];
extern char torture_path[96];

/* Something is wrong with this run. Each is told, and the run counts once. */
void torture_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Names lie in the directory; what is not there is copied as nothing. */
void torture_file_copy(const char *from, const char *to);
void torture_file_remove(const char *name);

/*
 * How many flushes of a file have failed in this run. What they were for must not be told to be
 * durable, although the system's cache still shows it.
 */
uint64_t torture_flushes_failed(void);

/* What fails in this run is the taking back of names. */
bool torture_names_fail(void);

#endif /* IDEM_TEST_TORTURE_PLACE_H */
