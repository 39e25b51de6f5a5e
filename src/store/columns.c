/*
 * The rows of the core as data: name, kind and place of every member that is stored.
 *
 * `fixed` members name the row (ids, scope, principal, order number): nothing may change them, so
 * no UPDATE carries them and no index on them is touched when a row moves on.
 *
 * Enums name their limits: a value behind them was not written by us, and whoever read on with it
 * would look behind the end of a table.
 */
#include "store/columns.h"

#include <assert.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bug.h"
#include "core/credential.h"
#include "core/event.h"
#include "core/intent.h"
#include "core/payment.h"
#include "core/stub.h"
#include "core/webhook.h"
#include "store/look.h"

static_assert(sizeof(enum idem_intent_state) == sizeof(uint32_t), "enums are stored as U32");
static_assert(sizeof(struct idem_uid) == 16, "BYTES_16");
static_assert(sizeof(struct idem_scope) == 16, "BYTES_16");
static_assert(sizeof(struct idem_digest) == 32, "BYTES_32");
static_assert(IDEM_MESSAGE_TYPE_COUNT < 63, "a set of types is stored as I64");

#define COLUMN(column, type, of, member)                                                    \
    {                                                                                       \
        .name = (column), .kind = IDEM_COLUMN_##type, .offset = offsetof(struct of, member) \
    }
#define FIXED(column, type, of, member)                                                      \
    {                                                                                        \
        .name = (column), .kind = IDEM_COLUMN_##type, .offset = offsetof(struct of, member), \
        .fixed = true                                                                        \
    }
/* Of an enum whose zero is never stored, and of one whose zero is. */
#define WORD(column, of, member, count)                                                   \
    {                                                                                     \
        .name = (column), .kind = IDEM_COLUMN_U32, .offset = offsetof(struct of, member), \
        .first = 1, .limit = (count)                                                      \
    }
#define FIXED_WORD(column, of, member, count)                                             \
    {                                                                                     \
        .name = (column), .kind = IDEM_COLUMN_U32, .offset = offsetof(struct of, member), \
        .fixed = true, .first = 1, .limit = (count)                                       \
    }
#define WORD_OR_NONE(column, of, member, count)                                           \
    {                                                                                     \
        .name = (column), .kind = IDEM_COLUMN_U32, .offset = offsetof(struct of, member), \
        .limit = (count)                                                                  \
    }
#define TABLE(label, list, of)                                                      \
    {                                                                               \
        .name = (label), .columns = (list), .column_count = IDEM_ARRAY_COUNT(list), \
        .row_size = sizeof(struct of)                                               \
    }

