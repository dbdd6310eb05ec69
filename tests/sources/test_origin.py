"""Origins of libraries by the argument of `kb lib add`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab.core.errors import SourceError
from kebab.sources.git_repository import on_github, source_url
from kebab.sources.origin import checked_id, origin_of


@pytest.mark.parametrize(
    ("given", "kind", "library_id", "repository"),
    [
        ("https://github.com/acme/widget", "git", "/acme/widget", "https://github.com/acme/widget"),
        ("https://github.com/acme/widget.git/", "git", "/acme/widget", "https://github.com/acme/widget.git/"),
        (
            "https://me:secret@git.example.org/team/acme/widget.git",
            "git",
            "/acme/widget",
            "https://git.example.org/team/acme/widget.git",
        ),
        ("git@github.com:acme/widget.git", "git", "/acme/widget", "git@github.com:acme/widget.git"),
        ("ssh://git@example.org:22/acme/widget", "git", "/acme/widget", "ssh://example.org:22/acme/widget"),
        ("file:///srv/widget", "git", "/local/widget", None),
        ("https://docs.acme.dev/llms.txt", "file", "/docs.acme.dev/llms", None),
        ("https://docs.acme.dev/llms-full.txt", "file", "/docs.acme.dev/llms-full", None),
        ("https://acme.dev/dist/widget-1.0.tar.gz", "archive", "/acme.dev/widget", None),
    ],
)
def test_an_address_gives_kind_id_and_name(given: str, kind: str, library_id: str, repository: str | None) -> None:
    origin = origin_of(given)
    assert (origin.kind, origin.library_id, origin.repository) == (kind, library_id, repository)
    assert origin.address == given
    assert "secret" not in origin.place


def test_a_local_path_gives_kind_id_and_name(tmp_path: Path) -> None:
    (tmp_path / "widget").mkdir()
    (tmp_path / "llms.txt").write_text("# x\n")
    (tmp_path / "widget.zip").write_bytes(b"PK")
    (tmp_path / "mirror.git" / "objects").mkdir(parents=True)
    (tmp_path / "mirror.git" / "HEAD").write_text("ref: refs/heads/main\n")
    found = {name: origin_of(str(tmp_path / name)) for name in ("widget", "llms.txt", "widget.zip", "mirror.git")}
    assert {name: origin.kind for name, origin in found.items()} == {
        "widget": "folder", "llms.txt": "file", "widget.zip": "archive", "mirror.git": "git",
    }  # fmt: skip
    assert {origin.library_id for origin in found.values()} == {"/local/widget", "/local/llms", "/local/mirror"}


@pytest.mark.parametrize("library_id", ["acme/widget", "/acme", "/a/b/c", "/a b/c", "/a/b@1", "", "//"])
def test_invalid_library_ids_are_refused(library_id: str) -> None:
    with pytest.raises(SourceError):
        checked_id(library_id)


def test_lines_of_a_file_have_a_web_address() -> None:
    assert source_url("https://github.com/acme/widget.git", "c0ffee", "docs/a b.md", (3, 9)) == (
        "https://github.com/acme/widget/blob/c0ffee/docs/a%20b.md#L3-L9"
    )
    assert (
        source_url("git@gitlab.com:acme/widget.git", "c0ffee", "a.md", None)
        == "https://gitlab.com/acme/widget/-/blob/c0ffee/a.md"
    )
    assert source_url("https://example.org/acme/widget", "c0ffee", "a.md", None) is None
    assert source_url("https://github.com/acme/widget", None, "a.md", None) is None
    assert source_url(None, "c0ffee", "a.md", None) is None
    assert on_github("git@github.com:acme/widget.git") == ("acme", "widget")
    assert on_github("https://example.org/acme/widget") is None
    assert on_github(None) is None
