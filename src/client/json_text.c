/*
 * One walk, no heap, no recursion: of what is open only a bit each is kept, whether it is an
 * object. An object or array that was cut somewhere has something left open, so no part of a whole
 * one is whole.
 */
#include "client/json_text.h"

#include <stdint.h>
#include <string.h>

#include "base/bug.h"

enum expectation {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END, /* Behind "[". */
    EXPECT_NAME,
    EXPECT_NAME_OR_END, /* Behind "{". */
    EXPECT_COLON,
    EXPECT_BEHIND /* A value has ended. */
};

struct walk {
    struct idem_str text;
    size_t at;
    enum expectation expectation;
    size_t depth;
    uint8_t objects[IDEM_JSON_TEXT_DEPTH_MAX / 8]; /* A bit for each that is open. */
};

static int peek(const struct walk *walk)
{
    return walk->at < walk->text.len ? (unsigned char)walk->text.data[walk->at] : -1;
}

static bool is_one_of(int byte, const char *bytes)
{
    return byte > 0 && strchr(bytes, byte) != NULL;
}

static bool is_digit(int byte)
{
    return byte >= '0' && byte <= '9';
}

static bool in_object(const struct walk *walk)
{
    size_t index = walk->depth - 1;
    return walk->depth > 0 && (walk->objects[index / 8] >> (index % 8) & 1) != 0;
}

static bool container_open(struct walk *walk, bool object)
{
    if (walk->depth == IDEM_JSON_TEXT_DEPTH_MAX) {
        return false;
    }
    uint8_t bit = (uint8_t)(1U << (walk->depth % 8));
    uint8_t *byte = &walk->objects[walk->depth / 8];
    *byte = (uint8_t)(object ? *byte | bit : *byte & ~bit);
    walk->depth += 1;
    walk->at += 1;
    walk->expectation = object ? EXPECT_NAME_OR_END : EXPECT_VALUE_OR_END;
    return true;
}

static bool container_close(struct walk *walk)
{
    IDEM_ASSERT(walk->depth > 0);
    walk->depth -= 1;
    walk->at += 1;
    walk->expectation = EXPECT_BEHIND;
    return true;
}

/* At a backslash. */
static bool escape_skip(struct walk *walk)
{
    walk->at += 1;
    int byte = peek(walk);
    walk->at += 1;
    if (byte != 'u') {
        return is_one_of(byte, "\"\\/bfnrt");
    }
    for (size_t i = 0; i < 4; i++) {
        if (!is_one_of(peek(walk), "0123456789abcdefABCDEF")) {
            return false;
        }
        walk->at += 1;
    }
    return true;
}

/* At a quote. */
static bool string_skip(struct walk *walk)
{
    walk->at += 1;
    int byte = peek(walk);
    while (byte != '"') {
        if (byte < 0x20 || (byte == '\\' && !escape_skip(walk))) {
            return false; /* Cut, or a control character. */
        }
        walk->at += byte == '\\' ? 0 : 1;
        byte = peek(walk);
    }
    walk->at += 1;
    return true;
}

static bool digits_skip(struct walk *walk)
{
    size_t from = walk->at;
    while (is_digit(peek(walk))) {
        walk->at += 1;
    }
    return walk->at > from;
}

static bool number_skip(struct walk *walk)
{
    walk->at += peek(walk) == '-' ? 1 : 0;
    if (peek(walk) == '0') {
        walk->at += 1;
    } else if (!digits_skip(walk)) {
        return false;
    }
    if (peek(walk) == '.') {
        walk->at += 1;
        if (!digits_skip(walk)) {
            return false;
        }
    }
    if (!is_one_of(peek(walk), "eE")) {
        return true;
    }
    walk->at += 1;
    walk->at += is_one_of(peek(walk), "+-") ? 1 : 0;
    return digits_skip(walk);
}

static bool word_skip(struct walk *walk)
{
    const struct idem_str words[] = { IDEM_STR("true"), IDEM_STR("false"), IDEM_STR("null") };
    struct idem_str rest = idem_str_slice(walk->text, walk->at, walk->text.len);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(words); i++) {
        if (idem_str_starts(rest, words[i])) {
            walk->at += words[i].len;
            return true;
        }
    }
    return false;
}

static bool value_skip(struct walk *walk, int byte)
{
    if (byte == '{' || byte == '[') {
        return container_open(walk, byte == '{');
    }
    walk->expectation = EXPECT_BEHIND;
    if (byte == '"') {
        return string_skip(walk);
    }
    return byte == '-' || is_digit(byte) ? number_skip(walk) : word_skip(walk);
}

static bool name_skip(struct walk *walk, int byte)
{
    walk->expectation = EXPECT_COLON;
    return byte == '"' && string_skip(walk);
}

/* Behind a value. */
static bool behind_skip(struct walk *walk, int byte)
{
    bool object = in_object(walk);
    if (walk->depth == 0) {
        return false; /* Text behind the whole. */
    }
    if (byte == (object ? '}' : ']')) {
        return container_close(walk);
    }
    walk->at += 1;
    walk->expectation = object ? EXPECT_NAME : EXPECT_VALUE;
    return byte == ',';
}

/* What stands here, which is not white space. False: it does not belong here. */
static bool step(struct walk *walk, int byte)
{
    switch (walk->expectation) {
    case EXPECT_VALUE_OR_END:
        return byte == ']' ? container_close(walk) : value_skip(walk, byte);
    case EXPECT_VALUE:
        return value_skip(walk, byte);
    case EXPECT_NAME_OR_END:
        return byte == '}' ? container_close(walk) : name_skip(walk, byte);
    case EXPECT_NAME:
        return name_skip(walk, byte);
    case EXPECT_COLON:
        walk->at += 1;
        walk->expectation = EXPECT_VALUE;
        return byte == ':';
    case EXPECT_BEHIND:
        return behind_skip(walk, byte);
    }
    IDEM_UNREACHABLE();
}

bool idem_json_text_is_whole(struct idem_str text)
{
    const struct idem_str mark = IDEM_STR("\xEF\xBB\xBF");
    struct walk walk = { .text = text, .expectation = EXPECT_VALUE };
    walk.at = idem_str_starts(text, mark) ? mark.len : 0;
    for (int byte = peek(&walk); byte >= 0; byte = peek(&walk)) {
        if (is_one_of(byte, " \t\r\n")) {
            walk.at += 1;
        } else if (!step(&walk, byte)) {
            return false;
        }
    }
    return walk.expectation == EXPECT_BEHIND && walk.depth == 0;
}
