/*
 * callback.pml - the provider's events and the inbox: one payment, and three events about it.
 *
 * DONE says that it was made. BACK and BACK_AGAIN, the same under two names, say that the provider
 * has taken it back. Each is delivered any number of times, in any order, to any process, until
 * somebody has said "taken". `seen` is what the next transaction reads, `disk` what is there after
 * the power comes back: a COMMIT that was not answered cleanly was flushed, or is only read, or
 * never was. A process whose COMMIT was not answered runs the same command again, or dies.
 *
 *   What must hold: each event stands in the history at most once, and the payment's sum has it at
 *   most once and is never less than nothing; what was taken stays taken; and when all were taken
 *   the books are the same, whatever came first: it was done, it is back, and one case says so.
 *   A BAD_... is a mistake.
 */
#ifndef DELIVERIES
#define DELIVERIES 3 /* Beside those that end it. */
#endif
#ifndef LOSSES
#define LOSSES 1 /* Of power. */
#endif
#ifndef UNKNOWNS
#define UNKNOWNS 2 /* COMMITs that are not answered cleanly. */
#endif

#define EVENTS 3
#define DONE   0 /* 1: BACK, 2: BACK_AGAIN. */

mtype = { CLEAN, UNKNOWN };

typedef rows {
    bool ended = false;  /* SUCCEEDED. */
    byte sum = 0;        /* Captured. */
    byte cases = 0;      /* REVERSED. */
    bool inbox[EVENTS];
    byte noted[EVENTS];  /* In the history. */
    byte times = 0;      /* Counted: an event that came once more. */
    byte writer = 0      /* The command that wrote the record last. */
#ifdef BAD_BACK_PARKS
    ; bool parked = false
#endif
};

rows seen;
rows disk;
bool taken[EVENTS];
byte losses = 0;
byte unknowns = 0;
byte over = 0; /* Deliveries that have come to their end. */

#define SAFE \
    assert(seen.sum <= 1); \
    assert(seen.cases <= 1); \
    assert(seen.noted[0] <= 1 && seen.noted[1] <= 1 && seen.noted[2] <= 1); \
    assert(!taken[0] || disk.inbox[0]); \
    assert(!taken[1] || disk.inbox[1]); \
    assert(!taken[2] || disk.inbox[2])

/* world: rows. */
inline copy(to, from) {
    to.ended = from.ended; to.sum = from.sum; to.cases = from.cases;
    to.inbox[0] = from.inbox[0]; to.inbox[1] = from.inbox[1]; to.inbox[2] = from.inbox[2];
    to.noted[0] = from.noted[0]; to.noted[1] = from.noted[1]; to.noted[2] = from.noted[2];
    to.times = from.times;
#ifdef BAD_BACK_PARKS
    to.parked = from.parked;
#endif
    to.writer = from.writer
}

/* world: with something written, a COMMIT flushes all that was read. */
inline commit(ret_said) {
    if
    :: copy(disk, seen); ret_said = CLEAN
    :: unknowns < UNKNOWNS -> unknowns++; copy(disk, seen); ret_said = UNKNOWN /* Durable. */
    :: unknowns < UNKNOWNS -> unknowns++; ret_said = UNKNOWN /* It is read, and not durable. */
    fi
}

/* It was made: once. (core: success, idem_settle_success) */
inline made() {
    if
    :: !seen.ended -> seen.ended = true; seen.sum++
    :: else
    fi
}

/* It is back: once, by its case. (core: reversed, take_back) */
inline back() {
#ifdef BAD_BACK_TWICE
    if
    :: seen.sum > 0 || seen.cases > 0 -> seen.sum--
    :: else
    fi;
    seen.cases = 1
#else
    if
    :: seen.cases == 0 -> seen.sum--; seen.cases++
    :: else
    fi
#endif
}

