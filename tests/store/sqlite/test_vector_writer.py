"""Writing vectors: a text is embedded once, a transaction is stored whole or not at all, and codes always belong to the
stored vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kebab.core.documents import embedded_text
from kebab.core.ports import Key, NewVector, PendingChunk
from kebab.core.search import SearchFilters
from kebab.store.sqlite import vector_writer, vectors
from kebab.store.sqlite.vector_writer import SqliteVectorWriter

if TYPE_CHECKING:
    from tests.conftest import Toy, WordEmbedder
    from tests.store.conftest import Shelf


@pytest.fixture
def words(toy: type[Toy]) -> WordEmbedder:
    return toy.embedder("words", dimension=70)


@pytest.fixture
def tiny_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowers the limits: codes from 21 vectors on, in rows of at most 16, with at most three rows that are not full."""
    for module in (vectors, vector_writer):
        monkeypatch.setattr(module, "EXACT_UP_TO", 20)
    monkeypatch.setattr(vector_writer, "_SEGMENT", 16)
    monkeypatch.setattr(vector_writer, "_MOST_SMALL_SEGMENTS", 3)


def text_of(chunk: PendingChunk) -> str:
    return embedded_text(chunk.path, chunk.title, chunk.headings, chunk.text)


def hash_of(text: str) -> bytes:
    return sha256(text.encode()).digest()[:16]


def embed(shelf: Shelf, embedder: WordEmbedder, *, settle: bool = True) -> tuple[int, int]:
    """Embeds pending chunks as an ingest does. Returns how many texts were embedded, and how many chunks used a stored
    vector.
    """
    writer = shelf.vectors
    pending = {chunk.key: text_of(chunk) for chunk in writer.pending([embedder], after=None, limit=10_000)}
    linked = writer.link(embedder, [(row, hash_of(text)) for row, text in pending.items()], primary=True)
    texts: dict[str, list[Key]] = {}
    for row, text in pending.items():
        if row not in linked:
            texts.setdefault(text, []).append(row)
    if texts:
        made = embedder.embed(list(texts), "passage")
        new = [NewVector(hash_of(text), vector, rows) for (text, rows), vector in zip(texts.items(), made, strict=True)]
        writer.add(embedder, new, primary=True)
    if settle:
        writer.settle([embedder])
    return len(texts), len(linked)


def found(shelf: Shelf, embedder: WordEmbedder, text: str, limit: int = 3) -> list[str]:
    """The texts of the chunks closest to this vector."""
    query = embedder.embed([text], "query")[0]
    matches = shelf.vector_store.search(embedder.fingerprint, query, filters=SearchFilters(), limit=limit)
    return [shelf.value("SELECT text FROM chunks WHERE chunk_id = ?", (match.chunk_id,)) for match in matches]


def counts(shelf: Shelf) -> dict[str, int]:
    return {
        table: shelf.value(f"SELECT count(*) FROM {table}")
        for table in ("embedding_spaces", "vectors", "chunks_vec", "vector_codes")
    }


# --- link and add


def test_vectors_are_stored_as_float16_of_the_same_direction(shelf: Shelf, words: WordEmbedder) -> None:
    shelf.write("a.md", "some text")
    embed(shelf, words)
    ((vector,),) = shelf.rows("SELECT vector FROM vectors")
    stored = np.frombuffer(vector, np.float16)
    assert stored.shape == (70,)
    assert np.array_equal(stored, words.embed(["some text"], "passage")[0].astype(np.float16))


def test_link_returns_the_chunks_that_got_a_vector(shelf: Shelf, words: WordEmbedder) -> None:
    shelf.write("a.md", "one", "two")
    embed(shelf, words)
    shelf.write("b.md", "one", "three")
    rows = {chunk.text: chunk.key for chunk in shelf.vectors.pending([words], after=None, limit=10)}
    asked = [(row, hash_of(text)) for text, row in rows.items()]
    assert shelf.vectors.link(words, asked, primary=True) == {rows["one"]}


