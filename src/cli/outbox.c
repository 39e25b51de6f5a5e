/*
 * idem outbox: what merchants were told, what is still on its way, and what was given up.
 *
 * A replay makes a delivery pending again and no more: whoever gets the message a second time
 * knows it by its id.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/pages.h"
#include "cli/table.h"
#include "core/webhook.h"

#define PATH_LEN 512
#define ID_MAX   64

static const char help[] =
    "usage: idem outbox [list] [--state STATE] [--webhook ID] [--principal NAME] [OPTION...]\n"
    "       idem outbox replay --message ID --webhook ID [OPTION...]\n"
    "       idem outbox replay --dead --webhook ID [OPTION...]\n"
    "\n"
    "What merchants are told: each message on its way to each webhook. A dead one was given up;\n"
    "replay delivers it again, with the same id and the same words.\n"
    "\n"
    "      --state STATE           pending, delivered or dead; none: all\n"
    "      --webhook ID            of this webhook\n"
    "      --principal NAME        of this account\n"
    "      --message ID            this one\n"
    "      --dead                  every dead one of the webhook\n" IDEM_SESSION_HELP;

enum {
    OPTION_STATE = IDEM_OPTION_OWN,
    OPTION_WEBHOOK,
    OPTION_PRINCIPAL,
    OPTION_MESSAGE,
    OPTION_DEAD
};

static void delivery_add(struct idem_table_view *table, const struct idem_json *json, size_t entry)
{
    idem_table_row(table);
    idem_table_add_member(table, json, entry, "message");
    idem_table_add_member(table, json, entry, "type");
    idem_table_add_member(table, json, entry, "state");
    idem_table_add_age(table, json, entry, "created");
    idem_table_add_member(table, json, entry, "principal");
    idem_table_add_member(table, json, entry, "webhook");
    idem_table_add_member(table, json, entry, "sequence");
    idem_table_add_member(table, json, entry, "attempts");
    idem_table_add_age(table, json, entry, "due");
    idem_table_add_age(table, json, entry, "finished");
    idem_table_add_member(table, json, entry, "last_status");
    idem_table_add_member(table, json, entry, "last_error");
}

static const char *const columns[] = { "MESSAGE",  "TYPE",     "STATE", "SINCE", "PRINCIPAL",
                                       "WEBHOOK",  "SEQUENCE", "TRIED", "NEXT",  "ENDED",
                                       "ANSWERED", "ERROR",    NULL };

static const struct idem_pages_view view = { "deliveries", columns, delivery_add };

static enum idem_exit list_run(struct idem_session *session, const struct idem_arguments *arguments)
{
    const char *state = idem_arguments_own(arguments, OPTION_STATE);
    const char *webhook = idem_arguments_own(arguments, OPTION_WEBHOOK);
    bool is_state =
        state == NULL || idem_delivery_state_from(idem_str_from(state)) != IDEM_DELIVERY_NONE;
    if (arguments->word != NULL || !is_state) {
        (void)fprintf(stderr, "idem outbox: there is no %s '%s'\n\n%s", is_state ? "verb" : "state",
                      is_state ? arguments->word : state, help);
        return IDEM_EXIT_USAGE;
    }
    if (webhook != NULL && !idem_arguments_id(webhook)) {
        return IDEM_EXIT_USAGE;
    }
    char memory[PATH_LEN];
    struct idem_buf path;
    idem_buf_init(&path, memory, sizeof(memory));
    idem_buf_add(&path, IDEM_STR("/v1/admin/deliveries"));
    idem_path_member(&path, "state", state);
    idem_path_member(&path, "webhook", webhook);
    idem_path_member(&path, "principal", idem_arguments_own(arguments, OPTION_PRINCIPAL));
    return idem_path_end(&path) ? idem_pages_print(session, memory, &view) : IDEM_EXIT_USAGE;
}

/* `webhook`: an id. */
static enum idem_exit replay_one(struct idem_session *session,
                                 const char *message,
                                 const void *webhook)
{
    char memory[IDEM_SESSION_BODY];
    struct idem_buf body;
    idem_buf_init(&body, memory, sizeof(memory));
    message += strncmp(message, "msg_", 4) == 0 ? 4 : 0; /* As its receiver knows it. */
    idem_buf_printf(&body, "{\"webhook\":\"%s\"}", (const char *)webhook); /* It fits. */
    enum idem_exit status = idem_command_post(session, "messages", message, "replay", &body);
    return status == IDEM_EXIT_OK ? idem_command_said(session, message, "pending") : status;
}

static enum idem_exit replay_run(struct idem_session *session,
                                 const struct idem_arguments *arguments)
{
    const char *message = idem_arguments_own(arguments, OPTION_MESSAGE);
    bool is_dead = idem_arguments_own(arguments, OPTION_DEAD) != NULL;
    char webhook[ID_MAX];
    if (arguments->word != NULL || is_dead == (message != NULL)) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    if (!idem_arguments_id(idem_arguments_own(arguments, OPTION_WEBHOOK))) {
        return IDEM_EXIT_USAGE;
    }
    (void)snprintf(webhook, sizeof(webhook), "%s", idem_arguments_own(arguments, OPTION_WEBHOOK));
    if (!is_dead) {
        return replay_one(session, message, webhook);
    }
    char memory[PATH_LEN];
    struct idem_buf path;
    idem_buf_init(&path, memory, sizeof(memory));
    idem_buf_add(&path, IDEM_STR("/v1/admin/deliveries"));
    idem_path_member(&path, "state", "dead");
    idem_path_member(&path, "webhook", webhook);
    const struct idem_pages_act act = { "deliveries", "message", replay_one, webhook };
    return idem_path_end(&path) ? idem_pages_each(session, memory, &act) : IDEM_EXIT_USAGE;
}

enum idem_exit idem_cli_outbox(int argc, char **argv)
{
    static const struct option list_options[] = {
        { "state", required_argument, NULL, OPTION_STATE },
        { "webhook", required_argument, NULL, OPTION_WEBHOOK },
        { "principal", required_argument, NULL, OPTION_PRINCIPAL },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct option replay_options[] = {
        { "message", required_argument, NULL, OPTION_MESSAGE },
        { "webhook", required_argument, NULL, OPTION_WEBHOOK },
        { "dead", no_argument, NULL, OPTION_DEAD },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct idem_command_verb verbs[] = {
        { "list", { list_options, help, list_run } },
        { "replay", { replay_options, help, replay_run } },
        { NULL, { NULL, NULL, NULL } },
    };
    static const struct idem_command_verbs outbox = { verbs, help, true };
    return idem_command_verbs_run(argc, argv, &outbox);
}
