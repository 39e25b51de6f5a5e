/*
 * The statements behind schema.h.
 */
#include "store/sqlite/schema.h"

#include "base/attr.h"

const char *const idem_sqlite_schema[] = {
    "CREATE TABLE meta ("
    "  key TEXT PRIMARY KEY,"
    "  value TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;",

    "CREATE TABLE intents ("
    "  row INTEGER PRIMARY KEY,"
    "  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),"
    "  scope BLOB NOT NULL UNIQUE CHECK (length(scope) = 16),"
    "  principal TEXT NOT NULL,"
    "  key TEXT NOT NULL,"
    "  endpoint INTEGER NOT NULL,"
    "  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 7),"
    "  version INTEGER NOT NULL,"
    "  rule_id INTEGER NOT NULL,"
    "  secret_id INTEGER NOT NULL,"
    "  fingerprint BLOB NOT NULL,"
    "  epoch INTEGER NOT NULL,"
    "  token BLOB NOT NULL,"
    "  last_command BLOB NOT NULL,"
    "  step INTEGER NOT NULL,"
    "  incarnation INTEGER NOT NULL,"
    "  lease_end_us INTEGER NOT NULL,"
    "  due_us INTEGER NOT NULL,"
    "  send_count INTEGER NOT NULL,"
    "  ask_count INTEGER NOT NULL,"
    "  created_us INTEGER NOT NULL,"
    "  updated_us INTEGER NOT NULL,"
    "  patience_us INTEGER NOT NULL,"
    "  unknown_since_us INTEGER NOT NULL,"
    "  finished_us INTEGER NOT NULL,"
    "  expires_us INTEGER NOT NULL,"
    "  problem INTEGER NOT NULL,"
    "  effect_kind INTEGER NOT NULL,"
    "  effect_id TEXT NOT NULL,"
    "  entry TEXT NOT NULL,"
    "  account TEXT NOT NULL,"
    "  region TEXT NOT NULL,"
    "  amount_minor INTEGER NOT NULL,"
    "  currency TEXT NOT NULL,"
    "  reference TEXT NOT NULL,"
    "  close_asked INTEGER NOT NULL,"
    "  answer_status INTEGER NOT NULL,"
    "  answer_headers TEXT NOT NULL,"
    "  answer_body TEXT NOT NULL,"
    "  payment_row INTEGER NOT NULL," /* 0: none. */
    "  payment_id BLOB NOT NULL,"
    "  refund_row INTEGER NOT NULL," /* 0: none. */
    "  refund_id BLOB NOT NULL,"
    "  request TEXT NOT NULL,"
    "  trace TEXT NOT NULL DEFAULT '',"
    "  reap_us INTEGER NOT NULL DEFAULT 0 CHECK (reap_us >= 0)"
    ") STRICT;",
    "CREATE INDEX intents_due ON intents (due_us, state) WHERE due_us > 0;",
    "CREATE INDEX intents_reap ON intents (reap_us) WHERE reap_us > 0;",
    "CREATE INDEX intents_payment ON intents (payment_row) WHERE payment_row > 0;",

    "CREATE TABLE payments ("
    "  row INTEGER PRIMARY KEY,"
    "  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),"
    "  version INTEGER NOT NULL,"
    "  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 9),"
    "  principal TEXT NOT NULL,"
    "  order_no TEXT NOT NULL,"
    "  capture_mode INTEGER NOT NULL,"
    "  amount_minor INTEGER NOT NULL CHECK (amount_minor > 0),"
    "  currency TEXT NOT NULL,"
    "  authorized_minor INTEGER NOT NULL CHECK (authorized_minor >= 0),"
    "  captured_minor INTEGER NOT NULL CHECK (captured_minor >= 0),"
    "  capture_pending_minor INTEGER NOT NULL CHECK (capture_pending_minor >= 0),"
    "  released_minor INTEGER NOT NULL CHECK (released_minor >= 0),"
    "  refunded_minor INTEGER NOT NULL CHECK (refunded_minor >= 0),"
    "  refund_pending_minor INTEGER NOT NULL CHECK (refund_pending_minor >= 0),"
    "  canceling INTEGER NOT NULL,"
    "  entry TEXT NOT NULL,"
    "  account TEXT NOT NULL,"
    "  region TEXT NOT NULL,"
    "  effect_id TEXT NOT NULL,"
    "  reference TEXT NOT NULL,"
    "  method TEXT NOT NULL,"
    "  description TEXT NOT NULL,"
    "  metadata TEXT NOT NULL,"
    "  failure_code TEXT NOT NULL,"
    "  created_us INTEGER NOT NULL,"
    "  updated_us INTEGER NOT NULL,"
    "  CHECK (captured_minor + capture_pending_minor + released_minor <= authorized_minor),"
    "  CHECK (refunded_minor + refund_pending_minor <= captured_minor)"
    ") STRICT;",
    "CREATE UNIQUE INDEX payments_order ON payments (principal, order_no)"
    "  WHERE " IDEM_SQLITE_HOLDS_ORDER ";",
    "CREATE INDEX payments_order_past ON payments (principal, order_no)"
    "  WHERE " IDEM_SQLITE_PAST_ORDER ";",

    "CREATE TABLE refunds ("
    "  row INTEGER PRIMARY KEY,"
    "  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),"
    "  version INTEGER NOT NULL,"
    "  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 3),"
    "  payment_row INTEGER NOT NULL CHECK (payment_row > 0),"
    "  payment_id BLOB NOT NULL,"
    "  principal TEXT NOT NULL,"
    "  refund_no TEXT NOT NULL,"
    "  amount_minor INTEGER NOT NULL CHECK (amount_minor > 0),"
    "  currency TEXT NOT NULL,"
    "  reference TEXT NOT NULL,"
    "  failure_code TEXT NOT NULL,"
    "  created_us INTEGER NOT NULL,"
    "  updated_us INTEGER NOT NULL"
    ") STRICT;",
    "CREATE UNIQUE INDEX refunds_no ON refunds (payment_row, refund_no)"
    "  WHERE " IDEM_SQLITE_HOLDS_REFUND ";",

    "CREATE TABLE sends ("
    "  intent_row INTEGER NOT NULL CHECK (intent_row > 0),"
    "  no INTEGER NOT NULL CHECK (no > 0),"
    "  epoch INTEGER NOT NULL,"
    "  token BLOB NOT NULL,"
    "  granted_us INTEGER NOT NULL,"
    "  not_after_us INTEGER NOT NULL,"
    "  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 4),"
    "  PRIMARY KEY (intent_row, no)"
    ") STRICT, WITHOUT ROWID;",

    "CREATE TABLE events ("
    "  row INTEGER PRIMARY KEY,"
    "  intent_row INTEGER NOT NULL CHECK (intent_row > 0),"
    "  kind INTEGER NOT NULL,"
    "  cause INTEGER NOT NULL,"
    "  at_us INTEGER NOT NULL,"
    "  epoch INTEGER NOT NULL,"
    "  send_no INTEGER NOT NULL,"
    "  detail TEXT NOT NULL"
    ") STRICT;",
    "CREATE INDEX events_intent ON events (intent_row);",

    "CREATE TABLE cases ("
    "  row INTEGER PRIMARY KEY,"
    "  intent_row INTEGER NOT NULL CHECK (intent_row > 0),"
    "  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),"
    "  kind INTEGER NOT NULL,"
    "  opened_us INTEGER NOT NULL,"
    "  detail TEXT NOT NULL,"
    "  decided_us INTEGER NOT NULL DEFAULT 0 CHECK (decided_us >= 0),"
    "  decided_by TEXT NOT NULL DEFAULT '',"
    "  decision TEXT NOT NULL DEFAULT ''"
    ") STRICT;",
    "CREATE INDEX cases_intent ON cases (intent_row);",
    "CREATE INDEX cases_open ON cases (intent_row) WHERE decided_us = 0;",

    IDEM_SQLITE_STUBS,
    IDEM_SQLITE_STUBS_ORDER,
    IDEM_SQLITE_STUBS_PAYMENT,
    IDEM_SQLITE_CREDENTIALS,

    IDEM_SQLITE_INBOX,
    IDEM_SQLITE_INBOX_LAST,
    IDEM_SQLITE_WEBHOOKS,
    IDEM_SQLITE_WEBHOOKS_PRINCIPAL,
    IDEM_SQLITE_MESSAGES,
    IDEM_SQLITE_MESSAGES_AT,
    IDEM_SQLITE_DELIVERIES,
    IDEM_SQLITE_DELIVERIES_DUE,
    IDEM_SQLITE_DELIVERIES_ORDER,
    IDEM_SQLITE_DELIVERIES_STATE,
    IDEM_SQLITE_DELIVERIES_WEBHOOK,
};

const size_t idem_sqlite_schema_count = IDEM_ARRAY_COUNT(idem_sqlite_schema);
