/*
 * The table of meaning.def and the walk through it. Held by test/unit/client/meaning.c over every
 * signal that can be made of the words in the table:
 *
 *   - without a complete answer nothing is DONE, REFUSED or RUNNING;
 *   - REFUSED only by a problem of ours whose refusal is stored, or by what Stripe has stored;
 *   - DONE only by a 2xx that is the API's own and whole, or by a problem of ours that says so;
 *   - never AGAIN after 400, 410, 412 and 422, unless the server itself asks for the same key;
 *   - an answer that names another key leaves everything open;
 *   - where the API sends the key back, nothing is DONE or REFUSED without it;
 *   - the last row fits everything, so that there is always a meaning.
 *
 * Why a table and not code: this is the part that a payment engineer must be able to check line by
 * line, and the page docs/client-rules.md is made of the same lines.
 */
#include "client/meaning.h"

#include <string.h>

#include "base/bug.h"
#include "base/clock.h"

#define ERROR_MIN 400

#define MINUTE (60 * IDEM_US_PER_SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    IDEM_US_PER_DAY

/* The words of the table; ANY fits everything. */
enum {
    DIALECT_ANY = IDEM_DIALECT_ANY,
    DIALECT_IETF = IDEM_DIALECT_IETF,
    DIALECT_STRIPE = IDEM_DIALECT_STRIPE,
    DIALECT_ADYEN = IDEM_DIALECT_ADYEN,
    DIALECT_PAYPAL = IDEM_DIALECT_PAYPAL,

    VERDICT_ANY = -1,
    VERDICT_NOT_SENT = IDEM_HTTP_NOT_SENT,
    VERDICT_ANSWERED = IDEM_HTTP_ANSWERED,
    VERDICT_UNKNOWN = IDEM_HTTP_UNKNOWN,

    EFFECT_ANY = -1,
    EFFECT_NONE = IDEM_SAID_EFFECT_NONE,
    EFFECT_UNKNOWN = IDEM_SAID_EFFECT_UNKNOWN,
    EFFECT_DONE = IDEM_SAID_EFFECT_DONE,

    RETRY_ANY = -1,
    RETRY_NEVER = IDEM_SAID_RETRY_NEVER,
    RETRY_SAME_KEY = IDEM_SAID_RETRY_SAME_KEY,
    RETRY_NEW_KEY = IDEM_SAID_RETRY_NEW_KEY,
    RETRY_QUERY = IDEM_SAID_RETRY_QUERY
};

enum mark {
    MARK_ANY = 0,
    MARK_HOPELESS,
    MARK_TOO_LONG,
    MARK_OTHER_KEY,
    MARK_NO_KEY,
    MARK_PAGE,
    MARK_BROKEN,
    MARK_ADVISED,
    MARK_REPLAYED,
    MARK_SHOULD_RETRY
};

struct rule {
    int dialect;
    int verdict;
    unsigned first;
    unsigned last;
    const char *code;
    int effect;
    int retry;
    enum mark mark;
    enum idem_meaning meaning;
    enum idem_next next;
    const char *why;
};

static const struct rule rules[] = {
#define IDEM_RULE(dialect_id, verdict_id, first_status, last_status, code_text, effect_word, \
                  retry_word, mark_word, meaning_id, next_id, why_text)                      \
    {                                                                                        \
        .dialect = DIALECT_##dialect_id,                                                     \
        .verdict = VERDICT_##verdict_id,                                                     \
        .first = (first_status),                                                             \
        .last = (last_status),                                                               \
        .code = (code_text),                                                                 \
        .effect = EFFECT_##effect_word,                                                      \
        .retry = RETRY_##retry_word,                                                         \
        .mark = MARK_##mark_word,                                                            \
        .meaning = IDEM_MEANING_##meaning_id,                                                \
        .next = IDEM_NEXT_##next_id,                                                         \
        .why = (why_text),                                                                   \
    },
#include "client/meaning.def" // IWYU pragma: keep
#undef IDEM_RULE
};

static bool mark_fits(enum mark mark,
                      const struct idem_dialect *dialect,
                      const struct idem_signal *signal)
{
    switch (mark) {
    case MARK_ANY:
        return true;
    case MARK_HOPELESS:
        return signal->hopeless;
    case MARK_TOO_LONG:
        return signal->too_long;
    case MARK_OTHER_KEY:
        return signal->echoed == IDEM_SAID_NO;
    case MARK_NO_KEY:
        return dialect->echoes_key && signal->echoed != IDEM_SAID_YES;
    case MARK_PAGE:
        return signal->page;
    case MARK_BROKEN:
        return signal->broken;
    case MARK_ADVISED:
        return signal->effect != IDEM_SAID_EFFECT_ABSENT || signal->retry != IDEM_SAID_RETRY_ABSENT;
    case MARK_REPLAYED:
        return signal->replayed == IDEM_SAID_YES;
    case MARK_SHOULD_RETRY:
        return signal->should_retry == IDEM_SAID_YES;
    }
    IDEM_UNREACHABLE();
}

