/*
 * The ledger: a hash table of effects, changed only by events.
 *
 *   event --> line in the file --> apply()        while running
 *             line in the file --> apply()        at the start
 *
 * apply() looks at nothing but the event and the effect, so both ways end in the same state. What
 * needs memory is got before the line is written: once it is written, applying cannot fail.
 *
 * Sums are kept even where they go over the authorized amount: a provider that does not deduplicate
 * moves the money twice, and hiding that is the one thing a judge may not do. They stop at the
 * largest number instead of overflowing.
 */
#include "sandbox/ledger.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/money.h"
#include "sandbox/journal.h"

#define BUCKETS_FIRST ((size_t)1024) /* A power of two, and so are the later sizes. */

struct idem_ledger {
    struct idem_sandbox_journal journal;
    struct idem_ledger_effect **buckets;
    size_t bucket_count;
    struct idem_list effects;
    int64_t executions;
    char *line_memory;
    char *text_memory; /* Texts of a line that is read back. */
    size_t lines_read;
};

/* FNV-1a: spreads well enough for a table of tests. */
static size_t hash(enum idem_sandbox_profile profile, struct idem_str id)
{
    uint64_t value = UINT64_C(14695981039346656037) ^ (uint64_t)profile;

    for (size_t i = 0; i < id.len; i++) {
        value = (value ^ (uint8_t)id.data[i]) * UINT64_C(1099511628211);
    }
    return (size_t)value;
}

static struct idem_ledger_effect **bucket_of(const struct idem_ledger *ledger,
                                             enum idem_sandbox_profile profile,
                                             struct idem_str id)
{
    return &ledger->buckets[hash(profile, id) & (ledger->bucket_count - 1)];
}

static struct idem_ledger_effect *effect_at(struct idem_list_node *node)
{
    return IDEM_CONTAINER_OF(node, struct idem_ledger_effect, node);
}

struct idem_ledger_effect *idem_ledger_find(const struct idem_ledger *ledger,
                                            enum idem_sandbox_profile profile,
                                            struct idem_str id)
{
    struct idem_ledger_effect *effect = *bucket_of(ledger, profile, id);

    while (effect != NULL && (effect->profile != profile || !idem_str_equal(effect->id, id))) {
        effect = effect->chain;
    }
    return effect;
}

/* Doubles the table. Without memory it stays as it is and only becomes slower. */
static void buckets_grow(struct idem_ledger *ledger)
{
    size_t count = ledger->bucket_count * 2;
    struct idem_ledger_effect **buckets = calloc(count, sizeof(struct idem_ledger_effect *));

    if (buckets == NULL) {
        return;
    }
    free(ledger->buckets);
    ledger->buckets = buckets;
    ledger->bucket_count = count;
    IDEM_LIST_FOREACH (node, &ledger->effects) {
        struct idem_ledger_effect *effect = effect_at(node);
        struct idem_ledger_effect **bucket = bucket_of(ledger, effect->profile, effect->id);
        effect->chain = *bucket;
        *bucket = effect;
    }
}

/* Copies into an effect's own array; what is longer was never written by us. */
static struct idem_str text_keep(char *memory, size_t max, struct idem_str text)
{
    struct idem_buf buf;

    idem_buf_init(&buf, memory, max);
    return idem_buf_keep(&buf, text);
}

static struct idem_ledger_effect *effect_create(enum idem_sandbox_profile profile,
                                                struct idem_str id)
{
    struct idem_ledger_effect *effect = calloc(1, sizeof(*effect));

    if (effect != NULL) {
        effect->profile = profile;
        effect->id = text_keep(effect->id_text, sizeof(effect->id_text), id);
        IDEM_ASSERT(effect->id.len == id.len);
    }
    return effect;
}

static void effect_destroy(struct idem_ledger_effect *effect)
{
    free(effect->order_memory);
    free(effect);
}

