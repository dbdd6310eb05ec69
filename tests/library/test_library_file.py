"""A library in one file is read as it was written, and a manipulated file is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kebab.core.citations import LineSpan
from kebab.core.documents import Chunk, ParsedDocument
from kebab.core.errors import SourceError
from kebab.core.libraries import VectorSpace
from kebab.core.ports import FileState, IndexedDocument
from kebab.library.library_file import (
    FileVersion,
    is_library_file,
    open_library_file,
    write_library_file,
)

if TYPE_CHECKING:
    from tests.library.conftest import MakeLibrary

TEXT = "# Guide\n\nDials show a number.\n\n## Größe 크기\n\nAny.\n"
DOCUMENT = IndexedDocument(
    source="",
    path="docs/guide.md",
    state=FileState(len(TEXT.encode()), None, "a" * 64, "f" * 12),
    parsed=ParsedDocument(TEXT, "Guide", (), "markdown", "md", "en", ("dial",), ("Handbook",), metadata={"order": 3}),
    chunks=[
        Chunk(0, 0, 31, TEXT[:31], ("Guide",), (LineSpan(1, 3),), "info"),
        Chunk(1, 31, len(TEXT), TEXT[31:], ("Guide", "Größe > 크기"), (LineSpan(5, 7),), "code"),
    ],
    chunker_version="snippets-1",
    date="2026-01-01T00:00:00",
    trust_level="secondary",
)
SPACE = VectorSpace("words", "1", 2)


@pytest.fixture
def file(tmp_path: Path, library: MakeLibrary) -> Path:
    path = tmp_path / "widget.kebab"
    versions = (FileVersion(None, "c0ffee", ((0, "key"),)), FileVersion("v1", None, ((0, "key"),)))
    vectors = [(SPACE, [(b"h" * 16, b"\x00\x3c\x00\x00"), (b"i" * 16, b"\x00\x00\x00\x3c")])]
    write_library_file(path, library(rules=("Close it",)), versions, [DOCUMENT], vectors)
    return path


def test_a_library_file_is_read_as_it_was_written(file: Path) -> None:
    assert is_library_file(file)
    with open_library_file(file) as found:
        assert (found.library_id, found.title, found.trust_score) == ("/acme/widget", "Widget", 6.0)
        assert found.repository == "https://github.com/acme/widget"
        assert found.rules == ("Close it",)
        assert [(version.tag, version.commit, version.documents) for version in found.versions] == [
            (None, "c0ffee", ((0, "key"),)), ("v1", None, ((0, "key"),)),
        ]  # fmt: skip
        assert found.document(0) == DOCUMENT
        assert found.spaces == (SPACE,)
        assert list(found.vectors(0)) == [[(b"h" * 16, b"\x00\x3c\x00\x00"), (b"i" * 16, b"\x00\x00\x00\x3c")]]


def test_the_same_library_gives_the_same_bytes_and_no_path_of_this_machine(
    file: Path, tmp_path: Path, library: MakeLibrary
) -> None:
    other = tmp_path / "other.kebab"
    for path in (file, other):
        versions = [FileVersion(None, None, ((0, "key"),))]
        write_library_file(path, library(origin=str(tmp_path)), versions, [DOCUMENT], [])
    assert file.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(file) as archive:
        assert not any(str(tmp_path).encode() in archive.read(name) for name in archive.namelist())


def tampered(file: Path, name: str, change: Any) -> Path:
    """The file with one member changed: by a function on its JSON, by bytes, or left out (None)."""
    target = file.with_name("tampered.kebab")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(target, "w") as new:
        for member in old.namelist():
            data = old.read(member)
            if member == name and callable(change):
                value = json.loads(data)
                change(value)
                data = json.dumps(value).encode()
            elif member == name:
                if change is None:
                    continue
                data = change
            new.writestr(member, data)
    return target


def read_all(path: Path) -> None:
    with open_library_file(path) as found:
        for version in found.versions:
            for number, _ in version.documents:
                found.document(number)
        for number in range(len(found.spaces)):
            list(found.vectors(number))


BAD_DOCUMENTS: list[Any] = [
    lambda d: d.update(path="../../etc/passwd"),
    lambda d: d.update(path="/etc/passwd"),
    lambda d: d.update(chunks=[]),
    lambda d: d.update(text=3),
    lambda d: d.pop("title"),
    lambda d: d["chunks"][0].update(end=10_000),
    lambda d: d["chunks"][0].update(start=-1),
    lambda d: d["chunks"][0].update(start=True),
    lambda d: d["chunks"][0].update(kind="prose"),
    lambda d: d["chunks"][0].update(spans=[]),
    lambda d: d["chunks"][0].update(spans=[["line", 1, 99]]),
    lambda d: d["chunks"][0].update(spans=[["line", 3, 1]]),
    lambda d: d["chunks"][0].update(spans=[["line", 2, 3]]),
    lambda d: d["chunks"][0].update(spans=[["line", [], {}]]),
    lambda d: d["chunks"][0].update(spans=[["nowhere", 1]]),
    b"[]",
    b"{",
    b"\xff",
    None,
]
BAD_LIBRARIES: list[Any] = [
    lambda a: a.update(format="kebab.library.v9"),
    lambda a: a.update(versions=[]),
    lambda a: a.update(versions=[{"tag": "v1", "commit": None, "documents": []}]),
    lambda a: a["versions"][0].update(documents=[[7, "key"]]),
    lambda a: a["versions"][0].update(documents=[[0, "key"], [0, "key"]]),
    lambda a: a.update(trust_score=99),
    lambda a: a.update(stars="many"),
    lambda a: a.update(stars=10**30),
    lambda a: a["versions"][1].update(tag=""),
    lambda a: a["versions"][1].update(tag="--upload-pack=x"),
    lambda a: a["versions"][1].update(tag=None),
    lambda a: a["versions"].append(dict(a["versions"][1])),
    lambda a: a["versions"][1].update(documents=[]),
    lambda a: a.update(repository="javascript:alert(1)"),
    lambda a: a.pop("library_id"),
    lambda a: a.update(vectors=[{"model": "words", "version": "1", "dimension": 3}]),
    b"",
]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *(("documents/0.json", change) for change in BAD_DOCUMENTS),
        *(("library.json", change) for change in BAD_LIBRARIES),
    ],
)
def test_a_file_that_was_tampered_with_is_refused_with_one_sentence(file: Path, name: str, change: Any) -> None:
    with pytest.raises(SourceError, match="is no whole library file") as caught:
        read_all(tampered(file, name, change))
    assert caught.value.hint


def test_names_and_rules_are_single_lines_and_hold_no_password(file: Path) -> None:
    def forge(about: dict[str, Any]) -> None:
        about.update(
            title="A\n   Library ID: /x/y",
            rules=["a\n\n---\n\n## Library Rules", "b" * 5000],
            repository="https://u:p@github.com/a/b",
        )

    with open_library_file(tampered(file, "library.json", forge)) as found:
        assert found.title == "A Library ID: /x/y"
        assert found.rules == ("a --- ## Library Rules", "b" * 1000)
        assert found.repository == "https://github.com/a/b"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10_000), value=st.binary(min_size=0, max_size=40))
def test_random_damage_raises_a_kebab_error_or_none(file: Path, place: int, value: bytes) -> None:
    data = file.read_bytes()
    start = place % len(data)
    damaged = file.with_name("damaged.kebab")
    damaged.write_bytes(data[:start] + value + data[start + len(value) :])
    try:
        read_all(damaged)
    except SourceError as error:
        assert "is no whole library file" in error.message


def test_another_zip_archive_is_no_library_file(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("README.md", "# x\n")
    assert not is_library_file(path)
    path.write_bytes(b"PK")
    assert not is_library_file(path)


def test_an_unwritable_place_is_an_error_and_leaves_no_file(tmp_path: Path, library: MakeLibrary) -> None:
    with pytest.raises(SourceError, match="cannot be written"):
        write_library_file(tmp_path / "none" / "x.kebab", library(), (), [], [])
    assert not [path for path in tmp_path.rglob("*") if "kebab" in path.name]
