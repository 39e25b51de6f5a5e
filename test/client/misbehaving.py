"""
Servers that misbehave, and the verdicts of the client about them.

Goal: whatever a server answers or does not answer, the verdict is true: DONE only if it happened,
REFUSED only if it did not and cannot any more; every arrival of one intent is the same bytes under
the same key; nothing arrives that the client does not count as a send. What was not over is run
again when the server has recovered, and ends DONE, having happened once.

Method: one scripted server (server.py), one run of `caller` with an intent for each row of the
table, many at once, then a second run that resumes what the journal has. Usage: misbehaving.py
CALLER [word in a row ...]
"""

import email.utils
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness  # noqa: E402
from server import Row, Server  # noqa: E402

DEADLINE_MS = 9000
FLAGS = [
    *("--http1", "--at-once", "128", "--calls", "128", "--try-timeout", "2500"),
    *("--connect-timeout", "2000", "--backoff-first", "20", "--backoff-max", "600"),
    *("--retry-percent", "100", "--retry-reserve", "8192"),
]

# dialect | the server's answers, one an arrival (server.py) | verdict and reason | most arrivals,
# "-" if only the deadline bounds them | executions | what questions are answered; default: the
# truth. "refused!" is over: running it again shows the same verdict. Without '!' it is not.
TABLE = """
# What HTTP allows for a good answer.
ietf   | 200*                         | done answered     | 1 | 1
ietf   | 201*                         | done answered     | 1 | 1
ietf   | 204*+empty                   | done answered     | 1 | 1
ietf   | 200*+empty                   | done answered     | 1 | 1
ietf   | 200*+chunked                 | done answered     | 1 | 1
ietf   | 200*+short-length            | done answered     | 1 | 1
ietf   | 200*+early                   | done answered     | 1 | 1
ietf   | 200*+large                   | done answered     | 1 | 1
ietf   | 200*+slow                    | done answered     | 1 | 1
idem   | 201*                         | done answered     | 1 | 1
stripe | 200*                         | done answered     | 1 | 1
adyen  | 200*                         | done answered     | 1 | 1
paypal | 201*                         | done answered     | 1 | 1
# No complete answer: once, and then the replay.
ietf   | reset 200*                   | done answered     | 2 | 1
ietf   | reset* 200*                  | done answered     | 2 | 1
ietf   | close* 200*                  | done answered     | 2 | 1
ietf   | silent* 200*                 | done answered     | 2 | 1
ietf   | 200*+cut-head 200*           | done answered     | 2 | 1
ietf   | 200*+cut-body 200*           | done answered     | 2 | 1
ietf   | 200*+reset-body 200*         | done answered     | 2 | 1
ietf   | 200*+long-length 200*        | done answered     | 2 | 1
ietf   | 200*+bad-length 200*         | done answered     | 2 | 1
ietf   | 200*+chunk-cut 200*          | done answered     | 2 | 1
ietf   | 200*+garbage 200*            | done answered     | 2 | 1
ietf   | 200*+until-close 200*        | done answered     | 2 | 1
ietf   | 200*+early-only 200*         | done answered     | 2 | 1
ietf   | 200*+drip 200*               | done answered     | 2 | 1
ietf   | 200*+huge 200*               | unknown advised   | 1 | 1
idem   | reset* 201*                  | done answered     | 2 | 1
stripe | close* 200*+replayed         | done answered     | 2 | 1
adyen  | silent* 200*                 | done answered     | 2 | 1
paypal | 201*+cut-body 200*           | done answered     | 2 | 1
ietf   | reset* 500 close 200*+cut-body 502 200* | done answered | 6 | 1
# No complete answer, ever.
ietf   | reset                        | unknown deadline  | - | 0
ietf   | reset*                       | unknown deadline  | - | 1
ietf   | close*                       | unknown deadline  | - | 1
ietf   | silent*                      | unknown deadline  | 6 | 1
ietf   | silent                       | unknown deadline  | 6 | 0
ietf   | 200*+cut-head                | unknown deadline  | - | 1
ietf   | 200*+cut-body                | unknown deadline  | - | 1
ietf   | 200*+long-length             | unknown deadline  | - | 1
ietf   | 200*+chunk-cut               | unknown deadline  | - | 1
ietf   | 200*+garbage                 | unknown deadline  | - | 1
ietf   | 200*+until-close             | unknown deadline  | - | 1
ietf   | 600*                         | unknown deadline  | - | 1
ietf   | 999                          | unknown deadline  | - | 0
ietf   | 200*+drip                    | unknown deadline  | 6 | 1
ietf   | 200*+huge                    | unknown advised   | 1 | 1
# Redirects are answers, and are never followed.
ietf   | 301+moved                    | refused advised   | 1 | 0
ietf   | 307+moved                    | refused advised   | 1 | 0
ietf   | 308+moved                    | refused advised   | 1 | 0
ietf   | 302+moved                    | unknown advised   | 1 | 0
ietf   | 303*+moved                   | unknown advised   | 1 | 1
ietf   | 300                          | unknown advised   | 1 | 0
# Turned away for good: under the same key it can be put right.
ietf   | 400                          | refused advised   | 1 | 0
ietf   | 401                          | refused advised   | 1 | 0
ietf   | 402                          | refused advised   | 1 | 0
ietf   | 403+code=forbidden           | refused advised   | 1 | 0
ietf   | 404                          | refused advised   | 1 | 0
ietf   | 405                          | refused advised   | 1 | 0
ietf   | 411                          | refused advised   | 1 | 0
ietf   | 413                          | refused advised   | 1 | 0
ietf   | 415                          | refused advised   | 1 | 0
ietf   | 422                          | refused advised   | 1 | 0
ietf   | 422+code=key-reused          | refused advised   | 1 | 0
ietf   | 428                          | refused advised   | 1 | 0
ietf   | 431                          | refused advised   | 1 | 0
ietf   | 451+empty                    | refused advised   | 1 | 0
ietf   | 404+html                     | refused advised   | 1 | 0
ietf   | 501                          | refused advised   | 1 | 0
ietf   | 505                          | refused advised   | 1 | 0
idem   | 400                          | refused advised   | 1 | 0
idem   | 501+no-echo                  | refused advised   | 1 | 0
# Turned away for now.
ietf   | 425 200*                     | done answered     | 2 | 1
ietf   | 429 200*                     | done answered     | 2 | 1
ietf   | 429 429 429 429 429 200*     | done answered     | 6 | 1
ietf   | 429+empty+retry=1 200*       | done answered     | 2 | 1
ietf   | 429+retry-date 200*          | done answered     | 2 | 1
ietf   | 429+retry=soon 200*          | done answered     | 2 | 1
ietf   | 429+retry=-1 200*            | done answered     | 2 | 1
ietf   | 429                          | refused deadline  | - | 0
ietf   | 429+retry=99999999           | refused deadline  | 1 | 0
ietf   | 429+retry=99999999999999999999999 | refused deadline | - | 0
ietf   | 425                          | refused deadline  | - | 0
# A turning away does not take the doubt of an earlier try away.
ietf   | reset* 429                   | unknown deadline  | - | 1
ietf   | reset 429 429 200*           | done answered     | 4 | 1
ietf   | reset* 429+retry=99999999    | unknown deadline  | 2 | 1
# In flight.
ietf   | 409 200*                     | done answered     | 2 | 1
ietf   | silent* 409 409 200*+replayed | done answered    | 4 | 1
ietf   | 409                          | unknown deadline  | - | 0
stripe | 409 200*                     | done answered     | 2 | 1
adyen  | 409+code=704+should 200*     | done answered     | 2 | 1
adyen  | 422+code=704+should 200*     | done answered     | 2 | 1
paypal | 409+code=PREVIOUS_REQUEST_IN_PROGRESS 201* | done answered | 2 | 1
idem   | 409+problem=in-progress/unknown/same-key 201* | done answered | 2 | 1
# The server cannot say.
ietf   | 408 200*                     | done answered     | 2 | 1
ietf   | 500* 200*                    | done answered     | 2 | 1
ietf   | 502* 200*                    | done answered     | 2 | 1
ietf   | 503 503 503 503 503 200*     | done answered     | 6 | 1
ietf   | 503+retry=1 200*             | done answered     | 2 | 1
ietf   | 504*+empty 200*              | done answered     | 2 | 1
ietf   | 507+html 200*                | done answered     | 2 | 1
ietf   | 599* 200*                    | done answered     | 2 | 1
ietf   | 408                          | unknown deadline  | - | 0
ietf   | 500*                         | unknown deadline  | - | 1
ietf   | 503                          | unknown deadline  | - | 0
ietf   | 503*+retry=99999999          | unknown deadline  | 1 | 1
ietf   | 410                          | unknown advised   | 1 | 0
ietf   | 412*                         | unknown advised   | 1 | 1
ietf   | 424* 200*                    | done answered     | 2 | 1
ietf   | 460 200*                     | done answered     | 2 | 1
ietf   | 499* 200*                    | done answered     | 2 | 1
ietf   | 206*                         | unknown advised   | 1 | 1
ietf   | 207                          | unknown advised   | 1 | 0
ietf   | 403*                         | unknown advised   | 1 | 1
ietf   | 406*+html                    | unknown advised   | 1 | 1
# Stripe: its 4xx marked as a replay, and its 402, are stored answers.
stripe | 402+code=card_declined       | refused! answered | 1 | 0
stripe | 402+code=card_declined+replayed | refused! answered | 1 | 0
stripe | 400+code=parameter_missing+replayed | refused! answered | 1 | 0
stripe | reset 400+code=parameter_missing+replayed | refused! answered | 2 | 0
stripe | 400+code=parameter_missing   | refused advised   | 1 | 0
stripe | 401                          | refused advised   | 1 | 0
stripe | 404+should 200*              | done answered     | 2 | 1
stripe | 400+should                   | unknown advised   | 1 | 0
stripe | 429 200*                     | done answered     | 2 | 1
stripe | 429+should-not               | refused advised   | 1 | 0
stripe | 400+code=idempotency_error   | unknown advised   | 1 | 0
stripe | 500*+replayed                | unknown advised   | 1 | 1
stripe | 500*+should-not              | unknown advised   | 1 | 1
stripe | 500* 200*                    | done answered     | 2 | 1
stripe | 500* 500*+replayed           | unknown advised   | 2 | 1
# Adyen.
adyen  | 503+code=703 200*            | done answered     | 2 | 1
adyen  | 503+code=703                 | refused deadline  | - | 0
adyen  | 401                          | refused advised   | 1 | 0
adyen  | 422+code=100                 | refused advised   | 1 | 0
adyen  | 409*+code=704                | unknown advised   | 1 | 1
adyen  | 500*                         | unknown deadline  | - | 1
# PayPal.
paypal | 422+code=DUPLICATE_REQUEST_ID | unknown advised  | 1 | 0
paypal | 422+code=PAYPAL_REQUEST_ID_PREVIOUSLY_USED | unknown advised | 1 | 0
paypal | 422+code=INSTRUMENT_DECLINED | refused advised   | 1 | 0
paypal | 409 201*                     | done answered     | 2 | 1
paypal | 500* 200*                    | done answered     | 2 | 1
# Somebody else answers: a hotel's network, a wrong host.
idem   | 200+no-echo+html             | unknown advised   | 1 | 0
idem   | 200+other-echo               | unknown advised   | 1 | 0
ietf   | 200+html                     | unknown advised   | 1 | 0
idem   | 201*+no-echo                 | done answered     | 1 | 1
idem   | 201*+other-echo              | done answered     | 1 | 1
# Whole by its length, and half an answer all the same.
idem   | 201*+half                    | done answered     | 1 | 1
idem   | 201*+empty                   | done answered     | 1 | 1
idem   | 201*+plain                   | done answered     | 1 | 1
idem   | 201+half                     | unknown advised   | 1 | 0
idem   | 402*+problem=declined/none/new-key+half | done answered | 1 | 1
ietf   | 200*+half                    | unknown advised   | 1 | 1
ietf   | 200*+chunked+half            | unknown advised   | 1 | 1
ietf   | 200*+plain                   | done answered     | 1 | 1
ietf   | 422+code=key-reused+half     | unknown advised   | 1 | 0
ietf   | 429+half 200*                | done answered     | 2 | 1
ietf   | 500*+half 200*               | done answered     | 2 | 1
stripe | 200*+half                    | unknown advised   | 1 | 1
stripe | 402*+code=card_declined+half | unknown advised   | 1 | 1
adyen  | 422*+code=704+half           | unknown advised   | 1 | 1
paypal | 201*+half                    | unknown advised   | 1 | 1
paypal | 422*+code=DUPLICATE_REQUEST_ID+half | unknown advised | 1 | 1
# Accepted: the outcome is asked for, not sent for.
idem   | 202*+location                | done answered     | 1 | 1 | processing final
idem   | 202*                         | done answered     | 1 | 1 | processing final
idem   | 202*+location                | unknown deadline  | 1 | 1 | processing
idem   | 202*+location                | done answered     | 1 | 1 | 500 reset processing final
idem   | 202*+location-elsewhere      | done answered     | 1 | 1 | final
ietf   | 202*                         | unknown advised   | 1 | 1
ietf   | 202*+location                | unknown advised   | 1 | 1
# In doubt, and the outcome can be asked for.
idem   | silent*                      | done answered     | 6 | 1
idem   | 500*                         | done answered     | - | 1
idem   | reset* 401                   | done answered     | 2 | 1
idem   | 410*                         | done answered     | 1 | 1
idem   | reset* 412+problem=too-old/unknown/query | done answered | 2 | 1
idem   | silent                       | unknown deadline  | 6 | 0
"""

