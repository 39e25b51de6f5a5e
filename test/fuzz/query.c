/*
 * Fuzzes the query of a request.
 *
 * The input is a query. Properties, for any bytes:
 *   - a query that is taken has only known members, each once; what was read, written again with
 *     every byte of it as %XX and in the other order, is read as the same values;
 *   - a member that is read alone has the same value there;
 *   - no value is empty, and a value without a percent sign is the very bytes;
 *   - taken with `memory` of exactly the needed size, it is taken with more, and not with less;
 *   - a member more, known or not, behind it is never taken in silence.
 */
#include "api/query.h"

#include "fuzz/fuzz.h"

#define MEMORY_SIZE 8192
#define COUNT       2

static const struct idem_str names[COUNT] = { { "cursor", 6 }, { "state", 5 } };
static const struct idem_query_members members = { .names = names, .count = COUNT };

static bool read_sized(struct idem_str query, size_t size, struct idem_str *ret_values)
{
    static char memory[MEMORY_SIZE];
    struct idem_buf buf;
    struct idem_fault fault = { .problem = IDEM_PROBLEM_NONE };
    idem_buf_init(&buf, memory, size);
    bool taken = idem_query_read_some(query, &members, &buf, ret_values, &fault);
    FUZZ_EXPECT(taken == (fault.problem == IDEM_PROBLEM_NONE));
    FUZZ_EXPECT(taken || fault.problem == IDEM_PROBLEM_QUERY_INVALID);
    return taken;
}

static void member_print(size_t index, struct idem_str value, struct idem_buf *buf)
{
    if (value.len == 0) {
        return;
    }
    idem_buf_add(buf, buf->len > 0 ? IDEM_STR("&") : IDEM_STR(""));
    idem_buf_add(buf, names[index]);
    idem_buf_add_char(buf, '=');
    for (size_t i = 0; i < value.len; i++) {
        idem_buf_add_char(buf, '%');
        idem_buf_add_hex(buf, (const uint8_t *)value.data + i, 1);
    }
}

/* Keeps the values: reading again uses the same memory. */
static void values_keep(const struct idem_str *values, struct idem_buf *buf, struct idem_str *kept)
{
    for (size_t i = 0; i < COUNT; i++) {
        kept[i] = idem_buf_keep(buf, values[i]);
    }
    FUZZ_EXPECT(!buf->full);
}

static void check_rewritten(const struct idem_str *kept)
{
    static char memory[4 * MEMORY_SIZE];
    struct idem_buf buf;
    struct idem_str again[COUNT];
    idem_buf_init(&buf, memory, sizeof(memory));
    member_print(1, kept[1], &buf);
    member_print(0, kept[0], &buf);
    FUZZ_EXPECT(!buf.full && read_sized(idem_buf_str(&buf), MEMORY_SIZE, again));
    size_t needed = kept[0].len + kept[1].len;
    for (size_t i = 0; i < COUNT; i++) {
        FUZZ_EXPECT(idem_str_equal(again[i], kept[i]));
    }
    FUZZ_EXPECT(read_sized(idem_buf_str(&buf), needed, again));
    FUZZ_EXPECT(needed == 0 || !read_sized(idem_buf_str(&buf), needed - 1, again));
}

static void check_alone(struct idem_str query, const struct idem_str *kept)
{
    char memory[MEMORY_SIZE];
    for (size_t i = 0; i < COUNT; i++) {
        struct idem_buf buf;
        struct idem_str value = { .data = NULL };
        struct idem_fault fault = { .problem = IDEM_PROBLEM_NONE };
        idem_buf_init(&buf, memory, sizeof(memory));
        bool taken = idem_query_read_one(query, names[i], &buf, &value, &fault);
        bool only = kept[i].len > 0 && kept[1 - i].len == 0;
        FUZZ_EXPECT(taken == only && (!taken || idem_str_equal(value, kept[i])));
    }
}

static void check_more(struct idem_str query)
{
    static char memory[MEMORY_SIZE + 64];
    static const char *const more[] = { "&cursor=1&cursor=1", "&x=1", "&", "&state", "&&" };
    struct idem_str values[COUNT];
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(more); i++) {
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_buf_add(&buf, query);
        idem_buf_add(&buf, idem_str_from(more[i]));
        FUZZ_EXPECT(!buf.full && !read_sized(idem_buf_str(&buf), MEMORY_SIZE, values));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char kept_memory[MEMORY_SIZE];
    struct idem_buf buf;
    struct idem_str values[COUNT];
    struct idem_str kept[COUNT];
    struct idem_str query = { .data = (const char *)data, .len = size };
    if (size > MEMORY_SIZE || !read_sized(query, MEMORY_SIZE, values)) {
        return 0;
    }
    idem_buf_init(&buf, kept_memory, sizeof(kept_memory));
    values_keep(values, &buf, kept);
    FUZZ_EXPECT((size == 0) == (kept[0].len == 0 && kept[1].len == 0));
    check_rewritten(kept);
    check_alone(query, kept);
    check_more(query);
    return 0;
}
