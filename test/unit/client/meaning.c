/*
 * What answers mean: every signal, and close to a hundred answers as they come.
 *
 * Goal: whatever an API, a proxy or a captive portal answers, nobody is charged twice because of
 * how it was read, and no goods are shipped for an answer that is not the API's. Each code of our
 * own API means what docs/errors.md says. Every row of the table is of use. The page says what the
 * table says.
 *
 * Method: the rules of safety are written down below as conditions on any reading, and held against
 * every signal that can be made: every dialect, verdict, status from 0 to 999, code of the table or
 * of problem.def (errors only, as in signals), effect, retry, replay, should-retry, echo and body.
 * The codes of our own API are listed a second time by hand with what each must mean, and compared
 * with core/problem.def. At last the answers of answers.h, bytes with headers as the APIs document
 * them, are read from end to end. `test-client-meaning --print > docs/client-rules.md` writes the
 * page.
 */
#include "client/meaning.h"

#include "answers.h"
#include "lib/test.h"

static const char *page_path;

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- every signal ---- */

/* The rows, by what they say: each `why` stands once. */
static const char *const row_whys[] = {
#define IDEM_RULE(dialect, verdict, first, last, code, effect, retry, mark, meaning, next, why) why,
#include "client/meaning.def"
#undef IDEM_RULE
};
static unsigned long row_hits[COUNT(row_whys)];

static const char *const row_codes[] = {
#define IDEM_RULE(dialect, verdict, first, last, code, effect, retry, mark, meaning, next, why) \
    code,
#include "client/meaning.def"
#undef IDEM_RULE
};

static const char *const problem_codes[] = {
#define IDEM_PROBLEM(symbol, code, status, effect, retry, title) code,
#include "core/problem.def"
#undef IDEM_PROBLEM
};

/* Said before the key was looked up, by our own API: this copy was recorded nowhere. */
static const char *const early_codes[] = {
    "too-old",         "unavailable", "rate-limited", "too-slow",  "digest-mismatch",
    "unauthenticated", "forbidden",   "not-found",    "too-large", "head-too-large",
};

static bool is(const char *left, const char *right)
{
    return strcmp(left, right) == 0;
}

static bool is_one_of(const char *code, const char *const *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is(code, codes[i])) {
            return true;
        }
    }
    return false;
}

/* A signal with what the conditions ask of it. */
struct situation {
    const struct idem_dialect *dialect;
    const struct idem_signal *signal;
    struct idem_reading reading;
    bool error; /* 400 to 599, answered. */
    bool ours;  /* With a word of a problem of ours. */
    bool stripe;
    bool adyen;
};

/* What must hold of every reading. Each is true where it has nothing to say. */

static bool answered(const struct situation *at)
{
    return at->signal->verdict == IDEM_HTTP_ANSWERED;
}

static bool means(const struct situation *at, enum idem_meaning meaning)
{
    return at->reading.meaning == meaning;
}

static bool again(const struct situation *at)
{
    return at->reading.next == IDEM_NEXT_AGAIN;
}

/* A dialect that sends the key back must have done so before anything is concluded. */
static bool named(const struct situation *at)
{
    return !at->dialect->echoes_key || at->signal->echoed == IDEM_SAID_YES;
}

static bool nothing_is_concluded_without_an_answer(const struct situation *at)
{
    return answered(at) || means(at, IDEM_MEANING_UNSURE) || means(at, IDEM_MEANING_TURNED_AWAY);
}

static bool done_is_the_api_s_own_word(const struct situation *at)
{
    const struct idem_signal *signal = at->signal;
    unsigned status = signal->status;
    bool whole = status >= 200 && status <= 299 && status != 202 && status != 206 && status != 207;
    bool told = at->error && signal->effect == IDEM_SAID_EFFECT_DONE;
    return !means(at, IDEM_MEANING_DONE) ||
           (named(at) && (told || (whole && !signal->page && !signal->broken)));
}

