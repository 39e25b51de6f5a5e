/*
 * idem send: a request that must happen at most once, for shells and cron.
 *
 * The client library does the work (idem/client.h); here are its command line, its signals and its
 * words. What a person must be able to rely on: exit status 0 means that it happened, 6 and 8 that
 * nothing did, and everything that may have happened is 7, never an error of another name. 2
 * says of this command that it sent nothing, and nothing of what the name has done before.
 *
 * A signal ends a run as idem_client_stop() does: what is known at that moment is written down and
 * told. So signals only set a flag, and the loop looks at it at least five times a second.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/bug.h"
#include "cli/cli.h"
#include "cli/send_internal.h"

#define WAIT_MS 200

/* Asked to stop. A signal handler can reach nothing but a global. */
static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
    (void)number; /* All of them mean the same. */
    stop_asked = 1;
}

/*
 * A closed standard descriptor would be given to the next file or socket that is opened, and what
 * is printed would go there. Taken by what cannot be written to, printing fails, and is told.
 */
static void descriptors_take(void)
{
    int file;
    do {
        file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0) {
        (void)close(file); /* Nothing was written to it. */
    }
}

/* From here on a signal ends the run in order. */
static void signals_take(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    (void)sigemptyset(&action.sa_mask); /* They cannot fail for signals that exist. */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

/* The library's sentences often say it themselves. */
static bool says_nothing_was_sent(const char *text)
{
    static const char end[] = "nothing was sent";
    size_t len = strlen(text);
    return len >= sizeof(end) - 1 && strcasecmp(text + len - (sizeof(end) - 1), end) == 0;
}

static void fault_say(enum idem_client_err err, const struct idem_client_error *error)
{
    if (err == IDEM_CLIENT_E_BUSY) {
        idem_send_say(
            "%s. This command sent nothing, and what the other one brings about is not known "
            "yet: the same command again, later, tells.",
            error->text);
        return;
    }
    idem_send_say("%s.%s", error->text,
                  says_nothing_was_sent(error->text) ? "" : " Nothing was sent.");
}

static enum idem_exit fault_status(enum idem_client_err err)
{
    switch (err) {
    case IDEM_CLIENT_E_MISMATCH:
    case IDEM_CLIENT_E_REFUSED:
    case IDEM_CLIENT_E_INVALID:
    case IDEM_CLIENT_E_UNKNOWN:
        return IDEM_EXIT_USAGE;
    case IDEM_CLIENT_E_JOURNAL:
    case IDEM_CLIENT_E_LIMIT:
    case IDEM_CLIENT_E_SYSTEM:
        return IDEM_EXIT_OTHER;
    case IDEM_CLIENT_E_BUSY:
        return IDEM_EXIT_UNKNOWN;
    case IDEM_CLIENT_OK:
        break;
    }
    IDEM_UNREACHABLE();
}

enum idem_exit idem_send_fault(enum idem_client_err err, const struct idem_client_error *error)
{
    fault_say(err, error);
    return fault_status(err);
}

static enum idem_client_err client_open(const struct idem_send_options *options,
                                        const struct idem_send_material *material,
                                        struct idem_client **ret_client,
                                        struct idem_client_error *reterr)
{
    const struct idem_client_options wanted = {
        .size = sizeof(wanted),
        .journal = material->journal,
        .ca_file = options->given[IDEM_SEND_CA_FILE],
        .proxy = options->given[IDEM_SEND_PROXY],
        .http1_only = options->given[IDEM_SEND_HTTP1] != NULL,
        .insecure = options->given[IDEM_SEND_INSECURE] != NULL,
        .calls_max = 1,
    };
    bool is_new = access(material->journal, F_OK) != 0;
    enum idem_client_err err = idem_client_open(&wanted, ret_client, reterr);
    if (err == IDEM_CLIENT_OK && is_new) {
        char path[PATH_MAX];
        /* A relative path from another directory, another user: told, or it is never noticed. */
        idem_send_say("A new journal was made: %s",
                      realpath(material->journal, path) != NULL ? path : material->journal);
    }
    return err;
}

/* Submits the intent and waits for its end, showing how it stands and looking for signals. */
static enum idem_client_err intent_run(const struct idem_send_options *options,
                                       struct idem_client *client,
                                       struct idem_client_intent *intent,
                                       struct idem_client_error *reterr)
{
    struct idem_send_progress line = { .shown = false };
    bool watched = options->given[IDEM_SEND_QUIET] == NULL && isatty(STDERR_FILENO) != 0;
    bool stopped = false;
    signals_take();
    enum idem_client_err err = idem_client_submit(client, &intent, 1, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    while (idem_client_reap(client) == NULL) {
        if (stop_asked != 0 && !stopped) {
            idem_client_stop(intent);
            stopped = true;
        }
        if (watched) {
            idem_send_progress_show(&line, intent);
        }
        idem_client_perform(client, WAIT_MS);
    }
    idem_send_progress_clear(&line);
    return IDEM_CLIENT_OK;
}

/*
 * A new key is given to what is there: so the intent is looked up and not made, and a request, if
 * there is one, replaces its old one. Refused by the client unless nothing can happen any more.
 */
static enum idem_client_err intent_renew(struct idem_client *client,
                                         const struct idem_client_request *request,
                                         const struct idem_send_options *options,
                                         struct idem_client_intent **ret_intent,
                                         struct idem_client_error *reterr)
{
    struct idem_client_intent *intent = NULL;
    enum idem_client_err err =
        idem_client_resume(client, request->name, request->credential, &intent, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    err = idem_client_renew(intent, options->way == IDEM_SEND_REQUEST ? request : NULL, reterr);
    if (err != IDEM_CLIENT_OK) {
        idem_client_release(intent);
        return err;
    }
    *ret_intent = intent;
    return IDEM_CLIENT_OK;
}

/* What the journal has, with the times that are given now. */
static enum idem_client_err intent_resume(struct idem_client *client,
                                          const struct idem_client_request *request,
                                          struct idem_client_intent **ret_intent,
                                          struct idem_client_error *reterr)
{
    struct idem_client_intent *intent = NULL;
    enum idem_client_err err =
        idem_client_resume(client, request->name, request->credential, &intent, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    err = idem_client_set_times(intent, request->deadline_ms, request->window_ms, reterr);
    if (err != IDEM_CLIENT_OK) {
        idem_client_release(intent);
        return err;
    }
    *ret_intent = intent;
    return IDEM_CLIENT_OK;
}

static enum idem_client_err intent_take(struct idem_client *client,
                                        const struct idem_client_request *request,
                                        const struct idem_send_options *options,
                                        struct idem_client_intent **ret_intent,
                                        struct idem_client_error *reterr)
{
    enum idem_client_err err;
    if (options->given[IDEM_SEND_NEW_KEY] != NULL) {
        err = intent_renew(client, request, options, ret_intent, reterr);
    } else if (options->way == IDEM_SEND_REQUEST) {
        err = idem_client_intend(client, request, ret_intent, reterr);
    } else {
        err = intent_resume(client, request, ret_intent, reterr);
    }
    if (err == IDEM_CLIENT_OK && options->given[IDEM_SEND_SAME_ACCOUNT] != NULL) {
        idem_client_same_account(*ret_intent);
    }
    return err;
}

/*
 * The name belongs to another request: what may be done depends on what became of that one. Or the
 * key to another name.
 */
static void mismatch_say(const struct idem_send_options *options,
                         struct idem_client *client,
                         const char *name)
{
    struct idem_client_intent *former = NULL;
    struct idem_client_error error;
    enum idem_client_err err = idem_client_resume(client, name, NULL, &former, &error);
    bool renewable = err == IDEM_CLIENT_OK && idem_client_verdict(former)->renewable;
    idem_client_release(former);
    /* A new key is given to whatever request the name has: it can only be the key. */
    if (err == IDEM_CLIENT_E_UNKNOWN || options->given[IDEM_SEND_NEW_KEY] != NULL) {
        idem_send_say(
            "Which name has the key: idem send --all --json. If this is another action, "
            "it needs another key, or none.");
        return;
    }
    if (renewable) {
        idem_send_say(
            "The request that %s belongs to was refused, and nothing happened. To send this one "
            "in its place: the same command with --new-key.",
            name);
        return;
    }
    idem_send_say(
        "To go on with the old request: idem send --intent with that name and nothing "
        "else. If this is another action, give it another name than %s.",
        name);
}

static enum idem_exit send_run(const struct idem_send_options *options,
                               const struct idem_client_request *request,
                               struct idem_client *client)
{
    struct idem_client_intent *intent = NULL;
    struct idem_client_error error;
    enum idem_client_err err = intent_take(client, request, options, &intent, &error);
    if (err == IDEM_CLIENT_OK) {
        err = intent_run(options, client, intent, &error);
    }
    enum idem_exit status = err == IDEM_CLIENT_OK ? idem_send_verdict_print(options, intent)
                                                  : idem_send_fault(err, &error);
    if (err == IDEM_CLIENT_E_MISMATCH) {
        mismatch_say(options, client, request->name);
    }
    idem_client_release(intent);
    return status;
}

/* Forgetting sends nothing anyway, so that is not said. */
static enum idem_exit forgetting_fault(enum idem_client_err err,
                                       const struct idem_client_error *error)
{
    idem_send_say("%s.", error->text);
    return fault_status(err);
}

static enum idem_exit forget_run(const struct idem_send_options *options,
                                 struct idem_client *client)
{
    const char *name = options->given[IDEM_SEND_INTENT];
    struct idem_client_error error;
    enum idem_client_err err = idem_client_forget(client, name, &error);
    if (err == IDEM_CLIENT_E_REFUSED) {
        idem_send_say("%s is not forgotten: %s.", name, error.text);
        return IDEM_EXIT_USAGE;
    }
    if (err != IDEM_CLIENT_OK) {
        return forgetting_fault(err, &error);
    }
    idem_send_say("%s is forgotten: whoever uses the name again begins a new action.", name);
    return IDEM_EXIT_OK;
}

static enum idem_exit age_run(const struct idem_send_options *options, struct idem_client *client)
{
    const char *age = options->given[IDEM_SEND_OLDER_THAN];
    struct idem_client_error error;
    int64_t count = 0;
    enum idem_client_err err = idem_client_forget_older(client, options->age_ms, &count, &error);
    if (options->given[IDEM_SEND_QUIET] == NULL && (err == IDEM_CLIENT_OK || count > 0)) {
        idem_send_say("%lld forgotten that ended %s ago or earlier.", (long long)count, age);
    }
    return err == IDEM_CLIENT_OK ? IDEM_EXIT_OK : forgetting_fault(err, &error);
}

static enum idem_exit decide_run(const struct idem_send_options *options,
                                 struct idem_client *client)
{
    const char *name = options->given[IDEM_SEND_INTENT];
    struct idem_client_error error;
    enum idem_client_err err =
        idem_client_decide(client, name, options->happened, options->given[IDEM_SEND_NOTE], &error);
    if (err != IDEM_CLIENT_OK) {
        return idem_send_fault(err, &error);
    }
    if (options->happened) {
        idem_send_say("%s is over: it happened. Nothing is sent under this name any more.", name);
        return IDEM_EXIT_OK;
    }
    idem_send_say("%s is over: nothing happened.", name);
    idem_send_hint_say(options, name, IDEM_SEND_HINT_NEW_KEY);
    return IDEM_EXIT_OK;
}

/* Everything is read and checked: opens the journal and does what is meant. */
static enum idem_exit way_run(const struct idem_send_options *options,
                              const struct idem_send_material *material,
                              const struct idem_client_request *request)
{
    struct idem_client *client = NULL;
    struct idem_client_error error;
    enum idem_client_err err = client_open(options, material, &client, &error);
    if (err != IDEM_CLIENT_OK) {
        return idem_send_fault(err, &error);
    }
    enum idem_exit status = IDEM_EXIT_OTHER;
    switch (options->way) {
    case IDEM_SEND_REQUEST:
    case IDEM_SEND_RESUME:
        status = send_run(options, request, client);
        break;
    case IDEM_SEND_LIST:
        status = idem_send_list(options, client);
        break;
    case IDEM_SEND_FORGETTING:
        status = options->given[IDEM_SEND_OLDER_THAN] != NULL ? age_run(options, client)
                                                              : forget_run(options, client);
        break;
    case IDEM_SEND_DECIDING:
        status = decide_run(options, client);
        break;
    }
    idem_client_close(client);
    return status;
}

static enum idem_exit material_run(const struct idem_send_options *options,
                                   struct idem_send_material *material)
{
    struct idem_client_request request = { .size = sizeof(request) };
    bool sends = options->way == IDEM_SEND_REQUEST || options->way == IDEM_SEND_RESUME;
    bool must_exist =
        options->way != IDEM_SEND_REQUEST || options->given[IDEM_SEND_NEW_KEY] != NULL;
    enum idem_exit status = idem_send_journal_find(options, must_exist, material);
    if (status == IDEM_EXIT_OK && sends) {
        status = idem_send_credential_read(options, material);
    }
    if (status == IDEM_EXIT_OK && sends) {
        status = idem_send_request_make(options, material, &request);
    }
    return status == IDEM_EXIT_OK ? way_run(options, material, &request) : status;
}

enum idem_exit idem_cli_send(int argc, char **argv)
{
    struct idem_send_options options;
    descriptors_take();
    enum idem_exit status = idem_send_options_read(argc, argv, &options);
    if (status != IDEM_EXIT_OK) {
        return status;
    }
    if (options.given[IDEM_SEND_HELP] != NULL) {
        return idem_send_help();
    }
    struct idem_send_material *material = calloc(1, sizeof(*material));
    if (material == NULL) {
        (void)idem_send_refuse("There is no memory");
        return IDEM_EXIT_OTHER;
    }
    status = material_run(&options, material);
    idem_send_material_clear(material);
    free(material);
    return status;
}