static bool fits(const struct rule *rule,
                 const struct idem_dialect *dialect,
                 const struct idem_signal *signal)
{
    if (signal->status < rule->first || signal->status > rule->last) {
        return false;
    }
    return (rule->verdict == VERDICT_ANY || rule->verdict == (int)signal->verdict) &&
           (rule->dialect == DIALECT_ANY || rule->dialect == (int)dialect->id) &&
           (rule->effect == EFFECT_ANY || rule->effect == (int)signal->effect) &&
           (rule->retry == RETRY_ANY || rule->retry == (int)signal->retry) &&
           (rule->code == NULL || strcmp(rule->code, signal->code) == 0) &&
           mark_fits(rule->mark, dialect, signal);
}

/* What is left of `next` when the server says that the same request should not be sent again. */
static enum idem_next next_discouraged(enum idem_meaning meaning, enum idem_next next)
{
    if (next != IDEM_NEXT_AGAIN) {
        return next;
    }
    return meaning == IDEM_MEANING_TURNED_AWAY ? IDEM_NEXT_STOP : IDEM_NEXT_ASK;
}

struct idem_reading idem_meaning_of(const struct idem_dialect *dialect,
                                    const struct idem_signal *signal)
{
    size_t row = 0;
    while (row < IDEM_ARRAY_COUNT(rules) && !fits(&rules[row], dialect, signal)) {
        row += 1;
    }
    IDEM_ASSERT(row < IDEM_ARRAY_COUNT(rules)); /* A status has three digits. */
    const struct rule *rule = &rules[row];
    struct idem_reading reading = {
        .meaning = rule->meaning,
        .next = rule->next,
        .why = rule->why,
        .retry_after_us = signal->retry_after_us,
        .look_first = signal->retry == IDEM_SAID_RETRY_QUERY,
    };
    bool error = signal->verdict == IDEM_HTTP_ANSWERED && signal->status >= ERROR_MIN;
    if (error && signal->should_retry == IDEM_SAID_NO) {
        reading.next = next_discouraged(reading.meaning, reading.next);
    }
    IDEM_ASSERT(reading.meaning != IDEM_MEANING_NONE);
    return reading;
}

const char *idem_meaning_name(enum idem_meaning meaning)
{
    static const char *const names[IDEM_MEANING_COUNT] = {
        [IDEM_MEANING_NONE] = "none",       [IDEM_MEANING_DONE] = "done",
        [IDEM_MEANING_REFUSED] = "refused", [IDEM_MEANING_TURNED_AWAY] = "turned away",
        [IDEM_MEANING_RUNNING] = "running", [IDEM_MEANING_UNSURE] = "unsure",
    };
    IDEM_ASSERT(meaning < IDEM_MEANING_COUNT);
    return names[meaning];
}

const char *idem_next_name(enum idem_next next)
{
    switch (next) {
    case IDEM_NEXT_STOP:
        return "stop";
    case IDEM_NEXT_AGAIN:
        return "again";
    case IDEM_NEXT_ASK:
        return "ask";
    }
    IDEM_UNREACHABLE();
}

/* ---- docs/client-rules.md ---- */

static const char page_head[] =
    "# How the client reads answers\n"
    "\n"
    "Made from `src/client/dialect.def` and `src/client/meaning.def`;\n"
    "`test/unit/client/meaning.c` fails when they differ, and walks every answer that can be made\n"
    "of the words below.\n"
    "\n"
    "## Verdicts\n"
    "\n"
    "| verdict | what it says | what may follow |\n"
    "|---|---|---|\n"
    "| DONE | The API has carried the request out, and this is its answer. Whether money moved is "
    "in the answer: an API may carry a request out and say in its body, under 200, that the card "
    "was refused. | Nothing. Running it again shows the same. |\n"
    "| REFUSED | Nothing happened, and nothing that was sent can still make it happen. | A new "
    "key, "
    "or a corrected request under one (`idem_client_renew`, `--new-key`). |\n"
    "| UNKNOWN | It may have happened, or may still. | The same intent again, under the same key; "
    "or a look at the API. Never a new key. |\n"
    "\n"
    "## Doubt\n"
    "\n"
    "Each answer has a meaning, which is about one request, and the verdict is about all of them.\n"
    "What joins the two is *doubt*: a request of this key may have been carried out.\n"
    "\n"
    "| meaning | what it says of this request | doubt |\n"
    "|---|---|---|\n"
    "| done | It was carried out. | Ends: DONE. |\n"
    "| refused | Nothing happened under this key, whichever copy arrived, and nothing will. | "
    "Ends: "
    "REFUSED. |\n"
    "| turned away | This copy did nothing. It says nothing of earlier copies. | As it was. |\n"
    "| running | The API has it and is at it. | Begins. |\n"
    "| unsure | It may have been carried out, or may still be. | Begins. |\n"
    "\n"
    "A run that ends in doubt is UNKNOWN; one that ends without is REFUSED. So a refusal that was\n"
    "not stored under the key (400, 401, 404, ...) is REFUSED on the first try, and UNKNOWN after "
    "a\n"
    "timeout: the copy that timed out may be the one that was carried out. A key that the caller\n"
    "brought may have been used before, so its runs begin in doubt.\n"
    "\n"
    "What follows an answer: *again* sends the same bytes under the same key, after a pause and\n"
    "within deadline, window and budget; *ask* sends nothing and asks for the outcome, where that\n"
    "can be asked; *stop* ends the run.\n"
    "\n"
    "## Dialects\n"
    "\n"
    "| | key header | bytes | replay | should retry | window | from |\n"
    "|---|---|---|---|---|---|---|\n";

