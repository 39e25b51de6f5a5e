/*
 * What `idem send` says of a verdict.
 *
 * Standard output gets a final answer and nothing else, so that whoever takes it for one is right:
 * of UNKNOWN, and of what a person has decided, there is no answer to print, however much the
 * server said. Standard error gets what happened to the money, the server's own words about a
 * refusal, and what to do next.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/crash.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/send_internal.h"
#include "cli/table.h"

#define JSON_WORDS_MAX 8192 /* Of an object, beside its texts. */

void idem_send_json_text(struct idem_buf *buf, struct idem_str text)
{
    if (idem_utf8_valid(text)) {
        idem_json_add_string(buf, text);
        return;
    }
    idem_buf_add_char(buf, '"');
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.data[i];
        bool plain = byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
        idem_buf_add_char(buf, (char)(plain ? byte : '?'));
    }
    idem_buf_add_char(buf, '"');
}

/* Bytes as they are; on a terminal without what would move its cursor. */
static bool text_print(struct idem_str text)
{
    if (text.len == 0) {
        return true;
    }
    if (isatty(STDOUT_FILENO) == 0) {
        return fwrite(text.data, 1, text.len, stdout) == text.len;
    }
    char *copy = malloc(text.len);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, text.data, text.len);
    size_t from = 0;
    for (size_t i = 0; i <= text.len; i++) {
        if (i == text.len || copy[i] == '\n' || copy[i] == '\t') {
            idem_terminal_safe(copy + from, i - from);
            from = i + 1;
        }
    }
    bool printed = fwrite(copy, 1, text.len, stdout) == text.len;
    if (copy[text.len - 1] != '\n') {
        printed = putchar('\n') != EOF && printed;
    }
    free(copy);
    return printed;
}

static void headers_add(struct idem_buf *buf, struct idem_str lines)
{
    bool first = true;
    idem_buf_add_char(buf, '[');
    while (lines.len > 0) {
        struct idem_str line = idem_str_next(&lines, '\n');
        idem_buf_add(buf, first ? IDEM_STR("") : IDEM_STR(","));
        idem_send_json_text(buf, line);
        first = false;
    }
    idem_buf_add_char(buf, ']');
}

static void member_add(struct idem_buf *buf, const char *name, const char *text)
{
    idem_buf_printf(buf, ",\"%s\":", name);
    idem_send_json_text(buf, idem_str_from(text));
}

static void body_add(struct idem_buf *buf, const struct idem_client_verdict *verdict)
{
    const struct idem_str body = { .data = verdict->body, .len = verdict->body_size };
    idem_buf_add(buf, IDEM_STR(",\"body\":"));
    if (verdict->status == 0 || !idem_utf8_valid(body)) {
        idem_buf_add(buf, IDEM_STR("null"));
        return;
    }
    idem_json_add_string(buf, body);
}

static void json_make(const struct idem_client_intent *intent, struct idem_buf *buf)
{
    const struct idem_client_verdict *verdict = idem_client_verdict(intent);
    idem_buf_add(buf, IDEM_STR("{\"name\":"));
    idem_send_json_text(buf, idem_str_from(idem_client_name(intent)));
    member_add(buf, "key", idem_client_key(intent));
    member_add(buf, "outcome", idem_client_outcome_name(verdict->outcome));
    member_add(buf, "reason", idem_client_reason_name(verdict->reason));
    member_add(buf, "message", verdict->message);
    idem_buf_add(buf, IDEM_STR(",\"status\":"));
    if (verdict->status == 0) {
        idem_buf_add(buf, IDEM_STR("null"));
    } else {
        idem_buf_add_i64(buf, verdict->status);
    }
    idem_buf_add(buf, IDEM_STR(",\"headers\":"));
    headers_add(buf, idem_str_from(verdict->headers));
    body_add(buf, verdict);
    member_add(buf, "status_url", verdict->status_url);
    idem_buf_printf(buf, ",\"replayed\":%s,\"over\":%s,\"sends\":%u,\"asks\":%u}\n",
                    verdict->replayed ? "true" : "false", verdict->over ? "true" : "false",
                    verdict->sends, verdict->asks);
}

static bool json_print(const struct idem_client_intent *intent)
{
    const struct idem_client_verdict *verdict = idem_client_verdict(intent);
    size_t text = strlen(verdict->message) + strlen(verdict->headers) + verdict->body_size +
                  strlen(verdict->status_url) + strlen(idem_client_name(intent)) +
                  strlen(idem_client_key(intent));
    size_t max = 6 * text + JSON_WORDS_MAX; /* A byte has at most six as an escape. */
    char *memory = malloc(max);
    if (memory == NULL) {
        return false;
    }
    struct idem_buf buf;
    idem_buf_init(&buf, memory, max);
    json_make(intent, &buf);
    bool printed = !buf.full && fwrite(buf.data, 1, buf.len, stdout) == buf.len;
    free(memory);
    return printed;
}

