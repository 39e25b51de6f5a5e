/*
 * Reading JSON so strictly that two readers cannot disagree about it.
 *
 * The text is read once, left to right, by a machine of seven expectations and a stack of open
 * brackets, so that nesting costs no C stack. A fingerprint rests on this file (P5): whatever it
 * accepts has one meaning, and whatever has one meaning has one canonical form.
 *
 * Members are sorted when their object closes, by a merge sort on links inside the tape: it needs
 * no memory, and it cannot be made slow. Each comparison of a merge puts one name in place and
 * compares no more bytes than that name has (and one), so a round of merging costs at most the
 * bytes of all names, and n names take log2(n) rounds: 64 KiB of names cost some 700,000 byte
 * comparisons, whoever chose them. Equal names are then neighbours, which makes the search for
 * duplicates linear, and the canonical form walks the same links.
 *
 * A hash table would need memory and a secret; comparing each name with each would let a body of
 * 64 KiB ask for a hundred million comparisons.
 */
#include "base/json.h"

#include <string.h>

#include "base/bug.h"
#include "base/json_internal.h"

#define RUNS_MAX 32 /* Run n has 2^n names, and a tape has fewer than 2^32 tokens. */

enum expectation {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END, /* Behind "[". */
    EXPECT_NAME,
    EXPECT_NAME_OR_END, /* Behind "{". */
    EXPECT_COLON,
    EXPECT_COMMA_OR_END, /* A value has ended inside a container. */
    EXPECT_NOTHING       /* The root has ended. */
};

struct reader {
    struct idem_json *json;
    struct idem_str text;
    size_t at;
    enum expectation expectation;
    uint32_t open[IDEM_JSON_DEPTH_MAX]; /* Tokens of the containers around `at`. */
    size_t depth;
    struct idem_json_fault fault;
};

static bool fail(struct reader *reader, size_t offset, const char *what)
{
    reader->fault = (struct idem_json_fault){ .offset = offset, .what = what };
    return false;
}

/* The byte `ahead` of here, or -1 behind the end. */
static int peek(const struct reader *reader, size_t ahead)
{
    if (ahead >= reader->text.len - reader->at) {
        return -1;
    }
    return (unsigned char)reader->text.data[reader->at + ahead];
}

static bool is_digit(int byte)
{
    return byte >= '0' && byte <= '9';
}

static bool read_escape(struct reader *reader)
{
    size_t from = reader->at;
    int byte = peek(reader, 1);
    if (byte > 0 && strchr("\"\\/bfnrt", byte) != NULL) {
        reader->at += 2;
        return true;
    }
    int32_t unit = idem_json_unit_at(reader->text, from);
    if (unit < 0) {
        return fail(reader, from, "invalid escape");
    }
    reader->at += 6;
    if (idem_json_unit_is_low(unit)) {
        return fail(reader, from, "lone surrogate");
    }
    if (idem_json_unit_is_high(unit)) {
        if (!idem_json_unit_is_low(idem_json_unit_at(reader->text, from + 6))) {
            return fail(reader, from, "lone surrogate");
        }
        reader->at += 6;
    }
    return true;
}

/* Reads one character of a string, which is not its closing quote. */
static bool read_character(struct reader *reader, bool *ret_escaped)
{
    int byte = peek(reader, 0);
    if (byte < 0) {
        return fail(reader, reader->at, "unfinished string");
    }
    if (byte < 0x20) {
        return fail(reader, reader->at, "raw control character");
    }
    if (byte == '\\') {
        *ret_escaped = true;
        return read_escape(reader);
    }
    size_t size = idem_utf8_size(idem_str_slice(reader->text, reader->at, reader->text.len));
    if (size == 0) {
        return fail(reader, reader->at, "invalid UTF-8");
    }
    reader->at += size;
    return true;
}

/* Appends a token whose text begins at `from` and ends here. NULL if the tape is full. */
static struct idem_json_token *token_add(struct reader *reader,
                                         enum idem_json_kind kind,
                                         size_t from)
{
    struct idem_json *json = reader->json;
    if (json->count == json->max) {
        (void)fail(reader, from, "too many values"); /* The caller returns false. */
        return NULL;
    }
    struct idem_json_token *token = &json->tokens[json->count];
    json->count += 1;
    *token = (struct idem_json_token){
        .kind = kind,
        .raw = idem_str_slice(reader->text, from, reader->at - from),
        .next = (uint32_t)json->count,
    };
    return token;
}

