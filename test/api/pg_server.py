"""
A PostgreSQL server that dies, is cut off, is full or does not answer, under the running program.

Goal: whatever happens to the server or to the way there, also between the COMMIT that was sent and
its answer, money moves once, no answer that was given is lost, a caller who was told that nothing
happened was told the truth, nobody waits without end, and idem comes back by itself.

Method: the real program, a private server that is killed and started again, and a wire in between
(test/lib/pg_wire.py) that cuts, waits and tells at a COMMIT. Callers repeat the same request under
the same key until it ends, and then once more; the sandbox's ledger is the judge. Always on
PostgreSQL, whatever --store says. Usage: pg_server.py IDEM [--short] [word in a test ...]
"""

import collections
import contextlib
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
import pg_wire  # noqa: E402
import postgres  # noqa: E402
import store  # noqa: E402
from harness import Gone, World  # noqa: E402

SHORT = "--short" in sys.argv
SETTINGS = {"wait_ms": 3000}
COMMIT_DELAY_MS = 60
PAUSES_MS = (0, 150) if SHORT else (0, 10, 40, 60, 80, 150)
ANSWER_S = 12  # Nobody waits longer for an answer, whatever the server does: wait_ms and 5 s more.
TESTS = []


class Place:
    """The server of this program, and its wire."""

    server = None

    @classmethod
    def get(cls):
        if cls.server is None:
            # What idem did not wait for stays in memory for long, so that a kill loses it.
            settings = {"max_connections": "100", "wal_writer_delay": "10s"}
            cls.server = postgres.Server(settings)
            cls.server.start()
        if not cls.server.alive():
            cls.server.start()
        return cls.server


class Scene:
    """A world behind a wire, and its book: what callers were told."""

    def __init__(self, idem, server, settings=None):
        self.server = server
        self.wire = pg_wire.Wire(server.port)
        directory = pathlib.Path(tempfile.mkdtemp(prefix="idem-test-"))
        self.kept = store.Postgres(directory, server, self.wire.port)
        self.world = World(idem, {**SETTINGS, **(settings or {})}, store=self.kept)
        self.methods = {}  # key: what it is paid with
        self.told = {}  # key: body
        self.answers = {}  # status and code: how often
        self.lock = threading.Lock()
        self.stopping = False

    def close(self):
        self.world.close()
        self.wire.close()
        shutil.rmtree(self.kept.directory, ignore_errors=True)

    # ---- callers ----

    def pay(self, key, method="tok_ok"):
        """One try. Gives the reply, or None."""
        begun = time.monotonic()
        method = self.methods.setdefault(key, method)
        try:
            reply = self.world.pay(key, f"order-{key}", method=method, timeout=ANSWER_S)
        except (Gone, OSError) as error:
            assert time.monotonic() - begun < ANSWER_S, f"{key}: no answer within {ANSWER_S} s"
            assert self.world.alive(), f"the service ended ({error})\n{self.world.log_text()}"
            return None
        self.note(key, reply)
        return reply

    def note(self, key, reply):
        with self.lock:
            code = reply.json()["type"].rsplit(":", 1)[1] if reply.status >= 400 else ""
            said = f"{reply.status} {code}".strip()
            self.answers[said] = self.answers.get(said, 0) + 1
            if reply.status == 201:
                assert self.told.setdefault(key, reply.body) == reply.body, f"{key} changed"
                return
            assert reply.status in (202, 503), reply
            if reply.status == 503:
                assert reply.json()["retry"] == "same-key", reply
            assert key not in self.told, f"{key} was told, and now {reply}"

    def pay_to_the_end(self, key, method="tok_ok"):
        end = time.monotonic() + harness.PATIENCE_S
        while time.monotonic() < end:
            reply = self.pay(key, method)
            if reply is not None and reply.status == 201:
                return
            time.sleep(0.05)
        raise AssertionError(f"{key} never ended: {self.answers}\n{self.world.log_text()[-2000:]}")

    @contextlib.contextmanager
    def load(self, callers=6):
        """So many callers pay one order after the other, each to its end."""
        broken = []

        def work(number):
            count = 0
            try:
                while not self.stopping:
                    count += 1
                    method = random.choice(("tok_ok", "tok_late_1"))
                    self.pay_to_the_end(f"c{number}-{count}", method)
            except BaseException as error:  # pylint: disable=broad-except
                broken.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(callers)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopping = True
            for thread in threads:
                thread.join()
        if broken:
            raise broken[0]

    # ---- judging ----

    def judge(self):
        """Everything that was paid moved once, and is told again byte for byte."""
        assert self.told, "nothing was paid"
        for key in list(self.told):
            reply = self.pay(key)
            assert reply is None or reply.status != 202, reply
            self.pay_to_the_end(key)
        ledger = self.world.ledger()
        twice = [effect for effect in ledger["effects"] if effect["executions"] != 1]
        assert not twice, twice
        assert len(ledger["effects"]) == len(self.told), (len(ledger["effects"]), len(self.told))
        rows = self.kept.rows("SELECT state, count(*) FROM intents GROUP BY state")
        assert rows == [(5, len(self.told))], rows
        damage = self.kept.damage()
        assert damage == "", damage

    def ready(self):
        self.world.wait_until(
            lambda: self.world.answers(self.world.port, "/readyz"), "it is ready again"
        )


