/*
 * idem send --pending, --all: what the journal has.
 *
 * Printed part by part, so that a journal of any length needs no more memory than a part; with a
 * line of names above the first one.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/clock.h"
#include "base/date.h"
#include "cli/output.h"
#include "cli/send_internal.h"
#include "cli/table.h"

#define PART_ROWS 80
#define ROW_MAX   800 /* A name, a URL as far as a table shows it, and small words. */
#define JSON_MAX  65536

static_assert(PART_ROWS < IDEM_TABLE_ROWS, "a part and its names fit into a table");
static_assert(PART_ROWS * ROW_MAX < IDEM_TABLE_MEMORY, "their text does too");

/* "none" of an intent means that no run has ended: one is under way, or was cut off. */
static const char *outcome_text(enum idem_client_outcome outcome)
{
    return outcome == IDEM_CLIENT_NO_OUTCOME ? "not-ended" : idem_client_outcome_name(outcome);
}

static void entry_add(struct idem_table_view *table, const struct idem_client_entry *entry)
{
    idem_table_row(table);
    idem_table_add(table, idem_str_from(entry->name));
    idem_table_add(table, idem_str_from(outcome_text(entry->outcome)));
    idem_table_add(table, idem_str_from(idem_client_reason_name(entry->reason)));
    idem_table_add_since(table, entry->created_ms * IDEM_US_PER_MS);
    idem_table_add(table, idem_str_from(entry->method));
    idem_table_add(table, idem_str_from(entry->url));
}

static void member_add(struct idem_buf *buf, const char *name, const char *text)
{
    idem_buf_printf(buf, ",\"%s\":", name);
    idem_send_json_text(buf, idem_str_from(text));
}

static void time_add(struct idem_buf *buf, const char *name, int64_t ms)
{
    idem_buf_printf(buf, ",\"%s\":", name);
    if (ms <= 0) {
        idem_buf_add(buf, IDEM_STR("null"));
        return;
    }
    idem_buf_add_char(buf, '"');
    idem_date_print_rfc3339(ms * IDEM_US_PER_MS, buf);
    idem_buf_add_char(buf, '"');
}

static bool entry_print(const struct idem_client_entry *entry)
{
    static char memory[JSON_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add(&buf, IDEM_STR("{\"name\":"));
    idem_send_json_text(&buf, idem_str_from(entry->name));
    member_add(&buf, "key", entry->key);
    member_add(&buf, "outcome", outcome_text(entry->outcome));
    member_add(&buf, "reason", idem_client_reason_name(entry->reason));
    idem_buf_printf(&buf, ",\"over\":%s", entry->over ? "true" : "false");
    member_add(&buf, "method", entry->method);
    member_add(&buf, "url", entry->url);
    member_add(&buf, "status_url", entry->status_url);
    time_add(&buf, "created", entry->created_ms);
    time_add(&buf, "ended", entry->ended_ms);
    idem_buf_add(&buf, IDEM_STR("}\n"));
    IDEM_ASSERT(!buf.full); /* An entry's texts have limits. */
    return fwrite(buf.data, 1, buf.len, stdout) == buf.len;
}

/* A walk through the journal. */
struct walk {
    struct idem_client *client;
    struct idem_client_entry entry;
    struct idem_table_view table;
    size_t count; /* Entries so far. */
    bool pending;
    bool json;
    bool printed; /* All of them could be. */
};

static void part_print(struct walk *walk)
{
    walk->printed = idem_table_print(&walk->table) == IDEM_EXIT_OK && walk->printed;
    idem_table_begin(&walk->table, NULL);
}

static void entry_take(struct walk *walk)
{
    walk->count += 1;
    if (walk->json) {
        walk->printed = entry_print(&walk->entry) && walk->printed;
        return;
    }
    if (walk->table.rows >= PART_ROWS) {
        part_print(walk);
    }
    entry_add(&walk->table, &walk->entry);
}

static enum idem_exit walk_run(struct walk *walk)
{
    static const char *const names[] = { "INTENT", "OUTCOME", "REASON", "SINCE",
                                         "METHOD", "URL",     NULL };
    struct idem_client_error error;
    enum idem_client_err err;
    int64_t position = 0;
    idem_table_begin(&walk->table, names);
    while ((err = idem_client_next(walk->client, position, walk->pending, &walk->entry, &error)) ==
           IDEM_CLIENT_OK) {
        position = walk->entry.position;
        entry_take(walk);
    }
    if (!walk->json && walk->count > 0) {
        part_print(walk);
    }
    if (err != IDEM_CLIENT_E_UNKNOWN) {
        return idem_send_fault(err, &error);
    }
    if (!walk->printed || fflush(stdout) != 0) {
        idem_send_say("The list could not be written to standard output");
        idem_output_forget();
        return IDEM_EXIT_OTHER;
    }
    return IDEM_EXIT_OK;
}

enum idem_exit idem_send_list(const struct idem_send_options *options, struct idem_client *client)
{
    struct walk *walk = calloc(1, sizeof(*walk));
    if (walk == NULL) {
        idem_send_say("There is no memory for the list");
        return IDEM_EXIT_OTHER;
    }
    walk->client = client;
    walk->pending = options->given[IDEM_SEND_PENDING] != NULL;
    walk->json = options->given[IDEM_SEND_JSON] != NULL;
    walk->printed = true;
    enum idem_exit status = walk_run(walk);
    bool silent = walk->json || options->given[IDEM_SEND_QUIET] != NULL;
    if (status == IDEM_EXIT_OK && walk->count == 0 && !silent) {
        idem_send_say(walk->pending ? "Nothing is pending." : "The journal has no intent.");
    }
    free(walk);
    return status;
}
