-- idem.sql - an idempotency key in the caller's own transaction, for PostgreSQL 15 and later.
--
--     psql -v ON_ERROR_STOP=1 -f idem.sql postgres://admin@host/database
--
-- Installs, or brings up to date, the functions of docs/sql.md in the schema "idem". It may run
-- again at any time; it is one transaction; it goes forward only and refuses what a newer version
-- has made. The service's tables, which may be in the same schema, are not touched, and the
-- service never looks at these.
--
-- A record is one intent of the caller's code, named by (principal, endpoint, key) and bound to a
-- fingerprint of the request. It changes only inside the caller's transaction, so the record, the
-- caller's business rows and the answer change together or not at all.
--
--     absent, RELEASED  --claim-->     CLAIMED        nothing was sent
--     CLAIMED           --dispatch-->  DISPATCHED     it may have happened
--     DISPATCHED        --mark-->      CLAIMED        the outside step is done
--     CLAIMED           --lease over-> claim takes it over, if it is local only; else UNKNOWN
--     DISPATCHED        --lease over-> UNKNOWN        only evidence, or the attempt itself, ends it
--     CLAIMED           --release-->   RELEASED       nothing happened: the next claim executes
--     DISPATCHED, UNKNOWN --release, not executed-->  RELEASED
--     UNKNOWN, ...      --settle: executed-->         RELEASED, behind the step that is done
--     UNKNOWN           --settle: not executed-->     RELEASED
--     any of them       --complete, settle-->         SUCCEEDED | FAILED
--     SUCCEEDED, FAILED --retention--> EXPIRED        the verdict stays; after 400 days: absent
--
-- 1. At most one caller is told to execute while a lease lives: the unique constraint decides who
--    inserts; whoever takes over holds the row's lock, and makes a new token.
-- 2. A write needs the current token, compared under that lock; only evidence needs none.
-- 3. DISPATCHED never becomes a second run by time, only UNKNOWN does.
-- 4. A final answer is not written again. What contradicts it is kept beside it.
-- 5. A state counts as it is now: a lease or a retention that is over is over, written or not.
-- 6. Whoever waits for another transaction waits for the caller's lock_timeout, 5 seconds if it
--    is 0, inside a subtransaction: the caller's transaction stays usable.
-- 7. Who may do what is decided by session_user, which SET ROLE does not change: once by the
--    functions, once by row security.
--
-- No literal here has a backslash in it: callers choose standard_conforming_strings.

BEGIN;

-- ---- roles, schema, version ---------------------------------------------------------------------

SELECT pg_advisory_xact_lock(hashtextextended('idem.sql', 0));

DO $$
DECLARE
    name text;
BEGIN
    IF current_setting('server_version_num')::int < 150000 THEN
        RAISE EXCEPTION 'idem needs PostgreSQL 15 or later; nothing was changed';
    END IF;
    IF getdatabaseencoding() <> 'UTF8' THEN
        RAISE EXCEPTION 'idem needs a database in UTF8; nothing was changed';
    END IF;
    IF current_setting('fsync') = 'off' OR current_setting('full_page_writes') = 'off' THEN
        RAISE WARNING 'fsync or full_page_writes is off: a crash loses what this server confirmed';
    END IF;
    FOREACH name IN ARRAY ARRAY['idem_owner', 'idem_caller', 'idem_operator'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        END IF;
    END LOOP;
    IF EXISTS (SELECT FROM pg_roles
               WHERE rolname = 'idem_owner' AND (rolcanlogin OR rolsuper OR rolbypassrls)) THEN
        RAISE EXCEPTION 'the role idem_owner can log in or get round row security; nothing was '
            'changed' USING HINT = 'ALTER ROLE idem_owner NOLOGIN NOSUPERUSER NOBYPASSRLS';
    END IF;
    PERFORM set_config('idem.lent_to', '', true);
    -- From 16 on whoever has made a role is a member that may not become it.
    IF NOT pg_has_role(current_user, 'idem_owner',
                       CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER'
                            ELSE 'SET' END) THEN
        EXECUTE format('GRANT idem_owner TO %I', current_user);
        PERFORM set_config('idem.lent_to', current_user, true);
    END IF;
END
$$;

CREATE SCHEMA IF NOT EXISTS idem;
GRANT USAGE, CREATE ON SCHEMA idem TO idem_owner;
GRANT USAGE ON SCHEMA idem TO idem_caller, idem_operator;

SET LOCAL ROLE idem_owner;
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE TABLE IF NOT EXISTS idem.local_meta (key text COLLATE "C" PRIMARY KEY, value text NOT NULL);

DO $$
DECLARE
    version int := coalesce((SELECT value::int FROM idem.local_meta WHERE key = 'schema'), 0);
BEGIN
    IF version > 1 THEN
        RAISE EXCEPTION 'the functions here are of version %, this file is of version 1; nothing '
            'was changed', version USING HINT = 'Use the idem.sql of the newer release.';
    END IF;
    IF version = 1 THEN
        RETURN;
    END IF;

    -- States: 1 claimed, 2 dispatched, 3 unknown, 4 released, 5 succeeded, 6 failed, 7 expired.
    CREATE TABLE idem.local_records (
        row bigint PRIMARY KEY,
        id uuid NOT NULL,
        principal text COLLATE "C" NOT NULL,
        endpoint text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        fingerprint bytea NOT NULL,
        state smallint NOT NULL,
        version bigint NOT NULL DEFAULT 1,
        local_only boolean NOT NULL,
        epoch int NOT NULL DEFAULT 1,
        token uuid,                 -- Of the current attempt; NULL: evidence took it away.
        lease_end timestamptz,      -- Since when it is due, if that has passed; NULL: final.
        effect text COLLATE "C",    -- Dispatched and not marked since; '': it has no name.
        step text COLLATE "C",
        step_data bytea,
        succeeded boolean,          -- The verdict; stays when the answer has expired.
        answer_status smallint,
        answer_headers text,
        answer_body bytea,
        evidence_by text,
        evidence_reason text,
        evidence_role text,
        contradiction text,         -- The first that came after the end, and nothing else.
        contradiction_by text,
        contradiction_reason text,
        contradiction_role text,
        contradiction_at timestamptz,
        created timestamptz NOT NULL,
        updated timestamptz NOT NULL,
        finished timestamptz,
        expires timestamptz,
        CONSTRAINT local_records_scope UNIQUE (principal, endpoint, key),
        CONSTRAINT local_records_sound CHECK ( -- One: each costs microseconds at every write.
            state BETWEEN 1 AND 7 AND (state < 5) = (succeeded IS NULL)
            AND (state IN (5, 6)) = (answer_status IS NOT NULL)
            AND (state < 5) = (lease_end IS NOT NULL))
    ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05,
            autovacuum_analyze_scale_factor = 0.05);

    -- Tokens carry the row's number, so that no second unique index is needed.
    CREATE SEQUENCE idem.local_rows AS bigint MAXVALUE 281474976710655;

    CREATE INDEX local_records_due ON idem.local_records (lease_end, row)
        WHERE state < 4 OR (state = 4 AND step IS NOT NULL);
    CREATE INDEX local_records_retention ON idem.local_records (state, expires) WHERE state > 4;

    CREATE TABLE idem.local_grants (
        role text COLLATE "C" NOT NULL, -- A role that logs in, by name.
        principal text COLLATE "C" NOT NULL,
        PRIMARY KEY (role, principal)
    );

    INSERT INTO idem.local_meta VALUES ('schema', '1');
END
$$;

-- ---- who may ------------------------------------------------------------------------------------

-- A login role acts for the principal of its own name, for those granted to it, and an operator
-- for all. session_user: neither SET ROLE nor a function's owner changes it.
CREATE OR REPLACE FUNCTION idem.local_may(wanted text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF wanted = session_user::text OR pg_has_role(session_user, 'idem_operator', 'MEMBER') THEN
        RETURN true;
    END IF;
    RETURN EXISTS (SELECT FROM idem.local_grants g
                   WHERE g.role = session_user::text AND g.principal = wanted);
END
$$;

ALTER TABLE idem.local_records ENABLE ROW LEVEL SECURITY;
ALTER TABLE idem.local_records FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS local_records_own ON idem.local_records;
CREATE POLICY local_records_own ON idem.local_records USING (idem.local_may(principal));

-- ---- small parts --------------------------------------------------------------------------------

-- 48 bits of row number, then 74 random ones.
CREATE OR REPLACE FUNCTION idem.local_token(of_row bigint) RETURNS uuid
LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex(of_row), 12, '0')
            || substr(replace(gen_random_uuid()::text, '-', ''), 13))::uuid
