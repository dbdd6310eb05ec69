"""The output of commands: exact in a pipe, harmless on a terminal, and a clear error if it cannot be written."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import User

COLOURED = "build \x1b[32mPASS\x1b[0m ok\nansilogword \x1b]0;title\x07 error\r\nlast without end"


@pytest.fixture
def coloured(user: User) -> User:
    user.write("ci.log", COLOURED)
    user.ingest()
    return user


@pytest.mark.parametrize("what", [("doc", "ci.log"), ("span", "ci.log#L1-L3")])
def test_fetch_writes_the_file_byte_for_byte_into_a_pipe(coloured: User, what: tuple[str, str]) -> None:
    done = subprocess.run(coloured.arguments("fetch", *what), capture_output=True, check=True, env=coloured.environment)
    assert done.stdout == COLOURED.encode() + b"\n"


def test_fetch_removes_control_characters_on_a_terminal(coloured: User) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(coloured.arguments("fetch", "doc", "ci.log"), stdout=theirs, env=coloured.environment)
    process.wait(30)
    shown = os.read(ours, 65536)
    os.close(ours)
    os.close(theirs)
    assert b"\x1b" not in shown
    assert b"PASS" in shown


@pytest.mark.parametrize(
    "arguments", [["search", "install", "--json"], ["search", "install"], ["list", "docs"], ["fetch", "doc", "git.md"]]
)
def test_output_to_a_full_disk_is_one_clear_error(reader: User, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            reader.arguments(*arguments),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env=reader.environment,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "Error: The output cannot be written: No space left on device."
    assert "Traceback" not in done.stderr


def test_a_page_of_korean_text_is_accepted_as_a_query(reader: User) -> None:
    """Searching for every pair of its letters would take too long."""
    import json

    query = "".join(chr(0xAC00 + number * 7919 % 11172) for number in range(100_000))
    started = time.monotonic()
    done = reader.run("search", "--bulk", "--mode", "lexical", input=json.dumps({"query": query}).encode())
    assert time.monotonic() - started < 10
    assert "long_query" in [notice["code"] for notice in done.json()["notices"]]


def test_an_unreadable_file_is_not_reported_as_gone(user: User) -> None:
    file = user.write("secret.md", "hidden")
    user.ingest()
    file.chmod(0)
    report = user.ask("verify")
    assert (report["unreadable"], report["gone"]) == (1, 0)
    assert user.run("verify", "--strict").code == 1


def test_a_text_that_was_emptied_is_no_longer_found(user: User) -> None:
    user.run("ingest", "-", "--title", "T", input=b"hello stdinword\n")
    assert user.found("stdinword")
    assert user.run("ingest", "-", "--title", "T", input=b"").code == 0
    assert user.found("stdinword") == []


@pytest.mark.parametrize("name", ["/tmp/x", "~/notes", "a\nb", "a:b"])
def test_a_source_is_not_named_like_a_path_or_a_citation(user: User, name: str) -> None:
    user.write("a.md", "alpha")
    user.fails("ingest", user.notes, "--name", name, code="usage")


def test_a_cursor_and_an_offset_contradict_each_other(reader: User) -> None:
    cursor = reader.ask("search", "install", "-k", "1", "--match", "any")["next_cursor"]
    reader.fails("search", "install", "-k", "1", "--match", "any", "--cursor", cursor, "--offset", "5", code="usage")


def test_a_raw_expression_without_content_is_an_empty_query(reader: User) -> None:
    answer = reader.ask("search", "''")
    assert (answer["hits"], [notice["code"] for notice in answer["notices"]]) == ([], ["empty_query"])


@pytest.mark.parametrize(("key", "value"), [("model", "bogus"), ("model", "onnx:"), ("endpoint", "not a url")])
def test_an_impossible_model_or_endpoint_is_refused_with_its_config_file(user: User, key: str, value: str) -> None:
    file = user.write("config.toml", f'[embedding]\n{key} = "{value}"\n')
    user.environment.pop("KEBAB_EMBEDDING_MODEL")
    done = user.fails("--config", file, "config", "show", code="invalid_config")
    assert done.json()["path"] == str(file)
    assert f"embedding.{key}" in done.json()["message"]
