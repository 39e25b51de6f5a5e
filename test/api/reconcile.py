"""
Reconciliation, against the real service and the real sandbox.

Goal: `idem reconcile` finds every kind of difference between what the service has and what the
provider says, from a statement and from the provider's listing; what is safe is settled on the one
path, the rest becomes cases; a second run does nothing; a dry run changes nothing.

Method: payments through the service, some of which the sandbox spoils, and a statement that is
written here and lies in every way there is. Judged by what is printed, by the operations and cases
of the service, and by the sandbox's ledger: nothing is ever executed by a reconciliation. Usage:
reconcile.py IDEM
"""

import csv
import http.server
import io
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import World  # noqa: E402

OK, LEFT, USAGE, REFUSED = 0, 1, 2, 6
# Records and clocks are apart by less; so nothing in it is at the edge of the period.
# What is answered late is done at the provider and open here for as long as a test runs.
SLOW = {"wait_ms": 300, "request_timeout_ms": 60000, "lease_ms": 120000, "stop_grace_ms": 500}
LATE = "tok_late_50"
PERIOD = ("--from", "2020-01-01", "--to", "2100-01-01")


def run(world, *arguments, status=OK, entry="sandbox", period=PERIOD, grace="0"):
    result = world.command(
        "reconcile", "--provider", entry, *period, "--grace", grace, "--format", "json", *arguments
    )
    assert result.returncode == status, (result.returncode, result.stdout, result.stderr)
    records = [json.loads(line) for line in result.stdout.splitlines()]
    differences = [record for record in records if record["record"] == "difference"]
    totals = [record for record in records if record["record"] == "total"]
    return differences, totals


def count(totals, kind, side="there"):
    return sum(total[side]["count"] for total in totals if total["kind"] == kind)


def effects(world):
    """What the provider has, by order number and kind."""
    return {(one["order_no"], one["kind"]): one for one in world.ledger()["effects"]}


def statement(world, name, rows):
    """A file of the rows: dictionaries, of which the first one names the columns."""
    path = world.directory / name
    with open(path, "w", newline="", encoding="ascii") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def row(effect, **changes):
    made = {
        "effect_id": effect["id"],
        "amount": effect["amount"],
        "currency": effect["currency"],
        "order_no": effect["order_no"],
        "reference": effect.get("reference", ""),
        "state": "",
    }
    made.update(changes)
    return made


def operation(world, key):
    return world.operation(key).json()


def cases(world, key):
    identity = operation(world, key)["id"]
    shown = world.admin("GET", f"/operations/{identity}").json()
    return [one["kind"] for one in shown["cases"] if one["decided"] is None]


def executions(world):
    return {one["id"]: (one["arrivals"], one["executions"]) for one in world.ledger()["effects"]}


