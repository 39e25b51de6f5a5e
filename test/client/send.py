"""
`idem send` against the service and its sandbox: what a shell script can rely on.

Goal: one name is one action. Whatever is lost, refused, restarted, stopped or set to another time
in between, the same command again never becomes a second payment, its verdict is true, and it
says so by its exit status: 0 it happened, 6 it did not and a person has to look, 8 it did not and
may later, 7 nobody knows yet; 2 the journal does not allow this command.

Method: each scene has a world of its own, and several run at once. Judges: the sandbox's ledger,
the service's rows, the journal. Usage: send.py IDEM [word in a test's name ...]
"""

import concurrent.futures
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness  # noqa: E402
from harness import Sent, World, payment  # noqa: E402
from server import Row, Server  # noqa: E402

AT_ONCE = 6
DONE, JOURNAL, USAGE, REFUSED, UNKNOWN, LATER = 0, 1, 2, 6, 7, 8  # Exit statuses.
DAY_US = 86400 * 1000000

# provider, token, how it ends, executions. "open": the provider cannot tell, the service asks on.
FAULTS = """
sandbox          tok_ok                 done     1
sandbox          tok_decline            refused  0
sandbox          tok_lose_answer        done     1
sandbox          tok_lose_request       done     1
sandbox          tok_late_1             done     1
sandbox          tok_late_3             done     1
sandbox          tok_slow_1             done     1
sandbox          tok_slow_3             done     1
sandbox          tok_500_before         done     1
sandbox          tok_500_after          done     1
sandbox          tok_cut_body           done     1
sandbox          tok_garbage            done     1
sandbox          tok_wrong_amount       open     1
sandbox          tok_wrong_currency     open     1
sandbox          tok_wrong_id           open     1
sandbox          tok_unknown_status     done     1
sandbox          tok_429                done     1
sandbox          tok_503                done     1
sandbox          tok_429_always         never    0
sandbox          tok_503_always         never    0
sandbox          tok_processing_1_ok    done     1
sandbox          tok_processing_1_fail  refused  0
sandbox          tok_not_found_1        done     1
sandbox          tok_dead_reuse         done     1
sandbox          tok_dead_reuse_after   done     1
sandbox-lagging  tok_lose_answer        done     1
sandbox-lagging  tok_lose_request       done     1
sandbox-closing  tok_lose_request       refused  0
sandbox-closing  tok_lose_answer        done     1
sandbox-plain    tok_lose_request       open     0
sandbox-plain    tok_lose_answer        done     1
sandbox-blind    tok_lose_request       done     1
sandbox-blind    tok_500_after          done     1
"""


def scene(settings=None, **options):
    """Gives a test a world, and what it has logged when the test fails."""

    def decorate(test):
        def run(idem):
            world = World(idem, settings, **options)
            try:
                test(world)
            except BaseException as error:
                raise AssertionError(f"{error!r}\n{world.log_text()[-1500:]}") from error
            finally:
                world.close()

        run.__name__ = test.__name__
        run.__doc__ = test.__doc__
        return run

    return decorate


def executions(world, order_no):
    return sum(effect["executions"] for effect in world.ledger(order_no=order_no)["effects"])


def arrivals(world, order_no):
    return sum(effect["arrivals"] for effect in world.ledger(order_no=order_no)["effects"])


def code_of(told):
    """The exit status that belongs to a verdict."""
    if told["outcome"] != "refused":
        return {"done": DONE, "unknown": UNKNOWN}[told["outcome"]]
    return REFUSED if told["over"] or told["reason"] == "advised" else LATER


def expect(sent, code, outcome):
    assert sent.code == code, f"not exit {code}: {sent}"
    assert sent.told.get("outcome") == outcome, f"not {outcome}: {sent}"
    return sent


def one_key(world, name, key):
    """The journal knows this key of the name, and no other."""
    keys = world.journal("SELECT key FROM intents WHERE name = ?", name)
    assert keys == [(key,)], f"{keys}, not {key}"
    former = world.journal(
        "SELECT count(*) FROM former_keys JOIN intents ON intents.id = intent WHERE name = ?", name
    )
    assert former == [(0,)], former


def deaf(world):
    """In the place of the service: takes connections and requests, and never says anything."""
    world.kill()
    return socket.create_server(("127.0.0.1", world.port), backlog=64)


