"""
The operators' API and what shows the inside, on the real program.

Goal: docs/admin.md and docs/metrics.md hold over HTTP with the real store and a real provider:
parked money is seen, explained and resolved; credentials come, rotate and go, and survive a
restart; limits refuse and say when; readiness says why not; the metrics page is what Prometheus
can read.

Method: a world of its own for each test; the judge is the sandbox's ledger. The metrics page goes
through a strict reader of the text format 0.0.4, since promtool is not at hand. Usage: admin.py
IDEM
"""

import hashlib
import pathlib
import re
import signal
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import OPERATOR_BEARER, World  # noqa: E402


def world_test(sentence, settings=None, more=""):
    """Makes a test of a function of a world."""

    def wrap(function):
        def test(idem):
            world = World(idem, settings, more)
            try:
                world.wait_until(lambda: world.answers(world.port, "/readyz"), "ready")
                function(world)
            except BaseException:
                sys.stdout.write(world.log_text()[-2000:])
                raise
            finally:
                world.close()

        test.__name__ = function.__name__
        test.__doc__ = sentence
        TESTS.append(test)
        return test

    return wrap


TESTS = []


def ask(world, method, path, body=b"", status=200, bearer=OPERATOR_BEARER):
    headers = [("Content-Type", "application/json")] if body else []
    reply = world.request(method, "/v1/admin" + path, headers, body, bearer)
    assert reply.status == status, reply
    return reply.json()


def problem(answer):
    return answer["type"].rsplit(":", 1)[1]


def park(world, key="k1", order_no="A-1"):
    """A payment that the provider has with another amount. Gives its operation's id."""
    reply = world.pay(key, order_no, [("Prefer", "wait=1")], method="tok_wrong_amount")
    assert (reply.status, reply.json()["state"]) == (202, "parked"), reply
    return reply.json()["id"]


@world_test("What is parked is listed with its reason, shown whole, and resolved by a person")
def parked(world):
    operation = park(world)
    for query in ("", "?state=parked", "?state=cases"):
        listed = ask(world, "GET", "/operations" + query)
        assert [entry["id"] for entry in listed["operations"]] == [operation], listed
        assert listed["next"] is None
        entry = listed["operations"][0]
        assert entry["principal"] == "shop" and entry["state"] == "parked"
        assert entry["next"]["step"] == "wait for a person" and entry["next"]["at"]
        assert entry["case"]["kind"] == "mismatch", entry
        assert (entry["amount"], entry["currency"]) == ("100.00", "CNY")
        assert entry["why"].endswith(".")
    assert ask(world, "GET", "/operations?state=unknown")["operations"] == []

    view = ask(world, "GET", f"/operations/{operation}")
    assert view["effect"]["account"] == "acct-sandbox" and view["effect"]["region"] == "eu"
    assert re.fullmatch(r"c[0-9a-z]{26}", view["effect"]["id"])
    assert view["cases"][0]["kind"] == "mismatch" and view["cases"][0]["decided"] is None
    assert "k1" not in str(view)
    payment = view["payment"].rsplit("/", 1)[1]
    of_payment = ask(world, "GET", f"/payments/{payment}/operations")
    assert [entry["id"] for entry in of_payment["operations"]] == [operation]

    path = f"/operations/{operation}/resolve"
    verdict = {"verdict": "succeeded", "reason": "seen in the portal", "reference": "T-1"}
    wrong = ask(world, "POST", path, {**verdict, "amount": "1.00", "currency": "CNY"}, 422)
    assert problem(wrong) == "amount-invalid"
    right = {**verdict, "amount": "100.00", "currency": "CNY"}
    view = ask(world, "POST", path, right)
    assert view["state"] == "succeeded" and view["effect"]["reference"] == "T-1"
    assert view["cases"][0]["decided_by"] == "ops" and view["cases"][0]["decided"]
    assert "seen in the portal" in view["cases"][0]["decision"]
    assert any(event["kind"] == "resolved" for event in view["timeline"])
    assert ask(world, "POST", path, right)["timeline_total"] == view["timeline_total"]
    assert problem(ask(world, "POST", path, {"verdict": "failed", "reason": "x"}, 409)) == (
        "state-conflict"
    )
    assert world.pay("k1", "A-1", method="tok_wrong_amount").status == 201
    assert ask(world, "GET", "/operations?state=cases")["operations"] == []
    assert world.ledger(order_no="A-1")["arrivals"] == 1


