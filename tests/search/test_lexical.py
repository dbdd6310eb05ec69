"""The lexical retriever on real SQLite files: ranking, scores, filters, citations, and every string a person may type.

It needs no embedder and no language model, and returns an ordered list of hits, each of them built by the contract that
every retriever shares.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import kebab
from kebab.core.errors import QueryError
from kebab.core.ports import Retriever
from kebab.core.search import Exactness, SearchFilters, SearchHit, SearchQuery
from kebab.core.text import LineTable
from kebab.search.lexical import LexicalRetriever, normalised
from kebab.store.sqlite.database import Database
from kebab.store.sqlite.lexical import SqliteLexicalIndex
from kebab.store.sqlite.rows import SqliteChunkReader
from kebab.wire import plain
from kebab.wire.search import search_hit_v1

FIXTURES = Path(__file__).parent.parent / "fixtures"
GOLDEN = FIXTURES / "search" / "lexical" / "run-1.json"

CORPUS = {
    "rust/workspace.md": "---\ntags: [rust, build]\nlang: en\ntrust: primary\ndate: 2024-01-10\n---\n# Workspace\n\nA cargo workspace groups several packages.\n",
    "rust/errors.md": "---\ntags: [rust]\ntrust: secondary\ndate: 2024-03-10\n---\n# Errors\n\nThe cargo error type wraps its cause. Use anyhow in binaries.\n",
    "ops/deploy.md": "---\ntags: [ops, production]\ntrust: generated\ndate: 2024-02-10\n---\n# Deploy\n\nRun the installation script, then restart nginx.\n",
    "ops/backup.md": "---\ntags: [ops]\ndate: 2023-02-10\n---\n# Backup\n\nrestic copies every file to the café server at night.\n",
    "ops/deep/nested.md": "# Nested\n\nA nested page about the cargo of a ship.\n",
    "tools/run.py": "def install():\n    '''Installs the package with cargo.'''\n",
    "list.txt": "packing list: toothbrush, charger, cargo trousers\n",
    "한국어/문서.md": "---\nlang: ko\n---\n# 검색 문서\n\n이 문서를 kubernetes에서 검색한다. SQLite 데이터베이스는 파일 하나이다.\n",
    "한국어/회의.md": "# 회의\n\n배포 일정은 다음 주로 미룬다.\n",
}  # fmt: skip


def ingest(root: Path, files: Mapping[str, str], database: Path) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    with kebab.open(database) as knowledge_base:
        knowledge_base.ingest(root)
    return database


@contextmanager
def retriever_on(database: Path, version: str = "v1.0", snippet_chars: int = 220) -> Iterator[LexicalRetriever]:
    connection = Database(database).reader()
    try:
        index = SqliteLexicalIndex(connection, korean_analysis="bigrams")
        yield LexicalRetriever(index, SqliteChunkReader(connection), version, snippet_chars=snippet_chars)
    finally:
        connection.close()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lexical")
    return ingest(folder / "notes", CORPUS, folder / "kb.sqlite")


@pytest.fixture
def retriever(corpus: Path) -> Iterator[LexicalRetriever]:
    with retriever_on(corpus) as opened:
        yield opened


Retrieve = Callable[[Mapping[str, str]], LexicalRetriever]


@pytest.fixture
def retriever_of(tmp_path: Path) -> Iterator[Retrieve]:
    """A function that makes a lexical retriever over these files."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda files: stack.enter_context(
            retriever_on(ingest(tmp_path / "files", files, tmp_path / "own.sqlite"))
        )


def paths(hits: list[SearchHit]) -> list[str]:
    return [hit.doc_path for hit in hits]


def found(retriever: LexicalRetriever, text: str, **options: Any) -> list[str]:
    return paths(retriever.search(SearchQuery(text, **options)))


# --- the contract


def test_a_lexical_retriever_has_the_index_version_it_was_given(retriever: LexicalRetriever) -> None:
    as_port: Retriever = retriever
    assert as_port.index_version() == "v1.0"
    assert {hit.index_version for hit in as_port.search(SearchQuery("cargo"))} == {"v1.0"}


def test_a_search_query_has_k_10_by_default() -> None:
    query = SearchQuery("x")
    assert (query.text, query.mode, query.k, query.match, query.filters) == ("x", "lexical", 10, "all", SearchFilters())


