"""
An older copy of the store never charges again.

Goal: after yesterday's backup was restored, every effect that the copy has missed is known before
anything new is taken, so that the same key gets its answer, another key for the same order is
refused, and what was refunded cannot be refunded again; whatever the provider still deduplicates.

Method: the real program. The copy is taken between two stops, work goes on, the copy is put back
and served with --restored. Most tests pay through a provider that never deduplicates, which is
what every provider becomes when its window has passed: a second send would be a second charge.
The sandbox's ledger counts executions and is the judge. Usage: restored.py IDEM
"""

import email.utils
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import World  # noqa: E402

PLAIN = {"entries": ("sandbox-plain",), "lease_ms": 3200, "wait_ms": 3000}
TEN_YEARS_US = 10 * 365 * 86400 * 1000000


def copy_take(world):
    """The store as it is now, and nothing of its log: the service has stopped."""
    assert world.stop() == 0
    world.store.copy_take()


def copy_take_running(world):
    """The same of a service that is killed in the middle: file and log as one."""
    world.kill()
    world.store.copy_take()


def copy_put_back(world):
    """The service is gone, by whatever death."""
    world.store.copy_put_back()


def pay(world, key, order_no, **more):
    body = {"provider": world.settings["entries"][0], **more.pop("body", {})}
    return world.pay(key, order_no, more=body, **more)


def restored(world):
    return world.admin("GET", "/restored").json()["restored"]


def wait_over(world):
    world.wait_until(lambda: not restored(world), "the restored mode ends")
    world.wait_until(lambda: world.get("/readyz", bearer=None).status == 200, "it is ready")


def executions(world, **filters):
    return world.ledger(**filters)["executions"]


def problem(reply):
    return reply.json()["type"].rsplit(":", 1)[1]


def same_key(idem):
    """The same key gets its answer, another key for the same order is refused, nothing is sent"""
    world = World(idem, PLAIN)
    try:
        assert pay(world, "old", "order-old").status == 201
        copy_take(world)
        world.start()
        first = pay(world, "k-1", "order-1")
        assert first.status == 201, first
        assert pay(world, "k-2", "order-2").status == 201
        world.kill()
        arrivals = world.ledger()["arrivals"]
        copy_put_back(world)

        world.start(arguments=["--restored"])
        assert restored(world)
        assert world.get("/readyz", bearer=None).status == 503
        reply = pay(world, "k-1", "order-1")
        assert (reply.status, reply.json()["effect"]) == (503, "unknown"), reply
        abandoned = world.request(
            "POST",
            "/v1/operations/abandon",
            [("Idempotency-Key", "k-1")],
            {"endpoint": "payments.create"},
        )
        assert abandoned.status == 503, abandoned
        assert pay(world, "old", "order-old").status == 201, "what is known is replayed"
        wait_over(world)

        other = pay(world, "k-2-again", "order-2")
        assert (other.status, problem(other)) == (409, "order-exists"), other
        again = pay(world, "k-1", "order-1")
        assert again.status == 201, again
        assert again.json()["amount"] == first.json()["amount"]
        assert again.json()["order_no"] == "order-1"
        assert pay(world, "k-1", "order-1").body == again.body, "and replayed as any other"
        changed = pay(world, "k-1", "order-1", body={"amount": "7.00"})
        assert (changed.status, problem(changed)) == (422, "key-reused"), changed
        assert world.get(f"/v1/payments/{again.json()['id']}").status == 200
        assert pay(world, "k-3", "order-3").status == 201, "new work is taken"

        ledger = world.ledger()
        assert ledger["arrivals"] == arrivals + 1, "only the new payment was sent"
        assert all(effect["executions"] == 1 for effect in ledger["effects"]), ledger
    finally:
        world.close()


def money_back(idem):
    """What was captured and refunded after the copy was made is not captured or refunded again"""
    world = World(idem, PLAIN)
    try:
        paid = pay(world, "k-1", "order-1").json()
        held = pay(world, "k-2", "order-2", body={"capture": "manual"}).json()
        copy_take(world)
        world.start()
        refund = world.post(f"/v1/payments/{paid['id']}/refunds", "r-1", {"amount": "60.00"})
        assert refund.status == 201, refund
        capture = world.post(f"/v1/payments/{held['id']}/capture", "c-1", {})
        assert capture.status == 200, capture
        world.kill()
        before = executions(world)
        copy_put_back(world)
        world.start(arguments=["--restored"])
        wait_over(world)

        view = world.get(f"/v1/payments/{paid['id']}").json()
        assert view["refunded"] == "60.00", view
        assert world.get(f"/v1/payments/{held['id']}").json()["state"] == "captured"
        more = world.post(f"/v1/payments/{paid['id']}/refunds", "r-2", {"amount": "60.00"})
        assert (more.status, problem(more)) == (422, "amount-exceeds"), more
        again = world.post(f"/v1/payments/{paid['id']}/refunds", "r-1", {"amount": "60.00"})
        assert again.status == 201, again
        assert again.json()["amount"] == "60.00"
        twice = world.post(f"/v1/payments/{held['id']}/capture", "c-2", {})
        assert (twice.status, problem(twice)) == (409, "state-conflict"), twice
        assert world.post(f"/v1/payments/{held['id']}/capture", "c-1", {}).status == 200
        view = world.get(f"/v1/payments/{paid['id']}").json()
        assert view["refunded"] == "60.00", "the answer moved no sum a second time"
        assert executions(world) == before
    finally:
        world.close()


