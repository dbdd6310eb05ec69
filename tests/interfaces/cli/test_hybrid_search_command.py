"""kb search with vectors: the real command with the bundled models."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kebab

Kb = Callable[..., Any]

NOTES = {
    "git.md": "---\ntags: [tools]\n---\n# Git\n\nInstall git, then tell it your name: git config --global user.name. Run git init in a folder, "
    "commit often, and push to a remote.\n",
    "bread.md": "---\ntags: [kitchen]\n---\n# Bread\n\nMix flour, water, salt and yeast. Let the dough rest overnight, then bake it hot.\n",
    "tax.md": "---\ntags: [office]\n---\n# Tax return\n\nCollect all receipts before May and send the forms to the office.\n",
    "garden.md": "---\ntags: [garden]\n---\n# Tomatoes\n\nWater the plants in the morning and tie them to a stick.\n",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, model_cache: Path) -> Path:
    folder = tmp_path_factory.mktemp("hybrid-command")
    (folder / "notes").mkdir()
    for path, text in NOTES.items():
        (folder / "notes" / path).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(model_cache))
        with kebab.open(folder / "kb.sqlite", embedding_model="bundled") as knowledge_base:
            knowledge_base.ingest(folder / "notes")
    return folder / "kb.sqlite"


@pytest.fixture
def search(kb: Kb, database: Path, bundled_models: None) -> Kb:
    def run(*arguments: str) -> Any:
        ran = kb("--db", database, "search", *arguments)
        assert ran.code == 0, ran.err
        return ran

    return run


def test_a_question_without_words_of_the_page_finds_the_page_that_answers_it(search: Kb) -> None:
    """Hybrid is the default mode."""
    answer = search("how to set up version control", "--json").json()
    assert not any(word in NOTES["git.md"].lower() for word in ("version", "control", "set up"))
    assert (answer["mode"], answer["method"]) == ("hybrid", "hybrid")
    assert answer["hits"][0]["doc_path"] == "git.md"
    assert answer["hits"][0]["retrieval"]["vector_rank"] == 1
    assert answer["hits"][0]["embedding_model"]


def test_vec_only_gives_vector_results_and_nothing_of_the_text_index(search: Kb) -> None:
    answer = search("install git", "--vec-only", "--json").json()
    assert (answer["mode"], answer["method"], answer["match"]) == ("vector", "vector", None)
    assert answer["index_version"].startswith("vec:")
    assert answer["hits"][0]["doc_path"] == "git.md"
    for hit in answer["hits"]:
        detail = hit["retrieval"]
        assert (detail["method"], detail["lexical_score"], detail["lexical_rank"], detail["rrf_score"]) == (
            "vector",
            None,
            None,
            None,
        )


def test_explain_shows_lexical_vector_and_fused_rank_and_score_of_every_hit(search: Kb) -> None:
    """It also shows that fewer hits passed the filter than were requested."""
    shown = search("flour and water", "--explain", "--tag", "kitchen", "--tag", "garden").out
    assert re.search(r"^   lexical: rank 1, score 0\.\d{4}$", shown, re.MULTILINE)
    assert re.search(r"^   vector: rank 1, score 0\.\d{4} \(granite-\S+\)$", shown, re.MULTILINE)
    weighed = r"^   rrf: 0\.0328; with weights lexical 0\.0164 \+ vector 0\.0164 \+ exact 0\.0164$"
    assert re.search(weighed, shown, re.MULTILINE)
    fused = r"^   fusion: rank 1, score 1\.0000 \(hybrid-rrf, weights lexical 1, vector 1, exact 1\)$"
    assert re.search(fused, shown, re.MULTILINE)
    assert re.search(r"^fewer than asked for by [89]: no more passages match or pass the filters$", shown, re.MULTILINE)


def test_a_threshold_of_002_keeps_only_hits_found_by_words_and_by_meaning(search: Kb) -> None:
    everything = search("install git", "--json").json()["hits"]
    above = search("install git", "--threshold", "0.02", "--json").json()["hits"]
    assert [hit["doc_path"] for hit in above] == ["git.md"]
    assert all(hit["retrieval"]["rrf_score"] < 0.02 for hit in everything[1:])
