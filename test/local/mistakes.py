"""
The tests of the SQL face see mistakes: each of these is planted into a copy of sql/idem.sql, and
the named test must fail.

Usage: mistakes.py [WORD ...]; minutes, so not part of the check.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent / "sql" / "idem.sql"

# (what somebody might write, what stands there, the runner and the words that choose its test)
MISTAKES = [
    ("a lease that is over is taken over whatever it was",
     "CASE WHEN state = 1 AND NOT local_only AND lease_end <= at THEN 3",
     "CASE WHEN state = 1 AND false AND lease_end <= at THEN 3",
     "grid.py a claimed record that may have acted"),
    ("a dispatched record is run again",
     "WHEN 3 THEN RETURN CASE WHEN rec.state = 3 THEN 'unknown' ELSE 'lose' END;",
     "WHEN 3 THEN RETURN CASE WHEN rec.state = 3 THEN 'unknown' ELSE 'take' END;",
     "grid.py a dispatched record becomes unknown"),
    ("mismatch is looked at too late",
     "IF rec.fingerprint <> of_fingerprint THEN",
     "IF rec.fingerprint <> of_fingerprint AND rec.state < 5 THEN",
     "grid.py mismatch comes before"),
    ("whoever takes over keeps the token",
     "local_only = for_local_only, token = idem.local_token(r.row),",
     "local_only = for_local_only, token = r.token,",
     "grid.py a claimed record that is local only"),
    ("dispatch after the end of the lease",
     "ELSIF rec.token IS DISTINCT FROM token OR rec.state NOT IN (1, 2)\n"
     "          OR rec.lease_end <= clock_timestamp() THEN\n"
     "        outcome := 'superseded';\n    ELSIF rec.local_only",
     "ELSIF rec.token IS DISTINCT FROM token OR rec.state NOT IN (1, 2) THEN\n"
     "        outcome := 'superseded';\n    ELSIF rec.local_only",
     "grid.py dispatch needs the current"),
    ("a released record is completed with its old token",
     "OR rec.state NOT IN (1, 2, 3, 5, 6, 7) THEN",
     "OR rec.state NOT IN (1, 2, 3, 4, 5, 6, 7) THEN",
     "grid.py complete needs the current"),
    ("release believes whoever has sent",
     "ELSIF rec.state <> 1 AND not_executed IS NOT TRUE THEN", "ELSIF false THEN",
     "grid.py who has sent says so"),
    ("late evidence turns a step back",
     "WHEN rec.effect = name OR (rec.effect IS NULL AND state = 3) THEN 'ok'",
     "WHEN true THEN 'ok'",
     "grid.py evidence of one step"),
    ("evidence leaves the attempt its token",
     "SET state = 4, version = r.version + 1, token = NULL,",
     "SET state = 4, version = r.version + 1,",
     "grid.py the outside step is done"),
    ("not executed is believed while somebody is at it",
     "CASE state WHEN 3 THEN 'ok' WHEN 4", "CASE state WHEN 3 THEN 'ok' WHEN 2 THEN 'ok' WHEN 4",
     "grid.py that nothing happened is not"),
    ("the last contradiction is kept, not the first",
     "WHERE r.row = of_row AND r.contradiction IS NULL", "WHERE r.row = of_row",
     "grid.py the same evidence again"),
    ("what is open is reaped",
     "WHERE r.state IN (5, 6) AND r.expires <= now\n",
     "WHERE r.lease_end <= now OR r.expires <= now\n",
     "grid.py what is open is never"),
    ("look, then insert",
     "ON CONFLICT ON CONSTRAINT local_records_scope DO NOTHING\n    RETURNING r.* INTO made;",
     "RETURNING r.* INTO made;",
     "meet.py fifty_callers_one_lease"),
    ("a take-over that does not look again under the lock",
     "            finding := idem.local_finding(rec, of_fingerprint, clock_timestamp());\n"
     "            IF finding = 'take' THEN", "            IF finding = 'take' THEN",
     "meet.py fifty_take_over"),
    ("a wait without an end",
     "PERFORM set_config('lock_timeout', '5s', true);", "NULL;",
     "meet.py no_lock_timeout"),
    ("our limit stays behind",
     "RETURNING r.* INTO made;\n    PERFORM set_config('lock_timeout', before, true);",
     "RETURNING r.* INTO made;",
     "meet.py no_lock_timeout"),
    ("a lease is used up by waiting",
     "clock_timestamp() - now > '100 ms' THEN -- It waited", "false THEN -- It waited",
     "meet.py leases_begin"),
    ("a lease is used up by waiting, in a batch",
     "clock_timestamp() - now > '100 ms' THEN -- Leases", "false THEN -- Leases",
     "meet.py leases_begin"),
    ("a deadlock ends the caller's transaction",
     "EXCEPTION WHEN lock_not_available OR deadlock_detected THEN\n"
     "                finding := 'in_progress';",
     "EXCEPTION WHEN lock_not_available THEN\n                finding := 'in_progress';",
     "meet.py two_keys_in_a_ring"),
    ("who asks takes the lock",
     "        IF finding NOT IN ('take', 'lose') THEN", "        IF finding IS NULL THEN",
     "meet.py who_asks"),
    ("a batch waits for each held key in full",
     "PERFORM set_config('lock_timeout', '10ms', true);", "NULL;",
     "meet.py a_held_key"),
    ("reapers wait for each other",
     "LIMIT rows_max - deleted FOR UPDATE SKIP LOCKED)", "LIMIT rows_max - deleted)",
     "meet.py reapers_meet"),
    ("durability is the caller's",
     "IN ('off', 'local') THEN", "IN ('nothing') THEN",
     "meet.py durability"),
    ("nobody asks for whom",
     "    IF idem.local_may(principal) IS NOT TRUE THEN", "    IF false THEN",
     "permissions.py another_principal"),
    ("SET ROLE counts", "IF wanted = session_user::text OR",
     "IF wanted = current_setting('role') OR wanted = session_user::text OR",
     "permissions.py roles_do_not"),
    ("no row security", "ALTER TABLE idem.local_records FORCE ROW LEVEL SECURITY;", "",
     "permissions.py a_strangers_token"),
    ("functions for everybody", "        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC',"
     " made.signature);\n", "",
     "permissions.py each_role"),
    ("an open search path", "OUT retry_after int)\nLANGUAGE plpgsql VOLATILE SECURITY DEFINER"
     " SET search_path = pg_catalog, pg_temp AS", "OUT retry_after int)\nLANGUAGE plpgsql VOLATILE"
     " SECURITY DEFINER AS",
     "permissions.py search_paths"),
    ("a token is its row", "ELSIF rec.token IS DISTINCT FROM token OR rec.state NOT IN (1, 2, 3, 5",
     "ELSIF rec.row IS NULL OR rec.state NOT IN (1, 2, 3, 5",
     "permissions.py tokens_are_not"),
    ("a newer version is gone over", "    IF version > 1 THEN", "    IF version IS NULL THEN",
     "permissions.py a_newer"),
]


def seen(old, new, runner):
    text = SOURCE.read_text(encoding="utf-8")
    assert old in text, f"not in idem.sql any more: {old}"
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as copy:
        copy.write(text.replace(old, new, 1))
        copy.flush()
        script, *words = runner.split()
        done = subprocess.run(
            [sys.executable, HERE / script, *words],
            env={**os.environ, "IDEM_SQL": copy.name},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    return done.returncode != 0 and "\nnot ok" in done.stdout


def main(words):
    chosen = [row for row in MISTAKES if not words or any(word in row[0] for word in words)]
    missed = 0
    for name, old, new, runner in chosen:
        found = seen(old, new, runner)
        missed += not found
        print(f"{'seen' if found else 'MISSED'}  {name}  ({runner})", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} seen")
    sys.exit(1 if missed or not chosen else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
