"""
The Stripe adapter in the running service, against a Stripe that fails on purpose.

Goal: whatever is lost, stored, refused or in use, money moves as often as the row says, and the
caller is told what happened. Judged by what the simulator counted: arrivals and executions apart.

Method: `idem serve` with a stripe entry, over HTTP on loopback; one world, each row an order of its
own, repeated under its key until it ends. Usage: fault.py IDEM [word in a row ...]
"""

import concurrent.futures
import hashlib
import hmac
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
import harness  # noqa: E402
from harness import World, sha256_hex  # noqa: E402

# operation, fault, how it ends, executions of the operation. `parked`: 500 is remembered under the
# key, nothing was executed, and Stripe may still do it: a person, or an event, says so later.
TABLE = """
create   lost-request  201     1
create   lost-answer   201     1
create   cut-answer    201     1
create   stored-500    503     0
create   executed-500  503     1
create   in-use        201     1
create   limited       201     1
create   locked        201     1
create   maybe         201     1
confirm  lost-request  201     1
confirm  lost-answer   201     1
confirm  cut-answer    201     1
confirm  stored-500    parked  0
confirm  executed-500  201     1
confirm  in-use        201     1
confirm  limited       201     1
confirm  locked        201     1
confirm  maybe         201     1
capture  lost-request  200     1
capture  lost-answer   200     1
capture  cut-answer    200     1
capture  stored-500    parked  0
capture  executed-500  200     1
capture  in-use        200     1
capture  limited       200     1
capture  locked        200     1
capture  maybe         200     1
cancel   lost-request  200     1
cancel   lost-answer   200     1
cancel   cut-answer    200     1
cancel   stored-500    parked  0
cancel   executed-500  200     1
cancel   in-use        200     1
cancel   limited       200     1
cancel   locked        200     1
cancel   maybe         200     1
refund   lost-request  201     1
refund   lost-answer   201     1
refund   cut-answer    201     1
refund   stored-500    parked  0
refund   executed-500  201     1
refund   in-use        201     1
refund   limited       201     1
refund   locked        201     1
refund   maybe         201     1
"""

# What needs no fault: card, capture mode, currency, amount, how it ends, how the intent stands.
PLAIN = """
pm_card_visa            automatic  CNY  100.00    201  succeeded
pm_card_visa            manual     CNY  100.00    201  requires_capture
pm_slow                 automatic  USD  7.01      201  succeeded
pm_card_chargeDeclined  automatic  EUR  5.00      402  canceled
pm_card_chargeDeclined  manual     EUR  5.00      402  canceled
pm_missing              automatic  EUR  5.00      402  none
pm_action               automatic  EUR  5.00      202  requires_action
pm_card_visa            automatic  JPY  500       201  succeeded
pm_card_visa            automatic  KWD  1.230     201  succeeded
pm_card_visa            automatic  KWD  1.234     402  none
pm_card_visa            automatic  ISK  5         201  succeeded
pm_card_visa            automatic  MGA  300.00    201  succeeded
pm_card_visa            automatic  MGA  300.01    402  none
pm_card_visa            automatic  UGX  5000      402  none
"""

# Declined, and the confirmation or the cancel that follows meets a fault.
CLOSING = """
cancel   lost-request  402  canceled
cancel   lost-answer   402  canceled
cancel   in-use        402  canceled
cancel   limited       402  canceled
cancel   executed-500  402  canceled
confirm  executed-500  402  canceled
"""

# A parked payment, and the number that a person types for it; what is done then, and the operation.
# None of it may reach Stripe as more than a look. `victim`: a payment of somebody else's.
TYPED = """
refund   victim
refund   by-hand
refund   pi_none
capture  victim
cancel   victim
"""

# After these it must have been sent again; after the others that need not be.
NOT_EXECUTED = {"lost-request", "in-use", "limited", "locked", "maybe"}

WIRE = {"JPY": 500, "KWD": 1230, "ISK": 500, "MGA": 300, "CNY": 10000, "USD": 701}
PATHS = {"refund": "/refunds", "capture": "/capture", "cancel": "/cancel"}
SECRET = "sk_test_never_in_a_log"


