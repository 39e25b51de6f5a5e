/*
 * The journal's records.
 *
 * Goal: what was begun is there after any death, in doubt, byte for byte; a record that has moved
 * on is not written over; a key that is replaced is kept; only what is over is forgotten; the list
 * shows everything once, in the order of its making; several clients see one truth.
 *
 * Method: real files in a directory of their own; processes that end by SIGKILL, between calls and
 * at every single write or flush of a begin, through SQLite's own table of system calls.
 */
#include "unit/client/journal_deadly.h"

#define PROCESSES  8
#define NAMES_EACH 4

/* Every member. */

static const char binary[] = { 'a', '\0', '\n', '\xff', '\'', '"', '\0' };
#define BINARY ((struct idem_str){ .data = binary, .len = sizeof(binary) })

static void expect_same(struct idem_str actual, struct idem_str expected)
{
    assert_int_equal(actual.len, expected.len);
    assert_memory_equal(actual.data, expected.data, expected.len);
    assert_int_equal(actual.data[actual.len], '\0'); /* Each text has a zero byte behind it. */
}

static void expect_record(const struct idem_client_record *actual,
                          const struct idem_client_record *expected)
{
    assert_true(actual->id == expected->id && actual->version == expected->version);
    expect_same(actual->name, expected->name);
    expect_same(actual->key, expected->key);
    expect_same(actual->dialect, expected->dialect);
    expect_same(actual->method, expected->method);
    expect_same(actual->url, expected->url);
    expect_same(actual->headers, expected->headers);
    expect_same(actual->body, expected->body);
    expect_same(actual->status_url, expected->status_url);
    expect_same(actual->operation_url, expected->operation_url);
    expect_same(actual->message, expected->message);
    expect_same(actual->answer_headers, expected->answer_headers);
    expect_same(actual->answer_body, expected->answer_body);
    assert_true(actual->key_own == expected->key_own && actual->doubt == expected->doubt);
    assert_true(actual->over == expected->over && actual->replayed == expected->replayed);
    assert_true(actual->deadline_us == expected->deadline_us);
    assert_true(actual->window_us == expected->window_us);
    assert_true(actual->created_us == expected->created_us);
    assert_true(actual->first.wall_us == expected->first.wall_us);
    assert_true(actual->first.mono_us == expected->first.mono_us);
    assert_string_equal(actual->first.boot, expected->first.boot);
    assert_true(actual->begun_us == expected->begun_us);
    assert_true(actual->outcome == expected->outcome && actual->reason == expected->reason);
    assert_int_equal(actual->answer_status, expected->answer_status);
    assert_true(actual->expires_us == expected->expires_us);
    assert_true(actual->ended_us == expected->ended_us);
}

/* Writes it, ends it, and reads it through another opening. */
static void expect_round_trip(const struct scene *scene, struct idem_client_record record)
{
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record *records[] = { &record };
    struct idem_client_error error;
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_true(record.id > 0 && record.version == 1);
    assert_int_equal(idem_client_journal_end(journal, records, 1, &error), IDEM_CLIENT_OK);
    idem_client_journal_close(journal);

    journal = journal_open(scene->path);
    char name[IDEM_CLIENT_NAME_MAX + 1];
    (void)snprintf(name, sizeof(name), "%.*s", (int)record.name.len, record.name.data);
    struct idem_client_record found = record_find(journal, name);
    expect_record(&found, &record);
    idem_client_record_clear(&found);
    assert_null(found.memory);
    idem_client_journal_close(journal);
}

static void a_record_with_nothing_in_it_comes_back(void **state)
{
    expect_round_trip(*state,
                      (struct idem_client_record){ .name = IDEM_STR("n"), .key_own = true });
}