def every_kind(idem):
    """A statement that lies in every way: each is found, settled or made a case, and once"""
    world = World(idem, SLOW)
    try:
        for number in range(1, 9):
            assert world.pay(f"k-{number}", f"o-{number}").status == 201
        assert world.pay("k-declined", "o-declined", method="tok_decline").status == 402
        assert world.pay("k-refused", "o-refused", method="tok_decline").status == 402
        assert world.pay("k-late", "o-late", method=LATE).status == 202
        assert world.pay("k-open", "o-open", method=LATE).status == 202
        there = effects(world)

        def of(order, **changes):
            return row(there[(order, "charge")], **changes)

        unknown_id = "c" + there[("o-1", "charge")]["id"][1:-2] + "aa"
        path = statement(
            world,
            "lies.csv",
            [
                of("o-1"),
                of("o-2", amount="99.00"),
                of("o-3", currency="EUR"),
                of("o-4", order_no="o-other"),
                of("o-5"),
                of("o-5"),
                of("o-6", state="reversed"),
                of("o-7", state="failed"),
                # o-8 is missing there.
                of("o-late"),
                of("o-declined", amount="100.00"),
                of("o-refused", state="failed"),
                of("o-1", effect_id=unknown_id, order_no="o-nobody"),
                of("o-1", effect_id="ch_others", order_no="", reference="x"),
            ],
        )
        before = executions(world)
        expected = {
            "o-2": "amount-differs",
            "o-3": "amount-differs",
            "o-4": "order-differs",
            "o-5": "duplicate",
            "o-6": "state-differs",
            "o-7": "state-differs",
            "o-8": "missing-there",
            "o-late": "state-differs",
            "o-declined": "state-differs",
            "o-nobody": "missing-here",
        }

        dry, dry_totals = run(world, "--file", path, "--dry-run", status=LEFT)
        assert {one["order_no"]: one["kind"] for one in dry} == expected, dry
        assert {one["result"] for one in dry} == {"dry-run"}, dry
        assert operation(world, "k-late")["state"] == "processing"
        assert all(cases(world, f"k-{number}") == [] for number in range(1, 9))
        assert world.admin("GET", "/summary").json()["stubs"] == 0

        told, totals = run(world, "--file", path, status=LEFT)
        assert {one["order_no"]: one["kind"] for one in told} == expected, told
        results = {one["order_no"]: (one["result"], one["case"]) for one in told}
        assert results == {
            "o-2": ("case", "mismatch"),
            "o-3": ("case", "mismatch"),
            "o-4": ("case", "mismatch"),
            "o-5": ("case", "duplicate"),
            "o-6": ("case", "reversed"),
            "o-7": ("case", "contradiction"),
            "o-8": ("case", "missing"),
            "o-late": ("settled", None),
            "o-declined": ("case", "contradiction"),
            "o-nobody": ("stub", None),
        }, results
        for kind, here, found in (
            ("matched", 2, 2),
            ("foreign", 0, 1),
            ("open", 1, 0),
            ("nothing-moved", 1, 1),
            ("missing-there", 1, 0),
            ("missing-here", 0, 1),
        ):
            assert count(totals, kind, "here") == here, (kind, totals)
            assert count(totals, kind) == found, (kind, totals)
        matched = [total for total in totals if total["kind"] == "matched"]
        assert [total["there"]["sum"] for total in matched] == ["200.00"], matched
        assert [(total["kind"], total["here"], total["there"]) for total in dry_totals] == [
            (total["kind"], total["here"], total["there"]) for total in totals
        ], "nothing but what the service said is different"

        # What is safe was settled, and its caller hears of it; the rest is in front of a person.
        assert operation(world, "k-late")["state"] == "succeeded"
        assert world.pay("k-late", "o-late", method=LATE).status == 201
        assert operation(world, "k-open")["state"] == "processing"
        assert cases(world, "k-1") == [] and cases(world, "k-refused") == []
        taken_back = world.get("/v1/payments?order_no=o-6").json()
        assert taken_back["state"] != "captured", taken_back
        replay = world.pay("k-6", "o-6")
        assert replay.status == 201, "what was answered stays answered"

        summary = world.admin("GET", "/summary").json()
        again, again_totals = run(world, "--file", path, status=LEFT)
        assert "o-late" not in {one["order_no"] for one in again}, again
        assert {one["order_no"]: (one["result"], one["case"]) for one in again} == {
            order: result for order, result in results.items() if order != "o-late"
        }, again
        assert count(again_totals, "matched") == 3, again_totals
        after = world.admin("GET", "/summary").json()
        assert (after["cases_open"], after["stubs"]) == (summary["cases_open"], summary["stubs"])
        assert executions(world) == before, "a reconciliation executes nothing"

        # What a person has decided is found again, and nothing is left to do about it.
        for key in ("k-2", "k-8"):
            verdict = ("--verdict", "noted", "--reason", "seen")
            noted = world.command("resolve", operation(world, key)["id"], *verdict)
            assert noted.returncode == OK, noted
        decided, _ = run(world, "--file", path, status=LEFT)
        results = {one["order_no"]: one["result"] for one in decided}
        assert (results["o-2"], results["o-8"], results["o-3"]) == ("decided", "decided", "case")
        assert cases(world, "k-2") == [] and cases(world, "k-8") == []
    finally:
        world.close()


