"""A warm question at 100,000 chunks: the whole of KnowledgeBase.search against the best bare query on the same index.

    python benchmarks/lexical_latency.py [--data FOLDER] [--chunks 100000] [--questions 100] [--rounds 3] [--keep FILE]
        [--no-filters] [--profile]

The bare query ranks the OR of the question's words, stop words dropped, with `ORDER BY bm25() LIMIT 10` in a subquery,
and joins the texts: no parsing, no order among equals, no citations, no snippets. With a filter it joins a table of
(tag, chunk) inside the subquery. CPU time in one process; every question goes to every contestant in turn, and its best
round counts.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import apsw
import measuring
import synthetic_corpus

import kebab
from kebab.analysis.language import is_stop_word
from kebab.core.documents import Source
from kebab.knowledge_base import KnowledgeBase
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.sqlite.database import Database
from kebab.store.sqlite.documents import SqliteWriting

BAR = 1.3
K = 10
_BARE = f"""
SELECT ranked.bm25, c.chunk_id, c.heading_path, c.text FROM (
    SELECT chunks_fts.rowid AS id, bm25(chunks_fts, 0, 0, 2, 1, 8, 1) AS bm25
    FROM chunks_fts {{join}} WHERE chunks_fts MATCH :match ORDER BY bm25 LIMIT {K}
) ranked CROSS JOIN chunks c ON c.id = ranked.id ORDER BY ranked.bm25
"""
_TAGGED = "CROSS JOIN temp.chunk_tags t ON t.tag = :tag AND t.id = chunks_fts.rowid"

Question = Callable[[str], object]


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--chunks", type=int, default=100_000)
    options.add_argument("--questions", type=int, default=100)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--keep", type=Path, help="the database to make, or to use again if it is there")
    options.add_argument("--no-filters", action="store_true", help="only the questions without a tag")
    options.add_argument("--profile", action="store_true", help="also say where the time of match=any goes")
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        real = synthetic_corpus.read(measuring.unpack(chosen.data, "k8s-en", work))
        database = chosen.keep or work / "kb.sqlite"
        if not database.exists():
            build(database, real, chosen.chunks)
        asked = synthetic_corpus.questions(real, chosen.questions)
        with kebab.open(database) as kb:
            report(kb, asked, chosen.rounds, () if chosen.no_filters else tuple(synthetic_corpus.TAGS))
            if chosen.profile:
                profile(kb, asked)


def build(path: Path, real: synthetic_corpus.RealText, chunks: int) -> None:
    started = time.process_time()
    connection = Database(path).writer()
    writing = SqliteWriting(connection, "bigrams")
    writing.settle_analysis()
    store = writing.documents()
    store.add_source(Source(synthetic_corpus.SOURCE, "folder", None))
    for document in synthetic_corpus.documents(real, chunks):
        store.write(document)
    connection.close()
    print(
        f"{chunks:,} chunks, {path.stat().st_size / 1e6:.0f} MB, made in {time.process_time() - started:.0f} CPU s\n",
        flush=True,
    )


def report(kb: KnowledgeBase, asked: list[str], rounds: int, tags: tuple[str, ...]) -> None:
    bare = BareQuery(kb.path)
    contestants: dict[str, Question] = {
        "bare": bare.ask,
        "kebab, match=any": lambda question: kb.search(question, k=K, mode="lexical", match="any"),
        "kebab, match=auto": lambda question: kb.search(question, k=K, mode="lexical", match="auto"),
    }
    for tag in tags:
        contestants[f"bare, tag {tag}"] = lambda question, tag=tag: bare.ask(question, tag)  # type: ignore[misc]
        contestants[f"kebab, match=any, tag {tag}"] = lambda question, tag=tag: kb.search(  # type: ignore[misc]
            question, k=K, mode="lexical", match="any", tags_any=[tag]
        )
    times = best_times(contestants, asked, rounds)
    rows = []
    for name, taken in times.items():
        opponent = (
            "bare" + name.removeprefix("kebab, match=any").removeprefix("kebab, match=auto")
            if name.startswith("kebab")
            else ""
        )
        against = measuring.ratio(taken, times[opponent]) if opponent else 0.0
        barred = name == "kebab, match=any"
        rows.append(
            [
                name,
                f"{1000 * median(taken):.1f}",
                f"{1000 * measuring.percentile(taken, 0.95):.1f}",
                f"{against:.2f}×" if opponent else "",
                f"{median(a / b for a, b in zip(taken, times[opponent], strict=True)):.2f}×" if opponent else "",
                f"{measuring.ratio(taken, times['bare']):.2f}×",
                measuring.verdict(against, BAR) if barred else "",
            ]
        )
    headers = [
        "warm question, top 10",
        "CPU ms p50",
        "p95",
        "p50 against its bare query",
        "median of ratios",
        "against unfiltered",
    ]
    measuring.table([*headers, f"bar {BAR:g}×"], rows)
    print(f"\n{len(asked)} questions, for example: {asked[0]}\nAsked as: {bare.expression(asked[0])}")


def best_times(contestants: dict[str, Question], asked: list[str], rounds: int) -> dict[str, list[float]]:
    """Per contestant, the least CPU seconds of each question."""
    best = {name: [float("inf")] * len(asked) for name in contestants}
    for round_number in range(rounds + 1):
        for number, question in enumerate(asked):
            for name, ask in contestants.items():
                started = time.process_time()
                ask(question)
                taken = time.process_time() - started
                if round_number:  # the first one warms up
                    best[name][number] = min(best[name][number], taken)
    return best


class BareQuery:
    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.pragma("cache_size", -65536)
        self._connection.pragma("temp_store", "memory")
        self._connection.pragma("mmap_size", path.stat().st_size)
        self._tokenizer = SqliteTokenizer(self._connection)
        self._connection.execute(
            "CREATE TEMP TABLE chunk_tags (tag TEXT, id INTEGER, PRIMARY KEY (tag, id)) WITHOUT ROWID"
        )
        self._connection.execute(
            "INSERT INTO chunk_tags SELECT t.tag, c.id FROM document_tags t JOIN chunks c ON c.document_id = t.document_id"
        )

    def expression(self, question: str) -> str:
        words = dict.fromkeys(word for word in self._tokenizer.words(question) if not is_stop_word(word))
        return " OR ".join(f'"{word}"' for word in words)

    def ask(self, question: str, tag: str | None = None) -> object:
        sql = _BARE.format(join=_TAGGED if tag else "")
        return self._connection.execute(
            sql, {"match": self.expression(question), **({"tag": tag} if tag else {})}
        ).fetchall()


def profile(kb: KnowledgeBase, asked: list[str]) -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    for question in asked:
        kb.search(question, k=K, mode="lexical", match="any")
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(15)


if __name__ == "__main__":
    main()