def test_a_chunk_may_have_a_vector_in_each_of_two_spaces(shelf: Shelf, toy: type[Toy]) -> None:
    one, other = toy.embedder("one", dimension=16), toy.embedder("other", dimension=24)
    shelf.write("a.md", "text")
    (row,) = shelf.chunk_rows().values()
    for embedder, primary in ((one, True), (other, False)):
        shelf.give(embedder, {row: embedder.embed(["text"], "passage")[0]}, primary=primary)
    assert sorted(shelf.rows("SELECT e.model, cv.home, length(v.vector) FROM chunks_vec cv JOIN vectors v ON v.id = cv.vector_id JOIN embedding_spaces e ON e.id = v.space_id")) == [
        ("one", 1, 32),
        ("other", 0, 48),
    ]  # fmt: skip


# --- edit, rename, delete


def test_new_tags_and_new_places_need_no_new_vector(shelf: Shelf, words: WordEmbedder) -> None:
    shelf.write("a.md", "one", "two")
    embed(shelf, words)
    before = len(words.batches)
    shelf.write("a.md", "one", "two", tags=["new"])
    assert embed(shelf, words)[0] == 0
    shelf.connection.execute("UPDATE chunks SET start_offset = start_offset + 5, ordinal = ordinal + 1")
    assert shelf.vectors.count_pending([words]) == 0
    assert len(words.batches) == before


def test_a_renamed_document_keeps_its_vectors(shelf: Shelf, words: WordEmbedder) -> None:
    shelf.write("old.md", "one text", "two text", title="The title")
    embed(shelf, words)
    shelf.store.remove("notes", ["old.md"])
    shelf.write("new.md", "one text", "two text", title="The title")
    assert embed(shelf, words) == (0, 2)
    assert counts(shelf)["vectors"] == 2


def test_a_title_that_is_only_the_name_of_the_file_does_not_tie_vectors_to_it(
    shelf: Shelf, words: WordEmbedder
) -> None:
    shelf.write("old name.txt", "one text", title="old name")
    embed(shelf, words)
    shelf.store.remove("notes", ["old name.txt"])
    shelf.write("new.txt", "one text", title="new")
    assert embed(shelf, words) == (0, 1)


def test_a_deleted_document_leaves_no_link_and_is_not_found(shelf: Shelf, words: WordEmbedder) -> None:
    shelf.write("a.md", "first text")
    shelf.write("b.md", "second text")
    embed(shelf, words)
    shelf.store.remove("notes", ["a.md"])
    assert counts(shelf)["chunks_vec"] == 1
    assert found(shelf, words, "first text") == ["second text"]
    assert shelf.rows("PRAGMA foreign_key_check") == []


# --- settle, drop_unused, clear


def test_settle_remembers_complete_vectors_only_if_none_is_missing(shelf: Shelf, words: WordEmbedder) -> None:
    shelf.write("a.md", "one", "two")
    shelf.vectors.settle([words])
    assert shelf.connection.remembered("complete_vectors") is None
    embed(shelf, words)
    assert shelf.connection.remembered("complete_vectors") == "words@1"
    shelf.write("b.md", "three")
    assert shelf.connection.remembered("complete_vectors") is None, "writing a chunk forgets it"


def test_unused_vectors_are_kept_while_they_are_few(shelf: Shelf, words: WordEmbedder) -> None:
    """Regression: a folder that was moved away and back was embedded twice."""
    for number in range(20):
        shelf.write(f"{number}.md", f"text number {number}")
    embed(shelf, words)
    shelf.store.remove("notes", [f"{number}.md" for number in range(20)])
    embed(shelf, words)
    assert counts(shelf)["vectors"] == 20


def test_unused_vectors_are_kept_until_they_are_many_and_more_than_half(
    shelf: Shelf, words: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_writer, "_UNUSED_KEPT", 0)
    for number in range(20):
        shelf.write(f"{number}.md", f"text number {number}")
    embed(shelf, words)
    for number in range(10):
        shelf.store.remove("notes", [f"{number}.md"])
    embed(shelf, words)
    assert counts(shelf)["vectors"] == 20, "half: they may come back, as after another way of cutting"
    shelf.store.remove("notes", ["10.md"])
    embed(shelf, words)
    assert counts(shelf)["vectors"] == 9


