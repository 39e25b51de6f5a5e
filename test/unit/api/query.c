/*
 * Queries.
 *
 * Goal: a query is the one member that the resource knows, once, strictly decoded; anything else is
 * refused and never guessed.
 *
 * Method: a table of queries for the member order_no.
 */
#include "api/query.h"

#include "core/problem.h"
#include "request.h"

static struct idem_str value_of(const char *query)
{
    static char memory[16];
    struct idem_buf buf;
    struct idem_str value = { 0 };
    struct idem_fault fault = { 0 };
    idem_buf_init(&buf, memory, sizeof(memory));
    if (idem_query_read_one(idem_str_from(query), IDEM_STR("order_no"), &buf, &value, &fault)) {
        return value;
    }
    return idem_str_from(idem_problem_entry(fault.problem)->code);
}

static void one_known_member_once(void **state)
{
    static const struct {
        const char *query;
        const char *expected;
    } rows[] = {
        { "order_no=A-17", "A-17" },
        { "order%5Fno=A-17", "A-17" },
        { "order_no=A%2d17%2D", "A-17-" },
        { "order_no=a+b", "a+b" },
        { "order_no=a%2Bb", "a+b" },
        { "order_no=a=b", "a=b" },
        { "order_no=%25", "%" },
        { "order_no=%2525", "%25" },
        { "order_no=1234567890123456", "1234567890123456" },
        { "order_no=12345678901234567", "query-invalid" },
        { "", "query-invalid" },
        { "order_no", "query-invalid" },
        { "order_no=", "query-invalid" },
        { "Order_no=1", "query-invalid" },
        { "order=1", "query-invalid" },
        { "order_no=1&order_no=1", "query-invalid" },
        { "order_no=1&x=1", "query-invalid" },
        { "order_no=1&", "query-invalid" },
        { "&order_no=1", "query-invalid" },
        { "order_no=%", "query-invalid" },
        { "order_no=%4", "query-invalid" },
        { "order_no=%4g", "query-invalid" },
        { "order_n%o=1", "query-invalid" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].query);
        EXPECT_TEXT(value_of(rows[i].query), rows[i].expected);
    }
}

static void some_resources_take_no_query(void **state)
{
    (void)state;
    struct idem_fault fault = { 0 };
    assert_true(idem_query_check_empty(IDEM_STR(""), &fault));
    assert_false(idem_query_check_empty(IDEM_STR("x"), &fault));
    assert_int_equal(fault.problem, IDEM_PROBLEM_QUERY_INVALID);
}

/* "cursor=1 state=2" in the order of the names, or the problem. */
static struct idem_str values_of(const char *query)
{
    static const struct idem_str names[] = { { "cursor", 6 }, { "state", 5 } };
    static const struct idem_query_members members = { .names = names, .count = 2 };
    static char text[128];
    char memory[64];
    struct idem_buf kept;
    struct idem_buf shown;
    struct idem_str values[2];
    struct idem_fault fault = { 0 };
    idem_buf_init(&kept, memory, sizeof(memory));
    idem_buf_init(&shown, text, sizeof(text));
    if (!idem_query_read_some(idem_str_from(query), &members, &kept, values, &fault)) {
        return idem_str_from(idem_problem_entry(fault.problem)->code);
    }
    idem_buf_add(&shown, values[0]);
    idem_buf_add_char(&shown, '|');
    idem_buf_add(&shown, values[1]);
    return idem_buf_str(&shown);
}

static void known_members_each_at_most_once(void **state)
{
    static const struct {
        const char *query;
        const char *expected;
    } rows[] = {
        { "", "|" },
        { "cursor=1", "1|" },
        { "state=a%20b", "|a b" },
        { "state=x&cursor=17", "17|x" },
        { "cursor=1&state=x", "1|x" },
        { "cursor=1&cursor=1", "query-invalid" },
        { "cursor=", "query-invalid" },
        { "cursor", "query-invalid" },
        { "cursor=1&", "query-invalid" },
        { "&cursor=1", "query-invalid" },
        { "&", "query-invalid" },
        { "cursor=1&x=1", "query-invalid" },
        { "state=%", "query-invalid" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].query);
        EXPECT_TEXT(values_of(rows[i].query), rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_known_member_once),
        cmocka_unit_test(some_resources_take_no_query),
        cmocka_unit_test(known_members_each_at_most_once),
    };
    return cmocka_run_group_tests_name("api/query", tests, NULL, NULL);
}