static bool refused_is_about_the_whole_key(const struct situation *at)
{
    const struct idem_signal *signal = at->signal;
    unsigned status = signal->status;
    bool final = signal->retry == IDEM_SAID_RETRY_NEW_KEY || signal->retry == IDEM_SAID_RETRY_QUERY;
    bool told = at->error && signal->effect == IDEM_SAID_EFFECT_NONE && final;
    bool stored = status == 402 || signal->replayed == IDEM_SAID_YES;
    bool storable = status >= 400 && status <= 499 && status != 409 && status != 429;
    bool by_stripe =
        at->stripe && !at->ours && signal->should_retry != IDEM_SAID_YES && signal->code[0] != '\0';
    return !means(at, IDEM_MEANING_REFUSED) ||
           (named(at) && (told || (by_stripe && stored && storable)));
}

static bool nothing_follows_what_is_final(const struct situation *at)
{
    bool final = means(at, IDEM_MEANING_DONE) || means(at, IDEM_MEANING_REFUSED);
    return !final || at->reading.next == IDEM_NEXT_STOP;
}

static bool told_same_key(const struct situation *at)
{
    return at->signal->retry == IDEM_SAID_RETRY_SAME_KEY &&
           at->signal->effect != IDEM_SAID_EFFECT_ABSENT;
}

static bool no_repeat_after_what_says_that_it_is_at_fault(const struct situation *at)
{
    unsigned status = at->signal->status;
    bool at_fault = status == 400 || status == 410 || status == 412 || status == 422;
    bool transient = at->adyen && status == 422 && is(at->signal->code, "704") &&
                     at->signal->should_retry == IDEM_SAID_YES;
    return !answered(at) || !again(at) || !at_fault || told_same_key(at) || transient;
}

static bool no_repeat_after_what_is_no_error(const struct situation *at)
{
    return !answered(at) || !again(at) || at->error;
}

static bool no_repeat_where_the_server_says_not(const struct situation *at)
{
    bool says_not = at->error && at->signal->should_retry == IDEM_SAID_NO;
    bool ours_says_else = at->ours && at->error && !told_same_key(at);
    return !again(at) || (!says_not && !ours_says_else);
}

static bool what_was_lost_is_unsure_and_repeated_unless_too_long(const struct situation *at)
{
    enum idem_next next = at->signal->too_long ? IDEM_NEXT_ASK : IDEM_NEXT_AGAIN;
    return at->signal->verdict != IDEM_HTTP_UNKNOWN ||
           (means(at, IDEM_MEANING_UNSURE) && at->reading.next == next);
}

static bool what_never_left_is_turned_away(const struct situation *at)
{
    enum idem_next next = at->signal->hopeless ? IDEM_NEXT_STOP : IDEM_NEXT_AGAIN;
    return at->signal->verdict != IDEM_HTTP_NOT_SENT ||
           (means(at, IDEM_MEANING_TURNED_AWAY) && at->reading.next == next);
}

static bool what_is_running_is_not_given_up(const struct situation *at)
{
    return !means(at, IDEM_MEANING_RUNNING) || at->reading.next != IDEM_NEXT_STOP;
}

static bool another_key_s_answer_is_not_believed(const struct situation *at)
{
    return !answered(at) || at->signal->echoed != IDEM_SAID_NO || means(at, IDEM_MEANING_UNSURE);
}

/* "This request did nothing" is a claim as well: after it a first try is REFUSED. */
static bool our_own_turns_away_only_in_so_many_words(const struct situation *at)
{
    const struct idem_signal *signal = at->signal;
    bool early = signal->effect == IDEM_SAID_EFFECT_UNKNOWN &&
                 is_one_of(signal->code, early_codes, COUNT(early_codes));
    return !means(at, IDEM_MEANING_TURNED_AWAY) || !at->ours || !at->error || early ||
           signal->effect == IDEM_SAID_EFFECT_NONE;
}

