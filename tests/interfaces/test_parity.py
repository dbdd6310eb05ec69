"""The same questions give the same answers on every surface."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from tests.conftest import REPOSITORY
from tests.interfaces.mcp.sessions import Session, command, connected, environment, over_stdio, serving

import kebab
from kebab.interfaces.cli.main import run
from kebab.search.options import SearchRequest
from kebab.wire import plain
from kebab.wire.search import search_response_v1

QUESTIONS: list[dict[str, Any]] = [
    {"query": "install git"},
    {"query": "install git", "mode": "lexical"},
    {"query": "how do I set up version control", "mode": "vector", "k": 4, "rerank": 20},
    {"query": "bread that rises over night", "mode": "hybrid", "fusion": "convex"},
    {"query": "git", "k": 3, "offset": 2, "fusion": "rrf"},
    {"query": "git", "tags_any": ["git", "rust"]},
    {"query": "the", "tags_all": ["git"], "match": "any"},
    {"query": "install", "type": ["markdown"], "format": ["md"]},
    {"query": "git", "lang": "en", "path": "git/**"},
    {"query": "검색", "lang": "ko"},
    {"query": "문서를 검색하는 방법"},
    {"query": "install", "trust_min": "secondary", "source": ["notes"]},
    {"query": "identity", "doc": ["git/setup.md"]},
    {"query": "the", "after": "2020-01-01", "sort": "date", "match": "any"},
    {"query": "the", "before": "2025-01-01", "match": "any"},
    {"query": "git", "exclude_path": ["git/*"]},
    {"query": "git", "exclude_tag": ["git"]},
    {"query": "create a dial", "library": "/acme/widget"},
    {"query": "dial", "library": "/acme/widget", "snippet_type": "code"},
    {"query": "rust workspace packages", "match": "all"},
    {"query": "git", "per_doc": 1},
    {"query": "git", "duplicates": "show", "group": True},
    {"query": "install git", "threshold": 0.02},
    {"query": "install git", "min_score": 0.5, "highlight": False},
    {"query": "install git", "max_tokens": 150},
    {"query": "identity", "k": 2, "full_text": True, "neighbours": 1},
    {"query": "install git", "k": 2, "explain": True},
    {"query": "inst", "type_ahead": True, "mode": "lexical"},
    {"query": '"user.name" OR lentil*', "mode": "lexical"},
    {"query": "instal gti", "mode": "lexical"},
]
PAGING = {"query": "git", "mode": "lexical", "k": 2}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"query": "x", "type": ["pfd"]}, "usage"),
    ({"query": "x", "k": 0}, "usage"),
    ({"query": "x", "source": ["nowhere"]}, "not_found"),
    ({"query": "x", "library": "/no/such"}, "not_found"),
    ({"query": "x", "cursor": "nonsense"}, "stale_cursor"),
    ({"query": "'a AND ('", "mode": "lexical"}, "invalid_query"),
]
MISTAKES: list[dict[str, Any]] = [
    {"tga": "x"},
    {"explian": "x"},
    {"nonsense": "1"},
    {"k": 0},
    {"k": 1001},
    {"k": "many"},
    {"k": 2.5},
    {"offset": -1},
    {"rerank": 51},
    {"per_doc": 0},
    {"neighbours": 6},
    {"max_tokens": "1_000"},
    {"threshold": "high"},
    {"threshold": 3},
    {"min_score": 1.01},
    {"mode": "psychic"},
    {"type": ["pfd"]},
    {"snippet_type": "poem"},
    {"lang": ""},
    {"source": [" "]},
    {"after": "soon"},
    {"library": "widget"},
    {"k": 3, "top": 4},
]


@pytest.fixture(scope="module")
def vectors_db(model_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample notes and a library, with vectors of the bundled models."""
    folder = tmp_path_factory.mktemp("parity")
    library = folder / "widget"
    library.mkdir()
    (library / "guide.md").write_text(
        "# Guide\n\n## Create a dial\n\nLike this:\n\n```python\ndial = make_dial(limit=20)\n```\n"
    )
    database = folder / "parity.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KEBAB_EMBEDDING_MODEL", raising=False)
        patch.setenv("XDG_CACHE_HOME", str(model_cache))
        with kebab.open(database) as knowledge_base:
            knowledge_base.ingest(REPOSITORY / "samples" / "notes")
            knowledge_base.libraries.add(str(library), library_id="/acme/widget", title="Widget")
    return database


