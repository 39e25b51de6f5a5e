"""
Callers of the SQL face that meet, and callers that go.

Goal: at most one of many callers of a key is told to execute, whatever they do with their
transactions; a rollback, a savepoint and a killed process free the key; nobody waits longer than
lock_timeout, and whoever waited in vain has a usable transaction; every isolation level is known.

Method: real connections of one private server; business rows beside the record are the judge.
Usage: meet.py [NAME ...]
"""

import itertools
import os
import signal
import sys
import time
import uuid

import face
from face import F1, F2, claim, one, psycopg, refused, together


def orders(owner):
    """The business table, empty."""
    owner.admin("DROP TABLE IF EXISTS public.orders")
    owner.admin("CREATE TABLE public.orders (number bigserial PRIMARY KEY, key text NOT NULL)")
    owner.admin("GRANT SELECT, INSERT ON public.orders TO shop")
    owner.admin("GRANT USAGE ON SEQUENCE public.orders_number_seq TO shop")


def order_once(connection, key):
    """The whole pattern in one transaction: what a caller does, and what it was told."""
    with connection.transaction():
        row = claim(connection, key, local_only=True)
        if row.outcome != "execute":
            return row
        number = one(connection, "INSERT INTO orders (key) VALUES (%s) RETURNING number", key)
        body = str(number).encode()
        told = one(
            connection, "SELECT idem.complete(%s, 'succeeded', 201, body => %s)", row.token, body
        )
        assert told == "ok", told
        return row._replace(body=body)


def fifty_callers_one_order(owner):
    """Fifty callers of one key: one order, and one answer for all of them"""
    orders(owner)
    rows = owner.crowd(50, lambda connection: order_once(connection, "k1"))
    outcomes = sorted(row.outcome for row in rows)
    assert outcomes == ["execute"] + ["replay"] * 49, outcomes
    assert len({bytes(row.body) for row in rows}) == 1
    assert owner.admin("SELECT count(*) FROM public.orders") == [(1,)]


def fifty_callers_one_lease(owner):
    """Fifty callers of one key, each in a transaction of its own: one executes, while it lasts"""
    rows = owner.crowd(50, lambda connection: claim(connection, "k1"))
    outcomes = sorted(row.outcome for row in rows)
    assert outcomes == ["execute"] + ["in_progress"] * 49, outcomes


def fifty_take_over(owner):
    """Fifty callers of what was left behind: one takes it over, or all hear that it is unknown"""
    connection = owner.connect()
    for key, local_only in (("local", True), ("sent", False)):
        assert claim(connection, key, local_only=local_only).outcome == "execute"
    connection.close()
    owner.admin("UPDATE idem.local_records SET lease_end = clock_timestamp()")
    rows = owner.crowd(50, lambda c: claim(c, "local", local_only=True))
    assert sorted(row.outcome for row in rows) == ["execute"] + ["in_progress"] * 49
    assert [row.epoch for row in rows if row.outcome == "execute"] == [2]
    rows = owner.crowd(50, lambda c: claim(c, "sent"))
    assert {row.outcome for row in rows} == {"unknown"}


def many_keys_many_callers(owner):
    """Eight callers of the same hundred keys, each in its own order: one order a key"""
    orders(owner)
    keys = [f"k{number}" for number in range(104)]

    def all_of(connection, turn):
        told = []
        for key in keys[turn * 13:] + keys[: turn * 13]:
            told.append(order_once(connection, key).outcome)
        return told

    turns = itertools.count()
    told = owner.crowd(8, lambda connection: all_of(connection, next(turns)))
    assert sum(outcomes.count("execute") for outcomes in told) == 104
    assert owner.admin("SELECT count(*), count(DISTINCT key) FROM public.orders") == [(104, 104)]


