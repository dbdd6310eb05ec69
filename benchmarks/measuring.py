"""Shared parts of the benchmarks: the data, the cost of a process, interleaved rounds, and the table of results.

Absolute times mean little on a shared machine. Every benchmark therefore runs its opponent in the same minute, in turns
with Kebab, and reports the ratio; times are CPU times unless they are called wall.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

REPOSITORY = Path(__file__).resolve().parent.parent
BENCHMARKS = Path(__file__).resolve().parent

T = TypeVar("T")


# --- data


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the one option that all benchmarks have."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("BENCH_DATA") or str(REPOSITORY.parent / "shared" / "data")
    made.add_argument(
        "--data", type=_data_folder, default=default, help="the data folder; else $BENCH_DATA, else ../shared/data"
    )
    return made


def _data_folder(text: str) -> Path:
    folder = Path(text).expanduser().resolve()
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}; name it with --data or BENCH_DATA")
    return folder


@contextmanager
def work_folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="kebab-bench-") as name:
        yield Path(name)


def unpack(data: Path, corpus: str, into: Path) -> Path:
    """The Markdown tree of an archive in `corpora`."""
    with tarfile.open(data / "corpora" / f"{corpus}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return into / corpus


def text_size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


# --- processes


@dataclass(frozen=True)
class Cost:
    """The cost of one process: CPU and wall seconds, and its largest memory."""

    cpu: float
    wall: float
    rss_mb: float


def kb() -> str:
    """The installed console script beside this interpreter."""
    script = Path(sys.executable).parent / "kb"
    if not script.exists():
        raise SystemExit("kb is not installed beside this Python: pip install -e .")
    return str(script)


def run(arguments: Sequence[str]) -> Cost:
    """Runs a command with an empty configuration. Its output is ignored; a failure ends the benchmark."""
    started = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{errors.decode(errors='replace')[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def environment() -> Mapping[str, str]:
    """Ours without the user's own Kebab settings, and with compiled modules kept, as an installed program has them."""
    own = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("KEBAB_") and key != "PYTHONDONTWRITEBYTECODE"
    }
    return {**own, "XDG_CONFIG_HOME": os.devnull, "NO_COLOR": "1"}


def evaluated(
    data: Path, name: str, work: Path, options: Sequence[str], *, embed: bool = True, **variables: str
) -> list[dict[str, Any]]:
    """The lines of the evaluation tool beside the data folder, which runs a judged set through the installed program's
    command line. `variables`: more of its environment.
    """
    tool = data.parent / "tools" / "retrieval_eval"
    command = [
        sys.executable,
        str(tool),
        "--kb",
        shlex.quote(kb()),
        "--json",
        *options,
        "--keep",
        str(work),
        str(data / name),
    ]
    own = {**environment(), **({} if embed else {"KEBAB_EMBEDDING_MODEL": "none"}), **variables}
    process = subprocess.run(command, capture_output=True, text=True, env=own)
    if process.returncode:
        raise SystemExit(f"{name}: {process.stderr.strip()[-2000:]}")
    results: list[dict[str, Any]] = [json.loads(line) for line in process.stdout.splitlines()]
    for result in results:
        if "stderr" in result:
            raise SystemExit(f"{name}: {result['stderr']}")
    return results


# --- rounds and tables


def interleaved(rounds: int, contestants: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Every contestant once per round, so that a slow minute hits all of them."""
    results: dict[str, list[T]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            results[name].append(contestant())
    return results


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The ratio of the medians."""
    return median(ours) / median(theirs)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def verdict(value: float, bar: float) -> str:
    return "ok" if value <= bar else "MISSED"


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table with aligned columns, ready for the README."""
    cells = [[str(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    for number, row in enumerate(cells):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    sys.stdout.flush()
