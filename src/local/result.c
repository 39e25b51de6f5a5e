/*
 * A record and all its texts are one piece of memory: sizes first, then copies, each with a
 * terminator behind it.
 */
#include "local/result.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/clock.h"

/* The list is the caller's and constant; it is filled in here. */
struct list {
    struct idem_local_list shown; /* First. */
    struct idem_local_record *records[];
};

static_assert(IDEM_UID_TEXT_LEN + 1 + IDEM_LOCAL_EFFECT_MAX < IDEM_LOCAL_EFFECT_ID_SIZE,
              "the longest effect id has room");

void idem_local_effect_id_print(const struct idem_local_row *row, struct idem_buf *buf)
{
    if (!row->sent) {
        return;
    }
    idem_uid_print(row->id, buf);
    if (row->effect.len > 0) {
        idem_buf_add_char(buf, ':');
        idem_buf_add(buf, row->effect);
    }
}

/* The copy of a text, terminated. There is room: memory_size() counted it. */
static const char *keep(struct idem_buf *memory, struct idem_str text)
{
    const char *copy = memory->data + memory->len;
    idem_buf_add(memory, text);
    idem_buf_add_char(memory, '\0');
    IDEM_ASSERT(!memory->full);
    return copy;
}

static size_t memory_size(const struct idem_local_row *row, struct idem_str effect_id)
{
    const struct idem_str texts[] = {
        row->scope.principal,
        row->scope.endpoint,
        row->scope.key,
        row->fingerprint,
        row->effect,
        effect_id,
        row->step,
        row->step_data,
        row->headers,
        row->body,
        row->by,
        row->reason,
        row->contradiction_by,
        row->contradiction_reason,
    };
    size_t size = 0;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        size += texts[i].len + 1;
    }
    return size;
}

static int64_t ms(int64_t time_us)
{
    return time_us / IDEM_US_PER_MS;
}

static void texts_keep(struct idem_local_record *record,
                       const struct idem_local_row *row,
                       struct idem_str effect_id,
                       struct idem_buf *memory)
{
    record->principal = keep(memory, row->scope.principal);
    record->endpoint = keep(memory, row->scope.endpoint);
    record->key = keep(memory, row->scope.key);
    record->fingerprint = keep(memory, row->fingerprint);
    record->effect = keep(memory, row->effect);
    record->effect_id = keep(memory, effect_id);
    record->step = keep(memory, row->step);
    record->step_data = keep(memory, row->step_data);
    record->headers = keep(memory, row->headers);
    record->body = keep(memory, row->body);
    record->evidence_by = keep(memory, row->by);
    record->evidence_reason = keep(memory, row->reason);
    record->contradiction_by = keep(memory, row->contradiction_by);
    record->contradiction_reason = keep(memory, row->contradiction_reason);
}

struct idem_local_record *idem_local_record_make(const struct idem_local_row *row)
{
    char effect_id_memory[IDEM_LOCAL_EFFECT_ID_SIZE];
    struct idem_buf effect_id;
    idem_buf_init(&effect_id, effect_id_memory, sizeof(effect_id_memory));
    idem_local_effect_id_print(row, &effect_id);

    const size_t size = memory_size(row, idem_buf_str(&effect_id));
    struct idem_local_record *record = malloc(sizeof(*record) + size);
    if (record == NULL) {
        return NULL;
    }
    *record = (struct idem_local_record){
        .outcome = row->outcome,
        .retry_after_ms = ms(row->retry_after_us),
        .fingerprint_size = row->fingerprint.len,
        .state = row->state,
        .local_only = row->local_only,
        .version = row->version,
        .epoch = row->epoch,
        .lease_end_ms = ms(row->lease_end_us),
        .step_data_size = row->step_data.len,
        .verdict = row->verdict,
        .status = (int)row->status,
        .body_size = row->body.len,
        .created_ms = ms(row->created_us),
        .updated_ms = ms(row->updated_us),
        .finished_ms = ms(row->finished_us),
        .expires_ms = ms(row->expires_us),
        .contradiction = row->contradiction,
        .contradiction_ms = ms(row->contradiction_us),
        .since_ms = ms(row->since_us),
    };
    static_assert(sizeof(record->token.bytes) == sizeof(row->token.bytes), "the whole of it");
    memcpy(record->token.bytes, row->token.bytes, sizeof(record->token.bytes));
    if (!idem_uid_is_zero(row->id)) {
        struct idem_buf id;
        idem_buf_init(&id, record->id, IDEM_UID_TEXT_LEN);
        idem_uid_print(row->id, &id);
    }
    struct idem_buf memory;
    idem_buf_init(&memory, (char *)(record + 1), size);
    texts_keep(record, row, idem_buf_str(&effect_id), &memory);
    return record;
}

void idem_local_record_free(struct idem_local_record *record)
{
    free(record);
}

struct idem_local_list *idem_local_list_make(int limit)
{
    struct list *list = calloc(1, sizeof(*list) + (size_t)limit * sizeof(void *));
    if (list == NULL) {
        return NULL;
    }
    list->shown.records = list->records;
    return &list->shown;
}

void idem_local_list_add(struct idem_local_list *list, struct idem_local_record *record)
{
    struct list *own = IDEM_CONTAINER_OF(list, struct list, shown);
    own->records[list->count] = record;
    list->count++;
}

void idem_local_list_free(struct idem_local_list *list)
{
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        free(list->records[i]);
    }
    free(list);
}