@world_test(
    "It did not happen: too early to say while it may arrive, then final for its caller",
    {"lease_ms": 3100, "request_timeout_ms": 500, "settle_ms": 300},
)
def not_happened(world):
    operation = park(world)
    path = f"/operations/{operation}/resolve"
    body = {"verdict": "failed", "reason": "the provider says it was a mistake"}
    reply = world.request(
        "POST", "/v1/admin" + path, [("Content-Type", "application/json")], body, OPERATOR_BEARER
    )
    assert reply.status == 409 and problem(reply.json()) == "too-early", reply
    assert 1 <= int(reply.header("Retry-After")) <= 10
    world.wait_until(
        lambda: world.request(
            "POST",
            "/v1/admin" + path,
            [("Content-Type", "application/json")],
            body,
            OPERATOR_BEARER,
        ).status
        == 200,
        "it is late enough",
    )
    reply = world.pay("k1", "A-1", method="tok_wrong_amount")
    assert reply.status == 409 and problem(reply.json()) == "not-happened", reply
    assert world.pay("k2", "A-1").status == 201


def restart(world):
    world.stop()
    world.start()
    world.wait_until(lambda: world.answers(world.port, "/readyz"), "ready")


def credential(token, **members):
    return {
        "principal": "shop",
        "role": "merchant",
        "secret_sha256": hashlib.sha256(token.encode()).hexdigest(),
        "providers": ["sandbox"],
        "label": "till",
        **members,
    }


@world_test("Credentials come, rotate without losing a key, go, and stand in the store")
def credentials(world):
    first, second = uuid.uuid4(), uuid.uuid4()
    made = ask(world, "PUT", f"/credentials/{first}", credential("one"), 201)
    assert made["id"] == str(first) and made["created_by"] == "ops"
    again = ask(world, "PUT", f"/credentials/{first}", credential("one"))
    assert again == made
    assert world.pay("k1", "A-1", bearer="one").status == 201
    ask(world, "PUT", f"/credentials/{second}", credential("two"), 201)
    ask(world, "DELETE", f"/credentials/{first}")
    assert world.pay("k1", "A-1", bearer="one").status == 401
    replay = world.pay("k1", "A-1", bearer="two")
    assert replay.status == 201 and replay.header("Idempotent-Replayed") == "true"

    restart(world)
    assert world.pay("k1", "A-1", bearer="one").status == 401
    assert world.pay("k1", "A-1", bearer="two").status == 201
    listed = ask(world, "GET", "/credentials")["credentials"]
    stored = {entry["id"]: entry for entry in listed if entry["source"] == "store"}
    assert stored[str(first)]["revoked_by"] == "ops" and stored[str(second)]["revoked"] is None
    assert any(entry["principal"] == "rival" and entry["id"] is None for entry in listed)
    refused = ask(world, "PUT", f"/credentials/{first}", credential("one"), 409)
    assert problem(refused) == "credential-conflict"
    text = world.request("GET", "/v1/admin/credentials", bearer=OPERATOR_BEARER).body.decode()
    assert hashlib.sha256(b"two").hexdigest() not in text and "two" not in text
    assert b"secret" not in text.encode()
    assert world.ledger(order_no="A-1")["arrivals"] == 1


@world_test("More credentials than a page holds, and than a start reads at once, all count")
def many_credentials(world):
    ids = [uuid.uuid4() for _ in range(40)]
    for number, identity in enumerate(ids):
        ask(world, "PUT", f"/credentials/{identity}", credential(f"t-{number}"), 201)
    restart(world)
    for number in range(len(ids)):
        assert world.get("/v1/payments?order_no=x", bearer=f"t-{number}").status == 404
    seen, cursor = [], ""
    while cursor is not None:
        page = ask(world, "GET", "/credentials" + (f"?cursor={cursor}" if cursor else ""))
        seen += [entry["id"] for entry in page["credentials"] if entry["source"] == "store"]
        cursor = page["next"]
    assert seen == [str(identity) for identity in ids]


