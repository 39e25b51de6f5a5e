/*
 * A difference and a row of totals have the same columns, so that one CSV holds both and a
 * spreadsheet adds up what it shows: a difference counts one on each side that has it.
 *
 * A table's columns are as wide as what usually stands in them; what is longer pushes its line, and
 * nothing is cut. Text is what the reader of statements and the service let through: visible ASCII.
 * In CSV a text that a spreadsheet would take for a formula gets an apostrophe before it.
 */
#include "base/bug.h"
#include "base/date.h"
#include "base/json.h"
#include "base/money.h"
#include "reconcile/summary.h"

#define AMOUNT_MAX 40
#define DATE_MAX   40

/* What one record of the output has; text is borrowed. */
struct record {
    bool is_total;
    enum idem_merge_kind kind;
    enum idem_effect_kind effect;
    struct idem_str currencies[IDEM_LINE_SIDE_COUNT];
    struct idem_summary_cell cell;
    struct idem_str effect_id;
    struct idem_str operation;
    struct idem_str order_no;
    struct idem_str reference;
    enum idem_line_state states[IDEM_LINE_SIDE_COUNT];
    int64_t happened_us; /* 0: not said. */
    struct idem_summary_end end;
};

static const char *effect_name(enum idem_effect_kind effect)
{
    return effect == IDEM_EFFECT_KIND_NONE ? "" : idem_effect_kind_name(effect);
}

/* In its currency's decimals; empty where the currency is not said. */
static struct idem_str sum_text(const struct record *record,
                                enum idem_line_side side,
                                struct idem_buf *buf)
{
    int exponent = idem_currency_exponent(record->currencies[side]);
    if (exponent < 0 || record->cell.counts[side] == 0) {
        return IDEM_STR("");
    }
    size_t from = buf->len;
    idem_amount_print(record->cell.sums[side], exponent, buf);
    return idem_str_slice(idem_buf_str(buf), from, buf->len - from);
}

/* ---- CSV ---- */

static void csv_text(struct idem_buf *buf, struct idem_str text)
{
    static const char formulas[] = "=+-@";
    bool formula =
        text.len > 0 && idem_str_find(IDEM_STR(formulas), text.data[0]) < sizeof(formulas) - 1;
    bool quoted = idem_str_find(text, '"') < text.len || idem_str_find(text, ',') < text.len;
    idem_buf_add_char(buf, ',');
    idem_buf_add(buf, quoted ? IDEM_STR("\"") : IDEM_STR(""));
    idem_buf_add(buf, formula ? IDEM_STR("'") : IDEM_STR(""));
    for (size_t i = 0; i < text.len; i++) {
        idem_buf_add(buf, text.data[i] == '"' ? IDEM_STR("\"") : IDEM_STR(""));
        idem_buf_add_char(buf, text.data[i]);
    }
    idem_buf_add(buf, quoted ? IDEM_STR("\"") : IDEM_STR(""));
}

static void csv_name(struct idem_buf *buf, const char *name)
{
    csv_text(buf, idem_str_from(name));
}

static void csv_side(const struct record *record, enum idem_line_side side, struct idem_buf *buf)
{
    char memory[AMOUNT_MAX];
    struct idem_buf sum;
    idem_buf_init(&sum, memory, sizeof(memory));
    idem_buf_add_char(buf, ',');
    idem_buf_add_i64(buf, record->cell.counts[side]);
    csv_text(buf, sum_text(record, side, &sum));
    csv_text(buf, record->currencies[side]);
}

static void csv_print(const struct record *record, struct idem_buf *buf)
{
    char memory[DATE_MAX];
    struct idem_buf date;
    idem_buf_init(&date, memory, sizeof(memory));
    if (record->happened_us != 0) {
        idem_date_print_rfc3339(record->happened_us, &date);
    }
    idem_buf_add(buf, record->is_total ? IDEM_STR("total") : IDEM_STR("difference"));
    csv_name(buf, idem_merge_kind_name(record->kind));
    csv_name(buf, effect_name(record->effect));
    csv_side(record, IDEM_LINE_HERE, buf);
    csv_side(record, IDEM_LINE_THERE, buf);
    csv_text(buf, record->effect_id);
    csv_text(buf, record->operation);
    csv_text(buf, record->order_no);
    csv_text(buf, record->reference);
    csv_name(buf, idem_line_state_name(record->states[IDEM_LINE_HERE]));
    csv_name(buf, idem_line_state_name(record->states[IDEM_LINE_THERE]));
    csv_text(buf, idem_buf_str(&date));
    csv_text(buf, record->end.result);
    csv_text(buf, record->end.case_kind);
    idem_buf_add(buf, IDEM_STR("\r\n"));
}

