"""What a cross-encoder adds to the ranking, and what it costs.

    python benchmarks/reranking.py [--data FOLDER] [--keep FOLDER] [--limit N] [SET …]

Runs the evaluation tool that lies beside the data folder on every set, in hybrid mode, with and without --rerank. Then
measures how long the cross-encoder reads one query and one passage. Needs the extra `rerank`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import measuring

SETS = ("scifact-train", "anthropic-docs", "azure-demo-pdf", "chunk-eval", "cosqa-dev", "anthropic-codebase")
RERANKED = (0, 10, 20, 30)
LENGTHS = (64, 128, 256)
"""Tokens of a query and a passage together."""
ROUNDS = 20


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--keep", type=Path, help="keep corpora and databases here and use the databases again")
    options.add_argument("--limit", type=int, default=100, help="at most this many questions of each set")
    options.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; all of them by default")
    chosen = options.parse_args()
    rows = []
    with measuring.work_folder() as work:
        for name in chosen.sets or SETS:
            rows.append(measured(chosen.data, name, chosen.keep or work, chosen.limit))
            print(*rows[-1], file=sys.stderr, flush=True)
        pairs = [(length, f"{1000 * cpu_of_a_pair(work, length):.0f}") for length in LENGTHS]
    measuring.table(["set", "questions", *(f"rerank {number}" for number in RERANKED), "ms a question, 0 and 30"], rows)
    measuring.table(["tokens", "CPU ms a pair"], pairs)


def measured(data: Path, name: str, work: Path, limit: int) -> list[object]:
    """nDCG@10 with each number of passages; more time than usual, because the machine may be busy."""
    results = [
        measuring.evaluated(
            data,
            name,
            work,
            ["--limit", str(limit), "--modes", "hybrid", f"--search-args=--rerank {number}"],
            KEBAB_SEARCH_RERANK_SECONDS="25",
        )[0]
        for number in RERANKED
    ]
    scores = [f"{result['ndcg@10']:.3f}" for result in results]
    return [name, results[0]["queries"], *scores, f"{results[0]['ms_per_query']}, {results[-1]['ms_per_query']}"]


def cpu_of_a_pair(cache: Path, tokens: int) -> float:
    """Seconds that one thread takes for a pair of this length, the median of some rounds."""
    from kebab.config.settings import RerankSettings
    from kebab.embedding.cross_encoder import reranker_for

    model = reranker_for(RerankSettings(), cache / "cache", 1)
    passage = ["word " * (tokens - 4)]  # beside it stand the query of one token, and three marks
    model.scores("query", passage)
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        model.scores("query", passage)
        times.append(time.process_time() - started)
    return measuring.percentile(times, 0.5)


if __name__ == "__main__":
    main()
