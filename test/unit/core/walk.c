/*
 * Any life an intent can have: random commands in random order, some of them lies.
 *
 * Goal: no order of requests, answers, callbacks, verdicts, timers, retention, restarts, restored
 * copies, webhooks, deliveries and changes of configuration breaks a promise or an assertion. After
 * every command scene_run() checks sums and reservations (P10), final answers (P4), messages (P11),
 * what is forgotten (P12), determinism (P14), the safety of each granted send (P1, P3) and that
 * running the same command again changes nothing.
 *
 * Method: a fixed seed, many short lives of a few keys on a few orders. Evidence comes from
 * current and from superseded attempts, about any send, and one time in eight with another id,
 * amount or place. One life in two is left as an old copy for a while, to which listings speak;
 * half of those hear no lies and see no changes, so that what was missed meets its claim more
 * often. A life is its number: to repeat one alone, begin the loop there.
 */
#include "unit/core/scene.h"

#define LIVES     1000
#define STEPS     120
#define KEYS      6
#define FREEZE_AT 100 /* From this step on only evidence and timers come, so that lives end. */

/* What the walk must meet at least once. */
enum sight {
    SIGHT_TOMBSTONE,
    SIGHT_REMOVED,
    SIGHT_STUB,
    SIGHT_STUB_APPLIED,
    SIGHT_STUB_APPLIED_LATER,
    SIGHT_FOUND_SUCCEEDED,
    SIGHT_FOUND_PARKED,
    SIGHT_FOUND_RESOLVED,
    SIGHT_RESOLVED_SUCCEEDED,
    SIGHT_RESOLVED_FAILED,
    SIGHT_TOO_EARLY,
    SIGHT_NOTED,
    SIGHT_CASE_DECIDED,
    SIGHT_STRAY,
    SIGHT_EVENT,
    SIGHT_EVENT_AGAIN,
    SIGHT_EVENT_SETTLED,
    SIGHT_EVENT_LEFT,
    SIGHT_REVERSED,
    SIGHT_REVERSED_AND_COUNTED,
    SIGHT_TOLD,
    SIGHT_DELIVERED,
    SIGHT_DEAD,
    SIGHT_COUNT
};

static size_t sights[SIGHT_COUNT];

static const char *const keys[KEYS] = { "pay-1", "pay-2", "cap-1", "cap-2", "void-1", "back-1" };
static const char *const entries[] = { "plain", "dedup", "lagging", "closing", "mute", "blind" };

static uint64_t noise;
static bool is_copied; /* This life is left as an old copy once, and mostly at "dedup". */
static bool is_calm;   /* And nothing but that happens to it: no lies, no changes. */

static uint32_t pick(uint32_t below)
{
    noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(noise >> 33) % below;
}

static bool makes_payment(const char *key)
{
    return strncmp(key, "pay", 3) == 0;
}

static void see(enum sight sight, bool is_seen)
{
    sights[sight] += is_seen ? 1 : 0;
}

static struct idem_command pay_request(struct scene *scene, const char *key)
{
    bool at_dedup = is_copied && (is_calm || pick(4) != 0);
    struct idem_command command = scene_pay(scene, key, at_dedup ? "dedup" : entries[noise % 6]);
    command.accept.order_no = IDEM_STR("order-1"); /* All want the same. */
    bool at_once = !is_calm && pick(3) == 0;
    command.accept.capture_mode = at_once ? IDEM_CAPTURE_AUTOMATIC : IDEM_CAPTURE_MANUAL;
    return command;
}

static struct idem_command act_request(struct scene *scene, const char *key)
{
    enum idem_endpoint endpoint = key[0] == 'c'   ? IDEM_ENDPOINT_PAYMENTS_CAPTURE
                                  : key[0] == 'v' ? IDEM_ENDPOINT_PAYMENTS_CANCEL
                                                  : IDEM_ENDPOINT_REFUNDS_CREATE;
    static const char *const amounts[] = { "", "100.00", "40.00", "60.00", "0.01", "1" };
    struct idem_command command = scene_act(scene, key, endpoint, amounts[pick(6)]);
    command.accept.refund_no = pick(2) == 0 ? IDEM_STR("refund-1") : IDEM_STR("");
    if (scene->payment_count > 0) {
        command.accept.payment_id = scene->payments[pick((uint32_t)scene->payment_count)].id;
    }
    return command;
}

