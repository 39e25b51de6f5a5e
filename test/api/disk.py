"""
A disk that takes no more, files that are not what they were, and clocks that jump.

Goal: a COMMIT that was not answered cleanly is told as 503 `outcome-unknown`, the process ends
with its own exit status, and after a restart every answer that a caller got is there byte for
byte, every key can be repeated, and each order executed once. A store that cannot be opened is
refused with a sentence that names it, and left as it is. Damage that is met while running ends the
process instead of being answered as if nothing were there.

Method: the service runs under a limit on the size of its files, which makes a write to the log fail
in the middle of the work; the limit falls where the test wants it. Files are damaged, and times in
the store are moved, while nothing runs. Usage: disk.py IDEM
"""

import contextlib
import ctypes
import pathlib
import resource
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import Gone, World  # noqa: E402

CANNOT_START = 4  # docs/configuration.md, exit statuses.
STORE_BROKE = 5
YEARS_US = 10 * 365 * 86400 * 1000000


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


def log_of(world):
    return world.directory / "idem.db-wal"


def limit_log(world):
    """From now on the service's log cannot grow."""
    size = log_of(world).stat().st_size
    resource.prlimit(world.service.pid, resource.RLIMIT_FSIZE, (size, size))


def no_signal():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def ended_then_once(world, key):
    """The process has ended as it should, and the key ends with one execution after a restart."""
    assert world.service.wait(harness.PATIENCE_S) == STORE_BROKE, "its own exit status"
    world.start()
    reply = world.pay(key, key)
    assert reply.status == 201, reply
    effects = world.ledger(order_no=key)["effects"]
    assert [effect["executions"] for effect in effects] == [1], effects


def full_at_accept(idem):
    """A disk that is full when a payment is accepted: unknown, nothing sent, later once"""
    world = World(idem, {"wait_ms": 3000}, start=False)
    try:
        world.start_sandbox()
        world.start(prepare=no_signal)
        body = world.pay("before", "before").body
        limit_log(world)
        with contextlib.suppress(Gone, OSError):
            reply = world.pay("late", "late")
            assert reply.status == 503, reply
            assert reply.json()["effect"] == "unknown", reply
        assert world.ledger(order_no="late")["executions"] == 0
        ended_then_once(world, "late")
        assert world.pay("before", "before").body == body
    finally:
        world.close()


def full_at_settle(idem):
    """A disk that is full when the provider answers: unknown, and later the answer, once"""
    world = World(idem, {"wait_ms": 5000}, start=False)
    replies = []

    def pay():
        with contextlib.suppress(Gone, OSError):
            replies.append(world.pay("late", "late", method="tok_slow_1"))

    try:
        world.start_sandbox()
        world.start(prepare=no_signal)
        assert world.pay("before", "before").status == 201
        caller = threading.Thread(target=pay)
        caller.start()
        dispatched = "SELECT count(*) FROM intents WHERE key = 'late' AND state = 2"
        world.wait_until(lambda: world.rows(dispatched) == [(1,)], "the payment is on its way")
        limit_log(world)
        caller.join()
        for reply in replies:  # The claim is durable, so its operation may be named.
            assert reply.status == 202 or reply.json()["effect"] == "unknown", reply
        assert world.service.wait(harness.PATIENCE_S) == STORE_BROKE, "its own exit status"
        world.start()
        reply = world.pay("late", "late", method="tok_slow_1")
        assert reply.status == 201, reply
        assert world.ledger(order_no="late")["executions"] == 1
    finally:
        world.close()


def expect_refused(world, *words, arguments=(), prepare=None):
    """It does not start, says why, and the words are in what it says."""
    before = len(world.log_text())
    world.start(arguments=arguments, prepare=prepare)
    status = world.service.wait(harness.PATIENCE_S)
    said = world.log_text()[before:]
    assert status == CANNOT_START, (status, said)
    for word in words:
        assert word in said, f"no {word!r} in {said}"


def without_override():
    """Runs in the service's process: what a file's mode forbids is forbidden to root as well."""
    drop_from_bounding_set = 24
    for capability in (1, 2):  # DAC_OVERRIDE, DAC_READ_SEARCH; who is not root has neither.
        ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


