"""The table of commands: names, help, versions, errors as exit codes, and modules that must not be imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kebab

Kb = Callable[..., Any]

COMMANDS = [
    "search",
    "ingest",
    "list",
    "inspect",
    "fetch",
    "verify",
    "index",
    "backup",
    "reset",
    "doctor",
    "schema",
    "init",
    "config",
]
SUBCOMMANDS = [
    *([name] for name in COMMANDS),
    ["list", "docs"], ["list", "sources"], ["list", "tags"], ["inspect", "doc"], ["inspect", "chunk"], ["fetch", "doc"], ["fetch", "chunk"], ["fetch", "span"],
    ["config", "show"],
]  # fmt: skip


@pytest.mark.parametrize("command", SUBCOMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_and_the_global_options(kb: Kb, command: list[str]) -> None:
    ran = kb(*command, "--help")
    assert ran.code == 0
    assert "Example:" in ran.out
    assert f"kb {command[0]}" in ran.out.split("Example:")[1]
    for option in ("--json", "--db", "--config", "--quiet"):
        assert option in ran.out


@pytest.mark.parametrize("group", ["list", "fetch", "inspect", "source"])
def test_a_command_group_without_a_command_lists_its_commands(kb: Kb, group: str) -> None:
    ran = kb(group)
    assert ran.code == 2
    assert f"kb {group} " in ran.err.split("One of:")[1]


def test_ctrl_c_while_the_program_loads_prints_no_traceback() -> None:
    loading = "import sys, builtins\nreal = builtins.__import__\ndef late(name, *a, **k):\n    if name == 'click': raise KeyboardInterrupt\n    return real(name, *a, **k)\nbuiltins.__import__ = late\nfrom kebab.__main__ import main\nmain()"
    done = subprocess.run([sys.executable, "-c", loading], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_help_lists_every_command_and_no_arguments_mean_help(kb: Kb) -> None:
    shown = kb("--help")
    assert shown.code == 0
    assert shown.out == kb("-h").out == kb().out
    assert all(re.search(rf"^  {name} ", shown.out, re.MULTILINE) for name in COMMANDS)


def test_help_lists_the_main_commands(kb: Kb) -> None:
    shown = kb("--help").out
    assert all(
        f"  {verb} " in shown for verb in ("ingest", "search", "ask", "init", "doctor", "inspect", "list", "eval")
    )


def test_the_version_is_that_of_the_package(kb: Kb) -> None:
    ran = kb("--version")
    assert (ran.code, ran.out.strip()) == (0, f"kebab, version {kebab.__version__}")


def test_an_unknown_command_is_answered_with_a_suggestion(kb: Kb) -> None:
    ran = kb("serch", "git")
    assert ran.code == 2
    assert "kb search" in ran.err
    assert ran.out == ""
    assert "search" in kb("frobnicate").err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("find", "kb search"),
        ("grep", "kb search"),
        ("add", "kb ingest"),
        ("rm", "kb source remove"),
        ("ls", "kb list docs"),
        ("stats", "kb schema"),
        ("check", "kb doctor"),
        ("version", "kb --version"),
    ],
)
def test_a_command_name_of_another_program_suggests_ours(kb: Kb, typed: str, meant: str) -> None:
    assert kb(typed, "something").err == f"Error: There is no command {typed}.\n  Did you mean: {meant}?\n"


def test_every_suggested_command_exists_and_no_synonym_is_a_command_itself() -> None:
    from click.testing import CliRunner

    from kebab.interfaces.cli.main import _COMMANDS, _SYNONYMS, cli

    assert not set(_SYNONYMS) & set(_COMMANDS)
    for meant in set(_SYNONYMS.values()):
        assert CliRunner().invoke(cli, [*meant.split()[1:], "--help"]).exit_code == 0, meant


def test_kb_index_with_a_file_suggests_kb_ingest(kb: Kb) -> None:
    assert kb("index", "notes").err.endswith("To index files: kb ingest PATH\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["serch"],
        ["search", "--nope", "x"],
        ["fetch", "span"],
        ["list", "nothing"],
        ["inspect"],
        ["--nope"],
        ["backup"],
        ["list", "docs", "--limit", "-1"],
    ],
    ids=" ".join,
)
def test_usage_errors_are_error_objects_under_json(kb: Kb, arguments: list[str]) -> None:
    for ran in (kb(*arguments, "--json"), kb("--json", *arguments)):
        assert ran.code == 2
        error = ran.json()
        assert (error["schema_version"], error["code"]) == ("error.v1", "usage")
        assert error["hint"]
        assert len(error["message"]) < 200
        assert "Traceback" not in ran.err


def test_without_json_errors_leave_stdout_empty(kb: Kb) -> None:
    ran = kb("inspect", "doc", "x", "--db", "none.sqlite")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: ")


def test_a_closed_pipe_is_no_error(sample_db: Path) -> None:
    shell = f"{sys.executable} -m kebab --db {sample_db} list docs --json | head -c 10"
    ran = subprocess.run(["bash", "-o", "pipefail", "-c", shell], capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr
    assert "BrokenPipe" not in ran.stderr


def test_output_is_utf8_whatever_the_locale_says(sample: Kb) -> None:
    ran = sample("search", "검색", "--json", env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    assert ran.code == 0
    assert any("검색" in hit["text"] for hit in ran.json()["hits"])


# --- what is not loaded


def loaded_modules(*arguments: str) -> set[str]:
    """The top-level modules that are loaded when the command ends."""
    script = (
        "import sys\nfrom kebab.interfaces.cli.main import run\n"
        f"code = run({list(arguments)!r})\n"
        "print(code, *sorted({name.split('.')[0] for name in sys.modules}), file=sys.__stderr__)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    code, *modules = ran.stderr.splitlines()[-1].split()
    assert code == "0", ran.stderr
    return set(modules)


HEAVY = {
    "numpy",
    "onnxruntime",
    "pydantic",
    "fastapi",
    "uvicorn",
    "mcp",
    "httpx",
    "rich",
    "yaml",
    "tokenizers",
    "huggingface_hub",
    "kiwipiepy",
    "markdown_it",
    "msgspec",
}


@pytest.mark.parametrize(
    "command", [["search", "--help"], ["--help"], ["--version"], ["ingest", "--help"], ["mcp", "--help"]], ids=" ".join
)
def test_help_loads_no_library_and_no_database(command: list[str]) -> None:
    assert not loaded_modules(*command) & (HEAVY | {"apsw", "ignore"})


def test_a_lexical_search_imports_no_unneeded_module(sample_db: Path) -> None:
    """No embedder, language model or network client is imported."""
    modules = loaded_modules("--db", str(sample_db), "search", "git", "--mode", "lexical", "--json")
    assert "apsw" in modules
    assert not modules & (HEAVY | {"ignore", "tomllib", "asyncio", "ssl", "email", "http"})


def test_a_search_with_hits_imports_no_module_for_other_answers(sample_db: Path) -> None:
    script = f"""
import sys
import kebab
with kebab.open({str(sample_db)!r}) as kb:
    assert kb.search("git", mode="lexical").hits
    others = ("did_you_mean", "edit_distance", "telling_words", "similar", "passage_lookup")
    print([name for name in sys.modules if name.startswith("kebab.") and name.endswith(others)])
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
