/*
 * The ledger and its file.
 *
 * Goal: what was recorded is what is read back, whatever way the process ended; damage is reported
 * and not guessed at; sums judge and do not hide.
 *
 * Method: real files in a directory of our own; a ledger is written, closed, opened again, and its
 * page compared as text.
 */
#include "sandbox/ledger.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/money.h"
#include "lib/test.h"

#define PAGE_MAX ((size_t)64 * 1024)

struct fixture {
    char folder[64];
    char path[128];
    struct idem_ledger *ledger;
    struct idem_error error;
};

static int fixture_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/idem-ledger-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    (void)snprintf(fixture->path, sizeof(fixture->path), "%s/ledger", fixture->folder);
    *state = fixture;
    return 0;
}

static int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;

    idem_ledger_destroy(fixture->ledger);
    (void)unlink(fixture->path); /* Not every test makes it. */
    assert_int_equal(rmdir(fixture->folder), 0);
    free(fixture);
    return 0;
}

static enum idem_err reopen(struct fixture *fixture)
{
    idem_ledger_destroy(fixture->ledger);
    fixture->ledger = NULL;
    return idem_ledger_create(fixture->path, &fixture->ledger, &fixture->error);
}

static struct idem_sandbox_order order_of(enum idem_sandbox_order_kind kind,
                                          const char *id,
                                          int64_t amount)
{
    struct idem_sandbox_order order = {
        .kind = kind,
        .amount_minor = amount,
        .id = idem_str_from(id),
        .currency = IDEM_STR("CNY"),
        .order_no = IDEM_STR("order \"1\"\n\xe4\xbd\xa0"),
    };

    if (idem_sandbox_order_makes_payment(kind)) {
        order.method = IDEM_STR("tok_ok");
    } else {
        order.payment_id = IDEM_STR("c1");
    }
    return order;
}

static void record(struct fixture *fixture, struct idem_ledger_event event)
{
    if (event.profile == IDEM_PROFILE_NONE) {
        event.profile = IDEM_PROFILE_PLAIN;
    }
    assert_int_equal(idem_ledger_record(fixture->ledger, &event, &fixture->error), IDEM_OK);
}

static void execute(struct fixture *fixture,
                    enum idem_sandbox_order_kind kind,
                    const char *id,
                    int64_t amount)
{
    struct idem_sandbox_order order = order_of(kind, id, amount);

    record(fixture, (struct idem_ledger_event){
                        .kind = IDEM_LEDGER_ARRIVAL, .id = order.id, .order = &order });
    record(fixture, (struct idem_ledger_event){ .kind = IDEM_LEDGER_EXECUTION,
                                                .id = order.id,
                                                .reference = IDEM_STR("sandbox-1") });
}

static struct idem_str page_of(const struct fixture *fixture, char *memory)
{
    struct idem_buf buf;
    struct idem_ledger_filter filter = { .id = { .data = NULL } };

    idem_buf_init(&buf, memory, PAGE_MAX);
    idem_ledger_print(fixture->ledger, &filter, &buf);
    assert_false(buf.full);
    return idem_buf_str(&buf);
}

