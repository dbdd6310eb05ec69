"""No file stops the run: its content and the behaviour of its parser only decide its own outcome in the report."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.parsing.pdf_bytes import make_pdf
from tests.parsing.test_damaged_files import SAMPLES as DAMAGED

import kebab
from kebab.chunking.by_structure import StructureChunker
from kebab.core.documents import ParsedDocument
from kebab.core.errors import NothingIndexable, SourceError
from kebab.core.ports import TreeFile
from kebab.core.search import SearchFilters
from kebab.ingest.report import IngestReport
from kebab.parsing import markdown
from kebab.parsing.markdown import parse_markdown
from kebab.parsing.registry import all_parsers, parser_for
from kebab.sources.origin import FolderTree

YAML = b"---\ntitle: Tapir\ndate: 2024-05-31\ntags: [a, b]\nmore: &m {x: 1}\nagain:\n  <<: *m\nn: 1.5\n---\n# Tapir\n\nText.\n"
TOML = b'+++\ntitle = "Tapir"\ndate = 2024-05-31\ntags = ["a"]\n[more.of.it]\nx = 1\n[[list]]\ny = {z = 1.5}\n+++\n# Tapir\n'
SAMPLES = {
    **DAMAGED,
    "yaml.md": YAML,
    "toml.mdx": TOML,
    "a.pdf": make_pdf([["Hello okapi"], ["Second page"]]),
    "a.html": b"<html><head><title>T</title></head><body><h1>H</h1><p>Text <b>bold</b><table><tr><td>1</table><pre>x\ny</pre>",
    "a.csv": b'name,"value, of it"\r\n"a ""b""",2\r\n',
    "a.tsv": b"a\tb\n1\t2\n",
    "a.rst": b"Title\n=====\n\n.. code-block:: c\n\n   int x;\n\nText::\n\n  more\n",
    "a.org": b"* Title :tag:\n:PROPERTIES:\n:ID: 1\n:END:\n#+BEGIN_SRC c\nint x;\n#+END_SRC\n",
    "a.txt": "Plain text.\n\n\ud55c\uad6d\uc5b4 \ubb38\uc7a5\uc774\ub2e4.\n".encode("cp949"),
    "a.json": b'{"a": [1, 2, {"b": null}]}',
    "run": b"#!/bin/sh\necho hello\n",
    "kebab.json": json.dumps(
        {"projectTitle": "T", "folders": ["docs"], "excludeFiles": ["*.x"], "rules": ["r"]}
    ).encode(),
}
PIECES = [
    *(f"x: {tag} {value}\n".encode() for tag in ("!!timestamp", "!!bool", "!!int", "!!float", "!!set", "!!omap", "!!binary", "!!null", "")
      for value in ('""', "-", "_", "soon", "1:60:60.5", "0x", "[a]", "{<<: [1]}", "9" * 400, "2001-13-14t21:59:43+99:99", "*m")),
    b"a" + b".a" * 2000 + b" = 1\n", b"[[a.b]]\n", b"x = 1979-05-27T99:99:99Z\n", b"<<: *m\n", b"---\n", b"+++\n", b"\xff\xfe", b"\0", b"\xed\xa0\x80",
    b"\\ud800", b"[" * 3000, b"{" * 3000, b"<div>" * 2000, b"> " * 2000, b"- " * 2000, b"<!ENTITY a '&b;'>", b"&#xFFFFFFFF;", b"&#0;", b"\x1b[31m", b"1e999",
    b"NaN", b"-0", b'"', b"'", b"```", b"\r", b"\x0c", b"\x85", "\u2028\ufeff\u202e\U000e0041".encode(), b"Content-Type: multipart/mixed; boundary=\"\"\r\n",
    b"=?utf-8?q?=ZZ?=", b"obj << /Length 99999999 >>", b"PK\x01\x02", b"9" * 5000,
]  # fmt: skip
NAMES = sorted(SAMPLES)
PLACE = st.floats(0, 1, exclude_max=True)
CHANGE = st.one_of(
    st.tuples(st.just("put"), PLACE, st.sampled_from(PIECES) | st.binary(max_size=20)),
    st.tuples(st.just("over"), PLACE, st.sampled_from(PIECES) | st.binary(min_size=1, max_size=4)),
    st.tuples(st.just("cut"), PLACE, st.integers(1, 300)),
    st.tuples(st.just("twice"), PLACE, st.integers(1, 300)),
    st.tuples(st.just("front"), st.just(0.0), st.sampled_from(PIECES)),
)
MUTATED = st.tuples(st.sampled_from(NAMES), st.lists(CHANGE, max_size=4))
FRONT_MATTER = st.tuples(
    st.sampled_from(["yaml.md", "toml.mdx"]),
    st.lists(st.tuples(st.just("front"), st.just(0.0), st.sampled_from(PIECES)), min_size=1, max_size=2),
)
RANDOM = st.tuples(st.sampled_from(NAMES), st.binary(max_size=200))
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
"""How many more random files to try, different ones each time: FUZZ_EXAMPLES=1000 pytest
tests/ingest/test_hostile_files.py
"""
FILES = 25


