"""Commands in hints have the --db and --config of the run, so that they use the same database."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Kb = Callable[..., Any]
ODD_NAME = "my notes.sqlite"
NAMED = f"kb --db '{ODD_NAME}'"


@pytest.fixture
def other(kb: Kb, write_notes: Callable[..., Path]) -> Kb:
    """Runs `kb` with a database that is not the default one."""
    assert kb("--db", ODD_NAME, "ingest", write_notes({"a.md": "A note.\n"})).code == 0
    return lambda *arguments, **options: kb("--db", ODD_NAME, *arguments, **options)


def test_hints_of_errors_name_the_database(kb: Kb, other: Kb) -> None:
    assert other("fetch", "doc", "nope").err.endswith(f"  See what is there with: {NAMED} list docs\n")
    assert other("fetch", "doc", "nope", "--json").json()["hint"] == f"See what is there with: {NAMED} list docs"
    after_its_name = kb("fetch", "doc", "nope", "--db", ODD_NAME)
    assert after_its_name.err.endswith(f"  See what is there with: {NAMED} list docs\n")
    (error,) = other("search", "--bulk", input=json.dumps({"query": "note", "doc": "nope"})).json_lines()
    assert error["hint"] == f"See what is there with: {NAMED} list docs"


def test_remarks_and_notices_name_the_database(other: Kb) -> None:
    ran = other("search", "note", "--tag", "nope")
    assert f"See: {NAMED} list tags" in ran.err
    ran = other("search", "note", "--tag", "nope", "--json")
    assert f"No document has the tag nope. See: {NAMED} list tags" in [
        notice["message"] for notice in ran.json()["notices"]
    ]
    assert f"or {NAMED} list docs." in other("search", "giraffe").err


def test_doctor_names_the_database(other: Kb, tmp_path: Path) -> None:
    (tmp_path / "notes").rename(tmp_path / "away")
    assert f"{NAMED} source remove notes" in other("doctor").out


def test_a_config_file_that_was_given_is_named_too(other: Kb, tmp_path: Path) -> None:
    (tmp_path / "cwd" / "c.toml").write_text("", encoding="utf-8")
    assert other("--config", "c.toml", "fetch", "doc", "nope").err.endswith(
        f"kb --config c.toml --db '{ODD_NAME}' list docs\n"
    )


def test_without_db_or_config_options_a_hint_stays_as_written(kb: Kb, other: Kb) -> None:
    assert kb("fetch", "doc", "nope", env={"KEBAB_DB": ODD_NAME}).err.endswith("See what is there with: kb list docs\n")