static bool answer_print(const struct idem_send_options *options,
                         const struct idem_client_verdict *verdict)
{
    const struct idem_str body = { .data = verdict->body, .len = verdict->body_size };
    bool final =
        (verdict->outcome == IDEM_CLIENT_DONE || verdict->outcome == IDEM_CLIENT_REFUSED) &&
        verdict->reason != IDEM_CLIENT_DECIDED;
    if (verdict->status == 0) {
        return true;
    }
    if (options->given[IDEM_SEND_INCLUDE] == NULL) {
        return !final || text_print(body);
    }
    return printf("HTTP %u\n", verdict->status) > 0 &&
           text_print(idem_str_from(verdict->headers)) && putchar('\n') != EOF && text_print(body);
}

/* What the journal had is shown, and nobody was asked. */
static bool was_before(const struct idem_client_verdict *verdict)
{
    return verdict->over && verdict->sends == 0 && verdict->asks == 0;
}

/* A person's word: it was written down before, and no run has ended. */
static void decided_say(const struct idem_client_intent *intent)
{
    idem_send_say("%s: %s. So it was decided before, and nothing was sent now.",
                  idem_client_name(intent), idem_client_verdict(intent)->message);
}

/* DONE: one sentence, unless nobody wants it. */
static void done_say(const struct idem_send_options *options,
                     const struct idem_client_intent *intent)
{
    const struct idem_client_verdict *verdict = idem_client_verdict(intent);
    if (options->given[IDEM_SEND_QUIET] != NULL) {
        return;
    }
    if (verdict->reason == IDEM_CLIENT_DECIDED) {
        decided_say(intent);
        return;
    }
    if (was_before(verdict)) {
        idem_send_say("%s: It was done before, and this is its answer. Nothing was sent now.",
                      idem_client_name(intent));
        return;
    }
    idem_send_say("%s: %s", idem_client_name(intent), verdict->message);
}

/* What happened, the server's own words, and what to do. */
static void undone_say(const struct idem_send_options *options,
                       const struct idem_client_intent *intent)
{
    const struct idem_client_verdict *verdict = idem_client_verdict(intent);
    const struct idem_str body = { .data = verdict->body, .len = verdict->body_size };
    const char *name = idem_client_name(intent);
    struct idem_send_words words = { .look_first = false };
    if (verdict->reason == IDEM_CLIENT_DECIDED) {
        decided_say(intent);
    } else {
        idem_send_say("%s: %s%s", name, verdict->message,
                      was_before(verdict) ? " So it was before, and nothing was sent now." : "");
        idem_send_words_read(body, &words);
    }
    if (words.text[0] != '\0') {
        idem_send_say("%s: The server says: %s", name, words.text);
    }
    idem_send_hint_say(options, name, idem_send_hint_choose(verdict, words.look_first));
}

/* A refusal for good, and one that names a reason, wait for a person; any other one for time. */
static enum idem_exit refused_exit(const struct idem_client_verdict *verdict)
{
    bool lasting = verdict->over || verdict->reason == IDEM_CLIENT_ADVISED;
    return lasting ? IDEM_EXIT_REFUSED : IDEM_EXIT_LATER;
}

static enum idem_exit verdict_exit(const struct idem_client_verdict *verdict)
{
    switch (verdict->outcome) {
    case IDEM_CLIENT_DONE:
        return IDEM_EXIT_OK;
    case IDEM_CLIENT_REFUSED:
        return refused_exit(verdict);
    case IDEM_CLIENT_NO_OUTCOME:
    case IDEM_CLIENT_UNKNOWN:
        return IDEM_EXIT_UNKNOWN;
    }
    IDEM_UNREACHABLE();
}

enum idem_exit idem_send_verdict_print(const struct idem_send_options *options,
                                       const struct idem_client_intent *intent)
{
    const struct idem_client_verdict *verdict = idem_client_verdict(intent);
    enum idem_exit status = verdict_exit(verdict);
    bool printed = options->given[IDEM_SEND_JSON] != NULL ? json_print(intent)
                                                          : answer_print(options, verdict);
    printed = fflush(stdout) == 0 && printed;
    idem_crash_point("client-told");
    if (verdict->outcome == IDEM_CLIENT_DONE) {
        done_say(options, intent);
    } else {
        undone_say(options, intent);
    }
    if (!verdict->recorded) {
        idem_send_say(
            "%s: The journal could not be written: it does not know this outcome, and "
            "will find it out again when the same command is run again.",
            idem_client_name(intent));
    }
    if (!printed) {
        idem_send_say(
            "%s: The answer could not be written to standard output. The same command "
            "shows it again.",
            idem_client_name(intent));
        idem_output_forget();
    }
    return printed || status != IDEM_EXIT_OK ? status : IDEM_EXIT_OTHER;
}
