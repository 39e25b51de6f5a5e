/*
 * What is judged, after whatever failed:
 *
 *   - the store opens again, and what a caller was told as final comes back byte for byte (P4);
 *   - the provider's books have at most one execution of each effect (P3), one where somebody was
 *     told that it happened, none where somebody was told that nothing did, at the moment of
 *     telling and, without a request, later on;
 *   - everything ends: with an answer, or parked where the provider never saw it (P9).
 */
#include "torture/world.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/attr.h"
#include "base/bug.h"
#include "engine/engine.h"
#include "store/sqlite/sqlite.h"
#include "torture/fault.h"
#include "torture/place.h"
#include "worker/recovery.h"

#define SECOND      IDEM_US_PER_SECOND
#define WAIT_MAX_S  20
#define ROUNDS_MAX  4000
#define TRIES_MAX   200
#define REST_ROUNDS 60

/* How the provider takes a deed. */
enum fate {
    FATE_DONE = 0,
    FATE_LOST,
    FATE_DECLINED,
    FATE_REFUSED
};

static const struct {
    const char *key;
    enum idem_endpoint endpoint;
    enum fate fate;
    enum deed of; /* Whose payment. */
    bool manual;
    bool dedup; /* At the entry that knows a second send. */
} deeds[DEED_COUNT] = {
    [DEED_OLD] = { "old", IDEM_ENDPOINT_PAYMENTS_CREATE, FATE_DONE, DEED_OLD, false, false },
    [DEED_HELD] = { "held", IDEM_ENDPOINT_PAYMENTS_CREATE, FATE_DONE, DEED_HELD, true, false },
    [DEED_PAY] = { "pay", IDEM_ENDPOINT_PAYMENTS_CREATE, FATE_DONE, DEED_PAY, false, true },
    [DEED_LOST] = { "lost", IDEM_ENDPOINT_PAYMENTS_CREATE, FATE_LOST, DEED_LOST, false, false },
    [DEED_BAD] = { "bad", IDEM_ENDPOINT_PAYMENTS_CREATE, FATE_DECLINED, DEED_BAD, false, false },
    [DEED_NEVER] = { "never", IDEM_ENDPOINT_PAYMENTS_CREATE, FATE_REFUSED, DEED_NEVER, false,
                     false },
    [DEED_REFUND] = { "refund", IDEM_ENDPOINT_REFUNDS_CREATE, FATE_DONE, DEED_OLD, false, false },
    [DEED_CAPTURE] = { "capture", IDEM_ENDPOINT_PAYMENTS_CAPTURE, FATE_DONE, DEED_HELD, false,
                       false },
};

/* Of one deed: the provider's page, and what its caller knows. */
struct page {
    size_t arrivals;
    size_t executions;
    bool refused; /* Finally. */

    bool none; /* The last thing told: nothing happened. */

    bool answered; /* Told as final: */
    uint16_t status;
    struct idem_uid payment_id;
    size_t headers_len;
    size_t body_len;
    char headers[1024];
    char body[4096];
};

/* The process's, as `deeds` is; a run begins with what world_keep() kept. */
static struct page pages[DEED_COUNT];
static struct page pages_kept[DEED_COUNT];
static struct page pages_dead[DEED_COUNT];
static int64_t mono_kept_us;
static char tails[DEED_COUNT][26];

static struct {
    struct idem_clock clock;
    struct idem_random random;
    struct idem_provider_rules entries[2]; /* Without and with deduplication. */
    struct idem_rules rules;
    struct idem_port port;
    struct idem_list answered; /* Calls. */
    struct idem_store *store;
    struct idem_engine *engine;
    struct idem_recovery *recovery;
    struct idem_request request;
    _Atomic int64_t mono_us;
    uint64_t noise;
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    size_t wakes;
    bool hung;
    bool armed_asks; /* What is asked may fail. */
} world = { .mutex = PTHREAD_MUTEX_INITIALIZER, .woken = PTHREAD_COND_INITIALIZER };

