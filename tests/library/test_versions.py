"""Versions by name, and the one of a project."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.library.versions import choose, latest_first, same_name

INDEXED = ["v1.0.0", "v1.2.0", "v2.0.0-rc.1", "v2.0.0", "v10.0.0", "nightly"]


@pytest.mark.parametrize(
    ("wanted", "version", "why"),
    [
        ("1.2.0", "v1.2.0", "exactly"),
        ("1.2", "v1.2.0", "exactly"),
        ("v2.0.0", "v2.0.0", "exactly"),
        ("2.0.0rc1", "v2.0.0-rc.1", "exactly"),
        ("1.5.3", "v1.2.0", "nearest below"),
        ("9.9", "v2.0.0", "nearest below"),
        ("11.0", "v10.0.0", "nearest below"),
        ("0.9", None, "the default branch"),
        ("nightly", "nightly", "exactly"),
        ("weekly", None, "the default branch"),
    ],
)
def test_the_same_version_else_the_nearest_lower_else_the_default(wanted: str, version: str | None, why: str) -> None:
    found = choose(wanted, INDEXED)
    assert found.version == version
    assert why in found.reason
    assert wanted in found.reason


def test_later_versions_come_first_by_number_and_not_by_letter() -> None:
    assert latest_first(INDEXED) == ["v10.0.0", "v2.0.0", "v2.0.0-rc.1", "v1.2.0", "v1.0.0", "nightly"]
    assert latest_first(["widget-1.9", "widget-1.10", "widget-1.10b2", "widget-1.10b10"]) == [
        "widget-1.10", "widget-1.10b10", "widget-1.10b2", "widget-1.9",
    ]  # fmt: skip


@given(st.lists(st.text(max_size=12)), st.text(max_size=12))
def test_any_names_can_be_ordered_and_chosen_from(names: list[str], wanted: str) -> None:
    assert sorted(latest_first(names)) == sorted(names)
    assert choose(wanted, names).version in {*names, None}


@pytest.mark.parametrize(
    ("package", "library_id", "title", "same"),
    [
        ("requests", "/psf/requests", "Requests", True),
        ("ruamel.yaml", "/x/ruamel-yaml", "Ruamel", True),
        ("typing_extensions", "/python/typing-extensions", "Typing", True),
        ("github.com/spf13/cobra", "/spf13/cobra", "Cobra", True),
        ("@vue/reactivity", "/vuejs/reactivity", "Reactivity", True),
        ("next", "/vercel/next.js", "next", True),
        ("request", "/psf/requests", "Requests", False),
    ],
)
def test_a_package_is_a_library_by_its_name(package: str, library_id: str, title: str, same: bool) -> None:
    assert same_name(package, library_id, title) is same
