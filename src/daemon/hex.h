/*
 * hex.h - secrets and digests as an operator writes them: lower-case hexadecimal digits.
 */
#ifndef IDEM_DAEMON_HEX_H
#define IDEM_DAEMON_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Exactly two digits a byte. On false `ret_bytes` holds nothing of use. */
bool idem_hex_parse(struct idem_str text, uint8_t *ret_bytes, size_t size) IDEM_MUST_CHECK;

#endif /* IDEM_DAEMON_HEX_H */
