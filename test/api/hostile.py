"""
Hostile input, from outside: bytes that are not a request, requests that two servers could read in
two ways, and callers who are slow, silent, too many, too large or gone.

Goal: each is refused with its documented code or closed on time; nothing is recorded, no provider
is called, and the process keeps its memory and its descriptors. Method: nearly every row is a
payment that would be taken, with one thing wrong; so what must not happen could happen. After each
row the store's rows are counted, after each test the sandbox's ledger; where a limit is a number,
N is served and N + 1 is not. The rows of nginx's column in the table of measured servers are
marked (nginx). Usage: hostile.py IDEM [part of a test's name ...]
"""

import contextlib
import json
import os
import pathlib
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
import store  # noqa: E402
from harness import BEARER, Connection, Gone, World  # noqa: E402

KEY = "hostile-key"
SOON_S = 3.0  # What is refused at once is refused within this, on a loaded machine too.
MIB = 1024 * 1024
CRLF = b"\r\n"
HEAD_BYTES = 4096
BODY_BYTES = 16384
FIELDS_MAX = 64
KEY_MAX = 255
PENDING_BYTES = 32 * MIB
REQUEST_ROOM = 4096  # What an incomplete request costs beside its bytes, at most.
LINE = b"POST /v1/payments HTTP/1.1"


class Edge(World):
    """A world whose service has small limits and short deadlines."""

    def __init__(self, idem, limits=None, timings=None):
        self.limits = {"head_bytes": HEAD_BYTES, "body_bytes": BODY_BYTES, **(limits or {})}
        self.timings = {
            "head_timeout_ms": 300,
            "body_timeout_ms": 500,
            "idle_timeout_ms": 10000,
            "write_timeout_ms": 500,
            **(timings or {}),
        }
        super().__init__(idem, {"limits": self.settings_text(self.limits)}, start=False)
        self.paid = 0

    def begin(self):
        """Starts all, and notes what an honest payment has left behind."""
        self.start_sandbox()
        self.start()
        assert self.pay("warm", "order-warm").status == 201
        self.paid = 1
        self.wait_until(lambda: self.callers() == 0, "the warming caller is gone")
        self.files_before = self.files() + store.FILES_LATER
        self.memory_before = self.memory()

    @staticmethod
    def settings_text(settings):
        return " ".join(f"{name} = {value};" for name, value in settings.items())

    def write_config(self):
        super().write_config()
        text = self.config_path().read_text()
        assert text.count("timings = { ") == 1
        more = self.settings_text(self.timings)
        self.config_path().write_text(text.replace("timings = { ", "timings = { " + more + " "))

    def seconds(self, timing):
        return self.timings[timing] / 1000

    # ---- the process ----

    def files(self):
        return len(os.listdir(f"/proc/{self.service.pid}/fd"))

    def callers(self):
        """Connections to the service that its side still holds."""
        port = f":{self.port:04X}"
        count = 0
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            local, state, inode = (line.split()[index] for index in (1, 3, 9))
            count += local.endswith(port) and state != "0A" and inode != "0"  # 0A: the listener.
        return count

    def memory(self):
        """Resident bytes."""
        for line in open(f"/proc/{self.service.pid}/status"):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def sanitized(self):
        return "libasan" in pathlib.Path(f"/proc/{self.service.pid}/maps").read_text()

    # ---- judging ----

    def expect_recorded(self, count):
        rows = self.rows("SELECT count(*) FROM intents")[0][0]
        assert rows == count, f"{rows} intents in the store, not {count}"

    def expect_untouched(self, growth_max=8 * MIB, files_more=0):
        """Nothing but `paid` has happened, and everything taken has been given back."""
        assert self.alive(), f"the service ended:\n{self.log_text()[-2000:]}"
        self.wait_until(lambda: self.files() <= self.files_before + files_more,
                        f"{self.files()} descriptors become {self.files_before} + {files_more}")
        self.expect_recorded(self.paid)
        ledger = self.ledger()
        assert ledger["executions"] == self.paid, ledger["executions"]
        assert all(effect["executions"] == 1 for effect in ledger["effects"])
        growth = self.memory() - self.memory_before
        bound = growth_max + (512 * MIB if self.sanitized() else 0)  # Freed memory is kept there.
        assert growth < bound, f"{growth} bytes more are resident, at most {bound}"
        assert KEY not in self.log_text(), "a key is in the log"

    def expect_honest(self, key=KEY):
        """A payment under the key that was abused: it is new, and it is paid."""
        began = time.monotonic()
        reply = self.pay(key, f"order-{key}")
        took = time.monotonic() - began
        assert reply.status == 201, reply
        assert reply.header("Idempotent-Replayed") == "false", "the key was taken"
        assert took < SOON_S, f"an honest payment took {took:.1f} s"
        self.paid += 1


@contextlib.contextmanager
def edge(idem, limits=None, timings=None):
    world = Edge(idem, limits, timings)
    try:
        world.begin()
        yield world
    except BaseException:
        sys.stdout.write(world.log_text()[-2000:])
        raise
    finally:
        world.close()


# ---- making requests ----


def body_of(order_no="hostile-order", more=b""):
    return (b'{"order_no":"%b","amount":"1.00","currency":"CNY","provider":"sandbox",'
            b'"method":"tok_ok"%b}' % (order_no.encode(), more))


BODY = body_of()


def fields_of(body, key=KEY):
    return {
        b"Host": b"127.0.0.1",
        b"Authorization": b"Bearer " + BEARER.encode(),
        b"Content-Type": b"application/json",
        b"Idempotency-Key": key.encode("latin-1"),
        b"Content-Length": b"%d" % len(body),
    }


def request(line=LINE, add=b"", without=(), body=BODY, key=KEY):
    """A payment; `add` is more of its head, as it is, with its line ends."""
    fields = fields_of(body, key)
    lines = [name + b": " + value for name, value in fields.items() if name not in without]
    return CRLF.join([line, *lines]) + CRLF + add + CRLF + body


def chunked(frame, line=LINE, add=b"Transfer-Encoding: chunked\r\n"):
    return request(line, add, without=(b"Content-Length",), body=frame)


def chunk(data, extension=b""):
    return b"%x%b\r\n%b\r\n" % (len(data), extension, data)


LAST_CHUNK = b"0\r\n\r\n"


def head_of(size):
    """A payment whose head has exactly `size` bytes."""
    bare = request(add=b"X-Padding: \r\n")
    return request(add=b"X-Padding: " + b"x" * (size - len(bare) + len(BODY)) + CRLF)


def fields_exactly(count):
    return request(add=b"X: y\r\n" * (count - len(fields_of(BODY))))


def body_exactly(size, order_no):
    """JSON may have space around it."""
    body = body_of(order_no)
    return body + b" " * (size - len(body))