def scene(sentence, settings=None):
    """Makes a test of a function of a scene."""

    def wrap(function):
        def test(idem):
            one = Scene(idem, Place.get(), settings)
            try:
                function(one)
            except BaseException:
                sys.stdout.write(one.world.log_text()[-3000:])
                raise
            finally:
                one.close()

        test.__name__ = function.__name__
        test.__doc__ = sentence
        TESTS.append(test)
        return function

    return wrap


def once(event, number, action):
    """A rule that does something at one event, once."""
    done = threading.Event()

    def rule(event_now, number_now):
        if (event_now, number_now) == (event, number) and not done.is_set():
            done.set()
            return action()
        return None

    rule.done = done
    return rule


@scene("The way breaks at a COMMIT, before it arrives and after it was answered: paid once, told")
def cut_at_commit(one):
    for event in ("asked", "sent", "answered"):
        for number in (1, 2):  # The accept, the settle.
            key = f"{event}-{number}"
            rule = once(event, number, lambda: pg_wire.CUT)
            one.wire.set_rule(rule)
            one.pay_to_the_end(key)
            assert rule.done.is_set(), f"{key}: the wire saw no such COMMIT"
    one.wire.set_rule(lambda event, number: None)
    one.judge()


@scene("A COMMIT that is not answered is told as unknown in time, and found out later")
def commit_unanswered(one):
    for event in ("asked", "sent", "answered"):
        release = threading.Event()
        rule = once(event, 1, lambda: release.wait(60) and None)
        one.wire.set_rule(rule)
        begun = time.monotonic()
        reply = one.pay(event)
        took_s = time.monotonic() - begun
        assert rule.done.is_set(), "the wire saw no COMMIT"
        assert took_s < ANSWER_S, f"answered after {took_s:.1f} s"
        if reply is not None and reply.status == 503:
            assert reply.json()["effect"] == "unknown", reply
        other = one.pay(f"beside-{event}")
        assert other is not None and other.status == 201, f"held up by a stranger: {other}"
        release.set()
        one.pay_to_the_end(event)
    one.judge()