class Surfaces:
    """All surfaces of one database."""

    def __init__(
        self, database: Path, environment: dict[str, str], address: str, stdio: Session, over_http: Session
    ) -> None:
        self._database = database
        self._environment = environment
        self._address = address
        self._stdio = stdio
        self._over_http = over_http

    def answers(self, questions: list[dict[str, Any]], knowledge_base: kebab.KnowledgeBase) -> dict[str, list[Any]]:
        return {
            "cli": self._cli(questions),
            "python": [self._python(knowledge_base, question) for question in questions],
            "http": [self._get(question) for question in questions],
            "http bulk": self._bulk(questions),
            "mcp stdio": [self._stdio.call("search", **question).structured_content for question in questions],
            "mcp http": [self._over_http.call("search", **question).structured_content for question in questions],
        }

    def _cli(self, questions: list[dict[str, Any]]) -> list[Any]:
        lines = "\n".join(map(json.dumps, questions))
        asked = command(self._database, "search", "--bulk")
        done = subprocess.run(
            asked, input=lines, capture_output=True, text=True, env=self._environment, timeout=120, check=True
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def _python(self, knowledge_base: kebab.KnowledgeBase, question: dict[str, Any]) -> Any:
        try:
            return plain(search_response_v1(knowledge_base.search(**question)))
        except kebab.KebabError as error:
            return {
                "schema_version": "error.v1",
                "code": error.code,
                "message": error.message,
                "hint": error.hint,
                "path": error.path,
                "id": None,
            }

    def _get(self, question: dict[str, Any]) -> Any:
        texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in question.items()}
        return _body(Request(f"{self._address}api/v1/search?{urlencode(texts, doseq=True)}"))

    def _bulk(self, questions: list[dict[str, Any]]) -> list[Any]:
        body = json.dumps({"queries": questions}).encode()
        responses: list[Any] = _body(
            Request(f"{self._address}api/v1/search/bulk", body, {"Content-Type": "application/json"})
        )["responses"]
        return responses


def _body(request: Request) -> Any:
    from urllib.error import HTTPError

    try:
        with urlopen(request, timeout=60) as response:
            return json.load(response)
    except HTTPError as error:
        with error:
            return json.load(error)


@pytest.fixture(scope="module")
def surfaces(vectors_db: Path, model_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    home = tmp_path_factory.mktemp("parity-home")
    with ExitStack() as stack:
        own = {"KEBAB_EMBEDDING_MODEL": "bundled", "XDG_CACHE_HOME": str(model_cache)}
        address, _ = stack.enter_context(serving(vectors_db, home, **own))
        stdio = stack.enter_context(over_stdio(vectors_db, home, **own))
        over_http = stack.enter_context(connected(f"{address}mcp"))
        yield Surfaces(vectors_db, environment(home, **own), address, stdio, over_http)


def test_the_questions_are_thirty_and_use_every_option() -> None:
    assert len(QUESTIONS) == 30
    used = {name for question in [*QUESTIONS, *(wrong for wrong, _ in WRONG)] for name in question}
    assert used == set(SearchRequest._fields)


@pytest.mark.usefixtures("bundled_models")
def test_the_same_questions_get_the_same_answers_on_every_surface(surfaces: Surfaces, vectors_db: Path) -> None:
    with kebab.open(vectors_db) as knowledge_base:
        answers = surfaces.answers(QUESTIONS, knowledge_base)
        for number, question in enumerate(QUESTIONS):
            expected = _without_time(answers["python"][number])
            assert expected["schema_version"] == "search_response.v1", expected
            for surface, found in answers.items():
                assert _without_time(found[number]) == expected, (surface, question)
        assert {answer["method"] for answer in answers["python"]} == {"lexical", "vector", "hybrid"}
        assert sum(bool(answer["hits"]) for answer in answers["python"]) >= 28


@pytest.mark.usefixtures("bundled_models")
def test_pages_and_errors_are_the_same_on_every_surface(surfaces: Surfaces, vectors_db: Path) -> None:
    with kebab.open(vectors_db) as knowledge_base:
        first = surfaces.answers([PAGING], knowledge_base)
        cursors = {answer[0]["next_cursor"] for answer in first.values()}
        assert len(cursors) == 1
        second = surfaces.answers([{**PAGING, "cursor": cursors.pop()}, *(wrong for wrong, _ in WRONG)], knowledge_base)
    for surface, answers in second.items():
        page, *errors = answers
        assert _without_time(page) == _without_time(second["python"][0]), surface
        assert [hit["rank"] for hit in page["hits"]] == [3, 4]
        assert [error["code"] for error in errors] == [code for _, code in WRONG], surface
        assert all(error["schema_version"] == "error.v1" and error["hint"] for error in errors)


@pytest.mark.usefixtures("bundled_models")
def test_a_wrong_option_gets_the_same_words_on_every_surface(
    surfaces: Surfaces, vectors_db: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with kebab.open(vectors_db) as knowledge_base:
        answers = surfaces.answers([{"query": "x", **mistake} for mistake in MISTAKES], knowledge_base)
    answers["command line"] = []
    for mistake in MISTAKES:
        assert run(["search", "x", *_flags(mistake), "--db", str(vectors_db), "--json"]) == 2
        answers["command line"].append(json.loads(capsys.readouterr().out))
    for number, mistake in enumerate(MISTAKES):
        words = {
            surface: {name: found[number][name] for name in ("code", "message", "hint")}
            for surface, found in answers.items()
        }
        assert words == dict.fromkeys(words, words["python"]), mistake
        assert words["python"]["code"] == "usage"
        assert all(words["python"].values())


def _flags(options: dict[str, Any]) -> list[str]:
    return [
        text
        for name, value in options.items()
        for one in (value if isinstance(value, list) else [value])
        for text in (f"--{name.replace('_', '-')}", str(one))
    ]


def _without_time(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without its duration."""
    return {name: value for name, value in answer.items() if name != "took_ms"}
