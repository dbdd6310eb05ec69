"""Searching many vectors: CPU time and memory on synthetic ones, and what the bit codes miss on real ones.

    python benchmarks/vector_latency.py [--counts 100000,1000000] [--keep FOLDER] [--db FILE --questions SET_FOLDER]

Synthetic vectors lie in 256 clusters around a common centre, 384 dimensions, as those of a text model do. The opponent
is the exact product of all of them in memory with numpy. With --db, a Kebab database with more than 8,192 vectors of
one model (such as benchmarks/hybrid.py --keep leaves behind), the recall of the ten best against comparing all exactly
is measured on real questions.
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import measuring
import numpy as np

from kebab.core.search import SearchFilters
from kebab.store.sqlite import vectors as vectors_module
from kebab.store.sqlite.database import Database
from kebab.store.sqlite.rows import stored_spaces
from kebab.store.sqlite.vector_writer import SqliteVectorWriter
from kebab.store.sqlite.vectors import SqliteVectorStore

BARS_MS = {100_000: 3.0, 1_000_000: 20.0}
MEMORY_BAR_MB = 600
RECALL_BAR = 0.98
_BATCH = 10_000
_PER_DOCUMENT = 100
_FOREIGN_EVERY = 1000
"""One chunk in so many has another primary space: a few Korean notes among English ones, seen from the other side."""
_DEPTH = 60
"""What a hybrid search of ten hits asks for."""
_QUERIES = 40


class Synthetic:
    name, version, dimension, fingerprint = "synthetic", "1", 384, "synthetic@1:384"

    def embed(self, texts: Any, kind: Any) -> Any:
        raise NotImplementedError


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--counts", default="100000,1000000")
    options.add_argument("--keep", type=Path, help="keep the synthetic databases here and use them again")
    options.add_argument("--db", type=Path)
    options.add_argument("--questions", type=Path, help="a judged set, whose questions are asked of --db")
    options.add_argument("--measure", type=Path, help=argparse_suppress())
    chosen = options.parse_args()
    if chosen.measure:
        print(json.dumps(latency(chosen.measure)))
        return
    if chosen.db:
        recall(chosen.db, chosen.questions)
        return
    rows = []
    with measuring.work_folder() as work:
        for count in map(int, chosen.counts.split(",")):
            database = (chosen.keep or work) / f"vectors-{count}.sqlite"
            if not database.exists():
                fill(database, count)
            # A process of its own, so that its memory is that of searching alone.
            command = [sys.executable, __file__, "--measure", str(database), "--data", str(chosen.data)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)
            exact = exact_cpu_ms(count)
            bar = BARS_MS.get(count, float("inf"))
            rows.append(
                [
                    f"{count:,}",
                    f"{found['cpu_ms']:.1f}",
                    f"{bar:g}",
                    measuring.verdict(found["cpu_ms"], bar),
                    f"{exact:.0f}",
                    f"{found['cpu_ms'] / exact:.2f}×",
                    f"{found['first_ms']:.0f}",
                    f"{found['one_percent_ms']:.1f}",
                    f"{found['third_ms']:.1f}",
                    f"{found['few_ms']:.1f}",
                    f"{found['homes_ms']:.1f}",
                    f"{found['rss_mb']:.0f}",
                    measuring.verdict(found["rss_mb"], MEMORY_BAR_MB),
                ]
            )
    headers = [
        "vectors",
        "CPU ms",
        "bar",
        "",
        "exact",
        "ratio",
        "first, wall",
        "filter 1 %",
        "filter 33 %",
        "1 ‰ of another script",
        "all others",
        "memory MB",
        f"bar {MEMORY_BAR_MB}",
    ]
    measuring.table(headers, rows)


def argparse_suppress() -> str:
    import argparse

    return argparse.SUPPRESS


def vectors(count: int, seed: int) -> Any:
    fixed, random = np.random.default_rng(1), np.random.default_rng(seed)
    clusters, common = fixed.standard_normal((256, 384)), 1.5 * fixed.standard_normal(384)
    made = 0.7 * clusters[random.integers(0, 256, count)] + random.standard_normal((count, 384)) + common
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float16)


def fill(database: Path, count: int) -> None:
    connection = Database(database).writer()
    writer = SqliteVectorWriter(connection)
    space = writer._space(Synthetic())
    with connection:
        trigger = connection.value("SELECT sql FROM sqlite_master WHERE name = 'chunks_ai'")
        connection.execute("DROP TRIGGER chunks_ai")  # there is no text to index
        connection.execute(
            "INSERT INTO sources (id, name, kind, root, trust_level, created_at) VALUES (1, 's', 'folder', '/s', 'primary', '')"
        )
        for document in range(1, count // _PER_DOCUMENT + 1):
            values = (document, f"{document:016x}", f"{document}.md", _PER_DOCUMENT)
            connection.execute(
                """INSERT INTO documents VALUES (?, ?, 1, ?, 't', 'note', 'txt', 'en', 'primary', '2026', 1, 1, 'h', 'utf-8', 1, ?, '{}',
                   'f', 'c', '', x'')""",
                values,
            )
            for tag, every in (("rare", 100), ("third", 3)):
                if document % every == 0:
                    connection.execute("INSERT INTO document_tags VALUES (?, ?)", (document, tag))
        for start in range(0, count, _BATCH):
            made = vectors(_BATCH, 1000 + start)
            numbers = range(start + 1, start + _BATCH + 1)
            connection.executemany(
                """INSERT INTO chunks (id, chunk_id, doc_id, document_id, ordinal, kind, start_offset, end_offset, source_spans,
                   heading_path, text, title, cjk) VALUES (?, ?, 'd', ?, ?, 'text', 0, 1, '[]', '', 't', 't', '')""",
                [
                    (number, f"{number:020x}", (number - 1) // _PER_DOCUMENT + 1, number % _PER_DOCUMENT)
                    for number in numbers
                ],
            )
            connection.executemany(
                "INSERT INTO vectors VALUES (?, ?, ?, ?)",
                [
                    (number, space, number.to_bytes(16, "big"), vector.tobytes())
                    for number, vector in zip(numbers, made, strict=True)
                ],
            )
            connection.executemany(
                "INSERT INTO chunks_vec VALUES (?, ?, ?, ?)",
                [(number, space, number, int(number % _FOREIGN_EVERY != 0)) for number in numbers],
            )
        writer._make_codes(space)
        connection.execute(trigger)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def latency(database: Path) -> dict[str, float]:
    store = SqliteVectorStore(Database(database).reader())
    queries = vectors(_QUERIES, 7).astype(np.float32)

    def cpu_ms(filters: SearchFilters, **scope: bool) -> float:
        taken = []
        for query in queries:
            started = time.process_time()
            store.search(Synthetic.fingerprint, query, filters=filters, limit=_DEPTH, **scope)
            taken.append(1000 * (time.process_time() - started))
        return measuring.percentile(taken, 0.5)

    started = time.perf_counter()
    store.search(Synthetic.fingerprint, queries[0], filters=SearchFilters(), limit=_DEPTH)
    first = 1000 * (time.perf_counter() - started)
    found = {"first_ms": first, "cpu_ms": cpu_ms(SearchFilters())}
    found["one_percent_ms"] = cpu_ms(SearchFilters(tags_any=("rare",)))
    found["third_ms"] = cpu_ms(SearchFilters(tags_any=("third",)))
    found["few_ms"] = cpu_ms(SearchFilters(), primary=False)
    found["homes_ms"] = cpu_ms(SearchFilters(), primary=True)
    found["rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def exact_cpu_ms(count: int) -> float:
    part = np.concatenate([vectors(_BATCH, 1000 + start) for start in range(0, min(count, 100_000), _BATCH)]).astype(
        np.float32
    )
    taken = []
    for query in vectors(_QUERIES, 7).astype(np.float32):
        started = time.process_time()
        for _ in range(max(1, count // len(part))):
            np.argpartition(-(part @ query), 10)
        taken.append(1000 * (time.process_time() - started))
    return measuring.percentile(taken, 0.5)


def recall(path: Path, questions: Path) -> None:
    import kebab

    with kebab.open(path) as kb:
        models = kb.session.models
        assert models is not None
        connection = Database(path).reader()
        store = SqliteVectorStore(connection)
        with gzip.open(questions / "queries.jsonl.gz", "rt", encoding="utf-8") as file:
            texts = [json.loads(line)["text"] for line in file][:300]
        rows = []
        for embedder in models.embedders:
            space = next(
                (space for space in stored_spaces(connection) if space.fingerprint == embedder.fingerprint), None
            )
            if space is None or not space.has_codes:
                continue
            shares = []
            for vector in embedder.embed(texts, "query"):
                every = vectors_module._vectors_of_space(connection, space, {})
                similarities = vectors_module._products(every.matrix, np.asarray(vector, np.float32))
                exact = store._matches(space, every.ids, similarities, 10, _everything())
                found = store.search(embedder.fingerprint, vector, filters=SearchFilters(), limit=10)
                shares.append(
                    len({match.chunk_id for match in exact} & {match.chunk_id for match in found}) / len(exact)
                )
            mean = sum(shares) / len(shares)
            rows.append(
                [
                    embedder.name,
                    f"{len(every.ids):,}",
                    len(texts),
                    f"{mean:.4f}",
                    "ok" if mean >= RECALL_BAR else "MISSED",
                ]
            )
    measuring.table(["model", "vectors", "questions", "recall@10", f"bar {RECALL_BAR}"], rows)


def _everything() -> Any:
    from kebab.store.sqlite.vectors import _Permitted

    return _Permitted(None)


if __name__ == "__main__":
    main()
