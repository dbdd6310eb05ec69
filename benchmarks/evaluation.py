"""kb eval: how many judged queries a second, and how large the page of many of them is.

    python benchmarks/evaluation.py [--data FOLDER] [--keep FOLDER] [--rounds 3] [--set scifact-train]

A run of the whole set by hybrid search, warm, in one process (embedding it before takes minutes; --keep saves that the
next time). What of it is the model and what the text index is measured beside it, in turns: on a busy machine both are
slower by the same share.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import measuring

import kebab
from kebab.evaluation.files import GoldenSet, load_golden_set, write_documents
from kebab.evaluation.report_page import explain_misses, report_page
from kebab.evaluation.runner import RunOptions, run
from kebab.wire.evaluation import EvalReportV1

LEAST_PER_SECOND, MOST_MB, MANY = 100, 5.0, 5000


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--keep", type=Path, help="keep the database here and use it again")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--set", default="scifact-train", metavar="SET")
    chosen = options.parse_args()
    folder = chosen.data / chosen.set
    golden = load_golden_set(folder)
    with measuring.work_folder() as work:
        place = chosen.keep or work
        place.mkdir(parents=True, exist_ok=True)
        fresh = not (place / "kb.sqlite").exists()
        with kebab.open(place / "kb.sqlite") as knowledge_base:
            if fresh:
                knowledge_base.ingest(write_documents(folder, place / "files"), name=chosen.set)
            speed(knowledge_base, golden, chosen.rounds)
            page(knowledge_base, run(knowledge_base, golden))


def speed(knowledge_base: kebab.KnowledgeBase, golden: GoldenSet, rounds: int) -> None:
    models = knowledge_base.session.models
    assert models is not None
    embedder = models.for_query(golden.queries[0].query)[0].embedder
    texts = [query.query for query in golden.queries]
    contestants: dict[str, Callable[[], object]] = {
        "the model alone": lambda: [embedder.embed([text], "query") for text in texts],
        "kb eval run --mode lexical": lambda: run(knowledge_base, golden, RunOptions(search={"mode": "lexical"})),
        "kb eval run": lambda: run(knowledge_base, golden),
    }
    knowledge_base.search(texts[0])  # what has to be loaded
    taken = measuring.interleaved(rounds, {name: partial(_cost, work) for name, work in contestants.items()})
    rows = []
    for name, costs in taken.items():
        cpu, wall = (min(values) / len(texts) for values in zip(*costs, strict=True))
        rows.append([name, f"{1000 * cpu:.2f}", f"{1000 * wall:.2f}", f"{1 / cpu:.0f}", f"{1 / wall:.0f}"])
    measuring.table(
        [f"{len(texts)} queries, best of {rounds}", "CPU ms each", "wall ms each", "per CPU second", "per second"], rows
    )
    print(f"bar: {LEAST_PER_SECOND} a second\n")


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def page(knowledge_base: kebab.KnowledgeBase, report: EvalReportV1) -> None:
    misses = explain_misses(report, knowledge_base)
    assert misses is not None
    many = []
    for number in range(MANY):
        query = copy.copy(report.queries[number % len(report.queries)])
        query.id = f"{query.id}-{number}"
        many.append(query)
    repeated = {query.id: misses[original] for query in many if (original := query.id.rpartition("-")[0]) in misses}
    rows = []
    for queries, explained in ((report.queries, misses), (many, repeated)):
        size = len(report_page(EvalReportV1(**{**vars(report), "queries": queries}), explained).encode()) / 1e6
        rows.append(
            [f"{len(queries):,} queries", f"{size:.2f} MB", f"{MOST_MB:.0f} MB", measuring.verdict(size, MOST_MB)]
        )
    measuring.table(["page of", "size", "bar", ""], rows)


if __name__ == "__main__":
    main()
