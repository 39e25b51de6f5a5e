"""
What a crash run leaves behind, read back: nothing of it comes from the program under test but the
store, and the store is only read (test/lib/store.py).

    intents       what was meant (load.py)
    verdicts-N    every verdict of caller N, its processes' begin and end, each with its time
    wire          every answer that left the service (wire.py)
    replays       in the same form, the answers to all requests sent once more at the end
    ledger        the sandbox's own file: arrivals, executions and words of the provider
    idem.db       the store; of a kept run on PostgreSQL, its tables in this form
    journal-N     the journal of caller N
"""

import collections
import contextlib
import json
import sqlite3

ENDPOINTS = {1: "create", 2: "capture", 3: "cancel", 4: "refunds"}
CLAIMED, DISPATCHED, UNKNOWN, PARKED, SUCCEEDED, FAILED, RELEASED = range(1, 8)
FINAL = (SUCCEEDED, FAILED)
RECLAIMED = 16  # The event of a released key that runs again.
PROFILES = {  # entry: profile
    "sandbox": "dedup",
    "sandbox-lagging": "lagging",
    "sandbox-closing": "closing",
    "sandbox-plain": "plain",
    "sandbox-blind": "blind",
}


class Lines:
    """A file of JSON lines that grows; each line is read once."""

    def __init__(self, path):
        self.path = path
        self.offset = 0

    def read(self):
        if not self.path.exists():
            return []
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]  # A torn last line is not one yet.
        self.offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


class Effect:
    """What the provider has on one id."""

    def __init__(self):
        self.profiles = set()
        self.order = None
        self.arrivals = []  # Seconds.
        self.executions = []
        self.others = 0  # Arrivals with another content.
        self.refused = False  # Declined, invalid or closed: the provider's word that it is over.


class Ledger:
    def __init__(self, directory):
        self.lines = Lines(directory / "ledger")
        self.effects = collections.defaultdict(Effect)
        self.moves = []  # Executions, in order: (id, at)

    def read(self):
        """Reads on; returns the ids that arrived since."""
        arrived = set()
        for event in self.lines.read():
            effect = self.effects[event["id"]]
            effect.profiles.add(event["profile"])
            effect.order = effect.order or event.get("order")
            at = event["at"] / 1e6
            if event["event"] == "arrival":
                effect.arrivals.append(at)
                effect.others += event.get("other", False)
                arrived.add(event["id"])
            if event["event"] == "execution":
                effect.executions.append(at)
                self.moves.append(event["id"])
            if event["event"] in ("decline", "invalid") or event.get("closes"):
                effect.refused = True
        return arrived


def sends_of(store):
    """effect id: when each of its sends was granted, in order."""
    granted = collections.defaultdict(list)
    sql = (
        "SELECT effect_id, granted_us FROM intents JOIN sends ON intent_row = intents.row"
        " WHERE effect_id <> '' ORDER BY granted_us"
    )
    for row in store.rows(sql):
        granted[row["effect_id"]].append(row["granted_us"] / 1e6)
    return granted


OUTCOMES = ("none", "done", "refused", "unknown")


def journals_of(directory):
    """(slot, name): what the caller's journal has."""
    entries = {}
    sql = "SELECT name, key, outcome, over, answer_status, message FROM intents"
    for path in directory.glob("journal-*[0-9]"):
        slot = path.name.removeprefix("journal-")
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            for row in database.execute(sql):
                entries[slot, row["name"]] = row
    return entries


PRINCIPALS = {"test-secret": "shop", "other-secret": "rival"}


def endpoint_of(path):
    return "create" if path == "/v1/payments" else path.rsplit("/", 1)[1]


def scope_of(answer):
    """(principal, endpoint, key) of a keyed answer; None for others."""
    principal = PRINCIPALS.get(answer["who"])
    if answer["method"] != "POST" or principal is None or not answer["key"]:
        return None
    return principal, endpoint_of(answer["path"]), answer["key"]


def code_of(answer):
    """The problem's code; "" for what is none."""
    if answer["type"] != "application/problem+json":
        return ""
    return json.loads(answer["answer"])["type"].rsplit(":", 1)[1]


def is_final(answer):
    """The answer of a key that is over, by what the API says of itself (docs/api.md)."""
    if answer["status"] in (200, 201):
        return True
    if answer["type"] != "application/problem+json":
        return False
    problem = json.loads(answer["answer"])
    return problem["effect"] in ("none", "done") and problem["retry"] in ("new-key", "query")


def said(answer):
    """What may never change of a final answer."""
    return answer["status"], answer["type"], answer["location"], answer["answer"]
