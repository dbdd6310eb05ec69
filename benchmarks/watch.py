"""How long after a save an edit is searchable, while `kb watch` runs on 2,453 files.

    python benchmarks/watch.py [--data FOLDER] [--edits 10]

Whole processes: `kb watch --no-embed` beside `kb search` again and again. The time of the search itself is part of the
figure, and is printed beside it.
"""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import measuring

BAR_S = 2.0


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--edits", type=int, default=10)
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        corpus = measuring.unpack(chosen.data, "k8s-en", work)
        database = work / "kb.sqlite"
        kb = [measuring.kb(), "--db", str(database)]
        watch = subprocess.Popen(
            [*kb, "watch", str(corpus), "--no-embed", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert watch.stdout is not None
        watch.stdout.readline()  # the report of the first ingest
        time.sleep(2)
        files = sorted(corpus.rglob("*.md"))
        seconds = [edited(kb, files[number * 97 % len(files)], f"zyxword{number}") for number in range(chosen.edits)]
        alone = [found_after(kb, "kubernetes") for _ in range(chosen.edits)]
        watch.send_signal(signal.SIGINT)
        watch.wait(30)
    middle = measuring.percentile(seconds, 0.5)
    measuring.table(
        ["", "p50 s", "largest s", "bar", ""],
        [
            [
                "from save to hit",
                f"{middle:.2f}",
                f"{max(seconds):.2f}",
                f"{BAR_S}",
                measuring.verdict(max(seconds), BAR_S),
            ],
            ["a search alone", f"{measuring.percentile(alone, 0.5):.2f}", f"{max(alone):.2f}", "", ""],
        ],
    )


def edited(kb: list[str], file: Path, word: str) -> float:
    with file.open("a", encoding="utf-8") as handle:
        handle.write(f"\n{word}\n")
    return found_after(kb, word)


def found_after(kb: list[str], word: str) -> float:
    started = time.perf_counter()
    while True:
        done = subprocess.run(
            [*kb, "search", word, "--mode", "lexical", "--exit-code", "--quiet"], capture_output=True, check=False
        )
        if done.returncode == 0:
            return time.perf_counter() - started
        if time.perf_counter() - started > 60:
            raise SystemExit(f"{word} was not found within a minute.")


if __name__ == "__main__":
    main()
