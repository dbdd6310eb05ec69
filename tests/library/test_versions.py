"""Order of versions by name, and the choice for a project."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.library.versions import choose, latest_first, likeness, same_version

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
def test_choice_is_the_same_version_or_the_nearest_lower_or_the_default(
    wanted: str, version: str | None, why: str
) -> None:
    found = choose(wanted, INDEXED)
    assert found.version == version
    assert why in found.reason
    assert wanted in found.reason


def test_later_versions_come_first_by_number_and_not_by_letter() -> None:
    assert latest_first(INDEXED) == ["v10.0.0", "v2.0.0", "v2.0.0-rc.1", "v1.2.0", "v1.0.0", "nightly"]
    assert latest_first(["widget-1.9", "widget-1.10", "widget-1.10b2", "widget-1.10b10"]) == [
        "widget-1.10", "widget-1.10b10", "widget-1.10b2", "widget-1.9",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "indexed", "version"),
    [
        ("2.17.1", ["log4j-2.17.0", "log4j-2.17.1"], "log4j-2.17.1"),
        ("2.17.5", ["log4j-2.17.0", "log4j-2.17.1", "log4j-2.18.0"], "log4j-2.17.1"),
        ("1.2.0", ["py3-widget-1.1.0", "py3-widget-1.2.0"], "py3-widget-1.2.0"),
        ("1.2.3", ["rel_1_2_2", "rel_1_2_3", "rel_1_10_0"], "rel_1_2_3"),
        ("2024.1", ["release-2023.12", "release-2024.01"], "release-2024.01"),
        ("1.0.0", ["widget@0.9.0", "widget@1.0.0"], "widget@1.0.0"),
        ("1.2.0", ["md5-release-1.2.0", "md5-release-7.0.0"], "md5-release-1.2.0"),
        ("2", ["v1-arm64", "v2-arm64", "v3-arm64"], "v2-arm64"),
        ("1.2.3", ["v1.2.3-arm64", "v1.2.2"], "v1.2.3-arm64"),
        ("1.2.3", ["v1.2.3-arm64", "v1.2.3"], "v1.2.3"),
        ("1.0a1", ["v1.0.0-alpha.1", "v1.0.0-alpha.10"], "v1.0.0-alpha.1"),
        ("1.0.0-rc.1.2", ["v1.0.0-rc.1.1", "v1.0.0-rc.2"], "v1.0.0-rc.1.1"),
        ("1.0.post1", ["v1.0"], "v1.0"),
        ("5.3.0", ["v5.3.0.RELEASE"], "v5.3.0.RELEASE"),
        ("2.1.0+cu118", ["v2.0.0", "v2.1.0"], "v2.1.0"),
        ("2.x", ["v2.0.0"], None),
        ("2.x", ["v2.0.0", "2.x"], "2.x"),
    ],
)  # fmt: skip
def test_a_tag_is_ordered_by_its_version_and_not_by_a_number_in_its_name(
    wanted: str, indexed: list[str], version: str | None
) -> None:
    assert choose(wanted, indexed).version == version


def test_an_unknown_suffix_makes_another_version() -> None:
    assert "exactly" not in choose("1.2.3", ["v1.2.3-arm64"]).reason
    assert same_version("1.2.3", ["v1.2.3-arm64"]) is None
    assert latest_first(["v1.2.3-rc.1", "v1.2.3-arm64", "v1.2.3", "v1.2.4"]) == [
        "v1.2.4",
        "v1.2.3",
        "v1.2.3-arm64",
        "v1.2.3-rc.1",
    ]


def test_tags_of_another_package_of_the_repository_do_not_count() -> None:
    tags = ["gadget@1.0.0", "gadget@1.5.0", "widget@1.0.0"]
    assert choose("1.0.0", tags, "@acme/widget").version == "widget@1.0.0"
    assert choose("1.6.0", tags, "@acme/widget").version == "widget@1.0.0"
    assert same_version("gizmo@1.0.0", tags) is None


@pytest.mark.parametrize("wanted", ["9" * 5000, "1." + "9" * 5000, "1.0rc" + "9" * 5000, "9" * 19, "1_" * 5000])
def test_numbers_too_long_are_no_version(wanted: str) -> None:
    found = choose(wanted, ["v1.0.0"])
    assert found.version is None
    assert len(found.reason) < 200
    assert choose("1.0", ["v0.9", f"v{wanted}"]).version == "v0.9"


NAMES = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="0123v.-_+@/x*rcab ", max_size=16),
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["", "v", "widget-", "widget@", "log4j-", "rel_", "py3-"]),
        st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda numbers: ".".join(map(str, numbers))),
        st.sampled_from(["", "rc1", "-rc.1", "-alpha", "-arm64", ".post1", "+build", ".x"]),
    ),
)


@given(st.lists(NAMES, max_size=8), NAMES)
def test_any_version_names_can_be_sorted_and_one_chosen(names: list[str], wanted: str) -> None:
    ordered = latest_first(names)
    assert sorted(ordered) == sorted(names)
    assert latest_first(reversed(names)) == ordered, "total: no order depends on how they were given"
    assert all(latest_first([one, two]) == [one, two] for at, one in enumerate(ordered) for two in ordered[at:])
    found = choose(wanted, names)
    assert found.version in {*names, None}
    if found.version is not None and "nearest below" in found.reason:
        assert latest_first([found.version, wanted]) == [wanted, found.version]
        assert same_version(wanted, names) is None
    if wanted in names:
        assert found.version == wanted


@given(st.text(), st.text(), st.text(alphabet="@/.v2ab"))
def test_likeness_accepts_any_package_name(package: str, title: str, other: str) -> None:
    assert likeness(package, "/acme/widget", title) in (None, 0, 1, 2)
    assert likeness(other, "/acme/widget", title) in (None, 0, 1, 2)


@pytest.mark.parametrize(
    ("package", "library_id", "title", "like"),
    [
        ("requests", "/psf/requests", "Requests", 1),
        ("ruamel.yaml", "/x/ruamel-yaml", "Ruamel", 1),
        ("typing_extensions", "/python/typing-extensions", "Typing", 1),
        ("next", "/vercel/next.js", "next", 1),
        ("@acme/widget", "/acme/widget", "Gauges", 0),
        ("acme/widget", "/acme/widget", "Gauges", 0),
        ("@vue/reactivity", "/vuejs/reactivity", "Reactivity", 2),
        ("@types/react", "/facebook/react", "React", None),
        ("@types/react", "/types/react", "React", 0),
        ("github.com/spf13/cobra", "/spf13/cobra", "Cobra", 0),
        ("github.com/acme/widget/v2", "/acme/widget", "Gauges", 0),
        ("github.com/fork/widget/v2", "/acme/widget", "Gauges", 2),
        ("gopkg.in/yaml.v3", "/go-yaml/yaml", "YAML for Go", 1),
        ("gopkg.in/src-d/go-git.v4", "/src-d/go-git", "go-git", 0),
        ("request", "/psf/requests", "Requests", None),
    ],
)
def test_the_name_of_a_package_tells_how_well_a_library_fits_it(
    package: str, library_id: str, title: str, like: int | None
) -> None:
    assert likeness(package, library_id, title) == like


def test_plain_tags_are_preferred_to_tags_of_other_packages() -> None:
    tags = ["v1.0.0", "gadget@1.2.0", "gadget@1.5.0"]
    assert choose("1.5.0", tags, "widget").version == "v1.0.0"
    assert choose("1.3.0", tags, "github.com/acme/widget").version == "v1.0.0"
    assert choose("1.5.0", tags, "gadget").version == "gadget@1.5.0"
