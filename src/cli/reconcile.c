/*
 * idem reconcile: what the service has and what the provider says, held against each other.
 *
 *     their side --> spool <-- our side         a page at a time, both through the service
 *                      |
 *                    sorted
 *                      |
 *                    merge --> matched, open, too young ... --> counted
 *                      |
 *                   differs --> the service, 64 at once --> settled, a case, or nothing new
 *
 * Nothing is repaired here: the service's core decides what the provider's word settles, as it does
 * with every other word of the provider's. So a run that was stopped, or whose answers got lost, is
 * run again, and finds done what was done. Memory is the same for one line and for ten million.
 *
 * The session's own answers are pages, of no use to anybody; --json is the form of the result.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/date.h"
#include "cli/cli.h"
#include "cli/duration.h"
#include "cli/reconcile_internal.h"

#define GRACE_DEFAULT_US (3600 * IDEM_US_PER_SECOND)
#define SKEW_US          (600 * IDEM_US_PER_SECOND)
#define DAY_LEN          10 /* 2026-11-29 */
#define SHOW_EACH        4096

static const char help[] =
    "usage: idem reconcile --provider ENTRY --from TIME --to TIME [OPTION...]\n"
    "\n"
    "Compares the service's records of a period with the provider's listing or statement, tells\n"
    "the service what differs (it settles what that settles, and opens cases for the rest), and\n"
    "prints each difference and the totals.\n"
    "\n"
    "      --provider ENTRY        the configured provider entry\n"
    "      --from TIME, --to TIME  the period, the second not included: 2026-11-29, or\n"
    "                              2026-11-29T13:00:00Z; UTC\n"
    "      --file FILE             a statement as CSV instead of the provider's own listing;\n"
    "                              '-': standard input\n"
    "      --grace LENGTH          what happened so shortly ago is not judged (1h): 30m, 2h, 1d\n"
    "      --format FORMAT         table (default), csv or json\n"
    "      --dry-run               tell the service nothing\n"
    "      --url URL               the service; default IDEM_URL, or http://127.0.0.1:8080\n"
    "      --credential-file FILE  the operator's bearer; default: the variable IDEM_CREDENTIAL\n"
    "      --insecure              allow plain http to another machine\n"
    "      --json                  the same as --format json\n"
    "  -h, --help                  this text\n"
    "\n"
    "Exit status: 0 everything agrees or was settled, 1 differences are left for a person (or\n"
    "something failed: then there are no totals), 2 command line or statement, 6 the service\n"
    "refused, 7 no answer came: run it again.\n";

enum {
    OPTION_PROVIDER = IDEM_OPTION_OWN,
    OPTION_FROM,
    OPTION_TO,
    OPTION_FILE,
    OPTION_GRACE,
    OPTION_FORMAT,
    OPTION_DRY_RUN
};

static enum idem_exit refuse(const char *what, const char *value)
{
    (void)fprintf(stderr, "idem reconcile: %s%s\n\n%s", what, value, help);
    return IDEM_EXIT_USAGE;
}

/* A day means its beginning. */
static bool time_read(const char *text, int64_t *ret_us)
{
    char day[DAY_LEN + sizeof("T00:00:00Z")];
    if (strlen(text) == DAY_LEN) {
        (void)snprintf(day, sizeof(day), "%sT00:00:00Z", text); /* It fits. */
        text = day;
    }
    return idem_date_parse_rfc3339(idem_str_from(text), ret_us);
}

static enum idem_exit period_read(const struct idem_arguments *arguments,
                                  struct idem_reconcile_options *options)
{
    const char *from = idem_arguments_own(arguments, OPTION_FROM);
    const char *to = idem_arguments_own(arguments, OPTION_TO);
    if (from == NULL || to == NULL) {
        return refuse("--from and --to are needed", "");
    }
    if (!time_read(from, &options->from_us)) {
        return refuse("--from is no time: ", from);
    }
    if (!time_read(to, &options->to_us)) {
        return refuse("--to is no time: ", to);
    }
    if (options->from_us >= options->to_us) {
        return refuse("--from must lie before --to", "");
    }
    return IDEM_EXIT_OK;
}

