"""PDF against bare pypdfium2, and the ingest of Python's own standard library.

    python benchmarks/formats.py [--data FOLDER] [--rounds 5]

PDF: the files of azure-demo-pdf, parsed in this process to text, headings, blocks and labels; the opponent opens them
with pypdfium2 and takes the text of every page. In turns, CPU time. The library: one `kb ingest --no-embed` of the
folder this Python imports from, without site-packages; wall time and the most memory of the process.
"""

from __future__ import annotations

import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, ignore_patterns

import measuring
import pypdfium2

from kebab.parsing.pdf import PdfParser

LEAST_OF_BARE = 0.6
MOST_SECONDS, MOST_MB = 60, 500


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    pdfs(sorted((chosen.data / "azure-demo-pdf" / "pdfs").glob("*.pdf")), chosen.rounds)
    print()
    with measuring.work_folder() as work:
        standard_library(work)


def pdfs(files: list[Path], rounds: int) -> None:
    contents = [file.read_bytes() for file in files]
    pages = sum(len(pypdfium2.PdfDocument(data)) for data in contents)
    contestants: dict[str, Callable[[], float]] = {
        "bare": lambda: timed(lambda: [bare(data) for data in contents]),
        "kebab": lambda: timed(
            lambda: [PdfParser().parse(data, file.name) for data, file in zip(contents, files, strict=True)]
        ),
    }
    measuring.interleaved(1, contestants)  # warms up
    times = measuring.interleaved(rounds, contestants)
    share = 1 / measuring.ratio(times["kebab"], times["bare"])
    rows = [[name, f"{pages / measuring.percentile(taken, 0.5):.0f}"] for name, taken in times.items()]
    rows[1] += [f"{100 * share:.0f} %", f"{100 * LEAST_OF_BARE:.0f} %", measuring.verdict(LEAST_OF_BARE, share)]
    measuring.table(
        [f"{len(files)} PDFs", "pages a CPU second", "of bare", "bar", ""], [[*rows[0], "", "", ""], rows[1]]
    )


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def bare(data: bytes) -> list[str]:
    document = pypdfium2.PdfDocument(data)
    try:
        return [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()


def standard_library(work: Path) -> None:
    folder = work / "lib"
    copytree(
        sysconfig.get_path("stdlib"), folder, ignore=ignore_patterns("site-packages", "__pycache__", "*.so", "*.a")
    )
    size = sum(file.stat().st_size for file in folder.rglob("*.py")) / 1e6
    cost = measuring.run(
        [measuring.kb(), "--db", str(work / "kb.sqlite"), "ingest", str(folder), "--no-embed", "--quiet"]
    )
    measuring.table(
        [f"standard library, {size:.0f} MB of code", "measured", "bar", ""],
        [
            ["wall s", f"{cost.wall:.1f}", MOST_SECONDS, measuring.verdict(cost.wall, MOST_SECONDS)],
            ["peak MB", f"{cost.rss_mb:.0f}", MOST_MB, measuring.verdict(cost.rss_mb, MOST_MB)],
        ],
    )


if __name__ == "__main__":
    main()
