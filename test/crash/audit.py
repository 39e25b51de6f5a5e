"""
The audit of a crash run, out of the promises P1 to P14 of docs/design.md and what a run leaves
behind (records.py): books of its own, compared with one another.

Goal: every way in which a promise could have been broken while processes died shows as a line that
names the promise.

Method: two audits. `AtDeath` looks whenever the service is dead, before anybody repairs anything:
what arrived at the provider, and what callers were told, must be in the store already (P1, P2).
`Audit` looks when all is over: each intent has what was meant (the book), what the provider did
(the ledger), what is kept (the store), what was said on the wire and what the callers concluded;
the five must tell one story. P7, P11 inside the process and P14 cannot be seen from here; the
simulator has them. P12 is seen for the length of a run only.
"""

import collections
import json
import re

import records
import store as stores
from records import FAILED, FINAL, PARKED, SUCCEEDED

# A grant is stamped before its COMMIT and an arrival after it, by one clock.
CLOCK_S = 0.002
SENDS_MAX = 48  # docs/recovery.md

UID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")

OPEN_WITHOUT_DUE = "SELECT count(*) FROM intents WHERE state NOT IN (5, 6) AND due_us = 0"
SUMS = (
    "SELECT count(*) FROM payments WHERE captured_minor + capture_pending_minor + released_minor >"
    " authorized_minor OR refunded_minor + refund_pending_minor > captured_minor OR"
    " authorized_minor > amount_minor"
)
ORDERS = (
    "SELECT count(*) FROM (SELECT 1 FROM payments WHERE state NOT IN (7, 8)"
    " GROUP BY principal, order_no HAVING count(*) > 1) AS twice"
)
STORE_RULES = {"P8 open without a due time": OPEN_WITHOUT_DUE, "P10 sums": SUMS,
               "P10 two live payments of one order number": ORDERS}


def store_rules(store):
    for rule, sql in STORE_RULES.items():
        count = store.rows(sql)[0][0]
        if count:
            yield f"{rule}: {count} rows"


def moves_rules(ledger, sums):
    """
    Executions by what they were for, without believing any id, and the sums at every moment. Fills
    `sums`: payment's effect id to kind to what was moved.
    """
    once = collections.Counter()
    for effect_id in ledger.moves:
        order = ledger.effects[effect_id].order
        payment = order.get("payment_id", effect_id)
        minor = int(order["amount"].replace(".", ""))
        kind = order["kind"]
        # A payment by its order number; what is done to it by its amount, which it has alone.
        what = {"charge": "pay", "authorize": "pay"}.get(kind, kind)
        once[what, order["order_no"], None if what in ("pay", "cancel") else minor] += 1
        sums[payment][kind] += minor
        moved = sums[payment]
        if moved["capture"] + moved["cancel"] > moved["authorize"]:
            yield f"P10 {payment}: more captured and cancelled than authorized: {dict(moved)}"
        if moved["refund"] > moved["charge"] + moved["capture"]:
            yield f"P10 {payment}: more refunded than captured: {dict(moved)}"
    for what, count in once.items():
        if count > 1:
            yield f"P3 {what} was carried out {count} times"


class AtDeath:
    """The service is dead: what left it must be durable, and no money moved twice so far."""

    def __init__(self, directory, store):
        self.store = store
        self.ledger = records.Ledger(directory)
        self.wire = records.Lines(directory / "wire")
        self.looks = 0
        self.arrivals = 0
        self.answers = 0
        self.left_open = 0  # Intents that the dead left in somebody's hands.

    def arrivals_look(self):
        arrived = self.ledger.read()
        granted = records.sends_of(self.store)
        for effect_id in arrived:
            effect = self.ledger.effects[effect_id]
            self.arrivals += len(effect.arrivals)
            if len(effect.arrivals) > len(granted[effect_id]):
                yield (
                    f"P1 {effect_id} arrived {len(effect.arrivals)} times and the store explains"
                    f" {len(granted[effect_id])}"
                )

    def answers_look(self):
        finals = {}
        operations = set()
        for answer in self.wire.read():
            scope = records.scope_of(answer)
            if scope is not None and records.is_final(answer):
                finals[scope] = answer
            if answer["status"] == 202 and answer["location"]:
                operations.add(answer["location"].rsplit("/", 1)[1].replace("-", ""))
        self.answers += len(finals) + len(operations)
        sql = "SELECT id, principal, endpoint, key, answer_status, answer_body FROM intents"
        for row in self.store.rows(sql):
            operations.discard(row["id"].hex())
            answer = finals.pop((row["principal"], records.ENDPOINTS[row["endpoint"]],
                                 row["key"]), None)
            kept = (row["answer_status"], row["answer_body"])
            if answer is not None and kept != (answer["status"], answer["answer"]):
                yield f"P2 {row['key']} was told {answer['status']} and the store has {kept[0]}"
        for scope in finals:
            yield f"P2 {scope} was answered and the store does not know it"
        for operation in operations:
            yield f"P2 operation {operation} was named and the store does not have it"

    def look(self):
        self.looks += 1
        sql = "SELECT count(*) FROM intents WHERE state IN (1, 2, 3)"
        self.left_open += self.store.rows(sql)[0][0]
        yield from self.arrivals_look()
        yield from self.answers_look()
        yield from store_rules(self.store)
        yield from moves_rules(self.ledger, collections.defaultdict(collections.Counter))


