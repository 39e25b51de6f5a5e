"""
What an operator does from the command line, against the real service.

Goal: `idem credential|list|show|resolve|erase|status|webhook|outbox` say what is true, do what they
say, refuse with a sentence and an exit status of its own, and show a secret to nobody but whoever
made it; a reload changes who may call and how much, and nothing when it is refused.

Method: the program itself as a client of the program itself; the judge is the sandbox's ledger and
what merchants are told afterwards. Usage: operators.py IDEM
"""

import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
import store as stores  # noqa: E402
from harness import BEARER, World  # noqa: E402

USAGE, OTHER, REFUSED, UNKNOWN = 2, 1, 6, 7
MONEY = ("--amount", "100.00", "--currency", "CNY")


def done(result, status=0):
    assert result.returncode == status, (result.returncode, result.stdout, result.stderr)
    return result.stdout if status == 0 else result.stderr


def park(world, key, order_no):
    """A payment that the provider has with another amount: parked. Gives its id."""
    reply = world.pay(key, order_no, method="tok_wrong_amount")
    assert reply.status == 202, reply
    world.wait_state(key, ("parked",))
    return reply.json()["id"]


def credentials(idem):
    """A credential is made, shown once, used, rotated without losing a key, and revoked"""
    world = World(idem)
    try:
        made = [
            json.loads(
                done(
                    world.command(
                        *("credential", "add", "--principal", "till", "--provider", "sandbox"),
                        *("--label", label, "--json"),
                    )
                )
            )
            for label in ("old till", "new till")
        ]
        old, new = (one["bearer"] for one in made)
        assert old != new
        first = world.pay("k-1", "order-1", bearer=old)
        assert first.status == 201, first
        again = world.pay("k-1", "order-1", bearer=new)
        assert (again.body, again.header("Idempotent-Replayed")) == (first.body, "true"), again
        assert world.get("/v1/payments?order_no=order-1").status == 404, "another principal's"

        listed = done(world.command("credential", "list"))
        assert made[0]["id"] in listed and "old till" in listed, listed
        assert "revoked" in done(world.command("credential", "revoke", made[0]["id"]))
        assert world.pay("k-1", "order-1", bearer=old).status == 401
        assert world.pay("k-1", "order-1", bearer=new).body == first.body
        done(world.command("credential", "revoke", made[0]["id"]))  # Again: nothing new.

        assert world.stop() == 0
        for bearer in (old, new):
            assert not world.store.holds(bearer), "a bearer in the store"
            assert bearer not in world.log_text(), "a bearer in the log"
        world.start()
        world.wait_until(lambda: world.pay("k-1", "order-1", bearer=new).status == 201, "known")
        assert world.pay("k-1", "order-1", bearer=old).status == 401
        operator = json.loads(
            done(
                world.command(
                    *("credential", "add", "--principal", "night", "--role", "operator", "--json")
                )
            )
        )
        done(world.command("list", bearer=operator["bearer"]))
    finally:
        world.close()


def looks(idem):
    """list, show and status say what is unknown, since when, why and what comes next"""
    world = World(idem, {"wait_ms": 300})
    try:
        done(world.command("list"))
        parked = park(world, "k-1", "order-1")
        slow = world.pay("k-2", "order-2", [("Prefer", "respond-async")], method="tok_late_2")
        assert slow.status == 202
        listed = done(world.command("list"))
        assert parked in listed and "shop" in listed and "100.00 CNY" in listed, listed
        assert slow.json()["id"] in listed, listed
        assert parked in done(world.command("list", "--state", "parked"))
        assert parked not in done(world.command("list", "--state", "unknown"))
        cases = done(world.command("list", "--state", "cases", "--json"))
        entry = json.loads(cases.splitlines()[0])["operations"][0]
        assert (entry["id"], entry["case"]["kind"]) == (parked, "mismatch"), entry
        shown = done(world.command("show", parked))
        for word in ("parked", "tok_", "payments.create", "mismatch", "timeline", "attempts"):
            assert (word in shown) == (word != "tok_"), (word, shown)
        assert "k-1" not in shown.split(), "no merchant's key"
        paid = world.pay("k-3", "order-3").json()
        assert world.post(f"/v1/payments/{paid['id']}/refunds", "r-1", {}).status == 201
        of_payment = done(world.command("show", "--payment", paid["id"]))
        assert of_payment.count("succeeded") == 2, of_payment
        status = done(world.command("status"))
        assert "parked" in status and "cases_open" in status, status
        summary = json.loads(done(world.command("status", "--json")).splitlines()[0])
        assert summary["operations"]["parked"] == 1 and summary["cases_open"] == 1, summary
        assert summary["unknown_since"] is not None
    finally:
        world.close()


