/*
 * idem backup: a copy of a store and its secrets, good enough to serve from.
 *
 * A backup that turns out to be useless when it is needed is worse than none, so this one is not
 * given its name before everything that can be known is known: the copy passes SQLite's check, the
 * secrets can be read and are those under which the records were made, and both are flushed. Until
 * then they are called FILE.part and FILE.secrets.part; what an interrupted backup leaves under
 * these names is used again by the next one. FILE gets its name last: if it is there, all is. Both
 * get their names or neither.
 *
 * Whoever holds the lock of a temporary file owns it, until it has its name; nobody else writes to
 * it or removes it. So two backups to one name take no harm from each other: one is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "base/attr.h"
#include "base/date.h"
#include "cli/output.h"
#include "daemon/commands.h"
#include "daemon/secrets.h"
#include "store/postgres/url.h"
#include "store/sqlite/backup.h"

static const char help[] =
    "usage: idem backup --store sqlite:PATH --to FILE [--secrets PATH]\n"
    "\n"
    "Copies a store, also while it is served, and its secrets: to FILE and FILE.secrets. What was\n"
    "acknowledged before it began is in the copy. Nothing is overwritten.\n"
    "\n"
    "  -s, --store STORE   the store\n"
    "  -t, --to FILE       where to; must not exist\n"
    "      --secrets PATH  the store's secrets (default: PATH.secrets)\n"
    "  -h, --help          this text\n"
    "\n"
    "Exit status: 0 the copy is complete and on disk; 2 command line; 4 there is no copy.\n";

static const char database[] =
    "idem backup: there is no copy: a database is copied with its own tools, and idem's secrets\n"
    "with it. Both may be done while it is served, in this order:\n"
    "  pg_dump --format=custom --schema=idem --file=idem.dump DATABASE\n"
    "  cp -p SECRETS idem.secrets\n"
    "To restore: stop every instance, pg_restore into an empty database, put the secrets back on\n"
    "every machine, and start one instance once with --restored. docs/postgres.md says more.\n";

#define NAME_MAX_LEN (PATH_MAX + 32)
#define TRIES_MAX    16

struct options {
    const char *path;
    const char *to;
    const char *secrets;
    bool is_database; /* Its own tools copy it. */
    bool help;
};

/* One of the two files that are made. */
struct part {
    char name[NAME_MAX_LEN]; /* What it will be called. */
    char temporary[NAME_MAX_LEN];
    int fd;     /* Of the temporary file; -1: none. Holds its lock. */
    bool named; /* It is not temporary any more. */
};

