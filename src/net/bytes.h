/*
 * bytes.h - bytes that grow up to a stated limit, for what a connection collects.
 */
#ifndef IDEM_NET_BYTES_H
#define IDEM_NET_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Zeroed is empty and owns nothing. */
struct idem_bytes {
    char *data;
    size_t len;
    size_t max; /* Allocated. */
};

/*
 * Appends `text`; what is there afterwards is at most `limit`, which the caller has checked. False:
 * no memory, and nothing changed.
 */
bool idem_bytes_add(struct idem_bytes *bytes, struct idem_str text, size_t limit) IDEM_MUST_CHECK;

/* Drops the first `len`; frees the memory once nothing is left. */
void idem_bytes_drop(struct idem_bytes *bytes, size_t len);

void idem_bytes_free(struct idem_bytes *bytes);

struct idem_str idem_bytes_str(const struct idem_bytes *bytes);

#endif /* IDEM_NET_BYTES_H */
