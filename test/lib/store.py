"""
The store of a world: which one it is, and eyes for what it holds.

Goal: a test asks and judges in the same words whatever the store is. `--store sqlite|postgres` of a
script says which, or IDEM_TEST_STORE; without either it is sqlite.

Method: questions are SQL that both understand, with `?` for values; answers come back alike, as
rows that are read by place and by name: numbers and truth values as int, text as str, ids, tokens
and digests as bytes. Nothing is asked over the service: each question has a connection of its own
beside it. PostgreSQL is one private server for each test program (postgres.py), with a database of
its own for each world.
"""

import atexit
import contextlib
import decimal
import os
import re
import shutil
import sqlite3
import sys
import threading
import time

STORES = ("sqlite", "postgres")

# Columns that hold bytes in both; other bytes of PostgreSQL's are text that was only kept.
BYTES = {
    "id", "scope", "fingerprint", "token", "last_command", "payment_id", "refund_id",
    "secret_sha256",
}
TABLES = (
    "meta", "intents", "payments", "refunds", "sends", "events", "cases", "stubs", "credentials",
)

# What is about a file and says nothing of a database: script: (its tests, the reason). None: all.
SQLITE_ONLY = {
    "disk.py": (
        ("unknown_commit", "full_at_accept", "full_at_settle", "refused_at_the_door",
         "damage_while_running", "log_taken_away"),
        "limits and damages the store's own files; for a server's there is pg_server.py",
    ),
    "backup.py": (
        None,
        "`idem backup` and files of older versions; a database is copied by its own tools, and"
        " restored.py serves such copies",
    ),
    "torture.py": (None, "fails the calls that SQLite makes"),
}


def arguments_take():
    """Takes `--store NAME` out of the script's words."""
    if "--store" in sys.argv:
        at = sys.argv.index("--store")
        os.environ["IDEM_TEST_STORE"] = "".join(sys.argv[at + 1 : at + 2])
        del sys.argv[at : at + 2]
    name = os.environ.get("IDEM_TEST_STORE") or "sqlite"
    if name not in STORES:
        sys.exit(f"{sys.argv[0]}: --store is one of {', '.join(STORES)}, not {name!r}")
    return name


NAME = arguments_take()

# Descriptors that come when there is work for them: writers and readers by default, but for the
# first writer, which has been there since the start.
FILES_LATER = 0 if NAME == "sqlite" else 4 + 2 - 1


def reason_to_skip(script, test):
    """Why a test does not run on this store; "" if it does."""
    tests, reason = SQLITE_ONLY.get(script, ((), ""))
    skipped = NAME != "sqlite" and (tests is None or test in tests)
    return reason if skipped else ""


class Row(tuple):
    """A row, by place and by name."""

    def __new__(cls, values, names):
        row = super().__new__(cls, values)
        row.names = names
        return row

    def __getitem__(self, which):
        return super().__getitem__(self.names[which] if isinstance(which, str) else which)

    def __reduce__(self):
        return tuple, (tuple(self),)


def rows_of(cursor):
    if cursor.description is None:
        return []
    columns = [column[0] for column in cursor.description]
    names = {name: place for place, name in enumerate(columns)}
    return [Row(map(plain, columns, row), names) for row in cursor.fetchall()]


def plain(name, value):
    if isinstance(value, (bytes, memoryview)):
        value = bytes(value)
        return value if name in BYTES else value.decode("utf-8", "surrogateescape")
    if isinstance(value, (bool, decimal.Decimal)):
        return int(value)
    return value


