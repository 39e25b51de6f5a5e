"""
Several instances of the real program on one PostgreSQL database, judged by the provider's ledger.

Goal: whichever instance a caller asks, there is one execution for a key and one answer to it. Any
instance replays and joins what another one does. What a killed one left is finished by the others
within its silence; what a living one works on is left alone, also while another stands still for
longer than its leases. Instances can be started anew one after the other under load.

Method: three instances, one sandbox, one private server with fsync on. Callers are threads that try
again under the same key, at the next instance, until they have a final answer. Signals come from
outside at moments that the load does not know. Times that matter are printed, and bounded only by
what the promises say.

Usage: instances.py IDEM [--slice] [--minutes N] [name ...]
    --slice: what every check runs; --minutes: rounds of what is random, so long
"""

import atexit
import contextlib
import itertools
import os
import pathlib
import random
import signal
import statistics
import sys
import threading
import time

os.environ["IDEM_TEST_STORE"] = "postgres"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import Gone, World  # noqa: E402
from together import together  # noqa: E402

INSTANCES = 3
SILENCE_S = 3.0
LEASE_S = 4.0
SETTINGS = {
    "lease_ms": int(LEASE_S * 1000),
    # Into the group of the file that the harness writes.
    "stop_grace_ms": f"5000; instance_silence_ms = {int(SILENCE_S * 1000)}; store_wait_ms = 2000",
}
METHODS = (
    "tok_ok", "tok_ok", "tok_ok", "tok_slow_1", "tok_late_1", "tok_lose_answer", "tok_lose_request",
    "tok_500_after", "tok_503", "tok_decline",
)
FINAL = (201, 402)
MINUTES = 0.0


class Borrowed:
    """Another world's store: it is not ours to close."""

    def __init__(self, store):
        self.store = store

    def __getattr__(self, name):
        return getattr(self.store, name)

    def keep(self):
        pass

    def close(self):
        pass


class Cluster:
    """The first world has the sandbox and the database; the others use them."""

    def __init__(self, idem, count=INSTANCES):
        self.first = World(idem, SETTINGS)
        self.worlds = [self.first]
        for _ in range(count - 1):
            world = World(idem, SETTINGS, start=False, store=Borrowed(self.first.store))
            world.sandbox_port = self.first.sandbox_port
            self.worlds.append(world)
            world.start()

    def close(self):
        for world in reversed(self.worlds):
            if world.service is not None:
                with contextlib.suppress(ProcessLookupError):
                    world.service.send_signal(signal.SIGCONT)
            world.close()

    def executions(self, prefix=""):
        """{order number: executions}, and a failure for each that has more than one."""
        effects = self.first.ledger()["effects"]
        counts = {
            effect["order_no"]: effect["executions"]
            for effect in effects
            if effect["order_no"].startswith(prefix)
        }
        twice = {order: count for order, count in counts.items() if count > 1}
        assert not twice, f"executed more than once: {twice}"
        return counts

    def wait_ended(self, patience_s):
        """Until no intent is open, by the database's own word."""
        sql = "SELECT count(*) FROM intents WHERE state < 5"
        begin = time.monotonic()
        self.first.wait_until(
            lambda: self.first.rows(sql)[0][0] == 0, "every intent ends", patience_s
        )
        return time.monotonic() - begin


class Load:
    """
    Callers that pay one after the other, each try at the next instance, until they are told to end.
    What they were told stays in `told`: {key: (status, body)}.
    """

    def __init__(self, cluster, callers, seed, tries_s=60.0):
        self.cluster = cluster
        self.seed = seed
        self.tries_s = tries_s
        self.told = {}
        self.methods = {}
        self.unanswered = []
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.turn = itertools.count()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(callers)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()
        if _[0] is None:
            assert not self.unanswered, f"no answer within {self.tries_s} s: {self.unanswered}"

    def run(self, caller):
        dice = random.Random(f"{self.seed}/{caller}")
        for number in itertools.count():
            if self.ended.is_set():
                return
            key = f"{self.seed}-{caller}-{number}"
            method = dice.choice(METHODS)
            self.methods[key] = method
            reply = self.pay(key, method)
            with self.lock:
                if reply is None:
                    self.unanswered.append(key)
                else:
                    self.told[key] = (reply.status, reply.body)

    def pay(self, key, method):
        end = time.monotonic() + self.tries_s
        while time.monotonic() < end:
            world = self.cluster.worlds[next(self.turn) % len(self.cluster.worlds)]
            try:
                reply = world.pay(key, key, method=method, timeout=3)
                if reply.status in FINAL:
                    return reply
                assert reply.status in (202, 503), reply
            except (OSError, Gone):
                pass
            time.sleep(0.05)
        return None

    def check(self):
        """Everybody says the same again, everywhere, and the ledger agrees."""
        executions = self.cluster.executions()
        assert self.told, "nothing was paid"
        sample = random.Random(self.seed).sample(sorted(self.told), min(20, len(self.told)))
        for key in sample:
            for world in self.cluster.worlds:
                again = world.pay(key, key, method=self.methods[key])
                assert (again.status, again.body) == self.told[key], (key, again, self.told[key])
        for key, (status, _) in self.told.items():
            done = executions.get(key, 0)
            assert done == (1 if status == 201 else 0), f"{key}: told {status}, executed {done}"
        self.cluster.executions()


