"""The vector retriever on a real file with a small real model: its requests to the store, its hits and its notices."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np
import pytest

from kebab.core.errors import ModelMismatch, ModelMissing, ModelUnreachable
from kebab.core.notices import Says
from kebab.core.ports import EmbeddingModels, Middle, Retriever, SpaceQuery, VectorMatch
from kebab.core.search import HitList, Ranked, SearchFilters, SearchQuery
from kebab.core.text import LineTable
from kebab.search.listing import FIRST_DEPTH
from kebab.search.vector import VectorRetriever
from kebab.store.sqlite.database import Connection, Database
from kebab.store.sqlite.lexical import SqliteLexicalIndex
from kebab.store.sqlite.rows import SqliteChunkReader
from kebab.store.sqlite.vectors import SqliteVectorStore

if TYPE_CHECKING:
    from tests.conftest import Toy, WordEmbedder

CORPUS = {
    "git/setup.md": "---\ntags: [git, setup]\ndate: 2024-01-10\n---\n# Setup\n\n## Install git\n\nInstall git and tell it your name.\n",
    "git/branches.md": "---\ntags: [git]\ndate: 2024-02-10\n---\n# Branches\n\nA branch is a pointer to a commit of git.\n",
    "cooking/kimchi.md": "---\ntags: [food]\ntrust: secondary\ndate: 2024-03-10\n---\n# Kimchi\n\nSalt the cabbage, then add chilli and garlic.\n",
    "cooking/bread.txt": "Flour, water, salt and yeast make bread.\n",
    "tools/run.py": "def install():\n    '''Installs the package with git.'''\n",
    "한국어/설치.md": "---\nlang: ko\n---\n# 설치\n\n깃을 설치하고 이름을 알려 준다.\n",
}


class SpyStore:
    """A vector store that records its calls."""

    def __init__(self, store: SqliteVectorStore) -> None:
        self._store = store
        self.asked: list[dict[str, Any]] = []

    def holds(self, embedder: Any) -> bool:
        return self._store.holds(embedder)

    def middle_of(self, chunk_ids: Any, embedders: Any) -> Middle | None:
        return self._store.middle_of(chunk_ids, embedders)

    def search(self, space: str, vector: Any, **options: Any) -> list[VectorMatch]:
        self.asked.append({"space": space, "vector": np.array(vector), **options})
        return self._store.search(space, vector, **options)


class Opened:
    def __init__(self, connection: Connection, models: EmbeddingModels, **options: Any) -> None:
        self.connection = connection
        self.store = SpyStore(SqliteVectorStore(connection))
        index = SqliteLexicalIndex(connection, korean_analysis="bigrams")
        self.retriever = VectorRetriever(
            self.store, models, SqliteChunkReader(connection), "vec:v1", index=index, **options
        )

    def search(self, text: str, **options: Any) -> HitList:
        return self.retriever.search(SearchQuery(text, mode="vector", **options))

    def paths(self, text: str, **options: Any) -> list[str]:
        return [hit.doc_path for hit in self.search(text, **options)]

    def trusted_less(self, text: str) -> set[str]:
        return self._documents(text, lambda place: place.trust < 1)

    def below_floor(self, text: str) -> set[str]:
        return self._documents(text, lambda place: place.below_floor)

    def _documents(self, text: str, chosen: Callable[[Ranked], bool]) -> set[str]:
        """The documents at the chosen places of the ranking."""
        places = self.retriever.rank(SearchQuery(text, mode="vector"), 30).chunks
        chunks = self.retriever.contexts([place.chunk_id for place in places])
        return {chunks[place.chunk_id].doc_path for place in places if chosen(place)}


@contextmanager
def opened(database: Path, models: EmbeddingModels, **options: Any) -> Iterator[Opened]:
    with closing(Database(database).reader()) as connection:
        yield Opened(connection, models, **options)


def ingest(folder: Path, files: Mapping[str, str], toy: type[Toy], models: EmbeddingModels) -> Path:
    for path, text in files.items():
        (folder / "notes" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "notes" / path).write_bytes(text.encode())
    with toy.open(folder / "kb.sqlite", models) as knowledge_base:
        knowledge_base.ingest(folder / "notes")
    return folder / "kb.sqlite"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, toy: type[Toy]) -> Path:
    return ingest(tmp_path_factory.mktemp("vector"), CORPUS, toy, toy.models())


@pytest.fixture
def words(toy: type[Toy]) -> WordEmbedder:
    return toy.embedder()


@pytest.fixture
def vector(corpus: Path, toy: type[Toy], words: WordEmbedder) -> Iterator[Opened]:
    with opened(corpus, toy.models(words)) as found:
        yield found


Corpus = Callable[..., Opened]


@pytest.fixture
def corpus_of(tmp_path: Path, toy: type[Toy]) -> Iterator[Corpus]:
    """A function that makes a vector retriever over these files with these models."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def make(files: Mapping[str, str], models: EmbeddingModels | None = None, **options: Any) -> Opened:
            models = models or toy.models()
            return stack.enter_context(opened(ingest(tmp_path, files, toy, models), models, **options))

        yield make


