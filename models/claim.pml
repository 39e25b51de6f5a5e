/*
 * claim.pml - the life of one intent: claim, dispatch, send, silence, question, close, release,
 * claim again, abandon, park; several workers, crashes, pauses, and a provider of a chosen kind.
 *
 * The store keeps what it acknowledged, and each transaction is one d_step (commit.pml looks into
 * commits). Everything else is hostile: a worker crashes or stops for ever between any two steps,
 * its lease ends at any time, requests are lost or late, answers are lost or late, copies of the
 * caller's request arrive after the end, evidence comes from whoever has it.
 *
 * Time is what may have passed: a lease lives or has ended, a granted send may still leave (`may`),
 * what left may still arrive (`wire`), the window of deduplication is open or over. Two assumptions
 * of the design stand here and nowhere else: nothing leaves after its send_not_after, and the
 * provider forgets an id only when our window is over and nothing of it can arrive any more.
 *
 *   PROVIDER  (none) can be asked, does not deduplicate, a close is not final
 *             CLOSES as above, but a closed id refuses every later send
 *             DEDUP  deduplicates on our id inside a window, can be asked, "not found" may lag
 *             MUTE   cannot be asked; with DEDUP or without
 *
 *   What must hold: SAFE. Money moves at most once (P3); a final state agrees with the provider,
 *   now and later, and never changes (P4); RELEASED and "abandoned" mean that nothing moved and
 *   nothing will; evidence that was heard settles (P7). Liveness: every intent ends or is parked
 *   (P9). Each switch BAD_... is a mistake; tools/check-models wants every one found.
 *
 * A comment "core:" names the functions of src/core that a transition stands for, "world:" what is
 * not ours.
 */
#ifndef N
#define N 2 /* Workers. */
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef COPIES
#define COPIES 2 /* Of the caller's request, also late ones. */
#endif
#define SENDS 2 /* IDEM_SENDS_MAX */

mtype = { ABSENT, CLAIMED, DISPATCHED, UNKNOWN, PARKED, SUCCEEDED, FAILED, RELEASED };
mtype = { sNONE, sSEND, sASK, sCLOSE };                     /* The planned step; also a source. */
mtype = { tNONE, tOPEN, tANSWERED, tNOT_EXECUTED, tREFUSED }; /* A send. */
mtype = { rNONE, rSUCCESS, rREFUSED, rNOT_EXECUTED, rCLOSED, rNOT_FOUND, rSILENCE };

/* The record. */
mtype st = ABSENT;
mtype step = sNONE;
byte token = 0;     /* Whose attempt: a worker has one at a time. */
byte lease = 0;     /* 0 none, 1 lives, 2 has ended. */
byte sent = 0;      /* send_count */
mtype send[SENDS] = tNONE;
byte window = 0;    /* 0 nothing sent, 1 open since the oldest open send, 2 over. */
bool old = false;   /* Asked for days. */
bool closeasked = false;
bool abandoned = false;

/* The world. */
bool may[SENDS] = false;  /* send_not_after is ahead. */
byte wire[SENDS] = 0;     /* Left, and may still arrive. */
mtype reply[SENDS] = rNONE;
byte charges = 0;
mtype memory = rNONE; /* What the provider keeps under our id. */
bool closing = false;
bool closed = false;
byte crashes = 0;
byte copies = COPIES;

/* What was told. */
mtype told = ABSENT; /* The first final state. */

#ifdef MUTE
#define ASKSTEP sNONE
#else
#define ASKSTEP sASK
#endif

#ifdef DEDUP
#define DEDUPLICATES true
#else
#define DEDUPLICATES false
#endif

#define FINAL (st == SUCCEEDED || st == FAILED)
#define ANYSEND(state) (send[0] == state || send[1] == state)
#define ARRIVES(i) ((may[i] || wire[i] > 0) && send[i] != tNOT_EXECUTED)
#define QUIET (!ARRIVES(0) && !ARRIVES(1))

#if defined(DEDUP) && defined(BAD_WINDOW)
#define MAY_SEND_AGAIN (sent < SENDS)
#define WINDOW_IS_OVER false
#elif defined(DEDUP)
#define MAY_SEND_AGAIN (sent < SENDS && window == 1)
#define WINDOW_IS_OVER (ANYSEND(tOPEN) && window == 2)
#elif defined(BAD_RESEND)
#define MAY_SEND_AGAIN (sent < SENDS)
#define WINDOW_IS_OVER false
#elif defined(BAD_NAIVE) || defined(BAD_UNMARKED)
#define MAY_SEND_AGAIN false
#define WINDOW_IS_OVER false
#else
#define MAY_SEND_AGAIN false
#define WINDOW_IS_OVER ANYSEND(tOPEN)
#endif

