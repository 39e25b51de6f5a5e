/*
 * What is checked where:
 *
 *   asked      nothing; the books note it
 *   replied    P2 the answer is durable; P3 at most one is told that it executes; P4 all final
 *              answers are one; P5 another wording gets nothing of the first; success only if the
 *              ledger has it, failure and "not executed" only if not; a refusal by the provider
 *              only if it refused (P6); no answer is gone before its retention (P12)
 *   call       P1 the record is durable and says that it may have run, with as many sends as were
 *              handed over, and these bytes; P7 "done" is not forgotten when the store refuses
 *   committed  P4 what has ended stays as it is, P12 and what is there stays there; P3 as the
 *              ledger has it; P7 one attempt at a time may send, and the provider's "done" settles,
 *              whoever brings it
 *   executed   P3 once an intent; of the wording that holds the key (P5); never after a failure or
 *              a release was told; P10 sums and order numbers, as the ledger has them
 *   end        P8, P9 every intent is at an end, or in front of a person; rows and ledger agree
 */
#include "sim/auditor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "sim/auditor_internal.h"
#include "sim/world.h"

void sim_violation(struct sim_auditor *auditor, const char *format, ...)
{
    char text[SIM_VIOLATION_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments); /* Cut where it is too long. */
    va_end(arguments);
    if (auditor->violations == 0) {
        memcpy(auditor->first, text, sizeof(auditor->first));
        auditor->first_step = auditor->world->steps;
    }
    auditor->violations += 1;
    sim_trace(auditor->world, "VIOLATION %s", text);
}

void sim_audit_init(struct sim_auditor *auditor, struct sim_world *world)
{
    *auditor = (struct sim_auditor){ .world = world };
    for (size_t i = 0; i < world->callers.count; i++) {
        auditor->books[i].plan = &world->callers.plans[i];
        auditor->books[i].wording = SIM_UNBOUND;
    }
}

static const char *key_of(const struct sim_book *book)
{
    return book->plan->key;
}

static uint64_t digest_of(const struct idem_answer *answer)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325) ^ answer->status;
    const struct idem_str parts[] = { answer->headers, answer->body };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(parts); i++) {
        for (size_t at = 0; at < parts[i].len; at++) {
            digest = (digest ^ (uint8_t)parts[i].data[at]) * UINT64_C(0x100000001b3);
        }
        digest = (digest ^ 0x100) * UINT64_C(0x100000001b3);
    }
    return digest;
}

/* The key stands for this wording, and always has. */
static void bind(struct sim_auditor *auditor, struct sim_book *book, size_t wording)
{
    if (book->wording == SIM_UNBOUND) {
        book->wording = wording;
    }
    if (book->wording != wording) {
        sim_violation(auditor, "P5: %s stands for wording %zu and %zu was let in", key_of(book),
                      book->wording, wording);
    }
}

/* ---- replies ---- */

void sim_audit_asked(struct sim_auditor *auditor, struct sim_request *request)
{
    struct sim_book *book = &auditor->books[request->plan->no];
    request->after_final = book->status != 0;
    request->after_expiry = book->told_expired;
    book->waiting += 1;
    book->released = false;
}

static void check_success(struct sim_auditor *auditor, struct sim_book *book)
{
    book->told_success = true;
    if (book->executions != 1 && !book->excused) {
        sim_violation(auditor, "P3: %s was told success, and the ledger has it %llu times",
                      key_of(book), (unsigned long long)book->executions);
    }
}

static const struct sim_effect *effect_of(const struct sim_auditor *auditor,
                                          const struct sim_plan *plan)
{
    const struct sim_effect *effect = auditor->world->provider.effects;
    while (effect != NULL && memcmp(effect->id + 1, plan->tail, SIM_TAIL_LEN) != 0) {
        effect = effect->next;
    }
    return effect;
}

