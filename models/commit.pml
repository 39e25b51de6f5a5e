/*
 * commit.pml - what a COMMIT may say, and what may be concluded: one key, N callers, one taker.
 *
 * `seen` is what the next transaction reads, `disk` what is there after the power comes back. A
 * COMMIT that was not answered cleanly was written and flushed, or written and not flushed (the
 * next one reads it, a power loss takes it), or is still on its way (a lost connection) and arrives
 * when nobody waits for it any more, or never. A power loss ends what was on its way.
 *
 * The rule: after an unknown COMMIT the same command runs again with the same token; a row with
 * that token is written once more, so that this COMMIT has something to flush. Only a clean COMMIT
 * releases anything: a send, an answer, "somebody else has it". A BAD_... is a mistake.
 */
#ifndef N
#define N 2
#endif
#ifndef LOSSES
#define LOSSES 2 /* Of power. */
#endif
#ifndef UNKNOWNS
#define UNKNOWNS 3 /* COMMITs that are not answered cleanly. */
#endif

mtype = { ABSENT, CLAIMED, DISPATCHED, SUCCEEDED };
mtype = { cCLEAN, cUNKNOWN, cNONE };

typedef row {
    mtype st = ABSENT;
    byte token = 0;
    byte version = 0
}

row seen;
row disk;
row late;        /* A COMMIT that is still on its way. */
bool islate = false;
byte lateversion; /* What it was decided on. */
byte losses = 0;
byte unknowns = 0;
byte charges = 0;
bool told_done = false;
bool told_none = false;

#define SAFE \
    assert(charges <= 1); \
    assert(!told_none || charges == 0); \
    assert(!told_done || disk.st == SUCCEEDED)

/* world: rows. */
inline copy(to, from) {
    to.st = from.st;
    to.token = from.token;
    to.version = from.version
}

/* world: everything that was written before is flushed with it. */
inline flush() {
    copy(disk, seen)
}

/*
 * One transaction that writes `state` under `mine`. Every write is compare-and-set: what was
 * decided on another version is not written. (core: idem_turn_write_intent)
 */
inline commit(state, mine, ret_said) {
    if
    :: seen.st = state; seen.token = mine; seen.version++; flush(); ret_said = cCLEAN
    :: unknowns < UNKNOWNS -> /* world: durable, and the answer is lost. */
        unknowns++; seen.st = state; seen.token = mine; seen.version++; flush(); ret_said = cUNKNOWN
    :: unknowns < UNKNOWNS -> /* world: an I/O error: it is read, but not durable. */
        unknowns++; seen.st = state; seen.token = mine; seen.version++; ret_said = cUNKNOWN
    :: unknowns < UNKNOWNS && !islate -> /* world: a lost connection. */
        unknowns++; islate = true; late.st = state; late.token = mine;
        late.version = seen.version + 1; lateversion = seen.version; ret_said = cUNKNOWN
    :: unknowns < UNKNOWNS -> unknowns++; ret_said = cUNKNOWN /* world: nothing was written. */
    fi
}

/* A transaction that writes nothing is answered cleanly, and has flushed nothing. */
#ifdef BAD_RERUN_SILENT
#define write_again(state, mine, ret_said) ret_said = cCLEAN
#else
#define write_again(state, mine, ret_said) commit(state, mine, ret_said)
#endif

#ifdef BAD_NUMBER
#define MINE 1 /* A number that two callers compute alike is no token. */
#else
#define MINE _pid
#endif