/* ---- JSON ---- */

static void json_member(struct idem_buf *buf, const char *name, struct idem_str text)
{
    idem_buf_printf(buf, ",\"%s\":", name);
    if (text.len == 0) {
        idem_buf_add(buf, IDEM_STR("null"));
        return;
    }
    idem_json_add_string(buf, text);
}

static void json_side(const struct record *record,
                      enum idem_line_side side,
                      const char *name,
                      struct idem_buf *buf)
{
    char memory[AMOUNT_MAX];
    struct idem_buf sum;
    idem_buf_init(&sum, memory, sizeof(memory));
    idem_buf_printf(buf, ",\"%s\":{\"count\":%lld", name, (long long)record->cell.counts[side]);
    json_member(buf, record->is_total ? "sum" : "amount", sum_text(record, side, &sum));
    json_member(buf, "currency", record->currencies[side]);
    if (!record->is_total) {
        json_member(buf, "state", idem_str_from(idem_line_state_name(record->states[side])));
    }
    idem_buf_add_char(buf, '}');
}

static void json_print(const struct record *record, struct idem_buf *buf)
{
    idem_buf_printf(buf, "{\"record\":\"%s\",\"kind\":\"%s\"",
                    record->is_total ? "total" : "difference", idem_merge_kind_name(record->kind));
    json_member(buf, "effect", idem_str_from(effect_name(record->effect)));
    json_side(record, IDEM_LINE_HERE, "here", buf);
    json_side(record, IDEM_LINE_THERE, "there", buf);
    if (!record->is_total) {
        char memory[DATE_MAX];
        struct idem_buf date;
        idem_buf_init(&date, memory, sizeof(memory));
        if (record->happened_us != 0) {
            idem_date_print_rfc3339(record->happened_us, &date);
        }
        json_member(buf, "effect_id", record->effect_id);
        json_member(buf, "operation", record->operation);
        json_member(buf, "order_no", record->order_no);
        json_member(buf, "reference", record->reference);
        json_member(buf, "happened", idem_buf_str(&date));
        json_member(buf, "result", record->end.result);
        json_member(buf, "case", record->end.case_kind);
    }
    idem_buf_add(buf, IDEM_STR("}\n"));
}

/* ---- table ---- */

static void cell_add(struct idem_buf *buf, struct idem_str text, int width)
{
    struct idem_str shown = text.len > 0 ? text : IDEM_STR("-");
    idem_buf_printf(buf, "%*.*s  ", width, (int)shown.len, shown.data);
}

static void money_add(struct idem_buf *buf, const struct record *record, enum idem_line_side side)
{
    char memory[AMOUNT_MAX];
    struct idem_buf sum;
    idem_buf_init(&sum, memory, sizeof(memory));
    struct idem_str text = sum_text(record, side, &sum);
    if (record->is_total) {
        idem_buf_printf(buf, "%10lld  ", (long long)record->cell.counts[side]);
    }
    cell_add(buf, text, record->is_total ? 20 : 14);
    cell_add(buf, text.len > 0 ? record->currencies[side] : IDEM_STR(""), -3);
}

static void table_total(const struct record *record, struct idem_buf *buf)
{
    cell_add(buf, idem_str_from(idem_merge_kind_name(record->kind)), -14);
    cell_add(buf, idem_str_from(effect_name(record->effect)), -9);
    money_add(buf, record, IDEM_LINE_HERE);
    money_add(buf, record, IDEM_LINE_THERE);
}