@world_test(
    "A principal takes so much and no more, and is told when to come again",
    {"limits": "principal_rate = 1; principal_burst = 2;"},
)
def rate(world):
    replies = [world.get("/v1/payments?order_no=x") for _ in range(6)]
    statuses = [reply.status for reply in replies]
    assert statuses[:2] == [404, 404] and 429 in statuses, statuses
    refused = replies[statuses.index(429)]
    assert problem(refused.json()) == "rate-limited" and refused.header("Retry-After") == "1"
    assert world.get("/v1/payments?order_no=x", bearer=harness.OTHER_BEARER).status == 404
    for _ in range(6):
        ask(world, "GET", "/summary")


@world_test("The summary counts, and what is unknown too long stands in the metrics")
def summary(world):
    park(world)
    counted = ask(world, "GET", "/summary")
    assert counted["operations"]["parked"] == 1 and counted["cases_open"] == 1, counted
    assert counted["unknown_since"] and counted["store_bytes"] > 0
    assert counted["restored"] is False

    def scraped():
        metrics = read_metrics(page_of(world))
        return value(metrics, "idem_cases_open") == 1

    world.wait_until(scraped, "the summary reaches the metrics")
    assert ask(world, "GET", "/restored")["restored"] is False


# ---- the metrics page ----

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL},?)*)\}})? (\S+)")


def base_of(name, kind):
    """The family that a sample belongs to."""
    if kind == "histogram":
        return re.sub(r"_(bucket|sum|count)$", "", name)
    return name


def read_metrics(text):
    """A strict reader: {(name, ((label, value), ...)): number}, or an AssertionError."""
    assert text.endswith("\n"), "the last line has no end"
    samples, helped, kinds, family, ended = {}, set(), {}, None, set()
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            assert re.fullmatch(NAME, name) and words and name not in helped, line
            helped.add(name)
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name in helped and name not in kinds, line
            assert kind in ("counter", "gauge", "histogram"), line
            assert kind != "counter" or name.endswith("_total"), line
            kinds[name] = kind
            ended.add(family)
            family = name
            continue
        found = SAMPLE.fullmatch(line)
        assert found, f"not a sample: {line!r}"
        name, labels, number = found.group(1), found.group(2) or "", found.group(5)
        assert base_of(name, kinds[family]) == family, f"{line!r} under {family}"
        assert family not in ended, f"{family} stands in two places"
        key = (name, tuple(sorted(re.findall(LABEL, labels))))
        assert key not in samples, f"twice: {line!r}"
        samples[key] = float(number)
    check_histograms(samples, [name for name, kind in kinds.items() if kind == "histogram"])
    return samples


def check_histograms(samples, names):
    for name in names:
        series = {}
        for (sample, labels), number in samples.items():
            if sample == name + "_bucket":
                others = tuple(pair for pair in labels if pair[0] != "le")
                series.setdefault(others, []).append((float(dict(labels)["le"]), number))
        assert series, name
        for labels, buckets in series.items():
            counts = [number for _, number in buckets]
            assert [bound for bound, _ in buckets] == sorted(bound for bound, _ in buckets)
            assert counts == sorted(counts), (name, buckets)
            assert buckets[-1][0] == float("inf")
            assert samples[(name + "_count", labels)] == counts[-1]
            assert (name + "_sum", labels) in samples


def value(samples, name, **labels):
    return samples[(name, tuple(sorted(labels.items())))]


def page_of(world):
    reply = world.get("/metrics", bearer=None)
    assert reply.status == 200, reply
    assert reply.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    return reply.body.decode()


@world_test("The metrics page is read by a strict reader, moves with events and names nobody")
def metrics(world):
    before = read_metrics(page_of(world))
    assert world.pay("key-one", "A-1").status == 201
    assert world.pay("key-one", "A-1").status == 201
    assert world.pay("key-one", "A-2").status == 422
    assert world.pay("key-two", "A-2", method="tok_declined").status == 402
    text = page_of(world)
    after = read_metrics(text)
    assert set(before) <= set(after)

    def moved(name, **labels):
        return value(after, name, **labels) - value(before, name, **labels)

    assert moved("idem_claims_total") == 2
    assert moved("idem_replays_total") == 1
    assert moved("idem_problems_total", code="key-reused") == 1
    assert moved("idem_intents_ended_total", state="succeeded") == 1
    assert moved("idem_intents_ended_total", state="failed") == 1
    assert moved("idem_commands_total", answer="durable") >= 4
    sent = {"entry": "sandbox", "call": "send"}
    assert moved("idem_provider_outcomes_total", outcome="success", **sent) == 1
    assert moved("idem_provider_seconds_count", **sent) == 2
    assert moved("idem_http_requests_total") == 5
    assert value(after, "idem_ready") == 1
    assert value(after, "idem_store_bytes") > 0
    assert value(after, "idem_connections") >= 1
    for word in ("shop", "rival", "key-one", "A-1", "secret"):
        assert word not in text, word


