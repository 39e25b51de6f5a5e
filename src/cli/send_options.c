/*
 * The command line of `idem send`.
 *
 * One table of options; what may stand together is asked of what was given, after all of it was
 * read. An option may be given once: of two names or two bodies nobody knows which one is meant.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "cli/duration.h"
#include "cli/header_line.h"
#include "cli/send_internal.h"
#include "cli/table.h"

#define OPTION_FIRST  256 /* Above every letter. */
#define OPTION_HEADER (OPTION_FIRST + IDEM_SEND_WORD_COUNT)
#define TEXT_MAX      4096

static const char help[] =
    "usage: idem send METHOD URL [--data TEXT|@FILE|@-] [--header 'NAME: VALUE']...\n"
    "                 [--intent NAME] [OPTION...]\n"
    "       idem send --intent NAME [OPTION...]\n"
    "       idem send --pending [--json]\n"
    "       idem send --all [--json]\n"
    "       idem send --decide happened|not-happened --note TEXT --intent NAME\n"
    "       idem send --forget --intent NAME\n"
    "       idem send --forget --older-than TIME\n"
    "\n"
    "Sends a request to an API that has idempotency keys, and repeats it safely until the\n"
    "outcome is known. Request, key and outcome are in a journal on disk before the first byte\n"
    "leaves: the same command again goes on with the same key, and pays nothing twice.\n"
    "With --intent alone the request is taken from the journal.\n"
    "\n"
    "METHOD is POST, PUT, PATCH or DELETE. The answer's body goes to standard output.\n"
    "\n"
    "      --data TEXT             the body; @FILE: from a file; @-: from standard input\n"
    "      --header 'NAME: VALUE'  may be given again; not for credentials\n"
    "      --intent NAME           what is to happen once, such as invoice-1001: without a time\n"
    "                              in it, and the same for every retry; default: a random one\n"
    "      --key KEY               default: a random one\n"
    "      --deadline TIME         how long to try, such as 500ms, 5m, 2h; default 60s\n"
    "      --window TIME           how long the API knows a key, such as 23h, 7d; default: what\n"
    "                              the dialect promises\n"
    "      --journal PATH          default: the variable IDEM_JOURNAL, or\n"
    "                              ~/.local/state/idem/send.db\n"
    "      --dialect NAME          idem (default), ietf, stripe, adyen or paypal\n"
    "      --credential-file FILE  who asks; default: the variable IDEM_CREDENTIAL, or nobody\n"
    "      --credential-header NAME  instead of 'Authorization: Bearer'\n"
    "      --status-url URL        where the outcome can be looked up; shown with the verdict\n"
    "      --ca-file FILE          certificates to trust; default: the system's\n"
    "      --proxy URL             default: none, whatever the environment says\n"
    "      --http1                 no HTTP/2\n"
    "      --insecure              the credential may go in clear to another machine\n"
    "      --same-account          the credential is another one of the account that it was sent\n"
    "                              for before\n"
    "      --new-key               after a refusal: the same again, or with METHOD and URL a\n"
    "                              corrected request, under a new key\n"
    "      --include               the answer's status and headers before its body\n"
    "      --json                  one JSON object instead of the body; or one an intent\n"
    "      --quiet                 say nothing if it is done, and show no progress\n"
    "      --pending               list what is not over\n"
    "      --all                   list everything\n"
    "      --decide WORD           a person has found out what became of it: happened, or\n"
    "                              not-happened: it did not, and cannot any more\n"
    "      --note TEXT             with it: who has seen that where; is kept\n"
    "      --forget                forget an intent that is over; its name then begins a new one\n"
    "      --older-than TIME       with it, instead of a name: all that are over and ended so\n"
    "                              long ago, such as 90d; at least 1d\n"
    "  -h, --help                  this text\n"
    "\n"
    "Exit status: 0 done; 8 nothing happened so far: the same command, later; 7 not known: the\n"
    "same command goes on; 6 refused, nothing happened: a person has to look; 2 the command line\n"
    "is wrong, or the journal does not allow it: nothing was sent; 1 the journal or the system:\n"
    "nothing was sent, or the answer could not be printed.\n";

