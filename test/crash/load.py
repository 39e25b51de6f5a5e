"""
The load of a crash run: what is to be paid, and the processes that pay it.

`Book` says what every intent is, and is written to the file `intents` before a caller hears of it:
the audit asks it what was meant. Payments come from nowhere; captures, cancels and refunds are
planned in bundles when a payment is known to have been made, and the parts of a bundle go to
different callers, so that they meet: two captures above the sum, a capture and a cancel, two
refunds above what was captured, one key at two callers, one key with two bodies. Captures and
refunds of one payment all have amounts of their own, by which the ledger shows which one it was.

A `Caller` is a slot: one journal, one process after the other (test/client/caller.c). Whoever is
killed begins again: with the same input, or with what the journal says is not over. A `Nosy` asks
and repeats by hand, under right and wrong credentials.
"""

import collections
import json
import random
import subprocess
import threading
import time

import harness
from harness import Connection, Gone, encode

DEADLINE_MS = 5000
FLAGS = [
    *("--deadline", str(DEADLINE_MS), "--try-timeout", "2500", "--connect-timeout", "500"),
    *("--backoff-first", "20", "--backoff-max", "400", "--at-once", "64", "--calls", "16"),
    *("--retry-percent", "100", "--retry-reserve", "8192"),
]

ENTRIES = {
    "sandbox": 4,
    "sandbox-closing": 3,
    "sandbox-plain": 3,
    "sandbox-lagging": 1,
    "sandbox-blind": 2,
}
ENDPOINTS = {
    "charge": "payments.create",
    "authorize": "payments.create",
    "capture": "payments.capture",
    "cancel": "payments.cancel",
    "refund": "refunds.create",
}
CURRENCIES = {"CNY": 2, "JPY": 0, "KWD": 3}

# fault: how often, in parts. Each weather has some of them.
FAULTS = {
    "decline": 4,
    "lose_request": 4,
    "lose_answer": 6,
    "lose_answer_always": 1,
    "500_before": 3,
    "500_after": 4,
    "429": 2,
    "503": 3,
    "503_always": 1,
    "dead_reuse": 3,
    "dead_reuse_after": 3,
    "cut_body": 2,
    "garbage": 2,
    "unknown_status": 2,
    "late_0": 1,
    "late_1": 3,
    "slow_1": 5,
    "not_found_1": 5,
    "processing_1_ok": 2,
    "processing_1_fail": 2,
}
LASTING = ("503_always",)  # It takes up to 48 sends, a second apart, until that is over.
LIES = ("wrong_amount", "wrong_currency", "wrong_id")


class Weather:
    """Which faults there are at the moment, and how many suffer."""

    SHARES = (0.0, 0.1, 0.3, 0.6, 0.9)

    def __init__(self, dice, lasting):
        self.dice = dice
        self.known = [fault for fault in FAULTS if lasting or fault not in LASTING]
        self.change()

    def change(self):
        self.faults = self.dice.sample(self.known, self.dice.randint(2, 8))
        self.share = self.dice.choice(self.SHARES)

    def fault(self, dice, entry):
        if dice.random() < 0.004:
            return dice.choice(LIES)
        if dice.random() >= self.share:
            return "ok"
        fault = dice.choices(self.faults, [FAULTS[fault] for fault in self.faults])[0]
        # Who cannot be asked and never answers is sent to until it is parked: nothing to learn.
        if entry == "sandbox-blind" and fault == "lose_answer_always":
            return "lose_answer"
        return fault


def amount_text(minor, currency):
    digits = CURRENCIES[currency]
    if digits == 0:
        return str(minor)
    return f"{minor // 10**digits}.{minor % 10**digits:0{digits}}"


