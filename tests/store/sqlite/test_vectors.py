"""Vector search, compared with a search of all stored rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kebab.core.ports import VectorMatch
from kebab.core.search import SearchFilters
from kebab.store.sqlite import bit_codes, vectors
from kebab.store.sqlite.filters import document_filter
from kebab.store.sqlite.rows import stored_spaces
from kebab.store.sqlite.vectors import _PRIMARY, EXACT_UP_TO, SqliteVectorStore

if TYPE_CHECKING:
    from tests.conftest import Toy, WordEmbedder
    from tests.store.conftest import Shelf

DIMENSION = 384


def unit(rows: Any) -> Any:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def clustered(random: Any, rows: int, topics: Any) -> Any:
    """Vectors as models make them: grouped around topics, and all somewhat similar."""
    return unit(topics[random.integers(0, len(topics), rows)] + random.normal(size=(rows, topics.shape[1])))


def topics_of(random: Any, count: int, dimension: int = DIMENSION) -> Any:
    return random.normal(size=dimension) * 0.7 + random.normal(size=(count, dimension))


def ids(matches: list[VectorMatch]) -> list[str]:
    return [match.chunk_id for match in matches]


def search(
    shelf: Shelf, embedder: WordEmbedder, query: Any, limit: int = 10, primary: bool | None = None, **filters: Any
) -> list[VectorMatch]:
    return shelf.vector_store.search(
        embedder.fingerprint, query, filters=SearchFilters(**filters), limit=limit, primary=primary
    )  # fmt: skip


def check(
    shelf: Shelf, embedder: WordEmbedder, query: Any, limit: int = 10, primary: bool | None = None, **filters: Any
) -> None:
    """Checks that the chunks are those of a search of all rows, whatever the order of those that differ only in the
    seventh digit.
    """
    expected = shelf.closest(embedder.fingerprint, query, filters=SearchFilters(**filters), primary=primary)
    found = search(shelf, embedder, query, limit, primary, **filters)
    cosines = dict(expected)
    assert len({match.chunk_id for match in found}) == len(found)
    assert [match.similarity for match in found] == pytest.approx(
        [cosines[match.chunk_id] for match in found], abs=1e-6
    )
    assert [match.similarity for match in found] == pytest.approx([cosine for _, cosine in expected[:limit]], abs=1e-6)
    assert found == sorted(found, key=lambda match: (-match.similarity, match.chunk_id))


# --- many documents, of every kind that a filter knows

# Each way to filter, twice: so that few chunks pass (compared exactly), and so that many do (ranked by their codes
# first).
FEW: dict[str, dict[str, Any]] = {
    "tags_any": {"tags_any": ("rare", "rarer")},
    "tags_all": {"tags_all": ("common", "rare")},
    "types": {"types": ("code",)},
    "formats": {"formats": ("py",)},
    "lang": {"lang": "ko"},
    "path_glob": {"path_glob": "code/**"},
    "path": {"path_glob": "code"},
    "trust_min": {"trust_min": "primary"},
    "sources": {"sources": ("other",)},
    "docs": {"docs": ()},
    "after": {"after": "2026-09-01"},
    "before": {"before": "2026-02-01"},
    "exclude_paths": {"exclude_paths": ("notes/**",)},
    "exclude_tags": {"exclude_tags": ("common",)},
    "several": {"tags_any": ("common",), "lang": "en", "before": "2026-06-01", "trust_min": "primary"},
    "nothing passes": {"tags_any": ("no such tag",)},
}
MANY: dict[str, dict[str, Any]] = {
    "tags_any": {"tags_any": ("common", "rarer")},
    "tags_all": {"tags_all": ("common",)},
    "types": {"types": ("markdown", "note")},
    "formats": {"formats": ("md",)},
    "lang": {"lang": "en"},
    "path_glob": {"path_glob": "notes/**"},
    "trust_min": {"trust_min": "secondary"},
    "sources": {"sources": ("notes",)},
    "after": {"after": "2026-02-01"},
    "before": {"before": "2026-11-01"},
    "exclude_paths": {"exclude_paths": ("code/**",)},
    "exclude_tags": {"exclude_tags": ("rarer",)},
    "exclude_docs": {"exclude_docs": ("no such document",)},
    "several": {"tags_any": ("common",), "lang": "en", "trust_min": "secondary", "exclude_tags": ("nonsense",)},
}


def write_documents(shelf: Shelf, count: int, chunks: int) -> None:
    for number in range(count):
        code = number % 10 == 3
        shelf.write(
            f"{'code' if code else 'notes'}/{number:03}.{'py' if code else 'md'}",
            *(f"word {number} {part}" for part in range(chunks)),
            source="other" if number % 12 == 5 else "notes",
            tags=[
                name
                for name, every in (
                    ("common", number % 8 != 1),
                    ("rare", number % 10 == 2),
                    ("rarer", number % 25 == 1),
                )
                if every
            ],
            lang="ko" if number % 9 == 4 else "en",
            doc_type="code" if code else ("note" if number % 3 else "markdown"),
            format="py" if code else "md",
            date=f"2026-{1 + number % 12:02}-15",
            trust=("generated" if number % 14 == 6 else "secondary") if number % 2 else "primary",
        )


class Library:
    """Documents with clustered vectors: some chunks have another primary space, some share a vector."""

    def __init__(self, shelf: Shelf, embedder: WordEmbedder, documents: int, chunks: int) -> None:
        self.shelf = shelf
        self.embedder = embedder
        random = np.random.default_rng(documents)
        self.topics = topics_of(random, 60)
        write_documents(shelf, documents, chunks)
        rows = [row for (row,) in shelf.rows("SELECT id FROM chunks ORDER BY id")]
        made = clustered(random, len(rows), self.topics)
        primary, secondary = (
            {row: made[place] for place, row in enumerate(rows) if (place % 7 == 0) is other} for other in (False, True)
        )
        shelf.give(embedder, primary)
        shelf.give(embedder, secondary, primary=False)
        self.queries = clustered(random, 40, self.topics)
        self.one_document = str(shelf.value("SELECT doc_id FROM documents WHERE path LIKE '%/007.md'"))

    def filters(self, known: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
        return {**known[name], **({"docs": (self.one_document,)} if "docs" in known[name] else {})}


def opened(path: Any, toy: type[Toy], documents: int, chunks: int) -> Iterator[Library]:
    from contextlib import closing

    with closing(path) as shelf:
        yield Library(shelf, toy.embedder("synthetic", dimension=DIMENSION), documents, chunks)


@pytest.fixture(scope="module")
def small(toy: type[Toy], new_shelf: Any) -> Iterator[Library]:
    yield from opened(new_shelf("small"), toy, 60, 10)


@pytest.fixture(scope="module")
def large(toy: type[Toy], new_shelf: Any) -> Iterator[Library]:
    yield from opened(new_shelf("large"), toy, 110, 110)


# --- compared exactly


@pytest.mark.parametrize("limit", [1, 10, 1000])
def test_a_small_space_is_compared_exactly_with_all_its_vectors(small: Library, limit: int) -> None:
    for query in small.queries[:5]:
        check(small.shelf, small.embedder, query, limit)


@pytest.mark.parametrize("name", sorted({*FEW, *MANY}))
def test_in_a_small_space_filters_are_applied_before_ranking(small: Library, name: str) -> None:
    """Each filter of SearchFilters becomes SQL by the same function as in lexical search."""
    for known in (FEW, MANY):
        if name in known:
            for query in small.queries[:3]:
                check(small.shelf, small.embedder, query, **small.filters(known, name))


@pytest.mark.parametrize("primary", [True, False], ids=["primary_only", "secondary_only"])
def test_a_search_can_be_limited_to_primary_or_to_secondary_chunks(small: Library, primary: bool) -> None:
    for query in small.queries[:5]:
        check(small.shelf, small.embedder, query, primary=primary)
        check(small.shelf, small.embedder, query, primary=primary, tags_any=("rare",))
        assert {match.primary for match in search(small.shelf, small.embedder, query, 1000, primary=primary)} == {
            primary
        }
        assert {match.primary for match in search(small.shelf, small.embedder, query, 1000)} == {True, False}


def test_a_similarity_does_not_depend_on_the_other_rows(small: Library) -> None:
    """They are equal to the last bit, with and without filters."""
    for query in small.queries[:5]:
        everywhere = {match.chunk_id: match.similarity for match in search(small.shelf, small.embedder, query, 1000)}
        for filters in (FEW["tags_any"], FEW["lang"], FEW["several"]):
            found = search(small.shelf, small.embedder, query, 1000, **filters)
            assert found
            assert all(match.similarity == everywhere[match.chunk_id] for match in found)


# --- by codes first


def recall(found: list[VectorMatch], expected: list[tuple[str, float]]) -> float:
    return len(set(ids(found)) & {chunk for chunk, _ in expected}) / len(expected)


def test_a_space_beyond_the_limit_has_codes_and_a_smaller_one_has_none(small: Library, large: Library) -> None:
    assert large.shelf.value("SELECT count(*) FROM vectors") > EXACT_UP_TO
    for library in (small, large):
        library.shelf.check_codes()
    assert small.shelf.value("SELECT count(*) FROM vector_codes") == 0
    assert large.shelf.value("SELECT sum(count) FROM vector_codes") == large.shelf.value("SELECT count(*) FROM vectors")


def test_a_large_space_is_searched_with_a_recall_of_98_of_100(large: Library) -> None:
    """All codes are compared, and the best by their codes then exactly."""
    recalls = []
    for query in large.queries:
        expected = large.shelf.closest(large.embedder.fingerprint, query)
        found = search(large.shelf, large.embedder, query)
        recalls.append(recall(found, expected[:10]))
        cosines = dict(expected)
        assert all(match.similarity == pytest.approx(cosines[match.chunk_id], abs=1e-5) for match in found)
        assert found == sorted(found, key=lambda match: (-match.similarity, match.chunk_id))
    assert sum(recalls) / len(recalls) >= 0.98


@pytest.mark.parametrize("name", FEW)
def test_a_selective_filter_in_a_large_space_is_answered_exactly(large: Library, name: str) -> None:
    filters = large.filters(FEW, name)
    assert (
        large.shelf.value(
            f"SELECT coalesce(sum(chunk_count), 0) FROM documents WHERE id IN ({_sql(filters)})", _bound(filters)
        )
        <= EXACT_UP_TO
    )
    for query in large.queries[:3]:
        check(large.shelf, large.embedder, query, **filters)


@pytest.mark.parametrize("name", MANY)
def test_an_unselective_filter_in_a_large_space_ranks_only_what_it_leaves(large: Library, name: str) -> None:
    filters = large.filters(MANY, name)
    assert (
        large.shelf.value(f"SELECT sum(chunk_count) FROM documents WHERE id IN ({_sql(filters)})", _bound(filters))
        > EXACT_UP_TO
    )
    recalls = []
    for query in large.queries[:5]:
        expected = large.shelf.closest(large.embedder.fingerprint, query, filters=SearchFilters(**filters))
        found = search(large.shelf, large.embedder, query, **filters)
        assert len(found) == 10
        assert set(ids(found)) <= {chunk for chunk, _ in expected}
        recalls.append(recall(found, expected[:10]))
    assert sum(recalls) / len(recalls) >= 0.98


def _sql(filters: dict[str, Any]) -> str:
    return document_filter(SearchFilters(**filters)).sql


def _bound(filters: dict[str, Any]) -> dict[str, str]:
    return document_filter(SearchFilters(**filters)).bindings


@pytest.mark.parametrize("primary", [True, False], ids=["primary_only", "secondary_only"])
def test_only_primary_or_only_secondary_chunks_of_a_large_space_are_ranked(large: Library, primary: bool) -> None:
    for query in large.queries[:5]:
        expected = large.shelf.closest(large.embedder.fingerprint, query, primary=primary)[:10]
        found = search(large.shelf, large.embedder, query, primary=primary)
        assert {match.primary for match in found} == {primary}
        assert recall(found, expected) >= 0.9
        assert {
            match.primary for match in search(large.shelf, large.embedder, query, primary=primary, **MANY["lang"])
        } == {primary}


@pytest.mark.parametrize("primary", [True, False], ids=["primary", "secondary"])
def test_few_primary_or_secondary_vectors_are_listed_directly(large: Library, primary: bool) -> None:
    """Regression: to find fifty Korean notes, a hundred thousand English ones were compared, which took half a second."""
    connection = large.shelf.connection
    store = SqliteVectorStore(connection)
    space = next(known for known in stored_spaces(connection) if known.fingerprint == large.embedder.fingerprint)
    listed = store._few_vectors(space, primary, at_most=10**6)
    assert listed is not None
    wanted = {
        vector
        for vector, counts in large.shelf.rows(
            f"SELECT cv.vector_id, {_PRIMARY} FROM chunks_vec cv JOIN chunks c ON c.id = cv.chunk WHERE cv.space_id = ?",
            (space.id,),
        )
        if bool(counts) is primary
    }
    assert wanted <= set(listed.tolist())
    assert store._few_vectors(space, primary, at_most=len(wanted) // 2) is None


def test_filtered_chunks_are_found_even_if_they_are_far_from_the_query(large: Library) -> None:
    """Only excluded documents have the topic of the query, so all chunks that pass the filter are far from it."""
    documents = dict(large.shelf.rows("SELECT chunk_id, document_id FROM chunks"))
    kept = {row for (row,) in large.shelf.rows(_sql(MANY["path_glob"]), _bound(MANY["path_glob"]))}
    query = large.queries[0]
    away = unit(query - 2 * large.topics.mean(axis=0))
    found = search(large.shelf, large.embedder, away, 50, **MANY["path_glob"])
    assert len(found) == 50
    assert all(documents[match.chunk_id] in kept for match in found)


@pytest.mark.parametrize("limit", [300, 5000, 20_000])
def test_a_limit_above_the_usual_number_of_comparisons_returns_that_many_chunks(large: Library, limit: int) -> None:
    query = large.queries[1]
    expected = large.shelf.closest(large.embedder.fingerprint, query)[:limit]
    found = search(large.shelf, large.embedder, query, limit)
    assert len(found) == len(expected)
    assert recall(found, expected) >= 0.95


# --- from vectors to chunks


@pytest.fixture
def words(toy: type[Toy]) -> WordEmbedder:
    return toy.embedder("words", dimension=16)


@pytest.fixture
def tiny_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowers the limits: spaces have codes from 41 vectors on, and few vectors are compared exactly."""
    from kebab.store.sqlite import vector_writer

    monkeypatch.setattr(vectors, "EXACT_UP_TO", 40)
    monkeypatch.setattr(vector_writer, "EXACT_UP_TO", 40)
    monkeypatch.setattr(vectors, "CANDIDATES", 16)
    monkeypatch.setattr(vectors, "COMPARED", 8)


