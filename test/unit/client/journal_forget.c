/*
 * Forgetting by age.
 *
 * Goal: only what is over goes, and only what ended early enough; what may still happen, and what
 * may be sent again, stays however old it is; former keys go with their intents; after any death in
 * between what is left is whole, and the same call ends it.
 *
 * Method: one record of each kind with its end on both sides of the limit; more records than go in
 * one part, every third not over; bodies of MiB; another process that begins, ends and renews at
 * the same time; a process that ends by SIGKILL at each of its writes.
 */
#include "unit/client/journal_deadly.h"

#define PART     256 /* That go in one transaction. */
#define MANY     700 /* Two parts go, and every third stays. */
#define UNTIL_US (WALL_US + 10)

static int64_t forget(struct idem_client_journal *journal, int64_t until_us)
{
    struct idem_client_error error = { .text = "" };
    int64_t count = -1;
    enum idem_client_err err = idem_client_journal_forget_until(journal, until_us, &count, &error);
    if (err != IDEM_CLIENT_OK) {
        print_error("%s\n", error.text);
    }
    assert_int_equal(err, IDEM_CLIENT_OK);
    return count;
}

/* As record_end(), at another time. */
static void end_at(struct idem_client_journal *journal,
                   struct idem_client_record *record,
                   enum idem_client_outcome outcome,
                   bool over,
                   int64_t ended_us)
{
    struct idem_client_error error;
    record->outcome = outcome;
    record->reason = IDEM_CLIENT_ANSWERED;
    record->over = over;
    record->doubt = outcome == IDEM_CLIENT_UNKNOWN;
    record->ended_us = ended_us;
    assert_int_equal(idem_client_journal_end(journal, &record, 1, &error), IDEM_CLIENT_OK);
}

static void only_what_is_over_and_old_goes(void **state)
{
    const struct scene *scene = *state;
    static const struct {
        const char *name;
        enum idem_client_outcome outcome;
        bool over;
        int64_t ended_us;
        bool stays;
    } rows[] = {
        { "done", IDEM_CLIENT_DONE, true, UNTIL_US, false },
        { "done long ago", IDEM_CLIENT_DONE, true, 1, false },
        { "done later", IDEM_CLIENT_DONE, true, UNTIL_US + 1, true },
        { "refused for good", IDEM_CLIENT_REFUSED, true, UNTIL_US, false },
        { "refused for now", IDEM_CLIENT_REFUSED, false, 1, true },
        { "unknown", IDEM_CLIENT_UNKNOWN, false, 1, true },
    };
    struct idem_client_journal *journal = journal_open(scene->path);
    assert_true(forget(journal, INT64_MAX) == 0);
    struct idem_client_record open = record_make("cut off");
    assert_int_equal(record_begin(journal, &open), IDEM_CLIENT_OK);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_client_record record = record_make(rows[i].name);
        assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
        end_at(journal, &record, rows[i].outcome, rows[i].over, rows[i].ended_us);
    }
    assert_true(forget(journal, 0) == 0);
    assert_true(forget(journal, UNTIL_US) == 3);
    assert_true(forget(journal, UNTIL_US) == 0);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        assert_int_equal(record_is_there(journal, rows[i].name), rows[i].stays);
    }
    assert_true(record_is_there(journal, "cut off"));
    idem_client_journal_close(journal);
}

static void a_new_key_makes_it_one_that_is_not_over(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_error error = { .text = "" };
    struct idem_client_record record = record_make("order-7");
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    end_at(journal, &record, IDEM_CLIENT_REFUSED, true, 1);
    record.key = IDEM_STR("key-2");
    assert_int_equal(idem_client_journal_renew(journal, &record, &error), IDEM_CLIENT_OK);
    assert_true(forget(journal, INT64_MAX) == 0);
    assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
    assert_true(forget(journal, INT64_MAX) == 0);
    end_at(journal, &record, IDEM_CLIENT_DONE, true, 2);
    assert_true(forget(journal, INT64_MAX) == 1);
    assert_false(record_is_there(journal, "order-7"));
    idem_client_journal_close(journal);
    assert_int_equal(number_ask(scene->path, "SELECT count(*) FROM former_keys"), 0);
}

/* Every third is not over. */
static void many_make(const struct scene *scene)
{
    static char names[MANY][16];
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record records[MANY];
    struct idem_client_record *list[MANY];
    struct idem_client_error error;
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "order-%zu", i);
        records[i] = record_make(names[i]);
        list[i] = &records[i];
    }
    assert_int_equal(idem_client_journal_begin(journal, list, MANY, &error), IDEM_CLIENT_OK);
    for (size_t i = 0; i < MANY; i++) {
        records[i].outcome = i % 3 == 0 ? IDEM_CLIENT_UNKNOWN : IDEM_CLIENT_DONE;
        records[i].over = i % 3 != 0;
        records[i].doubt = i % 3 == 0;
        records[i].ended_us = 1;
    }
    assert_int_equal(idem_client_journal_end(journal, list, MANY, &error), IDEM_CLIENT_OK);
    idem_client_journal_close(journal);
}

#define OPEN_COUNT ((MANY + 2) / 3)

static void expect_the_open_ones(const struct scene *scene)
{
    assert_int_equal(number_ask(scene->path, "SELECT count(*) FROM intents WHERE over = 0"),
                     OPEN_COUNT);
    assert_int_equal(number_ask(scene->path, "SELECT count(*) FROM intents"), OPEN_COUNT);
}