def cosines(corpus: Path, embedder: WordEmbedder, text: str) -> dict[str, float]:
    """The cosines of all stored rows, computed one by one."""
    query = embedder.embed([text], "query")[0].astype(np.float64)
    with closing(Database(corpus).reader()) as connection:
        rows = connection.execute(
            "SELECT c.chunk_id, v.vector FROM chunks c JOIN chunks_vec cv ON cv.chunk = c.id JOIN vectors v ON v.id = cv.vector_id"
        ).fetchall()
    return {str(chunk): float(np.frombuffer(vector, np.float16).astype(np.float64) @ query) for chunk, vector in rows}  # type: ignore[arg-type]  # a blob


# --- the contract


def test_a_vector_retriever_has_the_index_version_it_was_given(vector: Opened) -> None:
    retriever: Retriever = vector.retriever
    assert retriever.index_version() == "vec:v1"
    assert {hit.index_version for hit in retriever.search(SearchQuery("git", mode="vector"))} == {"vec:v1"}


def test_a_query_is_compared_with_every_chunk_by_cosine(corpus: Path, vector: Opened, words: WordEmbedder) -> None:
    """Order and scores equal those of a comparison with every row."""
    for text in ("install git", "salt", "깃을 설치하고", "nothing of this"):
        hits = vector.search(text, k=100)
        expected = cosines(corpus, words, text)
        assert len(hits) == len(expected) == len(CORPUS)
        assert [hit.chunk_id for hit in hits] == sorted(expected, key=lambda chunk: (-expected[chunk], chunk))
        assert [hit.score for hit in hits] == pytest.approx(
            [max(0.0, expected[hit.chunk_id]) for hit in hits], abs=1e-5
        )


def test_a_vector_hit_has_no_lexical_rank_or_score(vector: Opened) -> None:
    hits = vector.search("install git")
    assert hits
    for place, hit in enumerate(hits, start=1):
        detail = hit.retrieval
        assert (detail.method, detail.vector_rank, hit.rank) == ("vector", place, place)
        assert detail.vector_score == detail.fusion_score == hit.score
        assert (detail.lexical_score, detail.lexical_rank, detail.rrf_score, detail.weights) == (None, None, None, None)
        assert (hit.score_kind, hit.retrieval_method) == ("cosine", "vec-cosine")


def test_a_cosine_below_zero_is_a_score_of_zero(corpus: Path, vector: Opened, words: WordEmbedder) -> None:
    below = next(
        text for text in (f"word{number}" for number in range(50)) if min(cosines(corpus, words, text).values()) < -0.1
    )
    hits = vector.search(below, k=100, explain=True)
    assert hits[-1].score == 0.0
    assert hits[-1].explanation is not None
    assert hits[-1].explanation["vector"]["cosine"] < -0.1


def test_a_query_is_embedded_as_a_query_and_a_passage_as_a_passage(
    vector: Opened, words: WordEmbedder, tmp_path: Path, toy: type[Toy]
) -> None:
    vector.search("how to install git")
    assert words.batches == [("query", ["how to install git"])]
    own = toy.embedder()
    ingest(tmp_path, CORPUS, toy, toy.models(own))
    assert {kind for kind, _ in own.batches} == {"passage"}


