/*
 * engine.h - the order of things: admit, batch, release.
 *
 * Requests become commands, commands become batches, and what a batch's decisions release leaves
 * only after its commit was answered cleanly: a reply to whoever waits, a call to a provider,
 * whose evidence becomes the next command. Everything an intent goes through walks this one path.
 *
 * The engine knows neither loop nor sockets: its owner calls idem_engine_step() whenever
 * something may have happened and not later than idem_engine_wake_us(). Finished requests are
 * reaped; nothing calls back. All memory is allocated at creation from the limits; at a limit the
 * answer is `unavailable`.
 *
 * Threads: one.
 */
#ifndef IDEM_ENGINE_ENGINE_H
#define IDEM_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/random.h"
#include "core/outcome.h"
#include "core/rules.h"
#include "engine/stats.h"
#include "provider/port.h"
#include "store/store.h"

struct idem_engine;

struct idem_engine_options {
    struct idem_store *store; /* All borrowed as long as the engine. */
    struct idem_port *port;
    const struct idem_rules *rules;
    struct idem_clock *clock;
    struct idem_random *random;
    size_t requests_max; /* Callers' requests inside the engine at once, waiting ones too. */
    size_t waiters_per_key_max;
    size_t sends_max;      /* Intents on the wire at once for callers. */
    size_t recoveries_max; /* Intents that workers act on at once. */
    size_t cache_entries;  /* Final answers kept for replay; 0: none. */
    size_t news_max;       /* News kept until they are taken; 0: none. */
};

struct idem_engine_options idem_engine_options_default(void);

/* What a caller wants while the first request of its key runs. */
enum idem_in_flight {
    IDEM_IN_FLIGHT_WAIT = 0, /* Join, up to the wait budget, then 202. */
    IDEM_IN_FLIGHT_ACCEPT,   /* 202 at once. */
    IDEM_IN_FLIGHT_CONFLICT, /* 409 in-progress; the first one itself still waits. */
    IDEM_IN_FLIGHT_COUNT
};

/* How a request ended. */
enum idem_reply_kind {
    IDEM_REPLY_NONE = 0,
    IDEM_REPLY_ANSWER,    /* A stored answer: outcome.intent.answer. */
    IDEM_REPLY_PROBLEM,   /* `problem`, not stored. */
    IDEM_REPLY_OPERATION, /* 202: still running, unknown or parked; look at the operation. */
    IDEM_REPLY_COUNT
};

/* One keyed request. Embed it; it is the engine's from submit to reap. */
struct idem_request {
    /*
     * Its command: kind ACCEPT or ABANDON, scope and request filled in. Ids, token and noise are
     * the engine's to fill.
     */
    struct idem_store_item item;
    enum idem_in_flight in_flight;
    bool respond_async; /* 202 as soon as the claim is durable. */
    unsigned owner;     /* The submitter's: which of its structs this is in. */

    /* Valid once reaped. */
    bool replayed;   /* False only for the request whose claim the answer belongs to. */
    bool identified; /* outcome.intent says which operation. */
    bool claimed;    /* This request's own claim. */
    enum idem_reply_kind reply;
    enum idem_problem problem;
    int64_t retry_after_us; /* 0: no hint. */
    struct idem_outcome outcome;

    /* The engine's own. */
    struct idem_list_node node;
    struct idem_list_node wait_node;
    int64_t deadline_us; /* Monotonic. */
    void *flight;
    void *deferral;
    bool unknown; /* A run of its command was not answered. */
};

enum idem_err idem_engine_create(const struct idem_engine_options *options,
                                 struct idem_engine **ret_engine,
                                 struct idem_error *reterr) IDEM_MUST_CHECK;

/* Always accepted; refusals (limits, stopping, store down) come back by reap as any reply. */
void idem_engine_submit(struct idem_engine *engine, struct idem_request *request);

/* Asks the store; comes back on `read->done`, its submitter's list. */
void idem_engine_read(struct idem_engine *engine, struct idem_read *read);

/*
 * A command that no keyed request stands behind: RESOLVE, REAP, CREDENTIAL, MARK, or EVIDENCE from
 * a listing. Embed it; it is the engine's until `item.node` is on `done`, with `item.answer`:
 * DURABLE, or something else, and then nothing was written. UNKNOWN comes back only from a store
 * that is broken; otherwise the same command runs again until its end is known. Whoever waits for
 * the intent learns of its end as from any other command.
 */
