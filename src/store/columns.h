/*
 * columns.h - which members of a row are kept, once, for every backend.
 *
 * A backend that walks these tables cannot forget a member in one of its statements. A new member
 * is one line here and one column in the backend's schema.
 */
#ifndef IDEM_STORE_COLUMNS_H
#define IDEM_STORE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum idem_column_kind {
    IDEM_COLUMN_NONE = 0,
    IDEM_COLUMN_I64,
    IDEM_COLUMN_U32, /* Enums too: they have the same size. */
    IDEM_COLUMN_U16,
    IDEM_COLUMN_BOOL,
    IDEM_COLUMN_BYTES_16, /* Ids, tokens, scopes. */
    IDEM_COLUMN_BYTES_32, /* Digests. */
    IDEM_COLUMN_TEXT,     /* struct idem_str. */
    IDEM_COLUMN_KIND_COUNT
};

struct idem_column {
    const char *name;
    size_t offset; /* In the row's struct. */
    enum idem_column_kind kind;
    bool fixed; /* Written by INSERT only. */
    /* U32 that may only be from `first` on and below `limit`; a limit of 0: any number. */
    uint32_t first;
    uint32_t limit;
};

struct idem_table {
    const char *name;
    const struct idem_column *columns; /* Without the handle `row`. */
    size_t column_count;
    size_t row_size;
};

extern const struct idem_table idem_table_intents;     /* struct idem_intent */
extern const struct idem_table idem_table_payments;    /* struct idem_payment */
extern const struct idem_table idem_table_refunds;     /* struct idem_refund */
extern const struct idem_table idem_table_sends;       /* struct idem_send, below an intent */
extern const struct idem_table idem_table_events;      /* struct idem_event, likewise */
extern const struct idem_table idem_table_cases;       /* struct idem_case, likewise */
extern const struct idem_table idem_table_stubs;       /* struct idem_stub */
extern const struct idem_table idem_table_credentials; /* struct idem_credential_row */
extern const struct idem_table idem_table_webhooks;    /* struct idem_webhook */
extern const struct idem_table idem_table_messages;    /* struct idem_message */
extern const struct idem_table idem_table_deliveries;  /* struct idem_delivery */
extern const struct idem_table idem_table_entries;     /* struct idem_entry: of intents, to read */
extern const struct idem_table idem_table_places; /* struct idem_place: of payments, likewise */
/* struct idem_effect_line: likewise, of intents with their payments; its names say which. */
extern const struct idem_table idem_table_effects;

/* Bytes of all text of `row`. */
size_t idem_table_text_size(const struct idem_table *table, const void *row);

/* Copies all text of `row` into `buf` and lets the row point there. */
void idem_table_text_keep(const struct idem_table *table, void *row, struct idem_buf *buf);

/* Puts what a store has found at `at`, the column's place. False: it is no value that we wrote. */
bool idem_column_read_number(const struct idem_column *column, int64_t value, void *at);

#endif /* IDEM_STORE_COLUMNS_H */
