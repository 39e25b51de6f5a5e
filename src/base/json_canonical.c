/*
 * The canonical form: one text for one meaning.
 *
 * Three things give a meaning several spellings, and each is undone here: the order of members (the
 * reader has linked them in order), escapes (unescape, then escape what must be), and numbers (one
 * row of digits without zeros at its ends, and the exponent of its last digit). Numbers are never
 * converted, so none is too long and none is rounded; only an exponent must fit 64 bits.
 *
 * Containers that are being written stand on a stack no deeper than the reader allows.
 */
#include "base/json.h"

#include "base/bug.h"
#include "base/json_internal.h"

static bool is_digit(int byte)
{
    return byte >= '0' && byte <= '9';
}

/* A number taken apart: digits, with a point behind the first `whole` of them, and an exponent. */
struct number {
    bool negative;
    struct idem_str whole;
    struct idem_str fraction;
    struct idem_str exponent;
};

static struct number number_split(struct idem_str raw)
{
    struct number number = { .negative = raw.data[0] == '-' };
    raw = idem_str_slice(raw, number.negative ? 1 : 0, raw.len);
    size_t mark = idem_str_find(raw, 'e');
    if (mark == raw.len) {
        mark = idem_str_find(raw, 'E');
    }
    struct idem_str digits = idem_str_slice(raw, 0, mark);
    number.exponent = idem_str_slice(raw, mark + 1, raw.len);
    number.whole = idem_str_next(&digits, '.');
    number.fraction = digits;
    return number;
}

static char number_digit(const struct number *number, size_t index)
{
    if (index < number->whole.len) {
        return number->whole.data[index];
    }
    return number->fraction.data[index - number->whole.len];
}