static void check_failure(struct sim_auditor *auditor, struct sim_book *book, uint16_t status)
{
    const struct sim_effect *effect = effect_of(auditor, book->plan);
    book->told_failure = true;
    if (book->executions != 0 && !book->excused) {
        sim_violation(auditor, "P3: %s was told failure %u, and the ledger has it", key_of(book),
                      (unsigned)status);
    }
    bool said_no = effect != NULL && (effect->refused || effect->closed);
    if (status == 402 && !said_no) {
        sim_violation(auditor, "P6: %s was told that it was declined, and nobody declined it",
                      key_of(book));
    }
}

static void check_durable(struct sim_auditor *auditor,
                          const struct sim_book *book,
                          const struct idem_answer *answer)
{
    const struct idem_intent *intent = sim_disk_intent(&auditor->world->disk, &book->plan->scope);
    if (intent == NULL) {
        sim_violation(auditor, "P2: the answer of %s left, and there is no record", key_of(book));
        return;
    }
    bool is_there =
        idem_intent_is_final(intent->state) &&
        (idem_intent_is_tombstone(intent) || digest_of(&intent->answer) == digest_of(answer));
    if (!is_there) {
        sim_violation(auditor, "P2: the answer of %s left, and another one is durable",
                      key_of(book));
    }
}

static void check_answer(struct sim_auditor *auditor,
                         struct sim_book *book,
                         const struct sim_request *request)
{
    const struct idem_answer *answer = &request->request.outcome.intent.answer;
    bool abandoned = request->request.outcome.intent.problem == IDEM_PROBLEM_ABANDONED;
    if (!request->abandons && !abandoned) {
        bind(auditor, book, request->wording);
    }
    if (book->status == 0) {
        book->status = answer->status;
        book->answer_digest = digest_of(answer);
    }
    if (book->status != answer->status || book->answer_digest != digest_of(answer)) {
        sim_violation(auditor, "P4: %s was answered %u, and now %u or with other bytes",
                      key_of(book), (unsigned)book->status, (unsigned)answer->status);
    }
    if (book->told_expired && request->after_expiry) {
        sim_violation(auditor, "P4: the answer of %s had expired, and it is back", key_of(book));
    }
    book->told_first_hand += !request->request.replayed && !request->abandons ? 1 : 0;
    if (book->told_first_hand > 1) {
        sim_violation(auditor, "P3: two callers of %s were told that theirs ran", key_of(book));
    }
    check_durable(auditor, book, answer);
    if (answer->status < 400) {
        check_success(auditor, book);
    } else {
        check_failure(auditor, book, answer->status);
    }
}

/* Somebody had the final answer before this was asked: nothing else may be said any more. */
static void check_not_open(struct sim_auditor *auditor,
                           const struct sim_book *book,
                           const struct sim_request *request,
                           const char *what)
{
    if (request->after_final) {
        sim_violation(auditor, "P4: %s was answered %u, and now: %s", key_of(book),
                      (unsigned)book->status, what);
    }
}

static void check_expired(struct sim_auditor *auditor, struct sim_book *book)
{
    struct sim_world *world = auditor->world;
    int64_t age_us = world->now_us - book->ended_us;
    book->told_expired = true;
    if (2 * age_us < world->rules.answer_retention_us) {
        sim_violation(auditor, "P12: the answer of %s is gone after %lld s", key_of(book),
                      (long long)(age_us / SIM_SECOND));
    }
}

/*
 * Twins: between a release and the moment when its caller hears of it another process may have let
 * somebody in again. What ran since is that one's; a claim is known by its patience.
 */
static bool is_claimed_again(const struct sim_auditor *auditor,
                             const struct sim_book *book,
                             const struct sim_request *request)
{
    struct sim_world *world = auditor->world;
    const struct idem_intent *intent = sim_disk_intent(&world->disk, &book->plan->scope);
    return world->twins && intent != NULL &&
           intent->patience_us > request->request.outcome.intent.patience_us;
}