static void a_record_full_of_any_bytes_comes_back(void **state)
{
    struct idem_client_record record = record_make("order 7 \xe2\x82\xac");
    record.headers = BINARY;
    record.body = BINARY;
    record.message = BINARY;
    record.answer_headers = BINARY;
    record.answer_body = BINARY;
    record.operation_url = IDEM_STR("http://127.0.0.1/v1/operations/1");
    record.status_url = IDEM_STR("http://127.0.0.1/orders/7");
    record.key_own = false;
    record.window_us = INT64_MAX;
    record.first =
        (struct idem_moment){ INT64_MAX, INT64_MIN, "11111111-1111-4111-8111-111111111111" };
    record.begun_us = 3;
    record.doubt = true;
    record.outcome = IDEM_CLIENT_UNKNOWN;
    record.reason = IDEM_CLIENT_DECIDED; /* The last of them. */
    record.over = true;
    record.replayed = true;
    record.answer_status = 599;
    record.expires_us = INT64_MIN;
    record.ended_us = 17;
    expect_round_trip(*state, record);
}

static void a_record_of_the_largest_size_comes_back(void **state)
{
    char *bytes = malloc(IDEM_CLIENT_BODY_MAX);
    assert_non_null(bytes);
    for (size_t i = 0; i < IDEM_CLIENT_BODY_MAX; i++) {
        bytes[i] = (char)(i * 2654435761U >> 13);
    }
    char text[IDEM_CLIENT_URL_MAX];
    memset(text, 'x', sizeof(text));
    struct idem_client_record record = record_make("largest");
    record.name = (struct idem_str){ text, IDEM_CLIENT_NAME_MAX };
    record.key = (struct idem_str){ text, 255 };
    record.url = (struct idem_str){ text, IDEM_CLIENT_URL_MAX };
    record.status_url = record.url;
    record.operation_url = record.url;
    record.headers = (struct idem_str){ bytes, IDEM_CLIENT_HEADER_SIZE };
    record.answer_headers = record.headers;
    record.body = (struct idem_str){ bytes, IDEM_CLIENT_BODY_MAX };
    record.answer_body = record.body;
    record.answer_status = UINT16_MAX;
    expect_round_trip(*state, record);
    free(bytes);
}

static void what_is_too_long_is_refused_and_leaves_nothing(void **state)
{
    const struct scene *scene = *state;
    static char text[IDEM_CLIENT_BODY_MAX + 1];
    memset(text, 'x', sizeof(text));
    const struct {
        size_t offset;
        size_t len;
    } rows[] = {
        { offsetof(struct idem_client_record, name), 0 },
        { offsetof(struct idem_client_record, name), 201 },
        { offsetof(struct idem_client_record, key), 256 },
        { offsetof(struct idem_client_record, method), 8 },
        { offsetof(struct idem_client_record, url), 2049 },
        { offsetof(struct idem_client_record, status_url), 2049 },
        { offsetof(struct idem_client_record, headers), 8193 },
        { offsetof(struct idem_client_record, body), 16777217 },
    };
    struct idem_client_journal *journal = journal_open(scene->path);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_client_record record = record_make("n");
        *(struct idem_str *)(void *)((char *)&record + rows[i].offset) =
            (struct idem_str){ text, rows[i].len };
        assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_E_INVALID);
        assert_true(record.id == 0 && record.version == 0);
    }
    idem_client_journal_close(journal);
    assert_int_equal(number_ask(scene->path, "SELECT count(*) FROM intents"), 0);
}

static void a_name_is_up_to_200_bytes_of_utf8(void **state)
{
    const struct scene *scene = *state;
    char name[IDEM_CLIENT_NAME_MAX + 2] = "";
    for (size_t i = 0; i < IDEM_CLIENT_NAME_MAX; i++) {
        name[i] = (char)(i % 2 == 0 ? 0xc3 : 0xa9);
    }
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record record = record_make(name);
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_true(record_is_there(journal, name));
    const char *const refused[] = { "a\nb", "a\x7f", "\xc3", "\xff" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(refused); i++) {
        record = record_make(refused[i]);
        assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_E_INVALID);
    }
    name[IDEM_CLIENT_NAME_MAX] = 'x';
    record = record_make(name);
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_E_INVALID);
    idem_client_journal_close(journal);
}

