/*
 * idem cases: what a person must look at, and what a person does about it.
 *
 *     list        which there are
 *     show        the operation of one, whole
 *     resolve     a person's evidence; as idem resolve, by the case
 *     compensate  gives back a payment that was made beside the books
 *
 * A compensation is done when the money has been given back and not when it was asked for. Until
 * then the exit status says so, and the same command goes on where the last one stopped.
 */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/evidence.h"
#include "cli/operation_view.h"
#include "cli/pages.h"
#include "cli/table.h"
#include "core/event.h"

#define PATH_LEN 256

static const char help[] =
    "usage: idem cases [list] [--state STATE] [--kind KIND] [OPTION...]\n"
    "       idem cases show CASE-ID [OPTION...]\n"
    "       idem cases resolve CASE-ID --verdict VERDICT --reason TEXT [OPTION...]\n"
    "       idem cases compensate CASE-ID --reason TEXT [OPTION...]\n"
    "\n"
    "What a person must look at: where the provider's word and the record here do not agree, or\n"
    "where nothing that is safe to do is left. compensate gives back, whole, a payment that the\n"
    "provider made and the books have no place for; the same command again goes on with it.\n"
    "\n"
    "      --state STATE           open (default) or all\n"
    "      --kind KIND             mismatch, contradiction, unresolved, no-room, reversed,\n"
    "                              missing or duplicate\n" IDEM_EVIDENCE_HELP IDEM_SESSION_HELP;

enum {
    OPTION_STATE = IDEM_OPTION_OWN,
    OPTION_KIND,
    OPTION_REASON
};

static void case_add(struct idem_table_view *table, const struct idem_json *json, size_t entry)
{
    size_t one = idem_json_member(json, entry, IDEM_STR("case"));
    if (one == 0 || json->tokens[one].kind != IDEM_JSON_OBJECT) {
        return;
    }
    idem_table_row(table);
    idem_table_add_member(table, json, one, "id");
    idem_table_add_member(table, json, one, "kind");
    idem_table_add_age(table, json, one, "opened");
    idem_table_add_age(table, json, one, "decided");
    idem_table_add_member(table, json, entry, "id");
    idem_table_add_member(table, json, entry, "state");
    idem_table_add_member(table, json, entry, "principal");
    idem_table_add_member(table, json, entry, "endpoint");
    idem_operation_view_money(table, json, entry);
    idem_table_add_member(table, json, entry, "provider");
    idem_table_add_member(table, json, one, "detail");
}

static const char *const columns[] = { "CASE",      "KIND",     "OPENED",    "DECIDED",
                                       "OPERATION", "STATE",    "PRINCIPAL", "ENDPOINT",
                                       "MONEY",     "PROVIDER", "DETAIL",    NULL };

static const struct idem_pages_view view = { "cases", columns, case_add };

static bool kind_is_known(const char *kind)
{
    for (int i = IDEM_CASE_NONE + 1; i < IDEM_CASE_KIND_COUNT; i++) {
        if (strcmp(kind, idem_case_kind_name((enum idem_case_kind)i)) == 0) {
            return true;
        }
    }
    (void)fprintf(stderr, "idem cases: there is no kind '%s'\n\n%s", kind, help);
    return false;
}

static enum idem_exit list_run(struct idem_session *session, const struct idem_arguments *arguments)
{
    const char *state = idem_arguments_own(arguments, OPTION_STATE);
    const char *kind = idem_arguments_own(arguments, OPTION_KIND);
    if (arguments->word != NULL ||
        (state != NULL && strcmp(state, "open") != 0 && strcmp(state, "all") != 0)) {
        (void)fprintf(stderr, "idem cases: there is no %s '%s'\n\n%s",
                      arguments->word != NULL ? "verb" : "state",
                      arguments->word != NULL ? arguments->word : state, help);
        return IDEM_EXIT_USAGE;
    }
    if (kind != NULL && !kind_is_known(kind)) {
        return IDEM_EXIT_USAGE;
    }
    char memory[PATH_LEN];
    struct idem_buf path;
    idem_buf_init(&path, memory, sizeof(memory));
    idem_buf_add(&path, IDEM_STR("/v1/admin/cases"));
    idem_path_member(&path, "state", state);
    idem_path_member(&path, "kind", kind);
    return idem_path_end(&path) ? idem_pages_print(session, memory, &view) : IDEM_EXIT_USAGE;
}

