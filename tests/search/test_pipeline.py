"""What a search does around the retrievers: cursors, minimum scores, budgets of tokens, and notices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kebab
from kebab.core.errors import ModelMismatch, ModelMissing, ModelUnreachable, QueryError, StaleCursor
from kebab.core.ports import EmbeddingModels
from kebab.core.search import SearchResponse
from kebab.core.text import estimate_tokens

if TYPE_CHECKING:
    from tests.conftest import Toy, WordEmbedder


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search-pipeline")
    notes = folder / "notes"
    notes.mkdir()
    for number in range(23):
        words = " ".join(["okapi"] * (1 + number % 4)) + (" quagga" if number % 5 == 0 else "")
        (notes / f"{number:02}.md").write_text(
            f"---\ndate: 2024-01-{number + 1:02}\ntags: [{'odd' if number % 2 else 'even'}]\n---\n# Note {number}\n\n{words} {'filler ' * number}\n",
            encoding="utf-8",
        )
    with kebab.open(folder / "kb.sqlite") as kb:
        kb.ingest(notes)
    return folder / "kb.sqlite"


@pytest.fixture
def kb(database: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(database) as opened:
        yield opened


def ids(response: SearchResponse) -> list[str]:
    return [hit.chunk_id for hit in response]


def codes(response: SearchResponse) -> list[str]:
    return [notice.code for notice in response.notices]


def pages(kb: kebab.KnowledgeBase, query: str, **options: Any) -> list[SearchResponse]:
    found = [kb.search(query, **options)]
    while found[-1].next_cursor and len(found) < 100:
        found.append(kb.search(query, cursor=found[-1].next_cursor, **options))
    return found


@pytest.mark.parametrize("match", ["auto", "all", "any"])
@pytest.mark.parametrize("query", ["okapi", "okapi quagga", "what is an okapi", "'okapi'", "okapi OR quagga"])
def test_pages_by_cursor_contain_every_hit_exactly_once(kb: kebab.KnowledgeBase, query: str, match: str) -> None:
    found = pages(kb, query, k=4, match=match)
    paged = [chunk for page in found for chunk in ids(page)]
    assert len(set(paged)) == len(paged)
    assert paged == ids(kb.search(query, k=1000, match=match))
    if query == "okapi":
        assert len(paged) == 23
    assert [hit.rank for page in found for hit in page] == list(range(1, len(paged) + 1))


@pytest.mark.parametrize(
    "options",
    [
        {"sort": "date", "k": 5},
        {"per_doc": 1, "k": 5},
        {"tags_any": ["odd"], "k": 2},
        {"max_tokens": 30, "k": 6},
        {"k": 5, "full_text": True, "max_tokens": 60},
        {"sort": "date", "max_tokens": 30, "k": 6},
    ],
    ids=str,
)
def test_paging_loses_no_hit_with_any_other_option(kb: kebab.KnowledgeBase, options: dict[str, Any]) -> None:
    paged = [chunk for page in pages(kb, "okapi", **options) for chunk in ids(page)]
    whole = {name: value for name, value in options.items() if name not in ("k", "max_tokens")}
    assert paged == ids(kb.search("okapi", k=1000, **whole))


def test_after_a_page_cut_by_max_tokens_and_min_score_the_cursor_continues_with_the_next_hit(
    kb: kebab.KnowledgeBase,
) -> None:
    """In a list sorted by date, hits below the minimum are between those above it."""
    scores = sorted(hit.score for hit in kb.search("okapi", k=1000))
    least = scores[len(scores) // 2]
    paged = [
        chunk
        for page in pages(kb, "okapi", match="all", sort="date", min_score=least, max_tokens=30, k=8)
        for chunk in ids(page)
    ]
    assert paged == ids(kb.search("okapi", match="all", sort="date", min_score=least, k=1000))


@pytest.mark.parametrize(
    "changed",
    [
        {"query": "quagga"},
        {"tags_any": ["odd"]},
        {"sort": "date"},
        {"match": "any"},
        {"per_doc": 1},
        {"after": "2024-01-05"},
        {"type": ["markdown"]},
    ],
    ids=str,
)
def test_a_cursor_of_another_query_is_refused(kb: kebab.KnowledgeBase, changed: dict[str, Any]) -> None:
    cursor = kb.search("okapi", k=2).next_cursor
    with pytest.raises(StaleCursor) as caught:
        kb.search(**{"query": "okapi", "k": 2, "cursor": cursor, **changed})
    assert caught.value.code == "stale_cursor"
    assert caught.value.hint


def test_a_cursor_of_another_index_is_refused(kb: kebab.KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index version is part of a cursor, because an index with another analysis orders its hits differently."""
    from kebab.search.lexical import LexicalRetriever

    cursor = kb.search("okapi", k=2).next_cursor
    assert kb.search("okapi", k=2, cursor=cursor).hits
    monkeypatch.setattr(LexicalRetriever, "index_version", lambda _: "lex:2:other")
    with pytest.raises(StaleCursor):
        kb.search("okapi", k=2, cursor=cursor)


