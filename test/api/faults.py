"""
Every way a provider fails, and how each ends.

Goal: the recovery table of docs/recovery.md as it looks from outside: for each fault token,
provider and operation, the final answer and how often money moved, with the ledger as judge.

Method: one world; each row pays an order of its own (or captures, cancels, refunds one) and
repeats the same request under the same key until it ends. All rows run at once. Usage: faults.py
IDEM [word in a row ...]
"""

import concurrent.futures
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import harness  # noqa: E402
from harness import World  # noqa: E402

# provider, token, how it ends, executions. Operations other than a payment are named by the token's
# addition: the executions are those of that operation.
TABLE = """
sandbox          tok_ok                         201     1
sandbox          tok_decline                    402     0
sandbox          tok_lose_answer                201     1
sandbox          tok_lose_request               201     1
sandbox          tok_late_1                     201     1
sandbox          tok_late_3                     201     1
sandbox          tok_slow_1                     201     1
sandbox          tok_slow_3                     201     1
sandbox          tok_500_before                 201     1
sandbox          tok_500_after                  201     1
sandbox          tok_cut_body                   201     1
sandbox          tok_garbage                    201     1
sandbox          tok_wrong_amount               parked  1
sandbox          tok_wrong_currency             parked  1
sandbox          tok_wrong_id                   parked  1
sandbox          tok_unknown_status             201     1
sandbox          tok_429                        201     1
sandbox          tok_503                        201     1
sandbox          tok_429_always                 503     0
sandbox          tok_processing_1_ok            201     1
sandbox          tok_processing_1_fail          402     0
sandbox          tok_not_found_1                201     1
sandbox          tok_dead_reuse                 201     1
sandbox          tok_dead_reuse_after           201     1
sandbox-lagging  tok_lose_answer                201     1
sandbox-lagging  tok_lose_request               201     1
sandbox-lagging  tok_500_after                  201     1
sandbox-lagging  tok_processing_1_fail          402     0
sandbox-closing  tok_ok                         201     1
sandbox-closing  tok_lose_answer                201     1
sandbox-closing  tok_lose_request               402     0
sandbox-closing  tok_500_before                 402     0
sandbox-closing  tok_500_after                  201     1
sandbox-closing  tok_processing_1_ok            201     1
sandbox-plain    tok_ok                         201     1
sandbox-plain    tok_lose_answer                201     1
sandbox-plain    tok_lose_request               parked  0
sandbox-plain    tok_500_before                 parked  0
sandbox-plain    tok_500_after                  201     1
sandbox-plain    tok_slow_3                     201     1
sandbox-plain    tok_not_found_1                201     1
sandbox-plain    tok_503                        201     1
sandbox-plain    tok_dead_reuse_after           201     1
sandbox-blind    tok_ok                         201     1
sandbox-blind    tok_lose_answer                201     1
sandbox-blind    tok_lose_request               201     1
sandbox-blind    tok_500_after                  201     1
sandbox          tok_ok+refund_lose_answer      201     1
sandbox          tok_ok+refund_lose_request     201     1
sandbox          tok_ok+refund_decline          402     0
sandbox          tok_ok+refund_500_after        201     1
sandbox          tok_ok+refund_processing_1_ok  201     1
sandbox          tok_ok+refund_wrong_amount     parked  1
sandbox          tok_ok+capture_lose_answer     200     1
sandbox          tok_ok+capture_lose_request    200     1
sandbox          tok_ok+capture_decline         402     0
sandbox          tok_ok+capture_503             200     1
sandbox          tok_ok+cancel_lose_answer      200     1
sandbox          tok_ok+cancel_lose_request     200     1
sandbox          tok_ok+cancel_decline          402     0
sandbox-plain    tok_ok+refund_lose_answer      201     1
sandbox-plain    tok_ok+refund_lose_request     parked  0
sandbox-plain    tok_ok+capture_lose_request    parked  0
sandbox-closing  tok_ok+refund_lose_request     402     0
"""

PATHS = {"refund": "/refunds", "capture": "/capture", "cancel": "/cancel"}


def until_end(send):
    """Repeats the request until its answer is final, parked, or refused as not executed."""
    end = time.monotonic() + harness.PATIENCE_S
    while True:
        reply = send()
        if reply.status == 202 and reply.json()["state"] == "parked":
            return "parked", reply
        if reply.status == 503 and reply.json()["type"] == "urn:idem:problem:not-executed":
            return "503", reply
        if reply.status not in (202, 503):
            return str(reply.status), reply
        assert time.monotonic() < end, f"never ended:\n{reply}"
        time.sleep(0.05)


def operation_of(token):
    for operation in PATHS:
        if f"+{operation}_" in token:
            return operation
    return None


def play(world, number, row):
    entry, token, expected, executions = row
    order_no = f"order-{number}"
    operation = operation_of(token)
    more = {"provider": entry}
    if operation in ("capture", "cancel"):
        more["capture"] = "manual"

    def pay():
        return world.pay(f"pay-{number}", order_no, method=token, more=more)

    ended, reply = until_end(pay)
    if operation is not None:
        assert ended == "201", reply
        path = reply.header("Location") + PATHS[operation]
        ended, reply = until_end(lambda: world.post(path, f"act-{number}", {}))
    effects = world.ledger(order_no=order_no)["effects"]
    kind = operation or ("authorize" if "capture" in more else "charge")
    moved = sum(effect["executions"] for effect in effects if effect["kind"] == kind)
    assert ended == expected, f"ends as {ended}, not {expected}:\n{reply}\n{effects}"
    assert moved == int(executions), f"money moved {moved} times: {effects}"
    assert all(effect["executions"] <= 1 for effect in effects), effects


def main():
    idem, words = sys.argv[1], sys.argv[2:]
    rows = [line.split() for line in TABLE.strip().splitlines()]
    rows = [row for row in rows if all(word in " ".join(row) for word in words)]
    world = World(idem, {"wait_ms": 3000})
    # A pooled connection, so that what dies on a reused one has one to die on.
    for number in range(20):
        assert world.pay(f"warm-{number}", f"warm-{number}").status == 201
    failed = 0
    print(f"1..{len(rows)}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        futures = [pool.submit(play, world, number, row) for number, row in enumerate(rows)]
        for number, (future, row) in enumerate(zip(futures, rows), 1):
            error = future.exception()
            name = " ".join(row)
            print(f"{'ok' if error is None else 'not ok'} {number} - {name}", flush=True)
            if error is not None:
                failed += 1
                for line in str(error).splitlines():
                    print(f"# {line}", flush=True)
                print(f"# repeat: {sys.argv[0]} {idem} {' '.join(row[:2])}", flush=True)
    if failed:
        sys.stdout.write("".join(f"# {line}\n" for line in world.log_text()[-3000:].splitlines()))
    world.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