struct idem_digest world_secret_check = { .bytes = { 1, 2, 3 } };
void (*world_on_send)(enum deed deed);

/* ---- clock, dice, waking ---- */

static int64_t clock_wall(struct idem_clock *clock)
{
    return clock->wall_base_us + atomic_load(&world.mono_us);
}

static int64_t clock_mono(struct idem_clock *clock)
{
    (void)clock;
    return atomic_load(&world.mono_us);
}

static const struct idem_clock_ops clock_ops = { .wall_us = clock_wall, .mono_us = clock_mono };

static void random_fill(struct idem_random *random, void *ret_bytes, size_t size)
{
    (void)random;
    uint8_t *bytes = ret_bytes;
    for (size_t i = 0; i < size; i++) {
        world.noise = world.noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (uint8_t)(world.noise >> 32);
    }
}

static const struct idem_random_ops random_ops = { .fill = random_fill };

static void must(int rc)
{
    IDEM_ASSERT(rc == 0);
}

static void wake(void *context)
{
    (void)context;
    must(pthread_mutex_lock(&world.mutex));
    world.wakes += 1;
    must(pthread_cond_signal(&world.woken));
    must(pthread_mutex_unlock(&world.mutex));
}

static void wait_for_store(void)
{
    struct timespec end;
    must(clock_gettime(CLOCK_REALTIME, &end));
    end.tv_sec += WAIT_MAX_S;
    must(pthread_mutex_lock(&world.mutex));
    while (world.wakes == 0 && !world.hung) {
        world.hung = pthread_cond_timedwait(&world.woken, &world.mutex, &end) == ETIMEDOUT;
    }
    world.wakes = 0;
    must(pthread_mutex_unlock(&world.mutex));
    if (world.hung) {
        torture_violation("the store did not answer within %d s", WAIT_MAX_S);
    }
}

/* ---- the provider ---- */

static void encode(const struct idem_effect_order *order, struct idem_buf *buf)
{
    idem_buf_add(buf, IDEM_STR("do "));
    idem_buf_add(buf, order->effect->id);
}

static enum deed deed_of(struct idem_str effect_id)
{
    for (int deed = 0; deed < DEED_COUNT; deed++) {
        if (effect_id.len == IDEM_EFFECT_ID_LEN &&
            memcmp(effect_id.data + 1, tails[deed], sizeof(tails[deed])) == 0) {
            return (enum deed)deed;
        }
    }
    return DEED_COUNT;
}

static enum idem_outcome_kind send_take(enum deed deed)
{
    struct page *page = &pages[deed];
    page->arrivals += 1;
    if (deeds[deed].dedup && page->executions > 0) {
        return IDEM_OUTCOME_SUCCESS;
    }
    switch (deeds[deed].fate) {
    case FATE_DONE:
        page->executions += 1;
        return IDEM_OUTCOME_SUCCESS;
    case FATE_LOST:
        page->executions += 1;
        return IDEM_OUTCOME_UNKNOWN;
    case FATE_DECLINED:
        page->refused = true;
        return IDEM_OUTCOME_REFUSED_FINAL;
    case FATE_REFUSED:
        return IDEM_OUTCOME_NOT_EXECUTED;
    }
    IDEM_UNREACHABLE();
}

static void call_answer(struct idem_call *call, enum idem_outcome_kind outcome)
{
    struct idem_buf buf;
    idem_buf_init(&buf, call->memory, sizeof(call->memory));
    call->evidence = (struct idem_evidence){
        .source = idem_call_source(call->kind),
        .outcome = outcome,
        .entry = idem_buf_keep(&buf, call->effect.entry),
        .account = idem_buf_keep(&buf, call->effect.account),
        .region = idem_buf_keep(&buf, call->effect.region),
        .effect_id = idem_buf_keep(&buf, call->effect.id),
        .amount_minor = call->effect.amount_minor,
        .currency = idem_buf_keep(&buf, call->effect.currency),
        .reference = idem_buf_keep(&buf, IDEM_STR("provider-1")),
        .asked_us = idem_clock_wall_us(&world.clock),
    };
    idem_list_push(&world.answered, &call->node);
}

