/*
 * A caller of the client library that is driven from outside: tests, crash runs and measurements
 * write intents into its standard input and read verdicts from its standard output. It uses the
 * public header and nothing else of this tree, in the way that the header describes for an event
 * loop of one's own: submit, poll, perform, reap. So it also shows that the header is enough.
 *
 *     intent line:  NAME \t METHOD \t URL \t BODY \t DIALECT \t KEY [\t HEADER]...
 *     answer line:  {"name":"...","outcome":"done",...}, in the order in which runs end
 *                   {"name":"...","error":4,"text":"..."} for what could not be begun
 *
 * A column that is empty is not given. Bytes beyond ASCII are written as \u00XX each, so that what
 * a server answered can be read back byte for byte. With --resume the intents come out of the
 * journal: all that are not over.
 *
 * What is begun at the same time goes into one transaction; if that is refused, one after the
 * other, so that one bad intent does not hold up its neighbours. Standard input is read blocking
 * whenever there is room for another run: give it a file or a pipe that is full.
 *
 * Exit status: 0, whatever the verdicts are; 1 when the client could not be opened; 2 usage.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idem/client.h"

#define BATCH_MAX   256
#define COLUMNS_MAX (6 + IDEM_CLIENT_HEADERS_MAX)

enum column {
    COLUMN_NAME = 0,
    COLUMN_METHOD,
    COLUMN_URL,
    COLUMN_BODY,
    COLUMN_DIALECT,
    COLUMN_KEY,
    COLUMN_HEADERS /* And all that follow. */
};

struct caller {
    struct idem_client_options options;
    const char *credential;
    int64_t deadline_ms;
    int64_t window_ms;
    size_t at_once; /* Runs. */
    bool resume;

    struct idem_client *client;
    char *line; /* getline()'s. */
    size_t line_size;
    int64_t position; /* In the journal, behind the last entry that was resumed. */
    bool ended;       /* There are no more intents to begin. */
    size_t running;
};

static void print_text(const char *data, size_t len)
{
    (void)putchar_unlocked('"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c < 0x20 || c >= 0x7F) {
            (void)printf("\\u%04x", c);
            continue;
        }
        if (c == '"' || c == '\\') {
            (void)putchar_unlocked('\\');
        }
        (void)putchar_unlocked(c);
    }
    (void)putchar_unlocked('"');
}

static void print_member(const char *name, const char *text)
{
    (void)printf(",\"%s\":", name);
    print_text(text, strlen(text));
}

static void print_flag(const char *name, bool value)
{
    (void)printf(",\"%s\":%s", name, value ? "true" : "false");
}

static void print_error(const char *name,
                        enum idem_client_err err,
                        const struct idem_client_error *error)
{
    (void)printf("{\"name\":");
    print_text(name, strlen(name));
    (void)printf(",\"error\":%d", (int)err);
    print_member("text", error->text);
    (void)printf("}\n");
}

static void print_verdict(const struct idem_client_intent *intent)
{
    const struct idem_client_verdict *verdict = idem_client_verdict(intent);
    const char *name = idem_client_name(intent);
    (void)printf("{\"name\":");
    print_text(name, strlen(name));
    print_member("key", idem_client_key(intent));
    print_member("outcome", idem_client_outcome_name(verdict->outcome));
    print_member("reason", idem_client_reason_name(verdict->reason));
    print_member("message", verdict->message);
    print_flag("renewable", verdict->renewable);
    print_flag("over", verdict->over);
    print_flag("replayed", verdict->replayed);
    print_flag("recorded", verdict->recorded);
    print_member("status_url", verdict->status_url);
    (void)printf(",\"status\":%u,\"sends\":%u,\"asks\":%u", verdict->status, verdict->sends,
                 verdict->asks);
    print_member("headers", verdict->headers != NULL ? verdict->headers : "");
    (void)printf(",\"body\":");
    print_text(verdict->body, verdict->body_size);
    (void)printf("}\n");
}

/* Cuts `line` at its tabs; what is empty stays NULL. */
static size_t columns_cut(char *line, char *columns[COLUMNS_MAX])
{
    size_t count = 0;
    while (line != NULL && count < COLUMNS_MAX) {
        char *column = strsep(&line, "\t");
        columns[count++] = column[0] != '\0' ? column : NULL;
    }
    return count;
}

