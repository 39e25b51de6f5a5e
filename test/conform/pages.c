/*
 * What every store must do for those who compare: pages of cases and of effects.
 *
 * Goal: each page begins where the last one ended until there is no more, shows what was asked for
 * and nothing else, and finds the beginning of a time without a walk through what was before it.
 *
 * Method: as in inbox.c, with intents, payments and cases.
 */
#include <string.h>

#include "conform/told.h"
#include "lib/test.h"

#define EFFECT_ID "c0123456789abcdefghjkmnpqrs"

/* An intent with an effect that succeeded, made so many seconds after the start. */
static struct idem_intent_write intent_named(uint32_t id, int64_t seconds)
{
    struct idem_intent_write write = {
        .write = IDEM_WRITE_INSERT,
        .row = {
            .id = uid(id),
            .principal = IDEM_STR("merchant-1"),
            .key = IDEM_STR("key-1"),
            .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
            .state = IDEM_INTENT_SUCCEEDED,
            .version = 1,
            .created_us = FIXTURE_START_US + seconds * IDEM_US_PER_SECOND,
            .updated_us = FIXTURE_START_US + seconds * IDEM_US_PER_SECOND,
            .finished_us = FIXTURE_START_US + seconds * IDEM_US_PER_SECOND + 1,
            .effect = {
                .kind = IDEM_EFFECT_KIND_CHARGE,
                .id = IDEM_STR(EFFECT_ID),
                .entry = IDEM_STR("sandbox"),
                .account = IDEM_STR("acct-1"),
                .region = IDEM_STR("eu"),
                .amount_minor = 1250,
                .currency = IDEM_STR("EUR"),
                .reference = IDEM_STR("provider-77"),
            },
        },
    };
    memcpy(write.row.scope.bytes, write.row.id.bytes, sizeof(write.row.scope.bytes));
    return write;
}

static int64_t intent_add(struct idem_rows *rows, uint32_t id, int64_t seconds)
{
    struct idem_intent_write write = intent_named(id, seconds);
    assert_int_equal(rows->ops->write_intent(rows, &write), IDEM_ROWS_OK);
    return write.row.row;
}

static void intent_remove(struct idem_rows *rows, uint32_t id, int64_t row)
{
    struct idem_intent_write write = intent_named(id, 0);
    write.write = IDEM_WRITE_DELETE;
    write.row.row = row;
    write.row.version = 2;
    assert_int_equal(rows->ops->write_intent(rows, &write), IDEM_ROWS_OK);
}

static int64_t payment_add(struct idem_rows *rows, uint32_t id, const char *order_no)
{
    struct idem_payment_write write = {
        .write = IDEM_WRITE_INSERT,
        .row = {
            .id = uid(id),
            .version = 1,
            .state = IDEM_PAYMENT_CAPTURED,
            .principal = IDEM_STR("merchant-1"),
            .order_no = idem_str_from(order_no),
            .capture_mode = IDEM_CAPTURE_AUTOMATIC,
            .amount_minor = 1250,
            .currency = IDEM_STR("EUR"),
            .authorized_minor = 1250,
            .captured_minor = 1250,
        },
    };
    assert_int_equal(rows->ops->write_payment(rows, &write), IDEM_ROWS_OK);
    return write.row.row;
}

/* Which time of which entry is asked for. */
struct span {
    const char *entry;
    int64_t from_s;
    int64_t to_s;
};

static struct idem_read *effects_ask(struct fixture *fixture, struct span span, int64_t after_row)
{
    struct idem_read *read = fixture_ask(fixture, IDEM_READ_EFFECTS, "");
    read->entry = idem_str_from(span.entry);
    read->from_us = FIXTURE_START_US + span.from_s * IDEM_US_PER_SECOND;
    read->to_us = FIXTURE_START_US + span.to_s * IDEM_US_PER_SECOND;
    read->after_row = after_row;
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    return read;
}

