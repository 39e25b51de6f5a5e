/*
 * Dates by arithmetic on days since 1970: no C library calls, no locale and no time zone, so that
 * the core may print them. The conversion counts in 400-year eras that begin on 1 March, where a
 * leap day is the last day of a year.
 */
#include "base/date.h"

#include "base/bug.h"
#include "base/clock.h"

#define DAYS_PER_ERA    146097 /* 400 years. */
#define DAYS_TO_1970    719468 /* From 0000-03-01. */
#define SECONDS_PER_DAY 86400
#define YEAR_MAX        9999
#define SECONDS_MAX     INT64_C(253402300799) /* The last one of 9999. */

#define RFC3339_WHOLE_LEN   (sizeof("2026-11-29T13:47:03") - 1)
#define FRACTION_DIGITS_MAX 9

struct civil {
    int64_t year;
    int64_t month; /* 1 to 12. */
    int64_t day;   /* 1 to 31. */
};

static const char day_names[] = "SunMonTueWedThuFriSat";
static const char month_names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

static struct civil civil_from_days(int64_t days)
{
    int64_t shifted = days + DAYS_TO_1970;
    int64_t era = shifted / DAYS_PER_ERA;
    int64_t day_of_era = shifted % DAYS_PER_ERA;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    struct civil civil = {
        .day = (day_of_year - (153 * month_from_march + 2) / 5 + 1),
        .month = (month_from_march < 10 ? month_from_march + 3 : month_from_march - 9),
    };
    civil.year = (year_of_era + era * 400 + (civil.month <= 2 ? 1 : 0));
    return civil;
}