def test_the_store_is_asked_with_the_filters_and_the_vector_of_the_query(vector: Opened, words: WordEmbedder) -> None:
    filters = SearchFilters(tags_any=("git",))
    assert len(vector.search("install", k=1, filters=filters)) == 1
    (asked,) = vector.store.asked
    assert (asked["filters"], asked["space"]) == (filters, words.fingerprint)
    assert np.array_equal(asked["vector"], words.embed(["install"], "query")[0])


def test_the_fields_of_a_hit_are_read_from_the_database_by_chunk_id(corpus: Path, vector: Opened) -> None:
    """Path, headings, label, chunker and the model that embedded the chunk."""
    (hit,) = vector.search("install git and tell it your name", k=1)
    with closing(Database(corpus).reader()) as connection:
        ((doc_id, chunker),) = connection.execute(
            "SELECT doc_id, chunker_version FROM documents WHERE path = 'git/setup.md'"
        ).fetchall()
    assert (hit.doc_path, hit.doc_id, hit.title) == ("git/setup.md", doc_id, "Setup")
    assert (hit.heading_path, hit.section_label) == (("Setup", "Install git"), "Install git")
    assert (hit.chunker_version, hit.embedding_model) == (chunker, "words")
    assert (hit.doc_type, hit.lang, hit.tags, hit.trust_level, hit.source) == (
        "markdown",
        "en",
        ("git", "setup"),
        "primary",
        "notes",
    )
    assert hit.date == "2024-01-10"


def test_every_hit_cites_the_lines_that_hold_it(corpus: Path, vector: Opened) -> None:
    """The citation comes from the first span, as in lexical search."""
    for hit in vector.search("install git", k=100, full_text=True):
        assert hit.citation.kind == ("code" if hit.doc_type == "code" else "line")
        assert hit.citation.lines
        assert (hit.citation.path, hit.citation.section) == (hit.doc_path, hit.section_label)
        source = (corpus.parent / "notes" / hit.doc_path).read_bytes().decode()
        assert LineTable(source).slice(*hit.citation.lines).rstrip("\n") == hit.text
        assert hit.citation.content_hash == sha256(hit.text.encode()).hexdigest()


def test_snippets_of_vector_hits_show_and_mark_words_of_the_query(corpus: Path, toy: type[Toy]) -> None:
    with opened(corpus, toy.models(), snippet_chars=40) as vector:
        hits = vector.search("install git", k=2)
        assert all(hit.text == hit.snippet and len(hit.snippet) <= 40 for hit in hits)
        assert {hits[0].snippet[start:end].lower() for start, end in hits[0].highlights} >= {"install", "git"}
        whole = vector.search("install git", k=1, full_text=True)[0]
        assert whole.text == "# Setup\n\n## Install git\n\nInstall git and tell it your name."
        bare = vector.search("install git", k=1, without_snippets=True)[0]
        assert (bare.snippet, bare.text) == ("", whole.text)


