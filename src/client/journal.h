/*
 * journal.h - the caller's intents on disk: one SQLite file, written before anything is sent.
 *
 * A record is one intent under its present key. begin() makes records durable, with their doubt,
 * before the first byte; end() makes verdicts durable before anybody is told. Each is one
 * transaction for all records of the call, flushed (WAL, synchronous=FULL).
 *
 * Several processes may share a journal. Who runs an intent holds a lock on its name that the
 * operating system takes back when the process dies: an open-file-description lock (fcntl
 * F_OFD_SETLK) on one byte, found by the name's digest, of the file "JOURNAL-lock".
 *
 * The file and its companions are for their owner alone (0600): bodies are personal data.
 * Credentials are never in it. Threads: one at a time.
 */
#ifndef IDEM_CLIENT_JOURNAL_H
#define IDEM_CLIENT_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/text.h"
#include "client/moment.h"
#include "idem/client.h"

struct idem_client_journal;

/*
 * Texts of a record that came from find() live in `memory`, each followed by a zero byte; in one
 * that a caller makes they are borrowed until the call returns.
 */
struct idem_client_record {
    int64_t id;      /* 0: not in the journal. */
    int64_t version; /* One more with every write. */
    char *memory;    /* Given by find(); idem_client_record_clear() frees it. */

    /* The request. */
    struct idem_str name;
    struct idem_str key;
    bool key_own; /* Made here, so that nobody else can have used it. */
    struct idem_str dialect;
    struct idem_str method;
    struct idem_str url;
    struct idem_str headers; /* "Name: value\n" each. */
    struct idem_str body;
    struct idem_str status_url; /* The request's; may be empty. */
    int64_t deadline_us;
    int64_t window_us; /* 0: the dialect's. */
    int64_t created_us;

    /* What this key has been through. */
    struct idem_moment first;         /* Of the first run's begin; wall_us 0: never run. */
    int64_t begun_us;                 /* Wall, of the last run's begin; 0: as `first`. */
    bool doubt;                       /* It may have been carried out. */
    char asker[IDEM_BOOT_ID_LEN + 1]; /* Digest of the credential of the last run; or empty. */
    struct idem_str operation_url; /* Where its server said that it can be asked for; or empty. */

    /* The last verdict; outcome NO_OUTCOME while a run is under way, or if it never ended. */
    enum idem_client_outcome outcome;
    enum idem_client_reason reason;
    bool over;
    bool replayed;
    uint16_t answer_status;
    struct idem_str message;
    struct idem_str answer_headers;
    struct idem_str answer_body;
    int64_t expires_us; /* Wall; 0: not said. */
    int64_t ended_us;
};

/* What is said, with IDEM_CLIENT_E_UNKNOWN, of a record that is gone. */
#define IDEM_CLIENT_FORGOTTEN "it was forgotten meanwhile; its name now begins a new action"

void idem_client_record_clear(struct idem_client_record *record);

/* Makes the file if it is not there; refuses one that is not a journal, or a newer one. */
enum idem_client_err idem_client_journal_open(const char *path,
                                              struct idem_client_journal **ret_journal,
                                              struct idem_client_error *reterr) IDEM_MUST_CHECK;

/* Accepts NULL. Locks end with it. */
void idem_client_journal_close(struct idem_client_journal *journal);

/* IDEM_CLIENT_E_UNKNOWN: there is none. On success the caller clears the record. */
enum idem_client_err idem_client_journal_find(struct idem_client_journal *journal,
                                              struct idem_str name,
                                              struct idem_client_record *ret_record,
                                              struct idem_client_error *reterr) IDEM_MUST_CHECK;

/* IDEM_CLIENT_E_BUSY: another one holds it. Not reentrant: the client knows what it holds. */
enum idem_client_err idem_client_journal_lock(struct idem_client_journal *journal,
                                              struct idem_str name,
                                              struct idem_client_error *reterr) IDEM_MUST_CHECK;
