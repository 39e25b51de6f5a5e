/*
 * What every adapter must do, as one suite over all of them.
 *
 * Goal: no adapter says more than its provider has said. Outcomes that money rests on come only
 * from answers that the fixture lists; the same effect is the same request for ever; a page is used
 * whole or not at all; an event is believed only as it was signed.
 *
 * Method: a fixture gives scenes, each a call and the answers that lead to its outcome. The suite
 * plays the port: it carries a call to some place of a scene with the right answers, and says
 * something else from there on. Bodies lie in memory of exactly their size, so that a sanitizer
 * sees a step too far.
 */
#include "conform/adapter.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/digest.h"
#include "lib/test.h"
#include "transport/client.h"

#define ID_OF_ANOTHER "c9876543210abcdefghjkmnpqrs"
#define NAMES_CHARGE  "\"id\":\"" CHARGE "\""
#define SECRET_KEY    "sk_test_conformance"
#define AMOUNT        INT64_C(10000)
#define COURSES       20000
#define RUNS_MAX      4
#define TRACE_MAX     ((size_t)64 * 1024)

static const struct adapter_fixture *const fixture = &adapter_fixture;

static const char *const ids[IDEM_EFFECT_KIND_COUNT] = {
    [IDEM_EFFECT_KIND_CHARGE] = CHARGE,   [IDEM_EFFECT_KIND_AUTHORIZE] = AUTHORIZE,
    [IDEM_EFFECT_KIND_CAPTURE] = CAPTURE, [IDEM_EFFECT_KIND_CANCEL] = CANCEL,
    [IDEM_EFFECT_KIND_REFUND] = REFUND,
};

/* Somebody else's words: a proxy's, another protocol's, nobody's. */
static const char *const foreign_bodies[] = {
    "",
    " ",
    "null",
    "0",
    "true",
    "\"succeeded\"",
    "[]",
    "{}",
    "[{}]",
    "{\"status\":\"ok\"}",
    "{\"status\":200}",
    "{\"status\":\"succeeded\"}",
    "{\"error\":\"not found\"}",
    "{\"error\":{}}",
    "{\"error\":{\"message\":\"upstream\"}}",
    "{\"code\":\"SYSTEM_ERROR\",\"message\":\"\"}",
    "{" NAMES_CHARGE "}",
    "{" NAMES_CHARGE "," NAMES_CHARGE "}",
    "{\"object\":\"list\",\"has_more\":false,\"data\":{}}",
    "<html><body>502 Bad Gateway</body></html>",
    "success",
    "\xef\xbb\xbf{}",
    "\xff\xfe\x00",
    "{\"a\":\"\\ud800\"}",
};

/* Effects. */

struct effect_scene {
    struct idem_effect effect;
    struct idem_effect_order order;
    char request[IDEM_REQUEST_MAX];
};

static void effect_encode(struct effect_scene *scene)
{
    struct idem_buf buf;

    idem_buf_init(&buf, scene->request, sizeof(scene->request));
    fixture->adapter->encode(&scene->order, &buf);
    assert_false(buf.full);
    scene->effect.request = idem_buf_str(&buf);
}

static void effect_fill(struct effect_scene *scene, enum idem_effect_kind kind, int fill)
{
    memset(scene, fill, sizeof(*scene)); /* What is left over from before must not matter. */
    scene->effect = (struct idem_effect){
        .kind = kind,
        .id = idem_str_from(ids[kind]),
        .entry = IDEM_STR("e-1"),
        .amount_minor = AMOUNT,
        .currency = IDEM_STR("EUR"),
    };
    scene->order = (struct idem_effect_order){
        .effect = &scene->effect,
        .order_no = IDEM_STR("o-1"),
        .method = IDEM_STR("pm_card_visa"),
    };
    if (!idem_effect_kind_makes_payment(kind)) {
        scene->order.payment_effect_id = IDEM_STR(AUTHORIZE);
        scene->order.payment_reference = idem_str_from(fixture->payment_reference);
    }
    effect_encode(scene);
}

/* Calls, as the port carries them. */