@pytest.mark.parametrize(
    "cursor", ["", " ", "x", "e30", "bnVsbA", "W10", "!!!!", "한글", "eyJvZiI6MX0", "=" * 50, "a" * 10_000]
)
def test_any_text_that_is_not_a_cursor_is_refused_as_a_stale_cursor(kb: kebab.KnowledgeBase, cursor: str) -> None:
    if not cursor.strip():
        kb.search("okapi", cursor=None)
        return
    with pytest.raises(StaleCursor):
        kb.search("okapi", cursor=cursor)


def test_k_may_change_from_page_to_page(kb: kebab.KnowledgeBase) -> None:
    first = kb.search("okapi", k=3)
    rest = kb.search("okapi", k=100, cursor=first.next_cursor)
    assert ids(first) + ids(rest) == ids(kb.search("okapi", k=1000))
    assert rest.next_cursor is None


def test_max_tokens_gives_whole_hits_up_to_the_budget_and_at_least_one(kb: kebab.KnowledgeBase) -> None:
    everything = kb.search("okapi", k=20, full_text=True)
    for budget in (1, 40, 100, 10_000):
        response = kb.search("okapi", k=20, full_text=True, max_tokens=budget)
        used = sum(estimate_tokens(hit.text) for hit in response)
        assert used <= budget or len(response) == 1
        assert ids(response) == ids(everything)[: len(response)]
        assert response.truncated == (len(response) < len(everything))
    assert kb.search("okapi", k=20, full_text=True, max_tokens=10_000).truncated is False


def test_min_score_removes_hits_in_lexical_mode_and_ends_paging(kb: kebab.KnowledgeBase) -> None:
    best = kb.search("okapi", k=5)
    least = best.hits[2].score
    response = kb.search("okapi", k=5, min_score=least, explain=True)
    assert {hit.score >= least for hit in response} == {True}
    assert len(response) >= 3
    assert response.explanation is not None
    assert response.explanation["removed_by_min_score"] == 5 - len(response)
    assert kb.search("okapi", min_score=1.0).hits == ()
    assert kb.search("okapi", k=2, min_score=1.0).next_cursor is None


def test_in_lexical_mode_a_threshold_removes_nothing_and_a_notice_says_so(kb: kebab.KnowledgeBase) -> None:
    response = kb.search("okapi", threshold=0.99)
    assert len(response) == 10
    assert "threshold_unused" in codes(response)


def test_hybrid_without_vectors_answers_lexically_with_a_notice(kb: kebab.KnowledgeBase) -> None:
    response = kb.search("okapi", mode="hybrid")
    assert (response.mode, response.method, codes(response)) == ("hybrid", "lexical", ["vectors_off"])
    assert codes(kb.search("okapi", mode="lexical")) == []
    with pytest.raises(ModelMissing):
        kb.search("okapi", mode="vector")


@pytest.mark.parametrize("query", ["", "  ", "\n\t"])
def test_an_empty_query_gives_no_hits_and_a_notice(kb: kebab.KnowledgeBase, query: str) -> None:
    response = kb.search(query, mode="lexical", explain=True)
    assert (response.hits, response.match, response.next_cursor, codes(response)) == ((), None, None, ["empty_query"])


