/*
 * idem list, show, resolve, erase: what is in flight, unknown or in front of a person, and what a
 * person does about it. Nothing is decided here: the service decides, and its words are shown.
 */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/bug.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/evidence.h"
#include "cli/operation_view.h"
#include "cli/pages.h"
#include "cli/table.h"

#define PATH_MAX_LEN 256

static const char list_help[] =
    "usage: idem list [--state STATE] [OPTION...]\n"
    "\n"
    "What is not final: since when, why, and what happens next.\n"
    "\n"
    "      --state STATE           open (default), processing, unknown, parked, released, or\n"
    "                              cases: whatever has an open case\n" IDEM_SESSION_HELP;

static const char show_help[] =
    "usage: idem show OPERATION-ID [OPTION...]\n"
    "       idem show --payment PAYMENT-ID [OPTION...]\n"
    "\n"
    "One operation with its attempts, its timeline and its cases; or every operation of a\n"
    "payment.\n"
    "\n"
    "      --payment ID            list the payment's operations\n" IDEM_SESSION_HELP;

static const char resolve_help[] =
    "usage: idem resolve OPERATION-ID --verdict VERDICT --reason TEXT [OPTION...]\n"
    "\n"
    "A person's evidence about an operation whose outcome is not known. It is kept with who said\n"
    "it.\n"
    "\n" IDEM_EVIDENCE_HELP IDEM_SESSION_HELP;

static const char erase_help[] =
    "usage: idem erase OPERATION-ID --reason TEXT [OPTION...]\n"
    "       idem erase --payment PAYMENT-ID --reason TEXT [OPTION...]\n"
    "\n"
    "Forgets stored answers and what a payment was described with, before retention does. Keys\n"
    "stay taken. Refused while a retry may still come.\n"
    "\n"
    "      --payment ID            every operation of the payment\n"
    "      --reason TEXT           why; kept; at most 255 bytes\n" IDEM_SESSION_HELP;

enum {
    OPTION_STATE = IDEM_OPTION_OWN,
    OPTION_PAYMENT,
    OPTION_REASON
};

static void entry_add(struct idem_table_view *table, const struct idem_json *json, size_t entry)
{
    idem_table_row(table);
    idem_table_add_member(table, json, entry, "id");
    idem_table_add_member(table, json, entry, "state");
    idem_table_add_age(table, json, entry, "created");
    idem_table_add_member(table, json, entry, "principal");
    idem_table_add_member(table, json, entry, "endpoint");
    idem_operation_view_money(table, json, entry);
    idem_table_add_member(table, json, entry, "provider");
    idem_table_add_member(table, json, entry, "sends");
    idem_operation_view_next(table, json, entry);
    idem_table_add_member(table, json, entry, "why");
}

static const char *const columns[] = { "OPERATION", "STATE", "SINCE",    "PRINCIPAL",
                                       "ENDPOINT",  "MONEY", "PROVIDER", "SENDS",
                                       "NEXT",      "WHEN",  "WHY",      NULL };

static const struct idem_pages_view view = { "operations", columns, entry_add };

static enum idem_exit list_run(struct idem_session *session, const struct idem_arguments *arguments)
{
    static const char *const states[] = { "open",   "processing", "unknown",
                                          "parked", "released",   "cases" };
    const char *state = idem_arguments_own(arguments, OPTION_STATE) != NULL
                            ? idem_arguments_own(arguments, OPTION_STATE)
                            : "open";
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(states); i++) {
        if (strcmp(state, states[i]) == 0 && arguments->word == NULL) {
            char path[PATH_MAX_LEN];
            (void)snprintf(path, sizeof(path), "/v1/admin/operations?state=%s", state); /* Fits. */
            return idem_pages_print(session, path, &view);
        }
    }
    (void)fprintf(stderr, "idem list: there is no state '%s'\n\n%s",
                  arguments->word != NULL ? arguments->word : state, list_help);
    return IDEM_EXIT_USAGE;
}

static enum idem_exit payment_list(struct idem_session *session, const char *payment)
{
    char path[PATH_MAX_LEN];
    if (!idem_arguments_id(payment)) {
        return IDEM_EXIT_USAGE;
    }
    (void)snprintf(path, sizeof(path), "/v1/admin/payments/%s/operations", payment); /* Fits. */
    return idem_pages_print(session, path, &view);
}

