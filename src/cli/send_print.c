/*
 * What `idem send` says of a verdict.
 *
 * Standard output gets a final answer and nothing else, so that whoever takes it for one is right:
 * of UNKNOWN there is no answer to print, however much the server said. Standard error gets what
 * happened to the money and what to do next.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/crash.h"
#include "base/json.h"
#include "cli/send_internal.h"
#include "cli/table.h"

#define LINE_MAX_SIZE 8192

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
    size_t max = 6 * text + LINE_MAX_SIZE; /* A byte has at most six as an escape. */
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
    bool final = verdict->outcome == IDEM_CLIENT_DONE || verdict->outcome == IDEM_CLIENT_REFUSED;
    if (verdict->status == 0) {
        return true;
    }
    if (options->given[IDEM_SEND_INCLUDE] == NULL) {
        return !final || text_print(body);
    }
    return printf("HTTP %u\n", verdict->status) > 0 &&
           text_print(idem_str_from(verdict->headers)) && putchar('\n') != EOF && text_print(body);
}

/* A word as a shell takes it. */
static void quoted_add(struct idem_buf *buf, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "_-./:@%+=,";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        idem_buf_add(buf, idem_str_from(word));
        return;
    }
    idem_buf_add_char(buf, '\'');
    for (const char *byte = word; *byte != '\0'; byte++) {
        if (*byte == '\'') {
            idem_buf_add(buf, IDEM_STR("'\\''"));
        } else {
            idem_buf_add_char(buf, *byte);
        }
    }
    idem_buf_add_char(buf, '\'');
}

/* The command that goes on: the journal has the request, the rest is said again. */
static void command_say(const struct idem_send_options *options,
                        const struct idem_client_intent *intent,
                        const char *before,
                        const char *after)
{
    static const enum idem_send_word again[] = {
        IDEM_SEND_JOURNAL,  IDEM_SEND_CREDENTIAL_FILE, IDEM_SEND_CREDENTIAL_HEADER,
        IDEM_SEND_CA_FILE,  IDEM_SEND_PROXY,           IDEM_SEND_HTTP1,
        IDEM_SEND_INSECURE,
    };
    char memory[LINE_MAX_SIZE];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_printf(&buf, "%s idem send --intent ", before);
    quoted_add(&buf, idem_client_name(intent));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(again); i++) {
        const char *value = options->given[again[i]];
        if (value != NULL) {
            idem_buf_printf(&buf, " --%s%s", idem_send_word_name(again[i]),
                            value[0] != '\0' ? " " : "");
        }
        if (value != NULL && value[0] != '\0') {
            quoted_add(&buf, value);
        }
    }
    idem_buf_add(&buf, idem_str_from(after));
    if (!buf.full) { /* Longer than any terminal's memory: the name is told already. */
        idem_send_say("%.*s", (int)buf.len, buf.data);
    }
}

/* What the journal had is shown, and nobody was asked. */
static bool was_before(const struct idem_client_verdict *verdict)
{
    return verdict->over && verdict->sends == 0 && verdict->asks == 0;
}

/* DONE: one sentence, unless nobody wants it. */
static void done_say(const struct idem_send_options *options,
                     const struct idem_client_intent *intent)
{
    const struct idem_client_verdict *verdict = idem_client_verdict(intent);
    if (options->given[IDEM_SEND_QUIET] != NULL) {
        return;
    }
    if (was_before(verdict)) {
        idem_send_say("%s: It was done before, and this is its answer. Nothing was sent now.",
                      idem_client_name(intent));
        return;
    }
    idem_send_say("%s: %s", idem_client_name(intent), verdict->message);
}

static void undone_say(const struct idem_send_options *options,
                       const struct idem_client_intent *intent)
{
    const struct idem_client_verdict *verdict = idem_client_verdict(intent);
    idem_send_say("%s: %s%s", idem_client_name(intent), verdict->message,
                  was_before(verdict) ? " So it was before, and nothing was sent now." : "");
    if (verdict->outcome == IDEM_CLIENT_REFUSED) {
        command_say(options, intent,
                    verdict->over ? "Under a new key:" : "Again, under the same key:",
                    verdict->over ? " --new-key" : "");
    } else if (verdict->reason != IDEM_CLIENT_WINDOW) { /* Then nothing would be sent again. */
        command_say(options, intent, "Go on with:", "");
    }
}

static enum idem_exit outcome_exit(enum idem_client_outcome outcome)
{
    switch (outcome) {
    case IDEM_CLIENT_DONE:
        return IDEM_EXIT_OK;
    case IDEM_CLIENT_REFUSED:
        return IDEM_EXIT_REFUSED;
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
    enum idem_exit status = outcome_exit(verdict->outcome);
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
    }
    return printed || status != IDEM_EXIT_OK ? status : IDEM_EXIT_OTHER;
}