# ---- tables ----


class Row:
    """`status` None: closed without an answer. `ends`: the connection ends after the answer."""

    def __init__(self, name, data, status, code=None, ends=True):
        self.name, self.data, self.status, self.code, self.ends = name, data, status, code, ends


def bad(name, data, status=400, code="request-invalid"):
    return Row(name, data, status, code)


def answered(name, data, status, code):
    """Refused by what it means and not by how it is written: the connection goes on."""
    return Row(name, data, status, code, ends=False)


def without_length(value):
    return request(add=b"Content-Length: " + value + CRLF, without=(b"Content-Length",))


def coding(value):
    return chunked(chunk(BODY) + LAST_CHUNK, add=b"Transfer-Encoding: " + value + CRLF)


def hosts(*values):
    return request(add=b"".join(b"Host: " + value + CRLF for value in values), without=(b"Host",))


LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CODED = b"Transfer-Encoding: chunked\r\n"
FRAME = chunk(BODY) + LAST_CHUNK
HALF = len(BODY) // 2


def length_rows():
    length = b"%d" % len(BODY)
    rows = [
        bad("Content-Length and Transfer-Encoding (nginx)", request(add=CODED, body=FRAME)),
        bad("Transfer-Encoding before Content-Length",
            chunked(FRAME, add=CODED + b"Content-Length: %d\r\n" % len(FRAME))),
        bad("a Content-Length that would cut the chunked body",
            chunked(FRAME, add=b"Content-Length: 4\r\n" + CODED)),
        bad("two different Content-Length (nginx)", request(add=b"Content-Length: 2\r\n")),
        bad("two equal Content-Length", request(add=LENGTH)),
        bad("two equal Content-Length in two spellings", request(add=LENGTH.lower())),
        bad("two Transfer-Encoding", chunked(FRAME, add=CODED + CODED)),
        bad("Transfer-Encoding twice, the second identity",
            chunked(FRAME, add=CODED + b"Transfer-Encoding: identity\r\n")),
        bad("Transfer-Encoding with a space before the colon, and Content-Length (nginx)",
            request(add=b"Transfer-Encoding : chunked\r\n")),
        bad("Content-Length with a space before the colon",
            request(add=b"Content-Length : %b\r\n" % length, without=(b"Content-Length",))),
        bad("HTTP/1.0 and chunked (nginx)", chunked(FRAME, b"POST /v1/payments HTTP/1.0")),
        bad("Content-Length over 64 bits that wraps to the length",
            without_length(b"%d" % (2**64 + len(BODY)))),
        bad("Content-Length of 2^63", without_length(b"%d" % 2**63)),
        bad("Content-Length of 400 digits", without_length(b"9" * 400)),
    ]
    for value in (b"+" + length, b"-" + length, b"-1", b"0x" + length, length + b", " + length,
                  length + b" 3", length + b"\t3", length + b";", length + b".0", b"1e2", b"1_0",
                  b"\xd9\xa1", b"", b'"%b"' % length, length + b"\x0b"):
        rows.append(bad(f"Content-Length: {value!r} (nginx)", without_length(value)))
    for value in (b"xchunked", b"chunked, identity", b"identity, chunked", b"chunked, chunked",
                  b"identity", b"gzip", b"gzip, chunked", b'"chunked"', b"chunked;q=1", b"",
                  b"chunked,"):
        rows.append(bad(f"Transfer-Encoding: {value!r} (nginx)", coding(value), 501,
                        "not-supported"))
    rows.append(bad("Transfer-Encoding with a vertical tab", coding(b"\x0bchunked")))
    return rows


def chunk_rows():
    frames = {
        "size 0x2 (nginx)": b"0x%x\r\n%b\r\n" % (len(BODY), BODY) + LAST_CHUNK,
        "size over 64 bits that wraps (nginx)":
            b"1%016x\r\n%b\r\n" % (len(BODY), BODY) + LAST_CHUNK,
        "size of 17 digits that are zeros": b"%017x\r\n%b\r\n" % (len(BODY), BODY) + LAST_CHUNK,
        "size with a sign": b"+%x\r\n%b\r\n" % (len(BODY), BODY) + LAST_CHUNK,
        "negative size": b"-1\r\n" + FRAME,
        "size with a space before": b" " + FRAME,
        "size with a space behind": b"%x \r\n%b\r\n" % (len(BODY), BODY) + LAST_CHUNK,
        "no size": b"\r\n" + FRAME,
        "no size but an extension": b";a=b\r\n" + FRAME,
        "no hexadecimal digit": b"g\r\n" + FRAME,
        "data not ended by CRLF (nginx)": b"%x\r\n%bX\r\n" % (len(BODY), BODY) + LAST_CHUNK,
        "data not ended at all": b"%x\r\n%b" % (len(BODY), BODY) + LAST_CHUNK,
        "data ended by two bytes that are not CRLF":
            b"%x\r\n%bXX" % (len(BODY), BODY) + LAST_CHUNK,
        "data ended by LF": b"%x\r\n%b\n" % (len(BODY), BODY) + LAST_CHUNK,
        "size ended by LF": b"%x\n%b\r\n" % (len(BODY), BODY) + LAST_CHUNK,
        "size ended by CR": b"%x\r%b\r\n" % (len(BODY), BODY) + LAST_CHUNK,
        "last chunk ended by LF": chunk(BODY) + b"0\n\n",
        "more data than its size": b"%x\r\n%b\r\n" % (HALF, BODY) + LAST_CHUNK,
        "extension with a bare LF": b"%x;a\n%b\r\n" % (len(BODY), BODY) + LAST_CHUNK,
        "extension with a NUL": chunk(BODY, b";a=\0") + LAST_CHUNK,
        "extension of 1,000 bytes": chunk(BODY, b";" + b"a" * 999) + LAST_CHUNK,
        "extensions of 300 bytes in 100 chunks":
            b"".join(chunk(b" ", b";aaa") for _ in range(100)) + FRAME,
        "trailer field": chunk(BODY) + b"0\r\nX-Trailer: y\r\n\r\n",
        "trailer Content-Length": chunk(BODY) + b"0\r\nContent-Length: 5\r\n\r\n",
        "trailer Idempotency-Key": chunk(BODY) + b"0\r\nIdempotency-Key: other\r\n\r\n",
    }
    rows = [bad(f"chunk: {name}", chunked(frame)) for name, frame in frames.items()]
    for name, frame in {
        "size of 64 bits": b"FFFFFFFFFFFFFFFF\r\n",
        "size of 1 GB": b"40000000\r\n" + BODY,
        "size of one more than the limit": b"%x\r\n" % (BODY_BYTES + 1),
        "sizes that together are one more than the limit":
            chunk(b" " * (BODY_BYTES - 10)) + b"b\r\n",
    }.items():
        rows.append(bad(f"chunk: {name}", chunked(frame), 413, "too-large"))
    return rows


