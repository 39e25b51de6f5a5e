/*
 * ledger.h - the judge: what arrived at this provider and what it did, counted apart.
 *
 * Everything known about an effect comes from its events, and an event is in the file before it
 * counts here. What is read back after a restart is therefore what was there before it.
 *
 * It is also the provider's own second check of money: how much of a payment was authorized,
 * captured, canceled and refunded, whatever the caller believes.
 *
 * Threads: one, the sandbox's.
 */
#ifndef IDEM_SANDBOX_LEDGER_H
#define IDEM_SANDBOX_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"
#include "sandbox/event.h"
#include "sandbox/order.h"
#include "sandbox/profile.h"

#define IDEM_LEDGER_CODE_MAX      40
#define IDEM_LEDGER_REFERENCE_MAX 32

struct idem_ledger;

enum idem_ledger_status {
    IDEM_LEDGER_NONE = 0, /* The provider remembers nothing of this id. */
    IDEM_LEDGER_SUCCEEDED,
    IDEM_LEDGER_DECLINED,
    IDEM_LEDGER_IN_PROCESS,
    IDEM_LEDGER_CLOSED,
    IDEM_LEDGER_REFUSED, /* Invalid content: can no longer succeed. */
    IDEM_LEDGER_STATUS_COUNT
};

/* One effect id at one profile. Read it; only events change it. */
struct idem_ledger_effect {
    struct idem_list_node node; /* In the order in which they were first heard of. */
    struct idem_ledger_effect *chain;

    enum idem_sandbox_profile profile;
    struct idem_str id;
    struct idem_sandbox_order order; /* Of the last arrival that was not a repeat of a known one. */
    void *order_memory;              /* NULL: no readable content arrived yet. */

    enum idem_ledger_status status;
    struct idem_str code;      /* Of a declined or refused one. */
    struct idem_str reference; /* Of the last execution. */
    struct idem_str trace;     /* The last one that came with it. */
    int64_t known_us;          /* Wall clock when `status` left NONE. */
    int64_t executed_us;       /* Wall clock of the first execution, and its number: its */
    int64_t execution_no;      /* place in a listing. */
    int64_t due_us;            /* When the last one that is processing ends. */
    bool due_fails;
    uint32_t processing; /* How many of its arrivals are processing. */

    int64_t arrivals;
    int64_t executions;
    int64_t queries;
    int64_t closes;
    int64_t listings;  /* Times that a page with it was asked for. */
    int64_t conflicts; /* Arrivals with another content than the one known. */
    int64_t reversals;
    int64_t callbacks; /* Posts about it, and how many of them were answered 2xx. */
    int64_t callbacks_taken;

    /* Of a payment, by its own executions and those of the operations on it, in minor units. */
    int64_t authorized;
    int64_t captured;
    int64_t canceled;
    int64_t refunded;

    char id_text[IDEM_ORDER_ID_MAX];
    char code_text[IDEM_LEDGER_CODE_MAX];
    char reference_text[IDEM_LEDGER_REFERENCE_MAX];
    char trace_text[IDEM_LEDGER_TRACE_MAX];
};

/* Reads back what is in the file at `path` (NULL: memory only). Destroy it in the end. */
enum idem_err idem_ledger_create(const char *path,
                                 struct idem_ledger **ret_ledger,
                                 struct idem_error *reterr) IDEM_MUST_CHECK;

/* Accepts NULL. */
void idem_ledger_destroy(struct idem_ledger *ledger);

/* NULL if nothing was heard of it. Valid as long as the ledger. */
struct idem_ledger_effect *idem_ledger_find(const struct idem_ledger *ledger,
                                            enum idem_sandbox_profile profile,
                                            struct idem_str id);

/* Writes the event to the file, then counts it. On failure nothing has happened. */
enum idem_err idem_ledger_record(struct idem_ledger *ledger,
                                 const struct idem_ledger_event *event,
                                 struct idem_error *reterr) IDEM_MUST_CHECK;

/*
 * Whether the payment allows `order`, which refers to it. NULL, or why it is declined, a constant.
 */
const char *idem_ledger_allows(const struct idem_ledger_effect *payment,
                               const struct idem_sandbox_order *order);

/* All effects, through their `node`. */
const struct idem_list *idem_ledger_effects(const struct idem_ledger *ledger);

/* Executions of all effects together: the number of the last one. */
int64_t idem_ledger_executions(const struct idem_ledger *ledger);

struct idem_str idem_ledger_status_name(enum idem_ledger_status status);

/* At which of the filters does an effect appear; empty lets all pass. */
struct idem_ledger_filter {
    struct idem_str order_no;
    struct idem_str id;
};

/* Prints the ledger as GET /ledger shows it; sets `buf->full` if it has no room. */
void idem_ledger_print(const struct idem_ledger *ledger,
                       const struct idem_ledger_filter *filter,
                       struct idem_buf *buf);

#endif /* IDEM_SANDBOX_LEDGER_H */