/* Deaths. */

static void begin_and_die(const struct scene *scene, int number)
{
    struct idem_client_journal *journal = child_open(scene);
    struct idem_client_record record = record_make("order-7");
    if (number == 0) {
        die();
    }
    CHILD_MUST(record_begin(journal, &record) == IDEM_CLIENT_OK);
    die();
}

static void a_death_after_begin_leaves_the_record_in_doubt(void **state)
{
    const struct scene *scene = *state;
    assert_int_equal(child_end(child_start(begin_and_die, scene, 0)), -SIGKILL);
    struct idem_client_journal *journal = journal_open(scene->path);
    assert_false(record_is_there(journal, "order-7"));
    idem_client_journal_close(journal);

    assert_int_equal(child_end(child_start(begin_and_die, scene, 1)), -SIGKILL);
    journal = journal_open(scene->path);
    struct idem_client_record found = record_find(journal, "order-7");
    struct idem_client_record expected = record_make("order-7");
    expected.id = found.id;
    expected.version = 1;
    expected.doubt = true; /* Whatever the caller handed in. */
    expect_record(&found, &expected);
    idem_client_record_clear(&found);
    idem_client_journal_close(journal);
}

static void begin_two_and_die_inside(const struct scene *scene, int number)
{
    struct idem_client_journal *journal = child_open(scene);
    struct idem_client_record one = record_make("one");
    struct idem_client_record two = record_make("two");
    struct idem_client_record *both[] = { &one, &two };
    struct idem_client_error error;
    deadly_arm(number);
    CHILD_MUST(idem_client_journal_begin(journal, both, 2, &error) == IDEM_CLIENT_OK);
    _exit(7); /* It was survived. */
}

static void a_death_anywhere_in_begin_leaves_both_records_or_none(void **state)
{
    const struct scene *scene = *state;
    int number = 0;
    int status = -SIGKILL;
    for (; status == -SIGKILL; number++) {
        status = child_end(child_start(begin_two_and_die_inside, scene, number));
        assert_true(status == -SIGKILL || status == 7);
        struct idem_client_journal *journal = journal_open(scene->path);
        bool there = record_is_there(journal, "one");
        assert_true(there == record_is_there(journal, "two"));
        assert_true(there || status != 7);
        idem_client_journal_close(journal);
        assert_int_equal(number_ask(scene->path,
                                    "SELECT count(*) FROM pragma_integrity_check"
                                    " WHERE integrity_check <> 'ok'"),
                         0);
        journal_remove(scene);
    }
    assert_true(number > 3); /* There were places to die at. */
}

static void open_and_die_inside(const struct scene *scene, int number)
{
    deadly_arm(number);
    (void)child_open(scene);
    _exit(7);
}

static void a_death_anywhere_in_opening_leaves_a_journal(void **state)
{
    const struct scene *scene = *state;
    int number = 0;
    int status = -SIGKILL;
    for (; status == -SIGKILL; number++) {
        status = child_end(child_start(open_and_die_inside, scene, number));
        assert_true(status == -SIGKILL || status == 7);
        struct idem_client_journal *journal = journal_open(scene->path);
        struct idem_client_record record = record_make("after");
        assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
        idem_client_journal_close(journal);
        journal_remove(scene);
    }
    assert_true(number > 3);
}

/* Versions, keys, endings. */