static const struct idem_column intent_columns[] = {
    FIXED("id", BYTES_16, idem_intent, id),
    FIXED("scope", BYTES_16, idem_intent, scope),
    FIXED("principal", TEXT, idem_intent, principal),
    FIXED("key", TEXT, idem_intent, key),
    FIXED_WORD("endpoint", idem_intent, endpoint, IDEM_ENDPOINT_COUNT),
    WORD("state", idem_intent, state, IDEM_INTENT_COUNT),
    COLUMN("version", U32, idem_intent, version),
    COLUMN("rule_id", U32, idem_intent, fingerprint.rule_id),
    COLUMN("secret_id", U32, idem_intent, fingerprint.secret_id),
    COLUMN("fingerprint", BYTES_32, idem_intent, fingerprint.digest),
    COLUMN("epoch", U32, idem_intent, epoch),
    COLUMN("token", BYTES_16, idem_intent, token),
    COLUMN("last_command", BYTES_16, idem_intent, last_command),
    WORD_OR_NONE("step", idem_intent, step, IDEM_STEP_COUNT),
    COLUMN("incarnation", I64, idem_intent, incarnation),
    COLUMN("lease_end_us", I64, idem_intent, lease_end_us),
    COLUMN("due_us", I64, idem_intent, due_us),
    WORD_OR_NONE("send_count", idem_intent, send_count, IDEM_SENDS_MAX + 1),
    COLUMN("ask_count", U32, idem_intent, ask_count),
    FIXED("created_us", I64, idem_intent, created_us),
    COLUMN("updated_us", I64, idem_intent, updated_us),
    COLUMN("patience_us", I64, idem_intent, patience_us),
    COLUMN("unknown_since_us", I64, idem_intent, unknown_since_us),
    COLUMN("finished_us", I64, idem_intent, finished_us),
    COLUMN("expires_us", I64, idem_intent, expires_us),
    COLUMN("reap_us", I64, idem_intent, reap_us),
    WORD_OR_NONE("problem", idem_intent, problem, IDEM_PROBLEM_COUNT),
    WORD_OR_NONE("effect_kind", idem_intent, effect.kind, IDEM_EFFECT_KIND_COUNT),
    COLUMN("effect_id", TEXT, idem_intent, effect.id),
    COLUMN("entry", TEXT, idem_intent, effect.entry),
    COLUMN("account", TEXT, idem_intent, effect.account),
    COLUMN("region", TEXT, idem_intent, effect.region),
    COLUMN("amount_minor", I64, idem_intent, effect.amount_minor),
    COLUMN("currency", TEXT, idem_intent, effect.currency),
    COLUMN("reference", TEXT, idem_intent, effect.reference),
    COLUMN("close_asked", BOOL, idem_intent, effect.close_asked),
    COLUMN("answer_status", U16, idem_intent, answer.status),
    COLUMN("answer_headers", TEXT, idem_intent, answer.headers),
    COLUMN("answer_body", TEXT, idem_intent, answer.body),
    COLUMN("trace", TEXT, idem_intent, trace),
    COLUMN("payment_row", I64, idem_intent, payment_row),
    COLUMN("payment_id", BYTES_16, idem_intent, payment_id),
    COLUMN("refund_row", I64, idem_intent, refund_row),
    COLUMN("refund_id", BYTES_16, idem_intent, refund_id),
    /* Last: a reader that is short of room takes it off the end again. */
    COLUMN("request", TEXT, idem_intent, effect.request),
};

static const struct idem_column payment_columns[] = {
    FIXED("id", BYTES_16, idem_payment, id),
    COLUMN("version", U32, idem_payment, version),
    WORD("state", idem_payment, state, IDEM_PAYMENT_COUNT),
    FIXED("principal", TEXT, idem_payment, principal),
    FIXED("order_no", TEXT, idem_payment, order_no),
    FIXED_WORD("capture_mode", idem_payment, capture_mode, IDEM_CAPTURE_MODE_COUNT),
    FIXED("amount_minor", I64, idem_payment, amount_minor),
    FIXED("currency", TEXT, idem_payment, currency),
    COLUMN("authorized_minor", I64, idem_payment, authorized_minor),
    COLUMN("captured_minor", I64, idem_payment, captured_minor),
    COLUMN("capture_pending_minor", I64, idem_payment, capture_pending_minor),
    COLUMN("released_minor", I64, idem_payment, released_minor),
    COLUMN("refunded_minor", I64, idem_payment, refunded_minor),
    COLUMN("refund_pending_minor", I64, idem_payment, refund_pending_minor),
    COLUMN("canceling", BOOL, idem_payment, canceling),
    COLUMN("entry", TEXT, idem_payment, entry),
    COLUMN("account", TEXT, idem_payment, account),
    COLUMN("region", TEXT, idem_payment, region),
    COLUMN("effect_id", TEXT, idem_payment, effect_id),
    COLUMN("reference", TEXT, idem_payment, reference),
    COLUMN("method", TEXT, idem_payment, method),
    COLUMN("description", TEXT, idem_payment, description),
    COLUMN("metadata", TEXT, idem_payment, metadata),
    COLUMN("failure_code", TEXT, idem_payment, failure_code),
    FIXED("created_us", I64, idem_payment, created_us),
    COLUMN("updated_us", I64, idem_payment, updated_us),
};

