/*
 * Fuzzes the canonical form by pairs of texts.
 *
 * The input is a JSON text, a zero byte, and bytes that drive changes. Properties, for any text
 * that is read and whose form can be made:
 *   - the same meaning gives the same bytes: the text is written again with its members in another
 *     order, letters as escapes, numbers in other spellings and space between the tokens, and the
 *     form is the same;
 *   - another meaning never: the text with one byte changed, if jansson reads both and finds them
 *     different, has another form; if both have whole numbers only and jansson finds them equal,
 *     it has the same.
 */
#include "base/json.h"

#include <jansson.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define SIZE_TRIED 2048
#define FORM_SIZE  ((size_t)4 * SIZE_TRIED)
#define TEXT_SIZE  ((size_t)64 * SIZE_TRIED)
#define ZEROS_MAX  3

static struct idem_json_token tape[SIZE_TRIED];
static struct idem_json_token second_tape[TEXT_SIZE];
static char form_memory[FORM_SIZE];
static char second_form_memory[TEXT_SIZE];
static char text_memory[TEXT_SIZE];

/* The bytes that drive changes, again and again. */
struct dice {
    struct idem_str bytes;
    size_t at;
};

static unsigned roll(struct dice *dice)
{
    if (dice->bytes.len == 0) {
        return 0;
    }
    dice->at += 1;
    unsigned char byte = (unsigned char)dice->bytes.data[dice->at % dice->bytes.len];
    return byte + (unsigned)(dice->at / dice->bytes.len);
}

/* data NULL: it cannot be read, or an exponent is too large. */
static struct idem_str form_of(struct idem_str text, char *memory, size_t size)
{
    struct idem_json json;
    struct idem_json_fault fault;
    struct idem_buf buf;
    idem_json_init(&json, second_tape, TEXT_SIZE);
    idem_buf_init(&buf, memory, size);
    bool made = idem_json_parse(&json, text, &fault) && idem_json_canonical(&json, NULL, 0, &buf);
    return made ? idem_buf_str(&buf) : (struct idem_str){ .data = NULL };
}

/* ---- the same meaning in other bytes ---- */

static void space_add(struct idem_buf *buf, struct dice *dice)
{
    static const char *const spaces[] = { "", " ", "\t", "\r\n" };
    idem_buf_add(buf, idem_str_from(spaces[roll(dice) % 4]));
}

/* ASCII as \u00xx now and then; the rest as it stands. `raw` is valid. */
static void string_add(struct idem_buf *buf, struct idem_str raw, struct dice *dice)
{
    idem_buf_add_char(buf, '"');
    for (size_t i = 0; i < raw.len; i++) {
        unsigned char byte = (unsigned char)raw.data[i];
        if (byte == '\\') {
            size_t len = raw.data[i + 1] == 'u' ? 6 : 2;
            idem_buf_add(buf, idem_str_slice(raw, i, len));
            i += len - 1;
        } else if (byte < 0x80 && roll(dice) % 3 == 0) {
            idem_buf_printf(buf, roll(dice) % 2 == 0 ? "\\u%04x" : "\\u%04X", byte);
        } else {
            idem_buf_add_char(buf, (char)byte);
        }
    }
    idem_buf_add_char(buf, '"');
}

/* -12.5e3 as -12.500E+3 or, without an exponent, as -12500.000e-3 and the like. */
static void number_add(struct idem_buf *buf, struct idem_str raw, struct dice *dice)
{
    unsigned zeros = roll(dice) % (ZEROS_MAX + 1);
    size_t e =
        idem_str_find(raw, 'e') < raw.len ? idem_str_find(raw, 'e') : idem_str_find(raw, 'E');
    size_t point = idem_str_find(raw, '.');
    bool whole = point == raw.len && e == raw.len;
    bool zero = idem_str_equal(raw, IDEM_STR("0")) || idem_str_equal(raw, IDEM_STR("-0"));
    idem_buf_add(buf, idem_str_slice(raw, 0, e));
    if (whole && !zero && roll(dice) % 2 == 0) {
        idem_buf_add(buf, idem_str_slice(IDEM_STR("000"), 0, zeros));
        idem_buf_printf(buf, "e-%u", zeros);
        return;
    }
    idem_buf_add(buf, point == raw.len ? IDEM_STR(".0") : IDEM_STR(""));
    idem_buf_add(buf, idem_str_slice(IDEM_STR("000"), 0, zeros));
    idem_buf_add(buf, e < raw.len ? idem_str_slice(raw, e, raw.len) : IDEM_STR("E+0"));
}

static void scalar_add(struct idem_buf *buf, const struct idem_json_token *token, struct dice *dice)
{
    space_add(buf, dice);
    if (token->kind == IDEM_JSON_STRING) {
        string_add(buf, token->raw, dice);
    } else if (token->kind == IDEM_JSON_NUMBER) {
        number_add(buf, token->raw, dice);
    } else {
        idem_buf_add(buf, token->raw);
    }
    space_add(buf, dice);
}

/* An array or object whose children are being written. */
struct open {
    uint32_t index;
    uint32_t written;
    uint32_t first; /* The child to begin with: an object's order turns. */
};

struct nest {
    struct open stack[IDEM_JSON_DEPTH_MAX];
    size_t depth;
};