def batches_that_meet(owner):
    """Eight callers of the same batch: each key executes once, and each order is made once"""
    orders(owner)
    keys = [f"k{number}" for number in range(100)]

    def batch(connection, turn):
        mine = keys[turn * 12:] + keys[: turn * 12]
        with connection.transaction():
            rows = connection.execute(
                "SELECT place, outcome, token FROM idem.claim_many('shop', 'orders.create', %s, %s,"
                " local_only => true)",
                (mine, [F1] * len(mine)),
            ).fetchall()
            assert sorted(row[0] for row in rows) == list(range(1, 101))
            won = [(mine[place - 1], token) for place, outcome, token in rows
                   if outcome == "execute"]
            if not won:
                return 0
            connection.execute(
                "INSERT INTO orders (key) SELECT unnest(%s::text[])", ([key for key, _ in won],)
            )
            count = len(won)
            told = connection.execute(
                "SELECT DISTINCT outcome FROM idem.complete_many(%s, %s, %s, %s, %s)",
                ([t for _, t in won], ["succeeded"] * count, [201] * count, [""] * count,
                 [key.encode() for key, _ in won]),
            ).fetchall()
            assert told == [("ok",)], told
            return count

    turns = itertools.count()
    won = owner.crowd(8, lambda connection: batch(connection, next(turns)))
    assert sum(won) == 100, won
    assert owner.admin("SELECT count(*), count(DISTINCT key) FROM public.orders") == [(100, 100)]
    connection = owner.connect()
    replayed = connection.execute(
        "SELECT key, outcome, body FROM idem.claim_many('shop', 'orders.create', %s, %s) c"
        " JOIN unnest(%s::text[]) WITH ORDINALITY k (key, place) USING (place)",
        (keys, [F1] * 100, keys),
    ).fetchall()
    assert len(replayed) == 100
    assert all(outcome == "replay" and bytes(body) == key.encode()
               for key, outcome, body in replayed), replayed
    connection.close()


def a_batch_says_each_ones_own(owner):
    """A batch of repeats, strangers, new and double keys: each is told what it would be alone"""
    connection = owner.connect()
    done = claim(connection, "done")
    one(connection, "SELECT idem.complete(%s, 'failed', 402, body => 'no')", done.token)
    claim(connection, "held")
    keys = ["new", "done", "held", "new", "done", "other"]
    prints = [F1, F1, F1, F1, F2, F2]
    rows = dict(
        connection.execute(
            "SELECT place, outcome FROM idem.claim_many('shop', 'orders.create', %s, %s)",
            (keys, prints),
        ).fetchall()
    )
    assert rows == {1: "execute", 2: "replay", 3: "in_progress", 4: "in_progress", 5: "mismatch",
                    6: "execute"}, rows
    new = claim(connection, "fresh")
    nobody = uuid.uuid4()
    tokens = [new.token, done.token, nobody, new.token, done.token]
    rows = dict(
        connection.execute(
            "SELECT * FROM idem.complete_many(%s, %s, %s, %s, %s)",
            (tokens, ["succeeded", "failed", "failed", "succeeded", "succeeded"], [201] * 5,
             [""] * 5, [b""] * 5),
        ).fetchall()
    )
    assert rows == {1: "ok", 2: "already", 3: "superseded", 4: "already", 5: "contradiction"}, rows
    assert connection.execute(
        "SELECT * FROM idem.claim_many('shop', 'orders.create', '{}', '{}')").fetchall() == []
    connection.close()


def a_held_key_does_not_hold_the_batch(owner):
    """A batch with keys that strangers hold open waits once, and gets the others"""
    holder = owner.connect(autocommit=False)
    for key in ("k1", "k3", "k5", "k7", "k9"):
        assert claim(holder, key).outcome == "execute"
    connection = owner.connect()
    connection.execute("SET lock_timeout = '1s'")
    keys = [f"k{number}" for number in range(10)]
    began = time.monotonic()
    rows = dict(
        connection.execute(
            "SELECT place, outcome FROM idem.claim_many('shop', 'orders.create', %s, %s)",
            (keys, [F1] * 10),
        ).fetchall()
    )
    took_s = time.monotonic() - began
    held = {place for place, outcome in rows.items() if outcome == "in_progress"}
    assert held == {2, 4, 6, 8, 10} and len(rows) == 10, rows
    assert 0.9 < took_s < 4, took_s  # Six times a second would be each one's full wait.
    assert one(connection, "SHOW lock_timeout") == "1s"
    holder.close()
    connection.close()


def rollback_frees(owner):
    """Whoever waits for an open transaction executes when that one is rolled back"""
    holder = owner.connect(autocommit=False)
    waiter = owner.connect()
    assert claim(holder, "k1").outcome == "execute"

    def roll_back():
        wait_for_a_waiter(owner)
        holder.rollback()

    rows = together([lambda: claim(waiter, "k1", F2), roll_back])
    assert rows[0].outcome == "execute" and rows[0].epoch == 1, rows
    holder.close()
    waiter.close()