def test_hits_come_ordered_with_a_normalised_bm25_as_their_score(retriever: LexicalRetriever) -> None:
    hits = retriever.search(SearchQuery("cargo"))
    scores = [hit.score for hit in hits]
    assert len(hits) >= 3
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert {hit.score_kind for hit in hits} == {"bm25"}


def test_the_score_is_the_normalised_bm25_of_fts5(corpus: Path) -> None:
    connection = Database(corpus).reader()
    raw = dict(
        connection.execute(
            "SELECT c.chunk_id, bm25(chunks_fts, 0, 0, 4, 1, 8, 1) FROM chunks_fts f JOIN chunks c ON c.id = f.rowid WHERE chunks_fts MATCH 'cargo'"
        )
    )
    connection.close()
    with retriever_on(corpus) as retriever:
        hits = retriever.search(SearchQuery("cargo"))
    assert len(hits) == len(raw)
    assert all(hit.score == pytest.approx(-raw[hit.chunk_id] / (1 + abs(raw[hit.chunk_id]))) for hit in hits)


@given(st.floats(min_value=-1e300, max_value=-1e-11), st.floats(min_value=-1e300, max_value=-1e-11))
def test_a_normalised_score_keeps_the_order_of_bm25_and_is_between_0_and_1(one: float, other: float) -> None:
    """Up to the last bit, which depends on rounding; hits are ordered by the values of FTS5."""
    assert 0 < normalised(one) <= 1
    assert normalised(min(one, other)) >= normalised(max(one, other)) * (1 - 4e-16)


def test_k_limits_the_number_of_hits(retriever: LexicalRetriever) -> None:
    assert len(retriever.search(SearchQuery("cargo", k=2))) == 2
    assert found(retriever, "cargo", k=2) == found(retriever, "cargo")[:2]


def test_a_lexical_hit_has_no_vector_rank_or_score(retriever: LexicalRetriever) -> None:
    for hit in retriever.search(SearchQuery("cargo")):
        detail = hit.retrieval
        assert detail.method == "lexical"
        assert detail.lexical_score == detail.fusion_score == hit.score
        assert detail.lexical_rank == hit.rank
        assert (detail.vector_score, detail.vector_rank, detail.rrf_score, detail.weights) == (None, None, None, None)


def test_a_hit_names_chunk_document_method_and_version(retriever: LexicalRetriever) -> None:
    hit = retriever.search(SearchQuery("workspace"))[0]
    assert hit.retrieval_method == "fts5-bm25"
    assert hit.text == hit.snippet
    assert (hit.doc_path, hit.title, hit.heading_path, hit.section_label) == (
        "rust/workspace.md",
        "Workspace",
        ("Workspace",),
        "Workspace",
    )
    assert (hit.doc_type, hit.lang, hit.tags, hit.trust_level, hit.source) == (
        "markdown",
        "en",
        ("build", "rust"),
        "primary",
        "notes",
    )
    assert len(hit.chunk_id) == 20
    assert len(hit.doc_id) == 16
    assert hit.embedding_model is None


def test_every_hit_cites_the_lines_that_hold_it(corpus: Path, retriever: LexicalRetriever) -> None:
    root = corpus.parent / "notes"
    hits = retriever.search(SearchQuery("cargo OR 검색 OR restic OR nginx", full_text=True))
    assert len(hits) >= 6
    for hit in hits:
        assert hit.citation.kind == ("code" if hit.doc_type == "code" else "line")
        assert hit.citation.lines
        assert hit.citation.path == hit.doc_path
        assert hit.citation.section == hit.section_label
        lines = LineTable((root / hit.doc_path).read_bytes().decode()).slice(*hit.citation.lines)
        assert lines.rstrip("\n") == hit.text
        assert hit.citation.content_hash == sha256(hit.text.encode()).hexdigest()


def test_with_full_text_the_text_of_a_hit_is_the_whole_chunk_and_the_snippet_a_part_of_it(
    retriever: LexicalRetriever,
) -> None:
    hit = retriever.search(SearchQuery("workspace", full_text=True))[0]
    assert hit.text == "# Workspace\n\nA cargo workspace groups several packages."


