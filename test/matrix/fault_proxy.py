"""
A proxy between the service and a provider that spoils chosen requests. It knows nothing of any
provider: a protocol says which operation of which order a request is. Standard library only.
"""

import collections
import http.server
import pathlib
import select
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402

SENTENCES = {
    "before-closed": "closed before upstream",
    "before-reset": "reset before upstream",
    "after-closed": "closed after upstream executed",
    "after-reset": "reset after upstream executed",
    "late": "answer after the client's timeout",
    "truncated-halved": "200, half the JSON, as long as it says",
    "truncated-cut": "200, half the JSON, then closed",
    "503": "503 written over the answer",
}

Call = collections.namedtuple("Call", "method path headers body")


class Step:
    """One fault of an order's plan. `status`: what upstream had answered, None: not asked."""

    def __init__(self, operation, fault):
        assert fault in SENTENCES, fault
        self.operation = operation
        self.fault = fault
        self.begun = False
        self.met = False
        self.status = None

    def spoils_before(self):
        return self.fault.startswith("before-")


class FaultProxy:
    """
    Listens on a port of its own. `protocol` has `name(call)`, which gives (order, operation), and
    `learn(call, answer)`, which sees what the provider answered, also where the caller does not.
    """

    def __init__(self, upstream_port, protocol):
        self.upstream_port = upstream_port
        self.protocol = protocol
        self.lock = threading.Lock()
        self.plans = {}
        self.passed = collections.Counter()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def serve(self):
                proxy.carry(self)

            do_GET = do_POST = serve

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def plan(self, order, steps):
        """
        Steps of (operation, fault): the first request of that operation of the order since the
        step before meets the fault.
        """
        self.plans[order] = [Step(*step) for step in steps]

    def report(self, order):
        """[(operation, fault, status that upstream had answered or None)], as far as really met."""
        with self.lock:
            return [(step.operation, step.fault, step.status)
                    for step in self.plans[order] if step.met]

    # ---- in the threads of requests ----

    def carry(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        call = Call(handler.command, handler.path, list(handler.headers.items()), body)
        with self.lock:
            order, operation = self.protocol.name(call)
            step = self.next_step(order, operation)
            passes = step is None or not step.spoils_before()
            self.passed[order, operation] += passes
        answer = self.ask_upstream(call) if passes else None
        try:
            met = deliver(handler, step.fault if step else None, answer)
        except OSError:  # The caller had left already.
            handler.close_connection = True
            met = False
        if step is not None:
            with self.lock:
                step.met = met
                step.status = answer.status if passes else None

    def next_step(self, order, operation):
        """The step that the request meets, if any. What comes after it may meet the next."""
        for step in self.plans.get(order, ()):
            if not step.begun:
                step.begun = step.operation == operation
                return step if step.begun else None
        return None

    def ask_upstream(self, call):
        connection = harness.Connection(self.upstream_port)
        try:
            connection.send(harness.encode(*call))
            answer = connection.receive(call.method)
        finally:
            connection.close()
        with self.lock:
            self.protocol.learn(call, answer)
        return answer


def deliver(handler, fault, answer):
    """Gives the caller the answer, or what the fault makes of it. False: it came to nothing."""
    if fault is None:
        write(handler, answer.status, answer.headers, answer.body)
    elif fault.endswith("-closed"):
        hang_up(handler)
    elif fault.endswith("-reset"):
        reset(handler)
    elif fault == "late":
        return answer_late(handler, answer)
    elif fault == "503":
        write(handler, 503, [("Content-Type", "text/plain")], b"no healthy upstream")
    else:
        half = answer.body[: len(answer.body) // 2]
        length = None if fault == "truncated-halved" else len(answer.body)
        write(handler, answer.status, answer.headers, half, length)
        if fault == "truncated-cut":
            hang_up(handler)
    return True


def write(handler, status, headers, body, length=None):
    handler.send_response_only(status)
    for name, value in headers:
        if name.lower() not in ("content-length", "connection"):
            handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)


def hang_up(handler):
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def reset(handler):
    handler.close_connection = True
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    socket.close(handler.connection.detach())


def answer_late(handler, answer):
    """Waits until the caller has hung up, and answers then. False: it never did."""
    gone = False
    readable, _, _ = select.select([handler.connection], [], [], harness.PATIENCE_S)
    if readable:
        try:
            gone = handler.connection.recv(1, socket.MSG_PEEK) == b""
        except ConnectionError:
            gone = True
    handler.close_connection = True
    try:
        write(handler, answer.status, answer.headers, answer.body)
    except ConnectionError:
        pass
    return gone