/* Accepts, and if the row becomes its own, sends and settles. Version at most 8: bounded runs. */
proctype Caller()
{
    mtype said = cNONE;
    mtype from = ABSENT;

claim:
    atomic { /* core: idem_decide_accept, create_payment, idem_turn_repeat */
        if
        :: seen.st == ABSENT -> commit(DISPATCHED, MINE, said)
        :: seen.st == DISPATCHED && seen.token == MINE ->
            write_again(DISPATCHED, MINE, said) /* core: idem_turn_repeat, release_again */
        :: else -> goto out /* core: accept_known; somebody has it: wait. */
        fi
    };
    if
    :: said == cCLEAN -> skip
#ifdef BAD_SILENCE_IS_SUCCESS
    :: said == cUNKNOWN -> skip
#endif
#ifdef BAD_SILENCE_IS_FAILURE
    /* world: a 503 that says too much. */
    :: atomic { said == cUNKNOWN -> told_none = true; SAFE; goto out }
#elif defined(BAD_ABSENT_IS_FAILURE)
    /* world: a 503 that says too much. */
    :: atomic { said == cUNKNOWN && seen.st == ABSENT -> told_none = true; SAFE; goto out }
    :: said == cUNKNOWN && seen.st != ABSENT -> goto claim
#else
    :: said == cUNKNOWN -> goto claim
#endif
    :: said == cUNKNOWN -> goto out /* world: the process ends; a 503 says unknown. */
    fi;

send:
    atomic { charges++; SAFE }; /* world: the provider executes. */
#ifdef BAD_TELL_FIRST
    /* world: the answer leaves. */
    atomic { told_done = true; SAFE };
#endif
settle:
    atomic { /* core: idem_settle_success, idem_turn_finish, idem_turn_repeat */
        if
        :: seen.st == DISPATCHED -> commit(SUCCEEDED, MINE, said)
        :: seen.st == SUCCEEDED -> write_again(SUCCEEDED, MINE, said) /* core: idem_turn_repeat */
        :: else -> goto out
        fi
    };
    if
    /* world: the answer leaves. */
    :: atomic { said == cCLEAN -> told_done = true; SAFE }
    :: said == cUNKNOWN -> goto settle
    fi;
out:
    skip
}

/*
 * A row that was claimed and not dispatched is sent by whoever takes it; here so that a caller who
 * was told "nothing happened" can be wrong. A DISPATCHED one is only asked about (claim.pml).
 */
active proctype Taker()
{
    mtype said = cNONE;
    bool acts = false;
end:
    do
    :: atomic { seen.st == CLAIMED || (acts && seen.st == DISPATCHED && seen.token == _pid) ->
            acts = true; /* core: idem_decide_due, perform_send, idem_turn_repeat */
            if
            :: seen.st == CLAIMED -> commit(DISPATCHED, _pid, said)
            :: else -> write_again(DISPATCHED, _pid, said) /* core: idem_turn_repeat */
            fi;
            if
            :: said == cCLEAN -> charges++; acts = false; said = cNONE; SAFE; break
            :: else
            fi }
    od
}

/* Accepts without a place to send: the row waits for the taker. */
active proctype Waiter()
{
    mtype said = cNONE;
    bool acts = false;
again:
    atomic { /* core: idem_decide_accept, start, idem_turn_repeat */
        if
        :: seen.st == ABSENT -> commit(CLAIMED, _pid, said)
        :: acts && seen.st == CLAIMED && seen.token == _pid -> write_again(CLAIMED, _pid, said)
        :: else -> goto out
        fi;
        acts = true
    };
    if
#ifdef BAD_SILENCE_IS_FAILURE
    /* world: a 503 that says too much. */
    :: atomic { said == cUNKNOWN -> told_none = true; SAFE }
#elif defined(BAD_ABSENT_IS_FAILURE)
    /* world: a 503 that says too much. */
    :: atomic { said == cUNKNOWN && seen.st == ABSENT -> told_none = true; SAFE }
#else
    :: said == cUNKNOWN -> goto again
#endif
    :: said == cCLEAN -> skip
    :: said == cUNKNOWN -> skip /* world: the process ends. */
    fi;
out:
    skip
}

active proctype World()
{
end:
    do
    :: atomic { islate -> /* world: it arrives late; compare-and-set decides. */
            if
            :: seen.version == lateversion -> copy(seen, late); flush()
            :: skip
            fi;
            islate = false }
    :: d_step { losses < LOSSES && seen.version != disk.version -> /* world: the power fails. */
            losses++; copy(seen, disk); islate = false; SAFE }
    od
}

init {
    byte i = 0;
    atomic { /* world: everybody starts. */
        do
        :: i < N -> run Caller(); i++
        :: else -> break
        od
    }
}
