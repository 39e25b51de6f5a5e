/*
 * idem status: how the service stands, in a dozen lines; and the end of the restored mode.
 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/table.h"

static const char help[] =
    "usage: idem status [--end-restored --reason TEXT] [OPTION...]\n"
    "\n"
    "What is open and since when, how long the truth takes, how large the store is, and whether\n"
    "it is an older copy that is still learning what it has missed.\n"
    "\n"
    "      --end-restored          end the restored mode: it is known that what providers did\n"
    "                              since the copy was made is known here\n"
    "      --reason TEXT           how that is known; kept; at most 255 bytes\n" IDEM_SESSION_HELP;

enum {
    OPTION_END_RESTORED = IDEM_OPTION_OWN,
    OPTION_REASON
};

static void line_add(struct idem_table_view *table,
                     const struct idem_json *json,
                     size_t object,
                     const char *name)
{
    idem_table_row(table);
    idem_table_add(table, idem_str_from(name));
    idem_table_add_member(table, json, object, name);
}

static enum idem_exit summary_print(const struct idem_session *session)
{
    static const char *const states[] = { "processing", "unknown", "parked", "released" };
    static const char *const sizes[] = { "cases_open", "stubs", "store_bytes", "store_free_bytes" };
    static struct idem_table_view table;
    const struct idem_json *json = &session->document;
    size_t operations = idem_json_member(json, 0, IDEM_STR("operations"));
    size_t truth = idem_json_member(json, 0, IDEM_STR("time_to_truth"));
    if (operations == 0 || truth == 0 || json->tokens[operations].kind != IDEM_JSON_OBJECT ||
        json->tokens[truth].kind != IDEM_JSON_OBJECT) {
        (void)fputs("idem: the answer is not one of this version of idem\n", stderr);
        return IDEM_EXIT_OTHER;
    }
    idem_table_begin(&table, NULL);
    for (size_t i = 0; i < 4; i++) {
        line_add(&table, json, operations, states[i]);
    }
    idem_table_row(&table);
    idem_table_add(&table, IDEM_STR("oldest unknown"));
    idem_table_add_age(&table, json, 0, "unknown_since");
    idem_table_row(&table);
    idem_table_add(&table, IDEM_STR("next due"));
    idem_table_add_age(&table, json, 0, "due");
    idem_table_row(&table);
    idem_table_add(&table, IDEM_STR("time to truth, half of it within (s)"));
    idem_table_add_member(&table, json, truth, "p50_s");
    idem_table_row(&table);
    idem_table_add(&table, IDEM_STR("time to truth, 99 of 100 within (s)"));
    idem_table_add_member(&table, json, truth, "p99_s");
    for (size_t i = 0; i < 4; i++) {
        line_add(&table, json, 0, sizes[i]);
    }
    line_add(&table, json, 0, "restored");
    return idem_table_print(&table);
}

static enum idem_exit restored_print(const struct idem_session *session)
{
    static const char *const lines[] = { "restored", "needs_operator", "from",
                                         "begins",   "listed",         "failures" };
    static struct idem_table_view table;
    idem_table_begin(&table, NULL);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        line_add(&table, &session->document, 0, lines[i]);
    }
    return idem_table_print(&table);
}

static enum idem_exit end_run(struct idem_session *session, const char *reason)
{
    char memory[IDEM_SESSION_BODY];
    struct idem_buf body;
    idem_buf_init(&body, memory, sizeof(memory));
    idem_buf_add_char(&body, '{');
    if (reason == NULL || !idem_body_member(&body, "reason", reason)) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    idem_buf_add_char(&body, '}');
    enum idem_exit status =
        idem_session_ask(session, "POST", "/v1/admin/restored/end", idem_buf_str(&body));
    if (status != IDEM_EXIT_OK) {
        return status;
    }
    return session->json ? idem_session_print_json(session) : restored_print(session);
}

static enum idem_exit status_run(struct idem_session *session,
                                 const struct idem_arguments *arguments)
{
    const char *reason = idem_arguments_own(arguments, OPTION_REASON);
    bool ends = idem_arguments_own(arguments, OPTION_END_RESTORED) != NULL;
    if (arguments->word != NULL || (reason != NULL && !ends)) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    if (ends) {
        return end_run(session, reason);
    }
    enum idem_exit status = idem_session_ask(session, "GET", "/v1/admin/summary", IDEM_STR(""));
    if (status == IDEM_EXIT_OK) {
        status = session->json ? idem_session_print_json(session) : summary_print(session);
    }
    if (status == IDEM_EXIT_OK) {
        status = idem_session_ask(session, "GET", "/v1/admin/restored", IDEM_STR(""));
    }
    size_t mode =
        status == IDEM_EXIT_OK ? idem_json_member(&session->document, 0, IDEM_STR("restored")) : 0;
    bool lasts = mode != 0 && session->document.tokens[mode].kind == IDEM_JSON_TRUE;
    if (status != IDEM_EXIT_OK || !lasts) {
        return status;
    }
    return session->json ? idem_session_print_json(session) : restored_print(session);
}

enum idem_exit idem_cli_status(int argc, char **argv)
{
    static const struct option options[] = {
        { "end-restored", no_argument, NULL, OPTION_END_RESTORED },
        { "reason", required_argument, NULL, OPTION_REASON },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct idem_command_line line = { options, help, status_run };
    return idem_command_line_run(argc, argv, &line);
}