def random_rows(seed: int, count: int, dimension: int = 16) -> Any:
    return unit(np.random.default_rng(seed).normal(size=(count, dimension)))


def write_chunks(shelf: Shelf, count: int, path: str = "a.md", **details: Any) -> list[int]:
    """The rows of new chunks, in order."""
    before = shelf.value("SELECT coalesce(max(id), 0) FROM chunks")
    shelf.write(path, *(f"{path} text {number}" for number in range(count)), **details)
    return [row for (row,) in shelf.rows("SELECT id FROM chunks WHERE id > ? ORDER BY id", (before,))]


def test_all_chunks_that_share_a_vector_are_found_in_order_of_their_ids(shelf: Shelf, words: WordEmbedder) -> None:
    rows = write_chunks(shelf, 30)
    shelf.give(words, {rows[0]: random_rows(1, 1)[0], rows[1]: random_rows(2, 1)[0]})
    text_hash = shelf.value("SELECT text_hash FROM vectors ORDER BY id LIMIT 1")
    assert shelf.vectors.link(words, [(row, text_hash) for row in rows[2:]], primary=True) == set(rows[2:])
    found = search(shelf, words, random_rows(1, 1)[0], 100)
    assert len({match.similarity for match in found[:29]}) == 1
    assert ids(found[:29]) == sorted(ids(found[:29]))
    assert ids(search(shelf, words, random_rows(1, 1)[0], 3)) == ids(found[:3])


