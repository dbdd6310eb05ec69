"""The hybrid retriever: one door to both sides, and the only place that knows how their hits become one list (R075,
R076).

What it does not do (R107): rerank, retrieve images, or make scores of different modes comparable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jsonschema
import pytest

import kebab
from kebab.config.settings import SearchSettings
from kebab.core.ports import ChunkContext, EmbeddingModels, Retriever
from kebab.core.search import (
    HitList,
    Neighbours,
    Notice,
    QueryTerms,
    RetrievalDetail,
    SearchFilters,
    SearchHit,
    SearchQuery,
)
from kebab.core.spans import LineSpan
from kebab.search.depth import DEEPEST, LEAST_DEPTH
from kebab.search.fusion import FusionPolicy
from kebab.search.hits import make_hit
from kebab.search.hybrid import HybridRetriever, policy_of
from kebab.search.lexical import LexicalRetriever
from kebab.search.snippets import SnippetLimits, SnippetMaker
from kebab.search.vector import VectorRetriever
from kebab.store.sqlite.chunk_contexts import SqliteChunkReader
from kebab.store.sqlite.database import Database
from kebab.store.sqlite.lexical import SqliteLexicalIndex
from kebab.store.sqlite.vectors import SqliteVectorStore
from kebab.wire import schemas
from kebab.wire.objects import plain, to_json
from kebab.wire.search import search_hit_v1

if TYPE_CHECKING:
    from tests.conftest import Toy

GOLDEN = Path(__file__).parent.parent / "fixtures" / "search" / "hybrid" / "run-1.json"
HYBRID = SearchQuery("words", mode="hybrid")

# --- retrievers made by hand


def chunk(name: str, document: str | None = None, date: str = "2026-01-01") -> ChunkContext:
    return ChunkContext(
        chunk_id=name,
        doc_id=document or f"doc of {name}",
        doc_path=f"{document or name}.md",
        title=name.upper(),
        heading_path=(name,),
        section_label=name,
        text=f"the text of {name}",
        spans=(LineSpan(1, 2),),
        content_hash="hash",
        chunker_version="c1",
        doc_type="markdown",
        lang="en",
        tags=(),
        trust_level="primary",
        source="notes",
        indexed_at="now",
        date=date,
    )


class Listed:
    """Gives the first k of the hits it was made with, and writes down what it was asked."""

    def __init__(
        self,
        side: Literal["lexical", "vector"],
        chunks: list[ChunkContext],
        scores: list[float] | None = None,
        **about: Any,
    ) -> None:
        self.side = side
        self.chunks = chunks
        self.scores = scores or [0.9 / (1 + place) for place in range(len(chunks))]
        self.about = about
        self.asked: list[SearchQuery] = []
        self.answers: list[HitList] = []

    def index_version(self) -> str:
        return {"lexical": "lex:1", "vector": "vec:m@1:2"}[self.side]

    def search(self, query: SearchQuery) -> HitList:
        self.asked.append(query)
        hits = [self._hit(rank, query.explain) for rank in range(1, 1 + min(query.k, len(self.chunks)))]
        self.answers.append(
            HitList(
                hits,
                **{
                    "more": query.k < len(self.chunks),
                    "match": "all" if self.side == "lexical" else None,
                    **self.about,
                },
            )
        )
        return self.answers[-1]

    def begin(self, query: SearchQuery) -> Callable[[], HitList]:
        return lambda: self.search(query)

    def _hit(self, rank: int, explain: bool) -> SearchHit:
        score = self.scores[rank - 1]
        detail = RetrievalDetail(self.side, score, **{f"{self.side}_score": score, f"{self.side}_rank": rank})  # type: ignore[arg-type]
        explanation: dict[str, Any] | None = (
            {"lexical": None, "vector": None, self.side: {"rank": rank, "score": score}} if explain else None
        )
        kind = "bm25" if self.side == "lexical" else "cosine"
        return make_hit(
            self.chunks[rank - 1],
            rank=rank,
            detail=detail,
            score_kind=kind,
            index_version=self.index_version(),
            explanation=explanation,
        )


def side(side: Literal["lexical", "vector"], names: str, **about: Any) -> Listed:
    return Listed(side, [chunk(name) for name in names.split()], **about)


def hybrid_of(lexical: str | Listed, vector: str | Listed, **settings: Any) -> tuple[HybridRetriever, Listed, Listed]:
    words = side("lexical", lexical) if isinstance(lexical, str) else lexical
    meaning = side("vector", vector) if isinstance(vector, str) else vector
    return HybridRetriever(SearchSettings(**settings), words, meaning), words, meaning


def ids(hits: HitList) -> list[str]:
    return [hit.chunk_id for hit in hits]


# --- modes


def test_it_is_a_retriever_made_of_settings_and_two_retrievers() -> None:
    """R075, R076, R080: whoever uses it sees a Retriever and none of its parts."""
    retriever: Retriever = hybrid_of("a b", "b c")[0]
    assert ids(retriever.search(HYBRID)) == ["b", "a", "c"]
    assert retriever.index_version() == "hybrid:lex:1+vec:m@1:2"


def test_lexical_mode_asks_only_the_lexical_side_and_passes_its_answer_on() -> None:
    """R082, R099."""
    retriever, words, meaning = hybrid_of("a b", "b c")
    query = SearchQuery("words", mode="lexical", k=7, offset=1, per_doc=2, explain=True, match="any", sort="date")
    answer = retriever.search(query)
    assert answer is words.answers[0]
    assert (words.asked, meaning.asked) == ([query], [])
    for hit in answer:
        assert (hit.retrieval.method, hit.retrieval.vector_score, hit.retrieval.vector_rank) == ("lexical", None, None)


def test_vector_mode_asks_only_the_vector_side_and_passes_its_answer_on() -> None:
    """R083, R100, R122."""
    retriever, words, meaning = hybrid_of("a b", "b c")
    query = SearchQuery("words", mode="vector", k=7, offset=1, per_doc=2, explain=True)
    answer = retriever.search(query)
    assert answer is meaning.answers[0]
    assert (words.asked, meaning.asked) == ([], [query])
    for hit in answer:
        assert (hit.retrieval.method, hit.retrieval.lexical_score, hit.retrieval.lexical_rank) == ("vector", None, None)


def test_hybrid_mode_asks_both_sides_once_each_in_its_own_mode() -> None:
    """R084, R126."""
    retriever, words, meaning = hybrid_of("a b", "b c")
    filters = SearchFilters(tags_any=("x",))
    retriever.search(HYBRID._replace(filters=filters, match="auto", type_ahead=True))
    assert [query.mode for query in words.asked] == ["lexical"]
    assert [query.mode for query in meaning.asked] == ["vector"]
    for query in (*words.asked, *meaning.asked):
        assert (query.text, query.filters, query.match, query.type_ahead) == ("words", filters, "auto", True)


def test_the_version_is_that_of_the_side_that_answers() -> None:
    """R096."""
    retriever, _, _ = hybrid_of("a", "a")
    assert [retriever.index_version(mode) for mode in ("lexical", "vector", "hybrid")] == [
        "lex:1",
        "vec:m@1:2",
        "hybrid:lex:1+vec:m@1:2",
    ]
    for mode, version in (("lexical", "lex:1"), ("vector", "vec:m@1:2"), ("hybrid", "hybrid:lex:1+vec:m@1:2")):
        assert {hit.index_version for hit in retriever.search(SearchQuery("words", mode=mode))} == {version}  # type: ignore[arg-type]


# --- how deep each side is asked


@pytest.mark.parametrize(
    ("k", "offset", "asked"), [(10, 0, 30), (25, 0, 75), (1000, 0, 3000), (10, 10, 100), (10, 40, 150), (1, 1, 100)]
)
def test_each_side_gives_three_times_what_is_wanted(k: int, offset: int, asked: int) -> None:
    """R120: and with paging at least a hundred (product.md 3.8)."""
    retriever, words, meaning = hybrid_of("a b", "b c")
    hits = retriever.search(HYBRID._replace(k=k, offset=offset))
    assert [query.k for query in (*words.asked, *meaning.asked)] == [asked, asked]
    assert {(query.offset, query.sort, query.per_doc) for query in (*words.asked, *meaning.asked)} == {
        (0, "relevance", None)
    }
    assert hits.depth == asked


def test_whoever_asks_for_a_few_hits_gets_the_first_of_the_page_that_others_get() -> None:
    """R120: three times what is wanted is the least that each side gives."""
    lists = " ".join(f"l{n:02} b{n:02}" for n in range(30)), " ".join(f"v{n:02} b{29 - n:02}" for n in range(30))
    page = ids(hybrid_of(*lists)[0].search(HYBRID._replace(k=10)))
    for k in (1, 3, 9):
        retriever, words, meaning = hybrid_of(*lists)
        assert ids(retriever.search(HYBRID._replace(k=k))) == page[:k]
        assert all(query.k >= 3 * k for query in (*words.asked, *meaning.asked))


def test_a_depth_that_is_given_is_kept() -> None:
    """It comes from the page before, and other depths give other lists."""
    retriever, words, _ = hybrid_of("a b", "b c")
    assert retriever.search(HYBRID._replace(offset=10, depth=42)).depth == 42
    assert words.asked[0].k == 42


@pytest.mark.parametrize("options", [{"fusion": "convex"}, {"sort": "date"}])
def test_whatever_looks_at_more_than_ranks_gets_a_list_of_some_length(options: dict[str, Any]) -> None:
    retriever, words, _ = hybrid_of("a b", "b c")
    retriever.search(HYBRID._replace(k=2, **options))
    assert words.asked[0].k == LEAST_DEPTH


# --- fusing


def test_hits_are_sorted_by_the_fused_score_and_cut_to_k() -> None:
    """R088, R123, R125, R126."""
    retriever, _, _ = hybrid_of("a b c d", "c a e f")
    hits = retriever.search(HYBRID._replace(k=3))
    assert ids(hits) == ["a", "c", "b"]
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits.more
    assert not retriever.search(HYBRID._replace(k=6)).more


def test_every_hit_says_what_each_side_said() -> None:
    """R089, R090, R101: a side that has not seen it is None, and it has a fused score all the same."""
    retriever, words, meaning = hybrid_of("a both", "both c")
    details = {hit.chunk_id: hit.retrieval for hit in retriever.search(HYBRID)}
    assert details["both"] == RetrievalDetail(
        method="hybrid",
        fusion_score=pytest.approx((1 / 62 + 1 / 61) / (2 / 61)),  # type: ignore[arg-type]
        lexical_score=words.scores[1],
        lexical_rank=2,
        vector_score=meaning.scores[0],
        vector_rank=1,
        rrf_score=1 / 62 + 1 / 61,
        weights=None,
    )
    assert details["a"][:6] == ("hybrid", 0.5, words.scores[0], 1, None, None)
    found_by_meaning = details["c"]
    assert found_by_meaning.fusion_score == pytest.approx(61 / 62 / 2)
    assert (found_by_meaning.lexical_score, found_by_meaning.lexical_rank) == (None, None)
    assert (found_by_meaning.vector_score, found_by_meaning.vector_rank) == (meaning.scores[1], 2)
    assert {detail.method for detail in details.values()} == {"hybrid"}


def test_a_hit_of_the_fusion_is_the_hit_of_its_side_with_another_score() -> None:
    """R002: the same contract: only score, rank, method, version and detail are the fusion's."""
    retriever, words, meaning = hybrid_of("a", "b")
    for hit in retriever.search(HYBRID):
        (before,) = (
            old for answer in (words.answers[0], meaning.answers[0]) for old in answer if old.chunk_id == hit.chunk_id
        )
        same = {"rank": 0, "score": 0, "score_kind": "", "retrieval": None, "retrieval_method": "", "index_version": ""}
        assert hit._replace(**same) == before._replace(**same)  # type: ignore[arg-type]
        assert (hit.score, hit.score_kind, hit.retrieval_method) == (hit.retrieval.fusion_score, "rrf", "hybrid-rrf")