class Verdicts:
    """What the callers were told, by intent, and when a run could have sent."""

    def __init__(self, directory):
        self.told = collections.defaultdict(list)  # name: (slot, verdict)
        self.begun = collections.defaultdict(list)  # slot: when its processes began
        self.errors = []
        for path in sorted(directory.glob("verdicts-*")):
            slot = path.name.removeprefix("verdicts-")
            for line in records.Lines(path).read():
                if "begin" in line:
                    self.begun[slot].append(line["at"])
                if "error" in line:
                    self.errors.append(line)
                if "outcome" in line:
                    self.told[line["name"]].append((slot, line))

    def next_begin(self, slot, at):
        later = [begun for begun in self.begun[slot] if begun > at]
        return min(later) if later else float("inf")


class Audit:
    """All is over. `violations` are sentences; `counts` is what was looked at."""

    def __init__(self, directory, store=None):
        self.store = store or stores.Sqlite(directory)
        self.violations = []
        self.counts = collections.Counter()
        self.intents = {}
        for intent in records.Lines(directory / "intents").read():
            self.intents[intent["name"]] = intent
        self.ledger = records.Ledger(directory)
        self.ledger.read()
        self.granted = records.sends_of(self.store)
        self.verdicts = Verdicts(directory)
        self.journals = records.journals_of(directory)
        self.journal_keys = collections.defaultdict(set)
        for (_, name), entry in self.journals.items():
            self.journal_keys[name].add(entry["key"])
        wire = records.Lines(directory / "wire").read()
        replays = records.Lines(directory / "replays").read()
        self.wire = wire + [{**answer, "is_healed": True} for answer in replays]
        self.rows = {}  # scope: the store's row
        self.effects = {}  # effect id: the same row
        for row in self.store.rows("SELECT * FROM intents"):
            scope = (row["principal"], records.ENDPOINTS[row["endpoint"]], row["key"])
            self.rows[scope] = row
            if row["effect_id"]:
                self.effects[row["effect_id"]] = row
        self.payments = self.store.rows("SELECT * FROM payments")
        self.keys = collections.defaultdict(list)  # scope: intents (two: one key, two bodies)
        for name, intent in self.intents.items():
            for key in self.keys_of(name):
                self.keys[self.scope(intent, key)].append(intent)

    def say(self, promise, text):
        self.violations.append(f"{promise} {text}")

    def keys_of(self, name):
        """What was told, what a journal has of a run that told nothing, and what was given."""
        told = {verdict["key"] for _, verdict in self.verdicts.told[name]}
        return (told | self.journal_keys[name] | {self.intents[name]["key"]}) - {""}

    @staticmethod
    def scope(intent, key):
        principal = records.PRINCIPALS[intent["who"]]
        return principal, records.endpoint_of(intent["path"]), key

    # ---- the ledger ----

    def effect_judge(self, effect_id, effect):
        row = self.effects.get(effect_id)
        if not effect.arrivals:
            return
        self.counts["effects"] += 1
        if len(effect.executions) > 1:
            times = len(effect.executions)
            self.say("P3", f"{effect_id} moved money {times} times: {effect.order}")
        if row is None:
            self.say("P1", f"{effect_id} arrived and the store does not know it")
            return
        if effect.others:
            self.say("P3", f"{effect_id} arrived with two contents")
        if effect.profiles != {records.PROFILES[row["entry"]]}:
            self.say("P3", f"{effect_id} went to {effect.profiles}, not to {row['entry']}")
        granted = self.granted[effect_id]
        for number, at in enumerate(effect.arrivals):
            if number >= len(granted) or granted[number] > at + CLOCK_S:
                self.say("P1", f"arrival {number + 1} of {effect_id} has no attempt before it")
        self.order_judge(effect_id, effect, row)

    def order_judge(self, effect_id, effect, row):
        """It is what somebody meant, under the key that was for it."""
        scope = (row["principal"], records.ENDPOINTS[row["endpoint"]], row["key"])
        order = effect.order
        fitting = [
            intent
            for intent in self.keys[scope]
            if intent["kind"] == order["kind"]
            and intent["order"] == order["order_no"]
            and intent["body"].get("amount", order["amount"]) == order["amount"]
            and self.intents[intent["order"]]["body"]["currency"] == order["currency"]
        ]
        if not fitting:
            self.say("P3", f"{effect_id} is nothing that {scope} meant: {order}")

    def ledger_judge(self):
        for effect_id, effect in self.ledger.effects.items():
            self.effect_judge(effect_id, effect)
        self.moves_judge()

    def moves_judge(self):
        self.counts["executions"] = len(self.ledger.moves)
        self.sums = collections.defaultdict(collections.Counter)
        self.violations.extend(moves_rules(self.ledger, self.sums))

    # ---- the store ----

    def store_judge(self):
        self.violations.extend(store_rules(self.store))
        damage = self.store.damage()
        if damage:
            self.say("P11", f"the store is damaged: {damage}")
        for scope, row in self.rows.items():
            self.counts["intents in the store"] += 1
            self.row_judge(scope, row)
        for payment in self.payments:
            self.payment_judge(payment)

    def row_judge(self, scope, row):
        if not self.keys[scope]:
            self.say("P3", f"{scope} is a key that nobody has")
            return
        effect = self.ledger.effects.get(row["effect_id"])
        moved = len(effect.executions) if effect is not None else 0
        state = row["state"]
        if state == SUCCEEDED and moved == 0:
            self.say("P6", f"{scope} succeeded and the ledger has nothing")
        if state == FAILED and moved > 0:
            self.say("P6", f"{scope} failed and the money moved")
        if state in FINAL and row["answer_status"] == 0:
            self.say("P2", f"{scope} is final without an answer")
        if state not in FINAL and state != PARKED:
            self.say("P9", f"{scope} has not ended (state {state}, {self.keys[scope][0]['token']})")
        if state == PARKED and not self.may_park(self.keys[scope][0], row):
            self.say("P9", f"{scope} is parked although {self.keys[scope][0]['entry']} can tell")
        if state == FAILED and effect is not None and effect.arrivals:
            self.failed_judge(scope, effect)

    @staticmethod
    def may_park(intent, row):
        """Only where docs/recovery.md has nothing left to do: a close is asked for once."""
        if "wrong_" in intent["token"] or intent["entry"] == "sandbox-plain":
            return True
        return row["send_count"] >= SENDS_MAX or row["close_asked"]

    def failed_judge(self, scope, effect):
        """What arrived fails by the provider's word, or because it never took it (503, 429)."""
        token = self.keys[scope][0]["token"]
        if not effect.refused and "503" not in token and "429" not in token:
            self.say("P6", f"{scope} failed and no word of the provider says so ({token})")

    def payment_judge(self, row):
        """What the store adds up is what the provider moved, where nothing is undecided."""
        rows = [
            intent for intent in self.by_payment.get(row["row"], []) if intent["state"] not in FINAL
        ]
        if rows or row["state"] in (7,):
            return
        self.counts["payments"] += 1
        sums = self.sums[row["effect_id"]]
        moved = {
            "authorized": sums["charge"] + sums["authorize"],
            "captured": sums["charge"] + sums["capture"],
            "released": sums["cancel"],
            "refunded": sums["refund"],
        }
        kept = {name: row[name + "_minor"] for name in moved}
        if moved != kept:
            self.say("P10", f"order {row['order_no']}: moved {moved}, kept {kept}")
        if row["capture_pending_minor"] or row["refund_pending_minor"] or row["canceling"]:
            self.say("P10", f"order {row['order_no']}: a reservation was never returned")

    # ---- the wire ----

    def wire_judge(self):
        scopes = collections.defaultdict(list)
        for answer in self.wire:
            self.counts["answers"] += 1
            scope = records.scope_of(answer)
            if scope is not None:
                scopes[scope].append(answer)
            if answer["who"] not in records.PRINCIPALS and answer["status"] not in (401, 503):
                self.say("P13", f"a stranger was answered {answer['status']}")
        for scope, answers in scopes.items():
            self.scope_judge(scope, answers)
        self.owners_judge()

    def scope_judge(self, scope, answers):
        """All that was ever said of one key."""
        finals = [answer for answer in answers if records.is_final(answer)]
        texts = {records.said(answer) for answer in finals}
        if len(texts) > 1:
            self.say("P4", f"{scope} has {len(texts)} final answers: {sorted(map(str, texts))}")
        meant = {(answer["path"], self.meaning(answer["asked"])) for answer in finals}
        if len(meant) > 1 and not all(answer["status"] == 409 for answer in finals):
            self.say("P5", f"{scope} was answered for {len(meant)} requests")
        firsts = [answer for answer in finals if answer["replayed"] == "false"]
        if len(firsts) > 1:
            self.say("P3", f"{scope}: {len(firsts)} callers got its result as theirs")
        self.claims_judge(scope, answers)
        self.nothing_judge(scope, answers)
        if finals:
            first = min(finals, key=lambda answer: answer["at"])
            for answer in answers:
                if answer["begun"] > first["at"]:
                    self.later_judge(scope, answer, first)

    def claims_judge(self, scope, answers):
        """`Idempotent-Replayed: false` once a claim; a released key may be claimed again."""
        row = self.rows.get(scope)
        running = sum(
            answer["replayed"] == "false" and records.code_of(answer) != "not-executed"
            for answer in answers
        )
        claims = 1 + (self.reclaims.get(row["row"], 0) if row is not None else 0)
        if running > claims:
            self.say("P3", f"{scope}: {running} callers were told that they execute")

    def nothing_judge(self, scope, answers):
        """Nobody who asks after the money moved is told that nothing was executed."""
        row = self.rows.get(scope)
        effect = self.ledger.effects.get(row["effect_id"]) if row is not None else None
        moved = min(effect.executions, default=None) if effect is not None else None
        for answer in answers:
            code = records.code_of(answer)
            if code in ("not-executed", "declined") and moved and moved < answer["begun"]:
                self.say("P6", f"{scope} was told {code} after the money moved")

    @staticmethod
    def meaning(body):
        return json.dumps(json.loads(body), sort_keys=True)

    def later_judge(self, scope, answer, first):
        """
        Asked after the final answer was given: that, or that nobody can be asked now. A database
        may also leave the COMMIT unanswered that this try shared with others, until all is healed.
        """
        if records.is_final(answer):
            return
        same = self.meaning(answer["asked"]) == self.meaning(first["asked"])
        code = records.code_of(answer)
        if code in ("unavailable", "rate-limited", "too-slow"):
            return
        is_shared = not isinstance(self.store, stores.Sqlite) and not answer.get("is_healed")
        if code == "outcome-unknown" and is_shared:
            return
        if same and answer["path"] == first["path"]:
            self.say("P4", f"{scope} was final and then {answer['status']} {code}")
        elif code not in ("key-reused", "body-invalid"):
            self.say("P5", f"{scope} with another body: {answer['status']} {code}")
        elif set(UID.findall(first["answer"])) & set(UID.findall(answer["answer"])):
            self.say("P5", f"{scope} with another body shows the first one's result")

    def owners_judge(self):
        """Nobody is shown what belongs to another principal."""
        owner = {}
        for table in ("payments", "intents", "refunds"):
            sql = f"SELECT id, principal FROM {table}"
            for row in self.store.rows(sql):
                owner[row["id"].hex()] = row["principal"]
        for answer in self.wire:
            principal = records.PRINCIPALS.get(answer["who"])
            text = (answer["location"] or "") + answer["answer"]
            for uid in UID.findall(text):
                whose = owner.get(uid.replace("-", ""))
                # A problem about what was asked for may repeat its address.
                if whose != principal and uid not in answer["path"]:
                    self.say("P13", f"{principal} was shown {uid} of {whose}: {answer['path']}")

    # ---- the callers ----

    def verdicts_judge(self):
        for line in self.verdicts.errors:
            if line["error"] != 5:  # Its last process has not quite gone.
                self.say("P3", f"a caller could not run {line['name']}: {line['text']}")
        for name, told in self.verdicts.told.items():
            self.counts["verdicts"] += len(told)
            keys = len(self.keys_of(name))
            if keys > 1:
                self.say("P3", f"{name} had {keys} keys without anybody asking for one")
            over = [verdict for _, verdict in told if verdict["over"]]
            ends = {(verdict["outcome"], verdict["status"], verdict["body"].rstrip("\n"))
                    for verdict in over}
            if len(ends) > 1:
                self.say("P4", f"{name} was told {len(ends)} ends: {sorted(map(str, ends))}")
            for slot, verdict in told:
                self.verdict_judge(self.intents[name], slot, verdict)

    def verdict_judge(self, intent, slot, verdict):
        row = self.rows.get(self.scope(intent, verdict["key"]))
        effect = self.ledger.effects.get(row["effect_id"]) if row is not None else None
        moved = effect.executions if effect is not None else []
        name = intent["name"]
        if verdict["outcome"] == "done":
            if not [at for at in moved if at <= verdict["at"]]:
                self.say("P6", f"{name} was told DONE and the ledger has nothing")
            body = row["answer_body"] if row is not None else ""
            if verdict["body"].rstrip("\n") != body.rstrip("\n"):
                self.say("P4", f"{name} was told another answer than the one that is kept")
        if verdict["outcome"] == "refused":
            until = float("inf") if verdict["over"] else self.verdicts.next_begin(
                slot, verdict["at"])
            alone = not intent["key"]
            if (verdict["over"] or alone) and [at for at in moved if at < until]:
                self.say("P3", f"{name} was told REFUSED and the money moved")

    def ends_judge(self):
        """Every intent that ended is known as ended to whoever ran it, and every journal agrees."""
        self.outcomes = collections.Counter()
        for (slot, name), entry in self.journals.items():
            self.outcomes[records.OUTCOMES[entry["outcome"]]] += 1
            self.journal_judge(slot, name, entry)
        for name, told in self.verdicts.told.items():
            for slot, verdict in told:
                entry = self.journals.get((slot, name))
                if entry is None or entry["key"] != verdict["key"]:
                    self.say("P3", f"{name}: journal {slot} does not have the key that was told")
                    continue
                kept = (records.OUTCOMES[entry["outcome"]], entry["answer_status"])
                if verdict["over"] and kept != (verdict["outcome"], verdict["status"]):
                    self.say("P4", f"{name}: journal {slot} has {kept}, told was {verdict}")

    def journal_judge(self, slot, name, entry):
        self.counts["journal entries"] += 1
        scope = self.scope(self.intents[name], entry["key"])
        row = self.rows.get(scope)
        state = row["state"] if row is not None else None
        contest = len(self.keys[scope]) > 1
        if not entry["over"] and state in FINAL and not contest:
            self.say("P9", f"{name} has ended and journal {slot} does not know: {entry['message']}")
        if records.OUTCOMES[entry["outcome"]] == "done" and state != SUCCEEDED:
            self.say("P6", f"{name} is DONE in journal {slot} and {state} in the store")
        if entry["over"] and records.OUTCOMES[entry["outcome"]] == "refused" and state == SUCCEEDED:
            self.say("P3", f"{name} is REFUSED in journal {slot} and it succeeded")

    def judge(self):
        self.by_payment = collections.defaultdict(list)
        for row in self.rows.values():
            self.by_payment[row["payment_row"]].append(row)
        sql = f"SELECT intent_row, count(*) FROM events WHERE kind = {records.RECLAIMED} GROUP BY 1"
        self.reclaims = dict(map(tuple, self.store.rows(sql)))
        self.ledger_judge()
        self.store_judge()
        self.wire_judge()
        self.verdicts_judge()
        self.ends_judge()
        return self.violations

    def faults(self):
        """fault: how many effects arrived under it."""
        fired = collections.Counter()
        for effect in self.ledger.effects.values():
            if not effect.arrivals:
                continue
            payment = self.ledger.effects.get(effect.order.get("payment_id"), effect)
            method = (payment.order or {}).get("method", "tok_ok")
            first, *parts = method.removeprefix("tok_").split("+")
            kind = effect.order["kind"]
            mine = [part.removeprefix(kind + "_") for part in parts if part.startswith(kind + "_")]
            fired[mine[0] if mine else (first if "payment_id" not in effect.order else "ok")] += 1
        return fired