static const struct option table[] = {
    { "data", required_argument, NULL, OPTION_FIRST + IDEM_SEND_DATA },
    { "intent", required_argument, NULL, OPTION_FIRST + IDEM_SEND_INTENT },
    { "key", required_argument, NULL, OPTION_FIRST + IDEM_SEND_KEY },
    { "deadline", required_argument, NULL, OPTION_FIRST + IDEM_SEND_DEADLINE },
    { "window", required_argument, NULL, OPTION_FIRST + IDEM_SEND_WINDOW },
    { "journal", required_argument, NULL, OPTION_FIRST + IDEM_SEND_JOURNAL },
    { "dialect", required_argument, NULL, OPTION_FIRST + IDEM_SEND_DIALECT },
    { "credential-file", required_argument, NULL, OPTION_FIRST + IDEM_SEND_CREDENTIAL_FILE },
    { "credential-header", required_argument, NULL, OPTION_FIRST + IDEM_SEND_CREDENTIAL_HEADER },
    { "status-url", required_argument, NULL, OPTION_FIRST + IDEM_SEND_STATUS_URL },
    { "decide", required_argument, NULL, OPTION_FIRST + IDEM_SEND_DECIDE },
    { "note", required_argument, NULL, OPTION_FIRST + IDEM_SEND_NOTE },
    { "older-than", required_argument, NULL, OPTION_FIRST + IDEM_SEND_OLDER_THAN },
    { "ca-file", required_argument, NULL, OPTION_FIRST + IDEM_SEND_CA_FILE },
    { "proxy", required_argument, NULL, OPTION_FIRST + IDEM_SEND_PROXY },
    { "http1", no_argument, NULL, OPTION_FIRST + IDEM_SEND_HTTP1 },
    { "insecure", no_argument, NULL, OPTION_FIRST + IDEM_SEND_INSECURE },
    { "same-account", no_argument, NULL, OPTION_FIRST + IDEM_SEND_SAME_ACCOUNT },
    { "new-key", no_argument, NULL, OPTION_FIRST + IDEM_SEND_NEW_KEY },
    { "include", no_argument, NULL, OPTION_FIRST + IDEM_SEND_INCLUDE },
    { "json", no_argument, NULL, OPTION_FIRST + IDEM_SEND_JSON },
    { "quiet", no_argument, NULL, OPTION_FIRST + IDEM_SEND_QUIET },
    { "pending", no_argument, NULL, OPTION_FIRST + IDEM_SEND_PENDING },
    { "all", no_argument, NULL, OPTION_FIRST + IDEM_SEND_ALL },
    { "forget", no_argument, NULL, OPTION_FIRST + IDEM_SEND_FORGET },
    { "help", no_argument, NULL, OPTION_FIRST + IDEM_SEND_HELP },
    { "header", required_argument, NULL, OPTION_HEADER },
    { NULL, 0, NULL, 0 },
};

static IDEM_PRINTF(1, 0) void text_say(const char *format, va_list args, const char *end)
{
    char text[TEXT_MAX];
    (void)vsnprintf(text, sizeof(text), format, args); /* A longer one is cut. */
    idem_terminal_safe(text, strlen(text));
    (void)fprintf(stderr, "idem send: %s%s\n", text, end);
}

enum idem_exit idem_send_refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_say(format, args, ". Nothing was sent.");
    va_end(args);
    return IDEM_EXIT_USAGE;
}

void idem_send_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_say(format, args, "");
    va_end(args);
}

enum idem_exit idem_send_help(void)
{
    return fputs(help, stdout) < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
}

const char *idem_send_word_name(enum idem_send_word word)
{
    IDEM_ASSERT(word < IDEM_SEND_WORD_COUNT);
    IDEM_ASSERT(table[word].val == OPTION_FIRST + (int)word);
    return table[word].name;
}

static bool header_take(struct idem_send_options *options, const char *line)
{
    if (options->header_count == IDEM_CLIENT_HEADERS_MAX) {
        (void)idem_send_refuse("more than %d headers", IDEM_CLIENT_HEADERS_MAX);
        return false;
    }
    options->headers[options->header_count] = line;
    options->header_count += 1;
    return true;
}

/* False: it was said what is wrong with it. */
static bool option_take(struct idem_send_options *options, int letter)
{
    if (letter == OPTION_HEADER) {
        return header_take(options, optarg);
    }
    if (letter == 'h') {
        options->given[IDEM_SEND_HELP] = "";
        return true;
    }
    if (letter < OPTION_FIRST) {
        /* getopt has said what is wrong. */
        (void)idem_send_refuse("idem send --help says what it takes");
        return false;
    }
    enum idem_send_word word = (enum idem_send_word)(letter - OPTION_FIRST);
    if (options->given[word] != NULL && optarg != NULL) {
        (void)idem_send_refuse("--%s is given twice", idem_send_word_name(word));
        return false;
    }
    if (optarg != NULL && optarg[0] == '\0' && word != IDEM_SEND_DATA) {
        (void)idem_send_refuse("--%s is empty; maybe a variable is not set",
                               idem_send_word_name(word));
        return false;
    }
    options->given[word] = optarg != NULL ? optarg : "";
    return true;
}

static bool words_take(struct idem_send_options *options, int count, char **words)
{
    if (count > 2) {
        (void)idem_send_refuse("one request at a time: METHOD and URL, not '%s' too", words[2]);
        return false;
    }
    options->method = count > 0 ? words[0] : NULL;
    options->url = count > 1 ? words[1] : NULL;
    return true;
}

