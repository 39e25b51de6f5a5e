/*
 * private_file.h - files that nobody but their owner can read, and the secret words in them.
 *
 * A file that others can read is refused, with a sentence on what to do: what is in it is known to
 * them. Whoever reads a secret wipes its memory.
 */
#ifndef IDEM_BASE_PRIVATE_FILE_H
#define IDEM_BASE_PRIVATE_FILE_H

#include "base/error.h"
#include "base/text.h"

#define IDEM_SECRET_WORD_MAX 1024

/* Reads an open file to its end into `buf`; `path` stands in messages. */
enum idem_err idem_private_read(int file,
                                const char *path,
                                struct idem_buf *buf,
                                struct idem_error *reterr) IDEM_MUST_CHECK;

/*
 * One word of visible ASCII, as it may stand in a header: the first line of `file`, or the value of
 * the environment's variable; both NULL: empty. Terminated. At most one of the two is given.
 */
enum idem_err idem_secret_word(const char *file,
                               const char *environment,
                               char ret_word[IDEM_SECRET_WORD_MAX],
                               struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_BASE_PRIVATE_FILE_H */
