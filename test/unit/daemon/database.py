#!/usr/bin/env python3
"""
`idem serve` on PostgreSQL as a process: what is refused at the start, what becomes of a service
whose database goes away, and that no password is ever printed.

Goal: whoever runs several instances can rely on the exit statuses, on messages that say what to do,
and on a service that comes back when its database does. Method: the real program and a private
server; the provider's ledger says how often money moved, the clock says that no start and no answer
takes longer than it may.

    database.py IDEM [WORD ...]
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "lib"))
sys.argv += ["--store", "postgres"]

import harness  # noqa: E402
import postgres  # noqa: E402
import store as stores  # noqa: E402

START_MAX_S = 12.0  # Two connections that are waited for 5 s each, and a slow machine.

SERVER = None


def server():
    global SERVER  # pylint: disable=global-statement
    if SERVER is None:
        SERVER = postgres.Server({"max_connections": "60"})
        SERVER.start()
    return SERVER


class Place(stores.Postgres):
    """A database of the test's own server; secrets in a directory that outlives worlds."""

    def __init__(self, on=None):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="idem-place-"))
        super().__init__(self.home, on or server())

    def close(self):
        """Its worlds come and go."""

    def end(self):
        shutil.rmtree(self.home, ignore_errors=True)


class Instance(harness.World):
    """One of several services on one place, with the first one's provider."""

    def __init__(self, idem, place, first=None, start=True, settings=None):
        settings = settings or {"limits": "store_writers = 2"}
        super().__init__(idem, settings, start=False, store=place)
        if first is None:
            self.start_sandbox()
        else:
            self.sandbox_port = first.sandbox_port
        if start:
            self.start()

    def events(self):
        """The service's own lines."""
        lines = [json.loads(line) for line in self.log_text().splitlines() if line[:1] == "{"]
        return [line for line in lines if line.get("role") != "sandbox"]

    def event(self, name):
        return [line for line in self.events() if line["event"] == name]

    def wait_event(self, name, count=1):
        self.wait_until(lambda: len(self.event(name)) >= count, f"{count} of {name}")

    def ready(self):
        return self.get("/readyz").status


@contextlib.contextmanager
def instance(idem, place, first=None, start=True, settings=None):
    one = Instance(idem, place, first, start, settings)
    try:
        yield one
    except BaseException:
        print("# " + one.log_text()[-3000:].replace("\n", "\n# "), flush=True)
        raise
    finally:
        one.close()


@contextlib.contextmanager
def new_place(on=None):
    place = Place(on)
    try:
        yield place
    finally:
        place.end()