static int64_t days_from_civil(struct civil civil)
{
    int64_t year = civil.month <= 2 ? civil.year - 1 : civil.year;
    int64_t era = year / 400;
    int64_t year_of_era = year % 400;
    int64_t month_from_march = civil.month > 2 ? civil.month - 3 : civil.month + 9;
    int64_t day_of_year = (153 * month_from_march + 2) / 5 + civil.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

static void add_digits(struct idem_buf *buf, int64_t value, unsigned width)
{
    char digits[8];
    IDEM_ASSERT(width <= sizeof(digits));
    for (unsigned i = width; i > 0; i--) {
        digits[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    idem_buf_add_bytes(buf, digits, width);
}

static void add_time(struct idem_buf *buf, int64_t second_of_day)
{
    add_digits(buf, second_of_day / 3600, 2);
    idem_buf_add_char(buf, ':');
    add_digits(buf, second_of_day / 60 % 60, 2);
    idem_buf_add_char(buf, ':');
    add_digits(buf, second_of_day % 60, 2);
}

void idem_date_print_rfc3339(int64_t wall_us, struct idem_buf *buf)
{
    IDEM_ASSERT(wall_us >= 0);
    int64_t seconds = wall_us / IDEM_US_PER_SECOND;
    struct civil civil = civil_from_days(seconds / SECONDS_PER_DAY);
    add_digits(buf, civil.year, 4);
    idem_buf_add_char(buf, '-');
    add_digits(buf, civil.month, 2);
    idem_buf_add_char(buf, '-');
    add_digits(buf, civil.day, 2);
    idem_buf_add_char(buf, 'T');
    add_time(buf, seconds % SECONDS_PER_DAY);
    idem_buf_add_char(buf, '.');
    add_digits(buf, wall_us % IDEM_US_PER_SECOND, 6);
    idem_buf_add_char(buf, 'Z');
}

void idem_date_print_imf(int64_t wall_us, struct idem_buf *buf)
{
    IDEM_ASSERT(wall_us >= 0);
    int64_t seconds = wall_us / IDEM_US_PER_SECOND;
    int64_t days = seconds / SECONDS_PER_DAY;
    struct civil civil = civil_from_days(days);
    idem_buf_add_bytes(buf, day_names + (days + 4) % 7 * 3, 3); /* 1970-01-01 was a Thursday. */
    idem_buf_add(buf, IDEM_STR(", "));
    add_digits(buf, civil.day, 2);
    idem_buf_add_char(buf, ' ');
    idem_buf_add_bytes(buf, month_names + (civil.month - 1) * 3, 3);
    idem_buf_add_char(buf, ' ');
    add_digits(buf, civil.year, 4);
    idem_buf_add_char(buf, ' ');
    add_time(buf, seconds % SECONDS_PER_DAY);
    idem_buf_add(buf, IDEM_STR(" GMT"));
}

/* The number that `len` digits from `from` on make, or -1. */
static int64_t number_at(struct idem_str text, size_t from, size_t len)
{
    int64_t value = 0;
    if (!idem_str_to_i64(idem_str_slice(text, from, len), &value)) {
        return -1;
    }
    return value;
}

static int64_t month_at(struct idem_str text, size_t from)
{
    struct idem_str name = idem_str_slice(text, from, 3);
    for (int64_t i = 0; i < 12; i++) {
        struct idem_str month = { .data = month_names + i * 3, .len = 3 };
        if (idem_str_equal(name, month)) {
            return i + 1;
        }
    }
    return -1;
}

static bool stands_at(struct idem_str text, size_t from, struct idem_str expected)
{
    return idem_str_equal(idem_str_slice(text, from, expected.len), expected);
}

/* 30 February is not one: days beyond a month's end come out as another date. */
static bool civil_exists(struct civil civil)
{
    if (civil.year < 1970 || civil.year > YEAR_MAX || civil.month < 1 || civil.month > 12 ||
        civil.day < 1 || civil.day > 31) {
        return false;
    }
    struct civil again = civil_from_days(days_from_civil(civil));
    return again.month == civil.month && again.day == civil.day;
}

/* "13:47:03" at `from`, as a second of the day, or -1. */
static int64_t second_of_day_at(struct idem_str text, size_t from)
{
    int64_t hour = number_at(text, from, 2);
    int64_t minute = number_at(text, from + 3, 2);
    int64_t second = number_at(text, from + 6, 2);

    if (!stands_at(text, from + 2, IDEM_STR(":")) || !stands_at(text, from + 5, IDEM_STR(":")) ||
        hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
        return -1;
    }
    return hour * 3600 + minute * 60 + second;
}

/* Takes ".123" off the front of `*text`, if it is there. False: it is no fraction. */
static bool fraction_take(struct idem_str *text, int64_t *ret_us)
{
    int64_t unit_us = IDEM_US_PER_SECOND;
    int64_t fraction_us = 0;
    size_t len = 0;

    *ret_us = 0;
    if (!stands_at(*text, 0, IDEM_STR("."))) {
        return true;
    }
    for (len = 1; len < text->len && text->data[len] >= '0' && text->data[len] <= '9'; len++) {
        unit_us /= 10; /* Zero below a microsecond. */
        fraction_us += unit_us * (text->data[len] - '0');
    }
    *text = idem_str_slice(*text, len, text->len);
    *ret_us = fraction_us;
    return len > 1 && len <= FRACTION_DIGITS_MAX + 1;
}

/* "Z", or how far the local time "+08:00" is ahead. */
static bool offset_read(struct idem_str text, int64_t *ret_seconds)
{
    if (idem_str_equal(text, IDEM_STR("Z"))) {
        *ret_seconds = 0;
        return true;
    }
    if (text.len != 6 || (text.data[0] != '+' && text.data[0] != '-') || text.data[3] != ':') {
        return false;
    }
    int64_t hour = number_at(text, 1, 2);
    int64_t minute = number_at(text, 4, 2);
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59) {
        return false;
    }
    int64_t ahead = hour * 3600 + minute * 60;
    *ret_seconds = text.data[0] == '+' ? ahead : -ahead;
    return true;
}

bool idem_date_parse_rfc3339(struct idem_str text, int64_t *ret_wall_us)
{
    struct civil civil = {
        .year = number_at(text, 0, 4),
        .month = number_at(text, 5, 2),
        .day = number_at(text, 8, 2),
    };
    struct idem_str rest = idem_str_slice(text, RFC3339_WHOLE_LEN, text.len);
    int64_t second = second_of_day_at(text, 11);
    int64_t fraction_us = 0;
    int64_t ahead = 0;

    if (!stands_at(text, 4, IDEM_STR("-")) || !stands_at(text, 7, IDEM_STR("-")) ||
        !stands_at(text, 10, IDEM_STR("T")) || !civil_exists(civil) || second < 0 ||
        !fraction_take(&rest, &fraction_us) || !offset_read(rest, &ahead)) {
        return false;
    }
    int64_t seconds = days_from_civil(civil) * SECONDS_PER_DAY + second - ahead;
    if (seconds < 0 || seconds > SECONDS_MAX) {
        return false;
    }
    *ret_wall_us = seconds * IDEM_US_PER_SECOND + fraction_us;
    return true;
}

bool idem_date_parse_imf(struct idem_str text, int64_t *ret_wall_us)
{
    if (text.len != 29 || !stands_at(text, 3, IDEM_STR(", ")) || text.data[7] != ' ' ||
        text.data[11] != ' ' || text.data[16] != ' ' || !stands_at(text, 25, IDEM_STR(" GMT"))) {
        return false;
    }
    struct civil civil = {
        .day = number_at(text, 5, 2),
        .month = month_at(text, 8),
        .year = number_at(text, 12, 4),
    };
    int64_t second = second_of_day_at(text, 17);
    if (!civil_exists(civil) || second < 0) {
        return false;
    }
    int64_t seconds = days_from_civil(civil) * SECONDS_PER_DAY + second;

    /* Printing it again refuses a wrong day name. */
    char memory[32];
    struct idem_buf again;
    idem_buf_init(&again, memory, sizeof(memory));
    idem_date_print_imf(seconds * IDEM_US_PER_SECOND, &again);
    if (!idem_str_equal(idem_buf_str(&again), text)) {
        return false;
    }
    *ret_wall_us = seconds * IDEM_US_PER_SECOND;
    return true;
}
