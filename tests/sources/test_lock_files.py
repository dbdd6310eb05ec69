"""Lock files as their tools write them, and as nobody should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kebab.core.errors import SourceError
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
"""


@pytest.mark.parametrize(
    ("name", "text", "packages"),
    [
        ("uv.lock", TOML, [("requests", "2.32.0")]),
        ("poetry.lock", TOML, [("requests", "2.32.0")]),
        ("Cargo.lock", TOML, [("requests", "2.32.0")]),
        ("requirements.txt", REQUIREMENTS, [("requests", "2.32.0"), ("Django", "5.1"), ("httpx", "0.27")]),
        ("requirements-dev.txt", "pytest==8.3.0\r\n", [("pytest", "8.3.0")]),
        ("package-lock.json", NPM, [("react", "18.3.1"), ("@vue/reactivity", "3.4.0"), ("react", "17.0.0")]),
        ("package-lock.json", OLD_NPM, [("react", "16.0.0")]),
        ("go.mod", GO, [
            ("github.com/spf13/cobra", "v1.8.0"), ("gopkg.in/yaml.v3", "v3.0.1"), ("github.com/docker/docker", "v26.0.0"),
            ("golang.org/x/text", "v0.14.0"),
        ]),
    ],
)  # fmt: skip
def test_each_kind_of_lock_file_is_read(tmp_path: Path, name: str, text: str, packages: list[tuple[str, str]]) -> None:
    (tmp_path / name).write_text(text)
    assert [(package.name, package.version) for package in locked_packages(tmp_path)] == packages
    assert {package.file for package in locked_packages(tmp_path)} == {name}


def test_several_lock_files_are_read_in_a_fixed_order(tmp_path: Path) -> None:
    for name, text in {"go.mod": GO, "requirements.txt": "a==1\n", "uv.lock": TOML}.items():
        (tmp_path / name).write_text(text)
    assert [package.file for package in locked_packages(tmp_path)][:2] == ["uv.lock", "requirements.txt"]


def test_a_project_without_lock_files_has_no_versions_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    assert locked_packages(tmp_path) == []
    with pytest.raises(SourceError):
        locked_packages(tmp_path / "nowhere")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["uv.lock", "requirements.txt", "package-lock.json", "go.mod"]), st.binary(max_size=300))
def test_whatever_is_in_them_nothing_is_raised(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert all(package.name and package.version for package in locked_packages(tmp_path))
    (tmp_path / name).unlink()


@pytest.mark.parametrize(
    "text", ["[]", "3", "null", '{"packages": [1]}', '{"packages": {"node_modules/a": 1}}', "[" * 100_000, '{"dependencies": 3}']
)
def test_json_of_another_shape_is_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "package-lock.json").write_text(text)
    assert locked_packages(tmp_path) == []
