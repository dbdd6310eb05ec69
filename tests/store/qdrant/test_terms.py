"""Sparse vectors whose product is the bm25 of FTS5."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import apsw
import pytest

from kebab.analysis.terms import cjk_column
from kebab.core.ports import ColumnWeights
from kebab.store.fts5.chunk_columns import ChunkColumns
from kebab.store.fts5.tokenizer import TOKENIZE, SqliteTokenizer
from kebab.store.fts5.wanted_terms import IndexTerm
from kebab.store.qdrant.terms import LIBRARIES, OWN, counted, id_of, idf, is_far_from, reweighed, settled_average

TEXTS = [
    ("Backups", "Ops > Backups", "Backups are copied every night; a backup is tested every month."),
    ("Rust", "", "Errors are values. The compiler tests what people forget."),
    ("배포", "배포 > 문서", "배포 문서를 읽고 backups 확인. 문서는 매달 고친다."),
    ("Long", "", "night " * 60 + "and a copy of the copy"),
    ("여행", "", "제주 여행 준비물과 문서"),
]
WEIGHTS = ColumnWeights()


def columns() -> list[ChunkColumns]:
    return [
        ChunkColumns(heading, text, title, cjk_column("bigrams", title, heading, text))
        for title, heading, text in TEXTS
    ]


def by_fts5(expression: str) -> dict[int, float]:
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE t USING fts5(heading_path, text, title, cjk, tokenize='{TOKENIZE}')")
        connection.executemany(
            "INSERT INTO t (rowid, heading_path, text, title, cjk) VALUES (?, ?, ?, ?, ?)",
            [(n, *c) for n, c in enumerate(columns())],
        )
        weights = (WEIGHTS.heading, WEIGHTS.text, WEIGHTS.title, WEIGHTS.cjk)
        found: Any = connection.execute(
            "SELECT rowid, -bm25(t, ?, ?, ?, ?) FROM t WHERE t MATCH ?", (*weights, expression)
        )
        return dict(found.fetchall())


def by_vectors(terms: list[IndexTerm]) -> dict[int, float]:
    chunks = [counted(chunk, OWN, SqliteTokenizer(), WEIGHTS) for chunk in columns()]
    average = sum(chunk.length for chunk in chunks) / len(chunks)
    vectors = [dict(zip(*chunk.vector(average).values(), strict=True)) for chunk in chunks]
    query = {
        id_of(OWN, term): idf(len(chunks), sum(id_of(OWN, term) in vector for vector in vectors)) for term in terms
    }
    scores = {
        number: sum(vector.get(term, 0.0) * rare for term, rare in query.items())
        for number, vector in enumerate(vectors)
    }
    return {number: score for number, score in scores.items() if score}


@pytest.mark.parametrize(
    ("expression", "terms"),
    [
        ('"backups"', [IndexTerm("backup", False, False)]),
        ('"night" OR "copies" OR "tested"', [IndexTerm(stem, False, False) for stem in ("night", "copi", "test")]),
        ('cjk : "문서"', [IndexTerm("문서", True, False)]),
        ('cjk : "문" *', [IndexTerm("문", True, True)]),
        ('cjk : "여행" OR "backups"', [IndexTerm("여행", True, False), IndexTerm("backup", False, False)]),
    ],
)
def test_the_product_of_a_chunk_vector_and_a_query_vector_is_the_bm25_of_fts5(
    expression: str, terms: list[IndexTerm]
) -> None:
    expected, found = by_fts5(expression), by_vectors(terms)
    assert set(found) == set(expected)
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_own_documents_and_libraries_have_different_dimensions() -> None:
    term = IndexTerm("backup", False, False)
    assert id_of(OWN, term) != id_of(LIBRARIES, term)


def test_reweighing_gives_the_vector_for_the_new_average() -> None:
    for chunk in columns():
        words = counted(chunk, OWN, SqliteTokenizer(), WEIGHTS)
        again = reweighed(words.vector(40.0), words.length, 40.0, 60.0)
        assert again["indices"] == words.vector(60.0)["indices"]
        assert again["values"] == pytest.approx(words.vector(60.0)["values"], rel=2e-3)


def test_the_settled_average_moves_only_beyond_the_tolerance() -> None:
    first = settled_average(100.0, None)
    assert first == 100.0
    assert settled_average(first * 1.04, first) == first
    moved = settled_average(first * 1.2, first)
    assert first * 1.1 < moved < first * 1.2
    assert settled_average(moved * 0.96, moved) == moved
    assert settled_average(0.0, moved) == moved
    assert not is_far_from(first, first * 1.05)
    assert is_far_from(first, first * 1.2)