/* The intent of one line; NULL: it cannot be, which has been said. */
static struct idem_client_intent *intend(struct caller *caller, char *line)
{
    char *columns[COLUMNS_MAX] = { NULL };
    size_t count = columns_cut(line, columns);
    const char *headers[IDEM_CLIENT_HEADERS_MAX];
    size_t header_count = 0;
    for (size_t i = COLUMN_HEADERS; i < count; i++) {
        if (columns[i] != NULL) {
            headers[header_count++] = columns[i];
        }
    }
    struct idem_client_request request = {
        .size = sizeof(request),
        .name = columns[COLUMN_NAME],
        .method = columns[COLUMN_METHOD],
        .url = columns[COLUMN_URL],
        .headers = headers,
        .header_count = header_count,
        .body = columns[COLUMN_BODY],
        .body_size = columns[COLUMN_BODY] != NULL ? strlen(columns[COLUMN_BODY]) : 0,
        .dialect = columns[COLUMN_DIALECT],
        .key = columns[COLUMN_KEY],
        .credential = caller->credential,
        .deadline_ms = caller->deadline_ms,
        .window_ms = caller->window_ms,
    };
    struct idem_client_intent *intent = NULL;
    struct idem_client_error error = { "" };
    enum idem_client_err err = idem_client_intend(caller->client, &request, &intent, &error);
    if (err != IDEM_CLIENT_OK) {
        print_error(request.name != NULL ? request.name : "", err, &error);
        return NULL;
    }
    return intent;
}

static struct idem_client_intent *next_line(struct caller *caller)
{
    while (true) {
        ssize_t len = getline(&caller->line, &caller->line_size, stdin);
        if (len < 0) {
            caller->ended = true;
            return NULL;
        }
        if (len > 0 && caller->line[len - 1] == '\n') {
            caller->line[len - 1] = '\0';
        }
        struct idem_client_intent *intent = intend(caller, caller->line);
        if (intent != NULL) {
            return intent;
        }
    }
}

/* False: the journal has no more. */
static bool next_entry(struct caller *caller, struct idem_client_entry *ret_entry)
{
    struct idem_client_error error = { "" };
    enum idem_client_err err =
        idem_client_next(caller->client, caller->position, true, ret_entry, &error);
    if (err == IDEM_CLIENT_OK) {
        caller->position = ret_entry->position;
        return true;
    }
    if (err != IDEM_CLIENT_E_UNKNOWN) {
        print_error("", err, &error);
    }
    caller->ended = true;
    return false;
}

static struct idem_client_intent *next_pending(struct caller *caller)
{
    struct idem_client_entry entry;
    while (next_entry(caller, &entry)) {
        struct idem_client_intent *intent = NULL;
        struct idem_client_error error = { "" };
        enum idem_client_err err =
            idem_client_resume(caller->client, entry.name, caller->credential, &intent, &error);
        if (err == IDEM_CLIENT_OK) {
            return intent;
        }
        print_error(entry.name, err, &error);
    }
    return NULL;
}

/* At most `max` intents that can be begun. */
static size_t collect(struct caller *caller, struct idem_client_intent **intents, size_t max)
{
    size_t count = 0;
    while (count < max) {
        struct idem_client_intent *intent =
            caller->resume ? next_pending(caller) : next_line(caller);
        if (intent == NULL) {
            break;
        }
        intents[count++] = intent;
    }
    return count;
}

/* Begins them one by one; says which could not be begun. */
static void submit_each(struct caller *caller, struct idem_client_intent **intents, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct idem_client_error error = { "" };
        enum idem_client_err err = idem_client_submit(caller->client, &intents[i], 1, &error);
        if (err == IDEM_CLIENT_OK) {
            caller->running++;
            continue;
        }
        print_error(idem_client_name(intents[i]), err, &error);
        idem_client_release(intents[i]);
    }
}

/* Begins as many as there is room for. */
static void begin(struct caller *caller)
{
    while (!caller->ended && caller->running < caller->at_once) {
        struct idem_client_intent *intents[BATCH_MAX];
        size_t room = caller->at_once - caller->running;
        size_t count = collect(caller, intents, room < BATCH_MAX ? room : BATCH_MAX);
        struct idem_client_error error = { "" };
        enum idem_client_err err =
            count > 0 ? idem_client_submit(caller->client, intents, count, &error) : IDEM_CLIENT_OK;
        if (err == IDEM_CLIENT_OK) {
            caller->running += count;
            continue;
        }
        submit_each(caller, intents, count);
    }
}

static void reap(struct caller *caller)
{
    struct idem_client_intent *intent;
    while ((intent = idem_client_reap(caller->client)) != NULL) {
        print_verdict(intent);
        idem_client_release(intent);
        caller->running--;
    }
    (void)fflush(stdout);
}