class Book:
    """All intents, by name, and who has to run what next."""

    def __init__(self, directory, seed, slots, lasting):
        self.dice = random.Random(f"{seed}/book")
        self.weather = Weather(random.Random(f"{seed}/weather"), lasting)
        self.lock = threading.Lock()
        self.file = open(directory / "intents", "w", encoding="utf-8")
        self.intents = {}
        self.recent = collections.deque(maxlen=400)  # Names.
        self.payments = {}  # name: the amounts that its operations have
        self.slots = slots
        self.queues = [collections.deque() for _ in range(slots)]
        self.count = 0

    # With the lock held.

    def write(self, intent, slots):
        self.file.write(json.dumps(intent) + "\n")
        self.file.flush()
        self.intents[intent["name"]] = intent
        self.recent.append(intent["name"])
        for slot in slots:
            self.queues[slot].append(intent["name"])

    def key(self, name, brings):
        """Its own key, known to others; or none: the client makes one."""
        return f"key-{name}" if brings else ""

    def payment_new(self, slot):
        self.count += 1
        dice = self.dice
        is_rival = slot == self.slots - 1
        name = f"{'r' if is_rival else 'p'}{self.count}"
        entry = "sandbox" if is_rival else dice.choices(list(ENTRIES), list(ENTRIES.values()))[0]
        currency = dice.choices(list(CURRENCIES), (8, 1, 1))[0]
        minor = dice.randint(200, 99999)
        capture = dice.choice(("automatic", "manual"))
        token = "tok_" + self.weather.fault(dice, entry)
        for kind in ("refund",) if capture == "automatic" else ("capture", "cancel", "refund"):
            fault = self.weather.fault(dice, entry)
            token += f"+{kind}_{fault}" if fault != "ok" else ""
        body = {
            "order_no": name,
            "amount": amount_text(minor, currency),
            "currency": currency,
            "provider": entry,
            "capture": capture,
            "method": token,
        }
        # The rival uses the shop's keys: they are his own.
        others = [other for other in range(self.slots - 1) if other != slot]
        shared = not is_rival and dice.random() < 0.12
        intent = {
            "name": name,
            "key": f"key-p{self.count - 1}" if is_rival
            else self.key(name, shared or dice.random() < 0.3),
            "who": harness.OTHER_BEARER if is_rival else harness.BEARER,
            "kind": "charge" if capture == "automatic" else "authorize",
            "path": "/v1/payments",
            "body": body,
            "minor": minor,
            "order": name,
            "entry": entry,
            "token": token,
        }
        self.payments[name] = set()
        second, third = dice.sample(others, 2)
        self.write(intent, [slot, second] if shared else [slot])
        if shared and dice.random() < 0.3:  # The same key with another body, at once.
            other = dict(intent, name=name + "x", minor=minor + 1)
            other["body"] = dict(body, amount=amount_text(minor + 1, currency))
            self.write(other, [third])

    def part(self, payment, minor):
        """About so much, and an amount that no operation of the payment had."""
        used = self.payments[payment["order"]]
        while minor in used:
            minor -= 1
        assert minor > 0
        used.add(minor)
        return minor

    def share(self, payment, share):
        return self.part(payment, int(payment["minor"] * share))

    def act(self, payment, url, kind, minor=None, twice=False):
        self.count += 1
        name = f"{kind}{self.count}"
        body = {}
        if minor is not None:
            body["amount"] = amount_text(minor, payment["body"]["currency"])
        if kind == "refund" and self.dice.random() < 0.5:
            body["refund_no"] = name
        intent = {
            "name": name,
            "key": self.key(name, twice or self.dice.random() < 0.3),
            "who": payment["who"],
            "kind": kind,
            "path": url + ("/refunds" if kind == "refund" else f"/{kind}"),
            "body": body,
            "minor": minor,
            "order": payment["order"],
            "entry": payment["entry"],
            "token": payment["token"],
        }
        shop = range(self.slots - 1)
        slots = self.dice.sample(shop, 2) if twice else [self.dice.choice(shop)]
        if payment["who"] == harness.OTHER_BEARER:
            slots = [self.slots - 1]
        self.write(intent, slots)

    def refunds_plan(self, payment, url):
        bundle = self.dice.choice(("none", "one", "above", "twice", "three"))
        if bundle in ("one", "twice"):
            share = self.dice.choice((0.3, 0.5, 1.0))
            self.act(payment, url, "refund", self.share(payment, share), bundle == "twice")
        if bundle == "above":
            self.act(payment, url, "refund", self.share(payment, 0.7))
            self.act(payment, url, "refund", self.share(payment, 0.6))
        if bundle == "three":
            for share in (0.2, 0.45, 0.4):
                self.act(payment, url, "refund", self.share(payment, share))

    def authorized_plan(self, payment, url):
        bundle = self.dice.choice(("capture", "above", "race", "cancels", "cancel", "parts"))
        if bundle in ("capture", "race"):
            share = self.dice.choice((0.4, 0.8, 1.0))
            self.act(payment, url, "capture", self.share(payment, share), bundle == "capture")
        if bundle == "above":
            self.act(payment, url, "capture", self.share(payment, 0.7))
            self.act(payment, url, "capture", self.share(payment, 0.6))
        if bundle == "parts":
            self.act(payment, url, "capture", self.share(payment, 0.3))
            self.act(payment, url, "capture", self.share(payment, 0.35))
        if bundle in ("race", "cancels", "cancel"):
            self.act(payment, url, "cancel", None, bundle == "cancel")
        if bundle == "cancels":
            self.act(payment, url, "cancel")

    # For everybody.

    def told(self, name, verdict):
        """Somebody was told; what was made is planned for, once."""
        with self.lock:
            intent = self.intents[name]
            intent["key_now"] = verdict["key"]
            intent["over"] = verdict["over"]
            if verdict["outcome"] != "done" or intent.get("planned"):
                return
            intent["planned"] = True
            payment = self.intents.get(intent["order"])
            if intent["kind"] == "charge":
                self.refunds_plan(intent, "/v1/payments/" + json.loads(verdict["body"])["id"])
            if intent["kind"] == "authorize":
                self.authorized_plan(intent, "/v1/payments/" + json.loads(verdict["body"])["id"])
            if intent["kind"] == "capture" and self.dice.random() < 0.4:
                url = intent["path"].removesuffix("/capture")
                self.act(payment, url, "refund", self.part(payment, intent["minor"] // 3))

    def take(self, slot, count):
        """What the slot is to run next: what waits for it, then new payments."""
        with self.lock:
            queue = self.queues[slot]
            while len(queue) < count:
                self.payment_new(slot)
            return [self.intents[queue.popleft()] for _ in range(count)]

    def any_recent(self, dice):
        with self.lock:
            return dict(self.intents[dice.choice(self.recent)]) if self.recent else None


class Caller(threading.Thread):
    """One slot; runs until it is stopped, and writes down whatever its processes say."""

    def __init__(self, scene, slot):
        super().__init__(daemon=True)
        self.scene = scene
        self.slot = slot
        self.dice = random.Random(f"{scene.seed}/caller/{slot}")
        self.journal = scene.directory / f"journal-{slot}"
        self.batch = scene.directory / f"batch-{slot}"
        self.log = open(scene.directory / f"verdicts-{slot}", "w", encoding="utf-8")
        is_rival = slot == scene.book.slots - 1
        self.bearer = harness.OTHER_BEARER if is_rival else harness.BEARER
        self.process = None
        self.runs = 0
        self.stopping = False

    def say(self, **what):
        self.log.write(json.dumps({"at": time.time(), "run": self.runs, **what}) + "\n")
        self.log.flush()

    def line(self, intent):
        url = f"http://127.0.0.1:{self.scene.front.number}{intent['path']}"
        body = json.dumps(intent["body"])
        columns = (intent["name"], "POST", url, body, "", intent["key"])
        return "\t".join((*columns, "Content-Type: application/json")) + "\n"

    def call(self, resume):
        """One process, to its end. Returns how many of its intents are not over."""
        self.runs += 1
        self.say(begin="resume" if resume else "batch")
        arguments = [self.scene.program, "--journal", str(self.journal), *FLAGS]
        arguments += ["--credential", f"Authorization: Bearer {self.bearer}"]
        arguments += ["--resume"] if resume else []
        left = 0
        with open("/dev/null" if resume else self.batch, "rb") as intents:
            self.process = subprocess.Popen(
                arguments, stdin=intents, stdout=subprocess.PIPE, stderr=self.scene.world.log
            )
        for line in self.process.stdout:
            if not line.endswith(b"\n"):
                break  # It was killed in the middle: nobody was told.
            verdict = json.loads(line)
            self.say(**verdict)
            if "error" not in verdict:
                left += not verdict["over"]
                self.scene.book.told(verdict["name"], verdict)
        self.process.stdout.close()
        self.say(end=self.process.wait())
        return left

    def run(self):
        while not self.stopping:
            intents = self.scene.book.take(self.slot, self.dice.randint(*self.scene.batch))
            self.batch.write_text("".join(self.line(intent) for intent in intents))
            left = self.call(resume=False)
            while not self.stopping and self.process.returncode != 0:
                left = self.call(resume=self.dice.random() < 0.5)
            if not self.stopping and self.dice.random() < 0.4 and left > 0:
                self.call(resume=True)

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            return True
        return False


def resume_all(callers):
    """All callers at once go on with what is not over. Returns how much still is not."""
    left = []
    threads = [
        threading.Thread(target=lambda caller=caller: left.append(caller.call(True)))
        for caller in callers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(left) == len(callers), "a caller's run broke"
    return sum(left)


class Nosy(threading.Thread):
    """Asks about what others do, repeats it, changes it, and asks as somebody else."""

    def __init__(self, scene, number):
        super().__init__(daemon=True)
        self.scene = scene
        self.dice = random.Random(f"{scene.seed}/nosy/{number}")
        self.stopping = False
        self.asked = collections.Counter()

    def send(self, method, path, who, key="", body=None):
        headers = [("Authorization", f"Bearer {who}")]
        headers += [("Idempotency-Key", f'"{key}"')] if key else []
        data = b""
        if body is not None:
            data = json.dumps(body).encode()
            headers += [("Content-Type", "application/json")]
            headers += [("Prefer", self.dice.choice(("wait=0", "wait=1", "respond-async")))]
        try:
            connection = Connection(self.scene.front.number, timeout=2.5)
            try:
                connection.send(encode(method, path, headers, data))
                connection.receive(method)
            finally:
                connection.close()
        except (Gone, OSError, ValueError):
            self.asked["unanswered"] += 1

    def ask(self, intent):
        who, path, key = intent["who"], intent["path"], intent.get("key_now") or intent["key"]
        other = harness.BEARER if who == harness.OTHER_BEARER else harness.OTHER_BEARER
        url = path.rsplit("/", 1)[0] if path != "/v1/payments" else None
        what = self.dice.choice(("operation", "payment", "order", "again", "changed", "other"))
        self.asked[what] += 1
        if what == "operation" and key:
            endpoint = ENDPOINTS[intent["kind"]]
            self.send("GET", f"/v1/operations?endpoint={endpoint}", who, key)
        if what == "order":
            self.send("GET", f"/v1/payments?order_no={intent['order']}", who)
        if what == "payment" and url is not None:
            self.send("GET", url, who)
        # Where the caller made the key, nobody else may carry it out, or its REFUSED is no promise.
        if what == "again" and (intent["key"] or intent.get("over")):
            self.send("POST", path, who, key, intent["body"])
        if what == "changed" and intent.get("over") and intent["minor"] is not None:
            currency = self.scene.book.intents[intent["order"]]["body"]["currency"]
            changed = dict(intent["body"], amount=amount_text(intent["minor"] + 1, currency))
            self.send("POST", path, who, key, changed)
        if what == "other":
            if url is not None:
                self.send("GET", url, other)
            self.send("GET", f"/v1/payments?order_no={intent['order']}", other)
            self.send("POST", path, "nobody", "key", intent["body"])

    def run(self):
        while not self.stopping:
            time.sleep(self.dice.uniform(0.0, 0.1))
            intent = self.scene.book.any_recent(self.dice)
            if intent is not None:
                self.ask(intent)