static void a_record_that_has_moved_on_undoes_the_whole_begin(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record stale = record_make("stale");
    assert_int_equal(record_begin(journal, &stale), IDEM_CLIENT_OK);
    struct idem_client_record current = stale;
    assert_int_equal(record_end(journal, &current, IDEM_CLIENT_DONE, true), IDEM_CLIENT_OK);

    struct idem_client_record fresh = record_make("fresh");
    struct idem_client_record twin = record_make("stale");
    struct idem_client_record *pairs[][2] = { { &fresh, &stale }, { &fresh, &twin } };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(pairs); i++) {
        struct idem_client_error error = { .text = "" };
        assert_int_equal(idem_client_journal_begin(journal, pairs[i], 2, &error),
                         IDEM_CLIENT_E_BUSY);
        assert_true(error.text[0] != '\0');
        assert_true(fresh.id == 0 && fresh.version == 0 && twin.id == 0 && stale.version == 1);
        assert_false(record_is_there(journal, "fresh"));
    }
    struct idem_client_error error;
    assert_int_equal(record_note(journal, &stale, IDEM_STR("/late")), IDEM_CLIENT_E_BUSY);
    assert_int_equal(record_end(journal, &stale, IDEM_CLIENT_UNKNOWN, false), IDEM_CLIENT_E_BUSY);
    assert_int_equal(idem_client_journal_renew(journal, &stale, &error), IDEM_CLIENT_E_BUSY);
    struct idem_client_record found = record_find(journal, "stale");
    assert_true(found.outcome == IDEM_CLIENT_DONE && found.version == 2);
    idem_client_record_clear(&found);
    assert_int_equal(record_begin(journal, &fresh), IDEM_CLIENT_OK);
    idem_client_journal_close(journal);
}

static void an_address_that_is_told_late_undoes_the_others_of_its_note(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record one = record_make("one");
    struct idem_client_record two = record_make("two");
    struct idem_client_record *both[] = { &one, &two };
    struct idem_client_error error = { .text = "" };
    assert_int_equal(idem_client_journal_begin(journal, both, 2, &error), IDEM_CLIENT_OK);
    one.operation_url = IDEM_STR("/v1/operations/1");
    two.operation_url = IDEM_STR("/v1/operations/2");
    assert_int_equal(idem_client_journal_note(journal, both, 2, &error), IDEM_CLIENT_OK);
    assert_true(one.version == 2 && two.version == 2);

    struct idem_client_record stale = two;
    assert_int_equal(record_end(journal, &two, IDEM_CLIENT_UNKNOWN, false), IDEM_CLIENT_OK);
    one.operation_url = IDEM_STR("/v1/operations/3");
    both[1] = &stale;
    assert_int_equal(idem_client_journal_note(journal, both, 2, &error), IDEM_CLIENT_E_BUSY);
    assert_non_null(strstr(error.text, "changed since this handle was made"));
    assert_true(one.version == 2 && stale.version == 2);
    struct idem_client_record found = record_find(journal, "one");
    expect_same(found.operation_url, IDEM_STR("/v1/operations/1"));
    idem_client_record_clear(&found);
    found = record_find(journal, "two");
    expect_same(found.operation_url, IDEM_STR("/v1/operations/2"));
    idem_client_record_clear(&found);
    idem_client_journal_close(journal);
}

/* The key of a handle must not drift from the journal's: repeated is what was sent, or nothing. */
static void a_record_whose_key_was_changed_in_memory_cannot_begin(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record record = record_make("order-7");
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_REFUSED, false), IDEM_CLIENT_OK);
    struct idem_client_record drifted = record;
    drifted.key = IDEM_STR("key-2");
    struct idem_client_record fresh = record_make("fresh");
    struct idem_client_record *both[] = { &fresh, &drifted };
    struct idem_client_error error = { .text = "" };
    assert_int_equal(idem_client_journal_begin(journal, both, 2, &error), IDEM_CLIENT_E_BUSY);
    assert_non_null(strstr(error.text, "release it and take it again"));
    assert_true(drifted.version == record.version && fresh.id == 0);
    assert_false(record_is_there(journal, "fresh"));
    struct idem_client_record found = record_find(journal, "order-7");
    expect_record(&found, &record);
    idem_client_record_clear(&found);
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    idem_client_journal_close(journal);
}