static void run(struct caller *caller)
{
    begin(caller);
    while (caller->running > 0) {
        struct pollfd poll_fd = { .fd = idem_client_fd(caller->client), .events = POLLIN };
        (void)poll(&poll_fd, 1, idem_client_timeout_ms(caller->client));
        idem_client_perform(caller->client, 0);
        reap(caller);
        begin(caller);
    }
    (void)fflush(stdout);
}

static const struct option flags[] = {
    { "journal", required_argument, NULL, 'j' },
    { "ca-file", required_argument, NULL, 'a' },
    { "proxy", required_argument, NULL, 'x' },
    { "http1", no_argument, NULL, '1' },
    { "insecure", no_argument, NULL, 'i' },
    { "calls", required_argument, NULL, 'c' },
    { "answer-max", required_argument, NULL, 'm' },
    { "try-timeout", required_argument, NULL, 't' },
    { "connect-timeout", required_argument, NULL, 'T' },
    { "backoff-first", required_argument, NULL, 'b' },
    { "backoff-max", required_argument, NULL, 'B' },
    { "retry-percent", required_argument, NULL, 'p' },
    { "retry-reserve", required_argument, NULL, 'r' },
    { "credential", required_argument, NULL, 'C' },
    { "deadline", required_argument, NULL, 'd' },
    { "window", required_argument, NULL, 'w' },
    { "at-once", required_argument, NULL, 'n' },
    { "resume", no_argument, NULL, 'R' },
    { NULL, 0, NULL, 0 },
};

/* False: neither a number nor a text was expected by that name. */
static bool flag_take_text(struct caller *caller, int flag, const char *value)
{
    switch (flag) {
    case 'j':
        caller->options.journal = value;
        return true;
    case 'a':
        caller->options.ca_file = value;
        return true;
    case 'x':
        caller->options.proxy = value;
        return true;
    case 'C':
        caller->credential = value;
        return true;
    case '1':
        caller->options.http1_only = true;
        return true;
    case 'i':
        caller->options.insecure = true;
        return true;
    case 'R':
        caller->resume = true;
        return true;
    default:
        return false;
    }
}

static bool flag_take_number(struct caller *caller, int flag, uint32_t value)
{
    switch (flag) {
    case 'c':
        caller->options.calls_max = value;
        return true;
    case 'm':
        caller->options.answer_max = value;
        return true;
    case 't':
        caller->options.try_timeout_ms = value;
        return true;
    case 'T':
        caller->options.connect_timeout_ms = value;
        return true;
    case 'b':
        caller->options.backoff_first_ms = value;
        return true;
    case 'B':
        caller->options.backoff_max_ms = value;
        return true;
    case 'p':
        caller->options.retry_percent = value;
        return true;
    case 'r':
        caller->options.retry_reserve = value;
        return true;
    case 'd':
        caller->deadline_ms = value;
        return true;
    case 'w':
        caller->window_ms = value;
        return true;
    case 'n':
        caller->at_once = value;
        return true;
    default:
        return false;
    }
}

static bool flags_take(struct caller *caller, int argc, char **argv)
{
    int flag;
    while ((flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        if (flag_take_text(caller, flag, optarg)) {
            continue;
        }
        char *end = NULL;
        errno = 0;
        unsigned long value = optarg != NULL ? strtoul(optarg, &end, 10) : 0;
        bool is_number = end != NULL && end != optarg && *end == '\0' && errno == 0;
        if (!is_number || value > UINT32_MAX || !flag_take_number(caller, flag, (uint32_t)value)) {
            return false;
        }
    }
    return optind == argc && caller->options.journal != NULL && caller->at_once > 0 &&
           caller->at_once <= IDEM_CLIENT_RUNS_MAX;
}

int main(int argc, char **argv)
{
    struct caller caller = {
        .options = { .size = sizeof(struct idem_client_options) },
        .at_once = 64,
    };
    if (!flags_take(&caller, argc, argv)) {
        (void)fprintf(stderr, "caller --journal PATH [--at-once N] [--resume] [...] < INTENTS\n");
        return 2;
    }
    struct idem_client_error error = { "" };
    if (idem_client_open(&caller.options, &caller.client, &error) != IDEM_CLIENT_OK) {
        (void)fprintf(stderr, "caller: %s\n", error.text);
        return 1;
    }
    run(&caller);
    idem_client_close(caller.client);
    free(caller.line);
    return 0;
}