def test_ties_go_by_lexical_rank_then_by_chunk_id() -> None:
    """R091: who has no lexical rank comes last."""
    assert ids(hybrid_of("z y", "y z")[0].search(HYBRID)) == ["z", "y"]
    assert ids(hybrid_of("z", "a")[0].search(HYBRID)) == ["z", "a"]
    assert ids(hybrid_of("", "b a")[0].search(HYBRID)) == ["b", "a"]


def test_the_size_of_a_lexical_score_does_not_change_the_fused_order() -> None:
    """R087, R110: it is shown and not added up; only convex looks at it."""
    large, small = (
        Listed("lexical", [chunk(name) for name in "abc"], [0.99, 0.98, 0.1]),
        Listed("lexical", [chunk(name) for name in "abc"], [3e-6, 2e-6, 1e-6]),
    )
    answers = [hybrid_of(words, "c b d")[0].search(HYBRID) for words in (large, small)]
    assert ids(answers[0]) == ids(answers[1])
    assert [hit.score for hit in answers[0]] == [hit.score for hit in answers[1]]
    assert answers[1][0].retrieval.lexical_score == 1e-6


def test_the_policy_comes_from_the_settings_and_the_query_may_choose_another() -> None:
    """R079, R080: search.hybrid_fusion and search.rrf_k; k itself is the caller's (search.default_k)."""
    weights: dict[str, Any] = {
        "vector_weight": 0.5,
        "vector_weight_weak": 0.2,
        "vector_weight_other": 1.3,
        "lexical_weight_weak": 0.6,
        "lexical_weight_all": 1.7,
        "convex_weight": 0.3,
        "convex_weight_weak": 0.1,
    }
    settings = SearchSettings(rrf_k=10, **weights)
    assert policy_of(settings, HYBRID) == FusionPolicy("rrf", 10, **weights)
    assert policy_of(settings, HYBRID._replace(fusion="convex")).kind == "convex"
    retriever, _, _ = hybrid_of("a", "a", hybrid_fusion="convex")
    assert {hit.retrieval_method for hit in retriever.search(HYBRID)} == {"hybrid-convex"}
    assert {hit.retrieval_method for hit in retriever.search(HYBRID._replace(fusion="rrf"))} == {"hybrid-rrf"}
    assert hybrid_of("a", "b", rrf_k=1)[0].search(HYBRID)[0].retrieval.rrf_score == 0.5
    assert SearchSettings().default_k == SearchQuery("x").k == 10