/* Statuses that leave it open whether the request was carried out. */
static bool leaves_it_open(const struct situation *at)
{
    static const unsigned open[] = { 408, 409, 410, 412, 424, 460, 499 };
    unsigned status = at->signal->status;
    for (size_t i = 0; i < COUNT(open); i++) {
        if (status == open[i]) {
            return true;
        }
    }
    bool nameless = at->signal->code[0] == '\0';
    bool filter = nameless && (status == 403 || status == 406 || at->signal->broken);
    bool not_settled = at->signal->should_retry == IDEM_SAID_YES && status != 425 && status != 429;
    return (filter && status != 425 && status != 429) || not_settled;
}

static bool others_turn_away_only_by_status(const struct situation *at)
{
    unsigned status = at->signal->status;
    bool ours = at->ours && at->error;
    bool moved = status == 301 || status == 307 || status == 308;
    bool refused = status >= 400 && status <= 499 && !leaves_it_open(at);
    bool unable = status == 501 || status == 505;
    bool keyless = at->adyen && status == 503 && is(at->signal->code, "703");
    return !answered(at) || ours || !means(at, IDEM_MEANING_TURNED_AWAY) || moved || refused ||
           unable || keyless;
}

static bool the_pause_is_kept(const struct situation *at)
{
    return at->reading.retry_after_us == at->signal->retry_after_us;
}

#define CONDITION(name) \
    {                   \
#        name, name     \
    }
static const struct {
    const char *name;
    bool (*holds)(const struct situation *at);
} conditions[] = {
    CONDITION(nothing_is_concluded_without_an_answer),
    CONDITION(done_is_the_api_s_own_word),
    CONDITION(refused_is_about_the_whole_key),
    CONDITION(nothing_follows_what_is_final),
    CONDITION(no_repeat_after_what_says_that_it_is_at_fault),
    CONDITION(no_repeat_after_what_is_no_error),
    CONDITION(no_repeat_where_the_server_says_not),
    CONDITION(what_was_lost_is_unsure_and_repeated_unless_too_long),
    CONDITION(what_never_left_is_turned_away),
    CONDITION(what_is_running_is_not_given_up),
    CONDITION(another_key_s_answer_is_not_believed),
    CONDITION(our_own_turns_away_only_in_so_many_words),
    CONDITION(others_turn_away_only_by_status),
    CONDITION(the_pause_is_kept),
};

static void broken(const char *name, const struct situation *at)
{
    const struct idem_signal *signal = at->signal;
    fail_msg(
        "%s: %s verdict %d hopeless %d too long %d status %u code \"%s\" effect %d retry %d "
        "should-retry %d replayed %d echoed %d page %d broken %d: %s, %s: %s",
        name, at->dialect->name, (int)signal->verdict, signal->hopeless, signal->too_long,
        signal->status, signal->code, (int)signal->effect, (int)signal->retry,
        (int)signal->should_retry, (int)signal->replayed, (int)signal->echoed, signal->page,
        signal->broken, idem_meaning_name(at->reading.meaning), idem_next_name(at->reading.next),
        at->reading.why);
}

static void row_count(const char *why)
{
    for (size_t i = 0; i < COUNT(row_whys); i++) {
        if (row_whys[i] == why || is(row_whys[i], why)) {
            row_hits[i] += 1;
            return;
        }
    }
    fail_msg("no row says \"%s\"", why);
}

static void signal_check(const struct idem_dialect *dialect, const struct idem_signal *signal)
{
    static const char *last_why;
    struct situation at = {
        .dialect = dialect,
        .signal = signal,
        .reading = idem_meaning_of(dialect, signal),
        .error =
            signal->verdict == IDEM_HTTP_ANSWERED && signal->status >= 400 && signal->status <= 599,
        .ours =
            signal->effect != IDEM_SAID_EFFECT_ABSENT || signal->retry != IDEM_SAID_RETRY_ABSENT,
        .stripe = dialect->id == IDEM_DIALECT_STRIPE,
        .adyen = dialect->id == IDEM_DIALECT_ADYEN,
    };
    if (at.reading.why != last_why) {
        last_why = at.reading.why;
        row_count(last_why);
    }
    for (size_t i = 0; i < COUNT(conditions); i++) {
        if (!conditions[i].holds(&at)) {
            broken(conditions[i].name, &at);
        }
    }
}

