-- The tables of article.sql: a key with its answer, and a business row.
CREATE SCHEMA article;
CREATE TABLE article.keys (
    key text PRIMARY KEY,
    fingerprint bytea NOT NULL,
    state smallint NOT NULL,
    locked_at timestamptz,
    answer_status int,
    answer_body text,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE article.orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL,
    order_no text NOT NULL UNIQUE,
    amount bigint NOT NULL,
    currency text NOT NULL,
    description text,
    created_at timestamptz NOT NULL DEFAULT now()
);
