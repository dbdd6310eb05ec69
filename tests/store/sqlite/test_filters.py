"""Filters as SQL. Their meaning is tested in the contract of every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kebab.core.search import SearchFilters
from kebab.store.sqlite.filters import document_filter

if TYPE_CHECKING:
    from tests.store.conftest import Shelf


def test_no_filter_is_no_sql() -> None:
    assert document_filter(SearchFilters()) == ("", {})


def test_tags_are_joins_in_the_sql_of_a_filter_and_use_an_index(shelf: Shelf) -> None:
    """The query plan reads document_tags by an index."""
    sql, bindings = document_filter(SearchFilters(tags_any=("rust",), tags_all=("ops",)))
    assert sql.count("JOIN document_tags") == 2
    plan = " ".join(row[3] for row in shelf.rows(f"EXPLAIN QUERY PLAN {sql}", bindings))
    assert "SCAN document_tags" not in plan
    assert "USING PRIMARY KEY" in plan or "INDEX" in plan
