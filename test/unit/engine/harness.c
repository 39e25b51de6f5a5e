/*
 * Answers of the store are replaced in a table of operations that stands in front of its own. An
 * outcome is true only if its item is DURABLE, and a store may have filled it in part before it
 * failed: behind every other answer there is nonsense here, so that nobody can rest on it.
 */
#include "unit/engine/harness.h"

#include "base/attr.h"
#include "store/memory/memory.h"

struct harness harness;

static int64_t clock_wall(struct idem_clock *clock)
{
    return clock->wall_base_us + harness.mono_us;
}

static int64_t clock_mono(struct idem_clock *clock)
{
    (void)clock;
    return harness.mono_us;
}

static const struct idem_clock_ops clock_ops = { .wall_us = clock_wall, .mono_us = clock_mono };

static uint64_t next_noise(void)
{
    harness.noise = harness.noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return harness.noise >> 24;
}

static void random_fill(struct idem_random *random, void *ret_bytes, size_t size)
{
    (void)random;
    uint8_t *bytes = ret_bytes;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)next_noise();
    }
}

static const struct idem_random_ops random_ops = { .fill = random_fill };

static void encode(const struct idem_effect_order *order, struct idem_buf *buf)
{
    idem_buf_add(buf, IDEM_STR("pay "));
    idem_buf_add(buf, order->effect->id);
}

/* ---- the store ---- */

static void set_answers(struct idem_store_batch *batch, enum idem_store_answer answer)
{
    IDEM_LIST_FOREACH (node, &batch->items) {
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        item->answer = answer;
        memset(item->outcome, 0x2a, sizeof(*item->outcome));
    }
    batch->answer = answer;
}

static void wake_owner(const struct idem_store *store)
{
    store->options.wake(store->options.wake_context);
}

static void refuse(struct idem_store_batch *batch, enum idem_store_answer answer)
{
    set_answers(batch, answer);
    idem_list_push(&harness.refused, &batch->node);
    wake_owner(harness.store);
}

static enum batch_fate next_fate(void)
{
    if (harness.fate_count == 0) {
        return BATCH_AS_IT_IS;
    }
    enum batch_fate fate = harness.fates[0];
    harness.fate_count -= 1;
    memmove(harness.fates, harness.fates + 1, harness.fate_count * sizeof(harness.fates[0]));
    return fate;
}

static bool is_refused(const struct idem_store_item *item)
{
    return harness.refuses && item->command.kind == IDEM_COMMAND_EVIDENCE &&
           memcmp(&item->command.scope, &harness.refused_scope, sizeof(harness.refused_scope)) == 0;
}

/* Looks at a batch; true if it must not be written. */
static bool look_at(const struct idem_store_batch *batch)
{
    size_t counts[IDEM_COMMAND_COUNT] = { 0 };
    bool has_refused = false;
    IDEM_LIST_FOREACH (node, &batch->items) {
        const struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        size_t *most = &harness.most[item->command.kind];
        counts[item->command.kind] += 1;
        *most = counts[item->command.kind] > *most ? counts[item->command.kind] : *most;
        has_refused = has_refused || is_refused(item);
    }
    harness.refused_alone += has_refused && batch->items.count == 1 ? 1 : 0;
    harness.refused_among += has_refused && batch->items.count > 1 ? 1 : 0;
    return has_refused;
}

static void fate_take(struct idem_store *store,
                      struct idem_store_batch *batch,
                      enum batch_fate fate)
{
    switch (fate) {
    case BATCH_AS_IT_IS:
        harness.store_ops->submit(store, batch);
        return;
    case BATCH_UNKNOWN_DONE:
        harness.store_ops->submit(store, batch);
        set_answers(batch, IDEM_STORE_UNKNOWN);
        return;
    case BATCH_UNKNOWN_LOST:
        refuse(batch, IDEM_STORE_UNKNOWN);
        return;
    case BATCH_NOTHING:
        refuse(batch, IDEM_STORE_NOTHING);
        return;
    case BATCH_DOWN:
        refuse(batch, IDEM_STORE_DOWN);
        return;
    case BATCH_CONFLICT:
        refuse(batch, IDEM_STORE_CONFLICT);
        return;
    case BATCH_HUNG:
        idem_list_push(&harness.hung, &batch->node);
        return;
    }
}

static void store_submit(struct idem_store *store, struct idem_store_batch *batch)
{
    if (look_at(batch)) {
        refuse(batch, IDEM_STORE_CONFLICT);
        return;
    }
    fate_take(store, batch, next_fate());
}

