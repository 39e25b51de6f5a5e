/*
 * One sentence a problem. They say the same as `effect` and `retry`, for a person who reads a log
 * at night: first what happened to the money, then what to do. A switch without a default, so that
 * a new problem cannot be added without its sentence.
 */
#include "api/advice.h"

#include "base/bug.h"

#define NOTHING_RECORDED "This request recorded nothing and moved no money; "

/* Constant text for what a caller did or met. One case a problem. */
// NOLINTNEXTLINE(readability-function-size): one switch, the module's point.
static const char *advice(enum idem_problem problem)
{
    switch (problem) {
    case IDEM_PROBLEM_KEY_MISSING:
        return NOTHING_RECORDED "send the request with one Idempotency-Key header.";
    case IDEM_PROBLEM_KEY_INVALID:
        return NOTHING_RECORDED "send one key of 1 to 255 visible ASCII bytes.";
    case IDEM_PROBLEM_HEADER_INVALID:
    case IDEM_PROBLEM_BODY_INVALID:
    case IDEM_PROBLEM_QUERY_INVALID:
    case IDEM_PROBLEM_MEDIA_TYPE:
    case IDEM_PROBLEM_REQUEST_INVALID:
    case IDEM_PROBLEM_NOT_SUPPORTED:
    case IDEM_PROBLEM_METHOD_NOT_ALLOWED:
        return NOTHING_RECORDED "correct the request; as it is it will never be taken.";
    case IDEM_PROBLEM_DIGEST_MISMATCH:
        return "Nothing of this try was recorded: the body changed on its way, or the digest is of "
               "another one. Send the request as it was meant, under the same key.";
    case IDEM_PROBLEM_UNAUTHENTICATED:
        return "Nothing was looked up, so whether an earlier try with this key ran is not known "
               "here; ask again with a valid credential.";
    case IDEM_PROBLEM_DECLINED:
        return "No money moved and this key is finished; another try needs a new key.";
    case IDEM_PROBLEM_FORBIDDEN:
        return "Nothing was looked up, so whether an earlier try with this key ran is not known "
               "here; use a credential that is allowed to do this.";
    case IDEM_PROBLEM_NOT_FOUND:
        return "There is nothing here that you may see, which is no proof that nothing happened; "
               "check the address, or ask by the key.";
    case IDEM_PROBLEM_KEY_UNKNOWN:
        return "That is no proof that nothing happened: a request may still be on its way. Send "
               "the same request under the same key, or abandon the key.";
    case IDEM_PROBLEM_PAYMENT_MISSING:
        return "No money moved and this key is finished; check the payment's id and use a new key.";
    case IDEM_PROBLEM_TOO_SLOW:
        return "Nothing of this try was recorded; send the same request under the same key.";
    case IDEM_PROBLEM_IN_PROGRESS:
        return "It may have moved money already; wait, then send the same request under the same "
               "key.";
    case IDEM_PROBLEM_ORDER_EXISTS:
        return "This request moved no money; look at the payment that has the order number.";
    case IDEM_PROBLEM_REFUND_EXISTS:
        return "This request moved no money; look at the refund that has the number.";
    case IDEM_PROBLEM_STATE_CONFLICT:
        return "This request moved no money; look at the payment before deciding anew.";
    case IDEM_PROBLEM_ABANDONED:
        return "No money moved and none will under this key; another try needs a new key.";
    case IDEM_PROBLEM_ANSWER_EXPIRED:
        return "The request was finished long ago and will not run again; look at its resource.";
    case IDEM_PROBLEM_TOO_OLD:
        return "Whether the first try moved money is not remembered here; look for the payment by "
               "its order number before doing anything.";
    case IDEM_PROBLEM_TOO_LARGE:
    case IDEM_PROBLEM_HEAD_TOO_LARGE:
        return "Nothing of this try was recorded and it was not read to its end; make the request "
               "smaller.";
    case IDEM_PROBLEM_KEY_REUSED:
        return "Nothing was done for this request, and nothing of the first one is shown. One key "
               "names one request: repeat the first one unchanged, or use a new key for a new one.";
    case IDEM_PROBLEM_AMOUNT_EXCEEDS:
        return "No money moved and this key is finished; another amount needs a new key.";
    case IDEM_PROBLEM_AMOUNT_INVALID:
        return "No money moved and this key is finished; send the amount with the decimals of the "
               "payment's currency under a new key.";
    case IDEM_PROBLEM_PARTIAL_REFUSED:
        return "No money moved and this key is finished; send the whole amount under a new key.";
    case IDEM_PROBLEM_INTERNAL:
        return "What was recorded is kept; send the same request under the same key to learn it.";
    case IDEM_PROBLEM_NOT_EXECUTED:
        return "No money moved; send the same request under the same key to try again.";
    case IDEM_PROBLEM_OUTCOME_UNKNOWN:
        return "The store did not say whether it was recorded; send the same request under the "
               "same key, never under a new one.";
    case IDEM_PROBLEM_UNAVAILABLE:
        return "Nothing of this try was recorded, and an earlier one was not looked up; send the "
               "same request under the same key later.";
    case IDEM_PROBLEM_NOT_HAPPENED:
        return "No money moved and none will under this key, as somebody found at the provider; "
               "another try needs a new key.";
    case IDEM_PROBLEM_TOO_EARLY:
        return "Nothing was decided: a request may still arrive at the provider; say it again "
               "after the time in Retry-After.";
    case IDEM_PROBLEM_RATE_LIMITED:
        return "Nothing of this try was recorded, and an earlier one was not looked up; send the "
               "same request under the same key later.";
    case IDEM_PROBLEM_CREDENTIAL_CONFLICT:
        return "Nothing was changed; choose another id and a fresh secret.";
    case IDEM_PROBLEM_NONE:
    case IDEM_PROBLEM_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

struct idem_str idem_advice_text(enum idem_problem problem)
{
    return idem_str_from(advice(problem));
}
