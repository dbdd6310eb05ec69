"""The hybrid retriever asks the lexical and the vector retriever, and only it merges their hits. It does not rerank,
and scores of different modes are not comparable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kebab
from kebab.config.settings import SearchSettings
from kebab.core.citations import Citation, LineSpan
from kebab.core.notices import Says
from kebab.core.ports import ChunkContext, ChunkText, EmbeddingModels, Retriever
from kebab.core.search import (
    HitList,
    QueryTerms,
    Ranked,
    Ranking,
    RetrievalDetail,
    SearchFilters,
    SearchHit,
    SearchQuery,
)
from kebab.search.fusion import FusionPolicy
from kebab.search.hybrid import HybridRetriever, policy_of
from kebab.search.listing import FIRST_DEPTH
from kebab.search.pipeline import Retrievers
from kebab.wire import plain, schemas, to_json
from kebab.wire.search import search_hit_v1

if TYPE_CHECKING:
    from tests.conftest import Toy

GOLDEN = Path(__file__).parent.parent / "fixtures" / "search" / "hybrid" / "run-1.json"
HYBRID = SearchQuery("words", mode="hybrid")
Side = Literal["lexical", "vector"]

# --- retrievers made by hand


def chunk(name: str, document: str | None = None, date: str = "2026-01-01", text: str = "") -> ChunkContext:
    return ChunkContext(
        chunk_id=name,
        doc_id=document or f"doc of {name}",
        doc_path=f"{document or name}.md",
        title=name.upper(),
        heading_path=(name,),
        section_label=name,
        text=text or f"the text of {name}",
        spans=(LineSpan(1, 2),),
        content_hash=f"hash of {text or name}",
        chunker_version="c1",
        doc_type="markdown",
        lang="en",
        tags=(),
        trust_level="primary",
        source="notes",
        indexed_at="now",
        date=date,
        ordinal=0,
        kind="text",
        start_offset=0,
        end_offset=len(text),
    )


class Foreign:
    """A retriever from outside the package: it has the two methods of the protocol and returns its first k hits."""

    def __init__(self, side: Side, chunks: Sequence[ChunkContext], **about: Any) -> None:
        self.side = side
        self.chunks = chunks
        self.scores = [0.9 / (1 + place) for place in range(len(chunks))]
        self.about = {"match": "all" if side == "lexical" else None, **about}
        self.asked: list[SearchQuery] = []
        self.answers: list[HitList] = []

    def index_version(self) -> str:
        return {"lexical": "lex:1", "vector": "vec:m@1:2"}[self.side]

    def search(self, query: SearchQuery) -> HitList:
        self.asked.append(query)
        hits = [self._hit(rank, query) for rank in range(1, 1 + min(query.k, len(self.chunks)))]
        self.answers.append(HitList(hits, **{"more": query.k < len(self.chunks), **self.about}))
        return self.answers[-1]

    def _hit(self, rank: int, query: SearchQuery) -> SearchHit:
        found, score = self.chunks[rank - 1], self.scores[rank - 1]
        detail = RetrievalDetail(self.side, score, **{f"{self.side}_score": score, f"{self.side}_rank": rank})  # type: ignore[arg-type]
        return SearchHit(
            chunk=found,
            rank=rank,
            score_kind="bm25" if self.side == "lexical" else "cosine",
            retrieval=detail,
            index_version=self.index_version(),
            citation=Citation(found.doc_path, found.spans[0], found.section_label, found.content_hash),
            text=found.text,
            snippet=f"{self.side} snippet of {found.chunk_id}",
            highlights=((0, 3),),
            explanation={self.side: {"rank": rank, "score": score}} if query.explain else None,
        )


class Ranks(Foreign):
    """A foreign retriever that can also rank passages without reading them."""

    snippets: Any = None

    def __init__(self, side: Side, names: str, *, trust: float = 1.0, below_floor: str = "", **about: Any) -> None:
        super().__init__(side, [chunk(name) for name in names.split()], **about)
        self.trust, self.below_floor = trust, below_floor.split()

    def rank(self, query: SearchQuery, depth: int) -> Ranking[Ranked]:
        hits = self.search(query._replace(k=depth))
        places = [
            Ranked(
                hit.chunk_id,
                hit.rank,
                hit.score,
                trust=self.trust,
                below_floor=hit.chunk_id in self.below_floor,
            )
            for hit in hits
        ]
        return Ranking(places, hits.more, hits.match, hits.notices)

    def contexts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkContext]:
        return {found.chunk_id: found for found in self.chunks if found.chunk_id in chunk_ids}

    def texts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkText]:
        return {name: ChunkText(found.doc_id, found.text) for name, found in self.contexts(chunk_ids).items()}


def side(side: Side, names: str, **about: Any) -> Foreign:
    return Foreign(side, [chunk(name) for name in names.split()], **about)


def hybrid_of(
    lexical: str | Foreign, vector: str | Foreign, **settings: Any
) -> tuple[HybridRetriever, Foreign, Foreign]:
    words = side("lexical", lexical) if isinstance(lexical, str) else lexical
    meaning = side("vector", vector) if isinstance(vector, str) else vector
    return HybridRetriever(SearchSettings(**settings), words, meaning), words, meaning


def ids(hits: Sequence[SearchHit]) -> list[str]:
    return [hit.chunk_id for hit in hits]


def codes(hits: HitList) -> list[str]:
    return [notice.code for notice in hits.notices]


# --- modes


def test_a_hybrid_retriever_is_made_from_settings_or_a_policy_and_two_retrievers() -> None:
    """It has the methods of a Retriever and nothing else is needed to use it."""
    for config in (SearchSettings(), FusionPolicy()):
        retriever: Retriever = HybridRetriever(config, side("lexical", "a b"), side("vector", "b c"))
        assert ids(retriever.search(HYBRID)) == ["b", "a", "c"]
        assert retriever.index_version() == "hybrid:lex:1+vec:m@1:2"


@pytest.mark.parametrize("mode", ["lexical", "vector"])
def test_in_lexical_or_vector_mode_only_that_retriever_is_asked_and_its_hits_returned(mode: Side) -> None:
    retriever, words, meaning = hybrid_of("a b", "b c")
    asked, other = (words, meaning) if mode == "lexical" else (meaning, words)
    query = SearchQuery("words", mode=mode, k=7, offset=1, per_doc=2, explain=True, match="any", sort="date")
    assert retriever.search(query) is asked.answers[0]
    assert (asked.asked, other.asked) == ([query], [])


def test_in_hybrid_mode_each_retriever_is_asked_for_a_list_without_paging_dates_or_folding() -> None:
    """Paging, sorting by date, per_doc and folding apply to the merged list."""
    retriever, words, meaning = hybrid_of("a b", "b c")
    filters = SearchFilters(tags_any=("x",))
    query = HYBRID._replace(filters=filters, match="auto", type_ahead=True)
    retriever.search(query._replace(k=3, offset=1, sort="date", per_doc=1, duplicates="fold"))
    assert ([asked.mode for asked in words.asked], [asked.mode for asked in meaning.asked]) == (["lexical"], ["vector"])
    for asked in (*words.asked, *meaning.asked):
        assert (asked.text, asked.filters, asked.match, asked.type_ahead) == ("words", filters, "auto", True)
        assert (asked.offset, asked.sort, asked.per_doc, asked.duplicates) == (0, "relevance", None, "show")


def test_the_index_version_is_that_of_the_retriever_for_the_mode() -> None:
    retriever, _, _ = hybrid_of("a", "a")
    for mode, version in (("lexical", "lex:1"), ("vector", "vec:m@1:2"), ("hybrid", "hybrid:lex:1+vec:m@1:2")):
        assert retriever.index_version(mode) == version  # type: ignore[arg-type]
        assert {hit.index_version for hit in retriever.search(SearchQuery("words", mode=mode))} == {version}  # type: ignore[arg-type]


# --- fusing


def test_hits_are_sorted_by_the_fused_score_and_cut_to_k() -> None:
    retriever, _, _ = hybrid_of("a b c d", "c a e f")
    hits = retriever.search(HYBRID._replace(k=3))
    assert ids(hits) == ["a", "c", "b"]
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits.more
    assert not retriever.search(HYBRID._replace(k=6)).more


def test_every_hybrid_hit_has_its_ranks_and_scores_in_both_lists() -> None:
    """They are None in a list that does not have the hit, which still has a fused score."""
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


def test_hits_of_foreign_retrievers_keep_their_snippets() -> None:
    """Passage, citation, snippet and marks are those of the retriever that found the hit."""
    retriever, words, meaning = hybrid_of("a", "b")
    before = {hit.chunk_id: hit for hit in (*words.search(HYBRID), *meaning.search(HYBRID))}
    for hit in retriever.search(HYBRID):
        own = before[hit.chunk_id]
        assert (hit.chunk, hit.citation, hit.text) == (own.chunk, own.citation, own.text)
        assert (hit.snippet, hit.highlights, hit.suspicious) == (own.snippet, own.highlights, own.suspicious)
        assert (hit.score_kind, hit.retrieval_method) == ("rrf", "hybrid-rrf")


def test_hits_with_equal_scores_are_ordered_by_lexical_rank_then_by_chunk_id() -> None:
    """Hits without a lexical rank come last."""
    assert ids(hybrid_of("z y", "y z")[0].search(HYBRID)) == ["z", "y"]
    assert ids(hybrid_of("z", "a")[0].search(HYBRID)) == ["z", "a"]
    assert ids(hybrid_of("", "b a")[0].search(HYBRID)) == ["b", "a"]


def test_the_policy_comes_from_the_settings_or_is_given_and_the_query_may_choose_its_kind() -> None:
    weights: dict[str, Any] = {
        "vector_weight": 0.5,
        "convex_weight": 0.3,
    }
    assert policy_of(SearchSettings(rrf_k=10, **weights)) == FusionPolicy("rrf", 10, **weights)
    for config in (SearchSettings(hybrid_fusion="convex"), FusionPolicy(kind="convex")):
        retriever = HybridRetriever(config, side("lexical", "a"), side("vector", "a"))
        assert {hit.retrieval_method for hit in retriever.search(HYBRID)} == {"hybrid-convex"}
        assert {hit.retrieval_method for hit in retriever.search(HYBRID._replace(fusion="rrf"))} == {"hybrid-rrf"}
    for config in (SearchSettings(rrf_k=1), FusionPolicy(k_rrf=1)):
        retriever = HybridRetriever(config, side("lexical", "a"), side("vector", "b"))
        assert retriever.search(HYBRID)[0].retrieval.rrf_score == 0.5


def test_convex_has_a_score_of_its_own_and_no_rrf_score() -> None:
    hits = hybrid_of("a b c", "c b d")[0].search(HYBRID._replace(fusion="convex"))
    for hit in hits:
        assert (hit.score_kind, hit.retrieval.rrf_score, hit.score) == ("convex", None, hit.retrieval.fusion_score)
        assert hit.retrieval.weights is not None
        assert hit.retrieval.weights.lexical + hit.retrieval.weights.vector == pytest.approx(1)
        assert 0 <= hit.score <= 1


RANKED = HYBRID._replace(without_snippets=True)


def test_the_weights_of_a_hit_are_shown_if_they_differ_from_1() -> None:
    hits = hybrid_of("a c", Ranks("vector", "a b", trust=0.25))[0].search(RANKED)
    assert hits[0].retrieval.weights == (1.0, 0.25, 0)
    assert hits[0].retrieval.rrf_score == pytest.approx(2 / 61)
    assert hybrid_of("a c", "a b")[0].search(HYBRID)[0].retrieval.weights is None


def test_passages_below_the_similarity_floor_are_listed_only_if_they_have_words_of_the_query() -> None:
    meaning = Ranks("vector", "near far farther", below_floor="far farther")
    assert ids(hybrid_of("farther word", meaning)[0].search(RANKED)) == ["farther", "near", "word"]


def test_distant_passages_are_shown_with_a_notice_if_nothing_else_is_found() -> None:
    """Regression: in a small corpus all cosines are low, so the right note, first by meaning, was not shown."""
    retriever = hybrid_of("", Ranks("vector", "a b c d e", below_floor="a b c d e"))[0]
    found = retriever.search(RANKED)
    assert (ids(found), codes(found), found.more) == (["a", "b", "c"], ["far_away"], False)
    assert ids(retriever.search(RANKED._replace(insists=True))) == []
    assert ids(retriever.search(RANKED._replace(type_ahead=True))) == [], "not while somebody types"
    assert ids(retriever.search(RANKED._replace(k=1, offset=1))) == ["b"]


# --- the list: pages, dates, documents, copies


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[ChunkContext], list[ChunkContext]]:
    """Two rankings of one corpus, often longer than the first depth, with long documents, copies and equal dates."""
    size = draw(st.sampled_from([3, 40, 130, 250]))
    documents, texts, days = (draw(st.integers(1, most)) for most in (size, size, 28))
    passages = [
        chunk(
            f"{number:03}",
            f"document {number % documents}",
            f"2026-01-{1 + number * 7 % days:02}",
            f"text {number * 13 % texts}",
        )
        for number in range(size)
    ]
    random = draw(st.randoms(use_true_random=False))
    lists = [random.sample(passages, draw(st.integers(0, size))) for _ in range(2)]
    return lists[0], lists[1]


@given(
    corpora(),
    st.fixed_dictionaries(
        {
            "sort": st.sampled_from(["relevance", "date"]),
            "per_doc": st.sampled_from([None, 1, 3]),
            "duplicates": st.sampled_from(["show", "fold"]),
            "fusion": st.sampled_from(["rrf", "convex"]),
        }
    ),
    st.integers(10, 60),
)
@settings(max_examples=25)
def test_pages_of_any_size_together_give_one_list_without_repetition(
    lists: tuple[list[ChunkContext], list[ChunkContext]], options: dict[str, Any], k: int
) -> None:
    """The first ten of fifty hits are those of a list of ten, however deep the ranking must go for the others."""
    retriever = HybridRetriever(FusionPolicy(), Foreign("lexical", lists[0]), Foreign("vector", lists[1]))
    query = HYBRID._replace(**options)
    whole = retriever.search(query._replace(k=1000))
    assert not whole.more
    seen = [*ids(whole), *(copy.chunk_id for hit in whole for copy in hit.duplicates)]
    assert len(set(seen)) == len(seen)
    if options["sort"] == "relevance" and options["per_doc"] is None:
        assert set(seen) == {found.chunk_id for found in (*lists[0], *lists[1])}, "folding loses nothing"
    if options["sort"] == "date":
        assert [hit.date for hit in whole] == sorted((hit.date for hit in whole), reverse=True)
    if options["per_doc"] is not None:
        documents = [hit.doc_id for hit in whole]
        assert all(documents.count(document) <= options["per_doc"] for document in documents)
    pages = [retriever.search(query._replace(k=k, offset=offset)) for offset in range(0, len(whole) + 1, k)]
    assert [hit for page in pages for hit in page] == list(whole)
    assert [hit.rank for hit in whole] == list(range(1, len(whole) + 1))
    assert [page.more for page in pages] == [offset + k < len(whole) for offset in range(0, len(whole) + 1, k)]


def test_a_hybrid_list_ends_before_passages_below_the_similarity_floor() -> None:
    names = [f"v{n:03}" for n in range(150)]
    retriever = hybrid_of("", Ranks("vector", " ".join(names), below_floor=" ".join(names[20:])))[0]
    assert ids(retriever.search(RANKED._replace(k=1000))) == names[:20]
    assert retriever.search(RANKED._replace(k=10)).more
    assert not retriever.search(RANKED._replace(k=10, offset=10)).more


def test_sorted_by_date_passages_without_the_words_are_left_out() -> None:
    dated = {name: chunk(name, date=f"2026-01-{day:02}") for name, day in (("a", 5), ("b", 9), ("c", 5), ("young", 20))}
    words, meaning = [dated[name] for name in "abc"], [dated[name] for name in ("young", "b", "c")]
    by_date = HYBRID._replace(sort="date")
    hits = hybrid_of(Foreign("lexical", words), Foreign("vector", meaning))[0].search(by_date)
    assert ids(hits) == ["b", "c", "a"], "those of one day by relevance"
    alike = hybrid_of("", Foreign("vector", meaning))[0].search(by_date)
    assert ids(alike) == ["young", "b", "c"], "without any words, meaning is all there is"


def test_a_query_that_insists_on_words_lists_only_passages_with_them_in_fused_order() -> None:
    hits = hybrid_of("a b c", "x c y b")[0].search(HYBRID._replace(insists=True))
    assert ids(hits) == ["c", "b", "a"]
    assert not hits.more
    nothing = hybrid_of("", "x y")[0].search(HYBRID._replace(insists=True))
    assert (ids(nothing), codes(nothing)) == ([], ["insisted"])


def test_with_per_doc_more_passages_are_ranked_if_one_document_fills_the_list() -> None:
    book = [chunk(f"page{number:04}", "book") for number in range(700)]
    others = [chunk(f"note{number}") for number in range(5)]
    retriever, _, _ = hybrid_of(Foreign("lexical", [*book, *others]), Foreign("vector", [*reversed(book), *others]))
    hits = retriever.search(HYBRID._replace(k=4, per_doc=1))
    assert [hit.doc_path for hit in hits] == ["book.md", "note0.md", "note1.md", "note2.md"]
    assert hits.more


def test_ranking_deeper_ends_even_if_a_retriever_always_claims_to_have_more() -> None:
    endless = Foreign("lexical", [chunk(str(number), "book") for number in range(50)], more=True)
    assert len(hybrid_of(endless, "x")[0].search(HYBRID._replace(k=4, per_doc=1))) == 2


# --- what is said


def test_a_hybrid_list_has_the_notices_of_both_retrievers_and_one_if_no_hit_has_the_words() -> None:
    words = side("lexical", "a", notices=(Says.SOME_WORDS.notice(),))
    meaning = side("vector", "b", notices=(Says.LONG_QUERY.notice(),))
    assert codes(hybrid_of(words, meaning)[0].search(HYBRID)) == ["some_words", "long_query"]
    assert codes(hybrid_of("", "b")[0].search(HYBRID)) == ["similar_only"]
    assert codes(hybrid_of("", "")[0].search(HYBRID)) == []


@pytest.mark.parametrize("least", [{"min_score": 0.6}, {"threshold": 0.02}])
def test_hits_below_the_minimum_score_are_removed_and_counted(least: dict[str, Any]) -> None:
    hits = hybrid_of("a both", "both c")[0].search(HYBRID._replace(explain=True, **least))
    assert (ids(hits), hits.below_scores, hits.more) == (["both"], 2, False)
    assert hits.explanation is not None
    removed = [hits.explanation[f"removed_by_{name}"] for name in ("min_score", "threshold")]
    assert removed == ([2, 0] if "min_score" in least else [0, 2])


def test_a_hit_above_the_threshold_is_found_if_only_a_deeper_ranking_has_its_words() -> None:
    """It is first by meaning, but must have the words, and by words it is behind all passages of the first ranking."""
    words = " ".join([*(f"w{number}" for number in range(FIRST_DEPTH + 10)), "asked"])
    query = HYBRID._replace(insists=True, threshold=0.02)
    assert ids(hybrid_of(words, "asked other")[0].search(query)) == ["asked"]


def test_an_explanation_has_rank_score_and_share_of_each_list_and_counts_the_hits_of_each() -> None:
    retriever, words, _ = hybrid_of("a both", "both c")
    hits = retriever.search(HYBRID._replace(explain=True))
    assert hits.explanation is not None
    fusion = hits.explanation["fusion"]
    assert {name: fusion[name] for name in ("kind", "k_rrf", "both", "lexical_only", "vector_only")} == {
        "kind": "rrf",
        "k_rrf": 60,
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
    assert shown["both"]["fusion"]["divided_by"] == 2 / 61
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
def retrievers_of(database: Path, models: EmbeddingModels, toy: type[Toy]) -> Iterator[Retrievers]:
    with toy.open(database, models) as knowledge_base, knowledge_base.retrievers() as retrievers:
        yield retrievers


@contextmanager
def hybrid_on(database: Path, models: EmbeddingModels, toy: type[Toy]) -> Iterator[HybridRetriever]:
    with retrievers_of(database, models, toy) as retrievers:
        assert retrievers.hybrid is not None
        yield retrievers.hybrid


class Wrapped:
    """One of our retrievers, reduced to the two methods of the protocol."""

    def __init__(self, retriever: Retriever) -> None:
        self.search = retriever.search
        self.index_version = retriever.index_version


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, toy: type[Toy]) -> Path:
    folder = tmp_path_factory.mktemp("hybrid")
    with toy.open(folder / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(write(folder / "notes", CORPUS))
    return folder / "kb.sqlite"


def test_hits_of_all_modes_have_the_same_fields_and_validate_against_the_schema(corpus: Path, toy: type[Toy]) -> None:
    schema = jsonschema.Draft202012Validator(schemas.schema("search_hit"))
    fields = {}
    with hybrid_on(corpus, toy.models(), toy) as retriever:
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


def test_hybrid_hits_have_the_same_snippets_as_lexical_hits(corpus: Path, toy: type[Toy]) -> None:
    with hybrid_on(corpus, toy.models(), toy) as retriever:
        lexical = retriever.search(SearchQuery("install git", match="any"))
        hybrid = {hit.chunk_id: hit for hit in retriever.search(SearchQuery("install git", mode="hybrid", match="any"))}
        for hit in lexical:
            assert (hybrid[hit.chunk_id].snippet, hybrid[hit.chunk_id].highlights) == (hit.snippet, hit.highlights)
            assert hybrid[hit.chunk_id].text == hit.snippet
        whole = retriever.search(SearchQuery("install git", mode="hybrid", match="any", full_text=True))
        assert "# Setup\n\n## Install git\n\nInstall git and tell it your name." in {hit.text for hit in whole[:2]}


@pytest.mark.parametrize("fusion", ["rrf", "convex"])
def test_the_same_query_gives_byte_identical_hits(corpus: Path, toy: type[Toy], fusion: Any) -> None:
    runs = []
    for _ in range(3):
        with hybrid_on(corpus, toy.models(), toy) as retriever:
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
def test_a_passage_that_is_removed_before_it_is_read_is_replaced_by_the_next(
    many: Path, toy: type[Toy], duplicates: Any
) -> None:
    query = SearchQuery("a seed in the garden", mode="hybrid", match="any", k=5, duplicates=duplicates)
    with retrievers_of(many, toy.models(), toy) as found:
        assert found.hybrid is not None
        before = ids(found.hybrid.search(query._replace(k=8)))
        stored = found.lexical.contexts
        found.lexical.contexts = lambda chunk_ids: stored(  # type: ignore[method-assign]
            [chunk_id for chunk_id in chunk_ids if chunk_id not in (before[0], before[3])]
        )
        hits = found.hybrid.search(query)
    assert ids(hits) == [before[place] for place in (1, 2, 4, 5, 6)]
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("foreign", [("lexical",), ("vector",), ("lexical", "vector")], ids=" and ".join)
@pytest.mark.parametrize("options", [{}, {"k": 4, "offset": 3}, {"duplicates": "fold"}, {"fusion": "convex"}], ids=str)
def test_foreign_retrievers_with_the_two_methods_of_the_protocol_give_the_same_hits(
    many: Path, toy: type[Toy], foreign: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Alone, and together with one of our retrievers: the same passages, scores and snippets."""
    query = SearchQuery("seed", mode="hybrid", match="any", **options)
    with retrievers_of(many, toy.models(), toy) as ours:
        assert ours.hybrid is not None
        assert ours.vector is not None
        lexical: Retriever = Wrapped(ours.lexical) if "lexical" in foreign else ours.lexical
        vector: Retriever = Wrapped(ours.vector) if "vector" in foreign else ours.vector
        expected, found = ours.hybrid.search(query), HybridRetriever(FusionPolicy(), lexical, vector).search(query)
        assert len(found) >= 4
        assert list(found) == list(expected)
        assert (found.more, found.match, found.notices) == (expected.more, expected.match, expected.notices)