def test_convex_has_a_score_of_its_own_and_no_rrf_score() -> None:
    """product.md 3.7."""
    hits = hybrid_of("a b c", "c b d")[0].search(HYBRID._replace(fusion="convex"))
    for hit in hits:
        assert (hit.score_kind, hit.retrieval.rrf_score, hit.score) == ("convex", None, hit.retrieval.fusion_score)
        assert hit.retrieval.weights is not None
        assert sum(hit.retrieval.weights.values()) == pytest.approx(1)
        assert 0 <= hit.score <= 1


def test_weights_are_shown_where_they_are_not_one() -> None:
    meaning = side("vector", "a b", weak=frozenset({"a", "b"}))
    hits = hybrid_of("a c", meaning, vector_weight_weak=0.25)[0].search(HYBRID)
    assert hits[0].retrieval.weights == {"lexical": 1.0, "vector": 0.25}
    assert hits[0].retrieval.rrf_score == pytest.approx(1.25 / 61)
    assert hybrid_of("a c", "a b")[0].search(HYBRID)[0].retrieval.weights is None


def test_what_is_only_the_closest_of_what_there_is_needs_words_to_count() -> None:
    meaning = side("vector", "near far farther", doubtful=frozenset({"far", "farther"}))
    hits = hybrid_of("farther word", meaning)[0].search(HYBRID._replace(explain=True))
    assert ids(hits) == ["farther", "near", "word"]


