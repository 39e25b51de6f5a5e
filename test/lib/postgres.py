"""
Private PostgreSQL servers for end-to-end tests, in temporary directories, for the time of a test.

    server = Server()                  initdb; nothing runs yet
    server.start()                     returns when it answers
    name = server.new_database()
    server.url(name)                   postgres://idem@127.0.0.1:PORT/NAME
    server.rows("SELECT 1", database=name)       [(1,)]
    server.psql("SELECT 1", database=name)       "1"
    server.set(fsync="off")            in its configuration, also while it runs
    server.stop(), server.stop("immediate"), server.kill()      the last is kill -9 of everything
    server.close()

    pair = Pair()                      two of them: `primary`, and its synchronous `standby`
    pair.cut(), pair.mend()            the standby hears nothing more, or again
    pair.promote()                     the standby is the primary, whatever the other one does
    pair.rejoin()                      the former primary, made anew as the standby
    pair.url(name)                     both hosts, and the one of them that can be written to

A server listens on 127.0.0.1 and on a socket in its directory, trusts everybody as the role `idem`,
which owns everything, and flushes what it acknowledges. As root it runs as an unprivileged user. It
ends with the thread that started it, so start it from one that stays. Its programs are those of
$IDEM_PG_BIN, or the newest that Debian's packages have put on the machine.

What a server is told is in a file of its own that is read again on SIGHUP, so that settings can
change while it runs, or cannot be asked.
"""

import contextlib
import glob
import itertools
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import harness

USER = "idem"
NUMBERS = itertools.count(1)  # Of databases: a standby has those of its primary.
PATIENCE_S = 60.0
STEP_S = 0.02
SETTINGS = {
    "shared_buffers": "32MB",
    "max_connections": "60",
    "wal_keep_size": "256MB",
    "max_wal_senders": "6",
    "dynamic_shared_memory_type": "mmap",  # Nothing of a killed server stays outside its directory.
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] ",
}


def programs():
    """The directory of the server's programs; None: there is no server on this machine."""
    asked = os.environ.get("IDEM_PG_BIN")
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    return asked or (os.path.dirname(found[-1]) if found else None)


def psycopg():
    """Debian's python3-psycopg, from an interpreter that is not Debian's as well."""
    try:
        import psycopg as module  # pylint: disable=import-outside-toplevel
    except ModuleNotFoundError:
        sys.path.append("/usr/lib/python3/dist-packages")
        import psycopg as module  # pylint: disable=import-outside-toplevel
    return module