static void effect_insert(struct idem_ledger *ledger, struct idem_ledger_effect *effect)
{
    if (ledger->effects.count >= ledger->bucket_count) {
        buckets_grow(ledger);
    }
    struct idem_ledger_effect **bucket = bucket_of(ledger, effect->profile, effect->id);
    effect->chain = *bucket;
    *bucket = effect;
    idem_list_push(&ledger->effects, &effect->node);
}

static void sum_add(int64_t *sum, int64_t amount)
{
    if (!idem_amount_add(*sum, amount, sum)) {
        *sum = INT64_MAX;
    }
}

static void sum_take(int64_t *sum, int64_t amount)
{
    *sum = *sum > amount ? *sum - amount : 0;
}

/* The sums that an operation of this kind moves; the second may be NULL. */
static void sums_find(struct idem_ledger_effect *payment,
                      enum idem_sandbox_order_kind kind,
                      int64_t *ret_sums[2])
{
    ret_sums[1] = NULL;
    switch (kind) {
    case IDEM_ORDER_CHARGE:
        ret_sums[0] = &payment->authorized;
        ret_sums[1] = &payment->captured;
        return;
    case IDEM_ORDER_AUTHORIZE:
        ret_sums[0] = &payment->authorized;
        return;
    case IDEM_ORDER_CAPTURE:
        ret_sums[0] = &payment->captured;
        return;
    case IDEM_ORDER_CANCEL:
        ret_sums[0] = &payment->canceled;
        return;
    case IDEM_ORDER_REFUND:
        ret_sums[0] = &payment->refunded;
        return;
    case IDEM_ORDER_NONE:
    case IDEM_ORDER_KIND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* The money of one execution, there or back. */
static void sums_move(const struct idem_ledger *ledger,
                      struct idem_ledger_effect *effect,
                      void (*move)(int64_t *sum, int64_t amount))
{
    const struct idem_sandbox_order *order = &effect->order;
    struct idem_ledger_effect *payment = effect;
    int64_t *sums[2];

    if (!idem_sandbox_order_makes_payment(order->kind)) {
        payment = idem_ledger_find(ledger, effect->profile, order->payment_id);
    }
    if (payment == NULL) {
        return;
    }
    sums_find(payment, order->kind, sums);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sums) && sums[i] != NULL; i++) {
        move(sums[i], order->amount_minor);
    }
}

const char *idem_ledger_allows(const struct idem_ledger_effect *payment,
                               const struct idem_sandbox_order *order)
{
    int64_t used = order->amount_minor;
    int64_t limit = payment->authorized;

    IDEM_ASSERT(!idem_sandbox_order_makes_payment(order->kind));
    if (payment->executions == 0) {
        return "state";
    }
    if (order->kind == IDEM_ORDER_CAPTURE && payment->canceled > 0) {
        return "state";
    }
    if (order->kind == IDEM_ORDER_REFUND) {
        limit = payment->captured;
        sum_add(&used, payment->refunded);
    } else {
        sum_add(&used, payment->captured);
        sum_add(&used, payment->canceled);
    }
    return used > limit ? "amount_exceeds" : NULL;
}

/* Whether a content that arrived takes the place of the one known. */
static bool content_replaces(const struct idem_ledger_effect *effect)
{
    return effect->order_memory == NULL || effect->status == IDEM_LEDGER_NONE ||
           !idem_sandbox_profile_rules(effect->profile)->deduplicates;
}

static void status_set(struct idem_ledger_effect *effect,
                       enum idem_ledger_status status,
                       const struct idem_ledger_event *event)
{
    if (effect->status == IDEM_LEDGER_NONE) {
        effect->known_us = event->at_us;
    }
    effect->status = status;
    effect->code = text_keep(effect->code_text, sizeof(effect->code_text), event->code);
}

