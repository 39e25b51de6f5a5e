/*
 * Names of what the history holds. They stand in timelines and in logs and do not change.
 */
#include "core/event.h"

#include "base/bug.h"

const char *idem_event_kind_name(enum idem_event_kind kind)
{
    static const char *const names[IDEM_EVENT_KIND_COUNT] = {
        [IDEM_EVENT_NONE] = "none",
        [IDEM_EVENT_CLAIMED] = "claimed",
        [IDEM_EVENT_DISPATCHED] = "dispatched",
        [IDEM_EVENT_SEND_SILENT] = "send-silent",
        [IDEM_EVENT_SEND_NOT_EXECUTED] = "send-not-executed",
        [IDEM_EVENT_SEND_REFUSED] = "send-refused",
        [IDEM_EVENT_SEND_PROCESSING] = "send-processing",
        [IDEM_EVENT_LEASE_ENDED] = "lease-ended",
        [IDEM_EVENT_ASKED] = "asked",
        [IDEM_EVENT_ASK_ANSWERED] = "ask-answered",
        [IDEM_EVENT_CLOSE_GRANTED] = "close-granted",
        [IDEM_EVENT_CLOSE_ANSWERED] = "close-answered",
        [IDEM_EVENT_UNKNOWN] = "unknown",
        [IDEM_EVENT_PARKED] = "parked",
        [IDEM_EVENT_SUCCEEDED] = "succeeded",
        [IDEM_EVENT_FAILED] = "failed",
        [IDEM_EVENT_RELEASED] = "released",
        [IDEM_EVENT_RECLAIMED] = "reclaimed",
        [IDEM_EVENT_ABANDONED] = "abandoned",
        [IDEM_EVENT_CONTRADICTED] = "contradicted",
        [IDEM_EVENT_PAYMENT_MOVED] = "payment-moved",
        [IDEM_EVENT_REFUND_MOVED] = "refund-moved",
        [IDEM_EVENT_RESOLVED] = "resolved",
        [IDEM_EVENT_EXPIRED] = "expired",
        [IDEM_EVENT_FOUND] = "found",
        [IDEM_EVENT_TRACED] = "traced",
        [IDEM_EVENT_NOTIFIED] = "notified",
        [IDEM_EVENT_REVERSED] = "reversed",
    };
    IDEM_ASSERT(kind < IDEM_EVENT_KIND_COUNT);
    return names[kind];
}

const char *idem_cause_name(enum idem_cause cause)
{
    static const char *const names[IDEM_CAUSE_COUNT] = {
        [IDEM_CAUSE_NONE] = "none",         [IDEM_CAUSE_REQUEST] = "request",
        [IDEM_CAUSE_PROVIDER] = "provider", [IDEM_CAUSE_TIMER] = "timer",
        [IDEM_CAUSE_OPERATOR] = "operator",
    };
    IDEM_ASSERT(cause < IDEM_CAUSE_COUNT);
    return names[cause];
}

const char *idem_case_kind_name(enum idem_case_kind kind)
{
    static const char *const names[IDEM_CASE_KIND_COUNT] = {
        [IDEM_CASE_NONE] = "none",
        [IDEM_CASE_MISMATCH] = "mismatch",
        [IDEM_CASE_CONTRADICTION] = "contradiction",
        [IDEM_CASE_UNRESOLVED] = "unresolved",
        [IDEM_CASE_NO_ROOM] = "no-room",
        [IDEM_CASE_REVERSED] = "reversed",
        [IDEM_CASE_MISSING] = "missing",
        [IDEM_CASE_DUPLICATE] = "duplicate",
    };
    IDEM_ASSERT(kind < IDEM_CASE_KIND_COUNT);
    return names[kind];
}