class Sqlite:
    """A file in the world's directory."""

    NAME = "sqlite"
    FILES = ("idem.db", "idem.db.secrets")

    def __init__(self, directory):
        self.directory = directory
        self.path = directory / "idem.db"

    def address(self):
        return f"sqlite:{self.path}"

    def configuration(self):
        return ""

    def connect(self, how):
        return contextlib.closing(sqlite3.connect(f"file:{self.path}?{how}", uri=True, timeout=30))

    def rows(self, sql, *values):
        """What the store holds, read beside the service."""
        with self.connect("mode=ro") as database:
            return rows_of(database.execute(sql, values))

    def change(self, *statements):
        """Does (sql, value ...) to it, all or nothing. Nobody serves it meanwhile."""
        with self.connect("mode=rw") as database:
            for sql, *values in statements:
                database.execute(sql, values)
            database.commit()

    def holds(self, text):
        """Whether the text lies anywhere in it, forgotten or not. Nobody serves it."""
        names = ("idem.db", "idem.db-wal")
        paths = [self.directory / name for name in names]
        return any(text.encode() in path.read_bytes() for path in paths if path.exists())

    def damage(self):
        """What its own check finds; "" is well."""
        verdict = self.rows("PRAGMA integrity_check")[0][0]
        return "" if verdict == "ok" else verdict

    def remove(self):
        """As if it had never been; the secrets stay."""
        for name in ("idem.db", "idem.db-wal", "idem.db-shm"):
            (self.directory / name).unlink(missing_ok=True)

    def copy_take(self):
        """A copy as it is now, with the secrets. Nobody serves it; somebody may have died on it."""
        copy = self.directory / "copy"
        copy.mkdir()
        with self.connect("mode=rw") as store:
            with contextlib.closing(sqlite3.connect(copy / "idem.db")) as target:
                store.backup(target)
        shutil.copy2(self.directory / "idem.db.secrets", copy / "idem.db.secrets")

    def copy_put_back(self):
        self.remove()
        for name in self.FILES:
            shutil.copy2(self.directory / "copy" / name, self.directory / name)

    def keep(self):
        """What is needed to look at it when all processes are gone is in the directory."""

    def close(self):
        pass


class Places:
    """One private server for everybody in this process; it stays until the process ends."""

    def __init__(self):
        self.lock = threading.Lock()
        self.server = None
        self.count = 0
        self.free = []
        self.failed = None

    def run(self, ready):
        """The server ends with the thread that started it: this one never does."""
        import postgres  # pylint: disable=import-outside-toplevel

        try:
            # A dozen worlds at once, each with a dozen connections.
            server = postgres.Server({"max_connections": "300", "max_wal_size": "2GB"})
            atexit.register(server.close)
            server.start()
            self.server = server
        except BaseException as error:  # pylint: disable=broad-except
            self.failed = error
        ready.set()
        threading.Event().wait()

    def get(self):
        with self.lock:
            if self.server is None:
                ready = threading.Event()
                threading.Thread(target=self.run, args=(ready,), daemon=True).start()
                ready.wait()
            if self.failed is not None:
                raise AssertionError("no private PostgreSQL server") from self.failed
            return self.server

    def take(self):
        """A name, and whether its database is there: empty, and used before."""
        with self.lock:
            if self.free:
                return self.free.pop(), True
            self.count += 1
            return f"world{self.count}", False

    def give_back(self, name):
        with self.lock:
            self.free.append(name)


PLACES = Places()
PATIENT = {"connect_timeout": 60}