struct said {
    uint16_t status;
    struct idem_str body;
    const char *head;
};

/* The scene's answers up to `place`, and from there on always the same. */
struct plan {
    const struct adapter_scene *scene;
    size_t place;
    struct said said;
    const struct adapter_change *changes; /* Made in all answers; up to a NULL; or NULL. */
    uint64_t chance;                      /* Not 0: from `place` on anything, by chance. */
};

struct run {
    bool used;
    struct idem_evidence evidence;
    unsigned requests;
    bool harmful; /* One was made that can move money. */
    bool more;    /* Cut off, it would have gone on. */
    struct idem_buf harmful_trace;
    char harmful_memory[TRACE_MAX];
    char *bodies[IDEM_WIRE_STEPS_MAX];
    char text[IDEM_WIRE_STEPS_MAX][IDEM_HTTP_ANSWER_BODY_MAX];
};

/* Of a few, kept from test to test: what an earlier one left in their memory must not matter. */
static struct run *run_make(void)
{
    static struct run runs[RUNS_MAX];

    for (size_t i = 0; i < RUNS_MAX; i++) {
        struct run *run = &runs[i];
        if (!run->used) {
            run->used = true;
            run->evidence = (struct idem_evidence){ .amount_minor = -1 };
            run->requests = 0;
            run->harmful = false;
            run->more = false;
            idem_buf_init(&run->harmful_trace, run->harmful_memory, sizeof(run->harmful_memory));
            return run;
        }
    }
    fail_msg("more than %d runs at once", RUNS_MAX);
    return NULL;
}

static void run_free(struct run *run)
{
    for (size_t i = 0; i < run->requests; i++) {
        free(run->bodies[i]);
    }
    run->used = false;
}

static size_t answer_count(const struct adapter_scene *scene)
{
    size_t count = 0;
    while (count < IDEM_ARRAY_COUNT(scene->answers) && scene->answers[count] != NULL) {
        count += 1;
    }
    return count;
}

static uint64_t chance_next(uint64_t *chance)
{
    *chance ^= *chance << 13;
    *chance ^= *chance >> 7;
    *chance ^= *chance << 17;
    return *chance;
}

static struct said said_by_chance(uint64_t *chance)
{
    static const uint16_t statuses[] = { 200, 200, 200, 400, 402, 404, 409, 429, 500, 503 };
    struct said said = { .status = statuses[chance_next(chance) % IDEM_ARRAY_COUNT(statuses)] };
    size_t head_count = 0;
    uint64_t kind = chance_next(chance) % 4;

    while (fixture->heads[head_count] != NULL) {
        head_count += 1;
    }
    said.head = fixture->heads[chance_next(chance) % head_count];
    if (kind == 0) {
        size_t index = chance_next(chance) % IDEM_ARRAY_COUNT(foreign_bodies);
        said.body = idem_str_from(foreign_bodies[index]);
    } else if (kind == 1) {
        const struct adapter_scene *scene =
            &fixture->scenes[chance_next(chance) % fixture->scene_count];
        size_t index = chance_next(chance) % answer_count(scene);
        said.body = idem_str_from(scene->answers[index]);
    } else {
        size_t index = chance_next(chance) % fixture->belief_count;
        said.body = idem_str_from(fixture->beliefs[index].body);
    }
    return said;
}

/* In memory of exactly its size, from the heap. */
static struct idem_buf exact_make(struct idem_str text)
{
    char *exact = malloc(text.len > 0 ? text.len : 1);
    assert_non_null(exact);
    if (text.len > 0) {
        memcpy(exact, text.data, text.len);
    }
    return (struct idem_buf){ .data = exact, .len = text.len, .max = text.len };
}

/* `text` with every `from` replaced. */
static struct idem_buf text_change(struct idem_str text, const struct adapter_change *change)
{
    struct idem_str from = idem_str_from(change->from);
    char memory[IDEM_HTTP_ANSWER_BODY_MAX];
    struct idem_buf buf;