def whole_life(idem):
    """A payment that was made, captured and refunded after the copy comes back as one that was"""
    world = World(idem, PLAIN)
    try:
        pay(world, "old", "order-old")
        copy_take(world)
        world.start()
        made = pay(world, "k-1", "order-1", body={"capture": "manual"}).json()
        assert world.post(f"/v1/payments/{made['id']}/capture", "c-1", {}).status == 200
        refund = world.post(f"/v1/payments/{made['id']}/refunds", "r-1", {"amount": "30.00"})
        assert refund.status == 201, refund
        world.kill()
        before = executions(world)
        copy_put_back(world)
        world.start(arguments=["--restored"])
        wait_over(world)

        again = pay(world, "k-1", "order-1", body={"capture": "manual"})
        assert again.status == 201, again
        found = again.json()
        assert (found["captured"], found["refunded"]) == ("100.00", "30.00"), found
        lost = world.post(f"/v1/payments/{made['id']}/capture", "c-1", {})
        assert (lost.status, lost.json()["id"]) == (200, found["id"]), "under its old name too"
        lost = world.post(f"/v1/payments/{made['id']}/refunds", "r-1", {"amount": "30.00"})
        assert (lost.status, lost.json()["amount"]) == (201, "30.00"), lost
        twice = world.post(f"/v1/payments/{found['id']}/capture", "c-2", {})
        assert twice.status == 409, twice
        more = world.post(f"/v1/payments/{found['id']}/refunds", "r-2", {"amount": "80.00"})
        assert more.status == 422, more
        assert executions(world) == before
    finally:
        world.close()


def open_in_the_copy(idem):
    """What was in flight when the copy was made settles from the provider's listing"""
    world = World(idem, {**PLAIN, "ask_first_ms": 60000, "ask_max_ms": 60000})
    try:
        reply = pay(
            world, "k-1", "order-1", method="tok_late_9", headers=[("Prefer", "respond-async")]
        )
        assert reply.status == 202, reply
        world.wait_until(lambda: executions(world, order_no="order-1") == 1, "it executes")
        copy_take_running(world)
        copy_put_back(world)
        world.start(arguments=["--restored"])
        wait_over(world)
        view = world.wait_state("k-1", ("succeeded",))
        assert view["answer"]["status"] == 201, view
        assert pay(world, "k-1", "order-1", method="tok_late_9").status == 201
        assert executions(world, order_no="order-1") == 1
        assert world.ledger()["arrivals"] == 1
    finally:
        world.close()


TIMES = {
    "events": ("at_us",),
    "intents": ("created_us", "updated_us", "finished_us", "expires_us", "reap_us"),
    "payments": ("created_us", "updated_us"),
    "sends": ("granted_us", "not_after_us"),
}


def times_moved(by_us):
    """Statements: as if all had been done by a clock that was so far ahead."""
    for table, columns in TIMES.items():
        for column in columns:
            yield f"UPDATE {table} SET {column} = {column} + ? WHERE {column} > 0", by_us


def clock_ahead(idem):
    """A copy whose times lie ten years ahead hides nothing: all of the provider's past is read"""
    world = World(idem, PLAIN)
    try:
        assert pay(world, "old", "order-old").status == 201
        copy_take(world)
        world.start()
        assert pay(world, "k-1", "order-1").status == 201
        world.kill()
        copy_put_back(world)
        world.store.change(*times_moved(TEN_YEARS_US))
        world.start(arguments=["--restored"])
        assert world.admin("GET", "/restored").json()["from"] is None, "from the beginning"
        world.kill()
        world.start()
        wait_over(world)
        assert pay(world, "k-1", "order-1").status == 201
        assert pay(world, "old", "order-old").status == 201
        assert executions(world, order_no="order-1") == 1
        assert executions(world, order_no="order-old") == 1
    finally:
        world.close()


