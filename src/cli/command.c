/*
 * A command line that cannot be understood costs nothing: it is refused before the service is
 * asked.
 */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/uid.h"
#include "cli/output.h"

const char *idem_arguments_own(const struct idem_arguments *arguments, int option)
{
    IDEM_ASSERT(option >= IDEM_OPTION_OWN && option < IDEM_OPTION_MANY);
    return arguments->own[option - IDEM_OPTION_OWN];
}

static bool option_take(struct idem_session *session, struct idem_arguments *arguments, int letter)
{
    if (letter >= IDEM_OPTION_OWN && letter < IDEM_OPTION_MANY) {
        arguments->own[letter - IDEM_OPTION_OWN] = optarg != NULL ? optarg : "";
        return true;
    }
    if (letter == IDEM_OPTION_MANY) {
        if (arguments->many_count == IDEM_ARGUMENTS_MANY) {
            (void)fprintf(stderr, "idem: more than %d of one option\n", IDEM_ARGUMENTS_MANY);
            return false;
        }
        arguments->many[arguments->many_count] = optarg;
        arguments->many_count += 1;
        return true;
    }
    return idem_session_option(session, letter, optarg);
}

/* False: the command line cannot be understood, and it was said why. */
static bool arguments_read(int argc,
                           char **argv,
                           const struct option *options,
                           struct idem_session *session,
                           struct idem_arguments *ret_arguments)
{
    *ret_arguments = (struct idem_arguments){ .word = NULL };
    int letter;
    while ((letter = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (!option_take(session, ret_arguments, letter)) {
            return false;
        }
    }
    if (argc - optind > 1) {
        (void)fprintf(stderr, "idem %s: one word at a time, not '%s' too\n", argv[0],
                      argv[optind + 1]);
        return false;
    }
    if (optind < argc) {
        ret_arguments->word = argv[optind];
    }
    return true;
}

enum idem_exit idem_command_line_run(int argc, char **argv, const struct idem_command_line *line)
{
    struct idem_session *session = idem_session_create();
    if (session == NULL) {
        return IDEM_EXIT_OTHER;
    }
    struct idem_arguments arguments;
    enum idem_exit status = IDEM_EXIT_USAGE;
    if (!arguments_read(argc, argv, line->options, session, &arguments)) {
        (void)fputs(line->help, stderr);
    } else if (session->help) {
        status = fputs(line->help, stdout) < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
    } else {
        status = line->run(session, &arguments);
    }
    status = idem_output_end(status, session->changed ? "what the service had taken by then is done"
                                                      : "nothing was changed");
    idem_session_destroy(session);
    return status;
}

enum idem_exit idem_command_verbs_run(int argc, char **argv, const struct idem_command_verbs *verbs)
{
    const char *word = argc > 1 ? argv[1] : "";
    for (const struct idem_command_verb *verb = verbs->verbs; verb->name != NULL; verb++) {
        if (strcmp(word, verb->name) == 0) {
            return idem_command_line_run(argc - 1, argv + 1, &verb->line);
        }
    }
    bool asked = strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    if (verbs->lists && !asked && (word[0] == '-' || word[0] == '\0')) {
        return idem_command_line_run(argc, argv, &verbs->verbs[0].line);
    }
    (void)fputs(verbs->help, asked ? stdout : stderr); /* Whether it arrives is seen now: */
    return idem_output_end(asked ? IDEM_EXIT_OK : IDEM_EXIT_USAGE, "nothing was changed");
}

bool idem_arguments_id(const char *id)
{
    struct idem_uid uid;
    if (id == NULL || !idem_uid_parse(idem_str_from(id), &uid)) {
        (void)fprintf(stderr,
                      "idem: %s is not an id such as 01977e3c-5e0a-7cc3-98c4-dc0c0c07398f\n",
                      id != NULL ? id : "(nothing)");
        return false;
    }
    return true;
}

bool idem_body_member(struct idem_buf *body, const char *name, const char *value)
{
    if (value == NULL) {
        return true;
    }
    if (!idem_utf8_valid(idem_str_from(value))) {
        (void)fprintf(stderr, "idem: the %s is not UTF-8\n", name);
        return false;
    }
    idem_buf_printf(body, "%s\"%s\":", body->len > 1 ? "," : "", name);
    idem_json_add_string(body, idem_str_from(value));
    return true;
}

static bool byte_is_unreserved(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte != '\0' && strchr("-._~", byte) != NULL);
}

void idem_path_member(struct idem_buf *path, const char *name, const char *value)
{
    if (value == NULL) {
        return;
    }
    bool is_first = idem_str_find(idem_buf_str(path), '?') == path->len;
    idem_buf_printf(path, "%c%s=", is_first ? '?' : '&', name);
    for (const char *byte = value; *byte != '\0'; byte++) {
        if (byte_is_unreserved(*byte)) {
            idem_buf_add_char(path, *byte);
        } else {
            idem_buf_printf(path, "%%%02X", (unsigned)(unsigned char)*byte);
        }
    }
}

bool idem_path_end(struct idem_buf *path)
{
    idem_buf_add_char(path, '\0');
    if (path->full) {
        (void)fputs("idem: that is more text than the service takes\n", stderr);
    }
    return !path->full;
}

enum idem_exit idem_command_post(struct idem_session *session,
                                 const char *things,
                                 const char *id,
                                 const char *verb,
                                 const struct idem_buf *body)
{
    char path[256];
    if (!idem_arguments_id(id)) {
        return IDEM_EXIT_USAGE;
    }
    if (body != NULL && body->full) {
        (void)fputs("idem: that is more text than the service takes\n", stderr);
        return IDEM_EXIT_USAGE;
    }
    (void)snprintf(path, sizeof(path), "/v1/admin/%s/%s/%s", things, id, verb); /* It fits. */
    return idem_session_ask(session, "POST", path,
                            body != NULL ? idem_buf_str(body) : IDEM_STR(""));
}

enum idem_exit idem_command_said(const struct idem_session *session,
                                 const char *id,
                                 const char *what)
{
    if (session->json) {
        return idem_session_print_json(session);
    }
    return printf("%s %s\n", id, what) < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
}
