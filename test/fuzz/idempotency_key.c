/*
 * Fuzzes the reading of Idempotency-Key.
 *
 * The input is the field's value, as the server hands it over. Properties, for any bytes:
 *   - a key that is taken is 1 to 255 bytes 0x21-0x7E;
 *   - a bare one is the value, whole, and nothing that could be a list, a string or another kind of
 *     field; a quoted one is what a second reader, written from RFC 9651, 4.2.5, finds between the
 *     quotes: so two keys that differ are never read as one;
 *   - written as a structured-field string it is read as the same key, also with parameters behind
 *     it, and never as two;
 *   - a refusal gives no key, and says in a sentence why.
 */
#include "api/key.h"

#include <string.h>

#include "core/limits.h"

#include "fuzz/fuzz.h"

#define MEMORY_SIZE 1024

static bool read_value(struct idem_str value, char *memory, struct idem_str *ret_key)
{
    struct idem_net_request request = { .header_count = 1 };
    struct idem_fault fault = { .problem = IDEM_PROBLEM_NONE };
    struct idem_buf buf;
    request.headers[0].name = IDEM_STR("idempotency-key");
    request.headers[0].value = value;
    idem_buf_init(&buf, memory, MEMORY_SIZE);
    *ret_key = (struct idem_str){ .data = NULL };
    bool taken = idem_key_read(&request, &buf, ret_key, &fault);
    FUZZ_EXPECT(!buf.full && taken == (fault.problem == IDEM_PROBLEM_NONE));
    FUZZ_EXPECT(taken || (ret_key->data == NULL && fault.len > 0));
    FUZZ_EXPECT(taken || fault.problem == IDEM_PROBLEM_KEY_INVALID);
    return taken;
}

static bool is_escapable(char byte)
{
    return byte == '"' || byte == '\\';
}

/* RFC 9651, 4.2.5, by its steps; returns what is left, data NULL: it fails. */
static struct idem_str string_reread(struct idem_str value, struct idem_buf *buf)
{
    struct idem_str rest = idem_str_slice(value, 1, value.len);
    while (rest.len > 0) {
        char byte = rest.data[0];
        rest = idem_str_slice(rest, 1, rest.len);
        if (byte == '"') {
            return rest.len > 0 ? rest : IDEM_STR("");
        }
        if (byte == '\\') {
            bool known = rest.len > 0 && is_escapable(rest.data[0]);
            byte = (char)(known ? rest.data[0] : '\0');
            rest = idem_str_slice(rest, 1, rest.len);
        }
        if (byte < 0x20 || byte > 0x7E) {
            break;
        }
        idem_buf_add_char(buf, byte);
    }
    return (struct idem_str){ .data = NULL };
}

static void check_is_value(struct idem_str value, struct idem_str key)
{
    char memory[MEMORY_SIZE];
    struct idem_buf buf;
    if (value.data[0] != '"') {
        FUZZ_EXPECT(idem_str_equal(key, value));
        FUZZ_EXPECT(idem_str_find(IDEM_STR(":?@%("), value.data[0]) == 5);
        for (size_t i = 0; i < value.len; i++) {
            FUZZ_EXPECT(idem_str_find(IDEM_STR("\",;\\"), value.data[i]) == 4);
        }
        return;
    }
    idem_buf_init(&buf, memory, sizeof(memory));
    struct idem_str rest = string_reread(value, &buf);
    FUZZ_EXPECT(rest.data != NULL && (rest.len == 0 || rest.data[0] == ';'));
    FUZZ_EXPECT(!buf.full && idem_str_equal(idem_buf_str(&buf), key));
}

static void check_written(struct idem_str key, const char *behind, bool expected)
{
    char memory[MEMORY_SIZE];
    char again_memory[MEMORY_SIZE];
    struct idem_buf buf;
    struct idem_str again;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_key_print(key, &buf);
    idem_buf_add(&buf, idem_str_from(behind));
    FUZZ_EXPECT(!buf.full);
    FUZZ_EXPECT(read_value(idem_buf_str(&buf), again_memory, &again) == expected);
    FUZZ_EXPECT(!expected || idem_str_equal(again, key));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char memory[MEMORY_SIZE];
    struct idem_str value = { .data = (const char *)data, .len = size };
    struct idem_str key;
    if (size > MEMORY_SIZE || !read_value(value, memory, &key)) {
        return 0;
    }
    FUZZ_EXPECT(key.len >= 1 && key.len <= IDEM_KEY_MAX);
    for (size_t i = 0; i < key.len; i++) {
        FUZZ_EXPECT(key.data[i] >= 0x21 && key.data[i] <= 0x7E);
    }
    check_is_value(value, key);
    check_written(key, "", true);
    check_written(key, ";a=\"x,y\"; b", true);
    check_written(key, ",\"other\"", false);
    check_written(key, " ", false); /* The server trims; what still stands here is of the field. */
    return 0;
}
