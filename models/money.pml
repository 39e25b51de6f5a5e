/*
 * money.pml - reservations: captures, cancels and refunds of one payment side by side.
 *
 * AUTHORIZED units may be captured or voided, what was captured may be refunded. The provider here
 * checks nothing and executes whatever it is sent, once for each intent (claim.pml); so the sums
 * are ours to keep. Outcomes come in any order and late. INTENTS intents, each a capture, a cancel
 * or a refund of any amount, chosen when it is accepted.
 *
 *   What must hold (P10): at the provider captured + voided <= authorized and refunded <= captured,
 *   at every moment; our sums never promise more than there is, and when nothing is open they are
 *   the provider's and no reservation is left. A BAD_... is a mistake.
 */
#ifndef INTENTS
#define INTENTS 3
#endif
#ifndef AUTHORIZED
#define AUTHORIZED 2
#endif
#ifndef RELEASES
#define RELEASES 2 /* Of each intent. */
#endif

mtype = { CAPTURE, CANCEL, REFUND };
mtype = { ABSENT, DISPATCHED, UNKNOWN, RELEASED, SUCCEEDED, FAILED, PARKED };

/* Ours. */
byte captured = 0;
byte capture_pending = 0;
byte released = 0;
bool canceling = false;
byte refunded = 0;
byte refund_pending = 0;
byte open = 0; /* Intents whose outcome is not known. */
#ifdef CAPTURE_ONCE
#define MANY false
#else
#define MANY true
#endif

/* The provider's. */
byte did_capture = 0;
byte did_void = 0;
byte did_refund = 0;

#define CAPTURABLE (AUTHORIZED - captured - capture_pending - released)
#define REFUNDABLE (captured - refunded - refund_pending)

#define SAFE \
    assert(captured + capture_pending + released <= AUTHORIZED); \
    assert(refunded + refund_pending <= captured); \
    assert(!canceling || capture_pending == 0); \
    assert(did_capture + did_void <= AUTHORIZED); \
    assert(did_refund <= did_capture); \
    assert(open > 0 || (capture_pending == 0 && refund_pending == 0 && !canceling)); \
    assert(open > 0 || (captured == did_capture && refunded == did_refund))

#define AUTHORIZATION_IS_OPEN (AUTHORIZED - captured - released > 0)

#ifdef BAD_UNRESERVED
#define TAKE(sum) skip
#define DROP(sum) skip
#else
#define TAKE(sum) sum = sum + amount
#define DROP(sum) assert(sum >= amount); sum = sum - amount
#endif

#ifdef BAD_CANCEL_BESIDE
#define NO_CAPTURE_PENDING true
#else
#define NO_CAPTURE_PENDING (capture_pending == 0)
#endif

/* core: idem_turn_reserve, wanted_amount */
inline reserve(ret_taken) {
    ret_taken = false;
    if
    :: kind == CAPTURE && AUTHORIZATION_IS_OPEN && !canceling && amount <= CAPTURABLE &&
       (MANY || captured + capture_pending == 0) -> /* core: idem_payment_reserve_capture */
        TAKE(capture_pending);
        ret_taken = true
    :: kind == CANCEL && AUTHORIZATION_IS_OPEN && !canceling && NO_CAPTURE_PENDING &&
       (MANY || captured == 0) -> /* core: idem_payment_reserve_cancel */
        canceling = true;
        amount = AUTHORIZED - captured - released;
        ret_taken = true
    :: kind == REFUND && captured > 0 && amount <= REFUNDABLE ->
        /* core: idem_payment_reserve_refund */
        TAKE(refund_pending);
        ret_taken = true
    :: else
    fi
}

/* core: idem_turn_return_reservation */
inline give_back() {
    if
    :: kind == CAPTURE -> /* core: idem_payment_capture_returned */
        DROP(capture_pending)
    :: kind == CANCEL -> /* core: idem_payment_cancel_returned */
        assert(canceling); canceling = false
#ifdef BAD_REFUND_KEPT
    :: kind == REFUND -> skip
#else
    :: kind == REFUND -> /* core: idem_payment_refund_returned */
        DROP(refund_pending)
#endif
    fi
}

