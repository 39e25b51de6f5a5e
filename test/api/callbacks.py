"""
What providers say by themselves, and what a person does about it, on the real program.

Goal: an event settles what it is about once, whenever and however often it comes; it never rewrites
a final state but opens a case; one that is forged, stale, unreadable or of somebody else changes
nothing and is counted; it is answered only when it is durable; a stray charge is given back once.

Method: the sandbox tells what it does and lies as each payment's method says, and events signed
here say what no provider would. Judged by answers, rows, operators' views, the metrics page, and
the sandbox's ledger for what moved. Usage: callbacks.py IDEM
"""

import concurrent.futures
import gzip
import hashlib
import hmac
import json
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import World  # noqa: E402

OK, REFUSED, UNKNOWN = 0, 6, 7
ENTRY = "sandbox"
PATH = f"/v1/callbacks/{ENTRY}"
SECRET = "callback-secret"
# What is open stays so for as long as a test runs: an event alone changes it. LATE was done at once
# and is answered late; of SLOW the provider says at once that it does not know yet.
QUIET = {
    "ask_first_ms": 600000,
    "ask_max_ms": 600000,
    "wait_ms": 300,
    "lease_ms": 120000,
    "request_timeout_ms": 60000,
    "stop_grace_ms": 300,
}
LATE, SLOW = "tok_late_50", "tok_processing_50_ok"
OURS_UNKNOWN = "c" + "0" * 24 + "1a"  # Of our form, and nobody's.
TABLES = ("intents", "payments", "refunds", "events", "cases", "inbox")

# What the sandbox tells of the payment, how the payment ends for its caller, how often money moved,
# what cases there are, and which counter shows what became of the event. Every row has one effect.
TABLE = """
tok_ok+callback_ok              201  1  -              matched
tok_ok+callback_none            201  1  -              -
tok_ok+callback_twice           201  1  -              matched
tok_ok+callback_again           201  1  -              matched
tok_ok+callback_reordered       201  1  -              matched
tok_ok+callback_late_1          201  1  -              matched
tok_late_1+callback_ok          201  1  -              matched
tok_lose_answer+callback_ok     201  1  -              matched
tok_decline+callback_ok         402  0  -              matched
tok_processing_1_ok+callback_ok 201  1  -              matched
tok_ok+callback_unknown_outcome 201  1  -              matched
tok_ok+callback_wrong_amount    201  1  mismatch       matched
tok_ok+callback_wrong_currency  201  1  mismatch       matched
tok_ok+callback_wrong_order     201  1  mismatch       matched
tok_ok+callback_wrong_account   201  1  mismatch       matched
tok_ok+callback_wrong_id        201  1  -              unmatched
tok_ok+callback_garbage         201  1  -              unreadable
tok_ok+callback_stale           201  1  -              stale
tok_ok+callback_future          201  1  -              future
tok_ok+callback_forged          201  1  -              forged
tok_decline+callback_contradict_1 402 1 contradiction  matched
tok_ok+callback_contradict_1    201  1  contradiction  matched
tok_ok+callback_reverse_1       201  1  reversed       matched
"""


def metric(world, name):
    """A counter of events: a verdict, or one of the names behind it."""
    page = world.get("/metrics", bearer=None).body.decode()
    plain = name in ("matched", "unmatched", "later", "crowded")
    labelled = f'idem_callbacks_total{{verdict="{name}"}}'
    sample = f"idem_callbacks_{name}_total" if plain else labelled
    return int(re.search(rf"^{re.escape(sample)} (\d+)$", page, re.M).group(1))


def silent_world(idem, settings=None, **more):
    """The service listens, and the sandbox tells nothing: events are made here."""
    quiet = {"callbacks": (ENTRY,), "entries": (ENTRY,), **QUIET, **(settings or {})}
    world = World(idem, quiet, start=False, **more)
    world.callback_arguments = lambda: []
    world.start_sandbox()
    world.start()
    return world


def signature(body, secret=SECRET, age_s=0):
    signed = int(time.time()) - age_s
    digest = hmac.new(secret.encode(), f"{signed}.".encode() + body, hashlib.sha256)
    return f"t={signed},v1={digest.hexdigest()}"


