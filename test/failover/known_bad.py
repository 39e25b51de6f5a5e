"""
What a pair of servers promises, and the ways to lose it: shown with clients of plain SQL.

Goal: the eyes of a failover test are open. Each known way to lose what was acknowledged is walked,
and the loss must be seen; the way that loses nothing is walked by the same clients and counted by
the same eyes.

Method: clients claim keys, one transaction each, on a primary with a standby, and write down what
COMMIT told them: that it is there, that it is there with a WARNING, or nothing. Something happens;
the primary is killed (kill -9 of all its processes); the standby is promoted; what it has is held
against what was told. Two kinds of client look at the same answers: one that reads the WARNING, and
one that believes COMMIT. Usage:

    known_bad.py [--slice] [NAME]...      a slice is two scenes
"""

import collections
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
import postgres  # noqa: E402

CLIENTS = 6
TABLE = "CREATE TABLE claims (key text PRIMARY KEY, client integer NOT NULL)"
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


class Client(threading.Thread):
    """Claims key after key until its connection ends."""

    def __init__(self, server, database, number):
        super().__init__(daemon=True)
        self.connection = server.connect(database)
        self.connection.add_notice_handler(self.notice)
        self.connection.execute("SET synchronous_commit = on")
        self.number = number
        self.warned = False
        self.told = collections.defaultdict(list)  # clean, warned, unknown: keys
        self.stopping = False

    def notice(self, diagnosis):
        self.warned = self.warned or diagnosis.severity == "WARNING"

    def claim(self, key):
        """One transaction of one statement: its INSERT is its COMMIT."""
        self.warned = False
        try:
            self.connection.execute("INSERT INTO claims VALUES (%s, %s)", (key, self.number))
        except postgres.psycopg().Error:
            self.told["unknown"].append(key)
            return False
        self.told["warned" if self.warned else "clean"].append(key)
        return True

    def run(self):
        count = 0
        while not self.stopping and self.claim(f"{self.number}-{count}"):
            count += 1


class Clients:
    def __init__(self, server):
        self.database = server.new_database()
        server.psql(TABLE, self.database)
        self.all = [Client(server, self.database, number) for number in range(CLIENTS)]
        for client in self.all:
            client.start()

    def told(self, what):
        return [key for client in self.all for key in client.told[what]]

    def wait_for(self, what, count):
        harness.World.wait_until(lambda: len(self.told(what)) >= count, f"{count} {what} claims")

    def end(self):
        """Their server is dead, or they end after what they are at."""
        for client in self.all:
            client.stopping = True
        for client in self.all:
            client.join(30)
            assert not client.is_alive(), "a client does not end"

    def missing(self, server, what):
        there = {key for (key,) in server.rows("SELECT key FROM claims", database=self.database)}
        return [key for key in self.told(what) if key not in there]

    def report(self, server):
        parts = [
            f"{len(self.told(what))} {what}, {len(self.missing(server, what))} of them not there"
            for what in ("clean", "warned", "unknown")
        ]
        print("# " + "; ".join(parts), flush=True)