static bool options_parse(int argc, char **argv, struct options *ret_options)
{
    static const struct option long_options[] = {
        { "store", required_argument, NULL, 's' },
        { "to", required_argument, NULL, 't' },
        { "secrets", required_argument, NULL, 'S' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    static const char scheme[] = "sqlite:";
    struct options options = { .path = NULL };
    int letter;
    while ((letter = getopt_long(argc, argv, "s:t:h", long_options, NULL)) != -1) {
        if (letter == 's' && strncmp(optarg, scheme, sizeof(scheme) - 1) == 0) {
            options.path = optarg + sizeof(scheme) - 1;
        } else if (letter == 's' && idem_postgres_url_is(optarg)) {
            options.is_database = true;
        } else if (letter == 't') {
            options.to = optarg;
        } else if (letter == 'S') {
            options.secrets = optarg;
        } else if (letter == 'h') {
            options.help = true;
        } else {
            return false;
        }
    }
    *ret_options = options;
    bool named = options.path != NULL && options.path[0] != '\0' && options.to != NULL &&
                 options.to[0] != '\0';
    return optind == argc && (options.help || options.is_database || named);
}

static enum idem_err system_error(const char *what, const char *name, struct idem_error *reterr)
{
    return idem_error_set(reterr, IDEM_E_SYSTEM, "cannot %s %s: %s", what, name, strerror(errno));
}

static bool is_same_file(int fd, const char *name)
{
    struct stat opened;
    struct stat named;
    return fstat(fd, &opened) == 0 && lstat(name, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/*
 * Opens and locks the temporary file. Until the lock is held another backup may have given it its
 * name or taken it away: then it is not the temporary file any more, and `part` has none.
 */
static enum idem_err part_lock(struct part *part, struct idem_error *reterr)
{
    int fd = open(part->temporary, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (fd < 0) {
        return system_error("make", part->temporary, reterr);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        enum idem_err err =
            errno == EWOULDBLOCK
                ? idem_error_set(reterr, IDEM_E_SYSTEM,
                                 "another backup writes %s; wait for its end", part->temporary)
                : system_error("lock", part->temporary, reterr);
        (void)close(fd); /* Nothing was written. */
        return err;
    }
    if (is_same_file(fd, part->temporary)) {
        part->fd = fd;
    } else {
        (void)close(fd); /* Likewise. */
    }
    return IDEM_OK;
}

static bool is_taken(const char *name)
{
    struct stat info;
    return lstat(name, &info) == 0;
}

/* The name is free, and the temporary file is ours alone and empty. */
static enum idem_err part_begin(struct part *part, struct idem_error *reterr)
{
    for (int i = 0; i < TRIES_MAX && part->fd < 0; i++) {
        if (is_taken(part->name)) {
            return idem_error_set(reterr, IDEM_E_INVALID,
                                  "%s exists already; nothing is overwritten", part->name);
        }
        enum idem_err err = part_lock(part, reterr);
        if (err != IDEM_OK) {
            return err;
        }
    }
    if (part->fd < 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "other backups make and remove %s",
                              part->temporary);
    }
    if (fchmod(part->fd, S_IRUSR | S_IWUSR) != 0 || ftruncate(part->fd, 0) != 0) {
        return system_error("prepare", part->temporary, reterr);
    }
    return IDEM_OK;
}

/* Moves a file to a name that is free, in one step that cannot overwrite. As rename(). */
static int move(const char *from, const char *to)
{
    int rc = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (rc == 0 || (errno != EINVAL && errno != ENOSYS)) {
        return rc;
    }
    /* This file system cannot; a second name does not overwrite either. */
    rc = link(from, to);
    if (rc == 0 && unlink(from) != 0) {
        int error = errno;
        (void)unlink(to); /* It stays one name: under two a store is refused, and rightly. */
        errno = error;
        rc = -1;
    }
    return rc;
}

/* What it has was flushed, so that the name never stands for half a file. */
static enum idem_err part_end(struct part *part, struct idem_error *reterr)
{
    if (move(part->temporary, part->name) != 0) {
        return errno == EEXIST
                   ? idem_error_set(reterr, IDEM_E_INVALID,
                                    "%s appeared meanwhile; nothing is overwritten", part->name)
                   : system_error("name", part->name, reterr);
    }
    part->named = true;
    return IDEM_OK;
}

/* Takes the name back. */
static void part_undo(const struct part *part)
{
    if (part->named && is_same_file(part->fd, part->name)) {
        (void)unlink(part->name); /* At worst it stays, and the next backup says so. */
    }
}

static void part_close(const struct part *part)
{
    if (part->fd < 0) {
        return;
    }
    if (!part->named) {
        (void)unlink(part->temporary); /* At worst it stays, and the next backup uses it. */
    }
    (void)close(part->fd); /* What was written is flushed by now, or worth nothing. */
}

static enum idem_err directory_flush(const char *name, struct idem_error *reterr)
{
    char directory[NAME_MAX_LEN];
    (void)snprintf(directory, sizeof(directory), "%s", name); /* It has room. */
    char *slash = strrchr(directory, '/');
    if (slash == NULL) {
        (void)snprintf(directory, sizeof(directory), ".");
    } else {
        slash[slash == directory ? 1 : 0] = '\0';
    }
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum idem_err err = fd >= 0 && fsync(fd) == 0
                            ? IDEM_OK
                            : system_error("flush the directory", directory, reterr);
    if (fd >= 0) {
        (void)close(fd); /* It was only read. */
    }
    return err;
}

/* All that is there, as far as it fits; -1: it could not be read. */
static ssize_t whole_read(int fd, char *ret_bytes, size_t size)
{
    size_t len = 0;
    ssize_t got = 1;
    while (got > 0 && len < size) {
        got = read(fd, ret_bytes + len, size - len);
        len += got > 0 ? (size_t)got : 0;
    }
    return got < 0 ? -1 : (ssize_t)len;
}

/* Byte for byte. A file of secrets is small, so it is read whole. */
static enum idem_err secrets_copy(const char *from,
                                  const struct part *part,
                                  struct idem_error *reterr)
{
    char bytes[8192];
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return system_error("read the secrets", from, reterr);
    }
    ssize_t size = whole_read(fd, bytes, sizeof(bytes));
    enum idem_err err = IDEM_OK;
    if (size <= 0 || (size_t)size == sizeof(bytes)) {
        err = idem_error_set(reterr, IDEM_E_SYSTEM, "%s is not a file of secrets", from);
    } else if (pwrite(part->fd, bytes, (size_t)size, 0) != size) {
        err = system_error("write", part->temporary, reterr);
    }
    explicit_bzero(bytes, sizeof(bytes));
    (void)close(fd); /* It was only read. */
    return err;
}

/* The copied secrets are whole, and those under which the records of the copy were made. */
static enum idem_err secrets_check(const struct part *store,
                                   const struct part *copy,
                                   const char *wanted,
                                   struct idem_error *reterr)
{
    struct idem_random random;
    struct idem_secrets secrets = { .has_effect = false };
    struct idem_digester *digester = NULL;
    char memory[2 * IDEM_DIGEST_SIZE + 1];
    struct idem_buf text;
    idem_random_init_system(&random);
    const struct idem_secrets_place place = { .path = copy->temporary,
                                              .store_path = store->temporary };
    enum idem_err err = idem_secrets_open(&place, &random, &secrets, reterr);
    if (err == IDEM_OK) {
        err = idem_digester_create(&digester, reterr);
    }
    if (err == IDEM_OK) {
        struct idem_str effect = { .data = (const char *)secrets.effect,
                                   .len = sizeof(secrets.effect) };
        struct idem_digest check = idem_api_effect_secret_check(digester, effect);
        idem_buf_init(&text, memory, sizeof(memory));
        idem_buf_add_hex(&text, check.bytes, sizeof(check.bytes));
        if (!idem_str_equal(idem_buf_str(&text), idem_str_from(wanted))) {
            err = idem_error_set(reterr, IDEM_E_INVALID,
                                 "the secrets are not those that the store was made with; name "
                                 "them with --secrets");
        }
        idem_digester_destroy(digester);
    }
    explicit_bzero(&secrets, sizeof(secrets));
    return err;
}

static enum idem_err parts_flush(const struct part *store,
                                 const struct part *secrets,
                                 struct idem_error *reterr)
{
    if (fsync(store->fd) != 0) {
        return system_error("flush", store->temporary, reterr);
    }
    return fsync(secrets->fd) == 0 ? IDEM_OK : system_error("flush", secrets->temporary, reterr);
}

/* The store first: secrets are only added, so those of a later moment fit what it has. */
static enum idem_err parts_fill(const struct options *options,
                                const struct part *store,
                                const struct part *secrets,
                                struct idem_sqlite_copied *ret_copied,
                                struct idem_error *reterr)
{
    char beside[NAME_MAX_LEN];
    (void)snprintf(beside, sizeof(beside), "%s.secrets", options->path); /* It has room. */
    const char *from = options->secrets != NULL ? options->secrets : beside;
    if (access(from, R_OK) != 0) { /* Before the long work. */
        return idem_error_set(
            reterr, IDEM_E_SYSTEM,
            "cannot read the secrets %s: %s; without them a copy is worth nothing: "
            "name them with --secrets",
            from, strerror(errno));
    }
    enum idem_err err = idem_sqlite_copy(options->path, store->temporary, ret_copied, reterr);
    if (err == IDEM_OK) {
        err = secrets_copy(from, secrets, reterr);
    }
    if (err == IDEM_OK) {
        err = secrets_check(store, secrets, ret_copied->effect_secret_check, reterr);
    }
    return err == IDEM_OK ? parts_flush(store, secrets, reterr) : err;
}

static enum idem_err parts_name(struct part *store, struct part *secrets, struct idem_error *reterr)
{
    enum idem_err err = part_end(secrets, reterr);
    if (err == IDEM_OK) {
        err = part_end(store, reterr);
    }
    if (err == IDEM_OK) {
        err = directory_flush(store->name, reterr);
    }
    if (err != IDEM_OK) {
        part_undo(store);
        part_undo(secrets);
    }
    return err;
}

static enum idem_err parts_make(const struct options *options,
                                struct part *store,
                                struct part *secrets,
                                struct idem_sqlite_copied *ret_copied,
                                struct idem_error *reterr)
{
    enum idem_err err = part_begin(store, reterr);
    if (err == IDEM_OK) {
        err = part_begin(secrets, reterr);
    }
    if (err == IDEM_OK) {
        err = parts_fill(options, store, secrets, ret_copied, reterr);
    }
    return err == IDEM_OK ? parts_name(store, secrets, reterr) : err;
}

static bool copied_print(const struct part *store, const struct idem_sqlite_copied *copied)
{
    char memory[64];
    struct idem_buf newest;
    idem_buf_init(&newest, memory, sizeof(memory));
    idem_date_print_rfc3339(copied->newest_us, &newest);
    return printf(
               "%s has %lld bytes and passed the check; %s.secrets belongs to it.\n"
               "Its newest record is of %.*s; nothing later is in it.\n"
               "To restore: stop idem, put both into an empty directory as PATH and PATH.secrets\n"
               "(no -wal or -shm of another store beside them), and start it once with\n"
               "--restored.\n",
               store->name, (long long)copied->bytes, store->name,
               copied->newest_us == 0 ? 5 : (int)newest.len,
               copied->newest_us == 0 ? "never" : newest.data) > 0;
}

static bool part_name(struct part *part, const char *to, const char *suffix)
{
    int len = snprintf(part->name, sizeof(part->name), "%s%s", to, suffix);
    int temporary_len = snprintf(part->temporary, sizeof(part->temporary), "%s%s.part", to, suffix);
    part->fd = -1;
    part->named = false;
    return len > 0 && temporary_len > 0 && (size_t)temporary_len < sizeof(part->temporary);
}

enum idem_exit idem_command_backup(int argc, char **argv)
{
    struct options options;
    struct part store;
    struct part secrets;
    if (!options_parse(argc, argv, &options)) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    if (options.help) {
        return fputs(help, stdout) < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
    }
    if (options.is_database) {
        (void)fputs(database, stderr);
        return IDEM_EXIT_START;
    }
    if (strlen(options.path) > PATH_MAX || !part_name(&store, options.to, "") ||
        !part_name(&secrets, options.to, ".secrets")) {
        (void)fputs("idem backup: the path is too long\n", stderr);
        return IDEM_EXIT_USAGE;
    }
    struct idem_sqlite_copied copied = { .newest_us = 0 };
    struct idem_error error;
    enum idem_err err = parts_make(&options, &store, &secrets, &copied, &error);
    part_close(&secrets);
    part_close(&store);
    if (err != IDEM_OK) {
        (void)fprintf(stderr, "idem backup: %s\n", error.text);
        return IDEM_EXIT_START;
    }
    return idem_output_end(copied_print(&store, &copied) ? IDEM_EXIT_OK : IDEM_EXIT_OTHER,
                           "the copy is made and passed the check");
}
