"""What a knowledge base survives: kills, I/O errors, everything at once, a month of use, and many HTTP clients.

    python benchmarks/endurance.py [--seconds 600] [--points 600] [--parts faults,together,month,clients]
                                   [--data FOLDER] [--clients 32]

Prints one table of tries and losses; the exit code is 1 when there is any loss. Each part has a share of the time.
`clients` reads the development data; the others make their own notes. Needs `cc` and `git`.
"""

from __future__ import annotations

import http.client
import json
import resource
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import measuring
from endurance_faults import FAULTS, SCENARIOS, Outcome, strike
from endurance_use import Result, month, together

from serving import QUESTIONS, Server, search_path, serving

SHARES = {"faults": 0.45, "together": 0.1, "month": 0.35, "clients": 0.1}
"""Of the time."""


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--seconds", type=float, default=600, help="for all parts of a full run together; 600")
    options.add_argument("--points", type=int, default=600, help="kills and errors, at most; 600")
    options.add_argument("--parts", default=",".join(SHARES), help="separated by commas; all of them unless given")
    options.add_argument("--scenarios", default=",".join(SCENARIOS), help="the commands to kill and to fail")
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--no-ingest", action="store_true", help="clients: only reads")
    chosen = options.parse_args()
    results: dict[str, Result] = {}
    started = until = time.monotonic()
    for part in chosen.parts.split(","):
        print(f"{part} …", file=sys.stderr)
        share = SHARES[part] * chosen.seconds
        until += share
        seconds = max(1.0, until - time.monotonic())  # what a part leaves over, or takes longer, is the next one's
        with measuring.work_folder() as folder:
            work = folder.resolve()
            match part:
                case "faults":
                    outcomes = strike(work, chosen.scenarios.split(","), chosen.points, until)
                    results |= {fault: judged(outcomes, fault) for fault in FAULTS}
                case "together":
                    results[part] = together(work, 0.8 * min(seconds, share))
                case "month":
                    results[part] = month(work, 0.95 * seconds)
                case _:
                    corpus = measuring.unpack(chosen.data, "k8s-en", work)
                    results[part] = clients(
                        corpus, work, chosen.clients, min(until, time.monotonic() + share), ingest=not chosen.no_ingest
                    )
    for name, result in results.items():
        for what in ("lost", "doubled", "failed"):
            for line in getattr(result, what)[:10]:
                print(f"{name}: {what}: {line}")
    rows = [(name, f"{r.tries:,}", len(r.lost), len(r.doubled), len(r.failed), r.detail) for name, r in results.items()]
    measuring.table(["", "tries", "lost", "doubled", "failed", ""], rows)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    print(f"{time.monotonic() - started:.0f} s, {cpu:.0f} CPU s")
    raise SystemExit(1 if any(r.lost or r.doubled or r.failed for r in results.values()) else 0)


def judged(outcomes: Sequence[Outcome], fault: str) -> Result:
    of_this = [outcome for outcome in outcomes if outcome.point.fault == fault]
    calls = Counter(outcome.point.what.partition(" ")[0] for outcome in of_this)
    result = Result(tries=len(of_this), detail=", ".join(f"{kind} {count}" for kind, count in sorted(calls.items())))
    for outcome in of_this:
        for what in ("lost", "doubled", "failed"):
            if told := getattr(outcome, what):
                getattr(result, what).append(f"{outcome.point}: {told}")
    return result


def clients(corpus: Path, work: Path, count: int, until: float, *, ingest: bool) -> Result:
    """Searches, lists, documents, citations and pages in turn, from threads that keep their connections."""
    db = work / "kb.sqlite"
    measuring.run([measuring.kb(), "--db", str(db), "ingest", str(corpus), "--no-embed", "--quiet"])
    more = [shutil.copytree(corpus, work / f"more-{number}") for number in range(6)] if ingest else []
    with serving(db, "--allow-write", "--quiet") as server:
        return report(server, count, max(5.0, until - time.monotonic()), more)


def report(server: Server, clients: int, seconds: float, more: list[Path]) -> Result:
    times: list[float] = []
    failures: list[str] = []
    documents = [
        item["doc_id"] for item in json.loads(_get(server.connection(), "/api/v1/documents?limit=200"))["items"]
    ]
    end = time.perf_counter() + seconds
    threads = [
        threading.Thread(target=_client, args=(server, number, end, documents, times, failures))
        for number in range(clients)
    ]
    threads.append(threading.Thread(target=_ingest, args=(server, end, more, failures)))
    for thread in threads:
        thread.start()
    memory = []
    while any(thread.is_alive() for thread in threads):
        memory.append(server.memory_mb())
        time.sleep(1)
    quarter = max(1, len(memory) // 4)
    by_quarter = [max(memory[start : start + quarter]) for start in range(0, 4 * quarter, quarter) if memory[start:]]
    rows = [
        ("requests", len(times)),
        ("failures", len(failures)),
        ("a second", f"{len(times) / seconds:.0f}"),
        *(
            (f"p{round(share * 100)}, ms", f"{1000 * measuring.percentile(times, share):.0f}")
            for share in (0.5, 0.95, 0.99)
        ),
        ("memory at its most, by quarters of the time, MB", ", ".join(f"{most:.0f}" for most in by_quarter)),
    ]
    measuring.table(["", f"{clients} clients, {seconds:.0f} s"], rows)
    return Result(tries=len(times), failed=failures, detail=f"{clients} clients for {seconds:.0f} s")


def _client(
    server: Server, number: int, end: float, documents: list[str], times: list[float], failures: list[str]
) -> None:
    connection = server.connection()
    turn = number
    while time.perf_counter() < end:
        question = QUESTIONS[turn % len(QUESTIONS)]
        document = documents[turn % len(documents)]
        paths = [
            *(
                search_path(question),
                search_path(question + " node"),
                f"/api/v1/documents/{document}",
                f"/api/v1/fetch?uri={document}&max_tokens=500",
            ),
            *("/api/v1/documents?limit=20", "/api/v1/health", "/api/v1/tags", f"/?q={quote(question)}"),
        ]
        path = paths[turn % len(paths)]
        started = time.perf_counter()
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                failures.append(f"{path}: {response.status} {body[:300]!r}")
        except (OSError, http.client.HTTPException) as error:
            failures.append(f"{path}: {error!r}")
            connection = server.connection()
        times.append(time.perf_counter() - started)
        turn += 1


def _ingest(server: Server, end: float, more: list[Path], failures: list[str]) -> None:
    """One after the other, so that one is running all the time."""
    connection = server.connection()
    for folder in more:
        connection.request("POST", "/api/v1/ingest", json.dumps({"paths": [str(folder)], "embed": False}))
        job = json.loads(connection.getresponse().read())
        while job["state"] in ("queued", "running"):
            if time.perf_counter() > end:
                return
            time.sleep(0.5)
            job = json.loads(_get(connection, f"/api/v1/ingest/{job['job_id']}"))
        if job["state"] != "done":
            failures.append(f"ingest of {folder.name}: {job}")


def _get(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    return connection.getresponse().read()


if __name__ == "__main__":
    main()
