/*
 * Reading and, once in a store's life, writing its secrets.
 *
 * A new file is written beside its place, flushed, and linked into place: link(2) refuses to
 * replace, so two starts at the same time cannot give one store two secrets, and a crash leaves
 * either no file or a whole one. The directory is flushed as well, before anything is named by
 * these secrets: otherwise a power cut could leave a store whose secret is gone.
 *
 * A store is only made by SQLite after this, so a crash in between leaves secrets without a store,
 * which looks like a store that was lost. Nobody can tell the two apart but the operator, who is
 * asked: --new-store.
 *
 * No message holds a byte of the file.
 */
#include "daemon/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/private_file.h"
#include "base/text.h"
#include "daemon/hex.h"

#define FILE_MAX 4096

/* Why this line is not accepted; NULL if it is. */
static const char *fingerprint_parse(struct idem_secrets *secrets, struct idem_str rest)
{
    int64_t id = 0;
    if (!idem_str_to_i64(idem_str_next(&rest, ' '), &id) || id == 0 || id > UINT32_MAX) {
        return "a fingerprint secret needs a number of its own";
    }
    if (secrets->fingerprint_count == IDEM_SECRETS_FINGERPRINTS_MAX) {
        return "too many fingerprint secrets";
    }
    for (size_t i = 0; i < secrets->fingerprint_count; i++) {
        if (secrets->fingerprints[i].id == (uint32_t)id) {
            return "this fingerprint number stands twice";
        }
    }
    struct idem_fingerprint_secret *next = &secrets->fingerprints[secrets->fingerprint_count];
    next->id = (uint32_t)id;
    if (!idem_hex_parse(idem_str_trim(rest), next->bytes, sizeof(next->bytes))) {
        return "a secret is 64 lower-case hexadecimal digits";
    }
    secrets->fingerprint_count += 1;
    return NULL;
}

static const char *line_parse(struct idem_secrets *secrets, struct idem_str line)
{
    line = idem_str_trim(line);
    if (line.len == 0 || line.data[0] == '#') {
        return NULL;
    }
    struct idem_str word = idem_str_next(&line, ' ');
    if (idem_str_equal(word, IDEM_STR("fingerprint"))) {
        return fingerprint_parse(secrets, line);
    }
    if (!idem_str_equal(word, IDEM_STR("effect"))) {
        return "a line begins with effect, fingerprint or #";
    }
    if (secrets->has_effect) {
        return "there is one effect secret";
    }
    secrets->has_effect =
        idem_hex_parse(idem_str_trim(line), secrets->effect, sizeof(secrets->effect));
    return secrets->has_effect ? NULL : "a secret is 64 lower-case hexadecimal digits";
}

static enum idem_err secrets_parse(const char *path,
                                   struct idem_str text,
                                   struct idem_secrets *ret_secrets,
                                   struct idem_error *reterr)
{
    struct idem_secrets secrets = { .has_effect = false };
    for (unsigned line = 1; text.len > 0; line++) {
        const char *fault = line_parse(&secrets, idem_str_next(&text, '\n'));
        if (fault != NULL) {
            return idem_error_set(reterr, IDEM_E_INVALID, "%s:%u: %s", path, line, fault);
        }
    }
    if (!secrets.has_effect || secrets.fingerprint_count == 0) {
        return idem_error_set(reterr, IDEM_E_INVALID,
                              "%s: needs one effect and at least one fingerprint secret", path);
    }
    *ret_secrets = secrets;
    return IDEM_OK;
}

static bool is_there(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

/* Nothing that was recorded can be in it. */
static bool is_absent_or_empty(const char *path)
{
    struct stat status;
    int rc = stat(path, &status);
    return rc == 0 ? S_ISREG(status.st_mode) && status.st_size == 0
                   : errno == ENOENT || errno == ENOTDIR;
}

static void secret_print(struct idem_random *random, struct idem_buf *buf)
{
    uint8_t bytes[IDEM_SECRET_SIZE];
    idem_random_fill(random, bytes, sizeof(bytes));
    idem_buf_add_hex(buf, bytes, sizeof(bytes));
    idem_buf_add_char(buf, '\n');
    explicit_bzero(bytes, sizeof(bytes));
}

static bool flush_directory(const char *path)
{
    char copy[PATH_MAX];
    int len = snprintf(copy, sizeof(copy), "%s", path);
    if (len < 0 || (size_t)len >= sizeof(copy)) {
        return false;
    }
    int directory = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return false;
    }
    bool flushed = fsync(directory) == 0;
    (void)close(directory); /* It was only flushed. */
    return flushed;
}