    idem_buf_init(&buf, memory, sizeof(memory));
    for (size_t at = 0; at < text.len;) {
        bool here = idem_str_equal(idem_str_slice(text, at, from.len), from);
        idem_buf_add(&buf, here ? idem_str_from(change->to) : idem_str_slice(text, at, 1));
        at += here ? from.len : 1;
    }
    assert_false(buf.full);
    return exact_make(idem_buf_str(&buf));
}

static struct idem_buf body_keep(struct idem_str text, const struct adapter_change *changes)
{
    struct idem_buf body = exact_make(text);

    for (; changes != NULL && changes->from != NULL; changes++) {
        struct idem_buf changed = text_change(idem_buf_str(&body), changes);
        free(body.data);
        body = changed;
    }
    return body;
}

static struct said said_at(struct plan *plan, size_t index)
{
    size_t count = answer_count(plan->scene);

    if (index >= plan->place) {
        return plan->chance != 0 ? said_by_chance(&plan->chance) : plan->said;
    }
    index = index < count ? index : count - 1;
    return (struct said){ 200, idem_str_from(plan->scene->answers[index]), "" };
}

static void trace_add(struct run *run, const struct idem_wire_request *request)
{
    const struct idem_str parts[] = { idem_str_from(request->method), request->path,
                                      request->body };
    struct idem_str secret = IDEM_STR(SECRET_KEY);

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(parts); i++) {
        for (size_t at = 0; at < parts[i].len; at++) {
            assert_false(idem_str_equal(idem_str_slice(parts[i], at, secret.len), secret));
        }
    }
    assert_in_range(request->header_count, 0, IDEM_ARRAY_COUNT(request->headers));
    if (request->harmless) {
        return;
    }
    run->harmful = true;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(parts); i++) {
        idem_buf_add(&run->harmful_trace, parts[i]);
        idem_buf_add_char(&run->harmful_trace, '\n');
    }
    for (size_t i = 0; i < request->header_count; i++) {
        idem_buf_add(&run->harmful_trace, request->headers[i]);
        idem_buf_add_char(&run->harmful_trace, '\n');
    }
    assert_false(run->harmful_trace.full);
}

/* Makes the request of a step; false: it needs none. */
static bool request_make(struct idem_wire_course *course, struct run *run)
{
    const struct idem_adapter *adapter = fixture->adapter;
    struct idem_wire_request request = { .header_count = 0 };
    char memory[4096];
    struct idem_buf buf;

    idem_buf_init(&buf, memory, sizeof(memory));
    if (adapter->steps == NULL) {
        adapter->request(course->kind, course->effect, IDEM_STR(SECRET_KEY), &buf, &request);
    } else if (!adapter->steps->request(course, IDEM_STR(SECRET_KEY), &buf, &request)) {
        return false;
    }
    assert_false(buf.full);
    trace_add(run, &request);
    return true;
}

static bool answer_read(struct idem_wire_course *course,
                        const struct said *said,
                        struct idem_str body,
                        struct idem_buf *buf)
{
    const struct idem_wire_answer answer = {
        .status = said->status,
        .content_type = IDEM_STR("application/json"),
        .body = body,
        .head = idem_str_from(said->head),
    };
    const struct idem_adapter *adapter = fixture->adapter;

    if (adapter->steps != NULL) {
        return adapter->steps->decode(course, &answer, buf);
    }
    adapter->decode(course->kind, course->effect, &answer, buf, &course->so_far);
    return false;
}

static void call_run(const struct idem_effect *effect, struct plan *plan, struct run *run)
{
    bool send = plan->scene->call == IDEM_CALL_SEND;
    struct idem_wire_course course = {
        .kind = plan->scene->call,
        .effect = effect,
        .so_far = { .outcome = send ? IDEM_OUTCOME_NOT_EXECUTED : IDEM_OUTCOME_UNKNOWN,
                    .amount_minor = -1 },
    };

    run->more = true;
    while (run->more && run->requests < IDEM_WIRE_STEPS_MAX) {
        if (!request_make(&course, run)) {
            run->more = false;
            break;
        }
        struct said said = said_at(plan, run->requests);
        struct idem_buf body = body_keep(said.body, plan->changes);
        run->bodies[run->requests] = body.data;
        struct idem_buf buf;
        idem_buf_init(&buf, run->text[run->requests], sizeof(run->text[0]));
        run->requests += 1;
        run->more = answer_read(&course, &said, idem_buf_str(&body), &buf);
        if (buf.full) { /* As the port has it. */
            course.so_far = (struct idem_evidence){ .outcome = IDEM_OUTCOME_UNKNOWN };
            run->more = false;
        }
    }
    run->evidence = course.so_far;
}