def printed(world, name):
    """What the same command writes to standard output."""
    journal = str(world.directory / "send.db")
    process = subprocess.run(
        [world.idem, "send", "--intent", name, "--journal", journal],
        env={**os.environ, "IDEM_CREDENTIAL": harness.BEARER},
        capture_output=True,
        timeout=harness.PATIENCE_S,
        check=True,
    )
    return process.stdout


def lost_payment(world, name):
    """An intent in doubt that never arrived: nobody can say so, least of all the caller."""
    with deaf(world):
        sent = world.send_payment(name, payment(name), "--deadline", "1s")
    world.start()
    return expect(sent, UNKNOWN, "unknown")


# ---- the good day, and the provider's bad ones ----


def pay_fault(world, entry, token, ends):
    deadline = {"open": "4s", "never": "6s"}.get(ends, "25s")
    body = payment(f"{entry}-{token}", token, {"provider": entry})
    return world.send_payment(f"{entry} {token}", body, "--deadline", deadline)


@scene({"wait_ms": 1000})
def test_faults(world):
    """Every way in which the provider fails ends truly, and is shown again without the service"""
    rows = [line.split() for line in FAULTS.split("\n") if line]
    outcomes = {"done": {"done"}, "refused": {"refused"}, "open": {"unknown"}}
    outcomes["never"] = {"refused", "unknown"}
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        told = list(pool.map(lambda row: pay_fault(world, *row[:3]), rows))
    for (entry, token, ends, count), sent in zip(rows, told):
        name = f"{entry} {token}"
        assert sent.told.get("outcome") in outcomes[ends], f"{name}: not {ends}: {sent}"
        assert sent.code == code_of(sent.told), f"{name}: {sent}"
        assert executions(world, f"{entry}-{token}") == int(count), f"{name}: {sent}"
        assert sent.told["over"] == (ends in ("done", "refused")), f"{name}: {sent}"
        if ends == "open":
            assert "/v1/operations/" in sent.told["status_url"], f"{name}: {sent}"
        one_key(world, name, sent.told["key"])
    world.kill()
    for (entry, token, ends, _), sent in zip(rows, told):
        if sent.told["over"]:
            again = pay_fault(world, entry, token, ends)
            assert again.code == sent.code, again
            for member in ("key", "status", "body", "headers", "outcome"):
                assert again.told[member] == sent.told[member], f"{entry} {token}: {member}"
            assert (again.told["sends"], again.told["asks"]) == (0, 0), again


@scene()
def test_secrets(world):
    """The journal is for its owner alone, and the credential is not in it, nor in what is told"""
    sent = expect(world.send_payment("n", payment("o")), DONE, "done")
    assert harness.BEARER not in sent.out + sent.err
    files = sorted(world.directory.glob("send.db*"))
    assert len(files) >= 2, files
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert harness.BEARER.encode() not in path.read_bytes(), path


@scene()
def test_credential(world):
    """A wrong credential is put right under the same key"""
    wrong = expect(world.send_payment("n", payment("o"), bearer="wrong"), REFUSED, "refused")
    assert wrong.told["status"] == 401 and not wrong.told["over"], wrong
    assert "The credential is missing or not known" in wrong.err, f"not its words: {wrong}"
    assert "--new-key" not in wrong.err.splitlines()[-1], f"no key is needed: {wrong}"
    assert arrivals(world, "o") == 0
    right = expect(world.send_payment("n", payment("o")), DONE, "done")
    one_key(world, "n", wrong.told["key"])
    assert right.told["key"] == wrong.told["key"]
    assert executions(world, "o") == 1


@scene()
def test_changed_body(world):
    """Another body under a name is refused, nothing is sent, and the name stays what it is"""
    first = expect(world.send_payment("n", payment("o")), DONE, "done")
    other = world.send_payment("n", payment("o2", more={"amount": "1.00"}))
    assert other.code == USAGE and other.out == "", other
    assert "nothing was sent" in other.err.lower(), other
    assert "--new-key" not in other.err, f"a new key after DONE: {other}"
    world_rows = world.rows("SELECT count(*) FROM intents")
    assert world_rows == [(1,)], world_rows
    again = expect(world.send_payment("n", payment("o")), DONE, "done")
    assert again.told["body"] == first.told["body"]
    assert again.told["sends"] == 0
    one_key(world, "n", first.told["key"])