static enum idem_err port_submit(struct idem_port *port, struct idem_call *call)
{
    (void)port;
    enum deed deed = deed_of(call->effect.id);
    if (deed == DEED_COUNT) {
        torture_violation("a call under an id that nobody asked for");
        call_answer(call, IDEM_OUTCOME_UNKNOWN);
    } else if (call->kind == IDEM_CALL_SEND) {
        call_answer(call, send_take(deed));
        if (world_on_send != NULL) {
            world_on_send(deed);
        }
    } else {
        const struct page *page = &pages[deed];
        call_answer(call, page->executions > 0 ? IDEM_OUTCOME_SUCCESS
                          : page->refused      ? IDEM_OUTCOME_REFUSED_FINAL
                                               : IDEM_OUTCOME_NOT_FOUND);
    }
    return IDEM_OK;
}

static void port_reap(struct idem_port *port, struct idem_list *ret_done)
{
    (void)port;
    idem_list_join(ret_done, &world.answered);
}

/* Calls are answered as they come. */
static void port_cancel(struct idem_port *port, struct idem_call *call)
{
    (void)port;
    (void)call;
}

static const struct idem_port_ops port_ops = {
    .submit = port_submit,
    .reap = port_reap,
    .cancel = port_cancel,
};

/* ---- the service ---- */

static struct idem_provider_rules entry_make(struct idem_str name)
{
    struct idem_provider_rules entry = {
        .entry = name,
        .account = IDEM_STR("account"),
        .region = IDEM_STR("region"),
        .partial_capture = IDEM_PARTIAL_MANY,
        .request_timeout_us = 2 * SECOND,
        .settle_us = SECOND,
        .encode = encode,
    };
    for (unsigned kind = IDEM_EFFECT_KIND_CHARGE; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        entry.capability[kind].query = IDEM_QUERY_AT_ONCE;
    }
    return entry;
}

void world_init(void)
{
    static const char digits[] = "abcdefghjkmnpqrs";
    memset(pages, 0, sizeof(pages));
    for (size_t deed = 0; deed < DEED_COUNT; deed++) {
        uint64_t hash = (deed + 1) * UINT64_C(0x9e3779b97f4a7c15);
        for (size_t i = 0; i < sizeof(tails[deed]); i++) {
            tails[deed][i] = digits[hash >> (2 * i) & 15];
        }
    }
    world.noise = 20261129;
    atomic_store(&world.mono_us, 1000 * SECOND);
    world.entries[0] = entry_make(IDEM_STR("plain"));
    world.entries[1] = entry_make(IDEM_STR("dedup"));
    for (unsigned kind = IDEM_EFFECT_KIND_CHARGE; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        world.entries[1].capability[kind].dedup_window_us = IDEM_US_PER_DAY;
        world.entries[1].capability[kind].dedup_margin_us = 3600 * SECOND;
    }
    world.rules = idem_rules_default();
    world.rules.retry_first_us = SECOND;
    world.rules.providers = world.entries;
    world.rules.provider_count = 2;
}

void world_keep(void)
{
    memcpy(pages_kept, pages, sizeof(pages));
    mono_kept_us = atomic_load(&world.mono_us);
}

void world_back(void)
{
    world.armed_asks = true;
    memcpy(pages, pages_kept, sizeof(pages));
    atomic_store(&world.mono_us, mono_kept_us);
}

/* The process's own files may be closed and written as they may: what is judged is the image. */
void world_return(void)
{
    memcpy(pages, pages_dead, sizeof(pages));
    torture_file_remove("store.db-shm");
    torture_file_copy("dead.db", "store.db");
    torture_file_copy("dead.db-wal", "store.db-wal");
}