@scene("The server is killed -9 in the middle of a COMMIT and started again: paid once, told")
def killed_in_commit(one):
    # The server thinks before it flushes, so that a kill can come before or after that.
    one.server.set(commit_delay=COMMIT_DELAY_MS * 1000, commit_siblings=0)
    outcomes = collections.Counter()
    for number, pause_ms in itertools.product((1, 2), PAUSES_MS):
        key = f"k{number}-{pause_ms}"

        def kill(pause_s=pause_ms / 1000):
            time.sleep(pause_s)
            one.server.kill()
            return pg_wire.CUT

        rule = once("sent", number, kill)
        one.wire.set_rule(rule)
        payer = threading.Thread(target=one.pay_to_the_end, args=(key,))
        payer.start()
        one.world.wait_until(rule.done.is_set, "a COMMIT is sent")
        one.world.wait_until(lambda: not one.server.alive(), "the server is dead")
        one.wire.refuses = True  # Nobody but us.
        one.server.start()
        state = (one.kept.rows("SELECT state FROM intents WHERE key = ?", key) or [(0,)])[0][0]
        outcomes[number, "there" if state == (2, 5)[number - 1] else "not there"] += 1
        one.wire.refuses = False
        payer.join()
        assert key in one.told, f"{key} did not end"
    one.wire.set_rule(lambda event, number: None)
    one.server.set(commit_delay=0)
    print(f"# COMMIT that was cut short: {dict(outcomes)}")
    assert SHORT or len(outcomes) == 4, "both ends of both were not met"
    one.judge()


def server_bounce(one, mode):
    if mode == "kill":
        one.server.kill()
    elif mode == "backends":
        one.server.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            one.kept.name,
        )
        return
    elif mode == "wire":
        one.wire.cut_all()
        return
    else:
        one.server.stop(mode)
    one.server.start()


@scene("Under load the server is killed, stopped, restarted, and all connections are cut")
def restarts_under_load(one):
    dice = random.Random(11)
    modes = ["kill", "immediate", "fast", "backends", "wire"] * (1 if SHORT else 6)
    dice.shuffle(modes)
    with one.load():
        for mode in modes:
            paid = len(one.told)
            time.sleep(dice.uniform(0.1, 0.8))
            server_bounce(one, mode)
            one.world.wait_until(lambda before=paid: len(one.told) > before, f"paid after {mode}")
    print(f"# {len(modes)} times; {len(one.told)} paid; answers {one.answers}")
    one.judge()


@scene("Who is told that nothing happened, and does not ask again, was told the truth")
def none_is_true(one):
    dice = random.Random(13)
    last = {}  # key: the effect that its one caller was told

    def ask_once(number):
        count = 0
        while not one.stopping:
            count += 1
            key = f"once{number}-{count}"
            with contextlib.suppress(Gone, OSError):
                reply = one.world.pay(key, f"order-{key}", timeout=ANSWER_S)
                last[key] = reply.json()["effect"] if reply.status == 503 else reply.status
            time.sleep(0.01)

    askers = [threading.Thread(target=ask_once, args=(number,)) for number in range(4)]
    for asker in askers:
        asker.start()
    for mode in ("kill", "wire", "immediate", "backends") * (1 if SHORT else 3):
        time.sleep(dice.uniform(0.2, 0.8))
        server_bounce(one, mode)
        one.ready()
    one.stopping = True
    for asker in askers:
        asker.join()
    sql = "SELECT count(*) FROM intents WHERE due_us > 0"
    one.world.wait_until(lambda: one.kept.rows(sql) == [(0,)], "what was begun has ended")
    effects = {e["order_no"]: e["arrivals"] for e in one.world.ledger()["effects"]}
    counts = collections.Counter(last.values())
    print(f"# told once: {dict(counts)}; {len(effects)} orders arrived")
    assert counts["none"] + counts["unknown"] > 0 and counts[201] > 0, "the scene saw nothing"
    lies = [key for key, told in last.items() if told == "none" and f"order-{key}" in effects]
    assert not lies, f"told that nothing happened, and it did: {lies}"
    unpaid = [key for key, told in last.items() if told == 201 and f"order-{key}" not in effects]
    assert not unpaid, f"told that it is paid, and it is not: {unpaid}"


