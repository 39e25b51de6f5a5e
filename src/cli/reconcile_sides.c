/*
 * Both sides of a reconciliation into the spool.
 *
 * The provider's side is read first. An attempt is durable here before it is sent, so whatever that
 * side has, has its record by the time that the records are read; the other way round, what was
 * paid in between would look as if it were missing here.
 *
 * Records are read with a margin: what was made shortly before the period can have happened in it.
 * What one page says is believed as a whole; a page that cannot be understood ends the run, and
 * nothing was told to anybody by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/currency.h"
#include "base/date.h"
#include "base/money.h"
#include "cli/cursor.h"
#include "cli/reconcile_internal.h"
#include "cli/table.h"
#include "reconcile/statement.h"

#define MARGIN_BEFORE_US (3600 * IDEM_US_PER_SECOND)
#define MARGIN_AFTER_US  (600 * IDEM_US_PER_SECOND)
#define PATH_LEN         1024
#define DATE_MAX         32
#define PIECE_SIZE       65536

#define BIT(kind) (1U << IDEM_EFFECT_KIND_##kind)

/* Completely in a listing that promises to be complete, in one that does not, in a statement. */
#define LISTS_ALL       (BIT(CHARGE) | BIT(AUTHORIZE) | BIT(CAPTURE) | BIT(CANCEL) | BIT(REFUND))
#define LISTS_MADE      (BIT(CHARGE) | BIT(AUTHORIZE) | BIT(REFUND))
#define LISTS_STATEMENT (BIT(CHARGE) | BIT(CAPTURE) | BIT(REFUND))

/* ---- pages ---- */

struct pages {
    const char *path;
    const char *what; /* For whoever waits. */
    int64_t from_us;
    int64_t to_us;
    int64_t count;   /* Lines so far. */
    bool is_listing; /* The provider's: its pages say whether they have everything. */
    enum idem_exit (*take)(struct idem_reconcile *run, size_t element);
};

/* False: it is longer than any page that there is, and it was said. */
static bool path_make(const struct idem_reconcile *run,
                      const struct pages *pages,
                      const char *cursor,
                      char ret_path[PATH_LEN])
{
    char memory[2 * DATE_MAX];
    struct idem_buf dates;
    struct idem_buf path;
    idem_buf_init(&dates, memory, sizeof(memory));
    idem_date_print_rfc3339(pages->from_us, &dates);
    idem_buf_add_char(&dates, '\0');
    size_t to_at = dates.len;
    idem_date_print_rfc3339(pages->to_us, &dates);
    idem_buf_add_char(&dates, '\0');
    idem_buf_init(&path, ret_path, PATH_LEN);
    idem_buf_add(&path, idem_str_from(pages->path));
    idem_path_member(&path, "provider", run->options.provider);
    idem_path_member(&path, "from", memory);
    idem_path_member(&path, "to", memory + to_at);
    idem_path_member(&path, "cursor", cursor[0] != '\0' ? cursor : NULL);
    return idem_path_end(&path);
}

static enum idem_exit not_ours(struct idem_reconcile *run)
{
    idem_reconcile_progress_clear(&run->progress);
    (void)fputs("idem reconcile: the answer is not one of this version of idem\n", stderr);
    return IDEM_EXIT_OTHER;
}

/* What has no end cannot have been read completely. */
static enum idem_exit endless(struct idem_reconcile *run, const struct pages *pages)
{
    idem_reconcile_progress_clear(&run->progress);
    (void)fprintf(stderr,
                  "idem reconcile: %s leads back to a page that was read before, so it has no end "
                  "and is not complete. Nothing was compared.\n",
                  pages->is_listing ? "the provider's listing" : "the service's list");
    return IDEM_EXIT_OTHER;
}

/* A page says whether its listing has everything, also one that is empty. */
static void completeness_take(struct idem_reconcile *run)
{
    const struct idem_json *json = &run->session->document;
    size_t complete = idem_json_member(json, 0, IDEM_STR("complete"));
    if (complete == 0 || json->tokens[complete].kind != IDEM_JSON_TRUE) {
        run->lists = LISTS_MADE;
    }
}

static enum idem_exit page_take(struct idem_reconcile *run, struct pages *pages)
{
    const struct idem_json *json = &run->session->document;
    size_t list = idem_json_member(json, 0, IDEM_STR("effects"));
    if (list == 0 || json->tokens[list].kind != IDEM_JSON_ARRAY) {
        return not_ours(run);
    }
    if (pages->is_listing) {
        completeness_take(run);
    }
    enum idem_exit status = IDEM_EXIT_OK;
    size_t element = list + 1;
    for (uint32_t i = 0; i < json->tokens[list].count && status == IDEM_EXIT_OK; i++) {
        status = pages->take(run, element);
        element = json->tokens[element].next;
    }
    pages->count += json->tokens[list].count;
    idem_reconcile_progress_show(&run->progress, pages->what, pages->count);
    return status;
}