# What the advice of our own problems leads to, whatever the dialect: verdict, reason, arrivals.
ADVICE = {
    ("none", "new-key"): ("refused! answered", "1"),
    ("none", "query"): ("refused! answered", "1"),
    ("none", "never"): ("refused advised", "1"),
    ("none", "same-key"): ("refused deadline", "-"),
    ("unknown", "never"): ("refused advised", "1"),
}
TURNED_AWAY = {"too-slow", "rate-limited", "unavailable", "digest-mismatch"}
SPECIAL = {
    "key-reused": ("unknown advised", "1"),
    "too-old": ("refused advised", "1"),
    "answer-expired": ("refused! answered", "1"),
}


def problem_rows():
    """One row for each problem of docs/errors.md, in a dialect that cannot be asked."""
    errors = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "errors.md"
    for line in errors.read_text().splitlines():
        if not line.startswith("| `"):
            continue
        code, status, effect, retry = (part.strip(" `") for part in line.split("|")[1:5])
        effect = effect.split(" ")[0]
        verdict, arrivals = ADVICE.get((effect, retry), ("unknown deadline", "-"))
        if code in TURNED_AWAY:
            verdict = "refused deadline"
        verdict, arrivals = SPECIAL.get(code, (verdict, arrivals))
        yield f"ietf | {status}+problem={code}/{effect}/{retry} | {verdict} | {arrivals} | 0"
    yield "ietf | 410*+problem=answer-expired/done/query | done answered | 1 | 1"
    yield "idem | 409*+problem=answer-expired/done/query | done answered | 1 | 1"