static struct run *plan_run(struct plan *plan)
{
    struct effect_scene scene;
    struct run *run = run_make();

    effect_fill(&scene, plan->scene->kind, 0);
    scene.effect.reference = idem_str_from(plan->scene->reference);
    call_run(&scene.effect, plan, run);
    /* Only the outcome and numbers are looked at behind this. */
    run->evidence.effect_id = idem_str_equal(run->evidence.effect_id, scene.effect.id)
                                  ? idem_str_from(ids[plan->scene->kind])
                                  : (struct idem_str){ .len = 0 };
    return run;
}

static void plan_print(const struct plan *plan, const struct run *run)
{
    print_error("%s, call %d, effect kind %d: after %zu answers, status %u and\n%.*s\nsaid: %s\n",
                fixture->adapter->name, (int)plan->scene->call, (int)plan->scene->kind, plan->place,
                plan->said.status, (int)(plan->said.body.len < 400 ? plan->said.body.len : 400),
                plan->said.body.data == NULL ? "" : plan->said.body.data,
                idem_outcome_kind_name(run->evidence.outcome));
}

static bool status_is_among(const uint16_t *statuses, uint16_t status)
{
    for (size_t i = 0; i < 4; i++) {
        if (statuses[i] == status) {
            return true;
        }
    }
    return false;
}

static bool is_believed(const struct plan *plan, enum idem_outcome_kind outcome)
{
    for (size_t i = 0; i < fixture->belief_count; i++) {
        const struct adapter_belief *belief = &fixture->beliefs[i];
        if (idem_str_equal(plan->said.body, idem_str_from(belief->body)) &&
            (belief->calls & 1U << plan->scene->call) != 0 &&
            (belief->kinds & 1U << plan->scene->kind) != 0 &&
            (belief->places & 1U << plan->place) != 0 &&
            status_is_among(belief->statuses, plan->said.status)) {
            return belief->outcome == outcome;
        }
    }
    return false;
}

/* The right answer is what it is; of a send that has not sent anything, NOT_EXECUTED is true. */
static bool is_allowed(const struct plan *plan, const struct run *run)
{
    enum idem_outcome_kind outcome = run->evidence.outcome;
    bool send = plan->scene->call == IDEM_CALL_SEND;
    size_t count = answer_count(plan->scene);
    bool right = plan->said.status == 200 && plan->place < count &&
                 idem_str_equal(plan->said.body, idem_str_from(plan->scene->answers[plan->place]));

    return outcome == IDEM_OUTCOME_UNKNOWN || is_believed(plan, outcome) ||
           (right && outcome == plan->scene->outcome) ||
           (outcome == IDEM_OUTCOME_NOT_EXECUTED && send && !run->harmful);
}

/* Says it at this place of the scene, and looks at what is made of it. */
static void expect_no_more_than_said(const struct adapter_scene *scene,
                                     size_t place,
                                     struct said said)
{
    struct plan plan = { .scene = scene, .place = place, .said = said };
    struct run *run = plan_run(&plan);

    if (!is_allowed(&plan, run) || run->more) {
        plan_print(&plan, run);
        fail();
    }
    run_free(run);
}

/* Each place of each scene; false: there are no more. */
struct spot {
    const struct adapter_scene *scene;
    size_t place;
};

static bool spot_find(size_t index, struct spot *ret_spot)
{
    for (size_t i = 0; i < fixture->scene_count; i++) {
        size_t count = answer_count(&fixture->scenes[i]);
        if (index < count) {
            *ret_spot = (struct spot){ &fixture->scenes[i], index };
            return true;
        }
        index -= count;
    }
    return false;
}

