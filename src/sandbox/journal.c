/*
 * A file that is only appended to, in whole lines.
 *
 * A process that was killed in the middle of a write leaves a line without an end. The answer to
 * that event never left, so at the next start the line is cut off as if it had not been begun. A
 * line with an end that cannot be read is damage, and damage is reported: a judge does not guess.
 *
 * The file is locked, since two sandboxes on one ledger would both count wrongly.
 */
#include "sandbox/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"

enum idem_err idem_sandbox_journal_open(struct idem_sandbox_journal *journal,
                                        const char *path,
                                        struct idem_error *reterr)
{
    struct stat status;

    *journal = (struct idem_sandbox_journal){ .fd = -1 };
    if (path == NULL) {
        return IDEM_OK;
    }
    journal->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (journal->fd < 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: %s", path, strerror(errno));
    }
    if (flock(journal->fd, LOCK_EX | LOCK_NB) != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: in use by another sandbox", path);
    }
    if (fstat(journal->fd, &status) != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: %s", path, strerror(errno));
    }
    journal->size = status.st_size;
    return IDEM_OK;
}

static enum idem_err content_read(const struct idem_sandbox_journal *journal,
                                  struct idem_buf *buf,
                                  struct idem_error *reterr)
{
    while (buf->len < buf->max) {
        ssize_t count =
            pread(journal->fd, buf->data + buf->len, buf->max - buf->len, (off_t)buf->len);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return idem_error_set(reterr, IDEM_E_SYSTEM, "ledger: cannot be read");
        }
        buf->len += (size_t)count;
    }
    return IDEM_OK;
}

/* Hands over the complete lines; `*ret_used` is where the last of them ends. */
static enum idem_err lines_take(struct idem_str content,
                                idem_sandbox_journal_line *take,
                                void *context,
                                size_t *ret_used,
                                struct idem_error *reterr)
{
    enum idem_err err = IDEM_OK;
    size_t used = 0;

    while (err == IDEM_OK) {
        struct idem_str rest = idem_str_slice(content, used, content.len);
        size_t end = idem_str_find(rest, '\n');
        if (end == rest.len) {
            break;
        }
        err = take(context, idem_str_slice(rest, 0, end), reterr);
        used += end + 1;
    }
    *ret_used = used;
    return err;
}

enum idem_err idem_sandbox_journal_replay(struct idem_sandbox_journal *journal,
                                          idem_sandbox_journal_line *take,
                                          void *context,
                                          struct idem_error *reterr)
{
    struct idem_buf buf;
    size_t used = 0;

    if (journal->fd < 0 || journal->size == 0) {
        return IDEM_OK;
    }
    char *memory = malloc((size_t)journal->size);
    if (memory == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "ledger: no memory to read it");
    }
    idem_buf_init(&buf, memory, (size_t)journal->size);
    enum idem_err err = content_read(journal, &buf, reterr);
    if (err == IDEM_OK) {
        err = lines_take(idem_buf_str(&buf), take, context, &used, reterr);
    }
    free(memory);
    if (err != IDEM_OK) {
        return err;
    }
    if (used < buf.len && ftruncate(journal->fd, (off_t)used) != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "ledger: torn line: %s", strerror(errno));
    }
    journal->size = (int64_t)used;
    return IDEM_OK;
}

enum idem_err idem_sandbox_journal_append(struct idem_sandbox_journal *journal,
                                          struct idem_str line,
                                          struct idem_error *reterr)
{
    IDEM_ASSERT(line.len > 0);
    IDEM_ASSERT(line.data[line.len - 1] == '\n');

    if (journal->fd < 0) {
        return IDEM_OK;
    }
    if (journal->broken) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "ledger: an earlier write failed");
    }
    ssize_t count = write(journal->fd, line.data, line.len);
    if (count < 0 || (size_t)count != line.len) {
        journal->broken = true; /* A part of the line, if any, is cut at the next start. */
        return idem_error_set(reterr, IDEM_E_SYSTEM, "ledger: write: %s",
                              count < 0 ? strerror(errno) : "not all of it");
    }
    journal->size += count;
    return IDEM_OK;
}

void idem_sandbox_journal_close(struct idem_sandbox_journal *journal)
{
    if (journal->fd >= 0) {
        (void)close(journal->fd); /* Every line was written by a write that was checked. */
        journal->fd = -1;
    }
}
