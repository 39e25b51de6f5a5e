/*
 * idem serve: command line and configuration first, then the service.
 *
 * Nothing is opened before the whole configuration was accepted, so that a mistake in it never
 * leaves a half-made store behind. A flag wins over the file.
 */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/commands.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/service.h"

static const char help[] =
    "usage: idem serve --config FILE [OPTION...]\n"
    "       idem serve --demo [OPTION...]\n"
    "\n"
    "  -c, --config FILE          what to serve; docs/configuration.md explains every setting\n"
    "      --demo                 a configuration to play with: bearer demo-secret, providers at\n"
    "                             `idem sandbox`, store in build/demo, only on this machine\n"
    "  -l, --listen ADDRESS:PORT  instead of the setting\n"
    "  -s, --store STORE          instead of the setting: sqlite:PATH, or postgres://... without\n"
    "                             a password\n"
    "      --insecure             allow a listen address that others can reach, without TLS\n"
    "      --new-store            once, if a store is gone and meant to begin empty: retries of\n"
    "                             what the former store recorded would pay again\n"
    "      --restored             the store is an older copy: nothing is sent and nothing new is\n"
    "                             taken until what it has missed is known again\n"
    "      --check                say whether the configuration can be used, and stop\n"
    "  -h, --help                 this text\n"
    "\n"
    "TERM or INT stops it: what is in flight is finished first; a second signal hurries. HUP\n"
    "reads the configuration again: credentials and limits per principal change at once, the\n"
    "rest at a restart.\n";

struct options {
    const char *config;
    const char *listen;
    const char *store;
    bool demo;
    bool insecure;
    bool new_store;
    bool restored;
    bool check;
    bool help;
};

enum {
    OPTION_DEMO = 256,
    OPTION_INSECURE,
    OPTION_NEW_STORE,
    OPTION_RESTORED,
    OPTION_CHECK
};

