/*
 * What a request of `idem send` is made of: where its journal is, who asks, and its bytes.
 *
 * The body is read as a whole before anything is opened: it is part of what the journal keeps, and
 * half a body must not become a payment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/uid.h"
#include "cli/header_line.h"
#include "cli/send_internal.h"

#define JOURNAL_NAME "send.db"

/* Makes every directory in front of the file's name that is not there yet, for its owner alone. */
static enum idem_exit directories_make(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int rc = mkdir(path, S_IRWXU);
        int problem = errno;
        if (rc != 0 && problem != EEXIST) {
            (void)idem_send_refuse("%s: %s", path, strerror(problem));
            *slash = '/';
            return IDEM_EXIT_OTHER;
        }
        *slash = '/';
    }
    return IDEM_EXIT_OK;
}

/* Where the journal is if nobody says: below the user's state directory. */
static enum idem_exit journal_default(struct idem_send_material *material)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    bool stated = state != NULL && state[0] == '/'; /* The convention ignores a relative one. */
    if (!stated && (home == NULL || home[0] != '/')) {
        return idem_send_refuse("where is the journal? HOME is not set: give --journal PATH");
    }
    int len = snprintf(material->journal, sizeof(material->journal), "%s%s/idem/" JOURNAL_NAME,
                       stated ? state : home, stated ? "" : "/.local/state");
    if (len < 0 || len >= (int)sizeof(material->journal)) {
        return idem_send_refuse("the path of the home directory is too long");
    }
    return IDEM_EXIT_OK;
}

/*
 * A folder that somebody has named is not made: where it is missing, a disk may be missing, and in
 * a journal that begins anew every name is a new action.
 */
static enum idem_exit directory_check(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) {
        return IDEM_EXIT_OK;
    }
    char directory[IDEM_SEND_PATH_MAX];
    size_t len = (size_t)(slash - path);
    IDEM_ASSERT(len < sizeof(directory));
    memcpy(directory, path, len);
    directory[len] = '\0';
    struct stat status;
    if (stat(directory, &status) == 0) {
        return IDEM_EXIT_OK;
    }
    (void)idem_send_refuse(
        "the journal's folder %s: %s. If no journal was ever there, make it: mkdir -m 700; if one "
        "was, bring it back first",
        directory, strerror(errno));
    return IDEM_EXIT_OTHER;
}

enum idem_exit idem_send_journal_find(const struct idem_send_options *options,
                                      bool must_exist,
                                      struct idem_send_material *material)
{
    const char *path = options->given[IDEM_SEND_JOURNAL];
    if (path == NULL) {
        path = getenv("IDEM_JOURNAL");
    }
    bool named = path != NULL && path[0] != '\0';
    if (named) {
        size_t len = strlen(path);
        if (len >= sizeof(material->journal)) {
            return idem_send_refuse("the path of the journal is too long");
        }
        memcpy(material->journal, path, len + 1);
    } else if (journal_default(material) != IDEM_EXIT_OK) {
        return IDEM_EXIT_USAGE;
    }
    struct stat status;
    if (must_exist && stat(material->journal, &status) != 0) {
        (void)idem_send_refuse("%s: %s: there is no journal here", material->journal,
                               strerror(errno));
        return IDEM_EXIT_OTHER;
    }
    if (must_exist) {
        return IDEM_EXIT_OK;
    }
    return named ? directory_check(material->journal) : directories_make(material->journal);
}

enum idem_exit idem_send_credential_read(const struct idem_send_options *options,
                                         struct idem_send_material *material)
{
    const char *file = options->given[IDEM_SEND_CREDENTIAL_FILE];
    const char *header = options->given[IDEM_SEND_CREDENTIAL_HEADER];
    const char *variable =
        file == NULL && getenv("IDEM_CREDENTIAL") != NULL ? "IDEM_CREDENTIAL" : NULL;
    if (file == NULL && variable == NULL) {
        return header == NULL ? IDEM_EXIT_OK
                              : idem_send_refuse(
                                    "--credential-header needs --credential-file or "
                                    "the variable IDEM_CREDENTIAL");
    }
    struct idem_error error;
    if (idem_secret_word(file, variable, material->secret, &error) != IDEM_OK) {
        return idem_send_refuse("%s", error.text);
    }
    int len =
        snprintf(material->credential, sizeof(material->credential), "%s%s",
                 header != NULL ? header : "Authorization", header != NULL ? ": " : ": Bearer ");
    size_t size = strlen(material->secret) + 1;
    if (len < 0 || (size_t)len > sizeof(material->credential) - size) {
        return idem_send_refuse("the name of the credential's header is too long");
    }
    memcpy(material->credential + len, material->secret, size);
    return IDEM_EXIT_OK;
}