/* All pages of it: how many lines, which must be of the time, in order of row. */
static size_t effects_walk(struct fixture *fixture, struct span span)
{
    size_t count = 0;
    int64_t after_row = 0;
    bool more = true;
    while (more) {
        struct idem_read *read = effects_ask(fixture, span, after_row);
        for (size_t i = 0; i < read->effect_count; i++) {
            assert_true(read->effects[i].row > after_row);
            assert_true(read->effects[i].created_us >= read->from_us);
            assert_true(read->effects[i].created_us < read->to_us);
            after_row = read->effects[i].row;
        }
        more = read->more;
        assert_true(!more || read->effect_count > 0);
        count += read->effect_count;
    }
    return count;
}

static void an_effect_shows_what_is_compared(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    struct idem_intent_write paid = intent_named('a', 1);
    struct idem_intent_write effectless = intent_named('b', 2);
    struct idem_intent_write elsewhere = intent_named('c', 3);
    struct idem_intent_write unpaid = intent_named('d', 4);
    effectless.row.effect.kind = IDEM_EFFECT_KIND_NONE;
    elsewhere.row.effect.entry = IDEM_STR("sandbox-2");
    unpaid.row.effect.kind = IDEM_EFFECT_KIND_REFUND;
    unpaid.row.state = IDEM_INTENT_UNKNOWN;
    unpaid.row.due_us = FIXTURE_START_US;
    unpaid.row.finished_us = 0;
    fixture_rows_begin(rows);
    paid.row.payment_row = payment_add(rows, 'p', "order-1");
    paid.row.payment_id = uid('p');
    assert_int_equal(rows->ops->write_intent(rows, &paid), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &effectless), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &elsewhere), IDEM_ROWS_OK);
    assert_int_equal(rows->ops->write_intent(rows, &unpaid), IDEM_ROWS_OK);
    fixture_rows_commit(rows);

    struct idem_read *read = effects_ask(fixture, (struct span){ "sandbox", 0, 10 }, 0);
    assert_int_equal(read->effect_count, 2);
    assert_false(read->more);
    const struct idem_effect_line *line = &read->effects[0];
    assert_int_equal(line->row, paid.row.row);
    assert_memory_equal(&line->id, &paid.row.id, sizeof(line->id));
    assert_int_equal(line->state, IDEM_INTENT_SUCCEEDED);
    assert_int_equal(line->kind, IDEM_EFFECT_KIND_CHARGE);
    EXPECT_TEXT(line->effect_id, EFFECT_ID);
    EXPECT_TEXT(line->account, "acct-1");
    EXPECT_TEXT(line->region, "eu");
    EXPECT_TEXT(line->order_no, "order-1");
    EXPECT_TEXT(line->reference, "provider-77");
    assert_int_equal(line->amount_minor, 1250);
    EXPECT_TEXT(line->currency, "EUR");
    assert_int_equal(line->created_us, paid.row.created_us);
    assert_int_equal(line->finished_us, paid.row.finished_us);
    line = &read->effects[1];
    assert_int_equal(line->row, unpaid.row.row);
    assert_int_equal(line->state, IDEM_INTENT_UNKNOWN);
    assert_int_equal(line->kind, IDEM_EFFECT_KIND_REFUND);
    EXPECT_TEXT(line->order_no, "");
    assert_int_equal(line->finished_us, 0);
}

static void effects_come_in_pages_of_their_time(void **state)
{
    enum {
        COUNT = 2 * IDEM_READ_EFFECTS_MAX + 30,
        END_S = 10 * COUNT
    };
    static const struct {
        struct span span;
        size_t count;
    } cases[] = {
        { { "sandbox", 0, 100000 }, COUNT },
        { { "sandbox", 0, 0 }, 0 },
        { { "sandbox", 100, 101 }, 1 },
        { { "sandbox", 100, 100 }, 0 },
        { { "sandbox", 200, 50000 }, COUNT - 20 },
        { { "sandbox", 1000, 2280 }, IDEM_READ_EFFECTS_MAX },
        { { "sandbox", 1000, 2281 }, IDEM_READ_EFFECTS_MAX + 1 },
        { { "sandbox", END_S - 10, 50000 }, 1 },
        { { "sandbox", END_S, 50000 }, 0 },
        { { "sandbox", -1000, 1 }, 1 },
        { { "sandbox", -1000, 0 }, 0 },
        { { "other", 0, 50000 }, 0 },
    };
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    assert_int_equal(effects_walk(fixture, cases[0].span), 0); /* There is nothing at all. */
    fixture_rows_begin(rows);
    for (uint32_t i = 0; i < COUNT; i++) { /* One every ten seconds. */
        (void)intent_add(rows, 1000 + i, 10 * (int64_t)i);
    }
    fixture_rows_commit(rows);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        assert_int_equal(effects_walk(fixture, cases[i].span), cases[i].count);
    }
}

