/*
 * Fuzzes amounts of money and dates.
 *
 * The input is one letter and a text: '0' to '4' an amount with so many decimals, 'i' an
 * IMF-fixdate, 'r' a date of RFC 3339. Properties, for any bytes:
 *   - an amount is read exactly if it is written as money.h says, by a second reader, and is that
 *     number; printed, it is the same text again;
 *   - a date that is read is the same text when printed (IMF), or the same time when printed and
 *     read again, and names the day and second that the system's calendar gives (RFC 3339);
 *   - a refusal leaves the result alone.
 */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/date.h"
#include "base/money.h"

#include "fuzz/fuzz.h"

#define UNTOUCHED INT64_C(-77)
#define YEAR_BASE 1900

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* False: it is not written as an amount. */
static bool amount_reread(struct idem_str text, size_t exponent, uint64_t *ret_minor)
{
    uint64_t minor = 0;
    size_t whole_len = exponent == 0 ? text.len : text.len - exponent - 1;
    if (text.len == 0 || (exponent > 0 && text.len < exponent + 2)) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        bool point = exponent > 0 && i == whole_len;
        if (point ? text.data[i] != '.' : !is_digit(text.data[i])) {
            return false;
        }
        minor = point ? minor : fuzz_digit_add(minor, text.data[i]);
    }
    *ret_minor = minor;
    return whole_len == 1 || text.data[0] != '0';
}

static void check_amount(struct idem_str text, int exponent)
{
    int64_t minor = UNTOUCHED;
    char memory[IDEM_AMOUNT_TEXT_MAX];
    struct idem_buf buf;
    uint64_t theirs = 0;
    bool written = amount_reread(text, (size_t)exponent, &theirs);
    enum idem_amount_fault fault = idem_amount_parse(text, exponent, &minor);
    FUZZ_EXPECT((fault == IDEM_AMOUNT_OK) == (written && theirs > 0 && theirs <= INT64_MAX));
    if (fault != IDEM_AMOUNT_OK) {
        FUZZ_EXPECT(minor == UNTOUCHED);
        FUZZ_EXPECT(fault != IDEM_AMOUNT_ZERO || (written && theirs == 0));
        FUZZ_EXPECT(fault != IDEM_AMOUNT_RANGE || (written && theirs > INT64_MAX));
        return;
    }
    FUZZ_EXPECT(minor == (int64_t)theirs);
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_amount_print(minor, exponent, &buf);
    FUZZ_EXPECT(!buf.full && idem_str_equal(idem_buf_str(&buf), text));
}

static void check_imf(struct idem_str text)
{
    int64_t wall_us = UNTOUCHED;
    char memory[64];
    struct idem_buf buf;
    if (!idem_date_parse_imf(text, &wall_us)) {
        FUZZ_EXPECT(wall_us == UNTOUCHED);
        return;
    }
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_date_print_imf(wall_us, &buf);
    FUZZ_EXPECT(!buf.full && idem_str_equal(idem_buf_str(&buf), text));
}

/* Number of `len` digits at `at`. */
static int digits_at(struct idem_str text, size_t at, size_t len)
{
    int64_t value = 0;
    FUZZ_EXPECT(idem_str_to_i64(idem_str_slice(text, at, len), &value));
    return (int)value;
}

/* What the system's calendar says of the text; its form was accepted. */
static int64_t seconds_by_system(struct idem_str text)
{
    struct tm parts = {
        .tm_year = digits_at(text, 0, 4) - YEAR_BASE,
        .tm_mon = digits_at(text, 5, 2) - 1,
        .tm_mday = digits_at(text, 8, 2),
        .tm_hour = digits_at(text, 11, 2),
        .tm_min = digits_at(text, 14, 2),
        .tm_sec = digits_at(text, 17, 2),
    };
    struct tm named = parts;
    int64_t seconds = timegm(&parts);
    FUZZ_EXPECT(parts.tm_mday == named.tm_mday && parts.tm_mon == named.tm_mon); /* It exists. */
    FUZZ_EXPECT(parts.tm_hour == named.tm_hour && parts.tm_sec == named.tm_sec);
    if (text.data[text.len - 1] == 'Z') {
        return seconds;
    }
    size_t sign = text.len - 6;
    int64_t offset = digits_at(text, sign + 1, 2) * 3600 + digits_at(text, sign + 4, 2) * 60;
    return text.data[sign] == '+' ? seconds - offset : seconds + offset;
}

static void check_rfc3339(struct idem_str text)
{
    int64_t wall_us = UNTOUCHED;
    int64_t again_us = UNTOUCHED;
    char memory[64];
    struct idem_buf buf;
    if (!idem_date_parse_rfc3339(text, &wall_us)) {
        FUZZ_EXPECT(wall_us == UNTOUCHED);
        return;
    }
    FUZZ_EXPECT(wall_us >= 0);
    FUZZ_EXPECT(wall_us / IDEM_US_PER_SECOND == seconds_by_system(text));
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_date_print_rfc3339(wall_us, &buf);
    FUZZ_EXPECT(!buf.full && idem_date_parse_rfc3339(idem_buf_str(&buf), &again_us));
    FUZZ_EXPECT(again_us == wall_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct idem_str text = { .data = (const char *)data + 1, .len = size - 1 };
    if (data[0] >= '0' && data[0] <= '4') {
        check_amount(text, data[0] - '0');
    }
    if (data[0] == 'i') {
        check_imf(text);
    }
    if (data[0] == 'r') {
        check_rfc3339(text);
    }
    return 0;
}