@pytest.mark.parametrize("count", [5, 30, 400])
def test_equal_similarities_are_ordered_by_chunk_id(
    shelf: Shelf, words: WordEmbedder, tiny_limits: None, count: int
) -> None:
    """Otherwise the fusion of ranks would differ from run to run; also if codes choose what is compared."""
    rows = write_chunks(shelf, count)
    near, far = random_rows(3, 2)
    shelf.give(words, {row: near if place % 3 == 1 else far for place, row in enumerate(rows)})
    chunks = sorted(shelf.rows("SELECT id, chunk_id FROM chunks"))
    nearest = sorted(chunk for place, (_, chunk) in enumerate(chunks) if place % 3 == 1)
    ways: list[dict[str, Any]] = [{}, {"lang": "en"}]
    for filters in ways:
        for limit in (1, 2, len(nearest)):
            found = search(shelf, words, near, limit, **filters)
            assert ids(found) == nearest[:limit]
            assert len({match.similarity for match in found}) == 1
        assert ids(search(shelf, words, near, 1000, **filters))[: len(nearest)] == nearest


def test_a_deleted_chunk_is_never_found(shelf: Shelf, words: WordEmbedder, tiny_limits: None) -> None:
    for count in (30, 100):  # without codes, and with codes
        for path in ("stays.md", "goes.md"):
            rows = write_chunks(shelf, count, path)
            shelf.give(words, dict(zip(rows, random_rows(count + len(path), count), strict=True)))
        query = random_rows(9, 1)[0]
        assert len(search(shelf, words, query, 1000)) == 2 * count
        shelf.store.remove("notes", ["goes.md"])
        check(shelf, words, query, 1000)
        check(shelf, words, query, 1000, lang="en")
        assert len(search(shelf, words, query, 1000)) == count
        stored = {chunk for chunk, _ in shelf.closest(words.fingerprint, query)}
        assert set(ids(search(shelf, words, query, 5))) | set(ids(search(shelf, words, query, 5, lang="en"))) <= stored
        shelf.store.remove("notes", ["stays.md"])
        shelf.vectors.drop_unused()