def test_a_missing_database_gives_no_hits_and_the_notice_of_an_empty_corpus(isolated_home: Path) -> None:
    with kebab.open() as empty:
        response = empty.search("okapi", mode="lexical")
        assert (response.hits, codes(response)) == ((), ["empty_corpus"])
        assert response.index_version.startswith("lex:")
        assert not empty.path.exists()


def test_a_database_without_passages_gives_the_notice_of_an_empty_corpus(tmp_path: Path, toy: type[Toy]) -> None:
    """Regression: the notice said how to make vectors, which changed nothing."""
    notes = tmp_path / "notes"
    notes.mkdir()
    with toy.open(tmp_path / "kb.sqlite", toy.models(toy.embedder())) as kb:
        kb.ingest(notes)
        assert [codes(kb.search("okapi", mode=mode)) for mode in ("lexical", "hybrid")] == [["empty_corpus"]] * 2
        with pytest.raises(ModelMissing, match="Nothing has been ingested yet"):
            kb.search("okapi", mode="vector")
        (notes / "a.md").write_text("okapi\n", encoding="utf-8")
        kb.ingest()
        (notes / "a.md").unlink()
        kb.ingest()
        assert [codes(kb.search("okapi", mode=mode)) for mode in ("lexical", "hybrid")] == [["empty_corpus"]] * 2


def test_an_unknown_tag_gives_a_notice(kb: kebab.KnowledgeBase) -> None:
    assert codes(kb.search("okapi", mode="lexical", tags_any=["odd", "nonsense"])) == ["unknown_tag"]
    assert codes(kb.search("okapi", mode="lexical", tags_any=["ODD"])) == []


def test_targets_and_labels_of_links_and_aliases_of_a_page_are_searchable_words_of_it(tmp_path: Path) -> None:
    (tmp_path / "engine.md").write_text(
        "---\naliases: [Raketenmotor, Thrust maker]\n---\nThe [[Merlin 1D|workhorse]], [[Pump#Bearings]] and ![[nozzle.png|300]].\n\n"
        "| valve |\n|---|\n| [[Ventil\\|stopcock]] |\n",
        encoding="utf-8",
    )
    with kebab.open(tmp_path / "index.sqlite") as kb:
        kb.ingest(tmp_path, embed=False)
        for query in (
            "Merlin",
            "workhorse",
            "Pump",
            "Bearings",
            "nozzle",
            "Ventil",
            "stopcock",
            "Raketenmotor",
            '"thrust maker"',
        ):
            hits = kb.search(query, mode="lexical").hits
            assert [hit.doc_path for hit in hits] == ["engine.md"], query
            assert "[[Merlin 1D|workhorse]]" in hits[0].snippet  # a citation is verbatim


def test_a_parent_of_a_known_tag_is_a_known_tag(tmp_path: Path) -> None:
    (tmp_path / "engine.md").write_text("An okapi. #propulsion/liquid\n", encoding="utf-8")
    with kebab.open(tmp_path / "index.sqlite") as kb:
        kb.ingest(tmp_path, embed=False)
        for tag in ("propulsion", "#propulsion/"):
            response = kb.search("okapi", mode="lexical", tags_any=[tag])
            assert ([hit.doc_path for hit in response], codes(response)) == (["engine.md"], [])
        assert not kb.search("okapi", mode="lexical", exclude_tag=["propulsion"]).hits


def test_the_default_number_of_hits_comes_from_the_settings(database: Path) -> None:
    with kebab.open(database) as kb:
        assert len(kb.search("okapi")) == 10
    with kebab.open(database, search_default_k=3) as kb:
        assert len(kb.search("okapi")) == 3
        assert len(kb.search("okapi", k=7)) == 7


