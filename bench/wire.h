/*
 * wire.h - the requests that the load sends, and what it must understand of the replies.
 *
 * A request is a payment with a number: key, order number and metadata follow from seed and number,
 * so a number sent twice is the same request byte for byte. Order numbers are spread like hashes,
 * which is the hard case for a store's index.
 */
#ifndef IDEM_BENCH_WIRE_H
#define IDEM_BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_REQUEST_MAX 2048

struct bench_form {
    const char *path;
    const char *bearer;
    const char *entry; /* The provider entry that payments go through. */
    uint32_t seed;
};

/* A number that looks random and has no twin among all others. */
uint64_t bench_mix(uint64_t number);

/* Returns the length. */
size_t bench_request_print(const struct bench_form *form,
                           uint64_t number,
                           char memory[BENCH_REQUEST_MAX]);

enum bench_progress {
    BENCH_REPLY_PART = 0, /* More has to come. */
    BENCH_REPLY_WHOLE,
    BENCH_REPLY_BAD /* Not HTTP/1.1 with a Content-Length, or more than one reply. */
};

struct bench_reply {
    unsigned status;
    size_t body_size;
    bool executed; /* Idempotent-Replayed: false. */
};

enum bench_progress bench_reply_read(const char *data, size_t size, struct bench_reply *ret_reply);

#endif /* IDEM_BENCH_WIRE_H */