static const struct option long_options[] = {
    { "config", required_argument, NULL, 'c' },
    { "demo", no_argument, NULL, OPTION_DEMO },
    { "listen", required_argument, NULL, 'l' },
    { "store", required_argument, NULL, 's' },
    { "insecure", no_argument, NULL, OPTION_INSECURE },
    { "new-store", no_argument, NULL, OPTION_NEW_STORE },
    { "restored", no_argument, NULL, OPTION_RESTORED },
    { "check", no_argument, NULL, OPTION_CHECK },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static bool option_take(struct options *options, int letter)
{
    switch (letter) {
    case 'c':
        options->config = optarg;
        return true;
    case 'l':
        options->listen = optarg;
        return true;
    case 's':
        options->store = optarg;
        return true;
    case OPTION_DEMO:
        options->demo = true;
        return true;
    case OPTION_INSECURE:
        options->insecure = true;
        return true;
    case OPTION_NEW_STORE:
        options->new_store = true;
        return true;
    case OPTION_RESTORED:
        options->restored = true;
        return true;
    case OPTION_CHECK:
        options->check = true;
        return true;
    case 'h':
        options->help = true;
        return true;
    default: /* Not an enum: getopt has said what is wrong. */
        return false;
    }
}

static bool options_parse(int argc, char **argv, struct options *ret_options)
{
    struct options options = { .config = NULL };
    int letter;
    while ((letter = getopt_long(argc, argv, "c:l:s:h", long_options, NULL)) != -1) {
        if (!option_take(&options, letter)) {
            return false;
        }
    }
    bool one_source = options.demo != (options.config != NULL);
    if (optind != argc || (!one_source && !options.help)) {
        (void)fputs("idem serve: give either --config FILE or --demo, and nothing else\n", stderr);
        return false;
    }
    *ret_options = options;
    return true;
}

static enum idem_err config_load(struct idem_config *config,
                                 const struct options *options,
                                 struct idem_error *reterr)
{
    enum idem_err err = options->demo ? idem_config_demo(config, reterr)
                                      : idem_config_read(config, options->config, reterr);
    if (err != IDEM_OK) {
        return err;
    }
    config->insecure = config->insecure || options->insecure;
    config->new_store = options->new_store;
    config->restored = options->restored;
    if (options->listen != NULL) {
        config->listen = options->listen;
    }
    if (options->store != NULL) {
        config->store = options->store;
        config->store_is_argument = true;
    }
    err = idem_config_check(config, reterr);
    if (err == IDEM_OK && options->demo && config->store_path == NULL) {
        err = idem_error_set(reterr, IDEM_E_INVALID, "--demo keeps its store in a file");
    }
    if (err == IDEM_OK && options->demo && !idem_config_is_loopback(config->host)) {
        err = idem_error_set(reterr, IDEM_E_INVALID,
                             "--demo: everybody knows its bearer, so it serves this machine only");
    }
    return err;
}

/*
 * So that `idem serve --demo` works in a fresh tree. If a folder cannot be made, opening the store
 * says why; if the sandbox's bearer cannot be set, reading it does.
 */
static void demo_prepare(const struct options *options)
{
    (void)setenv("IDEM_SANDBOX_CREDENTIAL", "sandbox-demo", 0);
    if (options->store != NULL) {
        return;
    }
    (void)mkdir("build", S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH); /* It may exist. */
    (void)mkdir("build/demo", S_IRWXU);                                    /* Likewise. */
}

/* For a reload: the same file and the same flags. */
static enum idem_err config_load_again(void *context,
                                       struct idem_config **ret_config,
                                       struct idem_error *reterr)
{
    struct idem_config *config = NULL;
    enum idem_err err = idem_config_create(&config, reterr);
    if (err != IDEM_OK) {
        return err;
    }
    err = config_load(config, context, reterr);
    if (err != IDEM_OK) {
        idem_config_destroy(config);
        return err;
    }
    *ret_config = config;
    return IDEM_OK;
}

static enum idem_exit serve(const struct idem_config *config, struct options *options)
{
    struct idem_error error;
    struct idem_service *service = NULL;
    const struct idem_service_source source = { .load = config_load_again, .context = options };
    if (idem_service_create(config, &source, &service, &error) != IDEM_OK) {
        idem_log(IDEM_LOG_ERROR, "cannot-start", &IDEM_LOG_TEXT("error", error.text), 1);
        return IDEM_EXIT_START;
    }
    enum idem_exit status = idem_service_run(service);
    if (status != IDEM_EXIT_OK) {
        _exit((int)status); /* Something is still in flight: no memory may be freed under it. */
    }
    idem_service_destroy(service);
    return IDEM_EXIT_OK;
}

/* A HUP from now on waits until there is a loop that takes it (service_open.c). */
static void hangup_hold(void)
{
    sigset_t hangup;
    (void)sigemptyset(&hangup); /* These three cannot fail for a signal that exists. */
    (void)sigaddset(&hangup, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &hangup, NULL);
}

enum idem_exit idem_command_serve(int argc, char **argv)
{
    hangup_hold();
    struct options options;
    if (!options_parse(argc, argv, &options)) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    if (options.help) {
        return fputs(help, stdout) < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
    }

    struct idem_error error;
    struct idem_config *config = NULL;
    if (idem_config_create(&config, &error) != IDEM_OK) {
        idem_log(IDEM_LOG_ERROR, "cannot-start", &IDEM_LOG_TEXT("error", error.text), 1);
        return IDEM_EXIT_START;
    }

    enum idem_exit status = IDEM_EXIT_OK;
    if (config_load(config, &options, &error) != IDEM_OK) {
        idem_log(IDEM_LOG_ERROR, "configuration-refused", &IDEM_LOG_TEXT("error", error.text), 1);
        status = IDEM_EXIT_CONFIG;
    } else if (options.check) {
        status = puts("The configuration can be used.") < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
    } else {
        if (options.demo) {
            demo_prepare(&options);
        }
        status = serve(config, &options);
    }
    idem_config_destroy(config);
    return status;
}