def refused_at_the_door(idem):
    """What cannot be opened is refused with a sentence that names it, and left as it is"""
    world = World(idem, {"wait_ms": 3000})
    path = world.directory / "idem.db"
    try:
        body = world.pay("a", "a").body
        second = World(idem, start=False)
        expect_refused(
            second, "another process serves", str(path), arguments=("--store", f"sqlite:{path}")
        )
        second.close()
        assert world.stop() == 0

        path.chmod(0o400)
        expect_refused(world, str(path), "Permission denied", prepare=without_override)
        path.chmod(0o600)
        lock = world.directory / "idem.db.lock"
        lock.unlink()
        world.directory.chmod(0o500)
        with contextlib.ExitStack() as stack:
            stack.callback(world.directory.chmod, 0o700)
            expect_refused(world, "idem.db.lock", "Permission denied", prepare=without_override)

        secrets = world.directory / "idem.db.secrets"
        kept = world.directory / "kept"
        secrets.rename(kept)
        expect_refused(world, str(secrets), "put back the file")
        kept.rename(secrets)
        absent = world.directory / "absent" / "idem.db"
        expect_refused(world, str(absent), arguments=("--store", f"sqlite:{absent}"))

        whole = path.read_bytes()
        path.write_bytes(b"not what it was" * 4 + whole[60:])
        expect_refused(world, str(path), "is damaged or not a store of idem")
        path.write_bytes(whole[: 10 * 4096])
        expect_refused(world, "restore a backup")
        path.write_bytes(b"")
        expect_refused(world, "Restore it")
        path.write_bytes(whole)
        world.start()
        assert world.pay("a", "a").body == body, "and it is as it was"
        assert world.ledger()["executions"] == 1
    finally:
        world.close()


def damage_while_running(idem):
    """A damaged page that a request meets ends the process loudly; the rest was served till then"""
    world = World(idem, {"wait_ms": 3000})
    path = world.directory / "idem.db"
    try:
        bodies = [world.pay(f"key-{n:03}", f"order-{n:03}").body for n in range(300)]
        assert world.stop() == 0
        content = bytearray(path.read_bytes())
        pages = [at for at in range(4096, len(content), 4096)
                 if b"key-007" in content[at : at + 4096]]
        assert pages
        for at in pages:
            content[at : at + 4096] = bytes(4096)
        path.write_bytes(content)
        world.start()
        assert world.alive(), "an opening does not read everything"
        assert world.pay("key-299", "order-299").body == bodies[299]
        with contextlib.suppress(Gone, OSError):
            reply = world.pay("key-007", "order-007")
            assert reply.status == 503, reply
            assert reply.json()["effect"] == "unknown", reply
        assert world.service.wait(harness.PATIENCE_S) == STORE_BROKE
        assert world.ledger()["executions"] == 300
    finally:
        world.close()


TIMES = {
    "intents": "lease_end_us due_us created_us updated_us patience_us unknown_since_us finished_us"
    " expires_us reap_us",
    "payments": "created_us updated_us",
    "sends": "granted_us not_after_us",
    "events": "at_us",
}


def times_moved(by_us):
    """Statements: every time in the store, and how far retention trusts the clock."""
    for table, columns in TIMES.items():
        for column in columns.split():
            yield f"UPDATE {table} SET {column} = {column} + ? WHERE {column} > 0", by_us
    yield (
        "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + ? AS TEXT) WHERE key IN"
        " ('created_us', 'reap_horizon_us')",
        by_us,
    )


def clock_jumps(idem):
    """A clock that went back, or forward by years, between two starts loses no answer"""
    for by_us in (YEARS_US, -YEARS_US):
        world = World(idem, {"wait_ms": 3000})
        try:
            body = world.pay("a", "a").body
            horizon = "SELECT count(*) FROM meta WHERE key = 'reap_horizon_us'"
            world.wait_until(lambda: world.rows(horizon) == [(1,)], "retention has its horizon")
            assert world.stop() == 0
            world.store.change(*times_moved(by_us))
            world.start()
            assert world.alive(), world.log_text()[-2000:]
            reply = world.pay("a", "a")
            assert (reply.status, reply.body) == (201, body), reply
            assert world.pay("b", "b").status == 201
            assert world.ledger()["executions"] == 2
        finally:
            world.close()


def log_taken_away(idem):
    """A log that was removed under the service ends it within a second, before more rests on it"""
    world = World(idem)
    try:
        assert world.pay("k-1", "order-1").status == 201
        time.sleep(1.2)  # It was seen.
        (world.directory / "idem.db-wal").unlink()
        assert world.service.wait(harness.PATIENCE_S) == STORE_BROKE, "its own exit status"
        assert "store-replaced" in world.log_text()
    finally:
        world.close()


if __name__ == "__main__":
    harness.run(
        [
            unknown_commit,
            full_at_accept,
            full_at_settle,
            refused_at_the_door,
            damage_while_running,
            clock_jumps,
            log_taken_away,
        ],
        sys.argv[1],
        sys.argv[2:],
    )