static void append(const struct fixture *fixture, const char *text)
{
    int fd = open(fixture->path, O_WRONLY | O_APPEND);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static int64_t file_size(const struct fixture *fixture)
{
    struct stat status;

    assert_int_equal(stat(fixture->path, &status), 0);
    return status.st_size;
}

static void record_one_of_each(struct fixture *fixture)
{
    struct idem_sandbox_order other = order_of(IDEM_ORDER_CHARGE, "c1", 700);

    execute(fixture, IDEM_ORDER_CHARGE, "c1", 500);
    execute(fixture, IDEM_ORDER_REFUND, "r1", 200);
    record(fixture,
           (struct idem_ledger_event){
               .kind = IDEM_LEDGER_ARRIVAL, .id = IDEM_STR("c1"), .order = &other, .other = true });
    record(fixture, (struct idem_ledger_event){
                        .kind = IDEM_LEDGER_QUERY, .at_us = 1, .id = IDEM_STR("q1") });
    record(fixture, (struct idem_ledger_event){ .kind = IDEM_LEDGER_LISTING,
                                                .id = IDEM_STR("c1"),
                                                .trace = IDEM_STR("00-a-b-01") });
    record(fixture, (struct idem_ledger_event){
                        .kind = IDEM_LEDGER_CLOSE, .id = IDEM_STR("x1"), .closes = true });
    record(fixture, (struct idem_ledger_event){ .kind = IDEM_LEDGER_INVALID,
                                                .id = IDEM_STR("i1"),
                                                .code = IDEM_STR("bad") });
    record(fixture, (struct idem_ledger_event){ .kind = IDEM_LEDGER_DECLINE,
                                                .id = IDEM_STR("d1"),
                                                .code = IDEM_STR("no") });
    record(fixture, (struct idem_ledger_event){ .kind = IDEM_LEDGER_PROCESSING,
                                                .id = IDEM_STR("p1"),
                                                .profile = IDEM_PROFILE_DEDUP,
                                                .due_us = 77,
                                                .fails = true });
}

static void what_was_recorded_is_read_back(void **state)
{
    struct fixture *fixture = *state;
    char before[PAGE_MAX];
    char after[PAGE_MAX];

    assert_int_equal(reopen(fixture), IDEM_OK);
    record_one_of_each(fixture);
    struct idem_str page = page_of(fixture, before);
    assert_int_equal(reopen(fixture), IDEM_OK);
    struct idem_str again = page_of(fixture, after);
    assert_true(idem_str_equal(page, again));

    const struct idem_ledger_effect *effect =
        idem_ledger_find(fixture->ledger, IDEM_PROFILE_DEDUP, IDEM_STR("p1"));
    assert_non_null(effect);
    assert_int_equal(effect->processing, 1);
    assert_int_equal(effect->due_us, 77);
    assert_true(effect->due_fails);
    assert_int_equal(idem_ledger_executions(fixture->ledger), 2);
}

static void the_page_shows_the_order_of_arrival_and_both_counts(void **state)
{
    struct fixture *fixture = *state;
    char memory[PAGE_MAX];
    struct idem_buf buf;
    struct idem_ledger_filter filter = { .id = IDEM_STR("c1") };

    assert_int_equal(reopen(fixture), IDEM_OK);
    record_one_of_each(fixture);
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_ledger_print(fixture->ledger, &filter, &buf);
    EXPECT_TEXT(idem_buf_str(&buf),
                "{\"effects\":[{\"id\":\"c1\",\"profile\":\"plain\",\"kind\":\"charge\","
                "\"amount\":\"7.00\",\"currency\":\"CNY\","
                "\"order_no\":\"order \\\"1\\\"\\n\xe4\xbd\xa0\",\"authorized\":\"5.00\","
                "\"captured\":\"5.00\",\"canceled\":\"0.00\",\"refunded\":\"2.00\","
                "\"status\":\"succeeded\",\"reference\":\"sandbox-1\",\"trace\":\"00-a-b-01\","
                "\"arrivals\":2,"
                "\"executions\":1,\"queries\":0,\"closes\":0,\"listings\":1,\"conflicts\":1,"
                "\"reversals\":0,\"callbacks\":0,\"callbacks_taken\":0}],"
                "\"arrivals\":2,\"executions\":1}\n");

    filter = (struct idem_ledger_filter){ .order_no = IDEM_STR("another") };
    idem_buf_reset(&buf);
    idem_ledger_print(fixture->ledger, &filter, &buf);
    EXPECT_TEXT(idem_buf_str(&buf), "{\"effects\":[],\"arrivals\":0,\"executions\":0}\n");
}

static void a_torn_last_line_is_cut_wherever_it_tears(void **state)
{
    static const char line[] =
        "{\"at\":1,\"event\":\"arrival\",\"profile\":\"plain\",\"id\":\"c9\"}";
    struct fixture *fixture = *state;
    char memory[PAGE_MAX];

    assert_int_equal(reopen(fixture), IDEM_OK);
    execute(fixture, IDEM_ORDER_CHARGE, "c1", 500);
    int64_t size = file_size(fixture);
    for (size_t len = 1; len < sizeof(line); len++) {
        char torn[sizeof(line)] = { 0 };
        (void)memcpy(torn, line, len);
        append(fixture, torn);
        assert_int_equal(reopen(fixture), IDEM_OK);
        assert_int_equal(file_size(fixture), size);
        assert_null(idem_ledger_find(fixture->ledger, IDEM_PROFILE_PLAIN, IDEM_STR("c9")));
    }
    /* What follows the cut is a line of its own. */
    execute(fixture, IDEM_ORDER_CHARGE, "c2", 500);
    assert_int_equal(reopen(fixture), IDEM_OK);
    assert_non_null(strstr(page_of(fixture, memory).data, "\"arrivals\":2,\"executions\":2}\n"));
}

static void damage_is_reported_with_its_line(void **state)
{
    static const char *const lines[] = {
        "nonsense\n",
        "\n",
        "[]\n",
        "{\"at\":1,\"event\":\"theft\",\"profile\":\"plain\",\"id\":\"c1\"}\n",
        "{\"at\":1,\"event\":\"query\",\"profile\":\"nobody\",\"id\":\"c1\"}\n",
        "{\"at\":1,\"event\":\"query\",\"profile\":\"plain\",\"id\":\"c/1\"}\n",
        "{\"event\":\"query\",\"profile\":\"plain\",\"id\":\"c1\"}\n",
        "{\"at\":1,\"event\":\"execution\",\"profile\":\"plain\",\"id\":\"c77\"}\n",
        "{\"at\":1,\"event\":\"processing\",\"profile\":\"plain\",\"id\":\"c1\"}\n",
        "{\"at\":1,\"event\":\"arrival\",\"profile\":\"plain\",\"id\":\"c1\",\"order\":{}}\n",
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(lines); i++) {
        (void)unlink(fixture->path); /* Absent the first time. */
        assert_int_equal(reopen(fixture), IDEM_OK);
        execute(fixture, IDEM_ORDER_CHARGE, "c1", 500);
        append(fixture, lines[i]);
        assert_int_equal(reopen(fixture), IDEM_E_INVALID);
        assert_non_null(strstr(fixture->error.text, "line 3"));
    }
}

static void a_ledger_belongs_to_one_sandbox(void **state)
{
    struct fixture *fixture = *state;
    struct idem_ledger *second = NULL;

    assert_int_equal(reopen(fixture), IDEM_OK);
    assert_int_equal(idem_ledger_create(fixture->path, &second, &fixture->error), IDEM_E_SYSTEM);
    assert_null(second);
}

static void a_write_that_fails_counts_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct idem_sandbox_order order = order_of(IDEM_ORDER_CHARGE, "c1", 500);
    struct idem_ledger_event event = {
        .kind = IDEM_LEDGER_ARRIVAL, .profile = IDEM_PROFILE_PLAIN, .id = order.id, .order = &order
    };

    assert_int_equal(idem_ledger_create("/dev/full", &fixture->ledger, &fixture->error), IDEM_OK);
    assert_int_equal(idem_ledger_record(fixture->ledger, &event, &fixture->error), IDEM_E_SYSTEM);
    assert_null(idem_ledger_find(fixture->ledger, IDEM_PROFILE_PLAIN, order.id));
    assert_int_equal(idem_ledger_record(fixture->ledger, &event, &fixture->error), IDEM_E_SYSTEM);
}