def test_snippets_are_at_most_as_long_as_the_retriever_allows(corpus: Path) -> None:
    for limit in (16, 40, 220):
        with retriever_on(corpus, snippet_chars=limit) as retriever:
            hits = retriever.search(SearchQuery("cargo OR 검색 OR restic"))
            assert hits
            assert all(len(hit.snippet) <= limit and len(hit.snippet.split()) <= limit // 4 for hit in hits)


def test_searching_changes_nothing_in_the_file(corpus: Path) -> None:
    before = corpus.read_bytes()
    with retriever_on(corpus) as retriever:
        retriever.search(SearchQuery("cargo", explain=True, match="auto"))
    assert corpus.read_bytes() == before


def test_a_lexical_search_opens_no_socket(retriever: LexicalRetriever, monkeypatch: pytest.MonkeyPatch) -> None:

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a lexical search opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    assert retriever.search(SearchQuery("cargo"))


# --- known answers


def test_a_keyword_finds_the_only_document_that_has_it_once_and_with_its_citation(retriever_of: Retrieve) -> None:
    retriever = retriever_of(
        {"code-and-table.md": (FIXTURES / "markdown" / "code-and-table.md").read_text(encoding="utf-8")}
    )
    (hit,) = retriever.search(SearchQuery("zephyrine"))
    assert hit.citation.uri == "code-and-table.md#L6-L19"
    assert 0 < hit.score <= 1


def test_known_queries_find_the_expected_chunk_among_the_first_hits(retriever: LexicalRetriever) -> None:
    assert found(retriever, "anyhow binaries", k=1) == ["rust/errors.md"]
    assert found(retriever, "restic", k=1) == ["ops/backup.md"]
    assert found(retriever, "배포 일정", k=1) == ["한국어/회의.md"]


def test_english_inflections_and_diacritics_do_not_matter(retriever: LexicalRetriever) -> None:
    assert (
        set(found(retriever, "install")) == set(found(retriever, "installation")) == {"ops/deploy.md", "tools/run.py"}
    )
    assert found(retriever, "cafe") == found(retriever, "CAFÉ") == ["ops/backup.md"]


def test_a_title_counts_more_than_a_heading_and_a_heading_more_than_text(retriever_of: Retrieve) -> None:
    filler = "unrelated words stand here in a row. " * 5
    files = {
        "text.md": f"---\ntitle: One\n---\n# A\n\nzebra {filler}\n",
        "heading.md": f"---\ntitle: Two\n---\n# zebra\n\n{filler}\n",
        "title.md": f"---\ntitle: zebra\n---\n# B\n\n{filler}\n",
    }
    files |= {f"other{number}.md": f"# Other\n\n{filler}\n" for number in range(8)}
    assert found(retriever_of(files), "zebra") == ["title.md", "heading.md", "text.md"]


def test_tags_and_aliases_of_the_front_matter_are_searchable(retriever_of: Retrieve) -> None:
    retriever = retriever_of(
        {"a.md": "---\ntags: [xylophone]\naliases: [Glockenspiel notes]\n---\ntext\n", "b.md": "text\n"}
    )
    assert found(retriever, "xylophone") == found(retriever, "glockenspiel") == ["a.md"]


def test_hits_of_a_fixed_corpus_are_those_of_the_golden_file(tmp_path: Path) -> None:
    queries = ["cargo", "install OR nginx", "검색", '"cargo workspace"', "nothing like this"]
    with retriever_on(ingest(tmp_path / "notes", CORPUS, tmp_path / "kb.sqlite")) as retriever:
        run = {
            query: [
                plain(search_hit_v1(hit._replace(chunk=hit.chunk._replace(indexed_at="…", date="…"))))
                for hit in retriever.search(SearchQuery(query))
            ]
            for query in queries
        }
    for hits in run.values():
        for hit in hits:
            hit["score"] = hit["retrieval"]["lexical_score"] = hit["retrieval"]["fusion_score"] = round(hit["score"], 9)
    assert run == json.loads(GOLDEN.read_text(encoding="utf-8"))


# --- determinism


def test_the_same_query_gives_the_same_hits_and_scores(corpus: Path) -> None:
    runs = []
    for _ in range(2):
        with retriever_on(corpus) as retriever:
            runs.append([plain(search_hit_v1(hit)) for hit in retriever.search(SearchQuery("cargo", match="auto"))])
    assert json.dumps(runs[0]) == json.dumps(runs[1])


def test_hits_with_equal_scores_are_ordered_by_chunk_id(retriever_of: Retrieve) -> None:
    retriever = retriever_of(
        {f"{name}/same.md": "---\ntitle: Same\n---\nquagga in each of them\n" for name in "abcdefghij"}
    )
    hits = retriever.search(SearchQuery("quagga"))
    assert len({hit.score for hit in hits}) == 1
    assert [hit.chunk_id for hit in hits] == sorted(hit.chunk_id for hit in hits)


def test_of_more_equal_scores_than_fit_the_page_has_the_lowest_chunk_ids(retriever_of: Retrieve) -> None:
    """More passages have equal scores than are ranked at first, and the page still has the lowest chunk ids of all."""
    retriever = retriever_of(
        {f"{number}/same.md": "---\ntitle: Same\n---\nquagga in each of them\n" for number in range(150)}
    )
    everything = [hit.chunk_id for hit in retriever.search(SearchQuery("quagga", k=200))]
    assert everything == sorted(everything)
    assert [hit.chunk_id for hit in retriever.search(SearchQuery("quagga", k=3))] == everything[:3]
    assert [hit.chunk_id for hit in retriever.search(SearchQuery("quagga", k=3, offset=60))] == everything[60:63]


# --- all, any, auto


def test_match_all_requires_every_word_and_match_any_one_of_them(retriever: LexicalRetriever) -> None:
    assert found(retriever, "cargo workspace") == ["rust/workspace.md"]
    assert set(found(retriever, "cargo nginx", match="any")) > {"rust/workspace.md", "ops/deploy.md"}
    assert found(retriever, "cargo nginx") == []


def test_match_auto_lists_only_passages_with_all_words_if_there_are_enough(retriever: LexicalRetriever) -> None:
    hits = retriever.search(SearchQuery("cargo workspace", match="auto", k=1))
    assert (hits.match, paths(hits)) == ("all", ["rust/workspace.md"])


def test_match_auto_lists_passages_with_any_word_if_few_have_all(retriever: LexicalRetriever) -> None:
    hits = retriever.search(SearchQuery("cargo workspace", match="auto", k=5))
    assert hits.match == "any"
    assert paths(hits) == found(retriever, "cargo workspace", match="any", k=5)
    assert hits[0].doc_path == "rust/workspace.md"


def test_match_auto_lists_passages_with_all_words_before_those_with_some(retriever_of: Retrieve) -> None:
    files = {f"{number:02}.md": "alpha alpha alpha\n" for number in range(120)}
    files |= {f"both {number:03}.md": "beta " + "filler " * (80 + number) + "alpha\n" for number in range(8)}
    hits = retriever_of(files).search(SearchQuery("alpha beta", match="auto", k=12))
    assert [hit.exactness for hit in hits] == [Exactness.ALL] * 8 + [Exactness.SOME] * 4


@pytest.mark.parametrize(
    ("query", "others"), [("C++", "C here"), ("--force", "force here"), ("_private", "private me")]
)
def test_punctuation_of_a_name_counts_although_the_index_has_none(
    retriever_of: Retrieve, query: str, others: str
) -> None:
    short = {f"{number}.md": f"{others} {number}\n" for number in range(150)}
    long = "Many words about something else stand in this note.\n" * 20 + f"And here is {query} for once.\n"
    assert found(retriever_of({**short, "long.md": long}), query, match="auto")[0] == "long.md"


def test_match_auto_gives_the_same_order_for_every_k_and_every_page(retriever_of: Retrieve) -> None:
    texts = ["kubectl drain", "drain a node by kubectl", "kubectl " + "filler " * 40 + "drain", "kubectl", "drain"]
    files = {f"{number:03}.md": f"{texts[number % 5]} {'word ' * (number % 7)}{number}\n" for number in range(400)}
    retriever = retriever_of(files)
    query = SearchQuery("kubectl drain", match="auto", k=300)
    everything = retriever.search(query)
    assert [hit.exactness for hit in everything[:80]] == [Exactness.VERBATIM] * 80, "also those beyond the best 100"
    for k, offset in ((1, 0), (10, 0), (50, 30), (10, 150), (100, 190)):
        assert list(retriever.search(query._replace(k=k, offset=offset))) == everything[offset : offset + k]


@pytest.mark.parametrize("query", ["cards view", "Cards view", "cards-view", "(cards) view!"])
def test_the_document_with_this_title_comes_first_once(retriever_of: Retrieve, query: str) -> None:
    body = "\n\n".join(f"## Part {number}\n\n{'Something else. ' * 80}" for number in range(3))
    files = {f"{number}.md": "See [[cards view]] and cards view, a cards view.\n" for number in range(20)}
    hits = retriever_of({**files, "Cards view.md": body}).search(SearchQuery(query, match="auto", k=22))
    assert [hit.doc_path == "Cards view.md" for hit in hits[:3]] == [True, False, False]
    assert hits[0].exactness == Exactness.NAMED


def test_match_auto_counts_the_hits_before_the_offset(retriever: LexicalRetriever) -> None:
    assert retriever.search(SearchQuery("cargo workspace", match="auto", k=1, offset=1)).match == "any"


def test_a_query_of_one_word_is_answered_with_match_all_however_few_hits_it_has(retriever: LexicalRetriever) -> None:
    assert retriever.search(SearchQuery("restic", match="auto", k=10)).match == "all"


@pytest.mark.parametrize(
    "question",
    [
        "how do I restart nginx after a deployment of everything",
        "What is the zzz of restic?",
        "이 배포는 어떻게 하나요 zzz",
    ],
)
def test_a_sentence_finds_hits_if_one_of_its_content_words_is_indexed(
    retriever: LexicalRetriever, question: str
) -> None:
    assert found(retriever, question, match="auto")


def test_the_response_says_whether_all_or_any_words_were_required(retriever: LexicalRetriever) -> None:
    assert retriever.search(SearchQuery("cargo")).match == "all"
    assert retriever.search(SearchQuery("cargo", match="any")).match == "any"
    assert retriever.search(SearchQuery("'cargo'", match="auto")).match == "raw"


# --- stop words


def test_match_auto_drops_stop_words_which_match_all_phrases_and_raw_queries_keep(retriever: LexicalRetriever) -> None:
    assert found(retriever, "what is the anyhow", match="auto", k=1) == ["rust/errors.md"]
    assert retriever.search(SearchQuery("what is the anyhow", match="auto", k=1)).match == "all"
    assert found(retriever, "what is the anyhow", match="all") == []
    assert found(retriever, '"the is anyhow"', match="auto") == []
    assert found(retriever, "'what is anyhow'", match="auto") == []


def test_a_query_that_consists_of_stop_words_searches_for_them(retriever: LexicalRetriever) -> None:
    assert "ops/deploy.md" in found(retriever, "the", match="auto")


# --- prefixes


def test_a_prefix_with_a_star_finds_words_although_the_index_is_stemmed(retriever: LexicalRetriever) -> None:
    assert set(found(retriever, "installat*")) == {"ops/deploy.md", "tools/run.py"}
    assert found(retriever, "tooth*") == ["list.txt"]
    assert found(retriever, "zzz*") == []


def test_an_unknown_last_word_is_searched_as_a_prefix(retriever: LexicalRetriever) -> None:
    assert found(retriever, "cargo workspa") == ["rust/workspace.md"]
    assert found(retriever, "workspa cargo") == []


def test_a_known_last_word_is_searched_as_a_prefix_only_with_type_ahead(retriever_of: Retrieve) -> None:
    retriever = retriever_of({"a.md": "cat\n", "b.md": "catalogue\n"})
    assert found(retriever, "cat") == ["a.md"]
    assert set(found(retriever, "cat", type_ahead=True)) == {"a.md", "b.md"}


# --- syntax


def test_operators_phrases_and_groups_keep_their_meaning(retriever: LexicalRetriever) -> None:
    assert set(found(retriever, "restic OR nginx")) == {"ops/backup.md", "ops/deploy.md"}
    assert "rust/workspace.md" not in found(retriever, "cargo NOT workspace")
    assert found(retriever, '"cargo workspace"') == ["rust/workspace.md"]
    assert found(retriever, '"workspace cargo"') == []
    assert found(retriever, "cargo AND anyhow") == ["rust/errors.md"]


def test_a_raw_fts5_query_is_passed_on_and_its_error_is_a_query_error(retriever: LexicalRetriever) -> None:
    assert found(retriever, "'heading_path : nested'") == ["ops/deep/nested.md"]
    assert found(retriever, "'NEAR(cargo groups, 3)'") == ["rust/workspace.md"]
    for wrong in ("'cargo AND'", "'\"'", "'nosuch : cargo'", "'('", "'*'", "'NEAR('"):
        with pytest.raises(QueryError) as caught:
            retriever.search(SearchQuery(wrong))
        assert caught.value.code == "invalid_query"
        assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["user-agent", "c++", "std::vector", "install AND", "NOT git", "(x", "*", '"', "a:b", "^cargo", "{}", "-cargo", "cargo)", "NEAR(a b)", "a'b", "AND OR NOT",
     '"" ""', "\0", "cargo\0workspace", "%", "_", "\\", "--", ";", "🙂", "\u200d", "e\u0301", "text : cargo"],
)  # fmt: skip
def test_text_that_is_invalid_fts5_is_an_ordinary_query(retriever: LexicalRetriever, text: str) -> None:
    for match in ("all", "any", "auto"):
        retriever.search(SearchQuery(text, match=match, explain=True))