/* The three headers, in all dialects. */
static void headers_walk(struct idem_signal *signal)
{
    for (unsigned said = 0; said < 3 * 3 * 3; said++) {
        signal->should_retry = (enum idem_said)(said % 3);
        signal->replayed = (enum idem_said)(said / 3 % 3);
        signal->echoed = (enum idem_said)(said / 9);
        for (unsigned id = IDEM_DIALECT_ANY + 1; id < IDEM_DIALECT_COUNT; id++) {
            signal_check(idem_dialect_get((enum idem_dialect_id)id), signal);
        }
    }
}

static void advice_walk(struct idem_signal *signal)
{
    for (unsigned advice = 0; advice < 4 * 5; advice++) {
        signal->effect = (enum idem_said_effect)(advice % 4);
        signal->retry = (enum idem_said_retry)(advice / 4);
        headers_walk(signal);
    }
}

/* A page is a success; out of a body that was cut or harmed there is no code. */
static void body_walk(struct idem_signal *signal)
{
    bool success = signal->status >= 200 && signal->status < 300;
    for (unsigned body = 0; body < (success ? 4 : 2); body++) {
        signal->broken = body % 2 == 1;
        signal->page = body / 2 == 1;
        if (!signal->broken || signal->code[0] == '\0') {
            advice_walk(signal);
        }
    }
}

/* `first` to `last`: statuses that can come with this code. */
static void code_walk(enum idem_http_verdict verdict,
                      const char *code,
                      uint16_t first,
                      uint16_t last)
{
    struct idem_signal signal = { .verdict = verdict, .retry_after_us = 7 };
    (void)snprintf(signal.code, sizeof(signal.code), "%s", code);
    for (uint16_t status = first; status <= last; status++) {
        signal.status = status;
        body_walk(&signal);
    }
}

static bool is_row_code(const char *code, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        if (row_codes[i] != NULL && is(row_codes[i], code)) {
            return true;
        }
    }
    return false;
}

static void nothing_that_can_be_answered_breaks_a_rule_of_safety(void **state)
{
    (void)state;
    code_walk(IDEM_HTTP_ANSWERED, "", 0, 999);
    code_walk(IDEM_HTTP_ANSWERED, "some_other_code", 0, 999);
    for (size_t i = 0; i < COUNT(row_codes); i++) {
        bool named = row_codes[i] != NULL && row_codes[i][0] != '\0';
        if (named && !is_row_code(row_codes[i], i)) { /* Each once; only errors have one. */
            code_walk(IDEM_HTTP_ANSWERED, row_codes[i], 400, 599);
        }
    }
}

static void no_code_of_our_own_breaks_a_rule_of_safety(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(problem_codes); i++) {
        if (!is_row_code(problem_codes[i], COUNT(row_codes))) { /* Else it was walked above. */
            code_walk(IDEM_HTTP_ANSWERED, problem_codes[i], 400, 599);
        }
    }
}

static void without_an_answer_nothing_is_concluded(void **state)
{
    (void)state;
    static const enum idem_http_verdict verdicts[] = { IDEM_HTTP_NONE, IDEM_HTTP_NOT_SENT,
                                                       IDEM_HTTP_UNKNOWN };
    for (size_t i = 0; i < COUNT(verdicts); i++) {
        code_walk(verdicts[i], "", 0, 999);
    }
    struct idem_signal hopeless = { .verdict = IDEM_HTTP_NOT_SENT, .hopeless = true };
    advice_walk(&hopeless);
    struct idem_signal too_long = { .verdict = IDEM_HTTP_UNKNOWN, .too_long = true };
    advice_walk(&too_long);
}

static void every_row_is_of_use_and_says_something_of_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(row_whys); i++) {
        assert_true(strlen(row_whys[i]) > 0);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(row_whys[i], row_whys[j]);
        }
        /* Counted by the walks above: no earlier row hides it. */
        if (row_hits[i] == 0) {
            print_error("no signal reaches \"%s\"\n", row_whys[i]);
        }
        assert_true(row_hits[i] > 0);
    }
}