#if defined(CLOSES) || defined(BAD_CLOSE_FINAL)
#define CLOSE_IS_FINAL true
#else
#define CLOSE_IS_FINAL false
#endif

#define SAFE \
    if :: FINAL && told == ABSENT -> told = st :: else fi; \
    assert(told == ABSENT || st == told); \
    assert(charges <= 1); \
    assert(st != FAILED || charges == 0); \
    assert(st != RELEASED || charges == 0); \
    assert(st != SUCCEEDED || charges == 1)

/* core: idem_turn_plan */
inline plan(next) {
    step = next;
    lease = 0
}

/* core: idem_turn_acquire, idem_turn_lease_lives */
inline acquire() {
    token = _pid;
    lease = 1
}

/* core: idem_turn_grant_send */
inline grant(ret_no) {
    assert(sent < SENDS);
    if
    :: DEDUPLICATES && !ANYSEND(tOPEN) -> window = 1
    :: else
    fi;
    ret_no = sent;
    send[sent] = tOPEN;
    may[sent] = true;
    sent++;
    step = sSEND;
#ifndef BAD_UNMARKED
    if
    :: st == CLAIMED -> st = DISPATCHED
    :: else
    fi
#endif
}

/* core: idem_turn_finish; the outbox's row will be one more assignment of the same step (P11). */
inline finish(state) {
    st = state;
    plan(sNONE);
    send[0] = tNONE; /* What no longer counts is forgotten, so that fewer states are told apart. */
    send[1] = tNONE;
    token = 0;
    old = false
}

/* core: park, idem_turn_park */
inline park() {
    st = PARKED;
    old = false;
    plan(ASKSTEP)
}

/* core: idem_turn_follow, idem_recovery_next, after_not_found, after_silence, may_send_again */
inline follow(source, outcome, wasquiet) {
    if
    :: st == PARKED -> plan(ASKSTEP)                                         /* A */
#ifdef BAD_TIMER
    :: st != PARKED && old -> finish(FAILED)
#elif defined(BAD_ASKS_FOREVER)
    :: st != PARKED && old -> plan(ASKSTEP)
#else
    :: st != PARKED && old -> park()                                         /* B */
#endif
    :: st != PARKED && !old && outcome == rNOT_FOUND ->
        if
#ifdef BAD_ABSENT_FINAL
        :: true -> finish(FAILED)
#endif
        :: MAY_SEND_AGAIN -> plan(sSEND)                                     /* D; E is waiting */
        :: !MAY_SEND_AGAIN && CLOSE_IS_FINAL && !closeasked -> plan(sCLOSE)  /* F */
        :: !MAY_SEND_AGAIN && !(CLOSE_IS_FINAL && !closeasked) && !wasquiet -> plan(sASK) /* G */
        :: else ->
            park()                                                           /* H */
        fi
    :: else ->
        if
        :: MAY_SEND_AGAIN && (source == sASK || ASKSTEP == sNONE) -> plan(sSEND) /* D */
        :: else ->
            if
            :: ASKSTEP == sASK -> plan(sASK)                                 /* C, I */
            :: else -> park()                                                /* J */
            fi
        fi
    fi
}

/* core: idem_turn_unknown */
inline unknown() {
    if
    :: st == DISPATCHED -> st = UNKNOWN
    :: else
    fi
}

/* core: silence */
inline silent(source, outcome, wasquiet) {
    if
    :: token == _pid && st != CLAIMED ->
        unknown();
        follow(source, outcome, wasquiet)
    :: else
    fi
}

/* core: resolve_send, own_send */
inline resolve(no, how) {
    if
    :: no < SENDS && send[no] == tOPEN -> send[no] = how
    :: else
    fi
}

/* core: release, retry_or_release, idem_turn_return_reservation */
inline retry_or_release(patient) {
    if
    :: patient && sent < SENDS -> st = CLAIMED; plan(sSEND)
    :: else -> st = RELEASED; token = 0; old = false; plan(sNONE)
    fi
}

#if defined(MUTE) && defined(DEDUP)
#define REFUSAL_COVERS (window == 1)
#elif defined(BAD_SECOND_REFUSED)
#define REFUSAL_COVERS true
#else
#define REFUSAL_COVERS false
#endif

