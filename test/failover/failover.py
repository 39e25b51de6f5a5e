"""
The primary dies under load, its standby is promoted, and the service goes on: the books compared.

Goal: on a synchronous pair of PostgreSQL servers no answer that a caller was given is ever lost,
the provider carries out each intent at most once, and every intent ends; whenever the primary
dies, and whatever the former one says when it comes back.

Method: two real instances of `idem serve` on one database of a pair (test/lib/postgres.py), found
by a URL with both hosts; callers that pay, capture, cancel and refund through the client library,
over a network that breaks and keeps a tape (test/crash/load.py, wire.py). A round is: kill -9 of
all the primary's processes at a random moment, or the moment that somebody has heard something;
then, before anybody promotes, the standby is held against the tape and the provider's ledger:
whatever was told or sent must be in what it received (audit.AtDeath). It is promoted, the instances
find it by themselves, and every other time the former primary comes back, alone and sure of itself:
nobody may ask it anything about intents. It is made anew as the standby, and the next round begins.
At the end everything heals, all intents must end, all requests are sent once more, and the audit of
test/crash compares ledger, store, journals and every answer that ever left either instance.

The eyes are tested too, at the beginning of each game: while commits do not wait for a standby that
is cut off, it must be seen that what was told is not there.

    failover.py IDEM CALLER [--slice] [--minutes N] [--seed N] [NAME]...

A slice is the first test with one round and fewer callers. --minutes repeats the first test with
new seeds. One seed gives load and moments; processes run at their own pace, so it gives the same
kind of run and not the same run. What a failed run leaves stays, and its directory is printed.
"""

import argparse
import contextlib
import json
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("lib", "crash", "failover"):
    sys.path.insert(0, str(HERE.parent / folder))
import harness  # noqa: E402
import audit  # noqa: E402
import load  # noqa: E402
import postgres  # noqa: E402
import store as stores  # noqa: E402

CALLERS = 7  # The last is the rival.
CALLERS_SLICE = 4
NOSY = 2
QUIET_S = 90  # Until everything has ended, once all is well.
AWAY_S = 60
WAITING_MAX = 36  # Connections of two instances; a third of what each try would have taken.
AGAIN_S = 60  # Until somebody is told something new, once there is a primary.
SETTINGS = {
    "lease_ms": 3000,
    "request_timeout_ms": 400,
    "settle_ms": 300,
    "ask_first_ms": 80,
    "ask_max_ms": 500,
    "release_s": 5,
    "stop_grace_ms": 3000,
    "wait_ms": 1500,
    "entries": ("sandbox", "sandbox-lagging", "sandbox-closing", "sandbox-plain", "sandbox-blind"),
}
# Of the former primary, which comes back: everything that it is asked is in its log.
TALKATIVE = {"log_statement": "all"}
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


class PairStore(stores.Postgres):
    """A database of a pair. `server` is whose copy is looked at: the primary's, unless told."""

    def __init__(self, directory, pair):  # pylint: disable=super-init-not-called
        self.directory = directory
        self.pair = pair
        self.server = pair.primary
        self.name = pair.primary.new_database()
        self.secrets = directory / "idem.secrets"

    def address(self):
        return self.pair.url(self.name)

    def keep(self):
        with contextlib.suppress(self.errors()):  # Its server may be what has failed.
            super().keep()

    def close(self):
        """It ends with the pair."""


class Second(harness.World):
    """Another instance in somebody's world."""

    def __init__(self, first):  # pylint: disable=super-init-not-called
        self.__dict__.update(first.__dict__)
        self.service = None
        self.lock = harness.Port()
        self.port = self.lock.number

    def config_path(self):
        return self.directory / "second.conf"


class Fronts:
    """Where callers go: to either instance."""

    def __init__(self, dice):
        self.ports = [harness.Port(), harness.Port()]
        self.dice = dice

    @property
    def number(self):
        return self.dice.choice(self.ports).number

    def close(self):
        for port in self.ports:
            port.close()


