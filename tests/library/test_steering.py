"""What a repository may say about what of it is read."""

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
def test_what_is_no_object_says_nothing(data: bytes) -> None:
    assert read_steering(data) is None


def test_entries_of_another_kind_are_left_out() -> None:
    found = read_steering(
        b'{"projectTitle": 3, "description": " a\\n b ", "folders": "docs", "rules": ["x", 3, ""], "previousVersions": [3]}'
    )
    assert found == Steering(description="a b", rules=("x",))


def test_an_llms_txt_begins_with_its_name() -> None:
    assert read_llms_txt(b"# Gizmo\n\n> A tiny\n> client\n") == Steering(title="Gizmo", description="A tiny")
    assert read_llms_txt(b"no heading") == Steering()
