-- A store of schema version 2 as the idem of that time wrote it: one of version 1, migrated and
-- served, then put back as a copy and served again. Never edited: what a version wrote stays as it
-- was. Data of test-store-migrate.
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA application_id = 1768187245;
BEGIN TRANSACTION;
CREATE TABLE cases (row INTEGER PRIMARY KEY, intent_row INTEGER NOT NULL CHECK (intent_row > 0), id
  BLOB NOT NULL UNIQUE CHECK (length(id) = 16), kind INTEGER NOT NULL, opened_us INTEGER NOT NULL,
  detail TEXT NOT NULL, decided_us INTEGER NOT NULL DEFAULT 0 CHECK (decided_us >= 0), decided_by
  TEXT NOT NULL DEFAULT '', decision TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO cases VALUES (1, 6, X'0100000000000000000000000000002C', 1, 1800000000010000,
  'done, but another id, amount or currency', 0, '', '');
INSERT INTO cases VALUES (2, 9, X'01000000000000000000000000000044', 1, 1800000000014000,
  'done, but another id, amount or currency', 1800000000015000, 'provider', 'settled later');
INSERT INTO cases VALUES (3, 10, X'01000000000000000000000000000054', 2, 1800000000018000,
  'done at the provider after it failed here', 0, '', '');
INSERT INTO cases VALUES (4, 17, X'010000000000000000000000000186B4', 1, 1800000060000000,
  'done, but another id, amount or currency', 1800000060000000, 'ops/anna',
  'succeeded: seen in the provider''s console');
INSERT INTO cases VALUES (5, 18, X'010000000000000000000000000186C0', 1, 1800000060000000,
  'done, but another id, amount or currency', 0, '', '');
CREATE TABLE credentials ( row INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  principal TEXT NOT NULL, role INTEGER NOT NULL CHECK (role BETWEEN 1 AND 2), secret_sha256 BLOB
  NOT NULL UNIQUE CHECK (length(secret_sha256) = 32), providers TEXT NOT NULL, label TEXT NOT NULL,
  created_us INTEGER NOT NULL, created_by TEXT NOT NULL, revoked_us INTEGER NOT NULL CHECK
  (revoked_us >= 0), revoked_by TEXT NOT NULL) STRICT;
INSERT INTO credentials VALUES (1, X'01000000000000000000000000000000', 'merchant-1', 1,
  X'0100000000000000000000000000000000000000000000000000000000000000', 'sandbox ', 'till 4',
  1800000060000000, 'ops/anna', 0, '');
INSERT INTO credentials VALUES (2, X'02000000000000000000000000000000', 'merchant-1', 1,
  X'0200000000000000000000000000000000000000000000000000000000000000', 'sandbox ', 'till 4',
  1800000060000000, 'ops/anna', 1800000060000000, 'ops/anna');
CREATE TABLE events (row INTEGER PRIMARY KEY, intent_row INTEGER NOT NULL CHECK (intent_row > 0),
  kind INTEGER NOT NULL, cause INTEGER NOT NULL, at_us INTEGER NOT NULL, epoch INTEGER NOT NULL,
  send_no INTEGER NOT NULL, detail TEXT NOT NULL) STRICT;
INSERT INTO events VALUES (1, 1, 2, 1, 1800000000000000, 1, 1, '');
INSERT INTO events VALUES (2, 1, 20, 2, 1800000000001000, 1, 0, 'pending -> captured');
INSERT INTO events VALUES (3, 1, 14, 2, 1800000000001000, 1, 1, 'send');
INSERT INTO events VALUES (4, 2, 2, 1, 1800000000002000, 1, 1, '');
INSERT INTO events VALUES (5, 2, 20, 2, 1800000000003000, 1, 0, 'pending -> failed');
INSERT INTO events VALUES (6, 2, 15, 2, 1800000000003000, 1, 1, 'card_declined');
INSERT INTO events VALUES (7, 3, 2, 1, 1800000000004000, 1, 1, '');
INSERT INTO events VALUES (8, 4, 1, 1, 1800000000005000, 1, 0, '');
INSERT INTO events VALUES (9, 5, 2, 1, 1800000000006000, 1, 1, '');
INSERT INTO events VALUES (10, 5, 3, 2, 1800000000007000, 1, 1, 'no usable answer');
INSERT INTO events VALUES (11, 5, 12, 2, 1800000000007000, 1, 0, '');
INSERT INTO events VALUES (12, 6, 2, 1, 1800000000008000, 1, 1, '');
INSERT INTO events VALUES (13, 6, 3, 2, 1800000000009000, 1, 1, 'no usable answer');
INSERT INTO events VALUES (14, 6, 12, 2, 1800000000009000, 1, 0, '');
INSERT INTO events VALUES (15, 6, 13, 2, 1800000000010000, 1, 0,
  'done, but another id, amount or currency');
INSERT INTO events VALUES (16, 7, 2, 1, 1800000000010000, 1, 1, '');
INSERT INTO events VALUES (17, 7, 4, 2, 1800000000011000, 1, 1, 'card_declined');
INSERT INTO events VALUES (18, 7, 20, 2, 1800000000011000, 1, 0, 'pending -> failed');
INSERT INTO events VALUES (19, 7, 16, 2, 1800000000011000, 1, 0, '');
INSERT INTO events VALUES (20, 8, 18, 1, 1800000000012000, 1, 0, '');
INSERT INTO events VALUES (21, 9, 2, 1, 1800000000012000, 1, 1, '');
INSERT INTO events VALUES (22, 9, 3, 2, 1800000000013000, 1, 1, 'no usable answer');
INSERT INTO events VALUES (23, 9, 12, 2, 1800000000013000, 1, 0, '');
INSERT INTO events VALUES (24, 9, 13, 2, 1800000000014000, 1, 0,
  'done, but another id, amount or currency');
INSERT INTO events VALUES (25, 9, 20, 2, 1800000000015000, 1, 0, 'pending -> captured');
INSERT INTO events VALUES (26, 9, 14, 2, 1800000000015000, 1, 0, 'query');
INSERT INTO events VALUES (27, 10, 2, 1, 1800000000016000, 1, 1, '');
INSERT INTO events VALUES (28, 10, 20, 2, 1800000000017000, 1, 0, 'pending -> failed');
INSERT INTO events VALUES (29, 10, 15, 2, 1800000000017000, 1, 1, 'card_declined');
INSERT INTO events VALUES (30, 10, 19, 2, 1800000000018000, 1, 0,
  'done at the provider after it failed here');
INSERT INTO events VALUES (31, 11, 2, 1, 1800000000019000, 1, 1, '');
INSERT INTO events VALUES (32, 11, 20, 2, 1800000000020000, 1, 0, 'captured -> partially_refunded');
INSERT INTO events VALUES (33, 11, 21, 2, 1800000000020000, 1, 0, 'pending -> succeeded');
INSERT INTO events VALUES (34, 11, 14, 2, 1800000000020000, 1, 1, 'send');
INSERT INTO events VALUES (35, 12, 2, 1, 1800000000021000, 1, 1, '');
INSERT INTO events VALUES (36, 13, 2, 1, 1800000000022000, 1, 1, '');
INSERT INTO events VALUES (37, 13, 20, 2, 1800000000023000, 1, 0, 'pending -> authorized');
INSERT INTO events VALUES (38, 13, 14, 2, 1800000000023000, 1, 1, 'send');
INSERT INTO events VALUES (39, 14, 2, 1, 1800000000024000, 1, 1, '');
INSERT INTO events VALUES (40, 14, 20, 2, 1800000000025000, 1, 0,
  'authorized -> partially_captured');
INSERT INTO events VALUES (41, 14, 14, 2, 1800000000025000, 1, 1, 'send');
INSERT INTO events VALUES (42, 15, 2, 1, 1800000000026000, 1, 1, '');
INSERT INTO events VALUES (43, 15, 20, 2, 1800000000027000, 1, 0, 'pending -> authorized');
INSERT INTO events VALUES (44, 15, 14, 2, 1800000000027000, 1, 1, 'send');
INSERT INTO events VALUES (45, 16, 2, 1, 1800000000028000, 1, 1, '');
INSERT INTO events VALUES (46, 16, 20, 2, 1800000000029000, 1, 0, 'authorized -> canceled');
INSERT INTO events VALUES (47, 16, 14, 2, 1800000000029000, 1, 1, 'send');
INSERT INTO events VALUES (48, 17, 2, 1, 1800000060000000, 1, 1, '');
INSERT INTO events VALUES (49, 17, 13, 2, 1800000060000000, 1, 0,
  'done, but another id, amount or currency');
INSERT INTO events VALUES (50, 17, 20, 4, 1800000060000000, 1, 0, 'pending -> captured');
INSERT INTO events VALUES (51, 17, 14, 4, 1800000060000000, 1, 0, 'operator');
INSERT INTO events VALUES (52, 17, 22, 4, 1800000060000000, 1, 0,
  'ops/anna: succeeded: seen in the provider''s console');
INSERT INTO events VALUES (53, 18, 2, 1, 1800000060000000, 1, 1, '');
INSERT INTO events VALUES (54, 18, 13, 2, 1800000060000000, 1, 0,
  'done, but another id, amount or currency');
INSERT INTO events VALUES (55, 19, 2, 1, 1800000060000000, 1, 1, '');
INSERT INTO events VALUES (56, 20, 18, 1, 1800000060000000, 1, 0, '');
INSERT INTO events VALUES (57, 21, 23, 3, 1802592060000000, 1, 0, '');
CREATE TABLE intents (row INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  scope BLOB NOT NULL UNIQUE CHECK (length(scope) = 16), principal TEXT NOT NULL, key TEXT NOT NULL,
  endpoint INTEGER NOT NULL, state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 7), version INTEGER
  NOT NULL, rule_id INTEGER NOT NULL, secret_id INTEGER NOT NULL, fingerprint BLOB NOT NULL, epoch
  INTEGER NOT NULL, token BLOB NOT NULL, last_command BLOB NOT NULL, step INTEGER NOT NULL,
  incarnation INTEGER NOT NULL, lease_end_us INTEGER NOT NULL, due_us INTEGER NOT NULL, send_count
  INTEGER NOT NULL, ask_count INTEGER NOT NULL, created_us INTEGER NOT NULL, updated_us INTEGER NOT
  NULL, patience_us INTEGER NOT NULL, unknown_since_us INTEGER NOT NULL, finished_us INTEGER NOT
  NULL, expires_us INTEGER NOT NULL, problem INTEGER NOT NULL, effect_kind INTEGER NOT NULL,
  effect_id TEXT NOT NULL, entry TEXT NOT NULL, account TEXT NOT NULL, region TEXT NOT NULL,
  amount_minor INTEGER NOT NULL, currency TEXT NOT NULL, reference TEXT NOT NULL, close_asked
  INTEGER NOT NULL, answer_status INTEGER NOT NULL, answer_headers TEXT NOT NULL, answer_body TEXT
  NOT NULL, payment_row INTEGER NOT NULL, payment_id BLOB NOT NULL, refund_row INTEGER NOT NULL,
  refund_id BLOB NOT NULL, request TEXT NOT NULL, trace TEXT NOT NULL DEFAULT '', reap_us INTEGER
  NOT NULL DEFAULT 0 CHECK (reap_us >= 0)) STRICT;
