/*
 * idem - a service that makes it safe to retry what moves money.
 *
 * What happens here happens before any thread exists: the crash point for tests is armed, SIGPIPE
 * is ignored (a peer that has gone is an answer of write, not a reason to die), files that are made
 * from now on belong to this user alone, and the heap keeps a little of what is freed: else each
 * request would take a page from the system and give it back.
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/crash.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "daemon/commands.h"
#include "daemon/log.h"

static const char help[] =
    "usage: idem COMMAND [OPTION...]\n"
    "\n"
    "  serve         the payment service\n"
    "  check-config  whether a configuration can be used; what can be set\n"
    "  backup        copy a store and its secrets, also while it is served\n"
    "  migrate       bring an older store to this version\n"
    "  send          send a request that must happen once, and repeat it safely\n"
    "  status        how a running service stands\n"
    "  list          what is in flight, unknown or in front of a person\n"
    "  show          one operation, or all of a payment\n"
    "  resolve       a person's evidence about an operation\n"
    "  cases         what a person must look at: list, show, resolve, compensate\n"
    "  erase         forget stored answers before retention does\n"
    "  credential    who may call: add, list, revoke\n"
    "  webhook       where merchants are told: add, list, rotate, disable, enable, test\n"
    "  outbox        what merchants are told: list, replay\n"
    "  reconcile     compare with what the provider says it did\n"
    "  sandbox       a payment provider that misbehaves on request\n"
    "  version       what this is\n"
    "  help          this text\n"
    "\n"
    "idem COMMAND --help says what a command takes.\n"
    "\n"
    "Exit status: 0 stopped as asked, 2 command line, 3 configuration, 4 cannot start (port,\n"
    "store, secrets), 5 the store broke: start again, 6 the service refused, 7 no answer came and\n"
    "it is not known whether it was done: repeat the command, 8 nothing happened so far: the same\n"
    "command, later (send only), 1 anything else.\n";

static enum idem_exit command_version(int argc, char **argv)
{
    (void)argc; /* There is nothing to choose. */
    (void)argv;
    return puts("idem " IDEM_VERSION) < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
}

static enum idem_exit command_help(int argc, char **argv)
{
    (void)argc; /* There is nothing to choose. */
    (void)argv;
    return fputs(help, stdout) < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
}

static const struct {
    const char *name;
    enum idem_exit (*run)(int argc, char **argv);
} commands[] = {
    { "backup", idem_command_backup },
    { "migrate", idem_command_migrate },
    { "serve", idem_command_serve },
    { "check-config", idem_command_check_config },
    { "send", idem_cli_send },
    { "status", idem_cli_status },
    { "list", idem_cli_list },
    { "show", idem_cli_show },
    { "resolve", idem_cli_resolve },
    { "cases", idem_cli_cases },
    { "erase", idem_cli_erase },
    { "credential", idem_cli_credential },
    { "reconcile", idem_cli_reconcile },
    { "webhook", idem_cli_webhook },
    { "outbox", idem_cli_outbox },
    { "sandbox", idem_command_sandbox },
    { "version", command_version },
    { "--version", command_version },
    { "help", command_help },
    { "--help", command_help },
    { "-h", command_help },
};

#define HEAP_KEPT (4 << 20)
#define HEAP_STEP (256 << 10)

int main(int argc, char **argv)
{
    struct idem_error error;
    if (idem_crash_arm(getenv("IDEM_CRASH_POINT"), &error) != IDEM_OK) {
        (void)fprintf(stderr, "idem: IDEM_CRASH_POINT: %s\n", error.text);
        return IDEM_EXIT_USAGE;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* It cannot fail for a signal that exists. */
    (void)umask(S_IRWXG | S_IRWXO);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT); /* Without them it is only slower. */
    (void)mallopt(M_TOP_PAD, HEAP_STEP);

    for (size_t i = 0; argc > 1 && i < IDEM_ARRAY_COUNT(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            enum idem_exit status = commands[i].run(argc - 1, argv + 1);
            return (int)idem_output_end(status, status == IDEM_EXIT_OK
                                                    ? "all else is done"
                                                    : "all else is as the exit status says");
        }
    }
    if (argc > 1) {
        (void)fprintf(stderr, "idem: there is no command '%s'\n\n", argv[1]);
    }
    (void)fputs(help, stderr);
    return IDEM_EXIT_USAGE;
}
