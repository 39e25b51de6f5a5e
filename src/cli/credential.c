/*
 * idem credential: who may call.
 *
 * The secret is made here and shown once; only its digest goes to the service. Id and secret are
 * made before the first request, so that a request whose answer got lost can be repeated: the
 * service takes the same credential twice as one.
 */
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/digest.h"
#include "base/random.h"
#include "base/uid.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/pages.h"
#include "cli/table.h"

#define SECRET_SIZE  32
#define SECRET_MAX   (2 * SECRET_SIZE + 8)
#define PATH_MAX_LEN 128

static const char help[] =
    "usage: idem credential add --principal NAME [OPTION...]\n"
    "       idem credential list [OPTION...]\n"
    "       idem credential revoke CREDENTIAL-ID [OPTION...]\n"
    "\n"
    "add makes a bearer and shows it once. Several credentials may stand for one principal: add\n"
    "the new one, move the callers, revoke the old one; no key is lost. A revoked one is out for\n"
    "ever, for every request from the answer on; it stays listed.\n"
    "\n"
    "      --principal NAME        the account that calls; keys and payments belong to it\n"
    "      --role ROLE             merchant (default) or operator\n"
    "      --provider ENTRY        a provider entry it may pay through; may be given again;\n"
    "                              '*': every one\n"
    "      --label TEXT            what it is for\n" IDEM_SESSION_HELP;

enum {
    OPTION_PRINCIPAL = IDEM_OPTION_OWN,
    OPTION_ROLE,
    OPTION_LABEL
};

/* A new credential's two texts. */
struct fresh {
    char id[40];
    char secret[SECRET_MAX];
    char sha256[2 * IDEM_DIGEST_SIZE + 1];
};

static bool fresh_make(struct fresh *ret_fresh)
{
    struct idem_random random;
    struct idem_digester *digester = NULL;
    struct idem_error error;
    if (idem_digester_create(&digester, &error) != IDEM_OK) {
        (void)fprintf(stderr, "idem: %s\n", error.text);
        return false;
    }
    idem_random_init_system(&random);

    uint8_t bytes[SECRET_SIZE];
    idem_random_fill(&random, bytes, sizeof(bytes));
    struct idem_buf buf;
    idem_buf_init(&buf, ret_fresh->secret, sizeof(ret_fresh->secret) - 1);
    idem_buf_add(&buf, IDEM_STR("idem_"));
    idem_buf_add_hex(&buf, bytes, sizeof(bytes));
    ret_fresh->secret[buf.len] = '\0';
    explicit_bzero(bytes, sizeof(bytes));

    struct idem_digest digest = idem_digest_sha256(digester, idem_buf_str(&buf));
    idem_digester_destroy(digester);
    idem_buf_init(&buf, ret_fresh->sha256, sizeof(ret_fresh->sha256) - 1);
    idem_buf_add_hex(&buf, digest.bytes, sizeof(digest.bytes));
    ret_fresh->sha256[buf.len] = '\0';

    idem_buf_init(&buf, ret_fresh->id, sizeof(ret_fresh->id) - 1);
    idem_uid_print(idem_uid_make_now(), &buf);
    ret_fresh->id[buf.len] = '\0';
    IDEM_ASSERT(!buf.full);
    return true;
}

static bool body_make(const struct idem_arguments *arguments,
                      const struct fresh *fresh,
                      struct idem_buf *body)
{
    const char *role = idem_arguments_own(arguments, OPTION_ROLE);
    idem_buf_add_char(body, '{');
    if (!idem_body_member(body, "principal", idem_arguments_own(arguments, OPTION_PRINCIPAL)) ||
        !idem_body_member(body, "role", role != NULL ? role : "merchant") ||
        !idem_body_member(body, "secret_sha256", fresh->sha256) ||
        !idem_body_member(body, "label", idem_arguments_own(arguments, OPTION_LABEL))) {
        return false;
    }
    idem_buf_add(body, IDEM_STR(",\"providers\":["));
    for (size_t i = 0; i < arguments->many_count; i++) {
        if (!idem_utf8_valid(idem_str_from(arguments->many[i]))) {
            (void)fputs("idem: --provider is not UTF-8\n", stderr);
            return false;
        }
        idem_buf_add(body, i > 0 ? IDEM_STR(",") : IDEM_STR(""));
        idem_json_add_string(body, idem_str_from(arguments->many[i]));
    }
    idem_buf_add(body, IDEM_STR("]}"));
    if (body->full) {
        (void)fputs("idem: that is more text than the service takes\n", stderr);
    }
    return !body->full;
}