def leases_begin_behind_the_wait(owner):
    """Whoever has waited for longer than its lease has all of it when it is told to execute"""
    many = "SELECT outcome FROM idem.claim_many('shop', 'orders.create', '{k2}', '{f}', '1 s')"
    for act in (lambda c: claim(c, "k1", lease="1 s").outcome, lambda c: one(c, many)):
        holder = owner.connect(autocommit=False)
        waiter = owner.connect()
        claim(holder, "k1")
        claim(holder, "k2")

        def roll_back():
            wait_for_a_waiter(owner)
            time.sleep(1.2)
            holder.rollback()

        told = together([lambda: act(waiter), roll_back])
        assert told[0] == "execute", told
        left = "SELECT extract(epoch FROM lease_end - updated) FROM idem.local_records"
        assert owner.admin(left)[0][0] > 2, owner.admin(left)
        owner.clear()
        holder.close()
        waiter.close()


def commit_answers(owner):
    """Whoever waits for an open transaction gets its answer when that one commits"""
    holder = owner.connect(autocommit=False)
    waiter = owner.connect()
    other = owner.connect()
    row = claim(holder, "k1")
    one(holder, "SELECT idem.complete(%s, body => 'done')", row.token)

    def commit():
        wait_for_a_waiter(owner, 2)
        holder.commit()

    rows = together([lambda: claim(waiter, "k1"), lambda: claim(other, "k1", F2), commit])
    assert rows[0].outcome == "replay" and bytes(rows[0].body) == b"done", rows
    assert rows[1].outcome == "mismatch", rows
    for connection in (holder, waiter, other):
        connection.close()


def wait_for_a_waiter(owner, count=1):
    connection = owner.server.connect(owner.database)
    sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    end = time.monotonic() + 30
    while one(connection, sql) < count:
        assert time.monotonic() < end, "nobody waits"
        time.sleep(0.005)
    connection.close()


def a_killed_client_frees(owner):
    """kill -9 of a caller's own process frees what its transaction had claimed"""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        connection = owner.connect(autocommit=False)
        os.write(write, claim(connection, "k1").outcome.encode())
        signal.pause()
    os.close(write)
    assert os.read(read, 100) == b"execute"
    os.close(read)
    waiter = owner.connect()

    def kill():
        wait_for_a_waiter(owner)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    rows = together([lambda: claim(waiter, "k1"), kill])
    assert rows[0].outcome == "execute" and rows[0].epoch == 1, rows
    waiter.close()


def lock_timeout_is_kept(owner):
    """Nobody waits longer than lock_timeout, and the transaction goes on"""
    orders(owner)
    holder = owner.connect(autocommit=False)
    assert claim(holder, "k1").outcome == "execute"
    waiter = owner.connect(autocommit=False)
    waiter.execute("SET lock_timeout = '300ms'")
    waiter.execute("INSERT INTO orders (key) VALUES ('mine')")
    began = time.monotonic()
    row = claim(waiter, "k1")
    took_s = time.monotonic() - began
    assert row.outcome == "in_progress" and row.retry_after >= 1, row
    assert 0.25 < took_s < 3, took_s
    assert one(waiter, "SHOW lock_timeout") == "300ms"
    waiter.commit()
    assert owner.admin("SELECT count(*) FROM public.orders") == [(1,)]
    holder.close()
    waiter.close()


def no_lock_timeout_is_five_seconds(owner):
    """A caller without a lock_timeout waits five seconds, and has none afterwards"""
    holder = owner.connect(autocommit=False)
    assert claim(holder, "k1").outcome == "execute"
    waiter = owner.connect(autocommit=False)
    began = time.monotonic()
    assert claim(waiter, "k1").outcome == "in_progress"
    assert 4.5 < time.monotonic() - began < 12
    assert one(waiter, "SHOW lock_timeout") == "0"
    assert claim(waiter, "k2").outcome == "execute"
    assert one(waiter, "SHOW lock_timeout") == "0"
    holder.close()
    waiter.close()


def a_locked_record_is_busy(owner):
    """Token and evidence wait for a stranger's lock as long, and then say busy"""
    connection = owner.connect(autocommit=False)
    row = claim(connection, "k1")
    connection.commit()
    holder = owner.connect(autocommit=False)
    assert one(holder, "SELECT idem.mark(%s, 's1')", row.token) == "ok"
    connection.execute("SET lock_timeout = '100ms'")
    for call in ("heartbeat(%s)", "mark(%s, 's2')", "complete(%s)", "release(%s)"):
        assert one(connection, f"SELECT idem.{call}", row.token) == "busy", call
    assert one(connection, "SELECT outcome FROM idem.dispatch(%s)", row.token) == "busy"
    settle = "SELECT idem.settle('shop', 'orders.create', 'k1', 'failed', 'ann', 'seen')"
    assert one(connection, settle) == "busy"
    many = ("SELECT outcome FROM idem.complete_many(ARRAY[%s::uuid], '{failed}', '{402}', '{h}',"
            " '{x}')")
    assert one(connection, many, row.token) == "busy"
    assert one(connection, "SELECT 1") == 1
    holder.rollback()
    assert one(connection, "SELECT idem.complete(%s)", row.token) == "ok"
    holder.close()
    connection.close()


