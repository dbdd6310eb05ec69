"""Lexical mode never uses the network."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import User

FORBID = """
import socket
import sys

def refuse(*_: object, **__: object) -> None:
    raise RuntimeError("this process must not touch the network")

socket.socket = refuse
socket.create_connection = refuse
socket.getaddrinfo = refuse
sys.addaudithook(lambda event, _: refuse() if event.startswith(("socket.", "urllib.", "http.client.")) else None)
"""

COMMANDS = [
    ("ingest", "NOTES"),
    ("search", "install git", "--mode", "lexical"),
    ("search", "install git", "--fts-only"),
    ("search", "install git"),
    ("search", "문서"),
    ("ask", "How do I install git?"),
    ("list", "docs"),
    ("verify",),
    ("doctor",),
]


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "offline").mkdir()
    (tmp_path / "offline" / "sitecustomize.py").write_text(FORBID)
    return {"PYTHONPATH": str(tmp_path / "offline")}


def test_the_test_of_forbidden_sockets_fails_if_a_socket_is_opened(user: User, offline: dict[str, str]) -> None:
    """Otherwise the other test would prove nothing."""
    import sys

    code = "import socket; socket.socket()"
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**user.environment, **offline}, capture_output=True, text=True, check=False
    )
    assert "must not touch the network" in ran.stderr


def test_all_lexical_commands_work_with_sockets_forbidden(user: User, offline: dict[str, str]) -> None:
    user.write("git.md", "# Install git\n\nRun the installer.\n")
    user.write("ko.md", "# 한국어\n\n문서를 검색하는 방법.\n")
    for command in COMMANDS:
        answer = user.ask(*(str(user.notes) if argument == "NOTES" else argument for argument in command), env=offline)
        if command[0] == "search":
            assert answer["returned"] >= 1
            assert answer["method"] == "lexical"
            assert all(hit["retrieval_method"] == "fts5-bm25" for hit in answer["hits"])
            assert all(hit["retrieval"]["vector_score"] is None for hit in answer["hits"])
            assert all(hit["citation"]["uri"] for hit in answer["hits"])


def test_search_works_without_network_interfaces(reader: User) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-n", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("unshare -n is not permitted here")
    command = [unshare, "-n", *map(str, reader.arguments("search", "install git", "--json"))]
    ran = subprocess.run(command, env=reader.environment, cwd=reader.folder, capture_output=True, check=True)
    assert b'"git.md"' in ran.stdout
