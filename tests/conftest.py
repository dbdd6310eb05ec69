"""What many tests share: a home of their own, the sample notes indexed once, and `kb` as a real process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import kebab

settings.register_profile("kebab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kebab")

REPOSITORY = Path(__file__).parent.parent
XDG_VARIABLES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")


@dataclass(frozen=True)
class Ran:
    """What one `kb` process did."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Stdout as the one JSON object it must be."""
        return json.loads(self.out)

    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Kb = Callable[..., Ran]


@pytest.fixture(autouse=True)
def isolated_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the user's files, settings or database; subprocesses inherit this too."""
    home = tmp_path / "home"
    home.mkdir()
    for variable in [name for name in os.environ if name.startswith("KEBAB_")] + ["EDITOR", "VISUAL", "NO_COLOR", "FORCE_COLOR"]:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(home))
    for variable in XDG_VARIABLES:
        monkeypatch.setenv(variable, str(home / variable.split("_")[1].lower()))
    monkeypatch.setenv("KEBAB_EMBEDDING_MODEL", "none")  # see bundled_models
    return home


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the bundled models are unpacked once, for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "model-cache"


@pytest.fixture
def bundled_models(isolated_home: Path, model_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors as every user gets them. Most tests are about something else, and go without to be fast."""
    monkeypatch.delenv("KEBAB_EMBEDDING_MODEL")
    monkeypatch.setenv("XDG_CACHE_HOME", str(model_cache))


@pytest.fixture(scope="session")
def sample_notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of samples/notes that nobody edits."""
    target = tmp_path_factory.mktemp("samples") / "notes"
    shutil.copytree(REPOSITORY / "samples" / "notes", target)
    return target


@pytest.fixture(scope="session")
def sample_db(sample_notes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """samples/notes, indexed. Shared: read it, never write to it."""
    path = tmp_path_factory.mktemp("sample-db") / "samples.sqlite"
    with kebab.open(path) as knowledge_base:
        knowledge_base.ingest(sample_notes)
    return path


@pytest.fixture
def sample_kb(sample_db: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(sample_db) as knowledge_base:
        yield knowledge_base


@pytest.fixture
def kb(tmp_path: Path) -> Kb:
    """Runs `python -m kebab …` in a folder of its own, as a user's shell would."""
    folder = tmp_path / "cwd"
    folder.mkdir()

    def run(*arguments: str | Path, input: str | bytes | None = None, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ran:
        data = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            [sys.executable, "-m", "kebab", *map(str, arguments)],
            input=data if data is not None else b"",
            capture_output=True,
            check=False,
            timeout=60,
            cwd=cwd or folder,
            env={**os.environ, **(env or {})},
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def sample(kb: Kb, sample_db: Path) -> Kb:
    """`kb --db SAMPLES …`"""

    def run(*arguments: str | Path, **options: Any) -> Ran:
        return kb("--db", sample_db, *arguments, **options)

    return run


@pytest.fixture
def write_notes(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """A folder with these files, by relative path."""

    def write(files: Mapping[str, str]) -> Path:
        root = tmp_path / "notes"
        for path, text in files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        return root

    return write
