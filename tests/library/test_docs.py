"""The version of a library that a project uses, read from real lock files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kebab.core.errors import NotFound
from kebab.core.libraries import Library, LibraryVersion
from kebab.library.libraries import chosen_version


def library(library_id: str, *tags: str, title: str = "") -> Library:
    versions = tuple(LibraryVersion(name, "indexed", None, 1, "2026-01-01") for name in (None, *tags))
    name = title or library_id.rpartition("/")[2]
    return Library(
        library_id, name, "", False, False, "https://example.org/x.git", "git", None, None, None, None, (), versions
    )


def npm(packages: dict[str, str]) -> str:
    return json.dumps({"packages": {place: {"version": version} for place, version in packages.items()}})


def cargo(own: str, *versions: str) -> str:
    text = f'[[package]]\nname = "mine"\nversion = "0.1.0"\ndependencies = [{own}]\n'
    return text + "".join(
        f'[[package]]\nname = "widget"\nversion = "{version}"\nsource = "registry+x"\n' for version in versions
    )


TAGS = ("v1.0.0", "v2.0.0", "v3.0.0")


@pytest.mark.parametrize(
    ("library_id", "file", "text", "version"),
    [
        ("/facebook/react", "package-lock.json", npm({"node_modules/@types/react": "1.0.0", "node_modules/react": "2.0.0"}), "v2.0.0"),
        ("/facebook/react", "package-lock.json", npm({"node_modules/@types/react": "1.0.0"}), None),
        ("/facebook/react", "package-lock.json", npm({"node_modules/@a/react": "1.0.0", "node_modules/react": "2.0.0"}), "v2.0.0"),
        ("/facebook/react", "package-lock.json", npm({"node_modules/a/node_modules/react": "1.0.0", "node_modules/react": "2.0.0"}), "v2.0.0"),
        ("/facebook/react", "package-lock.json", npm({"packages/a/node_modules/react": "1.0.0", "node_modules/react": "2.0.0"}), "v2.0.0"),
        ("/acme/widget", "package-lock.json", npm({"node_modules/@z/widget": "1.0.0", "node_modules/@acme/widget": "2.0.0"}), "v2.0.0"),
        ("/acme/widget", "package-lock.json", npm({"node_modules/@z/widget": "1.0.0"}), "v1.0.0"),
        ("/acme/widget", "go.mod", "require github.com/acme/widget/v2 v2.0.0\n", "v2.0.0"),
        ("/acme/widget", "go.mod", "require (\n\tgithub.com/z/widget v1.0.0\n\tgithub.com/acme/widget/v2 v2.0.0\n)\n", "v2.0.0"),
        ("/go-yaml/yaml", "go.mod", "require gopkg.in/yaml.v3 v3.0.1\n", "v3.0.0"),
        ("/acme/widget", "go.mod", "exclude (\n\tgithub.com/acme/widget v1.0.0\n)\n", None),
        ("/acme/widget", "go.mod", "require github.com/acme/widget v1.0.0\nreplace github.com/acme/widget => x.org/w v2.0.0\n", "v2.0.0"),
        ("/acme/widget", "Cargo.lock", cargo('"widget 2.0.0"', "1.0.0", "2.0.0", "3.0.0"), "v2.0.0"),
        ("/acme/widget", "Cargo.lock", cargo("", "1.0.0", "3.0.0", "2.0.0"), "v3.0.0"),
        ("/acme/widget", "requirements.txt", "widget==" + "9" * 5000, None),
    ],
)  # fmt: skip
def test_version_is_that_of_the_package_that_matches_the_library(
    tmp_path: Path, library_id: str, file: str, text: str, version: str | None
) -> None:
    (tmp_path / file).write_text(text)
    choice = chosen_version(library(library_id, *TAGS), None, str(tmp_path))
    assert choice.version == version
    assert choice.reason is not None
    assert len(choice.reason) < 300


def test_reason_names_a_requirement_without_a_version(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("Click>=8.1\n")
    choice = chosen_version(library("/pallets/click", *TAGS), None, str(tmp_path))
    assert choice == (None, "requirements.txt names Click without a version: the default branch")
    (tmp_path / "uv.lock").write_text('[[package]]\nname = "click"\nversion = "2.0.0"\n')
    assert chosen_version(library("/pallets/click", *TAGS), None, str(tmp_path)).version == "v2.0.0", (
        "a lock file knows more"
    )


def test_reason_names_the_lock_file_of_the_enclosing_repository(tmp_path: Path) -> None:
    inner = tmp_path / "packages" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text("widget==2.0.0\n")
    choice = chosen_version(library("/acme/widget", *TAGS), None, str(inner))
    assert choice == ("v2.0.0", "../../requirements.txt has widget 2.0.0: 2.0.0 exactly")


def test_only_tags_of_the_used_package_count_in_a_repository_of_several(tmp_path: Path) -> None:
    (tmp_path / "package-lock.json").write_text(npm({"node_modules/@acme/widget": "1.6.0"}))
    tags = ("gadget@1.5.0", "widget@1.0.0", "widget@2.0.0")
    assert chosen_version(library("/acme/widget", *tags), None, str(tmp_path)).version == "widget@1.0.0"


@pytest.mark.parametrize("named", ["2.x", "v2.x", "2.*", "1.2.3", "gadget@2.0.0", "9" * 5000])
def test_an_unknown_version_is_an_error(named: str) -> None:
    with pytest.raises(NotFound):
        chosen_version(library("/acme/widget", "widget@2.0.0", "v1.2.3-arm64"), named, None)
    assert chosen_version(library("/acme/widget", "v2.0.0", named), named, None).version == named


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(), st.sampled_from(["==", ">=", " ", ""]), st.lists(st.text(min_size=1), max_size=4))
def test_no_version_text_makes_anything_raise(tmp_path: Path, version: str, operator: str, tags: list[str]) -> None:
    (tmp_path / "requirements.txt").write_text(f"widget{operator}{version}", encoding="utf-8", errors="replace")
    assert chosen_version(library("/acme/widget", *tags), None, str(tmp_path)).reason