static void expect_no_more_with_any_status(const struct spot *spot, struct idem_str body)
{
    for (uint16_t status = 100; status < 600; status++) {
        expect_no_more_than_said(spot->scene, spot->place, (struct said){ status, body, "" });
    }
}

/* Tests: encode and request. */

static void an_effect_is_always_the_same_bytes(void **state)
{
    (void)state;
    static struct effect_scene first;
    static struct effect_scene second;
    for (unsigned kind = IDEM_EFFECT_KIND_NONE + 1; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        effect_fill(&first, (enum idem_effect_kind)kind, 0);
        effect_fill(&second, (enum idem_effect_kind)kind, 0xa5);
        assert_true(first.effect.request.len > 0);
        assert_true(idem_str_equal(first.effect.request, second.effect.request));
    }
}

static void longest_order_encode(enum idem_effect_kind kind, const char *text)
{
    static struct effect_scene scene;

    effect_fill(&scene, kind, 0);
    scene.effect.amount_minor = INT64_C(99999999999999);
    scene.order.order_no = (struct idem_str){ text, IDEM_ORDER_NO_MAX };
    scene.order.method = (struct idem_str){ text, IDEM_METHOD_MAX };
    scene.order.description = (struct idem_str){ text, IDEM_DESCRIPTION_MAX };
    if (!idem_effect_kind_makes_payment(kind)) {
        scene.order.payment_reference = (struct idem_str){ text, IDEM_REFERENCE_MAX };
    }
    effect_encode(&scene);
}

/* Each text as long as it may be, of a byte that no format takes as it is. */
static void the_longest_order_fits(void **state)
{
    (void)state;
    static const char bytes[] = { 'a', '"', '\\', '\x01', '&', ' ' };
    static char text[IDEM_DESCRIPTION_MAX];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        memset(text, bytes[i], sizeof(text));
        for (unsigned kind = IDEM_EFFECT_KIND_NONE + 1; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
            longest_order_encode((enum idem_effect_kind)kind, text);
        }
    }
}

static bool contains(struct idem_str text, struct idem_str part)
{
    for (size_t at = 0; at + part.len <= text.len; at++) {
        if (idem_str_equal(idem_str_slice(text, at, part.len), part)) {
            return true;
        }
    }
    return false;
}

/* Once more, and once more when the provider's number is known: what moves money is the same. */
static void every_send_is_the_same_and_names_our_id(void **state)
{
    (void)state;
    static struct effect_scene scene;
    for (size_t i = 0; i < fixture->scene_count; i++) {
        struct plan plan = { .scene = &fixture->scenes[i], .place = SIZE_MAX };
        if (plan.scene->call != IDEM_CALL_SEND) {
            continue;
        }
        struct run *first = run_make();
        struct run *second = run_make();
        struct run *other = run_make();
        effect_fill(&scene, plan.scene->kind, 0);
        call_run(&scene.effect, &plan, first);
        effect_fill(&scene, plan.scene->kind, 0xa5);
        call_run(&scene.effect, &plan, second);
        scene.effect.id = IDEM_STR(ID_OF_ANOTHER);
        effect_encode(&scene);
        call_run(&scene.effect, &plan, other);
        struct idem_str sent = idem_buf_str(&first->harmful_trace);
        assert_true(first->harmful);
        assert_true(contains(sent, idem_str_from(ids[plan.scene->kind])));
        assert_true(idem_str_equal(sent, idem_buf_str(&second->harmful_trace)));
        assert_false(idem_str_equal(sent, idem_buf_str(&other->harmful_trace)));
        run_free(second);
        run_free(other);

        struct run *known = run_make();
        effect_fill(&scene, plan.scene->kind, 0);
        scene.effect.reference = first->evidence.reference;
        call_run(&scene.effect, &(struct plan){ .scene = plan.scene, .place = SIZE_MAX }, known);
        assert_true(contains(sent, idem_buf_str(&known->harmful_trace)));
        run_free(known);
        run_free(first);
    }
}

/* Tests: answers. */

