"""
A keyed API that misbehaves by script, and keeps a ledger of what arrived and what it executed.

A request says in its header X-Row which script it is for. A script is a list of answers, one an
arrival; the last one is for all that follow. An answer is a word:

    STATUS[*][+MODIFIER]...   an answer of that status, spoilt by the modifiers
    silent[*] close[*] reset[*]   no answer: nothing ever, an end, a reset

A star: the action is carried out before that, if the key has not been carried out already. So the
API itself never executes one key twice; whoever sends one intent under two keys, is found out,
since executions are counted by row.

Doors are ports that treat connections badly before there is a request. Standard library only.
"""

import asyncio
import email.utils
import json
import math
import socket
import struct
import threading
import time

LARGE = 900 * 1024  # Below the client's answer_max,
HUGE = 2 * 1024 * 1024  # and beyond it.

# Of each dialect: (header that marks a replay, header with advice to repeat)
HEADERS = {
    "idem": ("Idempotent-Replayed", None),
    "ietf": ("Idempotent-Replayed", None),
    "stripe": ("Idempotent-Replayed", "Stripe-Should-Retry"),
    "adyen": ("Idempotent-Replayed", "Transient-Error"),
    "paypal": ("PayPal-Replayed", None),
}


class Answer:
    """What is written for one request, and what becomes of the connection."""

    def __init__(self, word):
        head, *self.modifiers = word.split("+")
        self.executes = head.endswith("*")
        self.head = head.rstrip("*")
        self.status = int(self.head) if self.head.isdigit() else 0
        self.after = "keep"
        self.drip_s = 0.0  # Behind each piece of so many bytes:
        self.piece = 1
        self.interim = b""
        self.headers = []
        self.body = b'{"status":%d}' % self.status
        self.type = "application/json"
        self.framing = "length"
        self.echo = True
        self.cut = None  # A function from the bytes to those that are written.


def error_body(dialect, code):
    """An error as the API's documentation shows it."""
    if dialect == "stripe":
        return {"error": {"type": code, "code": code, "message": "no"}}
    if dialect == "adyen":
        return {"status": 422, "errorCode": code, "message": "no", "errorType": "validation"}
    if dialect == "paypal":
        return {"name": "UNPROCESSABLE_ENTITY", "details": [{"issue": code}], "debug_id": "x"}
    return {"type": f"https://example.com/problems/{code}", "title": "no"}


def problem_body(value):
    """`value`: code, effect and retry, joined by '/'."""
    code, effect, retry = value.split("/")
    return {
        "type": f"urn:idem:problem:{code}",
        "title": code,
        "status": 400,
        "effect": effect,
        "retry": retry,
    }


def cut(function, after="close"):
    """A modifier that changes the bytes of the answer, and what becomes of the connection."""

    def apply(answer, _value, _row):
        answer.cut = function
        answer.after = after

    return apply


def member(**members):
    """A modifier that sets members of the answer."""

    def apply(answer, _value, _row):
        for name, value in members.items():
            setattr(answer, name, value)

    return apply


def header(make, echo=None):
    """A modifier that adds a header: what `make` says for the value and the row."""

    def apply(answer, value, row):
        answer.headers.append(make(value, row))
        answer.echo = answer.echo if echo is None else echo

    return apply


def chunk_cut(answer, _value, _row):
    answer.framing = "chunked"
    answer.cut = lambda data: data[:-7]
    answer.after = "close"


def empty(answer, _value, _row):
    answer.body = b""
    answer.framing = "none" if answer.status == 204 else "length"


def half(answer, _value, _row):
    """Whole by its length, cut inside."""
    answer.body = answer.body[:-1]


def code(answer, value, row):
    answer.body = json.dumps(error_body(row.dialect, value)).encode()


def problem(answer, value, _row):
    answer.body = json.dumps(problem_body(value)).encode()
    answer.type = "application/problem+json"


def date_in(seconds):
    return email.utils.formatdate(math.ceil(time.time()) + seconds, usegmt=True)


def retry_date():
    return date_in(1)


EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"
PROCESSING = b"HTTP/1.1 102 Processing\r\n\r\n"
PORTAL = b"<html><body>Please log in to the hotel's network</body></html>"