def who_asks_holds_up_nobody(owner):
    """A caller that was told in_progress and keeps its transaction open holds up nobody"""
    holder = owner.connect()
    row = claim(holder, "k1")
    asker = owner.connect(autocommit=False)
    assert claim(asker, "k1").outcome == "in_progress"
    assert claim(asker, "k1", F2).outcome == "mismatch"
    holder.execute("SET lock_timeout = '100ms'")
    assert one(holder, "SELECT idem.complete(%s)", row.token) == "ok"
    assert claim(asker, "k1").outcome == "replay"
    assert one(asker, "SELECT pg_current_xact_id_if_assigned() IS NULL"), "a replay wrote something"
    asker.close()
    holder.close()


def two_keys_in_a_ring(owner):
    """Two transactions claim two keys in opposite order: one is told in_progress, none hangs"""
    first, second = owner.connect(autocommit=False), owner.connect(autocommit=False)
    assert claim(first, "a").outcome == "execute"
    assert claim(second, "b").outcome == "execute"

    def then(connection, key):
        began = time.monotonic()
        row = claim(connection, key)
        if row.outcome == "in_progress":
            connection.rollback()  # As it must, to let the other one go on.
        else:
            connection.commit()
        return row.outcome, time.monotonic() - began

    told = together([lambda: then(first, "b"), lambda: then(second, "a")])
    assert sorted(outcome for outcome, _ in told) == ["execute", "in_progress"], told
    assert max(took_s for _, took_s in told) < 4, told
    assert owner.admin("SELECT count(*) FROM idem.local_records") == [(2,)]
    first.close()
    second.close()


def savepoints(owner):
    """A savepoint that is rolled back frees the key, and keeps what was claimed before it"""
    connection = owner.connect(autocommit=False)
    first = claim(connection, "k1")
    connection.execute("SAVEPOINT s")
    second = claim(connection, "k2")
    assert one(connection, "SELECT idem.complete(%s)", second.token) == "ok"
    assert one(connection, "SELECT idem.mark(%s, 's1')", first.token) == "ok"
    connection.execute("ROLLBACK TO SAVEPOINT s")
    again = claim(connection, "k2", F2)
    assert again.outcome == "execute" and again.epoch == 1, again
    assert one(connection, "SELECT idem.complete(%s)", second.token) == "superseded"
    assert one(connection, "SELECT idem.mark(%s, 's1')", first.token) == "ok"
    connection.commit()
    assert claim(connection, "k1").outcome == "in_progress"
    connection.close()


def other_levels(owner):
    """REPEATABLE READ and SERIALIZABLE callers: 40001 instead of what their snapshot cannot show"""
    for level in ("REPEATABLE READ", "SERIALIZABLE"):
        owner.clear()
        holder = owner.connect()
        before = claim(holder, "before")
        one(holder, "SELECT idem.complete(%s, body => 'b')", before.token)
        caller = owner.connect(autocommit=False)
        caller.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        assert claim(caller, "before").outcome == "replay"
        assert claim(caller, "new").outcome == "execute"
        after = claim(holder, "after")  # Behind the caller's snapshot.
        refused(caller, "SELECT * FROM idem.claim('shop', 'orders.create', 'after', %s)", F1,
                state="40001")
        caller.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        assert claim(caller, "after").outcome == "in_progress"
        assert one(holder, "SELECT idem.mark(%s, 's')", after.token) == "ok"
        refused(caller, "SELECT idem.complete(%s)", after.token, state="40001")
        assert owner.admin("SELECT count(*) FROM idem.local_records") == [(2,)]
        holder.close()
        caller.close()


def serializable_callers_meet(owner):
    """Twenty SERIALIZABLE callers that begin again on 40001: one order"""
    orders(owner)

    def caller(connection):
        for _ in range(100):
            connection.execute("SET default_transaction_isolation = 'serializable'")
            try:
                return order_once(connection, "k1")
            except psycopg.errors.SerializationFailure:
                continue
            finally:
                connection.execute("RESET default_transaction_isolation")
        raise AssertionError("a hundred times 40001")

    rows = owner.crowd(20, caller)
    assert sorted(row.outcome for row in rows) == ["execute"] + ["replay"] * 19
    assert owner.admin("SELECT count(*) FROM public.orders") == [(1,)]