def test_without_highlights_the_snippet_is_the_same(kb: kebab.KnowledgeBase) -> None:
    with_marks, without = kb.search("okapi"), kb.search("okapi", highlight=False)
    assert [hit.snippet for hit in with_marks] == [hit.snippet for hit in without]
    assert all(hit.highlights for hit in with_marks)
    assert not any(hit.highlights for hit in without)


# --- with vectors


@pytest.fixture(scope="module")
def vector_database(tmp_path_factory: pytest.TempPathFactory, toy: type[Toy]) -> Path:
    """40 notes: some have the word okapi, some only a word with the same meaning, others neither. One long note fills
    the beginning of lists.
    """
    folder = tmp_path_factory.mktemp("search-with-vectors")
    notes = folder / "notes"
    notes.mkdir()
    for number in range(40):
        words = ("okapi okapi", "giraffe", "okapi giraffe", "zebra")[number % 4]
        (notes / f"{number:02}.md").write_text(
            f"---\ndate: 2024-02-{1 + number * 7 % 28:02}\ntags: [{'odd' if number % 2 else 'even'}]\n---\n# Note {number}\n\n{words} {f'filler{number} ' * (number % 9)}\n",
            encoding="utf-8",
        )
    (notes / "long.md").write_text(
        "".join(f"# Part {part}\n\nokapi {part} {'okapi word ' * 70}\n\n" for part in range(60)), encoding="utf-8"
    )
    with toy.open(folder / "kb.sqlite", models_of(toy)) as kb:
        kb.ingest(notes)
    return folder / "kb.sqlite"


def models_of(toy: type[Toy]) -> EmbeddingModels:
    return toy.models(toy.embedder(synonyms={"giraffe": "okapi"}))


@pytest.fixture
def vkb(vector_database: Path, toy: type[Toy]) -> Iterator[kebab.KnowledgeBase]:
    with toy.open(vector_database, models_of(toy)) as opened:
        yield opened


def test_every_mode_reports_its_index_version(vkb: kebab.KnowledgeBase) -> None:
    versions = {mode: vkb.search("okapi", mode=mode).index_version for mode in ("lexical", "vector", "hybrid")}
    assert versions["lexical"].startswith("lex:")
    assert versions["vector"] == "vec:words@1:32"
    assert versions["hybrid"] == f"hybrid:{versions['lexical']}+vec:words@1:32"
    for mode, version in versions.items():
        assert {hit.index_version for hit in vkb.search("okapi", mode=mode)} == {version}
        assert vkb.search("", mode=mode).index_version == version
    assert vkb.search("okapi NOT zebra").index_version == versions["lexical"]


# --- thresholds


def test_a_threshold_excludes_every_hit_whose_rrf_score_is_below_it(vkb: kebab.KnowledgeBase) -> None:
    everything = vkb.search("okapi", k=1000)
    scores = [hit.retrieval.rrf_score or 0 for hit in everything]
    assert len(set(scores)) > 5
    for threshold in (0.0, scores[-1], scores[7], scores[0], 1.0):
        response = vkb.search("okapi", k=1000, threshold=threshold, explain=True)
        assert ids(response) == [hit.chunk_id for hit in everything if (hit.retrieval.rrf_score or 0) >= threshold]
        assert response.explanation is not None
        if threshold > scores[-1]:
            seen = sum(response.explanation["fusion"][side] for side in ("both", "lexical_only", "vector_only"))
            assert response.explanation["removed_by_threshold"] == seen - len(response)
        assert "threshold_unused" not in codes(response)


def test_a_threshold_above_1_61st_drops_hits_that_only_one_retriever_found(tmp_path: Path, toy: type[Toy]) -> None:
    """1/61 = 0.0164 < 0.02 < 1/61 + 1/62."""
    (tmp_path / "notes").mkdir()
    for name, text in {"both": "okapi", "meaning": "giraffe giraffe", "other": "unrelated words"}.items():
        (tmp_path / "notes" / f"{name}.md").write_text(f"---\ntitle: {name}\n---\n{text}\n", encoding="utf-8")
    with toy.open(tmp_path / "kb.sqlite", models_of(toy)) as kb:
        kb.ingest(tmp_path / "notes")
        plain = kb.search("okapi")
        assert {hit.doc_path: hit.retrieval.rrf_score for hit in plain}["meaning.md"] == pytest.approx(1 / 61, abs=1e-3)
        assert [hit.doc_path for hit in kb.search("okapi", threshold=0.02)] == ["both.md"]
        only_words = kb.search("okapi NOT nothing", threshold=0.02)
        assert len(only_words) == 1
        assert codes(only_words) == ["words_only", "threshold_unused"]