static void execution_apply(struct idem_ledger *ledger,
                            struct idem_ledger_effect *effect,
                            const struct idem_ledger_event *event)
{
    status_set(effect, IDEM_LEDGER_SUCCEEDED, event);
    effect->reference =
        text_keep(effect->reference_text, sizeof(effect->reference_text), event->reference);
    effect->executions += 1;
    ledger->executions += 1;
    if (effect->executions == 1) {
        effect->executed_us = event->at_us;
        effect->execution_no = ledger->executions;
    }
    sums_move(ledger, effect, sum_add);
}

static void apply(struct idem_ledger *ledger,
                  struct idem_ledger_effect *effect,
                  const struct idem_ledger_event *event)
{
    if (event->settles && effect->processing > 0) {
        effect->processing -= 1;
    }
    if (event->trace.len > 0) {
        effect->trace = text_keep(effect->trace_text, sizeof(effect->trace_text), event->trace);
    }
    switch (event->kind) {
    case IDEM_LEDGER_ARRIVAL:
        effect->arrivals += 1;
        effect->conflicts += event->other ? 1 : 0;
        return;
    case IDEM_LEDGER_EXECUTION:
        execution_apply(ledger, effect, event);
        return;
    case IDEM_LEDGER_DECLINE:
        if (effect->executions == 0) { /* Money that moved stays moved. */
            status_set(effect, IDEM_LEDGER_DECLINED, event);
        }
        return;
    case IDEM_LEDGER_PROCESSING:
        status_set(effect, IDEM_LEDGER_IN_PROCESS, event);
        effect->processing += 1;
        effect->due_us = event->due_us;
        effect->due_fails = event->fails;
        return;
    case IDEM_LEDGER_INVALID:
        status_set(effect, IDEM_LEDGER_REFUSED, event);
        return;
    case IDEM_LEDGER_QUERY:
        effect->queries += 1;
        return;
    case IDEM_LEDGER_LISTING:
        effect->listings += 1;
        return;
    case IDEM_LEDGER_CLOSE:
        effect->closes += 1;
        if (event->closes) {
            status_set(effect, IDEM_LEDGER_CLOSED, event);
        }
        return;
    case IDEM_LEDGER_REVERSAL:
        effect->reversals += 1;
        sums_move(ledger, effect, sum_take);
        return;
    case IDEM_LEDGER_CALLBACK:
        effect->callbacks += 1;
        effect->callbacks_taken += event->taken ? 1 : 0;
        return;
    case IDEM_LEDGER_NOTHING:
    case IDEM_LEDGER_EVENT_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* An event that has its effect, and the memory that applying it needs. */
struct prepared {
    struct idem_ledger_effect *effect;
    bool is_new;
    struct idem_sandbox_order order;
    void *order_memory;
};

static void prepared_undo(const struct prepared *prepared)
{
    free(prepared->order_memory);
    if (prepared->is_new) {
        effect_destroy(prepared->effect);
    }
}

/* False: no memory. */
static bool prepare(const struct idem_ledger *ledger,
                    const struct idem_ledger_event *event,
                    struct prepared *prepared)
{
    *prepared = (struct prepared){ .effect = idem_ledger_find(ledger, event->profile, event->id) };
    if (prepared->effect == NULL) {
        prepared->effect = effect_create(event->profile, event->id);
        prepared->is_new = true;
    }
    if (prepared->effect == NULL) {
        return false;
    }
    if (event->order == NULL || !content_replaces(prepared->effect)) {
        return true;
    }
    prepared->order_memory = idem_sandbox_order_copy(event->order, &prepared->order);
    if (prepared->order_memory == NULL) {
        prepared_undo(prepared);
        return false;
    }
    return true;
}

static void prepared_apply(struct idem_ledger *ledger,
                           struct prepared *prepared,
                           const struct idem_ledger_event *event)
{
    struct idem_ledger_effect *effect = prepared->effect;

    if (prepared->is_new) {
        effect_insert(ledger, effect);
    }
    if (prepared->order_memory != NULL) {
        free(effect->order_memory);
        effect->order = prepared->order;
        effect->order_memory = prepared->order_memory;
    }
    apply(ledger, effect, event);
}

enum idem_err idem_ledger_record(struct idem_ledger *ledger,
                                 const struct idem_ledger_event *event,
                                 struct idem_error *reterr)
{
    struct prepared prepared;
    struct idem_buf line;

    if (!prepare(ledger, event, &prepared)) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "ledger: no memory");
    }
    idem_buf_init(&line, ledger->line_memory, IDEM_EVENT_LINE_MAX);
    idem_ledger_event_print(event, &line);
    IDEM_ASSERT(!line.full);
    enum idem_err err = idem_sandbox_journal_append(&ledger->journal, idem_buf_str(&line), reterr);
    if (err != IDEM_OK) {
        prepared_undo(&prepared);
        return err;
    }
    prepared_apply(ledger, &prepared, event);
    return IDEM_OK;
}