static void check_not_executed(struct sim_auditor *auditor,
                               struct sim_book *book,
                               const struct sim_request *request)
{
    bool again = is_claimed_again(auditor, book, request);
    check_not_open(auditor, book, request, "not executed");
    if (book->executions != 0 && !book->excused && !again) {
        sim_violation(auditor, "P3: %s was told \"not executed\", and the ledger has it",
                      key_of(book));
    }
    book->released = book->waiting == 0 && !again;
}

static void check_reused(struct sim_auditor *auditor,
                         const struct sim_book *book,
                         const struct sim_request *request)
{
    if (book->wording == request->wording) {
        sim_violation(auditor, "P5: %s was told that it is another's", key_of(book));
    }
}

static void check_problem(struct sim_auditor *auditor,
                          struct sim_book *book,
                          const struct sim_request *request)
{
    enum idem_problem problem = request->request.problem;
    if (problem == IDEM_PROBLEM_NOT_EXECUTED) {
        check_not_executed(auditor, book, request);
    } else if (problem == IDEM_PROBLEM_KEY_REUSED) {
        check_reused(auditor, book, request);
    } else if (problem == IDEM_PROBLEM_ANSWER_EXPIRED) {
        check_expired(auditor, book);
    } else if (problem == IDEM_PROBLEM_ABANDONED) {
        check_failure(auditor, book, 409);
    } else if (problem == IDEM_PROBLEM_IN_PROGRESS || problem == IDEM_PROBLEM_TOO_OLD) {
        check_not_open(auditor, book, request, idem_problem_entry(problem)->code);
    } else if (problem != IDEM_PROBLEM_UNAVAILABLE && problem != IDEM_PROBLEM_OUTCOME_UNKNOWN) {
        sim_violation(auditor, "%s got the problem %s, which is not stored", key_of(book),
                      idem_problem_entry(problem)->code);
    }
}

static void check_operation(struct sim_auditor *auditor,
                            struct sim_book *book,
                            const struct sim_request *request)
{
    check_not_open(auditor, book, request, "202");
    if (!request->abandons) {
        bind(auditor, book, request->wording);
    }
    if (sim_disk_intent(&auditor->world->disk, &book->plan->scope) == NULL) {
        sim_violation(auditor, "P2: %s got a 202, and there is no record", key_of(book));
    }
}