@scene({"wait_ms": 500})
def test_slow_provider(world):
    """No answer within the deadline is UNKNOWN with an address, and DONE later"""
    sent = world.send_payment("n", payment("o", "tok_processing_5_ok"), "--deadline", "2s")
    expect(sent, UNKNOWN, "unknown")
    assert sent.told["reason"] == "deadline", sent
    path = sent.told["status_url"].removeprefix(f"http://127.0.0.1:{world.port}")
    assert world.get(path).json()["state"] in ("processing", "unknown"), sent
    assert "o" not in sent.told["body"] or not sent.told["over"]
    refused = world.send("--intent", "n", "--new-key")
    assert refused.code == USAGE and refused.out == "", f"a new key in doubt: {refused}"
    one_key(world, "n", sent.told["key"])
    pending = [json.loads(line) for line in world.send("--pending").out.splitlines()]
    assert [entry["name"] for entry in pending] == ["n"], pending
    forget = world.send("--forget", "--intent", "n")
    assert forget.code == USAGE, f"forgotten in doubt: {forget}"
    done = world.send_payment("n", payment("o", "tok_processing_5_ok"), "--deadline", "20s")
    expect(done, DONE, "done")
    assert done.told["key"] == sent.told["key"]
    assert executions(world, "o") == 1
    idle = world.send("--pending")
    assert (idle.code, idle.out, idle.err) == (DONE, "", ""), f"cron would mail it: {idle}"
    assert len(world.send("--all").out.splitlines()) == 1
    assert world.send("--forget", "--intent", "n").code == DONE
    assert world.send("--all").out == ""


@scene({"wait_ms": 500})
def test_resume(world):
    """An intent is resumed by its name alone, by whoever has the journal"""
    sent = world.send_payment("n", payment("o", "tok_late_3"), "--deadline", "1s")
    expect(sent, UNKNOWN, "unknown")
    time.sleep(0.5)
    for _ in range(20):
        resumed = world.send("--intent", "n")
        if resumed.code != UNKNOWN:
            break
    expect(resumed, DONE, "done")
    one_key(world, "n", sent.told["key"])
    assert executions(world, "o") == 1
    unknown_name = world.send("--intent", "nobody")
    assert unknown_name.code == USAGE, unknown_name


@scene({"wait_ms": 300})
def test_never_answers(world):
    """A provider that never answers leaves UNKNOWN and an address, run after run"""
    for _ in range(2):
        sent = world.send_payment("n", payment("o", "tok_slow_3600"), "--deadline", "3s")
        expect(sent, UNKNOWN, "unknown")
        assert "/v1/operations/" in sent.told["status_url"], sent
        assert sent.told["asks"] > 0, sent
    one_key(world, "n", sent.told["key"])
    assert world.rows("SELECT count(*) FROM intents") == [(1,)]
    assert executions(world, "o") == 0


# ---- several runs of one name, and runs that are ended ----


@scene({"wait_ms": 1000})
def test_two_at_once(world):
    """Two runs of one name at the same time pay once; one of them may be told that it runs"""
    words = ["POST", f"http://127.0.0.1:{world.port}/v1/payments", "--deadline", "20s"]
    for number in range(4):
        order_no = f"o{number}"
        data = json.dumps(payment(order_no, "tok_late_1" if number % 2 else "tok_ok"))
        more = ["--intent", f"n{number}", "--data", data]
        sents = [Sent(process) for process in [world.send_start(*words, *more) for _ in range(3)]]
        done = [sent for sent in sents if sent.is_done()]
        assert done, sents
        for sent in sents:
            assert sent.is_done() or (sent.code == UNKNOWN and sent.out == ""), sents
        assert len({sent.told["key"] for sent in done}) == 1, sents
        assert len({sent.told["body"] for sent in done}) == 1, sents
        one_key(world, f"n{number}", done[0].told["key"])
        assert executions(world, order_no) == 1