ANYTHING = st.one_of(
    st.text(st.characters(), max_size=60),
    st.lists(
        st.sampled_from(
            [
                "AND",
                "OR",
                "NOT",
                "NEAR",
                '"',
                "*",
                "cargo",
                "cargo*",
                "한글",
                "문서를",
                "(",
                ")",
                "^",
                ":",
                "'",
                "\0",
                "text:",
                "-",
                "+",
                "\ud800",
                "the",
            ]
        )
        | st.text(st.characters(), max_size=5),
        max_size=30,
    ).map(" ".join),
)


@given(ANYTHING, st.sampled_from(["all", "any", "auto"]), st.booleans())
@example("'\ud800'", "all", False)
@example("\udcff", "auto", True)
@example('"\ud800 x"', "any", False)
def test_a_search_for_any_text_raises_nothing_and_ends(corpus: Path, text: str, match: Any, ahead: bool) -> None:
    with retriever_on(corpus) as retriever:
        started = time.process_time()
        try:
            hits = retriever.search(SearchQuery(text, match=match, type_ahead=ahead, explain=True))
        except QueryError:
            assert text.replace("\0", " ").strip().startswith("'"), "only raw FTS5 may be wrong"
        else:
            assert all(hit.snippet and 0 < hit.score <= 1 for hit in hits)
        assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(["cargo"] * 200),
        " AND ".join(["cargo"] * 200),
        " NOT ".join(["cargo", *(f"w{number}" for number in range(200))]),
        " ".join(f"word{number}" for number in range(20_000)),
        "가나다라마바사아자차카타파하" * 7_000,
        " ".join(["문서를 검색한다"] * 10_000),
        "a-b-c-d-e-f-g-h-" * 6_000,
        "x" * 100_000,
        '"' + "cargo workspace " * 6_000 + '"',
        "(" * 100_000,
        "a* " * 30_000,
        "cargo OR " * 10_000,
    ],
    ids=[
        "or",
        "and",
        "not",
        "words",
        "one-korean-word",
        "korean",
        "hyphens",
        "one-word",
        "phrase",
        "parentheses",
        "prefixes",
        "or-without-end",
    ],
)
@pytest.mark.parametrize("match", ["all", "any"])
def test_a_query_of_any_length_or_depth_is_answered_soon(retriever: LexicalRetriever, text: str, match: Any) -> None:
    started = time.process_time()
    retriever.search(SearchQuery(text, match=match))
    assert time.process_time() - started < 2