/* core: learn, weigh, idem_decide_late */
inline apply(e) {
    seen.noted[e]++;
    if
#ifdef BAD_BACK_PARKS
    :: e == DONE && !seen.parked -> made()
    :: e == DONE && seen.parked -> seen.cases = 1; made(); seen.parked = false
    :: e != DONE && !seen.ended -> seen.parked = true; seen.cases = 1
    :: e != DONE && seen.ended -> back()
#else
    :: e == DONE -> made()
    :: e != DONE -> made(); back() /* "Taken back" says also that it was done. */
#endif
    fi
}

#ifdef BAD_INBOX_IGNORED
#define SEEN(e) (seen.inbox[e] && false)
#else
#define SEEN(e) (seen.inbox[e])
#endif

/* One command about event `e`, under the token `mine`. */
inline decide(e, mine, ret_said) { /* core: idem_decide_evidence */
    if
    :: seen.inbox[e] && seen.writer == mine -> commit(ret_said) /* core: idem_turn_repeat */
    :: SEEN(e) && !(seen.inbox[e] && seen.writer == mine) -> /* core: note_event */
#ifdef BAD_SEEN_SILENT
        ret_said = CLEAN
#else
        seen.times = 1; commit(ret_said)
#endif
    :: else -> /* core: note_event, learn */
        seen.inbox[e] = true;
        seen.writer = mine;
        apply(e);
        commit(ret_said)
    fi
}

/* One delivery: to the process that it comes to, until that says something or dies. */
proctype Delivery(byte event)
{
    byte e = event;
    mtype said = UNKNOWN;

    if /* world: any of them, or the one that nobody has taken yet. */
    :: event == EVENTS -> e = 0
    :: event == EVENTS -> e = 1
    :: event == EVENTS -> e = 2
    :: event < EVENTS
    fi;
#ifdef BAD_TAKEN_FIRST
    taken[e] = true;
#endif
again:
#ifdef BAD_INBOX_APART
    atomic { /* world: a transaction of its own, and then the change. */
        if
        :: seen.inbox[e] -> seen.times = 1; commit(said); goto told
        :: else -> seen.inbox[e] = true; commit(said)
        fi;
        SAFE
    };
    if
    :: event == EVENTS -> goto gone /* world: the process dies. */
    :: said == CLEAN -> skip
    :: said == UNKNOWN -> goto gone
    fi;
    atomic { seen.writer = _pid + 1; apply(e); commit(said); SAFE }; /* world: the change. */
told:
#else
    atomic { /* core: idem_decide_evidence */
        decide(e, _pid + 1, said);
        SAFE
    };
#endif
    if
    :: said == CLEAN -> atomic { taken[e] = true; SAFE } /* world: the reply, after the commit. */
    :: said == UNKNOWN -> goto again /* world: the same command runs again. */
#ifdef BAD_SILENCE_IS_TAKEN
    :: said == UNKNOWN -> atomic { taken[e] = true; SAFE } /* world: a reply without one. */
#endif
    :: said == UNKNOWN -> skip /* world: the process dies, and nobody is told. */
    fi;
#ifdef BAD_INBOX_APART
gone:
#endif
    over++
}

/* world: what was not flushed is gone. */
active proctype Power()
{
    do
    :: atomic { losses < LOSSES && over < DELIVERIES -> /* world: it is gone. */
            losses++; copy(seen, disk); SAFE }
    :: over >= DELIVERIES -> break
    od
}

/* What nobody has said "taken" to comes again; then all is known. */
init {
    byte e = 0;
    do
    :: e < DELIVERIES -> run Delivery(EVENTS); e++
    :: else -> break
    od;
    over == DELIVERIES;
    unknowns = UNKNOWNS;
    e = 0;
    do
    :: e < EVENTS && !taken[e] -> run Delivery(e); (taken[e]); e++
    :: e < EVENTS && taken[e] -> e++
    :: e == EVENTS -> break
    od;
    assert(seen.ended && seen.sum == 0 && seen.cases == 1)
}
