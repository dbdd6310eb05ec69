"""What `kb mcp install` prints for each client, with this installation and database. It writes no file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from tests.conftest import Kb

from kebab.interfaces.cli.serving import CLIENTS, snippet, starting

COMMAND = ["/opt/kb", "--db", '/home/me/my "notes"/kb.sqlite', "mcp"]


@pytest.mark.parametrize("name", [name for name, client in CLIENTS.items() if not client.place.endswith(".toml")])
def test_clients_that_read_json_get_the_command_under_their_own_key(name: str) -> None:
    client = CLIENTS[name]
    server = json.loads(snippet(client, COMMAND))[client.key]["kebab"]
    assert [server["command"], *server["args"]] == COMMAND
    assert server.get("type") == ("stdio" if client.typed else None)


def test_codex_gets_toml() -> None:
    server = tomllib.loads(snippet(CLIENTS["codex"], COMMAND))["mcp_servers"]["kebab"]
    assert [server["command"], *server["args"]] == COMMAND


def test_paths_in_client_configurations_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "kb"
    program.touch()
    monkeypatch.setattr("sys.argv", ["./kb"])
    command = starting(str(tmp_path / "kb.sqlite"), "config.toml", allow_write=True)
    assert command == [
        str(program),
        "--db",
        str(tmp_path / "kb.sqlite"),
        "--config",
        str(tmp_path / "config.toml"),
        "mcp",
        "--allow-write",
    ]


def test_mcp_install_prints_the_configuration_for_this_database_and_writes_no_file(
    kb: Kb, isolated_home: Path, tmp_path: Path
) -> None:
    before = sorted(isolated_home.rglob("*"))
    ran = kb("--db", "some.sqlite", "mcp", "install", "--client", "vscode")
    assert (ran.code, ran.err) == (0, "Visual Studio Code: put this into .vscode/mcp.json\n")
    arguments = json.loads(ran.out)["servers"]["kebab"]["args"]
    assert arguments[arguments.index("--db") + 1] == str(tmp_path / "cwd" / "some.sqlite")
    assert sorted(isolated_home.rglob("*")) == before