@pytest.mark.parametrize("options", [{"mode": "vector"}, {"mode": "lexical"}, {"fusion": "convex"}], ids=str)
def test_with_convex_fusion_a_threshold_removes_nothing_and_a_notice_says_so(
    vkb: kebab.KnowledgeBase, options: dict[str, Any]
) -> None:
    """--min-score works in every mode."""
    response = vkb.search("okapi", threshold=0.9, **options)
    assert len(response) == 10
    assert "threshold_unused" in codes(response)
    least = response.hits[4].score
    fewer = vkb.search("okapi", min_score=least, **options)
    assert 0 < len(fewer) <= 10
    assert all(hit.score >= least for hit in fewer)


def test_a_list_cut_by_a_threshold_has_no_next_cursor(vkb: kebab.KnowledgeBase) -> None:
    """All following hits are below the threshold too."""
    best = vkb.search("okapi", k=5).hits[2].retrieval.rrf_score
    assert vkb.search("okapi", k=5, threshold=best).next_cursor is None


@pytest.mark.parametrize("least", [{"threshold": 1.0}, {"min_score": 1.0}], ids=str)
@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
def test_no_spelling_is_suggested_if_a_minimum_score_removed_the_hits(
    vkb: kebab.KnowledgeBase, least: dict[str, Any], mode: str
) -> None:
    removed = vkb.search("giraffe zebra", mode=mode, **least)
    assert "did_you_mean" not in codes(removed)
    assert not removed.hits or mode == "lexical", "a threshold is about hybrid scores"


@pytest.mark.parametrize("options", [{}, {"threshold": 0.001}, {"min_score": 0.001}], ids=str)
def test_a_spelling_for_unknown_words_is_suggested_with_any_minimum_score(
    vkb: kebab.KnowledgeBase, options: dict[str, Any]
) -> None:
    for mode in ("lexical", "hybrid"):
        response = vkb.search('"girafffe"', mode=mode, **options)
        assert not response.hits
        assert [notice.suggestions for notice in response.notices if notice.code == "did_you_mean"] == [('"giraffe"',)]


# --- notices: what answered, and why not more


def test_without_vectors_hybrid_is_lexical_and_says_how_to_make_them(database: Path, toy: type[Toy]) -> None:
    with toy.open(database) as kb:
        response = kb.search("okapi")
        assert (response.mode, response.method, codes(response)) == ("hybrid", "lexical", ["no_vectors"])
        assert "kb ingest" in response.notices[0].message
        assert response.index_version.startswith("lex:")
        assert ids(response) == ids(kb.search("okapi", mode="lexical"))
        with pytest.raises(ModelMissing) as caught:
            kb.search("okapi", mode="vector")
        assert caught.value.code == "no_vectors"
        assert "kb ingest" in (caught.value.hint or "")


def test_with_vectors_of_another_model_hybrid_is_lexical_and_names_both(vector_database: Path, toy: type[Toy]) -> None:
    for other in (toy.embedder("other"), toy.embedder(version="2")):
        with toy.open(vector_database, toy.models(other)) as kb:
            response = kb.search("okapi")
            assert (response.method, codes(response)) == ("lexical", ["model_mismatch"])
            assert "were made by words" in response.notices[0].message
            assert "kb index --rebuild-vectors" in response.notices[0].message
            with pytest.raises(ModelMismatch):
                kb.search("okapi", mode="vector")
        assert other.batches == []