/* What an earlier look left in the read stays there: only DURABLE makes it true. */
static void store_read(struct idem_store *store, struct idem_read *read)
{
    harness.asked[read->kind] += 1;
    if (read->kind == IDEM_READ_WAITED && read->waited_count > harness.waited_most) {
        harness.waited_most = read->waited_count;
    }
    if (harness.reads_refused == 0) {
        harness.store_ops->read(store, read);
        return;
    }
    harness.reads_refused -= 1;
    read->answer = IDEM_STORE_NOTHING;
    idem_list_push(&harness.reads, &read->node);
    wake_owner(store);
}

static void store_reap(struct idem_store *store,
                       struct idem_list *ret_batches,
                       struct idem_list *ret_reads)
{
    if (harness.batches_held) {
        return;
    }
    harness.store_ops->reap(store, ret_batches, &harness.reads);
    idem_list_join(ret_batches, &harness.refused);
    if (!harness.reads_held) {
        idem_list_join(ret_reads, &harness.reads);
    }
}

static bool store_heard(struct idem_store *store)
{
    (void)store;
    bool heard = harness.heard;
    harness.heard = false;
    return heard;
}

static void wake(void *context)
{
    (void)context; /* The test steps. */
}

/* ---- the port ---- */

static enum idem_evidence_source source_of(enum idem_call_kind kind)
{
    return kind == IDEM_CALL_SEND    ? IDEM_SOURCE_SEND
           : kind == IDEM_CALL_QUERY ? IDEM_SOURCE_QUERY
                                     : IDEM_SOURCE_CLOSE;
}

static void answer_call(struct idem_call *call, enum idem_outcome_kind outcome)
{
    struct idem_buf buf;
    idem_buf_init(&buf, call->memory, sizeof(call->memory));
    call->evidence = (struct idem_evidence){
        .source = source_of(call->kind),
        .outcome = outcome,
        .entry = idem_buf_keep(&buf, call->effect.entry),
        .account = idem_buf_keep(&buf, call->effect.account),
        .region = idem_buf_keep(&buf, call->effect.region),
        .effect_id = idem_buf_keep(&buf, call->effect.id),
        .amount_minor = call->effect.amount_minor,
        .currency = idem_buf_keep(&buf, call->effect.currency),
        .reference = idem_buf_keep(&buf, IDEM_STR("provider-1")),
        .retry_after_us = harness.retry_after_us,
    };
    idem_list_push(&harness.answered, &call->node);
}

static enum idem_err port_submit(struct idem_port *port, struct idem_call *call)
{
    (void)port;
    if (harness.port_full) {
        return IDEM_E_LIMIT;
    }
    assert_true(call->not_after_us > harness.mono_us);
    assert_true(call->trace.len <= IDEM_TRACE_MAX);
    (void)snprintf(harness.trace, sizeof(harness.trace), "%.*s", (int)call->trace.len,
                   call->trace.data);
    if (call->kind == IDEM_CALL_SEND) {
        assert_true(harness.sent_count < SENT_MAX);
        memcpy(harness.sent_ids[harness.sent_count], call->effect.id.data, IDEM_EFFECT_ID_LEN);
        harness.sent_count += 1;
    }
    harness.sends += call->kind == IDEM_CALL_SEND ? 1 : 0;
    harness.queries += call->kind == IDEM_CALL_QUERY ? 1 : 0;
    harness.closes += call->kind == IDEM_CALL_CLOSE ? 1 : 0;
    bool hangs = call->kind == IDEM_CALL_SEND && idem_str_equal(call->effect.entry, harness.hangs);
    if (harness.hold || hangs) {
        idem_list_push(&harness.held, &call->node);
    } else {
        answer_call(call, harness.outcome);
    }
    return IDEM_OK;
}

static void port_reap(struct idem_port *port, struct idem_list *ret_done)
{
    (void)port;
    idem_list_join(ret_done, &harness.answered);
}

/* No byte has left a call that is held. */
static void port_cancel(struct idem_port *port, struct idem_call *call)
{
    (void)port;
    idem_list_remove(&harness.held, &call->node);
    answer_call(call, IDEM_OUTCOME_NOT_EXECUTED);
}

/* The cursor is the number of the next effect. */
static void list_page(struct idem_listing *listing)
{
    size_t next = (size_t)strtoul(listing->cursor, NULL, 10);
    idem_buf_init(&listing->kept, listing->memory, sizeof(listing->memory));
    listing->count = 0;
    while (next < harness.listed_count && listing->count < harness.page_max) {
        struct idem_listed listed = harness.listed[next];
        next += 1;
        if (listed.happened_us < listing->from_us || listed.happened_us >= listing->to_us) {
            continue;
        }
        listed.effect_id = idem_buf_keep(&listing->kept, listed.effect_id);
        listed.currency = idem_buf_keep(&listing->kept, listed.currency);
        listing->listed[listing->count] = listed;
        listing->count += 1;
    }
    listing->answered = true;
    listing->more = next < harness.listed_count;
    (void)snprintf(listing->cursor, sizeof(listing->cursor), "%d", (int)next);
}