static enum idem_exit show_run(struct idem_session *session, const struct idem_arguments *arguments)
{
    const char *payment = idem_arguments_own(arguments, OPTION_PAYMENT);
    if ((payment == NULL) == (arguments->word == NULL)) {
        (void)fputs(show_help, stderr);
        return IDEM_EXIT_USAGE;
    }
    if (payment != NULL) {
        return payment_list(session, payment);
    }
    if (!idem_arguments_id(arguments->word)) {
        return IDEM_EXIT_USAGE;
    }
    char path[PATH_MAX_LEN];
    (void)snprintf(path, sizeof(path), "/v1/admin/operations/%s", arguments->word); /* It fits. */
    enum idem_exit status = idem_session_ask(session, "GET", path, IDEM_STR(""));
    return status == IDEM_EXIT_OK ? idem_operation_view_print(session) : status;
}

static enum idem_exit resolve_run(struct idem_session *session,
                                  const struct idem_arguments *arguments)
{
    return idem_evidence_resolve(session, arguments, "operations", resolve_help);
}

/* `body`: a struct idem_buf. */
static enum idem_exit erase_one(struct idem_session *session, const char *id, const void *body)
{
    enum idem_exit status = idem_command_post(session, "operations", id, "erase", body);
    return status == IDEM_EXIT_OK ? idem_command_said(session, id, "erased") : status;
}

static enum idem_exit payment_erase(struct idem_session *session,
                                    const char *payment,
                                    struct idem_buf *body)
{
    char path[PATH_MAX_LEN];
    if (!idem_arguments_id(payment)) {
        return IDEM_EXIT_USAGE;
    }
    (void)snprintf(path, sizeof(path), "/v1/admin/payments/%s/operations", payment); /* Fits. */
    const struct idem_pages_act act = { "operations", "id", erase_one, body };
    return idem_pages_each(session, path, &act);
}

static enum idem_exit erase_run(struct idem_session *session,
                                const struct idem_arguments *arguments)
{
    const char *payment = idem_arguments_own(arguments, OPTION_PAYMENT);
    const char *reason = idem_arguments_own(arguments, OPTION_REASON);
    if ((payment == NULL) == (arguments->word == NULL) || reason == NULL) {
        (void)fputs(erase_help, stderr);
        return IDEM_EXIT_USAGE;
    }
    char memory[IDEM_SESSION_BODY];
    struct idem_buf body;
    idem_buf_init(&body, memory, sizeof(memory));
    idem_buf_add_char(&body, '{');
    if (!idem_body_member(&body, "reason", reason)) {
        return IDEM_EXIT_USAGE;
    }
    idem_buf_add_char(&body, '}');
    return payment == NULL ? erase_one(session, arguments->word, &body)
                           : payment_erase(session, payment, &body);
}

enum idem_exit idem_cli_list(int argc, char **argv)
{
    static const struct option options[] = {
        { "state", required_argument, NULL, OPTION_STATE },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct idem_command_line line = { options, list_help, list_run };
    return idem_command_line_run(argc, argv, &line);
}

enum idem_exit idem_cli_show(int argc, char **argv)
{
    static const struct option options[] = {
        { "payment", required_argument, NULL, OPTION_PAYMENT },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct idem_command_line line = { options, show_help, show_run };
    return idem_command_line_run(argc, argv, &line);
}

enum idem_exit idem_cli_resolve(int argc, char **argv)
{
    static const struct option options[] = {
        IDEM_EVIDENCE_OPTIONS,
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct idem_command_line line = { options, resolve_help, resolve_run };
    return idem_command_line_run(argc, argv, &line);
}

enum idem_exit idem_cli_erase(int argc, char **argv)
{
    static const struct option options[] = {
        { "payment", required_argument, NULL, OPTION_PAYMENT },
        { "reason", required_argument, NULL, OPTION_REASON },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct idem_command_line line = { options, erase_help, erase_run };
    return idem_command_line_run(argc, argv, &line);
}
