/*
 * The commands behind work.h. What is possible is read from the book, so that a book that was cut
 * back makes the world go on from there.
 */
#include "power/work.h"

#include "base/attr.h"
#include "base/clock.h"
#include "lib/test.h"

#define PROBES_MAX 24

static struct random *dice(struct work *work)
{
    return &work->random;
}

static const struct idem_intent *intent_of(const struct book *book, const struct deed *deed)
{
    return deed->last == BOOK_NONE ? NULL : &book->records[deed->last].intent;
}

static enum idem_intent_state state_of(const struct book *book, const struct deed *deed)
{
    const struct idem_intent *intent = intent_of(book, deed);
    return intent == NULL ? IDEM_INTENT_NONE : intent->state;
}

static bool may_be_told(const struct book *book, const struct deed *deed)
{
    enum idem_intent_state state = state_of(book, deed);
    return (state == IDEM_INTENT_DISPATCHED || state == IDEM_INTENT_UNKNOWN ||
            state == IDEM_INTENT_PARKED) &&
           intent_of(book, deed)->send_count > 0;
}

static bool may_be_due(const struct book *book, const struct deed *deed)
{
    const struct idem_intent *intent = intent_of(book, deed);
    return intent != NULL && idem_intent_is_open(intent->state);
}

static bool may_be_acted_on(const struct book *book, const struct deed *deed)
{
    return deed->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE &&
           state_of(book, deed) == IDEM_INTENT_SUCCEEDED;
}

static bool is_final(const struct book *book, const struct deed *deed)
{
    return idem_intent_is_final(state_of(book, deed));
}

static bool may_be_resolved(const struct book *book, const struct deed *deed)
{
    enum idem_intent_state state = state_of(book, deed);
    return state == IDEM_INTENT_UNKNOWN || state == IDEM_INTENT_PARKED;
}

static bool is_any(const struct book *book, const struct deed *deed)
{
    (void)book;
    (void)deed;
    return true;
}

/* A deed that nobody else in this batch touches, nor its payment. NONE: there is none at hand. */
static size_t deed_pick(struct work *work,
                        bool (*suits)(const struct book *book, const struct deed *deed))
{
    struct book *book = work->book;
    for (size_t i = 0; i < PROBES_MAX && book->deed_count > 0; i++) {
        size_t count = book->deed_count;
        /* Mostly one of the newest. */
        size_t back = random_percent(dice(work), 70) && count > 24 ? 24 : count;
        size_t at = count - 1 - random_below(dice(work), back);
        const struct deed *deed = &book->deeds[at];
        if (!deed->busy && !book->deeds[deed->payment].busy && suits(book, deed)) {
            return at;
        }
    }
    return BOOK_NONE;
}

static void deed_occupy(struct work *work, size_t at)
{
    work->book->deeds[at].busy = true;
    work->book->deeds[work->book->deeds[at].payment].busy = true;
}

static size_t deed_add(struct work *work, enum idem_endpoint endpoint, size_t payment)
{
    struct book *book = work->book;
    assert_in_range(book->deed_count, 0, BOOK_DEEDS_MAX - 1);
    size_t at = book->deed_count;
    work->key_next += 1;
    struct deed *deed = &book->deeds[at];
    *deed = (struct deed){
        .principal = payment != BOOK_NONE     ? book->deeds[payment].principal
                     : work->key_next % 3 > 0 ? "merchant-1"
                                              : "merchant-2",
        .key = book_text(book, "key-%u", work->key_next),
        .endpoint = endpoint,
        .payment = payment == BOOK_NONE ? at : payment,
        .order_no = book_text(book, "order-%u", work->key_next),
        .amount_minor = 100 + (int64_t)random_below(dice(work), 9000),
        .manual = random_percent(dice(work), 40),
        .last = BOOK_NONE,
    };
    deed->scope = fixture_scope(deed->principal, endpoint, deed->key);
    deed->amount_text = book_text(book, "%d.%02d", (int)random_below(dice(work), 4),
                                  (int)random_below(dice(work), 99) + 1);
    book->deed_count += 1;
    deed_occupy(work, at);
    return at;
}

/* Words of any length, so that rows take from a few bytes to pages of their own. */
static const char *words(struct work *work, size_t max)
{
    char text[IDEM_DESCRIPTION_MAX + 1];
    size_t len = random_below(dice(work), max < sizeof(text) ? max : sizeof(text) - 1);
    for (size_t i = 0; i < len; i++) {
        text[i] = (char)('a' + (char)random_below(dice(work), 26));
    }
    text[len] = '\0';
    return book_text(work->book, "%s", text);
}

