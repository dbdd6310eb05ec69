"""What HTTP costs: a warm search over HTTP against the same call in process, how many searches a second one server
answers, and what a search takes beside six clients that send hostile ones.

    python benchmarks/serving.py [--data FOLDER] [--queries 200] [--seconds 15] [--clients 8]

2,453 Markdown files, 27,700 passages, by words. The two are asked in turns; the clients of the second part run in
processes of their own, on the same cores as the server.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import measuring

OVER_BAR_MS = 3.0
RATE_BAR = 200
HOSTILE_BAR = 3.0
HOSTILE_CLIENTS = 6
FREQUENT = "the to of a in is and that for you this can with are it as or be on if by an from pod node cluster"
HOSTILE = (
    *("a_" * 10_000, "pod_" * 5_000, "node pod " * 2_000),
    *(f"{FREQUENT} " * 4, f"{FREQUENT} &match=any&k=1000", "'a* OR t* OR s* OR c*'", "kubernets contaner volum servce"),
)
"""Long and short ones; behind an & stand further options."""
QUESTIONS = (
    *(
        "how do I roll back a deployment",
        "drain a node",
        "persistent volume claim",
        "network policy ingress",
        "kubectl apply",
    ),
    *(
        "pod stuck in pending",
        "horizontal autoscaler",
        "service account token",
        "rolling update strategy",
        "init container",
    ),
    *(
        "taints and tolerations",
        "configmap as environment",
        "liveness probe",
        "ingress controller",
        "cron job schedule",
    ),
)


class Server(NamedTuple):
    host: str
    port: int
    process: subprocess.Popen[str] | ForkProcess

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def serving(db: Path, *options: str) -> Iterator[Server]:
    command = [measuring.kb(), "--db", str(db), "serve", "--port", "0", *options]
    own = {**measuring.environment(), "KEBAB_EMBEDDING_MODEL": "none", "KEBAB_SERVE_REQUESTS_PER_SECOND": "1000000"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        try:
            yield Server(address.hostname or "", address.port or 0, process)
        finally:
            process.terminate()


def get(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise SystemExit(f"{path}: {response.status} {body[:500]!r}")
    return body


def search_path(question: str) -> str:
    text, _, options = question.partition("&")
    return f"/api/v1/search?query={quote(text)}&mode=lexical&{options or 'k=10'}"


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--queries", type=int, default=200)
    options.add_argument("--seconds", type=float, default=15)
    options.add_argument("--clients", type=int, default=8)
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        corpus = measuring.unpack(chosen.data, "k8s-en", work)
        db = work / "kb.sqlite"
        measuring.run([measuring.kb(), "--db", str(db), "ingest", str(corpus), "--no-embed", "--quiet"])
        with serving(db) as server:
            over = overhead(server, db, chosen.queries)
            rate, cpu_ms = throughput(server, chosen.clients, chosen.seconds)
            memory = server.memory_mb()
            beside = beside_hostile(server, chosen.queries)
            memory = server.memory_mb() - memory
        print()
        rows = [
            (
                "a warm search over HTTP above the call in process, p50",
                f"{over:.2f} ms",
                f"{OVER_BAR_MS} ms",
                measuring.verdict(over, OVER_BAR_MS),
            ),
            (
                f"searches a second, {chosen.clients} clients",
                f"{rate:.0f}",
                f"{RATE_BAR}",
                measuring.verdict(RATE_BAR, rate),
            ),
            ("CPU of the server a search", f"{cpu_ms:.2f} ms", "", ""),
            (
                f"a search beside {HOSTILE_CLIENTS} hostile clients against alone, p50",
                f"{beside:.2f}×",
                f"{HOSTILE_BAR:g}×",
                measuring.verdict(beside, HOSTILE_BAR),
            ),
            ("memory of the server that this added", f"{memory:.0f} MB", "", ""),
        ]
        measuring.table(["", "measured", "bar", ""], rows)


def overhead(server: Server, db: Path, queries: int) -> float:
    """In milliseconds, at the median."""
    import kebab

    connection = server.connection()
    with kebab.open(db, embedding_model="none") as kb:

        def timed(call: object, *arguments: object, **named: object) -> float:
            started = time.perf_counter()
            call(*arguments, **named)  # type: ignore[operator]  # what is timed
            return (time.perf_counter() - started) * 1000

        asked = iter(QUESTIONS * (queries // len(QUESTIONS) + 2))
        for question in QUESTIONS:  # warm
            kb.search(question, mode="lexical", k=10)
            get(connection, search_path(question))
        questions = [next(asked) for _ in range(queries)]
        inside, outside = [], []
        for question in questions:
            inside.append(timed(partial(kb.search, question, mode="lexical", k=10)))
            outside.append(timed(get, connection, search_path(question)))
    rows = [
        (name, *(f"{measuring.percentile(times, share):.2f}" for share in (0.5, 0.95, 0.99)))
        for name, times in (("in process", inside), ("over HTTP", outside))
    ]
    measuring.table(["ms", "p50", "p95", "p99"], rows)
    return measuring.percentile(outside, 0.5) - measuring.percentile(inside, 0.5)


def beside_hostile(server: Server, queries: int) -> float:
    """The median time of a search while others send hostile ones, as a multiple of its time without them."""
    stop = get_context("fork").Event()
    attackers = [
        get_context("fork").Process(target=attack, args=(server.host, server.port, stop, n))
        for n in range(HOSTILE_CLIENTS)
    ]
    alone = search_times(server, queries)
    for attacker in attackers:
        attacker.start()
    time.sleep(1)
    beside = search_times(server, queries)
    stop.set()
    for attacker in attackers:
        attacker.join()
    rows = [
        (name, *(f"{measuring.percentile(times, share):.1f}" for share in (0.5, 0.95)))
        for name, times in (("alone", alone), (f"beside {HOSTILE_CLIENTS} hostile clients", beside))
    ]
    print()
    measuring.table(["a search over HTTP, ms", "p50", "p95"], rows)
    return measuring.percentile(beside, 0.5) / measuring.percentile(alone, 0.5)


def attack(host: str, port: int, stop: Event, first: int) -> None:
    connection = http.client.HTTPConnection(host, port, timeout=60)
    turn = first
    while not stop.is_set():
        get(connection, search_path(HOSTILE[turn % len(HOSTILE)]))
        turn += 1


def search_times(server: Server, queries: int) -> list[float]:
    connection = server.connection()
    times = []
    for number in range(queries):
        started = time.perf_counter()
        get(connection, search_path(QUESTIONS[number % len(QUESTIONS)]))
        times.append((time.perf_counter() - started) * 1000)
    return times


def throughput(server: Server, clients: int, seconds: float) -> tuple[float, float]:
    """Searches a second, and milliseconds of the server's CPU for each."""
    context = get_context("fork")
    with context.Pool(clients) as pool:
        before, started = server.cpu(), time.perf_counter()
        counts = pool.starmap(ask_for, [(server.host, server.port, seconds, number) for number in range(clients)])
        passed, used = time.perf_counter() - started, server.cpu() - before
    return sum(counts) / passed, used * 1000 / sum(counts)


def ask_for(host: str, port: int, seconds: float, first: int) -> int:
    """How many searches were answered in this time."""
    connection = http.client.HTTPConnection(host, port, timeout=60)
    end = time.perf_counter() + seconds
    done = 0
    while time.perf_counter() < end:
        body = get(connection, search_path(QUESTIONS[(first + done) % len(QUESTIONS)]))
        if not done:
            assert json.loads(body)["returned"] == 10
        done += 1
    return done


if __name__ == "__main__":
    main()