class StripeWorld(World):
    def __init__(self, idem):
        super().__init__(idem, {"wait_ms": 3000, "ask_give_up_s": 8}, start=False)
        self.start_sandbox()
        self.start()

    def write_config(self):
        secret = self.directory / "stripe.key"
        if not secret.exists():
            secret.touch(mode=0o600)
            secret.write_text(SECRET + "\n")
        timing = ("lease_ms", "ask_first_ms", "ask_max_ms", "ask_give_up_s", "parked_ask_s",
                  "release_s", "stop_grace_ms")
        timings = " ".join(f"{name} = {self.settings[name]};" for name in timing)
        routes = ",\n".join(
            f'  {{ endpoint = "{endpoint}"; wait_ms = {self.settings["wait_ms"]}; }}'
            for endpoint in ("payments.create", "payments.capture", "payments.cancel",
                             "refunds.create")
        )
        self.config_path().write_text(f"""
listen = "127.0.0.1:{self.port}";
store = "sqlite:{self.directory}/idem.db";
credentials = (
  {{ principal = "shop"; secret_sha256 = "{sha256_hex(harness.BEARER)}"; role = "merchant";
    providers = [ "stripe" ]; }},
  {{ principal = "ops"; secret_sha256 = "{sha256_hex(harness.OPERATOR_BEARER)}";
    role = "operator"; }}
);
providers = (
  {{ entry = "stripe"; adapter = "stripe"; base_url = "http://127.0.0.1:{self.sandbox_port}";
    credential_file = "{secret}"; account = "acct_1";
    callback_secrets = ( "file:{self.callback_secret()}" );
    request_timeout_ms = 2000; settle_ms = 300; }}
);
routes = (
{routes}
);
timings = {{ {timings} }};
""")

    def start_sandbox(self):
        self.sandbox = subprocess.Popen(
            [sys.executable, str(HERE / "simulator.py"), str(self.sandbox_port)],
            stdout=self.log,
            stderr=self.log,
        )
        self.wait_until(lambda: self.answers(self.sandbox_port, "/healthz"), "simulator answers")

    def told(self, path="/ledger"):
        connection = harness.Connection(self.sandbox_port)
        try:
            connection.send(harness.encode("GET", path, [], b""))
            return connection.receive("GET").json()
        finally:
            connection.close()

    def intents_of(self, order_no):
        return [intent for intent in self.told("/objects")["payment_intents"].values()
                if intent["metadata"].get("order_no") == order_no]


def until_end(send, patience=harness.PATIENCE_S):
    end = time.monotonic() + patience
    while True:
        reply = send()
        if reply.status == 202 and reply.json()["state"] == "parked":
            return "parked", reply
        if reply.status == 503 and reply.json()["type"] == "urn:idem:problem:not-executed":
            return "503", reply
        if reply.status not in (202, 503):
            return str(reply.status), reply
        if time.monotonic() > end:
            return str(reply.status), reply
        time.sleep(0.05)


def play_fault(world, number, row):
    operation, fault, expected, executions = row
    order_no = f"{operation}.{fault}.{number}"
    more = {"provider": "stripe"}
    if operation in ("capture", "cancel"):
        more["capture"] = "manual"
    ended, reply = until_end(
        lambda: world.pay(f"pay-{number}", order_no, method="pm_card_visa", more=more))
    if operation in PATHS:
        assert ended == "201", reply
        path = reply.header("Location") + PATHS[operation]
        ended, reply = until_end(lambda: world.post(path, f"act-{number}", {}))
    counts = world.told()[order_no]
    assert ended == expected, f"ends as {ended}, not {expected}:\n{reply}\n{counts}"
    arrived, executed = counts[operation]
    assert executed == int(executions), f"executed {executed} times: {counts}"
    assert all(times <= 1 for _, times in counts.values()), counts
    assert arrived >= 1 + (fault in NOT_EXECUTED), f"arrived {arrived} times: {counts}"
    if operation == "confirm":
        assert counts["create"] == [1, 1], f"its number was known, and yet created again: {counts}"
    if ended == "503":
        assert counts["confirm"] == [0, 0], f"a confirmation left: {counts}"
    return counts