/* Counts away from zero on either side, so that -2^63 is not lost. */
static bool exponent_read(struct idem_str text, int64_t *ret_value)
{
    bool negative = text.len > 0 && text.data[0] == '-';
    if (text.len > 0 && !is_digit(text.data[0])) {
        text = idem_str_slice(text, 1, text.len);
    }
    int64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        int64_t digit = text.data[i] - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

static bool add_number(struct idem_buf *buf, struct idem_str raw)
{
    struct number number = number_split(raw);
    size_t count = number.whole.len + number.fraction.len;
    size_t from = 0;
    while (from < count && number_digit(&number, from) == '0') {
        from += 1;
    }
    if (from == count) { /* Any zero, whatever its sign and exponent. */
        idem_buf_add_char(buf, '0');
        return true;
    }
    size_t to = count;
    while (number_digit(&number, to - 1) == '0') {
        to -= 1;
    }
    int64_t exponent = 0;
    int64_t shift = (int64_t)number.whole.len - (int64_t)to; /* Of the last digit that is kept. */
    if (!exponent_read(number.exponent, &exponent) ||
        __builtin_add_overflow(exponent, shift, &exponent)) {
        return false;
    }
    if (number.negative) {
        idem_buf_add_char(buf, '-');
    }
    for (size_t i = from; i < to; i++) {
        idem_buf_add_char(buf, number_digit(&number, i));
    }
    if (exponent != 0) {
        idem_buf_add_char(buf, 'e');
        idem_buf_add_i64(buf, exponent);
    }
    return true;
}

/* The next byte of a reference token, ~0 and ~1 resolved; -1 at the end, -2 if malformed. */
static int reference_next(struct idem_str *rest)
{
    if (rest->len == 0) {
        return -1;
    }
    int byte = (unsigned char)rest->data[0];
    size_t taken = 1;
    if (byte == '~') {
        if (rest->len < 2 || (rest->data[1] != '0' && rest->data[1] != '1')) {
            return -2;
        }
        byte = rest->data[1] == '0' ? '~' : '/';
        taken = 2;
    }
    *rest = idem_str_slice(*rest, taken, rest->len);
    return byte;
}

/* Whether a reference token of a pointer names this member (RFC 6901, 4). */
static bool reference_names(struct idem_str reference, const struct idem_json_token *name)
{
    struct idem_json_unescaping string = { .rest = name->raw };
    int wanted;
    int byte;
    do {
        wanted = reference_next(&reference);
        byte = idem_json_unescaping_next(&string);
    } while (wanted == byte && byte >= 0);
    return wanted == byte;
}

/* The child of `parent` that a reference token names, or 0. */
static uint32_t child_find(const struct idem_json *json, uint32_t parent, struct idem_str reference)
{
    const struct idem_json_token *container = &json->tokens[parent];
    if (container->kind == IDEM_JSON_OBJECT) {
        uint32_t name = container->sorted;
        while (name != 0 && !reference_names(reference, &json->tokens[name])) {
            name = json->tokens[name].sorted;
        }
        return name == 0 ? 0 : name + 1;
    }
    int64_t position = 0;
    bool leads_with_zero = reference.len > 1 && reference.data[0] == '0';
    if (container->kind != IDEM_JSON_ARRAY || leads_with_zero ||
        !idem_str_to_i64(reference, &position) || position >= container->count) {
        return 0;
    }
    uint32_t element = parent + 1;
    while (position > 0) {
        element = json->tokens[element].next;
        position -= 1;
    }
    return element;
}

/* True if `pointer` leads to a value, whose index it gives. */
static bool pointer_find(const struct idem_json *json, struct idem_str pointer, uint32_t *ret_index)
{
    uint32_t index = 0;
    if (pointer.len > 0 && pointer.data[0] != '/') {
        return false;
    }
    while (pointer.len > 0) {
        pointer = idem_str_slice(pointer, 1, pointer.len);
        size_t end = idem_str_find(pointer, '/');
        index = child_find(json, index, idem_str_slice(pointer, 0, end));
        if (index == 0) {
            return false;
        }
        pointer = idem_str_slice(pointer, end, pointer.len);
    }
    *ret_index = index;
    return true;
}

/* A container that is being written. */
struct frame {
    const struct idem_json_token *container;
    uint32_t next; /* The name or element to write next; 0 behind the last. */
    bool filled;   /* Something was written, so a comma comes before the next. */
};

struct writer {
    const struct idem_json *json;
    struct idem_buf *buf;
    uint32_t ignored[IDEM_JSON_IGNORED_MAX];
    size_t ignored_count;
    struct frame frames[IDEM_JSON_DEPTH_MAX];
    size_t depth;
};

static bool is_ignored(const struct writer *writer, uint32_t index)
{
    for (size_t i = 0; i < writer->ignored_count; i++) {
        if (writer->ignored[i] == index) {
            return true;
        }
    }
    return false;
}

static void write_open(struct writer *writer, uint32_t index)
{
    const struct idem_json_token *container = &writer->json->tokens[index];
    bool is_object = container->kind == IDEM_JSON_OBJECT;
    uint32_t first_element = container->count > 0 ? index + 1 : 0;
    IDEM_ASSERT(writer->depth < IDEM_JSON_DEPTH_MAX); /* The reader let nothing deeper through. */
    writer->frames[writer->depth] = (struct frame){
        .container = container,
        .next = is_object ? container->sorted : first_element,
    };
    writer->depth += 1;
    idem_buf_add_char(writer->buf, is_object ? '{' : '[');
}

static bool write_value(struct writer *writer, uint32_t index)
{
    const struct idem_json_token *token = &writer->json->tokens[index];
    switch (token->kind) {
    case IDEM_JSON_NULL:
    case IDEM_JSON_FALSE:
    case IDEM_JSON_TRUE:
        idem_buf_add(writer->buf, token->raw);
        return true;
    case IDEM_JSON_NUMBER:
        return add_number(writer->buf, token->raw);
    case IDEM_JSON_STRING:
        idem_json_add_token(writer->buf, token);
        return true;
    case IDEM_JSON_ARRAY:
    case IDEM_JSON_OBJECT:
        write_open(writer, index);
        return true;
    case IDEM_JSON_NONE:
    case IDEM_JSON_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* Moves the frame on and returns the index of the value that it stood at. */
static uint32_t frame_take(struct frame *frame, const struct idem_json *json)
{
    if (frame->container->kind == IDEM_JSON_OBJECT) {
        uint32_t value = frame->next + 1;
        frame->next = json->tokens[frame->next].sorted;
        return value;
    }
    uint32_t value = frame->next;
    uint32_t behind = json->tokens[value].next;
    frame->next = behind < frame->container->next ? behind : 0;
    return value;
}

/* Writes one member or element, or closes the innermost container. */
static bool write_next(struct writer *writer)
{
    struct frame *frame = &writer->frames[writer->depth - 1];
    bool is_object = frame->container->kind == IDEM_JSON_OBJECT;
    if (frame->next == 0) {
        idem_buf_add_char(writer->buf, is_object ? '}' : ']');
        writer->depth -= 1;
        return true;
    }
    uint32_t value = frame_take(frame, writer->json);
    if (is_ignored(writer, value)) {
        return true;
    }
    if (frame->filled) {
        idem_buf_add_char(writer->buf, ',');
    }
    frame->filled = true;
    if (is_object) {
        idem_json_add_token(writer->buf, &writer->json->tokens[value - 1]);
        idem_buf_add_char(writer->buf, ':');
    }
    return write_value(writer, value);
}

bool idem_json_canonical(const struct idem_json *json,
                         const struct idem_str *ignored,
                         size_t ignored_count,
                         struct idem_buf *buf)
{
    struct writer writer = { .json = json, .buf = buf };
    IDEM_ASSERT(json->count > 0);
    IDEM_ASSERT(ignored_count <= IDEM_JSON_IGNORED_MAX);
    for (size_t i = 0; i < ignored_count; i++) {
        if (pointer_find(json, ignored[i], &writer.ignored[writer.ignored_count])) {
            writer.ignored_count += 1;
        }
    }
    bool exact = is_ignored(&writer, 0) || write_value(&writer, 0);
    while (exact && writer.depth > 0 && !buf->full) {
        exact = write_next(&writer);
    }
    return exact && !buf->full;
}