def tell(world, event, headers=None, **signing):
    """Posts an event; `event` is bytes, or members; `headers` instead of a signature."""
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    if headers is None:
        headers = [("Bridge-Signature", signature(body, **signing))]
    return world.request("POST", PATH, headers, body, bearer=None)


def succeeded(effect, event="ev-1", **more):
    return {
        "event": event,
        "id": effect["id"],
        "outcome": "succeeded",
        "amount": "100.00",
        "currency": "CNY",
        "order_no": effect["order_no"],
        "reference": "p-1",
        **more,
    }


def pay_open(world, method=LATE):
    """A payment that no answer comes for. Gives the provider's effect."""
    reply = world.pay("k-1", "order-1", method=method)
    assert (reply.status, reply.json()["state"] in ("processing", "unknown")) == (202, True), reply
    return world.wait_until(lambda: world.ledger(order_no="order-1")["effects"], "it arrived")[0]


def is_paid(world, method=LATE):
    reply = world.pay("k-1", "order-1", method=method)
    return reply.status == 201 and reply.json()["captured"] == "100.00"


def content(world):
    """How many rows of each there are, and how often intents have changed."""
    counts = [world.rows(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES]
    return counts + [world.rows("SELECT coalesce(sum(version), 0) FROM intents")[0][0]]


def cases(world, query=""):
    reply = world.admin("GET", "/cases" + query)
    assert reply.status == 200, reply
    return reply.json()["cases"]


def case_of(world, order_no, kind):
    """The id of the case of the payment with that order number, once it is open."""
    effect = world.ledger(order_no=order_no)["effects"][0]

    def look():
        for entry in cases(world, f"?kind={kind}"):
            view = world.admin("GET", f"/operations/{entry['id']}").json()
            if view["effect"]["id"] == effect["id"]:
                return entry["case"]["id"]
        return None

    return world.wait_until(look, f"a case {kind} of {order_no}")


def until_final(world, key, order_no, method):
    def once():
        reply = world.pay(key, order_no, method=method)
        return reply if reply.status not in (202, 503) else None

    return world.wait_until(once, f"{method} ends")


def kinds_of(world, key):
    """The kinds of the cases of the payment under `key`, as an operator sees them."""
    identity = world.operation(key).json()["id"]
    view = world.admin("GET", f"/operations/{identity}").json()
    return sorted({one["kind"] for one in view["cases"]})


def told(world, order_no, method):
    """True once the sandbox has told all that it has to tell of that payment."""
    effect = world.ledger(order_no=order_no)["effects"][0]
    if "_none" in method:
        return True
    if any(word in method for word in ("garbage", "stale", "future", "forged")):
        return effect["callbacks"] >= 1
    twice = any(word in method for word in ("twice", "again", "reordered", "contradict", "reverse"))
    return effect["callbacks_taken"] >= (2 if twice else 1)


def play(world, number, row):
    method, status, executions, kind, _ = row
    key, order_no = f"k-{number}", f"order-{number}"
    first = until_final(world, key, order_no, method)
    world.wait_until(lambda: told(world, order_no, method), f"{method} was told")
    expected = [] if kind == "-" else [kind]
    world.wait_until(lambda: kinds_of(world, key) == expected, f"{method} has its cases")
    again = world.pay(key, order_no, method=method)
    effects = world.ledger(order_no=order_no)["effects"]
    assert (first.status, again.body) == (int(status), first.body), (method, first, again)
    assert len(effects) == 1 and effects[0]["executions"] == int(executions), (method, effects)


def table(idem):
    """Whatever the provider tells, true or not: one end, stored answers stay, cases where due"""
    world = World(idem, {"callbacks": (ENTRY,), "entries": (ENTRY,), "wait_ms": 3000})
    rows = [line.split() for line in TABLE.strip().splitlines()]
    try:
        with concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
            futures = {pool.submit(play, world, n, row): row for n, row in enumerate(rows)}
            failed = [
                f"{futures[future][0]}: {future.exception()!r}"
                for future in concurrent.futures.as_completed(futures)
                if future.exception()
            ]
        assert not failed, "\n".join(failed)
        for name in ("unreadable", "stale", "future", "forged", "unmatched"):
            assert metric(world, name) >= 1, name
        once = ("unreadable", "stale", "future", "forged")
        assert [metric(world, name) for name in once] == [1] * len(once)
        assert metric(world, "later") == metric(world, "crowded") == 0
        # The money that went back is not there any more, and the answer that said it came stays.
        number = next(n for n, row in enumerate(rows) if "reverse" in row[0])
        taken = world.get(f"/v1/payments?order_no=order-{number}").json()
        assert taken["captured"] == "0.00", taken
    finally:
        world.close()


def settles(idem):
    """An event settles what no answer came for; the same one again touches its inbox row alone"""
    world = silent_world(idem)
    try:
        effect = pay_open(world)
        reply = tell(world, succeeded(effect))
        assert (reply.status, reply.json()) == (200, {"received": True}), reply
        assert is_paid(world)
        before = content(world)
        seen = world.rows("SELECT * FROM inbox")
        assert len(seen) == 1, seen
        for _ in range(3):
            assert tell(world, succeeded(effect)).status == 200
        assert content(world) == before
        assert (metric(world, "ok"), metric(world, "matched")) == (4, 4)
        # What is told under another name says nothing new either.
        assert tell(world, succeeded(effect, "ev-2")).status == 200
        after = content(world)
        assert after[TABLES.index("inbox")] == 2 and after[TABLES.index("cases")] == 0, after
        assert world.ledger(order_no="order-1")["executions"] == 1
        assert cases(world, "?state=all") == []
    finally:
        world.close()


def refused(idem):
    """Forged, stale, of the future, unreadable, of nobody: nothing changes, and it is counted"""
    world = silent_world(idem)
    try:
        effect = pay_open(world)
        event = succeeded(effect)
        body = json.dumps(event).encode()
        other = json.dumps({**event, "amount": "1.00"}).encode()
        good = signature(body)
        before = content(world)
        wrong = [
            ("forged", lambda: tell(world, event, secret="another-secret")),
            ("forged", lambda: tell(world, event, headers=[])),
            ("forged", lambda: tell(world, other, headers=[("Bridge-Signature", good)])),
            ("forged", lambda: tell(world, body, headers=[("Bridge-Signature", good)] * 2)),
            ("forged", lambda: tell(world, body, headers=[("Bridge-Signature", good[:-1])])),
            ("forged", lambda: tell(world, body, headers=[("Bridge-Signature", "v1=")])),
            ("stale", lambda: tell(world, event, age_s=302)),
            ("future", lambda: tell(world, event, age_s=-302)),
            ("unreadable", lambda: tell(world, b"this is no JSON")),
            ("unreadable", lambda: tell(world, b"[]")),
            ("unreadable", lambda: tell(world, {**event, "event": None})),
            ("unreadable", lambda: tell(world, {**event, "event": "e" * 129})),
            ("unreadable", lambda: tell(world, {**event, "amount": 100})),
            ("unreadable", lambda: tell(world, {**event, "amount": "100.000"})),
            ("unreadable", lambda: tell(world, {**event, "currency": None})),
            ("unreadable", lambda: tell(world, {**event, "order_no": "o" * 65})),
        ]
        counted = {}
        for name, post in wrong:
            reply = post()
            counted[name] = counted.get(name, 0) + 1
            assert (reply.status, reply.json()) == (400, {"received": False}), (name, reply)
            assert metric(world, name) == counted[name], (name, counted)
        large = tell(world, {**event, "more": "x" * 66000})
        assert large.status == 413, large
        assert world.request("GET", PATH, bearer=None).status == 405
        assert content(world) == before
        # Of nobody: taken, since saying it again would not help, and nothing is changed.
        assert tell(world, {**event, "id": "their-own-order-7"}).status == 200
        assert metric(world, "ignored") == 1
        assert tell(world, {**event, "id": OURS_UNKNOWN, "event": "ev-9"}).status == 200
        assert metric(world, "unmatched") == 1
        after = content(world)
        inbox = TABLES.index("inbox")
        assert after[:inbox] + after[inbox + 1 :] == before[:inbox] + before[inbox + 1 :]
        elsewhere = world.request(
            "POST", "/v1/callbacks/nowhere", [("Bridge-Signature", good)], body, bearer=None
        )
        assert elsewhere.status == 404 and metric(world, "no-entry") == 1, elsewhere
        assert metric(world, "matched") == 0
        assert tell(world, event, age_s=290).status == 200  # Old, and not too old.
        assert metric(world, "matched") == 1
        assert is_paid(world)
    finally:
        world.close()


def odd_posts(body):
    """
    What somebody posts who has read the documentation and has no secret, or the provider's own
    without knowing how: name, request as bytes, status, and what has counted it.
    """
    good, at = signature(body), f"t={int(time.time())}"
    junk = at + (",v1=" + "0" * 64)

    def post(field, data=body, more=(), path=PATH, method="POST"):
        headers = [("Bridge-Signature", field)] if field else []
        return harness.encode(method, path, [*headers, *more], data)

    def signed(data):
        return post(signature(data), data)

    many = json.dumps(dict.fromkeys(range(3000))).encode()
    bare = f"POST {PATH} HTTP/1.1\r\nHost: x\r\n".encode()
    chunks = b"1000\r\n" + b"z" * 4096 + b"\r\n"
    proxy = [("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=127.0.0.1;proto=https")]
    operator = [("Authorization", f"Bearer {harness.OPERATOR_BEARER}")]
    return (
        ("from this machine, it says", post(None, more=proxy), 400, "forged"),
        ("from an operator", post(None, more=operator), 400, "forged"),
        ("another type", post(junk, more=[("Content-Type", "text/html")]), 400, "forged"),
        ("a hundred signatures", post(junk + (",v1=" + "0" * 64) * 99), 400, "forged"),
        ("nothing but commas", post("," * 4000), 400, "forged"),
        ("another scheme", post(good.replace("v1", "v0")), 400, "forged"),
        ("two times", post(good + ",t=1"), 400, "forged"),
        ("no time", post(good.split(",")[1]), 400, "forged"),
        ("no number", post(good.replace("t=", "t=+")), 400, "forged"),
        ("too large a number", post(good.replace("t=", "t=9" + "0" * 19)), 400, "forged"),
        ("signed with nothing", post(signature(body, secret="")), 400, "forged"),
        ("another provider's field", post(None, more=[("Stripe-Signature", good)]), 400, "forged"),
        ("too old by a second", post(signature(body, age_s=301)), 400, "stale"),
        ("no body", post(None, b""), 400, "forged"),
        ("no body, signed", signed(b""), 400, "unreadable"),
        ("deep", signed(b"[" * 5000), 400, "unreadable"),
        ("deeper", signed(b'{"a":' * 2000 + b"1" + b"}" * 2000), 400, "unreadable"),
        ("many members", signed(many), 400, "unreadable"),
        ("one name twice", signed(b'{"event":"a",' + body[1:]), 400, "unreadable"),
        ("more behind it", signed(body + body), 400, "unreadable"),
        ("compressed", signed(gzip.compress(body)), 400, "unreadable"),
        ("no UTF-8", signed(body.replace(b"p-1", b"\xff")), 400, "unreadable"),
        ("half a character", signed(body.replace(b"p-1", b"\\ud800")), 400, "unreadable"),
        ("nobody's name", post(good, path="/v1/callbacks/nowhere"), 404, "no-entry"),
        ("another's name", post(good, path="/v1/callbacks/sandbox-blind"), 404, "no-entry"),
        ("another case", post(good, path="/v1/callbacks/SANDBOX"), 404, "no-entry"),
        ("a zero in it", post(good, path=PATH + "%00"), 404, "no-entry"),
        ("no name", post(good, path="/v1/callbacks/"), 404, "not-found"),
        ("a way around", post(good, path="/v1/callbacks/x/../sandbox"), 404, "not-found"),
        ("too long a name", post(good, path="/v1/callbacks/" + "a" * 5000), 404, "not-found"),
        *((way, post(good, method=way), 405, "method-not-allowed") for way in ("PUT", "DELETE")),
        ("too much", post(good, b"x" * 66000), 413, "body-too-large"),
        ("far too much", bare + b"Content-Length: 9999999999\r\n\r\nx", 413, "body-too-large"),
        (
            "too much in pieces",
            bare + b"Transfer-Encoding: chunked\r\n\r\n" + chunks * 40 + b"0\r\n\r\n",
            413,
            "body-too-large",
        ),
        ("less than nothing", bare + b"Content-Length: -1\r\n\r\n", 400, "bad-request"),
        (
            "two lengths",
            bare + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            "bad-request",
        ),
        ("too much of a head", post(good, more=[("X", "a" * 20000)]), 431, "head-too-large"),
    )


def odd(idem):
    """Whoever has only read the documentation changes nothing, is told so, and is counted"""
    world = silent_world(idem, {"entries": (ENTRY, "sandbox-blind")})
    try:
        effect = pay_open(world)
        body = json.dumps(succeeded(effect)).encode()
        before = content(world)

        def counts():
            page = world.get("/metrics", bearer=None).body.decode()
            pattern = r'^idem_\w+_total{(?:verdict|code|reason)="([\w-]+)"} (\d+)$'
            return {name: int(value) for name, value in re.findall(pattern, page, re.M)}

        for name, data, status, counted in odd_posts(body):
            known = counts()
            connection = harness.Connection(world.port)
            connection.send(data)
            reply = connection.receive()
            connection.close()
            assert reply.status == status, (name, reply)
            assert reply.json() == {"received": False} or reply.json()["status"] == status, reply
            changed = {word: value - known[word] for word, value in counts().items()}
            assert changed[counted] == 1, (name, changed)
            assert sum(changed[word] for word in ("ok", "ignored")) == 0, (name, changed)
            assert content(world) == before, name
        assert world.ledger(order_no="order-1")["executions"] == 1
        # The right signature counts among seven others, whatever else the head says.
        at, right = signature(body).split(",")
        others = (",v1=" + "0" * 64) * 7
        html = ("Content-Type", "text/html")
        crowd = f"{at}{others},v1={'1' * 64},{right}"
        crowded = tell(world, body, headers=[("Bridge-Signature", crowd)])
        assert crowded.status == 400 and content(world) == before, crowded
        taken = tell(world, body, headers=[("Bridge-Signature", f"{at}{others},{right}"), html])
        assert taken.status == 200 and is_paid(world), taken
    finally:
        world.close()


def rotation(idem):
    """While a secret is changed the old and the new one count; then the new one alone"""
    world = silent_world(idem)
    try:
        new = world.directory / "callback-new.secret"
        new.touch(mode=0o600)
        new.write_text("the-new-secret\n")
        effect = pay_open(world)
        assert tell(world, succeeded(effect, "ev-0"), secret="the-new-secret").status == 400

        def reload(secrets):
            count = world.log_text().count('"reloaded"')
            world.callback_secrets = lambda entry: ", ".join(f'"file:{path}"' for path in secrets)
            world.write_config()
            world.service.send_signal(signal.SIGHUP)
            world.wait_until(lambda: world.log_text().count('"reloaded"') > count, "reloaded")

        reload([new, world.callback_secret()])
        assert tell(world, succeeded(effect, "ev-1"), secret="the-new-secret").status == 200
        assert tell(world, succeeded(effect, "ev-2")).status == 200
        reload([new])
        assert tell(world, succeeded(effect, "ev-3")).status == 400
        assert tell(world, succeeded(effect, "ev-3"), secret="the-new-secret").status == 200
        assert (metric(world, "forged"), metric(world, "matched")) == (2, 3)
        assert world.ledger(order_no="order-1")["executions"] == 1
    finally:
        world.close()


def closed(idem):
    """What succeeds after it was closed here is a case; the answer stays, the sums as well"""
    entry = "sandbox-closing"
    world = World(idem, {"callbacks": (entry,), "entries": (entry,), "wait_ms": 5000}, start=False)
    world.callback_arguments = lambda: []
    try:
        world.start_sandbox()
        world.start()
        more = {"provider": entry}
        first = world.pay("k-1", "order-1", method="tok_lose_request", more=more)
        assert first.status == 402, first
        identity = world.operation("k-1").json()["id"]
        effect = world.admin("GET", f"/operations/{identity}").json()["effect"]
        body = json.dumps(succeeded({"id": effect["id"], "order_no": "order-1"})).encode()
        told_there = world.request(
            "POST",
            f"/v1/callbacks/{entry}",
            [("Bridge-Signature", signature(body))],
            body,
            bearer=None,
        )
        assert told_there.status == 200, told_there
        listed = cases(world)
        assert [entry["case"]["kind"] for entry in listed] == ["contradiction"], listed
        again = world.pay("k-1", "order-1", method="tok_lose_request", more=more)
        assert (again.status, again.body) == (402, first.body), again
        paid = world.get(first.json()["payment"]).json()
        assert (paid["state"], paid["captured"]) == ("failed", "0.00"), paid
        # The order number is free: another try is another payment, and has no part in it.
        assert world.pay("k-2", "order-1", more=more).status == 201
        assert world.ledger(order_no="order-1")["executions"] == 1
    finally:
        world.close()


def restored(idem):
    """An old copy takes no event: it is said again, and taken when the copy knows what it missed"""
    world = silent_world(idem, {"listing": ()})
    try:
        assert world.stop() == 0
        world.store.copy_take()
        world.start()
        effect = pay_open(world, SLOW)
        world.kill()
        world.store.copy_put_back()
        world.start(arguments=["--restored"])
        before = content(world)
        for _ in range(2):
            reply = tell(world, succeeded(effect))
            assert reply.status == 503 and reply.header("Retry-After") is not None, reply
        assert (metric(world, "later"), metric(world, "unmatched")) == (2, 0)
        assert content(world) == before
        ended = world.command("status", "--end-restored", "--reason", "compared by hand")
        assert ended.returncode == OK, ended
        assert tell(world, succeeded(effect)).status == 200
    finally:
        world.close()


def answer_or_death(world, ask):
    """What is answered; None: the service died instead."""
    try:
        return ask()
    except (harness.Gone, OSError):
        world.service.wait(harness.PATIENCE_S)
        return None


def crash(idem):
    """A kill between commit and reply: the event comes again, and is one row and one success"""
    world = silent_world(idem)
    try:
        effect = pay_open(world, SLOW)
        world.kill()
        for commits in range(1, 20):
            # Others commit at a start as well: sooner or later it is the event's.
            world.start(crash_point=f"commit-after:{commits}")
            reply = answer_or_death(world, lambda: tell(world, succeeded(effect)))
            world.kill()
            if world.rows("SELECT count(*) FROM inbox") == [(1,)]:
                break
        assert reply is None, "no crash between commit and reply"
        before = content(world)
        world.start()
        assert tell(world, succeeded(effect)).status == 200
        assert content(world) == before
        assert metric(world, "matched") == 1
        assert is_paid(world, SLOW)
    finally:
        world.close()


def compensates(idem):
    """A stray charge is given back once, by command and by API, whoever asks and however often"""
    world = World(idem, {"callbacks": (ENTRY,), "entries": (ENTRY,)})
    try:
        first = world.pay("k-1", "order-1", method="tok_decline+callback_contradict_1")
        assert first.status == 402, first
        case = case_of(world, "order-1", "contradiction")
        assert world.ledger(order_no="order-1")["executions"] == 1  # The money is gone.
        listed = world.command("cases", "--kind", "contradiction")
        assert listed.returncode == OK and case in listed.stdout, listed
        shown = world.command("cases", "show", case)
        assert shown.returncode == OK and case in shown.stdout, shown

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            words = ("cases", "compensate", case, "--reason", "charged after it was declined")
            runs = list(pool.map(lambda _: world.command(*words), range(4)))
        for run in runs:
            assert run.returncode == OK and "succeeded" in run.stdout, run
        restart = world.admin("POST", f"/cases/{case}/compensate", {"reason": "once more"})
        assert restart.status == 200 and restart.json()["state"] == "succeeded", restart

        effects = world.ledger(order_no="order-1")["effects"]
        assert (effects[0]["captured"], effects[0]["refunded"]) == ("100.00", "100.00"), effects
        refunds = [one for one in world.ledger()["effects"] if one["kind"] == "refund"]
        assert [one["executions"] for one in refunds] == [1], refunds
        paid = world.get(f"/v1/payments/{case}").json()
        assert (paid["refunded"], paid["order_no"]) == ("100.00", f"case-{case}"), paid
        decided = cases(world, "?state=all")
        assert [entry["case"]["decided_by"] for entry in decided] == ["ops"], decided
        assert "charged after it was declined" in decided[0]["case"]["decision"]
        assert world.command("cases").stdout == ""
        # The first answer is as it was, and the order can be paid.
        again = world.pay("k-1", "order-1", method="tok_decline+callback_contradict_1")
        assert (again.status, again.body) == (402, first.body), again
        assert world.pay("k-2", "order-1").status == 201
    finally:
        world.close()


def not_compensated(idem):
    """What is no stray charge is not given back, and is decided by a person"""
    world = World(idem, {"callbacks": (ENTRY,), "entries": (ENTRY,)})
    try:
        assert world.pay("k-1", "order-1", method="tok_ok+callback_wrong_amount").status == 201
        case = case_of(world, "order-1", "mismatch")
        run = world.command("cases", "compensate", case, "--reason", "no")
        assert run.returncode == REFUSED and "the books do not have" in run.stderr, run
        unknown = "01977e3c-5e0a-7cc3-98c4-dc0c0c07398f"
        nobody = world.command("cases", "compensate", unknown, "--reason", "no")
        assert nobody.returncode == REFUSED, nobody
        merchant = world.request(
            "POST", f"/v1/admin/cases/{case}/compensate", body={"reason": "mine"}
        )
        assert merchant.status == 403, merchant
        words = ("--verdict", "noted", "--reason", "their event was wrong")
        run = world.command("cases", "resolve", case, *words)
        assert run.returncode == OK and "their event was wrong" in run.stdout, run
        assert cases(world) == []
        effects = world.ledger()["effects"]
        assert [one["kind"] for one in effects] == ["charge"], effects
    finally:
        world.close()


def refund_refused(idem):
    """A compensation that the provider refuses is told as refused, and stays one refund"""
    world = World(idem, {"callbacks": (ENTRY,), "entries": (ENTRY,)})
    method = "tok_decline+callback_contradict_1+refund_decline"
    try:
        assert world.pay("k-1", "order-1", method=method).status == 402
        case = case_of(world, "order-1", "contradiction")
        for _ in range(2):
            run = world.command("cases", "compensate", case, "--reason", "stray")
            assert run.returncode == REFUSED and "refused" in run.stderr, run
        refunds = [one for one in world.ledger()["effects"] if one["kind"] == "refund"]
        assert [(one["arrivals"], one["executions"]) for one in refunds] == [(1, 0)], refunds
    finally:
        world.close()


def compensation_crash(idem):
    """A kill after each commit of a compensation: asking again goes on, and gives it back once"""
    world = World(idem, {"callbacks": (ENTRY,), "entries": (ENTRY,), "lease_ms": 3200})
    method = "tok_decline+callback_contradict_1"
    crashes = 0
    try:
        assert world.pay("k-1", "order-1", method=method).status == 402
        case = case_of(world, "order-1", "contradiction")
        ask = (f"/cases/{case}/compensate", {"reason": "stray"})
        assert world.stop() == 0
        for commits in range(1, 20):
            world.start(crash_point=f"commit-after:{commits}")
            reply = answer_or_death(world, lambda: world.admin("POST", *ask))
            if reply is not None and reply.status == 200:
                break
            crashes += 1 if reply is None else 0
            world.kill()
        assert reply is not None and reply.json()["state"] == "succeeded", reply
        assert crashes >= 2, crashes
        refunds = [one for one in world.ledger()["effects"] if one["kind"] == "refund"]
        assert [one["executions"] for one in refunds] == [1], refunds
        assert world.get(f"/v1/payments/{case}").json()["refunded"] == "100.00"
        assert world.rows("SELECT count(*) FROM payments") == [(2,)]
    finally:
        world.close()


if __name__ == "__main__":
    harness.run_at_once(
        [
            *(table, compensates, settles, refused, odd, rotation, closed, restored, crash),
            *(not_compensated, refund_refused, compensation_crash),
        ],
        sys.argv[1],
        sys.argv[2:],
        4,
    )