def test_clear_forgets_only_the_vectors_of_the_given_models(
    shelf: Shelf, toy: type[Toy], words: WordEmbedder, tiny_limits: None
) -> None:
    shelf.write("a.md", *(f"text {number}" for number in range(30)))
    embed(shelf, words, settle=False)
    writer = shelf.vectors
    assert writer.count_pending([words]) == 0
    writer.clear([words])
    assert counts(shelf) == {"embedding_spaces": 0, "vectors": 0, "chunks_vec": 0, "vector_codes": 0}
    former = toy.embedder("former")
    embed(shelf, former, settle=False)
    writer.clear([words])
    assert counts(shelf)["vectors"] == 30, "those of another model are kept until the new ones are made"
    assert shelf.connection.remembered("complete_vectors") is None
    assert writer.count_pending([words]) == 30, "the same writer goes on with a space made anew"
    assert embed(shelf, words) == (30, 0)


def test_ids_of_codes_are_never_reused(shelf: Shelf, words: WordEmbedder, tiny_limits: None) -> None:
    """Readers compare the ids to know whether their cached codes are current."""
    seen: set[int] = set()
    for _ in range(3):
        shelf.write("a.md", *(f"text {number}" for number in range(30)))
        embed(shelf, words)
        current = {row for (row,) in shelf.rows("SELECT id FROM vector_codes")}
        assert current
        assert not current & seen
        seen |= current
        shelf.vectors.clear([words])


# --- codes


def test_a_space_gets_codes_once_it_is_large_and_keeps_them_current(
    shelf: Shelf, words: WordEmbedder, tiny_limits: None
) -> None:
    shelf.write("a.md", *(f"text {number}" for number in range(20)))
    embed(shelf, words)
    assert counts(shelf)["vector_codes"] == 0
    for number in range(30):
        shelf.write(f"{number}.md", f"another {number}")
        embed(shelf, words)
        shelf.check_codes()
    assert shelf.value("SELECT centre IS NOT NULL FROM embedding_spaces")


def test_adding_vectors_does_not_change_the_centre_of_the_bit_codes(
    shelf: Shelf, words: WordEmbedder, tiny_limits: None
) -> None:
    """Codes made before must stay comparable."""
    shelf.write("a.md", *(f"text {number}" for number in range(25)))
    embed(shelf, words)
    centre = shelf.value("SELECT centre FROM embedding_spaces")
    vectors_of_all = [
        np.frombuffer(vector, np.float16).astype(np.float64)
        for (vector,) in shelf.rows("SELECT vector FROM vectors ORDER BY id LIMIT 16")
    ]
    assert np.frombuffer(centre, np.float32) == pytest.approx(np.mean(vectors_of_all, axis=0), abs=1e-6)
    shelf.write("b.md", *(f"other {number}" for number in range(25)))
    embed(shelf, words)
    shelf.vectors.drop_unused()
    assert shelf.value("SELECT centre FROM embedding_spaces") == centre


def test_small_rows_of_codes_are_merged_into_full_ones(shelf: Shelf, words: WordEmbedder, tiny_limits: None) -> None:
    shelf.write("a.md", *(f"text {number}" for number in range(21)))
    embed(shelf, words)
    most_small = 0
    for number in range(60):
        shelf.write(f"{number}.md", f"another {number}")
        embed(shelf, words)
        sizes = [size for (size,) in shelf.rows("SELECT count FROM vector_codes")]
        most_small = max(most_small, sum(size < 16 for size in sizes))
        assert max(sizes) <= 16
    assert most_small == 3
    assert len(sizes) <= 3 + 81 // 16
    shelf.check_codes()


def test_dropping_unused_vectors_remakes_the_codes(shelf: Shelf, words: WordEmbedder, tiny_limits: None) -> None:
    for path in ("a.md", "b.md"):
        shelf.write(path, *(f"{path} {number}" for number in range(20)))
    embed(shelf, words)
    shelf.store.remove("notes", ["a.md"])
    shelf.vectors.drop_unused()
    assert counts(shelf)["vectors"] == 20
    shelf.check_codes()
    shelf.write("c.md", "c.md 1")
    embed(shelf, words)
    shelf.check_codes()
    assert found(shelf, words, "c.md 1", 1) == ["c.md 1"]


# --- killed


class KilledError(BaseException):
    pass


