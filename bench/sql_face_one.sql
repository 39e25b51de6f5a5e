-- The SQL face one by one: what article.sql does, with idem's functions (docs/sql.md).
\set a random(1, 9223372036854775806)
\set b random(1, 9223372036854775806)
BEGIN;
SELECT token FROM idem.claim('bench', 'orders.create', 'bench-' || :a::bigint || '-' || :b::bigint,
                             sha256('a request'), local_only => true) \gset
INSERT INTO article.orders (key, order_no, amount, currency, description)
    VALUES ('bench-' || :a::bigint || '-' || :b::bigint, 'o-' || :b::bigint, 10000, 'CNY',
            'One pair of shoes');
SELECT idem.complete(:token::uuid, status => 201, body => convert_to(
    rpad('{"id":"pay_0190a1b2c3d4e5f60718293a4b5c6d7e","status":"captured"', 560), 'UTF8'));
COMMIT;
