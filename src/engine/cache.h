/*
 * cache.h - final answers in memory, so that a replay costs no look at the disk.
 *
 * Final answers never change (P4), so an entry is true as long as it is here; one that is forgotten
 * is dropped. The cache decides nothing: what it does not have, or cannot compare, is asked of the
 * store. Bounded: a fixed number of slots in sets of four, the least recently used of a set makes
 * room.
 *
 * The caller has authenticated and authorized; the scope is bound to the principal (P13).
 */
#ifndef IDEM_ENGINE_CACHE_H
#define IDEM_ENGINE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "core/outcome.h"

struct idem_cache;

enum idem_cache_verdict {
    IDEM_CACHE_MISS = 0, /* Ask the store. */
    IDEM_CACHE_REPLAY,   /* `ret_outcome` is the final answer. */
    IDEM_CACHE_REUSED,   /* The key belongs to another request. */
};

/* `slots_max` of zero gives a cache that never has anything. */
enum idem_err idem_cache_create(size_t slots_max, struct idem_cache **ret_cache) IDEM_MUST_CHECK;
void idem_cache_destroy(struct idem_cache *cache);

/* Keeps a final answer; ignores what is not final, has expired or is too large. */
void idem_cache_put(struct idem_cache *cache, const struct idem_outcome *outcome);

/* Forgets the answer of `scope`: it is no longer the store's either. */
void idem_cache_drop(struct idem_cache *cache, const struct idem_scope *scope);

enum idem_cache_verdict idem_cache_get(struct idem_cache *cache,
                                       const struct idem_command *command,
                                       int64_t now_us,
                                       struct idem_outcome *ret_outcome);

#endif /* IDEM_ENGINE_CACHE_H */