static void a_run_again_leaves_the_request_as_it_was_sent(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record record = record_make("order-7");
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    struct idem_client_record expected = record;
    record.key_own = false;
    record.dialect = IDEM_STR("stripe");
    record.method = IDEM_STR("PUT");
    record.url = IDEM_STR("http://127.0.0.1/elsewhere");
    record.headers = IDEM_STR("A: b\n");
    record.body = IDEM_STR("{\"other\":1}");
    record.created_us += 1;
    record.status_url = expected.status_url = IDEM_STR("http://127.0.0.1/orders/7");
    record.deadline_us = expected.deadline_us = 5;
    record.window_us = expected.window_us = 6;
    record.first = expected.first =
        (struct idem_moment){ .wall_us = WALL_US + 7, .mono_us = 8, .boot = "b-boot" };
    record.begun_us = expected.begun_us = WALL_US + 9;
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);

    struct idem_client_record found = record_find(journal, "order-7");
    expected.version = 2;
    expected.doubt = true;
    expect_record(&found, &expected);
    idem_client_record_clear(&found);
    idem_client_journal_close(journal);
}

static void a_new_run_takes_the_verdict_off_and_keeps_what_is_of_the_key(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record record = record_make("order-7");
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_int_equal(record_note(journal, &record, IDEM_STR("/v1/operations/1")), IDEM_CLIENT_OK);
    record.message = IDEM_STR("so it is");
    record.answer_status = 409;
    record.answer_body = IDEM_STR("body");
    record.expires_us = WALL_US + 99;
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_REFUSED, false), IDEM_CLIENT_OK);
    assert_false(record.doubt);
    record.deadline_us = 5;
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);

    struct idem_client_record found = record_find(journal, "order-7");
    struct idem_client_record expected = record_make("order-7");
    expected.id = record.id;
    expected.version = record.version;
    expected.deadline_us = 5;
    expected.doubt = true;
    expected.operation_url = record.operation_url;
    expected.expires_us = record.expires_us;
    expect_record(&found, &expected);
    idem_client_record_clear(&found);
    idem_client_journal_close(journal);
}

static void a_new_key_keeps_the_former_one_and_what_became_of_it(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record record = record_make("order-7");
    struct idem_client_error error;
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_int_equal(idem_client_journal_renew(journal, &record, &error), IDEM_CLIENT_E_REFUSED);
    const enum idem_client_outcome others[] = { IDEM_CLIENT_DONE, IDEM_CLIENT_UNKNOWN };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(others); i++) {
        assert_int_equal(record_end(journal, &record, others[i], false), IDEM_CLIENT_OK);
        assert_int_equal(idem_client_journal_renew(journal, &record, &error),
                         IDEM_CLIENT_E_REFUSED);
    }
    record.operation_url = IDEM_STR("/v1/operations/1");
    record.message = IDEM_STR("declined");
    record.expires_us = WALL_US + 99;
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_REFUSED, true), IDEM_CLIENT_OK);
    record.key = IDEM_STR("key-2");
    record.body = IDEM_STR("{\"other\":1}");
    record.first = (struct idem_moment){ .wall_us = 0 };
    assert_int_equal(idem_client_journal_renew(journal, &record, &error), IDEM_CLIENT_OK);

    struct idem_client_record found = record_find(journal, "order-7");
    struct idem_client_record expected = record_make("order-7");
    expected.id = record.id;
    expected.version = record.version;
    expected.key = IDEM_STR("key-2");
    expected.body = IDEM_STR("{\"other\":1}");
    expected.first = (struct idem_moment){ .wall_us = 0 };
    expect_record(&found, &expected);
    idem_client_record_clear(&found);
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_REFUSED, true), IDEM_CLIENT_OK);
    record.key = IDEM_STR("key-3");
    assert_int_equal(idem_client_journal_renew(journal, &record, &error), IDEM_CLIENT_OK);
    idem_client_journal_close(journal);
    static const char former[] =
        "SELECT count(*) FROM former_keys WHERE outcome = 2 AND reason = 1"
        " AND length(request_digest) = 32 AND (key, generation, message) IN"
        " (('order-7', 1, 'declined'), ('key-2', 2, 'declined'))";
    assert_int_equal(number_ask(scene->path, former), 2);
    assert_int_equal(
        number_ask(scene->path, "SELECT count(DISTINCT request_digest) FROM former_keys"), 2);
}

