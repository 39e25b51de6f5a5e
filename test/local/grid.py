"""
The SQL face walks the grid: test/local/grid.txt, which says what it means.

Goal: each operation in each state answers as the grid says, in PostgreSQL.

Method: one connection of a role that may call the functions, one of the server's owner to let time
pass. Usage: grid.py [FIRST WORDS OF A CASE]
"""

import pathlib
import shlex
import sys
import uuid

import face
from face import psycopg

GRID = pathlib.Path(__file__).resolve().parent / "grid.txt"
TIMES = ["lease_end", "created", "updated", "finished", "expires", "contradiction_at"]
NOBODY = "-"
BODIES = {NOBODY: b""}


class Case:
    def __init__(self, line, name):
        self.line = line
        self.name = name
        self.steps = []  # (line, words, expected words)


def parse(text):
    cases = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0].strip()
        if not line:
            continue
        if line.startswith("case "):
            cases.append(Case(number, line[5:]))
            continue
        # The sign stands alone: it also stands inside words.
        left, _, right = (line + " ").partition(" = ")
        cases[-1].steps.append((number, shlex.split(left), shlex.split(right)))
    return cases


def split(words):
    """Plain words, and those of the form name=value."""
    plain = [word for word in words if "=" not in word]
    return plain, dict(word.split("=", 1) for word in words if "=" in word)


def shown(value):
    if value is None or value in (b"", ""):
        return NOBODY
    return bytes(value).decode() if isinstance(value, (bytes, memoryview)) else str(value)


def seconds(text):
    return f"{text} seconds"