static enum idem_err port_list(struct idem_port *port, struct idem_listing *listing)
{
    (void)port;
    if (harness.listings_full) {
        return IDEM_E_LIMIT;
    }
    harness.listings += 1;
    harness.listed_from_us = listing->from_us;
    harness.listed_to_us = listing->to_us;
    listing->answered = false;
    if (harness.listings_failed > 0) {
        harness.listings_failed -= 1;
    } else {
        list_page(listing);
    }
    idem_list_push(&harness.listings_done, &listing->node);
    return IDEM_OK;
}

static void port_reap_listings(struct idem_port *port, struct idem_list *ret_done)
{
    (void)port;
    if (!harness.listings_held) {
        idem_list_join(ret_done, &harness.listings_done);
    }
}

static void port_destroy(struct idem_port *port)
{
    (void)port;
}

static const struct idem_port_ops port_ops = {
    .submit = port_submit,
    .reap = port_reap,
    .cancel = port_cancel,
    .list = port_list,
    .reap_listings = port_reap_listings,
    .destroy = port_destroy,
};

void harness_answer(enum idem_outcome_kind outcome)
{
    for (struct idem_list_node *node = idem_list_pop(&harness.held); node != NULL;
         node = idem_list_pop(&harness.held)) {
        answer_call(IDEM_CONTAINER_OF(node, struct idem_call, node), outcome);
    }
    harness_step();
}

/* ---- the engine ---- */

void harness_begin(void)
{
    harness = (struct harness){
        .noise = 20261129,
        .mono_us = 1000 * SECOND,
        .clock = { .ops = &clock_ops, .wall_base_us = INT64_C(1700000000) * SECOND },
        .random = { .ops = &random_ops },
        .port = { .ops = &port_ops },
        .outcome = IDEM_OUTCOME_SUCCESS,
        .page_max = IDEM_LISTING_MAX,
    };
    harness.entry = (struct idem_provider_rules){
        .entry = IDEM_STR("sandbox"),
        .account = IDEM_STR("account"),
        .region = IDEM_STR("region"),
        .request_timeout_us = 20 * SECOND,
        .settle_us = 10 * SECOND,
        .encode = encode,
    };
    for (unsigned kind = IDEM_EFFECT_KIND_CHARGE; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        harness.entry.capability[kind].query = IDEM_QUERY_AT_ONCE;
    }
    harness.rules = idem_rules_default();
    harness.rules.retry_first_us = SECOND;
    harness.rules.providers = &harness.entry;
    harness.rules.provider_count = 1;
    harness.options = idem_engine_options_default();
}

void harness_start_on(struct idem_store *store)
{
    struct idem_error error = { .text = "" };
    harness.store = store;
    harness.store_ops = store->ops;
    harness.wrapped = *store->ops;
    harness.wrapped.submit = store_submit;
    harness.wrapped.read = store_read;
    harness.wrapped.reap = store_reap;
    harness.wrapped.heard = store_heard;
    store->ops = &harness.wrapped;
    harness.options.store = store;
    harness.options.port = &harness.port;
    harness.options.rules = &harness.rules;
    harness.options.clock = &harness.clock;
    harness.options.random = &harness.random;
    assert_int_equal(idem_engine_create(&harness.options, &harness.engine, &error), IDEM_OK);
}

void harness_start(void)
{
    struct idem_error error = { .text = "" };
    struct idem_store *store = NULL;
    const struct idem_store_options options = {
        .rules = &harness.rules,
        .clock = &harness.clock,
        .wake = wake,
        .scope_rule = IDEM_STR("endpoint"),
    };
    assert_int_equal(idem_memory_open(&options, &store, &error), IDEM_OK);
    harness_start_on(store);
}

void harness_end(void)
{
    assert_true(idem_engine_idle(harness.engine));
    idem_engine_destroy(harness.engine);
    idem_store_destroy(harness.store);
}

void harness_fate(enum batch_fate fate)
{
    assert_true(harness.fate_count < IDEM_ARRAY_COUNT(harness.fates));
    harness.fates[harness.fate_count] = fate;
    harness.fate_count += 1;
}

void harness_end_hung(enum batch_fate fate)
{
    struct idem_list_node *node = idem_list_pop(&harness.hung);
    assert_non_null(node);
    fate_take(harness.store, IDEM_CONTAINER_OF(node, struct idem_store_batch, node), fate);
    harness_step();
}

void harness_step(void)
{
    for (int i = 0; i < 6; i++) { /* An answer may need a call, which needs a commit. */
        idem_engine_step(harness.engine);
    }
}

void harness_pass(int64_t us)
{
    harness.mono_us += us;
    harness_step();
}

