"""What a person waits for: a whole hybrid `kb search` process, against loading the model and embedding the question
alone.

    python benchmarks/hybrid_cold_start.py [--data FOLDER] [--files 40] [--runs 15]

On English and Korean pages, the page cache warm, the installed console script, runs interleaved.
"""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path

import measuring

BAR = 1.5
ENGLISH = "how do I roll back a deployment"
KOREAN = "배포를 이전 버전으로 되돌리려면 어떻게 하나요"
ALONE = """
import sys
from kebab.config.loading import cache_folder
from kebab.embedding.models import granite, multilingual
{"granite": granite, "multilingual": multilingual}[sys.argv[1]](cache_folder(), 0).embed([sys.argv[2]], "query")
"""


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--files", type=int, default=40)
    options.add_argument("--runs", type=int, default=15)
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        database, notes = work / "kb.sqlite", work / "pages"
        notes.mkdir()
        for name in ("k8s-en", "k8s-ko"):
            files = sorted(measuring.unpack(chosen.data, name, work).rglob("*.md"))
            for number, file in enumerate(files[:: len(files) // chosen.files]):
                shutil.copy(file, notes / f"{name}-{number}-{file.name}")
        measuring.run([measuring.kb(), "--db", str(database), "ingest", str(notes), "--quiet"])
        report(database, chosen.runs)


def report(database: Path, runs: int) -> None:
    search = [measuring.kb(), "--db", str(database), "search"]
    commands = {
        "granite alone": [sys.executable, "-c", ALONE, "granite", ENGLISH],
        "kb search, English": [*search, ENGLISH],
        "multilingual alone": [sys.executable, "-c", ALONE, "multilingual", KOREAN],
        "kb search, Korean": [*search, KOREAN],
    }
    for command in commands.values():
        measuring.run(command)
    costs = measuring.interleaved(runs, {name: partial(measuring.run, command) for name, command in commands.items()})
    walls = {name: [cost.wall for cost in taken] for name, taken in costs.items()}
    against = {"kb search, English": "granite alone", "kb search, Korean": "kb search, English"}
    rows = []
    for name, taken in walls.items():
        opponent = against.get(name)
        times = measuring.ratio(taken, walls[opponent]) if opponent else None
        rows.append(
            [
                name,
                f"{1000 * measuring.percentile(taken, 0.5):.0f}",
                f"{times:.2f}× {opponent}" if times else "",
                measuring.verdict(times, BAR) if times else "",
            ]
        )
    measuring.table(["whole process, p50", "wall ms", "ratio", f"bar {BAR:g}×"], rows)


if __name__ == "__main__":
    main()
