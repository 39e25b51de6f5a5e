/*
 * outbox.pml - what merchants are told: two changes of one payment, a message each, one webhook.
 *
 * A change is written with its message in one transaction, or not at all. Workers take a message
 * that is due, post it once that is durable, and tell what it came to. A taken one is nobody
 * else's until its lease ends; whoever dies leaves it to the next. A post that left may arrive or
 * not, and its answer may come or not, also after the lease.
 *
 *   What must hold: a message for each change and none without; nothing is posted that is not
 *   taken; what counts as delivered has arrived; the second arrives after the first, unless that
 *   was tried ORDERED times; and at the end both have arrived. A BAD_... is a mistake.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef ORDERED
#define ORDERED 2 /* Attempts for which the second message waits. */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 3 /* Of one message, before what goes wrong is over. */
#endif

mtype = { NONE, PENDING, DELIVERED };

bool changed[2];
mtype delivery[2] = NONE;
byte owner[2];    /* Of the lease; 0: it is due. */
byte attempts[2];
byte arrived[2];
bool first_was_late = false; /* It was tried often enough for the second one to go on. */
byte ended = 0;              /* Workers that have come to their end. */
bool healed = false;
bool wrote = false;          /* Both changes were made, or their maker died. */

#define BOUND(m) (changed[m] == (delivery[m] != NONE))
#define SAFE \
    assert(BOUND(0) && BOUND(1)); \
    assert(delivery[0] != DELIVERED || arrived[0] > 0); \
    assert(delivery[1] != DELIVERED || arrived[1] > 0); \
    assert(arrived[1] == 0 || arrived[0] > 0 || first_was_late)

/* Two changes, one after the other. */
active proctype Payment()
{
    byte m = 0;
    do
    :: m < 2 ->
#ifdef BAD_MESSAGE_APART
        atomic { changed[m] = true }; /* world: the change alone. */
        if
        :: skip
        :: goto dead /* world: the process dies. */
        fi;
        atomic { delivery[m] = PENDING; SAFE }; /* world: and then its message. */
#else
#ifdef BAD_MESSAGE_FIRST
        atomic { delivery[m] = PENDING }; /* world: told before it is durable. */
        if
        :: skip
        :: goto dead /* world: the COMMIT is lost. */
        fi;
        atomic { changed[m] = true; SAFE }; /* world: and then the change. */
#else
        if
        :: atomic { changed[m] = true; delivery[m] = PENDING; SAFE } /* core: idem_tell, tell */
        :: skip /* world: the COMMIT is lost, with both; and the command runs again. */
        fi;
        if
        :: changed[m] -> skip
        :: else -> atomic { changed[m] = true; delivery[m] = PENDING; SAFE } /* core: idem_tell */
        fi;
#endif
#endif
        m++
    :: m == 2 -> break
    od;
#if defined(BAD_MESSAGE_APART) || defined(BAD_MESSAGE_FIRST)
dead:
    atomic { wrote = true; assert(BOUND(0) && BOUND(1)) } /* world: nobody comes after it. */
#else
    wrote = true
#endif
}

#ifdef BAD_UNORDERED
#define MAY_GO(m) true
#else
#define MAY_GO(m) (m == 0 || delivery[0] == DELIVERED || attempts[0] > ORDERED)
#endif
#define IS_DUE(m) (delivery[m] == PENDING && owner[m] == 0 && MAY_GO(m))

#ifdef BAD_TAKEN_FOR_EVER
#define LEASE_ENDS(m) false
#else
#define LEASE_ENDS(m) (owner[m] != 0)
#endif

/* core: take, idem_decide_delivery */
inline take(m) {
    owner[m] = _pid + 1;
    attempts[m]++;
    first_was_late = first_was_late || attempts[0] > ORDERED
}

/* core: finish */
inline done(m) {
    delivery[m] = DELIVERED;
    owner[m] = 0
}

/* Only who has it may say so. (core: failed) */
inline failed(m) {
    if
    :: owner[m] == _pid + 1 -> owner[m] = 0
    :: else
    fi
}

active [WORKERS] proctype Worker()
{
    byte m = 0;
    bool got = false;
    do
    :: atomic { !healed && IS_DUE(0) && attempts[0] < ATTEMPTS -> /* outbox: take */
            m = 0; got = false; take(m); SAFE };
        goto post
    :: atomic { !healed && IS_DUE(1) && attempts[1] < ATTEMPTS -> /* outbox: take */
            m = 1; got = false; take(m); SAFE };
        goto post
#ifdef BAD_POST_FIRST
    :: atomic { !healed && delivery[1] == PENDING -> /* world: not taken. */
            m = 1; got = false };
        goto post
#endif
    :: healed -> break
    :: goto dead /* world: it dies with nothing in hand. */
    od;
    goto dead;
post:
    if /* outbox: taken */
    :: atomic { true -> arrived[m]++; got = true; SAFE } /* world: it arrives. */
    :: skip /* world: it is lost. */
    fi;
    if
    :: got -> atomic { done(m); SAFE } /* outbox: posted, judge */
    :: true -> /* world: no answer, though it may have arrived. */
#ifdef BAD_SILENCE_IS_DONE
        atomic { done(m); SAFE } /* world: silence taken as success. */
#else
        atomic { failed(m); SAFE } /* outbox: posted, judge */
#endif
    :: goto dead /* world: it dies with a message in hand. */
    fi;
dead:
    ended++
}

/* Time passes: leases end, whoever has them. */
active proctype Time()
{
    do
    :: atomic { !healed && LEASE_ENDS(0) && delivery[0] == PENDING -> /* world: time. */
            owner[0] = 0 }
    :: atomic { !healed && LEASE_ENDS(1) && delivery[1] == PENDING -> /* world: time. */
            owner[1] = 0 }
    :: healed -> break
    od
}

/* Nothing goes wrong any more: one more worker looks at what is due. */
active proctype Last()
{
    byte m = 0;
    atomic { wrote && ended == WORKERS -> healed = true }; /* world: nothing more goes wrong. */
    do
    :: m < 2 && LEASE_ENDS(m) && delivery[m] == PENDING -> owner[m] = 0
    :: m < 2 && IS_DUE(m) ->
        atomic { take(m); arrived[m]++; done(m); SAFE }; /* outbox: take, posted */
        m++
    :: m < 2 && delivery[m] != PENDING -> m++
    :: m == 2 -> break
#ifdef BAD_TAKEN_FOR_EVER
    :: m < 2 && delivery[m] == PENDING && !IS_DUE(m) -> m++ /* And it stays there. */
#endif
    od;
    assert(!changed[0] || arrived[0] > 0);
    assert(!changed[1] || arrived[1] > 0)
}