def test_a_model_with_another_dimension_under_the_same_name_is_noticed(vector_database: Path, toy: type[Toy]) -> None:
    """The dimension of an endpoint is known only after its first answer."""
    with toy.open(vector_database, toy.models(toy.embedder(dimension=64))) as kb:
        response = kb.search("okapi")
        assert (response.method, codes(response)) == ("lexical", ["model_mismatch"])
        assert len(response) == 10
        with pytest.raises(ModelMismatch):
            kb.search("okapi", mode="vector")


def test_while_most_vectors_are_missing_hits_are_ordered_by_words(tmp_path: Path, toy: type[Toy]) -> None:
    """Regression: unrelated passages that happened to have a vector came before the right one without."""
    (tmp_path / "notes").mkdir()
    with toy.open(tmp_path / "kb.sqlite") as kb:
        for number in range(6):
            (tmp_path / "notes" / f"{number}.md").write_text(f"okapi number {number}\n", encoding="utf-8")
        kb.ingest(tmp_path / "notes")
        (tmp_path / "notes" / "new.md").write_text("okapi okapi zebra quagga\n", encoding="utf-8")
        kb.ingest(tmp_path / "notes", embed=False)
        for text in ("okapi zebra", "how many okapi and quagga and giraffe"):
            for fusion in ("rrf", "convex"):
                assert kb.search(text, fusion=fusion).hits[0].doc_path == "new.md"


def test_while_vectors_are_missing_a_notice_says_how_many(tmp_path: Path, toy: type[Toy]) -> None:
    """The search is still a hybrid one."""
    (tmp_path / "notes").mkdir()
    with toy.open(tmp_path / "kb.sqlite") as kb:
        for number in range(3):
            (tmp_path / "notes" / f"{number}.md").write_text(f"okapi number {number}\n", encoding="utf-8")
            kb.ingest(tmp_path / "notes", embed=number < 2)
        for mode in ("hybrid", "vector"):
            response = kb.search("okapi", mode=mode)
            assert (response.method, codes(response)) == (mode, ["partial_vectors"])
            assert response.notices[0].message.startswith("2 of 3 passages have vectors")
            assert "kb ingest" in response.notices[0].message
        assert {hit.doc_path for hit in kb.search("okapi")} == {"0.md", "1.md", "2.md"}
        assert codes(kb.search("okapi", mode="lexical")) == []
        kb.ingest(tmp_path / "notes")
        assert codes(kb.search("okapi")) == []


@pytest.mark.parametrize("query", ["okapi NOT zebra", "'okapi'", "okapi AND (giraffe NOT zebra)"])
def test_queries_with_exclusions_or_raw_fts5_are_answered_by_words(vkb: kebab.KnowledgeBase, query: str) -> None:
    response = vkb.search(query)
    assert (response.mode, response.method, codes(response)[0]) == ("hybrid", "lexical", "words_only")
    assert ids(response) == ids(vkb.search(query, mode="lexical"))
    with pytest.raises(QueryError) as caught:
        vkb.search(query, mode="vector")
    assert caught.value.hint


def test_a_notice_says_that_no_hit_has_the_words_of_the_query(
    vkb: kebab.KnowledgeBase, toy: type[Toy], vector_database: Path
) -> None:
    with toy.open(
        vector_database, toy.models(toy.embedder(synonyms={"giraffe": "okapi", "camelopard": "okapi"}))
    ) as kb:
        response = kb.search("camelopard")
        assert (response.method, codes(response)) == ("hybrid", ["similar_only"])
        assert len(response) == 10
        assert {hit.retrieval.lexical_rank for hit in response} == {None}
    assert codes(vkb.search("okapi")) == []


class Down:
    """An endpoint that does not answer."""

    def __init__(self, embedder: WordEmbedder) -> None:
        self.name, self.version, self.dimension, self.fingerprint = (
            embedder.name,
            embedder.version,
            embedder.dimension,
            embedder.fingerprint,
        )

    def embed(self, _texts: object, _kind: object) -> Any:
        raise ModelUnreachable("The endpoint does not answer.", hint="Start it.")