def test_a_killed_writer_leaves_nothing_of_its_open_transaction(
    shelf: Shelf, words: WordEmbedder, tiny_limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.write("a.md", *(f"text {number}" for number in range(30)))
    embed(shelf, words)
    before = counts(shelf)
    shelf.write("b.md", "one more", "and another")

    def die(*_: Any) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(SqliteVectorWriter, "_add_codes", die)
        with pytest.raises(KilledError):
            embed(shelf, words)
    shelf.reopen()
    assert counts(shelf) == before
    shelf.check_codes()
    assert shelf.connection.remembered("complete_vectors") is None
    assert embed(shelf, words) == (2, 0)
    shelf.check_codes()


@pytest.mark.parametrize("after_statement", range(1, 40, 3))
def test_the_next_run_finishes_the_work_after_an_interruption_at_any_statement(
    shelf: Shelf, words: WordEmbedder, tiny_limits: None, after_statement: int
) -> None:
    """A kill is simulated by closing the connection without COMMIT."""
    shelf.write("a.md", *(f"text {number}" for number in range(19)))
    embed(shelf, words)
    shelf.write("b.md", "text 1", "one more", "and another")
    left = after_statement

    def count(*_: Any) -> bool:
        nonlocal left
        left -= 1
        if left <= 0:
            raise KilledError
        return True

    shelf.connection.exec_trace = count
    killed = False
    try:
        embed(shelf, words)
    except KilledError:
        killed = True
    shelf.connection.exec_trace = None
    shelf.reopen()
    assert killed or after_statement > 20
    shelf.check_codes()
    assert shelf.rows("PRAGMA foreign_key_check") == []
    embed(shelf, words)
    assert counts(shelf) | {"vector_codes": 0} == {
        "embedding_spaces": 1,
        "vectors": 21,
        "chunks_vec": 22,
        "vector_codes": 0,
    }
    shelf.check_codes()
    assert shelf.connection.remembered("complete_vectors") == "words@1"


def test_another_connection_sees_a_vector_with_its_chunk_and_its_code_or_none_of_them(
    shelf: Shelf, words: WordEmbedder, tiny_limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.write("a.md", *(f"text {number}" for number in range(30)))
    embed(shelf, words)
    reader = shelf.database.reader()
    sql = "SELECT (SELECT count(*) FROM vectors), (SELECT count(*) FROM chunks_vec), (SELECT sum(count) FROM vector_codes)"
    seen: list[tuple[Any, ...]] = []
    really: Callable[..., None] = SqliteVectorWriter._merge_small

    def look(writer: SqliteVectorWriter, space: int) -> None:
        really(writer, space)
        seen.extend(reader.execute(sql).fetchall())

    monkeypatch.setattr(SqliteVectorWriter, "_merge_small", look)
    shelf.write("b.md", "one more")
    embed(shelf, words)
    assert seen == [(30, 30, 30)]
    assert reader.execute(sql).fetchall() == [(31, 31, 31)]
    reader.close()


# --- everything together

TEXTS = st.lists(st.sampled_from([f"word{number}" for number in range(40)]), min_size=1, max_size=12, unique=True)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(["a.md", "b.md", "c.md"]), TEXTS),
        st.tuples(st.just("remove"), st.sampled_from(["a.md", "b.md", "c.md"]), st.none()),
        st.tuples(st.sampled_from(["embed", "settle", "drop_unused", "clear"]), st.none(), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_vectors_chunks_and_codes_agree_after_any_sequence_of_writes(
    shared_shelf: Shelf, words: WordEmbedder, tiny_limits: None, steps: list[tuple[str, str | None, list[str] | None]]
) -> None:
    shelf = shared_shelf
    shelf.add_source("notes")
    shelf.store.remove("notes", ["a.md", "b.md", "c.md"])
    shelf.vectors.clear([words])
    for step, path, texts in steps:
        if step == "write":
            shelf.write(str(path), *(texts or ()))
        elif step == "remove":
            shelf.store.remove("notes", [str(path)])
        elif step == "embed":
            embed(shelf, words, settle=False)
        elif step == "settle":
            shelf.vectors.settle([words])
        elif step == "clear":
            shelf.vectors.clear([words])
        else:
            shelf.vectors.drop_unused()
    embed(shelf, words)
    shelf.check_codes()
    assert shelf.rows("PRAGMA foreign_key_check") == []
    for text, hashed, vector in shelf.rows(
        "SELECT c.text, v.text_hash, v.vector FROM chunks c LEFT JOIN chunks_vec cv ON cv.chunk = c.id LEFT JOIN vectors v ON v.id = cv.vector_id"
    ):
        assert hashed == hash_of(text)
        assert vector == words.embed([text], "passage")[0].astype(np.float16).tobytes()