static void what_may_have_happened_is_not_forgotten_and_what_did_not_frees_its_name(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record record = record_make("order-7");
    struct idem_client_error error = { .text = "" };
    struct idem_str name = record.name;
    assert_int_equal(idem_client_journal_forget(journal, name, &error), IDEM_CLIENT_E_UNKNOWN);
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_int_equal(idem_client_journal_forget(journal, name, &error), IDEM_CLIENT_E_REFUSED);
    record.doubt = true;
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_UNKNOWN, false), IDEM_CLIENT_OK);
    assert_int_equal(idem_client_journal_forget(journal, name, &error), IDEM_CLIENT_E_REFUSED);
    record.doubt = false;
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_REFUSED, false), IDEM_CLIENT_OK);
    assert_int_equal(idem_client_journal_forget(journal, name, &error), IDEM_CLIENT_OK);
    assert_false(record_is_there(journal, "order-7"));

    record = record_make("order-7");
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_REFUSED, false), IDEM_CLIENT_OK);
    record.key = IDEM_STR("key-2");
    assert_int_equal(idem_client_journal_renew(journal, &record, &error), IDEM_CLIENT_OK);
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_DONE, true), IDEM_CLIENT_OK);
    assert_int_equal(idem_client_journal_forget(journal, name, &error), IDEM_CLIENT_OK);
    assert_false(record_is_there(journal, "order-7"));

    struct idem_client_record again = record_make("order-7");
    assert_int_equal(record_begin(journal, &again), IDEM_CLIENT_OK);
    assert_true(again.id > record.id); /* A stale record must not match another intent. */
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_DONE, true), IDEM_CLIENT_E_BUSY);
    idem_client_journal_close(journal);
    assert_int_equal(number_ask(scene->path, "SELECT count(*) FROM former_keys"), 0);
}

static void expect_entry(const struct idem_client_entry *entry)
{
    assert_string_equal(entry->status_url, "http://127.0.0.1/v1/operations/1");
    assert_string_equal(entry->key, "m");
    assert_string_equal(entry->method, "POST");
    assert_string_equal(entry->url, "http://127.0.0.1/v1/payments");
    assert_int_equal(entry->outcome, IDEM_CLIENT_UNKNOWN);
    assert_int_equal(entry->reason, IDEM_CLIENT_ANSWERED);
    assert_int_equal(entry->status, 503);
    assert_false(entry->over);
    assert_true(entry->created_ms == WALL_US / 1000);
    assert_true(entry->ended_ms == (WALL_US + 10) / 1000);
}

/* The first letters of what is listed, in its order. */
static void expect_list(struct idem_client_journal *journal, bool pending, const char *letters)
{
    char seen[8] = "";
    struct idem_client_entry entry = { .position = 0 };
    struct idem_client_error error;
    enum idem_client_err err;
    while ((err = idem_client_journal_next(journal, entry.position, pending, &entry, &error)) ==
           IDEM_CLIENT_OK) {
        seen[strlen(seen)] = entry.name[0];
        if (entry.name[0] == 'm') {
            expect_entry(&entry);
        }
    }
    assert_int_equal(err, IDEM_CLIENT_E_UNKNOWN);
    assert_string_equal(seen, letters);
}

