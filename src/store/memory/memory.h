/*
 * memory.h - a store that forgets at exit: for tests and the simulator.
 *
 * A real backend with transactions, guards and incarnations, in one thread: submit runs the batch
 * at once and reap hands it back. Never for money.
 */
#ifndef IDEM_STORE_MEMORY_MEMORY_H
#define IDEM_STORE_MEMORY_MEMORY_H

#include "store/store.h"

/* Gives a store; destroy it with idem_store_destroy(). */
enum idem_err idem_memory_open(const struct idem_store_options *options,
                               struct idem_store **ret_store,
                               struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_STORE_MEMORY_MEMORY_H */
