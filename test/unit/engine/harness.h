/*
 * harness.h - an engine with everything around it in the test's hand: the clock, the dice, the
 * store's answers and the provider.
 *
 * The store is the memory store unless a test brings its own; its answers can be replaced one batch
 * or read at a time. The port counts calls and answers them by a rule or holds them until the test
 * says what came back.
 */
#ifndef IDEM_TEST_UNIT_ENGINE_HARNESS_H
#define IDEM_TEST_UNIT_ENGINE_HARNESS_H

#include "base/clock.h"
#include "base/random.h"
#include "engine/engine.h"
#include "lib/test.h"

#define SECOND       IDEM_US_PER_SECOND
#define REQUESTS_MAX 1200
#define SENT_MAX     8192

/* What becomes of the next batch. A store with threads of its own cannot take UNKNOWN_DONE. */
enum batch_fate {
    BATCH_AS_IT_IS = 0,
    BATCH_UNKNOWN_DONE, /* Durable, but nobody says so. */
    BATCH_UNKNOWN_LOST, /* Not written, and nobody says so. */
    BATCH_NOTHING,
    BATCH_DOWN,
    BATCH_CONFLICT,
    BATCH_HUNG, /* Not run, and no answer until harness_end_hung(). */
};

struct harness {
    struct idem_clock clock;
    struct idem_random random;
    uint64_t noise;
    int64_t mono_us;

    struct idem_provider_rules entry;
    struct idem_rules rules;
    struct idem_store *store;
    const struct idem_store_ops *store_ops; /* The store's own. */
    struct idem_store_ops wrapped;
    enum batch_fate fates[16];
    size_t fate_count;
    struct idem_list refused;        /* Batches that were not run. */
    struct idem_list hung;           /* Likewise, without an answer yet. */
    bool heard;                      /* Something was heard of an intent that is waited for. */
    size_t reads_refused;            /* So many of the next reads are answered NOTHING. */
    size_t asked[IDEM_READ_COUNT];   /* Reads of each kind. */
    size_t waited_most;              /* Intents that one of them asked for. */
    struct idem_list reads;          /* On their way back. */
    bool reads_held;                 /* They do not arrive while set. */
    bool batches_held;               /* Nothing comes back while set, reads neither. */
    size_t most[IDEM_COMMAND_COUNT]; /* Commands of a kind in one batch. */

    /* Evidence about this intent is not written while `refuses`, as behind a broken constraint. */
    bool refuses;
    struct idem_scope refused_scope;
    size_t refused_alone; /* Batches of this evidence only ... */
    size_t refused_among; /* ... and with others. */

    struct idem_port port;
    struct idem_list held; /* Calls without an answer yet. */
    struct idem_list answered;
    bool port_full;
    bool hold;                                   /* Calls wait for harness_answer(). */
    struct idem_str hangs;                       /* Sends to this entry wait in any case. */
    enum idem_outcome_kind outcome;              /* What they are answered with otherwise. */
    int64_t retry_after_us;                      /* The provider's wish in every answer. */
    char sent_ids[SENT_MAX][IDEM_EFFECT_ID_LEN]; /* Of every send, in order. */
    size_t sent_count;
    size_t sends;
    size_t queries;
    size_t closes;
    char trace[IDEM_TRACE_MAX + 1]; /* That the last call carried. */

    const struct idem_listed *listed; /* What the provider lists, in this order. */
    size_t listed_count;
    size_t page_max;
    size_t listings;        /* Pages asked for. */
    size_t listings_failed; /* So many of the next are not answered. */
    bool listings_full;     /* The port has no room for one. */
    bool listings_held;     /* They do not arrive while set. */
    int64_t listed_from_us; /* Of the last page that was asked for. */
    int64_t listed_to_us;
    struct idem_list listings_done;

    struct idem_engine_options options;
    struct idem_engine *engine;
};

extern struct harness harness;

void harness_begin(void);                        /* Options may be changed between this ... */
void harness_start(void);                        /* ... and this. */
void harness_start_on(struct idem_store *store); /* Likewise, over a store of the test's own. */
void harness_end(void);                          /* Expects an idle engine. */
void harness_fate(enum batch_fate fate);         /* Of one more batch. */
/* The batch that hangs longest ends like this; then a step. */
void harness_end_hung(enum batch_fate fate);
void harness_step(void);
void harness_pass(int64_t us); /* Time, then a step. */

/* Answers all calls that are held. */
void harness_answer(enum idem_outcome_kind outcome);

/* A payment under `key` for the order of the same name. */
struct idem_request *harness_pay(struct idem_request *request, const char *key);
void harness_submit(struct idem_request *request);

/* Takes what is finished off the done list; true if `request` was among all that ever were. */
bool harness_done(struct idem_request *request);

/* How often the effect `id` was put on the wire. */
size_t harness_sent(struct idem_str id);

/* The operation of `request` as the store has it. */
const struct idem_read *harness_operation(const struct idem_request *request);

/* Hands every due intent to the engine, as the worker does. */
size_t harness_recover(void);

#define EXPECT_REPLY(request, expected) assert_string_equal(reply_name(&(request)), (expected))

/* "answer 201", "problem in-progress", "operation", "pending". */
const char *reply_name(struct idem_request *request);

#endif /* IDEM_TEST_UNIT_ENGINE_HARNESS_H */