@pytest.mark.parametrize("unused", [100, 700])
def test_vectors_without_a_chunk_do_not_crowd_out_the_others(
    shelf: Shelf, words: WordEmbedder, tiny_limits: None, unused: int
) -> None:
    """Vectors of deleted chunks are still stored, close to the query."""
    query = random_rows(4, 1)[0]
    gone = write_chunks(shelf, unused, "gone.md")
    shelf.give(words, dict(zip(gone, unit(query + 0.05 * random_rows(5, unused)), strict=True)))
    kept = write_chunks(shelf, 200, "kept.md")
    shelf.give(words, dict(zip(kept, random_rows(6, 200), strict=True)))
    shelf.store.remove("notes", ["gone.md"])
    assert shelf.value("SELECT count(*) FROM vectors") == unused + 200
    found = search(shelf, words, query)
    assert len(found) == 10
    assert set(ids(found)) <= {chunk for chunk, _ in shelf.closest(words.fingerprint, query)[:40]}
    assert len(search(shelf, words, query, 1000)) == 200
    assert len(search(shelf, words, query, 1000, lang="en")) == 200


# --- spaces


def test_a_search_in_a_space_without_vectors_finds_nothing(
    shelf: Shelf, words: WordEmbedder, tiny_limits: None
) -> None:
    """The space had codes before its vectors were deleted."""
    rows = write_chunks(shelf, 60)
    shelf.give(words, dict(zip(rows, random_rows(1, 60), strict=True)))
    assert shelf.value("SELECT count(*) FROM vector_codes") > 0
    shelf.store.remove("notes", ["a.md"])
    assert search(shelf, words, random_rows(2, 1)[0]) == []
    shelf.vectors.drop_unused()
    assert shelf.value("SELECT count(*) FROM vectors") == 0
    assert search(shelf, words, random_rows(2, 1)[0]) == []
    assert not shelf.vector_store.holds(words)