def line_rows():
    text = request()
    rows = [
        bad("bare LF everywhere", text.replace(CRLF, b"\n")),
        bad("bare LF after the request line", text.replace(CRLF, b"\n", 1)),
        bad("bare LF after a field", request(add=b"X: y\n")),
        bad("bare CR everywhere", text.replace(CRLF, b"\r")),
        bad("CR CR LF", request(add=b"X: y\r\r\n")),
        bad("bare CR in a value (nginx)", request(add=b"X: a\rb\r\n")),
        bad("NUL in a value (nginx)", request(add=b"X: a\0b\r\n")),
        bad("NUL in a name", request(add=b"X\0: a\r\n")),
        bad("DEL in a value", request(add=b"X: \x7f\r\n")),
        bad("escape in a value", request(add=b"X: \x1b[2J\r\n")),
        bad("obs-fold with a space (nginx)", request(add=b"X: a\r\n b\r\n")),
        bad("obs-fold with a tab", request(add=b"X: a\r\n\tb\r\n")),
        bad("obs-fold in the key",
            request(add=b"Idempotency-Key: a\r\n b\r\n", without=(b"Idempotency-Key",))),
        bad("folded before the first field",
            text.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\n X: y\r\n")),
        bad("space in a field name (nginx)", request(add=b"X y: a\r\n")),
        bad("space before the colon", request(add=b"X : a\r\n")),
        bad("tab before the colon", request(add=b"X\t: a\r\n")),
        bad("field name empty", request(add=b": a\r\n")),
        bad("field without a colon", request(add=b"X\r\n")),
        bad("8-bit in a field name", request(add=b"X\xe9: a\r\n")),
        bad("separator in a field name", request(add=b"X(y): a\r\n")),
        bad("no Host (nginx)", request(without=(b"Host",))),
        bad("two Host (nginx)", request(add=b"Host: 127.0.0.1\r\n")),
        bad("two different Host", request(add=b"host: b\r\n")),
        bad("Host empty", hosts(b"")),
        bad("Host list", hosts(b"a, b")),
        bad("Host with a user", hosts(b"u@a")),
        bad("Host with a path", hosts(b"a/b")),
        bad("two empty lines before the request", CRLF + CRLF + text),
        bad("LF before the request", b"\n" + text),
        bad("space before the request", b" " + text),
        bad("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 30),
        bad("TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500),
        bad("zeros", b"\0" * 2000),
        bad("what only is an HTTP answer", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ]
    for line in (b"POST http://127.0.0.1/v1/payments HTTP/1.1", b"POST v1/payments HTTP/1.1",
                 b"POST //v1/payments#x HTTP/1.1", b"CONNECT 127.0.0.1:80 HTTP/1.1",
                 b"OPTIONS * HTTP/1.1", b"POST * HTTP/1.1", b"post /v1/payments HTTP/1.1",
                 b"Post /v1/payments HTTP/1.1", b"P(ST /v1/payments HTTP/1.1",
                 b"BREW /v1/payments HTTP/1.1", b"POST\t/v1/payments HTTP/1.1",
                 b"POST  /v1/payments HTTP/1.1", b"POST /v1/payments  HTTP/1.1",
                 b"POST /v1/payments HTTP/1.1 ", b"POST /v1 /payments HTTP/1.1",
                 b"POST /v1/payments", b"POST /v1/payments ", b"POST /v1/payments HTTP/0.9",
                 b"POST /v1/payments HTTP/1.2", b"POST /v1/payments HTTP/2.0",
                 b"POST /v1/payments HTTP/1.10", b"POST /v1/payments HTTP/01.1",
                 b"POST /v1/payments http/1.1", b"POST /v1/payments HTTQ/1.1",
                 b"POST /v1/pay\0ments HTTP/1.1", b"POST /v1/pay\xc3\xa9 HTTP/1.1",
                 b"POST /v1/payments\x7f HTTP/1.1", b" HTTP/1.1", b""):
        # An empty first line is allowed once; what follows is then no request line.
        rows.append(bad(f"request line {line!r}", request(line)))
    return rows


def path_rows():
    rows = []
    for path in (b"/v1/../v1/payments", b"/v1/./payments", b"/../v1/payments", b"//v1/payments",
                 b"/v1//payments", b"/v1/payments/", b"/v1%2fpayments", b"/v1%2Fpayments",
                 b"/v1/payments%2f", b"/v1/payments%00", b"/v1/payments%0d%0a", b"/V1/payments",
                 b"/v1/%2e%2e/v1/payments", b"/%2e%2e%2f%2e%2e%2fetc/passwd",
                 b"/v1/%2570ayments", b"/v1/payments;a=b", b"/v1\\payments", b"/v1/pay%c0%afments",
                 b"/v1/payments/..%5c", b"/" + b"a" * 2000, b"/" + b"%61" * 1000, b"/" * 2000):
        rows.append(answered(f"path {path[:40]!r}", request(b"POST " + path + b" HTTP/1.1"), 404,
                             "not-found"))
    for path in (b"/v1/payments%", b"/v1/payments%2", b"/v1/payments%zz", b"/v1/pay%6", b"/%%41"):
        rows.append(answered(f"path {path!r}", request(b"POST " + path + b" HTTP/1.1"), 400,
                             "request-invalid"))
    for query in (b"?a=b", b"?%00", b"?key=x", b"?" + b"a=b&" * 500):
        rows.append(answered(f"query {query[:20]!r}",
                             request(b"POST /v1/payments" + query + b" HTTP/1.1"), 400,
                             "query-invalid"))
    rows.append(bad("URL longer than a head", request(b"POST /" + b"a" * 8000 + b" HTTP/1.1"), 431,
                    "head-too-large"))
    for method in (b"TRACE", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"):
        rows.append(answered(f"method {method!r}", request(method + b" /v1/payments HTTP/1.1"),
                             405, "method-not-allowed"))
    return rows


def size_rows():
    announce = b"Content-Length: %d\r\n"
    big = (b"Content-Length",)
    return [
        bad("200 fields", fields_exactly(200), 431, "head-too-large"),
        bad("10,000 fields", fields_exactly(10000), 431, "head-too-large"),
        bad("field of 16 KB", request(add=b"X: " + b"x" * 16384 + CRLF), 431, "head-too-large"),
        bad("field of 64 KB", request(add=b"X: " + b"x" * 65536 + CRLF), 431, "head-too-large"),
        bad("field of 1 MB without an end", request(add=b"X: " + b"x" * MIB), 431,
            "head-too-large"),
        bad("field name of 64 KB", request(add=b"x" * 65536 + b": y\r\n"), 431, "head-too-large"),
        bad("first line of 1 MB", b"A" * MIB, 431, "head-too-large"),
        bad("1 GB announced", request(add=announce % 2**30, without=big), 413, "too-large"),
        bad("2 GB announced (nginx)", request(add=announce % 2**31, without=big), 413,
            "too-large"),
        bad("2^63 - 1 announced", request(add=announce % (2**63 - 1), without=big), 413,
            "too-large"),
        bad("1 GB announced, to be asked for", request(
            add=announce % 2**30 + b"Expect: 100-continue\r\n", without=big, body=b""), 413,
            "too-large"),
    ]


def key_rows():
    def key(value):
        return request(add=b"Idempotency-Key: " + value + CRLF, without=(b"Idempotency-Key",))

    rows = [
        answered("no key", request(without=(b"Idempotency-Key",)), 400, "key-missing"),
        answered("two keys", request(add=b"Idempotency-Key: other\r\n"), 400, "key-invalid"),
        answered("the same key twice", request(add=f"Idempotency-Key: {KEY}\r\n".encode()), 400,
                 "key-invalid"),
        answered("two keys in two spellings", request(add=b"IDEMPOTENCY-KEY: b\r\n"), 400,
                 "key-invalid"),
        answered("CRLF in the key, and another key behind it",
                 key(b"a\r\nIdempotency-Key: b"), 400, "key-invalid"),
        bad("CRLF in the key, and a second length behind it", key(b"a\r\nContent-Length: 2")),
        bad("NUL in the key", key(b"a\0b")),
        bad("NUL behind the key", key(b"a\0")),
        bad("CR in the key", key(b"a\rb")),
        bad("LF in the key", key(b"a\nb")),
        bad("escape in the key", key(b"a\x1b")),
    ]
    for value in (b"", b'""', b"a\tb", b"a b", b"caf\xe9", b"caf\xc3\xa9", b'a"b', b'"a', b'a"',
                  b"a,b", b"a;b", b"a\\b", b'"a", "b"', b'"a"b', b'"a\\q"', b"?1", b":YQ==:",
                  b"@1", b"(a)", b'"a b"', b'"a\tb"', b"a" * (KEY_MAX + 1),
                  b'"' + b"a" * (KEY_MAX + 1) + b'"', b"a" * 3000):
        rows.append(answered(f"key {value[:20]!r}, {len(value)} bytes", key(value), 400,
                             "key-invalid"))
    return rows


def caller_rows():
    def bearer(value):
        return request(add=b"Authorization: " + value + CRLF, without=(b"Authorization",))

    good = BEARER.encode()
    rows = [
        answered("no credential", request(without=(b"Authorization",)), 401, "unauthenticated"),
        answered("two credentials", request(add=b"Authorization: Bearer " + good + CRLF), 401,
                 "unauthenticated"),
    ]
    for value in (b"", b"Bearer", b"Bearer ", b"Bearer x", b"Basic " + good, good,
                  b"Bearer " + good + b" " + good, b"Bearer " + good + b", x",
                  b"Bearer " + good[:-1], b"Bearer " + good + b"x", b"Bearer \xe9",
                  b'Bearer "' + good + b'"', b"Bearer " + b"x" * 3000):
        rows.append(answered(f"Authorization: {value[:40]!r}", bearer(value), 401,
                             "unauthenticated"))
    for add in (b"Content-Digest: sha-256=:AAAA:\r\n",
                b"Content-Digest: sha-256=:AAAA:, sha-512=:AAAA:\r\n"):
        rows.append(answered(add.decode().strip(), request(add=add), 400, "digest-mismatch"))
    for add in (b"Content-Digest: sha-256=AAAA\r\n", b"Content-Digest: sha-256=:AAAA\r\n",
                b"Repeatability-First-Sent: yesterday\r\n", b"Repeatability-First-Sent: \r\n"):
        rows.append(answered(add.decode().strip(), request(add=add), 400, "header-invalid"))
    return rows


def json_rows():
    def rest(text):
        return body_of(more=text)

    bodies = {
        "empty": b"",
        "only space": b"  \r\n ",
        "cut in the middle": BODY[:-20],
        "10,000 nested arrays": b"[" * 10000,
        "10,000 nested arrays that end": b"[" * 5000 + b"]" * 5000,
        "3,000 nested objects": b'{"a":' * 3000,
        "arrays nested one deeper than allowed": rest(b',"metadata":{"a":%b}' %
                                                      (b"[" * 31 + b"]" * 31)),
        "nested arrays that never end": rest(b',"metadata":{"a":' + b"[" * 2000),
        "duplicate member": rest(b',"amount":"2.00"'),
        "duplicate after unescaping": rest(b',"\\u0061mount":"2.00"'),
        "duplicate in metadata": rest(b',"metadata":{"a":1,"a":2}'),
        "1,000 members": rest(b"".join(b',"m%d":1' % i for i in range(1000))),
        "more values than are counted": b"[" + b"1," * 3000 + b"1]",
        "unknown member": rest(b',"x":1'),
        "array": b"[" + BODY + b"]",
        "string": b'"' + b"a" * 100 + b'"',
        "two documents": BODY + BODY,
        "trailing comma": rest(b","),
        "comment": rest(b"/* */"),
        "single quotes": BODY.replace(b'"', b"'"),
        "NaN": rest(b',"metadata":{"a":NaN}'),
        "leading zero": rest(b',"metadata":{"a":01}'),
        "a number without digits": rest(b',"metadata":{"a":-}'),
        "byte order mark": b"\xef\xbb\xbf" + BODY,
        "UTF-16": BODY.decode().encode("utf-16"),
        "NUL behind": BODY + b"\0",
        "NUL before": b"\0" + BODY,
        "raw control byte in a string": rest(b',"description":"a\x01b"'),
        "raw line end in a string": rest(b',"description":"a\r\nb"'),
        "escaped NUL in the order": body_of("a\\u0000b"),
        "escaped control byte in the description": rest(b',"description":"\\u001b"'),
        "8-bit that is not UTF-8": rest(b',"description":"\xff"'),
        "overlong UTF-8": rest(b',"description":"\xc0\xaf"'),
        "UTF-8 of a surrogate": rest(b',"description":"\xed\xa0\x80"'),
        "UTF-8 above U+10FFFF": rest(b',"description":"\xf4\x90\x80\x80"'),
        "cut UTF-8": rest(b',"description":"\xe2\x82"'),
        "lone high surrogate": rest(b',"description":"\\ud800"'),
        "lone low surrogate": rest(b',"description":"\\udc00"'),
        "two high surrogates": rest(b',"description":"\\ud800\\ud800"'),
        "unknown escape": rest(b',"description":"\\x41"'),
        "amount as a number": BODY.replace(b'"1.00"', b"1.00"),
        "order of 65 bytes": body_of("9" * 65),
        "exponent that cannot be counted": rest(b',"metadata":{"a":1e99999999999999999999}'),
    }
    for amount in (b"1e2", b"-1.00", b"+1.00", b"0.00", b"01.00", b"1.0", b"1.000", b"1,00",
                   b" 1.00", b"1.00 ", b"Infinity", b"0x1", b"1" * 200 + b".00",
                   b"92233720368547758.08", b"99999999999999999999.00", b"\xd9\xa1.00", b""):
        bodies[f"amount {amount[:24]!r}"] = BODY.replace(b"1.00", amount)
    rows = [answered(f"body: {name}", request(body=body), 400, "body-invalid")
            for name, body in bodies.items()]
    for add in (b"Content-Encoding: gzip\r\n", b"Content-Encoding: identity, gzip\r\n",
                b"Content-Encoding: identity\r\nContent-Encoding: br\r\n"):
        rows.append(answered(add.decode().strip(), request(add=add), 415, "media-type"))
    for value in (b"text/plain", b"application/json; charset=utf-16", b"application/jsonp",
                  b"application/x-www-form-urlencoded", b"", b"application/json, text/plain"):
        rows.append(answered(f"Content-Type: {value!r}", request(
            add=b"Content-Type: " + value + CRLF, without=(b"Content-Type",)), 415, "media-type"))
    rows.append(answered("two Content-Type", request(add=b"Content-Type: application/json\r\n"),
                         415, "media-type"))
    return rows


TABLES = [length_rows, chunk_rows, line_rows, path_rows, size_rows, key_rows, caller_rows,
          json_rows]


def send_all(connection, data):
    """A server may answer and close before it has read everything."""
    try:
        connection.send(data)
    except (ConnectionError, socket.timeout):
        pass


def expect_end(connection):
    """Nothing more comes, and the connection ends."""
    connection.socket.settimeout(SOON_S)
    assert connection.left == b"", f"more came: {connection.left[:200]!r}"
    try:
        data = connection.socket.recv(1000)
    except ConnectionResetError:
        return
    assert data == b"", f"more came: {data[:200]!r}"


def expect_problem(reply, status, code):
    assert reply.status == status, f"expected {status} {code}, got\n{reply!r}"
    assert reply.header("Content-Type") == "application/problem+json", reply
    problem = reply.json()
    assert problem["type"] == f"urn:idem:problem:{code}", problem
    assert problem["status"] == status, problem
    assert problem["effect"] in ("none", "unknown"), problem


def play(world, row):
    connection = Connection(world.port, SOON_S)
    began = time.monotonic()
    try:
        send_all(connection, row.data)
        expect_problem(connection.receive(), row.status, row.code)
        took = time.monotonic() - began
        assert took < SOON_S, f"took {took:.1f} s"
        if row.ends:
            expect_end(connection)
        else:
            connection.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert connection.receive("GET").status == 200, "the connection does not go on"
    finally:
        connection.close()
    world.expect_recorded(world.paid)


def table_test(make):
    def test(idem):
        rows = make()
        with edge(idem) as world:
            for row in rows:
                try:
                    play(world, row)
                except (AssertionError, OSError, Gone, KeyError, ValueError) as error:
                    raise AssertionError(f"{row.name}: {error}\nsent {row.data[:400]!r}") from error
            world.expect_untouched()
            world.expect_honest()
            world.expect_untouched()

    test.__name__ = make.__name__
    test.__doc__ = f"{make.__name__[:-5]}: {len(make())} rows are refused and recorded nowhere"
    return test


# ---- what is served ----


def served_rows(idem):
    """What looks odd and is right is served once, and its connection is in step afterwards"""
    largest = BODY_BYTES
    nested = b',"metadata":{"a":%b}' % (b"[" * 30 + b"]" * 30)
    plain = (b"Content-Length",)

    def length(body):
        return b"%d" % len(body)

    rows = {
        "one empty line before": lambda b, k: CRLF + request(body=b, key=k),
        "HTTP/1.0": lambda b, k: request(b"POST /v1/payments HTTP/1.0", body=b, key=k),
        "leading zeros": lambda b, k: request(
            add=b"Content-Length: 000%b\r\n" % length(b), without=plain, body=b, key=k),
        "space around the length": lambda b, k: request(
            add=b"Content-Length:   %b  \r\n" % length(b), without=plain, body=b, key=k),
        "chunked in two": lambda b, k: request(
            add=CODED, without=plain, body=chunk(b[:9]) + chunk(b[9:]) + LAST_CHUNK, key=k),
        "chunked with extensions": lambda b, k: request(
            add=CODED, without=plain, body=chunk(b, b';a="b c"') + LAST_CHUNK, key=k),
        "Upgrade: websocket": lambda b, k: request(
            add=b"Connection: Upgrade\r\nUpgrade: websocket\r\n", body=b, key=k),
        "Upgrade: h2c": lambda b, k: request(
            add=b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n",
            body=b, key=k),
        "unknown expectation": lambda b, k: request(add=b"Expect: a-pony\r\n", body=b, key=k),
        "Content-Encoding: identity": lambda b, k: request(
            add=b"Content-Encoding: identity\r\n", body=b, key=k),
        "a percent-encoded letter in the path": lambda b, k: request(
            b"POST /v1/%70ayments HTTP/1.1", body=b, key=k),
        "8-bit in a field nobody reads": lambda b, k: request(add=b"X: \xe9\r\n", body=b, key=k),
    }
    with edge(idem) as world:
        for name, make in rows.items():
            number = world.paid
            expect_served(world, name, make(body_of(f"order-{number}"), f"key-{number}"))
        for name, more in {
            "arrays nested as deep as allowed": nested,
            "number of 1,000 digits in metadata": b',"metadata":{"a":%b}' % (b"9" * 1000),
            "escaped NUL in metadata": b',"metadata":{"a":"\\u0000"}',
        }.items():
            number = world.paid
            body = body_of(f"order-{number}", more)
            expect_served(world, name, request(body=body, key=f"key-{number}"))
        expect_served(world, "key of 255 bytes",
                      request(body=body_of("order-255"), key="k" * KEY_MAX))
        expect_served(world, "quoted key of 255 bytes",
                      request(body=body_of("order-256"), key='"' + "q" * KEY_MAX + '"'))
        expect_served(world, "body at its limit",
                      request(body=body_exactly(largest, "order-largest"), key="largest"))
        world.expect_untouched()


def expect_served(world, name, data):
    connection = Connection(world.port)
    try:
        connection.send(data)
        reply = connection.receive()
        assert reply.status == 201, f"{name}: {reply!r}"
        world.paid += 1
        if reply.header("Connection") == "close":
            expect_end(connection)
            return
        connection.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.receive("GET").status == 200, f"{name}: out of step"
    finally:
        connection.close()


def continue_is_said(idem):
    """A caller who expects 100 gets it before its body; one who sends its body at once does not"""
    expecting = request(add=b"Expect: 100-continue\r\n")
    head = expecting[:-len(BODY)]
    with edge(idem) as world:
        connection = Connection(world.port)
        connection.send(head)
        connection.socket.settimeout(SOON_S)
        assert connection.socket.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.send(BODY)
        assert connection.receive().status == 201
        connection.send(expecting)
        assert connection.socket.recv(12) == b"HTTP/1.1 201", "a needless 100"
        connection.close()
        world.paid += 1
        world.expect_untouched()


# ---- limits, at N and at N + 1 ----


def head_at_its_limit(idem):
    """A head of head_bytes is served, one byte more is 431; 64 fields are served, 65 are 431"""
    with edge(idem) as world:
        for data, status in (
            (head_of(HEAD_BYTES + 1), 431),
            (fields_exactly(FIELDS_MAX + 1), 431),
            (head_of(HEAD_BYTES), 201),
            (fields_exactly(FIELDS_MAX), 201),
        ):
            connection = Connection(world.port)
            connection.send(data)
            reply = connection.receive()
            if status == 431:
                expect_problem(reply, 431, "head-too-large")
                expect_end(connection)
            assert reply.status == status, reply
            connection.close()
            world.expect_recorded(world.paid + (status == 201))
        world.paid += 1  # The second one with the same key is its replay.
        world.expect_untouched()


def body_at_its_limit(idem):
    """A body of body_bytes is served, one byte more is 413, announced or counted"""
    with edge(idem) as world:
        for size, status in ((BODY_BYTES + 1, 413), (BODY_BYTES, 201)):
            for number, frame in enumerate((False, True)):
                body = body_exactly(size, f"order-{number}")
                data = request(body=body, key=f"key-{number}")
                if frame:
                    half = size // 2
                    body = chunk(body[:half]) + chunk(body[half:]) + LAST_CHUNK
                    data = request(add=CODED, without=(b"Content-Length",), body=body,
                                   key=f"key-{number}")
                connection = Connection(world.port)
                send_all(connection, data)
                reply = connection.receive()
                assert reply.status == status, reply
                if status == 413:
                    expect_problem(reply, 413, "too-large")
                    expect_end(connection)
                connection.close()
                world.paid += status == 201
                world.expect_recorded(world.paid)
        world.expect_untouched()


def connections_at_their_limit(idem):
    """Connection N is served, N + 1 is told 503 and closed, and one that ends makes room"""
    count = 40
    with edge(idem, limits={"connections": count}) as world:
        taken = [Connection(world.port) for _ in range(count - 1)]
        world.wait_until(lambda: world.callers() == count - 1, "all are taken")
        last = Connection(world.port)
        last.send(request(key="last", body=body_of("order-last")))
        assert last.receive().status == 201
        world.paid += 1
        for _ in range(3):
            surplus = Connection(world.port)
            send_all(surplus, request())
            reply = surplus.receive()
            expect_problem(reply, 503, "unavailable")
            assert reply.header("Retry-After") == "1", reply
            expect_end(surplus)
            surplus.close()
        world.expect_recorded(world.paid)
        taken.pop().close()
        world.wait_until(lambda: world.answers(world.port, "/healthz"), "there is room again")
        for connection in [*taken, last]:
            connection.close()
        world.wait_until(lambda: world.callers() == 0, "all are given back")
        world.expect_honest()
        world.expect_untouched()


def requests_at_their_limit(idem):
    """Requests above `requests` are told 503 and recorded nowhere; those inside are all paid"""
    inside, more = 8, 24
    with edge(idem, limits={"requests": inside}) as world:
        callers = [Connection(world.port) for _ in range(inside + more)]
        for number, connection in enumerate(callers):
            body = body_of(f"order-{number}").replace(b"tok_ok", b"tok_late_1")
            connection.send(request(body=body, key=f"key-{number}"))
        replies = [connection.receive() for connection in callers]
        refused = [reply for reply in replies if reply.status == 503]
        paid = [reply for reply in replies if reply.status == 201]
        assert (len(paid), len(refused)) == (inside, more), [reply.status for reply in replies]
        for reply in refused:
            expect_problem(reply, 503, "unavailable")
            assert reply.header("Retry-After") is not None, reply
        world.paid += inside
        for connection in callers:
            connection.close()
        world.expect_honest()
        world.expect_untouched(files_more=inside)  # Connections to the provider are kept.


def halves_at_their_limit(idem):
    """Half-sent requests hold at most 32 MiB together, and whole ones are served beside them"""
    size = 64 * 1024
    enough = PENDING_BYTES // size + 100
    with edge(idem, limits={"body_bytes": size},
              timings={"body_timeout_ms": 8000, "head_timeout_ms": 8000}) as world:
        half = request(body=b" " * size)[:-1]
        callers = [Connection(world.port) for _ in range(enough)]
        for connection in callers:
            send_all(connection, half)
        poll = select.poll()
        for connection in callers:
            poll.register(connection.socket, select.POLLIN)
        world.wait_until(lambda: len(poll.poll(0)) >= 50, "some are refused")
        held = world.memory() - world.memory_before
        answered_count = len(poll.poll(0))
        assert enough - answered_count >= PENDING_BYTES // (size + REQUEST_ROOM + HEAD_BYTES) - 1, (
            f"{answered_count} of {enough} were refused")
        by_socket = {connection.socket.fileno(): connection for connection in callers}
        for number, _ in poll.poll(0):
            expect_problem(by_socket[number].receive(), 503, "unavailable")
        if not world.sanitized():
            assert held < PENDING_BYTES + 12 * MIB, f"{held} bytes are held"
        world.expect_honest()
        for connection in callers:
            connection.close()
        world.wait_until(lambda: world.files() <= world.files_before, "all are given back")
        again = Connection(world.port)
        again.send(half[:-1000])
        assert not select.select([again.socket], [], [], 0.3)[0], "there is no room again"
        again.close()
        world.expect_untouched(growth_max=PENDING_BYTES + 12 * MIB)  # What malloc keeps.


# ---- time ----


def drip(connection, data, patience):
    """Sends byte after byte until something comes back; returns how long that took."""
    began = time.monotonic()
    for number in range(len(data) - 1):
        try:
            connection.send(data[number:number + 1])
        except ConnectionError:
            break
        if select.select([connection.socket], [], [], 0.01)[0]:
            break
        assert time.monotonic() - began < patience, "it is still open"
    return time.monotonic() - began


def dripped(idem):
    """What drips is refused when its total time is over, whatever arrives until then"""
    head_end = request().index(CRLF + CRLF) + 4
    padded = request(body=BODY + b" " * 2000)
    frames = chunked(b"".join(chunk(b" ") for _ in range(300)) + FRAME)
    with edge(idem) as world:
        for name, whole, data, timing in (
            ("head", b"", request(add=b"X: " + b"x" * 2000 + CRLF), "head_timeout_ms"),
            ("head behind an empty line", CRLF, request(add=b"X: " + b"x" * 2000 + CRLF),
             "head_timeout_ms"),
            ("fields", LINE + CRLF, b"X: y\r\n" * 300, "head_timeout_ms"),
            ("body", padded[:head_end], padded[head_end:], "body_timeout_ms"),
            ("chunks", frames[:frames.index(CRLF + CRLF) + 4],
             frames[frames.index(CRLF + CRLF) + 4:], "body_timeout_ms"),
        ):
            connection = Connection(world.port, SOON_S)
            connection.send(whole)
            took = drip(connection, data, world.seconds(timing) + SOON_S)
            assert took >= world.seconds(timing) - 0.05, f"{name} was cut after {took:.2f} s"
            expect_problem(connection.receive(), 408, "too-slow")
            expect_end(connection)
            connection.close()
            world.expect_recorded(world.paid)
        world.expect_honest()
        world.expect_untouched()


def stalled(idem):
    """What stops in the middle is refused on time; what never begins is closed without a word"""
    timings = {"idle_timeout_ms": 700}
    body_end = request(body=BODY)
    with edge(idem, timings=timings) as world:
        for name, data, timing, status in (
            ("silence", b"", "idle_timeout_ms", None),
            ("an empty line", CRLF, "idle_timeout_ms", None),
            ("one byte", b"P", "head_timeout_ms", 408),
            ("a head without its last byte", body_end[:-len(BODY) - 1], "head_timeout_ms", 408),
            ("no body", body_end[:-len(BODY)], "body_timeout_ms", 408),
            ("a body without its last byte", body_end[:-1], "body_timeout_ms", 408),
            ("chunks without a last one", chunked(chunk(BODY)), "body_timeout_ms", 408),
            ("a last chunk without its last byte", chunked(FRAME)[:-1], "body_timeout_ms", 408),
        ):
            connection = Connection(world.port, world.seconds(timing) + SOON_S)
            began = time.monotonic()
            connection.send(data)
            if status is None:
                expect_end(connection)
            else:
                expect_problem(connection.receive(), status, "too-slow")
                expect_end(connection)
            took = time.monotonic() - began
            limit = world.seconds(timing)
            assert limit - 0.05 <= took < limit + SOON_S, f"{name}: took {took:.2f} s"
            connection.close()
            world.expect_recorded(world.paid)
        world.expect_honest()
        world.expect_untouched()


def unread_answers(idem):
    """A caller who does not read its answers is cut off on time, and so is the memory they need"""
    with edge(idem) as world:
        connection = Connection(world.port)
        connection.socket.setblocking(False)
        packet = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" * 1000
        began = time.monotonic()
        sent = 0
        peak = 0
        ended = False
        while not ended:
            assert time.monotonic() - began < harness.PATIENCE_S, "it is never cut off"
            try:
                sent += connection.socket.send(packet)
            except BlockingIOError:
                time.sleep(0.02)
            except ConnectionError:
                ended = True
            peak = max(peak, world.memory())
        growth = peak - world.memory_before
        assert sent > len(packet), "nothing was taken"
        assert growth < (256 if world.sanitized() else 8) * MIB, f"{growth} bytes more"
        connection.close()
        world.expect_honest()
        world.expect_untouched()


# ---- bodies without an end ----


def endless_bodies(idem):
    """A body that never ends is refused at the limit, and its sender is cut off soon"""
    with edge(idem) as world:
        for head, piece in (
            (request(add=b"Content-Length: %d\r\n" % 2**30, without=(b"Content-Length",),
                     body=b""), b" " * 65536),
            (chunked(b""), chunk(b" " * 1000) * 64),
            (chunked(b""), b"0" * 65536),
            (chunked(b"1;"), b"a" * 65536),
            (LINE + CRLF, b"X: y\r\n" * 10000),
        ):
            connection = Connection(world.port, SOON_S)
            began = time.monotonic()
            sent = 0
            with contextlib.suppress(ConnectionError, socket.timeout):
                connection.send(head)
                while sent < 256 * MIB:
                    connection.send(piece)
                    sent += len(piece)
            took = time.monotonic() - began
            assert sent < 64 * MIB, f"{sent} bytes were taken"
            assert took < 2 * SOON_S, f"took {took:.1f} s"
            connection.close()
            world.expect_recorded(world.paid)
        world.expect_honest()
        world.expect_untouched()


# ---- callers who leave ----


def reset(connection):
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def left_halfway(idem):
    """A caller who ends or resets before its request is complete has not sent one"""
    whole = request()
    head_end = len(whole) - len(BODY)
    with edge(idem) as world:
        for size in (1, 10, len(LINE) + 1, head_end - 2, head_end, head_end + 1, len(whole) - 1):
            connection = Connection(world.port, SOON_S)
            connection.send(whole[:size])
            connection.socket.shutdown(socket.SHUT_WR)
            expect_end(connection)
            connection.close()
            connection = Connection(world.port, SOON_S)
            connection.send(whole[:size])
            reset(connection)
            world.expect_recorded(world.paid)
        frame = chunked(FRAME)
        for size in range(len(frame) - len(FRAME), len(frame), 7):
            connection = Connection(world.port, SOON_S)
            connection.send(frame[:size])
            connection.socket.shutdown(socket.SHUT_WR)
            expect_end(connection)
            connection.close()
        world.expect_untouched()
        world.expect_honest()


def churn(idem):
    """Thousands who come, say half a word and reset leave nothing behind"""
    whole = request()
    with edge(idem) as world:
        for number in range(3000):
            connection = Connection(world.port, SOON_S)
            connection.send(whole[:number % (len(whole) - 1) + 1])
            reset(connection)
        world.wait_until(lambda: world.callers() == 0, "all are forgotten")
        world.expect_honest()
        world.expect_untouched(growth_max=4 * MIB)


def left_after(idem):
    """A complete request counts: after a half-close it is answered, after a reset it is found"""
    with edge(idem) as world:
        connection = Connection(world.port, SOON_S)
        connection.send(request(body=body_of("order-half"), key="half"))
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.receive().status == 201
        expect_end(connection)
        connection.close()
        connection = Connection(world.port, SOON_S)
        body = body_of("order-reset").replace(b"tok_ok", b"tok_late_1")
        connection.send(request(body=body, key="reset"))
        world.wait_until(lambda: world.ledger(order_no="order-reset")["arrivals"] == 1, "arrives")
        reset(connection)
        world.wait_state("reset", ["captured", "succeeded", "done"])
        world.paid += 2
        world.expect_untouched(files_more=1)


# ---- several at once ----


def pipelined(idem):
    """Two payments in one packet are two, 1,000 reads in one packet are answered in order"""
    with edge(idem) as world:
        connection = Connection(world.port)
        connection.send(request(body=body_of("order-a"), key="a") +
                        request(body=body_of("order-b"), key="b"))
        for order_no in ("order-a", "order-b"):
            reply = connection.receive()
            assert reply.status == 201 and reply.json()["order_no"] == order_no, reply
        world.paid += 2
        read = (b"GET /v1/payments?order_no=order-%b HTTP/1.1\r\nHost: a\r\n"
                b"Authorization: Bearer " + BEARER.encode() + b"\r\n\r\n")
        orders = [b"a" if number % 3 else b"b" for number in range(1000)]
        sender = threading.Thread(
            target=send_all, args=(connection, b"".join(read % order for order in orders)))
        sender.start()
        for order in orders:
            reply = connection.receive("GET")
            assert reply.json()["order_no"] == "order-" + order.decode(), reply
        sender.join()
        # The same payment a hundred times in one packet: one, and its replays without a pause.
        began = time.monotonic()
        connection.send(request(body=body_of("order-c"), key="c") * 100)
        bodies = {connection.receive().body for _ in range(100)}
        assert len(bodies) == 1, bodies
        assert time.monotonic() - began < SOON_S, "replays wait for each other"
        world.paid += 1
        # What stands behind a request that is refused is not looked at.
        connection.send(request(add=LENGTH) + request(body=body_of("order-d"), key="d"))
        expect_problem(connection.receive(), 400, "request-invalid")
        expect_end(connection)
        connection.close()
        world.expect_untouched(files_more=1)


def flood(port, callers):
    """Sends requests that cost nobody anything, as fast as they are taken. Never returns."""
    packet = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" * 2000
    poll = select.epoll()
    connections = {}
    while True:
        while len(connections) < callers:
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setblocking(False)
            connections[connection.fileno()] = [connection, 0]
            poll.register(connection.fileno(), select.EPOLLIN | select.EPOLLOUT)
        for number, events in poll.poll(1):
            connection, sent = connections[number]
            try:
                if events & select.EPOLLIN:
                    connection.recv(MIB)
                if events & select.EPOLLOUT:
                    sent = (sent + connection.send(packet[sent:])) % len(packet)
                    connections[number][1] = sent
            except BlockingIOError:
                pass
            except OSError:
                del connections[number]
                connection.close()


def flood_of_requests(idem):
    """Callers who ask without a pause make a payment wait, but not for the end of their requests"""
    callers = 40
    with edge(idem) as world:
        flooder = os.fork()
        if flooder == 0:
            with contextlib.suppress(BaseException):
                flood(world.port, callers)
            os._exit(0)
        try:
            world.wait_until(lambda: world.callers() >= callers, "the flood is there")
            took = []
            for number in range(10):
                began = time.monotonic()
                assert world.pay(f"key-{number}", f"order-{number}").status == 201
                took.append(time.monotonic() - began)
                world.paid += 1
            print(f"# a payment beside {callers} callers who ask without a pause: "
                  f"{sorted(took)[5] * 1000:.0f} ms", flush=True)
            assert sorted(took)[5] < 1 + 2 * world.sanitized(), took
        finally:
            os.kill(flooder, signal.SIGKILL)
            os.waitpid(flooder, 0)
        world.wait_until(lambda: world.callers() == 0, "the flood is over")
        world.expect_untouched(files_more=2)


def idle_flood(idem):
    """Thousands of idle connections cost little, keep nobody out, and are closed on time"""
    wanted = 20000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(wanted, hard - 728)  # 600 for the store and the providers, 128 for merchants.
    idle_s = 8
    with edge(idem, limits={"connections": count + 10},
              timings={"idle_timeout_ms": idle_s * 1000}) as world:
        crowd = []
        began = time.monotonic()
        for number in range(count):
            # Addresses of their own, so that the system's ports do not run out for others.
            source = (f"127.0.1.{number % 200 + 1}", 0)
            crowd.append(socket.create_connection(("127.0.0.1", world.port), SOON_S, source))
            if number % 2:  # Half of them have been served before, and are idle again.
                crowd[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        opened = time.monotonic()
        all_there = opened - began < idle_s - 1  # Else the first were closed before the last came.
        if all_there:
            enough = world.files_before - store.FILES_LATER + count
            world.wait_until(lambda: world.files() >= enough, "all are taken", idle_s)
        growth = world.memory() - world.memory_before
        print(f"# {count} idle connections: {growth / MIB:.1f} MiB more are resident, "
              f"{growth // count} bytes each; opened in {opened - began:.1f} s", flush=True)
        if not world.sanitized():
            assert growth < count * 2048, f"{growth} bytes more"
        world.expect_honest("in-the-crowd")
        world.wait_until(lambda: world.files() <= world.files_before + 1, "all are closed")
        took = time.monotonic() - opened
        assert took < idle_s + 2 * SOON_S, f"the last was closed after {took:.1f} s"
        for connection in crowd:
            connection.close()
        world.expect_untouched(growth_max=count * 2048)
        world.expect_honest()


def few_descriptors(idem):
    """Callers who take every descriptor there is leave enough for the payments of those inside"""
    world = World(idem, {"wait_ms": 3000}, start=False)
    crowd = []
    try:
        world.start_sandbox()
        world.start(prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (700, 700)))
        assert "few-descriptors" in world.log_text()
        inside = harness.Connection(world.port)
        crowd = [socket.create_connection(("127.0.0.1", world.port)) for _ in range(800)]
        for number in range(20):
            body = json.dumps(harness.payment(f"order-{number}")).encode()
            headers = [("Authorization", f"Bearer {harness.BEARER}"),
                       ("Idempotency-Key", f"k-{number}"), ("Content-Type", "application/json")]
            inside.send(harness.encode("POST", "/v1/payments", headers, body))
            assert inside.receive().status == 201
        inside.close()
    finally:
        for connection in crowd:
            connection.close()
        world.close()


TESTS = [
    *[table_test(make) for make in TABLES],
    served_rows,
    continue_is_said,
    head_at_its_limit,
    body_at_its_limit,
    connections_at_their_limit,
    requests_at_their_limit,
    halves_at_their_limit,
    dripped,
    stalled,
    unread_answers,
    endless_bodies,
    left_halfway,
    churn,
    left_after,
    pipelined,
    flood_of_requests,
    idle_flood,
    few_descriptors,
]

if __name__ == "__main__":
    harness.run(TESTS, sys.argv[1], sys.argv[2:])
