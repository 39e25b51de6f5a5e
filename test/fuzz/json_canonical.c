/*
 * Fuzzes the canonical form.
 *
 * The input is a JSON text, or a JSON pointer, a zero byte and a JSON text. Properties, for any
 * text that the reader accepts and whose exponents fit:
 *   - the form is shorter than twice the text, and fits in exactly its size and in nothing less;
 *   - the form can be read, and its form is itself;
 *   - leaving the pointer's value out of the text and out of its form gives the same;
 *   - leaving nothing out, white space around every token changes nothing.
 */
#include "base/json.h"

#include "fuzz/fuzz.h"

#define SIZE_MAX_TRIED 32768

static struct idem_json_token tape[SIZE_MAX_TRIED];
static struct idem_json_token second_tape[SIZE_MAX_TRIED];
static char without_memory[2 * SIZE_MAX_TRIED];
static char second_without_memory[2 * SIZE_MAX_TRIED];
static char form_memory[2 * SIZE_MAX_TRIED];
static char second_form_memory[2 * SIZE_MAX_TRIED];
static char spaced_memory[16 * SIZE_MAX_TRIED];

static struct idem_str form_make(const struct idem_json *json, char *memory)
{
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(form_memory));
    FUZZ_EXPECT(idem_json_canonical(json, NULL, 0, &buf));
    return idem_buf_str(&buf);
}

static struct idem_str form_without(const struct idem_json *json,
                                    struct idem_str pointer,
                                    char *memory)
{
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(without_memory));
    FUZZ_EXPECT(idem_json_canonical(json, &pointer, 1, &buf));
    return idem_buf_str(&buf);
}

/* In memory of its own, so that a sanitizer sees a write behind it. */
static void check_room(const struct idem_json *json, size_t needed)
{
    struct idem_buf buf;
    char *memory = malloc(needed);
    FUZZ_EXPECT(memory != NULL);
    idem_buf_init(&buf, memory, needed);
    FUZZ_EXPECT(idem_json_canonical(json, NULL, 0, &buf));
    free(memory);

    memory = malloc(needed - 1);
    FUZZ_EXPECT(memory != NULL);
    idem_buf_init(&buf, memory, needed - 1);
    FUZZ_EXPECT(!idem_json_canonical(json, NULL, 0, &buf));
    free(memory);
}

/* Writes the text again with white space between its tokens. */
static struct idem_str space_out(struct idem_str text)
{
    struct idem_buf buf;
    bool in_string = false;
    bool escaped = false;
    idem_buf_init(&buf, spaced_memory, sizeof(spaced_memory));
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.data[i];
        bool is_mark = !in_string && idem_str_find(IDEM_STR("{}[],:"), byte) < 6;
        idem_buf_add(&buf, is_mark ? IDEM_STR(" \t") : IDEM_STR(""));
        idem_buf_add_char(&buf, byte);
        idem_buf_add(&buf, is_mark ? IDEM_STR("\r\n") : IDEM_STR(""));
        in_string = in_string != (byte == '"' && !escaped);
        escaped = byte == '\\' && !escaped;
    }
    FUZZ_EXPECT(!buf.full);
    return idem_buf_str(&buf);
}

static void check_form(const struct idem_json *json, struct idem_str text, struct idem_str pointer)
{
    struct idem_json second;
    struct idem_json_fault fault;
    struct idem_str form = form_make(json, form_memory);
    FUZZ_EXPECT(form.len < 2 * text.len);
    check_room(json, form.len);

    idem_json_init(&second, second_tape, SIZE_MAX_TRIED);
    FUZZ_EXPECT(idem_json_parse(&second, form, &fault));
    FUZZ_EXPECT(second.count == json->count);
    FUZZ_EXPECT(idem_str_equal(form_make(&second, second_form_memory), form));
    FUZZ_EXPECT(idem_str_equal(form_without(json, pointer, without_memory),
                               form_without(&second, pointer, second_without_memory)));

    FUZZ_EXPECT(idem_json_parse(&second, space_out(text), &fault));
    FUZZ_EXPECT(idem_str_equal(form_make(&second, second_form_memory), form));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_json json;
    struct idem_json_fault fault;
    struct idem_buf buf;
    struct idem_str text = { .data = (const char *)data, .len = size };
    struct idem_str pointer = IDEM_STR("/nowhere");
    if (size > SIZE_MAX_TRIED) {
        return 0; /* The tapes and forms here are not made for more. */
    }
    if (idem_str_find(text, '\0') < size) {
        pointer = idem_str_next(&text, '\0');
    }
    idem_json_init(&json, tape, SIZE_MAX_TRIED);
    if (!idem_json_parse(&json, text, &fault)) {
        return 0;
    }
    idem_buf_init(&buf, form_memory, sizeof(form_memory));
    if (idem_json_canonical(&json, NULL, 0, &buf)) {
        check_form(&json, text, pointer);
    }
    return 0;
}
