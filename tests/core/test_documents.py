"""Ids are hashes of content and position: the same input gives the same ids on every machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.citations import LineSpan
from kebab.core.documents import Block, Chunk, ParsedDocument, bounded, chunk_id, date_in_name, document_id
from kebab.core.paths import file_name, file_stem
from kebab.core.text import content_hash

_PRINT_IDS = """
from kebab.core.documents import chunk_id, document_id
from kebab.core.text import content_hash
doc = document_id("notes", "한국어/문서.md")
print(doc, chunk_id(doc, 0, "본문 text"), chunk_id(doc, 1, "본문 text"), content_hash("본문"))
"""


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_ids_are_the_same_in_every_process(seed: str) -> None:
    printed = subprocess.run(
        [sys.executable, "-c", _PRINT_IDS],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    doc = document_id("notes", "한국어/문서.md")
    assert printed == [doc, chunk_id(doc, 0, "본문 text"), chunk_id(doc, 1, "본문 text"), content_hash("본문")]


def test_ids_do_not_change_between_versions() -> None:
    """The ids are written out here, because a change would break every stored id, link and judgement."""
    assert document_id("notes", "git/setup.md") == "a1e8cfe275dbb4d0"
    assert chunk_id("a1e8cfe275dbb4d0", 0, "# Git\n") == "a1e8cfe26e04f07c89d2"


@given(st.lists(st.sampled_from(["same", "other", "", "한글"]), max_size=8))
def test_equal_passages_of_one_document_have_different_ids(texts: list[str]) -> None:
    ids = [chunk_id("d", ordinal, text) for ordinal, text in enumerate(texts)]
    assert len(set(ids)) == len(ids)


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
def test_a_document_is_known_by_source_and_path_together(one: tuple[str, str], other: tuple[str, str]) -> None:
    if "\0" not in "".join(one + other):  # no path can hold one
        assert (document_id(*one) == document_id(*other)) == (one == other)


def test_a_lone_surrogate_has_an_id_too() -> None:
    assert content_hash("\ud800") != content_hash("?")


def test_the_section_label_is_the_innermost_heading() -> None:
    assert Chunk(0, 0, 1, "x", ("A", "B"), (LineSpan(1, 1),)).section_label == "B"
    assert Chunk(0, 0, 1, "x", (), (LineSpan(1, 1),)).section_label is None


@pytest.mark.parametrize(
    ("path", "date"),
    [
        ("daily/2025-03-01.md", "2025-03-01"),
        ("2025-03-01 Standup.md", "2025-03-01"),
        ("2025-03-01-meeting.md", "2025-03-01"),
        ("2025-13-01.md", None),
        ("2025-03-011.md", None),
        ("1025-03-01.md", None),
        ("about 2025-03-01.md", None),
        ("2025-03-01/notes.md", None),
    ],
)
def test_the_date_at_the_start_of_a_file_name_is_found(path: str, date: str | None) -> None:
    assert date_in_name(path) == date


@pytest.mark.parametrize(
    "path", ["a.md", "x/y.tar.gz", ".hidden", "x/.a.b", "no extension", "a.", "...", "", "x/", "한글 문서.md"]
)
def test_file_names_and_stems_equal_those_of_pathlib(path: str) -> None:
    if not path.endswith("/"):  # a document's path never does
        assert (file_name(path), file_stem(path)) == (PurePosixPath(path).name, PurePosixPath(path).stem)


# --- names without end


def test_long_names_of_a_document_are_shortened_and_its_text_unchanged() -> None:
    long = "x" * 5000
    document = ParsedDocument(
        text=long, title=long, blocks=(Block("heading", 0, 5000, 1, long),), doc_type="note", format="md", lang="en",
        tags=("short", long, *(f"tag{number}" for number in range(1000))), aliases=(long,) * 300,
    )  # fmt: skip
    cut = bounded(document)
    assert cut.text == long
    assert (len(cut.title), len(cut.blocks[0].title), {len(alias) for alias in cut.aliases}) == (300, 300, {300})
    assert cut.title.endswith("…")
    assert (len(cut.tags), len(cut.aliases)) == (200, 200)
    assert cut.tags[0] == "short"
    assert cut.warnings == ("902 of its tags and aliases are left out: too many, or too long",)
    assert bounded(cut).tags == cut.tags


def test_ordinary_names_of_a_document_are_not_shortened() -> None:
    document = ParsedDocument(
        "# A\n", "A", (Block("heading", 0, 4, 1, "A"),), "note", "md", "en", tags=("b",), aliases=("c",)
    )
    assert bounded(document) is document
