/*
 * Where the store is: a file, or a database by its URL.
 *
 * A password in a URL is read by more people than a file of passwords: it stands in the list of
 * processes if it was an argument, and in whatever copies a configuration. So it is refused on the
 * command line, and in a file that others than its owner can read. libpq has better places: a
 * passfile, PGPASSFILE, a service file.
 */
#include "daemon/config.h"

#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/text.h"
#include "store/postgres/postgres.h"
#include "store/postgres/url.h"

#define SCHEME       "sqlite:"
#define PATH_LEN_MAX 1024

_Static_assert(sizeof(((struct idem_config *)NULL)->store_label) >= IDEM_POSTGRES_LABEL_MAX &&
                   sizeof(((struct idem_config *)NULL)->store_label) > PATH_LEN_MAX,
               "a label is never cut");

static const char *file_take(struct idem_config *config)
{
    const char *path = config->store + sizeof(SCHEME) - 1;
    if (path[0] == '\0') {
        return "'store' must be \"sqlite:PATH\" or \"postgres://...\"";
    }
    if (strlen(path) > PATH_LEN_MAX) {
        return "the path of 'store' is too long";
    }
    config->store_kind = IDEM_CONFIG_SQLITE;
    config->store_path = path;
    return NULL;
}

/* True if each host of the URL is this machine: a socket in the file system, or a loopback. */
static bool is_here(const struct idem_postgres_url *url)
{
    struct idem_str hosts = idem_str_from(url->hosts);
    bool here = !url->has_service || hosts.len > 0;
    while (hosts.len > 0 && here) {
        char host[64];
        struct idem_str one = idem_str_next(&hosts, ',');
        bool is_socket = one.len == 0 || one.data[0] == '/' || one.data[0] == '@';
        (void)snprintf(host, sizeof(host), "%.*s", (int)one.len, one.data); /* Cut: elsewhere. */
        here = is_socket || strcmp(host, "localhost") == 0 || idem_config_is_loopback(host);
    }
    return here;
}

static const char *password_fault(const struct idem_config *config)
{
    if (config->store_is_argument) {
        return "--store has a password, and everybody can read a command line: leave it out and "
               "name a file that has it: ?passfile=PATH, or PGPASSFILE in the environment";
    }
    if (!config->file_is_private) {
        return "'store' has a password and others can read this file: chmod 600 it, or leave the "
               "password out and name a file that has it: ?passfile=PATH";
    }
    return NULL;
}

static const char *database_take(struct idem_config *config, const struct idem_postgres_url *url)
{
    if (url->has_password && password_fault(config) != NULL) {
        return password_fault(config);
    }
    if (!url->encrypts && !is_here(url) && !config->insecure) {
        return "'store' is another machine and its URL allows a connection without TLS: add "
               "sslmode=verify-full (or verify-ca, require), or set insecure = true";
    }
    if (strchr(url->hosts, ',') != NULL && !url->finds_primary) {
        return "'store' has several hosts and takes any of them, also a standby: add "
               "target_session_attrs=read-write";
    }
    config->store_kind = IDEM_CONFIG_POSTGRES;
    config->store_path = NULL;
    return NULL;
}

static enum idem_err refuse(const struct idem_config *config,
                            const char *what,
                            struct idem_error *reterr)
{
    const char *from = config->store_is_argument ? "command line" : config->file;
    return idem_error_set(reterr, IDEM_E_INVALID, "%s: %s", from, what);
}

enum idem_err idem_config_store_check(struct idem_config *config, struct idem_error *reterr)
{
    if (config->store == NULL) {
        return refuse(config, "'store' is missing: store = \"sqlite:PATH\" or \"postgres://...\"",
                      reterr);
    }
    if (!idem_postgres_url_is(config->store)) {
        bool is_file = strncmp(config->store, SCHEME, sizeof(SCHEME) - 1) == 0;
        const char *fault =
            is_file ? file_take(config) : "'store' must be \"sqlite:PATH\" or \"postgres://...\"";
        if (fault != NULL) {
            return refuse(config, fault, reterr);
        }
        (void)snprintf(config->store_label, sizeof(config->store_label), "%s", config->store_path);
        return IDEM_OK;
    }
    struct idem_postgres_url url;
    struct idem_error error;
    if (idem_postgres_url_read(config->store, &url, &error) != IDEM_OK) {
        return refuse(config, error.text, reterr);
    }
    const char *fault = database_take(config, &url);
    if (fault != NULL) {
        return refuse(config, fault, reterr);
    }
    (void)snprintf(config->store_label, sizeof(config->store_label), "%s", url.label);
    return IDEM_OK;
}

struct idem_postgres_settings idem_config_database(const struct idem_config *config)
{
    IDEM_ASSERT(config->store_kind == IDEM_CONFIG_POSTGRES);
    struct idem_postgres_settings settings = idem_postgres_settings_default(config->store);
    settings.writers = (size_t)config->limits.store_writers;
    settings.readers = (size_t)config->limits.store_readers;
    settings.wait_us = config->timings.store_wait_us;
    settings.silence_us = config->timings.instance_silence_us;
    return settings;
}
