/*
 * One table of units. The bound is checked before the multiplication, so nothing can overflow.
 */
#include "cli/duration.h"

#include "base/bug.h"

#define MS_PER_DAY INT64_C(86400000)

static const struct {
    const char *name;
    int64_t ms;
} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", MS_PER_DAY } };

/* Milliseconds of the unit; 0: there is none of this name. */
static int64_t unit_ms(struct idem_str name, bool days)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(units); i++) {
        if (idem_str_equal(name, idem_str_from(units[i].name))) {
            return units[i].ms < MS_PER_DAY || days ? units[i].ms : 0;
        }
    }
    return 0;
}

enum idem_duration_fault idem_duration_parse(struct idem_str text, bool days, int64_t *ret_ms)
{
    size_t digits = 0;
    while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9') {
        digits += 1;
    }
    struct idem_str number = idem_str_slice(text, 0, digits);
    struct idem_str unit = idem_str_slice(text, digits, text.len);
    if (digits == 0) {
        return IDEM_DURATION_NO_NUMBER;
    }
    if (unit.len == 0) {
        return IDEM_DURATION_NO_UNIT;
    }
    int64_t each_ms = unit_ms(unit, days);
    if (each_ms == 0) {
        return IDEM_DURATION_BAD_UNIT;
    }
    int64_t count;
    if (!idem_str_to_i64(number, &count) || count > IDEM_DURATION_DAYS_MAX * MS_PER_DAY / each_ms) {
        return IDEM_DURATION_TOO_LONG;
    }
    if (count == 0) {
        return IDEM_DURATION_ZERO;
    }
    *ret_ms = count * each_ms;
    return IDEM_DURATION_OK;
}

const char *idem_duration_fault_text(enum idem_duration_fault fault)
{
    switch (fault) {
    case IDEM_DURATION_OK:
        return "is fine";
    case IDEM_DURATION_NO_NUMBER:
        return "does not begin with a number: write 500ms, 60s, 5m or 2h";
    case IDEM_DURATION_NO_UNIT:
        return "has no unit: write 500ms, 60s, 5m or 2h";
    case IDEM_DURATION_BAD_UNIT:
        return "is not a whole number with one of its units: write 500ms, 60s, 5m or 2h";
    case IDEM_DURATION_ZERO:
        return "is no time at all: leave the option off for the default";
    case IDEM_DURATION_TOO_LONG:
        return "is longer than a year";
    }
    IDEM_UNREACHABLE();
}
