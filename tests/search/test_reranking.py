"""Reranking inside a search: what moves, what stays, what is said about it. The real model is in tests/embedding and in
tests/interfaces/test_parity.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kebab
from kebab.core import deadline
from kebab.core.errors import ConfigError, ModelUnreachable, StaleCursor, UsageError
from kebab.core.search import MOST_RERANKED, SearchResponse
from kebab.embedding.models import is_latin

if TYPE_CHECKING:
    from tests.conftest import Toy

    from kebab.core.ports import EmbeddingKind

FILES = 70
BEST = 40
KOREAN = 23
"""How many notes stand before the Korean one."""


class Counting:
    """A model in earnest, of one idea: the more often a passage says quagga, the better it answers."""

    name = "counting"

    def __init__(self, *, seconds: float = 0.0, error: Exception | None = None, latin_only: bool = True) -> None:
        self.seconds = seconds
        self.error = error
        self.latin_only = latin_only
        self.asked: list[tuple[str, list[str]]] = []

    def reads(self, text: str, _kind: EmbeddingKind) -> bool:
        return is_latin(text) or not self.latin_only

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        self.asked.append((query, list(passages)))
        if self.error is not None:
            raise self.error
        scores: list[float] = []
        for passage in passages:
            if deadline.is_over():
                break
            time.sleep(self.seconds)
            scores.append(float(passage.count("quagga")))
        return scores


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Notes in the order of their numbers, because each is longer than the one before. Number 12 says quagga often,
    number BEST most often, and number 6 is Korean: these three stand further down.
    """
    folder = tmp_path_factory.mktemp("reranking")
    notes = folder / "notes"
    notes.mkdir()
    for number in range(FILES):
        text = f"okapi {'filler ' * (3 * number)}"
        if number == 6:
            text = f"okapi {'한국어 ' * (3 * number)}"
        (notes / f"{number:02}.md").write_text(
            text + "quagga " * {12: 20, BEST: 30}.get(number, 0) + f"\n\nnumber{number}\n", encoding="utf-8"
        )
    with kebab.open(folder / "kb.sqlite") as kb:
        kb.ingest(notes)
    return folder / "kb.sqlite"


