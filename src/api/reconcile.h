/*
 * reconcile.h - what reconciliation needs of the edge, at creation: one page of a provider's
 * listing, and one request's worth of evidence on its way into the store.
 */
#ifndef IDEM_API_RECONCILE_H
#define IDEM_API_RECONCILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/event.h"
#include "engine/engine.h"
#include "provider/port.h"

struct idem_admin_visit;

#define IDEM_EVIDENCE_MAX        64    /* Effects of one request. */
#define IDEM_EVIDENCE_MEMORY_MAX 16384 /* Text of theirs that had escapes in it. */

/* What a page of reconciliation found of an effect. */
enum idem_found {
    IDEM_FOUND_NONE = 0,
    IDEM_FOUND_LISTED,   /* The provider's side has it as done. */
    IDEM_FOUND_AGAIN,    /* And names it once more. */
    IDEM_FOUND_MISSING,  /* It should be there and is not. */
    IDEM_FOUND_FAILED,   /* The provider's side says that it did not happen. */
    IDEM_FOUND_REVERSED, /* It had happened, and was taken back. */
    IDEM_FOUND_COUNT
};

/* One effect on its way. */
struct idem_evidence_item {
    struct idem_task task;
    enum idem_found found;
    enum idem_case_kind open; /* Its newest open case, once it was looked for; NONE: none. */
    bool decided;             /* A person has decided a case of what was found. */
};

/* One request's. */
struct idem_evidence_batch {
    struct idem_admin_visit *visit; /* Whose it is; NULL: nobody's. */
    struct idem_evidence_item items[IDEM_EVIDENCE_MAX];
    size_t count;
    size_t running; /* Tasks that are in the engine. */
    size_t looked;  /* Items whose cases were looked for. */
    struct idem_buf kept;
    char memory[IDEM_EVIDENCE_MEMORY_MAX];
};

/* One page of a listing. */
struct idem_listing_page {
    struct idem_admin_visit *visit; /* Who waits for it; NULL: nobody. */
    struct idem_listing listing;
};

#endif /* IDEM_API_RECONCILE_H */