def test_when_there_is_nothing_else_the_nearest_are_shown_and_said_to_be_far_away() -> None:
    """Regression: the right note at the first place by meaning was not shown at all, because in a small corpus all
    cosines are low.
    """
    far = side("vector", "a b c d e", doubtful=frozenset("abcde"))
    retriever = hybrid_of("", far)[0]
    found = retriever.search(HYBRID)
    assert (ids(found), [notice.code for notice in found.notices], found.more) == (["a", "b", "c"], ["far_away"], False)
    assert ids(retriever.search(HYBRID._replace(insists=True))) == []
    assert ids(retriever.search(HYBRID._replace(type_ahead=True))) == [], "not while somebody types"
    assert ids(retriever.search(HYBRID._replace(k=1, offset=1))) == ["b"]


# --- pages, dates, documents


@pytest.mark.parametrize("fusion", ["rrf", "convex"])
def test_pages_of_one_depth_are_disjoint_pieces_of_one_list(fusion: Any) -> None:
    retriever, _, _ = hybrid_of(
        " ".join(f"l{n:02} b{n:02}" for n in range(30)), " ".join(f"v{n:02} b{29 - n:02}" for n in range(30))
    )
    query = HYBRID._replace(fusion=fusion, depth=40)
    whole = retriever.search(query._replace(k=100))
    assert not whole.more
    for k in (1, 7):
        pages = [retriever.search(query._replace(k=k, offset=offset)) for offset in range(0, len(whole), k)]
        assert [hit.chunk_id for page in pages for hit in page] == ids(whole)
        assert [hit.rank for page in pages for hit in page] == list(range(1, len(whole) + 1))
        assert [page.more for page in pages] == [True] * (len(pages) - 1) + [False]


@pytest.mark.parametrize("k", [3, 10])
def test_pages_that_name_the_depth_of_the_first_go_on_until_both_sides_have_nothing_more(k: int) -> None:
    """A deeper look adds at the end: what was shown before stays where it was."""
    words, meaning = [f"w{n:03}" for n in range(300)], [f"m{n:03}" for n in range(200)]
    retriever, _, _ = hybrid_of(" ".join(words), " ".join(reversed(meaning)))
    first = retriever.search(HYBRID._replace(k=k))
    paged, offset = ids(first), k
    while (page := retriever.search(HYBRID._replace(k=k, offset=offset, depth=first.depth))).more:
        paged += ids(page)
        offset += k
    paged += ids(page)
    assert sorted(paged) == sorted([*words, *meaning])


def test_how_words_matched_is_decided_by_the_first_look() -> None:
    """Deeper ones would fall back to any word, which is another list."""
    retriever, words, _ = hybrid_of(" ".join(f"w{n:03}" for n in range(300)), "x")
    retriever.search(HYBRID._replace(match="auto", k=10, offset=90, depth=30))
    assert [(query.k, query.match, query.keep_stop_words) for query in words.asked] == [
        (30, "auto", None), (120, "all", False),
    ]  # fmt: skip


def test_a_list_does_not_go_on_into_what_is_too_far_away() -> None:
    far = frozenset(f"v{n:02}" for n in range(20, 40))
    names = " ".join(f"v{n:02}" for n in range(60))
    hits = hybrid_of("", side("vector", names, doubtful=far, more=True))[0].search(HYBRID._replace(depth=40))
    assert len(hits) == 10
    assert hits.more
    last = hybrid_of("", side("vector", names, doubtful=far, more=True))[0].search(HYBRID._replace(depth=40, offset=10))
    assert len(last) == 10
    assert not last.more


