/*
 * cli.h - the operator's commands: each speaks the admin API of a running service (docs/admin.md).
 *
 * Each gets its own name as argv[0] and gives the exit status. What a person reads goes to standard
 * output, as a table, or with --json as the service's own answers, one a line; everything that went
 * wrong goes to standard error, with what it means and what to do.
 */
#ifndef IDEM_CLI_CLI_H
#define IDEM_CLI_CLI_H

#include "base/exit.h"

enum idem_exit idem_cli_credential(int argc, char **argv);
enum idem_exit idem_cli_list(int argc, char **argv);
enum idem_exit idem_cli_show(int argc, char **argv);
enum idem_exit idem_cli_resolve(int argc, char **argv);
enum idem_exit idem_cli_erase(int argc, char **argv);
enum idem_exit idem_cli_status(int argc, char **argv);

#endif /* IDEM_CLI_CLI_H */
