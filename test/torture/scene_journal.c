/*
 * The caller's journal. What it said to be durable is there when it is opened again, and the truth:
 *
 *   - an intent that ended before is never told to be unknown here (it would be sent again under
 *     another key), and its verdict is the same;
 *   - one whose begin was durable is there and in doubt, until its end was durable;
 *   - one whose end was not durable is in doubt or has that very end;
 *   - a key that was replaced or forgotten has not come back.
 */
#include <stdio.h>

#include "base/attr.h"
#include "client/journal.h"
#include "torture/place.h"
#include "torture/scene.h"

#define WALL_US INT64_C(1790000000000000)

/* What was said to be durable. The process's; each run begins anew. */
static struct {
    bool before; /* There is a journal already. */
    bool begun;
    bool ended;
    bool end_tried;
    bool second_begun;
    bool second_ended;
    bool renewed;
    bool renew_tried;
    bool forgotten;
} said;

static struct idem_client_journal *journal;

static char *path(char text[128])
{
    (void)snprintf(text, 128, "%s/send.db", torture_directory);
    return text;
}

/* `good`: something was said to be durable, before which so many flushes had failed. */
static bool durable(bool good, uint64_t failed)
{
    if (good && torture_flushes_failed() > failed) {
        torture_violation("told to be durable although a flush failed");
    }
    return good;
}

static bool journal_open(void)
{
    char text[128];
    struct idem_client_error error = { .text = "" };
    uint64_t failed = torture_flushes_failed();
    enum idem_client_err err = idem_client_journal_open(path(text), &journal, &error);
    if (err != IDEM_CLIENT_OK && error.text[0] == '\0') {
        torture_violation("the journal is refused without a word");
    }
    return durable(err == IDEM_CLIENT_OK, failed);
}

static struct idem_client_record record_make(const char *name, const char *key)
{
    return (struct idem_client_record){
        .name = idem_str_from(name),
        .key = idem_str_from(key),
        .key_own = true,
        .dialect = IDEM_STR("idem"),
        .method = IDEM_STR("POST"),
        .url = IDEM_STR("http://127.0.0.1/v1/payments"),
        .body = IDEM_STR("{}"),
        .deadline_us = 60 * IDEM_US_PER_SECOND,
        .created_us = WALL_US,
        .doubt = true,
        .first = { .wall_us = WALL_US + 1, .mono_us = 5, .boot = "a-boot" },
    };
}

static bool begin(struct idem_client_record *record)
{
    struct idem_client_error error = { .text = "" };
    uint64_t failed = torture_flushes_failed();
    return durable(idem_client_journal_begin(journal, &record, 1, &error) == IDEM_CLIENT_OK,
                   failed);
}

static bool end(struct idem_client_record *record, enum idem_client_outcome outcome)
{
    struct idem_client_error error = { .text = "" };
    uint64_t failed = torture_flushes_failed();
    record->outcome = outcome;
    record->reason = IDEM_CLIENT_ANSWERED;
    record->over = true;
    record->doubt = false;
    record->answer_status = 201;
    record->answer_body = IDEM_STR("{\"id\":\"1\"}");
    record->ended_us = WALL_US + 10;
    return durable(idem_client_journal_end(journal, &record, 1, &error) == IDEM_CLIENT_OK, failed);
}

static void files_remove(void)
{
    static const char *const names[] = { "send.db", "send.db-wal", "send.db-shm", "send.db-journal",
                                         "send.db-lock" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(names); i++) {
        torture_file_remove(names[i]);
    }
}

static void journal_begin(void)
{
    files_remove();
    struct idem_client_record record = record_make("before", "key-0");
    if (!journal_open() || !begin(&record) || !end(&record, IDEM_CLIENT_DONE)) {
        torture_violation("there is no journal to begin with");
        return;
    }
    idem_client_journal_close(journal);
    torture_file_copy("send.db", "begin.db");
    torture_file_copy("send.db-lock", "begin.db-lock");
}

static void nothing_begin(void)
{
}

static void nothing_prepare(void)
{
    files_remove();
    said.before = false;
    said.begun = false;
    said.ended = false;
    said.end_tried = false;
    said.second_begun = false;
    said.second_ended = false;
    said.renewed = false;
    said.renew_tried = false;
    said.forgotten = false;
}

static void journal_prepare(void)
{
    nothing_prepare();
    torture_file_copy("begin.db", "send.db");
    torture_file_copy("begin.db-lock", "send.db-lock");
    said.before = true;
}

/* IDEM_CLIENT_OK, _E_UNKNOWN, or it could not be read. */
static enum idem_client_err find(const char *name, struct idem_client_record *ret_record)
{
    struct idem_client_error error = { .text = "" };
    *ret_record = (struct idem_client_record){ .id = 0 };
    return idem_client_journal_find(journal, idem_str_from(name), ret_record, &error);
}