static void nothing_follows_a_line_that_was_written_in_part(void **state)
{
    struct fixture *fixture = *state;
    struct idem_ledger_event event = { .kind = IDEM_LEDGER_QUERY,
                                       .profile = IDEM_PROFILE_PLAIN,
                                       .id = IDEM_STR("c2") };
    struct rlimit before;
    struct rlimit tight;

    assert_int_equal(reopen(fixture), IDEM_OK);
    execute(fixture, IDEM_ORDER_CHARGE, "c1", 500);
    int64_t size = file_size(fixture);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = (struct rlimit){ .rlim_cur = (rlim_t)size + 10, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    assert_int_equal(idem_ledger_record(fixture->ledger, &event, &fixture->error), IDEM_E_SYSTEM);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(file_size(fixture), size + 10);
    assert_int_equal(idem_ledger_record(fixture->ledger, &event, &fixture->error), IDEM_E_SYSTEM);

    assert_int_equal(reopen(fixture), IDEM_OK);
    assert_int_equal(file_size(fixture), size);
    record(fixture, event);
    assert_int_equal(reopen(fixture), IDEM_OK);
    assert_non_null(idem_ledger_find(fixture->ledger, IDEM_PROFILE_PLAIN, event.id));
}

struct allowance {
    enum idem_sandbox_order_kind kind;
    int64_t amount;
    const char *code; /* NULL: allowed, and done. */
};

static void walk(struct fixture *fixture,
                 enum idem_sandbox_order_kind payment_kind,
                 const struct allowance *steps,
                 size_t count)
{
    assert_int_equal(idem_ledger_create(NULL, &fixture->ledger, &fixture->error), IDEM_OK);
    execute(fixture, payment_kind, "c1", 1000);
    for (size_t i = 0; i < count; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "step%zu", i);
        struct idem_sandbox_order order = order_of(steps[i].kind, id, steps[i].amount);
        const char *code = idem_ledger_allows(
            idem_ledger_find(fixture->ledger, IDEM_PROFILE_PLAIN, IDEM_STR("c1")), &order);
        EXPECT_TEXT(idem_str_from(code), steps[i].code == NULL ? "" : steps[i].code);
        if (code == NULL) {
            execute(fixture, steps[i].kind, id, steps[i].amount);
        }
    }
    idem_ledger_destroy(fixture->ledger);
    fixture->ledger = NULL;
}

