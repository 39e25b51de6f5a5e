"""
Transcripts: requests and expected replies as text, played against the real program.

Goal: each row of the wire table is a document that a product owner can read, and the program
answers exactly so. Method: every *.txt beside this file is played in a world of its own. Usage:
transcript.py IDEM [file ...]

The form of a transcript, line by line:

    # words              a comment; the first one is the sentence of the test
    set NAME VALUE       a setting of the world, before the first request (test/lib/harness.py)
    > POST /v1/payments  a request: line, fields and body as '>' lines, a lone '>' between
    > Idempotency-Key: k
    >
    > {"order_no": "1"}
    < 201                the expected status
    < Location: <link>   expected fields; '<' lines before a lone '<'
    < !Set-Cookie        a field that must not be there
    <
    < {"state": "captured", "id": "<id>"}
                         the expected body: JSON is compared by meaning, members that are not named
                         may be there; `=` before it forbids them; text is compared as it is;
                         `same NAME` means: byte for byte the body kept by `keep NAME`
    keep NAME            keeps the last body under a name
    rows SELECT ...      what the store holds, then one '= value|value' line a row
    ledger ORDER arrivals=1 executions=1
    wait KEY STATE [ENDPOINT]   until the operation of that key is in that state
    restart              stops the service and starts it again; `kill` kills it first
    drain                sends TERM and goes on

`<name>` in an expectation binds what stands there the first time and must be equal later; `<*>`
is anything. `{name}` in a request is replaced by what was bound, `{x*9}` by nine times x.
Requests carry `Authorization`, `Host` and, with a body, `Content-Type: application/json` unless
they say otherwise: `> -Authorization` leaves the field out.

Beside what a transcript expects, every answer that concludes something about a key is held to name
it: a 2xx, and a problem with effect `done`, or with `none` and `new-key` or `query`. A client
believes it only then (src/client/meaning.def).
"""

import json
import pathlib
import re
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
import harness  # noqa: E402
from harness import World  # noqa: E402


class Mismatch(AssertionError):
    pass


def match_text(expected, actual, bound, where):
    """Compares text that may hold <names>."""
    parts = re.split(r"<([a-z0-9_*]+)>", expected)
    pattern = ""
    names = []
    for index, part in enumerate(parts):
        if index % 2 == 0:
            pattern += re.escape(part)
        elif part in bound:
            pattern += re.escape(bound[part])
        else:
            pattern += "(.*)" if part == "*" or part not in names else f"(?:{part})"
            names.append(part)
    found = re.fullmatch(pattern, actual, re.DOTALL)
    if not found:
        raise Mismatch(f"{where}: expected {expected!r}, got {actual!r} (bound: {bound})")
    for name, value in zip(names, found.groups()):
        if name != "*":
            bound[name] = value


def match_json(expected, actual, bound, where, exact):
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            raise Mismatch(f"{where}: expected an object, got {actual!r}")
        for name, value in expected.items():
            if name not in actual:
                raise Mismatch(f"{where}: member {name!r} is missing in {actual!r}")
            match_json(value, actual[name], bound, f"{where}.{name}", exact)
        if exact and set(actual) != set(expected):
            raise Mismatch(f"{where}: members {sorted(set(actual) - set(expected))} not expected")
    elif isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            raise Mismatch(f"{where}: expected {expected!r}, got {actual!r}")
        for index, value in enumerate(expected):
            match_json(value, actual[index], bound, f"{where}[{index}]", exact)
    elif isinstance(expected, str) and isinstance(actual, str):
        match_text(expected, actual, bound, where)
    elif expected == "<*>":
        return
    elif expected != actual:
        raise Mismatch(f"{where}: expected {expected!r}, got {actual!r}")


def key_text(value):
    """A key as it is meant, quoted or bare."""
    quoted = re.fullmatch(r'"((?:[^"\\]|\\.)*)".*', value)
    return value if quoted is None else re.sub(r"\\(.)", r"\1", quoted.group(1))


def concludes(reply):
    """Whether the reply says for good what became of the key."""
    if reply.status < 300:
        return True
    try:
        problem = json.loads(reply.body)
    except ValueError:
        return False
    effect, retry = problem.get("effect"), problem.get("retry")
    return effect == "done" or (effect == "none" and retry in ("new-key", "query"))


