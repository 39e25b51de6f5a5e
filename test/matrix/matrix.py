"""
The fault matrix: each way in which an answer is lost, times each operation, times each provider.

Goal: whatever happens to a request on its way or to its answer, the caller who repeats it under its
key is told the truth in the end, and money has moved at most once.

Method: `idem serve`, and between it and the provider a proxy that spoils one request of each order
(fault_proxy.py); the providers are `idem sandbox` behind the bridge and the simulator of Stripe.
The judge is the provider's ledger: what arrived and what was executed there. A row whose fault was
not met as planned fails.

`query`: the answer to the payment is lost, then the question about it meets the fault;
`query-refund`: likewise of a refund.

Usage: matrix.py IDEM [--table] [word of a row ...]. Prints TAP, with --table the table.
"""

import collections
import concurrent.futures
import json
import pathlib
import re
import sys
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "stripe")]
import harness  # noqa: E402
from fault import StripeWorld, until_end  # noqa: E402
from fault_proxy import SENTENCES, FaultProxy  # noqa: E402

# fault, provider; then for each operation: how it ends, executions of it, how often it arrived at
# the provider at least (both of a question: of what it is about). A dash: no such operation.
OPERATIONS = ("create", "confirm", "capture", "cancel", "refund", "query", "query-refund")
TABLE = """
fault             provider  create   confirm  capture  cancel   refund   query    query-refund
before-closed     bridge    201:1:1  -        200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
before-closed     stripe    201:1:1  201:1:1  200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
before-reset      bridge    201:1:1  -        200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
before-reset      stripe    201:1:1  201:1:1  200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
after-closed      bridge    201:1:1  -        200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
after-closed      stripe    201:1:2  201:1:1  200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
after-reset       bridge    201:1:1  -        200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
after-reset       stripe    201:1:2  201:1:1  200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
late              bridge    201:1:1  -        200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
late              stripe    201:1:2  201:1:1  200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
truncated-halved  bridge    201:1:1  -        200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
truncated-halved  stripe    201:1:2  201:1:1  200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
truncated-cut     bridge    201:1:1  -        200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
truncated-cut     stripe    201:1:2  201:1:1  200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
503               bridge    201:1:1  -        200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
503               stripe    201:1:2  201:1:1  200:1:1  200:1:1  201:1:1  201:1:2  201:1:2
"""

PATHS = {"refund": "/refunds", "query-refund": "/refunds", "capture": "/capture",
         "cancel": "/cancel"}
LOST = "after-closed"
TIMEOUT_MS = 5000  # Only `late` is to meet it, also on a loaded machine.
SETTLE_S = 10.0  # How long proxy and ledger may be behind the caller, on a loaded machine.

Row = collections.namedtuple("Row", "fault provider operation ends executions arrivals")
Seen = collections.namedtuple("Seen", "ends executions arrivals")


class Bridge:
    """The bridge protocol, as the proxy has to know it."""

    def __init__(self):
        self.orders = {}

    def name(self, call):
        words = call.path.partition("?")[0].split("/")[2:]
        if call.method == "POST" and words == ["effects"]:
            told = json.loads(call.body)
            self.orders[told["id"]] = told["order_no"]
            kind = told["kind"]
            return told["order_no"], "create" if kind in ("charge", "authorize") else kind
        operation = "close" if call.method == "POST" else "query"
        return self.orders.get(words[1] if len(words) > 1 else None), operation

    def learn(self, call, answer):
        pass


class Stripe:
    """Stripe's protocol, likewise. Later requests name what earlier ones have made."""

    def __init__(self):
        self.orders = {}

    def name(self, call):
        path, _, query = call.path.partition("?")
        words = path.removeprefix("/v1/").split("/")
        asked = dict(urllib.parse.parse_qsl(query))
        if call.method == "GET" and words[-1] == "search":
            return self.orders.get(re.search(r":'(\w+)'", asked["query"]).group(1)), "query"
        if call.method == "GET":
            return self.orders.get(asked.get("payment_intent", words[-1])), "query"
        if len(words) == 3:
            return self.orders.get(words[1]), words[2]
        form = dict(urllib.parse.parse_qsl(call.body.decode()))
        order_no = form["metadata[order_no]"]
        self.orders[form["metadata[idem_id]"]] = order_no
        return order_no, {"payment_intents": "create", "refunds": "refund"}[words[0]]

    def learn(self, call, answer):
        made = json.loads(answer.body).get("id") if call.method == "POST" else None
        if made is not None:
            self.orders[made] = self.name(call)[0]