def play_plain(world, number, row):
    card, capture, currency, amount, expected, standing = row
    order_no = f"plain.{number}"
    more = {"provider": "stripe", "capture": capture, "currency": currency, "amount": amount}
    ended, reply = until_end(lambda: world.pay(f"plain-{number}", order_no, method=card, more=more),
                             patience=2 if expected == "202" else harness.PATIENCE_S)
    intents = world.intents_of(order_no)
    assert ended == expected, f"ends as {ended}, not {expected}:\n{reply}\n{intents}"
    found = [intent["status"] for intent in intents] or ["none"]
    assert found == [standing], f"stands as {found}, not {standing}"
    if standing == "succeeded":
        assert intents[0]["amount_received"] == WIRE[currency], intents
        assert reply.json()["amount"] == amount, reply
    if card == "pm_card_chargeDeclined":
        assert reply.json()["provider_code"] == "generic_decline", reply
    return world.told().get(order_no)


def play_closing(world, number, row):
    operation, fault, expected, standing = row
    order_no = f"{operation}.{fault}.closing-{number}"
    more = {"provider": "stripe"}
    ended, reply = until_end(lambda: world.pay(f"closing-{number}", order_no,
                                               method="pm_card_chargeDeclined", more=more))
    intents = world.intents_of(order_no)
    assert ended == expected, f"ends as {ended}, not {expected}:\n{reply}\n{intents}"
    assert [intent["status"] for intent in intents] == [standing], intents
    counts = world.told()[order_no]
    assert counts["cancel"][1] == 1 and counts["confirm"][1] == 0, counts
    return counts


def play_typed(world, number, row):
    operation, typed = row
    more = {"provider": "stripe", "capture": "automatic" if operation == "refund" else "manual"}
    victim = world.pay(f"victim-{number}", f"plain.victim-{number}", method="pm_card_visa",
                       more=more)
    assert victim.status == 201, victim
    order_no = f"confirm.stored-500.typed-{number}"
    ended, reply = until_end(
        lambda: world.pay(f"typed-{number}", order_no, method="pm_card_visa", more=more))
    assert ended == "parked", reply
    reference = victim.json()["reference"] if typed == "victim" else typed
    verdict = {"verdict": "succeeded", "reason": "typed by hand", "reference": reference,
               "amount": "100.00", "currency": "CNY"}
    done = world.admin("POST", f"/operations/{reply.json()['id']}/resolve", verdict)
    assert done.status == 200, done
    paid = world.pay(f"typed-{number}", order_no, method="pm_card_visa", more=more)
    assert paid.status == 201, paid
    ended, reply = until_end(lambda: world.post(
        paid.header("Location") + PATHS[operation], f"typed-act-{number}", {}))
    counts = world.told()
    assert ended == "402", f"ends as {ended}:\n{reply}\n{counts}"
    for order in (order_no, f"plain.victim-{number}"):
        assert counts[order][operation] == [0, 0], f"{order}: {counts[order]}"
    standing = [intent["status"] for intent in world.intents_of(f"plain.victim-{number}")]
    assert standing == ["succeeded" if operation == "refund" else "requires_capture"], standing
    return counts[order_no]


def play_refunds_in_part(world):
    """Two refunds in part of one capture in part, and no more than was captured."""
    more = {"provider": "stripe", "capture": "manual"}
    paid = world.pay("part", "plain.part", method="pm_card_visa", more=more)
    assert paid.status == 201, paid
    place = paid.header("Location")
    assert world.post(place + "/capture", "part-k", {"amount": "60.00"}).status == 200
    assert world.post(place + "/refunds", "part-r1", {"amount": "20.00"}).status == 201
    assert world.post(place + "/refunds", "part-r2", {"amount": "40.00"}).status == 201
    assert world.post(place + "/refunds", "part-r3", {"amount": "0.01"}).status in (409, 422)
    objects = world.told("/objects")
    assert world.intents_of("plain.part")[0]["amount_received"] == 6000
    refunds = [refund for refund in objects["refunds"].values()
               if refund["metadata"].get("order_no") == "plain.part"]
    assert sorted(refund["amount"] for refund in refunds) == [2000, 4000], refunds
    assert all(refund["metadata"]["idem_payment"][0] == "a" for refund in refunds), refunds


