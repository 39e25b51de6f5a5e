"""
Our client against somebody else's Stripe, behind a proxy that spoils requests and answers.

Goal: charge, capture and refund are done once under their key whatever happens on the way, where
what a key means is stripe-stateful-mock's and not ours. The mock knows charges and refunds, so it
is the client that is driven, not the adapter: docs/stripe.md, and `../matrix` for that one.

Method: each fault of the matrix times each operation; `idem send` repeats under one key until it is
done, and the mock is asked how many there are. Usage: mock_faults.py IDEM [word in a row ...]
"""

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
sys.path.insert(0, str(HERE.parent / "matrix"))
import harness  # noqa: E402
from fault_proxy import SENTENCES, FaultProxy  # noqa: E402

OPERATIONS = ("charge", "capture", "refund")
FORM = "Content-Type: application/x-www-form-urlencoded"
TRY_S = 40  # How long the client has; a try that hears nothing is given up within it.


class Keys:
    """An order is its key; the path says which operation."""

    def name(self, call):
        key = dict((name.lower(), value) for name, value in call.headers).get("idempotency-key")
        if call.path.endswith("/capture"):
            return key, "capture"
        return key, "refund" if call.path == "/v1/refunds" else "charge"

    def learn(self, call, answer):
        pass


class TypedProxy(FaultProxy):
    """The mock replays its JSON as text/html, which our client takes for no answer of an API."""

    def ask_upstream(self, call):
        answer = super().ask_upstream(call)
        answer.headers = [(name, "application/json" if name.lower() == "content-type" else value)
                          for name, value in answer.headers]
        return answer


class Mock:
    def __init__(self):
        self.process = subprocess.Popen(["node", HERE / "mock_server.mjs"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        cwd=HERE, text=True)
        self.port = int(self.process.stdout.readline())

    def call(self, method, path, form="", key=None):
        headers = [("Host", "mock"), ("Authorization", "Bearer sk_test_mock"),
                   ("Content-Type", "application/x-www-form-urlencoded")]
        headers += [("Idempotency-Key", key)] if key else []
        connection = harness.Connection(self.port)
        try:
            connection.send(harness.encode(method, path, headers, form.encode()))
            answer = connection.receive(method)
        finally:
            connection.close()
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def charge(self, amount, capture):
        return self.call("POST", "/v1/charges", f"amount={amount}&currency=usd&source=tok_visa"
                         f"&capture={capture}", f"before-{amount}")["id"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(harness.PATIENCE_S)


def request_of(mock, operation, amount):
    if operation == "charge":
        return "/v1/charges", f"amount={amount}&currency=usd&source=tok_visa"
    charge = mock.charge(amount, "false" if operation == "capture" else "true")
    if operation == "capture":
        return f"/v1/charges/{charge}/capture", ""
    return "/v1/refunds", f"charge={charge}&amount={amount - 1}"


def done(mock, operation, amount):
    """How often the operation was done to the amount that only this row has."""
    charges = [charge for charge in mock.call("GET", "/v1/charges?limit=100")["data"]
               if charge["amount"] == amount]
    if operation == "charge":
        return len(charges)
    assert len(charges) == 1, charges
    if operation == "capture":
        return int(charges[0]["captured"])
    refunds = mock.call("GET", f"/v1/refunds?charge={charges[0]['id']}&limit=100")["data"]
    return len(refunds)


def play(idem, mock, proxy, journal, row):
    operation, fault, amount = row
    path, form = request_of(mock, operation, amount)
    key = f"{operation}-{fault}"
    proxy.plan(key, [(operation, fault)])
    sent = subprocess.run(
        [idem, "send", "POST", f"http://127.0.0.1:{proxy.port}{path}", "--data", form,
         "--header", FORM, "--key", key, "--intent", key, "--dialect", "stripe", "--quiet",
         "--deadline", f"{TRY_S}s", "--journal", journal / f"{key}.db"],
        capture_output=True, text=True, timeout=2 * TRY_S,
        env={"IDEM_CREDENTIAL": "sk_test_mock", "PATH": "/usr/bin:/bin"})
    assert sent.returncode == 0, (key, sent.returncode, sent.stderr)
    assert done(mock, operation, amount) == 1, key
    met = proxy.report(key)
    assert [step[:2] for step in met] == [(operation, fault)], (key, met)
    asked = proxy.passed[key, operation]
    # Half of an answer that is as long as it says is still a 200 of the API: it is done.
    once = fault.startswith("before") or fault == "truncated-halved"
    assert asked >= (1 if once else 2), (key, asked)
    return f"{operation} {fault}: 1 of {asked} arrivals"


def main():
    idem, words = sys.argv[1], sys.argv[2:]
    rows = [(operation, fault, 1000 + 10 * number)
            for number, (operation, fault) in enumerate(
                (operation, fault) for operation in OPERATIONS for fault in SENTENCES)]
    rows = [row for row in rows if all(word in row[:2] for word in words)]
    mock = Mock()
    proxy = TypedProxy(mock.port, Keys())
    failed = 0
    print(f"1..{len(rows)}", flush=True)
    with tempfile.TemporaryDirectory() as journal, \
            concurrent.futures.ThreadPoolExecutor(len(rows) or 1) as pool:
        plays = [pool.submit(play, idem, mock, proxy, pathlib.Path(journal), row) for row in rows]
        for number, future in enumerate(plays, 1):
            problem = future.exception()
            failed += problem is not None
            print(f"not ok {number} - {problem!r}" if problem else
                  f"ok {number} - {future.result()}", flush=True)
    proxy.close()
    mock.close()
    sys.exit(1 if failed or not rows else 0)


if __name__ == "__main__":
    main()
