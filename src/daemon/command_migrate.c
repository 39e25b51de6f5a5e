/*
 * idem migrate: brings a store to the schema version of this program.
 *
 * Explicit and never part of serving: it cannot be undone, so somebody makes a backup first. It
 * takes the locks of serving, so it is refused while the store is served, and running it again is
 * safe at any time.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/commands.h"
#include "store/sqlite/migrate.h"

static const char help[] =
    "usage: idem migrate --store sqlite:PATH\n"
    "\n"
    "Brings a store that an older idem wrote to the form that this one serves. Stop the\n"
    "service and make a backup first (idem backup): there is no way back. Running it again is\n"
    "safe.\n"
    "\n"
    "  -s, --store STORE  the store\n"
    "  -h, --help         this text\n"
    "\n"
    "Exit status: 0 done, or nothing to do; 2 command line; 4 it cannot be done, and the store\n"
    "is as it was unless the message says otherwise.\n";

struct options {
    const char *path;
    bool help;
};

static bool options_parse(int argc, char **argv, struct options *ret_options)
{
    static const struct option long_options[] = {
        { "store", required_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    static const char scheme[] = "sqlite:";
    struct options options = { .path = NULL };
    int letter;
    while ((letter = getopt_long(argc, argv, "s:h", long_options, NULL)) != -1) {
        if (letter == 's' && strncmp(optarg, scheme, sizeof(scheme) - 1) == 0) {
            options.path = optarg + sizeof(scheme) - 1;
        } else if (letter == 'h') {
            options.help = true;
        } else {
            return false;
        }
    }
    *ret_options = options;
    bool named = options.path != NULL && options.path[0] != '\0';
    return optind == argc && (options.help || named);
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
    if (!temporary_place(options.path)) {
        (void)fputs("idem migrate: out of memory\n", stderr);
        return IDEM_EXIT_START;
    }
    const struct idem_sqlite_listener listener = { .say = say };
    struct idem_sqlite_migrated migrated;
    struct idem_error error;
    if (idem_sqlite_migrate(options.path, &listener, &migrated, &error) != IDEM_OK) {
        (void)fprintf(stderr, "idem migrate: %s\n", error.text);
        return IDEM_EXIT_START;
    }
    int printed = 0;
    if (migrated.from < migrated.to) {
        printed = printf("migrated %s from schema version %lld to %lld\n", options.path,
                         (long long)migrated.from, (long long)migrated.to);
    } else if (!migrated.rewritten) {
        printed = printf("%s has schema version %lld already; nothing to do\n", options.path,
                         (long long)migrated.to);
    }
    if (migrated.rewritten && printed >= 0) {
        printed = puts("the file was rewritten");
    }
    return printed < 0 || fflush(stdout) != 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
}
