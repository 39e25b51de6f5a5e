"""
A small Stripe: PaymentIntents and refunds over HTTP on loopback, with the memory of idempotency
keys and the faults that matter. Standard library only.

It is the judge in fault.py: it counts arrivals and executions apart. sdk.mjs drives it with
Stripe's own library to show that it speaks the protocol. It shares no code with the adapter.

A fault stands in the order number of what it is to hit, `OPERATION.FAULT.anything`, and happens to
the first request of that operation:

    lost-request    read, and the connection closed: nothing was executed
    lost-answer     executed, and the connection closed
    cut-answer      executed, and half an answer
    stored-500      not executed; 500 is the answer, and remembered under the key
    executed-500    executed; likewise
    in-use          409: another request with this key is being executed (it is not)
    limited         429 of the limiter, which stands in front of the keys
    locked          429 lock_timeout, without execution
    maybe           400 with Stripe-Should-Retry: true, not executed, not remembered

A search never finds what has an order number that ends in `.hidden`: it may be behind for long.

Cards: pm_card_visa pays; pm_card_chargeDeclined is declined; pm_action needs the buyer; pm_slow is
processing, and paid when it was looked at twice.

    simulator.py PORT
"""

import collections
import hashlib
import http.server
import itertools
import json
import re
import socket
import sys
import threading
import time
import urllib.parse

PAYABLE = {"requires_payment_method", "requires_confirmation", "requires_action"}
OPERATIONS = ("create", "confirm", "capture", "cancel", "refund")


class Problem(Exception):
    def __init__(self, status, kind, code=None, message="", more=None, headers=None):
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.body = {"error": {"type": kind, "message": message, **(more or {})}}
        if code:
            self.body["error"]["code"] = code


class Silence(Exception):
    """The connection is closed, behind half an answer or none."""

    def __init__(self, half=False):
        super().__init__()
        self.half = half


def parse_form(text):
    """a[b]=1&c[0]=x as nested dicts; indexes stay keys."""
    result = {}
    for name, value in urllib.parse.parse_qsl(text, keep_blank_values=True):
        parts = re.findall(r"[^\[\]]+", name)
        place = result
        for part in parts[:-1]:
            place = place.setdefault(part, {})
        place[parts[-1]] = value
    return result


