"""
Who may do what with the SQL face, and how somebody would try to do more.

Goal: a role that may call the functions can do nothing else, and nothing for a principal that was
not given to it; neither roles, settings, search paths, temporary objects nor error messages get it
further. Row security holds where a function would forget to ask.

Method: roles that log in, each attack as a statement that must be refused or change nothing; the
server's owner looks afterwards. Usage: permissions.py [NAME ...]
"""

import contextlib
import pathlib
import sys
import tempfile
import uuid

import face
from face import F1, claim, one, psycopg, refused

DENIED = "42501"
CALLS = {  # function: arguments, and whether a caller and an operator may call it
    "claim": ("('mall', 'e', 'k', 'f')", True, False),
    "claim_many": ("('mall', 'e', '{k}', '{f}')", True, False),
    "dispatch": ("(gen_random_uuid())", True, False),
    "heartbeat": ("(gen_random_uuid())", True, False),
    "mark": ("(gen_random_uuid(), 's')", True, False),
    "complete": ("(gen_random_uuid())", True, False),
    "complete_many": ("('{}', '{}', '{}', '{}', '{}')", True, False),
    "release": ("(gen_random_uuid())", True, False),
    "settle": ("('mall', 'e', 'k', 'failed', 'b', 'r')", True, True),
    "lookup": ("('mall', 'e', 'k')", True, True),
    "due": ("()", True, True),
    "reap": ("()", False, True),
    "allow": ("('mall', 'x')", False, True),
    "disallow": ("('mall', 'x')", False, True),
}
TABLES = ["local_records", "local_grants", "local_meta"]


@contextlib.contextmanager
def login(owner, role, autocommit=True):
    connection = owner.connect(role, autocommit)
    try:
        yield connection
    finally:
        connection.close()


def victim(owner):
    """A record of shop's that others would like to see or change, and its token."""
    with login(owner, "shop") as connection:
        row = claim(connection, "secret-key-1")
        one(connection, "SELECT idem.mark(%s, 'secret-step', 'secret-data')", row.token)
        return row


def unchanged(owner, row):
    sql = "SELECT token, state, version, step FROM idem.local_records WHERE principal = 'shop'"
    assert owner.admin(sql) == [(row.token, 1, 2, "secret-step")], owner.admin(sql)


def each_role_its_functions(owner):
    """Callers call, operators operate, everybody else does nothing; and none sees a table"""
    with login(owner, "mall") as caller, login(owner, "desk") as desk:
        with login(owner, "nobody_here") as other:
            for name, (arguments, for_caller, for_operator) in CALLS.items():
                sql = f"SELECT * FROM idem.{name}{arguments}"
                for connection, allowed in ((caller, for_caller), (desk, for_operator)):
                    if allowed:
                        connection.execute(sql)
                    else:
                        refused(connection, sql, state=DENIED)
                refused(other, sql, state=DENIED)
            for connection in (caller, desk, other):
                no_table(connection)


def no_table(connection):
    for table in TABLES:
        for sql in (f"SELECT 1 FROM idem.{table}", f"DELETE FROM idem.{table}",
                    f"TRUNCATE idem.{table}", f"COPY idem.{table} TO STDOUT",
                    f"DO 'BEGIN LOCK TABLE idem.{table} IN ACCESS SHARE MODE; END'",
                    f"CREATE TRIGGER t AFTER INSERT ON idem.{table} EXECUTE FUNCTION f()",
                    f"CREATE RULE r AS ON SELECT TO idem.{table} DO INSTEAD NOTHING",
                    f"ALTER TABLE idem.{table} DISABLE ROW LEVEL SECURITY"):
            refused(connection, sql, state=DENIED)
    for sql in ("SELECT nextval('idem.local_rows')", "SELECT last_value FROM idem.local_rows",
                "CREATE TABLE idem.mine (i int)",
                "CREATE FUNCTION idem.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
                "DROP SCHEMA idem CASCADE", "SET ROLE idem_owner",
                "ALTER FUNCTION idem.due(int) SET search_path = public",
                "CREATE OR REPLACE FUNCTION idem.local_may(wanted text) RETURNS boolean"
                " LANGUAGE sql AS 'SELECT true'"):
        refused(connection, sql, state=DENIED)