def resolves(idem):
    """A person's verdict ends what is parked, with a reason, once, and the caller hears of it"""
    # So long a lease that nothing is over before the early verdict, however slow the machine.
    world = World(idem, {"wait_ms": 300, "lease_ms": 60000})
    try:
        parked = park(world, "k-1", "order-1")
        done(world.command("resolve", parked), USAGE)
        wrong = world.command(
            *("resolve", parked, "--verdict", "succeeded", "--reason", "seen"),
            *("--amount", "7.00", "--currency", "CNY"),
        )
        assert "amount" in done(wrong, REFUSED)
        early = world.command("resolve", parked, "--verdict", "failed", "--reason", "not there")
        assert "may still arrive" in done(early, REFUSED), early
        verdict = ("--verdict", "succeeded", "--reason", "statement of 29 November", *MONEY)
        shown = done(world.command("resolve", parked, *verdict, "--reference", "pr-17"))
        for word in ("succeeded", "statement of 29 November", "ops"):
            assert word in shown, (word, shown)
        assert done(world.command("resolve", parked, *verdict, "--reference", "pr-17"))
        told = world.pay("k-1", "order-1", method="tok_wrong_amount")
        assert told.status == 201, told
        assert done(world.command("list")).strip() == ""
        assert (
            done(world.command("resolve", parked, "--verdict", "failed", "--reason", "no"), REFUSED)
            != ""
        )
        assert world.ledger(order_no="order-1")["executions"] == 1
    finally:
        world.close()


def resolves_failed(idem):
    """\"It did not happen\" is taken when nothing can arrive any more; the order number is free"""
    world = World(idem, {"entries": ("sandbox-plain",), "lease_ms": 3200, "wait_ms": 500})
    try:
        reply = world.pay(
            "k-1", "order-1", method="tok_lose_request", more={"provider": "sandbox-plain"}
        )
        assert reply.status == 202, reply
        world.wait_state("k-1", ("parked",))
        operation = reply.json()["id"]

        def failed():
            return world.command(
                *("resolve", operation, "--verdict", "failed", "--reason", "not on the statement")
            )

        world.wait_until(lambda: failed().returncode == 0, "nothing can arrive any more")
        told = world.pay(
            "k-1", "order-1", method="tok_lose_request", more={"provider": "sandbox-plain"}
        )
        assert (told.status, told.json()["effect"], told.json()["retry"]) == (
            409,
            "none",
            "new-key",
        ), told
        again = world.pay("k-2", "order-1", more={"provider": "sandbox-plain"})
        assert again.status == 201, again
    finally:
        world.close()


def refusals(idem):
    """Whoever may not, cannot; what cannot be understood is said so and asks nobody"""
    world = World(idem)
    try:
        assert "does not allow" in done(world.command("list", bearer=BEARER), REFUSED)
        assert done(world.command("list", bearer="nobody"), REFUSED)
        assert done(world.command("show", "../credentials"), USAGE)
        assert done(world.command("show"), USAGE)
        assert done(world.command("list", "--state", "lost"), USAGE)
        assert done(world.command("credential"), USAGE)
        assert done(world.command("credential", "add"), USAGE)
        assert done(world.command("show", "01977e3c-5e0a-7cc3-98c4-dc0c0c07398f"), REFUSED)
        unheard = world.command("list", "--url", "http://127.0.0.1:9")
        assert "Nothing was sent" in done(unheard, OTHER)
        for command in (
            *("list", "show", "resolve", "erase", "status", "credential"),
            *("cases", "webhook", "outbox"),
        ):
            assert "usage:" in done(world.command(command, "--help"))
    finally:
        world.close()


