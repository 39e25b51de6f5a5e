/*
 * command.h - what every operator's command has in common: its command line, its help, its session.
 */
#ifndef IDEM_CLI_COMMAND_H
#define IDEM_CLI_COMMAND_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/exit.h"
#include "cli/session.h"

#define IDEM_ARGUMENTS_OWN  8
#define IDEM_ARGUMENTS_MANY 32

/* What was said on the command line, beside the options of the session. */
struct idem_arguments {
    const char *own[IDEM_ARGUMENTS_OWN]; /* Values of options IDEM_OPTION_OWN and on; NULL: none. */
    const char *many[IDEM_ARGUMENTS_MANY]; /* Values of IDEM_OPTION_MANY, which may come again. */
    size_t many_count;
    const char *word; /* The one word that is not an option; NULL: none. */
};

/* The option that may be given several times. */
#define IDEM_OPTION_MANY (IDEM_OPTION_OWN + IDEM_ARGUMENTS_OWN)

struct idem_command_line {
    const struct option *options; /* Ends with zeros; with IDEM_SESSION_OPTIONS. */
    const char *help;
    enum idem_exit (*run)(struct idem_session *session, const struct idem_arguments *arguments);
};

/* Reads the command line and runs; help goes to standard output, or with status 2 to the other. */
enum idem_exit idem_command_line_run(int argc, char **argv, const struct idem_command_line *line);

/* What `idem COMMAND VERB` does. */
struct idem_command_verb {
    const char *name;
    struct idem_command_line line;
};

/* The verbs of one command; they share a help. */
struct idem_command_verbs {
    const struct idem_command_verb *verbs; /* Ends with a name NULL. */
    const char *help;
    bool lists; /* Without a verb it is the first one. */
};

/* Likewise for a command with verbs: runs the one that argv[1] names. */
enum idem_exit idem_command_verbs_run(int argc,
                                      char **argv,
                                      const struct idem_command_verbs *verbs);

/* The value of an option of its own, or NULL. */
const char *idem_arguments_own(const struct idem_arguments *arguments, int option);

/* True if `id` is a UUID, which may stand in a path; otherwise it was said. */
bool idem_arguments_id(const char *id);

/* Appends `"name":"value"` to a request's body, if there is a value; false: it is not UTF-8. */
bool idem_body_member(struct idem_buf *body, const char *name, const char *value);

/* Appends `?name=value` or `&name=value` to a path, if there is a value; whatever bytes it has. */
void idem_path_member(struct idem_buf *path, const char *name, const char *value);

/* Ends the path as C text; false: it is longer than any that the service has, and it was said. */
bool idem_path_end(struct idem_buf *path);

/*
 * Posts `body` (NULL: none) to /v1/admin/THINGS/ID/VERB. OK: the answer stands in the session.
 * USAGE: the id is none, or the body is full, and it was said.
 */
enum idem_exit idem_command_post(struct idem_session *session,
                                 const char *things,
                                 const char *id,
                                 const char *verb,
                                 const struct idem_buf *body);

/* "ID WHAT" of what was done, or the answer as JSON. */
enum idem_exit idem_command_said(const struct idem_session *session,
                                 const char *id,
                                 const char *what);

#endif /* IDEM_CLI_COMMAND_H */