@scene({"wait_ms": 8000})
def test_stopped(world):
    """A signal ends a run with what is known, and the same command goes on"""
    token = "tok_processing_6_ok"
    url = f"http://127.0.0.1:{world.port}/v1/payments"
    started = {}
    for which in (signal.SIGINT, signal.SIGTERM):
        data = json.dumps(payment(which.name, token))
        started[which] = world.send_start("POST", url, "--intent", which.name, "--data", data)
    stopped = {}
    for which, process in started.items():
        world.wait_until(lambda name=which.name: arrivals(world, name), "it arrives")
        process.send_signal(which)
        stopped[which.name] = expect(Sent(process), UNKNOWN, "unknown")
        assert stopped[which.name].told["reason"] == "stopped", stopped
    for name, sent in stopped.items():
        done = expect(world.send_payment(name, payment(name, token)), DONE, "done")
        assert done.told["key"] == sent.told["key"]
        assert executions(world, name) == 1


@scene({"wait_ms": 3000})
def test_restart(world):
    """The service is killed and started again under a run, which ends all the same"""
    url = f"http://127.0.0.1:{world.port}/v1/payments"
    for number, token in enumerate(("tok_late_1", "tok_processing_2_ok", "tok_ok")):
        order_no = f"o{number}"
        data = json.dumps(payment(order_no, token))
        words = ("--intent", order_no, "--data", data, "--deadline", "30s")
        process = world.send_start("POST", url, *words)
        world.wait_until(lambda order_no=order_no: arrivals(world, order_no), "it arrives")
        world.kill()
        time.sleep(0.3)
        world.start()
        sent = expect(Sent(process), DONE, "done")
        one_key(world, order_no, sent.told["key"])
        assert executions(world, order_no) == 1


# ---- new keys ----


@scene()
def test_declined(world):
    """What was declined stays declined, until it gets a new key: then it is paid once"""
    bad = payment("o", "tok_decline")
    first = expect(world.send_payment("n", bad), REFUSED, "refused")
    assert first.told["status"] == 402 and first.told["over"], first
    again = expect(world.send_payment("n", bad), REFUSED, "refused")
    assert (again.told["sends"], again.told["body"]) == (0, first.told["body"]), again
    assert "The provider declined" in first.err and "The provider declined" in again.err, first
    good = payment("o", "tok_ok")
    other = world.send_payment("n", good)
    assert other.code == USAGE and other.out == "", f"another body under the old key: {other}"
    assert "--new-key" in other.err and "another name" not in other.err, other
    done = expect(world.send_payment("n", good, "--new-key"), DONE, "done")
    assert done.told["key"] != first.told["key"]
    assert executions(world, "o") == 1
    former = world.journal("SELECT key FROM former_keys")
    assert former == [(first.told["key"],)], former
    after = world.send("--intent", "n", "--new-key")
    assert after.code == USAGE and after.out == "", f"a new key after DONE: {after}"
    assert executions(world, "o") == 1


@scene()
def test_new_key_of_another(world):
    """A new key that another name has is refused, and it is the key that is talked about"""
    expect(world.send_payment("first", payment("first"), "--key", "k-1"), DONE, "done")
    expect(world.send_payment("n", payment("o", "tok_decline")), REFUSED, "refused")
    taken = world.send_payment("n", payment("o", "tok_ok"), "--new-key", "--key", "k-1")
    assert taken.code == USAGE and taken.out == "", taken
    assert "Which name has the key" in taken.err and "with --new-key" not in taken.err, taken
    assert executions(world, "o") == 0


@scene()
def test_new_key_killed(world):
    """Killed anywhere under a new key, the name goes on with that one, and pays once"""
    points = ("client-begin-before", "client-begin-durable", "send-first-byte")
    for point in (*points, "client-answered", "client-end-before", "client-end-durable"):
        first = expect(world.send_payment(point, payment(point, "tok_decline")), REFUSED, "refused")
        words = ("POST", f"http://127.0.0.1:{world.port}/v1/payments", "--intent", point)
        data = ("--new-key", "--data", json.dumps(payment(point)))
        killed = Sent(world.send_start(*words, *data, crash_point=point))
        assert killed.code == -signal.SIGKILL, killed
        again = world.send(*words, *data)
        assert again.code == USAGE and again.out == "", f"{point}: a third key: {again}"
        done = expect(world.send("--intent", point), DONE, "done")
        assert done.told["key"] != first.told["key"], done
        assert executions(world, point) == 1, point
    former = world.journal("SELECT count(*), max(generation) FROM former_keys")
    assert former == [(6, 1)], former