class Player:
    def __init__(self, idem, path):
        self.path = path
        self.lines = path.read_text().split("\n")
        self.at = 0
        self.bound = {}
        self.kept = {}
        self.reply = None
        settings = {}
        more = []
        for line in self.lines:
            if line.startswith("set "):
                _, name, value = line.split(" ", 2)
                settings[name] = value
            elif line.startswith("config "):
                more.append(line[len("config "):])
        self.world = World(idem, settings, "\n".join(more))

    def fail(self, line_number, error):
        shown = "" if self.reply is None else f"\nthe reply was\n{self.reply!r}"
        raise AssertionError(f"{self.path.name}:{line_number}: {error}{shown}") from error

    def block(self, mark):
        """The lines from here on that begin with `mark`, without it."""
        taken = []
        while self.at < len(self.lines) and self.lines[self.at][:1] == mark:
            taken.append(self.lines[self.at][2:])
            self.at += 1
        return taken

    def request(self):
        lines = [self.fill(line) for line in self.block(">")]
        method, path = lines[0].split(" ", 1)
        headers, left_out, body = [], set(), b""
        for index, line in enumerate(lines[1:], 1):
            if line == "":
                body = "\n".join(lines[index + 1:]).encode("utf-8", "surrogateescape")
                break
            if line.startswith("-"):
                left_out.add(line[1:].lower())
                continue
            name, value = line.split(":", 1)
            headers.append((name, value.strip()))
        names = {name.lower() for name, _ in headers} | left_out
        if "authorization" not in names:
            headers.append(("Authorization", f"Bearer {harness.BEARER}"))
        if body and "content-type" not in names:
            headers.append(("Content-Type", "application/json"))
        connection = harness.Connection(self.world.port)
        try:
            connection.send(harness.encode(method, path, headers, body))
            self.reply = connection.receive(method)
        finally:
            connection.close()
        self.expect_named([value for name, value in headers if name.lower() == "idempotency-key"])

    def expect_named(self, keys):
        if len(keys) != 1 or not concludes(self.reply):
            return
        named = self.reply.header("Idempotency-Key")
        if named is None or key_text(named) != key_text(keys[0]):
            raise Mismatch(f"the answer concludes, and does not name the key {keys[0]}: {named}")

    def fill(self, line):
        line = re.sub(r"\{(.)\*(\d+)\}", lambda found: found.group(1) * int(found.group(2)), line)
        return re.sub(r"\{([a-z0-9_]+)\}",
                      lambda found: self.bound.get(found.group(1), found.group(0)), line)

    def expect(self):
        lines = self.block("<")
        if self.reply.status != int(lines[0]):
            raise Mismatch(f"expected status {lines[0]}, got {self.reply.status}")
        for index, line in enumerate(lines[1:], 1):
            if line == "":
                self.expect_body("\n".join(lines[index + 1:]))
                return
            if line.startswith("!"):
                if self.reply.header(line[1:]) is not None:
                    raise Mismatch(f"field {line[1:]} is there")
                continue
            name, value = line.split(":", 1)
            actual = self.reply.header(name)
            if actual is None:
                raise Mismatch(f"field {name} is missing")
            match_text(value.strip(), actual, self.bound, name)

    def expect_body(self, text):
        if text.startswith("same "):
            if self.kept[text[5:]] != self.reply.body:
                raise Mismatch(f"the body is not the one kept as {text[5:]}")
            return
        exact = text.startswith("=")
        text = text[1:] if exact else text
        body = self.reply.body.decode()
        try:
            expected = json.loads(text)
        except json.JSONDecodeError:
            match_text(text, body, self.bound, "body")
            return
        match_json(expected, json.loads(body), self.bound, "body", exact)

    def expect_rows(self, sql):
        expected = [line.strip() for line in self.block("=")]
        actual = ["|".join(str(value) for value in row) for row in self.world.rows(self.fill(sql))]
        if expected != actual:
            raise Mismatch(f"rows: expected {expected}, got {actual}")

    def expect_ledger(self, words):
        order_no, *counts = words.split()
        ledger = self.world.ledger(order_no=order_no)
        for count in counts:
            name, value = count.split("=")
            if ledger[name] != int(value):
                raise Mismatch(f"ledger of {order_no}: {name} is {ledger[name]}, not {value}")

    def wait(self, words):
        key, state, *endpoint = words.split()
        self.world.wait_state(key, [state], *(endpoint or ["payments.create"]))

    def play_line(self, line):
        verb, _, words = line.partition(" ")
        if line.startswith(">"):
            self.at -= 1
            self.request()
        elif line.startswith("<"):
            self.at -= 1
            self.expect()
        elif verb == "keep":
            self.kept[words] = self.reply.body
        elif verb == "rows":
            self.expect_rows(words)
        elif verb == "ledger":
            self.expect_ledger(words)
        elif verb == "wait":
            self.wait(words)
        elif verb == "restart":
            self.world.stop()
            self.world.start()
        elif verb == "kill":
            self.world.kill()
            self.world.start()
        elif verb == "drain":
            self.world.service.send_signal(signal.SIGTERM)
            port = self.world.port
            self.world.wait_until(lambda: not self.world.answers(port, "/readyz"), "drains")
        elif line and not line.startswith("#") and verb not in ("set", "config"):
            raise Mismatch(f"not a line of a transcript: {line}")

    def play(self):
        requests = 0
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            number = self.at
            try:
                self.play_line(line)
            except (AssertionError, OSError, harness.Gone, KeyError, ValueError) as error:
                self.fail(number, error)
            requests += line.startswith(">")
        if requests == 0:
            raise AssertionError(f"{self.path.name} asks nothing")


def main():
    idem, names = sys.argv[1], sys.argv[2:]
    files = [path for path in sorted(HERE.glob("*.txt")) if not names or path.name in names]

    def test_of(path):
        def test(program):
            player = Player(program, path)
            try:
                player.play()
            except BaseException:
                sys.stdout.write(player.world.log_text()[-2000:])
                raise
            finally:
                player.world.close()

        test.__name__ = path.name
        test.__doc__ = path.read_text().splitlines()[0].lstrip("# ")
        return test

    harness.run([test_of(path) for path in files], idem, [])


if __name__ == "__main__":
    main()
