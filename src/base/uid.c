/*
 * UUIDv7: 48 bits of milliseconds, 74 random bits, version and variant between them. Order inside a
 * millisecond does not matter to us, so there is no counter and no state.
 */
#include "base/uid.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"

bool idem_uid_equal(struct idem_uid left, struct idem_uid right)
{
    return memcmp(left.bytes, right.bytes, sizeof(left.bytes)) == 0;
}

bool idem_uid_is_zero(struct idem_uid uid)
{
    return idem_uid_equal(uid, (struct idem_uid){ .bytes = { 0 } });
}

struct idem_uid idem_uid_make_token(struct idem_random *random)
{
    struct idem_uid uid;
    idem_random_fill(random, uid.bytes, sizeof(uid.bytes));
    return uid;
}

struct idem_uid idem_uid_make(int64_t wall_us, struct idem_random *random)
{
    struct idem_uid uid = idem_uid_make_token(random);
    uint64_t wall_ms = (uint64_t)(wall_us / IDEM_US_PER_MS);
    for (size_t i = 0; i < 6; i++) {
        uid.bytes[i] = (uint8_t)(wall_ms >> (40 - 8 * i));
    }
    uid.bytes[6] = (uint8_t)((uid.bytes[6] & 0x0F) | 0x70);
    uid.bytes[8] = (uint8_t)((uid.bytes[8] & 0x3F) | 0x80);
    return uid;
}

struct idem_uid idem_uid_make_now(void)
{
    struct idem_random random;
    struct idem_clock clock;
    idem_random_init_system(&random);
    idem_clock_init_system(&clock);
    return idem_uid_make(idem_clock_wall_us(&clock), &random);
}

static bool dash_stands_at(size_t index)
{
    return index == 8 || index == 13 || index == 18 || index == 23;
}

void idem_uid_print(struct idem_uid uid, struct idem_buf *buf)
{
    static const uint8_t group_sizes[] = { 4, 2, 2, 2, 6 };
    const uint8_t *at = uid.bytes;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(group_sizes); i++) {
        if (i > 0) {
            idem_buf_add_char(buf, '-');
        }
        idem_buf_add_hex(buf, at, group_sizes[i]);
        at += group_sizes[i];
    }
}

static int hex_value(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    if (byte >= 'A' && byte <= 'F') {
        return byte - 'A' + 10;
    }
    return -1;
}

static bool dashes_stand(struct idem_str text)
{
    return text.len == IDEM_UID_TEXT_LEN && text.data[8] == '-' && text.data[13] == '-' &&
           text.data[18] == '-' && text.data[23] == '-';
}

bool idem_uid_parse(struct idem_str text, struct idem_uid *ret_uid)
{
    if (!dashes_stand(text)) {
        return false;
    }
    struct idem_uid uid = { .bytes = { 0 } };
    size_t digit_count = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (dash_stands_at(i)) {
            continue;
        }
        int value = hex_value(text.data[i]);
        if (value < 0) {
            return false;
        }
        uint8_t *byte = &uid.bytes[digit_count / 2];
        *byte = (uint8_t)(*byte << 4 | value);
        digit_count += 1;
    }
    *ret_uid = uid;
    return true;
}