def listing(idem):
    """The provider's own listing, over pages: agreement, a late answer settled, an amount told"""
    world = World(idem, SLOW)
    try:
        for number in range(40):
            assert world.pay(f"k-{number}", f"o-{number}").status == 201
        paid = world.get("/v1/payments?order_no=o-0").json()
        refund = world.post(f"/v1/payments/{paid['id']}/refunds", "r-1", {"amount": "1.00"})
        assert refund.status == 201, refund
        assert world.pay("k-late", "o-late", method=LATE).status == 202
        assert world.pay("k-wrong", "o-wrong", method="tok_wrong_amount").status == 202
        before = executions(world)
        told, totals = run(world, status=LEFT)
        assert {one["order_no"]: (one["kind"], one["result"]) for one in told} == {
            "o-late": ("state-differs", "settled"),
            "o-wrong": ("amount-differs", "case"),
        }, told
        assert count(totals, "matched") == 41, totals
        sums = {
            total["effect"]: (total["here"]["sum"], total["there"]["sum"])
            for total in totals
            if total["kind"] == "matched"
        }
        assert sums == {"charge": ("4000.00", "4000.00"), "refund": ("1.00", "1.00")}, sums
        assert operation(world, "k-late")["state"] == "succeeded"
        told, totals = run(world, status=LEFT)
        assert [one["order_no"] for one in told] == ["o-wrong"], told
        assert count(totals, "matched") == 42, totals
        assert executions(world) == before
        # What is inside the grace period is nobody's difference yet.
        differences, totals = run(world, grace="1d", status=OK)
        assert differences == [], differences
        assert count(totals, "too-young", "here") == 1, totals
    finally:
        world.close()


def printed(idem):
    """Table and CSV say the same as JSON, and agreement is exit status 0"""
    world = World(idem)
    try:
        assert world.pay("k-1", "o-1").status == 201
        common = ("reconcile", "--provider", "sandbox", *PERIOD, "--grace", "0")
        table = world.command(*common)
        assert table.returncode == OK, table
        assert "matched" in table.stdout and "100.00" in table.stdout, table.stdout
        result = world.command(*common, "--format", "csv")
        assert result.returncode == OK, result
        records = list(csv.DictReader(io.StringIO(result.stdout)))
        assert [(one["record"], one["kind"], one["effect"], one["sum_here"], one["sum_there"])
                for one in records] == [("total", "matched", "charge", "100.00", "100.00")], records
        assert world.command(*common, "--json").stdout.startswith('{"record":"total"')
    finally:
        world.close()


def refused(idem):
    """What cannot be understood compares nothing and says what is wrong and where"""
    world = World(idem)
    try:
        broken = world.directory / "broken.csv"
        broken.write_text("effect_id,amount,currency\nc1,1.00,EUR\nc2,1,EUR\n")
        wrong = world.command("reconcile", "--provider", "sandbox", *PERIOD, "--file", str(broken))
        assert wrong.returncode == USAGE and "line 3" in wrong.stderr, wrong
        assert wrong.stdout == "", wrong
        absent = world.command("reconcile", "--provider", "sandbox", *PERIOD, "--file", "/nowhere")
        assert absent.returncode == USAGE and "/nowhere" in absent.stderr, absent
        for arguments in (
            (),
            ("--provider", "sandbox"),
            ("--provider", "sandbox", "--from", "2026-11-29", "--to", "2026-11-29"),
            ("--provider", "sandbox", "--from", "yesterday", "--to", "2026-11-29"),
            ("--provider", "sandbox", *PERIOD, "--grace", "5"),
            ("--provider", "sandbox", *PERIOD, "--format", "xml"),
            ("--provider", "sandbox", *PERIOD, "word"),
        ):
            result = world.command("reconcile", *arguments)
            assert result.returncode == USAGE and result.stdout == "", (arguments, result)
        nobody = world.command("reconcile", "--provider", "nobody", *PERIOD)
        assert nobody.returncode == REFUSED and "provider" in nobody.stderr, nobody
        blind = world.command("reconcile", "--provider", "sandbox-blind", *PERIOD)
        assert blind.returncode == REFUSED and "statement" in blind.stderr, blind
        merchant = world.command(
            "reconcile", "--provider", "sandbox", *PERIOD, bearer=harness.BEARER
        )
        assert merchant.returncode == REFUSED, merchant
        assert "usage:" in world.command("reconcile", "--help").stdout
    finally:
        world.close()


