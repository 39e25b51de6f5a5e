-- The pattern of the articles about idempotency keys, as they have it: one transaction, five
-- statements, nothing outside the database. Keys and answer are as long as those of the payments.
\set a random(1, 9223372036854775806)
\set b random(1, 9223372036854775806)
BEGIN;
INSERT INTO article.keys (key, fingerprint, state, locked_at)
    VALUES ('bench-' || :a::bigint || '-' || :b::bigint, sha256('a request'), 1, now())
    ON CONFLICT (key) DO NOTHING;
INSERT INTO article.orders (key, order_no, amount, currency, description)
    VALUES ('bench-' || :a::bigint || '-' || :b::bigint, 'o-' || :b::bigint, 10000, 'CNY',
            'One pair of shoes');
UPDATE article.keys SET state = 2, locked_at = NULL, answer_status = 201,
        answer_body = rpad('{"id":"pay_0190a1b2c3d4e5f60718293a4b5c6d7e","status":"captured"', 560)
    WHERE key = 'bench-' || :a::bigint || '-' || :b::bigint;
COMMIT;
