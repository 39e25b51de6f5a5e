"""
The rows of the bench on PostgreSQL: a private server, instances of the service on one database of
it, and pgbench with the plain article pattern and with the SQL face on the same server in the same
minutes.

The server is that of test/lib/postgres.py: it flushes what it acknowledges, and lies in /tmp.
"""

import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/lib"))
import postgres as server_library  # pylint: disable=wrong-import-position

INSTANCES = (1, 3)
CONNECTIONS = 64
CLIENTS = (16, 64)  # Of pgbench: what is best on a machine depends on it. The better one counts.
TABLES = ("intents", "payments", "sends", "events")
FILL_ROWS = 100000  # A transaction.
KEYS_COLD = 20000
SETTINGS = {
    "shared_buffers": "512MB",
    "max_connections": "150",
    "max_wal_size": "4GB",
    "wal_keep_size": "0",
    "maintenance_work_mem": "256MB",
}
FACE = {
    "one by one": "sql_face_one.sql",
    "in batches": "sql_face_batch.sql",
}

# What a copy of a finished payment has of its own. Everything else is as the service wrote it.
OWN = {
    "intents": {
        "row": "$row",
        "id": "decode(lpad(to_hex($row), 12, '0') || substr(md5('i$seed' || $row), 1, 20), 'hex')",
        "scope": "decode(md5('s$seed' || $row), 'hex')",
        "key": "'fill-$seed-' || lpad(to_hex($row), 16, '0')",
        "effect_id": "'c' || substr(md5('e$seed' || $row), 1, 26)",
        "token": "decode(md5('t$seed' || $row), 'hex')",
        "last_command": "decode(md5('c$seed' || $row), 'hex')",
        "payment_row": "$row",
        "payment_id": "decode(lpad(to_hex($row), 12, '0') || substr(md5('p$seed' || $row), 1, 20),"
                      " 'hex')",
    },
    "payments": {
        "row": "$row",
        "id": "decode(lpad(to_hex($row), 12, '0') || substr(md5('p$seed' || $row), 1, 20), 'hex')",
        "order_no": "'f-' || substr(md5('o$seed' || $row), 1, 16)",
        "effect_id": "'c' || substr(md5('e$seed' || $row), 1, 26)",
    },
    "sends": {"intent_row": "$row", "token": "decode(md5('t$seed' || $row), 'hex')"},
    "events": {"intent_row": "$row", "row": "nextval('idem.events_row_seq')"},
}

FILL_ARTICLE = """
INSERT INTO article.keys SELECT 'fill-' || md5('k' || n), sha256('a request'), 2, NULL, 201,
    rpad('{', 560) FROM generate_series($first, $last) n;
INSERT INTO article.orders (key, order_no, amount, currency, description)
    SELECT 'fill-' || md5('k' || n), 'o-' || md5('o' || n), 10000, 'CNY', 'One pair of shoes'
    FROM generate_series($first, $last) n;
"""

SIZES = """
SELECT c.relname, t.relname IS NULL, pg_table_size(c.oid), coalesce(s.n_live_tup, 0),
       pg_relation_size(c.oid)
FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
     LEFT JOIN pg_class t ON t.oid = i.indrelid LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.relnamespace = 'idem'::regnamespace AND c.relkind IN ('r', 'i')
      AND coalesce(t.relname, c.relname) IN ('intents', 'payments', 'sends', 'events')
ORDER BY coalesce(t.relname, c.relname), t.relname IS NOT NULL, c.relname
"""

UPDATES = """
SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
WHERE schemaname = 'idem' AND relname IN ('intents', 'payments', 'sends') ORDER BY relname
"""


def say(*words):
    print(*words, flush=True)


class Rows:
    """Payments by the hundred thousand, made from the first one that the service finished."""

    def __init__(self, server, name):
        self.server = server
        self.name = name
        self.seed = f"{time.time_ns():x}"
        self.words = {table: self.statement(table) for table in TABLES}

    def statement(self, table):
        columns = [row[0] for row in self.server.rows(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT attisdropped AND attgenerated = '' ORDER BY attnum", f"idem.{table}",
            database=self.name)]
        values = [OWN[table].get(column, f"model.{column}") for column in columns]
        where = "row = (SELECT min(row) FROM idem.intents WHERE finished_us > 0)"
        if table == "payments":
            where = "row = (SELECT payment_row FROM idem.intents WHERE " + where + ")"
        elif table != "intents":
            where = "intent_" + where
        identity = "OVERRIDING SYSTEM VALUE" if table == "events" else ""
        return (f"INSERT INTO idem.{table} ({', '.join(columns)}) {identity}"
                f" SELECT {', '.join(values)} FROM generate_series($first, $last) n,"
                f" (SELECT * FROM idem.{table} WHERE {where}) model")

    def add(self, count):
        first = 1 + max(
            self.server.rows(f"SELECT coalesce(max(row), 0) FROM idem.{table}",
                             database=self.name)[0][0] for table in ("intents", "payments"))
        with contextlib.closing(self.server.connect(self.name)) as connection:
            connection.execute("SET synchronous_commit = off")  # Nobody was told anything.
            for begin in range(first, first + count, FILL_ROWS):
                end = min(begin + FILL_ROWS, first + count) - 1
                with connection.transaction():
                    for table in TABLES:
                        connection.execute(self.sql(self.words[table], begin, end))
            for table in ("intents", "payments"):
                connection.execute(
                    f"SELECT setval('idem.{table}_row_seq', max(row)) FROM idem.{table}")

    def sql(self, words, first, last):
        values = {"$row": "n", "$seed": self.seed, "$first": str(first), "$last": str(last)}
        for name, value in values.items():
            words = words.replace(name, value)
        return words