def doubt_rows(lines):
    """Whatever turns an intent away, after a try that may have been carried out."""
    for line in lines:
        dialect, answers, verdict, _, executions, *_ = columns(line)
        if verdict == "refused advised" and " " not in answers and executions == "0":
            ends = "done answered" if dialect == "idem" else "unknown advised"
            yield f"{dialect} | reset* {answers} | {ends} | 2 | 1"


def columns(line):
    return [column.strip() for column in line.split("|")]


def all_lines():
    lines = [line for line in TABLE.splitlines() if line and not line.startswith("#")]
    lines += problem_rows()
    known = {columns(line)[1] for line in lines}
    return lines + [line for line in doubt_rows(lines) if columns(line)[1] not in known]


class Expectation:
    """One row of the table and its script."""

    def __init__(self, number, line):
        self.line = " ".join(line.split())
        self.dialect, answers, verdict, arrivals, executions, *questions = columns(line)
        self.outcome, self.reason = verdict.split(" ")
        self.over = self.outcome == "done" or self.outcome.endswith("!")
        self.outcome = self.outcome.rstrip("!")
        self.arrivals_max = None if arrivals == "-" else int(arrivals)
        self.executions = int(executions)
        words = questions[0].split(" ") if questions else ()
        self.row = Row(f"r{number}", self.dialect, answers.split(" "), words)
        self.arrived = 0  # In the first run.

    def intent(self, port):
        return intent_line(self.row.name, self.dialect, port)

    def judge(self, verdict):
        told = f"{verdict['outcome']} {verdict['reason']}"
        assert told == f"{self.outcome} {self.reason}", f"told: {told}: {verdict['message']}"
        assert verdict["over"] == self.over, f"over: {verdict['over']}"
        arrivals = len(self.row.arrivals)
        assert self.arrivals_max is None or arrivals <= self.arrivals_max, f"{arrivals} arrivals"
        assert self.arrivals_max is not None or arrivals > 2, f"gave up after {arrivals}"
        assert len(self.row.executed) == self.executions, f"{self.row.executed} executed"
        judge_truth(self.row, verdict)
        if "retry=1" in self.line or "retry-date" in self.line:
            gap = self.row.times[1] - self.row.times[0]
            assert gap > 0.9, f"told to wait a second, and waited {gap:.3f} s"


