"""`kb` as a user runs it: real processes, an isolated home folder, and permission bits that hold even for root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import jsonschema
import pytest
from tests.forked_kb import run_kb, start_kb

from kebab.wire import schemas


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schemas.schema(name))


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one object on stdout, after validation against the schema that it names."""
        value = json.loads(self.out)
        validator(value["schema_version"].removesuffix(".v1")).validate(value)
        return value


class User:
    """A user with a home folder, a working folder and a database."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "user"
        self.folder = self.home / "work"
        self.folder.mkdir(parents=True)
        self.notes = self.home / "notes"
        self.notes.mkdir()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("KEBAB_", "XDG_", "ORT_"))},
            "KEBAB_EMBEDDING_MODEL": "none",  # test_vectors.py is about vectors; the others go without, to be fast
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "PYTHONWARNINGS": "error",
        }

    @property
    def database(self) -> Path:
        return self.home / "data" / "kebab" / "kebab.sqlite"

    def arguments(self, *arguments: str | bytes | Path) -> list[str | bytes | Path]:
        return [sys.executable, "-m", "kebab", *arguments]

    def run(
        self,
        *arguments: str | bytes | Path,
        input: bytes = b"",
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        before: Callable[[], object] | None = None,
        timeout: float = 60,
    ) -> Done:
        environment = {**self.environment, **(env or {})}
        folder = cwd or self.folder
        done = run_kb(arguments, input=input, env=environment, cwd=folder, timeout=timeout, before=before)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(
        self, *arguments: str | bytes | Path, env: dict[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return start_kb(arguments, env={**self.environment, **(env or {})}, cwd=self.folder, **options)

    def ask(self, *arguments: str | bytes | Path, **options: Any) -> Any:
        """The validated JSON answer of a command that must succeed."""
        done = self.run(*arguments, "--json", **options)
        assert done.code == 0, done.out + done.err
        return done.json()

    def ingest(self, *arguments: str | bytes | Path, **options: Any) -> Any:
        return self.ask("ingest", *(arguments or (self.notes,)), **options)

    def found(self, query: str, *options: str, **more: Any) -> list[str]:
        """The paths of the hits and of their copies, each once, sorted."""
        hits = self.ask("search", query, "-k", "100", "--match", "all", "--duplicates", "show", *options, **more)[
            "hits"
        ]
        return sorted({hit["doc_path"] for hit in hits})

    def write(self, path: str | bytes, content: str | bytes, folder: Path | None = None) -> Path:
        file = (folder or self.notes) / os.fsdecode(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def counts(self, report: dict[str, Any]) -> dict[str, int]:
        """The counts of an ingest that are not zero."""
        return {name: report[name] for name in ("added", "updated", "unchanged", "removed") if report[name]}

    def skipped(self, report: dict[str, Any]) -> dict[str, list[str]]:
        return {entry["reason"]: entry["examples"] for entry in report["skipped"]}

    @contextmanager
    def open(self, path: Path | None = None) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(path or self.database))
        try:
            yield connection
        finally:
            connection.close()

    def chunks(self, path: Path | None = None) -> list[tuple[str, str, str]]:
        """The source, path and text of every chunk."""
        with self.open(path) as connection:
            rows = connection.execute(
                """SELECT s.name, d.path, c.text FROM chunks c JOIN documents d ON d.id = c.document_id JOIN sources s ON s.id = d.source_id
                   ORDER BY s.name, d.path, c.ordinal"""
            )
            return [tuple(row) for row in rows]

    def check(self, path: Path | None = None) -> None:
        """Checks that the database is sound, and that its text index is exactly that of its chunks."""
        with self.open(path) as connection:
            assert connection.pragma("quick_check") == "ok"
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")

    def fails(self, *arguments: str | bytes | Path, code: str, exit_code: int = 2, **options: Any) -> Done:
        """Checks that a command fails with one sentence and a hint on stderr and, with --json, with only an error.v1 on
        stdout.
        """
        done = self.run(*arguments, "--json", **options)
        assert done.code == exit_code, done.out + done.err
        assert "Traceback" not in done.err, done.err
        error = done.json()
        assert error["schema_version"] == "error.v1"
        assert error["code"] == code, error
        assert error["hint"]
        sentence, hint = done.err.splitlines()
        assert sentence == f"Error: {error['message']}"
        assert hint == f"  {error['hint']}"
        return done


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> User:
    """A user whose notes are indexed, for tests that only read."""
    user = User(tmp_path_factory.mktemp("reader"))
    user.write("git.md", "---\ntitle: Git\ntags: [vcs]\n---\n# Install git\n\nRun the installer.\n")
    user.write("ko.md", "# 문서\n\n문서를 검색하는 방법.\n")
    user.write("code.py", "def install():\n    return 'git'\n")
    user.ingest()
    return user