@pytest.mark.parametrize("text", ["", "   ", "\n", "()", "*", '""', "+ - /"])
def test_a_query_without_words_gives_no_hits(retriever: LexicalRetriever, text: str) -> None:
    assert retriever.search(SearchQuery(text, match="auto")) == []


def test_an_empty_corpus_or_no_match_gives_an_empty_list_and_no_error(
    tmp_path: Path, retriever: LexicalRetriever
) -> None:
    assert retriever.search(SearchQuery("zzzzzz")) == []
    Database(tmp_path / "empty.sqlite").writer().close()
    with retriever_on(tmp_path / "empty.sqlite") as empty:
        for match in ("all", "any", "auto"):
            assert empty.search(SearchQuery("cargo", match=match, explain=True)) == []


# --- Korean (no morphology in the default index)


@pytest.mark.parametrize(
    "text",
    [
        "문서",
        "문서를",
        "문서는",
        "검색",
        "kubernetes",
        "kubernetes 검색",
        "kubernetes에서 문서를",
        "sqlite 데이터베이스",
        "데이터베이스",
        "베이스",
        "이 문서를 어떻게 검색하나요",
    ],
)
def test_korean_and_mixed_queries_find_the_korean_note(retriever: LexicalRetriever, text: str) -> None:
    assert found(retriever, text, match="auto", k=1) == ["한국어/문서.md"]


