/*
 * date.h - wall time as text: RFC 3339 for bodies, IMF-fixdate (RFC 9110, 5.6.7) for headers.
 *
 * Always UTC, never a local zone. Years 1970 to 9999.
 */
#ifndef IDEM_BASE_DATE_H
#define IDEM_BASE_DATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* "2026-11-29T13:47:03.123456Z" */
void idem_date_print_rfc3339(int64_t wall_us, struct idem_buf *buf);

/* "Sun, 29 Nov 2026 13:47:03 GMT" */
void idem_date_print_imf(int64_t wall_us, struct idem_buf *buf);

/*
 * "2026-11-29T13:47:03Z", with or without a fraction of up to nine digits, which is cut to
 * microseconds; an offset like +08:00 may stand for Z. Capital letters, no leap second, not before
 * 1970. False leaves `*ret_wall_us` alone.
 */
bool idem_date_parse_rfc3339(struct idem_str text, int64_t *ret_wall_us) IDEM_MUST_CHECK;

/* IMF-fixdate and nothing else; the day name must be right. False leaves `*ret_wall_us` alone. */
bool idem_date_parse_imf(struct idem_str text, int64_t *ret_wall_us) IDEM_MUST_CHECK;

#endif /* IDEM_BASE_DATE_H */