void work_retry(struct work *work, const struct deed *deed, struct call *ret_call)
{
    if (deed->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        struct order order = {
            .principal = deed->principal,
            .key = deed->key,
            .order_no = deed->order_no,
            .amount_minor = deed->amount_minor,
            .manual = deed->manual,
        };
        call_pay(work->fixture, ret_call, &order);
        return;
    }
    const struct idem_intent *paid = intent_of(work->book, &work->book->deeds[deed->payment]);
    struct act act = {
        .principal = deed->principal,
        .key = deed->key,
        .endpoint = deed->endpoint,
        .payment_id = paid != NULL ? paid->payment_id : fixture_uid(work->fixture),
        .amount = deed->endpoint == IDEM_ENDPOINT_PAYMENTS_CANCEL ? NULL : deed->amount_text,
    };
    call_act(work->fixture, ret_call, &act);
}

static size_t make_payment(struct work *work, struct call *call)
{
    size_t at = deed_add(work, IDEM_ENDPOINT_PAYMENTS_CREATE, BOOK_NONE);
    work_retry(work, &work->book->deeds[at], call);
    struct idem_command *command = &call->item.command;
    command->slot = random_percent(dice(work), 85);
    command->accept.wait_us = random_percent(dice(work), 70) ? command->accept.wait_us : 0;
    command->accept.description = idem_str_from(words(work, IDEM_DESCRIPTION_MAX));
    command->accept.metadata =
        idem_str_from(random_percent(dice(work), 20) ? words(work, IDEM_DESCRIPTION_MAX) : "");
    return at;
}

static size_t make_act(struct work *work, struct call *call)
{
    size_t payment = deed_pick(work, may_be_acted_on);
    if (payment == BOOK_NONE) {
        return make_payment(work, call);
    }
    bool manual = work->book->deeds[payment].manual;
    uint64_t roll = random_below(dice(work), 100);
    enum idem_endpoint endpoint = !manual || roll < 30 ? IDEM_ENDPOINT_REFUNDS_CREATE
                                  : roll < 85          ? IDEM_ENDPOINT_PAYMENTS_CAPTURE
                                                       : IDEM_ENDPOINT_PAYMENTS_CANCEL;
    size_t at = deed_add(work, endpoint, payment);
    work_retry(work, &work->book->deeds[at], call);
    return at;
}

static enum idem_outcome_kind outcome_pick(struct work *work, bool asked)
{
    uint64_t roll = random_below(dice(work), 100);
    if (roll < 62) {
        return IDEM_OUTCOME_SUCCESS;
    }
    if (roll < 76) {
        return IDEM_OUTCOME_REFUSED_FINAL;
    }
    if (roll < 86) {
        return IDEM_OUTCOME_UNKNOWN;
    }
    if (roll < 92) {
        return IDEM_OUTCOME_PROCESSING;
    }
    return asked ? IDEM_OUTCOME_NOT_FOUND : IDEM_OUTCOME_NOT_EXECUTED;
}

static size_t make_evidence(struct work *work, struct call *call)
{
    size_t at = deed_pick(work, may_be_told);
    if (at == BOOK_NONE) {
        return make_act(work, call);
    }
    const struct idem_intent *intent = intent_of(work->book, &work->book->deeds[at]);
    bool asked = intent->state != IDEM_INTENT_DISPATCHED || intent->step != IDEM_STEP_SEND;
    struct idem_command *command = call_begin(work->fixture, call, IDEM_COMMAND_EVIDENCE);
    command->scope = intent->scope;
    command->intent_row = intent->row;
    command->evidence = (struct idem_evidence){
        .source = asked ? IDEM_SOURCE_QUERY : IDEM_SOURCE_SEND,
        .outcome = outcome_pick(work, asked),
        .token = intent->token,
        .send_no = asked ? 0 : intent->send_count,
        .entry = intent->effect.entry,
        .account = intent->effect.account,
        .region = intent->effect.region,
        .effect_id = intent->effect.id,
        .amount_minor = intent->effect.amount_minor,
        .currency = intent->effect.currency,
        .reference = IDEM_STR("provider-77"),
        .code = IDEM_STR("card_declined"),
        .message = IDEM_STR("the card was declined"),
        .asked_us = work->fixture->clock.wall_base_us,
    };
    deed_occupy(work, at);
    return at;
}

static size_t make_due(struct work *work, struct call *call)
{
    size_t at = deed_pick(work, may_be_due);
    if (at == BOOK_NONE) {
        return make_payment(work, call);
    }
    const struct idem_intent *intent = intent_of(work->book, &work->book->deeds[at]);
    call_due(work->fixture, call, intent->scope, intent->row);
    deed_occupy(work, at);
    return at;
}

static size_t make_replay(struct work *work, struct call *call)
{
    size_t at = deed_pick(work, is_any);
    if (at == BOOK_NONE) {
        return make_payment(work, call);
    }
    work_retry(work, &work->book->deeds[at], call);
    deed_occupy(work, at);
    return at;
}

static size_t make_abandon(struct work *work, struct call *call)
{
    size_t at = random_percent(dice(work), 50) ? deed_pick(work, is_any) : BOOK_NONE;
    if (at == BOOK_NONE || work->book->deeds[at].endpoint != IDEM_ENDPOINT_PAYMENTS_CREATE) {
        at = deed_add(work, IDEM_ENDPOINT_PAYMENTS_CREATE, BOOK_NONE);
    }
    const struct deed *deed = &work->book->deeds[at];
    call_abandon(work->fixture, call, deed->principal, deed->key);
    deed_occupy(work, at);
    return at;
}