def test_searching_changes_nothing_in_the_file_and_opens_no_socket(
    corpus: Path, vector: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a search opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    before = corpus.read_bytes()
    vector.search("git", explain=True, per_doc=1)
    assert corpus.read_bytes() == before
    with pytest.raises(apsw.ReadOnlyError):
        vector.connection.execute("DELETE FROM vectors")


# --- the model that made the vectors


def test_vectors_of_another_model_are_not_compared(corpus: Path, toy: type[Toy]) -> None:
    """Vectors of another model name or another version are ignored."""
    for other in (toy.embedder("other"), toy.embedder(version="2")):
        with opened(corpus, toy.models(other)) as vector:
            with pytest.raises(ModelMissing):
                vector.search("install git")
            assert vector.store.asked == []
            assert other.batches == [], "nothing is embedded in vain"


def test_a_model_that_gives_vectors_of_another_size_is_refused(corpus: Path, toy: type[Toy]) -> None:
    with opened(corpus, toy.models(toy.embedder(dimension=64))) as vector, pytest.raises(ModelMismatch):
        vector.search("install git")


def test_an_error_of_the_model_is_raised_to_the_caller(
    corpus: Path, toy: type[Toy], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = toy.embedder()

    def down(*_: object) -> None:
        raise ModelUnreachable("nobody answers", hint="start it")

    monkeypatch.setattr(embedder, "embed", down)
    with opened(corpus, toy.models(embedder)) as vector, pytest.raises(ModelUnreachable):
        vector.search("install git")


def test_notices_about_the_vectors_come_with_every_list(corpus: Path, toy: type[Toy]) -> None:
    notice = Says.PARTIAL_VECTORS.notice(3, 6)
    with opened(corpus, toy.models(), notices=[notice]) as vector:
        for text in ("install git", '""'):
            assert vector.search(text).notices == (notice,)


# --- what is embedded of a query


@pytest.mark.parametrize(
    ("typed", "embedded"),
    [
        ("how to install git", "how to install git"),
        ("Install, git!", "Install, git!"),
        ('"install git" OR branch*', "install git branch"),
        ("install AND git", "install git"),
        ('the "exact phrase" here', "the exact phrase here"),
        ("install OR (git branch)", "install git branch"),
        ("깃을 설치", "깃을 설치"),
    ],
)
def test_a_query_is_embedded_as_typed_or_by_its_words_when_it_has_syntax(
    vector: Opened, words: WordEmbedder, typed: str, embedded: str
) -> None:
    vector.search(typed)
    assert " ".join(words.texts("query")[0].replace("(", " ").replace(")", " ").split()) == embedded


@pytest.mark.parametrize("text", ["", "   ", "\n", '""', "()"])
def test_a_query_without_words_is_not_embedded(vector: Opened, words: WordEmbedder, text: str) -> None:
    if text == "()":
        vector.search(text)  # it may be embedded; it must not fail
        return
    assert vector.search(text) == []
    assert words.batches == []


@pytest.mark.parametrize("text", ["\0", "\ud800 git", "🙂", "e\u0301", "%", "'", "NOT", "-- ; DROP", "*", '"'])
def test_a_vector_search_for_any_text_raises_nothing(vector: Opened, text: str) -> None:
    for hit in vector.search(text):
        assert 0 <= hit.score <= 1


# --- filters, paging, order by date, per document


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"tags_any": ("food",)}, {"cooking/kimchi.md"}),
        ({"tags_all": ("git", "setup")}, {"git/setup.md"}),
        ({"types": ("code",)}, {"tools/run.py"}),
        ({"lang": "ko"}, {"한국어/설치.md"}),
        ({"path_glob": "cooking/**"}, {"cooking/kimchi.md", "cooking/bread.txt"}),
        ({"exclude_paths": ("cooking", "git", "한국어")}, {"tools/run.py"}),
        ({"before": "2024-02-01", "after": "2024-01-01"}, {"git/setup.md"}),
        ({"tags_any": ("nobody",)}, set()),
    ],
    ids=["tags_any", "tags_all", "types", "lang", "path_glob", "exclude_paths", "dates", "nothing"],
)
def test_with_filters_only_passing_documents_are_found_however_distant_in_meaning(
    vector: Opened, filters: dict[str, Any], expected: set[str]
) -> None:
    """Fewer hits than requested are not an error."""
    hits = vector.search("install git", filters=SearchFilters(**filters))
    assert {hit.doc_path for hit in hits} == expected


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, toy: type[Toy]) -> Path:
    files = {
        f"{number:02}.md": f"---\ndate: 2024-01-{number + 1:02}\n---\n"
        + "".join(
            f"# Part {part}\n\n" + f"okapi number {number} {part}. " + "some more words in between. " * 30 + "\n\n"
            for part in range(1 + number % 3)
        )
        for number in range(25)
    }
    files["long.md"] = "---\ndate: 2023-01-01\n---\n" + "".join(
        f"# Okapi {part}\n\nokapi okapi okapi {part}. {'okapi ' * 130}\n\n" for part in range(90)
    )
    return ingest(tmp_path_factory.mktemp("many"), files, toy, toy.models())