MODIFIERS = {
    # The bytes.
    "cut-head": cut(lambda data: data[: data.index(b"\r\n") + 9]),
    "cut-body": cut(lambda data: data[:-5]),
    "reset-body": cut(lambda data: data[:-5], "reset"),
    "long-length": cut(lambda data: data.replace(b"Content-Length: ", b"Content-Length: 9")),
    "short-length": cut(lambda data: data + b"more than was promised", "keep"),
    "bad-length": cut(lambda data: data.replace(b"Content-Length: ", b"Content-Length: -"), "keep"),
    "garbage": cut(lambda data: b"\x00\xff\x16\x03\x01 this is no HTTP at all\r\n\r\n" * 3),
    "early-only": cut(lambda data: EARLY),
    "chunk-cut": chunk_cut,
    "chunked": member(framing="chunked"),
    "until-close": member(framing="none", after="close"),
    "early": member(interim=EARLY + PROCESSING),
    "drip": member(drip_s=0.05),
    "slow": member(drip_s=0.005, piece=16),
    # The body.
    "empty": empty,
    "large": member(body=b'"%s"' % (b"x" * LARGE)),
    "huge": member(body=b'"%s"' % (b"x" * HUGE)),
    "half": half,
    "plain": member(body=b"{ no json", type="text/plain"),
    "html": member(body=PORTAL, type="text/html"),
    "code": code,
    "problem": problem,
    # The headers.
    "no-echo": member(echo=False),
    "other-echo": header(lambda value, row: ("Idempotency-Key", "somebody-elses-key"), echo=False),
    "moved": header(lambda value, row: ("Location", f"/v1/payments?moved={row.name}")),
    "location": header(lambda value, row: ("Location", f"/v1/operations/{row.name}")),
    "location-elsewhere": header(lambda value, row: ("Location", "http://localhost:1/v1/x")),
    "replayed": header(lambda value, row: (HEADERS[row.dialect][0], "true")),
    "should": header(lambda value, row: (HEADERS[row.dialect][1], "true")),
    "should-not": header(lambda value, row: (HEADERS[row.dialect][1], "false")),
    "expires": header(lambda value, row: ("Idempotency-Expires", date_in(int(value)))),
    "retry": header(lambda value, row: ("Retry-After", value)),
    "retry-date": header(lambda value, row: ("Retry-After", retry_date())),
}


def spoil(answer, modifier, row):
    """Applies one modifier, NAME or NAME=VALUE."""
    name, _, value = modifier.partition("=")
    MODIFIERS[name](answer, value, row)


def answer_bytes(answer, row, key):
    headers = [("Content-Type", answer.type), ("Date", email.utils.formatdate(usegmt=True))]
    headers += answer.headers
    if row.dialect == "idem" and answer.echo:
        headers.append(("Idempotency-Key", key))
    body = answer.body
    if answer.framing == "length":
        headers.append(("Content-Length", str(len(body))))
    elif answer.framing == "chunked":
        headers.append(("Transfer-Encoding", "chunked"))
        half = len(body) // 2
        parts = [body[:half], body[half:], b""]
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    lines = [f"HTTP/1.1 {answer.status} Whatever"]
    lines += [f"{name}: {value}" for name, value in headers]
    data = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
    return answer.interim + (answer.cut(data) if answer.cut else data)


class Row:
    """A script and what came of it."""

    def __init__(self, name, dialect, answers, questions=()):
        self.name = name
        self.dialect = dialect
        self.answers = answers
        self.questions = questions
        self.arrivals = []  # The bytes of each request.
        self.times = []
        self.asked = 0
        self.questions_seen = []  # The heads of questions.
        self.keys = set()
        self.executed = set()  # Keys.
        self.healed = False

    def answer(self, words, number):
        answer = Answer(words[min(number, len(words) - 1)])
        for modifier in answer.modifiers:
            spoil(answer, modifier, self)
        return answer

    def good_answer(self, key):
        """As a server that has recovered: what was done is shown, else it is done."""
        replayed = key in self.executed
        return self.answer(["200*+replayed" if replayed else "200*"], 0)


def request_headers(head):
    lines = head.decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in lines[1:] if ":" in line)
    return lines[0].split(" "), {name.lower(): value.strip() for name, value in pairs}


def request_key(headers):
    return (headers.get("idempotency-key") or headers.get("paypal-request-id") or "").strip('"')