def wait_until(condition, what, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never happened within {patience_s} s: {what}")
        time.sleep(STEP_S)


def quoted(value):
    return "'" + str(value).replace("'", "''") + "'"


def children_of(pid):
    with contextlib.suppress(OSError):
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        return [int(word) for word in text.split()]
    return []


class Server:
    def __init__(self, settings=None, name="one", make=True):
        self.programs = programs()
        if self.programs is None:
            raise RuntimeError("no PostgreSQL server on this machine: install postgresql")
        self.name = name
        self.settings = {**SETTINGS, **(settings or {})}
        self.user = pwd.getpwnam("nobody") if os.getuid() == 0 else None
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="idem-pg-", dir="/tmp"))
        self.data = self.directory / "data"
        if self.user is not None:
            os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        self.lock = harness.Port()
        self.port = self.lock.number
        self.process = None
        self.log = open(self.directory / "server.log", "ab")
        if make:
            words = ("-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
            self.run("initdb", "-D", str(self.data), *words)

    # ---- processes ----

    def as_user(self, program, *arguments):
        """The words that run one of the server's programs as whom it must run."""
        words = ["setpriv", "--pdeathsig", "QUIT"]
        if self.user is not None:
            words += ["--reuid", str(self.user.pw_uid), "--regid", str(self.user.pw_gid)]
            words += ["--clear-groups"]
        return [*words, "--", f"{self.programs}/{program}", *arguments]

    def run(self, program, *arguments):
        """One of the server's programs, to its end."""
        done = subprocess.run(
            self.as_user(program, *arguments),
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"{program}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def settings_write(self):
        text = "".join(f"{name} = {quoted(value)}\n" for name, value in self.settings.items())
        (self.data / "test.conf").write_text(text, encoding="utf-8")
        main = self.data / "postgresql.conf"
        line = "include 'test.conf'\n"
        if not main.read_text(encoding="utf-8").endswith(line):
            with open(main, "a", encoding="utf-8") as file:
                file.write(line)
        if self.user is not None:
            os.chown(self.data / "test.conf", self.user.pw_uid, self.user.pw_gid)

    def start(self, wait=True, **settings):
        """Starts it. `wait`: until it answers, as a standby too."""
        assert not self.alive(), "it runs already"
        self.settings.update(settings)
        self.settings_write()
        words = ("-D", str(self.data), "-k", str(self.directory), "-h", "127.0.0.1")
        self.process = subprocess.Popen(
            self.as_user("postgres", *words, "-p", str(self.port)),
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        if wait:
            self.wait_ready()

    def wait_ready(self, patience_s=PATIENCE_S):
        def ready():
            if not self.alive():
                raise AssertionError(f"the server ended:\n{self.log_text()[-2000:]}")
            return self.answers()

        wait_until(ready, "the server answers", patience_s)

    def answers(self):
        words = ["-q", "-h", str(self.directory), "-p", str(self.port), "-t", "2"]
        return subprocess.run([f"{self.programs}/pg_isready", *words], check=False).returncode == 0

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, mode="fast"):
        """smart: when all have gone; fast: in order; immediate: as after a crash."""
        if self.alive():
            signals = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
            self.process.send_signal(signals[mode])
            self.process.wait(PATIENCE_S)

    def kill(self):
        """kill -9 of every process of it at once, as if the machine was gone."""
        if not self.alive():
            return
        self.process.send_signal(signal.SIGSTOP)  # It begins no more of them.
        for pid in children_of(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def set(self, **settings):
        """Changes its configuration; returns when a running one has taken it."""
        self.settings.update(settings)
        self.settings_write()
        if not self.alive():
            return
        self.process.send_signal(signal.SIGHUP)

        def taken():
            rows = self.rows("SELECT name, sourcefile, setting FROM pg_settings WHERE name ="
                             " ANY(%s)", list(settings))
            pending = self.rows("SELECT count(*) FROM pg_file_settings f JOIN pg_settings s"
                                " USING (name) WHERE f.applied AND f.name = ANY(%s) AND f.setting"
                                " <> s.setting AND s.context <> 'postmaster' AND s.unit IS NULL",
                                list(settings))
            return len(rows) == len(settings) and pending[0][0] == 0

        wait_until(taken, f"the server takes {settings}")

    def close(self, keep=False):
        """Stops it and removes its directory. Closing twice is closing once."""
        if self.alive():
            self.stop("immediate")
        self.memory_remove()
        self.log.close()
        self.lock.close()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def memory_remove(self):
        """The System V segment of a server that was killed; its next start would have done it."""
        with contextlib.suppress(OSError, IndexError):
            lines = (self.data / "postmaster.pid").read_text(encoding="ascii").splitlines()
            segment = lines[6].split()[1]
            subprocess.run(["ipcrm", "-m", segment], stderr=subprocess.DEVNULL, check=False)

    def log_text(self):
        return (self.directory / "server.log").read_text(errors="replace")

    # ---- talking ----

    def url(self, database="postgres"):
        return f"postgres://{USER}@127.0.0.1:{self.port}/{database}"

    def connect(self, database="postgres", **options):
        """A connection of psycopg's, in autocommit unless told otherwise."""
        options = {"autocommit": True, "connect_timeout": 5, **options}
        return psycopg().connect(self.url(database), **options)

    def rows(self, sql, *values, database="postgres"):
        """What one statement returns, as a list of tuples; an empty list if it returns nothing."""
        with contextlib.closing(self.connect(database)) as connection:
            cursor = connection.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []

    def psql(self, sql, database="postgres"):
        """What psql prints for one or several statements, without decoration."""
        words = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.url(database)]
        done = subprocess.run(
            [f"{self.programs}/psql", *words],
            input=sql,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"psql: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.removesuffix("\n")

    def new_database(self, name=None):
        name = name or f"test{next(NUMBERS)}"
        self.rows(f'CREATE DATABASE "{name}"')
        return name

    def lsn(self):
        """How far its log goes, in bytes: written by a primary, received by a standby."""
        sql = ("SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()"
               " ELSE pg_current_wal_lsn() END - '0/0'")
        return int(self.rows(sql)[0][0])

    def wait_replayed(self):
        """
        A standby shows all that it has received. A record whose end its primary took with it is
        never shown: then the server waits until it may ask for the rest, and nobody brings it.
        """
        sql = (
            "SELECT pg_last_wal_replay_lsn() = pg_last_wal_receive_lsn(),"
            " NOT EXISTS (SELECT FROM pg_stat_wal_receiver) AND EXISTS (SELECT FROM"
            " pg_stat_activity WHERE wait_event = 'RecoveryRetrieveRetryInterval'),"
            " pg_last_wal_replay_lsn()::text, pg_last_wal_receive_lsn()::text"
        )
        looks = [None]

        def replayed():
            looks.append(self.rows(sql)[0])
            shown, stands = looks[-1][:2]
            return shown or (stands and looks[-1] == looks[-2])

        wait_until(replayed, "the standby has replayed")


class Pair:
    """
    A primary and its standby. `synchronous`: a commit waits until the standby has flushed it. The
    settings are those of both.
    """

    def __init__(self, settings=None, synchronous=True):
        self.synchronous = synchronous
        self.primary = Server(settings, "a")
        self.standby = Server(settings, "b", make=False)
        self.primary.start()
        self.standby_make()

    def servers(self):
        return self.primary, self.standby

    def standby_make(self):
        """A copy of the primary that follows it; returns when it does."""
        self.follow(self.standby)
        if self.synchronous:
            self.primary.set(synchronous_standby_names=f"FIRST 1 ({self.standby.name})")
        self.wait_follows()

    def follow(self, server):
        """Makes any server a copy of the primary, and starts it as a standby of it."""
        server.stop("immediate")
        server.memory_remove()
        shutil.rmtree(server.data, ignore_errors=True)
        words = ("-D", str(server.data), "-c", "fast", "-X", "stream", "-N")
        server.run("pg_basebackup", *words, "-d", self.primary.url())
        (server.data / "standby.signal").touch()
        server.settings["synchronous_standby_names"] = ""
        server.start(primary_conninfo=self.way(server))

    def way(self, server):
        port = self.primary.port
        return f"host=127.0.0.1 port={port} user={USER} application_name={server.name}"

    def wait_follows(self):
        state = "sync" if self.synchronous else "async"
        sql = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = "
        wait_until(
            lambda: self.primary.rows(sql + quoted(state))[0][0] == 1, f"the standby is {state}"
        )

    def cut(self):
        """The standby receives nothing more."""
        self.standby.set(primary_conninfo="")
        sql = "SELECT count(*) FROM pg_stat_replication"
        wait_until(lambda: self.primary.rows(sql)[0][0] == 0, "the standby is cut off")

    def mend(self):
        self.standby.set(primary_conninfo=self.way(self.standby))
        self.wait_follows()

    def promote(self):
        """
        The standby becomes the primary, alone: it waits for nobody until there is a standby again.
        What the former one does is not looked at.
        """
        self.standby.rows("SELECT pg_promote(true, 60)")
        wait_until(
            lambda: self.standby.rows("SELECT pg_is_in_recovery()")[0][0] is False, "promotion"
        )
        self.primary, self.standby = self.standby, self.primary

    def rejoin(self):
        """The former primary is thrown away and made anew as the standby."""
        self.standby_make()

    def url(self, database="postgres"):
        """Both, in an order that does not change; who connects finds the one that it can write."""
        ports = sorted(server.port for server in self.servers())
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"postgres://{USER}@{hosts}/{database}?target_session_attrs=read-write"

    def close(self, keep=False):
        for server in self.servers():
            server.close(keep)
