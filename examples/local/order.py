"""
One order, once, in Python: psycopg 3, plain transactions.

Fifty threads place the same order under one key at the same moment; each has a connection of its
own. DATABASE_URL=postgres://shop@host/database python3 order.py
"""

import hashlib
import os
import sys
import threading
import time
import uuid

import psycopg

CALLERS = 50


def place(connection, key, item):
    """The number of the order, whoever has made it. Safe to call again at any time."""
    fingerprint = hashlib.sha256(item.encode()).digest()
    for _ in range(10):
        with connection.transaction():
            outcome, token, body, retry_after = connection.execute(
                "SELECT outcome, token, body, retry_after FROM idem.claim("
                "  principal => 'shop', endpoint => 'orders.create', key => %s,"
                "  fingerprint => %s, local_only => true)",
                (key, fingerprint),
            ).fetchone()
            if outcome == "execute":
                (number,) = connection.execute(
                    "INSERT INTO orders (item) VALUES (%s) RETURNING number", (item,)
                ).fetchone()
                connection.execute(
                    "SELECT idem.complete(token => %s, status => 201, body => %s)",
                    (token, str(number).encode()),
                )
                return number
            if outcome == "replay":
                return int(body)
            if outcome != "in_progress":
                raise RuntimeError(f"not ours to execute: {outcome}")
        time.sleep(retry_after)
    raise RuntimeError("somebody else is still at it")


def main():
    url = os.environ["DATABASE_URL"]
    key = f"python-{uuid.uuid4()}"
    item = f"lamp {key}"
    connections = [psycopg.connect(url, autocommit=True) for _ in range(CALLERS)]
    start = threading.Barrier(CALLERS)
    told = []

    def caller(connection):
        start.wait()
        told.append(place(connection, key, item))

    threads = [threading.Thread(target=caller, args=(one,)) for one in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = connections[0].execute("SELECT number FROM orders WHERE item = %s", (item,)).fetchall()
    for connection in connections:
        connection.close()
    print(f"python: {CALLERS} callers, {len(told)} were told: {sorted(set(told))}; rows: {rows}")
    return 0 if len(told) == CALLERS and rows == [(told[0],)] and len(set(told)) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
