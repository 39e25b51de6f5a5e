"""
Kill -9 at every named point, times every way a provider fails.

Goal: wherever the process dies, at most one execution per intent; every answer that a caller got
is there byte for byte after the restart; every intent ends, or is parked where the provider
cannot tell.

Method: the service is started with a crash point, a caller pays through the client library, the
process kills itself there and is started again, while the caller goes on by its own rule; and the
same request under the same key is repeated by hand until it ends. The sandbox lives on: its ledger
is the judge. Worlds are independent and several run at once. Usage: crash.py IDEM CALLER [--slice]
[word in "point fault entry" ...]; CALLER is test/client/caller of the same build.
"""

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
import store as stores  # noqa: E402
from harness import Gone, World  # noqa: E402

AT_ONCE = 12 if stores.NAME == "sqlite" else 4  # A database server works, too.
MEET_S = 8 if stores.NAME == "sqlite" else 20

# In the order in which a payment meets them; docs/testing.md says where each stands.
POINTS = [
    "accept-queued",
    "commit-before:1",
    "commit-after:1",
    "accept-durable",
    "send-before",
    "send-first-byte",
    "answer-received",
    "commit-before:2",
    "commit-after:2",
    "settle-durable",
    "reply-before",
    "reply-after",
]

# Within a batch of the store on PostgreSQL.
POSTGRES_POINTS = ["batch-begun:1", "commit-sent:1", "batch-begun:2", "commit-sent:2"]
if stores.NAME == "postgres":
    POINTS += POSTGRES_POINTS

# Points that only a question reaches.
ASK_POINTS = ["ask-before", "ask-answered"]

FAULTS = [
    "tok_ok",
    "tok_decline",
    "tok_lose_answer",
    "tok_lose_request",
    "tok_late_1",
    "tok_slow_1",
    "tok_500_before",
    "tok_500_after",
    "tok_cut_body",
    "tok_garbage",
    "tok_wrong_amount",
    "tok_wrong_currency",
    "tok_wrong_id",
    "tok_unknown_status",
    "tok_429",
    "tok_503",
    "tok_processing_1_ok",
    "tok_processing_1_fail",
    "tok_not_found_1",
    "tok_dead_reuse",
    "tok_dead_reuse_after",
]

LIES = {"tok_wrong_amount", "tok_wrong_currency", "tok_wrong_id"}

ENTRIES = ["sandbox", "sandbox-lagging", "sandbox-closing", "sandbox-plain", "sandbox-blind"]

SLICE_FAULTS = {"tok_ok", "tok_lose_answer", "tok_lose_request", "tok_decline", "tok_503"}


def combinations(is_slice):
    for fault in FAULTS:
        for point in POINTS:
            for entry in ENTRIES:
                if entry == "sandbox" or (not is_slice and fault in SLICE_FAULTS):
                    yield point, fault, entry
        if fault not in ("tok_ok", "tok_decline", "tok_429", "tok_503", "tok_dead_reuse"):
            for point in ASK_POINTS:
                yield point, fault, "sandbox"


CALLER_FLAGS = [
    *("--deadline", "40000", "--try-timeout", "8000", "--connect-timeout", "1000"),
    *("--backoff-first", "20", "--backoff-max", "300"),
    *("--retry-percent", "100", "--retry-reserve", "1000"),
    *("--credential", f"Authorization: Bearer {harness.BEARER}"),
]