class Behind:
    """A world whose service reaches its provider through a proxy. No breaker: here all is lost."""

    protocol = None

    def start_sandbox(self):
        super().start_sandbox()
        self.proxy = FaultProxy(self.sandbox_port, self.protocol())

    def write_config(self):
        self.settings["lease_ms"] = 3 * TIMEOUT_MS
        super().write_config()
        base = 'base_url = "http://127.0.0.1:'
        text = self.config_path().read_text()
        for old, new in (
            (f"{base}{self.sandbox_port}", f"{base}{self.proxy.port}"),
            ("request_timeout_ms = 2000;",
             f"request_timeout_ms = {TIMEOUT_MS}; breaker = {{ unknowns = 0; }};"),
        ):
            assert text.count(old) == 1, text
            text = text.replace(old, new)
        self.config_path().write_text(text)

    def close(self, keep=False):
        super().close(keep)
        self.proxy.close()


class BehindBridge(Behind, harness.World):
    protocol = Bridge
    payment = {"provider": "sandbox", "method": "tok_ok"}
    paid_by = "create"

    def __init__(self, idem):
        super().__init__(idem, {"wait_ms": 3000, "entries": ("sandbox",)})

    def counts(self, order_no):
        """{operation: [arrivals, executions]}, by the ledger."""
        counts = collections.defaultdict(lambda: [0, 0])
        for effect in self.ledger(order_no=order_no)["effects"]:
            kind = effect["kind"]
            count = counts["create" if kind in ("charge", "authorize") else kind]
            count[0] += effect["arrivals"]
            count[1] += effect["executions"]
        return counts


class BehindStripe(Behind, StripeWorld):
    protocol = Stripe
    payment = {"provider": "stripe", "method": "pm_card_visa"}
    paid_by = "confirm"

    def counts(self, order_no):
        return self.told().get(order_no, {})


WORLDS = {"bridge": BehindBridge, "stripe": BehindStripe}


def steps_of(world, row):
    """What is to happen to the row's order."""
    asked, _, about = row.operation.partition("-")
    if asked != "query":
        return [(row.operation, row.fault)]
    return [(about or world.paid_by, LOST), ("query", row.fault)]


def repeated(send):
    """Until it ends; what was not executed may come again."""
    end = time.monotonic() + harness.PATIENCE_S
    while True:
        ended, reply = until_end(send)
        if ended != "503" or time.monotonic() > end:
            return ended, reply


def act(world, row, order_no):
    """Pays, and does what the row is about. Returns how that ended."""
    more = dict(world.payment)
    if row.operation in ("capture", "cancel"):
        more["capture"] = "manual"
    ended, reply = repeated(lambda: world.pay(f"pay-{order_no}", order_no, more=more))
    if row.operation not in PATHS:
        return ended, reply
    assert ended == "201", reply
    path = reply.header("Location") + PATHS[row.operation]
    # In part, so that a second one would not be refused for want of money.
    body = {"amount": "40.00"} if path.endswith("/refunds") else {}
    return repeated(lambda: world.post(path, f"act-{order_no}", body))


def settled(world, order_no, planned):
    """Whether all was met as planned, and what went through the proxy has arrived, and no more."""
    counts = world.counts(order_no)
    passed = {operation: world.proxy.passed[order_no, operation] for operation in counts}
    arrived = {operation: arrivals for operation, (arrivals, _) in counts.items()}
    return world.proxy.report(order_no) == planned and passed == arrived