def intent_line(name, dialect, port, path="/v1/payments"):
    body = json.dumps({"order_no": name, "amount": "1.00"})
    url = f"http://127.0.0.1:{port}{path}"
    headers = ("Content-Type: application/json", f"X-Row: {name}")
    return "\t".join((name, "POST", url, body, dialect, "", *headers)) + "\n"


def same_of(arrivals):
    """
    The different requests among them. How long the server may wait is no part of a request, nor is
    the date of the first try, which first_sent_of() judges.
    """
    fields = rb"(Prefer: wait=\d+|Repeatability-First-Sent: [^\r]+)\r\n"
    return {re.sub(fields, b"", data) for data in arrivals}


def first_sent_of(arrivals):
    """The dates of the first try that they name, in their order."""
    return re.findall(rb"Repeatability-First-Sent: ([^\r]+)", b"".join(arrivals))


def second_of(date):
    return email.utils.parsedate_to_datetime(date.decode())


def judge_truth(row, verdict):
    """What must hold of every verdict, whatever the server did."""
    arrivals = row.arrivals
    assert len(row.keys) <= 1, f"two keys: {row.keys}"
    assert not row.keys or row.keys == {verdict["key"]}, f"{row.keys}, told {verdict['key']}"
    assert len(same_of(arrivals)) <= 1, f"the bytes changed: {same_of(arrivals)}"
    sends = verdict["sends"]
    assert len(arrivals) <= sends, f"{sends} sends counted, {len(arrivals)} arrived"
    assert verdict["outcome"] != "done" or row.executed, "told that it was done, and it was not"
    assert verdict["outcome"] != "refused" or not row.executed, "told refused, and it was done"
    assert verdict["recorded"], "the verdict is not in the journal"
    assert verdict["message"], "no sentence"
    assert verdict["renewable"] == (verdict["outcome"] == "refused"), "renewable"