class Scripted(http.server.ThreadingHTTPServer):
    """
    A service by script: `pages` gives the page of a provider's listing for each cursor (None: the
    first), `records` are its own. Keeps what it was asked.
    """

    def __init__(self, pages, records):
        super().__init__(("127.0.0.1", 0), ScriptedAnswer)
        self.pages, self.records = pages, records
        self.asked = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)

    def reconcile(self, idem, *arguments):
        environment = dict(os.environ, IDEM_CREDENTIAL="operator")
        environment["IDEM_URL"] = f"http://127.0.0.1:{self.server_address[1]}"
        words = ("reconcile", "--provider", "p", *PERIOD, "--grace", "0", "--json", *arguments)
        return subprocess.run(
            [idem, *words], env=environment, capture_output=True, text=True, timeout=60, check=False
        )


class ScriptedAnswer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # pylint: disable=invalid-name
        url = urllib.parse.urlparse(self.path)
        cursor = urllib.parse.parse_qs(url.query).get("cursor", [None])[0]
        self.server.asked.append((url.path, cursor))
        page = {"effects": self.server.records, "account": "", "region": "", "next": None}
        if url.path.endswith("/listings"):
            page = self.server.pages(cursor)
        body = json.dumps(page).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def record(kind, number):
    """An effect that succeeded here in the middle of the period."""
    at = "2026-06-01T12:00:00.000000Z"
    return {
        "id": f"01977e3c-5e0a-7cc3-98c4-dc0c0c0739{number:02}", "kind": kind, "state": "succeeded",
        "effect_id": {"charge": "c", "capture": "k"}[kind] + f"{number:026}", "amount": "1.00",
        "currency": "EUR", "account": "", "region": "", "order_no": f"o-{number}",
        "reference": None, "created": at, "finished": at,
    }


def endless(idem):
    """A listing that goes round is told as incomplete after a few pages, and nothing is compared"""
    for before, circle in ((1, 1), (1, 2), (2, 3), (5, 1), (4, 7)):

        def page(cursor, before=before, circle=circle):
            number = 1 if cursor is None else int(cursor) + 1
            if number >= before + circle:
                number = before
            return {"effects": [], "complete": True, "next": str(number)}

        with Scripted(page, [record("charge", 1)]) as service:
            result = service.reconcile(idem)
            assert result.returncode == LEFT and result.stdout == "", result
            assert "is not complete. Nothing was compared." in result.stderr, result
            assert len(service.asked) <= 3 * (before + circle), (before, circle, service.asked)
            assert {path for path, _ in service.asked} == {"/v1/admin/listings"}, service.asked


def incomplete(idem):
    """What an incomplete listing need not have is not missing there, also if it is empty"""
    records = [record("charge", 1), record("capture", 2)]
    for complete, kinds in ((False, ["missing-there"]), (True, ["missing-there"] * 2)):
        empty = {"effects": [], "complete": complete, "next": None}
        with Scripted(lambda _, empty=empty: empty, records) as service:
            result = service.reconcile(idem, "--dry-run")
            assert result.returncode == LEFT, result
            found = [json.loads(line) for line in result.stdout.splitlines()]
            differences = [one for one in found if one["record"] == "difference"]
            assert [one["kind"] for one in differences] == kinds, result
            totals = {one["effect"]: one["kind"] for one in found if one["record"] == "total"}
            expected = "missing-there" if complete else "outside"
            assert totals == {"charge": "missing-there", "capture": expected}, result


