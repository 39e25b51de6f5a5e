#!/usr/bin/env python3
"""The program as a process: exit statuses, start, stop, and what it refuses.

Goal: whoever supervises `idem` can rely on its exit statuses and on a stop that finishes what runs.
Method: the real program, with a sandbox beside it, on ports that the system chooses; what happened
is read from its log lines and its answers. No case waits longer than its deadline.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

IDEM = os.environ["IDEM_PROGRAM"]
DEADLINE = 60
BEARER_SHA256 = "cd577fe2561ebff23505db0bb006300c7cdecbd46bc0e03c449afafaca2c25bf"  # demo-secret


class Process:
    """A running idem: its log as events, its port once it is ready."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([IDEM, *arguments], stderr=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, text=True)
        self.events = []
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.port = self.wait_for("ready")["port"]

    def read(self):
        for line in self.process.stderr:
            with self.news:
                self.events.append(json.loads(line))
                self.news.notify_all()
        with self.news:
            self.events.append({"event": "end"})
            self.news.notify_all()

    def wait_for(self, name):
        def found():
            return [event for event in self.events if event["event"] in (name, "end")]
        with self.news:
            self.news.wait_for(found, DEADLINE)
            event = found()[0] if found() else {"event": "nothing"}
        if event["event"] != name:
            self.process.kill()
            raise AssertionError(f"no {name} in {self.events}")
        return event

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def end(self):
        status = self.process.wait(DEADLINE)
        self.reader.join(DEADLINE)
        self.process.stderr.close()
        return status


