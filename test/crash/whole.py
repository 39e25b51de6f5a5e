"""
The whole program, killed and stopped at random under load, and the books compared.

Goal: promises P1 to P14 hold from outside, for the released binaries, whatever dies when.

Method: `idem serve` on SQLite or PostgreSQL and `idem sandbox` with a kept ledger, leases and
timeouts short; callers, one of them of another principal, pay, capture, cancel and refund through
the client library with a journal each (load.py), over a network that breaks (wire.py); the
provider's faults change like weather; a driver kills and stops processes (chaos.py). Then
everything heals: within a bound every intent has ended or is parked, callers go on with what their
journals say, every request is sent once more. The audit (audit.py) compares ledger, store,
journals' verdicts and every answer that ever left the service.

One seed gives load, faults and the driver's steps; processes run at their own pace, so the same
seed gives the same kind of run and not the same run. The directory of a failed run stays, and
`--judge DIRECTORY` repeats its audit. Usage:

    whole.py IDEM CALLER [--minutes N] [--seed N] [--store postgres]
    whole.py --judge DIRECTORY
"""

import argparse
import collections
import json
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
sys.path.insert(0, str(HERE))
import harness  # noqa: E402
import audit  # noqa: E402
import chaos  # noqa: E402
import load  # noqa: E402
import records  # noqa: E402
import store as stores  # noqa: E402

CALLERS = 9  # The last is the rival.
NOSY = 2
QUIET_S = 90  # Until everything has ended, once all is well.
SETTINGS = {
    "lease_ms": 1500,
    "request_timeout_ms": 400,
    "settle_ms": 300,
    "ask_first_ms": 80,
    "ask_max_ms": 500,
    "ask_give_up_s": 3600,
    "parked_ask_s": 3600,
    "release_s": 5,
    "stop_grace_ms": 1000,
    "wait_ms": 1500,
    "entries": ("sandbox", "sandbox-lagging", "sandbox-closing", "sandbox-plain", "sandbox-blind"),
}