static const struct idem_column refund_columns[] = {
    FIXED("id", BYTES_16, idem_refund, id),
    COLUMN("version", U32, idem_refund, version),
    WORD("state", idem_refund, state, IDEM_REFUND_COUNT),
    FIXED("payment_row", I64, idem_refund, payment_row),
    FIXED("payment_id", BYTES_16, idem_refund, payment_id),
    FIXED("principal", TEXT, idem_refund, principal),
    FIXED("refund_no", TEXT, idem_refund, refund_no),
    FIXED("amount_minor", I64, idem_refund, amount_minor),
    FIXED("currency", TEXT, idem_refund, currency),
    COLUMN("reference", TEXT, idem_refund, reference),
    COLUMN("failure_code", TEXT, idem_refund, failure_code),
    FIXED("created_us", I64, idem_refund, created_us),
    COLUMN("updated_us", I64, idem_refund, updated_us),
};

static const struct idem_column send_columns[] = {
    FIXED_WORD("no", idem_send, no, IDEM_SENDS_MAX + 1),
    FIXED("epoch", U32, idem_send, epoch),
    FIXED("token", BYTES_16, idem_send, token),
    FIXED("granted_us", I64, idem_send, granted_us),
    FIXED("not_after_us", I64, idem_send, not_after_us),
    WORD("state", idem_send, state, IDEM_SEND_COUNT),
};

static const struct idem_column event_columns[] = {
    FIXED_WORD("kind", idem_event, kind, IDEM_EVENT_KIND_COUNT),
    FIXED_WORD("cause", idem_event, cause, IDEM_CAUSE_COUNT),
    FIXED("at_us", I64, idem_event, at_us),
    FIXED("epoch", U32, idem_event, epoch),
    FIXED("send_no", U32, idem_event, send_no),
    FIXED("detail", TEXT, idem_event, detail),
};

static const struct idem_column case_columns[] = {
    FIXED("id", BYTES_16, idem_case, id),
    FIXED_WORD("kind", idem_case, kind, IDEM_CASE_KIND_COUNT),
    FIXED("opened_us", I64, idem_case, opened_us),
    FIXED("detail", TEXT, idem_case, detail),
    COLUMN("decided_us", I64, idem_case, decided_us),
    COLUMN("decided_by", TEXT, idem_case, decided_by),
    COLUMN("decision", TEXT, idem_case, decision),
};

static const struct idem_column stub_columns[] = {
    FIXED("scope", BYTES_16, idem_stub, scope),
    FIXED_WORD("kind", idem_stub, kind, IDEM_EFFECT_KIND_COUNT),
    FIXED("effect_id", TEXT, idem_stub, effect_id),
    FIXED("entry", TEXT, idem_stub, entry),
    FIXED("account", TEXT, idem_stub, account),
    FIXED("region", TEXT, idem_stub, region),
    FIXED("order_no", TEXT, idem_stub, order_no),
    FIXED("payment_effect_id", TEXT, idem_stub, payment_effect_id),
    FIXED("amount_minor", I64, idem_stub, amount_minor),
    FIXED("currency", TEXT, idem_stub, currency),
    FIXED("reference", TEXT, idem_stub, reference),
    FIXED("happened_us", I64, idem_stub, happened_us),
    FIXED("found_us", I64, idem_stub, found_us),
    COLUMN("applied", BOOL, idem_stub, applied),
};

static const struct idem_column credential_columns[] = {
    FIXED("id", BYTES_16, idem_credential_row, id),
    FIXED("principal", TEXT, idem_credential_row, principal),
    FIXED_WORD("role", idem_credential_row, role, IDEM_ROLE_COUNT),
    FIXED("secret_sha256", BYTES_32, idem_credential_row, secret_sha256),
    FIXED("providers", TEXT, idem_credential_row, providers),
    FIXED("label", TEXT, idem_credential_row, label),
    FIXED("created_us", I64, idem_credential_row, created_us),
    FIXED("created_by", TEXT, idem_credential_row, created_by),
    COLUMN("revoked_us", I64, idem_credential_row, revoked_us),
    COLUMN("revoked_by", TEXT, idem_credential_row, revoked_by),
};

