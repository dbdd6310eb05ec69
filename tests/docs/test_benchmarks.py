"""The benchmarks can be run, so that their published figures can be measured again."""

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
    """Regression: the benchmark inserted rows by the number of columns, which a migration changed."""
    printed = run("vector_latency.py", "--counts", "10000", "--data", str(BENCHMARKS))
    assert "| 10,000 " in printed


@pytest.mark.parametrize(
    "name",
    sorted(path.name for path in BENCHMARKS.glob("*.py") if "measuring.parser(" in path.read_text(encoding="utf-8")),
)
def test_every_benchmark_says_how_it_is_run(name: str) -> None:
    assert f"benchmarks/{name}" in run(name, "--help")