static enum idem_exit grace_read(const char *text, struct idem_reconcile_options *options)
{
    options->grace_us = GRACE_DEFAULT_US;
    if (text == NULL || strcmp(text, "0") == 0) {
        options->grace_us = text == NULL ? GRACE_DEFAULT_US : 0;
        return IDEM_EXIT_OK;
    }
    int64_t grace_ms = 0;
    enum idem_duration_fault fault = idem_duration_parse(idem_str_from(text), true, &grace_ms);
    if (fault != IDEM_DURATION_OK) {
        (void)fprintf(stderr, "idem reconcile: --grace '%s' %s, 7d, or 0\n", text,
                      idem_duration_fault_text(fault));
        return IDEM_EXIT_USAGE;
    }
    options->grace_us = grace_ms * IDEM_US_PER_MS;
    return IDEM_EXIT_OK;
}

static enum idem_exit format_read(const char *text,
                                  bool json,
                                  struct idem_reconcile_options *options)
{
    if (json && text != NULL && strcmp(text, "json") != 0) {
        return refuse("--json is --format json, and not --format ", text);
    }
    static const char *const names[IDEM_SUMMARY_FORMAT_COUNT] = {
        [IDEM_SUMMARY_TABLE] = "table",
        [IDEM_SUMMARY_CSV] = "csv",
        [IDEM_SUMMARY_JSON] = "json",
    };
    options->format = json ? IDEM_SUMMARY_JSON : IDEM_SUMMARY_TABLE;
    if (text == NULL) {
        return IDEM_EXIT_OK;
    }
    for (size_t i = 0; i < IDEM_SUMMARY_FORMAT_COUNT; i++) {
        if (strcmp(text, names[i]) == 0) {
            options->format = (enum idem_summary_format)i;
            return IDEM_EXIT_OK;
        }
    }
    return refuse("--format is table, csv or json, not ", text);
}

enum idem_exit idem_reconcile_options_read(const struct idem_session *session,
                                           const struct idem_arguments *arguments,
                                           struct idem_reconcile_options *ret_options)
{
    *ret_options = (struct idem_reconcile_options){
        .provider = idem_arguments_own(arguments, OPTION_PROVIDER),
        .file = idem_arguments_own(arguments, OPTION_FILE),
        .dry_run = idem_arguments_own(arguments, OPTION_DRY_RUN) != NULL,
    };
    if (arguments->word != NULL) {
        return refuse("what is this: ", arguments->word);
    }
    if (ret_options->provider == NULL || ret_options->provider[0] == '\0' ||
        !idem_utf8_valid(idem_str_from(ret_options->provider))) {
        return refuse("--provider ENTRY is needed", "");
    }
    enum idem_exit status = period_read(arguments, ret_options);
    if (status == IDEM_EXIT_OK) {
        status = grace_read(idem_arguments_own(arguments, OPTION_GRACE), ret_options);
    }
    return status == IDEM_EXIT_OK ? format_read(idem_arguments_own(arguments, OPTION_FORMAT),
                                                session->json, ret_options)
                                  : status;
}

enum idem_exit idem_reconcile_fault(struct idem_reconcile *run, const struct idem_error *error)
{
    idem_reconcile_progress_clear(&run->progress);
    (void)fprintf(stderr, "idem reconcile: %s\n", error->text);
    return IDEM_EXIT_OTHER;
}

static enum idem_err spool_next(void *context,
                                enum idem_line_side side,
                                struct idem_line *ret_line,
                                bool *ret_end,
                                struct idem_error *reterr)
{
    return idem_spool_next(context, side, ret_line, ret_end, reterr);
}

