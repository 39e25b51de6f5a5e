"""
What happens to the processes of a crash run, out of one seed.

Service, sandbox and callers are killed, stopped for longer than the lease (the sandbox: than the
request timeout) and restarted, one thing after the other, with short pauses between them. The
service is mostly killed the moment a caller or the provider has heard from it, and every second
start has a crash point of docs/testing.md, so that it also dies at every place that has a name.
While it is stopped, a second one is started on the same store, as a supervisor would that takes
silence for death: on SQLite it must be refused (exit status 4), on PostgreSQL it must serve beside
the first, and end when it is told to. There the database server is killed, stopped and restarted as
well, and its connections are cut, under a service that goes on.

After every death, before anybody repairs anything, the store is looked at (audit.AtDeath).
"""

import collections
import os
import random
import signal
import subprocess
import time

import audit
import store as stores
from harness import Port, World

POINTS = (
    "accept-queued",
    "commit-before",
    "commit-after",
    "accept-durable",
    "send-before",
    "send-first-byte",
    "answer-received",
    "ask-before",
    "ask-answered",
    "settle-durable",
    "reply-before",
    "reply-after",
)
# Where something has just left: what explains it must be there.
TELLING = ("send-first-byte", "ask-before", "reply-after")

# Within a batch of the store on PostgreSQL.
POSTGRES_POINTS = ("batch-begun", "commit-sent")

CRASH_S = 2.0  # For that a point is waited for.

# what: (method of Chaos, how often, in parts)
ACTIONS = {
    "kill service": ("kill_service", 6),
    "kill service as it speaks": ("kill_service_as_it_speaks", 22),
    "kill caller": ("kill_caller", 10),
    "kill sandbox": ("kill_sandbox", 4),
    "stop service": ("stop_service", 6),
    "stop service, second process": ("stop_service_beside_second", 3),
    "stop service, then kill": ("stop_service_then_kill", 2),
    "stop sandbox": ("stop_sandbox", 4),
    "stop caller": ("stop_caller", 2),
    "restart": ("restart", 3),
    "restart, then kill": ("restart_then_kill", 2),
    "reload": ("reload", 2),
}
POSTGRES_ACTIONS = {
    "kill database": ("kill_database", 5),
    "kill database as it commits": ("kill_database_as_it_commits", 5),
    "stop database": ("stop_database", 4),
    "cut database's connections": ("cut_database", 6),
}

if stores.NAME == "postgres":
    POINTS += POSTGRES_POINTS
    TELLING += ("commit-sent",)
    ACTIONS.update(POSTGRES_ACTIONS)


