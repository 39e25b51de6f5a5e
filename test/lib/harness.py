"""
The world of an end-to-end test: the real program and the real sandbox, on loopback, in a
directory of their own, and the eyes to judge them with: what callers were told, what the store
holds, what the provider's ledger counted. Standard library only, but for PostgreSQL (store.py).
"""

import concurrent.futures
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import store as stores  # noqa: E402

BEARER = "test-secret"
OTHER_BEARER = "other-secret"
OPERATOR_BEARER = "operator-secret"

# Everything a test may wait for ends within this, on a loaded machine too.
PATIENCE_S = 60.0

PROFILES = {
    # entry: (path of the sandbox, capabilities)
    "sandbox": (
        "dedup",
        'dedup_window_s = 86400; dedup_margin_s = 60; query = "at_once"; close_is_final = true;',
    ),
    "sandbox-lagging": (
        "lagging",
        'dedup_window_s = 86400; dedup_margin_s = 60; query = "lagging"; query_lag_ms = 3500;'
        " close_is_final = false;",
    ),
    "sandbox-closing": (
        "closing",
        'dedup_window_s = 0; query = "at_once"; close_is_final = true;',
    ),
    "sandbox-plain": (
        "plain",
        'dedup_window_s = 0; query = "at_once"; close_is_final = false;',
    ),
    "sandbox-blind": (
        "blind",
        'dedup_window_s = 86400; dedup_margin_s = 60; query = "none"; close_is_final = false;',
    ),
}