static enum idem_err parts_open(struct idem_error *reterr)
{
    const struct idem_store_options store_options = {
        .rules = &world.rules,
        .clock = &world.clock,
        .wake = wake,
        .effect_secret_check = world_secret_check,
        .scope_rule = IDEM_STR("endpoint"),
    };
    enum idem_err err = idem_sqlite_open(torture_path, &store_options, &world.store, reterr);
    if (err != IDEM_OK) {
        return err;
    }
    struct idem_engine_options options = idem_engine_options_default();
    options.store = world.store;
    options.port = &world.port;
    options.rules = &world.rules;
    options.clock = &world.clock;
    options.random = &world.random;
    options.requests_max = 8;
    options.sends_max = 4;
    options.recoveries_max = 4;
    options.cache_entries = 8;
    err = idem_engine_create(&options, &world.engine, reterr);
    if (err == IDEM_OK) {
        err = idem_recovery_create(world.engine, &world.clock, &world.recovery);
        return err == IDEM_OK ? err : idem_error_set(reterr, err, "no memory for the worker");
    }
    return err;
}

static void parts_destroy(void)
{
    idem_recovery_destroy(world.recovery);
    idem_engine_destroy(world.engine);
    if (world.store != NULL) {
        idem_store_stop(world.store);
    }
    idem_store_destroy(world.store);
    world.recovery = NULL;
    world.engine = NULL;
    world.store = NULL;
}

enum idem_err world_open(struct idem_error *reterr)
{
    world.clock =
        (struct idem_clock){ .ops = &clock_ops, .wall_base_us = INT64_C(1700000000) * SECOND };
    world.random = (struct idem_random){ .ops = &random_ops };
    world.port = (struct idem_port){ .ops = &port_ops };
    world.answered = (struct idem_list){ .count = 0 };
    world.wakes = 0;
    world.hung = false;
    uint64_t failed = torture_flushes_failed();
    enum idem_err err = parts_open(reterr);
    if (err != IDEM_OK) {
        parts_destroy();
    } else if (torture_flushes_failed() > failed) {
        torture_violation("it opens although a flush failed");
    }
    return err;
}

static void reap(void)
{
    struct idem_list done = { .count = 0 };
    idem_engine_reap(world.engine, &done);
    while (idem_list_pop(&done) != NULL) { /* There is one request, and its reply says it. */
    }
}

/* Everything goes on once; the clock only if there is nothing to wait for. */
static void round_run(int64_t us)
{
    idem_engine_step(world.engine);
    idem_recovery_step(world.recovery);
    idem_engine_step(world.engine);
    reap();
    if (world.store->batches_in_flight + world.store->reads_in_flight > 0) {
        wait_for_store();
    } else {
        (void)atomic_fetch_add(&world.mono_us, us);
    }
}

void world_die(void)
{
    for (int i = 0; i < ROUNDS_MAX && !world.hung && world.store->batches_in_flight > 0; i++) {
        round_run(0);
    }
    torture_disarm();
    torture_file_copy("store.db", "dead.db");
    torture_file_copy("store.db-wal", "dead.db-wal");
    torture_resume();
    memcpy(pages_dead, pages, sizeof(pages));
}

/*
 * As the service does it: the door is closed, what can end ends, the rest is hurried. What a store
 * refuses even then a service leaves behind by ending without more ado; here it must be taken down,
 * and so the fault ends first.
 */