def read_only_is_refused(owner):
    """A read-only transaction can be replayed to, and cannot claim"""
    connection = owner.connect()
    row = claim(connection, "k1")
    one(connection, "SELECT idem.complete(%s)", row.token)
    connection.execute("SET default_transaction_read_only = on")
    assert claim(connection, "k1").outcome == "replay"
    refused(connection, "SELECT * FROM idem.claim('shop', 'e', 'k2', %s)", F1, state="25006")
    connection.close()


def durability_is_the_functions(owner):
    """A caller's weaker synchronous_commit does not hold for a transaction with a record in it"""
    connection = owner.connect(autocommit=False)
    for weak in ("off", "local"):
        connection.execute(f"SET synchronous_commit = {weak}")
        connection.commit()
        row = claim(connection, f"k-{weak}")
        assert one(connection, "SHOW synchronous_commit") == "on"
        connection.commit()
        assert one(connection, "SHOW synchronous_commit") == weak
        assert one(connection, "SELECT outcome FROM idem.dispatch(%s)", row.token) == "ok"
        assert one(connection, "SHOW synchronous_commit") == "on"
        connection.rollback()
    connection.execute("SET synchronous_commit = remote_apply")
    claim(connection, "k2")
    assert one(connection, "SHOW synchronous_commit") == "remote_apply"
    connection.close()


def a_repeat_after_a_lost_commit(owner):
    """Whoever does not know whether its COMMIT came through does the same again, and knows"""
    connection = owner.connect()
    row = claim(connection, "k1")
    first = connection.execute("SELECT * FROM idem.dispatch(%s, 'charge')", (row.token,)).fetchone()
    again = connection.execute("SELECT * FROM idem.dispatch(%s, 'charge')", (row.token,)).fetchone()
    assert first == ("ok", f"{row.id}:charge") and again == ("already", f"{row.id}:charge")
    for call in ("mark(%s, 's1')", "complete(%s)"):
        assert one(connection, f"SELECT idem.{call}", row.token) == "ok"
        assert one(connection, f"SELECT idem.{call}", row.token) == "already"
    connection.close()


def reapers_meet(owner):
    """Four reapers at once: each row is forgotten once, none waits for another"""
    connection = owner.connect()
    count = 400
    rows = connection.execute(
        "SELECT token FROM idem.claim_many('shop', 'e', %s, %s)",
        ([f"k{n}" for n in range(count)], [F1] * count),
    ).fetchall()
    connection.execute(
        "SELECT count(*) FROM idem.complete_many(%s, %s, %s, %s, %s)",
        ([t for (t,) in rows], ["succeeded"] * count, [200] * count, [""] * count, [b"b"] * count),
    )
    connection.close()
    owner.admin("UPDATE idem.local_records SET expires = clock_timestamp()")
    desks = [owner.connect("desk") for _ in range(4)]

    def reap(desk):
        expired = 0
        while True:
            done = one(desk, "SELECT expired FROM idem.reap(50)")
            expired += done
            if done == 0:
                return expired

    assert sum(together([lambda d=d: reap(d) for d in desks])) == count
    for desk in desks:
        desk.close()


def a_killed_backend_frees(owner):
    """kill -9 of the server's process for a caller frees what its transaction had claimed"""
    orders(owner)
    holder = owner.connect(autocommit=False)
    pid = one(holder, "SELECT pg_backend_pid()")
    assert claim(holder, "k1").outcome == "execute"
    holder.execute("INSERT INTO orders (key) VALUES ('k1')")
    os.kill(pid, signal.SIGKILL)
    # The server restarts all its processes after that; the others' connections are gone too.
    owner.owner.close()
    end = time.monotonic() + 60
    while True:
        try:
            owner.owner = owner.server.connect(owner.database)
            owner.admin("SELECT 1")
            break
        except psycopg.OperationalError:
            assert time.monotonic() < end
            time.sleep(0.02)
    connection = owner.connect()
    assert claim(connection, "k1").outcome == "execute"
    assert owner.admin("SELECT count(*) FROM public.orders") == [(0,)]
    connection.close()


TESTS = [value for value in list(globals().values()) if getattr(value, "__doc__", None)
         and callable(value) and getattr(value, "__module__", "") == __name__
         and value.__code__.co_varnames[:value.__code__.co_argcount] == ("owner",)
         and value.__name__ != "orders"]

if __name__ == "__main__":
    face.run(TESTS, sys.argv[1:])
