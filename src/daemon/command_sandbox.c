/*
 * idem sandbox: the provider that misbehaves on request, as a process of its own, so that killing
 * the service in a test never kills the judge. TERM or INT stops it at once; its ledger is written
 * before every answer, so there is nothing to finish.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <uv.h>

#include "base/attr.h"
#include "base/bug.h"
#include "base/clock.h"
#include "base/private_file.h"
#include "daemon/commands.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "sandbox/sandbox.h"

static const char help[] =
    "usage: idem sandbox [OPTION...]\n"
    "\n"
    "  -l, --listen ADDRESS:PORT  where; an address of this machine (default 127.0.0.1:8081)\n"
    "      --ledger PATH          keep the ledger in this file (default: memory only)\n"
    "      --callback-url [PROFILE=]URL\n"
    "                             tell what happened there, of one profile or of all that have no\n"
    "                             address of their own; may be given again\n"
    "      --callback-secret-file FILE\n"
    "                             what is told is signed with its first line; a second one signs\n"
    "                             as well\n"
    "  -h, --help                 this text\n"
    "\n"
    "Profiles are paths: /dedup /lagging /closing /plain /blind. What goes wrong is said by the\n"
    "method of a payment, tok_lose_answer for one; docs/sandbox.md has the list. GET /ledger says\n"
    "what really happened.\n";

struct options {
    const char *listen;
    const char *ledger;
    const char *callback_urls[IDEM_PROFILE_COUNT]; /* NONE: of all that have none of their own. */
    const char *secret_files[IDEM_SANDBOX_SECRETS_MAX];
    size_t secret_count;
    bool help;
};

/* Lives on the stack of the command; the loop is closed before it goes. */
struct bank {
    uv_loop_t loop;
    uv_signal_t signals[2];
    struct idem_clock clock;
    struct idem_sandbox *sandbox;
    char secrets[IDEM_SANDBOX_SECRETS_MAX][IDEM_SECRET_WORD_MAX];
};

/* "PROFILE=URL" or "URL"; an address has no '=' before its "://". */
static bool url_take(const char *text, struct options *options)
{
    struct idem_str url = idem_str_from(text);
    enum idem_sandbox_profile profile = IDEM_PROFILE_NONE;

    if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) {
        profile = idem_sandbox_profile_find(idem_str_next(&url, '='));
        if (profile == IDEM_PROFILE_NONE || url.len == 0) {
            return false;
        }
    }
    options->callback_urls[profile] = url.data; /* Terminated, as the argument is. */
    return true;
}

static bool secret_take(const char *file, struct options *options)
{
    if (options->secret_count == IDEM_SANDBOX_SECRETS_MAX) {
        return false;
    }
    options->secret_files[options->secret_count] = file;
    options->secret_count += 1;
    return true;
}

/* One option that is not help; false: it cannot be understood. */
static bool option_take(int letter, const char *argument, struct options *options)
{
    switch (letter) {
    case 'l':
        options->listen = argument;
        return true;
    case 'L':
        options->ledger = argument;
        return true;
    case 'u':
        return url_take(argument, options);
    case 's':
        return secret_take(argument, options);
    default:
        return false;
    }
}

/* Whoever is told must be able to know who speaks. */
static bool callbacks_fit(const struct options *options)
{
    for (size_t i = 0; i < IDEM_PROFILE_COUNT; i++) {
        if (options->callback_urls[i] != NULL && options->secret_count == 0) {
            return false;
        }
    }
    return true;
}

static bool options_parse(int argc, char **argv, struct options *ret_options)
{
    static const struct option long_options[] = {
        { "listen", required_argument, NULL, 'l' },
        { "ledger", required_argument, NULL, 'L' },
        { "callback-url", required_argument, NULL, 'u' },
        { "callback-secret-file", required_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct options options = { .listen = "127.0.0.1:8081" };
    int letter;
    while ((letter = getopt_long(argc, argv, "l:h", long_options, NULL)) != -1) {
        if (letter == 'h') {
            options.help = true;
        } else if (!option_take(letter, optarg, &options)) {
            return false;
        }
    }
    *ret_options = options;
    return optind == argc && callbacks_fit(&options);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct bank *bank = handle->data;
    idem_log(IDEM_LOG_INFO, "stop", &IDEM_LOG_NUMBER("signal", number), 1);
    idem_sandbox_close(bank->sandbox);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bank->signals); i++) {
        uv_close((uv_handle_t *)&bank->signals[i], NULL);
    }
}