@scene("A server that is gone: refused in time with the same key to repeat, not ready, then back")
def server_gone(one):
    one.pay_to_the_end("before")
    one.server.stop("fast")
    for number in range(3):
        reply = one.pay(f"down-{number}")
        assert reply is not None and reply.status == 503, reply
    again = one.pay("before")
    assert again is None or again.status in (201, 503), again
    one.world.wait_until(
        lambda: not one.world.answers(one.world.port, "/readyz"), "it says that it is not ready"
    )
    assert one.world.answers(one.world.port, "/healthz"), "it lives"
    assert one.world.ledger()["arrivals"] == 1, "nothing was sent without a record"
    one.server.start()
    one.ready()
    for number in range(3):
        one.pay_to_the_end(f"down-{number}")
    one.judge()


@scene("The server goes while the provider works: what it did is recorded when the server is back")
def gone_at_settle(one):
    for mode in ("kill", "fast"):
        key = f"slow-{mode}"
        payer = threading.Thread(target=one.pay_to_the_end, args=(key, "tok_slow_1"))
        payer.start()
        one.world.wait_until(
            lambda k=key: one.world.ledger(order_no=f"order-{k}")["arrivals"] == 1, "it arrives"
        )
        one.server.kill() if mode == "kill" else one.server.stop(mode)
        time.sleep(1.5)  # The provider answers meanwhile.
        one.server.start()
        payer.join()
        assert key in one.told, f"{key} did not end"
    one.judge()


@scene("A stranger's open transaction on one key holds up that key and nobody else")
def stranger_in_the_way(one):
    one.pay_to_the_end("mine")
    one.world.wait_until(
        lambda: one.kept.rows("SELECT count(*) FROM intents WHERE due_us > 0") == [(0,)], "quiet"
    )
    with contextlib.closing(one.server.connect(one.kept.name, autocommit=False)) as stranger:
        stranger.execute("SELECT 1 FROM idem.payments FOR UPDATE")
        late = one.kept.rows("SELECT id FROM payments")[0][0].hex()
        uid = "-".join((late[:8], late[8:12], late[12:16], late[16:20], late[20:]))
        refund = threading.Thread(
            target=lambda: one.world.post(f"/v1/payments/{uid}/refunds", "r", {"amount": "1.00"})
        )
        refund.start()
        for number in range(20):
            begun = time.monotonic()
            reply = one.pay(f"free-{number}")
            took_s = time.monotonic() - begun
            assert reply is not None and reply.status == 201, reply
            assert took_s < 3, f"held up for {took_s:.1f} s"
        refund.join(ANSWER_S)
        assert not refund.is_alive(), "it waits without end"
        stranger.rollback()
    deadline = time.monotonic() + harness.PATIENCE_S
    while one.world.post(f"/v1/payments/{uid}/refunds", "r", {"amount": "1.00"}).status != 201:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert one.world.get(f"/v1/payments/{uid}").json()["refunded"] == "1.00"
    executions = [e["executions"] for e in one.world.ledger(order_no="order-mine")["effects"]]
    assert executions == [1, 1], executions


# ---- full disks ----


