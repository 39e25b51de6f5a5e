"""
What the tests of the SQL face share: a private server with sql/idem.sql in it, roles that log in,
callers that meet, and tests that print TAP.
"""

import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test" / "lib"))
import postgres  # noqa: E402
from together import together  # noqa: E402

psycopg = postgres.psycopg()
SCRIPT = os.environ.get("IDEM_SQL") or ROOT / "sql" / "idem.sql"
F1 = b"fingerprint 1"
F2 = b"fingerprint 2"


class Face:
    """A database with the functions in it. `shop` may call them; `desk` is an operator."""

    def __init__(self):
        self.server = postgres.Server()
        self.server.start(deadlock_timeout="200ms")
        self.database = self.server.new_database()
        self.owner = self.server.connect(self.database)
        self.pool = []
        self.install()
        self.role("shop", "idem_caller")
        self.role("desk", "idem_operator")

    def install(self, check=True):
        words = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(SCRIPT), "-d", self.url()]
        done = subprocess.run(
            ["psql", *words], capture_output=True, text=True, timeout=60, check=False
        )
        if check and done.returncode != 0:
            raise AssertionError(f"idem.sql: {done.stderr}")
        return done

    def url(self, role=None):
        url = self.server.url(self.database)
        return url.replace("//idem@", f"//{role}@") if role else url

    def role(self, name, *groups):
        self.admin(f'CREATE ROLE "{name}" LOGIN')
        for group in groups:
            self.admin(f'GRANT {group} TO "{name}"')

    def admin(self, sql, *values):
        """As the superuser of the server."""
        cursor = self.owner.execute(sql, values or None)
        return cursor.fetchall() if cursor.description else []

    def connect(self, role="shop", autocommit=True):
        """`statement_timeout`: whatever is wrong, no test waits for ever."""
        return psycopg.connect(
            self.url(role),
            autocommit=autocommit,
            connect_timeout=30,
            options="-c statement_timeout=40s",
        )

    def crowd(self, count, action):
        """action(connection) at once on so many connections, which are kept for the next crowd."""
        self.pool = [one for one in self.pool if not one.closed]
        while len(self.pool) < count:
            self.pool.append(self.connect())
        return together([lambda c=connection: action(c) for connection in self.pool[:count]])

    def clear(self):
        self.admin("DELETE FROM idem.local_records")

    def close(self):
        for connection in [self.owner, *self.pool]:
            connection.close()
        self.server.close()


def one(connection, sql, *values):
    """The single value of a single row."""
    return connection.execute(sql, values or None).fetchone()[0]


def claim(connection, key, fingerprint=F1, principal="shop", endpoint="orders.create", **more):
    """A row with names: outcome, token, ..."""
    names = "".join(f", {name} => %s" for name in more)
    cursor = connection.cursor(row_factory=psycopg.rows.namedtuple_row)
    sql = f"SELECT * FROM idem.claim(%s, %s, %s, %s{names})"
    cursor.execute(sql, (principal, endpoint, key, fingerprint, *more.values()))
    return cursor.fetchone()


def refused(connection, sql, *values, state=None):
    """The error of a statement that must fail; `state`: with this SQLSTATE."""
    try:
        connection.execute(sql, values or None)
    except psycopg.Error as error:
        if not connection.autocommit:
            connection.rollback()
        assert state in (None, error.sqlstate), f"{sql}: {error.sqlstate} {error}"
        return error
    raise AssertionError(f"it was allowed: {sql}")


def run(tests, words, prepare=None):
    """Each test on a cleared table of one face; TAP on standard output."""
    chosen = [test for test in tests if not words or any(word in test.__name__ for word in words)]
    print(f"1..{len(chosen)}", flush=True)
    face = Face()
    bad = 0
    try:
        if prepare is not None:
            prepare(face)
        for number, test in enumerate(chosen, 1):
            face.clear()
            sentence = test.__doc__.strip().splitlines()[0]
            began = time.monotonic()
            try:
                test(face)
                print(f"ok {number} - {sentence} ({time.monotonic() - began:.1f} s)", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                bad += 1
                print(f"not ok {number} - {sentence}", flush=True)
                text = f"{type(error).__name__}: {error}"
                print("".join(f"# {line}\n" for line in text.splitlines()), end="")
                print(f"# again: python3 {sys.argv[0]} {test.__name__}", flush=True)
    finally:
        face.close()
    sys.exit(1 if bad else 0)
