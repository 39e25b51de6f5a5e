/*
 * live.h - the intents that this process has in hand: who waits for them, which flight acts, and
 * which wait for a place on the wire.
 *
 * An entry exists while one of these holds, and no longer. Fixed size, open
 * addressing.
 */
#ifndef IDEM_ENGINE_LIVE_H
#define IDEM_ENGINE_LIVE_H

#include <stddef.h>

#include "base/error.h"
#include "base/list.h"
#include "core/intent.h"

struct idem_live {
    struct idem_scope scope;
    struct idem_list waiters; /* Of struct idem_request.wait_node. */
    void *flight;             /* The flight that acts on it; NULL: none. */
    bool deferred;            /* Claimed; it waits for a place on the wire. */
    bool used;
};

struct idem_live_table;

/* Room for `entries_max` at once. */
enum idem_err idem_live_create(size_t entries_max,
                               struct idem_live_table **ret_table) IDEM_MUST_CHECK;
void idem_live_destroy(struct idem_live_table *table);

/* The entry of `scope`, or NULL. Valid until the next idem_live_drop(). */
struct idem_live *idem_live_find(struct idem_live_table *table, const struct idem_scope *scope);

/* The entry of `scope`, made if absent. The limits of the engine leave room for it. */
struct idem_live *idem_live_get(struct idem_live_table *table, const struct idem_scope *scope);

/* Forgets the entry if nobody waits, no flight acts and it waits for none. Others may move. */
void idem_live_drop(struct idem_live_table *table, const struct idem_scope *scope);

#endif /* IDEM_ENGINE_LIVE_H */