def routes(idem):
    """The three routes refuse what they do not know, and evidence is taken whole or not at all"""
    world = World(idem)
    try:
        assert world.pay("k-1", "o-1").status == 201
        effect = effects(world)[("o-1", "charge")]
        period = "from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z"
        page = world.admin("GET", f"/effects?provider=sandbox&{period}").json()
        assert [one["effect_id"] for one in page["effects"]] == [effect["id"]], page
        one = page["effects"][0]
        assert (one["state"], one["amount"], one["currency"], one["order_no"], one["kind"]) == (
            "succeeded", "100.00", "CNY", "o-1", "charge",
        ), one
        assert (page["next"], one["account"], page["account"]) == (
            None, "acct-sandbox", "acct-sandbox",
        ), page
        past = "from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z"
        assert world.admin("GET", f"/effects?provider=sandbox&{past}").json()["effects"] == []
        listed = world.admin("GET", f"/listings?provider=sandbox&{period}").json()
        assert [one["effect_id"] for one in listed["effects"]] == [effect["id"]], listed
        assert (listed["complete"], listed["next"]) == (True, None), listed
        for query in (
            "", "provider=sandbox", f"{period}", f"provider=sandbox&{period}&x=1",
            f"provider=sandbox&{period}&cursor=x", "provider=sandbox&from=1&to=2",
        ):
            reply = world.admin("GET", f"/effects?{query}")
            assert reply.status in (400, 404), (query, reply)
        good = {"found": "missing", "id": effect["id"]}
        for body in (
            {},
            {"provider": "sandbox"},
            {"provider": "sandbox", "effects": []},
            {"provider": "sandbox", "effects": [good] * 65},
            {"provider": "sandbox", "effects": [good], "x": 1},
            {"provider": "sandbox", "effects": [good, {**good, "x": "1"}]},
            {"provider": "sandbox", "effects": [good, {**good, "found": "lost"}]},
            {"provider": "sandbox", "effects": [good, {**good, "id": "pi_1"}]},
            {"provider": "sandbox", "effects": [good, {**good, "id": 1}]},
            {"provider": "sandbox", "effects": [good, {**good, "found": "listed"}]},
            {"provider": "sandbox", "effects": [good, {**good, "amount": "1", "currency": "EUR"}]},
            {"provider": "sandbox", "effects": [good, {**good, "happened": "today"}]},
            {"provider": "sandbox", "effects": [good, {**good, "payment_id": "c1"}]},
            {"provider": "sandbox", "effects": [good, 1]},
        ):
            reply = world.admin("POST", "/evidence", body)
            assert reply.status == 400, (body, reply)
        unknown = world.admin("POST", "/evidence", {"provider": "nobody", "effects": [good]})
        assert unknown.status == 404, unknown
        assert world.admin("GET", "/summary").json()["cases_open"] == 0
        same = {"found": "listed", "id": effect["id"], "amount": "100.00", "currency": "CNY"}
        reply = world.admin("POST", "/evidence", {"provider": "sandbox", "effects": [same, good]})
        assert reply.status == 200, reply
        results = [(one["result"], one["case"]) for one in reply.json()["effects"]]
        assert results[1] == ("case", "missing"), results
        assert world.admin("GET", "/summary").json()["cases_open"] == 1
    finally:
        world.close()


def scheduled(idem, more=""):
    """A world that is not started yet, whose service reconciles every second."""
    when = f"reconciliation = {{ every_s = 1; lag_s = 0; grace_s = 0; {more} }}; capabilities ="
    world = World(idem, {**SLOW, "entries": ("sandbox",)}, start=False)
    write = world.write_config

    def write_scheduled():
        write()
        path = world.config_path()
        path.write_text(path.read_text().replace("capabilities =", when))

    world.write_config = write_scheduled
    return world


