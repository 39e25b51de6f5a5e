/*
 * idem webhook: where a merchant is told what changed.
 *
 * The service derives the secret and shows it to whoever adds or rotates, and again to whoever
 * repeats that. The id is made here, before the first request, and rotate names the generation that
 * it replaces; so a command whose answer got lost is repeated under the same words.
 */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/bug.h"
#include "base/uid.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/pages.h"
#include "cli/table.h"
#include "core/webhook.h"

#define PATH_LEN 512
#define ID_MAX   (IDEM_UID_TEXT_LEN + 1)

static const char help[] =
    "usage: idem webhook add --principal NAME --to URL [--type TYPE...] [--id ID] [OPTION...]\n"
    "       idem webhook list [--principal NAME] [OPTION...]\n"
    "       idem webhook rotate WEBHOOK-ID --generation N [OPTION...]\n"
    "       idem webhook disable WEBHOOK-ID [OPTION...]\n"
    "       idem webhook enable WEBHOOK-ID [OPTION...]\n"
    "       idem webhook test WEBHOOK-ID [OPTION...]\n"
    "\n"
    "Where a merchant is told what changed. add and rotate show the secret that its messages are\n"
    "signed with; no other command does. After rotate both secrets sign for a while.\n"
    "\n"
    "      --principal NAME        the account whose payments it is told of\n"
    "      --to URL                where messages are posted to\n"
    "      --type TYPE             a type of message, such as payment.captured; may be given\n"
    "                              again; none: every one\n"
    "      --id ID                 the webhook's id, a UUID; default: a new one. The same id with\n"
    "                              the same words is the same webhook\n"
    "      --generation N          of the secret that is replaced: see list\n" IDEM_SESSION_HELP;

enum {
    OPTION_PRINCIPAL = IDEM_OPTION_OWN,
    OPTION_TO,
    OPTION_ID,
    OPTION_GENERATION
};

static bool types_add(const struct idem_arguments *arguments, struct idem_buf *body)
{
    if (arguments->many_count == 0) {
        return true;
    }
    idem_buf_add(body, IDEM_STR(",\"types\":["));
    for (size_t i = 0; i < arguments->many_count; i++) {
        struct idem_str type = idem_str_from(arguments->many[i]);
        if (idem_message_type_from(type) == IDEM_MESSAGE_NONE) {
            (void)fprintf(stderr, "idem webhook: there is no type '%s': docs/webhooks.md\n",
                          arguments->many[i]);
            return false;
        }
        idem_buf_add(body, i > 0 ? IDEM_STR(",") : IDEM_STR(""));
        idem_json_add_string(body, type);
    }
    idem_buf_add_char(body, ']');
    return true;
}

static bool body_make(const struct idem_arguments *arguments, struct idem_buf *body)
{
    idem_buf_add_char(body, '{');
    if (!idem_body_member(body, "principal", idem_arguments_own(arguments, OPTION_PRINCIPAL)) ||
        !idem_body_member(body, "url", idem_arguments_own(arguments, OPTION_TO)) ||
        !types_add(arguments, body)) {
        return false;
    }
    idem_buf_add_char(body, '}');
    if (body->full) {
        (void)fputs("idem: that is more text than the service takes\n", stderr);
    }
    return !body->full;
}

static void id_make(char *ret_id)
{
    struct idem_buf buf;
    idem_buf_init(&buf, ret_id, ID_MAX);
    idem_uid_print(idem_uid_make_now(), &buf);
    idem_buf_add_char(&buf, '\0');
    IDEM_ASSERT(!buf.full);
}

/* With its secret, which no other command shows. */
static enum idem_exit secret_show(const struct idem_session *session)
{
    static const char *const names[] = {
        "id", "principal", "url", "types", "generation", "secret"
    };
    static struct idem_table_view table;
    enum idem_exit status = IDEM_EXIT_OK;
    if (session->json) {
        status = idem_session_print_json(session);
    } else {
        idem_table_begin(&table, NULL);
        for (size_t i = 0; i < IDEM_ARRAY_COUNT(names); i++) {
            idem_table_row(&table);
            idem_table_add(&table, idem_str_from(names[i]));
            idem_table_add_member(&table, &session->document, 0, names[i]);
        }
        status = idem_table_print(&table);
        explicit_bzero(table.memory, sizeof(table.memory));
    }
    if (status == IDEM_EXIT_OK && fflush(stdout) != 0) {
        status = IDEM_EXIT_OTHER;
    }
    return status;
}

static enum idem_exit add_run(struct idem_session *session, const struct idem_arguments *arguments)
{
    const char *given = idem_arguments_own(arguments, OPTION_ID);
    if (idem_arguments_own(arguments, OPTION_PRINCIPAL) == NULL ||
        idem_arguments_own(arguments, OPTION_TO) == NULL || arguments->word != NULL) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    char memory[IDEM_SESSION_BODY];
    struct idem_buf body;
    idem_buf_init(&body, memory, sizeof(memory));
    if ((given != NULL && !idem_arguments_id(given)) || !body_make(arguments, &body)) {
        return IDEM_EXIT_USAGE;
    }
    char fresh[ID_MAX];
    char path[PATH_LEN];
    id_make(fresh);
    const char *id = given != NULL ? given : fresh;
    (void)snprintf(path, sizeof(path), "/v1/admin/webhooks/%s", id); /* It fits. */
    enum idem_exit status = idem_session_ask(session, "PUT", path, idem_buf_str(&body));
    bool asked = status == IDEM_EXIT_OK;
    status = asked ? secret_show(session) : status;
    if (status == IDEM_EXIT_UNKNOWN || (asked && status != IDEM_EXIT_OK)) {
        (void)fprintf(stderr,
                      "idem: the same command with --id %s adds no other one, and shows it\n", id);
    }
    return status;
}