def inner_functions_are_nobodys(owner):
    """Every function that is not in docs/sql.md can be called by its owner alone"""
    rows = owner.admin(
        "SELECT p.proname, p.prosecdef, has_function_privilege('mall', p.oid, 'EXECUTE'),"
        "       has_function_privilege('desk', p.oid, 'EXECUTE'),"
        "       has_function_privilege('nobody_here', p.oid, 'EXECUTE'), p.proconfig"
        " FROM pg_proc p WHERE p.pronamespace = 'idem'::regnamespace"
    )
    assert {name for name, *_ in rows if not name.startswith("local_")} == set(CALLS)
    for name, definer, caller, operator, other, settings in rows:
        wanted = CALLS.get(name, (None, False, False))[1:]
        assert (caller, operator, other) == (*wanted, False), name
        assert definer == (name in CALLS), name
        pinned = settings == ["search_path=pg_catalog, pg_temp"]
        assert pinned == (name in CALLS), (name, settings)


def another_principal_is_refused(owner):
    """A caller acts for the principal of its own name only, until an operator allows another"""
    victim(owner)
    with login(owner, "mall") as mall, login(owner, "desk") as desk:
        calls = ["claim('shop', 'orders.create', 'secret-key-1', 'f')",
                 "claim_many('shop', 'orders.create', '{secret-key-1}', '{f}')",
                 "lookup('shop', 'orders.create', 'secret-key-1')",
                 "settle('shop', 'orders.create', 'secret-key-1', 'failed', 'b', 'r')"]
        for call in calls:
            error = refused(mall, f"SELECT * FROM idem.{call}", state=DENIED)
            assert "nothing was looked up or written" in str(error)
        assert mall.execute("SELECT * FROM idem.due()").fetchall() == []
        desk.execute("SELECT idem.allow('mall', 'shop')")
        for call in calls:
            mall.execute(f"SELECT * FROM idem.{call}")
        desk.execute("SELECT idem.disallow('mall', 'shop')")
        for call in calls:
            refused(mall, f"SELECT * FROM idem.{call}", state=DENIED)
        refused(desk, "SELECT idem.allow('no such role', 'shop')", state="22023")


def operators_see_all(owner):
    """An operator looks up, finds due and settles every principal's records; it does not claim"""
    victim(owner)
    owner.admin("UPDATE idem.local_records SET lease_end = clock_timestamp()")
    with login(owner, "desk") as desk:
        assert desk.execute("SELECT principal, key, state FROM idem.due()").fetchall() == [
            ("shop", "secret-key-1", "unknown")
        ]
        found = "SELECT state FROM idem.lookup('shop', 'orders.create', 'secret-key-1')"
        assert one(desk, found) == "unknown"
        settle = "idem.settle('shop', 'orders.create', 'secret-key-1', 'failed', 'ann', 'asked')"
        assert one(desk, f"SELECT {settle}") == "ok"
        refused(desk, "SELECT * FROM idem.claim('shop', 'e', 'k', 'f')", state=DENIED)
    sql = "SELECT evidence_by, evidence_role FROM idem.local_records WHERE principal = 'shop'"
    assert owner.admin(sql) == [("ann", "desk")]


def a_strangers_token_is_nobodys(owner):
    """Who has got hold of another principal's token can do nothing with it"""
    row = victim(owner)
    with login(owner, "mall") as mall:
        for call in ("heartbeat(%s)", "mark(%s, 's')", "complete(%s)", "release(%s, true)"):
            assert one(mall, f"SELECT idem.{call}", row.token) == "superseded", call
        assert one(mall, "SELECT outcome FROM idem.dispatch(%s)", row.token) == "superseded"
        sql = "SELECT outcome FROM idem.complete_many(ARRAY[%s], '{failed}', '{1}', '{h}', '{b}')"
        assert one(mall, sql, row.token) == "superseded"
    unchanged(owner, row)


