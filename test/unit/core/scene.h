/*
 * scene.h - a few intents, payments and refunds as a store would keep them, in memory.
 *
 * scene_run() fetches the facts of a command, decides, applies the writes under their guards and
 * copies all text, so that nothing of the decision dangles. Every run also proves, by itself:
 *
 *   P14   deciding twice gives the same decision;
 *   P10   sums hold, each reservation on a payment belongs to exactly one open intent, and what is
 *         captured and refunded is what succeeded or what a stub has moved, each once, less what
 *         was taken back, each once;
 *   P4    a final answer never changes;
 *   P1    a second send is open only where the provider deduplicates, and never past its window;
 *         nothing is sent from an old copy, nor what a listing has named, nor by another scope
 *         under an order number that a listing has named;
 *   P3    nothing ends as failed while its stub is there;
 *   P9    what is parked has an open case, and never two of a kind;
 *   P11   each change of a payment, a refund, an operation or a case that a merchant is told has
 *         exactly one message, with the state as it then stands, and nothing else has one;
 *   inbox an event that came before changes nothing but its own count;
 *   P12   nothing that is open, or too young, is forgotten, and no key of a payment;
 *   re-run the same command on the rows it wrote gives the same release, writes the intent's row
 *         once more and appends neither events nor sends nor money nor cases nor messages.
 */
#ifndef IDEM_TEST_UNIT_CORE_SCENE_H
#define IDEM_TEST_UNIT_CORE_SCENE_H

#include "base/clock.h"
#include "core/decision.h"
#include "lib/test.h"

#define SECOND IDEM_US_PER_SECOND
#define HOUR   (3600 * SECOND)
#define DAY    IDEM_US_PER_DAY

#define SCENE_INTENTS     64
#define SCENE_PAYMENTS    64
#define SCENE_REFUNDS     64
#define SCENE_STUBS       64
#define SCENE_CREDENTIALS 8
#define SCENE_WEBHOOKS    10
#define SCENE_DELIVERIES  2048
#define SCENE_INBOX       512
#define SCENE_ENTRIES     6
#define SCENE_BEGIN_US    (INT64_C(1700000000) * SECOND)

#define WINDOW_US  (24 * HOUR)
#define MARGIN_US  HOUR
#define LAG_US     (30 * SECOND)
#define TIMEOUT_US (20 * SECOND)
#define SETTLE_US  (10 * SECOND)

/* What an intent's last event looked like, and how many there were. */
struct scene_intent {
    struct idem_intent row;
    struct idem_send sends[IDEM_SENDS_MAX];
    size_t send_count;
    size_t event_count;
    size_t case_count;
    size_t open_cases;
    uint32_t cases_open; /* Their kinds, as in the facts. */
    uint32_t cases_decided;
    bool is_reversed;         /* The sums are less by it. */
    struct idem_case decided; /* How the last of them was decided. */
    enum idem_event_kind last_event;
    enum idem_case_kind last_case;
};

/* An event of a provider's that came. */
struct scene_event {
    struct idem_str entry;
    struct idem_str event_id;
    size_t times;
    bool known;
};

/* A message on its way; only of those that somebody wanted. */
struct scene_delivery {
    struct idem_delivery row;
    struct idem_uid message_id;
    struct idem_uid webhook_id;
    enum idem_message_type type;
};

struct scene {
    struct idem_rules rules;
    struct idem_provider_rules entries[SCENE_ENTRIES];
    struct scene_intent intents[SCENE_INTENTS];
    size_t intent_count;
    struct idem_payment payments[SCENE_PAYMENTS];
    size_t payment_count;
    struct idem_refund refunds[SCENE_REFUNDS];
    size_t refund_count;
    struct idem_stub stubs[SCENE_STUBS];
    size_t stub_count;
    bool stub_moved[SCENE_STUBS]; /* It has moved its payment's sums. */
    struct idem_credential_row credentials[SCENE_CREDENTIALS];
    size_t credential_count;
    struct idem_webhook webhooks[SCENE_WEBHOOKS];
    size_t webhook_count;
    struct scene_delivery deliveries[SCENE_DELIVERIES];
    size_t delivery_count;
    struct scene_event inbox[SCENE_INBOX];
    size_t inbox_count;
    size_t told[IDEM_MESSAGE_TYPE_COUNT]; /* Messages so far. */
    struct idem_uid last_message;
    int64_t horizon_us; /* Of the mark. */
    bool restored;      /* The mode; the mark ends it. */
    bool manual;        /* Payments that a listing speaks of were made in two steps. */

