"""Lock files of every tool, and malformed ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kebab.core.errors import SourceError
from kebab.library.versions import choose
from kebab.sources.lock_files import locked_packages

TOML = """version = 1

[[package]]
name = "requests"
version = "2.32.0"
source = { registry = "https://example.org/simple" }

[[package]]
name = "local"
source = { editable = "." }
"""
REQUIREMENTS = """# comment
-r other.txt
--hash=sha256:abc
requests[socks]==2.32.0 ; python_version > "3.8"
Django===5.1  # pinned
flask>=3.0
httpx==0.27.*
"""
NPM = json.dumps(
    {
        "lockfileVersion": 3,
        "packages": {
            "": {"name": "mine", "version": "1.0.0"},
            "node_modules/a/node_modules/react": {"version": "17.0.0"},
            "node_modules/react": {"version": "18.3.1"},
            "node_modules/@vue/reactivity": {"version": "3.4.0"},
            "node_modules/linked": {"link": True},
        },
    }
)
OLD_NPM = json.dumps({"lockfileVersion": 1, "dependencies": {"react": {"version": "16.0.0"}}})
GO = """module example.org/mine

go 1.22

require (
	github.com/spf13/cobra v1.8.0
	gopkg.in/yaml.v3 v3.0.1 // indirect
	github.com/docker/docker v26.0.0+incompatible
)

require golang.org/x/text v0.14.0

exclude github.com/old/one v1.0.0
exclude (
	github.com/old/two v1.0.0
)
retract v0.1.0
retract (
	v0.2.0
	[v0.3.0, v0.4.0]
)
replace golang.org/x/text v0.13.0 => golang.org/x/text v0.9.0
replace (
	github.com/docker/docker => ../docker
)
"""
REPLACED = """module example.org/mine
require(
	github.com/acme/widget/v2 v2.0.0
	github.com/acme/gauge v1.0.0
)
replace (
	github.com/acme/widget/v2 => github.com/fork/widget/v2 v2.1.0
	github.com/acme/gauge v1.0.0 => github.com/acme/gauge v1.2.0
)
"""
CARGO = """version = 4

[[package]]
name = "mine"
version = "0.1.0"
dependencies = [
 "helper",
 "widget 1.2.0",
]

[[package]]
name = "helper"
version = "3.0.0"
source = "registry+https://example.org/index"
dependencies = ["widget 2.0.0"]

[[package]]
name = "widget"
version = "2.0.0"
source = "registry+https://example.org/index"

