/*
 * chunks.h - a strict reader of the chunked transfer coding's frame (RFC 9112, 7.1).
 *
 * It says where the body ends and whether every byte that is not data is where it must be. The data
 * itself is taken out by llhttp, over the same bytes.
 */
#ifndef IDEM_NET_CHUNKS_H
#define IDEM_NET_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Bytes of chunk extensions in one body. They mean nothing here, so nobody needs many. */
#define IDEM_CHUNKS_EXTENSION_MAX 256

enum idem_chunks_place {
    IDEM_CHUNKS_SIZE_FIRST = 0, /* Zeroed is the beginning of a body. */
    IDEM_CHUNKS_SIZE,
    IDEM_CHUNKS_EXTENSION,
    IDEM_CHUNKS_SIZE_LF,
    IDEM_CHUNKS_DATA,
    IDEM_CHUNKS_DATA_CR,
    IDEM_CHUNKS_DATA_LF,
    IDEM_CHUNKS_LAST_CR,
    IDEM_CHUNKS_LAST_LF,
    IDEM_CHUNKS_END
};

struct idem_chunks {
    enum idem_chunks_place place;
    unsigned digits;        /* Of the size that is being read. */
    uint64_t left;          /* Of the chunk: its size, then what of it is to come. */
    uint64_t total;         /* Of all chunks begun. */
    size_t extension_bytes; /* In the whole body. */
};

enum idem_chunks_verdict {
    IDEM_CHUNKS_MORE = 0, /* All was used; the body goes on. */
    IDEM_CHUNKS_DONE,
    IDEM_CHUNKS_BAD,
    IDEM_CHUNKS_TOO_LARGE
};

/* `*ret_used` is how much of `text` belongs to this body, on MORE and DONE. */
enum idem_chunks_verdict idem_chunks_scan(struct idem_chunks *chunks,
                                          struct idem_str text,
                                          uint64_t body_max,
                                          size_t *ret_used);

#endif /* IDEM_NET_CHUNKS_H */
