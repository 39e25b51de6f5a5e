/*
 * Widths are counted in bytes; names, ids and amounts are ASCII, and a detail that is not stands in
 * the last column, where it pushes nothing out of line.
 */
#include "cli/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/bug.h"
#include "base/clock.h"
#include "base/date.h"

#define CELL_MAX 512

void idem_table_begin(struct idem_table_view *table, const char *const *names)
{
    table->rows = 0;
    table->columns = 0;
    table->cell = 0;
    idem_buf_init(&table->kept, table->memory, sizeof(table->memory));
    if (names == NULL) {
        return;
    }
    idem_table_row(table);
    for (size_t i = 0; names[i] != NULL; i++) {
        idem_table_add(table, idem_str_from(names[i]));
    }
}

void idem_table_row(struct idem_table_view *table)
{
    IDEM_ASSERT(table->rows < IDEM_TABLE_ROWS); /* A page of the service has far fewer. */
    memset(table->cells[table->rows], 0, sizeof(table->cells[table->rows]));
    table->rows += 1;
    table->cell = 0;
}

void idem_terminal_safe(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool pair = byte == 0xC2 && i + 1 < len && (unsigned char)text[i + 1] < 0xA0;
        if (byte < ' ' || byte == 0x7F || pair) {
            text[i] = '?';
        }
        if (pair) {
            i += 1;
            text[i] = '?';
        }
    }
}

void idem_table_add(struct idem_table_view *table, struct idem_str text)
{
    IDEM_ASSERT(table->rows > 0);
    IDEM_ASSERT(table->cell < IDEM_TABLE_COLUMNS);
    struct idem_buf *kept = &table->kept;
    struct idem_str shown = text.len > 0 ? idem_str_slice(text, 0, CELL_MAX) : IDEM_STR("-");
    size_t from = kept->len;
    idem_buf_add(kept, idem_str_slice(shown, 0, kept->max - kept->len));
    idem_terminal_safe(kept->data + from, kept->len - from);
    table->cells[table->rows - 1][table->cell] =
        idem_str_slice(idem_buf_str(kept), from, kept->len - from);
    table->cell += 1;
    if (table->cell > table->columns) {
        table->columns = table->cell;
    }
}

/* The text of a member; empty if it is absent or null, or if `object` is none. */
static struct idem_str member_text(const struct idem_json *json,
                                   size_t object,
                                   const char *name,
                                   struct idem_buf *buf)
{
    bool is_object = json->tokens[object].kind == IDEM_JSON_OBJECT;
    size_t index = is_object ? idem_json_member(json, object, idem_str_from(name)) : 0;
    if (index == 0 || json->tokens[index].kind == IDEM_JSON_NULL) {
        return IDEM_STR("");
    }
    if (json->tokens[index].kind != IDEM_JSON_STRING) {
        return json->tokens[index].raw;
    }
    idem_json_unescape(json, index, buf);
    return idem_buf_str(buf);
}

void idem_table_add_member(struct idem_table_view *table,
                           const struct idem_json *json,
                           size_t object,
                           const char *name)
{
    char memory[CELL_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_table_add(table, member_text(json, object, name, &buf));
}

static void span_print(int64_t us, struct idem_buf *buf)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
    int64_t seconds = us / IDEM_US_PER_SECOND;
    int shown = 0;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(units) && shown < 2; i++) {
        int64_t count = seconds / units[i].seconds;
        bool last = i == IDEM_ARRAY_COUNT(units) - 1;
        if (count > 0 || (last && shown == 0)) {
            idem_buf_printf(buf, "%s%lld%c", shown > 0 ? " " : "", (long long)count, units[i].unit);
            shown += 1;
        }
        seconds %= units[i].seconds;
    }
}

void idem_table_add_since(struct idem_table_view *table, int64_t at_us)
{
    char memory[CELL_MAX];
    struct idem_buf buf;
    struct idem_clock clock;
    idem_clock_init_system(&clock);
    int64_t past_us = idem_clock_wall_us(&clock) - at_us;
    idem_buf_init(&buf, memory, sizeof(memory));
    if (past_us < 0) {
        idem_buf_add(&buf, IDEM_STR("in "));
    }
    span_print(past_us < 0 ? -past_us : past_us, &buf);
    if (past_us >= 0) {
        idem_buf_add(&buf, IDEM_STR(" ago"));
    }
    idem_table_add(table, idem_buf_str(&buf));
}

void idem_table_add_age(struct idem_table_view *table,
                        const struct idem_json *json,
                        size_t object,
                        const char *name)
{
    char memory[CELL_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    struct idem_str text = member_text(json, object, name, &buf);
    int64_t at_us = 0;
    if (idem_date_parse_rfc3339(text, &at_us)) {
        idem_table_add_since(table, at_us);
    } else {
        idem_table_add(table, text);
    }
}

static size_t column_width(const struct idem_table_view *table, size_t column)
{
    size_t width = 0;
    for (size_t i = 0; i < table->rows; i++) {
        size_t len = table->cells[i][column].len;
        width = len > width ? len : width;
    }
    return width;
}

static bool row_print(const struct idem_table_view *table,
                      size_t row,
                      const size_t widths[IDEM_TABLE_COLUMNS])
{
    for (size_t i = 0; i < table->columns; i++) {
        struct idem_str cell = table->cells[row][i];
        bool last = i == table->columns - 1;
        int width = last ? 0 : (int)widths[i] + 2;
        if (printf("%-*.*s", width, (int)cell.len, cell.len > 0 ? cell.data : "") < 0) {
            return false;
        }
    }
    return putchar('\n') != EOF;
}

enum idem_exit idem_table_print(const struct idem_table_view *table)
{
    size_t widths[IDEM_TABLE_COLUMNS] = { 0 };
    for (size_t i = 0; i < table->columns; i++) {
        widths[i] = column_width(table, i);
    }
    for (size_t i = 0; i < table->rows; i++) {
        if (!row_print(table, i, widths)) {
            return IDEM_EXIT_OTHER;
        }
    }
    return IDEM_EXIT_OK;
}