class Shared:
    """One cluster for all tests, since starting it takes longest; anew after a failure."""

    cluster = None

    @classmethod
    def get(cls, idem):
        if cls.cluster is None:
            cls.cluster = Cluster(idem)
            atexit.register(cls.close)
        return cls.cluster

    @classmethod
    def close(cls):
        cluster, cls.cluster = cls.cluster, None
        if cluster is not None:
            cluster.close()


def cluster_test(test):
    def body(idem):
        cluster = Shared.get(idem)
        try:
            test(cluster)
        except BaseException:
            for world in cluster.worlds:
                sys.stdout.write(world.log_text()[-3000:])
            Shared.close()
            raise

    body.__name__ = test.__name__
    body.__doc__ = test.__doc__
    return body


def say(text):
    print(f"# {text}", flush=True)


@cluster_test
def any_instance_replays(cluster):
    """Every instance gives the answer that one of them recorded, byte for byte"""
    for index, world in enumerate(cluster.worlds):
        key = f"replay-{index}"
        first = world.pay(key, key)
        assert first.status == 201 and first.header("Idempotent-Replayed") == "false", first
        for other in cluster.worlds:
            again = other.pay(key, key)
            assert (again.status, again.body) == (first.status, first.body), again
            assert again.header("Idempotent-Replayed") == "true", again
            changed = other.pay(key, key, more={"amount": "1.00"})
            assert changed.status == 422, changed
    assert set(cluster.executions("replay-").values()) == {1}


@cluster_test
def any_instance_joins(cluster):
    """A request that meets its key at work elsewhere waits there, and hears of its end at once"""
    rounds = 4
    late_s = []

    def timed(world, key):
        reply = world.pay(key, key, method="tok_slow_1")
        return reply, time.monotonic()

    for number in range(rounds):
        key = f"join-{number}"
        holder = cluster.worlds[number % INSTANCES]
        others = [world for world in cluster.worlds if world is not holder]
        results = {}

        def begin(place, world, key=key, results=results):
            thread = threading.Thread(
                target=lambda: results.update({place: timed(world, key)})
            )
            thread.start()
            return thread

        threads = [begin("holder", holder)]
        cluster.first.wait_until(
            lambda key=key: cluster.first.rows("SELECT 1 FROM intents WHERE key = ?", key),
            f"{key} is claimed",
        )
        threads += [begin(f"other-{i}", world) for i, world in enumerate(others)]
        for thread in threads:
            thread.join()
        held, held_at = results.pop("holder")
        assert held.status == 201, held
        for reply, at in results.values():
            assert (reply.status, reply.body) == (held.status, held.body), reply
            assert reply.header("Idempotent-Replayed") == "true", reply
            late_s.append(at - held_at)
    say(f"joined elsewhere, answered after the holder's own answer: median"
        f" {statistics.median(late_s) * 1000:.0f} ms, longest {max(late_s) * 1000:.0f} ms"
        f" ({len(late_s)} joins)")
    assert set(cluster.executions("join-").values()) == {1}


@cluster_test
def one_new_key_everywhere_at_once(cluster):
    """One new key at all instances at once: one execution, one answer, one who was first"""
    for number in range(3):
        key = f"race-{number}"
        method = ("tok_ok", "tok_slow_1", "tok_lose_answer")[number]
        replies = together(
            [
                lambda world=world, key=key, method=method: world.pay(key, key, method=method)
                for world in cluster.worlds * 8
            ]
        )
        assert {reply.status for reply in replies} == {201}, [reply.status for reply in replies]
        assert len({reply.body for reply in replies}) == 1
        firsts = [reply for reply in replies if reply.header("Idempotent-Replayed") == "false"]
        assert len(firsts) <= 1, f"{len(firsts)} callers were told that they were first"
        assert number == 2 or len(firsts) == 1, "nobody was told that it was first"
    assert set(cluster.executions("race-").values()) == {1}


