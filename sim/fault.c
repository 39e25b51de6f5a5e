/*
 * A kind that does not exist in a run costs no throw, so that leaving one out of the catalogue's
 * draw changes nothing but itself.
 */
#include "sim/fault.h"

#include "base/attr.h"
#include "base/bug.h"

#define FIRST_OF_MAIL   SIM_FAULT_EVENT_LATE
#define FIRST_OF_THEMES SIM_FAULT_STORE_BLIND /* It and those behind it are never in a swarm. */

static const char *const names[SIM_FAULT_COUNT] = {
#define SIM_FAULT(symbol, text) [SIM_FAULT_##symbol] = #symbol,
#include "sim/fault.def" // IWYU pragma: keep
#undef SIM_FAULT
};

static const char *const texts[SIM_FAULT_COUNT] = {
#define SIM_FAULT(symbol, text) [SIM_FAULT_##symbol] = (text),
#include "sim/fault.def" // IWYU pragma: keep
#undef SIM_FAULT
};

static void draw(struct sim_faults *faults, struct sim_dice *dice, size_t from, size_t to)
{
    static const uint16_t rates[] = { 10, 30, 100, 100, 300, 600 };
    static const uint64_t densities[] = { 100, 300, 500, 700 };
    uint64_t density = densities[sim_dice_below(dice, IDEM_ARRAY_COUNT(densities))];
    for (size_t i = from; i < to; i++) {
        uint16_t rate = rates[sim_dice_below(dice, IDEM_ARRAY_COUNT(rates))];
        faults->per_mille[i] = sim_dice_chance(dice, density) ? rate : 0;
    }
}

void sim_faults_draw(struct sim_faults *faults, struct sim_dice *dice, uint64_t seed)
{
    *faults = (struct sim_faults){ .dice = dice };
    sim_dice_init(&faults->mail_dice, seed ^ UINT64_C(0x6d61696c));
    draw(faults, dice, 0, FIRST_OF_MAIL);
    draw(faults, &faults->mail_dice, FIRST_OF_MAIL, FIRST_OF_THEMES);
}

void sim_faults_clear(struct sim_faults *faults)
{
    for (size_t i = 0; i < SIM_FAULT_COUNT; i++) {
        faults->per_mille[i] = 0;
    }
}

void sim_faults_set(struct sim_faults *faults, enum sim_fault_kind kind, uint16_t per_mille)
{
    IDEM_ASSERT(kind < SIM_FAULT_COUNT);
    IDEM_ASSERT(per_mille <= 1000);
    faults->per_mille[kind] = per_mille;
}

bool sim_fault_exists(const struct sim_faults *faults, enum sim_fault_kind kind)
{
    IDEM_ASSERT(kind < SIM_FAULT_COUNT);
    return faults->per_mille[kind] > 0;
}

bool sim_fault(struct sim_faults *faults, enum sim_fault_kind kind)
{
    bool is_mail = kind >= FIRST_OF_MAIL && kind < FIRST_OF_THEMES;
    struct sim_dice *dice = is_mail ? &faults->mail_dice : faults->dice;
    if (faults->healed || !sim_fault_exists(faults, kind) ||
        !sim_dice_chance(dice, faults->per_mille[kind])) {
        return false;
    }
    faults->fired[kind] += 1;
    return true;
}

void sim_fault_note(struct sim_faults *faults, enum sim_fault_kind kind)
{
    IDEM_ASSERT(kind < SIM_FAULT_COUNT);
    faults->fired[kind] += 1;
}

const char *sim_fault_name(enum sim_fault_kind kind)
{
    IDEM_ASSERT(kind < SIM_FAULT_COUNT);
    return names[kind];
}

const char *sim_fault_text(enum sim_fault_kind kind)
{
    IDEM_ASSERT(kind < SIM_FAULT_COUNT);
    return texts[kind];
}