def test_by_date_what_has_the_words_is_not_buried_under_what_is_younger_and_vaguely_alike() -> None:
    dated = {name: chunk(name, date=f"2026-01-{day:02}") for name, day in (("a", 5), ("b", 9), ("c", 5), ("young", 20))}
    words, meaning = [dated[name] for name in "abc"], [dated[name] for name in ("young", "b", "c")]
    hits = HybridRetriever(SearchSettings(), Listed("lexical", words), Listed("vector", meaning)).search(
        HYBRID._replace(sort="date")
    )
    assert ids(hits) == ["b", "c", "a"], "those of one day by relevance"
    assert [hit.rank for hit in hits] == [1, 2, 3]
    alike = HybridRetriever(SearchSettings(), Listed("lexical", []), Listed("vector", meaning)).search(
        HYBRID._replace(sort="date")
    )
    assert ids(alike) == ["young", "b", "c"], "without any words, meaning is all there is"


def test_whoever_insists_on_words_gets_what_has_them_in_the_order_of_both_sides() -> None:
    retriever, _, _ = hybrid_of("a b c", "x c y b")
    hits = retriever.search(HYBRID._replace(insists=True))
    assert ids(hits) == ["c", "b", "a"]
    assert not hits.more
    nothing = hybrid_of("", "x y")[0].search(HYBRID._replace(insists=True))
    assert (ids(nothing), [notice.code for notice in nothing.notices]) == ([], ["insisted"])


def test_few_hits_per_document_are_looked_for_deeper_when_one_document_fills_the_list() -> None:
    book = [chunk(f"page{number:04}", "book") for number in range(700)]
    others = [chunk(f"note{number}") for number in range(5)]
    retriever, words, meaning = hybrid_of(
        Listed("lexical", [*book, *others]), Listed("vector", [*reversed(book), *others])
    )
    hits = retriever.search(HYBRID._replace(k=4, per_doc=1))
    assert [hit.doc_path for hit in hits] == ["book.md", "note0.md", "note1.md", "note2.md"]
    assert [query.k for query in words.asked] == [query.k for query in meaning.asked] == [120, 480, 1920]
    assert hits.depth == 120, "of the first look: the next page begins with the same one"
    assert hits.more
    again = retriever.search(HYBRID._replace(k=4, per_doc=1, offset=4, depth=hits.depth))
    assert [hit.doc_path for hit in again] == ["note3.md", "note4.md"]


def test_looking_deeper_ends_where_there_is_no_more_or_nobody_would_wait() -> None:
    retriever, words, _ = hybrid_of(Listed("lexical", [chunk(str(number), "book") for number in range(200)]), "x")
    assert len(retriever.search(HYBRID._replace(k=4, per_doc=1))) == 2
    assert [query.k for query in words.asked] == [120, 480]
    endless = hybrid_of(Listed("lexical", [chunk(str(number), "book") for number in range(50)], more=True), "x")
    assert len(endless[0].search(HYBRID._replace(k=4, per_doc=1))) == 2
    assert DEEPEST <= endless[1].asked[-1].k < 4 * DEEPEST


# --- what is said


def test_what_is_wrong_with_the_vectors_is_known_from_the_construction_on() -> None:
    """R108."""

    class Stale(Listed):
        notices = (Notice("partial_vectors", "3 of 7 passages have vectors"),)

    retriever, _, _ = hybrid_of("a", Stale("vector", [chunk("a")]))
    assert [notice.code for notice in retriever.notices] == ["partial_vectors"]
    assert hybrid_of("a", "a")[0].notices == ()


def test_notices_of_both_sides_go_along_and_hits_without_the_words_are_called_so() -> None:
    words, meaning = (
        side("lexical", "a", notices=(Notice("some_words", "x"),)),
        side("vector", "b", notices=(Notice("long_query", "y"),)),
    )
    assert [notice.code for notice in hybrid_of(words, meaning)[0].search(HYBRID).notices] == [
        "some_words",
        "long_query",
    ]
    assert [notice.code for notice in hybrid_of("", "b")[0].search(HYBRID).notices] == ["similar_only"]
    assert hybrid_of("", "")[0].search(HYBRID).notices == ()