/* `before`, whether something fails or not. */
static void before_look(bool must_be_read)
{
    struct idem_client_record record;
    if (!said.before) {
        return;
    }
    enum idem_client_err err = find("before", &record);
    if (err == IDEM_CLIENT_E_UNKNOWN || (err != IDEM_CLIENT_OK && must_be_read)) {
        torture_violation("what ended before is not found (%d)", (int)err);
    }
    if (err == IDEM_CLIENT_OK && (record.doubt || record.outcome != IDEM_CLIENT_DONE ||
                                  !idem_str_equal(record.answer_body, IDEM_STR("{\"id\":\"1\"}")) ||
                                  !idem_str_equal(record.key, IDEM_STR("key-0")))) {
        torture_violation("what ended before is not what it was");
    }
    idem_client_record_clear(&record);
}

static void one_play(void)
{
    struct idem_client_record record = record_make("one", "key-1");
    struct idem_client_record *one = &record;
    struct idem_client_error error = { .text = "" };
    if (idem_client_journal_lock(journal, record.name, &error) != IDEM_CLIENT_OK) {
        return;
    }
    said.begun = begin(&record);
    if (said.begun) {
        record.operation_url = IDEM_STR("http://127.0.0.1/v1/operations/1");
        enum idem_client_err noted = idem_client_journal_note(journal, &one, 1, &error);
        (void)noted; /* Losing it costs a question. */
        said.end_tried = true;
        said.ended = end(&record, IDEM_CLIENT_DONE);
    }
    idem_client_journal_unlock(journal, record.name);
}

static void two_play(void)
{
    struct idem_client_error error = { .text = "" };
    struct idem_client_record record = record_make("two", "key-2");
    said.second_begun = begin(&record);
    said.second_ended = said.second_begun && end(&record, IDEM_CLIENT_REFUSED);
    if (said.second_ended) {
        struct idem_client_record renewed = record_make("two", "key-3");
        renewed.id = record.id;
        renewed.version = record.version;
        said.renew_tried = true;
        said.renewed = idem_client_journal_renew(journal, &renewed, &error) == IDEM_CLIENT_OK;
    }
}

static void three_play(void)
{
    struct idem_client_error error = { .text = "" };
    struct idem_client_record record = record_make("three", "key-4");
    if (begin(&record) && end(&record, IDEM_CLIENT_REFUSED)) {
        said.forgotten = idem_client_journal_forget(journal, record.name, &error) == IDEM_CLIENT_OK;
    }
}

static void journal_play(void)
{
    if (!journal_open()) {
        return;
    }
    struct idem_client_error error = { .text = "" };
    static struct idem_client_entry entry;
    before_look(false);
    one_play();
    two_play();
    three_play();
    before_look(false);
    enum idem_client_err listed = idem_client_journal_next(journal, 0, false, &entry, &error);
    (void)listed; /* It changes nothing. */
    idem_client_journal_close(journal);
}

static void one_judge(void)
{
    struct idem_client_record record;
    enum idem_client_err err = find("one", &record);
    bool found = err == IDEM_CLIENT_OK;
    bool done = found && record.outcome == IDEM_CLIENT_DONE && !record.doubt &&
                idem_str_equal(record.answer_body, IDEM_STR("{\"id\":\"1\"}"));
    if (said.begun && !found) {
        torture_violation("a begin that was durable is gone (%d)", (int)err);
    } else if (said.ended && !done) {
        torture_violation("an end that was durable is gone");
    } else if (found && !done && !record.doubt) {
        torture_violation("what was begun is not in doubt");
    } else if (done && !said.end_tried) {
        torture_violation("it ended, and nobody ended it");
    }
    idem_client_record_clear(&record);
}

static void two_judge(void)
{
    struct idem_client_record record;
    bool found = find("two", &record) == IDEM_CLIENT_OK;
    bool new_key = found && idem_str_equal(record.key, IDEM_STR("key-3"));
    if ((said.second_begun && !found) || (said.renewed && !new_key)) {
        torture_violation("a renewal that was durable is gone");
    } else if (new_key && !said.renew_tried) {
        torture_violation("a key that nobody made");
    } else if (said.second_ended && !new_key &&
               (record.doubt || record.outcome != IDEM_CLIENT_REFUSED)) {
        torture_violation("a refusal that was durable is gone");
    }
    idem_client_record_clear(&record);
}

static void journal_judge(void)
{
    struct idem_client_record record;
    if (!journal_open()) {
        torture_violation("the journal does not open again");
        return;
    }
    before_look(true);
    one_judge();
    two_judge();
    if (said.forgotten && find("three", &record) == IDEM_CLIENT_OK) {
        torture_violation("what was forgotten is back");
        idem_client_record_clear(&record);
    }
    struct idem_client_record last = record_make("last", "key-9");
    if (!begin(&last) || !end(&last, IDEM_CLIENT_DONE)) {
        torture_violation("the journal takes nothing any more");
    }
    idem_client_journal_close(journal);
}

const struct torture_scene torture_scenes_journal[] = {
    { "journal", journal_begin, journal_prepare, journal_play, journal_judge },
    { "journal-new", nothing_begin, nothing_prepare, journal_play, journal_judge },
};
const size_t torture_scenes_journal_count = IDEM_ARRAY_COUNT(torture_scenes_journal);