# --- codes that are remembered


def test_remembered_codes_are_read_again_once_another_process_has_written(
    shelf: Shelf, words: WordEmbedder, tiny_limits: None
) -> None:
    remembered: dict[str, dict[int, Any]] = {}
    reader = shelf.database.reader()
    rows = write_chunks(shelf, 60)
    shelf.give(words, dict(zip(rows, random_rows(1, 60), strict=True)))
    query = random_rows(2, 1)[0]

    def found() -> list[str]:
        return ids(
            SqliteVectorStore(reader, remembered).search(words.fingerprint, query, filters=SearchFilters(), limit=10)
        )

    def expected() -> list[str]:
        return [chunk for chunk, _ in shelf.closest(words.fingerprint, query)[:10]]

    before = found()
    codes = remembered["codes"][1]
    assert found() == before
    assert remembered["codes"][1] is codes, "nothing was written, so nothing is read"
    more = write_chunks(shelf, 40, "b.md")
    shelf.give(words, dict(zip(more, unit(query + 0.1 * random_rows(3, 40)), strict=True)))
    assert found() == expected() != before
    shelf.vectors.clear([words])
    assert found() == []
    again = write_chunks(shelf, 60, "c.md")
    shelf.give(words, dict(zip(again, random_rows(8, 60), strict=True)))
    assert len(found()) == 10
    assert set(found()) <= {chunk for chunk, _ in shelf.closest(words.fingerprint, query)}
    reader.close()