static enum idem_exit pages_walk(struct idem_reconcile *run, struct pages *pages)
{
    struct idem_cursor cursor = { .count = 0 };
    enum idem_cursor_step step = IDEM_CURSOR_NEXT;
    char path[PATH_LEN];
    while (step == IDEM_CURSOR_NEXT && path_make(run, pages, cursor.text, path)) {
        enum idem_exit status = idem_session_ask(run->session, "GET", path, IDEM_STR(""));
        if (status == IDEM_EXIT_OK) {
            status = page_take(run, pages);
        }
        if (status != IDEM_EXIT_OK) {
            return status;
        }
        step = idem_cursor_take(&cursor, &run->session->document);
    }
    if (step == IDEM_CURSOR_AGAIN) {
        return endless(run, pages);
    }
    return step == IDEM_CURSOR_END ? IDEM_EXIT_OK : not_ours(run);
}

/* ---- lines ---- */

/*
 * The text of a member, kept and fit for a terminal; empty if it is absent or null. It is visible
 * ASCII here as everywhere; what a provider said beside that is shown as '?'.
 */
static struct idem_str text_take(const struct idem_json *json,
                                 size_t object,
                                 const char *name,
                                 struct idem_buf *kept)
{
    size_t index = idem_json_member(json, object, idem_str_from(name));
    size_t from = kept->len;
    if (index == 0 || json->tokens[index].kind != IDEM_JSON_STRING) {
        return IDEM_STR("");
    }
    idem_json_unescape(json, index, kept);
    idem_terminal_safe(kept->data + from, kept->len - from);
    return idem_str_slice(idem_buf_str(kept), from, kept->len - from);
}

/* What both sides have in common. False: it cannot be read. */
static bool line_take(const struct idem_json *json,
                      size_t object,
                      struct idem_buf *kept,
                      struct idem_line *ret_line)
{
    if (json->tokens[object].kind != IDEM_JSON_OBJECT) {
        return false;
    }
    *ret_line = (struct idem_line){
        .effect_id = text_take(json, object, "effect_id", kept),
        .currency = text_take(json, object, "currency", kept),
        .order_no = text_take(json, object, "order_no", kept),
        .payment_id = text_take(json, object, "payment_id", kept),
        .reference = text_take(json, object, "reference", kept),
        .amount_minor = -1,
    };
    struct idem_str amount = text_take(json, object, "amount", kept);
    int exponent = idem_currency_exponent(ret_line->currency);
    bool said = amount.len > 0 && exponent >= 0;
    if (said && idem_amount_parse(amount, exponent, &ret_line->amount_minor) != IDEM_AMOUNT_OK) {
        return false;
    }
    ret_line->effect_id = idem_str_slice(ret_line->effect_id, 0, IDEM_LINE_ID_MAX);
    return !kept->full && ret_line->effect_id.len > 0;
}

/* A time; 0 if it is absent or null. False: it is there, and is none. */
static bool time_take(const struct idem_json *json,
                      size_t object,
                      const char *name,
                      int64_t *ret_us)
{
    char memory[64];
    struct idem_buf kept;
    idem_buf_init(&kept, memory, sizeof(memory));
    struct idem_str text = text_take(json, object, name, &kept);
    *ret_us = 0;
    return text.len == 0 || idem_date_parse_rfc3339(text, ret_us);
}

static enum idem_exit line_add(struct idem_reconcile *run,
                               enum idem_line_side side,
                               const struct idem_line *line)
{
    struct idem_error error;
    return idem_spool_add(run->spool, side, line, &error) == IDEM_OK
               ? IDEM_EXIT_OK
               : idem_reconcile_fault(run, &error);
}

static enum idem_exit listed_take(struct idem_reconcile *run, size_t element)
{
    const struct idem_json *json = &run->session->document;
    char memory[IDEM_RECONCILE_TEXT_MAX];
    struct idem_buf kept;
    struct idem_line line;
    idem_buf_init(&kept, memory, sizeof(memory));
    if (!line_take(json, element, &kept, &line) ||
        !time_take(json, element, "happened", &line.first_us)) {
        return not_ours(run);
    }
    line.state = IDEM_LINE_SUCCEEDED;
    line.last_us = line.first_us;
    return line_add(run, IDEM_LINE_THERE, &line);
}

/* The record was made where the entry leads to now: what is elsewhere is in no listing of it. */
static bool is_here(const struct idem_json *json, size_t element)
{
    static const char *const names[] = { "account", "region" };
    bool same = true;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(names); i++) {
        char memory[256];
        struct idem_buf kept;
        idem_buf_init(&kept, memory, sizeof(memory));
        struct idem_str of_entry = text_take(json, 0, names[i], &kept);
        same = same && idem_str_equal(of_entry, text_take(json, element, names[i], &kept));
    }
    return same;
}