class Postgres:
    """The server, its database, and what it used of the processors."""

    def __init__(self, bench, settings=None):
        self.bench = bench
        self.server = server_library.Server({**SETTINGS, **(settings or {})})
        self.server.start()
        self.name = self.server.new_database("bench")
        self.url = self.server.url(self.name)
        self.server.psql((ROOT / "bench/article_tables.sql").read_text(), self.name)
        self.face = {label: ROOT / "bench" / file for label, file in FACE.items()
                     if (ROOT / "bench" / file).exists()}
        if self.face:
            self.server.psql((ROOT / "sql/idem.sql").read_text(), self.name)

    def close(self):
        self.server.close()

    def processes(self):
        pid = self.server.process.pid
        return [pid, *server_library.children_of(pid)]

    def cpu_us(self):
        total = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                text = pathlib.Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii")
                total += int(text.split()[0]) / 1000
        fields = pathlib.Path(f"/proc/{self.server.process.pid}/stat").read_text(encoding="ascii")
        ticks = sum(int(text) for text in fields.rsplit(")", 1)[1].split()[13:15])
        return total + ticks * 1e6 / os.sysconf("SC_CLK_TCK")

    def fill(self, count):
        began = time.monotonic()
        Rows(self.server, self.name).add(count)
        with contextlib.closing(self.server.connect(self.name)) as connection:
            connection.execute("SET synchronous_commit = off")
            for first in range(1, count + 1, FILL_ROWS):
                last = min(first + FILL_ROWS - 1, count)
                for words in FILL_ARTICLE.strip().split(";\n"):
                    connection.execute(words.replace("$first", str(first))
                                       .replace("$last", str(last)).rstrip(";"))
        say(f"\nfilled with {count:,} finished intents, and as many rows of the article's, in"
            f" {time.monotonic() - began:.0f} s")

    def settle(self):
        """What a server that has been up for a day has behind it."""
        with contextlib.closing(self.server.connect(self.name)) as connection:
            for table in [f"idem.{name}" for name in TABLES] + ["article.keys", "article.orders"]:
                connection.execute(f"VACUUM (ANALYZE) {table}")
            connection.execute("CHECKPOINT")

    def sizes_print(self):
        say(f"  {'table or index':28} {'MB':>9} {'bytes a payment':>16}")
        rows = self.server.rows(SIZES, database=self.name)
        payments = self.server.rows("SELECT count(*) FROM idem.intents", database=self.name)[0][0]
        for name, is_table, size, _, _ in rows:
            say(f"  {name if is_table else '  ' + name:28} {size / 1e6:9,.0f}"
                f" {size / max(1, payments):16,.0f}")
        total = sum(row[2] for row in rows)
        say(f"  {'together':28} {total / 1e6:9,.0f} {total / max(1, payments):16,.0f}")

    def updates_print(self):
        for name, updates, hot in self.server.rows(UPDATES, database=self.name):
            share = hot / updates if updates > 0 else 0
            say(f"  {name:12} {updates:>10,} updates, {share:6.1%} of them in the same page (HOT)")

    def pgbench(self, script, clients, transaction_rows=1):
        """Transactions a second, times what each of them does."""
        words = [f"{self.server.programs}/pgbench", "-n", "-M", "prepared", "-f", str(script),
                 "-c", str(clients), "-j", "2", "-T", str(max(1, int(self.bench.seconds))),
                 self.url]
        before = self.cpu_us()
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        used = self.cpu_us() - before
        rate = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
        failed = re.search(r"failed transactions: (\d+)", done.stdout)
        count = re.search(r"actually processed: (\d+)", done.stdout)
        if done.returncode != 0 or count is None or (failed and int(failed[1]) > 0):
            sys.exit(f"bench: pgbench {script}: {done.stderr or done.stdout}")
        rows = max(1, int(count[1]) * transaction_rows)
        return {"rate": float(rate[1]) * transaction_rows if rate else 0.0, "clients": clients,
                "postgres_us": used / rows}


