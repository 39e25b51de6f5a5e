/*
 * percent.h - percent-decoding (RFC 3986, 2.1), strictly: a `%` is followed by two hexadecimal
 * digits or the text is refused; `+` is a plus.
 */
#ifndef IDEM_API_PERCENT_H
#define IDEM_API_PERCENT_H

#include <stdbool.h>

#include "base/text.h"

/* Appends the decoded text; false if it is malformed. Whether it fitted, `buf` knows. */
bool idem_percent_decode(struct idem_str text, struct idem_buf *buf) IDEM_MUST_CHECK;

#endif /* IDEM_API_PERCENT_H */