[[package]]
name = "widget"
version = "1.2.0"
source = "registry+https://example.org/index"
"""


@pytest.mark.parametrize(
    ("name", "text", "packages"),
    [
        ("uv.lock", TOML, [("requests", "2.32.0")]),
        ("poetry.lock", TOML, [("requests", "2.32.0")]),
        ("Cargo.lock", TOML, [("requests", "2.32.0")]),
        ("requirements.txt", REQUIREMENTS, [("requests", "2.32.0"), ("Django", "5.1"), ("flask", None), ("httpx", "0.27")]),
        ("requirements-dev.txt", "pytest==8.3.0\r\n", [("pytest", "8.3.0")]),
        ("package-lock.json", NPM, [("react", "18.3.1"), ("@vue/reactivity", "3.4.0"), ("react", "17.0.0")]),
        ("package-lock.json", OLD_NPM, [("react", "16.0.0")]),
        ("go.mod", GO, [
            ("github.com/spf13/cobra", "v1.8.0"), ("gopkg.in/yaml.v3", "v3.0.1"), ("github.com/docker/docker", "v26.0.0"),
            ("golang.org/x/text", "v0.14.0"),
        ]),
        ("go.mod", REPLACED, [
            ("github.com/acme/widget/v2", "v2.1.0"), ("github.com/acme/gauge", "v1.2.0"), ("github.com/fork/widget/v2", "v2.1.0"),
        ]),
    ],
)  # fmt: skip
def test_each_kind_of_lock_file_is_read(
    tmp_path: Path, name: str, text: str, packages: list[tuple[str, str | None]]
) -> None:
    (tmp_path / name).write_text(text)
    assert [(package.name, package.version) for package in locked_packages(tmp_path)] == packages
    assert {package.file for package in locked_packages(tmp_path)} == {name}


def test_direct_dependencies_differ_from_indirect_ones_in_depth(tmp_path: Path) -> None:
    (tmp_path / "Cargo.lock").write_text(CARGO)
    (tmp_path / "package-lock.json").write_text(NPM)
    depths = {(package.name, package.version): package.depth for package in locked_packages(tmp_path)}
    assert depths["widget", "1.2.0"] < depths["widget", "2.0.0"]
    assert depths["react", "18.3.1"] < depths["react", "17.0.0"]


def test_requirements_without_a_version_are_named_and_other_lines_are_not(tmp_path: Path) -> None:
    lines = [
        "Click>=8.1",
        "flask",
        "a[b] ; python_version > '3'",
        "c @ https://example.org/c-1.tar.gz",
        "d~=1.4",
        "e (==2.0)",
        "f==1.0\\",
    ]
    others = [
        "-e .",
        "./folder",
        "https://example.org/x.whl",
        "git+https://example.org/x",
        "two words",
        "# g",
        "",
        "x" + " " * 100_000 + "y",
    ]
    (tmp_path / "requirements.txt").write_text("\n".join([*lines, *others]))
    assert [package[:2] for package in locked_packages(tmp_path)] == [
        ("Click", None), ("flask", None), ("a", None), ("c", None), ("d", None), ("e", "2.0"), ("f", "1.0"),
    ]  # fmt: skip


def test_a_folder_without_lock_files_belongs_to_the_project_around_it_up_to_its_repository(tmp_path: Path) -> None:
    inner = tmp_path / "repository" / "packages" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("outside==1\n")
    assert locked_packages(inner) == [], "no repository tells what belongs together"
    (tmp_path / "repository" / ".git").mkdir()
    assert locked_packages(inner) == [], "what lies outside of the repository is another project"
    (tmp_path / "repository" / "requirements.txt").write_text("around==2\n")
    assert [package[:3] for package in locked_packages(inner)] == [("around", "2", "../../requirements.txt")]
    (inner / "requirements.txt").write_text("own==3\n")
    assert [package[:3] for package in locked_packages(inner)] == [("own", "3", "requirements.txt")]


def test_several_lock_files_are_read_in_a_fixed_order(tmp_path: Path) -> None:
    for name, text in {"go.mod": GO, "requirements.txt": "a==1\n", "uv.lock": TOML}.items():
        (tmp_path / name).write_text(text)
    assert [package.file for package in locked_packages(tmp_path)][:2] == ["uv.lock", "requirements.txt"]


def test_requirements_for_running_come_before_those_for_development(tmp_path: Path) -> None:
    for number, name in enumerate(("requirements-dev.txt", "requirements.txt", "requirements-all.txt")):
        (tmp_path / name).write_text(f"widget=={number}\n")
    expected = ["requirements.txt", "requirements-all.txt", "requirements-dev.txt"]
    assert [package.file for package in locked_packages(tmp_path)] == expected


def test_requirements_are_read_as_powershell_writes_them(tmp_path: Path) -> None:
    """pip freeze > requirements.txt"""
    (tmp_path / "requirements.txt").write_bytes("widget==1.2\r\n".encode("utf-16"))
    assert [package[:2] for package in locked_packages(tmp_path)] == [("widget", "1.2")]


def test_a_project_without_lock_files_has_no_versions_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    assert locked_packages(tmp_path) == []
    with pytest.raises(SourceError):
        locked_packages(tmp_path / "nowhere")


LOCK_FILES = ["uv.lock", "poetry.lock", "requirements.txt", "package-lock.json", "Cargo.lock", "go.mod"]
PIECES = st.sampled_from(
    [
        "widget", "==", ">=", " ", "\n", "1.2", "9" * 5000, "[[package]]\n", 'name = "widget"\n', 'version = "1.2"\n', "version = 3\n",
        'dependencies = ["widget 1"]\n', "dependencies = [1]\n", "require (\n", ")\n", "replace ", "=>", "github.com/acme/widget v1.2.0\n",
        '{"packages": {"node_modules/widget": ', '{"version": "1.2"}', '{"version": "\\ud800"}', "}}", "[", "\x1b[31m",
    ]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(LOCK_FILES),
    st.binary(max_size=300) | st.lists(PIECES, max_size=12).map(lambda pieces: "".join(pieces).encode()),
)
def test_no_content_of_a_lock_file_raises(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    for package in locked_packages(tmp_path):
        assert package.name
        assert package.version != ""
        choose(package.version or "", ["v1.0.0", "nightly"]).reason.encode()
    (tmp_path / name).unlink()


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "3",
        "null",
        '{"packages": [1]}',
        '{"packages": {"node_modules/a": 1}}',
        "[" * 100_000,
        '{"dependencies": 3}',
    ],
)
def test_json_of_another_shape_is_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "package-lock.json").write_text(text)
    assert locked_packages(tmp_path) == []
