-- The SQL face in batches, as a caller has them that collects what arrives while it writes: one
-- transaction with the records, the business rows and the answers of 64 requests.
-- records: 64
\set rows 64
\set a random(1, 9223372036854775806)
BEGIN;
WITH wanted AS (
    SELECT array_agg('bench-' || :a::bigint || '-' || gen_random_uuid()) AS keys,
           array_agg(sha256('a request')) AS prints
    FROM generate_series(1, :rows::int)
)
SELECT array_agg(w.keys[c.place] ORDER BY c.place) AS keys,
       array_agg(c.token ORDER BY c.place) AS tokens
FROM wanted w CROSS JOIN LATERAL idem.claim_many('bench', 'orders.create', w.keys, w.prints,
                                                 local_only => true) c
WHERE c.outcome = 'execute' \gset
INSERT INTO article.orders (key, order_no, amount, currency, description)
    SELECT k, 'o-' || k, 10000, 'CNY', 'One pair of shoes' FROM unnest(:keys::text[]) k;
SELECT count(*) FROM idem.complete_many(
    :tokens::uuid[], array_fill('succeeded'::text, ARRAY[:rows::int]),
    array_fill(201, ARRAY[:rows::int]), array_fill(''::text, ARRAY[:rows::int]),
    array_fill(convert_to(rpad(
        '{"id":"pay_0190a1b2c3d4e5f60718293a4b5c6d7e","status":"captured"', 560), 'UTF8'),
        ARRAY[:rows::int]));
COMMIT;
