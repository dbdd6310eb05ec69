"""Ordinary use, much of it: everything at once, and a month in a minute or two; parts of endurance.py.

A notebook knows what its notes say, so every search and every answer is checked. At the end the index is compared with
a fresh one.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import measuring
from forked import forked
from index_state import contents, fingerprint, problems

from serving import Server, serving

_TIMEOUT_S = 60
_GROWTH_BAR = 1.1
_SYLLABLES = ("kel", "mor", "tav", "rin", "os", "bel", "dun", "far", "gil", "hest", "lorn", "pas")


class Fact(NamedTuple):
    house: str
    phrase: str

    @property
    def question(self) -> str:
        return f"What is the pass phrase of the router in {self.house} cottage?"


class Notebook:
    """Notes about cottages, each with the pass phrase of its router."""

    def __init__(self, folder: Path, count: int, seed: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._chance = random.Random(seed)
        self._prefix = _SYLLABLES[seed % len(_SYLLABLES)]
        self._serial = 0
        self.facts: dict[Path, Fact] = {}
        for _ in range(count):
            self._create()

    def any(self) -> tuple[Path, Fact]:
        return self._chance.choice(list(self.facts.items()))

    def change(self) -> None:
        """Creates, edits, renames or deletes one note; their number stays about the same."""
        self._chance.choice((self._create, self._delete, self._rename, self._edit, self._edit, self._edit))()

    def _create(self) -> None:
        self._serial += 1
        house = "".join(self._chance.choice(_SYLLABLES) for _ in range(4)).capitalize()
        self._write(self._folder / f"area{self._serial % 7}" / f"{house}-{self._serial}.md", house)

    def _edit(self) -> None:
        file, fact = self.any()
        self._write(file, fact.house)

    def _rename(self) -> None:
        self._serial += 1
        file, fact = self.any()
        self.facts[file.rename(file.with_name(f"{fact.house}-{self._serial}.md"))] = self.facts.pop(file)

    def _delete(self) -> None:
        if len(self.facts) > 5:
            file, _ = self.any()
            file.unlink()
            del self.facts[file]

    def _write(self, file: Path, house: str) -> None:
        self._serial += 1
        fact = self.facts[file] = Fact(house, f"{self._prefix}{self._serial}marble")
        file.parent.mkdir(exist_ok=True)
        said = f"The pass phrase of the router in {house} cottage is {fact.phrase}.\n"
        rooms = "".join(f"\n## Room {room}\n\nPainted in shade {self._serial * room % 89}.\n" for room in range(1, 6))
        file.write_text(f"# {house} cottage\n\n{said}{rooms}", encoding="utf-8")


@dataclass
class Result:
    """Counts of one part. Every count but `tries` is one of failures."""

    tries: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    detail: str = ""


def together(work: Path, seconds: float) -> Result:
    """Readers, writers, a watcher and a server on one database, while files change."""
    result = Result()
    db, notes = work / "kb.sqlite", work / "notes"
    stable, changing = Notebook(notes / "stable", 30, seed=1), Notebook(notes / "changing", 40, seed=2)
    facts = sorted(stable.facts.items())
    kb = _Commands(db, result)
    kb.run("ingest", str(notes))
    end = time.monotonic() + seconds
    with ExitStack() as stack:
        server = stack.enter_context(serving(db, "--quiet"))
        watcher = stack.enter_context(_Watcher(kb, notes))

        def until_the_end(action: Callable[[Path, Fact], None], first: int) -> None:
            number = first
            while time.monotonic() < end:
                try:
                    action(*facts[number % len(facts)])
                except Exception as error:  # noqa: BLE001 - a thread that ends early must not go unnoticed
                    result.failed.append(f"{action}: {error!r}")
                number += 1

        def ingest(file: Path, fact: Fact) -> None:
            kb.run("ingest", str(notes))

        def change(file: Path, fact: Fact) -> None:
            changing.change()
            time.sleep(0.1)

        web = _Web(server, result)
        actions = [kb.search, kb.search, kb.ask, web.search, web.ask, ingest, change]
        threads = [threading.Thread(target=until_the_end, args=(what, 4 * i)) for i, what in enumerate(actions)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 2 * _TIMEOUT_S)
        expected = _fresh(kb, work, notes)
        wait_until = time.monotonic() + 30
        while fingerprint(db, "marble", "cottage") != expected and time.monotonic() < wait_until:
            time.sleep(0.5)  # the watcher is still at the last changes
        watcher.stop(result)
        for file, fact in sorted(changing.facts.items()):
            web.search(file, fact)
    _compare(result, db, work / "fresh.sqlite", expected)
    return result


def month(work: Path, seconds: float, days: int = 30) -> Result:
    """Edits, ingests, searches and asks through a server that keeps running, and one that is restarted every day."""
    result = Result()
    db, notes = work / "kb.sqlite", work / "notes"
    book = Notebook(notes, 120, seed=3)
    kb = _Commands(db, result)
    kb.run("ingest", str(notes))
    deadline = time.monotonic() + seconds
    memory: list[float] = []
    changes = day = 0
    with serving(db, "--allow-write", "--quiet") as server:
        web = _Web(server, result)
        for day in range(1, days + 1):
            for _ in range(4):
                for _ in range(20):
                    book.change()
                changes += 20
                web.ingest(notes)
                for number in range(20):
                    (web.ask if number % 5 == 0 else web.search)(*book.any())
                memory.append(server.memory_mb())
            with _restarted(db) as restarted:
                _Web(restarted, result).search(*book.any())
                if day % 2:
                    restarted.process.kill()
            if day % 7 == 0:
                kb.run("index", "--optimize")
                kb.run("backup", str(work / "backup.sqlite"), "--force")
                if contents(work / "backup.sqlite") != contents(db):
                    result.lost.append(f"the backup of day {day} differs from the database")
            if time.monotonic() > deadline:
                break
    result.tries += changes
    quarter = max(1, len(memory) // 4)
    first, last = max(memory[:quarter]), max(memory[-quarter:])
    result.detail = f"{day} days, {changes:,} edits; server {first:.0f} MB in the first quarter, {last:.0f} in the last"
    if last > first * _GROWTH_BAR:
        result.failed.append(f"the memory of the server grew from {first:.0f} to {last:.0f} MB")
    _compare(result, db, work / "fresh.sqlite", _fresh(kb, work, notes))
    return result


@contextmanager
def _restarted(db: Path) -> Iterator[Server]:
    """Another server on the same database, as a fork."""
    read, write = os.pipe()
    environment = {**measuring.environment(), "KEBAB_EMBEDDING_MODEL": "none"}
    command = ["--db", str(db), "serve", "--port", "0", "--quiet"]
    process = forked(command, environment=environment, output=write, errors=2)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as output:
        address = urlsplit(output.readline().strip())
        try:
            yield Server(address.hostname or "", address.port or 0, process)
        finally:
            process.terminate()
            process.join()


def _fresh(kb: _Commands, work: Path, notes: Path) -> str:
    _Commands(work / "fresh.sqlite", kb.result).run("ingest", str(notes))
    return fingerprint(work / "fresh.sqlite", "marble", "cottage")


def _compare(result: Result, db: Path, fresh: Path, expected: str) -> None:
    there, wanted = contents(db), contents(fresh)
    result.lost += sorted(wanted.keys() - there.keys())
    result.doubled += sorted(there.keys() - wanted.keys())
    result.failed += [f"{key} is another" for key in wanted.keys() & there.keys() if wanted[key] != there[key]]
    result.failed += problems(db)
    if fingerprint(db, "marble", "cottage") != expected:
        result.failed.append("the index differs from a fresh one")


class _Commands:
    """`kb` as processes; whatever fails or answers wrongly goes into the result."""

    def __init__(self, db: Path, result: Result) -> None:
        self._db = db
        self.result = result

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [measuring.kb(), "--db", str(self._db), "--json", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**measuring.environment(), "KEBAB_EMBEDDING_MODEL": "none"},
        )

    def run(self, *arguments: str) -> Any:
        """The output; None if the command failed."""
        self.result.tries += 1
        with self.started(*arguments) as process:
            try:
                output, errors = process.communicate(timeout=_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                output, errors = "", f"still running after {_TIMEOUT_S} s"
        if process.returncode:
            self.result.failed.append(f"kb {' '.join(arguments)}: exit {process.returncode}: {errors[-300:]}")
            return None
        return json.loads(output)

    def search(self, file: Path, fact: Fact) -> None:
        _check_search(self.result, file, fact, self.run("search", fact.phrase))

    def ask(self, _file: Path, fact: Fact) -> None:
        _check_answer(self.result, fact, self.run("ask", fact.question))


class _Web:
    """A client that opens a connection for each request: a server closes those that are idle for some seconds."""

    def __init__(self, server: Server, result: Result) -> None:
        self._server = server
        self._result = result

    def search(self, file: Path, fact: Fact) -> None:
        _check_search(self._result, file, fact, self._call("GET", f"/api/v1/search?query={quote(fact.phrase)}"))

    def ask(self, _file: Path, fact: Fact) -> None:
        _check_answer(self._result, fact, self._call("GET", f"/api/v1/ask?question={quote(fact.question)}"))

    def ingest(self, folder: Path) -> None:
        job = self._call("POST", "/api/v1/ingest", {"paths": [str(folder)], "embed": False})
        until = time.monotonic() + _TIMEOUT_S
        while job and job["state"] in ("queued", "running") and time.monotonic() < until:
            time.sleep(0.02)
            job = self._call("GET", f"/api/v1/ingest/{job['job_id']}")
        if job and job["state"] != "done":
            self._result.failed.append(f"ingest: {job}")

    def _call(self, method: str, path: str, body: object = None) -> Any:
        """The answer, or None."""
        self._result.tries += 1
        try:
            with closing(self._server.connection()) as connection:
                sent = None if body is None else json.dumps(body)
                connection.request(method, path, sent, {"Accept": "application/json"})
                response = connection.getresponse()
                answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._result.failed.append(f"{path}: {error!r}")
            return None
        if response.status not in (200, 202):
            self._result.failed.append(f"{path}: {response.status} {answer[:300]!r}")
            return None
        return json.loads(answer)


class _Watcher:
    """`kb watch`, whose reports are read as they come."""

    def __init__(self, kb: _Commands, notes: Path) -> None:
        self._process = kb.started("watch", str(notes))
        self._lines: list[str] = []
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._lines.extend, args=(self._process.stdout,), daemon=True)

    def __enter__(self) -> _Watcher:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def stop(self, result: Result) -> None:
        result.tries += 1
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(_TIMEOUT_S)
        self._reader.join(_TIMEOUT_S)
        reports = [json.loads(line) for line in self._lines]
        result.failed += [f"kb watch: {report}" for report in reports if report["schema_version"] != "ingest_report.v1"]
        result.detail = f"{len(reports)} reports of the watcher"
        if code not in (0, 130):
            result.failed.append(f"kb watch: exit {code}")


def _check_search(result: Result, file: Path, fact: Fact, answer: Any) -> None:
    if answer is None:
        return
    found = [hit["doc_path"] for hit in answer["hits"] if fact.phrase in hit["text"]]
    if not found:
        result.lost.append(f"a search for {fact.phrase} did not find {file.name}")
    elif len(found) > 1:
        result.doubled.append(f"a search for {fact.phrase} found {found}")
    elif not found[0].endswith(file.name):
        result.failed.append(f"a search for {fact.phrase} found {found[0]} instead of {file.name}")


def _check_answer(result: Result, fact: Fact, answer: Any) -> None:
    if answer is not None and fact.phrase not in (answer["answer"] or ""):
        result.failed.append(f"{fact.question}: {answer['answer'] or answer['refusal_message']}")
