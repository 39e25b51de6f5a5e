/*
 * What to do next, as the command to type.
 *
 * The journal has the request, so the command has the name and what the journal does not have:
 * where it lies itself, who asks, and how the server is reached. A corrected request is the
 * exception: it is given as a whole, with a place for what has to be corrected.
 */
#include <string.h>

#include "base/bug.h"
#include "cli/send_internal.h"

#define LINE_MAX_SIZE 8192

/* A word as a shell takes it. */
static void quoted_add(struct idem_buf *buf, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "_-./:@%+=,";
    idem_buf_add_char(buf, ' ');
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

/* Those of `words` that were given, with their values. */
static void options_add(struct idem_buf *buf,
                        const struct idem_send_options *options,
                        const enum idem_send_word *words,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = options->given[words[i]];
        if (value == NULL) {
            continue;
        }
        idem_buf_printf(buf, " --%s", idem_send_word_name(words[i]));
        if (value[0] != '\0') {
            quoted_add(buf, value);
        }
    }
}

/* What the journal does not have. */
static void beside_add(struct idem_buf *buf, const struct idem_send_options *options)
{
    static const enum idem_send_word words[] = {
        IDEM_SEND_JOURNAL,  IDEM_SEND_CREDENTIAL_FILE, IDEM_SEND_CREDENTIAL_HEADER,
        IDEM_SEND_CA_FILE,  IDEM_SEND_PROXY,           IDEM_SEND_HTTP1,
        IDEM_SEND_INSECURE,
    };
    options_add(buf, options, words, IDEM_ARRAY_COUNT(words));
}

static void line_say(const struct idem_buf *line)
{
    if (!line->full) { /* Longer than any terminal's memory: the name is told already. */
        idem_send_say("%.*s", (int)line->len, line->data);
    }
}

/* BEFORE: idem send --intent NAME AFTER. */
static void named_say(const struct idem_send_options *options,
                      const char *name,
                      const char *before,
                      const char *after)
{
    char memory[LINE_MAX_SIZE];
    struct idem_buf line;
    idem_buf_init(&line, memory, sizeof(memory));
    idem_buf_printf(&line, "%s: idem send --intent", before);
    quoted_add(&line, name);
    beside_add(&line, options);
    idem_buf_add(&line, idem_str_from(after));
    line_say(&line);
}

/* The whole request again; what is wrong in it is its writer's to say. */
static void corrected_say(const struct idem_send_options *options, const char *name)
{
    static const enum idem_send_word words[] = {
        IDEM_SEND_DIALECT,
        IDEM_SEND_STATUS_URL,
        IDEM_SEND_DEADLINE,
        IDEM_SEND_WINDOW,
    };
    char memory[LINE_MAX_SIZE];
    struct idem_buf line;
    bool known = options->way == IDEM_SEND_REQUEST;
    idem_buf_init(&line, memory, sizeof(memory));
    idem_buf_add(&line, IDEM_STR("Corrected, under a new key: idem send"));
    quoted_add(&line, known ? options->method : "METHOD");
    quoted_add(&line, known ? options->url : "URL");
    idem_buf_add(&line, IDEM_STR(" --intent"));
    quoted_add(&line, name);
    idem_buf_add(&line, IDEM_STR(" --new-key --data @CORRECTED"));
    for (size_t i = 0; i < options->header_count; i++) {
        idem_buf_add(&line, IDEM_STR(" --header"));
        quoted_add(&line, options->headers[i]);
    }
    options_add(&line, options, words, IDEM_ARRAY_COUNT(words));
    beside_add(&line, options);
    line_say(&line);
}

static void decision_say(const struct idem_send_options *options, const char *name)
{
    static const enum idem_send_word words[] = { IDEM_SEND_JOURNAL };
    char memory[LINE_MAX_SIZE];
    struct idem_buf line;
    idem_buf_init(&line, memory, sizeof(memory));
    idem_buf_add(&line,
                 IDEM_STR("Who has seen that it happened, or not-happened, ends it with: idem send "
                          "--decide happened --note 'WHO SAW IT WHERE' --intent"));
    quoted_add(&line, name);
    options_add(&line, options, words, IDEM_ARRAY_COUNT(words));
    line_say(&line);
}

/* Refused, not for good, by an answer that names what is wrong. */
static enum idem_send_hint advised(uint16_t status)
{
    switch (status) {
    case 0: /* It could not be sent. */
    case 401:
    case 403:
    case 404:
    case 407:
        return IDEM_SEND_HINT_REPAIR;
    default:
        return IDEM_SEND_HINT_CORRECT;
    }
}

static enum idem_send_hint refused(const struct idem_client_verdict *verdict, bool look_first)
{
    if (verdict->over) {
        return look_first ? IDEM_SEND_HINT_LOOK : IDEM_SEND_HINT_NEW_KEY;
    }
    return verdict->reason == IDEM_CLIENT_ADVISED ? advised(verdict->status) : IDEM_SEND_HINT_LATER;
}

static enum idem_send_hint unknown(const struct idem_client_verdict *verdict)
{
    if (verdict->reason == IDEM_CLIENT_WINDOW) {
        return IDEM_SEND_HINT_DECIDE;
    }
    return verdict->reason == IDEM_CLIENT_ADVISED ? IDEM_SEND_HINT_FIND_OUT : IDEM_SEND_HINT_GO_ON;
}

enum idem_send_hint idem_send_hint_choose(const struct idem_client_verdict *verdict,
                                          bool look_first)
{
    switch (verdict->outcome) {
    case IDEM_CLIENT_DONE:
        return IDEM_SEND_HINT_NONE;
    case IDEM_CLIENT_REFUSED:
        return refused(verdict, look_first);
    case IDEM_CLIENT_NO_OUTCOME:
    case IDEM_CLIENT_UNKNOWN:
        return unknown(verdict);
    }
    IDEM_UNREACHABLE();
}

void idem_send_hint_say(const struct idem_send_options *options,
                        const char *name,
                        enum idem_send_hint hint)
{
    switch (hint) {
    case IDEM_SEND_HINT_NONE:
        return;
    case IDEM_SEND_HINT_NEW_KEY:
        named_say(options, name,
                  "Under a new key, as it is, or with METHOD, URL and a corrected request",
                  " --new-key");
        return;
    case IDEM_SEND_HINT_LOOK:
        named_say(options, name,
                  "Look at what is there already: it may be this very action. If not, under a new "
                  "key",
                  " --new-key");
        return;
    case IDEM_SEND_HINT_CORRECT:
        corrected_say(options, name);
        return;
    case IDEM_SEND_HINT_REPAIR:
        named_say(options, name, "When that is put right, under the same key", "");
        return;
    case IDEM_SEND_HINT_LATER:
        named_say(options, name, "Later, under the same key", "");
        return;
    case IDEM_SEND_HINT_GO_ON:
        named_say(options, name, "Go on with", "");
        return;
    case IDEM_SEND_HINT_FIND_OUT:
        named_say(options, name, "When the cause is gone, go on with", "");
        decision_say(options, name);
        return;
    case IDEM_SEND_HINT_DECIDE:
        named_say(options, name, "To ask again", "");
        decision_say(options, name);
        return;
    }
    IDEM_UNREACHABLE();
}