/* 26 digits of our base32 that the key decides; they live as long as the program. */
static struct idem_str effect_tail(uint64_t hash)
{
    static char tails[REQUESTS_MAX * 4][26];
    static size_t used;
    static const char digits[] = "abcdefghjkmnpqrs";
    char *tail = tails[used % IDEM_ARRAY_COUNT(tails)];
    used += 1;
    for (size_t i = 0; i < 26; i++) {
        tail[i] = digits[(hash >> (2 * i)) % 16];
    }
    return (struct idem_str){ .data = tail, .len = 26 };
}

/* As everywhere, the effect id names the scope. */
static void scope_of_tail(struct idem_str tail, struct idem_scope *ret_scope)
{
    char id[IDEM_EFFECT_ID_LEN] = { idem_effect_kind_letter(IDEM_EFFECT_KIND_CHARGE) };
    memcpy(id + 1, tail.data, tail.len);
    struct idem_str effect_id = { .data = id, .len = sizeof(id) };
    assert_true(idem_effect_id_scope(effect_id, ret_scope));
}

struct idem_request *harness_pay(struct idem_request *request, const char *key)
{
    *request = (struct idem_request){ .in_flight = IDEM_IN_FLIGHT_WAIT };
    struct idem_command *command = &request->item.command;
    command->kind = IDEM_COMMAND_ACCEPT;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *at = key; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
    }
    struct idem_str tail = effect_tail(hash);
    scope_of_tail(tail, &command->scope);
    command->accept = (struct idem_accept){
        .principal = IDEM_STR("shop"),
        .key = idem_str_from(key),
        .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
        .fingerprint_count = 1,
        .effect_id_tail = tail,
        .wait_us = 10 * SECOND,
        .order_no = idem_str_from(key),
        .amount_minor = 10000,
        .currency = IDEM_STR("CNY"),
        .entry = IDEM_STR("sandbox"),
        .capture_mode = IDEM_CAPTURE_AUTOMATIC,
    };
    command->accept.fingerprints[0] = (struct idem_fingerprint){ .rule_id = 1, .secret_id = 1 };
    return request;
}

void harness_submit(struct idem_request *request)
{
    idem_engine_submit(harness.engine, request);
    harness_step();
}

bool harness_done(struct idem_request *request)
{
    struct idem_list done = { .count = 0 };
    idem_engine_reap(harness.engine, &done);
    while (idem_list_pop(&done) != NULL) {
    }
    return request->reply != IDEM_REPLY_NONE;
}

size_t harness_sent(struct idem_str id)
{
    size_t count = 0;
    for (size_t i = 0; i < harness.sent_count; i++) {
        struct idem_str sent = { .data = harness.sent_ids[i], .len = IDEM_EFFECT_ID_LEN };
        count += idem_str_equal(sent, id) ? 1 : 0;
    }
    return count;
}

const struct idem_read *harness_operation(const struct idem_request *request)
{
    static struct idem_read read;
    read = (struct idem_read){
        .kind = IDEM_READ_OPERATION_BY_SCOPE,
        .principal = IDEM_STR("shop"),
        .scope = request->item.command.scope,
    };
    struct idem_list done = { .count = 0 };
    read.done = &done;
    idem_engine_read(harness.engine, &read);
    idem_engine_step(harness.engine);
    assert_ptr_equal(idem_list_pop(&done), &read.node);
    return &read;
}

size_t harness_recover(void)
{
    static struct idem_read read;
    read = (struct idem_read){
        .kind = IDEM_READ_DUE,
        .now_us = idem_clock_wall_us(&harness.clock),
    };
    struct idem_list done = { .count = 0 };
    read.done = &done;
    idem_engine_read(harness.engine, &read);
    idem_engine_step(harness.engine);
    assert_ptr_equal(idem_list_pop(&done), &read.node);
    size_t taken = 0;
    while (taken < read.due_count &&
           idem_engine_recover(harness.engine, &read.due[taken]) == IDEM_OK) {
        taken += 1;
    }
    harness_step();
    return taken;
}

const char *reply_name(struct idem_request *request)
{
    static char text[64];
    (void)harness_done(request);
    switch (request->reply) {
    case IDEM_REPLY_NONE:
        return "pending";
    case IDEM_REPLY_ANSWER:
        (void)snprintf(text, sizeof(text), "answer %d%s", request->outcome.intent.answer.status,
                       request->replayed ? " replayed" : "");
        return text;
    case IDEM_REPLY_PROBLEM:
        (void)snprintf(text, sizeof(text), "problem %s",
                       idem_problem_entry(request->problem)->code);
        return text;
    case IDEM_REPLY_OPERATION:
        return "operation";
    case IDEM_REPLY_COUNT:
        break;
    }
    abort();
}
