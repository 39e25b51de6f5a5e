/*
 * Fuzzes words of a command line: header lines and lengths of time.
 *
 * The input is a letter and a text: 'h' a header line, 'd' a length of time with days, 't' one
 * without. Properties, for any bytes:
 *   - a header line that is taken is one that the client takes: a token, a colon, no control
 *     character, so that nothing in it ends the line; and its name, in any case of letters, is none
 *     in which credentials travel;
 *   - a length of time is taken exactly if it is a whole number with a unit, more than nothing and
 *     at most 366 days, by a second reader, and is that many milliseconds; a number alone never is;
 *   - a refusal leaves the result alone, and says what to write instead.
 */
#include "cli/duration.h"
#include "cli/header_line.h"

#include <string.h>
#include <strings.h>

#include "client/request.h"

#include "fuzz/fuzz.h"

#define SIZE_TRIED 1024

/* ---- header lines ---- */

static bool names_credential(struct idem_str name)
{
    static const char *const names[] = { "authorization", "proxy-authorization", "cookie",
                                         "x-api-key", "x-merchant-token" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(names); i++) {
        if (strlen(names[i]) == name.len && strncasecmp(names[i], name.data, name.len) == 0) {
            return true;
        }
    }
    return false;
}

static void check_line(struct idem_str line)
{
    enum idem_header_fault fault = idem_header_check(line, "X-Merchant-Token");
    struct idem_str name = idem_str_slice(line, 0, idem_str_find(line, ':'));
    bool credential = names_credential(name);
    if (fault == IDEM_HEADER_OK) {
        FUZZ_EXPECT(idem_request_line(line) && !credential);
        FUZZ_EXPECT(memchr(line.data, '\r', line.len) == NULL);
        FUZZ_EXPECT(memchr(line.data, '\n', line.len) == NULL);
        FUZZ_EXPECT(memchr(line.data, '\0', line.len) == NULL);
        return;
    }
    FUZZ_EXPECT(!idem_request_line(line) || credential);
    FUZZ_EXPECT(strlen(idem_header_fault_text(fault)) > 0);
}

/* ---- lengths of time ---- */

/* Milliseconds; 0: it is none. */
static int64_t duration_reread(struct idem_str text, bool days)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 } };
    uint64_t count = 0;
    size_t at = 0;
    for (; at < text.len && text.data[at] >= '0' && text.data[at] <= '9'; at++) {
        count = fuzz_digit_add(count, text.data[at]);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(units) && at > 0; i++) {
        uint64_t max = UINT64_C(366) * 86400000 / units[i].ms;
        bool usable = i < 4 || days;
        if (usable && strlen(units[i].unit) == text.len - at &&
            memcmp(units[i].unit, text.data + at, text.len - at) == 0) {
            return count <= max ? (int64_t)(count * units[i].ms) : 0;
        }
    }
    return 0;
}

static void check_duration(struct idem_str text, bool days)
{
    int64_t ms = -7;
    enum idem_duration_fault fault = idem_duration_parse(text, days, &ms);
    int64_t expected = duration_reread(text, days);
    FUZZ_EXPECT((fault == IDEM_DURATION_OK) == (expected > 0));
    FUZZ_EXPECT(ms == (expected > 0 ? expected : -7));
    FUZZ_EXPECT(strlen(idem_duration_fault_text(fault)) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > SIZE_TRIED) {
        return 0;
    }
    struct idem_str text = { .data = (const char *)data + 1, .len = size - 1 };
    if (data[0] == 'h') {
        check_line(text);
    } else if (data[0] == 'd' || data[0] == 't') {
        check_duration(text, data[0] == 'd');
    }
    return 0;
}
