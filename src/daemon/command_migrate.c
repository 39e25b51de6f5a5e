/*
 * idem migrate: brings a store to the schema version of this program.
 *
 * Explicit and never part of serving: it cannot be undone, so somebody makes a backup first. For a
 * file it takes the locks of serving, so it is refused while the store is served; a database says
 * itself whether its instances may go on (store/postgres/migrate.h). Running it again is safe at
 * any time.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "cli/output.h"
#include "daemon/commands.h"
#include "daemon/config.h"
#include "daemon/parts.h"
#include "store/postgres/migrate.h"
#include "store/sqlite/migrate.h"

static const char help[] =
    "usage: idem migrate --store STORE\n"
    "       idem migrate --config FILE\n"
    "\n"
    "Brings a store that an older idem wrote to the form that this one serves. Make a backup\n"
    "first (idem backup, pg_dump): there is no way back. A file must not be served meanwhile; the\n"
    "instances of a database may go on unless it says otherwise. Running it again is safe.\n"
    "\n"
    "  -s, --store STORE  the store: sqlite:PATH, or postgres://... without a password\n"
    "  -c, --config FILE  the store that this configuration names\n"
    "  -h, --help         this text\n"
    "\n"
    "Exit status: 0 done, or nothing to do; 2 command line; 3 configuration; 4 it cannot be done,\n"
    "and the store is as it was unless the message says otherwise.\n";

#define MIGRATED "the store is one of this version"

struct options {
    const char *store;
    const char *config;
    bool help;
};

static bool options_parse(int argc, char **argv, struct options *ret_options)
{
    static const struct option long_options[] = {
        { "store", required_argument, NULL, 's' },
        { "config", required_argument, NULL, 'c' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct options options = { .store = NULL };
    int letter;
    while ((letter = getopt_long(argc, argv, "s:c:h", long_options, NULL)) != -1) {
        if (letter == 's') {
            options.store = optarg;
        } else if (letter == 'c') {
            options.config = optarg;
        } else if (letter == 'h') {
            options.help = true;
        } else {
            return false;
        }
    }
    *ret_options = options;
    bool one_source = (options.store != NULL) != (options.config != NULL);
    return optind == argc && (options.help || one_source);
}

static void say(void *context, const char *line)
{
    (void)context;
    (void)printf("%s\n", line); /* For a person; who does not listen has chosen so. */
    (void)fflush(stdout);
}

/* SQLite's temporary copy belongs beside the store, where the room was measured. */
static bool temporary_place(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return setenv("SQLITE_TMPDIR", ".", 1) == 0;
    }
    char *directory = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    bool set = directory != NULL && setenv("SQLITE_TMPDIR", directory, 1) == 0;
    free(directory);
    return set;
}

static bool outcome_print(const struct idem_config *config, int64_t from, int64_t to)
{
    if (from < to) {
        return printf("migrated %s from schema version %lld to %lld\n", config->store_label,
                      (long long)from, (long long)to) > 0;
    }
    return printf("%s has schema version %lld already; nothing to do\n", config->store_label,
                  (long long)to) > 0;
}

static enum idem_exit file_migrate(const struct idem_config *config, struct idem_error *reterr)
{
    const struct idem_sqlite_listener listener = { .say = say };
    struct idem_sqlite_migrated migrated;
    if (!temporary_place(config->store_path)) {
        (void)idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
        return IDEM_EXIT_START;
    }
    if (idem_sqlite_migrate(config->store_path, &listener, &migrated, reterr) != IDEM_OK) {
        return IDEM_EXIT_START;
    }
    bool printed = true;
    if (migrated.from < migrated.to || !migrated.rewritten) {
        printed = outcome_print(config, migrated.from, migrated.to);
    }
    if (migrated.rewritten && printed) {
        printed = puts("the file was rewritten") >= 0;
    }
    return idem_output_end(printed ? IDEM_EXIT_OK : IDEM_EXIT_OTHER, MIGRATED);
}

static enum idem_exit database_migrate(const struct idem_config *config, struct idem_error *reterr)
{
    const struct idem_postgres_settings settings = idem_config_database(config);
    struct idem_postgres_migrated migrated;
    if (idem_postgres_migrate(&settings, &migrated, reterr) != IDEM_OK) {
        return IDEM_EXIT_START;
    }
    bool printed = outcome_print(config, migrated.from, migrated.to);
    return idem_output_end(printed ? IDEM_EXIT_OK : IDEM_EXIT_OTHER, MIGRATED);
}

/* The store alone: what else a configuration says is for serving. */
static enum idem_exit migrate(struct idem_config *config,
                              const struct options *options,
                              struct idem_error *reterr)
{
    enum idem_err err = IDEM_OK;
    if (options->config != NULL) {
        err = idem_config_read(config, options->config, reterr);
    } else {
        config->store = options->store;
        config->store_is_argument = true;
    }
    if (err == IDEM_OK) {
        err = idem_config_store_check(config, reterr);
    }
    if (err != IDEM_OK) {
        return options->config != NULL ? IDEM_EXIT_CONFIG : IDEM_EXIT_USAGE;
    }
    switch (config->store_kind) {
    case IDEM_CONFIG_SQLITE:
        return file_migrate(config, reterr);
    case IDEM_CONFIG_POSTGRES:
        return database_migrate(config, reterr);
    }
    IDEM_UNREACHABLE();
}

enum idem_exit idem_command_migrate(int argc, char **argv)
{
    struct options options;
    if (!options_parse(argc, argv, &options)) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    if (options.help) {
        return fputs(help, stdout) < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
    }
    struct idem_error error = { .text = "" };
    struct idem_config *config = NULL;
    enum idem_exit status = IDEM_EXIT_START;
    if (idem_config_create(&config, &error) == IDEM_OK) {
        status = migrate(config, &options, &error);
    }
    if (error.text[0] != '\0') {
        (void)fprintf(stderr, "idem migrate: %s\n", error.text);
    }
    idem_config_destroy(config);
    return status;
}
