/*
 * Fuzzes the JSON reader against jansson.
 *
 * Properties, for any bytes:
 *   - reading ends, and inside the input;
 *   - a refusal points into the input and says why, and leaves an empty tape;
 *   - the tape is well-formed: values lie inside their containers, links lead to every member once
 *     and in strictly rising order;
 *   - a tape of exactly the needed size is enough, one token less is refused;
 *   - jansson, with duplicates refused, accepts the same texts, and what it understood, written
 *     again, has the same canonical form as the text.
 *
 * Where the two differ on purpose nothing is compared: nesting deeper than ours, numbers beyond
 * jansson's range (it converts, we keep text), \u0000 in a member name (jansson's names are
 * terminated strings), a raw zero byte (jansson takes one behind a value for the end). The meaning
 * of fractions and exponents is left out as well: jansson makes them binary.
 */
#include "base/json.h"

#include <jansson.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define SIZE_MAX_TRIED 65536

static struct idem_json_token tape[SIZE_MAX_TRIED];
static struct idem_json_token second_tape[SIZE_MAX_TRIED];
static char form_memory[2 * SIZE_MAX_TRIED];
static char second_form_memory[2 * SIZE_MAX_TRIED];

static void check_object(const struct idem_json *json, const struct idem_json_token *object)
{
    char left_memory[SIZE_MAX_TRIED];
    char right_memory[SIZE_MAX_TRIED];
    struct idem_buf previous;
    struct idem_buf current;
    idem_buf_init(&previous, left_memory, sizeof(left_memory));
    size_t count = 0;
    for (uint32_t name = object->sorted; name != 0; name = json->tokens[name].sorted) {
        FUZZ_EXPECT(name < json->count);
        FUZZ_EXPECT(json->tokens[name].kind == IDEM_JSON_STRING);
        FUZZ_EXPECT(json->tokens[name].next == name + 1);
        idem_buf_init(&current, right_memory, sizeof(right_memory));
        idem_json_unescape(json, name, &current);
        FUZZ_EXPECT(!current.full);
        FUZZ_EXPECT(count == 0 ||
                    idem_str_compare(idem_buf_str(&previous), idem_buf_str(&current)) < 0);
        idem_buf_reset(&previous);
        idem_buf_add(&previous, idem_buf_str(&current));
        count += 1;
        FUZZ_EXPECT(count <= object->count);
    }
    FUZZ_EXPECT(count == object->count);
}

static void check_container(const struct idem_json *json, uint32_t index)
{
    const struct idem_json_token *container = &json->tokens[index];
    const char *end = container->raw.data + container->raw.len;
    size_t count = 0;
    for (uint32_t i = index + 1; i < container->next; i = json->tokens[i].next) {
        const struct idem_json_token *child = &json->tokens[i];
        FUZZ_EXPECT(child->next > i && child->next <= container->next);
        FUZZ_EXPECT(child->raw.data > container->raw.data);
        FUZZ_EXPECT(child->raw.data + child->raw.len < end);
        count += 1;
    }
    if (container->kind == IDEM_JSON_OBJECT) {
        FUZZ_EXPECT(count == (size_t)container->count * 2);
        check_object(json, container);
        return;
    }
    FUZZ_EXPECT(count == container->count);
}

/* Checks every container; returns whether all numbers are whole ones without exponents. */
static bool check_tape(const struct idem_json *json)
{
    bool whole = true;
    FUZZ_EXPECT(json->tokens[0].next == json->count);
    for (uint32_t i = 0; i < json->count; i++) {
        const struct idem_json_token *token = &json->tokens[i];
        FUZZ_EXPECT(token->kind > IDEM_JSON_NONE && token->kind < IDEM_JSON_COUNT);
        FUZZ_EXPECT(idem_utf8_valid(token->raw));
        if (token->kind == IDEM_JSON_ARRAY || token->kind == IDEM_JSON_OBJECT) {
            check_container(json, i);
        }
        if (token->kind == IDEM_JSON_NUMBER) {
            whole = whole && memchr(token->raw.data, '.', token->raw.len) == NULL &&
                    memchr(token->raw.data, 'e', token->raw.len) == NULL &&
                    memchr(token->raw.data, 'E', token->raw.len) == NULL;
        }
    }
    return whole;
}

static void check_tape_limit(struct idem_str text, size_t needed)
{
    struct idem_json json;
    struct idem_json_fault fault;
    FUZZ_EXPECT(needed <= (text.len + 1) / 2);
    idem_json_init(&json, second_tape, needed);
    FUZZ_EXPECT(idem_json_parse(&json, text, &fault));
    idem_json_init(&json, second_tape, needed - 1);
    FUZZ_EXPECT(!idem_json_parse(&json, text, &fault));
}

/* What jansson understood, written and read again, means what the text means. */
static void check_meaning(const struct idem_json *json, const json_t *theirs)
{
    struct idem_buf form;
    struct idem_buf second_form;
    struct idem_json second;
    struct idem_json_fault fault;
    char *dump = json_dumps(theirs, JSON_ENCODE_ANY | JSON_COMPACT);
    FUZZ_EXPECT(dump != NULL);
    idem_buf_init(&form, form_memory, sizeof(form_memory));
    idem_buf_init(&second_form, second_form_memory, sizeof(second_form_memory));
    idem_json_init(&second, second_tape, SIZE_MAX_TRIED);
    FUZZ_EXPECT(idem_json_parse(&second, idem_str_from(dump), &fault));
    FUZZ_EXPECT(idem_json_canonical(json, NULL, 0, &form));
    FUZZ_EXPECT(idem_json_canonical(&second, NULL, 0, &second_form));
    FUZZ_EXPECT(idem_str_equal(idem_buf_str(&form), idem_buf_str(&second_form)));
    free(dump);
}

static bool differs_on_purpose(const json_error_t *error, const struct idem_json_fault *fault)
{
    enum json_error_code code = json_error_code(error);
    return code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
           strcmp(fault->what, "nested too deeply") == 0;
}

/* `fault` is what we say, if the tape is empty. */
static void compare(const struct idem_json *json,
                    struct idem_str text,
                    const struct idem_json_fault *fault,
                    bool whole)
{
    bool valid = json->count > 0;
    json_error_t error = { .line = 0 };
    json_t *theirs = json_loadb(text.len == 0 ? "" : text.data, text.len,
                                JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (valid != (theirs != NULL) && !differs_on_purpose(&error, fault)) {
        (void)fprintf(stderr, "ours: %s at %zu; jansson: %s at %d\n", valid ? "valid" : fault->what,
                      fault->offset, theirs != NULL ? "valid" : error.text, error.position);
        abort();
    }
    if (theirs != NULL && whole) {
        check_meaning(json, theirs);
    }
    json_decref(theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_json json;
    struct idem_json_fault fault = { .what = "" };
    struct idem_str text = { .data = (const char *)data, .len = size };
    bool whole = false;
    if (size > SIZE_MAX_TRIED / 2) {
        return 0; /* The tapes and forms here are not made for more. */
    }
    idem_json_init(&json, tape, SIZE_MAX_TRIED);
    if (idem_json_parse(&json, text, &fault)) {
        whole = check_tape(&json);
        check_tape_limit(text, json.count);
    } else {
        FUZZ_EXPECT(json.count == 0);
        FUZZ_EXPECT(fault.offset <= size);
        FUZZ_EXPECT(fault.what[0] != '\0');
    }
    if (idem_str_find(text, '\0') == size) {
        compare(&json, text, &fault, whole);
    }
    return 0;
}
