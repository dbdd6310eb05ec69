"""A first ingest of 2,453 Markdown files against a bare script that fills an FTS5 table from the same folder.

    python benchmarks/ingest.py [--data FOLDER] [--rounds 5]

Whole processes, interleaved. Then: what a second ingest of the unchanged folder takes, and how large the database is.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import measuring
from measuring import Cost

CPU_BAR = 6.0  # 4 is the aim
MEMORY_BAR_MB = 200.0
AGAIN_BAR_S = 1.0
SIZE_BAR = 2.5


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--corpus", default="k8s-en")
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        corpus = measuring.unpack(chosen.data, chosen.corpus, work)
        report(corpus, work, chosen.rounds)


def report(corpus: Path, work: Path, rounds: int) -> None:
    ours, theirs = work / "kebab" / "kb.sqlite", work / "bare" / "bare.sqlite"
    kb_ingest = [measuring.kb(), "--db", str(ours), "ingest", str(corpus), "--no-embed", "--quiet"]
    bare = [sys.executable, "-I", str(measuring.BENCHMARKS / "bare_fts5.py"), str(corpus), str(theirs)]
    costs = measuring.interleaved(rounds, {"bare": fresh(theirs, bare), "kebab": fresh(ours, kb_ingest)})
    again = [measuring.run(kb_ingest) for _ in range(max(3, rounds))]
    measuring.table(
        ["first ingest", "CPU s", "wall s", "peak MB", "database MB"],
        [
            [
                name,
                f"{cpu(costs[name]):.2f}",
                f"{wall(costs[name]):.2f}",
                f"{memory(costs[name]):.0f}",
                f"{size(file) / 1e6:.1f}",
            ]
            for name, file in (("bare", theirs), ("kebab", ours))
        ],
    )
    print()
    times = measuring.ratio([cost.cpu for cost in costs["kebab"]], [cost.cpu for cost in costs["bare"]])
    growth = size(ours) / measuring.text_size(corpus)
    measuring.table(
        ["", "measured", "bar", ""],
        [
            limit("CPU against the bare script", times, CPU_BAR, "{:.1f}×"),
            limit("peak memory", memory(costs["kebab"]), MEMORY_BAR_MB, "{:.0f} MB"),
            limit("unchanged ingest, wall", wall(again), AGAIN_BAR_S, "{:.2f} s"),
            limit("database against the text", growth, SIZE_BAR, "{:.2f}×"),
        ],
    )


def fresh(database: Path, command: list[str]) -> Callable[[], Cost]:
    """The command, each time into an empty folder."""

    def once() -> Cost:
        shutil.rmtree(database.parent, ignore_errors=True)
        database.parent.mkdir()
        return measuring.run(command)

    return once


def cpu(costs: list[Cost]) -> float:
    return median(cost.cpu for cost in costs)


def wall(costs: list[Cost]) -> float:
    return median(cost.wall for cost in costs)


def memory(costs: list[Cost]) -> float:
    return max(cost.rss_mb for cost in costs)


def size(database: Path) -> int:
    """With its log, if a process left one behind."""
    return sum(file.stat().st_size for file in database.parent.iterdir())


def limit(what: str, value: float, bar: float, form: str) -> list[str]:
    return [what, form.format(value), form.format(bar), measuring.verdict(value, bar)]


if __name__ == "__main__":
    main()