static enum idem_err line_apply(void *context, struct idem_str line, struct idem_error *reterr)
{
    struct idem_ledger *ledger = context;
    struct idem_ledger_event event;
    struct idem_sandbox_order order;
    struct prepared prepared;
    struct idem_buf memory;

    ledger->lines_read += 1;
    idem_buf_init(&memory, ledger->text_memory, IDEM_EVENT_LINE_MAX);
    if (!idem_ledger_event_read(line, &memory, &order, &event)) {
        return idem_error_set(reterr, IDEM_E_INVALID, "ledger: line %zu is not one of ours",
                              ledger->lines_read);
    }
    if (!prepare(ledger, &event, &prepared)) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "ledger: no memory");
    }
    bool moves = event.kind == IDEM_LEDGER_EXECUTION || event.kind == IDEM_LEDGER_REVERSAL;
    if (moves && prepared.effect->order_memory == NULL) {
        prepared_undo(&prepared);
        return idem_error_set(reterr, IDEM_E_INVALID, "ledger: line %zu moves what never arrived",
                              ledger->lines_read);
    }
    prepared_apply(ledger, &prepared, &event);
    return IDEM_OK;
}

enum idem_err idem_ledger_create(const char *path,
                                 struct idem_ledger **ret_ledger,
                                 struct idem_error *reterr)
{
    struct idem_ledger *ledger = calloc(1, sizeof(*ledger));

    if (ledger == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "ledger: no memory");
    }
    ledger->journal.fd = -1;
    ledger->bucket_count = BUCKETS_FIRST;
    ledger->buckets = calloc(BUCKETS_FIRST, sizeof(struct idem_ledger_effect *));
    ledger->line_memory = malloc(IDEM_EVENT_LINE_MAX);
    ledger->text_memory = malloc(IDEM_EVENT_LINE_MAX);
    enum idem_err err = IDEM_OK;
    if (ledger->buckets == NULL || ledger->line_memory == NULL || ledger->text_memory == NULL) {
        err = idem_error_set(reterr, IDEM_E_SYSTEM, "ledger: no memory");
    }
    if (err == IDEM_OK) {
        err = idem_sandbox_journal_open(&ledger->journal, path, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sandbox_journal_replay(&ledger->journal, line_apply, ledger, reterr);
    }
    if (err != IDEM_OK) {
        idem_ledger_destroy(ledger);
        return err;
    }
    *ret_ledger = ledger;
    return IDEM_OK;
}

void idem_ledger_destroy(struct idem_ledger *ledger)
{
    if (ledger == NULL) {
        return;
    }
    struct idem_list_node *node = idem_list_pop(&ledger->effects);
    while (node != NULL) {
        effect_destroy(effect_at(node));
        node = idem_list_pop(&ledger->effects);
    }
    idem_sandbox_journal_close(&ledger->journal);
    free(ledger->buckets);
    free(ledger->line_memory);
    free(ledger->text_memory);
    free(ledger);
}

const struct idem_list *idem_ledger_effects(const struct idem_ledger *ledger)
{
    return &ledger->effects;
}

int64_t idem_ledger_executions(const struct idem_ledger *ledger)
{
    return ledger->executions;
}