static void request(struct scene *scene, const char *key)
{
    scene->slot = pick(4) != 0;
    scene->wait_us = 20 * SECOND * pick(3);
    struct idem_command command =
        makes_payment(key) ? pay_request(scene, key) : act_request(scene, key);
    (void)scene_run(scene, &command);
    enum idem_intent_state state = scene->decision.intent.row.state;
    bool came = scene->decision.intent.write == IDEM_WRITE_INSERT;
    see(SIGHT_FOUND_SUCCEEDED, scene->decision.stub.write == IDEM_WRITE_DELETE);
    see(SIGHT_FOUND_PARKED, came && state == IDEM_INTENT_PARKED);
}

static void lie(struct idem_evidence *evidence)
{
    switch (pick(6)) {
    case 0:
        evidence->amount_minor += 1;
        return;
    case 1:
        evidence->currency = IDEM_STR("JPY");
        return;
    case 2:
        evidence->effect_id = IDEM_STR("somebody else's");
        return;
    case 3:
        evidence->account = IDEM_STR("another");
        return;
    case 4:
        evidence->region = IDEM_STR("another");
        return;
    default:
        evidence->entry = IDEM_STR("another");
        return;
    }
}

static void learn(struct scene *scene, const char *key)
{
    struct scene_intent *intent = scene_intent(scene, key);
    enum idem_evidence_source source = (enum idem_evidence_source)(1 + pick(3));
    enum idem_outcome_kind outcome = (enum idem_outcome_kind)(1 + pick(IDEM_OUTCOME_COUNT - 1));
    if (pick(3) == 0) { /* What usually comes. */
        outcome = pick(2) == 0 ? IDEM_OUTCOME_UNKNOWN : IDEM_OUTCOME_NOT_EXECUTED;
    }
    struct idem_command command = scene_evidence(scene, key, source, outcome);
    if (intent != NULL && intent->send_count > 0 && pick(2) == 0) { /* Any attempt, any send. */
        const struct idem_send *send = &intent->sends[pick((uint32_t)intent->send_count)];
        command.evidence.token = send->token;
        command.evidence.send_no = send->no;
    }
    command.evidence.retry_after_us = pick(4) == 0 ? 3 * SECOND : 0;
    command.evidence.asked_us -= 40 * SECOND * pick(2);
    if (!is_calm && pick(8) == 0) {
        lie(&command.evidence);
    }
    (void)scene_run(scene, &command);
}

/* A callback: of a few names, so that some come again, also about something else. */
static void an_event_comes(struct scene *scene, const char *key)
{
    static const char *const names[] = { "e-1", "e-2", "e-3", "e-4", "e-5", "e-6", "e-7", "e-8",
                                         "e-9", "e-a", "e-b", "e-c", "e-d", "e-e", "e-f", "e-g" };
    static const enum idem_outcome_kind outcomes[] = {
        IDEM_OUTCOME_SUCCESS,    IDEM_OUTCOME_SUCCESS,       IDEM_OUTCOME_REFUSED_FINAL,
        IDEM_OUTCOME_PROCESSING, IDEM_OUTCOME_CLOSED_UNPAID, IDEM_OUTCOME_REVERSED,
    };
    struct idem_command command = scene_callback(scene, key, names[pick(16)], outcomes[pick(6)]);
    if (!is_calm && pick(8) == 0) {
        lie(&command.evidence);
    }
    struct idem_release release = scene_run(scene, &command);
    const struct idem_decision *decision = &scene->decision;
    see(SIGHT_EVENT, decision->inbox.write == IDEM_WRITE_INSERT);
    see(SIGHT_EVENT_AGAIN, decision->inbox.write == IDEM_WRITE_UPDATE);
    see(SIGHT_EVENT_SETTLED, decision->intent.write != IDEM_WRITE_NONE &&
                                 idem_intent_is_final(decision->intent.row.state) &&
                                 !idem_intent_is_final(scene->facts.intent.state));
    see(SIGHT_EVENT_LEFT, release.problem == IDEM_PROBLEM_UNAVAILABLE);
    bool is_reversed = decision->opened.kind == IDEM_CASE_REVERSED;
    see(SIGHT_REVERSED, is_reversed);
    see(SIGHT_REVERSED_AND_COUNTED, is_reversed && decision->payment.write != IDEM_WRITE_NONE);
}

/* One of two webhooks is added, changed or tried. */
static void a_webhook_changes(struct scene *scene)
{
    enum idem_webhook_action action =
        (enum idem_webhook_action)(1 + pick(IDEM_WEBHOOK_ACTION_COUNT - 1));
    struct idem_command command = scene_webhook(scene, action, (uint8_t)(1 + pick(2)));
    (void)scene_run(scene, &command);
    see(SIGHT_TOLD, scene->told[IDEM_MESSAGE_OPERATION_SUCCEEDED] > 0);
}