class Caller:
    """One payment by the client library, in a process of its own that outlives the service's."""

    def __init__(self, program, world, fault, entry):
        url = f"http://127.0.0.1:{world.port}/v1/payments"
        body = json.dumps(harness.payment("order-1", fault, {"provider": entry}))
        columns = ["order-1", "POST", url, body, "idem", "k", "Content-Type: application/json"]
        self.process = subprocess.Popen(
            [program, "--journal", str(world.directory / "send.db"), *CALLER_FLAGS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=world.log,
        )
        self.process.stdin.write("\t".join(columns).encode() + b"\n")
        self.process.stdin.close()

    def told(self):
        """Its verdict; None while it has none."""
        return None if self.process.poll() is None else self.verdict()

    def verdict(self):
        self.process.wait(harness.PATIENCE_S)
        if not hasattr(self, "text"):
            self.text = self.process.stdout.read()
        return json.loads(self.text)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def final(reply):
    """A stored answer: not 202, and not one of the codes that ask for the same key again."""
    return reply.status in (200, 201, 402, 409, 422)


def pay(world, fault, entry):
    try:
        return world.pay("k", "order-1", method=fault, more={"provider": entry}, timeout=20)
    except (Gone, OSError):
        return None


def ended(world, fault, entry):
    """Repeats the request until it ends; a parked one ends in front of a person."""
    end = time.monotonic() + harness.PATIENCE_S
    while time.monotonic() < end:
        reply = pay(world, fault, entry)
        assert reply is not None, "the service died without a crash point"
        if final(reply):
            return reply
        if reply.status == 202 and reply.json()["state"] == "parked":
            return reply
        assert reply.status in (202, 503), reply
        time.sleep(0.05)
    raise AssertionError(f"never ended; the last answer was\n{reply}")


def judge_caller(verdict, last):
    """What the client library told, against what the service keeps."""
    expected = "done" if last.status in (200, 201) else "refused"
    assert verdict["outcome"] == expected, f"the caller was told {verdict}, and it is {last}"
    assert verdict["status"] == last.status, verdict
    # What was found by asking is shown without its last line end.
    body = verdict["body"].encode("latin-1")
    assert body.rstrip(b"\n") == last.body.rstrip(b"\n"), "the answer changed"


def judge(world, fault, entry, last):
    executions = [effect["executions"] for effect in world.ledger()["effects"]]
    assert sum(executions) <= 1, f"money moved {sum(executions)} times"
    if last.status == 201:
        assert sum(executions) == 1, "told that it was paid, and nothing moved"
    if last.status == 402:
        assert sum(executions) == 0, "told that it was declined, and money moved"
    if last.status == 202:
        can_tell = entry in ("sandbox", "sandbox-lagging", "sandbox-closing", "sandbox-blind")
        assert fault in LIES or not can_tell or entry == "sandbox-blind", f"parked:\n{last}"
    if final(last):
        again = pay(world, fault, entry)
        assert (again.status, again.body) == (last.status, last.body), "the replay differs"
        assert again.header("Idempotent-Replayed") == "true"
    open_states = world.rows("SELECT count(*) FROM intents WHERE due_us > 0")
    assert open_states == [(0 if final(last) else 1,)], open_states


def dies(world, caller):
    """Waits until the process has died, or until it is clear that it will not at this point."""
    end = time.monotonic() + MEET_S
    while world.alive() and time.monotonic() < end:
        time.sleep(0.02)
        if caller.told() is not None:
            end = min(end, time.monotonic() + 1)
    return not world.alive()


def one(idem, program, point, fault, entry):
    world = World(idem, {"wait_ms": 3000}, start=False)
    caller = None
    try:
        world.start_sandbox()
        world.start(crash_point=point)
        caller = Caller(program, world, fault, entry)
        died = dies(world, caller)
        if died:
            world.kill()
        else:
            world.stop()
        world.start()
        last = ended(world, fault, entry)
        judge(world, fault, entry, last)
        if final(last):  # A parked one is told at the caller's deadline, which is long.
            judge_caller(caller.verdict(), last)
        return died
    except BaseException as error:
        raise AssertionError(f"{error!r}\n{world.log_text()[-1500:]}") from error
    finally:
        if caller is not None:
            caller.close()
        world.close()


def main():
    idem, program = sys.argv[1:3]
    words = [word for word in sys.argv[3:] if word != "--slice"]
    is_slice = "--slice" in sys.argv
    wanted = [
        combination
        for combination in combinations(is_slice)
        if all(word in " ".join(combination) for word in words)
    ]
    failed = 0
    deaths = 0
    met = set()
    print(f"1..{len(wanted) + 1}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {
            pool.submit(one, idem, program, *combination): combination for combination in wanted
        }
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            name = " ".join(futures[future])
            error = future.exception()
            if error is None:
                deaths += future.result()
                if future.result():
                    met.add(futures[future][0])
                print(f"ok {number} - {name}", flush=True)
                continue
            failed += 1
            print(f"not ok {number} - {name}")
            for line in str(error).splitlines():
                print(f"# {line}")
            print(f"# repeat: {sys.argv[0]} {idem} {program} --store {stores.NAME} {name}",
                  flush=True)
    # A point that never killed anybody proves nothing.
    missed = {combination[0] for combination in wanted} - met
    verdict = "not ok" if missed else "ok"
    print(f"{verdict} {len(wanted) + 1} - every point was met; {deaths} processes died; "
          f"never met: {sorted(missed)}", flush=True)
    sys.exit(1 if failed or missed else 0)


if __name__ == "__main__":
    main()
