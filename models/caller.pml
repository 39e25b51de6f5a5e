/*
 * caller.pml - the caller's doubt: when a client may say that nothing happened.
 *
 * A client sends one intent under one key, to a server that executes a key once and may be set back
 * to an old copy of itself. Requests are lost, late, turned away before anything is looked up, or
 * carried out without an answer; the client crashes between any two steps and begins anew with
 * what its journal says.
 *
 *   What must hold: SAFE. Money moves at most once, and never after "refused" was told. The rule
 *   (src/client/course.h): in doubt from before the first byte leaves; only the server's word about
 *   the whole key takes doubt away; a run that finds no record where one was said to be does not
 *   send again. The next run would: a server that was set back protects itself then (--restored),
 *   so here it is set back only where no further run begins. A BAD_... is a mistake.
 */
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef SENDS
#define SENDS 3 /* The budget of all runs. */
#endif

mtype = { ABSENT, RUNNING, DONE, REFUSED };         /* The server's record. */
mtype = { mNONE, mDONE, mREFUSED, mTURNED_AWAY, mRUNNING, mUNSURE, mNO_RECORD }; /* Readings. */
mtype = { vNONE, vDONE, vREFUSED, vUNKNOWN };       /* Verdicts. */

mtype record = ABSENT;
byte wire = 0;
byte other = 0;     /* Requests under another key. */
byte charges = 0;
bool restored = false;
bool heard = false;  /* In this run the server has said that it has the key. */
bool asking = false; /* A question is what the client makes of that. */

/* The journal. */
bool written = false; /* The intent stands there with its doubt. */
mtype verdict = vNONE;
byte sends = 0;
byte crashes = 0;

#define SAFE \
    assert(charges <= 1); \
    assert(verdict != vREFUSED || charges == 0); \
    assert(verdict != vDONE || charges == 1)

active proctype Server()
{
end:
    do
    :: atomic { wire > 0 -> wire--; /* world: a request arrives, or is lost. */
            if
            :: record == ABSENT -> record = RUNNING
            :: skip
            fi }
    :: atomic { record == RUNNING -> record = DONE; charges++; SAFE } /* world: executed */
    :: d_step { record == RUNNING -> record = REFUSED } /* world: refused, stored, for ever. */
#ifdef BAD_NEW_KEY
    :: atomic { other > 0 -> other--; charges++; SAFE } /* world: another key is a new intent. */
#endif
    :: d_step { record != ABSENT && !restored && heard && asking && wire == 0 &&
            crashes == CRASHES ->
            restored = true; record = ABSENT } /* world: set back to a copy without this key. */
    od
}

/* world: a crash; the journal stays. */
#define CRASHED \
    d_step { crashes < CRASHES -> crashes++; heard = false; asking = false; doubt = false; \
        closing = false; reading = mNONE }

active proctype Client()
{
    bool doubt = false;
    bool closing = false;
    bool asked = false;
    mtype reading = mNONE;

begin:
    if
#ifdef BAD_UNWRITTEN
    :: verdict == vNONE -> doubt = false
#else
    /* client: idem_course_begin; what the journal had before this run is doubt. */
    :: d_step { verdict == vNONE -> doubt = written; written = true }
#endif
    :: verdict != vNONE -> goto out
    fi;

move:
    if
    /* client: idem_course_first, send_or_close, forbidden */
    :: d_step { !closing && sends < SENDS -> sends++; wire++; asked = false }
#ifdef BAD_NEW_KEY
    /* client: send_or_close */
    :: d_step { !closing && sends > 0 && sends < SENDS -> sends++; other++; asked = false }
#endif
    /* client: send_or_close, close_for; the deadline, the window or the budget is over. */
    :: d_step { !closing -> closing = true }; goto close
    :: closing -> goto close
    :: CRASHED -> goto begin
    fi;

read:
    if
    :: d_step { !asked && record == DONE -> reading = mDONE } /* world: the answer came. */
    :: d_step { !asked && record == REFUSED -> reading = mREFUSED } /* world: likewise */
    :: d_step { !asked && record == RUNNING -> reading = mRUNNING } /* world: 202 */
    :: d_step { !asked && wire > 0 -> wire--; reading = mTURNED_AWAY } /* world: 401, 429, 503 */
    :: d_step { reading = mUNSURE } /* world: no answer that says something. */
    /* world: so does a question; but a server that was set back is asked only once it serves. */
    :: d_step { asked && !restored -> asking = false; reading = mTURNED_AWAY }
    :: d_step { asked && record == DONE -> reading = mDONE } /* world: to a question */
    :: d_step { asked && record == REFUSED -> reading = mREFUSED } /* world: likewise */
    :: d_step { asked && record == RUNNING -> reading = mRUNNING } /* world: likewise */
    :: d_step { asked && record == ABSENT -> reading = mNO_RECORD } /* world: likewise */
    fi;
    if
    :: d_step { /* client: note */
            if
            :: reading == mREFUSED -> doubt = false
#ifdef BAD_TURNED_AWAY_CLEARS
            :: reading == mTURNED_AWAY -> doubt = false
#else
            :: reading == mTURNED_AWAY -> skip
#endif
#ifdef BAD_SILENCE_IS_REFUSAL
            :: reading == mUNSURE -> doubt = doubt
#else
            :: reading == mUNSURE -> doubt = true
#endif
#ifdef BAD_NO_RECORD_CLEARS
            :: reading == mNO_RECORD -> doubt = false
#else
            :: reading == mNO_RECORD -> doubt = true
#endif
            :: reading == mRUNNING -> doubt = true; heard = true
            :: else -> doubt = true
            fi }
    :: CRASHED -> goto begin
    fi;
    if
    :: atomic { reading == mDONE -> verdict = vDONE; SAFE; goto out } /* client: end_answered */
    /* client: end_answered, note */
    :: atomic { reading == mREFUSED -> verdict = vREFUSED; SAFE; goto out }
#ifdef BAD_NO_RECORD_SENDS
    :: d_step { reading == mNO_RECORD -> closing = false }; goto move /* client: wanted */
#else
    /* client: wanted, close_for */
    :: d_step { reading == mNO_RECORD -> closing = true }; goto close
#endif
    :: d_step { asked && reading == mUNSURE -> closing = true }; goto close /* client: wanted */
    :: reading == mTURNED_AWAY || (!asked && reading == mUNSURE) -> goto move
    :: reading == mRUNNING -> goto ask
    fi;

close:
    if
    :: doubt -> goto ask /* client: ask_or_end, may_ask */
    :: atomic { true -> /* client: end, idem_course_cut */
            if
            :: doubt -> verdict = vUNKNOWN
            :: else -> verdict = vREFUSED
            fi;
            SAFE; goto out }
    :: CRASHED -> goto begin
    fi;

ask:
    atomic { asked = true; asking = true }; /* client: ask_or_end */
    goto read;

out:
    skip
}
