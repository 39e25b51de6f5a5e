"""
A provider that hangs, refuses or falls silent, beside one that is well.

Goal: what one provider does to us stops nobody else; what must wait is claimed, told as 202 when
its caller's time is over, and executed once; questions go on while nothing new is sent.

Method: two entries of the sandbox, "sandbox" with limits of its own and "sandbox-closing" without;
the judges are the ledger and the metrics. Usage: protection.py IDEM
"""

import concurrent.futures
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import World  # noqa: E402

GOOD = {"provider": "sandbox-closing"}
BREAKER = "breaker = { unknowns = 3; percent = 50; window_s = 60; open_s = 3; probes = 1; };"


def world_of(idem, protection, **settings):
    entries = ("sandbox", "sandbox-closing")
    return World(idem, {"entries": entries, "protection": protection, **settings})


def metric(world, name, **labels):
    page = world.get("/metrics").body.decode()
    labels = {"entry": "sandbox", **labels}
    shown = ",".join(f'{label}="{value}"' for label, value in labels.items())
    line = re.search(rf"^idem_provider_{name}{{{shown}}} (-?\d+)$", page, re.MULTILINE)
    assert line, (name, labels)
    return int(line.group(1))


def once_each(world, count):
    ledger = world.ledger()
    executions = [effect["executions"] for effect in ledger["effects"]]
    assert executions == [1] * count, ledger


def hung(idem):
    """A provider that hangs holds its share, and payments elsewhere are made at once"""
    world = world_of(idem, "concurrency = 2;", request_timeout_ms=20000, lease_ms=30000)
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            waits = [
                pool.submit(world.pay, f"bad-{i}", f"bad-{i}", method="tok_late_2")
                for i in range(6)
            ]
            world.wait_until(
                lambda: metric(world, "waiting", stage="claimed") == 4, "four of six wait"
            )
            assert metric(world, "in_flight", use="send") == 2
            assert metric(world, "in_flight_max", use="send") == 2
            for i in range(5):
                reply = world.pay(f"good-{i}", f"good-{i}", more=GOOD)
                assert reply.status == 201, reply
            assert not waits[5].done(), "the good ones did not wait for it"
            assert world.operation("bad-5").json()["state"] == "processing"
            for wait in waits:
                assert wait.result().status == 201, wait.result()
        assert metric(world, "deferred_total") == 4
        assert metric(world, "in_flight", use="send") == 0
        once_each(world, 11)
        assert world.ledger()["arrivals"] == 11
    finally:
        world.close()


def restarted(idem):
    """What waits for its turn is told as 202, survives kill -9, and is executed once"""
    world = world_of(idem, "concurrency = 1;", request_timeout_ms=3000, lease_ms=5000)
    try:
        replies = [
            world.pay(f"k-{i}", f"o-{i}", [("Prefer", "respond-async")], method="tok_late_1")
            for i in range(6)
        ]
        assert [reply.status for reply in replies] == [202] * 6, replies
        assert metric(world, "waiting", stage="claimed") >= 3
        world.kill()
        world.start()
        for i in range(6):
            world.wait_state(f"k-{i}", ("succeeded",))
        once_each(world, 6)
    finally:
        world.close()


def silent(idem):
    """While a provider answers nothing new payments wait, and what is unknown is found out"""
    world = world_of(idem, BREAKER)
    try:
        for i in range(3):
            reply = world.pay(f"k-{i}", f"o-{i}", [("Prefer", "wait=0")], method="tok_lose_answer")
            assert reply.status == 202, reply
        world.wait_until(lambda: metric(world, "breaker") == 2, "the breaker opens")
        reply = world.pay("waits", "waits", [("Prefer", "wait=1")])
        assert (reply.status, reply.json()["state"]) == (202, "processing"), reply
        assert metric(world, "breaker") == 2
        for i in range(3):
            world.wait_state(f"k-{i}", ("succeeded",))
        assert world.ledger(order_no="waits")["arrivals"] == 0, "nothing new is sent"
        assert world.pay("good", "good", more=GOOD).status == 201
        assert world.pay("waits", "waits").status == 201, "one is tried, and is answered"
        assert metric(world, "breaker") == 0
        assert metric(world, "breaker_openings_total") == 1
        once_each(world, 5)
    finally:
        world.close()


def refusing(idem):
    """A provider that says when to come back is left alone until then"""
    world = world_of(idem, "")
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(world.pay, "first", "first", method="tok_429")
            world.wait_until(lambda: metric(world, "pause_milliseconds") > 0, "it pauses")
            assert world.pay("good", "good", more=GOOD).status == 201
            second = world.pay("second", "second")
            assert second.status == 201, second
            assert metric(world, "deferred_total") >= 1
            assert first.result().status == 201, first.result()
        once_each(world, 3)
    finally:
        world.close()


if __name__ == "__main__":
    harness.run([hung, restarted, silent, refusing], sys.argv[1], sys.argv[2:])
