/*
 * engine_internal.h - what the engine is made of. Stays in this folder.
 *
 * A request is in exactly one place: the backlog (it waits for a place to wait in), the queue (its
 * item waits for a batch), a batch (the store has it), the waiters of its intent, or the done list.
 * A flight is free, held by a request whose command is with the store, calling (the port has its
 * call), or settling (its command is queued, set apart, or with the store). A task is in the queue,
 * in a batch, or back with its submitter.
 */
#ifndef IDEM_ENGINE_ENGINE_INTERNAL_H
#define IDEM_ENGINE_ENGINE_INTERNAL_H

#include "engine/batch.h"
#include "engine/budget.h"
#include "engine/cache.h"
#include "engine/engine.h"
#include "engine/live.h"
#include "engine/slot.h"

/* Which struct an item is in: struct idem_store_item.owner. */
enum idem_owner {
    IDEM_OWNER_NONE = 0,
    IDEM_OWNER_REQUEST,
    IDEM_OWNER_FLIGHT,
    IDEM_OWNER_TASK,
    IDEM_OWNER_COUNT
};

enum idem_flight_state {
    IDEM_FLIGHT_FREE = 0,
    IDEM_FLIGHT_HELD,
    IDEM_FLIGHT_CALLING,
    IDEM_FLIGHT_SETTLING,
};

/* A place on the wire, with the place in the queue that settling will need. */
struct idem_flight {
    struct idem_list_node node; /* On its pool's free list, or on engine->calling. */
    enum idem_flight_state state;
    bool is_recovery;            /* Which pool it belongs to. */
    struct idem_ticket ticket;   /* Its place on the wire; none: it has none yet. */
    struct idem_scope scope;     /* Of the intent it acts on. */
    struct idem_store_item item; /* EVIDENCE or DUE. */
    struct idem_outcome outcome; /* Of the command that ran last; the call borrows from it. */
    struct idem_call call;
    int64_t asked_us;  /* Wall time, by the store's clock, when the call left ... */
    int64_t called_us; /* ... and monotonic. */
    unsigned refusals; /* How often the store refused its command alone, one after the other. */
    int64_t again_us;  /* Monotonic: when a command that is set apart runs again. */
    bool unknown;      /* A run of its command was not answered. */
};

struct idem_engine {
    struct idem_engine_options options;
    struct idem_cache *cache;
    struct idem_live_table *live;
    struct idem_watch *watch; /* NULL: nobody else is on the store. */

    struct idem_list queue;   /* Items that wait for a batch. */
    struct idem_list apart;   /* Items of flights, each to be run in a batch of its own. */
    struct idem_list waiting; /* Requests by deadline: struct idem_request.node. */
    struct idem_list calling; /* Flights with the port. */
    bool late; /* Something was submitted behind the last step: a pipelined request. */
    struct idem_list done_requests;

    struct idem_engine_batch *batches;
    size_t batch_count;

    struct idem_flight *flights; /* sends_max, then recoveries_max. */
    size_t flight_count;
    struct idem_list free_sends;
    struct idem_list free_recoveries;

    struct idem_budgets budgets;
    struct idem_deferral deferrals[IDEM_DEFERRALS_MAX];
    struct idem_list free_deferrals;
    struct idem_list backlog; /* Of requests whose entry only the facts know. */
    size_t slot_turn;

    size_t tasks;          /* Submitted and not back yet. */
    size_t reads;          /* Likewise. */
    int64_t again_at_us;   /* Monotonic: when the next queued command that ran may run again. */
    int64_t queue_look_us; /* Monotonic: when the queue is next searched for passed deadlines. */
    int64_t due_hint_us;   /* Wall: the earliest time a commit planned since a worker asked. */
    bool post_hint;        /* Since the outbox asked, one has written something to be posted. */
    bool reserve_low;
    bool draining;
    bool hurried;
    struct idem_engine_stats stats;
    struct idem_call_stats *call_stats; /* One for every entry of the rules' providers. */
    struct idem_news *news;             /* A ring of options.news_max. */
    size_t news_first;
    size_t news_count;
    uint64_t news_lost;
};

/* flight.c */

/* A free flight of the pool, HELD, or NULL. */
struct idem_flight *idem_flight_take(struct idem_engine *engine, bool is_recovery);
void idem_flight_give_back(struct idem_engine *engine, struct idem_flight *flight);