class SmallServer(postgres.Server):
    """A server that has `paths` of its directory on file systems of so many megabytes."""

    def __init__(self, settings, sizes):
        self.room = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "-m", "sleep",
                                      "infinity"])
        super().__init__(settings, "small", make=False)
        for name, size in sizes.items():
            path = self.directory / name
            path.mkdir()
            self.inside("mount", "-t", "tmpfs", "-o", f"size={size}m,mode=777", "tmpfs", str(path))
        words = ("-U", postgres.USER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        more = ("--waldir", str(self.directory / "wal" / "pg_wal")) if "wal" in sizes else ()
        self.run("initdb", "-D", str(self.data), *words, *more)

    @staticmethod
    def possible():
        tool = shutil.which("unshare")
        words = [tool, "-m", "mount", "-t", "tmpfs", "tmpfs", tempfile.gettempdir()]
        return tool is not None and os.getuid() == 0 and (
            subprocess.run(words, check=False, stderr=subprocess.DEVNULL).returncode == 0
        )

    def inside(self, *words):
        subprocess.run(["nsenter", "-m", "-t", str(self.room.pid), *words], check=True)

    def as_user(self, program, *arguments):
        into = ["nsenter", "-m", f"-w{self.directory}", "-t", str(self.room.pid)]
        return into + super().as_user(program, *arguments)

    def grow(self, name, size):
        path = self.directory / name
        self.inside("mount", "-o", f"remount,size={size}m", str(path))

    def close(self, keep=False):
        if self.alive():
            self.stop("immediate")
        self.room.kill()
        self.room.wait()
        super().close(keep)


def small(sentence, settings, sizes):
    """Makes a test of a function of a scene on a server with little room."""

    def wrap(function):
        def test(idem):
            if not SmallServer.possible():
                print("# no right to mount here: not run")
                return
            server = SmallServer(settings, sizes)
            try:
                server.start()
                one = Scene(idem, server)
                try:
                    function(one)
                except BaseException:
                    sys.stdout.write(one.world.log_text()[-3000:] + server.log_text()[-3000:])
                    raise
                finally:
                    one.close()
            finally:
                server.close()

        test.__name__ = function.__name__
        test.__doc__ = sentence
        TESTS.append(test)
        return function

    return wrap


def pay_until_refused(one, count=4000):
    """Big bodies, until there is no room. Gives the key that was refused, and the reply."""
    for number in range(count):
        key = f"k{number}"
        reply = one.pay(key)
        if reply is None or reply.status != 201:
            return key, reply
    raise AssertionError("the disk was never full")


@small(
    "A full disk for the log stops the server; with room again everything is as it was told",
    {"max_wal_size": "512MB", "wal_keep_size": "512MB", "min_wal_size": "32MB"},
    {"wal": 72},
)
def log_full(one):
    """idem meets a server that panics at a COMMIT, and one that cannot start."""
    one.pay_to_the_end("before")
    fill = "SELECT pg_logical_emit_message(true, 'fill', repeat('x', 1000000))"
    for _ in range(200):
        try:
            one.server.rows(fill)
        except one.kept.errors():
            break
    key = "late"
    reply = one.pay(key)
    assert reply is None or reply.status == 503, reply
    with contextlib.suppress(AssertionError):
        one.server.stop("immediate")
    one.server.grow("wal", 1024)
    one.server.start(wal_keep_size="32MB")
    one.ready()
    one.pay_to_the_end(key)
    one.judge()


@small(
    "A full disk for the tables: refused with nothing written, replays go on, and then it is paid",
    {"shared_buffers": "16MB"},
    {"space": 48},
)
def tables_full(one):
    name = one.kept.name
    place = one.server.directory / "space"
    if one.server.user is not None:
        one.server.inside("chown", str(one.server.user.pw_uid), str(place))
    one.world.stop()
    one.server.rows(f"CREATE TABLESPACE small LOCATION '{place}'")
    one.server.rows(f"ALTER DATABASE {name} SET TABLESPACE small")
    one.world.start()
    one.pay_to_the_end("before")
    with contextlib.suppress(one.kept.errors()):
        one.server.rows(
            "CREATE TABLE filler AS"
            " SELECT repeat(md5(g::text), 60) FROM generate_series(1, 1000) AS g",
            database=name,
        )
        for _ in range(1000):
            one.server.rows("INSERT INTO filler SELECT * FROM filler LIMIT 1000", database=name)
    one.server.rows("CHECKPOINT")
    key, reply = pay_until_refused(one)
    assert reply is not None and reply.status in (202, 503), reply
    assert one.pay("before").status == 201, "what is known is replayed"
    one.server.grow("space", 512)
    one.ready()
    one.pay_to_the_end(key)
    one.judge()


if __name__ == "__main__":
    try:
        chosen = [word for word in sys.argv[2:] if word != "--short"]
        harness.run(TESTS, sys.argv[1], chosen)
    finally:
        if Place.server is not None:
            Place.server.close()
