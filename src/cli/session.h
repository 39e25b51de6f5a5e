/*
 * session.h - one command's conversation with the service: where it is, who asks, what it said.
 *
 * Every request of the admin API may be repeated, so one whose answer got lost is repeated a few
 * times under the same bytes; what is still unknown then is told as unknown.
 */
#ifndef IDEM_CLI_SESSION_H
#define IDEM_CLI_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/exit.h"
#include "base/json.h"
#include "base/private_file.h"
#include "base/text.h"
#include "client/call.h"

#define IDEM_SESSION_TOKENS 16384
#define IDEM_SESSION_ANSWER 131072 /* Bytes. */
#define IDEM_SESSION_BODY   4096
#define IDEM_SESSION_URL    1024

/* Letters of the options that every command takes; its own begin above them. */
enum {
    IDEM_OPTION_URL = 256,
    IDEM_OPTION_CREDENTIAL,
    IDEM_OPTION_JSON,
    IDEM_OPTION_INSECURE,
    IDEM_OPTION_OWN
};

/* For a command's `struct option` table and its help. */
#define IDEM_SESSION_OPTIONS                                                    \
    { "url", required_argument, NULL, IDEM_OPTION_URL },                        \
        { "credential-file", required_argument, NULL, IDEM_OPTION_CREDENTIAL }, \
        { "insecure", no_argument, NULL, IDEM_OPTION_INSECURE },                \
        { "json", no_argument, NULL, IDEM_OPTION_JSON },                        \
    {                                                                           \
        "help", no_argument, NULL, 'h'                                          \
    }

#define IDEM_SESSION_HELP                                                                          \
    "      --url URL               the service; default IDEM_URL, or http://127.0.0.1:8080\n"      \
    "      --credential-file FILE  the operator's bearer; default: the variable IDEM_CREDENTIAL\n" \
    "      --insecure              allow plain http to another machine\n"                          \
    "      --json                  the service's own answers, one a line\n"                        \
    "  -h, --help                  this text\n"

struct idem_session {
    const char *url;             /* NULL: from the environment, or the default. */
    const char *credential_file; /* NULL: from the environment. */
    bool insecure;               /* The bearer may go in clear. */
    bool json;
    bool help;
    bool doubt;   /* The last request may have been done, whatever its last try was told. */
    bool changed; /* Something was asked that is more than a look, and was not clearly refused. */

    struct idem_http_call call; /* The last one. */
    struct idem_json document;  /* Its answer, if it is JSON. */
    struct idem_json_token tokens[IDEM_SESSION_TOKENS];
    char answer[IDEM_SESSION_ANSWER]; /* The call's room for it. */
    char credential[IDEM_SECRET_WORD_MAX];
    char authorization[IDEM_SECRET_WORD_MAX + 32];
    char full_url[IDEM_SESSION_URL];
};

/* Gives a session that has not been opened; NULL: no memory, and it was said. */
struct idem_session *idem_session_create(void);

/* Wipes what is secret. Accepts NULL. */
void idem_session_destroy(struct idem_session *session);

/* One of the options above; false: it is not one of them. */
bool idem_session_option(struct idem_session *session, int letter, const char *value);

/*
 * Asks. OK: a 2xx answer with a JSON object as `document`. Otherwise what is wrong was said on
 * standard error. `body` may be empty.
 */
enum idem_exit idem_session_ask(struct idem_session *session,
                                const char *method,
                                const char *path,
                                struct idem_str body);

/* The last answer as one line on standard output. */
enum idem_exit idem_session_print_json(const struct idem_session *session);

#endif /* IDEM_CLI_SESSION_H */
