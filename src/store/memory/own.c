/*
 * Rows that are nobody's: stubs, credentials and the store's own values. There are few, so they are
 * found by walking.
 */
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "store/memory/memory_internal.h"

static bool stub_is_asked_for(const struct idem_stub *stub,
                              enum idem_find find,
                              const struct idem_rows_key *key)
{
    if (find == IDEM_FIND_BY_SCOPE) {
        return memcmp(&stub->scope, &key->scope, sizeof(key->scope)) == 0;
    }
    IDEM_ASSERT(find == IDEM_FIND_HOLDER);
    return idem_effect_kind_makes_payment(stub->kind) &&
           idem_str_equal(stub->order_no, key->number) &&
           memcmp(&stub->scope, &key->scope, sizeof(key->scope)) != 0;
}

enum idem_rows_step idem_memory_find_stub(struct idem_rows *rows,
                                          enum idem_find find,
                                          const struct idem_rows_key *key,
                                          struct idem_stub *ret_stub)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    for (int64_t handle = 1; (size_t)handle <= memory->stubs.count; handle++) {
        const struct idem_memory_stub *found = idem_memory_row(&memory->stubs, handle);
        if (found != NULL && stub_is_asked_for(&found->stub, find, key)) {
            *ret_stub = found->stub;
            idem_table_text_keep(&idem_table_stubs, ret_stub, rows->kept);
            break;
        }
    }
    return IDEM_ROWS_OK;
}

/* Sorted by the time when it happened, then by row; what falls off the end is told as `full`. */
static void payment_stub_insert(struct idem_facts *facts, const struct idem_stub *stub)
{
    struct idem_stub *rows = facts->payment_stubs;
    size_t at = facts->payment_stub_count;
    while (at > 0 && rows[at - 1].happened_us > stub->happened_us) {
        at -= 1;
    }
    if (facts->payment_stub_count == IDEM_PAYMENT_STUBS_MAX) {
        facts->payment_stubs_full = true;
    } else {
        facts->payment_stub_count += 1;
    }
    for (size_t i = facts->payment_stub_count - 1; i > at; i--) {
        rows[i] = rows[i - 1];
    }
    if (at < IDEM_PAYMENT_STUBS_MAX) {
        rows[at] = *stub;
    }
}

enum idem_rows_step idem_memory_find_payment_stubs(struct idem_rows *rows,
                                                   struct idem_str payment_effect_id,
                                                   struct idem_facts *facts)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    for (int64_t handle = 1; (size_t)handle <= memory->stubs.count; handle++) {
        const struct idem_memory_stub *found = idem_memory_row(&memory->stubs, handle);
        if (found != NULL && idem_str_equal(found->stub.payment_effect_id, payment_effect_id)) {
            payment_stub_insert(facts, &found->stub);
        }
    }
    for (size_t i = 0; i < facts->payment_stub_count; i++) {
        idem_table_text_keep(&idem_table_stubs, &facts->payment_stubs[i], rows->kept);
    }
    return IDEM_ROWS_OK;
}

static enum idem_rows_step stub_insert(struct idem_rows *rows, struct idem_stub *stub)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    for (int64_t handle = 1; (size_t)handle <= memory->stubs.count; handle++) {
        const struct idem_memory_stub *found = idem_memory_row(&memory->stubs, handle);
        if (found != NULL && memcmp(&found->stub.scope, &stub->scope, sizeof(stub->scope)) == 0) {
            return IDEM_ROWS_MISS;
        }
    }
    struct idem_memory_stub row = { .stub = *stub };
    row.stub.row = (int64_t)memory->stubs.count + 1;
    row.head.text = idem_memory_text(&idem_table_stubs, &row.stub);
    stub->row = idem_memory_add(&memory->log, &memory->stubs, &row);
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_write_stub(struct idem_rows *rows, struct idem_stub_write *write)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return stub_insert(rows, &write->row);
    }
    const struct idem_memory_stub *found = idem_memory_row(&memory->stubs, write->row.row);
    if (found == NULL ||
        memcmp(&found->stub.scope, &write->row.scope, sizeof(write->row.scope)) != 0) {
        return IDEM_ROWS_MISS;
    }
    if (write->write == IDEM_WRITE_DELETE) {
        idem_memory_remove(&memory->log, &memory->stubs, write->row.row);
        return IDEM_ROWS_OK;
    }
    struct idem_memory_stub *row =
        idem_memory_change(&memory->log, &memory->stubs, write->row.row, NULL);
    row->stub.applied = write->row.applied;
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_apply_stubs(struct idem_rows *rows,
                                            struct idem_str payment_effect_id)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    for (int64_t handle = 1; (size_t)handle <= memory->stubs.count; handle++) {
        const struct idem_memory_stub *found = idem_memory_row(&memory->stubs, handle);
        if (found != NULL && idem_str_equal(found->stub.payment_effect_id, payment_effect_id)) {
            struct idem_memory_stub *row =
                idem_memory_change(&memory->log, &memory->stubs, handle, NULL);
            row->stub.applied = true;
        }
    }
    return IDEM_ROWS_OK;
}

static const struct idem_memory_credential *credential_look(const struct idem_memory_rows *memory,
                                                            const struct idem_uid *id,
                                                            const struct idem_digest *secret)
{
    for (int64_t handle = 1; (size_t)handle <= memory->credentials.count; handle++) {
        const struct idem_memory_credential *found = idem_memory_row(&memory->credentials, handle);
        if ((id != NULL && idem_uid_equal(found->credential.id, *id)) ||
            (secret != NULL && idem_digest_equal(found->credential.secret_sha256, *secret))) {
            return found;
        }
    }
    return NULL;
}