static void signals_start(struct bank *bank)
{
    static const int numbers[IDEM_ARRAY_COUNT(bank->signals)] = { SIGTERM, SIGINT };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(numbers); i++) {
        bank->signals[i].data = bank;
        int rc = uv_signal_init(&bank->loop, &bank->signals[i]);
        IDEM_ASSERT(rc == 0);
        rc = uv_signal_start(&bank->signals[i], on_signal, numbers[i]);
        IDEM_ASSERT(rc == 0); /* Both signals exist and may be caught. */
    }
}

static enum idem_err callbacks_fill(struct bank *bank,
                                    const struct options *options,
                                    struct idem_sandbox_options *sandbox,
                                    struct idem_error *reterr)
{
    enum idem_err err = IDEM_OK;

    for (size_t i = IDEM_PROFILE_NONE + 1; i < IDEM_PROFILE_COUNT; i++) {
        const char *own = options->callback_urls[i];
        sandbox->callback_urls[i] = own != NULL ? own : options->callback_urls[IDEM_PROFILE_NONE];
    }
    for (size_t i = 0; err == IDEM_OK && i < options->secret_count; i++) {
        err = idem_secret_word(options->secret_files[i], NULL, bank->secrets[i], reterr);
        sandbox->callback_secrets[i] = bank->secrets[i];
    }
    sandbox->callback_secret_count = options->secret_count;
    return err;
}

static enum idem_exit bank_run(struct bank *bank, const struct options *options)
{
    char host[64];
    uint16_t port = 0;
    if (!idem_config_address(options->listen, host, sizeof(host), &port) ||
        !idem_config_is_loopback(host)) {
        (void)fputs("idem sandbox: --listen needs ADDRESS:PORT of this machine\n", stderr);
        return IDEM_EXIT_USAGE;
    }
    struct idem_sandbox_options sandbox = {
        .loop = &bank->loop,
        .host = host,
        .port = port,
        .ledger_path = options->ledger,
        .clock = &bank->clock,
    };
    struct idem_error error;
    if (callbacks_fill(bank, options, &sandbox, &error) != IDEM_OK) {
        idem_log(IDEM_LOG_ERROR, "cannot-start", &IDEM_LOG_TEXT("error", error.text), 1);
        return IDEM_EXIT_START;
    }
    if (idem_sandbox_open(&sandbox, &bank->sandbox, &error) != IDEM_OK) {
        idem_log(IDEM_LOG_ERROR, "cannot-start", &IDEM_LOG_TEXT("error", error.text), 1);
        return IDEM_EXIT_START;
    }
    const struct idem_log_field fields[] = {
        IDEM_LOG_TEXT("role", "sandbox"),
        IDEM_LOG_TEXT("host", host),
        IDEM_LOG_NUMBER("port", idem_sandbox_port(bank->sandbox)),
    };
    signals_start(bank);
    idem_log(IDEM_LOG_INFO, "ready", fields, IDEM_ARRAY_COUNT(fields));
    (void)uv_run(&bank->loop, UV_RUN_DEFAULT); /* Ends when every handle is closed. */
    IDEM_ASSERT(idem_sandbox_closed(bank->sandbox));
    idem_sandbox_destroy(bank->sandbox);
    return IDEM_EXIT_OK;
}

enum idem_exit idem_command_sandbox(int argc, char **argv)
{
    struct options options;
    if (!options_parse(argc, argv, &options)) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    if (options.help) {
        return fputs(help, stdout) < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
    }

    struct bank bank = { .sandbox = NULL };
    int rc = uv_loop_init(&bank.loop);
    if (rc != 0) {
        idem_log(IDEM_LOG_ERROR, "cannot-start", &IDEM_LOG_TEXT("error", uv_strerror(rc)), 1);
        return IDEM_EXIT_START;
    }
    idem_clock_init_system(&bank.clock);
    enum idem_exit status = bank_run(&bank, &options);
    if (uv_loop_close(&bank.loop) != 0) {
        (void)uv_run(&bank.loop, UV_RUN_DEFAULT); /* A failed start leaves handles that close. */
        (void)uv_loop_close(&bank.loop);          /* The process ends next. */
    }
    return status;
}
