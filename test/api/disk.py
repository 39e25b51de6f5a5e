"""
A disk that takes no more: what callers are told, and what is there afterwards.

Goal: a COMMIT that was not answered cleanly is told as 503 `outcome-unknown`, the process ends
with its own exit status, and after a restart every answer that a caller got is there byte for
byte, every key can be repeated, and each order executed once.

Method: the service runs under a limit on the size of its files, which makes a write to the log fail
in the middle of the work. Usage: disk.py IDEM
"""

import pathlib
import resource
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import Gone, World  # noqa: E402

STORE_BROKE = 5  # docs/configuration.md, exit statuses.


def limited(size):
    """Runs in the service's process: no file may grow beyond `size` bytes, without a signal."""

    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return prepare


def unknown_commit(idem):
    """A COMMIT that fails is told as outcome-unknown, and the next start knows the truth"""
    world = World(idem, {"wait_ms": 3000}, start=False)
    try:
        world.start_sandbox()
        world.start(prepare=limited(600 * 1024))
        told = {}
        unknown = None
        for number in range(2000):
            try:
                reply = world.pay(f"k{number}", f"order-{number}")
            except (Gone, OSError):
                break
            if reply.status == 201:
                told[number] = reply.body
                continue
            assert reply.status == 503, reply
            if reply.json()["type"] == "urn:idem:problem:outcome-unknown":
                assert reply.json()["effect"] == "unknown", reply
                assert reply.json()["retry"] == "same-key", reply
                unknown = number
                break
        assert told, "nothing was paid before the disk was full"
        assert unknown is not None or not world.alive(), "the disk was never full"
        assert world.service.wait(harness.PATIENCE_S) == STORE_BROKE, "its own exit status"

        world.start()
        for number, body in told.items():
            reply = world.pay(f"k{number}", f"order-{number}")
            assert (reply.status, reply.body) == (201, body), f"the answer of k{number} changed"
        last = len(told)
        reply = world.pay(f"k{last}", f"order-{last}")
        assert reply.status == 201, reply
        ledger = world.ledger()
        assert ledger["executions"] == last + 1, ledger["executions"]
        assert all(effect["executions"] == 1 for effect in ledger["effects"])
    finally:
        world.close()


if __name__ == "__main__":
    harness.run([unknown_commit], sys.argv[1], sys.argv[2:])