INSERT INTO intents VALUES (1, X'01000000000000000000000000000002',
  X'9B83B8EE9C56DA4C742489366F87D7CC', 'merchant-1', 'succeeded', 1, 5, 2, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000001', X'01000000000000000000000000000005', 0, 1, 0, 0, 1, 0,
  1800000000000000, 1800000000001000, 1800000010000000, 0, 1800000000001000, 1802592000001000, 0, 1,
  'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', 'provider-77', 0, 201,
  'Content-Type: application/json' || char(10) ||
  'Location: /v1/payments/01000000-0000-0000-0000-000000000003' || char(10),
  '{"id":"01000000-0000-0000-0000-000000000003","order_no":"succeeded","s' ||
  'tate":"captured","amount":"12.50","currency":"EUR","capture":"automati' ||
  'c","authorized":"12.50","captured":"12.50","capture_pending":"0.00","r' ||
  'eleased":"0.00","refunded":"0.00","refund_pending":"0.00","provider":"' ||
  'sandbox","reference":"provider-77","description":"Two pairs of shoes",' ||
  '"created":"2027-01-15T08:00:00.000000Z","updated":"2027-01-15T08:00:00' || '.001000Z"}' ||
  char(10), 1, X'01000000000000000000000000000003', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 succeeded', '', 1802592000001000);
INSERT INTO intents VALUES (2, X'0100000000000000000000000000000A',
  X'3D30990DA9BBE75CB0DD33A2DC8BFE22', 'merchant-1', 'failed', 1, 6, 2, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000009', X'0100000000000000000000000000000D', 0, 1, 0, 0, 1, 0,
  1800000000002000, 1800000000003000, 1800000010002000, 0, 1800000000003000, 1802592000003000, 9, 1,
  'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', '', 0, 402,
  'Content-Type: application/problem+json' || char(10),
  '{"type":"urn:idem:problem:declined","title":"The provider declined","s' ||
  'tatus":402,"detail":"The provider refused and no money moved. This key' ||
  ' is over; another try is a new intent under a new key.","effect":"none' ||
  '","retry":"new-key","operation":"/v1/operations/01000000-0000-0000-000' ||
  '0-00000000000a","payment":"/v1/payments/01000000-0000-0000-0000-000000' ||
  '00000b","provider_code":"card_declined","provider_message":"the card w' || 'as declined"}' ||
  char(10), 2, X'0100000000000000000000000000000B', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 failed', '', 1802592000003000);
INSERT INTO intents VALUES (3, X'01000000000000000000000000000012',
  X'3B9131B48728FE4CD21F694749FF1644', 'merchant-1', 'dispatched', 1, 2, 1, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000011', X'01000000000000000000000000000011', 1, 1, 1800000060004000,
  1800000060004000, 1, 0, 1800000000004000, 1800000000004000, 1800000010004000, 0, 0, 0, 0, 1,
  'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', '', 0, 0, '', '', 3,
  X'01000000000000000000000000000013', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 dispatched', '', 0);
INSERT INTO intents VALUES (4, X'01000000000000000000000000000016',
  X'477206CBF93702DD1487AF714EE3F251', 'merchant-1', 'claimed', 1, 1, 1, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000015', X'01000000000000000000000000000015', 1, 1, 0,
  1800000000005000, 0, 0, 1800000000005000, 1800000000005000, 1800000010005000, 0, 0, 0, 0, 1,
  'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', '', 0, 0, '', '', 4,
  X'01000000000000000000000000000017', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 claimed', '', 0);
INSERT INTO intents VALUES (5, X'0100000000000000000000000000001A',
  X'765F0F7683A2AA41D185A7F8220CA7F7', 'merchant-1', 'unknown', 1, 3, 2, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000019', X'0100000000000000000000000000001D', 2, 1, 0,
  1800000000007000, 1, 0, 1800000000006000, 1800000000007000, 1800000010006000, 1800000000007000, 0,
  0, 0, 1, 'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', '', 0, 0, '', '',
  5, X'0100000000000000000000000000001B', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 unknown', '', 0);
INSERT INTO intents VALUES (6, X'01000000000000000000000000000022',
  X'E9E236F7B5EC5014A81FB467BA42CDC4', 'merchant-1', 'parked', 1, 4, 3, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000021', X'01000000000000000000000000000029', 2, 1, 0,
  1800086400010000, 1, 0, 1800000000008000, 1800000000010000, 1800000010008000, 1800000000009000, 0,
  0, 0, 1, 'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', '', 0, 0, '', '',
  6, X'01000000000000000000000000000023', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 parked', '', 0);
INSERT INTO intents VALUES (7, X'0100000000000000000000000000002E',
  X'A7349D2C3AA648DAA2D9DC7BE67E6A3E', 'merchant-1', 'released', 1, 7, 2, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'0100000000000000000000000000002D', X'01000000000000000000000000000031', 0, 1, 0,
  1800086400011000, 1, 0, 1800000000010000, 1800000000011000, 1800000000010000, 0, 0, 0, 32, 1,
  'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', '', 0, 0, '', '', 7,
  X'0100000000000000000000000000002F', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 released', '', 0);
INSERT INTO intents VALUES (8, X'01000000000000000000000000000036',
  X'3CAA19C84616F32F9B43A767741FEBC2', 'merchant-1', 'abandoned', 1, 6, 1, 0, 0,
  X'0000000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000035', X'01000000000000000000000000000035', 0, 1, 0, 0, 0, 0,
  1800000000012000, 1800000000012000, 0, 0, 1800000000012000, 1802592000012000, 20, 0, '', '', '',
  '', 0, '', '', 0, 409, 'Content-Type: application/problem+json' || char(10),
  '{"type":"urn:idem:problem:abandoned","title":"The key was given up bef' ||
  'ore anything happened","status":409,"detail":"Nothing was executed und' ||
  'er this key and nothing will be. Use a new key for a new intent.","eff' ||
  'ect":"none","retry":"new-key","operation":"/v1/operations/01000000-000' ||
  '0-0000-0000-000000000036"}' || char(10), 0, X'00000000000000000000000000000000', 0,
  X'00000000000000000000000000000000', '', '', 1802592000012000);
INSERT INTO intents VALUES (9, X'0100000000000000000000000000003A',
  X'014A7D5DC10B0C53D6DA1B9526BE785F', 'merchant-1', 'parked-then-settled', 1, 5, 4, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000039', X'01000000000000000000000000000045', 0, 1, 0, 0, 1, 0,
  1800000000012000, 1800000000015000, 1800000010012000, 1800000000013000, 1800000000015000,
  1802592000015000, 0, 1, 'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR',
  'provider-77', 0, 201, 'Content-Type: application/json' || char(10) ||
  'Location: /v1/payments/01000000-0000-0000-0000-00000000003b' || char(10),
  '{"id":"01000000-0000-0000-0000-00000000003b","order_no":"parked-then-s' ||
  'ettled","state":"captured","amount":"12.50","currency":"EUR","capture"' ||
  ':"automatic","authorized":"12.50","captured":"12.50","capture_pending"' ||
  ':"0.00","released":"0.00","refunded":"0.00","refund_pending":"0.00","p' ||
  'rovider":"sandbox","reference":"provider-77","description":"Two pairs ' ||
  'of shoes","created":"2027-01-15T08:00:00.012000Z","updated":"2027-01-1' ||
  '5T08:00:00.015000Z"}' || char(10), 8, X'0100000000000000000000000000003B', 0,
  X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 parked-then-settled', '', 1802592000015000);
INSERT INTO intents VALUES (10, X'0100000000000000000000000000004A',
  X'E2C552E8BBB93E6ED7848C93B1C92C07', 'merchant-1', 'contradicted', 1, 6, 3, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000049', X'01000000000000000000000000000051', 0, 1, 0, 0, 1, 0,
  1800000000016000, 1800000000018000, 1800000010016000, 0, 1800000000017000, 1802592000017000, 9, 1,
  'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', '', 0, 402,
  'Content-Type: application/problem+json' || char(10),
  '{"type":"urn:idem:problem:declined","title":"The provider declined","s' ||
  'tatus":402,"detail":"The provider refused and no money moved. This key' ||
  ' is over; another try is a new intent under a new key.","effect":"none' ||
  '","retry":"new-key","operation":"/v1/operations/01000000-0000-0000-000' ||
  '0-00000000004a","payment":"/v1/payments/01000000-0000-0000-0000-000000' ||
  '00004b","provider_code":"card_declined","provider_message":"the card w' || 'as declined"}' ||
  char(10), 9, X'0100000000000000000000000000004B', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 contradicted', '', 1802592000017000);
INSERT INTO intents VALUES (11, X'01000000000000000000000000000056',
  X'CFC6AA310833372AC4EBB7E4F3AB06E4', 'merchant-1', 'refund', 4, 5, 2, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000055', X'01000000000000000000000000000059', 0, 1, 0, 0, 1, 0,
  1800000000019000, 1800000000020000, 1800000010019000, 0, 1800000000020000, 1802592000020000, 0, 5,
  'r0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 250, 'EUR', 'provider-77', 0, 201,
  'Content-Type: application/json' || char(10) ||
  'Location: /v1/refunds/01000000-0000-0000-0000-000000000057' || char(10),
  '{"id":"01000000-0000-0000-0000-000000000057","payment":"/v1/payments/0' ||
  '1000000-0000-0000-0000-000000000003","refund_no":"no-1","state":"succe' ||
  'eded","amount":"2.50","currency":"EUR","reference":"provider-77","crea' ||
  'ted":"2027-01-15T08:00:00.019000Z","updated":"2027-01-15T08:00:00.0200' || '00Z"}' || char(10),
  1, X'01000000000000000000000000000003', 1, X'01000000000000000000000000000057',
  'refund r0123456789abcdefghjkmnpqrs 250 succeeded', '', 1802592000020000);
INSERT INTO intents VALUES (12, X'0100000000000000000000000000005E',
  X'82EFC92560D5F85707A83C276CF2AEAE', 'merchant-1', 'refund-open', 4, 2, 1, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'0100000000000000000000000000005D', X'0100000000000000000000000000005D', 1, 1, 1800000060021000,
  1800000060021000, 1, 0, 1800000000021000, 1800000000021000, 1800000010021000, 0, 0, 0, 0, 5,
  'r0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 100, 'EUR', '', 0, 0, '', '', 1,
  X'01000000000000000000000000000003', 2, X'0100000000000000000000000000005F',
  'refund r0123456789abcdefghjkmnpqrs 100 succeeded', '', 0);
INSERT INTO intents VALUES (13, X'01000000000000000000000000000062',
  X'DD8ED9E7FA1A99B4C0678F65B98FAA37', 'merchant-1', 'authorized', 1, 5, 2, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000061', X'01000000000000000000000000000065', 0, 1, 0, 0, 1, 0,
  1800000000022000, 1800000000023000, 1800000010022000, 0, 1800000000023000, 1802592000023000, 0, 2,
  'a0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', 'provider-77', 0, 201,
  'Content-Type: application/json' || char(10) ||
  'Location: /v1/payments/01000000-0000-0000-0000-000000000063' || char(10),
  '{"id":"01000000-0000-0000-0000-000000000063","order_no":"authorized","' ||
  'state":"authorized","amount":"12.50","currency":"EUR","capture":"manua' ||
  'l","authorized":"12.50","captured":"0.00","capture_pending":"0.00","re' ||
  'leased":"0.00","refunded":"0.00","refund_pending":"0.00","provider":"s' ||
  'andbox","reference":"provider-77","description":"Two pairs of shoes","' ||
  'created":"2027-01-15T08:00:00.022000Z","updated":"2027-01-15T08:00:00.' || '023000Z"}' ||
  char(10), 10, X'01000000000000000000000000000063', 0, X'00000000000000000000000000000000',
  'authorize a0123456789abcdefghjkmnpqrs 1250 authorized', '', 1802592000023000);
INSERT INTO intents VALUES (14, X'0100000000000000000000000000006A',
  X'7534172A686ABA91546764FF06F8B14C', 'merchant-1', 'capture', 2, 5, 2, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000069', X'0100000000000000000000000000006D', 0, 1, 0, 0, 1, 0,
  1800000000024000, 1800000000025000, 1800000010024000, 0, 1800000000025000, 1802592000025000, 0, 3,
  'k0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 500, 'EUR', 'provider-77', 0, 200,
  'Content-Type: application/json' || char(10),
  '{"id":"01000000-0000-0000-0000-000000000063","order_no":"authorized","' ||
  'state":"partially_captured","amount":"12.50","currency":"EUR","capture' ||
  '":"manual","authorized":"12.50","captured":"5.00","capture_pending":"0' ||
  '.00","released":"0.00","refunded":"0.00","refund_pending":"0.00","prov' ||
  'ider":"sandbox","reference":"provider-77","description":"Two pairs of ' ||
  'shoes","created":"2027-01-15T08:00:00.022000Z","updated":"2027-01-15T0' || '8:00:00.025000Z"}' ||
  char(10), 10, X'01000000000000000000000000000063', 0, X'00000000000000000000000000000000',
  'capture k0123456789abcdefghjkmnpqrs 500 authorized', '', 1802592000025000);
INSERT INTO intents VALUES (15, X'01000000000000000000000000000072',
  X'3052B91B7C9A0D3989F8EFCEDF554568', 'merchant-1', 'authorized-2', 1, 5, 2, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000071', X'01000000000000000000000000000075', 0, 1, 0, 0, 1, 0,
  1800000000026000, 1800000000027000, 1800000010026000, 0, 1800000000027000, 1802592000027000, 0, 2,
  'a0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', 'provider-77', 0, 201,
  'Content-Type: application/json' || char(10) ||
  'Location: /v1/payments/01000000-0000-0000-0000-000000000073' || char(10),
  '{"id":"01000000-0000-0000-0000-000000000073","order_no":"authorized-2"' ||
  ',"state":"authorized","amount":"12.50","currency":"EUR","capture":"man' ||
  'ual","authorized":"12.50","captured":"0.00","capture_pending":"0.00","' ||
  'released":"0.00","refunded":"0.00","refund_pending":"0.00","provider":' ||
  '"sandbox","reference":"provider-77","description":"Two pairs of shoes"' ||
  ',"created":"2027-01-15T08:00:00.026000Z","updated":"2027-01-15T08:00:0' || '0.027000Z"}' ||
  char(10), 11, X'01000000000000000000000000000073', 0, X'00000000000000000000000000000000',
  'authorize a0123456789abcdefghjkmnpqrs 1250 authorized-2', '', 1802592000027000);
INSERT INTO intents VALUES (16, X'0100000000000000000000000000007A',
  X'6AD69D8981C4341D13370C5131613F67', 'merchant-1', 'cancel', 3, 5, 2, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'01000000000000000000000000000079', X'0100000000000000000000000000007D', 0, 1, 0, 0, 1, 0,
  1800000000028000, 1800000000029000, 1800000010028000, 0, 1800000000029000, 1802592000029000, 0, 4,
  'v0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', 'provider-77', 0, 200,
  'Content-Type: application/json' || char(10),
  '{"id":"01000000-0000-0000-0000-000000000073","order_no":"authorized-2"' ||
  ',"state":"canceled","amount":"12.50","currency":"EUR","capture":"manua' ||
  'l","authorized":"12.50","captured":"0.00","capture_pending":"0.00","re' ||
  'leased":"12.50","refunded":"0.00","refund_pending":"0.00","provider":"' ||
  'sandbox","reference":"provider-77","description":"Two pairs of shoes",' ||
  '"created":"2027-01-15T08:00:00.026000Z","updated":"2027-01-15T08:00:00' || '.029000Z"}' ||
  char(10), 11, X'01000000000000000000000000000073', 0, X'00000000000000000000000000000000',
  'cancel v0123456789abcdefghjkmnpqrs 1250 authorized-2', '', 1802592000029000);
INSERT INTO intents VALUES (17, X'010000000000000000000000000186AE',
  X'5A79FD621D3EAA43D3F5ED88C7EED773', 'merchant-1', 'resolved', 1, 5, 3, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'010000000000000000000000000186AD', X'010000000000000000000000000186B5', 0, 2, 0, 0, 1, 0,
  1800000060000000, 1800000060000000, 1800000070000000, 1800000060000000, 1800000060000000,
  1802592060000000, 0, 1, 'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR',
  'provider-9', 0, 201, 'Content-Type: application/json' || char(10) ||
  'Location: /v1/payments/01000000-0000-0000-0000-0000000186af' || char(10),
  '{"id":"01000000-0000-0000-0000-0000000186af","order_no":"resolved","st' ||
  'ate":"captured","amount":"12.50","currency":"EUR","capture":"automatic' ||
  '","authorized":"12.50","captured":"12.50","capture_pending":"0.00","re' ||
  'leased":"0.00","refunded":"0.00","refund_pending":"0.00","provider":"s' ||
  'andbox","reference":"provider-9","created":"2027-01-15T08:01:00.000000' ||
  'Z","updated":"2027-01-15T08:01:00.000000Z"}' || char(10), 12,
  X'010000000000000000000000000186AF', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 resolved', '', 1802592060000000);
INSERT INTO intents VALUES (18, X'010000000000000000000000000186BA',
  X'A058FE7E824D5067079D56F21E261311', 'merchant-1', 'parked-in-2', 1, 4, 2, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'010000000000000000000000000186B9', X'010000000000000000000000000186BD', 2, 2, 0,
  1800086460000000, 1, 0, 1800000060000000, 1800000060000000, 1800000070000000, 1800000060000000, 0,
  0, 0, 1, 'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', '', 0, 0, '', '',
  13, X'010000000000000000000000000186BB', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 parked-in-2', '', 0);
INSERT INTO intents VALUES (19, X'010000000000000000000000000186C2',
  X'B9D68BE386D330D42E364426A4E01DC4', 'merchant-1', 'open-in-2', 1, 2, 1, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'010000000000000000000000000186C1', X'010000000000000000000000000186C1', 1, 2, 1800000120000000,
  1800000120000000, 1, 0, 1800000060000000, 1800000060000000, 1800000070000000, 0, 0, 0, 0, 1,
  'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', '', 0, 0, '', '', 14,
  X'010000000000000000000000000186C3', 0, X'00000000000000000000000000000000',
  'charge c0123456789abcdefghjkmnpqrs 1250 open-in-2', '', 0);
INSERT INTO intents VALUES (20, X'010000000000000000000000000186C6',
  X'7B2572106E40597CD66DBD69D79A3D1E', 'merchant-1', 'abandoned-in-2', 1, 6, 1, 0, 0,
  X'0000000000000000000000000000000000000000000000000000000000000000', 1,
  X'010000000000000000000000000186C5', X'010000000000000000000000000186C5', 0, 2, 0, 0, 0, 0,
  1800000060000000, 1800000060000000, 0, 0, 1800000060000000, 1802592060000000, 20, 0, '', '', '',
  '', 0, '', '', 0, 409, 'Content-Type: application/problem+json' || char(10),
  '{"type":"urn:idem:problem:abandoned","title":"The key was given up bef' ||
  'ore anything happened","status":409,"detail":"Nothing was executed und' ||
  'er this key and nothing will be. Use a new key for a new intent.","eff' ||
  'ect":"none","retry":"new-key","operation":"/v1/operations/01000000-000' ||
  '0-0000-0000-0000000186c6"}' || char(10), 0, X'00000000000000000000000000000000', 0,
  X'00000000000000000000000000000000', '', '', 1802592060000000);
INSERT INTO intents VALUES (21, X'010000000000000000000000000186CA',
  X'F11E6A0C63B38D2A86F469DC8A6C315A', 'merchant-1', 'tombstone', 1, 5, 3, 1, 1,
  X'0900000000000000000000000000000000000000000000000000000000000000', 1,
  X'010000000000000000000000000186C9', X'010000000000000000000000000186D1', 0, 2, 0, 0, 1, 0,
  1800000060000000, 1802592060000000, 1800000070000000, 0, 1800000060000000, 1802592060000000, 0, 1,
  'c0123456789abcdefghjkmnpqrs', 'sandbox', 'acct-1', 'eu', 1250, 'EUR', 'provider-77', 0, 0, '',
  '', 15, X'010000000000000000000000000186CB', 0, X'00000000000000000000000000000000', '', '', 0);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('clock_seen_us', '1802592060000000');
INSERT INTO meta VALUES ('created_us', '1800000000000000');
INSERT INTO meta VALUES ('effect_secret_check',
  '0102030000000000000000000000000000000000000000000000000000000000');
INSERT INTO meta VALUES ('incarnation', '3');
INSERT INTO meta VALUES ('old_effect_ids', '1');
INSERT INTO meta VALUES ('reap_horizon_us', '1800000000029000');
INSERT INTO meta VALUES ('restored', '1');
INSERT INTO meta VALUES ('restored_at_us', '1802592060000000');
INSERT INTO meta VALUES ('restored_from_us', '1802592060000000');
INSERT INTO meta VALUES ('schema_version', '2');
INSERT INTO meta VALUES ('scope_rule', 'endpoint');
CREATE TABLE payments (row INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  version INTEGER NOT NULL, state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 9), principal TEXT NOT
  NULL, order_no TEXT NOT NULL, capture_mode INTEGER NOT NULL, amount_minor INTEGER NOT NULL CHECK
  (amount_minor > 0), currency TEXT NOT NULL, authorized_minor INTEGER NOT NULL CHECK
  (authorized_minor >= 0), captured_minor INTEGER NOT NULL CHECK (captured_minor >= 0),
  capture_pending_minor INTEGER NOT NULL CHECK (capture_pending_minor >= 0), released_minor INTEGER
  NOT NULL CHECK (released_minor >= 0), refunded_minor INTEGER NOT NULL CHECK (refunded_minor >= 0),
  refund_pending_minor INTEGER NOT NULL CHECK (refund_pending_minor >= 0), canceling INTEGER NOT
  NULL, entry TEXT NOT NULL, account TEXT NOT NULL, region TEXT NOT NULL, effect_id TEXT NOT NULL,
  reference TEXT NOT NULL, method TEXT NOT NULL, description TEXT NOT NULL, metadata TEXT NOT NULL,
  failure_code TEXT NOT NULL, created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, CHECK
  (captured_minor + capture_pending_minor + released_minor <= authorized_minor), CHECK
  (refunded_minor + refund_pending_minor <= captured_minor)) STRICT;
INSERT INTO payments VALUES (1, X'01000000000000000000000000000003', 5, 5, 'merchant-1',
  'succeeded', 1, 1250, 'EUR', 1250, 1250, 0, 0, 250, 100, 0, 'sandbox', 'acct-1', 'eu',
  'c0123456789abcdefghjkmnpqrs', 'provider-77', 'card-1', 'Two pairs of shoes', '', '',
  1800000000000000, 1800000000021000);
INSERT INTO payments VALUES (2, X'0100000000000000000000000000000B', 2, 7, 'merchant-1', 'failed',
  1, 1250, 'EUR', 0, 0, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu', 'c0123456789abcdefghjkmnpqrs', '',
  'card-1', 'Two pairs of shoes', '', 'card_declined', 1800000000002000, 1800000000003000);
INSERT INTO payments VALUES (3, X'01000000000000000000000000000013', 1, 1, 'merchant-1',
  'dispatched', 1, 1250, 'EUR', 0, 0, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu',
  'c0123456789abcdefghjkmnpqrs', '', 'card-1', 'Two pairs of shoes', '', '', 1800000000004000,
  1800000000004000);
INSERT INTO payments VALUES (4, X'01000000000000000000000000000017', 1, 1, 'merchant-1', 'claimed',
  1, 1250, 'EUR', 0, 0, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu', 'c0123456789abcdefghjkmnpqrs', '',
  'card-1', 'Two pairs of shoes', '', '', 1800000000005000, 1800000000005000);
INSERT INTO payments VALUES (5, X'0100000000000000000000000000001B', 1, 1, 'merchant-1', 'unknown',
  1, 1250, 'EUR', 0, 0, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu', 'c0123456789abcdefghjkmnpqrs', '',
  'card-1', 'Two pairs of shoes', '', '', 1800000000006000, 1800000000006000);
INSERT INTO payments VALUES (6, X'01000000000000000000000000000023', 1, 1, 'merchant-1', 'parked',
  1, 1250, 'EUR', 0, 0, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu', 'c0123456789abcdefghjkmnpqrs', '',
  'card-1', 'Two pairs of shoes', '', '', 1800000000008000, 1800000000008000);
INSERT INTO payments VALUES (7, X'0100000000000000000000000000002F', 2, 7, 'merchant-1', 'released',
  1, 1250, 'EUR', 0, 0, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu', 'c0123456789abcdefghjkmnpqrs', '',
  'card-1', 'Two pairs of shoes', '', 'not_executed', 1800000000010000, 1800000000011000);
INSERT INTO payments VALUES (8, X'0100000000000000000000000000003B', 2, 4, 'merchant-1',
  'parked-then-settled', 1, 1250, 'EUR', 1250, 1250, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu',
  'c0123456789abcdefghjkmnpqrs', 'provider-77', 'card-1', 'Two pairs of shoes', '', '',
  1800000000012000, 1800000000015000);
INSERT INTO payments VALUES (9, X'0100000000000000000000000000004B', 2, 7, 'merchant-1',
  'contradicted', 1, 1250, 'EUR', 0, 0, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu',
  'c0123456789abcdefghjkmnpqrs', '', 'card-1', 'Two pairs of shoes', '', 'card_declined',
  1800000000016000, 1800000000017000);
INSERT INTO payments VALUES (10, X'01000000000000000000000000000063', 4, 3, 'merchant-1',
  'authorized', 2, 1250, 'EUR', 1250, 500, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu',
  'a0123456789abcdefghjkmnpqrs', 'provider-77', 'card-1', 'Two pairs of shoes', '', '',
  1800000000022000, 1800000000025000);
INSERT INTO payments VALUES (11, X'01000000000000000000000000000073', 4, 8, 'merchant-1',
  'authorized-2', 2, 1250, 'EUR', 1250, 0, 0, 1250, 0, 0, 0, 'sandbox', 'acct-1', 'eu',
  'a0123456789abcdefghjkmnpqrs', 'provider-77', 'card-1', 'Two pairs of shoes', '', '',
  1800000000026000, 1800000000029000);
INSERT INTO payments VALUES (12, X'010000000000000000000000000186AF', 2, 4, 'merchant-1',
  'resolved', 1, 1250, 'EUR', 1250, 1250, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu',
  'c0123456789abcdefghjkmnpqrs', 'provider-9', 'card-1', '', '', '', 1800000060000000,
  1800000060000000);
INSERT INTO payments VALUES (13, X'010000000000000000000000000186BB', 1, 1, 'merchant-1',
  'parked-in-2', 1, 1250, 'EUR', 0, 0, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu',
  'c0123456789abcdefghjkmnpqrs', '', 'card-1', '', '', '', 1800000060000000, 1800000060000000);
INSERT INTO payments VALUES (14, X'010000000000000000000000000186C3', 1, 1, 'merchant-1',
  'open-in-2', 1, 1250, 'EUR', 0, 0, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu',
  'c0123456789abcdefghjkmnpqrs', '', 'card-1', '', '', '', 1800000060000000, 1800000060000000);
INSERT INTO payments VALUES (15, X'010000000000000000000000000186CB', 2, 4, 'merchant-1',
  'tombstone', 1, 1250, 'EUR', 1250, 1250, 0, 0, 0, 0, 0, 'sandbox', 'acct-1', 'eu',
  'c0123456789abcdefghjkmnpqrs', 'provider-77', 'card-1', '', '', '', 1800000060000000,
  1800000060000000);
CREATE TABLE refunds (row INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  version INTEGER NOT NULL, state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 3), payment_row
  INTEGER NOT NULL CHECK (payment_row > 0), payment_id BLOB NOT NULL, principal TEXT NOT NULL,
  refund_no TEXT NOT NULL, amount_minor INTEGER NOT NULL CHECK (amount_minor > 0), currency TEXT NOT
  NULL, reference TEXT NOT NULL, failure_code TEXT NOT NULL, created_us INTEGER NOT NULL, updated_us
  INTEGER NOT NULL) STRICT;
INSERT INTO refunds VALUES (1, X'01000000000000000000000000000057', 2, 2, 1,
  X'01000000000000000000000000000003', 'merchant-1', 'no-1', 250, 'EUR', 'provider-77', '',
  1800000000019000, 1800000000020000);
INSERT INTO refunds VALUES (2, X'0100000000000000000000000000005F', 1, 1, 1,
  X'01000000000000000000000000000003', 'merchant-1', 'no-2', 100, 'EUR', '', '', 1800000000021000,
  1800000000021000);
CREATE TABLE sends (intent_row INTEGER NOT NULL CHECK (intent_row > 0), no INTEGER NOT NULL CHECK
  (no > 0), epoch INTEGER NOT NULL, token BLOB NOT NULL, granted_us INTEGER NOT NULL, not_after_us
  INTEGER NOT NULL, state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 4), PRIMARY KEY (intent_row,
  no)) STRICT, WITHOUT ROWID;
INSERT INTO sends VALUES (1, 1, 1, X'01000000000000000000000000000001', 1800000000000000,
  1800000060000000, 4);
INSERT INTO sends VALUES (2, 1, 1, X'01000000000000000000000000000009', 1800000000002000,
  1800000060002000, 3);
INSERT INTO sends VALUES (3, 1, 1, X'01000000000000000000000000000011', 1800000000004000,
  1800000060004000, 1);
INSERT INTO sends VALUES (5, 1, 1, X'01000000000000000000000000000019', 1800000000006000,
  1800000060006000, 1);
INSERT INTO sends VALUES (6, 1, 1, X'01000000000000000000000000000021', 1800000000008000,
  1800000060008000, 1);
INSERT INTO sends VALUES (7, 1, 1, X'0100000000000000000000000000002D', 1800000000010000,
  1800000060010000, 2);
INSERT INTO sends VALUES (9, 1, 1, X'01000000000000000000000000000039', 1800000000012000,
  1800000060012000, 1);
INSERT INTO sends VALUES (10, 1, 1, X'01000000000000000000000000000049', 1800000000016000,
  1800000060016000, 3);
INSERT INTO sends VALUES (11, 1, 1, X'01000000000000000000000000000055', 1800000000019000,
  1800000060019000, 4);
INSERT INTO sends VALUES (12, 1, 1, X'0100000000000000000000000000005D', 1800000000021000,
  1800000060021000, 1);
INSERT INTO sends VALUES (13, 1, 1, X'01000000000000000000000000000061', 1800000000022000,
  1800000060022000, 4);
INSERT INTO sends VALUES (14, 1, 1, X'01000000000000000000000000000069', 1800000000024000,
  1800000060024000, 4);
INSERT INTO sends VALUES (15, 1, 1, X'01000000000000000000000000000071', 1800000000026000,
  1800000060026000, 4);
INSERT INTO sends VALUES (16, 1, 1, X'01000000000000000000000000000079', 1800000000028000,
  1800000060028000, 4);
INSERT INTO sends VALUES (17, 1, 1, X'010000000000000000000000000186AD', 1800000060000000,
  1800000120000000, 1);
INSERT INTO sends VALUES (18, 1, 1, X'010000000000000000000000000186B9', 1800000060000000,
  1800000120000000, 1);
INSERT INTO sends VALUES (19, 1, 1, X'010000000000000000000000000186C1', 1800000060000000,
  1800000120000000, 1);
CREATE TABLE stubs ( row INTEGER PRIMARY KEY, scope BLOB NOT NULL UNIQUE CHECK (length(scope) = 16),
  kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 5), effect_id TEXT NOT NULL, entry TEXT NOT NULL,
  account TEXT NOT NULL, region TEXT NOT NULL, order_no TEXT NOT NULL, payment_effect_id TEXT NOT
  NULL, amount_minor INTEGER NOT NULL CHECK (amount_minor >= 0), currency TEXT NOT NULL, reference
  TEXT NOT NULL, happened_us INTEGER NOT NULL, found_us INTEGER NOT NULL, applied INTEGER NOT NULL)
  STRICT;
INSERT INTO stubs VALUES (1, X'20E297F7A6C8678F1168D49C0CFE172C', 1, 'c43h9fxx6s1kry4b8tje0szgq5g',
  'sandbox', 'acct-1', 'eu', 'order-9', '', 500, 'EUR', 'provider-77', 1802592060000000,
  1802592060000000, 0);
CREATE UNIQUE INDEX payments_order ON payments (principal, order_no) WHERE state NOT IN (7, 8);
CREATE INDEX payments_order_past ON payments (principal, order_no) WHERE state IN (7, 8);
CREATE UNIQUE INDEX refunds_no ON refunds (payment_row, refund_no) WHERE refund_no <> '' AND state
  <> 3;
CREATE INDEX events_intent ON events (intent_row);
CREATE INDEX cases_intent ON cases (intent_row);
CREATE INDEX intents_due ON intents (due_us, state) WHERE due_us > 0;
CREATE INDEX intents_reap ON intents (reap_us) WHERE reap_us > 0;
CREATE INDEX intents_payment ON intents (payment_row) WHERE payment_row > 0;
CREATE INDEX cases_open ON cases (intent_row) WHERE decided_us = 0;
CREATE INDEX stubs_order ON stubs (order_no);
CREATE INDEX stubs_payment ON stubs (payment_effect_id);
COMMIT;