def sha256_hex(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Port:
    """
    A port of its own. Below the range that the system hands out, so that no outgoing connection of
    anybody takes it between two starts, and held by a lock against other worlds.
    """

    DIRECTORY = pathlib.Path(tempfile.gettempdir()) / "idem-test-ports"

    def __init__(self):
        self.DIRECTORY.mkdir(exist_ok=True)
        while True:
            self.number = random.randrange(11000, 32000)
            self.lock = open(self.DIRECTORY / str(self.number), "w")
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", self.number))
                return
            except OSError:
                self.lock.close()

    def close(self):
        self.lock.close()


class Reply:
    """One HTTP answer, as it came."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # A list of (name, value).
        self.body = body

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return None

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        head = "".join(f"{name}: {value}\n" for name, value in self.headers)
        return f"{self.status}\n{head}\n{self.body.decode('utf-8', 'replace')}"


class Gone(Exception):
    """The connection ended without a complete answer."""


class Connection:
    """A keep-alive connection that sends exactly the bytes it is given."""

    def __init__(self, port, timeout=PATIENCE_S):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.left = b""

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        try:
            data = self.socket.recv(65536)
        except (ConnectionError, socket.timeout) as error:
            raise Gone(str(error)) from error
        if not data:
            raise Gone("closed")
        self.left += data

    def receive(self, method="POST"):
        while b"\r\n\r\n" not in self.left:
            self._more()
        head, self.left = self.left.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = []
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers.append((name, value.strip()))
        if status == 100:
            return self.receive(method)
        reply = Reply(status, headers, b"")
        if method == "HEAD" or status in (204, 304):
            return reply
        length = int(reply.header("Content-Length"))
        while len(self.left) < length:
            self._more()
        reply.body, self.left = self.left[:length], self.left[length:]
        return reply


class Sent:
    """How a run of `idem send` ended."""

    def __init__(self, process):
        self.out, self.err = process.communicate(timeout=PATIENCE_S)
        self.code = process.returncode
        lines = self.out.splitlines()
        self.told = json.loads(lines[0]) if len(lines) == 1 else {}

    def is_done(self):
        return self.code == 0 and self.told.get("outcome") == "done"

    def __repr__(self):
        return f"exit {self.code}\n{self.out}\n{self.err}"


def encode(method, path, headers, body):
    lines = [f"{method} {path} HTTP/1.1"]
    names = {name.lower() for name, _ in headers}
    if "host" not in names:
        lines.append("Host: 127.0.0.1")
    lines += [f"{name}: {value}" for name, value in headers]
    if (body or method == "POST") and "content-length" not in names:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class World:
    """
    A sandbox and a service. `settings` replace defaults; `more` is added to the file. The setting
    `entries` says which profiles are configured, `listing` which of them can be listed. `store` is
    one of its own unless given.
    """

    def __init__(self, idem, settings=None, more="", start=True, store=None):
        self.idem = idem
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="idem-test-"))
        self.store = store or stores.make(self.directory)
        self.ports = [Port(), Port()]
        self.sandbox_port, self.port = (port.number for port in self.ports)
        self.settings = {
            "lease_ms": 4000,
            "request_timeout_ms": 2000,
            "settle_ms": 300,
            "ask_first_ms": 100,
            "ask_max_ms": 400,
            "ask_give_up_s": 3600,
            "parked_ask_s": 3600,
            "release_s": 259200,
            "stop_grace_ms": 5000,
            "wait_ms": 10000,
            "partial_capture": "many",
            "routes": "",
            "scope": "endpoint",
            "entries": tuple(PROFILES),
            "listing": tuple(entry for entry in PROFILES if entry != "sandbox-blind"),
            "callbacks": (),  # Entries whose provider tells by callback; see callback_secret().
            "retry_window_s": 86400,
            "limits": "",
            "protection": "",  # Of the first entry: concurrency, rate_per_s, breaker ...
        }
        self.settings.update(settings or {})
        self.more = more
        self.sandbox = None
        self.service = None
        self.log = open(self.directory / "log", "ab")
        if start:
            self.start_sandbox()
            self.start()

    # ---- processes ----

    def config_path(self):
        return self.directory / "idem.conf"

    def write_config(self):
        setting = self.settings
        profiles = {entry: PROFILES[entry] for entry in setting["entries"]}
        grants = ", ".join(f'"{entry}"' for entry in profiles)
        providers = ",\n".join(
            f"""  {{ entry = "{entry}"; adapter = "bridge";
    base_url = "http://127.0.0.1:{self.sandbox_port}/{path}";
    credential_env = "IDEM_TEST_PROVIDER_CREDENTIAL";
    account = "acct-{entry}"; region = "eu";
    request_timeout_ms = {setting["request_timeout_ms"]}; settle_ms = {setting["settle_ms"]};
    partial_capture = "{setting["partial_capture"]}";
    listing = {"true" if entry in setting["listing"] else "false"};
    callback_secrets = ( {self.callback_secrets(entry)} );
    {setting["protection"] if entry == setting["entries"][0] else ""}
    capabilities = {{ {capabilities} }}; }}"""
            for entry, (path, capabilities) in profiles.items()
        )
        default_routes = ",\n".join(
            f'  {{ endpoint = "{endpoint}"; wait_ms = {setting["wait_ms"]}; }}'
            for endpoint in (
                "payments.create",
                "payments.capture",
                "payments.cancel",
                "refunds.create",
            )
        )
        self.config_path().write_text(
            f"""
listen = "127.0.0.1:{self.port}";
store = "{self.store.address()}";
{self.store.configuration()}
scope = "{setting["scope"]}";
retry_window_s = {setting["retry_window_s"]};
credentials = (
  {{ principal = "shop"; secret_sha256 = "{sha256_hex(BEARER)}"; role = "merchant";
    providers = [ {grants} ]; }},
  {{ principal = "rival"; secret_sha256 = "{sha256_hex(OTHER_BEARER)}"; role = "merchant";
    providers = [ "{setting["entries"][0]}" ]; }},
  {{ principal = "ops"; secret_sha256 = "{sha256_hex(OPERATOR_BEARER)}"; role = "operator"; }}
);
providers = (
{providers}
);
routes = (
{setting["routes"] or default_routes}
);
limits = {{ {setting["limits"]} }};
timings = {{ lease_ms = {setting["lease_ms"]}; ask_first_ms = {setting["ask_first_ms"]};
  ask_max_ms = {setting["ask_max_ms"]}; ask_give_up_s = {setting["ask_give_up_s"]};
  parked_ask_s = {setting["parked_ask_s"]}; release_s = {setting["release_s"]};
  stop_grace_ms = {setting["stop_grace_ms"]}; }};
{self.more}
"""
        )

    def callback_secret(self):
        """The file with what callbacks are signed with."""
        path = self.directory / "callback.secret"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text("callback-secret\n")
        return path

    def callback_secrets(self, entry):
        return f'"file:{self.callback_secret()}"' if entry in self.settings["callbacks"] else ""

    def callback_arguments(self):
        arguments = ["--callback-secret-file", str(self.callback_secret())]
        for entry in self.settings["callbacks"]:
            url = f"http://127.0.0.1:{self.port}/v1/callbacks/{entry}"
            arguments += ["--callback-url", f"{PROFILES[entry][0]}={url}"]
        return arguments if self.settings["callbacks"] else []

    def start_sandbox(self):
        self.sandbox = subprocess.Popen(
            [
                self.idem,
                "sandbox",
                "--listen",
                f"127.0.0.1:{self.sandbox_port}",
                "--ledger",
                str(self.directory / "ledger"),
                *self.callback_arguments(),
            ],
            stdout=self.log,
            stderr=self.log,
        )
        self.wait_until(lambda: self.answers(self.sandbox_port, "/healthz"), "sandbox answers")

    def start(self, crash_point=None, prepare=None, arguments=()):
        self.write_config()
        environment = dict(os.environ)
        environment["IDEM_TEST_PROVIDER_CREDENTIAL"] = "provider-secret"
        environment.pop("IDEM_CRASH_POINT", None)
        if crash_point is not None:
            environment["IDEM_CRASH_POINT"] = crash_point
        self.service = subprocess.Popen(
            [self.idem, "serve", "--config", str(self.config_path()), *arguments],
            stdout=self.log,
            stderr=self.log,
            env=environment,
            preexec_fn=prepare,
            restore_signals=prepare is None,
        )
        self.wait_until(
            lambda: self.service.poll() is not None or self.answers(self.port, "/healthz"),
            "service answers",
        )

    def alive(self):
        return self.service is not None and self.service.poll() is None

    def kill(self):
        if self.service is not None:
            self.service.kill()
            self.service.wait()

    def stop(self, timeout=PATIENCE_S):
        self.service.send_signal(signal.SIGTERM)
        return self.service.wait(timeout)

    def close(self, keep=False):
        for process in (self.service, self.sandbox):
            if process is not None and process.poll() is None:
                process.terminate()
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        for port in self.ports:
            port.close()
        self.log.close()
        if keep:
            self.store.keep()
        self.store.close()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def log_text(self):
        return (self.directory / "log").read_text(errors="replace")

    # ---- talking ----

    @staticmethod
    def answers(port, path):
        try:
            connection = Connection(port, timeout=2)
        except OSError:
            return False
        try:
            connection.send(encode("GET", path, [], b""))
            return connection.receive("GET").status == 200
        except (OSError, Gone):
            return False
        finally:
            connection.close()

    def request(self, method, path, headers=(), body=b"", bearer=BEARER, timeout=PATIENCE_S):
        """One request on a connection of its own. Raises Gone or OSError if there is no answer."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        headers = list(headers)
        names = {name.lower() for name, _ in headers}
        if bearer is not None and "authorization" not in names:
            headers.append(("Authorization", f"Bearer {bearer}"))
        if method == "POST" and "content-type" not in names:
            headers.append(("Content-Type", "application/json"))
        connection = Connection(self.port, timeout)
        try:
            connection.send(encode(method, path, headers, body))
            return connection.receive(method)
        finally:
            connection.close()

    def post(self, path, key, body, headers=(), **more):
        return self.request("POST", path, [("Idempotency-Key", key), *headers], body, **more)

    def pay(self, key, order_no, headers=(), method="tok_ok", more=None, **options):
        return self.post("/v1/payments", key, payment(order_no, method, more), headers, **options)

    def get(self, path, headers=(), **more):
        return self.request("GET", path, headers, **more)

    def admin(self, method, path, body=b"", **more):
        headers = [("Content-Type", "application/json")] if body else []
        return self.request(method, "/v1/admin" + path, headers, body, OPERATOR_BEARER, **more)

    def command(self, *arguments, bearer=OPERATOR_BEARER):
        """Runs an operator's command of the program against this service."""
        environment = dict(os.environ)
        environment["IDEM_URL"] = f"http://127.0.0.1:{self.port}"
        environment["IDEM_CREDENTIAL"] = bearer
        return subprocess.run(
            [self.idem, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def send_start(self, *arguments, bearer=BEARER, crash_point=None, prepare=None):
        """Starts `idem send` with a journal in this world; it prints JSON."""
        environment = dict(os.environ)
        environment["IDEM_JOURNAL"] = str(self.directory / "send.db")
        environment["IDEM_CREDENTIAL"] = bearer
        environment.pop("IDEM_CRASH_POINT", None)
        if crash_point is not None:
            environment["IDEM_CRASH_POINT"] = crash_point
        return subprocess.Popen(
            [self.idem, "send", "--json", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=prepare,
            restore_signals=prepare is None,
        )

    def send(self, *arguments, **more):
        """Runs `idem send` to its end."""
        return Sent(self.send_start(*arguments, **more))

    def send_payment(self, name, body, *arguments, port=None, **more):
        """The payment `body` as the intent `name`, to the service or to another port."""
        url = f"http://127.0.0.1:{port or self.port}/v1/payments"
        words = ("POST", url, "--intent", name, "--data", json.dumps(body))
        return self.send(*words, *arguments, **more)

    def journal(self, sql, *values, path=None):
        """What the journal of `idem send` holds, or, if `sql` writes, does to it."""
        path = path or self.directory / "send.db"
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as database:
            with database:
                return database.execute(sql, values).fetchall()

    def operation(self, key, endpoint="payments.create", **more):
        return self.get(
            f"/v1/operations?endpoint={endpoint}", [("Idempotency-Key", key)], **more
        )

    # ---- judging ----

    def ledger(self, **filters):
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        connection = Connection(self.sandbox_port)
        try:
            connection.send(encode("GET", "/ledger" + ("?" + query if query else ""), [], b""))
            return connection.receive("GET").json()
        finally:
            connection.close()

    def rows(self, sql, *values):
        """What the store holds, read beside the service."""
        return self.store.rows(sql, *values)

    @staticmethod
    def wait_until(condition, what, patience=PATIENCE_S):
        end = time.monotonic() + patience
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"never happened within {patience} s: {what}")
            time.sleep(0.02)

    def wait_state(self, key, states, endpoint="payments.create", patience=PATIENCE_S):
        """Waits until the operation of `key` is in one of `states`; returns its view."""

        def look():
            reply = self.operation(key, endpoint)
            if reply.status == 200 and reply.json()["state"] in states:
                return reply.json()
            return None

        return self.wait_until(look, f"{key} becomes {states}", patience)


def payment(order_no, method="tok_ok", more=None):
    body = {
        "order_no": order_no,
        "amount": "100.00",
        "currency": "CNY",
        "provider": "sandbox",
        "method": method,
    }
    body.update(more or {})
    return body


def chosen_of(tests, words):
    """Those with one of `words` in their name, but for what is not of this store, which is said."""
    chosen = [test for test in tests if not words or any(word in test.__name__ for word in words)]
    script = pathlib.Path(sys.argv[0]).name
    reasons = [(test, stores.reason_to_skip(script, test.__name__)) for test in chosen]
    print(f"1..{len(chosen)}", flush=True)
    skipped = [(test, reason) for test, reason in reasons if reason]
    for number, (test, reason) in enumerate(skipped, 1):
        print(f"ok {number} - {sentence_of(test)} # SKIP on {stores.NAME}: {reason}", flush=True)
    return [test for test, reason in reasons if not reason], len(skipped) + 1


def sentence_of(test):
    return (test.__doc__ or test.__name__).strip().splitlines()[0]


def repeat_of(idem, test):
    more = "" if stores.NAME == "sqlite" else f" --store {stores.NAME}"
    return f"# repeat: {sys.argv[0]} {idem} {test.__name__}{more}"


def run_at_once(tests, idem, arguments, at_once):
    """As run(), but so many at a time; prints in the order in which they end."""
    chosen, first = chosen_of(tests, arguments)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        futures = {pool.submit(test, idem): test for test in chosen}
        for number, future in enumerate(concurrent.futures.as_completed(futures), first):
            test = futures[future]
            error = future.exception()
            verdict = "ok" if error is None else "not ok"
            print(f"{verdict} {number} - {sentence_of(test)}", flush=True)
            if error is not None:
                failed += 1
                for line in "".join(traceback.format_exception(error)).splitlines():
                    print(f"# {line}", flush=True)
                print(repeat_of(idem, test), flush=True)
    sys.exit(1 if failed else 0)


def run(tests, idem, arguments):
    """
    Runs the tests whose names contain one of `arguments` (all without). A test is a function of the
    path of the program; its first line of documentation is its sentence. Prints TAP.
    """
    chosen, first = chosen_of(tests, arguments)
    failed = 0
    for number, test in enumerate(chosen, first):
        begin = time.monotonic()
        try:
            test(idem)
            took_s = time.monotonic() - begin
            print(f"ok {number} - {sentence_of(test)} ({took_s:.1f} s)", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {sentence_of(test)}", flush=True)
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
            print(repeat_of(idem, test), flush=True)
    sys.exit(1 if failed else 0)
