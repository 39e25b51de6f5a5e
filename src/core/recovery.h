/*
 * recovery.h - what may follow a dispatch whose outcome is not known: the table of
 * docs/recovery.md.
 *
 * This is where double charges are made or not made, so it is one pure function over plain values,
 * with one labelled row for every case and one test for every row.
 */
#ifndef IDEM_CORE_RECOVERY_H
#define IDEM_CORE_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/command.h"
#include "core/intent.h"
#include "core/rules.h"

/* Rows of the table; recovery.c has a paragraph for each. */
enum idem_recovery_row {
    IDEM_RECOVERY_NONE = 0,
    IDEM_RECOVERY_A_PARKED,     /* In front of a person already: ask on. */
    IDEM_RECOVERY_B_TOO_LONG,   /* Asked for days: park. */
    IDEM_RECOVERY_C_PROCESSING, /* The provider has it: ask later. */
    IDEM_RECOVERY_D_SEND_AGAIN, /* Deduplicates, window open, not found or mute: send again. */
    IDEM_RECOVERY_E_LAG,   /* Not found, but the provider's queries lag: ask when it is over. */
    IDEM_RECOVERY_F_CLOSE, /* Not found, no deduplication, close is final: close. */
    IDEM_RECOVERY_G_ON_THE_WIRE,  /* Not found, no deduplication, may still arrive: ask later. */
    IDEM_RECOVERY_H_NO_SAFE_STEP, /* Not found, and neither sending nor closing is safe: park. */
    IDEM_RECOVERY_I_ASK,          /* No usable answer, and it can be asked: ask later. */
    IDEM_RECOVERY_J_MUTE,         /* Cannot be asked and may not be sent again: park. */
    IDEM_RECOVERY_COUNT
};

struct idem_recovery_view {
    const struct idem_capability *capability;
    const struct idem_rules *rules;
    int64_t now_us;
    uint64_t noise;                   /* For jitter. */
    enum idem_evidence_source source; /* What was tried last ... */
    enum idem_outcome_kind outcome;   /* ... and what came back. */
    int64_t asked_us;                 /* When the question left that this answers. */
    int64_t retry_after_us;           /* The provider's wish; 0: none. */
    int64_t oldest_open_us;           /* Grant of the oldest unresolved send; 0: none. */
    int64_t newest_open_us;           /* Grant of the newest unresolved send. */
    int64_t wire_end_us;              /* After this no unresolved send can still arrive. */
    int64_t unknown_since_us;
    uint32_t ask_count;
    uint32_t send_count;
    bool close_asked;
    bool parked;
};

struct idem_recovery_next {
    enum idem_recovery_row row;
    bool park;           /* Open a case; `step` then says how it goes on meanwhile. */
    enum idem_step step; /* NONE: nothing can be done but wait for somebody else's evidence. */
    int64_t at_us;       /* When; never before now. */
};

struct idem_recovery_next idem_recovery_next(const struct idem_recovery_view *view);

/*
 * Until when a send under this capability may leave: the end of the window that `oldest_us`
 * began.
 */
int64_t idem_recovery_window_end_us(const struct idem_capability *capability, int64_t oldest_us);

#endif /* IDEM_CORE_RECOVERY_H */