def play(world, row):
    """One order and its fault, repeated under its key until it ends. Returns what was seen."""
    order_no = f"{row.operation}-{row.fault}"
    steps = steps_of(world, row)
    planned = [(operation, fault, None if fault.startswith("before-") else 200)
               for operation, fault in steps]
    world.proxy.plan(order_no, steps)
    ended, reply = act(world, row, order_no)
    end = time.monotonic() + SETTLE_S
    while not settled(world, order_no, planned) and time.monotonic() < end:
        time.sleep(0.05)
    counts = world.counts(order_no)
    arrivals, executions = counts.get(steps[0][0], (0, 0))
    met = world.proxy.report(order_no)
    happened = f"{ended}, met {met}, arrivals and executions {dict(counts)}\n{reply}"
    assert met == planned, f"not hit as planned, {planned}: {happened}"
    assert settled(world, order_no, planned), f"not what went through the proxy: {happened}"
    assert ended == row.ends, f"ends as {ended}, not {row.ends}: {happened}"
    assert executions == int(row.executions), f"executed {executions} times: {happened}"
    assert all(times <= 1 for _, times in counts.values()), f"more than once: {happened}"
    assert arrivals >= int(row.arrivals), f"arrived {arrivals} times: {happened}"
    return Seen(ended, executions, arrivals)


def rows_of(text, words):
    lines = [line.split() for line in text.strip().splitlines()]
    assert tuple(lines[0][2:]) == OPERATIONS, lines[0]
    rows = [Row(fault, provider, operation, *cell.split(":"))
            for fault, provider, *cells in lines[1:]
            for operation, cell in zip(OPERATIONS, cells) if cell != "-"]
    return [row for row in rows if all(word in row for word in words)]


def run(idem, rows):
    """{row: what was seen, or the error}, all rows side by side."""
    worlds = {}
    try:
        for provider in sorted({row.provider for row in rows}):
            worlds[provider] = WORLDS[provider](idem)
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            futures = {row: pool.submit(play, worlds[row.provider], row) for row in rows}
        return {row: future.exception() or future.result() for row, future in futures.items()}
    finally:
        for world in worlds.values():
            world.close()


def table_of(results):
    """What was seen, as text."""
    lines = [["fault", "provider", *OPERATIONS]]
    for fault, sentence in SENTENCES.items():
        for provider in WORLDS:
            cells = {row.operation: seen for row, seen in results.items()
                     if (row.fault, row.provider) == (fault, provider)}
            if cells:
                lines.append([sentence, provider, *(cell_of(cells, one) for one in OPERATIONS)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = ["  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip()
            for line in lines]
    text += ["", "Each cell: how it ended for the caller, executions/arrivals at the provider;",
             "of a query: executions and arrivals of what it asks about."]
    return "\n".join(text)


def cell_of(cells, operation):
    seen = cells.get(operation)
    if seen is None:
        return "-"
    return f"{seen.ends} {seen.executions}/{seen.arrivals}" if isinstance(seen, Seen) else "FAILED"


def print_tap(idem, results):
    print(f"1..{len(results)}")
    for number, (row, seen) in enumerate(results.items(), 1):
        name = f"{row.provider} {row.operation} {row.fault}"
        print(f"{'ok' if isinstance(seen, Seen) else 'not ok'} {number} - {name}")
        if not isinstance(seen, Seen):
            print("\n".join(f"# {line}" for line in (str(seen) or repr(seen)).splitlines()))
            print(f"# repeat: {sys.argv[0]} {idem} {name}")


def main():
    idem, words = sys.argv[1], [word for word in sys.argv[2:] if word != "--table"]
    results = run(idem, rows_of(TABLE, words))
    failed = [(row, seen) for row, seen in results.items() if not isinstance(seen, Seen)]
    if "--table" in sys.argv:
        print(table_of(results))
        for row, seen in failed:
            print(f"\n{row.provider} {row.operation} {row.fault}: {seen!r}")
    else:
        print_tap(idem, results)
    sys.exit(1 if failed or not results else 0)


if __name__ == "__main__":
    main()