@scene()
def test_abandoned(world):
    """A key that was given up on the server is REFUSED, and a new one pays once"""
    lost = lost_payment(world, "n")
    assert world.send("--intent", "n", "--new-key").code == USAGE, "a new key in doubt"
    reply = world.post(
        "/v1/operations/abandon", lost.told["key"], {"endpoint": "payments.create"}
    )
    assert reply.status == 200, reply
    refused = expect(world.send_payment("n", payment("n")), REFUSED, "refused")
    assert refused.told["over"] and refused.told["key"] == lost.told["key"], refused
    assert executions(world, "n") == 0
    done = expect(world.send("--intent", "n", "--new-key"), DONE, "done")
    assert done.told["key"] != lost.told["key"]
    assert executions(world, "n") == 1


@scene()
def test_not_sent(world):
    """What could not be sent is REFUSED without doubt and for now, and goes on under its key"""
    world.kill()
    first = expect(world.send_payment("n", payment("o"), "--deadline", "1s"), LATER, "refused")
    assert first.told["reason"] == "not-sent" and not first.told["over"], first
    world.start()
    done = expect(world.send_payment("n", payment("o")), DONE, "done")
    assert done.told["key"] == first.told["key"]
    assert executions(world, "o") == 1


@scene()
def test_corrected(world):
    """A request that cannot be used is corrected by the command that is told, under a new key"""
    bad = payment("o", more={"amount": "much"})
    first = expect(world.send_payment("n", bad), REFUSED, "refused")
    assert first.told["status"] == 400 and not first.told["over"], first
    url = f"http://127.0.0.1:{world.port}/v1/payments"
    line = first.err.splitlines()[-1]
    assert f"idem send POST {url} --intent n --new-key --data @CORRECTED" in line, first
    done = expect(world.send_payment("n", payment("o"), "--new-key"), DONE, "done")
    assert done.told["key"] != first.told["key"]
    assert executions(world, "o") == 1


@scene()
def test_order_exists(world):
    """Where something else stands in its way, the words say what, and to look before a new key"""
    expect(world.send_payment("n", payment("o")), DONE, "done")
    second = expect(world.send_payment("n2", payment("o")), REFUSED, "refused")
    assert "The order number has a live payment already" in second.err, second
    assert "Look at what is there" in second.err.splitlines()[-1], second
    assert executions(world, "o") == 1


# ---- a person's word ----


def decide(world, name, word, *more):
    return world.send("--decide", word, "--note", "seen at the bank", "--intent", name, *more)


@scene()
def test_decided(world):
    """A person ends what nobody can tell any more: once, in both ways, and it is shown as that"""
    for name, word, code in (("yes", "happened", DONE), ("no", "not-happened", REFUSED)):
        lost = lost_payment(world, name)
        date_back(world, name, 40)
        assert decide(world, name, word).code == DONE
        sent = world.send_payment(name, payment(name))
        assert sent.code == code and sent.told["over"], sent
        assert (sent.told["reason"], sent.told["key"]) == ("decided", lost.told["key"]), sent
        assert (sent.told["sends"], sent.told["asks"]) == (0, 0), sent
        assert "seen at the bank" in sent.err, sent
        again = decide(world, name, word)
        assert again.code == USAGE, f"decided twice: {again}"
    assert arrivals(world, "yes") + arrivals(world, "no") == 0
    assert world.send("--intent", "yes", "--new-key").code == USAGE, "a new key after DONE"
    done = expect(world.send("--intent", "no", "--new-key"), DONE, "done")
    assert executions(world, "no") == 1 and done.told["reason"] == "answered", done
    assert world.send("--pending").out == ""


@scene()
def test_decided_wrongly(world):
    """A person decides nothing that is over, that does not exist, or without saying who saw it"""
    expect(world.send_payment("n", payment("o")), DONE, "done")
    before = world.journal("SELECT outcome, reason, over, message FROM intents")
    for words in (
        ("--decide", "not-happened", "--note", "x", "--intent", "n"),
        ("--decide", "happened", "--note", "x", "--intent", "nobody"),
        ("--decide", "happened", "--note", "a\nb", "--intent", "n"),
        ("--decide", "happened", "--intent", "n"),
    ):
        sent = world.send(*words)
        assert sent.code == USAGE and sent.out == "", f"{words}: {sent}"
    assert world.journal("SELECT outcome, reason, over, message FROM intents") == before


