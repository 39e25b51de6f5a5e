/*
 * exit.h - what the program's exit status says, once. docs/configuration.md repeats it.
 */
#ifndef IDEM_BASE_EXIT_H
#define IDEM_BASE_EXIT_H

enum idem_exit {
    IDEM_EXIT_OK = 0,
    IDEM_EXIT_OTHER = 1,   /* Nothing below; a bug stops the process by SIGABRT instead. */
    IDEM_EXIT_USAGE = 2,   /* The command line is wrong, or not allowed; nothing was done. */
    IDEM_EXIT_CONFIG = 3,  /* The configuration is refused; the message names file and line. */
    IDEM_EXIT_START = 4,   /* It cannot start: port, store, secrets or memory. */
    IDEM_EXIT_STORE = 5,   /* The store broke while running: start again, the start finds out. */
    IDEM_EXIT_REFUSED = 6, /* The service refused; the message says why and what it means. */
    IDEM_EXIT_UNKNOWN = 7, /* No answer came: not known whether it was done; repeat the command. */
    IDEM_EXIT_LATER = 8    /* Nothing happened, for no lasting reason: the same command, later. */
};

#endif /* IDEM_BASE_EXIT_H */