/* core: apply_success, idem_settle_success */
inline count() {
    if
    :: kind == CAPTURE -> /* core: idem_payment_captured */
        DROP(capture_pending);
        captured = captured + amount;
        if
        :: !MANY -> released = AUTHORIZED - captured
        :: else
        fi
    :: kind == CANCEL -> /* core: idem_payment_canceled */
        assert(canceling);
        canceling = false;
        released = AUTHORIZED - captured
    :: kind == REFUND -> /* core: idem_payment_refunded */
        DROP(refund_pending);
        refunded = refunded + amount
    fi
}

/* world: the provider does what it is told. */
inline execute() {
    if
    :: kind == CAPTURE -> did_capture = did_capture + amount
    :: kind == CANCEL -> did_void = did_void + amount
    :: kind == REFUND -> did_refund = did_refund + amount
    fi
}

active [INTENTS] proctype Intent()
{
    mtype kind = CAPTURE;
    byte amount = 1;
    bool taken = false;
    bool done = false;
    byte times = 0;

    if /* world: the caller chooses. */
    :: kind = CAPTURE; amount = 1
    :: kind = CAPTURE; amount = AUTHORIZED
    :: kind = CANCEL; amount = 1
    :: kind = REFUND; amount = 1
    :: kind = REFUND; amount = AUTHORIZED
    fi;

accept:
    atomic { /* core: act_on_payment, reclaim, reserve_again, idem_turn_begin_refund */
#ifdef BAD_RECLAIM_UNCHECKED
        if
        :: times > 0 && kind == CAPTURE -> TAKE(capture_pending); taken = true
        :: times > 0 && kind == REFUND -> TAKE(refund_pending); taken = true
        :: else -> reserve(taken)
        fi;
#else
        reserve(taken);
#endif
        if
        :: taken -> open++
        :: else -> goto out /* core: refuse */
        fi;
        SAFE
    };

sent:
    if
    :: atomic { true -> done = true; execute(); SAFE } /* world: executed */
    :: skip /* world: refused, lost, or turned away */
    fi;
    if
    :: skip
    :: atomic { true -> /* core: silence, idem_turn_unknown; and then nothing is known for long. */
#ifdef BAD_UNKNOWN_RETURNS
            give_back();
#endif
            SAFE };
        goto unknown
    fi;

outcome:
    if
    :: atomic { done -> count(); open--; SAFE }; goto out /* core: success, idem_settle_success */
    :: atomic { !done -> give_back(); open--; SAFE }; goto out /* core: idem_settle_failure */
    :: atomic { !done && times < RELEASES -> /* core: not_executed, release */
            times++; give_back(); open--; SAFE };
        goto released_
    fi;

unknown:
    if
#ifdef BAD_UNKNOWN_RETURNS
    :: atomic { done -> /* core: success; what was reserved is long given back. */
            if
            :: kind == CAPTURE -> captured = captured + amount
            :: kind == CANCEL -> released = AUTHORIZED - captured
            :: kind == REFUND -> refunded = refunded + amount
            fi;
            open--; SAFE };
        goto out
    :: atomic { !done -> open--; SAFE }; goto out /* core: refused */
#else
    :: goto outcome /* world: evidence at last */
#endif
    fi;

released_:
    if
    :: goto accept /* world: the same key again */
    :: atomic { true -> /* core: let_go, finish_abandoned, idem_settle_holds_reservation */
#ifdef BAD_RETURNED_TWICE
            give_back();
#endif
            SAFE };
        goto out
    /* What was said not to have happened is found done: counted if it fits, else a case. */
    :: atomic { true -> /* core: success_after_release, idem_settle_make_room */
            reserve(taken);
            if
            :: taken -> execute(); count()
            :: else -> skip /* core: idem_turn_park; the provider broke its word, our sums hold. */
            fi;
            SAFE };
        goto out
    fi;
out:
    skip
}