@scene()
def test_not_ended(world):
    """A run that was cut off is called the same in the table and in JSON"""
    words = ("POST", f"http://127.0.0.1:{world.port}/v1/payments", "--intent", "n")
    data = ("--data", json.dumps(payment("o")))
    Sent(world.send_start(*words, *data, crash_point="client-begin-durable"))
    entry = json.loads(world.send("--pending").out)
    assert (entry["outcome"], entry["reason"], entry["ended"]) == ("not-ended", "none", None), entry
    journal = str(world.directory / "send.db")
    table = subprocess.run(
        [world.idem, "send", "--pending", "--journal", journal],
        capture_output=True,
        text=True,
        timeout=harness.PATIENCE_S,
        check=True,
    )
    assert table.stdout.splitlines()[1].split()[:3] == ["n", "not-ended", "none"], table


@scene()
def test_key_of_another(world):
    """A key that another name has is refused, and the words are about the key"""
    expect(world.send_payment("n", payment("o"), "--key", "k"), DONE, "done")
    other = world.send_payment("n2", payment("o2"), "--key", "k")
    assert other.code == USAGE and other.out == "", other
    assert "--all" in other.err and "--intent" not in other.err, other
    assert other.err.lower().count("nothing was sent") == 1, other
    assert arrivals(world, "o2") == 0
    expect(world.send_payment("n2", payment("o2"), "--key", "k2"), DONE, "done")


@scene()
def test_other_account(world):
    """In doubt another account's credential is refused, and said once to have sent nothing"""
    lost_payment(world, "n")
    other = world.send_payment("n", payment("n"), bearer=harness.OTHER_BEARER)
    assert other.code == USAGE and other.out == "", other
    assert other.err.lower().count("nothing was sent") == 1, other
    expect(world.send_payment("n", payment("n")), DONE, "done")
    assert executions(world, "n") == 1


# ---- forgetting ----


@scene()
def test_forgotten_by_age(world):
    """What is over and old is forgotten in one go; what is not over never, and nothing is sent"""
    expect(world.send_payment("paid", payment("paid")), DONE, "done")
    expect(world.send_payment("declined", payment("declined", "tok_decline")), REFUSED, "refused")
    expect(world.send_payment("wrong", payment("wrong"), bearer="wrong"), REFUSED, "refused")
    lost_payment(world, "lost")
    old_us = time.time_ns() // 1000 - 100 * DAY_US
    world.journal("UPDATE intents SET ended_us = ?", old_us)
    expect(world.send_payment("young", payment("young")), DONE, "done")
    before = arrivals(world, "paid")

    def names():
        return [json.loads(line)["name"] for line in world.send("--all").out.splitlines()]

    for age, code, left in (
        ("23h", USAGE, 5),
        ("101d", DONE, 5),
        ("99d", DONE, 3),
        ("1d", DONE, 3),
    ):
        sent = world.send("--forget", "--older-than", age)
        assert sent.code == code and sent.out == "", f"{age}: {sent}"
        assert len(names()) == left, f"{age}: {names()}: {sent}"
    assert names() == ["wrong", "lost", "young"], names()
    gone = world.send("--forget", "--intent", "paid")
    assert gone.code == USAGE and "no intent of that name" in gone.err, gone
    assert "sent" not in gone.err, f"forgetting never sends: {gone}"
    assert arrivals(world, "paid") == before
    expect(world.send_payment("lost", payment("lost")), DONE, "done")


# ---- what is in the way of a run ----


@scene()
def test_missing_folder(world):
    """A journal in a folder that is not there is not begun: a disk may be missing"""
    path = world.directory / "gone" / "send.db"
    sent = world.send_payment("n", payment("o"), "--journal", str(path))
    assert sent.code == JOURNAL and sent.out == "", sent
    assert f"folder {path.parent}" in sent.err and "nothing was sent" in sent.err.lower(), sent
    assert not path.parent.exists() and arrivals(world, "o") == 0
    path.parent.mkdir()
    expect(world.send_payment("n", payment("o"), "--journal", str(path)), DONE, "done")


@scene()
def test_strange_option(world):
    """What getopt says begins with the program's name"""
    sent = world.send("--surprise")
    assert sent.code == USAGE and sent.out == "", sent
    assert all(line.startswith("idem send: ") for line in sent.err.splitlines()), sent