class Postgres:
    """
    A database of its own; the secrets are a file in the world's directory. `port`: of a wire to the
    server, which the service has to take.
    """

    NAME = "postgres"

    def __init__(self, directory, server=None, port=None):
        self.directory = directory
        self.server = server or PLACES.get()
        self.port = port or self.server.port
        self.shared = server is None
        self.secrets = directory / "idem.secrets"
        self.name, is_there = PLACES.take() if self.shared else (server.new_database(), True)
        if not is_there:
            self.say(f"CREATE DATABASE {self.name}")

    def address(self):
        return self.server.url(self.name).replace(f":{self.server.port}/", f":{self.port}/")

    def configuration(self):
        return f'secrets = "{self.secrets}";'

    def say(self, sql):
        """To the server, beside all databases of worlds."""
        with contextlib.closing(self.server.connect(**PATIENT)) as connection:
            connection.execute(sql)

    def connect(self):
        options = {"options": "-c search_path=idem", "autocommit": False}
        return contextlib.closing(self.server.connect(self.name, **options, **PATIENT))

    @staticmethod
    def run(connection, sql, values):
        sql = re.sub(r"\?", "%s", sql.replace("%", "%%")) if values else sql
        return connection.execute(sql, values or None)

    def rows(self, sql, *values):
        with self.connect() as connection:
            return rows_of(self.run(connection, sql, values))

    def change(self, *statements):
        with self.connect() as connection:
            for sql, *values in statements:
                self.run(connection, sql, values)
            connection.commit()

    def holds(self, text):
        """
        Whether a row has the text. What was deleted stays in the server's files until vacuum and
        checkpoints have passed; what becomes of those is not idem's.
        """
        with self.connect() as connection:
            for table in TABLES:
                for row in connection.execute(f"SELECT * FROM {table}"):
                    if any(text.encode() in plain_bytes(value) for value in row):
                        return True
        return False

    def damage(self):
        """Every row can be read, and indexes have as many as tables."""
        with self.connect() as connection:
            for table in TABLES:
                counts = []
                for scan in ("on", "off"):
                    connection.execute(f"SET LOCAL enable_seqscan = {scan}")
                    sql = f"SELECT count(*) FROM (SELECT * FROM {table} OFFSET 0) AS all_rows"
                    counts.append(connection.execute(sql).fetchone()[0])
                if len(set(counts)) > 1:
                    return f"{table}: {counts}"
        return ""

    def alone(self, sql):
        """What nobody else may be connected for; who was killed may take a moment to go."""
        end = time.monotonic() + 30
        while True:
            try:
                return self.say(sql)
            except self.errors() as error:
                if "being accessed by other users" not in str(error) or time.monotonic() > end:
                    raise
            time.sleep(0.05)

    @staticmethod
    def errors():
        import postgres  # pylint: disable=import-outside-toplevel

        return postgres.psycopg().Error

    def remove(self):
        self.alone(f"DROP DATABASE {self.name}")
        self.say(f"CREATE DATABASE {self.name}")

    def cut(self):
        """Ends every connection to it, also in the middle of something."""
        self.say(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            f" WHERE datname = '{self.name}'"
        )

    def copy_take(self):
        self.say(f"DROP DATABASE IF EXISTS {self.name}_copy")
        self.alone(f"CREATE DATABASE {self.name}_copy TEMPLATE {self.name}")
        shutil.copy2(self.secrets, self.directory / "copy.secrets")

    def copy_put_back(self):
        self.alone(f"DROP DATABASE {self.name}")
        self.say(f"CREATE DATABASE {self.name} TEMPLATE {self.name}_copy")
        shutil.copy2(self.directory / "copy.secrets", self.secrets)

    def keep(self):
        """All tables, as a SQLite file with the embedded store's name."""
        target = sqlite3.connect(self.directory / "idem.db")
        with contextlib.closing(target), self.connect() as connection:
            for table in TABLES:
                rows = rows_of(connection.execute(f"SELECT * FROM {table}"))
                if not rows:
                    continue
                names = ", ".join(f'"{name}"' for name in rows[0].names)
                places = ", ".join("?" for _ in rows[0].names)
                target.execute(f"CREATE TABLE {table} ({names})")
                target.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
            target.commit()

    def close(self):
        """The shared server's database is emptied for the next world: faster than a new one."""
        if not self.shared:
            return
        self.cut()
        with self.connect() as connection:
            connection.execute("DROP SCHEMA IF EXISTS idem CASCADE")
            connection.commit()
        PLACES.give_back(self.name)


def plain_bytes(value):
    return bytes(value) if isinstance(value, (bytes, memoryview)) else str(value).encode()


def make(directory):
    return Sqlite(directory) if NAME == "sqlite" else Postgres(directory)
