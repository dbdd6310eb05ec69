"""The commands shown in the documentation, as something that can be run.

A ```console block is a session: `$ command`, then what it prints (stdout and stderr as they come). A ```sh block is
commands only, a ```python block one program. The blocks of a document run one after another in a fresh home folder that
has the sample notes in ~/notes, and a copy of the repository's samples in ~/kebab, where they start. They run with the
default models, whose cache is the one thing that documents share: unpacking takes seconds. A document that is about a
Qdrant server is given one, whose address stands in it as qdrant://127.0.0.1:6333. Directly above a block may stand

    <!-- exits with 2 -->            of its last command; otherwise every command must exit with 0
    <!-- not run: the reason -->     for what needs a network or a minute
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "docs/quickstart.md", "docs/guide.md")
WITH_SERVER = ("docs/scale-out.md",)
SHOWN_SERVER = "127.0.0.1:6333"

_FENCE = re.compile(r"(?P<fence>`{3,})(?P<language>console|sh|python)$")
_EXIT = re.compile(r"<!-- exits with (\d+) -->")
_NOT_RUN = re.compile(r"<!-- not run: .+ -->")
_FILE_TIME = 1717200000  # 1 June 2024: notes without a date of their own go by the file's


def _embedding_seconds(made: re.Match[str]) -> str:
    """About what so many vectors take on one core, and always the same."""
    return f"{made[1]} in {0.4 + int(made[2].replace(',', '')) / 20:.1f} s"


# What may differ between two runs, and how the documentation writes it.
_VARYING: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\bin \d+\.\d s\b(?:, \d+ per second)?"), "in 0.1 s"),
    (re.compile(r"\b(([\d,]+) vectors? made) in 0\.1 s"), _embedding_seconds),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "2026-01-31T09:30:00Z"),
    (re.compile(r"\b\d+\.\d GB free"), "120.5 GB free"),
    (re.compile(r"\b\d+\.\d MB\b"), "0.4 MB"),
    (re.compile(r"\t[0-9a-f]{10}\t(?=2026-01-31)"), "\t3f9a0c41d2\t"),
    (re.compile(r"Python \d+\.\d+\.\w+, SQLite \d+\.\d+\.\d+"), "Python 3.11.9, SQLite 3.50.4"),
    (re.compile(r"Python \d+\.\d+\.\w+(?=, Qdrant)"), "Python 3.11.9"),
    (re.compile(r'("?(?:took_ms|elapsed_s|seconds)"?: )[\d.e-]+'), r"\g<1>1.2"),
)
_HOME_IN_DOCUMENTS = "/home/you"
_LAST_DIGITS = re.compile(r"(vector: rank \d+, score \d\.\d\d)\d+")
"""Of a cosine: they depend on the processor that computed it."""


@dataclass(frozen=True)
class Command:
    text: str
    line: int
    """Where it stands in the document, counted from 1."""
    exit_code: int
    shown: str | None
    """What the document says it prints; None where it says nothing."""


@dataclass(frozen=True)
class Block:
    language: str
    first: int
    """Index of the first line inside the fence, counted from 0; `end` is that of the closing fence."""
    end: int
    exit_code: int
    is_run: bool
    lines: tuple[str, ...]

    def commands(self) -> list[Command]:
        if self.language == "python":
            return [Command("\n".join(self.lines), self.first + 1, self.exit_code, None)]
        found = list(_session(self) if self.language == "console" else _script(self))
        return [
            Command(text, line, self.exit_code if number == len(found) else 0, shown)
            for number, (text, line, shown) in enumerate(found, start=1)
        ]


@dataclass(frozen=True)
class Outcome:
    command: Command
    exit_code: int
    printed: str

    @property
    def as_documented(self) -> bool:
        shown = self.command.shown
        return self.exit_code == self.command.exit_code and (
            shown is None or _comparable(shown) == _comparable(self.printed)
        )


def _comparable(printed: str) -> str:
    return _LAST_DIGITS.sub(r"\1", printed)


@dataclass
class Sandbox:
    """A home folder of its own, in which commands run one after another; `cd` carries over."""

    home: Path
    models: Path
    """The cache folder of the models."""
    server: str = SHOWN_SERVER
    """Host and port of the Qdrant server that commands are about."""
    kb: Sequence[str] = (sys.executable, "-m", "kebab")
    """The program that is run as kb."""
    place: Path = field(init=False)

    def __post_init__(self) -> None:
        self.place = self.home / "kebab"
        shutil.copytree(ROOT / "samples", self.place / "samples")
        shutil.copytree(ROOT / "samples" / "notes", self.home / "notes")
        for path in self.home.rglob("*"):
            os.utime(path, (_FILE_TIME, _FILE_TIME))
        programs = self.home / ".bin"
        programs.mkdir()
        for name in ("kb", "kebab"):
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(self.kb)} "$@"\n')
            (programs / name).chmod(0o755)

    def run(self, command: Command, language: str) -> Outcome:
        text = command.text.replace(SHOWN_SERVER, self.server)
        if language == "python":
            arguments = [sys.executable, "-c", text]
        else:
            arguments = ["bash", "-c", f'set -o pipefail\n{text}\nstatus=$?\npwd >"$HOME/.place"\nexit $status']
        done = subprocess.run(
            arguments,
            cwd=self.place,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
        if language != "python":
            self.place = Path((self.home / ".place").read_text().strip())
        return Outcome(command, done.returncode, self._normalised(done.stdout.decode("utf-8", "replace")))

    def _environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PYTHONPATH", "ORT_DISABLE_TELEMETRY") if name in os.environ}
        path = os.pathsep.join(
            [str(self.home / ".bin"), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        )
        return {
            **inherited,
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.models),
            "PATH": path,
            "LANG": "C.UTF-8",
        }

    def _normalised(self, printed: str) -> str:
        printed = printed.replace(str(self.home), _HOME_IN_DOCUMENTS).replace(self.server, SHOWN_SERVER)
        for pattern, written in _VARYING:
            printed = pattern.sub(written, printed)
        return _trimmed(printed)


def _trimmed(printed: str) -> str:
    """White space at the end of a line or of everything cannot be seen, and editors take it away."""
    return "\n".join(line.rstrip() for line in printed.split("\n")).rstrip("\n")


def blocks(document: str) -> Iterator[Block]:
    lines = document.split("\n")
    number = 0
    while number < len(lines):
        opening = _FENCE.fullmatch(lines[number])
        number += 1
        if opening is None:
            continue
        end = lines.index(opening["fence"], number)
        remark = lines[number - 2] if number >= 2 else ""
        exits = _EXIT.fullmatch(remark)
        is_run = _NOT_RUN.fullmatch(remark) is None
        yield Block(opening["language"], number, end, int(exits[1]) if exits else 0, is_run, tuple(lines[number:end]))
        number = end + 1


def _session(block: Block) -> Iterator[tuple[str, int, str]]:
    """(command, line, output) for every `$ ` line; a command that ends with a backslash goes on after `> `."""
    lines = [(number, line) for number, line in enumerate(block.lines, start=block.first + 1)]
    while lines:
        number, line = lines.pop(0)
        if not line.startswith("$ "):
            raise ValueError(f"line {number}: a session begins with '$ '")
        command = line[2:]
        while command.endswith("\\"):
            command += "\n" + lines.pop(0)[1].removeprefix("> ")
        output = []
        while lines and not lines[0][1].startswith("$ "):
            output.append(lines.pop(0)[1])
        yield command, number, _trimmed("\n".join(output))


def _script(block: Block) -> Iterator[tuple[str, int, None]]:
    lines = iter(enumerate(block.lines, start=block.first + 1))
    for number, line in lines:
        command = line
        while command.endswith("\\"):
            command += "\n" + next(lines)[1]
        if command.strip() and not command.startswith("#"):
            yield command, number, None


def run_document(document: str, models: Path, **options: Any) -> Iterator[tuple[Block, list[Outcome]]]:
    """Every block that can be run, with what its commands did; `models` and the options are those of the sandbox."""
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(Path(folder).resolve() / "home", models, **options)
        for block in blocks(document):
            if block.is_run:
                yield block, [sandbox.run(command, block.language) for command in block.commands()]


def refreshed(path: Path, models: Path, server: str = SHOWN_SERVER) -> str:
    """The document with the output of its sessions as the program gives it now. A command that fails is not written
    down.
    """
    document = path.read_text(encoding="utf-8")
    lines = document.split("\n")
    for block, outcomes in reversed(list(run_document(document, models, server=server))):
        for outcome in outcomes:
            if outcome.exit_code != outcome.command.exit_code:
                place = f"{path}:{outcome.command.line}"
                raise SystemExit(
                    f"{place}: {outcome.command.text}\nexited with {outcome.exit_code}:\n{outcome.printed}"
                )
        if block.language == "console":
            lines[block.first : block.end] = _written(outcomes)
    return "\n".join(lines)


def _written(outcomes: list[Outcome]) -> list[str]:
    written: list[str] = []
    for outcome in outcomes:
        first, *rest = outcome.command.text.split("\n")
        written += [f"$ {first}", *(f"> {line}" for line in rest)]
        printed = (outcome.command.shown or "") if outcome.as_documented else outcome.printed
        written += printed.split("\n") if printed else []
        if outcome is not outcomes[-1] and outcome.printed:
            written.append("")
    return written