/* Writes `text` to a new file `path`, flushed. */
static bool file_write(const char *path, struct idem_str text)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) {
        return false;
    }
    errno = EIO; /* For a write of less than all, which says nothing itself. */
    bool written = write(file, text.data, text.len) == (ssize_t)text.len && fsync(file) == 0;
    return close(file) == 0 && written;
}

/* Another name each time: a number of the process comes again, in a container at every start. */
static bool fresh_name(const char *path, struct idem_random *random, char ret_name[PATH_MAX])
{
    char memory[2 * sizeof(uint64_t)];
    uint8_t bytes[sizeof(uint64_t)];
    struct idem_buf digits;
    idem_buf_init(&digits, memory, sizeof(memory));
    idem_random_fill(random, bytes, sizeof(bytes));
    idem_buf_add_hex(&digits, bytes, sizeof(bytes));
    int len = snprintf(ret_name, PATH_MAX, "%s.%.*s.new", path, (int)digits.len, digits.data);
    return len > 0 && len < PATH_MAX;
}

static enum idem_err secrets_create(const char *path,
                                    struct idem_random *random,
                                    struct idem_error *reterr)
{
    char memory[FILE_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add(&buf, IDEM_STR("# Secrets of the store beside this file. Keep a copy with every "
                                "backup of the store:\n"
                                "# without them no old key is recognised, and a retry would pay "
                                "again.\n"
                                "effect "));
    secret_print(random, &buf);
    idem_buf_add(&buf, IDEM_STR("fingerprint 1 "));
    secret_print(random, &buf);
    IDEM_ASSERT(!buf.full);

    char fresh[PATH_MAX];
    bool done = fresh_name(path, random, fresh) && file_write(fresh, idem_buf_str(&buf));
    explicit_bzero(memory, sizeof(memory));
    done = done && link(fresh, path) == 0 && flush_directory(path);
    int cause = errno;
    (void)unlink(fresh); /* If it is left behind, nobody ever reads it. */
    if (!done) {
        errno = cause;
        return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: cannot be created: %s", path,
                              strerror(errno));
    }
    return IDEM_OK;
}

/* Whether the store and its secrets fit: both there, neither, or a beginning that was asked for. */
static enum idem_err place_check(const struct idem_secrets_place *place, struct idem_error *reterr)
{
    bool is_file = place->store_path != NULL;
    const char *store = is_file ? place->store_path : place->store_label;
    bool begins = is_file ? is_absent_or_empty(place->store_path) : !place->store_is_there;
    bool exists = is_file ? is_there(place->store_path) : place->store_is_there;
    if (place->new_store) {
        return begins ? IDEM_OK
                      : idem_error_set(reterr, IDEM_E_SYSTEM,
                                       "--new-store: the store %s is there and not empty; start "
                                       "without the flag to serve it",
                                       store);
    }
    if (is_there(place->path) && begins) {
        return idem_error_set(
            reterr, IDEM_E_SYSTEM,
            "the store %s is missing or empty while its secrets %s exist: keys recorded in it "
            "would be new, and retries would pay again. Restore it; or, for a store that is meant "
            "to begin empty, start once with --new-store",
            store, place->path);
    }
    if (!is_there(place->path) && exists) {
        return idem_error_set(
            reterr, IDEM_E_SYSTEM,
            "%s is missing but the store %s exists: put back the file that was saved with it, or "
            "copy the one that another instance has. A new one would make every old key new, and "
            "retries would pay again",
            place->path, store);
    }
    return IDEM_OK;
}

enum idem_err idem_secrets_open(const struct idem_secrets_place *place,
                                struct idem_random *random,
                                struct idem_secrets *ret_secrets,
                                struct idem_error *reterr)
{
    const char *path = place->path;
    enum idem_err err = place_check(place, reterr);
    bool absent = !is_there(path);
    if (err == IDEM_OK && absent) {
        err = secrets_create(path, random, reterr);
    }
    if (err != IDEM_OK) {
        return err;
    }

    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "%s: %s", path, strerror(errno));
    }
    char memory[FILE_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    err = idem_private_read(file, path, &buf, reterr);
    (void)close(file); /* It was only read. */
    if (err == IDEM_OK) {
        err = secrets_parse(path, idem_buf_str(&buf), ret_secrets, reterr);
    }
    if (err == IDEM_OK) {
        ret_secrets->made = absent;
    }
    explicit_bzero(memory, sizeof(memory));
    return err;
}