def batch_rows(script):
    """How many records one transaction of a script makes: its line `-- records: N`."""
    found = re.search(r"^-- records: (\d+)", script.read_text(), re.MULTILINE)
    return int(found[1]) if found else 1


class Instances:
    """Several of the program on one database, behind nobody: each has its share of the callers."""

    def __init__(self, bench, service, database, count):
        self.bench = bench
        self.database = database
        self.services = [service(bench, database.url, name=f"instance-{index}")
                         for index in range(count)]

    def load(self, *words, connections=CONNECTIONS, seconds=None):
        count = len(self.services)
        before = [service.commands() for service in self.services]
        used = self.database.cpu_us()
        children = []
        for service in self.services:
            line = [self.bench.program("load"), "--port", service.port, "--bearer", "bench-secret",
                    "--entry", "bench", "--watch", service.process.pid, "--warm", 0.5, "--seconds",
                    seconds or self.bench.seconds, "--connections", connections // count, *words]
            children.append(subprocess.Popen([str(word) for word in line], text=True,
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        reports = []
        for child in children:
            output, errors = child.communicate()
            if child.returncode != 0:
                sys.exit(f"bench: load: {errors or output}")
            reports.append(json.loads(output))
        used = self.database.cpu_us() - used
        return self.together(reports, before, used)

    def together(self, reports, before, used):
        after = [service.commands() for service in self.services]
        batches = sum(now[0] - then[0] for now, then in zip(after, before))
        commands = sum(now[1] - then[1] for now, then in zip(after, before))
        replies = max(1, sum(report["replies"] for report in reports))
        bad = {status: count for report in reports for status, count in report["statuses"].items()
               if status not in ("200", "201")}
        if bad:
            say(f"    answers that were no success: {bad}")
        service_us = sum(thread["cpu_us"] * report["replies"]
                         for report in reports for thread in report["threads"]) / replies
        self.bench.others.append(max(0.0, min(report["others"] for report in reports)
                                     - used / 1e6 / self.bench.seconds))
        return {
            "rate": sum(report["rate"] for report in reports),
            "p50_us": statistics.median(report["p50_us"] for report in reports),
            "p99_us": max(report["p99_us"] for report in reports),
            "max_us": max(report["max_us"] for report in reports),
            "batch": commands / batches if batches > 0 else 0,
            "postgres_us": used / max(replies, commands / 2),
            "service_us": service_us,
        }

    def expired(self):
        """How many answers each of them says that it forgot."""
        counts = []
        for service in self.services:
            url = f"http://127.0.0.1:{service.port}/metrics"
            with urllib.request.urlopen(url, timeout=10) as answer:
                text = answer.read().decode()
            counts.append(int(re.search(r"^idem_retention_expired_total (\d+)", text,
                                        re.MULTILINE)[1]))
        return counts

    def stop(self):
        for service in self.services:
            service.stop()


def line(label, report, extra=""):
    times = ""
    if "p50_us" in report:
        times = (f"  p50 {report['p50_us'] / 1000:6.1f}  p99 {report['p99_us'] / 1000:6.1f}"
                 f"  max {report['max_us'] / 1000:6.1f} ms")
    service = f", service {report['service_us']:.0f}" if "service_us" in report else ""
    say(f"  {label:34} {report['rate']:>8,.0f}/s{times}  | us: postgres"
        f" {report['postgres_us']:.0f}{service}{extra}")


def pgbench_best(database, script):
    rows = batch_rows(script)
    reports = [database.pgbench(script, clients, rows) for clients in CLIENTS]
    return max(reports, key=lambda report: report["rate"])


def round_run(bench, service, database, label):
    """Everything that is compared, once: what disturbs the machine meets all of it alike."""
    bench.note(f"pg {label} article", pgbench_best(database, ROOT / "bench/article.sql"))
    for count in INSTANCES:
        instances = Instances(bench, service, database, count)
        bench.note(f"pg {label} fresh {count}", instances.load())
        instances.stop()
    for face, script in database.face.items():
        bench.note(f"pg {label} {face}", pgbench_best(database, script))


def round_print(bench, database, label):
    say(f"PostgreSQL ({label}): {bench.rounds} rounds; ratios are medians of the rounds; the same"
        f" server, {CONNECTIONS} callers")
    article = f"pg {label} article"
    for report in bench.results[article]:
        line("pgbench, the article's pattern", report, f"; {report['clients']} clients")
    for count in INSTANCES:
        name = f"pg {label} fresh {count}"
        for report in bench.results[name]:
            line(f"fresh, stub inside, {count} instances", report, f"; batch {report['batch']:.0f}")
        say(f"  {'fresh / article':34} {bench.ratio(name, article):8.2f}   (aim 1.00)")
    for face in database.face:
        name = f"pg {label} {face}"
        for report in bench.results[name]:
            line(f"SQL face {face}", report, f"; {report['clients']} clients")
        aim = "   (aim 1.50)" if "batch" in face else ""
        say(f"  {'SQL face / article':34} {bench.ratio(name, article):8.2f}{aim}")


def replay(bench, service, database, label):
    seconds = max(1.0, bench.seconds / 2)
    for count in INSTANCES:
        instances = Instances(bench, service, database, count)
        line(f"replay, {count} instances",
             instances.load("--mode", "replay", seconds=seconds))
        if count == 1:
            line(f"replay of {KEYS_COLD} keys, from the store",
                 instances.load("--mode", "replay", "--keys", KEYS_COLD, seconds=seconds))
        instances.stop()
    say(f"  updates ({label}):")
    database.updates_print()


def retention(bench, service, database):
    """Fresh payments beside answers whose time is over, and without."""
    count = int(1000 * bench.seconds)
    say(f"retention: {count:,} intents whose answer's time is over, {INSTANCES[-1]} instances")
    database.settle()
    instances = Instances(bench, service, database, INSTANCES[-1])
    line("fresh, nothing to reap", instances.load())
    instances.stop()
    database.server.rows(RIPEN, count, database=database.name)
    database.settle()
    before = database.server.rows(RIPE, database=database.name)[0][0]
    instances = Instances(bench, service, database, INSTANCES[-1])
    began = time.monotonic()
    report = instances.load()
    took = time.monotonic() - began
    after = database.server.rows(RIPE, database=database.name)[0][0]
    done = instances.expired()
    line("fresh, while reaping", report, f"; {(before - after) / took:,.0f} reaped/s")
    deadlocks = database.server.rows(DEADLOCKS, database=database.name)[0][0]
    say(f"  answers forgotten by each instance: {', '.join(map(str, done))},"
        f" together {sum(done):,}; {deadlocks} deadlocks")
    instances.stop()
    left = database.server.rows(RIPE, database=database.name)[0][0]
    say(f"  {before - left:,} of {before:,} records have lost theirs")


# The oldest were finished a day longer ago than answers are kept.
RIPEN = """
UPDATE idem.intents SET created_us = created_us - back, updated_us = updated_us - back,
       finished_us = finished_us - back, expires_us = expires_us - back, reap_us = reap_us - back
FROM (SELECT row AS old, reap_us - created_us + 86400000000 AS back FROM idem.intents
      WHERE reap_us > (extract(epoch FROM now()) * 1000000)::bigint ORDER BY row LIMIT %s) o
WHERE row = old
"""
RIPE = """
SELECT count(*) FROM idem.intents
WHERE reap_us > 0 AND reap_us < (extract(epoch FROM now()) * 1000000)::bigint
"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


def sizes(bench, service):
    """
    How large tables and indexes become: filled in the order of time with the real indexes there,
    as the service does. The server is one to throw away, so it flushes nothing and logs nothing.
    """
    database = Postgres(bench)
    try:
        instances = Instances(bench, service, database, 1)
        instances.load(seconds=0.5)
        instances.stop()
        database.server.stop()
        database.server.start(fsync="off", full_page_writes="off", synchronous_commit="off",
                              autovacuum="off", shared_buffers="2GB", max_wal_size="16GB")
        for table in TABLES:
            database.server.rows(f"ALTER TABLE idem.{table} SET UNLOGGED", database=database.name)
        rows = Rows(database.server, database.name)
        done = 0
        for goal in sorted({min(bench.rows, 1000000), min(bench.rows, 5000000), bench.rows}):
            began = time.monotonic()
            rows.add(goal - done)
            done = goal
            say(f"\n{goal:,} finished intents, after {time.monotonic() - began:.0f} s more")
            database.sizes_print()
    finally:
        database.close()


def run(bench, service):
    """All of it. `service` makes an instance of the program: service(bench, store, name=...)."""
    database = Postgres(bench)
    version = database.server.rows("SHOW server_version")[0][0]
    say(f"\nPostgreSQL {version}, fsync on, {SETTINGS['shared_buffers']} of buffers")
    try:
        for label in ("empty", f"{bench.rows:,} intents"):
            if label == "empty":  # Makes schema and secrets, and the payment that is copied.
                instances = Instances(bench, service, database, 1)
                instances.load(seconds=0.5)
                instances.stop()
            else:
                database.fill(bench.rows)
                database.sizes_print()
            database.settle()
            for _ in range(bench.rounds):
                round_run(bench, service, database, label)
            round_print(bench, database, label)
            replay(bench, service, database, label)
        retention(bench, service, database)
    finally:
        database.close()
