"""
A thousand payments over a network that breaks, with a caller that is killed.

Goal: every intent ends, is carried out exactly once if it is carried out at all, and every answer
that the caller was told is the one that the service keeps.

Method: `caller` pays through a proxy (proxy.py) that loses, cuts, delays and refuses by a seed,
to the service with the sandbox, which misbehaves itself now and then. The caller is killed twice
and started again with the same intents, then resumes what is not over until nothing is. Judges:
the sandbox's ledger, the journal, and the same requests sent once more by hand. Usage: network.py
IDEM CALLER [SEED]
"""

import json
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness  # noqa: E402
from harness import Connection, Port, World, encode  # noqa: E402
from proxy import Network  # noqa: E402

COUNT = 1000
BOUND_S = 40
KILLS_S = (0.7, 1.5)
FLAGS = [
    *("--at-once", "200", "--calls", "48", "--try-timeout", "1500", "--connect-timeout", "500"),
    *("--backoff-first", "20", "--backoff-max", "500", "--deadline", "8000"),
    *("--retry-percent", "100", "--retry-reserve", "8192"),
    *("--credential", f"Authorization: Bearer {harness.BEARER}"),
]
# token: how often, in parts
TOKENS = {"tok_ok": 80, "tok_lose_answer": 5, "tok_late_1": 3, "tok_503": 4, "tok_decline": 8}


class Scene:
    def __init__(self, idem, caller, seed):
        self.caller = caller
        self.dice = random.Random(seed)
        self.begun_s = time.monotonic()
        self.world = World(idem, {"wait_ms": 500})
        self.front = Port()
        self.network = Network(seed, self.front.number, self.world.port)
        self.journal = self.world.directory / "send.db"
        self.told = {}  # name: the verdict that was over
        self.runs = 0
        self.payments = {}
        for number in range(COUNT):
            token = self.dice.choices(list(TOKENS), list(TOKENS.values()))[0]
            self.payments[f"order-{number}"] = harness.payment(f"order-{number}", token)
        self.input = self.world.directory / "intents"
        self.input.write_text("".join(self.line(name) for name in self.payments))

    def close(self):
        self.network.close()
        self.front.close()
        self.world.close()

    def line(self, name):
        url = f"http://127.0.0.1:{self.front.number}/v1/payments"
        body = json.dumps(self.payments[name])
        return "\t".join((name, "POST", url, body, "", "", "Content-Type: application/json")) + "\n"

    def call(self, *flags, kill_after_s=None):
        """One run of the caller; keeps what was told and is over. Returns how many are not."""
        self.runs += 1
        output = self.world.directory / f"verdicts-{self.runs}"
        with open(self.input, "rb") as intents, open(output, "wb") as verdicts:
            process = subprocess.Popen(
                [self.caller, "--journal", str(self.journal), *FLAGS, *flags],
                stdin=subprocess.DEVNULL if "--resume" in flags else intents,
                stdout=verdicts,
            )
            try:
                code = process.wait(kill_after_s or harness.PATIENCE_S)
                assert code == 0, f"the caller ended with {code}"
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                assert kill_after_s is not None, "the caller did not end"
        return self.take(output.read_bytes())

    def take(self, output):
        left = 0
        lines = output.split(b"\n")[:-1]  # What was cut by the kill is not told.
        for line in lines:
            verdict = json.loads(line)
            assert "error" not in verdict, verdict
            if not verdict["over"]:
                left += 1
                continue
            before = self.told.setdefault(verdict["name"], verdict)
            for member in ("outcome", "key", "status", "body"):
                assert verdict[member] == before[member], f"told otherwise: {before} {verdict}"
        return left

    def run(self):
        for kill_after_s in KILLS_S:
            self.call(kill_after_s=kill_after_s)
        left = self.call()
        while left > 0 or len(self.told) < COUNT:
            assert time.monotonic() - self.begun_s < BOUND_S, f"{left} have not ended"
            left = self.call("--resume")

    def judge(self):
        expected = {
            name: int(payment["method"] != "tok_decline") for name, payment in self.payments.items()
        }
        executions = dict.fromkeys(expected, 0)
        for effect in self.world.ledger()["effects"]:
            executions[effect["order_no"]] += effect["executions"]
        wrong = {name: executions[name] for name in expected if executions[name] != expected[name]}
        assert not wrong, f"executions: {wrong}"
        keys = {verdict["name"]: verdict["key"] for verdict in self.told.values()}
        rows = self.world.journal("SELECT name, key FROM intents")
        assert dict(rows) == keys and len(rows) == COUNT, "the journal has other keys"
        assert self.world.journal("SELECT count(*) FROM former_keys") == [(0,)], "second keys"
        connection = Connection(self.world.port)
        for name, verdict in self.told.items():
            assert verdict["outcome"] == ("done" if expected[name] else "refused"), verdict
            headers = [
                ("Idempotency-Key", verdict["key"]),
                ("Authorization", f"Bearer {harness.BEARER}"),
                ("Content-Type", "application/json"),
            ]
            body = json.dumps(self.payments[name]).encode()
            connection.send(encode("POST", "/v1/payments", headers, body))
            reply = connection.receive()
            # Found by asking or not: to the byte.
            told = (verdict["status"], verdict["body"].encode("latin-1"))
            kept = (reply.status, reply.body)
            assert kept == told, f"told {told}, kept {kept}"
            assert reply.header("Idempotent-Replayed") == "true", reply
        connection.close()
        unmet = [fate for fate, count in self.network.met.items() if count == 0]
        assert not unmet, f"the network never did this: {unmet}"


def test_thousand(programs):
    """A thousand payments over a broken network: each ends, each is carried out once"""
    idem, caller, seed = programs
    print(f"# seed {seed}", flush=True)
    scene = Scene(idem, caller, seed)
    try:
        scene.run()
        took_s = time.monotonic() - scene.begun_s
        scene.judge()
        print(f"# {took_s:.1f} s, {scene.runs} runs, connections: {scene.network.met}", flush=True)
    finally:
        scene.close()


def main():
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    harness.run([test_thousand], (sys.argv[1], sys.argv[2], seed), [])


if __name__ == "__main__":
    main()