struct idem_task {
    struct idem_store_item item; /* Its command; ids, token and noise are the engine's to fill. */
    struct idem_outcome outcome;
    struct idem_list *done; /* The submitter's. */
    bool unknown;           /* The engine's own: a run of it was not answered. */
};

/*
 * Always accepted; when stopping or broken it comes back at once as DOWN. The end of a post that is
 * under way is recorded until the engine is hurried.
 */
void idem_engine_run(struct idem_engine *engine, struct idem_task *task);

/*
 * A worker's hand: act on a due intent. IDEM_E_LIMIT: no room now, it stays due. An intent that
 * this engine is acting on already is left alone.
 */
enum idem_err idem_engine_recover(struct idem_engine *engine,
                                  const struct idem_due *due) IDEM_MUST_CHECK;

/* How many more idem_engine_recover() would be taken. */
size_t idem_engine_recovery_room(const struct idem_engine *engine);

/*
 * The earliest wall time at which something planned by a commit since the last call is due, or
 * INT64_MAX. A hint that saves a worker from polling; the store's due times are the truth.
 */
int64_t idem_engine_take_due_hint(struct idem_engine *engine);

/* Likewise whether a commit since the last call has written something to be posted. */
bool idem_engine_take_post_hint(struct idem_engine *engine);

/* Moves everything on as far as it goes without waiting. */
void idem_engine_step(struct idem_engine *engine);

/* Monotonic time at which a step is needed even if nothing happens. */
int64_t idem_engine_wake_us(const struct idem_engine *engine);

/* Finished requests: struct idem_request.node. */
void idem_engine_reap(struct idem_engine *engine, struct idem_list *ret_requests);

/* New claims are refused while set: disk below its reserve. Settling never is. */
void idem_engine_set_reserve_low(struct idem_engine *engine, bool low);

/* False while every new claim would be refused: stopping, disk below its reserve, store broken. */
bool idem_engine_takes_work(const struct idem_engine *engine);

/* Other processes may write beside this one. */
bool idem_engine_shares_store(const struct idem_engine *engine);

/* New requests are refused; what is in flight goes on. */
void idem_engine_drain(struct idem_engine *engine);

/*
 * Everybody still waiting gets its 202 now, calls that never left are ended, tasks that never ran
 * come back as DOWN, and what the store refuses as a conflict again and again is left to the next
 * process.
 */
void idem_engine_hurry(struct idem_engine *engine);

/* No intent is in hand, nobody waits for one, no task runs; reads may still. */
bool idem_engine_quiet(const struct idem_engine *engine);

/* Nothing is in flight any more, reads neither. */
bool idem_engine_idle(const struct idem_engine *engine);

/* What became of an intent, as a log may tell it: no key and no text of anybody's. */
enum idem_news_kind {
    IDEM_NEWS_NONE = 0,
    IDEM_NEWS_UNKNOWN, /* Its outcome is not known, from now on. */
    IDEM_NEWS_CASE,    /* A case was opened: a person must look. */
    IDEM_NEWS_ENDED,   /* SUCCEEDED, FAILED or RELEASED. */
    IDEM_NEWS_COUNT
};

struct idem_news {
    struct idem_uid id; /* The operation's public name. */
    int64_t age_us;     /* Since its claim. */
    int64_t unknown_us; /* How long its outcome was not known; 0: it always was. */
    enum idem_news_kind kind;
    enum idem_endpoint endpoint;
    enum idem_intent_state state;
    enum idem_problem problem;  /* Of an end; NONE: it succeeded. */
    enum idem_case_kind opened; /* CASE. */
    char entry[IDEM_ENTRY_MAX + 1];
    char trace[IDEM_TRACE_MAX + 1];
};

/* Moves out the oldest, at most `max`; how many. `ret_lost`: how many did not fit since. */
size_t idem_engine_take_news(struct idem_engine *engine,
                             struct idem_news *ret_news,
                             size_t max,
                             uint64_t *ret_lost);

const struct idem_engine_stats *idem_engine_stats(const struct idem_engine *engine);

/* One for every entry of the rules' providers, in their order. */
const struct idem_call_stats *idem_engine_call_stats(const struct idem_engine *engine);

/* Likewise, by the number of an entry. */
struct idem_budget_stats idem_engine_budget_stats(const struct idem_engine *engine,
                                                  size_t provider);

/* Idle. Accepts NULL. */
void idem_engine_destroy(struct idem_engine *engine);

#endif /* IDEM_ENGINE_ENGINE_H */