def test_an_explanation_has_rank_score_and_share_of_each_side_and_counts_who_found_what() -> None:
    """R109, R111."""
    retriever, words, _ = hybrid_of("a both", "both c")
    hits = retriever.search(HYBRID._replace(explain=True))
    assert hits.explanation is not None
    fusion = hits.explanation["fusion"]
    assert {name: fusion[name] for name in ("kind", "k_rrf", "depth", "both", "lexical_only", "vector_only")} == {
        "kind": "rrf",
        "k_rrf": 60,
        "depth": 30,
        "both": 1,
        "lexical_only": 1,
        "vector_only": 1,
    }
    shown = {hit.chunk_id: hit.explanation for hit in hits}
    assert shown["both"] is not None
    assert shown["both"]["lexical"] == {"rank": 2, "score": words.scores[1]}
    assert shown["both"]["vector"]["rank"] == 1
    assert shown["both"]["fusion"]["rrf"] == pytest.approx(1 / 62 + 1 / 61)
    assert (shown["both"]["fusion"]["from_lexical"], shown["both"]["fusion"]["from_vector"]) == (1 / 62, 1 / 61)
    assert shown["a"] is not None
    assert (shown["a"]["vector"], shown["a"]["fusion"]["from_vector"]) == (None, 0.0)
    plain_hits = retriever.search(HYBRID)
    assert plain_hits.explanation is None
    assert {hit.explanation for hit in plain_hits} == {None}


# --- on a real file

CORPUS = {
    "git/setup.md": "---\ntags: [git, setup]\ndate: 2024-01-10\n---\n# Setup\n\n## Install git\n\nInstall git and tell it your name.\n",
    "git/branches.md": "---\ntags: [git]\ndate: 2024-02-10\n---\n# Branches\n\nA branch is a pointer to a commit of git.\n",
    "cooking/kimchi.md": "---\ntags: [food]\n---\n# Kimchi\n\nSalt the cabbage, then add chilli and garlic.\n",
    "cooking/bread.txt": "Flour, water, salt and yeast make bread.\n",
    "tools/run.py": "def install():\n    '''Installs the package with git.'''\n",
    "한국어/설치.md": "---\nlang: ko\n---\n# 설치\n\n깃을 설치하고 이름을 알려 준다.\n",
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    return folder


@contextmanager
def hybrid_on(database: Path, models: EmbeddingModels, *, reads: Reads | None = None) -> Iterator[HybridRetriever]:
    """`reads`: passages are read last, and by this."""
    with closing(Database(database).reader()) as connection:
        index = SqliteLexicalIndex(connection, korean_analysis="bigrams")
        vector = VectorRetriever(
            SqliteVectorStore(connection), models, SqliteChunkReader(connection), "vec:v", index=index
        )
        snippets = SnippetMaker(index.tokenizer, SnippetLimits(220))
        if reads is not None:
            reads.reader = SqliteChunkReader(connection)
        yield HybridRetriever(
            SearchSettings(), LexicalRetriever(index, "lex:v"), vector, snippets=snippets, chunks=reads
        )


class Reads:
    """Reads chunks, remembers which, and may find some of them gone."""

    def __init__(self, *gone: str) -> None:
        self.reader: SqliteChunkReader | None = None
        self.asked: list[list[str]] = []
        self._gone = gone

    def expect(self, chunk_ids: Sequence[str]) -> None:
        pass

    def contexts(self, chunk_ids: Sequence[str]) -> dict[str, ChunkContext]:
        assert self.reader is not None
        self.asked.append(list(chunk_ids))
        return self.reader.contexts([chunk_id for chunk_id in chunk_ids if chunk_id not in self._gone])

    def neighbours(self, chunk_ids: Sequence[str], count: int) -> dict[str, Neighbours]:
        raise NotImplementedError


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, toy: type[Toy]) -> Path:
    folder = tmp_path_factory.mktemp("hybrid")
    with toy.open(folder / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(write(folder / "notes", CORPUS))
    return folder / "kb.sqlite"


def test_hits_of_all_modes_have_the_same_fields_and_obey_the_published_schema(corpus: Path, toy: type[Toy]) -> None:
    """R002, R098."""
    schema = jsonschema.Draft202012Validator(schemas.schema("search_hit"))
    fields = {}
    with hybrid_on(corpus, toy.models()) as retriever:
        for mode in ("lexical", "vector", "hybrid"):
            for explain in (False, True):
                hits = retriever.search(SearchQuery("install git", mode=mode, match="any", explain=explain))
                assert len(hits) >= 2
                for hit in hits:
                    value = plain(search_hit_v1(hit))
                    schema.validate(value)
                    fields[mode] = {
                        name: set(inner) if isinstance(inner, dict) and name != "explanation" else None
                        for name, inner in value.items()
                    }
    assert fields["lexical"] == fields["vector"] == fields["hybrid"]


def test_hybrid_hits_have_snippets_like_any_other(corpus: Path, toy: type[Toy]) -> None:
    """R002."""
    with hybrid_on(corpus, toy.models()) as retriever:
        lexical = retriever.search(SearchQuery("install git", match="any"))
        hybrid = {hit.chunk_id: hit for hit in retriever.search(SearchQuery("install git", mode="hybrid", match="any"))}
        for hit in lexical:
            assert (hybrid[hit.chunk_id].snippet, hybrid[hit.chunk_id].highlights) == (hit.snippet, hit.highlights)
            assert hybrid[hit.chunk_id].text == hit.snippet
        whole = retriever.search(SearchQuery("install git", mode="hybrid", match="any", full_text=True))
        assert "# Setup\n\n## Install git\n\nInstall git and tell it your name." in {hit.text for hit in whole[:2]}


@pytest.mark.parametrize("fusion", ["rrf", "convex"])
def test_the_same_query_gives_byte_identical_hits(corpus: Path, toy: type[Toy], fusion: Any) -> None:
    """R105."""
    runs = []
    for _ in range(3):
        with hybrid_on(corpus, toy.models()) as retriever:
            query = SearchQuery("how to install git", mode="hybrid", match="auto", fusion=fusion, explain=True)
            runs.append(to_json([plain(search_hit_v1(hit)) for hit in retriever.search(query)]))
    assert len(runs[0]) > 1000
    assert runs[0] == runs[1] == runs[2]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, toy: type[Toy]) -> Path:
    folder = tmp_path_factory.mktemp("many")
    files = {
        f"{number:02}.md": f"# Seed {number}\n\nA seed of kind{number} in the garden, and {'x' * number}.\n"
        for number in range(60)
    }
    with toy.open(folder / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(write(folder / "notes", files))
    return folder / "kb.sqlite"


@pytest.mark.parametrize("duplicates", ["show", "fold"])
def test_only_what_is_kept_is_read_and_in_one_go(many: Path, toy: type[Toy], duplicates: Any) -> None:
    query = SearchQuery("a seed in the garden", mode="hybrid", match="any", k=5, duplicates=duplicates)
    with hybrid_on(many, toy.models()) as retriever:
        expected = retriever.search(query)
    reads = Reads()
    with hybrid_on(many, toy.models(), reads=reads) as retriever:
        hits = retriever.search(query)
    assert list(hits) == list(expected)
    assert (hits.more, hits.match, hits.terms, hits.notices) == (
        expected.more,
        expected.match,
        expected.terms,
        expected.notices,
    )
    assert [len(asked) for asked in reads.asked] == [6 if duplicates == "show" else 18]


@pytest.mark.parametrize("duplicates", ["show", "fold"])
def test_what_is_gone_when_it_is_to_be_read_leaves_its_place_to_the_next(
    many: Path, toy: type[Toy], duplicates: Any
) -> None:
    query = SearchQuery("a seed in the garden", mode="hybrid", match="any", k=5, duplicates=duplicates)
    with hybrid_on(many, toy.models()) as retriever:
        before = [hit.chunk_id for hit in retriever.search(query._replace(k=8))]
    with hybrid_on(many, toy.models(), reads=Reads(before[0], before[3])) as retriever:
        hits = retriever.search(query)
    assert [hit.chunk_id for hit in hits] == [before[place] for place in (1, 2, 4, 5, 6)]
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]


