"""
The way between idem and its PostgreSQL server, with an eye for COMMIT.

Goal: a test can do something at the one moment that matters: a COMMIT was asked for, and was not
answered yet, or was answered and nobody heard.

Method: a TCP proxy on a port of its own. It knows two messages of the protocol: the statement
COMMIT as libpq's extended protocol asks for it, and the server's word that it was done. At each it
asks `rule(event, number)`; the numbers count the COMMITs since the rule was set. The events, in
order: "asked" (nothing of it was carried yet), "sent" (the server has it), "answered" (the server
said COMMIT, and idem has not heard). A rule says CUT, and both ends see a reset; anything else, and
it goes on. A rule may wait: it holds up its own connection only.
"""

import contextlib
import itertools
import socket
import struct
import threading

import harness

CUT = "cut"

# Parse of an unnamed statement; CommandComplete.
ASKED = b"P\x00\x00\x00\x0e\x00COMMIT\x00\x00\x00"
ANSWERED = b"C\x00\x00\x00\x0bCOMMIT\x00"


class Cut(Exception):
    """The rule ends this connection."""


class Wire:
    def __init__(self, target_port):
        self.target_port = target_port
        self.held = harness.Port()
        self.port = self.held.number
        self.lock = threading.Lock()
        self.open = set()
        self.refuses = False
        self.set_rule(lambda event, number: None)
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        threading.Thread(target=self.accept, daemon=True).start()

    def set_rule(self, rule):
        """From now on; COMMITs are counted from 1 again."""
        with self.lock:
            self.numbers = itertools.count(1)
            self.rule = rule

    def close(self):
        self.refuses = True
        self.listener.close()
        self.cut_all()
        self.held.close()

    def cut_all(self):
        """Resets every connection there is."""
        with self.lock:
            ends = list(self.open)
        for end in ends:
            self.reset(end)

    # ---- in the wire's threads ----

    def accept(self):
        while True:
            try:
                idem, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.refuses:
                    raise OSError
                server = socket.create_connection(("127.0.0.1", self.target_port), 10)
                server.settimeout(None)
            except OSError:
                self.reset(idem)
                continue
            for end in (idem, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.carry(idem, server)

    def carry(self, idem, server):
        numbers = []  # Of this connection's COMMITs, which are answered in order.
        with self.lock:
            self.open |= {idem, server}
        for work in (self.there, self.back):
            threading.Thread(target=self.pump, args=(work, idem, server, numbers), daemon=True
                             ).start()

    def pump(self, work, idem, server, numbers):
        try:
            work(idem, server, numbers)
        except (OSError, Cut):
            pass
        finally:
            for end in (idem, server):
                self.reset(end)

    def reset(self, end):
        with self.lock:
            self.open.discard(end)
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.shutdown(socket.SHUT_RDWR)  # Whoever reads it in another thread wakes up.
        end.close()

    def ask(self, event, number):
        if self.rule(event, number) == CUT:
            raise Cut

    def there(self, idem, server, numbers):
        while data := idem.recv(1 << 16):
            if ASKED not in data:
                server.sendall(data)
                continue
            with self.lock:
                number = next(self.numbers)
            numbers.append(number)
            self.ask("asked", number)
            server.sendall(data)
            self.ask("sent", number)

    def back(self, idem, server, numbers):
        while data := server.recv(1 << 16):
            if ANSWERED in data and numbers:
                self.ask("answered", numbers.pop(0))
            idem.sendall(data)
