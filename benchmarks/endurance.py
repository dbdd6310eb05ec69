"""Many clients at once for a while, with an ingest running beside them: no error, no growth of memory, and how long the slowest wait.

    python benchmarks/endurance.py [--data FOLDER] [--clients 32] [--seconds 60]

Searches by words, lists, documents, citations and libraries in turn, from threads that keep their connections.
"""

from __future__ import annotations

import http.client
import json
import shutil
import threading
import time
from pathlib import Path
from urllib.parse import quote

import measuring

from serving import QUESTIONS, Server, search_path, serving


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--no-ingest", action="store_true", help="only reads")
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        corpus = measuring.unpack(chosen.data, "k8s-en", work)
        db = work / "kb.sqlite"
        measuring.run([measuring.kb(), "--db", str(db), "ingest", str(corpus), "--no-embed", "--quiet"])
        more = [] if chosen.no_ingest else [shutil.copytree(corpus, work / f"more-{number}") for number in range(20)]
        with serving(db, "--allow-write") as server:
            failures = report(server, chosen.clients, chosen.seconds, more)
    raise SystemExit(1 if failures else 0)


def report(server: Server, clients: int, seconds: float, more: list[Path]) -> int:
    """How many requests failed."""
    times: list[float] = []
    failures: list[str] = []
    documents = [item["doc_id"] for item in json.loads(_get(server.connection(), "/api/v1/documents?limit=200"))["items"]]
    end = time.perf_counter() + seconds
    threads = [threading.Thread(target=_client, args=(server, number, end, documents, times, failures)) for number in range(clients)]
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
        *((f"p{round(share * 100)}, ms", f"{1000 * measuring.percentile(times, share):.0f}") for share in (0.5, 0.95, 0.99)),
        ("memory at its most, by quarters of the time, MB", ", ".join(f"{most:.0f}" for most in by_quarter)),
    ]
    measuring.table(["", f"{clients} clients, {seconds:.0f} s"], rows)
    for failure in failures[:10]:
        print(failure)
    return len(failures)


def _client(server: Server, number: int, end: float, documents: list[str], times: list[float], failures: list[str]) -> None:
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
