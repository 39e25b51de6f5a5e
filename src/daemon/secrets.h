/*
 * secrets.h - the file that lies beside a store and must be kept with its backups.
 *
 *     # comment
 *     effect 64-hex-digits              names effects at providers; never changes
 *     fingerprint 2 64-hex-digits       the first one is used for new records,
 *     fingerprint 1 64-hex-digits       the others recognise what is older
 *
 * Whoever loses the effect secret makes every old key new to the providers, so a store that exists
 * never gets a new file: it is refused, with a sentence on what to do. Only a store that does not
 * exist yet gets one, mode 0600, durable before it is used.
 *
 * The file stands for its store as well: where it lies, a store was, so one that is absent or empty
 * is refused too, until somebody says that it is meant to begin anew.
 */
#ifndef IDEM_DAEMON_SECRETS_H
#define IDEM_DAEMON_SECRETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/random.h"

#define IDEM_SECRETS_FINGERPRINTS_MAX 4
#define IDEM_SECRET_SIZE              32

struct idem_fingerprint_secret {
    uint32_t id;
    uint8_t bytes[IDEM_SECRET_SIZE];
};

struct idem_secrets {
    uint8_t effect[IDEM_SECRET_SIZE];
    bool has_effect;
    struct idem_fingerprint_secret fingerprints[IDEM_SECRETS_FINGERPRINTS_MAX];
    size_t fingerprint_count; /* At least one; the first is current. */
    bool made;                /* By this call: there was neither a file nor a store. */
};

struct idem_secrets_place {
    const char *path;
    const char *store_path; /* NULL: it is not a file; the two below say how it is. */
    const char *store_label;
    bool store_is_there;
    bool new_store; /* The store begins now: it must be absent or empty. */
};

/* Reads the file; creates it if neither it nor the store exists. */
enum idem_err idem_secrets_open(const struct idem_secrets_place *place,
                                struct idem_random *random,
                                struct idem_secrets *ret_secrets,
                                struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_DAEMON_SECRETS_H */