def test_remembered_vectors_are_read_again_after_any_write(shelf: Shelf, words: WordEmbedder) -> None:
    """The vectors of a small space are cached for the next query of the same connection."""
    remembered: dict[str, dict[int, Any]] = {}
    query = random_rows(2, 1)[0]
    reader = shelf.database.reader()

    def found(connection: Any) -> list[str]:
        return ids(
            SqliteVectorStore(connection, remembered).search(
                words.fingerprint, query, filters=SearchFilters(), limit=10
            )
        )

    rows = write_chunks(shelf, 20)
    shelf.give(words, dict(zip(rows, random_rows(1, 20), strict=True)))
    for connection in (reader, shelf.connection):  # one that only reads, and the one that writes
        before = found(connection)
        kept = remembered["vectors"][1]
        assert found(connection) == before
        assert remembered["vectors"][1] is kept, "nothing was written, so nothing is read"
        shelf.vectors.clear([words])
        assert found(connection) == []
        shelf.give(words, dict(zip(rows, random_rows(len(before), 20), strict=True)))
        assert found(connection) == [chunk for chunk, _ in shelf.closest(words.fingerprint, query)[:10]]
    reader.close()


def test_a_search_sees_one_state_despite_writes_by_others(
    shelf: Shelf, toy: type[Toy], words: WordEmbedder, tiny_limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids of vectors are reused: a search that is half before and half after a write would compare vectors of different
    models.
    """
    rows = write_chunks(shelf, 60)
    shelf.give(words, dict(zip(rows, random_rows(1, 60), strict=True)))
    query = random_rows(2, 1)[0]
    reader = shelf.database.reader()
    store = SqliteVectorStore(reader)
    expected = store.search(words.fingerprint, query, filters=SearchFilters(), limit=10)
    really = bit_codes.distances

    def meanwhile(planes: Any, code: Any) -> Any:
        shelf.vectors.clear([words])
        other = toy.embedder("other", dimension=24)
        shelf.give(other, dict(zip(rows, random_rows(3, 60, 24), strict=True)))
        return really(planes, code)

    monkeypatch.setattr(bit_codes, "distances", meanwhile)
    assert store.search(words.fingerprint, query, filters=SearchFilters(), limit=10) == expected
    monkeypatch.undo()
    assert SqliteVectorStore(reader).search(words.fingerprint, query, filters=SearchFilters(), limit=10) == []
    assert store.search(words.fingerprint, query, filters=SearchFilters(), limit=10) == []
    reader.close()
