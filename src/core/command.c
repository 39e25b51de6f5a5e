/*
 * What a command offers for comparison, and names for what it carries, as they stand in timelines.
 */
#include "core/command.h"

#include "base/bug.h"

const struct idem_fingerprint *idem_accept_fingerprint(const struct idem_accept *accept,
                                                       const struct idem_fingerprint *recorded)
{
    for (uint32_t i = 0; i < accept->fingerprint_count; i++) {
        const struct idem_fingerprint *offered = &accept->fingerprints[i];
        if (offered->rule_id == recorded->rule_id && offered->secret_id == recorded->secret_id) {
            return offered;
        }
    }
    return NULL;
}

const char *idem_outcome_kind_name(enum idem_outcome_kind kind)
{
    static const char *const names[IDEM_OUTCOME_COUNT] = {
        [IDEM_OUTCOME_NONE] = "none",
        [IDEM_OUTCOME_UNKNOWN] = "no usable answer",
        [IDEM_OUTCOME_SUCCESS] = "success",
        [IDEM_OUTCOME_REFUSED_FINAL] = "refused",
        [IDEM_OUTCOME_NOT_EXECUTED] = "not executed",
        [IDEM_OUTCOME_PROCESSING] = "processing",
        [IDEM_OUTCOME_NOT_FOUND] = "not found",
        [IDEM_OUTCOME_CLOSED_UNPAID] = "closed, unpaid",
        [IDEM_OUTCOME_REVERSED] = "reversed",
    };
    IDEM_ASSERT(kind < IDEM_OUTCOME_COUNT);
    return names[kind];
}

const char *idem_evidence_source_name(enum idem_evidence_source source)
{
    static const char *const names[IDEM_SOURCE_COUNT] = {
        [IDEM_SOURCE_NONE] = "none",       [IDEM_SOURCE_SEND] = "send",
        [IDEM_SOURCE_QUERY] = "query",     [IDEM_SOURCE_CLOSE] = "close",
        [IDEM_SOURCE_LISTING] = "listing", [IDEM_SOURCE_CALLBACK] = "callback",
    };
    IDEM_ASSERT(source < IDEM_SOURCE_COUNT);
    return names[source];
}

static const char *const verdict_names[IDEM_VERDICT_COUNT] = {
    [IDEM_VERDICT_NONE] = "none",     [IDEM_VERDICT_SUCCEEDED] = "succeeded",
    [IDEM_VERDICT_FAILED] = "failed", [IDEM_VERDICT_NOTED] = "noted",
    [IDEM_VERDICT_STRAY] = "stray",
};

const char *idem_verdict_name(enum idem_verdict verdict)
{
    IDEM_ASSERT(verdict < IDEM_VERDICT_COUNT);
    return verdict_names[verdict];
}

enum idem_verdict idem_verdict_from(struct idem_str name)
{
    for (unsigned i = IDEM_VERDICT_NONE + 1; i < IDEM_VERDICT_COUNT; i++) {
        if (idem_str_equal(name, idem_str_from(verdict_names[i]))) {
            return (enum idem_verdict)i;
        }
    }
    return IDEM_VERDICT_NONE;
}