@pytest.fixture
def kb(database: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(database) as opened:
        opened.session.reranker = Counting()
        yield opened


def paths(response: SearchResponse) -> list[str]:
    return [hit.doc_path for hit in response]


def codes(response: SearchResponse) -> list[str]:
    return [notice.code for notice in response.notices if notice.code != "vectors_off"]


def place_of(kb: kebab.KnowledgeBase, number: int, **options: Any) -> int:
    return paths(kb.search("okapi", k=FILES, **options)).index(f"{number:02}.md")


def test_a_search_does_not_rerank_unless_asked(kb: kebab.KnowledgeBase) -> None:
    before = paths(kb.search("okapi", k=FILES))
    assert kb.search("okapi", k=FILES, rerank=0).hits
    assert kb.session.reranker.asked == []  # type: ignore[attr-defined]
    assert [before.index(f"{number:02}.md") for number in (12, 6, BEST)] == [17, KOREAN, FILES - 21]


def test_what_the_model_likes_moves_up_and_the_others_keep_their_order(kb: kebab.KnowledgeBase) -> None:
    before, after = paths(kb.search("okapi", k=FILES)), paths(kb.search("okapi", k=FILES, rerank=30))
    assert place_of(kb, 12, rerank=30) < place_of(kb, 12)
    others = [[path for path in order if path not in ("12.md", "06.md")] for order in (before, after)]
    assert others[0] == others[1]
    assert after[30:] == before[30:]


@pytest.mark.parametrize(("number", "read", "reaches"), [(20, 20, False), (MOST_RERANKED, MOST_RERANKED - 1, True)])
def test_only_the_first_n_passages_are_reranked(kb: kebab.KnowledgeBase, number: int, read: int, reaches: bool) -> None:
    assert (place_of(kb, BEST, rerank=number) < place_of(kb, BEST)) == reaches
    ((_, passages),) = kb.session.reranker.asked  # type: ignore[attr-defined]
    assert len(passages) == read  # without the Korean one


@pytest.mark.parametrize("rerank", [1, 10, 30, MOST_RERANKED])
def test_a_passage_in_another_script_stays_in_its_place(kb: kebab.KnowledgeBase, rerank: int) -> None:
    assert place_of(kb, 6, rerank=rerank) == place_of(kb, 6)


def test_the_setting_reranks_every_search_and_the_option_wins(database: Path) -> None:
    with kebab.open(database, search_rerank=20) as kb:
        kb.session.reranker = Counting()
        assert place_of(kb, 12) == place_of(kb, 12, rerank=20) < place_of(kb, 12, rerank=0)


@pytest.mark.parametrize("k", [3, 10, 29, 31])
def test_pages_fit_together_and_a_longer_list_begins_like_a_shorter_one(kb: kebab.KnowledgeBase, k: int) -> None:
    whole = paths(kb.search("okapi", k=FILES, rerank=30))
    assert paths(kb.search("okapi", k=k, rerank=30)) == whole[:k]
    paged, cursor = [], None
    while True:
        page = kb.search("okapi", k=k, rerank=30, cursor=cursor)
        paged += paths(page)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert paged == whole


def test_a_cursor_belongs_to_one_way_of_reranking(kb: kebab.KnowledgeBase) -> None:
    cursor = kb.search("okapi", k=2, rerank=30).next_cursor
    with pytest.raises(StaleCursor):
        kb.search("okapi", k=2, cursor=cursor)
    with pytest.raises(StaleCursor):
        kb.search("okapi", k=2, rerank=20, cursor=cursor)


def test_a_list_by_date_stays_one(kb: kebab.KnowledgeBase) -> None:
    assert paths(kb.search("okapi", sort="date", rerank=30)) == paths(kb.search("okapi", sort="date"))


def test_the_model_gets_the_query_without_syntax_and_passages_with_their_headings(
    tmp_path: Path, kb: kebab.KnowledgeBase
) -> None:
    kb.search('"okapi" number12', rerank=5)
    ((query, passages),) = kb.session.reranker.asked  # type: ignore[attr-defined]
    assert query == "okapi number12"
    assert passages[0].startswith("okapi filler")
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "animals.md").write_text("# All animals\n\n## Stripes\n\nAn okapi has some.\n")
    with kebab.open(tmp_path / "zoo.sqlite") as other:
        other.ingest(tmp_path / "zoo")
        other.session.reranker = model = Counting()
        other.search("okapi", rerank=5)
    assert model.asked[0][1] == ["All animals > Stripes\n\n# All animals\n\n## Stripes\n\nAn okapi has some."]


@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_every_mode_can_be_reranked(toy: type[Toy], tmp_path: Path, mode: str) -> None:
    for number in range(6):
        (tmp_path / f"{number}.md").write_text(f"okapi {'filler ' * number} {'quagga ' * (9 * (number == 4))}\n")
    with toy.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(tmp_path)
        kb.session.reranker = Counting()
        found, before = kb.search("okapi", mode=mode, rerank=10, explain=True), kb.search("okapi", mode=mode)
        assert paths(found).index("4.md") < paths(before).index("4.md")
        hit = next(hit for hit in found if hit.doc_path == "4.md")
        explanation = (hit.explanation or {})["rerank"]
        assert explanation == {"model": "counting", "score": 9, "rank_before": paths(before).index("4.md") + 1}
        assert hit.score == next(hit for hit in before if hit.doc_path == "4.md").score


# --- what is said