static void the_outbox_works(struct scene *scene)
{
    if (scene->delivery_count == 0) {
        a_webhook_changes(scene);
        return;
    }
    size_t index = pick((uint32_t)scene->delivery_count);
    enum idem_delivery_word word =
        (enum idem_delivery_word)(1 + pick(IDEM_DELIVERY_WORD_COUNT - 1));
    struct idem_command command = scene_delivery(scene, word, index);
    command.delivery.pause_us = pick(3) == 0 ? 0 : 60 * SECOND;
    if (word == IDEM_DELIVERY_WORD_TAKE) {
        command.delivery.pause_us = 60 * SECOND;
    }
    (void)scene_run(scene, &command);
    enum idem_delivery_state state = scene->deliveries[index].row.state;
    see(SIGHT_DELIVERED, state == IDEM_DELIVERY_DELIVERED);
    see(SIGHT_DEAD, state == IDEM_DELIVERY_DEAD);
}

static void a_person_speaks(struct scene *scene, const char *key)
{
    enum idem_verdict verdict = (enum idem_verdict)(1 + pick(IDEM_VERDICT_COUNT - 1));
    struct idem_command command = scene_resolve(scene, key, verdict);
    const struct scene_intent *intent = scene_intent(scene, key);
    bool had_case = intent != NULL && intent->open_cases > 0;
    command.resolve.amount_minor += pick(8) == 0 ? 1 : 0;
    struct idem_release release = scene_run(scene, &command);
    bool wrote = scene->decision.intent.write != IDEM_WRITE_NONE;
    see(SIGHT_RESOLVED_SUCCEEDED, wrote && verdict == IDEM_VERDICT_SUCCEEDED);
    see(SIGHT_FOUND_RESOLVED, scene->decision.stub.write == IDEM_WRITE_DELETE);
    see(SIGHT_RESOLVED_FAILED, wrote && verdict == IDEM_VERDICT_FAILED);
    see(SIGHT_NOTED, wrote && verdict == IDEM_VERDICT_NOTED);
    see(SIGHT_STRAY, wrote && verdict == IDEM_VERDICT_STRAY);
    see(SIGHT_TOO_EARLY, release.problem == IDEM_PROBLEM_TOO_EARLY);
    see(SIGHT_CASE_DECIDED, had_case && wrote);
}

static void retention(struct scene *scene, const char *key)
{
    scene_pass(scene, pick(3) == 0 ? 450 * DAY : DAY * pick(3));
    struct idem_command command = pick(2) == 0 ? scene_reap(scene, key) : scene_erase(scene, key);
    command.reap.horizon_us -= 30 * DAY * pick(3); /* It is late, or the clock has jumped. */
    (void)scene_run(scene, &command);
    see(SIGHT_TOMBSTONE, scene->decision.forget_history);
    see(SIGHT_REMOVED, scene->decision.intent.write == IDEM_WRITE_DELETE);
}

/* The effect that a key would have, as a provider could list it; of any payment. */
static struct idem_command listing_of(struct scene *scene, const char *key)
{
    if (makes_payment(key)) {
        enum idem_effect_kind kind =
            scene->manual ? IDEM_EFFECT_KIND_AUTHORIZE : IDEM_EFFECT_KIND_CHARGE;
        struct idem_command command = scene_listed(scene, key, kind, NULL);
        command.evidence.order_no = IDEM_STR("order-1");
        return command;
    }
    enum idem_effect_kind kind = key[0] == 'c'   ? IDEM_EFFECT_KIND_CAPTURE
                                 : key[0] == 'v' ? IDEM_EFFECT_KIND_CANCEL
                                                 : IDEM_EFFECT_KIND_REFUND;
    struct idem_command command = scene_listed(scene, key, kind, keys[pick(2)]);
    command.evidence.amount_minor = pick(2) == 0 ? 4000 : 6000;
    return command;
}

/* What is a stub already, listed once more. */
static struct idem_command listing_again(struct scene *scene, const char *key)
{
    const struct idem_stub *stub = scene_stub(scene, key);
    struct idem_command command = scene_listed(scene, key, stub->kind, NULL);
    command.evidence.order_no = stub->order_no;
    command.evidence.amount_minor = stub->amount_minor;
    command.evidence.payment_effect_id = stub->payment_effect_id;
    (void)idem_effect_id_scope(stub->payment_effect_id, &command.evidence.payment_scope);
    return command;
}

static struct idem_command listing_command(struct scene *scene, const char *key)
{
    if (scene_intent(scene, key) != NULL && pick(4) != 0) {
        return scene_evidence(scene, key, IDEM_SOURCE_LISTING, IDEM_OUTCOME_SUCCESS);
    }
    bool again = scene_stub(scene, key) != NULL && pick(4) != 0;
    return again ? listing_again(scene, key) : listing_of(scene, key);
}

