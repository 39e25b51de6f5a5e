"""
A backup that is made while the service works, and a store that is brought forward.

Goal: the copy opens, passes every check and has all that callers were told before it began; served
with --restored it answers them with the same bytes, and after that each order executed once. A
backup that cannot be whole leaves nothing under its name. A migration is refused while somebody
serves, and what it brought forward can be served.

Method: the real program under load; the copies are read with SQLite, the ledger is the judge.
Usage: backup.py IDEM
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import Gone, World  # noqa: E402

CANNOT_START = 4
USAGE = 2
SCHEMA_1 = pathlib.Path(__file__).resolve().parent.parent / "unit" / "store" / "schema-1.sql"


def run(idem, *arguments):
    return subprocess.run(
        [idem, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=harness.PATIENCE_S,
        check=False,
    )


def backup(world, to, *more):
    store = f"sqlite:{world.directory}/idem.db"
    return run(world.idem, "backup", "--store", store, "--to", to, *more)


class Load:
    """Pays orders one after another, in a few threads, and keeps what was answered."""

    def __init__(self, world, threads=4):
        self.world = world
        self.told = {}
        self.stopping = False
        self.threads = [threading.Thread(target=self._pay, args=(i,)) for i in range(threads)]
        for thread in self.threads:
            thread.start()

    def _pay(self, index):
        number = 0
        while not self.stopping:
            name = f"{index}-{number}"
            number += 1
            try:
                reply = self.world.pay(name, name)
            except (Gone, OSError):
                return
            if reply.status == 201:
                self.told[name] = reply.body

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()
        return self.told


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return database.execute(sql).fetchall()


def backup_under_load(idem):
    """A copy made under load has all that was told before, and is served from"""
    world = World(idem, {"wait_ms": 5000})
    try:
        load = Load(world)
        world.wait_until(lambda: len(load.told) > 200, "two hundred payments")
        before = dict(load.told)
        copy = world.directory / "copy.db"
        made = backup(world, copy)
        assert made.returncode == 0, made
        assert "Its newest record is of 20" in made.stdout, made.stdout
        assert "--restored" in made.stdout, made.stdout
        count = len(load.told)
        world.wait_until(lambda: len(load.told) > count + 50, "the service goes on")
        after = load.stop()

        for name in (copy, pathlib.Path(f"{copy}.secrets")):
            assert stat.S_IMODE(name.stat().st_mode) == 0o600, name
        assert not list(world.directory.glob("*.part")), "nothing half-made is left"
        assert rows(copy, "PRAGMA integrity_check") == [("ok",)]
        there = {row[0] for row in rows(copy, "SELECT key FROM intents WHERE state = 5")}
        assert set(before) <= there, sorted(set(before) - there)[:5]

        world.kill()
        for name in ("idem.db", "idem.db-wal", "idem.db-shm", "idem.db.secrets"):
            (world.directory / name).unlink(missing_ok=True)
        shutil.move(copy, world.directory / "idem.db")
        shutil.move(f"{copy}.secrets", world.directory / "idem.db.secrets")
        world.start(arguments=("--restored",))
        assert world.alive(), world.log_text()[-2000:]
        assert world.rows("SELECT value FROM meta WHERE key = 'restored'") == [("1",)]
        for name in list(before)[:20]:
            reply = world.pay(name, name)
            assert (reply.status, reply.body) == (201, before[name]), reply
        reply = world.pay("new", "new")
        assert reply.status == 503, reply
        assert reply.json()["effect"] == "unknown", reply

        executions = world.ledger()["executions"]
        assert executions >= len(after)
        assert all(effect["executions"] == 1 for effect in world.ledger()["effects"])
    finally:
        world.close()


def cold_copy(idem):
    """Files copied while nothing runs, log and all, are a copy too"""
    world = World(idem, {"wait_ms": 5000})
    try:
        told = {name: world.pay(name, name).body for name in ("a", "b", "c")}
        world.kill()  # Its log has not been brought home.
        assert (world.directory / "idem.db-wal").stat().st_size > 0
        place = world.directory / "elsewhere"
        place.mkdir()
        for name in ("idem.db", "idem.db-wal", "idem.db.secrets"):
            shutil.copy2(world.directory / name, place / name)
            (world.directory / name).unlink()
        (world.directory / "idem.db-shm").unlink(missing_ok=True)
        for name in ("idem.db", "idem.db-wal", "idem.db.secrets"):
            shutil.move(place / name, world.directory / name)
        world.start(arguments=("--restored",))
        assert world.alive(), world.log_text()[-2000:]
        for name, body in told.items():
            assert world.pay(name, name).body == body
    finally:
        world.close()


def refusals(idem):
    """A backup overwrites nothing, and gives no name to what is not whole"""
    world = World(idem)
    try:
        assert world.pay("a", "a").status == 201
        copy = world.directory / "copy.db"
        secrets = pathlib.Path(f"{copy}.secrets")
        for name in (copy, secrets):
            name.write_text("mine")
            made = backup(world, copy)
            assert made.returncode == CANNOT_START, made
            assert "nothing is overwritten" in made.stderr, made.stderr
            assert name.read_text() == "mine"
            name.unlink()

        made = backup(world, copy, "--secrets", world.directory / "absent")
        assert made.returncode == CANNOT_START and "--secrets" in made.stderr, made
        other = world.directory / "other.secrets"
        text = (world.directory / "idem.db.secrets").read_text()
        lines = [f"effect {'ab' * 32}" if line.startswith("effect ") else line
                 for line in text.splitlines()]
        other.write_text("\n".join(lines) + "\n")
        other.chmod(0o600)
        made = backup(world, copy, "--secrets", other)
        assert made.returncode == CANNOT_START, made
        assert "not those that the store was made with" in made.stderr, made.stderr
        made = backup(world, world.directory / "absent" / "copy.db")
        assert made.returncode == CANNOT_START and "No such file" in made.stderr, made
        wrong = ((), ("--store", "sqlite:x"), ("--to", "x"), ("--store", "x", "--to", "y"))
        for arguments in wrong:
            assert run(idem, "backup", *arguments).returncode == USAGE, arguments
        made = run(idem, "backup", "--store", "sqlite:/nowhere/x.db", "--to", copy)
        assert made.returncode == CANNOT_START, made
        assert not copy.exists() and not secrets.exists()
        assert not list(world.directory.glob("*.part"))
    finally:
        world.close()


class Paused:
    """A backup that waits for its secrets: the copy of the store is made, and has no name yet."""

    def __init__(self, world, to):
        self.world = world
        self.to = to
        self.fifo = world.directory / "slow.secrets"
        os.mkfifo(self.fifo, 0o600)
        self.process = subprocess.Popen(
            [world.idem, "backup", "--store", f"sqlite:{world.directory}/idem.db", "--to", str(to),
             "--secrets", str(self.fifo)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pipe = open(self.fifo, "wb", buffering=0)  # Until the backup opens it too.

    def go_on(self):
        """Lets it end; gives its exit status and what it said."""
        self.pipe.write((self.world.directory / "idem.db.secrets").read_bytes())
        self.pipe.close()
        self.fifo.unlink()
        said = self.process.communicate(timeout=harness.PATIENCE_S)
        return self.process.returncode, said[0] + said[1]


def two_at_once(idem):
    """A second backup to the same name is refused, and the one that runs takes no harm from it"""
    world = World(idem)
    try:
        assert world.pay("a", "a").status == 201
        copy = world.directory / "copy.db"
        running = Paused(world, copy)
        for _ in range(2):
            made = backup(world, copy)
            assert made.returncode == CANNOT_START, made
            assert "another backup writes" in made.stderr, made.stderr
        status, said = running.go_on()
        assert status == 0, said
        assert not list(world.directory.glob("*.part"))
        assert rows(copy, "SELECT key FROM intents WHERE state = 5") == [("a",)]
        assert pathlib.Path(f"{copy}.secrets").exists()

        other = world.directory / "other.db"
        with open(f"{other}.secrets.part", "wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            made = backup(world, other)
            assert made.returncode == CANNOT_START, made
            assert "another backup writes" in made.stderr, made.stderr
            assert not other.exists() and not pathlib.Path(f"{other}.part").exists()
            assert os.path.samestat(os.stat(f"{other}.secrets.part"), os.fstat(held.fileno()))
        assert backup(world, other).returncode == 0, "what was left is used"
    finally:
        world.close()


def name_taken_meanwhile(idem):
    """A name that is taken while the copy is made stays as it is, and nothing else is left"""
    world = World(idem)
    try:
        assert world.pay("a", "a").status == 201
        copy = world.directory / "copy.db"
        secrets = pathlib.Path(f"{copy}.secrets")
        for name in (copy, secrets):
            running = Paused(world, copy)
            name.write_text("mine")
            status, said = running.go_on()
            assert status == CANNOT_START, said
            assert f"{name} appeared meanwhile; nothing is overwritten" in said, said
            assert list(world.directory.glob("copy*")) == [name], "no half of a pair"
            assert name.read_text() == "mine"
            name.unlink()
        assert backup(world, copy).returncode == 0
    finally:
        world.close()


def interrupted(idem):
    """An interrupted backup leaves no name, and the next one is whole"""
    world = World(idem)
    try:
        for number in range(50):
            assert world.pay(f"k{number}", f"o{number}").status == 201
        copy = world.directory / "copy.db"
        for delay in (0.0, 0.002, 0.005, 0.01, 0.02):
            process = subprocess.Popen(
                [idem, "backup", "--store", f"sqlite:{world.directory}/idem.db", "--to", copy],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            if process.wait() == 0:
                break
            if copy.exists():
                assert rows(copy, "PRAGMA quick_check") == [("ok",)]
                assert pathlib.Path(f"{copy}.secrets").exists()
                break
            # The secrets get their name first: they alone are not taken for a backup.
            pathlib.Path(f"{copy}.secrets").unlink(missing_ok=True)
        else:
            made = backup(world, copy)
            assert made.returncode == 0, made
        assert rows(copy, "SELECT count(*) FROM intents WHERE state = 5") == [(50,)]
        assert world.pay("after", "after").status == 201
    finally:
        world.close()


def full_disk(idem):
    """A disk that has no room for the copy: a clear word, nothing left, the service unharmed"""
    world = World(idem)
    try:
        for number in range(100):
            assert world.pay(f"k{number}", f"o{number}").status == 201
        copy = world.directory / "copy.db"
        made = subprocess.run(
            ["sh", "-c", 'ulimit -f 64; trap "" XFSZ; exec "$@"', "sh", idem, "backup",
             "--store", f"sqlite:{world.directory}/idem.db", "--to", str(copy)],
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE_S,
            check=False,
        )
        assert made.returncode == CANNOT_START, made
        assert "cannot copy the store" in made.stderr, made.stderr
        assert not list(world.directory.glob("copy*")), "nothing is left"
        assert world.pay("after", "after").status == 201
    finally:
        world.close()


def migrated_store(idem):
    """An older store is refused with the way forward, migrated once nobody serves, and served"""
    world = World(idem, {"scope": "endpoint"}, start=False)
    try:
        world.start_sandbox()
        world.start()
        assert world.pay("a", "a").status == 201
        store = f"sqlite:{world.directory}/idem.db"
        made = run(idem, "migrate", "--store", store)
        assert made.returncode == CANNOT_START, made
        assert "another process serves" in made.stderr, made.stderr
        assert world.stop() == 0
        made = run(idem, "migrate", "--store", store)
        assert made.returncode == 0 and "nothing to do" in made.stdout, made

        # The records of the older store were made under another effect secret; its mark is moved.
        path = world.directory / "idem.db"
        check = rows(path, "SELECT value FROM meta WHERE key = 'effect_secret_check'")[0][0]
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(f"{path}{suffix}").unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.executescript(SCHEMA_1.read_text())
            database.execute(
                "UPDATE meta SET value = ? WHERE key = 'effect_secret_check'", (check,)
            )
            database.commit()
        os.chmod(path, 0o600)
        world.start()
        assert world.service.wait(harness.PATIENCE_S) == CANNOT_START
        assert f"idem migrate --store sqlite:{path}" in world.log_text(), world.log_text()[-1000:]

        copy = world.directory / "before.db"
        assert backup(world, copy).returncode == 0, "the older store can be backed up"
        made = run(idem, "migrate", "--store", store)
        assert made.returncode == 0, made
        assert "from schema version 1 to 3" in made.stdout, made.stdout
        assert "the file was rewritten" in made.stdout, made.stdout
        world.start()
        assert world.alive(), world.log_text()[-2000:]
        assert world.rows("SELECT count(*) FROM intents")[0][0] == 16
        for arguments in ((), ("--store", "x"), ("--store", store, "more")):
            assert run(idem, "migrate", *arguments).returncode == USAGE, arguments
    finally:
        world.close()


if __name__ == "__main__":
    harness.run(
        [
            backup_under_load,
            cold_copy,
            refusals,
            two_at_once,
            name_taken_meanwhile,
            interrupted,
            full_disk,
            migrated_store,
        ],
        sys.argv[1],
        sys.argv[2:],
    )