@scene()
def test_full_output(world):
    """An answer that cannot be printed is 1; it happened, and the same command shows it"""
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [world.idem, "send", "POST", f"http://127.0.0.1:{world.port}/v1/payments",
             "--intent", "n", "--data", json.dumps(payment("o")),
             "--journal", str(world.directory / "send.db")],
            env={**os.environ, "IDEM_CREDENTIAL": harness.BEARER},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=harness.PATIENCE_S,
            check=False,
        )
    assert process.returncode == JOURNAL, process
    assert "Done" in process.stderr and "nothing was sent" not in process.stderr.lower(), process
    assert process.stderr.count("could not be written") == 1, process
    expect(world.send_payment("n", payment("o")), DONE, "done")
    assert executions(world, "o") == 1


# ---- time ----


def date_back(world, name, days, boot="00000000-0000-4000-8000-000000000000"):
    """The first send of the intent was so many days ago, in another life of the machine."""
    wall_us = time.time_ns() // 1000 - days * DAY_US
    world.journal(
        "UPDATE intents SET first_wall_us = ?, first_boot = ? WHERE name = ?", wall_us, boot, name
    )


@scene()
def test_old_lost(world):
    """After its window a key is not sent again, only asked for, and the verdict says why"""
    for name, days in (("past", 40), ("future", -40)):
        lost = lost_payment(world, name)
        date_back(world, name, days)
        sent = world.send_payment(name, payment(name), "--deadline", "5s")
        expect(sent, UNKNOWN, "unknown")
        assert sent.told["reason"] == "window", sent
        assert sent.told["sends"] == 0 and sent.told["asks"] > 0, sent
        assert "forgotten" in sent.told["message"], sent
        assert sent.told["key"] == lost.told["key"]
        listed = [json.loads(line) for line in world.send("--pending").out.splitlines()]
        assert listed[-1]["status_url"] == sent.told["status_url"], listed
        path = sent.told["status_url"].removeprefix(f"http://127.0.0.1:{world.port}")
        reply = world.get(path, [("Idempotency-Key", sent.told["key"])])
        assert reply.json()["type"] == "urn:idem:problem:key-unknown", f"{path}: {reply}"
        assert world.rows("SELECT count(*) FROM intents") == [(0,)]
        assert world.send("--intent", name, "--new-key").code == USAGE, "a new key in doubt"
        assert "--decide" in sent.err, f"nobody is told how it ends: {sent}"


@scene()
def test_business_id(world):
    """Where only a business id is left to ask by, it is asked, without a credential, and told"""
    server = Server()
    row = server.add(Row("b", "ietf", ["500*"], ["200"]))
    other = server.door([])  # Another origin.
    address = f"http://127.0.0.1:{other}/orders/b"
    words = ("POST", f"http://127.0.0.1:{server.port}/v1/payments", "--dialect", "ietf")
    more = ("--intent", "b", "--header", "X-Row: b", "--status-url", address, "--deadline", "2s")
    sent = expect(world.send(*words, *more, "--data", "{}"), UNKNOWN, "unknown")
    assert sent.told["asks"] == 1 and row.asked == 1, sent
    assert sent.told["status_url"] == address and address in sent.err, sent
    assert "business id" in sent.told["message"], sent
    for head in row.questions_seen:
        assert b"uthorization" not in head and b"dempotency" not in head, head
    assert all(b"Authorization" in head for head in row.arrivals), row.arrivals
    server.close()


@scene({"wait_ms": 300})
def test_old_done(world):
    """After its window the outcome is still found by asking, to the byte"""
    body = payment("o", "tok_late_3")
    expect(world.send_payment("n", body, "--deadline", "1s"), UNKNOWN, "unknown")
    date_back(world, "n", 40)
    done = expect(world.send_payment("n", body, "--deadline", "20s"), DONE, "done")
    assert done.told["sends"] == 0 and done.told["asks"] > 0, done
    reply = world.post("/v1/payments", done.told["key"], body)
    assert reply.header("Idempotent-Replayed") == "true", reply
    assert done.told["body"].encode() == reply.body, f"told {done}, kept {reply}"
    assert printed(world, "n") == reply.body
    assert executions(world, "o") == 1