    int64_t now_us;
    int64_t incarnation;
    int64_t opened_us; /* When it began. */
    uint32_t uids;     /* Given out so far. */
    int64_t wait_us;
    bool slot;

    struct idem_facts facts;       /* Of the last command. */
    struct idem_decision decision; /* Of its first run. */
    struct idem_decision again;
    struct idem_buf kept;
};

void scene_begin(struct scene *scene);
void scene_end(struct scene *scene);
void scene_pass(struct scene *scene, int64_t us);

/* The capability of every operation of an entry: "plain", "dedup", "lagging", "closing", "mute",
   "blind". */
struct idem_provider_rules *scene_entry(struct scene *scene, const char *entry);

/* Commands as the engine makes them; adjust before running. `key` also names the scope. */
struct idem_command scene_pay(struct scene *scene, const char *key, const char *entry);
struct idem_command scene_act(struct scene *scene,
                              const char *key,
                              enum idem_endpoint endpoint,
                              const char *amount);
struct idem_command scene_abandon(struct scene *scene, const char *key);
struct idem_command scene_due(struct scene *scene, const char *key);
/*
 * From the current attempt of `key`, about its newest send, agreeing with the effect. A callback is
 * an event that never came before.
 */
struct idem_command scene_evidence(struct scene *scene,
                                   const char *key,
                                   enum idem_evidence_source source,
                                   enum idem_outcome_kind outcome);

/* From a listing of "dedup": an effect of `kind` that `key` would have, of a payment or NULL. */
struct idem_command scene_listed(struct scene *scene,
                                 const char *key,
                                 enum idem_effect_kind kind,
                                 const char *payment_key);
/* A person's, agreeing with the effect. */
struct idem_command scene_resolve(struct scene *scene, const char *key, enum idem_verdict verdict);
struct idem_command scene_reap(struct scene *scene, const char *key); /* The horizon is now. */
struct idem_command scene_erase(struct scene *scene, const char *key);
struct idem_command scene_mark(struct scene *scene, enum idem_mark_kind kind);
struct idem_command scene_credential(struct scene *scene,
                                     enum idem_credential_action action,
                                     uint8_t id,
                                     uint8_t secret);

/* A provider's event about `key`, by its name. */
struct idem_command scene_callback(struct scene *scene,
                                   const char *key,
                                   const char *event_id,
                                   enum idem_outcome_kind outcome);
/* Of "shop", which wants everything, unless the test says otherwise. */
struct idem_command scene_webhook(struct scene *scene, enum idem_webhook_action action, uint8_t id);
/* Of the delivery with this index; DONE, FAILED and GONE by who has it. */
struct idem_command scene_delivery(struct scene *scene, enum idem_delivery_word word, size_t index);

struct idem_scope scene_scope(const char *key);
struct idem_str scene_effect_id(struct scene *scene, const char *key, enum idem_effect_kind kind);
struct idem_stub *scene_stub(struct scene *scene, const char *key); /* NULL: absent. */

/* The facts of a command, into scene->facts: for a test that changes them before it decides. */
void scene_fetch_for(struct scene *scene, const struct idem_command *command);

/* Runs it as the store does; gives what it released. */
struct idem_release scene_run(struct scene *scene, const struct idem_command *command);

/* The same with fresh commands, for the usual cases. */
struct idem_release scene_learn(struct scene *scene,
                                const char *key,
                                enum idem_evidence_source source,
                                enum idem_outcome_kind outcome);
struct idem_release scene_make_due(struct scene *scene, const char *key); /* Time goes there. */

struct scene_intent *scene_intent(struct scene *scene, const char *key); /* NULL: absent. */
struct idem_payment *scene_payment(struct scene *scene, const char *key);
struct idem_refund *scene_refund(struct scene *scene, const char *key);
enum idem_intent_state scene_state(struct scene *scene, const char *key);
const char *scene_state_name(struct scene *scene, const char *key);

/* A payment of "100.00" CNY that has succeeded under `key`: captured or only authorized. */
void scene_paid(struct scene *scene,
                const char *key,
                const char *entry,
                enum idem_capture_mode mode);

const char *release_name(enum idem_release_kind kind);

#define EXPECT_STATE(scene, key, expected) \
    assert_string_equal(scene_state_name((scene), (key)), (expected))
#define EXPECT_RELEASE(release, expected) \
    assert_string_equal(release_name((release).kind), (expected))

#endif /* IDEM_TEST_UNIT_CORE_SCENE_H */
