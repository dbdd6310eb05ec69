"""Real commands that are killed, or get an I/O error, at a chosen system call; part of endurance.py.

fault_shim.c counts a command's calls below its home folder and strikes at the Nth. What was there before must be there
afterwards, the database must be sound, and the command run again must end in the index that a fresh one has.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from itertools import islice, zip_longest
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import apsw
import measuring
from forked import forked
from index_state import Contents, contents, digest, fingerprint, problems, write_notes

_KILLS = ("killed before", "killed after", "killed in half")
FAULTS = (*_KILLS, "no space", "I/O error", "short write")
_WRITES_ONLY = ("killed in half", "no space", "short write")
_TIMEOUT_S = 60
_STATE = struct.Struct("3l")
_QUERIES = ("heron3", "river bank", "edited", "gauge")


class Scenario(NamedTuple):
    """Commands, one per line; NOTES, REPOSITORY and BACKUP stand for paths. The line "edit" changes notes and
    repository, "log" leaves text in the database's log as a killed writer does.
    """

    name: str
    before: str
    """Makes what the command finds."""
    command: str
    """Gets struck."""
    fresh: str
    """Makes the expected index from nothing."""
    again: str = ""
    """Completes what was struck; the command itself unless given."""
    share: float = 1
    """How many of the points it gets, against the others."""
    own_cache: bool = False
    """Whether mirrors and models are below the folder where calls count."""
    vectors: bool = False


_INGEST = "ingest NOTES"
_ADD = "lib add REPOSITORY --id /own/gauge"
_BOTH = f"{_INGEST}\n{_ADD}"
SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("first ingest", "", _INGEST, _INGEST, share=3),
        Scenario("edits", f"{_INGEST}\nedit", _INGEST, _INGEST, share=4),
        Scenario("vectors of edits", f"{_INGEST}\nedit", _INGEST, _INGEST, vectors=True),
        Scenario("first vectors", f"{_INGEST} --no-embed", _INGEST, _INGEST, share=0.3, own_cache=True, vectors=True),
        Scenario("lib add", _INGEST, _ADD, _BOTH, share=2, own_cache=True),
        Scenario("lib refresh", f"{_BOTH}\nedit\n{_INGEST}", "lib refresh /own/gauge", _BOTH, share=2, own_cache=True),
        Scenario("rebuild", _INGEST, "index --rebuild-fts", _INGEST, share=2),
        Scenario("optimize", f"{_INGEST}\nedit\n{_INGEST}", "index --optimize", _INGEST, share=2),
        Scenario("backup", f"{_INGEST}\nbackup BACKUP\nedit\n{_INGEST}", "backup BACKUP --force", _INGEST, share=2),
        Scenario("reset", f"{_INGEST}\nlog", "reset --yes", _INGEST, again=f"reset --yes\n{_INGEST}"),
    )
}


class Point(NamedTuple):
    scenario: str
    fault: str
    call: int
    what: str
    """The call, as the shim logs it."""


class Outcome(NamedTuple):
    """The result of one fault; texts are empty if nothing is wrong."""

    point: Point
    lost: str = ""
    doubled: str = ""
    failed: str = ""


def compiled_shim(folder: Path) -> Path:
    """Raises SystemExit with what to install if there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("The fault points need a C compiler (cc).\n  On Debian: sudo apt install gcc libc6-dev")
    shim = folder / "fault_shim.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(shim), str(measuring.BENCHMARKS / "fault_shim.c"), "-ldl"]
    subprocess.run(command, check=True, timeout=_TIMEOUT_S)
    return shim


def strike(work: Path, scenarios: Sequence[str], points: int, deadline: float) -> list[Outcome]:
    """`points` faults at most, spread over scenarios, kinds of faults and calls; fewer when the time is up."""
    shim = compiled_shim(work)
    outcomes: list[Outcome] = []
    os.environ["LD_PRELOAD"] = str(shim)  # of the workers, whose forks get struck
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        made = pool.map(partial(_Bench, work, shim), (SCENARIOS[name] for name in scenarios))
        benches = dict(zip(scenarios, made, strict=True))
        planned = iter(_planned({name: bench.calls for name, bench in benches.items()}))
        while time.monotonic() < deadline and (some := list(islice(planned, min(20, points - len(outcomes))))):
            struck = pool.map(_Bench.struck, (benches[point.scenario] for point in some), some)
            outcomes += [outcome for outcome in struck if outcome is not None]
    del os.environ["LD_PRELOAD"]
    return outcomes