/* The flight acts on `scope` from now on; the live table knows it. */
void idem_flight_attach(struct idem_engine *engine,
                        struct idem_flight *flight,
                        const struct idem_scope *scope);

/* Puts what flight->outcome released on the wire. Whatever happens ends in evidence. */
void idem_flight_call(struct idem_engine *engine, struct idem_flight *flight);

/* Takes finished calls from the port and queues their evidence. */
void idem_flight_reap_calls(struct idem_engine *engine);

/* A due row becomes a command; `slot`: it may send. */
void idem_flight_recover(struct idem_engine *engine,
                         struct idem_flight *flight,
                         const struct idem_due *due,
                         bool slot);

/* The flight's command came back. */
void idem_flight_settled(struct idem_engine *engine, struct idem_flight *flight);

/* Puts the next command that is set apart, and whose time has come, into `batch`; how many. */
size_t idem_flight_form_apart(struct idem_engine *engine, struct idem_engine_batch *batch);

/* Monotonic time at which the next one's time comes, or INT64_MAX. */
int64_t idem_flight_apart_us(const struct idem_engine *engine);

/* The process ends: what the store keeps refusing is given up, and found by the next one. */
void idem_flight_leave_apart(struct idem_engine *engine);

/* task.c */

/* The task's command came back. */
void idem_task_came_back(struct idem_engine *engine, struct idem_task *task);

/* Takes a queued task out and gives it back, unless a run of it was not answered. */
void idem_task_end_queued(struct idem_engine *engine, struct idem_task *task);

/* tally.c: each number of the stats is counted in one place; these are what needs a thought. */

/* True if this command, which is durable, brought its intent to an end, or parked it. */
bool idem_tally_made_end(const struct idem_outcome *outcome, const struct idem_command *command);

/* A command is durable: did it bring its intent to an end? */
void idem_tally_durable(struct idem_engine *engine, const struct idem_store_item *item);

/* A call came back from the port. */
void idem_tally_call(struct idem_engine *engine, const struct idem_flight *flight);

/* news.c: a command is durable; what a log may want to tell about it. */
void idem_news_tell(struct idem_engine *engine, const struct idem_store_item *item);

/* request.c */

/* Its command waits for a batch, with its flight or without. */
void idem_request_queue(struct idem_engine *engine, struct idem_request *request);

/* Each ends the request: it is on the done list afterwards. */
void idem_request_finish_problem(struct idem_engine *engine,
                                 struct idem_request *request,
                                 enum idem_problem problem);
void idem_request_finish_operation(struct idem_engine *engine, struct idem_request *request);
void idem_request_finish_reply(struct idem_engine *engine, struct idem_request *request);

/* The intent is in flight: waits for it, or ends at once where the request or its route says so. */
void idem_request_join(struct idem_engine *engine, struct idem_request *request);

/* Everybody whose deadline is not later than `until_us` gets its 202. */
void idem_request_end_waits(struct idem_engine *engine, int64_t until_us);

/* Everybody who waits for this intent gets its reply. */
void idem_request_notify(struct idem_engine *engine, const struct idem_outcome *outcome);

/* watch.c: on a store that is shared. Each does nothing where it is not. */

enum idem_err idem_watch_create(bool shared, struct idem_watch **ret_watch) IDEM_MUST_CHECK;
void idem_watch_destroy(struct idem_watch *watch);

/* Somebody waits, from now on, for what no flight here acts on. */
void idem_watch_joined(struct idem_engine *engine);

/* Looks if it is time or something was heard, and tells who waits what the looks found. */
void idem_watch_step(struct idem_engine *engine);
int64_t idem_watch_wake_us(const struct idem_engine *engine);

/* engine.c */

/* Ids, token and noise for a command that is about to be queued. */
void idem_engine_seed(struct idem_engine *engine, struct idem_command *command);

/* Remembers when an intent that nobody acts on is due. */
void idem_engine_note_due(struct idem_engine *engine, const struct idem_intent *intent);

/* Whether anything can be recorded at all: not stopping, not broken. */
bool idem_engine_can_record(const struct idem_engine *engine);

/* The item comes first: it did not run yet. */
void idem_engine_queue(struct idem_engine *engine, struct idem_store_item *item);

/* The store refused the item, or nobody knows: it runs again after a pause of its own. */
void idem_engine_again(struct idem_engine *engine, struct idem_store_item *item);

#endif /* IDEM_ENGINE_ENGINE_INTERNAL_H */