static bool read_string(struct reader *reader)
{
    size_t from = reader->at;
    bool escaped = false;
    reader->at += 1;
    while (peek(reader, 0) != '"') {
        if (!read_character(reader, &escaped)) {
            return false;
        }
    }
    reader->at += 1;
    struct idem_json_token *token = token_add(reader, IDEM_JSON_STRING, from);
    if (token == NULL) {
        return false;
    }
    token->raw = (struct idem_str){ .data = token->raw.data + 1, .len = token->raw.len - 2 };
    token->escaped = escaped;
    return true;
}

static bool read_digits(struct reader *reader)
{
    if (!is_digit(peek(reader, 0))) {
        return fail(reader, reader->at, "digit expected");
    }
    while (is_digit(peek(reader, 0))) {
        reader->at += 1;
    }
    return true;
}

static bool read_exponent(struct reader *reader)
{
    int byte = peek(reader, 0);
    if (byte != 'e' && byte != 'E') {
        return true;
    }
    reader->at += 1;
    byte = peek(reader, 0);
    if (byte == '+' || byte == '-') {
        reader->at += 1;
    }
    return read_digits(reader);
}

static bool read_number(struct reader *reader)
{
    size_t from = reader->at;
    if (peek(reader, 0) == '-') {
        reader->at += 1;
    }
    if (peek(reader, 0) == '0' && is_digit(peek(reader, 1))) {
        return fail(reader, reader->at, "leading zero");
    }
    if (!read_digits(reader)) {
        return false;
    }
    if (peek(reader, 0) == '.') {
        reader->at += 1;
        if (!read_digits(reader)) {
            return false;
        }
    }
    return read_exponent(reader) && token_add(reader, IDEM_JSON_NUMBER, from) != NULL;
}

static bool read_word(struct reader *reader, struct idem_str word, enum idem_json_kind kind)
{
    size_t from = reader->at;
    if (!idem_str_starts(idem_str_slice(reader->text, from, word.len), word)) {
        return fail(reader, from, "unknown word");
    }
    reader->at += word.len;
    return token_add(reader, kind, from) != NULL;
}

static bool read_open(struct reader *reader, enum idem_json_kind kind)
{
    if (reader->depth == IDEM_JSON_DEPTH_MAX) {
        return fail(reader, reader->at, "nested too deeply");
    }
    uint32_t index = (uint32_t)reader->json->count;
    if (token_add(reader, kind, reader->at) == NULL) {
        return false;
    }
    reader->open[reader->depth] = index;
    reader->depth += 1;
    reader->at += 1;
    reader->expectation = kind == IDEM_JSON_OBJECT ? EXPECT_NAME_OR_END : EXPECT_VALUE_OR_END;
    return true;
}

/* What may follow a value that has ended. */
static void expect_behind_value(struct reader *reader)
{
    reader->expectation = reader->depth == 0 ? EXPECT_NOTHING : EXPECT_COMMA_OR_END;
}

static struct idem_json_token *innermost(struct reader *reader)
{
    IDEM_ASSERT(reader->depth > 0);
    return &reader->json->tokens[reader->open[reader->depth - 1]];
}

static bool read_scalar(struct reader *reader, int byte)
{
    switch (byte) {
    case '"':
        return read_string(reader);
    case 't':
        return read_word(reader, IDEM_STR("true"), IDEM_JSON_TRUE);
    case 'f':
        return read_word(reader, IDEM_STR("false"), IDEM_JSON_FALSE);
    case 'n':
        return read_word(reader, IDEM_STR("null"), IDEM_JSON_NULL);
    default:
        break;
    }
    if (byte == '-' || is_digit(byte)) {
        return read_number(reader);
    }
    bool marked = reader->at == 0 && idem_str_starts(reader->text, IDEM_STR("\xEF\xBB\xBF"));
    return fail(reader, reader->at, marked ? "byte order mark" : "value expected");
}

