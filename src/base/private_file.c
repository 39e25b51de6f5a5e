/*
 * Mode and type are asked of the open descriptor, so that the file that was looked at is the one
 * that is read.
 */
#include "base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"

#define WORD_FILE_MAX 4096

enum idem_err idem_private_read(int file,
                                const char *path,
                                struct idem_buf *buf,
                                struct idem_error *reterr)
{
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: is not a regular file", path);
    }
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM,
                              "%s: others than its owner have access (mode %04o): chmod 600 it, "
                              "and treat what is in it as known to them",
                              path, (unsigned)(status.st_mode & 07777U));
    }
    for (;;) {
        ssize_t got = read(file, buf->data + buf->len, buf->max - buf->len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: %s", path, strerror(errno));
        }
        if (got == 0) {
            return IDEM_OK;
        }
        buf->len += (size_t)got;
        if (buf->len == buf->max) {
            return idem_error_set(reterr, IDEM_E_LIMIT, "%s: longer than %zu bytes", path,
                                  buf->max - 1);
        }
    }
}

/* A header value: visible ASCII without spaces, or the request could be split. */
static bool word_is_usable(struct idem_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~') {
            return false;
        }
    }
    return text.len > 0 && text.len < IDEM_SECRET_WORD_MAX;
}

static enum idem_err word_take(struct idem_str text,
                               const char *from,
                               char ret_word[IDEM_SECRET_WORD_MAX],
                               struct idem_error *reterr)
{
    if (!word_is_usable(text)) {
        return idem_error_set(reterr, IDEM_E_INVALID,
                              "%s: a credential is one word of visible ASCII, shorter than %d",
                              from, IDEM_SECRET_WORD_MAX);
    }
    memcpy(ret_word, text.data, text.len);
    ret_word[text.len] = '\0';
    return IDEM_OK;
}

static enum idem_err word_from_file(const char *path,
                                    char ret_word[IDEM_SECRET_WORD_MAX],
                                    struct idem_error *reterr)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: %s", path, strerror(errno));
    }
    char memory[WORD_FILE_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    enum idem_err err = idem_private_read(file, path, &buf, reterr);
    (void)close(file); /* It was only read. */
    if (err == IDEM_OK) {
        struct idem_str text = idem_buf_str(&buf);
        err = word_take(idem_str_trim(idem_str_next(&text, '\n')), path, ret_word, reterr);
    }
    explicit_bzero(memory, sizeof(memory));
    return err;
}

enum idem_err idem_secret_word(const char *file,
                               const char *environment,
                               char ret_word[IDEM_SECRET_WORD_MAX],
                               struct idem_error *reterr)
{
    IDEM_ASSERT(file == NULL || environment == NULL);
    if (file != NULL) {
        return word_from_file(file, ret_word, reterr);
    }
    if (environment == NULL) {
        ret_word[0] = '\0';
        return IDEM_OK;
    }
    return word_take(idem_str_from(getenv(environment)), environment, ret_word, reterr);
}