@scene()
def test_calendar(world):
    """A calendar that stands before what it has dated is not believed; one that went on is"""
    lost_payment(world, "set-back")
    date_back(world, "set-back", 0)
    future_us = time.time_ns() // 1000 + DAY_US
    before = world.journal("SELECT value FROM meta WHERE name = 'high_us'")
    world.journal("UPDATE meta SET value = ? WHERE name = 'high_us'", future_us)
    sent = world.send_payment("set-back", payment("set-back"), "--deadline", "5s")
    expect(sent, UNKNOWN, "unknown")
    assert (sent.told["reason"], sent.told["sends"]) == ("window", 0), sent
    world.journal("UPDATE meta SET value = ? WHERE name = 'high_us'", before[0][0])
    lost_payment(world, "rebooted")
    date_back(world, "rebooted", 0)
    expect(world.send_payment("rebooted", payment("rebooted")), DONE, "done")
    assert executions(world, "rebooted") == 1
    lost_payment(world, "jumped")
    this_boot = world.journal("SELECT first_boot FROM intents WHERE name = 'jumped'")[0][0]
    date_back(world, "jumped", 40, this_boot)
    # The calendar says that it is old: whichever clock says so is believed.
    sent = world.send_payment("jumped", payment("jumped"), "--deadline", "5s")
    expect(sent, UNKNOWN, "unknown")
    assert (sent.told["reason"], sent.told["sends"]) == ("window", 0), sent
    assert executions(world, "jumped") == 0


# ---- no room for the journal ----


def limited(size):
    """Runs in the program's process: no file may grow beyond `size` bytes, without a signal."""

    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return prepare


@scene()
def test_full_disk(world):
    """Without room in the journal nothing is sent; with room again it is paid once"""
    refused = 0
    for size in range(0, 140 * 1024, 4096):
        name = f"n{size}"
        words = ("--journal", str(world.directory / f"{name}.db"))
        sent = world.send_payment(name, payment(name), *words, prepare=limited(size))
        if sent.code == JOURNAL and sent.out == "":
            refused += 1
            assert "nothing was sent" in sent.err.lower(), sent
            assert arrivals(world, name) == 0, f"{size}: refused, and it arrived: {sent}"
        else:
            expect(sent, DONE, "done")
        again = expect(world.send_payment(name, payment(name), *words), DONE, "done")
        assert sent.told.get("key", again.told["key"]) == again.told["key"], f"{size}: {again}"
        assert executions(world, name) == 1, f"{size}"
    assert refused > 3, f"only {refused} limits were met"
    assert world.rows("SELECT count(*) FROM intents") == [(35,)]


@scene()
def test_full_tmpfs(world):
    """The same on a file system that is full"""
    tool = shutil.which("unshare")
    if tool is None or subprocess.run([tool, "-m", "true"], check=False).returncode != 0:
        return  # No right to mount here.
    mount = world.directory / "mount"
    mount.mkdir()
    refused = 0
    for pages in (1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 64):
        name = f"n{pages}"
        script = f"mount -t tmpfs -o size={pages * 4096} tmpfs {mount} && exec \"$@\""
        url = f"http://127.0.0.1:{world.port}/v1/payments"
        words = ("--intent", name, "--data", json.dumps(payment(name)))
        result = subprocess.run(
            [tool, "-m", "sh", "-c", script, "sh", world.idem, "send", "POST", url, *words,
             "--journal", str(mount / "send.db")],
            env={**os.environ, "IDEM_CREDENTIAL": harness.BEARER},
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE_S,
            check=False,
        )
        if result.returncode == JOURNAL:
            refused += 1
            assert arrivals(world, name) == 0, f"{pages}: refused, and it arrived: {result}"
            continue
        assert result.returncode == DONE, f"{pages}: {result}"
        assert executions(world, name) == 1
    assert refused > 1, refused


TESTS = [
    test_faults,
    test_never_answers,
    test_slow_provider,
    test_resume,
    test_restart,
    test_stopped,
    test_two_at_once,
    test_full_disk,
    test_full_tmpfs,
    test_old_lost,
    test_old_done,
    test_business_id,
    test_calendar,
    test_new_key_killed,
    test_forgotten_by_age,
    test_abandoned,
    test_not_sent,
    test_declined,
    test_new_key_of_another,
    test_changed_body,
    test_corrected,
    test_key_of_another,
    test_other_account,
    test_order_exists,
    test_decided,
    test_decided_wrongly,
    test_not_ended,
    test_missing_folder,
    test_strange_option,
    test_full_output,
    test_credential,
    test_secrets,
]


if __name__ == "__main__":
    harness.run_at_once(TESTS, sys.argv[1], sys.argv[2:], AT_ONCE)