static uint32_t child_at(const struct idem_json *json, const struct open *open)
{
    const struct idem_json_token *container = &json->tokens[open->index];
    uint32_t wanted = (open->first + open->written) % container->count;
    uint32_t child = open->index + 1;
    for (uint32_t i = 0; i < wanted; i++) {
        child = json->tokens[child].next;
        child = container->kind == IDEM_JSON_OBJECT ? json->tokens[child].next : child;
    }
    return child;
}

/* Writes what stands before the next child; gives the index of its value. */
static uint32_t child_begin(const struct idem_json *json,
                            struct open *open,
                            struct idem_buf *buf,
                            struct dice *dice)
{
    uint32_t child = child_at(json, open);
    idem_buf_add(buf, open->written > 0 ? IDEM_STR(",") : IDEM_STR(""));
    open->written += 1;
    if (json->tokens[open->index].kind == IDEM_JSON_OBJECT) {
        scalar_add(buf, &json->tokens[child], dice);
        idem_buf_add_char(buf, ':');
        child = json->tokens[child].next;
    }
    return child;
}

/* Writes the value at `index`; an array or object is only opened. */
static void value_begin(const struct idem_json *json,
                        uint32_t index,
                        struct nest *nest,
                        struct idem_buf *buf,
                        struct dice *dice)
{
    const struct idem_json_token *token = &json->tokens[index];
    bool object = token->kind == IDEM_JSON_OBJECT;
    if (!object && token->kind != IDEM_JSON_ARRAY) {
        scalar_add(buf, token, dice);
        return;
    }
    uint32_t first = object && token->count > 0 ? roll(dice) % token->count : 0;
    idem_buf_add_char(buf, object ? '{' : '[');
    nest->stack[nest->depth++] = (struct open){ .index = index, .first = first };
}

static void rewrite(const struct idem_json *json, struct idem_buf *buf, struct dice *dice)
{
    struct nest nest = { .depth = 0 };
    value_begin(json, 0, &nest, buf, dice);
    while (nest.depth > 0) {
        struct open *open = &nest.stack[nest.depth - 1];
        const struct idem_json_token *container = &json->tokens[open->index];
        if (open->written < container->count) {
            uint32_t child = child_begin(json, open, buf, dice);
            value_begin(json, child, &nest, buf, dice);
            continue;
        }
        idem_buf_add(buf, container->kind == IDEM_JSON_OBJECT ? IDEM_STR(" }") : IDEM_STR(" ]"));
        nest.depth -= 1;
    }
}

/* ---- another meaning ---- */

static bool is_whole(struct idem_str text)
{
    struct idem_json json;
    struct idem_json_fault fault;
    idem_json_init(&json, second_tape, TEXT_SIZE);
    FUZZ_EXPECT(idem_json_parse(&json, text, &fault));
    for (size_t i = 0; i < json.count; i++) {
        struct idem_str raw = json.tokens[i].raw;
        if (json.tokens[i].kind == IDEM_JSON_NUMBER &&
            (idem_str_find(raw, '.') < raw.len || idem_str_find(raw, 'e') < raw.len ||
             idem_str_find(raw, 'E') < raw.len)) {
            return false;
        }
    }
    return true;
}

/* 1 equal, 0 different, -1 jansson reads not both. */
static int equal_to_jansson(struct idem_str left, struct idem_str right, size_t flags)
{
    flags |= JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_t *first = json_loadb(left.data, left.len, flags, NULL);
    json_t *second = json_loadb(right.data, right.len, flags, NULL);
    int equal = first == NULL || second == NULL ? -1 : json_equal(first, second);
    json_decref(first);
    json_decref(second);
    return equal;
}

static void check_changed(struct idem_str text, struct idem_str form, struct dice *dice)
{
    char changed[SIZE_TRIED];
    memcpy(changed, text.data, text.len);
    size_t at = (roll(dice) * 256U + roll(dice)) % text.len;
    changed[at] = (char)roll(dice);
    struct idem_str other = { .data = changed, .len = text.len };
    struct idem_str second = form_of(other, second_form_memory, sizeof(second_form_memory));
    if (second.data == NULL || idem_str_find(other, '\0') < other.len) {
        return;
    }
    bool same = idem_str_equal(form, second);
    FUZZ_EXPECT(!same || equal_to_jansson(text, other, JSON_DECODE_INT_AS_REAL) != 0);
    if (is_whole(text) && is_whole(other)) {
        int equal = equal_to_jansson(text, other, 0);
        FUZZ_EXPECT(equal < 0 || same == (equal == 1));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_json json;
    struct idem_json_fault fault;
    struct idem_buf buf;
    struct idem_buf form_buf;
    struct idem_str bytes = { .data = (const char *)data, .len = size };
    if (size > SIZE_TRIED) {
        return 0; /* The tapes and texts here are not made for more. */
    }
    struct idem_str text = idem_str_next(&bytes, '\0');
    struct dice dice = { .bytes = bytes };
    idem_json_init(&json, tape, SIZE_TRIED);
    idem_buf_init(&form_buf, form_memory, sizeof(form_memory));
    if (!idem_json_parse(&json, text, &fault) || !idem_json_canonical(&json, NULL, 0, &form_buf)) {
        return 0;
    }
    struct idem_str form = idem_buf_str(&form_buf);
    idem_buf_init(&buf, text_memory, sizeof(text_memory));
    rewrite(&json, &buf, &dice);
    FUZZ_EXPECT(!buf.full);
    struct idem_str again =
        form_of(idem_buf_str(&buf), second_form_memory, sizeof(second_form_memory));
    FUZZ_EXPECT(idem_str_equal(again, form));
    check_changed(text, form, &dice);
    return 0;
}
