/*
 * row.h - a record as it is stored, and what may be asked of it.
 */
#ifndef IDEM_LOCAL_ROW_H
#define IDEM_LOCAL_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/uid.h"
#include "idem/idem_record.h"

struct idem_local_scope {
    struct idem_str principal;
    struct idem_str endpoint;
    struct idem_str key;
};

/* Texts are borrowed, from the database's row or from a command. Times are microseconds. */
struct idem_local_row {
    int64_t row; /* Its handle in the table. */
    struct idem_uid id;
    struct idem_local_scope scope;
    struct idem_str fingerprint;
    enum idem_local_state state;
    int64_t version;
    bool local_only;
    int64_t epoch;
    struct idem_uid token; /* Of the last acquisition, also when it is over; zero: taken away. */
    int64_t lease_end_us;
    bool sent; /* An effect was dispatched, by this or an earlier attempt, and is not marked yet. */
    struct idem_str effect; /* Its name; empty: it has none. */
    struct idem_str step;
    struct idem_str step_data;
    enum idem_local_verdict verdict;
    int64_t status;
    struct idem_str headers;
    struct idem_str body;
    int64_t created_us;
    int64_t updated_us;
    int64_t finished_us;
    int64_t expires_us; /* 0: it is not over. */
    struct idem_str by;
    struct idem_str reason;
    enum idem_local_verdict contradiction;
    struct idem_str contradiction_by;
    struct idem_str contradiction_reason;
    int64_t contradiction_us;

    /* Not stored: what the caller is told. */
    enum idem_local_outcome outcome; /* Of a claim. */
    int64_t retry_after_us;
    int64_t since_us;
};

enum idem_local_verb {
    IDEM_LOCAL_VERB_NONE = 0,
    IDEM_LOCAL_CLAIM,
    IDEM_LOCAL_DISPATCH,
    IDEM_LOCAL_HEARTBEAT,
    IDEM_LOCAL_MARK,
    IDEM_LOCAL_COMPLETE,
    IDEM_LOCAL_RELEASE,
    IDEM_LOCAL_SETTLE
};

/* What is asked; which members count is the verb's matter. Checked by command.c. */
struct idem_local_command {
    enum idem_local_verb verb;
    struct idem_local_scope scope; /* Claim, settle: which record. */
    struct idem_uid token;         /* The others: whose attempt. Claim: the new one's. */
    struct idem_uid id;            /* Claim: of a new record. */
    struct idem_str fingerprint;
    bool local_only;
    int64_t lease_us;
    struct idem_str effect;
    struct idem_str step;
    struct idem_str step_data;
    enum idem_local_verdict verdict;
    int64_t status;
    struct idem_str headers;
    struct idem_str body;
    int64_t retention_us;
    bool not_executed;
    struct idem_str by;
    struct idem_str reason;
};

#endif /* IDEM_LOCAL_ROW_H */