def test_when_the_endpoint_is_down_hybrid_gives_words_and_a_notice_and_vector_mode_the_error(
    vector_database: Path, toy: type[Toy]
) -> None:
    from kebab.embedding.models import SingleModel

    with toy.open(vector_database, SingleModel(Down(toy.embedder()))) as kb:
        response = kb.search("okapi", k=5)
        assert (response.mode, response.method, codes(response)) == ("hybrid", "lexical", ["model_unreachable"])
        assert response.notices[0].message == "These are lexical results: The endpoint does not answer. Start it."
        assert ids(response) == ids(kb.search("okapi", k=5, mode="lexical"))
        following = kb.search("okapi", k=5, mode="lexical", cursor=kb.search("okapi", k=5, mode="lexical").next_cursor)
        assert not set(ids(following)) & set(ids(response))
        with pytest.raises(ModelUnreachable):
            kb.search("okapi", mode="vector")
        assert codes(kb.search("okapi", mode="lexical")) == []


def test_a_notice_says_that_vectors_are_turned_off(vector_database: Path) -> None:
    with kebab.open(vector_database) as kb:
        assert codes(kb.search("okapi")) == ["vectors_off"]


# --- pages of hybrid and vector lists


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fusion": "convex"},
        {"sort": "date"},
        {"sort": "date", "fusion": "convex"},
        {"per_doc": 1},
        {"per_doc": 2, "sort": "date"},
        {"tags_any": ["odd"]},
        {"mode": "vector"},
        {"mode": "vector", "sort": "date"},
        {"mode": "vector", "per_doc": 1},
        {"mode": "vector", "per_doc": 1, "sort": "date"},
        {"max_tokens": 60},
        {"mode": "vector", "max_tokens": 60},
    ],
    ids=str,
)
def test_pages_by_cursor_are_disjoint_pieces_of_one_list(
    vkb: kebab.KnowledgeBase, options: dict[str, Any], k: int
) -> None:
    """All pages are parts of one list: the first ranking, and what deeper rankings append."""
    found = pages(vkb, "okapi number", k=k, **options)
    assert len(found) >= 2
    paged = [chunk for page in found for chunk in ids(page)]
    assert len(set(paged)) == len(paged)
    assert [hit.rank for page in found for hit in page] == list(range(1, len(paged) + 1))
    hits = [hit for page in found for hit in page]
    if options.get("sort") == "date":
        assert [hit.date for hit in hits] == sorted((hit.date for hit in hits), reverse=True)
    elif options.get("mode") != "vector":
        first_look = [hit.score for hit in hits][:30]
        assert first_look == sorted(first_look, reverse=True)
    if options.get("mode") == "vector" and "sort" not in options:
        assert paged == ids(
            vkb.search(
                "okapi number", k=1000, **{name: value for name, value in options.items() if name != "max_tokens"}
            )
        )
    if "per_doc" in options:
        documents = [hit.doc_id for hit in hits]
        assert max(documents.count(document) for document in documents) <= options["per_doc"]


def test_the_page_size_of_a_hybrid_list_may_change_on_the_way(vkb: kebab.KnowledgeBase) -> None:
    first = vkb.search("okapi", k=5)
    whole = [*ids(first), *ids(vkb.search("okapi", k=1000, cursor=first.next_cursor))]
    second = vkb.search("okapi", k=2, cursor=first.next_cursor)
    third = vkb.search("okapi", k=4, cursor=second.next_cursor)
    assert [*ids(first), *ids(second), *ids(third)] == whole[:11]


@pytest.mark.parametrize(
    "changed",
    [
        {"fusion": "convex"},
        {"mode": "vector"},
        {"mode": "lexical"},
        {"sort": "date"},
        {"per_doc": 1},
        {"tags_any": ["odd"]},
        {"match": "any"},
    ],
    ids=str,
)
def test_a_cursor_of_a_hybrid_list_is_bound_to_it(vkb: kebab.KnowledgeBase, changed: dict[str, Any]) -> None:
    cursor = vkb.search("okapi", k=2).next_cursor
    assert cursor
    with pytest.raises(StaleCursor):
        vkb.search("okapi", k=2, cursor=cursor, **changed)