def test_decomposed_and_composed_korean_give_the_same_hits(retriever: LexicalRetriever) -> None:
    from unicodedata import normalize

    assert found(retriever, normalize("NFD", "문서")) == found(retriever, "문서") == ["한국어/문서.md"]


def test_a_korean_phrase_requires_all_its_parts(retriever: LexicalRetriever) -> None:
    assert found(retriever, '"문서를 kubernetes에서"') == ["한국어/문서.md"]
    assert found(retriever, '"문서를 배포"') == []


def test_korean_matches_are_highlighted_in_the_snippet(retriever: LexicalRetriever) -> None:
    hit = retriever.search(SearchQuery("데이터베이스"))[0]
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["데이터베이스"]


# --- filters


def with_filter(
    retriever: LexicalRetriever, text: str = "cargo OR nginx OR restic OR 검색 OR 배포", **values: Any
) -> set[str]:
    return set(found(retriever, text, k=50, filters=SearchFilters(**values)))


EVERYTHING = set(CORPUS)


def test_tags_any_requires_one_of_the_tags(retriever: LexicalRetriever) -> None:
    assert with_filter(retriever, tags_any=("rust",)) == {"rust/workspace.md", "rust/errors.md"}
    assert with_filter(retriever, tags_any=("build", "production")) == {"rust/workspace.md", "ops/deploy.md"}
    assert with_filter(retriever, tags_any=("RUST",)) == {"rust/workspace.md", "rust/errors.md"}
    assert with_filter(retriever, tags_any=("none",)) == set()


