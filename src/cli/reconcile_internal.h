/*
 * reconcile_internal.h - the parts of `idem reconcile`: its command line, both sides, its words.
 */
#ifndef IDEM_CLI_RECONCILE_INTERNAL_H
#define IDEM_CLI_RECONCILE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/command.h"
#include "cli/session.h"
#include "reconcile/merge.h"
#include "reconcile/spool.h"
#include "reconcile/summary.h"

#define IDEM_RECONCILE_TOLD_MAX  64    /* Differences told at once, as many as the service takes. */
#define IDEM_RECONCILE_BODY_MAX  49152 /* Bytes of such a request. */
#define IDEM_RECONCILE_TEXT_MAX  1024  /* Text of one line. */
#define IDEM_RECONCILE_WORDS_MAX 64

struct idem_reconcile_options {
    const char *provider;
    const char *file; /* NULL: the provider's own listing. */
    int64_t from_us;
    int64_t to_us;
    int64_t grace_us;
    enum idem_summary_format format;
    bool dry_run;
};

/* Says how far it is, on a terminal; nothing elsewhere. */
struct idem_reconcile_progress {
    bool wanted;
    bool shown;
    int64_t shown_us; /* Monotonic. */
};

/* A difference until the service has said what came of it. */
struct idem_reconcile_told {
    struct idem_merge_pair pair; /* Text in `memory`. */
    char memory[2 * IDEM_RECONCILE_TEXT_MAX];
};

struct idem_reconcile {
    struct idem_session *session;
    struct idem_reconcile_options options;
    struct idem_reconcile_progress progress;
    struct idem_spool *spool;
    unsigned lists;    /* Kinds of effects that their side has completely. */
    int64_t elsewhere; /* Records at another account or region of the entry. */
    struct idem_summary_book book;
    struct idem_reconcile_told told[IDEM_RECONCILE_TOLD_MAX];
    size_t told_count;
    int64_t settled; /* Differences that the service knew what to do with. */
    struct idem_buf body;
    char body_memory[IDEM_RECONCILE_BODY_MAX];
};

/* Reads the command line; otherwise it was said what is wrong. */
enum idem_exit idem_reconcile_options_read(const struct idem_session *session,
                                           const struct idem_arguments *arguments,
                                           struct idem_reconcile_options *ret_options);

/* reconcile_sides.c: each side into the spool, theirs first. */
enum idem_exit idem_reconcile_fetch_there(struct idem_reconcile *run);
enum idem_exit idem_reconcile_fetch_here(struct idem_reconcile *run);

/* reconcile_tell.c: what differs, to the service and to whoever reads. */
enum idem_exit idem_reconcile_tell(struct idem_reconcile *run, const struct idem_merge_pair *pair);
enum idem_exit idem_reconcile_tell_rest(struct idem_reconcile *run);
enum idem_exit idem_reconcile_print_totals(struct idem_reconcile *run);

/* reconcile_progress.c */
void idem_reconcile_progress_begin(struct idem_reconcile_progress *progress);
void idem_reconcile_progress_show(struct idem_reconcile_progress *progress,
                                  const char *what,
                                  int64_t count);
void idem_reconcile_progress_clear(struct idem_reconcile_progress *progress);

/* Something here failed; says it. */
enum idem_exit idem_reconcile_fault(struct idem_reconcile *run, const struct idem_error *error);

/* Bytes that were printed into `buf`, to standard output. */
enum idem_exit idem_reconcile_write(struct idem_reconcile *run, const struct idem_buf *buf);

#endif /* IDEM_CLI_RECONCILE_INTERNAL_H */
