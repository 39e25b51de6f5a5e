/*
 * send_internal.h - the parts of `idem send`: its command line, its request, its words.
 *
 * Whatever is refused before a request leaves says so: "Nothing was sent."
 */
#ifndef IDEM_CLI_SEND_INTERNAL_H
#define IDEM_CLI_SEND_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/exit.h"
#include "base/private_file.h"
#include "base/text.h"
#include "idem/client.h"

#define IDEM_SEND_PATH_MAX 4096
#define IDEM_SEND_NAME_MAX 64 /* Of a name made here. */
#define IDEM_SEND_SAID_MAX 1024

/* What may be said on the command line beside METHOD and URL; the first ones take a value. */
enum idem_send_word {
    IDEM_SEND_DATA = 0,
    IDEM_SEND_INTENT,
    IDEM_SEND_KEY,
    IDEM_SEND_DEADLINE,
    IDEM_SEND_WINDOW,
    IDEM_SEND_JOURNAL,
    IDEM_SEND_DIALECT,
    IDEM_SEND_CREDENTIAL_FILE,
    IDEM_SEND_CREDENTIAL_HEADER,
    IDEM_SEND_STATUS_URL,
    IDEM_SEND_DECIDE,
    IDEM_SEND_NOTE,
    IDEM_SEND_OLDER_THAN,
    IDEM_SEND_CA_FILE,
    IDEM_SEND_PROXY,
    IDEM_SEND_HTTP1,
    IDEM_SEND_INSECURE,
    IDEM_SEND_SAME_ACCOUNT,
    IDEM_SEND_NEW_KEY,
    IDEM_SEND_INCLUDE,
    IDEM_SEND_JSON,
    IDEM_SEND_QUIET,
    IDEM_SEND_PENDING,
    IDEM_SEND_ALL,
    IDEM_SEND_FORGET,
    IDEM_SEND_HELP,
    IDEM_SEND_WORD_COUNT
};

/* Which of the command's ways is meant. */
enum idem_send_way {
    IDEM_SEND_REQUEST = 0, /* METHOD and URL. */
    IDEM_SEND_RESUME,      /* The journal has the request. */
    IDEM_SEND_LIST,
    IDEM_SEND_FORGETTING,
    IDEM_SEND_DECIDING
};

/* Borrows from argv. */
struct idem_send_options {
    enum idem_send_way way;
    const char *given[IDEM_SEND_WORD_COUNT]; /* The value, "" of one without; NULL: not given. */
    const char *headers[IDEM_CLIENT_HEADERS_MAX];
    size_t header_count;
    const char *method;
    const char *url;
    bool happened;       /* Of --decide. */
    int64_t deadline_ms; /* 0: not given. */
    int64_t window_ms;
    int64_t age_ms; /* Of --older-than. */
};

/* Prints "idem send: TEXT. Nothing was sent." to standard error; gives IDEM_EXIT_USAGE. */
enum idem_exit idem_send_refuse(const char *format, ...) IDEM_PRINTF(1, 2);

/* Prints "idem send: TEXT" to standard error, made safe for a terminal. */
void idem_send_say(const char *format, ...) IDEM_PRINTF(1, 2);

/* OK, or it was said what is wrong. Help is asked for by given[IDEM_SEND_HELP]. */
enum idem_exit idem_send_options_read(int argc, char **argv, struct idem_send_options *ret_options);

/* To standard output. */
enum idem_exit idem_send_help(void);

/* The words of the option, "--data". */
const char *idem_send_word_name(enum idem_send_word word);

/* What a request needs beside the command line. */
struct idem_send_material {
    char journal[IDEM_SEND_PATH_MAX];
    char name[IDEM_SEND_NAME_MAX];
    char secret[IDEM_SECRET_WORD_MAX];
    char credential[2 * IDEM_SECRET_WORD_MAX]; /* The header line; empty: none. */
    const char *headers[IDEM_CLIENT_HEADERS_MAX + 1];
    char *body; /* Its own, or NULL. */
};

/*
 * Finds the journal; `must_exist`: nothing is made, and one that is not there is told. OK, or it
 * was said what is wrong.
 */
enum idem_exit idem_send_journal_find(const struct idem_send_options *options,
                                      bool must_exist,
                                      struct idem_send_material *material);

/* Reads who asks, if somebody does. */
enum idem_exit idem_send_credential_read(const struct idem_send_options *options,
                                         struct idem_send_material *material);

/* Reads the body and makes the request, which borrows from both. */
enum idem_exit idem_send_request_make(const struct idem_send_options *options,
                                      struct idem_send_material *material,
                                      struct idem_client_request *ret_request);

/* Wipes what is secret and frees the body. */
void idem_send_material_clear(struct idem_send_material *material);

/* Tells the verdict: the answer to standard output, what it means to standard error. */
enum idem_exit idem_send_verdict_print(const struct idem_send_options *options,
                                       const struct idem_client_intent *intent);

/* What an answer says to a person. */
struct idem_send_words {
    bool look_first;               /* A problem of ours that says: look at what is there. */
    char text[IDEM_SEND_SAID_MAX]; /* Terminated; without control characters; "": nothing. */
};

/* Reads the body of an error in the shapes of the known APIs. Pure. */
void idem_send_words_read(struct idem_str body, struct idem_send_words *ret_words);

/* What may be done next about a verdict. */
enum idem_send_hint {
    IDEM_SEND_HINT_NONE = 0, /* Nothing: it is done. */
    IDEM_SEND_HINT_NEW_KEY,  /* Refused for good: under a new key. */
    IDEM_SEND_HINT_LOOK,     /* Something else stands in its way: look first. */
    IDEM_SEND_HINT_CORRECT,  /* These bytes cannot be used: corrected, under a new key. */
    IDEM_SEND_HINT_REPAIR,   /* What is beside the request is wrong: then the same again. */
    IDEM_SEND_HINT_LATER,    /* The same again, later. */
    IDEM_SEND_HINT_GO_ON,    /* Not known: the same again. */
    IDEM_SEND_HINT_FIND_OUT, /* Not known: a person looks; the same again may help. */
    IDEM_SEND_HINT_DECIDE    /* Not known: only a person can find out. */
};

/* Pure. */
enum idem_send_hint idem_send_hint_choose(const struct idem_client_verdict *verdict,
                                          bool look_first);

/* Prints it with the command to type. */
void idem_send_hint_say(const struct idem_send_options *options,
                        const char *name,
                        enum idem_send_hint hint);

/* The line that shows how a run stands, on a terminal. */
struct idem_send_progress {
    bool shown;        /* Something stands there. */
    int64_t looked_us; /* When it was last written, or might first have been; monotonic. */
};

/* The text of the line, cut to what a terminal of 80 columns takes. Pure. */
void idem_send_progress_text(const char *name,
                             const struct idem_client_progress *progress,
                             struct idem_buf *buf);

void idem_send_progress_show(struct idem_send_progress *line,
                             const struct idem_client_intent *intent);
void idem_send_progress_clear(struct idem_send_progress *line);

/* --pending and --all. */
enum idem_exit idem_send_list(const struct idem_send_options *options, struct idem_client *client);

/* What an error of the client means here; prints it. */
enum idem_exit idem_send_fault(enum idem_client_err err, const struct idem_client_error *error);

/* Appends `text` as a JSON string; what is not UTF-8 becomes '?'. */
void idem_send_json_text(struct idem_buf *buf, struct idem_str text);

#endif /* IDEM_CLI_SEND_INTERNAL_H */