def processing(idem):
    """What the provider has not decided yet keeps the mode until it is decided and listed"""
    world = World(idem, PLAIN)
    try:
        assert pay(world, "old", "order-old").status == 201
        copy_take(world)
        world.start()
        method = "tok_processing_15_ok"
        reply = pay(world, "k-1", "order-1", method=method, headers=[("Prefer", "respond-async")])
        assert reply.status == 202, reply
        world.wait_until(lambda: world.ledger(order_no="order-1")["arrivals"] == 1, "it arrives")
        world.kill()
        copy_put_back(world)
        world.start(arguments=["--restored"])
        world.wait_until(
            lambda: world.admin("GET", "/restored").json()["failures"] > 0, "it is told to wait"
        )
        assert world.ledger(order_no="order-1")["effects"][0]["status"] == "processing"
        assert restored(world)
        assert pay(world, "k-1", "order-1", method=method).status == 503
        wait_over(world)
        assert executions(world, order_no="order-1") == 1
        assert pay(world, "k-1", "order-1", method=method).status == 201
        ledger = world.ledger(order_no="order-1")
        assert (ledger["arrivals"], ledger["executions"]) == (1, 1), ledger
    finally:
        world.close()


def former_entry(idem):
    """Payments at an entry that is not configured any more keep the mode for an operator"""
    world = World(idem, PLAIN)
    try:
        assert pay(world, "old", "order-old").status == 201
        copy_take(world)
        world.settings["entries"] = ("sandbox-closing",)
        world.start(arguments=["--restored"])
        world.wait_until(
            lambda: world.admin("GET", "/restored").json()["needs_operator"], "it is noticed"
        )
        assert restored(world)
    finally:
        world.close()


def lasts(idem):
    """The mode lasts over a kill -9 and a start without the flag, until the listing was read"""
    world = World(idem, PLAIN)
    try:
        pay(world, "old", "order-old")
        copy_take(world)
        world.start()
        assert pay(world, "k-1", "order-1").status == 201
        world.kill()
        copy_put_back(world)
        world.start(arguments=["--restored"])
        world.kill()
        world.start()
        assert restored(world)
        assert pay(world, "k-1", "order-1").status == 503
        wait_over(world)
        assert pay(world, "k-1", "order-1").status == 201
        world.kill()
        world.start()
        assert not restored(world)
        assert executions(world, order_no="order-1") == 1
    finally:
        world.close()


def without_listing(idem):
    """Where a provider cannot be listed, only an operator ends the mode, with a reason"""
    world = World(idem, {**PLAIN, "listing": ()})
    try:
        assert pay(world, "old", "order-old").status == 201
        copy_take(world)
        world.start(arguments=["--restored"])
        mode = world.admin("GET", "/restored").json()
        assert mode["restored"] and mode["needs_operator"], mode
        assert pay(world, "k-1", "order-1").status == 503
        shown = world.command("status")
        assert shown.returncode == 0 and "needs_operator" in shown.stdout, shown
        assert world.command("status", "--end-restored").returncode == 2, "not without a reason"
        before = email.utils.formatdate(time.time() - 5, usegmt=True)
        ended = world.command("status", "--end-restored", "--reason", "compared by hand")
        assert ended.returncode == 0, ended
        wait_over(world)
        old = pay(world, "k-0", "order-0", headers=[("Repeatability-First-Sent", before)])
        assert (old.status, problem(old)) == (412, "too-old"), "it may have run"
        assert pay(world, "k-1", "order-1").status == 201
        world.kill()
        world.start()
        assert not restored(world)
        old = pay(world, "k-0", "order-0", headers=[("Repeatability-First-Sent", before)])
        assert (old.status, problem(old)) == (412, "too-old"), "also after a restart"
    finally:
        world.close()


def stops_while_listing(idem):
    """A stop in the middle of a listing that does not come does not wait for the provider"""
    slow = {"lease_ms": 9000, "request_timeout_ms": 7000, "settle_ms": 0}
    world = World(idem, {**PLAIN, **slow})
    try:
        assert pay(world, "old", "order-old").status == 201
        copy_take(world)
        world.start()
        assert pay(world, "k-1", "order-1", method="tok_list_slow_6").status == 201
        world.kill()
        copy_put_back(world)
        world.start(arguments=["--restored"])
        world.wait_until(
            lambda: any(effect["listings"] > 0 for effect in world.ledger()["effects"]),
            "a page is asked for",
        )
        began = time.monotonic()
        assert world.stop() == 0
        assert time.monotonic() - began < 5, "it waited for the page"
        world.start()
        wait_over(world)
        assert pay(world, "k-1", "order-1", method="tok_list_slow_6").status == 201
        assert executions(world, order_no="order-1") == 1
    finally:
        world.close()


if __name__ == "__main__":
    harness.run_at_once(
        [
            same_key,
            stops_while_listing,
            money_back,
            whole_life,
            open_in_the_copy,
            clock_ahead,
            processing,
            lasts,
            without_listing,
            former_entry,
        ],
        sys.argv[1],
        sys.argv[2:],
        4,
    )