static void many_go_in_parts(void **state)
{
    const struct scene *scene = *state;
    many_make(scene);
    struct idem_client_journal *journal = journal_open(scene->path);
    assert_true(forget(journal, 1) == MANY - OPEN_COUNT);
    idem_client_journal_close(journal);
    expect_the_open_ones(scene);
}

static void a_part_has_few_bytes_but_one_intent_at_least(void **state)
{
    const struct scene *scene = *state;
    static char body[3 * 1024 * 1024];
    static const size_t sizes[] = { 1, 1, 1, 3, 1 }; /* MiB: 1 + 1, 1 + 3, 1. */
    static const char *const names[] = { "a", "b", "c", "d", "e" };
    struct idem_client_journal *journal = journal_open(scene->path);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sizes); i++) {
        struct idem_client_record record = record_make(names[i]);
        record.body = (struct idem_str){ .data = body, .len = sizes[i] * 1024 * 1024 };
        assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
        end_at(journal, &record, IDEM_CLIENT_DONE, true, 1);
    }
    const char *serial = "SELECT value FROM meta WHERE name = 'serial'";
    int64_t before = number_ask(scene->path, serial);
    assert_true(forget(journal, 1) == IDEM_ARRAY_COUNT(sizes));
    idem_client_journal_close(journal);
    assert_true(number_ask(scene->path, serial) - before == 3 + 1); /* The last one is empty. */
}

#define OTHERS 40

/* Each is begun, refused for good, given a new key and done, all later than what is forgotten. */
static void others_run(const struct scene *scene, int number)
{
    struct idem_client_journal *journal = child_open(scene);
    struct idem_client_error error;
    for (int i = 0; i < number; i++) {
        char name[32];
        char key[32];
        (void)snprintf(name, sizeof(name), "other-%d", i);
        (void)snprintf(key, sizeof(key), "other-key-%d", i);
        struct idem_client_record record = record_make(name);
        struct idem_client_record *list = &record;
        CHILD_MUST(idem_client_journal_begin(journal, &list, 1, &error) == IDEM_CLIENT_OK);
        record.outcome = IDEM_CLIENT_REFUSED;
        record.over = true;
        record.doubt = false;
        record.ended_us = UNTIL_US + 1;
        CHILD_MUST(idem_client_journal_end(journal, &list, 1, &error) == IDEM_CLIENT_OK);
        record.key = idem_str_from(key);
        CHILD_MUST(idem_client_journal_renew(journal, &record, &error) == IDEM_CLIENT_OK);
        CHILD_MUST(idem_client_journal_begin(journal, &list, 1, &error) == IDEM_CLIENT_OK);
        record.outcome = IDEM_CLIENT_DONE;
        CHILD_MUST(idem_client_journal_end(journal, &list, 1, &error) == IDEM_CLIENT_OK);
    }
    idem_client_journal_close(journal);
    _exit(0);
}

static void others_go_on_beside_it_and_keep_what_is_theirs(void **state)
{
    const struct scene *scene = *state;
    many_make(scene);
    pid_t child = child_start(others_run, scene, OTHERS);
    struct idem_client_journal *journal = journal_open(scene->path);
    int64_t total = 0;
    for (int i = 0; i < 10; i++) {
        total += forget(journal, UNTIL_US);
    }
    idem_client_journal_close(journal);
    assert_int_equal(child_end(child), 0);
    assert_true(total == MANY - OPEN_COUNT);
    assert_int_equal(number_ask(scene->path, "SELECT count(*) FROM intents WHERE over = 1"),
                     OTHERS);
    assert_int_equal(number_ask(scene->path, "SELECT count(*) FROM former_keys"), OTHERS);
}

static void forget_and_die_inside(const struct scene *scene, int number)
{
    struct idem_client_journal *journal = child_open(scene);
    struct idem_client_error error;
    int64_t count;
    deadly_arm(number);
    CHILD_MUST(idem_client_journal_forget_until(journal, 1, &count, &error) == IDEM_CLIENT_OK);
    _exit(7); /* It was survived. */
}

static void a_death_anywhere_in_between_leaves_whole_parts(void **state)
{
    const struct scene *scene = *state;
    int status = -SIGKILL;
    bool parts[4] = { false };
    for (int number = 0; status == -SIGKILL; number += 5) {
        many_make(scene);
        status = child_end(child_start(forget_and_die_inside, scene, number));
        assert_true(status == -SIGKILL || status == 7);
        struct idem_client_journal *journal = journal_open(scene->path);
        int64_t left = forget(journal, 1);
        idem_client_journal_close(journal);
        int64_t gone = MANY - OPEN_COUNT - left;
        assert_true(gone % PART == 0 || left == 0);
        parts[(gone + PART - 1) / PART] = true;
        expect_the_open_ones(scene);
        journal_remove(scene);
    }
    assert_true(parts[0] && parts[1] && parts[2]); /* Deaths in each part. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_A_SCENE(test) cmocka_unit_test_setup_teardown(test, scene_setup, scene_teardown)
        IN_A_SCENE(only_what_is_over_and_old_goes),
        IN_A_SCENE(a_new_key_makes_it_one_that_is_not_over),
        IN_A_SCENE(many_go_in_parts),
        IN_A_SCENE(a_part_has_few_bytes_but_one_intent_at_least),
        IN_A_SCENE(others_go_on_beside_it_and_keep_what_is_theirs),
        IN_A_SCENE(a_death_anywhere_in_between_leaves_whole_parts),
    };
    return cmocka_run_group_tests_name("client/journal_forget", tests, NULL, NULL);
}