static const char page_middle[] =
    "\n"
    "The window counts from the first send. After it nothing is sent under the key: a key that "
    "was\n"
    "forgotten does not fail, the request runs again. It is what the API promises, less a margin.\n"
    "\n"
    "## Rules\n"
    "\n"
    "The first row that fits decides. *effect* and *retry* are the words of a problem of idem\n"
    "([errors.md](errors.md)), which counts in every dialect, since idem may stand in front of "
    "any\n"
    "API. An empty cell fits everything; *(none)* is an answer without a code that can be read.\n"
    "\n"
    "| | dialect | answer | code | effect, retry | and | meaning | next | the last request: |\n"
    "|---|---|---|---|---|---|---|---|---|\n";

static const char page_tail[] =
    "\n"
    "Then, for an error whose should-retry header says no, *again* becomes *stop* where the "
    "request\n"
    "was turned away, and *ask* everywhere else.\n"
    "\n"
    "Codes stand where each API puts them: idem and ietf behind the last `:` or `/` of the\n"
    "problem's `type`; Stripe in `error.type` if it is `idempotency_error`, else in `error.code`,\n"
    "else in `error.type`; Adyen in `errorCode`; PayPal in `details[0].issue`, else in `name`. A\n"
    "body that is not strict JSON (RFC 8259, no member twice) or is longer than an error can be "
    "has\n"
    "no code. A body is to be JSON if its type says so (`application/json`, `+json`), and in a\n"
    "success of idem, Stripe, Adyen and PayPal always; cut or harmed is what is no whole text of\n"
    "RFC 8259. Repeated names and bytes that are no UTF-8 do not count as harm.\n"
    "\n"
    "## Asking\n"
    "\n"
    "The operation that an answer named (`Location`, of the same origin only), or the operation "
    "of\n"
    "the key. A question that gets no usable answer changes nothing. What is usable: an operation\n"
    "whose id is the one in the address, or whose endpoint is the one that was asked for in an\n"
    "answer that names the key; and `key-unknown` or `not-found` of idem. While it is at work the\n"
    "meaning is *running*; once it has an answer, the meaning of that answer by the rules above, "
    "if\n"
    "it agrees with the operation's state; a released one was turned away. No record is *unsure*,\n"
    "*again*: a request may still be on its way; only a later run sends again after it. An answer\n"
    "that is found so is the stored one, to the byte.\n"
    "\n"
    "## What is never sent again\n"
    "\n"
    "- Anything after *done* or *refused*, without a new key that somebody asked for.\n"
    "- Anything after 400, 410, 412 and 422, except when idem says `same-key` or Adyen says 704\n"
    "  and `transient-error: true`.\n"
    "- Anything after 2xx or 3xx, or after an answer that belongs to another key or is too long "
    "for\n"
    "  its room (`answer_max`), in the same run; except after 202 when the operation was "
    "released.\n"
    "  Redirects are not followed.\n"
    "- Anything else than the bytes of the first try, or under another key.\n"
    "- Anything after the window, or when the clock cannot say how much of it is left.\n";

static void add(struct idem_buf *buf, const char *text)
{
    idem_buf_add(buf, idem_str_from(text));
}

static void code_print(const char *text, struct idem_buf *buf)
{
    if (text != NULL) {
        idem_buf_printf(buf, "`%s`", text);
    }
}

