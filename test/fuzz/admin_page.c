/*
 * Fuzzes the query of a page of operations, through the whole service.
 *
 * The input is the query of GET /v1/admin/operations, behind the '?'. Server, engine, store and API
 * are real (test/unit/api/edge.h), with a few operations in the store. Properties, for any bytes
 * that can stand in a request's line:
 *   - the answer is 200 or 400, and 200 exactly if a second reader finds `cursor` (a number of 63
 *     bits) and `state` (one of six words) in it, each at most once, and nothing else;
 *   - a page is a part of the page without a cursor, up to its end: a cursor never shows anything
 *     else, or anything twice;
 *   - the same query with each value percent-encoded shows the same page.
 */
#include <string.h>
#include <unistd.h>

#include "api/percent.h"
#include "unit/api/edge.h"

#include "fuzz/fuzz.h"

#define SIZE_TRIED 512
#define PAGE_SIZE  65536
#define HEAD       "GET /v1/admin/operations"
#define REST       " HTTP/1.1\nAuthorization: Bearer root"
#define ORDERS     3

static struct edge edge;
static char whole_page[PAGE_SIZE]; /* Of the filter that is asked for, from its beginning. */
static char page[PAGE_SIZE];
static char second_page[PAGE_SIZE];

/* The members of a query, read a second time. */
struct wish {
    bool valid;
    bool has_cursor;
    bool has_state;
    int64_t cursor;
    char state[16];
};

/* The body of the answer, or what it says of the query. */
static int page_ask(struct idem_str query, char *ret_page)
{
    char request[(size_t)4 * SIZE_TRIED + sizeof(HEAD REST) + 1];
    int len = snprintf(request, sizeof(request), HEAD "%s%.*s" REST, query.len > 0 ? "?" : "",
                       (int)query.len, query.data);
    FUZZ_EXPECT(len > 0 && (size_t)len < sizeof(request));
    const char *answer = edge_ask(&edge, request);
    const char *body = strstr(answer, "\n\n");
    FUZZ_EXPECT(body != NULL && strlen(body) < PAGE_SIZE);
    (void)snprintf(ret_page, PAGE_SIZE, "%s", body + 2); /* It fits. */
    int status = atoi(answer + strlen("HTTP/1.1 "));     // NOLINT(cert-err34-c): zero is "none".
    FUZZ_EXPECT(status == 200 || status == 400);
    return status;
}

static void edge_begin(void)
{
    edge_open(&edge, NULL);
    edge.port.outcome = IDEM_OUTCOME_UNKNOWN;
    for (int i = 0; i < ORDERS; i++) {
        char request[512];
        (void)snprintf(request, sizeof(request),
                       "POST /v1/payments HTTP/1.1\nAuthorization: Bearer alice\n"
                       "Content-Type: application/json\nPrefer: respond-async\n"
                       "Idempotency-Key: k%d\n\n"
                       "{\"order_no\":\"o%d\",\"amount\":\"1.00\",\"currency\":\"CNY\","
                       "\"provider\":\"sandbox\"}",
                       i, i);
        (void)edge_ask(&edge, request);
    }
}

static bool state_known(const char *state)
{
    static const char *const states[] = { "open",   "processing", "unknown",
                                          "parked", "released",   "cases" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(states); i++) {
        if (strcmp(states[i], state) == 0) {
            return true;
        }
    }
    return false;
}

/* Puts one "name=value" into the wish; false: it cannot be one. */
static bool member_reread(struct idem_str member, struct wish *wish)
{
    char name_memory[SIZE_TRIED];
    char value_memory[SIZE_TRIED];
    struct idem_buf name;
    struct idem_buf value;
    struct idem_str encoded = idem_str_next(&member, '=');
    idem_buf_init(&name, name_memory, sizeof(name_memory));
    idem_buf_init(&value, value_memory, sizeof(value_memory));
    if (!idem_percent_decode(encoded, &name) || !idem_percent_decode(member, &value)) {
        return false;
    }
    struct idem_str text = idem_buf_str(&value);
    if (idem_str_equal(idem_buf_str(&name), IDEM_STR("cursor")) && !wish->has_cursor) {
        wish->has_cursor = true;
        return idem_str_to_i64(text, &wish->cursor);
    }
    if (idem_str_equal(idem_buf_str(&name), IDEM_STR("state")) && !wish->has_state) {
        wish->has_state = true;
        (void)snprintf(wish->state, sizeof(wish->state), "%.*s", (int)text.len, text.data);
        return text.len < sizeof(wish->state) && strlen(wish->state) == text.len &&
               state_known(wish->state);
    }
    return false;
}

static struct wish wish_read(struct idem_str query)
{
    struct wish wish = { .valid = query.len == 0 || query.data[query.len - 1] != '&' };
    while (wish.valid && query.len > 0) {
        wish.valid = member_reread(idem_str_next(&query, '&'), &wish);
    }
    return wish;
}

static void add_encoded(struct idem_buf *buf, const char *text)
{
    for (size_t i = 0; text[i] != '\0'; i++) {
        idem_buf_printf(buf, "%%%02X", (unsigned char)text[i]);
    }
}

static void check_page(const struct wish *wish)
{
    char memory[SIZE_TRIED];
    char number[32];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add(&buf, IDEM_STR("state="));
    add_encoded(&buf, wish->has_state ? wish->state : "open");
    FUZZ_EXPECT(page_ask(idem_buf_str(&buf), whole_page) == 200);
    (void)snprintf(number, sizeof(number), "%lld", (long long)wish->cursor);
    idem_buf_add(&buf, IDEM_STR("&cursor="));
    add_encoded(&buf, number);
    FUZZ_EXPECT(!buf.full && page_ask(idem_buf_str(&buf), second_page) == 200);
    FUZZ_EXPECT(strcmp(page, second_page) == 0);

    const char *rows = page + strlen("{\"operations\":[");
    size_t len = strlen(whole_page);
    FUZZ_EXPECT(strlen(rows) <= len && strcmp(whole_page + len - strlen(rows), rows) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_str query = { .data = (const char *)data, .len = size };
    if (size > SIZE_TRIED) {
        return 0;
    }
    for (size_t i = 0; i < size; i++) {
        if (data[i] <= 0x20 || data[i] > 0x7E || data[i] == '#') {
            return 0; /* Not a request's line. */
        }
    }
    if (edge.api == NULL) {
        edge_begin();
    }
    struct wish wish = wish_read(query);
    int status = page_ask(query, page);
    FUZZ_EXPECT((status == 200) == wish.valid);
    if (wish.valid) {
        check_page(&wish);
    }
    return 0;
}