/* Reads `file` to its end, into memory that is the material's. */
static enum idem_exit body_read(FILE *file,
                                const char *path,
                                struct idem_send_material *material,
                                size_t *ret_size)
{
    material->body = malloc(IDEM_CLIENT_BODY_MAX + 1);
    if (material->body == NULL) {
        (void)idem_send_refuse("there is no memory for the body");
        return IDEM_EXIT_OTHER;
    }
    size_t size = fread(material->body, 1, IDEM_CLIENT_BODY_MAX + 1, file);
    if (ferror(file) != 0) {
        return idem_send_refuse("%s: %s", path, strerror(errno));
    }
    if (size > IDEM_CLIENT_BODY_MAX) {
        return idem_send_refuse("%s: a body has at most %d bytes", path, IDEM_CLIENT_BODY_MAX);
    }
    *ret_size = size;
    return IDEM_EXIT_OK;
}

static enum idem_exit body_make(const struct idem_send_options *options,
                                struct idem_send_material *material,
                                struct idem_client_request *request)
{
    const char *data = options->given[IDEM_SEND_DATA];
    if (data == NULL) {
        return IDEM_EXIT_OK;
    }
    if (data[0] != '@') {
        request->body = data;
        request->body_size = strlen(data);
        return IDEM_EXIT_OK;
    }
    enum idem_exit status = IDEM_EXIT_OK;
    size_t size = 0;
    if (strcmp(data, "@-") == 0) {
        status = body_read(stdin, "standard input", material, &size);
    } else {
        FILE *file = fopen(data + 1, "rbe");
        if (file == NULL) {
            return idem_send_refuse("%s: %s", data + 1, strerror(errno));
        }
        status = body_read(file, data + 1, material, &size);
        (void)fclose(file); /* It was only read. */
    }
    request->body = material->body;
    request->body_size = size;
    return status;
}

/* What a body is taken for in this dialect. */
static const char *content_type(const char *dialect)
{
    if (dialect != NULL && strcmp(dialect, "stripe") == 0) {
        return "Content-Type: application/x-www-form-urlencoded";
    }
    return "Content-Type: application/json";
}

static bool has_content_type(const struct idem_send_options *options)
{
    for (size_t i = 0; i < options->header_count; i++) {
        struct idem_str name = idem_header_name(idem_str_from(options->headers[i]));
        if (idem_str_equal_nocase(name, IDEM_STR("Content-Type"))) {
            return true;
        }
    }
    return false;
}

static void headers_make(const struct idem_send_options *options,
                         struct idem_send_material *material,
                         struct idem_client_request *request)
{
    size_t count = options->header_count;
    memcpy(material->headers, options->headers, count * sizeof(options->headers[0]));
    if (request->body_size > 0 && !has_content_type(options)) {
        material->headers[count] = content_type(options->given[IDEM_SEND_DIALECT]);
        count += 1;
    }
    request->headers = material->headers;
    request->header_count = count;
}

/* A name for what nobody gave one: it can be gone on with, but not be said again by heart. */
static void name_make(struct idem_send_material *material)
{
    struct idem_buf buf;
    idem_buf_init(&buf, material->name, sizeof(material->name) - 1);
    idem_buf_add(&buf, IDEM_STR("send-"));
    idem_uid_print(idem_uid_make_now(), &buf);
    IDEM_ASSERT(!buf.full);
    material->name[buf.len] = '\0';
}

enum idem_exit idem_send_request_make(const struct idem_send_options *options,
                                      struct idem_send_material *material,
                                      struct idem_client_request *ret_request)
{
    const char *const *given = options->given;
    if (given[IDEM_SEND_INTENT] == NULL) {
        name_make(material);
    }
    *ret_request = (struct idem_client_request){
        .size = sizeof(*ret_request),
        .name = given[IDEM_SEND_INTENT] != NULL ? given[IDEM_SEND_INTENT] : material->name,
        .method = options->method,
        .url = options->url,
        .dialect = given[IDEM_SEND_DIALECT],
        .key = given[IDEM_SEND_KEY],
        .credential = material->credential[0] != '\0' ? material->credential : NULL,
        .status_url = given[IDEM_SEND_STATUS_URL],
        .deadline_ms = options->deadline_ms,
        .window_ms = options->window_ms,
    };
    enum idem_exit status = body_make(options, material, ret_request);
    if (status == IDEM_EXIT_OK) {
        headers_make(options, material, ret_request);
    }
    return status;
}

void idem_send_material_clear(struct idem_send_material *material)
{
    explicit_bzero(material->secret, sizeof(material->secret));
    explicit_bzero(material->credential, sizeof(material->credential));
    free(material->body);
    material->body = NULL;
}
