"""
Many callers at once, judged afterwards by the provider's ledger and the rows.

Goal: whatever meets at the same moment, money moves at most once per intent, one order number has
one live payment, sums are never promised twice, and every caller of one key gets the same final
answer.

Method: the real program and sandbox; threads with a connection each are lined up behind a barrier
and let go together. Usage: race.py IDEM [name ...]
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import World, payment  # noqa: E402
from together import together  # noqa: E402


def world_test(test):
    def body(idem):
        world = World(idem)
        try:
            test(world)
        except BaseException:
            sys.stdout.write(world.log_text()[-4000:])
            raise
        finally:
            world.close()

    body.__name__ = test.__name__
    body.__doc__ = test.__doc__
    return body


@world_test
def fifty_on_one_key(world):
    """Fifty connections with one request under one key: one execution, one answer for all"""
    replies = together([lambda: world.pay("k", "order-1")] * 50)
    assert {reply.status for reply in replies} == {201}, replies
    assert len({reply.body for reply in replies}) == 1
    firsts = [reply for reply in replies if reply.header("Idempotent-Replayed") == "false"]
    assert len(firsts) == 1, f"{len(firsts)} callers were told that they were first"
    ledger = world.ledger(order_no="order-1")
    assert ledger["executions"] == 1 and ledger["arrivals"] == 1, ledger
    assert world.rows("SELECT count(*) FROM payments") == [(1,)]


@world_test
def fifty_on_one_key_with_a_lost_answer(world):
    """Fifty connections on one key and a lost answer: one execution, one answer for all"""
    replies = together([lambda: world.pay("k", "order-1", method="tok_lose_answer")] * 50)
    assert {reply.status for reply in replies} == {201}, replies
    assert len({reply.body for reply in replies}) == 1
    assert world.ledger(order_no="order-1")["executions"] == 1


@world_test
def two_requests_under_one_key(world):
    """Two different requests under one key: one wins, the other is refused and moves nothing"""
    first = lambda: world.pay("k", "order-1")  # noqa: E731
    second = lambda: world.pay("k", "order-1", more={"amount": "200.00"})  # noqa: E731
    replies = together([first, second] * 20)
    statuses = [reply.status for reply in replies]
    assert set(statuses) == {201, 422}, statuses
    winners = set(statuses[0::2]), set(statuses[1::2])
    assert {201} in winners and {422} in winners, "both requests won"
    for reply in replies:
        if reply.status == 422:
            assert reply.json()["effect"] == "unknown" and reply.json()["retry"] == "never"
    assert world.ledger(order_no="order-1")["executions"] == 1


@world_test
def two_keys_for_one_order(world):
    """Forty keys for one order number: one payment, and everybody else learns which it is"""
    replies = together([lambda i=i: world.pay(f"k{i}", "order-1") for i in range(40)])
    made = [reply for reply in replies if reply.status == 201]
    refused = [reply for reply in replies if reply.status == 409]
    assert len(made) == 1 and len(refused) == 39, [reply.status for reply in replies]
    link = made[0].header("Location")
    assert {reply.json()["payment"] for reply in refused} == {link}
    assert world.ledger(order_no="order-1")["executions"] == 1
    again = [world.pay(f"k{i}", "order-1") for i in range(40)]
    assert [reply.body for reply in again] == [reply.body for reply in replies]


@world_test
def many_keys_many_orders(world):
    """Two hundred payments at once through few places on the wire: each executes once"""
    replies = together([lambda i=i: world.pay(f"k{i}", f"order-{i}") for i in range(200)])
    for index, reply in enumerate(replies):
        if reply.status != 201:
            assert reply.status in (202, 503), reply
            world.wait_until(
                lambda i=index: world.pay(f"k{i}", f"order-{i}").status == 201, f"k{index} ends"
            )
    ledger = world.ledger()
    assert ledger["executions"] == 200, ledger["executions"]
    assert all(effect["executions"] == 1 for effect in ledger["effects"])


def authorized(world, order_no, amount="50.00"):
    reply = world.pay("pay-" + order_no, order_no, more={"capture": "manual", "amount": amount})
    assert reply.status == 201 and reply.json()["state"] == "authorized", reply
    return reply.json()["id"]


@world_test
def capture_against_cancel(world):
    """Capture and cancel at the same moment: exactly one of them happens"""
    for number in range(10):
        payment_id = authorized(world, f"order-{number}")
        path = f"/v1/payments/{payment_id}"
        capture, cancel = together(
            [
                lambda p=path, n=number: world.post(p + "/capture", f"cap-{n}", {}),
                lambda p=path, n=number: world.post(p + "/cancel", f"can-{n}", {}),
            ]
        )
        assert sorted([capture.status, cancel.status]) == [200, 409], (capture, cancel)
        view = world.get(path).json()
        if capture.status == 200:
            assert view["state"] == "captured" and view["captured"] == "50.00", view
            assert cancel.json()["type"] == "urn:idem:problem:state-conflict"
        else:
            assert view["state"] == "canceled" and view["captured"] == "0.00", view
        moved = [
            effect["kind"]
            for effect in world.ledger(order_no=f"order-{number}")["effects"]
            if effect["executions"] > 0
        ]
        assert len(moved) == 2, moved  # The authorization and one of the two.


@world_test
def refunds_above_the_captured_sum(world):
    """A hundred refunds of 1.00 on a payment of 50.00: exactly fifty succeed"""
    reply = world.pay("k", "order-1", more={"amount": "50.00"})
    path = f"/v1/payments/{reply.json()['id']}/refunds"
    replies = together(
        [lambda i=i: world.post(path, f"r{i}", {"amount": "1.00"}) for i in range(100)]
    )
    statuses = [reply.status for reply in replies]
    assert statuses.count(201) == 50 and statuses.count(422) == 50, statuses
    view = world.get(path.rsplit("/", 1)[0]).json()
    assert view["refunded"] == "50.00" and view["refund_pending"] == "0.00", view
    assert view["state"] == "refunded"
    refunds = [e for e in world.ledger(order_no="order-1")["effects"] if e["kind"] == "refund"]
    assert sum(effect["executions"] for effect in refunds) == 50


@world_test
def captures_above_the_authorized_sum(world):
    """Thirty captures of 10.00 on an authorization of 100.00: exactly ten succeed"""
    payment_id = authorized(world, "order-1", "100.00")
    path = f"/v1/payments/{payment_id}"
    replies = together(
        [lambda i=i: world.post(path + "/capture", f"c{i}", {"amount": "10.00"}) for i in range(30)]
    )
    statuses = [reply.status for reply in replies]
    assert statuses.count(200) == 10, statuses
    view = world.get(path).json()
    assert view["captured"] == "100.00" and view["state"] == "captured", view


@world_test
def equal_partial_refunds(world):
    """Two equal partial refunds under two keys are both genuine; under one key they are one"""
    reply = world.pay("k", "order-1")
    path = f"/v1/payments/{reply.json()['id']}/refunds"
    body = {"amount": "5.00"}
    replies = together(
        [lambda: world.post(path, "r1", body), lambda: world.post(path, "r2", body)]
        + [lambda: world.post(path, "r1", body)] * 5
    )
    assert {reply.status for reply in replies} == {201}, replies
    assert world.get(path.rsplit("/", 1)[0]).json()["refunded"] == "10.00"


@world_test
def two_tenants_one_key(world):
    """Two tenants with one key, body and order number: two effects, and neither sees the other's"""
    replies = together(
        [
            lambda: world.pay("k", "order-1"),
            lambda: world.pay("k", "order-1", bearer=harness.OTHER_BEARER),
        ]
    )
    assert [reply.status for reply in replies] == [201, 201], replies
    assert replies[0].json()["id"] != replies[1].json()["id"]
    mine = replies[0].header("Location")
    assert world.get(mine).status == 200
    assert world.get(mine, bearer=harness.OTHER_BEARER).status == 404
    assert world.ledger(order_no="order-1")["executions"] == 2


@world_test
def callers_that_leave(world):
    """Callers that hang up change nothing: done once, and there for the next"""
    connections = []
    for number in range(20):
        connection = harness.Connection(world.port)
        body = harness.json.dumps(payment(f"order-{number}", "tok_late_1")).encode()
        headers = [
            ("Authorization", f"Bearer {harness.BEARER}"),
            ("Idempotency-Key", f"k{number}"),
            ("Content-Type", "application/json"),
        ]
        connection.send(harness.encode("POST", "/v1/payments", headers, body))
        connections.append(connection)
    world.wait_until(lambda: world.ledger()["arrivals"] == 20, "all arrived")
    for connection in connections:
        connection.close()
    for number in range(20):
        reply = world.pay(f"k{number}", f"order-{number}", method="tok_late_1")
        assert reply.status == 201 and reply.header("Idempotent-Replayed") == "true", reply
    assert world.ledger()["executions"] == 20


TESTS = [value for value in list(globals().values()) if getattr(value, "__doc__", None)
         and callable(value) and getattr(value, "__module__", "") == __name__
         and value.__name__ not in ("together", "world_test", "authorized")]

if __name__ == "__main__":
    harness.run(TESTS, sys.argv[1], sys.argv[2:])
