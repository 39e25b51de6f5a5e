/*
 * The intrusive list.
 *
 * Goal: order, count, both ends and `linked` are right after every operation.
 *
 * Method: small programs in letters run on a list and on nothing else; what the list shows, read
 * forwards and backwards, is compared with what the program should leave.
 */
#include "base/list.h"

#include "base/attr.h"
#include "lib/test.h"

struct item {
    char letter;
    struct idem_list_node node;
};

static struct item items[26];

static struct idem_list_node *node_of(char letter)
{
    struct item *item = &items[letter - 'a'];
    item->letter = letter;
    return &item->node;
}

static char letter_of(struct idem_list_node *node)
{
    const struct item *item = IDEM_CONTAINER_OF(node, struct item, node);
    return item->letter;
}

static void expect_list(const struct idem_list *list, const char *letters)
{
    char forth[IDEM_ARRAY_COUNT(items) + 1] = "";
    char back[IDEM_ARRAY_COUNT(items) + 1] = "";
    size_t count = strlen(letters);
    size_t at = 0;
    assert_int_equal(list->count, count);
    for (struct idem_list_node *node = list->first; node != NULL && at < count; node = node->next) {
        assert_true(node->linked);
        forth[at] = letter_of(node);
        at += 1;
    }
    assert_string_equal(forth, letters);
    for (struct idem_list_node *node = list->last; node != NULL && at > 0; node = node->prev) {
        at -= 1;
        back[at] = letter_of(node);
    }
    assert_string_equal(back, letters);
    assert_true((list->first == NULL) == (count == 0));
    assert_true((list->last == NULL) == (count == 0));
    assert_true(list->first == NULL || list->first->prev == NULL);
    assert_true(list->last == NULL || list->last->next == NULL);
}

/* "+a" pushes a, "^a" pushes it to the front, "-a" removes it, ">ab" puts b behind a, "." pops. */
static void list_run(struct idem_list *list, const char *program)
{
    while (*program != '\0') {
        if (*program == '.') {
            (void)idem_list_pop(list); /* What is left tells which it was. */
            program += 1;
            continue;
        }
        if (*program == '>') {
            idem_list_insert_after(list, node_of(program[1]), node_of(program[2]));
            program += 3;
            continue;
        }
        struct idem_list_node *node = node_of(program[1]);
        if (*program == '+') {
            idem_list_push(list, node);
        } else if (*program == '^') {
            idem_list_push_front(list, node);
        } else {
            idem_list_remove(list, node);
            assert_false(node->linked);
        }
        program += 2;
    }
}

static void operations_leave_the_right_order(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        const char *left;
    } rows[] = {
        { "", "" },           { ".", "" },          { "+a", "a" },         { "^a", "a" },
        { "+a+b+c", "abc" },  { "^a^b^c", "cba" },  { "+b^a+c", "abc" },   { "+a-a", "" },
        { "+a+b+c-a", "bc" }, { "+a+b+c-b", "ac" }, { "+a+b+c-c", "ab" },  { "+a+b+c-b+b", "acb" },
        { "+a+b+c.", "bc" },  { "+a+b..", "" },     { "+a+b...+c", "c" },  { "+a+b-b-a^b^a", "ab" },
        { "+a>ab", "ab" },    { "+a+c>ab", "abc" }, { "+a+b>bc-b", "ac" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_list list = { .count = 0 };
        memset(items, 0, sizeof(items));
        list_run(&list, rows[i].program);
        expect_list(&list, rows[i].left);
    }
}

static void pop_returns_the_first_or_null(void **state)
{
    (void)state;
    struct idem_list list = { .count = 0 };
    memset(items, 0, sizeof(items));
    assert_null(idem_list_pop(&list));
    list_run(&list, "+a+b");
    assert_ptr_equal(idem_list_pop(&list), node_of('a'));
    assert_ptr_equal(idem_list_pop(&list), node_of('b'));
    assert_null(idem_list_pop(&list));
}

static void behind_nothing_is_the_front(void **state)
{
    (void)state;
    struct idem_list list = { .count = 0 };
    memset(items, 0, sizeof(items));
    idem_list_insert_after(&list, NULL, node_of('b'));
    idem_list_insert_after(&list, NULL, node_of('a'));
    expect_list(&list, "ab");
}

static void joining_moves_everything_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *to;
        const char *from;
        const char *left;
    } rows[] = {
        { "", "", "" },
        { "+a", "", "a" },
        { "", "+x", "x" },
        { "+a+b", "+x+y+z", "abxyz" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_list to = { .count = 0 };
        struct idem_list from = { .count = 0 };
        memset(items, 0, sizeof(items));
        list_run(&to, rows[i].to);
        list_run(&from, rows[i].from);
        idem_list_join(&to, &from);
        expect_list(&to, rows[i].left);
        expect_list(&from, "");
        list_run(&from, "+m");
        list_run(&to, "+n");
        assert_int_equal(letter_of(to.last), 'n');
        expect_list(&from, "m");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_leave_the_right_order),
        cmocka_unit_test(pop_returns_the_first_or_null),
        cmocka_unit_test(behind_nothing_is_the_front),
        cmocka_unit_test(joining_moves_everything_in_order),
    };
    return cmocka_run_group_tests_name("base/list", tests, NULL, NULL);
}
