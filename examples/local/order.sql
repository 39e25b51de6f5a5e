-- One order, once, however often this is run with the same key:
--
--     psql -X -q -A -t -v key=order-17 -v item=lamp -f order.sql "$DATABASE_URL"
--
-- Prints "order NUMBER", or "again" if somebody else is still at it.
\set ON_ERROR_STOP on
BEGIN;

SELECT outcome, outcome = 'execute' AS mine, outcome IN ('execute', 'replay') AS known, token,
       convert_from(body, 'UTF8') AS number
FROM idem.claim('shop', 'orders.create', :'key', sha256(convert_to(:'item', 'UTF8')),
                local_only => true) \gset

\if :mine
    INSERT INTO orders (item) VALUES (:'item') RETURNING number \gset
    SELECT idem.complete(:'token', status => 201, body => convert_to(:'number', 'UTF8'))
        AS told \gset
\endif

COMMIT;
\if :known
    \echo order :number
\else
    \echo again :outcome
\endif