void sim_audit_replied(struct sim_auditor *auditor, const struct sim_request *request, bool heard)
{
    struct sim_book *book = &auditor->books[request->plan->no];
    IDEM_ASSERT(book->waiting > 0);
    book->waiting -= 1;
    if (!heard || request->gone) {
        return;
    }
    auditor->replies += 1;
    switch (request->request.reply) {
    case IDEM_REPLY_ANSWER:
        if (idem_intent_is_tombstone(&request->request.outcome.intent)) {
            check_expired(auditor, book); /* An abandon that found it over. */
        } else if (request->request.outcome.intent.answer.status == 0) {
            check_operation(auditor, book, request); /* Or open. */
        } else {
            check_answer(auditor, book, request);
        }
        return;
    case IDEM_REPLY_PROBLEM:
        check_problem(auditor, book, request);
        return;
    case IDEM_REPLY_OPERATION:
        check_operation(auditor, book, request);
        return;
    case IDEM_REPLY_NONE:
    case IDEM_REPLY_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* ---- calls and executions ---- */

struct sim_book *sim_book_of_scope(struct sim_auditor *auditor, const struct idem_scope *scope)
{
    for (size_t i = 0; i < auditor->world->callers.count; i++) {
        if (memcmp(&auditor->books[i].plan->scope, scope, sizeof(*scope)) == 0) {
            return &auditor->books[i];
        }
    }
    return NULL;
}

static struct sim_book *book_of_id(struct sim_auditor *auditor, const char *id)
{
    for (size_t i = 0; i < auditor->world->callers.count; i++) {
        if (memcmp(id + 1, auditor->books[i].plan->tail, SIM_TAIL_LEN) == 0) {
            return &auditor->books[i];
        }
    }
    return NULL;
}

/* As the record says, nothing of it was ever sent, or everything was proven not to have run. */
static bool says_unsent(const struct idem_intent *intent)
{
    return intent->state == IDEM_INTENT_CLAIMED || intent->state == IDEM_INTENT_RELEASED;
}

void sim_audit_call(struct sim_auditor *auditor,
                    const struct sim_instance *instance,
                    const struct idem_call *call)
{
    struct sim_book *book = book_of_id(auditor, call->effect.id.data);
    if (book == NULL) {
        sim_violation(auditor, "P1: a call under %.27s, which no key stands behind",
                      call->effect.id.data);
        return;
    }
    const struct idem_intent *intent = sim_disk_intent(&auditor->world->disk, &book->plan->scope);
    if (intent == NULL) {
        sim_violation(auditor, "P1: a call for %s, and there is no durable record", key_of(book));
        return;
    }
    if (!idem_str_equal(intent->effect.request, call->effect.request)) {
        sim_violation(auditor, "P1: a call for %s with other bytes than the record's",
                      key_of(book));
    }
    if (call->kind == IDEM_CALL_SEND && says_unsent(intent)) {
        sim_violation(auditor, "P1: a send of %s, and its record says that nothing was sent",
                      key_of(book));
    }
    if (book->heard == instance && book->was_refused && !idem_intent_is_final(intent->state)) {
        sim_violation(auditor, "P7: the store refused that %s is done, and the process forgot it",
                      key_of(book));
    }
    book->sends += call->kind == IDEM_CALL_SEND ? 1 : 0;
    if (book->sends > intent->send_count) {
        sim_violation(auditor, "P1: send %llu of %s, and the record explains %u",
                      (unsigned long long)book->sends, key_of(book), (unsigned)intent->send_count);
    }
    if (call->kind == IDEM_CALL_CLOSE && !intent->effect.close_asked) {
        sim_violation(auditor, "P1: a close of %s, and the record has none", key_of(book));
    }
}

void sim_audit_call_ended(struct sim_auditor *auditor,
                          const struct sim_instance *instance,
                          const struct idem_call *call,
                          bool is_done)
{
    struct sim_book *book = book_of_id(auditor, call->effect.id.data);
    if (book == NULL) {
        return;
    }
    if (call->kind == IDEM_CALL_SEND && book->sender == instance) {
        book->sender = NULL;
    }
    if (is_done) {
        book->heard = instance;
        book->was_refused = false;
    }
}

void sim_audit_left(struct sim_auditor *auditor, const struct sim_effect *effect, int64_t handed_us)
{
    const struct idem_rules *rules = &auditor->world->rules;
    const struct idem_capability *capability =
        &auditor->world->entries[effect->entry].capability[effect->kind];
    int64_t waited_us = auditor->world->now_us - handed_us;
    int64_t known_us =
        effect->remembered_us != 0 ? auditor->world->now_us - effect->remembered_us : 0;
    if (waited_us > rules->lease_us + SIM_SECOND) {
        sim_violation(auditor, "P7: %.27s leaves %lld s after its grant", effect->id,
                      (long long)(waited_us / SIM_SECOND));
    }
    if (capability->dedup_window_us > 0 && effect->executions > 0 &&
        known_us > capability->dedup_window_us) {
        sim_violation(auditor, "P3: %.27s is sent again %lld s after it ran", effect->id,
                      (long long)(known_us / SIM_SECOND));
    }
}

static const struct sim_plan *root_of(const struct sim_plan *plan)
{
    return plan->payment != NULL ? plan->payment : plan;
}

/* It, and what hangs together with it. */
static void excuse(struct sim_auditor *auditor, const struct sim_plan *plan)
{
    for (size_t i = 0; i < auditor->world->callers.count; i++) {
        const struct sim_plan *other = auditor->books[i].plan;
        bool hangs = strcmp(root_of(other)->order_no, root_of(plan)->order_no) == 0;
        auditor->books[i].excused = auditor->books[i].excused || hangs;
    }
}

void sim_audit_verdict(struct sim_auditor *auditor, const struct sim_plan *plan, bool is_true)
{
    if (!is_true) {
        excuse(auditor, plan);
    }
}

/* What the ledger says against a record that has ended. */
static void check_ended(struct sim_auditor *auditor,
                        const struct sim_book *book,
                        enum idem_intent_state state)
{
    uint64_t expected = state == IDEM_INTENT_SUCCEEDED ? 1 : 0;
    if (book->executions != expected && !book->excused) {
        sim_violation(auditor, "P3: %s is %s, and the ledger has it %llu times", key_of(book),
                      idem_intent_state_name(state), (unsigned long long)book->executions);
    }
}

/* The durable record says that it is over, for the first time. */
static void note_end(struct sim_auditor *auditor,
                     struct sim_book *book,
                     const struct idem_intent *intent)
{
    book->ended = intent->state;
    book->ended_us = auditor->world->now_us;
    check_ended(auditor, book, intent->state);
}

/* A new attempt, and the one before it may still send. */
static void note_attempt(struct sim_auditor *auditor,
                         struct sim_book *book,
                         const struct sim_instance *instance,
                         const struct idem_intent *intent)
{
    if (idem_uid_equal(book->token, intent->token)) {
        return;
    }
    if (book->sender != NULL && book->sender_incarnation == intent->incarnation &&
        intent->updated_us < book->sender_until_us) {
        sim_violation(auditor, "P7: an attempt of %s was put aside while it might send",
                      key_of(book));
    }
    bool may_send = intent->step == IDEM_STEP_SEND && intent->lease_end_us != 0;
    book->token = intent->token;
    book->sender = may_send ? instance : NULL;
    book->sender_incarnation = intent->incarnation;
    book->sender_until_us = intent->lease_end_us;
}

static void check_record(struct sim_auditor *auditor,
                         struct sim_book *book,
                         const struct sim_instance *instance)
{
    const struct idem_intent *intent = sim_disk_intent(&auditor->world->disk, &book->plan->scope);
    if (intent != NULL) {
        note_attempt(auditor, book, instance, intent);
    }
    enum idem_intent_state state = intent != NULL ? intent->state : IDEM_INTENT_NONE;
    if (book->ended != IDEM_INTENT_NONE && state != book->ended) {
        sim_violation(auditor, "P4: %s was %s, and is %s", key_of(book),
                      idem_intent_state_name(book->ended), idem_intent_state_name(state));
    } else if (book->ended == IDEM_INTENT_NONE && intent != NULL && idem_intent_is_final(state)) {
        note_end(auditor, book, intent);
    } else if (book->is_recorded && intent == NULL) {
        sim_violation(auditor, "P12: %s was open, and is forgotten", key_of(book));
    }
    book->is_recorded = book->is_recorded || intent != NULL;
    sim_audit_told(auditor, book, intent);
}

static bool says_done(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_EVIDENCE &&
           command->evidence.outcome == IDEM_OUTCOME_SUCCESS;
}

/*
 * The provider's "done" came to the store. Refused, it must come again before anything else of its
 * key does; written, it settles, or a person has it.
 */
static void check_evidence(struct sim_auditor *auditor,
                           const struct sim_instance *instance,
                           const struct idem_store_item *item)
{
    struct sim_book *book = sim_book_of_scope(auditor, &item->command.scope);
    if (book == NULL || book->heard != instance) {
        return; /* Nobody's, or of something else. */
    }
    if (item->answer != IDEM_STORE_DURABLE) {
        bool is_refusal = item->answer == IDEM_STORE_NOTHING || item->answer == IDEM_STORE_DOWN;
        book->was_refused = is_refusal;
        return;
    }
    const struct idem_intent *intent = sim_disk_intent(&auditor->world->disk, &item->command.scope);
    book->heard = NULL;
    if (intent != NULL && !idem_intent_is_final(intent->state) &&
        intent->state != IDEM_INTENT_PARKED) {
        sim_violation(auditor, "P7: \"done\" was written down for %s, and it is %s", key_of(book),
                      idem_intent_state_name(intent->state));
    }
}

void sim_audit_committed(struct sim_auditor *auditor,
                         const struct sim_instance *instance,
                         struct idem_store_batch *batch)
{
    for (size_t i = 0; i < auditor->world->callers.count; i++) {
        check_record(auditor, &auditor->books[i], instance);
    }
    struct idem_list_node *node = batch != NULL ? batch->items.first : NULL;
    for (; node != NULL; node = node->next) {
        const struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        if (says_done(&item->command)) {
            check_evidence(auditor, instance, item);
        }
        sim_audit_event(auditor, item);
    }
    sim_audit_listeners(auditor);
}

/* What the ledger says of one payment. */
struct sums {
    const struct sim_effect *payment; /* NULL: it never ran. */
    int64_t authorized;
    int64_t captured;
    int64_t captured_back; /* Of it, what the provider took back. */
    int64_t refunded;      /* Less what it took back. */
    int64_t captures;      /* Likewise. */
    int64_t captured_left; /* Of captured_back: a person has it, since no sum could be lowered. */
    int64_t held_until_us; /* Something was captured until then; 0: never. */
    int64_t canceled_us;   /* 0: never. */
    bool excused;
};

/* From the payer to the merchant, that is; an authorization moves none. */
static bool moves_money(const struct sim_effect *effect)
{
    return effect->kind == IDEM_EFFECT_KIND_CHARGE || effect->kind == IDEM_EFFECT_KIND_CAPTURE;
}

static void sums_add(struct sums *sums, const struct sim_effect *effect, const char *payment_id)
{
    int64_t moved = effect->amount_minor;
    if (memcmp(effect->id, payment_id, sizeof(effect->id)) == 0) {
        sums->payment = effect;
        sums->authorized += moved;
    }
    bool is_back = effect->reversed_us != 0;
    if (moves_money(effect)) {
        sums->captured += moved;
        sums->captured_back += is_back ? moved : 0;
        sums->captures += is_back ? 0 : 1;
        int64_t until_us = is_back ? effect->reversed_us : INT64_MAX;
        sums->held_until_us = until_us > sums->held_until_us ? until_us : sums->held_until_us;
    }
    bool is_refund = effect->kind == IDEM_EFFECT_KIND_REFUND;
    sums->refunded += is_refund && !is_back ? moved : 0;
    sums->canceled_us =
        effect->kind == IDEM_EFFECT_KIND_CANCEL ? effect->executed_us : sums->canceled_us;
}

static struct sums sums_of(struct sim_auditor *auditor, const char *payment_id)
{
    struct sums sums = { .payment = NULL };
    const struct sim_effect *effect = auditor->world->provider.effects;
    for (; effect != NULL; effect = effect->next) {
        bool is_it = memcmp(effect->id, payment_id, sizeof(effect->id)) == 0;
        bool acts = memcmp(effect->payment_id, payment_id, sizeof(effect->id)) == 0;
        if (effect->executions > 0 && (is_it || acts)) {
            const struct sim_book *book = book_of_id(auditor, effect->id);
            sums.excused = sums.excused || book == NULL || book->excused;
            sums_add(&sums, effect, payment_id);
            bool is_left = moves_money(effect) && effect->reversed_us != 0 && book != NULL &&
                           sim_audit_is_left(auditor, book);
            sums.captured_left += is_left ? effect->amount_minor : 0;
        }
    }
    return sums;
}

static void check_sums(struct sim_auditor *auditor, const struct sim_effect *effect)
{
    struct sums sums = sums_of(auditor, effect->payment_id);
    if (sums.excused) {
        return;
    }
    if (sums.payment == NULL) {
        sim_violation(auditor, "P10: %.27s acts on a payment that was never made", effect->id);
        return;
    }
    if (effect->kind == IDEM_EFFECT_KIND_CAPTURE && sums.canceled_us != 0) {
        sim_violation(auditor, "P10: %.27s captures what was cancelled", effect->id);
    }
    if (sums.captured - sums.captured_back > sums.authorized) {
        sim_violation(auditor, "P10: captured %lld of %lld",
                      (long long)(sums.captured - sums.captured_back), (long long)sums.authorized);
    }
    if (sums.refunded > sums.captured) {
        sim_violation(auditor, "P10: refunded %lld of %lld", (long long)sums.refunded,
                      (long long)sums.captured);
    }
    bool once = auditor->world->entries[effect->entry].partial_capture != IDEM_PARTIAL_MANY;
    if (once && sums.captures > 1) {
        sim_violation(auditor, "P10: captured %lld times where once is allowed",
                      (long long)sums.captures);
    }
}

static void check_order(struct sim_auditor *auditor,
                        const struct sim_effect *effect,
                        const struct sim_book *book)
{
    const struct sim_effect *other = auditor->world->provider.effects;
    for (; other != NULL; other = other->next) {
        bool makes =
            other->kind == IDEM_EFFECT_KIND_CHARGE || other->kind == IDEM_EFFECT_KIND_AUTHORIZE;
        if (other == effect || !makes || other->executions == 0) {
            continue;
        }
        const struct sim_book *second = book_of_id(auditor, other->id);
        if (second == NULL || strcmp(second->plan->order_no, book->plan->order_no) != 0 ||
            !idem_str_equal(second->plan->principal, book->plan->principal)) {
            continue;
        }
        struct sums sums = sums_of(auditor, other->id);
        /* A cancel of what holds nothing gives the number back. */
        bool is_free = sums.canceled_us != 0 && sums.held_until_us <= sums.canceled_us;
        if (!sums.excused && !book->excused && !is_free) {
            sim_violation(auditor, "P10: %s and %s have both paid the order %s", key_of(book),
                          key_of(second), book->plan->order_no);
        }
    }
}

static void check_wording(struct sim_auditor *auditor,
                          struct sim_book *book,
                          const struct sim_effect *effect)
{
    for (size_t i = 0; i < SIM_WORDINGS; i++) {
        if (book->plan->amount_minor[i] == effect->amount_minor) {
            bind(auditor, book, i);
            return;
        }
    }
    bool any_amount = book->plan->endpoint != IDEM_ENDPOINT_PAYMENTS_CREATE &&
                      book->plan->amount_text[0][0] == '\0';
    if (!any_amount) {
        sim_violation(auditor, "P5: %s ran with an amount that nobody asked for", key_of(book));
    }
}

void sim_audit_executed(struct sim_auditor *auditor, const struct sim_effect *effect)
{
    struct sim_book *book = book_of_id(auditor, effect->id);
    auditor->executions += 1;
    if (book == NULL) {
        sim_violation(auditor, "P1: %.27s ran, and no key stands behind it", effect->id);
        return;
    }
    book->executions += 1;
    if (book->executions > 1) {
        sim_violation(auditor, "P3: %s ran %llu times", key_of(book),
                      (unsigned long long)book->executions);
    }
    if (book->told_failure && !book->excused) {
        sim_violation(auditor, "P3: %s ran after its caller was told that it did not",
                      key_of(book));
    }
    if (book->released && !book->excused) {
        sim_violation(auditor, "P3: %s ran by itself after it was released", key_of(book));
    }
    check_wording(auditor, book, effect);
    if (effect->kind == IDEM_EFFECT_KIND_CHARGE || effect->kind == IDEM_EFFECT_KIND_AUTHORIZE) {
        check_order(auditor, effect, book);
    } else {
        check_sums(auditor, effect);
    }
}

/* ---- the end ---- */

static void check_state(struct sim_auditor *auditor, const struct idem_intent *intent)
{
    const struct sim_book *book = sim_book_of_scope(auditor, &intent->scope);
    if (book == NULL) {
        sim_violation(auditor, "a record that no caller stands behind");
        return;
    }
    bool is_open = intent->state == IDEM_INTENT_CLAIMED ||
                   intent->state == IDEM_INTENT_DISPATCHED || intent->state == IDEM_INTENT_UNKNOWN;
    if (is_open) {
        sim_violation(auditor, "P9: %s is still %s", key_of(book),
                      idem_intent_state_name(intent->state));
    }
    if (!idem_intent_is_final(intent->state) && intent->due_us == 0) {
        sim_violation(auditor, "P8: %s is open, and nobody will look again", key_of(book));
    }
    bool did = intent->state == IDEM_INTENT_SUCCEEDED;
    bool did_not = intent->state == IDEM_INTENT_FAILED || intent->state == IDEM_INTENT_RELEASED;
    if (!book->excused && ((did && book->executions != 1) || (did_not && book->executions != 0))) {
        sim_violation(auditor, "P3: %s is %s, and the ledger has it %llu times", key_of(book),
                      idem_intent_state_name(intent->state), (unsigned long long)book->executions);
    }
}

static bool has_open_intent(const struct sim_disk *disk, int64_t payment_row)
{
    for (size_t handle = 1; handle <= sim_disk_intents(disk); handle++) {
        const struct idem_intent *intent = sim_disk_intent_at(disk, handle);
        if (intent != NULL && intent->payment_row == payment_row &&
            !idem_intent_is_final(intent->state)) {
            return true;
        }
    }
    return false;
}

static void check_payment(struct sim_auditor *auditor, const struct idem_payment *payment)
{
    struct sums sums = sums_of(auditor, payment->effect_id.data);
    const struct sim_book *book = book_of_id(auditor, payment->effect_id.data);
    bool is_kept = payment->state == IDEM_PAYMENT_FAILED ||
                   has_open_intent(&auditor->world->disk, payment->row);
    if (is_kept || sums.excused || book == NULL || book->excused) {
        return;
    }
    /* What was taken back is less by all of it, or a person has been told that it could not be. */
    int64_t captured = sums.captured - sums.captured_back + sums.captured_left;
    if (payment->captured_minor != captured || payment->refunded_minor != sums.refunded ||
        payment->authorized_minor != sums.authorized) {
        sim_violation(
            auditor, "P10: payment of %s: rows have %lld %lld %lld, the ledger %lld %lld %lld",
            key_of(book), (long long)payment->authorized_minor, (long long)payment->captured_minor,
            (long long)payment->refunded_minor, (long long)sums.authorized,
            (long long)sums.captured, (long long)sums.refunded);
    }
    if (payment->capture_pending_minor != 0 || payment->refund_pending_minor != 0 ||
        payment->canceling) {
        sim_violation(auditor, "P10: payment of %s keeps a reservation that nobody holds",
                      key_of(book));
    }
}

void sim_audit_end(struct sim_auditor *auditor)
{
    struct sim_world *world = auditor->world;
    for (size_t handle = 1; handle <= sim_disk_intents(&world->disk); handle++) {
        const struct idem_intent *intent = sim_disk_intent_at(&world->disk, handle);
        if (intent != NULL) {
            check_state(auditor, intent);
        }
    }
    for (size_t handle = 1; handle <= sim_disk_payments(&world->disk); handle++) {
        const struct idem_payment *payment = sim_disk_payment_at(&world->disk, handle);
        if (payment != NULL) {
            check_payment(auditor, payment);
        }
    }
    for (size_t i = 0; i < world->callers.count; i++) {
        const struct sim_book *book = &auditor->books[i];
        if (book->waiting > 0) {
            sim_violation(auditor, "P8: %zu callers of %s still wait", book->waiting, key_of(book));
        }
        if (book->executions > 0 && sim_disk_intent(&world->disk, &book->plan->scope) == NULL) {
            sim_violation(auditor, "P12: %s moved money, and is forgotten", key_of(book));
        }
    }
    sim_audit_mail_end(auditor);
}
