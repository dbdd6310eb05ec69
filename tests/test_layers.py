"""Rules of layers that .importlinter cannot express."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "kebab"


def test_the_core_imports_only_the_standard_library_and_itself() -> None:
    allowed = {*sys.stdlib_module_names, "kebab.core"}
    for path in (PACKAGE / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.split(".")[0] in allowed or ".".join(name.split(".")[:2]) in allowed, f"{path.name}: {name}"


def test_the_retrievers_load_neither_models_nor_parsers_nor_stores() -> None:
    code = "import sys, kebab.search.hybrid, kebab.search.vector; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    unwanted = (
        "kebab.embedding",
        "kebab.parsing",
        "kebab.chunking",
        "kebab.sources",
        "kebab.store",
        "numpy",
        "onnxruntime",
    )
    assert [module for module in loaded if module.startswith(unwanted)] == []