def tokens_are_not_guessed(owner):
    """A token that differs in one bit of any byte is nobody's"""
    row = victim(owner)
    with login(owner, "shop") as shop:
        for byte in range(16):
            wrong = bytearray(row.token.bytes)
            wrong[byte] ^= 1
            guess = uuid.UUID(bytes=bytes(wrong))
            assert one(shop, "SELECT idem.complete(%s)", guess) == "superseded"
    unchanged(owner, row)


def roles_do_not_travel(owner):
    """SET ROLE and SET SESSION AUTHORIZATION give no principal, also to a member of that role"""
    row = victim(owner)
    owner.admin("GRANT shop TO mall")
    try:
        with login(owner, "mall") as mall:
            refused(mall, "SET SESSION AUTHORIZATION shop", state=DENIED)
            mall.execute("SET ROLE shop")
            assert one(mall, "SELECT current_user") == "shop"
            refused(mall, "SELECT * FROM idem.claim('shop', 'e', 'k', 'f')", state=DENIED)
            assert one(mall, "SELECT idem.complete(%s)", row.token) == "superseded"
            # Nor does a function of shop's that mall may call, whoever it runs as.
        owner.admin("CREATE FUNCTION public.trap() RETURNS text LANGUAGE sql SECURITY DEFINER AS"
                    " $$SELECT outcome FROM idem.claim('shop', 'e', 'k', 'f')$$")
        owner.admin("ALTER FUNCTION public.trap() OWNER TO shop")
        with login(owner, "mall") as mall:
            refused(mall, "SELECT public.trap()", state=DENIED)
        owner.admin("DROP FUNCTION public.trap()")
    finally:
        owner.admin("REVOKE shop FROM mall")
    unchanged(owner, row)


def settings_do_not_help(owner):
    """No setting that a caller may change opens anything"""
    row = victim(owner)
    with login(owner, "mall") as mall:
        refused(mall, "SET session_replication_role = replica", state=DENIED)
        for name, value in (("role", "mall"), ("idem.principal", "shop"), ("idem.lent_to", "mall"),
                            ("search_path", "pg_temp, public"), ("row_security", "on"),
                            ("standard_conforming_strings", "off"), ("transform_null_equals", "on"),
                            ("array_nulls", "off"), ("bytea_output", "escape"),
                            ("intervalstyle", "sql_standard"), ("datestyle", "German"),
                            ("timezone", "Asia/Kathmandu"), ("client_min_messages", "debug5"),
                            ("enable_seqscan", "off"), ("enable_indexscan", "off"),
                            ("plan_cache_mode", "force_custom_plan"),
                            ("check_function_bodies", "off")):
            mall.execute("SELECT set_config(%s, %s, false)", (name, value))
            refused(mall, "SELECT * FROM idem.claim('shop', 'e', 'k', 'f')", state=DENIED)
            assert one(mall, "SELECT idem.complete(%s)", row.token) == "superseded", name
            assert mall.execute("SELECT * FROM idem.due()").fetchall() == [], name
            own = claim(mall, f"own-{name}", principal="mall")
            assert own.outcome == "execute", name
            assert one(mall, "SELECT idem.complete(%s)", own.token) == "ok", name
        mall.execute("SET row_security = off")
        refused(mall, "SELECT idem.complete(%s)", row.token, state=DENIED)
        refused(mall, "SELECT * FROM idem.due()", state=DENIED)
    unchanged(owner, row)