def test_a_cursor_is_refused_after_the_fusion_setting_changed(vector_database: Path, toy: type[Toy]) -> None:
    with toy.open(vector_database, models_of(toy)) as kb:
        cursor = kb.search("okapi", k=10).next_cursor
        assert cursor
    with toy.open(vector_database, models_of(toy), search_hybrid_fusion="convex") as kb, pytest.raises(StaleCursor):
        kb.search("okapi", k=10, cursor=cursor)


@pytest.mark.parametrize("offset", ["-1", "x", "99999999999", "1.5", ""])
def test_a_cursor_together_with_an_offset_is_refused(vkb: kebab.KnowledgeBase, offset: str) -> None:
    *bound, _ = (vkb.search("okapi", k=2).next_cursor or "").split(".")
    with pytest.raises(StaleCursor):
        vkb.search("okapi", k=2, cursor=".".join([*bound, offset]))


def test_a_cursor_made_with_vectors_of_another_model_is_refused(vector_database: Path, toy: type[Toy]) -> None:
    """A cursor contains the index version, which names the model."""
    with toy.open(vector_database, models_of(toy)) as kb:
        cursor = kb.search("okapi", k=2).next_cursor
    with toy.open(vector_database, toy.models(toy.embedder("other"))) as kb, pytest.raises(StaleCursor):
        kb.search("okapi", k=2, cursor=cursor)


# --- explanations


def test_the_explanation_says_how_many_hits_fewer_than_k_there_are(vkb: kebab.KnowledgeBase) -> None:
    response = vkb.search("okapi", k=30, path="0*.md", explain=True)
    assert response.explanation is not None
    assert len(response) == 10
    assert response.explanation["fewer_than_asked"] == 20
    assert response.explanation["lexical"]["removed_by_filters"] > 0
    assert response.explanation["fusion"]["kind"] == "rrf"
    for mode in ("vector", "lexical"):
        explained = vkb.search("okapi", k=30, path="0*.md", explain=True, mode=mode).explanation
        assert explained is not None
        assert explained["fewer_than_asked"] >= 20


@pytest.mark.parametrize("query", ['"okapi number"', "okapi AND number", "zebra OR okapi"])
def test_hybrid_hits_must_match_phrases_and_operators_of_the_query(vkb: kebab.KnowledgeBase, query: str) -> None:
    """They keep their meaning, however close other passages are to the query."""
    words = {hit.chunk_id for hit in vkb.search(query, mode="lexical", k=1000)}
    response = vkb.search(query, k=1000)
    assert response.method == "hybrid"
    assert {hit.chunk_id for hit in response} <= words
    assert all(hit.retrieval.lexical_rank for hit in response)


def test_hybrid_hits_must_have_all_words_with_match_all(vkb: kebab.KnowledgeBase) -> None:
    assert all(hit.retrieval.lexical_rank for hit in vkb.search("okapi number", match="all", k=1000))
    assert not all(hit.retrieval.lexical_rank for hit in vkb.search("okapi", k=1000)), (
        "otherwise meaning adds what it finds"
    )


def test_paging_with_min_score_ends_only_if_no_further_passage_can_reach_it(vkb: kebab.KnowledgeBase) -> None:
    """A deeper ranking may find passages with higher scores than the last one of the first ranking."""
    whole = [hit for page in pages(vkb, "okapi number", k=3) for hit in page]
    scores = sorted((hit.retrieval.rrf_score or 0 for hit in whole), reverse=True)
    for threshold in (scores[5], scores[len(scores) // 2], scores[-1]):
        paged = [hit for page in pages(vkb, "okapi number", k=3, threshold=threshold) for hit in page]
        assert all((hit.retrieval.rrf_score or 0) >= threshold for hit in paged)
        assert len({hit.chunk_id for hit in paged}) == len(paged)
        # And more: what the first look found on one side only may be found on both sides by a deeper one.
        assert {hit.chunk_id for hit in paged} >= {
            hit.chunk_id for hit in whole if (hit.retrieval.rrf_score or 0) >= threshold
        }