static size_t make_reap(struct work *work, struct call *call)
{
    size_t at = deed_pick(work, is_final);
    if (at == BOOK_NONE) {
        return make_evidence(work, call);
    }
    const struct idem_intent *intent = intent_of(work->book, &work->book->deeds[at]);
    struct idem_command *command = call_begin(work->fixture, call, IDEM_COMMAND_REAP);
    command->scope = intent->scope;
    command->intent_row = intent->row;
    command->reap.horizon_us = work->fixture->clock.wall_base_us;
    deed_occupy(work, at);
    return at;
}

static size_t make_verdict(struct work *work, struct call *call)
{
    size_t at = deed_pick(work, may_be_resolved);
    if (at == BOOK_NONE) {
        return make_evidence(work, call);
    }
    const struct idem_intent *intent = intent_of(work->book, &work->book->deeds[at]);
    struct idem_command *command = call_begin(work->fixture, call, IDEM_COMMAND_RESOLVE);
    command->scope = intent->scope;
    command->intent_row = intent->row;
    command->resolve = (struct idem_resolve){
        .verdict = random_percent(dice(work), 50) ? IDEM_VERDICT_SUCCEEDED : IDEM_VERDICT_FAILED,
        .by = IDEM_STR("ops/anna"),
        .reason = IDEM_STR("seen in the provider's console"),
        .reference = IDEM_STR("provider-9"),
        .amount_minor = intent->effect.amount_minor,
        .currency = intent->effect.currency,
        .asked_us = work->fixture->clock.wall_base_us,
    };
    deed_occupy(work, at);
    return at;
}

static size_t make_mark(struct work *work, struct call *call)
{
    struct idem_command *command = call_begin(work->fixture, call, IDEM_COMMAND_MARK);
    command->mark = (struct idem_mark){
        .kind = IDEM_MARK_HORIZON,
        .value_us = work->fixture->clock.wall_base_us,
    };
    return BOOK_NONE;
}

static size_t make_credential(struct work *work, struct call *call)
{
    unsigned char name = (unsigned char)(1 + random_below(dice(work), 60));
    struct idem_command *command = call_begin(work->fixture, call, IDEM_COMMAND_CREDENTIAL);
    command->credential = (struct idem_credential_change){
        .action =
            random_percent(dice(work), 70) ? IDEM_CREDENTIAL_ADD : IDEM_CREDENTIAL_REVOKE,
        .row = {
            .id = { .bytes = { name } },
            .principal = IDEM_STR("merchant-1"),
            .role = IDEM_ROLE_MERCHANT,
            .secret_sha256 = { .bytes = { name } },
            .providers = IDEM_STR("sandbox "),
            .label = IDEM_STR("till 4"),
        },
        .by = IDEM_STR("ops/anna"),
    };
    return BOOK_NONE;
}

static const struct {
    unsigned share; /* Of a hundred. */
    size_t (*make)(struct work *work, struct call *call);
    bool once; /* In a batch. */
} kinds[] = {
    { 30, make_payment, false },  { 31, make_evidence, false }, { 13, make_act, false },
    { 8, make_due, false },       { 5, make_replay, false },    { 3, make_abandon, false },
    { 4, make_reap, false },      { 2, make_verdict, false },   { 2, make_mark, true },
    { 2, make_credential, true },
};

static size_t kind_pick(struct work *work)
{
    uint64_t roll = random_below(dice(work), 100);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(kinds); i++) {
        if (roll < kinds[i].share) {
            return i;
        }
        roll -= kinds[i].share;
    }
    return 0;
}

/* Mostly seconds; sometimes the days after which answers are forgotten. */
static void time_pass(struct work *work)
{
    int64_t by_us = (int64_t)random_below(dice(work), 20 * IDEM_US_PER_SECOND);
    if (random_percent(dice(work), 3)) {
        by_us += (int64_t)(1 + random_below(dice(work), 45)) * IDEM_US_PER_DAY;
    }
    work->fixture->clock.wall_base_us += by_us;
}

size_t work_batch(struct work *work, struct call *ret_calls, size_t *ret_deeds, size_t max)
{
    size_t count = 1 + random_below(dice(work), max);
    bool done[IDEM_ARRAY_COUNT(kinds)] = { false };
    time_pass(work);
    for (size_t i = 0; i < work->book->deed_count; i++) {
        work->book->deeds[i].busy = false;
    }
    for (size_t i = 0; i < count; i++) {
        size_t kind = kind_pick(work);
        kind = kinds[kind].once && done[kind] ? 0 : kind;
        done[kind] = true;
        ret_deeds[i] = kinds[kind].make(work, &ret_calls[i]);
    }
    return count;
}
