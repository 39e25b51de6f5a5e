"""
The wire between callers and service: a network that breaks (test/client/proxy.py), and a tape of
every complete answer that left the service, whoever got it.

An answer is on the tape before its last byte goes on to the caller, so that what a caller was told
before the service was killed is known when the store is looked at. A line is one answer, in the
order in which they came:

    begun, at      when the request was complete here, and when its answer was (seconds since 1970)
    method, path, key, who, asked     the request: who is its bearer, asked its body
    status, replayed, type, location, answer      what came back; null: no such header

Usage: wire.py PORT TARGET_PORT TAPE SEED, as a process of its own. Standard input: `heal` ends all
mischief and prints how often each happened; the end of it ends the process.
"""

import asyncio
import collections
import contextlib
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "client"))
import proxy  # noqa: E402

# More calm than a test of the client needs: here the machinery behind is what is tested.
FATES = {"pass": 70, "lag": 10, "reset": 3, "swallow": 1, "cut-up": 5, "cut-down": 8, "mute": 2}
CARRIES = 60000  # Bytes, on average, before a connection ends.


def cut(data):
    """One HTTP message off the front of `data`: (line, headers, body, rest), or None."""
    head, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        return None
    line, *fields = head.decode("latin-1").split("\r\n")
    headers = {}
    for field in fields:
        name, _, value = field.partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", 0))
    if len(rest) < length:
        return None
    return line, headers, rest[:length].decode("latin-1"), rest[length:]


class Tape:
    """The requests and answers of one connection."""

    def __init__(self, file):
        self.file = file
        self.asked = collections.deque()
        self.up = b""
        self.down = b""

    def take_up(self, data):
        self.up += data
        while message := cut(self.up):
            line, headers, body, self.up = message
            method, path, _ = line.split(" ")
            self.asked.append(
                {
                    "begun": time.time(),
                    "method": method,
                    "path": path,
                    "key": headers.get("idempotency-key", "").strip('"'),
                    "who": headers.get("authorization", "").removeprefix("Bearer "),
                    "asked": body,
                }
            )

    def take_down(self, data):
        self.down += data
        while message := cut(self.down):
            line, headers, body, self.down = message
            if line.split(" ")[1] == "100":
                continue
            if not self.asked:  # The service closes what it could not read.
                return
            answer = {
                **self.asked.popleft(),
                "at": time.time(),
                "status": int(line.split(" ")[1]),
                "replayed": headers.get("idempotent-replayed"),
                "type": headers.get("content-type"),
                "location": headers.get("location"),
                "answer": body,
            }
            os.write(self.file, json.dumps(answer).encode() + b"\n")


class Wire(proxy.Network):
    def __init__(self, seed, port, target_port, tape):
        self.file = os.open(tape, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.healed = False
        super().__init__(seed, port, target_port)
        self.first = []

    def heal(self):
        self.healed = True

    async def outages(self):
        while not self.healed:
            await asyncio.sleep(self.random.uniform(2.0, 8.0))
            if self.healed:
                break
            self.met["outage"] += 1
            self.server.close()
            for writer in list(self.writers):
                if self.random.random() < 0.5:
                    self.reset(writer)
            await asyncio.sleep(self.random.uniform(0.2, 1.0))
            await self.listen()

    def fate(self):
        any_fate = self.random.choices(list(FATES), list(FATES.values()))[0]
        return "pass" if self.healed else any_fate

    async def carry(self, fate, reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", self.target_port)
        tape = Tape(self.file)
        limit = int(self.random.expovariate(1 / CARRIES))
        no_limit = 1 << 40
        up = {"cut-up": limit // 8, "swallow": None}.get(fate, no_limit)
        down = {"cut-down": limit // 8, "mute": None}.get(fate, no_limit)
        if fate in ("pass", "lag") and not self.healed:
            down = limit
        lag_s = self.random.uniform(0.01, 0.1) if fate == "lag" else 0
        directions = [
            asyncio.ensure_future(self.ask(reader, back, up, tape)),
            asyncio.ensure_future(self.answer(there, writer, down, lag_s, tape)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            back.close()

    @staticmethod
    async def ask(reader, writer, limit, tape):
        """Carries requests: onto the tape, as far as they go on. None: they go nowhere."""
        while data := await reader.read(65536):
            if limit is None:
                continue
            tape.take_up(data[:limit])
            writer.write(data[:limit])
            await writer.drain()
            limit -= len(data)
            if limit <= 0:
                return

    async def answer(self, reader, writer, limit, lag_s, tape):
        """Carries answers: all onto the tape, wherever they go."""
        while data := await reader.read(65536):
            tape.take_down(data)
            if limit is None:
                continue
            if lag_s > 0:
                await asyncio.sleep(self.random.uniform(0, lag_s))
            writer.write(data[:limit])
            await writer.drain()
            limit -= len(data)
            if limit <= 0:
                return


def main():
    port, target_port, tape, seed = sys.argv[1:5]
    wire = Wire(int(seed), int(port), int(target_port), tape)
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "heal":
            wire.heal()
            print(json.dumps(wire.met), flush=True)
    with contextlib.suppress(Exception):
        wire.close()


if __name__ == "__main__":
    main()
