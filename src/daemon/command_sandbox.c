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
#include "daemon/commands.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "sandbox/sandbox.h"

static const char help[] =
    "usage: idem sandbox [OPTION...]\n"
    "\n"
    "  -l, --listen ADDRESS:PORT  where; an address of this machine (default 127.0.0.1:8081)\n"
    "      --ledger PATH          keep the ledger in this file (default: memory only)\n"
    "  -h, --help                 this text\n"
    "\n"
    "Profiles are paths: /dedup /lagging /closing /plain /blind. What goes wrong is said by the\n"
    "method of a payment, tok_lose_answer for one; docs/sandbox.md has the list. GET /ledger says\n"
    "what really happened.\n";

struct options {
    const char *listen;
    const char *ledger;
    bool help;
};

/* Lives on the stack of the command; the loop is closed before it goes. */
struct bank {
    uv_loop_t loop;
    uv_signal_t signals[2];
    struct idem_clock clock;
    struct idem_sandbox *sandbox;
};

static bool options_parse(int argc, char **argv, struct options *ret_options)
{
    static const struct option long_options[] = {
        { "listen", required_argument, NULL, 'l' },
        { "ledger", required_argument, NULL, 'L' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct options options = { .listen = "127.0.0.1:8081" };
    int letter;
    while ((letter = getopt_long(argc, argv, "l:h", long_options, NULL)) != -1) {
        if (letter == 'l') {
            options.listen = optarg;
        } else if (letter == 'L') {
            options.ledger = optarg;
        } else if (letter == 'h') {
            options.help = true;
        } else {
            return false;
        }
    }
    *ret_options = options;
    return optind == argc;
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
