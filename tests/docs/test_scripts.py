"""The two commands of the README do all their set-up, and report clearly what they lack."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from pwd import getpwuid

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ["scripts/demo", "scripts/test", "scripts/check", "scripts/docs", ".ci/run"]
_LEFT_OUT = shutil.ignore_patterns(".*", "benchmarks", "dist", "build", "tests", "__pycache__")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the repository without .venv, as a person has it after cloning."""
    return Path(shutil.copytree(ROOT, tmp_path / "clone", ignore=_LEFT_OUT))


def _run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHON")
    }
    packages = {
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", f"{getpwuid(os.getuid()).pw_dir}/.cache/pip"),
        "PIP_NO_COMPILE": "0",  # pip reads this as "compile: no"; most of what it installs is never imported
    }
    return subprocess.run(
        command,
        cwd=folder,
        env={**inherited, **packages, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_demo_installs_kebab_and_finds_something_in_a_folder_it_has_never_seen(clone: Path, tmp_path: Path) -> None:
    notes = tmp_path / "my notes"
    notes.mkdir()
    (notes / "boat.md").write_text(
        "---\ntags: [sailing]\n---\n# The boat\n\nThe spare anchor is under the port bench.\n", encoding="utf-8"
    )
    (notes / "-- 'odd' (title).md").write_text(
        "# 'raw' AND (\n\nOdd titles must not become odd queries.\n", encoding="utf-8"
    )
    data = tmp_path / "data"
    done = _run(
        ["scripts/demo", "../my notes"],
        clone,
        HOME=str(tmp_path),
        XDG_DATA_HOME=str(data),
        KEBAB_SEARCH_DEFAULT_K="nonsense",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "citation: boat.md:L4-L6" in done.stdout
    assert "kb --db .venv/demo.sqlite search" in done.stdout
    assert not data.exists(), "the demo keeps out of the user's knowledge base"
    (tmp_path / "empty").mkdir()
    done = _run(["scripts/demo", "../empty"], clone, HOME=str(tmp_path))
    empty = f"There is no file in {tmp_path / 'empty'}. .venv/demo.sqlite stays as it was."
    assert (done.returncode, done.stderr.strip()) == (1, empty)
    again = _run([".venv/bin/kb", "--db", ".venv/demo.sqlite", "search", "anchor"], clone, XDG_DATA_HOME=str(data))
    assert "returned: 1" in again.stdout


def test_the_demo_can_print_its_commands_without_running_them() -> None:
    done = _run(["scripts/demo", "--help"], ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("scripts/demo [FOLDER]: ")
    assert "set -euo" not in done.stdout


def test_the_demo_names_a_missing_folder(clone: Path) -> None:
    done = _run(["scripts/demo", "nowhere"], clone)
    assert done.returncode == 2
    assert done.stderr == "There is no folder nowhere.\n"


@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        ("exit 1", "Kebab needs Python 3.11 or newer"),
        ('case "$2" in *ensurepip*) exit 1 ;; esac', "The Python module venv is missing."),
    ],
    ids=["old Python", "no venv module"],
)
def test_a_missing_program_is_reported_in_one_sentence(clone: Path, tmp_path: Path, python: str, sentence: str) -> None:
    stand_in = tmp_path / "python"
    stand_in.write_text(f"#!/bin/sh\n{python}\n")
    stand_in.chmod(0o755)
    done = _run(["scripts/demo"], clone, PYTHON=str(stand_in))
    assert done.returncode == 1
    assert done.stderr.startswith(sentence)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_stops_at_the_first_failure_and_names_no_local_path(name: str) -> None:
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    assert os.access(path, os.X_OK)
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
    for foreign in ("/opt/", "/home/", "/root/", "https://", "http://", "index-url"):
        assert foreign not in text
