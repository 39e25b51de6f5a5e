/*
 * key.h - the Idempotency-Key of a request.
 *
 * Two ways to write the same key: a structured-field string ("abc", RFC 9651, 3.3.3) whose
 * parameters are ignored, and bare (abc) as most clients send it. A key is 1 to IDEM_KEY_MAX bytes
 * 0x21-0x7E, case kept, never truncated.
 */
#ifndef IDEM_API_KEY_H
#define IDEM_API_KEY_H

#include <stdbool.h>

#include "api/fault.h"
#include "base/text.h"
#include "net/server.h"

/* Appends the key to `memory` and gives it; it lives as long as the memory. */
bool idem_key_read(const struct idem_net_request *request,
                   struct idem_buf *memory,
                   struct idem_str *ret_key,
                   struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/* Appends the key as a structured-field string. */
void idem_key_print(struct idem_str key, struct idem_buf *buf);

#endif /* IDEM_API_KEY_H */
