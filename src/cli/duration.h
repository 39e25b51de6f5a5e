/*
 * duration.h - lengths of time as people write them: "500ms", "60s", "5m", "2h", "7d".
 *
 * A whole number and a unit. A number alone is refused: whoever means milliseconds and whoever
 * means minutes both write 60.
 */
#ifndef IDEM_CLI_DURATION_H
#define IDEM_CLI_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define IDEM_DURATION_DAYS_MAX 366

enum idem_duration_fault {
    IDEM_DURATION_OK = 0,
    IDEM_DURATION_NO_NUMBER,
    IDEM_DURATION_NO_UNIT,
    IDEM_DURATION_BAD_UNIT,
    IDEM_DURATION_ZERO,
    IDEM_DURATION_TOO_LONG
};

/* `days`: "d" is a unit too. `*ret_ms` is untouched unless it is OK. */
enum idem_duration_fault idem_duration_parse(struct idem_str text,
                                             bool days,
                                             int64_t *ret_ms) IDEM_MUST_CHECK;

/* A sentence part that says what to write instead: "has no unit: write 60s, 5m or 2h". */
const char *idem_duration_fault_text(enum idem_duration_fault fault);

#endif /* IDEM_CLI_DURATION_H */