class Ledger:
    """All state, under one lock: one request is executed at a time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.numbers = itertools.count(1)
        self.intents = {}
        self.refunds = {}
        self.keys = {}
        self.arrivals = collections.Counter()
        self.executions = collections.Counter()
        self.faulted = set()
        self.shift_s = 0

    def now(self):
        return int(time.time()) + self.shift_s

    def new_id(self, prefix):
        number = next(self.numbers)
        digest = hashlib.sha256(f"{prefix}{number}".encode()).hexdigest()
        return f"{prefix}_{number:06d}{digest[:18]}"

    # ---- what is executed ----

    def create(self, form):
        for name in ("amount", "currency"):
            if name not in form:
                raise Problem(400, "invalid_request_error", "parameter_missing",
                              f"Missing required param: {name}.")
        if not form["amount"].isdigit() or int(form["amount"]) == 0:
            raise Problem(400, "invalid_request_error", "parameter_invalid_integer", "amount")
        if form.get("payment_method", "").startswith("pm_missing"):
            raise Problem(400, "invalid_request_error", "resource_missing",
                          "No such PaymentMethod")
        method = form.get("payment_method")
        intent = {
            "id": self.new_id("pi"),
            "object": "payment_intent",
            "amount": int(form["amount"]),
            "amount_capturable": 0,
            "amount_received": 0,
            "automatic_payment_methods": form.get("automatic_payment_methods"),
            "canceled_at": None,
            "cancellation_reason": None,
            "capture_method": form.get("capture_method", "automatic_async"),
            "client_secret": "pi_secret_x",
            "confirmation_method": "automatic",
            "created": self.now(),
            "currency": form["currency"],
            "customer": None,
            "description": form.get("description"),
            "last_payment_error": None,
            "latest_charge": None,
            "livemode": False,
            "metadata": form.get("metadata", {}),
            "next_action": None,
            "payment_method": method,
            "payment_method_options": {"card": {"request_three_d_secure": "automatic"}},
            "payment_method_types": ["card"],
            "status": "requires_confirmation" if method else "requires_payment_method",
        }
        self.intents[intent["id"]] = intent
        if form.get("confirm") == "true":
            self.confirm(intent, {})
        return intent

    def confirm(self, intent, form):
        method = form.get("payment_method") or intent["payment_method"]
        if intent["status"] not in PAYABLE or method is None:
            raise Problem(400, "invalid_request_error", "payment_intent_unexpected_state",
                          f"You cannot confirm this PaymentIntent: {intent['status']}",
                          {"payment_intent": intent})
        if method == "pm_card_chargeDeclined":
            intent["status"] = "requires_payment_method"
            intent["payment_method"] = None
            intent["last_payment_error"] = {"type": "card_error", "code": "card_declined",
                                            "decline_code": "generic_decline"}
            raise Problem(402, "card_error", "card_declined", "Your card was declined.",
                          {"decline_code": "generic_decline", "payment_intent": intent})
        if method == "pm_action":
            intent["status"] = "requires_action"
            intent["next_action"] = {"type": "use_stripe_sdk", "use_stripe_sdk": {}}
            return intent
        if method == "pm_slow":
            intent["status"] = "processing"
            intent["looks"] = 2
            return intent
        self.pay(intent)
        return intent

    def pay(self, intent):
        intent["latest_charge"] = self.new_id("ch")
        if intent["capture_method"] == "manual":
            intent["status"] = "requires_capture"
            intent["amount_capturable"] = intent["amount"]
            return
        intent["status"] = "succeeded"
        intent["amount_received"] = intent["amount"]

    def capture(self, intent, form):
        if intent["status"] != "requires_capture":
            raise Problem(400, "invalid_request_error", "payment_intent_unexpected_state",
                          f"This PaymentIntent could not be captured: {intent['status']}",
                          {"payment_intent": intent})
        amount = int(form.get("amount_to_capture", intent["amount_capturable"]))
        if not 0 < amount <= intent["amount_capturable"]:
            raise Problem(400, "invalid_request_error", "amount_too_large", "amount_to_capture")
        intent["status"] = "succeeded"
        intent["amount_received"] = amount
        intent["amount_capturable"] = 0
        intent["metadata"].update(form.get("metadata", {}))
        return intent

    def cancel(self, intent, form):
        if intent["status"] not in PAYABLE | {"requires_capture", "processing"}:
            raise Problem(400, "invalid_request_error", "payment_intent_unexpected_state",
                          f"You cannot cancel this PaymentIntent: {intent['status']}",
                          {"payment_intent": intent})
        intent["status"] = "canceled"
        intent["canceled_at"] = self.now()
        intent["cancellation_reason"] = form.get("cancellation_reason")
        intent["amount_capturable"] = 0
        return intent

    def refund(self, form):
        intent = self.intents.get(form.get("payment_intent"))
        if intent is None:
            raise Problem(400, "invalid_request_error", "resource_missing", "payment_intent")
        given_back = sum(refund["amount"] for refund in self.refunds.values()
                         if refund["payment_intent"] == intent["id"]
                         and refund["status"] not in ("failed", "canceled"))
        left = intent["amount_received"] - given_back
        amount = int(form.get("amount", left))
        if left == 0:
            raise Problem(400, "invalid_request_error", "charge_already_refunded", "refunded")
        if not 0 < amount <= left:
            raise Problem(400, "invalid_request_error", None, "amount is more than is left")
        refund = {
            "id": self.new_id("re"),
            "object": "refund",
            "amount": amount,
            "balance_transaction": None,
            "charge": intent["latest_charge"],
            "created": self.now(),
            "currency": intent["currency"],
            "metadata": form.get("metadata", {}),
            "payment_intent": intent["id"],
            "reason": form.get("reason"),
            "status": "succeeded",
        }
        self.refunds[refund["id"]] = refund
        return refund

    # ---- requests ----

    def intent_of(self, intent_id):
        if intent_id not in self.intents:
            raise Problem(404, "invalid_request_error", "resource_missing",
                          f"No such payment_intent: '{intent_id}'")
        return self.intents[intent_id]

    def execute(self, operation, intent_id, form):
        if operation == "create":
            return self.create(form)
        if operation == "refund":
            return self.refund(form)
        return getattr(self, operation)(self.intent_of(intent_id), form)

    def order_of(self, operation, intent_id, form):
        if operation in ("create", "refund"):
            return form.get("metadata", {}).get("order_no", "")
        return self.intents.get(intent_id, {}).get("metadata", {}).get("order_no", "")

    def run(self, operation, intent_id, form, order):
        """One execution: (status, body). The text is made at once, as it is stored."""
        before = json.dumps(self.intents.get(intent_id))
        try:
            result = 200, json.dumps(self.execute(operation, intent_id, form))
            self.executions[operation, order] += 1
        except Problem as problem:
            result = problem.status, json.dumps(problem.body)
            if json.dumps(self.intents.get(intent_id)) != before:
                self.executions[f"{operation}-refused", order] += 1
        return result

    def post(self, operation, intent_id, form, key, path):
        """Returns (status, body text, headers)."""
        order = self.order_of(operation, intent_id, form)
        self.arrivals[operation, order] += 1
        wanted, _, rest = order.partition(".")
        fault = rest.partition(".")[0] if wanted == operation else ""
        if (operation, order) in self.faulted:
            fault = ""
        self.faulted.add((operation, order))
        if fault == "limited":
            raise Problem(429, "invalid_request_error", "rate_limit", "Too many requests",
                          headers={"Stripe-Rate-Limited-Reason": "global-rate"})
        if fault == "lost-request":
            raise Silence()
        if fault == "in-use":
            raise Problem(409, "idempotency_error", "idempotency_key_in_use",
                          "There is currently another in-progress request using this key.")
        if fault == "locked":
            raise Problem(429, "invalid_request_error", "lock_timeout", "Locked.")
        if fault == "maybe":
            raise Problem(400, "invalid_request_error", "odd", "Try again.",
                          headers={"Stripe-Should-Retry": "true"})
        fingerprint = (path, json.dumps(form, sort_keys=True))
        known = self.keys.get(key) if key else None
        if known and self.now() - known["at"] >= 86400:
            known = None
        if known:
            if known["fingerprint"] != fingerprint:
                raise Problem(400, "idempotency_error", None,
                              "Keys for idempotent requests can only be used with the same "
                              "parameters they were first used with.")
            return known["status"], known["body"], {"Idempotent-Replayed": "true"}
        broken = json.dumps({"error": {"type": "api_error", "message": "An error occurred."}})
        if fault == "stored-500":
            status, body = 500, broken
        else:
            status, body = self.run(operation, intent_id, form, order)
        if fault == "executed-500":
            status, body = 500, broken
        invalid = status == 400 and "unexpected_state" not in body
        if key and not invalid and status != 404:
            self.keys[key] = {"fingerprint": fingerprint, "status": status, "body": body,
                              "at": self.now()}
        if fault in ("lost-answer", "cut-answer"):
            raise Silence(half=fault == "cut-answer")
        return status, body, {}

    def look(self, intent_id):
        intent = self.intent_of(intent_id)
        if intent["status"] == "processing":
            intent["looks"] -= 1
            if intent["looks"] <= 0:
                self.pay(intent)
        return intent

    def page(self, objects, query):
        chosen = sorted(objects, key=lambda item: item["id"], reverse=True)
        created = {name: int(value) for name, value in query.get("created", {}).items()}
        chosen = [item for item in chosen
                  if created.get("gte", 0) <= item["created"]
                  and item["created"] < created.get("lt", 1 << 62)
                  and item["created"] <= created.get("lte", 1 << 62)]
        if "payment_intent" in query:
            chosen = [item for item in chosen
                      if item.get("payment_intent") == query["payment_intent"]]
        if "starting_after" in query:
            ids = [item["id"] for item in chosen]
            if query["starting_after"] not in ids:
                raise Problem(400, "invalid_request_error", "resource_missing", "starting_after")
            chosen = chosen[ids.index(query["starting_after"]) + 1:]
        limit = int(query.get("limit", 10))
        return {"object": "list", "data": chosen[:limit], "has_more": len(chosen) > limit}

    def search(self, query):
        name, value = re.fullmatch(r"metadata\['(\w+)'\]:'(\w+)'", query["query"]).groups()
        found = [item for item in self.intents.values()
                 if item["metadata"].get(name) == value
                 and not item["metadata"].get("order_no", "").endswith(".hidden")]
        return {"object": "search_result", "url": "/v1/payment_intents/search",
                "has_more": False, "next_page": None, "data": found}

    def get(self, path, query):
        if path == "/v1/payment_intents":
            return self.page(self.intents.values(), query)
        if path == "/v1/payment_intents/search":
            return self.search(query)
        if path == "/v1/refunds":
            return self.page(self.refunds.values(), query)
        kind, _, object_id = path.removeprefix("/v1/").partition("/")
        if kind == "payment_intents":
            return self.look(object_id)
        if kind == "refunds" and object_id in self.refunds:
            return self.refunds[object_id]
        raise Problem(404, "invalid_request_error", "resource_missing", f"Unrecognized: {path}")

    def told(self):
        """What the judge reads."""
        orders = {order for _, order in self.arrivals}
        return {order: {operation: [self.arrivals[operation, order],
                                    self.executions[operation, order]]
                        for operation in OPERATIONS} for order in orders}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ledger = Ledger()

    def log_message(self, *arguments):
        pass

    def answer(self, status, body, headers=None, half=False):
        data = body if isinstance(body, str) else json.dumps(body)
        data = data.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Request-Id", "req_simulated")
        self.send_header("Stripe-Version", self.headers.get("Stripe-Version", "none"))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if half else data)

    def hang_up(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def handled(self, work):
        try:
            if not self.path.startswith("/v1/"):
                return self.judge()
            if not self.headers.get("Authorization", "").startswith("Bearer sk_"):
                raise Problem(401, "invalid_request_error", None, "You did not provide a key.")
            with self.ledger.lock:
                return self.answer(*work())
        except Problem as problem:
            return self.answer(problem.status, problem.body, problem.headers)
        except Silence as silence:
            if silence.half:
                self.answer(200, {"id": "pi_half", "padding": "x" * 400}, half=True)
            return self.hang_up()

    def judge(self):
        with self.ledger.lock:
            if self.path == "/healthz":
                return self.answer(200, {})
            if self.path == "/objects":
                return self.answer(200, {"payment_intents": self.ledger.intents,
                                         "refunds": self.ledger.refunds})
            if self.path.startswith("/shift/"):
                self.ledger.shift_s += int(self.path.removeprefix("/shift/"))
                return self.answer(200, {})
            return self.answer(200, self.ledger.told())

    def do_GET(self):
        path, _, query = self.path.partition("?")

        def work():
            return 200, self.ledger.get(path, parse_form(query))

        self.handled(work)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        words = self.path.removeprefix("/v1/").split("/")

        def work():
            form = parse_form(body)
            intent_id = words[1] if len(words) > 1 else ""
            operation = {("payment_intents",): "create", ("refunds",): "refund"}.get(tuple(words))
            if operation is None and len(words) == 3 and words[2] in OPERATIONS:
                operation = words[2]
            if operation is None:
                raise Problem(404, "invalid_request_error", "resource_missing", self.path)
            key = self.headers.get("Idempotency-Key")
            return self.ledger.post(operation, intent_id, form, key, self.path)

        self.handled(work)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # With five, a burst of connections waits for seconds.


def main():
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    print(f"simulator on 127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