static void table_difference(const struct record *record, struct idem_buf *buf)
{
    cell_add(buf, idem_str_from(idem_merge_kind_name(record->kind)), -14);
    cell_add(buf, record->effect_id, -27);
    cell_add(buf, record->order_no, -16);
    money_add(buf, record, IDEM_LINE_HERE);
    cell_add(buf, idem_str_from(idem_line_state_name(record->states[IDEM_LINE_HERE])), -9);
    money_add(buf, record, IDEM_LINE_THERE);
    cell_add(buf, idem_str_from(idem_line_state_name(record->states[IDEM_LINE_THERE])), -9);
    cell_add(buf, record->end.result, -9);
    cell_add(buf, record->end.case_kind, -13);
    cell_add(buf, record->operation, -36);
}

/* Without the spaces at its end. */
static void table_print(const struct record *record, struct idem_buf *buf)
{
    if (record->is_total) {
        table_total(record, buf);
    } else {
        table_difference(record, buf);
    }
    while (buf->len > 0 && buf->data[buf->len - 1] == ' ') {
        buf->len -= 1;
    }
    idem_buf_add_char(buf, '\n');
}

/* ---- all ---- */

static void record_print(enum idem_summary_format format,
                         const struct record *record,
                         struct idem_buf *buf)
{
    switch (format) {
    case IDEM_SUMMARY_TABLE:
        table_print(record, buf);
        return;
    case IDEM_SUMMARY_CSV:
        csv_print(record, buf);
        return;
    case IDEM_SUMMARY_JSON:
        json_print(record, buf);
        return;
    case IDEM_SUMMARY_FORMAT_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

void idem_summary_print_head(enum idem_summary_format format, struct idem_buf *buf)
{
    if (format == IDEM_SUMMARY_CSV) {
        idem_buf_add(buf, IDEM_STR("record,kind,effect,count_here,sum_here,currency_here,"
                                   "count_there,sum_there,currency_there,effect_id,operation,"
                                   "order_no,reference,state_here,state_there,happened,result,"
                                   "case\r\n"));
    }
    if (format == IDEM_SUMMARY_TABLE) {
        idem_buf_printf(buf,
                        "%-14s  %-27s  %-16s  %14s  %-3s  %-9s  %14s  %-3s  %-9s  %-9s  "
                        "%-13s  %s\n",
                        "DIFFERENCE", "EFFECT", "ORDER", "HERE", "", "STATE", "THERE", "", "STATE",
                        "RESULT", "CASE", "OPERATION");
    }
}

void idem_summary_print_middle(enum idem_summary_format format, struct idem_buf *buf)
{
    if (format == IDEM_SUMMARY_TABLE) {
        idem_buf_printf(buf, "\n%-14s  %-9s  %10s  %20s  %-3s  %10s  %20s\n", "TOTAL", "EFFECT",
                        "HERE", "SUM", "", "THERE", "SUM");
    }
}

static int64_t count_of(bool has)
{
    return has ? 1 : 0;
}

static int64_t amount_of(bool has, const struct idem_line *line)
{
    return has && line->amount_minor > 0 ? line->amount_minor : 0;
}

void idem_summary_print_pair(enum idem_summary_format format,
                             const struct idem_merge_pair *pair,
                             const struct idem_summary_end *end,
                             struct idem_buf *buf)
{
    const struct idem_line *here = &pair->here;
    const struct idem_line *there = &pair->there;
    const struct record record = {
        .kind = pair->kind,
        .effect = idem_merge_effect(pair),
        .currencies = { here->currency, there->currency },
        .cell = {
            .counts = { count_of(pair->has_here), count_of(pair->has_there) },
            .sums = { amount_of(pair->has_here, here), amount_of(pair->has_there, there) },
        },
        .effect_id = pair->has_here ? here->effect_id : there->effect_id,
        .operation = end->operation.len > 0 ? end->operation : here->operation,
        .order_no = here->order_no.len > 0 ? here->order_no : there->order_no,
        .reference = there->reference.len > 0 ? there->reference : here->reference,
        .states = { here->state, there->state },
        .happened_us = pair->has_there ? there->last_us : here->last_us,
        .end = *end,
    };
    record_print(format, &record, buf);
}

void idem_summary_print_row(enum idem_summary_format format,
                            const struct idem_summary_row *row,
                            struct idem_buf *buf)
{
    const struct record record = {
        .is_total = true,
        .kind = row->kind,
        .effect = row->effect,
        .currencies = { row->currency, row->currency },
        .cell = row->cell,
    };
    record_print(format, &record, buf);
}
