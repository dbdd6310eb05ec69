"""How kebab.json and llms.txt choose the files of a library."""

from __future__ import annotations

import pytest

from kebab.library.steering import Steering, read_llms_txt, read_steering


@pytest.mark.parametrize(
    ("folder", "path", "below"),
    [
        ("docs", "docs/a.md", True),
        ("docs", "src/docs/a.md", True),
        ("./docs", "src/docs/a.md", False),
        ("/docs", "docs/x/a.md", True),
        ("docs/old", "docs/old/a.md", True),
        ("docs/old", "x/docs/old/a.md", False),
        ("**/docs/old", "x/docs/old/a.md", True),
        ("**/old", "old/a.md", True),
        ("**/old", "x/y/old/a.md", True),
        ("*archive*", "x/my-archive-1/a.md", True),
        (".", "a.md", True),
        ("docs", "docs.md", False),
    ],
)
def test_folders(folder: str, path: str, below: bool) -> None:
    assert Steering(folders=(folder,)).takes(path) is below
    assert Steering(exclude_folders=(folder,)).takes(path) is not below


@pytest.mark.parametrize("pattern", ["README.md", "./README.md", "/README.md", "README*", "*.md"])
def test_files(pattern: str) -> None:
    assert not Steering(exclude_files=(pattern,)).takes("README.md")
    assert Steering(exclude_files=(pattern,)).takes("guide.rst")


@pytest.mark.parametrize("data", [b"", b"[]", b"3", b"{", b"\xff", b"[" * 100_000])
def test_steering_that_is_not_an_object_is_ignored(data: bytes) -> None:
    assert read_steering(data) is None


def test_steering_entries_of_a_wrong_type_are_ignored() -> None:
    found = read_steering(
        b'{"projectTitle": 3, "description": " a\\n b ", "folders": "docs", "rules": ["x", 3, ""], "previousVersions": [3]}'
    )
    assert found == Steering(description="a b", rules=("x",))


def test_title_and_description_are_read_from_llms_txt() -> None:
    assert read_llms_txt(b"# Gizmo\n\n> A tiny\n> client\n") == Steering(title="Gizmo", description="A tiny")
    assert read_llms_txt(b"no heading") == Steering()
