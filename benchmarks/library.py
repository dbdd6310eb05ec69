"""Library documentation against the plain program on the same files: adding a library, adding its second version, and
asking it.

    python benchmarks/library.py [--data FOLDER] [--rounds 3] [--runs 20]

2,453 Markdown files in a git repository with two tags; between them 5 % of the files change. Whole processes,
interleaved, without vectors.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import measuring
from measuring import Cost

ADD_BAR = 2.0
SECOND_BAR = 0.15
DOCS_BAR = 1.2
CHANGED = 0.05
LIBRARY = "/k8s/docs"
QUESTIONS = (
    "how do I roll back a deployment",
    "drain a node",
    "persistent volume claim",
    "network policy ingress",
    "kubectl apply",
)


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--runs", type=int, default=20)
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        corpus = measuring.unpack(chosen.data, "k8s-en", work)
        os.environ["XDG_CACHE_HOME"] = str(work / "cache")
        first, second = make_repository(corpus)
        print(f"{first} files, {second} of them changed in v2")
        report(corpus, work, chosen.rounds, chosen.runs)


def make_repository(folder: Path) -> tuple[int, int]:
    """Tags v1 and v2; how many files there are, and how many of them v2 changes."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "one")
    git(folder, "tag", "v1")
    files = sorted(folder.rglob("*.md"))
    changed = files[:: round(1 / CHANGED)]
    for file in changed:
        file.write_text(
            file.read_text(encoding="utf-8") + "\n## Since version two\n\nThis page has one more section.\n",
            encoding="utf-8",
        )
    git(folder, "commit", "--quiet", "-a", "-m", "two")
    git(folder, "tag", "v2")
    git(folder, "checkout", "--quiet", "v1")
    git(folder, "branch", "--quiet", "--force", "main", "v1")
    git(folder, "checkout", "--quiet", "main")
    return len(files), len(changed)


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def report(corpus: Path, work: Path, rounds: int, runs: int) -> None:
    notes, library = work / "notes" / "kb.sqlite", work / "library" / "kb.sqlite"
    ingest = [measuring.kb(), "--db", str(notes), "ingest", str(corpus), "--no-embed", "--quiet"]
    add = [
        measuring.kb(),
        "--db",
        str(library),
        "lib",
        "add",
        f"file://{corpus}",
        "--id",
        LIBRARY,
        "--no-embed",
        "--quiet",
    ]
    adding: dict[str, Callable[[], Cost]] = {
        "kb ingest": fresh(notes, ingest),
        "kb lib add": fresh(library, add, work / "cache"),
        "kb lib add --version v2": partial(measuring.run, [*add, "--version", "v2"]),
    }
    costs = measuring.interleaved(rounds, adding)
    search = [measuring.kb(), "--db", str(notes), "search"]
    docs = [measuring.kb(), "--db", str(library), "lib", "docs", LIBRARY]
    for question in QUESTIONS:
        measuring.run([*search, question])
        measuring.run([*docs, question])
    asked = measuring.interleaved(runs, {"kb search": partial(ask_all, search), "kb lib docs": partial(ask_all, docs)})
    print()
    rows = [
        [name, f"{median_cpu(taken):.2f}", f"{median_wall(taken):.2f}"] for name, taken in {**costs, **asked}.items()
    ]
    measuring.table(["whole process, p50", "CPU s", "wall s"], rows)
    print()
    measuring.table(
        ["CPU", "measured", "bar", ""],
        [
            bar("a library against a plain ingest", cpus(costs["kb lib add"]), cpus(costs["kb ingest"]), ADD_BAR),
            bar(
                "a second version against the first",
                cpus(costs["kb lib add --version v2"]),
                cpus(costs["kb lib add"]),
                SECOND_BAR,
            ),
            bar("kb lib docs against kb search, cold", cpus(asked["kb lib docs"]), cpus(asked["kb search"]), DOCS_BAR),
        ],
    )


def fresh(database: Path, command: list[str], *folders: Path) -> Callable[[], Cost]:
    """The command, each time without what it made before."""

    def once() -> Cost:
        for folder in (database.parent, *folders):
            shutil.rmtree(folder, ignore_errors=True)
        database.parent.mkdir()
        return measuring.run(command)

    return once


def ask_all(command: list[str]) -> Cost:
    costs = [measuring.run([*command, question]) for question in QUESTIONS]
    return Cost(sum(cost.cpu for cost in costs), sum(cost.wall for cost in costs), max(cost.rss_mb for cost in costs))


def cpus(costs: list[Cost]) -> list[float]:
    return [cost.cpu for cost in costs]


def median_cpu(costs: list[Cost]) -> float:
    return measuring.percentile(cpus(costs), 0.5)


def median_wall(costs: list[Cost]) -> float:
    return measuring.percentile([cost.wall for cost in costs], 0.5)


def bar(what: str, ours: list[float], theirs: list[float], limit: float) -> list[str]:
    times = measuring.ratio(ours, theirs)
    return [what, f"{times:.2f}×", f"{limit:g}×", measuring.verdict(times, limit)]


if __name__ == "__main__":
    main()