/* Several writers, or a clock that was put right: none is overlooked at either end. */
static void effects_that_are_a_little_out_of_order_are_found(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    for (uint32_t i = 0; i < 100; i++) {
        int64_t late_s = i % 7 == 0 ? -550 : 0; /* Made earlier than those before it. */
        (void)intent_add(rows, 1000 + i, 1000 + 60 * (int64_t)i + late_s);
    }
    fixture_rows_commit(rows);
    for (int64_t from_s = 0; from_s < 8000; from_s += 444) {
        size_t expected = 0;
        for (int64_t i = 0; i < 100; i++) {
            int64_t at_s = 1000 + 60 * i + (i % 7 == 0 ? -550 : 0);
            expected += at_s >= from_s && at_s < from_s + 1500 ? 1 : 0;
        }
        struct span span = { "sandbox", from_s, from_s + 1500 };
        assert_int_equal(effects_walk(fixture, span), expected);
    }
}

static void a_handle_or_the_next_one_says_when_it_was_made(void **state)
{
    struct idem_rows *rows = fixture_rows(*state);
    int64_t row = 9;
    int64_t created_us = 0;
    int64_t made[5];
    fixture_rows_begin(rows);
    assert_int_equal(rows->ops->find_created(rows, 1, &row, &created_us), IDEM_ROWS_OK);
    assert_int_equal(row, 0);
    for (uint32_t i = 0; i < 5; i++) {
        made[i] = intent_add(rows, 1000 + i, i);
    }
    intent_remove(rows, 1002, made[2]);
    intent_remove(rows, 1004, made[4]);
    fixture_rows_commit(rows);

    static const struct {
        size_t from;
        size_t found;
    } cases[] = { { 0, 0 }, { 1, 1 }, { 2, 3 }, { 3, 3 } };
    fixture_rows_begin(rows);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        assert_int_equal(rows->ops->find_created(rows, made[cases[i].from], &row, &created_us),
                         IDEM_ROWS_OK);
        assert_int_equal(row, made[cases[i].found]);
        assert_int_equal(created_us,
                         FIXTURE_START_US + (int64_t)cases[i].found * IDEM_US_PER_SECOND);
    }
    assert_int_equal(rows->ops->find_created(rows, made[3] + 1, &row, &created_us), IDEM_ROWS_OK);
    assert_int_equal(row, 0);
    assert_int_equal(rows->ops->find_created(rows, INT64_MAX, &row, &created_us), IDEM_ROWS_OK);
    assert_int_equal(row, 0);
    fixture_rows_commit(rows);
}

static void the_longest_effects_come_in_shorter_pages(void **state)
{
    static char text[IDEM_REFERENCE_MAX];
    static char order_no[IDEM_ORDER_NO_MAX + 1];
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    memset(text, 'r', sizeof(text));
    memset(order_no, 'o', IDEM_ORDER_NO_MAX);
    fixture_rows_begin(rows);
    int64_t payment_row = payment_add(rows, 'p', order_no);
    for (uint32_t i = 0; i < IDEM_READ_EFFECTS_MAX; i++) {
        struct idem_intent_write write = intent_named(1000 + i, i);
        write.row.payment_row = payment_row;
        write.row.effect.reference = (struct idem_str){ .data = text, .len = sizeof(text) };
        write.row.effect.account = (struct idem_str){ .data = text, .len = IDEM_ACCOUNT_MAX };
        write.row.effect.region = (struct idem_str){ .data = text, .len = IDEM_REGION_MAX };
        write.row.effect.entry = (struct idem_str){ .data = text, .len = IDEM_ENTRY_MAX };
        assert_int_equal(rows->ops->write_intent(rows, &write), IDEM_ROWS_OK);
    }
    fixture_rows_commit(rows);
    struct span span = { "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr", 0, 1000 };
    struct idem_read *read = effects_ask(fixture, span, 0);
    assert_true(read->more);
    assert_int_equal(read->effects[read->effect_count - 1].reference.len, IDEM_REFERENCE_MAX);
    assert_int_equal(effects_walk(fixture, span), IDEM_READ_EFFECTS_MAX);
}