def search_paths_and_shadows(owner):
    """Objects of a caller's own, named like ours or like the system's, are not taken for them"""
    row = victim(owner)
    owner.admin("CREATE SCHEMA evil AUTHORIZATION mall")
    with login(owner, "mall") as mall:
        for sql in (
            "GRANT USAGE ON SCHEMA evil TO PUBLIC",  # Else the functions' owner would not look.
            "CREATE FUNCTION evil.octet_length(bytea) RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS"
            " $$SELECT 'infinity'::timestamptz$$",
            "CREATE FUNCTION evil.pg_has_role(name, text, text) RETURNS boolean LANGUAGE sql AS"
            " 'SELECT true'",
            "CREATE FUNCTION evil.same(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
            "CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same)",
            "CREATE FUNCTION evil.same(uuid, uuid) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
            "CREATE OPERATOR evil.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = evil.same)",
            "CREATE TEMP TABLE local_grants (role text, principal text)",
            "INSERT INTO local_grants VALUES ('mall', 'shop')",
            "CREATE TEMP TABLE local_records (principal text, endpoint text, key text)",
            "CREATE TEMP TABLE pg_roles (rolname name)",
            "CREATE FUNCTION pg_temp.local_may(text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
            "CREATE TYPE pg_temp.uuid AS (a int)",
            "CREATE DOMAIN pg_temp.interval AS text",
        ):
            mall.execute(sql)
        for path in ("evil, pg_temp, pg_catalog", "pg_temp, evil, pg_catalog, idem", "evil"):
            mall.execute("SELECT pg_catalog.set_config('search_path', %s, false)", (path,))
            refused(mall, "SELECT * FROM idem.claim('shop', 'e', 'k', 'f')", state=DENIED)
            refused(mall, "SELECT * FROM idem.lookup('shop', 'orders.create', 'secret-key-1')",
                    state=DENIED)
            assert mall.execute("SELECT key FROM idem.due()").fetchall() == []
            assert one(mall, "SELECT idem.complete(%s::pg_catalog.uuid)",
                       str(row.token)) == "superseded"
    owner.admin("DROP SCHEMA evil CASCADE")
    unchanged(owner, row)


def messages_tell_nothing(owner):
    """What a caller is told, errors with all their parts too, has nothing of another principal"""
    row = victim(owner)
    with login(owner, "shop", autocommit=False) as shop, login(owner, "mall") as mall:
        claim(shop, "secret-key-2")  # Open, while the other one tries.
        mall.execute("SET lock_timeout = '50ms'")
        mall.execute("SET client_min_messages = debug5")
        heard = []
        mall.add_notice_handler(lambda notice: heard.append(parts(notice)))
        for call in ("claim('shop', 'orders.create', 'secret-key-1', 'f')",
                     "claim('mall', 'orders.create', 'secret-key-2', 'f')",
                     "claim_many('mall', 'orders.create', '{secret-key-1,secret-key-3}', '{f,f}')",
                     "claim('mall', 'orders.create', repeat('x', 256), 'f')",
                     "claim('mall', 'orders.create', 'k', '')",
                     "claim('mall', 'orders.create', NULL, 'f')",
                     "claim('mall', 'orders.create', 'k', 'f', '0 s')",
                     "settle('mall', 'orders.create', 'secret-key-2', 'failed', 'b', 'r')",
                     "settle('mall', 'orders.create', 'secret-key-2', 'nonsense', 'b', 'r')",
                     "mark('" + str(row.token) + "', 'x')", "due()"):
            try:
                heard.append(str(mall.execute(f"SELECT * FROM idem.{call}").fetchall()))
            except psycopg.Error as error:
                heard.append(parts(error.diag))
        told = "\n".join(heard)
        for word in ("secret-step", "secret-data", "fingerprint 1", str(row.id)):
            assert word not in told, (word, told)
        assert "in_progress" not in told and "mismatch" not in told, told
    # The keys were in what mall itself said, and got records of its own.
    sql = "SELECT count(*) FROM idem.local_records WHERE principal = 'mall'"
    assert owner.admin(sql) == [(3,)]


def parts(diag):
    names = ("message_primary", "message_detail", "message_hint", "context", "internal_query")
    return " | ".join(str(getattr(diag, name)) for name in names)


def words_of_sql_are_words(owner):
    """What looks like SQL in an argument is stored and answered as it is"""
    nasty = "');DROP/**/TABLE/**/idem.local_records;--\"\\$$"
    with login(owner, "shop") as shop:
        row = claim(shop, nasty, endpoint=nasty)
        assert row.outcome == "execute"
        assert one(shop, "SELECT idem.mark(%s, %s)", row.token, nasty) == "ok"
        answer = "SELECT idem.complete(%s, headers => %s, body => %s)"
        assert one(shop, answer, row.token, nasty, b"\x00\\x00'\xff") == "ok"
        again = claim(shop, nasty, endpoint=nasty)
        assert (again.headers, bytes(again.body)) == (nasty, b"\x00\\x00'\xff")