static bool read_value(struct reader *reader, int byte)
{
    if (reader->depth > 0 && innermost(reader)->kind == IDEM_JSON_ARRAY) {
        innermost(reader)->count += 1;
    }
    if (byte == '{') {
        return read_open(reader, IDEM_JSON_OBJECT);
    }
    if (byte == '[') {
        return read_open(reader, IDEM_JSON_ARRAY);
    }
    if (!read_scalar(reader, byte)) {
        return false;
    }
    expect_behind_value(reader);
    return true;
}

static bool read_name(struct reader *reader, int byte)
{
    if (byte != '"') {
        return fail(reader, reader->at, "member name expected");
    }
    innermost(reader)->count += 1;
    reader->expectation = EXPECT_COLON;
    return read_string(reader);
}

/* By the bytes of the unescaped names, which is also by their code points. */
static int names_compare(const struct idem_json_token *left, const struct idem_json_token *right)
{
    if (!left->escaped && !right->escaped) {
        return idem_str_compare(left->raw, right->raw);
    }
    struct idem_json_unescaping left_string = { .rest = left->raw };
    struct idem_json_unescaping right_string = { .rest = right->raw };
    int left_byte;
    int right_byte;
    do {
        left_byte = idem_json_unescaping_next(&left_string);
        right_byte = idem_json_unescaping_next(&right_string);
    } while (left_byte == right_byte && left_byte >= 0);
    return left_byte - right_byte;
}

/* Merges two sorted runs. Of equal names that of `left` goes first: it stands first in the text. */
static uint32_t runs_merge(struct idem_json_token *tokens, uint32_t left, uint32_t right)
{
    uint32_t first = 0;
    uint32_t *link = &first;
    while (left != 0 && right != 0) {
        bool in_order = names_compare(&tokens[left], &tokens[right]) <= 0;
        uint32_t *source = in_order ? &left : &right;
        uint32_t name = *source;
        *link = name;
        link = &tokens[name].sorted;
        *source = tokens[name].sorted;
    }
    *link = left != 0 ? left : right;
    return first;
}

/* Sorts as binary counting does: two runs of one length become one of twice that length. */
static void members_sort(struct idem_json *json, struct idem_json_token *object, uint32_t name)
{
    struct idem_json_token *tokens = json->tokens;
    uint32_t runs[RUNS_MAX] = { 0 };
    while (name < json->count) {
        uint32_t run = name;
        name = tokens[name + 1].next;
        size_t i = 0;
        while (runs[i] != 0) {
            run = runs_merge(tokens, runs[i], run);
            runs[i] = 0;
            i += 1;
            IDEM_ASSERT(i < RUNS_MAX);
        }
        runs[i] = run;
    }
    for (size_t i = 0; i < RUNS_MAX; i++) {
        object->sorted = runs_merge(tokens, runs[i], object->sorted);
    }
}

/* Finds the first name in the text that repeats an earlier one. */
static bool refuse_duplicates(struct reader *reader, const struct idem_json_token *object)
{
    const struct idem_json_token *tokens = reader->json->tokens;
    const struct idem_json_token *repeated = NULL;
    uint32_t name = object->sorted;
    while (name != 0 && tokens[name].sorted != 0) {
        const struct idem_json_token *later = &tokens[tokens[name].sorted];
        if (names_compare(&tokens[name], later) == 0 && (repeated == NULL || later < repeated)) {
            repeated = later;
        }
        name = tokens[name].sorted;
    }
    if (repeated == NULL) {
        return true;
    }
    size_t quote = (size_t)(repeated->raw.data - reader->text.data) - 1;
    return fail(reader, quote, "duplicate member name");
}

static bool read_close(struct reader *reader)
{
    uint32_t index = reader->open[reader->depth - 1];
    struct idem_json_token *container = innermost(reader);
    reader->depth -= 1;
    reader->at += 1;
    container->next = (uint32_t)reader->json->count;
    container->raw.len = (size_t)(reader->text.data + reader->at - container->raw.data);
    expect_behind_value(reader);
    if (container->kind == IDEM_JSON_ARRAY) {
        return true;
    }
    members_sort(reader->json, container, index + 1);
    return refuse_duplicates(reader, container);
}