static void case_add(struct idem_rows *rows, int64_t row, uint32_t id, enum idem_case_kind kind)
{
    struct idem_case opened = {
        .kind = kind,
        .id = uid(id),
        .opened_us = FIXTURE_START_US + id,
        .detail = IDEM_STR("another amount"),
    };
    assert_int_equal(rows->ops->add_case(rows, row, &opened), IDEM_ROWS_OK);
}

static void cases_decide(struct idem_rows *rows, int64_t row)
{
    struct idem_case decided = {
        .decided_us = FIXTURE_START_US + 5,
        .decided_by = IDEM_STR("anna"),
        .decision = IDEM_STR("noted: seen"),
    };
    assert_int_equal(rows->ops->decide_cases(rows, row, &decided), IDEM_ROWS_OK);
}

static void an_intent_says_which_kinds_of_cases_it_has(void **state)
{
    struct idem_rows *rows = fixture_rows(*state);
    uint32_t opened = 1;
    uint32_t decided = 1;
    fixture_rows_begin(rows);
    int64_t row = intent_add(rows, 'a', 0);
    int64_t other = intent_add(rows, 'b', 0);
    assert_int_equal(rows->ops->find_case_kinds(rows, row, &opened, &decided), IDEM_ROWS_OK);
    assert_int_equal(opened, 0);
    assert_int_equal(decided, 0);
    case_add(rows, row, 'x', IDEM_CASE_MISMATCH);
    case_add(rows, row, 'y', IDEM_CASE_DUPLICATE);
    cases_decide(rows, row);
    case_add(rows, row, 'z', IDEM_CASE_DUPLICATE);
    case_add(rows, other, 'w', IDEM_CASE_MISSING);
    assert_int_equal(rows->ops->find_case_kinds(rows, row, &opened, &decided), IDEM_ROWS_OK);
    assert_int_equal(opened, 1U << IDEM_CASE_DUPLICATE);
    assert_int_equal(decided, 1U << IDEM_CASE_MISMATCH | 1U << IDEM_CASE_DUPLICATE);
    fixture_rows_commit(rows);
}

static void a_case_leads_to_its_operation(void **state)
{
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    fixture_rows_begin(rows);
    (void)intent_add(rows, 'a', 0);
    int64_t row = intent_add(rows, 'b', 0);
    case_add(rows, row, 'x', IDEM_CASE_REVERSED);
    fixture_rows_commit(rows);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_CASE, "");
    read->id = uid('x');
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_true(read->found);
    assert_int_equal(read->intent.row, row);
    EXPECT_TEXT(read->intent.principal, "merchant-1");
    assert_int_equal(read->case_count, 1);
    assert_int_equal(read->cases[0].kind, IDEM_CASE_REVERSED);

    read->id = uid('b'); /* An operation's, which is no case's. */
    fixture_read(fixture);
    assert_int_equal(read->answer, IDEM_STORE_DURABLE);
    assert_false(read->found);
    assert_int_equal(read->intent.row, 0);
}

/* All pages of cases: how many, newest first. */
static size_t cases_walk(struct fixture *fixture, enum idem_case_kind kind, bool open_only)
{
    size_t count = 0;
    int64_t after_row = 0;
    bool more = true;
    while (more) {
        struct idem_read *read = fixture_ask(fixture, IDEM_READ_CASES, "");
        read->case_kind = kind;
        read->open_only = open_only;
        read->after_row = after_row;
        fixture_read(fixture);
        assert_int_equal(read->answer, IDEM_STORE_DURABLE);
        for (size_t i = 0; i < read->entry_count; i++) {
            const struct idem_entry *entry = &read->entries[i];
            assert_true(after_row == 0 || entry->row < after_row);
            assert_true(kind == IDEM_CASE_NONE || entry->opened.kind == kind);
            assert_true(!open_only || entry->opened.decided_us == 0);
            EXPECT_TEXT(entry->principal, "merchant-1");
            EXPECT_TEXT(entry->opened.detail, "another amount");
            after_row = entry->row;
        }
        more = read->more;
        assert_true(!more || read->entry_count > 0);
        count += read->entry_count;
    }
    return count;
}

