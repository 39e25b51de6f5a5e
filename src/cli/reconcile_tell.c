/*
 * What differs: told to the service, as many at once as it takes, and then printed with what came
 * of it.
 *
 * A difference is counted under its kind when the service has answered. One kind may change then:
 * what had no record in the period and is the same in a record of another time is a match. In a dry
 * run nobody is told anything, and everything is printed as it was found.
 */
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/currency.h"
#include "base/date.h"
#include "base/money.h"
#include "cli/reconcile_internal.h"
#include "cli/table.h"

enum idem_exit idem_reconcile_write(struct idem_reconcile *run, const struct idem_buf *buf)
{
    IDEM_ASSERT(!buf->full);
    idem_reconcile_progress_clear(&run->progress);
    return fwrite(buf->data, 1, buf->len, stdout) == buf->len ? IDEM_EXIT_OK : IDEM_EXIT_OTHER;
}

/* ---- the request ---- */

#define TOLD_MAX 128 /* The service takes no longer text of an effect. */

/* What the service would not take is left out: it says more about an effect, not which it is. */
static void member_add(struct idem_buf *body, const char *name, struct idem_str text)
{
    if (text.len > 0 && text.len <= TOLD_MAX && idem_str_is_visible(text)) {
        idem_buf_printf(body, ",\"%s\":", name);
        idem_json_add_string(body, text);
    }
}

/* What the provider's side says, or of what it does not have, our own money. */
static void effect_add(struct idem_buf *body, const struct idem_merge_pair *pair)
{
    const struct idem_line *line = pair->has_there ? &pair->there : &pair->here;
    int exponent = idem_currency_exponent(line->currency);
    idem_buf_printf(body, "{\"found\":\"%s\"", idem_merge_word_name(pair->word));
    member_add(body, "id", line->effect_id);
    if (exponent >= 0 && line->amount_minor >= 0) {
        char memory[IDEM_AMOUNT_TEXT_MAX + 1];
        struct idem_buf amount;
        idem_buf_init(&amount, memory, sizeof(memory));
        idem_amount_print(line->amount_minor, exponent, &amount);
        member_add(body, "amount", idem_buf_str(&amount));
        member_add(body, "currency", line->currency);
    }
    if (pair->has_there) {
        char memory[IDEM_RECONCILE_WORDS_MAX];
        struct idem_buf date;
        idem_buf_init(&date, memory, sizeof(memory));
        if (line->last_us != 0) {
            idem_date_print_rfc3339(line->last_us, &date);
        }
        member_add(body, "order_no", line->order_no);
        member_add(body, "payment_id", line->payment_id);
        member_add(body, "reference", line->reference);
        member_add(body, "happened", idem_buf_str(&date));
    }
    idem_buf_add_char(body, '}');
}

static void body_make(struct idem_reconcile *run)
{
    struct idem_buf *body = &run->body;
    idem_buf_init(body, run->body_memory, sizeof(run->body_memory));
    idem_buf_add(body, IDEM_STR("{\"provider\":"));
    idem_json_add_string(body, idem_str_from(run->options.provider));
    idem_buf_add(body, IDEM_STR(",\"effects\":["));
    for (size_t i = 0; i < run->told_count; i++) {
        idem_buf_add(body, i > 0 ? IDEM_STR(",") : IDEM_STR(""));
        effect_add(body, &run->told[i].pair);
    }
    idem_buf_add(body, IDEM_STR("]}"));
    IDEM_ASSERT(!body->full);
}

/* ---- the answer ---- */

static struct idem_str answer_text(const struct idem_json *json, size_t object, const char *name)
{
    size_t index = idem_json_member(json, object, idem_str_from(name));
    bool plain =
        index != 0 && json->tokens[index].kind == IDEM_JSON_STRING && !json->tokens[index].escaped;
    struct idem_str text = plain ? json->tokens[index].raw : IDEM_STR("");
    return text.len <= IDEM_LINE_ID_MAX && idem_str_is_visible(text) ? text : IDEM_STR("");
}

static struct idem_str id_of(const struct idem_merge_pair *pair)
{
    return pair->has_there ? pair->there.effect_id : pair->here.effect_id;
}

static enum idem_exit count(struct idem_reconcile *run, const struct idem_merge_pair *pair)
{
    struct idem_error error;
    return idem_summary_add(&run->book, pair, &error) == IDEM_OK
               ? IDEM_EXIT_OK
               : idem_reconcile_fault(run, &error);
}