static void the_right_answers_lead_to_their_outcome(void **state)
{
    (void)state;
    unsigned kinds = 0;
    for (size_t i = 0; i < fixture->scene_count; i++) {
        const struct adapter_scene *scene = &fixture->scenes[i];
        struct plan plan = { .scene = scene, .place = SIZE_MAX };
        struct run *run = plan_run(&plan);
        kinds |= scene->call == IDEM_CALL_SEND ? 1U << scene->kind : 0;
        if (run->evidence.outcome != scene->outcome) {
            plan_print(&plan, run);
            fail();
        }
        if (scene->outcome == IDEM_OUTCOME_SUCCESS) {
            assert_true(run->evidence.effect_id.len > 0);
            assert_int_equal(run->evidence.amount_minor, AMOUNT);
            EXPECT_TEXT(run->evidence.currency, "EUR");
        }
        run_free(run);
    }
    assert_int_equal(kinds, PAYS | ACTS);
}

static bool belief_is_true(const struct adapter_belief *belief)
{
    bool seen = belief->calls == 0; /* Listed as what is not to be believed. */
    struct spot spot;

    for (size_t i = 0; spot_find(i, &spot); i++) {
        struct plan plan = { .scene = spot.scene, .place = spot.place };
        plan.said = (struct said){ belief->statuses[0], idem_str_from(belief->body), "" };
        struct run *run = plan_run(&plan);
        seen = seen ||
               (is_believed(&plan, belief->outcome) && run->evidence.outcome == belief->outcome);
        run_free(run);
    }
    return seen;
}

/* Or the fixture lists what this adapter does not know. */
static void what_may_be_believed_is_believed(void **state)
{
    (void)state;
    for (size_t i = 0; i < fixture->belief_count; i++) {
        if (!belief_is_true(&fixture->beliefs[i])) {
            print_error("belief %zu is never true: %s\n", i, fixture->beliefs[i].body);
            fail();
        }
    }
}

static void no_status_makes_more_of_a_body(void **state)
{
    (void)state;
    struct spot spot;
    for (size_t i = 0; spot_find(i, &spot); i++) {
        for (size_t j = 0; j < IDEM_ARRAY_COUNT(foreign_bodies); j++) {
            expect_no_more_with_any_status(&spot, idem_str_from(foreign_bodies[j]));
        }
        for (size_t j = 0; j < fixture->belief_count; j++) {
            expect_no_more_with_any_status(&spot, idem_str_from(fixture->beliefs[j].body));
        }
        expect_no_more_with_any_status(&spot, idem_str_from(spot.scene->answers[spot.place]));
    }
}

static void no_part_of_an_answer_is_enough(void **state)
{
    (void)state;
    struct spot spot;
    for (size_t i = 0; spot_find(i, &spot); i++) {
        struct idem_str whole = idem_str_from(spot.scene->answers[spot.place]);
        for (size_t len = 0; len < whole.len; len++) {
            struct said said = { 200, idem_str_slice(whole, 0, len), "" };
            expect_no_more_than_said(spot.scene, spot.place, said);
        }
    }
}

/* As long as the transport lets through. */
static void a_long_answer_is_no_more_than_a_short_one(void **state)
{
    (void)state;
    static const char *const parts[] = { "[", "{\"a\":", "[0,", "\"", " ", "\\", "\xf0\x9f" };
    static char longest[IDEM_HTTP_ANSWER_BODY_MAX];
    const struct said said = { 200, { longest, sizeof(longest) }, "" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(parts); i++) {
        struct spot spot;
        for (size_t at = 0; at < sizeof(longest); at++) {
            longest[at] = parts[i][at % strlen(parts[i])];
        }
        for (size_t j = 0; spot_find(j, &spot); j++) {
            expect_no_more_than_said(spot.scene, spot.place, said);
        }
    }
}

/* All answers of the scene with these changes, of which one must be there to be made. */
static struct run *changed_run(const struct adapter_scene *scene,
                               const struct adapter_change *changes)
{
    struct plan plan = { .scene = scene, .place = SIZE_MAX, .changes = changes };
    bool changed = false;

    for (size_t i = 0; i < answer_count(scene); i++) {
        for (const struct adapter_change *change = changes; change->from != NULL; change++) {
            changed = changed || strstr(scene->answers[i], change->from) != NULL;
        }
    }
    assert_true(changed);
    return plan_run(&plan);
}

