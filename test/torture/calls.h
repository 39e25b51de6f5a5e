/*
 * calls.h - what of level one's calls must be set up, or is kept count of.
 */
#ifndef IDEM_TEST_TORTURE_CALLS_H
#define IDEM_TEST_TORTURE_CALLS_H

#include "torture/fault.h"

/* Once, before SQLite or libcrypto is first used. */
void torture_memory_setup(void);

/* Pieces of memory that idem and SQLite have and did not give back. */
int64_t torture_memory_held(void);

#endif /* IDEM_TEST_TORTURE_CALLS_H */