def test_searching_only_reads(corpus: Path, toy: type[Toy]) -> None:
    """R097."""
    before = corpus.read_bytes()
    with hybrid_on(corpus, toy.models()) as retriever:
        retriever.search(SearchQuery("install git", mode="hybrid", explain=True))
    assert corpus.read_bytes() == before


def test_hybrid_finds_at_least_what_the_better_side_finds_where_each_finds_something_else(
    tmp_path: Path, toy: type[Toy]
) -> None:
    """R104: two notes have the number, which means nothing to the model; two say the same in other words; each side
    finds only its own.
    """
    filler = [f"filler{number}" for number in range(400)]
    files = {
        "words/log.md": f"---\ntitle: One\n---\nE1234 {' '.join(filler[:60])}\n",
        "words/list.md": f"---\ntitle: Two\n---\nE1234 {' '.join(filler[60:120])}\n",
        "meaning/garage.md": "---\ntitle: Three\n---\nvehicle fixing\n",
        "meaning/service.md": "---\ntitle: Four\n---\nfixing vehicle\nfixing\n",
    }
    files |= {
        f"other/{number}.md": f"---\ntitle: Other {number}\n---\nnumber {' '.join(filler[120 + 9 * number : 129 + 9 * number])}\n"
        for number in range(20)
    }
    models = toy.models(
        toy.embedder(dimension=256, synonyms={"vehicle": "automobile", "fixing": "repair", "e1234": "number"})
    )
    with toy.open(tmp_path / "kb.sqlite", models) as knowledge_base:
        knowledge_base.ingest(write(tmp_path / "notes", files))
    relevant = {path for path in files if not path.startswith("other")}
    recall = {}
    with hybrid_on(tmp_path / "kb.sqlite", models) as retriever:
        for mode in ("lexical", "vector", "hybrid"):
            hits = retriever.search(SearchQuery("automobile E1234 repair", mode=mode, k=4, match="auto"))
            recall[mode] = len({hit.doc_path for hit in hits} & relevant) / len(relevant)
    assert (recall["lexical"], recall["vector"]) == (0.5, 0.5)
    assert recall["hybrid"] >= max(recall["lexical"], recall["vector"])
    assert recall["hybrid"] == 1.0