def row_security_is_a_second_wall(owner):
    """Even as the tables' owner a role sees and writes its own principals' rows only"""
    row = victim(owner)
    owner.admin("GRANT idem_owner TO mall")
    try:
        with login(owner, "mall") as mall:
            claim(mall, "own", principal="mall")
            mall.execute("SET ROLE idem_owner")
            rows = mall.execute("SELECT principal FROM idem.local_records").fetchall()
            assert rows == [("mall",)], rows
            sql = "UPDATE idem.local_records SET version = 9 WHERE principal = 'shop'"
            assert mall.execute(sql).rowcount == 0
            assert mall.execute("DELETE FROM idem.local_records").rowcount == 1
            columns = "row, id, principal, endpoint, key, fingerprint, state, local_only"
            refused(mall, f"INSERT INTO idem.local_records ({columns}, lease_end, created, updated)"
                    " VALUES (7, gen_random_uuid(), 'shop', 'e', 'k', 'f', 1, true, now(), now(),"
                    " now())", state=DENIED)
    finally:
        owner.admin("REVOKE idem_owner FROM mall")
    unchanged(owner, row)


def limits_are_kept(owner):
    """Each argument at its limit is taken, beyond it refused, and nothing is written"""
    with login(owner, "shop") as shop:
        row = claim(shop, "k" * 255, endpoint="e" * 64, fingerprint=b"f" * 64, lease="24 h")
        assert row.outcome == "execute"
        claims = "SELECT * FROM idem.claim(%s, %s, %s, %s, %s)"
        good = ["shop", "e", "key", b"f", "60 s"]
        for place, wrong in ((1, "e" * 65), (1, ""), (1, None), (1, "a b"), (2, "k" * 256), (2, ""),
                             (2, None), (2, "k\n"), (2, "k\u00e9"), (3, b"f" * 65), (3, b""),
                             (3, None), (4, "0.5 s"), (4, "25 h"), (4, None)):
            arguments = good[:place] + [wrong] + good[place + 1:]
            refused(shop, claims, *arguments, state="22023")
        refused(shop, claims, "s" * 65, *good[1:], state="22023")
        refused(shop, claims, None, *good[1:], state="22023")
        one(shop, "SELECT idem.mark(%s, %s, %s)", row.token, "s" * 64, b"d" * 65536)
        for more in ("status => 1000", "status => -1", "headers => repeat('h', 8193)",
                     "body => convert_to(repeat('b', 1048577), 'UTF8')", "verdict => 'maybe'",
                     "verdict => NULL", "retention => '59 min'", "retention => '3661 d'"):
            refused(shop, f"SELECT idem.complete(%s, {more})", row.token, state="22023")
        for call in ("mark(%s, repeat('s', 65))", "mark(%s, 's', convert_to(repeat('d', 65537),"
                     " 'UTF8'))", "mark(%s, 's', lease => '0 s')", "heartbeat(%s, '25 h')"):
            refused(shop, f"SELECT idem.{call}", row.token, state="22023")
        for effect in ("a:b", "a b", "e" * 65):
            refused(shop, "SELECT idem.dispatch(%s, %s)", row.token, effect, state="22023")
        settle = "SELECT idem.settle('shop', 'e', 'k', %s, %s, %s)"
        for arguments in (("maybe", "b", "r"), (None, "b", "r"), ("failed", "", "r"),
                          ("failed", "b", ""), ("failed", None, "r"), ("failed", "b" * 65, "r"),
                          ("failed", "b", "r" * 256), ("executed", "b", "r")):
            refused(shop, settle, *arguments, state="22023")
        refused(shop, "SELECT * FROM idem.due(0)", state="22023")
        refused(shop, "SELECT * FROM idem.claim_many('shop', 'e', '{a,b}', '{f}')", state="22023")
        refused(shop, "SELECT * FROM idem.claim_many('shop', 'e', '{a,NULL}', '{f,f}')",
                state="22023")
        refused(shop, "SELECT * FROM idem.complete_many('{}', '{failed}', '{}', '{}', '{}')",
                state="22023")
        body = "SELECT idem.complete(%s, body => convert_to(repeat('b', 1048576), 'UTF8'))"
        assert one(shop, body, row.token) == "ok"
    assert owner.admin("SELECT count(*) FROM idem.local_records") == [(1,)]