static enum idem_exit method_check(const char *method)
{
    static const char *const methods[] = { "POST", "PUT", "PATCH", "DELETE" };
    static const char *const questions[] = { "GET", "HEAD", "OPTIONS" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(methods); i++) {
        if (strcmp(method, methods[i]) == 0) {
            return IDEM_EXIT_OK;
        }
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(questions); i++) {
        if (strcmp(method, questions[i]) == 0) {
            return idem_send_refuse("%s only asks, which may be repeated without a key: use curl",
                                    method);
        }
    }
    return idem_send_refuse("'%s' is not a method: it is POST, PUT, PATCH or DELETE, in capitals",
                            method);
}

/* The options that stand for a way of their own. */
static const enum idem_send_word journal_ways[] = { IDEM_SEND_PENDING, IDEM_SEND_ALL,
                                                    IDEM_SEND_FORGET, IDEM_SEND_DECIDE };

/* The first option out of `words` that was given; IDEM_SEND_WORD_COUNT: none. */
static enum idem_send_word first_given(const struct idem_send_options *options,
                                       const enum idem_send_word *words,
                                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (options->given[words[i]] != NULL) {
            return words[i];
        }
    }
    return IDEM_SEND_WORD_COUNT;
}

static enum idem_exit request_check(const struct idem_send_options *options)
{
    if (options->url == NULL) {
        return idem_send_refuse(
            "METHOD and URL are needed, such as "
            "POST https://api.example.com/v1/payments");
    }
    for (size_t i = 0; i < options->header_count; i++) {
        const struct idem_str line = idem_str_from(options->headers[i]);
        const struct idem_str name = idem_header_name(line);
        enum idem_header_fault fault =
            idem_header_check(line, options->given[IDEM_SEND_CREDENTIAL_HEADER]);
        if (fault == IDEM_HEADER_NO_COLON || fault == IDEM_HEADER_NAME) {
            /* What it is may be secret: it is not shown. */
            return idem_send_refuse("header %zu %s", i + 1, idem_header_fault_text(fault));
        }
        if (fault != IDEM_HEADER_OK) {
            return idem_send_refuse("the header %.*s %s", (int)name.len, name.data,
                                    idem_header_fault_text(fault));
        }
    }
    return method_check(options->method);
}

/* What describes a request has no place beside one that the journal has. */
static enum idem_exit resume_check(const struct idem_send_options *options)
{
    static const enum idem_send_word words[] = {
        IDEM_SEND_DATA,
        IDEM_SEND_KEY,
        IDEM_SEND_DIALECT,
        IDEM_SEND_STATUS_URL,
    };
    enum idem_send_word word = first_given(options, words, IDEM_ARRAY_COUNT(words));
    if (options->given[IDEM_SEND_INTENT] == NULL) {
        return idem_send_refuse(
            "what is to be sent? METHOD and URL, or --intent NAME to go on "
            "with what the journal has; idem send --help says more");
    }
    if (word != IDEM_SEND_WORD_COUNT || options->header_count > 0) {
        return idem_send_refuse(
            "--%s belongs to a request: give METHOD, URL and all of it again, or the name alone, "
            "which goes on with the journal's request",
            word != IDEM_SEND_WORD_COUNT ? idem_send_word_name(word) : "header");
    }
    return IDEM_EXIT_OK;
}

static enum idem_exit decision_read(struct idem_send_options *options)
{
    const char *decision = options->given[IDEM_SEND_DECIDE];
    options->happened = strcmp(decision, "happened") == 0;
    if (!options->happened && strcmp(decision, "not-happened") != 0) {
        return idem_send_refuse("--decide is happened or not-happened, not '%s'", decision);
    }
    if (options->given[IDEM_SEND_NOTE] == NULL) {
        return idem_send_refuse("--decide needs --note TEXT: who has seen that where");
    }
    return IDEM_EXIT_OK;
}