/* ---- the codes of our own API ---- */

struct expectation {
    enum idem_meaning meaning;
    enum idem_next next;
};

/* By hand, from docs/api.md and src/api/advice.c: what each means for one request. */
static const struct {
    const char *code;
    struct expectation expected;
} code_meanings[] = {
    { "key-missing", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "key-invalid", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "header-invalid", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "body-invalid", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "digest-mismatch", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN } },
    { "request-invalid", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "query-invalid", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "unauthenticated", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "declined", { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP } },
    { "forbidden", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "not-found", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "key-unknown", { IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN } },
    { "payment-missing", { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP } },
    { "method-not-allowed", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "too-slow", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN } },
    { "in-progress", { IDEM_MEANING_RUNNING, IDEM_NEXT_AGAIN } },
    { "order-exists", { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP } },
    { "refund-exists", { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP } },
    { "state-conflict", { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP } },
    { "abandoned", { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP } },
    { "too-old", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_ASK } },
    { "too-large", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "media-type", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "key-reused", { IDEM_MEANING_UNSURE, IDEM_NEXT_STOP } },
    { "amount-exceeds", { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP } },
    { "amount-invalid", { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP } },
    { "partial-refused", { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP } },
    { "head-too-large", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "internal", { IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN } },
    { "not-supported", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
    { "not-executed", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN } },
    { "outcome-unknown", { IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN } },
    { "unavailable", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN } },
    { "not-happened", { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP } },
    { "too-early", { IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN } },
    { "rate-limited", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN } },
    { "credential-conflict", { IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP } },
};

/* As the wire has it; DEPENDS stands for the two that it can be. */
enum wire_effect {
    WIRE_NONE = IDEM_SAID_EFFECT_NONE,
    WIRE_UNKNOWN = IDEM_SAID_EFFECT_UNKNOWN,
    WIRE_DEPENDS = IDEM_SAID_EFFECT_DONE + 1
};
enum wire_retry {
    WIRE_NEVER = IDEM_SAID_RETRY_NEVER,
    WIRE_SAME_KEY = IDEM_SAID_RETRY_SAME_KEY,
    WIRE_NEW_KEY = IDEM_SAID_RETRY_NEW_KEY,
    WIRE_QUERY = IDEM_SAID_RETRY_QUERY
};

