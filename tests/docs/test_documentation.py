"""The documentation says what the program does: its sessions run as shown, its references are complete and up to date."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from tests.forked_kb import kb_command
from tests.qdrant_server import QdrantNode

from kebab.config.loading import load_settings
from kebab.config.settings import all_settings

ROOT = Path(__file__).resolve().parents[2]


def _module(name: str) -> dict[str, Any]:
    """The names in a module of docs/, which is not a package."""
    before = list(sys.path)
    try:
        return runpy.run_path(str(ROOT / "docs" / name))
    finally:
        sys.path[:] = before


GENERATE = _module("generate.py")
SESSIONS = _module("sessions.py")
COMMANDS = [(" ".join(names), command) for names, command in GENERATE["walk"](GENERATE["cli"])]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
HINT = "Run scripts/docs and look at what changed."


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_generated_files_are_up_to_date_and_no_schema_is_left_over() -> None:
    generated: dict[str, str] = GENERATE["generated_files"]()
    for name, text in generated.items():
        assert (ROOT / name).is_file(), HINT
        assert _read(name) == text, HINT
    present = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/wire-schema").rglob("*.json")}
    assert present == {name for name in generated if name.endswith(".json")}


@pytest.mark.parametrize("name", SESSIONS["DOCUMENTS"])
def test_every_command_of_a_document_runs_and_prints_what_is_shown(name: str, model_cache: Path) -> None:
    _check_sessions(name, SESSIONS["run_document"](_read(name), model_cache, kb=kb_command()))


@pytest.mark.parametrize("name", SESSIONS["WITH_SERVER"])
def test_every_command_about_a_server_runs_with_one(name: str, model_cache: Path, one_node: QdrantNode) -> None:
    server = f"127.0.0.1:{one_node.http_port}"
    _check_sessions(name, SESSIONS["run_document"](_read(name), model_cache, server=server, kb=kb_command()))


def _check_sessions(name: str, blocks: Iterable[tuple[Any, list[Any]]]) -> None:
    wrong = []
    outcomes = [outcome for _, block in blocks for outcome in block]
    for outcome in outcomes:
        if not outcome.as_documented:
            shown = outcome.printed if outcome.command.shown is None else outcome.command.shown
            difference = "\n".join(
                unified_diff(shown.split("\n"), outcome.printed.split("\n"), "shown", "printed", lineterm="")
            )
            codes = f"exit code {outcome.exit_code}, documented {outcome.command.exit_code}"
            wrong.append(
                f"{name}:{outcome.command.line}: {outcome.command.text}\n{codes}\n{difference or outcome.printed}"
            )
    assert outcomes
    assert not wrong, "\n\n".join([*wrong, HINT])


@pytest.mark.parametrize("name", [*SESSIONS["DOCUMENTS"], *SESSIONS["WITH_SERVER"]])
def test_a_block_that_is_not_run_gives_a_reason(name: str) -> None:
    skipped = [
        command.text for block in SESSIONS["blocks"](_read(name)) if not block.is_run for command in block.commands()
    ]
    allowed = re.compile(
        r"(scripts/|pip |python3 -m venv|\. \.venv|export |kb index --rebuild-fts$|kb serve)"
    )  # it serves until it is stopped
    assert [text for text in skipped if not allowed.match(text)] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_config_file_shown_is_accepted(name: str, tmp_path: Path) -> None:
    for number, content in enumerate(re.findall(r"^```toml\n(.*?)^```$", _read(name), re.DOTALL | re.MULTILINE)):
        path = tmp_path / f"{number}.toml"
        path.write_text(content, encoding="utf-8")
        load_settings(path, environment={})


@pytest.mark.parametrize("name", PAGES)
def test_every_link_to_a_file_or_section_leads_somewhere(name: str) -> None:
    prose = re.sub(r"^(`{3,}).*?^\1$", "", _read(name), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^()\s]+)\)", prose):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        if path == "benchmarks/README.md":
            continue  # benchmarks are not part of every copy of the sources
        target = ((ROOT / name).parent / path).resolve() if path else ROOT / name
        assert target.exists(), f"{name}: {link}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{name}: {link}"


def test_every_command_and_option_is_in_the_reference() -> None:
    reference = _read("docs/reference/cli.md")
    everywhere, _, rest = reference.partition("\n## kb ")
    for call, command in COMMANDS:
        section = next((part for part in f"kb {rest}".split("\n## ") if part.startswith(f"{call}\n")), None)
        if call == "kb":
            section = everywhere
        assert section is not None, f"{call} is not in docs/reference/cli.md"
        missing = [
            option
            for parameter in command.params
            if parameter.param_type_name == "option"
            for option in (*parameter.opts, *parameter.secondary_opts)
            if not re.search(rf"`{re.escape(option)}[ `]", section + everywhere)
        ]
        assert missing == [], call


def test_every_command_has_help_an_example_and_a_word_for_each_option() -> None:
    for call, command in COMMANDS:
        assert command.help, call
        assert "Example:" in (command.epilog or ""), call
        without = [option for option in command.params if option.param_type_name == "option" and not option.help]
        assert without == [], call


def test_every_setting_has_a_line_of_documentation() -> None:
    reference = _read("docs/reference/settings.md")
    for setting in all_settings():
        assert len(setting.doc) > 10, setting.key
        section = reference.partition(f"\n## [{setting.section}]\n")[2].partition("\n## ")[0]
        line = next(line for line in section.split("\n") if line.startswith(f"| `{setting.name}` |"))
        assert setting.doc.replace("|", "\\|") in line, setting.key
        assert setting.variable in line, setting.key


def test_the_limits_of_korean_search_are_documented() -> None:
    """A mixed query works, without morphology recall is limited, and the extra that helps is named."""
    section = _read("docs/guide.md").partition("\n## Korean\n")[2].partition("\n## ")[0]
    for said in ("mixed with English", "no morphology", "Recall is lower", "kebab[korean]"):
        assert said in section


def test_every_file_that_the_architecture_names_exists_and_every_package_is_named() -> None:
    page = _read("docs/ARCHITECTURE.md")
    named = {name.rstrip("/") for name in re.findall(r"`([a-z_0-9./]+(?:\.py|/))[`:]", page)}
    homes = [ROOT, ROOT / "src/kebab"]
    assert sorted(name for name in named if not any((home / name).exists() for home in homes)) == []
    rooms = {path.parent.name for path in (ROOT / "src/kebab").glob("*/__init__.py")}
    assert sorted(room for room in rooms if f"{room}/" not in page) == []
    assert len(page.splitlines()) <= 200