def reloads(idem):
    """HUP changes who may call and how much, without a restart; a refused file changes nothing"""
    world = World(idem)
    try:
        assert world.pay("k-1", "order-1").status == 201
        pid = world.service.pid
        path = world.config_path()
        before = path.read_text()
        path.write_text(before.replace(harness.sha256_hex(BEARER), harness.sha256_hex("new")))
        world.service.send_signal(signal.SIGHUP)
        world.wait_until(lambda: world.pay("k-1", "order-1").status == 401, "the old one is out")
        assert world.pay("k-1", "order-1", bearer="new").status == 201
        path.write_text(before.replace("limits = { ", "limits = { principal_rate = 1; "))
        world.service.send_signal(signal.SIGHUP)
        world.wait_until(lambda: world.pay("k-1", "order-1").status in (201, 429), "it is back")
        world.wait_until(lambda: world.pay("k-1", "order-1").status == 429, "one a second")
        limited = world.pay("k-1", "order-1")
        assert limited.status == 429 and limited.header("Retry-After") is not None, limited
        other = "http://127.0.0.1:9/dedup"
        elsewhere = before.replace(f"http://127.0.0.1:{world.sandbox_port}/dedup", other)
        assert other in elsewhere
        path.write_text(elsewhere)
        world.service.send_signal(signal.SIGHUP)
        world.wait_until(lambda: "needs a restart" in world.log_text(), "no bearer goes elsewhere")
        path.write_text("this is no configuration")
        world.service.send_signal(signal.SIGHUP)
        world.wait_until(lambda: world.log_text().count("reload-refused") == 2, "it is said")
        path.write_text(before)
        world.service.send_signal(signal.SIGHUP)
        world.wait_until(lambda: world.log_text().count('"reloaded"') == 3, "and works again")
        assert world.pay("k-1", "order-1").status == 201
        assert world.service.pid == pid and world.alive()
    finally:
        world.close()


class Receiver:
    """A merchant's own server: keeps what it is told, and answers `status`."""

    def __init__(self):
        self.status = 204
        self.told = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.told.append((self.headers["webhook-id"], json.loads(body)["type"]))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/idem"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def webhooks(idem):
    """A merchant is told: added, tested, rotated, given up after a 410, enabled and told again"""
    world = World(idem, more="webhooks = { allow_private = true; allow_http = true; };")
    receiver = Receiver()
    hook = "01977e3c-5e0a-7cc3-98c4-dc0c0c07398f"
    try:
        add = ("webhook", "add", "--principal", "shop", "--to", receiver.url, "--id", hook)
        added = done(world.command(*add))
        secret = re.search(r"whsec_\S+", added).group()
        assert done(world.command(*add)) == added, "the same again is the same"
        other = ("--principal", "rival", "--to", receiver.url, "--id", hook)
        assert "another webhook" in done(world.command("webhook", "add", *other), REFUSED)
        done(world.command("webhook", "test", hook))
        world.wait_until(lambda: receiver.told, "the test message arrives")
        assert receiver.told[0][1] == "webhook.test", receiver.told
        rotate = ("webhook", "rotate", hook, "--generation", "1")
        rotated = done(world.command(*rotate))
        assert secret not in rotated and "whsec_" in rotated
        assert done(world.command(*rotate)) == rotated, "the same again is the same"
        listed = done(world.command("webhook", "list", "--principal", "shop"))
        assert hook in listed and receiver.url in listed and "whsec_" not in listed, listed

        receiver.status = 410
        receiver.told.clear()
        assert world.pay("k-1", "order-1").status == 201
        dead = ("outbox", "--state", "dead", "--webhook", hook)
        world.wait_until(lambda: "410" in done(world.command(*dead)), "it is given up")
        assert "410 Gone" in done(world.command("webhook", "list"))
        replay = ("outbox", "replay", "--dead", "--webhook", hook)
        assert "Enable it" in done(world.command(*replay), REFUSED)
        message = receiver.told[0][0]
        receiver.status = 200
        done(world.command("webhook", "enable", hook))
        assert "pending" in done(world.command(*replay))
        sent = ("outbox", "list", "--state", "delivered", "--webhook", hook, "--json")

        def delivered():
            page = json.loads(done(world.command(*sent)).splitlines()[0])
            return {"msg_" + one["message"] for one in page["deliveries"]}

        world.wait_until(lambda: message in delivered(), "it is delivered")
        assert done(world.command(*dead)) == "" and done(world.command(*replay)) == ""
        count = len(receiver.told)
        one = ("outbox", "replay", "--message", message, "--webhook", hook)
        assert "pending" in done(world.command(*one))
        world.wait_until(lambda: len(receiver.told) > count, "once more")
        assert receiver.told[-1][0] == message, "under the same id"
        done(world.command("webhook", "disable", hook))
        assert "Enable it" in done(world.command("webhook", "test", hook), REFUSED)
        assert world.stop() == 0
        for text in (secret, re.search(r"whsec_\S+", rotated).group()):
            assert text not in world.log_text(), "a secret in the log"
            assert not world.store.holds(text.removeprefix("whsec_")), "a secret in the store"
    finally:
        receiver.close()
        world.close()