class Scenes:
    """One pair for all; each scene ends with the former primary made anew."""

    def __init__(self):
        self.pair = postgres.Pair()

    def fail_over(self, clients):
        self.pair.primary.kill()
        clients.end()
        self.pair.promote()
        clients.report(self.pair.primary)

    def set_synchronous(self, on):
        self.pair.synchronous = on
        names = f"FIRST 1 ({self.pair.standby.name})" if on else ""
        self.pair.primary.set(synchronous_standby_names=names)
        self.pair.wait_follows()

    def synchronous_loses_nothing(self):
        """A synchronous pair loses nothing that was acknowledged when its primary is killed"""
        clients = Clients(self.pair.primary)
        clients.wait_for("clean", 300)
        self.fail_over(clients)
        assert not clients.missing(self.pair.primary, "clean")
        assert not clients.told("warned")

    def cut_off_acknowledges_nothing(self):
        """
        A synchronous primary without its standby acknowledges nothing, and restarted has the rows
        """
        clients = Clients(self.pair.primary)
        clients.wait_for("clean", 100)
        self.pair.cut()
        time.sleep(0.1)
        told = len(clients.told("clean"))
        time.sleep(1)
        assert len(clients.told("clean")) == told, "acknowledged without a standby"
        old = self.pair.primary
        self.fail_over(clients)
        assert not clients.missing(self.pair.primary, "clean")
        unknown = clients.told("unknown")
        assert len(clients.missing(self.pair.primary, "unknown")) == len(unknown) == CLIENTS
        old.start()  # Alone again, it shows what it never acknowledged to anybody.
        assert not clients.missing(old, "unknown"), "the old primary has forgotten"
        old.kill()

    def asynchronous_loses(self):
        """SEEN: an asynchronous pair whose standby is cut off loses what it acknowledged"""
        self.set_synchronous(False)
        clients = Clients(self.pair.primary)
        clients.wait_for("clean", 100)
        self.pair.cut()
        clients.wait_for("clean", 400)
        self.fail_over(clients)
        assert clients.missing(self.pair.primary, "clean"), "the loss was not seen"
        self.pair.synchronous = True

    def named_away_loses(self):
        """SEEN: taking the standby's name away, so that commits go on without it, loses them"""
        clients = Clients(self.pair.primary)
        clients.wait_for("clean", 100)
        self.pair.cut()
        self.pair.primary.set(synchronous_standby_names="")
        clients.wait_for("clean", 400)
        self.fail_over(clients)
        assert clients.missing(self.pair.primary, "clean"), "the loss was not seen"

    def cancelled_wait_loses(self):
        """SEEN: a cancelled wait is lost to who believes COMMIT, not to who reads its WARNING"""
        clients = Clients(self.pair.primary)
        clients.wait_for("clean", 100)
        self.pair.cut()
        end = time.monotonic() + harness.PATIENCE_S
        while len(clients.told("warned")) < 10 and time.monotonic() < end:
            self.pair.primary.rows(f"SELECT pg_cancel_backend(pid) FROM ({WAITING}) waiting")
        self.fail_over(clients)
        assert not clients.missing(self.pair.primary, "clean")
        assert clients.missing(self.pair.primary, "warned"), "the loss was not seen"

    def lagging_standby_loses(self):
        """SEEN: promoting the standby that is behind loses, the other one of the quorum does not"""
        third = postgres.Server(name="c", make=False)
        try:
            self.pair.follow(third)
            names = f"ANY 1 ({self.pair.standby.name}, {third.name})"
            self.pair.primary.set(synchronous_standby_names=names)
            clients = Clients(self.pair.primary)
            clients.wait_for("clean", 100)
            third.wait_replayed()
            third.set(primary_conninfo="")
            clients.wait_for("clean", len(clients.told("clean")) + 300)
            self.pair.primary.kill()
            clients.end()
            assert self.pair.standby.lsn() > third.lsn(), "who is behind cannot be told"
            third.rows("SELECT pg_promote(true, 60)")
            clients.report(third)
            assert clients.missing(third, "clean"), "the loss was not seen"
            self.pair.promote()
            clients.report(self.pair.primary)
            assert not clients.missing(self.pair.primary, "clean")
        finally:
            third.close()

    def close(self):
        self.pair.close()


SCENES = [  # The first two walk all that matters; the others are for longer runs.
    Scenes.cancelled_wait_loses,
    Scenes.synchronous_loses_nothing,
    Scenes.asynchronous_loses,
    Scenes.cut_off_acknowledges_nothing,
    Scenes.named_away_loses,
    Scenes.lagging_standby_loses,
]


def main():
    words = [word for word in sys.argv[1:] if word != "--slice"]
    chosen = SCENES[:2] if len(words) < len(sys.argv) - 1 else SCENES
    scenes = Scenes()
    began = []

    def told(scene):
        def test(_):
            if began:  # The pair is whole again first.
                scenes.pair.rejoin()
            began.append(scene)
            scene(scenes)

        test.__doc__ = scene.__doc__
        test.__name__ = scene.__name__
        return test

    try:
        harness.run([told(scene) for scene in chosen], "-", words)
    finally:
        scenes.close()


if __name__ == "__main__":
    main()
