/*
 * The reader of configured entries: finds the entry and its adapter, and bounds what the adapter
 * has read, once for all of them.
 *
 * Code and message are for people and are cut. An id, a number or a currency that is too long is
 * another value when it is cut, so the event is UNREADABLE: its provider hears that, and nothing
 * changes. Account is the entry's, unless the provider names one: then the core sees that it is
 * another.
 */
#include "provider/callback.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/currency.h"
#include "provider/adapter.h"
#include "provider/http_port.h"
#include "provider/wire.h"

static_assert(IDEM_CALLBACK_MEMORY_MAX >= IDEM_ENTRY_MAX + IDEM_ACCOUNT_MAX + IDEM_REGION_MAX +
                                              2 * IDEM_EFFECT_ID_LEN + IDEM_CURRENCY_LEN +
                                              IDEM_REFERENCE_MAX + IDEM_ORDER_NO_MAX +
                                              IDEM_CODE_MAX + IDEM_MESSAGE_MAX + IDEM_EVENT_ID_MAX,
              "the longest evidence fits");

struct entry_reader {
    struct idem_callback_reader reader;
    const struct idem_provider_entry *entries;
    size_t entry_count;
    struct idem_digester *digester;
    char text_memory[IDEM_CALLBACK_BODY_MAX]; /* For one event at a time. */
};

const char *idem_callback_verdict_name(enum idem_callback_verdict verdict)
{
    static const char *const names[IDEM_CALLBACK_VERDICT_COUNT] = {
        [IDEM_CALLBACK_OK] = "ok",
        [IDEM_CALLBACK_IGNORED] = "ignored",
        [IDEM_CALLBACK_FORGED] = "forged",
        [IDEM_CALLBACK_STALE] = "stale",
        [IDEM_CALLBACK_FUTURE] = "future",
        [IDEM_CALLBACK_UNREADABLE] = "unreadable",
        [IDEM_CALLBACK_NO_ENTRY] = "no-entry",
    };
    IDEM_ASSERT(verdict < IDEM_CALLBACK_VERDICT_COUNT);
    return names[verdict];
}

/* NULL: no such entry, or nobody listens there. */
static const struct idem_provider_entry *entry_find(const struct entry_reader *reader,
                                                    struct idem_str name)
{
    for (size_t i = 0; i < reader->entry_count; i++) {
        const struct idem_provider_entry *entry = &reader->entries[i];
        if (idem_str_equal(entry->rules->entry, name)) {
            bool listens = entry->adapter->callbacks != NULL && entry->callback_secrets != NULL &&
                           entry->callback_secrets->count > 0;
            return listens ? entry : NULL;
        }
    }
    return NULL;
}

static bool texts_fit(const struct idem_evidence *read)
{
    return read->currency.len <= IDEM_CURRENCY_LEN && read->reference.len <= IDEM_REFERENCE_MAX &&
           read->order_no.len <= IDEM_ORDER_NO_MAX && read->account.len <= IDEM_ACCOUNT_MAX &&
           read->payment_effect_id.len <= IDEM_EFFECT_ID_LEN && read->event_id.len > 0 &&
           read->event_id.len <= IDEM_EVENT_ID_MAX;
}

/* What the adapter has read, with its text in the callback's own memory. */
static void evidence_fill(const struct idem_provider_rules *rules,
                          const struct idem_evidence *read,
                          struct idem_callback *callback)
{
    struct idem_scope payment_scope = { { 0 } };
    struct idem_buf buf;

    idem_buf_init(&buf, callback->memory, sizeof(callback->memory));
    if (!idem_effect_id_scope(read->payment_effect_id, &payment_scope)) {
        payment_scope = (struct idem_scope){ { 0 } }; /* Half of it may have been read. */
    }
    callback->evidence = (struct idem_evidence){
        .source = IDEM_SOURCE_CALLBACK,
        .outcome = read->outcome,
        .entry = idem_buf_keep(&buf, rules->entry),
        .account = idem_buf_keep(&buf, read->account.len > 0 ? read->account : rules->account),
        .region = idem_buf_keep(&buf, rules->region),
        .effect_id = idem_buf_keep(&buf, read->effect_id),
        .amount_minor = read->amount_minor,
        .currency = idem_buf_keep(&buf, read->currency),
        .reference = idem_buf_keep(&buf, read->reference),
        .code = idem_buf_keep(&buf, idem_wire_text_cut(read->code, IDEM_CODE_MAX)),
        .message = idem_buf_keep(&buf, idem_wire_text_cut(read->message, IDEM_MESSAGE_MAX)),
        .order_no = idem_buf_keep(&buf, read->order_no),
        .payment_effect_id = idem_buf_keep(&buf, read->payment_effect_id),
        .payment_scope = payment_scope,
        .happened_us = read->happened_us,
        .event_id = idem_buf_keep(&buf, read->event_id),
    };
    IDEM_ASSERT(!buf.full);
}

static void entries_read(struct idem_callback_reader *base,
                         struct idem_str name,
                         const struct idem_callback_in *in,
                         struct idem_callback *ret_callback)
{
    struct entry_reader *reader = IDEM_CONTAINER_OF(base, struct entry_reader, reader);
    const struct idem_provider_entry *entry = entry_find(reader, name);
    struct idem_evidence read = { .amount_minor = -1 };
    struct idem_buf buf;

    ret_callback->replies = NULL;
    if (entry == NULL) {
        ret_callback->verdict = IDEM_CALLBACK_NO_ENTRY;
        return;
    }
    const struct idem_callback_place place = {
        .digester = reader->digester,
        .secrets = entry->callback_secrets->secrets,
        .secret_count = entry->callback_secrets->count,
        .account = entry->rules->account,
        .credential = idem_str_from(entry->credential),
    };
    idem_buf_init(&buf, reader->text_memory, sizeof(reader->text_memory));
    ret_callback->replies = entry->adapter->callbacks->replies;
    ret_callback->verdict = entry->adapter->callbacks->verify(in, &place, &buf, &read);
    IDEM_ASSERT(ret_callback->verdict < IDEM_CALLBACK_NO_ENTRY);
    if (ret_callback->verdict != IDEM_CALLBACK_OK) {
        return;
    }
    IDEM_ASSERT(read.outcome > IDEM_OUTCOME_NONE);
    IDEM_ASSERT(read.outcome < IDEM_OUTCOME_COUNT);
    if (buf.full || !texts_fit(&read)) {
        ret_callback->verdict = IDEM_CALLBACK_UNREADABLE;
        return;
    }
    evidence_fill(entry->rules, &read, ret_callback);
}

enum idem_err idem_callback_reader_create(const struct idem_provider_entry *entries,
                                          size_t entry_count,
                                          struct idem_callback_reader **ret_reader,
                                          struct idem_error *reterr)
{
    struct entry_reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the providers' callbacks");
    }
    enum idem_err err = idem_digester_create(&reader->digester, reterr);
    if (err != IDEM_OK) {
        free(reader);
        return err;
    }
    reader->reader.read = entries_read;
    reader->entries = entries;
    reader->entry_count = entry_count;
    *ret_reader = &reader->reader;
    return IDEM_OK;
}

void idem_callback_reader_destroy(struct idem_callback_reader *reader)
{
    if (reader != NULL) {
        struct entry_reader *made = IDEM_CONTAINER_OF(reader, struct entry_reader, reader);
        idem_digester_destroy(made->digester);
        free(made);
    }
}
