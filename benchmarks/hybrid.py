"""Ranking quality of words, meaning and both, on judged questions.

    python benchmarks/hybrid.py [--data FOLDER] [--keep FOLDER] [--limit N] [SET …]

Runs the evaluation tool that lies beside the data folder on every set but the PDF one, in all modes and with both
fusions. Making the vectors of all sets takes an hour or two; --keep FOLDER saves that the next time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import measuring


class Bar(NamedTuple):
    rrf: float | None = None
    convex: float | None = None
    rrf_may_lose: float = 0.03
    """To the better of words and meaning alone."""
    convex_may_lose: float = 0.01


BARS = {
    "scifact-train": Bar(0.735, 0.755),
    "cosqa-dev": Bar(0.50, 0.56, rrf_may_lose=1.0, convex_may_lose=0.03),
    "anthropic-docs": Bar(0.80, 0.82),
    "anthropic-codebase": Bar(0.70, 0.72),
    "xquad-en": Bar(0.965, 0.97),
    "chunk-eval": Bar(),
    "silver-k8s-en": Bar(),
    "silver-k8s-ko": Bar(),
    "silver-code-doc2func": Bar(),
    "korquad": Bar(0.93, 0.945),
}


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--keep", type=Path, help="keep corpora and databases here and use the databases again")
    options.add_argument("--limit", type=int, default=0, help="at most this many questions of each set")
    options.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(BARS)}; all of them by default")
    chosen = options.parse_args()
    rows = []
    with measuring.work_folder() as work:
        for name in chosen.sets or BARS:
            rows.append(measured(chosen.data, name, chosen.keep or work, chosen.limit))
            print(*rows[-1], file=sys.stderr, flush=True)
    headers = ["set", "questions", "words", "meaning", "rrf", "bar", "", "convex", "bar", "", "ms a question"]
    measuring.table(headers, rows)


def measured(data: Path, name: str, work: Path, limit: int) -> list[object]:
    common = ["--limit", str(limit)] if limit else []
    lexical, vector, rrf = measuring.evaluated(data, name, work, [*common, "--modes", "lexical,vector,hybrid"])
    convex = measuring.evaluated(data, name, work, [*common, "--modes", "hybrid", "--search-args=--fusion convex"])[0]
    scores = {
        mode: float(result["ndcg@10"])
        for mode, result in zip(("l", "v", "r", "c"), (lexical, vector, rrf, convex), strict=True)
    }
    bar, better = BARS[name], max(scores["l"], scores["v"])
    least_rrf = max(bar.rrf or 0.0, better - bar.rrf_may_lose)
    least_convex = max(bar.convex or 0.0, better - bar.convex_may_lose)
    return [
        name,
        f"{lexical['queries']:,}",
        f"{scores['l']:.3f}",
        f"{scores['v']:.3f}",
        f"{scores['r']:.3f}",
        f"{least_rrf:.3f}",
        "ok" if scores["r"] >= least_rrf else "MISSED",
        f"{scores['c']:.3f}",
        f"{least_convex:.3f}",
        "ok" if scores["c"] >= least_convex else "MISSED",
        rrf["ms_per_query"],
    ]


if __name__ == "__main__":
    main()