class Runner:
    def __init__(self, owner, connection):
        self.owner = owner  # face.Face
        self.connection = connection
        self.actors = {}
        self.ids = {}

    def call(self, function, **arguments):
        given = {name: value for name, value in arguments.items() if value is not None}
        names = ", ".join(f"{name} => %s" for name in given)
        cursor = self.connection.cursor(row_factory=psycopg.rows.dict_row)
        cursor.execute(f"SELECT * FROM idem.{function}({names})", tuple(given.values()))
        return cursor.fetchall()

    def token(self, actor):
        return self.actors.setdefault(actor, (None, uuid.uuid4()))[1]

    def scope(self, key, named):
        return {
            "principal": named.get("principal", "p1"),
            "endpoint": named.get("endpoint", "e1"),
            "key": key,
        }

    def id_checked(self, scope, row, is_new=False):
        name = tuple(scope.values())
        if is_new:
            self.ids[name] = row["id"]
        if row.get("id") is not None:
            assert self.ids[name] == row["id"], "the record's id has changed"
        return str(self.ids.get(name))

    def effect(self, scope, row):
        made = self.id_checked(scope, row)
        return shown(row["effect_id"]).replace(made, "@")

    # ---- operations: each returns plain words and named ones ----

    def claim(self, plain, named):
        actor, key, fingerprint, *rest = plain
        scope = self.scope(key, named)
        lease = named.get("lease")
        row = self.call(
            "claim",
            **scope,
            fingerprint=fingerprint.encode(),
            lease=seconds(lease) if lease else None,
            local_only="local" in rest,
        )[0]
        outcome = row["outcome"]
        words = [outcome]
        fresh = outcome == "execute" and row["epoch"] == 1
        self.id_checked(scope, row, fresh)
        if outcome == "execute":
            self.actors[actor] = (scope, row["token"])
        if outcome == "replay":
            words += [row["verdict"], str(row["status"]), shown(row["body"])]
        if outcome == "expired":
            words += [row["verdict"]]
        if outcome == "unknown":
            words += [self.effect(scope, row)]
        if outcome == "in_progress":
            assert row["retry_after"] >= 1, row
        if outcome in ("mismatch", "in_progress"):
            told = {name for name, value in row.items() if value is not None}
            assert told <= {"outcome", "retry_after"}, f"told too much: {told}"
        return words, {
            "epoch": shown(row["epoch"]),
            "step": shown(row["step"]),
            "data": shown(row["step_data"]),
            "headers": shown(row["headers"]),
        }

    def dispatch(self, plain, _):
        actor, effect = (plain + [None])[:2]
        row = self.call("dispatch", token=self.token(actor), effect=effect)[0]
        words = [row["outcome"]]
        if row["effect_id"] is not None:
            scope = self.actors[actor][0]
            words.append(row["effect_id"].replace(str(self.ids[tuple(scope.values())]), "@"))
        return words, {}

    def heartbeat(self, plain, named):
        lease = seconds(named["lease"]) if "lease" in named else None
        return [self.call("heartbeat", token=self.token(plain[0]), lease=lease)[0]["outcome"]], {}

    def mark(self, plain, named):
        actor, step, data = (plain + [None])[:3]
        row = self.call(
            "mark",
            token=self.token(actor),
            step=step,
            data=data.encode() if data else None,
            lease=seconds(named["lease"]) if "lease" in named else None,
        )[0]
        return [row["outcome"]], {}

    def answer(self, plain, named):
        verdict, status, body = plain
        return {
            "verdict": verdict,
            "status": int(status),
            "headers": named.get("headers"),
            "body": BODIES.get(body, body.encode()),
            "retention": seconds(named["retention"]) if "retention" in named else None,
        }

    def complete(self, plain, named):
        answer = self.answer(plain[1:], named)
        return [self.call("complete", token=self.token(plain[0]), **answer)[0]["outcome"]], {}

    def release(self, plain, _):
        said = "not_executed" in plain or None
        row = self.call("release", token=self.token(plain[0]), not_executed=said)[0]
        return [row["outcome"]], {}

    def settle(self, plain, named):
        key, verdict, *rest = plain
        if verdict == "not_executed":
            more = {"verdict": verdict}
        elif verdict == "executed":
            step, data = (rest + [None])[:2]
            more = {"verdict": verdict, "step": step, "step_data": data.encode() if data else None}
        else:
            more = self.answer([verdict, *rest], named)
        row = self.call(
            "settle",
            **self.scope(key, named),
            by=named["by"],
            reason=named["reason"],
            effect=named.get("effect"),
            **more,
        )[0]
        return [row["outcome"]], {}

    def lookup(self, plain, named):
        scope = self.scope(plain[0], named)
        rows = self.call("lookup", **scope)
        if not rows:
            return ["absent"], {}
        row = rows[0]
        self.id_checked(scope, row)
        said = {
            "epoch": row["epoch"],
            "local": "yes" if row["local_only"] else "no",
            "effect": row["effect"],
            "step": row["step"],
            "data": row["step_data"],
            "verdict": row["verdict"],
            "status": row["status"],
            "headers": row["headers"],
            "body": row["body"],
            "by": row["evidence_by"],
            "reason": row["evidence_reason"],
            "contradiction": row["contradiction"],
            "contradiction_by": row["contradiction_by"],
            "contradiction_reason": row["contradiction_reason"],
        }
        return [row["state"]], {name: shown(value) for name, value in said.items()}

    def due(self, plain, _):
        rows = self.call("due", rows_max=int(plain[0]) if plain else None)
        words = []
        for row in rows:
            scope = {name: row[name] for name in ("principal", "endpoint", "key")}
            self.id_checked(scope, row)
            words.append(":".join(filter(None, (row["key"], row["state"], row["step"]))))
        return words or ["nothing"], {}

    def reap(self, plain, _):
        row = self.owner.admin(f"SELECT * FROM idem.reap({plain[0] if plain else 1000})")[0]
        return [str(count) for count in row], {}

    def tick(self, plain, _):
        moved = ", ".join(f"{name} = {name} - interval '{plain[0]} s'" for name in TIMES)
        self.owner.admin(f"UPDATE idem.local_records SET {moved}")
        return [], {}

    def begin(self, _, __):
        self.connection.execute("BEGIN")
        return [], {}

    def commit(self, _, __):
        self.connection.execute("COMMIT")
        return [], {}

    def rollback(self, _, __):
        self.connection.execute("ROLLBACK")
        return [], {}

    def step(self, words, expected):
        plain, named = split(words)
        told, told_named = getattr(self, plain[0])(plain[1:], named)
        wanted, wanted_named = split(expected)
        got_named = {name: told_named.get(name) for name in wanted_named}
        if told != wanted or got_named != wanted_named:
            got = told + [f"{name}={value}" for name, value in got_named.items()]
            raise AssertionError(f"told: {' '.join(got)}")


def walk(owner, cases):
    """How many were not as the grid says."""
    owner.role("p1", "idem_caller")
    for principal in ("p2", "p3"):
        owner.admin("SELECT idem.allow('p1', %s)", principal)
    connection = owner.connect("p1")
    bad = 0
    for number, case in enumerate(cases, 1):
        owner.clear()
        runner = Runner(owner, connection)
        try:
            for line, step, expected in case.steps:
                runner.step(step, expected)
            print(f"ok {number} - {case.name}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            bad += 1
            print(f"not ok {number} - {case.name}\n# grid.txt:{line}: {' '.join(step)}")
            print(f"# expected: {' '.join(expected)}")
            print(f"# {type(error).__name__}: {error}", flush=True)
            connection.execute("ROLLBACK")
    connection.close()
    return bad


def main(words):
    start = " ".join(words)
    cases = parse(GRID.read_text(encoding="utf-8"))
    cases = [case for case in cases if case.name.startswith(start)]
    print(f"1..{len(cases)}", flush=True)
    owner = face.Face()
    try:
        bad = walk(owner, cases)
    finally:
        owner.close()
    sys.exit(1 if bad or not cases else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
