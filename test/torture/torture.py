"""
Level two: the program itself, with the N-th call of the system or for memory failing.

Goal: whatever call of `idem serve` or `idem send` fails, once or from there on for ever, nothing
that was acknowledged is lost, a replay has the same bytes, the sandbox's ledger has at most one
execution of each effect, "nothing happened" is never said of what did, nothing hangs, and a program
that ends does so with a status that is documented; the next start is right.

Method: a library that is loaded first (preload.c) counts calls and lets one fail. It is armed by a
file that both map, while the program runs. Scenes:

    serve    a payment, its replay, a refund, an authorization and its capture; then, unarmed, the
             program is started again if it ended, each request is repeated until it ends, judged
    start    armed from the first instruction to the first answer
    send     `idem send`, likewise from the first instruction to its end; then the same command
             until it is done

With --seconds places are drawn by the seed. Without it every place is visited, in turns over all
kinds, but memory at the start and in `idem send`, where there are thousands: there each STRIDE-th,
from a drawn one on (--stride 1: all). --part I/N is a share of the kinds, --only TEXT those in
whose name it is; --limit ends the turns early and says so.
Usage: torture.py IDEM PRELOAD [--part I/N] [--only TEXT] [--seconds S] [--seed N] [--stride N]
                  [--limit S] [SCENE FAULT once|ever N]
"""

import errno
import json
import mmap
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import Gone, Sent, World, payment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
STATE = struct.Struct("<IIiIQQ32Q64s")  # struct torture_state of fault.h.
REPLY_S = 8.0
END_S = 20.0
SPEECHLESS_S = 3.0  # For a start whose words may be what fails.
TRIES = 60
RUNS_MIN = 3
CODES = {"TORTURE_SHORT": -1}

# docs/configuration.md, exit statuses. Of an end by a signal it is asked in whose code it was:
# libcrypto and libconfig do not survive being refused memory, and libconfig has a status of its own
# for it. In idem's own code there is one place, base/digest.c, which says so.
SERVE_ENDS = {4, 5}
CONFIG_ENDS = {2, 3}
SEND_ENDS = {0, 1, 2, 6, 7, 8}
OWN_END = "src/base/digest.c"
SIGNALS = {-signal.SIGSEGV, -signal.SIGABRT}
NOTHING_HAPPENED = {2, 6, 8}


def catalogue():
    """Calls in their order, and faults of the system, from fault.def."""
    text = (HERE / "fault.def").read_text()
    calls = re.findall(r'^TORTURE_CALL\((\w+), "([\w-]+)"\)', text, re.M)
    order = {symbol: number for number, (symbol, _) in enumerate(calls, 1)}
    faults = {}
    pattern = r'^TORTURE_FAULT\(\w+, "([\w-]+)", (\w+), (\w+), (\w+)\)'
    for name, call, code, modes in re.findall(pattern, text, re.M):
        if call in ("STEP", "PAGES"):
            continue
        value = CODES.get(code) or getattr(errno, code)
        for mode in ("once", "ever") if modes == "EVER" else ("once",):
            faults[name, mode] = (order[call], value, mode == "ever")
    return faults, {order[symbol]: name for symbol, name in calls}


FAULTS, CALLS = catalogue()


class Lever:
    """The state that the library counts in."""

    def __init__(self, path):
        path.write_bytes(b"\0" * STATE.size)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), STATE.size)
        self.path = path

    def arm(self, fault, mode, at):
        call, code, ever = FAULTS[fault, mode] if fault else (0, 0, False)
        self.memory[:] = STATE.pack(0, call, code, ever, at, 0, *[0] * 32, b"")
        self.memory[0:4] = struct.pack("<I", 1)

    def disarm(self):
        self.memory[0:4] = struct.pack("<I", 0)

    def fired(self):
        return STATE.unpack(self.memory[:])[5]

    def counts(self):
        """How often each kind of call came since it was armed."""
        return dict(enumerate(STATE.unpack(self.memory[:])[6:-1]))

    def blamed(self):
        """In whose code a signal ended the program; empty: no signal did."""
        return STATE.unpack(self.memory[:])[-1].rstrip(b"\0").decode()

    def excuses(self, code, words):
        """It was refused memory, and died of it where that is known."""
        blamed = self.blamed()
        refused = STATE.unpack(self.memory[:])[1] == FAULTS["malloc", "once"][0]
        return code in SIGNALS and refused and blamed and (blamed != "idem" or OWN_END in words)


def final(reply):
    return reply is not None and reply.status in (200, 201, 402, 409, 422)


