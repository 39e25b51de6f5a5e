"""
Kill -9 at every named point, times every way a provider fails.

Goal: wherever the process dies, at most one execution per intent; every answer that a caller got
is there byte for byte after the restart; every intent ends, or is parked where the provider
cannot tell.

Method: the service is started with a crash point, a caller pays, the process kills itself there,
is started again, and the same request under the same key is repeated until it ends. The sandbox
lives on: its ledger is the judge. Worlds are independent and several run at once. Usage: crash.py
IDEM [--slice] [word in "point fault entry" ...]
"""

import concurrent.futures
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import Gone, World  # noqa: E402

AT_ONCE = 8

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


def judge(world, fault, entry, told, last):
    executions = [effect["executions"] for effect in world.ledger()["effects"]]
    assert sum(executions) <= 1, f"money moved {sum(executions)} times"
    if last.status == 201:
        assert sum(executions) == 1, "told that it was paid, and nothing moved"
    if last.status == 402:
        assert sum(executions) == 0, "told that it was declined, and money moved"
    if last.status == 202:
        can_tell = entry in ("sandbox", "sandbox-lagging", "sandbox-closing", "sandbox-blind")
        assert fault in LIES or not can_tell or entry == "sandbox-blind", f"parked:\n{last}"
    for reply in told:
        if reply is not None and final(reply):
            assert (reply.status, reply.body) == (last.status, last.body), "the answer changed"
    if final(last):
        again = pay(world, fault, entry)
        assert (again.status, again.body) == (last.status, last.body), "the replay differs"
        assert again.header("Idempotent-Replayed") == "true"
    open_states = world.rows("SELECT count(*) FROM intents WHERE due_us > 0")
    assert open_states == [(0 if final(last) else 1,)], open_states


def dies(world, reply):
    """Waits until the process has died, or until it is clear that it will not at this point."""
    end = time.monotonic() + (5 if reply is None or not final(reply) else 1)
    while world.alive() and time.monotonic() < end:
        time.sleep(0.02)
    return not world.alive()


def one(idem, point, fault, entry):
    world = World(idem, {"wait_ms": 3000}, start=False)
    try:
        world.start_sandbox()
        world.start(crash_point=point)
        told = [pay(world, fault, entry)]
        died = dies(world, told[0])
        if died:
            world.kill()
        else:
            world.stop()
        world.start()
        last = ended(world, fault, entry)
        judge(world, fault, entry, told, last)
        return died
    except BaseException as error:
        raise AssertionError(f"{error!r}\n{world.log_text()[-1500:]}") from error
    finally:
        world.close()


def main():
    idem = sys.argv[1]
    words = [word for word in sys.argv[2:] if word != "--slice"]
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
        futures = {pool.submit(one, idem, *combination): combination for combination in wanted}
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
            print(f"# repeat: {sys.argv[0]} {idem} {name}", flush=True)
    # A point that never killed anybody proves nothing.
    missed = {combination[0] for combination in wanted} - met
    verdict = "not ok" if missed else "ok"
    print(f"{verdict} {len(wanted) + 1} - every point was met; {deaths} processes died; "
          f"never met: {sorted(missed)}", flush=True)
    sys.exit(1 if failed or missed else 0)


if __name__ == "__main__":
    main()