void world_close(void)
{
    idem_recovery_stop(world.recovery);
    idem_engine_drain(world.engine);
    bool hurried = false;
    for (int i = 0; i < ROUNDS_MAX && !world.hung && !idem_engine_idle(world.engine); i++) {
        if (!hurried && (world.store->broken || i > ROUNDS_MAX / 2)) {
            idem_engine_hurry(world.engine);
            hurried = true;
        }
        if (i == ROUNDS_MAX * 3 / 4) {
            torture_disarm();
        }
        round_run(SECOND / 100);
    }
    idem_recovery_step(world.recovery); /* Takes back what it was reading. */
    if (!idem_engine_idle(world.engine)) {
        torture_violation("the engine does not become idle");
        return;
    }
    parts_destroy();
}

void world_rest(void)
{
    for (int i = 0; i < REST_ROUNDS && !world.hung && !world.store->broken; i++) {
        round_run(SECOND / 2);
    }
}

/* ---- callers ---- */

static void request_fill(struct idem_request *request, enum deed deed)
{
    *request = (struct idem_request){ .in_flight = IDEM_IN_FLIGHT_WAIT };
    struct idem_command *command = &request->item.command;
    char id[IDEM_EFFECT_ID_LEN] = { idem_effect_kind_letter(IDEM_EFFECT_KIND_CHARGE) };
    memcpy(id + 1, tails[deed], sizeof(tails[deed]));
    bool named =
        idem_effect_id_scope((struct idem_str){ .data = id, .len = sizeof(id) }, &command->scope);
    IDEM_ASSERT(named);
    command->kind = IDEM_COMMAND_ACCEPT;
    command->accept = (struct idem_accept){
        .principal = IDEM_STR("shop"),
        .key = idem_str_from(deeds[deed].key),
        .endpoint = deeds[deed].endpoint,
        .fingerprint_count = 1,
        .effect_id_tail = { .data = tails[deed], .len = sizeof(tails[deed]) },
        .wait_us = 3 * SECOND,
    };
    command->accept.fingerprints[0] = (struct idem_fingerprint){ .rule_id = 1, .secret_id = 1 };
    if (deeds[deed].endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        command->accept.order_no = idem_str_from(deeds[deed].key);
        command->accept.amount_minor = 10000;
        command->accept.currency = IDEM_STR("CNY");
        command->accept.entry = deeds[deed].dedup ? IDEM_STR("dedup") : IDEM_STR("plain");
        command->accept.capture_mode =
            deeds[deed].manual ? IDEM_CAPTURE_MANUAL : IDEM_CAPTURE_AUTOMATIC;
    } else {
        command->accept.payment_id = pages[deeds[deed].of].payment_id;
        command->subject_payment_id = command->accept.payment_id;
    }
}

static bool same(struct idem_str text, const char *kept, size_t len)
{
    return text.len == len && memcmp(text.data, kept, len) == 0;
}

/* A final answer. The second one must be the first. */
static void answer_note(enum deed deed, const struct idem_request *request)
{
    struct page *page = &pages[deed];
    const struct idem_answer *answer = &request->outcome.intent.answer;
    const char *key = deeds[deed].key;
    if (page->answered) {
        if (answer->status != page->status ||
            !same(answer->headers, page->headers, page->headers_len) ||
            !same(answer->body, page->body, page->body_len)) {
            torture_violation("%s: the answer changed from %u to %u", key, page->status,
                              answer->status);
        }
        return;
    }
    IDEM_ASSERT(answer->headers.len <= sizeof(page->headers));
    IDEM_ASSERT(answer->body.len <= sizeof(page->body));
    if (world.armed_asks && torture_flushes_failed() > 0) {
        torture_violation("%s: told as final after a flush failed", key);
    }
    page->answered = true;
    page->status = answer->status;
    page->headers_len = answer->headers.len;
    page->body_len = answer->body.len;
    memcpy(page->headers, answer->headers.data, answer->headers.len);
    memcpy(page->body, answer->body.data, answer->body.len);
    page->payment_id = request->outcome.intent.payment_id;
    size_t due = answer->status == 200 || answer->status == 201 ? 1 : 0;
    if (page->executions != due) {
        torture_violation("%s: told %u, and it executed %zu times", key, answer->status,
                          page->executions);
    }
}

