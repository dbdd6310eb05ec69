"""The public names of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kebab


def test_all_is_sorted_and_complete() -> None:
    assert list(kebab.__all__) == sorted(kebab.__all__)
    assert dir(kebab) == sorted([*kebab.__all__, "open"]), "a star import must not hide the built-in open"
    assert {
        "ChunkContext", "Citation", "Embedder", "FusionPolicy", "HitList", "HybridRetriever", "KnowledgeBase", "LexicalRetriever", "RetrievalDetail", "Retriever", "SearchFilters",
        "SearchHit", "SearchQuery", "VectorRetriever", "VectorStore", "__version__",
    } <= set(kebab.__all__)  # fmt: skip


@pytest.mark.parametrize("name", kebab.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(kebab, name) is not None


def test_star_import_gives_exactly_the_public_names() -> None:
    script = "from kebab import *\nprint(*sorted(name for name in dir() if not name.startswith('__') or name == '__version__'))"
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(shown) == set(kebab.__all__)


def test_a_private_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        kebab.nonsense  # noqa: B018


def test_importing_the_package_loads_no_database() -> None:
    script = "import sys, kebab; print('apsw' in sys.modules, 'click' in sys.modules)"
    assert subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split() == ["False", "False"]