/* In days, or hours, or minutes. */
static void window_print(int64_t window_us, struct idem_buf *buf)
{
    bool days = window_us % DAY == 0;
    bool hours = window_us % HOUR == 0;
    int64_t unit_us = days ? DAY : hours ? HOUR : MINUTE;
    idem_buf_add_i64(buf, window_us / unit_us);
    add(buf, days ? " day" : hours ? " hour" : " minute");
    add(buf, window_us == unit_us ? "" : "s");
}

static void dialects_print(struct idem_buf *buf)
{
    static const char *const sources[IDEM_DIALECT_COUNT] = {
#define IDEM_DIALECT(symbol, name, key_header, max, quoted, echoes, operations, first_sent, \
                     replayed, expires, should_retry, shape, window, source)                \
    [IDEM_DIALECT_##symbol] = (source),
#include "client/dialect.def" // IWYU pragma: keep
#undef IDEM_DIALECT
    };
    for (unsigned id = IDEM_DIALECT_ANY + 1; id < IDEM_DIALECT_COUNT; id++) {
        const struct idem_dialect *dialect = idem_dialect_get((enum idem_dialect_id)id);
        idem_buf_printf(buf, "| %s | `%s`%s | %zu | ", dialect->name, dialect->key_header,
                        dialect->key_quoted ? ", quoted" : "", dialect->key_max);
        code_print(dialect->replayed, buf);
        add(buf, " | ");
        code_print(dialect->should_retry, buf);
        add(buf, " | ");
        window_print(dialect->window_us, buf);
        idem_buf_printf(buf, " | %s |\n", sources[id]);
    }
}

static void answer_print(const struct rule *rule, struct idem_buf *buf)
{
    if (rule->verdict == VERDICT_NOT_SENT) {
        add(buf, "not sent");
    } else if (rule->verdict == VERDICT_UNKNOWN) {
        add(buf, "lost or cut off");
    } else if (rule->first == 0) {
        add(buf, "any");
    } else if (rule->first == rule->last) {
        idem_buf_printf(buf, "%u", rule->first);
    } else {
        idem_buf_printf(buf, "%u-%u", rule->first, rule->last);
    }
}

static const char *effect_name(int effect)
{
    static const char *const names[] = {
        [IDEM_SAID_EFFECT_ABSENT] = "",
        [EFFECT_NONE] = "none",
        [EFFECT_UNKNOWN] = "unknown",
        [EFFECT_DONE] = "done",
    };
    return effect == EFFECT_ANY ? "" : names[effect];
}

static const char *retry_name(int retry)
{
    static const char *const names[] = {
        [IDEM_SAID_RETRY_ABSENT] = "", [RETRY_NEVER] = ", never", [RETRY_SAME_KEY] = ", same-key",
        [RETRY_NEW_KEY] = ", new-key", [RETRY_QUERY] = ", query",
    };
    return retry == RETRY_ANY ? "" : names[retry];
}

static const char *mark_text(enum mark mark)
{
    switch (mark) {
    case MARK_ANY:
        return "";
    case MARK_HOPELESS:
        return "it would not be sent the next time either";
    case MARK_TOO_LONG:
        return "the answer has begun, and is longer than its room";
    case MARK_OTHER_KEY:
        return "the answer names another key";
    case MARK_NO_KEY:
        return "the API (idem) sends the key back, and it is not there";
    case MARK_PAGE:
        return "the body is none of this API's (a web page, XML, no JSON object)";
    case MARK_BROKEN:
        return "the body is to be JSON, and was cut or harmed, or is a refusal that cannot be read";
    case MARK_ADVISED:
        return "a problem of idem with other advice";
    case MARK_REPLAYED:
        return "replay header: true";
    case MARK_SHOULD_RETRY:
        return "should-retry header: true";
    }
    IDEM_UNREACHABLE();
}

static void rule_print(const struct rule *rule, unsigned number, struct idem_buf *buf)
{
    bool of_one = rule->dialect != DIALECT_ANY;
    idem_buf_printf(buf, "| %u | %s | ", number,
                    of_one ? idem_dialect_get((enum idem_dialect_id)rule->dialect)->name : "");
    answer_print(rule, buf);
    bool none = rule->code != NULL && rule->code[0] == '\0';
    add(buf, none ? " | (none)" : " | ");
    code_print(none ? NULL : rule->code, buf);
    idem_buf_printf(buf, " | %s%s | %s | %s | %s | %s |\n", effect_name(rule->effect),
                    retry_name(rule->retry), mark_text(rule->mark),
                    idem_meaning_name(rule->meaning), idem_next_name(rule->next), rule->why);
}

void idem_meaning_print(struct idem_buf *buf)
{
    add(buf, page_head);
    dialects_print(buf);
    add(buf, page_middle);
    for (unsigned row = 0; row < IDEM_ARRAY_COUNT(rules); row++) {
        rule_print(&rules[row], row + 1, buf);
    }
    add(buf, page_tail);
}