def test_after_its_time_the_order_so_far_stands_and_a_notice_says_so(database: Path) -> None:
    with kebab.open(database, search_rerank_seconds=0.2) as kb:
        kb.session.reranker = Counting(seconds=0.02)
        found = kb.search("okapi", k=FILES, rerank=MOST_RERANKED)
        notice = next(notice for notice in found.notices if notice.code == "partly_reranked")
        reached = int(notice.message.split()[3])
        assert 0 < reached < MOST_RERANKED
        assert f"of {MOST_RERANKED - 1} passages" in notice.message
        assert "search.rerank_seconds" in notice.message
        kb.session.reranker = Counting()
        assert paths(found) == paths(kb.search("okapi", k=FILES, rerank=reached + (reached > KOREAN)))


def test_an_endpoint_that_is_too_slow_is_not_called_broken(database: Path) -> None:
    class Slow(Counting):
        def scores(self, _query: str, _passages: Sequence[str]) -> list[float]:
            time.sleep(0.05)
            raise ModelUnreachable("timed out")

    with kebab.open(database, search_rerank_seconds=0.02) as kb:
        kb.session.reranker = Slow()
        found = kb.search("okapi", rerank=10)
        assert codes(found) == ["partly_reranked"]
        assert paths(found) == paths(kb.search("okapi"))


def test_a_model_that_fails_is_a_notice_and_the_search_goes_on(kb: kebab.KnowledgeBase) -> None:
    before = paths(kb.search("okapi"))
    kb.session.reranker = Counting(error=ModelUnreachable("It is down.", hint="Start it."))
    found = kb.search("okapi", rerank=10)
    assert paths(found) == before
    assert next(notice for notice in found.notices if notice.code == "not_reranked").message == (
        "These hits are not reranked: It is down. Start it."
    )


def test_a_model_that_is_not_there_is_a_notice_and_the_search_goes_on(database: Path, tmp_path: Path) -> None:
    with kebab.open(database, rerank_model=f"onnx:{tmp_path}") as kb:
        found = kb.search("okapi", rerank=10)
        assert len(found) == 10
        assert "has no model.onnx" in next(one.message for one in found.notices if one.code == "not_reranked")


def test_a_wrong_setting_is_an_error(database: Path) -> None:
    with pytest.raises(ConfigError):
        kebab.open(database, rerank_model="jina:x")
    with kebab.open(database, rerank_model="cohere:x", rerank_endpoint="http://host/?key=1") as kb:
        with pytest.raises(ConfigError):
            kb.search("okapi", rerank=10)
        assert kb.search("okapi").hits


def test_a_query_in_another_script_says_that_the_model_does_not_read_it(kb: kebab.KnowledgeBase) -> None:
    found = kb.search("한국어", rerank=10)
    assert paths(found) == ["06.md"]
    assert "counting does not read the script" in next(
        one.message for one in found.notices if one.code == "not_reranked"
    )
    kb.session.reranker = Counting(latin_only=False)
    assert codes(kb.search("한국어", rerank=10)) == codes(kb.search("한국어"))


@pytest.mark.parametrize("query", ["okapi NOT number12", "'okapi'"])
def test_a_query_that_excludes_words_is_not_reranked(kb: kebab.KnowledgeBase, query: str) -> None:
    found = kb.search(query, mode="lexical", rerank=30)
    assert paths(found) == paths(kb.search(query, mode="lexical"))
    assert codes(found) == ["words_only"]
    assert kb.session.reranker.asked == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("rerank", [-1, MOST_RERANKED + 1, "many", True, 2.5])
def test_a_wrong_number_is_refused(kb: kebab.KnowledgeBase, rerank: Any) -> None:
    with pytest.raises(UsageError, match="rerank"):
        kb.search("okapi", rerank=rerank)


def test_an_answer_is_made_of_reranked_passages_too(kb: kebab.KnowledgeBase) -> None:
    kb.ask("What is an okapi?", rerank=10)
    assert kb.session.reranker.asked  # type: ignore[attr-defined]
