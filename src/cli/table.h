/*
 * table.h - lines and columns for a person, out of JSON.
 *
 * Text is kept in the table's own memory; what does not fit is cut, and a control character becomes
 * '?': a provider's words must not move the cursor.
 */
#ifndef IDEM_CLI_TABLE_H
#define IDEM_CLI_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/exit.h"
#include "base/json.h"
#include "base/text.h"

#define IDEM_TABLE_COLUMNS 12
#define IDEM_TABLE_ROWS    128
#define IDEM_TABLE_MEMORY  65536

struct idem_table_view {
    struct idem_str cells[IDEM_TABLE_ROWS][IDEM_TABLE_COLUMNS];
    size_t rows;
    size_t columns;
    size_t cell; /* Of the last row; the next one to fill. */
    struct idem_buf kept;
    char memory[IDEM_TABLE_MEMORY];
};

/* Begins with a line of names, which NULL ends; NULL instead of names: no such line. */
void idem_table_begin(struct idem_table_view *table, const char *const *names);

/* Begins a line; at most IDEM_TABLE_ROWS. */
void idem_table_row(struct idem_table_view *table);

/* Adds one cell; empty text is shown as "-". */
void idem_table_add(struct idem_table_view *table, struct idem_str text);

/*
 * The member `name` of the object at `object`: a string without escapes, anything else as it is.
 * Where there is no such member, or no object, the cell is empty.
 */
void idem_table_add_member(struct idem_table_view *table,
                           const struct idem_json *json,
                           size_t object,
                           const char *name);

/* A member that is a time: how long ago, or from now on: "3d 4h ago", "in 12s". */
void idem_table_add_age(struct idem_table_view *table,
                        const struct idem_json *json,
                        size_t object,
                        const char *name);

/* The time since `at_us`, microseconds since 1970, in the same words. */
void idem_table_add_since(struct idem_table_view *table, int64_t at_us);

/* Replaces control characters (C0, DEL, and C1 as UTF-8) by '?', in place. */
void idem_terminal_safe(char *text, size_t len);

/* Prints all of it, columns in line. */
enum idem_exit idem_table_print(const struct idem_table_view *table);

#endif /* IDEM_CLI_TABLE_H */
