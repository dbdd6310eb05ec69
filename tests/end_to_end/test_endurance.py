"""The endurance suite runs, and its first few faults lose nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parents[2] / "benchmarks" / "endurance.py"


@pytest.mark.skipif(shutil.which("cc") is None, reason="the faults need a C compiler")
def test_kills_errors_and_a_day_of_use_lose_and_double_nothing() -> None:
    """Regression: a reset that was killed left the text in the log behind, and one that got an I/O error a traceback."""
    few = ["--parts", "faults,together,month", "--scenarios", "edits,rebuild,optimize,reset", "--points", "24"]
    command = [sys.executable, str(SUITE), *few, "--seconds", "40", "--data", str(SUITE.parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split("|")[1:3] for line in done.stdout.splitlines() if line.startswith("| ")]
    tries = {name.strip(): int(count.replace(",", "")) for name, count in rows[1:]}
    assert tries["killed before"] > 0
    assert tries["month"] > 100
