"""What a person waits for: a whole `kb search` process against an interpreter that does nothing.

    python benchmarks/cold_start.py [--data FOLDER] [--runs 40]

On a database of 2,453 Markdown files, the page cache warm, the installed console script, runs interleaved.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import measuring

BAR = 10.0
QUESTION = "how do I roll back a deployment"


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--runs", type=int, default=40)
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        corpus = measuring.unpack(chosen.data, "k8s-en", work)
        database = work / "kb.sqlite"
        measuring.run([measuring.kb(), "--db", str(database), "ingest", str(corpus), "--no-embed", "--quiet"])
        report(database, chosen.runs)


def report(database: Path, runs: int) -> None:
    search = [measuring.kb(), "--db", str(database), "search", "--mode", "lexical"]
    commands = {
        "python -I -c pass": [sys.executable, "-I", "-c", "pass"],
        "kb search --mode lexical": [*search, QUESTION],
        "kb search --mode lexical --json": [*search, "--json", QUESTION],
        "kb search --mode lexical, no hit": [*search, "zyzzyva"],
        "kb --version": [measuring.kb(), "--version"],
        "kb search --help": [measuring.kb(), "search", "--help"],
    }
    bare = next(iter(commands))
    for command in commands.values():
        measuring.run(command)  # compiles what has to be compiled
    costs = measuring.interleaved(runs, {name: partial(measuring.run, command) for name, command in commands.items()})
    rows = []
    for name, taken in costs.items():
        wall, cpu = [cost.wall for cost in taken], [cost.cpu for cost in taken]
        bare_wall, bare_cpu = [cost.wall for cost in costs[bare]], [cost.cpu for cost in costs[bare]]
        times = measuring.ratio(wall, bare_wall)
        rows.append(
            [
                name,
                f"{1000 * measuring.percentile(wall, 0.5):.0f}",
                f"{1000 * measuring.percentile(cpu, 0.5):.0f}",
                f"{times:.1f}×",
                f"{measuring.ratio(cpu, bare_cpu):.1f}×",
                "" if name == bare else measuring.verdict(times, BAR),
            ]
        )
    measuring.table(["whole process, p50", "wall ms", "CPU ms", "wall ratio", "CPU ratio", f"bar {BAR:g}×"], rows)


if __name__ == "__main__":
    main()