def doubts(idem):
    """A command whose answer got lost is told as not known, whatever later tries were told"""
    world = World(idem, start=False)
    tries = []

    class Service(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            tries.append(self.path)
            if len(tries) > 1:
                body = b'{"type":"urn:idem:problem:unavailable","title":"No","status":503}'
                self.send_response(503)
                self.send_header("Content-Type", "application/problem+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", world.port), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        operation = "01977e3c-5e0a-7cc3-98c4-dc0c0c07398f"
        result = world.command("resolve", operation, "--verdict", "noted", "--reason", "x")
        assert "not known" in done(result, UNKNOWN), result
        assert len(tries) > 1, tries
        clear = world.command("list", "--url", "http://192.0.2.1:8080")
        assert "in clear" in done(clear, USAGE), clear
    finally:
        server.shutdown()
        server.server_close()
        world.close()


def traced(idem):
    """A traceparent reaches provider, timeline and log; the log has no key and no bearer"""
    world = World(idem, {"wait_ms": 300}, more='log = "operations";')
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    try:
        told = [("traceparent", trace)]
        parked = world.pay("secret-key-1", "order-1", told, method="tok_wrong_amount")
        assert parked.status == 202, parked
        paid = world.pay("secret-key-2", "order-2", told)
        assert paid.status == 201, paid
        unknown = world.pay("secret-key-3", "order-3", method="tok_lose_answer")
        assert unknown.status in (201, 202), unknown
        world.wait_state("secret-key-3", ("succeeded",))
        effects = {effect["order_no"]: effect for effect in world.ledger()["effects"]}
        assert effects["order-1"]["trace"] == trace, effects
        assert "trace" not in effects["order-3"], effects
        view = world.operation("secret-key-1").json()
        assert trace in str(view["timeline"]), view
        world.wait_until(lambda: "operation-known" in world.log_text(), "it is said")
        lines = [
            json.loads(line) for line in world.log_text().splitlines() if line.startswith('{"time')
        ]
        case = [line for line in lines if line["event"] == "case-opened"]
        assert len(case) == 1 and case[0]["operation"] == view["id"], case
        assert (case[0]["traceparent"], case[0]["case"]) == (trace, "mismatch"), case
        events = [line["event"] for line in lines]
        for event in ("operation-ended", "operation-unknown", "operation-known"):
            assert event in events, (event, events)
        noted = world.command("resolve", view["id"], "--verdict", "noted", "--reason", "quiet")
        done(noted, REFUSED)
        acts = [json.loads(line) for line in world.log_text().splitlines() if '"operator"' in line]
        assert (acts[-1]["by"], acts[-1]["verb"]) == ("ops", "resolve-noted"), acts
        assert (acts[-1]["object"], acts[-1]["outcome"]) == (view["id"], "state-conflict"), acts
        assert "quiet" not in world.log_text()
        for word in ("secret-key", BEARER, harness.OPERATOR_BEARER, "provider-secret"):
            assert word not in world.log_text(), word
        broken = world.pay("k-4", "order-4", [("traceparent", "00-zz")])
        assert broken.status == 201, broken
    finally:
        world.close()


def unwritten(idem):
    """What cannot be printed is said, with what is done all the same, and is no success"""
    world = World(idem)
    try:
        copy = world.directory / "copy"
        commands = {
            ("version",): "all else is done",
            ("help",): "all else is done",
            ("send", "--help"): "all else is done",
            ("serve", "--help"): "all else is done",
            ("check-config", "--defaults"): "nothing was changed",
            ("check-config", str(world.config_path())): "all else is done",
            ("list", "--help"): "nothing was changed",
            ("status",): "nothing was changed",
            ("credential", "list"): "nothing was changed",
            ("credential", "add", "--principal", "shop"): "had taken by then is done",
        }
        if stores.NAME == "sqlite":
            store = world.store.address()
            commands["backup", "--store", store, "--to", str(copy)] = "passed the check"
            commands["migrate", "--store", f"sqlite:{copy}"] = "is one of this version"
        environment = dict(os.environ, IDEM_TEST_PROVIDER_CREDENTIAL="provider-secret")
        environment["IDEM_URL"] = f"http://127.0.0.1:{world.port}"
        environment["IDEM_CREDENTIAL"] = harness.OPERATOR_BEARER
        for words, expected in commands.items():
            with open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run(
                    [idem, *words], env=environment, stdout=full, stderr=subprocess.PIPE,
                    text=True, timeout=60, check=False,
                )
            assert result.returncode == OTHER, (words, result)
            assert result.stderr.count("the output could not be written") == 1, (words, result)
            assert expected in result.stderr, (words, result)
        assert stores.NAME != "sqlite" or copy.exists()
    finally:
        world.close()


if __name__ == "__main__":
    harness.run_at_once(
        [
            *(credentials, looks, resolves, resolves_failed, refusals, reloads, webhooks, doubts),
            *(traced, unwritten),
        ],
        sys.argv[1],
        sys.argv[2:],
        4,
    )