def call(caller, journal, lines, *flags):
    """Runs the caller; returns its verdicts by name."""
    result = subprocess.run(
        [caller, "--journal", str(journal), *FLAGS, *flags],
        input="".join(lines),
        capture_output=True,
        text=True,
        timeout=harness.PATIENCE_S,
        check=False,
    )
    assert result.returncode == 0, f"exit {result.returncode}: {result.stderr}"
    verdicts = [json.loads(line) for line in result.stdout.splitlines()]
    assert len({verdict["name"] for verdict in verdicts}) == len(verdicts), "told twice"
    for verdict in verdicts:
        assert "error" not in verdict, verdict
        verdict["body"] = verdict["body"].encode("latin-1")
    return {verdict["name"]: verdict for verdict in verdicts}


class Tap:
    def __init__(self):
        self.number = 0
        self.failed = 0

    def check(self, sentence, test, *arguments):
        self.number += 1
        try:
            test(*arguments)
            print(f"ok {self.number} - {sentence}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            self.failed += 1
            print(f"not ok {self.number} - {sentence}")
            for line in repr(error).splitlines():
                print(f"# {line[:2000]}", flush=True)

    def end(self):
        print(f"1..{self.number}", flush=True)
        sys.exit(1 if self.failed else 0)


def judge_recovered(expectation, before, verdict):
    """The second run, of an intent that was not over, against a server that has recovered."""
    row = expectation.row
    assert verdict is not None, "it is not over, and was not resumed"
    assert verdict["outcome"] == "done", f"{verdict['outcome']}: {verdict['message']}"
    assert verdict["key"] == before["key"], "another key"
    assert row.keys == {verdict["key"]}, row.keys
    assert len(same_of(row.arrivals)) == 1, f"the bytes changed: {same_of(row.arrivals)}"
    if before["outcome"] == "unknown":  # After "nothing happened" the next try is a first one.
        dates = first_sent_of(row.arrivals)
        later = set(dates[expectation.arrived :])
        # A run's beginning may stand for its first try, never the other way round.
        fits = all(second_of(date) <= second_of(dates[expectation.arrived - 1]) for date in later)
        assert len(later) <= 1 and fits, f"another first try: {dates}"
    assert len(row.executed) == 1, row.executed


def table(tap, caller, directory, words):
    server = Server()
    lines = [line for line in all_lines() if all(w in " ".join(line.split()) for w in words)]
    expectations = [Expectation(number, line) for number, line in enumerate(lines)]
    for expectation in expectations:
        server.add(expectation.row)
    journal = directory / "table.db"
    intents = [expectation.intent(server.port) for expectation in expectations]
    begin = time.monotonic()
    verdicts = call(caller, journal, intents, "--deadline", str(DEADLINE_MS))
    took_s = time.monotonic() - begin
    for expectation in expectations:
        verdict = verdicts[expectation.row.name]
        tap.check(expectation.line, expectation.judge, verdict)
    for expectation in expectations:
        expectation.arrived = len(expectation.row.arrivals)
        expectation.row.healed = True
    again = call(caller, journal, [], "--resume", "--deadline", str(DEADLINE_MS))
    for expectation in expectations:
        name = expectation.row.name
        if not verdicts[name]["over"]:
            sentence = f"and then the server recovers: {expectation.line}"
            arguments = (expectation, verdicts[name], again.get(name))
            tap.check(sentence, judge_recovered, *arguments)

    def bounds():
        waves = -(-len(expectations) // 128)
        assert took_s < waves * DEADLINE_MS / 1000 + 5, f"{took_s:.1f} s"
        over = {name for name in again if verdicts[name]["over"]}
        assert not over, f"resumed, and was over: {over}"
        assert not server.problems, server.problems

    tap.check("a run ends by its deadline, and what is over is not run again", bounds)
    server.close()


# Connections that are treated badly before there is a request: what each of them meets, until when
# they are refused, what the row answers, verdict, sends, arrivals, executions.
DOORS = [
    ("reset serve", 0, "200*", "done answered", 2, 1, 1),
    ("close serve", 0, "200*", "done answered", 2, 1, 1),
    ("reset close reset serve", 0, "200*", "done answered", 4, 1, 1),
    ("deaf serve", 0, "200*", "done answered", 2, 1, 1),
    ("deaf deaf deaf deaf deaf deaf", 0, "200*", "unknown deadline", 6, 0, 0),
    ("serve", 0.7, "200*", "done answered", None, 1, 1),
    ("serve", 3600, "200*", "refused not-sent", None, 0, 0),
]


def judge_door(row, verdict, expected):
    told, sends, arrivals, executions = expected
    assert f"{verdict['outcome']} {verdict['reason']}" == told, verdict
    assert sends is None or verdict["sends"] <= sends, f"{verdict['sends']} sends"
    assert len(row.arrivals) <= arrivals, f"{len(row.arrivals)} arrivals"
    assert len(row.executed) == executions, row.executed
    judge_truth(row, verdict)


def doors(tap, caller, directory):
    server = Server()
    rows = []
    lines = []
    for number, (fates, delay_s, answers, *_) in enumerate(DOORS):
        rows.append(server.add(Row(f"d{number}", "ietf", answers.split(" "))))
        lines.append(intent_line(f"d{number}", "ietf", server.door(fates.split(" "), delay_s)))
    verdicts = call(caller, directory / "doors.db", lines, "--deadline", str(DEADLINE_MS))
    for row, (fates, delay_s, _, *expected) in zip(rows, DOORS):
        sentence = f"connections: {fates}, refused for {delay_s} s"
        tap.check(sentence, judge_door, row, verdicts[row.name], expected)
    server.close()


def expiring(tap, caller, directory):
    """A server that says in the middle of a run until when it knows the key."""
    server = Server()
    row = server.add(Row("expiring", "idem", ["500+expires=1", "500"]))
    intents = [intent_line(row.name, "idem", server.port)]
    journal = directory / "expiring.db"
    first = call(caller, journal, intents, "--deadline", "8000")[row.name]
    arrived = len(row.arrivals)
    row.healed = True
    again = call(caller, journal, [], "--resume", "--deadline", "500")[row.name]

    def judge():
        assert first["sends"] > 2, f"it gave up at once: {first}"
        late = row.times[-1] - row.times[0]
        assert late < 5, f"sent {late:.3f} s after the first answer, which gave the key two"
        for verdict in (first, again):
            assert (verdict["outcome"], verdict["reason"]) == ("unknown", "window"), verdict
            assert verdict["asks"] > 0, verdict
        assert again["sends"] == 0 and len(row.arrivals) == arrived, again

    tap.check("nothing is sent after Idempotency-Expires, in this run and the next", judge)
    server.close()


def outage(tap, caller, directory):
    """Many intents, a server that always fails, and the budget that all of them share."""
    count, percent, reserve = 300, 10, 10
    server = Server()
    rows = [server.add(Row(f"o{i}", "ietf", ["503"])) for i in range(count)]
    lines = [intent_line(row.name, "ietf", server.port) for row in rows]
    flags = ("--retry-percent", str(percent), "--retry-reserve", str(reserve))
    begin = time.monotonic()
    verdicts = call(caller, directory / "outage.db", lines, *flags, "--deadline", "3000")
    took_s = time.monotonic() - begin

    def judge():
        repeats = sum(len(row.arrivals) for row in rows) - count
        most = count * percent // 100 + reserve + int(took_s) + 1  # And one a second.
        assert repeats <= most, f"{repeats} repeats of {count} first sends, at most {most}"
        assert repeats >= count * percent // 100, f"only {repeats} repeats"
        reasons = {verdict["reason"] for verdict in verdicts.values()}
        assert reasons <= {"budget", "deadline"} and "budget" in reasons, reasons
        for row in rows:
            judge_truth(row, verdicts[row.name])

    tap.check("in an outage repeats are a tenth of all first sends", judge)
    server.close()


def reused(tap, caller, directory):
    """A connection that was used before dies under the next request."""
    server = Server()
    for fate, executions in (("dies", 1), ("dies-after", 1)):
        port = server.door([fate])
        rows = [server.add(Row(f"{fate}{i}", "ietf", ["200*"])) for i in range(2)]
        lines = [intent_line(row.name, "ietf", port) for row in rows]
        flags = ("--deadline", str(DEADLINE_MS), "--at-once", "1")
        verdicts = call(caller, directory / f"{fate}.db", lines, *flags)

        def judge(row, verdict):
            assert verdict["outcome"] == "done", verdict
            assert verdict["sends"] == 2, f"{verdict['sends']} sends: who repeated it?"
            assert len(row.executed) == executions
            judge_truth(row, verdict)

        sentence = f"a used connection that {fate} under a request: the repeat is the client's own"
        tap.check(sentence, judge, rows[1], verdicts[rows[1].name])
    server.close()


def main():
    caller = sys.argv[1]
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="idem-test-") as name:
        directory = pathlib.Path(name)
        table(tap, caller, directory, sys.argv[2:])
        if not sys.argv[2:]:
            doors(tap, caller, directory)
            reused(tap, caller, directory)
            expiring(tap, caller, directory)
            outage(tap, caller, directory)
    tap.end()


if __name__ == "__main__":
    main()