def installing_again(owner):
    """The script runs again on what it made, by halves or by many, and keeps what is there"""
    row = victim(owner)
    owner.admin("SELECT idem.allow('mall', 'shop')")
    for _ in range(2):
        owner.install()
    face.together([owner.install] * 3)
    unchanged(owner, row)
    assert owner.admin("SELECT * FROM idem.local_grants") == [("mall", "shop")]
    owner.admin("SELECT idem.disallow('mall', 'shop')")
    text = pathlib.Path(face.SCRIPT).read_text(encoding="utf-8")
    owner.owner.execute(text)  # By a driver, without psql.
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as half:
        half.write(text.replace("RESET ROLE;", "SELECT 1/0;\nRESET ROLE;"))
        half.flush()
        before, face.SCRIPT = face.SCRIPT, half.name
        assert owner.install(check=False).returncode != 0
        face.SCRIPT = before
    unchanged(owner, row)


def a_newer_version_is_refused(owner):
    """What a newer release has made is left alone"""
    owner.admin("UPDATE idem.local_meta SET value = '2' WHERE key = 'schema'")
    try:
        done = owner.install(check=False)
        assert done.returncode != 0 and "of version 2" in done.stderr, done.stderr
        assert "nothing was changed" in done.stderr
    finally:
        owner.admin("UPDATE idem.local_meta SET value = '1' WHERE key = 'schema'")
    owner.install()


def the_services_tables_stay(owner):
    """Beside the service's tables: theirs are not touched, and nobody gets at them"""
    name = owner.server.new_database()
    before, owner.database = owner.database, name
    try:
        other = owner.server.connect(name)
        other.execute("CREATE ROLE service LOGIN; GRANT CREATE ON DATABASE " + name + " TO service")
        other.execute("SET ROLE service")
        other.execute("CREATE SCHEMA idem; CREATE TABLE idem.meta (key text, value text);"
                      " CREATE TABLE idem.intents (key text); INSERT INTO idem.meta VALUES"
                      " ('schema', '7')")
        other.execute("RESET ROLE")
        owner.install()
        with contextlib.closing(owner.connect("shop")) as shop:
            assert claim(shop, "k").outcome == "execute"
            for table in ("meta", "intents"):
                refused(shop, f"SELECT * FROM idem.{table}", state=DENIED)
        assert other.execute("SELECT * FROM idem.meta").fetchall() == [("schema", "7")]
        other.execute("SET ROLE idem_owner")
        refused(other, "SELECT * FROM idem.meta", state=DENIED)
        other.close()
    finally:
        owner.database = before


def without_a_superuser(owner):
    """An owner of the database who may create roles can install it, and is not left with more"""
    name = owner.server.new_database()
    owner.admin("CREATE ROLE installer LOGIN CREATEROLE")
    if owner.owner.info.server_version >= 160000:  # As if it had made the role itself.
        owner.admin("GRANT idem_owner TO installer WITH ADMIN TRUE, INHERIT FALSE, SET FALSE")
    owner.admin(f'ALTER DATABASE "{name}" OWNER TO installer')
    before, owner.database = owner.database, name
    try:
        text = pathlib.Path(face.SCRIPT).read_text(encoding="utf-8")
        with contextlib.closing(owner.connect("installer")) as installer:
            installer.execute(text)
            installer.execute(text)
            refused(installer, "SELECT * FROM idem.local_records", state=DENIED)
        with contextlib.closing(owner.connect("shop")) as shop:
            assert claim(shop, "k").outcome == "execute"
    finally:
        owner.database = before


TESTS = [value for value in list(globals().values()) if getattr(value, "__doc__", None)
         and callable(value) and getattr(value, "__module__", "") == __name__
         and value.__code__.co_varnames[:value.__code__.co_argcount] == ("owner",)
         and value.__name__ != "victim"]


def prepare(owner):
    owner.role("mall", "idem_caller")
    owner.role("nobody_here")


if __name__ == "__main__":
    face.run(TESTS, sys.argv[1:], prepare)
