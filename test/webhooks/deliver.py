"""
Webhooks of the running service, against a receiver that fails on purpose.

Goal: what changed reaches the merchant's webhooks, signed so that the merchant can verify it, in
order, again until it is taken, and nowhere else; whatever stops or dies in between.

Method: `idem serve` and a receiver of this program on loopback, judged by what the receiver was
sent; signatures are computed here anew from the secret that the operator was shown. With
`--save DIR` everything that was posted is also written there, for verify.mjs.
Usage: deliver.py IDEM [--save DIR] [word in a test's name ...]
"""

import base64
import hashlib
import hmac
import http.server
import json
import pathlib
import sys
import threading
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
import harness  # noqa: E402
from harness import World  # noqa: E402

OPEN = "webhooks = { allow_private = true; allow_http = true; };"
SAVE = None  # A directory, if anybody wants what was posted.


class Post:
    """One request, as it came."""

    def __init__(self, path, headers, body):
        self.path = path
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body
        self.told = json.loads(body)

    @property
    def id(self):
        return self.headers["webhook-id"]

    def signed_with(self, secret):
        """Whether one of the signatures was made with the secret."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        text = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        expected = "v1," + base64.b64encode(hmac.digest(key, text, "sha256")).decode()
        return expected in self.headers["webhook-signature"].split(" ")


class Receiver:
    """A merchant's server. A path answers with what `script` has next for it, then with 200."""

    def __init__(self):
        self.posts = []
        self.connections = 0
        self.script = {}
        self.released = threading.Event()
        self.released.set()  # While it is not, "/slow" answers nothing.
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                receiver.connections += 1
                super().setup()

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.posts.append(Post(self.path, self.headers.items(), body))
                if self.path == "/slow":
                    receiver.released.wait(harness.PATIENCE_S)
                steps = receiver.script.get(self.path, [])
                status, more = steps.pop(0) if steps else (200, {})
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # A caller that left.

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def url(self, path, host="127.0.0.1"):
        return f"http://{host}:{self.server.server_port}{path}"

    def at(self, path):
        return [post for post in self.posts if post.path == path]

    def wait(self, path, count, patience=harness.PATIENCE_S):
        World.wait_until(lambda: len(self.at(path)) >= count, f"{count} posts to {path}", patience)
        return self.at(path)

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Scene:
    """A world with a receiver."""

    def __init__(self, idem, more=OPEN, settings=None):
        self.receiver = Receiver()
        self.world = World(idem, settings={"entries": ("sandbox",), **(settings or {})}, more=more)
        self.secrets = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.world.close()
        self.receiver.close()

    def add(self, path, host="127.0.0.1", principal="shop"):
        """A webhook at `path`, whose id is returned."""
        webhook = str(uuid.uuid4())
        body = {"principal": principal, "url": self.receiver.url(path, host)}
        reply = self.world.admin("PUT", f"/webhooks/{webhook}", body)
        assert reply.status == 200, reply
        self.secrets[path] = [reply.json()["secret"]]
        return webhook

    def rotate(self, webhook, path):
        reply = self.world.admin("POST", f"/webhooks/{webhook}/rotate", {"generation": "1"})
        assert reply.status == 200, reply
        self.secrets[path].append(reply.json()["secret"])

    def test(self, webhook):
        reply = self.world.admin("POST", f"/webhooks/{webhook}/test")
        assert reply.status == 200, reply

    def pay(self, key):
        reply = self.world.pay(key, f"order-{key}")
        assert reply.status == 201, reply
        return reply.json()

    def deliveries(self, webhook):
        """Of the webhook, the oldest first."""
        reply = self.world.admin("GET", f"/deliveries?webhook={webhook}")
        assert reply.status == 200, reply
        return reply.json()["deliveries"][::-1]

    def wait_states(self, webhook, states):
        def look():
            return [delivery["state"] for delivery in self.deliveries(webhook)] == states

        World.wait_until(look, f"deliveries {states}")

    def save(self, path, secrets):
        """What came to `path`, and which secrets it must verify with, for verify.mjs."""
        if SAVE is None:
            return
        for number, post in enumerate(self.receiver.at(path)):
            name = f"{path.strip('/')}-{number}-{uuid.uuid4()}.json"
            (SAVE / name).write_text(
                json.dumps(
                    {
                        "headers": post.headers,
                        "body": base64.b64encode(post.body).decode(),
                        "secrets": secrets,
                    }
                )
            )