static void a_listing_speaks(struct scene *scene, const char *key)
{
    const struct idem_payment *newest =
        scene->payment_count > 0 ? &scene->payments[scene->payment_count - 1] : NULL;
    scene->manual = newest == NULL || newest->capture_mode == IDEM_CAPTURE_MANUAL;
    struct idem_command command = listing_command(scene, key);
    if (!is_calm && pick(8) == 0) {
        lie(&command.evidence);
    }
    (void)scene_run(scene, &command);
    see(SIGHT_STUB, scene->decision.stub.write == IDEM_WRITE_INSERT);
    see(SIGHT_STUB_APPLIED, scene->decision.stub.row.applied);
    see(SIGHT_STUB_APPLIED_LATER, scene->decision.stub.write == IDEM_WRITE_UPDATE);
}

static void an_old_copy_goes_on(struct scene *scene, const char *key)
{
    if (!scene->restored) {
        scene->restored = pick(2) == 0;
        scene->incarnation += scene->restored ? 1 : 0;
        return;
    }
    if (pick(8) == 0) {
        struct idem_command command = scene_mark(scene, IDEM_MARK_RESTORED_OVER);
        (void)scene_run(scene, &command);
        return;
    }
    a_listing_speaks(scene, key);
}

static void time_passes(struct scene *scene, const char *key)
{
    const struct scene_intent *intent = scene_intent(scene, key);
    scene->slot = pick(4) != 0;
    if (intent != NULL && intent->row.due_us > scene->now_us && pick(2) == 0) {
        scene->now_us = intent->row.due_us;
    } else {
        scene_pass(scene, pick(2) == 0 ? SECOND : HOUR);
    }
    struct idem_command command = scene_due(scene, key);
    (void)scene_run(scene, &command);
}

static void the_world_changes(struct scene *scene)
{
    switch (pick(4)) {
    case 0:
        scene->incarnation += 1;
        return;
    case 1:
        scene->rules.provider_count = scene->rules.provider_count == 0 ? SCENE_ENTRIES : 0;
        return;
    default:
        scene->entries[pick(SCENE_ENTRIES)].account =
            pick(3) == 0 ? IDEM_STR("account-2") : IDEM_STR("account-1");
        return;
    }
}

static bool is_about_a_copy(const struct scene *scene, uint32_t what)
{
    return is_copied && what < (scene->restored ? 22 : 20);
}

static void mail(struct scene *scene, const char *key, uint32_t what)
{
    if (what < 28) {
        an_event_comes(scene, key);
    } else if (what < 29) {
        a_webhook_changes(scene);
    } else {
        the_outbox_works(scene);
    }
}

static void one_step(struct scene *scene, int step)
{
    const char *key = keys[pick(KEYS)];
    uint32_t what = pick(30);
    if (what == 0 && step < FREEZE_AT && !is_calm) {
        the_world_changes(scene);
    } else if (what < 7 && step < FREEZE_AT) {
        /* The edge refuses an entry that is not configured. */
        if (scene->rules.provider_count > 0) {
            request(scene, key);
        }
    } else if (what < 8 && step < FREEZE_AT) {
        struct idem_command command = scene_abandon(scene, key);
        (void)scene_run(scene, &command);
    } else if (what < 15) {
        learn(scene, key);
    } else if (what < 17) {
        a_person_speaks(scene, key);
    } else if (what < 18) {
        retention(scene, key);
    } else if (is_about_a_copy(scene, what)) {
        an_old_copy_goes_on(scene, key);
    } else if (what >= 24) {
        mail(scene, key, what);
    } else {
        time_passes(scene, key);
    }
}

static void one_life(struct scene *scene, size_t seen[IDEM_INTENT_COUNT])
{
    scene_begin(scene);
    for (int step = 0; step < STEPS; step++) {
        one_step(scene, step);
        for (size_t i = 0; i < scene->intent_count; i++) {
            seen[scene->intents[i].row.state] += 1;
        }
    }
    scene_end(scene);
}

static void no_order_of_events_breaks_a_promise(void **state)
{
    (void)state;
    static struct scene scene;
    size_t seen[IDEM_INTENT_COUNT] = { 0 };
    for (uint64_t life = 0; life < LIVES; life++) {
        noise = life * 977 + 20261129;
        is_copied = life % 2 == 1;
        is_calm = life % 4 == 3;
        one_life(&scene, seen);
    }
    for (int i = IDEM_INTENT_CLAIMED; i < IDEM_INTENT_COUNT; i++) {
        assert_true(seen[i] > 0); /* The walk reaches every state. */
    }
    for (int i = 0; i < SIGHT_COUNT; i++) {
        assert_true(sights[i] > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_order_of_events_breaks_a_promise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