def run(*arguments, **environment):
    """One that is expected to end by itself: its exit status and everything it said."""
    done = subprocess.run([IDEM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, **environment), timeout=DEADLINE, check=False)
    return done.returncode, done.stdout.decode()


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.store = os.path.join(self.folder.name, "idem.db")
        self.running = []

    def tearDown(self):
        for process in self.running:
            if process.process.poll() is None:
                process.signal(signal.SIGKILL)
                process.end()
        self.folder.cleanup()

    def begin(self, *arguments):
        process = Process(*arguments)
        self.running.append(process)
        return process

    def config(self, bank_port, more=""):
        path = os.path.join(self.folder.name, "idem.conf")
        credential = os.path.join(self.folder.name, "bank.credential")
        with open(credential, "w", encoding="ascii",
                  opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write("bank\n")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""
                listen = "127.0.0.1:0";
                store = "sqlite:{self.store}";
                disk_reserve_mb = 0;
                credentials = ( {{ principal = "m"; secret_sha256 = "{BEARER_SHA256}";
                                   providers = [ "bank" ]; }} );
                providers = ( {{ entry = "bank"; base_url = "http://127.0.0.1:{bank_port}/dedup";
                                 credential_file = "{credential}";
                                 capabilities = {{ dedup_window_s = 3600;
                                                   query = "at_once"; }}; }} );
                {more}
            """)
        return path

    def pay(self, port, key, method, headers=None):
        body = json.dumps({"order_no": key, "amount": "1.00", "currency": "CNY",
                           "provider": "bank", "capture": "automatic", "method": method})
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/payments", body.encode(),
            {"Authorization": "Bearer demo-secret", "Idempotency-Key": key,
             "Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return answer.status, answer.headers["Idempotent-Replayed"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Idempotent-Replayed"]

    def test_usage_is_2(self):
        for arguments in ([], ["pay"], ["serve"], ["serve", "--bogus"], ["serve", "--demo", "x"],
                          ["serve", "--demo", "--config", "x"], ["sandbox", "--listen", "x"],
                          ["sandbox", "--listen", "0.0.0.0:1"]):
            self.assertEqual(run(*arguments)[0], 2, arguments)
        self.assertEqual(run("version", IDEM_CRASH_POINT=":")[0], 2)

    def test_help_is_0(self):
        for arguments in (["help"], ["version"], ["serve", "--help"], ["sandbox", "--help"]):
            self.assertEqual(run(*arguments)[0], 0, arguments)

    def test_a_refused_configuration_is_3_and_opens_nothing(self):
        path = self.config(1, "lease_ms = 5;")
        status, said = run("serve", "--config", path)
        self.assertEqual(status, 3)
        self.assertIn("unknown setting 'lease_ms'", said)
        self.assertEqual(run("serve", "--config", self.store)[0], 3)
        self.assertEqual(run("serve", "--demo", "--listen", "0.0.0.0:0", "--insecure")[0], 3)
        self.assertFalse(os.path.exists(self.store))
        self.assertFalse(os.path.exists(self.store + ".secrets"))

    def test_what_cannot_start_is_4(self):
        service = self.begin("serve", "--config", self.config(1))
        status, said = run("serve", "--config", self.config(1))
        self.assertEqual(status, 4, said)
        self.assertIn("another process", said)
        other = "sqlite:" + os.path.join(self.folder.name, "other.db")
        status, said = run("serve", "--config", self.config(1), "--store", other, "--listen",
                           f"127.0.0.1:{service.port}")
        self.assertEqual(status, 4, said)
        self.assertIn("in use", said)
        status, said = run("serve", "--config", self.config(1), "--store",
                           "sqlite:" + os.path.join(self.folder.name, "absent", "x.db"))
        self.assertEqual(status, 4, said)
        service.signal()
        self.assertEqual(service.end(), 0)
        os.unlink(self.store + ".secrets")
        status, said = run("serve", "--config", self.config(1))
        self.assertEqual(status, 4, said)
        self.assertIn("put back the file", said)

    def test_a_lost_store_is_4_until_it_is_said_to_begin(self):
        config = self.config(1)
        for lose in (os.unlink, lambda path: os.truncate(path, 0)):
            service = self.begin("serve", "--config", config)
            service.signal()
            self.assertEqual(service.end(), 0)
            lose(self.store)
            status, said = run("serve", "--config", config)
            self.assertEqual(status, 4, said)
            self.assertIn("retries would pay again", said)
            service = self.begin("serve", "--config", config, "--new-store")
            service.signal()
            self.assertEqual(service.end(), 0)
            status, said = run("serve", "--config", config, "--new-store")
            self.assertEqual(status, 4, said)
            self.assertIn("not empty", said)

    def test_a_store_that_goes_away_while_it_is_served_is_5(self):
        config = self.config(1)
        away = os.path.join(self.folder.name, "away.db")

        def remove():
            os.rename(self.store, away)

        def replace():
            os.rename(self.store, away)
            with open(self.store, "wb") as file:
                file.write(b"another file")

        for go in (remove, replace):
            service = self.begin("serve", "--config", config)
            go()
            service.wait_for("store-replaced")
            self.assertEqual(service.end(), 5)
            os.replace(away, self.store)  # It was left as it is.
        service = self.begin("serve", "--config", config)
        service.signal()
        self.assertEqual(service.end(), 0)

    def test_a_hangup_reloads_unless_it_is_ignored_from_the_start(self):
        service = self.begin("serve", "--config", self.config(1))
        service.signal(signal.SIGHUP)
        service.signal()
        self.assertEqual(service.end(), 0)
        self.assertIn("reloaded", [event["event"] for event in service.events])

        early = subprocess.Popen(  # Also while it is still being opened.
            [IDEM, "serve", "--config", self.config(1)], stderr=subprocess.PIPE, text=True)
        seen = []
        for line in early.stderr:
            seen.append(json.loads(line)["event"])
            if seen[-1] == "start":
                early.send_signal(signal.SIGHUP)
            if seen[-1] == "ready":
                break
        early.terminate()
        early.communicate(timeout=DEADLINE)
        self.assertEqual((early.returncode, seen[-1]), (0, "ready"))

        former = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # As under nohup.
        try:
            service = self.begin("serve", "--config", self.config(1))
        finally:
            signal.signal(signal.SIGHUP, former)
        service.signal(signal.SIGHUP)
        service.signal()
        self.assertEqual(service.end(), 0)
        self.assertEqual([event["number"] for event in service.events
                          if event["event"] == "signal"], [signal.SIGTERM])

    def test_a_stop_finishes_what_is_in_flight(self):
        bank = self.begin("sandbox", "--listen", "127.0.0.1:0")
        service = self.begin("serve", "--config", self.config(bank.port))
        answers = []
        caller = threading.Thread(
            target=lambda: answers.append(self.pay(service.port, "k", "tok_slow_2")))
        caller.start()
        self.wait_for_arrival(bank)
        service.signal(signal.SIGINT)
        self.assertEqual(service.end(), 0)
        caller.join(DEADLINE)
        self.assertEqual(answers, [(201, "false")])

        service = self.begin("serve", "--config", self.config(bank.port))
        self.assertEqual(self.pay(service.port, "k", "tok_slow_2"), (201, "true"))
        service.signal()
        self.assertEqual(service.end(), 0)
        bank.signal()
        self.assertEqual(bank.end(), 0)

    def test_a_second_signal_hurries_and_nothing_is_lost(self):
        bank = self.begin("sandbox", "--listen", "127.0.0.1:0")
        service = self.begin("serve", "--config", self.config(bank.port))
        answers = []
        caller = threading.Thread(
            target=lambda: answers.append(self.pay(service.port, "k", "tok_slow_4")))
        caller.start()
        self.wait_for_arrival(bank)
        service.signal()
        service.wait_for("signal")
        service.signal()
        self.assertEqual(service.end(), 0)
        caller.join(DEADLINE)
        self.assertEqual(answers, [(202, "false")])

        service = self.begin("serve", "--config", self.config(bank.port))
        self.assertEqual(self.pay(service.port, "k", "tok_slow_4", {"Prefer": "wait=30"})[0], 201)
        self.assertEqual(self.ledger(bank)["executions"], 1)
        service.signal()
        self.assertEqual(service.end(), 0)

    def test_a_grace_that_is_over_hurries_by_itself(self):
        bank = self.begin("sandbox", "--listen", "127.0.0.1:0")
        config = self.config(bank.port, "timings = { stop_grace_ms = 50; };")
        service = self.begin("serve", "--config", config)
        answers = []
        caller = threading.Thread(
            target=lambda: answers.append(self.pay(service.port, "k", "tok_slow_4")))
        caller.start()
        self.wait_for_arrival(bank)
        service.signal()
        service.wait_for("stop-hurried")
        self.assertEqual(service.end(), 0)
        caller.join(DEADLINE)
        self.assertEqual(answers, [(202, "false")])

    def test_what_is_not_written_is_said_once_whenever_it_is_seen(self):
        # The buffers come by a library in front of a sanitizer's.
        options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        for buffered in ("-o0", "-oL", "-o4096"):  # The first two: when it is printed.
            for word in ("version", "help"):
                with open("/dev/full", "wb") as full:
                    done = subprocess.run(["stdbuf", buffered, IDEM, word], stdout=full,
                                          env={**os.environ, "ASAN_OPTIONS": options},
                                          stderr=subprocess.PIPE, timeout=DEADLINE, check=False)
                self.assertEqual(done.returncode, 1, done)
                self.assertEqual(done.stderr.count(b"the output could not be written"), 1, done)

    def ledger(self, bank):
        with urllib.request.urlopen(f"http://127.0.0.1:{bank.port}/ledger", timeout=5) as answer:
            return json.load(answer)

    def wait_for_arrival(self, bank):
        """Until the request is at the provider: each look is a request, not a pause."""
        for _ in range(10000):
            if self.ledger(bank)["arrivals"] > 0:
                return
        self.fail("nothing arrived")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