def told(idem):
    """What became of a payment is posted in order, signed, with the payment as the API shows it"""
    with Scene(idem) as scene:
        webhook = scene.add("/hook")
        paid = scene.pay("k")
        posts = scene.receiver.wait("/hook", 2)
        types = [post.told["type"] for post in posts]
        assert types == ["payment.captured", "operation.succeeded"], types
        for post in posts:
            assert post.headers["content-type"] == "application/json", post.headers
            assert post.signed_with(scene.secrets["/hook"][0]), post.headers
            assert abs(time.time() - int(post.headers["webhook-timestamp"])) < 60, post.headers
            assert list(post.told) == ["type", "timestamp", "sequence", "data"], post.told
        assert posts[0].told["sequence"] < posts[1].told["sequence"], posts
        assert len({post.id for post in posts}) == 2
        assert posts[0].told["data"]["payment"] == paid, (posts[0].told, paid)
        operation = posts[1].told["data"]["operation"]
        assert operation["state"] == "succeeded", operation
        assert operation["payment"] == f"/v1/payments/{paid['id']}", operation
        scene.wait_states(webhook, ["delivered", "delivered"])
        assert [one["sequence"] for one in scene.deliveries(webhook)] == [
            post.told["sequence"] for post in posts
        ]
        metrics = scene.world.get("/metrics", bearer=None).body.decode()
        assert "\nidem_webhooks_in_hand 0\n" in metrics, metrics
        scene.save("/hook", scene.secrets["/hook"])


def only_its_own(idem):
    """A principal is told of its own payments, and nobody else is"""
    with Scene(idem) as scene:
        scene.add("/hook")
        scene.add("/rival", principal="rival")
        scene.pay("k")
        reply = scene.world.pay("r", "order-r", bearer=harness.OTHER_BEARER)
        assert reply.status == 201, reply
        mine = scene.receiver.wait("/hook", 2)
        theirs = scene.receiver.wait("/rival", 2)
        assert mine[0].told["data"]["payment"]["order_no"] == "order-k", mine[0].told
        assert theirs[0].told["data"]["payment"]["order_no"] == "order-r", theirs[0].told
        assert not theirs[0].signed_with(scene.secrets["/hook"][0])
        assert (len(scene.receiver.posts)) == 4, scene.receiver.posts


def rotated(idem):
    """After a rotation a post verifies under the new secret and under the one before it"""
    with Scene(idem) as scene:
        webhook = scene.add("/hook")
        scene.test(webhook)
        first = scene.receiver.wait("/hook", 1)[0]
        scene.save("/hook", scene.secrets["/hook"][:1])
        scene.rotate(webhook, "/hook")
        old, new = scene.secrets["/hook"]
        assert old != new
        scene.receiver.posts.clear()
        scene.test(webhook)
        second = scene.receiver.wait("/hook", 1)[0]
        assert second.signed_with(old) and second.signed_with(new), second.headers
        assert first.signed_with(old) and not first.signed_with(new), first.headers
        assert len(second.headers["webhook-signature"].split(" ")) == 2, second.headers
        scene.save("/hook", [old, new])


def again(idem):
    """What was not taken comes again after five seconds: same id and bytes, signed anew"""
    with Scene(idem) as scene:
        webhook = scene.add("/hook")
        scene.receiver.script["/hook"] = [(500, {}), (302, {"Location": "/elsewhere"})]
        scene.pay("k")
        first, second = scene.receiver.wait("/hook", 2)[:2]
        assert second.id == first.id and second.body == first.body
        apart_s = int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"])
        assert 4 <= apart_s <= 30, apart_s
        assert second.signed_with(scene.secrets["/hook"][0])
        World.wait_until(
            lambda: scene.deliveries(webhook)[0]["last_status"] == 302, "the redirect counts"
        )
        state = scene.deliveries(webhook)
        assert (state[0]["state"], state[0]["attempts"]) == ("pending", 2), state
        assert state[1]["attempts"] == 0, state  # It waits behind the first.
        assert not scene.receiver.at("/elsewhere")


def gone(idem):
    """A receiver that answers 410 is disabled and told nothing more until it is enabled"""
    with Scene(idem) as scene:
        webhook = scene.add("/hook")
        scene.receiver.script["/hook"] = [(410, {})]
        scene.pay("one")
        scene.receiver.wait("/hook", 1)

        def is_disabled():
            return scene.world.admin("GET", "/webhooks").json()["webhooks"][0]["disabled"]

        World.wait_until(is_disabled, "the webhook is disabled")
        scene.pay("two")
        reply = scene.world.admin("POST", f"/webhooks/{webhook}/test")
        assert reply.status == 409, reply
        assert len(scene.receiver.posts) == 1, scene.receiver.posts
        metrics = scene.world.get("/metrics", bearer=None).body.decode()
        assert metrics.count("idem_webhooks_gone_total") == 3, metrics
        reply = scene.world.admin("POST", f"/webhooks/{webhook}/enable")
        assert reply.status == 200, reply
        scene.test(webhook)
        World.wait_until(
            lambda: any(post.told["type"] == "webhook.test" for post in scene.receiver.posts),
            "it is told again",
        )