static void the_list_shows_each_once_in_the_order_of_its_making(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record first = record_make("z");
    struct idem_client_record done = record_make("a");
    struct idem_client_record lost = record_make("m");
    struct idem_client_record last = record_make("b");
    struct idem_client_record *const all[] = { &first, &done, &lost, &last };
    expect_list(journal, false, "");
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(all); i++) {
        assert_int_equal(record_begin(journal, all[i]), IDEM_CLIENT_OK);
    }
    lost.operation_url = IDEM_STR("http://127.0.0.1/v1/operations/1");
    lost.answer_status = 503;
    assert_int_equal(record_end(journal, &lost, IDEM_CLIENT_UNKNOWN, false), IDEM_CLIENT_OK);
    assert_int_equal(record_end(journal, &done, IDEM_CLIENT_DONE, true), IDEM_CLIENT_OK);
    expect_list(journal, false, "zamb");
    expect_list(journal, true, "zmb");
    idem_client_journal_close(journal);
}

static void the_latest_wall_time_is_kept_and_never_falls(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_journal *other = journal_open(scene->path);
    struct idem_client_record record = record_make("order-7");
    assert_true(idem_client_journal_high_us(journal) == 0);
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_true(idem_client_journal_high_us(journal) == WALL_US + 1);
    record.begun_us = WALL_US + 5;
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_true(idem_client_journal_high_us(journal) == WALL_US + 5);
    assert_int_equal(record_end(journal, &record, IDEM_CLIENT_DONE, true), IDEM_CLIENT_OK);
    struct idem_client_record earlier = record_make("earlier");
    earlier.created_us = 1;
    earlier.first.wall_us = 2;
    assert_int_equal(record_begin(journal, &earlier), IDEM_CLIENT_OK);
    assert_true(idem_client_journal_high_us(journal) == WALL_US + 10);
    assert_true(record_is_there(other, "order-7"));
    assert_true(idem_client_journal_high_us(other) == WALL_US + 10);
    idem_client_journal_close(other);
    idem_client_journal_close(journal);
    journal = journal_open(scene->path);
    assert_true(idem_client_journal_high_us(journal) == WALL_US + 10);
    idem_client_journal_close(journal);
}

/* Several clients. */

static void two_clients_of_a_journal_see_each_others_verdicts(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *one = journal_open(scene->path);
    struct idem_client_journal *two = journal_open(scene->path);
    struct idem_client_record record = record_make("order-7");
    struct idem_client_error error = { .text = "" };
    assert_int_equal(idem_client_journal_lock(one, record.name, &error), IDEM_CLIENT_OK);
    assert_int_equal(idem_client_journal_lock(two, record.name, &error), IDEM_CLIENT_E_BUSY);
    assert_int_equal(idem_client_journal_lock(two, IDEM_STR("order-8"), &error), IDEM_CLIENT_OK);
    assert_int_equal(record_begin(one, &record), IDEM_CLIENT_OK);
    assert_int_equal(record_end(one, &record, IDEM_CLIENT_DONE, true), IDEM_CLIENT_OK);
    idem_client_journal_unlock(one, record.name);
    assert_int_equal(idem_client_journal_lock(two, record.name, &error), IDEM_CLIENT_OK);
    struct idem_client_record found = record_find(two, "order-7");
    assert_true(found.outcome == IDEM_CLIENT_DONE && found.over);
    idem_client_record_clear(&found);
    idem_client_journal_close(two);
    assert_int_equal(idem_client_journal_lock(one, record.name, &error), IDEM_CLIENT_OK);
    idem_client_journal_close(one);
}

static void begin_own_name(const struct scene *scene, int number)
{
    struct idem_client_journal *journal = child_open(scene);
    for (int i = 0; i < NAMES_EACH; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%d-%d", number, i);
        struct idem_client_record record = record_make(name);
        struct idem_client_error error;
        CHILD_MUST(idem_client_journal_lock(journal, record.name, &error) == IDEM_CLIENT_OK);
        CHILD_MUST(record_begin(journal, &record) == IDEM_CLIENT_OK);
        CHILD_MUST(record_end(journal, &record, IDEM_CLIENT_DONE, true) == IDEM_CLIENT_OK);
        idem_client_journal_unlock(journal, record.name);
    }
    idem_client_journal_close(journal);
}