class Chaos:
    def __init__(self, scene):
        self.scene = scene
        self.world = scene.world
        self.dice = random.Random(f"{scene.seed}/chaos")
        self.at_death = audit.AtDeath(scene.directory, scene.world.store)
        self.done = collections.Counter()
        self.violations = []
        self.second_port = Port()
        self.bag = []
        self.begun = time.monotonic()

    # ---- the service ----

    def look(self):
        found = list(self.at_death.look())
        if found and not self.violations:
            took_s = time.monotonic() - self.begun
            print(f"# first violation seen {took_s:.1f} s after the begin", flush=True)
        self.violations.extend(found)

    def dead(self):
        """
        Looks at what the dead left, and starts another one, as a supervisor would. Every second one
        gets a crash point and the time to meet it.
        """
        armed = True
        while armed:
            time.sleep(0.1)  # What was in flight to the tape gets there.
            self.look()
            armed = self.dice.random() < 0.5 and not self.violations
            place = self.dice.choice(self.dice.choice((POINTS, TELLING)))
            point = f"{place}:{self.dice.randint(1, 10)}" if armed else None
            self.world.start(crash_point=point)
            armed = armed and self.dies()

    def dies(self):
        end = time.monotonic() + CRASH_S
        while time.monotonic() < end and self.world.alive():
            time.sleep(0.02)
        if self.world.alive():
            return False
        self.ended()
        return True

    def ended(self):
        """It may have met its crash point; any other end of its own is a mistake."""
        code = self.world.service.returncode
        if code == -signal.SIGKILL:
            self.done["killed at a crash point"] += 1
        else:
            self.violations.append(f"P8 the service ended by itself with {code}")

    def watch(self):
        if not self.world.alive():
            self.ended()
            self.dead()

    def lease_pause_s(self):
        return self.world.settings["lease_ms"] / 1000 * self.dice.uniform(1.1, 1.8)

    def second_process(self):
        """Another one on the same store, on a port of its own. How it ended is judged."""
        arguments = [self.world.idem, "serve", "--config", str(self.world.config_path())]
        process = subprocess.Popen(
            [*arguments, "--listen", f"127.0.0.1:{self.second_port.number}"],
            stdout=self.world.log,
            stderr=self.world.log,
            env={**os.environ, "IDEM_TEST_PROVIDER_CREDENTIAL": "provider-secret"},
        )
        served = False
        end = time.monotonic() + self.lease_pause_s() + 5
        while process.poll() is None and time.monotonic() < end and not served:
            time.sleep(0.05)
            served = World.answers(self.second_port.number, "/readyz")
        if served:
            time.sleep(self.lease_pause_s())
            process.terminate()
        try:
            code = process.wait(self.lease_pause_s() + 5)
        except subprocess.TimeoutExpired:
            code = None
            process.kill()
            process.wait()
        expected = (4, False) if stores.NAME == "sqlite" else (0, True)
        if (code, served) != expected:
            word = "served and " if served else ""
            self.violations.append(f"P7 two processes on one store: the second {word}ended: {code}")

    def stop_service(self, meanwhile=lambda: None):
        self.world.service.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        meanwhile()
        rest = begin + self.lease_pause_s() - time.monotonic()
        time.sleep(max(0.0, rest))
        self.world.service.send_signal(signal.SIGCONT)

    # ---- actions, by name ----

    def kill_service(self):
        self.world.kill()
        self.dead()

    def kill_service_as_it_speaks(self):
        """The moment a caller or the provider has heard from it: was that durable?"""
        path = self.scene.directory / self.dice.choice(("wire", "wire", "ledger"))
        size = path.stat().st_size
        end = time.monotonic() + 1
        while path.stat().st_size == size and time.monotonic() < end:
            time.sleep(0.0005)
        self.kill_service()

    def stop_service_beside_second(self):
        self.stop_service(self.second_process)

    def stop_service_then_kill(self):
        self.world.service.send_signal(signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.1, 1.0) * self.lease_pause_s())
        self.kill_service()

    def restart(self):
        """As asked: it finishes what it can."""
        code = self.world.stop(30)
        if code != 0 and code != -signal.SIGKILL:
            self.violations.append(f"P8 the service stopped with {code}")
        self.dead()

    def restart_then_kill(self):
        self.world.service.send_signal(signal.SIGTERM)
        time.sleep(self.dice.uniform(0.0, 0.3))
        self.kill_service()

    def reload(self):
        """Twice: for a second the accounts are slowed down."""
        for limits in ("principal_rate = 100; principal_burst = 20;", ""):
            self.world.settings["limits"] = limits
            self.world.write_config()
            self.world.service.send_signal(signal.SIGHUP)
            time.sleep(self.dice.uniform(0.2, 1.0))

    def kill_sandbox(self):
        self.world.sandbox.kill()
        self.world.sandbox.wait()
        time.sleep(self.dice.uniform(0.0, 0.6))
        self.world.start_sandbox()

    def stop_sandbox(self):
        self.world.sandbox.send_signal(signal.SIGSTOP)
        timeout_s = self.world.settings["request_timeout_ms"] / 1000
        time.sleep(timeout_s * self.dice.uniform(1.2, 4.0))
        self.world.sandbox.send_signal(signal.SIGCONT)

    # On PostgreSQL only. The service goes on, and must find it again by itself.

    def database_rest(self):
        time.sleep(self.dice.uniform(0.0, 1.0))
        self.world.store.server.start()

    def kill_database(self):
        self.world.store.server.kill()
        self.database_rest()

    def kill_database_as_it_commits(self):
        """The moment its log grows: some COMMIT is between its beginning and its answer."""
        server = self.world.store.server
        before = server.lsn()
        end = time.monotonic() + 1
        while server.lsn() == before and time.monotonic() < end:
            pass
        time.sleep(self.dice.uniform(0.0, 0.01))
        self.kill_database()

    def stop_database(self):
        self.world.store.server.stop(self.dice.choice(("fast", "immediate")))
        self.database_rest()

    def cut_database(self):
        self.world.store.cut()

    def kill_caller(self):
        return self.dice.choice(self.scene.callers).kill()

    def stop_caller(self):
        process = self.dice.choice(self.scene.callers).process
        if process is None or process.poll() is not None:
            return False
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.2, 1.5))
        process.send_signal(signal.SIGCONT)
        return True

    def next_action(self):
        """Out of a bag, so that a short run too has had some of each."""
        if not self.bag:
            self.bag = [what for what, (_, count) in ACTIONS.items() for _ in range(count)]
            self.dice.shuffle(self.bag)
            if not self.done:
                self.bag += self.dice.sample(list(ACTIONS), len(ACTIONS))
        return self.bag.pop()

    def act(self, what):
        method, _ = ACTIONS[what]
        if getattr(self, method)() is not False:
            self.done[what] += 1

    def run(self, until):
        weather_at = time.monotonic()
        while time.monotonic() < until and not self.violations:
            time.sleep(self.dice.uniform(0.02, 0.6))
            self.watch()
            if time.monotonic() > weather_at:
                self.scene.book.weather.change()
                weather_at = time.monotonic() + self.dice.uniform(1.0, 5.0)
            self.act(self.next_action())
            self.watch()

    def end(self):
        """One service without a crash point, and all eyes open."""
        self.world.kill()
        self.done["kill service"] += 1
        time.sleep(0.1)
        self.look()
        self.world.start()
        self.second_port.close()
