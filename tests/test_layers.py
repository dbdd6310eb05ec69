"""Who may know whom, executed: the contracts of .importlinter, and what they rest on (R003, R004, R064, R066, R077, R078, R175)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "kebab"
LEXICAL = PACKAGE / "retrieval" / "lexical.py"


def imports_of(path: Path) -> set[str]:
    """Every module a file names in an import, wherever in the file it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_every_contract_is_kept() -> None:
    """R003, R004, R064, R066, R175: Layers, no cycles, SQL drivers only under the store, the core alone with the standard library."""
    ran = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", ROOT / ".importlinter"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "0 broken" in ran.stdout


def test_the_core_imports_nothing_but_the_standard_library_and_itself() -> None:
    for path in (PACKAGE / "core").rglob("*.py"):
        for module in imports_of(path):
            assert module.split(".")[0] in sys.stdlib_module_names or module.startswith("kebab.core"), f"{path.name} imports {module}"


def test_the_lexical_retriever_imports_only_what_it_may() -> None:
    """R003, R004, R064."""
    allowed = ("kebab.core", "kebab.config", "kebab.analysis", "kebab.retrieval", "typing", "__future__", "collections", "logging")
    for path in (LEXICAL, LEXICAL.with_name("snippets.py"), LEXICAL.with_name("hydration.py")):
        assert not [
            module for module in imports_of(path) if not module.startswith(allowed) and module.split(".")[0] not in sys.stdlib_module_names
        ]


@pytest.mark.parametrize(
    "name", ["hybrid", "vector", "fusion", "depth", "duplicates", "lexical", "hydration", "snippets", "telling_words", "did_you_mean"]
)
def test_retrieval_imports_only_what_it_may(name: str) -> None:
    """R077, R078, R175: core, config, analysis and itself. Stores and models are ports of the core, and the real ones are handed in."""
    allowed = ("kebab.core.", "kebab.config.", "kebab.analysis.", "kebab.retrieval.")
    modules = imports_of(PACKAGE / "retrieval" / f"{name}.py")
    assert [module for module in modules if not module.startswith(allowed) and module.split(".")[0] not in sys.stdlib_module_names] == []


def test_every_module_of_retrieval_is_held_to_that() -> None:
    """R175: a new one is added above."""
    (checked,) = (mark.args[1] for mark in test_retrieval_imports_only_what_it_may.pytestmark)  # type: ignore[attr-defined]
    assert {path.stem for path in (PACKAGE / "retrieval").glob("*.py")} - {"__init__"} == set(checked)


def test_retrieving_loads_no_model_and_no_parser() -> None:
    """R078: whatever is imported on the way."""
    code = "import sys, kebab.retrieval.hybrid, kebab.retrieval.vector; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    unwanted = ("kebab.embedding", "kebab.parsing", "kebab.chunking", "kebab.sources", "kebab.store", "numpy", "onnxruntime", "tokenizers")
    assert [module for module in loaded if module.startswith(unwanted)] == []


def test_models_are_run_only_by_the_embedders() -> None:
    """R077, R078: nobody but the facade names an embedder, and it chooses by the setting."""
    naming = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "embedding" not in path.parts and any(module.startswith("kebab.embedding") for module in imports_of(path))
    }
    assert naming == {"knowledge_base.py"}


@pytest.mark.parametrize("driver", ["apsw", "sqlite3"])
def test_the_driver_is_named_only_in_the_store(driver: str) -> None:
    named = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(name.split(".")[0] == driver for name in imports_of(path))
    ]
    assert all(path.startswith("store/") for path in named)


def test_which_store_it_is_only_one_module_knows() -> None:
    """Not even for the sake of types: everything else speaks to the ports."""
    naming = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "store" not in path.relative_to(PACKAGE).parts and any(module.startswith("kebab.store.") for module in imports_of(path))
    }
    assert naming == {"stores.py"}


def test_sql_is_written_only_in_the_store() -> None:
    words = ("SELECT ", "INSERT INTO", "PRAGMA ", "CREATE TABLE")
    written = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "store" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and any(word in node.value for word in words)
    ]
    assert written == []


def test_fts5_expressions_are_made_in_one_place() -> None:
    assert "kebab.core.query_tree" in {name.rpartition(".")[0] for name in imports_of(PACKAGE / "store" / "fts5" / "match_expression.py")}
    for path in PACKAGE.rglob("*.py"):
        if path.name != "match_expression.py" and "store" in path.parts:
            assert not {"kebab.core.query_tree.Phrase", "kebab.core.query_tree.Prefix"} & imports_of(path)


def test_modules_are_of_a_size_one_can_read() -> None:
    long = {path.name for path in PACKAGE.rglob("*.py") if len(path.read_text(encoding="utf-8").splitlines()) > 650}
    assert not long


def test_no_file_is_a_grab_bag() -> None:
    assert not {path.stem for path in PACKAGE.rglob("*.py")} & {"utils", "util", "helpers", "common", "misc", "manager"}


def test_agents_reach_libraries_through_the_service_and_libraries_stand_on_store_and_ingest() -> None:
    """R177: library search needs the tables and the indexing, and the tools for agents need library search; never the other way."""
    tools = imports_of(PACKAGE / "interfaces" / "mcp" / "library_tools.py")
    assert not [module for module in tools if module.startswith(("kebab.store", "kebab.sources", "kebab.embedding"))]
    libraries = imports_of(PACKAGE / "libraries.py")
    assert any(module.startswith("kebab.core.store_ports") for module in libraries)
    assert any(module.startswith("kebab.pipelines.library_adding") for module in libraries)
    for path in (PACKAGE / "library").rglob("*.py"):
        assert not [module for module in imports_of(path) if module.startswith("kebab.interfaces")]