$$;

CREATE OR REPLACE FUNCTION idem.local_token_row(of_token uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT ('x' || substr(of_token::text, 1, 8) || substr(of_token::text, 10, 4))::bit(48)::bigint
$$;

CREATE OR REPLACE FUNCTION idem.local_effect_id(id uuid, effect text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN effect = '' THEN id::text ELSE id::text || ':' || effect END
$$;

CREATE OR REPLACE FUNCTION idem.local_word(state int) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT (ARRAY['claimed', 'dispatched', 'unknown', 'released', 'succeeded', 'failed',
                  'expired'])[state]
$$;

-- The state as it is at that time, whether or not somebody has written it.
CREATE OR REPLACE FUNCTION idem.local_state(
    state int, local_only boolean, lease_end timestamptz, expires timestamptz, at timestamptz)
RETURNS int
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN state = 1 AND NOT local_only AND lease_end <= at THEN 3
                WHEN state = 2 AND lease_end <= at THEN 3
                WHEN state IN (5, 6) AND expires <= at THEN 7
                ELSE state END
$$;

CREATE OR REPLACE FUNCTION idem.local_check_word(value text, what text, max int) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF value IS NULL OR length(value) > max OR value COLLATE "C" !~ '^[!-~]+$' THEN
        RAISE EXCEPTION 'idem: % must have 1 to % visible ASCII characters; nothing was written',
            what, max USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION idem.local_check(good boolean, must text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF good IS NOT TRUE THEN
        RAISE EXCEPTION 'idem: %; nothing was written', must
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;

-- The caller's COMMIT must survive a crash: an acknowledged dispatch that is lost is sent twice.
CREATE OR REPLACE FUNCTION idem.local_durable() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION idem.local_enter(principal text, endpoint text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM idem.local_check_word(principal, 'principal', 64);
    PERFORM idem.local_check_word(endpoint, 'endpoint', 64);
    IF idem.local_may(principal) IS NOT TRUE THEN
        RAISE EXCEPTION 'idem: role % may not act for %; nothing was looked up or written',
            session_user, principal USING ERRCODE = 'insufficient_privilege',
            HINT = 'An operator can allow it: SELECT idem.allow(role, principal).';
    END IF;
    PERFORM idem.local_durable();
END
$$;

-- How long to wait for other transactions, from here to the end of the subtransaction or until it
-- is set again: the caller's own limit, or ours where it has none. Returns what it was.
CREATE OR REPLACE FUNCTION idem.local_patience() RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    before text := current_setting('lock_timeout');
BEGIN
    IF before = '0' THEN
        PERFORM set_config('lock_timeout', '5s', true);
    END IF;
    RETURN before;
END
$$;

-- The record of a token, locked. No row: nobody's (row is NULL). State 0: another transaction has
-- it for longer than the caller wants to wait.
CREATE OR REPLACE FUNCTION idem.local_hold(of_token uuid) RETURNS idem.local_records
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    at_row bigint := idem.local_token_row(of_token);
    rec idem.local_records;
    before text;
BEGIN
    PERFORM idem.local_durable();
    SELECT * INTO rec FROM idem.local_records r WHERE r.row = at_row FOR UPDATE SKIP LOCKED;
    IF FOUND THEN -- As nearly always, and without a subtransaction.
        RETURN rec;
    END IF;
    BEGIN
        before := idem.local_patience();
        SELECT * INTO rec FROM idem.local_records r WHERE r.row = at_row FOR UPDATE;
        PERFORM set_config('lock_timeout', before, true);
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        rec.state := 0;
    END;
    RETURN rec;
END
$$;

-- Likewise by name.
CREATE OR REPLACE FUNCTION idem.local_hold_named(of_principal text, of_endpoint text, of_key text)
RETURNS idem.local_records
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    rec idem.local_records;
    before text;
BEGIN
    BEGIN
        before := idem.local_patience();
        SELECT * INTO rec FROM idem.local_records r
        WHERE r.principal = of_principal AND r.endpoint = of_endpoint AND r.key = of_key
        FOR UPDATE;
        PERFORM set_config('lock_timeout', before, true);
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        rec.state := 0;
    END;
    RETURN rec;
END
$$;

-- ---- claim --------------------------------------------------------------------------------------

-- A new record, unless there is one; the unique constraint decides, behind whoever is inserting it.
-- row NULL: there is one.
CREATE OR REPLACE FUNCTION idem.local_insert(
    of_principal text, of_endpoint text, of_key text, of_fingerprint bytea,
    lease interval, for_local_only boolean)
RETURNS idem.local_records
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    before text := idem.local_patience();
    at_row bigint := nextval('idem.local_rows');
    now timestamptz := clock_timestamp();
    made idem.local_records;
BEGIN
    INSERT INTO idem.local_records AS r
        (row, id, principal, endpoint, key, fingerprint, state, local_only, token, lease_end,
         created, updated)
    VALUES (at_row, gen_random_uuid(), of_principal, of_endpoint, of_key, of_fingerprint, 1,
            for_local_only, idem.local_token(at_row), now + lease, now, now)
    ON CONFLICT ON CONSTRAINT local_records_scope DO NOTHING
    RETURNING r.* INTO made;
    PERFORM set_config('lock_timeout', before, true);
    IF made.row IS NOT NULL AND clock_timestamp() - now > '100 ms' THEN -- It waited meanwhile.
        UPDATE idem.local_records r SET lease_end = clock_timestamp() + lease
        WHERE r.row = made.row RETURNING * INTO made;
    END IF;
    RETURN made;
END
$$;

-- What a claim finds: 'mismatch', 'replay', 'expired', 'unknown', 'in_progress', or what it has to
-- write: 'take', 'lose' (it has become unknown).
CREATE OR REPLACE FUNCTION idem.local_finding(
    rec idem.local_records, of_fingerprint bytea, at timestamptz)
RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF rec.fingerprint <> of_fingerprint THEN
        RETURN 'mismatch';
    END IF;
    CASE idem.local_state(rec.state, rec.local_only, rec.lease_end, rec.expires, at)
        WHEN 1 THEN RETURN CASE WHEN rec.lease_end <= at THEN 'take' ELSE 'in_progress' END;
        WHEN 2 THEN RETURN 'in_progress';
        WHEN 3 THEN RETURN CASE WHEN rec.state = 3 THEN 'unknown' ELSE 'lose' END;
        WHEN 4 THEN RETURN 'take';
        WHEN 7 THEN RETURN 'expired';
        ELSE RETURN 'replay';
    END CASE;
END
$$;

-- The record as it is after the claim, and what its claimer is told. rec.row NULL: another
-- transaction has it.
CREATE OR REPLACE FUNCTION idem.local_claim(
    of_principal text, of_endpoint text, of_key text, of_fingerprint bytea,
    lease interval, for_local_only boolean, OUT finding text, OUT rec idem.local_records)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    FOR round IN 1..3 LOOP -- More than one only if a reaper deletes it in between.
        SELECT * INTO rec FROM idem.local_records r
        WHERE r.principal = of_principal AND r.endpoint = of_endpoint AND r.key = of_key;
        IF NOT FOUND THEN
            BEGIN
                rec := idem.local_insert(of_principal, of_endpoint, of_key, of_fingerprint,
                                         lease, for_local_only);
            EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
                finding := 'in_progress';
                RETURN;
            END;
            IF rec.row IS NOT NULL THEN
                finding := 'execute';
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        finding := idem.local_finding(rec, of_fingerprint, clock_timestamp());
        IF finding NOT IN ('take', 'lose') THEN -- No lock: a holder must not wait for who asks.
            RETURN;
        END IF;
        rec := idem.local_hold_named(of_principal, of_endpoint, of_key);
        IF rec.state = 0 THEN
            finding := 'in_progress';
            RETURN;
        END IF;
        IF rec.row IS NOT NULL THEN
            finding := idem.local_finding(rec, of_fingerprint, clock_timestamp());
            IF finding = 'take' THEN
                finding := 'execute';
                UPDATE idem.local_records r
                SET state = 1, version = r.version + 1, epoch = r.epoch + 1,
                    local_only = for_local_only, token = idem.local_token(r.row),
                    lease_end = clock_timestamp() + lease, updated = clock_timestamp()
                WHERE r.row = rec.row RETURNING * INTO rec;
            ELSIF finding = 'lose' THEN
                finding := 'unknown';
                UPDATE idem.local_records r
                SET state = 3, version = r.version + 1, updated = clock_timestamp()
                WHERE r.row = rec.row RETURNING * INTO rec;
            END IF;
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'idem: the record comes and goes; nothing was written'
        USING ERRCODE = 'serialization_failure';
END
$$;

-- Asks for the right to execute. Outcomes:
--     execute      yes: token, epoch, id; step and step_data of the last recovery point
--     replay       it is final: verdict, status, headers, body
--     in_progress  somebody else has it; again in retry_after seconds
--     unknown      it may have happened: effect_id; only evidence (settle) leads on
--     mismatch     the key belongs to another request
--     expired      it was final; the verdict is all that is left
CREATE OR REPLACE FUNCTION idem.claim(
    principal text, endpoint text, key text, fingerprint bytea,
    lease interval DEFAULT '60 s', local_only boolean DEFAULT false,
    OUT outcome text, OUT token uuid, OUT epoch int, OUT id uuid, OUT effect_id text,
    OUT step text, OUT step_data bytea, OUT verdict text, OUT status int, OUT headers text,
    OUT body bytea, OUT retry_after int)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
    rec idem.local_records;
BEGIN
    PERFORM idem.local_enter(principal, endpoint);
    PERFORM idem.local_check_word(key, 'key', 255);
    PERFORM idem.local_check(octet_length(fingerprint) BETWEEN 1 AND 64,
                             'fingerprint must have 1 to 64 bytes');
    PERFORM idem.local_check(lease BETWEEN '1 s' AND '24 h', 'lease must be 1 second to 24 hours');
    PERFORM idem.local_check(local_only IS NOT NULL, 'local_only must be true or false');

    SELECT c.* INTO found
    FROM idem.local_claim(principal, endpoint, key, fingerprint, lease, local_only) c;
    outcome := found.finding;
    rec := found.rec;
    CASE outcome
        WHEN 'execute' THEN
            token := rec.token;
            epoch := rec.epoch;
            id := rec.id;
            step := rec.step;
            step_data := rec.step_data;
        WHEN 'replay' THEN
            id := rec.id;
            verdict := idem.local_word(rec.state);
            status := rec.answer_status;
            headers := rec.answer_headers;
            body := rec.answer_body;
        WHEN 'expired' THEN
            id := rec.id;
            verdict := CASE WHEN rec.succeeded THEN 'succeeded' ELSE 'failed' END;
        WHEN 'unknown' THEN
            id := rec.id;
            effect_id := idem.local_effect_id(rec.id, rec.effect);
        WHEN 'in_progress' THEN
            retry_after := greatest(1, ceil(coalesce(
                extract(epoch FROM rec.lease_end - clock_timestamp()), 1))::int);
        ELSE
            NULL;
    END CASE;
END
$$;

-- ---- with the token -----------------------------------------------------------------------------

-- Before anything outside is asked to happen, and committed before it. effect_id goes along as the
-- other side's idempotency key. ok | already | superseded | other_effect | local_only | busy
CREATE OR REPLACE FUNCTION idem.dispatch(
    token uuid, effect text DEFAULT NULL, OUT outcome text, OUT effect_id text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := coalesce(effect, '');
    rec idem.local_records;
BEGIN
    IF name <> '' THEN
        PERFORM idem.local_check_word(name, 'effect', 64);
        PERFORM idem.local_check(position(':' IN name) = 0, 'effect may not contain a colon');
    END IF;
    rec := idem.local_hold(token);
    IF rec.state = 0 THEN
        outcome := 'busy';
    ELSIF rec.token IS DISTINCT FROM token OR rec.state NOT IN (1, 2)
          OR rec.lease_end <= clock_timestamp() THEN
        outcome := 'superseded';
    ELSIF rec.local_only THEN
        outcome := 'local_only';
    ELSIF rec.state = 2 AND rec.effect <> name THEN
        outcome := 'other_effect';
    ELSIF rec.state = 2 THEN
        outcome := 'already';
        effect_id := idem.local_effect_id(rec.id, name);
    ELSE
        outcome := 'ok';
        effect_id := idem.local_effect_id(rec.id, name);
        UPDATE idem.local_records r
        SET state = 2, version = r.version + 1, effect = name, updated = clock_timestamp()
        WHERE r.row = rec.row;
    END IF;
END
$$;

-- Still at it: the lease ends that much later than now. ok | superseded | busy
CREATE OR REPLACE FUNCTION idem.heartbeat(
    token uuid, lease interval DEFAULT '60 s', OUT outcome text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rec idem.local_records;
BEGIN
    PERFORM idem.local_check(lease BETWEEN '1 s' AND '24 h', 'lease must be 1 second to 24 hours');
    rec := idem.local_hold(token);
    IF rec.state = 0 THEN
        outcome := 'busy';
    ELSIF rec.token IS DISTINCT FROM token OR rec.state NOT IN (1, 2)
          OR rec.lease_end <= clock_timestamp() THEN
        outcome := 'superseded';
    ELSE
        outcome := 'ok';
        UPDATE idem.local_records r
        SET lease_end = greatest(r.lease_end, clock_timestamp() + heartbeat.lease),
            version = r.version + 1, updated = clock_timestamp()
        WHERE r.row = rec.row;
    END IF;
END
$$;

-- This step is done, in the same transaction as what it did here; after a dispatch: the outside
-- step is done. A later attempt is told step and data. `already`: roll back, it was done before.
-- ok | already | superseded | busy
CREATE OR REPLACE FUNCTION idem.mark(
    token uuid, step text, data bytea DEFAULT NULL, lease interval DEFAULT '60 s',
    OUT outcome text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rec idem.local_records;
BEGIN
    PERFORM idem.local_check_word(step, 'step', 64);
    PERFORM idem.local_check(octet_length(coalesce(data, '')) <= 65536,
                             'data may have at most 64 KiB');
    PERFORM idem.local_check(lease BETWEEN '1 s' AND '24 h', 'lease must be 1 second to 24 hours');
    rec := idem.local_hold(token);
    IF rec.state = 0 THEN
        outcome := 'busy';
    ELSIF rec.token IS DISTINCT FROM token OR rec.state NOT IN (1, 2, 3) THEN
        outcome := 'superseded';
    ELSIF rec.step = mark.step THEN
        outcome := 'already';
    ELSE
        outcome := 'ok';
        UPDATE idem.local_records r
        SET state = 1, version = r.version + 1, effect = NULL, step = mark.step,
            step_data = mark.data, updated = clock_timestamp(),
            lease_end = greatest(r.lease_end, clock_timestamp() + mark.lease)
        WHERE r.row = rec.row;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION idem.local_check_answer(
    verdict text, status int, headers text, body bytea, retention interval)
RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM idem.local_check(verdict IN ('succeeded', 'failed'),
                             'verdict must be succeeded or failed');
    PERFORM idem.local_check(status BETWEEN 0 AND 999, 'status must be 0 to 999');
    PERFORM idem.local_check(octet_length(coalesce(headers, '')) <= 8192,
                             'headers may have at most 8 KiB');
    PERFORM idem.local_check(octet_length(coalesce(body, '')) <= 1048576,
                             'body may have at most 1 MiB');
    PERFORM idem.local_check(retention BETWEEN '1 h' AND '3660 d',
                             'retention must be 1 hour to 3660 days');
END
$$;

-- What came after the end and says otherwise. Only the first is kept, and the answer stays.
CREATE OR REPLACE FUNCTION idem.local_contradict(
    of_row bigint, verdict text, said_by text, why text)
RETURNS void
LANGUAGE sql VOLATILE AS $$
    UPDATE idem.local_records r
    SET contradiction = verdict, contradiction_by = said_by, contradiction_reason = why,
        contradiction_role = session_user, contradiction_at = clock_timestamp(),
        version = r.version + 1, updated = clock_timestamp()
    WHERE r.row = of_row AND r.contradiction IS NULL
$$;

-- The end: the answer that every later claim is given. By the token's own attempt, however late.
-- `already`: it had ended so before; roll back what was done beside it.
-- ok | already | contradiction | superseded | busy
CREATE OR REPLACE FUNCTION idem.complete(
    token uuid, verdict text DEFAULT 'succeeded', status int DEFAULT 200, headers text DEFAULT '',
    body bytea DEFAULT '', retention interval DEFAULT '30 days', OUT outcome text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rec idem.local_records;
    now timestamptz;
BEGIN
    PERFORM idem.local_check_answer(verdict, status, headers, body, retention);
    rec := idem.local_hold(token);
    now := clock_timestamp();
    IF rec.state = 0 THEN
        outcome := 'busy';
    ELSIF rec.token IS DISTINCT FROM token OR rec.state NOT IN (1, 2, 3, 5, 6, 7) THEN
        outcome := 'superseded';
    ELSIF rec.succeeded = (verdict = 'succeeded') THEN
        outcome := 'already';
    ELSIF rec.succeeded IS NOT NULL THEN
        outcome := 'contradiction';
        PERFORM idem.local_contradict(rec.row, verdict, 'attempt', 'completed after the end');
    ELSE
        outcome := 'ok';
        UPDATE idem.local_records r
        SET state = CASE WHEN complete.verdict = 'succeeded' THEN 5 ELSE 6 END,
            succeeded = complete.verdict = 'succeeded', version = r.version + 1,
            answer_status = complete.status, answer_headers = coalesce(complete.headers, ''),
            answer_body = coalesce(complete.body, ''), lease_end = NULL, updated = now,
            finished = now, expires = now + complete.retention
        WHERE r.row = rec.row;
    END IF;
END
$$;

-- Nothing happened: the next claim executes. Once dispatched only with not_executed: the caller
-- vouches that its send never left, or was refused before it was carried out.
-- ok | already | not_proven | superseded | busy
CREATE OR REPLACE FUNCTION idem.release(
    token uuid, not_executed boolean DEFAULT false, OUT outcome text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rec idem.local_records;
BEGIN
    rec := idem.local_hold(token);
    IF rec.state = 0 THEN
        outcome := 'busy';
    ELSIF rec.token IS DISTINCT FROM token OR rec.state > 4 THEN
        outcome := 'superseded';
    ELSIF rec.state = 4 THEN
        outcome := 'already';
    ELSIF rec.state <> 1 AND not_executed IS NOT TRUE THEN
        outcome := 'not_proven';
    ELSE
        outcome := 'ok';
        UPDATE idem.local_records r
        SET state = 4, version = r.version + 1, lease_end = clock_timestamp(),
            updated = clock_timestamp()
        WHERE r.row = rec.row;
    END IF;
END
$$;

-- ---- without a token: evidence, and what there is -----------------------------------------------

-- What evidence comes to, beside the record as it is: an outcome of settle().
CREATE OR REPLACE FUNCTION idem.local_judge(
    rec idem.local_records, verdict text, behind text, name text, at timestamptz)
RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    state int := idem.local_state(rec.state, rec.local_only, rec.lease_end, NULL, at);
BEGIN
    IF rec.state = 0 THEN
        RETURN 'busy';
    ELSIF rec.row IS NULL THEN
        RETURN 'absent';
    ELSIF rec.succeeded IS NOT NULL THEN
        RETURN CASE WHEN rec.succeeded = (verdict IN ('succeeded', 'executed')) THEN 'already'
                    ELSE 'contradiction' END;
    ELSIF verdict = 'executed' THEN
        -- Of the effect that is open here, or of one that nobody told us about.
        RETURN CASE WHEN rec.step = behind THEN 'already'
                    WHEN rec.effect = name OR (rec.effect IS NULL AND state = 3) THEN 'ok'
                    ELSE 'other_effect' END;
    ELSIF name <> '' AND rec.effect IS DISTINCT FROM name THEN
        RETURN 'other_effect';
    ELSIF verdict = 'not_executed' THEN
        RETURN CASE state WHEN 3 THEN 'ok' WHEN 4 THEN 'already' ELSE 'not_proven' END;
    END IF;
    RETURN 'ok';
END
$$;

-- Evidence, whoever brings it: succeeded or failed end the record; executed: the outside step is
-- done, and the next claim goes on behind `step`; not_executed: nothing happened since the last
-- step, nor can it still, and the next claim executes. `by` and `reason` are kept.
-- ok | already | contradiction | other_effect | not_proven | absent | busy
CREATE OR REPLACE FUNCTION idem.settle(
    principal text, endpoint text, key text, verdict text, by text, reason text,
    status int DEFAULT 200, headers text DEFAULT '', body bytea DEFAULT '',
    step text DEFAULT NULL, step_data bytea DEFAULT NULL, effect text DEFAULT NULL,
    retention interval DEFAULT '30 days', OUT outcome text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ends boolean := coalesce(verdict NOT IN ('executed', 'not_executed'), true);
    rec idem.local_records;
    now timestamptz;
BEGIN
    PERFORM idem.local_enter(principal, endpoint);
    PERFORM idem.local_check_word(key, 'key', 255);
    PERFORM idem.local_check(octet_length(by) BETWEEN 1 AND 64, 'by must have 1 to 64 bytes');
    PERFORM idem.local_check(octet_length(reason) BETWEEN 1 AND 255,
                             'reason must have 1 to 255 bytes');
    PERFORM idem.local_check(
        verdict IN ('succeeded', 'failed', 'executed', 'not_executed'),
        'verdict must be succeeded, failed, executed or not_executed');
    PERFORM idem.local_check_answer(CASE WHEN ends THEN verdict ELSE 'failed' END, status, headers,
                                    body, retention);
    PERFORM idem.local_check(octet_length(coalesce(step_data, '')) <= 65536,
                             'step_data may have at most 64 KiB');
    IF verdict = 'executed' THEN
        PERFORM idem.local_check_word(step, 'step', 64);
    END IF;

    rec := idem.local_hold_named(principal, endpoint, key);
    now := clock_timestamp();
    outcome := idem.local_judge(rec, verdict, settle.step, coalesce(effect, ''), now);
    IF outcome = 'contradiction' THEN
        PERFORM idem.local_contradict(rec.row, verdict, by, reason);
    ELSIF outcome = 'ok' AND ends THEN
        UPDATE idem.local_records r
        SET state = CASE WHEN verdict = 'succeeded' THEN 5 ELSE 6 END,
            succeeded = verdict = 'succeeded', version = r.version + 1, answer_status = status,
            answer_headers = coalesce(headers, ''), answer_body = coalesce(body, ''),
            lease_end = NULL, updated = now, finished = now, expires = now + retention,
            evidence_by = by, evidence_reason = reason, evidence_role = session_user
        WHERE r.row = rec.row;
    ELSIF outcome = 'ok' THEN
        UPDATE idem.local_records r
        SET state = 4, version = r.version + 1, token = NULL, lease_end = now, updated = now,
            effect = CASE WHEN verdict = 'executed' THEN NULL ELSE r.effect END,
            step = CASE WHEN verdict = 'executed' THEN settle.step ELSE r.step END,
            step_data = CASE WHEN verdict = 'executed' THEN settle.step_data
                             ELSE r.step_data END,
            evidence_by = by, evidence_reason = reason, evidence_role = session_user
        WHERE r.row = rec.row;
    END IF;
END
$$;

-- Everything there is about a record but its token, as it is now. No row: there is none.
CREATE OR REPLACE FUNCTION idem.lookup(principal text, endpoint text, key text)
RETURNS TABLE (
    id uuid, state text, version bigint, local_only boolean, epoch int, lease_end timestamptz,
    effect text, effect_id text, step text, step_data bytea, fingerprint bytea, verdict text,
    status int, headers text, body bytea, evidence_by text, evidence_reason text,
    evidence_role text, contradiction text, contradiction_by text, contradiction_reason text,
    contradiction_role text, contradiction_at timestamptz, created timestamptz,
    updated timestamptz, finished timestamptz, expires timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now timestamptz := clock_timestamp();
BEGIN
    PERFORM idem.local_enter(principal, endpoint);
    PERFORM idem.local_check_word(key, 'key', 255);
    RETURN QUERY
    SELECT r.id, idem.local_word(s.state), r.version, r.local_only, r.epoch, r.lease_end, r.effect,
           idem.local_effect_id(r.id, r.effect), r.step, w.step_data, r.fingerprint,
           CASE WHEN r.succeeded THEN 'succeeded' WHEN NOT r.succeeded THEN 'failed' END,
           w.status, w.headers, w.body, r.evidence_by, r.evidence_reason, r.evidence_role,
           r.contradiction, r.contradiction_by, r.contradiction_reason, r.contradiction_role,
           r.contradiction_at, r.created, r.updated, r.finished, r.expires
    FROM idem.local_records r
    CROSS JOIN LATERAL (
        SELECT idem.local_state(r.state, r.local_only, r.lease_end, r.expires, now) AS state) s
    LEFT JOIN LATERAL ( -- Nothing of it once it has expired, reaped or not.
        SELECT r.step_data, r.answer_status::int AS status, r.answer_headers AS headers,
               r.answer_body AS body
        WHERE s.state <> 7) w ON true
    WHERE r.principal = lookup.principal AND r.endpoint = lookup.endpoint AND r.key = lookup.key;
END
$$;

-- Open records that nobody is at, oldest first: of the principals the caller may act for.
CREATE OR REPLACE FUNCTION idem.due(rows_max int DEFAULT 100)
RETURNS TABLE (
    id uuid, principal text, endpoint text, key text, fingerprint bytea, state text, effect text,
    effect_id text, step text, step_data bytea, since timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now timestamptz := clock_timestamp();
BEGIN
    PERFORM idem.local_check(rows_max BETWEEN 1 AND 10000, 'rows_max must be 1 to 10000');
    RETURN QUERY
    SELECT r.id, r.principal, r.endpoint, r.key, r.fingerprint,
           idem.local_word(idem.local_state(r.state, r.local_only, r.lease_end, NULL, now)),
           r.effect, idem.local_effect_id(r.id, r.effect), r.step, r.step_data, r.lease_end
    FROM idem.local_records r
    WHERE (r.state < 4 OR (r.state = 4 AND r.step IS NOT NULL)) AND r.lease_end <= now
    ORDER BY r.lease_end, r.row
    LIMIT rows_max;
END
$$;

-- Forgets what retention no longer needs, at most so many rows; never what is open. Again until
-- both are 0. Rows that somebody has locked wait for the next time.
CREATE OR REPLACE FUNCTION idem.reap(
    rows_max int DEFAULT 1000, OUT expired int, OUT deleted int)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now timestamptz := clock_timestamp();
BEGIN
    PERFORM idem.local_check(rows_max BETWEEN 1 AND 10000, 'rows_max must be 1 to 10000');
    WITH old AS (
        SELECT r.row FROM idem.local_records r
        WHERE r.state = 7 AND r.expires <= now - interval '400 days'
        LIMIT rows_max FOR UPDATE SKIP LOCKED)
    DELETE FROM idem.local_records r USING old WHERE r.row = old.row;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    WITH old AS (
        SELECT r.row FROM idem.local_records r
        WHERE r.state IN (5, 6) AND r.expires <= now
        LIMIT rows_max - deleted FOR UPDATE SKIP LOCKED)
    UPDATE idem.local_records r
    SET state = 7, version = r.version + 1, answer_status = NULL, answer_headers = NULL,
        answer_body = NULL, step_data = NULL, updated = now
    FROM old WHERE r.row = old.row;
    GET DIAGNOSTICS expired = ROW_COUNT;
END
$$;

-- ---- many at once -------------------------------------------------------------------------------

-- claim() for many keys of one endpoint, in one statement where nobody is in the way. One row for
-- each, by its place in the array (from 1); in no order. One key that somebody else holds does not
-- hold up the others: the whole is waited for once, and then each for a moment.
CREATE OR REPLACE FUNCTION idem.claim_many(
    principal text, endpoint text, keys text[], fingerprints bytea[],
    lease interval DEFAULT '60 s', local_only boolean DEFAULT false)
RETURNS TABLE (
    place int, outcome text, token uuid, epoch int, id uuid, effect_id text, step text,
    step_data bytea, verdict text, status int, headers text, body bytea, retry_after int)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before text;
    now timestamptz;
    made_keys text[];
    made_tokens uuid[];
    made_ids uuid[];
    places int[];
BEGIN
    PERFORM idem.local_enter(principal, endpoint);
    PERFORM idem.local_check(cardinality(keys) = cardinality(fingerprints)
                             AND cardinality(keys) <= 10000,
                             'as many fingerprints as keys, and at most 10000');
    PERFORM idem.local_check(
        NOT EXISTS (SELECT FROM unnest(keys) k
                    WHERE k IS NULL OR length(k) > 255 OR k COLLATE "C" !~ '^[!-~]+$'),
        'each key must have 1 to 255 visible ASCII characters');
    PERFORM idem.local_check(
        NOT EXISTS (SELECT FROM unnest(fingerprints) f
                    WHERE (octet_length(f) BETWEEN 1 AND 64) IS NOT TRUE),
        'each fingerprint must have 1 to 64 bytes');
    PERFORM idem.local_check(lease BETWEEN '1 s' AND '24 h', 'lease must be 1 second to 24 hours');
    PERFORM idem.local_check(local_only IS NOT NULL, 'local_only must be true or false');

    before := current_setting('lock_timeout');
    BEGIN
        PERFORM idem.local_patience();
        now := clock_timestamp();
        WITH wanted AS ( -- In order of key: batches that meet wait for each other, not in a ring.
            SELECT DISTINCT ON (u.key COLLATE "C") u.key, u.fingerprint
            FROM unnest(keys, fingerprints) WITH ORDINALITY AS u (key, fingerprint, place)
            ORDER BY u.key COLLATE "C", u.place
        ), numbered AS MATERIALIZED (
            SELECT w.key, w.fingerprint, nextval('idem.local_rows') AS row FROM wanted w
        ), made AS (
            INSERT INTO idem.local_records AS r
                (row, id, principal, endpoint, key, fingerprint, state, local_only, token,
                 lease_end, created, updated)
            SELECT n.row, gen_random_uuid(), claim_many.principal, claim_many.endpoint, n.key,
                   n.fingerprint, 1, claim_many.local_only, idem.local_token(n.row),
                   now + claim_many.lease, now, now
            FROM numbered n
            ON CONFLICT ON CONSTRAINT local_records_scope DO NOTHING
            RETURNING r.key, r.token, r.id
        )
        SELECT array_agg(m.key), array_agg(m.token), array_agg(m.id)
        INTO made_keys, made_tokens, made_ids FROM made m;
        PERFORM set_config('lock_timeout', before, true);
        IF clock_timestamp() - now > '100 ms' THEN -- Leases begin behind the wait.
            UPDATE idem.local_records r SET lease_end = clock_timestamp() + claim_many.lease
            FROM unnest(made_tokens) t WHERE r.row = idem.local_token_row(t);
        END IF;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        PERFORM set_config('lock_timeout', '10ms', true);
    END;

    RETURN QUERY
    SELECT u.place::int, 'execute', m.token, 1, m.id, NULL, NULL, NULL::bytea, NULL, NULL::int,
           NULL, NULL::bytea, NULL::int
    FROM unnest(made_keys, made_tokens, made_ids) AS m (key, token, id)
    JOIN (SELECT k.key, min(k.place) AS place
          FROM unnest(keys) WITH ORDINALITY AS k (key, place) GROUP BY k.key) u
        ON u.key = m.key;
    SELECT array_agg(k.place ORDER BY k.key COLLATE "C", k.place) INTO places
    FROM (SELECT e.key, e.place, row_number() OVER (PARTITION BY e.key ORDER BY e.place) AS copy
          FROM unnest(keys) WITH ORDINALITY AS e (key, place)) k
    LEFT JOIN unnest(made_keys) AS m (key) ON m.key = k.key
    WHERE m.key IS NULL OR k.copy > 1;
    RETURN QUERY
    SELECT p.place, c.*
    FROM unnest(places) AS p (place)
    CROSS JOIN LATERAL idem.claim(claim_many.principal, claim_many.endpoint, keys[p.place],
                                  fingerprints[p.place], claim_many.lease,
                                  claim_many.local_only) c;
    PERFORM set_config('lock_timeout', before, true);
END
$$;

-- complete() for many tokens, in one statement where nobody is in the way. One row for each, by
-- its place in the array (from 1); in no order.
CREATE OR REPLACE FUNCTION idem.complete_many(
    tokens uuid[], verdicts text[], statuses int[], headers text[], bodies bytea[],
    retention interval DEFAULT '30 days')
RETURNS TABLE (place int, outcome text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now timestamptz := clock_timestamp();
    done uuid[];
BEGIN
    PERFORM idem.local_check(
        cardinality(tokens) <= 10000 AND cardinality(tokens) = cardinality(verdicts)
        AND cardinality(tokens) = cardinality(statuses)
        AND cardinality(tokens) = cardinality(headers)
        AND cardinality(tokens) = cardinality(bodies),
        'as many verdicts, statuses, headers and bodies as tokens, and at most 10000');
    PERFORM idem.local_check_answer(u.verdict, u.status, u.headers, u.body, retention)
    FROM unnest(verdicts, statuses, complete_many.headers, bodies)
        AS u (verdict, status, headers, body);
    PERFORM idem.local_durable();

    WITH wanted AS MATERIALIZED (
        SELECT DISTINCT ON (u.token) u.*, idem.local_token_row(u.token) AS row
        FROM unnest(tokens, verdicts, statuses, complete_many.headers, bodies) WITH ORDINALITY
            AS u (token, verdict, status, headers, body, place)
        ORDER BY u.token, u.place
    ), held AS MATERIALIZED (
        SELECT r.row FROM wanted w JOIN idem.local_records r ON r.row = w.row
        WHERE r.token = w.token AND r.state < 4
        FOR UPDATE OF r SKIP LOCKED
    ), ended AS (
        UPDATE idem.local_records r
        SET state = CASE WHEN w.verdict = 'succeeded' THEN 5 ELSE 6 END,
            succeeded = w.verdict = 'succeeded', version = r.version + 1,
            answer_status = w.status, answer_headers = coalesce(w.headers, ''),
            answer_body = coalesce(w.body, ''), lease_end = NULL, updated = now, finished = now,
            expires = now + retention
        FROM wanted w JOIN held h ON h.row = w.row
        WHERE r.row = w.row
        RETURNING r.token
    )
    SELECT array_agg(e.token) INTO done FROM ended e;

    RETURN QUERY
    SELECT u.place::int,
           CASE WHEN d.token IS NOT NULL AND u.copy = 1 THEN 'ok'
                ELSE idem.complete(u.token, u.verdict, u.status, u.headers, u.body, retention) END
    FROM (SELECT e.*, row_number() OVER (PARTITION BY e.token ORDER BY e.place) AS copy
          FROM unnest(tokens, verdicts, statuses, complete_many.headers, bodies) WITH ORDINALITY
              AS e (token, verdict, status, headers, body, place)) u
    LEFT JOIN unnest(done) AS d (token) ON d.token = u.token;
END
$$;

-- ---- for operators ------------------------------------------------------------------------------

-- A role that logs in may act for a principal that is not called like it.
CREATE OR REPLACE FUNCTION idem.allow(role name, principal text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM idem.local_check_word(principal, 'principal', 64);
    PERFORM idem.local_check(EXISTS (SELECT FROM pg_roles WHERE rolname = role),
                             'role must be a role of this server');
    INSERT INTO idem.local_grants VALUES (role::text, allow.principal) ON CONFLICT DO NOTHING;
END
$$;

CREATE OR REPLACE FUNCTION idem.disallow(role name, principal text) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM idem.local_grants g
    WHERE g.role = disallow.role::text AND g.principal = disallow.principal
$$;

-- ---- privileges ---------------------------------------------------------------------------------

DO $$
DECLARE
    made record;
    grantee text;
BEGIN
    FOR made IN
        SELECT p.proname AS name, p.oid::regprocedure::text AS signature
        FROM pg_proc p
        WHERE p.pronamespace = 'idem'::regnamespace AND p.proowner = 'idem_owner'::regrole
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made.signature);
        FOREACH grantee IN ARRAY CASE
            WHEN made.name LIKE 'local%' THEN '{}'
            WHEN made.name IN ('reap', 'allow', 'disallow') THEN '{idem_operator}'
            WHEN made.name IN ('settle', 'lookup', 'due') THEN '{idem_caller,idem_operator}'
            ELSE '{idem_caller}' END::text[]
        LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', made.signature, grantee);
        END LOOP;
    END LOOP;
END
$$;

RESET ROLE;

DO $$
BEGIN
    IF current_setting('idem.lent_to') <> '' THEN
        EXECUTE format('REVOKE idem_owner FROM %I', current_setting('idem.lent_to'));
    END IF;
END
$$;

COMMIT;
