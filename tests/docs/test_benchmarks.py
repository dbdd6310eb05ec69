"""The benchmarks run: what they measure is written down elsewhere, and must be measurable again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / name), *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_vectors_can_be_measured() -> None:
    """Regression: it inserted rows by their number of columns, and a migration added some."""
    printed = run("vector_latency.py", "--counts", "10000", "--data", str(BENCHMARKS))
    assert "| 10,000 " in printed


@pytest.mark.parametrize(
    "name",
    sorted(path.name for path in BENCHMARKS.glob("*.py") if "measuring.parser(" in path.read_text(encoding="utf-8")),
)
def test_every_benchmark_says_how_it_is_run(name: str) -> None:
    assert f"benchmarks/{name}" in run(name, "--help")