def _planned(calls: Mapping[str, Sequence[str]]) -> list[Point]:
    """In an order whose every beginning is spread over scenarios by their shares, faults, kinds of calls and files."""
    chance = random.Random(19)
    ranked: list[tuple[float, Point]] = []
    for scenario, made in calls.items():
        groups: dict[str, list[Point]] = defaultdict(list)
        for number, what in enumerate(made, 1):
            kind, _, path = what.partition(" ")
            for fault in FAULTS:
                if kind == "write" or fault not in _WRITES_ONLY:
                    groups[f"{fault} {kind} {Path(path).suffix}"].append(Point(scenario, fault, number, what))
        for group in groups.values():
            chance.shuffle(group)
        turns = list(groups.values())
        chance.shuffle(turns)
        row = [point for turn in zip_longest(*turns) for point in turn if point is not None]
        ranked += [(rank / SCENARIOS[scenario].share, point) for rank, point in enumerate(row)]
    return [point for _, point in sorted(ranked)]


class _Bench:
    """One scenario: its files, and their state before and after. Each worker has its own home folder."""

    def __init__(self, work: Path, shim: Path, scenario: Scenario) -> None:
        self._shim = shim
        self._scenario = scenario
        self._folder = work / scenario.name.replace(" ", "-")
        self._template = self._folder / "template"
        self._notes, self._repository = self._folder / "notes", self._folder / "repository"
        write_notes(self._notes, korean=not scenario.vectors)  # the model for Korean takes long to load
        write_notes(self._repository / "docs", words="gauge")
        _git(self._repository, "init", "--quiet")
        _commit(self._repository)
        self._empty_home()
        self._run_lines(scenario.before)
        shutil.copytree(self._home, self._template)
        self._before = self._held()
        code, _, errors = self._run_faulty("", 0)
        if code:
            raise RuntimeError(f"{scenario.name} fails without any fault: {errors}")
        self.calls = self._beside("log").read_text(errors="replace").splitlines()
        self._after = self._held()
        self._run_lines(scenario.again or scenario.command)
        self._final, self._files = self._held(), self._file_names()
        self._empty_home()
        self._run_lines(scenario.fresh)
        self._expected = fingerprint(self._db, *_QUERIES)

    @property
    def _home(self) -> Path:
        return self._beside("home")

    @property
    def _db(self) -> Path:
        return self._home / "kb.sqlite"

    @property
    def _backup(self) -> Path:
        return self._home / "backup.sqlite"

    def _beside(self, name: str) -> Path:
        return self._folder / f"{name}-{os.getpid()}"

    def struck(self, point: Point) -> Outcome | None:
        """None when the command ended before the call was reached."""
        self._empty_home()
        shutil.copytree(self._template, self._home, dirs_exist_ok=True)
        try:
            code, output, errors = self._run_faulty(point.fault, point.call)
            if not self._fired():
                return None
            failed = _judged(point.fault, code, output, errors)
            now = self._held()
            lost, doubled = self._compared(now)
            if code == 0 and now != self._after:
                lost = lost or "the command said that it was done, and it was not"
            failed = failed or "; ".join([*problems(self._db), *problems(self._backup)])
            self._run_lines(self._scenario.again or self._scenario.command)
            at_last = self._held()
            lost = lost or _listed("missing in the end", self._final.keys() - at_last.keys())
            doubled = doubled or _listed("too much in the end", at_last.keys() - self._final.keys())
            if at_last != self._final or fingerprint(self._db, *_QUERIES) != self._expected:
                failed = failed or "the index differs from a fresh one"
            failed = failed or _listed("left behind", self._file_names() - self._files)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong after a fault is a finding
            return Outcome(point, failed=f"{type(error).__name__}: {error}")
        return Outcome(point, lost, doubled, failed)

    def _compared(self, now: Contents) -> tuple[str, str]:
        """The documents that are lost or wrong, and those that should not exist."""
        known = {key: {self._before.get(key), self._after.get(key)} for key in self._before | self._after}
        lost = {key for key, values in known.items() if now.get(key) not in values}
        return _listed("gone or broken", lost), _listed("unknown", now.keys() - known.keys())

    def _held(self) -> Contents:
        backup = {"the backup": digest(sorted(contents(self._backup).items()))} if self._backup.exists() else {}
        return {**contents(self._db), **backup}

    def _file_names(self) -> set[str]:
        return {path.name for path in self._home.iterdir()}

    def _empty_home(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
        self._home.mkdir()

    def _arguments(self, line: str) -> list[str]:
        """`notes` are two folders, so that an ingest is several transactions."""
        places = {
            "NOTES": [str(self._notes / name) for name in ("house", "work")],
            "REPOSITORY": [self._repository.as_uri()],
            "BACKUP": [str(self._backup)],
        }
        return ["--db", str(self._db), "--json", *(part for word in line.split() for part in places.get(word, [word]))]

    def _environment(self) -> dict[str, str]:
        cache = self._home if self._scenario.own_cache else self._folder
        own = {
            "XDG_CACHE_HOME": str(cache / "cache"),
            "XDG_DATA_HOME": str(self._home / "data"),
            "KEBAB_EMBEDDING_MODEL": "bundled" if self._scenario.vectors else "none",
        }
        return {**measuring.environment(), **own}

    def _run_lines(self, lines: str) -> None:
        """In this process, which has everything imported already."""
        from kebab.interfaces.cli.main import run

        os.environ.update(self._environment())
        for line in lines.splitlines():
            if line == "edit":
                _edit(self._notes)
                _edit(self._repository / "docs")
                _commit(self._repository)
                continue
            if line == "log":
                _leave_log(self._db)
                continue
            said = StringIO()
            with redirect_stdout(said), redirect_stderr(said):
                code = run(self._arguments(line))
            if code:
                raise RuntimeError(f"kb {line} failed: {said.getvalue()[-1000:]}")
            if line.startswith("reset") and (left := self._file_names() - {"kb.sqlite.lock"}):  # which holds no text
                raise RuntimeError(f"kb reset left {left} behind")

    def _run_faulty(self, fault: str, call: int) -> tuple[int, str, str]:
        """Exit code, output and errors of the command; -1 when it had to be stopped."""
        state, log = self._beside("state"), self._beside("log")
        state.write_bytes(bytes(64))
        log.write_bytes(b"")
        shim = {
            "LD_PRELOAD": str(self._shim),
            "FAULT_UNDER": str(self._home),
            "FAULT_STATE": str(state),
            "FAULT_LOG": str(log),
            "FAULT_AT": str(call),
            "FAULT_DO": fault,
        }
        arguments = self._arguments(self._scenario.command)
        environment = {**self._environment(), **shim}
        with TemporaryFile() as output, TemporaryFile() as errors:
            start = _fresh if self._scenario.vectors else _forked  # a fork would lack the threads of the model
            code = start(arguments, environment, output.fileno(), errors.fileno())
            for file in (output, errors):
                file.seek(0)
            said = [file.read().decode(errors="replace") for file in (output, errors)]
        return (-1, "", f"still running after {_TIMEOUT_S} s") if code is None else (code, said[0], said[1])

    def _fired(self) -> bool:
        return bool(_STATE.unpack_from(self._beside("state").read_bytes())[2])


def _fresh(arguments: Sequence[str], environment: Mapping[str, str], output: int, errors: int) -> int | None:
    """The exit code; None if the command had to be stopped."""
    command = [measuring.kb(), *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment, start_new_session=True
    ) as process:
        try:
            return process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None


def _forked(arguments: Sequence[str], environment: Mapping[str, str], output: int, errors: int) -> int | None:
    """The exit code; None if the command had to be stopped."""
    process = forked(
        arguments,
        environment=environment,
        output=output,
        errors=errors,
        before=lambda: ctypes.CDLL(None).fault_shim_start(),
    )
    process.join(_TIMEOUT_S)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return process.exitcode


def _judged(fault: str, code: int, output: str, errors: str) -> str:
    """The fault in how the command ended, if any."""
    if fault in _KILLS:
        return "" if code == -signal.SIGKILL else f"exit {code} after a kill: {errors[-300:]}"
    if "Traceback" in errors or code not in (0, 2):
        return f"exit {code}: {errors[-600:]}"
    if code == 0:
        return ""
    try:
        error = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        return f"exit 2 without an error object: {output[-300:]!r} {errors[-300:]!r}"
    return f"an error without a type: {error}" if error["code"] in ("internal", "kebab_error") else ""


def _listed(what: str, keys: set[str]) -> str:
    return f"{len(keys)} {what}: {', '.join(sorted(keys)[:3])}" if keys else ""


def _edit(folder: Path) -> None:
    """Of the notes written by `write_notes`: changed, new, renamed and deleted ones."""
    files = sorted(folder.rglob("*.md"))
    for file in files[:3]:
        file.write_text(file.read_text() + "\nAn edited paragraph about the river bank.\n")
    for file in files[3:5]:
        file.unlink()
    files[5].rename(files[5].with_name("renamed.md"))
    for file in files[6:8]:
        file.with_name(f"new-{file.name}").write_text(f"# New\n\nAn edited note beside {file.stem}.\n")


def _leave_log(db: Path) -> None:
    with closing(apsw.Connection(str(db))) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        for statement in ("CREATE TABLE scratch (text)", "DROP TABLE scratch"):
            connection.execute(statement)


def _commit(repository: Path) -> None:
    _git(repository, "add", "--all")
    _git(repository, "-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "State")


def _git(repository: Path, *arguments: str) -> None:
    own = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "-C", str(repository), *arguments], check=True, timeout=_TIMEOUT_S, env=own)