def test_tags_all_requires_all_of_the_tags(retriever: LexicalRetriever) -> None:
    assert with_filter(retriever, tags_all=("ops", "production")) == {"ops/deploy.md"}
    assert with_filter(retriever, tags_all=("ops",)) == {"ops/deploy.md", "ops/backup.md"}
    assert with_filter(retriever, tags_all=("ops", "rust")) == set()


def test_the_filter_lang_matches_only_the_same_language(retriever: LexicalRetriever) -> None:
    assert with_filter(retriever, lang="ko") == {"한국어/문서.md", "한국어/회의.md"}


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("ops/*.md", {"ops/deploy.md", "ops/backup.md"}),
        ("ops/**/*.md", {"ops/deploy.md", "ops/backup.md", "ops/deep/nested.md"}),
        ("ops/**", {"ops/deploy.md", "ops/backup.md", "ops/deep/nested.md"}),
        ("*", {"list.txt"}),
        ("**", EVERYTHING),
        ("**/*.py", {"tools/run.py"}),
        ("rust/[ew]*.md", {"rust/errors.md", "rust/workspace.md"}),
        ("rust/?????????.md", {"rust/workspace.md"}),
        ("한국어/*", {"한국어/문서.md", "한국어/회의.md"}),
        ("OPS/*", set()),
        ("[", set()),
    ],
)
def test_a_star_in_a_path_glob_stops_at_a_slash(retriever: LexicalRetriever, glob: str, expected: set[str]) -> None:
    assert with_filter(retriever, path_glob=glob) == expected


def test_trust_min_orders_the_levels_generated_secondary_primary(retriever: LexicalRetriever) -> None:
    assert with_filter(retriever, trust_min="generated") == EVERYTHING
    assert with_filter(retriever, trust_min="secondary") == EVERYTHING - {"ops/deploy.md"}
    assert with_filter(retriever, trust_min="primary") == EVERYTHING - {"ops/deploy.md", "rust/errors.md"}


def test_type_format_source_document_and_date_restrict_too(retriever: LexicalRetriever) -> None:
    assert with_filter(retriever, types=("code",)) == {"tools/run.py"}
    assert with_filter(retriever, types=("code", "note")) == {"tools/run.py", "list.txt"}
    assert with_filter(retriever, formats=("txt",)) == {"list.txt"}
    assert with_filter(retriever, sources=("notes",)) == EVERYTHING
    assert with_filter(retriever, sources=("other",)) == set()
    doc_id = retriever.search(SearchQuery("restic"))[0].doc_id
    assert with_filter(retriever, docs=(doc_id,)) == {"ops/backup.md"}
    assert with_filter(retriever, before="2024-01-01") == {"ops/backup.md"}
    assert with_filter(retriever, after="2024-02-10", before="2024-03-01") == {"ops/deploy.md"}


def test_excluded_paths_tags_and_documents_are_left_out(retriever: LexicalRetriever) -> None:
    assert with_filter(retriever, exclude_tags=("ops",)) == EVERYTHING - {"ops/deploy.md", "ops/backup.md"}
    assert with_filter(retriever, exclude_paths=("ops/**", "한국어/*")) == {
        "rust/workspace.md",
        "rust/errors.md",
        "tools/run.py",
        "list.txt",
    }


