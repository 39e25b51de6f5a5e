"""
A network that breaks: a TCP proxy that gives every connection a fate, out of a seed.

It loses, delays, cuts and refuses, in either direction, at any byte; it never duplicates or
changes bytes, since TCP does not either. Connections overtake each other because each is delayed
by itself. Now and then nothing can be connected for a while. Standard library only.
"""

import asyncio
import contextlib
import random
import socket
import struct
import threading

from server import end_tasks

# fate: how often, in parts
FATES = {
    "pass": 50,  # Until it has carried enough.
    "lag": 15,  # The same, each piece late.
    "reset": 5,  # At once.
    "swallow": 6,  # What is sent goes nowhere, and nobody says so.
    "cut-up": 12,  # A reset after so many bytes of the caller's,
    "cut-down": 20,  # or of the server's.
    "mute": 6,  # The server gets all and its answers go nowhere.
}


class Network:
    """Runs in a thread of its own, from `port` to `target_port`."""

    def __init__(self, seed, port, target_port):
        self.random = random.Random(seed)
        self.port = port
        self.target_port = target_port
        self.met = dict.fromkeys([*FATES, "outage"], 0)
        self.first = self.random.sample(list(FATES), len(FATES))  # Each at least once.
        self.writers = set()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self.listen(), self.loop).result(10)
        asyncio.run_coroutine_threadsafe(self.outages(), self.loop)

    def close(self):
        asyncio.run_coroutine_threadsafe(end_tasks(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    # ---- in the network's thread ----

    async def listen(self):
        self.server = await asyncio.start_server(
            self.connected, "127.0.0.1", self.port, backlog=512, reuse_address=True
        )

    async def outages(self):
        while True:
            await asyncio.sleep(self.random.uniform(0.5, 2.0))
            self.met["outage"] += 1
            self.server.close()
            for writer in list(self.writers):
                if self.random.random() < 0.5:
                    self.reset(writer)
            await asyncio.sleep(self.random.uniform(0.3, 1.5))
            await self.listen()

    @staticmethod
    def reset(writer):
        with contextlib.suppress(OSError):
            linger = struct.pack("ii", 1, 0)
            end = writer.get_extra_info("socket")
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    def fate(self):
        any_fate = self.random.choices(list(FATES), list(FATES.values()))[0]
        return self.first.pop() if self.first else any_fate

    async def connected(self, reader, writer):
        fate = self.fate()
        self.met[fate] += 1
        self.writers.add(writer)
        try:
            if fate != "reset":
                await self.carry(fate, reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.writers.discard(writer)
            self.reset(writer)

    async def carry(self, fate, reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", self.target_port)
        limit = int(self.random.expovariate(1 / 8000))
        up = {"cut-up": limit, "swallow": None}.get(fate, 1 << 40)
        down = {"cut-down": limit, "pass": 4 * limit, "lag": 4 * limit, "mute": None}.get(
            fate, 1 << 40
        )
        lag_s = self.random.uniform(0.01, 0.12) if fate == "lag" else 0
        directions = [
            asyncio.ensure_future(self.pump(reader, back, up, lag_s)),
            asyncio.ensure_future(self.pump(there, writer, down, lag_s)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            back.close()

    async def pump(self, reader, writer, limit, lag_s):
        """Carries at most `limit` bytes; None: takes everything and carries nothing."""
        while data := await reader.read(65536):
            if limit is None:
                continue
            if lag_s > 0:
                await asyncio.sleep(self.random.uniform(0, lag_s))
            writer.write(data[:limit])
            await writer.drain()
            limit -= len(data)
            if limit <= 0:
                return