static enum idem_exit pair_print(struct idem_reconcile *run,
                                 const struct idem_merge_pair *pair,
                                 const struct idem_summary_end *end)
{
    char memory[IDEM_SUMMARY_PRINT_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_summary_print_pair(run->options.format, pair, end, &buf);
    return idem_reconcile_write(run, &buf);
}

/* Counts it as what it turned out to be, and prints it if it differs. */
static enum idem_exit told_end(struct idem_reconcile *run,
                               struct idem_merge_pair *pair,
                               const struct idem_summary_end *end)
{
    bool settled = idem_str_equal(end->result, IDEM_STR("settled"));
    if (pair->kind == IDEM_MERGE_MISSING_HERE && idem_str_equal(end->result, IDEM_STR("known"))) {
        pair->kind = IDEM_MERGE_MATCHED;
        return count(run, pair);
    }
    bool decided = idem_str_equal(end->result, IDEM_STR("decided"));
    run->settled += settled ? 1 : 0;
    run->book.left += settled || decided ? 0 : 1;
    enum idem_exit status = count(run, pair);
    return status == IDEM_EXIT_OK ? pair_print(run, pair, end) : status;
}

static enum idem_exit answer_take(struct idem_reconcile *run)
{
    const struct idem_json *json = &run->session->document;
    size_t list = idem_json_member(json, 0, IDEM_STR("effects"));
    bool fits = list != 0 && json->tokens[list].kind == IDEM_JSON_ARRAY &&
                json->tokens[list].count == run->told_count;
    size_t element = list + 1;
    for (size_t i = 0; i < run->told_count; i++) {
        struct idem_merge_pair *pair = &run->told[i].pair;
        fits = fits && json->tokens[element].kind == IDEM_JSON_OBJECT &&
               idem_str_equal(answer_text(json, element, "effect_id"), id_of(pair));
        if (!fits) {
            const struct idem_error error = { .text = "the answer is not about what was told" };
            return idem_reconcile_fault(run, &error);
        }
        const struct idem_summary_end end = {
            .result = answer_text(json, element, "result"),
            .case_kind = answer_text(json, element, "case"),
            .operation = answer_text(json, element, "id"),
        };
        enum idem_exit status = told_end(run, pair, &end);
        if (status != IDEM_EXIT_OK) {
            return status;
        }
        element = json->tokens[element].next;
    }
    return IDEM_EXIT_OK;
}

/* ---- all ---- */

static enum idem_exit dry_take(struct idem_reconcile *run)
{
    const struct idem_summary_end end = { .result = IDEM_STR("dry-run") };
    enum idem_exit status = IDEM_EXIT_OK;
    for (size_t i = 0; i < run->told_count && status == IDEM_EXIT_OK; i++) {
        status = told_end(run, &run->told[i].pair, &end);
    }
    return status;
}

enum idem_exit idem_reconcile_tell_rest(struct idem_reconcile *run)
{
    enum idem_exit status = IDEM_EXIT_OK;
    if (run->told_count == 0) {
        return status;
    }
    if (run->options.dry_run) {
        status = dry_take(run);
    } else {
        body_make(run);
        idem_reconcile_progress_clear(&run->progress);
        status =
            idem_session_ask(run->session, "POST", "/v1/admin/evidence", idem_buf_str(&run->body));
        status = status == IDEM_EXIT_OK ? answer_take(run) : status;
    }
    run->told_count = 0;
    return status;
}

static struct idem_line line_keep(const struct idem_line *line, struct idem_buf *kept)
{
    struct idem_line copy = *line;
    copy.effect_id = idem_buf_keep(kept, line->effect_id);
    copy.currency = idem_buf_keep(kept, line->currency);
    copy.order_no = idem_buf_keep(kept, line->order_no);
    copy.payment_id = idem_buf_keep(kept, line->payment_id);
    copy.reference = idem_buf_keep(kept, line->reference);
    copy.operation = idem_buf_keep(kept, line->operation);
    return copy;
}

enum idem_exit idem_reconcile_tell(struct idem_reconcile *run, const struct idem_merge_pair *pair)
{
    if (pair->word == IDEM_MERGE_SAY_NOTHING) {
        return count(run, pair);
    }
    struct idem_reconcile_told *told = &run->told[run->told_count];
    struct idem_buf kept;
    idem_buf_init(&kept, told->memory, sizeof(told->memory));
    told->pair = *pair;
    told->pair.here = line_keep(&pair->here, &kept);
    told->pair.there = line_keep(&pair->there, &kept);
    IDEM_ASSERT(!kept.full);
    run->told_count += 1;
    return run->told_count == IDEM_RECONCILE_TOLD_MAX ? idem_reconcile_tell_rest(run)
                                                      : IDEM_EXIT_OK;
}

enum idem_exit idem_reconcile_print_totals(struct idem_reconcile *run)
{
    char memory[IDEM_SUMMARY_PRINT_MAX];
    struct idem_buf buf;
    struct idem_summary_row row;
    size_t position = 0;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_summary_print_middle(run->options.format, &buf);
    enum idem_exit status = idem_reconcile_write(run, &buf);
    while (status == IDEM_EXIT_OK && idem_summary_next(&run->book, &position, &row)) {
        idem_buf_reset(&buf);
        idem_summary_print_row(run->options.format, &row, &buf);
        status = idem_reconcile_write(run, &buf);
    }
    return status;
}
