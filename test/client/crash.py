"""
Kill -9 of the caller at every named point, times ways in which a server behaves.

Goal: wherever `idem send` dies, the same command again ends truly: one execution, one key in the
journal, the same bytes in every request but for the date of the first send, which never becomes
later once that send may have had an effect, and what was told before the death is told again.

Method: `idem send` is started with a crash point, dies there, and is started again without one.
Servers: the service with the sandbox (ledger) and the scripted server (server.py), which sees the
bytes. All runs share one world, each with an intent and a journal of its own. Usage: crash.py IDEM
[word in "point fault" ...]
"""

import concurrent.futures
import email.utils
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness  # noqa: E402
from harness import Sent, World, payment  # noqa: E402
from server import Row, Server  # noqa: E402

AT_ONCE = 16
KILLED = -9

# In the order in which a run meets them; docs/testing.md says where each stands. With a number: at
# the n-th time, which is the next send or a question.
POINTS = [
    "client-begin-before",
    "client-begin-durable",
    "send-first-byte",
    "client-answered",
    "send-first-byte:2",
    "client-answered:2",
    "client-end-before",
    "client-end-durable",
    "client-told",
]

# Of the sandbox: token, executions.
TOKENS = {
    "tok_ok": 1,
    "tok_decline": 0,
    "tok_lose_answer": 1,
    "tok_503": 1,
    "tok_late_1": 1,
    "tok_processing_1_ok": 1,
}

# Of the scripted server: answers, questions, executions.
SCRIPTS = [
    ("201*", "", 1),
    ("reset* 201*+replayed", "", 1),
    ("201*+cut-body 201*+replayed", "", 1),
    ("500* 201*+replayed", "", 1),
    ("429 201*", "", 1),
    ("202*+location", "processing processing final", 1),
    ("409+problem=in-progress/unknown/same-key 201*", "", 1),
    ("402+problem=declined/none/new-key", "", 0),
]


class Scene:
    """One intent: its command, and the eyes on what came of it."""

    def __init__(self, world, server, number, fault):
        self.world = world
        self.name = f"order-{number}"
        self.journal = world.directory / f"{self.name}.db"
        self.row = None
        token = fault
        port = world.port
        if isinstance(fault, tuple):
            answers, questions, _ = fault
            words = questions.split(" ") if questions else ()
            self.row = server.add(Row(self.name, "idem", answers.split(" "), words))
            token = "tok_ok"
            port = server.port
        self.words = [
            *("POST", f"http://127.0.0.1:{port}/v1/payments", "--intent", self.name),
            *("--data", json.dumps(payment(self.name, token)), "--deadline", "20s"),
            *("--header", f"X-Row: {self.name}", "--journal", str(self.journal)),
        ]

    def send(self, point=None):
        return Sent(self.world.send_start(*self.words, crash_point=point))

    def executions(self):
        if self.row is not None:
            return len(self.row.executed)
        effects = self.world.ledger(order_no=self.name)["effects"]
        return sum(effect["executions"] for effect in effects)

    def keys(self):
        rows = self.world.journal("SELECT key FROM intents", path=self.journal)
        former = self.world.journal("SELECT key FROM former_keys", path=self.journal)
        return {key for key, in rows + former}


def bytes_judge(row):
    """The date is that of the first send that may have had an effect; the rest never changes."""
    pieces = [re.split(rb"Repeatability-First-Sent: (.*)\r\n", data) for data in row.arrivals]
    assert len({(before, after) for before, _, after in pieces}) == 1, f"changed: {row.arrivals}"
    if not row.answers[0].startswith("429"):  # Which says that nothing was done.
        dates = [email.utils.parsedate_to_datetime(date.decode()) for _, date, _ in pieces]
        assert max(dates) == dates[0], f"it became later: {row.arrivals}"


def one(world, server, number, point, fault, count):
    """True if it died at the point."""
    scene = Scene(world, server, number, fault)
    first = scene.send(point)
    assert first.code in (0, 6, KILLED), first
    last = scene.send()
    assert last.code == (0 if count else 6), f"{first}\n{last}"
    assert last.told["outcome"] == ("done" if count else "refused"), last
    assert last.told["over"], last
    assert scene.executions() == count, f"{scene.executions()} executions: {first}\n{last}"
    assert scene.keys() == {last.told["key"]}, f"{scene.keys()}: {last}"
    for member in ("key", "outcome", "status", "body"):
        told = first.told.get(member, last.told[member])
        assert told == last.told[member], f"told otherwise: {first}\n{last}"
    if first.told:
        assert last.told["sends"] == 0, f"it was told, and sent again: {last}"
    if scene.row is not None:
        assert scene.row.keys == {last.told["key"]}, scene.row.keys
        bytes_judge(scene.row)
    return first.code == KILLED


def combinations(words):
    faults = [(token, token, count) for token, count in TOKENS.items()]
    faults += [(" ".join(script[:2]), script, script[2]) for script in SCRIPTS]
    for point in POINTS:
        for name, fault, count in faults:
            label = f"{point} {name}"
            if all(word in label for word in words):
                yield label, point, fault, count


def main():
    wanted = list(combinations(sys.argv[2:]))
    world = World(sys.argv[1], {"wait_ms": 300})
    server = Server()
    met = {}
    failed = 0
    print(f"1..{len(wanted) + 1}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {}
        for number, (label, point, fault, count) in enumerate(wanted):
            future = pool.submit(one, world, server, number, point, fault, count)
            futures[future] = (label, point)
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            label, point = futures[future]
            error = future.exception()
            print(f"{'ok' if error is None else 'not ok'} {number} - {label}", flush=True)
            if error is None:
                met[point] = met.get(point, 0) + future.result()
                continue
            failed += 1
            for line in repr(error).replace("\\n", "\n").splitlines():
                print(f"# {line[:2000]}")
            print(f"# repeat: {sys.argv[0]} {sys.argv[1]} '{label}'", flush=True)
    server.close()
    world.close()
    # A point that never killed anybody proves nothing.
    missed = {point for _, point, _, _ in wanted if not met.get(point)}
    print(f"{'not ok' if missed else 'ok'} {len(wanted) + 1} - every point was met: {met}; never "
          f"met: {sorted(missed)}", flush=True)
    sys.exit(1 if failed or missed else 0)


if __name__ == "__main__":
    main()
