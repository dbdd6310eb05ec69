"""The order of source code among the hits: definitions come first, tests and examples last."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import kebab

FILES = {
    "app/routing.py": "def compile_path(path):\n    return path.split('/')\n",
    "app/uses.py": "from app.routing import compile_path\n\nPATHS = [compile_path(p) for p in ('a', 'b', compile_path('c'))]\n",
    "app/limits.py": "import os\n\nMOST_PARTS = int(os.environ['PARTS'])\n",
    "app/checks.py": "def too_many(parts):\n    return MOST_PARTS < len(parts) or MOST_PARTS == 0\n",
    "app/secret.py": "class Secret:\n    def reveal(self):\n        return self\n",
    "tests/test_routing.py": "def test_compile_path():\n    assert compile_path('a') == compile_path('a')\n",
    "examples/routes.py": "compile_path('here')  # split a path into its pieces\n",
    "docs/routing.md": "# Routing\n\nA path is compiled by compile_path.\n",
}


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> kebab.KnowledgeBase:
    folder = tmp_path_factory.mktemp("code")
    for day, (name, text) in enumerate(FILES.items(), start=1):
        file = folder / "src" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (day * 86_400, day * 86_400))
    kb = kebab.open(folder / "kb.sqlite", embedding_model="none")
    kb.ingest(folder / "src")
    return kb


def paths(kb: kebab.KnowledgeBase, query: str, **options: object) -> list[str]:
    return [Path(hit.doc_path).name for hit in kb.search(query, mode="lexical", **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "query",
    [
        "compile_path",
        "where is compile_path defined",
        "routing.compile_path compile_path",
        "compile_path는 어디에 정의되어 있나",
    ],
)
def test_the_definition_of_a_searched_name_comes_first_and_tests_and_examples_of_it_last(
    code: kebab.KnowledgeBase, query: str
) -> None:
    found = paths(code, query)
    assert found[0] == "routing.py"
    assert set(found[-2:]) == {"test_routing.py", "routes.py"}


def test_tests_keep_their_rank_if_the_query_asks_for_tests_or_a_filter_names_their_folder(
    code: kebab.KnowledgeBase,
) -> None:
    assert paths(code, "test compile_path")[0] == paths(code, "test_compile_path")[0] == "test_routing.py"
    assert paths(code, "compile_path", path="tests/**") == ["test_routing.py"]


def test_an_example_that_contains_the_query_as_a_phrase_keeps_its_rank(code: kebab.KnowledgeBase) -> None:
    assert paths(code, "split a path into its pieces")[0] == "routes.py"


def test_the_explanation_of_a_hit_says_why_it_changed_its_rank(code: kebab.KnowledgeBase) -> None:
    moved = [(hit.explanation or {})["moved"] for hit in code.search("compile_path", mode="lexical", explain=True)]
    assert moved[0] == "definition first"
    assert moved[-2:] == ["test or example last"] * 2


def test_constants_and_any_word_of_a_question_for_a_definition_are_treated_as_names(code: kebab.KnowledgeBase) -> None:
    assert paths(code, "where is MOST_PARTS defined")[0] == paths(code, "MOST_PARTS")[0] == "limits.py"
    assert paths(code, "where is reveal defined")[0] == "secret.py"


def test_a_plain_word_in_a_sentence_is_not_treated_as_a_name(code: kebab.KnowledgeBase) -> None:
    moved = [
        (hit.explanation or {})["moved"]
        for hit in code.search("keep a Secret safe from others", mode="lexical", explain=True)
    ]
    assert "definition first" not in moved
    assert paths(code, "Secret")[0] == "secret.py"


def test_hits_sorted_by_date_or_with_match_all_are_not_reordered_for_code(code: kebab.KnowledgeBase) -> None:
    newest = [hit.date for hit in code.search("compile_path", mode="lexical", sort="date")]
    assert newest == sorted(newest, reverse=True)
    assert len(set(newest)) == len(newest)
    scores = [hit.score for hit in code.search("compile_path", mode="lexical", match="all")]
    assert scores == sorted(scores, reverse=True)


def test_paging_with_a_minimum_score_continues_after_definitions_that_were_moved_to_the_front(
    code: kebab.KnowledgeBase,
) -> None:
    scores = {Path(hit.doc_path).name: hit.score for hit in code.search("compile_path", mode="lexical")}
    least = scores["test_routing.py"]
    assert scores["routing.md"] < least, "moved behind a lower score"
    found, cursor = [], None
    for _ in scores:
        page = code.search("compile_path", mode="lexical", k=1, min_score=least, cursor=cursor)
        found += [Path(hit.doc_path).name for hit in page]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == [name for name in scores if scores[name] >= least]
    assert cursor is None