@cluster_test
def a_living_instance_keeps_its_work(cluster):
    """Nobody acts on what a living instance has on the wire"""
    holder = cluster.worlds[0]
    together(
        [lambda i=i: holder.pay(f"slow-{i}", f"slow-{i}", method="tok_slow_1") for i in range(20)]
    )
    rows = cluster.first.rows(
        "SELECT epoch, send_count, ask_count FROM intents WHERE key LIKE 'slow-%'"
    )
    assert {tuple(row) for row in rows} == {(1, 1, 0)}, rows
    assert set(cluster.executions("slow-").values()) == {1}


def killed(cluster, seed):
    victim = cluster.worlds[random.Random(seed).randrange(INSTANCES)]
    with Load(cluster, 12, f"kill-{seed}") as load:
        time.sleep(1.0)
        victim.service.send_signal(signal.SIGSTOP)  # What it has in hand stays in its hand.
        own = "state < 5 AND lease_end_us > 0"
        sql = f"SELECT row, incarnation FROM intents WHERE {own}"
        victim.kill()
        begin = time.monotonic()
        left = cluster.first.rows(sql)
        time.sleep(0.5)
    rows = ",".join(str(row[0]) for row in left) or "0"
    cluster.first.wait_until(
        lambda: cluster.first.rows(f"SELECT count(*) FROM intents WHERE row IN ({rows})"
                                   " AND state < 5")[0][0] == 0,
        "what was open ends",
        SILENCE_S + LEASE_S + 15,
    )
    took_s = time.monotonic() - begin
    survivors = [world for world in cluster.worlds if world is not victim]
    cluster.wait_ended(SILENCE_S + LEASE_S + 15)
    say(f"kill -9: {len(load.told)} paid, {len(left)} under lease at that moment, all over within"
        f" {took_s:.1f} s (silence {SILENCE_S:.0f} s, lease {LEASE_S:.0f} s)")
    cluster.worlds = survivors
    try:
        load.check()
    finally:
        cluster.worlds = [*survivors, victim]
    victim.start()
    cluster.worlds.sort(key=lambda world: world.port)


@cluster_test
def a_killed_instance_is_finished_by_the_others(cluster):
    """kill -9 of one under load: the others finish what it left, at most one execution each"""
    end = time.monotonic() + MINUTES * 60
    for seed in itertools.count():
        killed(cluster, seed)
        if time.monotonic() >= end:
            return


def stood_still(cluster, seed):
    victim = cluster.worlds[random.Random(seed).randrange(INSTANCES)]
    still_s = LEASE_S + 0.5
    with Load(cluster, 12, f"stop-{seed}") as load:
        time.sleep(0.5)
        victim.service.send_signal(signal.SIGSTOP)
        time.sleep(still_s)
        victim.service.send_signal(signal.SIGCONT)
        time.sleep(0.5)
    took_s = cluster.wait_ended(SILENCE_S + LEASE_S + 15)
    say(f"SIGSTOP for {still_s:.1f} s (lease {LEASE_S:.0f} s): {len(load.told)} paid, all over"
        f" {took_s:.1f} s after the load")
    load.check()


@cluster_test
def an_instance_that_stood_still_changes_nothing(cluster):
    """SIGSTOP of one under load for longer than its leases, then SIGCONT: one execution each"""
    end = time.monotonic() + MINUTES * 60
    for seed in itertools.count():
        stood_still(cluster, seed)
        if time.monotonic() >= end:
            return


@cluster_test
def instances_are_started_anew_one_by_one(cluster):
    """A rolling restart under load: nobody is left without an answer, one execution each"""
    with Load(cluster, 12, "rolling") as load:
        for world in cluster.worlds:
            time.sleep(0.2)
            code = world.stop()
            assert code == 0, code
            world.start()
    cluster.wait_ended(LEASE_S + 15)
    say(f"rolling restart: {len(load.told)} paid")
    load.check()


TESTS = [
    any_instance_replays,
    any_instance_joins,
    one_new_key_everywhere_at_once,
    a_living_instance_keeps_its_work,
    a_killed_instance_is_finished_by_the_others,
    an_instance_that_stood_still_changes_nothing,
    instances_are_started_anew_one_by_one,
]


SLICE = [
    any_instance_replays,
    any_instance_joins,
    one_new_key_everywhere_at_once,
    a_killed_instance_is_finished_by_the_others,
]


def main():
    global MINUTES  # pylint: disable=global-statement
    words = sys.argv[1:]
    if "--minutes" in words:
        at = words.index("--minutes")
        MINUTES = float(words[at + 1])
        del words[at : at + 2]
    tests = TESTS
    if "--slice" in words:
        words.remove("--slice")
        tests = SLICE
    harness.run(tests, words[0], words[1:])


if __name__ == "__main__":
    main()