static void no_operation_takes_more_than_the_payment_has(void **state)
{
    static const struct allowance authorized[] = {
        { IDEM_ORDER_REFUND, 1, "amount_exceeds" },
        { IDEM_ORDER_CAPTURE, 1001, "amount_exceeds" },
        { IDEM_ORDER_CAPTURE, 600, NULL },
        { IDEM_ORDER_CAPTURE, 401, "amount_exceeds" },
        { IDEM_ORDER_CANCEL, 401, "amount_exceeds" },
        { IDEM_ORDER_CANCEL, 300, NULL },
        { IDEM_ORDER_CAPTURE, 100, "state" },
        { IDEM_ORDER_CANCEL, 101, "amount_exceeds" },
        { IDEM_ORDER_CANCEL, 100, NULL },
        { IDEM_ORDER_REFUND, 601, "amount_exceeds" },
        { IDEM_ORDER_REFUND, 600, NULL },
        { IDEM_ORDER_REFUND, 1, "amount_exceeds" },
        { IDEM_ORDER_REFUND, INT64_MAX, "amount_exceeds" },
    };
    static const struct allowance charged[] = {
        { IDEM_ORDER_CAPTURE, 1, "amount_exceeds" },   { IDEM_ORDER_CANCEL, 1, "amount_exceeds" },
        { IDEM_ORDER_REFUND, 1001, "amount_exceeds" }, { IDEM_ORDER_REFUND, 1000, NULL },
        { IDEM_ORDER_REFUND, 1, "amount_exceeds" },
    };

    walk(*state, IDEM_ORDER_AUTHORIZE, authorized, IDEM_ARRAY_COUNT(authorized));
    walk(*state, IDEM_ORDER_CHARGE, charged, IDEM_ARRAY_COUNT(charged));
}

static void money_that_moved_twice_is_in_the_sums(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(idem_ledger_create(NULL, &fixture->ledger, &fixture->error), IDEM_OK);
    execute(fixture, IDEM_ORDER_CHARGE, "c1", 1000);
    execute(fixture, IDEM_ORDER_REFUND, "r1", 1000);
    execute(fixture, IDEM_ORDER_REFUND, "r1", 1000);
    const struct idem_ledger_effect *payment =
        idem_ledger_find(fixture->ledger, IDEM_PROFILE_PLAIN, IDEM_STR("c1"));
    assert_int_equal(payment->refunded, 2000);
    record(fixture, (struct idem_ledger_event){ .kind = IDEM_LEDGER_DECLINE,
                                                .id = IDEM_STR("r1"),
                                                .code = IDEM_STR("no") });
    assert_int_equal(idem_ledger_find(fixture->ledger, IDEM_PROFILE_PLAIN, IDEM_STR("r1"))->status,
                     IDEM_LEDGER_SUCCEEDED);
}

static void ten_thousand_effects_are_found_again(void **state)
{
    struct fixture *fixture = *state;
    char id[16];

    assert_int_equal(reopen(fixture), IDEM_OK);
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(id, sizeof(id), "c%d", i);
        execute(fixture, IDEM_ORDER_CHARGE, id, 1 + i);
    }
    assert_int_equal(reopen(fixture), IDEM_OK);
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(id, sizeof(id), "c%d", i);
        const struct idem_ledger_effect *effect =
            idem_ledger_find(fixture->ledger, IDEM_PROFILE_PLAIN, idem_str_from(id));
        assert_non_null(effect);
        assert_int_equal(effect->captured, 1 + i);
    }
    assert_int_equal(idem_ledger_effects(fixture->ledger)->count, 10000);
}

int main(void)
{
#define WITH_FOLDER(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(what_was_recorded_is_read_back),
        WITH_FOLDER(the_page_shows_the_order_of_arrival_and_both_counts),
        WITH_FOLDER(a_torn_last_line_is_cut_wherever_it_tears),
        WITH_FOLDER(damage_is_reported_with_its_line),
        WITH_FOLDER(a_ledger_belongs_to_one_sandbox),
        WITH_FOLDER(a_write_that_fails_counts_nothing),
        WITH_FOLDER(nothing_follows_a_line_that_was_written_in_part),
        WITH_FOLDER(no_operation_takes_more_than_the_payment_has),
        WITH_FOLDER(money_that_moved_twice_is_in_the_sums),
        WITH_FOLDER(ten_thousand_effects_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