static enum idem_exit record_take(struct idem_reconcile *run, size_t element)
{
    const struct idem_json *json = &run->session->document;
    char memory[IDEM_RECONCILE_TEXT_MAX];
    struct idem_buf kept;
    struct idem_line line;
    idem_buf_init(&kept, memory, sizeof(memory));
    if (!line_take(json, element, &kept, &line) ||
        !time_take(json, element, "created", &line.first_us) ||
        !time_take(json, element, "finished", &line.last_us)) {
        return not_ours(run);
    }
    line.state = idem_line_state_here(text_take(json, element, "state", &kept));
    line.operation = text_take(json, element, "id", &kept);
    if (line.state == IDEM_LINE_NONE || kept.full) {
        return not_ours(run);
    }
    if (!is_here(json, element)) {
        run->elsewhere += 1;
        return IDEM_EXIT_OK;
    }
    return line_add(run, IDEM_LINE_HERE, &line);
}

/* ---- a statement ---- */

static enum idem_exit piece_take(struct idem_reconcile *run,
                                 struct idem_statement *statement,
                                 struct idem_str piece,
                                 struct idem_error *reterr)
{
    struct idem_line line;
    enum idem_statement_step step;
    do {
        step = piece.data != NULL ? idem_statement_read(statement, &piece, &line, reterr)
                                  : idem_statement_end(statement, &line, reterr);
        enum idem_exit status =
            step == IDEM_STATEMENT_LINE ? line_add(run, IDEM_LINE_THERE, &line) : IDEM_EXIT_OK;
        if (status != IDEM_EXIT_OK) {
            return status;
        }
    } while (step == IDEM_STATEMENT_LINE && piece.data != NULL);
    if (step == IDEM_STATEMENT_WRONG) {
        idem_reconcile_progress_clear(&run->progress);
        (void)fprintf(stderr, "idem reconcile: %s: %s. Nothing was compared.\n", run->options.file,
                      reterr->text);
        return IDEM_EXIT_USAGE;
    }
    idem_reconcile_progress_show(&run->progress, "reading the statement, line",
                                 (int64_t)statement->line_no);
    return IDEM_EXIT_OK;
}

static enum idem_exit file_fault(struct idem_reconcile *run)
{
    idem_reconcile_progress_clear(&run->progress);
    (void)fprintf(stderr, "idem reconcile: %s: %s\n", run->options.file, strerror(errno));
    return IDEM_EXIT_USAGE;
}

static enum idem_exit statement_read(struct idem_reconcile *run, int file)
{
    static struct idem_statement statement;
    static char memory[PIECE_SIZE];
    struct idem_error error;
    idem_statement_init(&statement);
    for (;;) {
        ssize_t size = read(file, memory, sizeof(memory));
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            return file_fault(run);
        }
        const struct idem_str piece = { .data = size > 0 ? memory : NULL, .len = (size_t)size };
        enum idem_exit status = piece_take(run, &statement, piece, &error);
        if (status != IDEM_EXIT_OK || size == 0) {
            return status;
        }
    }
}

static enum idem_exit file_read(struct idem_reconcile *run)
{
    bool is_input = strcmp(run->options.file, "-") == 0;
    int file = is_input ? STDIN_FILENO : open(run->options.file, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return file_fault(run);
    }
    enum idem_exit status = statement_read(run, file);
    if (!is_input) {
        (void)close(file); /* It was only read. */
    }
    return status;
}

/* ---- both ---- */

enum idem_exit idem_reconcile_fetch_there(struct idem_reconcile *run)
{
    if (run->options.file != NULL) {
        run->lists = LISTS_STATEMENT;
        return file_read(run);
    }
    struct pages pages = {
        .path = "/v1/admin/listings",
        .what = "reading the provider's listing, effects",
        .from_us = run->options.from_us,
        .to_us = run->options.to_us,
        .take = listed_take,
        .is_listing = true,
    };
    run->lists = LISTS_ALL;
    return pages_walk(run, &pages);
}

enum idem_exit idem_reconcile_fetch_here(struct idem_reconcile *run)
{
    int64_t from_us = run->options.from_us;
    struct pages pages = {
        .path = "/v1/admin/effects",
        .what = "reading the service's records, effects",
        .from_us = from_us > MARGIN_BEFORE_US ? from_us - MARGIN_BEFORE_US : 0,
        .to_us = run->options.to_us + MARGIN_AFTER_US,
        .take = record_take,
    };
    return pages_walk(run, &pages);
}