static void cases_come_in_pages_newest_first(void **state)
{
    enum {
        COUNT = IDEM_READ_ENTRIES_MAX + 8
    };
    struct fixture *fixture = *state;
    struct idem_rows *rows = fixture_rows(fixture);
    assert_int_equal(cases_walk(fixture, IDEM_CASE_NONE, false), 0);
    fixture_rows_begin(rows);
    for (uint32_t i = 0; i < COUNT; i++) {
        int64_t row = intent_add(rows, 1000 + i, i);
        case_add(rows, row, 2000 + i, IDEM_CASE_MISMATCH);
        if (i % 2 == 0) {
            cases_decide(rows, row);
        }
        case_add(rows, row, 3000 + i, IDEM_CASE_MISSING);
    }
    fixture_rows_commit(rows);
    assert_int_equal(cases_walk(fixture, IDEM_CASE_NONE, false), 2 * COUNT);
    assert_int_equal(cases_walk(fixture, IDEM_CASE_NONE, true), COUNT + COUNT / 2);
    assert_int_equal(cases_walk(fixture, IDEM_CASE_MISMATCH, false), COUNT);
    assert_int_equal(cases_walk(fixture, IDEM_CASE_MISMATCH, true), COUNT / 2);
    assert_int_equal(cases_walk(fixture, IDEM_CASE_MISSING, true), COUNT);
    assert_int_equal(cases_walk(fixture, IDEM_CASE_NO_ROOM, false), 0);

    struct idem_read *read = fixture_ask(fixture, IDEM_READ_CASES, "");
    read->case_kind = IDEM_CASE_MISMATCH;
    fixture_read(fixture);
    assert_int_equal(read->entry_count, IDEM_READ_ENTRIES_MAX);
    const struct idem_entry *decided = &read->entries[1]; /* Of the newest but one intent. */
    assert_memory_equal(&decided->id, &(struct idem_uid[]){ uid(1000 + COUNT - 2) }, 16);
    assert_memory_equal(&decided->opened.id, &(struct idem_uid[]){ uid(2000 + COUNT - 2) }, 16);
    assert_int_equal(decided->opened.decided_us, FIXTURE_START_US + 5);
    EXPECT_TEXT(decided->opened.decided_by, "anna");
    EXPECT_TEXT(decided->opened.decision, "noted: seen");
    assert_int_equal(decided->amount_minor, 1250);
    EXPECT_TEXT(decided->currency, "EUR");
    EXPECT_TEXT(decided->entry, "sandbox");
}

#define CONFORM(function, setup) cmocka_unit_test_setup_teardown(function, setup, suite_teardown)
#define SUITE(setup)                                                          \
    {                                                                         \
        CONFORM(an_effect_shows_what_is_compared, setup),                     \
            CONFORM(effects_come_in_pages_of_their_time, setup),              \
            CONFORM(effects_that_are_a_little_out_of_order_are_found, setup), \
            CONFORM(a_handle_or_the_next_one_says_when_it_was_made, setup),   \
            CONFORM(the_longest_effects_come_in_shorter_pages, setup),        \
            CONFORM(an_intent_says_which_kinds_of_cases_it_has, setup),       \
            CONFORM(a_case_leads_to_its_operation, setup),                    \
            CONFORM(cases_come_in_pages_newest_first, setup),                 \
    }

/* Without an argument the stores that need no server; with "postgres" that one. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "postgres") == 0) {
        const struct CMUnitTest postgres[] = SUITE(setup_postgres);
        return cmocka_run_group_tests_name("pages: postgres", postgres, NULL, NULL);
    }
    const struct CMUnitTest memory[] = SUITE(setup_memory);
    const struct CMUnitTest sqlite[] = SUITE(setup_sqlite);
    int failed = cmocka_run_group_tests_name("pages: memory", memory, NULL, NULL);
    failed += cmocka_run_group_tests_name("pages: sqlite", sqlite, NULL, NULL);
    return failed == 0 ? 0 : 1;
}