def no_secret(world):
    """The key is in no log and not in the store."""
    assert SECRET not in world.log_text()
    for path in world.directory.glob("idem.db*"):
        assert SECRET.encode() not in path.read_bytes(), path


def configuration(world):
    """An entry needs a key and no address, and may not promise for Stripe."""
    text = world.config_path().read_text()
    key = 'credential_file = "' + str(world.directory / "stripe.key") + '";'
    address = f'base_url = "http://127.0.0.1:{world.sandbox_port}";'
    assert key in text and address in text, text
    for old, new, status in (
        (address, "", 0),
        (address, 'base_url = "http://api.stripe.com";', 3),
        (key, "", 3),
        (key, key + " listing = true;", 3),
        (key, key + ' partial_capture = "many";', 3),
        (key, key + " capabilities = { dedup_window_s = 86400; };", 3),
        (key, key + ' capabilities = { refund = { query = "at_once"; }; };', 3),
    ):
        path = world.directory / "other.conf"
        path.write_text(text.replace(old, new))
        done = subprocess.run([world.idem, "check-config", str(path)], capture_output=True,
                              text=True, timeout=harness.PATIENCE_S, check=False)
        assert done.returncode == status, f"{new}: {done}"


def impatience(world):
    """Nobody waits: what was lost behind the confirmation is never told as not executed."""
    for operation, fault, state in (
        ("confirm", "lost-answer", "succeeded"),
        ("confirm", "executed-500", "succeeded"),
        ("confirm", "lost-request", "succeeded"),
        ("confirm", "limited", "released"),
        ("create", "lost-answer", "released"),
    ):
        order_no = f"{operation}.{fault}.impatient"
        world.pay(order_no, order_no, [("Prefer", "wait=0")], "pm_card_visa",
                  {"provider": "stripe"})
        ended = world.wait_state(order_no, ("succeeded", "failed", "released", "parked"))
        counts = world.told()[order_no]
        assert ended["state"] == state, f"{order_no}: {ended} {counts}"
        assert counts["confirm"][1] == (state == "succeeded"), counts


def search_behind(world):
    """A search that is behind costs time and no money."""
    for fault in ("lost-request", "lost-answer", "executed-500", "in-use"):
        order_no = f"confirm.{fault}.hidden"
        ended, reply = until_end(lambda order_no=order_no: world.pay(
            order_no, order_no, method="pm_card_visa", more={"provider": "stripe"}))
        counts = world.told()[order_no]
        assert ended == "201", f"{order_no}: {reply} {counts}"
        assert counts["create"][1] == 1 and counts["confirm"][1] == 1, counts


def tell(world, kind, thing, **more):
    """Posts an event about an object, as Stripe prints and signs it. Gives the status."""
    event = {"id": f"evt_{kind}_{thing['id']}", "object": "event", "livemode": False, "type": kind,
             "created": int(time.time()), "data": {"object": thing}, **more}
    body = json.dumps(event, indent=2).encode()
    signed = int(time.time())
    digest = hmac.new(b"callback-secret", f"{signed}.".encode() + body, hashlib.sha256).hexdigest()
    return world.request("POST", "/v1/callbacks/stripe",
                         [("Stripe-Signature", f"t={signed},v1={digest},v0=00")], body,
                         bearer=None).status


def cases_of(world, operation):
    view = world.admin("GET", f"/operations/{operation}").json()
    return [case["kind"] for case in view["cases"]]