/* The one time that the bearer is seen. */
static enum idem_exit fresh_show(const struct idem_session *session,
                                 const struct idem_arguments *arguments,
                                 const struct fresh *fresh)
{
    const char *principal = idem_arguments_own(arguments, OPTION_PRINCIPAL);
    int printed = 0;
    if (session->json) {
        char memory[IDEM_SESSION_BODY];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_json_add_string(&buf, idem_str_from(principal));
        printed = printf("{\"id\":\"%s\",\"principal\":%.*s,\"bearer\":\"%s\"}\n", fresh->id,
                         (int)buf.len, memory, fresh->secret);
    } else {
        printed = printf(
            "credential  %s\nprincipal   %s\nbearer      %s\n\n"
            "The bearer is shown this once; only its SHA-256 is stored.\n",
            fresh->id, principal, fresh->secret);
    }
    if (printed >= 0 && fflush(stdout) == 0) {
        return IDEM_EXIT_OK;
    }
    (void)fprintf(stderr, "idem: the bearer could not be shown: idem credential revoke %s\n",
                  fresh->id);
    return IDEM_EXIT_OTHER;
}

static enum idem_exit add_run(struct idem_session *session, const struct idem_arguments *arguments)
{
    if (idem_arguments_own(arguments, OPTION_PRINCIPAL) == NULL || arguments->word != NULL) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    struct fresh fresh;
    char memory[IDEM_SESSION_BODY];
    struct idem_buf body;
    idem_buf_init(&body, memory, sizeof(memory));
    if (!fresh_make(&fresh)) {
        return IDEM_EXIT_OTHER;
    }
    if (!body_make(arguments, &fresh, &body)) {
        return IDEM_EXIT_USAGE;
    }
    char path[PATH_MAX_LEN];
    (void)snprintf(path, sizeof(path), "/v1/admin/credentials/%s", fresh.id); /* It fits. */
    enum idem_exit status = idem_session_ask(session, "PUT", path, idem_buf_str(&body));
    if (status == IDEM_EXIT_OK) {
        status = fresh_show(session, arguments, &fresh);
    } else if (status == IDEM_EXIT_UNKNOWN) {
        (void)fprintf(stderr,
                      "idem: if it is in `idem credential list`, its id is %s: revoke it.\n",
                      fresh.id);
    }
    explicit_bzero(&fresh, sizeof(fresh));
    return status;
}

static void credential_add_row(struct idem_table_view *table,
                               const struct idem_json *json,
                               size_t entry)
{
    idem_table_row(table);
    idem_table_add_member(table, json, entry, "id");
    idem_table_add_member(table, json, entry, "principal");
    idem_table_add_member(table, json, entry, "role");
    idem_table_add_member(table, json, entry, "providers");
    idem_table_add_age(table, json, entry, "created");
    idem_table_add_age(table, json, entry, "revoked");
    idem_table_add_member(table, json, entry, "source");
    idem_table_add_member(table, json, entry, "label");
}

static const char *const columns[] = { "CREDENTIAL", "PRINCIPAL", "ROLE",  "PROVIDERS", "ADDED",
                                       "REVOKED",    "SOURCE",    "LABEL", NULL };

static const struct idem_pages_view view = { "credentials", columns, credential_add_row };

static enum idem_exit list_run(struct idem_session *session, const struct idem_arguments *arguments)
{
    if (arguments->word != NULL) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    return idem_pages_print(session, "/v1/admin/credentials", &view);
}

static enum idem_exit revoke_run(struct idem_session *session,
                                 const struct idem_arguments *arguments)
{
    if (!idem_arguments_id(arguments->word)) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    char path[PATH_MAX_LEN];
    (void)snprintf(path, sizeof(path), "/v1/admin/credentials/%s", arguments->word); /* It fits. */
    enum idem_exit status = idem_session_ask(session, "DELETE", path, IDEM_STR(""));
    return status == IDEM_EXIT_OK ? idem_command_said(session, arguments->word, "revoked") : status;
}

enum idem_exit idem_cli_credential(int argc, char **argv)
{
    static const struct option add_options[] = {
        { "principal", required_argument, NULL, OPTION_PRINCIPAL },
        { "role", required_argument, NULL, OPTION_ROLE },
        { "label", required_argument, NULL, OPTION_LABEL },
        { "provider", required_argument, NULL, IDEM_OPTION_MANY },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct option options[] = { IDEM_SESSION_OPTIONS, { NULL, 0, NULL, 0 } };
    static const struct idem_command_verb verbs[] = {
        { "add", { add_options, help, add_run } },
        { "list", { options, help, list_run } },
        { "revoke", { options, help, revoke_run } },
        { NULL, { NULL, NULL, NULL } },
    };
    static const struct idem_command_verbs credential = { verbs, help, false };
    return idem_command_verbs_run(argc, argv, &credential);
}