static void webhook_add(struct idem_table_view *table, const struct idem_json *json, size_t entry)
{
    idem_table_row(table);
    idem_table_add_member(table, json, entry, "id");
    idem_table_add_member(table, json, entry, "principal");
    idem_table_add_member(table, json, entry, "generation");
    idem_table_add_age(table, json, entry, "created");
    idem_table_add_age(table, json, entry, "rotated");
    idem_table_add_age(table, json, entry, "disabled");
    idem_table_add_member(table, json, entry, "disabled_by");
    idem_table_add_member(table, json, entry, "url");
    idem_table_add_member(table, json, entry, "types");
}

static const char *const columns[] = { "WEBHOOK",  "PRINCIPAL", "GENERATION", "ADDED", "ROTATED",
                                       "DISABLED", "BY",        "URL",        "TYPES", NULL };

static const struct idem_pages_view view = { "webhooks", columns, webhook_add };

static enum idem_exit list_run(struct idem_session *session, const struct idem_arguments *arguments)
{
    if (arguments->word != NULL) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    char memory[PATH_LEN];
    struct idem_buf path;
    idem_buf_init(&path, memory, sizeof(memory));
    idem_buf_add(&path, IDEM_STR("/v1/admin/webhooks"));
    idem_path_member(&path, "principal", idem_arguments_own(arguments, OPTION_PRINCIPAL));
    return idem_path_end(&path) ? idem_pages_print(session, memory, &view) : IDEM_EXIT_USAGE;
}

static enum idem_exit webhook_post(struct idem_session *session,
                                   const char *id,
                                   const char *verb,
                                   const struct idem_buf *body)
{
    if (id == NULL) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    return idem_command_post(session, "webhooks", id, verb, body);
}

static enum idem_exit rotate_run(struct idem_session *session,
                                 const struct idem_arguments *arguments)
{
    const char *generation = idem_arguments_own(arguments, OPTION_GENERATION);
    if (generation == NULL) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    char memory[IDEM_SESSION_BODY];
    struct idem_buf body;
    idem_buf_init(&body, memory, sizeof(memory));
    idem_buf_add_char(&body, '{');
    if (!idem_body_member(&body, "generation", generation)) {
        return IDEM_EXIT_USAGE;
    }
    idem_buf_add_char(&body, '}');
    enum idem_exit status = webhook_post(session, arguments->word, "rotate", &body);
    return status == IDEM_EXIT_OK ? secret_show(session) : status;
}

static enum idem_exit disable_run(struct idem_session *session,
                                  const struct idem_arguments *arguments)
{
    enum idem_exit status = webhook_post(session, arguments->word, "disable", NULL);
    return status == IDEM_EXIT_OK ? idem_command_said(session, arguments->word, "disabled")
                                  : status;
}

static enum idem_exit enable_run(struct idem_session *session,
                                 const struct idem_arguments *arguments)
{
    enum idem_exit status = webhook_post(session, arguments->word, "enable", NULL);
    return status == IDEM_EXIT_OK ? idem_command_said(session, arguments->word, "enabled") : status;
}

static enum idem_exit test_run(struct idem_session *session, const struct idem_arguments *arguments)
{
    enum idem_exit status = webhook_post(session, arguments->word, "test", NULL);
    return status == IDEM_EXIT_OK
               ? idem_command_said(session, arguments->word, "will be told a test message")
               : status;
}

enum idem_exit idem_cli_webhook(int argc, char **argv)
{
    static const struct option add_options[] = {
        { "principal", required_argument, NULL, OPTION_PRINCIPAL },
        { "to", required_argument, NULL, OPTION_TO },
        { "id", required_argument, NULL, OPTION_ID },
        { "type", required_argument, NULL, IDEM_OPTION_MANY },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct option list_options[] = {
        { "principal", required_argument, NULL, OPTION_PRINCIPAL },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct option rotate_options[] = {
        { "generation", required_argument, NULL, OPTION_GENERATION },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct option options[] = { IDEM_SESSION_OPTIONS, { NULL, 0, NULL, 0 } };
    static const struct idem_command_verb verbs[] = {
        { "add", { add_options, help, add_run } },
        { "list", { list_options, help, list_run } },
        { "rotate", { rotate_options, help, rotate_run } },
        { "disable", { options, help, disable_run } },
        { "enable", { options, help, enable_run } },
        { "test", { options, help, test_run } },
        { NULL, { NULL, NULL, NULL } },
    };
    static const struct idem_command_verbs webhook = { verbs, help, false };
    return idem_command_verbs_run(argc, argv, &webhook);
}