static void eight_processes_at_once_lose_no_name(void **state)
{
    const struct scene *scene = *state;
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = child_start(begin_own_name, scene, i); /* The first of them makes the file. */
    }
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(child_end(pids[i]), 0);
    }
    assert_int_equal(number_ask(scene->path, "SELECT count(*) FROM intents WHERE over"),
                     PROCESSES * NAMES_EACH);
}

static int verdict_pipe[2];

/* Says 'y' if it has the name, else 'n'; whoever has it keeps it until it is killed. */
static void take_the_name(const struct scene *scene, int number)
{
    (void)number;
    struct idem_client_journal *journal = child_open(scene);
    struct idem_client_record record = record_make("order-7");
    struct idem_client_error error;
    enum idem_client_err err = idem_client_journal_lock(journal, record.name, &error);
    CHILD_MUST(err == IDEM_CLIENT_OK || err == IDEM_CLIENT_E_BUSY);
    if (err == IDEM_CLIENT_OK) {
        CHILD_MUST(record_begin(journal, &record) == IDEM_CLIENT_OK);
    }
    CHILD_MUST(write(verdict_pipe[1], err == IDEM_CLIENT_OK ? "y" : "n", 1) == 1);
    for (;;) {
        (void)pause();
    }
}

static void one_of_eight_processes_has_the_name_until_it_is_killed(void **state)
{
    const struct scene *scene = *state;
    pid_t pids[PROCESSES];
    int holders = 0;
    assert_int_equal(pipe(verdict_pipe), 0);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = child_start(take_the_name, scene, i);
    }
    for (int i = 0; i < PROCESSES; i++) {
        char said = '\0';
        assert_int_equal(read(verdict_pipe[0], &said, 1), 1);
        holders += said == 'y' ? 1 : 0;
    }
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_error error;
    struct idem_str name = IDEM_STR("order-7");
    enum idem_client_err held = idem_client_journal_lock(journal, name, &error);
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        assert_int_equal(child_end(pids[i]), -SIGKILL);
    }
    assert_int_equal(holders, 1);
    assert_int_equal(held, IDEM_CLIENT_E_BUSY);
    assert_int_equal(idem_client_journal_lock(journal, name, &error), IDEM_CLIENT_OK);
    assert_true(record_is_there(journal, "order-7"));
    idem_client_journal_close(journal);
    (void)close(verdict_pipe[0]);
    (void)close(verdict_pipe[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_record_with_nothing_in_it_comes_back),
        TEST(a_record_full_of_any_bytes_comes_back),
        TEST(a_record_of_the_largest_size_comes_back),
        TEST(what_is_too_long_is_refused_and_leaves_nothing),
        TEST(a_name_is_up_to_200_bytes_of_utf8),
        TEST(a_death_after_begin_leaves_the_record_in_doubt),
        TEST(a_death_anywhere_in_begin_leaves_both_records_or_none),
        TEST(a_death_anywhere_in_opening_leaves_a_journal),
        TEST(a_record_that_has_moved_on_undoes_the_whole_begin),
        TEST(an_address_that_is_told_late_undoes_the_others_of_its_note),
        TEST(a_record_whose_key_was_changed_in_memory_cannot_begin),
        TEST(a_run_again_leaves_the_request_as_it_was_sent),
        TEST(a_new_run_takes_the_verdict_off_and_keeps_what_is_of_the_key),
        TEST(a_new_key_keeps_the_former_one_and_what_became_of_it),
        TEST(what_may_have_happened_is_not_forgotten_and_what_did_not_frees_its_name),
        TEST(the_list_shows_each_once_in_the_order_of_its_making),
        TEST(the_latest_wall_time_is_kept_and_never_falls),
        TEST(two_clients_of_a_journal_see_each_others_verdicts),
        TEST(eight_processes_at_once_lose_no_name),
        TEST(one_of_eight_processes_has_the_name_until_it_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
