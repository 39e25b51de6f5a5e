/*
 * Queries.
 *
 * Goal: a query is the one member that the resource knows, once, strictly decoded; anything else is
 * refused and never guessed.
 *
 * Method: a table of queries for the member order_no.
 */
#include "api/query.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_known_member_once),
        cmocka_unit_test(some_resources_take_no_query),
    };
    return cmocka_run_group_tests_name("api/query", tests, NULL, NULL);
}