def test_searching_only_reads(corpus: Path, toy: type[Toy]) -> None:
    before = corpus.read_bytes()
    with hybrid_on(corpus, toy.models(), toy) as retriever:
        retriever.search(SearchQuery("install git", mode="hybrid", explain=True))
    assert corpus.read_bytes() == before


def test_hybrid_search_finds_at_least_as_much_as_the_better_of_both_retrievers(tmp_path: Path, toy: type[Toy]) -> None:
    """Two notes have the number, which means nothing to the model; two say the same in other words. Each retriever
    finds only two of the four.
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
    with hybrid_on(tmp_path / "kb.sqlite", models, toy) as retriever:
        for mode in ("lexical", "vector", "hybrid"):
            hits = retriever.search(SearchQuery("automobile E1234 repair", mode=mode, k=4, match="auto"))
            recall[mode] = len({hit.doc_path for hit in hits} & relevant) / len(relevant)
    assert (recall["lexical"], recall["vector"]) == (0.5, 0.5)
    assert recall["hybrid"] >= max(recall["lexical"], recall["vector"])
    assert recall["hybrid"] == 1.0


def test_filters_apply_to_both_lists_of_a_hybrid_search(corpus: Path, toy: type[Toy]) -> None:
    """Fewer documents than k may pass the filters."""
    with hybrid_on(corpus, toy.models(), toy) as retriever:
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


def test_hybrid_is_the_default_mode_and_asks_both_retrievers(tmp_path: Path, toy: type[Toy]) -> None:
    """This holds as soon as there are vectors."""
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
"""Queries, and how many of their hits are compared: later hits are so distant or so close together that another
processor may order them differently.
"""


def test_hits_of_a_fixed_corpus_are_those_of_the_golden_file(tmp_path: Path, bundled_models: None) -> None:
    """With the bundled models. Cosines are compared to two thousandths, because another processor rounds
    otherwise; ranks, fused scores and everything else exactly. To write it anew, delete it and run this test.
    """
    run: dict[str, Any] = {}
    with kebab.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(write(tmp_path / "notes", CORPUS))
        for query, k in QUERIES.items():
            response = knowledge_base.search(query, k=k)
            assert response.method == "hybrid"
            hits = [
                plain(search_hit_v1(hit._replace(chunk=hit.chunk._replace(indexed_at="…", date="…"))))
                for hit in response
            ]
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


def test_snippets_of_vector_hits_mark_the_words_of_the_query(corpus: Path, toy: type[Toy]) -> None:
    with hybrid_on(corpus, toy.models(), toy) as retriever:
        hits = retriever.search(SearchQuery("tell salt", mode="hybrid", match="all"))
        assert [notice.code for notice in hits.notices] == ["similar_only"]
        marked = {hit.doc_path: [hit.snippet[start:end] for start, end in hit.highlights] for hit in hits}
        assert (marked["git/setup.md"], marked["cooking/kimchi.md"]) == (["tell"], ["Salt"])
        assert isinstance(hits.terms, QueryTerms)
