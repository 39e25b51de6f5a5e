/*
 * commands.h - the subcommands of `idem`. Each gets its own name as argv[0] and gives the exit
 * status, which exit.h explains.
 */
#ifndef IDEM_DAEMON_COMMANDS_H
#define IDEM_DAEMON_COMMANDS_H

#include "base/exit.h"

enum idem_exit idem_command_serve(int argc, char **argv);
enum idem_exit idem_command_check_config(int argc, char **argv);
enum idem_exit idem_command_backup(int argc, char **argv);
enum idem_exit idem_command_migrate(int argc, char **argv);
enum idem_exit idem_command_sandbox(int argc, char **argv);

#endif /* IDEM_DAEMON_COMMANDS_H */