def test_filters_hold_on_both_sides(corpus: Path, toy: type[Toy]) -> None:
    """R109: what passes them may be less than k."""
    with hybrid_on(corpus, toy.models()) as retriever:
        for filters, expected in (
            (SearchFilters(tags_any=("git",)), {"git/setup.md", "git/branches.md"}),
            (SearchFilters(lang="ko"), {"한국어/설치.md"}),
            (SearchFilters(tags_any=("nobody",)), set()),
        ):
            hits = retriever.search(
                SearchQuery("install git", mode="hybrid", match="any", filters=filters, explain=True)
            )
            assert {hit.doc_path for hit in hits} == expected
            assert hits.explanation is not None
            assert hits.explanation["lexical"]["removed_by_filters"] >= 1


def test_hybrid_is_the_default_and_runs_both_sides(tmp_path: Path, toy: type[Toy]) -> None:
    """R126: as soon as there are vectors."""
    with toy.open(tmp_path / "kb.sqlite", toy.models()) as knowledge_base:
        knowledge_base.ingest(write(tmp_path / "notes", CORPUS))
        response = knowledge_base.search("install git", k=4)
    assert (response.mode, response.method, response.notices) == ("hybrid", "hybrid", ())
    assert {hit.retrieval.method for hit in response} == {"hybrid"}
    assert any(hit.retrieval.lexical_rank and hit.retrieval.vector_rank for hit in response)
    scores = [hit.retrieval.rrf_score or 0 for hit in response]
    assert scores == sorted(scores, reverse=True)
    assert (
        response.index_version == f"hybrid:{knowledge_base.search('git', mode='lexical').index_version}+vec:words@1:32"
    )


# --- as users get it

QUERIES = {
    "how to set up version control": 1,
    "install git": 3,
    "flour AND water": 2,
    "깃을 설치": 2,
    "nothing like this": 1,
}
"""And how many hits: what follows is so far away, or so close to one another, that another processor might put it in
another order.
"""


def test_hits_of_a_fixed_corpus_are_those_of_the_golden_file(tmp_path: Path, bundled_models: None) -> None:
    """R106: with the bundled models. Cosines are compared to two thousandths, because another processor rounds
    otherwise; ranks, fused scores and everything else exactly. To write it anew, delete it and run this test.
    """
    run: dict[str, Any] = {}
    with kebab.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(write(tmp_path / "notes", CORPUS))
        for query, k in QUERIES.items():
            response = knowledge_base.search(query, k=k)
            assert response.method == "hybrid"
            hits = [plain(search_hit_v1(hit._replace(indexed_at="…", date="…"))) for hit in response]
            run[query] = {"notices": [notice.code for notice in response.notices], "hits": hits}
    for answer in run.values():
        for hit in answer["hits"]:
            detail = hit["retrieval"]
            for name in ("lexical_score", "rrf_score", "fusion_score"):
                detail[name] = detail[name] and round(detail[name], 9)
            detail["vector_score"] = detail["vector_score"] and round(detail["vector_score"], 3)
            hit["score"] = round(hit["score"], 9)
    if not GOLDEN.exists():
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(json.dumps(run, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        pytest.fail(f"{GOLDEN} was not there and has been written: read it and run this again.")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert _cosines(run) == pytest.approx(_cosines(golden), abs=0.002)
    assert _without_cosines(run) == _without_cosines(golden)


def _cosines(run: dict[str, Any]) -> list[float]:
    return [hit["retrieval"]["vector_score"] or 0.0 for answer in run.values() for hit in answer["hits"]]


def _without_cosines(run: dict[str, Any]) -> dict[str, Any]:
    return {
        query: {
            **answer,
            "hits": [{**hit, "retrieval": {**hit["retrieval"], "vector_score": None}} for hit in answer["hits"]],
        }
        for query, answer in run.items()
    }


def test_snippets_mark_the_words_of_the_query_also_in_what_was_found_by_meaning(corpus: Path, toy: type[Toy]) -> None:
    with hybrid_on(corpus, toy.models()) as retriever:
        hits = retriever.search(SearchQuery("tell salt", mode="hybrid", match="all"))
        assert [notice.code for notice in hits.notices] == ["similar_only"]
        marked = {hit.doc_path: [hit.snippet[start:end] for start, end in hit.highlights] for hit in hits}
        assert (marked["git/setup.md"], marked["cooking/kimchi.md"]) == (["tell"], ["Salt"])
        assert isinstance(hits.terms, QueryTerms)