/* core: refused, refusal_covers_open_sends, settle_refused, idem_settle_failure */
inline refused(source, no) {
    if
    :: source == sSEND -> resolve(no, tREFUSED)
    :: else
    fi;
    if
    :: source == sSEND && ANYSEND(tOPEN) && !REFUSAL_COVERS -> silent(source, rREFUSED, false)
    :: else -> finish(FAILED)
    fi
}

#ifdef BAD_SECOND_RELEASES
#define STILL_OPEN false
#else
#define STILL_OPEN ANYSEND(tOPEN)
#endif

/* core: not_executed, open_sends, any_send_refused */
inline not_executed(no, patient) {
    if
    :: no < SENDS && send[no] == tOPEN ->
        send[no] = tNOT_EXECUTED;
        if
        :: STILL_OPEN -> silent(sSEND, rNOT_EXECUTED, false)
        :: !STILL_OPEN && ANYSEND(tREFUSED) -> finish(FAILED)
        :: !STILL_OPEN && !ANYSEND(tREFUSED) && st == PARKED ->
            silent(sSEND, rNOT_EXECUTED, false)
        :: else -> retry_or_release(patient)
        fi
    :: else
    fi
}

/* core: weigh, success, closed_unpaid, settle_success, idem_settle_success */
inline weigh(source, outcome, no, wasquiet, patient) {
    if
    :: outcome == rSUCCESS ->
#ifdef BAD_FENCED_EVIDENCE
        if
        :: token != _pid -> skip
        :: else -> finish(SUCCEEDED)
        fi
#else
        resolve(no, tANSWERED);
        finish(SUCCEEDED)
#endif
    :: outcome == rREFUSED -> refused(source, no)
    :: outcome == rCLOSED ->
        if
        :: CLOSE_IS_FINAL && source == sASK -> refused(source, no)
        :: else -> silent(source, outcome, wasquiet)
        fi
    :: outcome == rNOT_EXECUTED -> not_executed(no, patient)
    :: else ->
#ifdef BAD_TIMEOUT_FAILED
        finish(FAILED)
#else
        silent(source, outcome, wasquiet)
#endif
    fi
}

/* core: idem_decide_evidence, idem_decide_late, success_after_release */
inline evidence(source, outcome, no, wasquiet, patient) {
    if
    :: st == ABSENT -> skip
#ifdef BAD_OVERWRITE
    :: FINAL && outcome != rSUCCESS -> st = UNKNOWN; plan(ASKSTEP)
    :: FINAL && outcome == rSUCCESS -> skip
#else
    :: FINAL -> skip /* What contradicts the end opens a case. */
#endif
    :: st == RELEASED ->
        if
        :: outcome == rSUCCESS -> finish(SUCCEEDED)
        :: else
        fi
    :: else -> weigh(source, outcome, no, wasquiet, patient)
    fi;
    assert(outcome != rSUCCESS || st == SUCCEEDED);
    SAFE
}

/* world: kill -9, then a start that knows nothing of what was being done. */
#define CRASHED \
    d_step { crashes < CRASHES -> crashes++; no = SENDS; r = rNONE; wasquiet = false }

#ifdef BAD_NOT_AFTER
#define MAY_LEAVE true
#else
#define MAY_LEAVE (may[no])
#endif

#ifdef BAD_ABANDON_IGNORED
#define IS_NEW (st == ABSENT || (st == FAILED && abandoned && sent < SENDS))
#else
#define IS_NEW (st == ABSENT)
#endif

#ifdef BAD_UNGUARDED
#define TIMES 2 /* A transport that repeats a POST by itself. */
#else
#define TIMES 1
#endif