@world_test("Every metric that a rule of examples/alerts.yml asks for is on the page")
def alerts(world):
    rules = pathlib.Path(__file__).resolve().parents[2] / "examples" / "alerts.yml"
    asked = set(re.findall(r"\bidem_[a-z_]+", rules.read_text()))
    assert len(asked) >= 6
    world.wait_until(lambda: "idem_cases_open" in page_of(world), "the summary is known")
    there = {name for name, _ in read_metrics(page_of(world))}
    assert asked <= there, asked - there


@world_test("A HUP changes the first operator's hash, and takes it away")
def first_operator(world):
    before = world.config_path().read_text()

    def reload(bearer):
        line = f'bootstrap_credential_sha256 = "{harness.sha256_hex(bearer)}";\n' if bearer else ""
        world.config_path().write_text(line + before)
        count = world.log_text().count('"reloaded"')
        world.service.send_signal(signal.SIGHUP)
        world.wait_until(lambda: world.log_text().count('"reloaded"') > count, "it is reloaded")

    ask(world, "GET", "/summary", status=401, bearer="first")
    reload("first")
    ask(world, "GET", "/summary", bearer="first")
    reload("second")
    ask(world, "GET", "/summary", status=401, bearer="first")
    ask(world, "GET", "/summary", bearer="second")
    reload(None)
    ask(world, "GET", "/summary", status=401, bearer="second")
    ask(world, "GET", "/summary")


@world_test("Under a lower limit than the store was filled with, revoking lets the others in again")
def crowded(world):
    ids = [str(uuid.uuid4()) for _ in range(20)]  # More than a page.
    for number, identity in enumerate(ids):
        body = {
            "principal": "night",
            "role": "operator",
            "secret_sha256": harness.sha256_hex(f"night-{number}"),
        }
        ask(world, "PUT", f"/credentials/{identity}", body, 201)
    assert world.stop() == 0
    world.settings["limits"] += " credentials = 18;"
    world.start()
    world.wait_until(lambda: world.answers(world.port, "/readyz"), "ready, crowded or not")
    assert value(read_metrics(page_of(world)), "idem_credentials_crowded") == 1
    ask(world, "GET", "/summary", bearer="night-17")
    ask(world, "GET", "/summary", status=503, bearer="night-19")
    ask(world, "GET", "/summary", status=503, bearer="nobody")
    ask(world, "DELETE", f"/credentials/{ids[0]}")
    ask(world, "DELETE", f"/credentials/{ids[18]}")
    world.wait_until(
        lambda: value(read_metrics(page_of(world)), "idem_credentials_crowded") == 0, "room for all"
    )
    ask(world, "GET", "/summary", bearer="night-19")
    for bearer in ("nobody", "night-0", "night-18"):
        ask(world, "GET", "/summary", status=401, bearer=bearer)


@world_test("Merchants find no operators' route open, and operators make no payments")
def doors(world):
    assert world.get("/readyz", bearer=None).json() == {"status": "ok"}
    reply = world.get("/v1/admin/operations")
    assert reply.status == 403 and problem(reply.json()) == "forbidden"
    assert world.get("/v1/admin/operations", bearer=None).status == 401
    assert world.pay("k", "A", bearer=OPERATOR_BEARER).status == 403
    assert ask(world, "GET", f"/operations/{uuid.uuid4()}", status=404)
    assert problem(ask(world, "GET", "/operations?state=x", status=400)) == "query-invalid"


@world_test("A traceparent stands in the timeline, and a wrong one changes nothing")
def traces(world):
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert world.pay("k1", "A-1", [("traceparent", trace)]).status == 201
    timeline = world.operation("k1").json()["timeline"]
    assert [event["detail"] for event in timeline if event["kind"] == "traced"] == [trace]
    assert world.pay("k1", "A-1", [("traceparent", trace.upper())]).status == 201
    assert world.ledger(order_no="A-1")["arrivals"] == 1


if __name__ == "__main__":
    harness.run_at_once(TESTS, sys.argv[1], sys.argv[2:], 4)
