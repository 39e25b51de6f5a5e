/*
 * fault.h - the catalogue of fault.def, what a seed makes of it, and what of it has happened.
 *
 * Swarm: a seed first draws which kinds exist in its run and how often each comes. A run in which
 * everything goes wrong at once never gets far enough to go wrong in an interesting way. Kinds
 * about events and posts have dice of their own: a run without them is the same whether they exist
 * or not.
 */
#ifndef IDEM_SIM_FAULT_H
#define IDEM_SIM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/dice.h"

enum sim_fault_kind {
#define SIM_FAULT(symbol, text) SIM_FAULT_##symbol,
#include "sim/fault.def" // IWYU pragma: keep
#undef SIM_FAULT
    SIM_FAULT_COUNT
};

struct sim_faults {
    struct sim_dice *dice; /* Borrowed. */
    struct sim_dice mail_dice;
    bool healed; /* Nothing goes wrong any more. */
    uint16_t per_mille[SIM_FAULT_COUNT];
    uint64_t fired[SIM_FAULT_COUNT];
};

void sim_faults_draw(struct sim_faults *faults, struct sim_dice *dice, uint64_t seed);

/* For a theme: no kind exists, and then these do. */
void sim_faults_clear(struct sim_faults *faults);
void sim_faults_set(struct sim_faults *faults, enum sim_fault_kind kind, uint16_t per_mille);

/* Does it happen now? Counted if it does. */
bool sim_fault(struct sim_faults *faults, enum sim_fault_kind kind);

/* It exists in this run, at whatever rate. */
bool sim_fault_exists(const struct sim_faults *faults, enum sim_fault_kind kind);

/* Something that follows from others has happened. */
void sim_fault_note(struct sim_faults *faults, enum sim_fault_kind kind);

const char *sim_fault_name(enum sim_fault_kind kind); /* "STORE_SLOW". */
const char *sim_fault_text(enum sim_fault_kind kind);

#endif /* IDEM_SIM_FAULT_H */