static void expect_not_ours(const struct adapter_scene *scene, const struct adapter_change *changes)
{
    struct run *run = changed_run(scene, changes);
    bool ours = run->evidence.effect_id.len > 0 && run->evidence.amount_minor == AMOUNT &&
                idem_str_equal(run->evidence.currency, IDEM_STR("EUR"));

    if (run->evidence.outcome == IDEM_OUTCOME_SUCCESS && ours) {
        print_error("%s, effect kind %d: '%s' became '%s', and it is still ours\n",
                    fixture->adapter->name, (int)scene->kind, changes->from, changes->to);
        fail();
    }
    run_free(run);
}

static void another_id_amount_or_currency_is_not_ours(void **state)
{
    (void)state;
    const struct adapter_change amount[] = { fixture->amount, { NULL, NULL } };
    const struct adapter_change currency[] = { fixture->currency, { NULL, NULL } };
    for (size_t i = 0; i < fixture->scene_count; i++) {
        const struct adapter_scene *scene = &fixture->scenes[i];
        const struct adapter_change id[] = { { ids[scene->kind], ID_OF_ANOTHER },
                                             { AUTHORIZE, ID_OF_ANOTHER },
                                             { NULL, NULL } };
        if (scene->outcome == IDEM_OUTCOME_SUCCESS) {
            expect_not_ours(scene, id);
            expect_not_ours(scene, amount);
            expect_not_ours(scene, currency);
        }
    }
}

static void a_state_that_is_not_listed_is_unknown(void **state)
{
    (void)state;
    char longer[128];
    (void)snprintf(longer, sizeof(longer), "%szz_", fixture->state);
    const struct adapter_change changes[] = { { fixture->state, longer }, { NULL, NULL } };
    for (size_t i = 0; i < fixture->scene_count; i++) {
        struct run *run = changed_run(&fixture->scenes[i], changes);
        bool unsent = run->evidence.outcome == IDEM_OUTCOME_NOT_EXECUTED && !run->harmful;
        if (run->evidence.outcome != IDEM_OUTCOME_UNKNOWN && !unsent) {
            print_error("%s, scene %zu: %s of a state that nobody knows\n", fixture->adapter->name,
                        i, idem_outcome_kind_name(run->evidence.outcome));
            fail();
        }
        run_free(run);
    }
}

static void every_call_ends_by_itself(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= COURSES; seed++) {
        const struct adapter_scene *scene = &fixture->scenes[seed % fixture->scene_count];
        struct plan plan = {
            .scene = scene,
            .place = seed / fixture->scene_count % answer_count(scene),
            .chance = seed * UINT64_C(0x9e3779b97f4a7c15),
        };
        struct run *run = plan_run(&plan);
        if (run->more) {
            print_error("seed %llu: %u requests, and no end\n", (unsigned long long)seed,
                        run->requests);
            fail();
        }
        assert_true(run->evidence.outcome > IDEM_OUTCOME_NONE);
        assert_true(run->evidence.outcome < IDEM_OUTCOME_COUNT);
        run_free(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_effect_is_always_the_same_bytes),
        cmocka_unit_test(the_longest_order_fits),
        cmocka_unit_test(every_send_is_the_same_and_names_our_id),
        cmocka_unit_test(the_right_answers_lead_to_their_outcome),
        cmocka_unit_test(what_may_be_believed_is_believed),
        cmocka_unit_test(no_status_makes_more_of_a_body),
        cmocka_unit_test(no_part_of_an_answer_is_enough),
        cmocka_unit_test(a_long_answer_is_no_more_than_a_short_one),
        cmocka_unit_test(another_id_amount_or_currency_is_not_ours),
        cmocka_unit_test(a_state_that_is_not_listed_is_unknown),
        cmocka_unit_test(every_call_ends_by_itself),
    };
    return cmocka_run_group_tests_name("conform_adapter", tests, NULL, NULL);
}