/* A list, a decision or a forgetting: only where, which one and how to show it. */
static enum idem_exit journal_way_check(const struct idem_send_options *options)
{
    const char *way =
        idem_send_word_name(first_given(options, journal_ways, IDEM_ARRAY_COUNT(journal_ways)));
    bool lists = options->way == IDEM_SEND_LIST;
    if (options->method != NULL || options->header_count > 0) {
        return idem_send_refuse("--%s takes no request", way);
    }
    for (enum idem_send_word word = 0; word < IDEM_SEND_WORD_COUNT; word++) {
        bool fits = word == IDEM_SEND_JOURNAL || word == IDEM_SEND_JSON ||
                    word == IDEM_SEND_QUIET || strcmp(idem_send_word_name(word), way) == 0 ||
                    (word == IDEM_SEND_INTENT && !lists) ||
                    (word == IDEM_SEND_OLDER_THAN && options->way == IDEM_SEND_FORGETTING) ||
                    (word == IDEM_SEND_NOTE && options->way == IDEM_SEND_DECIDING);
        if (!fits && options->given[word] != NULL) {
            return idem_send_refuse("--%s does not go with --%s", idem_send_word_name(word), way);
        }
    }
    bool aged = options->given[IDEM_SEND_OLDER_THAN] != NULL;
    if (!lists && !aged && options->given[IDEM_SEND_INTENT] == NULL) {
        return idem_send_refuse("--%s needs --intent NAME", way);
    }
    if (aged && options->given[IDEM_SEND_INTENT] != NULL) {
        return idem_send_refuse("--intent or --older-than: one intent, or all of an age");
    }
    return IDEM_EXIT_OK;
}

static enum idem_exit journal_way_read(struct idem_send_options *options)
{
    options->way = IDEM_SEND_LIST;
    if (options->given[IDEM_SEND_FORGET] != NULL) {
        options->way = IDEM_SEND_FORGETTING;
    } else if (options->given[IDEM_SEND_DECIDE] != NULL) {
        options->way = IDEM_SEND_DECIDING;
    }
    enum idem_exit status = journal_way_check(options);
    return status == IDEM_EXIT_OK && options->way == IDEM_SEND_DECIDING ? decision_read(options)
                                                                        : status;
}

static enum idem_exit duration_read(const struct idem_send_options *options,
                                    enum idem_send_word word,
                                    bool days,
                                    int64_t *ret_ms)
{
    const char *text = options->given[word];
    if (text == NULL) {
        return IDEM_EXIT_OK;
    }
    enum idem_duration_fault fault = idem_duration_parse(idem_str_from(text), days, ret_ms);
    if (fault != IDEM_DURATION_OK) {
        return idem_send_refuse("--%s '%s' %s%s", idem_send_word_name(word), text,
                                idem_duration_fault_text(fault),
                                days && fault == IDEM_DURATION_BAD_UNIT ? ", or 7d" : "");
    }
    return IDEM_EXIT_OK;
}

static enum idem_exit credential_check(const struct idem_send_options *options)
{
    const char *name = options->given[IDEM_SEND_CREDENTIAL_HEADER];
    if (name != NULL && !idem_header_name_valid(idem_str_from(name))) {
        return idem_send_refuse("--credential-header is the name of a header, such as X-API-Key");
    }
    return IDEM_EXIT_OK;
}

static enum idem_exit way_check(struct idem_send_options *options)
{
    const char *const *given = options->given;
    if (first_given(options, journal_ways, IDEM_ARRAY_COUNT(journal_ways)) !=
        IDEM_SEND_WORD_COUNT) {
        return journal_way_read(options);
    }
    if (given[IDEM_SEND_NOTE] != NULL) {
        return idem_send_refuse("--note goes with --decide");
    }
    if (given[IDEM_SEND_OLDER_THAN] != NULL) {
        return idem_send_refuse("--older-than goes with --forget");
    }
    options->way = options->method != NULL ? IDEM_SEND_REQUEST : IDEM_SEND_RESUME;
    if (given[IDEM_SEND_NEW_KEY] != NULL && given[IDEM_SEND_INTENT] == NULL) {
        return idem_send_refuse("--new-key needs --intent NAME");
    }
    return options->way == IDEM_SEND_REQUEST ? request_check(options) : resume_check(options);
}

enum idem_exit idem_send_options_read(int argc, char **argv, struct idem_send_options *ret_options)
{
    static char program[] = "idem send"; /* What getopt begins its sentences with. */
    *ret_options = (struct idem_send_options){ .method = NULL };
    if (argc > 0) {
        argv[0] = program;
    }
    int letter;
    while ((letter = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        if (!option_take(ret_options, letter)) {
            return IDEM_EXIT_USAGE;
        }
    }
    if (ret_options->given[IDEM_SEND_HELP] != NULL) {
        return IDEM_EXIT_OK;
    }
    if (!words_take(ret_options, argc - optind, argv + optind)) {
        return IDEM_EXIT_USAGE;
    }
    enum idem_exit status = way_check(ret_options);
    if (status == IDEM_EXIT_OK) {
        status = duration_read(ret_options, IDEM_SEND_DEADLINE, false, &ret_options->deadline_ms);
    }
    if (status == IDEM_EXIT_OK) {
        status = duration_read(ret_options, IDEM_SEND_WINDOW, true, &ret_options->window_ms);
    }
    if (status == IDEM_EXIT_OK) {
        status = duration_read(ret_options, IDEM_SEND_OLDER_THAN, true, &ret_options->age_ms);
    }
    return status == IDEM_EXIT_OK ? credential_check(ret_options) : status;
}