def replayed(idem):
    """What was delivered can be sent again over API and command line: same id and bytes"""
    with Scene(idem) as scene:
        webhook = scene.add("/hook")
        scene.test(webhook)
        post = scene.receiver.wait("/hook", 1)[0]
        scene.wait_states(webhook, ["delivered"])
        message = post.id.removeprefix("msg_")
        reply = scene.world.admin("POST", f"/messages/{message}/replay", {"webhook": webhook})
        assert reply.status == 200, reply
        scene.receiver.wait("/hook", 2)
        scene.wait_states(webhook, ["delivered"])
        done = scene.world.command(
            "outbox", "replay", "--message", message, "--webhook", webhook
        )
        assert done.returncode == 0, done
        posts = scene.receiver.wait("/hook", 3)
        assert {post.id for post in posts} == {post.id} and {p.body for p in posts} == {post.body}


def private(idem):
    """The own network is not connected to unless that is allowed, whatever the name"""
    with Scene(idem, more="webhooks = { allow_http = true; };") as scene:
        for path, host in (("/literal", "127.0.0.1"), ("/name", "localhost")):
            webhook = scene.add(path, host)
            scene.test(webhook)

            def refused(webhook=webhook):
                delivery = scene.deliveries(webhook)[0]
                return delivery["last_error"] == "the address may not be connected to"

            World.wait_until(refused, f"{host} is refused")
        assert scene.receiver.connections == 0


def without_tls(idem):
    """An address without TLS is refused unless that is allowed, also one that was added before"""
    with Scene(idem) as scene:
        webhook = scene.add("/hook")
        scene.world.stop()
        scene.world.more = "webhooks = { allow_private = true; };"
        scene.world.start()
        body = {"principal": "shop", "url": scene.receiver.url("/other")}
        reply = scene.world.admin("PUT", f"/webhooks/{uuid.uuid4()}", body)
        assert reply.status == 400, reply
        scene.test(webhook)
        World.wait_until(
            lambda: scene.deliveries(webhook)[0]["last_error"] == "only https may be posted to",
            "it is not posted",
        )
        assert scene.receiver.connections == 0


def hanging(idem):
    """A receiver that hangs holds up only its own: the others get everything at once"""
    with Scene(idem) as scene:
        slow = scene.add("/slow")
        scene.add("/hook")
        scene.receiver.released.clear()
        for number in range(20):
            scene.pay(f"k{number}")
        posts = scene.receiver.wait("/hook", 40, patience=10)
        assert len({post.id for post in posts}) == 40
        assert len(scene.receiver.at("/slow")) == 4, len(scene.receiver.at("/slow"))
        scene.receiver.released.set()
        scene.wait_states(slow, ["delivered"] * 16)  # A page of them.


def stopped(idem):
    """A stop does not wait for a receiver that hangs, and the next start posts again at once"""
    with Scene(idem, settings={"stop_grace_ms": 300}) as scene:
        webhook = scene.add("/slow")
        scene.receiver.released.clear()
        scene.test(webhook)
        first = scene.receiver.wait("/slow", 1)[0]
        begin = time.monotonic()
        assert scene.world.stop() == 0
        assert time.monotonic() - begin < 10
        scene.receiver.released.set()
        scene.world.start()
        second = scene.receiver.wait("/slow", 2, patience=20)[1]
        assert second.id == first.id and second.body == first.body
        scene.wait_states(webhook, ["delivered"])


def killed(idem):
    """What was being posted when the service died is posted again when its lease is over"""
    with Scene(idem) as scene:
        webhook = scene.add("/slow")
        scene.receiver.released.clear()
        scene.test(webhook)
        first = scene.receiver.wait("/slow", 1)[0]
        scene.world.kill()
        scene.receiver.released.set()
        begin = time.monotonic()
        scene.world.start()
        second = scene.receiver.wait("/slow", 2, patience=90)[1]
        assert time.monotonic() - begin > 30
        assert second.id == first.id and second.body == first.body
        scene.wait_states(webhook, ["delivered"])


def main():
    global SAVE  # pylint: disable=global-statement
    words = sys.argv[2:]
    if words and words[0] == "--save":
        SAVE = pathlib.Path(words[1])
        words = words[2:]
    tests = [
        killed, told, only_its_own, rotated, again, gone, replayed, private, without_tls, hanging,
        stopped,
    ]
    harness.run_at_once(tests, sys.argv[1], words, 3)


if __name__ == "__main__":
    main()