class Scene:
    def __init__(self, arguments):
        self.seed = arguments.seed
        self.program = arguments.caller
        self.batch = (15, 45)
        self.world = harness.World(arguments.idem, SETTINGS, start=False)
        self.directory = self.world.directory
        self.front = harness.Port()
        self.wire = None
        lasting = arguments.minutes >= 1
        self.book = load.Book(self.directory, self.seed, CALLERS, lasting)
        self.callers = [load.Caller(self, slot) for slot in range(CALLERS)]
        self.nosy = [load.Nosy(self, number) for number in range(NOSY)]
        self.chaos = chaos.Chaos(self)
        self.fates = {}
        self.broken = []
        threading.excepthook = lambda what: self.broken.append(repr(what.exc_value))

    def begin(self):
        self.world.start_sandbox()
        self.world.start()
        ports = (str(self.front.number), str(self.world.port))
        self.wire = subprocess.Popen(
            [sys.executable, HERE / "wire.py", *ports, self.directory / "wire", str(self.seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.world.log,
            text=True,
        )
        assert self.wire.stdout.readline() == "ready\n", "the network does not begin"

    def close(self, keep):
        for thread in self.callers + self.nosy:
            thread.stopping = True
        for caller in self.callers:
            caller.kill()
        if self.wire is not None:
            self.wire.kill()
            self.wire.wait()
        self.front.close()
        self.world.close(keep)

    def storm(self, minutes):
        for thread in self.callers + self.nosy:
            thread.start()
        self.chaos.run(time.monotonic() + minutes * 60)
        for thread in self.callers + self.nosy:
            thread.stopping = True
        for caller in self.callers:
            self.chaos.done["kill caller"] += caller.kill()
        for thread in self.callers + self.nosy:
            thread.join(harness.PATIENCE_S)
            assert not thread.is_alive(), "a caller does not end"

    def heal(self):
        """Everything is well again: what is open ends, and whoever asks is told."""
        self.wire.stdin.write("heal\n")
        self.wire.stdin.flush()
        self.fates = json.loads(self.wire.stdout.readline())
        self.chaos.end()
        end = time.monotonic() + QUIET_S
        before, now = None, (self.kept(), None)
        while self.world.alive() and before != now and time.monotonic() < end:
            self.quiet(end)
            before = now
            left = load.resume_all(self.callers)  # What was never sent may begin only now.
            now = (self.kept(), left)
        if not self.world.alive():
            code = self.world.service.returncode
            self.chaos.violations.append(f"P8 the service ended by itself with {code}")
            return
        self.replay()
        self.world.stop()

    def kept(self):
        """How many intents the store has, and how many of them are at work."""
        sql = "SELECT count(*), count(*) FILTER (WHERE state IN (1, 2, 3, 7)) FROM intents"
        return self.world.rows(sql)[0]

    def quiet(self, end):
        while self.world.alive() and self.kept()[1] > 0 and time.monotonic() < end:
            time.sleep(0.1)

    def replay(self):
        """Every request that was ever made, once more, under each key that it had."""
        judge = audit.Audit(self.directory, self.world.store)
        connection = harness.Connection(self.world.port)
        with open(self.directory / "replays", "w", encoding="utf-8") as file:
            for scope, intents in judge.keys.items():
                if scope not in judge.rows:
                    continue
                for intent in intents:
                    answer = self.again(connection, intent, scope[2])
                    file.write(json.dumps(answer) + "\n")
        connection.close()

    @staticmethod
    def again(connection, intent, key):
        body = json.dumps(intent["body"])
        headers = [
            ("Authorization", f"Bearer {intent['who']}"),
            ("Idempotency-Key", f'"{key}"'),
            ("Content-Type", "application/json"),
            ("Prefer", "wait=0"),
        ]
        begun = time.time()
        connection.send(harness.encode("POST", intent["path"], headers, body.encode()))
        reply = connection.receive()
        return {
            "begun": begun,
            "at": time.time(),
            "method": "POST",
            "path": intent["path"],
            "key": key,
            "who": intent["who"],
            "asked": body,
            "status": reply.status,
            "replayed": reply.header("Idempotent-Replayed"),
            "type": reply.header("Content-Type"),
            "location": reply.header("Location"),
            "answer": reply.body.decode("latin-1"),
        }


def words(counts):
    return ", ".join(f"{what} {count}" for what, count in sorted(counts.items()) if count) or "none"


def report(scene, judge, took_s):
    """The run in figures."""
    at_death = scene.chaos.at_death
    states = dict.fromkeys(("succeeded", "failed", "parked", "other"), 0)
    for row in judge.rows.values():
        names = {records.SUCCEEDED: "succeeded", records.FAILED: "failed", records.PARKED: "parked"}
        states[names.get(row["state"], "other")] += 1
    asked = sum((nosy.asked for nosy in scene.nosy), collections.Counter())
    for line in (
        f"{took_s / 60:.1f} minutes, seed {scene.seed}",
        f"requests: {judge.counts['answers']} answered, {words(asked)} by hand",
        f"intents: {len(judge.intents)} meant, {judge.counts['intents in the store']} kept:"
        f" {words(states)}",
        f"kills and pauses: {words(scene.chaos.done)}",
        f"network: {words(scene.fates)}",
        f"faults of the provider: {words(judge.faults())}",
        f"looks at a dead service's store: {at_death.looks}, {at_death.left_open} intents in flight"
        f" taken over, {at_death.answers} answers held against it",
        f"ledger: {judge.counts['effects']} effects, {judge.counts['executions']} executions",
        f"verdicts: {judge.counts['verdicts']} told; at the end {words(judge.outcomes)}",
    ):
        print(f"# {line}", flush=True)


def run(arguments):
    begin = time.monotonic()
    print(f"# seed {arguments.seed}", flush=True)
    scene = Scene(arguments)
    program = f"{arguments.idem} {arguments.caller} --store {stores.NAME} --seed {arguments.seed}"
    violations = ["the run itself broke"]
    try:
        scene.begin()
        scene.storm(arguments.minutes)
        scene.heal()
        judge = audit.Audit(scene.directory, scene.world.store)
        found = scene.chaos.violations + judge.judge()
        found += [f"the run itself broke: {what}" for what in scene.broken]
        if "idem: bug at" in scene.world.log_text():
            found.append("P8 a process stopped itself over a bug; its log says where")
        violations = list(dict.fromkeys(found))  # What was seen early is seen again at the end.
        report(scene, judge, time.monotonic() - begin)
    finally:
        scene.close(keep=bool(violations))
        if violations:
            print(f"# kept: {scene.directory}")
        print(f"# repeat: {sys.argv[0]} {program} --minutes {arguments.minutes}", flush=True)
    return violations


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("idem", nargs="?")
    parser.add_argument("caller", nargs="?")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--judge", type=pathlib.Path)
    arguments = parser.parse_args()
    print("1..1", flush=True)
    if arguments.judge is not None:
        violations = audit.Audit(arguments.judge).judge()
    else:
        violations = run(arguments)
    for violation in violations[:50]:
        print(f"# violation: {violation}")
    print(f"{'not ok' if violations else 'ok'} 1 - {len(violations)} violations", flush=True)
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
