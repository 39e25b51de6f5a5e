/*
 * pipe_guard.h - keeps SIGPIPE from a program that does not expect it.
 *
 * A peer that has gone is an answer of write. OpenSSL writes without MSG_NOSIGNAL, and libcurl is
 * told to leave signals alone, because their handlers belong to the program. So the signal is
 * blocked for this thread while the library writes, and one that came meanwhile is taken away.
 */
#ifndef IDEM_CLIENT_PIPE_GUARD_H
#define IDEM_CLIENT_PIPE_GUARD_H

#include <signal.h>
#include <stdbool.h>

struct idem_pipe_guard {
    sigset_t before;
    bool pending; /* One was there already: it is the program's. */
};

void idem_pipe_guard_begin(struct idem_pipe_guard *ret_guard);
void idem_pipe_guard_end(const struct idem_pipe_guard *guard);

#endif /* IDEM_CLIENT_PIPE_GUARD_H */