proctype Worker()
{
    mtype r = rNONE;
    byte no = SENDS;
    bool wasquiet = false;
    bool patient = false;

idle:
end:
    if
    /* core: idem_decide_accept, accept_absent, create_payment, start, idem_claim_acquire */
    :: d_step { copies > 0 && IS_NEW ->
            copies--; st = CLAIMED; acquire(); grant(no) };
        goto granted
    :: d_step { copies > 0 && IS_NEW -> copies--; st = CLAIMED; plan(sSEND) }; /* core: start */
        goto idle
    /* core: accept_known, reclaim, reserve_again */
    :: d_step { copies > 0 && st == RELEASED && sent < SENDS ->
            copies--; closeasked = false; st = CLAIMED; acquire(); grant(no) };
        goto granted
    :: d_step { copies > 0 && st == RELEASED && sent >= SENDS -> /* core: refuse, reserve_again */
            copies--; finish(FAILED); SAFE };
        goto idle
    /* core: idem_decide_due, let_go */
    :: d_step { st == RELEASED && lease != 1 -> finish(FAILED); abandoned = true; SAFE };
        goto idle
#ifndef BAD_UNSWEPT
    /* core: lapse, idem_turn_unknown */
    :: d_step { lease == 2 && !FINAL && st != RELEASED ->
#if defined(BAD_NAIVE) || defined(BAD_UNMARKED)
            if
            :: (st == CLAIMED || st == DISPATCHED) && sent < SENDS -> st = CLAIMED; plan(sSEND)
            :: else -> unknown(); follow(step, rSILENCE, false)
            fi
#elif defined(BAD_LAPSE_RELEASES)
            st = RELEASED; plan(sNONE)
#else
            unknown(); follow(step, rSILENCE, false)
#endif
            ; SAFE };
        goto idle
#endif
#ifdef BAD_UNFENCED
    :: lease == 0 && st == CLAIMED && step == sSEND -> /* core: perform_send */
        if
        :: d_step { sent < SENDS -> acquire(); grant(no) }; /* core: perform_send */
            goto granted
        :: sent >= SENDS -> goto idle
        fi
#endif
    /* core: perform, perform_send, window_is_over */
    :: d_step { lease == 0 && !FINAL && step == sSEND && WINDOW_IS_OVER ->
            follow(sSEND, rSILENCE, false) };
        goto idle
    :: d_step { lease == 0 && !FINAL && step == sSEND && !WINDOW_IS_OVER -> /* core: perform_send */
            acquire(); grant(no) };
        goto granted
    :: d_step { lease == 0 && !FINAL && step == sASK -> acquire() }; /* core: perform_ask */
        goto ask
    :: d_step { lease == 0 && !FINAL && step == sCLOSE -> /* core: perform_close */
            acquire(); closeasked = true };
        goto close
    fi;

granted: /* Committed; nothing has left. A process that is stopped wakes here at any time. */
    if
    :: d_step { MAY_LEAVE -> wire[no] = TIMES; may[no] = false } /* world: the last hook looked. */
    :: d_step { may[no] = false; reply[no] = rNOT_EXECUTED } /* world: no byte left, none will. */
    :: CRASHED -> goto idle
    fi;
    if
    :: atomic { /* core: idem_decide_evidence; the answer came, or it did not. */
            if
            :: reply[no] != rNONE -> r = reply[no]
            :: reply[no] != rNOT_EXECUTED -> r = rSILENCE
            fi;
            if
            :: r == rNOT_EXECUTED -> patient = true
            :: skip
            fi;
            d_step { /* core: idem_decide_evidence, weigh */
                evidence(sSEND, r, no, false, patient);
                r = rNONE; no = SENDS; patient = false } };
        goto idle
    :: CRASHED -> goto idle
    fi;

ask:
    if
    :: d_step { charges > 0 -> r = rSUCCESS } /* world: the provider is asked. */
    :: d_step { charges == 0 && memory == rREFUSED -> r = rREFUSED } /* world: likewise */
    :: d_step { charges == 0 && closed -> r = rCLOSED } /* world: likewise */
#ifdef DEDUP
    :: d_step { r = rNOT_FOUND; wasquiet = QUIET } /* world: queries lag. */
#else
    :: d_step { charges == 0 && memory != rREFUSED && !closed -> /* world: not found */
            r = rNOT_FOUND; wasquiet = QUIET }
#endif
    :: d_step { r = rSILENCE } /* world: no answer, or one that says nothing. */
    fi;
    if
    :: d_step { evidence(sASK, r, SENDS, wasquiet, false); /* core: weigh, silence */
            r = rNONE; wasquiet = false };
        goto idle
    :: CRASHED -> goto idle
    fi;

close:
    if
    :: d_step { charges == 0 -> closing = true; r = rCLOSED } /* world: it takes effect later. */
    :: d_step { r = rSILENCE } /* world: lost */
    fi;
    if
    :: d_step { /* core: closed_unpaid; the answer to a close is no evidence, whatever it says. */
            if
            :: FINAL || st == RELEASED -> skip
#ifdef BAD_CLOSE_ANSWER
            :: !FINAL && st != RELEASED && r == rCLOSED -> finish(FAILED)
#endif
            :: else -> silent(sCLOSE, r, false)
            fi;
            r = rNONE; SAFE };
        goto idle
    :: CRASHED -> goto idle
    fi
}

