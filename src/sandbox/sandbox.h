/*
 * sandbox.h - a payment provider that misbehaves on request, and keeps the ledger that judges.
 *
 * It speaks the bridge protocol (docs/bridge.md) over HTTP. What it does wrong is said by the
 * method token of a payment (docs/sandbox.md); what really happened is at GET /ledger: arrivals and
 * executions, counted apart.
 *
 * The money moves, and is written to the ledger, before any answer. A caller that has gone stops
 * nothing that was accepted. What happened is also told by callback, if somebody listens, until it
 * is answered 2xx or this sandbox ends.
 *
 * Threads: the loop's.
 */
#ifndef IDEM_SANDBOX_SANDBOX_H
#define IDEM_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/profile.h"

#define IDEM_SANDBOX_SECRETS_MAX 2 /* Of callbacks. */

struct uv_loop_s;
struct idem_clock;
struct idem_sandbox;

struct idem_sandbox_options {
    struct uv_loop_s *loop;   /* Borrowed as long as the sandbox. */
    const char *host;         /* An address, not a name. */
    uint16_t port;            /* 0: any; see idem_sandbox_port(). */
    const char *ledger_path;  /* A file, read back and appended to. NULL: memory only. */
    struct idem_clock *clock; /* Borrowed as long as the sandbox; advances with real time. */
    const char *credential;   /* What callers must bear; borrowed likewise. NULL: anything. */

    /*
     * Where each profile's callbacks go, and what they are signed with; borrowed likewise. NULL:
     * that profile tells nobody.
     */
    const char *callback_urls[IDEM_PROFILE_COUNT];
    const char *callback_secrets[IDEM_SANDBOX_SECRETS_MAX];
    size_t callback_secret_count; /* At least one if there is an address. */
};

/* Listens. What was processing in the ledger file goes on where it was. */
enum idem_err idem_sandbox_open(const struct idem_sandbox_options *options,
                                struct idem_sandbox **ret_sandbox,
                                struct idem_error *reterr) IDEM_MUST_CHECK;

uint16_t idem_sandbox_port(const struct idem_sandbox *sandbox);

/* Closes everything; run the loop until idem_sandbox_closed(), then destroy. Callers that wait are
   cut off; what was still to be executed is not. */
void idem_sandbox_close(struct idem_sandbox *sandbox);

bool idem_sandbox_closed(const struct idem_sandbox *sandbox);

/* Accepts NULL. */
void idem_sandbox_destroy(struct idem_sandbox *sandbox);

#endif /* IDEM_SANDBOX_SANDBOX_H */