class Armed(World):
    """
    A service that may be deaf: while `deaf`, it has started when it says so. It may also be unable
    to say so, if that is what failed: then it has had long enough.
    """

    deaf = None  # The lever, while armed.
    asked = 0.0  # Since when.

    def answers(self, port, path):
        if self.deaf is None or port != self.port:
            return World.answers(port, path)
        said = self.log_text()[self.log_from :]
        waited = time.monotonic() - self.asked
        return '"event":"ready"' in said or (self.deaf.fired() > 0 and waited > SPEECHLESS_S)


class Service:
    """A world whose service has the library before it."""

    def __init__(self, idem, preload):
        self.plain = idem
        self.world = Armed(idem, {"wait_ms": 1500, "stop_grace_ms": 500}, start=False)
        self.lever = Lever(self.world.directory / "lever")
        self.script = self.world.directory / "idem"
        loaded = f'LD_PRELOAD="{preload}" IDEM_TORTURE="{self.lever.path}"'
        self.script.write_text(f'#!/bin/sh\n{loaded} exec "{idem}" "$@"\n')
        self.script.chmod(0o700)
        self.world.start_sandbox()
        self.number = 0
        self.told = {}
        self.world.log_from = 0  # Where the words of the present service begin.

    def start(self):
        self.world.log_from = len(self.world.log_text())
        self.world.idem = str(self.script)
        try:
            self.world.start()
        finally:
            self.world.idem = self.plain

    def close(self):
        self.lever.disarm()
        self.world.close()

    def status(self, patience=END_S):
        """How it ended; None if it serves."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            code = self.world.service.poll()
            if code is not None:
                return code
            if self.world.answers(self.world.port, "/readyz"):
                return None
            time.sleep(0.02)
        raise AssertionError(f"it neither serves nor ends within {patience} s")

    def up(self):
        """Started again if it has ended, by a status that is documented."""
        code = self.status()
        if code is not None:
            words = self.world.log_text()[self.world.log_from :]
            opened = '"event":"start"' in words
            good = code in SERVE_ENDS or (code in CONFIG_ENDS and not opened)
            assert good or self.lever.excuses(code, words), f"ended by {code}"
            code = self.lever.blamed() or code
            self.start()
            assert self.world.alive(), f"the next start fails: {self.world.service.poll()}"
        return code

    def ask(self, path, key, body):
        """One request; what is final must be what was told before."""
        try:
            reply = self.world.post(path, key, body, timeout=REPLY_S)
        except (Gone, OSError):
            return None
        if final(reply):
            former = self.told.setdefault(key, reply)
            assert (reply.status, reply.body) == (former.status, former.body), (
                f"{key}: the answer changed from {former} to {reply}"
            )
        return reply

    def ended(self, path, key, body):
        """Repeats it until it ends. Nothing fails any more."""
        for _ in range(TRIES):
            reply = self.ask(path, key, body)
            if final(reply):
                return reply
            if reply is None or reply.status == 503:
                self.up()
            time.sleep(0.03)
        raise AssertionError(f"{key} never ends; the last answer was {reply}")


class Serve:
    """Requests while calls fail, and the same ones afterwards."""

    name = "serve"

    def __init__(self, idem, preload):
        self.service = Service(idem, preload)
        self.none = set()  # Keys of which it was told last that nothing happened.
        self.service.start()

    def close(self):
        self.service.close()

    def steps(self):
        """Path, key and body of each; of what acts on a payment once that is known."""
        number = self.service.number
        told = self.service.told
        yield "/v1/payments", f"p{number}", payment(f"p{number}")
        yield "/v1/payments", f"p{number}", payment(f"p{number}")
        if f"p{number}" in told:
            path = f"/v1/payments/{told[f'p{number}'].json()['id']}/refunds"
            yield path, f"r{number}", {"amount": "40.00"}
        yield "/v1/payments", f"m{number}", payment(f"m{number}", more={"capture": "manual"})
        if f"m{number}" in told:
            yield f"/v1/payments/{told[f'm{number}'].json()['id']}/capture", f"c{number}", {}

    def executions(self, key):
        """Of the effect behind a key, which the ledger names by kind and order number."""
        number = key[1:]
        kinds = {"p": ("p", "c"), "r": ("p", "r"), "m": ("m", "a"), "c": ("m", "k")}
        order, letter = kinds[key[0]]
        effects = self.service.world.ledger(order_no=f"{order}{number}")["effects"]
        return [effect["executions"] for effect in effects if effect["id"][0] == letter]

    @staticmethod
    def is_none(reply):
        return (
            reply is not None and reply.status >= 400 and reply.json().get("effect") == "none"
        )

    def none_judge(self, when):
        """Of what was told not to have happened nothing is in the ledger."""
        for key in self.none:
            assert sum(self.executions(key)) == 0, f"{key}: told that nothing happened; {when}"

    def play(self, fault, mode, at):
        self.service.number += 1
        self.service.told.clear()
        self.none.clear()
        self.service.lever.arm(fault, mode, at)
        for path, key, body in self.steps():
            reply = self.service.ask(path, key, body)
            if self.is_none(reply):
                self.none.add(key)
            else:
                self.none.discard(key)
            self.none_judge("at once")
            if self.service.world.service.poll() is not None:
                break
        self.service.lever.disarm()
        return self.service.lever.fired()

    def judge(self):
        code = self.service.up()
        if self.none:  # Left alone, it may not happen either.
            time.sleep(1.0)
            self.none_judge("later")
        for path, key, body in self.steps():
            reply = self.service.ended(path, key, body)
            assert reply.status in (200, 201), f"{key}: {reply}"
        for key in self.service.told:
            assert self.executions(key) == [1], f"{key}: {self.executions(key)}"
        return code


class Start(Serve):
    """A start while calls fail; then one while nothing does."""

    name = "start"

    def __init__(self, idem, preload):
        super().__init__(idem, preload)
        assert self.service.world.pay("old", "old").status == 201
        self.old = self.service.world.pay("old", "old").body

    def play(self, fault, mode, at):
        self.service.world.stop()
        self.service.told.clear()
        self.service.number += 1
        self.service.world.deaf = self.service.lever
        self.service.world.asked = time.monotonic()
        self.service.lever.arm(fault, mode, at)
        self.service.start()
        self.service.lever.disarm()
        self.service.world.deaf = None
        return self.service.lever.fired()

    def judge(self):
        code = self.service.up()
        reply = self.service.world.pay("old", "old")
        assert (reply.status, reply.body) == (201, self.old), f"after the start: {reply}"
        return code


class Send:
    """`idem send` while calls fail; then the same command until it is done."""

    name = "send"

    def __init__(self, idem, preload):
        self.service = Service(idem, preload)
        self.service.world.start()
        self.number = 0
        self.ran = None

    def close(self):
        self.service.close()

    def order(self):
        return f"s{self.number}"

    def run(self, program):
        world = self.service.world
        url = f"http://127.0.0.1:{world.port}/v1/payments"
        words = ["POST", url, "--intent", self.order(), "--data",
                 json.dumps(payment(self.order())), "--deadline", "3s"]
        environment = dict(os.environ, IDEM_JOURNAL=str(world.directory / f"{self.number}.db"),
                           IDEM_CREDENTIAL=harness.BEARER)
        return Sent(
            subprocess.Popen([program, "send", "--json", *words], env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )

    def executions(self):
        effects = self.service.world.ledger(order_no=self.order())["effects"]
        return [effect["executions"] for effect in effects]

    def play(self, fault, mode, at):
        self.number += 1
        self.service.lever.arm(fault, mode, at)
        self.ran = self.run(str(self.service.script))
        self.service.lever.disarm()
        return self.service.lever.fired()

    def judge(self):
        code = self.ran.code
        moved = sum(self.executions())
        lever = self.service.lever
        assert code in SEND_ENDS or lever.excuses(code, self.ran.err), f"ended by {self.ran}"
        assert moved == 0 or code not in NOTHING_HAPPENED, f"it moved, and told {self.ran}"
        assert moved == 1 or code != 0, f"it did not move, and told {self.ran}"
        for _ in range(TRIES):
            last = self.run(self.service.plain)
            if last.code == 0:
                break
            assert last.code in (7, 8), f"again: {last}"
        assert last.code == 0, f"never done: {last}"
        assert self.executions() == [1], f"executions {self.executions()}"
        return lever.blamed() or code


SCENES = {scene.name: scene for scene in (Serve, Start, Send)}


class Torture:
    def __init__(self, idem, preload, seed, options):
        self.idem = idem
        self.preload = preload
        self.draw = random.Random(seed)
        self.seconds = float(options["--seconds"])
        self.limit = float(options["--limit"])
        self.stride = int(options["--stride"])
        self.only = options["--only"]
        self.part, self.parts = map(int, options["--part"].split("/"))
        self.points = {}
        self.ends = {}
        self.violations = 0
        self.runs = 0
        self.open = {}
        self.begin = time.monotonic()

    def late(self):
        return time.monotonic() - self.begin > (self.seconds or self.limit)

    def scene(self, name):
        if name not in self.open:
            self.open[name] = SCENES[name](self.idem, self.preload)
        return self.open[name]

    def drop(self, name):
        if name in self.open:
            self.open.pop(name).close()

    def close(self):
        for name in list(self.open):
            self.drop(name)

    def one(self, name, fault, mode, at):
        """True if something fired."""
        fired = 0
        self.runs += 1
        try:
            scene = self.scene(name)
            fired = scene.play(fault, mode, at)
            code = scene.judge()
            if code is not None:
                end = f"{name} {code}"
                self.ends[end] = self.ends.get(end, 0) + 1
        except Exception:  # pylint: disable=broad-except
            self.violations += 1
            for line in traceback.format_exc().splitlines()[-3:]:
                print(f"# {line}")
            if name in self.open:
                for line in self.open[name].service.world.log_text()[-700:].splitlines():
                    print(f"#   {line}")
            print(f"# repeat: {sys.argv[0]} {self.idem} {self.preload} {name} {fault} {mode} {at}",
                  flush=True)
            self.drop(name)
        if fired and fault:
            call = CALLS[FAULTS[fault, mode][0]]
            self.points[call] = self.points.get(call, 0) + 1
        return fired > 0

    def totals(self, name):
        """How many places each kind of call has in a scene."""
        scene = self.scene(name)
        scene.play(None, None, 0)
        counts = scene.service.lever.counts()
        scene.judge()
        return counts

    def chosen(self):
        """Places, drawn or in turns: each kind of call in each scene goes on while it fires."""
        totals = {name: self.totals(name) for name in SCENES}
        for name, counts in totals.items():
            text = ", ".join(f"{CALLS[call]} {counts[call]}" for call in CALLS if counts[call])
            print(f"# {name}: {text}", flush=True)
        lines = [
            (name, fault, mode)
            for name in SCENES
            for (fault, mode), (call, _, _) in FAULTS.items()
            if totals[name][call] > 0 and self.only in f"{name} {fault} {mode}"
        ]
        if self.seconds:
            self.begin = time.monotonic()  # Of the drawing: a busy machine draws less, not nothing.
            while True:
                name, fault, mode = self.draw.choice(lines)
                yield name, fault, mode, self.draw.randint(1, totals[name][FAULTS[fault, mode][0]])
        places = {}
        for line in lines[self.part - 1 :: self.parts]:
            many = line[0] != "serve" and line[1] == "malloc"
            stride = self.stride if many else 1
            places[line] = [self.draw.randint(1, stride), stride]
        while places:
            for line, (at, stride) in list(places.items()):
                places[line][0] += stride
                if not (yield (*line, at)):
                    del places[line]

    def go(self):
        places = self.chosen()
        place = next(places)
        told = time.monotonic()
        while (self.runs < RUNS_MIN or not self.late()) and self.violations < 10:
            fired = self.one(*place)
            if time.monotonic() - told > 20:
                told = time.monotonic()
                print(f"# {self.runs} runs, now {' '.join(map(str, place))}", flush=True)
            try:
                place = places.send(fired)
            except StopIteration:
                return True
        return False


def main():
    words = sys.argv[3:]
    options = {"--seconds": "0", "--seed": "0", "--limit": "1e9", "--stride": "97", "--part": "1/1",
               "--only": ""}
    while words and words[0] in options:
        options[words[0]] = words[1]
        words = words[2:]
    if os.access("/dev/shm", os.W_OK):
        tempfile.tempdir = "/dev/shm"
    seed = int(options["--seed"]) or int(time.time())
    torture = Torture(*sys.argv[1:3], seed, options)
    print("1..1")
    print(f"# seed {seed}", flush=True)
    try:
        if len(words) == 4:
            torture.one(words[0], words[1], words[2], int(words[3]))
            every = False
        else:
            every = torture.go()
    finally:
        torture.close()
    points = ", ".join(f"{name} {count}" for name, count in torture.points.items()) or "no"
    ends = ", ".join(f"{code}: {count}" for code, count in torture.ends.items())
    note = "" if every or torture.seconds or words else ", stopped before the last place"
    seconds = time.monotonic() - torture.begin
    print(f"# torture program: {points} points; {torture.violations} violations ({torture.runs} "
          f"runs, {seconds:.0f} s{note}); ends: {ends}")
    good = torture.violations == 0 and torture.runs > 0
    print(f"{'ok' if good else 'not ok'} 1 - the program survives its N-th failure", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
