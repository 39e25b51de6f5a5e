/*
 * The table of dialect.def. A key is checked to be 0x21-0x7E in every dialect, so that it can stand
 * in a header bare, and quoted with only two bytes to escape (RFC 9651, 4.1.6).
 */
#include "client/dialect.h"

#include "base/bug.h"
#include "base/clock.h"

#define MINUTE (60 * IDEM_US_PER_SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    IDEM_US_PER_DAY

static const struct idem_dialect dialects[IDEM_DIALECT_COUNT] = {
#define IDEM_DIALECT(symbol, name_text, key_header_name, max, quoted, echoes, operations,          \
                     first_sent_name, replayed_name, expires_name, should_retry_name, error_shape, \
                     window, source)                                                               \
    [IDEM_DIALECT_##symbol] = {                                                                    \
        .id = IDEM_DIALECT_##symbol,                                                               \
        .name = (name_text),                                                                       \
        .key_header = (key_header_name),                                                           \
        .key_max = (max),                                                                          \
        .key_quoted = (quoted),                                                                    \
        .echoes_key = (echoes),                                                                    \
        .has_operations = (operations),                                                            \
        .first_sent = (first_sent_name),                                                           \
        .replayed = (replayed_name),                                                               \
        .expires = (expires_name),                                                                 \
        .should_retry = (should_retry_name),                                                       \
        .shape = IDEM_SHAPE_##error_shape,                                                         \
        .window_us = (window),                                                                     \
    },
#include "client/dialect.def" // IWYU pragma: keep
#undef IDEM_DIALECT
};

const struct idem_dialect *idem_dialect_find(struct idem_str name)
{
    for (size_t i = IDEM_DIALECT_ANY + 1; i < IDEM_DIALECT_COUNT; i++) {
        if (idem_str_equal(name, idem_str_from(dialects[i].name))) {
            return &dialects[i];
        }
    }
    return NULL;
}

const struct idem_dialect *idem_dialect_get(enum idem_dialect_id id)
{
    IDEM_ASSERT(id > IDEM_DIALECT_ANY);
    IDEM_ASSERT(id < IDEM_DIALECT_COUNT);
    return &dialects[id];
}

bool idem_dialect_takes_key(const struct idem_dialect *dialect, struct idem_str key)
{
    if (key.len == 0 || key.len > dialect->key_max) {
        return false;
    }
    for (size_t i = 0; i < key.len; i++) {
        if (key.data[i] < 0x21 || key.data[i] > 0x7E) {
            return false;
        }
    }
    return true;
}

void idem_dialect_key_line(const struct idem_dialect *dialect,
                           struct idem_str key,
                           struct idem_buf *buf)
{
    idem_buf_add(buf, idem_str_from(dialect->key_header));
    idem_buf_add(buf, IDEM_STR(": "));
    if (!dialect->key_quoted) {
        idem_buf_add(buf, key);
        return;
    }
    idem_buf_add_char(buf, '"');
    for (size_t i = 0; i < key.len; i++) {
        if (key.data[i] == '"' || key.data[i] == '\\') {
            idem_buf_add_char(buf, '\\');
        }
        idem_buf_add_char(buf, key.data[i]);
    }
    idem_buf_add_char(buf, '"');
}
