"""Which source a path belongs to: the one that holds it, else a new one named after its last component."""

from __future__ import annotations

from pathlib import Path
from unicodedata import normalize

import pytest

from kebab.core.documents import Source
from kebab.core.errors import SourceError, UsageError
from kebab.ingest.sources import Scope, resolve, roots_below


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("work/notes", "home/notes", "home/notes/sub"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "home/notes/lone.md").write_text("x", encoding="utf-8")
    (tmp_path / "home/notes/sub/deep.md").write_text("x", encoding="utf-8")
    return tmp_path


def source(name: str, root: Path, kind: str = "folder") -> Source:
    return Source(name, kind, str(root))  # type: ignore[arg-type]


def test_a_new_folder_is_named_after_its_last_component(tree: Path) -> None:
    (scope,) = resolve([tree / "work/notes"], [], None)
    assert (scope.source.name, scope.source.kind, scope.source.root, scope.below, scope.is_new) == (
        "notes",
        "folder",
        str(tree / "work/notes"),
        "",
        True,
    )


def test_a_taken_name_gets_a_number(tree: Path) -> None:
    known = [source("notes", tree / "work/notes"), source("notes-2", tree / "elsewhere")]
    (scope,) = resolve([tree / "home/notes"], known, None)
    assert scope.source.name == "notes-3"
    assert [scope.source.name for scope in resolve([tree / "work/notes", tree / "home/notes"], [], None)] == [
        "notes",
        "notes-2",
    ]


def test_a_path_inside_a_known_source_belongs_to_the_innermost_one(tree: Path) -> None:
    outer, inner = source("outer", tree / "home"), source("inner", tree / "home/notes")
    (scope,) = resolve([tree / "home/notes/sub/deep.md"], [outer, inner], None)
    assert (scope.source, scope.below, scope.is_new) == (inner, "sub/deep.md", False)
    (same,) = resolve([tree / "home/notes"], [outer, inner], None)
    assert (same.source, same.below) == (inner, "")


def test_a_lone_file_is_a_source_of_its_own(tree: Path) -> None:
    (scope,) = resolve([tree / "home/notes/lone.md"], [], None)
    assert (scope.source.name, scope.source.kind) == ("lone.md", "file")


def test_a_given_name_must_be_free_and_needs_exactly_one_path(tree: Path) -> None:
    assert resolve([tree / "work/notes"], [], "  mine ")[0].source.name == "mine"
    assert resolve([tree / "work/notes"], [source("mine", tree / "work/notes")], "mine")[0].is_new is False
    with pytest.raises(SourceError):
        resolve([tree / "work/notes"], [source("mine", tree / "home")], "mine")
    with pytest.raises(SourceError):
        resolve([tree / "work/notes"], [source("mine", tree / "work/notes")], "other")
    with pytest.raises(UsageError):
        resolve([tree / "work/notes", tree / "home"], [], "mine")
    with pytest.raises(UsageError):
        resolve([tree / "work/notes"], [], "  ")


def test_a_missing_path_is_an_error_that_names_it(tree: Path) -> None:
    with pytest.raises(SourceError) as caught:
        resolve([tree / "nowhere"], [], None)
    assert str(tree / "nowhere") in caught.value.message


def test_a_path_named_twice_is_read_once(tree: Path) -> None:
    assert len(resolve([tree / "work/notes", tree / "work" / "." / "notes"], [], None)) == 1


def test_a_link_to_a_source_is_that_source(tree: Path) -> None:
    (tree / "link").symlink_to(tree / "work/notes")
    known = source("notes", tree / "work/notes")
    assert resolve([tree / "link"], [known], None)[0].source == known


def test_names_are_composed_unicode(tree: Path) -> None:
    folder = tree / normalize("NFD", "한글노트")
    folder.mkdir()
    assert resolve([folder], [], None)[0].source.name == normalize("NFC", "한글노트")


def test_a_scope_holds_what_lies_below_it_and_nothing_beside_it() -> None:
    scope = Scope(Source("s", "folder", "/r"), "a/b")
    assert scope.holds("a/b")
    assert scope.holds("a/b/c.md")
    assert not scope.holds("a/bc.md")
    assert Scope(Source("s", "folder", "/r")).holds("anything")


def test_sources_inside_a_folder_are_found_by_kind(tree: Path) -> None:
    outer, inner, lone = (
        source("o", tree / "home"),
        source("i", tree / "home/notes"),
        source("l", tree / "home/notes/lone.md", "file"),
    )
    assert roots_below(outer, [outer, inner, lone], "folder") == [inner]
    assert roots_below(outer, [outer, inner, lone], "file") == [lone]
    assert roots_below(inner, [outer], "folder") == []
