"""What every store must do in lexical search: which chunks match, in which order and pages, and which words are near a
misspelt one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kebab.core.ports import ColumnWeights
from kebab.core.query_tree import parse
from kebab.core.search import SearchFilters
from kebab.core.store_ports import LexicalIndex

if TYPE_CHECKING:
    from tests.contracts.stores import Corpus

MANY = 40


@pytest.fixture(scope="module")
def words(shared_corpus: Corpus) -> Corpus:
    document = shared_corpus.document
    shared_corpus.write_all(
        document("git.md", "Install git. The installation of git sets the user-agent.", title="Git"),
        document("agent.md", "the agent of a user", title="Agents", headings=("Users",)),
        document("cpp.md", "std::vector in c++ is not a list", title="C++"),
        document("ko.md", "문서를 검색하는 방법. kubernetes는 좋다. kubernetes", title="한국어 문서"),
        document("water.md", "물에 찻잎을 넣는다"),
        document("tokyo.md", "東京タワーの書", title="Tower"),
        document("cafe.md", "Café naïve running tests", title="Coffee"),
        document(
            "parse.py", "def parseHTTPHeader(line): ...", title="parse", kind="code", doc_type="code", format="py"
        ),
        *(
            document(f"many/{number:02}.md", f"seed number{number}", title="many", date=f"2026-01-{number % 28 + 1:02}")
            for number in range(MANY)
        ),
    )
    return shared_corpus


def paths(corpus: Corpus, query: str, **options: Any) -> set[str]:
    return set(corpus.search(query, **options))


def test_match_all_requires_every_word_and_match_any_one_of_them(words: Corpus) -> None:
    assert words.search("install git") == ["git.md"]
    assert words.search("install vector") == []
    assert paths(words, "install vector", match="any") == {"cpp.md", "git.md"}
    assert paths(words, "user agent") == {"git.md", "agent.md"}
    assert words.search("user-agent") == ["git.md"], "side by side"
    assert words.search("std::vector") == ["cpp.md"]
    assert words.search("title:git") == [], "no column is meant"
    assert words.search("nowhere") == words.search("nowhere", match="any") == []


PHRASES_AND_OPERATORS = [
    ('"installation of git"', {"git.md"}),
    ('"git of installation"', set()),
    ('"user agent"', {"git.md"}),
    ('"agent of a user"', {"agent.md"}),
    ("agent NOT git", {"agent.md"}),
    ('user NOT "user agent"', {"agent.md"}),
    ("git NOT installation", set()),
    ("installation OR vector", {"git.md", "cpp.md"}),
    ("install AND vector", set()),
    ("c++", {"cpp.md"}),
]


def test_phrases_and_operators_keep_their_meaning_with_match_all_and_any(words: Corpus) -> None:
    """Operators and phrases mean the same with match=all and match=any."""
    for match in ["all", "any"]:
        for query, expected in PHRASES_AND_OPERATORS:
            assert paths(words, query, match=match) == expected, query


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("installat*", {"git.md"}),
        ("inst*", {"git.md"}),
        ("git installat", {"git.md"}),
        ("kuber*", {"ko.md"}),
        ("zzz*", set()),
    ],
)
def test_a_star_or_an_unknown_last_word_finds_words_with_that_prefix(
    words: Corpus, query: str, expected: set[str]
) -> None:
    assert paths(words, query) == expected


def test_a_known_last_word_is_searched_as_a_prefix_only_with_type_ahead(words: Corpus) -> None:
    assert words.search("vec") == ["cpp.md"]
    assert words.search("run") == ["cafe.md"]
    assert words.read(words.matches("lis", type_ahead=True))[0].doc_path == "cpp.md"


@pytest.mark.parametrize("query", ["café", "CAFE", "cafe\u0301", "naive", "run", "runs", "test"])
def test_stems_case_and_accents_do_not_matter(words: Corpus, query: str) -> None:
    assert words.search(query) == ["cafe.md"]


@pytest.mark.parametrize(
    "query",
    [
        "문서",
        "검색",
        "문서를",
        "검색 방법",
        "한국어",
        "kubernetes",
        "kubernetes는",
        "kubernetes 문서",
        '"문서를 검색"',
        "검색하*",
    ],
)
def test_korean_words_are_found_inside_longer_ones_and_beside_english(words: Corpus, query: str) -> None:
    assert words.search(query) == ["ko.md"]


def test_phrases_single_syllables_and_other_scripts_are_found(words: Corpus) -> None:
    assert words.search('"검색 문서"') == words.search("문서 NOT 검색") == []
    assert words.search("물") == words.search("찻잎") == ["water.md"]
    assert words.search("물 비등점", match="any", drop_stop_words=True) == ["water.md"]
    for query in ("東京", "タワー", "東京タワー", "書"):
        assert words.search(query) == ["tokyo.md"], query
    assert paths(words, "git 문서", match="any") == {"git.md", "ko.md"}


def test_words_inside_names_of_code_are_found(words: Corpus) -> None:
    assert words.search("parse http header") == ["parse.py"]


def test_stop_words_are_dropped_unless_the_query_has_no_other_words(words: Corpus) -> None:
    found = words.matches("how to install the git", drop_stop_words=True)
    assert [chunk.doc_path for chunk in words.read(found)] == ["git.md"]
    assert found.dropped == ("how", "to", "the")
    assert words.matches("of the", drop_stop_words=True).dropped == ()


STRANGE_QUERIES = ['"', '""', "^", "*", ":", "(", ")", "(x", "a:b", "^git", "git^2", "install AND", "AND OR NOT", "NEAR(a b)", "{title}: x", "-git", "+git",
     '"unclosed', 'a"b"c', "\\", "%", "\0", "'", "''", ";DROP TABLE chunks", "[x]", "@x", "#tag", "🙂", "\u0301", "ﬁ", "İ", "a\udc80b", "", "   "]  # fmt: skip


def test_any_text_can_be_searched_for(words: Corpus) -> None:
    for query in STRANGE_QUERIES:
        for match in ("all", "any"):
            words.matches(query, match=match)


def test_a_query_as_long_as_a_page_is_answered(words: Corpus) -> None:
    page = " ".join(f"w{number} 문서{number} user-agent{number}" for number in range(3000))
    found = words.matches(f"installation {page}", match="any")
    assert found.shortened
    assert "git.md" in {chunk.doc_path for chunk in words.read(found)}
    for query in (" AND ".join(f"w{number}" for number in range(200)), "x" * 100_000, "문" * 10_000):
        assert words.search(query) == []


# --- order


def test_a_title_counts_more_than_a_heading_and_a_heading_more_than_text(corpus: Corpus) -> None:
    corpus.write_all(
        corpus.document("text.md", "the zebra of the house", title="one", headings=("two",)),
        corpus.document("heading.md", "the lion of the house", title="one", headings=("zebra",)),
        corpus.document("title.md", "the lion of the house", title="zebra", headings=("two",)),
        *(
            corpus.document(f"{number}.md", "the lion of the house", title="one", headings=("two",))
            for number in range(8)
        ),
    )
    assert corpus.search("zebra") == ["title.md", "heading.md", "text.md"]
    found = corpus.matches("zebra").matches
    assert sorted(match.bm25 for match in found) == [match.bm25 for match in found]
    assert all(match.bm25 < 0 for match in found)


def test_passages_rank_higher_if_words_are_frequent_in_them_and_rare_elsewhere(corpus: Corpus) -> None:
    corpus.write_all(
        corpus.document("rare.md", "common zebra words of some length", title="t"),
        corpus.document("often.md", "common common words of some length", title="t"),
        corpus.document("long.md", "common " + "filler words of another kind " * 20, title="t"),
        *(corpus.document(f"{number}.md", "other words of some length", title="t") for number in range(20)),
    )
    assert corpus.search("common") == ["often.md", "rare.md", "long.md"]
    assert corpus.search("common zebra", match="any")[0] == "rare.md"


def test_the_rarity_of_a_word_is_computed_from_the_current_documents(corpus: Corpus) -> None:
    """Deleted, edited and rewritten documents do not count, however often they were written."""
    documents = [
        corpus.document(f"{number}.md", f"alpha {'beta' if number < 3 else 'gamma'} text", title="t")
        for number in range(12)
    ]
    for _ in range(2):
        corpus.write_all(*documents)
    plain = [(match.bm25, match.chunk_id) for match in corpus.matches("beta gamma", match="any").matches]
    corpus.write_all(*(corpus.document(f"extra{number}.md", "beta beta text", title="t") for number in range(20)))
    assert [match.bm25 for match in corpus.matches("beta gamma", match="any").matches] != [score for score, _ in plain]
    corpus.write("extra0.md", "no word of these", title="t")
    corpus.remove(*(f"extra{number}.md" for number in range(20)))
    again = [(match.bm25, match.chunk_id) for match in corpus.matches("beta gamma", match="any").matches]
    assert [chunk for _, chunk in again] == [chunk for _, chunk in plain]
    assert [score for score, _ in again] == pytest.approx([score for score, _ in plain], rel=0.05)


def test_equal_scores_are_ordered_by_chunk_id_on_all_pages(words: Corpus) -> None:
    every = words.matches("seed").matches
    ids = [match.chunk_id for match in every]
    assert len(ids) == MANY
    assert ids == sorted(ids)
    for size in (1, 7, MANY):
        pages = [words.matches("seed", limit=size, offset=offset) for offset in range(0, MANY, size)]
        assert [match.chunk_id for page in pages for match in page.matches] == ids
        assert [page.more for page in pages] == [True] * (len(pages) - 1) + [False]
    assert words.matches("seed", limit=5, offset=MANY).matches == ()


@pytest.mark.parametrize("size", [6, MANY])
def test_sorting_by_date_puts_the_newest_first_and_keeps_every_match(words: Corpus, size: int) -> None:
    pages = [words.matches("seed", sort="date", limit=size, offset=offset) for offset in range(0, MANY, size)]
    found = [(chunk.date, chunk.chunk_id) for page in pages for chunk in words.read(page)]
    assert len(found) == MANY
    assert [date for date, _ in found] == sorted((date for date, _ in found), reverse=True)
    assert len(set(found)) == MANY


def test_count_returns_the_number_of_all_matches(words: Corpus) -> None:
    for query, match in (
        ("seed", "all"),
        ("install vector", "any"),
        ("agent NOT git", "all"),
        ('"user agent"', "all"),
        ("문서", "all"),
        ("", "all"),
    ):
        assert words.count(query, match=match) == len(words.matches(query, match=match).matches), query
    assert words.count("seed", path_glob="many/0*") == 10


def test_a_match_names_its_chunk_and_document(words: Corpus) -> None:
    found = words.matches("installation")
    (chunk,) = words.read(found)
    assert [(match.chunk_id, match.doc_type) for match in found.matches] == [(chunk.chunk_id, "markdown")]
    assert (chunk.doc_path, chunk.title, chunk.source, chunk.lang, chunk.doc_type) == (
        "git.md",
        "Git",
        "notes",
        "en",
        "markdown",
    )
    assert chunk.text == "Install git. The installation of git sets the user-agent."
    assert (chunk.chunker_version, chunk.trust_level, chunk.date, chunk.tags, chunk.notes) == (
        "test-1",
        "primary",
        "2026-01-01",
        (),
        (),
    )


# --- beside search


@pytest.fixture
def index(words: Corpus) -> Any:
    with words.reading() as reading:
        yield reading.lexical_index(ColumnWeights())


def test_the_terms_of_a_query_are_returned_without_a_search(index: LexicalIndex, words: Corpus) -> None:
    terms = index.terms(parse("Installation 문서를 NOT list"), drop_stop_words=False)
    assert (terms.phrases, terms.cjk) == (frozenset({("instal",)}), ("문서",))
    assert words.matches("Installation", match="any").terms.phrases == frozenset({("instal",)})
    assert index.tokenizer.stems("Running tests") == ["run", "test"]
    assert index.size() == 8 + MANY


@pytest.mark.parametrize(
    ("typed", "edits", "meant"),
    [("kubernets", 1, "kubernetes"), ("kuebrnetes", 1, "kubernetes"), ("instalaltion", 1, "installation"), ("vectro", 1, "vector"),
     ("kubrnetse", 2, "kubernetes"), ("zzzzzz", 2, None)],
)  # fmt: skip
def test_near_words_of_a_misspelt_word_contain_the_correct_one(
    index: LexicalIndex, typed: str, edits: int, meant: str | None
) -> None:
    near = index.near_words(typed, edits)
    assert [(word.word, word.edits) for word in near] == ([(meant, edits)] if meant else [])


def test_near_words_exclude_the_word_itself_and_are_sorted_by_distance(corpus: Corpus) -> None:
    corpus.write("a.md", "deployment deployments deploymant renew renewal okapi")
    with corpus.reading() as reading:
        index = reading.lexical_index(ColumnWeights())
        assert [(word.word, word.edits) for word in index.near_words("deploymnet", 2)] == [
            ("deployment", 1),
            ("deploymant", 2),
        ]
        assert [word.word for word in index.near_words("renewl", 1)] == ["renewal"]
        assert index.near_words("okapi", 1) == []


def test_an_empty_store_finds_nothing(corpus: Corpus) -> None:
    with corpus.writing():
        pass
    assert corpus.matches("anything").matches == ()
    assert corpus.count("anything") == 0
    with corpus.reading() as reading:
        assert reading.lexical_index(ColumnWeights()).size() == 0
        assert reading.catalog.documents(SearchFilters()) == []


def test_optimize_forgets_words_of_deleted_documents(corpus: Corpus) -> None:
    corpus.write("gone.md", "quetzalcoatlus")
    corpus.write("kept.md", "pterodactyl", title="Feathers")
    corpus.note("", "archaeology")
    corpus.remove("gone.md")
    with corpus.writing() as writing:
        writing.optimize()
    with corpus.reading() as reading:
        index = reading.lexical_index(ColumnWeights())
        near = [index.near_words(word, 1) for word in ("quetzalcoatlas", "pterodactil", "feethers", "archeology")]
    assert [[word.word for word in words] for words in near] == [[], ["pterodactyl"], ["feathers"], ["archaeology"]]
