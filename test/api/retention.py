"""
What is forgotten, when, and what is never forgotten.

Goal: when an answer's time is over, its key is still taken (410 with the way to the payment, 422
for another request), the order number still refuses a second payment, and the store has let go of
the bodies; erasing on request does the same earlier, never while a retry may come.

Method: the real program. Days do not pass in a test, so the stored times are moved back while the
service is stopped. Usage: retention.py IDEM
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import World  # noqa: E402

DAY_US = 86400 * 1000000
REFUSED = 6


def problem(reply):
    return reply.json()["type"].rsplit(":", 1)[1]


def age_by(world, days):
    """As if everything had been done `days` earlier. The horizon stays: it is the present."""
    shift = days * DAY_US
    names = ("created_us", "updated_us", "patience_us", "finished_us", "expires_us")
    moved = ", ".join(f"{name} = {name} - {shift}" for name in names)
    world.store.change(
        (f"UPDATE intents SET {moved}, reap_us = reap_us - {shift} WHERE reap_us > 0",)
    )


def expires(idem):
    """After 30 days the answer is gone and the key is not: 410, 422, and the order is still paid"""
    world = World(idem)
    try:
        first = world.pay("k-1", "order-1")
        assert first.status == 201
        declined = world.pay("k-2", "order-2", method="tok_decline")
        assert declined.status == 402
        refused = world.pay("k-3", "order-1")
        assert problem(refused) == "order-exists"
        given_up = world.request(
            "POST",
            "/v1/operations/abandon",
            [("Idempotency-Key", "k-4")],
            {"endpoint": "payments.create"},
        )
        assert given_up.status == 200, given_up
        world.wait_until(
            lambda: world.rows("SELECT 1 FROM meta WHERE key = 'reap_horizon_us'"), "a horizon"
        )
        assert world.stop() == 0
        age_by(world, 31)
        world.start()
        world.wait_until(lambda: world.pay("k-1", "order-1").status == 410, "it expires")
        gone = world.pay("k-1", "order-1")
        assert (gone.json()["effect"], gone.json()["retry"]) == ("done", "query"), gone
        assert gone.header("Idempotency-Key") == '"k-1"', gone  # Without it nobody believes it.
        payment = gone.json()["payment"]
        assert payment == first.header("Location"), gone
        assert world.get(payment).json()["order_no"] == "order-1"
        world.wait_until(
            lambda: world.pay("k-2", "order-2", method="tok_decline").status == 410, "this one too"
        )
        gone = world.pay("k-2", "order-2", method="tok_decline")
        assert gone.json()["effect"] == "none", gone
        assert gone.header("Idempotency-Key") == '"k-2"', gone
        other = world.pay("k-1", "order-1", more={"amount": "7.00"})
        assert (other.status, problem(other)) == (422, "key-reused"), other
        second = world.pay("k-5", "order-1")
        assert problem(second) == "order-exists", second
        world.wait_until(lambda: world.pay("k-3", "order-1").status == 410, "and this")
        abandoned = world.pay("k-4", "order-9")
        assert (abandoned.status, problem(abandoned)) == (409, "abandoned"), abandoned
        view = world.operation("k-1").json()
        assert (view["state"], view["answer"]) == ("expired", None), view
        assert world.ledger(order_no="order-1")["executions"] == 1
        held = world.rows("SELECT count(*) FROM intents WHERE answer_body <> '' OR request <> ''")
        assert held[0][0] == 1, "only k-5 has an answer"
    finally:
        world.close()


def removed(idem):
    """After 400 days a key without a payment is forgotten, one with a payment never is"""
    world = World(idem)
    try:
        assert world.pay("k-1", "order-1").status == 201
        assert problem(world.pay("k-2", "order-1")) == "order-exists"
        world.wait_until(
            lambda: world.rows("SELECT 1 FROM meta WHERE key = 'reap_horizon_us'"), "a horizon"
        )
        assert world.stop() == 0
        age_by(world, 500)
        world.start()
        world.wait_until(
            lambda: world.rows("SELECT count(*) FROM intents") == [(1,)], "the refusal goes"
        )
        assert world.pay("k-1", "order-1").status == 410
        assert problem(world.pay("k-2", "order-1")) == "order-exists"
        assert world.ledger()["executions"] == 1
    finally:
        world.close()


def erased(idem):
    """Erasing forgets bodies on request, not while a retry may come, and never the key"""
    world = World(idem, {"retry_window_s": 1})
    try:
        more = {"description": "for Erika Mustermann", "metadata": {"note": "Erika"}}
        paid = world.pay("k-1", "order-1", more=more)
        assert paid.status == 201
        payment = paid.json()["id"]
        begun = time.monotonic()
        early = world.command("erase", "--payment", payment, "--reason", "asked to")
        assert early.returncode == REFUSED or time.monotonic() - begun > 0.9, early
        time.sleep(1.1)
        result = world.command("erase", "--payment", payment, "--reason", "asked to")
        assert result.returncode == 0, result
        again = world.pay("k-1", "order-1", more=more)
        assert (again.status, again.json()["effect"]) == (410, "done"), again
        view = world.get(f"/v1/payments/{payment}").json()
        assert "Erika" not in str(view), view
        assert (view["order_no"], view["captured"]) == ("order-1", "100.00"), view
        assert world.stop() == 0
        assert not world.store.holds("Mustermann"), "it is not in the store any more"
    finally:
        world.close()


if __name__ == "__main__":
    harness.run([expires, removed, erased], sys.argv[1], sys.argv[2:])