def changed(name: str, changes: list[tuple[str, float, Any]]) -> bytes:
    data = SAMPLES[name]
    for kind, place, what in changes:
        at = int(place * len(data))
        if kind == "put":
            data = data[:at] + what + data[at:]
        elif kind == "over":
            data = data[:at] + what + data[at + len(what) :]
        elif kind == "cut":
            data = data[:at] + data[at + what :]
        elif kind == "twice":
            data = data[: at + what] + data[at:]
        else:  # into the front matter, where there is one
            data = data[:4] + what + data[4:]
    return data


def test_every_parser_has_a_sample() -> None:
    assert {parser_for(name) for name in SAMPLES} == set(all_parsers())


@settings(
    max_examples=EXAMPLES or 6,
    derandomize=not EXAMPLES,
    phases=[Phase.generate],  # to shrink 25 files would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(files=st.lists(FRONT_MATTER | MUTATED | RANDOM, min_size=FILES, max_size=FILES))
def test_every_file_of_any_bytes_has_exactly_one_outcome(
    tmp_path: Path, files: list[tuple[str, list[Any] | bytes]]
) -> None:
    folder = tmp_path / "files"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\nokapi\n")
    for number, (name, change) in enumerate(files):
        place = folder / str(number)
        place.mkdir()
        (place / name).write_bytes(change if isinstance(change, bytes) else changed(name, change))
        if name == "kebab.json":
            shutil.copy(place / name, folder / name)
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        report = kb.ingest(folder, embed=False)
        check_outcomes(report, list(folder.rglob("*.*")) + list(folder.rglob("run")))
        assert len(kb.documents(SearchFilters(sources=("files",)))) == report.added + report.updated + report.unchanged
        assert kb.search("okapi", mode="lexical")
        with suppress(NothingIndexable):  # kebab.json may leave out what can be read
            _, report = kb.libraries.add(str(folder), library_id="/fuzz/files", embed=False)
            assert report.scanned == report.added + report.unchanged + report.unread
    if EXAMPLES:
        with (tmp_path.parent / "fuzzed").open("a") as log:
            log.write(f"{len(files)} {[failure.message for failure in report.failed]}\n")


def check_outcomes(report: IngestReport, files: list[Path]) -> None:
    assert report.scanned == len(files)
    assert report.scanned == report.added + report.updated + report.unchanged + report.unread
    assert report.unread == sum(skipped.count for skipped in report.skipped.values()) + len(report.failed)
    assert len({failure.path for failure in report.failed}) == len(report.failed)


# --- a parser that fails


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.md", "bad.md", "c.md", "bad.csv", "c.csv"):
        (folder / name).write_text(f"okapi in {name}\n")
    return folder


def fail_at_bad_files(patch: pytest.MonkeyPatch, error: BaseException) -> None:
    def failing(text: str, path: str, **options: Any) -> ParsedDocument:
        if "bad" in path:
            raise error
        return parse_markdown(text, path, **options)

    patch.setattr(markdown, "parse_markdown", failing)


@pytest.mark.parametrize(
    ("error", "failed", "skipped"),
    [
        (KeyError("x"), ["parser_failed"], {}),
        (SystemError("in C"), ["parser_failed"], {}),
        (SourceError("not a ParseError"), ["parser_failed"], {}),
        (MemoryError(), [], {"too_costly": 1}),
        (RecursionError(), [], {"too_costly": 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_in_a_parser_affects_only_its_file(
    notes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    failed: list[str],
    skipped: dict[str, int],
) -> None:
    fail_at_bad_files(monkeypatch, error)
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        report = kb.ingest(notes)
        _, of_library = kb.libraries.add(str(notes), library_id="/acme/notes")
        assert len(kb.search("okapi", mode="lexical")) == 4
    for told in (report, of_library):
        assert [failure.code for failure in told.failed] == failed
        assert all(type(error).__name__ in failure.message for failure in told.failed)
        assert {reason: each.count for reason, each in told.skipped.items()} == skipped
        assert told.added == 4 or told is of_library
    assert [failure.path for failure in report.failed] in ([], ["bad.md"])


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_not_reported_as_an_outcome(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    fail_at_bad_files(monkeypatch, error())
    with kebab.open(tmp_path / "kb.sqlite") as kb, pytest.raises(error):
        kb.ingest(notes)


def test_an_error_in_a_parser_process_affects_only_its_file(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from kebab.parsing.delimited import DelimitedParser\n"
        "whole = DelimitedParser.parse\n"
        "def parse(self, data, path):\n"
        "    return {}['x'] if 'bad' in path else whole(self, data, path)\n"
        "DelimitedParser.parse = parse\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        report = kb.ingest(notes)
    assert [(failure.path, failure.code) for failure in report.failed] == [("bad.csv", "parser_failed")]
    assert "KeyError" in report.failed[0].message
    assert report.added == 4


def test_a_failing_chunker_affects_one_file_whose_old_chunks_stay(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = StructureChunker.chunk
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(notes)
        (notes / "bad.md").write_text("fails now\n")
        monkeypatch.setattr(
            StructureChunker,
            "chunk",
            lambda self, document: chunk(self, document) if "fails" not in document.text else 1 / 0,
        )
        report = kb.ingest(notes)
        assert [(failure.path, failure.code) for failure in report.failed] == [("bad.md", "parser_failed")]
        assert (report.unchanged, report.removed) == (4, 0)
        assert len(kb.search("okapi", mode="lexical")) == 5
        of_text = kb.ingest_text("fails, too", title="Told")
        assert [(failure.path, failure.code) for failure in of_text.failed] == [("Told", "parser_failed")]


@pytest.mark.parametrize("seconds", [10**13, -(10**13)])
def test_a_file_with_a_time_beyond_all_years_is_indexed(tmp_path: Path, seconds: int) -> None:
    """Regression: it ended the run. Not every file system keeps such a time."""
    place = Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp_path
    folder = place / f"kebab-{os.getpid()}-{seconds}"
    folder.mkdir()
    try:
        (folder / "a.md").write_text("okapi\n")
        os.utime(folder / "a.md", (seconds, seconds))
        with kebab.open(tmp_path / "kb.sqlite") as kb:
            assert kb.ingest(folder).added == 1
            assert kb.ingest(folder).unchanged == 1
    finally:
        shutil.rmtree(folder)


# --- a file that becomes something else between scan and open


def _sparse(file: Path) -> None:
    with file.open("wb") as handle:
        handle.truncate(1 << 40)


SWAPS: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "special"),
    "folder": (Path.mkdir, "special"),
    "device": (lambda file: file.symlink_to("/dev/zero"), "link"),
    "link": (lambda file: file.symlink_to("/etc/hostname"), "link"),
    "huge": (_sparse, "too_large"),
}


@pytest.fixture
def at_most_20_seconds() -> Iterator[None]:
    """Ends the test after 20 seconds, because opening a pipe without the check never ends."""

    def over(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("at_most_20_seconds")
@pytest.mark.parametrize("becomes", SWAPS)
def test_a_file_that_is_replaced_after_the_scan_is_left_out(notes: Path, tmp_path: Path, becomes: str) -> None:
    swap, reason = SWAPS[becomes]

    def progress(event: str, **details: Any) -> None:
        if event == "file" and details["path"] == "a.md":
            (notes / "bad.md").unlink()
            swap(notes / "bad.md")

    with kebab.open(tmp_path / "kb.sqlite") as kb:
        report = kb.ingest(notes, progress=progress)
        assert {each: skipped.examples for each, skipped in report.skipped.items()} == {reason: ("bad.md",)}
        assert (report.added, report.failed) == (4, [])


@pytest.mark.usefixtures("at_most_20_seconds")
def test_a_pipe_in_place_of_a_file_does_not_block_the_run(notes: Path, tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(notes)
        tree = FolderTree(notes, kb.settings.ingest)
        (notes / "bad.md").unlink()
        os.mkfifo(notes / "bad.md")
        assert kb.verify().unreadable == 1
    assert "bad.md" not in {file.path for file in tree.files()}
    with pytest.raises(SourceError, match="not a regular file"):
        tree.read(TreeFile("bad.md", "", 0))
    os.mkfifo(tmp_path / "llms.txt")
    with kebab.open(tmp_path / "kb.sqlite") as kb, pytest.raises(SourceError):
        kb.libraries.add(str(tmp_path / "llms.txt"))
