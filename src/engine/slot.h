/*
 * slot.h - places on the wire: which request or due intent gets one now, and which waits for one.
 * Stays in this folder.
 */
#ifndef IDEM_ENGINE_SLOT_H
#define IDEM_ENGINE_SLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "core/intent.h"
#include "store/look.h"

struct idem_budget;
struct idem_engine;
struct idem_flight;
struct idem_request;

/* A claim that waits for a place on the wire, or a request's place to become one. */
struct idem_deferral {
    struct idem_list_node node;
    struct idem_scope scope;
    int64_t row;
    struct idem_budget *budget; /* NULL: not known yet. */
};

#define IDEM_DEFERRALS_MAX ((size_t)IDEM_READ_DUE_MAX / 2) /* slot.c says why. */

enum idem_err idem_slots_init(struct idem_engine *engine) IDEM_MUST_CHECK;
void idem_slots_deinit(struct idem_engine *engine);

/*
 * A request that may claim. True: its flight is held, or it goes without one; false: it is in the
 * backlog, or it has ended.
 */
bool idem_slot_admit(struct idem_engine *engine, struct idem_request *request) IDEM_MUST_CHECK;

/* Its command is durable. True: it claimed, and waits here for a place on the wire. */
bool idem_slot_claimed(struct idem_engine *engine, struct idem_request *request);

/* It did not need the place to wait in. */
void idem_slot_give_back(struct idem_engine *engine, struct idem_request *request);

/* A claim that waits does so no more. */
void idem_slot_forget(struct idem_engine *engine, struct idem_deferral *deferral);

/* Nobody acts on the intent, and it is to be sent. */
bool idem_slot_is_wanted(const struct idem_intent *intent, int64_t now_us);

/* A due row's flight: whatever it may send, to whichever entry, has a place. */
bool idem_slot_ask_any(struct idem_engine *engine, struct idem_flight *flight);

/* What was due may want to be sent and was not allowed to. True: its flight runs again. */
bool idem_slot_run_again(struct idem_engine *engine, struct idem_flight *flight);

/*
 * The flight's outcome released a call: its ticket is now for that. False: there is no room, and
 * for that long there will be none.
 */
bool idem_slot_use(struct idem_engine *engine,
                   struct idem_flight *flight,
                   int64_t *ret_pause_us) IDEM_MUST_CHECK;

/* The flight's call came back. */
void idem_slot_over(struct idem_engine *engine, struct idem_flight *flight);

void idem_slot_step(struct idem_engine *engine);
int64_t idem_slot_wake_us(const struct idem_engine *engine);

/* Requests of the backlog whose deadline is not later than `until_us` end. */
void idem_slot_end_backlog(struct idem_engine *engine, int64_t until_us);
bool idem_slot_has_backlog(const struct idem_engine *engine);

#endif /* IDEM_ENGINE_SLOT_H */