def by_itself(idem):
    """The service reconciles by itself, with a credential of its own; a stop ends the child"""
    world = scheduled(idem)
    try:
        world.start_sandbox()
        world.start()
        assert world.pay("k-1", "o-1").status == 201
        assert world.pay("k-late", "o-late", method=LATE).status == 202
        world.wait_until(
            lambda: operation(world, "k-late")["state"] == "succeeded", "the schedule settles it"
        )
        assert operation(world, "k-1")["state"] == "succeeded"
        world.wait_until(lambda: '"reconciled"' in world.log_text(), "it is said")
        acts = [line for line in world.log_text().splitlines() if '"reconcile"' in line]
        assert acts and '"by":"service"' in acts[0], acts
        world.service.send_signal(signal.SIGHUP)
        world.wait_until(lambda: '"reloaded"' in world.log_text(), "reloaded")
        count = world.log_text().count('"reconciled"')
        world.wait_until(lambda: world.log_text().count('"reconciled"') > count + 1, "it goes on")
        assert "reconcile-failed" not in world.log_text(), world.log_text()
        sandbox = reconciliations(world)
        assert sandbox["verdict"] == 1 and sandbox["agreed"] > count, sandbox
        assert 0 < sandbox["done"] <= sandbox["ended"] <= time.time(), sandbox
        assert world.stop() == 0
    finally:
        world.close()


def reconciliations(world):
    """What /metrics says of the sandbox's: by the word that tells the samples apart."""
    page = world.get("/metrics").body.decode()
    found = re.findall(
        r'^idem_reconciliation(?:_(\w+?)(?:_seconds)?|s_total)'
        r'{entry="sandbox"(?:,verdict="(\w+)")?} (\d+)$', page, re.M,
    )
    return {name or verdict: int(value) for name, verdict, value in found}


def children(world):
    """The processes of the service's own: those that have not ended."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rsplit(") ", 1)[1].split()[:2]
        except OSError:
            continue  # It has ended since.
        if int(parent) == world.service.pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def stuck(idem):
    """A child that hangs is ended when its time is over, also if it ignores TERM"""
    world = scheduled(idem, "timeout_s = 2;")
    silent = socket.create_server(("127.0.0.1", world.sandbox_port))  # Nobody answers there.
    try:
        world.start()
        asked = world.wait_until(lambda: children(world), "a child")[0]
        world.wait_until(lambda: asked not in children(world), "TERM ends it", 10)
        world.wait_until(lambda: '"reconcile-late"' in world.log_text(), "it is said")
        sandbox = reconciliations(world)
        assert (sandbox["verdict"], sandbox["late"], sandbox["done"]) == (4, 1, 0), sandbox

        stopped = world.wait_until(lambda: children(world), "another")[0]
        os.kill(stopped, signal.SIGSTOP)  # TERM waits until it goes on, which is never.
        world.wait_until(lambda: stopped not in children(world), "KILL ends it", 10)
        assert '"reconcile-failed"' not in world.log_text(), world.log_text()
    finally:
        silent.close()
        world.close()


def stuck_at_the_end(idem):
    """A service that stops waits a moment only for a child that ignores TERM"""
    world = scheduled(idem)
    silent = socket.create_server(("127.0.0.1", world.sandbox_port))
    try:
        world.start()
        stopped = world.wait_until(lambda: children(world), "a child")[0]
        os.kill(stopped, signal.SIGSTOP)
        assert world.stop(timeout=10) == 0
        assert not pathlib.Path(f"/proc/{stopped}").exists()
    finally:
        silent.close()
        world.close()


if __name__ == "__main__":
    harness.run_at_once(
        [
            *(every_kind, listing, printed, refused, endless, incomplete, routes),
            *(by_itself, stuck, stuck_at_the_end),
        ],
        sys.argv[1],
        sys.argv[2:],
        3,
    )