/* What the provider does with what arrives, and with what it was told to close. */
active proctype Provider()
{
    byte i;
end:
    do
    :: atomic { wire[0] + wire[1] > 0 -> /* world: one arrives, or is lost. */
            if
            :: wire[0] > 0 -> i = 0
            :: wire[1] > 0 -> i = 1
            fi;
            wire[i]--;
            if
            :: skip
#ifdef CLOSES
            :: closed -> reply[i] = rCLOSED
#endif
#ifdef DEDUP
            :: memory == rSUCCESS -> reply[i] = rSUCCESS
            :: memory == rREFUSED -> reply[i] = rREFUSED
#ifndef MUTE
            :: memory == rNONE -> reply[i] = rREFUSED /* A refusal that it does not remember. */
#endif
#endif
#ifdef DEDUP
            :: memory == rNONE ->
#elif defined(CLOSES)
            :: !closed ->
#else
            :: true ->
#endif
                if
                :: charges++; memory = rSUCCESS; reply[i] = rSUCCESS
                :: charges == 0 -> memory = rREFUSED; reply[i] = rREFUSED
                :: charges == 0 -> reply[i] = rNOT_EXECUTED
                fi
            fi;
            SAFE;
            i = 0 }
    :: d_step { closing && charges == 0 && !closed -> closed = true } /* world: now it is closed. */
#ifdef DEDUP
    :: d_step { memory != rNONE && window == 2 && !may[0] && !may[1] && wire[0] + wire[1] == 0 ->
            memory = rNONE } /* world: the provider forgets. */
#endif
    od
}

/*
 * world: a callback brings the provider's word to no worker in particular. One of a refusal, one
 * that comes twice, or one that lies, is a line more here.
 */
active proctype Callback()
{
end:
    do
    :: d_step { charges > 0 && st != ABSENT && !FINAL -> /* core: idem_decide_evidence, success */
            finish(SUCCEEDED); SAFE }
    od
}

active proctype Clock()
{
end:
    do
    :: d_step { lease == 1 -> lease = 2 } /* world: also a new incarnation of the store. */
    :: d_step { may[0] -> may[0] = false } /* world: send_not_after */
    :: d_step { may[1] -> may[1] = false } /* world: likewise */
#ifdef DEDUP
    :: d_step { window == 1 -> /* world: our window ends, and no send goes beyond it. */
            window = 2; may[0] = false; may[1] = false }
#endif
    od
}

active proctype Calendar()
{
end:
    do
    :: d_step { st == UNKNOWN && !old -> old = true } /* world: days of asking */
    od
}

#if defined(BAD_PERSON_EARLY) || defined(BAD_PERSON_LATE)
#define CAN_BE_KNOWN true
#else
#define CAN_BE_KNOWN QUIET
#endif

#ifdef BAD_PERSON_LATE
#define CAN_BE_SAID QUIET /* Looked before, decided by how it stands now. */
#else
#define CAN_BE_SAID true
#endif

/* Looks at the provider, and says what is there; it may be long until that is decided. */
active proctype Person()
{
    bool seen = false; /* Nothing was there, when nothing could arrive any more. */
end:
    do
    /* core: wire_end_us; asked_us is the moment of the look. */
    :: d_step { st == PARKED && charges == 0 && !seen && CAN_BE_KNOWN -> seen = true }
    :: d_step { st == PARKED && seen && CAN_BE_SAID -> /* core: say_failed */
            seen = false; finish(FAILED); SAFE }
    :: d_step { st == PARKED && charges > 0 -> /* core: say_succeeded */
            seen = false; finish(SUCCEEDED); SAFE }
    od
}

/* The caller gives the key up, whatever of its requests is still on the way. */
active proctype Abandoner()
{
    if
    /* core: idem_decide_abandon, finish_abandoned */
    :: d_step { st == ABSENT ->
#ifndef BAD_ABANDON_UNWRITTEN
            finish(FAILED);
            abandoned = true;
#endif
            told = FAILED }
    /* core: finish_abandoned */
    :: d_step { st == RELEASED -> finish(FAILED); abandoned = true; SAFE }
#ifdef BAD_ABANDON_OPEN
    /* core: finish_abandoned */
    :: d_step { st == DISPATCHED || st == UNKNOWN -> finish(FAILED); abandoned = true; SAFE }
#endif
    :: skip
    fi
}

init {
    byte i = 0;
    atomic { /* world: everybody starts. */
        do
        :: i < N -> run Worker(); i++
        :: else -> break
        od
    }
}

#ifdef LIVE
ltl ends { [] (st != ABSENT -> <> (st == SUCCEEDED || st == FAILED || st == PARKED)) }
#endif