enum idem_rows_step idem_memory_find_credential(struct idem_rows *rows,
                                                enum idem_find find,
                                                const struct idem_rows_key *key,
                                                struct idem_credential_row *ret_credential)
{
    IDEM_ASSERT(find == IDEM_FIND_BY_ANY_ID || find == IDEM_FIND_BY_SECRET);
    bool by_id = find == IDEM_FIND_BY_ANY_ID;
    const struct idem_memory_credential *found =
        credential_look(idem_memory_of(rows), by_id ? &key->id : NULL, by_id ? NULL : &key->secret);
    if (found != NULL) {
        *ret_credential = found->credential;
        idem_table_text_keep(&idem_table_credentials, ret_credential, rows->kept);
    }
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_write_credential(struct idem_rows *rows,
                                                 struct idem_credential_write *write)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    struct idem_credential_row changed = write->row;
    if (write->write == IDEM_WRITE_INSERT) {
        if (credential_look(memory, &changed.id, &changed.secret_sha256) != NULL) {
            return IDEM_ROWS_MISS;
        }
        struct idem_memory_credential row = { .credential = changed };
        row.credential.row = (int64_t)memory->credentials.count + 1;
        row.head.text = idem_memory_text(&idem_table_credentials, &row.credential);
        write->row.row = idem_memory_add(&memory->log, &memory->credentials, &row);
        return IDEM_ROWS_OK;
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    const struct idem_memory_credential *former =
        idem_memory_row(&memory->credentials, changed.row);
    if (former == NULL || former->credential.revoked_us != 0) {
        return IDEM_ROWS_MISS;
    }
    struct idem_credential_row revoked = former->credential;
    revoked.revoked_us = changed.revoked_us;
    revoked.revoked_by = changed.revoked_by;
    char *text = idem_memory_text(&idem_table_credentials, &revoked);
    struct idem_memory_credential *row =
        idem_memory_change(&memory->log, &memory->credentials, changed.row, text);
    row->credential = revoked;
    return IDEM_ROWS_OK;
}

static int64_t meta_look(const struct idem_memory_rows *memory, const char *name)
{
    for (int64_t handle = 1; (size_t)handle <= memory->meta.count; handle++) {
        const struct idem_memory_meta *found = idem_memory_row(&memory->meta, handle);
        if (strcmp(found->name, name) == 0) {
            return handle;
        }
    }
    return 0;
}

enum idem_rows_step idem_memory_find_meta(struct idem_rows *rows,
                                          const char *name,
                                          struct idem_str *ret_value)
{
    const struct idem_memory_rows *memory = idem_memory_of(rows);
    const struct idem_memory_meta *found = idem_memory_row(&memory->meta, meta_look(memory, name));
    *ret_value =
        found == NULL ? (struct idem_str){ .len = 0 } : idem_buf_keep(rows->kept, found->value);
    return IDEM_ROWS_OK;
}

enum idem_rows_step idem_memory_write_meta(struct idem_rows *rows,
                                           const char *name,
                                           struct idem_str value)
{
    struct idem_memory_rows *memory = idem_memory_of(rows);
    int64_t handle = meta_look(memory, name);
    char *text = idem_memory_take(value.len);
    struct idem_str kept = { .data = text, .len = value.len };
    memcpy(text, value.data, value.len);
    if (handle != 0) {
        struct idem_memory_meta *row =
            idem_memory_change(&memory->log, &memory->meta, handle, text);
        row->value = kept;
        return IDEM_ROWS_OK;
    }
    struct idem_memory_meta row = { .head = { .text = text }, .value = kept };
    int len = snprintf(row.name, sizeof(row.name), "%s", name);
    IDEM_ASSERT(len > 0);
    IDEM_ASSERT((size_t)len < sizeof(row.name));
    (void)idem_memory_add(&memory->log, &memory->meta, &row); /* Found again by its name. */
    return IDEM_ROWS_OK;
}

static int64_t meta_number(struct idem_memory_rows *memory, const char *name)
{
    int64_t number = 0;
    const struct idem_memory_meta *found = idem_memory_row(&memory->meta, meta_look(memory, name));
    bool is_number = found != NULL && idem_str_to_i64(found->value, &number);
    return is_number ? number : 0;
}

static void meta_number_write(struct idem_memory_rows *memory, const char *name, int64_t number)
{
    char text_memory[32];
    struct idem_buf text;
    idem_buf_init(&text, text_memory, sizeof(text_memory));
    idem_buf_add_i64(&text, number);
    enum idem_rows_step step = idem_memory_write_meta(&memory->rows, name, idem_buf_str(&text));
    IDEM_ASSERT(step == IDEM_ROWS_OK); /* Memory refuses nothing. */
}

struct idem_run_marks idem_memory_marks_open(struct idem_memory_rows *memory,
                                             int64_t newest_us,
                                             struct idem_clock *clock)
{
    const struct idem_run_marks found = {
        .horizon_us = meta_number(memory, IDEM_META_REAP_HORIZON),
        .seen_us = meta_number(memory, IDEM_META_CLOCK_SEEN),
    };
    const struct idem_run_marks marks =
        idem_run_marks_open(found, newest_us, idem_clock_wall_us(clock));
    enum idem_rows_step step = memory->rows.ops->begin(&memory->rows);
    IDEM_ASSERT(step == IDEM_ROWS_OK);
    meta_number_write(memory, IDEM_META_REAP_HORIZON, marks.horizon_us);
    meta_number_write(memory, IDEM_META_CLOCK_SEEN, marks.seen_us);
    step = memory->rows.ops->commit(&memory->rows);
    IDEM_ASSERT(step == IDEM_ROWS_OK);
    idem_clock_raise(clock, marks.seen_us);
    return marks;
}