static bool read_comma_or_end(struct reader *reader, int byte)
{
    bool is_object = innermost(reader)->kind == IDEM_JSON_OBJECT;
    if (byte == (is_object ? '}' : ']')) {
        return read_close(reader);
    }
    if (byte != ',') {
        return fail(reader, reader->at, "comma or end expected");
    }
    reader->at += 1;
    reader->expectation = is_object ? EXPECT_NAME : EXPECT_VALUE;
    return true;
}

static bool read_colon(struct reader *reader, int byte)
{
    if (byte != ':') {
        return fail(reader, reader->at, "colon expected");
    }
    reader->at += 1;
    reader->expectation = EXPECT_VALUE;
    return true;
}

/* Reads what stands here, which is not white space. */
static bool read_next(struct reader *reader, int byte)
{
    switch (reader->expectation) {
    case EXPECT_VALUE_OR_END:
        return byte == ']' ? read_close(reader) : read_value(reader, byte);
    case EXPECT_VALUE:
        return read_value(reader, byte);
    case EXPECT_NAME_OR_END:
        return byte == '}' ? read_close(reader) : read_name(reader, byte);
    case EXPECT_NAME:
        return read_name(reader, byte);
    case EXPECT_COLON:
        return read_colon(reader, byte);
    case EXPECT_COMMA_OR_END:
        return read_comma_or_end(reader, byte);
    case EXPECT_NOTHING:
        return fail(reader, reader->at, "text behind the value");
    }
    IDEM_UNREACHABLE();
}

static void skip_space(struct reader *reader)
{
    int byte = peek(reader, 0);
    while (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t') {
        reader->at += 1;
        byte = peek(reader, 0);
    }
}

static bool read_text(struct reader *reader)
{
    skip_space(reader);
    while (reader->at < reader->text.len) {
        if (!read_next(reader, peek(reader, 0))) {
            return false;
        }
        skip_space(reader);
    }
    if (reader->expectation != EXPECT_NOTHING) {
        return fail(reader, reader->at, "unexpected end");
    }
    IDEM_ASSERT(reader->depth == 0);
    return true;
}

void idem_json_init(struct idem_json *json, struct idem_json_token *tokens, size_t max)
{
    IDEM_ASSERT(tokens != NULL || max == 0);
    IDEM_ASSERT(max < UINT32_MAX);
    *json = (struct idem_json){ .tokens = tokens, .max = max };
}

bool idem_json_parse(struct idem_json *json,
                     struct idem_str text,
                     struct idem_json_fault *ret_fault)
{
    struct reader reader = { .json = json, .text = text, .expectation = EXPECT_VALUE };
    json->count = 0;
    if (!read_text(&reader)) {
        json->count = 0; /* Half a document is no document. */
        *ret_fault = reader.fault;
        return false;
    }
    IDEM_ASSERT(json->tokens[0].next == json->count);
    return true;
}

static const struct idem_json_token *token_at(const struct idem_json *json, size_t index)
{
    IDEM_ASSERT(index < json->count);
    return &json->tokens[index];
}

size_t idem_json_member(const struct idem_json *json, size_t object, struct idem_str name)
{
    const struct idem_json_token *container = token_at(json, object);
    IDEM_ASSERT(container->kind == IDEM_JSON_OBJECT);
    for (uint32_t i = container->sorted; i != 0; i = json->tokens[i].sorted) {
        struct idem_json_unescaping string = { .rest = json->tokens[i].raw };
        size_t at = 0;
        int byte = idem_json_unescaping_next(&string);
        while (at < name.len && byte == (unsigned char)name.data[at]) {
            at += 1;
            byte = idem_json_unescaping_next(&string);
        }
        if (at == name.len && byte < 0) {
            return (size_t)i + 1;
        }
    }
    return 0;
}

bool idem_json_is_media_type(struct idem_str value)
{
    struct idem_str type = idem_str_trim(idem_str_next(&value, ';'));
    const size_t suffix_len = 4; /* "json" behind a '/' or '+'. */
    if (type.len <= suffix_len) {
        return false;
    }
    struct idem_str suffix = idem_str_slice(type, type.len - suffix_len, suffix_len);
    char before = type.data[type.len - suffix_len - 1];
    return idem_str_equal_nocase(suffix, IDEM_STR("json")) && (before == '/' || before == '+');
}
