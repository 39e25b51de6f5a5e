/*
 * journal.h - the ledger's file: lines, appended before anything is answered.
 *
 * A line is handed to the operating system in one write and so survives the end of this process. It
 * is not flushed to the disk: the judge of tests need not survive a power cut.
 */
#ifndef IDEM_SANDBOX_JOURNAL_H
#define IDEM_SANDBOX_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct idem_sandbox_journal {
    int fd; /* Below zero: nothing is kept. */
    int64_t size;
    bool broken; /* An append failed; what follows would be read as part of a torn line. */
};

/* Takes one line without its line feed. */
typedef enum idem_err idem_sandbox_journal_line(void *context,
                                                struct idem_str line,
                                                struct idem_error *reterr);

/*
 * Opens or makes the file at `path` (NULL: a journal that keeps nothing) and locks it. Close with
 * idem_sandbox_journal_close(), also after a failure.
 */
enum idem_err idem_sandbox_journal_open(struct idem_sandbox_journal *journal,
                                        const char *path,
                                        struct idem_error *reterr) IDEM_MUST_CHECK;

/* Hands every line to `take`, in order, and cuts a last line that has no end. */
enum idem_err idem_sandbox_journal_replay(struct idem_sandbox_journal *journal,
                                          idem_sandbox_journal_line *take,
                                          void *context,
                                          struct idem_error *reterr) IDEM_MUST_CHECK;

/* `line` ends with its line feed. After a failure every append fails. */
enum idem_err idem_sandbox_journal_append(struct idem_sandbox_journal *journal,
                                          struct idem_str line,
                                          struct idem_error *reterr) IDEM_MUST_CHECK;

void idem_sandbox_journal_close(struct idem_sandbox_journal *journal);

#endif /* IDEM_SANDBOX_JOURNAL_H */