static const struct {
    const char *code;
    uint16_t status;
    int effect;
    int retry;
} catalogue[] = {
#define IDEM_PROBLEM(symbol, wire_code, http_status, effect_word, retry_word, title) \
    { wire_code, http_status, (int)WIRE_##effect_word, (int)WIRE_##retry_word },
#include "core/problem.def"
#undef IDEM_PROBLEM
};

static void problem_expect(size_t row, int effect, struct expectation expected)
{
    struct idem_signal signal = {
        .verdict = IDEM_HTTP_ANSWERED,
        .status = catalogue[row].status,
        .effect = (enum idem_said_effect)effect,
        .retry = (enum idem_said_retry)catalogue[row].retry,
        .replayed = IDEM_SAID_YES,
        .echoed = IDEM_SAID_YES,
    };
    (void)snprintf(signal.code, sizeof(signal.code), "%s", catalogue[row].code);
    for (unsigned id = IDEM_DIALECT_ANY + 1; id < IDEM_DIALECT_COUNT; id++) {
        struct idem_reading reading =
            idem_meaning_of(idem_dialect_get((enum idem_dialect_id)id), &signal);
        if (reading.meaning != expected.meaning || reading.next != expected.next) {
            print_error("%s: %s, %s\n", signal.code, idem_meaning_name(reading.meaning),
                        idem_next_name(reading.next));
        }
        assert_int_equal(reading.meaning, expected.meaning);
        assert_int_equal(reading.next, expected.next);
    }
}

static const struct expectation *code_expectation(const char *code)
{
    for (size_t i = 0; i < COUNT(code_meanings); i++) {
        if (is(code_meanings[i].code, code)) {
            return &code_meanings[i].expected;
        }
    }
    return NULL;
}

static void row_expect(size_t row)
{
    const struct expectation done = { IDEM_MEANING_DONE, IDEM_NEXT_STOP };
    const struct expectation refused = { IDEM_MEANING_REFUSED, IDEM_NEXT_STOP };
    if (catalogue[row].effect == (int)WIRE_DEPENDS) {
        assert_string_equal(catalogue[row].code, "answer-expired");
        problem_expect(row, IDEM_SAID_EFFECT_DONE, done);
        problem_expect(row, IDEM_SAID_EFFECT_NONE, refused);
        return;
    }
    const struct expectation *expected = code_expectation(catalogue[row].code);
    if (expected == NULL) {
        fail_msg("%s is not expected here yet", catalogue[row].code);
        return;
    }
    problem_expect(row, catalogue[row].effect, *expected);
}

static void every_problem_of_our_own_means_what_it_says_in_every_dialect(void **state)
{
    (void)state;
    assert_int_equal(COUNT(catalogue), COUNT(code_meanings) + 1);
    for (size_t row = 0; row < COUNT(catalogue); row++) {
        row_expect(row);
    }
}

/* ---- answers as they come ---- */

static void an_answer_is_read_as_a_careful_person_would(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++) {
        static struct idem_http_call call;
        call = (struct idem_http_call){
            .verdict = IDEM_HTTP_ANSWERED,
            .status = answers[i].status,
            .content_type = idem_str_from(answers[i].type),
            .head = idem_str_from(answers[i].head),
            .answer = idem_str_from(answers[i].body),
        };
        const struct idem_dialect *dialect = idem_dialect_find(idem_str_from(answers[i].dialect));
        assert_non_null(dialect);
        struct idem_signal signal;
        idem_signal_read(dialect, IDEM_STR(KEY), &call, 0, &signal);
        struct idem_reading reading = idem_meaning_of(dialect, &signal);
        if (reading.meaning != answers[i].meaning || reading.next != answers[i].next) {
            print_error("%s, %s: %s, %s, expected %s, %s: %s\n", answers[i].dialect,
                        answers[i].what, idem_meaning_name(reading.meaning),
                        idem_next_name(reading.next), idem_meaning_name(answers[i].meaning),
                        idem_next_name(answers[i].next), reading.why);
        }
        assert_int_equal(reading.meaning, answers[i].meaning);
        assert_int_equal(reading.next, answers[i].next);
    }
}

/* ---- the page ---- */

static void the_page_says_what_the_table_says(void **state)
{
    (void)state;
    static char expected_memory[65536];
    static char actual_memory[65536];
    struct idem_buf expected;
    idem_buf_init(&expected, expected_memory, sizeof(expected_memory) - 1);
    idem_meaning_print(&expected);
    assert_false(expected.full);
    expected_memory[expected.len] = '\0';

    assert_non_null(page_path);
    FILE *file = fopen(page_path, "r");
    assert_non_null(file);
    struct idem_str actual = {
        .data = actual_memory,
        .len = fread(actual_memory, 1, sizeof(actual_memory), file),
    };
    assert_int_equal(fclose(file), 0);
    EXPECT_TEXT(actual, expected_memory);
}

static int print(void)
{
    static char memory[65536];
    struct idem_buf page;
    idem_buf_init(&page, memory, sizeof(memory));
    idem_meaning_print(&page);
    return !page.full && fwrite(page.data, 1, page.len, stdout) == page.len ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        return print();
    }
    page_path = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_that_can_be_answered_breaks_a_rule_of_safety),
        cmocka_unit_test(no_code_of_our_own_breaks_a_rule_of_safety),
        cmocka_unit_test(without_an_answer_nothing_is_concluded),
        cmocka_unit_test(every_row_is_of_use_and_says_something_of_its_own),
        cmocka_unit_test(every_problem_of_our_own_means_what_it_says_in_every_dialect),
        cmocka_unit_test(an_answer_is_read_as_a_careful_person_would),
        cmocka_unit_test(the_page_says_what_the_table_says),
    };
    return cmocka_run_group_tests_name("client/meaning", tests, NULL, NULL);
}