class Game:
    """A database, its two instances and their callers, from the beginning to the audit."""

    def __init__(self, pair, programs, seed):
        self.pair = pair
        self.seed = seed
        self.program = programs.caller
        self.batch = (10, 30)
        self.dice = random.Random(f"{seed}/failover")
        self.world = harness.World(programs.idem, SETTINGS, start=False, store=self)
        self.store = PairStore(self.world.directory, pair)
        self.world.store = self.store
        self.directory = self.world.directory
        self.second = Second(self.world)
        self.instances = (self.world, self.second)
        self.front = Fronts(random.Random(f"{seed}/front"))
        self.wires = []
        callers = CALLERS_SLICE if programs.slice else CALLERS
        self.book = load.Book(self.directory, seed, callers, lasting=False)
        self.callers = [load.Caller(self, slot) for slot in range(callers)]
        self.nosy = [load.Nosy(self, number) for number in range(NOSY)]
        self.at_death = audit.AtDeath(self.directory, self.store)
        self.violations = []
        self.again_s = []  # How long after each promotion somebody was told something new.
        self.pair_is_dead = False
        threading.excepthook = lambda what: self.violations.append(f"broke: {what.exc_value!r}")

    # ---- begin and end ----

    def begin(self):
        self.world.start_sandbox()
        for instance in self.instances:
            instance.start()
            assert instance.alive(), self.world.log_text()[-2000:]
        for instance, port in zip(self.instances, self.front.ports):
            words = (str(port.number), str(instance.port), self.directory / "wire", str(self.seed))
            wire = subprocess.Popen(
                [sys.executable, HERE.parent / "crash" / "wire.py", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.world.log,
                text=True,
            )
            self.wires.append(wire)
            assert wire.stdout.readline() == "ready\n", "the network does not begin"
        for thread in self.callers + self.nosy:
            thread.start()

    def calm(self):
        """Nobody begins anything new, and the network carries all."""
        for thread in self.callers + self.nosy:
            thread.stopping = True
        for caller in self.callers:
            caller.kill()
        for thread in self.callers + self.nosy:
            thread.join(harness.PATIENCE_S)
            assert not thread.is_alive(), "a caller does not end"
        for wire in self.wires:
            wire.stdin.write("heal\n")
            wire.stdin.flush()
            wire.stdout.readline()

    def close(self):
        keep = bool(self.violations)
        for thread in self.callers + self.nosy:
            thread.stopping = True
        for caller in self.callers:
            caller.kill()
        for wire in self.wires:
            wire.kill()
            wire.wait()
        if self.second.alive():
            self.second.kill()
        self.front.close()
        self.second.lock.close()
        self.world.close(keep)
        if keep:
            print(f"# kept: {self.directory}", flush=True)

    # ---- a round ----

    def heard(self):
        """How much was told and how much arrived at the provider."""
        sizes = []
        for name in ("wire", "ledger"):
            path = self.directory / name
            sizes.append(path.stat().st_size if path.exists() else 0)
        return sizes

    def wait_speaks(self, patience_s):
        """Until somebody hears something."""
        before = self.heard()
        end = time.monotonic() + patience_s
        while self.heard() == before and time.monotonic() < end:
            time.sleep(0.0005)
        return self.heard() != before

    def kill_primary(self):
        if self.dice.random() < 0.7:
            self.wait_speaks(1)
        self.pair.primary.kill()
        time.sleep(0.2)  # What was in flight to the tape gets there.

    def look_at_standby(self):
        """What was told or sent is in what the standby received, or a promotion would lose it."""
        self.store.server = self.pair.standby
        self.pair.standby.wait_replayed()
        return list(self.at_death.look())

    def names_set(self, names):
        self.pair.primary.set(synchronous_standby_names=names)

    def name_away(self):
        """The standby is cut off and not waited for, while callers are told more and more."""
        self.names_set("")
        self.pair.cut()
        self.wait_told(5)

    def eyes(self):
        """What was told meanwhile is not on the standby: that must be seen. Then all is well."""
        self.wait_told(10)
        self.name_away()
        self.store.server = self.pair.standby
        losses = list(audit.AtDeath(self.directory, self.store).look())
        self.store.server = self.pair.primary
        assert [loss for loss in losses if loss.startswith("P2")], "the loss was not seen"
        self.names_set(f"FIRST 1 ({self.pair.standby.name})")
        self.pair.mend()

    def wait_told(self, count):
        before = self.finals()
        postgres.wait_until(lambda: self.finals() >= before + count, "callers are told")

    def finals(self):
        lines = (self.directory / "wire").read_bytes().splitlines()
        return sum(b'"status": 201' in line and b'"replayed": "false"' in line for line in lines)

    def promote(self):
        before = self.finals()
        begin = time.monotonic()
        self.pair.promote()
        self.store.server = self.pair.primary
        postgres.wait_until(
            lambda: self.finals() > before, "somebody is told something new", AGAIN_S
        )
        self.again_s.append(time.monotonic() - begin)

    def old_comes_back(self):
        """Alone, with what nobody ever acknowledged: nobody may ask it about intents."""
        old = self.pair.standby
        size = len(old.log_text())
        old.start(**TALKATIVE)

        def lines(word):
            return [line for line in old.log_text()[size:].splitlines() if word in line]

        with self.true_one_silent():
            postgres.wait_until(
                lambda: len(lines("pg_logical_emit_message")) >= 3 or lines("idem.intents"),
                "instances look at the former primary",
            )
            time.sleep(self.dice.uniform(0.0, 2.0))
        asked = lines("idem.intents")
        if asked:
            what = f"P4 the former primary was asked {len(asked)} times: {asked[0]}"
            self.violations.append(what)
        old.kill()
        for name in TALKATIVE:
            del old.settings[name]

    @contextlib.contextmanager
    def true_one_silent(self):
        """All connections to the true primary end, and for a while it takes no others."""
        sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
        server = self.pair.primary
        with contextlib.closing(server.connect()) as connection:
            server.process.send_signal(signal.SIGSTOP)
            try:
                connection.execute(sql, ("idem",))
                yield
            finally:
                server.process.send_signal(signal.SIGCONT)

    def round(self, number):
        self.wait_told(20)
        time.sleep(self.dice.uniform(0.0, 2.0))
        self.kill_primary()
        killed = self.dice.choice(self.instances) if self.dice.random() < 0.4 else None
        if killed is not None:
            killed.kill()
        self.violations += self.look_at_standby()
        if killed is not None and self.dice.random() < 0.5:  # While there is no primary.
            self.restart(killed)
        self.promote()
        if killed is not None and not killed.alive():
            self.restart(killed)
        if number % 2 == 0:
            self.old_comes_back()

    def restart(self, instance):
        """As a supervisor would: again and again."""

        def started():
            instance.start()
            return instance.alive()

        if self.pair.standby.alive():  # There is no primary yet: it may give up.
            instance.start()
            return
        postgres.wait_until(started, "an instance starts")

    def ask_again(self):
        """Somebody repeats what has just ended, as far as the primary shows it."""
        nosy = self.nosy[0]
        sql = (
            "SELECT key FROM intents WHERE state IN (5, 6) AND key LIKE 'key-%' AND principal ="
            " 'shop' ORDER BY updated_us DESC LIMIT 3"
        )
        while not self.pair_is_dead:
            try:
                keys = [row["key"] for row in self.store.rows(sql)]
            except self.store.errors():
                return
            for key in keys:
                intent = self.book.intents[key.removeprefix("key-")]
                nosy.send("POST", intent["path"], intent["who"], key, intent["body"])

    # ---- the end ----

    def kept(self):
        """How many intents there are, and how many of them have not ended."""
        sql = (
            "SELECT count(*) AS kept, count(*) FILTER (WHERE state IN (1, 2, 3, 7)) AS open"
            " FROM intents"
        )
        return tuple(self.store.rows(sql)[0])

    def heal(self):
        """Everything is well again: what is open ends, and whoever asks is told."""
        self.calm()
        end = time.monotonic() + QUIET_S
        before, now = None, (self.kept(), None)
        while before != now and time.monotonic() < end:
            while self.kept()[1] > 0 and time.monotonic() < end:
                time.sleep(0.1)
            before = now
            left = load.resume_all(self.callers)
            now = (self.kept(), left)
        self.replay()
        for instance in self.instances:
            if not instance.alive():
                code = instance.service.returncode
                self.violations.append(f"P8 an instance ended by itself with {code}")
            else:
                instance.stop()

    def replay(self):
        """Every request that was ever made, once more, under each key that it had, of each."""
        import whole  # pylint: disable=import-outside-toplevel

        judge = audit.Audit(self.directory, self.store)
        with open(self.directory / "replays", "w", encoding="utf-8") as file:
            for instance in self.instances:
                connection = harness.Connection(instance.port)
                for scope, intents in judge.keys.items():
                    for intent in intents if scope in judge.rows else ():
                        answer = whole.Scene.again(connection, intent, scope[2])
                        file.write(json.dumps(answer) + "\n")
                connection.close()

    def judge(self):
        judge = audit.Audit(self.directory, self.store)
        self.violations += judge.judge()
        if "idem: bug at" in self.world.log_text():
            self.violations.append("P8 a process stopped itself over a bug; its log says where")
        again = ", ".join(f"{took_s:.1f}" for took_s in self.again_s)
        print(
            f"# seed {self.seed}: {len(self.again_s)} failovers, {judge.counts['answers']} answers"
            f" ({self.at_death.answers} held against a standby),"
            f" {judge.counts['intents in the store']} intents, {judge.counts['executions']}"
            f" executions of {judge.counts['effects']} effects; answered again after {again} s",
            flush=True,
        )

    def found(self):
        for violation in self.violations[:30]:
            print(f"# violation: {violation}", flush=True)
        assert not self.violations, f"{len(self.violations)} violations"


class Scenes:
    def __init__(self, arguments):
        self.arguments = arguments
        self.seed = arguments.seed
        self.pair = None

    def pair_ready(self):
        """A primary and its standby: after a failover the former primary is made anew."""
        if self.pair is None:
            self.pair = postgres.Pair()
        elif not self.pair.standby.alive():
            self.pair.rejoin()
        return self.pair

    @contextlib.contextmanager
    def game(self):
        game = Game(self.pair_ready(), self.arguments, self.seed)
        try:
            game.begin()
            yield game
        except BaseException as error:
            game.violations.append(f"the run itself broke: {error!r}")
            raise
        finally:
            game.close()

    def synchronous_loses_nothing(self, _):
        """A synchronous pair loses no answer when its primary is killed under load"""
        end = time.monotonic() + 60 * self.arguments.minutes
        while True:
            with self.game() as game:
                game.eyes()
                for number in range(self.arguments.rounds):
                    self.pair_ready()  # Under load, too.
                    game.round(number)
                game.heal()
                game.judge()
                game.found()
            if time.monotonic() > end:
                return
            self.seed = random.randrange(1 << 32)

    def named_away_is_seen(self, _):
        """SEEN: commits that no longer wait for a standby that was cut off are lost"""
        with self.game() as game:
            game.wait_told(5)
            game.name_away()
            game.kill_primary()
            losses = game.look_at_standby()
            assert [loss for loss in losses if loss.startswith("P2")], "the loss was not seen"
            print(f"# {len(losses)} losses seen, the first: {losses[0]}", flush=True)
        self.pair.promote()

    def cancelled_wait_loses_nothing(self, _):
        """Commits whose wait for a standby that was cut off is cancelled are told to nobody"""
        cancelled = 0
        with self.game() as game:
            game.wait_told(20)
            self.pair.cut()
            asking = [threading.Thread(target=game.ask_again, daemon=True) for _ in range(4)]
            for thread in asking:
                thread.start()
            end = time.monotonic() + (4 if self.arguments.slice else 15)
            while time.monotonic() < end or cancelled < 20:
                sql = f"SELECT pg_cancel_backend(pid) FROM ({WAITING}) waiting"
                cancelled += len(self.pair.primary.rows(sql))
                time.sleep(0.02)
            game.kill_primary()
            game.pair_is_dead = True
            game.violations += game.look_at_standby()
            print(f"# {cancelled} waits cancelled, {game.at_death.answers} answers", flush=True)
            game.promote()
            game.heal()
            game.judge()
            game.found()

    def away_for_a_while(self, _):
        """A standby that is away holds everything up, and nothing is lost when it is back"""
        waiting = []
        with self.game() as game:
            game.wait_told(10)
            self.pair.cut()
            time.sleep(0.2)  # What was on its way is on the tape.
            told = game.finals()
            for _ in range(AWAY_S // 10):
                time.sleep(10)
                waiting.append(len(self.pair.primary.rows(WAITING)))
            assert game.finals() <= told + 1, "callers were told without a standby"
            self.pair.mend()
            begin = time.monotonic()
            postgres.wait_until(lambda: game.finals() > told + 1, "callers are told", AGAIN_S)
            again_s = time.monotonic() - begin
            assert max(waiting) <= WAITING_MAX, f"{waiting} connections were taken"
            counts = ", ".join(map(str, waiting))
            print(f"# away {AWAY_S} s: {counts} connections wait; again after {again_s:.1f} s")
            game.heal()
            game.judge()
            game.found()

    def weak_is_refused(self, _):
        """A server that names a standby and does not wait for it is refused at the start"""
        pair = self.pair_ready()
        pair.primary.set(synchronous_commit="local")
        game = Game(pair, self.arguments, self.seed)
        try:
            for instance in game.instances:
                instance.start()
                assert not instance.alive(), "served on a server that may forget"
            assert "weaker than on" in game.world.log_text(), game.world.log_text()
        finally:
            game.close()
            pair.primary.set(synchronous_commit="on")

    def close(self):
        if self.pair is not None:
            self.pair.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("idem")
    parser.add_argument("caller")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--slice", action="store_true")
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_intermixed_args()
    arguments.rounds = arguments.rounds or (1 if arguments.slice else 4)
    print(f"# seed {arguments.seed}", flush=True)
    scenes = Scenes(arguments)
    tests = [
        scenes.synchronous_loses_nothing,
        scenes.named_away_is_seen,
        scenes.cancelled_wait_loses_nothing,
        scenes.weak_is_refused,
        scenes.away_for_a_while,
    ]
    tests = tests[:1] if arguments.slice and not arguments.names else tests
    try:
        harness.run(tests, arguments.idem, arguments.names)
    finally:
        scenes.close()


if __name__ == "__main__":
    main()