static enum idem_exit head_print(struct idem_reconcile *run)
{
    char memory[IDEM_SUMMARY_PRINT_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_summary_print_head(run->options.format, &buf);
    return idem_reconcile_write(run, &buf);
}

static enum idem_exit merge_run(struct idem_reconcile *run, int64_t begun_us)
{
    const struct idem_merge_rules rules = {
        .from_us = run->options.from_us,
        .to_us = run->options.to_us,
        .young_us = begun_us - run->options.grace_us,
        .skew_us = SKEW_US,
        .lists = run->lists,
    };
    const struct idem_merge_source source = { .context = run->spool, .next = spool_next };
    struct idem_merge merge;
    struct idem_merge_pair pair;
    struct idem_error error;
    idem_merge_init(&merge, &rules, &source);
    enum idem_exit status = head_print(run);
    for (int64_t count = 0; status == IDEM_EXIT_OK; count++) {
        if (idem_merge_next(&merge, &pair, &error) != IDEM_OK) {
            return idem_reconcile_fault(run, &error);
        }
        if (pair.kind == IDEM_MERGE_NONE) {
            return idem_reconcile_tell_rest(run);
        }
        status = idem_reconcile_tell(run, &pair);
        if (count % SHOW_EACH == SHOW_EACH - 1) {
            idem_reconcile_progress_show(&run->progress, "comparing, effects", count);
        }
    }
    return status;
}

static void end_say(const struct idem_reconcile *run)
{
    if (run->elsewhere > 0) {
        (void)fprintf(stderr,
                      "idem reconcile: %lld records are of another account or region of this "
                      "entry, and were not compared\n",
                      (long long)run->elsewhere);
    }
    if (run->settled > 0) {
        (void)fprintf(stderr, "idem reconcile: %lld differences were settled\n",
                      (long long)run->settled);
    }
    if (run->book.left > 0) {
        (void)fprintf(stderr, "idem reconcile: %lld left for a person%s\n",
                      (long long)run->book.left, run->options.dry_run ? "" : ": idem cases list");
    }
}

static enum idem_exit reconcile_all(struct idem_reconcile *run)
{
    struct idem_clock clock;
    struct idem_error error;
    idem_clock_init_system(&clock);
    int64_t begun_us = idem_clock_wall_us(&clock);
    if (idem_spool_open(&run->spool, &error) != IDEM_OK) {
        return idem_reconcile_fault(run, &error);
    }
    enum idem_exit status = idem_reconcile_fetch_there(run);
    if (status == IDEM_EXIT_OK) {
        status = idem_reconcile_fetch_here(run);
    }
    if (status == IDEM_EXIT_OK && idem_spool_sort(run->spool, &error) != IDEM_OK) {
        status = idem_reconcile_fault(run, &error);
    }
    if (status == IDEM_EXIT_OK) {
        status = merge_run(run, begun_us);
    }
    return status == IDEM_EXIT_OK ? idem_reconcile_print_totals(run) : status;
}

static enum idem_exit reconcile_run(struct idem_session *session,
                                    const struct idem_arguments *arguments)
{
    struct idem_reconcile *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        (void)fputs("idem: out of memory\n", stderr);
        return IDEM_EXIT_OTHER;
    }
    run->session = session;
    enum idem_exit status = idem_reconcile_options_read(session, arguments, &run->options);
    if (status == IDEM_EXIT_OK) {
        idem_reconcile_progress_begin(&run->progress);
        status = reconcile_all(run);
        idem_reconcile_progress_clear(&run->progress);
        end_say(run);
    }
    if (status == IDEM_EXIT_OK && run->book.left > 0) {
        status = IDEM_EXIT_OTHER;
    }
    idem_spool_close(run->spool);
    free(run);
    return status;
}

enum idem_exit idem_cli_reconcile(int argc, char **argv)
{
    static const struct option options[] = {
        { "provider", required_argument, NULL, OPTION_PROVIDER },
        { "from", required_argument, NULL, OPTION_FROM },
        { "to", required_argument, NULL, OPTION_TO },
        { "file", required_argument, NULL, OPTION_FILE },
        { "grace", required_argument, NULL, OPTION_GRACE },
        { "format", required_argument, NULL, OPTION_FORMAT },
        { "dry-run", no_argument, NULL, OPTION_DRY_RUN },
        IDEM_SESSION_OPTIONS,
        { NULL, 0, NULL, 0 },
    };
    static const struct idem_command_line line = { options, help, reconcile_run };
    return idem_command_line_run(argc, argv, &line);
}