def events_settle(world):
    """A 500 that Stripe rolls forward is told by an event alone; another mode says nothing."""
    order_no = "confirm.stored-500.event"
    more = {"provider": "stripe"}
    world.pay(order_no, order_no, [("Prefer", "wait=0")], "pm_card_visa", more)
    world.wait_until(lambda: world.told().get(order_no, {}).get("confirm", [0])[0], "confirmed")
    paid = {**world.intents_of(order_no)[0], "status": "succeeded", "amount_received": 10000}
    for _ in range(2):
        assert tell(world, "payment_intent.succeeded", paid, livemode=True) == 200
        assert world.operation(order_no).json()["state"] in ("processing", "unknown"), order_no
    assert tell(world, "payment_intent.payment_failed", paid) == 200
    assert tell(world, "payment_intent.succeeded", paid) == 200
    answer = world.pay(order_no, order_no, method="pm_card_visa", more=more)
    assert (answer.status, answer.json()["captured"]) == (201, "100.00"), answer
    assert tell(world, "payment_intent.succeeded", {**paid, "status": 7}) == 400


def events_reverse(world):
    """A refund that fails later and a hold that expires lower the sums and open a case, once."""
    paid = world.pay("back", "plain.back", method="pm_card_visa", more={"provider": "stripe"})
    refund = world.post(paid.header("Location") + "/refunds", "back-r", {"amount": "40.00"})
    assert refund.status == 201, refund
    thing = [one for one in world.told("/objects")["refunds"].values()
             if one["metadata"].get("order_no") == "plain.back"][0]
    for _ in range(2):
        assert tell(world, "refund.failed", {**thing, "status": "failed"}) == 200
    view = world.get(paid.header("Location")).json()
    assert (view["captured"], view["refunded"]) == ("100.00", "0.00"), view
    operation = world.operation("back-r", endpoint="refunds.create").json()["id"]
    assert cases_of(world, operation) == ["reversed"], operation
    again = world.post(paid.header("Location") + "/refunds", "back-r", {"amount": "40.00"})
    assert again.body == refund.body, "the stored answer stays"

    held = world.pay("hold", "plain.hold", method="pm_card_visa",
                     more={"provider": "stripe", "capture": "manual"})
    assert held.status == 201, held
    expired = {**world.intents_of("plain.hold")[0], "status": "canceled", "amount_capturable": 0,
               "cancellation_reason": "automatic"}
    assert expired["latest_charge"] is not None, expired
    assert tell(world, "payment_intent.canceled", expired) == 200
    assert cases_of(world, world.operation("hold").json()["id"]) == ["reversed"], held
    late = world.post(held.header("Location") + "/capture", "hold-k", {})
    assert late.status == 409, late


CHECKS = (play_refunds_in_part, impatience, search_behind, events_settle, events_reverse, no_secret,
          configuration)


def main():
    idem, words = sys.argv[1], sys.argv[2:]
    rows = [("fault", line.split()) for line in TABLE.strip().splitlines()]
    rows += [("plain", line.split()) for line in PLAIN.strip().splitlines()]
    rows += [("closing", line.split()) for line in CLOSING.strip().splitlines()]
    rows += [("typed", line.split()) for line in TYPED.strip().splitlines()]
    rows = [row for row in rows if all(word in " ".join([row[0], *row[1]]) for word in words)]
    players = {"fault": play_fault, "plain": play_plain, "closing": play_closing,
               "typed": play_typed}
    world = StripeWorld(idem)
    failed = 0
    print(f"1..{len(rows) + len(CHECKS)}", flush=True)
    try:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            futures = [pool.submit(players[kind], world, number, row)
                       for number, (kind, row) in enumerate(rows)]
        for number, (future, (kind, row)) in enumerate(zip(futures, rows), 1):
            error = future.exception()
            ok = "ok" if error is None else "not ok"
            print(f"{ok} {number} - {kind} {' '.join(row)}", flush=True)
            if error is not None:
                failed += 1
                print("\n".join(f"# {line}" for line in str(error).splitlines()), flush=True)
                print(f"# repeat: {sys.argv[0]} {idem} {kind} {' '.join(row)}", flush=True)
        for number, check in enumerate(CHECKS, len(rows) + 1):
            try:
                check(world)
                print(f"ok {number} - {check.__doc__}", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                print(f"not ok {number} - {check.__doc__}\n# {error!r}", flush=True)
    finally:
        world.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
