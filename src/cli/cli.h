/*
 * cli.h - the commands that talk to a service: the operator's speak the admin API of a running idem
 * (docs/admin.md), `send` any API that has idempotency keys (docs/send.md).
 *
 * Each gets its own name as argv[0] and gives the exit status. What a person reads goes to standard
 * output, as a table, or with --json as JSON, one value a line; everything that went wrong goes to
 * standard error, with what it means and what to do.
 */
#ifndef IDEM_CLI_CLI_H
#define IDEM_CLI_CLI_H

#include "base/exit.h"

enum idem_exit idem_cli_cases(int argc, char **argv);
enum idem_exit idem_cli_credential(int argc, char **argv);
enum idem_exit idem_cli_list(int argc, char **argv);
enum idem_exit idem_cli_show(int argc, char **argv);
enum idem_exit idem_cli_outbox(int argc, char **argv);
enum idem_exit idem_cli_reconcile(int argc, char **argv);
enum idem_exit idem_cli_send(int argc, char **argv);
enum idem_exit idem_cli_resolve(int argc, char **argv);
enum idem_exit idem_cli_erase(int argc, char **argv);
enum idem_exit idem_cli_status(int argc, char **argv);
enum idem_exit idem_cli_webhook(int argc, char **argv);

#endif /* IDEM_CLI_CLI_H */