@pytest.mark.parametrize("per_doc", [None, 1, 2])
@pytest.mark.parametrize("duplicates", ["show", "fold"])
@pytest.mark.parametrize("k", [1, 7, 100])
def test_a_page_is_the_same_part_of_a_longer_list(
    many: Path, toy: type[Toy], per_doc: int | None, duplicates: Any, k: int
) -> None:
    """Also if one document fills more of the list than is ranked at first."""
    options: dict[str, Any] = {"per_doc": per_doc, "duplicates": duplicates}
    with opened(many, toy.models()) as vector:
        whole = vector.search("okapi", k=1000, **options)
        assert [hit.rank for hit in whole] == list(range(1, len(whole) + 1))
        for offset in range(0, len(whole) + 1, 1 + len(whole) // 9):
            page = vector.search("okapi", k=k, offset=offset, **options)
            assert list(page) == whole[offset : offset + k]
            assert page.more == (offset + k < len(whole))
    folded = [copy.chunk_id for hit in whole for copy in hit.duplicates]
    assert len({*folded, *(hit.chunk_id for hit in whole)}) == len(folded) + len(whole)
    if per_doc is None:
        assert len(folded) + len(whole) == 49 + 90
    else:
        documents = [hit.doc_id for hit in whole]
        assert max(documents.count(document) for document in documents) == per_doc
        assert len(set(documents)) == 26 or duplicates == "fold"


def test_with_sort_date_the_nearest_passages_are_sorted_by_date(many: Path, toy: type[Toy]) -> None:
    with opened(many, toy.models()) as vector:
        hits = vector.search("okapi number", k=10, sort="date")
        assert len(hits) == 10
        dates = [hit.date for hit in hits]
        assert dates == sorted(dates, reverse=True)
        assert [hit.rank for hit in hits] == list(range(1, 11))


# --- several spaces


MIXED = {
    "en/git.md": "# Setup\n\nInstall git on the computer.\n",
    "en/bread.md": "# Bread\n\nFlour and water.\n",
    "ko/git.md": "# 설치\n\n깃을 컴퓨터에 설치한다.\n",
    "ko/bread.md": "# 빵\n\n밀가루와 물.\n",
}
KOREAN = {"깃을": "git", "설치한다": "install", "설치": "install", "컴퓨터에": "computer"}


def test_a_question_is_compared_only_in_the_spaces_for_its_script(corpus_of: Corpus, toy: type[Toy]) -> None:
    """An English model never embeds a Korean question."""
    models = toy.two_scripts(KOREAN)
    vector = corpus_of(MIXED, models)
    assert set(vector.paths("install git")) == {"en/git.md", "en/bread.md"}
    assert vector.paths("깃을 설치", k=2) == ["ko/git.md", "en/git.md"], (
        "across languages through the space that reads both"
    )
    latin, *korean = [asked["space"] for asked in vector.store.asked]
    assert (latin, set(korean)) == (models.latin.fingerprint, {models.everything.fingerprint})
    assert (models.latin.texts("query"), models.everything.texts("query")) == (["install git"], ["깃을 설치"]), (
        "each model is asked once"
    )


def test_only_text_in_the_script_of_a_weak_space_counts_less(corpus_of: Corpus, toy: type[Toy]) -> None:
    vector = corpus_of(MIXED, toy.two_scripts(KOREAN))
    assert vector.trusted_less("깃을 설치") == {"ko/git.md", "ko/bread.md"}
    assert vector.trusted_less("install git") == set()


def test_the_lists_of_two_spaces_are_merged_by_rank(corpus_of: Corpus, toy: type[Toy]) -> None:
    """Cosines of two spaces are never compared."""
    vector = corpus_of(MIXED, toy.two_scripts(KOREAN, cross_language="on"))
    hits = vector.search("install git", explain=True)
    assert {hit.doc_path for hit in hits[:2]} == {"en/git.md", "ko/git.md"}
    assert sorted(hit.doc_path for hit in hits) == sorted(MIXED), "each chunk once, in its primary space"
    assert [hit.retrieval.vector_rank for hit in hits] == [1, 2, 3, 4]
    assert [asked["primary"] for asked in vector.store.asked] == [None, True]
    assert hits.explanation is not None
    assert [(space["model"], space["scope"], space["found"]) for space in hits.explanation["vector"]["spaces"]] == [
        ("latin@1:32", "all", 2),
        ("everything@1:48", "own_scripts", 2),
    ]
    places = [hit.explanation["vector"]["rank_in_model"] for hit in hits if hit.explanation]
    assert places == [1, 1, 2, 2]


def test_a_chunk_found_in_two_spaces_is_listed_once_at_its_better_rank(corpus_of: Corpus, toy: type[Toy]) -> None:
    class Both:
        """Models that search both spaces for all chunks."""

        def __init__(self) -> None:
            self._models = toy.two_scripts(KOREAN)
            self.embedders: Sequence[WordEmbedder] = self._models.embedders
            self.primary_of, self.secondary_of, self.secondary_for_all = (
                self._models.primary_of,
                self._models.secondary_of,
                self._models.secondary_for_all,
            )

        earlier = None

        def for_query(self, _text: str) -> list[SpaceQuery]:
            return [SpaceQuery(embedder) for embedder in self.embedders]

    hits = corpus_of(MIXED, Both()).search("install git", k=10, explain=True)
    assert sorted(hit.doc_path for hit in hits) == sorted(MIXED)
    places = [hit.explanation["vector"]["rank_in_model"] for hit in hits if hit.explanation]
    assert places == sorted(places)


def test_results_of_two_queries_to_one_space_are_merged_by_cosine_plus_bonus(corpus_of: Corpus, toy: type[Toy]) -> None:
    class Added:
        """Models that add so much to cosines of other languages that these come first."""

        def __init__(self, bonus: float, floor: float = -1.0) -> None:
            self._models = toy.two_scripts(KOREAN)
            self._scopes = [{"primary": False, "bonus": bonus, "floor": floor}, {"primary": True}]
            self.embedders = self._models.embedders
            self.primary_of, self.secondary_of, self.secondary_for_all = (
                self._models.primary_of,
                self._models.secondary_of,
                self._models.secondary_for_all,
            )

        earlier = None

        def for_query(self, _text: str) -> list[SpaceQuery]:
            return [SpaceQuery(self._models.everything, **scope) for scope in self._scopes]  # type: ignore[arg-type]  # as written above

    languages = {
        bonus: [hit.doc_path[:2] for hit in corpus_of(MIXED, Added(bonus)).search("깃을 설치")]
        for bonus in (0.0, 3.0, -3.0)
    }
    assert (languages[3.0], languages[-3.0]) == (["en", "en", "ko", "ko"], ["ko", "ko", "en", "en"])
    plain = corpus_of(MIXED, Added(0.0)).search("깃을 설치", explain=True)
    cosines = [hit.explanation["vector"]["cosine"] for hit in plain if hit.explanation]
    assert cosines == sorted(cosines, reverse=True)
    far = corpus_of(MIXED, Added(3.0, floor=1.1)).search("깃을 설치")
    assert [hit.doc_path[:2] for hit in far] == ["ko", "ko", "en", "en"], (
        "what is too far away to mean anything comes last"
    )


def test_a_query_is_not_embedded_for_a_space_without_vectors(corpus_of: Corpus, toy: type[Toy]) -> None:
    models = toy.two_scripts()
    vector = corpus_of({"a.md": MIXED["en/git.md"]}, models)
    with pytest.raises(ModelMissing) as caught:
        vector.search("깃을 설치")
    assert "cross_language" in str(caught.value.hint), "an empty list would say that nothing is like it"
    assert models.everything.texts("query") == []


def test_an_english_question_is_compared_with_other_scripts_if_no_text_is_in_latin_script(
    corpus_of: Corpus, toy: type[Toy]
) -> None:
    """Regression: an English question to Korean notes was answered with the notice that there are no vectors."""
    models = toy.two_scripts(KOREAN)
    hits = corpus_of({path: text for path, text in MIXED.items() if path.startswith("ko/")}, models).search(
        "install git", k=1
    )
    assert [hit.doc_path for hit in hits] == ["ko/git.md"]
    assert hits.notices == ()


def test_an_english_question_does_not_use_the_other_model_if_text_is_in_latin_script(
    corpus_of: Corpus, toy: type[Toy]
) -> None:
    models = toy.two_scripts(KOREAN)
    vector = corpus_of(MIXED, models)
    assert vector.search("install git").notices == ()
    assert models.everything.texts("query") == []
    models.latin_floor = 1.1
    assert [notice.code for notice in vector.search("install git").notices] == ["other_scripts"], (
        "an empty answer tells what was not asked"
    )
    assert models.everything.texts("query") == []


def test_text_in_another_script_that_is_closer_than_all_own_text_is_not_below_the_floor(
    corpus_of: Corpus, toy: type[Toy]
) -> None:
    """Regression: the English page that answers was left out as below its floor, while more distant Korean ones were
    shown.
    """

    class Floored:
        def __init__(self) -> None:
            self._models = toy.two_scripts(KOREAN)
            self.embedders = self._models.embedders
            self.primary_of, self.secondary_of, self.secondary_for_all = (
                self._models.primary_of,
                self._models.secondary_of,
                self._models.secondary_for_all,
            )

        earlier = None

        def for_query(self, _text: str) -> list[SpaceQuery]:
            everything = self._models.everything
            return [
                SpaceQuery(everything, primary=False, floor=1.1),
                SpaceQuery(everything, primary=True, floor=-1.0, trust=0.1),
            ]

    corpus = {path: text for path, text in MIXED.items() if path in ("en/git.md", "ko/bread.md")}
    vector = corpus_of(corpus, Floored())
    assert vector.paths("깃을 설치", k=4)[0] == "en/git.md"
    assert vector.below_floor("깃을 설치") == set()


def test_passages_below_the_floor_of_their_space_are_marked(corpus_of: Corpus, toy: type[Toy]) -> None:
    class Floored:
        def __init__(self, embedder: WordEmbedder) -> None:
            self._models = toy.models(embedder)
            self.embedders = self._models.embedders
            self.primary_of, self.secondary_of, self.secondary_for_all = (
                self._models.primary_of,
                self._models.secondary_of,
                self._models.secondary_for_all,
            )

        earlier = None

        def for_query(self, _text: str) -> list[SpaceQuery]:
            return [SpaceQuery(self.embedders[0], floor=0.5)]

    vector = corpus_of(MIXED, Floored(toy.embedder()))
    hits = vector.search("Setup install git on the computer")
    assert (hits[0].doc_path, hits[0].score > 0.5) == ("en/git.md", True)
    assert vector.below_floor("Setup install git on the computer") == {hit.doc_path for hit in hits[1:]}
    assert all(hit.score < 0.5 == hit.retrieval.vector_floor for hit in hits[1:])


# --- explanations


def test_an_explanation_names_model_cosine_rank_and_depth(vector: Opened) -> None:
    hits = vector.search("install git", k=3, explain=True)
    assert hits.explanation == {
        "vector": {
            "spaces": [{"model": "words@1:32", "scope": "all", "found": 6}],
            "asked_for": FIRST_DEPTH,
            "found": 6,
        }
    }
    for hit in hits:
        assert hit.explanation is not None
        assert hit.explanation["lexical"] is None
        assert hit.explanation["fusion"] == {"method": "none", "score": hit.score}
        shown = hit.explanation["vector"]
        assert (shown["score"], shown["rank"], shown["model"]) == (hit.score, hit.rank, "words")
    plain = vector.search("install git", k=3)
    assert plain.explanation is None
    assert {hit.explanation for hit in plain} == {None}


def test_the_same_query_gives_the_same_hits_to_the_last_bit(corpus: Path, toy: type[Toy]) -> None:
    runs = []
    for _ in range(2):
        with opened(corpus, toy.models()) as vector:
            runs.append([hit._asdict() for hit in vector.search("install git", k=100, explain=True)])
    assert runs[0] == runs[1]


def test_a_chunk_deleted_between_search_and_reading_is_left_out(
    corpus: Path, vector: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = vector.search("install git", k=2)
    really = vector.retriever.contexts

    def without_first(chunks: Sequence[str]) -> Any:
        return {chunk: context for chunk, context in really(chunks).items() if chunk != everything[0].chunk_id}

    monkeypatch.setattr(vector.retriever, "contexts", without_first)
    hits = vector.search("install git", k=2)
    assert len(hits) == 2
    assert hits[0].chunk_id == everything[1].chunk_id
    assert [hit.rank for hit in hits] == [1, 2]