static const struct idem_column webhook_columns[] = {
    FIXED("id", BYTES_16, idem_webhook, id),
    COLUMN("version", U32, idem_webhook, version),
    FIXED("principal", TEXT, idem_webhook, principal),
    COLUMN("url", TEXT, idem_webhook, url),
    COLUMN("types", I64, idem_webhook, types),
    COLUMN("generation", U32, idem_webhook, generation),
    COLUMN("rotated_us", I64, idem_webhook, rotated_us),
    FIXED("created_us", I64, idem_webhook, created_us),
    FIXED("created_by", TEXT, idem_webhook, created_by),
    COLUMN("disabled_us", I64, idem_webhook, disabled_us),
    COLUMN("disabled_by", TEXT, idem_webhook, disabled_by),
};

static const struct idem_column message_columns[] = {
    FIXED("id", BYTES_16, idem_message, id),
    FIXED_WORD("type", idem_message, type, IDEM_MESSAGE_TYPE_COUNT),
    FIXED("principal", TEXT, idem_message, principal),
    FIXED("payment_id", BYTES_16, idem_message, payment_id),
    FIXED("at_us", I64, idem_message, at_us),
    FIXED("data", TEXT, idem_message, data),
};

static const struct idem_column delivery_columns[] = {
    COLUMN("version", U32, idem_delivery, version),
    FIXED("message_row", I64, idem_delivery, message_row),
    FIXED("webhook_row", I64, idem_delivery, webhook_row),
    FIXED("payment_id", BYTES_16, idem_delivery, payment_id),
    WORD("state", idem_delivery, state, IDEM_DELIVERY_COUNT),
    COLUMN("attempts", U32, idem_delivery, attempts),
    COLUMN("due_us", I64, idem_delivery, due_us),
    COLUMN("token", BYTES_16, idem_delivery, token),
    COLUMN("last_status", U16, idem_delivery, last_status),
    COLUMN("last_error", TEXT, idem_delivery, last_error),
    FIXED("created_us", I64, idem_delivery, created_us),
    COLUMN("finished_us", I64, idem_delivery, finished_us),
};

/* What a list shows of an intent; nobody writes it. */
static const struct idem_column entry_columns[] = {
    COLUMN("id", BYTES_16, idem_entry, id),
    COLUMN("principal", TEXT, idem_entry, principal),
    WORD("endpoint", idem_entry, endpoint, IDEM_ENDPOINT_COUNT),
    WORD("state", idem_entry, state, IDEM_INTENT_COUNT),
    WORD_OR_NONE("step", idem_entry, step, IDEM_STEP_COUNT),
    COLUMN("due_us", I64, idem_entry, due_us),
    COLUMN("lease_end_us", I64, idem_entry, lease_end_us),
    COLUMN("created_us", I64, idem_entry, created_us),
    COLUMN("unknown_since_us", I64, idem_entry, unknown_since_us),
    COLUMN("finished_us", I64, idem_entry, finished_us),
    WORD_OR_NONE("send_count", idem_entry, send_count, IDEM_SENDS_MAX + 1),
    COLUMN("entry", TEXT, idem_entry, entry),
    COLUMN("amount_minor", I64, idem_entry, amount_minor),
    COLUMN("currency", TEXT, idem_entry, currency),
    COLUMN("payment_id", BYTES_16, idem_entry, payment_id),
};

/* Where a payment is; likewise. */
static const struct idem_column place_columns[] = {
    COLUMN("entry", TEXT, idem_place, entry),
    COLUMN("account", TEXT, idem_place, account),
    COLUMN("region", TEXT, idem_place, region),
};