def test_several_filters_all_apply_and_before_the_limit(retriever: LexicalRetriever) -> None:
    """A tag that is rare among the best matches still fills its list, because SQL applies filters together with MATCH."""
    assert found(
        retriever, "cargo OR nginx OR restic", k=1, filters=SearchFilters(tags_all=("ops",), path_glob="ops/d*")
    ) == ["ops/deploy.md"]


def test_a_filter_value_with_sql_in_it_is_only_a_value(retriever: LexicalRetriever) -> None:
    assert with_filter(retriever, tags_any=("'; DROP TABLE chunks; --",), lang='" OR 1=1') == set()
    assert with_filter(retriever) == EVERYTHING


# --- paging, order by date, per document


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    files = {
        f"{number:02}.md": f"---\ndate: 2024-01-{number + 1:02}\n---\n"
        + "".join(
            f"# Part {part}\n\n" + f"okapi number {number} {part}. " + "some more words in between. " * 30 + "\n\n"
            for part in range(1 + number % 3)
        )
        for number in range(25)
    }
    return ingest(folder / "notes", files, folder / "kb.sqlite")


@given(
    st.fixed_dictionaries(
        {
            "sort": st.sampled_from(["relevance", "date"]),
            "per_doc": st.sampled_from([None, 1, 2]),
            "duplicates": st.sampled_from(["show", "fold"]),
        }
    ),
    st.integers(1, 60),
    st.integers(0, 60),
)
def test_a_page_is_the_same_part_of_a_longer_list(many: Path, options: dict[str, Any], k: int, offset: int) -> None:
    with retriever_on(many) as retriever:
        whole = retriever.search(SearchQuery("okapi", k=1000, **options))
        page = retriever.search(SearchQuery("okapi", k=k, offset=offset, **options))
    assert list(page) == whole[offset : offset + k]
    assert page.more == (offset + k < len(whole))
    assert [hit.rank for hit in whole] == list(range(1, len(whole) + 1))


def test_per_doc_limits_the_hits_of_one_document_and_still_fills_the_list(many: Path) -> None:
    with retriever_on(many) as retriever:
        for most in (1, 2):
            hits = retriever.search(SearchQuery("okapi", k=20, per_doc=most))
            assert len(hits) == 20
            assert max(paths(hits).count(path) for path in paths(hits)) <= most
        assert len(retriever.search(SearchQuery("okapi", k=1000, per_doc=1))) == 25


def test_sorting_by_date_puts_the_newest_first_and_keeps_every_match(many: Path) -> None:
    with retriever_on(many) as retriever:
        by_date = retriever.search(SearchQuery("okapi", k=1000, sort="date"))
        assert paths(by_date) == sorted(paths(by_date), reverse=True)
        assert {hit.chunk_id for hit in by_date} == {
            hit.chunk_id for hit in retriever.search(SearchQuery("okapi", k=1000))
        }


# --- explanations


def test_an_explanation_has_the_expression_the_matches_and_the_number_removed_by_filters(
    retriever: LexicalRetriever,
) -> None:
    hits = retriever.search(
        SearchQuery("how is the cargo packed", match="auto", explain=True, filters=SearchFilters(tags_any=("rust",)))
    )
    assert hits.explanation is not None
    lexical = hits.explanation["lexical"]
    assert lexical["match"] == "any"
    assert lexical["stop_words_dropped"] == ["how", "is", "the"]
    assert lexical["matches"] == len(hits) == 2
    assert lexical["removed_by_filters"] >= 3
    assert hits[0].explanation is not None
    assert hits[0].explanation["matched"]["text"] == ["cargo"]
    assert hits[0].explanation["lexical"] == {"rank": 1, "score": hits[0].score}


def test_an_explanation_names_only_the_stop_words_that_were_dropped(retriever: LexicalRetriever) -> None:
    alone = retriever.search(SearchQuery("the", match="auto", explain=True))
    assert alone.explanation is not None
    assert alone.explanation["lexical"]["stop_words_dropped"] == []
    asked = retriever.search(SearchQuery("cargo, what is it?", match="auto", explain=True))
    assert asked.explanation is not None
    assert asked.explanation["lexical"]["stop_words_dropped"] == ["what", "is", "it?"]


def test_hits_have_no_explanation_unless_it_is_requested(retriever: LexicalRetriever) -> None:
    hits = retriever.search(SearchQuery("cargo"))
    assert hits.explanation is None
    assert {hit.explanation for hit in hits} == {None}
