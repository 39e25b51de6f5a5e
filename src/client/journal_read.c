/*
 * Reading: one record, the list, the latest wall time.
 *
 * A statement is reset before anything else happens: one that stands on a row holds its snapshot,
 * and a log under a snapshot cannot begin anew.
 */
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "client/dialect.h"
#include "client/inquiry.h"
#include "client/journal_internal.h"

#define CANNOT_READ "the journal cannot be read"

enum idem_client_err idem_client_journal_high_read(struct idem_client_journal *journal,
                                                   struct idem_client_error *reterr)
{
    sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_HIGH];
    int rc = sqlite3_step(statement);
    int64_t high_us = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    enum idem_client_err err = IDEM_CLIENT_OK;
    if (rc == SQLITE_DONE || high_us < 0) {
        err = idem_client_journal_damaged(journal, reterr);
    } else if (rc != SQLITE_ROW) {
        err = idem_client_journal_sqlite_fail(journal, CANNOT_READ, reterr);
    } else if (high_us > journal->high_us) {
        journal->high_us = high_us;
    }
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    return err;
}

enum idem_client_err idem_client_journal_find(struct idem_client_journal *journal,
                                              struct idem_str name,
                                              struct idem_client_record *ret_record,
                                              struct idem_client_error *reterr)
{
    enum idem_client_err err = idem_client_journal_high_read(journal, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_FIND];
    (void)idem_client_journal_bind_text(statement, 1, name);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        err = idem_client_journal_read_record(journal, statement, ret_record, reterr);
    } else if (rc == SQLITE_DONE) {
        err = idem_client_fail(reterr, IDEM_CLIENT_E_UNKNOWN,
                               "there is no intent of that name in the journal");
    } else {
        err = idem_client_journal_sqlite_fail(journal, CANNOT_READ, reterr);
    }
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    return err;
}

/* Copies a text into a member of `size` bytes, terminated; false: it does not fit. */
static bool text_copy(sqlite3_stmt *statement, int index, char *ret_text, size_t size)
{
    struct idem_str text;
    if (!idem_client_journal_column(statement, index, &text) || text.len >= size) {
        return false;
    }
    if (text.len > 0) {
        memcpy(ret_text, text.data, text.len);
    }
    ret_text[text.len] = '\0';
    return true;
}

/* Text of a column, empty if it is longer than an address can be. */
static struct idem_str url_column(sqlite3_stmt *statement, int index)
{
    struct idem_str url;
    bool fits =
        idem_client_journal_column(statement, index, &url) && url.len <= IDEM_CLIENT_URL_MAX;
    return fits ? url : (struct idem_str){ .len = 0 };
}

/* Where to look; an address that is too long is not shown. */
static void status_url_read(sqlite3_stmt *statement, struct idem_client_entry *entry)
{
    char memory[IDEM_CLIENT_URL_MAX];
    struct idem_buf key_url;
    struct idem_str name;
    const struct idem_dialect *dialect =
        idem_client_journal_column(statement, 13, &name) ? idem_dialect_find(name) : NULL;
    idem_buf_init(&key_url, memory, sizeof(memory));
    if (dialect != NULL) {
        idem_inquiry_key_url(dialect, idem_str_from(entry->url), &key_url);
    }
    const struct idem_inquiry_places places = {
        .operation_url = url_column(statement, 5),
        .status_url = url_column(statement, 4),
        .key_url = key_url.full ? (struct idem_str){ .len = 0 } : idem_buf_str(&key_url),
    };
    struct idem_str best = idem_inquiry_best(&places);
    (void)snprintf(entry->status_url, sizeof(entry->status_url), "%.*s", (int)best.len,
                   best.len > 0 ? best.data : "");
}

/* As NEXT_COLUMNS. */
static bool entry_read(sqlite3_stmt *statement, struct idem_client_entry *ret_entry)
{
    struct idem_client_entry *entry = ret_entry;
    bool ours = text_copy(statement, 0, entry->name, sizeof(entry->name)) &&
                text_copy(statement, 1, entry->key, sizeof(entry->key)) &&
                text_copy(statement, 2, entry->method, sizeof(entry->method)) &&
                text_copy(statement, 3, entry->url, sizeof(entry->url));
    if (ours) {
        status_url_read(statement, entry);
    }
    int outcome = sqlite3_column_int(statement, 7);
    int reason = sqlite3_column_int(statement, 8);
    entry->position = sqlite3_column_int64(statement, 6);
    entry->outcome = (enum idem_client_outcome)outcome;
    entry->reason = (enum idem_client_reason)reason;
    entry->over = sqlite3_column_int(statement, 9) != 0;
    entry->status = (uint16_t)sqlite3_column_int(statement, 10);
    entry->created_ms = sqlite3_column_int64(statement, 11) / IDEM_US_PER_MS;
    entry->ended_ms = sqlite3_column_int64(statement, 12) / IDEM_US_PER_MS;
    return ours && outcome >= 0 && outcome <= IDEM_CLIENT_UNKNOWN && reason >= 0 &&
           reason <= IDEM_CLIENT_DECIDED;
}

enum idem_client_err idem_client_journal_next(struct idem_client_journal *journal,
                                              int64_t position,
                                              bool pending,
                                              struct idem_client_entry *ret_entry,
                                              struct idem_client_error *reterr)
{
    sqlite3_stmt *statement =
        journal->statements[pending ? IDEM_CLIENT_SQL_NEXT_PENDING : IDEM_CLIENT_SQL_NEXT];
    struct idem_client_entry entry;
    enum idem_client_err err = IDEM_CLIENT_OK;

    (void)idem_client_journal_bind_i64(statement, 1, position);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_DONE) {
        err = idem_client_fail(reterr, IDEM_CLIENT_E_UNKNOWN, "there are no more intents");
    } else if (rc != SQLITE_ROW) {
        err = idem_client_journal_sqlite_fail(journal, CANNOT_READ, reterr);
    } else if (!entry_read(statement, &entry)) {
        err = idem_client_journal_damaged(journal, reterr);
    } else {
        *ret_entry = entry;
    }
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    return err;
}