/* What reconciliation reads of an intent and its payment, joined; likewise. */
static const struct idem_column effect_columns[] = {
    COLUMN("intents.id", BYTES_16, idem_effect_line, id),
    WORD("intents.state", idem_effect_line, state, IDEM_INTENT_COUNT),
    WORD("intents.effect_kind", idem_effect_line, kind, IDEM_EFFECT_KIND_COUNT),
    COLUMN("intents.effect_id", TEXT, idem_effect_line, effect_id),
    COLUMN("intents.account", TEXT, idem_effect_line, account),
    COLUMN("intents.region", TEXT, idem_effect_line, region),
    COLUMN("coalesce(payments.order_no, '')", TEXT, idem_effect_line, order_no),
    COLUMN("intents.reference", TEXT, idem_effect_line, reference),
    COLUMN("intents.amount_minor", I64, idem_effect_line, amount_minor),
    COLUMN("intents.currency", TEXT, idem_effect_line, currency),
    COLUMN("intents.created_us", I64, idem_effect_line, created_us),
    COLUMN("intents.finished_us", I64, idem_effect_line, finished_us),
};

const struct idem_table idem_table_intents = TABLE("intents", intent_columns, idem_intent);
const struct idem_table idem_table_payments = TABLE("payments", payment_columns, idem_payment);
const struct idem_table idem_table_refunds = TABLE("refunds", refund_columns, idem_refund);
const struct idem_table idem_table_sends = TABLE("sends", send_columns, idem_send);
const struct idem_table idem_table_events = TABLE("events", event_columns, idem_event);
const struct idem_table idem_table_cases = TABLE("cases", case_columns, idem_case);
const struct idem_table idem_table_stubs = TABLE("stubs", stub_columns, idem_stub);
const struct idem_table idem_table_credentials =
    TABLE("credentials", credential_columns, idem_credential_row);
const struct idem_table idem_table_webhooks = TABLE("webhooks", webhook_columns, idem_webhook);
const struct idem_table idem_table_messages = TABLE("messages", message_columns, idem_message);
const struct idem_table idem_table_deliveries =
    TABLE("deliveries", delivery_columns, idem_delivery);
const struct idem_table idem_table_entries = TABLE("intents", entry_columns, idem_entry);
const struct idem_table idem_table_places = TABLE("payments", place_columns, idem_place);
const struct idem_table idem_table_effects = TABLE("intents", effect_columns, idem_effect_line);

size_t idem_table_text_size(const struct idem_table *table, const void *row)
{
    size_t size = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct idem_column *column = &table->columns[i];
        if (column->kind == IDEM_COLUMN_TEXT) {
            const char *at = (const char *)row + column->offset;
            size += ((const struct idem_str *)(const void *)at)->len;
        }
    }
    return size;
}

void idem_table_text_keep(const struct idem_table *table, void *row, struct idem_buf *buf)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const struct idem_column *column = &table->columns[i];
        if (column->kind == IDEM_COLUMN_TEXT) {
            struct idem_str *text = (void *)((char *)row + column->offset);
            *text = idem_buf_keep(buf, *text);
        }
    }
}

static bool u32_is_ours(const struct idem_column *column, int64_t value)
{
    int64_t limit = column->limit == 0 ? (int64_t)UINT32_MAX + 1 : column->limit;
    return value >= column->first && value < limit;
}

bool idem_column_read_number(const struct idem_column *column, int64_t value, void *at)
{
    switch (column->kind) {
    case IDEM_COLUMN_I64:
        *(int64_t *)at = value;
        return true;
    case IDEM_COLUMN_U32:
        *(uint32_t *)at = (uint32_t)value;
        return u32_is_ours(column, value);
    case IDEM_COLUMN_U16:
        *(uint16_t *)at = (uint16_t)value;
        return value >= 0 && value <= UINT16_MAX;
    case IDEM_COLUMN_BOOL:
        *(bool *)at = value != 0;
        return value == 0 || value == 1;
    case IDEM_COLUMN_BYTES_16:
    case IDEM_COLUMN_BYTES_32:
    case IDEM_COLUMN_TEXT:
    case IDEM_COLUMN_NONE:
    case IDEM_COLUMN_KIND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}
