"""Ranking quality on judged questions, next to plain FTS5.

    python benchmarks/retrieval.py [--data FOLDER] [--keep FOLDER] [SET …]

Runs the evaluation tool that lies beside the data folder (`../tools/retrieval_eval`) on every set but the PDF one, in
lexical mode, through the installed program's own command line.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import measuring

TOLERANCE = 0.01


class Bar(NamedTuple):
    fts5: str
    """The FTS5 column of the data's README."""
    least: float
    hard: bool = False
    """Without the tolerance."""

    @property
    def floor(self) -> float:
        return self.least if self.hard else self.least - TOLERANCE


BARS = {
    "scifact-train": Bar(".701", 0.701),
    "cosqa-dev": Bar(".384", 0.384),
    "anthropic-docs": Bar(".696", 0.696),
    "anthropic-codebase": Bar(".565", 0.67, hard=True),
    "xquad-en": Bar(".966", 0.966),
    "chunk-eval": Bar(".776", 0.776),
    "silver-k8s-en": Bar(".533", 0.55, hard=True),
    "silver-k8s-ko": Bar(".568", 0.568),
    "silver-code-doc2func": Bar(".325", 0.325),
    "korquad": Bar(".846–.95", 0.94, hard=True),
}


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--keep", type=Path, help="keep corpora and databases here and use the databases again")
    options.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(BARS)}; all of them by default")
    chosen = options.parse_args()
    unknown = set(chosen.sets) - set(BARS)
    if unknown:
        options.error(f"no such set: {', '.join(sorted(unknown))}")
    rows, missed, scores = [], 0, []
    with measuring.work_folder() as work:
        for name in chosen.sets or BARS:
            result = evaluated(chosen.data, name, chosen.keep or work)
            score, bar = float(result["ndcg@10"]), BARS[name]
            passed = score >= bar.floor and not result["unanswered"]
            missed += not passed
            scores.append(score)
            print(f"{name}: {score:.4f}", file=sys.stderr, flush=True)
            rows.append(
                [
                    name,
                    f"{result['docs']:,} / {result['queries']:,}",
                    f"{score:.3f}",
                    bar.fts5,
                    f"{bar.least:.3f}" + ("" if bar.hard else f" − {TOLERANCE:g}"),
                    "ok" if passed else "MISSED",
                    f"{result['recall@10']:.3f}",
                    f"{result['mrr@10']:.3f}",
                    result["empty"],
                    result["ms_per_query"],
                ]
            )
    headers = [
        "set",
        "documents / queries",
        "nDCG@10",
        "FTS5",
        "bar",
        "",
        "recall@10",
        "MRR@10",
        "no hit",
        "ms a query",
    ]
    measuring.table(headers, rows)
    print(f"\nmean nDCG@10 {sum(scores) / len(scores):.4f}, {missed} missed")


def evaluated(data: Path, name: str, work: Path) -> dict[str, Any]:
    return measuring.evaluated(data, name, work, ["--modes", "lexical"], embed=False)[0]


if __name__ == "__main__":
    main()