def refused(one, status, *words, arguments=(), within_s=START_MAX_S):
    """It ends by itself with this status, in time, and says these words."""
    one.write_config()
    begin = time.monotonic()
    environment = {**os.environ, "IDEM_TEST_PROVIDER_CREDENTIAL": "provider-secret"}
    done = subprocess.run(
        [one.idem, "serve", "--config", str(one.config_path()), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )
    took_s = time.monotonic() - begin
    said = done.stdout + done.stderr
    assert done.returncode == status, f"exit {done.returncode}, not {status}: {said}"
    assert took_s < within_s, f"took {took_s:.1f} s: {said}"
    for word in words:
        assert word in said, f"{word!r} is not in {said}"
    return said


def executions(one):
    """How often money moved, by order number."""
    counts = {}
    for effect in one.ledger()["effects"]:
        counts[effect["order_no"]] = counts.get(effect["order_no"], 0) + effect["executions"]
    return counts


def pay_until(one, key, order_no, patience_s=30.0):
    """As a client does: the same request again until there is an answer that counts."""
    end = time.monotonic() + patience_s
    while True:
        try:
            reply = one.pay(key, order_no)
            if reply.status == 201:
                return reply
        except (harness.Gone, OSError):
            pass
        assert time.monotonic() < end, f"{key} was never answered"
        time.sleep(0.05)


# ---- beginning, going on ----


def test_a_database_begins_is_killed_and_goes_on(idem):
    """An empty database begins; a key that was answered before a kill -9 is replayed after it."""
    with new_place() as place, instance(idem, place) as one:
        first = one.pay("k1", "o1")
        assert first.status == 201, first
        assert (place.secrets.stat().st_mode & 0o777) == 0o600
        one.kill()
        one.start()
        again = one.pay("k1", "o1")
        assert again.body == first.body and again.header("Idempotent-Replayed") == "true", again
        one.wait_until(lambda: one.ready() == 200, "it is ready")
        metrics = one.get("/metrics", bearer=harness.OPERATOR_BEARER).body.decode()
        assert "\nidem_store_silent 0\n" in metrics, metrics
        assert one.stop() == 0
        assert executions(one) == {"o1": 1}, one.ledger()
        start = one.event("start")[0]
        assert start["store"] == f"postgres://127.0.0.1:{server().port}/{place.name}", start


def test_two_instances_serve_one_database(idem):
    """Two instances at once: one replays what the other did, a key sent to both pays once."""
    with new_place() as place, instance(idem, place) as one:
        with instance(idem, place, first=one) as two:
            first = one.pay("k1", "o1")
            again = two.pay("k1", "o1")
            assert again.body == first.body, again
            assert again.header("Idempotent-Replayed") == "true", again
            replies = []

            def send(to, number):
                replies.append((number, pay_until(to, f"both{number}", f"b{number}").body))

            threads = [
                threading.Thread(target=send, args=(to, number))
                for number in range(10)
                for to in (one, two)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert len(replies) == 20 and len(set(replies)) == 10, replies
            counts = executions(one)
            assert len(counts) == 11 and set(counts.values()) == {1}, counts
            assert two.event("ready")[0]["incarnation"] != one.event("ready")[0]["incarnation"]
            assert two.stop() == 0


# ---- secrets ----


def test_secrets_and_store_belong_together(idem):
    """Other secrets, none, or a lost database are refused; nothing is made; --new-store begins."""
    with new_place() as place, instance(idem, place) as one:
        assert one.pay("k1", "o1").status == 201
        assert one.stop() == 0
        kept = place.secrets.read_text()

        digits = kept.split("effect ")[1][:64]
        place.secrets.write_text(kept.replace(digits, "ab" * 32))
        refused(one, 4, "is not the one this store was made with")

        place.secrets.unlink()
        refused(one, 4, "is missing but the store", "another instance has")
        assert not place.secrets.exists()

        place.secrets.write_text(kept)
        place.secrets.chmod(0o600)
        refused(one, 4, "--new-store", "is there and not empty", arguments=["--new-store"])
        place.remove()
        refused(one, 4, "is missing or empty while its secrets", "--new-store")
        tables = server().rows("SELECT count(*) FROM pg_namespace WHERE nspname = 'idem'",
                               database=place.name)
        assert tables == [(0,)], tables
        refused(one, 4, "is missing or empty", arguments=["--restored"])
        one.start(arguments=["--new-store"])
        assert place.secrets.read_text() == kept
        assert one.pay("k2", "o2").status == 201


def test_a_configuration_without_secrets_is_3(idem):
    """With a database the file of secrets must be named; --demo keeps its own file."""
    with new_place() as place, instance(idem, place, start=False) as one:
        place.configuration = lambda: ""
        refused(one, 3, "'secrets' is missing")
        done = subprocess.run(
            [idem, "serve", "--demo", "--store", place.address()],
            capture_output=True, text=True, timeout=30, check=False,
        )
        assert done.returncode == 3, done


# ---- passwords ----


def test_a_password_is_only_where_others_cannot_read_it(idem):
    """A password is refused as an argument and in a file that others read; it is never printed."""
    word = "s3cr3t-w0rd"
    with new_place() as place, instance(idem, place, start=False) as one:
        plain = place.address()
        secret = plain.replace("idem@", f"idem:{word}@")
        for url in (secret, f"{plain}?password={word}", f"{plain}?sslpassword={word}"):
            said = refused(one, 3, "command line: --store has a password", "passfile",
                           arguments=["--store", url])
            assert word not in said, said
        for url in (secret + "?nonsense=1", f"postgres://idem:{word}@[::1/x",
                    f"{plain}?{word}", f"{plain}?a={word}&{word}"):
            said = refused(one, 3, "cannot be understood", arguments=["--store", url])
            assert word not in said, said
        place.address = lambda: secret
        one.write_config()
        one.config_path().chmod(0o644)
        said = refused(one, 3, "chmod 600")
        assert word not in said, said
        one.config_path().chmod(0o600)
        one.start()
        assert one.pay("k1", "o1").status == 201
        one.service.send_signal(signal.SIGHUP)
        one.wait_event("reloaded")
        with silent(server()):
            one.wait_event("store-silent")
        one.wait_event("store-answers")
        assert one.stop() == 0
        assert word not in one.log_text()


def test_a_server_that_asks_for_a_password_gets_it_from_a_file(idem):
    """A passfile in the URL works; a wrong one is refused without being printed."""
    asked = postgres.Server(name="asking")
    try:
        asked.start()
        asked.psql("CREATE ROLE teller LOGIN PASSWORD 'right-word';"
                   "CREATE DATABASE till OWNER teller")
        rules = asked.data / "pg_hba.conf"
        rules.write_text("local all all trust\nhost all idem 127.0.0.1/32 trust\n"
                         "host all all 127.0.0.1/32 scram-sha-256\n")
        asked.psql("SELECT pg_reload_conf()")
        with new_place() as place, instance(idem, place, start=False) as one:
            passfile = place.home / "passfile"
            passfile.write_text(f"127.0.0.1:{asked.port}:till:teller:right-word\n")
            passfile.chmod(0o600)
            url = f"postgres://teller@127.0.0.1:{asked.port}/till?passfile={passfile}"
            place.address = lambda: url
            one.start()
            assert one.pay("k1", "o1").status == 201
            assert one.stop() == 0
            passfile.write_text(f"127.0.0.1:{asked.port}:till:teller:wrong-word\n")
            said = refused(one, 4, "password authentication failed")
            assert "wrong-word" not in said, said
            assert "right-word" not in one.log_text()
    finally:
        asked.close()


def test_another_machine_needs_tls(idem):
    """A URL that would let money's records travel in clear is refused unless told otherwise."""
    with new_place() as place, instance(idem, place, start=False) as one:
        place.address = lambda: "postgres://idem@db.example/till"
        refused(one, 3, "without TLS", "sslmode=verify-full")
        place.address = lambda: "postgres://idem@db.example/till?sslmode=verify-full"
        refused(one, 0, "can be used", arguments=["--check"])


# ---- servers that are refused ----


def test_a_server_that_may_forget_is_refused(idem):
    """fsync or full_page_writes off, a standby, another encoding, no rights: exit 4, and why."""
    bad = postgres.Server(name="bad")
    try:
        bad.start(fsync="off")
        with new_place(bad) as place, instance(idem, place, start=False) as one:
            refused(one, 4, "fsync = off")
            bad.set(fsync="on", full_page_writes="off")
            refused(one, 4, "full_page_writes = off")
            bad.set(full_page_writes="on")

            bad.psql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0;"
                     "CREATE ROLE guest LOGIN; CREATE DATABASE locked;"
                     "REVOKE CREATE ON DATABASE locked FROM PUBLIC")
            place.address = lambda: bad.url("latin")
            refused(one, 4, "UTF8")
            place.address = lambda: bad.url("nowhere")
            refused(one, 4, "does not exist")
            place.address = lambda: bad.url("locked").replace("idem@", "guest@")
            refused(one, 4, "permission denied")
            assert not place.secrets.exists() or place.secrets.unlink() is None

            place.address = lambda: bad.url(place.name)
            bad.stop()
            (bad.data / "standby.signal").touch()
            bad.start()
            refused(one, 4, "standby")
            assert not place.secrets.exists()
    finally:
        bad.close()


def test_a_server_that_is_not_there_is_4_in_time(idem):
    """Nobody listens, or somebody who says nothing: exit 4, in a few seconds, with the address."""
    with new_place() as place, instance(idem, place, start=False) as one:
        with socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            port = mute.getsockname()[1]
            place.address = lambda: f"postgres://idem@127.0.0.1:{port}/till"
            refused(one, 4, "Connection refused", str(port), within_s=5)
            mute.listen(8)
            refused(one, 4, "cannot open the database's store", "in time")
        assert not place.secrets.exists()


def test_a_host_that_says_nothing_is_passed_by(idem):
    """Of several hosts one is mute, one refuses: the third is found, at the start and later."""
    with new_place() as place, instance(idem, place, start=False) as one:
        with socket.socket() as mute, socket.socket() as deaf:
            mute.bind(("127.0.0.1", 0))
            mute.listen(64)
            deaf.bind(("127.0.0.1", 0))
            ports = [each.getsockname()[1] for each in (mute, deaf)] + [server().port]
            hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
            url = f"postgres://idem@{hosts}/{place.name}?target_session_attrs=read-write"
            place.address = lambda: url
            one.start()
            assert one.event("ready"), one.log_text()
            assert one.pay("k1", "o1").status == 201
            place.say("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                      f" WHERE datname = '{place.name}'")
            begin = time.monotonic()
            pay_until(one, "k2", "o2")
            assert time.monotonic() - begin < 5, "who answered last is asked first"
            assert one.event("start")[0]["store"] == url.split("?")[0].replace("idem@", "")
            assert executions(one) == {"o1": 1, "o2": 1}, one.ledger()


# ---- a database that goes away ----


@contextlib.contextmanager
def silent(of):
    of.stop("immediate")
    try:
        yield
    finally:
        of.start()


def test_a_database_that_goes_away_comes_back_by_itself(idem):
    """While its server is gone the service says 503 and is not ready; then it comes back."""
    with new_place() as place, instance(idem, place) as one:
        first = one.pay("k1", "o1")
        one.wait_until(lambda: one.ready() == 200, "it is ready")
        with silent(server()):
            reply = one.pay("k2", "o2")
            assert reply.status == 503, reply
            assert reply.header("Retry-After"), reply
            one.wait_event("store-silent")
            one.wait_until(lambda: one.ready() == 503, "it is not ready")
            assert one.answers(one.port, "/healthz")
            assert one.alive()
        one.wait_event("store-answers")
        again = pay_until(one, "k2", "o2")
        assert again.header("Idempotent-Replayed") in ("true", "false"), again
        assert one.pay("k1", "o1").body == first.body
        one.wait_until(lambda: one.ready() == 200, "it is ready again")
        assert executions(one) == {"o1": 1, "o2": 1}, one.ledger()
        error = one.event("store-silent")[0]
        assert error["error"] and error["store"].startswith("postgres://"), error
        assert one.stop() == 0


def test_connections_that_are_cut_under_load_pay_once(idem):
    """Every connection to the database is cut again and again: each key pays once."""
    with new_place() as place, instance(idem, place) as one:
        stop = threading.Event()
        replies = {}

        def send(worker):
            number = 0
            while not stop.is_set():
                order_no = f"w{worker}n{number}"
                replies[order_no] = pay_until(one, order_no, order_no).body
                number += 1

        threads = [threading.Thread(target=send, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 60
        while len(replies) < 40 and time.monotonic() < end:
            time.sleep(0.15)
            place.say("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                      f" WHERE datname = '{place.name}' AND pid <> pg_backend_pid()")
        stop.set()
        for thread in threads:
            thread.join(60)
        counts = executions(one)
        assert set(counts) == set(replies) and set(counts.values()) == {1}, (counts, len(replies))
        assert len(replies) >= 40, len(replies)
        for order_no, body in replies.items():
            assert one.pay(order_no, order_no).body == body
        assert one.alive()
        assert all(line[:1] == "{" for line in one.log_text().splitlines()), one.log_text()


def test_a_server_that_hangs_holds_nobody_for_ever(idem):
    """A server that stands still: the answer comes in bounded time; it goes on when that does."""
    hung = postgres.Server(name="hung")
    try:
        hung.start()
        with new_place(hung) as place, instance(idem, place, start=False) as one:
            one.start()
            assert one.pay("k1", "o1").status == 201
            pids = [hung.process.pid, *postgres.children_of(hung.process.pid)]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                begin = time.monotonic()
                reply = one.pay("k2", "o2")
                took_s = time.monotonic() - begin
                assert reply.status in (202, 503), reply
                assert took_s < 15, took_s
                one.wait_event("store-silent")
                one.wait_until(lambda: one.ready() == 503, "it is not ready")
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
            pay_until(one, "k2", "o2")
            one.wait_until(lambda: one.ready() == 200, "it is ready again")
            assert executions(one) == {"o1": 1, "o2": 1}, one.ledger()
    finally:
        hung.close()


def test_another_database_in_its_place_ends_the_service(idem):
    """A database that does not know the instance is not the one it opened: exit 5, then 4."""
    with new_place() as place, instance(idem, place) as one:
        assert one.pay("k1", "o1").status == 201
        place.say(f"ALTER DATABASE {place.name} ALLOW_CONNECTIONS false")  # Or it is back at once.
        place.say("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                  f" WHERE datname = '{place.name}'")
        place.say(f"ALTER DATABASE {place.name} RENAME TO {place.name}_away")
        place.say(f"CREATE DATABASE {place.name}")
        try:
            one.wait_until(lambda: place_try(one), "somebody asks it")
            assert one.service.wait(30) == 5
            assert one.event("store-broken"), one.log_text()
            refused(one, 4, "is missing or empty while its secrets")
        finally:
            place.say(f"DROP DATABASE {place.name}")
            place.say(f"ALTER DATABASE {place.name}_away RENAME TO {place.name}")
            place.say(f"ALTER DATABASE {place.name} ALLOW_CONNECTIONS true")
        one.start()
        assert one.pay("k1", "o1").header("Idempotent-Replayed") == "true"
        assert executions(one) == {"o1": 1}, one.ledger()


def place_try(one):
    """True once it has gone."""
    with contextlib.suppress(harness.Gone, OSError):
        assert one.pay("k9", "o9").status == 503
    return not one.alive()


SHORT = {
    "limits": "store_writers = 2",
    "stop_grace_ms": "5000; instance_silence_ms = 4000; store_wait_ms = 2000",
}


def signs(place, count=2):
    """Returns once the instance has said so often that it lives."""
    seen = set()
    sql = "SELECT seen_us FROM instances WHERE ended_us = 0"
    postgres.wait_until(
        lambda: seen.add(place.rows(sql)[-1][0]) or len(seen) > count, "it says that it lives"
    )


def test_an_older_copy_in_its_place_ends_the_service(idem):
    """A copy that was made while it served: exit 5, and no start goes on but with --restored."""
    with new_place() as place, instance(idem, place, settings=SHORT) as one:
        assert one.pay("k1", "o1").status == 201
        old = place.rows("SELECT max(seen_us) FROM instances")[0][0]
        signs(place)
        # What was put back while the connections last, as pg_restore --clean does.
        place.change(("UPDATE instances SET seen_us = ?", old))
        assert one.service.wait(30) == 5
        assert "an older copy" in one.event("store-broken")[0]["error"], one.log_text()
        one.service = None
        refused(one, 4, "older copy", "--restored")

        place.change(("DELETE FROM meta WHERE key = 'older_copy'",))
        one.start()
        one.wait_until(lambda: one.ready() == 200, "it is ready")
        dump = place.home / "idem.dump"
        subprocess.run(
            [f"{server().programs}/pg_dump", "--format=custom", "--schema=idem",
             f"--file={dump}", place.address()], check=True, timeout=60,
        )
        assert one.pay("k2", "o2").status == 201
        signs(place)
        place.say(f"ALTER DATABASE {place.name} ALLOW_CONNECTIONS false")
        place.say("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                  f" WHERE datname = '{place.name}'")
        place.say(f"CREATE DATABASE {place.name}_copy")
        subprocess.run(
            [f"{server().programs}/pg_restore", "--exit-on-error", "--dbname",
             server().url(f"{place.name}_copy"), str(dump)], check=True, timeout=60,
        )
        place.say(f"ALTER DATABASE {place.name} RENAME TO {place.name}_away")
        place.say(f"ALTER DATABASE {place.name}_copy RENAME TO {place.name}")
        one.wait_until(lambda: place_try(one), "somebody asks it")
        assert one.service.wait(30) == 5
        assert "an older copy" in one.event("store-broken")[-1]["error"], one.log_text()
        one.service = None
        refused(one, 4, "older copy", "--restored")
        one.start(arguments=["--restored"])
        assert one.pay("k1", "o1").header("Idempotent-Replayed") == "true"
        assert one.pay("k2", "o2").status == 503  # It is not known here any more.
        assert executions(one) == {"o1": 1, "o2": 1}, one.ledger()
        assert one.stop() == 0
        one.start()


def test_an_older_copy_is_told_apart_by_no_clock_and_only_where_it_is_one(idem):
    """A sign from the future is only gone beyond; a copy that was put back since is not marked."""
    with new_place() as place, instance(idem, place, settings=SHORT) as one:
        ahead = place.rows("SELECT max(seen_us) FROM instances")[0][0] + 3600 * 10**6
        place.change(("UPDATE instances SET seen_us = ?", ahead))  # The server's clock went back.
        signs(place)
        assert place.rows("SELECT max(seen_us) FROM instances")[0][0] > ahead
        assert one.pay("k1", "o1").status == 201

        # Somebody else has put a copy back, and this one was forgotten.
        place.change(
            ("INSERT INTO meta (key, value) VALUES ('restored_at_us', ?)", str(ahead + 10**9)),
            ("UPDATE instances SET seen_us = ?", 1),
        )
        assert one.service.wait(30) == 5
        assert "an older copy" in one.event("store-broken")[0]["error"], one.log_text()
        assert place.rows("SELECT count(*) FROM meta WHERE key = 'older_copy'")[0][0] == 0
        assert place.rows("SELECT max(seen_us) FROM instances")[0][0] == 1  # As it was found.
        one.service = None

        place.change(("UPDATE instances SET seen_us = ?", ahead))
        one.start()
        one.wait_until(lambda: one.ready() == 200, "it is ready")
        place.change(("INSERT INTO meta (key, value) VALUES ('older_copy', ?)", "1"))
        assert one.service.wait(30) == 5  # Another one has found that out.
        one.service = None
        refused(one, 4, "older copy", "--restored")


def test_settings_that_change_under_it_are_noticed(idem):
    """fsync off in a server that is served: nothing is written on old connections; then it is."""
    with new_place() as place, instance(idem, place, settings=SHORT) as one:
        assert one.pay("k1", "o1").status == 201
        server().set(fsync="off")
        try:
            one.wait_event("store-silent")
            assert "fsync = off" in one.event("store-silent")[0]["error"], one.log_text()
            one.wait_until(lambda: one.ready() == 503, "it is not ready")
            reply = one.pay("k2", "o2")
            assert reply.status == 503, reply
        finally:
            server().set(fsync="on")
        one.wait_event("store-answers")
        pay_until(one, "k2", "o2")
        assert executions(one) == {"o1": 1, "o2": 1}, one.ledger()


def test_standbys_that_are_named_no_more_are_missed(idem):
    """Names emptied while it is served: it goes on, and says that there is one copy only."""

    def metrics(one):
        lines = one.get("/metrics", bearer=harness.OPERATOR_BEARER).body.decode().splitlines()
        names = ("idem_store_standbys ", "idem_store_standbys_gone ")
        return [int(line.split()[1]) for name in names for line in lines if line.startswith(name)]

    pair = postgres.Pair()
    try:
        with new_place(pair.primary) as place, instance(idem, place, settings=SHORT) as one:
            assert one.pay("k1", "o1").status == 201
            one.wait_until(lambda: metrics(one) == [1, 0], "standbys answer")
            names = pair.primary.settings["synchronous_standby_names"]
            pair.primary.set(synchronous_standby_names="")
            one.wait_event("standbys-gone")
            one.wait_until(lambda: metrics(one) == [0, 1], "it is told")
            assert one.pay("k2", "o2").status == 201 and one.ready() == 200
            pair.primary.set(synchronous_standby_names=names)
            one.wait_event("standbys-back")
            one.wait_until(lambda: metrics(one) == [1, 0], "it is over")
            levels = [each["level"] for name in ("gone", "back") for each in
                      one.event(f"standbys-{name}")]
            assert levels == ["error", "info"], one.log_text()
    finally:
        pair.close()


# ---- other commands ----

def test_migrate_takes_a_database_and_no_password(idem):
    """`idem migrate` by URL or configuration: nothing to do, or refused without a password."""

    def migrate(*words):
        done = subprocess.run([idem, "migrate", *words], capture_output=True, text=True,
                              timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    with new_place() as place, instance(idem, place, start=False) as one:
        one.write_config()
        config = str(one.config_path())
        status, said = migrate("--config", config)
        assert status == 4 and "no store" in said, said
        one.start()
        for words in (("--config", config), ("--store", place.address())):
            status, said = migrate(*words)
            assert status == 0 and "nothing to do" in said and "idem@" not in said, said
        status, said = migrate("--store", place.address().replace("idem@", "idem:hush@"))
        assert status == 2 and "hush" not in said and "passfile" in said, said
        assert migrate("--store", "postgres://[::1/x")[0] == 2
        assert migrate("--config", "/nowhere")[0] == 3
        assert migrate()[0] == 2 and migrate("--config", config, "--store", "sqlite:x")[0] == 2
        assert one.pay("k1", "o1").status == 201


def test_backup_says_what_copies_a_database(idem):
    """`idem backup` of a database: exit 4, with what to use instead; that copy can be served."""
    with new_place() as place, instance(idem, place) as one:
        done = subprocess.run(
            [idem, "backup", "--store", place.address(), "--to", str(place.home / "copy")],
            capture_output=True, text=True, timeout=30, check=False,
        )
        assert done.returncode == 4, done
        for word in ("pg_dump", "--schema=idem", "--restored", "secrets"):
            assert word in done.stderr, done
        first = one.pay("k1", "o1")
        dump = place.home / "idem.dump"
        subprocess.run(
            [f"{server().programs}/pg_dump", "--format=custom", "--schema=idem",
             f"--file={dump}", place.address()], check=True, timeout=60,
        )
        assert one.stop() == 0
        place.remove()
        subprocess.run(
            [f"{server().programs}/pg_restore", "--exit-on-error", "--dbname", place.address(),
             str(dump)], check=True, timeout=60,
        )
        one.start(arguments=["--restored"])
        assert one.get("/readyz").status == 503
        assert one.pay("k1", "o1").body == first.body


TESTS = [value for name, value in list(globals().items()) if name.startswith("test_")]

if __name__ == "__main__":
    if postgres.programs() is None:
        print("1..0 # SKIP no PostgreSQL server on this machine")
        sys.exit(0)
    words = [word for word in sys.argv[2:] if not word.startswith("--")]
    try:
        harness.run(TESTS, sys.argv[1], words)
    finally:
        if SERVER is not None:
            SERVER.close()