static void reply_note(enum deed deed, const struct idem_request *request)
{
    struct page *page = &pages[deed];
    page->none = false;
    if (request->reply == IDEM_REPLY_ANSWER) {
        answer_note(deed, request);
    } else if (request->reply == IDEM_REPLY_PROBLEM) {
        page->none = idem_problem_entry(request->problem)->effect == IDEM_EFFECT_NONE;
        if (idem_problem_entry(request->problem)->effect == IDEM_EFFECT_DONE &&
            page->executions != 1) {
            torture_violation("%s: told done, and it is not", deeds[deed].key);
        }
    }
    if (page->none && page->executions > 0) {
        torture_violation("%s: told that nothing happened (%s), and it executed", deeds[deed].key,
                          idem_problem_entry(request->problem)->code);
    }
}

bool world_ask(enum deed deed)
{
    pages[deed].none = false; /* Asked again, it may happen. */
    request_fill(&world.request, deed);
    idem_engine_submit(world.engine, &world.request);
    reap(); /* What is in the engine's memory is answered at once. */
    for (int i = 0; i < ROUNDS_MAX && !world.hung && world.request.reply == IDEM_REPLY_NONE; i++) {
        round_run(SECOND / 100);
    }
    if (world.request.reply == IDEM_REPLY_NONE) {
        torture_violation("%s: no reply within its wait", deeds[deed].key);
        return false;
    }
    reply_note(deed, &world.request);
    return !world.store->broken && !world.hung;
}

/* ---- judging ---- */

static void books_judge(void)
{
    for (int deed = 0; deed < DEED_COUNT; deed++) {
        const struct page *page = &pages[deed];
        const char *key = deeds[deed].key;
        if (page->executions > 1) {
            torture_violation("%s: executed %zu times", key, page->executions);
        }
        if (page->none && page->executions > 0) {
            torture_violation("%s: told that nothing happened, and it executed later", key);
        }
        if (page->answered && page->executions != (page->status < 300 ? 1U : 0U)) {
            torture_violation("%s: told %u, and it executed %zu times", key, page->status,
                              page->executions);
        }
    }
}

/* It has ended, or stands in front of a person because the provider never saw it. */
static bool is_over(enum deed deed)
{
    const struct idem_request *request = &world.request;
    if (pages[deed].answered) {
        return true;
    }
    if (deeds[deed].fate == FATE_REFUSED && request->reply == IDEM_REPLY_PROBLEM &&
        request->problem == IDEM_PROBLEM_NOT_EXECUTED) {
        return true;
    }
    return request->reply == IDEM_REPLY_OPERATION &&
           request->outcome.intent.state == IDEM_INTENT_PARKED && pages[deed].executions == 0;
}

static void deed_judge(enum deed deed)
{
    bool was_answered = pages[deed].answered;
    bool over = false;
    for (int tries = 0; tries < TRIES_MAX && !over && world_ask(deed); tries++) {
        over = is_over(deed);
        if (was_answered && world.request.reply != IDEM_REPLY_ANSWER) {
            torture_violation("%s: the answer is gone", deeds[deed].key);
        }
    }
    if (!over) {
        torture_violation("%s: never ends (reply %d, problem %d, state %d)", deeds[deed].key,
                          (int)world.request.reply, (int)world.request.problem,
                          (int)world.request.outcome.intent.state);
    }
}

void world_judge(void)
{
    struct idem_error error = { .text = "" };
    world.armed_asks = false;
    if (world_open(&error) != IDEM_OK) {
        torture_violation("the next start fails: %s", error.text);
        return;
    }
    world_rest();
    books_judge();
    for (int deed = 0; deed < DEED_COUNT; deed++) {
        deed_judge((enum deed)deed);
    }
    books_judge();
    if (world.store->broken) {
        torture_violation("the next start's store broke");
    }
    world_close();
}