void idem_client_journal_unlock(struct idem_client_journal *journal, struct idem_str name);

/*
 * The runs begin: all records, inserted or updated, durable when it returns OK. Writes request (of
 * a new one), times, first, asker and doubt; takes the last verdict off. Sets id and version.
 * IDEM_CLIENT_E_BUSY: one was changed since it was found, nothing was written.
 * IDEM_CLIENT_E_UNKNOWN: one was forgotten since, nothing was written.
 * IDEM_CLIENT_E_MISMATCH: a new one has a key that another name has for the same method and URL.
 * IDEM_CLIENT_E_JOURNAL: nothing was sent and, once the journal can be written again, what is in it
 * says the truth.
 */
enum idem_client_err idem_client_journal_begin(struct idem_client_journal *journal,
                                               struct idem_client_record *const *records,
                                               size_t count,
                                               struct idem_client_error *reterr) IDEM_MUST_CHECK;

/*
 * Servers have told where to ask: operation_url of all records, durable. Losing it costs a
 * question. Errors as of begin().
 */
enum idem_client_err idem_client_journal_note(struct idem_client_journal *journal,
                                              struct idem_client_record *const *records,
                                              size_t count,
                                              struct idem_client_error *reterr) IDEM_MUST_CHECK;

/* The runs have ended: doubt, operation_url and verdict of all records. Errors as of begin(). */
enum idem_client_err idem_client_journal_end(struct idem_client_journal *journal,
                                             struct idem_client_record *const *records,
                                             size_t count,
                                             struct idem_client_error *reterr) IDEM_MUST_CHECK;

/*
 * The record with a new key, and maybe another request, replaces the old one of that name and
 * version; the old key and its verdict move to the table of former keys. In one transaction.
 * IDEM_CLIENT_E_REFUSED: its last verdict in the journal is not REFUSED. Else errors as of begin().
 */
enum idem_client_err idem_client_journal_renew(struct idem_client_journal *journal,
                                               struct idem_client_record *record,
                                               struct idem_client_error *reterr) IDEM_MUST_CHECK;

/* As idem_client_next(). */
enum idem_client_err idem_client_journal_next(struct idem_client_journal *journal,
                                              int64_t position,
                                              bool pending,
                                              struct idem_client_entry *ret_entry,
                                              struct idem_client_error *reterr) IDEM_MUST_CHECK;

/* Deletes intent and former keys. E_UNKNOWN, or E_REFUSED if it may have happened. */
enum idem_client_err idem_client_journal_forget(struct idem_client_journal *journal,
                                                struct idem_str name,
                                                struct idem_client_error *reterr) IDEM_MUST_CHECK;

/*
 * Deletes what is over and ended at `until_us` (wall) or before, with former keys, in transactions
 * of a part each, with a pause of milliseconds behind each: after an error some are gone.
 * `ret_count`: how many, also on an error. Errors as of begin().
 */
enum idem_client_err idem_client_journal_forget_until(struct idem_client_journal *journal,
                                                      int64_t until_us,
                                                      int64_t *ret_count,
                                                      struct idem_client_error *reterr)
    IDEM_MUST_CHECK;

/*
 * Who asks: a digest of the credential's line, keyed by the intent's key; empty for no credential.
 * It tells one from another, and nothing else about it.
 */
void idem_client_journal_asker(struct idem_client_journal *journal,
                               struct idem_str key,
                               struct idem_str credential,
                               char ret_asker[IDEM_BOOT_ID_LEN + 1]);

/*
 * The latest wall time in it, of any begin or end: as of the opening or of the last find(),
 * begin(), note(), renew(), end() or high_read() of this journal. 0: none.
 */
int64_t idem_client_journal_high_us(const struct idem_client_journal *journal);

/* Takes over into high_us() what others have written since. */
enum idem_client_err idem_client_journal_high_read(
    struct idem_client_journal *journal, struct idem_client_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_CLIENT_JOURNAL_H */
