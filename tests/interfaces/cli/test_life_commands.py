"""kb init, config show, index, backup, reset and doctor."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from kebab.config.settings import all_settings
from kebab.store.sqlite import migrations

Kb = Callable[..., Any]


@pytest.fixture
def ingested(kb: Kb, write_notes: Callable[..., Path]) -> Path:
    notes = write_notes({"a.md": "# A\n\nquagga text\n", "b.md": "# B\n\nokapi text\n"})
    assert kb("ingest", notes).code == 0
    return notes


@pytest.fixture
def database(isolated_home: Path) -> Path:
    return isolated_home / "data" / "kebab" / "kebab.sqlite"


def test_init_writes_a_commented_config_and_makes_the_data_folder(kb: Kb, isolated_home: Path) -> None:
    ran = kb("init")
    config = isolated_home / "config" / "kebab" / "config.toml"
    assert ran.code == 0
    assert (isolated_home / "data" / "kebab").is_dir()
    text = config.read_text(encoding="utf-8")
    assert set(tomllib.loads(text)) == {item.section for item in all_settings()}
    assert all(values == {} for values in tomllib.loads(text).values())
    uncommented = "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
    values = tomllib.loads(uncommented)
    assert {f"{section}.{name}" for section, part in values.items() for name in part} == {
        item.key for item in all_settings()
    }


def test_init_keeps_what_exists_unless_forced(kb: Kb, isolated_home: Path) -> None:
    config = isolated_home / "config" / "kebab" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[search]\ndefault_k = 3\n", encoding="utf-8")
    assert "kept" in kb("init").out
    assert config.read_text(encoding="utf-8") == "[search]\ndefault_k = 3\n"
    assert kb("init", "--force").code == 0
    assert "default_k = 10" in config.read_text(encoding="utf-8")


def test_init_here_makes_a_database_in_the_current_folder(kb: Kb, tmp_path: Path, database: Path) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    (project / "note.md").write_text("quagga\n", encoding="utf-8")
    assert kb("init", "--here", cwd=project).code == 0
    assert kb("ingest", ".", cwd=project).code == 0
    assert (project / ".kebab" / "kebab.sqlite").is_file()
    assert not database.exists()
    assert kb("search", "quagga", "--json", cwd=project / "sub").json()["returned"] == 1
    assert kb("search", "quagga", "--json").json()["returned"] == 0


def test_config_show_names_the_origin_of_every_value(kb: Kb, tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    config.write_text("[search]\ndefault_top = 7\nsnippet_chars = 100\n", encoding="utf-8")
    shown = kb(
        "config", "show", "--config", config, "--db", "x.sqlite", "--json", env={"KEBAB_SEARCH_SNIPPET_CHARS": "80"}
    ).json()
    settings = {item["key"]: (item["value"], item["origin"]) for item in shown["settings"]}
    assert settings["search.default_k"] == (7, str(config))
    assert settings["search.snippet_chars"] == (80, "environment KEBAB_SEARCH_SNIPPET_CHARS")
    assert settings["store.path"] == ("x.sqlite", "flag")
    assert settings["search.match"] == ("auto", "default")
    assert shown["config_file"] == str(config)
    human = kb("config", "show").out
    assert all(item.key in human for item in all_settings())


@pytest.mark.parametrize(
    "command",
    [
        ["search", "x"],
        ["ingest"],
        ["list", "docs"],
        ["doctor"],
        ["config", "show"],
        ["schema"],
        ["verify"],
        ["index", "--optimize"],
        ["reset", "--yes"],
    ],
)
def test_every_command_obeys_config(kb: Kb, tmp_path: Path, command: list[str]) -> None:
    config = tmp_path / "bad.toml"
    config.write_text("[search]\ndefault_k = 0\n", encoding="utf-8")
    ran = kb(*command, "--config", config, "--json")
    assert (ran.code, ran.json()["code"], ran.json()["path"]) == (2, "invalid_config", str(config))
    assert "1 to 1000" in ran.json()["hint"]


def test_rebuilding_the_text_index_repairs_it(kb: Kb, ingested: Path, database: Path) -> None:
    connection = apsw.Connection(str(database))
    connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')")
    connection.close()
    assert kb("search", "quagga", "--json").json()["returned"] == 0
    assert kb("doctor").code == 3
    assert kb("index", "--rebuild-fts").code == 0
    assert kb("search", "quagga", "--json").json()["returned"] == 1
    assert kb("doctor").code == 0


def test_an_upgrade_parses_again_what_an_older_version_parsed(kb: Kb, ingested: Path, database: Path) -> None:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("UPDATE documents SET fingerprint = 'older'")
        [(documents,)] = connection.execute("SELECT count(*) FROM documents")
    said = kb("index", "--upgrade")
    assert (said.code, f"{documents} document" in said.out, "left as" in said.out) == (0, True, False)
    assert "0 documents parsed again" in kb("index", "--upgrade").out


def test_index_without_a_task_and_without_a_database_is_an_error(kb: Kb) -> None:
    assert kb("index", "--json").json()["code"] == "usage"
    assert kb("index", "--optimize", "--json").json()["code"] == "not_found"


def test_a_backup_is_a_whole_copy_that_can_be_searched(kb: Kb, ingested: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    assert kb("backup", copy).code == 0
    assert [path.name for path in tmp_path.glob("copy*")] == ["copy.sqlite"]
    assert kb("search", "quagga", "--db", copy, "--json").json()["returned"] == 1
    again = kb("backup", copy, "--json")
    assert (again.code, "--force" in again.json()["hint"]) == (2, True)
    assert kb("backup", copy, "--force").code == 0
    assert kb("backup", tmp_path, "--json").code == 2
    assert kb("backup", tmp_path / "no" / "folder.sqlite", "--json").code == 2


def test_reset_asks_first_and_then_deletes_only_the_database(kb: Kb, ingested: Path, database: Path) -> None:
    refused = kb("reset", "--json")
    assert (refused.code, refused.json()["code"]) == (2, "usage")
    assert database.exists()
    assert kb("reset", "--yes").code == 0
    assert list(database.parent.glob("kebab.sqlite*")) == []
    assert (ingested / "a.md").exists()
    assert kb("reset", "--yes").code == 0


def test_doctor_is_healthy_before_and_after_the_first_ingest_and_names_a_missing_source(kb: Kb, ingested: Path) -> None:
    report = kb("doctor", "--json").json()
    assert report["healthy"]
    assert {check["name"] for check in report["checks"]} >= {
        "program",
        "disk",
        "database",
        "text index",
        "references",
        "source notes",
    }
    ingested.rename(ingested.with_name("away"))
    ran = kb("doctor", "--json")
    assert ran.code == 3
    (wrong,) = [check for check in ran.json()["checks"] if not check["ok"]]
    assert wrong["name"] == "source notes"
    assert wrong["hint"]


def test_doctor_without_a_database_reports_no_problem(kb: Kb) -> None:
    assert kb("doctor").code == 0


def test_schema_shows_what_the_index_holds(kb: Kb, ingested: Path) -> None:
    stats = kb("schema", "--json").json()["stats"]
    assert (stats["documents"], stats["chunks"], stats["sources"]) == (2, 2, 1)
    assert stats["index_version"].startswith(f"lex:{migrations.LATEST}:")
    assert "documents: 2" in kb("schema").out