static enum idem_exit show_run(struct idem_session *session, const struct idem_arguments *arguments)
{
    char path[PATH_LEN];
    if (!idem_arguments_id(arguments->word)) {
        return IDEM_EXIT_USAGE;
    }
    (void)snprintf(path, sizeof(path), "/v1/admin/cases/%s", arguments->word); /* It fits. */
    enum idem_exit status = idem_session_ask(session, "GET", path, IDEM_STR(""));
    return status == IDEM_EXIT_OK ? idem_operation_view_print(session) : status;
}

static enum idem_exit resolve_run(struct idem_session *session,
                                  const struct idem_arguments *arguments)
{
    return idem_evidence_resolve(session, arguments, "cases", help);
}

static enum idem_exit compensation_print(const struct idem_session *session)
{
    static const char *const names[] = { "endpoint", "state", "operation", "payment" };
    static struct idem_table_view table;
    if (session->json) {
        return idem_session_print_json(session);
    }
    idem_table_begin(&table, NULL);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(names); i++) {
        idem_table_row(&table);
        idem_table_add(&table, idem_str_from(names[i]));
        idem_table_add_member(&table, &session->document, 0, names[i]);
    }
    return idem_table_print(&table);
}

static bool member_is(const struct idem_json *json, struct idem_str name, struct idem_str value)
{
    size_t member = idem_json_member(json, 0, name);
    return member != 0 && idem_str_equal(json->tokens[member].raw, value);
}

static void failure_say(const struct idem_json *json)
{
    if (member_is(json, IDEM_STR("problem"), IDEM_STR("state-conflict"))) {
        (void)fputs(
            "idem: the provider was not asked: the payment's sums had nothing left to give back, "
            "or it was on its way already. Look at the payment\n",
            stderr);
        return;
    }
    (void)fputs(
        "idem: the provider refused: the money has not been given back. idem show and "
        "the operation's id say why\n",
        stderr);
}

/* What was asked for stands there: has the money been given back? */
static enum idem_exit compensation_judge(const struct idem_session *session)
{
    enum idem_exit printed = compensation_print(session);
    const struct idem_json *json = &session->document;
    if (member_is(json, IDEM_STR("state"), IDEM_STR("succeeded"))) {
        return printed;
    }
    if (member_is(json, IDEM_STR("state"), IDEM_STR("failed"))) {
        failure_say(json);
        return IDEM_EXIT_REFUSED;
    }
    (void)fputs(
        "idem: not known yet whether the money has been given back: the same command goes "
        "on with it\n",
        stderr);
    return IDEM_EXIT_UNKNOWN;
}

static enum idem_exit compensate_run(struct idem_session *session,
                                     const struct idem_arguments *arguments)
{
    const char *reason = idem_arguments_own(arguments, OPTION_REASON);
    char memory[IDEM_SESSION_BODY];
    struct idem_buf body;
    idem_buf_init(&body, memory, sizeof(memory));
    if (arguments->word == NULL || reason == NULL) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    idem_buf_add_char(&body, '{');
    if (!idem_body_member(&body, "reason", reason)) {
        return IDEM_EXIT_USAGE;
    }
    idem_buf_add_char(&body, '}');
    enum idem_exit status =
        idem_command_post(session, "cases", arguments->word, "compensate", &body);
    return status == IDEM_EXIT_OK ? compensation_judge(session) : status;
}

enum idem_exit idem_cli_cases(int argc, char **argv)
{
    static const struct option list_options[] = {
        { "state", required_argument, NULL, OPTION_STATE },
        { "kind", required_argument, NULL, OPTION_KIND },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct option show_options[] = { IDEM_SESSION_OPTIONS, { NULL, 0, NULL, 0 } };
    static const struct option resolve_options[] = {
        IDEM_EVIDENCE_OPTIONS,
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct option compensate_options[] = {
        { "reason", required_argument, NULL, OPTION_REASON },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct idem_command_verb verbs[] = {
        { "list", { list_options, help, list_run } },
        { "show", { show_options, help, show_run } },
        { "resolve", { resolve_options, help, resolve_run } },
        { "compensate", { compensate_options, help, compensate_run } },
        { NULL, { NULL, NULL, NULL } },
    };
    static const struct idem_command_verbs cases = { verbs, help, true };
    return idem_command_verbs_run(argc, argv, &cases);
}