async def end_tasks():
    """Ends whatever else goes on in this loop."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Server:
    """Runs in a thread of its own; rows are added before their requests come."""

    def __init__(self):
        self.rows = {}
        self.row_of_key = {}
        self.problems = []  # What went wrong in the server itself.
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.port = self.door([])

    def add(self, row):
        assert row.name not in self.rows, f"twice: {row.name}"
        self.rows[row.name] = row
        return row

    def door(self, fates, delay_s=0.0):
        """
        A port. Each connection meets the next of `fates`, and after them it is served: "reset" and
        "close" at once, "deaf" is never read, "dies" is reset when its second request comes,
        "dies-after" likewise, behind its execution. With `delay_s` connections are refused so long.
        """
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", 0))
        waiting = list(fates)

        async def listen():
            await asyncio.sleep(delay_s)

            async def connected(reader, writer):
                await self.connection(reader, writer, waiting.pop(0) if waiting else "serve")

            await asyncio.start_server(connected, sock=bound, backlog=512, limit=1 << 20)

        future = asyncio.run_coroutine_threadsafe(listen(), self.loop)
        if delay_s == 0.0:
            future.result(10)
        return bound.getsockname()[1]

    def close(self):
        asyncio.run_coroutine_threadsafe(end_tasks(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    # ---- in the server's thread ----

    @staticmethod
    def reset(writer):
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    async def connection(self, reader, writer, fate):
        try:
            if fate == "reset":
                self.reset(writer)
            elif fate == "close":
                writer.close()
            elif fate == "deaf":
                writer.transport.pause_reading()
                await asyncio.sleep(3600)
            else:
                await self.serve(reader, writer, fate)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.close()
        except Exception as error:  # pylint: disable=broad-except
            self.problems.append(repr(error))
            writer.close()

    async def serve(self, reader, writer, fate):
        number = 0
        while True:
            if number == 1 and fate == "dies":
                await reader.readexactly(1)
                self.reset(writer)
                return
            head = await reader.readuntil(b"\r\n\r\n")
            (method, target, _), headers = request_headers(head)
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            key = request_key(headers)
            if method == "GET":
                answer, row = self.question(target, key)
                row.questions_seen.append(head)
            else:
                row = self.rows[headers["x-row"]]
                answer = self.arrival(row, head + body, key)
            if number == 1 and fate == "dies-after":
                self.reset(writer)
                return
            if not await self.write(writer, answer, answer_bytes(answer, row, key)):
                return
            number += 1

    def arrival(self, row, data, key):
        self.row_of_key[key] = row
        row.keys.add(key)
        row.times.append(time.monotonic())
        answer = row.good_answer(key) if row.healed else row.answer(row.answers, len(row.arrivals))
        row.arrivals.append(data)
        if answer.executes:
            row.executed.add(key)
        return answer

    def question(self, target, key):
        name = target.rsplit("/", 1)[1]
        row = self.rows.get(name) or self.row_of_key.get(key)
        if row is None:
            row = Row("nobody", "idem", ["404"])
        number = row.asked
        row.asked += 1
        word = row.questions[min(number, len(row.questions) - 1)] if row.questions else "truth"
        if row.healed:
            word = "truth"
        if word == "truth":
            word = "final" if row.executed else "none"
        if word == "none":
            return row.answer(["404+problem=key-unknown/unknown/same-key"], 0), row
        if word not in ("final", "processing"):
            return row.answer([word], 0), row
        answer = row.answer(["200"], 0)
        answer.body = json.dumps(operation(row, word)).encode()
        return answer, row

    async def write(self, writer, answer, data):
        """False: the connection is over."""
        if answer.head == "silent":
            await asyncio.sleep(3600)
        if answer.status == 0:
            answer.after = answer.head
        elif answer.drip_s > 0:
            for index in range(0, len(data), answer.piece):
                if writer.transport.is_closing():
                    return False
                writer.write(data[index : index + answer.piece])
                await asyncio.sleep(answer.drip_s)
        else:
            writer.write(data)
            await writer.drain()
        if answer.after == "keep":
            return True
        if answer.after == "reset":
            await asyncio.sleep(0.02 if answer.status else 0)
            self.reset(writer)
        else:
            writer.close()
        return False


def operation(row, state):
    """The operation of the row as the API shows it."""
    answer = {
        "status": 201,
        "headers": {"Content-Type": "application/json", "Location": "/v1/payments/p"},
        "body": {"id": "p", "state": "captured"},
    }
    return {
        "id": row.name,
        "endpoint": "payments.create",
        "state": "succeeded" if state == "final" else "processing",
        "attempts": [],
        "timeline": [],
        "timeline_total": 0,
        "answer": answer if state == "final" else None,
    }
